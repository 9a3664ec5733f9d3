/* The table of functions, the guard around functions from outside, and the generalised inverse,
 * for the sanitizers. Storage is allocated to size, so that a step beyond it is seen.
 */
#include "api/capi.h"
#include "certificates/foreign.h"
#include "certificates/operators.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const double grid[] = {0.0, 1e-300, 1e-12, 0.1, 0.3, 0.5, 0.9, 1 - DBL_EPSILON, 1.0};
static bincp_api api;

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static const bincp_operator *operator_of(struct _object *certificate)
{
    (void)certificate;
    return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void test_every_member_is_there(void)
{
    CHECK(api.abi_version == BINCP_ABI_VERSION);
    CHECK(api.struct_size == sizeof api);
    const size_t first = offsetof(bincp_api, count_float32);
    void (*member)(void);
    for (size_t at = first; at < sizeof api; at += sizeof member) {
        memcpy(&member, (const char *)&api + at, sizeof member);
        CHECK(member != NULL);
    }
    CHECK(api.operator_of == operator_of);
}

static void test_counting(void)
{
    const float scores[] = {0.1f, 0.5f, 0.9f, 0.5f, NAN, 0.0f};
    const double wide[] = {0.1, 0.5, 0.9, 0.5};
    int32_t counts[2] = {-1, -1};
    CHECK(api.count_float32(scores, 2, 2, 0.5f, counts) == 0 && counts[0] == 1 && counts[1] == 2);
    CHECK(api.count_float32(scores, 2, 3, 0.5f, counts) == 1);
    CHECK(api.count_float64(wide, 1, 4, 0.5, counts) == 0 && counts[0] == 3);
    CHECK(api.count_float64(wide, 0, 4, 0.5, counts) == 0);
    CHECK(api.count_float32(scores, 2, 2, NAN, counts) == BINCP_REFUSED);
    CHECK(api.count_float64(wide, 1, 4, NAN, counts) == -1);
    CHECK(api.count_float32(scores, 1, (size_t)INT32_MAX + 1, 0.5f, counts) == -1);
    CHECK(counts[0] == 3);
}

/* 1, -1, 0, -0, 2 and infinity in both 16-bit formats. */
static void test_counting_16_bits(void)
{
    const uint16_t half[] = {0x3c00, 0xbc00, 0x0000, 0x8000, 0x4000, 0x7c00, 0x7e00};
    const uint16_t bfloat[] = {0x3f80, 0xbf80, 0x0000, 0x8000, 0x4000, 0x7f80, 0xffc0};
    int32_t counts[2] = {-1, -1};
    CHECK(api.count_float16(half, 2, 3, half[2], counts) == BINCP_OK);
    CHECK(counts[0] == 2 && counts[1] == 3);
    CHECK(api.count_bfloat16(bfloat, 2, 3, bfloat[0], counts) == BINCP_OK);
    CHECK(counts[0] == 1 && counts[1] == 2);
    CHECK(api.count_float16(half, 1, 7, half[0], counts) == BINCP_NAN_SCORE);
    CHECK(api.count_bfloat16(bfloat, 1, 7, bfloat[0], counts) == BINCP_NAN_SCORE);
    counts[0] = -1;
    CHECK(api.count_float16(half, 1, 6, half[6], counts) == BINCP_REFUSED);
    CHECK(api.count_bfloat16(bfloat, 1, 6, bfloat[6], counts) == BINCP_REFUSED);
    CHECK(api.count_float16(half, 1, (size_t)INT32_MAX + 1, half[0], counts) == BINCP_REFUSED);
    CHECK(counts[0] == -1);
}

/* Bin(3, 1/4) has masses that are multiples of 1/64. */
static void test_binomial(void)
{
    static const double masses[] = {27, 27, 9, 1};
    double below = 0.0;
    for (int64_t s = 0; s <= 3; ++s) {
        CHECK(fabs(api.binom_pmf(s, 3, 0.25, 0.75) - masses[s] / 64) <= 1e-14);
        CHECK(fabs(api.binom_log_pmf(s, 3, 0.25, 0.75) - log(masses[s] / 64)) <= 1e-14);
        CHECK(fabs(api.binom_sf(s, 3, 0.25, 0.75) - (1.0 - below)) <= 1e-14);
        below += masses[s] / 64;
        CHECK(fabs(api.binom_cdf(s, 3, 0.25, 0.75) - below) <= 1e-14);
    }
    CHECK(api.binom_sf(3, 3, 1.0, 1e-20) == 1.0);
    CHECK(isnan(api.binom_pmf(-1, 3, 0.25, 0.75)) && isnan(api.binom_pmf(4, 3, 0.25, 0.75)));
    CHECK(isnan(api.binom_cdf(INT64_MIN, 3, 0.25, 0.75)) && isnan(api.binom_sf(0, 0, 0.25, 0.75)));
    CHECK(isnan(api.binom_log_pmf(1, 3, 0.25, 0.5)) && isnan(api.binom_sf(1, 3, NAN, 0.5)));
}

static void test_clopper_pearson(void)
{
    CHECK(api.cp_lower(0, 10, 0.1) == 0.0 && api.cp_upper(10, 10, 0.1) == 1.0);
    CHECK(fabs(api.cp_lower(10, 10, 0.1) - pow(0.1, 0.1)) < 1e-13);
    static const int64_t bad[][2] = {{-1, 10}, {11, 10}, {0, 0}, {1, (int64_t)INT32_MAX + 1}};
    for (size_t i = 0; i < LENGTH(bad); ++i) {
        CHECK(isnan(api.cp_lower(bad[i][0], bad[i][1], 0.1)));
        CHECK(isnan(api.cp_upper(bad[i][0], bad[i][1], 0.1)));
    }
    CHECK(isnan(api.cp_lower(1, 10, 0.0)) && isnan(api.cp_upper(1, 10, NAN)));
    double *lower = allocate(11 * sizeof *lower);
    CHECK(api.cp_table(10, 0.1, lower, NULL) == 0);
    for (int64_t s = 0; s <= 10; ++s) {
        CHECK(fabs(lower[s] - api.cp_lower(s, 10, 0.1)) <= 1e-13);
    }
    CHECK(api.cp_table(0, 0.1, lower, NULL) == -1 && api.cp_table(10, 1.0, lower, NULL) == -1);
    free(lower);
}

static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* More values than a function from outside gets at a time, some of them no probabilities. */
static void check_fills(const bincp_operator *op)
{
    enum { N = 1100 };
    double *p = allocate(N * sizeof *p), *out = allocate(N * sizeof *out);
    for (size_t i = 0; i < N; ++i) {
        p[i] = i % 97 == 5 ? -0.25 : i % 89 == 7 ? NAN : (double)(i * 7 % N) / (N - 1);
    }
    for (size_t n = N; n > 0; n /= 3) {
        api.lower_fill(op, p, n, out);
        for (size_t i = 0; i < n; ++i) {
            CHECK(same(out[i], op->lower(p[i], op->params)));
        }
        api.upper_fill(op, p, n, out);
        for (size_t i = 0; i < n; ++i) {
            CHECK(same(out[i], op->upper(p[i], op->params)));
        }
        api.fill(op->lower, op->params, p, n, out);
        for (size_t i = 0; i < n; ++i) {
            CHECK(same(out[i], op->lower(p[i], op->params)));
        }
    }
    free(out);
    free(p);
}

static void check_operator(const bincp_operator *op, const char *name)
{
    CHECK(op->abi_version == BINCP_ABI_VERSION && op->struct_size == sizeof *op);
    CHECK(strcmp(op->name, name) == 0);
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        const double p = grid[i], lower = op->lower(p, op->params);
        CHECK(0.0 <= lower && lower <= p && p <= op->upper(p, op->params));
    }
    check_fills(op);
    CHECK(isnan(op->lower(-0.1, op->params)) && isnan(op->upper(NAN, op->params)));
}

