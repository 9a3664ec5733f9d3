/* The sequential kernels on their own, for the sanitizers: `make -C tests/c`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/sequential.h"

#include "check.h"

enum { M = 9 };

/* Boundaries in memory with no byte to spare: k hits of M, `spread` off the line. */
static bincp_sequential_rule make_rule(int k, double spread)
{
    int32_t *accept = malloc((M + 1) * sizeof *accept), *reject = malloc((M + 1) * sizeof *reject);
    for (int l = 0; l <= M; l++) {
        const double line = (double)l * k / M;
        accept[l] = (int32_t)fmin(ceil(line + spread), k);
        reject[l] = (int32_t)fmax(floor(line - spread), k - 1 - (M - l));
    }
    return (bincp_sequential_rule){accept, reject, M};
}

static void free_rule(bincp_sequential_rule rule)
{
    free((void *)rule.accept);
    free((void *)rule.reject);
}

/* Whether the path is accepted, whose draw l is bit l; its exit and the count there. */
static int play(const bincp_sequential_rule *rule, unsigned path, int *exit, int *count)
{
    int s = 0;
    for (int l = 0;; l++) {
        if (s >= rule->accept[l] || s <= rule->reject[l]) {
            *exit = l;
            *count = s;
            return s >= rule->accept[l];
        }
        s += (int)(path >> l & 1);
    }
}

/* Every number of points around the number of lanes, against the sum over all paths. */
static void test_exits(const bincp_sequential_rule *rule)
{
    for (size_t n = 1; n <= 2 * BINCP_SEQUENTIAL_LANES + 1; n++) {
        double *scratch = malloc(BINCP_SEQUENTIAL_SCRATCH(M) * sizeof *scratch);
        double *all = malloc((6 + M) * n * sizeof *all);
        double *p = all, *q = all + n, *refused = all + 2 * n, *accepted = all + 3 * n,
               *draws = all + 4 * n, *left = all + 5 * n;
        for (size_t i = 0; i < n; i++) {
            p[i] = (double)i / (double)(n > 1 ? n - 1 : 1);
            q[i] = 1 - p[i];
        }
        bincp_sequential_exits(rule, p, q, n, scratch, refused, accepted, draws);
        bincp_sequential_undecided(rule, p, q, n, scratch, left);
        for (size_t i = 0; i < n; i++) {
            double no = 0, yes = 0, mean = 0, later[M + 1] = {0};
            for (unsigned path = 0; path < 1u << M; path++) {
                double weight = 1;
                int exit, count;
                for (int l = 0; l < M; l++) {
                    weight *= path >> l & 1 ? p[i] : q[i];
                }
                *(play(rule, path, &exit, &count) ? &yes : &no) += weight;
                mean += weight * exit;
                for (int l = 0; l < exit; l++) {
                    later[l] += weight;
                }
            }
            for (int l = 0; l <= M; l++) {
                CHECK(fabs(left[(size_t)l * n + i] - later[l]) <= 1e-13 * later[l]);
            }
            CHECK(fabs(refused[i] - no) <= 1e-13 * no);
            CHECK(fabs(accepted[i] - yes) <= 1e-13 * yes);
            CHECK(fabs(draws[i] - mean) <= 1e-13 * mean);
        }
        free(all);
        free(scratch);
    }
}

