/* The normal distribution, and the Gaussian shift Phi(Phi^-1(p) -+ shift) with directed rounding.
 *
 * Everything is computed in the tail t = min(p, 1 - p) that is smaller (1 - p is exact there), and a
 * result above 1/2 is one minus a tail. So no digits are lost near 1, or down to p = 5e-324.
 *
 * With T(x) = 1 - Phi(x) and rho = sqrt(-2 log t), the abscissa of t is a = rho - q(rho), with a
 * rational function q; and T(x) = m(x) exp(-x^2 / 2), with a rational function m. A shift d moves a
 * to x = a + d. Near the centre T(x) is evaluated as it stands. Elsewhere an error of a would grow by
 * the factor x, so T is t times the ratio T(x) / T(a), which only depends on a as much as d does.
 *
 * Errors are counted in units u = 2^-53, by adding up what each operation contributes. All
 * coefficients are positive, so a polynomial of 10, 11, 12 or 13 of them, with their rounding, is off
 * by 13, 14, 16 or 17 units. The abscissa: rho is off by 2.2 rho units (a logarithm 2.4, halved, and a
 * root), which da/drho <= 1.48 enlarges; q by 35 q; the difference by a; q's approximation by .35
 * max(1, rho / 4). Together that is below 4 a + 46 = A. The tail: four polynomials 54, five products and
 * a quotient 5, exp 2.4, m's approximation 1, the outward step 1, y in m 1, which is 65 units at most,
 * and 75 are taken; the exponent E: 4 |E| for its products, the sum in it and its reduction; and A times
 * |d log T / da|, which is at most the shift in the product, and y + 1 near the centre.
 * Underflow costs less than two units of the smallest double.
 *
 * A bound is looser than the exact one by 3.4e-14 of the smaller of it and 1 minus it, for p in .001 to
 * .999 and shifts up to 3, and by 9e-13 at most. Bounds of neighbouring p are in the wrong order, by a
 * part of that looseness, where the exact bounds differ by less. A bound of an array is made of the
 * same operations as a single one: five loops over blocks, as one loop is too long for a processor's
 * window.
 */
#include "numerics/normal.h"

#include <math.h>

#include "numerics/constants.h"
#include "numerics/directed.h"
#include "numerics/elementary.h"
#include "numerics/ends.h"

/* A shift this large leads from any p strictly between 0 and 1 beyond the range of doubles. */
#define FAR_SHIFT 80.0
#define TAIL_UNITS 75.0
#define ABSCISSA_UNITS 46.0

/* ---- rational functions ------------------------------------------------------------------------ */

/* The coefficients come from numerics/fit.py.
 *
 * exp(y^2 / 2) T(y) on [0, 40], off by 5.4e-17 of itself before the rounding of the coefficients. */
static const double mills_above[10] = {
    0x1.0000000000000p-1, 0x1.8d0e773a7f44ep-1, 0x1.309e055b6ca17p-1, 0x1.28f1373519414p-2,
    0x1.915f5cd817cd6p-4, 0x1.847e164926848p-6, 0x1.0d3db0c776b4ap-8, 0x1.028f60d6c5df4p-11,
    0x1.3a9af6c31af68p-15, 0x1.76f5c0e306d31p-20,
};
static const double mills_below[11] = {
    0x1.0000000000000p+0, 0x1.2ca8506c907a3p+1, 0x1.4832d70a38499p+1, 0x1.b7a104b3b3f65p+0,
    0x1.9158771466d8fp-1, 0x1.05e02025117bfp-2, 0x1.f0f8fc01ef6d8p-5, 0x1.54862412451c6p-7,
    0x1.44f98fbe14bd8p-10, 0x1.8a4c9f406c1afp-14, 0x1.d5f150a76749ap-19,
};
/* rho - |Phi^-1(t)| on [1.17, 38.6], off by 3.2e-17 max(1, rho / 4). */
static const double inset_above[12] = {
    0x1.f507f7662e0ecp+1, 0x1.16d2459899382p+6, 0x1.01aa32189a73dp+8, 0x1.40506a7e2d873p+8,
    0x1.5dcec11c11b91p+7, 0x1.ae52b27b835efp+5, 0x1.28b72dc2eb141p+3, 0x1.9d331f0882e71p-1,
    0x1.0a2ba9aec4e57p-5, 0x1.1e75547bab3e0p-11, 0x1.a8cc861d06852p-19, 0x1.093ffa1df5525p-28,
};
static const double inset_below[13] = {
    0x1.0000000000000p+0, 0x1.99d97a0189353p+4, 0x1.0b46e75aab828p+7, 0x1.e3a78eb7ac202p+7,
    0x1.82a5f2efbd7c2p+7, 0x1.47bb21b2ab1a5p+6, 0x1.4852f6c17df46p+4, 0x1.7035b79655465p+1,
    0x1.a4c276bee0e71p-3, 0x1.c237413651b8fp-8, 0x1.9387b63d03cbfp-14, 0x1.e9a96aa96b185p-22,
    0x1.ce3aa82294f22p-32,
};
/* A fraction that is not divided yet. */
typedef struct quotient {
    double above, below;
} quotient;

