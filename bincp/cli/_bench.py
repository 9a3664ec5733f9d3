"""``bincp bench``: throughput of the certificates on this machine."""

import argparse
import platform
from typing import Any

import numpy as np
import scipy

from bincp._utils.tables import table
from bincp._utils.version import __version__
from bincp.cli._arguments import UsageError, add_command, integer, positive
from bincp.cli._bench_cases import CASES, Case
from bincp.cli._bench_measure import measure
from bincp.cli._report import Report


def add_bench(commands: Any) -> None:
    parser = add_command(
        commands,
        _bench,
        "bench",
        "certified bounds a second, beside NumPy and SciPy",
        "Measure how many certified lower bounds each built-in operator gives a second,\n"
        "for one probability a call and for an array of them a call. Beside it stands the\n"
        "NumPy or SciPy expression for the same bound, which does not round to the safe\n"
        "side.",
        "Example:\n  bincp bench --only Gaussian SparseFlip\n\n"
        "Each ratio is ours over the expression: above 1, ours is faster. Both take turns\n"
        "in one process, and the fastest turn counts.",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="SCHEME", help="smoothing schemes by class name (default all)"
    )
    parser.add_argument(
        "--size",
        type=integer("size"),
        default=10_000,
        metavar="N",
        help="probabilities in an array (default %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=positive("seconds"),
        default=0.2,
        metavar="S",
        help="how long each function is measured (default %(default)s)",
    )


def _bench(arguments: argparse.Namespace) -> Report:
    cases = _selected(arguments.only)
    rows = list(measure(cases, n_probabilities=arguments.size, seconds=arguments.seconds))
    machine = _machine()
    header = [
        "smoothing scheme",
        "ball",
        "one a call\nmillions/s",
        "ratio to\nbaseline",
        f"{arguments.size} a call\nmillions/s",
        "ratio to\nbaseline",
        "baseline",
    ]
    cells = [
        [
            row.smoothing.split("(")[0],
            row.ball.split("(")[0],
            f"{row.scalar / 1e6:.2f}",
            f"{row.scalar / row.scalar_baseline:.2f}",
            f"{row.batch / 1e6:.1f}",
            f"{row.batch / row.batch_baseline:.2f}",
            row.baseline,
        ]
        for row in rows
    ]
    heading = ", ".join(f"{name} {value}" for name, value in machine.items())
    return Report(
        {"machine": machine, "size": arguments.size, "rows": [row.as_dict() for row in rows]},
        f"{heading}\n\n{table(header, cells, left=(0, 1, 6))}",
    )


def _selected(names: list[str] | None) -> list[Case]:
    known = [type(case.smoothing).__name__ for case in CASES]
    for name in names or []:
        if name not in known:
            wanted = ", ".join(sorted(set(known)))
            raise UsageError(f"--only must name schemes among {wanted}, got {name!r}")
    return [case for case, name in zip(CASES, known, strict=True) if not names or name in names]


def _machine() -> dict[str, str]:
    """Return the versions and the processor, on which the figures depend."""
    return {
        "bincp": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
