"""Plans: they are what calibration then does, found without any score."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, special, stats

import bincp
from bincp import BinCP, SequentialRule, balls, smoothing
from support import quiet

CERTIFICATES = {
    "identity": bincp.certify(smoothing.Gaussian(0.25), balls.L2(0)),
    "gaussian": bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.25)),
    "strong": bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.5)),
    "uniform": bincp.certify(smoothing.Uniform(0.5), balls.L1(0.1)),
    "sparse": bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(1, 1)),
}
GAUSSIAN = CERTIFICATES["gaussian"]
CLOPPER_PEARSON = {"correction": "clopper-pearson", "n_classes": 10}
FITTED = ("success_rank", "rank", "min_count", "certified_p", "losses", "boundaries")


# ---- plan and calibration ---------------------------------------------------------------------


def assert_kept(certificate, n, m, m_test, n_classes, **settings):
    """Calibrate on scores without ties: the rule and the warning must be those of the plan."""
    plan = bincp.plan(certificate, n=n, m=m, n_test_samples=m_test, n_classes=n_classes, **settings)
    scores = np.random.default_rng(5).normal(size=(n, m))
    rule = BinCP(certificate, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rule.calibrate(scores, n_test_samples=m_test, n_classes=n_classes)
    for field in FITTED:
        assert getattr(plan, field) == getattr(rule, f"{field}_"), (field, settings)
    assert plan.n_test_samples == rule.n_test_samples_
    assert plan.share == rule.min_count_ / rule.n_test_samples_
    assert plan.settings == rule._settings
    assert [str(warning.message) for warning in caught] == (
        []
        if plan.trivial_cause is None
        else [f"every label will be in every prediction set: {plan.trivial_cause}"]
    )
    assert (plan.wrong_labels == 1) == (plan.min_count == 0) == (plan.trivial_cause is not None)
    assert 1 <= plan.expected_passes <= plan.n_test_samples


def some_settings(rng):
    """Options of a calibration, of any correction."""
    alpha = rng.choice(["0.1", "1/7", "0.2", "0.05"])
    p = rng.choice([None, None, "0.6", "2/3", "1"])
    correction = rng.choice(["mixture", "mixture", "clopper-pearson", "none"])
    settings = {"alpha": alpha, "p": p, "correction": correction}
    if correction == "clopper-pearson":
        settings |= {"union": rng.choice(["per-bound", "two-bounds"])}
        settings |= {"eta": rng.choice(["0.001", "0.02"])}
    if correction == "mixture":
        settings |= {"passes": rng.choice([None, "auto", "3.5"])}
        settings |= {"guarantee": rng.choice(["marginal", "marginal", "given"])}
        if settings["guarantee"] == "given":
            settings["guarantee"] = ("training-conditional", "0.1")
    return settings


@pytest.mark.parametrize("seed", range(20))
def test_plans_are_what_calibration_finds(seed):
    rng = np.random.default_rng(seed)
    for certificate in CERTIFICATES.values():
        for _ in range(4):
            n = int(rng.choice([4, 9, 19, 30, 99, 200]))
            m, m_test = map(int, rng.choice([1, 2, 4, 8, 16, 32], 2))
            assert_kept(certificate, n, m, m_test, 10, **some_settings(rng))


@pytest.mark.parametrize("n", [99, 199])
def test_plans_stop_early_where_alpha_times_the_points_is_whole(n):
    """A rank of exactly alpha (n + 1) leaves sequential rules nothing: they need another one."""
    half = bincp.certify(smoothing.Gaussian(1), balls.L2(0.5))
    for passes in (None, "auto"):
        assert_kept(half, n, 64, 64, None, alpha="0.1", passes=passes)
    fixed = bincp.plan(half, n=n, m=64)
    early = bincp.plan(half, n=n, m=64, passes="auto")
    more = bincp.plan(half, n=n + 1, m=64, passes="auto")
    assert early.expected_passes < fixed.expected_passes / 4
    assert early.wrong_labels < 1.02 * more.wrong_labels


def test_few_samples_with_a_far_attack_have_a_useful_plan():
    far = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.5))
    assert_kept(far, 100, 4, 4, None, alpha="0.1")
    plan = bincp.plan(far, n=100, m=4)
    assert plan.trivial_cause is None
    assert plan.min_count >= 1


def test_the_default_p_is_the_same_in_plans_and_calibrations():
    """A plan that took another p than the calibration promised k = 23 where that found 0."""
    certificate = bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(0, 1))
    settings = {"correction": "clopper-pearson", "union": "two-bounds"}
    assert_kept(certificate, 600, 64, None, 7, **settings)
    plan = bincp.plan(certificate, n=600, m=64, **settings)
    assert plan.min_count >= 23
    assert plan.success_rank / 64 > 0.85
    paper = bincp.plan(certificate, n=600, m=64, p="0.6", **settings)
    assert paper.min_count == 0
    assert paper.trivial_cause == (
        "p = 0.6 allows no count of m' = 64 samples above 0; "
        f"p = {plan.success_rank / 64:.4g}, or no `p`, for which one is chosen then, would fix it"
    )


@pytest.mark.parametrize("name", CERTIFICATES)
def test_the_rule_of_the_paper_is_beside_it(name):
    certificate = CERTIFICATES[name]
    plan = bincp.plan(certificate, n=200, m=256, n_classes=10)
    alone = bincp.plan(certificate, n=200, m=256, p="0.6", **CLOPPER_PEARSON)
    assert plan.paper == replace(alone, paper=None)
    assert plan.paper.settings.union == "per-bound"
    rule = quiet(
        BinCP(certificate, correction="clopper-pearson", p="0.6").calibrate,
        np.random.default_rng(1).normal(size=(200, 256)),
        n_classes=10,
    )
    assert plan.paper.min_count == rule.min_count_
    assert plan.wrong_labels <= plan.paper.wrong_labels
    assert plan.paper.paper is None


def test_there_is_no_rule_of_the_paper_where_it_has_none():
    assert bincp.plan(GAUSSIAN, n=200, m=16).paper is None
    assert bincp.plan(GAUSSIAN, n=5000, m=16, n_classes=10, alpha="0.0005").paper is None
    given = ("training-conditional", "0.1")
    assert bincp.plan(GAUSSIAN, n=200, m=16, n_classes=10, guarantee=given).paper is None


# ---- the reference population -----------------------------------------------------------------


def wrong_labels_by_quadrature(plan):
    """Share of wrong labels of a rule of ranks with a fixed count, by integrals over z."""
    z = np.linspace(-9, 9, 4001)
    weights = stats.norm.pdf(z) / stats.norm.pdf(z).sum()

    def mean(function, centre, spread):
        return weights @ function(special.ndtr(centre + spread * z))

    def failing(p):
        return stats.binom.cdf(plan.success_rank - 1, plan.m, p)

    def accepting(p):
        return stats.binom.sf(plan.min_count - 1, plan.n_test_samples, p)

    def wrong(level):
        centre = optimize.brentq(lambda c: mean(failing, c, 3.0) - level, -20, 40)
        return mean(accepting, centre - 6, 2.0)

    levels = stats.beta(plan.rank, plan.n + 1 - plan.rank).ppf((np.arange(200) + 0.5) / 200)
    return np.mean([wrong(level) for level in levels])


@pytest.mark.parametrize(
    ("n", "m", "m_test", "settings"),
    [
        (200, 16, 16, {"p": "0.7"}),
        (50, 8, 32, {"p": "1"}),
        (200, 64, 64, CLOPPER_PEARSON),
        (200, 64, 256, {**CLOPPER_PEARSON, "p": "0.75"}),
        (99, 16, 16, {"correction": "none"}),
    ],
)
def test_wrong_labels_are_those_of_the_stated_population(n, m, m_test, settings):
    plan = bincp.plan(GAUSSIAN, n=n, m=m, n_test_samples=m_test, **settings)
    assert plan.min_count > 0
    # The library has one point in z for 0.15, and 12 levels.
    assert plan.wrong_labels == pytest.approx(wrong_labels_by_quadrature(plan), rel=5e-3)


def test_passes_are_those_of_the_stated_population():
    """Calibrations and inputs that are drawn from it, with an error known from their spread."""
    plan = bincp.plan(GAUSSIAN, n=200, m=16, p="0.8", passes="auto")
    rng = np.random.default_rng(0)
    trials, inputs = 300, 100
    passes, wrong = np.empty(trials), np.empty(trials)
    for i in range(trials):
        points = rng.normal(0, 3, (200, 1)) + rng.normal(size=(200, 16))
        tau = np.sort(np.sort(points, axis=1)[:, -plan.success_rank])[plan.rank - 1]
        means = np.hstack([rng.normal(0, 3, (inputs, 1)), rng.normal(-6, 2, (inputs, 3))])
        hits = means[..., None] + rng.normal(size=(inputs, 4, 16)) >= tau
        tracker = plan.boundaries.start((inputs, 4))
        tracker.update(hits)
        passes[i] = np.maximum(tracker.exits.max(axis=1), 1).mean()
        wrong[i] = tracker.accepted[:, 1:].mean()
    for found, told in ((passes, plan.expected_passes), (wrong, plan.wrong_labels)):
        error = found.std() / math.sqrt(trials)
        # Five standard errors, and what the coarse grid of the library costs.
        assert abs(found.mean() - told) < 5 * error + 0.01 * told


def test_the_default_p_has_fewest_wrong_labels():
    """Of all success ranks, up to one per cent."""
    for certificate in CERTIFICATES.values():
        for union in ("per-bound", "two-bounds"):
            options = {"n": 200, "m": 48, **CLOPPER_PEARSON, "union": union}
            chosen = bincp.plan(certificate, **options)
            wrong = [
                bincp.plan(certificate, **options, p=Fraction(t, 48)).wrong_labels
                for t in range(1, 49)
            ]
            assert chosen.wrong_labels <= 1.01 * min(wrong)
            assert chosen.wrong_labels <= chosen.paper.wrong_labels


@pytest.mark.parametrize("m", [16, 64, 256])
@pytest.mark.parametrize("n", [50, 200])
def test_with_the_default_p_sets_grow_with_the_radius(n, m):
    """And they are no larger than with the p of the paper; up to one per cent, both."""
    before = 0.0
    for radius in (0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.3, 1.6, 2, 2.5):
        certificate = bincp.certify(smoothing.Gaussian(1), balls.L2(radius))
        plan = bincp.plan(certificate, n=n, m=m, **CLOPPER_PEARSON)
        assert plan.wrong_labels >= 0.99 * before
        assert plan.wrong_labels <= 1.01 * plan.paper.wrong_labels
        before = plan.wrong_labels


def test_the_default_p_of_no_correction_defends():
    """p = 1 would ask for all of m' samples, whatever the attack is, for c(1) = 1."""
    for certificate in (GAUSSIAN, CERTIFICATES["strong"], CERTIFICATES["sparse"]):
        for m in (4, 16, 64, 256):
            plan = bincp.plan(certificate, n=200, m=m, correction="none")
            assert plan.success_rank < m
            assert plan.min_count < plan.success_rank


