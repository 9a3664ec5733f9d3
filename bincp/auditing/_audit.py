"""The audit: the coverage that a predictor on one noisy draw keeps at every radius."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._core._binomial import binom_sf
from bincp._utils.arrays import ArrayLike, as_array, where
from bincp._utils.drawing import COLOURS, MARKERS, draw, finish
from bincp._utils.levels import Level, check_level, conformal_rank, float_below, shown
from bincp._utils.validation import check_integer
from bincp.auditing._envelope import envelope
from bincp.calibration._mixture import share_of_failures
from bincp.certificates import Certificate, certify
from bincp.errors import TrivialSetWarning
from bincp.intervals import clopper_pearson_lower

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array: TypeAlias = npt.NDArray[np.float64]
Families: TypeAlias = Sequence[Sequence[Certificate]]
"""For each radius, the certificates of the balls among which the adversary may choose."""

_CELLS = 4000
_SPREAD = 9.0  # standard deviations of the Beta law that the cells cover finely
_TOLERANCE = 1e-10  # more than the rounding of masses and means of cells


@dataclass(frozen=True, eq=False)
class Audit:
    """What `audit` found: lower bounds on the coverage against each radius.

    Attributes
    ----------
    radii : float64 array (q,)
        Radii of the balls.
    coverage : float64 array (q,)
        The guarantee: the coverage is at least this. For a conformal predictor it is marginal, over
        the calibration set as well, and needs exchangeable points; for outcomes it holds with
        probability 1 - delta over them.
    iid_coverage : float64 array (q,) or None
        The same for i.i.d. points, at least `coverage`, and attained: the least coverage over all
        populations. For a conformal predictor only.
    conditional_coverage : float64 array (q,) or None
        The coverage given the calibration set, for all calibration sets but a share delta, all
        radii at once. For a conformal predictor with a given `delta`.
    clean_coverage : float
        What each of them starts from without an attack: 1 - j / (n + 1), or the confidence bound.
    n : int
        Calibration points, or outcomes.
    rank : int or None
        j: the threshold of the predictor is its j-th smallest score. None for outcomes.
    alpha, delta : Fraction or None
    """

    radii: Array
    coverage: Array
    iid_coverage: Array | None
    conditional_coverage: Array | None
    clean_coverage: float
    n: int
    rank: int | None
    alpha: Fraction | None
    delta: Fraction | None

    def radius_at(self, coverage: Level) -> float:
        """Return the largest audited radius up to which the guarantee is at least a coverage.

        Parameters
        ----------
        coverage : int, float, str, Decimal or Fraction
            In (0, 1).

        Returns
        -------
        float
            One of `radii`; minus infinity if none.

        Raises
        ------
        TypeError, ValueError
            If `coverage` is no number in (0, 1).
        """
        wanted = check_level("coverage", coverage)
        order = np.argsort(self.radii, kind="stable")
        kept = [Fraction(float(value)) >= wanted for value in self.coverage[order]]
        n_kept = kept.index(False) if False in kept else len(kept)
        return float(self.radii[order][n_kept - 1]) if n_kept else -np.inf

    def plot(self, target: "str | PathLike[str] | Axes") -> "Axes":
        """Draw the guarantees against the radius.

        Parameters
        ----------
        target : str, path-like or matplotlib.axes.Axes
            A file, whose ending says the format, or axes to draw in.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError, OSError
            As in :func:`bincp.plots.plot_bounds`.
        """
        order = np.argsort(self.radii, kind="stable")

        def fill(axes: "Axes") -> None:
            looks = zip(COLOURS, MARKERS, strict=False)
            for (name, values), (colour, marker) in zip(self.curves().items(), looks, strict=False):
                (line,) = axes.plot(self.radii[order], values[order], color=colour, label=name)
                line.set(marker=marker, markersize=4)
            axes.set(xlabel="radius", ylabel="coverage is at least", ylim=(0, 1))
            finish(axes)

        return draw(fill, target)

    def curves(self) -> dict[str, Array]:
        """Return the guarantees that there are, by what they say."""
        if self.rank is None:
            return {f"with probability {_confidence(self.delta)} over the outcomes": self.coverage}
        named = {
            "exchangeable points": self.coverage,
            "i.i.d. points": self.iid_coverage,
            f"given the calibration, with probability {_confidence(self.delta)}": (
                self.conditional_coverage
            ),
        }
        return {name: values for name, values in named.items() if values is not None}


def audit(
    smoothing: Any,
    ball: Callable[[float], Any],
    radii: ArrayLike,
    *,
    n: int | None = None,
    alpha: Level | None = None,
    outcomes: ArrayLike | None = None,
    delta: Level | None = None,
) -> Audit:
    """Return the coverage that a plain predictor keeps under attack if it runs on noisy inputs.

    The predictor is any split conformal one, of any library, with any model and score. It knows
    nothing of the attack. One noisy draw of each input is made, before the predictor sees it, in
    calibration and in prediction alike: a clean input in either of the two voids the guarantee.
    Or it is any other set predictor, of which outcomes on noisy held-out points are known.

    Parameters
    ----------
    smoothing : Smoothing
        The smoothing scheme of the noise.
    ball : callable
        Makes the ball of a radius, such as ``bincp.balls.L2``; or a sequence of balls, of which the
        adversary may choose any, such as
        ``lambda r: [bincp.balls.Flips(a, int(r) - a) for a in range(int(r) + 1)]``.
    radii : array_like of float (q,)
        Radii, at least 0.
    n : int, optional
        Number of calibration points of a conformal predictor.
    alpha : int, float, str, Decimal or Fraction, optional
        Its level: it takes the threshold of rank j = floor(alpha (n + 1)) among its n scores.
    outcomes : bool array (N,), optional
        In place of `n` and `alpha`: whether the set of each of N held-out points, each with one
        noisy draw, held the true label. The points are i.i.d., and no calibration points.
    delta : int, float, str, Decimal or Fraction, optional
        Error probability of what is said with confidence; needed with `outcomes`.

    Returns
    -------
    Audit

    Warns
    -----
    TrivialSetWarning
        If n is too small for alpha, so that the predictor accepts every label.

    Raises
    ------
    CertificateError
        If there is no certificate for the pair.
    TypeError
        If an argument has a wrong type, or neither or both of the two kinds are given.
    ValueError
        If an argument is out of its range.

    Notes
    -----
    *Why it holds.* A noisy point is covered with probability P given all but its own noise, and the
    mean of P is at least 1 - j / (n + 1), or what the outcomes show. At any input in the ball it is
    covered with probability c(P), c the certificate. The mean of c(P) is at least conv(c) at the
    mean of P, conv(c) the lower convex envelope of c (Jensen). c itself would not do where it is
    not convex: for c(p) = max(p - 0.1, 0), or 0.8 p where that is less, P = 0.1 and 1 with the mean
    1/2 keep 0.356 and not c(1/2) = 0.4. For i.i.d. points P falls below no quantile of 1 - V, V of
    the law Beta(j, n + 1 - j), and the least mean over all populations is that of conv(c)(1 - V).

    *All radii at once.* Nothing was estimated for a radius, so the curve holds as a whole: the
    adversary may choose the radius, but not after it has seen the point, as c is averaged over
    points at each radius by itself. What is said with probability 1 - delta is one event for all
    radii.

    *Rounding.* All bounds are rounded down: `iid_coverage` by 1e-10 more than its cells take. The
    envelope of a certificate that is not known to be convex is computed in steps, which take up to
    some 1e-4.

    References
    ----------
    .. [1] Zargarbashi, Akhondzadeh and Bojchevski, "One sample is enough to make conformal
       prediction robust", NeurIPS 2025.

    Examples
    --------
    >>> import bincp
    >>> found = bincp.audit(
    ...     bincp.smoothing.Gaussian(1.0), bincp.balls.L2, [0, 0.25, 0.5], n=9, alpha=0.1
    ... )
    >>> found.coverage.round(5), found.iid_coverage.round(4)
    (array([0.9    , 0.84886, 0.78276]), array([0.9   , 0.856 , 0.8008]))
    """
    distances = _as_radii(radii)
    families = [_certificates(smoothing, ball, r) for r in distances.tolist()]
    error = None if delta is None else check_level("delta", delta)
    given = [name for name, value in (("n", n), ("alpha", alpha)) if value is not None]
    if outcomes is not None:
        if given or error is None:
            raise TypeError(
                "`outcomes` must be given with `delta`, and without `n` and `alpha`, got "
                f"{', '.join(given) or 'no delta'}"
            )
        return _of_outcomes(distances, families, _as_outcomes(outcomes), error)
    if n is None or alpha is None:
        raise TypeError(f"`n` and `alpha`, or `outcomes`, must be given, got {given or 'neither'}")
    size, level = check_integer("n", n, low=1, high=2**31 - 1), check_level("alpha", alpha)
    return _of_conformal(distances, families, size, level, error)


def _of_conformal(
    radii: Array, families: Families, n: int, alpha: Fraction, delta: Fraction | None
) -> Audit:
    rank = conformal_rank(alpha, n)
    if rank == 0:
        warnings.warn(
            f"every label will be in every prediction set: n = {n} calibration points are too few "
            f"for alpha = {shown(alpha)}",
            TrivialSetWarning,
            stacklevel=3,
        )
        ones = np.ones(len(radii))
        return Audit(radii, ones, ones, None if delta is None else ones, 1.0, n, 0, alpha, delta)
    start = 1 - Fraction(rank, n + 1)
    conditional = None
    if delta is not None:
        conditional = _read(families, 1 - share_of_failures(rank, n, delta))
    plain = _read(families, start)
    cells = _cells(rank, n)
    iid = np.array([_mean(family, *cells) for family in families])
    return Audit(
        radii,
        plain,
        np.maximum(iid, plain),
        conditional,
        float_below(start),
        n,
        rank,
        alpha,
        delta,
    )


def _of_outcomes(
    radii: Array, families: Families, outcomes: npt.NDArray[np.bool_], delta: Fraction
) -> Audit:
    bound = clopper_pearson_lower(int(outcomes.sum()), len(outcomes), delta)
    assert isinstance(bound, float)
    coverage = _read(families, Fraction(bound))
    return Audit(radii, coverage, None, None, bound, len(outcomes), None, None, delta)


def _read(families: Families, at: Fraction) -> Array:
    """Return the envelopes at one place, which is rounded down: they do not fall."""
    place = float_below(at)
    each = [envelope(family, place)(np.array([place])) for family in families]
    return np.concatenate(each)


def _cells(rank: int, n: int) -> tuple[Array, Array]:
    """Return the masses of cells of V ~ Beta(j, n + 1 - j), and the mean of 1 - V in each.

    Where a cell has next to no mass, the mean is replaced by its lower end.
    """
    centre = rank / (n + 1)
    spread = _SPREAD * np.sqrt(centre * (1 - centre) / (n + 2))
    inner = np.linspace(max(centre - spread, 0.0), min(centre + spread, 1.0), _CELLS)
    steep = centre * np.geomspace(1e-9, 1, _CELLS)  # c may rise fastest where P is almost 1
    v = np.unique(np.concatenate([[0.0], steep, inner, [1.0]]))
    # P[V <= v] = P[Bin(n, v) >= j], and E[V; V <= v] = j / (n + 1) P[Bin(n + 1, v) >= j + 1].
    below = np.array([binom_sf(rank, n, x, 1 - x) for x in v.tolist()])
    partial = np.array([binom_sf(rank + 1, n + 1, x, 1 - x) for x in v.tolist()])
    masses, means = np.diff(below), centre * np.diff(partial)
    at = v[1:].copy()
    there = masses > 1e-9
    # The mean of a cell errs by the rounding of its parts over its mass, some 1e-6 of its width.
    np.divide(means, masses, out=at, where=there)
    error = np.where(there, 1e-15 / np.where(there, masses, 1.0), 0.0)
    return masses, 1 - np.clip(at + error, v[:-1], v[1:])


def _mean(family: Sequence[Certificate], masses: Array, places: Array) -> float:
    """Return the mean of the envelope at 1 - V, rounded down: by Jensen's inequality in a cell."""
    return max(float(np.dot(masses, envelope(family)(places))) - _TOLERANCE, 0.0)


