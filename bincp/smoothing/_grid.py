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
from math import ceil, floor
from typing import NamedTuple

from bincp.smoothing._fixed_point import (
    BITS,
    INV_SQRT_2PI,
    LOG_2,
    UNIT,
    exp,
    exp_minus,
    fixed,
    gamma_above_one,
    growing_series,
    log,
    log_ratio,
)

ONE = 1 << 128
MAX_HALF = 2**15 - 1
"""The farthest grid point of the noise: a table of more than 2^16 points leaves the cache."""

_LONGEST_STEP = Fraction(1, 8)  # of a Taylor series, in standard deviations: some 40 terms


class Law(NamedTuple):
    """A law of additive noise, of a scale in grid steps and a shape, which few laws have."""

    scale: str  # the name of the parameter
    thresholds: Callable[[Fraction, float], Iterator[int]]
    farthest: Callable[[Fraction, float, int], Fraction]  # the last point, or a number below it
    shape: str | None = None  # the name of the parameter
    cut: bool = False  # whether the last point takes the tail beyond


@lru_cache(maxsize=32)
def thresholds(law: str, scale: float, grid: int, shape: float = 0.0) -> tuple[int, ...]:
    """Return T[0], ..., T[half - 1] of the noise with this scale, in units of its input.

    Raises
    ------
    ValueError
        If the noise reaches more than `MAX_HALF` grid points far.
    """
    kind, steps = LAWS[law], Fraction(scale) * grid
    farthest = kind.farthest(steps, shape, grid)
    if farthest <= MAX_HALF:
        number = ceil(farthest) if kind.cut else MAX_HALF + 1
        values = tuple(islice(_below_one(kind.thresholds(steps, shape)), number))
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


def _gaussian(s: Fraction, _: float) -> Iterator[int]:
    """Step from point to point by Taylor series of the density and of its integral.

    With a_n the terms of the density phi around x for a step h, (n + 1) a_{n + 1} is
    -(x h a_n + h^2 a_{n - 1}). An odd number of steps makes a cell, so that its ends are ends of
    steps and a first half step leads there.
    """
    if s < Fraction(1, 64):  # T[0] is 2^128: the rest is less than exp(-500)
        return
    per_cell = ceil(1 / (s * _LONGEST_STEP)) | 1
    h = 1 / (s * per_cell)
    length, half_square = fixed(h), fixed(h * h / 2)
    density, rise = _taylor(INV_SQRT_2PI, 0, half_square // 2)
    integral = (UNIT >> 1) + (length // 2 * rise >> BITS)
    for step in count():  # it begins at (step + 1/2) h
        if step % per_cell == per_cell // 2:
            yield _rounded(integral)
        density, rise = _taylor(density, (2 * step + 1) * half_square, 2 * half_square)
        integral += length * rise >> BITS


def _taylor(density: int, xh: int, hh: int) -> tuple[int, int]:
    """Return the density at the end of a step, and its mean over the step."""
    end = mean = term = density
    before, n = 0, 0
    while term or before:
        n += 1
        term, before = -(xh * term + hh * before >> BITS) // n, term
        end += term
        mean += term // (n + 1)
    return end, mean


def _laplace(s: Fraction, _: float) -> Iterator[int]:
    if s < Fraction(1, 512):  # T[0] is 2^128: the rest is less than exp(-256)
        return
    tail, ratio = exp_minus(1 / (2 * s)), exp_minus(1 / s)
    while True:
        yield _rounded(UNIT - tail // 2)
        tail = tail * ratio >> BITS


def _uniform(s: Fraction, _: float) -> Iterator[int]:
    for k in count():
        below = min((k + Fraction(1, 2) + s) / (2 * s), Fraction(1))
        yield floor(below * ONE + Fraction(1, 2))


def _expp(s: Fraction, p: float) -> Iterator[int]:
    """With x = (k + 1/2) / s and y = x^p, P(|N| <= x) is x exp(-y) / gamma(1 + 1/p) times a series.

    The logarithm of 2 k + 1 grows by that of a quotient from point to point.
    """
    power = Fraction(p)
    constant, log_steps, log_odd = gamma_above_one(1 / power), log(2 * s), 0
    for k in count():
        if k:
            log_odd += log_ratio(Fraction(2 * k + 1, 2 * k - 1))
        log_y = (log_odd - log_steps) * power.numerator // power.denominator
        if log_y > 5 * UNIT:  # the rest is less than exp(-148)
            return
        y = exp(log_y)
        density = fixed((2 * k + 1) / (2 * s)) * exp(-y) // constant
        yield _rounded(UNIT + (density * growing_series(1 / power, y) >> BITS) >> 1)


def _pareto(s: Fraction, a: float) -> Iterator[int]:
    power, total = Fraction(a), log((2 * s + 1) / (2 * s))
    for k in count(1):
        tail = exp(-(total * power.numerator // power.denominator))
        yield _rounded(UNIT - tail // 2)
        total += log_ratio((2 * s + 2 * k + 1) / (2 * s + 2 * k - 1))


def pareto_clip(scale: float, grid: int, a: float) -> int:
    """Return where outputs of Pareto noise are clipped, in grid steps.

    Inputs are up to 1 in size, and a draw is beyond the rest with probability 2^-10.
    """
    return grid + _common_pareto(Fraction(scale) * grid, a)


def _common_pareto(s: Fraction, a: float) -> int:
    """Return what noise exceeds with probability 2^-10: s (2^(10/a) - 1) steps, rounded up."""
    return ceil(s * (Fraction(exp(int(10 / Fraction(a) * LOG_2)), UNIT) - 1))


def _rounded(value: int) -> int:
    """Return a number of 320 bits as the nearest one of 128."""
    return (value + (1 << BITS - 129)) >> BITS - 128


def _scales(number: Callable[[float], float]) -> Callable[[Fraction, float, int], Fraction]:
    """Return the `farthest` of a law that has points at least so many scales away."""
    return lambda s, shape, _: Fraction(number(shape)) * s - 1


LAWS = {
    "gaussian": Law("sigma", _gaussian, _scales(lambda _: 13)),
    "laplace": Law("scale", _laplace, _scales(lambda _: 88)),
    "uniform": Law("half_width", _uniform, _scales(lambda _: 1)),
    "expp": Law("scale", _expp, _scales(lambda p: 75 ** (1 / p)), "p"),
    "pareto": Law(
        "scale",
        _pareto,
        # Noise that moves the least input beyond the largest output is as good as the largest.
        lambda s, a, grid: Fraction(2 * grid + _common_pareto(s, a)),
        "a",
        cut=True,
    ),
}
