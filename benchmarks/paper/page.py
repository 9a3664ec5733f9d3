"""RESULTS.md and all pictures, from the stored results of the runs in a folder.

    python -m benchmarks.paper.page [FOLDER]

The folder is this one by default. It has ``DATASET.csv``, ``DATASET.json`` and ``DATASET.md`` of
each run, as `benchmarks.paper` writes them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper import checks, plots
from benchmarks.paper.settings import BASE, DATASETS
from benchmarks.paper.stored import Point, Stored, read_all
from benchmarks.paper.tables import LEGEND, marked_name, table

__all__ = ["ERROR_SAMPLES", "present"]

ERROR_SAMPLES = (64, 256, 1024)
FIRST = "BinCP, mixture"
AGAINST = ("BinCP, as printed", "RCP1", "CAS", "RSCP+, Hoeffding", "RSCP+, PTT")
SHOWN = (
    *(FIRST, "BinCP, as printed", "BinCP, ghost", "RCP1", "CAS", "RSCP+, Hoeffding"),
    *("RSCP+, PTT", "BinCP, uncorrected", "CAS, uncorrected", "smoothed CP", "vanilla CP"),
)


def present(folder: Path) -> None:
    """Draw all pictures of a folder and write its RESULTS.md."""
    found = read_all(folder)
    _draw(found, folder / "plots")
    (folder / "RESULTS.md").write_text(page(found), "utf-8")


def _draw(found: Sequence[Stored], folder: Path) -> None:
    plots.samples(found, folder / "samples.png")
    for stored in found:
        for setting in stored.settings:
            plots.sizes(stored, setting, folder / f"{setting}.png")
        if stored.of("attack"):
            plots.attacked(stored, folder / f"{stored.name}-attack.png")
        if stored.about["timings"]:
            plots.runtime(stored, folder / f"{stored.name}-runtime.png")
        for task in DATASETS[stored.name].tasks if stored.name in DATASETS else ():
            plots.bounds(task, folder / f"{task.setting.name}-bounds.png")
        if stored.name == "cifar10":  # of no data
            errors = {m: checks.correction_errors(m) for m in ERROR_SAMPLES}
            plots.errors(errors, folder / "errors.png")


def page(found: Sequence[Stored]) -> str:
    """Return the question, the picture, the main table and the verdict."""
    lines = [
        "# The paper's experiments",
        "",
        "Which robust method has the smallest sets, and from how many samples on? Every method of "
        "the paper and of its rivals sees the same inputs, samples and splits, on networks that "
        "two cores train in minutes. What is compared is the order of the methods, not the set "
        "sizes of the paper, which has ResNet-110.",
        "",
        "![labels in a set against samples m](plots/samples.png)",
        "",
        f"Average set size (coverage) on clean inputs: score TPS, nominal coverage "
        f"{float(BASE.coverage):.0%}, n = {BASE.n}, m = {BASE.m} samples in both phases, the "
        f"middle radius of each network. {LEGEND}",
        "",
        *_main_table(found),
        "",
        "## Verdict",
        "",
        f'How often {FIRST} (`correction="mixture"`) has smaller / equal / larger sets, over all '
        "runs of all grids in which both took part, on the same splits. Equal are mostly those in "
        "which both accept every label.",
        "",
        *_verdict_table(found),
        "",
        *(f"* {sentence}" for sentence in _sentences(found)),
        "",
        "## All results",
        "",
        *(f"* [{stored.name}]({stored.name}.md): {_origin(stored)}" for stored in found),
        "",
        "Each has all tables, remarks on every exception, coverage under attack and the time of a "
        "calibration; the CSV file beside it has the same in one table. [README.md](README.md) "
        "says how to run it. `python -m benchmarks.paper.page` draws the pictures and writes this "
        "page from the stored results.",
    ]
    return "\n".join(lines) + "\n"


def _main_table(found: Sequence[Stored]) -> list[str]:
    columns: dict[str, dict[str, Point]] = {}
    for stored in found:
        for setting in stored.settings:
            points = plots.middle_radius(stored.of("samples", setting=setting))
            at_base = {point.method: point for point in points if point.m == BASE.m}
            if at_base:
                radius = next(iter(at_base.values())).radius
                columns[f"{setting}, r = {radius}"] = at_base
    methods = [name for name in SHOWN if any(name in points for points in columns.values())]
    body = []
    for method in methods:
        row = [points.get(method) for points in columns.values()]
        name = next(marked_name(point.method, point.guarantee) for point in row if point)
        cells = [f"{p.size:.2f} ({p.covered:.1%})" if p else "-" for p in row]
        body.append([name, *cells])
    return table(("method", *columns), body)


def _verdict_table(found: Sequence[Stored]) -> list[str]:
    body = []
    for second in AGAINST:
        row = [_numbers(stored, second) for stored in found]
        cells = [" / ".join(map(str, numbers)) if numbers else "-" for numbers in row]
        body.append([second, *cells])
    return table((f"{FIRST} against", *(stored.name for stored in found)), body)


def _numbers(stored: Stored, second: str) -> tuple[int, int, int] | None:
    for verdict in stored.about["verdicts"]:
        if (verdict["first"], verdict["second"]) == (FIRST, second):
            return verdict["smaller"], verdict["equal"], verdict["larger"]
    return None


def _sentences(found: Sequence[Stored]) -> list[str]:
    """Say what the tables say, from their figures."""
    pairs = [
        (second, numbers)
        for stored in found
        for second in AGAINST
        if (numbers := _numbers(stored, second))
    ]
    runs, losses = sum(sum(numbers) for _, numbers in pairs), sum(n[2] for _, n in pairs)
    losers = sorted({second for second, numbers in pairs if numbers[2]})
    first = f"In {runs:,} comparisons the mixture correction has larger sets {losses} times"
    lines = [f"{first}, against {', '.join(losers)}." if losers else f"{first}."]
    for method in (FIRST, "BinCP, as printed"):
        least = [
            f"{_least_samples(stored, setting, method) or 'more than were drawn'} ({setting})"
            for stored in found
            for setting in stored.settings
        ]
        lines.append(
            f"The samples m from which on {method} has sets of less than half of all labels, at "
            f"the middle radius: {', '.join(least)}."
        )
    return lines


def _least_samples(stored: Stored, setting: str, method: str) -> int | None:
    """Return the least m at the middle radius with sets of less than half of the labels."""
    points = plots.middle_radius(stored.of("samples", setting=setting))
    everything = max((point.size for point in points), default=0)
    useful = [p.m for p in points if p.method == method and p.size < everything / 2]
    return min(useful, default=None)


def _origin(stored: Stored) -> str:
    about = stored.about
    note = f" {about['note']}" if about.get("note") else ""
    return f"{about['date']}, bincp {about['bincp']}, {about['splits']} splits.{note}"


if __name__ == "__main__":
    present(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
