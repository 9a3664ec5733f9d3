"""Run the grids of experiments: one row for each combination and method."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks.paper.methods import METHODS, Method, Problem, fit_quietly
from benchmarks.paper.samples import Samples
from benchmarks.paper.settings import BASE, Dataset, Experiment, Radius, Task
from benchmarks.paper.splits import Outcome, Splits

__all__ = ["COLUMNS", "Row", "run_grids", "run_task"]


@dataclass(frozen=True)
class Row:
    """A line of the tidy table; ``outcome`` has what came out on each split."""

    dataset: str
    setting: str
    experiment: str
    method: str
    guarantee: str
    score: str
    radius: str
    coverage: str  # nominal
    n: int
    m: int
    p: str | None
    min_count: int | None
    seconds: float
    outcome: Outcome

    @property
    def cells(self) -> list[str]:
        """The row as text, in the order of `COLUMNS`."""
        plain = [getattr(self, name) for name in COLUMNS[: -len(MEASURED)]]
        return ["" if cell is None else str(cell) for cell in plain] + [
            f"{value:.5f}"
            for value in (
                self.outcome.size,
                standard_error(self.outcome.sizes),
                self.outcome.coverage,
                standard_error(self.outcome.coverages),
            )
        ]


MEASURED = ("set_size", "set_size_error", "empirical_coverage", "empirical_coverage_error")
COLUMNS = (*(f.name for f in fields(Row) if f.name not in ("outcome", "seconds")), *MEASURED)


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of the mean over splits."""
    return float(values.std() / np.sqrt(max(len(values) - 1, 1)))


def run_task(
    name: str,
    task: Task,
    dataset: Dataset,
    cache: Path,
    n_splits: int,
    report: Callable[[str], None],
) -> list[Row]:
    """Run all grids of one network."""
    rows: list[Row] = []
    for score in sorted({s for e in dataset.experiments for s in e.scores}, reverse=True):
        start = time.perf_counter()
        samples = Samples.load(cache, task.setting.name, score, dataset.n_tuning)
        for experiment in dataset.experiments:
            if score in experiment.scores:
                rows += run_grids(name, task, experiment, samples, n_splits)
        report(f"{score}: {len(rows)} rows, {time.perf_counter() - start:.0f} s")
    return rows


def run_grids(
    name: str, task: Task, experiment: Experiment, samples: Samples, n_splits: int
) -> Iterator[Row]:
    """Yield the rows of one experiment for one score."""
    radii = [r for r in task.radii if not experiment.radii or r.label in experiment.radii]
    certificates = {radius.label: radius.certificate(task.setting.noise) for radius in radii}
    # Number of samples outermost: samples are sorted once for each.
    for m, n in itertools.product(experiment.m, experiment.n):
        if m > samples.n_samples or n >= samples.n_inputs:
            continue
        splits = Splits(samples.n_inputs, n, n_splits)
        for radius, coverage, p in itertools.product(radii, experiment.coverages, experiment.p):
            problem = Problem(
                samples, certificates[radius.label], radius.label, coverage, n, m, BASE.eta, p
            )
            for method in METHODS:
                if applies(method, problem):
                    yield run_one(name, task, experiment, problem, radius, method, splits)


def applies(method: Method, problem: Problem) -> bool:
    """Return whether a method is run: scores bounded, p where it has one, not too many samples."""
    bounded = problem.samples.bounds is not None or not method.bounded
    return bounded and (problem.p is None or method.takes_p) and problem.m <= method.most_samples


def run_one(
    name: str,
    task: Task,
    experiment: Experiment,
    problem: Problem,
    radius: Radius,
    method: Method,
    splits: Splits,
) -> Row:
    """Fit a method and evaluate it on all splits."""
    start = time.perf_counter()
    fitted = fit_quietly(method, problem)
    outcome = splits.evaluate(fitted, problem.samples.labels)
    return Row(
        dataset=name,
        setting=task.setting.name,
        experiment=experiment.name,
        method=method.name,
        guarantee=method.guarantee,
        score=problem.samples.score,
        radius=radius.label,
        coverage=problem.coverage,
        n=problem.n,
        m=problem.m,
        p=problem.p,
        min_count=fitted.min_count,
        seconds=time.perf_counter() - start,
        outcome=outcome,
    )
