"""Conditions on prediction: fixed slopes on finer grids, p-fixed choices, tightness."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import bincp
from bincp._utils.levels import conformal_rank, success_rank
from bincp.calibration._conditions import Condition, FixedSlope, MeanFailure
from bincp.calibration._curve import Array, Curve
from bincp.certificates import Certificate
from support import choose, largest_valid_count, tau_fixed_count

S, B = bincp.smoothing, bincp.balls
CERTIFICATES = {
    "identity": bincp.certify(S.Gaussian(1.0), B.L2(0)),
    "gaussian": bincp.certify(S.Gaussian(1.0), B.L2(0.25)),
    "gaussian-far": bincp.certify(S.Gaussian(1.0), B.L2(1.5)),
    "uniform": bincp.certify(S.Uniform(0.5), B.L1(0.1)),
    "sparse-flip": bincp.certify(S.SparseFlip(0.01, 0.6), B.Flips(1, 2)),
}
each_certificate = pytest.mark.parametrize(
    "certificate", CERTIFICATES.values(), ids=list(CERTIFICATES)
)


def fine_probabilities() -> Array:
    z = np.linspace(-9, 9, 6001)
    return np.concatenate([[0.0], stats.norm.cdf(z), [1.0]])


# ---- tau fixed ------------------------------------------------------------------------------


@each_certificate
@pytest.mark.parametrize(
    ("n", "alpha", "m", "m_test"),
    [
        (9, Fraction(3, 10), 12, 12),
        (200, Fraction(1, 10), 16, 16),
        (200, Fraction(1, 10), 12, 40),
        (1000, Fraction(1, 100), 20, 5),
    ],
)
def test_fixed_slope_holds_for_every_observed_count(
    certificate: Certificate, n: int, alpha: Fraction, m: int, m_test: int
) -> None:
    rank = conformal_rank(alpha, n)
    p = fine_probabilities()  # ten times as many as the rule looks at, and not the same
    lowered = np.asarray(certificate.lower(p))
    counts, slopes = [], set()
    for t in range(m + 1):
        k, condition = tau_fixed_count(certificate, t, rank, n, m, m_test, alpha)
        counts.append(k)
        u = stats.binom.cdf(t - 1, m, p)
        v = stats.binom.cdf(k - 1, m_test, lowered)
        if condition is None:
            assert k == 0
            continue
        assert isinstance(condition, FixedSlope)
        slopes.add(condition.slope)
        intercept = float(alpha - Fraction(condition.slope) * Fraction(rank, n + 1))
        assert np.all(v <= intercept + condition.slope * u + 1e-9)
        if k < m_test and certificate is not CERTIFICATES["sparse-flip"]:
            beyond = stats.binom.cdf(k, m_test, lowered)
            assert np.any(beyond > intercept + condition.slope * u - 1e-6)  # tight
    assert all(a <= b for a, b in pairwise(counts))
    assert len(slopes) <= 1  # nothing observed went into it
    if certificate.lower(1.0) == 1 and m == m_test:
        assert slopes == {float(alpha * (n + 1) / rank)}


def coverage_with_tau_fixed(
    counts: Array, certificate: Certificate, n: int, rank: int, m_test: int, p: Array, law: Array
) -> float:
    """Coverage for i.i.d. points whose success probability at tau has a discrete law; exact.

    The rank-th smallest of n counts is at most s iff at least rank counts are.
    """
    m = len(counts) - 1
    below = np.minimum(np.cumsum(law @ stats.binom.pmf(np.arange(m + 1), m, p[:, None])), 1)
    observed = np.diff(np.concatenate([[0.0], stats.binom.sf(rank - 1, n, below)]))
    lowered = np.asarray(certificate.lower(p))
    accepted = law @ stats.binom.sf(counts[None, :] - 1, m_test, lowered[:, None])
    return float(observed @ accepted)


@each_certificate
@pytest.mark.parametrize(("n", "alpha"), [(4, Fraction(1, 5)), (9, Fraction(1, 5))])
def test_exact_coverage_with_tau_fixed(certificate: Certificate, n: int, alpha: Fraction) -> None:
    m, rank = 8, conformal_rank(alpha, n)
    table = [tau_fixed_count(certificate, t, rank, n, m, m, alpha)[0] for t in range(m + 1)]
    rng = np.random.default_rng(0)

    def worst(counts: Any) -> float:
        rows = rng.uniform(0, 1, (300, 3))
        laws = rng.dirichlet([1, 1, 1], 300)
        return min(
            coverage_with_tau_fixed(np.asarray(counts), certificate, n, rank, m, p, law)
            for p, law in zip(rows, laws, strict=True)
        )

    assert worst(table) >= 1 - alpha - 1e-9
    # Two successes more are too many: the populations above would show it.
    if certificate is CERTIFICATES["identity"]:
        assert worst([min(k + 2, m) for k in table]) < 1 - alpha


def test_no_count_observed_accepts_everything() -> None:
    certificate = CERTIFICATES["gaussian"]
    assert tau_fixed_count(certificate, 0, 20, 200, 16, 16, Fraction(1, 10)) == (0, None)
    assert tau_fixed_count(certificate, 12, 0, 5, 16, 16, Fraction(1, 10)) == (0, None)


# ---- p fixed --------------------------------------------------------------------------------


def envelope(u: Array, v: Array, x: float) -> float:
    """The upper concave envelope of points at x, from all pairs of points around it."""
    left, right = u <= x, u > x
    rise = (v[right][None, :] - v[left][:, None]) / (u[right][None, :] - u[left][:, None])
    return float(np.max(v[left][:, None] + rise * (x - u[left][:, None])))


@each_certificate
@pytest.mark.parametrize(
    ("m", "m_test", "n", "alpha"),
    [(16, 16, 200, Fraction(1, 10)), (8, 64, 99, Fraction(1, 20)), (64, 8, 19, Fraction(3, 10))],
)
def test_mean_failure_is_valid_and_tight(
    certificate: Certificate, m: int, m_test: int, n: int, alpha: Fraction
) -> None:
    """Against SciPy's binomials and an envelope by all pairs."""
    t, rank = success_rank(Fraction(7, 10), m), conformal_rank(alpha, n)
    p = np.concatenate([[0.0], stats.norm.cdf(np.linspace(-8, 8, 1601)), [1.0]])
    u = stats.binom.cdf(t - 1, m, p)
    lowered = np.asarray(certificate.lower(p))
    k = largest_valid_count(certificate, t=t, rank=rank, n=n, m=m, m_test=m_test, alpha=alpha)

    def miscoverage(count: int) -> float:
        return envelope(u, stats.binom.cdf(count - 1, m_test, lowered), rank / (n + 1))

    assert miscoverage(k) <= alpha + 1e-9
    assert k == m_test or miscoverage(k + 1) > alpha - 1e-4  # the grid of this test is coarse


