"""Methods on the mean of the smoothed score: their arguments, and means on a unit scale.

The mean of a score in [low, high] is mapped to [0, 1], where a certificate bounds it: the mean of a
score u in [0, 1] is the probability of the event u >= U, with U uniform and independent of u.
"""

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, as_scores, check_exact, where
from bincp._utils.levels import Level, check_level
from bincp._utils.validation import check_integer
from bincp.baselines._threshold import (
    SIDES,
    FloatArray,
    ThresholdMethod,
    check_choice,
    check_same_dtype,
)
from bincp.calibration._departures import Poison
from bincp.certificates import Certificate, as_certificate
from bincp.errors import NotCalibratedError
from bincp.intervals import EPS, check_bounds, sample_values

_SMALLER = 2.0**-32  # no sum of fewer than 2^31 such doubles overflows

Bounds = tuple[float, float]
Means = npt.NDArray[np.float64]


class SmoothedMean(ThresholdMethod, ABC):
    """A robust method on sampled means: lower bounds in calibration, upper bounds in prediction.

    Let v be the conformity of the clean test point in calibration, under its true label. If the
    conformity of that label at the attacked input is at least v, except with a probability `eta` of
    sampling error, then the label is refused with probability at most (alpha - eta) + eta.

    A subclass names its corrections, of which the first is the default.
    """

    _corrections: tuple[str, ...]
    n_samples_: int | None
    n_test_samples_: int | None
    dtype_: str | None

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha: Level = 0.1,
        correction: str | None = None,
        eta: Level = 1e-3,
        bounds: Bounds = (0, 1),
        robust_at: str = "calibration",
        poisoned: Poison = 0,
    ) -> None:
        super().__init__(alpha=alpha, poisoned=poisoned)
        self.certificate = as_certificate(certificate)
        correction = self._corrections[0] if correction is None else correction
        self.correction = check_choice("correction", correction, self._corrections)
        self.eta = check_level("eta", eta)
        self.bounds = check_bounds(bounds)
        self.robust_at = check_choice("robust_at", robust_at, SIDES)
        if correction != "none" and self.eta >= self.alpha:
            raise ValueError(f"`eta` must be below alpha = {alpha}, got {eta}")

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack), or "none" without a correction."""
        return "none" if self.correction == "none" else "robust"

    def calibrate(self, true_scores: ArrayLike, *, n_test_samples: int | None = None) -> Self:
        """Calibrate on sampled scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n, m)
            m sampled scores of the true label of each of n calibration points, within `bounds`.
        n_test_samples : int, optional
            m', number of samples at prediction; m if not given.

        Returns
        -------
        object
            Itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set; the message names the cause and the cure.

        Raises
        ------
        TypeError
            If `n_test_samples` is not an integer.
        ValueError
            If the scores have a wrong shape or dtype, are NaN or outside `bounds`.
        """
        samples = self._true_samples(true_scores)
        m = samples.shape[1]
        m_test = (
            m if n_test_samples is None else check_integer("n_test_samples", n_test_samples, low=1)
        )
        spent = Fraction(0) if self.correction == "none" else self.eta
        self._fit(self._calibration_values(samples), spent)
        self.n_samples_, self.n_test_samples_ = m, m_test
        self.dtype_ = as_scores("true_scores", true_scores).dtype
        self._warn_if_trivial()
        return self

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with sampled scores.

        Parameters
        ----------
        scores : array_like of float16, bfloat16, float32 or float64, shape (n, K, m')
            m' sampled scores of each label of each input, within `bounds`, of the dtype calibrated
            with.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Whether the set of input i contains label y.

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        ValueError
            If shape, dtype or m' are wrong, or a score is NaN or outside `bounds`.
        """
        self._require_calibrated()
        if self.n_test_samples_ is None:
            raise NotCalibratedError("call calibrate() before predicting from sampled scores")
        check_same_dtype(as_scores("scores", scores).dtype, str(self.dtype_))
        samples = self._label_samples(scores)
        if samples.shape[2] != self.n_test_samples_:
            raise ValueError(
                f"`scores` must have the m' = {self.n_test_samples_} samples calibrated for on the "
                f"last axis, got {samples.shape[2]}; calibrate takes another m' as n_test_samples"
            )
        return self._accept(self._test_values(samples))

    def calibration_conformity(self, true_scores: ArrayLike) -> Means:
        """Return the conformity of calibration points; `tau_` is the `rank_`-th smallest of them.

        Parameters
        ----------
        true_scores : array_like, shape (n, m)
            As for `calibrate`, which this method does not need.

        Returns
        -------
        ndarray of float64, shape (n,)
            Lower bound on the mean score of each true label, mapped to [0, 1].

        Raises
        ------
        ValueError
            As for `calibrate`.
        """
        return self._calibration_values(self._true_samples(true_scores))

    def conformity(self, scores: ArrayLike) -> Means:
        """Return the conformity of labels; the set of an input holds those of at least `tau_`.

        Parameters
        ----------
        scores : array_like, shape (n, K, m')
            As for `predict_set`; the method need not be calibrated, and takes any m'.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Upper bound on the mean score of each label, mapped to [0, 1].

        Raises
        ------
        ValueError
            If shape or dtype are wrong, or a score is NaN or outside `bounds`.
        """
        return self._test_values(self._label_samples(scores))

    @abstractmethod
    def _calibration_values(self, samples: FloatArray) -> Means:
        """Return lower bounds on means, on the unit scale."""

    @abstractmethod
    def _test_values(self, samples: FloatArray) -> Means:
        """Return upper bounds on means, on the unit scale."""

    def _samples(self, name: str, scores: ArrayLike) -> FloatArray:
        return sample_values(name, scores, -1, *self.bounds)

    def _true_samples(self, true_scores: ArrayLike) -> FloatArray:
        samples = self._samples("true_scores", true_scores)
        check_points(samples)
        return samples

    def _label_samples(self, scores: ArrayLike) -> FloatArray:
        samples = self._samples("scores", scores)
        if samples.ndim != 3:
            raise ValueError(f"`scores` must have shape (n, K, m'), got {samples.shape}")
        return samples

    def _trivial_cause(self) -> str | None:
        if self.rank_ == 0 or self.n_test_samples_ is None:
            return super()._trivial_cause()
        worst = np.full((1, self.n_test_samples_), self.bounds[0])
        if self._test_values(worst)[0] < self.tau_:
            return None
        return (
            "the certificate and the error of sampling lower the calibration scores so far that no "
            "mean score is below them; a smaller radius, more samples or a larger "
            "alpha would fix it"
        )


