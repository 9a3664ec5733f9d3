/* Keyed noise: counter-based random numbers for randomised smoothing.
 *
 * Every number is a function of its key and its position in the row, and of nothing else: no
 * state, no order, no batch. Rows with different keys use disjoint counters of Philox4x32-10, so
 * they are independent as far as that generator is random. Element j of a row does not depend on
 * the length of the row.
 *
 * Functions may be called from any thread. They do not allocate, and they cannot fail.
 */
#ifndef BINCP_NOISE_H
#define BINCP_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include "numerics/strict_floats.h"

#define BINCP_NOISE_MAX_ID ((INT64_C(1) << 56) - 1)       /* ids are in [0, 2^56) */
#define BINCP_NOISE_MAX_LENGTH ((INT64_C(1) << 34) - 1)   /* elements of a row */

/* What the randomness is for. Streams never share a counter. */
typedef enum bincp_noise_stream {
    BINCP_STREAM_CALIBRATION = 0,
    BINCP_STREAM_TEST = 1,
    BINCP_STREAM_CALIBRATION_SCORE = 2, /* randomness of the conformity score itself (APS) */
    BINCP_STREAM_TEST_SCORE = 3,
    BINCP_STREAM_CALIBRATION_RADIUS = 4, /* radius and face of noise drawn as direction x radius */
    BINCP_STREAM_TEST_RADIUS = 5
} bincp_noise_stream;

typedef struct bincp_noise_key {
    uint64_t seed;
    uint64_t id;     /* of the input, < 2^56 */
    uint32_t draw;   /* of the input's Monte-Carlo samples */
    uint32_t stream; /* bincp_noise_stream, < 64 */
} bincp_noise_key;

typedef enum bincp_noise_law {
    BINCP_NOISE_GAUSSIAN = 0, /* N(0, scale^2), to |z| = 6.76 scale */
    BINCP_NOISE_UNIFORM = 1,  /* on [-scale, scale] */
    BINCP_NOISE_UNIT = 2,     /* scale times uniform on (0, 1] */
    BINCP_NOISE_LAPLACE = 3   /* density ~ exp(-|x| / scale), to |x| = 22.18 scale */
} bincp_noise_law;

/* One block of Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). */
void bincp_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* out[j] = x[j] + noise_j for j < n; x == NULL stands for zeros; x == out is allowed. The noise is
 * drawn in float32, and widened for float64. */
void bincp_noise_add_f32(bincp_noise_law law, float scale, bincp_noise_key key, size_t n,
                         const float *x, float *out);
void bincp_noise_add_f64(bincp_noise_law law, float scale, bincp_noise_key key, size_t n,
                         const double *x, double *out);

/* out[j] = a random number of 64 bits for element first + j of a row, j < n, for laws that are made
 * of them elsewhere; `first` is a multiple of 64. */
void bincp_noise_words(bincp_noise_key key, size_t first, size_t n, uint64_t *out);

/* kept[j] = 1 for `keep` <= n elements, a uniform set of that size, else 0; n < 2^31. A set has its
 * probability to within n 2^-64. */
void bincp_noise_keep(bincp_noise_key key, size_t keep, size_t n, uint8_t *kept);

/* out[j] uniform on the odd multiples of 2^-53 in (0, 1): never 0, 1/2 or 1, and 1 - out[j] and
 * 2 min(out[j], 1 - out[j]) are exact. */
void bincp_noise_unit_f64(bincp_noise_key key, size_t n, double *out);

/* out[j] = x[j] flipped between 0 and 1: 0 -> 1 with probability p_plus, 1 -> 0 with probability
 * p_minus, both resolved to 2^-64 (0 never, 1 always). Whatever is not 0 counts as 1. */
void bincp_noise_flip_f32(double p_plus, double p_minus, bincp_noise_key key, size_t n,
                          const float *x, float *out);
void bincp_noise_flip_f64(double p_plus, double p_minus, bincp_noise_key key, size_t n,
                          const double *x, double *out);

/* out[j] = x[j] or, as often as bincp_noise_flip_* would flip it (and then at the same keys), one of
 * the k - 1 other categories 0 .. k - 1, each with a probability of 1/(k - 1) to 2^-64. */
void bincp_noise_categorical_f32(uint32_t k, double p_plus, double p_minus, bincp_noise_key key,
                                 size_t n, const float *x, float *out);
void bincp_noise_categorical_f64(uint32_t k, double p_plus, double p_minus, bincp_noise_key key,
                                 size_t n, const double *x, double *out);

#endif
