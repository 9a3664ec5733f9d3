/* Certificates of counts: an attack moves a count out of `levels` by at most `steps`.
 *
 * A p that is the nearest double of count / levels stands for that count: `lower` is then
 * (count - steps) / levels rounded down once, so that for any two counts
 * (double)a / levels >= lower(c / levels) if and only if a >= c - steps. Between two counts the bound is
 * linear, so that upper(p) >= q if and only if p >= lower(q). It is no worse than the bound of the
 * nearer count, so that rounding keeps it monotone.
 */
#ifndef BINCP_STEPS_H
#define BINCP_STEPS_H

#include <stddef.h>

#include "numerics/strict_floats.h"

#define BINCP_MAX_LEVELS 0x1p50

/* Both are integers in doubles, 1 <= levels <= BINCP_MAX_LEVELS and 0 <= steps <= levels. */
typedef struct bincp_steps {
    double levels, steps;
} bincp_steps;

/* params: const bincp_steps * */
double bincp_steps_lower(double p, const void *params);
double bincp_steps_upper(double p, const void *params);

/* The same bits for n probabilities; `out` does not overlap `p`. */
void bincp_steps_lower_fill(const double *p, size_t n, const void *params, double *out);
void bincp_steps_upper_fill(const double *p, size_t n, const void *params, double *out);

#endif
