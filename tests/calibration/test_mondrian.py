"""Class-conditional calibration: one BinCP a class, and what happens to classes without points."""

import itertools
import math
import re
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import bincp
from support import quiet

GAUSSIAN = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.125))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    true = rng.normal((1 + y)[:, None], 0.3, (300, 32)).astype(np.float32)
    scores = rng.normal(rng.random((40, 3, 1)) * 3, 0.3, (40, 3, 32)).astype(np.float32)
    return true, y, scores


OPTIONS = [
    {},
    {"correction": "clopper-pearson", "eta": 0.05, "p": 0.8},
    {"p": 0.7},
    {"tau": 0.5},
    {"passes": "auto"},
    {"guarantee": ("training-conditional", 0.2)},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("m_test", [None, 16])
def test_each_class_is_its_own_bincp(data, options, m_test):
    true, y, scores = data
    scores = scores[:, :, :m_test]
    ours = bincp.MondrianBinCP(GAUSSIAN, n_classes=3, **options)
    sets = ours.calibrate(true, y, n_test_samples=m_test).predict_set(scores)
    for k in range(3):
        alone = bincp.BinCP(GAUSSIAN, **options)
        alone.calibrate(true[y == k], n_classes=1, n_test_samples=m_test)
        assert ours.tau_[k] == alone.tau_
        assert ours.min_count_[k] == alone.min_count_
        assert ours.rules_[k]._rule == alone._rule
        np.testing.assert_array_equal(sets[:, k], alone.predict_set(scores[:, [k]])[:, 0])
    assert 0 < sets.mean() < 1
    np.testing.assert_array_equal(ours.n_calibration_, np.bincount(y))


@pytest.mark.parametrize("options", OPTIONS)
def test_one_class_is_bincp_to_the_bit(data, options):
    true, _, scores = data
    one = bincp.MondrianBinCP(GAUSSIAN, n_classes=1, **options)
    one.calibrate(true, np.zeros(len(true), int))
    alone = bincp.BinCP(GAUSSIAN, **options).calibrate(true, n_classes=1)
    assert [rule._rule for rule in one.rules_] == [alone._rule]
    sets = one.predict_set(scores[:, :1])
    np.testing.assert_array_equal(sets, alone.predict_set(scores[:, :1]))
    assert 0 < sets.mean() < 1
    if one.boundaries_ is None:
        counts = bincp.count_exceedances(scores[:, :1], alone.tau_)
        expected = alone.predict_set_from_counts(counts, n_samples=32)
        np.testing.assert_array_equal(one.predict_set_from_counts(counts, n_samples=32), expected)


@pytest.mark.parametrize("options", [{}, {"p": 0.7}, {"tau": 0.5}, {"correction": "none"}])
@pytest.mark.parametrize("m_test", [8, 32])
def test_counts_at_the_threshold_of_each_label_give_the_sets_of_the_scores(data, options, m_test):
    true, y, scores = data
    scores = scores[:, :, :m_test]
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=3, **options)
    rule.calibrate(true, y, n_test_samples=m_test)
    counts = bincp.count_exceedances(scores, rule.tau_)
    sets = rule.predict_set_from_counts(counts, n_samples=m_test)
    np.testing.assert_array_equal(sets, rule.predict_set(scores))
    np.testing.assert_array_equal(sets, counts >= rule.min_count_)
    assert 0 < sets.mean() < 1


def test_counts_that_do_not_fit(data):
    true, y, _ = data
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=3)
    with pytest.raises(bincp.NotCalibratedError):
        rule.predict_set_from_counts([[1, 2, 3]], n_samples=32)
    rule.calibrate(true, y)
    for counts, n_samples, error, message in (
        ([[1, 2, 3]], 31, ValueError, "`n_samples` must be the m' = 32 calibrated for, got 31"),
        ([[1, 2, 3]], 64, ValueError, "`n_samples` must be the m' = 32 calibrated for, got 64"),
        ([[1, 2, 33]], 32, ValueError, r"`counts` must be in \[0, 32\], got 33"),
        ([[1, -2, 3]], 32, ValueError, r"`counts` must be in \[0, 32\], got -2"),
        ([[1, 2]], 32, ValueError, "with the K = 3 calibrated for"),
        ([1, 2, 3], 32, ValueError, r"`counts` must have shape \(n, K\)"),
        ([[1.0, 2.0, 3.0]], 32, TypeError, "`counts` must be integers"),
        ([[1, 2, 3]], 32.0, TypeError, "`n_samples` must be an integer"),
    ):
        with pytest.raises(error, match=message):
            rule.predict_set_from_counts(counts, n_samples=n_samples)


