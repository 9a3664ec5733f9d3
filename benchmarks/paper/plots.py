"""Pictures of the report, from the stored results."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps

from benchmarks.paper.checks import MEANS
from benchmarks.paper.settings import BASE, Task
from benchmarks.paper.stored import Point, Stored
from benchmarks.pictures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Style,
    legend_beside,
    log_axis,
    new_panels,
    save,
)

__all__ = ["attacked", "bounds", "errors", "runtime", "samples", "sizes"]

STYLES = {
    "BinCP, mixture": Style(BLUE, "o"),
    "BinCP, as printed": Style(RED, "s"),
    "RCP1": Style(PURPLE, "D"),
    "RSCP+, PTT": Style(GREEN, "v"),
    "CAS": Style(ORANGE, "^"),
    "CAS, as published": Style(BLACK, "x", ":"),
    "RSCP+, Hoeffding": Style(SKY, "P"),
    "BinCP, uncorrected": Style(BLUE, "", ":"),
    "smoothed CP": Style(GREY, "", "--"),
    "vanilla CP": Style(GREY, "", ":"),
}
NOTES = {
    "BinCP, uncorrected": "BinCP, uncorrected\n(no guarantee)",
    "smoothed CP": "smoothed CP\n(clean inputs only)",
    "vanilla CP": "vanilla CP\n(clean inputs only)",
}
EXPERIMENTS: dict[str, tuple[str, Callable[[Point], Any], Sequence[float]]] = {
    "radius": ("radius", lambda point: point.radius, ()),
    "samples": ("samples m", lambda point: point.m, (1, 4, 16, 64, 256, 1024)),
    "coverage": ("nominal coverage", lambda point: float(point.coverage), ()),
    "points": ("calibration points n", lambda point: point.n, (50, 100, 200, 400, 800)),
}
"""The label of each horizontal axis, what stands there, and the ticks of a logarithmic one."""

SIZES = (1, 1.5, 2, 3, 5, 7, 10)
LABELS = "labels in a set"


def samples(found: Sequence[Stored], path: Path) -> None:
    """Draw set size against samples m at the middle radius: a panel for each network."""
    pairs = [(stored, setting) for stored in found for setting in stored.settings]
    n_columns = min(2, len(pairs))
    figure, panels = new_panels(-(-len(pairs) // n_columns), n_columns, 2.7)
    for panel in panels.ravel()[len(pairs) :]:
        panel.set_visible(False)
    for panel, (stored, setting) in zip(panels.ravel(), pairs, strict=False):
        points = middle_radius(stored.of("samples", setting=setting))
        _lines(panel, points, *EXPERIMENTS["samples"])
        radius = f", radius {points[0].radius}" if points else ""
        panel.set_title(f"{setting}{radius}", fontsize=10)
    legend_beside(figure, panels)
    save(figure, path)


def sizes(stored: Stored, setting: str, path: Path) -> None:
    """Draw set size against radius, samples, nominal coverage and calibration points."""
    figure, panels = new_panels(2, 2, 2.7)
    for panel, (experiment, axis) in zip(panels.ravel(), EXPERIMENTS.items(), strict=True):
        points = stored.of(experiment, setting=setting, score="tps")
        if experiment == "radius":
            points = [point for point in points if point.coverage == BASE.coverage]
        else:
            points = middle_radius(points)
        if experiment != "samples":
            points = of_most_samples(points)
        panel.set_visible(len({axis[1](point) for point in points}) > 1)
        _lines(panel, points, *axis)
        given = {
            "radius": lambda p: f"m = {p.m}",
            "samples": lambda p: f"radius {p.radius}",
        }.get(experiment, lambda p: f"m = {p.m}, radius {p.radius}")
        panel.set_title(given(points[0]) if points else "", fontsize=10)
    legend_beside(figure, panels)
    save(figure, path)


def attacked(stored: Stored, path: Path) -> None:
    """Draw the coverage of attacked inputs against the radius: a panel for each network."""
    names = list(dict.fromkeys(point.setting for point in stored.of("attack")))
    figure, panels = new_panels(1, len(names), 3.6, sharey=True)
    for panel, setting in zip(panels[0], names, strict=True):
        points = stored.of("attack", setting=setting)
        _lines(panel, points, *EXPERIMENTS["radius"], y=lambda point: 100 * point.covered)
        panel.axhline(100 * float(BASE.coverage), color=BLACK, lw=0.8)
        panel.set_title(setting, fontsize=10)
    panels[0, 0].set_ylabel("covered attacked inputs (%)")
    legend_beside(figure, panels)
    save(figure, path)


def runtime(stored: Stored, path: Path) -> None:
    """Draw seconds of calibration against the number of points."""
    figure, panels = new_panels(1, 1, 3.6)
    axes = panels[0, 0]
    for method, style in STYLES.items():
        own = [timing for timing in stored.about["timings"] if timing["method"] == method]
        if own:
            n, seconds = zip(*((t["n"], 1000 * t["seconds"]) for t in own), strict=True)
            axes.plot(n, seconds, label=method, **style.options())
    log_axis(axes.xaxis, sorted({timing["n"] for timing in stored.about["timings"]}))
    log_axis(axes.yaxis, (0.1, 1, 10, 100, 1000))
    axes.set(xlabel="calibration points n", ylabel="milliseconds of a calibration")
    legend_beside(figure, panels)
    save(figure, path)


def bounds(task: Task, path: Path) -> None:
    """Draw certified lower and upper bounds against the clean probability."""
    figure, panels = new_panels(1, 2, 3.6, sharey=True)
    p = np.linspace(0, 1, 401)
    for i, radius in enumerate(task.radii):
        certificate = radius.certificate(task.setting.noise)
        colour = colormaps["viridis"](0.9 * i / max(len(task.radii) - 1, 1))
        for panel, bound in zip(panels[0], (certificate.lower, certificate.upper), strict=True):
            panel.plot(p, bound(p), color=colour, lw=1.5, label=f"radius {radius.label}")
    for panel, title in zip(panels[0], ("lower bound", "upper bound"), strict=True):
        panel.plot(p, p, color=GREY, lw=1, ls=":", label="no attack")
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("clean probability p")
    panels[0, 0].set_ylabel("certified probability")
    legend_beside(figure, panels)
    save(figure, path)


def errors(found: Mapping[int, Mapping[str, np.ndarray]], path: Path) -> None:
    """Draw the distance of lower bounds from what they bound, a panel for each m."""
    figure, panels = new_panels(1, len(found), 3.2, sharey=True)
    colours = {"C": BLUE, "H": RED, "B": GREEN}
    for panel, (m, methods) in zip(panels[0], found.items(), strict=True):
        for name, values in methods.items():
            line = {"0.1": ":", "1": "--"}.get(name.rpartition(" = ")[2], "-")
            panel.plot(MEANS, values, color=colours[name[0]], ls=line, lw=1.3, label=name)
        log_axis(panel.yaxis, (0.01, 0.03, 0.1, 0.3, 1))
        panel.set_title(f"m = {m}", fontsize=10)
        panel.set_xlabel("mean p")
    panels[0, 0].set_ylabel("p minus its lower bound")
    legend_beside(figure, panels)
    save(figure, path)


# ---- parts -----------------------------------------------------------------------------------


def middle_radius(points: list[Point]) -> list[Point]:
    """Return the points of the middle one of their radii."""
    radii = list(dict.fromkeys(point.radius for point in points))
    return [point for point in points if point.radius == radii[len(radii) // 2]]


def of_most_samples(points: list[Point]) -> list[Point]:
    """Return the points of the largest m among them."""
    return [point for point in points if point.m == max(other.m for other in points)]


def _lines(
    panel: Any,
    points: list[Point],
    label: str,
    x: Callable[[Point], Any],
    log_ticks: Sequence[float],
    y: Callable[[Point], float] | None = None,
) -> None:
    """Draw a line for each method; radii are places in their order."""
    places = list(dict.fromkeys(map(x, points)))
    numbers = not any(isinstance(place, str) for place in places)
    for method, style in STYLES.items():
        own = [point for point in points if point.method == method]
        if own:
            panel.plot(
                [x(point) if numbers else places.index(x(point)) for point in own],
                [point.size if y is None else y(point) for point in own],
                label=NOTES.get(method, method),
                **style.options(),
            )
    panel.set_xlabel(label)
    if not numbers:
        panel.set_xticks(range(len(places)), places)
    elif log_ticks:
        log_axis(panel.xaxis, log_ticks)
    if y is None:
        panel.set_ylabel(LABELS)
        log_axis(panel.yaxis, SIZES)
