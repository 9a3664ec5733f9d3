"""Checks of scalar arguments. Errors name the argument, what it must be, and what it got.

Each check returns the value as a Python number. Use that number and not the argument: the scalars
of NumPy overflow, and most functions do not take tensors for numbers.
"""

import math
import operator
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any

import numpy as np

MAX_COUNT = 2**31 - 1
"""The largest number of samples, trials or bits: counts of them are kept in 32 bits."""


def check_integer(name: str, value: object, *, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int in [low, high]; bools and floats are refused, not rounded.

    Integers of NumPy and torch, and arrays and tensors without axes, are converted.
    """
    is_bool = isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))
    if is_bool or getattr(value, "ndim", 0) != 0:
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    try:
        number = int(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`{name}` must be an integer, got {value!r}") from None
    if number < low or (high is not None and number > high):
        wanted = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise ValueError(f"`{name}` must be {wanted}, got {number}")
    return number


def check_real(
    name: str, value: object, *, low: float = -math.inf, open_low: bool = False
) -> float:
    """Return ``value`` as a finite float, at least ``low`` (above ``low`` if ``open_low``)."""
    number = _as_float(name, value)
    # Written so that NaN fails.
    above = number > low if open_low else number >= low
    if not (above and math.isfinite(number)):
        wanted = "finite" if low == -math.inf else f"finite and {'>' if open_low else '>='} {low:g}"
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}")
    return number


def check_probability(name: str, value: object) -> float:
    """Return ``value`` as a float in [0, 1]."""
    number = _as_float(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"`{name}` must be in [0, 1], got {value!r}")
    return number


def check_threshold(name: str, value: object) -> float:
    """Return ``value`` as a float, possibly infinite."""
    number = _as_float(name, value)
    if math.isnan(number):
        raise ValueError(f"`{name}` must not be NaN, got {value!r}")
    if number != value:
        raise ValueError(f"`{name}` must be within the range of doubles")
    return number


def check_flag(name: str, value: object) -> bool:
    """Return ``value``, which must be True or False: other objects are true, "no" among them."""
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` must be a bool, got {value!r}")
    return value


def pairs(name: str, values: object, wanted: str) -> Iterator[tuple[Any, Any]]:
    """Yield what must be pairs."""
    if not isinstance(values, Iterable):
        raise TypeError(f"`{name}` must be an iterable of pairs {wanted}, got {values!r}")
    for pair in values:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise TypeError(f"`{name}` must be pairs {wanted}, got {pair!r}")
        yield pair[0], pair[1]


def _as_float(name: str, value: object) -> float:
    """Return ``value`` as a float; refuse numbers between two doubles instead of rounding them."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a real number, got {value!r}")
    try:
        number = float(value)
    except TypeError:  # a time of NumPy counts as an integer, and is none
        raise TypeError(f"`{name}` must be a real number, got {value!r}") from None
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    if number != value and not math.isnan(number):
        raise ValueError(f"`{name}` must be a double, got {value!r}, which lies between two")
    return number
