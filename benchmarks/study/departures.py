"""Sets that withstand evasion, poison and a shift at once, on real networks that are attacked.

    python -m benchmarks.study.departures --data DIR --cache DIR [--splits 20] [--inputs 300]

The cache is filled by ``python -m benchmarks.study.scores --only cifar10-0.25 cora-ml``. The first
inputs of each data set are attacked, and are the test points of every split; n of the others
calibrate. A row of the table is a rule that is prepared for a ball of the evasion, for b poisoned
calibration points and for a total variation rho of the test law. Its columns:

* size and clean: mean size of the sets and coverage while nobody does anything, which is the price;
* attacked: coverage once the adversary has used all three. The test points are attacked within the
  ball (`benchmarks.study.attacked`), the b calibration points with the lowest scores have become
  infinite, and a share rho of the test points comes from elsewhere and is not covered;
* unprepared: coverage then of the rule that reckons with none of them.

CIFAR-10 is there twice: with noise in floats, and with noise on the grid of grey levels, whose
certificate holds for the very numbers that a computer draws. Both share the network.
"""

import argparse
import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import bincp
from benchmarks.study.attacked import attacked_scores
from benchmarks.study.evaluation import Ratio, Scores
from benchmarks.study.scores import (
    SETTINGS,
    GraphTask,
    ImageTask,
    Setting,
    check_cache,
    load,
    load_network,
    task_for,
)
from bincp import balls, shifts
from bincp.smoothing import Gaussian

Array = npt.NDArray[Any]

N = 400
SAMPLES, TEST_SAMPLES = 64, 16
POISONED = (0, 8)
SHIFTS = ("0", "0.03")
NAMES = ("cifar10-0.25", "cora-ml")
GREY_LEVELS = 255
GRID = ", grid"


@dataclass(frozen=True)
class World:
    """Scores of one network, and those of its first inputs under attack, by the ball."""

    name: str
    smoothing: bincp.smoothing.Smoothing
    scores: Scores
    attacked: dict[Any, Array]


@dataclass(frozen=True)
class Row:
    """One line of the table; sizes and hits are (splits, test points)."""

    world: str
    ball: Any
    b: int
    rho: Fraction
    sizes: Array
    clean: Array
    attacked: Array
    unprepared: Array

    def __str__(self) -> str:
        ball = repr(self.ball).replace(", dim=None", "")
        rho = float(self.rho)
        # The shift moves a share of the covered test points away.
        attacked, unprepared = (
            max(hits.mean() - rho, 0.0) for hits in (self.attacked, self.unprepared)
        )
        return (
            f"| {self.world} | {ball} | {self.b} | {rho:g} | {self.sizes.mean():.3f} "
            f"| {self.clean.mean():.1%} | {attacked:.1%} | {unprepared:.1%} |"
        )

    @property
    def error(self) -> float:
        """The standard error of the coverage under attack, over the test points."""
        return float(self.attacked.mean(axis=0).std(ddof=1) / math.sqrt(self.attacked.shape[1]))

    def over(self, other: "Row") -> Ratio:
        """Return the quotient of the mean sizes, with its error over the test points."""
        own, base = (row.sizes.mean(axis=0) for row in (self, other))
        value = own.mean() / base.mean()
        rest = (own - value * base) / base.mean()
        return Ratio(float(value), float(rest.std(ddof=1) / math.sqrt(len(rest))))


def balls_of(setting: Setting) -> list[Any]:
    """Return no attack, a weak one and a strong one."""
    if setting.scheme == "SparseFlip":
        return [balls.Flips(0, 0), balls.Flips(0, 1), balls.Flips(1, 2)]
    sigma = setting.noise[0]
    return [balls.L2(0), balls.L2(sigma / 4), balls.L2(sigma / 2)]


def worlds(setting: Setting, data: Path, cache: Path, n_inputs: int) -> Iterator[World]:
    """Yield the network with the noise of the study, and an image network with grid noise too."""
    check_cache(cache, setting)
    task = task_for(setting, data, cache, torch.get_num_threads())
    network = load_network(task, cache)
    yield attacked_world(setting.name, task, network, Scores(*load(cache, setting.name)), n_inputs)
    if isinstance(task, ImageTask):
        few = replace(setting, n_calibration=SAMPLES, n_test=TEST_SAMPLES)
        grid = Gaussian(*setting.noise, grid=GREY_LEVELS)
        task = ImageTask(few, task.images, task.n_threads, smoothing=grid)
        true, test = (task.sample(network, phase, _quiet) for phase in ("calibration", "test"))
        scores = Scores(true, test, task.labels)
        yield attacked_world(setting.name + GRID, task, network, scores, n_inputs)


