/* The normal distribution, the knapsack and the operators alone, for the sanitizers: `make -C tests/c`.
 *
 * Arrays are allocated to size, so that the sanitizer sees a step beyond them. Reference values
 * come from tests/data/{gaussian,sparse}.json.
 */
#include "certificates/sparse_regions.h"
#include "certificates/knapsack.h"
#include "certificates/location.h"
#include "numerics/normal.h"
#include "certificates/operators.h"
#include "certificates/laplace.h"
#include "certificates/steps.h"
#include "certificates/categorical_regions.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define TRUE_MIN 4.9406564584124654e-324
#define BELOW_ONE (1.0 - DBL_EPSILON / 2)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const double grid[] = {0.0,  TRUE_MIN, 1e-300, 1e-12, 0.1, 0.25,      0.5,
                              0.51, 0.75,     0.9,    0.999, 1.0, BELOW_ONE, 1 - 1e-12};

static double *doubles(size_t n)
{
    double *memory = malloc((n > 0 ? n : 1) * sizeof *memory);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* `got` is on the safe side of `wanted` (below for direction -1), within a relative `error`. */
static int safe(double got, double wanted, int direction, double error)
{
    const double excess = (got - wanted) * direction;
    return excess >= 0.0 && excess <= error * wanted;
}

/* ---- normal ---------------------------------------------------------------------------------- */

static void test_quantile(void)
{
    static const double known[][2] = {
        {1e-300, -37.047096299361199},
        {1e-10, -6.3613409024040561},
        {0.25, -0.67448975019608174},
        {0.4, -0.25334710313579974},
        {0.5, 0.0},
    };
    for (size_t i = 0; i < LENGTH(known); ++i) {
        const double x = bincp_normal_tail_quantile(known[i][0]);
        CHECK(fabs(x - known[i][1]) <= 6 * DBL_EPSILON * fabs(known[i][1]));
        CHECK(fabs(bincp_normal_tail(x) - known[i][0]) <= 1e-12 * known[i][0]);
    }
    for (double p = 0.5; p > 1e-300; p *= 0.37) {
        const double back = bincp_normal_tail(bincp_normal_tail_quantile(p));
        CHECK(fabs(back - p) <= 1e-12 * p);
        CHECK(bincp_normal_tail_quantile(p) <= 0.0);
    }
    CHECK(isfinite(bincp_normal_tail_quantile(TRUE_MIN)));
    CHECK(bincp_normal_tail(-40.0) == 0.0);
    CHECK(bincp_normal_tail(0.0) == 0.5);
}

/* A tail that was shifted from the abscissa a to x is off by 75 + 4 |E| + lever (4 a + 46) units at most
 * (numerics/normal.c), and a bound is that far outside: so it is looser by twice as much. */
static double looseness(double a, double exponent, double lever)
{
    return 2.0 * (75.0 + 4.0 * exponent + lever * (4.0 * a + 46.0)) * (DBL_EPSILON / 2.0);
}

static void test_shift(void)
{
    /* Beside the centre, at |x| = .747 and .910, the exponent is x^2 / 2 and the lever |x| + 1. */
    CHECK(safe(bincp_normal_shift_down(0.6, 1.0), 0.22763655472130379, -1,
               looseness(0.254, 0.279, 1.747)));
    CHECK(safe(bincp_normal_shift_down(0.999, 4.0), 0.1814725177250188, -1,
               looseness(3.091, 0.414, 1.910)));
    /* From 37.1 to 34.1 the exponent is 3 (37.1 - 1.5), and the lever is the shift. */
    CHECK(safe(bincp_normal_shift_up(1e-300, 3.0), 2.2404714648889896e-254, 1,
               looseness(37.1, 106.7, 3.0)));
    CHECK(bincp_normal_shift_down(TRUE_MIN, 0.5) == 0.0);

    static const double shifts[] = {TRUE_MIN, 1e-17, 1e-3,    1.0,     8.0,
                                    60.0,     1e160, DBL_MAX, INFINITY};
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        const double p = grid[i];
        CHECK(bincp_normal_shift_down(p, 0.0) == p);
        CHECK(bincp_normal_shift_up(p, 0.0) == p);
        for (size_t j = 0; j < LENGTH(shifts); ++j) {
            const double down = bincp_normal_shift_down(p, shifts[j]);
            const double up = bincp_normal_shift_up(p, shifts[j]);
            CHECK(0.0 <= down && down <= p && p <= up && up <= 1.0);
            if (p > 0.0 && p < 1.0) {
                CHECK(down < p && up > p);
                if (shifts[j] >= 60.0) {
                    CHECK(down == 0.0 && up == 1.0);
                }
            } else {
                CHECK(down == p && up == p);
            }
        }
    }
}

