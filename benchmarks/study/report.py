"""Compare corrections on the cached scores: coverage, set size and forward passes.

    python -m benchmarks.study.report --cache DIR [--splits 20] [--out benchmarks/study]

`benchmarks.study.scores` makes the cache, and `benchmarks.study.evaluation` says what is compared.
The folder gets ``sizes.json``, all figures; ``TABLES.md``, all of them as tables; ``RESULTS.md``,
one page of them; and ``plots/passes.png``. The standard error of a mean set size over 20 splits is
about 1%, that of a difference between two rows less than half of it.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import bincp
from benchmarks.study import scores
from benchmarks.study.evaluation import Method, Outcome, Scores, evaluate
from benchmarks.study.plots import COLUMN, size_against_passes
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


def measured(
    cache: Path, n_splits: int, found: Sequence[Problem], n_workers: int = 1
) -> dict[str, Any]:
    """Return all figures as plain values: means over the splits, for each attack."""
    with ProcessPoolExecutor(n_workers) as pool:
        tables = list(pool.map(partial(_rows, cache, n_splits), found))
    problems = [
        {
            "title": problem.title,
            "radius": problem.radius,
            "attacks": [attack.label for attack in problem.attacks],
            "network": _network(cache, problem.name),
            "rows": rows,
        }
        for problem, rows in zip(found, tables, strict=True)
    ]
    return {"bincp": bincp.__version__, "splits": n_splits, "problems": problems}


def _rows(cache: Path, n_splits: int, problem: Problem) -> list[dict[str, Any]]:
    data = Scores(*scores.load(cache, problem.name))
    return [
        _row(
            method,
            [
                evaluate(method, attack.certificate, data, N_CALIBRATION, n_splits, ALPHA)
                for attack in problem.attacks
            ],
        )
        for method in METHODS
        if method.fits(data)
    ]


def _row(method: Method, outcomes: list[Outcome]) -> dict[str, Any]:
    means = {
        name: [round(float(getattr(each, name).mean()), 5) for each in outcomes]
        for name in ("size", "coverage", "passes")
    }
    return {"method": method.name, "m": method.m, "m_test": method.m_test, **means}


# ---- text ------------------------------------------------------------------------------------


def tables(found: dict[str, Any]) -> str:
    """Return all figures as Markdown."""
    lines = [
        "# Set sizes of the corrections: all figures",
        "",
        *_made(found),
        "",
        "Each cell: average set size (coverage). m samples of a calibration point, at most m' of a "
        "test input; passes on average, for each column.",
        "",
        *NAMES,
        "* A table lacks the rows that need more samples than the cache has.",
    ]
    for problem in found["problems"]:
        lines += ["", f"## {problem['title']}", "", problem["network"], "", *_table(problem)]
    return "\n".join(lines) + "\n"


def page(found: dict[str, Any]) -> str:
    """Return the question, the picture, the main table and the verdict."""
    body = [_main_row(problem) for problem in found["problems"]]
    heads = ("task", *(name for name, _ in MAIN))
    lines = [
        "# Set sizes of the corrections",
        "",
        "How large are the sets that are robust, and how many forward passes does a test input "
        "cost? The guarantee is the same for all methods but the uncorrected one: the set holds "
        "the label with probability 90% under any attack in the ball. What differs is how the "
        "correction pays for finitely many samples.",
        "",
        f"![labels in a set against forward passes](plots/{PLOT})",
        "",
        *_made(found),
        "",
        *NAMES,
        "",
        f"Labels in a set @ forward passes, at the {ORDINAL} attack of each task:",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
        *(f"| {' | '.join(row)} |" for row in body),
        "",
        *(f"* {sentence}" for sentence in _verdict(found["problems"])),
        "",
        "[All figures](TABLES.md): every attack, number of samples and coverage. "
        "[EARLY.md](EARLY.md): early stopping beside fixed counts, and the chosen rule beside the "
        "best in hindsight. [DEPARTURES.md](DEPARTURES.md): poison and shift.",
    ]
    return "\n".join(lines) + "\n"


PLOT, ORDINAL = "passes.png", "second"
NAMES = (
    "* RCP1 is `bincp.one_sample`; Clopper-Pearson is the paper's correction with p = 0.6.",
    '* "fixed" counts all draws (`passes=None`). "early" stops early: `passes="auto"`, or a budget '
    "in the reference population, which real inputs may exceed.",
)
MAIN: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("RCP1", lambda row: row["method"] == "RCP1"),
    ("the paper's, most samples", lambda row: row["method"] == "Clopper-Pearson, paper"),
    ("fixed, m = m' = 64", lambda row: (row["method"], row["m_test"]) == ("mixture, fixed", 64)),
    ("early, m' = 16", lambda row: (row["method"], row["m_test"]) == ("mixture, early", 16)),
)
"""The columns of the main table: of the rows that belong to one, the last."""


def _made(found: dict[str, Any]) -> list[str]:
    return [
        f"n = {N_CALIBRATION}, nominal coverage {1 - ALPHA:.0%}, means over {found['splits']} "
        f"splits, clean inputs. Made by `python -m benchmarks.study.report --cache DIR`, bincp "
        f"{found['bincp']}."
    ]


def _main_row(problem: dict[str, Any]) -> list[str]:
    attack = f"{problem['radius']} = {problem['attacks'][COLUMN]}"
    cells = [f"{size:.2f} @ {short(passes)}" for size, passes in _main_cells(problem)]
    return [f"{problem['title']}, {attack}", *cells]


def short(passes: float) -> str:
    """Return a number of passes with two digits or more."""
    return f"{passes:.1f}" if passes < 100 and passes != int(passes) else f"{passes:,.0f}"


def _main_cells(problem: dict[str, Any]) -> list[tuple[float, float]]:
    chosen = [[row for row in problem["rows"] if belongs(row)] for _, belongs in MAIN]
    return [(rows[-1]["size"][COLUMN], rows[-1]["passes"][COLUMN]) for rows in chosen]


def _verdict(problems: Sequence[dict[str, Any]]) -> list[str]:
    """Say what the main table says, from its figures."""
    one, paper, fixed_count, early_stop = zip(*map(_main_cells, problems), strict=True)
    smaller = sum(ours[0] < theirs[0] for ours, theirs in zip(early_stop, paper, strict=True))
    fewer = [theirs[1] / ours[1] for ours, theirs in zip(early_stop, paper, strict=True)]
    larger = [ours[0] / all_[0] for ours, all_ in zip(early_stop, fixed_count, strict=True)]
    of_one = [ours[0] / single[0] for ours, single in zip(early_stop, one, strict=True)]
    return [
        f"Early stopping has smaller sets than the paper's rule on {smaller} of {len(problems)} "
        f"tasks, for {min(fewer):.0f} to {max(fewer):.0f} times fewer passes.",
        f"It costs between {min(larger) - 1:+.1%} and {max(larger) - 1:+.1%} of the size of sets "
        "that count 64 draws.",
        f"One draw (RCP1) needs one pass; its sets are {1 / max(of_one):.2f} to "
        f"{1 / min(of_one):.2f} times as large as those of early stopping.",
    ]


def _table(problem: dict[str, Any]) -> list[str]:
    titles = [f"{problem['radius']} = {attack}" for attack in problem["attacks"]]
    heading = ["method", "m", "m'", *titles, "passes"]
    lines = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
    for row in problem["rows"]:
        means = zip(row["size"], row["coverage"], strict=True)
        passes = [f"{each:.4g}" for each in row["passes"]]
        shown = passes[0] if len(set(passes)) == 1 else " / ".join(passes)
        cells = [f"{size:.2f} ({coverage:.1%})" for size, coverage in means]
        line = [row["method"], str(row["m"]), str(row["m_test"]), *cells, shown]
        lines.append(f"| {' | '.join(line)} |")
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
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder to write to"
    )
    arguments = parser.parse_args(argv)
    found = [
        problem
        for problem in problems()
        if (arguments.cache / f"{problem.name}.json").exists()
        and (arguments.only is None or problem.name in arguments.only)
    ]
    made = measured(arguments.cache, arguments.splits, found, arguments.workers)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("sizes.json", json.dumps(made, indent=1) + "\n"),
        ("TABLES.md", tables(made)),
        ("RESULTS.md", page(made)),
    ):
        (arguments.out / name).write_text(text, "utf-8")
    size_against_passes(made, arguments.out / "plots" / PLOT)


if __name__ == "__main__":
    main()
