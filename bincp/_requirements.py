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
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bincp._curve import Array, Curve
from bincp._levels import float_below
from bincp._mixture import corner_envelope, corner_height, point_envelope

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
        return -float_below(-self.share)

    @property
    def _target(self) -> float:
        return float_below(self.alpha) + TOLERANCE

    def allows(self, v: Array) -> bool:
        return corner_envelope(self._u, v, self._x)[0] <= self._target

    def undecided(self, v: Array) -> npt.NDArray[np.intp]:
        if point_envelope(self._u, v, self._x)[0] > self._target:
            return np.empty(0, np.intp)  # refused by the curve itself
        slope = corner_envelope(self._u, v, self._x)[1]
        return np.flatnonzero(v[:-1] - slope * self._u[1:] > self._target - slope * self._x)

    def on(self, curve: Curve) -> "MeanFailure":
        return MeanFailure(curve, self.t, self.m, self.share, self.alpha)


def largest_count(requirement: Requirement, m_test: int) -> tuple[int, Requirement]:
    """Return the largest k that is allowed, and the requirement on the grid that shows it.

    Counts that are allowed form an initial segment, since v grows with k: bisect, then divide cells
    until k + 1 is refused by the curve itself and not by the grid.
    """
    k = _bisect(requirement, m_test)
    while k < m_test:
        v = requirement.curve.prediction_failures(k + 1, m_test)
        if requirement.allows(v):
            k += 1
            continue
        finer = requirement.curve.divided(requirement.undecided(v))
        if finer is None:
            break
        requirement = requirement.on(finer)
    return k, requirement


def _bisect(requirement: Requirement, m_test: int) -> int:
    low, high = 0, m_test + 1
    while high - low > 1:
        k = (low + high) // 2
        if requirement.allows(requirement.curve.prediction_failures(k, m_test)):
            low = k
        else:
            high = k
    return low
