"""Conformal risk control that holds under attack, for sets of labels and losses other than 0 or 1.

Coverage is the special case of one true label and the loss "it is not in the set".
"""

import logging
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from os import PathLike
from typing import Any, Self, TypeVar

from bincp._utils.arrays import ArrayLike, as_probabilities, as_scores, check_exact
from bincp._utils.levels import Level, check_level, shown
from bincp._utils.validation import check_flag, check_threshold
from bincp.calibration import _storage
from bincp.calibration._arguments import (
    check_calibration_shape,
    check_passes,
    check_test_samples,
)
from bincp.calibration._attributes import Certified, Shown, fitted
from bincp.calibration._departures import Noise, Poison, checked_departures
from bincp.calibration._prediction import (
    sampled,
    sets_from_counts,
    sets_from_probabilities,
    sets_from_scores,
)
from bincp.calibration._risk_counts import better_p_of, fit_counts
from bincp.calibration._risk_rule import (
    ANY_MISSED,
    CORRECTIONS,
    FALSE_NEGATIVE_RATE,
    LOSSES,
    RiskRule,
    RiskSettings,
)
from bincp.calibration._risk_threshold import Loss, Sets, largest_threshold
from bincp.calibration._shared_draws import check_independent
from bincp.calibration._stored import StoredScores
from bincp.calibration._told import log_choice
from bincp.calibration._triviality import too_few_points, too_small_p
from bincp.certificates import Certificate, as_certificate
from bincp.counting import kth_largest
from bincp.errors import TrivialSetWarning
from bincp.shifts import Shift

T = TypeVar("T")

_log = logging.getLogger(__name__)


def _fitted(read: Callable[[RiskRule], T]) -> Shown[T]:
    return fitted(read)


