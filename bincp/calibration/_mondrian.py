"""Class-conditional (Mondrian) calibration: a rule for each class, so that each is covered."""

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, Scores, as_counts, as_scores
from bincp._utils.validation import check_integer
from bincp.calibration._arguments import (
    check_calibration_shape,
    check_test_samples,
    check_test_scores,
)
from bincp.calibration._bincp import BinCP
from bincp.calibration._decision_rule import DecisionRule
from bincp.certificates import Certificate
from bincp.counting import check_no_nan, decide
from bincp.errors import NotCalibratedError, TrivialSetWarning

__all__ = ["MondrianBinCP"]


class MondrianBinCP:
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
        The options of `BinCP`: alpha, p, tau, correction, union, eta, guarantee. With
        "clopper-pearson" and the union "per-bound" a class of n_y points spends eta / (n_y + 1) on
        each bound.

    Attributes
    ----------
    rules_ : list of BinCP or None, length K
        The calibrated rule of each class; None for a class without calibration points.
    tau_ : ndarray of float64, shape (K,)
        Thresholds; -inf for a class without calibration points, or with too few.
    n_calibration_ : ndarray of int64, shape (K,)
        Calibration points of each class.
    n_test_samples_ : int
        m'.
    dtype_ : str
        Dtype of the scores.

    Notes
    -----
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

    _fit: "_Fit | None"

    def __init__(self, certificate: Certificate, *, n_classes: int, **options: Any) -> None:
        self.n_classes = check_integer("n_classes", n_classes, low=1)
        self.certificate = certificate
        self._options = options
        self._fit = None
        self.alpha = self._new_rule().alpha  # checks certificate and options

    def __repr__(self) -> str:
        state = "not calibrated" if self._fit is None else f"tau_={self._fit.tau!r}"
        return f"MondrianBinCP(n_classes={self.n_classes}, alpha={self.alpha}, {state})"

    @property
    def rules_(self) -> list[BinCP | None]:
        """The calibrated rule of each class; None for a class without calibration points."""
        return [
            None if rule is None else BinCP._with_rule(rule, self.certificate)
            for rule in self._fitted.rules
        ]

    @property
    def tau_(self) -> npt.NDArray[np.float64]:
        """Thresholds, shape (K,)."""
        return self._fitted.tau.copy()

    @property
    def n_calibration_(self) -> npt.NDArray[np.int64]:
        """Calibration points of each class, shape (K,)."""
        return self._fitted.n_calibration.copy()

    @property
    def n_test_samples_(self) -> int:
        """The number of samples m' at prediction."""
        return self._fitted.m_test

    @property
    def dtype_(self) -> str:
        """Dtype of the scores."""
        return self._fitted.dtype

    @property
    def _fitted(self) -> "_Fit":
        if self._fit is None:
            raise AttributeError("a MondrianBinCP has its fitted attributes only after calibration")
        return self._fit

    def calibrate(
        self, true_scores: ArrayLike, labels: ArrayLike, *, n_test_samples: int | None = None
    ) -> Self:
        """Calibrate on sampled scores of the true labels.

        Parameters
        ----------
        true_scores : array_like of float16, bfloat16, float32 or float64, shape (n, m)
            m sampled scores of the true label of each of n calibration points.
        labels : array_like of int, shape (n,)
            The true labels, in [0, K).
        n_test_samples : int, optional
            m', number of samples at prediction; m if not given.

        Returns
        -------
        MondrianBinCP
            The object itself, calibrated.

        Warns
        -----
        TrivialSetWarning
            If the labels of some classes will be in every set; the message counts and names them.

        Raises
        ------
        TypeError
            If the labels are not integers.
        ValueError
            If shapes do not fit, the dtype is wrong, a score is NaN, or a label is out of range.
        """
        scores = as_scores("true_scores", true_scores)
        check_calibration_shape(scores, "(n, m)")
        check_no_nan(scores)  # here, for the places in a class are not those in the argument
        y = as_counts("labels", labels, high=self.n_classes - 1)
        if y.shape != scores.bits.shape[:1]:
            raise ValueError(f"`labels` must have shape {scores.bits.shape[:1]}, got {y.shape}")
        m_test = check_test_samples(n_test_samples, scores.bits.shape[1])
        one = self._new_rule()
        rules = tuple(
            _rule_of_class(one, scores.rows(np.flatnonzero(y == label)), m_test)
            for label in range(self.n_classes)
        )
        n_calibration = np.bincount(y, minlength=self.n_classes)
        self._fit = fit = _Fit(rules, n_calibration, m_test, scores.dtype)
        self._warn_if_trivial(fit)
        return self

    def predict_set(self, scores: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of inputs with sampled scores.

        Parameters
        ----------
        scores : array_like, shape (n, K, m')
            m' sampled scores of each label of each input, of the dtype calibrated with.

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
        fit = self._fit
        if fit is None:
            raise NotCalibratedError("call calibrate() before predicting")
        checked = as_scores("scores", scores)
        check_test_scores(checked, fit.dtype, self.n_classes, fit.m_test)
        return decide(checked, fit.tau, fit.min_count)

    def _new_rule(self) -> BinCP:
        return BinCP(self.certificate, **self._options)

    def _warn_if_trivial(self, fit: "_Fit") -> None:
        always = [label for label, rule in enumerate(fit.rules) if rule is None or rule.accepts_all]
        if always:
            named = ", ".join(map(str, always[:5])) + (", ..." if len(always) > 5 else "")
            warnings.warn(
                f"the labels of {len(always)} of {self.n_classes} classes will be in every "
                f"prediction set: class {named}, the first with {fit.n_calibration[always[0]]} "
                "calibration points; more points of these classes, a smaller radius or a larger "
                "alpha would fix it",
                TrivialSetWarning,
                stacklevel=3,
            )


class _Fit:
    """The rules of all classes, and what they have in common."""

    def __init__(
        self,
        rules: tuple[DecisionRule | None, ...],
        n_calibration: npt.NDArray[np.int64],
        m_test: int,
        dtype: str,
    ) -> None:
        self.rules = rules
        self.n_calibration = n_calibration
        self.m_test = m_test
        self.dtype = dtype
        self.tau = np.array([-np.inf if rule is None else rule.tau for rule in rules])
        self.min_count = np.array([0 if rule is None else rule.min_count for rule in rules])


def _rule_of_class(one: BinCP, scores: Scores, m_test: int) -> DecisionRule | None:
    """Return the rule of a class from its scores; None where it has no points."""
    return one._fit(scores, 1, m_test) if len(scores.bits) else None
