"""Class-conditional calibration: one BinCP a class, and what happens to classes without points."""

import math

import numpy as np
import pytest

import bincp

GAUSSIAN = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.125))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    true = rng.normal((1 + y)[:, None], 0.3, (300, 32)).astype(np.float32)
    scores = rng.normal(rng.random((40, 3, 1)) * 3, 0.3, (40, 3, 32)).astype(np.float32)
    return true, y, scores


@pytest.mark.parametrize(
    "options",
    [{}, {"correction": "clopper-pearson", "eta": 0.05, "p": 0.8}, {"p": 0.7}, {"tau": 0.5}],
)
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
        np.testing.assert_array_equal(sets[:, k], alone.predict_set(scores[:, [k]])[:, 0])
    assert 0 < sets.mean() < 1
    np.testing.assert_array_equal(ours.n_calibration_, np.bincount(y))


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
