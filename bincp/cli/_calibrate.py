"""``bincp calibrate``: the decision rule from sampled scores of the true labels."""

import argparse
from decimal import ROUND_FLOOR
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import as_counts
from bincp._utils.levels import check_level
from bincp.calibration import BinCP
from bincp.calibration._clopper_pearson import CORRECTIONS, UNIONS
from bincp.certificates import certify
from bincp.cli._arguments import (
    OUTPUTS,
    SPECS,
    UsageError,
    add_alpha,
    add_command,
    add_eta,
    add_key_argument,
    add_passes,
    add_spec_arguments,
    as_usage,
    converter,
    integer,
    level,
    threshold,
)
from bincp.cli._files import has_array, output_file, read_array
from bincp.cli._report import Report, rounded


def add_calibrate(commands: Any) -> None:
    parser = add_command(
        commands,
        _calibrate,
        "calibrate",
        "find the decision rule from sampled scores of the true labels",
        "Find the decision rule (tau, k): a label is in the prediction set iff at least k\n"
        "of its scores reach tau. SCORES holds, for each of n calibration points, m scores\n"
        "of its true label under random noise: an array (n, m) of floats, where larger\n"
        "means better agreement. Or it holds the scores of all K labels, (n, K, m), and\n"
        "the true labels come from --labels, or from `labels` in the same .npz file.",
        "Example:\n"
        "  bincp calibrate true_scores.npy --smoothing gaussian:sigma=0.25 \\\n"
        "      --ball l2:r=0.12 --n-classes 10 --out rule.json\n"
        "  bincp calibrate scores.npy --labels labels.npy \\\n"
        "      --smoothing gaussian:sigma=0.25 --ball l2:r=0.12 --out rule.json\n\n"
        f"{SPECS}\n\n{OUTPUTS}",
    )
    parser.add_argument("scores", type=Path, metavar="SCORES", help=".npy or .npz file")
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="true labels (n,), integers in [0, K), where SCORES is (n, K, m); a .npz file holds "
        "`labels` or one array",
    )
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
        type=threshold("tau"),
        help="threshold, chosen without the calibration and test data; p is calibrated",
    )
    parser.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default="mixture",
        help="correction for finitely many samples (default mixture); none has no finite-sample "
        "guarantee",
    )
    add_eta(parser)
    parser.add_argument(
        "--union",
        choices=UNIONS,
        default=UNIONS[0],
        help="how clopper-pearson splits eta over its confidence bounds: eta / (n + K) each, or "
        "eta / 2 each (default %(default)s)",
    )
    parser.add_argument(
        "--guarantee",
        type=_guarantee,
        default="marginal",
        metavar="GUARANTEE",
        help="marginal (default), on average over calibration sets, or, for mixture, "
        "training-conditional:delta=DELTA, for all but a share DELTA of them",
    )
    parser.add_argument(
        "--n-classes",
        type=integer("n_classes"),
        metavar="K",
        help="number of labels; needed by clopper-pearson where SCORES is (n, m)",
    )
    parser.add_argument(
        "--n-test-samples",
        type=integer("n_test_samples"),
        metavar="M",
        help="scores of each label at prediction, m' (default: as many as in SCORES)",
    )
    add_passes(parser)
    add_key_argument(parser, "true_scores or scores")


@converter
def _guarantee(text: str) -> str | tuple[str, str]:
    if text == "marginal":
        return text
    kind, separator, delta = text.partition(":delta=")
    if kind != "training-conditional" or not separator:
        raise ValueError(f"must be marginal or training-conditional:delta=DELTA, got {text!r}")
    check_level("delta", delta)
    return kind, delta