/* ---- knapsack -------------------------------------------------------------------------------- */

static bincp_regions make(const double *clean, const double *perturbed, size_t n, double slack,
                          double tiny, double *storage)
{
    double *workspace = doubles(bincp_regions_workspace(n));
    const bincp_regions regions =
        bincp_regions_make(clean, perturbed, n, slack, tiny, storage, workspace);
    free(workspace);
    return regions;
}

static void test_regions_by_hand(void)
{
    /* Ratios infinity, 2, 1/2 and 0, in this order. */
    static const double clean[] = {0.25, 0.5, 0.25, 0.0};
    static const double perturbed[] = {0.0, 0.25, 0.5, 0.25};
    static const double expected[][3] = {
        {0.0, 0.0, 0.25},  {0.25, 0.0, 0.75}, {0.5, 0.125, 0.875},
        {0.75, 0.25, 1.0}, {1.0, 0.75, 1.0},
    };
    double *storage = doubles(bincp_regions_size(4));
    const bincp_regions regions = make(clean, perturbed, 4, 0.0, 0.0, storage);
    for (size_t i = 0; i < LENGTH(expected); ++i) {
        const double p = expected[i][0];
        const double lower = bincp_regions_lower(&regions, p);
        const double upper = bincp_regions_upper(&regions, p);
        /* The step is up to 4 slacks of 4 units; certainty is exact, also where it is lost. */
        CHECK(lower <= expected[i][1] && lower >= expected[i][1] - 16 * DBL_EPSILON);
        CHECK(upper >= expected[i][2] && upper <= expected[i][2] + 16 * DBL_EPSILON);
    }
    free(storage);
}

static void test_empty_and_single_regions(void)
{
    static const double one[] = {1.0};
    double *storage = doubles(bincp_regions_size(1));
    bincp_regions regions = make(one, one, 1, 0.0, 0.0, storage);
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        CHECK(fabs(bincp_regions_lower(&regions, grid[i]) - grid[i]) <= 16 * DBL_EPSILON);
        CHECK(fabs(bincp_regions_upper(&regions, grid[i]) - grid[i]) <= 16 * DBL_EPSILON);
    }
    free(storage);
    storage = doubles(bincp_regions_size(0));
    regions = make(one, one, 0, 0.0, 0.0, storage);
    CHECK(bincp_regions_lower(&regions, 0.3) == 0.0);
    CHECK(bincp_regions_upper(&regions, 0.3) == 0.3);
    free(storage);
}

static void test_regions_at_the_ends(void)
{
    double *storage = doubles(bincp_regions_size(3));
    /* Two regions that cost nothing, and one that costs less than the error of the masses. */
    static const double clean[] = {0.25, 0.25, 0.5}, free_ones[] = {0.0, 0.0, 1.0};
    bincp_regions regions = make(clean, free_ones, 3, 0.0, 0.0, storage);
    CHECK(bincp_regions_upper(&regions, 0.0) >= 0.5 && bincp_regions_upper(&regions, 0.0) < 0.51);
    static const double cheap_ones[] = {0.0, TRUE_MIN, 1.0};
    regions = make(clean, cheap_ones, 3, 0.0, 2.0 * TRUE_MIN, storage);
    CHECK(bincp_regions_upper(&regions, 0.0) >= 0.25 && bincp_regions_upper(&regions, 0.0) < 0.26);
    CHECK(bincp_regions_upper(&regions, TRUE_MIN) >= 0.5);
    /* A ratio beyond all doubles */
    static const double steep[] = {0.0, 1e-310, 1.0};
    regions = make(clean, steep, 3, 0.0, 0.0, storage);
    CHECK(bincp_regions_upper(&regions, 5e-311) >= 0.375);
    CHECK(!signbit(bincp_regions_lower(&regions, -0.0)) && !signbit(bincp_regions_upper(&regions, -0.0)));
    const double p[] = {-0.0, 0.5, -0.0};
    double out[3], workspace[100];
    bincp_regions_lower_fill(&regions, p, 3, out);
    CHECK(out[0] == 0.0 && !signbit(out[0]) && !signbit(out[2]));
    CHECK(bincp_sparse_grid_workspace(0, 0, 3) <= LENGTH(workspace));
    bincp_sparse_grid(0, 0, 0.1, 0.1, p, NULL, 3, out, workspace);
    CHECK(out[0] == 0.0 && !signbit(out[0]) && out[1] == 0.5);
    free(storage);
}

