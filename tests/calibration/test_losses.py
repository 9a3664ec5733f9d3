"""Losses of a sequential test: its boundaries, its refusals, the proof, and the fits."""

import tracemalloc
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from bincp._utils.arrays import as_scores
from bincp.calibration._curve import Curve
from bincp.calibration._label_test import (
    LabelTest,
    line_boundaries,
    refusals_by_count,
    undecided,
)
from bincp.calibration._loss_fitting import (
    Cells,
    _least_drops,
    binomial_masses,
    extended,
    falling,
)
from bincp.calibration._loss_proof import proves
from bincp.calibration._losses import UNIT, _largest_within
from bincp.calibration._sequential import SequentialRule, exit_probabilities
from support import CERTIFICATES, golden

EARLY = golden("early")


def rule_of(case: dict[str, Any]) -> SequentialRule:
    return SequentialRule(
        case["accept"][-1], len(case["accept"]) - 1, case["accept"], case["reject"]
    )


# ---- boundaries and probabilities -----------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [b for b in EARLY["boundaries"] if b["name"].startswith("line")],
    ids=lambda b: b["name"],
)
def test_boundaries_are_those_of_exact_arithmetic(case: dict[str, Any]) -> None:
    spread = Fraction(case["name"].split()[-1])
    rule = line_boundaries(case["min_count"], case["n_test_samples"], spread)
    assert rule == rule_of(case)


def test_ties_of_the_line_are_not_left_to_rounding() -> None:
    # 7 * 2 / 10 - 2 / 5 is 1, and below 1 in floating point.
    rule = line_boundaries(2, 10, Fraction(2, 5))
    assert np.floor(7 * 2 / 10 - 0.4) == 0
    assert rule.reject[7] == 1


def test_sequential_probabilities_agree_with_exact_values() -> None:
    for case in EARLY["boundaries"]:
        rule = rule_of(case)
        p = np.array([float(at["p"]) for at in case["at"]])
        refused, accepted, draws = exit_probabilities(rule, p, 1 - p)
        for name, values in (("refused", refused), ("accepted", accepted), ("draws", draws)):
            exact = [float(at[name]) for at in case["at"]]
            np.testing.assert_allclose(values, exact, rtol=1e-12, atol=1e-14)
        left = undecided(rule, p, 1 - p)
        np.testing.assert_allclose(left.sum(axis=0), draws, rtol=1e-12)
        assert np.all(left[-1] == 0)


@pytest.mark.parametrize("m", [4, 7])
def test_refusals_by_count_have_the_expectation_of_the_test(m: int) -> None:
    for k, spread in ((2, Fraction(16, 25)), (3, None), (1, Fraction(2, 5))):
        rule = LabelTest(k, 4, spread).rule
        losses = refusals_by_count(rule, m)
        for numerator in range(9):
            p = Fraction(numerator, 8)
            expected = sum(
                Fraction(losses[s]) * comb(m, s) * p**s * (1 - p) ** (m - s) for s in range(m + 1)
            )
            exact = _refusal(rule, p)
            assert abs(expected - exact) < Fraction(1, 10**14)


def _refusal(rule: SequentialRule, p: Fraction) -> Fraction:
    """Play every sequence of draws."""
    m, total = rule.n_test_samples, Fraction(0)
    for bits in range(2**m):
        hits = 0
        for draws in range(m + 1):
            hits += draws > 0 and bits >> (draws - 1) & 1
            if hits >= rule.accept[draws]:
                break
            if hits <= rule.reject[draws]:
                ones = bits.bit_count()
                total += p**ones * (1 - p) ** (m - ones)
                break
    return total


# ---- the threshold --------------------------------------------------------------------------


@pytest.mark.parametrize("case", EARLY["thresholds"])
def test_thresholds_from_sums_of_losses_are_exact(case: dict[str, Any]) -> None:
    losses = np.array(case["losses_units"], dtype=np.int64)
    scores = np.array(case["scores"], dtype=np.float64)
    level = Fraction(case["alpha"]) * (len(scores) + 1) / Fraction(UNIT)
    budget = level.numerator // level.denominator - int(losses[0])
    found = -np.inf
    if len(scores) * int(losses[-1]) <= budget:
        found = _largest_within(as_scores("scores", scores), losses, budget)
    assert found == (-np.inf if case["tau"] is None else case["tau"])


# ---- the proof ------------------------------------------------------------------------------


