/* Noisy graphs: fields and whole graphs agree, nothing is lost where memory runs out. */
#include "noise/graph.h"
#include "noise/philox.h"

#include <string.h>

#include "check.h"

enum { N = 12, D = 7 };

static int64_t start[N + 1], column[2 * N], attribute_start[N + 1], attribute_column[N];
static uint64_t gap_high[1024], gap_low[1024];
static int32_t guide[BINCP_GRAPH_GUIDE + 1];
static long until_failure;

static int grow(bincp_graph_list *list, size_t room)
{
    if (until_failure-- == 0) {
        return -1;
    }
    int64_t *at = realloc(list->at, room * sizeof *at);
    if (at == NULL) {
        return -1;
    }
    list->at = at;
    list->room = room;
    return 0;
}

/* A ring whose zeros become ones with probability 1/2, and its ones zeros with probability 1/4. */
static bincp_graph ring(void)
{
    for (int64_t node = 0; node < N; node++) {
        const int64_t before = (node + N - 1) % N, after = (node + 1) % N;
        start[node + 1] = start[node] + 2;
        column[2 * node] = before < after ? before : after;
        column[2 * node + 1] = before < after ? after : before;
        attribute_start[node + 1] = node + 1;
        attribute_column[node] = node % D;
    }
    for (int g = 1; g <= 1024; g++) { /* 2^(128 - g) */
        gap_high[g - 1] = g <= 64 ? UINT64_C(1) << (64 - g) : 0;
        gap_low[g - 1] = g > 64 && g <= 128 ? UINT64_C(1) << (128 - g) : 0;
    }
    for (int64_t i = 0; i <= BINCP_GRAPH_GUIDE; i++) {
        int32_t above = 0;
        for (int g = 0; g < 1024; g++) {
            const uint64_t high = (uint64_t)i << 52;
            above += i < BINCP_GRAPH_GUIDE &&
                     (gap_high[g] > high || (gap_high[g] == high && gap_low[g] > 0));
        }
        guide[i] = above;
    }
    const bincp_graph_flips flips = {.ones_high = UINT64_C(1) << 62,
                                     .n_gaps = 1024,
                                     .gap_high = gap_high,
                                     .gap_low = gap_low,
                                     .guide = guide};
    return (bincp_graph){.n_nodes = N,
                         .adjacency = {start, column, N},
                         .attributes = {attribute_start, attribute_column, D},
                         .adjacency_flips = flips,
                         .attribute_flips = flips};
}

static bincp_graph_drawn empty(int64_t *place)
{
    bincp_graph_drawn drawn;
    memset(&drawn, 0, sizeof drawn);
    for (int node = 0; node < N; node++) {
        place[node] = -1;
    }
    drawn.place = place;
    drawn.node.grow = drawn.degree.grow = drawn.source.grow = drawn.target.grow = grow;
    drawn.row.grow = drawn.attribute.grow = drawn.attribute_end.grow = grow;
    return drawn;
}

static void release(bincp_graph_drawn *drawn)
{
    free(drawn->node.at);
    free(drawn->degree.at);
    free(drawn->source.at);
    free(drawn->target.at);
    free(drawn->row.at);
    free(drawn->attribute.at);
    free(drawn->attribute_end.at);
}

static int same(const bincp_graph_list *a, const bincp_graph_list *b, size_t n)
{
    return a->size >= n && b->size >= n && memcmp(a->at, b->at, n * sizeof *a->at) == 0;
}

static void test_fields(const bincp_graph *graph)
{
    for (uint32_t draw = 0; draw < 20; draw++) {
        for (int64_t hops = 0; hops <= N; hops++) {
            const bincp_graph_key key = {UINT64_MAX, (1 << 28) - 1, draw, draw % 3};
            int64_t places[2][N];
            bincp_graph_drawn field = empty(places[0]), whole = empty(places[1]);
            until_failure = -1;
            CHECK(bincp_graph_draw(graph, key, 3, BINCP_GRAPH_FIELD, hops, 1, &field) == 0);
            CHECK(bincp_graph_draw(graph, key, 3, BINCP_GRAPH_WHOLE, 0, 1, &whole) == 0);
            CHECK(whole.node.size == N);
            CHECK(same(&field.node, &whole.node, field.node.size));
            CHECK(same(&field.degree, &whole.degree, field.node.size));
            for (size_t i = 0; i < N; i++) { /* the degree is the number of edges into a node */
                int64_t degree = 0;
                for (size_t e = 0; e < whole.target.size; e++) {
                    degree += whole.target.at[e] == (int64_t)i;
                }
                CHECK(whole.degree.at[i] == degree);
            }
            CHECK(same(&field.attribute, &whole.attribute, field.attribute.size));
            for (int node = 0; node < N; node++) {
                CHECK(places[0][node] == -1 && places[1][node] == -1);
            }
            release(&field);
            release(&whole);
        }
    }
}

