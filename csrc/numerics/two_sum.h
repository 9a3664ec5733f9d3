/* The exact sum of two doubles (Knuth): a + b = hi + lo, where hi is the rounded sum.
 *
 * It holds for any order of a and b as long as nothing overflows, and needs every operation rounded
 * as it is written: no -ffast-math.
 */
#ifndef BINCP_TWO_SUM_H
#define BINCP_TWO_SUM_H

#include "numerics/strict_floats.h"

/* An unevaluated sum; `lo` is of the size of the rounding of `hi`. */
typedef struct pair {
    double hi, lo;
} pair;

static inline pair two_sum(double a, double b)
{
    const double sum = a + b;
    const double part = sum - a;
    return (pair){sum, (a - (sum - part)) + (b - part)};
}

#endif
