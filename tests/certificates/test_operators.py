"""The built-in operators against the golden tables, mpmath, and brute force with fractions.

Bounds are compared as rationals: a lower bound may never exceed the true value, and an upper bound
may never fall below it, by however little.
"""

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bincp import Certificate, certify
from bincp._core._operators import Operator, sparse_masses
from bincp.balls import L1, L2, Ball, Flips, Linf
from bincp.smoothing import Gaussian, Smoothing, SparseFlip, Uniform
from support import SPARSE_ERROR, Exact, assert_exact_bounds, golden, least

SMALLEST = 5e-324
BELOW_ONE = 1 - 2.0**-53
UNIFORM_ERROR = Fraction("3e-16")

digits = mpmath.mp.clone()
digits.dps = 60


# ---- Gaussian -------------------------------------------------------------------------------


def assert_gaussian_error(bound: float, exact: Exact) -> None:
    """1e-12 relative in both tails, and the spacing of doubles near 0 and near 1."""
    error = abs(Fraction(bound) - exact.value)
    assert error <= exact.value * Fraction("1e-12") + 20 * Fraction(SMALLEST)
    assert error <= exact.complement * Fraction("1e-12") + Fraction(2.0**-52)


def precise_cdf(x: mpmath.mpf) -> mpmath.mpf:
    return digits.erfc(-x / digits.sqrt(2)) / 2


def precise_quantile(p: float) -> mpmath.mpf:
    """Newton's method on log Phi, in the smaller tail."""
    if p > 0.5:
        return -precise_quantile_of(1 - digits.mpf(p))
    return precise_quantile_of(digits.mpf(p))


def precise_quantile_of(p: mpmath.mpf) -> mpmath.mpf:
    x = -digits.sqrt(-2 * digits.log(p)) if p < 0.2 else digits.mpf(0)
    for _ in range(100):
        value = precise_cdf(x)
        slope = digits.npdf(x) / value
        step = (digits.log(value) - digits.log(p)) / slope
        x -= step
        if abs(step) < digits.mpf(10) ** -50:
            return x
    raise AssertionError(f"no quantile of {p}")


def fraction(x: mpmath.mpf) -> Fraction:
    mantissa, exponent = x.man_exp
    return Fraction(mantissa) * Fraction(2) ** exponent


def precise_shift(p: float, shift: mpmath.mpf) -> Exact:
    z = precise_quantile(p) + shift
    return Exact(fraction(precise_cdf(z)), fraction(precise_cdf(-z)), known=45)


@pytest.mark.parametrize("ball", [L1, L2])
def test_gaussian_golden(ball: type[Ball]) -> None:
    rows = golden("gaussian")["rows"]
    for p, r, sigma, lower, not_lower, upper, not_upper in rows:
        certificate = certify(Gaussian(sigma), ball(r))
        exact = Exact.printed(lower, not_lower)
        bound = certificate.lower(p)
        exact.assert_at_least(bound)
        exact = exact if p >= 1e-300 else Exact(Fraction(bound), 1 - Fraction(bound))
        assert_gaussian_error(bound, exact)
        exact = Exact.printed(upper, not_upper)
        bound = certificate.upper(p)
        exact.assert_at_most(bound)
        exact = exact if p >= 1e-300 else Exact(Fraction(bound), 1 - Fraction(bound))
        assert_gaussian_error(bound, exact)
    assert len(rows) == 168


def gaussian_cases() -> Iterator[tuple[float, float]]:
    rng = random.Random(20)
    for _ in range(250):  # any p, any shift
        p = rng.choice(
            [10 ** rng.uniform(-300, -1), 1 - 10 ** rng.uniform(-15.9, -0.3), rng.random()]
        )
        yield p, rng.choice([10 ** rng.uniform(-20, 1.5), rng.uniform(0, 10)])
    for _ in range(250):  # results, or p, near the smallest doubles
        p = rng.choice([rng.random(), 10 ** rng.uniform(-320, -280), BELOW_ONE])
        target = digits.mpf(10) ** rng.uniform(-323.3, -300)
        yield p, abs(float(precise_quantile(p) - precise_quantile_of(target)))


