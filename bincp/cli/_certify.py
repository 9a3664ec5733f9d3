"""``bincp certify``: worst and best case of a probability under attack."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from pathlib import Path
from typing import Any

from bincp import plots
from bincp._utils.levels import as_fraction, float_above, float_below
from bincp._utils.tables import table
from bincp.certificates import Certificate, certify, registered
from bincp.cli._arguments import (
    CERTIFICATES,
    OUTPUTS,
    SPECS,
    UsageError,
    add_command,
    add_spec_arguments,
    as_usage,
    certificate_name,
    check_spec,
    probability,
)
from bincp.cli._files import picture_file
from bincp.cli._grammar import usage
from bincp.cli._report import Report, rounded


def add_certify(commands: Any) -> None:
    parser = add_command(
        commands,
        _certify,
        "certify",
        "worst and best case of a probability under attack",
        description=(
            "Print how far an attack inside the ball can move the probability that a noisy\n"
            "score reaches a threshold. If it is p at the clean input, it is at least `lower`\n"
            "at the attacked one; if it is p at the attacked input, it was at most `upper` at\n"
            "the clean one. Lower bounds are rounded down and upper bounds up; JSON has every\n"
            "digit of them."
        ),
        example="  bincp certify --smoothing gaussian:sigma=0.25 --ball l2:r=0.12 --p 0.6 0.9\n"
        "  bincp certify --list",
        files=["It reads none; --plot and --plot-radius write pictures.", OUTPUTS],
        more=[SPECS, CERTIFICATES],
    )
    add_spec_arguments(parser)
    parser.add_argument("--p", type=probability, nargs="+", help="probabilities, in [0, 1]")
    parser.add_argument(
        "--list",
        action="store_true",
        help="only list the pairs of noise and ball that can be certified",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw both bounds against p; the ending of FILE says the format",
    )
    parser.add_argument(
        "--plot-radius",
        type=Path,
        metavar="FILE",
        help="draw the largest radius at which the lower bound is 1/2 against p",
    )


def _certify(arguments: argparse.Namespace) -> Report:
    return _list(arguments) if arguments.list else _bounds(arguments)


def _list(arguments: argparse.Namespace) -> Report:
    for option in ("smoothing", "ball", "certificate", "p", "plot", "plot_radius"):
        if getattr(arguments, option) is not None:
            flag = option.replace("_", "-")
            raise UsageError(f"--{flag} must be left out with --list")
    pairs = [
        {"smoothing": usage(scheme), "ball": usage(ball), "operator": origin}
        for scheme, ball, origin in registered()
    ]
    return Report(
        {"registered": pairs},
        table(list(pairs[0]), [list(pair.values()) for pair in pairs], left=(0, 1, 2)),
    )


def _bounds(arguments: argparse.Namespace) -> Report:
    wanted = ("p",) if arguments.certificate is not None else ("smoothing", "ball", "p")
    for option in wanted:
        if getattr(arguments, option) is None:
            raise UsageError(f"--{option} is needed, or --list")
    plot, plot_radius = _pictures(arguments)
    check_spec(arguments, arguments.ball)
    with as_usage():
        certificate = arguments.certificate or certify(arguments.smoothing, arguments.ball)
    bounds = [_bounds_at(certificate, written) for written in arguments.p]
    data = {
        "certificate": certificate.describe(),
        "bounds": bounds,
        "plot": plot and str(arguments.plot),
        "plot_radius": plot_radius and str(arguments.plot_radius),
    }
    text = _text(arguments, data)
    if plot is not None:
        plots.plot_bounds(certificate, plot)
        text += f"\n\nwrote {arguments.plot}: lower and upper against p"
    if plot_radius is not None:
        plots.plot_radius(arguments.smoothing, _ball_of(arguments.ball), plot_radius)
        text += f"\n\nwrote {arguments.plot_radius}: largest radius against p"
    return Report(data, text)


def _pictures(arguments: argparse.Namespace) -> list[Path | None]:
    """Return where the pictures go, or refuse before any work is done."""
    if arguments.plot_radius is not None and not isinstance(
        getattr(arguments.ball, "r", None), float
    ):
        raise UsageError(f"--plot-radius needs a ball with a real radius r, got {arguments.ball!r}")
    plot, plot_radius = (
        None if path is None else picture_file(path)
        for path in (arguments.plot, arguments.plot_radius)
    )
    if plot is not None and plot == plot_radius:
        raise UsageError(f"--plot and --plot-radius must be two files, got {arguments.plot} twice")
    return [plot, plot_radius]


def _bounds_at(certificate: Certificate, written: str) -> dict[str, float]:
    # Decimals lie between doubles: each bound is taken at the double on its safe side.
    p = as_fraction("p", written)
    lower, upper = certificate.lower(float_below(p)), certificate.upper(float_above(p))
    return {"p": float(p), "lower": lower, "upper": upper}


def _text(arguments: argparse.Namespace, data: dict[str, Any]) -> str:
    rows = [
        [written, rounded(bound["lower"], ROUND_FLOOR), rounded(bound["upper"], ROUND_CEILING)]
        for written, bound in zip(arguments.p, data["bounds"], strict=True)
    ]
    heading = certificate_name(arguments, arguments.ball)
    if "note" in data["certificate"]:
        heading += f"\n{data['certificate']['note']}"
    return f"{heading}\n\n{table(['p', 'lower', 'upper'], rows)}"


def _ball_of(ball: Any) -> Callable[[float], Any]:
    """Return the ball as a function of its radius."""
    return lambda r: replace(ball, r=r)
