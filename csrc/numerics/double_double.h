/* Arithmetic on unevaluated sums of two doubles (Dekker): 106 bits where nothing underflows. */
#ifndef BINCP_PAIRS_H
#define BINCP_PAIRS_H

#include <math.h>
#include <stddef.h>

#include "numerics/clones.h"
#include "numerics/strict_floats.h"
#include "numerics/two_sum.h"

/* `two_sum` for |a| >= |b|. */
static ALWAYS_INLINE pair fast_two_sum(double a, double b)
{
    const double sum = a + b;
    return (pair){sum, b - (sum - a)};
}

static ALWAYS_INLINE pair times(pair a, pair b)
{
    const double product = a.hi * b.hi;
    const double error = fma(a.hi, b.hi, -product) + (a.hi * b.lo + a.lo * b.hi);
    return fast_two_sum(product, error);
}

static inline pair over(pair a, pair b)
{
    const double quotient = a.hi / b.hi;
    const double rest = fma(-quotient, b.hi, a.hi) + (a.lo - quotient * b.lo);
    return fast_two_sum(quotient, rest / b.hi);
}

static inline pair plus(pair a, double b)
{
    const pair sum = two_sum(a.hi, b);
    return fast_two_sum(sum.hi, sum.lo + a.lo);
}

static inline pair exact(size_t count)
{
    return (pair){(double)count, 0.0};
}

/* 1 - p without error. */
static inline pair complement(double p)
{
    return fast_two_sum(1.0, -p);
}

#endif
