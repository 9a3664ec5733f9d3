"""Verified and Lipschitz conformal prediction: deterministic bounds on a score over the ball."""

from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, where
from bincp._utils.levels import Level, float_above
from bincp._utils.validation import check_real
from bincp.baselines._threshold import (
    SIDES,
    FloatArray,
    ThresholdMethod,
    check_choice,
    check_label_scores,
    check_same_dtype,
    check_true_scores,
)
from bincp.calibration._departures import Poison
from bincp.intervals import check_bounds

__all__ = ["VRCP", "LipRCP"]


class VRCP(ThresholdMethod):
    """Verifiably robust conformal prediction, with the score bounds of any verifier.

    A verifier bounds the score of a label over all inputs of a ball. VRCP-I
    (``robust_at="test"``) calibrates on clean scores and accepts a label iff the upper bound of its
    score around the test input reaches the threshold; VRCP-C (``robust_at="calibration"``)
    calibrates on lower bounds, and predicts from the scores as they are, without a verifier.

    Guarantee: if the calibration points and the test point before the attack are exchangeable, the
    set of any input in the ball around the test point contains its label with probability at least
    1 - alpha. For VRCP-I the verifier's ball must be the inverted one, which holds the clean input
    if it is centred at the attacked one (the same for a norm). The bounds must be sound for the
    scores as computed, rounding included. No noise is needed. `guarantee` is "robust".

    Parameters
    ----------
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    robust_at : {"test", "calibration"}
        VRCP-I or VRCP-C.
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others: `rank_` is
        b less than without.

    Attributes
    ----------
    tau_ : float
        Threshold: the `rank_`-th smallest score (lower bound for VRCP-C), -inf for rank 0.
    rank_ : int
        floor(alpha (n + 1)) - b.
    n_calibration_ : int
        n.
    dtype_ : str
        Dtype of the scores.

    Notes
    -----
    Bounds may have another dtype than the scores: they are compared exactly, as doubles.

    References
    ----------
    L. Jeary, T. Kuipers, M. Hosseini and N. Paoletti, "Verifiably robust conformal prediction",
    NeurIPS 2024.

    See Also
    --------
    bincp.baselines.interval_bounds : A verifier for small torch networks.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.baselines import VRCP
    >>> true_scores = np.arange(1.0, 20.0)
    >>> rule = VRCP(alpha=0.1).calibrate(true_scores)
    >>> scores = np.array([[1.2, 1.8, 2.5]])
    >>> rule.predict_set(scores, upper=scores + 0.5)
    array([[False,  True,  True]])
    >>> rule = VRCP(alpha=0.1, robust_at="calibration")
    >>> rule.calibrate(true_scores, lower=true_scores - 0.5).predict_set(scores)
    array([[False,  True,  True]])
    """

    dtype_: str

    def __init__(
        self, *, alpha: Level = 0.1, robust_at: str = "test", poisoned: Poison = 0
    ) -> None:
        super().__init__(alpha=alpha, poisoned=poisoned)
        self.robust_at = check_choice("robust_at", robust_at, SIDES)

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack)."""
        return "robust"

    def calibrate(self, true_scores: ArrayLike, *, lower: ArrayLike | None = None) -> Self:
        """Calibrate on the scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n,)
            Scores of the clean inputs.
        lower : array_like, shape (n,), for VRCP-C only
            Verified lower bounds of these scores over the ball around each input.

        Returns
        -------
        VRCP
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If there are too few points for `alpha`, or too many lower bounds are -inf.

        Raises
        ------
        TypeError
            If `lower` is missing where it is needed, or given where it is not.
        ValueError
            If an array has a wrong shape or dtype or holds NaN, or a bound is above its score.
        """
        self._check_given("lower", lower, "calibration")
        values, dtype = check_true_scores(true_scores)
        if lower is not None:
            bounds, _ = check_true_scores(lower, name="lower")
            _check_order("lower", bounds, "at most", values)
            values = bounds
        self._fit(values)
        self.dtype_ = dtype
        self._warn_if_trivial()
        return self

    def predict_set(
        self, scores: ArrayLike, *, upper: ArrayLike | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs.

        Parameters
        ----------
        scores : array_like, shape (n, K)
            Scores of the labels of each input, of the dtype calibrated with.
        upper : array_like, shape (n, K), for VRCP-I only
            Verified upper bounds of these scores over the (inverted) ball around each input.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        TypeError
            If `upper` is missing where it is needed, or given where it is not.
        ValueError
            If an array has a wrong shape or dtype or holds NaN, or a bound is below its score.
        """
        self._require_calibrated()
        self._check_given("upper", upper, "test")
        values, dtype = check_label_scores(scores)
        check_same_dtype(dtype, self.dtype_)
        if upper is not None:
            bounds, _ = check_label_scores(upper, name="upper")
            _check_order("upper", bounds, "at least", values)
            values = bounds
        return self._accept(values.astype(np.float64, copy=False))

    def _check_given(self, name: str, bound: ArrayLike | None, side: str) -> None:
        if (bound is not None) != (self.robust_at == side):
            needed = "be given" if self.robust_at == side else "not be given"
            raise TypeError(f'`{name}` must {needed} with robust_at="{self.robust_at}"')

    def _trivial_cause(self) -> str | None:
        if self.rank_ and self.tau_ == -np.inf:
            return (
                f"{self.rank_} of the n = {self.n_calibration_} calibration points have a value of "
                "-inf; finite bounds would fix it"
            )
        return super()._trivial_cause()


