"""Whatever options and sizes a rule is made with: it loads back, and it decides as before."""

import random
from fractions import Fraction

import numpy as np
import pytest

import bincp
from bincp import balls, shifts, smoothing
from support import quiet

CERTIFICATES = [
    bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1)),
    bincp.certify(smoothing.Gaussian(0.5), balls.L2(1.5)),
    bincp.certify(smoothing.Uniform(0.5), balls.L1(0.1)),
    bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(1, 2)),
]
SHIFTS = [
    None,
    None,
    shifts.TotalVariation("0.05"),
    shifts.TotalVariation("0.6"),
    shifts.LikelihoodRatio("0.5", "1.5"),
    shifts.KL("0.01"),
    shifts.KL(3),
]
NOISES = [None, None, ("count", 1), ("rate", "0.6"), ("mean-rate", "0.05"), ("mean-rate", "0.3")]
K = 3


def drawn_options(rng, kind):
    correction = rng.choice(["mixture", "mixture", "clopper-pearson", "none", "shared-draws"])
    options = {
        "alpha": rng.choice(["0.1", "1/5", "2/3"]),
        "correction": correction,
        "poisoned": rng.choice([0, 0, 1, 5, ("deletions", 2), ("insertions", 2)]),
        "label_noise": rng.choice(NOISES),
        "shift": rng.choice(SHIFTS),
    }
    if correction == "clopper-pearson":
        options["eta"] = rng.choice(["0.001", "0.09"])  # the second is more than a shift leaves
        if kind != "risk":
            options["union"] = "two-bounds"
    if correction == "mixture" and rng.random() < 0.5:
        options["passes"] = rng.choice(["auto", 1, 2])
    elif kind != "risk" and rng.random() < 0.5:
        options["tau"] = rng.choice([0.0, -3.0, np.inf])
    return options


def calibrated(rng, kind):
    """A rule of drawn options, or None where they are refused."""
    options, certificate = drawn_options(rng, kind), rng.choice(CERTIFICATES)
    n, m, m_test = rng.choice([1, 2, 9, 40, 300]), rng.choice([1, 2, 4]), rng.choice([1, 2, 4])
    draws = np.random.default_rng(rng.randrange(2**32))
    scores = draws.integers(-5, 5, (n, K, m)) / 4
    labels = draws.integers(0, K, n)
    own = scores[np.arange(n), labels]
    try:
        if kind == "risk":
            rule = bincp.RobustRiskControl(certificate, **options)
            return quiet(
                rule.calibrate, scores, np.eye(K, dtype=bool)[labels], n_test_samples=m_test
            )
        if kind == "classes":
            rule = bincp.MondrianBinCP(certificate, n_classes=K, **options)
            return quiet(rule.calibrate, own, labels, n_test_samples=m_test)
        rule = bincp.BinCP(certificate, **options)
        return quiet(rule.calibrate, own, n_test_samples=m_test)
    except ValueError as error:
        known = ("`correction`", "`label_noise` must be None or", "`poisoned` must be a number of")
        if not str(error).startswith(known):
            raise
        return None


@pytest.mark.parametrize("kind", ["points", "classes", "risk"])
def test_every_rule_that_is_made_is_read_again(kind, tmp_path):
    rng = random.Random(kind)
    checked = trivial = 0
    while checked < 70:
        rule = calibrated(rng, kind)
        if rule is None:
            continue
        rule.save(tmp_path / "rule.json")
        loaded = type(rule).load(tmp_path / "rule.json")
        scores = np.random.default_rng(0).integers(-5, 5, (9, K, rule.n_test_samples_)) / 4
        sets = rule.predict_set(scores)
        np.testing.assert_array_equal(loaded.predict_set(scores), sets)
        loaded.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "rule.json").read_bytes()
        checked += 1
        trivial += bool(np.all(rule.min_count_ == 0))
    assert 0 < trivial < checked


@pytest.mark.parametrize("poisoned", [("insertions", 2), ("deletions", 2)])
def test_a_rule_of_rank_0_has_no_boundaries(poisoned):
    certificate = CERTIFICATES[0]
    rule = bincp.BinCP(certificate, alpha="1/10", poisoned=poisoned, passes="auto")
    rule = quiet(rule.calibrate, np.zeros((5, 4)))
    assert (rule.rank_, rule.min_count_, rule.boundaries_) == (0, 0, None)


@pytest.mark.parametrize("correction", ["mixture", "clopper-pearson", "shared-draws"])
@pytest.mark.parametrize("shift", [None, shifts.KL("0.01")])
def test_more_poison_than_points_accepts_every_label(correction, shift):
    for tau in (None, 0.0):
        rule = bincp.BinCP(
            CERTIFICATES[0],
            correction=correction,
            union="two-bounds",
            tau=tau,
            poisoned=3,
            shift=shift,
        )
        rule = quiet(rule.calibrate, np.zeros((1, 2)))
        assert rule.rank_ == 0
        assert rule.predict_set(np.full((1, 2, 2), -1.0)).all()


def test_a_shift_and_confidence_bounds_may_leave_nothing_of_alpha():
    options = {"correction": "clopper-pearson", "eta": "0.09", "alpha": "0.1"}
    shift = shifts.TotalVariation("0.05")
    scores, labels = np.ones((99, K, 16)), np.eye(K, dtype=bool)[np.arange(99) % K]
    risk = bincp.RobustRiskControl(CERTIFICATES[0], shift=shift, **options)
    with pytest.warns(bincp.TrivialSetWarning, match=r"eta = 0\.09 uses up .* 0\.05 .*smaller eta"):
        risk.calibrate(scores, labels)
    assert risk.predict_set(-scores).all()
    rule = bincp.BinCP(CERTIFICATES[0], shift=shift, union="two-bounds", **options)
    with pytest.warns(bincp.TrivialSetWarning, match="a smaller eta would fix it"):
        rule.calibrate(scores[:, 0])
    assert rule.predict_set(-scores).all()


def test_a_class_is_not_told_to_shrink_the_radius_where_the_shift_is_the_cause():
    rule = bincp.MondrianBinCP(CERTIFICATES[0], n_classes=2, shift=shifts.TotalVariation("0.2"))
    with pytest.warns(bincp.TrivialSetWarning, match="the shift, or the label noise, may use up"):
        rule.calibrate(np.ones((40, 4)), np.arange(40) % 2)


@pytest.mark.parametrize("kind", ["insertions", "deletions"])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_the_number_of_points_that_is_named_does(kind, n):
    alpha, d = Fraction(1, 10), 50
    certificate = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0))
    rule = bincp.BinCP(certificate, alpha=alpha, poisoned=(kind, d))
    with pytest.warns(bincp.TrivialSetWarning) as found:
        rule.calibrate(np.zeros((n, 1)))
    named = int(str(found[0].message).split("at least ")[1].split()[0])
    ranks = [quiet(rule.calibrate, np.zeros((size, 1))).rank_ for size in (named - 1, named)]
    assert ranks[0] == 0 < ranks[1]