def test_gaussian_against_mpmath() -> None:
    for p, shift in gaussian_cases():
        certificate = certify(Gaussian(1.0), L2(shift))
        lower, upper = certificate.lower(p), certificate.upper(p)
        exact_lower = precise_shift(p, -digits.mpf(shift))
        exact_upper = precise_shift(p, digits.mpf(shift))
        exact_lower.assert_at_least(lower)
        exact_upper.assert_at_most(upper)
        if p >= 1e-300:
            assert_gaussian_error(lower, exact_lower)
            assert_gaussian_error(upper, exact_upper)


def test_p_next_to_one_stays_finite_and_sharp() -> None:
    """a quantile that is infinite at the last number below 1 certifies any radius."""
    for p in (0.99999999, BELOW_ONE, float(np.nextafter(np.float32(1), np.float32(0)))):
        certificate = certify(Gaussian(1.0), L2(100.0))
        assert certificate.lower(p) == 0.0
        certificate = certify(Gaussian(1.0), L2(5.0))
        assert_gaussian_error(certificate.lower(p), precise_shift(p, digits.mpf(-5)))
    assert certify(Gaussian(1.0), L2(5.0)).upper(1e-10) < 0.1


def test_complement_of_a_bound_near_one() -> None:
    """log Phi(5.5) = -1.898956e-8, where the digits are those of the complement."""
    upper = certify(Gaussian(1.0), L2(5.5)).upper(0.5)
    exact = precise_shift(0.5, digits.mpf("5.5"))
    exact.assert_at_most(upper)
    assert math.log1p(-(1 - upper)) == pytest.approx(-1.8989562646189464e-08, rel=1e-8)


@pytest.mark.parametrize(
    ("p", "r", "sigma", "expected"),
    [
        (0.6, 0.25, 0.25, 0.22763655472130379),
        (0.9, 0.12, 0.25, 0.7885937978274018),
        (0.999, 1.0, 0.25, 0.1814725177250188),
        (0.5, 0.75, 0.25, 0.0013498980316300946),
    ],
)
def test_units_of_the_radius(p: float, r: float, sigma: float, expected: float) -> None:
    """radius and sigma are in the same units, so only their ratio matters."""
    assert certify(Gaussian(sigma), L2(r)).lower(p) == pytest.approx(expected, rel=1e-13)
    assert certify(Gaussian(8 * sigma), L2(8 * r)).lower(p) == pytest.approx(expected, rel=1e-13)


def test_gaussian_linf_is_the_corner() -> None:
    linf = certify(Gaussian(0.25), Linf(0.01, dim=3072))
    exact = precise_shift(0.9, -digits.mpf(0.01) * digits.sqrt(3072) / digits.mpf(0.25))
    exact.assert_at_least(linf.lower(0.9))
    assert_gaussian_error(linf.lower(0.9), exact)
    assert "r sqrt(dim)" in linf.describe()["note"]
    square = certify(Gaussian(0.25), Linf(0.01, dim=1024))
    assert square.lower(0.9) == certify(Gaussian(0.25), L2(0.32)).lower(0.9)


@pytest.mark.parametrize("scheme", [Gaussian, Uniform])
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e300])
@pytest.mark.parametrize("r", [5e-324, 1e-10, 100.0, 1e160, 1.7e308])
def test_any_ratio_of_radius_and_scale(
    scheme: type[Gaussian] | type[Uniform], scale: float, r: float
) -> None:
    """A quotient that overflows or underflows must not become NaN, nor a shift of 0."""
    certificate = certify(scheme(scale), L1(r))
    for p in (SMALLEST, 1e-300, 1e-9, 0.5, 0.9, BELOW_ONE):
        lower, upper = certificate.lower(p), certificate.upper(p)
        assert 0.0 <= lower < p < upper <= 1.0
        if r / scale > 100.0:
            assert (lower, upper) == (0.0, 1.0)
        if r / scale < 1e-100 and p > 1e-200:
            assert (lower, upper) == pytest.approx((p, p), rel=1e-11)


