/* Sequential rules with any boundaries, unions of any intervals, and the worst of any mixtures. */
#include "regression/interval_scores.h"
#include "regression/sweep.h"
#include "rules/mixture.h"
#include "rules/sequential.h"

#include <float.h>
#include <math.h>

#include "fuzz.h"

enum { M = 12, LABELS = 5, INPUTS = 3, POINTS = 6 };

/* Where a label with these hits is decided: after how many draws, and with which count. */
typedef struct decision {
    int32_t draws, count;
    int accepted;
} decision;

/* `made` draws were made: without a decision by then, draws is -1. */
static decision decide(const int32_t *accept, const int32_t *reject, size_t step, const unsigned char *hits,
                       int32_t made)
{
    int32_t count = 0;
    for (int32_t l = 0; l <= made; l++) {
        if (count >= accept[(size_t)l * step] || count <= reject[(size_t)l * step]) {
            return (decision){l, count, count >= accept[(size_t)l * step]};
        }
        count += l < made && hits[l] != 0;
    }
    return (decision){-1, count, 0};
}

/* All labels of all inputs: from all their draws, and draw by draw. */
static void decisions(const bincp_sequential_rules *rules, bytes *from)
{
    unsigned char hits[INPUTS][LABELS][M], rows[INPUTS * M][LABELS], accepted[INPUTS][LABELS];
    int32_t draws[INPUTS] = {0}, counts[INPUTS][LABELS] = {{0}}, exits[INPUTS][LABELS];
    int64_t inputs[INPUTS * M];
    const size_t step = rules->n_rules;
    for (int i = 0; i < INPUTS; i++) {
        for (int y = 0; y < LABELS; y++) {
            for (int l = 0; l < M; l++) {
                hits[i][y][l] = byte_of(from) % 3;
            }
            const size_t own = step == 1 ? 0 : (size_t)y;
            exits[i][y] = decide(rules->accept + own, rules->reject + own, step, NULL, 0).draws;
        }
    }
    bincp_sequential_decide(rules, hits[0][0], INPUTS, LABELS, accepted[0]);
    size_t n = 0, good = INPUTS * M;
    for (; n < INPUTS * M; n++) { /* any order of the inputs, until one has no draw left */
        const uint8_t kind = byte_of(from);
        inputs[n] = kind < 250 ? kind % INPUTS : kind < 253 ? -1 : INPUTS;
        const int exists = inputs[n] >= 0 && inputs[n] < INPUTS;
        if (!exists || draws[inputs[n]] == M) {
            good = n;
            break;
        }
        const int32_t l = draws[inputs[n]]++;
        for (int y = 0; y < LABELS; y++) {
            rows[n][y] = hits[inputs[n]][y][l];
        }
    }
    int32_t played[INPUTS] = {0};
    const bincp_sequential_state state = {INPUTS, LABELS, played, counts[0], exits[0]};
    REQUIRE(bincp_sequential_replay(rules, &state, rows[0], inputs, n < INPUTS * M ? n + 1 : n) == good);
    for (int i = 0; i < INPUTS; i++) {
        REQUIRE(played[i] == draws[i]);
        for (int y = 0; y < LABELS; y++) {
            const size_t own = step == 1 ? 0 : (size_t)y;
            const int32_t *accept = rules->accept + own, *reject = rules->reject + own;
            const decision last = decide(accept, reject, step, hits[i][y], M);
            const decision sofar = decide(accept, reject, step, hits[i][y], played[i]);
            REQUIRE(accepted[i][y] == last.accepted);
            REQUIRE(exits[i][y] == sofar.draws && counts[i][y] == sofar.count);
        }
    }
}

