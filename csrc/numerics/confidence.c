#include "numerics/confidence.h"

#include <math.h>
#include <string.h>

#include "numerics/binomial.h"

/* A bound to be found. Upper bounds are those of the failures: p is then their probability q. */
typedef struct question {
    int64_t s, m;
    double u, eta;
    int of_sequence;
    int of_upper;
} question;

/* How much larger than its computed value a mass or tail may be, in parts of itself. */
static double slack(double value)
{
    return value > 0.0 ? 1.0 + 2.0 * BINCP_BINOM_ERROR * (10.0 - log(value)) : 1.0;
}

/* Whether a success probability p is refused with certainty, given the larger tail; q = 1 - p. */
static int is_refused(const question *a, double p, double q)
{
    if (a->of_sequence) {
        double below = bincp_binom_cdf(a->s, a->m + 1, p, q);
        double at = (double)(a->m + 1 - a->s) * bincp_binom_pmf(a->s, a->m + 1, p, q);
        /* A tail that underflows is that of a p far above s / m, where M is below 1. */
        return q > 0.0 && below > DBL_MIN && below / slack(below) * a->eta >= at * slack(at);
    }
    double tail = bincp_binom_sf(a->s + 1, a->m, p, q) + a->u * bincp_binom_pmf(a->s, a->m, p, q);
    tail = tail > 0.0 ? fmax(tail, DBL_MIN) : 0.0; /* subnormal tails are too coarse */
    return tail * slack(tail) <= a->eta;
}

/* The same for the success probability of the question: the larger bound refuses small failures. */
static int refuses(const question *a, double p)
{
    double q = 1.0 - p;
    return a->of_upper ? is_refused(a, q, p) : is_refused(a, p, q);
}

static double as_double(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The last double in [0, 1] that is refused, for a lower bound; the first one, for an upper bound. */
static double bound_of(const question *a)
{
    double trivial = a->of_upper ? 1.0 : 0.0, other = 1.0 - trivial;
    if (!refuses(a, trivial)) {
        return trivial;
    }
    if (refuses(a, other)) {
        return other;
    }
    int64_t refused, kept;
    memcpy(&refused, &trivial, sizeof refused);
    memcpy(&kept, &other, sizeof kept);
    while (refused - kept > 1 || kept - refused > 1) {
        int64_t middle = refused + (kept - refused) / 2;
        if (refuses(a, as_double(middle))) {
            refused = middle;
        } else {
            kept = middle;
        }
    }
    double found = as_double(refused);
    /* Subnormal numbers are too coarse for the error of the tails. */
    return a->of_upper ? fmax(found, DBL_MIN) : found < DBL_MIN ? 0.0 : found;
}

double bincp_randomized_lower(int64_t s, int64_t m, double u, double eta)
{
    question a = {s, m, u, eta, 0, 0};
    return bound_of(&a);
}

double bincp_randomized_upper(int64_t s, int64_t m, double u, double eta)
{
    question a = {m - s, m, u, eta, 0, 1};
    return bound_of(&a);
}

double bincp_sequence_lower(int64_t s, int64_t m, double eta)
{
    question a = {s, m, 0.0, eta, 1, 0};
    return bound_of(&a);
}

double bincp_sequence_upper(int64_t s, int64_t m, double eta)
{
    question a = {m - s, m, 0.0, eta, 1, 1};
    return bound_of(&a);
}
