"""The largest radii that a probability certifies, and grids of numbers of flips.

A radius is certified for a probability if the certified lower bound over the ball of that radius
reaches a threshold, 1/2 for the decision of a smoothed binary classifier.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._core import _operators
from bincp._utils.arrays import ArrayLike, as_probabilities
from bincp._utils.bisection import last_double, last_integer
from bincp._utils.validation import check_integer, check_probability
from bincp.balls import Flips
from bincp.certificates import certify
from bincp.certificates._builtins.flips import check_sparse_cost
from bincp.smoothing import SparseFlip

__all__ = ["certified_count", "certified_radius", "flip_frontier", "flip_grid"]

_MAX_GRID_CELLS = 10**10  # steps of convolution over the whole grid; about ten seconds


def certified_radius(
    smoothing: Any, ball: Callable[[float], Any], p: ArrayLike, *, threshold: float = 0.5
) -> float | npt.NDArray[np.float64]:
    """Return the largest radius that each probability certifies, rounded down.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The smoothing scheme.
    ball : callable
        Makes the ball of a radius, such as ``bincp.balls.L2`` or
        ``lambda r: bincp.balls.Linf(r, dim=784)``. The pair may come from any package; balls must
        grow with the radius, from 0 to the largest double.
    p : float or array_like
        Probabilities in [0, 1] at the clean input; use lower confidence bounds for a guarantee.
    threshold : float
        The certified lower bound must reach this value, in (0, 1].

    Returns
    -------
    float or ndarray of float64
        The largest double r with ``lower(p) >= threshold`` over ``ball(r)``, in the shape of `p`;
        infinity if every radius is certified. Minus infinity, which is the radius of no ball,
        where not even a radius of 0 is: p is below the threshold, or so little above it that the
        certificate cannot pay for the noise as it is drawn (`Smoothing.sampling_error`).

    Raises
    ------
    TypeError
        If `ball` is not callable, or a number is not real.
    ValueError
        If a probability or `threshold` is out of range.
    CertificateError
        If there is no certificate for the pair.

    Notes
    -----
    The radius is found by bisection on bit patterns down to adjacent doubles, which makes some 60
    certificates for each different p.

    References
    ----------
    Cohen, Rosenfeld and Kolter, "Certified adversarial robustness via randomized smoothing", ICML
    2019: for Gaussian noise and l2 balls it is sigma Phi^-1(p).

    Examples
    --------
    >>> import bincp
    >>> round(certified_radius(bincp.smoothing.Gaussian(0.5), bincp.balls.L2, 0.99), 6)
    1.163174
    >>> certified_radius(bincp.smoothing.Uniform(0.5), bincp.balls.L1, [0.25, 0.75, 1.0])
    array([-inf, 0.25, 0.5 ])
    """
    return _for_each(last_double, smoothing, ball, p, threshold, none=-math.inf)


def certified_count(
    smoothing: Any,
    ball: Callable[[int], Any],
    p: ArrayLike,
    *,
    limit: int,
    threshold: float = 0.5,
) -> int | npt.NDArray[np.int64]:
    """Return the largest whole radius that each probability certifies, up to a limit.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The smoothing scheme.
    ball : callable
        Makes the ball of a whole number of changes, such as
        ``lambda r: bincp.balls.Flips(additions=r, deletions=0)``. Balls must grow with the number.
    p : float or array_like
        Probabilities in [0, 1] at the clean input; use lower confidence bounds for a guarantee.
    limit : int
        Largest number that is tried, such as the number of coordinates, >= 0.
    threshold : float
        The certified lower bound must reach this value, in (0, 1].

    Returns
    -------
    int or ndarray of int64
        The largest r <= `limit` with ``lower(p) >= threshold`` over ``ball(r)``, in the shape of
        `p`; -1 where not even r = 0 is certified, see `certified_radius`.

    Raises
    ------
    TypeError
        If `ball` is not callable, `limit` not an integer, or a number not real.
    ValueError
        If a probability, `threshold` or `limit` is out of range.
    CertificateError
        If there is no certificate for the pair.

    Examples
    --------
    >>> import bincp
    >>> scheme = bincp.smoothing.SparseFlip(p_plus=0.01, p_minus=0.6)
    >>> deletions = lambda r: bincp.balls.Flips(additions=0, deletions=r)
    >>> certified_count(scheme, deletions, [0.4, 0.9, 0.999], limit=100)
    array([-1,  3, 12])
    """
    limit = check_integer("limit", limit, low=0)
    made = _for_each(
        lambda holds: _largest_whole(holds, limit), smoothing, ball, p, threshold, none=-1
    )
    return int(made) if np.ndim(made) == 0 else np.asarray(made).astype(np.int64)


def flip_grid(
    smoothing: SparseFlip,
    p: ArrayLike,
    additions: int,
    deletions: int,
    *,
    out: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """Return certified lower bounds for all numbers of flips in one call.

    Parameters
    ----------
    smoothing : SparseFlip
        The smoothing scheme.
    p : float or array_like
        Probabilities in [0, 1] at the clean input, fewer than 2^32. Sorted ones are faster.
    additions, deletions : int
        Largest numbers of flips, >= 0.
    out : ndarray of float64, optional
        C-contiguous array of the shape of the result to write to. It saves repeated calls the
        cost of new memory, which is more than that of the bounds.

    Returns
    -------
    ndarray of float64, shape ``(additions + 1, deletions + 1, *p.shape)``
        At ``[a, d]`` the bounds ``certify(smoothing, Flips(a, d)).lower(p)``, bit by bit.

    Raises
    ------
    TypeError
        If `smoothing` is not a `SparseFlip`, or an argument has a wrong type.
    ValueError
        If a probability is outside [0, 1], the grid too large, or `out` does not fit.

    Examples
    --------
    >>> import bincp
    >>> grid = flip_grid(bincp.smoothing.SparseFlip(0.01, 0.6), [0.9, 0.99], 1, 3)
    >>> grid.shape
    (2, 4, 2)
    >>> grid[1, 3].round(4)
    array([0.3455, 0.5905])
    """
    if not isinstance(smoothing, SparseFlip):
        raise TypeError(f"`smoothing` must be a SparseFlip, got {smoothing!r}")
    corner = Flips(additions, deletions)
    check_sparse_cost(corner)
    cells = math.comb(corner.additions + 2, 2) * math.comb(corner.deletions + 2, 2)
    if cells > _MAX_GRID_CELLS:
        raise ValueError(
            "`additions` and `deletions` must take at most "
            f"{_MAX_GRID_CELLS} steps of convolution together, got {cells} for {corner!r}"
        )
    values = as_probabilities("p", p)
    shape = (corner.additions + 1, corner.deletions + 1, *values.shape)
    result = np.empty(shape) if out is None else _checked_out(out, shape)
    flat = values.reshape(-1)
    if flat.size >= 2**32:
        raise ValueError(f"`p` must have fewer than 2^32 elements, got {flat.size}")
    order = None
    if (flat[1:] < flat[:-1]).any():
        order = np.argsort(flat).astype(np.uint32)
        flat = flat[order]
    delta, rows = smoothing.sampling_error(), result.reshape(*shape[:2], flat.size)
    _operators.sparse_grid(smoothing.p_plus, smoothing.p_minus, _less(flat, delta), order, rows)
    rows[...] = _less(rows, delta)
    return result


def _less(p: npt.NDArray[np.float64], delta: float) -> npt.NDArray[np.float64]:
    """Return p - delta, rounded down and clipped at 0; see `Smoothing.sampling_error`."""
    if delta == 0:
        return p
    less = np.empty_like(p)
    _operators.uniform(delta).lower_fill(p.reshape(-1), less.reshape(-1))
    return less


def flip_frontier(
    smoothing: SparseFlip,
    p: ArrayLike,
    additions: int,
    deletions: int,
    *,
    threshold: float = 0.5,
) -> npt.NDArray[np.int64]:
    """Return how many deletions each probability certifies beside each number of additions.

    Parameters
    ----------
    smoothing : SparseFlip
        The smoothing scheme.
    p : float or array_like
        Probabilities in [0, 1] at the clean input; use lower confidence bounds for a guarantee.
    additions, deletions : int
        Largest numbers of flips that are looked at, >= 0.
    threshold : float
        The certified lower bound must reach this value, in (0, 1].

    Returns
    -------
    ndarray of int64, shape ``(additions + 1, *p.shape)``
        At ``[a]`` the largest d <= `deletions` such that a additions and d deletions are certified;
        -1 where a additions alone are not.

    Raises
    ------
    TypeError
        If `smoothing` is not a `SparseFlip`, or an argument has a wrong type.
    ValueError
        If a probability is outside [0, 1], `threshold` out of range, or the grid too large.

    Examples
    --------
    >>> import bincp
    >>> flip_frontier(bincp.smoothing.SparseFlip(0.01, 0.6), 0.99, 2, 10)
    array([7, 6, 0])
    """
    level = _check_threshold(threshold)
    certified = flip_grid(smoothing, p, additions, deletions) >= level
    return np.asarray(np.cumprod(certified, axis=1, dtype=np.int64).sum(axis=1) - 1)


def _for_each(
    largest: Callable[[Callable[[Any], bool]], float],
    smoothing: Any,
    ball: Callable[[Any], Any],
    p: ArrayLike,
    threshold: float,
    *,
    none: float,
) -> float | npt.NDArray[np.float64]:
    """Solve for each different probability once."""
    if not callable(ball):
        raise TypeError(f"`ball` must make the ball of a radius, got {ball!r}")
    level = _check_threshold(threshold)
    given = as_probabilities("p", p)
    values, places = np.unique(given, return_inverse=True)

    def radius_of(value: float) -> float:
        if value < level:
            return none
        return largest(lambda r: certify(smoothing, ball(r)).lower(value) >= level)

    radii = np.array([radius_of(float(value)) for value in values], dtype=np.float64)
    result = radii[places].reshape(given.shape)
    return float(result) if result.ndim == 0 else result


def _largest_whole(holds: Callable[[int], bool], limit: int) -> int:
    low, beyond = -1, 1
    while beyond <= limit and holds(beyond):
        low, beyond = beyond, 2 * beyond
    return last_integer(holds, low + 1, min(beyond - 1, limit))


def _check_threshold(threshold: float) -> float:
    level = check_probability("threshold", threshold)
    if level == 0:
        raise ValueError("`threshold` must be in (0, 1], got 0, which every radius certifies")
    return level


def _checked_out(out: object, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"`out` must be an array, got {out!r}")
    if out.dtype != np.float64 or out.shape != shape or not out.flags.carray:
        raise ValueError(
            f"`out` must be a C-contiguous, writeable float64 array of shape {shape}, "
            f"got {out.dtype} {out.shape}"
        )
    return out