def _calibrate(arguments: argparse.Namespace) -> Report:
    with as_usage():
        rule = BinCP(
            certify(arguments.smoothing, arguments.ball),
            alpha=arguments.alpha,
            p=arguments.p,
            tau=arguments.tau,
            correction=arguments.correction,
            union=arguments.union,
            eta=arguments.eta,
            guarantee=arguments.guarantee,
            passes=arguments.passes,
        )
    target = output_file(arguments.out, [arguments.scores, arguments.labels])
    true_scores, n_classes = _true_scores(arguments)
    rule.calibrate(true_scores, n_classes=n_classes, n_test_samples=arguments.n_test_samples)
    rule.save(target)
    return Report(
        {**_rule_data(rule), "out": str(arguments.out)},
        f"{arguments.smoothing!r} against {arguments.ball!r}\n"
        f"{_rule_text(rule)}\n"
        f"wrote {arguments.out}",
    )


def _true_scores(arguments: argparse.Namespace) -> tuple[npt.NDArray[Any], int | None]:
    """Return the scores (n, m) of the true labels and the number K of labels, if it is known."""
    usual = ("true_scores", "scores") if arguments.labels is None else ("scores",)
    scores = read_array(arguments.scores, arguments.key, *usual)
    if scores.ndim != 3 and arguments.labels is None:
        if arguments.correction == "clopper-pearson" and arguments.n_classes is None:
            raise UsageError("--n-classes is needed with --correction clopper-pearson")
        return scores, arguments.n_classes
    if scores.ndim != 3 or 0 in scores.shape:
        raise ValueError(
            f"{arguments.scores}: with labels, the scores must have shape (n, K, m) with "
            f"n, K, m >= 1, got {scores.shape}"
        )
    n, n_classes, _ = scores.shape
    if arguments.n_classes not in (None, n_classes):
        raise UsageError(
            f"--n-classes must be the K = {n_classes} of the scores, got {arguments.n_classes}"
        )
    labels = as_counts("labels", _labels(arguments), high=n_classes - 1)
    if labels.shape != (n,):
        raise ValueError(f"`labels` must have shape {(n,)}, one for each point, got {labels.shape}")
    return scores[np.arange(n), labels], n_classes


def _labels(arguments: argparse.Namespace) -> npt.NDArray[Any]:
    """Read the true labels from their own file, or from that of the scores."""
    path = arguments.labels
    if path is None:
        path = arguments.scores
        if not has_array(path, "labels"):
            raise ValueError(
                f"{path}: scores (n, K, m) of all labels need the true labels: give --labels "
                "FILE, or `labels` in the same .npz file"
            )
    return read_array(path, "labels" if path == arguments.scores else None, "labels")


def _rule_data(rule: BinCP) -> dict[str, Any]:
    return {
        "certificate": rule.certificate_description,
        "alpha": str(rule.alpha),
        "correction": rule.correction,
        "union": rule.union if rule.correction == "clopper-pearson" else None,
        "guarantee": "marginal" if rule.delta is None else "training-conditional",
        "delta": None if rule.delta is None else str(rule.delta),
        "eta": str(rule.eta) if rule.correction == "clopper-pearson" else None,
        "passes": None if rule.passes is None else str(rule.passes),
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
        "stops_early": rule.boundaries_ is not None,
    }


def _rule_text(rule: BinCP) -> str:
    chain = []
    if rule.p_ is not None:
        chain.append(f"p = {rule.p_:g}")
    if rule.p_lower_ is not None:
        chain.append(f"confidence bound {rounded(rule.p_lower_, ROUND_FLOOR, 4)}")
    if rule.certified_p_ is not None:
        chain.append(f"certified {rounded(rule.certified_p_, ROUND_FLOOR, 4)}")
    draws = (
        f"a label is in the set iff at least k = {rule.min_count_} of its m' = "
        f"{rule.n_test_samples_} scores reach tau = {rule.tau_!r}"
        if rule.boundaries_ is None
        else f"draw by draw, a label is in the set once enough of its scores reach "
        f"tau = {rule.tau_!r}, k = {rule.min_count_} after m' = {rule.n_test_samples_} at most"
    )
    return (
        f"calibrated on n = {rule.n_calibration_} points with m = {rule.n_samples_} scores each, "
        f"{rule.dtype_}\n"
        f"{draws}\n"
        f"({', '.join(chain) or 'by losses of counts'})"
    )
