/* exp, expm1, log, log1p and pow of any double, without the C library.
 *
 * They are as exact as those of a good C library, at the price of more operations than elementary.h
 * has: a logarithm is a sum of two doubles first. Each says by how many units it is off at most; a
 * unit is u = 2^-53 of the result, and the half unit of a rounding counts as one. Where a result is
 * subnormal, half the smallest double comes on top. There are no branches, so loops vectorise.
 *
 * exp. The reduced argument r = x - k log 2 is exact but for the roundings of k LOG_2_LOW (2e-10 u)
 * and of the last difference, .35 u. The series adds r^2 (1/2 + ...) <= .07, which is off by 5 u of
 * itself, and the sum r + ... is rounded, .42 u. The last sum is rounded by 1 u of the result, which
 * is above .7, where those parts are 1.2 u at most: 2.4 units.
 *
 * expm1. Where k = 0 nothing is added to r + ..., which is off by 1 u, and 5 u of the part .18 that the
 * series has: 2 units. Else 2^k (r + ...) + (2^k - 1), of which the second number is exact up to k = 53,
 * has the errors above, 2^k 1.2 u, on a result of at least 2^k .41 for k > 0 and of .29 for k < 0: with
 * the last sum 4 units.
 *
 * log. With m in [sqrt(1/2), sqrt(2)) and z = (m - 1) / (m + 1), log m = 2 z + z v S(v), v = z^2. The
 * numbers z and m + 1 are kept as two doubles, by error-free products and sums, and what the second
 * one of z leaves out is 4 u^2. z v S(v) is below 1% of 2 z, and off by 6 u of itself. So a pair is
 * off by .1 u of 2 z, and of the result where k = 0; where it is not, the result is above 2 |z| and
 * k LOG_2_HIGH is exact. Rounded to one double that is 1.1 units.
 *
 * log1p. 1 + x is a sum of two doubles, and log(1 + x) = log(high) + low / high, but for (low / high)^2
 * / 2, which is below u / 4 of |x|: 1.4 units.
 *
 * pow. The exponent is y log x as two doubles, off by .1 u (|y log x| + 1), and the exponential by 2.4
 * units and one for the low part: 4 units and .1 units times |y log x|.
 */
#ifndef BINCP_FUNCTIONS_H
#define BINCP_FUNCTIONS_H

#include <math.h>

#include "numerics/bits.h"
#include "numerics/clones.h"
#include "numerics/constants.h"
#include "numerics/double_double.h"
#include "numerics/elementary.h"
#include "numerics/strict_floats.h"

/* Beyond, exp is 0 or infinite in doubles. */
#define EXP_RANGE 800.0

/* ---- errorless products -------------------------------------------------------------------- */

/* a b without error (Dekker), for |a|, |b| < 2^996 and products that are not subnormal. fma would be
 * a call of the C library where the CPU lacks it. */
static ALWAYS_INLINE pair two_product(double a, double b)
{
    const double wide_a = a * 134217729.0, wide_b = b * 134217729.0;
    const double high_a = wide_a - (wide_a - a), low_a = a - high_a;
    const double high_b = wide_b - (wide_b - b), low_b = b - high_b;
    const double product = a * b;
    return (pair){product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b)
                               + low_a * low_b};
}

/* ---- exponential ------------------------------------------------------------------------------- */

static ALWAYS_INLINE double within_exp_range(double x)
{
    const double cut = x < -EXP_RANGE ? -EXP_RANGE : x;
    return cut > EXP_RANGE ? EXP_RANGE : cut;
}

/* value 2^k for |k| < 1160, rounded once. */
static ALWAYS_INLINE double unscaled_widely(double value, double k)
{
    const double least = k < -1000.0 ? -1000.0 : k, first = least > 1000.0 ? 1000.0 : least;
    return value * power_of_two(first) * power_of_two(k - first);
}

/* 2.4 units. */
static ALWAYS_INLINE double exp_of(double x)
{
    const scaled power = exp_scaled(within_exp_range(x));
    return unscaled_widely(power.value, power.k);
}

