"""Robust risk control against a search by fractions, BinCP, and computed risks."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bincp
from bincp import RobustRiskControl
from bincp.calibration._risk_threshold import _total
from bincp.metrics import false_negative_rate
from support import quiet

GAUSSIAN = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.125))
FAR = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(5))
STRONG = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.5))


def rate(row, true):
    return Fraction(int((true & ~row).sum()), int(true.sum())) if true.any() else Fraction(0)


@given(st.data(), st.integers(1, 12), st.integers(1, 4), st.sampled_from(["0.1", "1/3", "0.5"]))
@settings(deadline=None)
def test_exact_probabilities_by_a_search_over_all_thresholds(data, n, K, alpha):
    cells = st.lists(st.integers(0, 6), min_size=n * K, max_size=n * K)
    bits = st.lists(st.booleans(), min_size=n * K, max_size=n * K)
    p = np.array(data.draw(cells)).reshape(n, K) / 6
    true = np.array(data.draw(bits)).reshape(n, K)
    fits = [
        q for q in np.unique(p) if sum(map(rate, p >= q, true)) + 1 <= Fraction(alpha) * (n + 1)
    ]
    rule = quiet(RobustRiskControl(GAUSSIAN, alpha=alpha).calibrate_exact, p, true, tau=0.5)
    assert rule.certified_p_ == (GAUSSIAN.lower(float(max(fits))) if fits else 0.0)
    np.testing.assert_array_equal(rule.predict_set_exact(p), p >= rule.certified_p_)
    assert rule.guarantee == "robust"


@pytest.mark.parametrize("correction", ["clopper-pearson", "none"])
@pytest.mark.parametrize("m_test", [64, 200])
def test_one_true_label_is_bincp(correction, m_test):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    labels = np.eye(3, dtype=bool)[y]
    scores = rng.normal(np.where(labels, 1, 0)[..., None], 0.3, (150, 3, 64)).astype(np.float32)
    ours = RobustRiskControl(GAUSSIAN, alpha="0.1", correction=correction, eta="0.01")
    ours.calibrate(scores, labels, n_test_samples=m_test)
    rule = bincp.BinCP(
        GAUSSIAN, alpha="0.1", correction=correction, union="ghost", eta="0.01"
    ).calibrate(scores[labels], n_test_samples=m_test)
    # tau may rise to a score of a false label, as long as no true one is lost.
    true_thresholds = np.sort(bincp.kth_largest(scores[labels], rule.success_rank_))
    assert rule.tau_ <= ours.tau_ <= true_thresholds[rule.rank_ - 1]
    assert ours.min_count_ == rule.min_count_
    assert ours.certified_p_ == rule.certified_p_


def population():
    """Return labels and clean probabilities of three kinds of points, and their shares."""
    labels = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=bool)
    p = np.array([[0.97, 0.8, 0.1], [0.995, 0.3, 0.2], [0.999, 0.95, 0.6]])
    return labels, p, np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("certificate", [GAUSSIAN, STRONG])
@pytest.mark.parametrize("loss", ["false-negative-rate", false_negative_rate])
@pytest.mark.parametrize("correction", ["clopper-pearson", "mixture"])
def test_the_risk_is_below_its_level_under_the_worst_attack(certificate, loss, correction):
    """Scores are 1 or 0, so the set at tau = 1 is decided by counts, whose law is known.

    The calibration is repeated; the risk of each rule under the attack is computed. The mean over
    300 calibrations has a standard error below 0.005.
    """
    labels, p, share = population()
    rng = np.random.default_rng(1)
    n, m, risks = 40, 16, []
    for _ in range(300):
        kind = rng.choice(3, n, p=share)
        scores = (rng.random((n, 3, m)) < p[kind][..., None]).astype(np.float32)
        rule = RobustRiskControl(certificate, alpha=0.2, eta=0.02, loss=loss, correction=correction)
        quiet(rule.calibrate, scores, labels[kind])
        attacked = np.ones_like(p) if rule.tau_ <= 0 else certificate.lower(p)
        miss = stats.binom.cdf(rule.min_count_ - 1, m, attacked)
        risks.append(share @ ((miss * labels).sum(1) / labels.sum(1)))
    assert np.mean(risks) <= 0.2


def test_without_a_correction_the_risk_exceeds_its_level():
    """At m = 1 a count of 1 looks like a probability of 1, which no attack lowers."""
    rng = np.random.default_rng(2)
    risks = []
    for _ in range(200):
        scores = (rng.random((19, 1, 1)) < 0.95).astype(np.float32)
        rule = RobustRiskControl(STRONG, alpha=0.2, correction="none")
        quiet(rule.calibrate, scores, np.ones((19, 1), bool))
        attacked = 1.0 if rule.tau_ <= 0 else STRONG.lower(0.95)
        risks.append(stats.binom.cdf(rule.min_count_ - 1, 1, attacked))
    assert np.mean(risks) > 0.22
    assert rule.guarantee == "none"


def test_the_warning_blames_a_p_that_was_given():
    """With p = 0.6 the certificate leaves nothing, and the message named only the radius."""
    certificate = bincp.certify(bincp.smoothing.SparseFlip(0.01, 0.6), bincp.balls.Flips(0, 1))
    labels = np.ones((600, 1), dtype=bool)
    scores = np.random.default_rng(0).normal(size=(600, 1, 64))
    bounds = {"correction": "clopper-pearson"}
    chosen = RobustRiskControl(certificate, **bounds).calibrate(scores, labels)
    assert chosen.min_count_ >= 23
    with pytest.warns(bincp.TrivialSetWarning, match="p = 0.6 allows no count.* no `p`"):
        RobustRiskControl(certificate, p=0.6, **bounds).calibrate(scores, labels)
    with pytest.warns(bincp.TrivialSetWarning, match="p = 0.1 allows no count.* no `p`"):
        RobustRiskControl(certificate, p=0.1).calibrate(scores, labels)
    for options in ({}, bounds):
        rule = RobustRiskControl(certificate, p=0.1, poisoned=("deletions", 2), **options)
        with pytest.warns(bincp.TrivialSetWarning, match="p = 0.1 allows no count") as caught:
            rule.calibrate(scores, labels)
        better = str(caught[0].message).split("; p = ")[1].split(",")[0]
        rule = RobustRiskControl(certificate, p=better, poisoned=("deletions", 2), **options)
        assert rule.calibrate(scores, labels).min_count_ > 0
    with pytest.warns(bincp.TrivialSetWarning) as caught:
        RobustRiskControl(certificate, **bounds).calibrate(scores[:, :, :2], labels)
    assert "p = " not in str(caught[0].message)


def test_another_loss_pays_for_every_label():
    rng = np.random.default_rng(3)
    labels = rng.random((300, 4)) < 0.5
    scores = rng.normal(np.where(labels, 1, 0)[..., None], 0.3, (300, 4, 128))

    def any_missed(sets, true):
        return (true & ~sets).any(axis=1)

    options = {"p": 0.6, "eta": 0.01, "correction": "clopper-pearson"}
    rate_rule = RobustRiskControl(GAUSSIAN, **options).calibrate(scores, labels)
    any_rule = RobustRiskControl(GAUSSIAN, **options, loss=any_missed).calibrate(scores, labels)
    assert any_rule.tau_ <= rate_rule.tau_
    level = Fraction(1, 100) / 8
    p_lower = bincp.clopper_pearson_lower(77, 128, level)
    assert any_rule.certified_p_ == pytest.approx(GAUSSIAN.lower(p_lower), rel=1e-12)


def test_the_rate_is_rounded_up():
    true = np.ones((1, 3), dtype=bool)
    value = false_negative_rate([[False, True, True]], true)[0]
    assert Fraction(1, 3) < Fraction(float(value)) < Fraction(1, 3) + Fraction(1, 10**16)
    assert false_negative_rate(~true, true)[0] == 1
    assert false_negative_rate(~true, ~true)[0] == 0


def test_too_few_points_and_too_large_a_radius_warn():
    labels = np.ones((5, 2), bool)
    with pytest.warns(bincp.TrivialSetWarning, match="n = 5 calibration points are too few"):
        rule = RobustRiskControl(GAUSSIAN).calibrate(np.ones((5, 2, 8)), labels)
    assert rule.tau_ == -math.inf
    assert rule.predict_set(np.zeros((3, 2, 8))).all()
    for correction in ("mixture", "clopper-pearson"):
        rule = RobustRiskControl(FAR, correction=correction)
        with pytest.warns(bincp.TrivialSetWarning, match="a smaller radius"):
            rule.calibrate(np.ones((50, 2, 2)), np.ones((50, 2), bool))


@pytest.mark.parametrize("loss", ["false-negative-rate", "any-missed"])
@pytest.mark.parametrize(
    ("correction", "rho"),
    [("mixture", "0.1"), ("none", "0.5"), ("clopper-pearson", "0.05"), ("clopper-pearson", "0.08")],
)
def test_a_shift_that_leaves_nothing_warns(correction, rho, loss, tmp_path):
    """Less than eta, too: the message blamed the loss, which had to be at most -0.03."""
    shift = bincp.shifts.TotalVariation(rho)
    rule = RobustRiskControl(GAUSSIAN, loss=loss, correction=correction, shift=shift, eta="0.05")
    with pytest.warns(bincp.TrivialSetWarning, match="the shift, or the label noise"):
        rule.calibrate(np.ones((50, 2, 16)), np.ones((50, 2), bool))
    assert rule.predict_set(np.zeros((3, 2, 16))).all()
    rule.save(tmp_path / "rule.json")
    assert RobustRiskControl.load(tmp_path / "rule.json")._rule == rule._rule


def test_bad_input():
    scores, labels = np.ones((50, 2, 64)), np.ones((50, 2), bool)
    method = RobustRiskControl(GAUSSIAN)
    assert repr(method) == "RobustRiskControl(alpha=1/10, not calibrated)"
    with pytest.raises(bincp.NotCalibratedError, match=r"call calibrate\(\)"):
        method.predict_set(scores)
    with pytest.raises(bincp.NotCalibratedError, match="calibrate_exact"):
        method.predict_set_exact([[0.5, 0.5]])
    for probabilities in (0.5, [0.5], [[]], [[[0.5]]]):
        with pytest.raises(ValueError, match=r"`probabilities` must have shape \(n, K\), got"):
            method.calibrate_exact(probabilities, labels, tau=0.5)
    assert method.guarantee == "robust"
    assert RobustRiskControl(GAUSSIAN, correction="none").guarantee == "none"
    with pytest.raises(TypeError, match=r"`labels` must be boolean, of shape \(n, K\), got dty"):
        method.calibrate(scores, labels.astype(int))
    with pytest.raises(ValueError, match=r"`labels` must have shape \(50, 2\), got \(50, 1\)"):
        method.calibrate(scores, labels[:, :1])
    with pytest.raises(ValueError, match=r"`scores`.*NaN"):
        method.calibrate(scores * math.nan, labels)
    with pytest.raises(ValueError, match=r"`scores` must have shape \(n, K, m\)"):
        method.calibrate(scores[0], labels)
    with pytest.raises(ValueError, match=r"`probabilities` must be in \[0, 1\], got 1.5"):
        method.calibrate_exact(scores[:, :, 0] * 1.5, labels, tau=0)
    method.calibrate(scores, labels)
    with pytest.raises(bincp.NotCalibratedError, match="calibrate_exact"):
        method.predict_set_exact([[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"m' = 64 .* got 5"):
        method.predict_set(scores[:, :, :5])
    with pytest.raises(ValueError, match="with the K = 2 calibrated for"):
        method.predict_set(scores[:, :1])
    with pytest.raises(ValueError, match=r"`n_test_samples` must be in \[1, 2147483647\]"):
        method.calibrate(scores, labels, n_test_samples=2**31)
    with pytest.raises(ValueError, match="dtype calibrated with, float64, got float32"):
        method.predict_set(scores.astype(np.float32))
    for options, message in (
        ({"alpha": 0}, "`alpha` must be in"),
        ({"eta": 0.2, "correction": "clopper-pearson"}, "`eta` must be below alpha"),
        ({"correction": "bayes"}, "`correction` must be one of"),
        ({"passes": 3, "correction": "none"}, "`passes` must be None or"),
        ({"poisoned": -1}, "`poisoned` must be at least 0"),
        ({"loss": "accuracy"}, "`loss` must be"),
        ({"p": 1.5}, "`p` must be in"),
    ):
        with pytest.raises(ValueError, match=message):
            RobustRiskControl(GAUSSIAN, **options)
    with pytest.raises(TypeError, match="`certificate` must be a Certificate"):
        RobustRiskControl(0.5)


def test_a_loss_that_breaks_its_contract_is_refused():
    rng = np.random.default_rng(4)
    scores, labels = rng.random((50, 3, 16)), rng.random((50, 3)) < 0.5
    for loss, message in (
        (lambda sets, true: sets.mean(axis=1), "must be at most 0.0"),
        (lambda sets, true: np.where(sets.sum(axis=1) % 3 == 1, 0.5, 0), "must not grow"),
        (lambda sets, true: 2.0 * ~sets.all(axis=1), r"must be in \[0, 1\], got 2.0"),
        (lambda sets, true: np.zeros(3), "must return 50 numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            RobustRiskControl(GAUSSIAN, loss=loss).calibrate(scores, labels)


@pytest.mark.skipif(np.longdouble(0).itemsize == 8, reason="long doubles are doubles here")
def test_losses_that_a_double_may_not_hold_are_refused():
    scores, labels = np.ones((50, 3, 16)), np.ones((50, 3), bool)
    with pytest.raises(ValueError, match=r"must return 50 numbers, got float\d+"):
        RobustRiskControl(GAUSSIAN, loss=lambda sets, true: np.zeros(50, np.longdouble)).calibrate(
            scores, labels
        )


def test_a_loss_that_computes_in_place_changes_no_labels():
    """It would find nothing missing the next time, and the guarantee would be gone."""
    rng = np.random.default_rng(4)
    scores, labels = rng.random((100, 3, 16)), rng.random((100, 3)) < 0.5

    def in_place(sets, true):
        np.logical_and(true, np.logical_not(sets, out=sets), out=true)
        return true.any(axis=1)

    given = labels.copy()
    rule = RobustRiskControl(GAUSSIAN, alpha=0.2, loss=in_place).calibrate(scores, given)
    np.testing.assert_array_equal(given, labels)
    wanted = RobustRiskControl(GAUSSIAN, alpha=0.2, loss=any_missed).calibrate(scores, labels)
    assert (rule.tau_, rule.total_loss_) == (wanted.tau_, wanted.total_loss_)
    assert rule.tau_ > -math.inf


def test_the_sum_of_losses_is_exact():
    rng = np.random.default_rng(8)
    doubles = np.concatenate([rng.random(300), 2.0 ** -rng.integers(0, 1075, 300), [0, 1, 5e-324]])
    unused = np.ones((603, 1), bool)
    for left_out in (0, 1, 200, 602):
        total = _total(any_missed, unused, unused, doubles, left_out)
        assert total == sum(map(Fraction, sorted(doubles.tolist())[left_out:]))
    most = _total(any_missed, unused, unused, np.full(10**6, math.nextafter(1, 0)), 0)
    assert most == 10**6 * (1 - Fraction(1, 2**53))


# ---- the mixture correction -------------------------------------------------------------------


def of_many_labels(n=300, n_classes=6, m=32):
    rng = np.random.default_rng(5)
    labels = rng.random((n, n_classes)) < 0.4
    scores = rng.normal(np.where(labels, 1, 0.3)[..., None], 0.4, (n, n_classes, m))
    return scores, labels


def any_missed(sets, true):
    return (true & ~sets).any(axis=1)


@pytest.mark.parametrize("m_test", [16, 32])
def test_one_true_label_is_bincp_with_ranks(m_test):
    rng = np.random.default_rng(0)
    labels = np.eye(3, dtype=bool)[rng.integers(0, 3, 199)]
    scores = rng.normal(np.where(labels, 1, 0)[..., None], 0.3, (199, 3, 32)).astype(np.float32)
    ours = RobustRiskControl(GAUSSIAN, p=0.7).calibrate(scores, labels, n_test_samples=m_test)
    rule = bincp.BinCP(GAUSSIAN, p=0.7).calibrate(scores[labels], n_test_samples=m_test)
    assert ours.min_count_ == rule.min_count_
    assert ours.success_rank_ == rule.success_rank_
    # tau may rise to a score of a false label, as long as no true one is lost.
    true_thresholds = np.sort(bincp.kth_largest(scores[labels], rule.success_rank_))
    assert rule.tau_ <= ours.tau_ <= true_thresholds[rule.rank_ - 1]


@pytest.mark.parametrize("loss", ["false-negative-rate", any_missed])
@pytest.mark.parametrize("m", [8, 32])
def test_its_sets_are_smaller_than_those_of_confidence_bounds(loss, m):
    scores, labels = of_many_labels(m=m)
    sizes = {
        correction: quiet(
            RobustRiskControl(GAUSSIAN, loss=loss, correction=correction).calibrate, scores, labels
        )
        .predict_set(scores)
        .mean()
        for correction in ("mixture", "clopper-pearson")
    }
    assert sizes["mixture"] < sizes["clopper-pearson"]


def test_poison_costs_no_more_than_it_must():
    """Of 12 poisoned points all lose nothing, or everything: tau is at most that of clean ones."""
    scores, labels = of_many_labels()
    clean = RobustRiskControl(GAUSSIAN).calibrate(scores, labels)
    rule = RobustRiskControl(GAUSSIAN, poisoned=12)
    worst_loss = false_negative_rate(clean.predict_set(scores), labels)
    for value in (-np.inf, np.inf, 0.5):
        poisoned = scores.copy()
        poisoned[np.argsort(-worst_loss)[:12]] = value
        assert rule.calibrate(poisoned, labels).tau_ <= clean.tau_ + 0.2
        assert rule.total_loss_ + 13 <= Fraction(1, 10) * 301
    with pytest.warns(bincp.TrivialSetWarning, match="300.*too few.*30 arbitrary points"):
        RobustRiskControl(GAUSSIAN, poisoned=30).calibrate(scores, labels)
    with pytest.warns(bincp.TrivialSetWarning, match="300.*too few.*40 arbitrary points"):
        RobustRiskControl(GAUSSIAN, poisoned=40, correction="clopper-pearson").calibrate(
            scores, labels
        )


def test_exact_probabilities_take_poison_and_shift():
    """The largest q with the n - b largest losses and b + 1 within the level that is left."""
    rng = np.random.default_rng(6)
    p, true = rng.random((60, 3)), rng.random((60, 3)) < 0.6
    shift = bincp.shifts.TotalVariation("0.05")
    rule = RobustRiskControl(GAUSSIAN, alpha="0.3", poisoned=4, shift=shift)
    rule.calibrate_exact(p, true, tau=0.5)
    fits = [
        q
        for q in np.unique(p)
        if sum(sorted(map(rate, p >= q, true))[4:]) + 5 <= Fraction(1, 4) * 61
    ]
    assert rule.p_ == max(fits)
    assert rule.certified_p_ == GAUSSIAN.lower(max(fits))


def test_early_stopping_is_decided_by_its_own_boundaries():
    scores, labels = of_many_labels()
    rule = RobustRiskControl(GAUSSIAN, passes=8).calibrate(scores, labels)
    sets = rule.predict_set(scores)
    tracker = bincp.SequentialTracker(rule.boundaries_, scores.shape[:2])
    tracker.update(scores >= rule.tau_)
    np.testing.assert_array_equal(sets, tracker.accepted)
    assert tracker.exits.max(axis=1).mean() < 32
    with pytest.raises(ValueError, match="counts"):
        rule.predict_set_from_counts((scores >= rule.tau_).sum(-1), n_samples=32)


def most_missed(sets, true):
    return 2 * (true & ~sets).sum(axis=1) > true.sum(axis=1)


def constant(sets, true):
    return np.full(len(true), 0.01)


def test_a_loss_that_does_not_add_up_is_refused():
    scores, labels = of_many_labels()
    with pytest.raises(ValueError, match=r"`loss` must be a sum of weights.*additive=True"):
        RobustRiskControl(GAUSSIAN, loss=any_missed, additive=True).calibrate(scores, labels)
    three = np.arange(6) < np.full((300, 1), 3)
    with pytest.raises(ValueError, match=r"got 1\.0 where those of single labels add up to 0\.0"):
        # A set and the labels it misses share this loss, and yet it is no sum.
        RobustRiskControl(GAUSSIAN, loss=most_missed, additive=True).calibrate(scores, three)
    with pytest.raises(ValueError, match=r"got 0\.01 where .* add up to 0\.0 at index"):
        RobustRiskControl(GAUSSIAN, loss=constant, additive=True).calibrate(scores, labels)
    rule = RobustRiskControl(GAUSSIAN, loss=false_negative_rate, additive=True)
    named = RobustRiskControl(GAUSSIAN).calibrate(scores, labels)
    assert rule.calibrate(scores, labels).min_count_ == named.min_count_
    assert rule.tau_ == named.tau_
    with pytest.raises(TypeError, match="`additive` must be a bool, got 1"):
        RobustRiskControl(GAUSSIAN, additive=1)


# ---- faults of other libraries ----------------------------------------------------------------


def thresholds(values, alpha):
    """Return tau of one draw without noise, and the same threshold for exact probabilities."""
    values, plain = (
        np.asarray(values),
        bincp.certify(bincp.smoothing.Gaussian(1), bincp.balls.L2(0)),
    )
    true = np.ones(values.shape, bool)
    drawn = RobustRiskControl(plain, alpha=alpha, p=1, correction="none")
    exact = RobustRiskControl(plain, alpha=alpha)
    return (
        quiet(drawn.calibrate, values[..., None], true).tau_,
        quiet(exact.calibrate_exact, values, true, tau=0.5).certified_p_,
    )


def test_the_threshold_is_an_observed_value_and_ties_stay_together():
    """A grid has its next point above 0.5, which loses four labels at once."""
    values = [[0.1], [0.2], [0.5], [0.5], [0.5], [0.5], [0.9], [0.9], [0.9]]
    assert thresholds(values, "1/2") == (0.5, 0.5)


@pytest.mark.parametrize(
    ("n", "n_labels", "n_missing", "reached"),
    [(8, 1, 0, False), (9, 1, 0, True), (29, 10, 20, True)],
)
def test_a_level_that_is_met_with_equality_is_met(n, n_labels, n_missing, reached):
    """In doubles, twenty losses of 1/10 add up to 2.0000000000000004, and the step is lost."""
    values = np.ones((n, n_labels))
    values[:n_missing, 0] = 0.25
    assert thresholds(values, "0.1") == ((1.0, 1.0) if reached else (-math.inf, 0.0))
