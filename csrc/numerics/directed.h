/* Sums and differences of probabilities, rounded to a given side, without branches. */
#ifndef BINCP_DIRECTED_H
#define BINCP_DIRECTED_H

#include "numerics/bits.h"
#include "numerics/constants.h"
#include "numerics/double_double.h"

/* p - shift, rounded down and clipped at 0. The bit patterns of positive doubles are in their order,
 * so a subtraction gives the next double below. */
static ALWAYS_INLINE double shifted_down(double p, double shift)
{
    const pair value = two_sum(p, -shift);
    const double below = double_of(bits_of(value.hi) - (value.lo < 0.0));
    return value.hi > 0.0 ? below : 0.0;
}

/* p + shift, rounded up and clipped at 1. */
static ALWAYS_INLINE double shifted_up(double p, double shift)
{
    const pair value = two_sum(p, shift);
    const double above = double_of(bits_of(value.hi) + (value.lo > 0.0));
    return value.hi < 1.0 ? above : 1.0;
}

/* 1 - c for c in [0, 3/4], rounded down. 1 - (1 - c) is exact, so it says how 1 - c was rounded. */
static ALWAYS_INLINE double complement_below(double c)
{
    const double rest = 1.0 - c, down = rest - UNIT_ROUNDOFF;
    return 1.0 - rest < c ? down : rest;
}

static ALWAYS_INLINE double complement_above(double c)
{
    const double rest = 1.0 - c, up = rest + UNIT_ROUNDOFF;
    return 1.0 - rest > c ? up : rest;
}

#endif
