"""Shifts against exact values, and against pairs of laws whose distance is computed exactly."""

import itertools
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

import bincp
from bincp import balls, shifts, smoothing
from support import golden

EXACT = golden("shifts")
KINDS = {
    "TotalVariation": shifts.TotalVariation,
    "ChiSquared, E_P (dQ/dP - 1)^2 <= rho": lambda rho: chi2(rho, "calibration"),
    "ChiSquared, E_Q (dP/dQ - 1)^2 <= rho": lambda rho: chi2(rho, "test"),
    "KL, E_Q log(dQ/dP) <= rho": shifts.KL,
    "LikelihoodRatio(1/G, G)": lambda g: shifts.LikelihoodRatio(1 / Fraction(g), g),
    "LikelihoodRatio(0, G)": lambda g: shifts.LikelihoodRatio(0, g),
    "LikelihoodRatio(1/2, G)": lambda g: shifts.LikelihoodRatio("1/2", g),
}
PRINTED = Fraction(1, 10**24)  # the values have 25 digits
each_kind = pytest.mark.parametrize("kind", KINDS)


def chi2(rho, reference):
    return shifts.ChiSquared(rho, reference=reference)


def test_every_kind_of_the_exact_values_is_checked():
    assert set(KINDS) == set(EXACT) - {"about"}


@each_kind
def test_the_least_probability_is_the_exact_one(kind):
    for size, p, exact in EXACT[kind]["g"]:
        value = KINDS[kind](size).lower(p)
        assert Fraction(exact) - Fraction(1, 10**18) <= value <= Fraction(exact) + PRINTED


@each_kind
def test_what_is_required_is_the_exact_inverse(kind):
    for size, q, exact in EXACT[kind]["inverse"]:
        value = KINDS[kind](size).required(q)
        if exact is None:
            assert value is None
        else:
            assert Fraction(exact) - PRINTED <= value <= Fraction(exact) + Fraction(1, 10**18)


@each_kind
def test_the_level_is_the_exact_one(kind):
    for size, alpha, exact in EXACT[kind]["alpha"]:
        value = KINDS[kind](size).level(alpha)
        wanted = Fraction(exact or 0)
        assert wanted - Fraction(1, 10**18) <= value <= wanted + PRINTED


def test_rational_levels_are_exact():
    """A rank hangs on the last bit: .1 - .05 is below .05 in floats."""
    assert shifts.TotalVariation(0.05).level(0.1) == Fraction(1, 20)
    assert shifts.LikelihoodRatio(0.5, 1.2).level("0.3") == Fraction(1, 4)
    assert chi2("0.01", "calibration").lower("0.5") == Fraction(45, 100)
    assert shifts.KL(0).level("0.1") == Fraction(1, 10)


# ---- pairs of laws ----------------------------------------------------------------------------


def kl(q, p):
    with localcontext() as context:
        context.prec = 50
        terms = [
            Decimal(b.numerator)
            / b.denominator
            * (Decimal((b / a).numerator) / (b / a).denominator).ln()
            for a, b in zip(p, q, strict=True)
            if b
        ]
        return Fraction(sum(terms))


