"""``bincp certify``: worst and best case of a probability under attack."""

import argparse
from decimal import ROUND_CEILING, ROUND_FLOOR
from pathlib import Path
from typing import Any

from bincp._levels import as_fraction, float_above, float_below
from bincp.cli._arguments import (
    OUTPUTS,
    SPECS,
    UsageError,
    add_command,
    add_spec_arguments,
    as_usage,
    probability,
    usage,
)
from bincp.cli._files import picture_file
from bincp.cli._report import Report, rounded, table
from bincp.plots import plot_bounds
from bincp.registry import certify, registered


def add_certify(commands: Any) -> None:
    parser = add_command(
        commands,
        _certify,
        "certify",
        "worst and best case of a probability under attack",
        "Print how far an attack inside the ball can move the probability that a noisy\n"
        "score reaches a threshold. If it is p at the clean input, it is at least `lower`\n"
        "at the attacked one; if it is p at the attacked input, it was at most `upper` at\n"
        "the clean one.",
        "Example:\n"
        "  bincp certify --smoothing gaussian:sigma=0.25 --ball l2:r=0.12 --p 0.6 0.9\n"
        "  bincp certify --list\n\n"
        f"{SPECS}\n\n"
        "Lower bounds are rounded down and upper bounds up; JSON has every digit of them.\n"
        f"{OUTPUTS}",
    )
    add_spec_arguments(parser, required=False)
    parser.add_argument("--p", type=probability, nargs="+", help="probabilities, in [0, 1]")
    parser.add_argument(
        "--list", action="store_true", help="list what can be certified, and nothing else"
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw both bounds against p; the ending of FILE says the format",
    )


def _certify(arguments: argparse.Namespace) -> Report:
    return _list(arguments) if arguments.list else _bounds(arguments)


def _list(arguments: argparse.Namespace) -> Report:
    for option in ("smoothing", "ball", "p", "plot"):
        if getattr(arguments, option) is not None:
            raise UsageError(f"--{option} must be left out with --list")
    pairs = [
        {"smoothing": usage(scheme), "ball": usage(ball), "operator": origin}
        for scheme, ball, origin in registered()
    ]
    return Report(
        {"registered": pairs},
        table(list(pairs[0]), [list(pair.values()) for pair in pairs], left=(0, 1, 2)),
    )


def _bounds(arguments: argparse.Namespace) -> Report:
    for option in ("smoothing", "ball", "p"):
        if getattr(arguments, option) is None:
            raise UsageError(f"--{option} is needed, or --list")
    target = None if arguments.plot is None else picture_file(arguments.plot)
    with as_usage():
        certificate = certify(arguments.smoothing, arguments.ball)
    bounds = []
    for written in arguments.p:
        # Decimals lie between doubles: each bound is taken at the double on its safe side.
        p = as_fraction("p", written)
        lower, upper = certificate.lower(float_below(p)), certificate.upper(float_above(p))
        bounds.append({"p": float(p), "lower": lower, "upper": upper})
    description = certificate.describe()
    rows = [
        [written, rounded(bound["lower"], ROUND_FLOOR), rounded(bound["upper"], ROUND_CEILING)]
        for written, bound in zip(arguments.p, bounds, strict=True)
    ]
    heading = f"{arguments.smoothing!r} against {arguments.ball!r}"
    if "note" in description:
        heading += f"\n{description['note']}"
    text = f"{heading}\n\n{table(['p', 'lower', 'upper'], rows)}"
    if target is not None:
        plot_bounds(certificate, target)
        text += f"\n\nwrote {arguments.plot}: lower and upper against p"
    plot = None if target is None else str(arguments.plot)
    return Report({"certificate": description, "bounds": bounds, "plot": plot}, text)
