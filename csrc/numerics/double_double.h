/* Sums of two doubles that stand for one number (Dekker): 106 bits where nothing underflows.
 *
 * Every operation must be rounded as it is written: no -ffast-math, no contraction.
 */
#ifndef BINCP_DOUBLE_DOUBLE_H
#define BINCP_DOUBLE_DOUBLE_H

#include <math.h>
#include <stddef.h>

#include "numerics/clones.h"
#include "numerics/strict_floats.h"


/* The number hi + lo; `lo` is of the size of the rounding of `hi`. */
typedef struct pair {
    double hi, lo;
} pair;

/* a + b without error (Knuth), for any order of a and b, where nothing overflows. */
static ALWAYS_INLINE pair two_sum(double a, double b)
{
    const double sum = a + b;
    const double part = sum - a;
    return (pair){sum, (a - (sum - part)) + (b - part)};
}

/* a + b without error, for |a| >= |b|. */
static ALWAYS_INLINE pair fast_two_sum(double a, double b)
{
    const double sum = a + b;
    return (pair){sum, b - (sum - a)};
}

static ALWAYS_INLINE pair dd_mul(pair a, pair b)
{
    const double product = a.hi * b.hi;
    const double error = fma(a.hi, b.hi, -product) + (a.hi * b.lo + a.lo * b.hi);
    return fast_two_sum(product, error);
}

static inline pair dd_div(pair a, pair b)
{
    const double quotient = a.hi / b.hi;
    const double rest = fma(-quotient, b.hi, a.hi) + (a.lo - quotient * b.lo);
    return fast_two_sum(quotient, rest / b.hi);
}

static inline pair dd_add(pair a, double b)
{
    const pair sum = two_sum(a.hi, b);
    return fast_two_sum(sum.hi, sum.lo + a.lo);
}

/* A count below 2^53. */
static inline pair dd_from(size_t count)
{
    return (pair){(double)count, 0.0};
}

/* 1 - p without error, for p in [0, 1]. */
static inline pair dd_complement(double p)
{
    return fast_two_sum(1.0, -p);
}

#endif
