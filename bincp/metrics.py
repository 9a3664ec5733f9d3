"""Measures of prediction sets: coverage and size.

Sets are boolean arrays (n, K), labels integers (n,) in [0, K). Where a function says so, sets of
real labels are taken, too: `bincp.regression.IntervalSets`, with real labels (n,). A measurement on
a sample differs from the average: with n test points the standard error of the coverage is about
``sqrt(coverage (1 - coverage) / n)``, beside the spread over calibration sets. `coverage_interval`
bounds the first exactly.
"""

import math
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, as_counts, where
from bincp._utils.levels import Level, as_fraction, check_level, float_above
from bincp._utils.validation import check_integer
from bincp.intervals import clopper_pearson_lower, clopper_pearson_upper

__all__ = [
    "average_set_size",
    "average_width",
    "class_conditional_coverage",
    "coverage",
    "coverage_interval",
    "empty_rate",
    "false_negative_rate",
    "singleton_rate",
    "size_stratified_coverage",
    "unbounded_rate",
    "worst_slice_coverage",
]

Sets: TypeAlias = npt.NDArray[np.bool_]

_LARGE = 900  # exponent of two of coordinates that are scaled; doubles end at 1024


@runtime_checkable
class RealSets(Protocol):
    """The part of `bincp.regression.IntervalSets` that metrics need."""

    @property
    def n_pieces(self) -> npt.NDArray[np.int64]: ...
    def contains(self, y: ArrayLike) -> npt.NDArray[np.bool_]: ...
    def widths(self) -> npt.NDArray[np.float64]: ...


def coverage(sets: ArrayLike | RealSets, labels: ArrayLike) -> float:
    """Return the share of the points whose set holds their label.

    Parameters
    ----------
    sets : bool array (n, K) or IntervalSets
    labels : array-like (n,) of int, or of finite real numbers with IntervalSets, or Run
        Integers in [0, K). Or a run of `bincp.sampling.run` that has labels.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    TypeError
        If the sets are not boolean, or the labels not integers.
    ValueError
        If there are no points, shapes do not fit, or a label is out of range.

    Examples
    --------
    >>> from bincp.metrics import coverage
    >>> coverage([[True, True, False], [False, True, False]], [0, 2])
    0.5
    >>> from bincp.regression import IntervalSets
    >>> coverage(IntervalSets.from_ends([[0.0], [1.0]], [[2.0], [3.0]], 1), [2.0, 0.5])
    0.5
    """
    return float(_held(sets, labels).mean())


def coverage_interval(
    sets: ArrayLike | RealSets, labels: ArrayLike, *, confidence: Level = 0.95
) -> tuple[float, float]:
    """Return a confidence interval for the probability that a set holds the label of its point.

    Parameters
    ----------
    sets : bool array (n, K) or IntervalSets
    labels : array-like (n,) of int, or of finite real numbers with IntervalSets, or Run
        As in `coverage`.
    confidence : int, float, str, Decimal or Fraction
        In (0, 1). Each end is wrong with probability (1 - confidence) / 2 at most.

    Returns
    -------
    (float, float)
        The interval of Clopper and Pearson, in [0, 1], rounded outward.

    Raises
    ------
    TypeError, ValueError
        As in `coverage`, and if `confidence` is no number in (0, 1).

    Notes
    -----
    The probability is that over test points, given the calibration: it varies with the calibration
    set, and the guarantee of `bincp.BinCP` is about its average. Test points must be i.i.d., and
    each with noise of its own. Copies of one image, or attacks of one point in several ways, are
    not. Of several intervals each holds on its own, not all at once.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.metrics import coverage_interval
    >>> sets = np.ones((100, 3), dtype=bool)
    >>> low, high = coverage_interval(sets, np.zeros(100, dtype=int))
    >>> round(low, 4), high
    (0.9638, 1.0)
    """
    covered = _held(sets, labels)
    return share_interval(int(covered.sum()), len(covered), check_level("confidence", confidence))


