"""``bincp bench``: how fast the kernels are on this machine, beside what they replace."""

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from bincp._utils.files import replace_file
from bincp._utils.progress import progress_bar
from bincp._utils.tables import table
from bincp._utils.version import __version__
from bincp.cli._arguments import (
    UsageError,
    add_command,
    add_progress,
    integer,
    positive,
)
from bincp.cli._bench_bounds import bound_figures
from bincp.cli._bench_cases import CASES, COUNT_CASES, NOISE_CASES
from bincp.cli._bench_counting import count_figure
from bincp.cli._bench_noise import N_DRAWS, device_name, noise_figure, places
from bincp.cli._bench_turns import Figure
from bincp.cli._files import output_file
from bincp.cli._report import Report

Parts = dict[str, list[Figure]]

_ONE, _MANY, _NOISE, _COUNTING = "bounds one by one", "bounds of an array", "noise on ", "counting"
_PACKAGES = ("numpy", "scipy", "torch", "triton")


def add_bench(commands: Any) -> None:
    parser = add_command(
        commands,
        _bench,
        "bench",
        "speed of bounds, noise and counting, beside what they replace",
        description="Measure how fast this machine is at\n"
        "- certified lower bounds of each built-in operator, for one probability a call\n"
        "  and for an array, beside the NumPy or SciPy expression, which does not round\n"
        "  to the safe side;\n"
        "- noisy copies of inputs, on the CPU and on each GPU that torch sees, beside\n"
        "  Gaussian noise by the Box-Muller transform there;\n"
        "- counting of scores, beside reading the same memory.",
        example="  bincp bench --only Gaussian SparseFlip\n  bincp bench --json figures.json",
        files=["It reads none; --json FILE writes the figures."],
        more=[
            "Each ratio is the speed of ours over that of the baseline: above 1, ours is\n"
            "faster. Both take turns in one process, and the fastest turn counts."
        ],
        json_file=True,
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help='smoothing schemes by class name, or "counting" (default all)',
    )
    parser.add_argument(
        "--size",
        type=integer("size"),
        default=10_000,
        metavar="N",
        help="probabilities in an array (default %(default)s)",
    )
    parser.add_argument(
        "--inputs",
        type=integer("inputs"),
        default=64,
        metavar="N",
        help=f"inputs of 784 elements, each of which gets {N_DRAWS} noisy copies "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--bytes",
        type=integer("bytes"),
        default=2**27,
        metavar="N",
        help="bytes of scores to count, more than the caches hold (default %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=positive("seconds"),
        default=0.2,
        metavar="S",
        help="how long each function is measured (default %(default)s)",
    )

    add_progress(parser)


def _bench(arguments: argparse.Namespace) -> Report:
    only = _checked(arguments.only)
    target = output_file(arguments.json, []) if isinstance(arguments.json, Path) else None
    parts = _measured(only, arguments)
    data = {
        "versions": _versions(),
        "machine": _machine(),
        "sizes": {name: getattr(arguments, name) for name in ("size", "inputs", "bytes")},
        "seconds": arguments.seconds,
        "parts": {part: [one.as_dict() for one in found] for part, found in parts.items()},
    }
    text = _text(data, parts, arguments.size)
    if target is not None:
        content = json.dumps(data, indent=1) + "\n"
        replace_file(target, lambda stream: stream.write(content.encode()))
        data["out"] = str(arguments.json)
        text += f"\n\nwrote {arguments.json}"
    return Report(data, text)


def _checked(names: Sequence[str] | None) -> set[str]:
    """Return the names of what to measure: classes of schemes, and "counting"."""
    known = {type(case.smoothing).__name__ for case in CASES} | {_COUNTING}
    for name in names or []:
        if name not in known:
            wanted = ", ".join(sorted(known))
            raise UsageError(f"--only must have names among {wanted}, got {name!r}")
    return set(names) if names else known


def _measured(only: set[str], arguments: argparse.Namespace) -> Parts:
    """Measure all that is wanted, under one bar."""
    seconds = arguments.seconds
    p = np.random.default_rng(0).random(arguments.size)
    bounds = [case for case in CASES if type(case.smoothing).__name__ in only]
    noise = [case for case in NOISE_CASES if type(case.smoothing).__name__ in only]
    where = places() if noise else []
    counts = COUNT_CASES if _COUNTING in only else ()
    n_figures = len(bounds) + len(where) * len(noise) + len(counts)
    with progress_bar(arguments.progress, n_figures, "bench", "kernel") as bar:

        def each(cases: Iterable[Any], figure: Callable[[Any], Any]) -> list[Any]:
            found = []
            for case in cases:
                found.append(figure(case))
                bar.update()
            return found

        parts: Parts = {}
        if bounds:
            pairs = each(bounds, lambda case: bound_figures(case, p, seconds))
            parts[_ONE], parts[_MANY] = (list(column) for column in zip(*pairs, strict=True))
        for place in where:
            drawn = each(noise, partial(_noise_figure, place, arguments.inputs, seconds))
            parts[_NOISE + device_name(place)] = [one for one in drawn if one is not None]
        if counts:
            parts[_COUNTING] = each(
                counts, lambda case: count_figure(case, arguments.bytes, seconds)
            )
    return parts


def _noise_figure(place: Any, n_inputs: int, seconds: float, case: Any) -> Figure | None:
    return noise_figure(case, place, n_inputs, seconds)


def _versions() -> dict[str, str]:
    """Return the versions on which the figures depend."""
    versions = {"bincp": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _machine() -> dict[str, Any]:
    """Return what the figures depend on; nothing that names the machine or its user."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _text(data: dict[str, Any], parts: Parts, size: int) -> str:
    machine = data["machine"]
    heading = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    tables = [f"{heading}\n{machine['processor']}, {machine['architecture']}"]
    if _ONE in parts:
        tables.append(_bounds_table(parts[_ONE], parts[_MANY], size))
    for part, found in parts.items():
        if part.startswith(_NOISE):
            tables.append(_table(part, found, "millions/s", 1e6, "Box-Muller"))
    if _COUNTING in parts:
        tables.append(_table(_COUNTING, parts[_COUNTING], "GB/s", 1e9, "reading"))
    return "\n\n".join(tables)


def _bounds_table(single: list[Figure], many: list[Figure], size: int) -> str:
    header = [
        "bounds",
        "one a call\nmillions/s",
        "ratio to\nbaseline",
        f"{size} a call\nmillions/s",
        "ratio to\nbaseline",
        "baseline",
    ]
    rows = [
        [
            one.kernel,
            f"{one.rate / 1e6:.2f}",
            f"{one.ratio:.3g}",
            f"{all_.rate / 1e6:.1f}",
            f"{all_.ratio:.3g}",
            one.baseline,
        ]
        for one, all_ in zip(single, many, strict=True)
    ]
    return table(header, rows, left=(0, 5))


def _table(part: str, figures: list[Figure], unit: str, size: float, baseline: str) -> str:
    rows = [[one.kernel, f"{one.rate / size:.1f}", f"{one.ratio:.3g}"] for one in figures]
    return table([part, unit, f"ratio to\n{baseline}"], rows, left=(0,))
