/* Exceedance counts over arrays of any layout.
 *
 * Layers
 *   loops    count_loops.h, once for each score type: one block of rows, counts into a small buffer
 *   blocks   count_all() sorts and merges the axes of the array and cuts it into blocks of rows
 *   finish   the counts of a block are stored, or compared with min_count and the result stored
 *
 * Design of the loops. Counting should cost what reading the scores costs: 30 to 40 GB/s
 * on one core, about one vector of scores a cycle. Measured on Zen 4 and on a Zen 5 class CPU:
 *   - No branch depends on a score. The count is a sum of comparisons, and NaN a flag gathered in
 *     the same pass (free: the loop waits for memory). decide does not leave a row early: it would
 *     read half the scores, but mispredicted exits and a broken hardware prefetch cost more.
 *   - Long rows: 512-bit loads lose a quarter where each of them crosses a cache line, and NumPy
 *     puts large arrays at 16 mod 64; a scalar head up to the next line brings that back (0.94 to
 *     1.0 of reading). Software prefetch wins a little on one CPU and loses a quarter on the other.
 *   - Short rows: the sum across a vector at the end of each row costs most. A literal length
 *     (32, 64) helps. Rows of few vectors do better as bytes, compared across the borders of rows
 *     (float32, m = 16: 0.9 of reading against 0.7; float16, m = 47: 2.5 times as fast). 256-bit
 *     vectors beat 512-bit ones here.
 *   - Samples that are not innermost, as in (n, m, K): one counter per column and 16 samples as one
 *     row of 16 K, because K of 10 is too short for vectors (twice as fast). Where wide samples lie
 *     apart, four of them at a time touch the counters once (1.6 times as fast).
 *   - 16 bits are never widened. As integers float16 and bfloat16 order like their values once the
 *     low 15 bits of the negative ones are flipped; NaN is a magnitude above that of infinity.
 *
 * Function clones (clones.h) count and compare, with no arithmetic on floats that could round: they
 * cannot differ in their results.
 */
#include "counting/count.h"

#include <string.h>

#include "numerics/clones.h"

enum {
    MAX_BLOCK = 2048, /* rows to a block */
    LONG_ROW = 256,   /* scores from which the alignment of a row pays */
    N_BYTES = 1024,   /* the comparisons of short rows, as bytes */
    MAX_WIDTH = 2048, /* the counters of columns */
    RUN = 16,         /* samples taken as one where they lie end to end */
    GROUP = 4,        /* samples counted together where they lie apart */
};
_Static_assert(MAX_BLOCK <= MAX_WIDTH, "a block of columns needs one counter for each");

/* Rows in one line of memory. Strides are in bytes and not negative. */
typedef struct row_block {
    const char *scores;
    ptrdiff_t n_rows, row_stride;
    ptrdiff_t n_samples, sample_stride;
    const char *thresholds;
    ptrdiff_t threshold_stride;
} row_block;

/* Whether neighbours in memory belong to different rows. */
static int by_columns(const row_block *block)
{
    return block->n_rows > 1 && block->row_stride > 0 &&
           (block->n_samples == 1 || block->row_stride < block->sample_stride);
}

/* A word whose first n bytes in memory are ones, whatever the byte order. */
static uint64_t mask_of_first_bytes(ptrdiff_t n)
{
    unsigned char bytes[8] = {0};
    uint64_t mask;
    memset(bytes, 0xff, (size_t)n);
    memcpy(&mask, bytes, 8);
    return mask;
}

/* The sum, below 256, of m bytes; last_word masks the m % 8 bytes after the last whole word. */
static ALWAYS_INLINE int32_t sum_of_bytes(const unsigned char *bytes, ptrdiff_t m,
                                          uint64_t last_word)
{
    uint64_t sum = 0, word;
    ptrdiff_t i = 0;
    for (; i + 8 <= m; i += 8) {
        memcpy(&word, bytes + i, 8);
        sum += word;
    }
    if (i < m) {
        memcpy(&word, bytes + i, 8);
        sum += word & last_word;
    }
    return (int32_t)((sum * UINT64_C(0x0101010101010101)) >> 56);
}

/* The integer that orders like the 16-bit float with these bits; -0 gives -1 and +0 gives 0. */
static ALWAYS_INLINE int16_t key_of_bits(uint16_t bits)
{
    const int16_t b = (int16_t)bits;
    return (int16_t)(b ^ ((b >> 15) & 0x7fff));
}

/* Both zeros reach a threshold of zero. */
static ALWAYS_INLINE int16_t threshold_key(uint16_t bits)
{
    return (bits & 0x7fff) == 0 ? -1 : key_of_bits(bits);
}

static ALWAYS_INLINE int16_t larger_magnitude(int16_t seen, uint16_t bits)
{
    const int16_t magnitude = (int16_t)(bits & 0x7fff);
    return magnitude > seen ? magnitude : seen;
}