def check_points(samples: FloatArray) -> None:
    """Refuse samples of the true labels that have another shape than (n, m)."""
    if samples.ndim != 2 or len(samples) == 0:
        raise ValueError(
            f"`true_scores` must have shape (n, m) with n, m >= 1, got {samples.shape}"
        )


def row_means(samples: FloatArray) -> Means:
    """Return means over the last axis, each of which depends on the samples of its row alone.

    The order in which NumPy sums depends on casts and on strides, so that two rows of equal samples
    could differ in the last place. Contiguous doubles are always summed in one order. Where the sum
    is beyond all doubles, or infinities of both signs met on the way, it is taken of smaller ones.
    """
    rows, m = np.ascontiguousarray(samples, np.float64), samples.shape[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.asarray(rows.sum(axis=-1) / m)
        beyond = ~np.isfinite(means)
        means[beyond] = (rows[beyond] * _SMALLER).sum(axis=-1) / m / _SMALLER
    return means


def unit_below(means: ArrayLike, bounds: Bounds) -> Means:
    """Map numbers in ``bounds`` to [0, 1], rounded down; the bounds (0, 1) change nothing."""
    low, high = bounds
    if (low, high) == (0, 1):
        return np.asarray(means, np.float64)
    # One half unit for each of the two differences and the quotient.
    return np.clip((np.asarray(means, np.float64) - low) / (high - low) * (1 - 4 * EPS), 0, 1)


def unit_above(means: ArrayLike, bounds: Bounds) -> Means:
    """Map numbers in ``bounds`` to [0, 1], rounded up; the bounds (0, 1) change nothing."""
    low, high = bounds
    if (low, high) == (0, 1):
        return np.asarray(means, np.float64)
    return np.clip((np.asarray(means, np.float64) - low) / (high - low) * (1 + 4 * EPS), 0, 1)


def check_means(name: str, value: ArrayLike, bounds: Bounds, ndim: int) -> Means:
    """Return exact means within ``bounds`` as float64, of shape (n,) or (n, K)."""
    array = as_array(name, value)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"`{name}` must be real numbers, got dtype {array.dtype}")
    check_exact(name, array)
    means = array.astype(np.float64, copy=False)
    if means.ndim != ndim or (ndim == 1 and means.size == 0):
        wanted = "(n,), n >= 1" if ndim == 1 else "(n, K)"
        raise ValueError(f"`{name}` must have shape {wanted}, got {means.shape}")
    low, high = bounds
    bad = ~((means >= low) & (means <= high))  # written so that NaN fails
    if bad.any():
        raise ValueError(
            f"`{name}` must be in [{low:g}, {high:g}], got {means[bad][0]} {where(bad)}"
        )
    return means


def sampled_scores(name: str, value: ArrayLike) -> tuple[FloatArray, str]:
    """Return sampled scores, the samples last, and their dtype; NaN is refused."""
    return sample_values(name, value, -1, -math.inf, math.inf), as_scores(name, value).dtype


def finite_means(name: str, samples: FloatArray) -> Means:
    """Return `row_means` of samples that are all finite."""
    bad = ~np.isfinite(samples)
    if bad.any():
        raise ValueError(f"`{name}` must be finite, got {samples[bad][0]} {where(bad)}")
    return row_means(samples)
