"""Norm conversion: the ball of one norm inside a ball of another."""

import math
from fractions import Fraction

from bincp._core._operators import Operator
from bincp.balls import L1, L2, Linf
from bincp.smoothing._additive import OnGrid

NormBall = L1 | L2 | Linf

Noted = tuple[Operator, str | None]
"""An operator and a note for the user, such as a norm conversion."""

GRID_ROUNDING = 1 + Fraction(1, 2**22)
"""What enlarges a radius on a grid, which float32 may have made a little less."""

_POWERS = {"l1": 2, "l2": 1, "linf": 0}  # twice 1 / b of the norm l_b
_GROWTH = {1: "r sqrt(dim)", 2: "r dim"}
_SCALE_BITS = 200


def distance_in(norm: str, ball: NormBall) -> tuple[Fraction, str | None]:
    """Return the radius in ``norm`` of a ball that contains ``ball``, rounded up, and a note.

    The l_b ball of radius r is in the l_a ball of radius r where b <= a, else in that of radius
    r dim^(1/a - 1/b); neither can be smaller. No note where the norms are the same.
    """
    own = type(ball).__name__.lower()
    distance, growth = Fraction(ball.r), _POWERS[norm] - _POWERS[own]
    if own == norm:
        return distance, None
    text = f"{own} radius {ball.r!r} certified as the {norm} radius"
    if growth <= 0:
        return distance, f"{text} r"
    dim = dimension(ball)
    note = f"{text} {_GROWTH[growth]}, dim = {dim}"
    return distance * (dim if growth == 2 else sqrt_above(dim)), note


def noise_distance(smoothing: OnGrid, norm: str, ball: NormBall) -> tuple[Fraction, str | None]:
    """Return `distance_in` as a distance of what the noise is added to, and a note.

    On a grid that is a distance of grid points, however the inputs round them: a radius of 10/255
    is ten steps, also where single precision made it a little less.
    """
    distance, note = distance_in(norm, ball)
    if not smoothing.takes_points:
        return distance, note
    on_grid = f"a distance of multiples of 1/{smoothing.grid}"
    return distance * GRID_ROUNDING, on_grid if note is None else f"{note}; {on_grid}"


def dimension(ball: NormBall) -> int:
    """Return the dimension of a ball; refuse one that was not given."""
    if ball.dim is None:
        raise ValueError(
            f"`dim` of the ball must be given, as the bound depends on it, got {ball!r}"
        )
    return ball.dim


def sqrt_above(number: int) -> Fraction:
    """Return the square root, rounded up; exact for squares."""
    scaled = number << 2 * _SCALE_BITS
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << _SCALE_BITS)
