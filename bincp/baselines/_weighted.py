"""Weighted conformal prediction: clean points of a law whose density ratio is known."""

import itertools
import math
import warnings
from bisect import bisect_left
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, where
from bincp._utils.estimators import Estimator
from bincp._utils.levels import Level, check_level
from bincp.baselines._threshold import check_label_scores, check_same_dtype, check_true_scores
from bincp.errors import NotCalibratedError, TrivialSetWarning

__all__ = ["WeightedCP"]

_UNIT = 1074  # 2^-1074 is the least positive double; all of them are whole multiples

Array = npt.NDArray[np.float64]
Weights = npt.NDArray[Any]


class WeightedCP(Estimator):
    """Split conformal prediction under a known shift of the inputs, on scores of clean inputs.

    Guarantee: let the calibration points be i.i.d., and the test point be independent of them, with
    another law of its input and the same law of the label given the input. Let the weight of an
    input be the density ratio of the two laws, known up to one factor for all. Then the set of the
    test point *as it is* contains its label with probability at least 1 - alpha. Nothing is
    guaranteed under an attack, which could also change the weight; `guarantee` is "clean". For a
    shift that is only known to be small, and together with an attack, `BinCP` takes ``shift=``.

    Parameters
    ----------
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).

    Attributes
    ----------
    n_calibration_ : int
        n.
    dtype_ : str
        Dtype of the scores.

    Notes
    -----
    The threshold of a test point of weight w is the largest tau for which the calibration points
    whose score is at least tau weigh at least 1 - alpha of all n + 1 points, the test point
    included; -inf, so that every label is in the set, where even all n points weigh less. Sums are
    exact. The number n alone says nothing: a heavy test point has a trivial set for any n.

    No other thread may use an object while it is calibrated. Threads may predict with it at once.

    References
    ----------
    Tibshirani, Barber, Candes and Ramdas, "Conformal prediction under covariate shift",
    NeurIPS 2019.

    Examples
    --------
    >>> from bincp.baselines import WeightedCP
    >>> rule = WeightedCP(alpha=0.25).calibrate([-1.0, -2.0, -3.0, -4.0], [1, 1, 1, 1])
    >>> rule.thresholds([0.5, 1, 4])
    array([ -4.,  -4., -inf])
    """

    n_calibration_: int
    dtype_: str
    _scores: npt.NDArray[Any]  # from the largest to the smallest
    _sums: list[int]  # of the weights of so many largest scores, in units of 2^-1074

    def __init__(self, *, alpha: Level = 0.1) -> None:
        self.alpha = check_level("alpha", alpha)

    @property
    def guarantee(self) -> str:
        """The guarantee: "clean", without an attack."""
        return "clean"

    def __repr__(self) -> str:
        state = f"n_calibration_={self.n_calibration_}" if self._is_calibrated else "not calibrated"
        return f"WeightedCP(alpha={self.alpha}, {state})"

    @property
    def _is_calibrated(self) -> bool:
        return hasattr(self, "_sums")

    def calibrate(self, true_scores: ArrayLike, weights: ArrayLike) -> Self:
        """Calibrate on the scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n,)
            Larger means better agreement; infinities are ordinary scores.
        weights : array_like of real numbers (n,)
            Density ratios of the inputs, finite and at least 0, up to one factor for all points.

        Returns
        -------
        WeightedCP
            The object itself, calibrated.

        Raises
        ------
        TypeError
            If the weights are not real numbers.
        ValueError
            If the scores have a wrong shape or dtype, or hold NaN; if the weights have another
            shape, or one is negative or not finite (the message says where). The object stays as
            it was.
        """
        values, dtype = check_true_scores(true_scores)
        ratios = _as_weights("weights", weights)
        if ratios.shape != values.shape:
            raise ValueError(f"`weights` must have shape {values.shape}, got {ratios.shape}")
        order = np.argsort(-values, kind="stable")
        self._scores, self.dtype_ = values[order], dtype
        self._sums = list(itertools.accumulate(map(_in_units, ratios[order].tolist())))
        self.n_calibration_ = len(values)
        return self

    def thresholds(self, weights: ArrayLike) -> Array:
        """Return the thresholds of test points.

        Parameters
        ----------
        weights : array_like of real numbers (n',)
            Their density ratios, in the units of `calibrate`.

        Returns
        -------
        float64 array (n',)
            Scores of calibration points, or -inf.

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        TypeError, ValueError
            If the weights are not one-dimensional, finite and at least 0.
        """
        if not self._is_calibrated:
            raise NotCalibratedError("call calibrate() before predicting")
        ratios = _as_weights("weights", weights)
        if ratios.ndim != 1:
            raise ValueError(f"`weights` must have shape (n,), got {ratios.shape}")
        scores, sums = self._scores, self._sums
        found = {w: _threshold(scores, sums, w, self.alpha) for w in set(ratios.tolist())}
        return np.array([found[w] for w in ratios.tolist()], np.float64)

    def predict_set(self, scores: ArrayLike, weights: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs.

        Parameters
        ----------
        scores : array_like, shape (n', K)
            Scores of the labels, of the dtype calibrated with.
        weights : array_like of real numbers (n',)
            Density ratios of the inputs, in the units of `calibrate`.

        Returns
        -------
        ndarray of bool, shape (n', K)

        Warns
        -----
        TrivialSetWarning
            If test points are so heavy that every label is in their sets.

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        TypeError, ValueError
            If the scores or the weights have a wrong shape or dtype, a score is NaN, or a weight is
            negative or not finite.
        """
        taus = self.thresholds(weights)
        values, dtype = check_label_scores(scores)
        check_same_dtype(dtype, self.dtype_)
        if taus.shape != values.shape[:1]:
            raise ValueError(f"`weights` must have shape {values.shape[:1]}, got {taus.shape}")
        trivial = int(np.isneginf(taus).sum())
        if trivial:
            warnings.warn(
                f"every label is in the sets of {trivial} of {len(taus)} test points: their weight "
                f"is too large a share of that of the n = {self.n_calibration_} calibration points "
                f"for alpha = {self.alpha}",
                TrivialSetWarning,
                stacklevel=2,
            )
        return np.asarray(values >= taus[:, np.newaxis])


def _as_weights(name: str, value: ArrayLike) -> Weights:
    array = as_array(name, value)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"`{name}` must be real numbers, got dtype {array.dtype}")
    # Whole numbers stay what they are: a double would round those beyond 2^53.
    ratios = array.astype(np.float64) if array.dtype.kind == "f" else array.copy()
    bad = ~((ratios >= 0) & (ratios < np.inf))
    if bad.any():
        raise ValueError(
            f"`{name}` must be finite and at least 0, got {ratios[bad][0]} {where(bad)}"
        )
    return ratios


def _in_units(weight: float) -> int:
    numerator, denominator = weight.as_integer_ratio()
    return (numerator << _UNIT) // denominator  # without a rest


def _threshold(scores: npt.NDArray[Any], sums: list[int], weight: float, alpha: Fraction) -> float:
    """Return the largest score with enough weight at or above it, or -inf."""
    total = sums[-1] + _in_units(weight)
    enough = math.ceil((1 - alpha) * total)
    first = bisect_left(sums, enough)
    return float(scores[first]) if total and first < len(sums) else -math.inf
