"""The mixture correction: the largest k that no population can make miss too often.

For a success rank t, a rank j and samples m and m', a label is refused with probability
P[Bin(m', c(p)) < k] at most, and a calibration point lies below its threshold with probability
P[Bin(m, p) < t]. Calibration bounds the mean of the second by j / (n + 1); the rule is valid iff
the mean of the first is then at most alpha for every law of p, that is, iff the upper concave
envelope of the curve of the two is at most alpha at j / (n + 1). No confidence interval and no
union bound is spent. The proof is in the notes of `bincp.BinCP`.

Where tau is fixed instead, t is an observed count, and the line over the curve is fixed in advance.
"""

import math
from fractions import Fraction
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy import special

from bincp._core._binomial import cp_upper
from bincp._core._mixture import binomial_means, failures, normal_probabilities
from bincp._utils.bisection import last_integer
from bincp._utils.levels import conformal_rank, float_below, success_rank
from bincp.calibration._conditions import FixedSlope, MeanFailure, Requirement, largest_count
from bincp.calibration._curve import Array, Curve
from bincp.certificates import Certificate


def share_of_failures(rank: int, n: int, delta: Fraction | None = None) -> Fraction:
    """Return what a rank bounds: the mean failure of a further point below the rank-th of n.

    j / (n + 1), over the calibration set as well. With ``delta``, the 1 - delta quantile of
    Beta(j, n + 1 - j): given the calibration set, and for all but a share delta of those.
    """
    if delta is None:
        return Fraction(rank, n + 1)
    # That quantile is the Clopper-Pearson bound for one success less.
    return Fraction(cp_upper(rank - 1, n, float_below(delta)))


def top_rank(n: int, alpha: Fraction, delta: Fraction | None = None) -> int:
    """Return the largest rank that leaves a share of at most alpha to failures."""
    if delta is None:
        return conformal_rank(alpha, n)
    return last_integer(lambda rank: share_of_failures(rank, n, delta) <= alpha, 1, n)


def largest_valid_count(
    certificate: Certificate,
    *,
    t: int,
    rank: int,
    n: int,
    m: int,
    m_test: int,
    alpha: Fraction,
    delta: Fraction | None = None,
) -> int:
    """Return the largest k for which a p-fixed rule has coverage at least 1 - alpha - 1e-10."""
    if rank == 0:
        return 0
    share = share_of_failures(rank, n, delta)
    curve = Curve.around(certificate, t, m, m_test)
    k, _ = largest_count(MeanFailure(curve, t, m, share, alpha), m_test)
    if curve.is_identity and m == m_test and share <= alpha:
        return max(k, t)  # then u = v at every p, and no grid can show it
    return k


# ---- tau fixed: t observed --------------------------------------------------------------------


def tau_fixed_count(
    certificate: Certificate,
    t_observed: int,
    rank: int,
    n: int,
    m: int,
    m_test: int,
    alpha: Fraction,
    delta: Fraction | None = None,
) -> tuple[int, Requirement | None]:
    """Return the largest k that keeps the coverage, and the requirement that it meets.

    ``t_observed`` is the ``rank``-th smallest count of the calibration points at the fixed tau.
    The requirement is None where it would be met by no rule but to accept everything.
    """
    if rank == 0 or t_observed == 0:
        return 0, None
    share = share_of_failures(rank, n, delta)
    slope = _fixed_slope(certificate, share, m, m_test, alpha)
    curve = Curve.around(certificate, t_observed, m, m_test)
    k, requirement = largest_count(FixedSlope(curve, t_observed, m, share, alpha, slope), m_test)
    if curve.is_identity and m == m_test and share <= alpha:
        k = max(k, t_observed)  # then u = v at every p, and no grid can show it
    return k, requirement


def _fixed_slope(
    certificate: Certificate, share: Fraction, m: int, m_test: int, alpha: Fraction
) -> float:
    """Return a slope that depends on nothing observed.

    alpha / (j / (n + 1)), the line through the origin, unless labels are refused even at p = 1 or
    m and m' differ, so that u and v vanish at different rates; then the line that is best for a
    typical t.
    """
    if certificate.lower(1.0) == 1.0 and m == m_test:
        return float(alpha / share)
    t = success_rank(_TYPICAL, m)
    curve = Curve.around(certificate, t, m, m_test)
    k, requirement = largest_count(MeanFailure(curve, t, m, share, alpha), m_test)
    assert isinstance(requirement, MeanFailure)
    return requirement.slope(requirement.curve.prediction_failures(k, m_test))


# ---- the free choices: t and j, fixed without looking at scores ------------------------------

MANY = 8
_TYPICAL = Fraction(7, 10)
_WORTH = Fraction(2, 100)  # of m': what k must gain for the next smaller j


class RankRule(NamedTuple):
    """A p-fixed rule: tau is the rank-th smallest t-th largest score, k successes are accepted."""

    t: int
    rank: int
    k: int


def choose(
    certificate: Certificate,
    n: int,
    m: int,
    m_test: int,
    alpha: Fraction,
    p: Fraction | None = None,
    delta: Fraction | None = None,
) -> RankRule:
    """Choose t (unless ``p`` gives it), the rank j and k, from the arguments alone.

    From 8 samples on, j = floor(alpha (n + 1)), or one less where that raises k by more than 2% of
    m', or the largest that allows k >= 1. With fewer samples k is so coarse that j is fitted to it,
    see `_best_rank`.
    """
    t = default_success_rank(certificate, m) if p is None else success_rank(p, m)
    top = top_rank(n, alpha, delta)
    if top == 0:
        return RankRule(t, 0, 0)

    def count(rank: int) -> int:
        return largest_valid_count(
            certificate, t=t, rank=rank, n=n, m=m, m_test=m_test, alpha=alpha, delta=delta
        )

    if m < MANY:
        rank = _best_rank(certificate, t, n, m, m_test, alpha, delta)
        k = count(rank)
        while k > 0 and rank < top and count(rank + 1) >= k:  # on a finer grid than the comparison
            rank += 1
        return RankRule(t, rank, k)
    k = count(top)
    if k == 0:
        rank = max(1, last_integer(lambda j: count(j) > 0, 1, top - 1))
        return RankRule(t, rank, count(rank))
    if top > 1 and (smaller := count(top - 1)) - k > _WORTH * m_test:
        return RankRule(t, top - 1, smaller)
    return RankRule(t, top, k)


