"""Unions of intervals: brute force in fractions, golden sets, ties, infinite ends, bad input."""

import copy
import math
import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bincp.metrics import (
    average_width,
    coverage,
    coverage_interval,
    empty_rate,
    unbounded_rate,
    worst_slice_coverage,
)
from bincp.regression import IntervalSets
from bincp.regression._scores import SCORES, ends_of, parts_of
from support import golden

INF = math.inf


def brute_force(intervals, k):
    """Return the maximal closed pieces of the reals that lie in at least k of the intervals.

    The depth is counted at each end and between each two of them, so nothing is sorted by kind.
    """
    ends = sorted({end for pair in intervals for end in pair if abs(end) != INF})
    if not ends:
        return [(-INF, INF)] if sum(a < b for a, b in intervals) >= k else []
    cells = [(ends[0] - 1, (-INF, ends[0]))]  # a number inside, and the closure of the cell
    for a, b in zip(ends, [*ends[1:], None], strict=True):
        cells.append((a, (a, a)))
        cells.append((a + 1, (a, INF)) if b is None else ((a + b) / 2, (a, b)))
    pieces = []
    for inside, (a, b) in cells:
        if sum(low <= inside <= high for low, high in intervals) < k:
            continue
        if pieces and pieces[-1][1] == a:
            pieces[-1] = (pieces[-1][0], b)
        else:
            pieces.append((a, b))
    return pieces


def pieces_of(sets, i):
    return [tuple(piece) for piece in sets[i].tolist()]


def random_ends(rng, n, m):
    """Return ends with many ties, crossed ones, points, and infinite ones on either side."""
    left = rng.integers(-8, 9, (n, m)) / 4
    right = left + rng.choice([-0.5, 0.0, 0.25, 1.0, 2.5], (n, m))
    left = np.where(rng.random((n, m)) < 0.08, rng.choice([-INF, INF], (n, m)), left)
    right = np.where(rng.random((n, m)) < 0.08, rng.choice([-INF, INF], (n, m)), right)
    return left, right


def test_ten_thousand_sets_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    seen = {"empty": 0, "point": 0, "several": 0, "line": 0}
    for m in (1, 2, 3, 5, 8):
        for k in range(1, m + 1):
            n = 2000 // m
            left, right = random_ends(rng, n, m)
            sets = IntervalSets.from_ends(left, right, k)
            assert sets.n_pieces.max() <= m - k + 1
            for i in range(n):
                exact = [
                    (Fraction(a) if abs(a) != INF else a, Fraction(b) if abs(b) != INF else b)
                    for a, b in zip(left[i].tolist(), right[i].tolist(), strict=True)
                ]
                wanted = brute_force(exact, k)
                assert pieces_of(sets, i) == [(float(a), float(b)) for a, b in wanted]
                seen["empty"] += not wanted
                seen["point"] += any(a == b for a, b in wanted)
                seen["several"] += len(wanted) > 1
                seen["line"] += wanted == [(-INF, INF)]
    assert min(seen.values()) > 10, seen


@pytest.mark.parametrize("rows", ["rows", "edge"])
def test_golden_sets(rows):
    cases = golden("regression")[rows]
    assert cases
    for kind, draws, tau, k, wanted in cases:
        score = SCORES[kind.replace("normalised", "normalized")]
        numbers = np.array([[number(one) for one in draw] for draw in draws])  # (m', q)
        given_as = numbers.T[None] if len(score.numbers) > 1 else numbers.T
        left, right = ends_of(parts_of("predictions", given_as, score), number(tau))
        sets = IntervalSets.from_ends(left, right, k)
        assert pieces_of(sets, 0) == [(number(a), number(b)) for a, b in wanted], (kind, draws)


def number(text):
    return float(text) if "inf" in text else float(Fraction(text))


def test_k_of_0_is_the_line_and_of_m_plus_1_the_empty_set():
    ends = [[0.0, 5.0]], [[1.0, 4.0]]
    assert pieces_of(IntervalSets.from_ends(*ends, 0), 0) == [(-INF, INF)]
    assert pieces_of(IntervalSets.from_ends(*ends, 3), 0) == []


def test_touching_intervals_share_the_point_where_they_touch():
    left, right = [[0.0, 1.0]], [[1.0, 2.0]]
    assert pieces_of(IntervalSets.from_ends(left, right, 1), 0) == [(0, 2)]
    assert pieces_of(IntervalSets.from_ends(left, right, 2), 0) == [(1, 1)]


def test_intervals_of_neighbouring_doubles_do_not_touch():
    above = math.nextafter(1.0, 2)
    sets = IntervalSets.from_ends([[0.0, above]], [[1.0, 2.0]], 1)
    assert pieces_of(sets, 0) == [(0, 1), (above, 2)]


