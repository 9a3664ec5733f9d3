/* The regions of sparse smoothing.
 *
 * A region's mass is a convolution of two binomial mass functions: sums of positive terms, so
 * nothing cancels. Each mass function is a recurrence outward from its mode, with a scale that is
 * divided out at the end; recurrence, convolution and cumulation carry a second double for the
 * rounding errors. So every knot is right to a few units in the last place at any radii, and the
 * outward step of a bound can be 5e-15. Plain doubles would take half the time, but need a step of
 * 1e-13 at radii 1000 + 1000.
 *
 * The grid of all numbers of flips shares the binomial mass functions and the order of the
 * probabilities; a cell costs one convolution a side and one pass over the probabilities.
 */
#include "certificates/sparse_regions.h"

#include <math.h>

#include "certificates/knapsack.h"
#include "numerics/clones.h"
#include "numerics/constants.h"
#include "numerics/double_double.h"
#include "numerics/read_once.h"

int bincp_sparse_direction(double p_plus, double p_minus)
{
    const pair sum = two_sum(p_plus, p_minus);
    const double excess = (sum.hi - 1.0) + sum.lo; /* hi - 1 is exact where the sign is in doubt */
    return (excess > 0.0) - (excess < 0.0);
}

int bincp_sparse_is_identity(size_t additions, size_t deletions, double p_plus, double p_minus)
{
    return additions + deletions == 0 || bincp_sparse_direction(p_plus, p_minus) == 0;
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
    const pair odds = dd_div(p, q);
    pair total = {1.0, 0.0};
    mass[mode] = 1.0;
    pair term = {1.0, 0.0};
    for (size_t i = mode; i < n; ++i) {
        term = dd_div(dd_mul(dd_mul(term, odds), dd_from(n - i)), dd_from(i + 1));
        mass[i + 1] = term.hi;
        total = dd_add(total, term.hi);
    }
    term = (pair){1.0, 0.0};
    for (size_t i = mode; i > 0; --i) {
        term = dd_div(dd_mul(dd_div(term, odds), dd_from(i)), dd_from(n - i + 1));
        mass[i - 1] = term.hi;
        total = dd_add(total, term.hi);
    }
    for (size_t i = 0; i <= n; ++i) {
        mass[i] /= total.hi;
    }
}

/* result[k] = sum of u[i] v[k - i]; `low` holds the rounding errors of the sums. */
CLONES_V4 static void convolve(const double *restrict u, size_t a, const double *restrict v,
                               size_t d, double *restrict result, double *restrict low)
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

/* Mass function of Bin(a, p) + Bin(d, r) from those of the two; `low` is of its size. */
static void add_binomials(const double *first, size_t a, pair p, pair p_not, const double *second,
                          size_t d, pair r, pair r_not, double *mass, double *low)
{
    convolve(first, a, second, d, mass, low);
    /* Masses that underflow stay positive: a region that can happen can be filled. */
    const size_t least_q = (p_not.hi == 0.0 ? a : 0) + (r_not.hi == 0.0 ? d : 0);
    const size_t largest_q = (p.hi == 0.0 ? 0 : a) + (r.hi == 0.0 ? 0 : d);
    for (size_t k = least_q; k <= largest_q; ++k) {
        mass[k] = fmax(mass[k], TRUE_MIN);
    }
}

