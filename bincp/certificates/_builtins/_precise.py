"""Constants of additive noise to more digits than doubles have, from the standard library alone.

Each is computed once a certificate, in decimal arithmetic with 30 digits to spare. Shifts come
rounded up, with a margin of 1e-25 for all errors made here; the other constants are the nearest
doubles, and their rounding is part of the errors that the kernels allow for.
"""

import functools
import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import ParamSpec

from bincp._utils.levels import float_above

_DIGITS = 60
_MARGIN = 1 + Fraction(1, 10**25)
_STIRLING_FROM = 64  # 30 terms from here on leave 1e-70
_CERTAIN = 100  # exp(-100) is far below the spacing of doubles at 1
_TINY = Decimal("1e-40")

P = ParamSpec("P")


def _with_digits(function: Callable[P, float]) -> Callable[P, float]:
    """Evaluate a function with enough digits for logarithms up to 1e60."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> float:
        with localcontext(Context(prec=2 * _DIGITS)):
            return function(*args, **kwargs)

    return wrapped


@_with_digits
def gamma(x: Fraction) -> float:
    """Return the gamma function of a number in (0, 2]."""
    return float(_log_gamma(x).exp())


@_with_digits
def sech_norm(alpha: Fraction) -> float:
    """Return gamma(alpha + 1/2) / (gamma(alpha) sqrt(pi)), the norm of sech(x)**(2 alpha)."""
    return float(_log_sech_norm(alpha).exp())


@_with_digits
def digamma_rise(x: Fraction) -> float:
    """Return digamma(x) - digamma(1) for x in (0, 1]."""
    return float(_digamma(x) - _digamma(Fraction(1)))


def cube_shift(ratio: Fraction, dim: int) -> float:
    """Return 1 - (1 - ratio)**dim rounded up: the part of a cube that a shift takes."""
    if ratio * dim <= Fraction(1, 10**20):
        return float_above(ratio * dim)  # Bernoulli's inequality
    if ratio >= 1 or ratio * dim >= _CERTAIN:
        return 1.0
    return _cube_shift(ratio, dim)


@_with_digits
def _cube_shift(ratio: Fraction, dim: int) -> float:
    return _rounded_up(1 - (dim * (1 - _decimal(ratio)).ln()).exp())


def ball_shift(ratio: Fraction, dim: int) -> float:
    """Return I_{ratio^2}(1/2, (dim + 1)/2) rounded up: the part of a ball that a shift takes."""
    if ratio == 0:
        return 0.0
    if ratio >= 1 or ratio**2 * (dim + 1) >= 2 * _CERTAIN:
        return 1.0
    return _ball_shift(ratio, Fraction(dim + 1, 2))


@_with_digits
def _ball_shift(ratio: Fraction, b: Fraction) -> float:
    x, y = _decimal(ratio**2), _decimal(1 - ratio**2)
    scale = (_log_sech_norm(b) + _decimal(b) * y.ln()).exp()
    if x <= y:
        # The remainder is positive, and below three times the last term.
        return _rounded_up(2 * scale * x.sqrt() * _series(x, b + Fraction(1, 2), Fraction(3, 2)))
    # From the other end, where the terms that are left out would make the result smaller.
    factor = scale / _decimal(b)
    return _rounded_up(1 - factor * _series(y, b, b + 1, Fraction(1, 2)))


def _series(z: Decimal, a: Fraction, c: Fraction, b: Fraction = Fraction(1)) -> Decimal:
    """Sum 2F1(a, b; c; z), z <= 1/2, until the terms fall by more than half and are tiny."""
    top, side, low = _decimal(a), _decimal(b), _decimal(c)
    term = total = Decimal(1)
    n = 0
    while True:
        factor = z * (top + n) * (side + n) / ((low + n) * (1 + n))
        term *= factor
        total += term
        n += 1
        if term <= _TINY * total and factor <= Decimal("0.75"):
            return total


def exponential_shift(ratio: Fraction, k: Fraction, j: Fraction, dim: int) -> float:
    """Return ratio / g rounded up, g = d/(d-1) Gamma((d-j)/k) / Gamma((d-j-1)/k), at most 1.

    The limit for d = 1 and j = 0 is Gamma(1 + 1/k). Needs d - j > 1 otherwise.
    """
    if ratio == 0:
        return 0.0
    high, low = (dim - j) / k, (dim - j - 1) / k
    with localcontext(Context(prec=2 * _DIGITS + 2 * _magnitude(high))):
        if dim == 1:
            log_g = _log_gamma(1 + high)
        else:
            log_g = _log_gamma(high) - _log_gamma(low) + _decimal(Fraction(dim, dim - 1)).ln()
        log_shift = _decimal(ratio).ln() - log_g
        if log_shift >= 0:
            return 1.0
        return _rounded_up(log_shift.exp()) if log_shift > -800 else math.ulp(0.0)


def _rounded_up(value: Decimal) -> float:
    return min(float_above(Fraction(value) * _MARGIN), 1.0)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _magnitude(value: Fraction) -> int:
    """Return roughly how many decimal digits the whole part has."""
    return max(math.floor(value), 1).bit_length() * 3 // 10


def _log_sech_norm(alpha: Fraction) -> Decimal:
    half = Fraction(1, 2)
    return _log_gamma(alpha + half) - _log_gamma(alpha) - _log_gamma(half)


def _log_gamma(x: Fraction) -> Decimal:
    """Return log gamma by Stirling's series; its constant follows from log gamma(1) = 0."""
    return _stirling(x) - _stirling(Fraction(1))


def _stirling(x: Fraction) -> Decimal:
    z, log_product = _decimal(x), Decimal(0)
    if z < _STIRLING_FROM:
        product = Decimal(1)
        while z < _STIRLING_FROM:
            product *= z
            z += 1
        log_product = product.ln()
    value = (z - Decimal("0.5")) * z.ln() - z - log_product
    for n, number in enumerate(_bernoulli(), start=1):
        value += _decimal(number) / (2 * n * (2 * n - 1) * z ** (2 * n - 1))
    return value


def _digamma(x: Fraction) -> Decimal:
    z, value = _decimal(x), Decimal(0)
    while z < _STIRLING_FROM:
        value -= 1 / z
        z += 1
    value += z.ln() - 1 / (2 * z)
    for n, number in enumerate(_bernoulli(), start=1):
        value -= _decimal(number) / (2 * n * z ** (2 * n))
    return value


@functools.cache
def _bernoulli() -> tuple[Fraction, ...]:
    """Return B_2, B_4, ..., B_60."""
    numbers = [Fraction(1)]
    for n in range(1, 61):
        known = sum((math.comb(n + 1, k) * numbers[k] for k in range(n)), Fraction(0))
        numbers.append(-known / (n + 1))
    return tuple(numbers[2::2])
