"""The law of certificates, checked at a few hundred probabilities.

A check of points cannot see everything. It does not see whether an adversary can go below `lower`:
the writer of the bound must prove that. It does not see a bound that is wrong only between the
points; calibration looks again at each point where it evaluates a certificate, see
:func:`check_rising`. It does not see faults below the tolerance.
"""

import functools
import random

import numpy as np
import numpy.typing as npt

from bincp.certificates._protocols import Bounds
from bincp.errors import CertificateError

Array = npt.NDArray[np.float64]

_TOLERANCE = 1e-9
_IRREGULAR = 192  # points between 0 and 1; each tail has:
_IRREGULAR_IN_TAIL = 32
_TAIL = (-12, -3)  # powers of ten
_THINNED = 4  # for `upper`, which may be the inverse of `lower`: some 60 evaluations each


def check_law(certificate: Bounds, *, irregular: bool = True) -> None:
    """Check the law of certificates; raise `CertificateError` that names p.

    Range, monotonicity, ``lower(p) <= p <= upper(p)``, and ``upper(p) >= q <=> p >= lower(q)`` up
    to a tolerance of 1e-9 (it holds exactly only without rounding). Bounds that are solved from a
    function need no irregular points where that function has been checked at them.
    """
    grid, between = probability_grid(), irregular_probabilities() if irregular else ()
    lower = _values(certificate, "lower", grid, between)
    upper = _values(certificate, "upper", grid, between[::_THINNED])
    for p, low, high in zip(grid, lower, upper, strict=True):
        if not low <= p + _TOLERANCE:
            raise CertificateError(f"{certificate!r}: lower({p!r}) must be <= p, got {low!r}")
        if not high >= p - _TOLERANCE:
            raise CertificateError(f"{certificate!r}: upper({p!r}) must be >= p, got {high!r}")
    _check_equivalence(certificate, np.array(grid), np.array(lower), np.array(upper))


def check_rising(certificate: object, name: str, p: Array, values: Array) -> None:
    """Refuse values of the bound `name`, at increasing `p`, that fall by more than rounding.

    The largest fall that passes is 1e-9: bounds that are rounded outward may fall by a few units
    in the last place where the exact bound rises by less.
    """
    highest = np.maximum.accumulate(values)
    fallen = np.flatnonzero(~(values >= highest - _TOLERANCE))
    if fallen.size:
        i = fallen[0]
        raise CertificateError(
            f"{certificate!r}: {name} must be non-decreasing, but falls from "
            f"{float(highest[i])!r} to {float(values[i])!r} at p = {float(p[i])!r}"
        )


@functools.cache
def probability_grid() -> tuple[float, ...]:
    """Return the probabilities at which both bounds are compared, in increasing order."""
    tails = [10.0**-k for k in (12, 9, 6, 4, 3)]
    middle = [k / 64 for k in range(1, 64)]
    return tuple(sorted({0.0, 1.0, *tails, *(1 - p for p in tails), *middle}))


@functools.cache
def irregular_probabilities() -> tuple[float, ...]:
    """Return further probabilities, in increasing order and without any period.

    A fault that is periodic in p, as one in a certain decimal, could hide between points of equal
    distance. So each point is at a random place of a cell of its own; the numbers are the
    same at each call.
    """
    place = random.Random(1).random
    middle = [(k + place()) / _IRREGULAR for k in range(_IRREGULAR)]
    low, high = _TAIL
    step = (high - low) / _IRREGULAR_IN_TAIL
    tail = [10.0 ** (low + (k + place()) * step) for k in range(_IRREGULAR_IN_TAIL)]
    return tuple(sorted({*middle, *tail, *(1 - p for p in tail)}))


def _values(
    certificate: Bounds, name: str, grid: tuple[float, ...], between: tuple[float, ...]
) -> list[float]:
    """Return the values of a bound on the grid; check that it rises there and in between."""
    p = sorted({*grid, *between})
    bound = getattr(certificate, name)
    values = {point: bound(point) for point in p}
    for point, value in values.items():
        if not 0 <= value <= 1:
            raise CertificateError(
                f"{certificate!r}: {name}({point!r}) must be in [0, 1], got {value!r}"
            )
    check_rising(certificate, name, np.array(p), np.array(list(values.values())))
    return [values[point] for point in grid]


def _check_equivalence(certificate: Bounds, grid: Array, lower: Array, upper: Array) -> None:
    p, q = grid[:, None], grid[None, :]
    forward = (p >= lower[None, :] + _TOLERANCE) & ~(upper[:, None] >= q - _TOLERANCE)
    backward = (upper[:, None] >= q + _TOLERANCE) & ~(p >= lower[None, :] - _TOLERANCE)
    broken = np.argwhere(forward | backward)
    if broken.size:
        i, j = broken[0]
        raise CertificateError(
            f"{certificate!r}: `upper(p) >= q` and `p >= lower(q)` must agree, but at "
            f"p = {grid[i]!s} and q = {grid[j]!s}, upper(p) = {upper[i]!s} and "
            f"lower(q) = {lower[j]!s}; is `upper` over the inverted ball?"
        )
