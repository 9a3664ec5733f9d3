"""Sets that withstand evasion, poison and a shift at once, on real networks.

    python -m benchmarks.study.departures --cache DIR [--only NAME ...] [--splits 30]

DIR is filled by ``python -m benchmarks.study.scores``. For each ball of the evasion there is a row
for each number b of poisoned calibration points, and a column for each total variation rho of the
test law. Every cell has the mean size of the sets while nobody does anything, which is the price,
and the coverage once the adversary has poisoned the calibration and shifted the test law: the
b calibration points with the lowest scores have become infinite, and a share rho of the test points
comes from elsewhere and is not covered. "Unprepared" is the coverage then, for the largest rho, of
a rule that reckons with evasion alone. The inputs of the test are clean; what an attack on them
leaves is bounded by the certificate, so the sets of rows with a radius cover more than they must.
"""

import argparse
import itertools
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import bincp
from benchmarks.study.evaluation import Scores
from benchmarks.study.scores import SETTINGS, Setting, check_cache, load
from bincp import balls, shifts

Array = npt.NDArray[Any]

N = 400
SAMPLES, TEST_SAMPLES = 64, 16
POISONED = (0, 2, 8)
SHIFTS = ("0", "0.01", "0.03")
NAMES = ("cifar10-0.25", "mnist-0.5", "cora-ml")


def balls_of(setting: Setting) -> list[Any]:
    """Return no attack, a weak one and a strong one."""
    if setting.scheme == "SparseFlip":
        return [balls.Flips(0, 0), balls.Flips(0, 1), balls.Flips(1, 2)]
    sigma = setting.noise[0]
    return [balls.L2(0), balls.L2(sigma / 4), balls.L2(sigma / 2)]


def sets_of(
    certificate: bincp.Certificate, true: Array, test: Array, **options: Any
) -> npt.NDArray[np.bool_]:
    """Return the prediction sets of a calibration."""
    rule = bincp.BinCP(certificate, alpha="0.1", **options)
    with warnings.catch_warnings():  # the table shows where every label is in every set
        warnings.simplefilter("ignore", bincp.TrivialSetWarning)
        rule.calibrate(true, n_test_samples=TEST_SAMPLES)
    return rule.predict_set(test)


def outcome(
    certificate: bincp.Certificate, scores: Scores, n_splits: int, b: int, rho: Fraction
) -> tuple[float, float, float]:
    """Return the price, and the coverage under attack of a rule that is prepared and of one not."""
    prepared = {"poisoned": b, "shift": shifts.TotalVariation(rho)}
    sizes, covered, unprepared = [], [], []
    for own, others in scores.splits(N, n_splits):
        true = np.array(scores.calibration[own, :SAMPLES])
        test = np.array(scores.test[others, :, :TEST_SAMPLES])
        poisoned = true.copy()
        poisoned[np.argsort(np.median(true, axis=1))[:b]] = np.inf
        sizes.append(sets_of(certificate, true, test, **prepared).sum(axis=1).mean())
        for shares, options in ((covered, prepared), (unprepared, {})):
            sets = sets_of(certificate, poisoned, test, **options)
            hits = sets[np.arange(len(others)), scores.labels[others]].mean()
            shares.append(max(hits - float(rho), 0.0))
    return float(np.mean(sizes)), float(np.mean(covered)), float(np.mean(unprepared))


def table(setting: Setting, scores: Scores, n_splits: int) -> Iterator[str]:
    """Yield the lines of the table of a network."""
    yield f"**{setting.name}**, n = {N}, m = {SAMPLES}, m' = {TEST_SAMPLES}, alpha = 0.1"
    yield ""
    yield f"| evasion | b | {' | '.join(f'rho = {rho}' for rho in SHIFTS)} | unprepared |"
    yield "|---|---|" + "---|" * (len(SHIFTS) + 1)
    for ball, b in itertools.product(balls_of(setting), POISONED):
        certificate = bincp.certify(setting.smoothing, ball)
        cells = [outcome(certificate, scores, n_splits, b, Fraction(rho)) for rho in SHIFTS]
        text = " | ".join(f"{size:.3f}, {share:.1%}" for size, share, _ in cells)
        yield f"| {ball!r} | {b} | {text} | {cells[-1][2]:.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=NAMES, metavar="NAME")
    parser.add_argument("--splits", type=int, default=30)
    arguments = parser.parse_args()
    for setting in SETTINGS:
        if setting.name in arguments.only:
            check_cache(arguments.cache, setting)
            scores = Scores(*load(arguments.cache, setting.name))
            print("\n".join(table(setting, scores, arguments.splits)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