def default_success_rank(certificate: Certificate, m: int) -> int:
    """Return t for m samples: a share that grows with the strength of the attack."""
    if m <= 2:
        return m
    share = default_p(certificate, m)
    return success_rank(share if share in _HIGH or m >= MANY else _TYPICAL, m)


def default_p(certificate: Certificate, m: int) -> Fraction:
    """Return the share of scores above a point's threshold that wants fewest wrong labels.

    It is 0.6, 0.7 or 0.8 for delta = Phi^-1(0.75) - Phi^-1(c(0.75)) <= 1/4, between, >= 1, where
    delta is r / sigma for Gaussian noise. Certificates of few regions may take far less from
    larger shares: then it is 0.9 or, from m = 21 on, where that leaves a score to spare, 0.95.
    """
    certified = certificate.lower(0.75)
    if certified >= _AT_A_QUARTER:
        share = Fraction(3, 5)
    else:
        share = Fraction(7, 10) if certified > _AT_ONE else Fraction(4, 5)
    for high in _HIGH:
        spares_one = success_rank(high, m) < m or high == _HIGH[0]
        if spares_one and _loss(certificate, high) < _loss(certificate, share) - _WORTH_MORE:
            share = high
    return share


def _loss(certificate: Certificate, share: Fraction) -> float:
    """Return what an attack takes from a share, in standard deviations of a normal score."""
    p = float_below(share)
    return float(special.ndtri(p) - special.ndtri(certificate.lower(p)))


_HIGH = (Fraction(9, 10), Fraction(19, 20))
_WORTH_MORE = 0.2  # standard deviations; what a higher share costs where the loss is even

# Phi(Phi^-1(0.75) - 1/4) and Phi(Phi^-1(0.75) - 1), a little outward.
_AT_A_QUARTER = 0.664394
_AT_ONE = 0.372400


# ---- few samples: the j that fits k -----------------------------------------------------------

_COUNTS = 64  # values of k that are tried


def _best_rank(
    certificate: Certificate,
    t: int,
    n: int,
    m: int,
    m_test: int,
    alpha: Fraction,
    delta: Fraction | None,
) -> int:
    """Return the rank whose rule accepts fewest wrong labels in the reference population.

    For each k the largest rank that allows it; a larger rank at equal k only gives smaller sets.
    """
    curve = Curve.around(certificate, t, m, m_test)
    failing = reference().failures(t, m)
    top = top_rank(n, alpha, delta)
    exact = t if curve.is_identity and m == m_test else 0  # see `largest_valid_count`

    def allows(v: Array, rank: int) -> bool:
        return MeanFailure(curve, t, m, share_of_failures(rank, n, delta), alpha).allows(v)

    best, fewest = 1, math.inf
    for k in np.unique(np.linspace(1, m_test, min(m_test, _COUNTS)).astype(int)).tolist():
        v = curve.prediction_failures(k, m_test)
        rank = top if k <= exact else last_integer(partial(allows, v), 1, top)
        if rank == 0:
            break  # nor does any larger k
        accepted = reference().wrong_labels(failing, rank / (n + 1), k, m_test)
        if accepted < fewest:
            best, fewest = rank, accepted
    return best


class _Reference:
    """A population to compare rules in before there are any data: clean inputs, Gaussian scores.

    Success probabilities are Phi(z). Over the inputs z is Gaussian with variance 1; for a wrong
    label it is lower by `GAP`. Where its centre lies for the true label depends on tau, and so on
    the rule. Arrays hold one value for each centre.
    """

    GAP = 2.0

    def __init__(self) -> None:
        self._centres = np.linspace(-9, 9, 181)
        z = np.linspace(-14, 14, 281)
        self._p, self._q = np.empty_like(z), np.empty_like(z)
        normal_probabilities(z, self._p, self._q)
        law = np.exp(-((self._centres[:, None] - z) ** 2) / 2)
        self._law = law / law.sum(axis=1, keepdims=True)

    def failures(self, t: int, m: int) -> Array:
        """P[Bin(m, p) < t] in the mean."""
        out = np.empty_like(self._p)
        failures(t, m, self._p, self._q, out)
        return self._mean(out)

    def expected(self, losses: Array) -> Array:
        """E[losses[S]] in the mean, S ~ Bin(m, p)."""
        out = np.empty_like(self._p)
        binomial_means(losses, self._p, self._q, out)
        return self._mean(out)

    def _mean(self, values: Array) -> Array:
        return np.asarray(self._law @ values)

    def wrong_labels(self, loss: Array, budget: float, k: int, m_test: int) -> float:
        """Share of wrong labels that k accepts, where tau makes the mean ``loss`` the budget."""
        centre = np.interp(-budget, -loss, self._centres)
        refused = np.interp(centre - self.GAP, self._centres, self.failures(k, m_test))
        return float(1 - refused)


@cache
def reference() -> _Reference:
    """Return the reference population."""
    return _Reference()
