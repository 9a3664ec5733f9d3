"""Operators that are made of operators: compiled where all parts are, else in Python.

The Python twins read like the formulas; csrc/certificates/combined.c says how the compiled ones
round.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeGuard

from bincp._core import _foreign, _operators
from bincp._core._operators import Operator as CompiledOperator
from bincp._utils.levels import float_above, float_below
from bincp.certificates._curves import shortened
from bincp.certificates._protocols import Bounds, Operator
from bincp.certificates._python_operators import PythonOperator

_BITS = 200  # of a root


def chain(parts: Sequence[Operator], rounds: int = 1) -> Operator:
    """Return the bounds of one ball after the other, all of them `rounds` times."""
    if rounds == 0:
        return _operators.identity()
    parts = _with_sums(parts)
    if len(parts) == 1 and (shift := _shift(parts[0])):
        return _operators.shifted(shift[0], float_above(rounds * Fraction(shift[1])))
    if _are_compiled(parts):
        return _operators.chain(parts, rounds)
    return _in_python("one ball after the other", _Chain(parts, rounds), rounds * _sum(parts))


def best(parts: Sequence[Operator]) -> Operator:
    """Return the best of bounds that all hold."""
    if _are_compiled(parts):
        return _operators.best(parts)
    return _in_python("best of several", _Best(parts), _sum(parts))


def joint_shift(first: Operator, second: Operator) -> Operator | None:
    """Return the bounds of two independent Gaussian shifts together; None for other operators.

    The two inputs are apart by the root of the sum of the squares, in standard deviations.
    """
    shifts = [_shift(part) for part in (first, second)]
    squares = [Fraction(shift[1]) ** 2 for shift in shifts if shift and shift[0] == "gaussian"]
    if len(squares) < 2:
        return None
    return _operators.gaussian(float_above(sqrt_above(sum(squares))))


def sqrt_above(number: Fraction | int) -> Fraction:
    """Return the square root, rounded up with a relative error of some 2^-190."""
    shift = _BITS - (number.numerator.bit_length() - number.denominator.bit_length()) // 2
    root = math.isqrt(math.ceil(number * Fraction(4) ** shift) - 1) + 1 if number else 0
    return root / Fraction(2) ** shift


def hierarchy(of: Operator, q: Fraction, r: int) -> Operator:
    """Return the bounds of noise that reaches each of r changed elements with probability q."""
    low, high = power(q, r)
    if float_below(low) == 0:
        return _operators.uniform(1.0)
    if low == 1:
        return _operators.identity() if r == 0 else of
    if _are_compiled(parts := [of]):
        rest = float_above(1 - low)
        lack = float_above(1 - low - Fraction(rest))
        return _operators.hierarchy(parts[0], float_below(low), float_above(high), rest, lack)
    return _in_python("hierarchical", _Hierarchy(of, low), evaluations_of(of) + 1)


def evaluations_of(operator: Operator) -> int:
    """Return how many bounds an operator evaluates for one probability, those of parts included."""
    if isinstance(operator, CompiledOperator):
        return _operators.evaluations_of(operator)
    return operator.evaluations if isinstance(operator, PythonOperator) else 1


def strict(operator: Operator) -> Operator:
    """Return an operator that takes each p for itself, and no p for the count that it is next to.

    What a combinator makes of a probability is no count any more.
    """
    counts = _operators.steps_of(operator) if isinstance(operator, CompiledOperator) else None
    if counts is None:
        return operator
    levels, steps = counts
    return _operators.uniform(float_above(Fraction(steps) / Fraction(levels)))


def power(q: Fraction, r: int) -> tuple[Fraction, Fraction]:
    """Return q^r for q in [0, 1], rounded to both sides with a relative error of 2^-190."""
    return _power(q, r, up=False), min(_power(q, r, up=True), Fraction(1))


def _power(q: Fraction, r: int, *, up: bool) -> Fraction:
    result, square = Fraction(1), q
    while r:
        if r % 2:
            result = shortened(result * square, up=up)
        square, r = shortened(square * square, up=up), r // 2
        if square < Fraction(1, 2**1100):  # far below the doubles; numbers stay short
            square = Fraction(1, 2**1100) if up and square else Fraction(0)
    return result


def _with_sums(parts: Sequence[Operator]) -> list[Operator]:
    """Return the parts, with one shift for two of one law that follow each other: shifts add up."""
    made: list[Operator] = []
    for part in parts:
        last, shift = _shift(made[-1]) if made else None, _shift(part)
        if last is not None and shift is not None and last[0] == shift[0]:
            total = float_above(Fraction(last[1]) + Fraction(shift[1]))
            made[-1] = _operators.shifted(shift[0], total)
        else:
            made.append(part)
    return made


def _in_python(name: str, bounds: Bounds, evaluations: int) -> PythonOperator:
    return PythonOperator(name, bounds.lower, bounds.upper, evaluations=evaluations)


def _sum(parts: Sequence[Operator]) -> int:
    return sum(map(evaluations_of, parts))


def _shift(part: Operator) -> tuple[str, float] | None:
    """Return the law and the shift of a finite shift, None for every other operator."""
    shift = _operators.shift_of(part) if isinstance(part, CompiledOperator) else None
    return shift if shift is not None and math.isfinite(shift[1]) else None


def _are_compiled(parts: Sequence[Operator]) -> TypeGuard[Sequence[CompiledOperator]]:
    """Return whether all parts are compiled and our own.

    Functions from outside raise an error where they leave [0, 1], which compiled code cannot.
    """
    return all(
        isinstance(part, CompiledOperator) and not isinstance(part, _foreign.ForeignOperator)
        for part in parts
    )


class _Chain:
    def __init__(self, parts: Sequence[Operator], rounds: int) -> None:
        self.parts, self.rounds = tuple(parts), rounds

    def lower(self, p: float) -> float:
        for _ in range(self.rounds if p > 0 else 0):
            for part in self.parts:
                p = part.lower(p)
        return p

    def upper(self, p: float) -> float:
        for _ in range(self.rounds if p < 1 else 0):
            for part in reversed(self.parts):
                p = part.upper(p)
        return p


class _Best:
    def __init__(self, parts: Sequence[Operator]) -> None:
        self.parts = tuple(parts)

    def lower(self, p: float) -> float:
        return max(part.lower(p) for part in self.parts)

    def upper(self, p: float) -> float:
        return min(part.upper(p) for part in self.parts)


class _Hierarchy:
    """Exact arithmetic, rounded once. `w` comes rounded down: less w is worse for both bounds."""

    def __init__(self, of: Operator, w: Fraction) -> None:
        self.of, self.w = of, w

    def lower(self, p: float) -> float:
        given = max(1 - (1 - Fraction(p)) / self.w, Fraction(0))
        return float_below(self.w * Fraction(self.of.lower(float_below(given))))

    def upper(self, p: float) -> float:
        given = min(Fraction(p) / self.w, Fraction(1))
        return float_above(1 - self.w * (1 - Fraction(self.of.upper(float_above(given)))))