static void test_closed_forms(void)
{
    double *storage = allocate(sizeof *storage);
    bincp_operator op = BINCP_OPERATOR_INIT;
    CHECK(api.gaussian(0.5, storage, &op) == 0);
    check_operator(&op, "gaussian");
    CHECK(api.uniform(0.1, storage, &op) == 0);
    check_operator(&op, "uniform");
    CHECK(api.gaussian(-0.5, storage, &op) == -1 && api.uniform(NAN, storage, &op) == -1);
    CHECK(*storage == 0.1 && strcmp(op.name, "uniform") == 0);
    op.abi_version += 1;
    CHECK(api.uniform(0.1, storage, &op) == -1);
    free(storage);
}

/* A longer struct gets the members that we know; one without the optional members gets the others,
 * and no byte behind them is touched. A shorter struct does not exist. */
static void test_other_sizes_of_the_struct(void)
{
    struct {
        bincp_operator known;
        int appended;
    } longer = {BINCP_OPERATOR_INIT, 7};
    double storage;
    longer.known.struct_size = sizeof longer;
    CHECK(api.gaussian(0.5, &storage, &longer.known) == 0);
    CHECK(longer.known.struct_size == sizeof longer && longer.appended == 7);
    CHECK(longer.known.params == &storage);
    longer.known.struct_size = BINCP_OPERATOR_MIN_SIZE - 1;
    CHECK(api.gaussian(0.5, &storage, &longer.known) == -1);
    bincp_operator *shorter = allocate(BINCP_OPERATOR_MIN_SIZE);
    shorter->abi_version = BINCP_ABI_VERSION;
    shorter->struct_size = BINCP_OPERATOR_MIN_SIZE;
    CHECK(api.uniform(0.25, &storage, shorter) == 0);
    CHECK(shorter->struct_size == BINCP_OPERATOR_MIN_SIZE && shorter->params == &storage);
    CHECK(strcmp(shorter->name, "uniform") == 0);
    check_fills(shorter);
    free(shorter);
}

