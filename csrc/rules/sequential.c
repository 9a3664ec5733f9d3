/* Truncated sequential tests.
 *
 * The probabilities of the live counts are carried from draw to draw and leave the sum at their exit:
 * nothing is subtracted, so a refusal of 1e-200 is as accurate as one of 1/2 (2 m roundings at most),
 * and no path count outgrows a double. A draw costs as many steps as there are counts between the
 * boundaries, which for boundaries around a line is about sqrt(m), not m.
 *
 * Four success probabilities are done side by side: the boundaries, and with them all branches, are
 * common to them, so the loops over lanes are plain vector code. For 600 probabilities and m = 1024, in
 * ms: one at a time 17.8, four 7.4, with the AVX2 clone 3.1; eight 12 and 13 (gcc 12 runs out of
 * registers). No operation is contracted or reordered, so all clones give the same bits.
 */
#include "rules/sequential.h"

#include "numerics/clones.h"
#include "numerics/read_once.h"

#define LANES BINCP_SEQUENTIAL_LANES

/* Draws that are reached less often than this change only sums next to 0. */
#define NEVER 1e-290

typedef struct block {
    double p[LANES], q[LANES];
    double refused[LANES], accepted[LANES], draws[LANES];
    double undecided[LANES]; /* after the last draw */
} block;

/* Where the probabilities of no decision of a block go: those after l draws to row l. */
typedef struct survival {
    double *first;
    size_t row, width;
} survival;

static ALWAYS_INLINE void add(double *sum, const double *term)
{
    for (int i = 0; i < LANES; ++i) {
        sum[i] += term[i];
    }
}

/* One more draw for the counts low..high, whose probabilities w become those of low..high + 1. Returns
   the probability that the draw is made, the largest over the points. */
static ALWAYS_INLINE double draw(block *b, double *w, int64_t low, int64_t high)
{
    double made[LANES] = {0.0}, likeliest = 0.0;
    for (int i = 0; i < LANES; ++i) {
        w[LANES * (high + 1) + i] = 0.0;
    }
    for (int64_t s = high; s >= low; --s) {
        const double *restrict from = w + LANES * s;
        double *restrict to = w + LANES * (s + 1);
        for (int i = 0; i < LANES; ++i) {
            made[i] += from[i];
            to[i] = to[i] * b->q[i] + from[i] * b->p[i];
        }
    }
    for (int i = 0; i < LANES; ++i) {
        w[LANES * low + i] *= b->q[i];
    }
    add(b->draws, made);
    for (int i = 0; i < LANES; ++i) {
        b->undecided[i] = made[i];
        likeliest = made[i] > likeliest ? made[i] : likeliest;
    }
    return likeliest;
}

/* Follow a block to the end of the test; `left` may be NULL. */
CLONES_AVX2 static void follow(const bincp_sequential_rule *rule, block *b, double *w,
                               const survival *left)
{
    int64_t low = 0, high = 0; /* the live counts */
    for (int i = 0; i < LANES; ++i) {
        w[i] = 1.0;
        b->refused[i] = b->accepted[i] = b->draws[i] = 0.0;
    }
    for (int32_t l = 0;; ++l) { /* low and high stay in [0, l + 1] for any boundaries */
        for (; high >= low && high >= rule->accept[l]; --high) {
            add(b->accepted, w + LANES * high);
        }
        for (; low <= high && low <= rule->reject[l]; ++low) {
            add(b->refused, w + LANES * low);
        }
        if (low > high || l == rule->m) {
            return;
        }
        const double likeliest = draw(b, w, low, high);
        for (size_t i = 0; left && i < left->width; ++i) {
            left->first[left->row * (size_t)l + i] = b->undecided[i];
        }
        if (likeliest < NEVER) {
            return;
        }
        ++high;
    }
}

/* Load the block that starts there, and return how many points it has; the last one fills it up. */
static size_t load(block *b, const double *p, const double *q, size_t start, size_t n)
{
    const size_t width = n - start < LANES ? n - start : LANES;
    for (size_t i = 0; i < LANES; ++i) {
        const size_t from = start + (i < width ? i : width - 1);
        b->p[i] = p[from];
        b->q[i] = q[from];
    }
    return width;
}