/* The ends of one label by all its counts, draw by draw. */
static void exits(const bincp_sequential_rule *rule, bytes *from)
{
    enum { LANES_AND_MORE = BINCP_SEQUENTIAL_LANES + 2 };
    double p[LANES_AND_MORE], q[LANES_AND_MORE], scratch[BINCP_SEQUENTIAL_SCRATCH(M)];
    double no[LANES_AND_MORE], yes[LANES_AND_MORE], mean[LANES_AND_MORE];
    double left[(M + 1) * LANES_AND_MORE];
    const size_t n = 1 + byte_of(from) % LANES_AND_MORE;
    for (size_t i = 0; i < n; i++) {
        p[i] = probability_from(from);
        q[i] = 1.0 - p[i];
    }
    bincp_sequential_exits(rule, p, q, n, scratch, no, yes, mean);
    bincp_sequential_undecided(rule, p, q, n, scratch, left);
    for (size_t i = 0; i < n; i++) {
        long double at[M + 2] = {1.0L}, accepted = 0.0L, refused = 0.0L, draws = 0.0L;
        for (int l = 0; l <= M; l++) {
            long double undecided = 0.0L;
            for (int s = 0; s <= l; s++) {
                accepted += s >= rule->accept[l] ? at[s] : 0.0L;
                refused += s < rule->accept[l] && s <= rule->reject[l] ? at[s] : 0.0L;
                at[s] = s >= rule->accept[l] || s <= rule->reject[l] ? 0.0L : at[s];
                undecided += at[s];
            }
            draws += undecided;
            REQUIRE(fabsl(left[(size_t)l * n + i] - undecided) <= 1e-12L * undecided + 1e-280L);
            for (int s = l + 1; s > 0; s--) {
                at[s] = at[s] * q[i] + at[s - 1] * p[i];
            }
            at[0] *= q[i];
        }
        REQUIRE(fabsl(yes[i] - accepted) <= 1e-12L * accepted + 1e-280L);
        REQUIRE(fabsl(no[i] - refused) <= 1e-12L * refused + 1e-280L);
        REQUIRE(fabsl(mean[i] - draws) <= 1e-12L * draws + 1e-280L);
    }
}

