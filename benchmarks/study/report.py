"""Compare corrections on the cached scores: coverage, set size and forward passes.

    python -m benchmarks.study.report --cache DIR [--splits 20] [--out benchmarks/study/RESULTS.md]

`benchmarks.study.scores` makes the cache, and `benchmarks.study.evaluation` says what is compared.
Beside the Markdown file it draws ``plots/passes.png``. The standard error of a mean set size over
20 splits is about 1%, that of a difference between two rows less than half of it.
"""

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bincp
from benchmarks.study import scores
from benchmarks.study.evaluation import Method, Outcome, Scores, evaluate
from bincp import balls, smoothing

N_CALIBRATION = 200
ALPHA = 0.1


def paper(m: int) -> Method:
    """Return the paper's correction, with its p."""
    return Method("Clopper-Pearson, paper", m, m, {"correction": "clopper-pearson", "p": "0.6"})


def fixed(m: int, m_test: int) -> Method:
    """Return the mixture correction that counts all m' draws."""
    return Method("mixture, fixed", m, m_test, {})


def early(m_test: int, passes: str | float = "auto") -> Method:
    """Return the mixture correction that stops early, with 64 samples for calibration."""
    name = "mixture, early" if passes == "auto" else f"mixture, early, {passes:g} passes"
    return Method(name, 64, m_test, {"passes": passes})


TWO_BOUNDS = {"correction": "clopper-pearson", "p": "0.6", "union": "two-bounds"}
UNCORRECTED = Method("none (no guarantee)", 1024, 1024, {"correction": "none", "p": "0.6"})
METHODS = (
    Method("RCP1", 1, 1, {"p": 1}),
    paper(16),
    paper(64),
    paper(256),
    paper(1024),
    Method("Clopper-Pearson, two bounds", 256, 256, TWO_BOUNDS),
    UNCORRECTED,
    fixed(4, 4),
    fixed(16, 16),
    fixed(32, 32),
    fixed(64, 64),
    fixed(256, 256),
    fixed(64, 1),
    fixed(64, 4),
    fixed(64, 16),
    early(4),
    early(16, 3.5),
    early(16),
    early(32, 7),
    early(32),
    early(64),
)


@dataclass(frozen=True)
class Attack:
    """A column of the tables."""

    label: str
    certificate: bincp.Certificate


@dataclass(frozen=True)
class Problem:
    """A table: a network of the cache, and the attacks that its noise is to withstand."""

    name: str
    title: str
    radius: str
    attacks: tuple[Attack, ...]


def _problem(
    name: str, title: str, noise: smoothing.Smoothing, radius: str, attacks: dict[str, balls.Ball]
) -> Problem:
    made = (Attack(label, bincp.certify(noise, ball)) for label, ball in attacks.items())
    return Problem(name, title, radius, tuple(made))


def gaussian(name: str, title: str, sigma: float) -> Problem:
    """Return a table of Gaussian noise, in units of sigma."""
    radii = {f"{r:g}": balls.L2(sigma * r) for r in (0.25, 0.5, 1, 2)}
    return _problem(name, title, smoothing.Gaussian(sigma), "r / sigma", radii)


def problems() -> list[Problem]:
    """Return all tables."""
    laplace = {f"{r:g}": balls.L1(0.2 * r) for r in (0.25, 0.5, 1, 2)}
    uniform = {f"{r:g}": balls.L1(0.5 * r) for r in (0.1, 0.25, 0.5, 1)}
    flips = {f"{a} added, {d} deleted": balls.Flips(a, d) for a, d in ((0, 1), (1, 0), (1, 2))}
    sparse = smoothing.SparseFlip(0.01, 0.6)
    return [
        gaussian("cifar10-0.25", "CIFAR-10, Gaussian noise, sigma = 0.25", 0.25),
        gaussian("cifar10-0.5", "CIFAR-10, Gaussian noise, sigma = 0.5", 0.5),
        gaussian("mnist-0.5", "MNIST, Gaussian noise, sigma = 0.5", 0.5),
        _problem("cora-ml", "Cora-ML, flipped attributes", sparse, "flips", flips),
        _problem(
            "cifar10-laplace",
            "CIFAR-10, Laplace noise of scale 0.2, l1 balls",
            smoothing.Laplace(0.2),
            "r / scale",
            laplace,
        ),
        _problem(
            "cifar10-uniform",
            "CIFAR-10, uniform noise of half-width 0.5, l1 balls",
            smoothing.Uniform(0.5),
            "r / half-width",
            uniform,
        ),
    ]