/* All paths at once, as the labels of two inputs whose draws alternate. */
static void test_replay(const bincp_sequential_rule *rule)
{
    enum { LABELS = 1 << M, ROWS = 2 * M };
    unsigned char *hits = malloc((size_t)ROWS * LABELS);
    int64_t *inputs = malloc(ROWS * sizeof *inputs);
    int32_t *draws = calloc(2, sizeof *draws), *counts = calloc(2 * LABELS, sizeof *counts),
            *exits = malloc(2 * LABELS * sizeof *exits);
    const int at_once = rule->accept[0] <= 0 || rule->reject[0] >= 0;
    const bincp_sequential_rules common = {rule->accept, rule->reject, M, 1};
    const bincp_sequential_state state = {2, LABELS, draws, counts, exits};
    for (int r = 0; r < ROWS; r++) {
        inputs[r] = r % 2;
        for (unsigned path = 0; path < LABELS; path++) { /* input 1 has the opposite draws */
            hits[(size_t)r * LABELS + path] = (unsigned char)((path >> (r / 2) ^ (unsigned)r) & 1);
        }
    }
    for (int i = 0; i < 2 * LABELS; i++) {
        exits[i] = at_once ? 0 : -1;
    }
    for (int r = 0; r < ROWS; r += 6) { /* in rounds */
        const int rows = ROWS - r < 6 ? ROWS - r : 6;
        bincp_sequential_replay(&common, &state, hits + (size_t)r * LABELS, inputs + r, (size_t)rows);
    }
    CHECK(draws[0] == M && draws[1] == M);
    int wrong = 0;
    for (unsigned i = 0; i < 2 * LABELS; i++) {
        int exit, count;
        play(rule, i < LABELS ? i : ~i, &exit, &count);
        wrong += exits[i] != exit || counts[i] != count;
    }
    CHECK(wrong == 0);
    free(hits);
    free(inputs);
    free(draws);
    free(counts);
    free(exits);
}

/* Three labels that share no boundary, over all paths: replayed draw by draw, and decided at once. */
static void test_rules_of_their_own(const bincp_sequential_rule own[3])
{
    enum { LABELS = 3, INPUTS = 1 << M };
    int32_t *accept = malloc(LABELS * (M + 1) * sizeof *accept),
            *reject = malloc(LABELS * (M + 1) * sizeof *reject);
    for (int y = 0; y < LABELS; y++) {
        for (int l = 0; l <= M; l++) {
            accept[l * LABELS + y] = own[y].accept[l];
            reject[l * LABELS + y] = own[y].reject[l];
        }
    }
    const bincp_sequential_rules rules = {accept, reject, M, LABELS};
    unsigned char *rows = malloc(INPUTS * LABELS), *all = malloc((size_t)INPUTS * LABELS * M),
                  *accepted = malloc(INPUTS * LABELS);
    int64_t *inputs = malloc(INPUTS * sizeof *inputs);
    int32_t *draws = calloc(INPUTS, sizeof *draws),
            *counts = calloc(INPUTS * LABELS, sizeof *counts),
            *exits = malloc(INPUTS * LABELS * sizeof *exits);
    for (int i = 0; i < INPUTS; i++) {
        inputs[i] = i;
        for (int y = 0; y < LABELS; y++) {
            exits[i * LABELS + y] = own[y].accept[0] <= 0 || own[y].reject[0] >= 0 ? 0 : -1;
        }
    }
    const bincp_sequential_state state = {INPUTS, LABELS, draws, counts, exits};
    for (int l = 0; l < M; l++) {
        for (unsigned label = 0; label < INPUTS * LABELS; label++) {
            const unsigned path = label / LABELS ^ 37 * (label % LABELS); /* their own draws */
            rows[label] = all[label * M + (unsigned)l] = (unsigned char)(path >> l & 1);
        }
        CHECK(bincp_sequential_replay(&rules, &state, rows, inputs, INPUTS) == INPUTS);
    }
    bincp_sequential_decide(&rules, all, INPUTS, LABELS, accepted);
    int wrong = 0;
    for (unsigned label = 0; label < INPUTS * LABELS; label++) {
        int exit, count;
        const unsigned path = label / LABELS ^ 37 * (label % LABELS);
        const int in_set = play(&own[label % LABELS], path, &exit, &count);
        wrong += exits[label] != exit || counts[label] != count || accepted[label] != in_set;
    }
    CHECK(wrong == 0);
    free(accept);
    free(reject);
    free(rows);
    free(all);
    free(accepted);
    free(inputs);
    free(draws);
    free(counts);
    free(exits);
}

