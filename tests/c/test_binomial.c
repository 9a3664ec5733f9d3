/* The binomial kernels alone, for the sanitizers: `make -C tests/c`.
 *
 * Compiled also with -DBINCP_CP_NEWTON_STEPS=0 it checks that bisection alone is as accurate.
 * Reference values come from tests/data/cp.json and from exact fractions.
 */
#include "numerics/binomial.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "check.h"

static int close_to(double got, double wanted, double tolerance)
{
    return fabs(got - wanted) <= tolerance * fabs(wanted);
}

/* P[Bin(m, p) >= s] by the recurrence of the masses over one trial more. */
static double slow_upper_tail(int s, int m, double p)
{
    double *mass = calloc((size_t)m + 1, sizeof *mass);
    if (mass == NULL) {
        abort();
    }
    mass[0] = 1.0;
    for (int trial = 0; trial < m; ++trial) {
        for (int k = trial + 1; k > 0; --k) {
            mass[k] = mass[k] * (1.0 - p) + mass[k - 1] * p;
        }
        mass[0] *= 1.0 - p;
    }
    double sum = 0.0;
    for (int k = m; k >= s; --k) {
        sum += mass[k];
    }
    free(mass);
    return sum;
}

static void test_tails(void)
{
    const int trials[] = {1, 2, 3, 16, 57, 150};
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; ++i) {
        const int m = trials[i];
        for (int s = 0; s <= m + 1; ++s) {
            for (int k = 1; k < 64; k += 6) {
                const double p = k / 64.0; /* p and 1 - p are exact */
                const double wanted = slow_upper_tail(s, m, p);
                const double tolerance = s > m ? 0.0 : BINCP_BINOM_ERROR * (10.0 - log(wanted));
                CHECK(close_to(bincp_binom_sf(s, m, p, 1.0 - p), wanted, tolerance));
                CHECK(bincp_binom_cdf(m - s, m, 1.0 - p, p) == bincp_binom_sf(s, m, p, 1.0 - p));
            }
        }
    }
    /* 2^-1000, far below what 1 - cdf could give */
    CHECK(close_to(bincp_binom_sf(1000, 1000, 0.5, 0.5), 0x1p-1000, 700 * BINCP_BINOM_ERROR));
    CHECK(close_to(bincp_binom_pmf(999, 1000, 0.5, 0.5), 0x1.f4p-991, 700 * BINCP_BINOM_ERROR));
}

static void test_degenerate_tails(void)
{
    CHECK(bincp_binom_sf(0, 5, 0.0, 1.0) == 1.0);
    CHECK(bincp_binom_sf(1, 5, 0.0, 1.0) == 0.0);
    CHECK(bincp_binom_sf(5, 5, 1.0, 0.0) == 1.0);
    CHECK(bincp_binom_sf(6, 5, 1.0, 0.0) == 0.0);
    CHECK(bincp_binom_sf(-1, 5, 0.5, 0.5) == 1.0);
    CHECK(bincp_binom_cdf(-1, 5, 0.5, 0.5) == 0.0);
    CHECK(bincp_binom_cdf(5, 5, 0.5, 0.5) == 1.0);
    CHECK(bincp_binom_pmf(0, 5, 0.0, 1.0) == 1.0);
    CHECK(bincp_binom_pmf(5, 5, 1.0, 0.0) == 1.0);
    CHECK(bincp_binom_pmf(3, 5, 1.0, 0.0) == 0.0);
    CHECK(bincp_binom_pmf(-1, 5, 0.5, 0.5) == 0.0);
    CHECK(bincp_binom_pmf(6, 5, 0.5, 0.5) == 0.0);
}

/* The exact bounds, rounded to the double on the safe side. */
static const struct {
    int64_t s, m;
    double eta, lower, upper;
} golden[] = {
    {0, 1, 1e-12, 0.0, 0.999999999999},
    {0, 1, 1e-09, 0.0, 0.999999999},
    {0, 1, 0.001, 0.0, 0.9990000000000001},
    {0, 1, 0.05, 0.0, 0.9500000000000001},
    {0, 1, 0.1, 0.0, 0.9},
    {0, 1, 0.5, 0.0, 0.5},
    {0, 10, 1e-09, 0.0, 0.8741074588205834},
    {2, 16, 0.001, 0.002926420399354476, 0.5289704997239578},
    {3, 16, 1e-09, 0.00012136924025525793, 0.8714648544703363},
    {15, 16, 1e-06, 0.33948268560868106, 0.9999999374999707},
    {3, 50, 1e-09, 3.7105417134216266e-05, 0.4523947926916654},
    {5, 50, 1e-06, 0.003517518160470834, 0.41527218262661264},
    {10, 100, 1e-12, 0.0030695910342896475, 0.42432453633903044},
    {98, 100, 0.01, 0.9185880536971915, 0.9985080817687696},
    {143, 150, 0.001, 0.8745732490612268, 0.9897097477345355},
    {148, 150, 0.1, 0.9649089632326864, 0.9964490279607107},
    {2, 256, 1e-09, 1.7503760451077807e-07, 0.09931645874140574},
    {230, 256, 1e-12, 0.7160353297959621, 0.9826170470630853},
    {255, 256, 1e-06, 0.9367699577544886, 0.9999999960937481},
    {3, 1000, 0.1, 0.0011025606995322076, 0.006668495337068159},
    {100, 1000, 0.001, 0.072930496291541, 0.13253598197425168},
    {200, 2000, 1e-09, 0.06442581003505939, 0.14531953072107853},
    {1, 10000, 0.1, 1.0535996061786262e-05, 0.0003889158203049496},
    {2, 10000, 1e-12, 1.4142849449553818e-10, 0.0033997856811329276},
    {1001, 100000, 1e-06, 0.008583514895862739, 0.01158805868286582},
    {0, 1000000, 0.001, 0.0, 6.907731420495576e-06},
    {999, 1000000, 0.01, 0.0009269778944078549, 0.0010749919541047472},
    {100000, 1000000, 1e-09, 0.09820989121920339, 0.10180956913352152},
};

