"""Prediction with a decision rule: from scores of every label, their counts, or probabilities."""

from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import (
    ArrayLike,
    as_narrow_counts,
    as_probabilities,
    as_scores,
    check_exact,
)
from bincp.calibration._arguments import check_label_shape, check_test_scores
from bincp.calibration._counts import number_counted
from bincp.calibration._sequential import Tests, decide_in_order
from bincp.counting import decide
from bincp.errors import NotCalibratedError


class Rule(Protocol):
    """The part of a decision rule that prediction needs.

    tau, the least count and the test are the same for all labels, or arrays and sequences with an
    entry for each of the K.
    """

    @property
    def tau(self) -> float | npt.NDArray[np.float64]: ...
    @property
    def least(self) -> float | npt.NDArray[np.int64]: ...
    @property
    def tests(self) -> Tests: ...
    @property
    def stops_early(self) -> bool: ...
    @property
    def n_classes(self) -> int | None: ...
    @property
    def n_test_samples(self) -> int | None: ...
    @property
    def dtype(self) -> str | None: ...


class EitherRule(Protocol):
    """The part of a rule that says whether it decides by counts or by exact probabilities."""

    @property
    def is_sampled(self) -> bool: ...
    @property
    def least(self) -> float: ...
    @property
    def n_classes(self) -> int | None: ...


R = TypeVar("R", bound=EitherRule)


def sampled(rule: R | None) -> R:
    """Return the rule of a sampled calibration."""
    if rule is None or not rule.is_sampled:
        raise NotCalibratedError("call calibrate() before predicting from sampled scores")
    return rule


def sets_from_scores(rule: Rule, scores: ArrayLike) -> npt.NDArray[np.bool_]:
    """Return the sets (n, K) of inputs with scores (n, K, m'), in the order of the draws."""
    checked = as_scores("scores", scores)
    check_test_scores(checked, rule.dtype, rule.n_classes, rule.n_test_samples)
    if rule.stops_early:
        return decide_in_order(rule.tests, checked, rule.tau)
    return decide(checked, rule.tau, rule.least)


def sets_from_counts(rule: Rule, counts: ArrayLike, n_samples: int | None) -> npt.NDArray[np.bool_]:
    """Return the sets (n, K) of inputs with exceedance counts (n, K) of all m' scores."""
    if rule.stops_early:
        raise ValueError(
            "`counts` must not decide for a rule that stops early: it was calibrated for its "
            "boundaries, and the count of all m' draws would lose coverage; give predict_set the "
            "scores in the order of their draws, or calibrate with passes=None for counts"
        )
    drawn = number_counted(rule, counts, n_samples)
    if drawn != rule.n_test_samples:
        raise ValueError(
            f"`n_samples` must be the m' = {rule.n_test_samples} calibrated for, got {drawn}; "
            "calibrate takes another m' as n_test_samples"
        )
    checked = as_narrow_counts("counts", counts, high=drawn)
    check_label_shape("counts", checked.shape, rule.n_classes)
    return np.asarray(checked >= rule.least)


def sets_from_probabilities(
    rule: EitherRule | None, probabilities: ArrayLike
) -> npt.NDArray[np.bool_]:
    """Return the sets (n, K) of inputs with exact probabilities (n, K)."""
    if rule is None or rule.is_sampled:
        raise NotCalibratedError("call calibrate_exact() before predict_set_exact()")
    check_exact("probabilities", probabilities)
    values = as_probabilities("probabilities", probabilities)
    check_label_shape("probabilities", values.shape, rule.n_classes)
    return np.asarray(values >= rule.least)