# ---- Uniform --------------------------------------------------------------------------------


def test_uniform_golden() -> None:
    rows = golden("uniform")["rows"]
    for p, r, half_width, lower, not_lower, upper, not_upper in rows:
        certificate = certify(Uniform(half_width), L1(r))
        assert_uniform(
            certificate, p, Exact.printed(lower, not_lower), Exact.printed(upper, not_upper)
        )
    assert rows


def assert_uniform(certificate: Certificate, p: float, lower: Exact, upper: Exact) -> None:
    lower.assert_at_least(certificate.lower(p))
    lower.assert_within(certificate.lower(p), UNIFORM_ERROR)
    upper.assert_at_most(certificate.upper(p))
    upper.assert_within(certificate.upper(p), UNIFORM_ERROR)


probabilities = st.one_of(
    st.floats(0, 1),
    st.floats(0, 1e-9),
    st.floats(0, 1e-9).map(lambda p: 1 - p),
    st.sampled_from([0.0, 1.0, 0.5, SMALLEST, BELOW_ONE, 1e-300, 0.5 - 2.0**-54, 0.5 + 2.0**-53]),
)
scales = st.floats(1e-3, 1e3)
radii = st.one_of(st.just(0.0), st.floats(0, 3), st.floats(0, 1e-12), st.floats(0, 1e6))


@settings(deadline=None, max_examples=500)
@given(p=probabilities, r=radii, half_width=scales)
def test_uniform_against_fractions(p: float, r: float, half_width: float) -> None:
    shift = Fraction(r) / (2 * Fraction(half_width))
    lower, upper = max(Fraction(p) - shift, Fraction(0)), min(Fraction(p) + shift, Fraction(1))
    certificate = certify(Uniform(half_width), L1(r))
    assert_uniform(certificate, p, Exact(lower, 1 - lower, 400), Exact(upper, 1 - upper, 400))


# ---- sparse flips ---------------------------------------------------------------------------


SPARSE = golden("sparse")


@pytest.mark.usefixtures("exact_draws")
@pytest.mark.parametrize(
    "cell",
    SPARSE["cells"],
    ids=lambda cell: "-".join(str(cell[key]) for key in ("p_plus", "p_minus", "ra", "rd")),
)
def test_sparse_golden(cell: dict) -> None:
    scheme = SparseFlip(cell["p_plus"], cell["p_minus"])
    certificate = certify(scheme, Flips(cell["ra"], cell["rd"]))
    same_ball = certificate.inverse()  # whose upper is over the ball of the golden cell
    for p, lower, not_lower, upper, not_upper in zip(
        SPARSE["p"],
        cell["lower"],
        cell["one_minus_lower"],
        cell["upper"],
        cell["one_minus_upper"],
        strict=True,
    ):
        exact = Exact.printed(lower, not_lower)
        exact.assert_at_least(certificate.lower(p))
        exact.assert_within(certificate.lower(p), SPARSE_ERROR)
        exact = Exact.printed(upper, not_upper)
        exact.assert_at_most(same_ball.upper(p))
        exact.assert_within(same_ball.upper(p), SPARSE_ERROR)


def points(additions: int, deletions: int, scheme: SparseFlip) -> tuple[list, list]:
    """Probabilities of every outcome of the differing bits, at the clean and perturbed input."""
    p_plus, p_minus = Fraction(scheme.p_plus), Fraction(scheme.p_minus)
    clean, perturbed = [], []
    for outcome in itertools.product((0, 1), repeat=additions + deletions):
        chances = [Fraction(1), Fraction(1)]
        for i, bit in enumerate(outcome):
            original = 0 if i < additions else 1
            for j, start in enumerate((original, 1 - original)):
                one = p_plus if start == 0 else 1 - p_minus
                chances[j] *= one if bit else 1 - one
        clean.append(chances[0])
        perturbed.append(chances[1])
    return clean, perturbed


