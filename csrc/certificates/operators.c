/* The built-in operators: each row of `builtins` ties a name to its two bounds.
 *
 * A bound is a plain function of (p, params), so a certificate costs one indirect call, needs no
 * Python, and one from outside (bincp/bincp.h) is called in the same way as one of ours.
 */
#include "certificates/operators.h"

#include <math.h>
#include <string.h>

#include "numerics/clones.h"
#include "certificates/knapsack.h"
#include "certificates/location.h"
#include "numerics/normal.h"
#include "numerics/two_sum.h"

static ALWAYS_INLINE int outside(double p)
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

static ALWAYS_INLINE uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static ALWAYS_INLINE double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* p - shift, rounded down and clipped. Of positive doubles the bit patterns are in order, so the
 * next one below is a subtraction away, which leaves no branch in the loops over arrays. */
static ALWAYS_INLINE double shifted_down(double p, double shift)
{
    const pair value = two_sum(p, -shift);
    const double below = double_of(bits_of(value.hi) - (value.lo < 0.0));
    return value.hi > 0.0 ? below : 0.0;
}

/* p + shift, rounded up and clipped. */
static ALWAYS_INLINE double shifted_up(double p, double shift)
{
    const pair value = two_sum(p, shift);
    const double above = double_of(bits_of(value.hi) + (value.lo > 0.0));
    return value.hi < 1.0 ? above : 1.0;
}

static double uniform_lower(double p, const void *params)
{
    return outside(p) ? NAN : shifted_down(p, *(const double *)params);
}

static double uniform_upper(double p, const void *params)
{
    return outside(p) ? NAN : shifted_up(p, *(const double *)params);
}

/* The fraction count / levels of [0, 1], rounded down (direction 0) or up (1). The sign of the
 * rest is exact: fma rounds once. */
static double fraction(double count, double levels, double direction)
{
    const double nearest = count / levels;
    const double excess = fma(nearest, levels, -count);
    const int wrong = direction > 0.0 ? excess < 0.0 : excess > 0.0;
    return wrong ? nextafter(nearest, direction) : nearest;
}

/* The largest count of which the nearest double of count / levels is at most p. */
static double count_below(double p, double levels)
{
    double count = floor(p * levels);
    count += (count + 1.0) / levels <= p; /* the product may have been rounded across it */
    count -= count / levels > p;
    return count;
}

/* Between two counts the bound is linear, which the law of certificates asks for, but no worse than
 * that of the nearer count, so that its own rounding keeps it monotone. */
static double steps_lower(double p, const void *params)
{
    const bincp_steps *move = params;
    if (outside(p)) {
        return NAN;
    }
    const double count = count_below(p, move->levels);
    const double left = count > move->steps ? count - move->steps : 0.0;
    const double bound = fraction(left, move->levels, 0.0);
    if (count / move->levels == p) {
        return bound;
    }
    return fmax(bound, shifted_down(p, fraction(move->steps, move->levels, 1.0)));
}

static double steps_upper(double p, const void *params)
{
    const bincp_steps *move = params;
    if (outside(p)) {
        return NAN;
    }
    const double below = count_below(p, move->levels);
    const int exact = below / move->levels == p;
    const double moved = below + (exact ? 0.0 : 1.0) + move->steps;
    const double bound = fraction(fmin(moved, move->levels), move->levels, 1.0);
    if (exact) {
        return bound;
    }
    return fmin(bound, shifted_up(p, fraction(move->steps, move->levels, 1.0)));
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
    [BINCP_STEPS] = {"steps", steps_lower, steps_upper},
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

CLONES_V4 static void fill_shifted_down(double shift, const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double value = shifted_down(p[i], shift);
        out[i] = outside(p[i]) ? NAN : value;
    }
}

CLONES_V4 static void fill_shifted_up(double shift, const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double value = shifted_up(p[i], shift);
        out[i] = outside(p[i]) ? NAN : value;
    }
}

void bincp_bound_fill(bincp_bound_fn bound, const void *params, const double *p, size_t n,
                      double *out)
{
    if (bound == regions_lower) {
        bincp_regions_lower_fill(params, p, n, out);
    } else if (bound == uniform_lower) {
        fill_shifted_down(*(const double *)params, p, n, out);
    } else if (bound == uniform_upper) {
        fill_shifted_up(*(const double *)params, p, n, out);
    } else {
        for (size_t i = 0; i < n; ++i) {
            out[i] = bound(p[i], params);
        }
    }
}

/* Bisects the bit patterns, which order non-negative doubles, so that the steps are 62 at most at any
 * scale. `beyond` is returned, not a midpoint: lower(beyond) > p proves that the exact bound is
 * above p there, also where rounding makes `lower` waver. */
double bincp_generalised_inverse(bincp_bound_fn lower, const void *params, double p)
{
    double value = lower(1.0, params);
    if (outside(p) || isnan(value)) {
        return NAN;
    }
    if (value <= p) {
        return 1.0;
    }
    uint64_t inside = bits_of(0.0); /* lower(0) <= 0 <= p by the law */
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
