"""Another test for a calibrated rule: the largest k that its losses or ranks allow."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._utils.bisection import last_integer
from bincp.calibration._conditions import Condition, largest_count
from bincp.calibration._curve import Curve
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._fixed_tau import setup_at_fixed_tau, tau_fixed_count
from bincp.calibration._label_test import LabelTest, line_boundaries
from bincp.calibration._loss_proof import proves
from bincp.calibration._mixture import setups_of
from bincp.calibration._sequential import SequentialRule
from bincp.certificates import Certificate


def default_spread(n_test_samples: int) -> Fraction:
    """Return the usual distance of the boundaries of a rule that was made for a fixed count.

    On a CIFAR-10 network with m' = 32 it halved the draws of an input, and the sets kept their size
    (2.58 labels instead of 2.60).
    """
    return Fraction(math.sqrt(n_test_samples) / 3 + 0.5)


def rederived(rule: DecisionRule, certificate: Certificate, spread: Fraction) -> SequentialRule:
    """Return the boundaries at a distance from the line with the largest k that keeps the level.

    With the spread fixed, both boundaries grow with k: a path that the rule of k + 1 accepts has
    reached the acceptance of k before it could meet a rejection of k. So the refusal probability
    grows with k at every p, and those that are allowed are an initial segment.
    """
    m_test = rule.n_test_samples
    assert m_test is not None
    if rule.accepts_all:
        return SequentialRule.curtailed(0, m_test)
    if rule.losses is not None:
        worst = rule.settings.worst(certificate)
        k = largest_paid_count(np.array(rule.losses), m_test, worst, spread)
    else:
        k = max(
            largest_allowed_count(condition, m_test, spread)
            for condition in _conditions_of(rule, certificate)
        )
    return line_boundaries(k, m_test, spread)


def largest_paid_count(
    losses: npt.NDArray[np.int64], m_test: int, certificate: Certificate, spread: Fraction
) -> int:
    """Return the largest k whose refusals losses are shown to pay for."""

    def paid(k: int) -> bool:
        return proves(losses, line_boundaries(k, m_test, spread), certificate)

    return last_integer(paid, 1, m_test)


def largest_allowed_count(condition: Condition | None, m_test: int, spread: Fraction) -> int:
    """Return the largest k whose refusals a condition allows."""
    if condition is None:  # only accepting every label keeps the guarantee
        return 0

    def failures(curve: Curve, k: int, m_test: int) -> npt.NDArray[np.float64]:
        return LabelTest(k, m_test, spread).worst_refusals(curve)

    return largest_count(condition, m_test, failures)[0]


def _conditions_of(rule: DecisionRule, certificate: Certificate) -> list[Condition | None]:
    """Return conditions on a rule of ranks, each enough; None if only accepting all meets it."""
    n, m, m_test = rule.n_calibration, rule.n_samples, rule.n_test_samples
    assert m is not None
    assert m_test is not None
    setups = setups_of(certificate, rule.settings, n, m, m_test, rule.share)
    t = rule.success_rank
    if not rule.rank or not t:
        return [None]
    if rule.settings.tau is not None:
        return [tau_fixed_count(setup_at_fixed_tau(setups), t, rule.rank)[1]]
    return [setup.condition(t, rule.rank) for setup in setups]
