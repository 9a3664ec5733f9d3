/* Shifts in a quantile and the curves under them, for the sanitizers. Reference values are from
 * 40-digit arithmetic.
 */
#include "certificates/location.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "certificates/laplace.h"
#include "check.h"

#define TRUE_MIN 4.9406564584124654e-324
#define BELOW_ONE (1.0 - DBL_EPSILON / 2)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define PI 3.14159265358979323846

static const double grid[] = {0.0, TRUE_MIN, 1e-310, 1e-300, 1e-100, 1e-12,     0.1,       0.25,
                              0.5, 0.51,     0.75,   0.9,    0.999,  1 - 1e-12, BELOW_ONE, 1.0};
static const double shifts[] = {0.0, TRUE_MIN, 1e-300, 1e-17, 1e-6,  1e-3,    0.1,     0.5,
                                1.0, 3.0,      10.0,   1e4,   1e200, DBL_MAX, INFINITY};

typedef double (*bound_fn)(double p, const void *params);

/* ---- shifts ------------------------------------------------------------------------------------ */

/* `loss` allows for a unit of the abscissa that is a large part of a small tail. */
static void check_at(bound_fn lower, bound_fn upper, const void *params, double shift, double loss)
{
    double low_before = 0.0, high_before = 0.0;
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        const double p = grid[i], low = lower(p, params), high = upper(p, params);
        CHECK(0.0 <= low && low <= p && p <= high && high <= 1.0);
        CHECK(low >= low_before * (1.0 - 1e-12) && high >= high_before * (1.0 - 1e-12));
        CHECK(shift > 0.0 || (low == p && high == p));
        /* The law: going down and up again ends where it began, or above. */
        CHECK(upper(low, params) >= p * (1.0 - loss) || low < 1e-290);
        low_before = low;
        high_before = high;
    }
    static const double outside[] = {-TRUE_MIN, 1.0 + DBL_EPSILON, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < LENGTH(outside); ++i) {
        CHECK(isnan(lower(outside[i], params)) && isnan(upper(outside[i], params)));
    }
}

static void test_bare_shifts(void)
{
    for (size_t i = 0; i < LENGTH(shifts); ++i) {
        check_at(bincp_laplace_lower, bincp_laplace_upper, &shifts[i], shifts[i], 1e-11);
        check_at(bincp_half_power_lower, bincp_half_power_upper, &shifts[i], shifts[i], 1e-11);
    }
}

static void test_expp(void)
{
    static const double powers[] = {1.0, 1.0 + DBL_EPSILON, 1.5, 4.0, 100.0, 1e6, 1e300};
    for (size_t i = 0; i < LENGTH(powers); ++i) {
        for (size_t j = 0; j < LENGTH(shifts); ++j) {
            const bincp_location location = {
                .shift = shifts[j],
                .law.expp = bincp_expp_make(powers[i], tgamma(1.0 + 1.0 / powers[i])),
            };
            check_at(bincp_expp_lower, bincp_expp_upper, &location, shifts[j],
                     powers[i] < 1e3 ? 1e-11 : 1e-3);
        }
    }
}

static void test_sech(void)
{
    static const double alphas[] = {0.5, 1.0, 1.5, 4.0, 15.5, 16.0, 100.0, 1e5, 4.6e18};
    for (size_t i = 0; i < LENGTH(alphas); ++i) {
        const double alpha = alphas[i];
        const double norm = alpha < 1e4 ? exp(lgamma(alpha + 0.5) - lgamma(alpha)) / sqrt(PI)
                                        : sqrt(alpha / PI) * (1.0 - 0.125 / alpha);
        for (size_t j = 0; j < LENGTH(shifts); ++j) {
            const bincp_location location = {.shift = shifts[j],
                                             .law.sech = bincp_sech_make(alpha, norm)};
            check_at(bincp_sech_lower, bincp_sech_upper, &location, shifts[j], 1e-11);
        }
    }
}

static void test_pareto(void)
{
    /* digamma(1 / gamma) - digamma(1) at a = 0.1, 1 and 3 */
    static const double laws[][2] = {
        {11.0, -10.859646757092172},
        {2.0, -1.3862943611198906},
        {4.0 / 3.0, -0.5086452148849393},
        {1.0 + 1e-6, -1.6449336239713859e-6},
    };
    for (size_t i = 0; i < LENGTH(laws); ++i) {
        for (size_t j = 0; j < LENGTH(shifts); ++j) {
            const bincp_location location = {.shift = shifts[j],
                                             .law.pareto = {laws[i][0], laws[i][1]}};
            check_at(bincp_pareto_lower, bincp_pareto_upper, &location, shifts[j], 1e-11);
        }
    }
}

/* ---- values ------------------------------------------------------------------------------------ */

static void check_below(double got, double wanted, double error)
{
    CHECK(got <= wanted * (1.0 + DBL_EPSILON) && got >= wanted * (1.0 - error));
}

