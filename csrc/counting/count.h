/* Exceedance counts: how many of the scores of a row reach a threshold.
 *
 * Kernels without Python and without allocation. They hold no state and may run on any thread.
 */
#ifndef BINCP_COUNT_H
#define BINCP_COUNT_H

#include <stddef.h>
#include <stdint.h>

#include "numerics/strict_floats.h"

/* The most axes that the rows of a task may have (NumPy's own limit). */
#define BINCP_MAX_AXES 64

/* 16-bit formats are given as bit patterns (uint16_t); bfloat16 is the upper half of a float. */
typedef enum bincp_score_type {
    BINCP_FLOAT16,
    BINCP_BFLOAT16,
    BINCP_FLOAT32,
    BINCP_FLOAT64
} bincp_score_type;

/* Scores of any layout: a grid of rows, each of n_samples scores, and one threshold per row.
 *
 * Strides are in bytes and may be negative or zero; scores and thresholds are aligned to their
 * type. There is one stride for each axis of the grid of rows; a zero threshold stride shares a
 * threshold.
 */
typedef struct bincp_count_task {
    bincp_score_type type;               /* of the scores and of the thresholds */
    int n_axes;                          /* of the grid of rows, at most BINCP_MAX_AXES */
    const ptrdiff_t *shape;              /* of the grid of rows */
    ptrdiff_t n_samples;                 /* below 2^31 */
    const void *scores;
    const ptrdiff_t *score_strides;
    ptrdiff_t sample_stride;
    const void *thresholds;              /* not NaN */
    const ptrdiff_t *threshold_strides;
} bincp_count_task;

/* Write #{scores of the row >= threshold of the row} for each row.
 *
 * Returns 1 if any score is NaN, and then the counts mean nothing; 0 otherwise. The counts must not
 * overlap the inputs.
 */
int bincp_count(const bincp_count_task *task, int32_t *counts, const ptrdiff_t *count_strides);

/* The same for adjacent rows of n_samples < 2^31 adjacent scores and one threshold. */
int bincp_count_rows(bincp_score_type type, const void *scores, size_t n_rows, size_t n_samples,
                     const void *threshold, int32_t *counts);

/* Write 1 for each row whose count is at least its min_count, and 0 for the others.
 *
 * Returns 1 if any score is NaN, as bincp_count does.
 */
int bincp_decide(const bincp_count_task *task, const int64_t *min_counts,
                 const ptrdiff_t *min_count_strides, unsigned char *decisions,
                 const ptrdiff_t *decision_strides);

#endif
