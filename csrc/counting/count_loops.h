/* The counting loops of one score type; count.c includes this file once for each type.
 *
 * Parameters, undefined again at the end:
 *   NAME(base)       the name of a function of this type
 *   SCORE            a score in memory
 *   COUNTER          a signed integer as wide as a score: a vector of scores gives one of counts
 *   COUNTER_STEPS    how often a COUNTER may be incremented
 *   THRESHOLD        a threshold as EXCEEDS wants it, made from one in memory by PREPARE(score)
 *   EXCEEDS(x, t)    1 if score x reaches threshold t, else 0
 *   TRACK(seen, x)   the COUNTER `seen`, updated so that HAS_NAN(seen) tells if any x was NaN
 *   HAS_NAN(seen)
 *   BYTE_ROW         scores to a row up to which comparisons go through bytes, below 256
 *   ALIGNMENT        in bytes, to which a long row is brought before its vector loop
 *   LONG_CLONES      the instruction sets that the loop of long rows is compiled for
 */

static ALWAYS_INLINE THRESHOLD NAME(load_threshold)(const char *threshold)
{
    return PREPARE(*(const SCORE *)threshold);
}

/* The count of n <= COUNTER_STEPS adjacent scores. */
static ALWAYS_INLINE int32_t NAME(run)(const SCORE *p, ptrdiff_t n, THRESHOLD t, COUNTER *seen)
{
    COUNTER count = 0, track = *seen;
    for (ptrdiff_t i = 0; i < n; i++) {
        count = (COUNTER)(count + EXCEEDS(p[i], t));
        track = TRACK(track, p[i]);
    }
    *seen = track;
    return (int32_t)count;
}

/* Adjacent rows of m <= BYTE_ROW scores under one threshold. The comparisons are written as bytes,
   vectorised across the borders of rows; then each row sums its bytes eight at a time. */
static ALWAYS_INLINE void NAME(byte_rows)(const SCORE *p, ptrdiff_t n_rows, ptrdiff_t m,
                                          THRESHOLD t, int32_t *counts, COUNTER *seen)
{
    unsigned char bytes[N_BYTES + 8];
    const uint64_t last_word = mask_of_first_bytes(m % 8);
    const ptrdiff_t batch = N_BYTES / m;
    COUNTER track = *seen;
    for (ptrdiff_t row = 0; row < n_rows; row += batch) {
        const ptrdiff_t rows = n_rows - row < batch ? n_rows - row : batch;
        for (ptrdiff_t i = 0; i < rows * m; i++) {
            bytes[i] = (unsigned char)EXCEEDS(p[i], t);
            track = TRACK(track, p[i]);
        }
        memset(bytes + rows * m, 0, 8); /* the last word of the last row may reach beyond it */
        for (ptrdiff_t i = 0; i < rows; i++)
            counts[row + i] = sum_of_bytes(bytes + i * m, m, last_word);
        p += rows * m;
    }
    *seen = track;
}

/* Rows of fewer than LONG_ROW adjacent scores; the literal lengths fix a trip count. */
CLONES_AVX2 static int NAME(short_rows)(row_block block, int32_t *counts)
{
    COUNTER seen = 0;
    const ptrdiff_t m = block.n_samples;
    const int one_run = block.row_stride == m * (ptrdiff_t)sizeof(SCORE);

    if (one_run && block.threshold_stride == 0 && 0 < m && m <= BYTE_ROW) {
        const SCORE *p = (const SCORE *)block.scores;
        const THRESHOLD t = NAME(load_threshold)(block.thresholds);
        if (m == 16)
            NAME(byte_rows)(p, block.n_rows, 16, t, counts, &seen);
        else
            NAME(byte_rows)(p, block.n_rows, m, t, counts, &seen);
        return HAS_NAN(seen);
    }
    for (ptrdiff_t row = 0; row < block.n_rows; row++) {
        const SCORE *p = (const SCORE *)(block.scores + row * block.row_stride);
        const THRESHOLD t = NAME(load_threshold)(block.thresholds + row * block.threshold_stride);
        counts[row] = m == 32   ? NAME(run)(p, 32, t, &seen)
                      : m == 64 ? NAME(run)(p, 64, t, &seen)
                                : NAME(run)(p, m, t, &seen);
    }
    return HAS_NAN(seen);
}

/* Rows of adjacent scores of any length. */
LONG_CLONES static int NAME(long_rows)(row_block block, int32_t *counts)
{
    COUNTER seen = 0;
    for (ptrdiff_t row = 0; row < block.n_rows; row++) {
        const SCORE *p = (const SCORE *)(block.scores + row * block.row_stride);
        const THRESHOLD t = NAME(load_threshold)(block.thresholds + row * block.threshold_stride);
        ptrdiff_t left = block.n_samples;
        ptrdiff_t n = (ptrdiff_t)(-(uintptr_t)p % ALIGNMENT / sizeof(SCORE));
        int32_t count = 0;
        for (; left > 0; left -= n, p += n, n = COUNTER_STEPS) {
            n = n < left ? n : left;
            count += NAME(run)(p, n, t, &seen);
        }
        counts[row] = count;
    }
    return HAS_NAN(seen);
}

