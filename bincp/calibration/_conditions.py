"""The conditions on prediction: which refusal probabilities keep the coverage.

Each class is one way to calibrate. It knows the curve (a certificate on a grid) and says of the
refusal probability v(p) of a decision rule, given on the grid, whether the coverage is at least
1 - alpha - 1e-10 for every population. v may belong to any rule whose acceptance does not fall when
the success probability rises: a count to reach, or a sequential test.

Notation: a calibration point fails (lies below its threshold) with probability u(p), a label at the
worst input is refused with probability v(p), p is the clean success probability. The cell between
two grid points is judged by its corner (u of the right point, v of the left one), which is safe for
any certificate, since both fall as p rises. A finer grid refuses less.
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
from bincp.calibration._curve import MAX_POINTS, Array, Curve

TOLERANCE = 1e-10
"""Absorbs rounding where there is no slack at all; in units of coverage."""

# A cell is divided into at least and at most so many parts at once. Where v comes close to the
# ceiling at one end only, most parts of a cell will not need the width that this end asks for.
_LEAST_PARTS, _MOST_PARTS = 2, 8


class Condition(ABC):
    """A condition on v, on a grid."""

    curve: Curve

    @abstractmethod
    def allows(self, v: Array) -> bool:
        """Whether the refusal probabilities ``v`` on the grid keep the guarantee."""

    @abstractmethod
    def ceiling(self, v: Array) -> Array:
        """Return a curve that falls with p and that v must stay below for `allows` to hold.

        It must be above v at every grid point where a finer grid could still allow v.
        """

    @abstractmethod
    def on(self, curve: Curve) -> "Condition":
        """Return the same condition on another grid."""

    def parts(self, v: Array) -> npt.NDArray[np.intp] | None:
        """Return into how many parts to divide each cell so that a finer grid may allow ``v``.

        1 for a cell that is below the ceiling by its corner. None where no finer grid can allow v,
        for v reaches the ceiling at a grid point, and where the grid would have to be too large.

        Within a cell v can be as large as at its left end and the ceiling as low as at its right
        end. The fall of the ceiling in a part must be at most the room between the two curves.
        """
        ceiling = self.ceiling(v)
        room = ceiling - v
        if np.any(room < 0):
            return None
        undecided = v[:-1] > ceiling[1:]
        fall = ceiling[:-1] - ceiling[1:]
        # Where v meets the ceiling all along, as where one sample uses up alpha exactly, no grid is
        # fine enough. Finding that out by dividing would take a large part of a second.
        if np.sum(_ratio(fall, np.maximum(room[:-1], room[1:]))[undecided]) > MAX_POINTS:
            return None
        wanted = _ratio(fall, np.minimum(room[:-1], room[1:]))
        parts = np.clip(np.ceil(wanted), _LEAST_PARTS, _MOST_PARTS)
        return np.where(undecided, parts, 1).astype(np.intp)


def _ratio(fall: Array, room: Array) -> Array:
    """Return the number of parts in which the ceiling falls by no more than the room."""
    parts = np.full(len(fall), np.inf)
    np.divide(fall, room, out=parts, where=room > 0)
    return parts


@dataclass(frozen=True)
class MeanFailure(Condition):
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
    def u(self) -> Array:
        """The probability that a calibration point fails, on the grid."""
        return self.curve.calibration_failures(self.t, self.m)

    @property
    def _x(self) -> float:
        return float_above(self.share)

    @property
    def _target(self) -> float:
        return float_below(self.alpha) + TOLERANCE

    def allows(self, v: Array) -> bool:
        return self.allows_at(self.share, v)

    def allows_at(self, share: Fraction, v: Array) -> bool:
        """Whether ``v`` keeps the guarantee if this share of points fails."""
        return corner_envelope(self.u, v, float_above(share))[0] <= self._target

    def ceiling(self, v: Array) -> Array:
        """Return the line through (j / (n + 1), alpha) with the slope of the points' envelope.

        It is above all points iff their envelope is at most alpha at j / (n + 1). The line over the
        corners is steeper or flatter and may cut the curve; this one does not on a finer grid.
        """
        _, slope = point_envelope(self.u, v, self._x)
        return np.asarray(self._target + slope * (self.u - self._x))

    def on(self, curve: Curve) -> "MeanFailure":
        return replace(self, curve=curve)

    def slope(self, v: Array) -> float:
        """Return the slope of the line that proves the bound on ``v``."""
        return corner_envelope(self.u, v, self._x)[1]


@dataclass(frozen=True)
class FixedSlope(Condition):
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
        # In exact arithmetic: with slope = alpha (n + 1) / j the intercept is 0, and the tolerance
        # alone is left.
        intercept = self.alpha - Fraction(self.slope) * self.share
        u = self.curve.calibration_failures(self.t, self.m)
        return float_below(intercept) + TOLERANCE + self.slope * u

    def ceiling(self, v: Array) -> Array:
        """Return the line, whatever v is."""
        return self._ceiling

    def allows(self, v: Array) -> bool:
        return bool(np.all(v[:-1] <= self._ceiling[1:]))

    def on(self, curve: Curve) -> "FixedSlope":
        return replace(self, curve=curve)


Failures: TypeAlias = Callable[[Curve, int, int], Array]
"""(curve, k, m') to the refusal probabilities on the grid of the rule of k; they grow with k."""


def largest_count(
    condition: Condition, m_test: int, failures: Failures = Curve.prediction_failures
) -> tuple[int, Condition]:
    """Return the largest k that is allowed, and the condition on the grid that shows it.

    Counts that are allowed form an initial segment, since v grows with k. They are bisected; then
    cells are divided until k + 1 is refused by the curve itself and not by the grid, or until the
    grid would grow beyond its limit.
    """
    start = condition
    k = last_integer(lambda k: start.allows(failures(start.curve, k, m_test)), 1, m_test)
    while k < m_test:
        v = failures(condition.curve, k + 1, m_test)
        if condition.allows(v):
            k += 1
            continue
        parts = condition.parts(v)
        finer = None if parts is None else condition.curve.divided(parts)
        if finer is None:
            break
        condition = condition.on(finer)
    return k, condition
