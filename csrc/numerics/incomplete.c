/* Incomplete gamma and beta functions as logarithms of tails, and root finders with a safe end.
 *
 * The tail of exp(-|x|^p) is half the upper incomplete gamma function Q(1/p, x^p), and that of
 * sech(x)^(2 a) is the incomplete beta function I_z(a, a) at z = 1 / (1 + exp(2 x)). Both are kept
 * as logarithms: no range is lost, the slope is the hazard rate (density over tail), and since both
 * densities are log-concave, -log T is convex and Halley's iteration needs two or three points. What
 * depends on the law alone is worked out once, by the functions that make laws: the coefficients of
 * polynomials. An evaluation is then a polynomial, a logarithm, and the exponent of the density.
 *
 * Gamma, a = 1/p. Below y = x^p = 1/2, P = (x - s) / gamma with s = x y sum (-y)^n a / ((n + 1)! (a + n + 1))
 * (DLMF 8.7.1). Where p is large, 1 - P is small, down to .56 a, and the digits of gamma that a double has
 * are not enough. So 1 - P is (1 - x) + s - r (x - s): 1 - x is exact, and r = 1 / gamma - 1 is a times
 * the power series of 1 / Gamma(1 + a), which is entire (DLMF 5.7.1). Above, the tail is
 * x exp(-y) a F(y) / (2 gamma), F(y) = y^(-a) exp(y) Gamma(a, y) = int w(s) / (y + s) ds over s > 0, with
 * a density w > 0 that falls like exp(-s) (DLMF 8.6.4). In s = (y - 3) / (y + 2), which maps [1/2, inf)
 * to [-1, 1), (y + 2) F(y) is a mean of 1 / (y + s) (y + 2), whose poles are at -3/2 and below, or beyond
 * 1 by more, the smaller the weight is. So interpolation in 40 Chebyshev points leaves 2.6^-40 = 2e-17
 * of it; nodes and coefficients are computed in pairs of doubles by the continued fraction of F.
 *
 * Beta. For a >= 16 and q = 2 log cosh x <= 1 the substitution v = sqrt(q) turns the tail into moments
 * of a half normal, int exp(-a v^2) g(v^2) dv with g(q) = sqrt(q / (1 - exp(-q))). They follow from the
 * first one by a recurrence, so their sum is B times that one and a polynomial in q. The first one is
 * Mills' ratio of the normal distribution. For q > 1, z < .103, and 2 a T / density is the series
 * 2F1(2 a, 1; a + 1; z) of positive terms, whose ratios are below .21 (DLMF 8.17.8). For a < 16 it is
 * the continued fraction (DLMF 8.17.22).
 *
 * Errors, in units u = 2^-53, of -log T, which are relative ones of T. Exponent: y is off by 4.7 u of
 * itself (functions.h), and q by 10 u. Gamma below 1/2: s has 18 u (its
 * coefficients 4, the sum, whose alternate terms fall by 6 at least, 7, products 2 and y); r (x - s) has
 * 10 u a x, which is below 20 u x times the first coefficient a / (a + 1); the sums that make 1 - P have
 * terms up to twice it and 4.2 u. As 1 - P > .559 a, no power makes this large. Gamma above: what
 * `far_units` counts, and 16 for the logarithm, products and constants. Beta: two polynomials of Mills'
 * ratio 27, the rest of the sum, which is below 2% of it, 2, constants, root and quotients 15; the
 * series in z has 20, with 3 for each coefficient that a coefficient is made of; the continued fraction
 * 24. The sum that makes -log T of
 * its parts is rounded: one unit of -log T.
 */
#include "numerics/incomplete.h"

#include <math.h>

#include "numerics/constants.h"
#include "numerics/double_double.h"
#include "numerics/functions.h"
#include "numerics/normal.h"