def _certificates(smoothing: Any, ball: Any, radius: float) -> list[Certificate]:
    if not callable(ball):
        raise TypeError(f"`ball` must be callable, from a radius to a ball, got {ball!r}")
    made = ball(radius)
    balls = list(made) if isinstance(made, list | tuple) else [made]
    if not balls:
        raise ValueError(f"`ball` must return at least one ball, got none for the radius {radius}")
    return [certify(smoothing, one) for one in balls]


def _as_radii(value: ArrayLike) -> Array:
    radii = as_array("radii", value)
    if radii.dtype.kind not in "fiu":
        raise TypeError(f"`radii` must be real numbers, got dtype {radii.dtype}")
    if radii.ndim != 1 or radii.size == 0:
        raise ValueError(f"`radii` must have shape (q,) with q >= 1, got {radii.shape}")
    bad = ~((radii >= 0) & (radii < np.inf))
    if bad.any():
        raise ValueError(f"`radii` must be finite and at least 0, got {radii[bad][0]} {where(bad)}")
    return radii.astype(np.float64)


def _as_outcomes(value: ArrayLike) -> npt.NDArray[np.bool_]:
    outcomes = as_array("outcomes", value)
    if outcomes.dtype != np.bool_:
        raise TypeError(f"`outcomes` must be boolean, got dtype {outcomes.dtype}")
    if outcomes.ndim != 1 or outcomes.size == 0:
        raise ValueError(f"`outcomes` must have shape (N,) with N >= 1, got {outcomes.shape}")
    return outcomes


def _confidence(delta: Fraction | None) -> str:
    return "" if delta is None else f"{float(1 - delta):.12g}"
