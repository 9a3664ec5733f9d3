"""What calibration asks of prediction: which refusal probabilities keep the coverage.

Each class is one way to calibrate. It knows the curve (a certificate on a grid) and says of the
refusal probability v(p) of a decision rule, given on the grid, whether the coverage is at least
1 - alpha - 1e-10 for every population. v stands for any rule whose acceptance does not fall when
the success probability rises: a count to reach, or a sequential test.

Notation: a calibration point fails (lies below its threshold) with probability u(p), a label at the
worst input is refused with probability v(p), p the clean success probability; the cell between two
grid points is judged by its corner (u of the right point, v of the left one).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._core._mixture import corner_envelope, point_envelope
from bincp._utils.bisection import last_integer
from bincp._utils.levels import float_above, float_below
from bincp.calibration._curve import Array, Curve

TOLERANCE = 1e-10
"""Absorbs rounding where there is no slack at all; in units of coverage."""


class Requirement(ABC):
    """What v must satisfy on a grid."""

    curve: Curve

    @abstractmethod
    def allows(self, v: Array) -> bool:
        """Whether the refusal probabilities ``v`` on the grid keep the guarantee."""

    @abstractmethod
    def undecided(self, v: Array) -> npt.NDArray[np.intp]:
        """Return the cells to divide where only the grid may be to blame for a refusal of ``v``."""

    @abstractmethod
    def on(self, curve: Curve) -> "Requirement":
        """Return the same requirement on another grid."""


@dataclass(frozen=True)
class MeanFailure(Requirement):
    """p fixed: at most a share j / (n + 1) of points fails, whatever the law of p.

    v must not exceed alpha in the mean for any law of p under which u has that mean: the upper
    concave envelope of the curve (u, v), read at j / (n + 1), is at most alpha.
    """

    curve: Curve
    t: int
    m: int
    share: Fraction
    alpha: Fraction

    @cached_property
    def _u(self) -> Array:
        return self.curve.calibration_failures(self.t, self.m)

    @property
    def _x(self) -> float:
        return float_above(self.share)

    @property
    def _target(self) -> float:
        return float_below(self.alpha) + TOLERANCE

    def allows(self, v: Array) -> bool:
        return corner_envelope(self._u, v, self._x)[0] <= self._target

    def undecided(self, v: Array) -> npt.NDArray[np.intp]:
        value, slope = point_envelope(self._u, v, self._x)
        if value > self._target:
            return np.empty(0, np.intp)  # refused by the curve itself
        # The line over the points is over every cell that is small enough; that over the corners
        # is steeper or flatter, and may cut the curve.
        return np.flatnonzero(v[:-1] - slope * self._u[1:] > self._target - slope * self._x)

    def on(self, curve: Curve) -> "MeanFailure":
        return replace(self, curve=curve)

    def slope(self, v: Array) -> float:
        """Return the slope of the line that proves the bound on ``v``."""
        return corner_envelope(self._u, v, self._x)[1]


class Ceiling(Requirement):
    """v must stay below a ceiling: in each cell, below the ceiling at the right end."""

    @property
    @abstractmethod
    def _ceiling(self) -> Array:
        """The curve, which does not increase with p."""

    def allows(self, v: Array) -> bool:
        return bool(np.all(v[:-1] <= self._ceiling[1:]))

    def undecided(self, v: Array) -> npt.NDArray[np.intp]:
        if np.any(v > self._ceiling):
            return np.empty(0, np.intp)  # refused at a point of the curve itself
        return np.flatnonzero(v[:-1] > self._ceiling[1:])


@dataclass(frozen=True)
class FixedSlope(Ceiling):
    """Tau fixed: t is an observed count, so the line over the curve (u, v) was drawn before it.

    v(p) <= alpha + slope (u(p) - j / (n + 1)) for every p keeps the coverage whatever t the data
    choose, for j / (n + 1) bounds the mean of u over them and the mean of v follows. The slope may
    depend on nothing that was observed.
    """

    curve: Curve
    t: int
    m: int
    share: Fraction
    alpha: Fraction
    slope: float

    @cached_property
    def _ceiling(self) -> Array:
        # Exact, for with slope = alpha (n + 1) / j nothing but the tolerance is left.
        intercept = self.alpha - Fraction(self.slope) * self.share
        u = self.curve.calibration_failures(self.t, self.m)
        return float_below(intercept) + TOLERANCE + self.slope * u

    def on(self, curve: Curve) -> "FixedSlope":
        return replace(self, curve=curve)


@dataclass(frozen=True, eq=False)
class MeanLoss(Ceiling):
    """Count weights: a calibration point of which s samples reach the threshold costs losses[s].

    Calibration bounds the mean cost by alpha; v(p) may be at most the expected cost
    E[losses[Bin(m, p)]], for every p. The losses do not increase with s.
    """

    curve: Curve
    losses: Array

    @cached_property
    def _ceiling(self) -> Array:
        return self.curve.expected(self.losses) + TOLERANCE

    def on(self, curve: Curve) -> "MeanLoss":
        return replace(self, curve=curve)


Failures: TypeAlias = Callable[[Curve, int, int], Array]
"""(curve, k, m') to the refusal probabilities on the grid of the rule of k; they grow with k."""


def largest_count(
    requirement: Requirement, m_test: int, failures: Failures = Curve.prediction_failures
) -> tuple[int, Requirement]:
    """Return the largest k that is allowed, and the requirement on the grid that shows it.

    Counts that are allowed form an initial segment, since v grows with k: bisect, then divide cells
    until k + 1 is refused by the curve itself and not by the grid.
    """
    start = requirement
    k = last_integer(lambda k: start.allows(failures(start.curve, k, m_test)), 1, m_test)
    while k < m_test:
        v = failures(requirement.curve, k + 1, m_test)
        if requirement.allows(v):
            k += 1
            continue
        finer = requirement.curve.divided(requirement.undecided(v))
        if finer is None:
            break
        requirement = requirement.on(finer)
    return k, requirement
