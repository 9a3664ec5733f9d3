"""Command line: ``python -m benchmarks.paper DATASET --data DIR --cache DIR --out DIR``."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.paper import checks, exact, report, runs, verified
from benchmarks.paper.page import ERROR_SAMPLES
from benchmarks.paper.samples import Samples
from benchmarks.paper.settings import DATASETS, Dataset, Task
from benchmarks.study import scores as study

if TYPE_CHECKING:
    from collections.abc import Callable


def reporter(name: str) -> "Callable[[str], None]":
    """Return what prints lines about a setting."""
    return lambda line: print(f"{time.strftime('%H:%M:%S')} {name}: {line}", flush=True)


def fill(name: str, dataset: Dataset, tasks: list[Task], arguments: argparse.Namespace) -> None:
    """Make the files that the cache lacks: only this step needs the data."""
    import torch

    from benchmarks.paper import published, sampling

    torch.set_num_threads(arguments.threads)
    command = f"python -m benchmarks.paper {name}"
    for task in tasks:
        source = task.setting, arguments.data, arguments.cache
        if arguments.weights is None:
            made = study.task_for(*source, arguments.threads)
        else:
            made = published.task_for(*source, arguments.weights, arguments.threads)
        say = reporter(task.setting.name)
        sizes = dataset.n_logits, dataset.n_tuning
        sampling.fill(made, arguments.cache, *sizes, command=command, report=say)
        if isinstance(made, study.ImageTask):
            radii = {r.label: r.ball for r in task.radii if r.label in dataset.attack_radii}
            n, m = dataset.n_attacked, dataset.n_attack_samples
            sampling.fill_attacks(made, arguments.cache, radii, n, m, say)
            if dataset.linf_radii and task is dataset.tasks[0]:
                verified.fill_verified(made, dataset, arguments.cache, say)
            if dataset.split_widths and task is dataset.tasks[0]:
                exact.fill_exact(
                    dataset,
                    made.images,
                    arguments.cache,
                    arguments.threads,
                    command=command,
                    reporter=reporter,
                )


def evaluate(
    name: str, dataset: Dataset, tasks: list[Task], arguments: argparse.Namespace
) -> report.Results:
    """Run every experiment on cached scores."""
    start = time.perf_counter()
    cache, n_splits = arguments.cache, arguments.splits
    rows: list[runs.Row] = []
    for task in tasks:
        study.check_cache(cache, task.setting)
        say = reporter(task.setting.name)
        rows += runs.run_task(name, task, dataset, cache, n_splits, say)
        if dataset.attack_radii:
            rows += checks.run_attacks(name, task, dataset, cache, n_splits)
    if dataset.linf_radii:
        rows += verified.run_verified(name, dataset, cache, n_splits)
    if dataset.split_widths:
        rows += exact.run_exact(name, dataset, cache, n_splits)
    samples = Samples.load(cache, tasks[0].setting.name, "tps", dataset.n_tuning)
    timings = checks.time_calibration(samples)
    errors: dict[int, dict[str, np.ndarray]] = {}
    if name == "cifar10":  # it needs no data; once is enough
        errors = {m: checks.correction_errors(m) for m in ERROR_SAMPLES}
    seconds = time.perf_counter() - start
    command = (
        f"python -m benchmarks.paper {arguments.dataset} "
        f"{'--from-cache' if arguments.from_cache else '--data DATA'} --cache CACHE --out OUT "
        f"--splits {n_splits}"
    )
    return report.Results(
        name, dataset, command, n_splits, seconds, tuple(tasks), rows, timings, errors
    )


def main(argv: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument("dataset", choices=[*DATASETS, "imagenet"])
    parser.add_argument("--data", type=Path, help="folder of the data; see README.md")
    parser.add_argument("--cache", type=Path, required=True, help="folder of networks and scores")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the report to")
    parser.add_argument("--splits", type=int, default=100, help="calibration splits (100)")
    parser.add_argument("--weights", type=Path, help="file of published weights; see README.md")
    parser.add_argument("--sigma", type=float, help="noise that these were trained with")
    parser.add_argument("--only", nargs="+", help="settings, e.g. cifar10-0.25 (all)")
    parser.add_argument("--threads", type=int, default=2, help="threads (2)")
    parser.add_argument(
        "--from-cache", action="store_true", help="use what is cached, without data"
    )
    arguments = parser.parse_args(argv)
    name, dataset = _dataset(parser, arguments)
    names = [task.setting.name for task in dataset.tasks]
    unknown = set(arguments.only or ()) - set(names)
    if unknown:
        parser.error(f"--only must be of {', '.join(names)}, got {', '.join(sorted(unknown))}")
    tasks = [task for task in dataset.tasks if task.setting.name in (arguments.only or names)]
    if not arguments.from_cache:
        if arguments.data is None or not arguments.data.is_dir():
            parser.error(f"--data must be a folder, got {arguments.data}; or give --from-cache")
        arguments.cache.mkdir(parents=True, exist_ok=True)
        fill(name, dataset, tasks, arguments)
    results = evaluate(name, dataset, tasks, arguments)
    report.write(results, arguments.cache, arguments.out)
    print(f"report in {arguments.out / 'RESULTS.md'}, {results.seconds:.0f} s")


def _dataset(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> tuple[str, Dataset]:
    """Return what is run, and the name of its report."""
    name = arguments.dataset
    if (arguments.weights is None) != (arguments.sigma is None):
        parser.error("--weights and --sigma belong together")
    if arguments.weights is None:
        if name not in DATASETS:
            parser.error(f"{name} needs --weights and --sigma")
        return name, DATASETS[name]
    if name not in ("cifar10", "imagenet"):
        parser.error(f"--weights is for cifar10 and imagenet, got {name}")
    from benchmarks.paper.published import published

    dataset = published(name, arguments.sigma)
    return dataset.tasks[0].setting.name, dataset


if __name__ == "__main__":
    main()
