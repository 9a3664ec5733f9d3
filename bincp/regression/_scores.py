"""Conformity scores of real labels, and the intervals of labels that reach a threshold.

All of them are min((y - low) / scale, (high - y) / scale), rounded down to a double. So a score
reaches a threshold iff the exact number does, and the labels that reach it are those of an interval
whose ends are known exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._core import _sweep
from bincp._utils.arrays import ArrayLike, as_array, as_scores, where
from bincp._utils.validation import MAX_COUNT, check_integer

Array: TypeAlias = npt.NDArray[np.float64]
Parts: TypeAlias = tuple[Array, Array, Array | None]
"""low, high and scale, each (n, m) and C-contiguous; no scale stands for 1."""


@dataclass(frozen=True)
class IntervalScore:
    """A score of real labels: the numbers that it takes of a model, and what it makes of them."""

    name: str
    numbers: tuple[str, ...]
    parts: Callable[..., Parts]


def _around(f: Array) -> Parts:
    return f, f, None


def is_no_spread(spread: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
    """Return where a spread is not positive and finite."""
    return ~((spread > 0) & (spread < np.inf))


def _scaled(f: Array, spread: Array) -> Parts:
    bad = is_no_spread(spread)
    if bad.any():
        raise ValueError(
            f"`predictions` must have spreads that are positive and finite, got {spread[bad][0]} "
            f"{where(bad)} of the spreads"
        )
    return f, f, spread


def _between(low: Array, high: Array) -> Parts:
    return low, high, None


def _above(low: Array) -> Parts:
    return low, np.full_like(low, np.inf), None


def _below(high: Array) -> Parts:
    return np.full_like(high, -np.inf), high, None


SCORES = {
    one.name: one
    for one in (
        IntervalScore("residual", ("prediction",), _around),
        IntervalScore("normalized", ("prediction", "spread"), _scaled),
        IntervalScore("cqr", ("lower quantile", "upper quantile"), _between),
        IntervalScore("lower", ("lower quantile",), _above),
        IntervalScore("upper", ("upper quantile",), _below),
    )
}


def score_of(name: object) -> IntervalScore:
    """Return the score of a name."""
    if not isinstance(name, str) or name not in SCORES:
        raise ValueError(f"`score` must be one of {', '.join(SCORES)}, got {name!r}")
    return SCORES[name]


def conformity_scores(
    predictions: ArrayLike, y: ArrayLike, *, score: str = "residual"
) -> npt.NDArray[np.float64]:
    """Return the scores of labels under sampled predictions, which `bincp.BinCP` calibrates on.

    Parameters
    ----------
    predictions : array of float16, bfloat16, float32 or float64, shape (n, m) or (n, 2, m)
        What the model predicts for each of m noisy copies of each input, in the units of `y`.
        Scores of two numbers take both along the second axis. Infinite predictions are ordinary
        ones.
    y : array_like (n,)
        The labels: finite real numbers. Integers must be doubles.
    score : {"residual", "normalized", "cqr", "lower", "upper"}, optional
        Which score, larger where label and prediction agree better:

        * "residual", of a prediction f: -abs(y - f);
        * "normalized", of f and its positive spread: -abs(y - f) / spread;
        * "cqr", of the quantiles low and high [1]_: min(y - low, high - y);
        * "lower", of low: y - low, and "upper", of high: high - y. Their sets are half-lines. Where
          a side has a level of its own, each side is calibrated by itself, and
          `IntervalSets.intersection` puts them together.

    Returns
    -------
    float64 array (n, m)
        The largest double that is not above the exact score. Not NaN; possibly infinite.

    Raises
    ------
    TypeError
        If the labels are not real numbers.
    ValueError
        If a prediction is NaN, a label not finite or no double, a spread not positive and finite,
        or a shape, a dtype or the name of the score is wrong.

    See Also
    --------
    predict_sets : Make the sets of a rule that was calibrated on such scores.

    References
    ----------
    .. [1] Romano, Patterson and Candes, "Conformalized quantile regression", NeurIPS 2019.

    Examples
    --------
    >>> from bincp.regression import conformity_scores
    >>> conformity_scores([[1.0, 2.5]], [2.0])
    array([[-1. , -0.5]])
    >>> conformity_scores([[[1.0, 3.0], [4.0, 3.5]]], [2.0], score="cqr")
    array([[ 1., -1.]])
    """
    low, high, scale = parts_of("predictions", predictions, score_of(score))
    labels = as_labels("y", y)
    if labels.shape != (len(low),):
        raise ValueError(f"`y` must have shape {(len(low),)}, got {labels.shape}")
    scores = np.empty_like(low)
    _sweep.scores(low, high, scale, labels, scores)
    return scores


def parts_of(name: str, predictions: ArrayLike, score: IntervalScore) -> Parts:
    """Return what a score makes of predictions (n, m) or (n, 2, m), in double precision."""
    values = as_scores(name, predictions).values()
    q = len(score.numbers)
    wanted = "(n, m)" if q == 1 else f"(n, {q}, m)"
    if values.ndim != (2 if q == 1 else 3) or (q > 1 and values.shape[1] != q) or not values.size:
        raise ValueError(
            f"`{name}` must have shape {wanted} with n, m >= 1 for the score {score.name!r} "
            f"({', '.join(score.numbers)}), got {values.shape}"
        )
    check_integer(f"{name}.shape[-1]", values.shape[-1], low=1, high=MAX_COUNT)
    wide = values.astype(np.float64, order="C")
    bad = np.isnan(wide)
    if bad.any():
        raise ValueError(f"`{name}` must not be NaN, got one {where(bad)}")
    columns = (wide,) if q == 1 else tuple(np.ascontiguousarray(wide[:, i]) for i in range(q))
    return score.parts(*columns)


def ends_of(parts: Parts, tau: float) -> tuple[Array, Array]:
    """Return the ends (n, m) of the labels whose score reaches tau, exact for doubles."""
    low, high, scale = parts
    if tau == -math.inf:
        return np.full_like(low, -np.inf), np.full_like(low, np.inf)
    left, right = np.empty_like(low), np.empty_like(low)
    _sweep.ends(low, high, scale, tau, left, right)
    return left, right


def as_labels(name: str, value: ArrayLike, first: int = 0) -> Array:
    """Return a copy of real labels as doubles; `first` is where they begin in all labels."""
    labels = as_doubles(name, value, first).copy()
    bad = ~np.isfinite(labels)
    if bad.any():
        raise ValueError(f"`{name}` must be finite, got {labels[bad][0]} {where(bad, first)}")
    return labels


def as_doubles(name: str, value: ArrayLike, first: int = 0) -> Array:
    """Return real numbers as doubles; integers between two doubles are refused."""
    array = as_array(name, value)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"`{name}` must be real numbers, got dtype {array.dtype}")
    doubles = array.astype(np.float64, copy=False)
    if array.dtype.kind in "iu":
        # As integers of Python: 2^64 - 1 becomes a double that its own dtype does not hold.
        pairs = zip(doubles.ravel().tolist(), array.ravel().tolist(), strict=True)
        bad = np.array([int(double) != given for double, given in pairs], bool)
        bad = bad.reshape(array.shape)
        if bad.any():
            raise ValueError(f"`{name}` must be doubles, got {array[bad][0]} {where(bad, first)}")
    return doubles
