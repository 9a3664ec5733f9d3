"""The proof that ranks keep the coverage with a test, which both the search and files ask for."""

from collections.abc import Callable
from dataclasses import replace

from bincp.calibration._conditions import Condition
from bincp.calibration._curve import Array, Curve
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._fixed_tau import setup_at_fixed_tau, tau_fixed_count
from bincp.calibration._label_test import MOST_EARLY_DRAWS, LabelTest
from bincp.calibration._mixture import Setup, count_without_attack, setups_of
from bincp.calibration._sequential import SequentialRule, exit_probabilities
from bincp.calibration._shared_at_tau import count_at_tau
from bincp.calibration._shared_draws import allows
from bincp.certificates import Certificate


def is_valid(setup: Setup, test: LabelTest, t: int, rank: int) -> bool:
    """Whether ranks are shown to allow a test, on a grid that is refined where it decides."""
    condition = setup.condition(t, rank)
    if test.spread is None and test.k <= count_without_attack(setup, t, rank, condition.curve):
        return True
    return _holds(condition, test.worst_refusals)


def allow_test(setup: Setup, k: int, boundaries: SequentialRule | None, t: int, rank: int) -> bool:
    """Whether ranks are shown to allow a count, or boundaries where there are some."""
    if boundaries is None:
        return is_valid(setup, LabelTest(k, setup.m_test), t, rank)
    return _allow_boundaries(setup, boundaries, t, rank)


def ranks_allow(rule: DecisionRule, certificate: Certificate) -> bool:
    """Whether the ranks of a rule are shown to allow its count or its boundaries."""
    n, m, m_test, k = rule.n_calibration, rule.n_samples, rule.n_test_samples, rule.min_count
    t, rank = rule.success_rank, rule.rank
    assert m is not None
    assert m_test is not None
    assert k is not None
    assert t is not None
    assert rank is not None
    if k == 0:
        return True  # every label is accepted
    if rule.settings.correction == "shared-draws":
        worst = rule.settings.worst(certificate)
        if rule.settings.tau is not None:
            return k <= count_at_tau(worst, rule.settings, n, m, m_test, t)
        return allows(worst, rule.settings, n, rank, t, m, k, m_test)
    setups = setups_of(certificate, rule.settings, n, m, m_test, rule.share)
    if rule.settings.tau is not None:
        return k <= tau_fixed_count(setup_at_fixed_tau(setups), t, rank)[0]
    return any(allow_test(setup, k, rule.boundaries, t, rank) for setup in setups)


def _allow_boundaries(setup: Setup, boundaries: SequentialRule, t: int, rank: int) -> bool:
    """Whether boundaries are shown to be allowed, on the grid of the draws that they may need."""

    def refusals(curve: Curve) -> Array:
        return exit_probabilities(boundaries, curve.c, curve.d)[0]

    # The search looked at so many draws: any of these grids gives a proof.
    sizes = {setup.m_test, min(setup.m_test, MOST_EARLY_DRAWS), boundaries.max_draws}
    return any(
        _holds(replace(setup, m_test=max(size, 1)).condition(t, rank), refusals)
        for size in sorted(sizes)
    )


def _holds(condition: Condition, refusals: Callable[[Curve], Array]) -> bool:
    """Whether a condition is shown to allow refusals, on a grid that is refined as needed."""
    current: Condition | None = condition
    while current is not None:
        v = refusals(current.curve)
        if current.allows(v):
            return True
        parts = current.parts(v)
        finer = None if parts is None else current.curve.divided(parts)
        current = None if finer is None else current.on(finer)
    return False
