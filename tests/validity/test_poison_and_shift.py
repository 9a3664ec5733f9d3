"""Poison, shift and attacks together: exact coverage of worlds that are made as bad as can be.

A world has kinds of inputs. All have the same noise, of a few outcomes with a clean and an attacked
law, and each kind has scores of its own for the outcomes. So the least probability over the ball
is the Neyman-Pearson bound of the two laws, and everything is rational. The law of tau is that of
an order statistic; nothing is simulated.
"""

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy import special

import bincp
from bincp import balls, shifts, smoothing
from bincp.baselines import VanillaCP
from bincp.calibration._fixed_tau import setup_at_fixed_tau, tau_fixed_count
from bincp.calibration._label_test import LabelTest
from bincp.calibration._mixture import setups_of
from bincp.calibration._rank_proof import _holds, is_valid
from bincp.calibration._search import Price, best_rule, choose_rule
from support import golden, quiet

EXACT = golden("poisoning")
TOLERANCE = Fraction(2, 10**10)


@cache
def at_least(k, m, p):
    """P[Bin(m, p) >= k]."""
    return sum(math.comb(m, s) * p**s * (1 - p) ** (m - s) for s in range(k, m + 1))


@dataclass
class World:
    clean: list  # law of the outcomes of the noise
    attacked: list  # the same at the worst input
    shares: list  # of the kinds of inputs, under the law of calibration
    scores: list  # of each kind, for each outcome

    def levels(self):
        return sorted({s for row in self.scores for s in row})

    def hits(self, law, kind, tau):
        return sum(q for q, s in zip(law, self.scores[kind], strict=True) if s >= tau)

    def law_of_tau(self, n, j, m, t, seen):
        """The law of the j-th smallest of n clean thresholds; the scores are drawn from `seen`."""
        above = [
            sum(
                share * at_least(t, m, self.hits(seen, kind, tau))
                for kind, share in enumerate(self.shares)
            )
            for tau in self.levels()
        ]
        # tau reaches a level iff fewer than j thresholds are below it
        reach = [1 - at_least(j, n, 1 - share) for share in above] + [Fraction(0)]
        return [(tau, reach[i] - reach[i + 1]) for i, tau in enumerate(self.levels())], 1 - reach[0]

    def coverage(self, n, j, m, m_test, t, k, shift=None, seen=None):
        """The least coverage: the law of the test points is chosen after tau, then the attack.

        j is the rank over clean points: the adversary has turned the lowest ones into the highest.
        """
        law, below = self.law_of_tau(n, j, m, t, self.clean if seen is None else seen)
        assert below == 0  # the lowest level is reached by every score
        return sum(
            chance
            * least_mean(
                self.shares,
                [
                    at_least(k, m_test, self.hits(self.attacked, kind, tau))
                    for kind in range(len(self.shares))
                ],
                shift,
            )
            for tau, chance in law
        )


def least_mean(shares, values, shift):
    """The least mean of values over the laws of a shift around the shares."""
    order = sorted(range(len(shares)), key=lambda i: values[i])
    if shift is None:
        return sum(a * v for a, v in zip(shares, values, strict=True))
    if isinstance(shift, shifts.TotalVariation):  # the mass goes where nothing is accepted
        left, total = max(1 - shift.rho, Fraction(0)), Fraction(0)
        for i in order:
            taken = min(shares[i], left)
            total, left = total + taken * values[i], left - taken
        return total
    laws = [shift.low * share for share in shares]
    left = 1 - sum(laws)
    for i in order:
        more = min((shift.high - shift.low) * shares[i], left)
        laws[i], left = laws[i] + more, left - more
    return sum(a * v for a, v in zip(laws, values, strict=True))


def random_law(rng, size):
    parts = [rng.choice([0, 1, 1, 2, 4, 9]) for _ in range(size)]
    parts[rng.randrange(size)] += 1
    return [Fraction(part, sum(parts)) for part in parts]


def random_scores(rng, outcomes, kinds):
    """Scores: most kinds depend on the noise, each around a height of its own, and some do not."""
    steps = [rng.choice([0, 1, 3, 100]) for _ in range(outcomes)]
    heights = rng.sample(range(4 * kinds), kinds)
    return [[height + (0 if rng.random() < 0.2 else step) for step in steps] for height in heights]