def share_interval(successes: int, trials: int, confidence: Fraction) -> tuple[float, float]:
    """Return a confidence interval for a probability that is known from a count."""
    error = (1 - confidence) / 2
    low = clopper_pearson_lower(successes, trials, error)
    return float(low), float(clopper_pearson_upper(successes, trials, error))


def average_set_size(sets: ArrayLike) -> float:
    """Return the mean number of labels in a set.

    Parameters
    ----------
    sets : bool array (n, K)

    Returns
    -------
    float
        In [0, K].

    Raises
    ------
    TypeError, ValueError
        If the sets are not boolean, not (n, K), or there are none.

    Examples
    --------
    >>> from bincp.metrics import average_set_size
    >>> average_set_size([[True, True, False], [False, True, False]])
    1.5
    """
    return float(_as_sets(sets).sum(axis=1).mean())


def average_width(sets: RealSets) -> float:
    """Return the mean total length of sets of real labels.

    Parameters
    ----------
    sets : IntervalSets
        ``sets.hulls()`` for the mean width of the least intervals around them.

    Returns
    -------
    float
        At least 0, in the units of the labels; infinite where a set is unbounded, see
        `unbounded_rate`. An empty set has the width 0.

    Raises
    ------
    TypeError
        If the sets are no `bincp.regression.IntervalSets`.
    ValueError
        If there are none.

    Examples
    --------
    >>> from bincp.metrics import average_width
    >>> from bincp.regression import IntervalSets
    >>> average_width(IntervalSets.from_ends([[0.0], [1.0]], [[2.0], [4.0]], 1))
    2.5
    """
    widths = _real_widths(sets)
    _, exponent = np.frexp(widths.max())  # their sum may be beyond the doubles
    return float(np.ldexp(np.ldexp(widths, -exponent).mean(), exponent))


def unbounded_rate(sets: RealSets) -> float:
    """Return the share of the sets of real labels that have an infinite width.

    Parameters
    ----------
    sets : IntervalSets

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    TypeError, ValueError
        As in `average_width`.

    Examples
    --------
    >>> from bincp.metrics import unbounded_rate
    >>> from bincp.regression import IntervalSets
    >>> unbounded_rate(IntervalSets.from_ends([[0.0], [1.0]], [[float("inf")], [4.0]], 1))
    0.5
    """
    return float(np.isinf(_real_widths(sets)).mean())


def singleton_rate(sets: ArrayLike) -> float:
    """Return the share of the sets that hold exactly one label.

    Parameters
    ----------
    sets : bool array (n, K)

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    TypeError, ValueError
        If the sets are not boolean, not (n, K), or there are none.

    Examples
    --------
    >>> from bincp.metrics import singleton_rate
    >>> singleton_rate([[True, True, False], [False, True, False]])
    0.5
    """
    return float((_as_sets(sets).sum(axis=1) == 1).mean())


def empty_rate(sets: ArrayLike | RealSets) -> float:
    """Return the share of the sets that hold no label.

    Parameters
    ----------
    sets : bool array (n, K) or IntervalSets

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    TypeError, ValueError
        If the sets are not boolean, not (n, K), or there are none.

    Examples
    --------
    >>> from bincp.metrics import empty_rate
    >>> empty_rate([[True, True, False], [False, False, False]])
    0.5
    """
    if isinstance(sets, RealSets):
        _check_some(sets)
        return float((sets.n_pieces == 0).mean())
    return float((~_as_sets(sets).any(axis=1)).mean())


def class_conditional_coverage(sets: ArrayLike, labels: ArrayLike) -> npt.NDArray[np.float64]:
    """Return, for each class, the share of its points whose set holds their label.

    Parameters
    ----------
    sets : bool array (n, K)
    labels : array-like (n,) of int, or Run
        In [0, K). Or a run of `bincp.sampling.run` that has labels.

    Returns
    -------
    float64 array (K,)
        NaN for a class that no point has; the number of classes is the width of the sets.

    Raises
    ------
    TypeError
        If the sets are not boolean, or the labels not integers.
    ValueError
        If there are no points, shapes do not fit, or a label is out of range.

    Examples
    --------
    >>> from bincp.metrics import class_conditional_coverage
    >>> class_conditional_coverage([[True, True, False], [False, True, False]], [0, 2])
    array([ 1., nan,  0.])
    """
    members = _as_sets(sets)
    covered = _covered(members, labels)
    y = _as_labels(labels, members.shape[1])
    return _share_by_group(covered, y, members.shape[1])