static int refused(const double *clean, const double *perturbed, size_t n, double slack)
{
    void *storage = allocate(api.regions_bytes(n));
    bincp_operator op = BINCP_OPERATOR_INIT;
    const int status = api.regions(clean, perturbed, n, slack, 0.0, storage, &op);
    if (status == 0) {
        check_operator(&op, "regions");
    } else {
        CHECK(op.lower == NULL);
    }
    free(storage);
    return status == -1;
}

static void test_regions(void)
{
    const double many[] = {0.7, 0.3}, few[] = {0.2, 0.8}, half[] = {0.5, 0.4}, out[] = {1.5, -0.5};
    CHECK(!refused(many, few, 2, DBL_EPSILON));
    CHECK(refused(few, many, 2, DBL_EPSILON)); /* increasing order */
    CHECK(refused(half, few, 2, DBL_EPSILON)); /* does not sum to 1 */
    CHECK(refused(many, half, 2, DBL_EPSILON));
    CHECK(refused(out, few, 2, DBL_EPSILON) && refused(many, out, 2, DBL_EPSILON));
    CHECK(refused(many, few, 0, DBL_EPSILON));
    CHECK(refused(many, few, 2, 0.0) && refused(many, few, 2, NAN) && refused(many, few, 2, 0.5));
    const double tiny_clean[] = {1.0, 1e-200, 1e-310}, tiny_perturbed[] = {1e-310, 1e-200, 1.0};
    CHECK(!refused(tiny_clean, tiny_perturbed, 3, DBL_EPSILON));
    CHECK(refused(tiny_perturbed, tiny_clean, 3, DBL_EPSILON)); /* the products underflow */
    const double zeros[] = {1.0, 0.0}, ones[] = {0.0, 1.0};
    CHECK(!refused(zeros, ones, 2, DBL_EPSILON) && refused(ones, zeros, 2, DBL_EPSILON));
    const double around[] = {0.7, 0.0, 0.3}, nothing[] = {0.2, 0.0, 0.8}; /* a region without mass */
    CHECK(!refused(around, nothing, 3, DBL_EPSILON) && refused(nothing, around, 3, DBL_EPSILON));
    const double first[] = {0.0, 0.7, 0.3}, second[] = {0.0, 0.2, 0.8};
    CHECK(!refused(first, second, 3, DBL_EPSILON) && refused(second, first, 3, DBL_EPSILON));
}

