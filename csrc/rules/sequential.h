/* Truncated sequential tests of one label: accept or reject before all draws are made.
 *
 * After l draws of which s were hits, a label that is still undecided is accepted if s >= accept[l]
 * and rejected if s <= reject[l], l = 0..m. The boundaries meet at the end, reject[m] = accept[m] - 1,
 * and reject[l] < accept[l] before, so every label is decided once. Neither boundary decreases.
 */
#ifndef BINCP_SEQUENTIAL_H
#define BINCP_SEQUENTIAL_H

#include <stddef.h>
#include <stdint.h>

#include "numerics/strict_floats.h"

typedef struct bincp_sequential_rule {
    const int32_t *accept; /* m + 1 entries each */
    const int32_t *reject;
    int32_t m; /* draws at most, 1 <= m < 2^31 - 1 */
} bincp_sequential_rule;

/* The rules of n_labels labels that share their draws: entry l of label y is accept[l * n_rules + y].
 * One rule may be for all labels: then n_rules is 1, and the arrays are those of that rule. */
typedef struct bincp_sequential_rules {
    const int32_t *accept; /* (m + 1) * n_rules entries each */
    const int32_t *reject;
    int32_t m;
    size_t n_rules; /* 1 or n_labels */
} bincp_sequential_rules;

/* The number of doubles of scratch memory that bincp_sequential_exits needs for a rule of m draws. */
#define BINCP_SEQUENTIAL_LANES 4
#define BINCP_SEQUENTIAL_SCRATCH(m) (BINCP_SEQUENTIAL_LANES * ((size_t)(m) + 1))

/* For i < n, the end of a label whose draws are hits with probability p[i], q[i] = 1 - p[i].
 *
 * refused[i] and accepted[i] are the probabilities of the two decisions, each a sum of the exits it
 * is made at: accurate however small it is. draws[i] is the expected number of draws.
 */
void bincp_sequential_exits(const bincp_sequential_rule *rule, const double *p, const double *q,
                            size_t n, double *scratch, double *refused, double *accepted,
                            double *draws);

/* For i < n and l <= m, the probability that a label has no decision after l draws, in left[l * n + i];
 * p, q and scratch as above.
 */
void bincp_sequential_undecided(const bincp_sequential_rule *rule, const double *p, const double *q,
                                size_t n, double *scratch, double *left);

/* The labels of many inputs, in the middle of the test.
 *
 * counts and exits have n_labels entries an input. An exit is the number of draws at which the label
 * was decided, or -1; the count of a decided label stays what it was at its exit. draws has one entry
 * an input.
 */
typedef struct bincp_sequential_state {
    size_t n_inputs;
    size_t n_labels;
    int32_t *draws;
    int32_t *counts;
    int32_t *exits;
} bincp_sequential_state;

/* Play n_rows draws: row r of hits (n_labels bytes, 0 if the draw is no hit) is the next draw of input
 * inputs[r].
 *
 * Returns how many rows were played: all of them, or those before the first whose input does not
 * exist or has had its m draws. */
size_t bincp_sequential_replay(const bincp_sequential_rules *rules,
                               const bincp_sequential_state *state, const unsigned char *hits,
                               const int64_t *inputs, size_t n_rows);

/* Decide the n_labels labels of n_inputs inputs from all their draws: label y of input i has the m
 * bytes of hits from (i * n_labels + y) * m on, in the order of the draws. accepted[i * n_labels + y]
 * becomes 1 or 0. */
void bincp_sequential_decide(const bincp_sequential_rules *rules, const unsigned char *hits,
                             size_t n_inputs, size_t n_labels, unsigned char *accepted);

#endif
