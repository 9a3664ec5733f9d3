"""Combinators against small worlds, enumerated in exact arithmetic, with forms that are wrong.

A world has a few outcomes with dyadic probabilities, which are exact doubles. The certificate of a
pair of laws is their Neyman-Pearson bound; the truth about a combination is the bound of the laws
that it stands for. Each test also tries a form that looks right, and must find worlds where it is
unsafe.
"""

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest

from bincp import Certificate
from bincp.certificates import (
    compose,
    from_privacy,
    from_tradeoff,
    hierarchical,
    mixture,
    product,
    repeat,
)
from support import least, most

Law = Sequence[Fraction]
ERROR = Fraction(1, 10**12)
WORLDS = pytest.mark.parametrize(
    "worlds", [200, pytest.param(3000, marks=pytest.mark.slow)], ids=["some", "many"]
)


def law(rng: random.Random, n: int, parts: int = 16) -> Law:
    """Return a random law of n outcomes in parts of 1/16, often with zeros."""
    cuts = sorted(rng.randint(0, parts) for _ in range(n - 1))
    return [Fraction(b - a, parts) for a, b in itertools.pairwise([0, *cuts, parts])]


def pair(clean: Law, perturbed: Law) -> Certificate:
    return Certificate.from_regions([float(m) for m in clean], [float(m) for m in perturbed])


def probabilities(rng: random.Random) -> list[Fraction]:
    return [Fraction(0), Fraction(1), *(Fraction(rng.randint(1, 63), 64) for _ in range(2))]


class Tally:
    """Count how often bounds are exact, and how often a wrong form is unsafe."""

    def __init__(self) -> None:
        self.equal = self.compared = self.refuted = 0

    def lower(self, value: float, true: Fraction, *, tight: bool = False) -> None:
        self._add(true - Fraction(value), tight)

    def upper(self, value: float, true: Fraction, *, tight: bool = False) -> None:
        self._add(Fraction(value) - true, tight)

    def _add(self, slack: Fraction, tight: bool) -> None:
        assert slack >= 0
        self.compared += 1
        self.equal += slack <= ERROR
        assert not tight or slack <= ERROR

    def wrong(self, excess: Fraction) -> None:
        self.refuted += excess > ERROR


def check_pair(
    tally: Tally,
    made: Certificate,
    laws: tuple[Law, Law],
    p: Fraction,
    *,
    tight: bool = False,
) -> None:
    clean, perturbed = laws
    tally.lower(made.lower(float(p)), least(clean, perturbed, p), tight=tight)
    tally.upper(made.upper(float(p)), most(perturbed, clean, p), tight=tight)


@WORLDS
def test_one_change_after_another(worlds: int) -> None:
    rng, tally, upper = random.Random(1), Tally(), Tally()
    for _ in range(worlds):
        n = rng.choice([2, 3, 4])
        x, x1, x2 = (law(rng, n) for _ in range(3))
        first, second = pair(x, x1), pair(x1, x2)
        made = compose(first, second)
        for p in probabilities(rng):
            check_pair(tally, made, (x, x2), p)
            swapped = Fraction(first.lower(second.lower(float(p))))
            tally.wrong(swapped - least(x, x2, p))
            upper.wrong(most(x2, x, p) - Fraction(second.upper(first.upper(float(p)))))
    assert tally.refuted > 0
    assert upper.refuted > 0
    assert tally.equal > tally.compared / 4


def words(
    noise: Sequence[Law], x: Sequence[int], q: Fraction, shown: bool
) -> dict[object, Fraction]:
    """Return the law of x where each element is selected with probability q, then smoothed."""
    made: dict[object, Fraction] = {(): Fraction(1)}
    for value in x:
        step: dict[object, Fraction] = {}
        for word, mass in made.items():
            unselected = (value, False) if shown else value
            outcomes = [(unselected, 1 - q)]
            outcomes += [((y, True) if shown else y, q * m) for y, m in enumerate(noise[value])]
            for outcome, share in outcomes:
                longer = (*word, outcome)  # type: ignore[misc]
                step[longer] = step.get(longer, Fraction(0)) + mass * share
        made = step
    return made


def aligned(one: dict[object, Fraction], other: dict[object, Fraction]) -> tuple[Law, Law]:
    keys = sorted({*one, *other}, key=repr)
    zero = Fraction(0)
    return [one.get(key, zero) for key in keys], [other.get(key, zero) for key in keys]


@WORLDS
def test_noise_in_two_levels(worlds: int) -> None:
    rng, tally, hidden = random.Random(2), Tally(), Tally()
    for _ in range(worlds):
        values, r = rng.choice([2, 3]), rng.choice([1, 2])
        noise = [law(rng, values, 8) for _ in range(values)]
        q = Fraction(rng.randint(0, 4), 4)
        x = [rng.randrange(values) for _ in range(r)]
        attacked = [rng.choice([v for v in range(values) if v != value]) for value in x]
        inner = aligned(*(words(noise, word, Fraction(1), False) for word in (x, attacked)))
        part = pair(*inner)
        for shown, count in ((True, tally), (False, hidden)):
            laws = aligned(*(words(noise, word, q, shown) for word in (x, attacked)))
            made = hierarchical(part, float(q), r, shown=shown)
            for p in probabilities(rng):
                check_pair(count, made, laws, p, tight=shown)
                w = q**r
                split = w * Fraction(part.lower(float(p))) + (1 - w) * p
                count.wrong(split - least(*laws, p))
    assert tally.refuted > 0
    assert hidden.refuted > 0
    assert hidden.equal < hidden.compared


