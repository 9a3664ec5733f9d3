"""Noisy graphs and receptive fields; the caller (`bincp.noise`) checks graphs, keys and targets."""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

cdef extern from "noise/graph.h" nogil:
    enum:
        BINCP_GRAPH_GUIDE
    ctypedef struct bincp_graph_flips:
        uint64_t ones_high
        uint64_t ones_low
        int32_t always
        int32_t n_gaps
        int32_t n_certain
        const uint64_t *gap_high
        const uint64_t *gap_low
        const int32_t *guide
    ctypedef struct bincp_graph_rows:
        const int64_t *start
        const int64_t *column
        uint64_t width
    ctypedef struct bincp_graph_key:
        uint64_t seed
        uint64_t id
        uint32_t draw
        uint32_t phase
    ctypedef struct bincp_graph_list:
        int64_t *at
        size_t size
        size_t room
        int (*grow)(bincp_graph_list *list, size_t room) noexcept nogil
    ctypedef struct bincp_graph_drawn:
        bincp_graph_list node
        bincp_graph_list degree
        bincp_graph_list source
        bincp_graph_list target
        bincp_graph_list attribute
        bincp_graph_list attribute_end
        bincp_graph_list row
        int64_t *place
    ctypedef struct bincp_graph:
        int64_t n_nodes
        bincp_graph_rows adjacency
        bincp_graph_rows attributes
        bincp_graph_flips adjacency_flips
        bincp_graph_flips attribute_flips
        int32_t directed
    ctypedef enum bincp_graph_extent:
        BINCP_GRAPH_FIELD
        BINCP_GRAPH_WHOLE
        BINCP_GRAPH_IN_ORDER
    int bincp_graph_draw(
        const bincp_graph *graph, bincp_graph_key key, int64_t target, bincp_graph_extent extent,
        int64_t hops, int32_t degrees, bincp_graph_drawn *drawn) noexcept

GUIDE = BINCP_GRAPH_GUIDE
FIELD = <int>BINCP_GRAPH_FIELD
WHOLE = <int>BINCP_GRAPH_WHOLE
IN_ORDER = <int>BINCP_GRAPH_IN_ORDER


cdef class Flips:
    """The thresholds of one pair of flip probabilities."""

    cdef bincp_graph_flips flips
    cdef const uint64_t[::1] gap_high
    cdef const uint64_t[::1] gap_low
    cdef const int32_t[::1] guide

    def __init__(
        self, bint always, uint64_t ones_high, uint64_t ones_low, int32_t n_certain,
        const uint64_t[::1] gap_high, const uint64_t[::1] gap_low, const int32_t[::1] guide,
    ):
        if gap_high.shape[0] != gap_low.shape[0] or guide.shape[0] != BINCP_GRAPH_GUIDE + 1:
            raise ValueError("the tables of gaps must have matching lengths")
        self.gap_high, self.gap_low, self.guide = gap_high, gap_low, guide
        self.flips.always = always
        self.flips.ones_high, self.flips.ones_low = ones_high, ones_low
        self.flips.n_certain = n_certain
        self.flips.n_gaps = <int32_t>gap_high.shape[0]
        self.flips.guide = &guide[0]
        if self.flips.n_gaps:
            self.flips.gap_high, self.flips.gap_low = &gap_high[0], &gap_low[0]


cdef int grow(bincp_graph_list *part, size_t room) noexcept nogil:
    cdef int64_t *at = NULL
    if room <= (<size_t>-1) // sizeof(int64_t):
        at = <int64_t *>realloc(part.at, room * sizeof(int64_t))
    if at == NULL:
        return -1
    part.at, part.room = at, room
    return 0


cdef void prepare(bincp_graph_drawn *drawn, int64_t *place) noexcept nogil:
    memset(drawn, 0, sizeof(bincp_graph_drawn))
    drawn.place = place
    drawn.node.grow = drawn.degree.grow = drawn.source.grow = drawn.target.grow = grow
    drawn.attribute.grow = drawn.attribute_end.grow = drawn.row.grow = grow