static void check_sparse(size_t a, size_t d, double p_plus, double p_minus)
{
    const size_t n = a + d + 1;
    double *clean = doubles(n), *perturbed = doubles(n), *workspace = doubles(2 * (n + 1));
    double *storage = doubles(bincp_regions_size(n));
    bincp_sparse_masses(a, d, p_plus, p_minus, clean, perturbed, workspace);
    double sums[2] = {0.0, 0.0};
    for (size_t i = 0; i < n; ++i) {
        CHECK(clean[i] >= 0.0 && perturbed[i] >= 0.0);
        sums[0] += clean[i];
        sums[1] += perturbed[i];
        /* Decreasing ratio, without division and where nothing underflows */
        if (i > 0) {
            const double here = fmin(clean[i], perturbed[i]);
            const double before = fmin(clean[i - 1], perturbed[i - 1]);
            CHECK(fmin(here, before) <= 1e-150 ||
                  clean[i] * perturbed[i - 1] <= clean[i - 1] * perturbed[i] * (1 + 1e-14));
        }
    }
    CHECK(fabs(sums[0] - 1.0) < 1e-13 && fabs(sums[1] - 1.0) < 1e-13);

    const bincp_regions regions =
        make(clean, perturbed, n, BINCP_SPARSE_SLACK, bincp_sparse_tiny(a, d), storage);
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        const double lower = bincp_regions_lower(&regions, grid[i]);
        const double upper = bincp_regions_upper(&regions, grid[i]);
        CHECK(0.0 <= lower && lower <= grid[i] && grid[i] <= upper && upper <= 1.0);
        CHECK(bincp_regions_upper(&regions, fmin(lower + 1e-13, 1.0)) >= grid[i]);
    }
    free(storage);
    free(workspace);
    free(perturbed);
    free(clean);
}

static void test_sparse(void)
{
    static const size_t sizes[] = {0, 1, 2, 7, 40};
    static const double chances[] = {0.0, DBL_MIN, 1e-300, 0.01, 0.4, 0.5, 0.6, BELOW_ONE, 1.0};
    for (size_t i = 0; i < LENGTH(sizes); ++i) {
        for (size_t j = 0; j < LENGTH(sizes); ++j) {
            for (size_t k = 0; k < LENGTH(chances); ++k) {
                for (size_t l = 0; l < LENGTH(chances); ++l) {
                    check_sparse(sizes[i], sizes[j], chances[k], chances[l]);
                }
            }
        }
    }
    check_sparse(1000, 1000, 0.01, 0.6);
    check_sparse(0, 3000, 0.0, 0.4);
}

static void test_sparse_by_value(void)
{
    double clean[5], perturbed[5], workspace[12];
    double *storage = doubles(bincp_regions_size(5));
    bincp_sparse_masses(1, 3, 0.01, 0.6, clean, perturbed, workspace);
    const bincp_regions regions =
        make(clean, perturbed, 5, BINCP_SPARSE_SLACK, bincp_sparse_tiny(1, 3), storage);
    /* The order printed in the literature would give 0.99998 here. */
    CHECK(fabs(bincp_regions_lower(&regions, 0.9) - 0.3455) < 5e-5);
    CHECK(bincp_regions_lower(&regions, 1.0) == 1.0);
    free(storage);
}

