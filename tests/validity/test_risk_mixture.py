"""The mixture correction of risk control: exact risk of worlds with several labels a point.

A world has kinds of points, each with true labels. All labels of a point see the same draws of the
noise, whose outcomes have a clean and an attacked law, and each label has a score for each outcome.
So the losses of calibration points and of attacked test points have exact laws.
"""

import math
import random
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy import special

import bincp
from bincp import shifts
from bincp.calibration._risk_fitting import risk_test
from bincp.calibration._risk_threshold import largest_threshold
from support import golden

EXACT = golden("risk_control")
TOLERANCE = Fraction(2, 10**10)
IDENTITY = bincp.Certificate.from_regions([1.0], [1.0])


# ---- thresholds -------------------------------------------------------------------------------


def points_of(row):
    """The thresholds (n, K) of the true labels, and which labels are true."""
    labels = np.array([[i < len(point) for i in range(4)] for point in row[2]])
    values = np.full(labels.shape, -np.inf)
    values[labels] = [v for point in row[2] for v in point]
    return values, labels


def tau_of(row, values):
    return max(values.max(), -np.inf) if row[5] == "inf" else float(row[5])


@pytest.mark.parametrize("row", [row for row in EXACT["rows"] if row[3] is None], ids=str)
def test_the_threshold_of_the_exact_values(row):
    """The n - b largest losses and b + 1 more add up to at most alpha (n + 1)."""
    values, labels = points_of(row)
    found = largest_threshold(values, labels, "false-negative-rate", Fraction(row[0]), row[1])
    assert found.value == tau_of(row, values)


@pytest.mark.parametrize("row", [row for row in EXACT["rows"] if row[3] is not None], ids=str)
def test_the_threshold_of_the_exact_values_with_weights(row):
    """Thirds are no floats: a loss that is rounded up gives no larger threshold, and vice versa."""
    values, labels = points_of(row)

    def threshold(towards):
        def loss(sets, true):
            sums = [
                sum(Fraction(w) for w, kept in zip(weights, members, strict=False) if not kept)
                for weights, members in zip(row[3], sets, strict=True)
            ]
            exact = {0: 0.0, 1: 1.0}
            return np.array([exact.get(v, math.nextafter(float(v), towards)) for v in sums])

        return largest_threshold(
            values, labels, loss, Fraction(row[0]), row[1], additive=True
        ).value

    assert threshold(2) <= tau_of(row, values) <= threshold(-1)


# ---- worlds -----------------------------------------------------------------------------------


@dataclass
class World:
    clean: list
    attacked: list
    shares: list  # of the kinds of points
    scores: list  # of each kind, of each of its true labels, for each outcome

    def levels(self):
        return sorted({s for kind in self.scores for label in kind for s in label})

    def missed(self, law, kind, draws, least, tau):
        """The law of the set of true labels with fewer than `least` of so many scores at tau."""
        found = defaultdict(Fraction)
        for outcomes in product(range(len(law)), repeat=draws):
            chance = math.prod(law[o] for o in outcomes)
            if chance:
                key = tuple(
                    sum(label[o] >= tau for o in outcomes) < least for label in self.scores[kind]
                )
                found[key] += chance
        return found

    def law_of_tau(self, n, level, b, m, t, loss):
        """tau of the clean points; the adversary turned the b largest losses into 0."""
        reach = []
        for tau in self.levels():
            law = defaultdict(Fraction)
            for kind, share in enumerate(self.shares):
                for missing, chance in self.missed(self.clean, kind, m, t, tau).items():
                    law[loss(missing)] += share * chance
            values = sorted(law, reverse=True)
            budget = level * (n + 1) - (b + 1)
            reach.append(
                sum(
                    chance
                    for numbers, chance in multinomial(n, [law[v] for v in values])
                    if sum(without_first(values, numbers, b)) <= budget
                )
            )
        reach.append(Fraction(0))
        law = [(tau, reach[i] - reach[i + 1]) for i, tau in enumerate(self.levels())]
        return law

    def risk(self, n, level, b, m, t, m_test, k, loss, shift=None):
        """The largest expected loss: the law of the points is chosen after tau, then the attack."""
        total = Fraction(0)
        for tau, chance in self.law_of_tau(n, level, b, m, t, loss):
            if not chance:
                continue
            losses = [
                sum(
                    part * loss(missing)
                    for missing, part in self.missed(self.attacked, kind, m_test, k, tau).items()
                )
                for kind in range(len(self.shares))
            ]
            total += chance * largest_mean(self.shares, losses, shift)
        return total


