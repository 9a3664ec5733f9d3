"""The Markdown report of one data set, and RESULTS.md of all that were run."""

import datetime
import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bincp
from benchmarks.paper import plots
from benchmarks.paper.checks import ETA, MEANS, Timing
from benchmarks.paper.remarks import REMARKS
from benchmarks.paper.runs import COLUMNS, Row
from benchmarks.paper.settings import BASE, DATASETS, Dataset, Task
from benchmarks.paper.tables import LEGEND, coverage_cell, marked, pivot, table
from benchmarks.paper.verdicts import Verdict, judge

__all__ = ["Results", "write"]

GRIDS = ("radius", "samples", "coverage", "points", "p")
LISTED = 4  # exceptions of a pair


@dataclass(frozen=True)
class Results:
    """All that a run found."""

    dataset: str
    spec: Dataset
    command: str
    n_splits: int
    seconds: float
    tasks: tuple[Task, ...]
    rows: list[Row]
    timings: list[Timing]
    errors: dict[int, dict[str, np.ndarray]]

    def of(self, experiment: str, **fields: object) -> list[Row]:
        """Return the rows of an experiment with these fields."""
        return [
            row
            for row in self.rows
            if row.experiment == experiment
            and all(getattr(row, name) == value for name, value in fields.items())
        ]


