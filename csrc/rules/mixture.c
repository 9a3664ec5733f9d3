/* Worst-case mixtures of binomials.
 *
 * Any slope gives a valid bound: the slope is searched for, the bound is evaluated directly. The
 * search keeps one corner on either side of the abscissa and lets the corner that lies highest above
 * their chord take the place of one of them; a handful of passes finds the edge of the envelope over
 * the abscissa, without building the envelope. All values are probabilities of failure, which are
 * small where the decision is made, so no digits are lost near 1.
 *
 * Means of weights are sums over the counts around the mode, by the ratio of successive masses and
 * divided by the sum of the masses: no mass is ever computed by itself. The ratios do not depend on
 * each other, so their divisions overlap; about 9 standard deviations either way are summed.
 */
#include "rules/mixture.h"

#include <math.h>

#include "numerics/binomial.h"
#include "numerics/constants.h"
#include "numerics/read_once.h"

/* Chords steeper or flatter than this change nothing that a double of the bound can hold. */
#define NEGLIGIBLE 1e-15

/* A search takes a handful of passes. Any slope gives a valid bound, so a search that is stopped here,
 * as on values that are out of order, only gives a looser bound. */
enum { MOST_PASSES = 100 };

static int are_probabilities(double p, double q)
{
    return is_probability(p) && is_probability(q);
}

void bincp_failures(int64_t t, int64_t m, const double *p, const double *q, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double success = read_double(p + i), failure = read_double(q + i);
        out[i] = are_probabilities(success, failure) ? bincp_binom_cdf(t - 1, m, success, failure)
                                                     : NAN;
    }
}

/* Masses below this share of the largest one, and all beyond them, add less than 1e-17 to a mean. */
#define NO_MASS 1e-18

static double binomial_mean(const double *w, int64_t m, double p, double q)
{
    if (p <= 0.0 || q <= 0.0) {
        return p <= 0.0 ? w[0] : w[m];
    }
    const double trials = (double)m;
    const int64_t above = (int64_t)((trials + 1.0) * p);
    const int64_t mode = above < m ? above : m;
    double mass = 1.0, sum = w[mode];
    double term = 1.0;
    for (int64_t s = mode; s < m && term > NO_MASS; ++s) {
        term *= ((double)(m - s) * p) / ((double)(s + 1) * q);
        mass += term;
        sum += term * w[s + 1];
    }
    term = 1.0;
    for (int64_t s = mode; s > 0 && term > NO_MASS; --s) {
        term *= ((double)s * q) / ((double)(m - s + 1) * p);
        mass += term;
        sum += term * w[s - 1];
    }
    return sum / mass;
}

void bincp_binomial_means(const double *w, int64_t m, const double *p, const double *q, size_t n,
                          double *out)
{
    for (size_t i = 0; i < n; ++i) {
        const double success = read_double(p + i), failure = read_double(q + i);
        out[i] = are_probabilities(success, failure) ? binomial_mean(w, m, success, failure) : NAN;
    }
}

static size_t highest(const double *u, const double *v, size_t n, double slope)
{
    size_t best = 0;
    double height = v[0] - slope * u[0];
    for (size_t i = 1; i < n; ++i) {
        const double candidate = v[i] - slope * u[i];
        if (candidate > height) {
            height = candidate;
            best = i;
        }
    }
    return best;
}

/* The slope from one point to another, 0 where the other is not to the right. It is finite, so that
 * its product with 0 is. */
static double slope_between(double left_u, double left_v, double right_u, double right_v)
{
    const double slope = right_u > left_u ? (right_v - left_v) / (right_u - left_u) : 0.0;
    return slope > DBL_MAX ? DBL_MAX : slope;
}

/* The envelope of n points with u non-increasing, and of (1, 1). */
static bincp_envelope envelope(const double *u, const double *v, size_t n, double x)
{
    double right_u = 1.0, right_v = 1.0;
    double left_u = u[n - 1], left_v = v[n - 1];
    double slope = 0.0, height = 0.0;
    for (int pass = 0; pass < MOST_PASSES; ++pass) {
        slope = slope_between(left_u, left_v, right_u, right_v);
        const size_t i = highest(u, v, n, slope);
        height = v[i] - slope * u[i];
        const int is_above = height - (left_v - slope * left_u) > NEGLIGIBLE; /* not for NaN */
        if (!is_above || u[i] == right_u) { /* the end itself is above where no slope is steep enough */
            break;
        }
        if (u[i] <= x) {
            left_u = u[i];
            left_v = v[i];
        } else {
            right_u = u[i];
            right_v = v[i];
        }
    }
    return (bincp_envelope){height + slope * x, slope};
}

bincp_envelope bincp_corner_envelope(const double *u, const double *v, size_t n, double x)
{
    return envelope(u + 1, v, n, x);
}

bincp_envelope bincp_point_envelope(const double *u, const double *v, size_t n, double x)
{
    return envelope(u, v, n + 1, x);
}