def random_world(rng):
    outcomes, kinds = rng.randint(2, 4), rng.choice([1, 3, 10, 25])
    clean, attacked = random_law(rng, outcomes), random_law(rng, outcomes)
    mixed = [(a + b) / 2 for a, b in zip(clean, attacked, strict=True)]
    return World(clean, mixed, random_law(rng, kinds), random_scores(rng, outcomes, kinds))


def certificate_of(world):
    return bincp.Certificate.from_regions(
        [float(p) for p in world.clean], [float(p) for p in world.attacked]
    )


SHARES_OF_BAD = [Fraction(i, 1000) for i in (80, 85, 180, 185)]  # of points that reach no tau
SHIFTS = [
    None,
    shifts.TotalVariation("0.03"),
    shifts.TotalVariation("0.1"),
    shifts.LikelihoodRatio(0, "1.2"),
    shifts.LikelihoodRatio("0.5", "1.5"),
    shifts.LikelihoodRatio("0.9", "1.1"),
]


def rank_rule(certificate, n, m, m_test, alpha, p, **departures):
    """t, the rank of tau, k of a p-fixed rule."""
    made = bincp.plan(certificate, n=n, m=m, n_test_samples=m_test, alpha=alpha, p=p, **departures)
    return made.success_rank, made.rank, made.min_count


@pytest.mark.slow
def test_no_adversary_gets_below_the_level():
    """And those who leave out the poison, the shift or the attack do get below it."""
    rng = random.Random(1)
    refuted = {"poison": 0, "shift": 0, "attack": 0}
    checked = 0
    for _ in range(500):
        world = random_world(rng)
        n, m, m_test = rng.choice([5, 9, 19, 40]), rng.randint(1, 4), rng.randint(1, 4)
        alpha = rng.choice([Fraction(1, 10), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2)])
        p = Fraction(rng.randint(1, m), m)
        b, shift = rng.choice([0, 0, 1, 2, 3]), rng.choice(SHIFTS)
        certificate = certificate_of(world)
        options = (n, m, m_test, alpha, p)
        t, rank, k = quiet(rank_rule, certificate, *options, poisoned=b, shift=shift)
        if not k:
            continue
        checked += 1
        wanted = 1 - alpha - TOLERANCE
        assert world.coverage(n, rank + b, m, m_test, t, k, shift) >= wanted
        if b:  # a rule without poison has the rank j, and the adversary raises it by b
            _, j, other = quiet(rank_rule, certificate, *options, shift=shift)
            refuted["poison"] += world.coverage(n, j + b, m, m_test, t, other, shift) < wanted
        if shift:
            _, j, other = quiet(rank_rule, certificate, *options, poisoned=b)
            refuted["shift"] += world.coverage(n, j + b, m, m_test, t, other, shift) < wanted
        identity = bincp.Certificate.from_regions([1.0], [1.0])
        _, j, other = quiet(rank_rule, identity, *options, poisoned=b, shift=shift)
        refuted["attack"] += world.coverage(n, j + b, m, m_test, t, other, shift) < wanted
    assert checked > 100
    assert all(found > 2 for found in refuted.values()), refuted


def coverage_of_plan(world, made, b, shift):
    """The exact least coverage of any rule, with ranks or losses, counts or boundaries."""
    if made.losses is None:
        law, _ = world.law_of_tau(made.n, made.rank + b, made.m, made.success_rank, world.clean)
    else:
        law = law_of_tau_by_losses(world, made, b)
    total = 1 - sum(chance for _, chance in law)  # tau = -inf accepts all
    for tau, chance in law:
        accepted = []
        for kind in range(len(world.shares)):
            p = world.hits(world.attacked, kind, tau)
            if made.boundaries is None:
                accepted.append(at_least(made.min_count, made.n_test_samples, p))
            else:
                accepted.append(Fraction(made.boundaries.acceptance(float(p))))
        total += chance * least_mean(world.shares, accepted, shift)
    return total