def test_crossed_ends_are_empty_and_never_swapped():
    sets = IntervalSets.from_ends([[2.0625]], [[2.0]], 1)
    assert pieces_of(sets, 0) == []
    assert sets.widths().tolist() == [0]
    assert not sets.contains([[2.0, 2.03125, 2.0625]]).any()


def test_an_end_at_infinity_alone_holds_no_real_number():
    for end in (INF, -INF):
        assert pieces_of(IntervalSets.from_ends([[end, 0.0]], [[end, 1.0]], 1), 0) == [(0, 1)]


def test_the_ends_given_are_not_written_to():
    left, right = np.array([[3.0, 1.0]]), np.array([[2.0, 4.0]])
    IntervalSets.from_ends(left, right, 1)
    assert left.tolist() == [[3, 1]]
    assert right.tolist() == [[2, 4]]


intervals = st.lists(
    st.tuples(*[st.integers(-6, 6).map(float) | st.sampled_from([INF, -INF])] * 2),
    min_size=2,
    max_size=5,
)


@given(st.lists(intervals, min_size=1, max_size=4), st.integers(0, 5), st.integers(0, 5))
def test_intersections_and_hulls_hold_what_they_should(rows, j, k):
    m = max(map(len, rows))
    full = [[*row, *[(1.0, 0.0)] * (m - len(row))] for row in rows]
    left, right = ([[pair[side] for pair in row] for row in full] for side in (0, 1))
    one = IntervalSets.from_ends(left, right, min(j, m + 1))
    other = IntervalSets.from_ends(left[::-1], right[::-1], min(k, m + 1))
    both, hulls = one.intersection(other), one.hulls()
    y = np.tile(np.arange(-13, 14) / 2, (len(rows), 1))
    assert (both.contains(y) == (one.contains(y) & other.contains(y))).all()
    assert (hulls.n_pieces == np.minimum(one.n_pieces, 1)).all()
    for i, held in enumerate(one.contains(y)):
        if held.any():
            assert hulls[i][0, 0] <= y[i][held].min()
            assert hulls[i][0, 1] >= y[i][held].max()
            assert hulls[i][0].tolist() == [one[i][0, 0], one[i][-1, 1]]
    assert (both.widths() <= one.widths()).all()
    checked = IntervalSets(both.offsets, both.left, both.right)  # by the rules of the constructor
    assert repr(checked) == repr(both)


def test_an_intersection_takes_memory_for_the_pieces_that_there_are():
    """One set of many pieces among many sets of one."""
    n, many = 2000, 4000
    offsets = np.append(0, many + np.arange(n))
    left = np.concatenate([np.arange(float(many)), np.zeros(n - 1)])
    one = IntervalSets(offsets, left, left + 0.5)
    shifted = IntervalSets(offsets, left + 0.25, left + 0.75)
    tracemalloc.start()
    both = one.intersection(shifted)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert both.n_pieces.tolist() == one.n_pieces.tolist()
    assert (both.left == left + 0.25).all()
    assert (both.right == left + 0.5).all()
    assert peak < 50 * left.nbytes  # with a row of `many` for each set, 4000 times as much


def test_a_mean_width_may_have_a_sum_beyond_the_doubles():
    left, right = [-1e308, 0.0, -1e308], [7e307, 5e-324, 7e307]
    sets = IntervalSets([0, 1, 2, 3], left, right)
    exact = sum(map(Fraction, right)) - sum(map(Fraction, left))
    assert Fraction(average_width(sets)) == pytest.approx(exact / 3, rel=1e-15)
    assert unbounded_rate(sets) == 0
    least = IntervalSets([0, 1, 2], [0.0, 0.0], [5e-324, 15e-324])
    assert average_width(least) == 10e-324


def test_metrics():
    sets = IntervalSets.from_ends([[0.0, 4.0], [1.0, 3.0]], [[1.0, 6.0], [0.0, 2.0]], 1)
    assert sets.widths().tolist() == [3, 0]
    assert average_width(sets) == 1.5
    assert coverage(sets, [5.0, 0.5]) == 0.5
    assert empty_rate(sets) == 0.5
    assert average_width(sets.hulls()) == 3
    assert unbounded_rate(sets) == 0
    half = IntervalSets.from_ends([[0.0], [1.0]], [[INF], [2.0]], 1)
    assert (average_width(half), unbounded_rate(half)) == (INF, 0.5)
    assert average_width(IntervalSets.lines(2)) == INF


def test_confidence_and_the_worst_slab_take_sets_of_real_labels():
    x = np.random.default_rng(0).normal(size=(400, 2))
    sets = IntervalSets.from_ends(x[:, :1] - 1, x[:, :1] + 1, 1)
    labels = x[:, 0] + np.where(x[:, 1] > 1, 2.0, 0.5)
    as_classes = np.stack([np.abs(labels - x[:, 0]) <= 1, np.zeros(400, bool)], axis=1)
    none = np.zeros(400, int)
    assert coverage_interval(sets, labels) == coverage_interval(as_classes, none)
    found = worst_slice_coverage(sets, labels, x, n_directions=50)
    assert found == worst_slice_coverage(as_classes, none, x, n_directions=50) < 0.5


