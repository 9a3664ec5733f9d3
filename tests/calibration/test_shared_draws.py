"""The correction "shared-draws": d' by closed forms, worlds whose points share their noise."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

import bincp
from bincp import shifts
from bincp.balls import L2, Flips
from bincp.baselines import RCP1, SmoothedCP
from bincp.calibration._decision_rule import Settings
from bincp.calibration._rebuild import certificate_of
from bincp.calibration._shared_at_tau import CountsAtTau, choose_at_tau
from bincp.calibration._shared_draws import Cells, SharedDraws, _largest_count, room
from bincp.smoothing import Gaussian, SparseFlip
from support import golden, quiet

GOLDEN = golden("shared_draws")
IDENTITY = bincp.certify(Gaussian(1.0), L2(0.0))
SOME = bincp.certify(SparseFlip(0.01, 0.6), Flips(0, 1))


def refusal_of_identity(t, m, k, m_test):
    """P[count < k] of beta-binomial counts."""
    return sum(
        Fraction(
            math.comb(t - 1 + i, i) * math.comb(m - t + m_test - i, m_test - i),
            math.comb(m + m_test, m_test),
        )
        for i in range(k)
    )


@pytest.mark.parametrize(("m", "m_test"), [(1, 1), (5, 3), (16, 16), (64, 32), (200, 500)])
def test_refusals_of_the_identity_are_those_of_the_closed_form(m, m_test):
    for t in sorted({1, (m + 1) // 2, math.ceil(0.7 * m), m}):
        cells = Cells(IDENTITY, t, m, m_test)
        for k in sorted({0, 1, m_test // 2, math.ceil(0.6 * m_test), m_test}):
            exact = refusal_of_identity(t, m, k, m_test)
            found = Fraction(cells.refusal(k))
            assert exact <= found <= exact * Fraction(102, 100) + Fraction(1, 10**12)


@pytest.mark.parametrize(("t", "m", "k", "m_test"), [(45, 64, 20, 64), (6, 8, 2, 8), (1, 1, 1, 1)])
def test_refusals_are_an_integral_rounded_up(t, m, k, m_test):
    law = stats.beta(t, m + 1 - t)

    def refused(p):
        return stats.binom.cdf(k - 1, m_test, SOME.lower(float(p))) * law.pdf(p)

    corners = np.linspace(0.0, 1.0, 401)
    exact = sum(integrate.quad(refused, a, b)[0] for a, b in itertools.pairwise(corners))
    found = Cells(SOME, t, m, m_test).refusal(k)
    assert exact - 1e-9 <= found <= 1.02 * exact + 1e-9


def shift_by(mu):
    return bincp.certify(Gaussian(1.0), L2(float(Fraction(mu))))


def test_exact_refusals_are_rounded_up():
    for m, m_test, t, k, mu, exact in GOLDEN["values"]:
        found = Cells(shift_by(mu), t, m, m_test).refusal(k)
        assert Fraction(exact) * (1 - Fraction(1, 10**20)) <= found <= Fraction(exact) + 0.0003


def test_no_count_is_above_the_largest_valid_one():
    below = []
    for n, alpha, m, m_test, t, j, mu, largest in GOLDEN["counts"]:
        found = _largest_count(
            Cells(shift_by(mu), t, m, m_test).refusal, m_test, Fraction(alpha) - Fraction(j, n + 1)
        )
        assert found in (largest, largest - 1)
        below += [found] if found < largest else []
    assert len(below) <= 1  # where the refusals fill all of alpha


def test_all_ones_are_refused_half_the_time():
    assert 0.5 <= Cells(IDENTITY, 1, 1, 1).refusal(1) <= 0.501


@pytest.mark.parametrize(("m", "k"), [(64, 30), (256, 152), (1024, 662)])
def test_counts_at_a_share_of_five_thousandths(m, k):
    t = math.ceil(Fraction(7, 10) * m)
    cells = Cells(IDENTITY, t, m, m)
    assert cells.refusal(k) <= 0.005 < cells.refusal(k + 1)


def miss(worlds, law, n, j, t, k, m, m_test, rho=0):
    """The exact chance that the true label is refused; worlds[type][noise] is a score.

    Types of n + 1 points are uniform and independent, and all points see the same m draws of noise.
    With ``rho`` the test type is from the worst law within so much in total variation, which may
    depend on the calibration points, but not on the draws. A poisoner of b points who knows all of
    this can do no better than to put the b lowest above all: rank j - b is the clean rank j then.
    """
    types, missed = range(len(worlds)), Fraction(0)
    for points in itertools.product(types, repeat=n):
        by_type = [Fraction(0)] * len(worlds)
        for draws in itertools.product(range(len(law)), repeat=m):
            mass = math.prod(law[z] for z in draws)
            own = [sorted((worlds[a][z] for z in draws), reverse=True)[t - 1] for a in types]
            tau = sorted(own[a] for a in points)[j - 1]
            for a in types:
                p = sum(law[z] for z in range(len(law)) if worlds[a][z] >= tau)
                by_type[a] += mass * sum(
                    math.comb(m_test, s) * p**s * (1 - p) ** (m_test - s) for s in range(k)
                )
        missed += worst_mean(by_type, rho) * Fraction(1, len(types) ** n)
    return missed


def refused(p, k, m_test):
    return sum(math.comb(m_test, s) * p**s * (1 - p) ** (m_test - s) for s in range(k))


def miss_at_tau(worlds, law, n, j, counts, tau, m, m_test):
    """The exact chance that the true label is refused where tau is fixed and t observed."""
    types, missed = range(len(worlds)), Fraction(0)
    chances = [sum(law[z] for z in range(len(law)) if worlds[a][z] >= tau) for a in types]
    for draws in itertools.product(range(len(law)), repeat=m):
        mass = math.prod(law[z] for z in draws)
        own = [sum(worlds[a][z] >= tau for z in draws) for a in types]
        for points in itertools.product(types, repeat=n):
            k = counts.at(sorted(own[a] for a in points)[j - 1])
            mean = sum(refused(p, k, m_test) for p in chances) / len(types)
            missed += mass * mean * Fraction(1, len(types) ** n)
    return missed


def random_world(seed, size):
    """Return the law of a draw that all points share, and the scores of three points under it."""
    rng = np.random.default_rng(seed)
    weights = [Fraction(int(w)) for w in rng.integers(1, 5, size)]
    return [w / sum(weights) for w in weights], rng.integers(0, 4, (3, size)).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_no_world_at_a_fixed_tau_is_missed_more_often(seed):
    n, m, m_test = 2, 4, 4
    law, worlds = random_world(seed, size=2)
    for level in (Fraction(1, 10), Fraction(1, 4), Fraction(2, 5)):
        counts = CountsAtTau(IDENTITY, m, m_test, level)
        bound = Fraction(counts.refusal())
        for j, tau in itertools.product([1, 2], [1, 2, 3]):
            missed = miss_at_tau(worlds, law, n, j, counts, tau, m, m_test)
            assert missed <= Fraction(j, n + 1) + bound


def test_one_score_for_all_points_needs_the_second_term_at_a_fixed_tau_too():
    """All counts are equal then, so no point is below another: S is missed, whatever j is."""
    counts = CountsAtTau(IDENTITY, 6, 6, Fraction(2, 5))
    missed = miss_at_tau([[0, 1]], [Fraction(1, 2)] * 2, 9, 1, counts, 1, 6, 6)
    assert Fraction(1, 10) < missed <= Fraction(counts.refusal())


@pytest.mark.parametrize("certificate", [IDENTITY, SOME], ids=["identity", "flips"])
@pytest.mark.parametrize(("m", "m_test"), [(24, 20), (64, 64), (40, 100)])
def test_the_refusals_of_observed_counts_are_rounded_up(certificate, m, m_test):
    """sup_p E P[Bin(m', c(p)) < k(Bin(m, p))], at many p, and not far below the bound."""
    counts = CountsAtTau(certificate, m, m_test, Fraction(1, 50))
    k = np.array([counts.at(t) for t in range(m + 1)])
    assert np.all(np.diff(k) >= 0)
    assert k[0] == 0 < k[-1]
    p = np.linspace(0, 1, 3001)
    pmf = stats.binom.pmf(np.arange(m + 1), m, p[:, None])
    c = np.array([certificate.lower(float(at)) for at in p])
    most = (pmf * stats.binom.cdf(k - 1, m_test, c[:, None])).sum(axis=1).max()
    assert most - 1e-12 <= counts.refusal() <= 1.15 * most + 1e-6


@pytest.mark.parametrize("options", [{}, {"poisoned": 3}, {"shift": shifts.TotalVariation("0.02")}])
def test_rules_at_a_fixed_tau_keep_the_level(options, tmp_path):
    n, m, m_test, alpha = 200, 128, 64, Fraction(1, 5)
    scores = np.random.default_rng(0).normal(1, 0.6, size=(n, m))
    made = bincp.BinCP(SOME, alpha=alpha, tau=0.4, correction="shared-draws", **options)
    rule = made.calibrate(scores, n_test_samples=m_test)
    settings = rule._settings
    rank, counts = choose_at_tau(SOME, settings, n, m, m_test)
    t = np.sort((scores >= 0.4).sum(axis=1))[rank - 1]
    assert (rule.rank_, rule.success_rank_) == (rank, t)
    assert rule.min_count_ == counts.at(int(t)) > 0
    clean = rank + settings.lost
    assert Fraction(counts.refusal()) <= room(settings, n, clean)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    assert loaded._rule == rule._rule
    assert certificate_of(loaded._rule) is not None
    forged = dataclasses.replace(rule._rule, min_count=rule.min_count_ + 1)
    with pytest.raises(ValueError, match="`min_count_` must be what `rank_`"):
        certificate_of(forged)


def test_a_tau_out_of_reach_accepts_every_label():
    scores = np.zeros((99, 16))
    rule = bincp.BinCP(SOME, alpha=0.2, tau=1.0, correction="shared-draws")
    with pytest.warns(bincp.errors.TrivialSetWarning, match="out of reach"):
        assert rule.calibrate(scores).min_count_ == 0


def test_too_few_points_for_any_rank_accept_every_label():
    rule = bincp.BinCP(SOME, alpha="0.1", tau=0.5, correction="shared-draws")
    with pytest.warns(bincp.TrivialSetWarning, match="n = 8 .* too few .* at least 9"):
        assert rule.calibrate(np.ones((8, 16))).min_count_ == 0


def test_a_p_that_was_given_is_blamed_and_the_one_that_is_named_would_do():
    scores = np.random.default_rng(0).normal(1, 0.3, (300, 32))
    with pytest.warns(bincp.TrivialSetWarning, match="p = 0.03125 allows no count") as caught:
        bincp.BinCP(SOME, alpha="0.2", p="1/32", correction="shared-draws").calibrate(scores)
    better = str(caught[0].message).split("; p = ")[1].split(",")[0]
    rule = bincp.BinCP(SOME, alpha="0.2", p=better, correction="shared-draws").calibrate(scores)
    assert rule.min_count_ > 0


def worst_mean(values, rho):
    """The largest mean over laws within rho of the uniform one: mass goes to the largest value."""
    share, left, mean = Fraction(1, len(values)), Fraction(rho), Fraction(0)
    for value in sorted(values):
        moved = min(left, share)
        mean += (share - moved) * value + moved * max(values)
        left -= moved
    return mean


@pytest.mark.parametrize("seed", range(8))
def test_no_world_of_shared_draws_is_missed_more_often(seed):
    n, m, m_test = 2, 2, 3
    law, worlds = random_world(seed, size=3)
    for j, t in itertools.product([1, 2], [1, 2]):
        cells = Cells(IDENTITY, t, m, m_test)
        for k in range(1, m_test + 1):
            bound = Fraction(j, n + 1) + Fraction(cells.refusal(k))
            assert miss(worlds, law, n, j, t, k, m, m_test) <= bound


@pytest.mark.parametrize("seed", range(4))
def test_no_world_with_poison_and_a_shift_is_missed_more_often(seed):
    """The proof bounds every world, and what forgets the poison or the shift does not."""
    rng = np.random.default_rng(seed)
    forgotten = {"poison": 0, "shift": 0}
    for n, types, (m, t, m_test, k), rho in (
        (3, 3, (2, 1, 3, 1), Fraction(1, 8)),
        (2, 8, (12, 6, 12, 1), Fraction(1, 4)),
        (3, 8, (12, 6, 12, 1), Fraction(1, 4)),
    ):
        noises = 1 if m > 2 else 2
        weights = [Fraction(int(w)) for w in rng.integers(1, 5, noises)]
        law = [w / sum(weights) for w in weights]
        worlds = (10 * rng.permutation(types)[:, None] + rng.integers(0, 9, noises)).tolist()
        later = Fraction(Cells(IDENTITY, t, m, m_test).refusal(k))
        settings = Settings(alpha=Fraction(99, 100), poisoned=1, shift=shifts.TotalVariation(rho))
        for j in range(2, n + 1):  # that of the clean points: tau has the rank j - 1
            bound = settings.alpha - room(settings, n, j) + later
            missed = miss(worlds, law, n, j, t, k, m, m_test, rho)
            assert missed <= bound
            unpoisoned = settings.alpha - room(settings, n, j - 1) + later
            forgotten["poison"] += missed > unpoisoned
            forgotten["shift"] += missed > Fraction(j, n + 1) + later
    assert min(forgotten.values()) > 0


def test_rules_with_poison_and_a_shift_keep_the_level(tmp_path):
    n, m, alpha = 200, 128, Fraction(1, 5)
    scores = np.random.default_rng(0).normal(size=(n, m))
    ball = shifts.LevyProkhorov(L2(0.05), "0.02")
    for certificate, options in (
        (SOME, {"poisoned": 3}),
        (SOME, {"shift": shifts.TotalVariation("0.02")}),
        (SOME, {"label_noise": ("count", 2), "poisoned": 1}),
        (SOME, {"label_noise": ("rate", "0.02"), "p": "0.7"}),
        (bincp.certify(Gaussian(0.5), L2(0.1)), {"shift": ball, "poisoned": 2}),
    ):
        made = bincp.BinCP(certificate, alpha=alpha, correction="shared-draws", **options)
        rule = made.calibrate(scores)
        j, t, k = rule.rank_, rule.success_rank_, rule.min_count_
        assert k > 0
        settings = rule._settings
        worst = settings.worst(certificate)
        cells = Cells(worst, t, m, m)
        left = room(settings, n, j + settings.lost)
        assert Fraction(cells.refusal(k)) <= left < Fraction(cells.refusal(k + 1))
        assert rule.tau_ == np.sort(np.sort(scores, axis=1)[:, m - t])[j - 1]
        plan = bincp.plan(certificate, n=n, m=m, alpha=alpha, correction="shared-draws", **options)
        assert (plan.min_count, plan.success_rank, plan.rank) == (k, t, j)
        rule.save(tmp_path / "rule.json")
        assert bincp.BinCP.load(tmp_path / "rule.json")._rule == rule._rule
        weaker = dataclasses.replace(settings, poisoned=8, shift=None)
        forged = dataclasses.replace(rule._rule, settings=weaker)
        with pytest.raises(ValueError, match=r"`min_count_` must be what|`certified_p_` must"):
            certificate_of(forged)


def test_one_score_for_all_points_needs_the_second_term():
    """Where the score is the noise, all thresholds are equal: the mixture would miss d', not j."""
    law = [Fraction(1, 8)] * 8
    missed = miss([list(range(8))], law, 3, 1, 1, 1, 1, 1)
    assert missed == Fraction(7, 16)  # 1/2, less half of the ties
    mixture = bincp.BinCP(IDENTITY, alpha="1/4", p=1).calibrate(np.zeros((3, 1)))
    assert (mixture.min_count_, mixture.rank_) == (1, 1)  # so it would miss 7/16 > 1/4
    with pytest.warns(bincp.errors.TrivialSetWarning):
        own = bincp.BinCP(IDENTITY, alpha="1/4", correction="shared-draws").calibrate(
            np.zeros((3, 1))
        )
    assert own.min_count_ == 0


@pytest.mark.parametrize("certificate", [IDENTITY, SOME], ids=["identity", "flips"])
@pytest.mark.parametrize("p", [None, "0.7"])
def test_rules_keep_the_level(certificate, p):
    n, m, m_test, alpha = 200, 128, 64, Fraction(1, 10)
    scores = np.random.default_rng(0).normal(size=(n, m))
    rule = bincp.BinCP(certificate, alpha=alpha, p=p, correction="shared-draws").calibrate(
        scores, n_test_samples=m_test
    )
    j, t, k = rule.rank_, rule.success_rank_, rule.min_count_
    assert k > 0
    cells = Cells(certificate, t, m, m_test)
    share = Fraction(j, n + 1)
    assert share + Fraction(cells.refusal(k)) <= alpha < share + Fraction(cells.refusal(k + 1))
    assert rule.tau_ == np.sort(np.sort(scores, axis=1)[:, m - t])[j - 1]
    if p is not None:
        assert t == math.ceil(Fraction(p) * m)
    plan = bincp.plan(
        certificate,
        n=n,
        m=m,
        n_test_samples=m_test,
        alpha=alpha,
        correction="shared-draws",
        p=p,
    )
    assert (plan.min_count, plan.success_rank, plan.rank) == (k, t, j)


def test_shared_scores_are_refused_by_the_mixture():
    scores = np.random.default_rng(0).normal(size=(50, 16)).view(SharedDraws)
    message = "makes their draws dependent: use correction='shared-draws' or noise of their own"
    for part in (scores, scores[:30], np.concatenate([scores, scores]), scores.astype(np.float32)):
        with pytest.raises(ValueError, match=message):
            bincp.BinCP(SOME).calibrate(part)
        assert bincp.BinCP(SOME, correction="shared-draws").calibrate(part).rank_ > 0
    with pytest.raises(ValueError, match=message):
        bincp.sweep(SOME, scores, correction=["shared-draws", "mixture"])
    labels = np.zeros(50, int)
    with pytest.raises(ValueError, match=message):
        bincp.MondrianBinCP(SOME, n_classes=2).calibrate(scores, labels)


def test_shared_scores_are_refused_by_all_that_needs_independent_draws():
    scores = np.random.default_rng(0).normal(size=(50, 2, 16)).view(SharedDraws)
    labels = np.ones((50, 2), bool)
    with pytest.raises(ValueError, match='use correction="clopper-pearson" or noise of their own'):
        bincp.RobustRiskControl(SOME, alpha=0.3).calibrate(scores, labels)
    bounded = bincp.RobustRiskControl(SOME, alpha=0.3, correction="clopper-pearson")
    assert quiet(bounded.calibrate, scores, labels).guarantee == "robust"
    with pytest.raises(ValueError, match="draws dependent: use noise of their own"):
        SmoothedCP().calibrate(scores[:, 0])
    with pytest.raises(ValueError, match="noise of their own"):
        RCP1(SOME).calibrate(scores[:, 0, :1])


def test_a_poisoner_who_chooses_the_size_of_a_class_must_not_choose_its_test():
    """Classes of two sizes would have two tests, and labels move between them."""
    for options in ({"poisoned": 2}, {"label_noise": ("count", 1)}):
        with pytest.raises(ValueError, match='must not be "shared-draws" with poisoned'):
            bincp.MondrianBinCP(SOME, n_classes=2, correction="shared-draws", **options)
    bincp.MondrianBinCP(SOME, n_classes=2, correction="shared-draws", poisoned=0)


@pytest.mark.parametrize("poisoned", [0, 11])
def test_trivial_rules_with_a_shift_load_again(poisoned, tmp_path):
    options = {"shift": shifts.TotalVariation("0.19"), "poisoned": poisoned}
    rule = bincp.BinCP(SOME, alpha="0.2", correction="shared-draws", **options)
    rule = quiet(rule.calibrate, np.random.default_rng(0).normal(size=(60, 16)))
    assert rule.min_count_ == 0
    rule.save(tmp_path / "rule.json")
    assert bincp.BinCP.load(tmp_path / "rule.json")._rule == rule._rule


def test_what_has_no_proof_is_refused():
    with pytest.raises(ValueError, match='must not be "shared-draws" with poisoned'):
        bincp.MondrianBinCP(SOME, n_classes=2, correction="shared-draws", poisoned=1)
    with pytest.raises(ValueError, match="guarantee"):
        bincp.BinCP(SOME, correction="shared-draws", guarantee=("training-conditional", 0.1))
    with pytest.raises(ValueError, match="passes"):
        bincp.BinCP(SOME, correction="shared-draws", passes=4)
    with pytest.raises(ValueError, match="`attacked_calibration` must be False with correction="):
        bincp.BinCP(SOME, correction="shared-draws", attacked_calibration=True)
    rule = bincp.BinCP(SOME, correction="shared-draws").calibrate(np.ones((99, 32)))
    with pytest.raises(ValueError, match="correction"):
        rule.sequential_rule()


def test_rules_load_again_and_forged_counts_do_not(tmp_path):
    scores = np.random.default_rng(0).normal(size=(200, 64))
    rule = bincp.BinCP(SOME, correction="shared-draws").calibrate(scores)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    assert (loaded.tau_, loaded.min_count_, loaded.rank_) == (
        rule.tau_,
        rule.min_count_,
        rule.rank_,
    )
    assert loaded.certificate is not None
    assert certificate_of(loaded._rule) is not None
    for more in (1, 5):
        forged = dataclasses.replace(rule._rule, min_count=rule.min_count_ + more)
        with pytest.raises(ValueError, match="`min_count_` must be what `rank_`"):
            certificate_of(forged)