static void test_sparse(void)
{
    static const size_t radii[][2] = {{0, 0}, {1, 3}, {0, 5}, {40, 2}};
    for (size_t i = 0; i < LENGTH(radii); ++i) {
        const size_t a = radii[i][0], d = radii[i][1], n = a + d + 1;
        void *storage = allocate(api.sparse_bytes(a, d));
        bincp_operator op = BINCP_OPERATOR_INIT;
        CHECK(api.sparse(a, d, 0.01, 0.6, storage, &op) == 0);
        check_operator(&op, a + d > 0 ? "regions" : "identity");
        CHECK(api.sparse(a, d, 0.4, 0.6, storage, &op) == 0);
        CHECK(strcmp(op.name, a + d > 0 && 0.4 + 0.6 != 1.0 ? "regions" : "identity") == 0);
        CHECK(api.sparse(a, d, 1e-310, 0.6, storage, &op) == -1);
        CHECK(api.sparse(a, d, 0.01, NAN, storage, &op) == -1);
        CHECK(api.sparse((size_t)INT32_MAX + 1, d, 0.01, 0.6, storage, &op) == -1);

        double *masses = allocate(2 * n * sizeof *masses), sum = 0.0;
        CHECK(api.sparse_masses(a, d, 0.01, 0.6, masses, masses + n, storage) == 0);
        for (size_t j = 0; j < n; ++j) {
            sum += masses[j];
        }
        CHECK(fabs(sum - 1.0) <= 1e-14);
        CHECK(api.sparse_masses(a, d, 1.1, 0.6, masses, masses + n, storage) == -1);
        free(masses);
        free(storage);
    }
}

static void test_noise(void)
{
    float row[5], again[5];
    CHECK(api.gaussian_row(1, 0, 2, 3, 0.5f, 5, NULL, row) == 0);
    CHECK(api.gaussian_row(1, 0, 2, 3, 0.5f, 5, NULL, again) == 0);
    CHECK(memcmp(row, again, sizeof row) == 0);
    CHECK(api.gaussian_row(1, 1, 2, 3, 0.5f, 5, NULL, again) == 0);
    CHECK(memcmp(row, again, sizeof row) != 0);
    CHECK(api.gaussian_row(1, 6, 2, 3, 0.5f, 5, NULL, again) == 0);
    CHECK(memcmp(row, again, sizeof row) != 0);
    CHECK(api.uniform_row(1, 0, 2, 3, 0.5f, 5, NULL, row) == 0);
    for (size_t i = 0; i < 5; ++i) {
        CHECK(fabsf(row[i]) <= 0.5f);
        row[i] = (float)(i % 2);
    }
    CHECK(api.flip_row(1, 0, 2, 3, 1.0, 0.0, 5, row, row) == 0);
    for (size_t i = 0; i < 5; ++i) {
        CHECK(row[i] == 1.0f);
    }
    for (uint32_t other = 2; other < 300; other += other == 5 ? 2 : 1) {
        CHECK(api.gaussian_row(1, other, 2, 3, 0.5f, 5, NULL, row) == -1);
    }
    const float zeros[5] = {0.0f};
    CHECK(api.flip_row(1, 0, 2, 3, 0.5, 0.25, 5, zeros, row) == 0);
    CHECK(api.flip_row(1, 0, 2, 3, 0.5, 0.25, 5, NULL, again) == 0);
    CHECK(memcmp(row, again, sizeof row) == 0);
    CHECK(api.laplace_row(1, 0, 2, 3, 0.5f, 5, zeros, row) == 0);
    CHECK(api.laplace_row(1, 0, 2, 3, 0.5f, 5, NULL, again) == 0);
    CHECK(memcmp(row, again, sizeof row) == 0 && row[0] != 0.0f);
    CHECK(api.uniform_row(1, 0, 2, 3, 0.5f, 5, zeros, row) == 0);
    CHECK(api.uniform_row(1, 0, 2, 3, 0.5f, 5, NULL, again) == 0);
    CHECK(memcmp(row, again, sizeof row) == 0);
    row[0] = 1.0f;
    CHECK(api.laplace_row(1, 0, 2, 3, -1.0f, 5, NULL, row) == -1);
    CHECK(api.gaussian_row(1, 0, 2, 3, INFINITY, 5, NULL, row) == -1);
    CHECK(api.gaussian_row(1, 2, 2, 3, 0.5f, 5, NULL, row) == -1);
    CHECK(api.uniform_row(1, 0, (uint64_t)1 << 56, 3, 0.5f, 5, NULL, row) == -1);
    CHECK(api.gaussian_row(1, 0, 2, 3, NAN, 5, NULL, row) == -1);
    CHECK(api.flip_row(1, 0, 2, 3, 1.5, 0.0, 5, row, row) == -1);
    CHECK(api.flip_row(1, 0, 2, 3, 1.0, 0.0, (size_t)1 << 34, row, row) == -1);
    CHECK(row[0] == 1.0f);
}