def exact_regions(additions: int, deletions: int, scheme: SparseFlip) -> tuple[list, list]:
    """Masses of the regions: the number of differing bits that end up unlike the clean input."""
    p_plus, p_minus = Fraction(scheme.p_plus), Fraction(scheme.p_minus)

    def binomial(n: int, p: Fraction) -> list[Fraction]:
        return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]

    def convolve(u: list[Fraction], v: list[Fraction]) -> list[Fraction]:
        out = [Fraction(0)] * (len(u) + len(v) - 1)
        for (i, a), (j, b) in itertools.product(enumerate(u), enumerate(v)):
            out[i + j] += a * b
        return out

    clean = convolve(binomial(additions, p_plus), binomial(deletions, p_minus))
    perturbed = convolve(binomial(additions, 1 - p_minus), binomial(deletions, 1 - p_plus))
    return clean, perturbed


# 0 and 1, a sum of 1, a sum next to 1, above 1, and tiny flips
FLIPS = [
    (0.01, 0.6),
    (0.25, 0.25),
    (0.5, 0.5),
    (0.25, 0.75),
    (0.4, 0.6),  # 0.4 + 0.6 is not 1 in exact arithmetic
    (0.1, 0.9),
    (0.7, 0.8),
    (1e-10, 0.5),
    (0.3, 1e-300),
    (BELOW_ONE, 0.3),
    (0.0, 0.4),
    (0.4, 0.0),
    (1.0, 0.3),
    (0.3, 1.0),
    (0.0, 0.0),
    (1.0, 1.0),
    (0.0, 1.0),
    (1.0, 0.0),
    (0.0, 1e-300),
    (1e-300, 0.5),
]
GRID = [0.0, SMALLEST, 1e-300, 1e-12, 0.1, 1 / 3, 0.5, 0.7, 0.9, 1 - 1e-12, BELOW_ONE, 1.0]


@pytest.mark.usefixtures("exact_draws")
@pytest.mark.parametrize("flips", FLIPS)
def test_sparse_against_every_point_of_small_cubes(flips: tuple[float, float]) -> None:
    scheme = SparseFlip(*flips)
    for additions, deletions in itertools.product(range(4), repeat=2):
        clean, perturbed = points(additions, deletions, scheme)
        certificate = certify(scheme, Flips(additions, deletions))
        for p in GRID:
            assert_exact_bounds(certificate, clean, perturbed, p)


@pytest.mark.parametrize("flips", [(0.01, 0.6), (0.0, 0.4), (0.7, 0.8)])
@pytest.mark.parametrize("radii", [(6, 0), (0, 6), (1, 5), (4, 2)])
def test_sparse_against_every_point_of_larger_cubes(
    flips: tuple[float, float], radii: tuple[int, int]
) -> None:
    scheme = SparseFlip(*flips)
    clean, perturbed = points(*radii, scheme)
    certificate = certify(scheme, Flips(*radii))
    for p in GRID:
        assert_exact_bounds(certificate, clean, perturbed, p)


@pytest.mark.parametrize("flips", [(0.01, 0.6), (0.3, 0.2), (0.7, 0.8), (0.0, 0.4)])
def test_the_worst_input_is_at_the_corner_of_the_ball(flips: tuple[float, float]) -> None:
    """Fewer flips than allowed never hurt more."""
    scheme = SparseFlip(*flips)
    for p in (0.05, 0.5, 0.9):
        inside = [least(*points(a, d, scheme), Fraction(p)) for a in range(3) for d in range(3)]
        worst = Exact(min(inside), 1 - min(inside), 400)
        bound = certify(scheme, Flips(2, 2)).lower(p)
        worst.assert_at_least(bound)
        worst.assert_within(bound, SPARSE_ERROR)


