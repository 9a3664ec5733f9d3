/* Normal distribution function and quantile, accurate in both tails. */
#ifndef BINCP_NORMAL_H
#define BINCP_NORMAL_H

#include <stddef.h>

#include "numerics/strict_floats.h"

/* Phi(x) for x <= 0: the lower tail. By symmetry the upper tail of x >= 0 is that of -x. */
double bincp_normal_tail(double x);

/* exp(y^2 / 2) (1 - Phi(y)) for y in [0, 119]: 29 units up to y = 40, and beyond within 3e-13. */
double bincp_normal_mills(double y);

/* Phi^-1(p) for p in (0, 1/2], as a number <= 0. By symmetry Phi^-1(1 - p) is its negative. */
double bincp_normal_tail_quantile(double p);

/* Phi(Phi^-1(p) - shift) for p in [0, 1], shift >= 0 or infinite, rounded down. Exact at p = 0,
 * p = 1 and shift 0; NaN for p outside [0, 1]. */
double bincp_normal_shift_down(double p, double shift);

/* Phi(Phi^-1(p) + shift), rounded up. */
double bincp_normal_shift_up(double p, double shift);

/* The same for n probabilities; `out` does not overlap `p`. The bits are those of the functions
 * above. */
void bincp_normal_shift_down_fill(const double *p, size_t n, double shift, double *out);
void bincp_normal_shift_up_fill(const double *p, size_t n, double shift, double *out);

#endif
