/* Shifts in the quantile of a symmetric distribution, with directed rounding.
 *
 * All maps take the mass t <= 1/2 of the smaller tail (for p > 1/2 it is 1 - p, exact). A
 * distribution has two of them: `out` moves a tail away from the centre and rounds it down; `in`
 * moves it towards the centre. There it either stays on its side and is rounded up, or crosses to
 * the other side, where the mass is rounded down again. The two bounds follow from these maps, as one
 * minus a tail where the result is above 1/2, so no digits are lost near 0 or 1.
 *
 * One of F and F^-1 is known with an error bound (a `curve`), and is inverted by bincp_solve, whose
 * result is on a proven side: a bad start or slow convergence can cost tightness, never soundness. A
 * scalar costs 0.5 to 2 microseconds.
 *
 * Pareto: F^-1 is a 2F1 of u = 2 p - 1, by its power series where m = u^gamma <= 1/2, else by the
 * logarithmic case (DLMF 15.8.10) in 1 - m. All terms are positive, and each sum ends once the rest
 * is below the rounding. Half power (density exp(-sqrt|x|)): F^-1 is bounded and measured from its
 * nearer end, where it is a Debye function of c; 2 t = P(2, c).
 */
#include "certificates/location.h"

#include <math.h>
#include <stddef.h>

#include "numerics/constants.h"
#include "numerics/double_double.h"
#include "numerics/functions.h"

/* Roundings of a subnormal tail, of half a unit each. */
#define SUBNORMAL_STEP (2.0 * TRUE_MIN)
#define HALF_RANGE 3.28986813369645287294 /* pi^2 / 3 */
#define EXP_STEP (4.0 * UNIT_ROUNDOFF)
/* A shift this large leads from any Pareto position that is a double beyond the range of doubles: the
 * tail is below exp(-x). */
#define FAR_SHIFT 1e5
/* A shift this small changes no tail that is a double, and still has an inverse. */
#define LEAST_SHIFT 1e-290

typedef struct tail {
    double mass;
    int crossed;
} tail;

typedef double (*out_fn)(double t, const void *params);
typedef tail (*in_fn)(double t, const void *params);

/* ---- rounding ---------------------------------------------------------------------------------- */

static double sum_below(double a, double b)
{
    const pair sum = two_sum(a, b);
    return sum.lo < 0.0 ? nextafter(sum.hi, -INFINITY) : sum.hi;
}

static double sum_above(double a, double b)
{
    return -sum_below(-a, -b);
}

static double below(double t, double step)
{
    return fmax(t * (1.0 - step) - SUBNORMAL_STEP, 0.0);
}

static double above(double t, double step)
{
    return fmin(t * (1.0 + step) + SUBNORMAL_STEP, 0.5);
}

/* exp(-x) for the mass of a tail, where x is within `error`. */
static double exp_below(double x, double error)
{
    return below(exp_of(-(x + error)), EXP_STEP);
}

static double exp_above(double x, double error)
{
    return above(exp_of(-(x - error)), EXP_STEP);
}

static double lower(double given, const void *params, out_fn out, in_fn in)
{
    const double p = probability_or_nan(given);
    if (isnan(p)) {
        return NAN;
    }
    if (p <= 0.5) {
        return fmin(out(p, params), p);
    }
    const tail moved = in(1.0 - p, params);
    return moved.crossed ? moved.mass : fmin(sum_below(1.0, -moved.mass), p);
}

static double upper(double given, const void *params, out_fn out, in_fn in)
{
    const double p = probability_or_nan(given);
    if (isnan(p)) {
        return NAN;
    }
    if (p > 0.5) {
        return fmax(sum_above(1.0, -out(1.0 - p, params)), p);
    }
    const tail moved = in(p, params);
    return moved.crossed ? sum_above(1.0, -moved.mass) : fmax(moved.mass, p);
}