def multinomial(n, shares):
    for bars in combinations(range(n + len(shares) - 1), len(shares) - 1):
        ends = [-1, *bars, n + len(shares) - 1]
        numbers = [b - a - 1 for a, b in pairwise(ends)]
        ways = math.factorial(n) // math.prod(map(math.factorial, numbers))
        yield numbers, ways * math.prod(q**x for q, x in zip(shares, numbers, strict=True))


def without_first(values, numbers, b):
    return [v for v, x in zip(values, numbers, strict=True) for _ in range(x)][b:]


def largest_mean(shares, losses, shift):
    if shift is None:
        return sum(a * v for a, v in zip(shares, losses, strict=True))
    order = sorted(range(len(shares)), key=lambda i: -losses[i])
    if isinstance(shift, shifts.TotalVariation):  # points of the shift lose everything
        left, total = 1 - shift.rho, shift.rho
        for i in order:
            taken = min(shares[i], left)
            total, left = total + taken * losses[i], left - taken
        return total
    laws = [shift.low * share for share in shares]
    left = 1 - sum(laws)
    for i in order:
        more = min((shift.high - shift.low) * shares[i], left)
        laws[i], left = laws[i] + more, left - more
    return sum(a * v for a, v in zip(laws, losses, strict=True))


def rate(missing):
    return Fraction(sum(missing), len(missing))


def any_missed(missing):
    return Fraction(any(missing))


def as_function(sets, true):
    return (true & ~sets).any(axis=1)


def random_law(rng, size):
    parts = [rng.choice([1, 1, 2, 4, 9]) for _ in range(size)]
    return [Fraction(part, sum(parts)) for part in parts]


def random_world(rng, near):
    outcomes, kinds = rng.randint(2, 3), rng.choice([1, 3, 8])
    clean, other = random_law(rng, outcomes), random_law(rng, outcomes)
    attacked = [near * a + (1 - near) * b for a, b in zip(clean, other, strict=True)]
    scores = []
    for _ in range(kinds):
        height = rng.randrange(30)
        scores.append(
            [
                [height + rng.choice([0, 1, 5, 50]) for _ in range(outcomes)]
                for _ in range(rng.randint(1, 2))
            ]
        )
    return World(clean, attacked, random_law(rng, kinds), scores)


def certificate_of(world):
    return bincp.Certificate.from_regions(
        [float(p) for p in world.clean], [float(p) for p in world.attacked]
    )


SHIFTS = [None, shifts.TotalVariation("0.05"), shifts.LikelihoodRatio("0.8", "1.3")]


def settings_of(certificate, alpha, **options):
    return bincp.RobustRiskControl(certificate, alpha=alpha, **options)._settings


def cases(rng, number, near):
    """Worlds with the numbers of a calibration, and what an adversary may do."""
    for _ in range(number):
        n, m, m_test = rng.choice([9, 19]), rng.randint(1, 3), rng.randint(1, 3)
        alpha = rng.choice([Fraction(1, 5), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4)])
        p = Fraction(rng.randint(1, m), m)
        yield (
            random_world(rng, near),
            (n, m, m_test, alpha, p),
            rng.choice([0, 1, 2]),
            rng.choice(SHIFTS),
        )


