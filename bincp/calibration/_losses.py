"""Losses of calibration counts: what they are, and the threshold that they select.

A calibration point of which s of m samples reach tau costs losses[s], non-increasing in s. tau is
the largest threshold at which the costs of all points, and one more point at the highest cost, add
up to at most alpha (n + 1). That is conformal risk control, so the mean cost of a further point is
at most alpha. The weights of the literature are 1 - losses. `_loss_fitting` finds losses that pay
for the refusals of a test, `_loss_proof` proves that they do.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import Scores
from bincp._utils.bisection import last_integer
from bincp.counting import check_no_nan, count_exceedances

Losses = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32] | npt.NDArray[np.int64]

UNIT = 2.0**-36
"""Losses are whole multiples of this, so that the sum that decides is exact."""

MAX_LOSS = 64 * 2**36
"""In units, 64 units of coverage; far above 1, which valid losses rarely exceed."""

_EXACT_TERMS = 2**20  # so many losses of at most 2**42 add up in 63 bits


def complaint(losses: Sequence[int], m: int) -> str | None:
    """Say what is wrong with the losses of m samples, in units; None for nothing."""
    if len(losses) != m + 1:
        return f"there must be m + 1 = {m + 1} losses, got {len(losses)}"
    if losses[0] > MAX_LOSS or losses[-1] < 0:
        return f"losses must be in [0, {MAX_LOSS}], got {losses[0]} to {losses[-1]}"
    for s in range(m):
        if losses[s + 1] > losses[s]:
            return f"losses must not increase, got {losses[s + 1]} after {losses[s]} at {s + 1}"
    return None


def budget_of(losses: Losses, n: int, alpha: Fraction, poisoned: int = 0) -> int:
    """Return what the losses of all but the poisoned points may add up to, in units.

    The largest n - poisoned losses bound those of the clean points that are left. Each clean point
    that is not is charged the highest loss, as the test point is.
    """
    return math.floor(alpha * (n + 1) / Fraction(UNIT)) - (poisoned + 1) * int(losses[0])


def accept_all(losses: Losses, n: int, alpha: Fraction, poisoned: int = 0) -> bool:
    """Whether losses cost too much at any threshold, so that every label is accepted."""
    left = n - poisoned
    return left <= 0 or left * int(losses[-1]) > budget_of(losses, n, alpha, poisoned)


# ---- the threshold ----------------------------------------------------------------------------

# Pooled scores that bracket tau; all of them where there are no more.
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 64, 32
_NEAR = 8  # places in the sample: sorting what lies between costs less than to count once more


def select_threshold_by_losses(
    scores: Scores,
    losses: Losses,
    alpha: Fraction,
    poisoned: int = 0,
    *,
    n_threads: int = 1,
) -> float:
    """Return the largest tau at which the losses of n + 1 points are at most alpha (n + 1).

    ``scores`` is (n, m), and the smallest losses of so many ``poisoned`` points are replaced by the
    highest loss there is. tau is one of them, or -inf where they allow none; then every label is
    accepted. A sorted sample of all scores is searched by counting, and then only the scores
    between two near places of the sample are sorted. NaN scores are refused.
    """
    n = len(scores.bits)
    if accept_all(losses, n, alpha, poisoned):
        check_no_nan(scores)
        return -math.inf
    budget = budget_of(losses, n, alpha, poisoned)
    return _largest_within(scores, losses, budget, poisoned, n_threads=n_threads)


def _largest_within(
    scores: Scores, losses: Losses, budget: int, left_out: int = 0, *, n_threads: int = 1
) -> float:
    """Return the largest score at which the losses add up to at most the budget.

    The smallest losses, so many as are left out, do not count.
    """
    values = scores.values()
    n, m = values.shape
    sample = np.sort(values[:: -(-n // _SAMPLE_ROWS), :: -(-m // _SAMPLE_COLUMNS)], axis=None)
    if len(sample) <= _NEAR or np.isnan(sample[-1]):
        check_no_nan(scores)  # otherwise the search reads all scores and finds NaN

    def excess(i: int) -> tuple[int, Counts]:
        counts = count_exceedances(scores, sample[i], n_threads=n_threads)
        return _total(losses, counts, left_out) - budget, counts

    nothing = np.zeros(n, np.int32)
    at_bottom, at_top = ((n - left_out) * int(losses[s]) - budget for s in (-1, 0))
    if at_top <= 0:
        check_no_nan(scores)  # no search follows
        return math.inf
    low, high, counts = _bracket(excess, len(sample), at_bottom, (at_top, nothing))
    inside = values > (sample[low] if low >= 0 else -math.inf)
    if high < len(sample):
        inside &= values < sample[high]
    places = np.flatnonzero(inside)  # fast for few, unlike np.nonzero
    rows, columns = np.divmod(places, m)
    found = values[rows, columns]
    ordered = np.sort(found)

    def within(i: int) -> bool:
        reached = counts + np.bincount(rows[found >= ordered[i - 1]], minlength=n)
        return _total(losses, reached, left_out) <= budget

    if i := last_integer(within, 1, len(ordered)):
        return float(ordered[i - 1])
    return float(sample[low]) if low >= 0 else -math.inf


def _total(losses: Losses, counts: Counts, left_out: int) -> int:
    """Add up the losses of all counts but the largest ones that are left out, exactly."""
    if left_out:
        kept = len(counts) - left_out
        counts = np.asarray(np.partition(counts, kept)[:kept])
    parts = range(0, len(counts), _EXACT_TERMS)
    # Where another thread writes to the scores, a count put together from two reads can exceed m.
    taken = (losses.take(counts[i : i + _EXACT_TERMS], mode="clip") for i in parts)
    return sum(int(part.sum()) for part in taken)


def _bracket(
    excess: Callable[[int], tuple[int, Counts]],
    size: int,
    at_bottom: int,
    at_top: tuple[int, Counts],
) -> tuple[int, int, Counts]:
    """Return i < j close together with excess(i) <= 0 < excess(j), and the counts at j.

    The excess does not decrease; it is known at -1 and at ``size``. Regula falsi, an end that stays
    a second time counting half (Illinois), and halving of the bracket where that is slow.
    """
    low, high = -1, size
    at_high, counts = at_top
    below, above = float(at_bottom), float(at_high)
    stays = 0
    slow = False
    while (width := high - low) > _NEAR:
        step = width // 2 if slow else round(width * below / (below - above))
        i = low + min(max(step, 1), width - 1)
        value, at_i = excess(i)
        if value <= 0:
            low, below = i, float(value)
            above /= 2 if stays > 0 else 1
            stays = 1
        else:
            high, above, counts = i, float(value), at_i
            below /= 2 if stays < 0 else 1
            stays = -1
        slow = not slow and 4 * (high - low) > 3 * width
    return low, high, counts
