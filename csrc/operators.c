/* The built-in operators: each row of `builtins` ties a name to its two bounds.
 *
 * A bound is a plain function of (p, params), so a certificate costs one indirect call, needs no
 * Python, and one from outside (bincp/bincp.h) is called in the same way as one of ours.
 */
#include "operators.h"

#include <math.h>

#include "knapsack.h"
#include "location.h"
#include "normal.h"
#include "two_sum.h"

static int outside(double p)
{
    return !(p >= 0.0 && p <= 1.0); /* true for NaN */
}

static double identity(double p, const void *params)
{
    (void)params;
    return outside(p) ? NAN : p;
}

static double gaussian_lower(double p, const void *params)
{
    return outside(p) ? NAN : bincp_normal_shift_down(p, *(const double *)params);
}

static double gaussian_upper(double p, const void *params)
{
    return outside(p) ? NAN : bincp_normal_shift_up(p, *(const double *)params);
}

static double uniform_lower(double p, const void *params)
{
    const double shift = *(const double *)params;
    if (outside(p)) {
        return NAN;
    }
    const pair value = two_sum(p, -shift);
    if (value.hi <= 0.0) {
        return 0.0;
    }
    return value.lo < 0.0 ? nextafter(value.hi, 0.0) : value.hi;
}

static double uniform_upper(double p, const void *params)
{
    const double shift = *(const double *)params;
    if (outside(p)) {
        return NAN;
    }
    const pair value = two_sum(p, shift);
    if (value.hi >= 1.0) {
        return 1.0;
    }
    return value.lo > 0.0 ? nextafter(value.hi, 1.0) : value.hi;
}

static double regions_lower(double p, const void *params)
{
    return outside(p) ? NAN : bincp_regions_lower(params, p);
}

static double regions_upper(double p, const void *params)
{
    return outside(p) ? NAN : bincp_regions_upper(params, p);
}

static double laplace_uniform_lower(double p, const void *params)
{
    const double *shifts = params;
    return fmax(bincp_laplace_lower(p, &shifts[0]), uniform_lower(p, &shifts[1]));
}

static double laplace_uniform_upper(double p, const void *params)
{
    const double *shifts = params;
    return fmin(bincp_laplace_upper(p, &shifts[0]), uniform_upper(p, &shifts[1]));
}

static const struct {
    const char *name;
    bincp_bound_fn lower, upper;
} builtins[] = {
    [BINCP_IDENTITY] = {"identity", identity, identity},
    [BINCP_GAUSSIAN] = {"gaussian", gaussian_lower, gaussian_upper},
    [BINCP_UNIFORM] = {"uniform", uniform_lower, uniform_upper},
    [BINCP_REGIONS] = {"regions", regions_lower, regions_upper},
    [BINCP_LAPLACE] = {"laplace", bincp_laplace_lower, bincp_laplace_upper},
    [BINCP_LAPLACE_UNIFORM] = {"laplace or uniform", laplace_uniform_lower, laplace_uniform_upper},
    [BINCP_EXPP] = {"expp", bincp_expp_lower, bincp_expp_upper},
    [BINCP_SECH] = {"exp2", bincp_sech_lower, bincp_sech_upper},
    [BINCP_PARETO] = {"pareto", bincp_pareto_lower, bincp_pareto_upper},
    [BINCP_ROOT] = {"expp, p = 1/2", bincp_root_lower, bincp_root_upper},
};

bincp_operator bincp_operator_make(bincp_builtin kind, const void *params)
{
    return (bincp_operator){
        .abi_version = BINCP_ABI_VERSION,
        .struct_size = (uint32_t)sizeof(bincp_operator),
        .name = builtins[kind].name,
        .lower = builtins[kind].lower,
        .upper = builtins[kind].upper,
        .params = params,
    };
}

void bincp_bound_fill(bincp_bound_fn bound, const void *params, const double *p, size_t n,
                      double *out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = bound(p[i], params);
    }
}
