/* Operators from outside: a guard around functions whose code we do not know.
 *
 * Every operator that bincp hands out keeps the promise of bincp/bincp.h (a probability, or NaN),
 * so compiled callers need no check of their own. One from outside is therefore wrapped, also where
 * it is a bincp_operator already: its struct may be of another size than ours, and its functions may
 * return anything. The price is one more indirect call, about 2 ns.
 */
#include "certificates/foreign.h"

#include <math.h>
#include <stddef.h>

#include "certificates/operators.h"

double bincp_function_call(const bincp_function *function, double p)
{
    if (function->bound != NULL) {
        return function->bound(p, function->data);
    }
    if (function->with_data != NULL) {
        return function->with_data(p, function->data);
    }
    return function->plain(p);
}

static int is_probability(double p)
{
    return p >= 0.0 && p <= 1.0; /* false for NaN */
}

static double guarded(const bincp_function *function, double p)
{
    if (!is_probability(p)) {
        return NAN;
    }
    const double value = bincp_function_call(function, p);
    return is_probability(value) ? value : NAN;
}

static double lower(double p, const void *params)
{
    return guarded(&((const bincp_foreign *)params)->lower, p);
}

static double upper(double p, const void *params)
{
    return guarded(&((const bincp_foreign *)params)->upper, p);
}

static double inverse(double p, const void *params)
{
    return bincp_generalised_inverse(lower, params, p);
}

static int is_given(const bincp_function *function)
{
    return function->plain != NULL || function->with_data != NULL || function->bound != NULL;
}

bincp_operator bincp_foreign_operator(const bincp_foreign *functions, const char *name)
{
    return (bincp_operator){
        .abi_version = BINCP_ABI_VERSION,
        .struct_size = (uint32_t)sizeof(bincp_operator),
        .name = name,
        .lower = lower,
        .upper = is_given(&functions->upper) ? upper : inverse,
        .params = functions,
    };
}