# ---- draws ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "m_test"), [(32, 32), (16, 64), (64, 16), (1, 1), (4, 4)])
@pytest.mark.parametrize("passes", [None, "auto"])
def test_draws_are_those_of_the_worst_probability(m, m_test, passes):
    plan = bincp.plan(GAUSSIAN, n=200, m=m, n_test_samples=m_test, passes=passes)
    rule = plan.boundaries or SequentialRule.curtailed(plan.min_count, m_test)
    worst = rule.expected_draws(np.linspace(0, 1, 5001)).max()
    # The grid misses the peak by little, the search by less.
    assert worst * (1 - 1e-9) <= plan.worst_draws <= worst * 1.0001
    assert plan.worst_draws <= m_test


def test_too_many_draws_are_not_looked_into():
    plan = bincp.plan(GAUSSIAN, n=200, m=20_000, p="0.7")
    assert plan.worst_draws is None
    assert "draws until" not in str(plan)
    assert abs(plan.share - plan.certified_p) < 0.02


def test_a_budget_of_passes_is_kept():
    for budget in (2, 3, 4.5, 8):
        plan = bincp.plan(GAUSSIAN, n=200, m=64, n_test_samples=16, passes=budget)
        assert 1 <= plan.expected_passes <= budget
        assert plan.boundaries is not None
    fixed = bincp.plan(GAUSSIAN, n=200, m=64, n_test_samples=16)
    assert fixed.expected_passes == 16


