/* The fractional knapsack over likelihood-ratio regions.
 *
 * Rounding. Both maps are increasing piecewise linear functions through knots, and each is the
 * inverse of the other: the same curve read sideways. Every knot is known within a factor 1 +- slack,
 * counted from its nearer end, so that no digits are lost near 1. It is moved right and down by that
 * much. The curve through the moved knots is below the exact one, because a point that is moved right
 * or down falls below an increasing curve; read sideways, it is above. This needs no bound on the
 * slope, so it holds for ratios of 1e300. Between two knots there is one line: its slope and value
 * are rounded outward once, by more than its evaluation can err, so that a bound is a look-up, a
 * product and a sum.
 *
 * Look-up. A search by bisection mispredicts a branch or two for each value. Instead [0, 1] is cut
 * into buckets of equal width, each with a copy of the line at its start. Most values need only that
 * line; the others look at the starts of the lines that follow. Values in increasing order are taken
 * line by line. Measured for 50 + 50 flips and 10,000 values (Zen 5): 1.9 ns a value in random order, 0.7
 * in increasing order; 2.8 with bisection within buckets alone.
 */
#include "certificates/knapsack.h"

#include <math.h>

#include "numerics/clones.h"
#include "numerics/constants.h"
#include "numerics/double_double.h"
#include "numerics/read_once.h"

#define STEP (32.0 * UNIT_ROUNDOFF) /* outward; the roundings of a line are fewer than 16 */

enum { MAX_BUCKETS = 2048 };

static double minus(pair a, pair b)
{
    return (a.hi - b.hi) + (a.lo - b.lo);
}

static double rounded_down(pair a)
{
    return a.lo < 0.0 ? nextafter(a.hi, -INFINITY) : a.hi;
}

static double rounded_up(pair a)
{
    return a.lo > 0.0 ? nextafter(a.hi, INFINITY) : a.hi;
}

static void cumulate(const double *mass, size_t n, ptrdiff_t step, double *knots)
{
    pair sum = {0.0, 0.0};
    knots[0] = 0.0;
    for (size_t i = 0; i < n; ++i, mass += step) {
        sum = dd_add(sum, *mass);
        knots[i + 1] = sum.hi;
    }
}

/* The sums add one rounding to the errors of the masses, and moving a knot two more. */
static double knot_slack(double slack)
{
    return slack + 4.0 * UNIT_ROUNDOFF;
}

/* A value at or above a knot. `below` is the mass cumulated from the first region up to the knot,
 * and `above` the mass beyond it. */
static pair knot_above(double below, double above, double slack, double tiny)
{
    if (below <= 0.5) {
        return (pair){below > 0.0 ? below * (1.0 + slack) + tiny : 0.0, 0.0};
    }
    return dd_complement(fmax(above * (1.0 - slack) - tiny, 0.0));
}

static pair knot_below(double below, double above, double slack, double tiny)
{
    if (below <= 0.5) {
        return (pair){fmax(below * (1.0 - slack) - tiny, 0.0), 0.0};
    }
    return dd_complement(above > 0.0 ? fmin(above * (1.0 + slack) + tiny, 1.0) : 0.0);
}

/* Knots that make both bounds safe: clean masses moved up, perturbed ones down, and both still in
 * order. Returns the number of the last knot that costs clean mass to reach: regions that cost none
 * come last. The workspace holds the sums from below (knots[0] and [1]) and from above. */
static size_t move_knots(const double *clean, const double *perturbed, size_t n, double slack,
                         double tiny, pair *up, pair *down, double *workspace)
{
    double *knots[4];
    for (size_t i = 0; i < 4; ++i) {
        knots[i] = workspace + i * (n + 1);
    }
    cumulate(clean, n, 1, knots[0]);
    cumulate(perturbed, n, 1, knots[1]);
    if (n > 0) {
        cumulate(clean + (n - 1), n, -1, knots[2]);
        cumulate(perturbed + (n - 1), n, -1, knots[3]);
    } else {
        knots[2][0] = knots[3][0] = 0.0;
    }
    for (size_t k = 0; k <= n; ++k) {
        up[k] = knot_above(knots[0][k], knots[2][n - k], slack, tiny);
        down[k] = knot_below(knots[1][k], knots[3][n - k], slack, tiny);
    }
    size_t last = 0;
    for (size_t k = 1; k <= n; ++k) {
        if (minus(up[k], up[k - 1]) < 0.0) {
            up[k] = up[k - 1];
        }
        if (minus(down[n - k], down[n - k + 1]) > 0.0) {
            down[n - k] = down[n - k + 1];
        }
        if (knots[2][n - k + 1] > 0.0) {
            last = k;
        }
    }
    return last;
}

/* The line from one knot to the next, no higher than in exact arithmetic. `from` is rounded to a
 * double, and its rounding error goes into the value. */
static bincp_line line_below(pair from, pair value, pair next_from, pair next_value)
{
    const double slope = minus(next_value, value) / minus(next_from, from) * (1.0 - STEP);
    bincp_line line = {from.hi, rounded_down(value), 0.0};
    if (slope > 0.0 && slope <= DBL_MAX) { /* else a flat line is safe */
        const double shifted = value.hi + (value.lo - slope * from.lo);
        line.value = shifted - fabs(shifted) * STEP - 2.0 * TRUE_MIN;
        line.slope = slope;
    }
    return line;
}

