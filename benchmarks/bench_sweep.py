"""Sets of real labels against loops of NumPy: 10,000 inputs with 64 draws each."""

import time

import numpy as np
import pytest

from bincp.regression import IntervalSets

N, M, K = 10_000, 64, 30
LEAST_RATIO = 20


def ends():
    left = np.random.default_rng(0).normal(size=(N, M))
    return left, left + 2


def by_events(left, right):
    """Walk over the ends of each input in their order, as one would without the library."""
    pieces = []
    kinds = np.repeat([1, -1], M)
    for row in np.concatenate([left, right], axis=1):
        order = np.lexsort((-kinds, row))  # starts before ends at ties
        inside = np.cumsum(kinds[order]) >= K
        before = np.concatenate([[False], inside[:-1]])
        sorted_ends = row[order]
        pieces.append((sorted_ends[inside & ~before], sorted_ends[~inside & before]))
    return pieces


def by_ranks(left, right):
    """Take the union of [left_(i), right_(i - k + 1)] of sorted ends, the lemma of the kernel."""
    pieces = []
    for one, other in zip(left, right, strict=True):
        starts, stops = np.sort(one)[K - 1 :], np.sort(other)[: M - K + 1]
        there = starts <= stops
        starts, stops = starts[there], stops[there]
        first = np.append(True, starts[1:] > stops[:-1])[: len(starts)]
        pieces.append((starts[first], stops[np.append(first[1:], True)[: len(stops)]]))
    return pieces


def compiled(left, right):
    return IntervalSets.from_ends(left, right, K)


def as_pieces(sets):
    return [tuple(sets[i].T) for i in range(len(sets))]


@pytest.mark.benchmark(group="sweep of 10,000 inputs x 64 draws")
@pytest.mark.parametrize("sweep", [compiled, by_events, by_ranks])
def test_sweep(benchmark, sweep):
    found = benchmark(sweep, *ends())
    wanted = as_pieces(compiled(*ends()))
    for one, other in zip(as_pieces(found) if sweep is compiled else found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_compiled_sweep_is_many_times_faster():
    given = ends()

    def seconds(sweep, repeats):
        taken = []
        for _ in range(repeats):
            start = time.perf_counter()
            sweep(*given)
            taken.append(time.perf_counter() - start)
        return min(taken)

    ratio = seconds(by_events, 2) / seconds(compiled, 10)
    assert ratio >= LEAST_RATIO, ratio
