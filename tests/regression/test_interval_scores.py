"""Scores of real labels, and ends that are exact for them in doubles."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bincp
from bincp.regression import IntervalSets, conformity_scores, predict_sets
from bincp.regression._scores import SCORES, ends_of, parts_of
from support import quiet

IDENTITY = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0))
MAX = np.finfo(np.float64).max

numbers = st.floats(allow_nan=False)
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=5e-324, max_value=MAX)


def around(end, steps=3):
    """Return an end and its neighbours among the doubles, as far as they are finite."""
    found, low, high = [], end, end
    for _ in range(steps):
        found += [low, high]
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return [y for y in found if math.isfinite(y)] or [-MAX, MAX]


@st.composite
def one_draw(draw, predictions):
    name = draw(st.sampled_from(sorted(SCORES)))
    first = draw(predictions)
    if name == "normalized":
        return name, [first, draw(positive)]
    return name, [first, draw(predictions)] if name == "cqr" else [first]


@settings(max_examples=1500)
@given(one_draw(numbers), numbers, st.lists(finite, max_size=3))
def test_a_double_is_in_the_interval_iff_its_score_reaches_tau(draw, tau, labels):
    name, values = draw
    given_as = np.array(values)[None, :, None] if len(values) > 1 else np.array([values])
    left, right = ends_of(parts_of("predictions", given_as, SCORES[name]), tau)
    sets = IntervalSets.from_ends(left, right, 1)
    tried = np.array([*labels, 0.0, *around(float(left[0, 0])), *around(float(right[0, 0]))])
    repeated = np.repeat(given_as, len(tried), axis=0)
    scores = conformity_scores(repeated, tried, score=name)[:, 0]
    assert not np.isnan(scores).any()
    assert (sets.contains(tried[None])[0] == (scores >= tau)).all()


def exact_score(name, values, y):
    """Return the score of a label in fractions, where all numbers are finite."""
    f, *other = map(Fraction, values)
    y = Fraction(y)
    if name == "normalized":
        return -abs(y - f) / other[0]
    parts = {
        "residual": lambda: -abs(y - f),
        "cqr": lambda: min(y - f, other[0] - y),
        "lower": lambda: y - f,
        "upper": lambda: f - y,
    }
    return parts[name]()


@settings(max_examples=1500)
@given(one_draw(finite), finite)
def test_scores_are_the_exact_ones_rounded_down(draw, y):
    name, values = draw
    given_as = np.array(values)[None, :, None] if len(values) > 1 else np.array([values])
    score = float(conformity_scores(given_as, [y], score=name)[0, 0])
    exact = exact_score(name, values, y)
    assert score == -math.inf or Fraction(score) <= exact
    above = math.nextafter(score, math.inf)
    assert above == math.inf or exact < Fraction(above)


def test_ends_in_floating_point_miss_labels_that_were_calibrated_on():
    rng = np.random.default_rng(0)
    f = rng.normal(size=2000).astype(np.float32).astype(np.float64)
    y = rng.normal(size=2000)
    tau = -np.abs(y - f)  # by the score that suggests itself, each label reaches this
    assert ((y < f + tau) | (y > f - tau)).mean() > 0.01
    own = conformity_scores(f[:, None], y)[:, 0]
    for one, label, threshold in zip(f, y, own, strict=True):
        left, right = ends_of(parts_of("predictions", [[one]], SCORES["residual"]), threshold)
        assert left[0, 0] <= label <= right[0, 0]


@pytest.mark.parametrize("name", sorted(SCORES))
def test_sets_decide_as_the_rule_does_for_each_label(name):
    rng = np.random.default_rng(1)
    n, m, q = 99, 16, len(SCORES[name].numbers)

    def predictions(y):
        first = (y[:, None] + rng.normal(0, 0.3, (len(y), m))).astype(np.float32)
        if q == 1:
            return first
        second = rng.uniform(0.2, 2, first.shape).astype(np.float32)
        return np.stack([first, second if name == "normalized" else first + second - 0.5], axis=1)

    y = rng.normal(size=n)
    rule = bincp.BinCP(IDENTITY, alpha=0.2, p=0.6, correction="none")
    rule.calibrate(conformity_scores(predictions(y), y, score=name))
    tests = predictions(rng.normal(size=n))
    sets = predict_sets(rule, tests, score=name)
    first = tests if q == 1 else tests[:, 0]
    tried = [*rng.normal(0, 2, (20, n)), *(first.T + rule.tau_)]
    tried += [np.array([sets[i].flat[0] if len(sets[i]) else 0.0 for i in range(n)])]
    tried = np.clip(np.array(tried, np.float64), -MAX, MAX)
    tried = np.concatenate([tried, np.nextafter(tried, -MAX), np.nextafter(tried, MAX)])
    decided = [
        rule.predict_set(conformity_scores(tests, one, score=name)[:, None])[:, 0] for one in tried
    ]
    held = sets.contains(tried.T)
    assert (held == np.array(decided).T).all()
    assert 0 < held.mean() < 1
    hulls = predict_sets(rule, tests, score=name, hulls=True)
    assert (hulls.contains(tried.T) >= held).all()


def test_crossed_quantiles_and_a_positive_tau_give_the_empty_set():
    # A correction of -1/16 on the quantiles 2 and 33/16 crosses the ends of the interval. MAPIE
    # returned an interval from 33/16 to 2, of negative width (issue 450 there).
    scores = np.arange(1, 10)[:, None] / 16
    rule = bincp.BinCP(IDENTITY, alpha="0.1", p=1, correction="none").calibrate(scores)
    assert rule.tau_ == 1 / 16
    sets = predict_sets(rule, np.array([[[2.0], [33 / 16]]]), score="cqr")
    assert len(sets[0]) == 0
    assert sets.widths().tolist() == [0]
    assert not sets.contains([[2.0, 65 / 32, 33 / 16]]).any()


def test_each_side_has_its_own_correction():
    # neural_prophet put the misses of the one side under the name of the other (pull 1710 there).
    low, high = -np.array([[1.0], [2], [3]]), -np.array([[10.0], [20], [30]])
    sides = [
        bincp.BinCP(IDENTITY, alpha="1/4", p=1, correction="none").calibrate(scores)
        for scores in (low, high)
    ]
    above = predict_sets(sides[0], np.array([[100.0]]), score="lower")
    below = predict_sets(sides[1], np.array([[200.0]]), score="upper")
    assert above.intersection(below)[0].tolist() == [[97, 230]]


def test_the_points_are_counted_once_where_each_side_has_its_scores():
    # MAPIE counted the entries of both rows, 20, where alpha / 2 asks for 19 points (pull 958).
    scores = -np.arange(1.0, 11)[:, None]
    sides = []
    for _ in range(2):
        rule = bincp.BinCP(IDENTITY, alpha="1/20", p=1, correction="none")
        with pytest.warns(bincp.TrivialSetWarning, match="19"):
            sides.append(rule.calibrate(scores))
    zero = np.array([[0.0]])
    above = predict_sets(sides[0], zero, score="lower")
    below = predict_sets(sides[1], zero, score="upper")
    assert above.intersection(below)[0].tolist() == [[-math.inf, math.inf]]


def test_an_infinite_prediction_is_an_ordinary_one():
    scores = conformity_scores([[math.inf, -math.inf, 1.0]], [2.0])
    assert scores.tolist() == [[-math.inf, -math.inf, -1]]
    wide = conformity_scores([[[-math.inf], [math.inf]]], [2.0], score="cqr")
    assert wide.tolist() == [[math.inf]]


def test_finite_numbers_beyond_the_range_of_doubles():
    assert conformity_scores([[MAX]], [-MAX]).tolist() == [[-math.inf]]
    assert conformity_scores([[[1.0], [5e-324]]], [2.0], score="normalized") == -math.inf
    assert conformity_scores([[-MAX]], [MAX], score="lower").tolist() == [[MAX]]
    left, right = ends_of(parts_of("predictions", [[MAX]], SCORES["residual"]), -MAX)
    assert (left[0, 0], right[0, 0]) == (0, math.inf)


def test_narrow_predictions_are_widened_and_not_the_labels_narrowed():
    y = np.array([0.1])  # no float32
    f = np.array([[0.1]], np.float32)
    exact = -abs(Fraction(0.1) - Fraction(float(f[0, 0])))
    assert Fraction(float(conformity_scores(f, y)[0, 0])) == exact  # a double


@pytest.mark.parametrize(
    ("predictions", "y", "score", "error", "message"),
    [
        ([[math.nan]], [0.0], "residual", ValueError, r"NaN, got one at index \(0, 0\)"),
        ([[1.0]], [math.inf], "residual", ValueError, "`y` must be finite, got inf"),
        ([[1.0]], [0.0, 1.0], "residual", ValueError, r"`y` must have shape \(1,\), got \(2,\)"),
        ([1.0], [0.0], "residual", ValueError, r"shape \(n, m\).*got \(1,\)"),
        ([[1.0]], [0.0], "cqr", ValueError, r"shape \(n, 2, m\).*lower quantile, upper quantile"),
        ([[[1.0], [0.0]]], [0.0], "normalized", ValueError, "positive and finite, got 0.0"),
        ([[[1.0], [math.inf]]], [0.0], "normalized", ValueError, "positive and finite, got inf"),
        ([[[1.0], [-1.0]]], [0.0], "normalized", ValueError, "positive and finite, got -1.0"),
        ([[1.0]], [0.0], "quantile", ValueError, "`score` must be one of residual, normalized"),
        ([[1.0]], [True], "residual", TypeError, "`y` must be real numbers, got dtype bool"),
        ([[1]], [0.0], "residual", ValueError, "`predictions` must have one of the dtypes"),
    ],
)
def test_bad_predictions_and_labels_are_refused(predictions, y, score, error, message):
    with pytest.raises(error, match=message):
        conformity_scores(predictions, y, score=score)


def test_rules_that_decide_nothing_about_real_labels_are_refused():
    scores = -np.arange(1.0, 100)[:, None] * np.ones(4)
    new = np.zeros((1, 4))
    with pytest.raises(TypeError, match="`rule` must be a BinCP"):
        predict_sets(None, new)
    with pytest.raises(bincp.NotCalibratedError):
        predict_sets(bincp.BinCP(IDENTITY), new)
    narrow = bincp.BinCP(IDENTITY).calibrate(scores.astype(np.float32))
    with pytest.raises(ValueError, match=r"float64 scores.*got scores of dtype float32"):
        predict_sets(narrow, new)
    per_class = bincp.BinCP(IDENTITY, correction="clopper-pearson")
    with pytest.raises(ValueError, match="infinitely many real labels"):
        predict_sets(quiet(per_class.calibrate, scores, n_classes=2), new)
    early = bincp.BinCP(IDENTITY, passes=2).calibrate(scores)
    with pytest.raises(ValueError, match="must count all m' draws"):
        predict_sets(early, new)
    rule = bincp.BinCP(IDENTITY).calibrate(scores)
    with pytest.raises(ValueError, match="the m' = 4 samples calibrated for"):
        predict_sets(rule, np.zeros((1, 5)))
    with pytest.raises(TypeError, match="`hulls` must be a bool"):
        predict_sets(rule, new, hulls=1)


def test_a_trivial_rule_gives_the_line():
    with pytest.warns(bincp.TrivialSetWarning):
        rule = bincp.BinCP(IDENTITY, alpha=0.1).calibrate(-np.ones((5, 4)))
    assert predict_sets(rule, np.full((1, 4), math.inf))[0].tolist() == [[-math.inf, math.inf]]
