"""RSCP and RSCP+: robust conformal prediction on the mean of the smoothed score."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_scores
from bincp._utils.levels import Level
from bincp._utils.validation import check_integer, check_real
from bincp.baselines._means import (
    Means,
    SmoothedMean,
    check_means,
    row_means,
    unit_above,
    unit_below,
)
from bincp.baselines._threshold import FloatArray
from bincp.calibration._departures import Poison
from bincp.certificates import Certificate
from bincp.errors import NotCalibratedError
from bincp.intervals import bernstein_lower, bernstein_upper, hoeffding_lower, hoeffding_upper
from bincp.scores import ptt

__all__ = ["RSCP", "RankedRSCP"]

_MEAN_BOUNDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "hoeffding": (hoeffding_lower, hoeffding_upper),
    "bernstein": (bernstein_lower, bernstein_upper),
}


class RSCP(SmoothedMean):
    """Randomly smoothed conformal prediction (RSCP), and with a correction RSCP+.

    The conformity score of a label is its mean under smoothing, which the certificate bounds over
    the ball. RSCP [1]_ (``correction="none"``) takes sampled means for exact ones; RSCP+ [2]_
    corrects both sides by a confidence bound.

    Guarantee: with a correction, or with exact means (`calibrate_exact`), if the calibration points
    and the test point before the attack are exchangeable, the set of any input in the ball around
    the test point contains its label with probability at least 1 - alpha; `guarantee` is "robust".
    The draws at the test input must be i.i.d. given the input and unknown to the adversary, those
    of one calibration point i.i.d.; calibration points may share them. The certificate must hold
    for random scores (randomised tests), as all those of `bincp.certify` do. **With sampled means
    and no correction nothing is guaranteed**, and `guarantee` is "none".

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produced the scores and the ball to defend against. The
        papers have Gaussian noise; any other certificate bounds a mean in [0, 1] as well.
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    correction : {"hoeffding", "bernstein", "none"}, optional
        Confidence bound on each mean: Hoeffding's by default, as in [2]_; empirical Bernstein; or
        none.
    eta : int, float, str, Decimal or Fraction
        Share of alpha spent on sampling error, in (0, alpha): half on each of the two means that
        matter, that of the clean test point and that at the attacked input (beta in [2]_ is
        eta / 2).
    bounds : pair of float
        Known bounds of a score: (0, 1) for TPS, (-1, 0) for APS.
    robust_at : {"calibration", "test"}
        The side that uses the certificate: it lowers the calibration values or, as in the papers,
        raises the test values, at the cost of one evaluation for each label. Both accept the same
        labels, up to rounding.
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others: `rank_` is
        b less than without.

    Attributes
    ----------
    tau_ : float
        Threshold, on the scale that maps `bounds` to [0, 1]; -inf for rank 0.
    rank_ : int
        floor((alpha - eta) (n + 1)) - b, without eta where nothing is corrected.
    n_calibration_, n_samples_, n_test_samples_ : int or None
        n, m and m'.
    dtype_ : str or None
        Dtype of the sampled scores.

    Notes
    -----
    Proof. Let L be the lower bound from m clean draws of a point, U the upper bound from m' draws
    at the attacked input, each wrong with probability eta / 2, c the certificate, and imagine m
    clean draws for the clean test point. Its L is below the rank-th smallest of the n with
    probability at most alpha - eta. Else, and unless a bound is wrong, the mean at the clean input
    is at least L, that at the attacked one at least c(L), and U >= c(L) >= tau.

    The published code of RSCP has no correction, takes an interpolated quantile, and bounds means
    through a normal quantile that is infinite for a mean of 0 or 1.

    References
    ----------
    .. [1] A. Gendler, T.-W. Weng, L. Daniel and Y. Romano, "Adversarially robust conformal
       prediction", ICLR 2022.
    .. [2] G. Yan, Y. Romano and T.-W. Weng, "Provably robust conformal prediction with improved
       efficiency", ICLR 2024.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> from bincp.baselines import RSCP
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> true_scores = np.random.default_rng(0).beta(8, 2, (200, 256))
    >>> rule = RSCP(certificate, alpha=0.1, eta=0.01).calibrate(true_scores)
    >>> rule.predict_set(np.stack([true_scores, 1 - true_scores], axis=1)).mean(axis=0)
    array([1., 0.])
    """

    _corrections = (*_MEAN_BOUNDS, "none")

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack), or "none" for uncorrected sampled means."""
        return "robust" if self._is_exact() else super().guarantee

    def calibrate_exact(self, means: ArrayLike) -> Self:
        """Calibrate on exact means of the smoothed score of the true labels.

        Parameters
        ----------
        means : array_like of float64, shape (n,)
            Within `bounds`. Narrower numbers are refused, as bounds are told in doubles.

        Returns
        -------
        RSCP
            The object itself, calibrated at level alpha for `predict_set_exact`.

        Warns
        -----
        TrivialSetWarning
            If there are too few points for `alpha`.

        Raises
        ------
        TypeError
            If the means are not real numbers.
        ValueError
            If shape or dtype are wrong, or a mean is NaN or outside `bounds`.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> from bincp.baselines import RSCP
        >>> certificate = bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.1))
        >>> rule = RSCP(certificate).calibrate_exact(np.linspace(0.5, 1, 99))
        >>> rule.predict_set_exact([[0.9, 0.5, 0.3]])
        array([[ True,  True, False]])
        """
        values = unit_below(check_means("means", means, self.bounds, ndim=1), self.bounds)
        self._fit(self._lowered(values))
        self.n_samples_ = self.n_test_samples_ = self.dtype_ = None
        self._warn_if_trivial()
        return self

    def predict_set_exact(self, means: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with exact means.

        Parameters
        ----------
        means : array_like of float64, shape (n, K)
            Mean smoothed score of each label of each input, within `bounds`.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate_exact` has not been called.
        TypeError, ValueError
            As for `calibrate_exact`.
        """
        if not self._is_exact():
            raise NotCalibratedError("call calibrate_exact() before predict_set_exact()")
        values = unit_above(check_means("means", means, self.bounds, ndim=2), self.bounds)
        return self._accept(self._raised(values))

    def _is_exact(self) -> bool:
        return hasattr(self, "tau_") and self.n_samples_ is None

    def _calibration_values(self, samples: FloatArray) -> Means:
        return self._lowered(unit_below(self._bound(samples, 0), self.bounds))

    def _test_values(self, samples: FloatArray) -> Means:
        return self._raised(unit_above(self._bound(samples, 1), self.bounds))

    def _bound(self, samples: FloatArray, side: int) -> Means:
        if self.correction == "none":
            return row_means(samples)
        bound = _MEAN_BOUNDS[self.correction][side]
        return np.asarray(bound(samples, self.eta / 2, bounds=self.bounds))

    def _lowered(self, values: Means) -> Means:
        if self.robust_at == "test":
            return values
        return np.asarray(self.certificate.lower(values))

    def _raised(self, values: Means) -> Means:
        if self.robust_at == "calibration":
            return values
        return np.asarray(self.certificate.upper(values))


class RankedRSCP(RSCP):
    """RSCP+ on scores after the ranking transformation (post-training transformation, PTT).

    Each score is replaced by its rank among the scores of a tuning set, pushed through a steep
    sigmoid around the expected threshold, so that most scores are far from it on a scale of [0, 1]
    and the bounds on means cost less. `calibrate` and `predict_set` take untransformed scores (the
    exact means of `calibrate_exact` are those of transformed ones).

    Guarantee: as `RSCP`, given the tuning set: the tuning points must be neither calibration nor
    test points, and their noise must be independent of that of both, as the phase "tuning" of
    `bincp.sampling` is. `b` and `temperature` may be tuned on these points, too. Ties with tuning
    scores are broken at random, a part of the noise.

    Parameters
    ----------
    certificate : Certificate
        Certificate, as in `RSCP`.
    tuning_scores : array_like, any shape
        Scores of the true labels of the tuning points, with or without noise, all taken alike.
        They are copied.
    seed : int
        Seed of the random numbers that break ties.
    alpha, correction, eta, robust_at, poisoned
        The same as in `RSCP`.
    b : float, optional
        Share of the tuning scores below the middle of the sigmoid; alpha if not given (the paper
        has 1 - alpha, for scores where small means good agreement).
    temperature : float
        T > 0, width of the sigmoid in ranks as a share; 1/400 in the paper.

    See Also
    --------
    bincp.scores.ptt : The transformation.

    References
    ----------
    Yan, Romano and Weng, "Provably robust conformal prediction with improved efficiency",
    ICLR 2024, Section 4.2.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> from bincp.baselines import RankedRSCP
    >>> rng = np.random.default_rng(0)
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> tuning, true_scores = rng.beta(8, 2, (2, 200, 256))
    >>> rule = RankedRSCP(certificate, tuning, seed=0, eta=0.01).calibrate(true_scores)
    >>> rule.predict_set(np.stack([true_scores, 1 - true_scores], axis=1)).mean(axis=0)
    array([1., 0.])
    """

    def __init__(
        self,
        certificate: Certificate,
        tuning_scores: ArrayLike,
        *,
        seed: int,
        alpha: Level = 0.1,
        b: float | None = None,
        temperature: float = 1 / 400,
        correction: str = "hoeffding",
        eta: Level = 1e-3,
        robust_at: str = "calibration",
        poisoned: Poison = 0,
    ) -> None:
        super().__init__(
            certificate,
            alpha=alpha,
            correction=correction,
            eta=eta,
            robust_at=robust_at,
            poisoned=poisoned,
        )
        self.seed = check_integer("seed", seed, low=0)
        self.b = float(self.alpha) if b is None else check_real("b", b)
        self.temperature = check_real("temperature", temperature, low=0, open_low=True)
        # As an array, whatever the scores come as; a copy, as ranks must not change later.
        self._tuning_scores = as_scores("tuning_scores", tuning_scores).values().copy()
        ptt(np.empty((0, 1), self._tuning_scores.dtype), self._tuning_scores, 0.0)

    def _samples(self, name: str, scores: ArrayLike) -> FloatArray:
        values = as_scores(name, scores).values()
        if values.ndim == 0:
            raise ValueError(f"`{name}` must have at least one axis, got a scalar")
        rng = np.random.default_rng([self.seed, name == "scores"])
        ranked = ptt(
            values,
            self._tuning_scores,
            rng.random(values.shape),
            b=self.b,
            temperature=self.temperature,
        )
        return super()._samples(name, ranked)