static void test_golden_bounds(void)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; ++i) {
        const double lower = bincp_cp_lower(golden[i].s, golden[i].m, golden[i].eta);
        const double upper = bincp_cp_upper(golden[i].s, golden[i].m, golden[i].eta);
        CHECK(lower <= golden[i].lower && close_to(lower, golden[i].lower, 1e-13));
        CHECK(upper >= golden[i].upper && close_to(upper, golden[i].upper, 1e-13));
    }
}

static void test_tables(void)
{
    const int64_t trials[] = {1, 2, 3, 4, 5, 16, 150, 3000};
    const double levels[] = {1e-300, 1e-15, 8.264462809917356e-07, 0.05, 0.5, 0.9, 1.0 - 0x1p-53};
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; ++i) {
        const int64_t m = trials[i];
        double *lower = malloc((size_t)(m + 1) * sizeof *lower);
        double *upper = malloc((size_t)(m + 1) * sizeof *upper);
        if (lower == NULL || upper == NULL) {
            abort();
        }
        for (size_t j = 0; j < sizeof levels / sizeof levels[0]; ++j) {
            const double step = 25 * BINCP_CP_STEP; /* at 1e-300 the step is 20 times as long */
            bincp_cp_table(m, levels[j], lower, upper);
            CHECK(lower[0] == 0.0 && upper[m] == 1.0);
            for (int64_t s = 0; s <= m; ++s) {
                CHECK(close_to(lower[s], bincp_cp_lower(s, m, levels[j]), step));
                CHECK(close_to(upper[s], bincp_cp_upper(s, m, levels[j]), step));
                CHECK(s == 0 || (lower[s - 1] <= lower[s] && upper[s - 1] <= upper[s]));
            }
            bincp_cp_table(m, levels[j], NULL, upper);
            bincp_cp_table(m, levels[j], lower, NULL);
        }
        free(lower);
        free(upper);
    }
}

static void test_levels_outside_the_domain(void)
{
    const double levels[] = {0.0, -1.0, 1.0, 2.0, NAN, INFINITY};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; ++i) {
        double lower[4], upper[4];
        CHECK(bincp_cp_lower(2, 3, levels[i]) == 0.0);
        CHECK(bincp_cp_upper(2, 3, levels[i]) == 1.0);
        bincp_cp_table(3, levels[i], lower, upper);
        for (int s = 0; s <= 3; ++s) {
            CHECK(lower[s] == 0.0 && upper[s] == 1.0);
        }
    }
    /* Below the smallest normal number a bound goes to the trivial one, not astray. */
    CHECK(bincp_cp_lower(1, 10, DBL_TRUE_MIN) == 0.0);
    CHECK(bincp_cp_upper(9, 10, DBL_TRUE_MIN) == 1.0);
}

static void test_largest_counts(void)
{
    const int64_t m = 2147483647;
    const int64_t counts[] = {1, 2, 3, 1000, m / 3, m / 2, m - 1000, m - 2, m - 1, m};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        const double lower = bincp_cp_lower(counts[i], m, 1e-3);
        const double upper = bincp_cp_upper(counts[i], m, 1e-3);
        const double share = (double)counts[i] / (double)m;
        CHECK(0.0 < lower && lower < share && share <= upper && upper <= 1.0);
    }
}

/* Counts that no number of trials has, and one half of a table at a time. */
static void test_counts_outside_and_halves(void)
{
    /* Successes and failures change places, also at levels above 1/2. */
    static const double high[] = {0.1, 0.6, 0.99};
    for (int i = 0; i < 3; i++) {
        for (int64_t s = 0; s <= 200; s++) {
            const double sum = bincp_cp_upper(s, 200, high[i]) + bincp_cp_lower(200 - s, 200, high[i]);
            CHECK(fabs(sum - 1.0) <= 4 * DBL_EPSILON);
        }
    }
    CHECK(bincp_cp_lower(6, 5, 0.1) == 0.0 && bincp_cp_upper(-1, 5, 0.1) == 1.0);
    static const double levels[] = {0.1, 0.7, 0.0, NAN};
    for (int i = 0; i < 4; i++) {
        double lower[6], upper[6], half[6];
        bincp_cp_table(5, levels[i], lower, upper);
        bincp_cp_table(5, levels[i], half, NULL);
        for (int s = 0; s <= 5; s++) {
            CHECK(half[s] == lower[s] && (i < 2 || half[s] == 0.0));
        }
        bincp_cp_table(5, levels[i], NULL, half);
        for (int s = 0; s <= 5; s++) {
            CHECK(half[s] == upper[s] && (i < 2 || half[s] == 1.0));
        }
    }
}

int main(void)
{
    test_tails();
    test_degenerate_tails();
    test_golden_bounds();
    test_tables();
    test_levels_outside_the_domain();
    test_largest_counts();
    test_counts_outside_and_halves();
    return report("binomial");
}
