"""``bincp calibrate``: the decision rule from sampled scores of the true labels."""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import as_counts
from bincp.calibration import BinCP, MondrianBinCP
from bincp.calibration._stored import CalibrationScores
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
    add_key_argument,
    add_passes,
    add_spec_arguments,
    as_usage,
    bound_options,
    certificate_name,
    check_spec,
    integer,
    level,
    threshold,
)
from bincp.cli._files import has_array, is_run, open_run, output_file, read_array
from bincp.cli._report import Report
from bincp.cli._rules import class_rules_data, class_rules_text, rule_data, rule_text

_OPTIONS = ("alpha", "p", "tau", "correction", "guarantee", "passes", *DEPARTURES)
"""Options of the command that are those of `BinCP`, whatever the correction is."""


def add_calibrate(commands: Any) -> None:
    parser = add_command(
        commands,
        _calibrate,
        "calibrate",
        "find the decision rule from sampled scores of the true labels",
        description=(
            "Find the decision rule (tau, k): a label is in the prediction set iff at least k\n"
            "of its scores reach tau. With --mondrian each class gets a rule (tau, k) from\n"
            "its own points."
        ),
        example="  bincp calibrate true_scores.npy --smoothing gaussian:sigma=0.25 \\\n"
        "      --ball l2:r=0.12 --n-classes 10 --out rule.json\n"
        "  bincp calibrate scores.npy --labels labels.npy \\\n"
        "      --smoothing gaussian:sigma=0.25 --ball l2:r=0.12 --out rule.json",
        files=[
            "SCORES holds, for each of n calibration points, m scores of its true label under "
            "random noise: an array (n, m) of floats, where larger means better agreement. Or "
            "it holds the scores of all K labels, (n, K, m), and the true labels come from "
            "--labels, or from `labels` in the same .npz file. Or it is the folder of a run of "
            "`bincp sample`, which knows its labels and K.",
            "RULE is the decision rule as JSON, for `bincp predict` or bincp.BinCP.load.",
            OUTPUTS,
        ],
        more=[SPECS, CERTIFICATES],
    )
    parser.add_argument("scores", type=Path, metavar="SCORES", help=".npy or .npz file, or run")
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="true labels (n,), integers in [0, K), where SCORES is (n, K, m), or (n, m) with "
        "--mondrian; a .npz file holds `labels` or one array",
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
        "calibrated (default: chosen by n, m, m', alpha and the certificate)",
    )
    fixed.add_argument(
        "--tau",
        type=threshold("tau"),
        help="threshold, chosen without the calibration and test data; p is calibrated",
    )
    add_correction(parser)
    add_guarantee(parser)
    parser.add_argument(
        "--mondrian",
        action="store_true",
        help="calibrate each class on its own points, so that each class is covered",
    )
    parser.add_argument(
        "--n-classes",
        type=integer("n_classes"),
        metavar="K",
        help="number of labels; needed by clopper-pearson and by --mondrian where SCORES is (n, m)",
    )
    parser.add_argument(
        "--n-test-samples",
        type=integer("n_test_samples"),
        metavar="M",
        help="scores of each label at prediction, m' (default: as many as in SCORES)",
    )
    add_passes(parser)
    add_departures(parser)
    add_key_argument(parser, "true_scores or scores")


def _calibrate(arguments: argparse.Namespace) -> Report:
    options = {name: getattr(arguments, name) for name in _OPTIONS}
    check_spec(arguments, arguments.ball)
    with as_usage():
        options |= bound_options(arguments)
        certificate = arguments.certificate or certify(arguments.smoothing, arguments.ball)
        rule = BinCP(certificate, **options)
    target = output_file(arguments.out, [arguments.scores, arguments.labels])
    points = _run_points(arguments) if is_run(arguments.scores) else _points(arguments)
    if arguments.mondrian:
        assert points.n_classes is not None
        rules = MondrianBinCP(certificate, n_classes=points.n_classes, **options)
        rules.calibrate(points.scores, points.labels, n_test_samples=arguments.n_test_samples)
        rules.save(target)
        data, text = class_rules_data(rules), class_rules_text(rules)
    else:
        rule.calibrate(
            points.scores, n_classes=points.n_classes, n_test_samples=arguments.n_test_samples
        )
        rule.save(target)
        data, text = rule_data(rule), rule_text(rule)
    return Report(
        {**data, "out": str(arguments.out)},
        f"{certificate_name(arguments, arguments.ball)}\n{text}\nwrote {arguments.out}",
    )


