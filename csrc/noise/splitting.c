/* Splitting noise (see splitting.h).
 *
 * Both ends of a cell are functions of the offset and of the number of the cell, never of the
 * coordinate itself: what lies in one cell must become one value, to the last bit, or the noised
 * copy would tell coordinates apart that the certificate takes for equal.
 *
 * Derandomised copies need no division: cells move up by a step from copy to copy, and pass a
 * coordinate once at most, from where on it lies in the cell before. The caller divides once a row,
 * for copy 0, and the loop is left with a comparison, a minimum and a maximum on 32-bit integers.
 *
 * Measured, 3072 coordinates a row (one thread, shared machine, AVX-512): 0.5 ns a coordinate for
 * copies, 6 for continuous noise, where Gaussians take 3.5; in NumPy 15 and 36.
 */
#include "noise/splitting.h"

#include <math.h>

#include "numerics/clones.h"

enum { CHUNK = 1024 };

static inline double middle(double length, uint64_t word, double x)
{
    const double offset = ((double)(int64_t)(word >> 11) + 0.5) * (0x1p-53 * length);
    const double cell = ceil((x - offset) / length);
    const double high = length * cell + offset;
    const double low = length * (cell - 1.0) + offset;
    return ((low > 0.0 ? low : 0.0) + (high < 1.0 ? high : 1.0)) / 2.0;
}

static inline double copied(bincp_split_grid split, int32_t number, int32_t start, int32_t slack)
{
    /* Unsigned, because a start that belongs to no coordinate may overflow. */
    const uint32_t cell = 2 * (uint32_t)split.levels, end = 2 * (uint32_t)split.grid;
    const uint32_t moved = (uint32_t)start + 2 * (uint32_t)number;
    const int32_t low = (int32_t)(moved - (slack < number ? cell : 0));
    const int32_t high = (int32_t)((uint32_t)low + cell);
    const uint32_t left = (uint32_t)(low > 0 ? low : 0);
    const uint32_t right = high < (int32_t)end ? (uint32_t)high : end;
    return (double)(int32_t)(left + right) / (4.0 * split.grid);
}

/* The two types differ in nothing but the loads and stores. */
#define DEFINE(SUFFIX, TYPE)                                                                  \
    CLONES_V4 static void split_##SUFFIX(double length, const uint64_t *words, size_t n,      \
                                         const TYPE *x, TYPE *out)                            \
    {                                                                                         \
        for (size_t j = 0; j < n; j++) {                                                      \
            out[j] = (TYPE)middle(length, words[j], (double)x[j]);                            \
        }                                                                                     \
    }                                                                                         \
                                                                                              \
    CLONES_V4 static void copy_##SUFFIX(bincp_split_grid split, int32_t number, size_t n,     \
                                        const int32_t *starts, const int32_t *slack,          \
                                        TYPE *out)                                            \
    {                                                                                         \
        for (size_t j = 0; j < n; j++) {                                                      \
            out[j] = (TYPE)copied(split, number, starts[j], slack[j]);                        \
        }                                                                                     \
    }                                                                                         \
                                                                                              \
    void bincp_split_##SUFFIX(double length, bincp_noise_key key, size_t n, const TYPE *x,    \
                              TYPE *out)                                                      \
    {                                                                                         \
        uint64_t words[CHUNK];                                                                \
        for (size_t first = 0; first < n; first += CHUNK) {                                   \
            const size_t count = n - first < CHUNK ? n - first : CHUNK;                       \
            bincp_noise_words(key, first, count, words);                                      \
            split_##SUFFIX(length, words, count, x + first, out + first);                     \
        }                                                                                     \
    }                                                                                         \
                                                                                              \
    void bincp_split_copy_##SUFFIX(bincp_split_grid split, int32_t number, size_t n,          \
                                   const int32_t *starts, const int32_t *slack, TYPE *out)    \
    {                                                                                         \
        copy_##SUFFIX(split, number, n, starts, slack, out);                                  \
    }

DEFINE(f32, float)
DEFINE(f64, double)
