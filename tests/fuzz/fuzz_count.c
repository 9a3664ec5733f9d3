/* Counts and decisions of any layout, against comparisons one by one. */
#include "counting/count.h"

#include <math.h>

#include "../c/scores.h"
#include "fuzz.h"

enum { AXES = 4, MOST_SCORES = 1 << 15 };

/* A grid of elements in memory of exactly its size: the axes lie in any order and direction. */
typedef struct array {
    char *memory, *first;
    ptrdiff_t strides[AXES + 1], n;
} array;

/* Strides between the elements of axes of these lengths, with gaps; or 0 where axes may be repeated. */
static array array_from(bytes *from, const ptrdiff_t *lengths, int n_axes, ptrdiff_t unit, int repeats)
{
    array made;
    int order[AXES + 1];
    ptrdiff_t lowest = 0, highest = 0, step = unit;
    for (int axis = 0; axis < n_axes; axis++) {
        order[axis] = axis;
    }
    for (int axis = n_axes - 1; axis > 0; axis--) {
        const int other = byte_of(from) % (axis + 1), kept = order[axis];
        order[axis] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < n_axes; i++) { /* the fastest first */
        const int axis = order[i];
        const uint8_t kind = byte_of(from);
        const int repeated = repeats && kind % 8 == 0;
        made.strides[axis] = repeated ? 0 : kind % 8 == 1 ? -step : step;
        const ptrdiff_t reach = lengths[axis] > 0 ? (lengths[axis] - 1) * made.strides[axis] : 0;
        *(reach < 0 ? &lowest : &highest) += reach;
        const ptrdiff_t gap = kind < 32 ? unit * (1 + kind % 3) : 0;
        step = repeated ? step : step * (lengths[axis] > 0 ? lengths[axis] : 1) + gap;
    }
    made.n = (highest - lowest) / unit + 1;
    made.memory = memory((size_t)(made.n * unit));
    made.first = made.memory - lowest;
    return made;
}

static void *element(const array *of, const ptrdiff_t *index, int n_axes)
{
    char *at = of->first;
    for (int axis = 0; axis < n_axes; axis++) {
        at += index[axis] * of->strides[axis];
    }
    return at;
}

/* The bytes that are left, over and over. */
static void fill(const bytes *from, char *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (char)(from->left ? from->at[i % from->left] : 0);
    }
}

/* The lengths of the axes of the rows, then that of the samples; few of them are long. */
static void lengths_from(bytes *from, int n_axes, ptrdiff_t *lengths)
{
    ptrdiff_t room = MOST_SCORES;
    for (int axis = n_axes; axis >= 0; axis--) {
        const uint8_t kind = byte_of(from);
        const ptrdiff_t length = kind < 128 ? byte_of(from) % 6 : kind < 224 ? byte_of(from)
                                                                          : (ptrdiff_t)(word_of(from) >> 48);
        lengths[axis] = length < room ? length : room;
        room /= lengths[axis] > 0 ? lengths[axis] : 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes from = {data, size};
    const bincp_score_type type = (bincp_score_type)(byte_of(&from) % 4);
    const ptrdiff_t unit = SCORE_SIZES[type];
    const int n_axes = byte_of(&from) % (AXES + 1);
    ptrdiff_t shape[AXES + 1];
    lengths_from(&from, n_axes, shape);
    const ptrdiff_t m = shape[n_axes];
    array scores = array_from(&from, shape, n_axes + 1, unit, 1);
    array thresholds = array_from(&from, shape, n_axes, unit, 1);
    array least = array_from(&from, shape, n_axes, sizeof(int64_t), 1);
    array counts = array_from(&from, shape, n_axes, sizeof(int32_t), 0);
    array decisions = array_from(&from, shape, n_axes, 1, 0);
    fill(&from, scores.memory, (size_t)(scores.n * unit));
    for (ptrdiff_t i = 0; i < thresholds.n; i++) {
        char *const at = thresholds.memory + i * unit;
        memcpy(at, scores.memory + i * 7 % scores.n * unit, (size_t)unit);
        if (isnan(score_at(type, at))) {
            memset(at, 0, (size_t)unit);
        }
    }
    for (ptrdiff_t i = 0; i < least.n; i++) {
        ((int64_t *)(void *)least.memory)[i] = i % 5 == 4 ? INT64_MAX : i % 5 == 3 ? -1 : m * (i % 3) / 2;
    }
    const bincp_count_task task = {type,           n_axes,        shape,
                                   m,              scores.first,  scores.strides,
                                   scores.strides[n_axes], thresholds.first, thresholds.strides};
    const int said = bincp_count(&task, (int32_t *)(void *)counts.first, counts.strides);
    REQUIRE(said == bincp_decide(&task, (const int64_t *)(const void *)least.first, least.strides,
                                 (unsigned char *)decisions.first, decisions.strides));
    int has_nan = 0, right = 1;
    ptrdiff_t rows = 1, index[AXES];
    for (int axis = 0; axis < n_axes; axis++) {
        rows *= shape[axis];
    }
    for (ptrdiff_t row = 0; row < rows; row++) {
        ptrdiff_t rest = row;
        for (int axis = n_axes - 1; axis >= 0; axis--) {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        const double t = score_at(type, element(&thresholds, index, n_axes));
        int32_t count = 0;
        const char *at = element(&scores, index, n_axes);
        for (ptrdiff_t k = 0; k < m; k++, at += scores.strides[n_axes]) {
            const double x = score_at(type, at);
            count += x >= t;
            has_nan |= isnan(x);
        }
        const int64_t wanted = *(const int64_t *)element(&least, index, n_axes);
        right &= *(const int32_t *)element(&counts, index, n_axes) == count;
        right &= *(const unsigned char *)element(&decisions, index, n_axes) == (count >= wanted);
    }
    REQUIRE(said == has_nan);
    REQUIRE(has_nan || right);
    free(scores.memory);
    free(thresholds.memory);
    free(least.memory);
    free(counts.memory);
    free(decisions.memory);
    return 0;
}