# ---- text and pictures ------------------------------------------------------------------------


def test_text_names_what_is_planned():
    text = str(bincp.plan(GAUSSIAN, n=200, m=64, n_test_samples=16, n_classes=10))
    for part in ("mixture  ", "clopper-pearson, per-bound, p = 0.6", "wrong labels", "passes",
                 "reference population", "losses of the n points"):  # fmt: skip
        assert part in text
    assert "clopper" not in str(bincp.plan(GAUSSIAN, n=200, m=64))
    early = str(bincp.plan(GAUSSIAN, n=200, m=16, p="0.7", passes="auto"))
    assert "mixture, p = 0.7, stops early" in early
    assert "t-th largest score, t = 12;" in early
    assert "accepted or refused as soon as" in early


def test_trivial_plans_say_why():
    plan = bincp.plan(GAUSSIAN, n=5, m=16)
    assert plan.trivial_cause in str(plan)
    assert "tau = -inf" in str(plan)
    assert plan.worst_draws == 0
    assert "every label" not in str(bincp.plan(GAUSSIAN, n=200, m=64))


def test_plans_are_values():
    plan = bincp.plan(GAUSSIAN, n=200, m=64, passes="auto")
    assert plan == bincp.plan(GAUSSIAN, n=200, m=64, n_test_samples=64, alpha="1/10", passes="auto")
    with pytest.raises(AttributeError):
        plan.min_count = 3


