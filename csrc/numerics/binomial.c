/* Binomial tails and one-sided Clopper-Pearson bounds with directed rounding.
 *
 * Mass. Loader's saddle-point form,
 *     log P[X = s] = e(m) - e(s) - e(m-s) - D + log(m / (2 pi s (m-s))) / 2,
 * with e Stirling's remainder and D the deviance, two terms n phi(d/n), d = mp - s and
 * phi(u) = u - log(1 + u). d comes from an error-free product, phi from a series near 0, so nothing
 * cancels.
 *
 * Tail. With s on the far side of the mean, P[X >= s] is the mass times a sum of positive terms, or
 * times the continued fraction of the incomplete beta (BFRAC of Didonato & Morris, TOMS 708, 1992).
 * The series takes about 10 standard deviations of terms, four to a division; the fraction takes 20
 * to 100 terms at any m up to 1e6 and a few hundred at 1e9, so it takes over where the variance is
 * large. Both are finite: a factor is zero past the last possible success. All elements of
 * the fraction are positive, so its value lies between any two successive convergents.
 *
 * Clopper-Pearson. The lower bound solves L(theta) = log P[Bin(m, p) >= s] = log eta in the
 * log-odds theta, kept as the odds: p and 1 - p then both have full relative accuracy, and one
 * solution serves lower(s) and upper(m - s) = 1 - lower(s) alike. All derivatives of L follow from
 * its slope h = s (1-p) mass / tail: h' = h (c - h), c = s - (m+1) p, c' = -(m+1) p (1-p). That
 * gives a step of fourth order, so a good start (in a table, the extrapolated odds) needs one
 * evaluation. A level above 1/2 is turned into the complementary tail,
 * P[Bin(m, p) <= s - 1] = 1 - eta, which is again a small level and exact. The root always lies
 * between a power bound and the larger of the mean and the mode of its beta distribution; each
 * evaluation narrows that bracket. The loop ends on a small residual or on a closed bracket, and
 * bisects where Newton is slow, so it always ends; it returns the safe end.
 *
 * Measured (x86-64, gcc 12, -O3): relative error before the outward step below 6e-15 for
 * 1e-15 <= eta and m <= 1e9; a table takes 0.15 to 0.25 microseconds a value for m from 150 to 1e5
 * (3 to 17 times the speed of SciPy's betaincinv), a single bound 0.25 to 0.5, a tail 0.05 to 0.35.
 */
#include "numerics/binomial.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "numerics/functions.h"

#define TWO_PI 6.28318530717958647693
/* Below this variance m p (1-p) the series is faster than the continued fraction (flat from 100 to
 * 900). */
#define SERIES_VARIANCE 300.0
#define LOG_STEP_ETA (-34.538776394910684) /* of BINCP_CP_STEP_ETA */
/* A fourth-order step from a residual this small (in units of the curvature) errs by less than
 * the rounding of the tail. */
#define RESIDUAL 2e-4
/* Evaluations before the solver turns to bisection; eight are enough in practice. The tests compile
 * the file with 0 as well, so that bisection alone must meet the same accuracy. */
#ifndef BINCP_CP_NEWTON_STEPS
#define BINCP_CP_NEWTON_STEPS 40
#endif

/* ---- mass ------------------------------------------------------------------------------------ */

/* log(n!) minus Stirling's formula, n >= 1. */
static double stirling_remainder(double n)
{
    static const double table[16] = {
        0.0, /* not used */
        0.08106146679532725822,   0.041340695955409294094,  0.027677925684998339149,
        0.020790672103765093112,  0.016644691189821192163,  0.013876128823070747999,
        0.011896709945891770095,  0.010411265261972096497,  0.0092554621827127329177,
        0.0083305634333628712565, 0.007573675487951840795,  0.0069428401072095298657,
        0.0064089941880042070684, 0.0059513701127588477356, 0.005554733551962801371};
    if (n < 16.0) {
        return table[(int)n];
    }
    const double r = 1.0 / n;
    const double t = r * r;
    const double high_order = 1.0 / 1680 - t * (1.0 / 1188 - t * (691.0 / 360360));
    return r * (1.0 / 12 - t * (1.0 / 360 - t * (1.0 / 1260 - t * high_order)));
}

/* log w for a normal w, off by |log w| + 1.1 units of 1. */
static double quick_log(double w)
{
    return log_scaled(split(w));
}

