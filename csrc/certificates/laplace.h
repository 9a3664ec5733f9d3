/* Certificates of Laplace noise: F(F^-1(p) -+ shift) with F = exp(x) / 2 for x <= 0.
 *
 * The functions take p in [0, 1] and a shift >= 0 or infinite, rounded up, and round outward. A bound
 * is within 2.4e-15 of the exact one, relative to it or to 1 minus it: both factors miss by their margin
 * and their error, 9.4 units each, and two roundings. Shift 0 gives p.
 */
#ifndef BINCP_LAPLACE_H
#define BINCP_LAPLACE_H

#include <stddef.h>

#include "numerics/strict_floats.h"

/* params: const double *shift */
double bincp_laplace_lower(double p, const void *params);
double bincp_laplace_upper(double p, const void *params);

/* The same bits for n probabilities; `out` does not overlap `p`. */
void bincp_laplace_lower_fill(const double *p, size_t n, const void *params, double *out);
void bincp_laplace_upper_fill(const double *p, size_t n, const void *params, double *out);

#endif