/* Two columns that decide nothing: both are the point 1 - half. */
static void test_grid_rows(void)
{
    const uint32_t entry[2] = {1, 1}, low[6] = {0};
    const bincp_grid_table table = {entry, low, 1, 1};
    const int32_t k[70] = {5, -3, 1 << 20, -(1 << 20)};
    float row[70], again[70];
    CHECK(api.grid_row(&table, 255, 1, 0, 2, 3, 70, k, row) == 0);
    for (size_t j = 0; j < 70; j++) {
        CHECK(row[j] == (float)k[j] / 255.0f);
    }
    const int32_t zeros[70] = {0}, beyond[1] = {(1 << 20) + 1}, below[1] = {-(1 << 20) - 1};
    CHECK(api.grid_row(&table, 255, 1, 0, 2, 3, 70, zeros, row) == 0);
    CHECK(api.grid_row(&table, 255, 1, 0, 2, 3, 70, NULL, again) == 0);
    CHECK(memcmp(row, again, sizeof row) == 0);
    CHECK(api.grid_row(&table, 255, 1, 0, 2, 3, 1, beyond, row) == -1);
    CHECK(api.grid_row(&table, 255, 1, 0, 2, 3, 1, below, row) == -1);
    CHECK(api.grid_row(&table, 0, 1, 0, 2, 3, 70, k, row) == -1);
    CHECK(api.grid_row(&table, (1 << 20) + 1, 1, 0, 2, 3, 70, k, row) == -1);
    CHECK(api.grid_row(&table, 255, 1, 2, 2, 3, 70, k, row) == -1);
    const bincp_grid_table none = {entry, low, 0, 1}, wide = {entry, low, 17, 1};
    const bincp_grid_table far = {entry, low, 1, 1 << 15}, near = {entry, low, 1, -1};
    CHECK(api.grid_row(&none, 255, 1, 0, 2, 3, 70, k, row) == -1);
    CHECK(api.grid_row(&wide, 255, 1, 0, 2, 3, 70, k, row) == -1);
    CHECK(api.grid_row(&far, 255, 1, 0, 2, 3, 70, k, row) == -1);
    CHECK(api.grid_row(&near, 255, 1, 0, 2, 3, 70, k, row) == -1);
}

/* ---- functions from outside ------------------------------------------------------------------ */

static double shifted(double p, const void *shift)
{
    return fmax(p - *(const double *)shift, 0.0);
}

