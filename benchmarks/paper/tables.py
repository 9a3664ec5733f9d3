"""Tables of the report, in Markdown, shaped like the paper's: methods down, radii across."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.paper.runs import Row

__all__ = ["cell", "marked", "marked_name", "pivot", "table"]

MARKS = {"robust": "", "clean": " (*)", "none": " (**)"}
LEGEND = (
    "(*) guarantees coverage without an attack only. (**) guarantees nothing: no correction for "
    "sampling."
)


def cell(row: Row) -> str:
    """Return the set size and the coverage."""
    return f"{row.outcome.size:.2f} ({row.outcome.coverage:.1%})"


def coverage_cell(row: Row) -> str:
    """Return the coverage alone."""
    return f"{row.outcome.coverage:.1%}"


def pivot(
    rows: Sequence[Row],
    across: Callable[[Row], Any],
    down: Callable[[Row], tuple[str, ...]],
    heads: Sequence[str],
    show: Callable[[Row], str] = cell,
) -> list[str]:
    """Return a table with a line for each ``down`` and a column for each ``across``.

    Both in order of first appearance; what is missing is a dash.
    """
    columns = list(dict.fromkeys(map(across, rows)))
    lines = list(dict.fromkeys(map(down, rows)))
    cells = {(down(row), across(row)): show(row) for row in rows}
    body = [[*line, *(cells.get((line, column), "-") for column in columns)] for line in lines]
    return table([*heads, *map(str, columns)], body)


def table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table."""
    lines = [list(heads), ["---"] * len(heads), *body]
    return [f"| {' | '.join(line)} |" for line in lines]


def marked(row: Row) -> str:
    """Return the name of the method, marked where it is not robust."""
    return marked_name(row.method, row.guarantee)


def marked_name(method: str, guarantee: str) -> str:
    """Return the name of a method, marked where its guarantee is not robust."""
    return method + MARKS[guarantee]
