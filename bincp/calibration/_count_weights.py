"""Count weights: calibration with more samples than prediction.

A calibration point of which s of m samples reach tau costs losses[s], non-increasing in s, and tau
is the largest threshold at which the costs of all points, and one more point at the highest cost,
add up to at most alpha (n + 1). That is conformal risk control, so the mean cost of a further point
is at most alpha. A test label is refused with probability at most v(p). Condition (Q): for every p,
the expected cost is at least v(p). So the coverage is at least 1 - alpha. The weights of the
literature are 1 - losses.

Any losses that meet (Q) are valid; good ones exceed v by little where calibration points lie. The
plain choice losses[s] = v(s / m) plus a constant is too low where v is concave, which the constant
must pay for everywhere, and too high where v is convex, where most points lie. So the losses are
corrected by the gap that they leave until it is negligible.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import Scores
from bincp._utils.bisection import last_integer
from bincp.calibration._choice import FEWEST_SAMPLES_FOR_TOP_RANK, RankRule, choose
from bincp.calibration._conditions import MeanFailure, MeanLoss
from bincp.calibration._curve import Array, Curve
from bincp.calibration._mixture import Setup
from bincp.calibration._reference import reference
from bincp.counting import check_no_nan, count_exceedances

Losses = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32] | npt.NDArray[np.int64]

UNIT = 2.0**-36
"""Losses are whole multiples of this, so that the sum that decides is exact."""

_MAX_LOSS = 64  # in units of coverage; far above 1, which valid losses rarely exceed
_EXACT_TERMS = 2**20  # so many losses of at most 64 / UNIT = 2**42 add up in 63 bits

# Grid points: four times as many as elsewhere, for the width of a cell is paid by every calibration
# point.
_POINTS = 2400
# Corrections of the losses: at most so many, and so many in a row without a smaller gap. They are
# choices: any losses that meet (Q) are valid, and fewer rounds leave larger ones.
_MAX_ROUNDS = 30
_ROUNDS_WITHOUT_GAIN = 3
# Gaps, in units of coverage: below the first no further round is made, above the second another
# kind of losses is tried. They are choices, too.
_CLOSED_GAP = 1e-4
_OPEN_GAP = 1e-3


@dataclass(frozen=True, eq=False)
class CountWeights:
    """The losses of m + 1 counts, in units of `UNIT`, and the least count k that they allow.

    Parameters
    ----------
    k : int
        A label is accepted iff at least k of its m' scores reach the threshold.
    m_test : int
        m'.
    losses : ndarray of int64, shape (m + 1,)
        Non-increasing, not negative, and at most 64 / UNIT.
    condition : MeanLoss
        Condition (Q) for the losses, on the grid that shows that k meets it.

    Raises
    ------
    ValueError
        If the losses increase or leave their range, or do not allow k.
    """

    k: int
    m_test: int
    losses: Losses
    condition: MeanLoss

    def __post_init__(self) -> None:
        if np.any(np.diff(self.losses) > 0):
            s = int(np.argmax(np.diff(self.losses) > 0))
            raise ValueError(
                f"`losses` must not increase with the count, got {self.losses[s]} at {s} and "
                f"{self.losses[s + 1]} at {s + 1}"
            )
        if self.losses[-1] < 0 or self.losses[0] * UNIT > _MAX_LOSS:
            raise ValueError(
                f"`losses` must be in [0, {_MAX_LOSS / UNIT:.0f}], "
                f"got {self.losses[-1]} to {self.losses[0]}"
            )
        v = self.condition.curve.prediction_failures(self.k, self.m_test)
        if not self.condition.allows(v):
            raise ValueError(f"`losses` must allow k = {self.k}, but condition (Q) fails")
        self.losses.flags.writeable = False

    def budget(self, n: int, alpha: Fraction) -> int:
        """Return what the losses of n points may add up to, in units."""
        return math.floor(alpha * (n + 1) / Fraction(UNIT)) - int(self.losses[0])

    def is_trivial(self, n: int, alpha: Fraction) -> bool:
        """Whether every label is accepted whatever the scores are."""
        return self.k == 0 or n * int(self.losses[-1]) > self.budget(n, alpha)

    @property
    def values(self) -> Array:
        """The losses as numbers, exactly."""
        return self.losses.astype(np.float64) * UNIT

    @property
    def weights(self) -> Array:
        """1 - losses, as in the condition sum_s weights[s] P[Bin(m, p) = s] <= 1 - v(p)."""
        return 1 - self.values


def choose_weights(setup: Setup) -> CountWeights:
    """Choose k and the losses from the arguments alone.

    From m' = 8 on, k is the one of the p-fixed rule with m' samples for calibration, too; below,
    all k are tried in the reference population.
    """
    n, m, m_test, alpha = setup.n, setup.m, setup.m_test, setup.alpha
    rule = choose(setup.with_samples(m_test))
    curve = Curve.around(setup.certificate, rule.t, m_test, m_test, points=_POINTS)
    best, fewest = _accept_all(curve, m, m_test), 1.0
    few = m_test < FEWEST_SAMPLES_FOR_TOP_RANK
    for k in range(1, m_test + 1) if few else [max(rule.k, 1)]:
        v = curve.prediction_failures(k, m_test)
        fitted, gap = _fitted(curve, v, m)
        candidates = [fitted]
        if gap > _OPEN_GAP and k == rule.k:
            candidates.append(_subsample_losses(setup, curve, rule))
        for losses in candidates:
            raised = _lifted(curve, v, losses)
            if raised[0] > _MAX_LOSS:
                continue
            weights = make_weights(curve, k, m_test, raised)
            if weights.is_trivial(n, alpha):
                continue
            loss = reference().expected(weights.values)
            budget = weights.budget(n, alpha) / n * UNIT
            accepted = reference().wrong_labels(loss, budget, k, m_test)
            if accepted < fewest:
                best, fewest = weights, accepted
    return best


def _accept_all(curve: Curve, m: int, m_test: int) -> CountWeights:
    return make_weights(curve, 0, m_test, np.zeros(m + 1))


def _subsample_losses(setup: Setup, curve: Curve, rule: RankRule) -> Array:
    """Return the losses of the p-fixed rule with m' samples, in the mean over m' of the m.

    They have the expectation of the rule with m' samples exactly, so they are valid wherever that
    is; with a certificate that bends sharply no others may come closer.
    """
    m_test, alpha = setup.m_test, setup.alpha
    share = Fraction(rule.rank, setup.n + 1)
    failure = MeanFailure(curve, rule.t, m_test, share, alpha)
    slope = failure.slope(curve.prediction_failures(rule.k, m_test))
    below: Array = (np.arange(m_test + 1) < rule.t).astype(np.float64)
    for trials in range(m_test + 1, setup.m + 1):  # P[Hypergeometric(trials, s, m') < t]
        drawn = np.arange(trials + 1) / trials
        below = np.append(below, 0.0) * (1 - drawn) + np.append(0.0, below) * drawn
    return np.maximum(float(alpha) - slope * float(share) + slope * below, 0.0)


def make_weights(curve: Curve, k: int, m_test: int, losses: Array) -> CountWeights:
    """Round losses to units, and check them.

    Downward, so that sums that are to be alpha (n + 1) exactly are not above; the tolerance of the
    condition covers it.
    """
    units = np.floor(losses / UNIT)
    return CountWeights(k, m_test, units.astype(np.int64), MeanLoss(curve, units * UNIT))


def _fitted(curve: Curve, v: Array, m: int) -> tuple[Array, float]:
    """Return losses whose expectation follows v closely, above or below, and the largest gap."""
    shares = np.arange(m + 1) / m
    losses = _monotone(np.interp(shares, curve.p, v))
    best, smallest, since = losses, math.inf, 0
    for _ in range(_MAX_ROUNDS):
        gap = _gap(curve, v, losses)
        if (largest := float(gap.max())) < smallest:
            best, smallest, since = losses, largest, 0
        else:
            since += 1
        if smallest < _CLOSED_GAP or since == _ROUNDS_WITHOUT_GAIN:
            break
        losses = _monotone(losses + np.interp(shares, curve.p[1:], gap))
    return best, smallest


def _lifted(curve: Curve, v: Array, losses: Array) -> Array:
    """Return the losses raised by a constant so that they allow v.

    That may bring some above 1. Cutting those off would lower the expected loss again where p is
    small; and they are not worth it, for few points pay them.
    """
    return losses + max(float(_gap(curve, v, losses).max()), 0.0)


def _gap(curve: Curve, v: Array, losses: Array) -> Array:
    """How far v may exceed the expected loss, in each cell."""
    return np.asarray(v[:-1] - curve.expected(losses)[1:])


def _monotone(losses: Array) -> Array:
    """Return the least non-increasing losses in [0, 1] that are not below these."""
    clipped = np.clip(losses, 0, 1)
    return np.ascontiguousarray(np.maximum.accumulate(clipped[::-1])[::-1])


# ---- the threshold ----------------------------------------------------------------------------

# Pooled scores that bracket tau; all of them where there are no more.
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 64, 32
_NEAR = 8  # places in the sample: sorting what lies between costs less than to count once more


def select_threshold_by_weights(scores: Scores, weights: CountWeights, alpha: Fraction) -> float:
    """Return the largest tau at which the losses of n + 1 points are at most alpha (n + 1).

    ``scores`` is (n, m). tau is one of them, or -inf where they allow none; then every label is
    accepted. A sorted sample of all scores is searched by counting, and then only the scores
    between two near places of the sample are sorted. NaN scores are refused.
    """
    n = len(scores.bits)
    if weights.is_trivial(n, alpha):
        check_no_nan(scores)
        return -math.inf
    return _largest_within(scores, weights.losses, weights.budget(n, alpha))


def _largest_within(scores: Scores, losses: Losses, budget: int) -> float:
    """Return the largest score at which the losses of all rows add up to at most the budget."""
    values = scores.values()
    n, m = values.shape
    sample = np.sort(values[:: -(-n // _SAMPLE_ROWS), :: -(-m // _SAMPLE_COLUMNS)], axis=None)
    if len(sample) <= _NEAR or np.isnan(sample[-1]):
        check_no_nan(scores)  # otherwise the search reads all scores and finds NaN

    def excess(i: int) -> tuple[int, Counts]:
        counts = count_exceedances(scores, sample[i])
        return _total(losses, counts) - budget, counts

    nothing = np.zeros(n, np.int32)
    at_bottom, at_top = (n * int(losses[s]) - budget for s in (-1, 0))
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
        return _total(losses, reached) <= budget

    if i := last_integer(within, 1, len(ordered)):
        return float(ordered[i - 1])
    return float(sample[low]) if low >= 0 else -math.inf


def _total(losses: Losses, counts: Counts) -> int:
    """Add up the losses of all counts, exactly."""
    parts = range(0, len(counts), _EXACT_TERMS)
    return sum(int(losses.take(counts[i : i + _EXACT_TERMS]).sum()) for i in parts)


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
