"""A verdict on a rule for one way of testing: proven valid, or refuted by a population.

Nothing of the library is used but the bounds of the certificate. A label is refused at the worst
input with probability v(p), the sum over the paths that end in a refusal. The rule is valid iff
v(p) stays below a ceiling: the expected loss of a calibration point, or a line over the curve
(u, v), where u(p) is the probability that a calibration point fails. A cell of success
probabilities is proven if v at its left end is at most the ceiling at its right end, for both fall
from left to right; all other cells are halved. Every sum has positive terms, so it is exact up to
some 1e-13 of its value.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from bincp.errors import CertificateError

Array = npt.NDArray[np.float64]

TOLERANCE = 1e-10
ROUNDING = 2e-12  # of either side
_MOST_CELLS = 2**21
_MOST_LINES = 40
_START = np.concatenate(
    [[-np.inf], np.arange(-38.0, -8), np.arange(-8, 8.01, 1 / 16), np.arange(9.0, 39), [np.inf]]
)


@dataclass(frozen=True)
class Boundaries:
    """Accept at accept[l] hits after l draws, else refuse at reject[l], whichever comes first."""

    accept: tuple[int, ...]
    reject: tuple[int, ...]

    @property
    def draws(self) -> int:
        return len(self.accept) - 1

    def refusals(self) -> list[tuple[int, int, int]]:
        """Return (hits, misses, number of paths) of every refusal."""
        live, refused = {0: 1}, []
        for draws in range(self.draws + 1):
            if draws:
                after: dict[int, int] = {}
                for hits, paths in live.items():
                    for step in (0, 1):
                        after[hits + step] = after.get(hits + step, 0) + paths
                live = after
            for hits in list(live):
                if hits >= self.accept[draws]:
                    del live[hits]
                elif hits <= self.reject[draws]:
                    refused.append((hits, draws - hits, live.pop(hits)))
        assert not live
        return refused

    def by_hits(self) -> list[Fraction]:
        """Return the probability of refusal if s of the m' draws are hits, in random order."""
        m = self.draws
        return [
            sum(
                (
                    Fraction(paths * comb(m - hits - misses, s - hits), comb(m, s))
                    for hits, misses, paths in self.refusals()
                    if hits <= s and misses <= m - s
                ),
                Fraction(0),
            )
            for s in range(m + 1)
        ]


def probabilities(certificate: Any, z: Array) -> tuple[Array, Array]:
    """Return c and 1 - c at the success probability Phi(z)."""
    c = np.asarray(certificate.lower(special.ndtr(z)), dtype=np.float64)
    try:
        d = np.asarray(certificate.inverse().upper(special.ndtr(-z)), dtype=np.float64)
    except CertificateError:
        return c, 1 - c
    return np.where(d < 0.5, 1 - d, c), np.where(d < 0.5, d, 1 - c)


def refusal(boundaries: Boundaries, c: Array, d: Array) -> Array:
    """Return the probability of refusal where a draw is a hit with probability c = 1 - d."""
    total = np.zeros_like(c)
    for hits, misses, paths in boundaries.refusals():
        total += float(paths) * c**hits * d**misses
    return total


def mean(values: Array, z: Array) -> Array:
    """Return E[values[S]] >= 0 for S ~ Bin(m, Phi(z))."""
    m, p, q = len(values) - 1, special.ndtr(z), special.ndtr(-z)
    total = np.zeros_like(p)
    for s in np.flatnonzero(values):
        total += float(values[s]) * float(comb(m, int(s))) * p**s * q ** (m - s)
    return total


def losses_pay(certificate: Any, boundaries: Boundaries, losses: Array) -> bool:
    """Whether E[losses[Bin(m, p)]] >= v(p) - 1e-10 for every p, which is proven or refuted."""
    assert np.all(np.diff(losses) <= 0)
    assert losses[-1] >= 0
    exact = [Fraction(value) for value in losses.tolist()]
    if _is_identity(certificate) and _pays_by_hits(boundaries, exact):
        return True
    return _stays_below(
        lambda z: refusal(boundaries, *probabilities(certificate, z)), lambda z: mean(losses, z)
    )[0]