@pytest.mark.parametrize("valid", [True, False])
def test_losses_are_proven_iff_they_are_valid(valid: bool) -> None:
    cases = [case for case in EARLY["fitted"] if case["valid"] is valid]
    assert len(cases) > 30
    for case in cases:
        losses = np.array(case["losses_units"], dtype=np.int64)
        certificate = CERTIFICATES[case["certificate"]]
        assert proves(losses, rule_of(case), certificate) is valid, case["made"]


def test_the_proof_asks_for_losses_that_fall_and_are_not_negative() -> None:
    rule = SequentialRule.curtailed(1, 2)
    enough = np.full(3, round(1 / UNIT))
    certificate = CERTIFICATES["gaussian 0.25"]
    assert proves(enough, rule, certificate)
    assert not proves(enough + np.array([0, 0, 1]), rule, certificate)
    assert not proves(np.array([1, 0, -1]), LabelTest(0, 2).rule, certificate)


def test_losses_of_a_sequential_test_do_not_pay_for_the_fixed_count() -> None:
    # k = 8 of 16 with losses fitted to spread 0.64: the level would be lost.
    certificate = CERTIFICATES["gaussian 0.5"]
    test = LabelTest(8, 16, Fraction(16, 25))
    curve = Curve.around(certificate, 11, 16, 16, points=2400)
    cells = Cells.of(curve, 64)
    losses = cells.fitted(test.worst_refusals(curve)[:-1], np.linspace(0.1, 1, 65))[0]
    units = np.floor(losses / UNIT).astype(np.int64)
    assert proves(units, test.rule, certificate)
    assert not proves(units, SequentialRule.curtailed(8, 16), certificate)


# ---- the fits -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CERTIFICATES))
@pytest.mark.parametrize(("m", "k", "m_test"), [(1, 1, 1), (4, 2, 4), (64, 9, 16), (16, 20, 32)])
def test_fitted_losses_pay(name: str, m: int, k: int, m_test: int) -> None:
    certificate = CERTIFICATES[name]
    test = LabelTest(k, m_test, Fraction(16, 25))
    curve = Curve.around(certificate, min(k, m_test), m_test, m_test, points=800)
    fitted = Cells.of(curve, m).fitted(test.worst_refusals(curve)[:-1], np.linspace(0.1, 1, m + 1))
    for losses in fitted:
        assert np.all(np.diff(losses) <= 0)
        assert losses[-1] >= 0
        assert proves(np.floor(losses / UNIT).astype(np.int64), test.rule, certificate)


@pytest.mark.parametrize("name", ["gaussian 0.25", "gaussian 2.0", "sparse 1 2", "uniform 0.125"])
@pytest.mark.parametrize("m", [4, 16, 64])
def test_the_linear_programme_is_solved(name: str, m: int) -> None:
    certificate = CERTIFICATES[name]
    curve = Curve.around(certificate, 8, 16, 16, points=400)
    v = LabelTest(8, 16, Fraction(16, 25)).worst_refusals(curve)[:-1]
    sums = np.cumsum(Cells.of(curve, m).masses, axis=1)
    prices = stats.binom.cdf(np.arange(m + 1), m, 0.85) + 1 / 200
    drops = _least_drops(v, sums, prices)
    assert drops is not None
    assert np.all(sums @ drops >= v - 2e-4)
    best = optimize.linprog(prices, A_ub=-sums, b_ub=-v, method="highs")
    assert best.success
    assert abs(prices @ drops - best.fun) <= 3e-4


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_losses_of_more_samples_have_the_same_expectation(fewer: int, more: int, seed: int) -> None:
    losses = falling(np.random.default_rng(seed).uniform(0, 1, fewer + 1))
    m = fewer + more
    p = np.linspace(0, 1, 33)
    longer = extended(losses, m)
    assert longer.shape == (m + 1,)
    np.testing.assert_allclose(
        binomial_masses(p, 1 - p, m) @ longer,
        binomial_masses(p, 1 - p, fewer) @ losses,
        rtol=0,
        atol=1e-12,
    )


def test_losses_of_very_many_samples_take_little_memory() -> None:
    """All selections at once would be 200,001 times 65 numbers, several times over."""
    m, losses = 200_000, np.linspace(1, 0, 65) ** 2
    tracemalloc.start()
    longer = extended(losses, m)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 150 * 2**20
    for s in (0, 1, 64, 32_262, 32_263, 100_000, m - 1, m):
        ways = [comb(s, x) * comb(m - s, 64 - x) for x in range(65)]
        mean = sum(Fraction(w) * n for w, n in zip(losses.tolist(), ways, strict=True))
        assert longer[s] == pytest.approx(float(mean / comb(m, 64)), abs=1e-8)
