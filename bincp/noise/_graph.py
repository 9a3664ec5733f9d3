"""Noise of sparse graphs: checked graphs, the thresholds of flips, and what a draw brings.

The law and every number are those of csrc/noise/graph.h. Thresholds are integers, made here.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from bincp._core import _graph_noise
from bincp._utils.arrays import as_array, on_host
from bincp.noise._keys import PHASES, IntArray, Phase
from bincp.smoothing import GraphFlip, SparseFlip
from bincp.smoothing._graph import MAX_NODES

FIELD, WHOLE, IN_ORDER = _graph_noise.FIELD, _graph_noise.WHOLE, _graph_noise.IN_ORDER

_LEAST_GAPS, _MOST_GAPS = 1024, 65536
_BITS = 128
_GUARD = 128  # more bits while powers are taken
_WORD = 2**64 - 1

MAX_GRAPH_ID = MAX_NODES


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a binary matrix: where each starts, and its columns in increasing order."""

    starts: IntArray
    columns: IntArray
    width: int

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class Drawn:
    """The noisy fields of several inputs, one after the other; edges count their nodes from 0."""

    nodes: IntArray
    degrees: IntArray
    sources: IntArray
    targets: IntArray
    attributes: IntArray  # columns of the ones, node after node
    attribute_ends: IntArray
    ends: IntArray  # of the nodes of each input


@dataclass(frozen=True)
class Extent:
    """How much of the noisy graph is drawn."""

    kind: int
    hops: int = 0
    degrees: bool = True


def noisy_graph(
    adjacency: Rows, attributes: Rows, smoothing: GraphFlip, *, directed: bool
) -> _graph_noise.Graph:
    """Return a graph that draws its noise."""
    return _graph_noise.Graph(
        adjacency.starts,
        adjacency.columns,
        attributes.starts,
        attributes.columns,
        attributes.width,
        thresholds(smoothing.adjacency),
        thresholds(smoothing.attributes),
        directed,
    )


def draw_graphs(
    graph: _graph_noise.Graph,
    seed: int,
    phase: Phase,
    ids: IntArray,
    draws: IntArray,
    targets: IntArray,
    extent: Extent,
) -> Drawn:
    """Return the noisy fields of some draws of some targets."""
    made = graph.draw(
        seed,
        PHASES.index(phase),
        ids,
        draws,
        targets,
        extent.kind,
        extent.hops,
        extent.degrees,
    )
    return Drawn(*made)


@lru_cache(64)
def thresholds(flips: SparseFlip) -> _graph_noise.Flips:
    """Return the thresholds of the numbers of a scheme."""
    ones = math.floor(Fraction(flips.p_minus) * 2**_BITS)
    gaps = gap_bounds(flips.p_plus)
    certain = sum(1 for bound in gaps if bound == 2**_BITS)
    kept = [min(bound, 2**_BITS - 1) for bound in gaps]
    steps = np.array([bound >> (_BITS - 12) for bound in kept], np.int64)
    # `guide[i]` bounds lie above i 2^116: those whose leading bits are i or more, but for equality.
    exact = [bound & (2 ** (_BITS - 12) - 1) == 0 for bound in kept]
    leading = steps - np.array(exact, np.int64)
    guide = np.searchsorted(-leading, -np.arange(_graph_noise.GUIDE + 1), side="right")
    always = flips.p_minus == 1
    return _graph_noise.Flips(
        always,
        0 if always else ones >> 64,
        0 if always else ones & _WORD,
        certain,
        np.array([bound >> 64 for bound in kept], np.uint64),
        np.array([bound & _WORD for bound in kept], np.uint64),
        guide.astype(np.int32),
    )


def gap_bounds(p_plus: float) -> list[int]:
    """Return the nearest integers to 2^128 (1 - p_plus)^g for g = 1, ..., M; none for p_plus = 0.

    M is the smallest power of two that is at least min(16 / p_plus, 65536), and at least 1024.
    """
    if p_plus == 0:
        return []
    size = _LEAST_GAPS
    while size < _MOST_GAPS and size * Fraction(p_plus) < 16:
        size *= 2
    step = math.floor((1 - Fraction(p_plus)) * 2 ** (_BITS + _GUARD))
    power, bounds = 2 ** (_BITS + _GUARD), []
    for _ in range(size):
        power = power * step >> (_BITS + _GUARD)
        bounds.append((power + 2 ** (_GUARD - 1)) >> _GUARD)
    return bounds


