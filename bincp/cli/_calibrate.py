"""``bincp calibrate``: the decision rule from sampled scores of the true labels."""

import argparse
from decimal import ROUND_FLOOR
from pathlib import Path
from typing import Any

from bincp.calibration import BinCP
from bincp.calibration._clopper_pearson import CORRECTIONS
from bincp.certificates import certify
from bincp.cli._arguments import (
    OUTPUTS,
    SPECS,
    UsageError,
    add_alpha,
    add_command,
    add_eta,
    add_key_argument,
    add_spec_arguments,
    as_usage,
    converter,
    integer,
    level,
)
from bincp.cli._files import output_file, read_array
from bincp.cli._report import Report, rounded


def add_calibrate(commands: Any) -> None:
    parser = add_command(
        commands,
        _calibrate,
        "calibrate",
        "find the decision rule from sampled scores of the true labels",
        "Find the decision rule (tau, k): a label is in the prediction set iff at least k\n"
        "of its scores reach tau. SCORES holds, for each of n calibration points, m scores\n"
        "of its true label under random noise: an array (n, m) of floats, larger meaning\n"
        "better agreement.",
        "Example:\n"
        "  bincp calibrate true_scores.npy --smoothing gaussian:sigma=0.25 \\\n"
        f"      --ball l2:r=0.12 --n-classes 10 --out rule.json\n\n{SPECS}\n\n{OUTPUTS}",
    )
    parser.add_argument("scores", type=Path, metavar="SCORES", help=".npy or .npz file")
    add_spec_arguments(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="RULE", help="JSON file to write"
    )
    add_alpha(parser)
    fixed = parser.add_mutually_exclusive_group()
    fixed.add_argument(
        "--p",
        type=level("p", closed_high=True),
        help="share of its m scores that must reach the threshold of a calibration point; tau is "
        "calibrated (default 0.6, or 0.6 to 0.95 by the certificate for mixture)",
    )
    fixed.add_argument(
        "--tau",
        type=converter(float),
        help="threshold, chosen without the calibration and test data; p is calibrated",
    )
    parser.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default="mixture",
        help='of the sampling error (default mixture); "none" has no finite-sample guarantee',
    )
    add_eta(parser)
    parser.add_argument(
        "--n-classes",
        type=integer("n_classes"),
        metavar="K",
        help="number of labels; needed by clopper-pearson",
    )
    parser.add_argument(
        "--n-test-samples",
        type=integer("n_test_samples"),
        metavar="M",
        help="scores of each label at prediction, m' (default: as many as in SCORES)",
    )
    add_key_argument(parser, "true_scores")


def _calibrate(arguments: argparse.Namespace) -> Report:
    if arguments.correction == "clopper-pearson" and arguments.n_classes is None:
        raise UsageError("--n-classes is needed with --correction clopper-pearson")
    with as_usage():
        rule = BinCP(
            certify(arguments.smoothing, arguments.ball),
            alpha=arguments.alpha,
            p=arguments.p,
            tau=arguments.tau,
            correction=arguments.correction,
            eta=arguments.eta,
        )
    target = output_file(arguments.out, [arguments.scores])
    rule.calibrate(
        read_array(arguments.scores, arguments.key, "true_scores"),
        n_classes=arguments.n_classes,
        n_test_samples=arguments.n_test_samples,
    )
    rule.save(target)
    return Report(
        {**_rule_data(rule), "out": str(arguments.out)},
        f"{arguments.smoothing!r} against {arguments.ball!r}\n"
        f"{_rule_text(rule)}\n"
        f"wrote {arguments.out}",
    )


def _rule_data(rule: BinCP) -> dict[str, Any]:
    return {
        "certificate": rule.certificate_description,
        "alpha": str(rule.alpha),
        "correction": rule.correction,
        "eta": str(rule.eta) if rule.correction == "clopper-pearson" else None,
        "tau": rule.tau_,
        "min_count": rule.min_count_,
        "rank": rule.rank_,
        "success_rank": rule.success_rank_,
        "n_calibration": rule.n_calibration_,
        "n_samples": rule.n_samples_,
        "n_test_samples": rule.n_test_samples_,
        "n_classes": rule.n_classes_,
        "dtype": rule.dtype_,
        "p": rule.p_,
        "p_lower": rule.p_lower_,
        "certified_p": rule.certified_p_,
    }


def _rule_text(rule: BinCP) -> str:
    chain = []
    if rule.p_ is not None:
        chain.append(f"p = {rule.p_:g}")
    if rule.p_lower_ is not None:
        chain.append(f"confidence bound {rounded(rule.p_lower_, ROUND_FLOOR, 4)}")
    if rule.certified_p_ is not None:
        chain.append(f"certified {rounded(rule.certified_p_, ROUND_FLOOR, 4)}")
    return (
        f"calibrated on n = {rule.n_calibration_} points with m = {rule.n_samples_} scores each, "
        f"{rule.dtype_}\n"
        f"a label is in the set iff at least k = {rule.min_count_} of its m' = "
        f"{rule.n_test_samples_} scores reach tau = {rule.tau_!r}\n"
        f"({', '.join(chain) or 'by count weights, for m > m'})"
    )