def distances(p, q):
    """The least shifts around P that hold Q, those that are finite."""
    ratios = [b / a for a, b in zip(p, q, strict=True) if a]
    yield shifts.TotalVariation(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    if all(a for a, b in zip(p, q, strict=True) if b):
        mean = sum(a * (b / a - 1) ** 2 for a, b in zip(p, q, strict=True) if a)
        yield chi2(mean, "calibration")
        yield shifts.KL(kl(q, p) + Fraction(1, 10**40))
        yield shifts.LikelihoodRatio(min(ratios), max(ratios))
        yield shifts.LikelihoodRatio(0, max(ratios))
    if all(b for a, b in zip(p, q, strict=True) if a):
        yield chi2(sum(b * (a / b - 1) ** 2 for a, b in zip(p, q, strict=True) if b), "test")


def random_law(rng, size):
    parts = [rng.choice([0, 1, 1, 2, 5, 20]) for _ in range(size)]
    parts[rng.randrange(size)] += 1
    return [Fraction(part, sum(parts)) for part in parts]


def test_no_event_of_a_random_pair_of_laws_has_less():
    rng = random.Random(0)
    seen = 0
    for world in range(400):
        size = rng.randint(2, 5)
        p, q = random_law(rng, size), random_law(rng, size)
        for shift in distances(p, q):
            if isinstance(shift, shifts.KL) and world % 10:
                continue  # some milliseconds for each event
            for chosen in itertools.product([0, 1], repeat=size):
                before = sum(a for a, c in zip(p, chosen, strict=True) if c)
                after = sum(b for b, c in zip(q, chosen, strict=True) if c)
                assert after >= shift.lower(before), shift
                needed = shift.required(after)
                assert needed is None or needed >= before or shift.lower(needed) >= after
                seen += 1
    assert seen > 5000


@each_kind
def test_a_law_of_the_shift_attains_the_least_probability(kind):
    """Q has g(b) in A and the rest outside, spread as P is: no shift could be smaller."""
    for size, p, _ in EXACT[kind]["g"]:
        shift, b = KINDS[kind](size), Fraction(p)
        g = shift.lower(p)
        if not 0 < g < 1 or not 0 < b < 1:
            continue
        least = next(d for d in distances([b, 1 - b], [g, 1 - g]) if _same(d, shift))
        if isinstance(shift, shifts.LikelihoodRatio):
            assert shift.low <= least.low
            assert shift.high >= least.high
            assert shift.low == least.low or shift.high == least.high
        else:
            slack = Fraction(1, 10**8) * shift.rho + Fraction(1, 10**15)
            assert shift.rho - slack <= least.rho <= shift.rho + slack


def _same(one, other):
    same = getattr(one, "reference", None) == getattr(other, "reference", None)
    return type(one) is type(other) and same


def test_mass_where_the_other_law_has_none_is_counted():
    """Chi-squared (test) with mass of Q outside P: at b = 1 there is 1 / (1 + rho), not 1."""
    p, q = [Fraction(1), Fraction(0)], [Fraction(1, 2), Fraction(1, 2)]
    (shift,) = [d for d in distances(p, q) if isinstance(d, shifts.ChiSquared)]
    assert (shift.reference, shift.rho) == ("test", 1)
    assert shift.lower(1) == Fraction(1, 2) < 1  # b - sqrt(rho b (1 - b)) is 1 there
    assert shift.required("0.5") == 1
    assert shift.required("0.51") is None


def test_the_two_directions_of_chi_squared_differ_both_ways():
    one, other = chi2("0.1", "calibration"), chi2("0.1", "test")
    assert one.lower("0.9") > other.lower("0.9")
    assert one.lower("0.05") == 0 < other.lower("0.05")


@pytest.mark.parametrize(
    "shift",
    [
        shifts.TotalVariation("0.05"),
        chi2("0.2", "calibration"),
        chi2("0.05", "test"),
        shifts.KL("0.05"),
        shifts.LikelihoodRatio("0.8", "1.3"),
        shifts.LevyProkhorov(balls.L2(0.1), "0.05"),
    ],
)
def test_bounds_are_convex_and_do_not_fall_and_level_is_their_inverse(shift):
    grid = [Fraction(i, 200) for i in range(201)]
    values = [shift.lower(p) for p in grid]
    steps = [b - a for a, b in itertools.pairwise(values)]
    assert values[0] == 0
    assert all(0 <= v <= p for v, p in zip(values, grid, strict=True))
    assert all(step >= 0 for step in steps)
    assert all(b >= a - Fraction(1, 10**17) for a, b in itertools.pairwise(steps))
    level = shift.level("0.1")
    assert 0 < level < Fraction(1, 10)
    assert shift.lower(1 - level) >= Fraction(9, 10) - Fraction(1, 10**17)
    assert shift.lower(1 - level - Fraction(1, 10**9)) < Fraction(9, 10)


def test_huge_and_tiny_sizes():
    assert shifts.KL("1e300").level("0.1") == 0
    assert shifts.KL("1e-300").level("0.1") <= Fraction(1, 10)
    assert shifts.KL("1e-300").level("0.1") > Fraction(1, 10) - Fraction(1, 10**15)
    assert math.isclose(chi2("1e300", "calibration").lower(1), 1)
    assert chi2("1e-300", "test").level("0.1") > Fraction(1, 10) - Fraction(1, 10**140)
    assert shifts.LikelihoodRatio(0, "1e300").level("0.1") == Fraction(1, 10**301)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: shifts.TotalVariation(-0.1), r"`rho` must be in \[0, 1\], got -0.1"),
        (lambda: shifts.TotalVariation(1.1), r"`rho` must be in \[0, 1\], got 1.1"),
        (lambda: shifts.KL(-1), "`rho` must be at least 0, got -1"),
        (lambda: shifts.KL(math.inf), "`rho` must be a finite number, got inf"),
        (lambda: chi2(0.1, "Q"), "`reference` must be one of .* got 'Q'"),
        (lambda: shifts.LikelihoodRatio(0.5, 0.9), "`high` must be at least 1, got 0.9"),
        (lambda: shifts.LikelihoodRatio(1.5, 2), r"`low` must be in \[0, 1\], got 1.5"),
        (lambda: shifts.TotalVariation(0.1).lower(1.5), r"`p` must be in \[0, 1\], got 1.5"),
        (lambda: shifts.TotalVariation(0.1).level(1), r"`alpha` must be in \(0, 1\), got 1"),
    ],
)
def test_bad_values_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_bad_types_are_refused():
    with pytest.raises(TypeError, match="`rho` must be an int, float"):
        shifts.KL(None)
    with pytest.raises(TypeError, match=r"`ball` must be a ball, got 0.1"):
        shifts.LevyProkhorov(0.1, 0.1)
    with pytest.raises(TypeError, match="abstract"):
        shifts.Shift()


