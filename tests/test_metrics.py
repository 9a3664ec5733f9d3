"""Metrics of prediction sets against a count by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bincp.metrics import (
    average_set_size,
    class_conditional_coverage,
    coverage,
    empty_rate,
    singleton_rate,
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


def test_absent_class_is_nan_and_k_comes_from_the_sets_b050():
    by_class = class_conditional_coverage(np.ones((3, 3), bool), [0, 0, 1])
    np.testing.assert_array_equal(by_class, [1.0, 1.0, np.nan])


@pytest.mark.parametrize("metric", [coverage, class_conditional_coverage])
def test_labels_are_checked_b063(metric):
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
def test_labels_of_any_integer_type_b065(dtype):
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
