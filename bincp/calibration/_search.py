"""The search of all that is free: the test, and ranks or losses, compared on equal terms.

Nothing here looks at scores. A rule is a function of the certificate, n, m, m', alpha and what a
test input may cost, so every choice is valid; the reference population only orders valid rules.
Candidates are compared by the points of a grid. The best ones are then made on a finer grid, which
proves them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._core._mixture import point_envelope
from bincp._utils.bisection import last_integer
from bincp._utils.validation import MAX_COUNT
from bincp.calibration import _wide_reference as population
from bincp.calibration._curve import Array, Curve
from bincp.calibration._decision_rule import Settings
from bincp.calibration._label_test import MOST_EARLY_DRAWS, LabelTest, refusals_by_count
from bincp.calibration._loss_fitting import FITTED_SAMPLES, Cells, extended, falling
from bincp.calibration._loss_proof import proves
from bincp.calibration._losses import UNIT, Losses, accept_all
from bincp.calibration._mixture import Setup
from bincp.calibration._rank_proof import is_valid

PRICE = 0.05
"""How much of the wrong labels a test may add to save its share of the passes: log against log."""

PRICE_WITHIN_BUDGET = 0.01
"""The same where the passes keep to a budget, so that nothing is drawn for next to no gain."""

_SPREADS = tuple(
    Fraction(s, 20)
    for s in (2, 4, 6, 8, 10, 11, 13, 15, 17, 20, 22, 24, 26, 30, 34, 40, 50, 66, 84, 110, 140, 200)
)
_FIRST_SPREAD = Fraction(6, 5)
_NARROWER = 3  # spreads that are looked at below the widest one within a budget
_WIDE = 2  # a spread; a budget that leaves room for more is a generous one
_STRIDES = (4, 2, 1)  # between the spreads that are looked at
_FEW_COUNTS = 8  # so many values of k are all tried
_FEW_RANKS = 16  # and so many success ranks t; else so many shares t / m from 0.3 to 1
# Candidates are compared by losses of at most so many samples, and without raises for less.
_SEARCH_SAMPLES = 64
_SEARCH_GAP = 2e-4
_FINEST = 32  # so many values of k are told apart at least
_STEP = 0.2  # of the grid in z, in units of 1 / sqrt(samples)
_FINE_POINTS = 2400
_CENTRE = 6.0  # of the true labels, where nothing else is known
_OVER_BUDGET = 1e3  # what too many passes cost, and one for each pass
_WORTH_A_PROOF = 0.003  # what the next candidate must cost less, as a share of wrong labels


@dataclass(frozen=True)
class Price:
    """What a test input may cost.

    Parameters
    ----------
    early : bool
        Whether a label may be decided before all m' draws.
    passes : float, optional
        Most forward passes on average, in the reference population. If not given, `PRICE` weighs
        them.
    """

    early: bool = True
    passes: float | None = None


@dataclass(frozen=True, eq=False)
class Rule:
    """A test with its calibration: ranks, or losses of counts.

    The losses of a candidate are numbers, those of a rule that is proven are units of `UNIT`. With
    k = 0 every label is accepted. ``wrong`` is the share of wrong labels in the sets, ``passes``
    the mean number of forward passes, both in the reference population.
    """

    test: LabelTest
    wrong: float
    passes: float
    t: int | None = None
    rank: int | None = None
    losses: npt.NDArray[Any] | None = None

    @property
    def is_trivial(self) -> bool:
        """Whether every label is accepted, whatever the scores are."""
        return self.test.k == 0

    def cost(self, price: Price) -> float:
        """Return what the search minimises; too many passes come last, the fewer the better."""
        if self.is_trivial:
            return math.inf
        if price.passes is not None and self.passes > price.passes:
            return _OVER_BUDGET + self.passes
        weight = PRICE if price.passes is None else PRICE_WITHIN_BUDGET
        return math.log(max(self.wrong, 1e-12)) + weight * math.log(self.passes)


class Search:
    """The candidates of a setup, each evaluated once it is asked for."""

    def __init__(self, setup: Setup, price: Price) -> None:
        self._setup = setup
        self._price = price
        self._found: dict[LabelTest, Rule] = {}
        self._centre = _CENTRE  # of the true labels, by the last rule
        self._candidates: list[Rule] = []
        self._fitted = min(setup.m, FITTED_SAMPLES)
        self._levels = population.levels(self._fitted)
        # The refusals of a fixed count change over faster, the more draws there are.
        few = min(
            self._fitted, _SEARCH_SAMPLES if price.early else max(_SEARCH_SAMPLES, setup.m_test)
        )
        self._few_levels = population.levels(few)
        step = _STEP / math.sqrt(min(setup.m, setup.m_test))
        z = np.arange(-5, 7, max(step, 0.01))
        far = np.arange(8.0, 38.0, 2)
        z = np.concatenate([[-np.inf], -far[::-1], [-6, -5.5], z, [7, 7.5], far, [np.inf]])
        self._curve = Curve(setup.certificate, z)
        # By points: the right end of a cell stands for the cell.
        self._cells = Cells.of(self._curve, few, _SEARCH_GAP)

    def best(self) -> Rule:
        """Return the cheapest rule whose condition is proven.

        What a candidate costs by the points of the grid is a little too low, so that candidates are
        proven in this order, until the next one cannot cost less by much.
        """
        best = self._nothing
        if self._setup.top_rank == 0:
            return best
        self._look_around()
        for candidate in sorted(self._candidates, key=lambda rule: rule.cost(self._price)):
            if candidate.cost(self._price) >= best.cost(self._price) - _WORTH_A_PROOF:
                break
            best = min(best, self._proven(candidate), key=lambda rule: rule.cost(self._price))
        return best

    def _look_around(self) -> None:
        """Evaluate candidates."""
        m = self._setup.m_test
        if not self._price.early or m == 1:
            self._best_count(lambda k: self._cost(k, None))
            return
        spreads = [s for s in _SPREADS if 2 * s <= m]
        if self._price.passes is not None:
            k = self._best_count(lambda k: self._cost_within_budget(k, spreads))
            widest = self._widest(k, spreads)
            for i in range(max(widest - _NARROWER, 0), widest):
                self._cost(k, spreads[i])
            if spreads[widest] <= _WIDE:
                return  # a tight budget; else much narrower spreads may be as good
        self._weigh_passes(spreads)

    def _weigh_passes(self, spreads: Sequence[Fraction]) -> None:
        """Look at wider and narrower spreads as long as it gets cheaper, in ever finer steps."""
        i = next((i for i, s in enumerate(spreads) if s == _FIRST_SPREAD), len(spreads) - 1)
        k = self._best_count(lambda k: self._cost(k, spreads[i]))
        for stride in _STRIDES:
            moved = True
            while moved:
                moved = False
                for j in (i - stride, i + stride):
                    if 0 <= j < len(spreads):
                        other = self._best_count(partial(self._cost, spread=spreads[j]), k)
                        if self._cost(other, spreads[j]) < self._cost(k, spreads[i]):
                            k, i, moved = other, j, True

    def _widest(self, k: int, spreads: Sequence[Fraction]) -> int:
        """Return the place of the widest spread that keeps to the budget, 0 if none does.

        Where the true labels lie is known only once a rule is evaluated; the last rule's are close.
        """
        m, budget = self._setup.m_test, self._price.passes
        assert budget is not None

        def keeps(i: int) -> bool:
            return population.passes(LabelTest(k, m, spreads[i]), self._centre) <= budget

        return max(last_integer(keeps, 0, len(spreads) - 1), 0)

    def _cost_within_budget(self, k: int, spreads: Sequence[Fraction]) -> float:
        """Return the cost with the widest spread that keeps to the budget."""
        i = self._widest(k, spreads)
        last = min(i + _NARROWER, len(spreads) - 1)
        while i < last and math.isinf(self._cost(k, spreads[i])):
            i += 1  # nothing useful there, and no passes to go by
        while (cost := self._cost(k, spreads[i])) > _OVER_BUDGET and i > 0:
            i -= 1
        return cost

    @property
    def _nothing(self) -> Rule:
        """The rule that accepts every label."""
        setup = self._setup
        return Rule(LabelTest(0, setup.m_test), 1.0, 1.0, setup.t or setup.m, setup.top_rank)

    def _cost(self, k: int, spread: Fraction | None) -> float:
        return self.at(LabelTest(k, self._setup.m_test, spread)).cost(self._price)

    def _best_count(self, cost: Callable[[int], float], near: int | None = None) -> int:
        """Return the best k: of all if few, else from a coarse grid, or one near it, by steps."""
        m = self._setup.m_test
        if m <= _FEW_COUNTS:
            return min(range(1, m + 1), key=cost)
        if near is None or math.isinf(cost(near)):
            step = max(1, m // 8)
            counts: Sequence[int] = range(1, m + 1, step)
        else:
            step, counts = max(1, m // 16), [near]
        k = min(counts, key=cost)
        while True:
            around = [c for c in (k, k - step, k + step) if 1 <= c <= m]
            best = min(around, key=cost)
            if best == k and step <= max(1, m // _FINEST):
                return k
            if best == k:
                step = step // 2
            k = best

    def at(self, test: LabelTest) -> Rule:
        """Return the better of the best ranks and the best losses for a test."""
        if test not in self._found:
            self._found[test] = self._evaluated(test)
        return self._found[test]

    def _evaluated(self, test: LabelTest) -> Rule:
        v = test.worst_refusals(self._curve)
        accepted = population.accepted(test)
        found = list(self._by_ranks(test, v, accepted))
        best, centre = min(found, key=lambda pair: pair[0].wrong, default=(self._nothing, _CENTRE))
        if self._setup.may_weigh:
            prices = self._prices(self._few_levels, centre)
            found += self._by_losses(test, v, accepted, prices)
            best, centre = min(found, key=lambda pair: pair[0].wrong, default=(best, centre))
        if best.is_trivial:
            return best
        self._centre = centre
        passes = population.passes(test, centre)
        self._candidates += [replace(rule, passes=passes) for rule, _ in found]
        return replace(best, passes=passes)

    def _by_ranks(self, test: LabelTest, v: Array, accepted: Array) -> Iterator[tuple[Rule, float]]:
        """Return each t with the largest rank that allows the test, and the mean centre."""
        success, level = 1 - v[::-1], 1 - float(self._setup.alpha)
        for t, safe in self._successes:
            # The least mean failure with a mean refusal of alpha: the envelope with its axes
            # exchanged, looked at from the other end.
            if rank := self._largest_rank(1 - point_envelope(success, safe, level)[0]):
                at = self._by_rank(t, rank)
                wrong = population.mean_over_nodes(accepted, at)
                yield Rule(test, wrong, 1.0, t, rank), float(at.mean())

    @cached_property
    def _successes(self) -> list[tuple[int, Array]]:
        """Each t, with the probability that a calibration point reaches its threshold."""
        m, t = self._setup.m, self._setup.t
        ranks = success_ranks(m) if t is None else [t]
        return [(t, 1 - self._curve.calibration_failures(t, m)[::-1]) for t in ranks]

    def _by_losses(
        self, test: LabelTest, v: Array, accepted: Array, prices: Array
    ) -> Iterator[tuple[Rule, float]]:
        losses = self._cells.likely(v[1:], prices)
        if found := self._scored(losses, accepted, self._few_levels):
            yield Rule(test, found[0], 1.0, losses=losses), found[1]

    def _by_rank(self, t: int, rank: int) -> Array:
        share = max(1, round(t * self._fitted / self._setup.m))
        return self._levels.by_rank(share, rank, self._setup.n)

    def _largest_rank(self, share: float) -> int:
        setup = self._setup
        if setup.delta is None and setup.inside is None:
            rank = int(share * (setup.n + 1) + 1e-6) - setup.poisoned
            return min(max(rank, 0), setup.top_rank)
        return last_integer(lambda j: float(setup.share(j)) <= share, 1, setup.top_rank)

    def _scored(
        self, losses: Array, accepted: Array, levels: population.Levels
    ) -> tuple[float, float] | None:
        """Return the share of wrong labels and the mean centre, None where all are accepted."""
        n, poisoned = self._setup.n, self._setup.poisoned
        budget = float(self._setup.target) * (n + 1) - (poisoned + 1) * float(losses[0])
        if (n - poisoned) * losses[-1] >= budget:
            return None
        at = levels.by_losses(losses, budget, n)
        return population.mean_over_nodes(accepted, at), float(at.mean())

    def _prices(self, levels: population.Levels, centre: float) -> Array:
        return levels.prices((self._setup.poisoned + 1) / self._setup.n, centre)

    # ---- the rule that is used --------------------------------------------------------------

    def _proven(self, candidate: Rule) -> Rule:
        """Return a candidate as a rule whose condition is proven, or one that accepts all."""
        if candidate.losses is None:
            return self._with_proven_ranks(candidate)
        losses, wrong = self._fine_losses(candidate)
        if accept_all(losses, self._setup.n, self._setup.target, self._setup.poisoned):
            return self._nothing
        return Rule(candidate.test, wrong, candidate.passes, losses=losses)

    def _with_proven_ranks(self, candidate: Rule) -> Rule:
        """Return the largest rank that allows the test, and the largest k that this rank allows."""
        setup, test, t = self._setup, candidate.test, candidate.t
        assert t is not None
        assert candidate.rank is not None
        rank = min(candidate.rank + 1, setup.top_rank)
        while rank and not is_valid(setup, test, t, rank):
            rank -= 1
        if rank == 0:
            return self._nothing

        def allowed(k: int) -> bool:
            return is_valid(setup, replace(candidate.test, k=k), t, rank)

        test = replace(test, k=_last_near(allowed, test.k, test.m_test))
        at = self._by_rank(t, rank)
        wrong = population.mean_over_nodes(population.accepted(test), at)
        return Rule(test, wrong, population.passes(test, float(at.mean())), t, rank)

    def _fine_losses(self, candidate: Rule) -> tuple[Losses, float]:
        """Return proven losses, in units, and the share of wrong labels."""
        setup, test = self._setup, candidate.test
        assert candidate.losses is not None
        p = float(np.interp((test.k - 0.5) / test.m_test, self._curve.c, self._curve.p))
        t = min(max(round(p * test.m_test), 1), test.m_test)
        curve = Curve.around(setup.certificate, t, test.m_test, test.m_test, points=_FINE_POINTS)
        accepted = population.accepted(test)
        found = self._scored(candidate.losses, accepted, self._few_levels)
        assert found is not None
        prices = self._prices(self._levels, found[1])
        options = Cells.of(curve, self._fitted).fitted(test.worst_refusals(curve)[:-1], prices)
        if curve.is_identity and self._fitted >= test.m_test:
            options.append(refusals_by_count(test.rule, self._fitted))

        def wrong(losses: Array) -> float:
            found = self._scored(losses, accepted, self._levels)
            return 1.0 if found is None else found[0]

        best = min(options, key=wrong)
        units = np.floor(falling(extended(best, setup.m)) / UNIT).astype(np.int64)
        if not proves(units, test.rule, setup.certificate):
            raise AssertionError("losses that pay in every cell must be proven")
        return units, wrong(best)


def success_ranks(m: int) -> list[int]:
    """Return the t that are tried: all if few, else even shares of m."""
    if m <= _FEW_RANKS:
        return list(range(1, m + 1))
    shares = np.linspace(0.3, 1, _FEW_RANKS - 2)
    return sorted({*np.rint(shares * m).astype(int).tolist(), m - 1, m - 2})


def _last_near(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last integer in [low, high] at which `holds` is true, as it is at low.

    It is looked for in growing steps, for it is close as a rule.
    """
    step = 1
    while low + step <= high and holds(low + step):
        low, step = low + step, 2 * step
    return last_integer(holds, low + 1, min(low + step - 1, high))


