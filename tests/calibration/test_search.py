"""The search of a rule: what it finds is valid, useful where anything is, and stable."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

import bincp
from bincp.calibration import _wide_reference as population
from bincp.calibration._label_test import LabelTest
from bincp.calibration._losses import UNIT
from bincp.calibration._mixture import Setup
from bincp.calibration._search import Price, Rule, Search, choose_rule
from support import CERTIFICATES, Step

Array = npt.NDArray[np.float64]

Z = special.ndtr(np.linspace(-8, 8, 1601))
FAR = 10.0 ** -np.arange(3, 16, 0.5)
P = np.unique(np.concatenate([Z, np.linspace(0, 1, 1601), FAR, 1 - FAR, [0.75 - 1e-12]]))

SIZES = [(1, 1, 9), (4, 4, 50), (8, 2, 199), (16, 16, 200), (64, 16, 99), (3, 8, 10), (64, 1, 1000)]
PRICES = [Price(early=False), Price(), Price(passes=3.3)]


def refusals(test: LabelTest, c: Array) -> Array:
    """Return the probability of refusal from the numbers of paths to each exit."""
    rule, live, total = test.rule, {0: 1}, np.zeros_like(c)
    for draws in range(test.m_test + 1):
        if draws:
            steps = [(hits + step, paths) for hits, paths in live.items() for step in (0, 1)]
            live = {}
            for hits, paths in steps:
                live[hits] = live.get(hits, 0) + paths
        for hits, paths in list(live.items()):
            if hits >= rule.accept[draws] or hits <= rule.reject[draws]:
                del live[hits]
                if hits < rule.accept[draws]:
                    total += paths * c**hits * (1 - c) ** (draws - hits)
    assert not live
    return total


def largest_mean(u: Array, v: Array, x: float) -> float:
    """Return the upper concave envelope of points (u, v) at x."""
    hull: list[tuple[float, float]] = []
    for point in sorted(
        zip(u.tolist(), np.maximum.accumulate(v[::-1])[::-1].tolist(), strict=True)
    ):
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (point[1] - hull[-2][1]) >= (
            hull[-1][1] - hull[-2][1]
        ) * (point[0] - hull[-2][0]):
            hull.pop()
        hull.append(point)
    xs, ys = np.array(hull).T
    return float(np.interp(x, xs, np.maximum.accumulate(ys)))


def miscoverage(rule: Rule, setup: Setup, certificate: Any) -> float:
    """Return the largest mean refusal that the calibration leaves possible, by points."""
    if rule.is_trivial:
        return 0.0
    v = refusals(rule.test, np.asarray(certificate.lower(P)))
    if rule.losses is None:
        assert rule.t is not None
        assert rule.rank is not None
        u = stats.binom.cdf(rule.t - 1, setup.m, P)
        return largest_mean(u, v, float(setup.share(rule.rank)))
    losses = rule.losses * UNIT
    paid = sum(losses[s] * stats.binom.pmf(s, setup.m, P) for s in range(setup.m + 1))
    return float(setup.alpha) + float((v - paid).max())


@pytest.mark.parametrize("name", sorted(CERTIFICATES))
@pytest.mark.parametrize(("m", "m_test", "n"), SIZES)
def test_what_is_chosen_is_valid(name: str, m: int, m_test: int, n: int) -> None:
    certificate = CERTIFICATES[name]
    for alpha, price in itertools.product((Fraction(1, 10), Fraction(1, n + 1)), PRICES):
        setup = Setup(certificate, n, m, m_test, alpha)
        rule = Search(setup, price).best()
        assert miscoverage(rule, setup, certificate) <= alpha + 1e-10


@pytest.mark.parametrize("name", ["gaussian 0.25", "sparse 1 2"])
def test_a_training_conditional_guarantee_is_by_ranks(name: str) -> None:
    certificate = CERTIFICATES[name]
    setup = Setup(certificate, 200, 16, 16, Fraction(1, 10), Fraction(1, 20))
    rule = Search(setup, Price()).best()
    assert rule.losses is None
    assert not rule.is_trivial
    assert miscoverage(rule, setup, certificate) <= 0.1 + 1e-10


@pytest.mark.parametrize(("n", "alpha"), [(9, "1/10"), (19, "1/20"), (4, "1/5")])
def test_one_failure_is_enough_for_a_useful_rule(n: int, alpha: str) -> None:
    # Losses alone leave nothing where alpha (n + 1) = 1: the lift makes w(0) larger than 1.
    setup = Setup(CERTIFICATES["gaussian 0.25"], n, 64, 16, Fraction(alpha))
    for price in PRICES[:2]:
        assert not Search(setup, price).best().is_trivial


def test_few_samples_with_a_far_attack_have_a_useful_rule() -> None:
    # Four samples, r / sigma = 2: no rank at the default share, but (4, 10, 1).
    setup = Setup(CERTIFICATES["gaussian 2.0"], 100, 4, 4, Fraction(1, 10))
    rule = Search(setup, Price(early=False)).best()
    assert not rule.is_trivial
    assert (rule.t, rule.test.k) == (4, 1)


def test_useful_rules_are_found_where_there_are_any() -> None:
    sizes = itertools.product(sorted(CERTIFICATES), (5, 10, 30), (1, 3, 8), (1, 4, 6))
    for name, n, m, m_test in sizes:
        certificate = CERTIFICATES[name]
        setup = Setup(certificate, n, m, m_test, Fraction(1, 10))
        if setup.top_rank == 0 or not Search(setup, Price(early=False)).best().is_trivial:
            continue
        c, share = np.asarray(certificate.lower(P)), float(setup.share(1))
        v = refusals(LabelTest(1, m_test), c)
        for t in range(1, m + 1):
            assert largest_mean(stats.binom.cdf(t - 1, m, P), v, share) > 0.1 - 1e-9


@pytest.mark.parametrize("price", [Price(early=False), Price(passes=6.0)])
@pytest.mark.parametrize(("m", "m_test"), [(4, 4), (16, 16), (64, 16)])
def test_sets_grow_with_the_radius(m: int, m_test: int, price: Price) -> None:
    radii = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.3, 1.6, 2, 2.5]
    wrong = []
    for radius in radii:
        certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(radius))
        rule = Search(Setup(certificate, 200, m, m_test, Fraction(1, 10)), price).best()
        wrong.append(rule.wrong)
    # Up to what candidates are not looked at for.
    assert np.all(np.diff(wrong) >= -0.005)


def test_one_more_sample_or_point_does_not_hurt() -> None:
    certificate = CERTIFICATES["gaussian 0.5"]

    def wrong(n: int, m: int) -> float:
        setup = Setup(certificate, n, m, 16, Fraction(1, 10))
        return Search(setup, Price(passes=6.0)).best().wrong

    by_samples = [wrong(200, m) for m in (4, 8, 16, 32, 64)]
    by_points = [wrong(n, 64) for n in (49, 99, 199, 399, 999)]
    for values in (by_samples, by_points):
        assert np.all(np.diff(values) <= 0.01 * values[0])


@pytest.mark.parametrize("spread", [None, Fraction(16, 25), Fraction(6, 5)])
def test_passes_in_the_population_are_those_of_a_simulation(spread: Fraction | None) -> None:
    rng = np.random.default_rng(0)
    test, n, centre = LabelTest(4, 8, spread), 20_000, 4.0
    z = rng.normal(centre, population.SPREAD, (n, 1 + population.WRONG_LABELS))
    z[:, 1:] = rng.normal(
        centre - population.GAP, population.SPREAD_OF_WRONG, (n, population.WRONG_LABELS)
    )
    hits = rng.uniform(size=(*z.shape, 8)) <= special.ndtr(z)[..., None]
    labels = LabelTest(4, 8, spread).rule.start(z.shape)
    labels.update(hits)
    drawn = labels.exits.max(axis=1) if spread else np.full(n, 8)
    error = drawn.std() / math.sqrt(n) if spread else 0
    assert abs(population.passes(test, centre) - drawn.mean()) <= 5 * error + 1e-12


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("kind", ["rank", "losses"])
def test_levels_are_those_of_a_simulation(kind: str, n: int) -> None:
    """Calibrate many times in the population, and see where the true labels come to lie."""
    rng, m, rank = np.random.default_rng(1), 16, max(1, n // 10)
    levels = population.levels(m)
    losses = np.maximum(0, 1 - np.arange(m + 1) / 10)
    budget = 0.1 * (n + 1) - 1
    centres = []
    for _ in range(600):
        # Raising tau moves all z down; a score of -z of the point is reached by noise below it.
        clean, noise = rng.normal(0, population.SPREAD, (n, 1)), rng.normal(size=(n, m))
        scores = np.sort(clean + noise, axis=1)  # reaches tau with probability Phi(clean - tau)
        if kind == "rank":
            tau = np.sort(scores[:, m - 12])[rank - 1]
        else:
            pooled = np.sort(scores, axis=None)
            low, high = 0, pooled.size
            while high - low > 1:
                middle = (low + high) // 2
                paid = losses[(scores >= pooled[middle]).sum(axis=1)].sum()
                low, high = (middle, high) if paid <= budget else (low, middle)
            tau = pooled[low]
        centres.append(-tau)
    at = levels.by_rank(12, rank, n) if kind == "rank" else levels.by_losses(losses, budget, n)
    expected = population.mean_over_nodes(population.CENTRES, at)
    error = np.std(centres) / math.sqrt(len(centres))
    assert abs(np.mean(centres) - expected) <= 4 * error + 0.02 * population.SPREAD


def test_a_rule_is_found_where_the_best_candidate_is_none() -> None:
    # By the points of the grid t = 3 looks valid and best; t = 4 is what can be proven.
    certificate = Step(0.3, 0.1)
    setup = Setup(certificate, 5, 4, 16, Fraction(1, 3))  # type: ignore[arg-type]
    rule = Search(setup, Price(early=False)).best()
    assert (rule.t, rule.rank, rule.test.k) == (4, 1, 1)
    assert miscoverage(rule, setup, certificate) <= 1 / 3 + 1e-10


@pytest.mark.parametrize(("n", "alpha"), [(1, "1/2"), (9, "1/10")])
@pytest.mark.parametrize("m_test", [2, 16, 300])
def test_a_budget_of_one_pass_is_kept_where_one_draw_is_useful(
    n: int, alpha: str, m_test: int
) -> None:
    certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.1))
    setup = Setup(certificate, n, 64, m_test, Fraction(alpha))
    rule = choose_rule(setup, Price(passes=1.0))
    assert not rule.is_trivial
    assert rule.passes == 1
    boundaries = rule.test.boundaries
    assert boundaries is not None
    assert boundaries.n_test_samples == m_test
    p = np.linspace(0, 1, 11)
    np.testing.assert_allclose(boundaries.acceptance(p), p, atol=1e-15)
    np.testing.assert_allclose(boundaries.expected_draws(p), 1, atol=1e-15)
    assert miscoverage(rule, setup, certificate) <= Fraction(alpha) + Fraction(1, 10**10)


@pytest.mark.parametrize("m_test", [65, 300])
def test_draws_that_no_label_needs_change_nothing(m_test: int) -> None:
    certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.5))
    short = choose_rule(Setup(certificate, 200, 64, 64, Fraction(1, 10)), Price())
    long = choose_rule(Setup(certificate, 200, 64, m_test, Fraction(1, 10)), Price())
    boundaries = long.test.boundaries
    assert boundaries is not None
    assert boundaries.n_test_samples == m_test
    p = np.linspace(0, 1, 101)
    np.testing.assert_array_equal(boundaries.acceptance(p), short.test.rule.acceptance(p))
    np.testing.assert_array_equal(boundaries.expected_draws(p), short.test.rule.expected_draws(p))
    np.testing.assert_array_equal(long.losses, short.losses)
    few = Setup(certificate, 3, 64, m_test, Fraction(1, 10))
    assert choose_rule(few, Price()).is_trivial
    assert choose_rule(few, Price()).test.m_test == m_test