static void test_values(void)
{
    const double shift = 1.0;
    /* All three pieces */
    check_below(bincp_laplace_lower(0.3, &shift), 0.3 * exp(-1.0), 2e-15);
    check_below(bincp_laplace_lower(0.75, &shift), exp(-1.0), 2e-15);
    check_below(bincp_laplace_lower(0.9, &shift), 1.0 - 0.1 * exp(1.0), 2e-15);

    /* alpha = 1 is the logistic law: the shift multiplies the odds by exp(-2 shift). */
    const bincp_location logistic = {.shift = 0.5, .law.sech = bincp_sech_make(1.0, 0.5)};
    check_below(bincp_sech_lower(0.75, &logistic), 3.0 / (3.0 + exp(1.0)), 1e-13);
    /* power 1 is the Laplace law */
    const bincp_location laplace = {.shift = 1.0, .law.expp = bincp_expp_make(1.0, 1.0)};
    check_below(bincp_expp_lower(0.75, &laplace), exp(-1.0), 1e-13);
    check_below(bincp_expp_lower(1e-300, &laplace), 1e-300 * exp(-1.0), 3e-12);
    /* For a = 1 the radius is atanh(2 p - 1): the logistic law again. */
    const bincp_location cauchy = {.shift = 0.5, .law.pareto = {2.0, -1.3862943611198906}};
    check_below(bincp_pareto_lower(0.75, &cauchy), 3.0 / (3.0 + exp(1.0)), 1e-13);
}

static void test_curves(void)
{
    const bincp_expp normal = bincp_expp_make(2.0, 0.88622692545275801365);
    const bincp_sech arcsine = bincp_sech_make(0.5, 0.31830988618379067154);
    for (double x = 0.0; x < 20.0; x += 0.01) {
        curve at = bincp_expp_tail(x, &normal);
        CHECK(fabs(exp(-at.value) - 0.5 * erfc(x)) <= 4e-13 * erfc(x));
        at = bincp_sech_tail(x, &arcsine);
        const double exact = 2.0 / PI * asin(sqrt(1.0 / (1.0 + exp(2.0 * x))));
        CHECK(fabs(exp(-at.value) - exact) <= (at.error + 1e-15) * exact);
    }
    const double ends = bincp_half_power_edge(INFINITY, NULL).value;
    CHECK(fabs(ends - PI * PI / 3.0) <= 4.0 * DBL_EPSILON);
    CHECK(isinf(bincp_expp_tail(INFINITY, &normal).value));
    CHECK(isinf(bincp_sech_tail(INFINITY, &arcsine).value));
}

/* ---- root -------------------------------------------------------------------------------------- */

/* A curve whose derivatives are all wrong: roots may be poor, and must be on their side. */
static curve lying(double z, const void *params)
{
    const double wrong = *(const double *)params;
    return (curve){z * z, wrong, -wrong, 1e-14 * z * z};
}

static void test_root_is_on_its_side_whatever_the_derivatives(void)
{
    static const double slopes[] = {0.0, 1e-300, 1e-3, 1.0, 7.0, 1e9, -1.0, NAN, INFINITY};
    static const double targets[] = {1e-200, 0.01, 2.0, 1e8};
    static const double starts[] = {0.0, 1e-100, 1.0, 1e6};
    for (size_t i = 0; i < LENGTH(slopes); ++i) {
        for (size_t j = 0; j < LENGTH(targets); ++j) {
            for (size_t k = 0; k < LENGTH(starts); ++k) {
                const double exact = sqrt(targets[j]);
                CHECK(bincp_solve(lying, &slopes[i], targets[j], 0.0, starts[k], 1) >= exact);
                CHECK(bincp_solve(lying, &slopes[i], targets[j], 0.0, starts[k], -1) <= exact);
            }
        }
    }
}

/* A shift by the whole range, or by half of it, to the last bits: nothing is left beyond. */
static void test_ends_of_the_range(void)
{
    const double half = PI * PI / 3.0;
    for (int units = -40; units <= 40; ++units) {
        const double near = half * (1.0 + units * DBL_EPSILON / 2);
        const double shifts_here[] = {near, 2.0 * near, near * (1.0 + 1e-8 * units)};
        for (size_t i = 0; i < LENGTH(shifts_here); ++i) {
            check_at(bincp_half_power_lower, bincp_half_power_upper, &shifts_here[i],
                     shifts_here[i], 1.0);
        }
        CHECK(bincp_half_power_lower(0.5, &near) <= 1e-12);
        CHECK(bincp_half_power_upper(0.5, &near) >= 1.0 - 1e-12);
    }
}

/* Far out all the mass is inside, and at the centre nothing is. */
static void test_ends_of_the_curves(void)
{
    const curve far = bincp_half_power_log_mass(60.0, NULL);
    CHECK(fabs(far.value) <= far.error && far.slope >= 0.0);
    const curve centre = bincp_half_power_log_position(0.0, NULL);
    const curve near = bincp_half_power_log_position(1e-12, NULL);
    CHECK(fabs(centre.value - near.value) <= 2e-12 + centre.error + near.error);
    CHECK(fabs(centre.slope - near.slope) <= 1e-11);
    for (int side = -1; side <= 1; side += 2) {
        const double c = bincp_solve_tail(bincp_half_power_edge, NULL, 0.0, 0.0, 0.0, side);
        CHECK(side < 0 ? c == 0.0 : c >= 0.0);
        const double unsure = bincp_solve_tail(bincp_half_power_edge, NULL, 1.0, 0.5, 1.0, side);
        const double there = bincp_half_power_edge(unsure, NULL).value;
        CHECK(side < 0 ? there <= 0.5 : there >= 1.5);
        const double from_nowhere = bincp_solve(bincp_half_power_edge, NULL, 1.0, 0.0, NAN, side);
        CHECK(side < 0 ? from_nowhere == 0.0 : from_nowhere == INFINITY);
    }
}

int main(void)
{
    test_bare_shifts();
    test_expp();
    test_sech();
    test_pareto();
    test_values();
    test_curves();
    test_root_is_on_its_side_whatever_the_derivatives();
    test_ends_of_the_range();
    test_ends_of_the_curves();
    return report("location");
}