def law_of_tau_by_losses(world, made, b):
    """The adversary has turned the b points with the highest losses into the best ones."""
    n, m, losses = made.n, made.m, made.losses
    budget = made.settings.level * (n + 1) * 2**36 - (b + 1) * losses[0]
    reach = []
    for tau in world.levels():
        hits = [
            sum(
                share * math.comb(m, s) * p**s * (1 - p) ** (m - s)
                for share, p in zip(
                    world.shares,
                    [world.hits(world.clean, k, tau) for k in range(len(world.shares))],
                    strict=True,
                )
            )
            for s in range(m + 1)
        ]
        reach.append(
            sum(
                chance
                for numbers, chance in multinomial(n, hits)
                if seen_total(numbers, losses, b) <= budget
            )
        )
    reach.append(Fraction(0))
    return [(tau, reach[i] - reach[i + 1]) for i, tau in enumerate(world.levels())]


def multinomial(n, shares):
    """All numbers of points with each count, and their probabilities."""
    for bars in combinations(range(n + len(shares) - 1), len(shares) - 1):
        ends = [-1, *bars, n + len(shares) - 1]
        numbers = [b - a - 1 for a, b in pairwise(ends)]
        ways = math.factorial(n) // math.prod(map(math.factorial, numbers))
        yield numbers, ways * math.prod(q**x for q, x in zip(shares, numbers, strict=True))


def seen_total(numbers, losses, b):
    """The n - b largest losses of those seen: the b largest of the clean ones are gone."""
    ordered = [w for w, x in zip(losses, numbers, strict=True) for _ in range(x)]
    return sum(ordered[b:])


@pytest.mark.slow
def test_no_adversary_gets_below_the_level_of_the_rules_that_are_chosen():
    """Ranks or losses, and all draws counted or not, as the library decides."""
    rng = random.Random(3)
    kinds = set()
    for _ in range(150):
        world = random_world(rng)
        b, shift = rng.choice([0, 1, 2]), rng.choice(SHIFTS)
        n, m, m_test = rng.choice([9, 19]), rng.randint(1, 3), rng.randint(1, 4)
        alpha = rng.choice([Fraction(1, 5), Fraction(1, 3), Fraction(1, 2)])
        made = bincp.plan(
            certificate_of(world),
            n=n,
            m=m,
            n_test_samples=m_test,
            alpha=alpha,
            poisoned=b,
            shift=shift,
            passes=rng.choice([None, "auto"]),
        )
        if not made.min_count:
            continue
        kinds.add((made.losses is None, made.boundaries is None, bool(b), shift is None))
        assert coverage_of_plan(world, made, b, shift) >= 1 - alpha - TOLERANCE
    assert len(kinds) > 10


@pytest.mark.slow
def test_attacked_calibration_needs_the_bound_of_the_inverted_ball_first():
    """c(d(q)), not c(q): the adversary raises the scores of the calibration points before.

    Its law of the outcomes is any that the inverted pair allows: here the world in which the clean
    law is the attacked one of another input.
    """
    rng = random.Random(2)
    refuted, checked = {"c": 0, "c of c": 0}, 0
    for _ in range(400):
        scheme = (Fraction(rng.choice([1, 5, 20]), 100), Fraction(rng.choice([20, 60, 80]), 100))
        additions, deletions = rng.choice([(1, 0), (0, 1), (1, 1), (0, 2)])
        clean, attacked, seen = flips(scheme, additions, deletions)
        kinds = rng.choice([1, 3, 10])
        heights = rng.sample(range(4 * kinds), kinds)
        raised, lowered = rng.choice([0, 1, 5, 100]), rng.choice([0, 1, 5, 100])
        steps = [
            raised * sum(outcome[1]) - lowered * sum(outcome[0])
            for outcome in moved(additions, deletions)
        ]
        scores = [[height + step for step in steps] for height in heights]
        world = World(clean, attacked, random_law(rng, kinds), scores)
        certificate = bincp.certify(
            smoothing.SparseFlip(float(scheme[0]), float(scheme[1])),
            balls.Flips(additions, deletions),
        )
        n, m, m_test = rng.choice([9, 19]), rng.randint(1, 3), rng.randint(1, 3)
        options = (n, m, m_test, rng.choice([Fraction(1, 5), Fraction(1, 2)]), Fraction(1))
        wanted = 1 - options[3] - TOLERANCE
        t, rank, k = quiet(rank_rule, certificate, *options, attacked_calibration=True)
        if k:
            checked += 1
            assert world.coverage(n, rank, m, m_test, t, k, seen=seen) >= wanted
        for name, wrong in (("c", certificate), ("c of c", twice(certificate))):
            t, rank, k = quiet(rank_rule, wrong, *options)
            coverage = world.coverage(n, rank, m, m_test, t, k, seen=seen) if k else 1
            refuted[name] += coverage < wanted
    assert checked > 100
    assert all(found > 5 for found in refuted.values()), refuted