static double shifted_data(double p, void *shift)
{
    return shifted(p, shift);
}

static double halved(double p)
{
    return 0.5 * p;
}

static double doubled(double p)
{
    return fmin(2.0 * p, 1.0);
}

static double not_a_number(double p)
{
    return p > 0.25 && p < 0.75 ? NAN : p;
}

static double twice(double p)
{
    return 2.0 * p;
}

static double square(double p, const void *params)
{
    (void)params;
    return p * p;
}

static double above(double p, const void *params)
{
    (void)params;
    return fmin(p + 0.5, 1.0);
}

static void test_inverse(void)
{
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        const double p = grid[i], q = bincp_generalised_inverse(square, NULL, p);
        CHECK(q == 1.0 || square(q, NULL) > p);
        CHECK(q == 0.0 || square(nextafter(q, 0.0), NULL) <= p);
    }
    const double none = 0.0, all = 1.0;
    CHECK(bincp_generalised_inverse(shifted, &none, 0.5) == nextafter(0.5, 1.0));
    CHECK(bincp_generalised_inverse(shifted, &all, 0.0) == 1.0);
    CHECK(bincp_generalised_inverse(above, NULL, 0.25) == 4.9406564584124654e-324);
    CHECK(isnan(bincp_generalised_inverse(square, NULL, -0.1)));
    CHECK(isnan(bincp_generalised_inverse(square, NULL, NAN)));
    CHECK(api.inverse == bincp_generalised_inverse);
}

static void test_foreign(void)
{
    double shift = 0.25;
    const bincp_foreign plain = {.lower = {.plain = halved}, .upper = {.plain = doubled}};
    const bincp_foreign data = {.lower = {.with_data = shifted_data, .data = &shift}};
    const bincp_foreign bound = {.lower = {.bound = shifted, .data = &shift}};
    const bincp_operator operators[] = {
        bincp_foreign_operator(&plain, "plain"),
        bincp_foreign_operator(&data, "data"),
        bincp_foreign_operator(&bound, "bound"),
    };
    check_operator(&operators[0], "plain");
    check_operator(&operators[1], "data");
    check_operator(&operators[2], "bound");
    CHECK(operators[1].upper(0.5, operators[1].params) == nextafter(0.75, 1.0));
    CHECK(bincp_function_call(&data.lower, 0.75) == 0.5);
}

static void test_foreign_functions_that_leave_the_range(void)
{
    const bincp_foreign broken = {.lower = {.plain = not_a_number}, .upper = {.plain = twice}};
    const bincp_operator op = bincp_foreign_operator(&broken, "broken");
    CHECK(isnan(op.lower(0.5, op.params)) && op.lower(0.25, op.params) == 0.25);
    CHECK(isnan(op.upper(0.75, op.params)) && op.upper(0.5, op.params) == 1.0);
    CHECK(isnan(op.lower(1.5, op.params)) && isnan(op.upper(-1.0, op.params)));
    const bincp_foreign inverted = {.lower = {.plain = not_a_number}};
    const bincp_operator other = bincp_foreign_operator(&inverted, "inverted");
    CHECK(isnan(other.upper(0.8, other.params)));
}

/* ---- functions from outside for arrays ---------------------------------------------------------- */

static long fill_calls;

static void shifted_fill(const double *p, size_t n, const void *shift, double *out)
{
    ++fill_calls;
    for (size_t i = 0; i < n; ++i) {
        CHECK(p[i] >= 0.0 && p[i] <= 1.0); /* all that a function from outside is ever given */
        out[i] = shifted(p[i], shift);
    }
}

static double raised(double p, const void *shift)
{
    return fmin(p + *(const double *)shift, 1.0);
}

static void raised_fill(const double *p, size_t n, const void *shift, double *out)
{
    ++fill_calls;
    for (size_t i = 0; i < n; ++i) {
        out[i] = raised(p[i], shift);
    }
}

