/* Noisy graphs: fields and whole graphs agree, nothing is lost where memory runs out. */
#include "noise/graph.h"

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

int main(void)
{
    bincp_graph graph = ring();
    test_fields(&graph);
    test_memory_that_runs_out(&graph);
    graph.directed = 1;
    test_fields(&graph);
    return report("graph");
}