static void region_masses(size_t a, pair p, pair p_not, size_t d, pair r, pair r_not, double *mass,
                          double *workspace)
{
    double *const first = workspace;
    double *const second = first + a + 1;
    binomial_masses(a, p, p_not, first);
    binomial_masses(d, r, r_not, second);
    add_binomials(first, a, p, p_not, second, d, r, r_not, mass, second + d + 1);
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

void bincp_sparse_masses(size_t additions, size_t deletions, double p_plus, double p_minus,
                          double *clean, double *perturbed, double *workspace)
{
    const size_t n = additions + deletions + 1;
    const pair plus_p = {p_plus, 0.0}, plus_q = dd_complement(p_plus);
    const pair minus_p = {p_minus, 0.0}, minus_q = dd_complement(p_minus);

    region_masses(additions, plus_p, plus_q, deletions, minus_p, minus_q, clean, workspace);
    region_masses(additions, minus_q, minus_p, deletions, plus_q, plus_p, perturbed, workspace);
    /* The ratio falls with q while flips are rarer than not, and rises beyond. */
    if (bincp_sparse_direction(p_plus, p_minus) > 0) {
        reverse(clean, n);
        reverse(perturbed, n);
    }
}

/* ---- all numbers of flips at once ------------------------------------------------------------ */

static size_t triangle(size_t n)
{
    return n * (n + 1) / 2;
}

/* Mass functions of Bin(0, p), ..., Bin(n, p), one after the other; that of Bin(i, p) starts at
 * triangle(i). */
static void all_binomials(size_t n, pair p, pair p_not, double *masses)
{
    for (size_t i = 0; i <= n; ++i) {
        binomial_masses(i, p, p_not, masses + triangle(i));
    }
}

static void put_in_order(const double *values, const uint32_t *order, size_t m, double *out)
{
    for (size_t i = 0; i < m; ++i) {
        const size_t place = order == NULL ? i : read_uint32(order + i);
        if (place < m) {
            out[place] = values[i] + 0.0; /* 0 for -0 */
        }
    }
}

size_t bincp_sparse_grid_workspace(size_t additions, size_t deletions, size_t m)
{
    const size_t n = additions + deletions + 1;
    return 2 * (triangle(additions + 1) + triangle(deletions + 1)) + 3 * n
           + bincp_regions_bounds_workspace(n) + m;
}

void bincp_sparse_grid(size_t additions, size_t deletions, double p_plus, double p_minus,
                     const double *p, const uint32_t *order, size_t m, double *out,
                     double *workspace)
{
    const int direction = bincp_sparse_direction(p_plus, p_minus);
    const pair plus_p = {p_plus, 0.0}, plus_q = dd_complement(p_plus);
    const pair minus_p = {p_minus, 0.0}, minus_q = dd_complement(p_minus);
    const size_t most = additions + deletions + 1;

    double *const clean_added = workspace;
    double *const moved_added = clean_added + triangle(additions + 1);
    double *const clean_deleted = moved_added + triangle(additions + 1);
    double *const moved_deleted = clean_deleted + triangle(deletions + 1);
    double *const clean = moved_deleted + triangle(deletions + 1);
    double *const perturbed = clean + most;
    double *const low = perturbed + most;
    double *const bounds = low + most;
    double *const rest = bounds + m;

    all_binomials(additions, plus_p, plus_q, clean_added);
    all_binomials(additions, minus_q, minus_p, moved_added);
    all_binomials(deletions, minus_p, minus_q, clean_deleted);
    all_binomials(deletions, plus_q, plus_p, moved_deleted);
    for (size_t a = 0; a <= additions; ++a) {
        for (size_t d = 0; d <= deletions; ++d, out += m) {
            if (bincp_sparse_is_identity(a, d, p_plus, p_minus)) {
                put_in_order(p, order, m, out);
                continue;
            }
            const size_t n = a + d + 1;
            add_binomials(clean_added + triangle(a), a, plus_p, plus_q, clean_deleted + triangle(d),
                          d, minus_p, minus_q, clean, low);
            add_binomials(moved_added + triangle(a), a, minus_q, minus_p,
                          moved_deleted + triangle(d), d, plus_q, plus_p, perturbed, low);
            if (direction > 0) {
                reverse(clean, n);
                reverse(perturbed, n);
            }
            bincp_regions_bounds(clean, perturbed, n, BINCP_SPARSE_SLACK, bincp_sparse_tiny(a, d),
                                 p, m, order == NULL ? out : bounds, rest);
            if (order != NULL) {
                put_in_order(bounds, order, m, out);
            }
        }
    }
}
