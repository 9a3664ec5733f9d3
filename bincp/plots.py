"""Pictures of certificates and sweeps; drawing needs matplotlib."""

from collections.abc import Callable
from itertools import cycle
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from bincp._utils.drawing import COLOURS, MARKERS, draw, finish
from bincp.calibration import Sweep, SweepRow
from bincp.certificates import Certificate, as_certificate
from bincp.radii import certified_radius

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_bounds", "plot_radius", "plot_sweep"]


Across = Literal["radius", "alpha", "p", "correction", "ball"]
Measure = Literal["average_set_size", "coverage", "singleton_rate", "empty_rate", "min_count"]


def plot_bounds(certificate: Certificate, target: "str | PathLike[str] | Axes") -> "Axes":
    """Draw both bounds of a certificate against the probability.

    Parameters
    ----------
    certificate : Certificate
        The certificate, as from :func:`bincp.certify`.
    target : str, path-like or matplotlib.axes.Axes
        A file, whose ending says the format, or axes to draw in.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If an argument has a wrong type.
    ValueError
        If matplotlib does not know the format.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import bincp
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    >>> axes = bincp.plots.plot_bounds(certificate, "bounds.png")  # doctest: +SKIP
    """
    as_certificate(certificate)

    def fill(axes: "Axes") -> None:
        p = np.linspace(0, 1, 1001)
        upper, lower = "upper: best case before the attack", "lower: worst case under attack"
        axes.plot(p, certificate.upper(p), color=COLOURS[1], linestyle="--", label=upper)
        axes.plot(p, p, color="0.5", linestyle=":", label="no attack")
        axes.plot(p, certificate.lower(p), color=COLOURS[0], label=lower)
        axes.set(xlabel="probability p", ylabel="certified bound")
        finish(axes)

    return draw(fill, target)


def plot_radius(
    smoothing: Any,
    ball: Callable[[float], Any],
    target: "str | PathLike[str] | Axes",
    *,
    threshold: float = 0.5,
) -> "Axes":
    """Draw the largest radius that each probability certifies.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The smoothing scheme.
    ball : callable
        Makes the ball of a radius, as in :func:`bincp.radii.certified_radius`.
    target : str, path-like or matplotlib.axes.Axes
        A file, whose ending says the format, or axes to draw in.
    threshold : float
        The certified lower bound must reach this value, in (0, 1].

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError, CertificateError
        As in :func:`bincp.radii.certified_radius`, and for `target` as in :func:`plot_bounds`.

    Examples
    --------
    >>> import bincp
    >>> axes = bincp.plots.plot_radius(
    ...     bincp.smoothing.Gaussian(0.25), bincp.balls.L2, "radius.png"
    ... )  # doctest: +SKIP
    """
    p = np.linspace(0, 1, 201)[:-1]  # at 1 the radius may be infinite
    radius = certified_radius(smoothing, ball, p, threshold=threshold)

    def fill(axes: "Axes") -> None:
        axes.plot(p, np.maximum(radius, 0.0), color=COLOURS[0])
        axes.set(xlabel="probability p", ylabel=f"largest radius with lower(p) >= {threshold:g}")
        finish(axes)

    return draw(fill, target)


