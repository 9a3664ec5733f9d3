"""Pictures of the reports that are one table: of patients under attack, and of nodes of a graph.

    python -m benchmarks.small_plots

draws them from the tables in ``diabetes/RESULTS.md`` and ``GRAPHS.md``.
"""

from pathlib import Path
from typing import Any

from benchmarks.pictures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    RED,
    Style,
    legend_beside,
    new_panels,
    save,
)

__all__ = ["diabetes", "graphs", "rows_of"]

FOLDER = Path(__file__).parent
METHODS = {
    "BinCP, CQR scores": Style(BLUE, "o"),
    "CQR, one noisy draw": Style(RED, "s"),
    "CQR, clean inputs": Style(GREY, "^"),
}
ATTACKS = {"clean": Style(BLUE, "o"), "gradient": Style(RED, "s"), "search": Style(GREEN, "^")}


def rows_of(path: Path, first: str) -> list[list[str]]:
    """Return the cells of the table in a Markdown file whose first heading is ``first``."""
    lines = path.read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def diabetes(path: Path) -> None:
    """Draw coverage under attack beside the promise, and the width of the sets."""
    rows = rows_of(FOLDER / "diabetes" / "RESULTS.md", "method")
    figure, panels = new_panels(1, 2, 3.5)
    covered, width = panels[0]
    for method, style in METHODS.items():
        own = [[float(cell) for cell in row[1:]] for row in rows if row[0] == method]
        radius, promised, _, attacked, widths = zip(*own, strict=True)
        covered.plot(radius, _percent(attacked), label=f"{method}: attacked", **style.options())
        dashed = Style(style.colour, "", "--").options()
        covered.plot(radius, _percent(promised), label=f"{method}: promised", **dashed)
        width.plot(radius, widths, **style.options())
    covered.axhline(90, color=BLACK, lw=0.8)
    covered.set_ylim(-3, 103)
    covered.set_title("coverage (%), nominally 90%", fontsize=10)
    width.set_ylim(0, None)
    width.set_title("mean width of a set", fontsize=10)
    for panel in panels[0]:
        panel.set_xlabel("l2 radius of the attack")
    legend_beside(figure, panels)
    save(figure, path)


def graphs(path: Path) -> None:
    """Draw the size of the sets of each rule, clean and attacked."""
    rows = rows_of(FOLDER / "GRAPHS.md", "rule")
    figure, panels = new_panels(1, 1, 2.6)
    axes: Any = panels[0, 0]
    for place, (attack, style) in enumerate(ATTACKS.items()):
        sizes = [float(row[2 + 2 * place]) for row in rows]
        options = style.options() | {"ls": "none", "ms": 7}
        axes.plot(sizes, range(len(rows)), label=attack, **options)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.invert_yaxis()
    axes.margins(y=0.15)
    axes.set_xlim(0, None)
    axes.set_xlabel("labels in a set, of 7")
    legend_beside(figure, panels)
    save(figure, path)


def _percent(shares: Any) -> list[float]:
    return [100 * share for share in shares]


if __name__ == "__main__":
    diabetes(FOLDER / "diabetes" / "plots" / "coverage.png")
    graphs(FOLDER / "plots" / "graphs.png")
