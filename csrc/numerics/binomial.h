/* Binomial tails and one-sided Clopper-Pearson bounds.
 *
 * Kernels without Python and without allocation. They hold no state and may run on any thread.
 */
#ifndef BINCP_BINOMIAL_H
#define BINCP_BINOMIAL_H

#include <stdint.h>

#include "numerics/strict_floats.h"

/* How far a Clopper-Pearson bound steps outward: a relative change of its odds.
 *
 * The solver's own error stays below 6e-15 for eta >= 1e-15. Below that the error grows with
 * -log(eta), and the step with it: it is multiplied by log(eta) / log(BINCP_CP_STEP_ETA).
 */
#define BINCP_CP_STEP 1.6e-14
#define BINCP_CP_STEP_ETA 1e-15

/* The relative error of a mass or tail P is at most this times 10 - log(P) (measured for m <= 1e7):
 * 4e-14 where P is 1, 4e-12 where it is 1e-300. */
#define BINCP_BINOM_ERROR 4e-15

/* log P[X = s] and P[X = s] for X ~ Bin(m, p), q = 1 - p, 1 <= m < 2^31.
 *
 * Take p and q both, each as accurate as it can be had; the smaller one is what counts.
 * Outside 0 <= s <= m the mass is 0.
 */
double bincp_binom_log_pmf(int64_t s, int64_t m, double p, double q);
double bincp_binom_pmf(int64_t s, int64_t m, double p, double q);

/* P[X >= s] (s itself included) and P[X <= s], not rounded in any direction; a small tail is never
 * one minus a large one. The certain and the impossible tails are 1 and 0. */
double bincp_binom_sf(int64_t s, int64_t m, double p, double q);
double bincp_binom_cdf(int64_t s, int64_t m, double p, double q);

/* One-sided Clopper-Pearson bounds for s successes in m trials, 0 <= s <= m, 1 <= m < 2^31.
 *
 * P[Bin(m, lower) >= s] <= eta and P[Bin(m, upper) <= s] <= eta hold for the returned doubles.
 * eta outside (0, 1), NaN included, gets the trivial bounds 0 and 1.
 */
double bincp_cp_lower(int64_t s, int64_t m, double eta);
double bincp_cp_upper(int64_t s, int64_t m, double eta);

/* All m + 1 bounds: lower[s] and upper[s] for s = 0..m. Either may be NULL.
 *
 * They agree with the single bounds to within the outward step, and do not decrease with s.
 */
void bincp_cp_table(int64_t m, double eta, double *lower, double *upper);

#endif
