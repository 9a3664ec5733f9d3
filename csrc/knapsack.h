/* Likelihood-ratio regions of discrete smoothing, and the fractional knapsack over them.
 *
 * A region is a set of outcomes with one likelihood ratio. A classifier that gives the clean input
 * probability p keeps at least `lower(p)` at the perturbed input, where lower fills regions in
 * decreasing order of clean mass over perturbed mass (the Neyman-Pearson lemma: spend the budget
 * where the perturbed input has least).
 */
#ifndef BINCP_KNAPSACK_H
#define BINCP_KNAPSACK_H

#include <stddef.h>

/* Regions in decreasing order of clean / perturbed mass, as cumulated masses.
 *
 * Each array has n + 1 knots from 0 to the total; `below` counts from the first region, `above`
 * from the last. Each knot is within a relative error `slack` of the true one, or within `tiny`
 * where it is near the smallest doubles.
 */
typedef struct bincp_regions {
    size_t n;
    const double *clean_below, *perturbed_below;
    const double *clean_above, *perturbed_above;
    double slack, tiny;
} bincp_regions;

/* Number of doubles that bincp_regions_cumulate writes to. */
size_t bincp_regions_size(size_t n);

/* Cumulate n ordered masses into `storage`. `slack` and `tiny` bound the errors of the masses. */
bincp_regions bincp_regions_cumulate(const double *clean, const double *perturbed, size_t n,
                                     double slack, double tiny, double *storage);

/* Least perturbed mass of a set with clean mass p, rounded down; 0 <= result <= p. */
double bincp_regions_lower(const bincp_regions *regions, double p);

/* Largest clean mass of a set with perturbed mass p, rounded up; p <= result <= 1. */
double bincp_regions_upper(const bincp_regions *regions, double p);

/* Bounds on the errors of the masses of bincp_sparse_regions. */
#define BINCP_SPARSE_SLACK 9e-16
double bincp_sparse_tiny(size_t additions, size_t deletions);

/* Masses of the a + d + 1 regions of sparse flips, in decreasing order of clean / perturbed mass:
 * "q of the a + d differing bits differ from the clean input after smoothing".
 *
 * Under the clean input q is Bin(a, p_plus) + Bin(d, p_minus), under the perturbed one
 * Bin(a, 1 - p_minus) + Bin(d, 1 - p_plus). `workspace` holds 2 (a + d + 2) doubles.
 */
void bincp_sparse_regions(size_t additions, size_t deletions, double p_plus, double p_minus,
                          double *clean, double *perturbed, double *workspace);

/* -1, 0 or 1: the sign of p_plus + p_minus - 1, exactly. At 0 every likelihood ratio is 1. */
int bincp_sparse_direction(double p_plus, double p_minus);

#endif
