/* Confidence bounds on a success probability that are sharper, or hold at all times.
 *
 * Kernels without Python and without allocation. They hold no state and may run on any thread.
 */
#ifndef BINCP_CONFIDENCE_H
#define BINCP_CONFIDENCE_H

#include <stdint.h>

#include "numerics/strict_floats.h"

/* Randomised Clopper-Pearson bounds for s successes in m trials and a number u in [0, 1].
 *
 * P[Bin(m, lower) > s] + u P[Bin(m, lower) = s] <= eta and P[Bin(m, upper) < s] + u P[Bin(m, upper) = s]
 * <= eta hold for the returned doubles, unless they are 0 and 1.
 */
double bincp_randomized_lower(int64_t s, int64_t m, double u, double eta);
double bincp_randomized_upper(int64_t s, int64_t m, double u, double eta);

/* Bounds that hold after any number m of trials at once: eta <= 1 / M for the returned doubles p, unless
 * they are 0 and 1, where for the lower bound
 *
 *     M(p) = P[Bin(m + 1, p) <= s] / ((m + 1 - s) P[Bin(m + 1, p) = s]),
 *
 * the mean over q, uniform in [p, 1], of the likelihood of q over that of p. The upper bound is 1 minus
 * the lower bound of the failures.
 */
double bincp_sequence_lower(int64_t s, int64_t m, double eta);
double bincp_sequence_upper(int64_t s, int64_t m, double eta);

#endif
