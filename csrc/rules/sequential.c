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
} block;

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
        likeliest = made[i] > likeliest ? made[i] : likeliest;
    }
    return likeliest;
}

CLONES_AVX2 static void follow(const bincp_sequential_rule *rule, block *b, double *w)
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
        if (low > high || l == rule->m || draw(b, w, low, high) < NEVER) {
            return;
        }
        ++high;
    }
}

void bincp_sequential_exits(const bincp_sequential_rule *rule, const double *p, const double *q,
                            size_t n, double *scratch, double *refused, double *accepted,
                            double *draws)
{
    for (size_t start = 0; start < n; start += LANES) {
        const size_t last = n - start < LANES ? n - start - 1 : LANES - 1;
        block b;
        for (size_t i = 0; i < LANES; ++i) {
            const size_t from = start + (i < last ? i : last); /* the last point fills the block */
            b.p[i] = p[from];
            b.q[i] = q[from];
        }
        follow(rule, &b, scratch);
        for (size_t i = 0; i <= last; ++i) {
            refused[start + i] = b.refused[i];
            accepted[start + i] = b.accepted[i];
            draws[start + i] = b.draws[i];
        }
    }
}

size_t bincp_sequential_replay(const bincp_sequential_rule *rule,
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
        if (before < 0 || before >= rule->m) {
            return r;
        }
        const int32_t l = before + 1;
        state->draws[input] = l;
        const int32_t accept = rule->accept[l], reject = rule->reject[l];
        const unsigned char *restrict hit = hits + r * n_labels;
        int32_t *restrict counts = state->counts + input * n_labels;
        int32_t *restrict exits = state->exits + input * n_labels;
        for (size_t y = 0; y < n_labels; ++y) {
            const int32_t live = exits[y] >> 31; /* all ones while undecided */
            const int32_t count = counts[y] + ((hit[y] != 0) & live);
            const int32_t leaves = live & -((count >= accept) | (count <= reject));
            counts[y] = count;
            exits[y] = (exits[y] & ~leaves) | (l & leaves);
        }
    }
    return n_rows;
}

void bincp_sequential_decide(const bincp_sequential_rule *rule, const unsigned char *hits,
                             size_t n_labels, unsigned char *accepted)
{
    for (size_t y = 0; y < n_labels; ++y) {
        const unsigned char *hit = hits + y * (size_t)rule->m;
        int32_t count = 0, l = 0;
        while (l < rule->m && count < rule->accept[l] && count > rule->reject[l]) {
            count += hit[l++] != 0;
        }
        accepted[y] = count >= rule->accept[l];
    }
}