/* exp(x) for x <= 690, 2.4 units. */
static double quick_exp(double x)
{
    const scaled power = exp_scaled(x < -760.0 ? -760.0 : x);
    return unscaled(power.value, power.k);
}

/* phi(u) = u - log(1 + u) >= 0, where `ratio` is 1 + u without the rounding of the sum. */
static double deviance(double u, double ratio)
{
    if (!(fabs(u) < 0.2)) {
        const pair sum = u < -0.5 ? (pair){ratio, 0.0} : two_sum(1.0, u);
        const pair log_ratio = log_of_sum(sum);
        return (u - log_ratio.hi) - log_ratio.lo;
    }
    /* log(1 + u) = 2 atanh(r), r = u / (2 + u), and u = 2 r + r u. */
    const double r = u / (2.0 + u);
    const double t = r * r;
    const double high_order = 1.0 / 11 + t * (1.0 / 13 + t * (1.0 / 15 + t * (1.0 / 17)));
    const double series =
        1.0 / 3 + t * (1.0 / 5 + t * (1.0 / 7 + t * (1.0 / 9 + t * high_order)));
    return r * (u - 2.0 * t * series);
}

/* n p - s without the rounding of the product, for n < 2^31. */
static double centred(double n, double p, double s)
{
    /* Veltkamp's split: the high part of p has 22 bits, so its product with n is exact. */
    const double scaled = p * 2147483649.0;
    const double high = scaled - (scaled - p);
    return (n * high - s) + n * (p - high);
}

/* A count strictly between 0 and m, and the factors of its mass without p. */
typedef struct {
    double successes, failures, trials;
    double log_factor; /* e(m) - e(s) - e(m - s) */
    double factor;     /* sqrt(m / (2 pi s (m - s))) */
} inner_count;

static inner_count inner(int64_t s, int64_t m)
{
    inner_count at;
    at.successes = (double)s;
    at.failures = (double)(m - s);
    at.trials = (double)m;
    at.log_factor = stirling_remainder(at.trials) - stirling_remainder(at.successes) -
                    stirling_remainder(at.failures);
    at.factor = sqrt(at.trials / (TWO_PI * at.successes * at.failures));
    return at;
}

/* m p - s, from the smaller of p and q. */
static double excess(const inner_count *at, double p, double q)
{
    return p <= q ? centred(at->trials, p, at->successes) : -centred(at->trials, q, at->failures);
}

/* log of the mass, apart from log(at->factor). */
static double log_mass(const inner_count *at, double p, double q, double d)
{
    const double s = at->successes;
    const double f = at->failures;
    return at->log_factor - s * deviance(d / s, at->trials * p / s) -
           f * deviance(-d / f, at->trials * q / f);
}

/* log p, given q = 1 - p. */
static double log_probability(double p, double q)
{
    return p > 0.5 ? log1p_of(-q) : log_of(p);
}

double bincp_binom_log_pmf(int64_t s, int64_t m, double p, double q)
{
    if (s < 0 || s > m) {
        return -INFINITY;
    }
    if (s == 0) {
        return (double)m * log_probability(q, p);
    }
    if (s == m) {
        return (double)m * log_probability(p, q);
    }
    if (p == 0.0 || q == 0.0) {
        return -INFINITY;
    }
    const inner_count at = inner(s, m);
    return log_of(at.factor) + log_mass(&at, p, q, excess(&at, p, q));
}

double bincp_binom_pmf(int64_t s, int64_t m, double p, double q)
{
    return quick_exp(bincp_binom_log_pmf(s, m, p, q));
}

/* ---- tails ----------------------------------------------------------------------------------- */

/* Four terms of the sum: their sum and the last of them, both times `below`, and the first four
 * denominators' product `below`. */
typedef struct four_ratios {
    double sum, last, below;
} four_ratios;

static four_ratios next_four(double numerator, double denominator, double odds)
{
    const double d1 = denominator + 1.0, n1 = (numerator - 1.0) * odds;
    const double d2 = denominator + 2.0, n2 = (numerator - 2.0) * odds;
    const double d3 = denominator + 3.0, n3 = (numerator - 3.0) * odds;
    const double d4 = denominator + 4.0, n4 = (numerator - 4.0) * odds;
    const double d34 = d3 * d4;
    return (four_ratios){
        n1 * (d2 * d34 + n2 * (d34 + n3 * (d4 + n4))),
        (n1 * n2) * (n3 * n4),
        d1 * d2 * d34,
    };
}

