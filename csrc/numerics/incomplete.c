/* Incomplete gamma and beta functions as logarithms of tails, and a root finder with a safe end.
 *
 * The tail of exp(-|x|^p) is half the upper incomplete gamma function Q(1/p, x^p), and that of
 * sech(x)^(2 a) is the incomplete beta function I_z(a, a) at z = 1 / (1 + exp(2 x)). Both are kept
 * as logarithms: no range is lost, the slope is the hazard rate (density over tail), and since both
 * densities are log-concave, -log T is convex and Halley's iteration needs two or three points.
 *
 * Gamma: below y = 1.5 an alternating series for 1 - P without cancellation at small a (Gautschi
 * 1979), above it the continued fraction with a number of terms fixed in advance. Beta: the
 * continued fraction (DLMF 8.17.22), whose length grows like sqrt(a); for a >= 16 near the centre
 * instead the substitution q = 2 log cosh x, which turns the tail into moments of a half normal,
 * int exp(-a v^2) g(v^2) dv with g(q) = sqrt(q / (1 - exp(-q))), at a cost that does not grow.
 *
 * The error of -log T is the relative error of T: some units in the last place for the sums, and
 * some units of the exponent, which is most of -log T. Near the centre of exp(-|x|^p) with a large
 * p, 1 - P loses digits, at most as one unit of x would (x times the slope). The bounds are tested
 * against 40-digit arithmetic; the errors seen are below 3/4 of them.
 */
#include "numerics/incomplete.h"

#include <math.h>

#include "numerics/constants.h"

#define SQRT_PI 1.77245385090551602730
/* Beyond exp(-FAR) everything is 0 in doubles. */
#define FAR 800.0
#define SERIES_END 1.5
#define MANY 16.0
/* Halley's iteration stops this near to the target, or at 1e-6 of it, and then takes one step more. */
#define NEAR 1e-12
#define FEW_STEPS 60
#define PROOFS 40

static double tail_error(double value)
{
    return UNIT_ROUNDOFF * (24.0 + 6.0 * value);
}

static curve far_tail(double value, double slope)
{
    return (curve){value, slope, 0.0, tail_error(value)};
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
    for (int i = 0; i < PROOFS && z >= 0.0 && !isinf(z); ++i) {
        if (side * -gap >= at.error + target_error) {
            return z;
        }
        z = fmax(z + (gap + side * margin) / at.slope, 0.0);
        margin *= 2.0;
        at = f(z, params);
        gap = target - at.value;
    }
    return side > 0 ? INFINITY : 0.0;
}

/* ---- gamma ------------------------------------------------------------------------------------- */

/* Q(a, y) for y <= SERIES_END, given x = y^a. */
static double gamma_near(double a, double y, double x, double gamma)
{
    double term = -1.0, sum = 0.0;
    for (int n = 1; n <= 24; ++n) {
        term *= -y / n;
        sum += term / (a + n);
    }
    return (gamma - x + x * a * sum) / gamma;
}

/* 1 / (y + 1 - a - 1 (1 - a) / (y + 3 - a - 2 (2 - a) / ...)), for y > SERIES_END. */
static double gamma_fraction(double a, double y)
{
    const int n = 5 + (int)(90.0 / y);
    double value = y + 2.0 * n + 1.0 - a;
    for (int k = n; k >= 1; --k) {
        value = y + 2.0 * k - 1.0 - a - k * (k - a) / value;
    }
    return 1.0 / value;
}

curve bincp_expp_tail(double x, const void *params)
{
    const bincp_expp law = *(const bincp_expp *)params;
    const double y = pow(x, law.power), a = 1.0 / law.power;
    if (!(y <= FAR)) {
        return far_tail(y, law.power * (y / x));
    }
    double value, slope, error;
    if (y <= SERIES_END) {
        const double q = gamma_near(a, y, x, law.gamma);
        value = LOG_2 - log(q);
        slope = exp(-y) / (law.gamma * q);
        error = UNIT_ROUNDOFF * (24.0 + 4.0 * x * slope);
    } else {
        const double mills = x * a * gamma_fraction(a, y);
        value = y - log(mills / (2.0 * law.gamma));
        slope = 1.0 / mills;
        error = tail_error(value);
    }
    const double bend = x > 0.0 ? slope - law.power * y / x : slope;
    return (curve){value, slope, bend, error};
}

/* ---- beta -------------------------------------------------------------------------------------- */

/* exp(w^2) erfc(w) for w >= 0. */
static double erfcx(double w)
{
    if (w < 6.0) {
        return exp(w * w) * erfc(w);
    }
    double value = w;
    for (int k = 12; k >= 1; --k) {
        value = w + 0.5 * k / value;
    }
    return 1.0 / (SQRT_PI * value);
}

/* exp(alpha q) int_{sqrt q}^inf exp(-alpha v^2) g(v^2) dv for q <= 1, alpha >= MANY. */
static double sech_near(double alpha, double q)
{
    /* Coefficients of sqrt(q / (1 - exp(-q))); the radius of convergence is 2 pi. */
    static const double g[] = {
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
    const double y = sqrt(q);
    double moment = 0.5 * SQRT_PI / sqrt(alpha) * erfcx(sqrt(alpha) * y);
    double power = y, sum = moment;
    for (int k = 1; k < (int)(sizeof g / sizeof g[0]); ++k) {
        moment = (power + (2 * k - 1) * moment) / (2.0 * alpha);
        power *= q;
        sum += g[k] * moment;
    }
    return sum;
}

/* cosh(x)^(2 alpha) int_x^inf sech(u)^(2 alpha) du. */
static double sech_fraction(double alpha, double x)
{
    const double z = 1.0 / (1.0 + exp(2.0 * x));
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

static double log_cosh(double x)
{
    if (x < 0.5) {
        const double s = sinh(x);
        return 0.5 * log1p(s * s);
    }
    return x - LOG_2 + log1p(exp(-2.0 * x));
}

curve bincp_sech_tail(double x, const void *params)
{
    const bincp_sech law = *(const bincp_sech *)params;
    const double q = 2.0 * log_cosh(x);
    if (!(law.alpha * q <= FAR)) {
        return far_tail(law.alpha * q, 2.0 * law.alpha * tanh(x));
    }
    const int near = law.alpha >= MANY && q <= 1.0;
    const double mills = near ? sech_near(law.alpha, q) : sech_fraction(law.alpha, x);
    const double value = law.alpha * q - log(law.norm * mills), slope = 1.0 / mills;
    return (curve){value, slope, slope - 2.0 * law.alpha * tanh(x), tail_error(value)};
}
