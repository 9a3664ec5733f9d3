"""The picture of the demo: what an attack leaves of the coverage, and what keeping it costs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from bincp.cli._demo_run import N_CLASSES, Outcome, Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot"]


class _Style(NamedTuple):
    name: str
    colour: str  # of Okabe and Ito, which the colour-blind tell apart
    marker: str


STYLES = {
    "bincp": _Style("bincp: mixture, stopping early", "#0072b2", "o"),
    "paper": _Style("the paper's rule", "#d55e00", "s"),
    "vanilla": _Style("vanilla conformal prediction", "#777777", "^"),
}


class _Panel(NamedTuple):
    title: str
    value: Callable[[Outcome], float]


PANELS = (
    _Panel("covered under attack (%)", lambda outcome: 100 * outcome.coverage_attacked),
    _Panel(f"labels in a set, of {N_CLASSES}, under attack", lambda o: o.set_size_attacked),
    _Panel("forward passes of a clean image", lambda outcome: outcome.passes),
)


def plot(result: Result) -> "Figure":
    """Draw coverage and set size under attack, and forward passes, against the radius.

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

    rows = sorted(result.rows, key=lambda row: row.radius)
    figure = Figure(figsize=(10, 4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(PANELS))
    for axes, panel in zip(panels, PANELS, strict=True):
        _draw(axes, panel, rows)
    covered, size, passes = panels
    nominal = 100 * result.settings.nominal_coverage
    covered.axhline(nominal, color="black", linestyle=":", lw=1, zorder=1)
    covered.annotate(
        f"promised: {nominal:g}%",
        (1, nominal),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=9,
    )
    covered.set_ylim(0, 103)
    size.set_ylim(0, None)
    passes.set_yscale("log")
    passes.yaxis.set_major_formatter("{x:,g}")
    figure.suptitle(_headline(rows), fontsize=11)
    handles, labels = covered.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw(axes: "Axes", panel: _Panel, rows: list[Row]) -> None:
    """Draw a quantity of each method; bincp comes last, above the others."""
    for method, style in reversed(STYLES.items()):
        values = [panel.value(getattr(row, method)) for row in rows]
        axes.plot(
            [row.radius for row in rows],
            values,
            color=style.colour,
            marker=style.marker,
            markersize=5,
            label=style.name,
        )
    axes.set_title(panel.title, fontsize=11)
    axes.set_xlabel("l2 radius of the attack")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _headline(rows: list[Row]) -> str:
    """Say what the picture shows at the largest radius."""
    last = rows[-1]
    ours, paper = last.bincp, last.paper
    return (
        f"Under attack at radius {last.radius:g}, vanilla conformal prediction covers "
        f"{last.vanilla.coverage_attacked:.0%};\n"
        f"bincp covers {ours.coverage_attacked:.0%} with {ours.set_size_attacked:.1f} labels, for "
        f"{_number(ours.passes)} passes; the paper's rule {paper.coverage_attacked:.0%} with "
        f"{paper.set_size_attacked:.1f}, for {_number(paper.passes)}"
    )


def _number(passes: float) -> str:
    return f"{passes:.1f}" if passes < 10 else f"{passes:,.0f}"
