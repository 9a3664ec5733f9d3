"""A pair of laws whose exact bound is a piecewise linear curve just below a certificate.

The exact bound of two laws is convex, and at least the certificate. So each curve below the
certificate is a bound, too, and so is its lower convex hull, whose pieces are regions.

If the certificate is convex, the curve between two places is the larger of the chords of the two
neighbouring cells, extended: a convex function lies above both. The chord of the cell itself lies
above the certificate, and is unsafe. Else the curve is the staircase of the values at the left
ends of the cells. Cells are halved where the curve may lose most; the result is exact arithmetic on
the computed bounds.
"""

from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

import numpy as np

from bincp._core._operators import Operator as CompiledOperator
from bincp._utils.levels import TRUE_MIN
from bincp.certificates._curves import as_masses
from bincp.certificates._masses import Array, Masses
from bincp.certificates._protocols import Operator

# How far a computed bound may lie below the exact one: by so much of itself, as kernels are off by
# 1e-12 at most, also where a tail is 1e-300. Where operators pass results on to one another, which
# are rounded to doubles, it is as if p were less by this much of itself, too.
_ERROR = 2.0**-30
_INPUT_ERROR = 2.0**-44
_NARROW = 2.0**-36  # of its distance from 0 or 1; such a cell is not halved
_MASS_ERROR = 2.0**-52

Places = list[tuple[Fraction, Fraction]]
N = TypeVar("N", float, Fraction)


def minorant(operator: Operator, *, convex: bool, rough: float, n_cells: int) -> Masses:
    """Return the regions of a curve below `lower`, from about `n_cells` cells.

    `rough` is an absolute error that `lower` may have, see `Facts`.
    """
    p = _first_places()
    values = _lower(operator, p)
    while len(p) <= n_cells:
        loss = _losses(p, values, convex)
        worst = np.argsort(-loss)[: max(len(p) // 4, 1)]
        worst = worst[loss[worst] > max(loss.max() / 16, 1e-12)]
        if worst.size == 0:
            break
        middle = p[worst] + (p[worst + 1] - p[worst]) / 2
        order = np.argsort(np.concatenate((p, middle)))
        values = np.concatenate((values, _lower(operator, middle)))[order]
        p = np.concatenate((p, middle))[order]
    values = np.maximum.accumulate(values)  # the exact bounds do not fall
    curve = _chords(operator, p, values, rough) if convex else _staircase(p, values)
    return _regions(_hull(curve), Fraction(float(values[-1])))


def _first_places() -> Array:
    """Return 0, 1, and places between them, closer together near both ends."""
    powers = [2.0**-k for k in (*range(1, 54), 60, 80, 100, 200, 400, 700, 1022)]
    inner = {*powers, *(1 - p for p in powers if p > 2.0**-54)}
    return np.array(sorted({0.0, 1.0, *inner, *(k / 32 for k in range(1, 32))}))


def _lower(operator: Operator, p: Array) -> Array:
    values = np.empty_like(p)
    operator.lower_fill(p, values)
    return values


def _losses(p: Array, values: Array, convex: bool) -> Array:
    """Return about how far the curve lies below the chord of each cell, or beside it, at most."""
    width, rise = np.diff(p), np.diff(values)
    slope = rise / width
    if convex:
        before = slope - np.concatenate(([0.0], slope[:-1]))
        after = np.concatenate((slope[1:], [np.inf])) - slope
        with np.errstate(all="ignore"):
            loss = width / (1 / before + 1 / after)
        loss = np.where((before > 0) & (after > 0), loss, 0.0)
    else:  # only corners near the hull matter
        corners = _hull([(0.0, 0.0), *zip(p[1:].tolist(), values[:-1].tolist(), strict=True)])
        below = np.interp(p[1:], *np.transpose(corners))
        loss = np.where(values[:-1] - below <= rise, rise, 0.0)
    with np.errstate(all="ignore"):
        beside = np.where(slope > 0, np.minimum(loss / slope, width), 0.0)
    loss = np.maximum(loss, beside)
    wide = (width > _NARROW * np.minimum(p[1:], 1 - p[:-1])) & (width > 4 * _MASS_ERROR * p[1:])
    return np.where(wide, loss, 0.0)


# ---- curves below the certificate, by their vertices --------------------------------------------


def _staircase(p: Array, values: Array) -> Places:
    """Return the corners that the hull may touch."""
    right = [Fraction(place) for place in p[1:].tolist()]
    left_values = [Fraction(value) for value in values[:-1].tolist()]
    return [(Fraction(0), Fraction(0)), *zip(right, left_values, strict=True)]


def _chords(operator: Operator, p: Array, values: Array, rough: float) -> Places:
    """Return the vertices of the larger of the extended chords on both sides of each cell."""
    more = values
    if type(operator) is not CompiledOperator:
        more = _lower(operator, np.minimum(p * (1 + _INPUT_ERROR), 1.0))
    x = [Fraction(place) for place in p.tolist()]
    low = [Fraction(value) for value in values.tolist()]
    high = [Fraction(value) for value in (more * (1 + _ERROR) + rough + TRUE_MIN).tolist()]
    n = len(x) - 1
    width = [x[i + 1] - x[i] for i in range(n)]
    # The least that a chord can rise, for the cell behind it, and the most, for the one before it.
    least = [max((low[i + 1] - high[i]) / width[i], Fraction(0)) for i in range(n)]
    most = [max((high[i + 1] - low[i]) / width[i], Fraction(0)) for i in range(n)]
    curve = [(x[0], Fraction(0))]
    for i in range(n):
        slope = least[i - 1] if i > 0 else Fraction(0)
        if i == n - 1:  # no chord follows, and the certificate may jump at 1
            curve.append((x[n], min(low[i] + slope * width[i], low[n])))
            continue
        steep, rise = most[i + 1], low[i + 1] - low[i]
        if steep > slope:
            step = (steep * width[i] - rise) / (steep - slope)
            if 0 < step < width[i]:
                curve.append((x[i] + step, low[i] + slope * step))
        curve.append((x[i + 1], low[i + 1]))
    return curve


def _hull(curve: list[tuple[N, N]]) -> list[tuple[N, N]]:
    """Return the vertices of the lower convex hull of vertices in increasing order of place."""
    hull: list[tuple[N, N]] = []
    for x, y in curve:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            hull.pop()
        if hull and hull[-1][0] == x:
            hull[-1] = (x, min(y, hull[-1][1]))
        else:
            hull.append((x, y))
    return hull


def _regions(hull: Places, top: Fraction) -> Masses:
    """Return the pieces as regions, and a jump at 1 up to `top`, which has no width.

    A region of no clean mass would not count at p = 1. So it gets the smallest one, for which the
    absolute error of the masses makes up.
    """
    clean = [b[0] - a[0] for a, b in pairwise(hull)]
    perturbed = [b[1] - a[1] for a, b in pairwise(hull)]
    end = hull[-1][1]
    clean += [Fraction(TRUE_MIN if top > end else 0), Fraction(0)]
    perturbed += [top - end, 1 - top]
    tiny = 2 * len(clean) * TRUE_MIN
    return Masses(as_masses(clean), as_masses(perturbed), _MASS_ERROR, tiny)