/* Out of order, in order, and one outside: always the numbers of the single calls. */
static void test_fill(void)
{
    const size_t n = 61, m = 5000;
    double *clean = doubles(n), *perturbed = doubles(n), *workspace = doubles(2 * (n + 1));
    double *storage = doubles(bincp_regions_size(n)), *p = doubles(m), *out = doubles(m);
    bincp_sparse_masses(40, 20, 0.01, 0.6, clean, perturbed, workspace);
    const bincp_regions regions =
        make(clean, perturbed, n, BINCP_SPARSE_SLACK, bincp_sparse_tiny(40, 20), storage);
    for (int in_order = 0; in_order < 2; ++in_order) {
        for (size_t i = 0; i < m; ++i) {
            const double u = (double)(in_order ? i : i * 1237 % m) / (double)(m - 1);
            p[i] = u < 0.3 ? pow(u, 40.0) : u;
        }
        bincp_regions_lower_fill(&regions, p, m, out);
        for (size_t i = 0; i < m; ++i) {
            CHECK(out[i] == bincp_regions_lower(&regions, p[i]));
        }
    }
    p[7] = -TRUE_MIN;
    p[8] = NAN;
    p[m - 1] = 1.0 + DBL_EPSILON;
    bincp_regions_lower_fill(&regions, p, m, out);
    CHECK(isnan(out[7]) && isnan(out[8]) && isnan(out[m - 1]) && !isnan(out[9]));
    free(out);
    free(p);
    free(storage);
    free(workspace);
    free(perturbed);
    free(clean);
}

static void check_grid(size_t a, size_t d, double p_plus, double p_minus)
{
    static const uint32_t order[] = {2, 0, 1};
    static const double p[] = {0.1, 0.7, 1.0};
    double *out = doubles((a + 1) * (d + 1) * 3);
    double *workspace = doubles(bincp_sparse_grid_workspace(a, d, 3));
    bincp_sparse_grid(a, d, p_plus, p_minus, p, order, 3, out, workspace);
    const double *corner = out + 3 * ((a + 1) * (d + 1) - 1);
    const size_t n = a + d + 1;
    double *clean = doubles(n), *perturbed = doubles(n), *masses = doubles(2 * (n + 1));
    double *storage = doubles(bincp_regions_size(n));
    bincp_sparse_masses(a, d, p_plus, p_minus, clean, perturbed, masses);
    const bincp_regions regions =
        make(clean, perturbed, n, BINCP_SPARSE_SLACK, bincp_sparse_tiny(a, d), storage);
    for (size_t i = 0; i < 3; ++i) {
        const int same = a + d == 0 || bincp_sparse_direction(p_plus, p_minus) == 0;
        CHECK(corner[order[i]] == (same ? p[i] : bincp_regions_lower(&regions, p[i])));
        CHECK(out[order[i]] == p[i]);
    }
    bincp_sparse_grid(a, d, p_plus, p_minus, p, NULL, 3, out, workspace);
    CHECK(out[0] == p[0] && out[2] == p[2]);
    free(storage);
    free(masses);
    free(perturbed);
    free(clean);
    free(workspace);
    free(out);
}

static void test_grid(void)
{
    static const size_t sizes[] = {0, 1, 5};
    static const double chances[] = {0.0, 1e-300, 0.3, 0.7, 1.0};
    for (size_t i = 0; i < LENGTH(sizes) * LENGTH(sizes); ++i) {
        for (size_t j = 0; j < LENGTH(chances) * LENGTH(chances); ++j) {
            check_grid(sizes[i % 3], sizes[i / 3], chances[j % 5], chances[j / 5]);
        }
    }
}