static bincp_line line_above(pair from, pair value, pair next_from, pair next_value)
{
    const double slope = minus(next_value, value) / minus(next_from, from) * (1.0 + STEP);
    bincp_line line = {from.hi, rounded_up(value), 0.0};
    if (slope > DBL_MAX) {
        line.value = rounded_up(next_value);
    } else if (slope > 0.0) {
        const double shifted = value.hi + (value.lo - slope * from.lo);
        line.value = shifted + fabs(shifted) * STEP + 2.0 * TRUE_MIN;
        line.slope = slope;
    }
    return line;
}

static size_t buckets_for(size_t n_lines)
{
    size_t buckets = 8;
    while (buckets < 4 * n_lines && buckets < MAX_BUCKETS) {
        buckets *= 2;
    }
    return buckets;
}

/* The number of doubles in a curve of n_lines: starts, lines, and indices of half that size. */
static size_t curve_size(size_t n_lines)
{
    return (n_lines + 1) + 3 * n_lines + (buckets_for(n_lines) + 3) / 2;
}

/* Lay out a curve in `storage`; its lines and starts are still to be written. */
static bincp_line *curve_begin(bincp_curve *curve, size_t n_lines, double **starts, double *storage)
{
    bincp_line *const lines = (bincp_line *)(void *)storage;
    *starts = storage + 3 * n_lines;
    *curve = (bincp_curve){n_lines, (double)buckets_for(n_lines), *starts, lines,
                           (const uint32_t *)(void *)(*starts + n_lines + 1)};
    return lines;
}

static void curve_index(const bincp_curve *curve, uint32_t *first)
{
    const size_t buckets = (size_t)curve->n_buckets;
    size_t line = 0;
    for (size_t bucket = 0; bucket <= buckets; ++bucket) {
        const double p = (double)bucket / (double)buckets; /* exact: a power of two */
        while (curve->starts[line + 1] <= p) {
            ++line;
        }
        first[bucket] = (uint32_t)line;
    }
    first[buckets + 1] = (uint32_t)line;
}

/* Lower bounds: lines along the moved knots 0 .. last. */
static void lower_lines(const pair *up, const pair *down, size_t last, bincp_line *lines,
                        double *starts)
{
    for (size_t k = 0; k <= last; ++k) {
        const size_t next = k < last ? k + 1 : k;
        starts[k] = rounded_up(up[k]);
        lines[k] = line_below(up[k], down[k], up[next], down[next]);
    }
    starts[last + 1] = 2.0; /* beyond any p */
}

static bincp_curve lower_curve(const pair *up, const pair *down, size_t last, double *storage)
{
    bincp_curve curve;
    double *starts;
    bincp_line *const lines = curve_begin(&curve, last + 1, &starts, storage);
    lower_lines(up, down, last, lines, starts);
    curve_index(&curve, (uint32_t *)(void *)(starts + last + 2));
    return curve;
}

/* Upper bounds: the same knots, read the other way.
 *
 * p = 0 has a line of its own, because only regions without perturbed mass count there. All others
 * start at the smallest positive p, however little mass they have.
 */
static bincp_curve upper_curve(const pair *up, const pair *down, const double *perturbed, size_t n,
                               double *storage)
{
    size_t free_regions = 0;
    while (free_regions < n && perturbed[free_regions] == 0.0) {
        ++free_regions;
    }
    const size_t n_lines = free_regions < n ? n + 2 : n + 1;
    bincp_curve curve;
    double *starts;
    bincp_line *const lines = curve_begin(&curve, n_lines, &starts, storage);
    for (size_t k = 0; k <= free_regions; ++k) {
        starts[k] = 0.0;
        lines[k] = (bincp_line){0.0, rounded_up(up[k]), 0.0};
    }
    for (size_t k = free_regions; k + 1 < n_lines; ++k) {
        const size_t next = k < n ? k + 1 : k;
        starts[k + 1] = fmax(rounded_up(down[k]), TRUE_MIN);
        lines[k + 1] = line_above(down[k], up[k], down[next], up[next]);
    }
    starts[n_lines] = 2.0;
    curve_index(&curve, (uint32_t *)(void *)(starts + n_lines + 1));
    return curve;
}

/* One record for each bucket, so that most values need only one look-up. */
static const bincp_bucket *copy_to_buckets(const bincp_curve *curve, double *storage)
{
    bincp_bucket *const buckets = (bincp_bucket *)(void *)storage;
    for (size_t i = 0; i <= (size_t)curve->n_buckets; ++i) {
        const size_t line = curve->first[i];
        buckets[i] = (bincp_bucket){curve->starts[line + 1], curve->lines[line]};
    }
    return buckets;
}

size_t bincp_regions_size(size_t n)
{
    return curve_size(n + 1) + curve_size(n + 2) + 4 * (buckets_for(n + 1) + 1);
}

