"""Exact arithmetic on levels: every rank follows from the decimal that the user wrote.

``floor(alpha * (n + 1))`` in floating point misses the exact rank for some pairs (n = 9 and
alpha = 1 - 0.9, for example), and a rank that is one too large loses the guarantee.
"""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

Level = int | float | str | Decimal | Fraction
"""A number that decides a rank. A float stands for its shortest decimal: 0.1 is 1/10."""

LEVELS = (int, float, str, Decimal, Fraction, np.integer, np.floating)
"""The types of a `Level`; text is iterable, and still one number."""

TRUE_MIN = 5e-324
"""The smallest positive double."""

_NOMINAL_SIZE = 1000

_MAX_EXPONENT = 400  # power of ten, beyond that of doubles; "1e-999999999" would fill the memory
_MOST_BITS = 14_000  # Python prints whole numbers of no more than 4300 digits


def as_fraction(name: str, value: Level) -> Fraction:
    """Return the exact rational that ``value`` was written as."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, LEVELS):
        raise TypeError(f"`{name}` must be an int, float, str, Decimal or Fraction, got {value!r}")
    if isinstance(value, Fraction):
        if max(abs(value.numerator), value.denominator).bit_length() > _MOST_BITS:
            raise ValueError(
                f"`{name}` must have at most {_MOST_BITS} bits above and below the line"
            )
        return value
    text = _written(name, value)
    wanted = "a finite number"
    try:
        if "/" not in text and abs(Decimal(text).adjusted()) > _MAX_EXPONENT:
            wanted = f"0 or between 1e-{_MAX_EXPONENT} and 1e{_MAX_EXPONENT} in size"
            raise ValueError
        return Fraction(text)
    except (ValueError, ArithmeticError):
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}") from None


def _written(name: str, value: int | float | str | Decimal) -> str:
    """Return a number as it was written, also where a subclass prints it in another form."""
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, int) and abs(value) > 10**_MAX_EXPONENT:
        raise ValueError(f"`{name}` must be below 1e{_MAX_EXPONENT}")
    if isinstance(value, str | int | Decimal):
        kind = next(kind for kind in (str, int, Decimal) if isinstance(value, kind))
        return str(kind(value)).strip()
    return str(value)  # a NumPy scalar


def check_level(name: str, value: Level, *, closed_high: bool = False) -> Fraction:
    """Return ``value`` as an exact level in (0, 1), or in (0, 1] if ``closed_high``."""
    level = as_fraction(name, value)
    if not (0 < level < 1 or (closed_high and level == 1)):
        raise ValueError(f"`{name}` must be in (0, 1{']' if closed_high else ')'}, got {value!r}")
    return level


def shown(number: Fraction | int) -> str:
    """Return a positive number for a message, in few digits, also beyond the range of doubles."""
    if isinstance(number, int) and number < 10**15:
        return str(number)
    quotient = Decimal(number.numerator) / Decimal(number.denominator)
    small = quotient.adjusted() < -300 or quotient.adjusted() > 300  # doubles lose digits there
    return f"{quotient:.6g}".lower() if small else f"{float(number):g}"


def minus_log(level: Fraction) -> Fraction:
    """Return -log(level) > 0 with a relative error of some roundings, for any level in (0, 1)."""
    rest = 1 - level
    if rest < Fraction(1, 2**60):
        return rest  # the series goes on with rest^2 / 2
    if level > Fraction(1, 2):
        return Fraction(-math.log1p(-rest))
    return Fraction(math.log(level.denominator) - math.log(level.numerator))


def conformal_rank(alpha: Fraction, n: int) -> int:
    """Return j = floor(alpha (n + 1)): the threshold is the j-th smallest of n scores.

    This is sup{tau : #{score >= tau} >= (1 - alpha)(n + 1)}; rank 0 stands for the threshold -inf,
    which accepts every label.
    """
    return math.floor(alpha * (n + 1))


def nominal_size(share: Fraction) -> int:
    """Return a size n for which ``share`` is the whole number of a rank, over n + 1, if it can be.

    It stands for the unknown n of a rule that must not depend on n.
    """
    least = max(_NOMINAL_SIZE, math.ceil(20 / share)) if share > 0 else _NOMINAL_SIZE
    whole = share.denominator if share.denominator <= _NOMINAL_SIZE else 1
    return whole * -(-least // whole) - 1


def success_rank(p: Fraction, m: int) -> int:
    """Return t = ceil(p m): at least a share p of m scores reaches their t-th largest."""
    return math.ceil(p * m)


def float_below(level: Fraction) -> float:
    """Return the largest double that is at most ``level``."""
    nearest = float(level)
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > level else nearest


def float_above(value: Fraction) -> float:
    """Return the least double that is at least ``value``; infinity beyond the largest."""
    try:
        return -float_below(-value) + 0.0  # no negative zero
    except OverflowError:
        return math.inf
