"""Balls of the norms of a vector."""

from dataclasses import dataclass

from bincp._utils.validation import check_integer, check_real
from bincp.balls._base import Ball


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
    """Perturbations of linf norm at most `r`: no coordinate changes by more.

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
