"""Selection of the p-fixed threshold: the j-th smallest of the rows' t-th largest score."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import Scores
from bincp.counting import check_no_nan, count_exceedances, kth_largest

# Below this many rows, sorting all of them is as fast as looking at a sample first.
_SMALL_ROWS = 256
_SAMPLE_ROWS = 64


def select_threshold(scores: Scores, t: int, rank: int, n_threads: int = 1) -> float:
    """Return the ``rank``-th smallest over rows of the ``t``-th largest score of each row.

    Floyd-Rivest selection with rows as items: the values of a few rows bracket the answer, one
    count of all scores against each end tells which rows lie inside, and only those are sorted.
    That costs one or two reads of the scores instead of a sort, and is exact for any data: where
    the few rows misled, all are sorted. NaN scores are refused.
    """
    if len(scores.bits) < _SMALL_ROWS:
        return kth_smallest(kth_largest(scores, t), rank)
    low, high = _bracket(scores, t, rank)
    below_low = _rows_below(scores, low, t, n_threads)
    below_high = _rows_below(scores, high, t, n_threads)
    first, last = int(below_low.sum()), int(below_high.sum())
    if not first < rank <= last:
        return kth_smallest(kth_largest(scores, t), rank)
    inside = scores.rows(below_high & ~below_low)
    return kth_smallest(kth_largest(inside, t), rank - first)


def _bracket(scores: Scores, t: int, rank: int) -> tuple[float, float]:
    """Return values that lie below and above the answer but for a chance of three sigma."""
    n, m = scores.bits.shape
    rows = np.sort(scores.rows(slice(None, None, n // _SAMPLE_ROWS)).values(), axis=1)
    if np.isnan(rows[:, -1]).any():  # NaN sorts last
        check_no_nan(scores)
    sample = np.sort(rows[:, m - t])
    share = rank / n
    centre = share * len(sample)
    margin = 3 * np.sqrt(centre * (1 - share)) + 1
    low, high = int(centre - margin), int(centre + margin)
    return (
        float(sample[low]) if low >= 0 else -np.inf,
        float(sample[high]) if high < len(sample) else np.inf,
    )


def _rows_below(scores: Scores, value: float, t: int, n_threads: int) -> npt.NDArray[np.bool_]:
    """Say which rows have fewer than ``t`` scores at or above ``value``."""
    if value == -np.inf:
        return np.zeros(len(scores.bits), np.bool_)
    return np.asarray(count_exceedances(scores, value, n_threads=n_threads) < t)


def kth_smallest(values: npt.NDArray[Any], rank: int) -> float:
    """Return the ``rank``-th smallest value, ranks from 1 on."""
    return float(np.partition(values, rank - 1)[rank - 1])