static void test_categorical(void)
{
    /* The third power of the second kind is impossible. */
    const bincp_coordinates kinds[] = {{2, {0, 1, 3}, {0.5, 0.25, 0.25}, {0.0}},
                                       {1, {2, 0, 1}, {0.75, 0.25, 0.0}, {0.0}}};
    static const double expected[] = {1, 1, 3.25, 4, 1.25, 3, 1.75, 0, 0.75};
    double mass[9], *workspace = doubles(4 * (9 + 3));
    bincp_categorical_masses(kinds, 2, 9, mass, workspace);
    for (size_t i = 0; i < 9; ++i) {
        CHECK(mass[i] == expected[i] / 16);
    }
    CHECK(bincp_categorical_tiny(kinds, 2, 9) > 0.0);
    const bincp_coordinates rare = {3, {0, 1, 1}, {1.0, 1e-200, 0.0}, {0.0}};
    bincp_categorical_masses(&rare, 1, 4, mass, workspace);
    CHECK(mass[0] == 1.0 && mass[2] > 0.0 && mass[3] > 0.0 && mass[2] <= 4 * TRUE_MIN);
    bincp_categorical_masses(NULL, 0, 1, mass, workspace);
    CHECK(mass[0] == 1.0);
    free(workspace);
}

static void test_direction(void)
{
    CHECK(bincp_sparse_direction(0.25, 0.75) == 0);
    CHECK(bincp_sparse_direction(1.0, 0.0) == 0);
    CHECK(bincp_sparse_direction(1.0, 1e-300) == 1);
    CHECK(bincp_sparse_direction(BELOW_ONE, 1e-300) == -1);
    CHECK(bincp_sparse_direction(0.01, 0.6) == -1);
    CHECK(bincp_sparse_direction(0.7, 0.8) == 1);
    /* 0.9 + 0.1 rounds to 1, but the doubles sum to a little more. */
    CHECK(bincp_sparse_direction(0.9, 0.1) == 1);
}

/* ---- operators ------------------------------------------------------------------------------- */

static void check_operator(const bincp_operator *op, const char *name)
{
    CHECK(strcmp(op->name, name) == 0);
    CHECK(op->abi_version == BINCP_ABI_VERSION);
    CHECK(op->struct_size == sizeof(bincp_operator));
    static const double outside[] = {-TRUE_MIN, 1.0 + DBL_EPSILON, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < LENGTH(outside); ++i) {
        CHECK(isnan(op->lower(outside[i], op->params)));
        CHECK(isnan(op->upper(outside[i], op->params)));
    }
    double *out = doubles(LENGTH(grid));
    bincp_bound_fill(op->lower, op->params, grid, LENGTH(grid), out);
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        CHECK(out[i] == op->lower(grid[i], op->params));
        CHECK(0.0 <= out[i] && out[i] <= grid[i]);
        CHECK(grid[i] <= op->upper(grid[i], op->params));
    }
    bincp_bound_fill(op->lower, op->params, NULL, 0, NULL);
    free(out);
}

static void test_operators(void)
{
    const double shift = 0.1;
    double clean[] = {0.7, 0.3}, perturbed[] = {0.2, 0.8};
    double *storage = doubles(bincp_regions_size(2));
    const bincp_regions regions = make(clean, perturbed, 2, DBL_EPSILON, 2 * TRUE_MIN, storage);
    const bincp_operator identity = bincp_operator_make(BINCP_IDENTITY, NULL);
    const bincp_operator gaussian = bincp_operator_make(BINCP_GAUSSIAN, &shift);
    const bincp_operator uniform = bincp_operator_make(BINCP_UNIFORM, &shift);
    const bincp_operator knapsack = bincp_operator_make(BINCP_REGIONS, &regions);
    const double shifts[] = {shift, 0.2};
    const bincp_operator either = bincp_operator_make(BINCP_LAPLACE_UNIFORM, shifts);
    check_operator(&identity, "identity");
    check_operator(&gaussian, "gaussian");
    check_operator(&uniform, "uniform");
    check_operator(&knapsack, "regions");
    check_operator(&either, "tighter of laplace and uniform");
    CHECK(either.lower(0.9, shifts) == bincp_laplace_lower(0.9, &shift));
    CHECK(uniform.lower(0.05, &shift) == 0.0);
    CHECK(uniform.upper(0.95, &shift) == 1.0);
    CHECK(uniform.lower(0.5, &shift) <= 0.4 && uniform.lower(0.5, &shift) > 0.4 - 1e-15);
    CHECK(gaussian.lower(0.6, &shift) == bincp_normal_shift_down(0.6, 0.1));
    CHECK(knapsack.lower(0.9, &regions) == bincp_regions_lower(&regions, 0.9));
    free(storage);
}

