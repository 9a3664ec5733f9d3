/* Likelihood-ratio regions of sparse flips: for one ball, and bounds for all numbers of flips. */
#ifndef BINCP_SPARSE_REGIONS_H
#define BINCP_SPARSE_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "numerics/strict_floats.h"

/* Bounds on the relative and on the absolute error of the masses of bincp_sparse_masses. */
#define BINCP_SPARSE_SLACK 9e-16
double bincp_sparse_tiny(size_t additions, size_t deletions);

/* Masses of the a + d + 1 regions of sparse flips, in decreasing order of clean / perturbed mass:
 * "q of the a + d differing bits differ from the clean input after smoothing".
 *
 * Under the clean input q is Bin(a, p_plus) + Bin(d, p_minus), under the perturbed one
 * Bin(a, 1 - p_minus) + Bin(d, 1 - p_plus). `workspace` holds 2 (a + d + 2) doubles.
 */
void bincp_sparse_masses(size_t additions, size_t deletions, double p_plus, double p_minus,
                          double *clean, double *perturbed, double *workspace);

/* The exact sign of p_plus + p_minus - 1, as -1, 0 or 1. At 0 every likelihood ratio is 1. */
int bincp_sparse_direction(double p_plus, double p_minus);

/* Whether no ball of this size changes any probability: there are no flips, or all ratios are 1. */
int bincp_sparse_is_identity(size_t additions, size_t deletions, double p_plus, double p_minus);

/* Lower bounds for all numbers of flips: out[(i (deletions + 1) + j) m + k] is that of i additions
 * and j deletions at probability k.
 *
 * `p` holds the m probabilities in increasing order, all in [0, 1], and p[s] is probability order[s];
 * without an order (NULL) it is probability s. The bounds are those of bincp_regions_lower, bit by bit. With
 * any other values in `p` or `order` they mean nothing: an order that is not below m writes nothing.
 * The workspace holds bincp_sparse_grid_workspace(...) doubles.
 */
size_t bincp_sparse_grid_workspace(size_t additions, size_t deletions, size_t m);
void bincp_sparse_grid(size_t additions, size_t deletions, double p_plus, double p_minus,
                     const double *p, const uint32_t *order, size_t m, double *out,
                     double *workspace);

#endif
