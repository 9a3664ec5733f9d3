"""The derandomised l1 experiment: all copies of splitting noise, next to as many random draws.

For each half-width two networks are trained, with splitting and with uniform noise, and four
methods spend the same number of forward passes, L, the number of copies:

* splitting noise, exact: `exact_probabilities` at thresholds that are fixed in advance, and
  `BinCP.calibrate_exact`: nothing is random, nothing corrected;
* the same network and noise with L random copies and the mixture correction;
* uniform noise with L draws and the mixture correction, and the paper's.

Files ``DATASET-split-W.*`` and ``DATASET-uniform-W.*`` are those of `benchmarks.study.scores`, and
``DATASET-split-W.exact-TAU.npy``, float64 (n, K), holds the exact probabilities at a threshold.
"""

import dataclasses
import functools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import bincp
from benchmarks.paper.methods import METHODS, Fitted, Problem, fit_quietly, quietly
from benchmarks.paper.runs import Row
from benchmarks.paper.samples import Samples
from benchmarks.paper.sampling import Cache, fill_clean, inputs, load_network
from benchmarks.paper.settings import BASE, Dataset, Setting
from benchmarks.paper.splits import Outcome, Splits
from benchmarks.study import data, scores
from bincp import balls
from bincp.sampling import exact_probabilities
from bincp.smoothing import Smoothing, SplittingNoise, Uniform

__all__ = ["TAUS", "fill_exact", "run_exact"]

Array = npt.NDArray[Any]

TAUS = (0.5, 0.9, 0.99)
RANDOM_METHODS = ("BinCP, mixture", "BinCP, as printed")


def settings_of(width: float, base: Setting, n_inputs: int) -> dict[str, tuple[Setting, Smoothing]]:
    """Return the two settings of a half-width: as the data set's own, but for the noise."""
    splitting = SplittingNoise(width)
    return {
        kind: (
            dataclasses.replace(
                base,
                name=f"{base.dataset}-{kind}-{width:g}",
                noise=(width,),
                n_inputs=n_inputs,
                n_calibration=splitting.levels,
                n_test=splitting.levels,
            ),
            smoothing,
        )
        for kind, smoothing in (("split", splitting), ("uniform", Uniform(width)))
    }


def fill_exact(
    dataset: Dataset,
    images: data.Images,
    folder: Path,
    n_threads: int,
    *,
    command: str,
    reporter: Callable[[str], Callable[[str], None]],
) -> None:
    """Make the files of the experiment that are not there yet."""
    base = dataset.tasks[0].setting
    for width in dataset.split_widths:
        for setting, smoothing in settings_of(width, base, dataset.n_split_inputs).values():
            # In float32: an input must have one score, whatever else is in the batch.
            task = scores.ImageTask(setting, images, n_threads, torch.float32, smoothing)
            report = reporter(setting.name)
            scores.fill_cache(task, folder, command=command, report=report)
            fill_clean(task, folder, report)
            if isinstance(smoothing, SplittingNoise):
                _fill_probabilities(task, smoothing, folder, report)


def _fill_probabilities(
    task: scores.ImageTask, smoothing: SplittingNoise, folder: Path, report: Any
) -> None:
    cache = Cache(folder, task.setting.name)
    n, n_classes = cache.load("test").shape[:2]
    network = task.for_sampling(load_network(task, folder))

    x = inputs(task, n)

    def at(tau: float) -> Array:
        def some(rows: npt.NDArray[np.int64]) -> Array:
            return exact_probabilities(network, x[rows], smoothing, tau=tau)

        with scores.threads(task.n_threads) as pool:
            return np.concatenate(list(pool.map(some, scores.blocks(n, scores.BLOCK))))

    for tau in TAUS:
        made = functools.partial(at, tau)
        cache.make(f"exact-{tau:g}", (n, n_classes), made, report, {"tau": tau})


def run_exact(name: str, dataset: Dataset, folder: Path, n_splits: int) -> list[Row]:
    """Return the rows of the experiment."""
    rows = []
    for width in dataset.split_widths:
        pair = settings_of(width, dataset.tasks[0].setting, dataset.n_split_inputs)
        for kind, (setting, smoothing) in pair.items():
            samples = Samples.load(folder, setting.name, "tps", 0)
            splits = Splits(samples.n_inputs, BASE.n, n_splits)
            for r in dataset.split_radii:
                certificate = bincp.certify(smoothing, balls.L1(r))
                problem = Problem(
                    samples, certificate, f"{r:g}", BASE.coverage, BASE.n, setting.n_test, BASE.eta
                )
                for method in METHODS:
                    if method.name in RANDOM_METHODS:
                        fitted = fit_quietly(method, problem)
                        outcome = splits.evaluate(fitted, samples.labels)
                        label = f"{kind}, {method.name.removeprefix('BinCP, ')}"
                        rows.append(_row(name, setting, label, problem, fitted, outcome))
                if kind == "split":
                    for tau in TAUS:
                        p = np.asarray(
                            Cache(folder, setting.name).load(f"exact-{tau:g}", {"tau": tau})
                        )
                        outcome = _exact_outcome(certificate, p, tau, samples.labels, splits)
                        label = f"{kind}, exact, tau = {tau:g}"
                        rows.append(_row(name, setting, label, problem, None, outcome))
    return rows


def _exact_outcome(
    certificate: bincp.Certificate, p: Array, tau: float, labels: Array, splits: Splits
) -> Outcome:
    own = p[np.arange(len(labels)), labels]
    sizes, coverages = [], []
    for known, rest in zip(splits.known, splits.rest, strict=True):
        rule = bincp.BinCP(certificate, alpha=1 - Fraction(BASE.coverage))
        with quietly():
            rule.calibrate_exact(own[known], tau=tau)
        sets = rule.predict_set_exact(p[rest])
        sizes.append(bincp.metrics.average_set_size(sets))
        coverages.append(bincp.metrics.coverage(sets, labels[rest]))
    return Outcome(np.array(sizes), np.array(coverages))


def _row(
    name: str,
    setting: Setting,
    label: str,
    problem: Problem,
    fitted: Fitted | None,
    outcome: Outcome,
) -> Row:
    return Row(
        dataset=name,
        setting=setting.name,
        experiment="exact",
        method=label,
        guarantee="robust",
        score=problem.samples.score,
        radius=problem.radius,
        coverage=problem.coverage,
        n=problem.n,
        m=problem.m,
        p=None,
        min_count=None if fitted is None else fitted.min_count,
        seconds=0.0,
        outcome=outcome,
    )
