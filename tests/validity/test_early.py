"""Rules that stop early keep the level: verdicts of a verifier that knows only the certificate."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from refutation import Boundaries, losses_pay, ranks_hold, refusal
from scipy import special

import bincp
from bincp.calibration._curve import Curve
from bincp.calibration._label_test import LabelTest
from bincp.calibration._loss_fitting import Cells
from bincp.calibration._loss_proof import proves
from bincp.calibration._losses import UNIT
from bincp.calibration._mixture import Setup
from bincp.calibration._search import Price, Rule, Search
from bincp.calibration._sequential import SequentialRule, exit_probabilities
from support import CERTIFICATES, Step, golden

EARLY = golden("early")
IDENTITY = CERTIFICATES["identity"]


def boundaries_of(rule: SequentialRule) -> Boundaries:
    return Boundaries(tuple(rule.accept.tolist()), tuple(rule.reject.tolist()))


# ---- the verifier ---------------------------------------------------------------------------


@pytest.mark.parametrize("valid", [True, False])
def test_the_verifier_knows_valid_losses(valid: bool) -> None:
    cases = [case for case in EARLY["fitted"] if case["valid"] is valid]
    assert len(cases) > 30
    for case in cases:
        boundaries = Boundaries(tuple(case["accept"]), tuple(case["reject"]))
        losses = np.array(case["losses_units"]) * UNIT
        verdict = losses_pay(CERTIFICATES[case["certificate"]], boundaries, losses)
        assert verdict is valid, case["made"]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_verifier_knows_valid_ranks(m: int) -> None:
    # Without an attack and with m = m', k = t keeps the level exactly, and k > t does not.
    share = Fraction(1, 10)
    for t, k in itertools.product(range(1, m + 1), repeat=2):
        boundaries = boundaries_of(SequentialRule.curtailed(k, m))
        assert ranks_hold(IDENTITY, boundaries, t, m, share, share) is (k <= t)
        assert not ranks_hold(IDENTITY, boundaries, t, m, share, share * Fraction(9, 10)) or k < t


def test_refusals_agree_with_exact_values() -> None:
    for case in EARLY["refusals"]:
        at = EARLY["boundaries"][case["boundaries"]]
        rule = SequentialRule(at["min_count"], at["n_test_samples"], at["accept"], at["reject"])
        c = np.array([float(case["certified"])])
        exact = float(case["refused"])
        assert abs(refusal(boundaries_of(rule), c, 1 - c)[0] - exact) <= 1e-12
        assert abs(exit_probabilities(rule, c, 1 - c)[0][0] - exact) <= 1e-12


# ---- every sequential rule of few draws --------------------------------------------------------


def every_rule(m: int) -> Iterator[SequentialRule]:
    """Yield all boundaries of at most m draws that decide differently, k >= 1."""
    seen = set()
    for k in range(1, m + 1):
        accepts = itertools.combinations_with_replacement(range(k + 1), m)
        for accept in accepts:
            for reject in itertools.combinations_with_replacement(range(-1, k), m):
                rows = ((*accept, k), (*reject, k - 1))
                if all(low < high for high, low in zip(*rows, strict=True)) and rows not in seen:
                    seen.add(rows)
                    yield SequentialRule(k, m, *rows)


def played(rule: SequentialRule) -> list[Fraction]:
    """Return the share of the orders of s hits among m' draws that end in a refusal."""
    m = rule.n_test_samples
    refused = [0] * (m + 1)
    for draws in itertools.product((0, 1), repeat=m):
        hits = 0
        for made in range(m + 1):
            hits += draws[made - 1] if made else 0
            if hits >= rule.accept[made]:
                break
            if hits <= rule.reject[made]:
                refused[sum(draws)] += 1
                break
    return [Fraction(number, comb(m, s)) for s, number in enumerate(refused)]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_every_sequential_rule_of_few_draws(m: int) -> None:
    """Its refusals fall, are those of playing all draws, and cost what is proven to pay for them.

    Without an attack and with m = m', losses pay for every p if they are the shares refused by the
    number of hits. Less by 1e-6 at any count that has any does not pay.
    """
    p = np.linspace(0, 1, 17)
    for rule in every_rule(m):
        shares = played(rule)
        assert shares == boundaries_of(rule).by_hits()
        assert all(a >= b for a, b in itertools.pairwise(shares))
        ways = [float(share * comb(m, s)) for s, share in enumerate(shares)]
        exact = sum(paths * p**s * (1 - p) ** (m - s) for s, paths in enumerate(ways))
        np.testing.assert_allclose(exit_probabilities(rule, p, 1 - p)[0], exact, atol=1e-14)
        units = np.array([int(np.floor(float(share) / UNIT)) for share in shares])
        assert proves(units, rule, IDENTITY)
        less = units - np.array([share > 0 for share in shares]) * round(1e-6 / UNIT)
        if less.any() and np.all(np.diff(less) <= 0) and less[-1] >= 0:
            assert not proves(less, rule, IDENTITY)
            assert not losses_pay(IDENTITY, boundaries_of(rule), less * UNIT)