@pytest.mark.slow
def test_labels_that_are_wrong_at_a_rate_cost_no_coverage_of_true_ones():
    """A share e of the calibration scores is that of other labels, as high as the noise likes."""
    rng = random.Random(7)
    refuted = checked = 0
    for _ in range(150):
        world = random_world(rng)
        e = rng.choice([Fraction(1, 20), Fraction(1, 5)])
        high = max(range(len(world.shares)), key=lambda kind: min(world.scores[kind]))
        seen = [(1 - e) * share for share in world.shares]
        seen[high] += e
        n, m, m_test = rng.choice([9, 19, 40]), rng.randint(1, 4), rng.randint(1, 4)
        alpha, p = rng.choice([Fraction(1, 5), Fraction(1, 2)]), Fraction(rng.randint(1, m), m)
        certificate = certificate_of(world)
        observed = World(world.clean, world.attacked, seen, world.scores)
        wanted = 1 - alpha - TOLERANCE
        for noise in (("rate", e), None):
            t, j, k = quiet(rank_rule, certificate, n, m, m_test, alpha, p, label_noise=noise)
            if not k:
                continue
            law, _ = observed.law_of_tau(n, j, m, t, world.clean)
            coverage = sum(
                chance
                * sum(
                    share * at_least(k, m_test, world.hits(world.attacked, kind, tau))
                    for kind, share in enumerate(world.shares)
                )
                for tau, chance in law
            )
            if noise is None:
                refuted += coverage < wanted
            else:
                checked += 1
                assert coverage >= wanted
    assert checked > 40
    assert refuted > 2


def coverage_at_fixed_tau(world, tau, numbers, adversary, reckoned):
    """k depends on the observed t, which the adversary has raised to that of rank j.

    ``adversary`` and ``reckoned`` are the poisoned points and the shift that there are, and those
    that the rule is made for.
    """
    n, m, m_test, alpha = numbers
    b, shift = adversary
    options = {"poisoned": reckoned[0], "shift": reckoned[1], "tau": tau, "p": None}
    setup = setup_at_fixed_tau(setups(certificate_of(world), n, m, alpha, m_test=m_test, **options))
    if not setup.top_rank:
        return Fraction(1)
    kinds = range(len(world.shares))
    clean = [world.hits(world.clean, kind, tau) for kind in kinds]
    attacked = [world.hits(world.attacked, kind, tau) for kind in kinds]
    reach = [
        1
        - at_least(
            setup.top_rank + b,
            n,
            1 - sum(a * at_least(t, m, p) for a, p in zip(world.shares, clean, strict=True)),
        )
        for t in range(m + 2)
    ]
    total = Fraction(0)
    for t in range(m + 1):
        k = tau_fixed_count(setup, t, setup.top_rank)[0]
        accepted = [at_least(k, m_test, p) for p in attacked]
        total += (reach[t] - reach[t + 1]) * least_mean(world.shares, accepted, shift)
    return total


