/* Everything rests on one exact comparison, a * b <= c - d. The score is the largest double a for which
 * it holds, and the end is the largest d: each is guessed in floating point, and moved where the guess
 * is not the last one.
 */
#include "regression/interval_scores.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "numerics/clones.h"

/* A guess is off by a few doubles, unless the rounded terms are far larger than the result. */
#define FEW_STEPS 4

/* Numbers of doubles in their order, without gaps; both zeros have the number 0. */
static ALWAYS_INLINE int64_t place_of(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static ALWAYS_INLINE double at_place(int64_t place)
{
    int64_t bits = place < 0 ? INT64_MIN - place : place;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* c - d - s, where s is c - d rounded to nearest and finite: the error of a difference is a double. */
static ALWAYS_INLINE double rest_of_difference(double c, double d, double s)
{
    return fabs(c) >= fabs(d) ? -d - (s - c) : c - (s + d);
}

/* a * b <= c - d where both sides, rounded to nearest, are the same number `both`. */
static NOINLINE int at_most_by_the_rest(double a, double b, double c, double d, double both)
{
    if (both == 0) {
        return a <= 0; /* the difference is 0, for one of doubles does not underflow; b is positive */
    }
    if (isinf(both)) {
        const double down = 0x1p-60; /* all of a * b, c and d are huge: no digit is lost */
        double p = a * down * b, s = c * down - d * down;
        return p != s ? p < s : at_most_by_the_rest(a * down, b, c * down, d * down, p);
    }
    if (fabs(both) < 0x1p-960) { /* the rest of the product may be below all doubles */
        const double up = 0x1p110;
        double small = fabs(a) < b ? a : b, other = fabs(a) < b ? b : a;
        double p = small * up * other;
        double s = both * up, e = rest_of_difference(c, d, both) * up;
        /* p - s is exact, as both come of the same number, and so is e. */
        return (p - s) + fma(small * up, other, -p) <= e;
    }
    return fma(a, b, -both) <= rest_of_difference(c, d, both);
}

/* a * b <= c - d, exactly; c and d are finite, and b is positive and finite. */
static ALWAYS_INLINE int at_most(double a, double b, double c, double d)
{
    /* Rounding keeps order: where the rounded sides differ, they tell. */
    double p = a * b, s = c - d;
    return p != s ? p < s : at_most_by_the_rest(a, b, c, d, s);
}

/* What is sought: the largest a (a score) or the largest d (an end) with a * b <= c - d. */
typedef struct question {
    double a, b, c, d;
    int of_end;
} question;

static ALWAYS_INLINE int holds(const question *q, double value)
{
    return q->of_end ? at_most(q->a, q->b, q->c, value) : at_most(value, q->b, q->c, q->d);
}

/* The last place in [inside, outside) where it holds; it does inside, and does not outside. */
static double bisected(const question *q, int64_t inside, int64_t outside)
{
    while (inside + 1 < outside) {
        /* The distance may be beyond the range of int64_t. */
        int64_t middle = inside + (int64_t)(((uint64_t)outside - (uint64_t)inside) >> 1);
        if (holds(q, at_place(middle))) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    return at_place(inside);
}

/* The last double for which it holds: infinity if for all of them, minus infinity if for none. */
static NOINLINE double searched(const question *q, double guess)
{
    const int64_t last = place_of(DBL_MAX);
    if (holds(q, DBL_MAX)) {
        return INFINITY;
    }
    if (!holds(q, -DBL_MAX)) {
        return -INFINITY;
    }
    guess = guess > DBL_MAX ? DBL_MAX : guess >= -DBL_MAX ? guess : -DBL_MAX; /* NaN becomes the least */
    int64_t place = place_of(guess);
    if (holds(q, guess)) {
        for (int i = 0; i < FEW_STEPS; ++i, ++place) {
            if (!holds(q, at_place(place + 1))) {
                return at_place(place);
            }
        }
        return bisected(q, place, last);
    }
    for (int i = 0; i < FEW_STEPS; ++i) {
        --place;
        if (holds(q, at_place(place))) {
            return at_place(place);
        }
    }
    return bisected(q, -last, place);
}

static ALWAYS_INLINE double largest(const question *q, double guess)
{
    int certain = fabs(guess) < DBL_MAX && holds(q, guess) && !holds(q, at_place(place_of(guess) + 1));
    return (certain ? guess : searched(q, guess)) + 0.0; /* no negative zero */
}

/* (c - d) / scale, rounded down; one of c and d is finite. */
static ALWAYS_INLINE double quotient_below(double c, double d, double scale)
{
    double s = c - d;
    if (isinf(c) || isinf(d)) {
        return s;
    }
    if (scale == 1 && fabs(s) < DBL_MAX) {
        return rest_of_difference(c, d, s) < 0 ? at_place(place_of(s) - 1) : s + 0.0;
    }
    question q = {0.0, scale, c, d, 0};
    double found = largest(&q, s / scale);
    return found == INFINITY ? DBL_MAX : found; /* the quotient of finite numbers is finite */
}

/* The largest double y with (high - y) / scale >= tau. */
static ALWAYS_INLINE double upper_end(double high, double scale, double tau)
{
    if (isinf(high)) {
        return high;
    }
    question q = {tau, scale, high, 0.0, 1};
    return largest(&q, high - tau * scale);
}

void bincp_interval_scores(const double *low, const double *high, const double *scale, const double *y,
                           size_t n_rows, size_t m, double *scores)
{
    for (size_t i = 0; i < n_rows * m; ++i) {
        double label = y[i / m], unit = scale == NULL ? 1.0 : scale[i];
        double above = quotient_below(label, low[i], unit), below = quotient_below(high[i], label, unit);
        scores[i] = above < below ? above : below;
    }
}

void bincp_interval_ends(const double *low, const double *high, const double *scale, double tau, size_t n,
                         double *left, double *right)
{
    for (size_t i = 0; i < n; ++i) {
        double unit = scale == NULL ? 1.0 : scale[i];
        /* (y - low) / scale is (-low - -y) / scale. */
        left[i] = -upper_end(-low[i], unit, tau) + 0.0;
        right[i] = upper_end(high[i], unit, tau);
    }
}