def size_stratified_coverage(sets: ArrayLike, labels: ArrayLike) -> npt.NDArray[np.float64]:
    """Return the coverage of the sets of each size.

    Parameters
    ----------
    sets : bool array (n, K)
    labels : array-like (n,) of int, or Run
        In [0, K). Or a run of `bincp.sampling.run` that has labels.

    Returns
    -------
    float64 array (K + 1,)
        Coverage of the sets with 0, 1, ..., K labels; NaN for a size that no set has. The
        size-stratified coverage of [1]_ is the smallest of them.

    Raises
    ------
    TypeError
        If the sets are not boolean, or the labels not integers.
    ValueError
        If there are no points, shapes do not fit, or a label is out of range.

    References
    ----------
    .. [1] A. Angelopoulos, S. Bates, J. Malik and M. Jordan, "Uncertainty sets for image
       classifiers using conformal prediction", ICLR 2021.

    Examples
    --------
    >>> from bincp.metrics import size_stratified_coverage
    >>> size_stratified_coverage([[True, True, False], [False, True, False]], [0, 2])
    array([nan,  0.,  1., nan])
    """
    members = _as_sets(sets)
    return _share_by_group(_covered(members, labels), members.sum(axis=1), members.shape[1] + 1)


def false_negative_rate(sets: ArrayLike, labels: ArrayLike) -> npt.NDArray[np.float64]:
    """Return, for each point, the share of its labels that its set misses.

    Parameters
    ----------
    sets, labels : bool array (n, K)
        Predicted and true labels.

    Returns
    -------
    float64 array (n,)
        Shares in [0, 1], 0 for a point without labels; rounded up where it is not a double.

    Raises
    ------
    TypeError
        If an argument is not boolean.
    ValueError
        If they are not of one shape (n, K).

    Examples
    --------
    >>> from bincp.metrics import false_negative_rate
    >>> false_negative_rate([[True, False, False]], [[True, True, False]])
    array([0.5])
    """
    predicted, true = as_members("sets", sets), as_members("labels", labels)
    if predicted.shape != true.shape:
        raise ValueError(
            f"`sets` must have the shape of `labels`, {true.shape}, got {predicted.shape}"
        )
    rates, which = exact_false_negative_rates(predicted, true)
    return np.array([float_above(rate) for rate in rates])[which]