def read_rows(name: str, matrix: Any, *, square: bool) -> Rows:
    """Return the rows of a binary matrix, dense or sparse, from a copy of it."""
    sparse = _as_coo(name, matrix)
    if sparse is not None:
        shape, row, column, values = sparse
    else:
        shape, row, column, values = _of_dense(name, matrix)
    if square and shape[0] != shape[1]:
        raise ValueError(f"`{name}` must be square, got shape {shape}")
    return _binary(name, shape, row, column, values)


def _of_dense(name: str, matrix: Any) -> Any:
    array = as_array(name, on_host(name, matrix))
    if array.ndim != 2:
        raise TypeError(
            f"`{name}` must be a matrix of zeros and ones, dense or sparse, "
            f"got {type(matrix).__name__} of shape {array.shape} and dtype {array.dtype}"
        )
    _check_real(name, array)
    row, column = np.nonzero(array)  # NaN is not zero
    return array.shape, row, column, array[row, column]


def _as_coo(name: str, matrix: Any) -> Any:
    """Return shape, rows, columns and values of a sparse matrix of SciPy or torch, else None."""
    if hasattr(matrix, "tocoo") and hasattr(matrix, "nnz"):
        coo = matrix.tocoo()
        if len(coo.shape) != 2:
            raise TypeError(f"`{name}` must be a matrix, got shape {coo.shape}")
        found = coo.shape, coo.row, coo.col, coo.data
    elif str(getattr(matrix, "layout", "")).startswith("torch.sparse_"):
        coo = on_host(name, matrix).to_sparse_coo()
        if coo.sparse_dim() != 2 or coo.ndim != 2:
            raise TypeError(f"`{name}` must be a matrix, got shape {tuple(coo.shape)}")
        places = coo._indices().numpy()
        found = tuple(coo.shape), places[0], places[1], as_array(name, coo._values())
    else:
        return None
    _check_real(name, found[-1])
    return found


def _check_real(name: str, values: Any) -> None:
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"`{name}` must be a matrix of zeros and ones, dense or sparse, "
            f"got values of dtype {values.dtype}"
        )


def _binary(name: str, shape: Any, row: Any, column: Any, values: Any) -> Rows:
    """Sum duplicates, drop zeros, sort, and refuse what is not one."""
    row, column = (np.array(part, dtype=np.int64) for part in (row, column))
    values = np.array(values, dtype=np.float64)
    for part, size in ((row, shape[0]), (column, shape[1])):
        bad = (part < 0) | (part >= size)
        if bad.any():
            raise ValueError(f"`{name}`: entry {part[bad][0]} for {size} rows or columns")
    order = np.lexsort((column, row))
    row, column, values = row[order], column[order], values[order]
    if len(row):
        new = np.r_[True, (np.diff(row) != 0) | (np.diff(column) != 0)]
        values = np.add.reduceat(values, np.flatnonzero(new))
        row, column = row[new], column[new]
        kept = values != 0
        row, column, values = row[kept], column[kept], values[kept]
    bad = values != 1
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"{name} must be zeros and ones, got {float(values[where])} "
            f"at ({int(row[where])}, {int(column[where])})"
        )
    starts = np.searchsorted(row, np.arange(shape[0] + 1)).astype(np.int64)
    return Rows(starts, np.ascontiguousarray(column), int(shape[1]))


def check_adjacency(rows: Rows, *, directed: bool) -> None:
    """Refuse self-loops, and an undirected graph that is not symmetric."""
    row = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
    loops = row == rows.columns
    if loops.any():
        raise ValueError(f"adjacency must have no self-loops, got one at node {row[loops][0]}")
    if directed:
        return
    n = len(rows)
    there, back = row * n + rows.columns, np.sort(rows.columns * n + row)
    missing = there[~np.isin(there, back, assume_unique=True)]
    if len(missing):
        a, b = divmod(int(missing[0]), n)
        raise ValueError(f"adjacency must be symmetric, got ({a}, {b}) without ({b}, {a})")