@pytest.mark.slow
def test_no_adversary_gets_below_the_level_of_a_fixed_tau():
    rng = random.Random(6)
    refuted = {"poison": 0, "shift": 0}
    checked = 0
    certain = [World([Fraction(1)], [Fraction(1)], [q, 1 - q], [[0], [9]]) for q in SHARES_OF_BAD]
    for world in [*certain, *(random_world(rng) for _ in range(150))]:
        tau = 9 if world in certain else rng.choice(world.levels())
        b, shift = rng.choice([0, 1, 4, 8]), rng.choice(SHIFTS)
        numbers = rng.choice([19, 40]), rng.randint(1, 4), rng.randint(1, 4), Fraction(1, 3)
        if world in certain:
            b, shift, numbers = 0, shifts.TotalVariation("0.1"), (400, 1, 1, Fraction(1, 5))
        found = coverage_at_fixed_tau(world, tau, numbers, (b, shift), (b, shift))
        checked += found < 1
        wanted = 1 - numbers[3] - TOLERANCE
        assert found >= wanted
        for name, reckoned in (("poison", (0, shift)), ("shift", (b, None))):
            if reckoned != (b, shift):
                wrong = coverage_at_fixed_tau(world, tau, numbers, (b, shift), reckoned)
                refuted[name] += wrong < wanted
    assert checked > 50
    assert all(refuted.values()), refuted


def twice(certificate):
    return bincp.Certificate.from_bounds(lambda p: certificate.lower(certificate.lower(p)))


def flips(scheme, additions, deletions):
    """Laws of the bits that differ: at the clean input, the attacked one, one calibrated on.

    Test and calibration inputs use up the whole ball each, on bits of their own.
    """
    plus, minus = scheme
    before = [0] * additions + [1] * deletions
    after = [1] * additions + [0] * deletions
    laws = []
    for bits in (before + before, after + before, before + after):
        one = [1 - minus if bit else plus for bit in bits]
        laws.append(
            [
                math.prod(q if o else 1 - q for q, o in zip(one, outcome, strict=True))
                for outcome in product([0, 1], repeat=len(bits))
            ]
        )
    return laws


def moved(additions, deletions):
    """For each outcome, which bits of either half read as after the attack."""
    after = [1] * additions + [0] * deletions
    size = len(after)
    for outcome in product([0, 1], repeat=2 * size):
        halves = outcome[:size], outcome[size:]
        yield [[bit == a for bit, a in zip(half, after, strict=True)] for half in halves]


# ---- ranks ------------------------------------------------------------------------------------


def setups(certificate, n, m, alpha, *, m_test=None, **options):
    rule = bincp.BinCP(certificate, alpha=alpha, **{"p": 1, **options})
    return setups_of(certificate, rule._settings, n, m, m_test or m)


IDENTITY = bincp.certify(smoothing.Gaussian(1.0), balls.L2(0))


@pytest.mark.parametrize("row", EXACT["replaced"], ids=str)
def test_the_rank_and_the_share_of_the_exact_values(row):
    n, alpha, b, j, rank, share = row
    (setup,) = setups(IDENTITY, n, 1, alpha, poisoned=b)
    top = math.floor(Fraction(alpha) * (n + 1))
    assert setup.top_rank == max(top - b, 0)
    if rank:
        assert setup.share(rank) == Fraction(share) == Fraction(j, n + 1)


@pytest.mark.parametrize("row", EXACT["largest_b"], ids=str)
def test_the_largest_number_of_poisoned_points_with_a_useful_rule(row):
    n, alpha, b = row

    def useful(b):
        (setup,) = setups(IDENTITY, n, 1, alpha, poisoned=b)
        return best_rule([setup], Price(early=False)).test.k > 0

    if b is None:
        assert not useful(0)
    else:
        assert useful(b)
        assert not useful(b + 1)


def worst_coverage(n, j, b):
    """The least coverage if b of n points get the best values for an adversary who sees them all.

    By enumeration: every place of the test point among n + 1, every choice of b points, and every
    place and tie for each.
    """
    covered = 0
    for place in range(n + 1):
        test = 2 * place + 1
        points = [2 * i + 1 for i in range(n + 1) if i != place]
        accepted = True
        for values in product(range(2 * n + 3), repeat=b):
            for kept in combinations(points, n - b):
                ordered = sorted([*kept, *values])
                tau = ordered[j - 1] if j else -1
                accepted = accepted and test >= tau
        covered += accepted
    return Fraction(covered, n + 1)


@pytest.mark.parametrize("row", [r for r in EXACT["enumerated"] if r[0] <= 6], ids=str)
def test_the_worst_coverage_by_enumeration(row):
    n, j, b, rank, guaranteed, unmodified = row
    assert max(j - b, 0) == rank
    if rank:
        assert worst_coverage(n, rank, b) == Fraction(guaranteed) >= 1 - Fraction(j, n + 1)
    assert worst_coverage(n, j, b) == Fraction(unmodified)
    if b and rank:
        assert Fraction(unmodified) < 1 - Fraction(j, n + 1)  # the rank j is not enough


