"""The files of a run: its table, its Markdown report, and RESULTS.md of all that were run."""

import datetime
import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bincp
from benchmarks.paper import page, stored
from benchmarks.paper.checks import ETA, MEANS, Timing
from benchmarks.paper.remarks import REMARKS
from benchmarks.paper.runs import Row
from benchmarks.paper.settings import BASE, Dataset, Task
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
    """Write DATASET.csv, DATASET.json and DATASET.md, the pictures, and RESULTS.md of all runs."""
    out.mkdir(parents=True, exist_ok=True)
    verdicts = judge([row for row in results.rows if row.experiment in GRIDS])
    today = datetime.date.today().isoformat()
    about = stored.about_run(
        verdicts,
        results.timings,
        bincp=bincp.__version__,
        date=today,
        splits=results.n_splits,
    )
    stored.write(out, results.dataset, results.rows, about)
    text = "\n".join(_report(results, verdicts, cache, today))
    (out / f"{results.dataset}.md").write_text(text, "utf-8")
    page.present(out)


def _head() -> str:
    return (
        "Cells are average set size (coverage) on clean inputs; nominal coverage "
        f"{float(BASE.coverage):.0%}, n = {BASE.n} and m = {BASE.m} samples in both phases where "
        f"nothing else is said; eta = {BASE.eta} for every correction that has one. "
        + LEGEND
        + " All methods share the splits; the CSV file has standard errors. CAS and RSCP+ use the "
        "certificate in calibration, CAS, test-time in prediction."
    )


def _report(results: Results, verdicts: Sequence[Verdict], cache: Path, today: str) -> list[str]:
    lines = [f"# The paper's experiments: {results.dataset}", ""]
    lines += [*_origin(results, cache, today), "", _head(), "", *_verdicts(verdicts)]
    remarks = REMARKS.get(results.dataset)
    if remarks:
        lines += ["## Remarks", "", *(f"* {text}" for text in remarks), ""]
    for task in results.tasks:
        lines += _grids(results, task)
    lines += _attacks(results)
    lines += _others(results)
    return lines


def _origin(results: Results, cache: Path, today: str) -> list[str]:
    lines = [
        f"`{results.command}` on {today}, {_machine()}; bincp "
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
        "## Who has the smaller sets",
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


def _grids(results: Results, task: Task) -> list[str]:
    name = task.setting.name
    lines = [
        f"## {name}",
        "",
        f"![labels in a set of {name}](plots/{name}.png)",
        "",
        f"![certified bounds of {name}](plots/{name}-bounds.png)",
        "",
        f"### {name}: set size against radius",
        "",
    ]
    scores = list(dict.fromkeys(row.score for row in results.of("radius", setting=name)))
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
    for experiment, x, label in (
        ("samples", lambda row: row.m, "samples m"),
        ("coverage", lambda row: float(row.coverage), "nominal coverage"),
        ("points", lambda row: row.n, "calibration points n"),
        ("p", lambda row: row.p, "p"),
    ):
        lines += _sweep(results, name, experiment, x, label)
    return lines


def _sweep(
    results: Results,
    name: str,
    experiment: str,
    x: Callable[[Row], object],
    label: str,
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
    return lines


def _attacks(results: Results) -> list[str]:
    rows = [row for row in results.rows if row.experiment == "attack"]
    if not rows:
        return []
    dataset = results.spec
    lines = [
        "## Coverage under attack",
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
    lines += [f"![coverage under attack](plots/{results.dataset}-attack.png)", ""]
    return lines


def _others(results: Results) -> list[str]:
    lines: list[str] = []
    rows = [row for row in results.rows if row.experiment == "verified"]
    if rows:
        lines += [
            "## Methods with a verifier",
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
            "## Derandomised l1 certificates",
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
        lines += _runtime(results)
    if results.errors:
        lines += _errors(results)
    return lines


def _runtime(results: Results) -> list[str]:
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
    return [
        "## Runtime of calibration",
        "",
        f"Robust calibration of n points, m = {BASE.m} (one sample for RCP1), least of "
        "several runs on this machine; CAS as published evaluates the certificate at each step of "
        "each point.",
        "",
        *table(("method", *(f"n = {n}" for n in sizes)), body),
        "",
        f"![runtime](plots/{results.dataset}-runtime.png)",
        "",
    ]


def _errors(results: Results) -> list[str]:
    body = [
        [str(m), name, *(f"{values[np.flatnonzero(p == MEANS)[0]]:.3f}" for p in (0.1, 0.5, 0.9))]
        for m, methods in results.errors.items()
        for name, values in methods.items()
    ]
    return [
        "## Errors of confidence bounds",
        "",
        f"Mean distance of lower bounds (eta = {ETA}) from the mean p that they bound: "
        "Clopper-Pearson from m successes and failures, the others from m scores of the law "
        "Beta(p b / (1 - p), b).",
        "",
        *table(("m", "bound", "p = 0.1", "p = 0.5", "p = 0.9"), body),
        "",
        "![errors of confidence bounds](plots/errors.png)",
        "",
    ]


def _of_most_samples(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.m == max(other.m for other in rows)]


def _radius(row: Row) -> str:
    return row.radius