static void test_memory_that_runs_out(const bincp_graph *graph)
{
    const bincp_graph_key key = {1, 2, 3, 0};
    int64_t place[N];
    for (long allocations = 0;; allocations++) {
        bincp_graph_drawn drawn = empty(place);
        until_failure = allocations;
        const int failed = bincp_graph_draw(graph, key, 0, BINCP_GRAPH_IN_ORDER, 0, 1, &drawn);
        release(&drawn);
        if (failed == 0) {
            CHECK(allocations >= 7); /* a list each */
            return;
        }
        CHECK(failed == -1);
    }
}

/* The number of a coin or a gap, by the definition. */
static void number_of(bincp_graph_key key, int kind, uint64_t row, uint32_t i, uint64_t out[2])
{
    const uint64_t q = row << 28 | key.id;
    const uint32_t stream = (uint32_t)kind << 4 | (BINCP_GRAPH_STREAM + key.phase);
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    const uint32_t counter[4] = {i, key.draw, (uint32_t)q, stream << 24 | (uint32_t)(q >> 32)};
    uint32_t word[4];
    bincp_philox4x32(counter, seed, word);
    out[0] = (uint64_t)word[0] << 32 | word[1];
    out[1] = (uint64_t)word[2] << 32 | word[3];
}

static int has_edge(const bincp_graph_drawn *drawn, int64_t source, int64_t target)
{
    for (size_t e = 0; e < drawn->source.size; e++) {
        if (drawn->node.at[drawn->source.at[e]] == source &&
            drawn->node.at[drawn->target.at[e]] == target) {
            return 1;
        }
    }
    return 0;
}

static size_t edges(const bincp_graph *graph, bincp_graph_key key, bincp_graph_drawn *drawn)
{
    until_failure = -1;
    CHECK(bincp_graph_draw(graph, key, 0, BINCP_GRAPH_IN_ORDER, 0, 1, drawn) == 0);
    return drawn->source.size;
}

/* Ones that always go, or never, and zeros that stay: what is left is known. */
static void test_certain_flips(bincp_graph graph)
{
    const bincp_graph_key key = {5, 6, 7, 1};
    int64_t place[N];
    graph.adjacency_flips.n_gaps = 0;
    graph.adjacency_flips.ones_high = graph.adjacency_flips.ones_low = 0;
    bincp_graph_drawn kept = empty(place);
    CHECK(edges(&graph, key, &kept) == 2 * N); /* the ring, in both directions */
    release(&kept);
    graph.adjacency_flips.always = 1;
    bincp_graph_drawn none = empty(place);
    CHECK(edges(&graph, key, &none) == 0);
    release(&none);
}

/* A threshold that is the number of a coin itself keeps the one, and one more deletes it. */
static void test_coins_at_ties(bincp_graph graph)
{
    graph.directed = 1;
    graph.adjacency_flips.n_gaps = 0;
    for (uint32_t draw = 0; draw < 20; draw++) {
        const bincp_graph_key key = {5, 6, draw, 2};
        uint64_t number[2];
        number_of(key, BINCP_GRAPH_ADJACENCY, 3, 2, number);
        for (int more = 0; more < 2; more++) {
            int64_t place[N];
            graph.adjacency_flips.ones_high = number[0];
            graph.adjacency_flips.ones_low = number[1] + (uint64_t)more; /* none ends in 2^64 - 1 */
            bincp_graph_drawn drawn = empty(place);
            edges(&graph, key, &drawn);
            CHECK(has_edge(&drawn, 2, 3) == !more);
            release(&drawn);
        }
    }
}

/* Rows longer than the longest gap: a jump of that length ends in no hit. One bound that no number is
 * below makes every zero of the row a one. */
static void test_few_gaps(bincp_graph graph)
{
    const bincp_graph_key key = {5, 6, 7, 0};
    int64_t place[N];
    static int32_t none_above[BINCP_GRAPH_GUIDE + 1], all_above[BINCP_GRAPH_GUIDE + 1];
    static const uint64_t least = 0, most = UINT64_MAX;
    for (int i = 0; i < BINCP_GRAPH_GUIDE; i++) {
        all_above[i] = 1;
    }
    graph.directed = 1;
    graph.adjacency_flips.ones_high = graph.adjacency_flips.ones_low = 0;
    graph.adjacency_flips.n_gaps = 1;
    graph.adjacency_flips.gap_high = graph.adjacency_flips.gap_low = &least;
    graph.adjacency_flips.guide = none_above;
    bincp_graph_drawn full = empty(place);
    CHECK(edges(&graph, key, &full) == N * (N - 1));
    release(&full);
    graph.adjacency_flips.gap_high = graph.adjacency_flips.gap_low = &most;
    graph.adjacency_flips.guide = all_above;
    bincp_graph_drawn ring_again = empty(place);
    CHECK(edges(&graph, key, &ring_again) == 2 * N);
    release(&ring_again);
}

