"""RCP1: robust conformal prediction from one noisy sample of each input."""

import copy
import math
from typing import Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_scores
from bincp._utils.estimators import Estimator
from bincp._utils.levels import Level
from bincp.calibration import one_sample
from bincp.calibration._departures import Poison
from bincp.certificates import Certificate, as_certificate

__all__ = ["RCP1"]


class RCP1(Estimator):
    """Robust conformal prediction with one noisy sample of each input (RCP1).

    Plain conformal prediction on scores of noisy inputs, at a level alpha' that leaves room for the
    attack: the certificate bounds the coverage itself. The paper takes
    1 - alpha' = upper(1 - alpha); here the largest rank is found whose coverage under the worst
    attack is at least 1 - alpha, which is the same for a convex certificate (one less at most where
    alpha' (n + 1) is a whole number) and right for others.

    Guarantee: if the calibration points and the test point before the attack are exchangeable, the
    set of any input in the ball around the test point contains its label with probability at least
    1 - alpha, over calibration set, test point and noise. Nothing is spent on sampling error.
    Each input needs a draw of its own, the test draw unknown to the adversary. `guarantee` is
    "robust".

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produced the scores and the ball to defend against.
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
        floor(alpha' (n + 1)); 0 where only the set of all labels keeps the coverage.
    n_calibration_ : int
        n.

    Notes
    -----
    The method is `bincp.one_sample`, a `bincp.BinCP` with m = m' = 1, and its proof is in the notes
    there.

    References
    ----------
    S. H. Zargarbashi, M. S. Akhondzadeh and A. Bojchevski, "One sample is enough to make conformal
    prediction robust", NeurIPS 2025.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> from bincp.baselines import RCP1
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> scores = np.random.default_rng(0).normal(1, 0.3, (500, 1))
    >>> rule = RCP1(certificate, alpha=0.1).calibrate(scores)
    >>> rule.rank_, int((1 - certificate.upper(0.9)) * 501)
    (34, 34)
    """

    guarantee = "robust"

    tau_: float
    rank_: int
    n_calibration_: int

    def __init__(
        self, certificate: Certificate, *, alpha: Level = 0.1, poisoned: Poison = 0
    ) -> None:
        self.certificate = as_certificate(certificate)
        self._rule = one_sample(certificate, alpha=alpha, poisoned=poisoned)
        self.alpha = self._rule.alpha
        self.poisoned = self._rule.poisoned

    def __repr__(self) -> str:
        return f"RCP1({self._rule!r})"

    def calibrate(self, true_scores: ArrayLike) -> Self:
        """Calibrate on one noisy score of each true label.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n, 1)

        Returns
        -------
        RCP1
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set; the message names the cause and the cure.

        Raises
        ------
        ValueError
            If the scores have a wrong shape or dtype, or hold NaN.
        """
        shape = as_scores("true_scores", true_scores).bits.shape
        if len(shape) != 2 or shape[1] != 1:
            raise ValueError(f"`true_scores` must have shape (n, 1), got {shape}")
        rule = copy.copy(self._rule)  # copies of this object keep their calibration
        rule.calibrate(true_scores)  # which knows if its noise is shared
        accepts_all = rule.min_count_ == 0
        assert rule.rank_ is not None
        self._rule = rule
        self.tau_ = -math.inf if accepts_all else rule.tau_
        self.rank_ = 0 if accepts_all else rule.rank_
        self.n_calibration_ = rule.n_calibration_
        return self

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with one noisy score of each label.

        Parameters
        ----------
        scores : array_like, shape (n, K, 1)
            Scores of the dtype calibrated with.

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
        return self._rule.predict_set(scores)
