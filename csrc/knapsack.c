/* The fractional knapsack, and the regions of sparse smoothing.
 *
 * Masses. A region's mass is a convolution of two binomial mass functions: sums of positive terms,
 * so nothing cancels. Each mass function is a recurrence outward from its mode, with a scale that
 * is divided out at the end; recurrence, convolution and cumulation carry a second double for the
 * rounding errors. So every knot is right to a few units in the last place, whatever the radii, and
 * the outward step below can be 1e-15. Summing in plain doubles costs half the time and a step of
 * 1e-13 at radii 1000 + 1000.
 *
 * Rounding. Both maps are increasing piecewise linear functions through knots. If every knot is
 * within a factor 1 +- slack, then evaluating at p (1 - 2 slack) and multiplying by (1 - 2 slack)
 * can only fall below the exact map: a knot moved right or down lowers an increasing curve.
 * Likewise upwards. This needs no bound on the slope, so it holds for ratios of 1e300. For p > 1/2
 * the other end is filled with 1 - p as well, which is exact, so no mass is lost near 1; both
 * bounds are safe, and the better one is taken.
 */
#include "knapsack.h"

#include <float.h>
#include <math.h>

#include "two_sum.h"

#define UNIT_ROUNDOFF (DBL_EPSILON / 2)
#define TRUE_MIN 4.9406564584124654e-324 /* the smallest positive double */

/* ---- arithmetic on pairs (Dekker) ------------------------------------------------------------ */

/* `two_sum` for |a| >= |b|. */
static pair fast_two_sum(double a, double b)
{
    const double sum = a + b;
    return (pair){sum, b - (sum - a)};
}

static pair times(pair a, pair b)
{
    const double product = a.hi * b.hi;
    const double error = fma(a.hi, b.hi, -product) + (a.hi * b.lo + a.lo * b.hi);
    return fast_two_sum(product, error);
}

static pair over(pair a, pair b)
{
    const double quotient = a.hi / b.hi;
    const double rest = fma(-quotient, b.hi, a.hi) + (a.lo - quotient * b.lo);
    return fast_two_sum(quotient, rest / b.hi);
}

static pair plus(pair a, double b)
{
    const pair sum = two_sum(a.hi, b);
    return fast_two_sum(sum.hi, sum.lo + a.lo);
}

static pair exact(size_t count)
{
    return (pair){(double)count, 0.0};
}

/* 1 - p without error. */
static pair complement(double p)
{
    return fast_two_sum(1.0, -p);
}

/* ---- the knapsack ---------------------------------------------------------------------------- */

size_t bincp_regions_size(size_t n)
{
    return 4 * (n + 1);
}

static void cumulate(const double *mass, size_t n, ptrdiff_t step, double *knots)
{
    pair sum = {0.0, 0.0};
    knots[0] = 0.0;
    for (size_t i = 0; i < n; ++i, mass += step) {
        sum = plus(sum, *mass);
        knots[i + 1] = sum.hi;
    }
}

bincp_regions bincp_regions_cumulate(const double *clean, const double *perturbed, size_t n,
                                     double slack, double tiny, double *storage)
{
    double *knots[4];
    for (size_t i = 0; i < 4; ++i) {
        knots[i] = storage + i * (n + 1);
    }
    cumulate(clean, n, 1, knots[0]);
    cumulate(perturbed, n, 1, knots[1]);
    if (n > 0) {
        cumulate(clean + (n - 1), n, -1, knots[2]);
        cumulate(perturbed + (n - 1), n, -1, knots[3]);
    }
    /* The sums add one rounding to the errors of the masses, the interpolation three. */
    return (bincp_regions){n,        knots[0], knots[1],
                           knots[2], knots[3], slack + 4.0 * UNIT_ROUNDOFF,
                           tiny};
}

/* Height at `budget` of the curve through n + 1 knots; regions that cost nothing count in full. */
static double interpolate(const double *budgets, const double *values, size_t n, double budget)
{
    if (budget >= budgets[n]) {
        return values[n];
    }
    size_t low = 0, high = n; /* budgets[low] <= budget < budgets[high] */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (budgets[middle] <= budget) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const double share = (budget - budgets[low]) / (budgets[high] - budgets[low]);
    return values[low] + share * (values[high] - values[low]);
}

static double least(const bincp_regions *r, const double *budgets, const double *values, double p)
{
    const double budget = p * (1.0 - 2.0 * r->slack) - r->tiny;
    if (budget <= 0.0) {
        return 0.0;
    }
    return fmax(interpolate(budgets, values, r->n, budget) * (1.0 - 2.0 * r->slack) - r->tiny, 0.0);
}

static double largest(const bincp_regions *r, const double *budgets, const double *values, double p)
{
    const double budget = p > 0.0 ? p * (1.0 + 2.0 * r->slack) + r->tiny : 0.0;
    const double value = interpolate(budgets, values, r->n, budget);
    return value > 0.0 ? fmin(value * (1.0 + 2.0 * r->slack) + r->tiny, 1.0) : 0.0;
}