def test_what_is_returned_belongs_to_the_caller(data):
    """Writing to an attribute does not change the rule."""
    true, y, scores = data
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=3).calibrate(true, y)
    sets = rule.predict_set(scores)
    with pytest.raises(AttributeError, match="`n_classes` of a MondrianBinCP is read-only"):
        rule.n_classes = 2
    for name in ("tau_", "min_count_", "n_calibration_"):
        getattr(rule, name)[:] = 0
        with pytest.raises(AttributeError, match=f"`{name}` of a MondrianBinCP is read-only"):
            setattr(rule, name, 0)
    np.testing.assert_array_equal(rule.predict_set(scores), sets)
    with pytest.raises(AttributeError, match="a MondrianBinCP has its fitted attributes only"):
        bincp.MondrianBinCP(GAUSSIAN, n_classes=3).tau_  # noqa: B018


def test_an_absent_class_is_in_every_set(data):
    """K comes from the argument, never from the labels."""
    true, y, _ = data
    true, y = true[y < 2], y[y < 2]
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=4)
    with pytest.warns(bincp.TrivialSetWarning, match="2 of 4 classes .* have 0 cal.* 9 points, or"):
        rule.calibrate(true, y)
    sets = rule.predict_set(np.zeros((5, 4, 32), np.float32))
    np.testing.assert_array_equal(sets, [[False, False, True, True]] * 5)
    np.testing.assert_array_equal(rule.tau_[2:], -math.inf)


def test_a_class_with_too_few_points_is_in_every_set(data):
    true, y, _ = data
    keep = np.concatenate([np.flatnonzero(y == 0)[:8], np.flatnonzero(y > 0)])
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=3)
    with pytest.warns(bincp.TrivialSetWarning, match="1 of 3 classes .* class 0 has 8 cal.* 9 p"):
        rule.calibrate(true[keep], y[keep])
    assert rule.predict_set(np.zeros((1, 3, 32), np.float32))[0].tolist() == [True, False, False]


