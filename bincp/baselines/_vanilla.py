"""Conformal prediction without protection: on clean scores, and on means of noisy scores."""

from typing import Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike
from bincp._utils.levels import Level
from bincp.baselines._means import check_points, finite_means, sampled_scores
from bincp.baselines._threshold import (
    ThresholdMethod,
    check_label_scores,
    check_same_dtype,
    check_true_scores,
)
from bincp.calibration._departures import Poison
from bincp.calibration._shared_draws import check_independent

__all__ = ["SmoothedCP", "VanillaCP"]


class VanillaCP(ThresholdMethod):
    """Split conformal prediction on the scores of clean inputs.

    Guarantee: if the calibration points and the test point are exchangeable, the set of the test
    point *as it is* contains its label with probability at least 1 - alpha. Nothing is guaranteed
    under an attack; `guarantee` is "clean".

    Parameters
    ----------
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others: `rank_` is
        b less than without.

    Attributes
    ----------
    tau_ : float
        Threshold: the `rank_`-th smallest score of the true labels, -inf for rank 0.
    rank_ : int
        floor(alpha (n + 1)) - b.
    n_calibration_ : int
        n.
    dtype_ : str
        Dtype of the scores.

    References
    ----------
    Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.baselines import VanillaCP
    >>> rule = VanillaCP(alpha=0.1).calibrate(np.arange(1.0, 20.0))
    >>> rule.tau_, rule.predict_set(np.array([[1.5, 2.0, 2.5]]))
    (2.0, array([[False,  True,  True]]))
    """

    dtype_: str

    def __init__(self, *, alpha: Level = 0.1, poisoned: Poison = 0) -> None:
        super().__init__(alpha=alpha, poisoned=poisoned)

    def calibrate(self, true_scores: ArrayLike) -> Self:
        """Calibrate on the scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n,)
            Larger means better agreement; infinities are ordinary scores.

        Returns
        -------
        VanillaCP
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If there are too few points for `alpha`.

        Raises
        ------
        ValueError
            If the scores have a wrong shape or dtype, or hold NaN.
        """
        values, self.dtype_ = check_true_scores(true_scores)
        self._fit(values)
        self._warn_if_trivial()
        return self

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs.

        Parameters
        ----------
        scores : array_like, shape (n, K)
            Scores of the labels, of the dtype calibrated with.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        ValueError
            If the scores have a wrong shape or dtype, or hold NaN.
        """
        self._require_calibrated()
        values, dtype = check_label_scores(scores)
        check_same_dtype(dtype, self.dtype_)
        return self._accept(values)


class SmoothedCP(ThresholdMethod):
    """Split conformal prediction on the mean score of noisy copies of each input.

    Guarantee: as `VanillaCP`, without an attack only. The means of m draws are exchangeable
    scores, however few the draws, if each point (of both sets) has m draws of its own; so no
    sampling error needs correcting, but m' must be m. Smoothing alone makes nothing robust.

    Parameters
    ----------
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others: `rank_` is
        b less than without.

    Attributes
    ----------
    tau_, rank_, n_calibration_
        The same as in `VanillaCP`.
    n_samples_ : int
        m.
    dtype_ : str
        Dtype of the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.baselines import SmoothedCP
    >>> scores = np.random.default_rng(0).normal(1, 0.3, (200, 64))
    >>> rule = SmoothedCP(alpha=0.1).calibrate(scores)
    >>> rule.predict_set(np.stack([scores, scores - 1], axis=1)).mean(axis=0)
    array([0.905, 0.   ])
    """

    n_samples_: int
    dtype_: str

    def __init__(self, *, alpha: Level = 0.1, poisoned: Poison = 0) -> None:
        super().__init__(alpha=alpha, poisoned=poisoned)

    def calibrate(self, true_scores: ArrayLike) -> Self:
        """Calibrate on sampled scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n, m)
            Finite.

        Returns
        -------
        SmoothedCP
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If there are too few points for `alpha`.

        Raises
        ------
        ValueError
            If the scores have a wrong shape or dtype, or are not finite, or if the points share
            their draws.
        """
        check_independent(true_scores, cure="")
        samples, dtype = sampled_scores("true_scores", true_scores)
        check_points(samples)
        self._fit(finite_means("true_scores", samples))
        self.n_samples_, self.dtype_ = samples.shape[1], dtype
        self._warn_if_trivial()
        return self

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with sampled scores.

        Parameters
        ----------
        scores : array_like, shape (n, K, m)
            Finite, of the dtype calibrated with.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        ValueError
            If shape, dtype or the number of samples differ from those calibrated with, or a score
            is not finite.
        """
        self._require_calibrated()
        samples, dtype = sampled_scores("scores", scores)
        check_same_dtype(dtype, self.dtype_)
        if samples.ndim != 3 or samples.shape[2] != self.n_samples_:
            raise ValueError(
                f"`scores` must have shape (n, K, m) with the m = {self.n_samples_} samples "
                f"calibrated with, or the means are not exchangeable, got {samples.shape}"
            )
        return self._accept(finite_means("scores", samples))
