"""BinCP: calibration of the threshold pair (p, tau), and prediction by integer comparison."""

import logging
import warnings
from collections.abc import Callable
from fractions import Fraction
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, Scores, as_probabilities, as_scores, check_exact
from bincp._utils.levels import Level, as_fraction, check_level
from bincp._utils.validation import check_integer, check_threshold
from bincp.calibration import _storage
from bincp.calibration._arguments import (
    check_calibration_shape,
    check_passes,
    check_run_classes,
    check_test_samples,
)
from bincp.calibration._attributes import Configured, Shown, fitted
from bincp.calibration._clopper_pearson import CORRECTIONS, as_union
from bincp.calibration._common import common_if_resized
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._departures import Noise, Poison, checked_departures
from bincp.calibration._early_stopping import default_spread, rederived
from bincp.calibration._fitting import Task, fit, fit_exact
from bincp.calibration._prediction import (
    sampled,
    sets_from_counts,
    sets_from_probabilities,
    sets_from_scores,
)
from bincp.calibration._sequential import SequentialRule
from bincp.calibration._shared_draws import check_independent
from bincp.calibration._stored import CalibrationScores, StoredScores
from bincp.calibration._told import log_choice
from bincp.calibration._triviality import trivial_cause
from bincp.certificates import Certificate, as_certificate
from bincp.errors import TrivialSetWarning
from bincp.shifts import Shift

