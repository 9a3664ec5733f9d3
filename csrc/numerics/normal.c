/* The normal distribution, and the Gaussian shift Phi(Phi^-1(p) -+ shift) with directed rounding.
 *
 * Everything is computed in the tail that is smaller: for p > 1/2 with 1 - p (exact there), and for
 * a result above 1/2 as one minus a tail. So no digits are lost near 1, or down to p = 5e-324.
 *
 * A relative error e of x changes Phi(x) by the factor 1 + e x^2, which at x = -38 turns one unit
 * in the last place into a thousand. So abscissas are kept as a sum of two doubles: the quantile is
 * Wichura's AS 241 (PPND16, Applied Statistics 37, 1988; 5 units of error) plus the remainder from
 * one Newton step, the shift is subtracted without error, and the tail (the C library's erfc)
 * takes the remainder to first order. `relative_error` bounds the error that remains, by which a
 * bound steps outward: about 1e-15 in the middle, 1e-13 where Phi is 1e-300.
 */
#include "numerics/normal.h"

#include <math.h>

#include "numerics/constants.h"
#include "numerics/double_double.h"

#define SQRT_HALF 0.70710678118654752440
#define SQRT_HALF_LOW (-4.8336466567264567e-17) /* sqrt(1/2) - SQRT_HALF */
#define FOUR_OVER_PI 1.27323954473516268615
/* Beyond this |x| the tail nears the subnormal numbers, whose rounding spoils a Newton step. */
#define FAR_TAIL 37.3
/* A shift this large leads from any p strictly between 0 and 1 beyond the range of doubles. */
#define FAR_SHIFT 100.0
/* Roundings of a subnormal tail: half a unit each of the halving, two products and erfc's own. */
#define SUBNORMAL_STEP (4.0 * TRUE_MIN)

static double horner(const double *c, int degree, double x)
{
    double value = c[degree];
    for (int i = degree - 1; i >= 0; --i) {
        value = value * x + c[i];
    }
    return value;
}

/* The slope of -log erfc at y >= 0, within 6%: enough to carry a remainder to first order. */
static double erfc_slope(double y)
{
    return y + sqrt(y * y + FOUR_OVER_PI);
}

/* Phi(x + rest) for x <= 0 and a rest of the size of x's rounding. */
static double tail(double x, double rest)
{
    const double y = -x * SQRT_HALF;
    const double y_rest = fma(-x, SQRT_HALF, -y) - x * SQRT_HALF_LOW - rest * SQRT_HALF;
    return 0.5 * erfc(y) * (1.0 - y_rest * erfc_slope(y));
}

double bincp_normal_tail(double x)
{
    return isinf(x) ? 0.0 : tail(x, 0.0);
}

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
    const double r = sqrt(-log(p));
    if (r <= 5.0) {
        return -horner(middle_num, 7, r - 1.6) / horner(middle_den, 7, r - 1.6);
    }
    return -horner(far_num, 7, r - 5.0) / horner(far_den, 7, r - 5.0);
}

/* Phi^-1(p) for p in (0, 1). */
static pair quantile(double p)
{
    const double lower_p = p <= 0.5 ? p : 1.0 - p;
    const double x = bincp_normal_tail_quantile(lower_p);
    if (x < -FAR_TAIL) {
        return (pair){p <= 0.5 ? x : -x, 0.0};
    }
    const double phi = tail(x, 0.0);
    const double rest = (lower_p - phi) / (phi * erfc_slope(-x * SQRT_HALF) * SQRT_HALF);
    return p <= 0.5 ? (pair){x, rest} : (pair){-x, -rest};
}

static pair add(pair a, double shift)
{
    const pair sum = two_sum(a.hi, shift);
    return (pair){sum.hi, a.lo + sum.lo};
}

/* Bound on the relative error of the tail at x = z -+ shift: a few units in the last place, and the
 * error of the quantile z times the slope of log Phi, which is at most 1 + |x|. */
static double relative_error(double x, double z)
{
    const double units = fabs(z) > FAR_TAIL ? 6.0 : 0.5;
    return UNIT_ROUNDOFF * (10.0 + (1.0 + fabs(x)) * (2.0 + units * fabs(z)));
}

/* Phi(|x|) is one minus the tail of -|x|; both sides of the centre step outward from the tail. */
static double phi_down(pair a, double error)
{
    if (a.hi <= 0.0) {
        return fmax(tail(a.hi, a.lo) * (1.0 - error) - SUBNORMAL_STEP, 0.0);
    }
    const double complement = tail(-a.hi, -a.lo) * (1.0 + error);
    const double value = 1.0 - complement;
    /* 1 - value is exact, so this says whether the subtraction rounded up. */
    return 1.0 - value < complement ? nextafter(value, 0.0) : value;
}

static double phi_up(pair a, double error)
{
    if (a.hi <= 0.0) {
        return tail(a.hi, a.lo) * (1.0 + error) + SUBNORMAL_STEP;
    }
    const double complement = tail(-a.hi, -a.lo) * (1.0 - error);
    const double value = 1.0 - complement;
    return 1.0 - value > complement ? nextafter(value, 1.0) : value;
}

double bincp_normal_shift_down(double p, double shift)
{
    if (p <= 0.0 || p >= 1.0 || shift == 0.0) {
        return p;
    }
    const pair z = quantile(p);
    const pair x = add(z, -fmin(shift, FAR_SHIFT));
    return phi_down(x, relative_error(x.hi, z.hi));
}

double bincp_normal_shift_up(double p, double shift)
{
    if (p <= 0.0 || p >= 1.0 || shift == 0.0) {
        return p;
    }
    const pair z = quantile(p);
    const pair x = add(z, fmin(shift, FAR_SHIFT));
    return phi_up(x, relative_error(x.hi, z.hi));
}
