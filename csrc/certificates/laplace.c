/* Shifts in the quantile of the Laplace distribution, with directed rounding.
 *
 * With the smaller tail t = min(p, 1 - p), a shift away from the centre makes t exp(-shift) of it, and
 * one towards the centre t exp(shift) where that is at most 1/2, and else exp(-shift) / (4 t) beyond the
 * centre. exp(shift / 2) is applied twice, because exp(shift) leaves the range of doubles where the
 * product with a small t does not; t is scaled by 2^54 for the same reason. The exponentials are made
 * once a call. Each has a margin of 6 units of 2^-53: 2.4 for its own error (EXP_UNITS), one for the
 * product with the margin, one for the product or quotient in which it is used, and the rest to spare.
 * So an element has no error term but that of a subnormal result.
 */
#include "certificates/laplace.h"

#include <math.h>

#include "numerics/clones.h"
#include "numerics/constants.h"
#include "numerics/directed.h"
#include "numerics/elementary.h"
#include "numerics/ends.h"

#define SCALE 0x1p54
#define MARGIN 0x3p-52
/* A shift this large leads from any double in (0, 1) beyond any other. */
#define FAR_SHIFT 790.0

/* exp(shift / 2) rounded up, and exp(-shift / 2) rounded down. */
typedef struct factors {
    double growth, decay;
} factors;

static double exponential(double x)
{
    const scaled power = exp_scaled(x);
    return unscaled(power.value, power.k);
}

static factors factors_of(double shift)
{
    const double half = 0.5 * (shift < FAR_SHIFT ? shift : FAR_SHIFT);
    return (factors){
        exponential(half) * (1.0 + MARGIN),
        shift > FAR_SHIFT ? 0.0 : exponential(-half) * (1.0 - MARGIN),
    };
}

/* The tail after a shift, from t SCALE: outwards, rounded down; inwards, rounded up; and beyond the
 * centre, rounded down. */
static ALWAYS_INLINE double outwards(double w, factors by)
{
    const double mass = w * by.decay * by.decay * (1.0 / SCALE) - TRUE_MIN;
    return mass > 0.0 ? mass : 0.0;
}

static ALWAYS_INLINE double inwards(double w, factors by)
{
    return w * by.growth * by.growth * (1.0 / SCALE) + TRUE_MIN;
}

static ALWAYS_INLINE double across(double w, factors by)
{
    const double mass = by.decay / w * (by.decay * (SCALE / 4.0)) - TRUE_MIN;
    return mass > 0.0 ? mass : 0.0;
}

static ALWAYS_INLINE double scaled_tail(double p)
{
    const double q = 1.0 - p;
    return (p < q ? p : q) * SCALE;
}

/* Where `in` is rounded across 1/2, the exact tail is so near to the centre that both forms agree. */
static ALWAYS_INLINE double lower(double p, factors by)
{
    const double w = scaled_tail(p);
    const double out = outwards(w, by), in = inwards(w, by), over = across(w, by);
    const double near = complement_below(in < 0.5 ? in : 0.5);
    const double inner = in <= 0.5 ? near : over;
    return p <= 0.5 ? out : inner;
}

static ALWAYS_INLINE double upper(double p, factors by)
{
    const double w = scaled_tail(p);
    const double out = outwards(w, by), in = inwards(w, by), over = across(w, by);
    const double inner = in <= 0.5 ? in : complement_above(over);
    return p > 0.5 ? complement_above(out) : inner;
}

typedef double (*bound_fn)(double p, factors by);

static ALWAYS_INLINE double single(double p, double shift, bound_fn bound)
{
    const int unmoved = shift == 0.0 || is_marked(mark_of_end(p));
    return unmoved ? probability_or_nan(p) : bound(p, factors_of(shift));
}

double bincp_laplace_lower(double p, const void *params)
{
    return single(p, *(const double *)params, lower);
}

double bincp_laplace_upper(double p, const void *params)
{
    return single(p, *(const double *)params, upper);
}

static ALWAYS_INLINE void fill(const double *restrict p, size_t n, factors by,
                               double *restrict out, bound_fn bound)
{
    uint64_t marks = 0;
    for (size_t i = 0; i < n; ++i) {
        marks |= mark_of_end(p[i]);
        out[i] = bound(p[i], by);
    }
    if (is_marked(marks)) {
        mend_ends(p, n, out);
    }
}

CLONES_V4 static void fill_laplace_lower(const double *p, size_t n, factors by, double *out)
{
    fill(p, n, by, out, lower);
}

CLONES_V4 static void fill_laplace_upper(const double *p, size_t n, factors by, double *out)
{
    fill(p, n, by, out, upper);
}

void bincp_laplace_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    const double shift = *(const double *)params;
    if (shift == 0.0) {
        fill_unmoved(p, n, out);
    } else {
        fill_laplace_lower(p, n, factors_of(shift), out);
    }
}

void bincp_laplace_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    const double shift = *(const double *)params;
    if (shift == 0.0) {
        fill_unmoved(p, n, out);
    } else {
        fill_laplace_upper(p, n, factors_of(shift), out);
    }
}
