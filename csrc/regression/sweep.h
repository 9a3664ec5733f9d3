/* Where at least k of m closed intervals overlap, as a union of closed intervals.
 *
 * Kernels without Python and without allocation. They hold no state and may run on any thread.
 */
#ifndef BINCP_SWEEP_H
#define BINCP_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "numerics/strict_floats.h"

/* Give the empty ones of n intervals infinity for both ends, which sorting leaves behind all others:
 * those whose ends are crossed, and those whose ends are the same infinity, which hold no real number.
 *
 * Returns 1 if any end is NaN; 0 otherwise.
 */
int bincp_mark_empty(double *left, double *right, size_t n);

/* Write the pieces of the points that at least k of the m intervals of a row contain, 1 <= k <= m, for
 * n_rows rows. The left ends of each row are sorted, and so are its right ends, by themselves, after
 * bincp_mark_empty.
 *
 * Row i has the pieces [starts[p], stops[p]] for offsets[i] <= p < offsets[i + 1], in their order. No
 * two of them meet. There is room for n_rows (m - k + 1) pieces, the most that there can be. Returns
 * their number. The results must not overlap the inputs.
 *
 * Why it is right: y is in k intervals or more iff there is an i with left[i] <= y <= right[i - k + 1],
 * counted from 0 in sorted order. If so, i + 1 intervals have begun at y, and at most i - k + 1 of them
 * have ended before it. If y is in so many intervals, take the last i with left[i] <= y. So the set is
 * the union of these m - k + 1 intervals, and both ends of them ascend.
 */
size_t bincp_sweep(const double *left, const double *right, size_t n_rows, size_t m, size_t k,
                   double *starts, double *stops, int64_t *offsets);

#endif
