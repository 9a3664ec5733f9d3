"""Values of the rules that were worked out by hand, and limits in which they become others."""

from fractions import Fraction

import numpy as np
import pytest

import bincp
from bincp import Certificate
from bincp.balls import L0, L1, L2, Flips
from bincp.balls import Joint as JointBall
from bincp.certificates import (
    compose,
    from_gdp,
    from_privacy,
    hierarchical,
    mixture,
    product,
    repeat,
)
from bincp.smoothing import Ablation, Gaussian, Joint, Laplace, SparseFlip, Uniform

P = np.array([0.0, 5e-324, 1e-300, 1e-9, 0.1, 0.3, 0.5, 0.75, 0.9, 1 - 1e-9, 1 - 2.0**-53, 1.0])
IDENTITY = Certificate.from_regions([1.0], [1.0])
NOTHING = Certificate.from_regions([1.0, 0.0], [0.0, 1.0])
FLIPS = bincp.certify(SparseFlip(0.01, 0.6), Flips(1, 3))


def gaussian(r: float) -> Certificate:
    return bincp.certify(Gaussian(1.0), L2(r))


@pytest.mark.parametrize("far", [gaussian(40.0), from_privacy(700.0, 0.1)])
def test_a_part_that_is_almost_lost(far: Certificate) -> None:
    """Its chords are steeper than any double; nothing is said of it, and no warning given."""
    near, p = gaussian(0.8), P[1:]
    both, mixed = product(near, far), mixture([near, far], ["1/2", "1/2"])
    assert np.all(both.lower(p) <= np.minimum(near.lower(p), far.lower(p)))
    assert np.all(mixed.lower(p) <= (near.lower(p) + far.lower(p)) / 2 * (1 + 1e-12))
    assert np.all(mixed.upper(p) >= (near.upper(p) + far.upper(p)) / 2 * (1 - 1e-12))


@pytest.mark.parametrize(
    ("noise", "ball"),
    [(Gaussian(0.5), L2), (Gaussian(0.5), L1), (Laplace(0.5), L1), (Uniform(2.0), L1)],
)
def test_radii_add_up_where_shifts_do(noise: bincp.smoothing.Smoothing, ball: type) -> None:
    whole = bincp.certify(noise, ball(0.75))
    parts = compose(bincp.certify(noise, ball(0.5)), bincp.certify(noise, ball(0.25)))
    steps = repeat(bincp.certify(noise, ball(0.25)), 3)
    for made in (parts, steps):
        np.testing.assert_allclose(made.lower(P), whole.lower(P), rtol=1e-14, atol=0)
        np.testing.assert_allclose(made.upper(P), whole.upper(P), rtol=1e-14, atol=0)
        assert made.describe()["tight"]


def test_two_ablated_coordinates_are_better_than_one_twice() -> None:
    one, two = (bincp.certify(Ablation(5, 20), L0(r)) for r in (1, 2))
    assert compose(one, one).lower(0.9) == pytest.approx(0.400, abs=1e-12)
    assert two.lower(0.9) == pytest.approx(0.453, abs=5e-4)
    assert not compose(one, one).describe()["tight"]


@pytest.mark.parametrize(
    "part",
    [
        gaussian(0.5),
        FLIPS,
        IDENTITY,
        NOTHING,
        from_privacy(1.0, 0.1),
        product(FLIPS, NOTHING),
        bincp.certify(Gaussian(0.5, grid=255), L2(0.25, dim=784)),
        Certificate.from_bounds(lambda p: p / 2),
    ],
)
def test_no_change_leaves_every_probability_as_it_is(part: Certificate) -> None:
    made = repeat(part, 0)
    for one in (made, made.inverse(), compose(made, made), mixture([made], [1])):
        assert np.array_equal(one.lower(P), P)
        assert np.array_equal(one.upper(P), P)


@pytest.mark.parametrize("part", [gaussian(0.5), FLIPS, IDENTITY, NOTHING])
def test_limits_of_noise_in_two_levels(part: Certificate) -> None:
    for p in P.tolist():
        assert hierarchical(part, 1.0, 5).lower(p) == part.lower(p)
        assert hierarchical(part, 1.0, 5).upper(p) == part.upper(p)
        assert (hierarchical(part, 0.0, 1).lower(p), hierarchical(part, 0.0, 1).upper(p)) == (0, 1)
        assert hierarchical(part, 0.0, 0).lower(p) == p == hierarchical(part, 0.3, 0).upper(p)
        assert hierarchical(part, 0.5, 2000).lower(p) == 0  # below the smallest double


@pytest.mark.parametrize(("q", "r"), [(0.5, 1), (0.9, 3), (1 - 2.0**-53, 1), (1e-9, 2)])
def test_noise_in_two_levels_over_the_identity(q: float, r: int) -> None:
    made, w = hierarchical(IDENTITY, q, r), Fraction(q) ** r
    for p in P.tolist():
        lower, upper = max(Fraction(p) - 1 + w, Fraction(0)), min(1 - w + Fraction(p), Fraction(1))
        assert lower * (1 - Fraction(1, 2**49)) <= Fraction(made.lower(p)) <= lower
        assert upper <= Fraction(made.upper(p)) <= upper * (1 + Fraction(1, 2**49))