static ALWAYS_INLINE quotient mills_ratio(double y)
{
    const double square = y * y, fourth = square * square;
    return (quotient){
        four_terms(mills_above, y, square)
            + fourth * (four_terms(mills_above + 4, y, square)
                        + fourth * (mills_above[8] + mills_above[9] * y)),
        four_terms(mills_below, y, square)
            + fourth * (four_terms(mills_below + 4, y, square)
                        + fourth * ((mills_below[8] + mills_below[9] * y) + square * mills_below[10])),
    };
}

static ALWAYS_INLINE double inset(double rho)
{
    const double square = rho * rho, fourth = square * square;
    const double above = four_terms(inset_above, rho, square)
                         + fourth * (four_terms(inset_above + 4, rho, square)
                                     + fourth * four_terms(inset_above + 8, rho, square));
    const double below = four_terms(inset_below, rho, square)
                         + fourth * (four_terms(inset_below + 4, rho, square)
                                     + fourth * (four_terms(inset_below + 8, rho, square)
                                                 + fourth * inset_below[12]));
    return above / below;
}

/* ---- the steps of a shift ---------------------------------------------------------------------- */

typedef enum direction { DOWN, UP } direction;

/* The smaller tail times 2^54, which is a normal number. */
static ALWAYS_INLINE double smaller_tail(double p)
{
    const double q = 1.0 - p;
    return (p < q ? p : q) * 0x1p54;
}

/* -2 log t, of which rho is the root. */
static ALWAYS_INLINE double twice_depth(scaled t)
{
    return -2.0 * log_scaled((scaled){t.value, t.k - 54.0});
}

static ALWAYS_INLINE double abscissa(double rho)
{
    const double a = rho - inset(rho);
    return a > 0.0 ? a : 0.0; /* the difference may round below 0 near p = 1/2 */
}

/* The shift of the abscissa, away from the centre or towards it. */
static ALWAYS_INLINE double signed_shift(double p, double shift, direction to)
{
    return to == DOWN ? (p <= 0.5 ? shift : -shift) : (p < 0.5 ? -shift : shift);
}

/* The tail beyond |x| as a fraction times exp(exponent) 2^k, and what an error of a is multiplied by. */
typedef struct moved_tail {
    quotient ratio;
    double exponent, k, lever;
} moved_tail;

static ALWAYS_INLINE moved_tail move(scaled t, double a, double d, double shift)
{
    const double x = a + d, y = fabs(x);
    const quotient there = mills_ratio(y), here = mills_ratio(a);
    /* Strictly: for a = 0 moved inwards the ratio depends on a more than `shift` says. */
    const int far = shift < y;
    return (moved_tail){
        .ratio = {far ? t.value * there.above * here.below : there.above,
                  far ? there.below * here.above : there.below},
        .exponent = far ? -d * (a + 0.5 * d) : -0.5 * y * y,
        .k = far ? t.k - 54.0 : 0.0,
        .lever = far ? shift : y + 1.0,
    };
}

typedef struct enclosed {
    double value, error;
} enclosed;

