"""Draw to a file or into axes; matplotlib is imported only here, when it is needed."""

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from bincp._utils.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg


def canvas_class() -> "type[FigureCanvasAgg]":
    """Return what figures are drawn on, or say what to install."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from error
    return FigureCanvasAgg


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