#define NAME(base) base##_float16
#define SCORE uint16_t
#define COUNTER int16_t
#define COUNTER_STEPS 16384
#define THRESHOLD int16_t
#define PREPARE threshold_key
#define EXCEEDS(x, t) (key_of_bits(x) >= (t))
#define TRACK larger_magnitude
#define HAS_NAN(seen) ((seen) > 0x7c00)
#define BYTE_ROW 128
#define ALIGNMENT 2
#define LONG_CLONES CLONES_AVX2
#include "counting/count_loops.h"

#define NAME(base) base##_bfloat16
#define SCORE uint16_t
#define COUNTER int16_t
#define COUNTER_STEPS 16384
#define THRESHOLD int16_t
#define PREPARE threshold_key
#define EXCEEDS(x, t) (key_of_bits(x) >= (t))
#define TRACK larger_magnitude
#define HAS_NAN(seen) ((seen) > 0x7f80)
#define BYTE_ROW 128
#define ALIGNMENT 2
#define LONG_CLONES CLONES_AVX2
#include "counting/count_loops.h"

#define NAME(base) base##_float32
#define SCORE float
#define COUNTER int32_t
#define COUNTER_STEPS INT32_MAX
#define THRESHOLD float
#define PREPARE(t) (t)
#define EXCEEDS(x, t) ((x) >= (t))
#define TRACK(seen, x) ((seen) | ((x) != (x)))
#define HAS_NAN(seen) ((seen) != 0)
#define BYTE_ROW 31
#define ALIGNMENT 64
#define LONG_CLONES CLONES_V4
#include "counting/count_loops.h"

#define NAME(base) base##_float64
#define SCORE double
#define COUNTER int64_t
#define COUNTER_STEPS INT32_MAX
#define THRESHOLD double
#define PREPARE(t) (t)
#define EXCEEDS(x, t) ((x) >= (t))
#define TRACK(seen, x) ((seen) | ((x) != (x)))
#define HAS_NAN(seen) ((seen) != 0)
#define BYTE_ROW 16
#define ALIGNMENT 64
#define LONG_CLONES CLONES_V4
#include "counting/count_loops.h"

typedef int (*count_block_fn)(const row_block *, int32_t *);

static const count_block_fn COUNT_BLOCK[] = {
    [BINCP_FLOAT16] = count_block_float16,
    [BINCP_BFLOAT16] = count_block_bfloat16,
    [BINCP_FLOAT32] = count_block_float32,
    [BINCP_FLOAT64] = count_block_float64,
};

/* The operands that have a place for each row. */
enum { SCORES, THRESHOLDS, RESULT, MIN_COUNTS, N_OPERANDS };

/* The axes of the rows, slowest first, and where the first row of each operand lies. */
typedef struct grid {
    int n_axes;
    ptrdiff_t shape[BINCP_MAX_AXES];
    ptrdiff_t strides[BINCP_MAX_AXES][N_OPERANDS];
    ptrdiff_t offset[N_OPERANDS];
} grid;

/* A stride of zero repeats rows; as the innermost axis it would make columns of them. */
static int is_slower(ptrdiff_t stride, ptrdiff_t other)
{
    return other != 0 && (stride == 0 || stride > other);
}

/* Insert an axis behind the slower ones, turned so that its scores move forward. */
static void insert_axis(grid *g, ptrdiff_t length, const ptrdiff_t strides[N_OPERANDS])
{
    ptrdiff_t forward[N_OPERANDS];
    for (int k = 0; k < N_OPERANDS; k++) {
        const int turn = strides[SCORES] < 0;
        forward[k] = turn ? -strides[k] : strides[k];
        g->offset[k] += turn ? (length - 1) * strides[k] : 0;
    }
    int a = g->n_axes++;
    for (; a > 0 && is_slower(forward[SCORES], g->strides[a - 1][SCORES]); a--) {
        g->shape[a] = g->shape[a - 1];
        memcpy(g->strides[a], g->strides[a - 1], sizeof forward);
    }
    g->shape[a] = length;
    memcpy(g->strides[a], forward, sizeof forward);
}

/* Merge neighbouring axes that every operand walks in equal steps. */
static void merge_axes(grid *g)
{
    int last = 0;
    for (int a = 1; a < g->n_axes; a++) {
        int merges = 1;
        for (int k = 0; k < N_OPERANDS; k++)
            merges &= g->strides[last][k] == g->strides[a][k] * g->shape[a];
        last += !merges;
        g->shape[last] = merges ? g->shape[last] * g->shape[a] : g->shape[a];
        memcpy(g->strides[last], g->strides[a], sizeof g->strides[a]);
    }
    g->n_axes = last + 1;
}

/* Move the offsets to the next position on all axes but the innermost; 0 after the last one. */
static int advance(grid *g, ptrdiff_t index[BINCP_MAX_AXES])
{
    for (int a = g->n_axes - 2; a >= 0; a--) {
        const int wraps = ++index[a] == g->shape[a];
        for (int k = 0; k < N_OPERANDS; k++)
            g->offset[k] += g->strides[a][k] * (wraps ? 1 - g->shape[a] : 1);
        if (!wraps)
            return 1;
        index[a] = 0;
    }
    return 0;
}

