"""Draw to a file or into axes; matplotlib is imported only here, when it is needed."""

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from bincp._utils.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(fill: Callable[["Axes"], None], target: "str | PathLike[str] | Axes") -> "Axes":
    """Call `fill` with the axes `target`, or with new axes that are saved to the file `target`."""
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if isinstance(target, Axes):
        fill(target)
        return target
    if not isinstance(target, str | PathLike):
        raise TypeError(f"`target` must be a path or matplotlib Axes, got {target!r}")
    figure = Figure(figsize=(7, 4.6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    fill(axes)
    kind = Path(fspath(target)).suffix[1:]
    replace_file(target, lambda stream: figure.savefig(stream, format=kind or None))
    return axes
