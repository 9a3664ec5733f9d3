"""The worst-case miscoverage of a p-fixed rule, enclosed with 40 digits.

For shift-by-delta Gaussian certificates, c(Phi(z)) = Phi(z - delta). The population in the worst
case mixes success probabilities such that the mean of u(p) = P[Bin(m, p) < t] is x = j / (n + 1),
and makes the mean of v(p) = P[Bin(m', c(p)) < k] as large as it can. Both means are linear in the
law of p, so two success probabilities are enough, and a line over the curve (u, v) proves that no
law does better. The pair is a lower bound and the line an upper one; they meet.
"""

import math
from typing import NamedTuple

import mpmath
import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]

_Z = np.linspace(-20, 20, 8001)


class Rule(NamedTuple):
    """A p-fixed rule; the certificate is that of Gaussian noise at r / sigma = delta."""

    delta: float
    t: int
    k: int
    m: int
    m_test: int


def miscoverage(rule: Rule, x: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return the lower and the upper bound on the largest mean of v where that of u is x."""
    with mpmath.workdps(40):
        low, high = _slopes(rule, float(x))
        line = mpmath.mpf((low + high) / 2)
        peaks = [(u, v) for slope in (low, high) for u, v in _candidates(rule, slope)]
        candidates = [*peaks, *_candidates(rule, float(line)), _level(rule, x)]
        upper = line * x + max(v - line * u for u, v in candidates)
        lower = mpmath.mpf(0)
        for u, v in candidates:
            for other, w in candidates:
                if u <= x < other:
                    lower = max(lower, v + (w - v) * (x - u) / (other - u))
                elif u == x:
                    lower = max(lower, v)
        return lower, upper


def _slopes(rule: Rule, x: float) -> tuple[float, float]:
    """Return two neighbouring slopes, the highest points of which lie on both sides of x."""
    low, high = 0.0, 1.0
    while _peak(rule, high) > x:
        low, high = high, 2 * high
    for _ in range(70):
        middle = (low + high) / 2
        if _peak(rule, middle) > x:
            low = middle
        else:
            high = middle
    return low, high


def _peak(rule: Rule, slope: float) -> float:
    """Return u where v - slope u is largest, in doubles."""
    z = np.concatenate([[-np.inf], _roots(rule, slope), [np.inf]])
    u = _below(rule.t, rule.m, z)
    return float(u[np.argmax(_below(rule.k, rule.m_test, z - rule.delta) - slope * u)])


def _below(k: int, m: int, z: Array) -> Array:
    return np.asarray(special.betainc(m - k + 1, k, special.ndtr(-z)))


def _log_ratio(rule: Rule, z: Array) -> Array:
    """Return log(v' / u'), the derivatives with respect to z."""
    delta, t, k, m, m_test = rule
    return np.asarray(
        (k - 1) * special.log_ndtr(z - delta) + (m_test - k) * special.log_ndtr(delta - z)
        - (t - 1) * special.log_ndtr(z) - (m - t) * special.log_ndtr(-z)
        + delta * z - delta**2 / 2 + special.betaln(t, m - t + 1)
        - special.betaln(k, m_test - k + 1)
    )  # fmt: skip


def _roots(rule: Rule, slope: float) -> Array:
    """Return where v - slope u has no derivative left: between two points of a fine grid."""
    if slope == 0:
        return np.empty(0)
    excess = _log_ratio(rule, _Z) - math.log(slope)
    i = np.flatnonzero(np.sign(excess[:-1]) != np.sign(excess[1:]))
    low, high = _Z[i], _Z[i + 1]
    start = np.sign(excess[i])
    for _ in range(50):
        middle = (low + high) / 2
        left = np.sign(_log_ratio(rule, middle) - math.log(slope)) == start
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return np.asarray((low + high) / 2)


def _candidates(rule: Rule, slope: float) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Return the points of the curve that may be highest above a line of this slope."""
    ends = [(mpmath.mpf(0), mpmath.mpf(0)), (mpmath.mpf(1), mpmath.mpf(1))]
    return ends + [_point(rule, mpmath.mpf(float(z))) for z in _roots(rule, slope)]


def _point(rule: Rule, z: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    return _failure(rule.t, rule.m, z), _failure(rule.k, rule.m_test, z - mpmath.mpf(rule.delta))


def _failure(k: int, m: int, z: mpmath.mpf) -> mpmath.mpf:
    """P[Bin(m, Phi(z)) < k] as a sum of its terms."""
    p, q = mpmath.ncdf(z), mpmath.ncdf(-z)
    return mpmath.fsum(mpmath.binomial(m, s) * p**s * q ** (m - s) for s in range(k))


def _level(rule: Rule, x: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return the point of the curve with u = x."""
    q = mpmath.mpf(float(special.betaincinv(rule.m - rule.t + 1, rule.t, float(x))))
    u = mpmath.fsum(
        mpmath.binomial(rule.m, s) * (1 - q) ** s * q ** (rule.m - s) for s in range(rule.t)
    )
    z = -mpmath.sqrt(2) * mpmath.erfinv(2 * q - 1)
    return u, _failure(rule.k, rule.m_test, z - mpmath.mpf(rule.delta))
