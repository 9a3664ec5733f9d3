"""Shifts that are bounded by a divergence, whose bounds are irrational: rounded outward."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from bincp._utils.levels import Level
from bincp.shifts._base import Shift, check_size

REFERENCES = ("calibration", "test")

_ROOT_BITS = 160  # of a root beyond its own size
_DIGITS = Context(prec=60)
_MARGIN = Decimal("1e-45")  # far above the error of a divergence in so many digits
_HALVINGS = 72


@dataclass(frozen=True)
class ChiSquared(Shift):
    """Laws within a chi-squared divergence of the calibration law; two directions.

    Parameters
    ----------
    rho : int, float, str, Decimal or Fraction
        Size of the divergence, >= 0, without a factor of 1/2.
    reference : {"calibration", "test"}
        The law over which the mean is taken. "calibration": E_P (dQ/dP - 1)^2 <= rho, which asks Q
        to have a density with respect to P. "test": E_Q (dP/dQ - 1)^2 <= rho, which asks P to have
        one with respect to Q: Q may put mass where P has none.

    Raises
    ------
    TypeError, ValueError
        If rho is not a number of at least 0, or the reference is another.

    Notes
    -----
    With b = P(A), the least Q(A) is max(0, b - sqrt(rho b (1 - b))) for "calibration", where it is
    0 up to b = rho / (1 + rho), and (2 b + rho - sqrt(rho^2 + 4 rho b (1 - b))) / (2 (1 + rho)) for
    "test", where it is 1 / (1 + rho) at b = 1. Both are attained.

    References
    ----------
    M. Cauchois, S. Gupta, A. Ali and J. Duchi, "Robust validation: confident predictions even when
    distributions shift", JASA 2024.

    Examples
    --------
    >>> from bincp import shifts
    >>> float(shifts.ChiSquared("0.01", reference="calibration").lower("0.5"))
    0.45
    """

    rho: Level
    reference: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_size("rho", self.rho))
        if not isinstance(self.reference, str) or self.reference not in REFERENCES:
            raise ValueError(f"`reference` must be one of {REFERENCES}, got {self.reference!r}")

    def _lower(self, p: Fraction) -> Fraction:
        if self.reference == "calibration":
            return max(Fraction(0), self._inner(p, -1))
        return max(Fraction(0), self._outer(p, -1))

    def _required(self, q: Fraction) -> Fraction | None:
        if self.reference == "calibration":
            return min(Fraction(1), self._outer(q, 1))
        # Beyond this, mass that Q has where P has none is too much.
        return min(Fraction(1), self._inner(q, 1)) if q <= 1 / (1 + self._size) else None

    @property
    def _size(self) -> Fraction:
        return Fraction(self.rho)

    def _inner(self, x: Fraction, sign: int) -> Fraction:
        """Return x -+ sqrt(rho x (1 - x)), moved outward."""
        return x + sign * root_above(self._size * x * (1 - x))

    def _outer(self, x: Fraction, sign: int) -> Fraction:
        """Return the other end of the interval around x, moved outward."""
        rho = self._size
        return (2 * x + rho + sign * root_above(rho**2 + 4 * rho * x * (1 - x))) / (2 * (1 + rho))


@dataclass(frozen=True)
class KL(Shift):
    """Laws within a Kullback-Leibler divergence: E_Q log(dQ/dP) <= rho, in nats.

    The divergence of Q from P, with the mean over the test law: Q has a density with respect to P.

    Parameters
    ----------
    rho : int, float, str, Decimal or Fraction
        Size of the divergence, >= 0.

    Raises
    ------
    TypeError, ValueError
        If rho is not a number of at least 0.

    Notes
    -----
    With b = P(A), the least Q(A) is the smaller root q of
    q log(q/b) + (1-q) log((1-q)/(1-b)) = rho, or 0 where b <= 1 - exp(-rho). It is attained.

    References
    ----------
    M. Cauchois, S. Gupta, A. Ali and J. Duchi, "Robust validation: confident predictions even when
    distributions shift", JASA 2024.

    Examples
    --------
    >>> from bincp import shifts
    >>> round(float(shifts.KL("0.1").lower("0.95")), 6)
    0.827051
    """

    rho: Level

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_size("rho", self.rho))

    def _lower(self, p: Fraction) -> Fraction:
        return _least_within(p, Fraction(self.rho))

    def _required(self, q: Fraction) -> Fraction | None:
        return _needed_for(q, Fraction(self.rho))


# ---- irrational bounds ------------------------------------------------------------------------


def root_above(square: Fraction) -> Fraction:
    """Return the root of a number of at least 0: exact if rational, else the least bit above."""
    inside = square.numerator * square.denominator
    root = math.isqrt(inside)
    if root * root == inside:
        return Fraction(root, square.denominator)
    root = math.isqrt(inside << (2 * _ROOT_BITS)) + 1
    return Fraction(root, square.denominator << _ROOT_BITS)


@lru_cache(4096)
def _least_within(p: Fraction, rho: Fraction) -> Fraction:
    """Return the least q with kl(q, p) <= rho, or less."""
    if rho == 0 or p in (0, 1):
        return p
    return _last(lambda q: _is_beyond(q, p, rho), Fraction(0), p)


@lru_cache(4096)
def _needed_for(q: Fraction, rho: Fraction) -> Fraction:
    """Return the largest p with kl(q, p) <= rho, or more; 1 for q = 1, where p has no root."""
    if rho == 0 or q == 1:
        return q
    return _last(lambda p: _is_beyond(q, p, rho), Fraction(1), q)


def _last(beyond: Callable[[Fraction], bool], far: Fraction, near: Fraction) -> Fraction:
    """Return the place closest to ``near`` that is found beyond; ``far`` where none is."""
    for _ in range(_HALVINGS):
        middle = (far + near) / 2
        if beyond(middle):
            far = middle
        else:
            near = middle
    return far


def _is_beyond(q: Fraction, p: Fraction, rho: Fraction) -> bool:
    """Whether kl(q, p) is certain to be at least rho; q and p differ, both inside (0, 1)."""
    with localcontext(_DIGITS):
        parts = [_part(a, b) for a, b in ((q, p), (1 - q, 1 - p))]
        bound = Decimal(rho.numerator) / Decimal(rho.denominator)
        return sum(parts) >= bound + _MARGIN * (1 + bound)


def _part(a: Fraction, b: Fraction) -> Decimal:
    """Return a log(a / b), for a > 0."""
    ratio = a / b
    share = Decimal(a.numerator) / Decimal(a.denominator)
    return share * (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
