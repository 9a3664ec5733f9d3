"""Plans: they are what calibration then does, found without any score."""

import math
from fractions import Fraction

import numpy as np
import pytest

import bincp
from bincp import BinCP, SequentialRule, balls, smoothing
from support import choose

CERTIFICATES = {
    "identity": bincp.certify(smoothing.Gaussian(0.25), balls.L2(0)),
    "gaussian": bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.25)),
    "strong": bincp.certify(smoothing.Gaussian(0.25), balls.L2(1)),
    "uniform": bincp.certify(smoothing.Uniform(0.5), balls.L1(0.1)),
    "sparse": bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(1, 1)),
}
GAUSSIAN = CERTIFICATES["gaussian"]


def calibrated(certificate, n, m, **options):
    """Calibrate on scores without ties, and do not mind trivial sets."""
    arguments = {key: options.pop(key) for key in ("n_test_samples", "n_classes") if key in options}
    scores = np.random.default_rng(5).normal(size=(n, m))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bincp.calibration._bincp._warn_if_trivial", lambda rule: None)
        return BinCP(certificate, **options).calibrate(scores, **arguments)


@pytest.mark.parametrize("name", CERTIFICATES)
@pytest.mark.parametrize(
    ("n", "m", "m_test", "alpha", "p"),
    [
        (200, 64, None, "0.1", None),
        (200, 16, 64, "0.1", None),
        (50, 64, 16, "0.1", None),  # count weights
        (50, 64, 16, "0.1", "0.7"),
        (99, 128, 128, "1/5", "2/3"),
        (30, 4, 4, "0.1", None),
        (20, 1, 1, "0.1", None),
        (5, 16, 16, "0.1", None),  # too few points
        (5, 16, 8, "0.1", None),
    ],
)
def test_plans_are_what_calibration_finds(name, n, m, m_test, alpha, p):
    certificate = CERTIFICATES[name]
    plan = bincp.plan(
        certificate, n=n, m=m, n_test_samples=m_test, alpha=alpha, p=p, n_classes=10, eta="0.01"
    )
    rule = calibrated(certificate, n, m, alpha=alpha, p=p, n_test_samples=m_test,
                      correction="mixture")  # fmt: skip
    for field in ("success_rank", "rank", "min_count", "certified_p", "n_test_samples"):
        assert getattr(plan, field) == getattr(rule, f"{field}_"), field
    assert plan.share == rule.min_count_ / rule.n_test_samples_

    same_t = Fraction(plan.compared_success_rank, m)
    for union, found in (
        ("per-bound", plan.per_bound_count),
        ("two-bounds", plan.two_bounds_count),
    ):
        other = calibrated(certificate, n, m, alpha=alpha, p=same_t, n_test_samples=m_test,
                           n_classes=10, union=union, eta="0.01",
                           correction="clopper-pearson")  # fmt: skip
        assert found == other.min_count_, union
    assert plan.ghost_count >= plan.paper_count


@pytest.mark.parametrize(
    ("certificate", "numbers"),
    [
        (GAUSSIAN, {"n": 5, "m": 16}),
        (GAUSSIAN, {"n": 5, "m": 16, "n_test_samples": 8}),
        (CERTIFICATES["strong"], {"n": 50, "m": 32}),
        (CERTIFICATES["strong"], {"n": 50, "m": 32, "n_test_samples": 16}),
    ],
)
def test_trivial_sets_are_foreseen_in_the_words_of_the_warning(certificate, numbers):
    plan = bincp.plan(certificate, **numbers)
    scores = np.random.default_rng(5).normal(size=(numbers["n"], numbers["m"]))
    rule = BinCP(certificate, correction="mixture")
    with pytest.warns(bincp.TrivialSetWarning) as caught:
        rule.calibrate(scores, n_test_samples=numbers.get("n_test_samples"))
    assert str(caught[0].message).endswith(f"prediction set: {plan.trivial_cause}")
    assert plan.trivial_cause in str(plan)
    assert plan.min_count == plan.curtailed_draws == 0


def test_sets_that_are_not_trivial_have_no_cause():
    plan = bincp.plan(GAUSSIAN, n=200, m=64)
    assert plan.trivial_cause is None
    assert "every label" not in str(plan)


@pytest.mark.parametrize(("m", "m_test"), [(32, 32), (16, 64), (128, 16), (1, 1), (4, 4)])
def test_expected_draws_are_those_of_the_worst_probability(m, m_test):
    plan = bincp.plan(GAUSSIAN, n=200, m=m, n_test_samples=m_test)
    rule = calibrated(GAUSSIAN, 200, m, correction="mixture", n_test_samples=m_test)
    p = np.linspace(0, 1, 5001)
    curtailed = SequentialRule.curtailed(plan.min_count, m_test).expected_draws(p).max()
    sequential = rule.sequential_rule().expected_draws(p).max()
    # The grid misses the peak by little, the search by less.
    assert curtailed * (1 - 1e-9) <= plan.curtailed_draws <= curtailed * 1.0001
    assert sequential * (1 - 1e-9) <= plan.sequential_draws <= sequential * 1.0001
    assert plan.sequential_draws <= m_test


def test_too_many_draws_are_not_looked_into():
    plan = bincp.plan(GAUSSIAN, n=200, m=10**6)
    assert plan.curtailed_draws is None
    assert plan.sequential_draws is None
    assert abs(plan.share - plan.limit) < 1e-3
    assert "draws" not in str(plan)


