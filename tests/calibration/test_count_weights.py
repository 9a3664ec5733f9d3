"""Count weights: condition (Q) against SciPy, the threshold against brute force, exact coverage."""

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bincp
from bincp._core._mixture import binomial_means
from bincp._utils.arrays import Scores, as_scores
from bincp.calibration import _count_weights as _weights
from bincp.calibration._conditions import MeanFailure, MeanLoss
from bincp.calibration._count_weights import (
    UNIT,
    CountWeights,
    make_weights,
    select_threshold_by_weights,
)
from bincp.calibration._curve import Array, Curve
from bincp.calibration._mixture import Setup
from bincp.calibration._threshold import select_threshold
from bincp.certificates import Certificate
from support import choose, choose_weights, largest_valid_count

S, B = bincp.smoothing, bincp.balls
CERTIFICATES = {
    "identity": bincp.certify(S.Gaussian(1.0), B.L2(0)),
    "gaussian": bincp.certify(S.Gaussian(1.0), B.L2(0.25)),
    "gaussian-far": bincp.certify(S.Gaussian(1.0), B.L2(2.0)),
    "uniform": bincp.certify(S.Uniform(0.5), B.L1(0.1)),
    "sparse-flip": bincp.certify(S.SparseFlip(0.01, 0.6), B.Flips(1, 2)),
}
LEVELS = [(9, Fraction(3, 10)), (200, Fraction(1, 10)), (1000, Fraction(1, 100))]
SHAPES = [(8, 1), (9, 8), (64, 4), (512, 7), (512, 16), (1024, 64)]  # (m, m')


def checked(scores: Any) -> Scores:
    return as_scores("scores", scores)


# ---- the kernel -----------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 7, 100, 10_000])
def test_binomial_means_agree_with_scipy(m: int) -> None:
    rng = np.random.default_rng(m)
    inner = np.concatenate([rng.uniform(0, 1, 20), 10.0 ** -np.arange(1, 301, 60)])
    p = np.concatenate([[0.0], inner, 1 - inner[:20], [1.0]])
    q = np.concatenate([[1.0], 1 - inner, inner[:20], [0.0]])
    w = np.sort(rng.uniform(0, 1, m + 1))[::-1].copy()
    out = np.empty_like(p)
    binomial_means(w, p, q, out)
    exact = np.array([stats.binom.pmf(np.arange(m + 1), m, x) @ w for x in p])
    np.testing.assert_allclose(out, exact, rtol=0, atol=2e-11 if m > 1000 else 1e-13)


@pytest.mark.parametrize("m", [3, 1000, 100_000])
def test_binomial_means_of_linear_weights_are_exact(m: int) -> None:
    p = np.concatenate([np.linspace(0, 1, 101), 10.0 ** -np.arange(3, 300, 9)])
    out = np.empty_like(p)
    binomial_means(np.arange(m + 1) / m, p, 1 - p, out)
    np.testing.assert_allclose(out, p, rtol=0, atol=1e-13)


# ---- condition (Q) --------------------------------------------------------------------------


def finer(curve: Curve) -> Curve:
    """Ten cells for each, also where the certificate is that of another grid."""
    inner = curve.z[1:-1]
    parts = inner[:-1, None] + np.diff(inner)[:, None] * np.arange(10) / 10
    return Curve(curve.certificate, np.concatenate([[-np.inf], parts.ravel(), [inner[-1], np.inf]]))


@pytest.mark.parametrize("certificate", CERTIFICATES.values(), ids=CERTIFICATES)
@pytest.mark.parametrize(("m", "m_test"), SHAPES)
def test_condition_q_on_a_grid_ten_times_finer(
    certificate: Certificate, m: int, m_test: int
) -> None:
    for n, alpha in LEVELS:
        weights = choose_weights(certificate, n, m, m_test, alpha)
        curve = finer(weights.condition.curve)
        v = curve.prediction_failures(weights.k, m_test)
        assert np.all(v <= curve.expected(weights.values) + 1e-10), (n, alpha)
        assert not np.any(np.diff(weights.losses) > 0)
        p = np.concatenate([np.random.default_rng(0).uniform(0, 1, 60), [1e-9, 1 - 1e-9]])
        mean = stats.binom.pmf(np.arange(m + 1), m, p[:, None]) @ weights.values
        refused = stats.binom.cdf(weights.k - 1, m_test, np.asarray(certificate.lower(p)))
        assert np.all(refused <= mean + 1.1e-10), (n, alpha)


def test_the_plain_choice_without_a_lift_is_refused() -> None:
    """The test above can fail: the plain losses are below v where v is concave."""
    curve = Curve.around(CERTIFICATES["gaussian"], 12, 16, 16)
    v = curve.prediction_failures(8, 16)
    plain = np.interp(np.arange(65) / 64, curve.p, v)
    assert np.any(v > curve.expected(plain) + 1e-3)
    with pytest.raises(ValueError, match=r"`losses` must allow k = 8"):
        make_weights(curve, 8, 16, plain)


