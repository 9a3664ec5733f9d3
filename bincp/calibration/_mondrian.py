"""Class-conditional (Mondrian) calibration: one `BinCP` a class, so that each class is covered."""

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, as_counts, as_scores, is_tensor
from bincp._utils.validation import check_integer
from bincp.calibration._bincp import BinCP
from bincp.certificates import Certificate
from bincp.counting import check_no_nan
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
        Of the smoothing scheme that draws the scores, for the ball to be robust against.
    n_classes : int
        K; never inferred from labels.
    **options
        Of `BinCP`: alpha, p, tau, correction, union, eta, guarantee. With "clopper-pearson" and the
        union of the paper a class of n_y points spends eta / (n_y + 1) on each bound.

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

    rules_: list[BinCP | None]
    tau_: npt.NDArray[np.float64]
    n_calibration_: npt.NDArray[np.int64]
    n_test_samples_: int
    dtype_: str

    def __init__(self, certificate: Certificate, *, n_classes: int, **options: Any) -> None:
        self.n_classes = check_integer("n_classes", n_classes, low=1)
        self.certificate = certificate
        self._options = options
        self.alpha = self._new_rule().alpha  # checks certificate and options

    def __repr__(self) -> str:
        state = f"tau_={self.tau_!r}" if hasattr(self, "rules_") else "not calibrated"
        return f"MondrianBinCP(n_classes={self.n_classes}, alpha={self.alpha}, {state})"

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
        if scores.bits.ndim != 2 or 0 in scores.bits.shape:
            raise ValueError(
                f"`true_scores` must have shape (n, m) with n, m >= 1, got {scores.bits.shape}"
            )
        check_no_nan("true_scores", scores)
        y = as_counts("labels", labels, high=self.n_classes - 1)
        if y.shape != scores.bits.shape[:1]:
            raise ValueError(f"`labels` must have shape {scores.bits.shape[:1]}, got {y.shape}")
        m = scores.bits.shape[1]
        m_test = (
            m if n_test_samples is None else check_integer("n_test_samples", n_test_samples, low=1)
        )
        rows = true_scores if is_tensor(true_scores) else as_array("true_scores", true_scores)
        rules = [
            self._calibrated_rule(rows, np.flatnonzero(y == label), m_test)
            for label in range(self.n_classes)
        ]
        self.rules_ = rules
        self.tau_ = np.array([-np.inf if rule is None else rule.tau_ for rule in rules])
        self.n_calibration_ = np.bincount(y, minlength=self.n_classes)
        self.n_test_samples_, self.dtype_ = m_test, scores.dtype
        self._warn_if_trivial()
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
        if not hasattr(self, "rules_"):
            raise NotCalibratedError("call calibrate() before predicting")
        checked = as_scores("scores", scores)
        shape, wanted = checked.bits.shape, (self.n_classes, self.n_test_samples_)
        if len(shape) != 3 or shape[1:] != wanted:
            raise ValueError(
                f"`scores` must have shape (n, K, m') with (K, m') = {wanted}, as calibrated for, "
                f"got {shape}"
            )
        if checked.dtype != self.dtype_:
            raise ValueError(
                f"`scores` must have the dtype calibrated with, {self.dtype_}, got {checked.dtype}"
            )
        check_no_nan("scores", checked)
        columns = scores if is_tensor(scores) else as_array("scores", scores)
        sets = np.ones(shape[:2], dtype=np.bool_)
        for label, rule in enumerate(self.rules_):
            if rule is not None:
                sets[:, label] = rule.predict_set(columns[:, label : label + 1])[:, 0]
        return sets

    def _new_rule(self) -> BinCP:
        return BinCP(self.certificate, **self._options)

    def _calibrated_rule(
        self, true_scores: Any, points: npt.NDArray[np.int64], m_test: int
    ) -> BinCP | None:
        if points.size == 0:
            return None
        with warnings.catch_warnings():  # one warning in the end for all classes
            warnings.simplefilter("ignore", TrivialSetWarning)
            return self._new_rule().calibrate(
                true_scores[points], n_classes=1, n_test_samples=m_test
            )

    def _warn_if_trivial(self) -> None:
        always = [
            label
            for label, rule in enumerate(self.rules_)
            if rule is None or rule.tau_ == -np.inf or rule.min_count_ == 0
        ]
        if always:
            named = ", ".join(map(str, always[:5])) + (", ..." if len(always) > 5 else "")
            warnings.warn(
                f"the labels of {len(always)} of {self.n_classes} classes will be in every "
                f"prediction set: class {named}, the first with {self.n_calibration_[always[0]]} "
                "calibration points; more points of these classes, a smaller radius or a larger "
                "alpha would fix it",
                TrivialSetWarning,
                stacklevel=3,
            )
