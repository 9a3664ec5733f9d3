"""Bisection over integers and over doubles.

``holds`` is true up to a switch and false beyond it. Both searches end at adjacent values, so a
caller can take the safe end.
"""

import math
import sys
from collections.abc import Callable

import numpy as np


def last_integer(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last integer in [low, high] at which ``holds`` is true, or ``low - 1`` if none."""
    inside, outside = low - 1, high + 1
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return inside


def first_integer(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer in [low, high] where ``holds`` is true, or ``high + 1`` if none.

    Here ``holds`` is false up to a switch and true beyond it.
    """
    return last_integer(lambda i: not holds(i), low, high) + 1


def bracket_doubles(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return the adjacent doubles between which ``holds`` turns from true (at ``low``) to false.

    ``low`` is at least 0. The bit patterns, which order non-negative doubles, are bisected: at most
    63 steps at any scale. If ``holds`` is true at ``high`` as well, both ends are ``high``.
    """
    if holds(high):
        return high, high
    first, last = _bits(low), _bits(high)
    inside = last_integer(lambda bits: holds(_double(bits)), first + 1, last - 1)
    return _double(inside), _double(inside + 1)


def last_double(holds: Callable[[float], bool]) -> float:
    """Return the last double >= 0 at which ``holds`` is true.

    Infinity if it is true everywhere, minus infinity if nowhere.
    """
    if not holds(0.0):
        return -math.inf
    low, high = 0.0, 1.0
    while holds(high):
        if high == sys.float_info.max:
            return math.inf
        low, high = high, min(2.0 * high * high, sys.float_info.max)
    return bracket_doubles(holds, low, high)[0]


def _bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def _double(bits: int) -> float:
    return float(np.int64(bits).view(np.float64))
