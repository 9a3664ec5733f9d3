"""One piecewise linear bound after another, without the rounding of what lies between them.

A bound by regions is a curve through knots. Where the first result is a double, a steep second
bound enlarges its rounding; as exact fractions the knots of both give those of the whole. Each knot
is moved to the safe side by the error of the masses, counted from its nearer end, so that no digits
are lost near 0 and 1.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from bincp._utils.levels import TRUE_MIN
from bincp.certificates._masses import Array, Masses, by_decreasing_ratio

Knots = list[tuple[Fraction, Fraction]]

_BITS = 200
_MASS_ERROR = 2.0**-52


def in_sequence(parts: Sequence[Masses]) -> Masses:
    """Return the regions of the bounds of parts, one after the other."""
    curve = _knots(parts[0])
    for part in parts[1:]:
        curve = _after(curve, _knots(part))
    clean = [b[0] - a[0] for a, b in pairwise(curve)]
    perturbed = [b[1] - a[1] for a, b in pairwise(curve)]
    return Masses(
        as_masses([*clean, Fraction(0)]),
        as_masses([*perturbed, 1 - curve[-1][1]]),
        _MASS_ERROR,
        2 * len(curve) * TRUE_MIN,
    )


def as_masses(masses: Sequence[Fraction]) -> Array:
    """Return masses as doubles that are 0 only where the mass is."""
    return np.array([float(mass) or (TRUE_MIN if mass else 0.0) for mass in masses])


def shortened(number: Fraction, *, up: bool) -> Fraction:
    """Return a number rounded to 200 bits, to one side."""
    if number == 0:
        return number
    shift = _BITS - number.numerator.bit_length() + number.denominator.bit_length()
    scaled = number * Fraction(2) ** shift
    return (math.ceil(scaled) if up else math.floor(scaled)) / Fraction(2) ** shift


def _knots(masses: Masses) -> Knots:
    """Return the knots of `lower`, from (0, 0) to p = 1, moved to the safe side."""
    order = by_decreasing_ratio(masses.clean, masses.perturbed)
    clean = [Fraction(mass) for mass in masses.clean[order].tolist()]
    perturbed = [Fraction(mass) for mass in masses.perturbed[order].tolist()]
    slack, tiny = Fraction(masses.slack), Fraction(masses.tiny)
    right, down = _sums(clean, slack, tiny, up=True), _sums(perturbed, slack, tiny, up=False)
    last = max(k for k, mass in enumerate(clean, start=1) if mass > 0)
    return [
        (Fraction(0), Fraction(0)),
        *zip(right[1:last], down[1:last], strict=True),
        (Fraction(1), down[last]),
    ]


def _sums(
    masses: Sequence[Fraction], slack: Fraction, tiny: Fraction, *, up: bool
) -> list[Fraction]:
    """Return the sums of the first masses, rounded to one side, in increasing order."""
    below, above = [Fraction(0)], [Fraction(0)]
    for mass in masses:
        below.append(below[-1] + mass)
    for mass in reversed(masses):
        above.append(above[-1] + mass)
    above.reverse()
    sign = 1 if up else -1
    sums = []
    for low, high in zip(below, above, strict=True):
        if 2 * low <= 1:
            moved = low * (1 + sign * slack) + sign * tiny if low else low
        else:
            moved = 1 - (high * (1 - sign * slack) - sign * tiny) if high else Fraction(1)
        sums.append(min(max(moved, Fraction(0)), Fraction(1)))
    if up:
        return [max(sums[: k + 1]) for k in range(len(sums))]
    return [min(sums[k:]) for k in range(len(sums))]


def _after(first: Knots, second: Knots) -> Knots:
    """Return the knots of the second curve at the value of the first one."""
    made = [(Fraction(0), Fraction(0))]
    j = 1  # the next knot of the second curve
    for (p, v), (next_p, next_v) in pairwise(first):
        while j < len(second) and second[j][0] < next_v:
            q, w = second[j]
            made.append((p + (q - v) * (next_p - p) / (next_v - v), w))
            j += 1
        made.append((next_p, _height(second, j, next_v)))
    return [(_rounded(p, up=True), _rounded(w, up=False)) for p, w in made]


def _height(curve: Knots, j: int, q: Fraction) -> Fraction:
    """Return the height at q, which is between the knots j - 1 and j."""
    if j == len(curve):
        return curve[-1][1]
    (q0, w0), (q1, w1) = curve[j - 1], curve[j]
    return w0 + (q - q0) * (w1 - w0) / (q1 - q0) if q1 > q0 else w0


def _rounded(number: Fraction, *, up: bool) -> Fraction:
    if 2 * number <= 1:
        return shortened(number, up=up)
    return 1 - shortened(1 - number, up=not up)
