/* Constants of the arithmetic of doubles, the test for a probability, and what is taken for one. */
#ifndef BINCP_CONSTANTS_H
#define BINCP_CONSTANTS_H

#include <float.h>
#include <math.h>

#include "numerics/clones.h"

#define UNIT_ROUNDOFF (DBL_EPSILON / 2)
#define TRUE_MIN 4.9406564584124654e-324 /* the smallest positive double */
#define LOG_2 0.69314718055994530942

/* False for NaN. */
static ALWAYS_INLINE int is_probability(double p)
{
    return p >= 0.0 && p <= 1.0;
}

/* The probability, with 0 for -0, whose sign no bound may keep; or NaN. */
static ALWAYS_INLINE double probability_or_nan(double p)
{
    return is_probability(p) ? p + 0.0 : NAN;
}

#endif
