"""Metrics of prediction sets against a count by hand."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bincp.metrics import (
    average_set_size,
    class_conditional_coverage,
    coverage,
    coverage_interval,
    empty_rate,
    singleton_rate,
    size_stratified_coverage,
    worst_slice_coverage,
)


@given(st.integers(1, 8), st.integers(1, 5), st.data())
def test_metrics_count_points(n, K, data):
    bits = st.lists(st.booleans(), min_size=K, max_size=K)
    rows = data.draw(st.lists(bits, min_size=n, max_size=n))
    labels = data.draw(st.lists(st.integers(0, K - 1), min_size=n, max_size=n))
    sizes = [sum(row) for row in rows]
    assert coverage(rows, labels) == sum(row[y] for row, y in zip(rows, labels, strict=True)) / n
    assert average_set_size(rows) == pytest.approx(sum(sizes) / n, rel=1e-15)
    assert singleton_rate(rows) == sizes.count(1) / n
    assert empty_rate(rows) == sizes.count(0) / n
    by_class = class_conditional_coverage(rows, labels)
    assert by_class.shape == (K,)
    for k in range(K):
        hits = [row[k] for row, y in zip(rows, labels, strict=True) if y == k]
        assert math.isnan(by_class[k]) if not hits else by_class[k] == sum(hits) / len(hits)
    by_size = size_stratified_coverage(rows, labels)
    assert by_size.shape == (K + 1,)
    for size in range(K + 1):
        hits = [row[y] for row, y in zip(rows, labels, strict=True) if sum(row) == size]
        assert math.isnan(by_size[size]) if not hits else by_size[size] == sum(hits) / len(hits)


def test_absent_class_is_nan_and_k_comes_from_the_sets():
    by_class = class_conditional_coverage(np.ones((3, 3), bool), [0, 0, 1])
    np.testing.assert_array_equal(by_class, [1.0, 1.0, np.nan])


@pytest.mark.parametrize("metric", [coverage, class_conditional_coverage, size_stratified_coverage])
def test_labels_are_checked(metric):
    sets = np.ones((3, 3), bool)
    for labels, error, message in (
        ([-1, 0, 1], ValueError, r"`labels` must be in \[0, 2\], got -1 at index \(0,\)"),
        ([0, 3, 1], ValueError, r"got 3 at index \(1,\)"),
        (np.array([0, 255, 1], np.uint8), ValueError, "got 255"),
        ([0.0, 1.0, 2.0], TypeError, "`labels` must be integers, got dtype float64"),
        ([math.nan, 0, 1], TypeError, "`labels` must be integers"),
        ([True, False, True], TypeError, "`labels` must be integers, got dtype bool"),
        ([0, 1], ValueError, r"`labels` must have shape \(3,\), got \(2,\)"),
        ([[0], [1], [2]], ValueError, r"`labels` must have shape \(3,\), got \(3, 1\)"),
    ):
        with pytest.raises(error, match=message):
            metric(sets, labels)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_labels_of_any_integer_type(dtype):
    sets = np.eye(3, dtype=bool)
    assert coverage(sets, np.array([0, 1, 2], dtype)) == 1.0
    np.testing.assert_array_equal(
        class_conditional_coverage(sets, np.array([0, 1, 1], dtype)), [1.0, 0.5, np.nan]
    )


@pytest.mark.parametrize("metric", [average_set_size, singleton_rate, empty_rate])
def test_sets_are_checked(metric):
    with pytest.raises(TypeError, match="`sets` must be boolean, got dtype int64"):
        metric(np.ones((3, 3), int))
    for shape in ((3,), (0, 3), (3, 0), (1, 2, 3)):
        with pytest.raises(ValueError, match=r"`sets` must have shape \(n, K\)"):
            metric(np.ones(shape, bool))


# ---- worst slice -------------------------------------------------------------------------------


def least_coverage(position, covered, least):
    """Return the smallest coverage of all slabs, tried one by one."""
    cuts = np.unique(position)
    inside = [(a <= position) & (position <= b) for a in cuts for b in cuts if a <= b]
    return min(covered[i].mean() for i in inside if i.sum() >= least)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=14),
    st.sampled_from(["0.1", "1/3", "0.5", "1"]),
)
@settings(deadline=None)
def test_the_worst_slab_of_one_direction_is_found_ties_included(points, delta):
    x = np.array([[float(value)] for value, _ in points])
    covered = np.array([bit for _, bit in points])
    result = worst_slice_coverage(
        covered[:, None], np.zeros(len(x), int), x, delta=delta, n_directions=1, held_out=0
    )
    least = math.ceil(Fraction(delta) * len(x))
    assert result == least_coverage(x[:, 0], covered, least)


def test_held_out_points_undo_the_bias_of_the_search():
    rng = np.random.default_rng(0)
    covered, x = rng.random((2000, 1)) < 0.9, rng.standard_normal((2000, 5))
    labels = np.zeros(2000, int)
    biased = worst_slice_coverage(covered, labels, x, n_directions=100, held_out=0)
    honest = worst_slice_coverage(covered, labels, x, n_directions=100)
    assert biased < 0.85 < honest
    assert honest == worst_slice_coverage(covered, labels, x, n_directions=100)  # seed 0
    x[:, 0] = np.where(covered[:, 0], x[:, 0], x[:, 0] + 10)  # all misses on one side
    assert worst_slice_coverage(covered, labels, x, n_directions=500) < 0.3


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**500, 2.0**1021])
def test_the_worst_slab_is_the_same_on_every_scale(scale):
    rng = np.random.default_rng(5)
    features = rng.uniform(-4, 4, (200, 60))
    sets, labels = rng.random((200, 3)) < 0.5, rng.integers(0, 3, 200)
    wanted = worst_slice_coverage(sets, labels, features, n_directions=50)
    assert 0 <= wanted <= 1
    found = worst_slice_coverage(sets, labels, features * scale, n_directions=50)
    assert found == wanted


def test_worst_slice_checks_its_arguments():
    sets, labels, x = np.ones((4, 2), bool), [0, 1, 0, 1], np.zeros((4, 3))
    assert worst_slice_coverage(sets, labels, x) == 1.0  # one slab holds all, tied
    for bad, error, message in (
        (x[:3], ValueError, r"`features` must have shape \(4, d\), d >= 1, got \(3, 3\)"),
        (x[:, 0], ValueError, "`features` must have shape"),
        (x + math.nan, ValueError, r"`features` must be finite, got nan at index \(0, 0\)"),
        (x.astype(bool), TypeError, "`features` must be real numbers, got dtype bool"),
    ):
        with pytest.raises(error, match=message):
            worst_slice_coverage(sets, labels, bad)
    for options, message in (
        ({"delta": 0}, "`delta` must be in"),
        ({"delta": 1.5}, "`delta` must be in"),
        ({"held_out": 1}, "`held_out` must be in"),
        ({"n_directions": 0}, "`n_directions` must be at least 1"),
        ({"seed": -1}, "`seed` must be at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            worst_slice_coverage(sets, labels, x, **options)


@pytest.mark.parametrize("confidence", ["0.95", 0.5, "0.999"])
@pytest.mark.parametrize(("n", "hits"), [(1, 0), (1, 1), (40, 0), (40, 37), (40, 40), (3000, 2711)])
def test_the_ends_of_an_interval_are_where_the_tails_are_half_the_error(n, hits, confidence):
    """At each end the count, or one beyond it, has half of 1 - confidence: the exact definition."""
    sets = np.ones((n, 2), bool)
    sets[hits:, 1] = False
    low, high = coverage_interval(sets, np.ones(n, int), confidence=confidence)
    half = (1 - mpmath.mpf(str(confidence))) / 2
    assert 0 <= low < high <= 1

    def upper_tail(p):  # P[Bin(n, p) >= hits]
        return mpmath.betainc(hits, n - hits + 1, 0, p, regularized=True)

    def lower_tail(p):  # P[Bin(n, p) <= hits]
        return 1 - mpmath.betainc(hits + 1, n - hits, 0, p, regularized=True)

    if hits:
        assert upper_tail(mpmath.mpf(low)) <= half * (1 + mpmath.mpf("1e-12"))
        assert upper_tail(mpmath.mpf(low) * (1 + mpmath.mpf("1e-9"))) > half
    else:
        assert low == 0
    if hits < n:
        assert lower_tail(mpmath.mpf(high)) <= half * (1 + mpmath.mpf("1e-12"))
        assert lower_tail(mpmath.mpf(high) * (1 - mpmath.mpf("1e-9"))) > half
    else:
        assert high == 1


def test_intervals_refuse_what_is_no_confidence():
    sets = np.ones((3, 3), bool)
    for confidence in (0, 1, "95%", 95):
        with pytest.raises(ValueError, match="`confidence` must be"):
            coverage_interval(sets, [0, 1, 2], confidence=confidence)
    with pytest.raises(ValueError, match="`labels` must be in"):
        coverage_interval(sets, [0, 1, 3])