/* Rows are played up to the first whose input is none, or has no draw left. */
static void test_inputs_that_are_none(void)
{
    const bincp_sequential_rule rule = make_rule(4, 100.0);
    const bincp_sequential_rules rules = {rule.accept, rule.reject, M, 1};
    const unsigned char hits[3] = {1, 1, 1};
    const int64_t inputs[][3] = {{0, 2, 0}, {0, -1, 0}, {0, INT64_MAX, 0}, {0, 1, 0}, {1, 0, 0}};
    const int32_t drawn[][2] = {{0, 0}, {0, 0}, {0, 0}, {0, M}, {-1, 0}};
    const size_t played[] = {1, 1, 1, 1, 0};
    for (int i = 0; i < 5; i++) {
        int32_t draws[2], counts[2] = {0, 0}, exits[2] = {-1, -1};
        memcpy(draws, drawn[i], sizeof draws);
        if (i == 4) { /* an input whose number of draws was overwritten */
            draws[1] = -1;
        }
        const bincp_sequential_state state = {2, 1, draws, counts, exits};
        CHECK(bincp_sequential_replay(&rules, &state, hits, inputs[i], 3) == played[i]);
        CHECK(counts[0] == (i < 4) && counts[1] == 0);
    }
    free_rule(rule);
}

/* One rule for all labels decides as each label on its own. */
static void test_decisions_of_one_rule(const bincp_sequential_rule *rule)
{
    const bincp_sequential_rules common = {rule->accept, rule->reject, M, 1};
    static unsigned char hits[(1 << M) * M], accepted[1 << M];
    for (unsigned path = 0; path < 1u << M; path++) {
        for (unsigned l = 0; l < M; l++) {
            hits[path * M + l] = (unsigned char)(path >> l & 1);
        }
    }
    bincp_sequential_decide(&common, hits, 1 << (M - 2), 4, accepted);
    int wrong = 0;
    for (unsigned path = 0; path < 1u << M; path++) {
        int exit, count;
        wrong += accepted[path] != play(rule, path, &exit, &count);
    }
    CHECK(wrong == 0);
}

/* Boundaries that do not meet leave labels without a decision. */
static void test_boundaries_that_do_not_meet(void)
{
    int32_t accept[M + 1], reject[M + 1];
    for (int l = 0; l <= M; l++) {
        accept[l] = M;
        reject[l] = -1;
    }
    const bincp_sequential_rule rule = {accept, reject, M};
    const double p = 0.5, q = 0.5;
    double scratch[BINCP_SEQUENTIAL_SCRATCH(M)], refused, accepted, draws;
    bincp_sequential_exits(&rule, &p, &q, 1, scratch, &refused, &accepted, &draws);
    CHECK(refused == 0.0 && accepted == 0x1p-9 && draws == M);
    const bincp_sequential_rules rules = {accept, reject, M, 1};
    unsigned char hits[M] = {1, 1, 1}, decision;
    bincp_sequential_decide(&rules, hits, 1, 1, &decision);
    CHECK(decision == 0);
}

int main(void)
{
    const bincp_sequential_rule own[] = {make_rule(0, 1.0), make_rule(4, 1.5), make_rule(M, 100.0)};
    test_rules_of_their_own(own);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        free_rule(own[i]);
    }
    const double spreads[] = {0.1, 1.0, 2.5, 100.0};
    for (int k = 0; k <= M; k++) {
        for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++) {
            const bincp_sequential_rule rule = make_rule(k, spreads[i]);
            test_exits(&rule);
            test_replay(&rule);
            test_decisions_of_one_rule(&rule);
            free_rule(rule);
        }
    }
    test_inputs_that_are_none();
    test_boundaries_that_do_not_meet();
    return report("sequential");
}
