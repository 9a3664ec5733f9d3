/* Functions from outside as the bounds of an operator. */
#ifndef BINCP_FOREIGN_H
#define BINCP_FOREIGN_H

#include "bincp/bincp.h"
#include "numerics/strict_floats.h"

typedef double (*bincp_plain_fn)(double p);
typedef double (*bincp_data_fn)(double p, void *data);

/* A function from outside of one of three types: its pointer is set, or none without a function. */
typedef struct bincp_function {
    bincp_plain_fn plain;
    bincp_data_fn with_data;
    bincp_bound_fn bound; /* also gets `data` */
    void *data;
    bincp_fill_fn fill; /* `bound` for many values; NULL if there is none */
} bincp_function;

/* Both bounds; without `upper`, the generalised inverse of `lower` is used. */
typedef struct bincp_foreign {
    bincp_function lower, upper;
} bincp_foreign;

int bincp_function_is_given(const bincp_function *function);

/* The value that the function itself returns. */
double bincp_function_call(const bincp_function *function, double p);

/* The functions of a struct from outside, which may be older than our header. */
bincp_foreign bincp_foreign_functions(const bincp_operator *given);

/* The operator whose bounds are NaN where the functions leave [0, 1], for single values and arrays.
 * Both arguments must outlive it. */
bincp_operator bincp_foreign_operator(const bincp_foreign *functions, const char *name);

#endif