/* Leaves [0, 1] at p = 0, gives NaN at p = 1, and writes nothing at p = 1/2. */
static void broken_fill(const double *p, size_t n, const void *shift, double *out)
{
    (void)shift;
    for (size_t i = 0; i < n; ++i) {
        if (p[i] != 0.5) {
            out[i] = p[i] == 0.0 ? -1e-300 : p[i] == 1.0 ? NAN : 0.25;
        }
    }
}

static void test_foreign_fills(void)
{
    const double shift = 0.25;
    const bincp_operator given = {
        BINCP_ABI_VERSION, sizeof given, "given", shifted, raised, &shift, shifted_fill, raised_fill,
    };
    const bincp_foreign functions = bincp_foreign_functions(&given);
    const bincp_operator op = bincp_foreign_operator(&functions, "given");
    fill_calls = 0;
    check_operator(&op, "given");
    CHECK(fill_calls > 0);
    /* The table calls the functions of any operator, also of one without a guard. */
    double out[LENGTH(grid)];
    fill_calls = 0;
    api.lower_fill(&given, grid, LENGTH(grid), out);
    CHECK(fill_calls == 1 && out[4] == shifted(grid[4], &shift));
    api.upper_fill(&given, grid, LENGTH(grid), out);
    CHECK(fill_calls == 2 && out[4] == raised(grid[4], &shift));
}

static void test_foreign_fills_that_leave_the_range(void)
{
    const double shift = 0.25, p[] = {0.0, 0.5, 1.0, 0.75, -1.0};
    double out[5];
    const bincp_operator given = {
        BINCP_ABI_VERSION, sizeof given, "given", shifted, NULL, &shift, broken_fill, NULL,
    };
    const bincp_foreign functions = bincp_foreign_functions(&given);
    const bincp_operator op = bincp_foreign_operator(&functions, "broken");
    for (size_t i = 0; i < 5; ++i) {
        out[i] = 0.125; /* what nobody writes must not be taken for a bound */
    }
    api.lower_fill(&op, p, 5, out);
    CHECK(isnan(out[0]) && isnan(out[1]) && isnan(out[2]) && out[3] == 0.25 && isnan(out[4]));
    CHECK(op.upper_fill == NULL);
    api.upper_fill(&op, p, 2, out);
    CHECK(out[1] == nextafter(0.75, 1.0));
}

/* A struct of the time before the fills, in memory with no byte to spare: nothing is read behind its
 * end, where a newer struct has its fills. */
static void test_a_struct_without_the_optional_members(void)
{
    const double shift = 0.25;
    bincp_operator *old = allocate(BINCP_OPERATOR_MIN_SIZE);
    old->abi_version = BINCP_ABI_VERSION;
    old->struct_size = BINCP_OPERATOR_MIN_SIZE;
    old->name = "old";
    old->lower = shifted;
    old->upper = raised;
    old->params = &shift;
    const bincp_foreign functions = bincp_foreign_functions(old);
    CHECK(functions.lower.fill == NULL && functions.upper.fill == NULL);
    const bincp_operator op = bincp_foreign_operator(&functions, "old");
    check_operator(&op, "old");
    free(old);
    /* One that ends between the two members has the first of them. */
    bincp_operator half = {
        BINCP_ABI_VERSION, 0, "half", shifted, raised, &shift, shifted_fill, raised_fill,
    };
    half.struct_size = (uint32_t)offsetof(bincp_operator, upper_fill);
    const bincp_foreign one = bincp_foreign_functions(&half);
    CHECK(one.lower.fill == shifted_fill && one.upper.fill == NULL);
}

static double plain_half(double p)
{
    return p / 2;
}

static double data_half(double p, void *data)
{
    (void)data;
    return p / 2;
}

static double bound_half(double p, const void *data)
{
    (void)data;
    return p / 2;
}

