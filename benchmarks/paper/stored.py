"""The results of runs as files: ``DATASET.csv`` has the sizes, ``DATASET.json`` the rest."""

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.paper.checks import Timing
from benchmarks.paper.runs import COLUMNS, Row
from benchmarks.paper.settings import DATASETS
from benchmarks.paper.verdicts import Verdict

__all__ = ["Point", "Stored", "read", "read_all", "write"]


class Point(NamedTuple):
    """A line of the table: a method in one setting, means over the splits."""

    setting: str
    experiment: str
    method: str
    guarantee: str
    score: str
    radius: str
    coverage: str  # nominal
    n: int
    m: int
    size: float
    covered: float


@dataclass(frozen=True)
class Stored:
    """What a run of one data set found.

    Parameters
    ----------
    name : str
        The data set.
    about : dict
        "origin", "bincp", "date", "splits", "verdicts" (a list of the numbers of each pair) and
        "timings" (a list of method, n and seconds).
    points : tuple of Point
    """

    name: str
    about: dict[str, Any]
    points: tuple[Point, ...]

    @property
    def settings(self) -> list[str]:
        """The networks of the grids, in order of first appearance."""
        return list(dict.fromkeys(point.setting for point in self.of("radius")))

    def of(self, experiment: str, **fields: object) -> list[Point]:
        """Return the points of an experiment with these fields."""
        return [
            point
            for point in self.points
            if point.experiment == experiment
            and all(getattr(point, name) == value for name, value in fields.items())
        ]


def write(folder: Path, name: str, rows: Sequence[Row], about: dict[str, Any]) -> None:
    """Write the files of a run."""
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        lines.writerows(row.cells for row in rows)
    (folder / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def about_run(
    verdicts: Iterable[Verdict], timings: Iterable[Timing], **origin: Any
) -> dict[str, Any]:
    """Return what is stored beside the table."""
    numbers = [
        {
            "first": verdict.first,
            "second": verdict.second,
            "smaller": verdict.smaller,
            "equal": verdict.equal,
            "larger": len(verdict.larger),
        }
        for verdict in verdicts
    ]
    return {**origin, "verdicts": numbers, "timings": [asdict(timing) for timing in timings]}


def read(folder: Path, name: str) -> Stored:
    """Read the files of a run."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        points = tuple(_point(line) for line in csv.DictReader(file))
    return Stored(name, json.loads((folder / f"{name}.json").read_text("utf-8")), points)


def read_all(folder: Path) -> list[Stored]:
    """Read all runs of a folder, those of the data sets of this benchmark first."""
    found = sorted(path.stem for path in folder.glob("*.csv"))
    known = [name for name in DATASETS if name in found]
    return [read(folder, name) for name in [*known, *(n for n in found if n not in known)]]


def _point(line: dict[str, str]) -> Point:
    fields = {name: line[name] for name in Point._fields[:7]}
    return Point(
        **fields,
        n=int(line["n"]),
        m=int(line["m"]),
        size=float(line["set_size"]),
        covered=float(line["empirical_coverage"]),
    )