#define PI 3.14159265358979323846
/* Beyond exp(-FAR) everything is 0 in doubles. */
#define FAR 800.0
#define SERIES_END 0.5
#define MANY 16.0
/* Halley's iteration stops this near to the target, or at 1e-6 of it, and then takes one step more. */
#define NEAR 1e-12
/* A step on a convex curve from this near overshoots by less than half the square of it. */
#define NEAR_ENOUGH 1e-7
#define FEW_STEPS 60
#define PROOFS 40

static curve far_tail(double value, double slope)
{
    return (curve){value, slope, 0.0, UNIT_ROUNDOFF * (24.0 + 6.0 * value)};
}

/* A polynomial of 4 `groups` coefficients. */
static ALWAYS_INLINE double polynomial(const double *c, int groups, double x)
{
    const double square = x * x, fourth = square * square;
    double value = four_terms(c + 4 * (groups - 1), x, square);
    for (int i = groups - 2; i >= 0; --i) {
        value = four_terms(c + 4 * i, x, square) + fourth * value;
    }
    return value;
}

/* ---- root -------------------------------------------------------------------------------------- */

static double approach(curve_fn f, const void *params, double target, double start)
{
    double low = 0.0, high = INFINITY, z = start;
    for (int i = 0; i < FEW_STEPS; ++i) {
        const curve at = f(z, params);
        const double gap = target - at.value;
        if (gap > 0.0) {
            low = z;
        } else {
            high = z;
        }
        const double newton = gap / at.slope;
        const double next = z + newton / fmax(1.0 + 0.5 * newton * at.bend, 0.5);
        const int inside = next > low && next < high;
        if (fabs(gap) <= 1e-6 * fabs(target) + fmin(at.error, NEAR)) {
            return inside ? next : z;
        }
        z = inside ? next : isinf(high) ? 2.0 * z + 1.0 : 0.5 * (low + high);
    }
    return z;
}

double bincp_solve(curve_fn f, const void *params, double target, double target_error, double start,
                  int side)
{
    double z = approach(f, params, target, start);
    curve at = f(z, params);
    double margin = 1.5 * (at.error + target_error), gap = target - at.value;
    double least = 0.25 * UNIT_ROUNDOFF; /* where the curve jumps, a step by the slope changes nothing */
    for (int i = 0; i < PROOFS && z >= 0.0 && !isinf(z); ++i) {
        if (side * -gap >= at.error + target_error) {
            return z;
        }
        const double step = side * ((gap + side * margin) / at.slope);
        z = fmax(z + side * fmax(step, least * z), 0.0);
        margin *= 2.0;
        least *= 2.0;
        at = f(z, params);
        gap = target - at.value;
    }
    return side > 0 ? INFINITY : 0.0;
}

/* A z on the side of the root, from a point near it: a convex curve is above its tangent, and below it
 * plus half the square of the step in units of the slope, as f'' <= f'^2 where the density falls. The
 * relative error of the slope is that of the tail, and 1e-12 covers what rounds the step. */
static double beyond_root(curve at, double z, double gap, double error, int side)
{
    const double reach = fabs(gap) + error;
    const double margin = error + 2.0 * reach * (side > 0 ? error : reach) + 1e-12 * fabs(gap);
    return (z + (gap + side * margin) / at.slope) * (1.0 + side * 2.0 * UNIT_ROUNDOFF);
}

double bincp_solve_tail(curve_fn f, const void *params, double target, double target_error,
                        double start, int side)
{
    double low = 0.0, high = INFINITY, z = start;
    for (int i = 0; i < FEW_STEPS; ++i) {
        const curve at = f(z, params);
        const double gap = target - at.value, error = at.error + target_error;
        if (fabs(gap) <= NEAR_ENOUGH && error <= NEAR_ENOUGH && z > 0.0) {
            return fmax(beyond_root(at, z, gap, error, side), 0.0);
        }
        if (gap > 0.0) {
            low = z;
        } else {
            high = z;
        }
        const double newton = gap / at.slope;
        const double next = z + newton / fmax(1.0 + 0.5 * newton * at.bend, 0.5);
        z = next > low && next < high ? next : isinf(high) ? 2.0 * z + 1.0 : 0.5 * (low + high);
    }
    return bincp_solve(f, params, target, target_error, z, side);
}