def plot_sweep(
    sweep: Sweep,
    target: "str | PathLike[str] | Axes",
    *,
    across: Across | None = None,
    measure: Measure | None = None,
) -> "Axes":
    """Draw a measure of the rules of a sweep, a line for each combination of all that varies.

    Parameters
    ----------
    sweep : Sweep
        The result of `bincp.sweep`.
    target : str, path-like or matplotlib.axes.Axes
        A file, whose ending says the format, or axes to draw in.
    across : {"radius", "alpha", "p", "correction", "ball"}, optional
        What stands on the horizontal axis; the first of these that varies if it is not given.
    measure : str, optional
        What stands on the vertical axis: "average_set_size", "coverage", "singleton_rate",
        "empty_rate" or "min_count", as in `bincp.SweepRow`. The average size if it is not given, or
        "min_count" for a sweep without test points. Coverage has its confidence intervals, and a
        dotted line at each nominal level 1 - alpha.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If an argument has a wrong type.
    ValueError
        If a name is unknown, or the sweep does not have these numbers.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> noise = bincp.smoothing.Gaussian(0.5)
    >>> certificates = [bincp.certify(noise, bincp.balls.L2(r)) for r in (0.1, 0.2, 0.3)]
    >>> true_scores = np.random.default_rng(0).normal(1, 0.3, (200, 32))
    >>> result = bincp.sweep(certificates, true_scores, alpha=[0.1, 0.2])
    >>> axes = bincp.plots.plot_sweep(result, "sweep.png")  # doctest: +SKIP
    """
    if not isinstance(sweep, Sweep):
        raise TypeError(f"`sweep` must be a bincp.Sweep, got {type(sweep).__name__}")
    x = _check_name("across", across or _first_that_varies(sweep.rows), Across)
    default = "min_count" if sweep.rows[0].n_test is None else "average_set_size"
    y = _check_name("measure", measure or default, Measure)
    for name, wanted in (("across", x), ("measure", y)):
        if any(getattr(row, wanted) is None for row in sweep.rows):
            raise ValueError(f"`{name}` must be a number that each row has, got {wanted!r}")

    def fill(axes: "Axes") -> None:
        lines = _lines(sweep.rows, x).items()
        looks = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
        for (label, rows), (colour, marker) in zip(lines, looks, strict=False):
            look: dict[str, Any] = {"color": colour, "marker": marker, "label": label}
            places = [_place(getattr(row, x)) for row in rows]
            values = np.array([getattr(row, y) for row in rows])
            if y == "coverage":
                ends = np.array([[row.coverage_low, row.coverage_high] for row in rows], float).T
                width = np.abs(ends - values)
                axes.errorbar(places, values, yerr=width, capsize=3, **look)
            else:
                axes.plot(places, values, **look)
        if y == "coverage":
            for alpha in sorted({row.alpha for row in sweep.rows}):
                axes.axhline(float(1 - alpha), color="0.5", linestyle=":")
        axes.set(xlabel=x, ylabel=y.replace("_", " "))
        finish(axes)

    return draw(fill, target)


def _check_name(argument: str, value: Any, names: Any) -> Any:
    if value not in get_args(names):
        raise ValueError(f"`{argument}` must be one of {get_args(names)}, got {value!r}")
    return value


def _varies(rows: tuple[SweepRow, ...], name: str) -> bool:
    return len({getattr(row, name) for row in rows}) > 1


def _first_that_varies(rows: tuple[SweepRow, ...]) -> str:
    """Return what stands on the horizontal axis; a radius only where each row has one."""
    varying = [
        name
        for name in get_args(Across)
        if _varies(rows, name) and all(getattr(row, name) is not None for row in rows)
    ]
    return varying[0] if varying else "ball"


def _lines(rows: tuple[SweepRow, ...], x: str) -> dict[str, list[SweepRow]]:
    """Return the rows of each line, by its label: what varies beside x."""
    beside = [name for name in ("ball", "alpha", "correction", "p") if name != x]
    if x == "radius":
        beside[0] = "kind"

    def kind(row: SweepRow, name: str) -> str:
        value = row.ball.split("(")[0] if name == "kind" else getattr(row, name)
        if value is None:
            return f"{name} chosen"
        return value if isinstance(value, str) else f"{name} = {float(value):g}"

    found: dict[tuple[str, ...], list[SweepRow]] = {}
    for row in rows:
        found.setdefault(tuple(kind(row, name) for name in beside), []).append(row)
    columns = list(zip(*found, strict=True))
    told = [column for column in columns if len(set(column)) > 1]
    labels = [", ".join(parts) for parts in zip(*told, strict=True)] or [""]
    return dict(zip(labels, found.values(), strict=True))


def _place(value: Any) -> Any:
    """Return a number as a float, and text as it is."""
    return value if isinstance(value, str) else float(value)
