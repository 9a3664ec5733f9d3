"""The threshold of risk control: the largest at which the losses stay within their budget."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, where
from bincp._utils.levels import shown
from bincp.calibration._risk_rule import ANY_MISSED, FALSE_NEGATIVE_RATE
from bincp.metrics import as_members, exact_false_negative_rates, false_negative_rate

Sets: TypeAlias = npt.NDArray[np.bool_]
Losses: TypeAlias = npt.NDArray[np.float64]
Loss: TypeAlias = Callable[[Sets, Sets], npt.NDArray[np.float64]]


_MANTISSA, _HALF = 53, 26  # bits of a double, and of the lower half
_ADDITIVE = 1e-11  # more than the rounding of a sum of weights, less than that of a proof


class Threshold(NamedTuple):
    """A value, and the sum of the losses of the sets of larger or equal values."""

    value: float
    total_loss: Fraction | None


def largest_threshold(
    values: npt.NDArray[np.floating],
    labels: ArrayLike,
    loss: str | Loss,
    level: Fraction,
    lost: int = 0,
    *,
    size: int | None = None,
    additive: bool = False,
) -> Threshold:
    """Return the largest value v with sum_i loss_i({values_i >= v}) + 1 <= level (n + 1).

    -inf, without a sum, if there is none. The sets change at values only, and the loss grows with
    v. A string is the name of a loss. Of the clean points, whose ``size`` is n if not given,
    those that are ``lost`` cost 1, and the largest losses that are seen stand for the rest. A
    function that is said to be ``additive`` is checked on the sets that are met.
    """
    true = as_members("labels", labels)
    if true.shape != values.shape:
        raise ValueError(f"`labels` must have shape {values.shape}, got {true.shape}")
    candidates = np.unique(values)
    size = len(values) if size is None else size
    left_out = len(values) - (size - lost)
    budget = level * (size + 1) - (lost + 1)
    every, none = np.ones_like(true), np.zeros_like(true)
    at_low, at_high = _losses(loss, every, true), _losses(loss, none, true)
    most = max(level, Fraction(0))  # a shift and confidence bounds may take more than alpha
    if Fraction(float(at_low.max())) > most:
        raise ValueError(
            f"`loss` must be at most {shown(most)}, which a shift and sampling leave of alpha, "
            f"where every label is in the set, got {at_low.max()}"
        )
    low, high = -1, len(candidates)  # the sets of all labels, and none
    weights = _weights(loss, true) if additive else None
    if weights is not None:
        _check_additive(at_low, every, weights)
        _check_additive(at_high, none, weights)
    if size <= lost:
        return Threshold(-math.inf, None)
    found = Threshold(-math.inf, None)
    while high - low > 1:
        middle = (low + high) // 2
        sets = values >= candidates[middle]
        losses = _losses(loss, sets, true)
        _check_monotone(at_low, losses, at_high)
        if weights is not None:
            _check_additive(losses, sets, weights)
        total = _total(loss, sets, true, losses, left_out)
        if total <= budget:
            low, at_low = middle, losses
            found = Threshold(float(candidates[middle]), total)
        else:
            high, at_high = middle, losses
    return found


def _total(
    loss: str | Loss, sets: Sets, true: Sets, losses: npt.NDArray[np.float64], left_out: int
) -> Fraction:
    """Return the sum of all losses but the smallest ones that are left out, exactly."""
    if loss != FALSE_NEGATIVE_RATE:
        return _exact_sum(np.partition(losses, left_out)[left_out:])
    rates, which = exact_false_negative_rates(sets, true)
    counts = np.bincount(which, minlength=len(rates)).tolist()
    for i in sorted(range(len(rates)), key=rates.__getitem__):
        taken = min(counts[i], left_out)
        counts[i] -= taken
        left_out -= taken
    return sum(map(operator.mul, rates, counts), Fraction(0))


def _exact_sum(values: Losses) -> Fraction:
    """Return the sum of fewer than 2^31 doubles of at least 0, by whole numbers of 53 bits."""
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
    total = Fraction(0)
    for exponent in np.unique(exponents).tolist():
        own = whole[exponents == exponent]
        # Halves, whose sums fit into 63 bits.
        high, low = int((own >> _HALF).sum()), int((own & (2**_HALF - 1)).sum())
        total += ((high << _HALF) + low) * Fraction(2) ** (exponent - _MANTISSA)
    return total


def _losses(loss: str | Loss, sets: Sets, true: Sets) -> npt.NDArray[np.float64]:
    if loss == ANY_MISSED:
        return np.asarray(np.any(true & ~sets, axis=1), np.float64)
    if isinstance(loss, str):
        return false_negative_rate(sets, true)
    # Of copies: a function that computes in place would change the labels.
    losses = as_array("loss(sets, labels)", loss(sets.copy(), true.copy()))
    known = losses.dtype.kind in "fiub" and losses.dtype.itemsize <= 8
    if losses.shape != (len(true),) or not known:
        raise ValueError(
            f"`loss` must return {len(true)} numbers, got {losses.dtype} {losses.shape}"
        )
    bad = ~((losses >= 0) & (losses <= 1))
    if bad.any():
        raise ValueError(f"`loss` must be in [0, 1], got {losses[bad][0]} {where(bad)}")
    return losses.astype(np.float64)


def _weights(loss: str | Loss, true: Sets) -> npt.NDArray[np.float64]:
    """Return the loss of each true label where it is the only one that is missing, 0 elsewhere."""
    weights = np.zeros(true.shape)
    place = np.where(true, np.cumsum(true, axis=1), 0)  # among the true labels of the point
    for i in range(1, int(place.max(initial=0)) + 1):
        missing = place == i
        rows, columns = np.nonzero(missing)
        weights[rows, columns] = _losses(loss, ~missing, true)[rows]
    return weights


def _check_additive(
    losses: npt.NDArray[np.float64], sets: Sets, weights: npt.NDArray[np.float64]
) -> None:
    """Refuse losses that are not the sum of the weights of the missing labels."""
    total = np.where(sets, 0.0, weights).sum(axis=1)
    bad = ~np.isclose(losses, total, rtol=0, atol=_ADDITIVE)
    if bad.any():
        raise ValueError(
            "`loss` must be a sum of weights of the missing true labels with additive=True, got "
            f"{losses[bad][0]} where those of single labels add up to {total[bad][0]} {where(bad)}"
        )


def _check_monotone(*losses: npt.NDArray[np.float64]) -> None:
    """Refuse losses of shrinking sets that are not non-decreasing."""
    for smaller, larger in pairwise(losses):
        bad = smaller > larger
        if bad.any():
            raise ValueError(
                "`loss` must not grow when labels are added to a set, "
                f"got {larger[bad][0]} and then {smaller[bad][0]} {where(bad)}"
            )
