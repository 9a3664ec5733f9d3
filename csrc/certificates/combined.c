/* Bounds made of bounds, for single values and for arrays.
 *
 * Arrays go through the parts in chunks, so that a part with a fast loop of its own can use it. A part
 * passes a NaN on, so the loops need no test between two parts.
 */
#include "certificates/combined.h"

#include <math.h>
#include <string.h>

#include "certificates/operators.h"
#include "numerics/constants.h"
#include "numerics/directed.h"

enum { CHUNK = 512 }; /* values at a time */

static size_t chunk_length(size_t left)
{
    return left < CHUNK ? left : CHUNK;
}

static bincp_operator operator_of(const char *name, const void *params, bincp_bound_fn lower,
                                  bincp_bound_fn upper, bincp_fill_fn lower_fill,
                                  bincp_fill_fn upper_fill)
{
    return (bincp_operator){
        .abi_version = BINCP_ABI_VERSION,
        .struct_size = (uint32_t)sizeof(bincp_operator),
        .name = name,
        .lower = lower,
        .upper = upper,
        .params = params,
        .lower_fill = lower_fill,
        .upper_fill = upper_fill,
    };
}

/* ---- one ball after the other ------------------------------------------------------------------ */

/* The end of a chain is reached early: 0 has the lower bound 0, and 1 the upper bound 1. */
static double chain_lower(double p, const void *params)
{
    const bincp_chain *chain = params;
    double value = probability_or_nan(p);
    for (size_t round = 0; round < chain->rounds && value > 0.0; ++round) {
        for (size_t i = 0; i < chain->n_parts; ++i) {
            value = chain->parts[i]->lower(value, chain->parts[i]->params);
        }
    }
    return value;
}

static double chain_upper(double p, const void *params)
{
    const bincp_chain *chain = params;
    double value = probability_or_nan(p);
    for (size_t round = 0; round < chain->rounds && value < 1.0; ++round) {
        for (size_t i = chain->n_parts; i-- > 0;) {
            value = chain->parts[i]->upper(value, chain->parts[i]->params);
        }
    }
    return value;
}

typedef void (*fill_of)(const bincp_operator *op, const double *p, size_t n, double *out);

static int all_equal(const double *values, size_t n, double end)
{
    size_t i = 0;
    while (i < n && values[i] == end) {
        ++i;
    }
    return i == n;
}

/* `values` is filled in place, part by part, until all are at the end that no part changes. */
static void chain_chunk(const bincp_chain *chain, fill_of fill, int backwards, double *values,
                        size_t n)
{
    double moved[CHUNK];
    for (size_t round = 0; round < chain->rounds; ++round) {
        if (all_equal(values, n, backwards ? 1.0 : 0.0)) {
            return;
        }
        for (size_t i = 0; i < chain->n_parts; ++i) {
            const size_t part = backwards ? chain->n_parts - 1 - i : i;
            fill(chain->parts[part], values, n, moved);
            memcpy(values, moved, n * sizeof *values);
        }
    }
}

static void chain_fill(const bincp_chain *chain, fill_of fill, int backwards, const double *p,
                       size_t n, double *out)
{
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = chunk_length(n - first);
        for (size_t i = first; i < first + length; ++i) {
            out[i] = probability_or_nan(p[i]);
        }
        chain_chunk(chain, fill, backwards, out + first, length);
    }
}

static void chain_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    chain_fill(params, bincp_lower_fill, 0, p, n, out);
}

static void chain_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    chain_fill(params, bincp_upper_fill, 1, p, n, out);
}

bincp_operator bincp_operator_chain(const bincp_chain *chain)
{
    return operator_of("one ball after the other", chain, chain_lower, chain_upper,
                       chain_lower_fill, chain_upper_fill);
}

/* ---- the best of several ----------------------------------------------------------------------- */

static double larger(double a, double b)
{
    return isnan(a) || a >= b ? a : b; /* NaN from either */
}

static double smaller(double a, double b)
{
    return isnan(a) || a <= b ? a : b;
}

static double best_lower(double p, const void *params)
{
    const bincp_best *best = params;
    double value = best->parts[0]->lower(p, best->parts[0]->params);
    for (size_t i = 1; i < best->n_parts; ++i) {
        value = larger(value, best->parts[i]->lower(p, best->parts[i]->params));
    }
    return value;
}

static double best_upper(double p, const void *params)
{
    const bincp_best *best = params;
    double value = best->parts[0]->upper(p, best->parts[0]->params);
    for (size_t i = 1; i < best->n_parts; ++i) {
        value = smaller(value, best->parts[i]->upper(p, best->parts[i]->params));
    }
    return value;
}