/* Counts of `levels`, all of them and beyond: each bound is one rounding from the exact fraction. */
static void test_steps(void)
{
    static const double levels[] = {1, 2, 3, 127, 220, 441, 2147483647.0};
    for (size_t i = 0; i < LENGTH(levels); ++i) {
        const double n = levels[i], stride = ceil(n / 500);
        for (double steps = 0; steps <= n; steps += ceil(n / 7)) {
            const bincp_steps move = {n, steps};
            const bincp_operator op = bincp_operator_make(BINCP_STEPS, &move);
            check_operator(&op, "steps");
            for (double count = 0; count <= n; count += stride) {
                const double low = fmax(count - steps, 0.0), high = fmin(count + steps, n);
                const double lower = op.lower(count / n, &move), upper = op.upper(count / n, &move);
                CHECK(fma(lower, n, -low) <= 0.0 && low / n >= lower);
                CHECK(low == 0.0 || (low - 1.0) / n < lower);
                CHECK(fma(upper, n, -high) >= 0.0 && high / n <= upper);
                CHECK(high == n || (high + 1.0) / n > upper);
            }
        }
    }
}

/* ---- arrays ------------------------------------------------------------------------------------- */

static int same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* An array of n probabilities, with numbers that are none in it or without, has the bits of single
 * values. */
static void check_array(const bincp_operator *op, size_t n, int with_ends)
{
    static const double ends[] = {0.0, 1.0, NAN, -TRUE_MIN, 1.0 + DBL_EPSILON, INFINITY, -0.0};
    double *const p = doubles(n), *const low = doubles(n), *const high = doubles(n);
    for (size_t i = 0; i < n; ++i) {
        p[i] = ((double)i + 0.5) / (double)n;
        if (with_ends && i % 50 < LENGTH(ends)) {
            p[i] = ends[i % 50];
        }
    }
    bincp_lower_fill(op, p, n, low);
    bincp_upper_fill(op, p, n, high);
    for (size_t i = 0; i < n; ++i) {
        CHECK(same(low[i], op->lower(p[i], op->params)));
        CHECK(same(high[i], op->upper(p[i], op->params)));
        CHECK(isnan(low[i]) || !(signbit(low[i]) || signbit(high[i])));
        CHECK(isnan(low[i]) == !(p[i] >= 0.0 && p[i] <= 1.0) && isnan(low[i]) == isnan(high[i]));
    }
    free(p);
    free(low);
    free(high);
}

static void test_arrays(void)
{
    static const double shifts[] = {0.0, TRUE_MIN, 0.01, 0.7, 3.0, 50.0, INFINITY};
    static const double pairs[][2] = {{0.0, 0.0}, {1.0, 0.2}, {0.2, 1.0}, {0.3, 0.12}};
    static const bincp_steps steps[] = {{1.0, 0.0}, {1.0, 1.0}, {255.0, 3.0}, {0x1p50, 12345.0}};
    static const bincp_builtin kinds[] = {BINCP_GAUSSIAN, BINCP_UNIFORM, BINCP_LAPLACE,
                                          BINCP_HALF_POWER};
    enum { OPERATORS = 4 * 7 + 4 + 4 };
    bincp_operator ops[OPERATORS];
    size_t n_ops = 0;
    for (size_t i = 0; i < LENGTH(kinds); ++i) {
        for (size_t j = 0; j < LENGTH(shifts); ++j) {
            ops[n_ops++] = bincp_operator_make(kinds[i], &shifts[j]);
        }
    }
    for (size_t i = 0; i < 4; ++i) {
        ops[n_ops++] = bincp_operator_make(BINCP_LAPLACE_UNIFORM, pairs[i]);
        ops[n_ops++] = bincp_operator_make(BINCP_STEPS, &steps[i]);
    }
    CHECK(n_ops == OPERATORS);
    for (size_t i = 0; i < n_ops; ++i) {
        for (int with_ends = 0; with_ends < 2; ++with_ends) {
            check_array(&ops[i], 0, with_ends);
            check_array(&ops[i], 7, with_ends);
            check_array(&ops[i], 1300, with_ends); /* more than two chunks */
            static const double deltas[] = {0.0, 1e-17, 0.05, 1.0};
            for (size_t j = 0; j < LENGTH(deltas); ++j) {
                const bincp_charge charge = {ops[i], deltas[j]};
                const bincp_operator charged = bincp_operator_charged(&charge);
                check_array(&charged, 1300, with_ends);
            }
        }
    }
}