/* P[X >= s] / P[X = s] by summation: each term is the one before times (m-s-i+1) odds / (s+i). There
 * are eight terms to a division. */
static double tail_series(const inner_count *at, double odds)
{
    double denominator = at->successes;
    double numerator = at->failures + 1.0;
    double term = 1.0;
    double sum = 1.0;
    while (term > 0.0625 * DBL_EPSILON * sum) {
        const four_ratios near = next_four(numerator, denominator, odds);
        const four_ratios far = next_four(numerator - 4.0, denominator + 4.0, odds);
        const double scale = term / (near.below * far.below);
        sum += scale * (near.sum * far.below + near.last * far.sum);
        term = scale * (near.last * far.last);
        numerator -= 8.0;
        denominator += 8.0;
    }
    return sum;
}

/* s q P[X = s] / P[X >= s] as the continued fraction of the incomplete beta I_p(s, m - s + 1). */
static double tail_fraction(const inner_count *at, double p, double q, double d)
{
    const double a = at->successes;
    const double b = at->failures + 1.0;
    const double c = q - d; /* 1 + s - (m + 1) p > 0 */
    double inverse = 1.0 / (a + 1.0);
    double num0 = 0.0, num1 = 1.0;
    double den0 = 1.0, den1 = c * a * inverse;
    for (double n = 1.0;;) {
        for (int i = 0; i < 4; ++i, n += 1.0) {
            const double next = 1.0 / (a + 2.0 * n + 1.0);
            const double w = n * (b - n) * p;
            const double wp = w * p * inverse;
            const double alpha = (a + n - 1.0) * inverse * (at->trials + n) * wp;
            const double beta = n + w * inverse + (a + n) * next * (c + n * (1.0 + q));
            const double num = alpha * num0 + beta * num1;
            const double den = alpha * den0 + beta * den1;
            num0 = num1;
            den0 = den1;
            num1 = num;
            den1 = den;
            inverse = next;
        }
        /* The value lies between the last two convergents. */
        if (!(fabs(num1 * den0 - num0 * den1) > 4.0 * DBL_EPSILON * num1 * den0)) {
            return den1 / num1;
        }
        const double rescale = 1.0 / den1;
        num0 *= rescale;
        den0 *= rescale;
        num1 *= rescale;
        den1 = 1.0;
    }
}

/* s q P[X = s] / P[X >= s] for s not below the mean: the slope of log P[X >= s] in the log-odds. */
static double tail_slope(const inner_count *at, double p, double q, double odds, double d)
{
    if (at->trials * p * q < SERIES_VARIANCE) {
        return at->successes * q / tail_series(at, odds);
    }
    return tail_fraction(at, p, q, d);
}

/* P[X >= s] for s at or above the mean, 1 <= s <= m. */
static double smaller_tail(int64_t s, int64_t m, double p, double q)
{
    if (s == m) {
        return quick_exp((double)m * log_probability(p, q));
    }
    const inner_count at = inner(s, m);
    const double d = excess(&at, p, q);
    const double mass = at.factor * quick_exp(log_mass(&at, p, q, d));
    return mass > 0.0 ? mass * at.successes * q / tail_slope(&at, p, q, p / q, d) : 0.0;
}

double bincp_binom_sf(int64_t s, int64_t m, double p, double q)
{
    if (s <= 0 || s > m) {
        return s <= 0 ? 1.0 : 0.0;
    }
    if (p == 0.0 || q == 0.0) {
        return q == 0.0 ? 1.0 : 0.0;
    }
    if ((double)m * p <= (double)s) {
        return fmin(smaller_tail(s, m, p, q), 1.0);
    }
    return 1.0 - smaller_tail(m - s + 1, m, q, p);
}

double bincp_binom_cdf(int64_t s, int64_t m, double p, double q)
{
    if (s < 0 || s >= m) {
        return s < 0 ? 0.0 : 1.0;
    }
    return bincp_binom_sf(m - s, m, q, p);
}

/* ---- Clopper-Pearson ------------------------------------------------------------------------- */

/* A level of at most 1/2 and its logarithm. */
typedef struct {
    double value, log;
} small_level;