cdef void release(bincp_graph_drawn *drawn) noexcept nogil:
    free(drawn.node.at)
    free(drawn.degree.at)
    free(drawn.source.at)
    free(drawn.target.at)
    free(drawn.attribute.at)
    free(drawn.attribute_end.at)
    free(drawn.row.at)


cdef object taken(bincp_graph_list part):
    cdef int64_t[::1] view
    array = np.empty(part.size, np.int64)
    if part.size:
        view = array
        memcpy(&view[0], part.at, part.size * sizeof(int64_t))
    return array


cdef class Graph:
    """A checked graph: rows of its adjacency and its attributes, and its flips.

    Columns are sorted, and in range; the caller vouches for both, and for memory that nobody
    writes to.
    """

    cdef bincp_graph graph
    cdef const int64_t[::1] starts
    cdef const int64_t[::1] columns
    cdef const int64_t[::1] attribute_starts
    cdef const int64_t[::1] attribute_columns
    cdef Flips adjacency_flips
    cdef Flips attribute_flips

    def __init__(
        self, const int64_t[::1] starts, const int64_t[::1] columns,
        const int64_t[::1] attribute_starts, const int64_t[::1] attribute_columns,
        uint64_t n_attributes, Flips adjacency_flips not None, Flips attribute_flips not None,
        bint directed,
    ):
        if starts.shape[0] < 2 or attribute_starts.shape[0] != starts.shape[0]:
            raise ValueError("both matrices must have a row for each node")
        self.starts, self.columns = starts, columns
        self.attribute_starts, self.attribute_columns = attribute_starts, attribute_columns
        self.adjacency_flips, self.attribute_flips = adjacency_flips, attribute_flips
        self.graph.n_nodes = starts.shape[0] - 1
        self.graph.adjacency.start = &starts[0]
        self.graph.adjacency.column = &columns[0] if columns.shape[0] else NULL
        self.graph.adjacency.width = <uint64_t>self.graph.n_nodes
        self.graph.attributes.start = &attribute_starts[0]
        self.graph.attributes.column = &attribute_columns[0] if attribute_columns.shape[0] else NULL
        self.graph.attributes.width = n_attributes
        self.graph.adjacency_flips = adjacency_flips.flips
        self.graph.attribute_flips = attribute_flips.flips
        self.graph.directed = directed

    def draw(
        self, uint64_t seed, uint32_t phase, const int64_t[::1] ids, const int64_t[::1] draws,
        const int64_t[::1] targets, int extent, int64_t hops, bint degrees,
    ):
        """Return node, degree, source, target, attribute, attribute_end, and the end of each input.

        Nodes of all inputs stand one after the other; edges count them from 0.
        """
        cdef bincp_graph_drawn drawn
        cdef bincp_graph_key key
        cdef Py_ssize_t r, n = targets.shape[0]
        cdef int failed = 0
        if ids.shape[0] != n or draws.shape[0] != n:
            raise ValueError("`ids`, `draws` and `targets` must have one length")
        for r in range(n):
            if targets[r] < 0 or targets[r] >= self.graph.n_nodes:
                raise ValueError(f"targets must be nodes, got {targets[r]}")
        ends = np.zeros(n, np.int64)
        cdef int64_t[::1] end = ends
        key.seed, key.phase = seed, phase
        places = np.full(self.graph.n_nodes, -1, np.int64)
        cdef int64_t[::1] place = places
        prepare(&drawn, &place[0])
        try:
            with nogil:
                for r in range(n):
                    key.id, key.draw = <uint64_t>ids[r], <uint32_t>draws[r]
                    failed = bincp_graph_draw(
                        &self.graph, key, targets[r], <bincp_graph_extent>extent, hops, degrees,
                        &drawn)
                    if failed:
                        break
                    end[r] = <int64_t>drawn.node.size
            if failed:
                raise MemoryError
            return (
                taken(drawn.node), taken(drawn.degree), taken(drawn.source), taken(drawn.target),
                taken(drawn.attribute), taken(drawn.attribute_end), ends)
        finally:
            release(&drawn)
