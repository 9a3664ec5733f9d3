"""The mixture correction for a fixed tau: t is observed.

The line over the curve of the two failure probabilities may then not depend on t, so its slope is
fixed in advance. The proof is in the notes of `bincp.BinCP`.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from bincp._utils.levels import success_rank
from bincp.calibration._conditions import Condition, FixedSlope, MeanFailure, largest_count
from bincp.calibration._mixture import Setup, count_without_attack

TYPICAL_SHARE = Fraction(7, 10)
"""The share t / m whose sets held fewest wrong labels on digits, over all strengths of attack."""


def setup_at_fixed_tau(setups: Sequence[Setup]) -> Setup:
    """Return the setup whose proof is used; which one it is may depend on nothing observed.

    It is the one with the largest k for a typical t.
    """
    return setups[0] if len(setups) == 1 else max(setups, key=_typical_count)


@lru_cache(256)
def _typical_count(setup: Setup) -> int:
    return tau_fixed_count(setup, success_rank(TYPICAL_SHARE, setup.m), setup.top_rank)[0]


def tau_fixed_count(setup: Setup, t_observed: int, rank: int) -> tuple[int, Condition | None]:
    """Return the largest k that keeps the coverage, and the condition that it meets.

    ``t_observed`` is the ``rank``-th smallest count of the calibration points at the fixed tau.
    The condition is None where only accepting every label keeps the coverage.
    """
    if rank == 0 or t_observed == 0:
        return 0, None
    slope = _fixed_slope(setup, rank)
    curve = setup.curve(t_observed)
    share = setup.share(rank)
    k, condition = largest_count(
        FixedSlope(curve, t_observed, setup.m, share, setup.target, slope), setup.m_test
    )
    return max(k, count_without_attack(setup, t_observed, rank, curve)), condition


def _fixed_slope(setup: Setup, rank: int) -> float:
    """Return a slope that depends on nothing observed.

    It is alpha / (j / (n + 1)), that of the line through the origin, unless labels are refused even
    at p = 1 or m and m' differ, so that u and v vanish at different rates. Then it is that of the
    best line for a typical t.
    """
    if setup.certificate.lower(1.0) == 1.0 and setup.m == setup.m_test:
        return float(setup.alpha / setup.share(rank))
    t = success_rank(TYPICAL_SHARE, setup.m)
    k, condition = largest_count(setup.condition(t, rank), setup.m_test)
    assert isinstance(condition, MeanFailure)
    return condition.slope(condition.curve.prediction_failures(k, setup.m_test))