class Foreign(shifts.Shift):
    """A total variation of 1/10, but for what a test replaces."""

    def _lower(self, p):
        return max(p - Fraction(1, 10), Fraction(0))

    def _required(self, q):
        return q + Fraction(1, 10) if q <= Fraction(9, 10) else None


def test_a_shift_from_outside_is_as_good_as_that_of_bincp():
    own, other = shifts.TotalVariation("0.1"), Foreign()
    for p in (Fraction(0), Fraction(1, 20), Fraction(19, 20), Fraction(1)):
        assert other.lower(p) == own.lower(p)
        assert other.required(p) == own.required(p)
    assert other.level("0.3") == own.level("0.3") == Fraction(1, 5)


@pytest.mark.parametrize(
    ("replaced", "error", "message"),
    [
        ({"_lower": lambda _, p: float(p) - 0.1}, TypeError, "`_lower` of Foreign must return a F"),
        ({"_lower": lambda _, p: p + 1}, ValueError, r"`_lower` of Foreign must be in \[0, 1/2\]"),
        ({"_lower": lambda _, p: p - 1}, ValueError, r"must be in \[0, 1/2\].* got -1/2"),
        ({"_required": lambda _, q: float(q)}, TypeError, "`_required` of Foreign must return a F"),
        ({"_required": lambda _, q: q / 2}, ValueError, r"must be in \[1/2, 1\].* got 1/4"),
        ({"_required": lambda _, q: q + 1}, ValueError, r"must be in \[1/2, 1\].* got 3/2"),
    ],
)
def test_a_shift_from_outside_that_lowers_too_little_is_refused(replaced, error, message):
    other = type("Foreign", (Foreign,), replaced)()
    with pytest.raises(error, match=message):
        (other.lower if "_lower" in replaced else other.required)(Fraction(1, 2))


class Sized(Foreign):
    """No dataclass, though its base is one: it has no fields to be compared by."""

    def __init__(self, rho):
        object.__setattr__(self, "rho", rho)

    def _lower(self, p):
        return max(p - self.rho, Fraction(0))

    def _required(self, q):
        return q + self.rho if q + self.rho <= 1 else None


class Away(balls.Ball):
    """No dataclass either."""

    def __init__(self, r):
        object.__setattr__(self, "same", balls.L2(r))


def test_rules_for_shifts_without_fields_are_not_mixed_up():
    """Rules are kept by their settings, so settings that differ must not be equal."""
    certificate = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
    options = {"n": 40, "m": 16, "alpha": "0.2", "correction": "shared-draws"}
    sizes = [Fraction(i, 100) for i in (0, 10, 15)]
    counts = [
        [bincp.plan(certificate, shift=kind(size), **options).min_count for size in sizes]
        for kind in (Sized, shifts.TotalVariation)
    ]
    assert counts[0] == counts[1]
    assert counts[0][0] > counts[0][2]
    bincp.register(smoothing.Gaussian, Away)(lambda scheme, ball: bincp.certify(scheme, ball.same))
    options = {"n": 200, "m": 16, "p": "1/2"}
    counts = [
        [
            bincp.plan(certificate, shift=shifts.LevyProkhorov(kind(r), 0), **options).min_count
            for r in (0.01, 0.4)
        ]
        for kind in (Away, balls.L2)
    ]
    assert counts[0] == counts[1]
    assert counts[0][0] > counts[0][1]
