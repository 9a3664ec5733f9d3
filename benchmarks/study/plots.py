"""The picture of the study: set size against forward passes."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import NullFormatter, NullLocator

__all__ = ["size_against_passes"]

# Colours of Okabe and Ito, which the colour-blind tell apart; each kind has its own marker, too.
# Then the point that the label stands at, and whether it stands below.
STYLES = {
    "RCP1": ("RCP1", "#CC79A7", "D", "none", 0, False),
    "Clopper-Pearson, paper": ("the paper's", "#D55E00", "s", "-", -1, False),
    "mixture, fixed": ("fixed count", "#0072B2", "o", "-", 2, False),
    "mixture, early": ("early stopping", "#009E73", "^", "-", 0, True),
    "none (no guarantee)": ("no guarantee", "#555555", "x", "none", 0, True),
}
HEIGHT = 2.2  # of a panel, in units of the smallest sets
N_COLUMNS = 2
COLUMN = 1  # the attack that is drawn
TICKS = (1, 2, 4, 8, 16, 32, 64, 256, 1024)


def size_against_passes(drawn: list[Any], path: Path) -> None:
    """Draw a panel for each network, at its second attack."""
    n_rows = -(-len(drawn) // N_COLUMNS)
    figure, panels = plt.subplots(
        n_rows, N_COLUMNS, figsize=(9, 3.1 * n_rows), squeeze=False, layout="constrained"
    )
    for panel in panels.ravel()[len(drawn) :]:
        panel.set_visible(False)
    for panel, (problem, rows) in zip(panels.ravel(), drawn, strict=False):
        _panel(panel, problem, rows)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _panel(panel: Any, problem: Any, rows: list[Any]) -> None:
    drawn = {kind: _points(kind, rows) for kind in STYLES}
    least = min(size for points in drawn.values() for _, size in points)
    for kind, points in drawn.items():
        if points:
            _line(panel, kind, points, HEIGHT * least)
    panel.set_ylim(0.85 * least, HEIGHT * least)
    panel.set_title(
        f"{problem.title}\n{problem.radius} = {problem.attacks[COLUMN].label}", fontsize=9
    )
    panel.set_xscale("log", base=2)
    panel.set_xticks(TICKS, [f"{tick:,}" for tick in TICKS], fontsize=8)
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("forward passes of a test input, on average", fontsize=8)
    panel.set_ylabel("labels in a set", fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", lw=0.4, color="#dddddd")


def _points(kind: str, rows: list[Any]) -> list[tuple[float, float]]:
    return sorted(
        (float(outcomes[COLUMN].passes.mean()), float(outcomes[COLUMN].size.mean()))
        for method, outcomes in rows
        if _is_drawn(kind, method)
    )


def _line(panel: Any, kind: str, points: list[tuple[float, float]], top: float) -> None:
    """Draw a line and its label; a point above the panel is named at its upper edge."""
    label, colour, marker, line, place, below = STYLES[kind]
    passes, sizes = zip(*points, strict=True)
    panel.plot(passes, sizes, color=colour, marker=marker, ls=line, ms=5, lw=1.4, zorder=3)
    x, y = points[min(place, len(points) - 1)]
    if y > top:
        label, y, below = f"{label}: {y:.1f}, above", top, True
    panel.annotate(
        label,
        (x, y),
        xytext=(0, -13 if below else 7),
        textcoords="offset points",
        ha="left" if x < 2 else "center",
        color=colour,
        fontsize=8,
    )


def _is_drawn(kind: str, method: Any) -> bool:
    """Whether a row belongs to a line; of the fixed counts those with m = m'."""
    if kind == "mixture, fixed":
        return bool(method.name == kind and method.m == method.m_test)
    return bool(method.name.startswith(kind))