@pytest.mark.parametrize("row", EXACT["replaced"][::7], ids=str)
def test_baselines_take_the_rank_of_the_exact_values(row):
    n, alpha, b, _, _, _ = row
    values = np.arange(1.0, n + 1)
    rule = quiet(VanillaCP(alpha=alpha, poisoned=b).calibrate, values)
    rank = max(math.floor(Fraction(alpha) * (n + 1)) - b, 0)
    assert rule.rank_ == rank
    assert rule.tau_ == (values[rank - 1] if rank else -math.inf)


# ---- the two proofs of a shift ----------------------------------------------------------------


EVERY_SHIFT = [
    shifts.TotalVariation("0.05"),
    shifts.LikelihoodRatio(0, "1.5"),
    shifts.LikelihoodRatio("0.9", 10**6),
    shifts.ChiSquared("0.01", reference="calibration"),
    shifts.ChiSquared("0.01", reference="test"),
    shifts.KL("0.01"),
]


@pytest.mark.parametrize("shift", EVERY_SHIFT, ids=str)
def test_the_tolerance_of_proofs_is_not_magnified_by_a_shift(shift):
    """A density of 10^6 made 1e-10 of coverage under one law 1e-4 under the other."""
    outside, inside = setups(IDENTITY, 999, 16, "0.1", shift=shift)
    tolerance = Fraction(1, 10**10)
    assert 1 - shift.lower(1 - outside.target - tolerance) <= Fraction(1, 10) + tolerance * 2
    assert outside.target <= outside.alpha == shift.level("0.1")
    assert outside.alpha - outside.target <= tolerance
    assert inside.target == Fraction(1, 10)


def envelope(setup, t, k, x, delta):
    """The envelope at x, of points on the curve."""
    z = np.linspace(-9, 9, 3001)
    u = special.betainc(setup.m - t + 1, t, special.ndtr(-z))
    v = special.betainc(setup.m_test - k + 1, k, special.ndtr(delta - z))
    below, above = u <= x, u > x
    slopes = (v[above][:, None] - v[below]) / (u[above][:, None] - u[below])
    return float(np.max(v[below] + slopes * (x - u[below])))


def test_each_proof_of_a_shift_is_the_better_one_somewhere():
    """How much of alpha each needs: inside is never worse for a ratio bounded from above alone."""
    better = {"outside": 0, "inside": 0}
    for delta, (m, t, k) in product([0.1, 0.25, 0.5], [(16, 11, 8), (32, 20, 19), (64, 45, 30)]):
        certificate = bincp.certify(smoothing.Gaussian(1.0), balls.L2(delta))
        for shift in (shifts.TotalVariation("0.02"), shifts.LikelihoodRatio(0, "1.2")):
            outside, inside = setups(certificate, 999, m, "0.1", shift=shift)
            j = outside.top_rank
            clean = envelope(outside, t, k, float(outside.share(j)), delta)
            missed = 1 - float(shift.lower(Fraction(1 - clean)))
            imagined = envelope(inside, t, k, float(inside.share(j)), delta)
            if isinstance(shift, shifts.LikelihoodRatio):
                assert imagined <= missed + 1e-12
                better["inside"] += imagined < missed - 1e-3
            else:
                better["outside"] += missed < imagined - 1e-3
    assert all(better.values()), better


