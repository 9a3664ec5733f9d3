"""The picture of the study: set size against forward passes.

    python -m benchmarks.study.plots

draws it again from the figures in ``sizes.json``, which `benchmarks.study.report` writes.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.pictures import (
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    RED,
    Style,
    legend_beside,
    log_axis,
    new_panels,
    save,
)

__all__ = ["size_against_passes"]

STYLES = {
    "RCP1": ("RCP1, one pass", Style(PURPLE, "D", "none")),
    "Clopper-Pearson, paper": ("the paper's rule", Style(RED, "s")),
    "mixture, fixed": ("bincp, all draws", Style(BLUE, "o")),
    "mixture, early": ("bincp, stopping early", Style(GREEN, "^", "none")),
    "none (no guarantee)": ("no guarantee", Style(GREY, "x", "none")),
}
N_COLUMNS = 3
COLUMN = 1  # the attack that is drawn
PASSES = (1, 4, 16, 64, 256, 1024)
SIZES = (1, 1.5, 2, 3, 5, 10)


def size_against_passes(found: dict[str, Any], path: Path) -> None:
    """Draw a panel for each network, at its second attack."""
    problems = found["problems"]
    n_columns = min(N_COLUMNS, len(problems))
    n_rows = -(-len(problems) // n_columns)
    figure, panels = new_panels(n_rows, n_columns, 2.9, sharex=True)
    for panel in panels.ravel()[len(problems) :]:
        panel.set_visible(False)
    for panel, problem in zip(panels.ravel(), problems, strict=False):
        _panel(panel, problem)
    for panel in panels[:, 0]:
        panel.set_ylabel("labels in a set")
    for panel in panels[-1]:
        panel.set_xlabel("forward passes of a test input")
    legend_beside(figure, panels, below=True)
    save(figure, path)


def _panel(panel: Any, problem: dict[str, Any]) -> None:
    for kind, (label, style) in STYLES.items():
        points = _points(kind, problem["rows"])
        if points:
            panel.plot(*zip(*points, strict=True), label=label, zorder=3, **style.options())
    log_axis(panel.xaxis, PASSES)
    log_axis(panel.yaxis, SIZES)
    panel.set_xlim(0.8, 1300)
    panel.set_ylim(0.85, 12)
    parts = [
        *problem["title"].split(", ", 1),
        f"{problem['radius']} = {problem['attacks'][COLUMN]}",
    ]
    panel.set_title("\n".join(parts), fontsize=9.5)


def _points(kind: str, rows: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return sorted(
        (row["passes"][COLUMN], row["size"][COLUMN]) for row in rows if _is_drawn(kind, row)
    )


def _is_drawn(kind: str, row: dict[str, Any]) -> bool:
    """Whether a row belongs to a line; of the fixed counts those with m = m'."""
    if kind == "mixture, fixed":
        return bool(row["method"] == kind and row["m"] == row["m_test"])
    return bool(row["method"].startswith(kind))


if __name__ == "__main__":
    folder = Path(__file__).parent
    stored = json.loads((folder / "sizes.json").read_text("utf-8"))
    size_against_passes(stored, folder / "plots" / "passes.png")