# ---- the trap -------------------------------------------------------------------------------


def test_losses_of_a_sequential_test_break_the_level_of_the_fixed_count() -> None:
    """k = 8 of 16 with losses fitted to spread 16/25: a population with mean loss alpha, exactly.

    Its points have one of two success probabilities. The mean loss is at most alpha, so that
    calibration with ever more points keeps the threshold, and the count refuses more than alpha.
    """
    alpha, certificate = Fraction(1, 10), CERTIFICATES["gaussian 0.5"]
    test = LabelTest(8, 16, Fraction(16, 25))
    curve = Curve.around(certificate, 11, 16, 16, points=2400)
    prices = np.cumsum(special.softmax(np.linspace(-9, 0, 65))) + 1 / 200
    found = Cells.of(curve, 64).fitted(test.worst_refusals(curve)[:-1], prices)[-1]
    losses = [
        Fraction(unit) * Fraction(UNIT) for unit in np.floor(found / UNIT).astype(int).tolist()
    ]
    assert losses_pay(certificate, boundaries_of(test.rule), np.array(losses, dtype=np.float64))

    def loss(p: Fraction) -> Fraction:
        return sum(w * comb(64, s) * p**s * (1 - p) ** (64 - s) for s, w in enumerate(losses))

    def refused(p: Fraction) -> Fraction:
        """Of the count at the worst input, a little less than that."""
        c = Fraction(float(special.ndtr(special.ndtri(float(p)) - 0.5))) + Fraction(1, 10**12)
        return sum(comb(16, s) * c**s * (1 - c) ** (16 - s) for s in range(8))

    often, seldom = Fraction(1, 2), Fraction(1)
    assert loss(seldom) < alpha < loss(often)
    share = (alpha - loss(seldom)) / (loss(often) - loss(seldom))
    assert share * refused(often) > alpha * Fraction(108, 100)


# ---- what is chosen -------------------------------------------------------------------------


class Flat(Step):
    """c(p) has a step, and rises on both sides of it."""

    def lower(self, p: Any) -> Any:
        low = 0.5 * self.value * np.asarray(p)
        return np.where(np.asarray(p) >= self.at, np.minimum(self.value + 0.25 * low, p), low)


def a_certificate(rng: np.random.Generator) -> Any:
    smoothing, balls = bincp.smoothing, bincp.balls
    kind = rng.integers(7)
    radius = float(rng.choice([0.01, 0.1, 0.25, 0.5, 1, 1.5, 2.5])) * rng.uniform(0.7, 1.3)
    if kind == 0:
        return IDENTITY
    if kind == 1:
        return bincp.certify(smoothing.Gaussian(1.0), balls.L2(radius))
    if kind == 2:
        return bincp.certify(smoothing.Laplace(1.0), balls.L1(radius))
    if kind == 3:
        return bincp.certify(smoothing.Uniform(1.0), balls.L1(min(radius, 1.9)))
    if kind == 4:
        flips = balls.Flips(*rng.integers(0, 3, 2).tolist())
        return bincp.certify(smoothing.SparseFlip(0.01, 0.6), flips)
    at, value = rng.uniform(0.05, 0.99, 2)
    return (Step if kind == 5 else Flat)(float(at), min(float(at), float(value)))


