"""``bincp predict``: prediction sets from a decision rule and sampled scores."""

import argparse
from decimal import ROUND_CEILING, ROUND_FLOOR
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bincp import metrics
from bincp._utils.files import replace_file
from bincp.calibration import BinCP, MondrianBinCP, RobustRiskControl
from bincp.cli._arguments import OUTPUTS, add_command, add_key_argument, integer
from bincp.cli._files import is_run, open_run, output_file, read_array
from bincp.cli._report import Report, rounded
from bincp.cli._rules import load_rule


def add_predict(commands: Any) -> None:
    parser = add_command(
        commands,
        _predict,
        "predict",
        "apply a decision rule: prediction sets, and their coverage",
        description=(
            "Apply a decision rule to sampled scores. With labels the coverage is measured,\n"
            "with a confidence interval of 95%, or the false-negative rate for a rule of risk\n"
            "control. A rule that stops early needs the scores, in the order of their draws."
        ),
        example="  bincp predict rule.json scores.npy --labels labels.npy --out sets.npy",
        files=[
            "SCORES holds m' scores of each of K labels of each of n inputs under random noise: "
            "an array (n, K, m') of the dtype that the rule was calibrated with. With --counts "
            "M it holds integers (n, K): how many of M = m' scores reach tau. Or it is the "
            "folder of a run of `bincp sample`, with its labels.",
            "SETS is a boolean array (n, K); a .npz file holds it as `sets`.",
            OUTPUTS,
        ],
    )
    parser.add_argument(
        "rule",
        type=Path,
        metavar="RULE",
        help="file from `bincp calibrate`, or from the method save of a calibrated object",
    )
    parser.add_argument("scores", type=Path, metavar="SCORES", help=".npy or .npz file, or run")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="SETS", help=".npy or .npz file to write"
    )
    parser.add_argument(
        "--counts",
        type=integer("counts"),
        metavar="M",
        help="SCORES holds exceedance counts, each of M scores",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="true labels (n,), integers in [0, K), or for a rule of risk control booleans (n, K); "
        "a .npz file holds `labels` or one array",
    )
    add_key_argument(parser, "scores, or counts with --counts")


def _predict(arguments: argparse.Namespace) -> Report:
    inputs = [arguments.rule, arguments.scores, arguments.labels]
    target = output_file(arguments.out, inputs, suffixes=(".npy", ".npz"))
    rule = load_rule(arguments.rule)
    labels = None if arguments.labels is None else read_array(arguments.labels, None, "labels")
    if is_run(arguments.scores):
        stored = open_run(arguments.scores, {"--counts": arguments.counts, "--key": arguments.key})
        sets = rule.predict_set(stored)
        if labels is None and not isinstance(rule, RobustRiskControl):  # it needs sets of labels
            labels = stored.labels()
    elif arguments.counts is not None:
        counts = read_array(arguments.scores, arguments.key, "counts")
        sets = rule.predict_set_from_counts(counts, n_samples=arguments.counts)
    else:
        scores = read_array(arguments.scores, arguments.key, "scores")
        if scores.dtype.kind in "iu":
            raise ValueError(
                f"{arguments.scores}: scores must be floats, got {scores.dtype}; "
                "counts need --counts M"
            )
        sets = rule.predict_set(scores)
    if 0 in sets.shape:
        raise ValueError(f"{arguments.scores}: must hold n, K >= 1, got n, K = {sets.shape}")
    data = _sets_data(sets)
    if labels is not None:
        data |= _quality(rule, sets, labels)
    replace_file(target, lambda stream: _save_sets(stream, sets, target.suffix))
    lines = [f"{key.replace('_', ' '):<18}{_shown(key, value)}" for key, value in data.items()]
    return Report(
        {**data, "out": str(arguments.out)}, "\n".join([*lines, f"wrote {arguments.out}"])
    )


def _sets_data(sets: npt.NDArray[np.bool_]) -> dict[str, Any]:
    return {
        "n_inputs": sets.shape[0],
        "n_classes": sets.shape[1],
        "average_set_size": metrics.average_set_size(sets),
        "singleton_rate": metrics.singleton_rate(sets),
        "empty_rate": metrics.empty_rate(sets),
    }


def _quality(
    rule: BinCP | MondrianBinCP | RobustRiskControl,
    sets: npt.NDArray[np.bool_],
    labels: npt.NDArray[Any],
) -> dict[str, Any]:
    """Return the measured coverage, or the mean loss where points have sets of labels."""
    if isinstance(rule, RobustRiskControl):
        return {"false_negative_rate": float(metrics.false_negative_rate(sets, labels).mean())}
    low, high = metrics.coverage_interval(sets, labels)
    return {
        "coverage": metrics.coverage(sets, labels),
        "coverage_low": low,
        "coverage_high": high,
    }


def _shown(key: str, value: float) -> str:
    """Return a number for people; the ends of the interval are rounded outward."""
    if isinstance(value, int):
        return str(value)
    if key == "coverage_low":
        return rounded(value, ROUND_FLOOR, 4)
    return rounded(value, ROUND_CEILING, 4) if key == "coverage_high" else f"{value:.4g}"


def _save_sets(stream: BinaryIO, sets: npt.NDArray[np.bool_], suffix: str) -> None:
    if suffix == ".npz":
        np.savez_compressed(stream, sets=sets)
    else:
        np.save(stream, sets, allow_pickle=False)