def test_pictures_show_the_wrong_labels(tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    plan = bincp.plan(GAUSSIAN, n=200, m=16, n_classes=10, passes="auto")
    assert plan.plot(axes) is axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    paper = "the paper's: clopper-pearson, per-bound, p = 0.6"
    assert set(lines) == {"mixture, stops early", paper, "this plan"}
    numbers, shares = lines["mixture, stops early"].get_data()
    assert list(numbers) == [1, 2, 4, 8, 16, 32, 64, 128]
    other = bincp.plan(GAUSSIAN, n=200, m=8, n_classes=10, passes="auto")
    assert (shares[3], lines[paper].get_ydata()[3]) == (
        other.wrong_labels,
        other.paper.wrong_labels,
    )
    assert lines["this plan"].get_ydata()[0] == plan.wrong_labels

    for name in ("plan.svg", "plan.png", "plan"):
        plan.plot(tmp_path / name)
    assert b"<svg" in (tmp_path / "plan.svg").read_bytes()
    assert (tmp_path / "plan").read_bytes()[:4] == b"\x89PNG"


def test_what_is_no_picture_is_refused(tmp_path):
    pytest.importorskip("matplotlib")
    plan = bincp.plan(GAUSSIAN, n=200, m=16)
    with pytest.raises(TypeError, match=r"`target` must be a path or matplotlib Axes, got 3"):
        plan.plot(3)
    with pytest.raises(ValueError, match="not supported"):
        plan.plot(tmp_path / "plan.xyz")
    assert list(tmp_path.iterdir()) == []


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"certificate": 0.5}, TypeError, "`certificate` must be a Certificate, got 0.5"),
        ({"n": 0}, ValueError, "`n` must be at least 1, got 0"),
        ({"n": 2.0}, TypeError, "`n` must be an integer, got 2.0"),
        ({"m": 0}, ValueError, "`m` must be in [1, 2147483647], got 0"),
        ({"m": True}, TypeError, "`m` must be an integer, got True"),
        ({"m": 2**31}, ValueError, "`m` must be in [1, 2147483647], got 2147483648"),
        ({"n_test_samples": 0}, ValueError, "`n_test_samples` must be in"),
        ({"n_classes": 0}, ValueError, "`n_classes` must be at least 1, got 0"),
        ({"alpha": 1}, ValueError, "`alpha` must be in (0, 1), got 1"),
        ({"alpha": None}, TypeError, "`alpha` must be"),
        ({"p": 1.5}, ValueError, "`p` must be in (0, 1], got 1.5"),
        ({"eta": 0.01}, ValueError, '`eta` must be given with correction="clopper-pearson" alone'),
        ({"union": "two-bounds"}, ValueError, "`union` must be given with"),
        ({"eta": 0, **CLOPPER_PEARSON}, ValueError, "`eta` must be in (0, 1), got 0"),
        ({"eta": 0.1, **CLOPPER_PEARSON}, ValueError, "`eta` must be below alpha = 0.1, got 0.1"),
        ({"correction": "clopper-pearson"}, TypeError, "plan() needs `n_classes` with"),
        ({"passes": 0.5}, ValueError, "`passes` must be None"),
        ({"passes": 3, **CLOPPER_PEARSON}, ValueError, "`passes` must be None"),
        ({"guarantee": "given"}, ValueError, "`guarantee` must be"),
    ],
)
def test_bad_arguments(changes, error, message):
    arguments = {"certificate": GAUSSIAN, "n": 200, "m": 64} | changes
    with pytest.raises(error) as caught:
        bincp.plan(arguments.pop("certificate"), **arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("strength", [8.5, 9, 10, 12, 30])
def test_a_radius_of_many_standard_deviations_leaves_nothing(strength):
    """There p is 1 in doubles where the attack wins, and the bound at 1 was taken for its own."""
    certificate = bincp.certify(smoothing.Gaussian(1.0), balls.L2(strength))
    made = bincp.plan(certificate, n=200, m=16)
    assert made.min_count == 0
    assert "a smaller radius" in made.trivial_cause
