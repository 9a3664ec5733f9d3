"""How the pictures of the reports look: colours, sizes, and where the legend stands.

The colours are those of Okabe and Ito, which the colour-blind tell apart; each line has its own
marker, too. A picture is 9 inches wide and saved so finely that it is sharp at the width of a page,
where an inch is about 90 pixels: its letters are as large as those of the text beside it.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from PIL import Image

__all__ = ["BLACK", "Style", "legend_beside", "log_axis", "new_panels", "save"]

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE, GREY = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"),
    "#777777",
)
WIDTH, DPI, N_COLOURS = 9.0, 160, 160


class Style(NamedTuple):
    """How a line looks."""

    colour: str
    marker: str = ""
    line: str = "-"

    def options(self) -> dict[str, Any]:
        """Return what `plot` takes."""
        return {"color": self.colour, "marker": self.marker, "ls": self.line, "ms": 5, "lw": 1.5}


def new_panels(n_rows: int, n_columns: int, height: float, **options: Any) -> tuple[Any, Any]:
    """Return a figure and its axes (n_rows, n_columns), each row so many inches high."""
    with plt.rc_context({"font.size": 10, "axes.titlesize": 10, "axes.labelsize": 10}):
        figure, panels = plt.subplots(
            n_rows,
            n_columns,
            figsize=(WIDTH, height * n_rows),
            squeeze=False,
            layout="constrained",
            **options,
        )
    for panel in panels.ravel():
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", lw=0.5, color="#dddddd")
        panel.tick_params(labelsize=9)
    return figure, panels


def log_axis(axis: Any, ticks: Any, name: Callable[[float], str] = "{:,g}".format) -> None:
    """Make an axis of the panel logarithmic, with these ticks and no others."""
    axis._set_axes_scale("log")
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: name(value)))


def legend_beside(figure: Any, panels: Any, *, below: bool = False) -> None:
    """Put one legend of all lines beside the panels: to the right, or below."""
    entries: dict[str, Any] = {}
    for panel in panels.ravel():
        handles, labels = panel.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            entries.setdefault(label, handle)
    place = "outside lower center" if below else "outside right center"
    figure.legend(
        entries.values(),
        entries.keys(),
        loc=place,
        ncols=len(entries) if below else 1,
        frameon=False,
        fontsize=9.5,
        columnspacing=1.2,
    )


def save(figure: Any, path: Path) -> None:
    """Write a figure with few colours, which is a fraction of the bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DPI)
    plt.close(figure)
    with Image.open(picture) as image:
        image.convert("RGB").quantize(N_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
