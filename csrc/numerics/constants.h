/* Constants of the arithmetic of doubles, and the test for a probability. */
#ifndef BINCP_CONSTANTS_H
#define BINCP_CONSTANTS_H

#include <float.h>

#include "numerics/clones.h"

#define UNIT_ROUNDOFF (DBL_EPSILON / 2)
#define TRUE_MIN 4.9406564584124654e-324 /* the smallest positive double */
#define LOG_2 0.69314718055994530942

/* False for NaN. */
static ALWAYS_INLINE int is_probability(double p)
{
    return p >= 0.0 && p <= 1.0;
}

#endif
