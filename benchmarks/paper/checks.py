"""Experiments beside the grids: coverage under attack, runtime, and errors of confidence bounds."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import bincp
from benchmarks.bench_baselines import CERTIFICATE, cas_as_published
from benchmarks.paper.methods import METHODS, PAPER_P, Problem, fit_quietly, quietly
from benchmarks.paper.runs import Row
from benchmarks.paper.samples import Samples, softmax
from benchmarks.paper.sampling import Cache, attack_settings
from benchmarks.paper.settings import BASE, Dataset, Task
from benchmarks.paper.splits import Splits
from bincp import baselines

__all__ = ["Timing", "correction_errors", "run_attacks", "time_calibration"]

Array = npt.NDArray[Any]


def run_attacks(name: str, task: Task, dataset: Dataset, cache: Path, n_splits: int) -> list[Row]:
    """Return the coverage of attacked inputs, each method calibrated for the radius attacked at."""
    files = Cache(cache, task.setting.name)
    samples = Samples.load(cache, task.setting.name, "tps", dataset.n_tuning)
    splits = Splits(samples.n_inputs, BASE.n, n_splits)
    m, rows = dataset.n_attack_samples, []
    for radius in task.radii:
        if radius.label not in dataset.attack_radii:
            continue
        logits, clean_logits = (
            files.load(
                f"attack-{radius.label}{ending}",
                attack_settings(cache, task.setting, radius.ball, dataset.n_attacked, draws),
            )
            for ending, draws in (("", m), ("-clean", 0))
        )
        sampled = np.moveaxis(softmax(np.moveaxis(logits, 1, 2)), 2, 1)
        clean = softmax(np.asarray(clean_logits))
        certificate = radius.certificate(task.setting.noise)
        problem = Problem(samples, certificate, radius.label, BASE.coverage, BASE.n, m, BASE.eta)
        for method in METHODS:
            fitted = fit_quietly(method, problem)
            attacked = method.of_test(fitted, problem, np.ascontiguousarray(sampled), clean)
            rows.append(
                Row(
                    dataset=name,
                    setting=task.setting.name,
                    experiment="attack",
                    method=method.name,
                    guarantee=method.guarantee,
                    score="tps",
                    radius=radius.label,
                    coverage=BASE.coverage,
                    n=BASE.n,
                    m=m,
                    p=None,
                    min_count=fitted.min_count,
                    seconds=0.0,
                    outcome=splits.evaluate(fitted, samples.labels, attacked),
                )
            )
    return rows


@dataclass(frozen=True)
class Timing:
    """Least seconds of a calibration of n points."""

    method: str
    n: int
    seconds: float


SIZES = (50, 100, 200, 400, 800)
PUBLISHED_SIZES = (50, 100)  # it is linear in n
REPEATS = 5


def time_calibration(samples: Samples) -> list[Timing]:
    """Time robust calibration on n points with `BASE.m` samples each."""
    alpha = "0.1"
    rules: dict[str, Callable[[Array], Any]] = {
        "BinCP, mixture": lambda s: bincp.BinCP(CERTIFICATE, alpha=alpha).calibrate(s),
        "BinCP, as printed": lambda s: bincp.BinCP(
            CERTIFICATE, alpha=alpha, p=PAPER_P, correction="clopper-pearson"
        ).calibrate(s, n_classes=samples.n_classes),
        "CAS": lambda s: baselines.CAS(CERTIFICATE, alpha=alpha).calibrate(s),
        "RSCP+, Hoeffding": lambda s: baselines.RSCP(CERTIFICATE, alpha=alpha).calibrate(s),
        "RCP1": lambda s: baselines.RCP1(CERTIFICATE, alpha=alpha).calibrate(s[:, :1]),
    }
    timings = []
    for n in SIZES:
        scores = np.ascontiguousarray(samples.calibration[:n, : BASE.m])
        if len(scores) < n:
            continue
        best = dict.fromkeys(rules, np.inf)
        for _ in range(REPEATS):  # interleaved, so that all meet the same machine
            for name, rule in rules.items():
                start = time.perf_counter()
                with quietly():
                    rule(scores)
                best[name] = min(best[name], time.perf_counter() - start)
        timings += [Timing(name, n, seconds) for name, seconds in best.items()]
        if n in PUBLISHED_SIZES:
            start = time.perf_counter()
            cas_as_published(scores)
            timings.append(Timing("CAS, as published", n, time.perf_counter() - start))
    return timings


ETA = 0.001
MEANS = np.round(np.arange(0.05, 1, 0.05), 2)
SPREADS = (0.1, 1.0, 10.0)
N_REPEATS = 200


def correction_errors(m: int) -> dict[str, Array]:
    """Return, by method, mean distances (means,) of lower bounds from the mean they bound.

    Clopper-Pearson bounds the probability p of successes. Hoeffding's and the empirical Bernstein
    bound the mean p of scores of the law Beta(p b / (1 - p), b), which is nearly that of successes
    for a small b, and narrow for a large one.
    """
    rng = np.random.default_rng(0)
    successes = rng.binomial(m, MEANS[:, None], (len(MEANS), N_REPEATS))
    bounds = np.asarray(bincp.clopper_pearson_lower(successes, m, ETA))
    result = {"Clopper-Pearson": MEANS - bounds.mean(axis=1)}
    for b in SPREADS:
        shape = (len(MEANS), N_REPEATS, m)
        drawn = np.clip(rng.beta((MEANS * b / (1 - MEANS))[:, None, None], b, shape), 0, 1)
        for name, bound in (
            ("Hoeffding", bincp.hoeffding_lower),
            ("Bernstein", bincp.bernstein_lower),
        ):
            errors = MEANS - np.asarray(bound(drawn, ETA)).mean(axis=1)
            result[f"{name}, b = {b:g}"] = errors
    return result