static ALWAYS_INLINE enclosed tail_of(moved_tail moved, double a)
{
    const scaled power = exp_scaled(moved.exponent);
    const double k = power.k + moved.k;
    const double value = unscaled(moved.ratio.above / moved.ratio.below * power.value,
                                  k < -1100.0 ? -1100.0 : k);
    const double units = TAIL_UNITS + 4.0 * fabs(moved.exponent)
                         + moved.lever * (4.0 * a + ABSCISSA_UNITS);
    return (enclosed){value, value * (UNIT_ROUNDOFF * units) + 2.0 * TRUE_MIN};
}

/* The bound that belongs to the tail beyond |x|. */
static ALWAYS_INLINE double bound_of(double p, double x, enclosed tail, direction to)
{
    const double above = tail.value + tail.error, least = tail.value - tail.error;
    const double below = least > 0.0 ? least : 0.0;
    if (to == DOWN) {
        const double on_the_right = p <= 0.5 ? below : complement_below(above);
        const double bound = x < 0.0 ? below : on_the_right;
        return bound < p ? bound : p;
    }
    const double on_the_right = p < 0.5 ? above : complement_above(below);
    const double bound = x < 0.0 ? complement_above(below) : on_the_right;
    const double cut = bound < 1.0 ? bound : 1.0;
    return cut > p ? cut : p;
}

/* ---- one probability --------------------------------------------------------------------------- */

static ALWAYS_INLINE double single(double p, double shift, direction to)
{
    if (shift == 0.0 || is_marked(mark_of_end(p))) {
        return probability_or_nan(p);
    }
    const double cut = shift < FAR_SHIFT ? shift : FAR_SHIFT;
    const scaled t = split(smaller_tail(p));
    const double a = abscissa(sqrt(twice_depth(t))), d = signed_shift(p, cut, to);
    return bound_of(p, a + d, tail_of(move(t, a, d, cut), a), to);
}

double bincp_normal_shift_down(double p, double shift)
{
    return single(p, shift, DOWN);
}

double bincp_normal_shift_up(double p, double shift)
{
    return single(p, shift, UP);
}

/* ---- many probabilities ------------------------------------------------------------------------ */

enum { BLOCK = 256 };

static ALWAYS_INLINE void shift_block(const double *restrict p, size_t n, double shift,
                                      double *restrict out, direction to)
{
    double value[BLOCK], k[BLOCK], a[BLOCK];
    double above[BLOCK], below[BLOCK], exponent[BLOCK], power[BLOCK], lever[BLOCK];
    uint64_t marks = 0;
    for (size_t i = 0; i < n; ++i) {
        marks |= mark_of_end(p[i]);
        const scaled t = split(smaller_tail(p[i]));
        value[i] = t.value;
        k[i] = t.k;
        a[i] = sqrt(twice_depth(t));
    }
    for (size_t i = 0; i < n; ++i) {
        a[i] = abscissa(a[i]);
    }
    for (size_t i = 0; i < n; ++i) {
        const moved_tail moved = move((scaled){value[i], k[i]}, a[i],
                                      signed_shift(p[i], shift, to), shift);
        above[i] = moved.ratio.above;
        below[i] = moved.ratio.below;
        exponent[i] = moved.exponent;
        power[i] = moved.k;
        lever[i] = moved.lever;
    }
    for (size_t i = 0; i < n; ++i) {
        const moved_tail moved = {{above[i], below[i]}, exponent[i], power[i], lever[i]};
        const enclosed tail = tail_of(moved, a[i]);
        above[i] = tail.value;
        below[i] = tail.error;
    }
    for (size_t i = 0; i < n; ++i) {
        const enclosed tail = {above[i], below[i]};
        out[i] = bound_of(p[i], a[i] + signed_shift(p[i], shift, to), tail, to);
    }
    if (is_marked(marks)) {
        mend_ends(p, n, out);
    }
}

static ALWAYS_INLINE void shift_all(const double *p, size_t n, double shift, double *out,
                                    direction to)
{
    const double cut = shift < FAR_SHIFT ? shift : FAR_SHIFT;
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t length = n - start < BLOCK ? n - start : BLOCK;
        shift_block(p + start, length, cut, out + start, to);
    }
}

