"""Conformal risk control that holds under attack, for sets of labels and losses other than 0 or 1.

Coverage is the special case of one true label and the loss "it is not in the set".
"""

import math
import operator
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, as_probabilities, as_scores, where
from bincp._utils.levels import Level, check_level, conformal_rank, success_rank
from bincp._utils.validation import check_threshold
from bincp.calibration._arguments import (
    check_calibration_shape,
    check_label_shape,
    check_test_samples,
    check_test_scores,
)
from bincp.calibration._counted import count_rule, default_success_rank
from bincp.calibration._risk_rule import CORRECTIONS, FALSE_NEGATIVE_RATE, RiskRule
from bincp.calibration._triviality import better_p, too_small_p
from bincp.certificates import Certificate, as_certificate
from bincp.counting import decide, kth_largest
from bincp.errors import NotCalibratedError, TrivialSetWarning
from bincp.metrics import as_members, exact_false_negative_rates, false_negative_rate

Sets: TypeAlias = npt.NDArray[np.bool_]
Loss: TypeAlias = Callable[[Sets, Sets], npt.NDArray[np.float64]]


class RobustRiskControl:
    """Prediction sets whose expected loss stays below alpha under attack.

    Each point has a set of true labels (n, K), and a loss in [0, 1] that cannot grow when a set
    does. A label belongs to the set iff at least k of its m' sampled scores reach tau; calibration
    finds tau and k. With one true label a point and the default loss this is `bincp.BinCP` with the
    "two-bounds" union.

    Guarantee: if the calibration points and the test point before the attack are exchangeable, the
    expected loss of the set of any input in the ball around the test point is at most alpha, over
    calibration set, test point and noise. The test draws must be i.i.d. given the input and unknown
    to the adversary, the draws of one calibration point i.i.d.; calibration points, and the labels
    of a point, may share draws. It holds with the correction, or with exact probabilities; with
    ``correction="none"`` **nothing is guaranteed**, and `guarantee` is "none".

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produced the scores and the ball to defend against.
    alpha : int, float, str, Decimal or Fraction
        Level of the expected loss, in (0, 1).
    p : int, float, str, Decimal or Fraction, optional
        Share of the scores of a label that reach its own threshold, in (0, 1]; chosen without the
        calibration and test data. If it is not given, it is chosen as by `bincp.BinCP`, from n, m,
        m', alpha, eta, K and the certificate. Not used by `calibrate_exact`.
    loss : "false-negative-rate" or callable
        ``loss(sets, labels)`` takes two bool arrays (n, K) and returns the losses (n,), in [0, 1],
        taken at their exact binary values. It must not grow when labels are added to a set (which
        is checked on the sets that calibration meets), and must be at most alpha for the set of all
        labels.
    correction : {"clopper-pearson", "none"}
        How the error of sampling is paid for.
    eta : int, float, str, Decimal or Fraction
        Share of alpha spent on sampling error, in (0, alpha): eta / 2 for each confidence bound
        with the default loss, eta / (2 K) with any other.

    Attributes
    ----------
    tau_ : float
        Threshold of the scores; -inf where the calibration set is too small for alpha.
    min_count_ : int or None
        k; None after `calibrate_exact`.
    certified_p_ : float
        Certified lower bound on the probability that an accepted label had at the clean input.
    n_calibration_, n_classes_, n_samples_, n_test_samples_ : int or None
        n, K, m and m'.
    dtype_ : str or None
        Dtype of the scores.

    Notes
    -----
    With exact probabilities p(x, y) at a fixed tau, let C_q(x) = {y : p(x, y) >= q}. These sets
    shrink as q grows, so the loss grows, and ::

        q = max{q : sum_i loss_i(C_q) + 1 <= alpha (n + 1)}

    has an expected loss of at most alpha at a clean point [1]_. If y is in C_q(x), then at any x'
    in the ball p(x', y) >= c(p(x, y)) >= c(q), c the certificate: the robust set
    {y : p(x', y) >= c(q)} contains C_q(x), and its loss is no larger.

    With samples, v(x, y) is the t-th largest of m, t = ceil(p m), and tau is found in the same way
    from the sets {y : v(x, y) >= tau}, at level alpha - eta, with m imagined clean draws for the
    test point. The probability that a score of y reaches v(x, y) itself is at least the lower
    confidence bound L of t successes in m, but for a probability of the level of the bound,
    whatever tau is; and if v(x, y) >= tau, that of reaching tau is no less. At the attacked input
    it is at least c(L), and the count is at least k, the least count with an upper bound of at
    least c(L), but for the level of that bound. So a label of the clean set is lost with
    probability at most twice the level. The false-negative rate is a mean over true labels, so its
    expectation grows by at most as much; that of another loss, bounded by 1, by at most the
    probability that any of the K labels is lost.

    A label is decided once its count has reached k, or cannot reach it any more. The boundaries
    ``SequentialRule.curtailed(rule.min_count_, rule.n_test_samples_)`` stop there and give the same
    sets. Other boundaries have no proof here: a confidence bound is for the count of all draws.

    Threads may predict with one object at the same time. They may also predict while another
    thread calibrates it: the rule is replaced as a whole, at the end, so each prediction is made by
    the old rule or by the new one. Several attributes that are read one after the other may belong
    to two rules then.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei and T. Schuster, "Conformal risk control",
       ICLR 2024.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((200, 4)) < 0.5
    >>> scores = rng.normal(np.where(labels, 1, -1)[..., None], 0.3, (200, 4, 128))
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> rule = bincp.RobustRiskControl(certificate, alpha=0.1).calibrate(scores, labels)
    >>> sets = rule.predict_set(scores)
    >>> bool(sets[labels].mean() > 0.9), bool(sets[~labels].mean() < 0.1)
    (True, True)
    """

    _rule: RiskRule | None

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha: Level = 0.1,
        p: Level | None = None,
        loss: str | Loss = "false-negative-rate",
        correction: str = "clopper-pearson",
        eta: Level = 1e-3,
    ) -> None:
        as_certificate(certificate)
        if not (callable(loss) or (isinstance(loss, str) and loss == FALSE_NEGATIVE_RATE)):
            raise ValueError(f'`loss` must be "false-negative-rate" or callable, got {loss!r}')
        if not isinstance(correction, str) or correction not in CORRECTIONS:
            raise ValueError(f"`correction` must be one of {CORRECTIONS}, got {correction!r}")
        self._rule = None
        self.certificate = certificate
        self.alpha = check_level("alpha", alpha)
        self.p = None if p is None else check_level("p", p, closed_high=True)
        self.loss = loss
        self.correction = correction
        self.eta = check_level("eta", eta)
        if correction == "clopper-pearson" and self.eta >= self.alpha:
            raise ValueError(f"`eta` must be below alpha = {alpha}, got {eta}")

    def __repr__(self) -> str:
        state = "not calibrated" if self._rule is None else f"tau_={self._rule.tau!r}"
        return f"RobustRiskControl(alpha={self.alpha}, {state})"

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack), or "none" for samples without a correction."""
        if self._rule is not None:
            return self._rule.guarantee
        return "none" if self.correction == "none" else "robust"

    @property
    def tau_(self) -> float:
        """Threshold of the scores."""
        return self._fitted.tau

    @property
    def min_count_(self) -> int | None:
        """The least count k that is accepted; None after `calibrate_exact`."""
        return self._fitted.min_count

    @property
    def certified_p_(self) -> float:
        """Certified lower bound on the clean probability of an accepted label."""
        return self._fitted.certified_p

    @property
    def n_calibration_(self) -> int:
        """The number of calibration points n."""
        return self._fitted.n_calibration

    @property
    def n_classes_(self) -> int:
        """The number of classes K."""
        return self._fitted.n_classes

    @property
    def n_samples_(self) -> int | None:
        """The number of samples m in calibration; None after `calibrate_exact`."""
        return self._fitted.n_samples

    @property
    def n_test_samples_(self) -> int | None:
        """The number of samples m' at prediction; None after `calibrate_exact`."""
        return self._fitted.n_test_samples

    @property
    def dtype_(self) -> str | None:
        """Dtype of the scores; None after `calibrate_exact`."""
        return self._fitted.dtype

    @property
    def _fitted(self) -> RiskRule:
        if self._rule is None:
            raise AttributeError(
                "a RobustRiskControl has its fitted attributes only after calibrate()"
            )
        return self._rule

    def calibrate(
        self, scores: ArrayLike, labels: ArrayLike, *, n_test_samples: int | None = None
    ) -> Self:
        """Calibrate on sampled scores of all labels.

        Parameters
        ----------
        scores : array_like of float16, bfloat16, float32 or float64, shape (n, K, m)
            m sampled scores of each label of each calibration point.
        labels : bool array, shape (n, K)
            True labels of each point.
        n_test_samples : int, optional
            m', number of samples at prediction; m if not given.

        Returns
        -------
        RobustRiskControl
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set.

        Raises
        ------
        TypeError
            If the labels are not boolean.
        ValueError
            If shapes or dtypes are wrong, a score is NaN, or the loss breaks its contract.
        """
        checked = as_scores("scores", scores)
        check_calibration_shape(checked, "(n, K, m)")
        n, n_classes, m = checked.bits.shape
        m_test = check_test_samples(n_test_samples, m)
        corrected = self.correction != "none"
        each = self._level(n_classes) if corrected else None
        level = self.alpha - self.eta if corrected else self.alpha
        setting = (self.certificate, n, m, m_test, conformal_rank(level, n), each)
        t = default_success_rank(*setting) if self.p is None else success_rank(self.p, m)
        tau = self._largest_threshold(kth_largest(checked, t), labels, level)
        rule = count_rule(self.certificate, t, m, m_test, each)
        accept_all = tau == -math.inf
        assert rule.certified_p is not None
        better = None if self.p is None or rule.min_count else better_p(*setting)
        return self._with(
            better,
            tau=tau,
            certified_p=0.0 if accept_all else rule.certified_p,
            n_calibration=n,
            n_classes=n_classes,
            min_count=0 if accept_all else rule.min_count,
            success_rank=t,
            n_samples=m,
            n_test_samples=m_test,
            dtype=checked.dtype,
        )

    def calibrate_exact(self, probabilities: ArrayLike, labels: ArrayLike, *, tau: float) -> Self:
        """Calibrate on exact probabilities, without any correction.

        Parameters
        ----------
        probabilities : array_like of float, shape (n, K)
            Probability that a score of each label of each point reaches `tau`.
        labels : bool array, shape (n, K)
            True labels of each point.
        tau : float
            The threshold that they were computed at, fixed in advance.

        Returns
        -------
        RobustRiskControl
            The object itself, calibrated for `predict_set_exact`.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set.

        Raises
        ------
        TypeError
            If the labels are not boolean.
        ValueError
            If a probability is outside [0, 1] or NaN, shapes are wrong, or the loss breaks its
            contract.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.1))
        >>> p = np.stack([np.linspace(0.5, 1, 99), np.zeros(99)], axis=1)
        >>> rule = bincp.RobustRiskControl(certificate).calibrate_exact(p, p > 0, tau=0.4)
        >>> rule.predict_set_exact([[0.9, 0.3]])
        array([[ True, False]])
        """
        values = as_probabilities("probabilities", probabilities)
        if values.ndim != 2 or values.size == 0:
            raise ValueError(f"`probabilities` must have shape (n, K), got {values.shape}")
        threshold = check_threshold("tau", tau)
        q = self._largest_threshold(values, labels, self.alpha)
        return self._with(
            tau=threshold,
            certified_p=min(self.certificate.lower(q), q) if q > 0 else 0.0,
            n_calibration=values.shape[0],
            n_classes=values.shape[1],
        )

    def predict_set(self, scores: ArrayLike) -> Sets:
        """Return the prediction sets of inputs with sampled scores.

        Parameters
        ----------
        scores : array_like, shape (n, K, m')
            m' sampled scores of each label of each input, of the dtype calibrated with.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        ValueError
            If shape, dtype, K or m' differ from those calibrated for, or a score is NaN.
        """
        rule = self._rule
        if rule is None or rule.min_count is None:
            raise NotCalibratedError("call calibrate() before predict_set()")
        checked = as_scores("scores", scores)
        check_test_scores(checked, rule.dtype, rule.n_classes, rule.n_test_samples)
        return decide(checked, rule.tau, rule.min_count)

    def predict_set_exact(self, probabilities: ArrayLike) -> Sets:
        """Return the prediction sets of inputs with exact probabilities.

        Parameters
        ----------
        probabilities : array_like of float, shape (n, K)
            Probability that a score of each label reaches `tau_`.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate_exact` has not been called.
        ValueError
            If a probability is outside [0, 1] or NaN, or the shape is wrong.
        """
        rule = self._rule
        if rule is None or rule.is_sampled:
            raise NotCalibratedError("call calibrate_exact() before predict_set_exact()")
        values = as_probabilities("probabilities", probabilities)
        check_label_shape("probabilities", values.shape, rule.n_classes)
        return np.asarray(values >= rule.certified_p)

    # ---- steps ------------------------------------------------------------------------------

    def _with(self, better_p: Fraction | None = None, **found: Any) -> Self:
        """Replace the rule, at once, and warn if it accepts every label."""
        rule = RiskRule(
            alpha=self.alpha,
            p=self.p,
            loss=self.loss if isinstance(self.loss, str) else None,
            correction=self.correction,
            eta=self.eta,
            certificate=self.certificate.describe(),
            **found,
        )
        self._rule = rule
        _warn_if_trivial(rule, better_p)
        return self

    def _level(self, n_classes: int) -> Fraction:
        """Return the error probability that each confidence bound may have."""
        return self.eta / 2 if isinstance(self.loss, str) else self.eta / (2 * n_classes)

    def _largest_threshold(
        self, values: npt.NDArray[np.floating], labels: ArrayLike, level: Fraction
    ) -> float:
        """Return the largest value v with sum_i loss_i({values_i >= v}) + 1 <= level (n + 1).

        -inf if there is none. The sets change at values only, and the loss grows with v.
        """
        true = as_members("labels", labels)
        if true.shape != values.shape:
            raise ValueError(f"`labels` must have shape {values.shape}, got {true.shape}")
        candidates = np.unique(values)
        budget = level * (len(values) + 1) - 1
        every, none = np.ones_like(true), np.zeros_like(true)
        at_low, at_high = self._losses(every, true), self._losses(none, true)
        if Fraction(float(at_low.max())) > level:
            raise ValueError(
                f"`loss` must be at most {float(level):g}, alpha less what is spent on sampling, "
                f"where every label is in the set, got {at_low.max()}"
            )
        low, high = -1, len(candidates)  # the sets of all labels, and none
        while high - low > 1:
            middle = (low + high) // 2
            sets = values >= candidates[middle]
            losses = self._losses(sets, true)
            _check_monotone(at_low, losses, at_high)
            if self._total(sets, true, losses) <= budget:
                low, at_low = middle, losses
            else:
                high, at_high = middle, losses
        return float(candidates[low]) if low >= 0 else -math.inf

    def _total(self, sets: Sets, true: Sets, losses: npt.NDArray[np.float64]) -> Fraction:
        """Return the sum of the losses, exactly."""
        if isinstance(self.loss, str):
            rates, which = exact_false_negative_rates(sets, true)
            counts = np.bincount(which, minlength=len(rates)).tolist()
            return sum(map(operator.mul, rates, counts), Fraction(0))
        return sum(map(Fraction, losses.tolist()), Fraction(0))

    def _losses(self, sets: Sets, true: Sets) -> npt.NDArray[np.float64]:
        if isinstance(self.loss, str):
            return false_negative_rate(sets, true)
        losses = as_array("loss(sets, labels)", self.loss(sets, true))
        if losses.shape != (len(true),) or losses.dtype.kind not in "fiub":
            raise ValueError(
                f"`loss` must return {len(true)} numbers, got {losses.dtype} {losses.shape}"
            )
        bad = ~((losses >= 0) & (losses <= 1))
        if bad.any():
            raise ValueError(f"`loss` must be in [0, 1], got {losses[bad][0]} {where(bad)}")
        return losses.astype(np.float64)


def _warn_if_trivial(rule: RiskRule, better: Fraction | None) -> None:
    """Warn if every set holds all labels; another p is better where p is the cause."""
    if not rule.accepts_all:
        return
    cause = (
        "the certificate leaves no count or probability that is too low; a smaller radius, more "
        "noise, more samples or a larger alpha would fix it"
    )
    if rule.tau == -math.inf:
        cause = (
            f"n = {rule.n_calibration} calibration points are too few for "
            f"alpha = {float(rule.alpha):g}, or have too few finite scores"
        )
    elif better is not None:
        assert rule.p is not None
        assert rule.n_test_samples is not None
        cause = too_small_p(rule.p, rule.n_test_samples, better)
    warnings.warn(
        f"every label will be in every prediction set: {cause}", TrivialSetWarning, stacklevel=4
    )


def _check_monotone(*losses: npt.NDArray[np.float64]) -> None:
    """Refuse losses of shrinking sets that are not non-decreasing."""
    for smaller, larger in pairwise(losses):
        bad = smaller > larger
        if bad.any():
            raise ValueError(
                "`loss` must not grow when labels are added to a set, "
                f"got {larger[bad][0]} and then {smaller[bad][0]} {where(bad)}"
            )