flip_probabilities = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1e-12, BELOW_ONE]),
).filter(lambda p: p == 0 or p >= 1e-300)


@pytest.mark.usefixtures("exact_draws")
@settings(deadline=None, max_examples=200)
@given(
    p_plus=flip_probabilities,
    p_minus=flip_probabilities,
    additions=st.integers(0, 8),
    deletions=st.integers(0, 8),
    p=probabilities,
)
@example(p_plus=0.0, p_minus=1e-300, additions=0, deletions=2, p=1.0)  # a mass of 1e-600
@example(p_plus=1e-300, p_minus=1e-300, additions=8, deletions=8, p=SMALLEST)
@example(p_plus=0.0, p_minus=2.6e-64, additions=5, deletions=0, p=SMALLEST)  # a mass of 1e-318
def test_sparse_against_fractions(
    p_plus: float, p_minus: float, additions: int, deletions: int, p: float
) -> None:
    scheme = SparseFlip(p_plus, p_minus)
    clean, perturbed = exact_regions(additions, deletions, scheme)
    certificate = certify(scheme, Flips(additions, deletions))
    # Subnormal masses have few digits. What is lost with them is on the safe side, but may be all.
    least_mass, least_exact_mass = Fraction(1, 2**1080), Fraction(1, 2**960)
    inexact = any(least_mass < mass < least_exact_mass for mass in clean + perturbed)
    assert_exact_bounds(certificate, clean, perturbed, p, Fraction(1) if inexact else SPARSE_ERROR)


@pytest.mark.parametrize(
    ("flips", "radii"),
    [
        ((1 / 64, 5 / 8), (60, 90)),
        ((0.0, 3 / 8), (0, 900)),  # a region of mass 1e-383
        ((2.0**-14, 1 / 4), (150, 0)),
        ((7 / 8, 3 / 4), (40, 9)),
    ],
)
def test_big_radii_against_fractions(flips: tuple[float, float], radii: tuple[int, int]) -> None:
    """Masses that underflow are ordinary cases. (Dyadic flips keep the fractions short.)"""
    scheme = SparseFlip(*flips)
    clean, perturbed = exact_regions(*radii, scheme)
    certificate = certify(scheme, Flips(*radii))
    for p in GRID:
        assert_exact_bounds(certificate, clean, perturbed, p)


@pytest.mark.parametrize(
    ("flips", "radii", "p", "expected"),
    [
        ((0.01, 0.6), (10, 10), 1.0, 1.0),
        ((0.01, 0.6), (20, 20), 1.0, 1.0),
        ((0.01, 0.6), (10, 10), 0.9999999999999991, 0.984030164521026),
        ((0.01, 0.6), (5, 5), 0.9999999999999991, 0.9999988877052317),
        ((0.001, 0.4), (10, 0), 1.0, 1.0),
        ((0.01, 0.6), (1, 1), 1.0, 1.0),
    ],
)
def test_f001_f002_certainty_and_its_neighbours(
    flips: tuple[float, float], radii: tuple[int, int], p: float, expected: float
) -> None:
    """a budget left over by rounding became 175, or slightly above 1, at p = 1."""
    bound = certify(SparseFlip(*flips), Flips(*radii)).lower(p)
    assert bound <= 1.0
    assert bound == (expected if p == 1.0 else pytest.approx(expected, rel=1e-12))


def test_f003_kind_no_mass_is_negative_or_lost_at_any_radius() -> None:
    """The alternating recurrence loses every digit at 20 + 20; sums of positive terms do not."""
    for additions, deletions in [(10, 10), (20, 20), (200, 200), (1000, 1000)]:
        n = additions + deletions + 1
        clean, perturbed = np.empty(n), np.empty(n)
        sparse_masses(additions, deletions, 0.01, 0.6, clean, perturbed)
        assert (clean > 0).all()
        assert (perturbed > 0).all()
        assert math.fsum(clean) == pytest.approx(1.0, abs=1e-15)
        assert math.fsum(perturbed) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("radii", [(0, 0), (1, 0), (0, 3), (4, 5), (30, 20)])