/* Sort, turn and merge the axes of the rows; 0 if there are no rows. */
static int make_grid(grid *g, const bincp_count_task *task, const ptrdiff_t *result_strides,
                     const ptrdiff_t *min_count_strides)
{
    static const ptrdiff_t ONE_ROW[N_OPERANDS] = {0};
    memset(g, 0, sizeof *g);
    for (int a = 0; a < task->n_axes; a++) {
        const ptrdiff_t strides[N_OPERANDS] = {
            [SCORES] = task->score_strides[a],
            [THRESHOLDS] = task->threshold_strides[a],
            [RESULT] = result_strides[a],
            [MIN_COUNTS] = min_count_strides ? min_count_strides[a] : 0,
        };
        if (task->shape[a] == 0)
            return 0;
        if (task->shape[a] > 1)
            insert_axis(g, task->shape[a], strides);
    }
    if (g->n_axes == 0)
        insert_axis(g, 1, ONE_ROW);
    merge_axes(g);
    return 1;
}

static void store_counts(char *out, ptrdiff_t stride, const int32_t *counts, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        *(int32_t *)(out + i * stride) = counts[i];
}

static void store_decisions(char *out, ptrdiff_t stride, const int32_t *counts, ptrdiff_t n,
                            const char *min_counts, ptrdiff_t min_count_stride)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i * stride] = counts[i] >= *(const int64_t *)(min_counts + i * min_count_stride);
}

/* Count all rows, block by block; store decisions, or counts where min_counts is NULL. */
static int count_all(const bincp_count_task *task, const void *min_counts,
                     const ptrdiff_t *min_count_strides, void *result,
                     const ptrdiff_t *result_strides)
{
    grid g;
    if (!make_grid(&g, task, result_strides, min_count_strides))
        return 0;

    const char *scores = task->scores;
    ptrdiff_t sample_stride = task->sample_stride;
    if (sample_stride < 0 && task->n_samples > 0) { /* the order of samples does not matter */
        scores += (task->n_samples - 1) * sample_stride;
        sample_stride = -sample_stride;
    }

    const ptrdiff_t length = g.shape[g.n_axes - 1];
    const ptrdiff_t *step = g.strides[g.n_axes - 1];
    ptrdiff_t index[BINCP_MAX_AXES] = {0};
    int32_t counts[MAX_BLOCK];
    int has_nan = 0;
    do {
        for (ptrdiff_t row = 0; row < length; row += MAX_BLOCK) {
            const row_block block = {
                .scores = scores + g.offset[SCORES] + row * step[SCORES],
                .n_rows = length - row < MAX_BLOCK ? length - row : MAX_BLOCK,
                .row_stride = step[SCORES],
                .n_samples = task->n_samples,
                .sample_stride = sample_stride,
                .thresholds =
                    (const char *)task->thresholds + g.offset[THRESHOLDS] + row * step[THRESHOLDS],
                .threshold_stride = step[THRESHOLDS],
            };
            has_nan |= COUNT_BLOCK[task->type](&block, counts);

            char *out = (char *)result + g.offset[RESULT] + row * step[RESULT];
            if (min_counts == NULL)
                store_counts(out, step[RESULT], counts, block.n_rows);
            else
                store_decisions(out, step[RESULT], counts, block.n_rows,
                                (const char *)min_counts + g.offset[MIN_COUNTS] +
                                    row * step[MIN_COUNTS],
                                step[MIN_COUNTS]);
        }
    } while (advance(&g, index));
    return has_nan;
}

int bincp_count(const bincp_count_task *task, int32_t *counts, const ptrdiff_t *count_strides)
{
    return count_all(task, NULL, NULL, counts, count_strides);
}

int bincp_count_rows(bincp_score_type type, const void *scores, size_t n_rows, size_t n_samples,
                     const void *threshold, int32_t *counts)
{
    static const ptrdiff_t SIZE[] = {
        [BINCP_FLOAT16] = 2,
        [BINCP_BFLOAT16] = 2,
        [BINCP_FLOAT32] = 4,
        [BINCP_FLOAT64] = 8,
    };
    const ptrdiff_t shape = (ptrdiff_t)n_rows, shared = 0;
    const ptrdiff_t row_stride = (ptrdiff_t)n_samples * SIZE[type];
    const ptrdiff_t count_stride = sizeof *counts;
    const bincp_count_task task = {
        .type = type,
        .n_axes = 1,
        .shape = &shape,
        .n_samples = (ptrdiff_t)n_samples,
        .scores = scores,
        .score_strides = &row_stride,
        .sample_stride = SIZE[type],
        .thresholds = threshold,
        .threshold_strides = &shared,
    };
    return bincp_count(&task, counts, &count_stride);
}

int bincp_decide(const bincp_count_task *task, const int64_t *min_counts,
                 const ptrdiff_t *min_count_strides, unsigned char *decisions,
                 const ptrdiff_t *decision_strides)
{
    return count_all(task, min_counts, min_count_strides, decisions, decision_strides);
}
