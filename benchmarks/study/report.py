"""Compare corrections on the cached scores: coverage, set size and forward passes.

    python -m benchmarks.study.report --cache DIR [--splits 20] [--out benchmarks/study/RESULTS.md]

`benchmarks.study.scores` makes the cache. For each network the inputs are split into n calibration
and the other test inputs, and every rule is calibrated and applied on the same splits. Scores are
those of clean inputs: sets that are robust are larger there, and never smaller under attack than
the certificate allows. The standard error of a mean set size over the splits is about 1%.
"""

import argparse
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import bincp
from benchmarks.study import scores
from bincp import balls, smoothing

N_CALIBRATION = 200
ALPHA = 0.1

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Method:
    """A row of the report: how to calibrate, and with how many samples."""

    name: str
    m: int
    m_test: int
    options: dict[str, Any]
    sequential: bool = False


def mixture(m: int, m_test: int, *, sequential: bool = False) -> Method:
    """Return the mixture correction with m and m' samples."""
    name = "mixture, sequential" if sequential else "mixture"
    return Method(name, m, m_test, {"correction": "mixture"}, sequential)


def paper(m: int) -> Method:
    """Return the paper's correction."""
    return Method("Clopper-Pearson, paper", m, m, {"correction": "clopper-pearson"})


METHODS = (
    paper(16),
    paper(64),
    paper(256),
    Method("Clopper-Pearson, ghost", 256, 256, {"correction": "clopper-pearson", "union": "ghost"}),
    mixture(1, 1),
    mixture(4, 4),
    mixture(8, 8),
    mixture(16, 16),
    mixture(32, 32),
    mixture(64, 64),
    mixture(256, 256),
    mixture(512, 8),
    mixture(512, 16),
    mixture(16, 16, sequential=True),
    mixture(32, 32, sequential=True),
    mixture(64, 64, sequential=True),
    Method("none (no guarantee)", 1024, 1024, {"correction": "none", "p": "0.7"}),
)

SETTINGS = (
    (
        "cifar10-0.25",
        [(r, smoothing.Gaussian(0.25), balls.L2(0.25 * r)) for r in (0.25, 0.5, 1, 2)],
    ),
    ("cifar10-0.5", [(r, smoothing.Gaussian(0.5), balls.L2(0.5 * r)) for r in (0.25, 0.5, 1, 2)]),
    ("mnist-0.5", [(r, smoothing.Gaussian(0.5), balls.L2(0.5 * r)) for r in (0.25, 0.5, 1, 2)]),
    (
        "cora-ml",
        [
            (f"{a} added, {d} deleted", smoothing.SparseFlip(0.01, 0.6), balls.Flips(a, d))
            for a, d in ((0, 1), (0, 3), (1, 0), (1, 1))
        ],
    ),
)


def evaluate(
    method: Method, certificate: bincp.Certificate, data: tuple[Array, Array, Array], n_splits: int
) -> tuple[float, float, float]:
    """Return mean set size, coverage and forward passes of a test input over the splits."""
    calibration, test, labels = data
    results = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(labels))
        known, rest = order[:N_CALIBRATION], order[N_CALIBRATION:]
        rule = bincp.BinCP(certificate, alpha=ALPHA, **method.options)
        with warnings.catch_warnings():  # the table shows where every label is in every set
            warnings.simplefilter("ignore", bincp.TrivialSetWarning)
            rule.calibrate(
                np.ascontiguousarray(calibration[known, : method.m]),
                n_classes=test.shape[1],
                n_test_samples=method.m_test,
            )
        drawn = np.ascontiguousarray(test[rest, :, : method.m_test])
        sets, passes = _predict(rule, drawn, sequential=method.sequential)
        results.append(
            (
                bincp.metrics.average_set_size(sets),
                bincp.metrics.coverage(sets, labels[rest]),
                passes,
            )
        )
    size, coverage, passes = np.mean(results, axis=0)
    return float(size), float(coverage), float(passes)


def _predict(rule: bincp.BinCP, drawn: Array, *, sequential: bool) -> tuple[Array, float]:
    if not sequential:
        return rule.predict_set(drawn), float(drawn.shape[2])
    tracker = rule.sequential_rule().start(drawn.shape[:2])
    tracker.update(drawn >= drawn.dtype.type(rule.tau_))
    return tracker.accepted, float(tracker.exits.max(axis=1).mean())


def report(cache: Path, n_splits: int) -> str:
    """Return the tables as Markdown."""
    lines = [
        "# Set sizes of the corrections",
        "",
        f"n = {N_CALIBRATION}, nominal coverage {1 - ALPHA:.0%}, {n_splits} splits, clean inputs. "
        "Each cell: average set size (coverage). Made by",
        "`python -m benchmarks.study.report --cache DIR`.",
    ]
    for name, attacks in SETTINGS:
        data = scores.load(cache, name)
        lines += ["", f"## {name}", "", _network(cache, name), ""]
        lines += _table(attacks, data, n_splits)
    lines += ["", *_shares(cache, n_splits)]
    return "\n".join(lines) + "\n"


def _table(
    attacks: list[tuple[Any, Any, Any]], data: tuple[Array, Array, Array], n_splits: int
) -> list[str]:
    title = "radius" if isinstance(attacks[0][0], str) else "r / sigma ="
    heading = ["method", "m", "m'", *(f"{title} {label}" for label, _, _ in attacks), "passes"]
    lines = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
    for method in METHODS:
        if method.m > data[0].shape[1] or method.m_test > data[1].shape[2]:
            continue
        cells, passes = [], []
        for _, scheme, ball in attacks:
            certificate = bincp.certify(scheme, ball)
            size, coverage, drawn = evaluate(method, certificate, data, n_splits)
            cells.append(f"{size:.2f} ({coverage:.1%})")
            passes.append(f"{drawn:.3g}")
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


def _shares(cache: Path, n_splits: int) -> list[str]:
    """Return a table of p, which the mixture correction fixes at 0.6, 0.7 or 0.8 by default."""
    shares = ("0.5", "0.6", "0.7", "0.8", "0.9")
    lines = [
        "## The share p",
        "",
        "Average set size of the mixture correction with p fixed, and with its default: 0.6 up to "
        "r / sigma = 0.25, 0.8 from 1 on, 0.7 between.",
        "",
        f"| network | m = m' | r / sigma | {' | '.join(shares)} | default |",
        "|---" * (len(shares) + 4) + "|",
    ]
    for name, attacks in SETTINGS[:3]:
        data = scores.load(cache, name)
        for m in (16, 64):
            for label, scheme, ball in attacks:
                certificate = bincp.certify(scheme, ball)
                sizes = [
                    evaluate(Method("", m, m, options), certificate, data, n_splits)[0]
                    for options in (*({"p": share} for share in shares), {})
                ]
                cells = " | ".join(f"{size:.2f}" for size in sizes)
                lines.append(f"| {name} | {m} | {label} | {cells} |")
    return lines


def main(argv: list[str] | None = None) -> None:
    """Run the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder of cached scores")
    parser.add_argument("--splits", type=int, default=20, help="calibration splits")
    parser.add_argument("--out", type=Path, help="Markdown file to write; standard output if not")
    arguments = parser.parse_args(argv)
    text = report(arguments.cache, arguments.splits)
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
