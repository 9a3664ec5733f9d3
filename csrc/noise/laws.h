/* Keyed noise: the random words of philox.h as noise of several laws, added to rows or put into them.
 *
 * Functions may be called from any thread. They do not allocate, and they cannot fail.
 */
#ifndef BINCP_LAWS_H
#define BINCP_LAWS_H

#include <stddef.h>
#include <stdint.h>

#include "noise/philox.h"
#include "numerics/strict_floats.h"

typedef enum bincp_noise_law {
    BINCP_NOISE_GAUSSIAN = 0, /* N(0, scale^2), to |z| = 6.76 scale */
    BINCP_NOISE_UNIFORM = 1,  /* on [-scale, scale] */
    BINCP_NOISE_UNIT = 2,     /* scale times uniform on (0, 1] */
    BINCP_NOISE_LAPLACE = 3   /* density ~ exp(-|x| / scale), to |x| = 22.18 scale */
} bincp_noise_law;

/* In all functions a NULL x stands for zeros, and x may be out. */

/* out[j] = x[j] + noise_j for j < n. The noise is drawn in float32, and widened for float64. */
void bincp_noise_add_f32(bincp_noise_law law, float scale, bincp_noise_key key, size_t n,
                         const float *x, float *out);
void bincp_noise_add_f64(bincp_noise_law law, float scale, bincp_noise_key key, size_t n,
                         const double *x, double *out);

/* kept[j] = 1 for `keep` <= n elements, a uniform set of that size, else 0; n < 2^31. The law of the
 * set is right to n 2^-128 in total variation. */
void bincp_noise_keep(bincp_noise_key key, size_t keep, size_t n, uint8_t *kept);

/* out[j] uniform on the odd multiples of 2^-53 in (0, 1): never 0, 1/2 or 1, and 1 - out[j] and
 * 2 min(out[j], 1 - out[j]) are exact. */
void bincp_noise_unit_f64(bincp_noise_key key, size_t n, double *out);

/* out[j] = x[j] flipped between 0 and 1: 0 -> 1 with probability p_plus, 1 -> 0 with probability
 * p_minus, both rounded down to multiples of 2^-128, which all doubles from 2^-76 on are. Every number
 * but 0 counts as 1. */
void bincp_noise_flip_f32(double p_plus, double p_minus, bincp_noise_key key, size_t n,
                          const float *x, float *out);
void bincp_noise_flip_f64(double p_plus, double p_minus, bincp_noise_key key, size_t n,
                          const double *x, double *out);

/* out[j] = x[j] or, as often as bincp_noise_flip_* would flip it (and then at the same keys), one of
 * the k - 1 other categories 0 .. k - 1, each with a probability of 1/(k - 1), to k 2^-130 in total
 * variation. */
void bincp_noise_categorical_f32(uint32_t k, double p_plus, double p_minus, bincp_noise_key key,
                                 size_t n, const float *x, float *out);
void bincp_noise_categorical_f64(uint32_t k, double p_plus, double p_minus, bincp_noise_key key,
                                 size_t n, const double *x, double *out);

#endif