class Game:
    """A world, the numbers of a calibration, and what the adversary does: b points and a shift."""

    def __init__(self, world, numbers, b, shift, loss):
        self.world, self.numbers, self.b, self.shift, self.loss = world, numbers, b, shift, loss

    def rule(self, certificate=None, **options):
        """The level, t and the test that the library takes."""
        n, m, m_test, alpha, p = self.numbers
        options = {"poisoned": self.b, "shift": self.shift, "p": p, **options}
        if self.loss is any_missed:
            options.setdefault("loss", as_function)
        certificate = certificate or certificate_of(self.world)
        return risk_test(certificate, settings_of(certificate, alpha, **options), n, 2, m, m_test)

    def risk(self, share, t, k, poisoned=None):
        """The largest risk of a rule that reckons with so many poisoned points."""
        n, m, m_test, _, _ = self.numbers
        # What the rule does not reckon with goes to the adversary.
        extra = self.b - (self.b if poisoned is None else poisoned)
        return self.world.risk(
            n, share + Fraction(extra, n + 1), self.b, m, t, m_test, k, self.loss, self.shift
        )

    def is_lost(self, rule, poisoned=None):
        """Whether the adversary gets above the level."""
        found = self.risk(rule.share, rule.t, rule.test.k, poisoned) if rule.test.k else 0
        return found > self.numbers[3] + TOLERANCE


@pytest.mark.slow
def test_no_adversary_gets_above_the_level_of_the_false_negative_rate():
    """And who forgets poison, shift or attack gets above it."""
    rng = random.Random(4)
    refuted = dict.fromkeys(["poison", "shift", "attack"], 0)
    checked = 0
    for case in cases(rng, 120, Fraction(1, 2)):
        game = Game(*case, rate)
        rule = game.rule()
        checked += rule.test.k > 0
        assert not game.is_lost(rule)
        if game.b:
            refuted["poison"] += game.is_lost(game.rule(poisoned=0), poisoned=0)
        if game.shift:
            refuted["shift"] += game.is_lost(game.rule(shift=None))
        refuted["attack"] += game.is_lost(game.rule(IDENTITY))
    assert checked > 20
    assert all(refuted.values()), refuted


@pytest.mark.slow
@pytest.mark.parametrize("loss", [as_function, "any-missed"])
def test_no_adversary_gets_above_the_level_of_another_loss(loss):
    """And a test that is not paid for, of the strictest count at the whole level, is refuted."""
    rng = random.Random(5)
    refuted = checked = 0
    for case in cases(rng, 80, Fraction(7, 8)):
        game = Game(*case, any_missed)
        rule = game.rule(loss=loss)
        checked += rule.test.k > 0
        assert not game.is_lost(rule)
        _, m, m_test, alpha, p = game.numbers
        level = settings_of(IDENTITY, alpha, shift=game.shift).level
        refuted += game.risk(level, math.ceil(p * m), m_test) > alpha + TOLERANCE
    assert checked > 20
    assert refuted > 5


def any_fails(law, labels, draws, least):
    """The chance that fewer than ``least`` of the draws reach tau for some label, enumerated."""
    total = Fraction(0)
    for outcome in product(range(len(law)), repeat=draws):
        if any(sum(label[z] for z in outcome) < least for label in labels):
            total += math.prod(law[z] for z in outcome)
    return total


def test_the_curve_of_one_label_does_not_bound_the_loss_of_any():
    """Labels that fail in different draws: with min(1, K v) the envelope holds, with v it does not.

    t = 1 of m = 2 and k = 2 of m' = 2: u = (1 - p)^2, v = 1 - p^2.
    """
    failing = np.linspace(0, 1, 2001)
    refuted = 0
    for q in (Fraction(1, 20), Fraction(1, 8), Fraction(1, 4), Fraction(2, 5)):
        law, labels = [q, q, 1 - 2 * q], [(0, 1, 1), (1, 0, 1)]
        lost, refused = any_fails(law, labels, 2, 1), any_fails(law, labels, 2, 2)
        assert (lost, refused) == (2 * q**2, 4 * q - 4 * q**2)
        u, v = failing**2, 1 - (1 - failing) ** 2
        for many, holds in ((2, True), (1, False)):
            most = np.interp(float(lost), *concave(u, np.minimum(many * v, 1)))
            assert not holds or refused <= most + 1e-9
            refuted += not holds and refused > most + 1e-9
    assert refuted > 2


