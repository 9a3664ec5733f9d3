/* Bounds of every operator: in [0, 1], on their sides, without a fall, and arrays as single values. */
#include "certificates/combined.h"
#include "certificates/location.h"
#include "certificates/operators.h"
#include "certificates/sparse_regions.h"
#include "certificates/steps.h"

#include <math.h>

#include "fuzz.h"

enum { MOST = 40, N = 33 };

static int same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(const bincp_operator *op, bytes *from)
{
    double p[N], low[N], high[N];
    for (int i = 0; i < N; i++) {
        p[i] = probability_from(from);
    }
    const int in_order = byte_of(from) % 2;
    if (in_order) {
        qsort(p, N, sizeof *p, ascending);
    }
    bincp_lower_fill(op, p, N, low);
    bincp_upper_fill(op, p, N, high);
    for (int i = 0; i < N; i++) {
        REQUIRE(same(low[i], op->lower(p[i], op->params)));
        REQUIRE(same(high[i], op->upper(p[i], op->params)));
        REQUIRE(!signbit(low[i]) && !signbit(high[i])); /* -0 is taken for 0 */
        REQUIRE(0.0 <= low[i] && low[i] <= p[i] && p[i] <= high[i] && high[i] <= 1.0);
        if (in_order && i > 0) { /* up to the rounding that bincp.h states */
            REQUIRE(low[i - 1] <= low[i] * (1 + 1e-12) + 1e-15);
            REQUIRE(high[i - 1] <= high[i] * (1 + 1e-12) + 1e-15);
        }
        /* The law: going down and up again ends where it began, or above. */
        REQUIRE(low[i] < 1e-290 || op->upper(low[i], op->params) >= p[i] * (1 - 1e-9) - 1e-13);
    }
    const double outside = double_from(from);
    if (!(outside >= 0.0 && outside <= 1.0)) {
        REQUIRE(isnan(op->lower(outside, op->params)) && isnan(op->upper(outside, op->params)));
    }
}

static double shift_from(bytes *from)
{
    const double value = fabs(double_from(from));
    return isnan(value) ? INFINITY : byte_of(from) % 2 ? value : fmod(value, 50.0);
}

static void sparse(bytes *from)
{
    const size_t additions = byte_of(from) % MOST, deletions = byte_of(from) % MOST;
    const size_t n = additions + deletions + 1;
    double p_plus = probability_from(from), p_minus = probability_from(from);
    p_plus = p_plus < 1e-300 ? 0.0 : p_plus;
    p_minus = p_minus < 1e-300 ? 0.0 : p_minus;
    void *storage = memory(bincp_operator_regions_bytes(n));
    double *workspace = memory(bincp_operator_sparse_workspace(additions, deletions) * sizeof(double));
    const bincp_operator op
        = bincp_operator_sparse(additions, deletions, p_plus, p_minus, storage, workspace);
    check(&op, from);
    free(storage);
    free(workspace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bincp_builtin kinds[] = {BINCP_IDENTITY, BINCP_GAUSSIAN, BINCP_UNIFORM,
                                          BINCP_LAPLACE, BINCP_LAPLACE_UNIFORM,
                                          BINCP_HALF_POWER};
    bytes from = {data, size};
    const int kind = byte_of(&from) % 10;
    double shifts[2] = {shift_from(&from), shift_from(&from)};
    const bincp_steps steps = {1.0 + (double)(word_of(&from) >> 14), 0.0};
    bincp_steps move = {fmin(steps.levels, BINCP_MAX_LEVELS), 0.0};
    move.steps = floor(move.levels * probability_from(&from));
    if (kind == 9) {
        sparse(&from);
        return 0;
    }
    const bincp_operator first = kind < 6 ? bincp_operator_make(kinds[kind], shifts)
                                          : bincp_operator_make(BINCP_GAUSSIAN, shifts),
                         second = bincp_operator_make(BINCP_STEPS, &move);
    const bincp_operator *const parts[] = {&first, &second};
    const bincp_chain chain = {parts, 2, 1 + byte_of(&from) % 3};
    const bincp_best best = {parts, 2};
    const bincp_operator op = kind < 6   ? first
                              : kind < 7 ? second
                              : kind < 8 ? bincp_operator_chain(&chain)
                                         : bincp_operator_best(&best);
    check(&op, &from);
    return 0;
}
