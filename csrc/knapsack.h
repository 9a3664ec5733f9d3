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

/* Numbers of doubles that bincp_regions_make keeps, and needs while it runs. n < 2^31. */
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

/* The same at m probabilities; NaN where p is not in [0, 1]. */
void bincp_regions_lower_fill(const bincp_regions *regions, const double *p, size_t m, double *out);

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

/* Lower bounds for all numbers of flips: out[(i (deletions + 1) + j) m + k] is that of i additions
 * and j deletions at probability k.
 *
 * `p` holds the m probabilities in increasing order, all in [0, 1], and order[s] says which of them
 * p[s] is; NULL if p[k] is the k-th. The bounds are those of bincp_regions_lower, bit by bit. The
 * workspace holds bincp_flip_grid_workspace(...) doubles.
 */
size_t bincp_flip_grid_workspace(size_t additions, size_t deletions, size_t m);
void bincp_flip_grid(size_t additions, size_t deletions, double p_plus, double p_minus,
                     const double *p, const uint32_t *order, size_t m, double *out,
                     double *workspace);

/* Independent steps of a walk along 0, 1, 2, ...: each of `times` steps goes offset[i] places with
 * the probability hi[i] + lo[i]. */
typedef struct bincp_stride {
    size_t times;
    size_t offset[3];
    double hi[3], lo[3];
} bincp_stride;

/* Masses of the places 0 .. size - 1, the farthest one, where a walk from 0 ends.
 *
 * Errors are bounded like those of regions. The workspace holds 4 (size + largest offset) doubles.
 */
#define BINCP_WALK_SLACK 9e-16
double bincp_walk_tiny(const bincp_stride *steps, size_t n_steps, size_t size);
void bincp_walk_masses(const bincp_stride *steps, size_t n_steps, size_t size, double *mass,
                       double *workspace);

#endif