static void best_fill(const bincp_best *best, fill_of fill, double (*better)(double, double),
                      const double *p, size_t n, double *out)
{
    double other[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = chunk_length(n - first);
        fill(best->parts[0], p + first, length, out + first);
        for (size_t i = 1; i < best->n_parts; ++i) {
            fill(best->parts[i], p + first, length, other);
            for (size_t j = 0; j < length; ++j) {
                out[first + j] = better(out[first + j], other[j]);
            }
        }
    }
}

static void best_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    best_fill(params, bincp_lower_fill, larger, p, n, out);
}

static void best_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    best_fill(params, bincp_upper_fill, smaller, p, n, out);
}

bincp_operator bincp_operator_best(const bincp_best *best)
{
    return operator_of("best of several", best, best_lower, best_upper, best_lower_fill,
                       best_upper_fill);
}

/* ---- noise in two levels ----------------------------------------------------------------------- */

/* Results below are non-negative, and off by one rounding: one step makes them safe. */
static double step_down(double value)
{
    return value > 0.0 ? double_of(bits_of(value) - 1) : 0.0;
}

static double step_up(double value)
{
    return nextafter(value, INFINITY);
}

/* 1 - (1 - p) / w = (p - (1 - w)) / w, rounded down. The first form keeps the distance from 1, where
 * 1 - p is exact; the second one keeps a small result. */
static double given_selected_below(double p, const bincp_hierarchy *level)
{
    if (p >= 1.0) {
        return 1.0;
    }
    if (p >= 0.5) {
        const double missed = step_up((1.0 - p) / level->below);
        if (missed <= 0.5) {
            return complement_below(missed);
        }
    }
    const double over = (p - level->rest_hi) - level->rest_lo;
    return over > 0.0 ? fmin(step_down(step_down(step_down(over) / level->above)), 1.0) : 0.0;
}

/* p / w, rounded up and clipped. */
static double given_selected_above(double p, const bincp_hierarchy *level)
{
    return p > 0.0 ? fmin(step_up(p / level->below), 1.0) : 0.0;
}

static double times_below(double bound, const bincp_hierarchy *level)
{
    return is_probability(bound) ? step_down(bound * level->below) : NAN;
}

static double plus_rest(double bound, const bincp_hierarchy *level)
{
    if (!is_probability(bound)) {
        return NAN;
    }
    const double product = bound > 0.0 ? step_up(bound * level->above) : 0.0;
    return shifted_up(fmin(product, 1.0), level->rest_hi);
}

static double hierarchy_lower(double p, const void *params)
{
    const bincp_hierarchy *level = params;
    if (!is_probability(p)) {
        return NAN;
    }
    const bincp_operator *of = level->of;
    return times_below(of->lower(given_selected_below(p, level), of->params), level);
}

static double hierarchy_upper(double p, const void *params)
{
    const bincp_hierarchy *level = params;
    if (!is_probability(p)) {
        return NAN;
    }
    const bincp_operator *of = level->of;
    return plus_rest(of->upper(given_selected_above(p, level), of->params), level);
}

static void hierarchy_fill(const bincp_hierarchy *level, fill_of fill,
                           double (*before)(double, const bincp_hierarchy *),
                           double (*after)(double, const bincp_hierarchy *), const double *p,
                           size_t n, double *out)
{
    double moved[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = chunk_length(n - first);
        for (size_t i = 0; i < length; ++i) {
            const double value = p[first + i];
            moved[i] = is_probability(value) ? before(value, level) : NAN;
        }
        fill(level->of, moved, length, out + first);
        for (size_t i = 0; i < length; ++i) {
            out[first + i] = after(out[first + i], level);
        }
    }
}

static void hierarchy_lower_fill(const double *p, size_t n, const void *params, double *out)
{
    hierarchy_fill(params, bincp_lower_fill, given_selected_below, times_below, p, n, out);
}

static void hierarchy_upper_fill(const double *p, size_t n, const void *params, double *out)
{
    hierarchy_fill(params, bincp_upper_fill, given_selected_above, plus_rest, p, n, out);
}

bincp_operator bincp_operator_hierarchy(const bincp_hierarchy *hierarchy)
{
    return operator_of("hierarchical", hierarchy, hierarchy_lower, hierarchy_upper,
                       hierarchy_lower_fill, hierarchy_upper_fill);
}