class RobustRiskControl(Certified):
    """Prediction sets whose expected loss stays below alpha under attack.

    Each point has a set of true labels (n, K), and a loss in [0, 1] that cannot grow when a set
    does. A label belongs to the set iff at least k of its m' sampled scores reach tau; calibration
    finds tau and k. With one true label a point and the default loss this is `bincp.BinCP` with
    ranks, or with the "two-bounds" union.

    Guarantee: if the calibration points and the test point before the attack are exchangeable, the
    expected loss of the set of any input in the ball around the test point is at most alpha, over
    calibration set, test point and noise. The test draws must be i.i.d. given the input and unknown
    to the adversary, the draws of one calibration point i.i.d.; the labels of a point may share
    draws. For "mixture" the draws of different calibration points must be independent; for
    "clopper-pearson" they may be shared. It holds with these corrections, or with exact
    probabilities; with ``correction="none"`` **nothing is guaranteed**, and `guarantee` is "none".

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
    loss : "false-negative-rate", "any-missed" or callable
        The share of the true labels that are missing, or 1 if any is. Else
        ``loss(sets, labels)`` takes two bool arrays (n, K), which it may write to, and returns the
        losses (n,), in [0, 1], taken at their exact binary values. It must not grow when labels are
        added to a set (which is checked on the sets that calibration meets), and must be at most
        alpha for the set of all labels.
    correction : {"mixture", "clopper-pearson", "none"}
        How the error of sampling is paid for. "mixture" assumes the worst mixture of binomial
        distributions that calibration leaves possible; with an additive loss nothing else is spent,
        and with another one the K labels are paid for by a part of alpha. "clopper-pearson" has
        confidence bounds.
    eta : int, float, str, Decimal or Fraction
        Share of alpha spent on sampling error, in (0, alpha), by "clopper-pearson" only: eta / 2
        for each confidence bound with an additive loss, eta / (2 K) with any other.
    passes : None, "auto" or a number of at least 1, optional
        How many forward passes a test input may cost, as in `BinCP`; a number needs "mixture".
    additive : bool
        Declare that a loss that is a function adds up: it is a sum, over the true labels that are
        missing, of weights that depend on the input and its true labels and add up to 1 at most.
        This is checked on the sets that calibration meets, by the losses of sets that miss one true
        label. The false-negative rate is such a loss.
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others: the
        n - b largest losses are added up, and each of b points costs 1. Or d, the most that were
        only deleted: each costs 1, and counts for n. Or d, the most that were only inserted: the
        n - d largest losses are added up, as of n - d points.
    label_noise : None, ("count", c), ("rate", e) or ("mean-rate", e), optional
        What is known of calibration points with wrong sets of true labels, as in `BinCP`.
    shift : bincp.shifts.Shift, optional
        How far the law of the clean test points may be from that of the calibration points, which
        must be i.i.d. then.

    Attributes
    ----------
    tau_ : float
        Threshold of the scores; -inf where the calibration set is too small for alpha.
    min_count_ : int or None
        k; None after `calibrate_exact`.
    success_rank_ : int or None
        t: at least t of the m scores of a label reach its own threshold; None after
        `calibrate_exact`.
    p_ : float
        Nominal p, t / m; after `calibrate_exact` the largest probability that may be asked for at
        the clean input.
    p_lower_ : float or None
        Confidence bound on `p_`, where there is one.
    certified_p_ : float
        Certified lower bound under attack, at `p_lower_`, or at `p_` where there is none; 0 where
        every label is accepted.
    total_loss_ : Fraction or None
        Sum of the losses of the calibration points that decided, without the b smallest: at most
        alpha (n + 1) - (b + 1), less what is spent on sampling and on a shift. None where the
        calibration set is too small for alpha.
    n_calibration_, n_classes_, n_samples_, n_test_samples_ : int or None
        n, K, m and m'.
    dtype_ : str or None
        Dtype of the scores.
    boundaries_ : SequentialRule or None
        When a label is accepted or refused; None where it is decided by the count of all m' draws.

    Notes
    -----
    With exact probabilities p(x, y) at a fixed tau, let C_q(x) = {y : p(x, y) >= q}. These sets
    shrink as q grows, so the loss grows, and ::

        q = max{q : sum_i loss_i(C_q) + 1 <= alpha (n + 1)}

    has an expected loss of at most alpha at a clean point [1]_. If y is in C_q(x), then at any x'
    in the ball p(x', y) >= c(p(x, y)) >= c(q), c the certificate: the robust set
    {y : p(x', y) >= c(q)} contains C_q(x), and its loss is no larger.

    With samples, v(x, y) is the t-th largest of m, and tau is found in the same way from the sets
    {y : v(x, y) >= tau}, at a level a', with m imagined clean draws for the test point.

    *Mixture.* Let p be the probability that a clean score of a label reaches tau, u(p) the
    probability that fewer than t of m do, and v(p) the largest probability that the test refuses
    the label at an attacked input. With weights w of the true labels, the imagined point loses
    sum_y w_y u(p_y) in the mean, which is at most a', and the attacked one at most
    sum_y w_y v(p_y). Under the law of p that is weighted by w, with the rest of the weight at
    u = v = 0, the means of u and v are these; so the upper concave envelope of the curve (u, v) at
    a' is a bound on the loss, as in `BinCP`. How the labels depend on each other does not matter.
    Any other loss is at most that of the imagined set, or 1 if a label of the imagined set is
    refused: a' + K D, D the largest (1 - u(p)) v(p). The loss "any-missed" has another bound, too,
    and the better one is used. Let p be the least probability of a true label. The imagined point
    loses at least u(p), whose mean is at most a', and the attacked one at most min(1, K v(p)): the
    envelope of these two at a' is a bound. A shift acts on 1 less the loss, as on the
    probability of an event. Poison: the losses of the clean points that are left are at most the
    n - b largest that are seen, and those of the others at most 1. The same is said of n + d points
    where d were deleted. Of inserted points, D <= d, the n - D largest losses bound those of the
    clean ones. If they and 1 are at most a' (n - D + 1) for D = d, then for fewer, too: each
    further loss is at most the mean of the larger ones, which is below a'. Neither a' nor the test
    depends on n then, which the adversary chooses.

    *Confidence bounds.* The level is alpha - eta. The probability that a score of y reaches v(x, y)
    itself is at least the lower confidence bound L of t successes in m, but for a probability of
    the level of the bound, whatever tau is; and if v(x, y) >= tau, that of reaching tau is no less.
    At the attacked input it is at least c(L), and the count is at least k, the least count with an
    upper bound of at least c(L), but for the level of that bound. So a label of the clean set is
    lost with probability at most twice the level. The false-negative rate is a mean over true
    labels, so its expectation grows by at most as much; that of another loss, bounded by 1, by at
    most the probability that any of the K labels is lost.

    A label is decided once its count has reached k, or cannot reach it any more. The boundaries
    ``SequentialRule.curtailed(rule.min_count_, rule.n_test_samples_)`` stop there and give the same
    sets. Other boundaries have a proof with "mixture" only, which makes them with `passes`: a
    confidence bound is for the count of all draws.

    Attacks on the calibration inputs are not offered: the losses of several labels under one attack
    have no bound that an exchangeable point has, too.

    Threads may predict with one object, and save it, at the same time, also while another thread
    calibrates it: the rule is replaced as a whole, at the end, so each prediction and each file is
    made by the old rule or by the new one. Several attributes that are read one after the other may
    belong to two rules then.

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

    _settings: RiskSettings
    _rule: RiskRule | None

    loss = Shown[str | Loss | None](lambda owner: owner._loss)
    tau_ = _fitted(lambda rule: rule.tau)
    min_count_ = _fitted(lambda rule: rule.min_count)
    success_rank_ = _fitted(lambda rule: rule.success_rank)
    total_loss_ = _fitted(lambda rule: rule.total_loss)
    n_calibration_ = _fitted(lambda rule: rule.n_calibration)
    n_classes_ = _fitted(lambda rule: rule.n_classes)
    n_samples_ = _fitted(lambda rule: rule.n_samples)
    n_test_samples_ = _fitted(lambda rule: rule.n_test_samples)
    dtype_ = _fitted(lambda rule: rule.dtype)
    p_ = _fitted(lambda rule: rule.p)
    p_lower_ = _fitted(lambda rule: rule.p_lower)
    certified_p_ = _fitted(lambda rule: rule.certified_p)
    boundaries_ = _fitted(lambda rule: rule.boundaries)
    passes = Shown[Fraction | str | None](lambda owner: owner._settings.passes)
    additive = Shown[bool](lambda owner: owner._settings.additive)

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha: Level = 0.1,
        p: Level | None = None,
        loss: str | Loss = FALSE_NEGATIVE_RATE,
        correction: str = "mixture",
        eta: Level = 1e-3,
        passes: Level | None = None,
        additive: bool = False,
        poisoned: Poison = 0,
        label_noise: Noise | None = None,
        shift: Shift | None = None,
    ) -> None:
        as_certificate(certificate)
        name = loss if isinstance(loss, str) and loss in LOSSES else None
        if name is None and not callable(loss):
            raise ValueError(f"`loss` must be one of {LOSSES} or callable, got {loss!r}")
        if not isinstance(correction, str) or correction not in CORRECTIONS:
            raise ValueError(f"`correction` must be one of {CORRECTIONS}, got {correction!r}")
        if name == ANY_MISSED and additive:
            raise ValueError(
                '`additive` must be False for the loss "any-missed", which is no sum over labels, '
                f"got {additive!r}"
            )
        self._certificate = certificate
        self._loss: str | Loss | None = loss
        self._rule = None
        self._settings = RiskSettings(
            alpha=check_level("alpha", alpha),
            p=None if p is None else check_level("p", p, closed_high=True),
            loss=name,
            correction=correction,
            eta=check_level("eta", eta),
            passes=check_passes(passes, correction, None),
            additive=check_flag("additive", additive),
            **checked_departures(poisoned, label_noise, shift, False),
        )
        self._settings.check_with(certificate)
        if correction == "clopper-pearson" and self.eta >= self.alpha:
            raise ValueError(f"`eta` must be below alpha = {alpha}, got {eta}")

    @classmethod
    def _with_rule(cls, rule: RiskRule, certificate: Certificate | None) -> "RobustRiskControl":
        """Return a calibrated object."""
        made = cls.__new__(cls)
        made._certificate, made._settings, made._rule = certificate, rule.settings, rule
        made._loss = rule.settings.loss
        return made

    def __repr__(self) -> str:
        state = "not calibrated" if self._rule is None else f"tau_={self._rule.tau!r}"
        return f"RobustRiskControl(alpha={self.alpha}, {state})"

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack), or "none" for samples without a correction."""
        if self._rule is not None:
            return self._rule.guarantee
        return "none" if self.correction == "none" else "robust"

    def calibrate(
        self, scores: ArrayLike, labels: ArrayLike, *, n_test_samples: int | None = None
    ) -> Self:
        """Calibrate on sampled scores of all labels.

        Parameters
        ----------
        scores : array_like of float16, bfloat16, float32 or float64, shape (n, K, m), or Run
            m sampled scores of each label of each calibration point. Or a run of
            `bincp.sampling.run` that keeps all scores.
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
            If shapes or dtypes are wrong, a score is NaN, or the loss breaks its contract. If a run
            is for other noise or test points, or does not keep all scores. If the points share
            their draws and the correction is "mixture".
        FileNotFoundError
            If a run is not complete.
        """
        certificate, loss = self._require_certificate(), self._require_loss()
        provenance = None
        if isinstance(scores, StoredScores):
            provenance = scores.provenance()
            scores = scores.all_scores(certificate.describe())
        settings = self._settings
        check_independent(scores, settings.correction, cure='correction="clopper-pearson" or ')
        checked = as_scores("scores", scores)
        check_calibration_shape(checked, "(n, K, m)")
        n, n_classes, m = checked.bits.shape
        m_test = check_test_samples(n_test_samples, m)
        found = fit_counts(certificate, settings, n, n_classes, m, m_test)
        t, rule = found.t, found.counts
        tau, total_loss = largest_threshold(
            kth_largest(checked, t),
            labels,
            loss,
            found.level,
            settings.lost,
            size=settings.clean_size(n),
            additive=settings.additive,
        )
        accept_all = tau == -math.inf
        return self._with(
            certificate,
            None if rule.min_count else better_p_of(certificate, settings, n, n_classes, m, m_test),
            tau=tau,
            total_loss=total_loss,
            n_calibration=n,
            n_classes=n_classes,
            min_count=0 if accept_all else rule.min_count,
            share=found.level if settings.correction == "mixture" else None,
            boundaries=None if accept_all or not rule.min_count else found.boundaries,
            success_rank=t,
            n_samples=m,
            n_test_samples=m_test,
            dtype=checked.dtype,
            p=rule.p,
            p_lower=rule.p_lower,
            certified_p=0.0 if accept_all else rule.certified_p,
            provenance=provenance,
        )

    def calibrate_exact(self, probabilities: ArrayLike, labels: ArrayLike, *, tau: float) -> Self:
        """Calibrate on exact probabilities, without any correction.

        Parameters
        ----------
        probabilities : array_like of float64, shape (n, K)
            Probability that a score of each label of each point reaches `tau`: the double nearest
            to it. Narrower numbers are refused, as bounds are told in doubles.
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
            If a probability is outside [0, 1] or NaN, shapes or the dtype are wrong, or the loss
            breaks its contract.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.1))
        >>> p = np.stack([np.linspace(0.5, 1, 99), np.zeros(99)], axis=1)
        >>> rule = bincp.RobustRiskControl(certificate).calibrate_exact(p, p > 0, tau=0.4)
        >>> rule.predict_set_exact([[0.9, 0.3]])
        array([[ True, False]])
        """
        certificate, loss = self._require_certificate(), self._require_loss()
        check_exact("probabilities", probabilities)
        values = as_probabilities("probabilities", probabilities)
        if values.ndim != 2 or values.size == 0:
            raise ValueError(f"`probabilities` must have shape (n, K), got {values.shape}")
        threshold = check_threshold("tau", tau)
        settings = self._settings
        largest, total_loss = largest_threshold(
            values,
            labels,
            loss,
            settings.level,
            settings.lost,
            size=settings.clean_size(len(values)),
            additive=settings.additive,
        )
        p = max(0.0, largest)
        return self._with(
            certificate,
            tau=threshold,
            total_loss=total_loss,
            n_calibration=values.shape[0],
            n_classes=values.shape[1],
            p=p,
            certified_p=min(settings.worst(certificate).lower(p), p),
        )

    def predict_set(self, scores: ArrayLike) -> Sets:
        """Return the prediction sets of inputs with sampled scores.

        Parameters
        ----------
        scores : array_like, shape (n, K, m'), or Run
            m' sampled scores of each label of each input, of the dtype calibrated with. Or a run of
            `bincp.sampling.run` with all scores, or with counts at `tau_`.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        ValueError
            If shape, dtype, K or m' differ from those calibrated for, or a score is NaN. If a run
            is for other noise or calibration points, or does not keep what the rule needs.
        FileNotFoundError
            If a run is not complete.
        """
        rule = sampled(self._rule)
        return (
            scores.sets_of(self)
            if isinstance(scores, StoredScores)
            else sets_from_scores(rule, scores)
        )

    def predict_set_from_counts(self, counts: ArrayLike, *, n_samples: int | None = None) -> Sets:
        """Return the prediction sets of inputs with exceedance counts.

        Parameters
        ----------
        counts : array_like of int, shape (n, K), or Counts
            How many of the scores of each label reach `tau_`, compared in the dtype calibrated
            with; in [0, m'].
        n_samples : int, optional
            Number of scores of each label that were counted. It must be the m' calibrated for:
            counts of fewer draws are too low, and sets from them lose the guarantee.
            Needed unless `counts` are `bincp.Counts`, which have it.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        TypeError
            If the counts or `n_samples` are not integers, or `n_samples` is missing.
        ValueError
            If `n_samples` is not m', a count is outside [0, m'], or the shape is wrong.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
        >>> rule = bincp.RobustRiskControl(certificate, correction="none")
        >>> rule = rule.calibrate(np.ones((99, 2, 50)), np.ones((99, 2), bool))
        >>> rule.min_count_
        24
        >>> rule.predict_set_from_counts([[24, 23]], n_samples=50)
        array([[ True, False]])
        """
        return sets_from_counts(sampled(self._rule), counts, n_samples)

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
        return sets_from_probabilities(self._rule, probabilities)

    # ---- storage ----------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibrated rule as versioned JSON; it loads back exactly.

        A loss that is a function is not written: the file says only that there was one.

        Parameters
        ----------
        path : str or path-like
            File to write, as in `BinCP.save`.

        Raises
        ------
        NotCalibratedError
            If nothing has been calibrated.
        TypeError
            If `path` is no path.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import bincp, numpy as np, pathlib, tempfile
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
        >>> scores, labels = np.random.default_rng(0).random((99, 3, 50)), np.ones((99, 3), bool)
        >>> rule = bincp.RobustRiskControl(certificate).calibrate(scores, labels)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rule.save(pathlib.Path(folder, "risk.json"))
        ...     loaded = bincp.RobustRiskControl.load(pathlib.Path(folder, "risk.json"))
        >>> (loaded.tau_, loaded.min_count_) == (rule.tau_, rule.min_count_)
        True
        """
        _storage.write(path, self._require_rule("save()"))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "RobustRiskControl":
        """Read a rule that `save` wrote.

        It predicts as the saved one did. As with `BinCP.load`, the certificate is there again if
        bincp knows its pair by itself, and else None. A loss that was a function is None, too.
        Calibrating again needs a new object where either is None.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        RobustRiskControl

        Raises
        ------
        OSError
            If the file cannot be read.
        TypeError
            If `path` is no path.
        ValueError
            If it is not a rule of risk control, is damaged, or was written by another version; a
            rule that takes more than its certificate proves counts as damaged.

        Examples
        --------
        See `save`.
        """
        return cls._with_rule(*_storage.read_as(RiskRule, path))

    # ---- steps ------------------------------------------------------------------------------

    def _with(
        self, certificate: Certificate, better_p: Fraction | None = None, **found: Any
    ) -> Self:
        """Replace the rule, at once, and warn if it accepts every label."""
        rule = RiskRule(self._settings, certificate=certificate.describe(), **found)
        self._rule = rule
        log_choice(_log, rule)
        _warn_if_trivial(rule, better_p)
        return self

    def _require_loss(self) -> str | Loss:
        if self._loss is None:
            raise ValueError(
                "this loaded RobustRiskControl does not hold its loss, a function; "
                "make a new RobustRiskControl to calibrate again"
            )
        return self._loss


def _warn_if_trivial(rule: RiskRule, better: Fraction | None) -> None:
    """Warn if every set holds all labels; another p is better where p is the cause."""
    if not rule.accepts_all:
        return
    cause = (
        "the certificate leaves no count or probability that is too low; a smaller radius, more "
        "noise, more samples or a larger alpha would fix it"
    )
    settings, n = rule.settings, rule.n_calibration
    level = settings.sampled_alpha if rule.is_sampled else settings.level
    if level * (settings.clean_size(n) + 1) < settings.lost + 1:
        cause = too_few_points(n, settings, settings.spent if rule.is_sampled else Fraction(0))
    elif rule.tau == -math.inf:
        cause = (
            f"n = {n} calibration points are too few for alpha = {shown(settings.alpha)}, or have "
            "too few finite scores"
        )
    elif better is not None:
        assert rule.settings.p is not None
        assert rule.n_test_samples is not None
        cause = too_small_p(rule.settings.p, rule.n_test_samples, better)
    warnings.warn(
        f"every label will be in every prediction set: {cause}", TrivialSetWarning, stacklevel=4
    )