def test_the_better_proof_of_a_shift_is_used():
    """That with fewer wrong labels in the reference population."""
    for high, m, delta in product(["1.2", "1.5", "4"], [4, 16, 64], [0.25, 0.5, 1.0]):
        certificate = bincp.certify(smoothing.Gaussian(1.0), balls.L2(delta))
        shift = shifts.LikelihoodRatio("0.5", high)
        options = {"n": 199, "m": m, "p": Fraction(3, 4), "alpha": "0.4", "shift": shift}
        made = quiet(bincp.plan, certificate, **options)
        both = setups(certificate, 199, m, "0.4", shift=shift, p=Fraction(3, 4))
        wrong = [choose_rule(setup, Price(early=False)).wrong for setup in both]
        assert made.wrong_labels == min(wrong)
        test = LabelTest(made.min_count, m)
        proofs = [is_valid(setup, test, 3 * m // 4, made.rank) for setup in both]
        assert any(proofs) or not made.min_count


def test_some_counts_have_one_proof_alone():
    certificate = bincp.certify(smoothing.Gaussian(1.0), balls.L2(0.5))
    both = setups(certificate, 999, 256, "0.4", shift=shifts.LikelihoodRatio(0, "1.5"))
    j = both[0].top_rank
    assert [is_valid(setup, LabelTest(15, 256), 40, j) for setup in both] == [False, True]


# ---- the bound is attained --------------------------------------------------------------------


def attained(j, n, m, t, k, delta, share, high):
    """Bounds on the coverage of a population that attains the rule, of a chosen law and an attack.

    A share of the inputs is fragile: its score is y - z with Gaussian z, an attack moves it by
    delta standard deviations, and the shift makes it `high` times as frequent. The others have the
    highest score at any noise. V, the share below the clean tau, is Beta(j, n + 1 - j), and p is
    where a fragile threshold fails with probability V / share. Monotone in V: sums at both ends.
    """
    quantiles = special.betaincinv(j, n + 1 - j, np.linspace(0, 1, 4001))
    fail = np.minimum(quantiles / share, 1)
    q = special.betaincinv(m - t + 1, t, fail)  # 1 - p, P[Bin(m, p) < t] = fail
    refused = special.betainc(m - k + 1, k, special.ndtr(special.ndtri(q) + delta))
    refused[fail == 1] = 1
    coverage = 1 - high * share * refused
    return coverage[1:].mean(), coverage[:-1].mean()


def sharpest(x, m, t, k, delta):
    """The envelope at x, where it is a chord from the origin: its value, and where it touches."""
    z = np.linspace(-6, 6, 200_001)
    u = special.betainc(m - t + 1, t, special.ndtr(-z))
    v = special.betainc(m - k + 1, k, special.ndtr(delta - z))
    i = int(np.argmax(v / u))
    assert x < u[i]
    return x * v[i] / u[i], u[i]


@pytest.mark.parametrize("b", [0, 2000, 9000])
@pytest.mark.parametrize("high", [Fraction(1), Fraction(6, 5), Fraction(3, 2)])
@pytest.mark.parametrize(
    ("m", "t", "k", "delta"), [(8, 6, 4, 0.7), (16, 11, 8, 0.5), (16, 12, 8, 0.7)]
)
def test_evasion_poison_and_shift_attain_the_level_together(b, high, m, t, k, delta):
    """alpha is made so that k is just allowed; k at less, or without one of the three, is not."""
    n, j = 2_000_000, 100_000
    value, touching = sharpest(float(high) * j / (n + 1), m, t, k, delta)
    alpha = Fraction(value) + Fraction(1, 10**6)
    assert alpha * (n + 1) < (j + 1) * high * 10  # j is no top rank by chance
    certificate = bincp.certify(smoothing.Gaussian(1.0), balls.L2(delta))
    options = {"poisoned": b, "shift": shifts.LikelihoodRatio(0, high)}
    (*_, inside) = setups(certificate, n, m, alpha, **options)
    assert inside.share(j - b) == high * Fraction(j, n + 1)
    condition = inside.condition(t, j - b)
    assert allowed(condition, k, m)
    assert not allowed(condition, k + 1, m)
    share = j / (n + 1) / touching
    low, high_end = attained(j, n, m, t, k, delta, share, float(high))
    assert 1 - alpha < high_end
    assert low < 1 - alpha + 5e-4  # but for the spread of V
    if b:
        assert attained(j + b, n, m, t, k, delta, share, float(high))[1] < 1 - alpha
    assert attained(j, n, m, t, k, delta, share, 1.2 * float(high))[1] < 1 - alpha
    assert attained(j, n, m, t, k, delta * 1.3, share, float(high))[1] < 1 - alpha


def allowed(condition, k, m):
    return _holds(condition, lambda curve: curve.prediction_failures(k, m))
