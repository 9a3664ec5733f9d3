"""The common part of all methods: a conformal threshold, and sets by comparison with it."""

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_scores
from bincp._utils.estimators import Estimator
from bincp._utils.levels import Level, check_level, conformal_rank
from bincp.calibration._departures import Departures, Poison, check_poison
from bincp.calibration._triviality import too_few_points
from bincp.counting import check_no_nan
from bincp.errors import NotCalibratedError, TrivialSetWarning

FloatArray = npt.NDArray[np.floating[Any]]

SIDES = ("calibration", "test")


class ThresholdMethod(Estimator):
    """A method that accepts a label iff its conformity reaches a threshold.

    The threshold is the j-th smallest conformity of n calibration points, where
    j = floor((alpha - spent) (n + 1)) - b, or -inf for j <= 0. If the conformity of the clean test
    point under its true label is exchangeable with them, it lies below the threshold with
    probability at most alpha - spent, also where b of the n points were replaced by any others: at
    least j of the j + b lowest clean ones are still there. Where d points were only deleted or only
    inserted, n is replaced by n + d, and b by d, or n by n - d.
    """

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack), "clean" (without one) or "none"."""
        return "clean"

    tau_: float
    rank_: int
    n_calibration_: int
    _spent: Fraction  # the part of alpha that is spent on the error of sampling

    def __init__(self, *, alpha: Level, poisoned: Poison = 0) -> None:
        self.alpha = check_level("alpha", alpha)
        self.poisoned = check_poison(poisoned)

    def __repr__(self) -> str:
        defaults = self._defaults()
        parts = [f"alpha={self.alpha}"]
        for name, value in self.get_params(deep=False).items():
            if name != "alpha" and value is not defaults[name]:
                shape = np.shape(value)
                shown = f"<shape {shape}>" if len(shape) > 1 else repr(value)
                parts.append(f"{name}={shown}")
        if not hasattr(self, "tau_"):
            return f"{type(self).__name__}({', '.join(parts)}, not calibrated)"
        parts += [f"tau_={self.tau_!r}", f"n_calibration_={self.n_calibration_}"]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _fit(self, values: FloatArray, spent: Fraction = Fraction(0)) -> None:
        n = len(values)
        self._spent = spent
        settings = Departures(alpha=self.alpha, poisoned=self.poisoned)
        rank = conformal_rank(self.alpha - spent, settings.clean_size(n)) - settings.lost
        rank = max(rank, 0)
        self.tau_ = float(np.partition(values, rank - 1)[rank - 1]) if rank else -math.inf
        self.rank_, self.n_calibration_ = rank, n

    def _trivial_cause(self) -> str | None:
        """Say why every label will be in every set and how to fix it, or return None."""
        if self.rank_ == 0:
            settings = Departures(alpha=self.alpha, poisoned=self.poisoned)
            return too_few_points(self.n_calibration_, settings, self._spent)
        return None

    def _warn_if_trivial(self) -> None:
        cause = self._trivial_cause()
        if cause is not None:
            warnings.warn(
                f"every label will be in every prediction set: {cause}",
                TrivialSetWarning,
                stacklevel=3,
            )

    def _require_calibrated(self, name: str = "calibrate") -> None:
        if not hasattr(self, "tau_"):
            raise NotCalibratedError(f"call {name}() before predicting")

    def _accept(self, values: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(values >= self.tau_)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"`{name}` must be one of {choices}, got {value!r}")
    return value


def check_true_scores(value: ArrayLike, *, name: str = "true_scores") -> tuple[FloatArray, str]:
    """Return scores (n,) of calibration points and their dtype; NaN is refused."""
    scores = as_scores(name, value)
    if scores.bits.ndim != 1 or scores.bits.size == 0:
        raise ValueError(f"`{name}` must have shape (n,), n >= 1, got {scores.bits.shape}")
    check_no_nan(scores)
    return scores.values(), scores.dtype


def check_label_scores(value: ArrayLike, *, name: str = "scores") -> tuple[FloatArray, str]:
    """Return scores (n, K) of the labels of inputs and their dtype; NaN is refused."""
    scores = as_scores(name, value)
    if scores.bits.ndim != 2:
        raise ValueError(f"`{name}` must have shape (n, K), got {scores.bits.shape}")
    check_no_nan(scores)
    return scores.values(), scores.dtype


def check_same_dtype(dtype: str, calibrated: str) -> None:
    """Refuse scores of another dtype: they are rounded otherwise than those of calibration."""
    if dtype != calibrated:
        raise ValueError(f"`scores` must have the dtype calibrated with, {calibrated}, got {dtype}")
