"""CAS: robust conformal prediction on means, bounded through the whole CDF of the scores."""

import numpy as np
import numpy.typing as npt

from bincp.baselines._means import Means, SmoothedMean
from bincp.baselines._threshold import FloatArray
from bincp.intervals import EPS, dkw_band

__all__ = ["CAS"]

_BLOCK = 2**21  # samples that are sorted and widened to float64 at a time


class CAS(SmoothedMean):
    """CDF-aware smoothed prediction sets.

    The conformity score of a label is its mean under smoothing. Where RSCP bounds the mean by its
    own worst case, CAS takes the certificate at every step of the CDF and sums: the mean of a
    score in [0, 1] is the integral of its survival function, and the certificate bounds that at
    every point. The confidence bound is Anderson's: a DKW band around the empirical CDF.

    Guarantee: with the correction, if the calibration points and the test point before the attack
    are exchangeable, the set of any input in the ball around the test point contains its label with
    probability at least 1 - alpha; `guarantee` is "robust". The draws at the test input must be
    i.i.d. given the input and unknown to the adversary, those of one calibration point i.i.d.;
    calibration points may share them. **Without the correction nothing is guaranteed**, and
    `guarantee` is "none".

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produced the scores and the ball to defend against.
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    correction : {"dkw", "none"}, optional
        Correction for the error of sampling: a DKW band around each CDF, the default, or none.
    eta : int, float, str, Decimal or Fraction
        Share of alpha spent on sampling error, in (0, alpha): half on each of the two one-sided
        bands that matter, that of the clean test point and that at the attacked input.
    bounds : pair of float
        Known bounds of a score: (0, 1) for TPS, (-1, 0) for APS.
    robust_at : {"calibration", "test"}
        The side that uses the certificate: the CDFs of the calibration points, or those of each
        label in prediction. The sets differ; both have the guarantee.
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others: `rank_` is
        b less than without.

    Attributes
    ----------
    tau_ : float
        Threshold, on the scale that maps `bounds` to [0, 1]; -inf for rank 0.
    rank_ : int
        floor((alpha - eta) (n + 1)) - b, without eta where nothing is corrected.
    n_calibration_, n_samples_, n_test_samples_ : int
        n, m and m'.
    dtype_ : str
        Dtype of the scores.

    Notes
    -----
    Let s_1 <= ... <= s_m be the sorted samples of a score in [0, 1], s_0 = 0, s_(m+1) = 1, and e
    the width of the band. With probability 1 - eta / 2, P[s >= t] >= (m - i + 1) / m - e for all i
    and all t in (s_(i-1), s_i], so at any input in the ball the mean is at least ::

        sum_i (s_i - s_(i-1)) lower(max((m - i + 1) / m - e, 0)),        i = 1, ..., m + 1,

    and the upper bound has + e, min(., 1) and `upper`; without the certificate these are Anderson's
    bounds. The certificate is needed at m + 1 probabilities in all, the same for every point, so
    a bound is a weighted sum of sorted samples; neither their order nor ties matter. The proof of
    coverage is that of `RSCP`, with these bounds.

    A bound is taken outward by 2 (m + 8) units of 2.2e-16, more than its sum can be wrong.

    The published code sets the width of the band to 0 (its correction is commented out), evaluates
    the certificate anew for each point and step, and solves a linear programme for each in the
    sparse case, where `Certificate.lower` has a closed form.

    References
    ----------
    S. H. Zargarbashi, M. S. Akhondzadeh and A. Bojchevski, "Robust yet efficient conformal
    prediction sets", ICML 2024. T. W. Anderson, "Confidence limits for the expected value of an
    arbitrary bounded random variable with a continuous distribution function", 1969.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> from bincp.baselines import CAS
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> true_scores = np.random.default_rng(0).beta(8, 2, (200, 256))
    >>> rule = CAS(certificate, alpha=0.1, eta=0.01).calibrate(true_scores)
    >>> rule.predict_set(np.stack([true_scores, 1 - true_scores], axis=1)).mean(axis=0)
    array([1., 0.])
    """

    _corrections = ("dkw", "none")

    def _calibration_values(self, samples: FloatArray) -> Means:
        m = samples.shape[-1]
        survival = np.maximum(_steps(m) - self._band(m), 0)
        if self.robust_at == "calibration":
            survival = self.certificate.lower(survival)
        return self._integrals(samples, survival, sign=-1)

    def _test_values(self, samples: FloatArray) -> Means:
        m = samples.shape[-1]
        survival = np.minimum(_steps(m) + self._band(m), 1)
        if self.robust_at == "test":
            survival = self.certificate.upper(survival)
        return self._integrals(samples, survival, sign=1)

    def _band(self, m: int) -> float:
        """Return the width of a one-sided band that fails with probability eta / 2."""
        if self.correction == "none":
            return 0.0
        # A unit for the rounding of a step, and one for that of the sum.
        return dkw_band(np.zeros(m), self.eta) + 2 * EPS

    def _integrals(
        self, samples: FloatArray, survival: npt.NDArray[np.float64], *, sign: int
    ) -> Means:
        """Return sum_i (s_i - s_(i-1)) survival_i for each row, rounded down or up by ``sign``.

        In parts: sum_i s_i (survival_i - survival_(i+1)) + survival_(m+1), one product with a
        vector of weights for all rows.
        """
        m = samples.shape[-1]
        weights = survival[:-1] - survival[1:]
        rows = samples.reshape(-1, m)
        sums = np.empty(len(rows))
        step = max(1, _BLOCK // m)
        for start in range(0, len(rows), step):
            block = np.sort(rows[start : start + step], axis=-1)
            sums[start : start + step] = self._on_unit_scale(block) @ weights
        margin = sign * 2 * (m + 8) * EPS
        bounds = np.clip(sums + survival[-1] + margin, 0, 1)
        return np.asarray(bounds.reshape(samples.shape[:-1]))

    def _on_unit_scale(self, samples: FloatArray) -> Means:
        low, high = self.bounds
        values = samples.astype(np.float64, copy=False)
        return values if (low, high) == (0, 1) else np.clip((values - low) / (high - low), 0, 1)


def _steps(m: int) -> npt.NDArray[np.float64]:
    """Return the share of m samples that reach the i-th smallest, i = 1, ..., m + 1."""
    return np.arange(m, -1, -1) / m