/* Rows whose scores lie apart. */
static int NAME(strided_rows)(row_block block, int32_t *counts)
{
    COUNTER seen = 0;
    for (ptrdiff_t row = 0; row < block.n_rows; row++) {
        const char *p = block.scores + row * block.row_stride;
        const THRESHOLD t = NAME(load_threshold)(block.thresholds + row * block.threshold_stride);
        int32_t count = 0;
        for (ptrdiff_t i = 0; i < block.n_samples; i++) {
            const SCORE x = *(const SCORE *)(p + i * block.sample_stride);
            count += EXCEEDS(x, t);
            seen = TRACK(seen, x);
        }
        counts[row] = count;
    }
    return HAS_NAN(seen);
}

/* Add `group` samples of each of `width` columns to their counters. */
static ALWAYS_INLINE void NAME(add_strided)(const char *restrict p, ptrdiff_t stride,
                                            ptrdiff_t width, ptrdiff_t sample_stride,
                                            ptrdiff_t group, const THRESHOLD *restrict t,
                                            ptrdiff_t t_step, COUNTER *restrict counters,
                                            COUNTER *seen)
{
    COUNTER track = *seen;
    for (ptrdiff_t k = 0; k < width; k++) {
        COUNTER counter = counters[k];
        for (ptrdiff_t i = 0; i < group; i++) {
            const SCORE x = *(const SCORE *)(p + k * stride + i * sample_stride);
            counter = (COUNTER)(counter + EXCEEDS(x, t[k * t_step]));
            track = TRACK(track, x);
        }
        counters[k] = counter;
    }
    *seen = track;
}

/* The same, with literal strides for the layouts that vectorise; a step of 0 shares t[0]. */
static ALWAYS_INLINE void NAME(add)(const row_block *block, const char *p, ptrdiff_t width,
                                    ptrdiff_t group, const THRESHOLD *t, COUNTER *counters,
                                    COUNTER *seen)
{
    const ptrdiff_t stride = block->row_stride, leap = block->sample_stride;
    const int shared = block->threshold_stride == 0;
    if (stride == (ptrdiff_t)sizeof(SCORE) && shared)
        NAME(add_strided)(p, sizeof(SCORE), width, leap, group, t, 0, counters, seen);
    else if (stride == (ptrdiff_t)sizeof(SCORE))
        NAME(add_strided)(p, sizeof(SCORE), width, leap, group, t, 1, counters, seen);
    else
        NAME(add_strided)(p, stride, width, leap, group, t, !shared, counters, seen);
}

/* Rows that lie beside one another: a sample of every row is counted before the next sample. Where
   samples lie end to end, up to RUN of them count as one sample of that many times the columns, and
   halving the counters adds them up at the end. */
CLONES_AVX2 static int NAME(columns)(row_block block, int32_t *counts)
{
    THRESHOLD t[MAX_WIDTH];
    COUNTER counters[MAX_WIDTH];
    COUNTER seen = 0;
    const ptrdiff_t n = block.n_rows;
    const int shared = block.threshold_stride == 0;
    const int end_to_end = block.row_stride == (ptrdiff_t)sizeof(SCORE) &&
                           block.sample_stride == n * block.row_stride;
    ptrdiff_t run = 1;
    while (end_to_end && run < RUN && 2 * run * n <= MAX_WIDTH)
        run *= 2;

    for (ptrdiff_t k = 0; k < (shared ? 1 : n); k++)
        t[k] = NAME(load_threshold)(block.thresholds + k * block.threshold_stride);
    for (ptrdiff_t have = n; !shared && have < n * run; have *= 2)
        memcpy(t + have, t, sizeof(THRESHOLD) * (size_t)have);
    memset(counts, 0, sizeof *counts * (size_t)n);

    const char *p = block.scores;
    for (ptrdiff_t left = block.n_samples; left > 0;) {
        memset(counters, 0, sizeof(COUNTER) * (size_t)(n * run));
        for (ptrdiff_t step = 0; step < COUNTER_STEPS / RUN && left > 0; step++) {
            ptrdiff_t samples = run < left ? run : left;
            if (!end_to_end && left >= GROUP) {
                samples = GROUP;
                NAME(add)(&block, p, n, GROUP, t, counters, &seen);
            } else {
                NAME(add)(&block, p, n * samples, 1, t, counters, &seen);
            }
            p += samples * block.sample_stride;
            left -= samples;
        }
        for (ptrdiff_t half = n * run / 2; half >= n; half /= 2)
            for (ptrdiff_t k = 0; k < half; k++)
                counters[k] = (COUNTER)(counters[k] + counters[k + half]);
        for (ptrdiff_t k = 0; k < n; k++)
            counts[k] += (int32_t)counters[k];
    }
    return HAS_NAN(seen);
}

/* Choose the loop for a block of rows; returns 1 if any score is NaN. */
static int NAME(count_block)(const row_block *block, int32_t *counts)
{
    if (by_columns(block))
        return NAME(columns)(*block, counts);
    if (block->sample_stride != (ptrdiff_t)sizeof(SCORE))
        return NAME(strided_rows)(*block, counts);
    if (block->n_samples < LONG_ROW)
        return NAME(short_rows)(*block, counts);
    return NAME(long_rows)(*block, counts);
}

#undef NAME
#undef SCORE
#undef COUNTER
#undef COUNTER_STEPS
#undef THRESHOLD
#undef PREPARE
#undef EXCEEDS
#undef TRACK
#undef HAS_NAN
#undef BYTE_ROW
#undef ALIGNMENT
#undef LONG_CLONES