class LipRCP(ThresholdMethod):
    """Robust conformal prediction from a Lipschitz constant of the score (Lip-RCP).

    A score that is L-Lipschitz in the input changes by at most L r in a ball of radius r, so its
    bounds need no verifier: the method is `VRCP` with the bounds score - L r and score + L r.

    Guarantee: that of `VRCP`, if `lipschitz` is a Lipschitz constant of the score of *each label*
    (of the score itself: the softmax and the like included) in the norm of the ball.
    `guarantee` is "robust".

    Parameters
    ----------
    lipschitz : float
        L >= 0, in units of the score per unit of the input.
    r : float
        Radius of the ball, >= 0.
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    bounds : pair of float, optional
        Bounds of the score, e.g. (0, 1), to which its bounds over the ball are cut.
    robust_at : {"calibration", "test"}
        The side that is moved: L r is subtracted in calibration or added at test. Both accept the
        same labels, up to rounding.
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others: `rank_` is
        b less than without.

    Attributes
    ----------
    tau_ : float
        Threshold; -inf for rank 0.
    rank_ : int
        floor(alpha (n + 1)) - b.
    n_calibration_ : int
        n.
    dtype_ : str
        Dtype of the scores.

    Notes
    -----
    L r is rounded up, and each bound by one unit in the last place outward. The rounding of the
    network that computes the scores is not covered: `lipschitz` must leave room for it.

    References
    ----------
    T. Massena et al., "Efficient robust conformal prediction via Lipschitz-bounded networks",
    arXiv 2506.05434, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.baselines import LipRCP
    >>> rule = LipRCP(2.0, 0.25, alpha=0.1).calibrate(np.arange(1.0, 20.0))
    >>> round(rule.tau_, 9), rule.predict_set(np.array([[1.2, 1.8]]))
    (1.5, array([[False,  True]]))
    """

    dtype_: str

    def __init__(
        self,
        lipschitz: float,
        r: float,
        *,
        alpha: Level = 0.1,
        bounds: tuple[float, float] | None = None,
        robust_at: str = "calibration",
        poisoned: Poison = 0,
    ) -> None:
        super().__init__(alpha=alpha, poisoned=poisoned)
        self.lipschitz = check_real("lipschitz", lipschitz, low=0)
        self.r = check_real("r", r, low=0)
        self.bounds = None if bounds is None else check_bounds(bounds)
        self.robust_at = check_choice("robust_at", robust_at, SIDES)
        self._shift = float_above(Fraction(self.lipschitz) * Fraction(self.r))
        if self._shift == np.inf:
            raise ValueError("`lipschitz` times `r` must be within the range of doubles")

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack)."""
        return "robust"

    def calibrate(self, true_scores: ArrayLike) -> Self:
        """Calibrate on the scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n,)
            Scores of the clean inputs, within `bounds`.

        Returns
        -------
        LipRCP
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set; the message names the cause and the cure.

        Raises
        ------
        ValueError
            If the scores have a wrong shape or dtype, are NaN or outside `bounds`.
        """
        values, dtype = check_true_scores(true_scores)
        self._fit(self._moved("true_scores", values, "calibration", -1))
        self.dtype_ = dtype
        self._warn_if_trivial()
        return self

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs.

        Parameters
        ----------
        scores : array_like, shape (n, K)
            Scores of the labels of each input, within `bounds`, of the dtype calibrated with.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        ValueError
            If the scores have a wrong shape or dtype, are NaN or outside `bounds`.
        """
        self._require_calibrated()
        values, dtype = check_label_scores(scores)
        check_same_dtype(dtype, self.dtype_)
        return self._accept(self._moved("scores", values, "test", 1))

    def calibration_conformity(self, true_scores: ArrayLike) -> FloatArray:
        """Return the conformity of calibration points; `tau_` is the `rank_`-th smallest of them.

        Parameters
        ----------
        true_scores : array_like, shape (n,)
            As for `calibrate`, which this method does not need.

        Returns
        -------
        ndarray of float64, shape (n,)
            Lower bounds of the scores over the ball, or, with ``robust_at="test"``, the scores.

        Raises
        ------
        ValueError
            As for `calibrate`.
        """
        values, _ = check_true_scores(true_scores)
        return self._moved("true_scores", values, "calibration", -1)

    def conformity(self, scores: ArrayLike) -> FloatArray:
        """Return the conformity of labels; the set of an input holds those of at least `tau_`.

        Parameters
        ----------
        scores : array_like, shape (n, K)
            As for `predict_set`; the method need not be calibrated.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Upper bounds of the scores over the ball, or, with ``robust_at="calibration"``, the
            scores.

        Raises
        ------
        ValueError
            As for `predict_set`.
        """
        values, _ = check_label_scores(scores)
        return self._moved("scores", values, "test", 1)

    def _moved(self, name: str, scores: FloatArray, side: str, sign: int) -> FloatArray:
        """Return the bounds of scores over the ball, or the scores on the side without them."""
        values = scores.astype(np.float64, copy=False)
        low, high = (-np.inf, np.inf) if self.bounds is None else self.bounds
        bad = (values < low) | (values > high)
        if bad.any():
            raise ValueError(
                f"`{name}` must be in [{low:g}, {high:g}], got {values[bad][0]} {where(bad)}"
            )
        if self.robust_at != side or self._shift == 0:
            return values
        moved = np.nextafter(values + sign * self._shift, sign * np.inf)
        return np.clip(moved, low, high)

    def _trivial_cause(self) -> str | None:
        if self.rank_ and self.bounds is not None:
            worst = self._moved("bounds", np.array([self.bounds[0]]), "test", 1)
            if self._accept(worst).all():
                return "L r is too large for this range of scores; a smaller one would fix it"
        return super()._trivial_cause()


def _check_order(name: str, bounds: FloatArray, relation: str, scores: FloatArray) -> None:
    if bounds.shape != scores.shape:
        raise ValueError(
            f"`{name}` must have the shape of the scores, {scores.shape}, got {bounds.shape}"
        )
    b, s = bounds.astype(np.float64, copy=False), scores.astype(np.float64, copy=False)
    bad = b > s if relation == "at most" else b < s
    if bad.any():
        raise ValueError(
            f"`{name}` must be {relation} the score, {s[bad][0]}, got {b[bad][0]} {where(bad)}"
        )
