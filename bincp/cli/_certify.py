"""``bincp certify``: worst and best case of a probability under attack."""

import argparse
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from bincp._levels import as_fraction, float_above, float_below
from bincp.cli._arguments import SPECS, add_command, add_spec_arguments, as_usage, probability
from bincp.cli._report import Report, rounded, table
from bincp.registry import certify


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
        "  bincp certify --smoothing gaussian:sigma=0.25 --ball l2:r=0.12 --p 0.6 0.9\n\n"
        f"{SPECS}\n\n"
        "Lower bounds are rounded down and upper bounds up; JSON has every digit of them.",
    )
    add_spec_arguments(parser)
    parser.add_argument(
        "--p",
        type=probability,
        nargs="+",
        required=True,
        help="probabilities, in [0, 1]",
    )


def _certify(arguments: argparse.Namespace) -> Report:
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
    return Report(
        {"certificate": description, "bounds": bounds},
        f"{heading}\n\n{table(['p', 'lower', 'upper'], rows)}",
    )
