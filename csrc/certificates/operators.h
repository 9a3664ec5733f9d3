/* Built-in certificates as structs of function pointers. */
#ifndef BINCP_OPERATORS_H
#define BINCP_OPERATORS_H

#include <stddef.h>

#include "bincp/bincp.h"
#include "numerics/strict_floats.h"

/* "Shift" means F(F^-1(p) -+ shift) for the distribution function F of the noise; all shifts are
 * rounded up. See location.h and steps.h for those with a struct. */
typedef enum bincp_builtin {
    BINCP_IDENTITY, /* both bounds are p; no params */
    BINCP_GAUSSIAN, /* shift; params: const double *shift */
    BINCP_UNIFORM,  /* clip(p -+ shift, 0, 1); params: const double *shift */
    BINCP_REGIONS,  /* fractional knapsack; params: const bincp_regions * */
    BINCP_STEPS,    /* clip(p -+ steps / levels, 0, 1); params: const bincp_steps * */
    BINCP_LAPLACE,  /* shift; params: const double *shift */
    BINCP_LAPLACE_UNIFORM, /* the tighter of both bounds; params: const double shifts[2] */
    BINCP_EXPP,            /* shift; params: const bincp_location * */
    BINCP_SECH,            /* shift; params: const bincp_location * */
    BINCP_PARETO,          /* shift; params: const bincp_location * */
    BINCP_HALF_POWER       /* shift; params: const double *shift */
} bincp_builtin;

/* The size of the struct without the optional members; shorter structs do not exist. */
#define BINCP_OPERATOR_MIN_SIZE (offsetof(bincp_operator, params) + sizeof(const void *))

/* Whether the struct, which may be older than our header, is long enough to hold `member`. */
#define BINCP_OPERATOR_HOLDS(op, member) \
    ((op)->struct_size >= offsetof(bincp_operator, member) + sizeof(op)->member)

/* The built-in operator `kind` with `params`, which must outlive it. */
bincp_operator bincp_operator_make(bincp_builtin kind, const void *params);

/* The knapsack over n regions, see knapsack.h for the arguments. `storage` has
 * bincp_operator_regions_bytes(n) bytes and outlives the operator; `workspace` holds
 * bincp_regions_workspace(n) doubles. */
size_t bincp_operator_regions_bytes(size_t n);
bincp_operator bincp_operator_regions(const double *clean, const double *perturbed, size_t n,
                                      double slack, double tiny, void *storage, double *workspace);

/* The knapsack over the additions + deletions + 1 regions of sparse flips, or the identity, which
 * needs no storage. */
size_t bincp_operator_sparse_workspace(size_t additions, size_t deletions); /* in doubles */
bincp_operator bincp_operator_sparse(size_t additions, size_t deletions, double p_plus,
                                     double p_minus, void *storage, double *workspace);

/* An operator for noise that is within `delta` of the law of `of` in total variation, at both inputs:
 * an event of probability p has at least p - delta by the law, so of->lower(p - delta) at the other
 * input by the law, and delta less as drawn. */
typedef struct bincp_charge {
    bincp_operator of; /* what it points to outlives the charge */
    double delta;      /* in [0, 1] */
} bincp_charge;
bincp_operator bincp_operator_charged(const bincp_charge *charge); /* which outlives the operator */

/* Evaluate a bound at n probabilities; `out` does not overlap `p`. The first two use the fills of
 * the operator where it has them. */
void bincp_lower_fill(const bincp_operator *op, const double *p, size_t n, double *out);
void bincp_upper_fill(const bincp_operator *op, const double *p, size_t n, double *out);
void bincp_bound_fill(bincp_bound_fn bound, const void *params, const double *p, size_t n,
                      double *out);

/* The generalised inverse of a lower bound: the largest q with lower(q) <= p, from above.
 *
 * It is the upper bound that belongs to `lower`. NaN for p outside [0, 1], and where `lower` is NaN
 * on the way; at most 65 calls. */
double bincp_generalised_inverse(bincp_bound_fn lower, const void *params, double p);

#endif