def attacked_world(
    name: str,
    task: ImageTask | GraphTask,
    network: torch.nn.Module,
    scores: Scores,
    n_inputs: int,
) -> World:
    """Attack the first inputs; a ball of one point leaves them as they are."""
    unmoved, *others = balls_of(task.setting)
    attacked = {unmoved: np.array(scores.test[:n_inputs, :, :TEST_SAMPLES])}
    for ball in others:
        attacked[ball] = attacked_scores(task, network, ball, n_inputs, TEST_SAMPLES)
    return World(name, task.smoothing, scores, attacked)


def rows_of(world: World, n_splits: int) -> Iterator[Row]:
    """Yield the rows of a world."""
    for ball, b, rho in itertools.product(world.attacked, POISONED, map(Fraction, SHIFTS)):
        yield row_of(world, ball, b, rho, n_splits)


def row_of(world: World, ball: Any, b: int, rho: Fraction, n_splits: int) -> Row:
    """Calibrate on every split, and look at the sets of clean and of attacked test points."""
    attacked = world.attacked[ball]
    n_inputs = len(attacked)
    clean = np.array(world.scores.test[:n_inputs, :, :TEST_SAMPLES])
    labels = world.scores.labels[:n_inputs]
    prepared = bincp.certify(world.smoothing, ball)
    unmoved = bincp.certify(world.smoothing, next(iter(world.attacked)))
    options = {"poisoned": b, "shift": shifts.TotalVariation(rho)}
    found: list[list[Array]] = [[], [], [], []]
    for seed in range(n_splits):
        pool = np.random.default_rng(seed).permutation(len(world.scores.labels) - n_inputs)
        true = np.array(world.scores.calibration[n_inputs + pool[:N], :SAMPLES])
        poisoned = true.copy()
        poisoned[np.argsort(np.median(true, axis=1))[:b]] = np.inf
        sets = (
            sets_of(prepared, true, clean, **options),
            sets_of(prepared, poisoned, attacked, **options),
            sets_of(unmoved, poisoned, attacked),
        )
        sizes, hits = sets[0].sum(axis=1), [one[np.arange(n_inputs), labels] for one in sets]
        for kept, values in zip(found, (sizes, *hits), strict=True):
            kept.append(values)
    return Row(world.name, ball, b, rho, *map(np.array, found))


def sets_of(
    certificate: bincp.Certificate, true: Array, test: Array, **options: Any
) -> npt.NDArray[np.bool_]:
    """Return the prediction sets of a calibration."""
    rule = bincp.BinCP(certificate, alpha="0.1", **options)
    with warnings.catch_warnings():  # the table shows where every label is in every set
        warnings.simplefilter("ignore", bincp.TrivialSetWarning)
        rule.calibrate(true, n_test_samples=TEST_SAMPLES)
    return rule.predict_set(test)


def _quiet(line: str) -> None:
    pass


def grid_over_float(rows: list[Row]) -> Iterator[str]:
    """Yield a line for each row with grid noise: its size over that of noise in floats."""
    by_case = {(row.world, row.ball, row.b, row.rho): row for row in rows}
    for (world, *case), row in by_case.items():
        if world.endswith(GRID):
            other = by_case[world.removesuffix(GRID), *case]
            yield f"| {row.ball.r:g} | {row.b} | {float(row.rho):g} | {row.over(other)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=NAMES, metavar="NAME")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--inputs", type=int, default=300, help="test points, which are attacked")
    arguments = parser.parse_args()
    print("| data | evasion | b | rho | size | clean | attacked | unprepared |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for setting in SETTINGS:
        if setting.name in arguments.only:
            found = worlds(setting, arguments.data, arguments.cache, arguments.inputs)
            for row in (row for world in found for row in rows_of(world, arguments.splits)):
                rows.append(row)
                print(row, flush=True)
    error = max(row.error for row in rows)
    print(f"\nStandard error of an attacked coverage over the test points: at most {error:.1%}")
    print("\n| r | b | rho | size with grid noise over that in floats |\n|---|---|---|---|")
    print("\n".join(grid_over_float(rows)))


if __name__ == "__main__":
    main()
