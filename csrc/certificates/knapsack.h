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
#include <stdint.h>

#include "numerics/strict_floats.h"

/* Where one bound is a straight line: value + slope (p - from). */
typedef struct bincp_line {
    double from, value, slope;
} bincp_line;

/* A piecewise linear bound, rounded to its safe side, and an index of its pieces by p. */
typedef struct bincp_curve {
    size_t n_lines;
    double n_buckets;          /* a power of two */
    const double *starts;      /* of the lines; a 2 follows */
    const bincp_line *lines;
    const uint32_t *first;     /* line at the start of each bucket; two more follow */
} bincp_curve;

/* The line at the start of a bucket, and where it ends. */
typedef struct bincp_bucket {
    double until;
    bincp_line line;
} bincp_bucket;

typedef struct bincp_regions {
    bincp_curve lower, upper;
    const bincp_bucket *buckets; /* of `lower` */
} bincp_regions;

/* The numbers of doubles that bincp_regions_make keeps, and that it needs while it runs. n < 2^31. */
size_t bincp_regions_size(size_t n);
size_t bincp_regions_workspace(size_t n);

/* Both bounds from the masses of n regions in decreasing order of clean / perturbed.
 *
 * Each mass is within a relative error `slack` of the true one, and the sum of what underflow took
 * from them is at most `tiny`; a mass is 0 only if the region cannot happen. `slack` also covers
 * regions that stand before one whose ratio is larger by at most that factor.
 */
bincp_regions bincp_regions_make(const double *clean, const double *perturbed, size_t n,
                                 double slack, double tiny, double *storage, double *workspace);

/* Least perturbed mass of a set with clean mass p, rounded down; 0 <= result <= p. */
double bincp_regions_lower(const bincp_regions *regions, double p);

/* Largest clean mass of a set with perturbed mass p, rounded up; p <= result <= 1. */
double bincp_regions_upper(const bincp_regions *regions, double p);

/* The same at m probabilities; NaN where p is not in [0, 1]. Another thread may write to p meanwhile:
 * the bounds then mean nothing, but nothing is read or written out of bounds. */
void bincp_regions_lower_fill(const bincp_regions *regions, const double *p, size_t m, double *out);

/* Lower bounds at m probabilities in increasing order, all in [0, 1], from masses as above: those of
 * bincp_regions_lower, bit by bit, without the cost of an index for single look-ups. */
size_t bincp_regions_bounds_workspace(size_t n);
void bincp_regions_bounds(const double *clean, const double *perturbed, size_t n, double slack,
                          double tiny, const double *p, size_t m, double *out, double *workspace);

#endif