def outer(one: Law, other: Law) -> Law:
    return [a * b for a in one for b in other]


@WORLDS
def test_two_parts_attacked_together(worlds: int) -> None:
    rng, tally, orders = random.Random(3), Tally(), Tally()
    for _ in range(worlds):
        (a, b), (c, d) = ([law(rng, 3) for _ in range(2)] for _ in range(2))
        first, second = pair(a, b), pair(c, d)
        made, laws = product(first, second), (outer(a, c), outer(b, d))
        for p in probabilities(rng):
            check_pair(tally, made, laws, p, tight=True)
            true = least(*laws, p)
            for one, other in ((first, second), (second, first)):
                orders.lower(other.lower(one.lower(float(p))), true)
            alone = min(Fraction(first.lower(float(p))), Fraction(second.lower(float(p))))
            tally.wrong(alone - true)
    assert tally.refuted > 0
    assert orders.equal < orders.compared  # so that the regions are worth it


@WORLDS
def test_schemes_that_are_drawn(worlds: int) -> None:
    rng, tally, upper = random.Random(4), Tally(), Tally()
    for _ in range(worlds):
        n = rng.choice([2, 3])
        weights = law(rng, n, 8)
        laws = [(law(rng, 3), law(rng, 3)) for _ in range(n)]
        parts = [pair(*both) for both in laws]
        made = mixture(parts, weights)
        whole = tuple(
            [w * m for w, both in zip(weights, laws, strict=True) for m in both[side]]
            for side in (0, 1)
        )
        for p in probabilities(rng):
            check_pair(tally, made, (whole[0], whole[1]), p, tight=True)
            mean = sum(
                w * Fraction(part.lower(float(p))) for w, part in zip(weights, parts, strict=True)
            )
            tally.wrong(mean - least(*whole, p))
            mean = sum(
                w * Fraction(part.upper(float(p))) for w, part in zip(weights, parts, strict=True)
            )
            upper.wrong(most(whole[1], whole[0], p) - mean)
    assert tally.refuted > worlds / 4
    assert upper.refuted > worlds / 4


@WORLDS
def test_a_trade_off_function_bounds_every_pair_of_laws_with_it(worlds: int) -> None:
    """f comes from one pair; each garbled version of the pair has at least f."""
    rng, tally = random.Random(5), Tally()
    for _ in range(worlds):
        clean, perturbed = law(rng, 3), law(rng, 3)
        lines = tangents(clean, perturbed)
        if not lines:
            continue
        made = from_tradeoff([(float(b), float(s)) for b, s in lines])
        channel = [law(rng, 2, 8) for _ in clean]
        garbled = tuple(
            [sum(m * row[y] for m, row in zip(masses, channel, strict=True)) for y in range(2)]
            for masses in (clean, perturbed)
        )
        for p in probabilities(rng):
            check_pair(tally, made, (clean, perturbed), p, tight=True)
            check_pair(tally, made, (garbled[0], garbled[1]), p)
    assert tally.compared > worlds


def tangents(clean: Law, perturbed: Law) -> list[tuple[Fraction, Fraction]]:
    """Return the lines of f(a) = least(1 - a); none where doubles do not hold them exactly."""
    pieces = sorted((q / c, c) for c, q in zip(clean, perturbed, strict=True) if c > 0)
    p = value = Fraction(0)
    lines = []
    for slope, width in pieces:  # value + slope (p' - p) with p' = 1 - a
        lines.append((value + slope * (1 - p), -slope))
        p, value = p + width, value + slope * width
    exact = all(Fraction(float(part)) == part for line in lines for part in line)
    return lines if exact else []


@WORLDS
def test_changes_one_after_the_other_under_privacy(worlds: int) -> None:
    """Chains of randomised response with ratios of 2: the iterated bound holds and is attained."""
    rng, tally, group = random.Random(6), Tally(), Tally()
    epsilon, slack = 0.6931471805599453, Fraction(1, 10**12)  # log 2, rounded down
    for _ in range(worlds // 10):
        r, delta = rng.choice([1, 2, 3]), Fraction(rng.randint(0, 8), 64)
        made = repeat(from_privacy(epsilon, float(delta)), r)
        for p in probabilities(rng):
            true = p
            for _ in range(r):
                true = max(Fraction(0), (true - delta) / 2, 1 - delta - 2 * (1 - true))
            assert abs(Fraction(made.lower(float(p))) - true) <= slack
            whole = min(delta * (2**r - 1), Fraction(1))
            grouped = max(Fraction(0), (p - whole) / 2**r, 1 - whole - 2**r * (1 - p))
            group.lower(float(grouped), true + slack)
        chain = response(rng, r, delta)
        for p in probabilities(rng):
            tally.lower(made.lower(float(p)), least(chain[0], chain[-1], p) + slack)
    assert group.equal < group.compared


def response(rng: random.Random, r: int, delta: Fraction) -> list[Law]:
    """Return a chain of laws of two outcomes; neighbours are private."""
    a = Fraction(rng.randint(0, 64), 64)
    chain = [[a, 1 - a]]
    for _ in range(r):
        low = max(Fraction(0), (a - delta) / 2, 1 - delta - 2 * (1 - a))
        high = min(Fraction(1), 2 * a + delta, 1 - (1 - a - delta) / 2)
        a = rng.choice([low, high, (low + high) / 2])
        chain.append([a, 1 - a])
    return chain