/* Odds at which P[X >= s] <= level for certain: there are C(m, s) ways, p^s <= odds^s each. */
static double power_bound(const inner_count *at, double log_level)
{
    const double s = at->successes;
    const double f = at->failures;
    const double share = s / at->trials;
    /* log(1 - share); the rounding of f / m would be multiplied by f / s. */
    const double log_rest = share < 1e-6 ? -share * (1.0 + share * (0.5 + share * (1.0 / 3)))
                                         : quick_log(f / at->trials);
    const double log_choose =
        at->log_factor + quick_log(at->factor) - s * quick_log(share) - f * log_rest;
    return quick_exp((log_level - log_choose) / s - 1e-9); /* the 1e-9 is for the rounding of logs */
}

/* Odds of Wilson's bound with continuity correction. */
static double wilson_odds(const inner_count *at, double z)
{
    const double s = at->successes - 0.5;
    const double f = at->failures + 0.5;
    const double z2 = z * z;
    const double spread = z * sqrt(s * f / at->trials + z2 / 4.0);
    return (s + z2 / 2.0 - spread) / (f + z2 / 2.0 + spread);
}

/* The normal quantile of a small level, as a positive number: Abramowitz & Stegun 26.2.23, 5e-4. */
static double rough_quantile(double log_level)
{
    const double t = sqrt(-2.0 * log_level);
    return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/* exp(e) - 1 for |e| <= 1e-3, where the next term is below 1e-17. */
static double small_expm1(double e)
{
    return e + e * e * (0.5 + e * (1.0 / 6 + e * (1.0 / 24 + e * (1.0 / 120))));
}

/* The odds at which P[X >= s] = level, 1 < s < m, from a bracket and a start inside it. */
static double solve_inner(const inner_count *at, double log_level, double low, double high,
                          double odds)
{
    for (int evaluations = 1;; ++evaluations) {
        const double q = 1.0 / (1.0 + odds);
        const double p = odds * q;
        const double d = excess(at, p, q);
        const double h = tail_slope(at, p, q, odds, d);
        const double log_tail =
            log_mass(at, p, q, d) + quick_log(at->factor * (at->successes * q / h));
        const double residual = log_level - log_tail;

        const double a = -d - p - h; /* h'/h = c - h, and c = s - (m + 1) p = -d - p */
        const double dc = -(at->trials + 1.0) * p * q;
        const double e = residual / h;
        const double size = fabs(e) * (fabs(a) + h + sqrt(-dc));
        const double fourth_order =
            e * (1.0 - e * (a / 2.0 - e * (2.0 * a * a - dc + h * a) / 6.0));
        if (size < RESIDUAL) {
            return fmin(fmax(odds + odds * small_expm1(fourth_order), low), high);
        }
        /* Written so that a NaN would move the upper end, and so the answer to the safe side. */
        if (residual > 0.0) {
            low = odds;
        } else {
            high = odds;
        }
        if (!(high > low * (1.0 + 4.0 * DBL_EPSILON))) {
            return low;
        }
        odds *= quick_exp(size < 0.5 ? fourth_order : fmin(fmax(e, -2.0), 2.0));
        if (evaluations > BINCP_CP_NEWTON_STEPS || !(odds > low && odds < high)) {
            odds = sqrt(low) * sqrt(high);
        }
    }
}

/* The odds at which P[Bin(m, p) >= s] = level, 1 <= s <= m.
 *
 * `before` is the answer for s - 1 or 0, and `guess` a guess at the answer; neither need be known.
 */
static double solve(int64_t s, int64_t m, small_level level, double before, double guess)
{
    const double trials = (double)m;
    if (s == 1) {
        const double log_none = log1p_of(-level.value) / trials;
        return -expm1_of(log_none) / quick_exp(log_none);
    }
    if (s == m) {
        const double log_all = level.log / trials;
        return quick_exp(log_all) / -expm1_of(log_all);
    }
    const inner_count at = inner(s, m);
    const double low = before > 0.0 ? before : power_bound(&at, level.log);
    /* The median of Beta(s, m - s + 1) lies between its mean and its mode. */
    const double high =
        fmax(at.successes / (at.failures + 1.0), (at.successes - 1.0) / at.failures);
    if (!(guess > low && guess < high)) {
        const double z = rough_quantile(level.log);
        guess = z * z < at.successes ? wilson_odds(&at, z) : low;
    }
    return solve_inner(&at, level.log, low, high, guess > low && guess < high ? guess : low);
}

static int is_level(double eta)
{
    return eta > 0.0 && eta < 1.0;
}

/* eta, or from 1/2 on its complement, which is exact there. */
static small_level fold(double eta)
{
    small_level level;
    level.value = eta > 0.5 ? 1.0 - eta : eta;
    level.log = log_scaled(split_any(level.value));
    return level;
}

static double outward_step(small_level level)
{
    return BINCP_CP_STEP * fmax(1.0, level.log / LOG_STEP_ETA);
}

/* The probability with these odds; the caller's outward step covers the rounding below 1/2. */
static double probability_below(double odds)
{
    if (odds <= 1.0) {
        const double p = odds / (1.0 + odds);
        return p < DBL_MIN ? 0.0 : p; /* subnormal numbers are too coarse for the step */
    }
    const double q = 1.0 / (1.0 + odds);
    const double p = 1.0 - q;
    return 1.0 - p < q ? nextafter(p, 0.0) : p;
}

static double probability_above(double odds)
{
    if (odds <= 1.0) {
        return odds / (1.0 + odds);
    }
    const double q = 1.0 / (1.0 + odds);
    const double p = 1.0 - q;
    return 1.0 - p > q ? nextafter(p, 1.0) : p;
}

double bincp_cp_lower(int64_t s, int64_t m, double eta)
{
    if (s <= 0 || s > m || !is_level(eta)) { /* 0 is below any probability */
        return 0.0;
    }
    const small_level level = fold(eta);
    const double step = outward_step(level);
    if (eta > 0.5) {
        return probability_below(1.0 / (solve(m - s + 1, m, level, 0.0, 0.0) * (1.0 + step)));
    }
    return probability_below(solve(s, m, level, 0.0, 0.0) * (1.0 - step));
}

double bincp_cp_upper(int64_t s, int64_t m, double eta)
{
    if (s < 0 || s >= m || !is_level(eta)) { /* 1 is above any probability */
        return 1.0;
    }
    const small_level level = fold(eta);
    const double step = outward_step(level);
    if (eta > 0.5) {
        return probability_above(solve(s + 1, m, level, 0.0, 0.0) * (1.0 + step));
    }
    return probability_above(1.0 / (solve(m - s, m, level, 0.0, 0.0) * (1.0 - step)));
}

static void trivial_table(int64_t m, double *lower, double *upper)
{
    for (int64_t s = 0; s <= m; ++s) {
        if (lower != NULL) {
            lower[s] = 0.0;
        }
        if (upper != NULL) {
            upper[s] = 1.0;
        }
    }
}

void bincp_cp_table(int64_t m, double eta, double *lower, double *upper)
{
    if (!is_level(eta)) {
        trivial_table(m, lower, upper);
        return;
    }
    if (lower != NULL) {
        lower[0] = 0.0;
    }
    if (upper != NULL) {
        upper[m] = 1.0;
    }
    const small_level level = fold(eta);
    const double step = outward_step(level);
    const double outward = eta > 0.5 ? 1.0 + step : 1.0 - step;
    double odds = 0.0;
    /* Ratios of successive odds, the newest first. Their cubic extrapolation starts each solve; a
     * bad one, as at the beginning, falls outside the bracket or costs an evaluation. */
    double ratio1 = 0.0, ratio2 = 0.0, ratio3 = 0.0;
    for (int64_t s = 1; s <= m; ++s) {
        const double growth = ratio1 / ratio2;
        const double guess = s > 4 ? odds * ratio3 * growth * growth * growth : 0.0;
        const double before = odds;
        odds = solve(s, m, level, before, guess);
        ratio3 = ratio2;
        ratio2 = ratio1;
        ratio1 = odds / before;
        const double direct = odds * outward;
        const double mirrored = 1.0 / direct;
        if (eta > 0.5) {
            if (lower != NULL) {
                lower[m - s + 1] = probability_below(mirrored);
            }
            if (upper != NULL) {
                upper[s - 1] = probability_above(direct);
            }
        } else {
            if (lower != NULL) {
                lower[s] = probability_below(direct);
            }
            if (upper != NULL) {
                upper[m - s] = probability_above(mirrored);
            }
        }
    }
}
