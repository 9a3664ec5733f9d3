/* Flips of the bits of a sparse graph (see graph.h). Integers only. */
#include "noise/graph.h"

#include "noise/philox.h"

typedef struct number {
    uint64_t high, low;
} number;

/* ---- numbers ------------------------------------------------------------------------------------ */

static inline number number_of(bincp_graph_key key, int kind, uint64_t row, uint32_t i)
{
    const uint64_t q = row << 28 | key.id;
    const uint32_t stream = (uint32_t)kind << 4 | (BINCP_GRAPH_STREAM + key.phase);
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    const uint32_t counter[4] = {i, key.draw, (uint32_t)q, stream << 24 | (uint32_t)(q >> 32)};
    uint32_t word[4];
    philox_rounds(counter, seed, word);
    return (number){(uint64_t)word[0] << 32 | word[1], (uint64_t)word[2] << 32 | word[3]};
}

static inline int below(number a, uint64_t high, uint64_t low)
{
    return a.high < high || (a.high == high && a.low < low);
}

static inline int stays(const bincp_graph_flips *flips, bincp_graph_key key, int kind, uint64_t row,
                        uint64_t column)
{
    if (flips->always) {
        return 0;
    }
    if ((flips->ones_high | flips->ones_low) == 0) {
        return 1;
    }
    return !below(number_of(key, kind, row, (uint32_t)column), flips->ones_high, flips->ones_low);
}

