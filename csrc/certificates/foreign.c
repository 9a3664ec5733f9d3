/* Operators from outside: a guard around functions with unknown code.
 *
 * Every operator that bincp hands out keeps the promise of bincp/bincp.h (a probability, or NaN),
 * so compiled callers need no check of their own. An operator from outside is therefore wrapped, even
 * if it is a bincp_operator already: its struct may have another size than ours, and its functions
 * may return any value. The price is one more indirect call, about 2 ns, and for arrays one pass over
 * them.
 */
#include "certificates/foreign.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "certificates/operators.h"
#include "numerics/constants.h"

enum { CHUNK = 512 }; /* values that a function from outside gets at a time */

int bincp_function_is_given(const bincp_function *function)
{
    return function->plain != NULL || function->with_data != NULL || function->bound != NULL;
}

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

bincp_foreign bincp_foreign_functions(const bincp_operator *given)
{
    bincp_foreign functions = {{NULL, NULL, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
    functions.lower.bound = given->lower;
    functions.upper.bound = given->upper;
    memcpy(&functions.lower.data, &given->params, sizeof given->params); /* drops the const */
    functions.upper.data = functions.lower.data;
    functions.lower.fill = BINCP_OPERATOR_HOLDS(given, lower_fill) ? given->lower_fill : NULL;
    functions.upper.fill = BINCP_OPERATOR_HOLDS(given, upper_fill) ? given->upper_fill : NULL;
    return functions;
}

static double guarded(const bincp_function *function, double given)
{
    const double p = probability_or_nan(given);
    return isnan(p) ? NAN : probability_or_nan(bincp_function_call(function, p));
}

/* The function gets only probabilities, in memory that no other thread writes: zeros take the place
 * of other values. A value that it does not write stays NaN. */
static void fill_chunk(const bincp_function *function, const double *p, size_t n, double *out)
{
    double asked[CHUNK] = {0.0}, bounds[CHUNK];
    unsigned char inside[CHUNK];
    for (size_t i = 0; i < n; ++i) {
        const double value = probability_or_nan(p[i]);
        inside[i] = (unsigned char)!isnan(value);
        asked[i] = inside[i] ? value : 0.0;
        bounds[i] = NAN;
    }
    function->fill(asked, n, function->data, bounds);
    for (size_t i = 0; i < n; ++i) {
        out[i] = inside[i] ? probability_or_nan(bounds[i]) : NAN;
    }
}

static void guarded_fill(const bincp_function *function, const double *p, size_t n, double *out)
{
    if (function->fill == NULL) {
        for (size_t i = 0; i < n; ++i) {
            out[i] = guarded(function, p[i]);
        }
        return;
    }
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        fill_chunk(function, p + first, length, out + first);
    }
}

static double lower(double p, const void *params)
{
    return guarded(&((const bincp_foreign *)params)->lower, p);
}

static double upper(double p, const void *params)
{
    return guarded(&((const bincp_foreign *)params)->upper, p);
}

static void lower_fill(const double *p, size_t n, const void *params, double *out)
{
    guarded_fill(&((const bincp_foreign *)params)->lower, p, n, out);
}

static void upper_fill(const double *p, size_t n, const void *params, double *out)
{
    guarded_fill(&((const bincp_foreign *)params)->upper, p, n, out);
}

static double inverse(double p, const void *params)
{
    return bincp_generalised_inverse(lower, params, p);
}

bincp_operator bincp_foreign_operator(const bincp_foreign *functions, const char *name)
{
    const int has_upper = bincp_function_is_given(&functions->upper);
    return (bincp_operator){
        .abi_version = BINCP_ABI_VERSION,
        .struct_size = (uint32_t)sizeof(bincp_operator),
        .name = name,
        .lower = lower,
        .upper = has_upper ? upper : inverse,
        .params = functions,
        .lower_fill = lower_fill,
        .upper_fill = has_upper ? upper_fill : NULL,
    };
}
