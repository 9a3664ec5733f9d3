/* Sequential rules with any boundaries, unions of any intervals, and noisy graphs of any rows. */
#include "noise/graph.h"
#include "regression/interval_scores.h"
#include "regression/sweep.h"
#include "rules/sequential.h"

#include <math.h>

#include "fuzz.h"

enum { M = 12, NODES = 9, POINTS = 6 };

/* A label goes on until its count is at a boundary: by hand, and by both kernels. */
static void sequential(bytes *from)
{
    int32_t accept[M + 1], reject[M + 1], counts[1] = {0}, exits[1], draws[1] = {0};
    unsigned char hits[M], accepted;
    for (int l = 0; l <= M; l++) {
        accept[l] = byte_of(from) % (M + 2);
        reject[l] = byte_of(from) % (M + 2) - 1;
    }
    accept[M] = reject[M] + 1; /* a decision at the end */
    for (int l = 0; l < M; l++) {
        hits[l] = byte_of(from) % 3;
    }
    int count = 0, l = 0;
    while (count < accept[l] && count > reject[l]) {
        count += hits[l++] != 0;
    }
    const bincp_sequential_rules rules = {accept, reject, M, 1};
    bincp_sequential_decide(&rules, hits, 1, 1, &accepted);
    REQUIRE(accepted == (count >= accept[l]));
    exits[0] = l == 0 ? 0 : -1;
    const bincp_sequential_state state = {1, 1, draws, counts, exits};
    for (int r = 0; r < M; r++) {
        const int64_t input = 0;
        REQUIRE(bincp_sequential_replay(&rules, &state, hits + r, &input, 1) == 1);
    }
    REQUIRE(exits[0] == l && counts[0] == count && draws[0] == M);
    const bincp_sequential_rule rule = {accept, reject, M};
    const double p = probability_from(from), q = 1.0 - p;
    double scratch[BINCP_SEQUENTIAL_SCRATCH(M)], yes, no, mean;
    bincp_sequential_exits(&rule, &p, &q, 1, scratch, &no, &yes, &mean);
    REQUIRE(fabs(yes + no - 1.0) <= 1e-12 && mean >= 0.0 && mean <= M * (1 + 1e-12));
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

static int grow(bincp_graph_list *list, size_t room)
{
    int64_t *at = realloc(list->at, room * sizeof *at);
    if (at == NULL) {
        return -1;
    }
    list->at = at;
    list->room = room;
    return 0;
}

static void start_empty(bincp_graph_drawn *drawn, int64_t *place)
{
    memset(drawn, 0, sizeof *drawn);
    drawn->node.grow = drawn->degree.grow = drawn->source.grow = drawn->target.grow = grow;
    drawn->row.grow = drawn->attribute.grow = drawn->attribute_end.grow = grow;
    drawn->place = place;
    for (int i = 0; i < NODES; i++) {
        place[i] = -1;
    }
}

static void release(bincp_graph_drawn *drawn)
{
    bincp_graph_list *const lists[] = {&drawn->node,   &drawn->degree, &drawn->source,
                                       &drawn->target, &drawn->row,    &drawn->attribute,
                                       &drawn->attribute_end};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        free(lists[i]->at);
    }
}

/* A field is the beginning of the whole graph, whose nodes are all met once. */
static void graphs(bytes *from)
{
    int64_t start[NODES + 1] = {0}, column[NODES * NODES], places[2][NODES];
    static int32_t guide[BINCP_GRAPH_GUIDE + 1];
    uint64_t high[2], low[2];
    int64_t n = 0;
    uint8_t ones[NODES][NODES] = {{0}};
    const int directed = byte_of(from) % 2;
    for (int i = 0; i < NODES; i++) {
        for (int j = 0; j < (directed ? NODES : i); j++) {
            ones[i][j] = i != j && byte_of(from) % 4 == 0;
            if (!directed) {
                ones[j][i] = ones[i][j];
            }
        }
    }
    for (int i = 0; i < NODES; i++) {
        for (int j = 0; j < NODES; j++) {
            if (ones[i][j]) {
                column[n++] = j;
            }
        }
        start[i + 1] = n;
    }
    high[0] = word_of(from);
    high[1] = word_of(from) % (high[0] + (high[0] < UINT64_MAX));
    low[0] = low[1] = 0;
    for (int i = 0; i <= BINCP_GRAPH_GUIDE; i++) {
        const uint64_t part = (uint64_t)i << 52;
        guide[i] = i == BINCP_GRAPH_GUIDE ? 0 : (high[0] > part) + (high[1] > part);
    }
    const bincp_graph_flips flips = {word_of(from),          0,    byte_of(from) % 8 == 0,
                                     byte_of(from) % 4 ? 2 : 0, 0, high,
                                     low,                    guide};
    const bincp_graph graph = {NODES, {start, column, NODES}, {start, column, NODES}, flips, flips,
                               directed};
    const bincp_graph_key key = {word_of(from), word_of(from) >> 36, (uint32_t)word_of(from),
                                 byte_of(from) % 3};
    bincp_graph_drawn field, whole;
    start_empty(&field, places[0]);
    start_empty(&whole, places[1]);
    const int64_t target = byte_of(from) % NODES;
    REQUIRE(bincp_graph_draw(&graph, key, target, BINCP_GRAPH_FIELD, byte_of(from) % 5, 1, &field) == 0);
    REQUIRE(bincp_graph_draw(&graph, key, target, BINCP_GRAPH_WHOLE, 0, 1, &whole) == 0);
    REQUIRE(whole.node.size == NODES && field.node.size >= 1 && field.node.size <= NODES);
    uint32_t met = 0;
    for (size_t i = 0; i < NODES; i++) {
        met |= UINT32_C(1) << whole.node.at[i];
        REQUIRE(i >= field.node.size || (field.node.at[i] == whole.node.at[i] &&
                                         field.degree.at[i] == whole.degree.at[i]));
        REQUIRE(places[0][i] == -1 && places[1][i] == -1);
    }
    REQUIRE(met == (UINT32_C(1) << NODES) - 1);
    release(&field);
    release(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(bytes *) = {sequential, unions, ends, graphs};
    bytes from = {data, size};
    kinds[byte_of(&from) % 4](&from);
    return 0;
}