def worst_slice_coverage(
    sets: ArrayLike | RealSets,
    labels: ArrayLike,
    features: ArrayLike,
    *,
    delta: Level = 0.1,
    n_directions: int = 1000,
    held_out: Level = 0.75,
    seed: int = 0,
) -> float:
    """Return the coverage on the worst slab of the feature space.

    A slab holds the points with a <= v.x <= b [1]_ [2]_. Over random directions v, the slab of
    least coverage among those with at least a share `delta` of the points is found on one part of
    the points, and its coverage is measured on the others: on the points that chose the slab it
    would be too low.

    Parameters
    ----------
    sets : bool array (n, K) or IntervalSets
    labels : array-like (n,) of int, or of finite real numbers with IntervalSets, or Run
        As in `coverage`.
    features : array-like (n, d) of float
        Coordinates in which the slabs are made, such as inputs or embeddings; finite.
    delta : int, float, str, Decimal or Fraction
        Least share of the points (of the part that is searched) in a slab, in (0, 1].
    n_directions : int
        Number of directions, uniform on the sphere.
    held_out : int, float, str, Decimal or Fraction
        Share of the points that the slab is measured on, in [0, 1); at 0 all points serve for both,
        and the result is the smallest coverage of all slabs tried.
    seed : int
        Seed of the directions and of the split, at least 0; the same seed gives the same result.

    Returns
    -------
    float
        In [0, 1]; NaN if no held-out point lies in the slab.

    Raises
    ------
    TypeError
        If the sets are not boolean, the labels not integers, or the features not real numbers.
    ValueError
        If there are no points, shapes do not fit, or a value is out of range.

    Notes
    -----
    The search over slabs of one direction is exact, ties of v.x included, by Dinkelbach's method:
    a few passes over the sorted points.

    References
    ----------
    .. [1] M. Cauchois, S. Gupta and J. Duchi, "Knowing what you know: valid and validated
       confidence sets in multiclass and multilabel prediction", JMLR 22, 2021.
    .. [2] Y. Romano, M. Sesia and E. Candès, "Classification with valid and adaptive coverage",
       NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.metrics import worst_slice_coverage
    >>> x = np.linspace(-1, 1, 1001)[:, np.newaxis]
    >>> sets = np.hstack([x < 0.5, x >= 0.5])  # never right for the class 0 above 0.5
    >>> worst_slice_coverage(sets, np.zeros(1001, int), x, n_directions=1)
    0.0
    """
    covered = _held(sets, labels)
    x = _as_features(features, len(covered))
    least_share = check_level("delta", delta, closed_high=True)
    share = as_fraction("held_out", held_out)
    if not 0 <= share < 1:
        raise ValueError(f"`held_out` must be in [0, 1), got {held_out!r}")
    n_directions = check_integer("n_directions", n_directions, low=1)
    rng = np.random.default_rng(check_integer("seed", seed, low=0))
    order = rng.permutation(len(x))
    n_search = math.ceil((1 - share) * len(x))
    searched, measured = order[:n_search], order[n_search:] if share else order
    least = math.ceil(least_share * n_search)
    worst = None
    for _ in range(n_directions):
        # Directions need no norm of 1: slabs are the same. BLAS might round equal rows differently.
        position = np.einsum("ij,j->i", x, rng.standard_normal(x.shape[1]))
        slab = _worst_slab(position[searched], covered[searched], least)
        if worst is None or slab.coverage < worst.coverage:
            worst, at_worst = slab, position
    assert worst is not None
    inside = (worst.low <= at_worst) & (at_worst <= worst.high)
    hits = covered[measured][inside[measured]]
    return float(hits.mean()) if hits.size else math.nan


class _Slab(NamedTuple):
    coverage: float
    low: float
    high: float


