/* The mixture kernels on their own, for the sanitizers: `make -C tests/c`.
 *
 * Envelopes are compared with those of all pairs of points, means and tails with sums over the
 * masses. Arrays have no byte to spare.
 */
#include "rules/mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static double *doubles(size_t n)
{
    double *memory = malloc(n * sizeof *memory);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* Numbers in [0, 1) that look random: the same on every platform. */
static double uniform(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

/* All masses of Bin(m, p), by one trial more at a time. */
static double *masses(int m, double p, double q)
{
    double *mass = doubles((size_t)m + 1);
    memset(mass, 0, ((size_t)m + 1) * sizeof *mass);
    mass[0] = 1.0;
    for (int trial = 0; trial < m; ++trial) {
        for (int s = trial + 1; s > 0; --s) {
            mass[s] = mass[s] * q + mass[s - 1] * p;
        }
        mass[0] *= q;
    }
    return mass;
}

static void test_failures_and_means(void)
{
    enum { N = 33 }; /* p = i / 32 and 1 - p are exact, the ends among them */
    double *p = doubles(N), *q = doubles(N), *out = doubles(N);
    for (int i = 0; i < N; ++i) {
        p[i] = i / (double)(N - 1);
        q[i] = 1.0 - p[i];
    }
    for (int m = 1; m <= 40; m += 3) {
        double *w = doubles((size_t)m + 1);
        for (int t = 0; t <= m + 1; ++t) {
            bincp_failures(t, m, p, q, N, out);
            for (int i = 0; i < N; ++i) {
                double *mass = masses(m, p[i], q[i]), sum = 0.0;
                for (int s = 0; s < t && s <= m; ++s) {
                    sum += mass[s];
                }
                CHECK(fabs(out[i] - sum) <= 1e-12 * sum);
                free(mass);
            }
            for (int s = 0; s <= m; ++s) {
                w[s] = s < t ? 1.0 : 0.0;
            }
            double *means = doubles(N);
            bincp_binomial_means(w, m, p, q, N, means);
            for (int i = 0; i < N; ++i) {
                CHECK(fabs(means[i] - out[i]) <= BINCP_MEAN_ERROR);
            }
            free(means);
        }
        double linear = 0.0, bounded = 0.0;
        for (int s = 0; s <= m; ++s) {
            w[s] = s;
        }
        bincp_binomial_means(w, m, p, q, N, out);
        for (int i = 0; i < N; ++i) {
            linear = fmax(linear, fabs(out[i] - m * p[i]));
        }
        for (int s = 0; s <= m; ++s) {
            w[s] = 64.0;
        }
        bincp_binomial_means(w, m, p, q, N, out);
        for (int i = 0; i < N; ++i) {
            bounded = fmax(bounded, fabs(out[i] - 64.0));
        }
        CHECK(linear <= BINCP_MEAN_ERROR * m);
        CHECK(bounded <= 64.0 * BINCP_MEAN_ERROR);
        free(w);
    }
    /* Tiny probabilities on either side */
    const double small[] = {1e-300, 0x1p-1074, 1e-17};
    const double large[] = {1.0, 1.0, 1.0};
    double w[] = {1.0, 0.5, 0.25, 0.0};
    bincp_binomial_means(w, 3, small, large, 3, out);
    CHECK(out[0] == 1.0 && out[1] == 1.0 && out[2] == 1.0);
    bincp_binomial_means(w, 3, large, small, 3, out);
    CHECK(out[0] >= 0.0 && out[0] <= 1e-299 && out[1] >= 0.0 && fabs(out[2] - 7.5e-18) <= 1e-30);
    bincp_failures(1, 3, large, small, 3, out);
    CHECK(out[0] == 0.0 && out[1] == 0.0 && out[2] <= 1.1e-51);
    free(p);
    free(q);
    free(out);
}

/* The upper concave envelope of n points and (1, 1) at x: the highest of all chords over x. */
static double all_pairs(const double *u, const double *v, size_t n, double x)
{
    double best = 0.0;
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k <= n; ++k) {
            const double right_u = k < n ? u[k] : 1.0, right_v = k < n ? v[k] : 1.0;
            if (u[i] <= x && right_u > x) {
                const double rise = (right_v - v[i]) / (right_u - u[i]);
                best = fmax(best, v[i] + rise * (x - u[i]));
            }
        }
        if (u[i] == x) {
            best = fmax(best, v[i]);
        }
    }
    return best;
}

