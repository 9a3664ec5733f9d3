"""The mixture correction of risk control: the level of the losses, t and the test, before scores.

tau is the largest threshold at which the losses of the calibration points, and 1 for the test
point, add up to at most a' (n + 1). A point loses a label whose t-th largest score is below tau.
What the test may refuse then depends on the loss; the proofs are in the notes of
`bincp.RobustRiskControl`.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bincp._utils.bisection import last_integer
from bincp._utils.levels import success_rank
from bincp.calibration import _wide_reference as population
from bincp.calibration._conditions import TOLERANCE, MeanFailure
from bincp.calibration._curve import Array, Curve
from bincp.calibration._label_test import MOST_EARLY_DRAWS, LabelTest
from bincp.calibration._loss_fitting import FITTED_SAMPLES
from bincp.calibration._mixture import Setup, setups_of
from bincp.calibration._rank_proof import allow_test, is_valid
from bincp.calibration._risk_rule import ANY_MISSED, RiskRule, RiskSettings
from bincp.calibration._search import Price, Rule, best_rule, price_of, success_ranks
from bincp.certificates import Certificate

_PARTS_OF_A_RANK = 16  # a' is told so finely: losses are fractions, ranks are whole
_FINE_POINTS = 2400  # of the search
_FINEST_POINTS = 20_000  # of the rule that is used
_TRIED_SHARES = 64  # parts of alpha that the search tells apart
_MOST_COUNTS = 32  # values of k that are tried
_SPREADS = (Fraction(3, 5), Fraction(6, 5), Fraction(2), Fraction(3))
_ROUNDING = Fraction(1, 10**12)  # of the two probabilities of a lost label


class RiskTest(NamedTuple):
    """The level a' of the losses, the success rank t, and the test of a label."""

    share: Fraction
    t: int
    test: LabelTest


@lru_cache(256)
def risk_test(
    certificate: Certificate,
    settings: RiskSettings,
    n: int,
    n_classes: int,
    m: int,
    m_test: int,
) -> RiskTest:
    """Return the valid rule that accepts fewest wrong labels in the reference population."""
    if settings.is_additive:
        return _for_additive_losses(certificate, settings, n, m, m_test)
    return _for_any_loss(certificate, settings, n, n_classes, m, m_test)


def risk_is_paid(rule: RiskRule, certificate: Certificate) -> bool:
    """Whether the level of a rule is shown to pay for what its test refuses."""
    settings, n = rule.settings, rule.n_calibration
    m, m_test, t, share = rule.n_samples, rule.n_test_samples, rule.success_rank, rule.share
    assert m is not None
    assert m_test is not None
    assert t is not None
    assert share is not None
    if not rule.min_count:
        return True  # every label is accepted
    if settings.is_additive:
        setups = setups_of(certificate, settings.of_ranks, n, m, m_test, share)
        return any(allow_test(setup, rule.min_count, rule.boundaries, t, 1) for setup in setups)
    worst = settings.worst(certificate)
    condition = _condition(settings, worst, t, m, m_test, _FINEST_POINTS)
    refused = rule.refusals(condition.curve)
    left = settings.level - rule.n_classes * _lost(condition, refused)
    if share <= left + Fraction(TOLERANCE):
        return True
    any_refused = _any_of(refused, rule.n_classes)
    return settings.loss == ANY_MISSED and condition.allows_at(share, any_refused)


# ---- losses that are sums over the labels that are missing ------------------------------------


def _for_additive_losses(
    certificate: Certificate, settings: RiskSettings, n: int, m: int, m_test: int
) -> RiskTest:
    ranks = settings.of_ranks
    setups = [
        replace(setup, ranks_only=True) for setup in setups_of(certificate, ranks, n, m, m_test)
    ]
    chosen = best_rule(setups, price_of(ranks))
    assert chosen.t is not None
    if chosen.is_trivial:
        return RiskTest(settings.level, chosen.t, chosen.test)
    share = max(_largest_share(setup, settings.level, chosen) for setup in setups)
    return RiskTest(share, chosen.t, chosen.test)


def _largest_share(setup: Setup, level: Fraction, chosen: Rule) -> Fraction:
    """Return the largest a' that is shown to allow the test, 0 if there is none."""
    assert chosen.t is not None
    assert chosen.rank is not None
    t, rank = chosen.t, chosen.rank

    def share(parts: int) -> Fraction:
        ranks = rank + setup.poisoned + Fraction(parts, _PARTS_OF_A_RANK)
        return ranks / (setup.n + 1)

    def holds(parts: int) -> bool:
        fixed = replace(setup, fixed_share=share(parts))
        return share(parts) <= level and is_valid(fixed, chosen.test, t, rank)

    parts = last_integer(holds, 0, _PARTS_OF_A_RANK - 1)
    return share(parts) if parts >= 0 else Fraction(0)