def report(
    cache: Path, n_splits: int, found: Sequence[Problem], plot: Path | None, n_workers: int = 1
) -> str:
    """Return the tables as Markdown, and draw the picture."""
    lines = [
        "# Set sizes of the corrections",
        "",
        f"n = {N_CALIBRATION}, nominal coverage {1 - ALPHA:.0%}, {n_splits} splits, clean inputs. "
        "Each cell: average set size",
        "(coverage). m samples of a calibration point, at most m' of a test input; passes on "
        "average, for each column. Made by",
        "`python -m benchmarks.study.report --cache DIR`.",
        "",
        "* RCP1 is `bincp.one_sample`; Clopper-Pearson is the paper's correction with p = 0.6.",
        '* "fixed" counts all draws (`passes=None`). "early" stops early: `passes="auto"`, or a '
        "budget in the reference population,",
        "  which real inputs may exceed.",
        "* A table lacks the rows that need more samples than the cache has.",
    ]
    if plot is not None:
        lines += ["", f"![size against passes](plots/{plot.name})"]
    with ProcessPoolExecutor(n_workers) as pool:
        tables = list(pool.map(partial(_rows, cache, n_splits), found))
    for problem, rows in zip(found, tables, strict=True):
        lines += ["", f"## {problem.title}", "", _network(cache, problem.name), ""]
        lines += _table(problem, rows)
    if plot is not None:
        from benchmarks.study import plots

        plots.size_against_passes(list(zip(found, tables, strict=True)), plot)
    return "\n".join(lines) + "\n"


def _rows(cache: Path, n_splits: int, problem: Problem) -> list[tuple[Method, list[Outcome]]]:
    data = Scores(*scores.load(cache, problem.name))
    return [
        (
            method,
            [
                evaluate(method, attack.certificate, data, N_CALIBRATION, n_splits, ALPHA)
                for attack in problem.attacks
            ],
        )
        for method in METHODS
        if method.fits(data)
    ]


def _table(problem: Problem, rows: list[tuple[Method, list[Outcome]]]) -> list[str]:
    titles = [f"{problem.radius} = {attack.label}" for attack in problem.attacks]
    heading = ["method", "m", "m'", *titles, "passes"]
    lines = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
    for method, outcomes in rows:
        cells = [f"{each.size.mean():.2f} ({each.coverage.mean():.1%})" for each in outcomes]
        passes = [f"{each.passes.mean():.4g}" for each in outcomes]
        shown = passes[0] if len(set(passes)) == 1 else " / ".join(passes)
        row = [method.name, str(method.m), str(method.m_test), *cells, shown]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def _network(cache: Path, name: str) -> str:
    made = json.loads((cache / f"{name}.json").read_text("utf-8"))
    return (
        f"Network: {made['setting']['network']}, width {made['setting']['width']}, "
        f"{made['setting']['n_epochs']} epochs, seed {made['setting']['seed']}; accuracy "
        f"{made['clean_accuracy']:.3f} clean, {made['noisy_accuracy']:.3f} with one draw of noise, "
        f"{made['smoothed_accuracy']:.3f} smoothed."
    )


def main(argv: list[str] | None = None) -> None:
    """Run the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder of cached scores")
    parser.add_argument("--splits", type=int, default=20, help="calibration splits")
    parser.add_argument("--only", nargs="+", help="networks (default: all that are cached)")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="Markdown file to write; standard output if not")
    arguments = parser.parse_args(argv)
    found = [
        problem
        for problem in problems()
        if (arguments.cache / f"{problem.name}.json").exists()
        and (arguments.only is None or problem.name in arguments.only)
    ]
    if arguments.out is None:
        print(report(arguments.cache, arguments.splits, found, None, arguments.workers))
        return
    plot = arguments.out.parent / "plots" / "passes.png"
    plot.parent.mkdir(exist_ok=True)
    text = report(arguments.cache, arguments.splits, found, plot, arguments.workers)
    arguments.out.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
