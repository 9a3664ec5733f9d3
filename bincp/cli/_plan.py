"""``bincp plan``: the least count that a calibration will find, before any model call."""

import argparse
from pathlib import Path
from typing import Any

from bincp._utils.validation import MAX_COUNT
from bincp.calibration import Plan, plan
from bincp.certificates import certify
from bincp.cli._arguments import (
    OUTPUTS,
    SPECS,
    add_alpha,
    add_command,
    add_eta,
    add_spec_arguments,
    as_usage,
    integer,
    level,
)
from bincp.cli._files import picture_file
from bincp.cli._report import Report


def add_plan(commands: Any) -> None:
    parser = add_command(
        commands,
        _plan,
        "plan",
        "the least count that a calibration will find, before any model call",
        "Print the least count k of m' scores that a calibration will ask of a label, for\n"
        "each correction, with the number of draws that a prediction will take. It\n"
        "depends on no scores.",
        "Example:\n"
        "  bincp plan --smoothing gaussian:sigma=0.25 --ball l2:r=0.25 -n 200 -m 64 \\\n"
        f"      --n-classes 10 --loss 0.05 --plot plan.png\n\n{SPECS}\n\n{OUTPUTS}",
    )
    add_spec_arguments(parser)
    parser.add_argument(
        "-n", type=integer("n"), required=True, metavar="N", help="number of calibration points"
    )
    parser.add_argument(
        "-m",
        type=integer("m", high=MAX_COUNT),
        required=True,
        metavar="M",
        help="scores of each of them",
    )
    parser.add_argument(
        "--n-test-samples",
        type=integer("n_test_samples", high=MAX_COUNT),
        metavar="M",
        help="scores of each label at prediction, m' (default: m)",
    )
    add_alpha(parser)
    parser.add_argument(
        "--p",
        type=level("p", closed_high=True),
        help="share of its m scores that must reach the threshold of a calibration point "
        "(default: chosen by n, m, m', alpha and the certificate)",
    )
    parser.add_argument(
        "--n-classes",
        type=integer("n_classes"),
        metavar="K",
        help="number of labels; adds the correction of the paper",
    )
    add_eta(parser)
    parser.add_argument(
        "--loss",
        type=level("loss"),
        help="also print the least m' = m with which k / m' is no more than a share LOSS below "
        "what infinitely many samples allow",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw k / m' against m' = m; the ending of FILE says the format",
    )


def _plan(arguments: argparse.Namespace) -> Report:
    with as_usage():
        made = plan(
            certify(arguments.smoothing, arguments.ball),
            n=arguments.n,
            m=arguments.m,
            n_test_samples=arguments.n_test_samples,
            alpha=arguments.alpha,
            p=arguments.p,
            n_classes=arguments.n_classes,
            eta=arguments.eta,
        )
    data = _plan_data(made)
    text = f"{arguments.smoothing!r} against {arguments.ball!r}\n{made}"
    target = None if arguments.plot is None else picture_file(arguments.plot)
    if arguments.loss is not None:
        samples = made.smallest_samples(arguments.loss)
        data |= {"loss": arguments.loss, "smallest_samples": samples}
        text += f"\nleast m' = m for a loss of {arguments.loss}: {samples or 'none up to 10000'}"
    if target is not None:
        made.plot(target)
        data["plot"] = str(arguments.plot)
        text += f"\nwrote {arguments.plot}: the share k / m' against m' = m"
    return Report(data, text)


def _plan_data(made: Plan) -> dict[str, Any]:
    return {
        "certificate": made.certificate.describe(),
        "n": made.n,
        "n_samples": made.m,
        "n_test_samples": made.n_test_samples,
        "n_classes": made.n_classes,
        "alpha": str(made.alpha),
        "eta": str(made.eta),
        "p": None if made.p is None else str(made.p),
        "recommended_p": str(made.recommended_p),
        "success_rank": made.success_rank,
        "rank": made.rank,
        "min_count": made.min_count,
        "share": made.share,
        "certified_p": made.certified_p,
        "limit": made.limit,
        "ghost_count": made.ghost_count,
        "paper_count": made.paper_count,
        "trivial_cause": made.trivial_cause,
        "curtailed_draws": made.curtailed_draws,
        "sequential_draws": made.sequential_draws,
        "loss": None,
        "smallest_samples": None,
        "plot": None,
    }