/* ---- gamma: the coefficients ------------------------------------------------------------------- */

/* cos(i pi / 80) as sums of two doubles. */
static const pair cosines[] = {
    {0x1.0000000000000p+0, 0x0.0p+0}, {0x1.ff9af2bfbc297p-1, 0x1.37820b8a4b695p-55},
    {0x1.fe6bf2e2660afp-1, 0x1.c7b0e73511fffp-57}, {0x1.fc7378029f05fp-1, 0x1.850fd7bc1a615p-59},
    {0x1.f9b24942fe45cp-1, -0x1.974e46efc6627p-55}, {0x1.f6297cff75cb0p-1, 0x1.562172a361fd3p-56},
    {0x1.f1da785f71bcep-1, 0x1.9d1b559b63a91p-55}, {0x1.ecc6eec8dd5e9p-1, 0x1.5d5be63008f08p-57},
    {0x1.e6f0e134454ffp-1, 0x1.798ddb868c354p-55}, {0x1.e05a9d625af0fp-1, -0x1.d2d571ec4b7e4p-56},
    {0x1.d906bcf328d46p-1, 0x1.457e610231ac2p-56}, {0x1.d0f8245f5427fp-1, 0x1.ba30894869587p-55},
    {0x1.c83201d3d2c6dp-1, -0x1.502f18ecea53dp-55}, {0x1.beb7cbf08957dp-1, 0x1.d1d5d52eee377p-55},
    {0x1.b48d406a50540p-1, 0x1.8f8bc804d7a1cp-55}, {0x1.a9b66290ea1a3p-1, 0x1.9f630e8b6dac8p-60},
    {0x1.9e3779b97f4a8p-1, -0x1.f506319fcfd19p-56}, {0x1.92150f8e417b1p-1, -0x1.4dfbabf6bc141p-56},
    {0x1.8553ee43def13p-1, 0x1.0e3157760ebc4p-57}, {0x1.77f91eb57c602p-1, -0x1.6b93c2e1ac9c9p-56},
    {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55}, {0x1.5b8bc57520f97p-1, -0x1.91e07900a1e0bp-55},
    {0x1.4c8474600eeeep-1, -0x1.6c39f119db6e3p-59}, {0x1.3cf9e1d2dfdb2p-1, 0x1.536ab42f7c91ap-56},
    {0x1.2cf2304755a5ep-1, -0x1.24bd9a522ca0dp-57}, {0x1.1c73b39ae68c8p-1, 0x1.b25dd267f6600p-55},
    {0x1.0b84ee8f52e9dp-1, -0x1.9ea179fe7c3d6p-55}, {0x1.f459207170fcep-2, -0x1.f9399683a28f5p-57},
    {0x1.d0e2e2b44de01p-2, -0x1.dcad11f226a79p-57}, {0x1.acb523638033bp-2, 0x1.35bd74a951e46p-57},
    {0x1.87de2a6aea963p-2, -0x1.72cedd3d5a610p-57}, {0x1.626c8282f1408p-2, 0x1.0689e6761307ep-56},
    {0x1.3c6ef372fe950p-2, -0x1.f506319fcfd19p-56}, {0x1.15f47c3bed971p-2, -0x1.5326f1315e279p-57},
    {0x1.de189a594fbccp-3, -0x1.0881926e4a5bcp-57}, {0x1.8f8b83c69a60bp-3, -0x1.26d19b9ff8d82p-57},
    {0x1.4060b67a85375p-3, 0x1.dcc510fdcc9c4p-65}, {0x1.e16ee4e236bf8p-4, -0x1.1c90da4038bebp-61},
    {0x1.415e532398e49p-4, 0x1.b036ba52766e2p-60}, {0x1.419dcd176e0f7p-5, -0x1.2d455a4c024d7p-60},
    {0x0.0p+0, 0x0.0p+0},
};

/* cos(i pi / 80) for any i. */
static pair cosine(int i)
{
    const int turn = i % 160, half = turn > 80 ? 160 - turn : turn;
    const pair value = cosines[half > 40 ? 80 - half : half];
    return half > 40 ? (pair){-value.hi, -value.lo} : value;
}