def enough(certificate, n, m, alpha, loss, p):
    t, rank, k = choose(certificate, n, m, m, alpha, p)
    level = min(certificate.lower(t / m), t / m)
    return rank >= math.floor(alpha * (n + 1)) - 1 and k >= (1 - loss) * level * m


@pytest.mark.parametrize("name", ["gaussian", "uniform", "sparse", "identity"])
@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("p", [None, Fraction(3, 4)])
def test_the_smallest_number_of_samples_is_the_first_that_does(name, n, p):
    certificate, alpha = CERTIFICATES[name], Fraction(1, 10)
    plan = bincp.plan(certificate, n=n, m=64, p=p)
    for loss in (Fraction(1, 5), Fraction(1, 10), Fraction(1, 20)):
        found = plan.smallest_samples(loss)
        first = next(m for m in range(8, 1000) if enough(certificate, n, m, alpha, loss, p))
        assert found == first
        share = bincp.plan(certificate, n=n, m=found, p=p).share
        assert share >= (1 - loss) * plan.limit * (1 - 1e-12)


def test_fewer_samples_lose_more():
    plan = bincp.plan(GAUSSIAN, n=200, m=64)
    numbers = [plan.smallest_samples(loss) for loss in ("0.3", "0.1", "0.05", "0.02")]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]
    assert plan.smallest_samples("0.0001") is None


def test_no_number_of_samples_is_enough_for_trivial_sets():
    assert bincp.plan(GAUSSIAN, n=5, m=64).smallest_samples(0.1) is None
    hopeless = bincp.certify(smoothing.Uniform(0.1), balls.L1(1))
    assert bincp.plan(hopeless, n=200, m=64).limit == 0
    assert bincp.plan(hopeless, n=200, m=64).smallest_samples(0.1) is None


def test_recommended_p_grows_with_the_attack():
    radii = (0.02, 0.12, 0.5)
    found = [
        bincp.plan(bincp.certify(smoothing.Gaussian(0.25), balls.L2(r)), n=99, m=64).recommended_p
        for r in radii
    ]
    assert found == [Fraction(3, 5), Fraction(7, 10), Fraction(4, 5)]


@pytest.mark.parametrize("m", [4, 16, 64, 1000])
@pytest.mark.parametrize("delta", [0.01, 0.2, 0.3, 0.9, 1.1, 2.0, 5.0])
def test_recommended_p_of_gaussian_noise_does_not_depend_on_m(delta, m):
    certificate = bincp.certify(smoothing.Gaussian(1.0), balls.L2(delta))
    expected = "0.6" if delta < 0.25 else "0.7" if delta < 1 else "0.8"
    assert bincp.plan(certificate, n=99, m=m).recommended_p == Fraction(expected)


def test_recommended_p_is_high_where_only_high_shares_survive():
    """Three deletions leave 0.10 of a share of 0.8, 0.55 of 0.9 and 0.78 of 0.95."""
    certificate = bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(0, 3))
    found = {m: bincp.plan(certificate, n=200, m=m) for m in (4, 16, 64)}
    assert [float(made.recommended_p) for made in found.values()] == [0.9, 0.9, 0.95]
    assert [made.success_rank for made in found.values()] == [4, 15, 61]
    by_hand = bincp.plan(certificate, n=200, m=64, p="0.8")
    assert found[64].share > 2 * by_hand.share


def test_text_names_what_is_planned():
    text = str(bincp.plan(GAUSSIAN, n=200, m=64, n_classes=10))
    for part in ("mixture", "two-bounds", "per-bound", "limit", "curtailed", "recommended p: 0.8"):
        assert part in text
    assert "per-bound" not in str(bincp.plan(GAUSSIAN, n=200, m=64))
    assert "count weights" in str(bincp.plan(GAUSSIAN, n=200, m=64, n_test_samples=16))


def test_plans_are_values():
    plan = bincp.plan(GAUSSIAN, n=200, m=64)
    assert plan == bincp.plan(GAUSSIAN, n=200, m=64, n_test_samples=64, alpha="1/10")
    with pytest.raises(AttributeError):
        plan.min_count = 3


# ---- pictures --------------------------------------------------------------------------------


def test_pictures_show_the_counts(tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    plan = bincp.plan(GAUSSIAN, n=200, m=64, n_classes=10)
    assert plan.plot(axes) is axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert set(lines) == {"mixture", "clopper-pearson, two-bounds", "clopper-pearson, per-bound",
                          "limit, c(0.8)", "this plan"}  # fmt: skip
    numbers, shares = lines["clopper-pearson, per-bound"].get_data()
    assert numbers[0] == 8
    for i in (0, 20, -1):
        other = bincp.plan(GAUSSIAN, n=200, m=int(numbers[i]), n_classes=10)
        assert shares[i] == other.paper_count / other.m
    assert lines["limit, c(0.8)"].get_ydata()[0] == plan.limit

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
        ({"eta": 0}, ValueError, "`eta` must be in (0, 1), got 0"),
    ],
)
def test_bad_arguments(changes, error, message):
    arguments = {"certificate": GAUSSIAN, "n": 200, "m": 64} | changes
    with pytest.raises(error) as caught:
        bincp.plan(arguments.pop("certificate"), **arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("loss", [0, 1, -0.1, math.nan])
def test_bad_losses(loss):
    with pytest.raises(ValueError, match="`loss` must be"):
        bincp.plan(GAUSSIAN, n=200, m=64).smallest_samples(loss)
