/* Built-in certificates as structs of function pointers. */
#ifndef BINCP_OPERATORS_H
#define BINCP_OPERATORS_H

#include <stddef.h>

#include "bincp/bincp.h"

typedef enum bincp_builtin {
    BINCP_IDENTITY, /* both bounds are p; no params */
    BINCP_GAUSSIAN, /* Phi(Phi^-1(p) -+ shift); params: const double *shift, rounded up */
    BINCP_UNIFORM,  /* clip(p -+ shift, 0, 1); params: const double *shift, rounded up */
    BINCP_REGIONS,  /* fractional knapsack; params: const bincp_regions * */
    /* Shifts F(F^-1(p) -+ shift), see location.h; params: the shift rounded up, or the struct */
    BINCP_LAPLACE,         /* const double *shift */
    BINCP_LAPLACE_UNIFORM, /* the tighter of both; params: const double shifts[2] */
    BINCP_EXPP,            /* const bincp_location * */
    BINCP_SECH,            /* const bincp_location * */
    BINCP_PARETO,          /* const bincp_location * */
    BINCP_ROOT             /* const double *shift */
} bincp_builtin;

/* The built-in operator `kind` with `params`, which must outlive it. */
bincp_operator bincp_operator_make(bincp_builtin kind, const void *params);

/* Evaluate a bound at n probabilities. */
void bincp_bound_fill(bincp_bound_fn bound, const void *params, const double *p, size_t n,
                      double *out);

#endif