def test_changes_under_privacy() -> None:
    """e^epsilon = 2, delta = 0.02, two changes, p = 0.7: 0.18, and 0.16 by the group formula."""
    step = from_privacy(float(np.log(2)), 0.02)
    assert repeat(step, 2).lower(0.7) == pytest.approx(0.18, abs=1e-12)
    group = from_privacy(float(np.log(4)), 0.02 * (4 - 1) / (2 - 1))
    assert group.lower(0.7) == pytest.approx(0.16, abs=1e-12)
    for r, p in ((1, 0.3), (2, 0.9), (5, 0.99), (20, 0.7)):
        whole = from_privacy(r * 0.25, 0.001 * np.expm1(r * 0.25) / np.expm1(0.25))
        iterated = repeat(from_privacy(0.25, 0.001), r)
        assert iterated.lower(p) >= whole.lower(p) - 1e-15
        assert iterated.upper(1 - p) <= whole.upper(1 - p) + 1e-15


def test_privacy_as_published() -> None:
    """Lecuyer et al.: an event of probability p keeps e^-epsilon (p - delta)."""
    for epsilon, delta in ((0.1, 0.0), (1.0, 1e-5), (3.0, 0.1)):
        made = from_privacy(epsilon, delta)
        published = np.exp(-epsilon) * (P - delta)
        assert np.all(made.lower(P) >= published - 1e-14)
        small = (delta < P) & (P < 0.05)
        np.testing.assert_allclose(made.lower(P)[small], published[small], rtol=1e-9, atol=1e-15)
    assert from_privacy(1.0, 0.25).lower(1.0) == pytest.approx(0.75, abs=1e-15)
    assert from_privacy(0.5, 0.0).upper(1e-300) == pytest.approx(np.exp(0.5) * 1e-300, rel=1e-12)
    assert from_privacy(0.5, 1e-3).upper(1e-300) >= 1e-3
    assert from_privacy(0.0, 1.0).lower(0.9) == 0


def test_gaussian_privacy_adds_up_over_records() -> None:
    for r in (0, 1, 7, 1000):
        whole, steps = from_gdp(0.125 * r), repeat(from_gdp(0.125), r)
        np.testing.assert_allclose(steps.lower(P), whole.lower(P), rtol=1e-14)
    assert np.array_equal(from_gdp(0.5).lower(P), gaussian(0.5).lower(P))


def test_two_parts_worked_out() -> None:
    both = product(gaussian(0.5), gaussian(0.5))
    assert both.lower(0.9) == pytest.approx(0.7172, abs=5e-5)
    assert compose(gaussian(0.5), gaussian(0.5)).lower(0.9) == pytest.approx(0.6109, abs=5e-5)
    shifts = [bincp.certify(Uniform(0.5), L1(r)) for r in (0.2, 0.25)]
    assert product(*shifts).lower(1.0) == pytest.approx(0.6, abs=1e-12)
    assert compose(*shifts).lower(1.0) == pytest.approx(0.55, abs=1e-12)


def test_joint_flips_are_the_product_of_their_regions() -> None:
    scheme = Joint(SparseFlip(0.01, 0.6), SparseFlip(0.01, 0.6))
    joint = bincp.certify(scheme, JointBall(Flips(1, 3), Flips(1, 2)))
    first, second = FLIPS, bincp.certify(SparseFlip(0.01, 0.6), Flips(1, 2))
    made = product(first, second)
    np.testing.assert_allclose(made.lower(P), joint.lower(P), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(made.upper(P), joint.upper(P), rtol=1e-12)
    for p in (0.95, 0.999):
        orders = compose(first, second).lower(p), compose(second, first).lower(p)
        assert made.lower(p) > 1.3 * max(orders)


def test_mixtures_worked_out() -> None:
    for w in ("1/2", "3/10", "1"):
        share = Fraction(w)
        made = mixture([IDENTITY, NOTHING], [w, 1 - share])
        selected = mixture([FLIPS, NOTHING], [w, 1 - share])
        two_levels = hierarchical(FLIPS, float(share), 1)
        for p in P.tolist():
            exact = max(Fraction(p) - 1 + share, Fraction(0))
            assert exact - Fraction(1, 10**14) <= Fraction(made.lower(p)) <= exact
        np.testing.assert_allclose(selected.lower(P), two_levels.lower(P), rtol=1e-9, atol=1e-14)
    same = mixture([FLIPS] * 3, ["1/3"] * 3)
    np.testing.assert_allclose(same.lower(P), FLIPS.lower(P), rtol=1e-12, atol=1e-320)


def test_equal_bounds_that_are_not_convex_give_their_envelope_at_least() -> None:
    """c = max(0, min(p - 1/8, 3 p / 4)), halves, p = 0.6: 0.4125; the envelope has 0.40714."""
    part = Certificate.from_bounds(lambda p: max(0.0, min(p - 0.125, 0.75 * p - 1e-16)))
    made = mixture([part, part], ["1/2", "1/2"])
    assert 0.40714 - 1e-3 <= made.lower(0.6) <= 0.4125


def test_bounds_of_sets_alone_are_no_operands() -> None:
    """Clean (1/2, 1/2), attacked (1, 0): sets allow c(3/4) = 1, a randomised event refutes it."""
    clean, attacked, event = (Fraction(1, 2), Fraction(1, 2)), (1, 0), (Fraction(1, 2), 1)
    p = sum(h * mass for h, mass in zip(event, clean, strict=True))
    assert p == Fraction(3, 4)
    assert sum(h * mass for h, mass in zip(event, attacked, strict=True)) == Fraction(1, 2)
    assert Certificate.from_regions([0.5, 0.5], [1.0, 0.0]).lower(0.75) <= 0.5
