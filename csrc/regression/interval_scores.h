/* Scores of real labels, and the labels whose score reaches a threshold, without rounding errors.
 *
 * The score of a label y is min((y - low) / scale, (high - y) / scale), rounded down: the largest double
 * that is not above the exact number. So it reaches a threshold iff the exact number does, and the
 * labels that reach tau are exactly those from low + tau * scale to high - tau * scale. The ends are
 * rounded inward, to the first and the last double among these labels.
 *
 * low and high may be infinite, but not NaN; scale is positive and finite, and may be NULL for 1.
 *
 * Kernels without Python and without allocation. They hold no state and may run on any thread.
 */
#ifndef BINCP_INTERVAL_SCORES_H
#define BINCP_INTERVAL_SCORES_H

#include <stddef.h>

#include "numerics/strict_floats.h"

/* Write the scores of the finite labels y of n_rows rows, each under m predictions. */
void bincp_interval_scores(const double *low, const double *high, const double *scale, const double *y,
                           size_t n_rows, size_t m, double *scores);

/* Write the ends of n intervals: the doubles y with left[i] <= y <= right[i] are those that reach tau,
 * which is above -infinity.
 *
 * An end is infinite where `low` or `high` is, and where it is beyond all doubles. Where no double
 * reaches tau, left[i] > right[i], or both are the same infinity.
 */
void bincp_interval_ends(const double *low, const double *high, const double *scale, double tau, size_t n,
                         double *left, double *right);

#endif