def _worst_slab(
    position: npt.NDArray[np.float64], covered: npt.NDArray[np.bool_], least: int
) -> _Slab:
    """Return the slab of least coverage with at least ``least`` points.

    It is a run of sorted points that ends between different positions. The run that minimises
    hits - ratio * points, for the ratio of the run before, has a smaller ratio, unless that ratio
    was the least (Dinkelbach). The ratios are compared as integers.
    """
    order = np.argsort(position)
    z, n = position[order], len(position)
    hits = np.concatenate([[0], np.cumsum(covered[order])])
    is_edge = np.concatenate([[True], z[1:] > z[:-1], [True]])
    start, end = 0, n
    while True:
        total = int(hits[end] - hits[start])
        # In integers: hits * points of the run - points * hits of the run.
        cost = hits * (end - start) - np.arange(n + 1) * total
        value = np.where(is_edge, cost, np.iinfo(np.int64).min // 2)
        best_start = np.maximum.accumulate(value)[: n + 1 - least]
        gain = np.where(is_edge, cost, np.iinfo(np.int64).max // 2)[least:] - best_start
        last = int(np.argmin(gain))
        if gain[last] >= 0:
            return _Slab(total / (end - start), float(z[start]), float(z[end - 1]))
        end = last + least
        start = int(np.argmax(value[: last + 1]))


def _as_features(features: ArrayLike, n: int) -> npt.NDArray[np.float64]:
    array = as_array("features", features)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"`features` must be real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or len(array) != n or array.shape[1] == 0:
        raise ValueError(f"`features` must have shape ({n}, d), d >= 1, got {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"`features` must be finite, got {array[bad][0]} {where(bad)}")
    values = array.astype(np.float64, copy=False)
    _, exponent = np.frexp(np.abs(values).max())
    # The slabs are the same on every scale, and sums of coordinates must not overflow.
    return values if exponent < _LARGE else np.ldexp(values, -exponent)


def _share_by_group(
    covered: npt.NDArray[np.bool_], group: npt.NDArray[np.integer], n_groups: int
) -> npt.NDArray[np.float64]:
    """Return the share of the points of each group that are covered; NaN for an empty one."""
    total = np.bincount(group, minlength=n_groups)
    hits = np.bincount(group, weights=covered, minlength=n_groups)
    result = np.full(n_groups, np.nan)
    np.divide(hits, total, out=result, where=total > 0)
    return result


@runtime_checkable
class _Labelled(Protocol):
    """What is asked of a run, whose class is in a room above this one."""

    def labels(self) -> npt.NDArray[np.int64] | None: ...


def _as_labels(labels: ArrayLike, n_classes: int) -> npt.NDArray[np.int64]:
    """Return labels in [0, K), those of a run if it is one."""
    own = labels.labels() if isinstance(labels, _Labelled) else labels
    if own is None:
        raise ValueError(f"`labels` must be labels or a run that has them, got {labels!r}")
    return as_counts("labels", own, high=n_classes - 1)


def _covered(members: npt.NDArray[np.bool_], labels: ArrayLike) -> npt.NDArray[np.bool_]:
    y = _as_labels(labels, members.shape[1])
    if y.shape != (len(members),):
        raise ValueError(f"`labels` must have shape {(len(members),)}, got {y.shape}")
    return members[np.arange(len(y)), y]


def _held(sets: ArrayLike | RealSets, labels: ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which sets hold their label, for both kinds of sets."""
    if not isinstance(sets, RealSets):
        return _covered(_as_sets(sets), labels)
    _check_some(sets)
    if np.shape(labels) != sets.n_pieces.shape:
        raise ValueError(f"`labels` must have shape {sets.n_pieces.shape}, got {np.shape(labels)}")
    return sets.contains(labels)


def _real_widths(sets: RealSets) -> npt.NDArray[np.float64]:
    if not isinstance(sets, RealSets):
        raise TypeError(f"`sets` must be IntervalSets, got {type(sets).__name__}")
    _check_some(sets)
    return sets.widths()


def _check_some(sets: RealSets) -> None:
    if len(sets.n_pieces) == 0:
        raise ValueError("`sets` must hold at least one set, got none")


def _as_sets(sets: ArrayLike) -> npt.NDArray[np.bool_]:
    members = as_array("sets", sets)
    if members.dtype != np.bool_:
        raise TypeError(f"`sets` must be boolean, got dtype {members.dtype}")
    if members.ndim != 2 or members.size == 0:
        raise ValueError(f"`sets` must have shape (n, K) and not be empty, got {members.shape}")
    return members


def exact_false_negative_rates(
    sets: Sets, true: Sets
) -> tuple[list[Fraction], npt.NDArray[np.intp]]:
    """Return the distinct false-negative rates, and which of them each point has."""
    missed, total = (true & ~sets).sum(axis=1), true.sum(axis=1)
    width = true.shape[1] + 1
    pairs, which = np.unique(missed * width + total, return_inverse=True)
    each = (divmod(pair, width) for pair in pairs.tolist())
    return [Fraction(a, b) if b else Fraction(0) for a, b in each], which


def as_members(name: str, value: ArrayLike) -> Sets:
    """Return sets of labels as a boolean array (n, K), which may be empty."""
    members = as_array(name, value)
    if members.dtype != np.bool_:
        cure = ""
        if members.dtype.kind in "iu" and members.ndim == 1:
            cure = f"; {name}[:, None] == np.arange(K) are the sets of one label each"
        raise TypeError(
            f"`{name}` must be boolean, of shape (n, K), got dtype {members.dtype} and shape "
            f"{members.shape}{cure}"
        )
    if members.ndim != 2:
        raise ValueError(f"`{name}` must have shape (n, K), got {members.shape}")
    return members
