/* Splitting noise (Levine and Feizi, "Improved, deterministic smoothing for L1 certified
 * robustness", ICML 2021): a coordinate in [0, 1] moves to the middle of the cell that it lies in,
 * clipped to [0, 1]. Cells are (offset + c length, offset + (c + 1) length] for integers c.
 *
 * Functions may be called from any thread. They do not allocate, and they cannot fail.
 */
#ifndef BINCP_SPLITTING_H
#define BINCP_SPLITTING_H

#include <stddef.h>
#include <stdint.h>

#include "noise/philox.h"
#include "numerics/strict_floats.h"

/* One row of continuous noise: offsets uniform on (0, length), from 53 bits each. */
void bincp_split_f32(double length, bincp_noise_key key, size_t n, const float *x, float *out);
void bincp_split_f64(double length, bincp_noise_key key, size_t n, const double *x, double *out);

/* Derandomised noise, in integers: coordinates are k / grid, cells are `levels` grid steps long, and
 * begin in the middle between two grid points. */
typedef struct bincp_split_grid {
    int32_t levels; /* < 2^28 */
    int32_t grid;   /* <= 2^20 */
} bincp_split_grid;

/* Copy `number` of a row, 0 <= number < levels. The cell of coordinate j in copy 0 begins at
 * starts[j] / (2 grid), `slack[j]` steps and a half below it. */
void bincp_split_copy_f32(bincp_split_grid split, int32_t number, size_t n, const int32_t *starts,
                          const int32_t *slack, float *out);
void bincp_split_copy_f64(bincp_split_grid split, int32_t number, size_t n, const int32_t *starts,
                          const int32_t *slack, double *out);

#endif
