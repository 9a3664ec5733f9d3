"""Plots of the report: small PNG files."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from PIL import Image

mpl.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.paper.checks import MEANS, Timing
from benchmarks.paper.runs import Row
from benchmarks.paper.settings import Task

__all__ = ["against", "bounds", "errors", "runtime"]

STYLES = {
    "BinCP, mixture": ("tab:blue", "-", "o"),
    "BinCP, as printed": ("tab:blue", "--", "s"),
    "BinCP, uncorrected": ("tab:blue", ":", ""),
    "CAS": ("tab:orange", "-", "^"),
    "CAS, as published": ("tab:orange", "--", "^"),
    "CAS, uncorrected": ("tab:orange", ":", ""),
    "RSCP+, Hoeffding": ("tab:red", "-", "v"),
    "RSCP+, PTT": ("tab:red", "--", "D"),
    "RSCP, uncorrected": ("tab:red", ":", ""),
    "RCP1": ("tab:green", "-", "x"),
    "smoothed CP": ("tab:gray", "--", ""),
    "vanilla CP": ("tab:gray", ":", ""),
}
SIZE, DPI, N_COLOURS = (5.2, 3.4), 80, 64


def save(axes: Any, path: Path, *, legend: bool = True) -> None:
    """Write the figure with few colours' worth of bytes."""
    figure = axes.figure
    if legend:
        axes.legend(fontsize=6, ncols=2)
    figure.tight_layout()
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DPI)
    plt.close(figure)
    with Image.open(picture) as image:
        image.convert("RGB").quantize(N_COLOURS).save(path, optimize=True)


def against(
    rows: Sequence[Row],
    x: Callable[[Row], Any],
    label: str,
    path: Path,
    *,
    y: Callable[[Row], float] = lambda row: row.outcome.size,
    y_label: str = "average set size",
    log: bool = False,
    line: float | None = None,
) -> None:
    """Draw a line for each method."""
    _, axes = plt.subplots(figsize=SIZE)
    ticks = list(dict.fromkeys(x(row) for row in rows))
    numbers = not isinstance(ticks[0], str)
    for method, (colour, style, marker) in STYLES.items():
        own = [row for row in rows if row.method == method]
        places = [x(row) if numbers else ticks.index(x(row)) for row in own]
        if own:
            axes.plot(
                places,
                [y(row) for row in own],
                style,
                color=colour,
                marker=marker,
                ms=4,
                label=method,
            )
    if not numbers:
        axes.set_xticks(range(len(ticks)), ticks)
    if log:
        axes.set_xscale("log", base=2)
    if line is not None:
        axes.axhline(line, color="black", lw=0.6)
    axes.set_xlabel(label)
    axes.set_ylabel(y_label)
    save(axes, path)


def runtime(timings: Sequence[Timing], path: Path) -> None:
    """Draw seconds of calibration against the number of points."""
    _, axes = plt.subplots(figsize=SIZE)
    for method, (colour, style, marker) in STYLES.items():
        own = [timing for timing in timings if timing.method == method]
        if own:
            axes.loglog(
                [t.n for t in own],
                [t.seconds for t in own],
                style,
                color=colour,
                marker=marker,
                ms=4,
                label=method,
            )
    sizes = sorted({timing.n for timing in timings})
    axes.set_xticks(sizes, map(str, sizes))
    axes.minorticks_off()
    axes.set_xlabel("calibration points n")
    axes.set_ylabel("seconds")
    save(axes, path)


def bounds(task: Task, path: Path) -> None:
    """Draw certified lower and upper bounds against the clean probability."""
    _, axes = plt.subplots(figsize=SIZE)
    p = np.linspace(0, 1, 401)
    for i, radius in enumerate(task.radii):
        certificate = radius.certificate(task.setting.noise)
        colour = plt.get_cmap("viridis")(i / len(task.radii))
        axes.plot(p, certificate.lower(p), color=colour, label=f"radius {radius.label}")
        axes.plot(p, certificate.upper(p), "--", color=colour)
    axes.set_xlabel("clean probability p")
    axes.set_ylabel("lower (-), upper (--)")
    save(axes, path)


def errors(found: Mapping[int, Mapping[str, np.ndarray]], path: Path) -> None:
    """Draw the distance of lower bounds from what they bound, a panel for each m."""
    _, panels = plt.subplots(1, len(found), figsize=(2.6 * len(found), 3), sharey=True)
    colours = {"C": "tab:blue", "H": "tab:red", "B": "tab:green"}
    for axes, (m, methods) in zip(panels, found.items(), strict=True):
        for name, values in methods.items():
            style = {"0.1": ":", "1": "--"}.get(name.rpartition(" = ")[2], "-")
            axes.plot(MEANS, values, style, color=colours[name[0]], label=name, lw=1)
        axes.set_title(f"m = {m}", fontsize=8)
        axes.set_xlabel("mean p")
    panels[0].set_ylabel("p minus lower bound")
    panels[-1].legend(fontsize=5)
    save(panels[0], path, legend=False)