def test_bad_losses_are_refused() -> None:
    curve = Curve.around(CERTIFICATES["gaussian"], 3, 4, 4)
    with pytest.raises(
        ValueError, match=r"must not increase with the count, got 0 at 1 and \d+ at"
    ):
        make_weights(curve, 1, 4, np.array([1.0, 0.0, 0.5, 0.0]))
    units = np.array([2**50, 0])
    with pytest.raises(ValueError, match=r"`losses` must be in \[0, \d+\], got 0 to"):
        CountWeights(1, 4, units, MeanLoss(curve, units * UNIT))


@pytest.mark.parametrize("m_test", [8, 16, 64])
def test_fitted_losses_beat_the_plain_ones(m_test: int) -> None:
    certificate = CERTIFICATES["gaussian"]
    weights = choose_weights(certificate, 200, 512, m_test, Fraction(1, 10))
    curve = weights.condition.curve
    v = curve.prediction_failures(weights.k, m_test)
    plain = _weights._lifted(curve, v, np.interp(np.arange(513) / 512, curve.p, v))
    assert 10 * weights.values[-1] < plain[-1]


def test_more_samples_never_make_a_rule_trivial() -> None:
    for certificate in CERTIFICATES.values():
        for m_test in (1, 2, 3, 4, 8, 16):
            for n, alpha in LEVELS:
                rule = choose(certificate, n, m_test, m_test, alpha)
                weights = choose_weights(certificate, n, 4 * m_test, m_test, alpha)
                assert rule.k == 0 or not weights.is_trivial(n, alpha)


def test_many_calibration_samples_serve_where_few_are_trivial() -> None:
    certificate = bincp.certify(S.Gaussian(1.0), B.L2(1.0))
    assert choose(certificate, 1000, 1, 1, Fraction(1, 100)).k == 0
    weights = choose_weights(certificate, 1000, 512, 1, Fraction(1, 100))
    assert weights.k == 1
    assert not weights.is_trivial(1000, Fraction(1, 100))


# ---- special cases --------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "m_test", "t"), [(16, 16, 12), (5, 3, 4), (32, 8, 20)])
def test_rank_weights_reproduce_the_p_fixed_rule(m: int, m_test: int, t: int) -> None:
    certificate, n, alpha = CERTIFICATES["gaussian"], 39, Fraction(1, 8)
    rng = np.random.default_rng(m)
    for rank in (3, 4):
        share = Fraction(rank, n + 1)
        k = largest_valid_count(certificate, t=t, rank=rank, n=n, m=m, m_test=m_test, alpha=alpha)
        curve = Curve.around(certificate, t, m, m_test, points=6000)
        slope = MeanFailure(curve, t, m, share, alpha).slope(curve.prediction_failures(k, m_test))
        # A binary fraction, so that the sum that decides has no rounding.
        slope = float(np.round(slope * 2**20)) / 2**20
        intercept = float(alpha - Fraction(slope) * share)
        v = curve.prediction_failures(k, m_test)
        if np.max(v[:-1] - intercept - slope * curve.calibration_failures(t, m)[1:]) > 1e-11:
            k -= 1  # the line was rounded
        assert k > 0
        fails = (np.arange(m + 1) < t).astype(np.float64)
        weights = make_weights(curve, k, m_test, intercept + slope * fails)
        for _ in range(20):
            scores = rng.integers(0, 30, (n, m)).astype(np.float32)
            assert select_threshold_by_weights(checked(scores), weights, alpha) == select_threshold(
                checked(scores), t, rank
            )


def test_subsample_losses_have_the_mean_of_the_smaller_rule() -> None:
    certificate, n, m, m_test, alpha = CERTIFICATES["sparse-flip"], 150, 100, 64, Fraction(1, 10)
    rule = choose(certificate, n, m_test, m_test, alpha)
    curve = Curve.around(certificate, rule.t, m_test, m_test)
    losses = _weights._subsample_losses(Setup(certificate, n, m, m_test, alpha), curve, rule)
    slope = (losses[0] - losses[-1]) / 1.0
    u = stats.binom.cdf(rule.t - 1, m_test, curve.p)
    np.testing.assert_allclose(curve.expected(losses), losses[-1] + slope * u, rtol=0, atol=1e-11)


# ---- the threshold --------------------------------------------------------------------------


def brute_force(scores: Any, losses: list[int], budget: int) -> float:
    """Try every score."""
    allowed = [-np.inf]
    for tau in np.unique(scores):
        counts = [int(np.sum(row >= tau)) for row in scores]
        if sum(losses[count] for count in counts) <= budget:
            allowed.append(float(tau))
    return max(allowed)


