"""The laws of integer noise: additive noise on a grid, rounded to its nearest point.

Thresholds are integers in units of 2^-128: T[k] is the nearest one to P(N grid <= k + 1/2), for
k = 0, 1, ..., until the next would be 2^128. They are computed in fixed point with 320 bits, of
which the errors reach the last 20 at most, so no threshold is off by more than half a unit. The
laws are symmetric: the mass of a point q >= 0 is T[q] - T[q - 1], and that of -q is the same but
for q = 0, whose mass is T[0] - (2^128 - T[0]).
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import count, islice
from math import ceil, floor, isqrt
from typing import NamedTuple

ONE = 1 << 128
MAX_HALF = 2**15 - 1
"""The farthest grid point of the noise: a table of more than 2^16 points leaves the cache."""

_BITS = 320
_UNIT = 1 << _BITS
_LONGEST_STEP = Fraction(1, 8)  # of a Taylor series, in standard deviations: some 40 terms


class Law(NamedTuple):
    """A law of additive noise."""

    scale: str  # the name of the parameter
    thresholds: Callable[[Fraction], Iterator[int]]  # of a scale in grid steps
    reach: int  # the farthest point is at least so many scales away, but for scales below a step


@lru_cache(maxsize=32)
def thresholds(law: str, scale: float, grid: int) -> tuple[int, ...]:
    """Return T[0], ..., T[half - 1] of the noise with this scale, in units of its input.

    Raises
    ------
    ValueError
        If the noise reaches more than `MAX_HALF` grid points far.
    """
    steps = Fraction(scale) * grid
    kind = LAWS[law]
    if kind.reach * steps <= MAX_HALF + 1:
        values = tuple(islice(_below_one(kind.thresholds(steps)), MAX_HALF + 1))
        if len(values) <= MAX_HALF:
            return values
    raise ValueError(
        f"`{kind.scale}` must give noise that reaches at most {MAX_HALF} grid points far, "
        f"got {scale!r} with grid = {grid}"
    )


def _below_one(values: Iterator[int]) -> Iterator[int]:
    for value in values:
        if value >= ONE:
            return
        yield value


def _gaussian(s: Fraction) -> Iterator[int]:
    """Step from point to point by Taylor series of the density and of its integral.

    With a_n the terms of the density phi around x for a step h, (n + 1) a_{n + 1} is
    -(x h a_n + h^2 a_{n - 1}). An odd number of steps makes a cell, so that its ends are ends of
    steps and a first half step leads there.
    """
    if s < Fraction(1, 64):  # T[0] is 2^128: the rest is less than exp(-500)
        return
    per_cell = ceil(1 / (s * _LONGEST_STEP)) | 1
    h = 1 / (s * per_cell)
    length, half_square = _fixed(h), _fixed(h * h / 2)
    density, rise = _taylor(_INV_SQRT_2PI, 0, half_square // 2)
    integral = (_UNIT >> 1) + (length // 2 * rise >> _BITS)
    for step in count():  # it begins at (step + 1/2) h
        if step % per_cell == per_cell // 2:
            yield _rounded(integral)
        density, rise = _taylor(density, (2 * step + 1) * half_square, 2 * half_square)
        integral += length * rise >> _BITS


def _taylor(density: int, xh: int, hh: int) -> tuple[int, int]:
    """Return the density at the end of a step, and its mean over the step."""
    end = mean = term = density
    before, n = 0, 0
    while term or before:
        n += 1
        term, before = -(xh * term + hh * before >> _BITS) // n, term
        end += term
        mean += term // (n + 1)
    return end, mean


def _laplace(s: Fraction) -> Iterator[int]:
    if s < Fraction(1, 512):  # T[0] is 2^128: the rest is less than exp(-256)
        return
    tail, ratio = _exp_minus(1 / (2 * s)), _exp_minus(1 / s)
    while True:
        yield _rounded(_UNIT - tail // 2)
        tail = tail * ratio >> _BITS


def _uniform(s: Fraction) -> Iterator[int]:
    for k in count():
        below = min((k + Fraction(1, 2) + s) / (2 * s), Fraction(1))
        yield floor(below * ONE + Fraction(1, 2))


def _exp_minus(y: Fraction) -> int:
    """Return exp(-y) in fixed point: by its series near 0, and squares."""
    halvings = max(ceil(y), 1).bit_length()
    small = _fixed(y / 2**halvings)
    value = term = _UNIT
    n = 0
    while term:
        n += 1
        term = (term * small >> _BITS) // n
        value += -term if n % 2 else term
    for _ in range(halvings):
        value = value * value >> _BITS
    return value


def _pi() -> int:
    """Return pi in fixed point, by Machin's formula."""

    def arccot(x: int) -> int:
        power = _UNIT // x
        total, n = power, 1
        while power:
            power = -power // (x * x)
            n += 2
            total += power // n
        return total

    return 4 * (4 * arccot(5) - arccot(239))


def _fixed(value: Fraction) -> int:
    return round(value * _UNIT)


def _rounded(value: int) -> int:
    """Return a number of 320 bits as the nearest one of 128."""
    return (value + (1 << _BITS - 129)) >> _BITS - 128


_INV_SQRT_2PI = isqrt((1 << 3 * _BITS) // (2 * _pi()))

LAWS = {
    "gaussian": Law("sigma", _gaussian, 13),
    "laplace": Law("scale", _laplace, 88),
    "uniform": Law("half_width", _uniform, 1),
}
