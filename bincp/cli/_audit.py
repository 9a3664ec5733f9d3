"""``bincp audit``: what a plain predictor on noisy inputs keeps under attack, at every radius."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_FLOOR
from pathlib import Path
from typing import Any

import numpy as np

from bincp._utils.tables import table
from bincp._utils.validation import MAX_COUNT
from bincp.auditing import Audit, audit
from bincp.certificates import certify
from bincp.cli._arguments import (
    OUTPUTS,
    SPECS,
    UsageError,
    add_ball_argument,
    add_command,
    add_smoothing_argument,
    as_usage,
    integer,
    level,
    radius,
)
from bincp.cli._files import picture_file
from bincp.cli._report import Report, rounded


def add_audit(commands: Any) -> None:
    parser = add_command(
        commands,
        _audit,
        "audit",
        "what a conformal predictor that you have keeps under attack",
        description=(
            "Print the coverage that a plain predictor, which knows nothing of attacks, keeps\n"
            "against each ball if each of its inputs gets one noisy draw, in calibration and\n"
            "in prediction alike. Give -n and --alpha of a split conformal predictor, or by\n"
            "--covered how many sets of any other one held the label of noisy held-out\n"
            "points."
        ),
        example="  bincp audit --smoothing gaussian:sigma=0.25 --ball l2:r=0 \\\n"
        "      --radii 0 0.05 0.1 0.25 -n 1000 --alpha 0.1 --delta 0.05 --plot audit.png\n"
        "  bincp audit --smoothing sparse-flip:p_plus=0.01,p_minus=0.6 \\\n"
        "      --ball flips:additions=0,deletions=1 flips:additions=1,deletions=0 \\\n"
        "      --covered 931 1000 --delta 0.05",
        files=["It reads none; --plot writes a picture.", OUTPUTS],
        more=[SPECS],
    )
    add_smoothing_argument(parser)
    add_ball_argument(parser, several=True)
    parser.add_argument(
        "--radii",
        type=radius,
        nargs="+",
        metavar="R",
        help="radii to give to the one ball, in place of its own",
    )
    parser.add_argument(
        "-n", type=integer("n"), metavar="N", help="number of calibration points of the predictor"
    )
    parser.add_argument("--alpha", type=level("alpha"), help="its miscoverage level")
    parser.add_argument(
        "--covered",
        type=integer("covered", low=0, high=MAX_COUNT),
        nargs=2,
        metavar=("S", "N"),
        help="S of N sets of noisy held-out points held the true label; needs --delta",
    )
    parser.add_argument(
        "--delta",
        type=level("delta"),
        help="error probability of what is said given the calibration or the held-out points",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the coverage against the radius; the ending of FILE says the format",
    )


def _audit(arguments: argparse.Namespace) -> Report:
    _check_usage(arguments)
    target = None if arguments.plot is None else picture_file(arguments.plot)
    balls = _balls(arguments)
    with as_usage():
        for ball in balls:
            certify(arguments.smoothing, ball)
        found = audit(
            arguments.smoothing,
            lambda i: balls[int(i)],
            range(len(balls)),
            n=arguments.n,
            alpha=arguments.alpha,
            outcomes=_outcomes(arguments.covered),
            delta=arguments.delta,
        )
    if arguments.radii is not None:
        found = replace(found, radii=np.array(arguments.radii))
    columns = found.curves()
    data = {
        "smoothing": repr(arguments.smoothing),
        "n": found.n,
        "alpha": None if found.alpha is None else str(found.alpha),
        "rank": found.rank,
        "delta": None if found.delta is None else str(found.delta),
        "clean_coverage": found.clean_coverage,
        "balls": [_row(found, i, ball) for i, ball in enumerate(balls)],
        "plot": None,
    }
    rows = [
        [repr(ball), *(rounded(float(values[i]), ROUND_FLOOR) for values in columns.values())]
        for i, ball in enumerate(balls)
    ]
    text = (
        f"{arguments.smoothing!r}, one draw of each input in calibration and in prediction\n"
        f"coverage without an attack at least {rounded(found.clean_coverage, ROUND_FLOOR)}\n\n"
        f"{table(['coverage against', *map(_folded, columns)], rows, left=[0])}"
    )
    if target is not None:
        found.plot(target)
        data["plot"] = str(arguments.plot)
        text += f"\n\nwrote {arguments.plot}: the coverage against the radius"
    return Report(data, text)


def _check_usage(arguments: argparse.Namespace) -> None:
    conformal = arguments.n is not None and arguments.alpha is not None
    either = arguments.n is not None or arguments.alpha is not None
    if not (conformal if arguments.covered is None else not either):
        raise UsageError("-n and --alpha are needed, or --covered in place of both")
    if arguments.covered is not None:
        if arguments.delta is None:
            raise UsageError("--delta is needed with --covered")
        if not arguments.covered[0] <= arguments.covered[1] >= 1:
            raise UsageError(f"--covered must be S <= N with N >= 1, got {arguments.covered}")
    if arguments.radii is None:
        if arguments.plot is not None:
            raise UsageError("--plot needs --radii, to draw against")
        return
    r = getattr(arguments.ball[0], "r", None)
    if len(arguments.ball) > 1 or isinstance(r, bool) or not isinstance(r, int | float):
        raise UsageError(f"--radii needs one ball with a radius r, got {arguments.ball!r}")


def _balls(arguments: argparse.Namespace) -> list[Any]:
    if arguments.radii is None:
        return list(arguments.ball)
    one = arguments.ball[0]
    whole: Callable[[float], float] = int if isinstance(one.r, int) else float
    with as_usage():
        if any(whole(r) != r for r in arguments.radii):
            raise UsageError(f"--radii must be integers for {one!r}, got {arguments.radii}")
        return [replace(one, r=whole(r)) for r in arguments.radii]


def _outcomes(covered: list[int] | None) -> Any:
    if covered is None:
        return None
    return np.repeat([True, False], [covered[0], covered[1] - covered[0]])


def _row(found: Audit, i: int, ball: Any) -> dict[str, Any]:
    def at(values: Any) -> float | None:
        return None if values is None else float(values[i])

    return {
        "ball": repr(ball),
        "coverage": at(found.coverage),
        "iid_coverage": at(found.iid_coverage),
        "conditional_coverage": at(found.conditional_coverage),
    }


def _folded(heading: str) -> str:
    """Return a heading in lines of two or three words."""
    return heading.replace(", ", ",\n").replace(" over the", "\nover the")