CLONES_V4 static void fill_normal_down(const double *p, size_t n, double shift, double *out)
{
    shift_all(p, n, shift, out, DOWN);
}

CLONES_V4 static void fill_normal_up(const double *p, size_t n, double shift, double *out)
{
    shift_all(p, n, shift, out, UP);
}

void bincp_normal_shift_down_fill(const double *p, size_t n, double shift, double *out)
{
    if (shift == 0.0) {
        fill_unmoved(p, n, out);
    } else {
        fill_normal_down(p, n, shift, out);
    }
}

void bincp_normal_shift_up_fill(const double *p, size_t n, double shift, double *out)
{
    if (shift == 0.0) {
        fill_unmoved(p, n, out);
    } else {
        fill_normal_up(p, n, shift, out);
    }
}

/* ---- tail and quantile ------------------------------------------------------------------------- */

/* x^2 as a sum of two doubles (Dekker), so that exp takes it without the rounding. */
static pair square_of(double x)
{
    const double scaled_x = x * 134217729.0, high = scaled_x - (scaled_x - x), low = x - high;
    const double square = x * x;
    return (pair){square, ((high * high - square) + 2.0 * high * low) + low * low};
}

double bincp_normal_mills(double y)
{
    const quotient ratio = mills_ratio(y);
    return ratio.above / ratio.below;
}

double bincp_normal_tail(double x)
{
    const double y = x < -40.0 ? 40.0 : -x;
    const pair square = square_of(y);
    const quotient ratio = mills_ratio(y);
    const scaled power = exp_scaled(-0.5 * square.hi);
    return unscaled(ratio.above / ratio.below * power.value * (1.0 - 0.5 * square.lo), power.k);
}

static double horner(const double *c, int degree, double x)
{
    double value = c[degree];
    for (int i = degree - 1; i >= 0; --i) {
        value = value * x + c[i];
    }
    return value;
}

/* Wichura's AS 241 (PPND16, Applied Statistics 37, 1988), which is exact to 5 units of itself, also near
 * p = 1/2, where `abscissa` is only exact to units of 1. */
double bincp_normal_tail_quantile(double p)
{
    static const double central_num[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                          1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                          4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                          3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double central_den[8] = {1.0,
                                          4.2313330701600911252e+1,
                                          6.8718700749205790830e+2,
                                          5.3941960214247511077e+3,
                                          2.1213794301586595867e+4,
                                          3.9307895800092710610e+4,
                                          2.8729085735721942674e+4,
                                          5.2264952788528545610e+3};
    static const double middle_num[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                         5.76949722146069140550e0,  3.64784832476320460504e0,
                                         1.27045825245236838258e0,  2.41780725177450611770e-1,
                                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double middle_den[8] = {1.0,
                                         2.05319162663775882187e0,
                                         1.67638483018380384940e0,
                                         6.89767334985100004550e-1,
                                         1.48103976427480074590e-1,
                                         1.51986665636164571966e-2,
                                         5.47593808499534494600e-4,
                                         1.05075007164441684324e-9};
    static const double far_num[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                      1.78482653991729133580e0,  2.96560571828504891230e-1,
                                      2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                      2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double far_den[8] = {1.0,
                                      5.99832206555887937690e-1,
                                      1.36929880922735805310e-1,
                                      1.48753612908506148525e-2,
                                      7.86869131145613259100e-4,
                                      1.84631831751005468180e-5,
                                      1.42151175831644588870e-7,
                                      2.04426310338993978564e-15};

    const double q = p - 0.5;
    if (q >= -0.425) {
        const double r = 0.180625 - q * q;
        return q * horner(central_num, 7, r) / horner(central_den, 7, r);
    }
    const double r = sqrt(0.5 * twice_depth(split(smaller_tail(p))));
    if (r <= 5.0) {
        return -horner(middle_num, 7, r - 1.6) / horner(middle_den, 7, r - 1.6);
    }
    return -horner(far_num, 7, r - 5.0) / horner(far_den, 7, r - 5.0);
}
