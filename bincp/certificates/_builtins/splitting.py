"""Operators of splitting noise."""

from fractions import Fraction

from bincp._core import _operators
from bincp._core._operators import Operator
from bincp._utils.levels import float_above
from bincp.balls import L1
from bincp.certificates._builtins._distance import GRID_ROUNDING
from bincp.certificates._registry import register_built_in
from bincp.smoothing import SplittingNoise
from bincp.smoothing._splitting import MAX_ELEMENTS

_EXCESS = Fraction(1, 2**50)


@register_built_in(SplittingNoise, L1)
def splitting_l1(smoothing: SplittingNoise, ball: L1) -> Operator | tuple[Operator, str]:
    """Split each step of the path from x to the perturbed input (Levine and Feizi 2021).

    A coordinate that moves by e falls into another cell with probability at most
    e / (2 half_width); where none does, the copies are equal. So an event gains or loses at most
    r / (2 half_width), however the offsets depend on each other. On a grid, a coordinate
    that moves by e steps falls into another cell for at most e of the L offsets: a count of copies
    changes by at most floor(r grid), for the l1 distance of the grid points that the inputs stand
    for. The radius is rounded up by 2^-22 of itself before that.

    Continuous noise has offsets (v + 1/2) h, h = 2^-53 length, for whole v < 2^53. Rounding moves
    one by 3/2 h at most, and the number x at which the cell changes by 2^-52 max(1, length)
    (1 + 2^-50) more: the difference x - offset and its quotient by the length are rounded once
    each. So two values e > 0 apart are split by the offsets in an interval that is e long but for
    that much at both ends, and by one more, as an interval of n steps may hold n + 1 of them. In
    all that is a probability of e / length + 2^-50 (1 + 1 / length) at most.
    """
    if smoothing.grid is None:
        length = 2 * Fraction(smoothing.half_width)
        excess = _EXCESS * MAX_ELEMENTS * (1 + 1 / length) if ball.r else 0
        return _operators.uniform(float_above(min(Fraction(ball.r) / length + excess, Fraction(1))))
    steps = int(Fraction(ball.r) * GRID_ROUNDING * smoothing.grid)
    note = f"a count of {smoothing.levels} copies moves by at most {steps}; exact"
    return _operators.steps(smoothing.levels, min(steps, smoothing.levels)), note