static pair sum_of(pair a, pair b)
{
    const pair sum = two_sum(a.hi, b.hi);
    return fast_two_sum(sum.hi, sum.lo + (a.lo + b.lo));
}

static pair double_pair(double x)
{
    return (pair){x, 0.0};
}

/* (y + 2) F(y) at s, by 1 / (y + 1 - a - 1 (1 - a) / (y + 3 - a - 2 (2 - a) / ...)). */
static pair gamma_fraction(double a, pair s)
{
    const pair numerator = dd_add((pair){2.0 * s.hi, 2.0 * s.lo}, 3.0);
    const pair y = dd_div(numerator, dd_add((pair){-s.hi, -s.lo}, 1.0));
    const int n = 5 + (int)(90.0 / y.hi);
    const pair base = sum_of(y, double_pair(-a));
    pair value = dd_add(base, 2.0 * n + 1.0);
    for (int k = n; k >= 1; --k) {
        const pair product = dd_mul(double_pair(k), two_sum(k, -a));
        const pair ratio = dd_div(product, value);
        value = sum_of(dd_add(base, 2.0 * k - 1.0), (pair){-ratio.hi, -ratio.lo});
    }
    return dd_div(dd_add(y, 2.0), value);
}

/* The polynomial through the values at cos((2 i + 1) pi / 80), by its Chebyshev coefficients. */
static void interpolate(const pair *values, double *out)
{
    pair sums[BINCP_EXPP_FAR];
    double before[BINCP_EXPP_FAR] = {0.0}, now[BINCP_EXPP_FAR] = {0.0}; /* Chebyshev polynomials */
    for (int k = 0; k < BINCP_EXPP_FAR; ++k) {
        sums[k] = double_pair(0.0);
    }
    now[0] = 1.0;
    for (int j = 0; j < BINCP_EXPP_FAR; ++j) {
        pair c = double_pair(0.0);
        for (int i = 0; i < BINCP_EXPP_FAR; ++i) {
            c = sum_of(c, dd_mul(values[i], cosine(j * (2 * i + 1))));
        }
        c = dd_div(c, double_pair(j == 0 ? BINCP_EXPP_FAR : BINCP_EXPP_FAR / 2));
        double last = 0.0;
        for (int k = 0; k < BINCP_EXPP_FAR; ++k) {
            sums[k] = sum_of(sums[k], dd_mul(c, double_pair(now[k])));
            const double next = (j == 0 ? 1.0 : 2.0) * last - before[k];
            before[k] = now[k];
            last = now[k];
            now[k] = next;
        }
    }
    for (int k = 0; k < BINCP_EXPP_FAR; ++k) {
        out[k] = sums[k].hi;
    }
}

/* 1 / Gamma(1 + a) - 1 for 0 <= a <= 1. */
static double reciprocal_gamma_rise(double a)
{
    static const double c[28] = {
        0x1.2788cfc6fb619p-1, -0x1.4fcf4026afa2ep-1, -0x1.5815e8fa27048p-5, 0x1.5512320b43fbep-3,
        -0x1.59af103c34092p-5, -0x1.3b4af28483e21p-7, 0x1.d919c527f60b2p-8, -0x1.317112ce3a2a8p-10,
        -0x1.c364fe6f1563dp-13, 0x1.0c8a78cd9f9d2p-13, -0x1.51ce8af47eabep-16, -0x1.4fad41fc34fbbp-20,
        0x1.302509dbc0de3p-20, -0x1.b9986666c225dp-23, 0x1.a44b7ba22d629p-28, 0x1.57bc3fc384334p-28,
        -0x1.44b4cedca388fp-30, 0x1.cae7675c18607p-34, 0x1.11d065bfaf067p-37, -0x1.0423bac8ca3fbp-38,
        0x1.1f20151323cd0p-41, -0x1.72cb88ea5ae6ep-46, -0x1.815f72a05f16fp-48, 0x1.6198491a83bcdp-50,
        -0x1.10613dde57a89p-53, 0x1.5e3fee81de0eap-60, 0x1.a0dc770fb8a4ap-60, -0x1.0f635344a29eap-62,
    };
    return a * polynomial(c, 7, a);
}

