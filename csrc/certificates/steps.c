/* Bounds of counts, without branches. */
#include "certificates/steps.h"

#include <math.h>

#include "numerics/clones.h"
#include "numerics/constants.h"
#include "numerics/directed.h"

/* x + 2^52 is rounded to an integer for 0 <= x < 2^52. */
#define TWO_52 0x1p52
/* Products with it cut a double into halves of 26 bits (Dekker). */
#define SPLITTER 134217729.0

typedef struct counts {
    double levels, high, low; /* levels, and its two halves */
    double steps, share;      /* share = steps / levels, rounded up */
} counts;

static ALWAYS_INLINE double high_half(double x)
{
    const double product = SPLITTER * x;
    return product - (product - x);
}

/* How much nearest * levels exceeds count, exactly, where nearest is the double next to their quotient. */
static ALWAYS_INLINE double excess(double nearest, double count, counts of)
{
    const double product = nearest * of.levels;
    const double high = high_half(nearest), low = nearest - high;
    const double error = ((high * of.high - product) + high * of.low + low * of.high) + low * of.low;
    return (product - count) + error;
}

static ALWAYS_INLINE double fraction_below(double count, counts of)
{
    const double nearest = count / of.levels;
    return double_of(bits_of(nearest) - (excess(nearest, count, of) > 0.0));
}

static ALWAYS_INLINE double fraction_above(double count, counts of)
{
    const double nearest = count / of.levels;
    return double_of(bits_of(nearest) + (excess(nearest, count, of) < 0.0));
}

static ALWAYS_INLINE counts counts_of(const void *params)
{
    const bincp_steps *move = params;
    counts of = {.levels = move->levels, .high = high_half(move->levels), .steps = move->steps};
    of.low = of.levels - of.high;
    of.share = fraction_above(of.steps, of);
    return of;
}

/* p levels is off by at most 1/8, so that no other count than the nearest to it can be meant. */
static ALWAYS_INLINE double nearest_count(double p, counts of)
{
    return (p * of.levels + TWO_52) - TWO_52;
}

static ALWAYS_INLINE double lower(double p, counts of)
{
    const double nearest = nearest_count(p, of), at = nearest / of.levels;
    const double left = (p < at ? nearest - 1.0 : nearest) - of.steps;
    const double bound = fraction_below(left > 0.0 ? left : 0.0, of);
    const double between = shifted_down(p, of.share);
    const double higher = bound > between ? bound : between;
    const double value = p == at ? bound : higher;
    return is_probability(p) ? value : NAN;
}

static ALWAYS_INLINE double upper(double p, counts of)
{
    const double nearest = nearest_count(p, of), at = nearest / of.levels;
    const double moved = (at < p ? nearest + 1.0 : nearest) + of.steps;
    const double bound = fraction_above(moved < of.levels ? moved : of.levels, of);
    const double between = shifted_up(p, of.share);
    const double smaller = bound < between ? bound : between;
    const double value = p == at ? bound : smaller;
    return is_probability(p) ? value : NAN;
}

double bincp_steps_lower(double p, const void *params)
{
    return lower(p, counts_of(params));
}

double bincp_steps_upper(double p, const void *params)
{
    return upper(p, counts_of(params));
}

CLONES_V4 static void fill_steps_lower(const double *restrict p, size_t n, counts of,
                                 double *restrict out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = lower(p[i], of);
    }
}

CLONES_V4 static void fill_steps_upper(const double *restrict p, size_t n, counts of,
                                 double *restrict out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = upper(p[i], of);
    }
}

void bincp_steps_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    fill_steps_lower(p, n, counts_of(params), out);
}

void bincp_steps_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    fill_steps_upper(p, n, counts_of(params), out);
}
