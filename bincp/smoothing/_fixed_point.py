"""Elementary functions in fixed point with 320 bits, from integers alone.

A number x is the integer x 2^320, rounded. Each operation rounds by a unit or two, and no function
here is off by more than 2^-300 for the arguments that it is made for.
"""

from fractions import Fraction
from math import ceil, isqrt

BITS = 320
UNIT = 1 << BITS


def fixed(value: Fraction) -> int:
    """Return a fraction as the nearest number."""
    return round(value * UNIT)


def exp_minus(y: Fraction) -> int:
    """Return exp(-y), y >= 0: by its series near 0, and squares."""
    halvings = max(ceil(y), 1).bit_length()
    small = fixed(y / 2**halvings)
    value = term = UNIT
    n = 0
    while term:
        n += 1
        term = (term * small >> BITS) // n
        value += -term if n % 2 else term
    for _ in range(halvings):
        value = value * value >> BITS
    return value


def exp(t: int) -> int:
    """Return the exponential of a number below 100."""
    value = exp_minus(Fraction(abs(t), UNIT))
    return value if t <= 0 else (UNIT << BITS) // value


def log(value: Fraction) -> int:
    """Return the logarithm of a positive fraction: log(m 2^e) for m next to 1."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e * LOG_2 + log_ratio(value / Fraction(2) ** e)


def log_ratio(ratio: Fraction) -> int:
    """Return the logarithm of a fraction in [1/2, 2]: 2 artanh(z), with |z| <= 1/3."""
    z = fixed((ratio - 1) / (ratio + 1))
    square, power = z * z >> BITS, z
    total, n = 0, 1
    while power not in (0, -1):
        total += power // n
        power = power * square >> BITS
        n += 2
    return 2 * total


def growing_series(a: Fraction, y: int) -> int:
    """Return the sum of y^n / ((a + 1) (a + 2) ... (a + n)) over n = 0, 1, ..., for y, a >= 0.

    It is gamma(a, y) exp(y) a / y^a with the lower incomplete gamma function, and exp(y) for a = 0.
    """
    total = term = UNIT
    below = a.numerator
    while term:
        below += a.denominator
        term = (term * y >> BITS) * a.denominator // below
        total += term
    return total


def gamma_above_one(a: Fraction) -> int:
    """Return gamma(1 + a) for 0 < a <= 2: Y^a times a quotient of two series, for Y = 256.

    What the lower incomplete gamma function misses there is less than 2^-350 of it.
    """
    large = 256 << BITS
    quotient = (growing_series(a, large) << BITS) // growing_series(Fraction(0), large)
    return exp(8 * LOG_2 * a.numerator // a.denominator) * quotient >> BITS


def _pi() -> int:
    """Return pi, by Machin's formula."""

    def arccot(x: int) -> int:
        power = UNIT // x
        total, n = power, 1
        while power:
            power = -power // (x * x)
            n += 2
            total += power // n
        return total

    return 4 * (4 * arccot(5) - arccot(239))


INV_SQRT_2PI = isqrt((1 << 3 * BITS) // (2 * _pi()))
LOG_2 = log_ratio(Fraction(2))
