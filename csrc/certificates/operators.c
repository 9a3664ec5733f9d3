/* The built-in operators: each row of `builtins` ties a name to its two bounds.
 *
 * A bound is a plain function of (p, params), so a certificate costs one indirect call and needs no
 * Python. One from outside (bincp/bincp.h) is called in the same way as one of ours. An operator that
 * can do many probabilities at once also brings a function for arrays.
 */
#include "certificates/operators.h"

#include <math.h>

#include "certificates/knapsack.h"
#include "certificates/laplace.h"
#include "certificates/location.h"
#include "certificates/sparse_regions.h"
#include "certificates/steps.h"
#include "numerics/bits.h"
#include "numerics/clones.h"
#include "numerics/constants.h"
#include "numerics/directed.h"
#include "numerics/normal.h"

enum { FILL_CHUNK = 512 }; /* probabilities at a time */

static double identity(double p, const void *params)
{
    (void)params;
    return probability_or_nan(p);
}

static double gaussian_lower(double p, const void *params)
{
    return bincp_normal_shift_down(p, *(const double *)params);
}

static double gaussian_upper(double p, const void *params)
{
    return bincp_normal_shift_up(p, *(const double *)params);
}

static double uniform_lower(double p, const void *params)
{
    return is_probability(p) ? shifted_down(p, *(const double *)params) : NAN;
}

static double uniform_upper(double p, const void *params)
{
    return is_probability(p) ? shifted_up(p, *(const double *)params) : NAN;
}

static double regions_lower(double p, const void *params)
{
    return is_probability(p) ? bincp_regions_lower(params, p) : NAN;
}

static double regions_upper(double p, const void *params)
{
    return is_probability(p) ? bincp_regions_upper(params, p) : NAN;
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

/* ---- many probabilities at once ---------------------------------------------------------------- */

static void regions_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    bincp_regions_lower_fill(params, p, n, out);
}

static void gaussian_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    bincp_normal_shift_down_fill(p, n, *(const double *)params, out);
}

static void gaussian_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    bincp_normal_shift_up_fill(p, n, *(const double *)params, out);
}

CLONES_V4 static void fill_below(double shift, const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double value = shifted_down(p[i], shift);
        out[i] = is_probability(p[i]) ? value : NAN;
    }
}

CLONES_V4 static void fill_above(double shift, const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double value = shifted_up(p[i], shift);
        out[i] = is_probability(p[i]) ? value : NAN;
    }
}

static void uniform_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    fill_below(*(const double *)params, p, n, out);
}

static void uniform_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    fill_above(*(const double *)params, p, n, out);
}

/* A NaN is written by both loops, and stays. */
CLONES_V4 static void raise_to(const double *p, size_t n, double shift, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double bound = shifted_down(p[i], shift);
        out[i] = bound > out[i] ? bound : out[i];
    }
}

CLONES_V4 static void lower_to(const double *p, size_t n, double shift, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double bound = shifted_up(p[i], shift);
        out[i] = bound < out[i] ? bound : out[i];
    }
}

static void laplace_uniform_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    const double *shifts = params;
    bincp_laplace_lower_fill(p, n, &shifts[0], out);
    raise_to(p, n, shifts[1], out);
}

static void laplace_uniform_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    const double *shifts = params;
    bincp_laplace_upper_fill(p, n, &shifts[0], out);
    lower_to(p, n, shifts[1], out);
}

void bincp_bound_fill(bincp_bound_fn bound, const void *params, const double *p, size_t n,
                      double *out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = bound(p[i], params);
    }
}

void bincp_lower_fill(const bincp_operator *op, const double *p, size_t n, double *out)
{
    if (BINCP_OPERATOR_HOLDS(op, lower_fill) && op->lower_fill != NULL) {
        op->lower_fill(p, n, op->params, out);
    } else {
        bincp_bound_fill(op->lower, op->params, p, n, out);
    }
}

void bincp_upper_fill(const bincp_operator *op, const double *p, size_t n, double *out)
{
    if (BINCP_OPERATOR_HOLDS(op, upper_fill) && op->upper_fill != NULL) {
        op->upper_fill(p, n, op->params, out);
    } else {
        bincp_bound_fill(op->upper, op->params, p, n, out);
    }
}

/* ---- the table of built-in operators ----------------------------------------------------------- */

static const struct {
    const char *name;
    bincp_bound_fn lower, upper;
    bincp_fill_fn lower_fill, upper_fill;
} builtins[] = {
    [BINCP_IDENTITY] = {"identity", identity, identity, NULL, NULL},
    [BINCP_GAUSSIAN] = {"gaussian", gaussian_lower, gaussian_upper, gaussian_lower_fill,
                        gaussian_upper_fill},
    [BINCP_UNIFORM] = {"uniform", uniform_lower, uniform_upper, uniform_lower_fill,
                       uniform_upper_fill},
    [BINCP_REGIONS] = {"regions", regions_lower, regions_upper, regions_lower_fill, NULL},
    [BINCP_STEPS] = {"steps", bincp_steps_lower, bincp_steps_upper, bincp_steps_lower_fill,
                     bincp_steps_upper_fill},
    [BINCP_LAPLACE] = {"laplace", bincp_laplace_lower, bincp_laplace_upper,
                       bincp_laplace_lower_fill, bincp_laplace_upper_fill},
    [BINCP_LAPLACE_UNIFORM] = {"tighter of laplace and uniform", laplace_uniform_lower,
                               laplace_uniform_upper, laplace_uniform_lower_fill,
                               laplace_uniform_upper_fill},
    [BINCP_EXPP] = {"exponential power", bincp_expp_lower, bincp_expp_upper, NULL, NULL},
    [BINCP_SECH] = {"hyperbolic secant", bincp_sech_lower, bincp_sech_upper, NULL, NULL},
    [BINCP_PARETO] = {"pareto", bincp_pareto_lower, bincp_pareto_upper, NULL, NULL},
    [BINCP_HALF_POWER] = {"exponential of a square root", bincp_half_power_lower,
                          bincp_half_power_upper, NULL, NULL},
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
        .lower_fill = builtins[kind].lower_fill,
        .upper_fill = builtins[kind].upper_fill,
    };
}

