"""Likelihood-ratio regions of discrete noise with known ratios, and products of them.

Ratios are products of powers of a few numbers. Their logarithms are kept as integers, in units of
2^-70, so that regions are ordered and merged by exact comparison: equal powers have equal integers,
whatever the order of multiplication. Unequal ratios that differ by rounding alone (at most 2^-50,
which is part of the slack) may stand in either order: the bounds hold for both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._core import _operators
from bincp._utils.levels import TRUE_MIN

Masses = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_FLIPS = 10**5  # exponents, so that the integers below cannot overflow
MAX_REGIONS = 10**7

_SCALE_BITS = 70
_LOW_BITS = 40
_DIGITS = Context(prec=60)


@dataclass(frozen=True)
class Regions:
    """Regions in any order: masses at the clean and the perturbed input, and ratios of the two.

    Masses are right to a relative error `slack`; underflow takes at most `tiny` more from all of
    them together. A mass is 0 only if the region cannot happen. A ratio clean / perturbed counts
    where no mass is 0, and is given by its logarithm, ``high * 2^40 + low`` in units of 2^-70.
    """

    clean: Masses
    perturbed: Masses
    high: Integers
    low: Integers
    slack: float
    tiny: float


def log_in_units(ratio: Fraction) -> int:
    """Return the logarithm of a ratio in units of 2^-70; for the ratio 0, without one, return 0."""
    if ratio == 0:
        return 0
    log = _DIGITS.subtract(
        Decimal(ratio.numerator).ln(_DIGITS), Decimal(ratio.denominator).ln(_DIGITS)
    )
    return round(_DIGITS.multiply(log, Decimal(2**_SCALE_BITS)))


def combine_logs(terms: Sequence[tuple[Integers, int]]) -> tuple[Integers, Integers]:
    """Return the sum of exponents times logarithms, as high and low parts."""
    high = sum(exponents * (log >> _LOW_BITS) for exponents, log in terms)
    low = sum(exponents * (log & (2**_LOW_BITS - 1)) for exponents, log in terms)
    return _carried(np.asarray(high), np.asarray(low))


def ratio_slack(flips: int) -> float:
    """Return twice the relative error of a ratio of these flips: four rounded logarithms each."""
    return 8 * flips * 2.0 ** -(_SCALE_BITS + 1)


def product(first: Regions, second: Regions) -> Regions:
    """Return the regions of two independent parts together, merged where ratios are equal."""
    n = len(first.clean) * len(second.clean)
    if n > MAX_REGIONS:
        raise ValueError(
            f"`ball` must make at most {MAX_REGIONS} pairs of regions, got "
            f"{len(first.clean)} times {len(second.clean)}"
        )
    high, low = _carried(
        np.add.outer(first.high, second.high).ravel(), np.add.outer(first.low, second.low).ravel()
    )
    return merged(
        Regions(
            _outer(first.clean, second.clean),
            _outer(first.perturbed, second.perturbed),
            high,
            low,
            first.slack + second.slack + 2.0**-52,
            2 * (first.tiny + second.tiny) + 2 * n * TRUE_MIN,
        )
    )


def merged(regions: Regions) -> Regions:
    """Return the regions in decreasing order of ratio, one for each ratio."""
    clean, perturbed = regions.clean, regions.perturbed
    kind = np.sign(clean) - np.sign(perturbed)  # 1: ratio infinity, -1: ratio 0
    high, low = np.where(kind == 0, (regions.high, regions.low), 0)
    order = np.lexsort((low, high, kind))[::-1]
    order = order[(clean[order] > 0) | (perturbed[order] > 0)]
    keys = np.stack((kind[order].astype(np.int64), high[order], low[order]))
    starts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
    return Regions(
        _sums(clean[order], starts),
        _sums(perturbed[order], starts),
        keys[1, starts],
        keys[2, starts],
        regions.slack + 2.0**-52,
        regions.tiny,
    )


def operator(regions: Regions) -> _operators.Operator:
    """Return the knapsack over merged regions; the identity where all ratios are 1."""
    if len(regions.clean) == 1 and regions.high[0] == 0 and regions.low[0] == 0:
        return _operators.identity()
    return _operators.regions(regions.clean, regions.perturbed, regions.slack, regions.tiny)


def _carried(high: Integers, low: Integers) -> tuple[Integers, Integers]:
    return high + (low >> _LOW_BITS), low & (2**_LOW_BITS - 1)


def _outer(first: Masses, second: Masses) -> Masses:
    masses: Masses = np.multiply.outer(first, second).ravel()
    possible = np.logical_and.outer(first > 0, second > 0).ravel()
    masses[possible & (masses == 0)] = TRUE_MIN
    return masses


def _sums(masses: Masses, starts: npt.NDArray[np.intp]) -> Masses:
    """Return the sum of each group, rounded once."""
    if len(starts) == len(masses):
        return masses
    ends = [*starts[1:].tolist(), len(masses)]
    values = masses.tolist()
    return np.array([math.fsum(values[i:j]) for i, j in zip(starts.tolist(), ends, strict=True)])
