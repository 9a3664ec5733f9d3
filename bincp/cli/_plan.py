"""``bincp plan``: what a calibration will find, before any model call."""

import argparse
import itertools
from pathlib import Path
from typing import Any

from bincp._utils.progress import progress_bar
from bincp._utils.tables import table
from bincp._utils.validation import MAX_COUNT
from bincp.calibration import Plan, plan
from bincp.certificates import certify
from bincp.cli._arguments import (
    CERTIFICATES,
    DEPARTURES,
    OUTPUTS,
    SPECS,
    UsageError,
    add_alpha,
    add_command,
    add_correction,
    add_departures,
    add_guarantee,
    add_passes,
    add_progress,
    add_spec_arguments,
    as_usage,
    bound_options,
    certificate_name,
    check_spec,
    integer,
    level,
)
from bincp.cli._files import open_run, picture_file
from bincp.cli._report import Report
from bincp.cli._rules import departures_data


def add_plan(commands: Any) -> None:
    parser = add_command(
        commands,
        _plan,
        "plan",
        "choose n, m and alpha: what a calibration will find",
        description=(
            "Choose how many points and samples to pay for. Print the rule that a calibration\n"
            "will find, all but its threshold tau, with the share of wrong labels in its sets\n"
            "and the forward passes of an input. These two are means in a reference\n"
            "population, which orders rules: those of real data differ. It depends on no\n"
            "scores. Several balls, levels or numbers make one table. With --n-classes the\n"
            "rule of the paper stands beside each."
        ),
        example="  bincp plan --smoothing gaussian:sigma=0.25 --ball l2:r=0.25 -n 200 -m 64 \\\n"
        "      --n-classes 10 --plot plan.png\n"
        "  bincp plan --smoothing gaussian:sigma=0.25 --ball l2:r=0.12 l2:r=0.25 \\\n"
        "      -n 50 200 -m 4 16 64 --alpha 0.1 0.05 --passes auto",
        files=[
            "RUN, the folder of a calibration run of `bincp sample`, gives N, M and K; its "
            "scores are not read.",
            "--plot writes a picture.",
            OUTPUTS,
        ],
        more=[SPECS, CERTIFICATES],
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", metavar="RUN", help="calibration run, in place of -n and -m"
    )
    add_spec_arguments(parser, several=True)
    parser.add_argument(
        "-n", type=integer("n"), nargs="+", metavar="N", help="number of calibration points"
    )
    parser.add_argument(
        "-m",
        type=integer("m", high=MAX_COUNT),
        nargs="+",
        metavar="M",
        help="scores of each of them",
    )
    parser.add_argument(
        "--n-test-samples",
        type=integer("n_test_samples", high=MAX_COUNT),
        metavar="M",
        help="scores of each label at prediction at most, m' (default: m)",
    )
    add_alpha(parser, several=True)
    parser.add_argument(
        "--p",
        type=level("p", closed_high=True),
        help="share of its m scores that must reach the threshold of a calibration point "
        "(default: chosen by n, m, m', alpha and the certificate)",
    )
    add_correction(parser)
    add_guarantee(parser)
    add_passes(parser)
    add_departures(parser)
    add_progress(parser)
    parser.add_argument(
        "--n-classes",
        type=integer("n_classes"),
        metavar="K",
        help="number of labels; adds the rule of the paper, and is needed by clopper-pearson",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the share of wrong labels against m' = m; the ending of FILE says the format",
    )


def _plan(arguments: argparse.Namespace) -> Report:
    _read_sizes(arguments)
    balls = arguments.ball or [None]
    cases = list(itertools.product(balls, arguments.alpha, arguments.n, arguments.m))
    if arguments.plot is not None and len(cases) > 1:
        raise UsageError(
            f"--plot draws one ball and level, with one N and M, got {len(cases)} plans"
        )
    target = None if arguments.plot is None else picture_file(arguments.plot)
    plans = []
    with progress_bar(arguments.progress, len(cases), "plan", "plan") as bar:
        for case in cases:
            plans.append(_made(arguments, *case))
            bar.update()
    data: dict[str, Any] = {"plans": [_plan_data(made) for made in plans], "plot": None}
    if len(plans) == 1:
        text = f"{certificate_name(arguments, balls[0])}\n{plans[0]}"
    else:
        text = _sweep(arguments, [ball for ball, *_ in cases], plans)
    if target is not None:
        plans[0].plot(target)
        data["plot"] = str(arguments.plot)
        text += f"\nwrote {arguments.plot}: the share of wrong labels against m' = m"
    return Report(data, text)


