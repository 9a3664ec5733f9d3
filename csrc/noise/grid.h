/* Integer noise on a grid, drawn from a table by the alias method, with exact masses.
 *
 * A table has 2^bits columns; column c is the point c - half. An element takes the column of the low
 * bits of its word, and its other 32 - bits bits, w', decide between the column, if w' < t', and the
 * alias of the column, if w' > t'. Where they are equal, three more words of the element are compared
 * with the other 96 bits of the threshold t: 128 random bits decide in all.
 *
 * Functions may be called from any thread. They do not allocate, and they cannot fail.
 */
#ifndef BINCP_GRID_H
#define BINCP_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "bincp/bincp.h" /* bincp_grid_table */
#include "noise/philox.h"
#include "numerics/strict_floats.h"

/* out[j] = (k[j] + q_j) / grid for the noise q_j in grid steps, rounded once; 1 <= grid <= 2^24.
 * |k[j]| < 2^22 keeps the sum exact in float32. A NULL k stands for zeros. */
void bincp_noise_grid_f32(bincp_grid_table table, int32_t grid, bincp_noise_key key, size_t n,
                          const int32_t *k, float *out);
void bincp_noise_grid_f64(bincp_grid_table table, int32_t grid, bincp_noise_key key, size_t n,
                          const int32_t *k, double *out);

/* out[j] = rint(grid (x[j] + N_j)) / grid for Gaussian noise N_j of s / grid, 4 <= s <= 2500, whose
 * integers are those of the table; 1 <= grid <= 2^20 and |x[j]| grid <= 2^20. The law of an element is
 * that of the real number x[j] + N_j, rounded, to 2^-49 in total variation. A NULL x stands for
 * zeros. */
void bincp_noise_off_grid_f32(bincp_grid_table table, int32_t grid, double s, bincp_noise_key key,
                              size_t n, const float *x, float *out);
void bincp_noise_off_grid_f64(bincp_grid_table table, int32_t grid, double s, bincp_noise_key key,
                              size_t n, const double *x, double *out);

#endif
