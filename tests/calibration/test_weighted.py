"""Weighted conformal prediction against sums of fractions, and its coverage by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bincp
from bincp.baselines import VanillaCP, WeightedCP
from support import quiet


def by_hand(scores, weights, weight, alpha):
    """Return the largest tau whose points weigh enough, by the definition."""
    total = sum(map(Fraction, weights), start=Fraction(weight))
    fits = [
        tau
        for tau in scores
        if total
        and sum((Fraction(w) for s, w in zip(scores, weights, strict=True) if s >= tau), Fraction())
        >= (1 - alpha) * total
    ]
    return max(fits, default=-math.inf)


WEIGHTS = st.one_of(
    st.floats(0, 1e308), st.integers(0, 3).map(float), st.sampled_from([5e-324, 1e-320, 1e308, 0.1])
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3).map(float), WEIGHTS), min_size=1, max_size=12),
    WEIGHTS,
    st.sampled_from(["1/4", "0.1", "1/3", "0.9", "1e-30"]),
)
def test_thresholds_are_those_of_exact_sums(points, weight, alpha):
    scores, weights = zip(*points, strict=True)
    rule = WeightedCP(alpha=alpha).calibrate(scores, weights)
    wanted = by_hand(scores, weights, weight, Fraction(alpha))
    assert rule.thresholds([weight]).tolist() == [wanted]


def test_whole_weights_beyond_doubles_are_exact():
    """As doubles both weights are 2^62, and half of all is reached by the first point."""
    for odd in (0, 1):
        weights = np.array([2**62, 2**62 + odd])
        rule = WeightedCP(alpha="1/2").calibrate([2.0, 1.0], weights)
        wanted = by_hand([2.0, 1.0], weights.tolist(), 0, Fraction(1, 2))
        assert rule.thresholds(np.array([0])).tolist() == [wanted] == [2.0 - odd]
        heavy = np.array([2**64 - 1], np.uint64)
        wanted = by_hand([2.0, 1.0], weights.tolist(), 2**64 - 1, Fraction(1, 2))
        assert rule.thresholds(heavy).tolist() == [wanted]


def test_equal_weights_are_split_conformal_prediction():
    scores = np.random.default_rng(0).normal(size=99).astype(np.float32)
    for alpha in ("0.1", "0.05", "1/3", "0.005"):
        plain = quiet(VanillaCP(alpha=alpha).calibrate, scores)
        rule = WeightedCP(alpha=alpha).calibrate(scores, np.full(99, 0.1))
        assert rule.thresholds([0.1]).tolist() == [plain.tau_]


def test_the_test_point_has_its_mass():
    """Four points of weight 1: without the mass of the test point the threshold would be -3."""
    rule = WeightedCP(alpha="1/4").calibrate([-1.0, -2.0, -3.0, -4.0], [1, 1, 1, 1])
    assert rule.thresholds([1, 4]).tolist() == [-4.0, -math.inf]


def test_the_number_of_points_does_not_decide():
    rule = WeightedCP(alpha="0.1").calibrate(np.arange(10.0), np.full(10, 1e-3))
    with pytest.warns(bincp.TrivialSetWarning, match="in the sets of 1 of 2 test points"):
        sets = rule.predict_set([[-5.0, 0.0, 5.0]] * 2, [1.0, 1e-6])
    assert sets.tolist() == [[True, True, True], [False, True, True]]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], r"`weights` must be finite and at least 0, got -1 at index \(1,\)"),
        ([1, math.nan, 1], r"got nan at index \(1,\)"),
        ([1, math.inf, 1], r"got inf at index \(1,\)"),
        ([1, 1], r"`weights` must have shape \(3,\), got \(2,\)"),
        ([[1, 1, 1]], r"`weights` must have shape \(3,\), got \(1, 3\)"),
    ],
)
def test_bad_weights_change_nothing(weights, message):
    fresh = WeightedCP(alpha="1/4")
    rule = WeightedCP(alpha="1/4").calibrate([5.0, 6.0, 7.0, 8.0], [1, 2, 3, 4])
    before = rule.thresholds([1]).tolist()
    for one in (fresh, rule):
        with pytest.raises(ValueError, match=message):
            one.calibrate([1.0, 2.0, 3.0], weights)
    assert rule.thresholds([1]).tolist() == before
    assert rule.n_calibration_ == 4
    with pytest.raises(bincp.NotCalibratedError):
        fresh.thresholds([1])


def test_no_weight_at_all_gives_every_label():
    rule = WeightedCP(alpha="1/4").calibrate([1.0, 2.0, 3.0], [0, 0, 0])
    with pytest.warns(bincp.TrivialSetWarning):
        assert rule.predict_set([[-9.0, 9.0]] * 2, [1, 0]).all()


def test_other_bad_arguments():
    rule = WeightedCP()
    with pytest.raises(bincp.NotCalibratedError, match=r"call calibrate\(\)"):
        rule.predict_set([[1.0]], [1])
    rule.calibrate([1.0, 2.0], [1, 1])
    with pytest.raises(TypeError, match="`weights` must be real numbers"):
        rule.thresholds(["1"])
    with pytest.raises(ValueError, match=r"`weights` must have shape \(n,\)"):
        rule.thresholds(1.0)
    with pytest.raises(ValueError, match=r"`weights` must have shape \(2,\), got \(1,\)"):
        quiet(rule.predict_set, [[1.0], [2.0]], [1])
    with pytest.raises(ValueError, match="the dtype calibrated with, float64, got float32"):
        quiet(rule.predict_set, np.float32([[1]]), [1])
    assert repr(rule) == "WeightedCP(alpha=1/10, n_calibration_=2)"
    clone = rule.__sklearn_clone__()
    assert repr(clone) == "WeightedCP(alpha=1/10, not calibrated)"
    assert rule.guarantee == "clean"


def test_sets_are_the_labels_that_reach_the_threshold_of_each_input():
    rule = WeightedCP(alpha="1/2").calibrate([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    assert rule.thresholds([1, 3]).tolist() == [2.0, 1.0]
    sets = rule.predict_set([[1.0, 2.0], [0.5, 1.0]], [1, 3])
    assert sets.tolist() == [[False, True], [False, True]]


# A world of three inputs: shares under P and Q in 16ths, and the score of the true label.
WORLD = [((8, 4), -1.0), ((4, 2), -2.0), ((4, 10), -3.0)]


def coverage(accepts):
    """Return the exact coverage of a test point of Q after n points of P."""
    n, total = 3, Fraction(0)
    for points in itertools.product(WORLD, repeat=n):
        mass = Fraction(math.prod(p for (p, _), _ in points), 16**n)
        scores, weights = [s for _, s in points], [q / p for (p, q), _ in points]
        for (p, q), score in WORLD:
            total += mass * Fraction(q, 16) * accepts(scores, weights, score, q / p)
    return total


def weighted(alpha):
    def accepts(scores, weights, score, weight):
        rule = WeightedCP(alpha=alpha).calibrate(scores, weights)
        return score >= rule.thresholds([weight])[0]

    return accepts


def without_the_test_point(scores, weights, score, weight):
    return score >= by_hand(scores, weights, 0, Fraction(1, 4))


@pytest.mark.parametrize("alpha", ["1/2", "3/5", "2/3", "3/4", "9/10"])
def test_the_coverage_under_the_shift_is_kept(alpha):
    assert 1 - Fraction(alpha) <= coverage(weighted(alpha)) < 1


def test_the_mass_of_the_test_point_is_needed():
    assert coverage(without_the_test_point) < Fraction(3, 4) <= coverage(weighted("1/4"))
