/* Flips of the bits of a sparse graph: the pairs of its nodes and the attributes of each node.
 *
 * Every coin is a function of its key and its place: the seed, the phase, the id and the draw of an
 * input, the row w and the column u. Ones have a coin each. The zeros of a row that become ones are
 * found by jumps over those that stay, whose lengths do not depend on the graph: a row costs its
 * ones and its hits, not its length.
 *
 * An undirected pair belongs to the end whose row is explored first. Exploration goes breadth first
 * from a target, so the next row is a function of what is known already and independent of it: each
 * newly decided pair is an independent coin (deferred decisions).
 *
 * Functions may be called from any thread, on lists that no other thread uses meanwhile. They do not
 * allocate: the caller's lists grow themselves.
 */
#ifndef BINCP_GRAPH_H
#define BINCP_GRAPH_H

#include <stddef.h>
#include <stdint.h>

/* The low four bits of a stream are 9 + phase, which no other stream of philox.h has. */
enum {
    BINCP_GRAPH_STREAM = 9,
    BINCP_GRAPH_ADJACENCY = 0, /* coins; gaps follow */
    BINCP_GRAPH_ATTRIBUTES = 2,
    BINCP_GRAPH_GUIDE = 4096
};

/* Thresholds in units of 2^-128. A one is deleted iff its number is below `ones`, or always. Of the
 * `n_gaps` non-increasing bounds T_1, T_2, ... so many lie above the number of a gap as zeros stay
 * zero in a row; the first `n_certain` are 2^128. guide[i] of them lie above i 2^116. */
typedef struct bincp_graph_flips {
    uint64_t ones_high, ones_low;
    int32_t always;
    int32_t n_gaps; /* 0: no zero becomes one */
    int32_t n_certain;
    const uint64_t *gap_high, *gap_low;
    const int32_t *guide; /* BINCP_GRAPH_GUIDE + 1 */
} bincp_graph_flips;

/* The rows of a binary matrix: sorted columns, without duplicates. */
typedef struct bincp_graph_rows {
    const int64_t *start; /* rows + 1 */
    const int64_t *column;
    uint64_t width;
} bincp_graph_rows;

typedef struct bincp_graph_key {
    uint64_t seed;
    uint64_t id; /* < 2^28 */
    uint32_t draw;
    uint32_t phase; /* 0, 1, 2 */
} bincp_graph_key;

/* Numbers in memory of the caller, whose `grow` makes room for so many, or returns -1. */
typedef struct bincp_graph_list {
    int64_t *at;
    size_t size, room;
    int (*grow)(struct bincp_graph_list *list, size_t room);
} bincp_graph_list;

/* What was drawn, one input after the other. Edges and `place` count nodes from the first one of the
 * first input; `place` is -1 for nodes that the input at hand has not met. */
typedef struct bincp_graph_drawn {
    bincp_graph_list node, degree, source, target, row;
    bincp_graph_list attribute, attribute_end;
    int64_t *place; /* n_nodes, all -1 between two calls */
} bincp_graph_drawn;

typedef struct bincp_graph {
    int64_t n_nodes; /* < 2^28 */
    bincp_graph_rows adjacency, attributes;
    bincp_graph_flips adjacency_flips, attribute_flips;
    int32_t directed; /* row w holds the sources of the edges into w */
} bincp_graph;

typedef enum bincp_graph_extent {
    BINCP_GRAPH_FIELD, /* nodes up to `hops` edges from the target */
    BINCP_GRAPH_WHOLE, /* all, from the target on, then from the smallest that is left */
    BINCP_GRAPH_IN_ORDER /* all, in the order of their numbers: one graph for all targets */
} bincp_graph_extent;

/* Append the noisy graph of one input, or the field of its target, and the noisy attributes of its
 * nodes. With `degrees` the nodes at distance `hops` are explored too, so that the degree of every
 * node in the field is known; without, only degrees of nearer nodes are. Returns 0, or -1 where a list
 * did not grow; then nothing more may be drawn into it. */
int bincp_graph_draw(const bincp_graph *graph, bincp_graph_key key, int64_t target,
                     bincp_graph_extent extent, int64_t hops, int32_t degrees,
                     bincp_graph_drawn *drawn);

#endif