def _read_sizes(arguments: argparse.Namespace) -> None:
    """Take n, m and K from the run, if there is one."""
    if arguments.folder is None:
        missing = [f"-{name}" for name in ("n", "m") if getattr(arguments, name) is None]
        if missing:
            raise UsageError(f"the following arguments are required: {', '.join(missing)}; or RUN")
        return
    given = {"-n": arguments.n, "-m": arguments.m, "--n-classes": arguments.n_classes}
    stored = open_run(arguments.folder, given)
    certificate = arguments.certificate or certify(arguments.smoothing, arguments.ball[0])
    stored.check_calibrates(certificate.describe())
    arguments.n, arguments.m = [stored.n_inputs], [stored.n_samples]
    arguments.n_classes = stored.n_classes


def _made(arguments: argparse.Namespace, ball: object, alpha: str, n: int, m: int) -> Plan:
    check_spec(arguments, ball)
    with as_usage():
        return plan(
            arguments.certificate or certify(arguments.smoothing, ball),
            n=n,
            m=m,
            n_test_samples=arguments.n_test_samples,
            n_classes=arguments.n_classes,
            alpha=alpha,
            p=arguments.p,
            correction=arguments.correction,
            guarantee=arguments.guarantee,
            passes=arguments.passes,
            **bound_options(arguments),
            **{name: getattr(arguments, name) for name in DEPARTURES},
        )


def _sweep(arguments: argparse.Namespace, balls: list[Any], plans: list[Plan]) -> str:
    header = ["ball", "alpha", "n", "m", "m'", "k", "wrong\nlabels", "passes"]
    if arguments.n_classes is not None:
        header += ["k of the\npaper", "wrong\nlabels"]
    rows = []
    for ball, made in zip(balls, plans, strict=True):
        numbers = (made.settings.alpha, made.n, made.m, made.n_test_samples)
        row = [_named(ball), *map(str, numbers)]
        row += [*_numbers(made), f"{made.expected_passes:.4g}"]
        if arguments.n_classes is not None:
            row += ["-", "-"] if made.paper is None else _numbers(made.paper)
        rows.append(row)
    causes = [
        f"k = 0 for {_named(ball)}, alpha = {made.settings.alpha}, n = {made.n}, m = {made.m}: "
        f"{made.trivial_cause}"
        for ball, made in zip(balls, plans, strict=True)
        if made.trivial_cause is not None
    ]
    noise = arguments.certificate or arguments.smoothing
    return "\n".join(
        [
            f"{plans[0].name} for {noise!r}",
            table(header, rows, left=[0]),
            "wrong labels in the sets and passes of an input: means in the reference population",
            *causes,
        ]
    )


def _named(ball: object) -> str:
    return "as certified" if ball is None else repr(ball)


def _numbers(made: Plan) -> list[str]:
    return [str(made.min_count), f"{made.wrong_labels:.4f}"]


def _plan_data(made: Plan) -> dict[str, Any]:
    settings = made.settings
    bounded = settings.correction == "clopper-pearson"
    return {
        "certificate": made.certificate.describe(),
        "n": made.n,
        "n_samples": made.m,
        "n_test_samples": made.n_test_samples,
        "n_classes": made.n_classes,
        "alpha": str(settings.alpha),
        "correction": settings.correction,
        "union": settings.union if bounded else None,
        "eta": str(settings.eta) if bounded else None,
        "guarantee": "marginal" if settings.delta is None else "training-conditional",
        "delta": None if settings.delta is None else str(settings.delta),
        "p": None if settings.p is None else str(settings.p),
        "passes": None if settings.passes is None else str(settings.passes),
        **departures_data(settings),
        "success_rank": made.success_rank,
        "rank": made.rank,
        "min_count": made.min_count,
        "share": made.share,
        "certified_p": made.certified_p,
        "stops_early": made.boundaries is not None,
        "wrong_labels": made.wrong_labels,
        "expected_passes": made.expected_passes,
        "worst_draws": made.worst_draws,
        "trivial_cause": made.trivial_cause,
        "paper": None if made.paper is None else _plan_data(made.paper),
    }
