"""Thresholds from sums of losses against brute force, and the exact coverage that they leave."""

import re
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
from bincp.calibration._curve import Array
from bincp.calibration._losses import (
    _largest_within,
    accept_all,
    budget_of,
    complaint,
    select_threshold_by_losses,
)
from bincp.calibration._search import Price, Rule
from bincp.certificates import Certificate
from support import choose

S, B = bincp.smoothing, bincp.balls
CERTIFICATES = {
    "identity": bincp.certify(S.Gaussian(1.0), B.L2(0)),
    "gaussian": bincp.certify(S.Gaussian(1.0), B.L2(0.25)),
    "gaussian-far": bincp.certify(S.Gaussian(1.0), B.L2(2.0)),
    "uniform": bincp.certify(S.Uniform(0.5), B.L1(0.1)),
    "sparse-flip": bincp.certify(S.SparseFlip(0.01, 0.6), B.Flips(1, 2)),
}


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
    found = _largest_within(checked(scores), np.array(losses, np.int64), budget)
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
        found = _largest_within(checked(scores), losses, budget)
        above = scores[scores > found]
        following = float(above.min()) if above.size else np.inf
        total = [int(losses[np.sum(scores >= x, axis=1)].sum()) for x in (found, following)]
        assert total[0] <= budget < total[1]
        assert found in scores


def test_nan_is_refused() -> None:
    losses = np.arange(16, -1, -1) * 2**30
    for shape in ((40, 16), (1, 2)):
        scores = np.random.default_rng(0).normal(size=shape)
        scores[-1, -1] = np.nan
        for budget in (2**36, 0):
            with pytest.raises(ValueError, match="NaN"):
                _largest_within(checked(scores), losses[-shape[1] - 1 :], budget)
        with pytest.raises(ValueError, match="NaN"):
            select_threshold_by_losses(checked(scores), losses + 2**40, Fraction(1, 10))


def test_too_few_points_accept_everything() -> None:
    losses = np.array([2**36] * 12 + [2**20] * 5)
    scores = checked(np.zeros((5, 16)))
    assert select_threshold_by_losses(scores, losses, Fraction(1, 10)) == -np.inf
    assert accept_all(losses, 5, Fraction(1, 10))
    assert not accept_all(losses, 12, Fraction(1, 10))


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([3, 2, 1], "there must be m \\+ 1 = 4 losses, got 3"),
        ([3, 2, 1, -1], "losses must be in"),
        ([2**43, 2, 1, 0], "losses must be in"),
        ([3, 1, 2, 0], "must not increase, got 2 after 1 at 2"),
    ],
)
def test_bad_losses_are_named(losses: list[int], message: str) -> None:
    assert re.search(message, complaint(losses, 3) or "")
    assert complaint([3, 2, 1, 0], 3) is None


# ---- coverage -------------------------------------------------------------------------------


def exact_coverage(
    rule: Rule, certificate: Certificate, n: int, alpha: Fraction, p: Array, law: Array
) -> float:
    """Scores are 0 or 1, and 1 with a probability P that has the given law.

    tau is 1 if the losses of the n counts stay within the budget, which is decided by the law of
    their sum, and 0, which accepts everything, if not.
    """
    assert rule.losses is not None
    m, budget = len(rule.losses) - 1, budget_of(rule.losses, n, alpha)
    count_law = law @ stats.binom.pmf(np.arange(m + 1), m, p[:, None])
    totals: dict[int, float] = {0: 1.0}
    for _ in range(n):
        following: dict[int, float] = defaultdict(float)
        for total, mass in totals.items():
            for loss, share in zip(rule.losses.tolist(), count_law, strict=True):
                if total + loss <= budget:
                    following[total + loss] += mass * float(share)
        totals = following
    reached = sum(totals.values())
    accepted = law @ rule.test.rule.acceptance(np.asarray(certificate.lower(p)))
    return float(1 - reached * (1 - accepted))


@pytest.mark.parametrize("price", [Price(early=False), Price()], ids=["fixed", "early"])
@pytest.mark.parametrize(("n", "alpha"), [(4, Fraction(3, 10)), (9, Fraction(2, 10))])
def test_exact_coverage_of_small_populations(n: int, alpha: Fraction, price: Price) -> None:
    with_losses = 0
    for certificate in CERTIFICATES.values():
        rule = choose(certificate, n, 4, 2, alpha, price=price)
        if rule.losses is None:
            continue
        with_losses += 1
        worst = 1.0
        for low in (0.0, 0.3, 0.6, 0.8):
            for high in (0.85, 0.95, 1.0):
                for share in (0.0, 0.05, 0.15, 0.3, 0.6):
                    p, law = np.array([low, high]), np.array([share, 1 - share])
                    worst = min(worst, exact_coverage(rule, certificate, n, alpha, p, law))
        assert worst >= 1 - alpha - 1e-9
        assert worst < 1 - alpha / 6  # the populations are hard enough
    assert with_losses > 0