size_t bincp_regions_workspace(size_t n)
{
    return 8 * (n + 1);
}

bincp_regions bincp_regions_make(const double *clean, const double *perturbed, size_t n,
                                 double slack, double tiny, double *storage, double *workspace)
{
    pair *const up = (pair *)(void *)(workspace + 4 * (n + 1));
    pair *const down = up + (n + 1);
    const size_t last =
        move_knots(clean, perturbed, n, knot_slack(slack), tiny, up, down, workspace);
    bincp_regions regions;
    regions.lower = lower_curve(up, down, last, storage);
    storage += curve_size(n + 1);
    regions.upper = upper_curve(up, down, perturbed, n, storage);
    regions.buckets = copy_to_buckets(&regions.lower, storage + curve_size(n + 2));
    return regions;
}

static size_t search(const bincp_curve *curve, size_t low, size_t high, double p)
{
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (curve->starts[middle] <= p) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The last line that starts at or below p, where 0 <= p <= 1. Most buckets hold no start, or one. */
static inline size_t line_of(const bincp_curve *curve, double p)
{
    const uint32_t *const bucket = curve->first + (int32_t)(p * curve->n_buckets);
    size_t line = bucket[0];
    if (bucket[1] - bucket[0] > 4) {
        return search(curve, line, (size_t)bucket[1] + 1, p);
    }
    while (curve->starts[line + 1] <= p) {
        ++line;
    }
    return line;
}

static ALWAYS_INLINE double height_below(bincp_line line, double p)
{
    const double height = line.value + line.slope * (p - line.from);
    const double bound = height > 0.0 ? height : 0.0;
    return bound < p ? bound : p + 0.0; /* 0 for -0 */
}

double bincp_regions_lower(const bincp_regions *regions, double p)
{
    return height_below(regions->lower.lines[line_of(&regions->lower, p)], p);
}

/* The number of leading p, of m in increasing order, that are below `end`. */
static size_t count_below(const double *p, size_t m, double end)
{
    size_t low = 0, step = 1; /* p[i] < end for i < low */
    while (low + step <= m && p[low + step - 1] < end) {
        low += step;
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        if (low + step <= m && p[low + step - 1] < end) {
            low += step;
        }
    }
    return low;
}

/* Bounds at m probabilities in increasing order, line by line. The last line takes all the rest, so
 * that the loop ends even if another thread has put NaN or a 7 into p meanwhile. */
CLONES_V4 static void lower_in_order(const bincp_line *lines, size_t n_lines, const double *starts,
                                     const double *p, size_t m, double *out)
{
    for (size_t i = 0, line = 0; i < m; ++line) {
        const size_t left = m - i;
        const size_t n = line + 1 < n_lines ? count_below(p + i, left, starts[line + 1]) : left;
        const bincp_line here = lines[line];
        for (size_t j = i; j < i + n; ++j) {
            out[j] = height_below(here, p[j]);
        }
        i += n;
    }
}

static int are_in_order(const double *p, size_t m)
{
    size_t i = 1;
    while (i < m && p[i - 1] <= p[i]) {
        ++i;
    }
    return i >= m && m > 0 && p[0] >= 0.0 && p[m - 1] <= 1.0;
}

void bincp_regions_lower_fill(const bincp_regions *regions, const double *p, size_t m, double *out)
{
    const bincp_bucket *const buckets = regions->buckets;
    const double n_buckets = regions->lower.n_buckets;
    if (are_in_order(p, m)) {
        lower_in_order(regions->lower.lines, regions->lower.n_lines, regions->lower.starts, p, m,
                       out);
        return;
    }
    for (size_t i = 0; i < m; ++i) {
        const double value = read_double(p + i);
        if (!is_probability(value)) {
            out[i] = NAN;
            continue;
        }
        const bincp_bucket *const bucket = buckets + (int32_t)(value * n_buckets);
        out[i] = value < bucket->until ? height_below(bucket->line, value)
                                       : bincp_regions_lower(regions, value);
    }
}

size_t bincp_regions_bounds_workspace(size_t n)
{
    return bincp_regions_workspace(n) + 4 * (n + 1) + 1;
}

void bincp_regions_bounds(const double *clean, const double *perturbed, size_t n, double slack,
                          double tiny, const double *p, size_t m, double *out, double *workspace)
{
    pair *const up = (pair *)(void *)(workspace + 4 * (n + 1));
    pair *const down = up + (n + 1);
    bincp_line *const lines = (bincp_line *)(void *)(down + (n + 1));
    double *const starts = (double *)(void *)(lines + (n + 1));
    const size_t last =
        move_knots(clean, perturbed, n, knot_slack(slack), tiny, up, down, workspace);
    lower_lines(up, down, last, lines, starts);
    lower_in_order(lines, last + 1, starts, p, m, out);
}

double bincp_regions_upper(const bincp_regions *regions, double p)
{
    const bincp_line *const line = regions->upper.lines + line_of(&regions->upper, p);
    const double height = line->value + line->slope * (p - line->from);
    const double bound = height < 1.0 ? height : 1.0;
    return p > bound ? p : bound; /* 0 for -0 */
}