@pytest.mark.parametrize(
    "metric", [average_width, empty_rate, unbounded_rate, lambda s: coverage(s, [])]
)
def test_no_sets_have_no_average(metric):
    with pytest.raises(ValueError, match="`sets` must hold at least one set"):
        metric(IntervalSets.lines(0))


def test_metrics_refuse_what_does_not_fit():
    sets = IntervalSets.lines(2)
    with pytest.raises(ValueError, match=r"`labels` must have shape \(2,\), got \(2, 2\)"):
        coverage(sets, np.zeros((2, 2)))
    with pytest.raises(TypeError, match="`sets` must be IntervalSets, got list"):
        average_width([[True]])
    with pytest.raises(TypeError, match="`sets` must be IntervalSets, got list"):
        unbounded_rate([[True]])
    with pytest.raises(ValueError, match=r"`labels` must have shape \(2,\), got \(\)"):
        coverage_interval(sets, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[math.nan]], [[1.0]], 1), r"`left` must not be NaN, got one at index \(0, 0\)"),
        (([[0.0]], [[math.nan]], 1), r"`right` must not be NaN, got one at index \(0, 0\)"),
        (([[0.0]], [[1.0, 2.0]], 1), r"one shape \(n, m\).*\(1, 1\) and \(1, 2\)"),
        (([0.0], [1.0], 1), r"one shape \(n, m\)"),
        ((np.empty((0, 3)), np.empty((0, 3)), 1), "n, m >= 1"),
        (([[0]], [[2**53 + 1]], 1), r"`right` must be doubles, got 9007199254740993 at index"),
        (([[0.0]], [[1.0]], 3), r"`min_count` must be in \[0, 2\], got 3"),
        (([[0.0]], [[1.0]], -1), r"`min_count` must be in \[0, 2\], got -1"),
    ],
)
def test_bad_ends_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        IntervalSets.from_ends(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0.0], [math.nan]), "`right` must not be NaN"),
        (([0, 1], [2.0], [1.0]), r"hold a real number, got \[2.0, 1.0\]"),
        (([0, 1], [INF], [INF]), "hold a real number"),
        (([0, 2], [0.0, 1.0], [1.0, 2.0]), r"ascend and do not meet, got others at index \(1,\)"),
        (([0, 1, 0, 2], [0.0, 1.0], [1.0, 2.0]), "`offsets` must not decrease"),
        (([0, 1], [0.0, 3.0], [1.0, 4.0]), "go from 0 to 2"),
        (([1, 2], [0.0, 3.0], [1.0, 4.0]), "go from 0 to 2"),
        (([0, 1], [0.0], [1.0, 2.0]), "must have one shape"),
    ],
)
def test_sets_that_are_none_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        IntervalSets(*arguments)


def test_there_may_be_no_sets():
    none = IntervalSets.lines(0)
    assert len(none.intersection(none)) == len(none.hulls()) == len(none.widths()) == 0
    assert none.contains(np.empty(0)).shape == (0,)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="`left` must be real numbers, got dtype bool"):
        IntervalSets.from_ends([[True]], [[1.0]], 1)
    with pytest.raises(TypeError, match=r"`min_count` must be an integer, got 1\.0"):
        IntervalSets.from_ends([[0.0]], [[1.0]], 1.0)
    with pytest.raises(TypeError, match="`other` must be IntervalSets, got list"):
        IntervalSets.lines(1).intersection([])
    with pytest.raises(ValueError, match="`other` must have 1 sets, got 2"):
        IntervalSets.lines(1).intersection(IntervalSets.lines(2))
    with pytest.raises(IndexError):
        IntervalSets.lines(1)[1]


def test_labels_are_finite_and_as_many_as_the_sets():
    sets = IntervalSets.lines(2)
    assert sets.contains(0.5).tolist() == [True, True]
    for y in (math.nan, INF):
        with pytest.raises(ValueError, match=r"`y` must be finite, got (nan|inf)"):
            sets.contains([0.0, y])
    with pytest.raises(ValueError, match=r"`y` must have shape \(2,\)"):
        sets.contains([0.0])
    with pytest.raises(ValueError, match="`y` must be doubles, got 9007199254740993"):
        sets.contains([0, 2**53 + 1])


def test_sets_cannot_be_written_to():
    sets = IntervalSets.from_ends([[0.0]], [[1.0]], 1)
    for kept in (sets, copy.deepcopy(sets), pickle.loads(pickle.dumps(sets))):
        assert repr(kept) == "IntervalSets([0, 1])"
        for array in (kept.offsets, kept.left, kept.right):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7