/* ---- operators of noise that is not quite its law --------------------------------------------- */

static double charged_lower(double p, const void *params)
{
    const bincp_charge *charge = params;
    if (!is_probability(p)) {
        return NAN;
    }
    const double bound = charge->of.lower(shifted_down(p, charge->delta), charge->of.params);
    return is_probability(bound) ? shifted_down(bound, charge->delta) : NAN;
}

static double charged_upper(double p, const void *params)
{
    const bincp_charge *charge = params;
    if (!is_probability(p)) {
        return NAN;
    }
    const double bound = charge->of.upper(shifted_up(p, charge->delta), charge->of.params);
    return is_probability(bound) ? shifted_up(bound, charge->delta) : NAN;
}

static void charged_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    const bincp_charge *charge = params;
    double moved[FILL_CHUNK];
    for (size_t first = 0; first < n; first += FILL_CHUNK) {
        const size_t length = n - first < FILL_CHUNK ? n - first : FILL_CHUNK;
        fill_below(charge->delta, p + first, length, moved);
        bincp_lower_fill(&charge->of, moved, length, out + first);
        fill_below(charge->delta, out + first, length, out + first);
    }
}

static void charged_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    const bincp_charge *charge = params;
    double moved[FILL_CHUNK];
    for (size_t first = 0; first < n; first += FILL_CHUNK) {
        const size_t length = n - first < FILL_CHUNK ? n - first : FILL_CHUNK;
        fill_above(charge->delta, p + first, length, moved);
        bincp_upper_fill(&charge->of, moved, length, out + first);
        fill_above(charge->delta, out + first, length, out + first);
    }
}

bincp_operator bincp_operator_charged(const bincp_charge *charge)
{
    return (bincp_operator){
        .abi_version = BINCP_ABI_VERSION,
        .struct_size = (uint32_t)sizeof(bincp_operator),
        .name = charge->of.name,
        .lower = charged_lower,
        .upper = charged_upper,
        .params = charge,
        .lower_fill = charged_lower_fill,
        .upper_fill = charged_upper_fill,
    };
}

/* ---- operators over regions -------------------------------------------------------------------- */

size_t bincp_operator_regions_bytes(size_t n)
{
    return sizeof(bincp_regions) + bincp_regions_size(n) * sizeof(double);
}

bincp_operator bincp_operator_regions(const double *clean, const double *perturbed, size_t n,
                                      double slack, double tiny, void *storage, double *workspace)
{
    bincp_regions *const head = storage;
    *head = bincp_regions_make(clean, perturbed, n, slack, tiny, (double *)(head + 1), workspace);
    return bincp_operator_make(BINCP_REGIONS, head);
}

/* Two arrays of masses, then the workspace of the masses, whose 2 (n + 1) doubles are fewer than
 * those of the knapsack, which comes after them. */
size_t bincp_operator_sparse_workspace(size_t additions, size_t deletions)
{
    const size_t n = additions + deletions + 1;
    return 2 * n + bincp_regions_workspace(n);
}

bincp_operator bincp_operator_sparse(size_t additions, size_t deletions, double p_plus,
                                     double p_minus, void *storage, double *workspace)
{
    if (bincp_sparse_is_identity(additions, deletions, p_plus, p_minus)) {
        return bincp_operator_make(BINCP_IDENTITY, NULL);
    }
    const size_t n = additions + deletions + 1;
    double *const clean = workspace, *const perturbed = clean + n, *const rest = perturbed + n;
    bincp_sparse_masses(additions, deletions, p_plus, p_minus, clean, perturbed, rest);
    return bincp_operator_regions(clean, perturbed, n, BINCP_SPARSE_SLACK,
                                  bincp_sparse_tiny(additions, deletions), storage, rest);
}

/* ---- an upper bound from a lower one ----------------------------------------------------------- */

/* Bisection of bit patterns, which order non-negative doubles, takes at most 62 steps at any scale.
 * The upper end of the bracket is returned: lower(beyond) > p proves that the exact bound is above p
 * there, also where rounding makes `lower` waver. */
double bincp_generalised_inverse(bincp_bound_fn lower, const void *params, double p)
{
    double value = lower(1.0, params);
    if (!is_probability(p) || isnan(value)) {
        return NAN;
    }
    if (value <= p) {
        return 1.0;
    }
    uint64_t inside = bits_of(0.0); /* lower(0) = 0 for every certificate */
    uint64_t beyond = bits_of(1.0);
    while (beyond - inside > 1) {
        const uint64_t middle = inside + (beyond - inside) / 2;
        value = lower(double_of(middle), params);
        if (isnan(value)) {
            return NAN;
        }
        if (value <= p) {
            inside = middle;
        } else {
            beyond = middle;
        }
    }
    return double_of(beyond);
}
