/* Exponentials and logarithms without the C library: the same bits from every compiler and CPU.
 *
 * All functions consist of sums, products, quotients and operations on the bits of doubles, which
 * IEEE 754 defines, and of selects in place of branches, so that loops over them vectorise. Each
 * says by how many units it is off at most; a unit is u = 2^-53 of the result.
 *
 * The errors are sums of what each operation contributes. The polynomials are best approximations
 * by numerics/fit.py: log is off by 1.4e-18 of itself, and exp on its interval by 3.6e-18.
 */
#ifndef BINCP_ELEMENTARY_H
#define BINCP_ELEMENTARY_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "numerics/bits.h"
#include "numerics/clones.h"
#include "numerics/strict_floats.h"

#define TWO_52 0x1p52
/* x + ROUNDER is an integer for |x| < 2^51, and its last bits are those of that integer. */
#define ROUNDER 0x1.8p52
#define LOG2_E 0x1.71547652b82fep+0
/* log 2 as a sum: products of the first part with integers up to 2^13 are exact. */
#define LOG_2_HIGH 0x1.62e42fefa2000p-1
#define LOG_2_LOW 0x1.9ef35793c7673p-41

/* Four terms of a polynomial, in an order that leaves the processor little to wait for. */
static ALWAYS_INLINE double four_terms(const double *c, double x, double square)
{
    return (c[0] + c[1] * x) + square * (c[2] + c[3] * x);
}

/* 2^k for an integer k in [-1022, 1023]. */
static ALWAYS_INLINE double power_of_two(double k)
{
    return double_of(bits_of(k + (ROUNDER + 1023.0)) << 52);
}

/* ---- exponential ------------------------------------------------------------------------------- */

/* value 2^k with an integer k and the value near [sqrt(1/2), sqrt(2)]. */
typedef struct scaled {
    double value, k;
} scaled;

/* exp(r) - 1 for |r| <= .35 */
static ALWAYS_INLINE double exp_less_one(double r)
{
    static const double c[] = {
        0x1.000000000000bp-1,  0x1.5555555555561p-3,  0x1.55555555503bcp-5,  0x1.111111110d7c2p-7,
        0x1.6c16c1850d6bbp-10, 0x1.a01a01ba7149cp-13, 0x1.a01997ebad076p-16, 0x1.71dde0aa998a1p-19,
        0x1.28af391684f9ep-22, 0x1.af8448a197d0bp-26,
    };
    const double square = r * r, fourth = square * square;
    const double series = four_terms(c, r, square)
                          + fourth * (four_terms(c + 4, r, square) + fourth * (c[8] + c[9] * r));
    return r + square * series;
}

/* x = k log 2 + value, with an integer k; the value is in [-.35, .35] for |x| < 5600. */
static ALWAYS_INLINE scaled reduced(double x)
{
    const double k = (x * LOG2_E + ROUNDER) - ROUNDER;
    return (scaled){(x - k * LOG_2_HIGH) - k * LOG_2_LOW, k};
}

/* exp_scaled is off by so many units for |x| < 5600, where k log 2 cancels without rounding: the
 * remainder r, at most .35, is off by .35 of u; the series by .4 and a rounding of .25, and the last sum
 * by 1, where the sum itself is .7 to 1.42. */
#define EXP_UNITS 2.4

/* exp(x) for |x| < 5600. Beyond, up to 2^50, it is finite. */
static ALWAYS_INLINE scaled exp_scaled(double x)
{
    const scaled rest = reduced(x);
    return (scaled){1.0 + exp_less_one(rest.value), rest.k};
}

/* value 2^k, rounded once, for an integer k in [-1100, 1000]. */
static ALWAYS_INLINE double unscaled(double value, double k)
{
    const double most = k < -1000.0 ? -1000.0 : k;
    return value * power_of_two(most) * power_of_two(k - most);
}

/* ---- logarithm --------------------------------------------------------------------------------- */

/* A normal w > 0 as a scaled number; the value is in [sqrt(1/2), sqrt(2)). */
static ALWAYS_INLINE scaled split(double w)
{
    const uint64_t root_half = UINT64_C(0x3fe6a09e667f3bcd), bias = UINT64_C(1024) << 52;
    const uint64_t biased = (bits_of(w) - root_half + bias) >> 52;
    const double k = double_of(biased | UINT64_C(0x4330000000000000)) - (TWO_52 + 1024.0);
    return (scaled){double_of(bits_of(w) - (biased << 52) + bias), k};
}

/* log_scaled is off by so many units where its number is at most 1/2, and so many everywhere. The
 * logarithm of the value is off by 3.2: 2 for the quotient z, 1 for the last sum. Up to 1/2 it is at
 * most a third of the result, to which the two sums with k log 2 add 1.3; else it may be as large. */
#define TAIL_LOG_UNITS 2.4
#define LOG_UNITS 5.0

/* log(value 2^k). */
static ALWAYS_INLINE double log_scaled(scaled w)
{
    static const double c[] = {
        0x1.555555555557fp-1, 0x1.9999999984b6ep-2, 0x1.2492493e6acc7p-2, 0x1.c71c5480f3d08p-3,
        0x1.7465cbcfb8b6dp-3, 0x1.39ac407006c0fp-3, 0x1.2ea3c2834e5f9p-3,
    };
    const double z = (w.value - 1.0) / (w.value + 1.0);
    const double v = z * z, square = v * v;
    const double series = four_terms(c, v, square)
                          + square * square * ((c[4] + c[5] * v) + square * c[6]);
    const double log_value = 2.0 * z + z * v * series;
    return w.k * LOG_2_HIGH + (w.k * LOG_2_LOW + log_value);
}

#endif