/* A gap that is certain: every other zero becomes a one, whatever the numbers are. */
static void test_a_certain_gap(bincp_graph graph)
{
    static int32_t one_above[BINCP_GRAPH_GUIDE + 1];
    static const uint64_t bounds[] = {0, 0}; /* the first one is 2^128, which no pair of words is */
    for (int i = 0; i < BINCP_GRAPH_GUIDE; i++) {
        one_above[i] = 1;
    }
    graph.directed = 1;
    graph.adjacency_flips = (bincp_graph_flips){.n_gaps = 2,
                                                .n_certain = 1,
                                                .gap_high = bounds,
                                                .gap_low = bounds,
                                                .guide = one_above};
    size_t expected = 0;
    for (int64_t node = 0; node < N; node++) {
        for (int64_t other = 0; other < N; other++) {
            const int is_one = (node + 1) % N == other || (other + 1) % N == node;
            expected += node != other && (is_one || other % 2 == 1);
        }
    }
    size_t wrong = 0;
    for (uint32_t draw = 0; draw < 2000; draw++) {
        int64_t place[N];
        const bincp_graph_key key = {5, 6, draw, 1};
        bincp_graph_drawn drawn = empty(place);
        wrong += edges(&graph, key, &drawn) != expected;
        release(&drawn);
    }
    CHECK(wrong == 0);
}

/* A whole graph is met from its smallest node on where nothing leads further. */
static void test_whole_graph_without_edges(bincp_graph graph)
{
    const bincp_graph_key key = {5, 6, 7, 1};
    int64_t place[N];
    graph.adjacency_flips.n_gaps = 0;
    graph.adjacency_flips.always = 1;
    bincp_graph_drawn drawn = empty(place);
    until_failure = -1;
    CHECK(bincp_graph_draw(&graph, key, 3, BINCP_GRAPH_WHOLE, 0, 1, &drawn) == 0);
    CHECK(drawn.node.size == N && drawn.node.at[0] == 3 && drawn.node.at[1] == 0);
    CHECK(drawn.node.at[3] == 2 && drawn.node.at[4] == 4 && drawn.node.at[N - 1] == N - 1);
    release(&drawn);
}

/* Memory that runs out anywhere, in every extent, from lists that have room for one number. */
static int grow_by_one(bincp_graph_list *list, size_t room)
{
    return grow(list, room < list->size + 1 ? room : list->size + 1);
}

static void test_memory_everywhere(bincp_graph graph)
{
    const bincp_graph_extent extents[] = {BINCP_GRAPH_FIELD, BINCP_GRAPH_WHOLE,
                                          BINCP_GRAPH_IN_ORDER};
    const bincp_graph_key key = {1, 2, 3, 0};
    for (int kind = 0; kind < 12; kind++) {
        graph.directed = kind % 2;
        graph.adjacency_flips.always = kind / 2 % 2;
        if (graph.adjacency_flips.always) {
            graph.adjacency_flips.n_gaps = 0;
        }
        int failed = -1;
        for (long allocations = 0; failed != 0; allocations++) {
            int64_t place[N];
            bincp_graph_drawn drawn = empty(place);
            drawn.node.grow = drawn.degree.grow = drawn.source.grow = grow_by_one;
            drawn.target.grow = drawn.row.grow = grow_by_one;
            drawn.attribute.grow = drawn.attribute_end.grow = grow_by_one;
            until_failure = allocations;
            failed = bincp_graph_draw(&graph, key, 5, extents[kind / 4], 2, 1, &drawn);
            CHECK(failed == 0 || failed == -1);
            release(&drawn);
        }
        graph.adjacency_flips.n_gaps = graph.attribute_flips.n_gaps;
    }
}

int main(void)
{
    bincp_graph graph = ring();
    test_fields(&graph);
    test_memory_that_runs_out(&graph);
    test_certain_flips(graph);
    test_coins_at_ties(graph);
    test_few_gaps(graph);
    test_a_certain_gap(graph);
    test_whole_graph_without_edges(graph);
    test_memory_everywhere(graph);
    graph.directed = 1;
    test_fields(&graph);
    return report("graph");
}