/* The bound of the law at the probability that is left, less the charge: for the shift of uniform noise
 * p - 2 delta - shift, to three roundings. */
static void test_charges(void)
{
    static const double deltas[] = {0.0, 1e-12, 0.05, 0.4};
    const double shift = 0.1;
    const double unit = DBL_EPSILON / 2;
    for (size_t i = 0; i < LENGTH(deltas); ++i) {
        const bincp_charge charge = {bincp_operator_make(BINCP_UNIFORM, &shift), deltas[i]};
        const bincp_operator op = bincp_operator_charged(&charge);
        CHECK(strcmp(op.name, "uniform") == 0);
        for (size_t j = 0; j < LENGTH(grid); ++j) {
            const double p = grid[j], moved = shift + 2 * deltas[i];
            const double low = op.lower(p, op.params), high = op.upper(p, op.params);
            CHECK(low <= fmax(p - moved, 0.0) + unit && low >= fmax(p - moved - 8 * unit, 0.0));
            CHECK(high >= fmin(p + moved, 1.0) - unit && high <= fmin(p + moved + 8 * unit, 1.0));
        }
    }
}

/* The next double on the safe side of p - shift and p + shift, which 64 bits hold. */
static void test_shifts_of_uniform_noise(void)
{
    uint64_t state = 1;
    size_t wrong = 0;
    for (int i = 0; i < 10000; ++i) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        const double p = 0.25 + (double)(state >> 12) * 0x1p-53; /* 0.25 to 0.75 */
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        const double shift = 0x1p-9 + (double)(state >> 12) * 0x1p-62;
        const bincp_operator op = bincp_operator_make(BINCP_UNIFORM, &shift);
        const double low = op.lower(p, &shift), high = op.upper(p, &shift);
        const long double down = (long double)p - shift, up = (long double)p + shift;
        wrong += !(low <= down && nextafter(low, 1.0) > down);
        wrong += !(high >= up && nextafter(high, 0.0) < up);
    }
    CHECK(wrong == 0);
}

static double beyond(double p, const void *params)
{
    return p + *(const double *)params;
}

static double without_end(double p, const void *params)
{
    (void)params;
    return p < 1.0 ? 0.5 * p : NAN;
}

/* What an operator from outside returns is not taken for a bound where it is none. */
static void test_bounds_that_are_none(void)
{
    const double two = 2.0;
    const bincp_operator outside = {.abi_version = BINCP_ABI_VERSION,
                                    .struct_size = sizeof(bincp_operator),
                                    .name = "outside",
                                    .lower = beyond,
                                    .upper = beyond,
                                    .params = &two};
    const bincp_charge charge = {outside, 0.01};
    const bincp_operator op = bincp_operator_charged(&charge);
    CHECK(isnan(op.lower(0.5, op.params)) && isnan(op.upper(0.5, op.params)));
    check_array(&op, 0, 0);
    const double shift = 0.5, nothing = NAN;
    CHECK(isnan(bincp_generalised_inverse(beyond, &nothing, 0.5)));
    CHECK(isnan(bincp_generalised_inverse(charge.of.lower, &two, NAN)));
    CHECK(isnan(bincp_generalised_inverse(without_end, NULL, 0.25)));
    CHECK(isnan(bincp_generalised_inverse(bincp_laplace_lower, &shift, 1.5)));
    CHECK(isnan(bincp_generalised_inverse(bincp_laplace_lower, &shift, -0.5)));
}

