"""How good prediction sets are: do they cover, and how small are they.

Sets are boolean arrays (n, K), labels integers (n,) in [0, K). What is measured on a sample differs
from what holds on average: with n test points the standard error of the coverage is about
``sqrt(coverage (1 - coverage) / n)``, beside the spread over calibration sets.
"""

import numpy as np
import numpy.typing as npt

from bincp._arrays import ArrayLike, as_array, as_counts

__all__ = [
    "average_set_size",
    "class_conditional_coverage",
    "coverage",
    "empty_rate",
    "singleton_rate",
]


def coverage(sets: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of the points whose set holds their label.

    Parameters
    ----------
    sets : bool array (n, K)
    labels : array-like (n,) of int
        In [0, K).

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
    """
    return float(_covered(_as_sets(sets), labels).mean())


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


def empty_rate(sets: ArrayLike) -> float:
    """Return the share of the sets that hold no label.

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
    >>> from bincp.metrics import empty_rate
    >>> empty_rate([[True, True, False], [False, False, False]])
    0.5
    """
    return float((~_as_sets(sets).any(axis=1)).mean())


def class_conditional_coverage(sets: ArrayLike, labels: ArrayLike) -> npt.NDArray[np.float64]:
    """Return, for each class, the share of its points whose set holds their label.

    Parameters
    ----------
    sets : bool array (n, K)
    labels : array-like (n,) of int
        In [0, K).

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
    y = as_counts("labels", labels, high=members.shape[1] - 1)
    total = np.bincount(y, minlength=members.shape[1])
    hits = np.bincount(y, weights=covered, minlength=members.shape[1])
    result = np.full(len(total), np.nan)
    np.divide(hits, total, out=result, where=total > 0)
    return result


def _covered(members: npt.NDArray[np.bool_], labels: ArrayLike) -> npt.NDArray[np.bool_]:
    y = as_counts("labels", labels, high=members.shape[1] - 1)
    if y.shape != (len(members),):
        raise ValueError(f"`labels` must have shape {(len(members),)}, got {y.shape}")
    return members[np.arange(len(y)), y]


def _as_sets(sets: ArrayLike) -> npt.NDArray[np.bool_]:
    members = as_array("sets", sets)
    if members.dtype != np.bool_:
        raise TypeError(f"`sets` must be boolean, got dtype {members.dtype}")
    if members.ndim != 2 or members.size == 0:
        raise ValueError(f"`sets` must have shape (n, K) and not be empty, got {members.shape}")
    return members