__all__ = ["BinCP", "one_sample"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


_UNPROVEN_IF_SHARED = {
    "attacked_calibration": (
        'must be False with correction="shared-draws": what an attack does to one calibration '
        "point has no bound that points with shared draws exchange"
    ),
    "poisoned": (
        'must be a number of replaced points with correction="shared-draws": its rule depends on '
        "the number of points, which an adversary who deletes or inserts them chooses"
    ),
}


def _fitted(read: Callable[[DecisionRule], T]) -> Shown[T]:
    return fitted(read)


class BinCP(Configured):
    """Robust conformal prediction with a single binary certificate.

    Calibration takes sampled scores of the true labels under randomised smoothing, and finds a
    threshold tau and a least count k: a label belongs to the prediction set iff at least k of its
    m' sampled scores reach tau. If the calibration set and the test point (before the attack) are
    exchangeable, the set of any input in the ball around the test point contains the true label
    with probability at least 1 - alpha: with a correction for finitely many samples, or with exact
    probabilities, and under the assumptions in the notes.

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produced the scores and the ball to defend against.
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1); the nominal coverage is 1 - alpha. A float stands for its
        shortest decimal, 0.1 for 1/10.
    p : int, float, str, Decimal or Fraction, optional
        Fix p in (0, 1], chosen without the calibration and test data, and calibrate tau
        (Algorithm 2 of the paper). If neither `p` nor `tau` is given, it is chosen: of the rules
        for n, m, m', alpha and the certificate the one is taken that accepts fewest wrong labels in
        a reference population. No score is looked at. The tables of the paper have p = 0.6.
    tau : float, optional
        Fix tau, chosen without the calibration and test data, and calibrate p (Algorithm 1).
    correction : {"mixture", "shared-draws", "clopper-pearson", "none"}
        How the error of sampling is paid for. "mixture" assumes the worst mixture of binomial
        distributions that calibration leaves possible, and needs no confidence bound. Its sets are
        far smaller than the others where samples are few, but it needs independent calibration
        noise, see the notes. It takes ranks, or losses of counts unless `p`, `tau` or a
        training-conditional guarantee asks for ranks; with losses more samples for calibration than
        for prediction are well spent. "shared-draws" is for calibration points that share their
        noise, as the nodes of one noisy graph do, and needs fresh test draws; see the
        notes. "clopper-pearson" is the correction of the paper, with
        confidence bounds and the conformal level alpha - eta. "none" takes the sampled frequencies
        for probabilities: there is no finite-sample guarantee. `calibrate_exact` has nothing to
        correct and uses neither this nor `eta`.
    union : {"per-bound", "two-bounds"}
        How "clopper-pearson" splits eta. "per-bound" spends eta / (n + K) on each bound, as in the
        paper. "two-bounds" spends eta / 2 on each of the two bounds that matter for coverage, that
        of the clean test point and that of its true label. The older names "paper" and "ghost" are
        read as these.
    eta : int, float, str, Decimal or Fraction
        Share of alpha spent on sampling error, in (0, alpha). Used by "clopper-pearson" only.
    guarantee : "marginal" or ("training-conditional", delta)
        With "marginal" the coverage is at least 1 - alpha over the calibration set as well. With
        ("training-conditional", delta), for "mixture" only, it is at least 1 - alpha given the
        calibration set, for all calibration sets but a share delta, in (0, 1), of i.i.d. ones.
    passes : None, "auto" or a number of at least 1, optional
        How many forward passes a test input may cost. By default it costs all m' draws: a label is
        decided by its count of all of them. Otherwise draws are made and looked at one by one, and
        each label is decided as soon as its count is far enough from the line l k / m' after l
        draws, which takes a few passes for about the same sets. A number is a budget of passes on
        average; one of m' or more binds nothing. It is kept in the reference population that rules
        are compared in (`bincp.Plan` describes it), and real inputs may take more or fewer, see the
        notes. Where no rule that the search finds within the budget is useful, a useful one that
        takes more is chosen; `bincp.plan` tells its passes before any model call. The hard limit is
        `n_test_samples`: no input takes more. With "auto" the library weighs passes against the
        size of the sets, and falls back on all m' draws where early stopping has no proof: with
        `tau`, and with the other corrections, for which a number is refused. A rule is made for one
        way of testing: counts of all m' draws decide nothing where it stops early.
    poisoned : int, ("deletions", d) or ("insertions", d)
        b, the most calibration points that an adversary may have replaced by any others, who may
        have seen all points and their noise. Attacks on the test input come on top. It costs ranks:
        tau is the (j - b)-th smallest, where k is computed for j. There must be b + 1 points below
        tau to begin with, so b must stay below alpha (n + 1). Or d, the most points that were
        deleted and nothing else, or inserted and nothing else. That costs fewer ranks: those of
        n + d points less d, and those of n - d points. The rule is one for all n then, with ranks.
    label_noise : None, ("count", c), ("rate", e) or ("mean-rate", e), optional
        What is known of wrong labels of calibration points. At most c of the n are wrong; or each
        label is wrong with probability e at most, in [0, 1), whatever the input and the label are;
        or with probability e on average.
    shift : bincp.shifts.Shift, optional
        How far the law of the clean test points may be from that of the calibration points, such as
        ``bincp.shifts.TotalVariation(0.02)``. The calibration points must be i.i.d. then.
    attacked_calibration : bool
        Whether the inputs of all calibration points may have been moved within the ball before
        their noise was drawn, by an adversary who saw all of them.

    Attributes
    ----------
    tau_ : float
        Threshold; -inf where the calibration set is too small for alpha.
    min_count_ : int or None
        k, the least count that is accepted; None after `calibrate_exact`.
    rank_ : int or None
        tau (or the count) is the `rank_`-th smallest over the calibration set; that is j without
        poison, and j - b with it. None where "mixture"
        chose losses of counts instead, which needs that neither `p` nor `tau` nor a
        training-conditional guarantee is given; then `success_rank_`, `p_` and `certified_p_` are
        None, too.
    success_rank_ : int or None
        t: at least t of the m scores of a calibration point reach its own threshold.
    n_calibration_, n_samples_, n_test_samples_ : int or None
        n, m and m'.
    dtype_ : str or None
        Dtype of the scores, e.g. "float32".
    p_ : float or None
        Nominal p, t / m.
    p_lower_ : float or None
        Confidence bound on p, with "clopper-pearson".
    certified_p_ : float or None
        Certified lower bound at `p_lower_`, or at `p_`.
    n_classes_ : int or None
        K, where `calibrate` was given it.
    losses_ : tuple of int or None
        ``losses_[s]`` is the loss of a calibration point of which s of m scores reach tau, in units
        of 2**-36; None with ranks.
    boundaries_ : SequentialRule or None
        When a label is accepted or refused; None where it is decided by the count of all m' draws.

    Notes
    -----
    For "clopper-pearson" the test draws must be i.i.d. given the input, independent of the
    calibration, and unknown to the adversary; the draws of one calibration point must be i.i.d.
    "mixture" needs the draws of different calibration points to be independent of each other as
    well: one noise tensor broadcast over the calibration set, or one seed for calibration and
    test, or antithetic draws void it. Sharing draws over the labels of an input is fine.
    `bincp.sampling` keeps all of this.

    What may be tuned on what. On separate points, which are neither calibration nor test points,
    anything may be tuned: the model and its temperature, the score and its parameters, p or tau,
    the numbers of samples. The noise of these points must be independent of that of calibration
    and test, as the phase "tuning" of `bincp.sampling` is. A setting that was chosen on calibration
    noise is fitted to that noise, whatever the points are, and the sets cover less than 1 - alpha.
    On the calibration points nothing may be tuned that looks at their scores: of several rules that
    were calibrated on them, the one with the smallest sets covers less. On test inputs nothing may
    be tuned, also without labels. A choice that is a function of n, m, m', K, alpha and the
    certificate alone is free; `bincp.plan` helps with it.

    Why "mixture" is valid. Let u(p) = P[Bin(m, p) < t] and v(p) = P[Bin(m', c(p)) < k], c the
    certificate, and imagine m clean draws for the clean test point. At most j of n + 1
    exchangeable points lie below the j-th smallest threshold of n, so the imagined point does with
    probability at most j / (n + 1). Given the calibration data and the test point, that has
    probability u(P), P the clean probability that a score reaches tau, and the true label is
    refused at the attacked input with probability at most v(P). So the miscoverage is at most the
    largest mean of v over all distributions of P with mean of u at most j / (n + 1): the upper
    concave envelope of the curve (u, v). k is the largest with an envelope of at most alpha there
    (plus 1e-10, for rounding). t and j are functions of n, m, m', alpha and the certificate.

    With tau fixed, t is an observed count, so the line over the curve may not depend on it: its
    slope is fixed in advance, and k is the largest with v(p) <= alpha + slope (u(p) - j / (n + 1))
    for every p.

    *Shared draws.* All calibration points may share their m draws; the test draws are fresh. Let t
    and j be functions of n, m, m', alpha and the certificate. Given the draws, the points and the
    clean test point are exchangeable, so the t-th largest score v of the test point lies below tau
    with probability at most j / (n + 1). Else its count at tau is at least that at v, and a fresh
    draw reaches v with a probability that is at least B ~ Beta(t, m + 1 - t) in law. So the
    miscoverage is at most j / (n + 1) + E P[Bin(m', c(B)) < k], and k is the largest count for
    which this is at most alpha; the second term is rounded up. With `poisoned=b` tau is the
    (j - b)-th smallest, and with a shift 1 - g(1 - j / (n + 1)) takes the place of j / (n + 1);
    the law of the test points must not depend on the shared noise. With tau fixed, t is the j-th
    smallest count and k(t) a non-decreasing function made in advance. The count N of the test
    point, of the same draws, is below t with probability at most j / (n + 1); else k(t) <= k(N),
    and the label is refused with probability at most sup_p E P[Bin(m', c(p)) < k(Bin(m, p))].

    *Losses in place of ranks.* A calibration point of which s of m scores reach tau costs w(s),
    where w(0) >= ... >= w(m) >= 0. tau is the largest threshold at which the costs of the n points,
    and once more w(0), add up to at most alpha (n + 1). Let v(p) be the probability that the test
    refuses the true label at the worst input, for any test: a count or a sequential one. The
    guarantee asks two things of v: it does not increase with p, and v(p) <= E[w(Bin(m, p))] for
    every p in [0, 1].

    The mean cost is at most alpha: let tau* be the largest threshold at which the costs of all
    n + 1 points add up to at most alpha (n + 1). No cost exceeds w(0), so tau <= tau*, and a lower
    threshold costs no point more. The points are exchangeable and tau* does not depend on their
    order, so the mean cost of the test point is at most alpha at tau*, hence at tau.

    A refusal is paid for: fix tau and the test point, of which a clean draw reaches tau with
    probability p. The m scores that it would have had in a calibration are independent of the draws
    of the test, and cost E[w(Bin(m, p))] in the mean. At the attacked input a draw reaches tau with
    probability c(p) at least, and a sequential test refuses less often where draws reach tau more
    often: let draw l reach it iff a uniform U_l is at most the probability; then the larger
    probability is accepted wherever the smaller one is. So the label is refused with probability at
    most v(p), which is at most the mean cost.

    A count and a sequential test refuse with different probabilities, and losses that pay for one
    need not pay for the other. So a rule decides only by the test that it was calibrated for. The
    inequality is proven on cells, v at the left end against the expected cost at the right, and
    cells that do not tell are halved: it holds for every p, and not on a grid only.

    Given the calibration set, j / (n + 1) is replaced by the 1 - delta quantile of
    Beta(j, n + 1 - j): the share of points below the j-th smallest of n i.i.d. ones is no larger in
    law. v may be that of a test that stops early. Losses are not used then, even with m > m'. What
    bounds their mean is conformal risk control, which is a statement on average over calibration
    sets. Given the set, the mean of losses in [0, B] has a bound by concentration (risk-controlling
    prediction sets [1]_), but none is known that is exact for all laws of the losses, as the Beta
    quantile is for ranks: Bentkus's inequality asks for the level delta / e instead of delta.

    *Poison, shift and attacked calibration.* Each has a place of its own in this proof, so they can
    be combined, with each other and with all the rest but what is refused.

    Of the clean points up to the j-th smallest threshold at most b are gone, so that the (j - b)-th
    smallest of the points seen is no larger, whatever the adversary knew; and a smaller tau accepts
    more. With losses all but the b smallest are added up, and each of b points costs w(0).

    Let J(N) = floor(a (N + 1)), a constant. If D <= d points were deleted from N and n are seen,
    the (J(n + d) - d)-th smallest of these is at most the (J(n + d) - (d - D))-th of all N, and
    that is at most the J(N)-th, as J grows by 1 a point at most. If points were only inserted, the
    J(n - d)-th smallest of those seen is at most that of the clean ones, and n - d <= N. As the
    adversary chooses n, neither k nor t may depend on it.

    A law Q of the shift gives an event that has probability b under the calibration law P at least
    the probability g(b), g convex and non-decreasing (`bincp.shifts`). Either the sets are made for
    the level alpha' under P that gives alpha under Q: g(1 - alpha') >= 1 - alpha, and g of a mean
    is at most the mean of g. Or the imagined point is drawn from Q: it lies below tau with
    probability at most 1 - g(1 - j / (n + 1)) instead of j / (n + 1). Both are valid, and the
    better one is used, for ranks; losses and confidence bounds have the first one. With `tau` it is
    chosen before a count is looked at. Labels that are wrong with probability e at most are such a
    shift: their law is 1 - e times the law without errors, and something else. A mean rate is a
    total variation.

    An attacked calibration input has at most the probability C(p) = 1 - c(1 - p) where the clean
    one has p, so its threshold is at most one that is drawn from C(p), for the same uniform
    variables; and these are exchangeable. If C(p) is q, then p is at least d(q), d the lower bound
    over the inverted ball. So c(d(q)) takes the place of c(p). c(c(q)) would not do where the
    inverted ball is another one, as for `bincp.balls.Flips`.

    *Passes of real inputs.* A budget of passes is kept on average in the reference population, not
    on your data. In ``benchmarks/study/EARLY.md`` inputs took .49 to 1.8 times as many passes: .80
    times on average on MNIST, 1.13 on CIFAR-10 with sigma = 0.25 and 1.36 with sigma = 0.5; larger
    sets take more. So measure on separate inputs what yours take: ``forward_passes`` of
    `bincp.sampling.PredictionSets`, or the largest of the `exits` of an input in a
    `SequentialTracker`. Then ask for a smaller budget where it is too much, or for fewer
    `n_test_samples`, which no input exceeds.

    Threads may predict with one object at the same time. They may also predict while another
    thread calibrates it: `calibrate` replaces the whole decision rule at once, at its end, so each
    prediction is made by the old rule or by the new one. Several attributes that are read one after
    the other may belong to two rules then.

    References
    ----------
    Zargarbashi and Bojchevski, "Robust conformal prediction with a single binary certificate",
    ICLR 2025.

    .. [1] S. Bates, A. Angelopoulos, L. Lei, J. Malik and M. Jordan, "Distribution-free,
       risk-controlling prediction sets", Journal of the ACM 68, 2021.

    Poisoning: Zargarbashi, Akhondzadeh and Bojchevski, "Robust yet efficient conformal prediction
    sets", ICML 2024. Shift: Cauchois, Gupta, Ali and Duchi, "Robust validation", JASA 2024. Labels:
    Einbinder, Feldman, Bates, Angelopoulos, Gendler and Romano, "Label noise robustness of
    conformal prediction", JMLR 2024.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> true_scores = rng.normal(1, 0.3, (200, 128))          # (n, m)
    >>> rule = bincp.BinCP(certificate, alpha=0.1).calibrate(true_scores)
    >>> scores = rng.normal([[1], [0], [-1]], 0.3, (5, 3, 128))  # (n, K, m')
    >>> rule.predict_set(scores)[0]
    array([ True, False, False])
    """

    _rule: DecisionRule | None

    tau_ = _fitted(lambda rule: rule.tau)
    min_count_ = _fitted(lambda rule: rule.min_count)
    rank_ = _fitted(lambda rule: rule.rank)
    success_rank_ = _fitted(lambda rule: rule.success_rank)
    n_calibration_ = _fitted(lambda rule: rule.n_calibration)
    n_samples_ = _fitted(lambda rule: rule.n_samples)
    n_test_samples_ = _fitted(lambda rule: rule.n_test_samples)
    n_classes_ = _fitted(lambda rule: rule.n_classes)
    dtype_ = _fitted(lambda rule: rule.dtype)
    p_ = _fitted(lambda rule: rule.p)
    p_lower_ = _fitted(lambda rule: rule.p_lower)
    losses_ = _fitted(lambda rule: rule.losses)
    boundaries_ = _fitted(lambda rule: rule.boundaries)
    certified_p_ = _fitted(lambda rule: rule.certified_p)

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha: Level = 0.1,
        p: Level | None = None,
        tau: float | None = None,
        correction: str = "mixture",
        union: str = "per-bound",
        eta: Level = 1e-3,
        guarantee: str | tuple[str, Level] = "marginal",
        passes: Level | None = None,
        poisoned: Poison = 0,
        label_noise: Noise | None = None,
        shift: Shift | None = None,
        attacked_calibration: bool = False,
    ) -> None:
        as_certificate(certificate)
        if not isinstance(correction, str) or correction not in CORRECTIONS:
            raise ValueError(f"`correction` must be one of {CORRECTIONS}, got {correction!r}")
        if p is not None and tau is not None:
            raise ValueError(f"at most one of `p` and `tau` must be given, got {p!r} and {tau!r}")
        self._certificate = certificate
        self._rule = None
        self._settings = Settings(
            alpha=check_level("alpha", alpha),
            p=None if p is None else check_level("p", p, closed_high=True),
            tau=None if tau is None else check_threshold("tau", tau),
            correction=correction,
            union=as_union(union),
            eta=check_level("eta", eta),
            delta=_check_guarantee(guarantee, correction),
            passes=check_passes(passes, correction, tau),
            **checked_departures(poisoned, label_noise, shift, attacked_calibration),
        )
        unproven = self._settings.unproven_if_shared
        if correction == "shared-draws" and unproven is not None:
            raise ValueError(f"`{unproven}` {_UNPROVEN_IF_SHARED[unproven]}")
        if self._settings.resizes and self._settings.spends_on_classes:
            raise ValueError(
                '`union` must be "two-bounds" where points may have come or gone, because the '
                f'bounds of "per-bound" depend on their number, got {union!r}'
            )
        if correction == "clopper-pearson" and self.eta >= self.alpha:
            raise ValueError(f"`eta` must be below alpha = {alpha}, got {eta}")
        self._settings.check_with(certificate)

    @classmethod
    def _with_rule(cls, rule: DecisionRule, certificate: Certificate | None) -> "BinCP":
        """Return a calibrated object."""
        made = cls.__new__(cls)
        made._certificate, made._settings, made._rule = certificate, rule.settings, rule
        return made

    def __repr__(self) -> str:
        settings, rule = self._shown_settings(), self._rule
        if rule is None:
            return f"BinCP({settings}, not calibrated)"
        counts = f"min_count_={rule.min_count}, n_test_samples_={rule.n_test_samples}"
        return (
            f"BinCP({settings}, tau_={rule.tau!r}, {counts}, n_calibration_={rule.n_calibration})"
        )

    # ---- calibration ------------------------------------------------------------------------

    def calibrate(
        self,
        true_scores: ArrayLike,
        *,
        n_classes: int | None = None,
        n_test_samples: int | None = None,
        n_threads: int = 1,
    ) -> "BinCP":
        """Calibrate on sampled scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n, m), or Run
            m sampled scores of the true label of each of n calibration points; larger means better
            agreement. Or a run of `bincp.sampling.run`, which knows its noise and K.
        n_classes : int, optional
            Number of classes K; needed by "clopper-pearson", which spends eta / (n + K) a bound.
            Where it is given, `predict_set` refuses another K.
        n_test_samples : int, optional
            m', number of samples at prediction; m if not given.
        n_threads : int, optional
            Threads, >= 1, that count the scores of large arrays. The rule does not depend on it.

        Returns
        -------
        BinCP
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set; the message names the cause and the cure.

        Raises
        ------
        TypeError
            If a number is not an integer, or `n_classes` is missing where it is needed.
        ValueError
            If the scores have a wrong shape or dtype or hold NaN, or a number is out of range. If a
            run is for other noise, test points or another K, or keeps no scores of the labels.
        FileNotFoundError
            If a run is not complete.
        """
        provenance = None
        if isinstance(true_scores, CalibrationScores):
            provenance = true_scores.provenance()
            true_scores, _, found = true_scores.calibration_points(self.certificate_description)
            n_classes = check_run_classes(n_classes, found)
        check_independent(true_scores, self.correction)
        rule = self._fit(
            as_scores("true_scores", true_scores),
            self._check_classes(n_classes),
            n_test_samples,
            check_integer("n_threads", n_threads, low=1),
        )
        self._rule = rule.with_provenance(provenance)
        log_choice(_log, rule)
        _warn_if_trivial(rule, self._require_certificate())
        return self

    def calibrate_exact(self, probabilities: ArrayLike, *, tau: float) -> "BinCP":
        """Calibrate on exact probabilities of derandomised smoothing, without any correction.

        Parameters
        ----------
        probabilities : array_like of float64, shape (n,)
            Probability that the score of the true label reaches `tau`, for each calibration point:
            the double nearest to it. Narrower numbers are refused, as bounds are told in doubles.
        tau : float
            The threshold that they were computed at, fixed in advance.

        Returns
        -------
        BinCP
            The object itself, calibrated for `predict_set_exact`.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set.

        Raises
        ------
        ValueError
            If a probability is outside [0, 1] or NaN, or shape or dtype are wrong; if `tau` is NaN
            or not the one of the constructor; or if the constructor was given `p`.

        Notes
        -----
        Algorithm 1 of the paper with exact probabilities p_i: y is accepted iff p_y is at least the
        certified lower bound of the floor(alpha (n + 1))-th smallest p_i (of a smaller one for a
        training-conditional guarantee).

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.1))
        >>> rule = bincp.BinCP(certificate).calibrate_exact(np.linspace(0.5, 1, 99), tau=0.4)
        >>> rule.predict_set_exact([[0.9, 0.5, 0.3]])
        array([[ True,  True, False]])
        """
        certificate = self._require_certificate()
        check_exact("probabilities", probabilities)
        values = as_probabilities("probabilities", probabilities)
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"`probabilities` must have shape (n,), n >= 1, got {values.shape}")
        threshold = check_threshold("tau", tau)
        if self.p is not None or self.tau not in (None, threshold):
            raise ValueError(
                f"`tau` must be the one that the constructor fixed, if any, and `p` not given; "
                f"got tau = {tau!r} with p = {self.p} and tau = {self.tau} in the constructor"
            )
        rule = fit_exact(certificate, self._settings, values, threshold)
        self._rule = rule
        log_choice(_log, rule)
        _warn_if_trivial(rule, self._require_certificate())
        return self

    # ---- prediction -------------------------------------------------------------------------

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with sampled scores.

        Parameters
        ----------
        scores : array_like, shape (n, K, m'), or Run
            m' sampled scores of each label of each input, of the dtype calibrated with. A rule with
            `boundaries_` looks at them one by one, so they must be in the order of the draws. Or a
            run of `bincp.sampling.run` with all scores, or with counts at `tau_`.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Whether the set of input i contains label y.

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
        if isinstance(scores, StoredScores):
            return scores.sets_of(self)
        return sets_from_scores(rule, scores)

    def predict_set_from_counts(
        self, counts: ArrayLike, *, n_samples: int | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with exceedance counts.

        Parameters
        ----------
        counts : array_like of int, shape (n, K), or Counts
            How many of the scores of each label reach `tau_`, compared in the dtype calibrated
            with; in [0, m'].
        n_samples : int, optional
            Number of scores of each label that were counted. It must be the m' calibrated for:
            counts of fewer draws are too low, and sets from them lose the coverage.
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
            If the rule stops early, `n_samples` is not m', a count is outside [0, m'], or the shape
            is wrong; or if `Counts` are of another threshold, stopped early, or are of calibration.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
        >>> rule = bincp.BinCP(certificate, correction="none").calibrate(np.ones((99, 50)))
        >>> rule.min_count_
        24
        >>> rule.predict_set_from_counts([[50, 24, 23]], n_samples=50)
        array([[ True,  True, False]])
        """
        return sets_from_counts(sampled(self._rule), counts, n_samples)

    def predict_set_exact(self, probabilities: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with exact probabilities.

        Parameters
        ----------
        probabilities : array_like of float64, shape (n, K)
            Probability that the score of each label reaches `tau_`, as in `calibrate_exact`.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Raises
        ------
        NotCalibratedError
            If `calibrate_exact` has not been called.
        ValueError
            If a probability is outside [0, 1] or NaN, or shape or dtype are wrong.

        Examples
        --------
        See `calibrate_exact`.
        """
        return sets_from_probabilities(self._rule, probabilities)

    def sequential_rule(self, *, spread: Level | None = None) -> SequentialRule:
        """Return a test that stops drawing early and keeps the guarantee, for the same tau.

        Parameters
        ----------
        spread : int, float, str, Decimal or Fraction, optional
            Distance of the boundaries from the line l k / m', > 0, as a count of hits. A small one
            decides sooner, and asks for a smaller k. If not given, the boundaries are
            `boundaries_`, and for a rule without them at the distance sqrt(m') / 3 + 1/2.

        Returns
        -------
        SequentialRule
            With the largest k for which its probability of acceptance, computed exactly, passes the
            condition that the calibration was made for. A calibration with `passes` is made for the
            test that it returns, and needs fewer draws for sets of the same size.

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        TypeError, ValueError
            If `spread` is not a number above 0, or the correction is not "mixture": the others
            bound a count of all m' draws.
        CertificateError
            If the object was loaded from a file, has no certificate, see `load`, and other
            boundaries than `boundaries_` are asked for.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.25))
        >>> scores = np.random.default_rng(0).normal(1, 0.3, (200, 32))
        >>> rule = bincp.BinCP(certificate).calibrate(scores)
        >>> sequential = rule.sequential_rule()
        >>> rule.min_count_, sequential.min_count, sequential.n_test_samples
        (9, 6, 32)
        """
        rule = sampled(self._rule)
        assert rule.n_test_samples is not None
        if rule.settings.correction != "mixture":
            raise ValueError(
                f'`correction` must be "mixture" for a sequential rule, got {self.correction!r}'
            )
        if spread is None and rule.boundaries is not None:
            return rule.boundaries
        distance = default_spread(rule.n_test_samples) if spread is None else _distance(spread)
        return rederived(rule, self._require_certificate(), distance)

    # ---- storage ----------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibrated decision rule as versioned JSON; it loads back exactly.

        Parameters
        ----------
        path : str or path-like
            File to write. An existing file is replaced once the new one is complete and on the
            disk, and keeps its permissions; one that may not be written is refused.

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
        >>> rule = bincp.BinCP(certificate, correction="none").calibrate(np.ones((99, 50)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rule.save(pathlib.Path(folder, "rule.json"))
        ...     loaded = bincp.BinCP.load(pathlib.Path(folder, "rule.json"))
        >>> (loaded.tau_, loaded.min_count_) == (rule.tau_, rule.min_count_)
        True
        """
        _storage.write(path, self._require_rule("save()"))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "BinCP":
        """Read a decision rule that `save` wrote.

        It predicts as the saved one did. It has its certificate again if that is of a pair of
        smoothing scheme and ball that bincp knows by itself, and gives the numbers in the file.
        Otherwise `certificate` is None, and calibrating again needs a new object.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        BinCP

        Raises
        ------
        OSError
            If the file cannot be read.
        TypeError
            If `path` is no path.
        ValueError
            If it is not a decision rule, is damaged, or was written by another version: files of
            version 1 have no checksum and are refused.

        Examples
        --------
        See `save`.
        """
        return cls._with_rule(*_storage.read_as(DecisionRule, path))

    # ---- steps ------------------------------------------------------------------------------

    def _check_classes(self, n_classes: int | None) -> int | None:
        if n_classes is not None:
            return check_integer("n_classes", n_classes, low=1)
        if self._settings.spends_on_classes:
            raise TypeError(
                'calibrate() needs `n_classes` with correction="clopper-pearson" and '
                'union="per-bound", got None'
            )
        return None

    def _fit(
        self, scores: Scores, n_classes: int | None, n_test_samples: int | None, n_threads: int
    ) -> DecisionRule:
        certificate = self._require_certificate()
        check_calibration_shape(scores, "(n, m)")
        m_test = check_test_samples(n_test_samples, scores.bits.shape[1])
        common = common_if_resized(certificate, self._settings, scores.bits.shape[1], m_test)
        return fit(Task(certificate, self._settings, scores, m_test, n_classes, common, n_threads))


def _warn_if_trivial(rule: DecisionRule, certificate: Certificate) -> None:
    cause = trivial_cause(rule, certificate)
    if cause is not None:
        warnings.warn(
            f"every label will be in every prediction set: {cause}",
            TrivialSetWarning,
            stacklevel=3,
        )


def _distance(spread: Level) -> Fraction:
    distance = as_fraction("spread", spread)
    if distance <= 0:
        raise ValueError(f"`spread` must be above 0, got {spread!r}")
    return distance


def _check_guarantee(guarantee: Any, correction: str) -> Fraction | None:
    """Return delta of a training-conditional guarantee, None for the marginal one."""
    if isinstance(guarantee, str) and guarantee == "marginal":
        return None
    if not (isinstance(guarantee, tuple) and len(guarantee) == 2):
        raise ValueError(
            f'`guarantee` must be "marginal" or ("training-conditional", delta), got {guarantee!r}'
        )
    kind, delta = guarantee
    named = isinstance(kind, str) and kind == "training-conditional"
    if not named or correction != "mixture":
        raise ValueError(
            '`guarantee` must be "marginal" or, with correction="mixture", '
            f'("training-conditional", delta), got {guarantee!r} with {correction!r}'
        )
    return check_level("delta", delta)


def one_sample(certificate: Certificate, *, alpha: Level, poisoned: Poison = 0) -> BinCP:
    """Return a `BinCP` for one draw of each input: robust conformal prediction with one sample.

    m = m' = 1 and p = 1: tau is a conformal quantile of plain scores of noisy inputs, at a level
    that makes up for the attack. The special case of the mixture correction that needs least.

    Parameters
    ----------
    certificate : Certificate
        The certificate, as for `BinCP`.
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    poisoned : int, ("deletions", d) or ("insertions", d)
        The argument `poisoned` of `BinCP`.

    Returns
    -------
    BinCP
        To be calibrated on scores of shape (n, 1).

    Raises
    ------
    TypeError, ValueError
        As in `BinCP`.

    References
    ----------
    Zargarbashi, Akhondzadeh and Bojchevski, "One sample is enough to make conformal prediction
    robust", NeurIPS 2025.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> scores = np.random.default_rng(0).normal(1, 0.3, (500, 1))
    >>> rule = bincp.one_sample(certificate, alpha=0.1).calibrate(scores)
    >>> rule.min_count_, rule.rank_
    (1, 34)
    """
    return BinCP(certificate, alpha=alpha, p=1, correction="mixture", poisoned=poisoned)
