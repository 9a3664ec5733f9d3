/* The counting kernels alone, for the sanitizers: `make -C tests/c`.
 *
 * Compiled also with -DBINCP_NO_CLONES, alone and with -mavx2, it checks the other variants. The
 * reference widens each score to double and compares. Every buffer is allocated to its exact size,
 * so that reading beyond one is caught.
 */
#include "counting/count.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "scores.h"

static const bincp_score_type TYPES[] = {BINCP_FLOAT16, BINCP_BFLOAT16, BINCP_FLOAT32,
                                         BINCP_FLOAT64};
static uint64_t state = 88172645463325252u;

static uint32_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static ptrdiff_t random_below(ptrdiff_t n)
{
    return (ptrdiff_t)(random_bits() % (uint32_t)n);
}

/* How many of m scores reach the threshold, one by one. */
static int32_t slow_count(bincp_score_type type, const char *scores, ptrdiff_t m, ptrdiff_t stride,
                          const char *threshold)
{
    int32_t count = 0;
    for (ptrdiff_t k = 0; k < m; k++)
        count += score_at(type, scores + k * stride) >= score_at(type, threshold);
    return count;
}

/* The score of a type, among its bits as a half, its bits as a brain float, and its value. */
static void store_one(bincp_score_type type, char *p, uint16_t half, uint16_t brain, double value)
{
    const float single = (float)value;
    switch (type) {
    case BINCP_FLOAT16:
        memcpy(p, &half, 2);
        break;
    case BINCP_BFLOAT16:
        memcpy(p, &brain, 2);
        break;
    case BINCP_FLOAT32:
        memcpy(p, &single, 4);
        break;
    default:
        memcpy(p, &value, 8);
    }
}

/* A score from a small set, so that ties are common; zeros, infinities and subnormals are in it. */
static void store_random(bincp_score_type type, char *p)
{
    static const uint16_t HALVES[] = {0,      0x8000, 1,      0x8001, 0x3800, 0xb800,
                                      0x3801, 0x7c00, 0xfc00, 0x7bff, 0x0400, 0xfbff};
    static const uint16_t BRAINS[] = {0,      0x8000, 1,      0x8001, 0x3f00, 0xbf00,
                                      0x3f01, 0x7f80, 0xff80, 0x7f7f, 0x0080, 0xff7f};
    static const double VALUES[] = {
        0.0,  -0.0, 1e-45, -1e-45, 0.5, -0.5, 0.75, (double)INFINITY, -(double)INFINITY,
        1e38, 0.7,  -1e38};
    const ptrdiff_t i = random_below(12);
    store_one(type, p, HALVES[i], BRAINS[i], VALUES[i]);
}

static void store_nan(bincp_score_type type, char *p)
{
    static const uint16_t HALVES[] = {0x7c01, 0x7fff, 0xfc01, 0xffff};
    static const uint16_t BRAINS[] = {0x7f81, 0x7fff, 0xff81, 0xffff};
    const ptrdiff_t i = random_below(4);
    store_one(type, p, HALVES[i], BRAINS[i], (double)(i & 1 ? NAN : -NAN));
}

static void *allocate(ptrdiff_t bytes)
{
    void *memory = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (memory == NULL)
        exit(EXIT_FAILURE);
    return memory;
}

/* Scores of shape (a, b, m) in any order of axes, with gaps and of either direction; thresholds of
   shape (a, b), (b) or (); then all counts and decisions against the reference. */
