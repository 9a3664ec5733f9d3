"""Balls whose size differs between directions."""

from collections.abc import Sequence
from dataclasses import dataclass

from bincp._utils.matrices import Rows, Vector, as_diagonal_or_rows, as_vector
from bincp._utils.validation import check_real
from bincp.balls._base import Ball


@dataclass(frozen=True)
class Box(Ball):
    """Perturbations that change coordinate i by at most ``r[i]``.

    Parameters
    ----------
    r : sequence of float, shape (d,)
        Half the width in each direction, >= 0, in the units of the tensor that gets the noise, one
        for each element of an input.

    Raises
    ------
    TypeError
        If `r` is not a sequence of real numbers.
    ValueError
        If it is empty, or a number is negative or not finite.

    Examples
    --------
    >>> Box([0.1, 0.0, 0.2])
    Box(r=(0.1, 0.0, 0.2))
    """

    r: Vector

    def __init__(self, r: Sequence[float]) -> None:
        object.__setattr__(self, "r", as_vector("r", r))


@dataclass(frozen=True)
class Ellipsoid(Ball):
    """Perturbations d = M^(1/2) e with ``|e|_2 <= r``: those with d' M^-1 d <= r^2.

    Parameters
    ----------
    r : float
        Radius, >= 0.
    matrix : sequence of float, shape (d,) or (d, d)
        The matrix M, which is symmetric and has no negative eigenvalue, or its diagonal where all
        other entries are 0. In a direction of eigenvalue 0 nothing changes. It has the square
        of the units of the tensor that gets the noise, if `r` is a plain number.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If `r` is negative or not finite, or `matrix` not a matrix as described.

    Examples
    --------
    >>> Ellipsoid(0.5, [1.0, 4.0])
    Ellipsoid(r=0.5, matrix=(1.0, 4.0))
    """

    r: float
    matrix: Vector | Rows

    def __init__(self, r: float, matrix: Sequence[float] | Sequence[Sequence[float]]) -> None:
        object.__setattr__(self, "r", check_real("r", r, low=0))
        object.__setattr__(self, "matrix", as_diagonal_or_rows("matrix", matrix))