double bincp_regions_lower(const bincp_regions *regions, double p)
{
    double value = least(regions, regions->clean_below, regions->perturbed_below, p);
    if (p > 0.5) {
        const double lost =
            largest(regions, regions->clean_above, regions->perturbed_above, 1.0 - p);
        const double kept = 1.0 - lost;
        value = fmax(value, 1.0 - kept < lost ? nextafter(kept, 0.0) : kept);
    }
    return fmin(value, p);
}

double bincp_regions_upper(const bincp_regions *regions, double p)
{
    double value = largest(regions, regions->perturbed_below, regions->clean_below, p);
    if (p > 0.5) {
        const double lost =
            least(regions, regions->perturbed_above, regions->clean_above, 1.0 - p);
        const double kept = 1.0 - lost;
        value = fmin(value, 1.0 - kept > lost ? nextafter(kept, 1.0) : kept);
    }
    return fmax(value, p);
}

/* ---- sparse smoothing ------------------------------------------------------------------------ */

int bincp_sparse_direction(double p_plus, double p_minus)
{
    const pair sum = two_sum(p_plus, p_minus);
    const double excess = (sum.hi - 1.0) + sum.lo; /* hi - 1 is exact where the sign is in doubt */
    return (excess > 0.0) - (excess < 0.0);
}

/* Mass function of Bin(n, p), where q = 1 - p, into mass[0..n]. */
static void binomial_masses(size_t n, pair p, pair q, double *mass)
{
    const int certain = q.hi == 0.0;
    if (p.hi == 0.0 || certain) {
        for (size_t i = 0; i <= n; ++i) {
            mass[i] = 0.0;
        }
        mass[certain ? n : 0] = 1.0;
        return;
    }
    const size_t mode = (size_t)fmin(((double)n + 1.0) * p.hi, (double)n);
    const pair odds = over(p, q);
    pair total = {1.0, 0.0};
    mass[mode] = 1.0;
    pair term = {1.0, 0.0};
    for (size_t i = mode; i < n; ++i) {
        term = over(times(times(term, odds), exact(n - i)), exact(i + 1));
        mass[i + 1] = term.hi;
        total = plus(total, term.hi);
    }
    term = (pair){1.0, 0.0};
    for (size_t i = mode; i > 0; --i) {
        term = over(times(over(term, odds), exact(i)), exact(n - i + 1));
        mass[i - 1] = term.hi;
        total = plus(total, term.hi);
    }
    for (size_t i = 0; i <= n; ++i) {
        mass[i] /= total.hi;
    }
}

/* result[k] = sum of u[i] v[k - i]; `low` holds the rounding errors of the sums. */
static void convolve(const double *restrict u, size_t a, const double *restrict v, size_t d,
                     double *restrict result, double *restrict low)
{
    for (size_t k = 0; k <= a + d; ++k) {
        result[k] = low[k] = 0.0;
    }
    for (size_t i = 0; i <= a; ++i) {
        double *restrict sum = result + i;
        double *restrict rest = low + i;
        for (size_t j = 0; j <= d; ++j) {
            const pair total = two_sum(sum[j], u[i] * v[j]);
            sum[j] = total.hi;
            rest[j] += total.lo;
        }
    }
    for (size_t k = 0; k <= a + d; ++k) {
        result[k] += low[k];
    }
}

/* Mass function of Bin(a, p) + Bin(d, r), where p_not = 1 - p and r_not = 1 - r. */
static void region_masses(size_t a, pair p, pair p_not, size_t d, pair r, pair r_not, double *mass,
                          double *workspace)
{
    double *const first = workspace;
    double *const second = first + a + 1;
    binomial_masses(a, p, p_not, first);
    binomial_masses(d, r, r_not, second);
    convolve(first, a, second, d, mass, second + d + 1);

    /* Masses that underflow stay positive: a region that can happen can be filled. */
    const size_t least_q = (p_not.hi == 0.0 ? a : 0) + (r_not.hi == 0.0 ? d : 0);
    const size_t largest_q = (p.hi == 0.0 ? 0 : a) + (r.hi == 0.0 ? 0 : d);
    for (size_t k = least_q; k <= largest_q; ++k) {
        mass[k] = fmax(mass[k], TRUE_MIN);
    }
}

static void reverse(double *mass, size_t n)
{
    for (size_t i = 0; i < n / 2; ++i) {
        const double kept = mass[i];
        mass[i] = mass[n - 1 - i];
        mass[n - 1 - i] = kept;
    }
}

double bincp_sparse_tiny(size_t additions, size_t deletions)
{
    return 2.0 * ((double)additions + 2.0) * ((double)deletions + 2.0) * TRUE_MIN;
}

void bincp_sparse_regions(size_t additions, size_t deletions, double p_plus, double p_minus,
                          double *clean, double *perturbed, double *workspace)
{
    const size_t n = additions + deletions + 1;
    const pair plus_p = {p_plus, 0.0}, plus_q = complement(p_plus);
    const pair minus_p = {p_minus, 0.0}, minus_q = complement(p_minus);

    region_masses(additions, plus_p, plus_q, deletions, minus_p, minus_q, clean, workspace);
    region_masses(additions, minus_q, minus_p, deletions, plus_q, plus_p, perturbed, workspace);
    /* The ratio falls with q while flips are rarer than not, and rises beyond. */
    if (bincp_sparse_direction(p_plus, p_minus) > 0) {
        reverse(clean, n);
        reverse(perturbed, n);
    }
}