class _Points(NamedTuple):
    """The scores (n, m) of the true labels, or a run; the labels and their number K, where known.

    A run has its labels, and knows what its scores were made with, which goes into the rule.
    """

    scores: npt.NDArray[Any] | CalibrationScores
    labels: npt.NDArray[np.int64] | None
    n_classes: int | None


def _run_points(arguments: argparse.Namespace) -> _Points:
    """Open the run of the calibration points."""
    stored = open_run(arguments.scores, {"--labels": arguments.labels, "--key": arguments.key})
    if arguments.n_classes not in (None, stored.n_classes):
        raise UsageError(
            f"--n-classes must be the K = {stored.n_classes} of the run, got {arguments.n_classes}"
        )
    if arguments.mondrian and not stored.identity["labels"]:
        raise ValueError(f"{arguments.scores}: --mondrian needs a run with labels")
    return _Points(stored, None, stored.n_classes)


def _points(arguments: argparse.Namespace) -> _Points:
    """Read the calibration points."""
    usual = ("true_scores", "scores") if arguments.labels is None else ("scores",)
    if arguments.mondrian:
        usual = ("scores", "true_scores")
    scores = read_array(arguments.scores, arguments.key, *usual)
    of_all_labels = scores.ndim == 3
    if not of_all_labels and arguments.labels is None and not arguments.mondrian:
        if arguments.correction == "clopper-pearson" and arguments.n_classes is None:
            raise UsageError("--n-classes is needed with --correction clopper-pearson")
        return _Points(scores, None, arguments.n_classes)
    wanted = "(n, K, m) or (n, m)" if arguments.mondrian else "(n, K, m)"
    if 0 in scores.shape or not (of_all_labels or (arguments.mondrian and scores.ndim == 2)):
        cure = ""
        if scores.ndim == 2:
            cure = "; scores (n, m) of the true labels need no --labels, but with --mondrian"
        raise ValueError(
            f"{arguments.scores}: with labels, the scores must have shape {wanted} with "
            f"n, K, m >= 1, got {scores.shape}{cure}"
        )
    n, n_classes = len(scores), scores.shape[1] if of_all_labels else arguments.n_classes
    if n_classes is None:
        raise UsageError("--n-classes is needed with --mondrian where the scores are (n, m)")
    if arguments.n_classes not in (None, n_classes):
        raise UsageError(
            f"--n-classes must be the K = {n_classes} of the scores, got {arguments.n_classes}"
        )
    labels = as_counts("labels", _labels(arguments), high=n_classes - 1)
    if labels.shape != (n,):
        raise ValueError(f"`labels` must have shape {(n,)}, one for each point, got {labels.shape}")
    own = scores[np.arange(n), labels] if of_all_labels else scores
    return _Points(own, labels, n_classes)


def _labels(arguments: argparse.Namespace) -> npt.NDArray[Any]:
    """Read the true labels from their own file, or from that of the scores."""
    path = arguments.labels
    if path is None:
        path = arguments.scores
        if not has_array(path, "labels"):
            raise ValueError(
                f"{path}: scores (n, K, m) of all labels need the true labels, and so does "
                "--mondrian: give --labels FILE, or `labels` in the same .npz file"
            )
    return read_array(path, "labels" if path == arguments.scores else None, "labels")
