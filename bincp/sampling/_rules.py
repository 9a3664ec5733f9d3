"""The decision rule of a classifier: its interface, its settings, the check of its certificate."""

from typing import Any, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike
from bincp._utils.levels import Level
from bincp.calibration import SequentialRule
from bincp.certificates import Certificate


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


_METHODS = ("calibrate", "predict_set_from_counts", "sequential_rule")


class Rule(Protocol):
    """The part of `BinCP` that a `RobustClassifier` uses.

    The attributes that end in an underscore are there once the rule is calibrated.
    """

    @property
    def tau_(self) -> float: ...
    @property
    def min_count_(self) -> int | None: ...
    @property
    def n_samples_(self) -> int | None: ...
    @property
    def n_test_samples_(self) -> int | None: ...
    @property
    def n_classes_(self) -> int | None: ...
    @property
    def dtype_(self) -> str | None: ...
    @property
    def boundaries_(self) -> SequentialRule | None: ...
    @property
    def certificate_description(self) -> dict[str, Any]: ...

    def calibrate(
        self, true_scores: ArrayLike, *, n_classes: int | None, n_test_samples: int | None
    ) -> Any: ...

    def predict_set_from_counts(
        self, counts: ArrayLike, *, n_samples: int
    ) -> npt.NDArray[np.bool_]: ...

    def sequential_rule(self) -> SequentialRule: ...


def is_calibrated(rule: Rule) -> bool:
    """Say if a rule is calibrated on sampled scores; one of exact probabilities has no count."""
    return getattr(rule, "min_count_", None) is not None


def check_rule(rule: Any, certificate: Certificate) -> None:
    """Refuse a rule of another kind, of exact probabilities, or of another certificate."""
    missing = [name for name in _METHODS if not callable(getattr(rule, name, None))]
    if missing or isinstance(rule, type) or not hasattr(rule, "certificate_description"):
        raise TypeError(
            f"`rule` must be a BinCP or have its methods {', '.join(_METHODS)}, got {rule!r}"
        )
    if getattr(rule, "tau_", None) is not None and not is_calibrated(rule):
        raise ValueError("`rule` must be calibrated on sampled scores, got exact probabilities")
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