def write(results: Results, cache: Path, out: Path) -> None:
    """Write DATASET.csv, DATASET.md, plots/DATASET-*.png, and RESULTS.md of all reports in out."""
    (out / "plots").mkdir(parents=True, exist_ok=True)
    lines = [",".join(COLUMNS), *(",".join(_quoted(row.cells)) for row in results.rows)]
    (out / f"{results.dataset}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (out / f"{results.dataset}.md").write_text("\n".join(_report(results, cache, out)), "utf-8")
    first = [out / f"{name}.md" for name in DATASETS]
    others = sorted({*out.glob("*.md")} - {*first, out / "RESULTS.md"})
    found = [part.read_text("utf-8") for part in (*first, *others) if part.exists()]
    (out / "RESULTS.md").write_text("\n".join([*_head(), *found]), "utf-8")


def _quoted(cells: Sequence[str]) -> list[str]:
    return [f'"{text}"' if "," in text else text for text in cells]


def _head() -> list[str]:
    return [
        "# The paper's experiments",
        "",
        "Made by `python -m benchmarks.paper`, one command for each data set; README.md in this "
        "folder says how. Cells are average set size (coverage) on clean inputs; nominal coverage "
        f"{float(BASE.coverage):.0%}, n = {BASE.n} and m = {BASE.m} samples in both phases where "
        f"nothing else is said; eta = {BASE.eta} for every correction that has one. "
        + LEGEND
        + " All methods share the splits; the CSV file has standard errors. CAS and RSCP+ use the "
        "certificate in calibration, CAS, test-time in prediction.",
        "",
    ]


def _report(results: Results, cache: Path, out: Path) -> list[str]:
    lines = [f"## {results.dataset}", "", *_origin(results, cache), ""]
    verdicts = judge([row for row in results.rows if row.experiment in GRIDS])
    lines += _verdicts(verdicts)
    remarks = REMARKS.get(results.dataset)
    if remarks:
        lines += ["### Remarks", "", *(f"* {text}" for text in remarks), ""]
    for task in results.tasks:
        lines += _grids(results, task, out)
    lines += _attacks(results, out)
    lines += _others(results, out)
    return lines


def _origin(results: Results, cache: Path) -> list[str]:
    lines = [
        f"`{results.command}` on {datetime.date.today().isoformat()}, {_machine()}; bincp "
        f"{bincp.__version__}, {results.n_splits} splits (seeds 0 to {results.n_splits - 1}). "
        f"The report took {results.seconds:.0f} s from cached scores.",
        "",
    ]
    for task in results.tasks:
        made = json.loads((cache / f"{task.setting.name}.json").read_text("utf-8"))
        s = task.setting
        sampled = made["test_seconds"] + made["calibration_seconds"]
        lines.append(
            f"* {s.name}: {s.network}, width {s.width}, {s.n_epochs} epochs, seed {s.seed}, noise "
            f"{', '.join(f'{number:g}' for number in s.noise)}; accuracy "
            f"{made['clean_accuracy']:.3f} clean, {made['noisy_accuracy']:.3f} with one draw of "
            f"noise, {made['smoothed_accuracy']:.3f} smoothed; {s.n_inputs} inputs that were not "
            f"trained on; trained in {made.get('training_seconds', 0):.0f} s, sampled in "
            f"{sampled:.0f} s."
        )
    return lines


def _machine() -> str:
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(": ")[2] if names else model
    return f"{os.cpu_count()} cores of {model}"


def _verdicts(verdicts: Sequence[Verdict]) -> list[str]:
    lines = [
        "### Who has the smaller sets",
        "",
        "All runs of all grids below in which both methods took part, on the same splits. Equal "
        "are mostly those where both accept every label.",
        "",
    ]
    body = [
        [
            verdict.first,
            verdict.second,
            str(verdict.smaller),
            f"{verdict.equal} ({verdict.trivial})",
            str(len(verdict.larger)),
        ]
        for verdict in verdicts
        if verdict.smaller or verdict.equal or verdict.larger
    ]
    heads = ("first", "second", "first smaller", "equal (all labels)", "first larger")
    lines += [*table(heads, body), ""]
    exceptions = [
        (verdict, exception) for verdict in verdicts for exception in verdict.larger[:LISTED]
    ]
    if not exceptions:
        return [*lines, "No exception: the first never has larger sets.", ""]
    lines += [f"Exceptions, at most {LISTED} of a pair, those of the largest share first:", ""]
    body = []
    for verdict, exception in exceptions:
        setting, score, radius, coverage, n, m, p = exception.case
        where = f"{setting}, {score}, r = {radius}, {coverage}, n = {n}, m = {m}"
        body.append(
            [
                verdict.first,
                verdict.second,
                where + (f", p = {p}" if p else ""),
                f"{exception.first.outcome.size:.3f}",
                f"{exception.second.outcome.size:.3f}",
                f"{exception.difference:.3f} +- {exception.error:.3f}",
            ]
        )
    heads = ("first", "second", "where", "size of first", "of second", "difference")
    return [*lines, *table(heads, body), ""]


def _grids(results: Results, task: Task, out: Path) -> list[str]:
    name = task.setting.name
    lines = [f"### {name}: set size against radius", ""]
    scores = list(dict.fromkeys(row.score for row in results.of("radius", setting=name)))
    picture = _picture(results, out)
    for score in scores:
        shown = results.of("radius", setting=name, score=score, coverage=BASE.coverage)
        if score != "tps":  # the table of runs has the others
            shown = _of_most_samples(shown)
        lines += [f"Score {score}, nominal coverage {float(BASE.coverage):.0%}:", ""]
        heads = ("method", "m")
        lines += [*pivot(shown, _radius, lambda r: (marked(r), str(r.m)), heads), ""]
    others = _of_most_samples(results.of("radius", setting=name, score="tps"))
    others = [row for row in others if row.coverage != BASE.coverage]
    if others:
        lines += [f"Score tps, m = {others[0].m}, other nominal coverages:", ""]
        heads = ("method", "nominal")
        lines += [*pivot(others, _radius, lambda r: (marked(r), r.coverage), heads), ""]
    shown = results.of("radius", setting=name, score="tps", coverage=BASE.coverage)
    lines += picture("radius", _of_most_samples(shown), _radius, "radius", name)
    plots.bounds(task, out / "plots" / f"{name}-bounds.png")
    lines += [f"![certified bounds](plots/{name}-bounds.png)", ""]
    for experiment, x, label, log in (
        ("samples", lambda row: row.m, "samples m", True),
        ("coverage", lambda row: float(row.coverage), "nominal coverage", False),
        ("points", lambda row: row.n, "calibration points n", True),
        ("p", lambda row: row.p, "p", False),
    ):
        lines += _sweep(results, name, experiment, x, label, log=log, out=out)
    return lines


def _sweep(
    results: Results,
    name: str,
    experiment: str,
    x: Callable[[Row], object],
    label: str,
    *,
    log: bool,
    out: Path,
) -> list[str]:
    rows = results.of(experiment, setting=name)
    if not rows:
        return []
    lines = [f"### {name}: set size against {label}", ""]
    radii = list(dict.fromkeys(row.radius for row in rows))
    with_m = experiment != "samples" and len({row.m for row in rows}) > 1
    for radius in radii:
        own = [row for row in rows if row.radius == radius]
        lines += [f"Radius {radius}:", ""]
        heads = ("method", "m") if with_m else ("method",)

        def down(row: Row, with_m: bool = with_m) -> tuple[str, ...]:
            return (marked(row), str(row.m)) if with_m else (marked(row),)

        sort = sorted(own, key=lambda row: (list(dict.fromkeys(map(x, own))).index(x(row)), row.m))
        lines += [*pivot(sort, x, down, heads), ""]
        if experiment != "p":
            shown = own if experiment == "samples" else _of_most_samples(own)
            lines += _picture(results, out)(
                experiment, shown, x, label, name, radius=radius, log=log
            )
    return lines


def _picture(results: Results, out: Path) -> Callable[..., list[str]]:
    def draw(
        experiment: str,
        rows: list[Row],
        x: Callable[[Row], object],
        label: str,
        name: str,
        radius: str = "",
        log: bool = False,
    ) -> list[str]:
        if len({x(row) for row in rows}) < 2:
            return []
        middle = list(dict.fromkeys(r.radius for r in results.of(experiment, setting=name)))
        if radius and radius != middle[len(middle) // 2]:
            return []  # a picture of one radius is enough
        file = f"plots/{name}-{experiment}.png"
        plots.against(rows, x, label, out / file, log=log)
        return [f"![set size against {label}]({file})", ""]

    return draw


def _attacks(results: Results, out: Path) -> list[str]:
    rows = [row for row in results.rows if row.experiment == "attack"]
    if not rows:
        return []
    dataset = results.spec
    lines = [
        "### Coverage under attack",
        "",
        f"Projected gradient descent on the smoothed score of the true label, within the radius "
        f"that the method was calibrated for, {dataset.n_attacked} inputs, m = "
        f"{dataset.n_attack_samples}, score tps; for vanilla CP on the network without noise. "
        "Coverage of attacked test points:",
        "",
    ]
    for name in dict.fromkeys(row.setting for row in rows):
        own = [row for row in rows if row.setting == name]
        lines += [f"{name}:", ""]
        lines += [*pivot(own, _radius, lambda r: (marked(r),), ("method",), coverage_cell), ""]
        file = f"plots/{name}-attack.png"
        plots.against(
            own,
            _radius,
            "radius",
            out / file,
            y=lambda row: row.outcome.coverage,
            y_label="coverage of attacked inputs",
            line=float(BASE.coverage),
        )
        lines += [f"![coverage under attack]({file})", ""]
    return lines


def _others(results: Results, out: Path) -> list[str]:
    lines: list[str] = []
    rows = [row for row in results.rows if row.experiment == "verified"]
    if rows:
        lines += [
            "### Methods with a verifier",
            "",
            "VRCP with interval bound propagation and Lip-RCP with spectral norms, on a perceptron "
            "of one hidden layer without noise; BinCP on the smoothed network above.",
            "",
            *pivot(rows, _radius, lambda r: (r.method,), ("method",)),
            "",
        ]
    rows = [row for row in results.rows if row.experiment == "exact"]
    if rows:
        lines += [
            "### Derandomised l1 certificates",
            "",
            "Networks trained with splitting and with uniform noise of equal half-width, "
            f"{results.spec.n_split_inputs} inputs, score tps, equal numbers m of "
            "forward passes; l1 radii across. Exact: all m copies of splitting noise, nothing "
            "random and no correction, the threshold tau fixed in advance.",
            "",
            *pivot(
                rows, _radius, lambda r: (r.setting, r.method, str(r.m)), ("network", "method", "m")
            ),
            "",
        ]
    if results.timings:
        lines += _runtime(results, out)
    if results.errors:
        lines += _errors(results, out)
    return lines


def _runtime(results: Results, out: Path) -> list[str]:
    sizes = list(dict.fromkeys(timing.n for timing in results.timings))
    seconds = {(timing.method, timing.n): timing.seconds for timing in results.timings}
    body = [
        [
            method,
            *(
                f"{1000 * seconds[method, n]:.3g} ms" if (method, n) in seconds else "-"
                for n in sizes
            ),
        ]
        for method in dict.fromkeys(timing.method for timing in results.timings)
    ]
    file = f"plots/{results.dataset}-runtime.png"
    plots.runtime(results.timings, out / file)
    return [
        "### Runtime of calibration",
        "",
        f"Robust calibration of n points, m = {BASE.m} (one sample for RCP1), least of "
        "several runs on this machine; CAS as published evaluates the certificate at each step of "
        "each point.",
        "",
        *table(("method", *(f"n = {n}" for n in sizes)), body),
        "",
        f"![runtime]({file})",
        "",
    ]


def _errors(results: Results, out: Path) -> list[str]:
    file = f"plots/{results.dataset}-errors.png"
    plots.errors(results.errors, out / file)
    body = [
        [str(m), name, *(f"{values[np.flatnonzero(p == MEANS)[0]]:.3f}" for p in (0.1, 0.5, 0.9))]
        for m, methods in results.errors.items()
        for name, values in methods.items()
    ]
    return [
        "### Errors of confidence bounds",
        "",
        f"Mean distance of lower bounds (eta = {ETA}) from the mean p that they bound: "
        "Clopper-Pearson from m successes and failures, the others from m scores of the law "
        "Beta(p b / (1 - p), b).",
        "",
        *table(("m", "bound", "p = 0.1", "p = 0.5", "p = 0.9"), body),
        "",
        f"![errors of confidence bounds]({file})",
        "",
    ]


def _of_most_samples(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.m == max(other.m for other in rows)]


def _radius(row: Row) -> str:
    return row.radius