def price_of(settings: Settings) -> Price:
    """Return what a test input may cost under these settings."""
    budget = settings.passes
    limit = float(min(budget, Fraction(MAX_COUNT))) if isinstance(budget, Fraction) else None
    return Price(settings.stops_early, limit if settings.stops_early else None)


def best_rule(setups: Sequence[Setup], price: Price) -> Rule:
    """Return the best rule that is valid in one of the setups."""
    return min((choose_rule(setup, price) for setup in setups), key=lambda rule: rule.cost(price))


@lru_cache(256)
def choose_rule(setup: Setup, price: Price) -> Rule:
    """Return the best rule for a setup and a price."""
    if not price.early:
        return Search(setup, price).best()
    found = _of_fewer_draws(setup, price, min(MOST_EARLY_DRAWS, setup.m_test))
    budget = price.passes
    if budget is None or budget >= setup.m_test or found.cost(price) < _OVER_BUDGET:
        return found
    # The search can miss what is useful within the budget; so few draws keep to it for certain.
    few = min(int(budget), MOST_EARLY_DRAWS)
    return min(found, _of_fewer_draws(setup, price, few), key=lambda rule: rule.cost(price))


def _of_fewer_draws(setup: Setup, price: Price, most: int) -> Rule:
    """Return the best rule that needs no more than so many of the m' draws."""
    found = Search(replace(setup, m_test=most), price).best()
    if most == setup.m_test:
        return found
    if found.is_trivial:
        return replace(found, test=replace(found.test, m_test=setup.m_test))
    spread = found.test.spread or _SPREADS[0]  # a single draw decides by any spread below 1
    test = replace(found.test, spread=spread, spare=setup.m_test - most)
    return replace(found, test=test)
