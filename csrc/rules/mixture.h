/* Worst-case mixtures of binomials: how often a decision rule can miss, over all populations.
 *
 * A calibration point falls below its threshold with probability u(p) = P[Bin(m, p) < t], a test
 * label is refused with probability v(p) = P[Bin(m', c(p)) < k], p the clean success probability of
 * the threshold and c the certificate. Calibration says that the mean of u is at most j / (n + 1);
 * the worst mean of v over all laws of p is the upper concave envelope of the curve (u, v).
 */
#ifndef BINCP_MIXTURE_H
#define BINCP_MIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "numerics/strict_floats.h"

/* out[i] = P[Bin(m, p[i]) < t], where q[i] = 1 - p[i]; NaN where one of them is not in [0, 1]. */
void bincp_failures(int64_t t, int64_t m, const double *p, const double *q, size_t n, double *out);

typedef struct bincp_envelope {
    double value; /* bound on the envelope at the abscissa */
    double slope; /* of the line that proves it */
} bincp_envelope;

/* An upper bound on the envelope of n cells at abscissa x.
 *
 * u and v have n + 1 entries, for grid points 0 = p_0 < ... < p_n = 1. Neither increases with p, so
 * the corner (u[i + 1], v[i]) lies above every point of the curve between p_i and p_{i+1}, for every
 * slope >= 0. The bound is slope x + max over i of (v[i] - slope u[i + 1]), for a slope that makes it
 * as small as the corners allow.
 */
bincp_envelope bincp_corner_envelope(const double *u, const double *v, size_t n, double x);

/* The same for the points (u[i], v[i]) themselves. It is no bound, but the limit of finer grids. */
bincp_envelope bincp_point_envelope(const double *u, const double *v, size_t n, double x);

/* out[i] = E[w[S]], S ~ Bin(m, p[i]), q[i] = 1 - p[i], for weights w[0], ..., w[m] >= 0; NaN where p
 * or q is not in [0, 1]. Its error is at most BINCP_MEAN_ERROR times the largest of the weights for
 * m <= 1e5. */
#define BINCP_MEAN_ERROR 1e-13
void bincp_binomial_means(const double *w, int64_t m, const double *p, const double *q, size_t n,
                          double *out);

#endif
