"""Set predictors of other conformal libraries on noisy inputs, for `bincp.audit`."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._models._as_model import shown
from bincp._utils.arrays import ArrayLike, as_array, as_counts, is_tensor, where
from bincp._utils.levels import Level, check_level
from bincp.adapters._classes import listed, places
from bincp.adapters._columns import names_of
from bincp.noise import draw
from bincp.regression import IntervalSets
from bincp.regression._scores import as_labels


def noisy_outcomes(
    predictor: Any,
    x: ArrayLike,
    y: ArrayLike,
    smoothing: Any,
    *,
    confidence: Level | None = None,
    classes: Sequence[Any] | None = None,
    seed: int | None = None,
) -> npt.NDArray[np.bool_]:
    """Return whether the set of each input, after one noisy draw, holds the true label.

    `bincp.audit` takes these outcomes of held-out points, and returns what the predictor keeps
    under attack, at every radius, if each of its inputs gets one noisy draw.

    Parameters
    ----------
    predictor : object
        A calibrated predictor; it should have been calibrated on noisy inputs, too. One of:

        * of MAPIE (version 1), with ``predict_set`` or ``predict_interval``, at one level;
        * of crepes, a ``WrapClassifier`` or ``WrapRegressor``; `confidence` says the level;
        * of TorchCP, whose ``predict`` returns labels (n, K) or intervals (n, 1, 2);
        * a function of noisy inputs (n, ...), an array, that returns sets: booleans, or numbers 0
          and 1 (n, K); closed intervals in floating point (n, 2); or
          `bincp.regression.IntervalSets`.

    x : array (n, ...)
        Held-out inputs, not those of the calibration. They get the noise. A data frame is refused
        if its columns have names.
    y : array_like (n,)
        Their labels: integers in [0, K), or `classes`; or real numbers.
    smoothing : Smoothing
        The smoothing scheme.
    confidence : int, float, str, Decimal or Fraction, optional
        The confidence level that crepes is asked for.
    classes : sequence, optional
        The class of each column of the sets; by default those that a predictor of MAPIE or crepes
        was fitted on, and else 0, 1, ..., K - 1.
    seed : int, optional
        Of the noise; by default a secret one.

    Returns
    -------
    bool array (n,)

    Raises
    ------
    TypeError
        If the predictor is none of these, or its sets are of another kind.
    ValueError
        If the sets or labels have a wrong shape or range, or several confidence levels; if an end
        of an interval is NaN, or a real label is not finite or no double; if sets might be
        intervals as well, being numbers 0 and 1 in floating point (n, 2) with integers as labels;
        if `classes` are not those of the predictor; or if `confidence` is missing or unwanted.

    Notes
    -----
    None of the libraries is imported here. A predictor that treats the inputs of a batch together,
    or learns from one to the next, is none for an audit.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> from bincp.adapters import noisy_outcomes
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    >>> def predictor(noisy):
    ...     return np.stack([np.full(len(noisy), -2.0), np.full(len(noisy), 2.0)], axis=1)
    >>> scheme = bincp.smoothing.Gaussian(0.5)
    >>> outcomes = noisy_outcomes(predictor, x, y, scheme)
    >>> found = bincp.audit(scheme, bincp.balls.L2, [0.1], outcomes=outcomes, delta=0.05)
    >>> bool(0.8 < found.coverage[0] < 0.95)
    True
    """
    if (names := names_of(x)) is not None:
        raise TypeError(
            f"`x` must be an array, got {type(x).__name__} with the columns {names}, which noise "
            "does not keep; use x.to_numpy() with the columns that the predictor was fitted on"
        )
    given = secrets.randbits(64) if seed is None else seed
    noisy = draw(smoothing, x, 1, phase="test", seed=given)[:, 0]
    n = len(noisy)
    sets = _sets_of(predictor, confidence)(noisy)
    if isinstance(sets, IntervalSets):
        if len(sets) != n:
            raise ValueError(f"`predictor` must return {n} sets, got {len(sets)}")
        return sets.contains(_real_labels(y, n))
    array = as_array("predictor(x)", sets)
    if array.dtype.kind == "f":
        return _in_intervals(array, y, classes, n)
    return _in_sets(array, y, _columns(predictor, classes), n)


def _sets_of(predictor: Any, confidence: Level | None) -> Callable[[npt.NDArray[Any]], Any]:
    """Return the function of inputs that gives the sets of a predictor."""
    libraries = {one.__module__.partition(".")[0] for one in type(predictor).__mro__}
    if ("crepes" in libraries) != (confidence is not None):
        raise ValueError(
            "`confidence` must be given for a predictor of crepes, and only then, "
            f"got {confidence!r} for {shown(predictor)}"
        )
    if "mapie" in libraries and hasattr(predictor, "predict_set"):
        return lambda x: _one_level(predictor.predict_set(x)[1])
    if "mapie" in libraries and hasattr(predictor, "predict_interval"):
        return lambda x: _one_level(predictor.predict_interval(x)[1])
    if confidence is not None and hasattr(predictor, "learner"):  # the others take no inputs
        level = float(check_level("confidence", confidence))
        if hasattr(predictor, "predict_int"):
            return lambda x: predictor.predict_int(x, confidence=level)
        if hasattr(predictor, "predict_set"):
            return lambda x: predictor.predict_set(x, labels=False, confidence=level)
    if "torchcp" in libraries and hasattr(predictor, "predict"):
        return lambda x: _of_torchcp(predictor, x)
    if callable(predictor) and not isinstance(predictor, type):
        return predictor  # type: ignore[no-any-return]
    raise TypeError(
        "`predictor` must be one of MAPIE, crepes (WrapClassifier, WrapRegressor) or TorchCP that "
        f"predicts sets or intervals of inputs, or a function, got {shown(predictor)}"
    )


def _one_level(sets: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sets of the only confidence level, which is the last axis."""
    if sets.ndim != 3 or sets.shape[2] != 1:
        raise ValueError(
            f"`predictor` must have one confidence level, got sets of shape {sets.shape}"
        )
    return sets[:, :, 0]