def ranks_hold(
    certificate: Any, boundaries: Boundaries, t: int, m: int, share: Fraction, alpha: Fraction
) -> bool:
    """Whether E[v] <= alpha + 1e-10 in every population with E[u] <= share.

    A line over the curve is the proof; two success probabilities on it are the population that
    refutes it. Where a point lies above the line, the line is laid over this point, too.
    """
    below = (np.arange(m + 1) < t).astype(np.float64)
    x = float(share)

    def v(z: Array) -> Array:
        return refusal(boundaries, *probabilities(certificate, z))

    points = np.concatenate([_START[:1], np.linspace(-9, 9, 1601), _START[-1:]])
    us, vs = mean(below, points), v(points)
    for _ in range(_MOST_LINES):
        height, slope = _envelope(us, vs, x)
        if height > float(alpha) + TOLERANCE + ROUNDING:
            return False
        if _is_identity(certificate):
            line = [alpha + Fraction(slope) * (int(b) - share) for b in below]
            if _pays_by_hits(boundaries, line):
                return True
        start, line_slope = float(alpha) - slope * x, slope
        holds, where = _stays_below(v, lambda z: start + line_slope * mean(below, z))  # noqa: B023
        if holds:
            return True
        us, vs = np.append(us, mean(below, where)), np.append(vs, v(where))
    raise AssertionError("no line decides")


def _is_identity(certificate: Any) -> bool:
    p = np.linspace(0, 1, 257)
    return bool(np.array_equal(np.asarray(certificate.lower(p)), p))


def _pays_by_hits(boundaries: Boundaries, ceiling: list[Fraction]) -> bool:
    """Whether the ceiling, given by hits of m draws, is above by hits of as many draws as both."""
    size = max(boundaries.draws, len(ceiling) - 1)
    return all(
        above >= refused - Fraction(TOLERANCE)
        for above, refused in zip(
            _of_more_draws(ceiling, size), _of_more_draws(boundaries.by_hits(), size), strict=True
        )
    )


def _of_more_draws(values: list[Fraction], size: int) -> list[Fraction]:
    """Return values by hits of more draws with the same mean at every p."""
    while (m := len(values)) <= size:  # m draws now, of which each is left out as often
        values = [
            (Fraction(s, m) * values[s - 1] if s else Fraction(0))
            + (Fraction(m - s, m) * values[s] if s < m else Fraction(0))
            for s in range(m + 1)
        ]
    return values


def _stays_below(v: Any, ceiling: Any) -> tuple[bool, Array]:
    """Whether v <= ceiling + 1e-10 everywhere, or the points where it is not."""
    slack = TOLERANCE - ROUNDING
    z = _START
    left, right = z[:-1], z[1:]
    low, high = v(z)[:-1], ceiling(z)
    bad = z[:-1][low > high[:-1] + TOLERANCE + ROUNDING]
    if bad.size:
        return False, bad
    high = high[1:]
    cells = 0
    while (rest := low > high + slack).any():
        left, right, low, high = left[rest], right[rest], low[rest], high[rest]
        cells += left.size
        middle = left + (right - left) / 2
        assert cells <= _MOST_CELLS, "too many cells"
        at, above = v(middle), ceiling(middle)
        bad = middle[at > above + TOLERANCE + ROUNDING]
        if bad.size:
            return False, bad
        assert np.all((left < middle) & (middle < right)), "cells without width"
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        low, high = np.concatenate([low, at]), np.concatenate([above, high])
    return True, np.empty(0)


def _envelope(u: Array, v: Array, x: float) -> tuple[float, float]:
    """Return the upper concave envelope of points at x, and its slope there."""
    order = np.lexsort((v, u))
    hull: list[tuple[float, float]] = []
    for a, b in zip(u[order].tolist(), v[order].tolist(), strict=True):
        while hull and (
            hull[-1][0] == a
            or (
                len(hull) > 1
                and (hull[-1][0] - hull[-2][0]) * (b - hull[-2][1])
                >= (hull[-1][1] - hull[-2][1]) * (a - hull[-2][0])
            )
        ):
            hull.pop()
        hull.append((a, b))
    xs, ys = np.array(hull).T
    i = min(max(int(np.searchsorted(xs, x)), 1), len(xs) - 1)
    slope = (ys[i] - ys[i - 1]) / (xs[i] - xs[i - 1])
    return float(ys[i - 1] + slope * (x - xs[i - 1])), float(slope)
