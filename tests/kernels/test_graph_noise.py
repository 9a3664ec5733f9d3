"""Noise of graphs: every number, the law, and what fields share with whole graphs."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import torch

from bincp.noise._graph import (
    FIELD,
    IN_ORDER,
    WHOLE,
    Extent,
    check_adjacency,
    draw_graphs,
    gap_bounds,
    noisy_graph,
    read_rows,
)
from bincp.smoothing import GraphFlip, SparseFlip
from tests.kernels import graph_reference as reference

LAWS = [
    (0.0, 0.0),
    (0.0, 0.4),
    (0.05, 0.6),
    (0.4, 0.0),
    (1.0, 1.0),
    (1e-4, 0.3),
    (0.7, 2.0**-90),
]


def a_graph(n, degree, seed, *, directed=False):
    rng = np.random.default_rng(seed)
    dense = np.triu(rng.random((n, n)) < degree / n, 1)
    if directed:
        return (rng.random((n, n)) < degree / n) * (1 - np.eye(n, dtype=int))
    return (dense | dense.T).astype(int)


def kernel(dense, bits, adjacency=(0.0, 0.0), attributes=(0.0, 0.0), *, directed=False):
    scheme = GraphFlip(
        len(dense),
        bits.shape[1],
        adjacency=SparseFlip(*adjacency),
        attributes=SparseFlip(*attributes),
    )
    rows, columns = (
        read_rows("adjacency", dense, square=True),
        read_rows("attributes", bits, square=False),
    )
    return noisy_graph(rows, columns, scheme, directed=directed)


def drawn(graph, target, extent, *, seed=5, phase="calibration", id_=0, draw=0):
    one = [np.array([value], np.int64) for value in (id_, draw, target)]
    return draw_graphs(graph, seed, phase, *one, extent)


def edges_of(made):
    return {
        (int(made.nodes[a]), int(made.nodes[b]))
        for a, b in zip(made.sources, made.targets, strict=True)
    }


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_are_those_of_the_definition(law, directed):
    dense = a_graph(23, 3, 1, directed=directed)
    bits = np.random.default_rng(2).integers(0, 2, (23, 9))
    graph = kernel(dense, bits, law, law[::-1], directed=directed)
    rows = [set(np.flatnonzero(row).tolist()) for row in dense]
    seed = 2**63 + 17
    cases = [
        (target, hops, degrees)
        for target, hops, degrees in itertools.product([0, 11], [None, 0, 1, 2], [False, True])
        if hops is not None or degrees
    ]
    for place, (target, hops, degrees) in enumerate([*cases, (None, None, True)]):
        id_, draw, phase = 2**28 - 1 - place, 2**31 - 1 - place, place % 3
        noise = reference.Noise(seed, phase, id_, draw)
        order = range(23) if target is None else [target]
        nodes, degree, edges = reference.graph(
            noise, rows, list(order), *law, hops=hops, degrees=degrees, directed=directed
        )
        kind = IN_ORDER if target is None else WHOLE if hops is None else FIELD
        name = ["calibration", "test", "tuning"][phase]
        extent = Extent(kind, hops or 0, degrees)
        made = drawn(graph, target or 0, extent, seed=seed, phase=name, id_=id_, draw=draw)
        assert made.nodes.tolist() == nodes
        assert edges_of(made) == edges
        assert len(made.sources) == len(edges)
        if degrees:
            assert made.degrees.tolist() == [degree[node] for node in nodes]
        ends = [0, *made.attribute_ends]
        for row, node in enumerate(nodes):
            own = made.attributes[ends[row] : ends[row + 1]].tolist()
            expected = reference.attribute_row(
                noise, set(np.flatnonzero(bits[node]).tolist()), node, 9, *law[::-1]
            )
            assert own == expected


@pytest.mark.parametrize("p", [1e-9, 1e-4, 0.01, 0.3, 1.0, 2.0**-130, 1e-300])
def test_bounds_of_gaps_are_nearest_integers(p):
    bounds = gap_bounds(p)
    assert bounds == reference.gap_bounds(p)
    assert len(bounds) == {1e-9: 65536, 2.0**-130: 65536, 1e-300: 65536}.get(
        p, 1024 if p >= 0.01 and 16 / p <= 1024 else 2048 if p == 0.01 else 65536
    )


@pytest.mark.parametrize("p", [0.01, 0.3, 1e-4])
def test_gaps_are_within_the_charge_of_the_geometric_law(p):
    bounds, stays = [2**128, *gap_bounds(p)], 1 - Fraction(p)
    size = len(bounds) - 1
    distance, power = Fraction(0), Fraction(1)
    for g in range(size):
        following = Fraction(round(power * stays * 2**300), 2**300)
        drawn_mass = Fraction(bounds[g] - bounds[g + 1], 2**128)
        distance += abs(drawn_mass - (power - following))
        power = following
    distance += abs(Fraction(bounds[size], 2**128) - power)
    assert distance / 2 <= size * Fraction(1, 2**129)


@pytest.mark.slow
def test_the_law_of_explored_graphs_is_the_product_law():
    """Deferred decisions: all ordered coins of 4 nodes, for 12 graphs and each probability."""
    n, pairs = 4, list(itertools.combinations(range(4), 2))
    ordered = list(itertools.permutations(range(4), 2))
    plus, minus = Fraction(1, 5), Fraction(1, 3)
    rng = np.random.default_rng(0)
    for number in range(12):
        target = number % n
        ones = {pair for pair in pairs if rng.random() < 0.5}
        law = dict.fromkeys(itertools.product([0, 1], repeat=6), Fraction(0))
        for coins in itertools.product([0, 1], repeat=12):
            flips = dict(zip(ordered, coins, strict=True))
            mass = Fraction(1)
            for (a, b), flip in flips.items():
                p = minus if (min(a, b), max(a, b)) in ones else plus
                mass *= p if flip else 1 - p
            rows = [{u for u in range(n) if (min(u, w), max(u, w)) in ones} for w in range(n)]
            _, _, edges = reference.graph(_Coins(flips, rows), rows, [target], 0.5, 0.5)
            law[tuple(int(pair in edges) for pair in pairs)] += mass
        for outcome, mass in law.items():
            expected = Fraction(1)
            for pair, one in zip(pairs, outcome, strict=True):
                p = minus if pair in ones else plus
                expected *= p if one != (pair in ones) else 1 - p
            assert mass == expected


class _Coins:
    """Noise of which every ordered coin is given."""

    def __init__(self, flips, rows):
        self.flips, self.rows = flips, rows

    def deletes(self, kind, w, u, p):
        return bool(self.flips[w, u])

    def hits(self, kind, w, length, p):
        return {u for u in range(length) if u != w and u not in self.rows[w] and self.flips[w, u]}


def test_fields_are_parts_of_the_whole_noisy_graph():
    dense, bits = a_graph(60, 4, 3), np.random.default_rng(3).integers(0, 2, (60, 5))
    graph = kernel(dense, bits, (0.02, 0.4), (0.1, 0.5))
    for target, hops in itertools.product([0, 17, 59], [0, 1, 2, 3]):
        field = drawn(graph, target, Extent(FIELD, hops), id_=target, draw=hops)
        whole = drawn(graph, target, Extent(WHOLE), id_=target, draw=hops)
        size = len(field.nodes)
        assert field.nodes[0] == target
        assert field.nodes.tolist() == whole.nodes[:size].tolist()
        assert field.degrees.tolist() == whole.degrees[:size].tolist()
        inside = set(field.nodes.tolist())
        assert edges_of(field) == {e for e in edges_of(whole) if set(e) <= inside}
        assert field.attributes.tolist() == whole.attributes[: len(field.attributes)].tolist()


def test_draws_do_not_depend_on_the_batch():
    dense, bits = a_graph(40, 4, 4), np.random.default_rng(4).integers(0, 2, (40, 5))
    graph = kernel(dense, bits, (0.02, 0.4), (0.1, 0.5))
    targets = np.array([5, 5, 0, 39], np.int64)
    ids, draws = np.array([1, 1, 2, 3], np.int64), np.array([0, 1, 0, 0], np.int64)
    batch = draw_graphs(graph, 5, "test", ids, draws, targets, Extent(FIELD, 2))
    start, edges = 0, 0
    for row, end in enumerate(batch.ends):
        one = drawn(
            graph, targets[row], Extent(FIELD, 2), phase="test", id_=ids[row], draw=draws[row]
        )
        assert batch.nodes[start:end].tolist() == one.nodes.tolist()
        found = batch.sources[edges : edges + len(one.sources)] - start
        assert found.tolist() == one.sources.tolist()
        start, edges = end, edges + len(one.sources)
    assert edges == len(batch.sources)


def test_noisy_graphs_are_symmetric_without_loops_and_pairs_count_once():
    bits = np.zeros((5, 1), int)
    ring = np.roll(np.eye(5, dtype=int), 1, axis=1)
    everything = kernel(ring | ring.T, bits, (1.0, 0.0))
    assert edges_of(drawn(everything, 0, Extent(WHOLE))) == set(itertools.permutations(range(5), 2))
    clean = drawn(kernel(ring | ring.T, bits), 0, Extent(IN_ORDER))
    assert edges_of(clean) == {(a, b) for a in range(5) for b in range(5) if abs(a - b) in (1, 4)}


def test_messages_go_from_source_to_target():
    bits = np.zeros((3, 1), int)
    into = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])  # row w: sources of the edges 0 -> 1 -> 2
    graph = kernel(into, bits, directed=True)
    fields = [sorted(drawn(graph, w, Extent(FIELD, 2)).nodes.tolist()) for w in range(3)]
    assert fields == [[0], [0, 1], [0, 1, 2]]
    assert edges_of(drawn(graph, 2, Extent(FIELD, 2))) == {(0, 1), (1, 2)}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_all_forms_of_one_matrix_are_one():
    unsorted = scipy.sparse.csr_matrix(
        (np.array([1, 1, 1, 1]), np.array([2, 1, 0, 0]), np.array([0, 2, 3, 4])), shape=(3, 3)
    )
    zero = scipy.sparse.coo_matrix(([1, 1, 1, 1, 0], ([0, 0, 1, 2, 1], [2, 1, 0, 0, 2])), (3, 3))
    before = unsorted.copy()
    dense = unsorted.toarray()
    forms = [unsorted, zero, zero.tocsc(), dense, dense.tolist(), torch.tensor(dense)]
    forms += [torch.tensor(dense).to_sparse(), torch.tensor(dense).to_sparse_csr()]
    found = [read_rows("adjacency", form, square=True) for form in forms]
    assert all(rows.starts.tolist() == [0, 2, 3, 4] for rows in found)
    assert all(rows.columns.tolist() == [1, 2, 0, 0] for rows in found)
    assert unsorted.indices.tolist() == before.indices.tolist()
    assert unsorted.data.tolist() == before.data.tolist()
    assert unsorted.has_sorted_indices == before.has_sorted_indices


def test_graphs_that_are_none_are_refused():
    one_way = np.zeros((6, 6))
    one_way[0, 5] = 1
    with pytest.raises(ValueError, match=r"must be symmetric, got \(0, 5\) without \(5, 0\)"):
        check_adjacency(read_rows("adjacency", one_way, square=True), directed=False)
    loop = np.zeros((5, 5))
    loop[3, 3] = 1
    with pytest.raises(ValueError, match="must have no self-loops, got one at node 3"):
        check_adjacency(read_rows("adjacency", loop, square=True), directed=False)
    weighted = np.zeros((5, 5))
    weighted[1, 4] = 2
    with pytest.raises(ValueError, match=r"must be zeros and ones, got 2.0 at \(1, 4\)"):
        read_rows("adjacency", weighted, square=True)
    twice = scipy.sparse.coo_matrix(([1.0, 1.0], ([1, 1], [4, 4])), (5, 5))
    with pytest.raises(ValueError, match=r"got 2.0 at \(1, 4\)"):
        read_rows("adjacency", twice, square=True)
    with pytest.raises(ValueError, match="must be zeros and ones, got nan"):
        read_rows("adjacency", np.full((2, 2), np.nan), square=True)
    with pytest.raises(ValueError, match="must be square"):
        read_rows("adjacency", np.zeros((2, 3)), square=True)