@pytest.mark.parametrize("flips", [(0.01, 0.6), (0.3, 0.9), (0.0, 0.4)])
def test_masses_against_fractions(flips: tuple[float, float], radii: tuple[int, int]) -> None:
    scheme = SparseFlip(*flips)
    exact_clean, exact_perturbed = exact_regions(*radii, scheme)
    if sum(flips) > 1:  # the order of decreasing ratio
        exact_clean.reverse()
        exact_perturbed.reverse()
    clean, perturbed = np.empty(sum(radii) + 1), np.empty(sum(radii) + 1)
    sparse_masses(*radii, *flips, clean, perturbed)
    np.testing.assert_allclose(clean, [float(mass) for mass in exact_clean], rtol=9e-16, atol=0)
    np.testing.assert_allclose(
        perturbed, [float(mass) for mass in exact_perturbed], rtol=9e-16, atol=0
    )


def test_masses_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="must have 4 elements"):
        sparse_masses(1, 2, 0.1, 0.2, np.empty(3), np.empty(4))


@pytest.mark.parametrize("flips", [(0.25, 0.75), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0)])
def test_noise_that_forgets_the_input_loses_nothing(flips: tuple[float, float]) -> None:
    certificate = certify(SparseFlip(*flips), Flips(50, 70))
    for p in GRID:
        assert certificate.lower(p) == certificate.upper(p) == p


# ---- what every operator obeys --------------------------------------------------------------


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Smoothing, Ball, Ball]:
    """A scheme, a ball, and a ball that contains it."""
    kind = draw(st.sampled_from(["gaussian", "uniform", "sparse"]))
    if kind == "sparse":
        scheme = SparseFlip(draw(flip_probabilities), draw(flip_probabilities))
        numbers = [draw(st.integers(0, 12)) for _ in range(4)]
        small, more = Flips(*numbers[:2]), numbers[2:]
        return scheme, small, Flips(small.additions + more[0], small.deletions + more[1])
    r, more = draw(radii), draw(radii)
    if kind == "gaussian":
        return Gaussian(draw(scales)), L2(r), L2(r + more)
    return Uniform(draw(scales)), L1(r), L1(r + more)


LAW_ERROR = 1e-13


@settings(deadline=None, max_examples=400)
@given(pair=pairs(), p=probabilities, q=probabilities)
def test_law_of_equivalence(pair: tuple[Smoothing, Ball, Ball], p: float, q: float) -> None:
    """upper(p) >= q <=> p >= lower(q); rounding is outward, so one direction holds exactly."""
    certificate = certify(*pair[:2])
    lower, upper = certificate.lower(q), certificate.upper(p)
    if not upper >= q:
        assert not p >= lower + LAW_ERROR
    if upper >= q + LAW_ERROR:
        assert p >= lower
    assert certificate.upper(lower) <= certificate.upper(q)
    # What the clean input has is always reachable from what the perturbed one keeps at least.
    assert certificate.upper(min(lower + LAW_ERROR, 1.0)) >= q


@settings(deadline=None, max_examples=400)
@given(pair=pairs(), p=probabilities)
def test_range_and_order(pair: tuple[Smoothing, Ball, Ball], p: float) -> None:
    certificate = certify(*pair[:2])
    assert 0.0 <= certificate.lower(p) <= p <= certificate.upper(p) <= 1.0
    for end in (0.0, 1.0):
        assert 0.0 <= certificate.lower(end) <= end <= certificate.upper(end) <= 1.0