/* Each argument that is refused, alone. */
static void test_each_refusal(void)
{
    static const double bad[] = {-0.5, 1.5, NAN};
    for (int i = 0; i < 3; i++) {
        CHECK(isnan(api.binom_pmf(1, 2, bad[i], 0.5)) && isnan(api.binom_pmf(1, 2, 0.5, bad[i])));
        CHECK(isnan(api.binom_sf(1, 2, bad[i], 0.5)) && isnan(api.binom_sf(1, 2, 0.5, bad[i])));
    }
    CHECK(isnan(api.binom_pmf(3, 2, 0.5, 0.5)) && isnan(api.binom_log_pmf(3, 2, 0.5, 0.5)));
    CHECK(isnan(api.binom_cdf(3, 2, 0.5, 0.5)) && isnan(api.binom_sf(3, 2, 0.5, 0.5)));
    CHECK(isnan(api.binom_pmf(1, 2, 0.5, 0.25)) && isnan(api.binom_log_pmf(1, 2, 0.5, 0.25)));
    CHECK(isnan(api.binom_cdf(1, 2, 0.5, 0.25)));

    static const double many[] = {0.7, 0.3}, few[] = {0.2, 0.8};
    void *storage = allocate(api.regions_bytes(2) + api.sparse_bytes(1, 1));
    bincp_operator op = BINCP_OPERATOR_INIT, foreign = BINCP_OPERATOR_INIT;
    foreign.abi_version = BINCP_ABI_VERSION + 1;
    CHECK(api.regions(many, few, 2, DBL_EPSILON, -1.0, storage, &op) == -1);
    CHECK(api.regions(many, few, 2, DBL_EPSILON, NAN, storage, &op) == -1);
    CHECK(api.regions(many, few, 2, DBL_EPSILON, 0.0, storage, &foreign) == -1);
    CHECK(api.regions(many, few, (size_t)INT32_MAX + 1, DBL_EPSILON, 0.0, storage, &op) == -1);
    CHECK(api.sparse(1, 1, 0.01, 0.6, storage, &foreign) == -1);
    CHECK(api.sparse(1, 1, 1.5, 0.6, storage, &op) == -1);
    CHECK(api.sparse(1, 1, 0.01, 1.5, storage, &op) == -1);
    CHECK(api.sparse(1, INT32_MAX, 0.01, 0.6, storage, &op) == -1);
    CHECK(api.sparse(1, 1, 0.0, 0.6, storage, &op) == 0 && api.sparse(1, 1, 0.01, 0.0, storage, &op) == 0);
    CHECK(api.regions(many, few, 2, DBL_EPSILON, 0.0, storage, &op) == 0);
    free(storage);

    float row[5] = {0.0f};
    CHECK(api.flip_row(1, 0, 2, 3, 0.5, 1.5, 5, row, row) == -1);
    CHECK(api.flip_row(1, 0, 2, 3, 0.5, NAN, 5, row, row) == -1);
    CHECK(api.flip_row(1, 2, 2, 3, 0.5, 0.5, 5, row, row) == -1);
    const bincp_function none = {NULL, NULL, NULL, NULL, NULL};
    CHECK(!bincp_function_is_given(&none));
    bincp_function one = none;
    one.with_data = data_half;
    CHECK(bincp_function_is_given(&one));
    one = none;
    one.bound = bound_half;
    CHECK(bincp_function_is_given(&one));
    one = none;
    one.plain = plain_half;
    CHECK(bincp_function_is_given(&one));
}

int main(void)
{
    api = bincp_api_make(operator_of);
    test_every_member_is_there();
    test_counting();
    test_counting_16_bits();
    test_clopper_pearson();
    test_binomial();
    test_closed_forms();
    test_other_sizes_of_the_struct();
    test_regions();
    test_sparse();
    test_noise();
    test_grid_rows();
    test_inverse();
    test_foreign();
    test_foreign_functions_that_leave_the_range();
    test_foreign_fills();
    test_foreign_fills_that_leave_the_range();
    test_a_struct_without_the_optional_members();
    test_each_refusal();
    return report("capi");
}