@each_certificate
@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 8, 16, 100])
def test_a_given_success_rank_takes_the_largest_rank_and_count(
    certificate: Certificate, m: int
) -> None:
    for n, alpha in [(9, Fraction(3, 10)), (200, Fraction(1, 10)), (1000, Fraction(1, 100))]:
        for m_test in (1, m, 50):
            t = success_rank(Fraction(7, 10), m)
            rule = choose(certificate, n, m, m_test, alpha, t=t)
            assert rule.losses is None
            if rule.is_trivial:
                continue
            assert rule.t == t
            assert rule.rank is not None
            assert 1 <= rule.rank <= conformal_rank(alpha, n)

            def count(
                rank: int, t: int = t, n: int = n, m_test: int = m_test, a: Any = alpha
            ) -> int:
                return largest_valid_count(
                    certificate, t=t, rank=rank, n=n, m=m, m_test=m_test, alpha=a
                )

            assert rule.test.k == count(rule.rank)
            top = rule.rank == conformal_rank(alpha, n)
            assert top or count(rule.rank + 1) < rule.test.k


def test_one_sample_takes_the_largest_rank_that_works() -> None:
    for certificate in CERTIFICATES.values():
        rule = choose(certificate, 200, 1, 1, Fraction(1, 10), t=1)
        ks = [
            largest_valid_count(
                certificate, t=1, rank=rank, n=200, m=1, m_test=1, alpha=Fraction(1, 10)
            )
            for rank in range(1, 21)
        ]
        assert rule.test.k == max(ks)
        assert rule.is_trivial or rule.rank == max(i + 1 for i, k in enumerate(ks) if k)


def test_no_rank_accepts_everything() -> None:
    assert choose(CERTIFICATES["gaussian"], 5, 16, 16, Fraction(1, 10)).is_trivial


# ---- the classes ----------------------------------------------------------------------------


def some_parts(curve: Curve) -> npt.NDArray[np.intp]:
    parts = np.ones(len(curve.z) - 1, np.intp)
    parts[100:200] = 4
    return parts


def conditions() -> list[Condition]:
    curve = Curve.around(CERTIFICATES["gaussian"], 12, 16, 16)
    share = Fraction(1, 10)
    return [
        MeanFailure(curve, 12, 16, share, share),
        FixedSlope(curve, 12, 16, share, share, 1.0),
    ]


@pytest.mark.parametrize("condition", conditions(), ids=lambda r: type(r).__name__)
def test_conditions_share_their_contract(condition: Condition) -> None:
    nothing, everything = np.zeros_like(condition.curve.z), np.ones_like(condition.curve.z)
    assert condition.allows(nothing)
    assert not condition.allows(everything)
    assert condition.parts(everything) is None  # the curve itself refuses
    finer = condition.curve.divided(some_parts(condition.curve))
    assert finer is not None
    assert condition.on(finer).curve is finer
    for k in range(17):
        v = condition.curve.prediction_failures(k, 16)
        if condition.allows(v):  # a finer grid allows no less
            assert condition.on(finer).allows(finer.prediction_failures(k, 16))


@pytest.mark.parametrize(
    ("r", "n", "alpha", "p", "k"),
    [
        (0.05, 5000, "1/20", "0.53", 51),
        (0.05, 5000, "1/100", "0.52", 50),
        (0.1, 20000, "1/100", "0.5", 46),
    ],
)
def test_the_grid_grows_as_far_as_a_count_needs(
    r: float, n: int, alpha: str, p: str, k: int
) -> None:
    # 38,000 to 232,000 points show k; a coarser grid stopped at k - 1.
    level = Fraction(alpha)
    largest = largest_valid_count(
        bincp.certify(S.Gaussian(1.0), B.L2(r)),
        t=success_rank(Fraction(p), 100),
        rank=conformal_rank(level, n),
        n=n,
        m=100,
        m_test=100,
        alpha=level,
    )
    assert largest == k


def test_a_grid_that_cannot_be_fine_enough_is_given_up_at_once() -> None:
    """v = u + 1/4 for one sample of this noise, and the share 3/8 uses up alpha = 5/8 exactly."""
    curve = Curve.around(bincp.certify(S.Uniform(0.5), B.L1(0.25)), 1, 1, 1)
    v = curve.prediction_failures(1, 1)
    full, level = Fraction(3, 8), Fraction(5, 8)
    assert not MeanFailure(curve, 1, 1, full, level).allows(v)
    assert MeanFailure(curve, 1, 1, full, level).parts(v) is None
    parts = MeanFailure(curve, 1, 1, full - Fraction(1, 10_000), level).parts(v)
    assert parts is not None
    assert parts.max() > 1
