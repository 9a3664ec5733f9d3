"""The decision rule of a classifier: its interface, its settings, the check of its certificate."""

import copy
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike
from bincp._utils.levels import Level
from bincp.calibration import BinCP, MondrianBinCP, SequentialRule
from bincp.calibration._departures import Noise, Poison
from bincp.calibration._sequential import Tests
from bincp.certificates import Certificate
from bincp.noise._keys import IntArray
from bincp.shifts import Shift


class RuleSettings(TypedDict, total=False):
    """The settings of a new `BinCP`, which `RobustClassifier` passes on; `alpha` is needed."""

    alpha: Level
    p: Level | None
    tau: float | None
    correction: str
    union: str
    eta: Level
    guarantee: str | tuple[str, Level]
    passes: Level | None
    poisoned: Poison
    label_noise: Noise | None
    shift: Shift | None
    attacked_calibration: bool


_METHODS = ("calibrate", "predict_set_from_counts", "sequential_rule")
_FITTED = (
    "tau_",
    "min_count_",
    "n_samples_",
    "n_test_samples_",
    "n_classes_",
    "dtype_",
    "boundaries_",
)


class Rule(Protocol):
    """The part of `BinCP` and `MondrianBinCP` that a `RobustClassifier` uses.

    tau_, min_count_ and the boundaries are the same for all labels, or those of each of the K. The
    attributes that end in an underscore are there once the rule is calibrated.
    """

    @property
    def tau_(self) -> float | npt.NDArray[np.float64]: ...
    @property
    def min_count_(self) -> int | npt.NDArray[np.int64] | None: ...
    @property
    def n_samples_(self) -> int | None: ...
    @property
    def n_test_samples_(self) -> int | None: ...
    @property
    def n_classes_(self) -> int | None: ...
    @property
    def dtype_(self) -> str | None: ...
    @property
    def boundaries_(self) -> Tests | None: ...
    @property
    def certificate_description(self) -> dict[str, Any]: ...

    def predict_set_from_counts(
        self, counts: ArrayLike, *, n_samples: int
    ) -> npt.NDArray[np.bool_]: ...

    def sequential_rule(self) -> Tests: ...


@dataclass(frozen=True)
class SampledScores:
    """The scores of one calibration in memory, with what they were made with."""

    scores: npt.NDArray[Any]
    labels: IntArray | None
    n_classes: int | None
    content: dict[str, Any]

    def provenance(self) -> dict[str, Any]:
        """Return what the scores were made with."""
        return self.content

    def calibration_points(
        self, certificate: dict[str, Any]
    ) -> tuple[npt.NDArray[Any], IntArray | None, int | None]:
        """Return the scores (n, m), the labels and K, None where labels are no classes."""
        return self.scores, self.labels, self.n_classes


def calibrate(rule: Any, points: SampledScores, n_test_samples: int, n_threads: int) -> None:
    """Calibrate a rule; one of ours keeps what the scores were made with.

    Rules of other classes, and subclasses, need not know about threads.
    """
    threads = {"n_threads": n_threads} if type(rule) in (BinCP, MondrianBinCP) else {}
    if isinstance(rule, BinCP | MondrianBinCP):
        rule.calibrate(points, n_test_samples=n_test_samples, **threads)
    else:
        rule.calibrate(points.scores, n_classes=points.n_classes, n_test_samples=n_test_samples)


def classes_of(rule: Any) -> int | None:
    """Return the number of classes that a rule needs before it is calibrated, None for any."""
    return rule.n_classes if isinstance(rule, MondrianBinCP) else None


def provenance_of(rule: Any) -> dict[str, Any] | None:
    """Return what the scores of a rule were made with, None where it does not know; no copy."""
    if not is_calibrated(rule):
        return None
    if isinstance(rule, BinCP | MondrianBinCP):
        inner = rule._rule
        return None if inner is None else inner.provenance
    return getattr(rule, "provenance_", None)


def is_calibrated(rule: Rule) -> bool:
    """Say if a rule is calibrated on sampled scores; one of exact probabilities has no count."""
    return getattr(rule, "min_count_", None) is not None


def snapshot(rule: Rule) -> Rule:
    """Return a rule that another thread cannot calibrate: one whole rule for one prediction.

    Objects of other classes are taken as they are, for only they know how to be copied.
    """
    return copy.copy(rule) if isinstance(rule, BinCP | MondrianBinCP) else rule


def check_fitted(rule: Any) -> None:
    """Refuse a calibrated rule of another class without an attribute that prediction reads.

    Nothing stands in for one: without `boundaries_` a rule that stops early would be taken for one
    that counts all draws, and lose its level.
    """
    missing = [name for name in _FITTED if not hasattr(rule, name)]
    if missing:
        raise TypeError(
            f"`rule` must have the attributes {', '.join(_FITTED)} of BinCP once it is calibrated, "
            f"got {type(rule).__name__} without {', '.join(missing)}"
        )


def tests_of(rule: Rule) -> Tests:
    """Return the tests by which drawing stops as soon as a calibrated rule has decided."""
    if rule.boundaries_ is not None:
        return rule.sequential_rule()
    assert rule.min_count_ is not None  # calibrated on samples
    assert rule.n_test_samples_ is not None
    if isinstance(rule.min_count_, np.ndarray):
        return [SequentialRule.curtailed(int(k), rule.n_test_samples_) for k in rule.min_count_]
    return SequentialRule.curtailed(rule.min_count_, rule.n_test_samples_)


def check_rule(rule: Any, certificate: Certificate) -> None:
    """Refuse a rule of another kind, of exact probabilities, or of another certificate."""
    missing = [name for name in _METHODS if not callable(getattr(rule, name, None))]
    if missing or isinstance(rule, type) or not hasattr(rule, "certificate_description"):
        raise TypeError(
            "`rule` must be a BinCP, a MondrianBinCP or have the methods "
            f"{', '.join(_METHODS)} of BinCP, got {rule!r}"
        )
    if getattr(rule, "tau_", None) is not None and not is_calibrated(rule):
        raise ValueError("`rule` must be calibrated on sampled scores, got exact probabilities")
    if is_calibrated(rule):
        check_fitted(rule)
    own, wanted = rule.certificate_description, certificate.describe()
    for part in ("smoothing", "ball"):
        if own.get(part) != wanted[part]:
            raise ValueError(
                f"`rule` must have the certificate of the classifier, whose {part} is "
                f"{_shown(wanted[part])}, got a rule for {_shown(own.get(part))}"
            )


def _shown(parameters: Any) -> str:
    if not (isinstance(parameters, dict) and "type" in parameters):
        return "a certificate that does not say"
    rest = ", ".join(f"{key}={value!r}" for key, value in parameters.items() if key != "type")
    return f"{parameters['type']}({rest})"
