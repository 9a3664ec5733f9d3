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
    CHECK(api.count_float32(scores, 2, 2, NAN, counts) == -1);
    CHECK(api.count_float64(wide, 1, 4, NAN, counts) == -1);
    CHECK(api.count_float32(scores, 1, (size_t)INT32_MAX + 1, 0.5f, counts) == -1);
    CHECK(counts[0] == 3);
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

static void check_operator(const bincp_operator *op, const char *name)
{
    CHECK(op->abi_version == BINCP_ABI_VERSION && op->struct_size == sizeof *op);
    CHECK(strcmp(op->name, name) == 0);
    for (size_t i = 0; i < LENGTH(grid); ++i) {
        const double p = grid[i], lower = op->lower(p, op->params);
        CHECK(0.0 <= lower && lower <= p && p <= op->upper(p, op->params));
        double filled;
        api.fill(op->lower, op->params, &p, 1, &filled);
        CHECK(filled == lower);
    }
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

/* Of a longer struct, what we know is written; a shorter one does not exist. */
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
    CHECK(api.uniform_row(1, 0, (uint64_t)1 << 56, 3, 0.5f, 5, NULL, row) == -1);
    CHECK(api.gaussian_row(1, 0, 2, 3, NAN, 5, NULL, row) == -1);
    CHECK(api.flip_row(1, 0, 2, 3, 1.5, 0.0, 5, row, row) == -1);
    CHECK(api.flip_row(1, 0, 2, 3, 1.0, 0.0, (size_t)1 << 34, row, row) == -1);
    CHECK(row[0] == 1.0f);
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
    const bincp_foreign plain = {{halved, NULL, NULL, NULL}, {doubled, NULL, NULL, NULL}};
    const bincp_foreign data = {{NULL, shifted_data, NULL, &shift}, {NULL, NULL, NULL, NULL}};
    const bincp_foreign bound = {{NULL, NULL, shifted, &shift}, {NULL, NULL, NULL, NULL}};
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
    const bincp_foreign broken = {{not_a_number, NULL, NULL, NULL}, {twice, NULL, NULL, NULL}};
    const bincp_operator op = bincp_foreign_operator(&broken, "broken");
    CHECK(isnan(op.lower(0.5, op.params)) && op.lower(0.25, op.params) == 0.25);
    CHECK(isnan(op.upper(0.75, op.params)) && op.upper(0.5, op.params) == 1.0);
    CHECK(isnan(op.lower(1.5, op.params)) && isnan(op.upper(-1.0, op.params)));
    const bincp_foreign inverted = {{not_a_number, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    const bincp_operator other = bincp_foreign_operator(&inverted, "inverted");
    CHECK(isnan(other.upper(0.8, other.params)));
}

int main(void)
{
    api = bincp_api_make(operator_of);
    test_every_member_is_there();
    test_counting();
    test_clopper_pearson();
    test_closed_forms();
    test_other_sizes_of_the_struct();
    test_regions();
    test_sparse();
    test_noise();
    test_inverse();
    test_foreign();
    test_foreign_functions_that_leave_the_range();
    return report("capi");
}
