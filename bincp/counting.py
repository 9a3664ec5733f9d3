"""Exceedance counts: how many of the scores of a row reach a threshold.

A row is the m Monte-Carlo scores of one input and label; everything that is linear in the scores
happens here, in one read of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from bincp._core import _count
from bincp._utils.arrays import ArrayLike, Scores, as_array, as_counts, as_scores, round_to, where
from bincp._utils.threads import run_all
from bincp._utils.validation import MAX_COUNT, check_integer

__all__ = ["count_exceedances", "decide", "kth_largest"]


# A thread is started for at least this many bytes of scores, some 1 ms of counting; for fewer its
# start costs more than it saves.
_THREAD_BYTES = 1 << 25
# An axis is cut into parts of at least this length: rows so that the parts are of about equal size,
# samples so that the parts need few counts of their own.
_PART_ROWS = 8
_PART_SAMPLES = 256

# Up to this row length NumPy's sort, which is vectorised, beats its partition.
_SORT_SAMPLES = 4096


def count_exceedances(
    scores: ArrayLike,
    threshold: ArrayLike,
    *,
    axis: int = -1,
    out: npt.NDArray[np.int32] | None = None,
    n_threads: int = 1,
) -> npt.NDArray[np.int32]:
    """Count the scores at or above a threshold.

    Parameters
    ----------
    scores : array or CPU tensor of float16, bfloat16, float32 or float64, shape (..., m, ...)
        Scores, with the m < 2**31 samples of a row along `axis`. Any strides; never copied.
    threshold : float or array_like
        One threshold, or thresholds that broadcast to the shape of the result. They are rounded to
        the dtype of the scores first: in float32 a score of 0.7 reaches the threshold 0.7.
    axis : int, default=-1
        The axis of the samples.
    out : ndarray of int32, optional
        Array for the counts: C-contiguous, of the shape of the result, not in memory of `scores`.
    n_threads : int, default=1
        Number of threads that may share the work. Small work stays on one; the counts are the same.

    Returns
    -------
    ndarray of int32
        #{scores >= threshold} along `axis`, in [0, m]; the shape of `scores` without `axis`.
        It is `out` where that is given.

    Raises
    ------
    TypeError
        If `threshold` is not real, `axis` or `n_threads` not an integer, or `out` not an ndarray.
    ValueError
        If a score or threshold is NaN (the message says where), or a dtype, shape, `axis`,
        `n_threads` or `out` does not fit.

    See Also
    --------
    decide : Compare the counts with a minimum.

    Notes
    -----
    Infinite scores are ordinary scores. The interpreter lock is released while counting.

    Thread safety: any number of threads may count at once. Thresholds are copied; scores are not,
    and if another thread writes to them meanwhile, the counts mean nothing, or NaN is reported.

    Examples
    --------
    >>> import numpy as np
    >>> import bincp
    >>> scores = np.array([[0.3, 0.7, 0.7, 0.9], [0.1, 0.2, 0.3, 0.4]], dtype=np.float32)
    >>> bincp.count_exceedances(scores, 0.7)
    array([3, 0], dtype=int32)
    >>> bincp.count_exceedances(scores, [0.7, 0.25])
    array([3, 2], dtype=int32)
    """
    rows = _as_rows(scores, threshold, axis)
    n_threads = check_integer("n_threads", n_threads, low=1)
    counts = np.empty(rows.shape, np.int32) if out is None else _check_out(out, rows)
    if _count_rows(rows, counts, n_threads):
        _raise_nan(rows.given)
    return counts


def decide(
    scores: ArrayLike,
    threshold: ArrayLike,
    min_count: ArrayLike,
    *,
    axis: int = -1,
    n_threads: int = 1,
) -> npt.NDArray[np.bool_]:
    """Return which rows have at least a minimum count of scores at or above a threshold.

    Parameters
    ----------
    scores : array or CPU tensor of float16, bfloat16, float32 or float64, shape (..., m, ...)
        Scores, with the m < 2**31 samples of a row along `axis`. Any strides; never copied.
    threshold : float or array_like
        One threshold, or thresholds that broadcast to the shape of the result, rounded to the dtype
        of the scores.
    min_count : int or array_like of int
        The least count that is accepted, in [0, 2**31], or counts that broadcast to the shape of
        the result. 0 accepts every row, m + 1 none.
    axis : int, default=-1
        The axis of the samples.
    n_threads : int, default=1
        Number of threads that may share the work. Small work stays on one; the result is the same.

    Returns
    -------
    ndarray of bool
        ``count_exceedances(scores, threshold) >= min_count``; the shape of `scores` without `axis`.

    Raises
    ------
    TypeError
        If `min_count` is not integers, `threshold` not real, or `axis` or `n_threads` not an
        integer.
    ValueError
        If a score or threshold is NaN (the message says where), `min_count` is out of its range, or
        a dtype, shape, `axis` or `n_threads` does not fit.

    See Also
    --------
    count_exceedances : Return the counts themselves.

    Notes
    -----
    All scores are read, also where a part of them decides a row: leaving early is slower and could
    miss a NaN.

    Thread safety: as `count_exceedances`; `min_count` is copied as well.

    Examples
    --------
    >>> import numpy as np
    >>> import bincp
    >>> scores = np.array([[0.3, 0.7, 0.7, 0.9], [0.1, 0.2, 0.3, 0.4]], dtype=np.float32)
    >>> bincp.decide(scores, 0.7, 2)
    array([ True, False])
    """
    rows = _as_rows(scores, threshold, axis)
    n_threads = check_integer("n_threads", n_threads, low=1)
    least = _broadcast("min_count", as_counts("min_count", min_count, high=2**31), rows.shape)
    decisions = np.empty(rows.shape, np.bool_)
    if _decide_rows(rows, least, decisions, n_threads):
        _raise_nan(rows.given)
    return decisions


def kth_largest(scores: ArrayLike, k: int, *, axis: int = -1) -> npt.NDArray[np.floating[Any]]:
    """Return the k-th largest score of each row.

    Parameters
    ----------
    scores : array or CPU tensor of float16, bfloat16, float32 or float64, shape (..., m, ...)
        Scores, with the samples of a row along `axis`. Not modified; a copy is sorted.
    k : int
        Rank of the score, in [1, m]; 1 is the largest score.
    axis : int, default=-1
        The axis of the samples.

    Returns
    -------
    ndarray
        One of the scores of each row, never an interpolation, in the dtype of the scores; exact
        float32 values for bfloat16. The shape of `scores` without `axis`.

    Raises
    ------
    TypeError
        If `k` or `axis` is not an integer.
    ValueError
        If a score is NaN (the message says where), there are no samples, or a dtype, `k` or `axis`
        does not fit.

    Notes
    -----
    At least k of the m scores reach the result, and fewer than k exceed it. With k = ceil(p m) it
    is the largest threshold that a share p of the scores reaches.

    Examples
    --------
    >>> import numpy as np
    >>> import bincp
    >>> bincp.kth_largest(np.array([[0.3, 0.7, 0.7, 0.9], [0.1, 0.2, 0.3, 0.4]]), 2)
    array([0.7, 0.3])
    """
    given = as_scores("scores", scores)
    axis = _check_axis(given.bits, axis)
    m = given.bits.shape[axis]
    if m == 0:
        raise ValueError(
            f"`scores` must have samples along axis {axis}, got shape {given.bits.shape}"
        )
    k = check_integer("k", k, low=1, high=m)
    values = given.values()
    # NaN sorts last, so the last place tells whether there is one.
    if m <= _SORT_SAMPLES:
        ordered = np.sort(values, axis=axis)
    else:
        ordered = np.partition(values, sorted({m - k, m - 1}), axis=axis)
    if np.isnan(ordered.take(m - 1, axis=axis)).any():
        _raise_nan(given)
    return np.asarray(ordered.take(m - k, axis=axis))


@dataclass(frozen=True)
class _Rows:
    """Checked arguments: the scores, their bits as (..., m), and one threshold for each row."""

    given: Scores
    bits: npt.NDArray[Any]
    thresholds: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.bits.shape[:-1]


def _as_rows(scores: ArrayLike, threshold: ArrayLike, axis: int) -> _Rows:
    given = as_scores("scores", scores)
    axis = _check_axis(given.bits, axis)
    last = given.bits.ndim - 1
    bits = given.bits if axis == last else np.moveaxis(given.bits, axis, last)
    if bits.shape[-1] > MAX_COUNT:
        raise ValueError(f"`scores` must have fewer than 2**31 samples, got {bits.shape[-1]}")
    thresholds = _round_thresholds(threshold, given.dtype)
    return _Rows(given, bits, _broadcast("threshold", thresholds, bits.shape[:-1]))


def _round_thresholds(threshold: ArrayLike, dtype: str) -> npt.NDArray[Any]:
    """Return thresholds as bits of the dtype of the scores."""
    array = as_array("threshold", threshold)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"`threshold` must be real numbers, got dtype {array.dtype}")
    rounded = round_to(dtype, array)
    if np.isnan(rounded).any():
        raise ValueError(f"`threshold` must not be NaN, got NaN {where(np.isnan(rounded))}")
    if dtype == "bfloat16":
        return (rounded.view(np.uint32) >> 16).astype(np.uint16)
    return rounded


def _broadcast(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"`{name}` must be a scalar or broadcast to the shape of the result, {shape}, "
            f"got shape {array.shape}"
        ) from None


def _check_axis(array: npt.NDArray[Any], axis: int) -> int:
    if array.ndim == 0:
        raise ValueError("`scores` must have an axis of samples, got a scalar")
    return check_integer("axis", axis, low=-array.ndim, high=array.ndim - 1) % array.ndim


def _check_out(out: npt.NDArray[np.int32], rows: _Rows) -> npt.NDArray[np.int32]:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"`out` must be an ndarray, got {type(out).__name__}")
    if out.dtype != np.int32 or out.shape != rows.shape:
        raise ValueError(
            f"`out` must be int32 of shape {rows.shape}, got {out.dtype.str} of shape {out.shape}"
        )
    if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise ValueError("`out` must be C-contiguous, aligned and writeable")
    if np.may_share_memory(out, rows.bits):
        raise ValueError("`out` must not share memory with `scores`")
    return out


def _count_rows(rows: _Rows, counts: npt.NDArray[np.int32], n_threads: int) -> bool:
    """Fill ``counts``; return whether a score is NaN."""
    dtype = rows.given.dtype
    by_samples, parts = _split(rows.bits, n_threads)
    if not by_samples:
        return _any(
            [
                partial(_count.count, rows.bits[part], rows.thresholds[part], counts[part], dtype)
                for part in parts
            ]
        )
    shares = np.empty((len(parts), *counts.shape), np.int32)
    has_nan = _any(
        [
            partial(_count.count, rows.bits[part], rows.thresholds, shares[i, ...], dtype)
            for i, part in enumerate(parts)
        ]
    )
    shares.sum(axis=0, dtype=np.int32, out=counts)
    return has_nan


def _decide_rows(
    rows: _Rows, least: npt.NDArray[np.int64], decisions: npt.NDArray[np.bool_], n_threads: int
) -> bool:
    """Fill ``decisions``; return whether a score is NaN."""
    by_samples, parts = _split(rows.bits, n_threads)
    if by_samples:  # a part of the samples cannot decide a row
        counts = np.empty(rows.shape, np.int32)
        has_nan = _count_rows(rows, counts, n_threads)
        np.greater_equal(counts, least, out=decisions)
        return has_nan
    return _any(
        [
            partial(
                _count.decide,
                rows.bits[part],
                rows.thresholds[part],
                least[part],
                decisions[part],
                rows.given.dtype,
            )
            for part in parts
        ]
    )


def _split(bits: npt.NDArray[Any], n_threads: int) -> tuple[bool, list[tuple[Any, ...]]]:
    """Cut (..., m) into one part for each thread.

    Returns whether the samples are cut, and the indices of the parts. Indices of whole rows also
    index the arrays that have a place for each row.
    """
    n_parts = min(n_threads, bits.nbytes // _THREAD_BYTES)
    if n_parts <= 1:
        return False, [(...,)]
    samples = bits.ndim - 1
    # The slowest axis keeps the parts apart in memory; it must be long enough to balance them.
    slowest_first = sorted(range(bits.ndim), key=lambda a: -abs(bits.strides[a]))
    for axis in slowest_first:
        least = _PART_SAMPLES if axis == samples else _PART_ROWS
        if bits.shape[axis] >= least * n_parts:
            break
    else:
        axis = max(slowest_first, key=lambda a: bits.shape[a])
    edges = [bits.shape[axis] * i // n_parts for i in range(n_parts + 1)]
    pieces = [slice(*edge) for edge in pairwise(edges)]
    if axis == samples:
        return True, [(..., piece) for piece in pieces]
    return False, [(*[slice(None)] * axis, piece, ...) for piece in pieces]


def _any(jobs: Sequence[Callable[[], bool]]) -> bool:
    return any(run_all(jobs))


def _raise_nan(scores: Scores) -> NoReturn:
    raise ValueError(f"`{scores.name}` must not contain NaN, got NaN at index {_first_nan(scores)}")


def check_no_nan(scores: Scores) -> None:
    """Raise an error that names the argument and the first NaN, if there is one."""
    if scores.bits.size and _has_nan(scores.bits, scores.dtype):
        _raise_nan(scores)


def _first_nan(scores: Scores) -> tuple[int, ...]:
    """Return the index of the first NaN, in C order, of scores that contain one."""
    index = []
    block = scores.bits
    while block.ndim > 0:
        low, high = 0, block.shape[0]  # the first NaN is in block[low:high]
        while high - low > 1:
            middle = (low + high) // 2
            if _has_nan(block[low:middle], scores.dtype):
                high = middle
            else:
                low = middle
        index.append(low)
        block = block[low]
    return tuple(index)


def _has_nan(bits: npt.NDArray[Any], dtype: str) -> bool:
    shape = bits.shape[:-1]
    threshold = np.broadcast_to(np.zeros((), bits.dtype), shape)
    return _count.count(bits, threshold, np.empty(shape, np.int32), dtype)