def warning_of(rule, sizes, m=8, m_test=None):
    """Return the one warning that classes of these sizes get."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    true = np.random.default_rng(0).normal(1, 0.3, (len(y), m))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rule.calibrate(true, y, n_test_samples=m_test)
    assert len(caught) <= 1
    assert all(w.category is bincp.TrivialSetWarning and w.filename == __file__ for w in caught)
    return str(caught[0].message) if caught else None


def test_of_many_classes_the_warning_counts():
    """It does not list them, and says how large the smallest class would have to be."""
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=100)
    said = warning_of(rule, [9, 10] * 41 + [0] + list(range(9)) + [5] * 7 + [30])
    assert said == (
        "17 of 100 classes are in every prediction set: they have 0 to 8 calibration points; "
        "9 points, or a larger alpha, would do"
    )
    assert (rule.tau_ == -math.inf).sum() == 17


@pytest.mark.parametrize(
    ("options", "radius", "m"),
    [
        ({}, 0.01, 16),
        ({}, 1.2, 4),
        ({"passes": "auto"}, 1.0, 2),
        ({"passes": "auto"}, 1.2, 4),
        ({"p": 1}, 1.2, 4),
        ({"alpha": "1/7"}, 0.01, 16),
        ({"guarantee": ("training-conditional", "1/10")}, 1.2, 2),
        ({"correction": "clopper-pearson", "eta": "1/30", "union": "two-bounds"}, 0.01, 16),
        ({"correction": "none"}, 0.01, 16),
        ({"tau": 0.5}, 0.01, 16),
    ],
)
def test_the_number_of_points_in_the_warning_is_the_least_that_would_do(options, radius, m):
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(radius))

    def said(n):
        rule = bincp.MondrianBinCP(certificate, n_classes=2, **options)
        return warning_of(rule, [n, 1000], m=m)

    named = re.search(r"class 0 has 2 calibration points; (\d+) points, (a|or a)", said(2))
    points, other = int(named.group(1)), named.group(2)
    assert said(points) is None
    assert re.search(rf"class 0 has {points - 1} cal.*; {points} points", said(points - 1))
    assert (other == "a") == (radius > 0.7)  # there the radius is a cause, too


def test_where_no_number_of_points_would_do_the_warning_says_so():
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(3.0))
    rule = bincp.MondrianBinCP(certificate, n_classes=2)
    assert warning_of(rule, [40, 30]) == (
        "2 of 2 classes are in every prediction set: they have 30 to 40 calibration points; a "
        "smaller radius, more noise, more samples or a larger alpha would do, more points would not"
    )


def test_other_causes_are_named_for_one_class():
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=4, correction="none")
    y = np.repeat(np.arange(3), 20)
    true = np.where(y[:, None] == 0, 1.0, -math.inf) + np.zeros((60, 8))
    with pytest.warns(bincp.TrivialSetWarning) as caught:
        rule.calibrate(true, y)
    said = str(caught[0].message)
    assert said.startswith("3 of 4 classes are in every prediction set: class 3 has 0 calibration")
    assert "9 points, or a larger alpha, would do; class 1 is, as are 1 more of them, for " in said
    assert "for at least 2 of the n = 20 calibration points have scores of -inf" in said


def test_a_cause_that_is_no_lack_of_points_stands_alone(data):
    true, y, _ = data
    for scores, options, said in (
        (true, {"tau": 9.0}, "3 of 3 classes are in every prediction set: class 0 is, as are 2 "),
        (
            np.where(y[:, None] == 1, -math.inf, true),
            {},
            "1 of 3 classes is in every prediction set: class 1 is, for too many of ",
        ),
    ):
        rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=3, **options)
        with pytest.warns(bincp.TrivialSetWarning, match=f"^{said}"):
            rule.calibrate(scores, y)


def test_each_class_is_covered_where_one_threshold_fails_a_class():
    y = np.repeat([0, 1], [950, 50])
    means = np.where(y == 0, 1.0, 0.3)

    def draw(seed):
        r = np.random.default_rng(seed)
        points = means + r.normal(0, 0.2, 1000)
        return r.normal(points[:, None], 0.3, (1000, 32))

    sets = {"one": [], "each": []}
    for seed in range(20):
        true, test = draw(2 * seed), draw(2 * seed + 1)
        scores = np.stack([test, test], axis=1)  # only the column of the true label matters
        one = bincp.BinCP(GAUSSIAN).calibrate(true)
        each = bincp.MondrianBinCP(GAUSSIAN, n_classes=2).calibrate(true, y)
        for name, rule in (("one", one), ("each", each)):
            members = rule.predict_set(scores)
            sets[name].append(bincp.metrics.class_conditional_coverage(members, y))
    assert np.mean(sets["one"], axis=0)[1] < 0.6
    assert (np.mean(sets["each"], axis=0) >= 0.9).all()


def test_bad_input(data):
    true, y, scores = data
    with pytest.raises(TypeError, match="`certificate` must be a Certificate"):
        bincp.MondrianBinCP(0.5, n_classes=3)
    with pytest.raises(ValueError, match="`alpha` must be in"):
        bincp.MondrianBinCP(GAUSSIAN, n_classes=3, alpha=2)
    with pytest.raises(ValueError, match="`n_classes` must be at least 1, got 0"):
        bincp.MondrianBinCP(GAUSSIAN, n_classes=0)
    rule = bincp.MondrianBinCP(GAUSSIAN, n_classes=3)
    with pytest.raises(bincp.NotCalibratedError):
        rule.predict_set(scores)
    for labels, error, message in (
        (np.where(y == 2, 3, y), ValueError, r"`labels` must be in \[0, 2\], got 3"),
        (y - 1, ValueError, r"`labels` must be in \[0, 2\], got -1"),
        (y.astype(float), TypeError, "`labels` must be integers"),
        (y[:5], ValueError, r"`labels` must have shape \(300,\), got \(5,\)"),
    ):
        with pytest.raises(error, match=message):
            rule.calibrate(true, labels)
    with pytest.raises(TypeError, match=r"`labels` must be given with an array.* got None"):
        rule.calibrate(true, None)
    with pytest.raises(ValueError, match=r"`true_scores`.*NaN"):
        rule.calibrate(true * math.nan, y)
    with pytest.raises(ValueError, match=r"`true_scores` must have shape \(n, m\)"):
        rule.calibrate(true[0], y)
    rule.calibrate(true, y)
    with pytest.raises(ValueError, match="with the K = 3 calibrated for"):
        rule.predict_set(scores[:, :2])
    with pytest.raises(ValueError, match="dtype calibrated with, float32, got float64"):
        rule.predict_set(scores.astype(np.float64))
    with pytest.raises(ValueError, match=r"`scores`.*NaN"):
        rule.predict_set(scores * np.float32(math.nan))


def test_tensors_are_taken_as_they_are(data):
    torch = pytest.importorskip("torch")
    true, y, scores = data
    rules = [
        bincp.MondrianBinCP(GAUSSIAN, n_classes=3).calibrate(a, b)
        for a, b in ((true, y), (torch.from_numpy(true), torch.from_numpy(y)))
    ]
    np.testing.assert_array_equal(
        rules[0].predict_set(scores), rules[1].predict_set(torch.from_numpy(scores))
    )


# ---- exact coverage ---------------------------------------------------------------------------

VALUES = (0.0, 1.0, 2.0)  # of a score; 2 is the best


def random_population(rng, size=3):
    """Return shares of kinds of points, and the law of a score of each kind."""
    weights = rng.integers(1, 5, size)
    laws = rng.integers(0, 8, (size, len(VALUES))) ** 2 + 1
    return (
        [Fraction(int(w), int(weights.sum())) for w in weights],
        [[Fraction(int(a), int(law.sum())) for a in law] for law in laws],
    )


def outcomes(population, m):
    """Return the scores of a calibration point, sorted, with their probabilities."""
    weights, laws = population
    result = {}
    for draws in itertools.product(range(len(VALUES)), repeat=m):
        share = sum(
            w * math.prod(law[i] for i in draws) for w, law in zip(weights, laws, strict=True)
        )
        key = tuple(sorted(draws))
        result[key] = result.get(key, 0) + share
    return result


def acceptance(test, p):
    """Return the probability of acceptance, in fractions, over all paths."""
    total = Fraction(0)
    for path in itertools.product((0, 1), repeat=test.n_test_samples):
        count = 0
        for draws in range(test.n_test_samples + 1):
            if draws:
                count += path[draws - 1]
            if count >= test.accept[draws] or count <= test.reject[draws]:
                break
        if count >= test.accept[draws]:
            hits = sum(path)
            total += p**hits * (1 - p) ** (len(path) - hits)
    return total


def coverage(rule, label, population, worst):
    """Return the chance that the label of a class is in the set of the worst input in the ball."""
    test = (
        rule.boundaries_[label]
        if rule.boundaries_
        else bincp.SequentialRule.curtailed(int(rule.min_count_[label]), rule.n_test_samples_)
    )
    tau, weights, laws = rule.tau_[label], *population
    total = Fraction(0)
    for weight, law in zip(weights, laws, strict=True):
        p = sum(
            (a for a, value in zip(law, VALUES, strict=True) if value >= tau), start=Fraction(0)
        )
        total += weight * acceptance(test, worst(p))
    return total


@pytest.mark.parametrize("passes", [None, "auto"])
@pytest.mark.parametrize(
    ("sizes", "m", "m_test", "alpha"),
    [((2, 4), 2, 3, "2/5"), ((3, 1), 2, 2, "1/2"), ((3, 2), 3, 2, "2/5")],
)
@pytest.mark.parametrize("seed", range(3))
def test_each_class_is_covered_exactly_over_all_calibration_sets(
    passes, sizes, m, m_test, alpha, seed
):
    """The calibration sets of both classes are enumerated, and weighed with their probabilities.

    Each class has a population of its own. Scores have three values, so ties abound. The points of
    a class are a multiset of outcomes: the rule does not depend on their order.
    """
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))

    def worst(p):
        return Fraction(min(certificate.lower(float(p)), 1.0)) if p < 1 else Fraction(1)

    rng = np.random.default_rng(seed)
    populations = [random_population(rng) for _ in sizes]
    laws = [outcomes(population, m) for population in populations]
    covered, accepted, total = [Fraction(0)] * 2, [set(), set()], Fraction(0)
    sets = [list(itertools.combinations_with_replacement(sorted(law), n))
            for law, n in zip(laws, sizes, strict=True)]  # fmt: skip
    labels = np.repeat([0, 1], sizes)
    # The classes do not touch each other: each calibration set of one meets one of the other.
    for i in range(max(map(len, sets))):
        points = [own[i % len(own)] for own in sets]
        rule = bincp.MondrianBinCP(certificate, n_classes=2, alpha=alpha, passes=passes)
        true = np.array(VALUES)[np.array([point for own in points for point in own])]
        quiet(rule.calibrate, true, labels, n_test_samples=m_test)
        for label in (0, 1):
            if i < len(sets[label]):
                ways = math.factorial(sizes[label]) // math.prod(
                    math.factorial(c) for c in Counter(points[label]).values()
                )
                share = ways * math.prod(laws[label][point] for point in points[label])
                chance = coverage(rule, label, populations[label], worst)
                accepted[label].add(chance)
                covered[label] += share * chance
                total += share
    assert total == 2
    for label, n in enumerate(sizes):
        assert covered[label] >= 1 - Fraction(alpha) - Fraction(1, 10**10)
        if math.floor(Fraction(alpha) * (n + 1)):
            assert len(accepted[label]) > 1
            assert covered[label] < 1
        else:
            assert covered[label] == 1