def _of_torchcp(predictor: Any, x: npt.NDArray[Any]) -> Any:
    import torch

    sets = predictor.predict(torch.from_numpy(x))
    if not is_tensor(sets):
        raise TypeError(f"`predictor` must return a tensor of sets, got {type(sets).__name__}")
    sets = sets.detach().cpu()
    return sets[:, 0] if sets.ndim == 3 and sets.shape[1] == 1 else sets


def _columns(predictor: Any, classes: Sequence[Any] | None) -> list[Any] | None:
    """Return the classes of the columns of sets, as they are said or as the predictor knows them.

    None stands for 0, 1, ..., K - 1.
    """
    given = None if classes is None else listed(classes)
    fitted = getattr(predictor, "learner", getattr(predictor, "_mapie_classifier", predictor))
    own = getattr(fitted, "classes_", None)
    if own is None:
        return given
    known = listed(own)
    if given not in (None, known):
        raise ValueError(f"`classes` must be those of the predictor, {known}, got {given}")
    return None if known == list(range(len(known))) else known


def _in_intervals(
    ends: npt.NDArray[Any], y: ArrayLike, classes: Sequence[Any] | None, n: int
) -> npt.NDArray[np.bool_]:
    if ends.shape != (n, 2):
        raise ValueError(
            f"`predictor` must return intervals of shape ({n}, 2), got floats of {ends.shape}; a "
            "function that returns bincp.regression.IntervalSets serves unions of intervals"
        )
    is_class = classes is not None or as_array("y", y).dtype.kind in "iu"
    if is_class and np.isin(ends, (0, 1)).all():
        raise ValueError(
            "`predictor` must return sets of classes as booleans or integers, got numbers 0 and 1 "
            f"in {ends.dtype}, which would be intervals; `y` in floating point are real labels"
        )
    labels = _real_labels(y, n)
    bad = np.isnan(ends)
    if bad.any():
        raise ValueError(f"intervals of `predictor` must not be NaN, got one {where(bad)}")
    return np.asarray((ends[:, 0] <= labels) & (labels <= ends[:, 1]))


def _real_labels(y: ArrayLike, n: int) -> npt.NDArray[np.float64]:
    labels = as_labels("y", y)
    if labels.shape != (n,):
        raise ValueError(f"`y` must be real numbers of shape ({n},), got shape {labels.shape}")
    return labels


def _in_sets(
    sets: npt.NDArray[Any], y: ArrayLike, classes: list[Any] | None, n: int
) -> npt.NDArray[np.bool_]:
    if sets.dtype.kind not in "biu":
        raise TypeError(f"`predictor` must return booleans or intervals, got {sets.dtype}")
    if sets.ndim != 2 or len(sets) != n or not np.isin(sets, (0, 1)).all():
        raise ValueError(
            f"`predictor` must return sets of shape ({n}, K) of 0 and 1, got shape {sets.shape}"
        )
    if classes is not None:
        if len(classes) != sets.shape[1]:
            raise ValueError(f"`classes` must have {sets.shape[1]} entries, got {len(classes)}")
        y = places("y", y, classes)
    labels = as_counts("y", y, high=sets.shape[1] - 1)
    if labels.shape != (n,):
        raise ValueError(f"`y` must have shape ({n},), got {labels.shape}")
    return np.asarray(sets[np.arange(n), labels] == 1)
