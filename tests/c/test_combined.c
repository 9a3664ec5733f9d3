/* Operators made of operators alone, for the sanitizers: `make -C tests/c`.
 *
 * Values follow from closed forms: shifts of uniform noise add up, and hierarchical noise over the
 * identity is clip(p - (1 - w)). Arrays are allocated to size, so that a step beyond them is seen.
 */
#include "certificates/combined.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "certificates/operators.h"
#include "check.h"

enum { N = 1300 }; /* more than two chunks */

static double *probabilities(void)
{
    double *p = malloc(N * sizeof *p);
    if (p == NULL) {
        abort();
    }
    for (size_t i = 0; i < N; ++i) {
        p[i] = (double)i / (N - 1);
    }
    p[1] = 4.9406564584124654e-324;
    p[N - 2] = 1.0 - DBL_EPSILON / 2;
    p[600] = NAN;
    p[601] = -1.0;
    p[602] = 1.5;
    return p;
}

static int same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* Arrays have the bits of single values, and what is no probability has the bound NaN. */
static void check_fills(const bincp_operator *op)
{
    double *const p = probabilities(), *const out = malloc(N * sizeof *out);
    if (out == NULL) {
        abort();
    }
    bincp_lower_fill(op, p, N, out);
    for (size_t i = 0; i < N; ++i) {
        CHECK(same(out[i], op->lower(p[i], op->params)));
        CHECK(isnan(out[i]) || (out[i] >= 0.0 && out[i] <= p[i]));
    }
    bincp_upper_fill(op, p, N, out);
    for (size_t i = 0; i < N; ++i) {
        CHECK(same(out[i], op->upper(p[i], op->params)));
        CHECK(isnan(out[i]) || (out[i] <= 1.0 && out[i] >= p[i]));
    }
    for (size_t i = 600; i < 603; ++i) {
        CHECK(isnan(out[i]));
    }
    free(p);
    free(out);
}

static void test_chain(void)
{
    const double shifts[2] = {0.125, 0.25};
    const bincp_operator first = bincp_operator_make(BINCP_UNIFORM, &shifts[0]);
    const bincp_operator second = bincp_operator_make(BINCP_GAUSSIAN, &shifts[1]);
    const bincp_operator *const parts[2] = {&first, &second};
    const bincp_chain chain = {parts, 2, 1}, twice = {parts, 1, 2}, none = {parts, 2, 0};
    const bincp_operator op = bincp_operator_chain(&chain);
    CHECK(op.lower(0.75, op.params) == second.lower(0.625, second.params));
    CHECK(op.upper(0.5, op.params) == second.upper(0.5, second.params) + 0.125); /* the other order */
    check_fills(&op);
    const bincp_operator repeated = bincp_operator_chain(&twice);
    CHECK(repeated.lower(0.75, repeated.params) == 0.5);
    CHECK(repeated.upper(0.75, repeated.params) == 1.0);
    check_fills(&repeated);
    const bincp_operator identity = bincp_operator_chain(&none);
    CHECK(identity.lower(0.3, identity.params) == 0.3);
    check_fills(&identity);
}

static void test_best(void)
{
    const double shifts[2] = {0.125, 0.5};
    const bincp_operator first = bincp_operator_make(BINCP_UNIFORM, &shifts[0]);
    const bincp_operator second = bincp_operator_make(BINCP_GAUSSIAN, &shifts[1]);
    const bincp_operator *const parts[2] = {&first, &second};
    const bincp_best best = {parts, 2};
    const bincp_operator op = bincp_operator_best(&best);
    CHECK(op.lower(0.5, op.params) == 0.375);
    CHECK(op.lower(0.01, op.params) == second.lower(0.01, second.params));
    CHECK(op.upper(0.99, op.params) == second.upper(0.99, second.params));
    check_fills(&op);
}

static void test_hierarchy(void)
{
    const bincp_operator identity = bincp_operator_make(BINCP_IDENTITY, NULL);
    const bincp_hierarchy quarter = {&identity, 0.25, 0.25, 0.75, 0.0};
    const bincp_operator op = bincp_operator_hierarchy(&quarter);
    for (double p = 0.0; p <= 1.0; p += 0.0625) {
        const double lower = fmax(p - 0.75, 0.0), upper = fmin(p + 0.75, 1.0);
        CHECK(op.lower(p, op.params) <= lower && op.lower(p, op.params) >= lower - 4 * DBL_EPSILON);
        CHECK(op.upper(p, op.params) >= upper && op.upper(p, op.params) <= upper + 4 * DBL_EPSILON);
    }
    check_fills(&op);
    const double tiny = 1e-310; /* a share that is subnormal */
    const bincp_hierarchy rare = {&identity, tiny, tiny, 1.0, 0.0};
    const bincp_operator last = bincp_operator_hierarchy(&rare);
    CHECK(last.lower(1.0, last.params) <= tiny);
    CHECK(last.lower(1.0 - DBL_EPSILON / 2, last.params) == 0.0);
    CHECK(last.upper(0.0, last.params) == 1.0);
    check_fills(&last);
}

/* A part from outside may return NaN; no value may come of it. */
static double not_a_number(double p, const void *params)
{
    (void)p;
    (void)params;
    return NAN;
}

static void test_nan_stays(void)
{
    bincp_operator outside = bincp_operator_make(BINCP_IDENTITY, NULL);
    outside.lower = outside.upper = not_a_number;
    const bincp_operator identity = bincp_operator_make(BINCP_IDENTITY, NULL);
    const bincp_operator *const parts[2] = {&outside, &identity};
    const bincp_operator *const turned[2] = {&identity, &outside};
    const bincp_chain chain = {parts, 2, 1};
    const bincp_best best = {parts, 2}, other = {turned, 2};
    const bincp_hierarchy half = {&outside, 0.5, 0.5, 0.5, 0.0};
    const bincp_operator made[4] = {bincp_operator_chain(&chain), bincp_operator_best(&best),
                                    bincp_operator_best(&other), bincp_operator_hierarchy(&half)};
    for (size_t i = 0; i < 4; ++i) {
        CHECK(isnan(made[i].lower(0.75, made[i].params)));
        CHECK(isnan(made[i].upper(0.25, made[i].params)));
    }
}

/* Where nothing is left to move, the parts are not asked: this one counts its calls. */
static long calls;

static double counting_lower(double p, const void *params)
{
    (void)params;
    ++calls;
    return fmax(p - 0.25, 0.0);
}

static double counting_upper(double p, const void *params)
{
    (void)params;
    ++calls;
    return fmin(p + 0.25, 1.0);
}

static void test_chain_that_is_at_its_end(void)
{
    const bincp_operator part = {.abi_version = BINCP_ABI_VERSION,
                                 .struct_size = sizeof(bincp_operator),
                                 .name = "counting",
                                 .lower = counting_lower,
                                 .upper = counting_upper};
    const bincp_operator *const parts[] = {&part};
    const bincp_chain chain = {parts, 1, 1000};
    const bincp_operator op = bincp_operator_chain(&chain);
    const double p[] = {0.0, 0.5}, q[] = {1.0, 0.5};
    double out[2];
    calls = 0;
    bincp_lower_fill(&op, p, 2, out);
    CHECK(out[0] == 0.0 && out[1] == 0.0 && calls == 4); /* two rounds of two */
    bincp_upper_fill(&op, q, 2, out);
    CHECK(out[0] == 1.0 && out[1] == 1.0 && calls == 8);
}

int main(void)
{
    test_chain();
    test_best();
    test_hierarchy();
    test_nan_stays();
    test_chain_that_is_at_its_end();
    return report("combined");
}