bincp_expp bincp_expp_make(double power, double gamma)
{
    const double a = 1.0 / power;
    bincp_expp law = {.power = power, .gamma = gamma, .rise = reciprocal_gamma_rise(a)};
    double factor = a;
    for (int n = 0; n < BINCP_EXPP_NEAR; ++n) {
        law.near[n] = factor / (a + n + 1.0);
        factor /= -(n + 2.0);
    }
    pair values[BINCP_EXPP_FAR];
    for (int i = 0; i < BINCP_EXPP_FAR; ++i) {
        values[i] = gamma_fraction(a, cosine(2 * i + 1));
    }
    interpolate(values, law.far);
    /* The value is at least 1. A term has 5 roundings, those of its power of s, and what an error of s
     * makes of it. */
    for (int k = 0; k < BINCP_EXPP_FAR; ++k) {
        law.far_units += (5.0 + 4.25 * k) * fabs(law.far[k]);
    }
    return law;
}

/* ---- gamma: the tail --------------------------------------------------------------------------- */

static curve expp_near(double x, double y, const bincp_expp *law)
{
    const double less = x * y * polynomial(law->near, BINCP_EXPP_NEAR / 4, y);
    const double q = ((1.0 - x) + less) - law->rise * (x - less);
    const double value = LOG_2 - log_of(q), slope = exp_of(-y) / (law->gamma * q);
    const double bend = x > 0.0 ? slope - law->power * y / x : slope;
    const double units = 5.0 + 2.2 * value + (18.0 * less + 20.0 * law->near[0] * x) / q;
    return (curve){value, slope, bend, UNIT_ROUNDOFF * units};
}

static curve expp_far(double x, double y, const bincp_expp *law)
{
    const double inverse = 1.0 / (y + 2.0);
    const double above = polynomial(law->far, BINCP_EXPP_FAR / 4, (y - 3.0) * inverse);
    const double mills = x / law->power * above * inverse;
    const double value = y - log_of(mills / (2.0 * law->gamma)), slope = 1.0 / mills;
    const double error = UNIT_ROUNDOFF * (law->far_units + 16.0 + 6.0 * value);
    return (curve){value, slope, slope - law->power * y / x, error};
}

curve bincp_expp_tail(double x, const void *params)
{
    const bincp_expp *law = params;
    const double y = pow_of(x, law->power);
    if (!(y <= FAR)) {
        return far_tail(y, law->power * (y / x));
    }
    return y <= SERIES_END ? expp_near(x, y, law) : expp_far(x, y, law);
}

/* ---- beta -------------------------------------------------------------------------------------- */

/* With d = 1 / (2 a), moment k + 1 is d (q^k sqrt(q) + (2 k + 1) moment k): from the last one back, what
 * multiplies each moment passes on to the one before. */
static void moments_near(double alpha, bincp_sech *law)
{
    /* Coefficients of sqrt(q / (1 - exp(-q))); the radius of convergence is 2 pi. */
    static const double g[BINCP_SECH_NEAR] = {
        1.0,
        0.25,
        0.010416666666666666,
        -0.0026041666666666665,
        -9.765625e-05,
        5.154079861111111e-05,
        1.2756024718915344e-06,
        -1.110097087880291e-06,
        -1.9670584004181822e-08,
        2.4836319884715677e-08,
        3.3966619960386745e-10,
        -5.690071833942187e-10,
        -6.3372301556671304e-12,
        1.3251315155878903e-11,
        1.2468358960996804e-13,
        -3.1229993780631886e-13,
        -2.546988626356897e-15,
        7.426702350918158e-15,
        5.3488858900327365e-17,
        -1.778579261088922e-16,
    };
    const double d = 0.5 / alpha;
    double factor = 0.0;
    for (int k = BINCP_SECH_NEAR - 1; k >= 1; --k) {
        factor = g[k] + d * (2 * k + 1) * factor;
        law->near[k - 1] = d * factor;
    }
    law->first = g[0] + d * factor;
}

