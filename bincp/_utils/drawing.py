"""Draw to a file or into axes; matplotlib is imported only here, when it is needed."""

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from bincp._utils.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of Okabe and Ito, which the colour-blind tell apart."""

MARKERS = "os^Dv"
"""One for each line beside its colour; more lines than colours differ by the pair."""

_FEW = 4  # lines, whose names may be long


def canvas_class() -> "type[FigureCanvasAgg]":
    """Return what figures are drawn on, or say what to install."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from error
    return FigureCanvasAgg


def finish(axes: "Axes") -> None:
    """Give axes with lines a grid and, where there are several, a legend beside them.

    It stands above the axes for a few lines, and to their right for more.
    """
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    n_lines = len(axes.get_legend_handles_labels()[1])
    if n_lines > 1:
        above = n_lines <= _FEW
        axes.legend(
            loc="lower left" if above else "upper left",
            bbox_to_anchor=(0, 1.01) if above else (1.01, 1),
            borderaxespad=0,
            frameon=False,
        )


def draw(fill: Callable[["Axes"], None], target: "str | PathLike[str] | Axes") -> "Axes":
    """Call `fill` with the axes `target`, or with new axes that are saved to the file `target`."""
    canvas = canvas_class()
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(target, Axes):
        fill(target)
        return target
    if not isinstance(target, str | PathLike):
        raise TypeError(f"`target` must be a path or matplotlib Axes, got {target!r}")
    figure = Figure(figsize=(7, 4.6), dpi=150, layout="constrained")
    canvas(figure)
    axes = figure.subplots()
    fill(axes)
    kind = Path(fspath(target)).suffix[1:]
    replace_file(target, lambda stream: figure.savefig(stream, format=kind or None))
    return axes