/* An order that points beyond the probabilities writes nothing there. */
static void test_orders_beyond_the_end(void)
{
    const double p[] = {0.25, 0.75};
    const uint32_t order[] = {2, 0};
    double *const out = doubles(3);
    double *const workspace = doubles(bincp_sparse_grid_workspace(0, 0, 2));
    out[0] = out[1] = out[2] = -7.0;
    bincp_sparse_grid(0, 0, 0.1, 0.2, p, order, 2, out, workspace);
    CHECK(out[0] <= 0.75 && out[0] > 0.75 - 1e-12 && out[1] == -7.0 && out[2] == -7.0);
    free(out);
    free(workspace);
}

/* Probabilities of which the first or the last is none are not taken for ordered ones. */
static void test_order_of_probabilities(void)
{
    static const double clean[] = {0.6, 0.4}, perturbed[] = {0.4, 0.6};
    static const double rows[][3] = {{-0.5, 0.2, 0.3}, {0.1, 0.2, 1.5}, {NAN, 0.2, 0.3},
                                     {0.1, 0.2, NAN},  {0.3, 0.2, 0.1}, {0.1, 0.2, 0.3}};
    double *const storage = doubles(bincp_regions_size(2));
    const bincp_regions regions = make(clean, perturbed, 2, 0.0, 0.0, storage);
    for (size_t i = 0; i < LENGTH(rows); ++i) {
        double out[3];
        bincp_regions_lower_fill(&regions, rows[i], 3, out);
        for (size_t j = 0; j < 3; ++j) {
            const double p = rows[i][j];
            CHECK(p >= 0.0 && p <= 1.0 ? out[j] == bincp_regions_lower(&regions, p) : isnan(out[j]));
        }
    }
    bincp_regions_lower_fill(&regions, rows[0], 0, NULL);
    free(storage);
}

/* Masses of which one is none, as where they were overwritten: the knots do not fall. */
static void test_masses_that_are_none(void)
{
    static const double clean[] = {0.6, -0.1, 0.5}, perturbed[] = {0.2, -0.1, 0.9};
    double *const storage = doubles(bincp_regions_size(3));
    const bincp_regions regions = make(clean, perturbed, 3, 0.0, 0.0, storage);
    double before = 0.0, above = 0.0;
    for (size_t i = 0; i <= 100; ++i) {
        const double low = bincp_regions_lower(&regions, (double)i / 100);
        const double high = bincp_regions_upper(&regions, (double)i / 100);
        CHECK(low >= before && low <= (double)i / 100);
        CHECK(high >= above && high >= (double)i / 100);
        before = low;
        above = high;
    }
    free(storage);
}

/* Masses that underflow stay positive: a region that can happen can be filled. */
static void test_masses_that_underflow(void)
{
    enum { FLIPS = 5 };
    double clean[FLIPS + 1], perturbed[FLIPS + 1], workspace[2 * (FLIPS + 2)];
    bincp_sparse_masses(FLIPS, 0, 1e-300, 0.5, clean, perturbed, workspace);
    for (size_t i = 0; i <= FLIPS; ++i) {
        CHECK(clean[i] > 0.0 && perturbed[i] > 0.0);
    }
    for (int certain = 0; certain < 2; ++certain) { /* no bit is flipped, or each */
        bincp_sparse_masses(FLIPS, 0, certain, 0.5, clean, perturbed, workspace);
        CHECK(clean[0] == 1.0 && fabs(perturbed[0] - 0x1p-5) <= 1e-16);
        CHECK(clean[1] == 0.0 && fabs(perturbed[1] - 5 * 0x1p-5) <= 1e-15);
    }
}

static void test_far_tails(void)
{
    CHECK(bincp_normal_tail(-41.0) == 0.0 && bincp_normal_tail(-INFINITY) == 0.0);
}

int main(void)
{
    test_quantile();
    test_shift();
    test_regions_by_hand();
    test_empty_and_single_regions();
    test_regions_at_the_ends();
    test_sparse();
    test_sparse_by_value();
    test_fill();
    test_grid();
    test_categorical();
    test_direction();
    test_operators();
    test_steps();
    test_arrays();
    test_charges();
    test_shifts_of_uniform_noise();
    test_bounds_that_are_none();
    test_orders_beyond_the_end();
    test_order_of_probabilities();
    test_masses_that_are_none();
    test_masses_that_underflow();
    test_far_tails();
    return report("operators");
}