/* How many zeros stay zero: the number of bounds above w. */
static inline int32_t gap(const bincp_graph_flips *flips, number w)
{
    const size_t part = (size_t)(w.high >> 52);
    int32_t low = flips->guide[part + 1], high = flips->guide[part];
    low = low < flips->n_certain ? flips->n_certain : low;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (below(w, flips->gap_high[middle], flips->gap_low[middle])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- lists -------------------------------------------------------------------------------------- */

static inline int push(bincp_graph_list *list, int64_t value)
{
    if (list->size == list->room && list->grow(list, 2 * list->room + 64) != 0) {
        return -1;
    }
    list->at[list->size++] = value;
    return 0;
}

/* ---- rows --------------------------------------------------------------------------------------- */

/* The hits of a row, in increasing order. */
typedef struct hits {
    uint64_t place;
    uint32_t i;
} hits;

static inline int next_hit(const bincp_graph_flips *flips, bincp_graph_key key, int kind,
                           uint64_t row, uint64_t width, hits *at, uint64_t *hit)
{
    while (flips->n_gaps != 0 && at->place < width) {
        const int32_t g = gap(flips, number_of(key, kind + 1, row, at->i++));
        at->place += (uint64_t)g;
        if (at->place < width && g < flips->n_gaps) {
            *hit = at->place++;
            return 1;
        }
    }
    return 0;
}

/* A pair is decided once one of its ends was explored: those nodes have the first places. */
typedef struct decided {
    const int64_t *place; /* NULL: every entry is decided by its own row */
    int64_t first, current;
} decided;

static inline int is_decided(const decided *before, uint64_t column)
{
    if (before->place == NULL) {
        return 0;
    }
    const int64_t place = before->place[column];
    return place >= before->first && place < before->current;
}

/* out: the columns of the ones of a noisy row, in increasing order, but for `self` and decided ones. */
static int noisy_row(const bincp_graph_rows *rows, const bincp_graph_flips *flips,
                     bincp_graph_key key, int kind, int64_t row, int64_t self,
                     const decided *before, bincp_graph_list *out)
{
    const int64_t end = rows->start[row + 1];
    int64_t next = rows->start[row];
    hits at = {0, 0};
    uint64_t hit = 0;
    int more = next_hit(flips, key, kind, (uint64_t)row, rows->width, &at, &hit);
    while (more || next < end) {
        const int is_one = next < end && (!more || (uint64_t)rows->column[next] <= hit);
        const uint64_t column = is_one ? (uint64_t)rows->column[next] : hit;
        if (more && hit == column) { /* a hit on a one is ignored */
            more = next_hit(flips, key, kind, (uint64_t)row, rows->width, &at, &hit);
        }
        next += is_one;
        if ((int64_t)column == self || is_decided(before, column) ||
            (is_one && !stays(flips, key, kind, (uint64_t)row, column))) {
            continue;
        }
        if (push(out, (int64_t)column) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- exploration -------------------------------------------------------------------------------- */

static int meet(bincp_graph_drawn *drawn, int64_t node)
{
    if (push(&drawn->node, node) != 0 || push(&drawn->degree, 0) != 0) {
        return -1;
    }
    drawn->place[node] = (int64_t)drawn->node.size - 1;
    return 0;
}

static int add_edge(bincp_graph_drawn *drawn, int64_t source, int64_t target)
{
    return push(&drawn->source, source) != 0 || push(&drawn->target, target) != 0 ? -1 : 0;
}

/* Decide the pairs of one node. Beyond the last hop nodes are counted, and not met. */
static int explore(const bincp_graph *graph, bincp_graph_key key, int64_t place, int64_t first,
                   int meets, bincp_graph_drawn *drawn)
{
    const int64_t node = drawn->node.at[place];
    const decided before = {graph->directed ? NULL : drawn->place, first, place};
    drawn->row.size = 0;
    if (noisy_row(&graph->adjacency, &graph->adjacency_flips, key, BINCP_GRAPH_ADJACENCY, node, node,
                  &before, &drawn->row) != 0) {
        return -1;
    }
    drawn->degree.at[place] += (int64_t)drawn->row.size;
    for (size_t i = 0; i < drawn->row.size; i++) {
        const int64_t other = drawn->row.at[i];
        if (drawn->place[other] < 0) {
            if (!meets) {
                continue;
            }
            if (meet(drawn, other) != 0) {
                return -1;
            }
        }
        const int64_t there = drawn->place[other];
        if (add_edge(drawn, there, place) != 0) {
            return -1;
        }
        if (!graph->directed) {
            drawn->degree.at[there] += 1;
            if (add_edge(drawn, place, there) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* Meet the smallest node that was not met. Returns its number plus one, or -1. */
static int64_t start_again(const bincp_graph *graph, int64_t from, bincp_graph_drawn *drawn)
{
    while (from < graph->n_nodes && drawn->place[from] >= 0) {
        from++;
    }
    if (from < graph->n_nodes && meet(drawn, from) != 0) {
        return -1;
    }
    return from;
}

static int explore_all(const bincp_graph *graph, bincp_graph_key key, int64_t target,
                       bincp_graph_extent extent, bincp_graph_drawn *drawn)
{
    const int64_t first = (int64_t)drawn->node.size;
    int64_t left = 0;
    if (extent == BINCP_GRAPH_WHOLE && meet(drawn, target) != 0) {
        return -1;
    }
    for (int64_t node = 0; extent == BINCP_GRAPH_IN_ORDER && node < graph->n_nodes; node++) {
        if (meet(drawn, node) != 0) {
            return -1;
        }
    }
    for (int64_t place = first; place < first + graph->n_nodes; place++) {
        if (place == (int64_t)drawn->node.size &&
            (left = start_again(graph, left, drawn)) < 0) {
            return -1;
        }
        if (explore(graph, key, place, first, 1, drawn) != 0) {
            return -1;
        }
    }
    return 0;
}

static int explore_field(const bincp_graph *graph, bincp_graph_key key, int64_t target, int64_t hops,
                         int32_t degrees, bincp_graph_drawn *drawn)
{
    const int64_t first = (int64_t)drawn->node.size;
    int64_t place = first;
    if (meet(drawn, target) != 0) {
        return -1;
    }
    for (int64_t hop = 0; hop < hops + (degrees != 0); hop++) {
        const int64_t end = (int64_t)drawn->node.size;
        if (place == end) {
            break; /* all that can be reached */
        }
        for (; place < end; place++) {
            if (explore(graph, key, place, first, hop < hops, drawn) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int draw_attributes(const bincp_graph *graph, bincp_graph_key key, size_t first,
                           bincp_graph_drawn *drawn)
{
    const decided none = {NULL, 0, 0};
    for (size_t place = first; place < drawn->node.size; place++) {
        if (noisy_row(&graph->attributes, &graph->attribute_flips, key, BINCP_GRAPH_ATTRIBUTES,
                      drawn->node.at[place], -1, &none, &drawn->attribute) != 0 ||
            push(&drawn->attribute_end, (int64_t)drawn->attribute.size) != 0) {
            return -1;
        }
    }
    return 0;
}

int bincp_graph_draw(const bincp_graph *graph, bincp_graph_key key, int64_t target,
                     bincp_graph_extent extent, int64_t hops, int32_t degrees,
                     bincp_graph_drawn *drawn)
{
    const size_t first = drawn->node.size;
    const int failed = extent == BINCP_GRAPH_FIELD
                           ? explore_field(graph, key, target, hops, degrees, drawn)
                           : explore_all(graph, key, target, extent, drawn);
    if (failed || draw_attributes(graph, key, first, drawn) != 0) {
        return -1;
    }
    for (size_t place = first; place < drawn->node.size; place++) {
        drawn->place[drawn->node.at[place]] = -1;
    }
    return 0;
}