@settings(deadline=None, max_examples=400)
@given(pair=pairs(), p=probabilities, q=probabilities)
@example(pair=(SparseFlip(0.0, 1e-12), Flips(1, 0), Flips(1, 0)), p=0.5, q=0.501953125)
def test_monotone(pair: tuple[Smoothing, Ball, Ball], p: float, q: float) -> None:
    """Up to rounding: relative, or that of 1 - p where p or the bound is large."""
    low, high = sorted((p, q))
    certificate = certify(*pair[:2])
    for bound in (certificate.lower, certificate.upper):
        first, second = bound(low), bound(high)
        rounding = 2.0**-51 if max(high, first) > 0.5 else 0.0
        assert first <= second * (1 + 1e-12) + 8 * SMALLEST + rounding


@settings(deadline=None, max_examples=400)
@given(pair=pairs(), p=probabilities)
def test_a_larger_ball_certifies_less(pair: tuple[Smoothing, Ball, Ball], p: float) -> None:
    scheme, small, large = pair
    inner, outer = certify(scheme, small), certify(scheme, large)
    assert outer.lower(p) <= inner.lower(p) + LAW_ERROR
    assert outer.upper(p) >= inner.upper(p) - LAW_ERROR


@pytest.mark.usefixtures("exact_draws")
@settings(deadline=None, max_examples=400)
@given(pair=pairs(), p=probabilities)
def test_mirror(pair: tuple[Smoothing, Ball, Ball], p: float) -> None:
    """What a set keeps at least, its complement gains at most: over one and the same ball."""
    assume(1 - (1 - p) == p)
    certificate = certify(*pair[:2])
    upper_same_ball = certificate.inverse().upper
    assert certificate.lower(p) == pytest.approx(1 - upper_same_ball(1 - p), abs=LAW_ERROR)


def test_radius_zero_changes_nothing() -> None:
    pairs = [
        (Gaussian(0.3), L2(0.0)),
        (Gaussian(0.3), L1(0)),
        (Gaussian(0.3), Linf(0.0, dim=10)),
        (Uniform(0.3), L1(0.0)),
        (SparseFlip(0.1, 0.2), Flips(0, 0)),
    ]
    for scheme, ball in pairs:
        certificate = certify(scheme, ball)
        for p in GRID:
            assert certificate.lower(p) == certificate.upper(p) == p


# ---- the compiled objects -------------------------------------------------------------------


def test_compiled_operator_refuses_an_out_of_another_length() -> None:
    with pytest.raises(ValueError, match="`out` must have 2 elements, got 3"):
        Operator().lower_fill(np.zeros(2), np.zeros(3))


def test_compiled_operator_refuses_an_out_that_overlaps_p() -> None:
    memory, operator = np.linspace(0, 1, 9), Operator()
    for p, out in ((memory, memory), (memory[:5], memory[4:]), (memory[3:6], memory[1:4])):
        for fill in (operator.lower_fill, operator.upper_fill):
            with pytest.raises(ValueError, match="`out` must not overlap `p`, got memory of `p`"):
                fill(p, out)
    operator.lower_fill(memory[:4], memory[4:8])  # side by side
    operator.lower_fill(memory[:0], memory[:0])
    np.testing.assert_array_equal(memory[4:8], memory[:4])


def test_compiled_operator_answers_nan_outside_the_unit_interval() -> None:
    for scheme, ball in [
        (Gaussian(1), L2(1)),
        (Uniform(1), L1(1)),
        (SparseFlip(0.1, 0.2), Flips(1, 1)),
        (SparseFlip(0.1, 0.2), Flips(0, 0)),
    ]:
        operator = certify(scheme, ball)._operator
        for p in (-1e-9, 1 + 1e-12, math.nan, math.inf):
            assert math.isnan(operator.lower(p))
            assert math.isnan(operator.upper(p))


def test_a_bare_operator_is_the_identity() -> None:
    operator = Operator()
    assert operator.name == "identity"
    assert operator.lower(0.3) == operator.upper(0.3) == 0.3
