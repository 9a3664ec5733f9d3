"""Losses fitted to the refusal curve of a test: as small as condition (Q) allows.

Losses w(0) >= ... >= w(m) >= 0 pay for v if E[w(Bin(m, p))] >= v(p) for every p. The best ones
allow the largest threshold tau: of those that pay, they have the least mean in a reference
population plus w(0) / n, as w(0) is charged for the test point. That is a linear programme in the
drops w(s) - w(s + 1) >= 0, with a constraint for every p. Its dual has one row for each drop and
one column for each p, so the simplex method on the dual looks at a constraint only once it is
violated most. Where v is smooth, v(s / m) corrected by its own gap comes as close, and is faster.

Every function returns losses that pay in every cell of the grid, by its corner.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from bincp.calibration._curve import Array, Curve

FITTED_SAMPLES = 256
"""Losses of more samples are those of so many of them, in the mean: more gain nothing."""

# Corrections of v(s / m): at most so many, and so many in a row without a smaller gap.
_MAX_ROUNDS = 30
_ROUNDS_WITHOUT_GAIN = 3
# Gaps, in units of coverage. No correction and no pivot is made for less than the first; above the
# second the linear programme is solved.
_CLOSED_GAP = 1e-4
_OPEN_GAP = 1e-3
_MOST_RAISES = 60
_OVERSHOOT = 1.5  # of a raise, which the counts nearby dilute

_CELLS_OF_PROGRAMME = 300  # about; the rest is left to the raises
_LEAST_PIVOT = 1e-9
_MOST_PIVOTS = 400

_BLOCK = 2**21  # probabilities of selections that are held at a time


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a curve, each with the distribution of the count at its right end."""

    curve: Curve
    masses: Array
    """P[Bin(m, p) = s], (cells, m + 1)."""
    least_gap: float
    """No raise is made for less, in units of coverage."""

    @classmethod
    def of(cls, curve: Curve, m: int, least_gap: float = 1e-6) -> "Cells":
        """Return the cells of a curve for m samples."""
        return cls(curve, binomial_masses(curve.p[1:], curve.q[1:], m), least_gap)

    @property
    def m(self) -> int:
        """The number of samples."""
        return int(self.masses.shape[1]) - 1

    @cached_property
    def _shares(self) -> Array:
        return np.arange(self.m + 1) / self.m

    def fitted(self, v: Array, prices: Array) -> list[Array]:
        """Return losses that pay for v, left ends of cells; the best ones are among them.

        ``prices[s]`` > 0 says what it costs if w(0), ..., w(s) are raised by 1.
        """
        return [self._raised(v, losses) for losses in self._unraised(v, prices)]

    def likely(self, v: Array, prices: Array) -> Array:
        """Return the losses of `fitted` that are the best ones as a rule, in half the time."""
        return self._raised(v, self._unraised(v, prices)[-1])

    def _unraised(self, v: Array, prices: Array) -> list[Array]:
        """Return losses that nearly pay: v(s / m), and those of the programme where that is far."""
        corrected, gap = self._corrected(v)
        if gap <= _OPEN_GAP:
            return [corrected]
        some = slice(None, None, max(len(v) // _CELLS_OF_PROGRAMME, 1))
        drops = _least_drops(v[some], np.cumsum(self.masses[some], axis=1), prices)
        return [corrected] if drops is None else [corrected, np.cumsum(drops[::-1])[::-1]]

    def _gap(self, v: Array, losses: Array) -> Array:
        """How far v may exceed the expected loss, in each cell."""
        return np.asarray(v - self.masses @ losses)

    def _corrected(self, v: Array) -> tuple[Array, float]:
        """Return v(s / m), corrected by its own gap while that gets smaller, and the gap."""
        losses = falling(np.interp(self._shares, self.curve.p[:-1], v))
        best, smallest, since = losses, np.inf, 0
        for _ in range(_MAX_ROUNDS):
            gap = self._gap(v, losses)
            since += 1
            if (largest := float(gap.max())) < smallest:
                best, smallest, since = losses, largest, 0
            if smallest < _CLOSED_GAP or since == _ROUNDS_WITHOUT_GAIN:
                break
            losses = falling(np.clip(losses + self._at_counts(gap), 0, 1))
        return best, smallest

    def _raised(self, v: Array, losses: Array) -> Array:
        """Return the losses raised where they do not pay, and everywhere by what that leaves."""
        for _ in range(_MOST_RAISES):
            gap = np.maximum(self._gap(v, losses), 0.0)
            if gap.max() <= self.least_gap:
                break
            losses = falling(losses + _OVERSHOOT * self._at_counts(gap))
        for _ in range(_MOST_RAISES):
            gap = self._gap(v, losses)
            worst = int(np.argmax(gap))
            if gap[worst] <= self.least_gap:
                break
            # The shape that closes the gap there with the least change.
            shape = self.masses[worst]
            losses = falling(losses + gap[worst] / (shape @ shape) * shape)
        return losses + max(float(self._gap(v, losses).max()), 0.0)

    def _at_counts(self, gap: Array) -> Array:
        return np.interp(self._shares, self.curve.p[1:], gap)


def binomial_masses(p: Array, q: Array, m: int) -> Array:
    """Return P[Bin(m, p) = s], s = 0..m, for each p = 1 - q: (len(p), m + 1)."""
    s = np.arange(m + 1)
    ways = special.gammaln(m + 1) - special.gammaln(s + 1) - special.gammaln(m - s + 1)
    logs = special.xlogy(s, p[:, None]) + special.xlogy(m - s, q[:, None])
    return np.asarray(np.exp(ways + logs))


def falling(losses: Array) -> Array:
    """Return the least non-increasing losses that are not below these."""
    return np.ascontiguousarray(np.maximum.accumulate(losses[::-1])[::-1])


def extended(losses: Array, m: int) -> Array:
    """Return losses of m samples with the same expectation at every p, from those of fewer.

    They are the mean loss of a random selection of the samples, as many as the losses are for.
    """
    fewer = len(losses) - 1
    if m == fewer:
        return losses
    factorials = special.gammaln(np.arange(m + 1.0) + 1)
    step = max(1, _BLOCK // (fewer + 1))
    blocks = (np.arange(s, min(s + step, m + 1)) for s in range(0, m + 1, step))
    return falling(np.concatenate([_selected(losses, factorials, s) for s in blocks]))


def _selected(losses: Array, factorials: Array, s: npt.NDArray[np.int64]) -> Array:
    """Return the mean loss of a random selection from m samples with s hits.

    ``factorials`` has the logarithms of those of 0..m.
    """
    fewer, m = len(losses) - 1, len(factorials) - 1
    s, x = s[:, None], np.arange(fewer + 1)

    def log_choose(n: npt.NDArray[np.int64], k: npt.NDArray[np.int64]) -> Array:
        return np.asarray(factorials[n] - factorials[k] - factorials[n - k])

    possible = (x <= s) & (fewer - x <= m - s)
    inside = np.where(possible, log_choose(np.maximum(s, x), x), 0)
    outside = np.where(possible, log_choose(np.maximum(m - s, fewer - x), fewer - x), 0)
    ways = log_choose(np.array(m), np.array(fewer))
    shares = np.where(possible, np.exp(inside + outside - ways), 0)
    return np.asarray(shares @ losses / shares.sum(axis=1))


def _least_drops(v: Array, sums: Array, prices: Array) -> Array | None:
    """Minimise prices @ drops, drops >= 0, subject to sums @ drops >= v; None if not in time.

    The dual maximises v @ y, y >= 0, sums.T @ y <= prices, and y = 0 is feasible: the revised
    simplex method with an explicit inverse, whose multipliers are the drops. What enters next has
    the largest gap for what it takes of the rows, in units of their prices.
    """
    size = len(prices)
    inverse, values, gains = np.eye(size), prices.copy(), np.zeros(size)
    weights = 1 / (sums @ (1 / prices))
    for _ in range(_MOST_PIVOTS):
        drops = gains @ inverse
        gap = v - sums @ drops
        if max(gap.max(), -drops.min()) <= _CLOSED_GAP:
            return np.maximum(drops, 0)
        gap, negative = (
            gap * weights * (gap > _CLOSED_GAP),
            -drops * prices * (-drops > _CLOSED_GAP),
        )
        cell, row = int(np.argmax(gap)), int(np.argmax(negative))
        if gap[cell] >= negative[row]:
            column, gain = inverse @ sums[cell], v[cell]
        else:
            column, gain = inverse[:, row].copy(), 0.0
        steps = np.full(size, np.inf)
        np.divide(values, column, out=steps, where=column > _LEAST_PIVOT)
        leaves = int(np.argmin(steps))
        step = steps[leaves]
        if not np.isfinite(step):
            return None
        pivot = inverse[leaves] / column[leaves]
        inverse -= np.outer(column, pivot)
        inverse[leaves] = pivot
        values = np.maximum(values - step * column, 0)
        values[leaves], gains[leaves] = step, gain
    return None