@st.composite
def problems(draw: Any) -> tuple[Any, list[int], int]:
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 10))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    values = st.sampled_from([-np.inf, np.inf, -0.0, 0.0]) | st.integers(-6, 6).map(float)
    scores = draw(st.lists(values, min_size=n * m, max_size=n * m))
    losses = sorted(draw(st.lists(st.integers(0, 50), min_size=m + 1, max_size=m + 1)))[::-1]
    budget = draw(st.integers(n * losses[-1], max(n * losses[0] - 1, n * losses[-1])))
    return np.array(scores, dtype).reshape(n, m), losses, budget


@settings(deadline=None, max_examples=400)
@given(problems())
def test_threshold_against_brute_force(problem: tuple[Any, list[int], int]) -> None:
    scores, losses, budget = problem
    found = _weights._largest_within(checked(scores), np.array(losses, np.int64), budget)
    if budget >= len(scores) * losses[0]:
        assert found == np.inf
    else:
        assert found == brute_force(scores, losses, budget)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("seed", range(6))
def test_threshold_of_larger_arrays(seed: int, order: Any) -> None:
    """So many scores that only a sample is searched; some with ties, some with rows alike."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(70, 300)), int(rng.integers(40, 200))
    scores = rng.normal(rng.normal(0, [0, 1, 5][seed % 3], (n, 1)), 1, (n, m)).astype(np.float32)
    if seed % 2:
        scores = np.round(scores)
    scores = np.asarray(scores, order=order)
    losses = np.sort(rng.integers(0, 2**36, m + 1))[::-1].copy()
    for share in (0.02, 0.3, 0.9):
        budget = int(n * (losses[-1] + share * (losses[0] - losses[-1])))
        found = _weights._largest_within(checked(scores), losses, budget)
        above = scores[scores > found]
        following = float(above.min()) if above.size else np.inf
        total = [int(losses[np.sum(scores >= x, axis=1)].sum()) for x in (found, following)]
        assert total[0] <= budget < total[1]
        assert found in scores


def test_nan_is_refused() -> None:
    weights = choose_weights(CERTIFICATES["gaussian"], 40, 16, 4, Fraction(1, 10))
    for shape in ((40, 16), (1, 2)):
        scores = np.random.default_rng(0).normal(size=shape)
        scores[-1, -1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            _weights._largest_within(checked(scores), weights.losses, 2**36)


def test_too_few_points_accept_everything() -> None:
    weights = choose_weights(CERTIFICATES["gaussian"], 5, 16, 4, Fraction(1, 10))
    assert (
        select_threshold_by_weights(checked(np.zeros((5, 16))), weights, Fraction(1, 10)) == -np.inf
    )


# ---- coverage -------------------------------------------------------------------------------


def exact_coverage(weights: CountWeights, n: int, alpha: Fraction, p: Array, law: Array) -> float:
    """Scores are 0 or 1, and 1 with a probability P that has the given law.

    tau is 1 if the losses of the n counts stay within the budget, which is decided by the law of
    their sum, and 0, which accepts everything, if not.
    """
    m = len(weights.losses) - 1
    count_law = law @ stats.binom.pmf(np.arange(m + 1), m, p[:, None])
    totals: dict[int, float] = {0: 1.0}
    for _ in range(n):
        following: dict[int, float] = defaultdict(float)
        for total, mass in totals.items():
            for loss, share in zip(weights.losses.tolist(), count_law, strict=True):
                if total + loss <= weights.budget(n, alpha):
                    following[total + loss] += mass * float(share)
        totals = following
    reached = sum(totals.values())
    lowered = np.asarray(weights.condition.curve.certificate.lower(p))
    refused = law @ stats.binom.cdf(weights.k - 1, weights.m_test, lowered)
    return float(1 - reached * refused)


@pytest.mark.parametrize("certificate", CERTIFICATES.values(), ids=CERTIFICATES)
@pytest.mark.parametrize(("n", "alpha"), [(4, Fraction(3, 10)), (9, Fraction(2, 10))])
def test_exact_coverage_of_small_populations(
    certificate: Certificate, n: int, alpha: Fraction
) -> None:
    weights = choose_weights(certificate, n, 4, 2, alpha)
    worst = 1.0
    for low in (0.0, 0.3, 0.6, 0.8):
        for high in (0.85, 0.95, 1.0):
            for share in (0.0, 0.05, 0.15, 0.3, 0.6):
                p, law = np.array([low, high]), np.array([share, 1 - share])
                worst = min(worst, exact_coverage(weights, n, alpha, p, law))
    assert worst >= 1 - alpha - 1e-9
    assert weights.k == 0 or worst < 1 - alpha / 6  # the populations are hard enough