def a_setting(seed: int) -> tuple[Setup, Price]:
    """Return a setting: small n, whole alpha (n + 1) and m' = 1 are as frequent as all others."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 11)) if rng.integers(2) else int(np.exp(rng.uniform(2.4, 7.6)))
    alpha = Fraction(int(rng.integers(1, 60)), 200)
    if alpha * (n + 1) < 1 or rng.integers(2):
        alpha = Fraction(int(rng.integers(1, max(2, (n + 1) // 3 + 1))), n + 1)
    m, m_test = (int(rng.choice([1, 2, 3, 4, 5, 8, 11, 16, 24])) for _ in range(2))
    if rng.integers(4) == 0:
        m_test = 1
    if rng.integers(8) == 0:
        m = 64
    delta = Fraction(1, 10) if rng.integers(8) == 0 else None
    budgets = [None, 1.0, 1.5, 2.2, 3.3, 7.0]
    early = bool(rng.integers(4))
    price = Price(early, budgets[rng.integers(6)] if early else None)
    return Setup(a_certificate(rng), n, m, m_test, alpha, delta), price


def is_valid(rule: Rule, setup: Setup) -> bool:
    """Whether no population makes the rule miss with more than alpha + 1e-10."""
    if rule.is_trivial:
        return True
    boundaries = boundaries_of(rule.test.rule)
    if rule.losses is not None:
        # Conformal risk control bounds the mean loss by alpha; whole units, so no rounding.
        assert rule.losses.dtype == np.int64
        assert len(rule.losses) == setup.m + 1
        return losses_pay(setup.certificate, boundaries, rule.losses * UNIT)
    assert rule.t is not None
    assert rule.rank is not None
    assert 1 <= rule.rank <= setup.n
    share = setup.share(rule.rank)
    return ranks_hold(setup.certificate, boundaries, rule.t, setup.m, share, setup.alpha)


def check_settings(seeds: range) -> None:
    useful = 0
    for seed in seeds:
        setup, price = a_setting(seed)
        rule = Search(setup, price).best()
        assert is_valid(rule, setup), (seed, setup, price, rule)
        useful += not rule.is_trivial
    assert useful > len(seeds) // 3


@pytest.mark.parametrize("part", range(4))
def test_what_is_chosen_keeps_the_level(part: int) -> None:
    check_settings(range(60 * part, 60 * (part + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_what_is_chosen_keeps_the_level_in_ten_thousand_settings(part: int) -> None:
    check_settings(range(1000 + 100 * part, 1100 + 100 * part))


# ---- calibration and prediction, outcome by outcome -------------------------------------------


def chance_within(law: dict[int, float], n: int, most: int) -> float:
    """Return the probability that n independent costs add up to at most so much."""
    total = {0: 1.0}
    for _ in range(n):
        after: dict[int, float] = {}
        for paid, chance in total.items():
            for cost, share in law.items():
                if paid + cost <= most:
                    after[paid + cost] = after.get(paid + cost, 0.0) + chance * share
        total = after
    return sum(total.values())


def missed(rule: Rule, setup: Setup, low: float, high: float, levels: int) -> float:
    """Return the exact miscoverage in a population of scores with ties.

    The scores are whole numbers. Score l is reached with probability `low` by a share of the points
    that grows with l from none to all, and with probability `high` by the others; 0 by all.
    """
    if rule.losses is None:
        assert rule.t is not None
        assert rule.rank is not None
        costs, most = [int(s < rule.t) for s in range(setup.m + 1)], rule.rank - 1
    else:
        costs = rule.losses.tolist()
        budget = setup.alpha * (setup.n + 1) / Fraction(UNIT)
        most = budget.numerator // budget.denominator - costs[0]
    hits = np.arange(setup.m + 1)
    ways = special.comb(setup.m, hits)
    law = {p: ways * p**hits * (1 - p) ** (setup.m - hits) for p in (low, high)}
    c = np.asarray(setup.certificate.lower(np.array([low, high, 1.0])))
    v = refusal(boundaries_of(rule.test.rule), c, 1 - c)
    total, passed = 0.0, 1.0
    refused = v[2]
    for level in range(levels + 1):
        share = level / levels
        spent: dict[int, float] = {}
        for cost, chance in zip(costs, share * law[low] + (1 - share) * law[high], strict=True):
            spent[cost] = spent.get(cost, 0.0) + chance
        reached = chance_within(spent, setup.n, most)
        total += (passed - reached) * refused
        passed, refused = reached, share * v[0] + (1 - share) * v[1]
    return float(total + passed * refused)


ENDS = [(0.0, 1.0), (0.0, 0.8), (0.3, 1.0), (0.5, 0.97), (0.7, 0.999)]


@pytest.mark.parametrize("name", ["identity", "gaussian 0.25", "sparse 1 1", "step"])
@pytest.mark.parametrize(("m", "m_test"), [(1, 1), (3, 4), (4, 3)])
def test_no_population_of_few_points_is_missed_too_often(name: str, m: int, m_test: int) -> None:
    for n, early in itertools.product((1, 2, 4), (False, True)):
        setup = Setup(CERTIFICATES[name], n, m, m_test, Fraction(1 + (n > 1), n + 1))
        rule = Search(setup, Price(early)).best()
        for low, high in ENDS:
            assert missed(rule, setup, low, high, 24) <= float(setup.alpha) + 1e-10


def test_one_rank_too_many_is_seen() -> None:
    setup = Setup(IDENTITY, 4, 1, 1, Fraction(1, 5))
    for rank in (1, 2):
        rule = Rule(LabelTest(1, 1), 0.0, 1.0, 1, rank)
        assert (missed(rule, setup, 0.0, 1.0, 400) > 0.21) is (rank == 2)