/* exp(x) - 1, 4 units; above x = 37 it is exp(x), where 1 is less than a unit. */
static ALWAYS_INLINE double expm1_of(double x)
{
    const scaled rest = reduced(within_exp_range(x));
    const double less_one = exp_less_one(rest.value);
    const double k = rest.k < -60.0 ? -60.0 : rest.k > 60.0 ? 60.0 : rest.k;
    const double power = power_of_two(k);
    const double value = power * less_one + (power - 1.0);
    const double far = unscaled_widely(1.0 + less_one, rest.k);
    return rest.k > 53.0 ? far : rest.k == 0.0 && x == 0.0 ? x : value;
}

/* ---- logarithm --------------------------------------------------------------------------------- */

/* log(value 2^k), off by .1 units before it is rounded to one double; value in [sqrt(1/2), sqrt(2)). */
static ALWAYS_INLINE pair log_pair(scaled w)
{
    static const double c[] = {
        0x1.555555555557fp-1, 0x1.9999999984b6ep-2, 0x1.2492493e6acc7p-2, 0x1.c71c5480f3d08p-3,
        0x1.7465cbcfb8b6dp-3, 0x1.39ac407006c0fp-3, 0x1.2ea3c2834e5f9p-3,
    };
    const double above = w.value - 1.0;
    const pair below = two_sum(w.value, 1.0);
    const double inverse = 1.0 / below.hi, z = above * inverse;
    const pair back = two_product(z, below.hi);
    const double rest = ((above - back.hi) - back.lo - z * below.lo) * inverse;
    const double v = z * z, square = v * v;
    const double series = four_terms(c, v, square)
                          + square * square * ((c[4] + c[5] * v) + square * c[6]);
    const pair sum = two_sum(w.k * LOG_2_HIGH, 2.0 * z);
    return fast_two_sum(sum.hi, sum.lo + (w.k * LOG_2_LOW + (2.0 * rest + z * v * series)));
}

/* A positive number as value 2^k with the value in [sqrt(1/2), sqrt(2)), subnormal ones, too. */
static ALWAYS_INLINE scaled split_any(double w)
{
    const int tiny = w < 0x1p-1000;
    const double normal = tiny ? w * 0x1p100 : w;
    const scaled parts = split(normal);
    return (scaled){parts.value, parts.k - (tiny ? 100.0 : 0.0)};
}

/* What a logarithm is where its argument is no positive number. */
static ALWAYS_INLINE double log_beyond(double w)
{
    return w == 0.0 ? -INFINITY : w > 0.0 ? w : NAN;
}

/* 1.1 units. */
static ALWAYS_INLINE double log_of(double w)
{
    const pair value = log_pair(split_any(w));
    return w > 0.0 && w < INFINITY ? value.hi : log_beyond(w);
}

/* log(high + low) for a normal number and the rounding of it. */
static ALWAYS_INLINE pair log_of_sum(pair sum)
{
    const pair value = log_pair(split(sum.hi));
    return (pair){value.hi, value.lo + sum.lo / sum.hi};
}

/* log(1 + x), 1.4 units. */
static ALWAYS_INLINE double log1p_of(double x)
{
    const pair sum = two_sum(1.0, x);
    const pair value = log_of_sum(sum);
    const double result = value.hi + value.lo;
    return sum.hi > 0.0 && sum.hi < INFINITY ? (x == 0.0 ? x : result) : log_beyond(sum.hi);
}

/* ---- powers ------------------------------------------------------------------------------------ */

/* x^y for x >= 0 and y > 0: 4 units and .1 units times |y log x|. */
static ALWAYS_INLINE double pow_of(double x, double y)
{
    const pair log_x = log_pair(split_any(x));
    const double most = y < 0x1p100 ? y : 0x1p100; /* beyond, a power is 0, 1 or infinite */
    const pair product = two_product(most, log_x.hi);
    const double low = product.lo + most * log_x.lo;
    const double high = within_exp_range(product.hi);
    const scaled power = exp_scaled(high);
    const double value = unscaled_widely(
        power.value + power.value * (high == product.hi ? low : 0.0), power.k);
    return x > 0.0 && x < INFINITY ? value : x * y;
}

#endif