def concave(x, y):
    """Return the corners of the upper concave envelope of points in increasing order of x."""
    hull = []
    for point in zip(x, y, strict=True):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (point[0] - x1) > (point[1] - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append(point)
    return np.transpose(hull)


@pytest.mark.parametrize("n_classes", [1, 2, 10])
def test_the_loss_of_any_label_has_the_better_of_two_bounds(n_classes):
    """The envelope of (u, min(1, K v)) at the level, on a fine grid, and a larger k than K D."""
    certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.25))
    rules = [
        risk_test(certificate, settings_of(certificate, "0.1", loss=loss), 500, n_classes, 32, 32)
        for loss in ("any-missed", as_function)
    ]
    share, t, test = rules[0]
    z = np.linspace(-7, 7, 3001)
    u = special.betainc(33 - t, t, special.ndtr(-z))
    v = np.minimum(n_classes * special.betainc(33 - test.k, test.k, special.ndtr(0.25 - z)), 1)
    below, above = u <= float(share), u > float(share)
    slopes = (v[above][:, None] - v[below]) / (u[above][:, None] - u[below])
    envelope = np.max(v[below] + slopes * (float(share) - u[below]))
    price = float(share) + n_classes * np.max((1 - u) * v / n_classes)
    assert min(envelope, price) <= 0.1 + 1e-6
    assert test.k / rules[0].t >= rules[1].test.k / rules[1].t
    if n_classes == 1:
        assert test.k > rules[1].test.k


def test_the_loss_of_any_label_is_counted_and_stored(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.random((200, 3)) < 0.5
    scores = rng.normal(np.where(labels, 1, -1)[..., None], 0.4, (200, 3, 32))
    certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.25))
    rule = bincp.RobustRiskControl(certificate, alpha=0.2, loss="any-missed")
    rule.calibrate(scores, labels)
    own = np.sort(scores, axis=2)[:, :, 32 - rule.success_rank_]
    assert rule.total_loss_ == (labels & (own < rule.tau_)).any(axis=1).sum()
    rule.save(tmp_path / "rule.json")
    loaded = bincp.RobustRiskControl.load(tmp_path / "rule.json")
    assert (loaded._rule, loaded.loss) == (rule._rule, "any-missed")
    with pytest.raises(ValueError, match=r"`loss` must be one of \('false-negative-rate', 'any-m"):
        bincp.RobustRiskControl(certificate, loss="all-missed")
    with pytest.raises(ValueError, match='`additive` must be False for the loss "any-missed"'):
        bincp.RobustRiskControl(certificate, loss="any-missed", additive=True)


def test_the_price_of_another_loss_is_what_the_labels_may_lose():
    """share = alpha - K D with D by a fine grid, a little below what cells can show."""
    certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.25))
    for n_classes, passes in ((2, None), (10, None), (3, "auto")):
        settings = settings_of(certificate, "0.1", loss=as_function, passes=passes)
        share, t, test = risk_test(certificate, settings, 500, n_classes, 32, 32)
        z = np.linspace(-6, 6, 20_001)
        p, c = special.ndtr(z), special.ndtr(z - 0.25)
        reached = special.betainc(t, 33 - t, p)
        kept = test.rule.acceptance(c)
        price = n_classes * float(np.max(reached * (1 - kept)))
        assert 0 < price <= 0.1 - float(share) <= price * 1.005
        assert test.k > 0


@pytest.mark.parametrize("rank", [1, 3, 10])
def test_the_level_is_the_largest_that_the_envelope_allows(rank):
    """a' is no whole rank: losses are fractions. A little above it the test is not allowed."""
    certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.25))
    n = 10 * rank + 5
    settings = settings_of(certificate, "0.1")
    share, t, test = risk_test(certificate, settings, n, 4, 16, 16)
    made = bincp.plan(certificate, n=n, m=16, p=Fraction(t, 16))
    assert test.k <= made.min_count + 1
    assert share <= Fraction(1, 10)

    def envelope(x):
        z = np.linspace(-7, 7, 4001)
        u = special.betainc(17 - t, t, special.ndtr(-z))
        v = special.betainc(17 - test.k, test.k, special.ndtr(0.25 - z))
        below, above = u <= x, u > x
        slopes = (v[above][:, None] - v[below]) / (u[above][:, None] - u[below])
        return np.max(v[below] + slopes * (x - u[below]))

    assert envelope(float(share)) <= 0.1 + 1e-6
    step = Fraction(1, 16 * (n + 1))
    at_the_end = (share + step) * (n + 1) % 1 == 0 or share + step > Fraction(1, 10)
    assert at_the_end or envelope(float(share + step)) > 0.1 - 1e-6
