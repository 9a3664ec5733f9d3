"""Perturbation balls: the set of inputs that an adversary may choose from.

Radii are in the units of the tensor that gets the noise.
"""

from dataclasses import dataclass
from typing import Self

from bincp._validation import check_integer, check_real

__all__ = ["L1", "L2", "Ball", "Flips", "Linf"]


@dataclass(frozen=True)
class Ball:
    """Base of the perturbation balls; a subclass is a frozen dataclass of its parameters."""

    def inverse(self) -> Self:
        """Return the inverted ball: the clean inputs that could have led to a perturbed one.

        A ball of a norm is its own inverse; a ball that treats directions differently is not, and
        overrides this method.
        """
        return self


@dataclass(frozen=True)
class _NormBall(Ball):
    r: float
    dim: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", check_real("r", self.r, low=0))
        if self.dim is not None:
            object.__setattr__(self, "dim", _dimension(self.dim))


@dataclass(frozen=True)
class L1(_NormBall):
    """Perturbations of l1 norm at most `r`.

    Parameters
    ----------
    r : float
        Radius, >= 0, in the units of the tensor that gets the noise.
    dim : int, optional
        Number of coordinates, needed only where a norm is converted.

    Raises
    ------
    TypeError
        If `r` is not a real number, or `dim` not an integer.
    ValueError
        If `r` is negative or not finite, or `dim` outside [1, 2^63).

    Examples
    --------
    >>> L1(0.5)
    L1(r=0.5, dim=None)
    """


@dataclass(frozen=True)
class L2(_NormBall):
    """Perturbations of l2 norm at most `r`.

    Parameters
    ----------
    r : float
        Radius, >= 0, in the units of the tensor that gets the noise.
    dim : int, optional
        Number of coordinates, needed only where a norm is converted.

    Raises
    ------
    TypeError
        If `r` is not a real number, or `dim` not an integer.
    ValueError
        If `r` is negative or not finite, or `dim` outside [1, 2^63).

    Examples
    --------
    >>> L2(0.12).inverse()
    L2(r=0.12, dim=None)
    """


@dataclass(frozen=True)
class Linf(_NormBall):
    """Perturbations of no coordinate by more than `r`.

    Parameters
    ----------
    r : float
        Radius, >= 0, in the units of the tensor that gets the noise.
    dim : int
        Number of coordinates.

    Raises
    ------
    TypeError
        If `r` is not a real number, or `dim` not an integer.
    ValueError
        If `r` is negative or not finite, or `dim` outside [1, 2^63).

    Examples
    --------
    >>> Linf(8 / 255, dim=3 * 32 * 32)
    Linf(r=0.03137254901960784, dim=3072)
    """

    dim: int

    def __init__(self, r: float, dim: int) -> None:
        object.__setattr__(self, "r", r)
        object.__setattr__(self, "dim", _dimension(dim))
        self.__post_init__()


def _dimension(value: int) -> int:
    return check_integer("dim", value, low=1, high=2**63 - 1)


@dataclass(frozen=True)
class Flips(Ball):
    """Binary perturbations: at most so many 0 -> 1 (additions) and 1 -> 0 (deletions).

    Parameters
    ----------
    additions : int
        Largest number of zeros that the adversary sets, in [0, 2^31).
    deletions : int
        Largest number of ones that the adversary clears, in [0, 2^31).

    Raises
    ------
    TypeError
        If a number is not an integer.
    ValueError
        If a number is negative, or 2^31 or more.

    Examples
    --------
    >>> Flips(additions=1, deletions=3).inverse()
    Flips(additions=3, deletions=1)
    """

    additions: int
    deletions: int

    def __post_init__(self) -> None:
        for name in ("additions", "deletions"):
            number = check_integer(name, getattr(self, name), low=0, high=2**31 - 1)
            object.__setattr__(self, name, number)

    def inverse(self) -> "Flips":
        """Return the ball with additions and deletions exchanged."""
        return Flips(additions=self.deletions, deletions=self.additions)