/* Coordinates of n cells that do not increase: from 1 down to 0, or to `end`. */
static double *falling(size_t n, double end, int steps)
{
    double *values = doubles(n + 1);
    for (size_t i = 0; i <= n; ++i) {
        values[i] = steps > 0 ? floor(uniform() * steps) / steps : uniform();
    }
    for (size_t i = 1; i <= n; ++i) { /* insertion sort, largest first */
        for (size_t k = i; k > 0 && values[k] > values[k - 1]; --k) {
            const double swapped = values[k];
            values[k] = values[k - 1];
            values[k - 1] = swapped;
        }
    }
    values[0] = 1.0;
    values[n] = end;
    for (size_t i = 0; i <= n; ++i) {
        values[i] = fmax(values[i], end);
    }
    return values;
}

/* The intercept of the lowest line of this slope above all corners (u[i + 1], v[i]). */
static double corner_height(const double *u, const double *v, size_t n, double slope)
{
    double height = v[0] - slope * u[1];
    for (size_t i = 1; i < n; ++i) {
        height = fmax(height, v[i] - slope * u[i + 1]);
    }
    return height;
}

static void test_envelopes(void)
{
    const int steps[] = {0, 0, 3, 10}; /* with few steps many coordinates are equal */
    for (int trial = 0; trial < 2000; ++trial) {
        const size_t n = 1 + (size_t)(uniform() * 30.0);
        double *u = falling(n, 0.0, steps[trial % 4]);
        double *v = falling(n, trial % 3 == 0 ? 0.3 : 0.0, steps[trial / 4 % 4]);
        for (int k = 0; k <= 20; ++k) {
            const double x = k < 20 ? k / 20.0 : uniform();
            const bincp_envelope corner = bincp_corner_envelope(u, v, n, x);
            const bincp_envelope point = bincp_point_envelope(u, v, n, x);
            CHECK(fabs(corner.value - all_pairs(u + 1, v, n, x)) <= 1e-12);
            CHECK(fabs(point.value - all_pairs(u, v, n + 1, x)) <= 1e-12);
            CHECK(corner.value >= point.value - 1e-12);
            CHECK(corner.slope >= 0.0);
            /* The line of that slope is what proves the bound. */
            const double height = corner_height(u, v, n, corner.slope);
            CHECK(fabs(height + corner.slope * x - corner.value) <= 1e-12);
            for (size_t i = 0; i < n; ++i) {
                CHECK(v[i] <= height + corner.slope * u[i + 1] + 1e-12 * (1.0 + corner.slope));
            }
        }
        free(u);
        free(v);
    }
}

static void test_ends(void)
{
    const double u[] = {1.0, 0.0}, v[] = {1.0, 0.0};
    /* One cell is a square. */
    CHECK(bincp_corner_envelope(u, v, 1, 0.0).value == 1.0);
    CHECK(bincp_corner_envelope(u, v, 1, 0.7).value == 1.0);
    CHECK(bincp_point_envelope(u, v, 1, 0.0).value == 0.0);
    CHECK(bincp_point_envelope(u, v, 1, 0.25).value == 0.25);
    CHECK(corner_height(u, v, 1, 0.5) == 1.0);
    /* No point fails, and no point but the first one does. */
    const double never[] = {0.0, 0.0, 0.0}, first[] = {1.0, 0.0, 0.0}, all[] = {1.0, 1.0, 1.0};
    CHECK(bincp_corner_envelope(first, never, 2, 0.1).value == 0.1); /* with (1, 1) */
    CHECK(bincp_corner_envelope(first, all, 2, 0.1).value == 1.0);
    CHECK(bincp_point_envelope(all, all, 2, 0.1).value >= 1.0);
    const double steep[] = {5e-324, 0.0}, high[] = {0.9, 0.0}; /* a chord that no double is as steep as */
    CHECK(bincp_point_envelope(steep, high, 1, 0.0).value >= 0.0);
    CHECK(bincp_point_envelope(steep, high, 1, 0.0).value <= 0.9);
}

/* What is no probability has no value. */
static void test_values_that_are_no_probability(void)
{
    const double p[] = {0.5, 1.5, NAN, 0.5, 0.5}, q[] = {0.5, 0.5, 0.5, -0.5, NAN};
    const double w[] = {0.0, 0.25, 1.0};
    double missed[5], means[5];
    bincp_failures(1, 2, p, q, 5, missed);
    bincp_binomial_means(w, 2, p, q, 5, means);
    CHECK(fabs(missed[0] - 0.25) <= 1e-15 && fabs(means[0] - 0.375) <= 1e-15);
    for (int i = 1; i < 5; i++) {
        CHECK(isnan(missed[i]) && isnan(means[i]));
    }
}

int main(void)
{
    test_failures_and_means();
    test_envelopes();
    test_ends();
    test_values_that_are_no_probability();
    return report("mixture");
}