#define BOUNDS(name)                                          \
    double bincp_##name##_lower(double p, const void *params) \
    {                                                         \
        return lower(p, params, name##_out, name##_in);       \
    }                                                         \
    double bincp_##name##_upper(double p, const void *params) \
    {                                                         \
        return upper(p, params, name##_out, name##_in);       \
    }

/* ---- known tails: the quantile by root finding -------------------------------------------------- */

/* -log of the tail as a curve, and an abscissa that starts the search for the mass exp(-depth) / 2. */
typedef struct known_tail {
    curve_fn curve;
    double (*start)(double depth, const void *params);
} known_tail;

static double tail_quantile(known_tail known, const void *params, double t, int side)
{
    const double depth = -log_of(t);
    const double start = known.start(fmax(depth - LOG_2, 0.0), params);
    return bincp_solve_tail(known.curve, params, depth, 2.0 * UNIT_ROUNDOFF * depth, start, side);
}

static double known_out(known_tail known, double t, double shift, const void *params)
{
    if (t == 0.0 || shift == 0.0) {
        return t;
    }
    const curve at = known.curve(sum_above(tail_quantile(known, params, t, 1), shift), params);
    return exp_below(at.value, at.error);
}

static tail known_in(known_tail known, double t, double shift, const void *params)
{
    if (t == 0.0 || shift == 0.0) {
        return (tail){t, 0};
    }
    const double x = sum_below(tail_quantile(known, params, t, -1), -shift);
    const curve at = known.curve(fabs(x), params);
    return x >= 0.0 ? (tail){exp_above(at.value, at.error), 0}
                    : (tail){exp_below(at.value, at.error), 1};
}

/* A start beyond the root is best, because -log T is convex: the tail is below exp(-y) / 2, and its
 * logarithm below its tangent at the centre. A large power makes a cliff at 1, where a start on the
 * near side is better: 1 - P(a, y) >= 1 - x / gamma. */
static double expp_start(double depth, const void *params)
{
    const bincp_expp *law = params;
    if (exp_of(depth) < law->power) {
        return -law->gamma * expm1_of(-depth);
    }
    return fmin(depth * law->gamma, pow_of(depth, 1.0 / law->power));
}

static double sech_start(double depth, const void *params)
{
    const bincp_sech *law = params;
    const double q = depth / law->alpha;
    return fmin(depth / (2.0 * law->norm), 0.5 * q + log1p_of(sqrt(-expm1_of(-q))));
}

static const known_tail expp_known = {bincp_expp_tail, expp_start};
static const known_tail sech_known = {bincp_sech_tail, sech_start};

static double expp_out(double t, const void *params)
{
    const bincp_location *location = params;
    return known_out(expp_known, t, location->shift, &location->law.expp);
}

static tail expp_in(double t, const void *params)
{
    const bincp_location *location = params;
    return known_in(expp_known, t, location->shift, &location->law.expp);
}

static double sech_out(double t, const void *params)
{
    const bincp_location *location = params;
    return known_out(sech_known, t, location->shift, &location->law.sech);
}

static tail sech_in(double t, const void *params)
{
    const bincp_location *location = params;
    return known_in(sech_known, t, location->shift, &location->law.sech);
}

BOUNDS(expp)
BOUNDS(sech)

/* ---- Pareto: tail by root finding -------------------------------------------------------------- */

/* sum m^n / (1 + n gamma) for 0 <= m <= 1/2. */
static double pareto_near(double gamma, double m)
{
    double power = 1.0, sum = 1.0;
    for (int n = 1; power > UNIT_ROUNDOFF / 4; ++n) {
        power *= m;
        sum += power / (1.0 + n * gamma);
    }
    return sum;
}

/* sum (1 - beta)_k / (k k!) v^k for 0 <= v <= 1/2. */
static double pareto_far(double beta, double v)
{
    double term = 1.0, sum = 0.0;
    for (int k = 1; term > UNIT_ROUNDOFF / 4; ++k) {
        term *= (k - beta) / k * v;
        sum += term / k;
    }
    return sum;
}

curve bincp_pareto_position(double z, const void *params)
{
    const bincp_pareto law = *(const bincp_pareto *)params;
    const double beta = 1.0 / law.gamma;
    double value, slope, bend;
    if (z > 40.0) {
        value = beta * (z - log_of(law.gamma) - law.kappa);
        slope = beta;
        bend = 0.0;
    } else {
        const double w = exp_of(-z), u = -expm1_of(-z);
        const double log_m = law.gamma * (w < 0.5 ? log1p_of(-w) : log_of(u));
        const double m = exp_of(log_m), v = -expm1_of(log_m);
        value = m <= 0.5 ? u * pareto_near(law.gamma, m)
                         : beta * (-log_of(v) - law.kappa - pareto_far(beta, v));
        slope = w / v;
        bend = u > 0.0 ? law.gamma * (m / u) * slope - 1.0 : -1.0;
    }
    const double error = 8.0 * (value + fmin(value, 1.0)) + z * slope;
    return (curve){value, slope, bend, UNIT_ROUNDOFF * error};
}

/* A z on the given side of the tail that is at `x`. */
static double pareto_depth(const bincp_pareto *law, double x, int side)
{
    const double far = law->gamma * x + log_of(law->gamma) + law->kappa;
    return bincp_solve(bincp_pareto_position, law, x, 0.0, fmax(fmin(x, far), 0.5 * x), side);
}

static curve pareto_at(const bincp_pareto *law, double t)
{
    return bincp_pareto_position(t < 0.25 ? -log_of(2.0 * t) : -log1p_of(2.0 * t - 1.0), law);
}

static double pareto_out(double t, const void *params)
{
    const bincp_location *location = params;
    const bincp_pareto *law = &location->law.pareto;
    const double shift = location->shift;
    if (t == 0.0 || shift == 0.0) {
        return t;
    }
    const curve at = pareto_at(law, t);
    const double x = sum_above(sum_above(at.value, at.error), fmin(shift, FAR_SHIFT));
    return below(0.5 * exp_of(-pareto_depth(law, x, 1)), EXP_STEP);
}

static tail pareto_in(double t, const void *params)
{
    const bincp_location *location = params;
    const bincp_pareto *law = &location->law.pareto;
    const double shift = location->shift;
    if (t == 0.0 || shift == 0.0) {
        return (tail){t, 0};
    }
    const curve at = pareto_at(law, t);
    const double x = sum_below(sum_below(at.value, -at.error), -fmin(shift, FAR_SHIFT));
    if (x >= 0.0) {
        return (tail){above(0.5 * exp_of(-pareto_depth(law, x, -1)), EXP_STEP), 0};
    }
    return (tail){below(0.5 * exp_of(-pareto_depth(law, -x, 1)), EXP_STEP), 1};
}

BOUNDS(pareto)

/* ---- half power: a bounded range ---------------------------------------------------------------- */

curve bincp_half_power_log_mass(double c, const void *params)
{
    (void)params;
    double value, slope;
    if (c < 1.0) {
        double sum = 1.0;
        for (int n = 17; n >= 3; --n) {
            sum = 1.0 + c / n * sum;
        }
        value = 2.0 * log_of(c) - LOG_2 - c + log_of(sum);
        slope = 2.0 / (c * sum);
    } else {
        const double mass = c < 50.0 ? 1.0 - (1.0 + c) * exp_of(-c) : 1.0;
        value = log_of(mass);
        slope = c * exp_of(-c) / mass;
    }
    return (curve){value, slope, 1.0 / c - 1.0 - slope, UNIT_ROUNDOFF * (16.0 + 4.0 * fabs(value))};
}

/* int_0^c t / (exp(t) - 1) dt for c <= 2: B_2k / ((2 k + 1) (2 k)!) c^(2 k + 1), k = 16 to 1. */
static double debye_near(double c)
{
    static const double b[] = {
        -1.740845657234001e-27,  7.315975652702203e-26,   -3.0874198024267403e-24,
        1.3091507554183213e-22,  -5.581785874325009e-21,  2.395218621026187e-19,
        -1.0356517612181247e-17, 4.518980029619918e-16,   -1.9939295860721074e-14,
        8.921691020456452e-13,   -4.0647616451442256e-11, 1.8978869988971e-09,
        -9.185773074661964e-08,  4.72411186696901e-06,    -0.0002777777777777778,
        0.027777777777777776,
    };
    double sum = 0.0;
    for (size_t i = 0; i < sizeof b / sizeof b[0]; ++i) {
        sum = (sum + b[i]) * (c * c);
    }
    return c * (1.0 - 0.25 * c + sum);
}

/* int_c^inf t / (exp(t) - 1) dt for c > 2. */
static double debye_far(double c)
{
    const double decay = exp_of(-c);
    double power = 1.0, sum = 0.0;
    for (int n = 1; n <= 20; ++n) {
        power *= decay;
        sum += power * (c * n + 1.0) / (n * n);
    }
    return sum;
}

curve bincp_half_power_edge(double c, const void *params)
{
    (void)params;
    if (c > 50.0) {
        const double error = 4.0 * UNIT_ROUNDOFF * HALF_RANGE;
        return (curve){HALF_RANGE, 100.0 * exp_of(-50.0), -1.0, error};
    }
    const double value = c <= 2.0 ? 2.0 * debye_near(c) : HALF_RANGE - 2.0 * debye_far(c);
    const double ratio = c > 0.0 ? c / expm1_of(c) : 1.0;
    const double bend = c > 1e-3 ? 1.0 / c + 1.0 / expm1_of(-c) : -0.5;
    return (curve){value, 2.0 * ratio, bend, 12.0 * UNIT_ROUNDOFF * value};
}

curve bincp_half_power_log_rest(double c, const void *params)
{
    (void)params;
    const double value = c - log1p_of(c);
    return (curve){value, c / (1.0 + c), 1.0 / (c * (1.0 + c)), 4.0 * UNIT_ROUNDOFF * c};
}

curve bincp_half_power_log_position(double c, const void *params)
{
    (void)params;
    const double rho = c <= 2.0 ? 0.5 * HALF_RANGE - debye_near(c) : debye_far(c);
    const double value = -log_of(2.0 * rho), slope = c > 0.0 ? c / (expm1_of(c) * rho) : 1.0 / rho;
    return (curve){value, slope, slope - 1.0, UNIT_ROUNDOFF * (32.0 + 4.0 * fabs(value))};
}

/* The solution of (1 + c) exp(-c) = v, roughly. */
static double half_power_start(double v)
{
    const double depth = -log_of(v);
    return depth + log1p_of(depth + log1p_of(depth));
}

/* A c on the given side of the one that belongs to the tail t. The equation is that of the logarithm
 * of the smaller of 2 t and 1 - 2 t: the other is flat. */
static double half_power_from_tail(double t, int side)
{
    const double w = 2.0 * t;
    if (w < 0.5) {
        const double small = sqrt(w) * 1.4142135623730951, target = log_of(w);
        return bincp_solve(bincp_half_power_log_mass, NULL, target,
                           2.0 * UNIT_ROUNDOFF * fabs(target), small * (1.0 + small / 3.0), side);
    }
    if (w == 1.0) {
        return INFINITY;
    }
    const double target = -log_of(1.0 - w);
    return bincp_solve(bincp_half_power_log_rest, NULL, target, 2.0 * UNIT_ROUNDOFF * target,
                       half_power_start(1.0 - w), side);
}

/* A c on the given side of the one at the distance `edge` <= HALF_RANGE from the end. The equation
 * is that of the distance to the centre where that is smaller. */
static double half_power_from_edge(double edge, int side)
{
    if (edge < 0.5 * HALF_RANGE) {
        return bincp_solve(bincp_half_power_edge, NULL, edge, 0.0,
                           0.5 * edge * (1.0 + 0.125 * edge), side);
    }
    const double position = HALF_RANGE - edge - side * 8.0 * UNIT_ROUNDOFF;
    if (position <= 0.0) {
        return INFINITY;
    }
    const double target = -log_of(position);
    return bincp_solve(bincp_half_power_log_position, NULL, target,
                       4.0 * UNIT_ROUNDOFF * (1.0 + fabs(target)),
                       half_power_start(fmin(0.5 * position, 1.0)), side);
}

static double half_power_mass_below(double edge)
{
    const double c = half_power_from_edge(edge, -1);
    if (c == 0.0) {
        return 0.0;
    }
    const curve at = bincp_half_power_log_mass(c, NULL);
    return exp_below(LOG_2 - at.value, at.error);
}

static double half_power_out(double t, const void *params)
{
    const double shift = *(const double *)params;
    if (t == 0.0 || shift == 0.0) {
        return t;
    }
    const curve at = bincp_half_power_edge(half_power_from_tail(t, -1), NULL);
    const double edge = sum_below(sum_below(at.value, -at.error), -shift);
    return edge > 0.0 ? half_power_mass_below(edge) : 0.0;
}

static tail half_power_in(double t, const void *params)
{
    const double shift = *(const double *)params;
    if (shift == 0.0) {
        return (tail){t, 0};
    }
    const curve from = bincp_half_power_edge(t > 0.0 ? half_power_from_tail(t, 1) : 0.0, NULL);
    const double edge = sum_above(sum_above(from.value, from.error), fmax(shift, LEAST_SHIFT));
    if (edge <= HALF_RANGE) {
        const curve at = bincp_half_power_log_mass(half_power_from_edge(edge, 1), NULL);
        return (tail){exp_above(LOG_2 - at.value, at.error), 0};
    }
    const double rest = 2.0 * HALF_RANGE * (1.0 - 2.0 * UNIT_ROUNDOFF) - edge;
    return (tail){rest > 0.0 ? half_power_mass_below(rest) : 0.0, 1};
}

BOUNDS(half_power)
