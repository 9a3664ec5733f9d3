"""The picture of the demo: coverage and set size against the radius."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bincp.cli._demo_run import N_CLASSES, Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["plot"]


class _Style(NamedTuple):
    name: str
    color: str  # of Okabe and Ito, which the colour-blind tell apart
    marker: str


STYLES = {
    "bincp": _Style("BinCP", "#0072b2", "o"),
    "paper": _Style("the paper's rule", "#d55e00", "s"),
    "vanilla": _Style("vanilla", "#555555", "^"),
}


def plot(result: Result) -> "Figure":
    """Draw coverage and set size against the radius.

    Parameters
    ----------
    result : Result
        The return value of `run`.

    Returns
    -------
    matplotlib.figure.Figure
        A figure that pyplot does not know and nothing shows; save it by ``savefig``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings = result.settings
    rows = sorted(result.rows, key=lambda row: row.radius)
    nominal = 100 * settings.nominal_coverage

    figure = Figure(figsize=(10, 4.6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.axhline(nominal, color="black", linestyle=":", lw=1)
    left.annotate(
        f"nominal, {nominal:g}%",
        (1, nominal),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=9,
    )
    _draw(left, "coverage", rows, scale=100)
    left.set(ylabel="covered test images (%)", title="Coverage", ylim=(0, 103))
    _draw(right, "set_size", rows)
    right.set(ylabel=f"labels in a set (of {N_CLASSES})", title="Average set size", ylim=(0, None))
    figure.suptitle(
        f"Handwritten digits: noise of sigma = {settings.sigma:g}, {settings.n_calibration} "
        f"calibration and {settings.n_test} test images",
        fontsize=11,
    )
    figure.legend(handles=_legend(rows), loc="outside lower center", ncols=5, frameon=False)
    return figure


def _draw(axes: "Axes", quantity: str, rows: list[Row], *, scale: float = 1) -> None:
    """Draw a quantity of each method, attacked and clean."""
    radii = [row.radius for row in rows]
    for method, style in STYLES.items():
        outcomes = [getattr(row, method) for row in rows]
        for field, line in ((f"{quantity}_attacked", "-"), (quantity, "--")):
            values = [scale * getattr(outcome, field) for outcome in outcomes]
            axes.plot(radii, values, line, color=style.color, marker=style.marker, markersize=5)
    axes.set_xlabel("l2 radius of the perturbation (pixels in [0, 1])")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(rows: list[Row]) -> "list[Line2D]":
    """Return an entry for each method, with its passes, and for each kind of line."""
    from matplotlib.lines import Line2D

    entries = []
    for method, style in STYLES.items():
        passes = float(np.mean([getattr(row, method).passes for row in rows]))
        number = f"{passes:.1f}" if passes < 10 else f"{passes:,.0f}"
        entries.append(
            Line2D(
                [],
                [],
                color=style.color,
                marker=style.marker,
                label=f"{style.name}, passes: {number}",
            )
        )
    attacked = Line2D([], [], color="black", linestyle="-", label="attacked")
    clean = Line2D([], [], color="black", linestyle="--", label="clean")
    return [*entries, attacked, clean]
