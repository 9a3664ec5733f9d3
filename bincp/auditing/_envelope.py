"""The lower convex envelope of certificates: the least mean of c(P) for a given mean of P.

The envelope is rounded down. A certificate that is known to be convex is its own envelope. Any
other is replaced by a piecewise linear curve below it, whose hull is taken:

* by the staircase of its values at the left ends of cells, as it does not fall;
* or, where the least of several convex certificates is wanted, by the larger of the chords of the
  two neighbouring cells, extended: a convex function lies above both.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bincp.certificates import Certificate, check_rising
from bincp.certificates._certificate import facts_of

Array = npt.NDArray[np.float64]

_MOST_PLACES = {True: 1 << 11, False: 1 << 13}  # of a convex certificate, and of another one
_GAP = 1e-13
_NARROWEST = 2.0**-50
_ROUNDING = 2.0**-40  # of a value, beyond the 1e-12 by which kernels are off, and of sums here


class Curve(NamedTuple):
    """Vertices of a piecewise linear curve, from left to right."""

    x: Array
    y: Array


def envelope(
    certificates: Sequence[Certificate], at: float | None = None
) -> Callable[[Array], Array]:
    """Return the convex envelope of the least of some certificates, rounded down.

    Where it is computed in steps, they are finest for the value at one place, if that is given.
    """
    if len(certificates) == 1 and facts_of(certificates[0]).convex:
        return certificates[0].lower
    curves = [_below(one, facts_of(one).convex, at) for one in certificates]
    hull = _hull(np.concatenate([c.x for c in curves]), np.concatenate([c.y for c in curves]))

    def read(x: Array) -> Array:
        return np.maximum(np.interp(x, hull.x, hull.y) - _ROUNDING, 0.0)

    return read


def _below(certificate: Certificate, convex: bool, at: float | None) -> Curve:
    """Return a curve below `lower`, on places that are refined where that raises its hull."""
    p = _first_places()
    c = np.asarray(certificate.lower(p))
    while True:
        check_rising(certificate, "lower", p, c)
        c = np.maximum.accumulate(c)
        curve, gap = _chords(p, c) if convex else _staircase(p, c, at)
        width = np.diff(p)
        wide = (gap > _GAP) & (width > _NARROWEST * p[1:])
        worst = np.flatnonzero(wide)
        room = _MOST_PLACES[convex] - len(p)
        if not worst.size or room <= 0:
            return curve
        worst = worst[np.argsort(-gap[worst])[:room]]
        middle = p[worst] + width[worst] / 2
        order = np.argsort(np.concatenate([p, middle]))
        c = np.concatenate([c, np.asarray(certificate.lower(middle))])[order]
        p = np.concatenate([p, middle])[order]


def _first_places() -> Array:
    powers = 2.0 ** -np.arange(1.0, 50)
    return np.unique(np.concatenate([np.linspace(0, 1, 129), powers, 1 - powers]))


def _staircase(p: Array, c: Array, at: float | None) -> tuple[Curve, Array]:
    """Return the corners, and what each cell may lose: its rise, if the hull touches its corner.

    For the value at one place only corners on the line over it count.
    """
    curve = Curve(np.append(0.0, p[1:]), np.append(c[0], c[:-1]))
    hull = _hull(*curve)
    rise = np.diff(c)
    below = np.interp(p[1:], hull.x, hull.y)
    if at is not None:
        i = min(max(int(np.searchsorted(hull.x, at)), 1), len(hull.x) - 1)
        slope = (hull.y[i] - hull.y[i - 1]) / (hull.x[i] - hull.x[i - 1])
        below = hull.y[i - 1] + slope * (p[1:] - hull.x[i - 1])
    touched = curve.y[1:] - below <= rise
    return curve, np.where(touched, rise, 0.0)


def _chords(p: Array, c: Array) -> tuple[Curve, Array]:
    """Return the places and the vertices between them, and how far these are below the chords."""
    width, rise = np.diff(p), np.diff(c)
    slope = rise / width
    # A place more to the left has the slope 0, as bounds do not fall below 0. To the right of 1
    # there is none: what follows the last cell may be a jump.
    before, after = np.append(0.0, slope[:-1]), np.append(slope[1:], np.inf)
    bends = after > before
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.where(np.isinf(after), 1.0, (after - slope) / (after - before))
    share = np.clip(np.where(bends, share, 0.5), 0.0, 1.0)
    vertex = np.minimum(c[:-1] + before * share * width, c[:-1] + rise * share)
    # Errors of the values tilt the chords, and more so where the neighbouring cell is narrow.
    near = np.minimum(np.append(width[0], width[:-1]), np.append(width[1:], width[-1]))
    lowered = np.maximum(vertex - _ROUNDING * (1 + 2 * width / near), 0.0)
    x = np.concatenate([p, p[:-1] + share * width])
    y = np.concatenate([c, lowered])
    return Curve(x, y), c[:-1] + rise * share - vertex


def _hull(x: Array, y: Array) -> Curve:
    """Return the vertices of the lower convex hull of points."""
    hull: list[tuple[float, float]] = []
    for a, b in sorted(zip(x.tolist(), y.tolist(), strict=True)):
        if hull and hull[-1][0] == a:
            continue  # the lower one came first
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (a - x1) < (b - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append((a, b))
    return Curve(*(np.array(side) for side in zip(*hull, strict=True)))