void bincp_sequential_exits(const bincp_sequential_rule *rule, const double *p, const double *q,
                            size_t n, double *scratch, double *refused, double *accepted,
                            double *draws)
{
    for (size_t start = 0; start < n; start += LANES) {
        block b;
        const size_t width = load(&b, p, q, start, n);
        follow(rule, &b, scratch, NULL);
        for (size_t i = 0; i < width; ++i) {
            refused[start + i] = b.refused[i];
            accepted[start + i] = b.accepted[i];
            draws[start + i] = b.draws[i];
        }
    }
}

void bincp_sequential_undecided(const bincp_sequential_rule *rule, const double *p, const double *q,
                                size_t n, double *scratch, double *left)
{
    for (size_t i = 0; i < ((size_t)rule->m + 1) * n; ++i) {
        left[i] = 0.0;
    }
    for (size_t start = 0; start < n; start += LANES) {
        block b;
        const survival of = {left + start, n, load(&b, p, q, start, n)};
        follow(rule, &b, scratch, &of);
    }
}

/* One more draw, the l-th, of the labels of an input. `own` is 1 if each has a rule of its own, else 0;
   it is a constant where this is inlined, so that common boundaries stay in registers. */
static ALWAYS_INLINE void play(const int32_t *accept, const int32_t *reject, size_t own, int32_t l,
                               const unsigned char *restrict hit, size_t n_labels,
                               int32_t *restrict counts, int32_t *restrict exits)
{
    for (size_t y = 0; y < n_labels; ++y) {
        const int32_t live = exits[y] >> 31; /* all ones while undecided */
        const int32_t count = counts[y] + ((hit[y] != 0) & live);
        const int32_t leaves = live & -((count >= accept[own * y]) | (count <= reject[own * y]));
        counts[y] = count;
        exits[y] = (exits[y] & ~leaves) | (l & leaves);
    }
}

size_t bincp_sequential_replay(const bincp_sequential_rules *rules,
                               const bincp_sequential_state *state, const unsigned char *hits,
                               const int64_t *inputs, size_t n_rows)
{
    const size_t n_labels = state->n_labels;
    for (size_t r = 0; r < n_rows; ++r) {
        const size_t input = (size_t)read_int64(inputs + r); /* a negative one becomes too large */
        if (input >= state->n_inputs) {
            return r;
        }
        const int32_t before = read_int32(state->draws + input);
        if (before < 0 || before >= rules->m) {
            return r;
        }
        const int32_t l = before + 1;
        state->draws[input] = l;
        const int32_t *accept = rules->accept + (size_t)l * rules->n_rules;
        const int32_t *reject = rules->reject + (size_t)l * rules->n_rules;
        const unsigned char *hit = hits + r * n_labels;
        int32_t *counts = state->counts + input * n_labels;
        int32_t *exits = state->exits + input * n_labels;
        if (rules->n_rules == 1) {
            play(accept, reject, 0, l, hit, n_labels, counts, exits);
        } else {
            play(accept, reject, 1, l, hit, n_labels, counts, exits);
        }
    }
    return n_rows;
}

void bincp_sequential_decide(const bincp_sequential_rules *rules, const unsigned char *hits,
                             size_t n_inputs, size_t n_labels, unsigned char *accepted)
{
    const size_t n_rules = rules->n_rules, m = (size_t)rules->m;
    for (size_t i = 0; i < n_inputs; ++i) {
        for (size_t y = 0; y < n_labels; ++y, hits += m) {
            const int32_t *accept = rules->accept + (n_rules == 1 ? 0 : y);
            const int32_t *reject = rules->reject + (n_rules == 1 ? 0 : y);
            int32_t count = 0;
            size_t l = 0;
            while (l < m && count < accept[l * n_rules] && count > reject[l * n_rules]) {
                count += hits[l++] != 0;
            }
            *accepted++ = count >= accept[l * n_rules];
        }
    }
}
