/* Built-in certificates as structs of function pointers. */
#ifndef BINCP_OPERATORS_H
#define BINCP_OPERATORS_H

#include <stddef.h>

#include "bincp/bincp.h"
#include "numerics/strict_floats.h"

typedef enum bincp_builtin {
    BINCP_IDENTITY, /* both bounds are p; no params */
    BINCP_GAUSSIAN, /* Phi(Phi^-1(p) -+ shift); params: const double *shift, rounded up */
    BINCP_UNIFORM,  /* clip(p -+ shift, 0, 1); params: const double *shift, rounded up */
    BINCP_REGIONS,  /* fractional knapsack; params: const bincp_regions * */
    BINCP_STEPS,    /* clip(p -+ steps / levels, 0, 1), see below; params: const bincp_steps * */
    /* Shifts F(F^-1(p) -+ shift), see location.h; params: the shift rounded up, or the struct */
    BINCP_LAPLACE,         /* const double *shift */
    BINCP_LAPLACE_UNIFORM, /* the tighter of both; params: const double shifts[2] */
    BINCP_EXPP,            /* const bincp_location * */
    BINCP_SECH,            /* const bincp_location * */
    BINCP_PARETO,          /* const bincp_location * */
    BINCP_ROOT             /* const double *shift */
} bincp_builtin;

/* What the first version of the struct has; shorter ones do not exist. */
#define BINCP_OPERATOR_MIN_SIZE (offsetof(bincp_operator, params) + sizeof(const void *))

/* Probabilities that are multiples of 1 / levels, of which the attack moves a count by `steps`.
 *
 * A p that is the nearest double of count / levels stands for that count: `lower` is then
 * (count - steps) / levels rounded down once, so that for any two counts
 * (double)a / levels >= lower(c / levels) if and only if a >= c - steps. Both are integers in
 * doubles, 1 <= levels < 2^52 and 0 <= steps <= levels. */
typedef struct bincp_steps {
    double levels, steps;
} bincp_steps;

/* The built-in operator `kind` with `params`, which must outlive it. */
bincp_operator bincp_operator_make(bincp_builtin kind, const void *params);

/* Evaluate a bound at n probabilities. */
void bincp_bound_fill(bincp_bound_fn bound, const void *params, const double *p, size_t n,
                      double *out);

/* The generalised inverse of a lower bound: the largest q with lower(q) <= p, from above.
 *
 * That is the upper bound which goes with it. NaN for p outside [0, 1], and where `lower` is NaN on
 * the way; at most 65 calls. */
double bincp_generalised_inverse(bincp_bound_fn lower, const void *params, double p);

#endif
