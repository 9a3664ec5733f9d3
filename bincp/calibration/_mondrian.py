"""Class-conditional (Mondrian) calibration: a rule for each class, so that each is covered."""

import logging
import warnings
from collections.abc import Callable
from itertools import pairwise
from os import PathLike
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_counts, as_scores
from bincp._utils.estimators import defaults_of
from bincp._utils.levels import Level
from bincp._utils.validation import check_integer
from bincp.calibration import _storage
from bincp.calibration._arguments import (
    check_calibration_shape,
    check_run_classes,
    check_test_samples,
)
from bincp.calibration._attributes import Configured, Shown, fitted
from bincp.calibration._bincp import BinCP
from bincp.calibration._class_rules import ClassRules
from bincp.calibration._class_triviality import trivial_classes
from bincp.calibration._common import Common, common_rule
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._fitting import Task, fit
from bincp.calibration._prediction import sets_from_counts, sets_from_scores
from bincp.calibration._sequential import SequentialRule
from bincp.calibration._shared_draws import check_independent
from bincp.calibration._stored import CalibrationScores, StoredScores
from bincp.calibration._told import log_choice
from bincp.certificates import Certificate
from bincp.counting import check_no_nan
from bincp.errors import TrivialSetWarning

__all__ = ["MondrianBinCP"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


def _fitted(read: Callable[[ClassRules], T]) -> Shown[T]:
    return fitted(read)


class MondrianBinCP(Configured):
    """Robust conformal prediction with a coverage guarantee for each class.

    Each class is calibrated on its own points and decides about its own label. A class without
    calibration points, or with too few of them, has the threshold -inf: its label is in every set.

    Guarantee: that of `BinCP`, given the class: for every y, the set of any input in the ball
    around a test point of class y contains y with probability at least 1 - alpha, if that point
    (before the attack) and the calibration points *of class y* are exchangeable. So it holds where
    the shares of the classes differ between calibration and test.

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produced the scores and the ball to defend against.
    n_classes : int
        K; never inferred from labels.
    **options
        The options of `BinCP`: alpha, p, tau, correction, union, eta, guarantee, passes, poisoned,
        label_noise, shift, attacked_calibration. With
        "clopper-pearson" and the union "per-bound" a class of n_y points spends eta / (n_y + 1) on
        each bound. With `passes` each class has boundaries of its own. A number of passes bounds
        those of each class on its own, while an input is drawn until its last label is decided, so
        that it may take a little more.

    Attributes
    ----------
    rules_ : list of BinCP or None, length K
        The calibrated rule of each class; None for a class without calibration points.
    tau_ : ndarray of float64, shape (K,)
        Thresholds; -inf for a class without calibration points, or with too few.
    min_count_ : ndarray of int64, shape (K,)
        k, the least count that is accepted; 0 for a class without calibration points.
    n_calibration_ : ndarray of int64, shape (K,)
        Calibration points of each class.
    n_samples_, n_test_samples_ : int
        m and m'.
    n_classes_ : int
        K.
    dtype_ : str
        Dtype of the scores.
    boundaries_ : tuple of SequentialRule, length K, or None
        When the label of each class is accepted or refused; None where all are decided by the
        counts of all m' draws.

    Notes
    -----
    *Poisoned labels.* With ``poisoned=b``, or a count of wrong labels, at most b points may have
    been touched in any way: replaced, added, taken away, or given another label, so that they left
    one class and entered another. b is charged to every class, for all may be in one. Then an
    adversary has a say in the sizes of the classes, and would choose among the rules if they
    depended on these. So t and k are the same for all sizes: they are made for a share of failures
    a', a function of m, m', alpha and the certificate alone, and tau of a class with n_y points is
    the (floor(a' (n_y + 1)) - b)-th smallest. If d points were taken away and i added, d and i at
    most b, the class had n_y + d - i points and the rank floor(a' (n_y + d - i + 1)); this is at
    least the rank used plus d, so that as many clean points as the rank used are still below tau.
    ``MondrianBinCP(certificate, n_classes=1, poisoned=b)`` does so for sets of one class, where
    `BinCP` takes n for given. Confidence bounds that depend on n are refused, as is "shared-draws",
    whose test depends on n; and so are rates of wrong labels: errors move points between classes,
    and their share of a class that is seen is not known. A `shift` is of the inputs of each class.

    Each class size has a search of its own for the best rule, some 0.1 s in the default correction.
    Classes of equal size share it.

    Threads may predict with one object at the same time, also while another thread calibrates it:
    `calibrate` replaces all rules at once, at its end.

    References
    ----------
    V. Vovk, "Conditional validity of inductive conformal predictors", 2012.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> rng = np.random.default_rng(0)
    >>> true_scores = rng.normal(1, 0.3, (200, 64))
    >>> rule = bincp.MondrianBinCP(certificate, n_classes=2, alpha=0.1)
    >>> rule = rule.calibrate(true_scores, np.arange(200) % 2)
    >>> rule.predict_set(rng.normal([[1], [-1]], 0.3, (1, 2, 64)))
    array([[ True, False]])
    """

    _rule: ClassRules | None
    _n_classes: int

    n_classes = Shown[int](lambda owner: owner._n_classes)

    tau_ = _fitted(lambda rules: rules.tau.copy())
    min_count_ = _fitted(lambda rules: rules.least.copy())
    n_calibration_ = _fitted(lambda rules: rules.n_calibration.copy())
    n_samples_ = _fitted(lambda rules: rules.n_samples)
    n_test_samples_ = _fitted(lambda rules: rules.n_test_samples)
    n_classes_ = _fitted(lambda rules: rules.n_classes)
    dtype_ = _fitted(lambda rules: rules.dtype)
    _rules_of_classes = _fitted(lambda rules: rules.rules)
    boundaries_ = _fitted(lambda rules: rules.tests if rules.stops_early else None)

    def __init__(self, certificate: Certificate, *, n_classes: int, **options: Any) -> None:
        self._n_classes = check_integer("n_classes", n_classes, low=1)
        self._settings = BinCP(certificate, **options)._settings  # checks both
        _check_departures(self._settings)
        self._certificate = certificate
        self._rule = None

    @classmethod
    def _with_rules(cls, rules: ClassRules, certificate: Certificate | None) -> "MondrianBinCP":
        """Return a calibrated object."""
        made = cls.__new__(cls)
        made._n_classes, made._certificate, made._rule = rules.n_classes, certificate, rules
        made._settings = rules.made[0].settings
        return made

    def _defaults(self) -> dict[str, Any]:
        return defaults_of(BinCP) | super()._defaults()

    def __repr__(self) -> str:
        state = "not calibrated" if self._rule is None else f"tau_={self._rule.tau!r}"
        return f"MondrianBinCP(n_classes={self.n_classes}, {self._shown_settings()}, {state})"

    @property
    def rules_(self) -> list[BinCP | None]:
        """The calibrated rule of each class; None for a class without calibration points."""
        return [
            None if rule is None else BinCP._with_rule(rule, self.certificate)
            for rule in self._rules_of_classes
        ]

    def calibrate(
        self,
        true_scores: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        n_test_samples: int | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Calibrate on sampled scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n, m), or Run
            m sampled scores of the true label of each of n calibration points. Or a run of
            `bincp.sampling.run` with labels, which is given alone.
        labels : array_like of int, shape (n,)
            The true labels, in [0, K).
        n_test_samples : int, optional
            m', number of samples at prediction; m if not given.
        n_threads : int, optional
            Threads, >= 1, that count the scores of large arrays. The rule does not depend on it.

        Returns
        -------
        MondrianBinCP
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If the labels of some classes will be in every set; the message counts these classes,
            and names the cause and the cure.

        Raises
        ------
        TypeError
            If the labels are not integers, or given with a run, or not given with an array.
        ValueError
            If shapes do not fit, the dtype is wrong, a score is NaN, or a label is out of range.
        CertificateError
            If the object was loaded from a file and has no certificate, see `load`.
        """
        certificate = self._require_certificate()
        if (labels is not None) == isinstance(true_scores, CalibrationScores):
            got = "None" if labels is None else "labels"
            raise TypeError(
                "`labels` must be given with an array of scores, and not with a run, which has "
                f"them, got {got} with {type(true_scores).__name__}"
            )
        provenance = None
        if isinstance(true_scores, CalibrationScores):
            provenance = true_scores.provenance()
            true_scores, labels, found = true_scores.calibration_points(
                self.certificate_description
            )
            check_run_classes(self.n_classes, found)
        check_independent(true_scores, self.correction)
        scores = as_scores("true_scores", true_scores)
        check_calibration_shape(scores, "(n, m)")
        check_no_nan(scores)  # here, for the places in a class are not those in the argument
        y = as_counts("labels", labels, high=self.n_classes - 1)
        if y.shape != scores.bits.shape[:1]:
            raise ValueError(f"`labels` must have shape {scores.bits.shape[:1]}, got {y.shape}")
        m_test = check_test_samples(n_test_samples, scores.bits.shape[1])
        n_threads = check_integer("n_threads", n_threads, low=1)
        order = np.argsort(y, kind="stable")
        starts = np.searchsorted(y[order], np.arange(self.n_classes + 1))
        common = self._common_rule(certificate, scores.bits.shape[1], m_test)

        def fitted(rows: npt.NDArray[np.int64]) -> DecisionRule:
            own = scores.rows(rows)
            return fit(Task(certificate, self._settings, own, m_test, 1, common, n_threads))

        self._rule = rules = ClassRules(
            tuple(
                fitted(order[start:end]) if start < end else None for start, end in pairwise(starts)
            )
        ).with_provenance(provenance)
        for label, rule in enumerate(rules.rules):
            if rule is None:
                _log.info("class %d has no points: its label is in every set", label)
            else:
                log_choice(_log, rule, f"class {label}: ")
        if (causes := trivial_classes(rules, certificate)) is not None:
            warnings.warn(causes, TrivialSetWarning, stacklevel=2)
        return self

    def _common_rule(self, certificate: Certificate, m: int, m_test: int) -> Common | None:
        """Return what the rules of all class sizes share, where an adversary may choose these."""
        if not (self._settings.lost or self._settings.resizes):
            return None
        return common_rule(certificate, self._settings, m, m_test)

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with sampled scores.

        Parameters
        ----------
        scores : array_like, shape (n, K, m'), or Run
            m' sampled scores of each label of each input, of the dtype calibrated with. Rules with
            `boundaries_` look at them one by one, so they must be in the order of the draws. Or a
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
            If shape, dtype, K or m' differ from those calibrated for, or a score is NaN.
        """
        rules = self._require_rule("predicting")
        if isinstance(scores, StoredScores):
            return scores.sets_of(self)
        return sets_from_scores(rules, scores)

    def predict_set_from_counts(
        self, counts: ArrayLike, *, n_samples: int | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with exceedance counts.

        Parameters
        ----------
        counts : array_like of int, shape (n, K), or Counts
            How many of the scores of label y reach ``tau_[y]``, compared in the dtype calibrated
            with; in [0, m'].
        n_samples : int, optional
            Number of scores of each label that were counted. It must be the m' calibrated for.
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
            If the rules stop early, `n_samples` is not m', a count is outside [0, m'], or the shape
            is wrong; or if `Counts` are of another threshold, stopped early, or are of calibration.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
        >>> rule = bincp.MondrianBinCP(certificate, n_classes=2, correction="none")
        >>> rule = rule.calibrate(np.ones((99, 50)), np.arange(99) % 2)
        >>> rule.min_count_
        array([24, 24])
        >>> rule.predict_set_from_counts([[50, 23], [23, 24]], n_samples=50)
        array([[ True, False],
               [False,  True]])
        """
        return sets_from_counts(self._require_rule("predicting"), counts, n_samples)

    def sequential_rule(self, *, spread: Level | None = None) -> tuple[SequentialRule, ...]:
        """Return a test for each class that stops drawing early and keeps the guarantee.

        Parameters
        ----------
        spread : int, float, str, Decimal or Fraction, optional
            As in `BinCP.sequential_rule`, for every class.

        Returns
        -------
        tuple of SequentialRule, length K
            The boundaries of each label. `bincp.SequentialTracker` plays the draws of all labels by
            them. A class without calibration points accepts its label at once.

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        TypeError, ValueError, CertificateError
            As in `BinCP.sequential_rule`.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
        >>> rng = np.random.default_rng(0)
        >>> rule = bincp.MondrianBinCP(certificate, n_classes=2, passes="auto")
        >>> rule = rule.calibrate(rng.normal(1, 0.3, (200, 16)), np.arange(200) % 2)
        >>> labels = bincp.SequentialTracker(rule.sequential_rule(), (1, 2))
        >>> scores = rng.normal([[1], [-1]], 0.3, (1, 2, 16))
        >>> labels.update(scores >= rule.tau_[:, None])
        >>> labels.accepted
        array([[ True, False]])
        >>> bool((labels.exits < 16).all())
        True
        """
        rules: ClassRules = self._require_rule("predicting")
        if spread is None and rules.stops_early:
            return rules.tests
        return tuple(
            test
            if rule is None
            else BinCP._with_rule(rule, self.certificate).sequential_rule(spread=spread)
            for rule, test in zip(rules.rules, rules.tests, strict=True)
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the rules of all classes to one file of versioned JSON; they load back exactly.

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
        >>> rule = bincp.MondrianBinCP(certificate, n_classes=2)
        >>> scores = np.random.default_rng(0).normal(1, 0.3, (200, 16))
        >>> rule = rule.calibrate(scores, np.arange(200) % 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rule.save(pathlib.Path(folder, "rules.json"))
        ...     loaded = bincp.MondrianBinCP.load(pathlib.Path(folder, "rules.json"))
        >>> bool((loaded.tau_ == rule.tau_).all())
        True
        """
        _storage.write(path, self._require_rule("save()"))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "MondrianBinCP":
        """Read the rules that `save` wrote.

        They predict as the saved ones did. As with `BinCP.load`, the certificate is there again if
        bincp knows its smoothing scheme and ball by itself; otherwise `certificate` is None.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        MondrianBinCP

        Raises
        ------
        OSError
            If the file cannot be read.
        TypeError
            If `path` is no path.
        ValueError
            If it holds no rules of classes, is damaged, or was written by another version.

        Examples
        --------
        See `save`.
        """
        return cls._with_rules(*_storage.read_as(ClassRules, path))


def _check_departures(settings: Settings) -> None:
    """Refuse what has no proof for each class."""
    if settings.label_noise is not None and settings.label_noise[0] != "count":
        raise ValueError(
            '`label_noise` must be None or ("count", c) for MondrianBinCP, because errors move '
            "points between classes and their share of each class is not known, got "
            f"{settings.label_noise!r}"
        )
    poisoned = settings.lost or settings.resizes
    if poisoned and settings.correction == "shared-draws":
        raise ValueError(
            '`correction` must not be "shared-draws" with poisoned points, because its rules '
            "depend on the sizes of the classes, which an adversary then chooses"
        )
    if poisoned and settings.spends_on_classes:
        raise ValueError(
            '`union` must be "two-bounds" with poisoned points, because the bounds of '
            f'"per-bound" depend on the sizes of the classes, got {settings.union!r}'
        )