static void check_array(bincp_score_type type, ptrdiff_t a, ptrdiff_t b, ptrdiff_t m)
{
    const ptrdiff_t size = SCORE_SIZES[type];
    const ptrdiff_t lengths[3] = {a, b, m};
    int order[3] = {0, 1, 2};
    ptrdiff_t strides[3], start = size * random_below(3), end = size;
    for (int i = 2; i > 0; i--) { /* a random order, half the time the natural one */
        const ptrdiff_t j = random_below(2) ? i : random_below(i + 1);
        const int swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (int i = 2; i >= 0; i--) {
        const int axis = order[i];
        strides[axis] = end * (random_below(4) == 0 ? 2 : 1);
        if (lengths[axis] > 0)
            end = (lengths[axis] - 1) * strides[axis] + end;
    }
    char *memory = allocate(start + end);
    for (ptrdiff_t byte = 0; byte + size <= start + end; byte += size)
        store_random(type, memory + byte);
    char *scores = memory + start;
    for (int axis = 0; axis < 3; axis++)
        if (random_below(4) == 0 && lengths[axis] > 0) {
            scores += (lengths[axis] - 1) * strides[axis];
            strides[axis] = -strides[axis];
        }

    const int shared = (int)random_below(3);
    const ptrdiff_t threshold_strides[2] = {shared > 0 ? 0 : b * size, shared > 1 ? 0 : size};
    const ptrdiff_t n_thresholds = shared > 1 ? 1 : shared > 0 ? b : a * b;
    char *thresholds = allocate(n_thresholds * size);
    for (ptrdiff_t i = 0; i < n_thresholds; i++)
        store_random(type, thresholds + i * size);

    const ptrdiff_t count_strides[2] = {4 * b, 4}, decision_strides[2] = {b, 1};
    const ptrdiff_t least_strides[2] = {0, 8};
    int32_t *counts = allocate(4 * a * b);
    unsigned char *decisions = allocate(a * b);
    int64_t *least = allocate(8 * b);
    for (ptrdiff_t i = 0; i < b; i++)
        least[i] = random_below(m + 2);

    const bincp_count_task task = {
        .type = type,
        .n_axes = 2,
        .shape = lengths,
        .n_samples = m,
        .scores = scores,
        .score_strides = strides,
        .sample_stride = strides[2],
        .thresholds = thresholds,
        .threshold_strides = threshold_strides,
    };
    CHECK(bincp_count(&task, counts, count_strides) == 0);
    CHECK(bincp_decide(&task, least, least_strides, decisions, decision_strides) == 0);
    long wrong = 0;
    for (ptrdiff_t i = 0; i < a; i++)
        for (ptrdiff_t j = 0; j < b; j++) {
            const char *t = thresholds + i * threshold_strides[0] + j * threshold_strides[1];
            const int32_t count
                = slow_count(type, scores + i * strides[0] + j * strides[1], m, strides[2], t);
            wrong += counts[i * b + j] != count || decisions[i * b + j] != (count >= least[j]);
        }
    CHECK(wrong == 0);

    if (a * b * m > 0) {
        store_nan(type, scores + random_below(a) * strides[0] + random_below(b) * strides[1] +
                            random_below(m) * strides[2]);
        CHECK(bincp_count(&task, counts, count_strides) == 1);
        CHECK(bincp_decide(&task, least, least_strides, decisions, decision_strides) == 1);
    }
    free(memory);
    free(thresholds);
    free(counts);
    free(decisions);
    free(least);
}

/* More scores in one row than a 16-bit counter holds, in each layout. */
static void check_long(bincp_score_type type)
{
    const ptrdiff_t size = SCORE_SIZES[type], n = 3, m = 200001;
    const ptrdiff_t layouts[][2] = {{m * size, size}, {size, n * size}, {m * size * 2, size * 2}};
    char *memory = calloc((size_t)(2 * n * m), (size_t)size);
    CHECK(memory != NULL);
    for (int i = 0; i < 3 && memory != NULL; i++) {
        const ptrdiff_t shared = 0, count_stride = 4;
        int32_t counts[3] = {0};
        const bincp_count_task task = {
            .type = type,
            .n_axes = 1,
            .shape = &n,
            .n_samples = m,
            .scores = memory,
            .score_strides = &layouts[i][0],
            .sample_stride = layouts[i][1],
            .thresholds = memory, /* zero, as every score is */
            .threshold_strides = &shared,
        };
        CHECK(bincp_count(&task, counts, &count_stride) == 0);
        CHECK(counts[0] == m && counts[1] == m && counts[2] == m);
    }
    free(memory);
}

/* Rows of one axis, with these strides in bytes, against comparisons one by one. */
static void check_rows(bincp_score_type type, const char *first, ptrdiff_t n, ptrdiff_t m,
                       ptrdiff_t row_stride, ptrdiff_t sample_stride, const char *threshold)
{
    const ptrdiff_t shared = 0, count_stride = 4;
    int32_t *counts = allocate(4 * n);
    const bincp_count_task task = {
        .type = type,
        .n_axes = 1,
        .shape = &n,
        .n_samples = m,
        .scores = first,
        .score_strides = &row_stride,
        .sample_stride = sample_stride,
        .thresholds = threshold,
        .threshold_strides = &shared,
    };
    CHECK(bincp_count(&task, counts, &count_stride) == 0);
    long wrong = 0;
    for (ptrdiff_t row = 0; row < n; row++) {
        wrong += counts[row]
                 != slow_count(type, first + row * row_stride, m, sample_stride, threshold);
    }
    CHECK(wrong == 0);
    free(counts);
}

/* Adjacent rows of every length around those that have loops of their own, and rows beside one another
 * of every number around those whose samples are counted side by side. */
static void check_layouts(bincp_score_type type)
{
    enum { ROWS = 5, MOST = 300, WIDEST = 600 };
    const ptrdiff_t size = SCORE_SIZES[type];
    char *scores = allocate(size * WIDEST * 40), *threshold = allocate(size);
    for (ptrdiff_t i = 0; i < WIDEST * 40; i++)
        store_random(type, scores + i * size);
    store_random(type, threshold);
    for (ptrdiff_t m = 0; m <= MOST; m++) {
        int32_t counts[ROWS];
        CHECK(bincp_count_rows(type, scores, ROWS, (size_t)m, threshold, counts) == 0);
        long wrong = 0;
        for (ptrdiff_t row = 0; row < ROWS; row++) {
            wrong += counts[row] != slow_count(type, scores + row * m * size, m, size, threshold);
        }
        CHECK(wrong == 0);
    }
    for (ptrdiff_t n = 1; n <= WIDEST; n += n < 70 ? 1 : 53) {
        const ptrdiff_t layouts[][2] = {{size, n * size}, {-size, n * size}, {0, size}, {size, 0}};
        for (int i = 0; i < 4; i++) {
            const char *first = scores + (i == 1 ? (n - 1) * size : 0);
            check_rows(type, first, n, 37, layouts[i][0], layouts[i][1], threshold);
        }
    }
    for (ptrdiff_t m = 30; m <= 70; m++) /* a score between two rows */
        check_rows(type, scores, ROWS, m, (m + 1) * size, size, threshold);
    free(scores);
    free(threshold);
}

/* Axes that repeat rows, before and behind an axis that does not, and no samples in a reversed row. */
static void check_repeats(bincp_score_type type)
{
    enum { A = 3, B = 4, M = 5 };
    const ptrdiff_t size = SCORE_SIZES[type], shape[2] = {A, B}, count_strides[2] = {4 * B, 4};
    const ptrdiff_t zeros[2] = {0, 0}, steps[][2] = {{0, M}, {M, 0}, {0, 0}, {M, B * M}};
    char *scores = allocate(size * (A + 1) * B * M), *threshold = allocate(size);
    for (ptrdiff_t i = 0; i < (A + 1) * B * M; i++)
        store_random(type, scores + i * size);
    store_random(type, threshold);
    for (int i = 0; i < 4; i++)
        for (ptrdiff_t m = 0; m <= M; m += M) {
            const ptrdiff_t strides[2] = {steps[i][0] * size, steps[i][1] * size};
            const int reversed = m == 0;
            int32_t counts[A * B];
            const bincp_count_task task = {
                .type = type,
                .n_axes = 2,
                .shape = shape,
                .n_samples = m,
                .scores = scores,
                .score_strides = strides,
                .sample_stride = reversed ? -size : size,
                .thresholds = threshold,
                .threshold_strides = zeros,
            };
            CHECK(bincp_count(&task, counts, count_strides) == 0);
            long wrong = 0;
            for (ptrdiff_t row = 0; row < A * B; row++) {
                const char *first = scores + row / B * strides[0] + row % B * strides[1];
                wrong += counts[row] != slow_count(type, first, m, size, threshold);
            }
            CHECK(wrong == 0);
        }
    free(scores);
    free(threshold);
}

/* Four axes with gaps between them, so that none is the continuation of another. */
static void check_axes(bincp_score_type type)
{
    enum { AXES = 4, M = 3, LONGEST = 4 };
    const ptrdiff_t size = SCORE_SIZES[type], shape[AXES] = {2, 3, LONGEST, 2}, zeros[AXES] = {0};
    ptrdiff_t strides[AXES], count_strides[AXES], rows = 1, step = size * (M + 1);
    for (int axis = AXES - 1; axis >= 0; axis--) {
        strides[axis] = step;
        count_strides[axis] = 4 * rows;
        step = (shape[axis] + 1) * step;
        rows *= shape[axis];
    }
    char *scores = allocate(step), *threshold = allocate(size);
    for (ptrdiff_t i = 0; i < step / size; i++)
        store_random(type, scores + i * size);
    store_random(type, threshold);
    int32_t *counts = allocate(4 * rows);
    const bincp_count_task task = {
        .type = type,
        .n_axes = AXES,
        .shape = shape,
        .n_samples = M,
        .scores = scores,
        .score_strides = strides,
        .sample_stride = size,
        .thresholds = threshold,
        .threshold_strides = zeros,
    };
    CHECK(bincp_count(&task, counts, count_strides) == 0);
    long wrong = 0;
    for (ptrdiff_t row = 0; row < rows; row++) {
        const char *first = scores;
        ptrdiff_t rest = row;
        for (int axis = AXES - 1; axis >= 0; axis--) {
            first += rest % shape[axis] * strides[axis];
            rest /= shape[axis];
        }
        wrong += counts[row] != slow_count(type, first, M, size, threshold);
    }
    CHECK(wrong == 0);
    free(scores);
    free(threshold);
    free(counts);
}

int main(void)
{
    for (int i = 0; i < 4; i++) {
        const bincp_score_type type = TYPES[i];
        for (ptrdiff_t m = 0; m <= 300; m++)
            check_array(type, random_below(4), 1 + random_below(40), m);
        for (int repeat = 0; repeat < 200; repeat++)
            check_array(type, 1 + random_below(5), 1 + random_below(60), random_below(60));
        check_array(type, 2, 5000, 9);
        check_array(type, 1, 2048, 40);
        check_array(type, 3, 1, 5000);
        check_long(type);
        check_layouts(type);
        check_repeats(type);
        check_axes(type);
    }
    return report("count");
}
