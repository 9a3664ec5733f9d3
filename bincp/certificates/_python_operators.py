"""Operators made of Python functions: given bounds, bounds from a radius, and mirrored bounds.

Root finding keeps its bracket, down to adjacent doubles, and returns the safe end.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.bisection import bracket_doubles
from bincp.certificates._law import irregular_probabilities, probability_grid
from bincp.certificates._protocols import Bound, Bounds
from bincp.errors import CertificateError

_FINER = {Fraction, Decimal, np.longdouble}  # numbers that may lie between doubles


class PythonOperator:
    """Two Python functions as an operator; `upper` defaults to the generalised inverse.

    `evaluations` counts the bounds that are evaluated for one probability, those of parts included.
    """

    def __init__(
        self, name: str, lower: Bound, upper: Bound | None = None, *, evaluations: int = 1
    ) -> None:
        self.name = name
        self.evaluations = evaluations
        self._lower = lower
        self._upper = upper

    def lower(self, p: float) -> float:
        return _checked("lower", self._lower, p)

    def upper(self, p: float) -> float:
        if self._upper is None:
            return _largest_preimage(self.lower, p)
        return _checked("upper", self._upper, p)

    def lower_fill(self, p: npt.NDArray[np.float64], out: npt.NDArray[np.float64]) -> None:
        out[:] = [self.lower(float(value)) for value in p]

    def upper_fill(self, p: npt.NDArray[np.float64], out: npt.NDArray[np.float64]) -> None:
        out[:] = [self.upper(float(value)) for value in p]


class HalfRadius:
    """Bounds from a radius at threshold 1/2, which proves 1/2 or only a trivial bound."""

    def __init__(self, radius_fn: Callable[[float], float], r: float) -> None:
        self.radius_fn, self.r = radius_fn, r

    def lower(self, p: float) -> float:
        # At r = 0 a probability below 1/2 has the radius 0, too, but does not prove 1/2.
        return 0.5 if p >= 0.5 and _radius(self.radius_fn, p) >= self.r else 0.0

    def upper(self, p: float) -> float:
        return _largest_preimage(self.lower, p)


class AdditiveRadius:
    """Radii that add up: R(lower(p)) = R(p) - r and R(upper(p)) = R(p) + r.

    Where R is flat, `lower` takes the least solution and `upper` the largest. Infinite radii are
    solved without rounding, so that p = 0 and p = 1 keep their infinite radii.
    """

    def __init__(self, radius_fn: Callable[[float], float], r: float) -> None:
        self.radius_fn, self.r = radius_fn, r

    def lower(self, p: float) -> float:
        if self.r == 0:
            return p
        target = _add(self._radius(p), -self.r, up=False)
        if self._radius(0.0) >= target:
            return 0.0
        short, reaching = bracket_doubles(lambda q: self._radius(q) < target, 0.0, p)
        return reaching if target == math.inf else short

    def upper(self, p: float) -> float:
        if self.r == 0:
            return p
        target = _add(self._radius(p), self.r, up=True)
        if self._radius(1.0) <= target:
            return 1.0
        within, beyond = bracket_doubles(lambda q: self._radius(q) <= target, p, 1.0)
        return within if target == -math.inf else beyond

    def _radius(self, p: float) -> float:
        return _radius(self.radius_fn, p)


def _radius(radius_fn: Callable[[float], float], p: float) -> float:
    made, radius = called("radius_fn", radius_fn, p)
    if math.isnan(radius):
        raise CertificateError(f"radius_fn({p!r}) must be a number, got {made!r}")
    return radius


def check_radius(radius_fn: Callable[[float], float]) -> None:
    """Refuse a radius that falls, raises or is NaN at one of some hundred probabilities."""
    last = -math.inf
    for p in sorted({*probability_grid(), *irregular_probabilities()}):
        radius = _radius(radius_fn, p)
        if radius < last:
            raise CertificateError(
                f"radius_fn must be non-decreasing, but falls from {last!r} to {radius!r} "
                f"at p = {p!r}"
            )
        last = radius


def _largest_preimage(lower: Bound, p: float) -> float:
    """Return the generalised inverse: the largest q with lower(q) <= p, from above."""
    if lower(1.0) <= p:
        return 1.0
    # lower(0) <= 0 <= p by the law; the check of the law refuses an operator that breaks it.
    _, outside = bracket_doubles(lambda q: lower(q) <= p, 0.0, 1.0)
    return outside


class Mirror:
    """Bounds of the inverted ball, from complements: what an event loses, its complement gains."""

    def __init__(self, certificate: Bounds) -> None:
        self.certificate = certificate

    def lower(self, p: float) -> float:
        return _complement(self.certificate.upper(_complement(p, up=True)), up=False)

    def upper(self, p: float) -> float:
        return _complement(self.certificate.lower(_complement(p, up=False)), up=True)


class ChargedBounds:
    """Bounds for noise that is within ``delta`` of its law in total variation, at both inputs."""

    def __init__(self, bounds: Bounds, delta: float) -> None:
        self.bounds, self.delta = bounds, delta

    def lower(self, p: float) -> float:
        return self._less(self.bounds.lower(self._less(p)))

    def upper(self, p: float) -> float:
        return self._more(self.bounds.upper(self._more(p)))

    def _less(self, p: float) -> float:
        return max(_add(p, -self.delta, up=False), 0.0)

    def _more(self, p: float) -> float:
        return min(_add(p, self.delta, up=True), 1.0)


def _complement(p: float, *, up: bool) -> float:
    """Return 1 - p, rounded in the given direction."""
    return _add(1.0, -p, up=up)


def _add(a: float, b: float, *, up: bool) -> float:
    """Return a + b, rounded in the given direction."""
    value = a + b
    part = value - a
    error = (a - (value - part)) + (b - part)  # exact (Knuth); NaN where a or b is infinite
    if up and error > 0:
        return math.nextafter(value, math.inf)
    if not up and error < 0:
        return math.nextafter(value, -math.inf)
    return value


# ---- calls of foreign code ------------------------------------------------------------------


def _checked(name: str, bound: Bound, p: float) -> float:
    """Return ``bound(p)`` as a float in [0, 1]; both are 0 for -0."""
    made, value = called(name, bound, p + 0.0)
    if not 0 <= value <= 1:
        raise CertificateError(f"{name}({p!r}) must be a float in [0, 1], got {made!r}")
    return (_to_side(made, value, up=name == "upper") if type(made) in _FINER else value) + 0.0


def _to_side(made: Any, nearest: float, *, up: bool) -> float:
    """Return the double in [0, 1] on the given side of a number, from the nearest one."""
    if up:
        return math.nextafter(nearest, 1.0) if nearest < made else nearest
    return math.nextafter(nearest, 0.0) if nearest > made else nearest


def called(name: str, function: Callable[[float], float], p: float) -> tuple[Any, float]:
    """Return the result of foreign code at p, as it is and as a float; NaN if it is no number."""
    try:
        made = function(p)
        return made, math.nan if isinstance(made, str | bool | np.bool_) else float(made)
    except CertificateError:
        raise
    except Exception as error:
        raise CertificateError(f"{name}({p!r}) raised {error!r}") from error