# ---- any other loss ---------------------------------------------------------------------------


def _for_any_loss(
    certificate: Certificate,
    settings: RiskSettings,
    n: int,
    n_classes: int,
    m: int,
    m_test: int,
) -> RiskTest:
    worst, price = settings.worst(certificate), price_of(settings.of_ranks)
    ranks = success_ranks(m) if settings.p is None else [success_rank(settings.p, m)]
    best = RiskTest(settings.level, ranks[-1], LabelTest(0, m_test))
    least, most = np.inf, settings.level * (n + 1) - settings.lost
    for t in ranks if most >= 1 else ():
        condition = _condition(settings, worst, t, m, m_test, _FINE_POINTS)
        for test in _tests(m_test, price):
            if _cost(test, t, m, most, n, price) >= least:
                continue  # not even with all of alpha for the losses
            refused = test.worst_refusals(condition.curve)
            share = _share(settings, condition, refused, n_classes, _TRIED_SHARES)
            rank = share * (n + 1) - settings.lost
            if rank < 1:
                continue
            cost = _cost(test, t, m, rank, n, price)
            if cost < least:
                best, least = RiskTest(share, t, test), cost
    _, t, test = best
    if not test.k:
        return best
    condition = _condition(settings, worst, t, m, m_test, _FINEST_POINTS)
    refused = test.worst_refusals(condition.curve)
    parts = math.ceil(settings.level * _PARTS_OF_A_RANK * (n + 1))
    return RiskTest(_share(settings, condition, refused, n_classes, parts), t, test)


def _condition(
    settings: RiskSettings, certificate: Certificate, t: int, m: int, m_test: int, points: int
) -> MeanFailure:
    """Return the condition on the test if all of alpha is the level of the losses."""
    curve = Curve.around(certificate, t, m, m_test, points=points)
    return MeanFailure(curve, t, m, settings.level, settings.proof_level)


def _share(
    settings: RiskSettings, condition: MeanFailure, refused: Array, n_classes: int, parts: int
) -> Fraction:
    """Return the largest level of the losses that is shown to pay for the refusals.

    The envelope is asked for as many parts of all that there is.
    """
    paid = settings.level - n_classes * _lost(condition, refused)
    if settings.loss != ANY_MISSED:
        return paid
    any_refused = _any_of(refused, n_classes)

    def holds(i: int) -> bool:
        return condition.allows_at(share(i), any_refused)

    def share(i: int) -> Fraction:
        return settings.level * Fraction(i, parts)

    return max(paid, share(last_integer(holds, 1, parts)))


def _any_of(refused: Array, n_classes: int) -> Array:
    """Return a bound on the probability that the attacked point misses any label.

    The label of the least probability p is missed by the imagined point with probability u(p), and
    any label by the attacked one with at most K times v(p).
    """
    return np.minimum(n_classes * refused, 1.0)


def _lost(condition: MeanFailure, refused: Array) -> Fraction:
    """Return a bound on the probability that a label reaches tau at the clean input and is refused.

    Both draws are independent; in a cell the first probability is largest at the right end and the
    second at the left.
    """
    reached = 1 - condition.u
    return Fraction(float(np.max(reached[1:] * refused[:-1]))) + _ROUNDING


def _tests(m_test: int, price: Price) -> Iterator[LabelTest]:
    """Return the tests that are tried; where m' = 1 or nothing stops early, all draws count."""
    draws = min(m_test, MOST_EARLY_DRAWS) if price.early else m_test
    counts = np.unique(np.linspace(1, draws, min(draws, _MOST_COUNTS)).astype(int)).tolist()
    spreads = [s for s in _SPREADS if 2 * s <= draws] if price.early else []
    for k in counts:
        if not spreads:
            yield LabelTest(k, m_test)
        for spread in spreads:
            yield LabelTest(k, draws, spread, m_test - draws)


def _cost(test: LabelTest, t: int, m: int, rank: Fraction, n: int, price: Price) -> float:
    fitted = min(m, FITTED_SAMPLES)
    at = population.levels(fitted).by_rank(max(1, round(t * fitted / m)), float(rank), n)
    wrong = population.mean_over_nodes(_accepted(test), at)
    passes = _passes(test, float(np.round(at.mean(), 1))) if price.early else 1.0
    return Rule(test, wrong, passes).cost(price)


@lru_cache(1024)
def _accepted(test: LabelTest) -> np.ndarray:
    return population.accepted(test)


@lru_cache(4096)
def _passes(test: LabelTest, centre: float) -> float:
    return population.passes(test, centre)
