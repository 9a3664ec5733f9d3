"""The guarantee given the calibration set: by ranks alone, with early stopping as well."""

import dataclasses
import itertools
import re
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

import bincp
from bincp import balls, smoothing
from bincp.calibration._consistency import contradiction

ALPHA, DELTA = Fraction(1, 5), Fraction(1, 10)
GIVEN_SET = ("training-conditional", DELTA)
CERTIFICATES = {
    "gaussian": bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.25)),
    "sparse": bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(1, 1)),
}
SIZES = [(32, 4), (64, 16), (16, 16)]
# The logit of a score, shifted by the difficulty of its point: (share, difficulty).
POPULATIONS = [
    [(1.0, 0.0)],
    [(0.75, 0.0), (0.25, -1.5)],
    [(0.85, 0.5), (0.15, -9.0)],
]
cases = pytest.mark.parametrize(
    ("name", "m", "m_test", "passes"),
    [
        (name, *sizes, passes)
        for name in CERTIFICATES
        for sizes in SIZES
        for passes in (None, "auto")
    ],
)


def calibrated(name, m, m_test, passes, guarantee, n=100):
    rule = bincp.BinCP(CERTIFICATES[name], alpha=ALPHA, guarantee=guarantee, passes=passes)
    return rule.calibrate(np.random.default_rng(0).logistic(size=(n, m)), n_test_samples=m_test)


@cases
def test_no_losses_are_taken_where_the_mean_over_calibration_sets_proves_nothing(
    name, m, m_test, passes
):
    rule = calibrated(name, m, m_test, passes, GIVEN_SET)
    assert rule.losses_ is None
    assert rule.rank_ > 0
    assert rule.min_count_ > 0
    assert (rule.boundaries_ is None) == (passes is None)
    # The chance that more than alpha lies below the rank-th of n points is at most delta.
    n = rule.n_calibration_
    assert stats.binom.cdf(rule.rank_ - 1, n, float(ALPHA)) <= float(DELTA)


def test_the_marginal_guarantee_does_take_losses():
    """Else the test before this one could not fail."""
    marginal = [
        calibrated(name, m, m_test, passes, "marginal")
        for name, (m, m_test), passes in itertools.product(CERTIFICATES, SIZES, (None, "auto"))
    ]
    weighed = [rule for rule in marginal if rule.losses_ is not None]
    assert len(weighed) > len(marginal) / 2
    for rule in weighed:
        settings = dataclasses.replace(rule._rule.settings, delta=DELTA)
        claimed = dataclasses.replace(rule._rule, settings=settings)
        assert contradiction(claimed) == "losses need the mixture correction, and nothing fixed"


@cases
@pytest.mark.parametrize("population", POPULATIONS)
def test_few_calibration_sets_have_less_coverage(name, m, m_test, passes, population):
    """Exact: over the law of tau, coverage given tau falls short with probability <= delta."""
    rule = calibrated(name, m, m_test, passes, GIVEN_SET)
    test = rule.boundaries_ or bincp.SequentialRule.curtailed(rule.min_count_, m_test)
    grid = np.linspace(-20, 12, 6001)
    below, covered = 0.0, 0.0
    for share, difficulty in population:
        p = stats.logistic.sf(grid - difficulty)
        below += share * stats.binom.cdf(rule.success_rank_ - 1, m, p)
        covered += share * test.acceptance(rule.certificate.lower(p))
    at_most = stats.binom.sf(rule.rank_ - 1, rule.n_calibration_, below)  # P[tau <= grid]
    fails = covered < 1 - float(ALPHA) - 1e-9
    assert not fails[0]
    assert fails[-1]  # coverage falls with tau: a final segment of the grid
    assert np.all(np.diff(fails.astype(int)) >= 0)
    assert 1 - at_most[np.argmax(fails)] <= float(DELTA)


TINY = ["1e-330", "1e-390", "5e-324", "1e-310", "1/10", f"0.{'9' * 330}"]
KINDS = {
    "BinCP": lambda scores, **options: bincp.BinCP(CERTIFICATES["gaussian"], **options).calibrate(
        scores
    ),
    "fixed tau": lambda scores, **options: bincp.BinCP(
        CERTIFICATES["gaussian"], tau=0.5, **options
    ).calibrate(scores),
    "MondrianBinCP": lambda scores, **options: bincp.MondrianBinCP(
        CERTIFICATES["gaussian"], n_classes=2, **options
    ).calibrate(scores, np.arange(len(scores)) % 2),
    "exact": lambda scores, **options: bincp.BinCP(
        CERTIFICATES["gaussian"], **options
    ).calibrate_exact(scores[:, 0], tau=0.5),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", TINY)
@pytest.mark.parametrize("delta", TINY)
def test_levels_beyond_the_range_of_doubles(kind, alpha, delta):
    """They give every label where n points are too few, and the warning says how many would do."""
    n = 20 // (1 + (kind == "MondrianBinCP"))
    with mpmath.workdps(900):
        level, share = (mpmath.fraction(*Fraction(x).as_integer_ratio()) for x in (alpha, delta))
        needed = mpmath.log(+share) / mpmath.log(1 - level)
    scores = np.random.default_rng(0).random((20, 4))
    options = {"alpha": alpha, "guarantee": ("training-conditional", delta)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rule = KINDS[kind](scores, **options)
    texts = [str(warning.message) for warning in caught]
    first = rule.rules_[0] if kind == "MondrianBinCP" else rule
    assert first.rank_ == 0 or needed <= n
    if first.rank_ == 0 and needed <= n and kind != "MondrianBinCP":
        assert "; a larger alpha or delta would fix it" in texts[0]
    elif needed > n and kind != "MondrianBinCP":
        said = re.search(r"about (\S+) calibration", texts[0])[1]
        assert float(mpmath.mpf(said) / mpmath.ceil(needed)) == pytest.approx(1, rel=1e-5)
        assert " = 0 " not in texts[0]
        assert " = 0;" not in texts[0]