bincp_sech bincp_sech_make(double alpha, double norm)
{
    bincp_sech law = {.alpha = alpha, .norm = norm};
    moments_near(alpha, &law);
    law.first *= sqrt(PI / alpha);
    double coefficient = 0.5 / alpha;
    for (int n = 0; n < BINCP_SECH_FAR; ++n) {
        law.far[n] = coefficient;
        coefficient *= (2.0 * alpha + n) / (alpha + 1.0 + n);
    }
    return law;
}

/* cosh(x)^(2 alpha) int_x^inf sech(u)^(2 alpha) du. */
static double sech_fraction(double alpha, double x)
{
    const double z = 1.0 / (1.0 + exp_of(2.0 * x));
    double value = 1.0;
    for (int m = 16 + (int)(2.0 * sqrt(alpha)); m >= 1; --m) {
        const double odd = alpha + 2.0 * m;
        const double even_term = m * (alpha - m) * z / ((odd - 1.0) * odd);
        const double odd_term = (alpha + m) * (2.0 * alpha + m) * z / (odd * (odd + 1.0));
        value = 1.0 + even_term * value / (value - odd_term);
    }
    value = 1.0 - 2.0 * alpha * z / ((alpha + 1.0) * value);
    return 1.0 / (2.0 * alpha * value);
}

/* 2 log cosh x: x^2 times a series of ratio below 1/9 near 0. */
static double twice_log_cosh(double x)
{
    static const double c[16] = {
        0x1.0000000000000p+0, -0x1.5555555555555p-3, 0x1.6c16c16c16c17p-5, -0x1.ba1ba1ba1ba1cp-7,
        0x1.1ea5d39bcda62p-8, -0x1.833d9c7de5851p-10, 0x1.0d0b52c9e9112p-11, -0x1.7da36452b75e3p-13,
        0x1.12f9040030676p-14, -0x1.91312c2a411eap-16, 0x1.27a186514dcdbp-17, -0x1.b75213e2dc322p-19,
        0x1.48b523f82ecb2p-20, -0x1.eed15847de10ap-22, 0x1.7658604c0f507p-23, -0x1.1c77df95c1c0dp-24,
    };
    if (x < 0.5) {
        return x * x * polynomial(c, 4, x * x);
    }
    return 2.0 * ((x - LOG_2_HIGH) + (log1p_of(exp_of(-2.0 * x)) - LOG_2_LOW));
}

/* tanh x for x >= 0. */
static double tanh_of(double x)
{
    const double fall = expm1_of(-2.0 * x);
    return -fall / (2.0 + fall);
}

/* T(x) / density, given q = 2 log cosh x. */
static double sech_mills(double x, double q, const bincp_sech *law)
{
    if (law->alpha < MANY) {
        return sech_fraction(law->alpha, x);
    }
    if (q <= 1.0) {
        return law->first * bincp_normal_mills(sqrt(2.0 * law->alpha * q))
               + sqrt(q) * polynomial(law->near, BINCP_SECH_NEAR / 4, q);
    }
    return polynomial(law->far, BINCP_SECH_FAR / 4, 1.0 / (1.0 + exp_of(2.0 * x)));
}

curve bincp_sech_tail(double x, const void *params)
{
    const bincp_sech *law = params;
    const double q = twice_log_cosh(x), depth = law->alpha * q;
    const double fall = 2.0 * law->alpha * tanh_of(x);
    if (!(depth <= FAR)) {
        return far_tail(depth, fall);
    }
    const double mills = sech_mills(x, q, law), slope = 1.0 / mills;
    const double value = depth - log_of(law->norm * mills);
    const double units = (x < 0.5 ? 6.0 : 11.0) * value + 48.0;
    return (curve){value, slope, slope - fall, UNIT_ROUNDOFF * units};
}