/* A label goes on until its count is at a boundary. */
static void sequential(bytes *from)
{
    int32_t accept[(M + 1) * LABELS], reject[(M + 1) * LABELS];
    const size_t n_rules = byte_of(from) % 2 ? 1 : LABELS;
    for (size_t l = 0; l <= M; l++) {
        for (size_t y = 0; y < n_rules; y++) {
            reject[l * n_rules + y] = byte_of(from) % (M + 2) - 1;
            accept[l * n_rules + y] = l == M ? reject[l * n_rules + y] + 1 /* a decision at the end */
                                             : byte_of(from) % (M + 2);
        }
    }
    const bincp_sequential_rules rules = {accept, reject, M, n_rules};
    decisions(&rules, from);
    if (n_rules == 1) {
        const bincp_sequential_rule rule = {accept, reject, M};
        exits(&rule, from);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A point is in the union iff it is in at least k of the intervals. */
static void unions(bytes *from)
{
    double left[POINTS], right[POINTS], l[POINTS], r[POINTS], starts[POINTS], stops[POINTS];
    const size_t m = 1 + byte_of(from) % POINTS, k = 1 + byte_of(from) % m;
    int64_t offsets[2];
    for (size_t i = 0; i < m; i++) {
        const double a = double_from(from), b = double_from(from);
        l[i] = left[i] = isnan(a) ? 0.0 : a;
        r[i] = right[i] = isnan(b) ? 0.0 : b;
    }
    REQUIRE(bincp_mark_empty(left, right, m) == 0);
    qsort(left, m, sizeof *left, ascending);
    qsort(right, m, sizeof *right, ascending);
    const size_t n = bincp_sweep(left, right, 1, m, k, starts, stops, offsets);
    REQUIRE(offsets[0] == 0 && offsets[1] == (int64_t)n);
    for (size_t i = 0; i < 3 * m; i++) {
        const double y = i < m ? l[i] : i < 2 * m ? r[i - m] : double_from(from);
        size_t inside = 0, in_pieces = 0;
        if (!isfinite(y)) {
            continue;
        }
        for (size_t j = 0; j < m; j++) {
            inside += l[j] <= y && y <= r[j];
        }
        for (size_t j = 0; j < n; j++) {
            in_pieces += starts[j] <= y && y <= stops[j];
        }
        REQUIRE(in_pieces == (inside >= k));
    }
}

/* The doubles between the ends are those that reach the threshold. */
static void ends(bytes *from)
{
    const double low = double_from(from), high = double_from(from), tau = double_from(from);
    double scale = fabs(double_from(from)), left, right;
    if (isnan(low) || isnan(high) || isnan(tau) || tau == -INFINITY) {
        return;
    }
    scale = scale > 0.0 && isfinite(scale) ? scale : 1.0;
    bincp_interval_ends(&low, &high, &scale, tau, 1, &left, &right);
    const double tried[] = {left, right, nextafter(left, -INFINITY), nextafter(right, INFINITY),
                            double_from(from)};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        const double y = tried[i];
        double score;
        if (isfinite(y)) {
            bincp_interval_scores(&low, &high, &scale, &y, 1, 1, &score);
            REQUIRE((left <= y && y <= right) == (score >= tau));
        }
    }
}

/* ---- worst mixtures ----------------------------------------------------------------------------- */

enum { CELLS = 9, TRIALS = 60 };

static int descending(const void *a, const void *b)
{
    return ascending(b, a);
}

/* The least, over all slopes of chords, of slope x + max (v - slope u): the envelope of points and (1, 1). */
static long double envelope_by_slopes(const double *u, const double *v, size_t n, double x)
{
    long double least = 1.0L;
    for (size_t i = 0; i <= n; i++) { /* a chord of two points, or the flat one */
        for (size_t j = 0; j < i || j == 0; j++) {
            const long double ui = i < n ? u[i] : 1.0, vi = i < n ? v[i] : 1.0;
            const long double chord = ui != u[j] && i > 0 ? (vi - v[j]) / (ui - u[j]) : 0.0L;
            const long double slope = fminl(chord, DBL_MAX); /* no double is steeper */
            long double height = 1.0L - slope;
            for (size_t k = 0; k < n && slope >= 0; k++) {
                height = fmaxl(height, v[k] - slope * u[k]);
            }
            least = slope >= 0 ? fminl(least, height + slope * x) : least;
        }
    }
    return least;
}

static void mixtures(bytes *from)
{
    double u[CELLS + 1], v[CELLS + 1];
    const size_t n = 1 + byte_of(from) % CELLS;
    const double x = probability_from(from);
    for (size_t i = 0; i <= n; i++) {
        u[i] = probability_from(from);
        v[i] = probability_from(from);
    }
    u[n] = 0.0; /* a success probability of 1 does not fail */
    qsort(u, n + 1, sizeof *u, descending);
    qsort(v, n + 1, sizeof *v, descending);
    const bincp_envelope corner = bincp_corner_envelope(u, v, n, x), point = bincp_point_envelope(u, v, n, x);
    REQUIRE(corner.slope >= 0.0 && point.slope >= 0.0 && point.value <= corner.value + 1e-12);
    for (size_t i = 0; i <= n; i++) { /* no corner is above the line that proves the bound */
        const double *const first = i < n ? u + 1 : NULL;
        REQUIRE(!first || v[i] <= corner.value + corner.slope * (first[i] - x) + 1e-12 * (1 + corner.slope));
        REQUIRE(v[i] <= point.value + point.slope * (u[i] - x) + 1e-12 * (1 + point.slope));
    }
    const long double best = envelope_by_slopes(u + 1, v, n, x);
    REQUIRE(best >= 1.0L - 1e-9L || corner.value <= best + 1e-9L);

    double w[TRIALS + 1], mean, misses;
    const int64_t m = 1 + byte_of(from) % TRIALS, t = byte_of(from) % (m + 2);
    const double p = probability_from(from), q = 1.0 - p;
    long double masses[TRIALS + 1] = {1.0L}, sum = 0.0L, below = 0.0L;
    for (int64_t i = 1; i <= m; i++) {
        for (int64_t s = i; s > 0; s--) {
            masses[s] = masses[s] * (1.0L - p) + masses[s - 1] * p;
        }
        masses[0] *= 1.0L - p;
    }
    for (int64_t s = 0; s <= m; s++) {
        w[s] = probability_from(from);
        sum += masses[s] * w[s];
        below += s < t ? masses[s] : 0.0L;
    }
    bincp_binomial_means(w, m, &p, &q, 1, &mean);
    bincp_failures(t, m, &p, &q, 1, &misses);
    REQUIRE(fabsl(mean - sum) <= BINCP_MEAN_ERROR);
    REQUIRE(fabsl(misses - below) <= 1e-13L + 1e-11L * below);
    const double outside = double_from(from);
    if (!(outside >= 0.0 && outside <= 1.0)) {
        bincp_binomial_means(w, m, &outside, &q, 1, &mean);
        bincp_failures(t, m, &p, &outside, 1, &misses);
        REQUIRE(isnan(mean) && isnan(misses));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(bytes *) = {sequential, unions, ends, mixtures};
    bytes from = {data, size};
    kinds[byte_of(&from) % 4](&from);
    return 0;
}
