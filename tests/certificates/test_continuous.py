"""The certificates of additive noise: golden rows, mpmath, and a numeric Neyman-Pearson solve.

The numeric solve knows nothing of the closed forms: it cuts the plane into cells, gives each its
density at the clean input and at the perturbed one, and fills cells in the order of their ratio.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bincp import Certificate, certify
from bincp._core import _operators as operators
from bincp.balls import L1, L2, Linf
from bincp.certificates._builtins import _precise
from bincp.certificates._builtins._distance import sqrt_above
from bincp.certificates._law import check_law
from bincp.errors import CertificateError
from bincp.smoothing import (
    Exp1,
    Exp2,
    ExpInf,
    Expp,
    Gaussian,
    Laplace,
    Pareto,
    PowInf,
    Smoothing,
    Uniform,
    UniformBall,
)
from support import golden

GOLDEN = golden("noise_family")
BALLS = {"1": L1, "2": L2, "inf": Linf}
NOISE = {
    noise.__name__: noise
    for noise in (Exp1, Exp2, ExpInf, Expp, Gaussian, Laplace, Pareto, PowInf, Uniform, UniformBall)
}
SPACING = 2.0**-53
# The outward steps that location.h states, and what inverting adds.
MIDDLE_ERROR, TAIL_ERROR = 3e-14, 3e-12

digits = mpmath.mp.clone()
digits.dps = 45
mpf = digits.mpf

ALL_SCHEMES = [
    Gaussian(0.5),
    Laplace(0.5),
    Uniform(0.5),
    Expp(0.5, 0.5),
    Expp(0.5, 1),
    Expp(0.5, 1.5),
    Expp(0.5, 2),
    Expp(0.5, 4),
    Expp(0.5, 50),
    Pareto(0.5, 0.5),
    Pareto(0.5, 3),
    UniformBall(2.0),
    Exp1(0.5),
    Exp2(0.5),
    Exp2(0.5, 2),
    ExpInf(0.5),
    ExpInf(0.5, 2),
    ExpInf(0.5, 0.5, 1.5),
    PowInf(0.5, 12),
]


def certificate(noise: str, norm: str, parameters: dict, dim: int, scale: float, r: float):
    return certify(NOISE[noise](scale, **parameters), BALLS[norm](r, dim))


# ---- golden rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["bounds"], ids=lambda row: "-".join(map(str, row[:7])))
def test_golden_bounds(row):
    noise, norm, parameters, dim, scale, p, r, low, high = row
    made = certificate(noise, norm, parameters, dim, scale, r)
    lower, upper = Fraction(made.lower(p)), Fraction(made.upper(p))
    low, high = Fraction(low), Fraction(high)
    digit = Fraction(1, 10**20)  # the last one printed
    assert low * (1 - Fraction(MIDDLE_ERROR)) - Fraction(4 * SPACING) <= lower <= low + digit
    assert high - digit <= upper <= high * (1 + Fraction(MIDDLE_ERROR)) + Fraction(4 * SPACING)


@pytest.mark.parametrize(
    "row",
    [row for row in GOLDEN["radii"] if "radius_exact" in row],
    ids=lambda row: "{noise}-{norm}-{params}-{dim}-{sigma}".format(**row),
)
def test_golden_radii_reach_one_half(row):
    """At the exact radius the bound is 1/2, within the rounding of scale and radius."""
    for p, radius in zip(row["p"], row["radius_exact"], strict=True):
        made = certificate(
            row["noise"], row["norm"], row["params"], row["dim"], row["lambd"], float(radius)
        )
        assert abs(made.lower(p) - 0.5) <= 2e-12, p
        assert abs(made.upper(1 - p) - 0.5) <= 2e-12, p


@pytest.mark.parametrize(
    "row",
    [row for row in GOLDEN["radii"] if "radius_exact" not in row],
    ids=lambda row: "{noise}-{norm}-{params}-{dim}-{sigma}".format(**row),
)
def test_published_radii_reach_one_half(row):
    """The published code computes these in single precision, or by interpolation."""
    for p, radius in zip(row["p"], row["radius"], strict=True):
        r = max(radius, 0.0)
        made = certificate(row["noise"], row["norm"], row["params"], row["dim"], row["lambd"], r)
        assert abs(made.lower(p) - 0.5) <= 2e-4, p


@pytest.mark.parametrize(
    ("ball", "expected"),
    [(L1, 0.7556624327025936), (L2, 0.0), (Linf, 0.0)],
    ids=["l1", "l2", "linf"],
)
def test_f005_uniform_noise_converts_the_radius(ball, expected):
    scheme = Uniform(0.5 * math.sqrt(3))
    assert certify(scheme, ball(0.25, 3072)).lower(0.9) == pytest.approx(expected, abs=1e-15)


# ---- kernels against mpmath -----------------------------------------------------------------


class KnownTail:
    """A symmetric law: `tail` is the mass beyond x >= 0, `quantile` its inverse."""

    def out(self, t, shift):
        return self.tail(self.quantile(t) + shift)

    def inwards(self, t, shift):
        """Return the mass that is left and on which side of the centre it is."""
        x = self.quantile(t) - shift
        return (self.tail(x), False) if x >= 0 else (self.tail(-x), True)

    def bounds(self, p: float, shift: float):
        """Return the exact lower and upper bound."""
        p, shift = mpf(p), mpf(shift)
        q = 1 - p
        if p <= 0.5:
            mass, crossed = self.inwards(p, shift)
            return self.out(p, shift), 1 - mass if crossed else mass
        mass, crossed = self.inwards(q, shift)
        return mass if crossed else 1 - mass, 1 - self.out(q, shift)

    def quantile(self, t):
        """Newton's iteration on log tail, which is concave: from the right it cannot overshoot."""
        depth = -digits.log(2 * t)
        x = self.start(depth)
        for _ in range(200):
            tail = self.tail(x)
            step = digits.log(tail / t) * tail / self.density(x)
            x += step
            if abs(step) <= 1e-38 * abs(x):
                break
        return x


class ReferenceExpp(KnownTail):
    def __init__(self, power: float) -> None:
        self.power, self.a = mpf(power), 1 / mpf(power)
        self.gamma = digits.gamma(1 + self.a)

    def tail(self, x):
        return digits.gammainc(self.a, x**self.power, regularized=True) / 2

    def density(self, x):
        return digits.exp(-(x**self.power)) / (2 * self.gamma)

    def start(self, depth):
        return min(depth * self.gamma, depth**self.a)

    def operator(self, shift: float):
        return operators.exponential_power(shift, float(self.power), float(self.gamma))


class ReferenceSech(KnownTail):
    """For alpha = (dim - 1)/2 the law of Exp2 noise, as the golden formula has it."""

    def __init__(self, alpha: float) -> None:
        self.alpha = mpf(alpha)
        self.norm = digits.exp(digits.loggamma(self.alpha + 0.5) - digits.loggamma(self.alpha))
        self.norm /= digits.sqrt(digits.pi)

    def tail(self, x):
        a = self.alpha
        return digits.betainc(a, a, 0, 1 / (1 + digits.exp(2 * x)), regularized=True)

    def density(self, x):
        return self.norm * digits.sech(x) ** (2 * self.alpha)

    def start(self, depth):
        q = depth / self.alpha
        far = q / 2 + digits.log(1 + digits.sqrt(1 - digits.exp(-q)))
        return min(depth / (2 * self.norm), far)

    def operator(self, shift: float):
        return operators.sech_power(shift, float(self.alpha), float(self.norm))


class ReferencePareto(KnownTail):
    def __init__(self, a: float) -> None:
        self.gamma = 1 + 1 / mpf(a)
        self.kappa = digits.digamma(1 / self.gamma) + digits.euler

    def quantile(self, t):
        u, beta = 1 - 2 * t, 1 / self.gamma
        if t > 1e-15:
            return u * digits.hyp2f1(1, beta, beta + 1, u**self.gamma)
        v = -digits.expm1(self.gamma * digits.log1p(-2 * t)) if t > 1e-30 else 2 * t * self.gamma
        return beta * (-digits.log(v) - self.kappa - (1 - beta) * v)

    def tail(self, x):
        return bisect(lambda depth: self.quantile(digits.exp(-depth) / 2) - x, 0, 2000, 160) / 2

    def operator(self, shift: float):
        return operators.pareto(shift, float(self.gamma), float(self.kappa))


class ReferenceRoot(KnownTail):
    """The published radius of density exp(-sqrt|x|), as a distance from the end of its range."""

    end = digits.pi**2 / 3

    def mass(self, c):
        if c < 1e-15:
            return c**2 / 2 * (1 - 2 * c / 3 + c**2 / 4)
        return digits.gammainc(2, 0, c, regularized=True)

    def edge(self, c):
        if c < 1e-15:
            return 2 * (c - c**2 / 4)
        far = digits.exp(-c)
        return self.end - 2 * (-c * digits.log1p(-far) + digits.polylog(2, far))

    def solve(self, increasing: Callable, target):
        logarithm = bisect(lambda z: increasing(digits.exp(z)) - target, -400, 6, 160, raw=True)
        return digits.exp(logarithm)

    def from_edge(self, edge):
        return self.mass(self.solve(self.edge, edge)) / 2 if edge > 0 else mpf(0)

    def out(self, t, shift):
        return self.from_edge(self.edge(self.solve(self.mass, 2 * t)) - shift)

    def inwards(self, t, shift):
        edge = self.edge(self.solve(self.mass, 2 * t)) + shift
        if edge <= self.end:
            return self.from_edge(edge), False
        return self.from_edge(2 * self.end - edge), True

    def operator(self, shift: float):
        return operators.half_power(shift)


class ReferenceLaplace(KnownTail):
    def quantile(self, t):
        return -digits.log(2 * t)

    def tail(self, x):
        return digits.exp(-x) / 2

    def operator(self, shift: float):
        return operators.laplace(shift)


def bisect(increasing: Callable, low: float, high: float, steps: int, raw: bool = False):
    """Return exp(-root), or the root itself."""
    low, high = mpf(low), mpf(high)
    for _ in range(steps):
        middle = (low + high) / 2
        if increasing(middle) < 0:
            low = middle
        else:
            high = middle
    return low if raw else digits.exp(-low)


def probabilities(source: random.Random, n: int) -> list[float]:
    kinds = [
        lambda: source.random(),
        lambda: 10 ** source.uniform(-300, -1),
        lambda: 1 - 2.0 ** -source.randint(2, 53),
        lambda: source.uniform(0.45, 0.55),
    ]
    return [kinds[i % 4]() for i in range(n)]


def assert_tight(bound: float, exact, outward: int, error: float) -> None:
    """`bound` is beyond `exact` in the direction `outward`, by little for the nearer tail."""
    beyond = (mpf(bound) - exact) * outward
    nearer = exact if exact <= 0.5 else 1 - exact
    rounding = 2.0**-52 if exact > 0.5 else 2e-323
    assert beyond >= 0, (bound, exact)
    assert beyond <= error * nearer + rounding, (bound, exact, beyond / max(nearer, mpf("1e-330")))


REFERENCES = [
    *((f"expp-{power}", ReferenceExpp(power), 1 + power / 4) for power in (1, 1.3, 4, 20, 100)),
    *((f"sech-{a}", ReferenceSech(a), 1) for a in (0.5, 1, 4.5, 15.5, 16, 40, 391.5)),
    *((f"pareto-{a}", ReferencePareto(a), 1) for a in (0.1, 1, 3, 100)),
]


@pytest.mark.parametrize(
    ("law", "loss"), [entry[1:] for entry in REFERENCES], ids=[entry[0] for entry in REFERENCES]
)
def test_shift_in_a_quantile(law, loss):
    """`loss`: at a large power one unit of x is a large part of a tail."""
    source = random.Random(7)
    width = max(float(getattr(law, "alpha", 1)), 1) ** -0.5
    for p in probabilities(source, 8 if isinstance(law, ReferencePareto) else 24):
        shift = width * 10 ** source.uniform(-4, 1)
        made = law.operator(shift)
        low, high = law.bounds(p, shift)
        far = min(p, 1 - p) < 1e-9 or min(low, 1 - high) < 1e-9
        error = (TAIL_ERROR if far else MIDDLE_ERROR) * loss
        assert_tight(made.lower(p), low, -1, error)
        assert_tight(made.upper(p), high, 1, error)


def test_laplace_shift():
    source, law = random.Random(3), ReferenceLaplace()
    for p in probabilities(source, 400):
        shift = 10 ** source.uniform(-17, 3)
        low, high = law.bounds(p, shift)
        assert_tight(operators.laplace(shift).lower(p), low, -1, 2e-15)
        assert_tight(operators.laplace(shift).upper(p), high, 1, 2e-15)


def test_shift_in_the_radius_of_root_noise():
    """Near an end of the range the result is the square of a difference, as ill conditioned."""
    source, law = random.Random(11), ReferenceRoot()
    for p in probabilities(source, 16):
        shift = 10 ** source.uniform(-4, 0.8)
        low, high = law.bounds(p, shift)
        assert_tight(law.operator(shift).lower(p), low, -1, 1e-12)
        assert_tight(law.operator(shift).upper(p), high, 1, 1e-12)


@pytest.mark.parametrize("alpha", [75263.5, 1e9, 4.6e18])
def test_high_dimensions_are_nearly_normal(alpha):
    """sech(x)^(2 alpha) is a normal density but for 1 / alpha, relatively."""
    made = operators.sech_power(0.7 / math.sqrt(2 * alpha), alpha, math.sqrt(alpha / math.pi))
    for p in (1e-12, 0.1, 0.6, 0.999):
        normal = scipy.stats.norm.cdf(scipy.stats.norm.ppf(p) - 0.7)
        assert made.lower(p) == pytest.approx(normal, rel=100 / alpha + 1e-12)


def test_exp2_in_three_dimensions_is_logistic():
    """For dim = 3, I_z(1, 1) = z, so that the law of R / scale is logistic."""
    made = certify(Exp2(0.5), L2(0.25, 3))
    for p in (1e-200, 0.01, 0.3, 0.5, 0.9, 0.999999):
        odds = p / (1 - p) * math.exp(-2 * 0.25 / (0.5 * 2))
        assert made.lower(p) == pytest.approx(odds / (1 + odds), rel=1e-12)


# ---- constants ------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1.0, 1.001, 1.5, 3.0, 77.0, 1e300])
def test_gamma_constant(power):
    assert _precise.gamma(1 + 1 / Fraction(power)) == float(digits.gamma(1 + 1 / mpf(power)))


@pytest.mark.parametrize("twice", [1, 2, 3, 9, 3071, 150527, 2**63 - 2])
def test_sech_norm(twice):
    alpha = mpf(twice) / 2
    norm = digits.exp(digits.loggamma(alpha + 0.5) - digits.loggamma(alpha))
    expected = norm / digits.sqrt(digits.pi)
    error = 1e-15 if twice < 2**50 else 1e-9  # of the reference: loggamma is 1e20 there
    assert _precise.sech_norm(Fraction(twice, 2)) == pytest.approx(float(expected), rel=error)


@pytest.mark.parametrize("a", [1e-6, 0.1, 1.0, 3.0, 1e12])
def test_digamma_rise(a):
    beta = mpf(a) / (mpf(a) + 1)
    with digits.workdps(80):
        expected = float(digits.digamma(beta) + digits.euler)
    got = _precise.digamma_rise(Fraction(a) / (Fraction(a) + 1))
    assert got == pytest.approx(expected, rel=1e-15)


def assert_rounded_up(got: float, exact) -> None:
    assert 0 <= mpf(got) - exact <= 2.3e-16 * exact + mpf("1e-323"), (got, exact)


@pytest.mark.parametrize("dim", [1, 2, 3, 30, 784, 150528])
@pytest.mark.parametrize("ratio", [1e-300, 1e-9, 1e-3, 0.03, 0.3, 0.70710678, 0.71, 0.9, 0.999999])
def test_overlaps_of_cubes_and_balls(dim, ratio):
    with digits.workdps(400):
        cube = 1 - (1 - mpf(ratio)) ** dim
        half = (mpf(dim) + 1) / 2
        ball = (
            mpf(1)
            if mpf(ratio) ** 2 * half > 100
            else digits.betainc(mpf(1) / 2, half, 0, mpf(ratio) ** 2, regularized=True)
        )
    assert_rounded_up(_precise.cube_shift(Fraction(ratio), dim), min(cube, 1))
    assert_rounded_up(_precise.ball_shift(Fraction(ratio), dim), ball)


@pytest.mark.parametrize(
    ("k", "j", "dim"),
    [(1, 0, 1), (0.3, 0, 1), (1, 0, 2), (2, 0, 784), (0.5, 3.5, 10), (3, 5, 150528), (40, 0, 2)],
)
def test_mixture_of_cubes(k, j, dim):
    with digits.workdps(80):
        d, k_, j_ = mpf(dim), mpf(k), mpf(j)
        if dim == 1:
            g = digits.gamma(1 + 1 / k_)
        else:
            rise = digits.loggamma((d - j_) / k_) - digits.loggamma((d - j_ - 1) / k_)
            g = d / (d - 1) * digits.exp(rise)
        exact = mpf(0.01) / g
    got = _precise.exponential_shift(Fraction(0.01), Fraction(k), Fraction(j), dim)
    assert_rounded_up(got, min(exact, 1))


@pytest.mark.parametrize("k", [5e-324, 1e-300, 1e-3, 1e300])
@pytest.mark.parametrize("dim", [1, 2, 2**63 - 1])
def test_extreme_powers_of_exp_inf(k, dim):
    start = time.perf_counter()
    shift = _precise.exponential_shift(Fraction(0.25), Fraction(k), Fraction(0), dim)
    assert 0 < shift <= 1
    assert time.perf_counter() - start < 5  # it used to be easy to hang here


@pytest.mark.parametrize("number", [1, 2, 4, 3072, 2**62, 2**63 - 1])
def test_square_roots_are_rounded_up(number):
    root = sqrt_above(number)
    assert 0 <= root**2 - number <= number * Fraction(1, 10**30)
    assert (root == math.isqrt(number)) == (math.isqrt(number) ** 2 == number)


# ---- Neyman-Pearson on a grid ---------------------------------------------------------------


def norm_of(x: Sequence[np.ndarray], power: float) -> np.ndarray:
    return np.linalg.norm(np.stack(x), ord=power, axis=0)


def least_mass(clean: np.ndarray, perturbed: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Fill cells in decreasing order of clean / perturbed density up to the clean mass p."""
    order = np.argsort(-clean / np.maximum(perturbed, 1e-300), kind="stable")
    knots = [np.concatenate([[0], np.cumsum(mass[order])]) for mass in (clean, perturbed)]
    return np.interp(p, knots[0] / knots[0][-1], knots[1] / knots[1][-1])


GRID_P = np.array([0.01, 0.1, 0.3, 0.5, 0.6, 0.75, 0.9, 0.99])
CELLS = 800


def axis(r):
    return [(r, 0.0)]


def two_ways(r):
    return [(r, 0.0), (r / 2, r / 2)]


def round_(r):
    return [(r, 0.0), (r / math.sqrt(2), r / math.sqrt(2)), (0.6 * r, 0.8 * r)]


def corners(r):
    return [(r, r), (r, 0.0), (r, r / 2)]


def box(x, width):
    return (norm_of(x, np.inf) <= width) * 1.0


# Scheme, its density, ball, shifts in it, half the width of the grid, whether the bound is exact
PLANE = {
    "laplace-l1": (Laplace(1.0), lambda x: np.exp(-norm_of(x, 1)), L1, two_ways, 16, True),
    "laplace-l2": (Laplace(1.0), lambda x: np.exp(-norm_of(x, 1)), L2, round_, 16, False),
    "expp-l1": (Expp(2.0, 3), lambda x: np.exp(-((norm_of(x, 3) / 2) ** 3)), L1, two_ways, 8, True),
    "expp-half-l1": (
        Expp(0.2, 0.5),
        lambda x: np.exp(-sum(np.sqrt(abs(v) / 0.2) for v in x)),
        L1,
        two_ways,
        16,
        False,
    ),
    "pareto-l1": (
        Pareto(1.0, 4),
        lambda x: np.prod([(1 + abs(v)) ** -5 for v in x], axis=0),
        L1,
        two_ways,
        16,
        False,
    ),
    "uniform-linf": (Uniform(2.0), lambda x: box(x, 2), Linf, corners, 5, True),
    "uniform-l2": (Uniform(2.0), lambda x: box(x, 2), L2, round_, 5, False),
    "uniform-ball-l2": (
        UniformBall(2.0),
        lambda x: (norm_of(x, 2) <= 2) * 1.0,
        L2,
        round_,
        5,
        True,
    ),
    "exp2-l2": (Exp2(1.0), lambda x: np.exp(-norm_of(x, 2)), L2, round_, 16, False),
    "exp2-gauss-l2": (Exp2(1.0, 2), lambda x: np.exp(-(norm_of(x, 2) ** 2)), L2, axis, 8, True),
    "exp-inf-linf": (ExpInf(1.0), lambda x: np.exp(-norm_of(x, np.inf)), Linf, corners, 16, True),
    "exp-inf-l1": (ExpInf(1.0), lambda x: np.exp(-norm_of(x, np.inf)), L1, two_ways, 16, False),
    "exp-inf-l2": (ExpInf(1.0), lambda x: np.exp(-norm_of(x, np.inf)), L2, round_, 16, False),
    "exp-inf-3-l1": (
        ExpInf(1.0, 3, 0.5),
        lambda x: norm_of(x, np.inf) ** -0.5 * np.exp(-(norm_of(x, np.inf) ** 3)),
        L1,
        two_ways,
        4,
        False,
    ),
    "pow-inf-l1": (
        PowInf(1.0, 8),
        lambda x: (1 + norm_of(x, np.inf)) ** -8,
        L1,
        two_ways,
        16,
        False,
    ),
}


@pytest.mark.parametrize("r", [0.2, 0.5, 1.5])
@pytest.mark.parametrize("name", PLANE)
def test_numeric_worst_case_in_the_plane(name, r):
    scheme, density, ball, shifts, width, exact = PLANE[name]
    line = (np.arange(CELLS) + 0.5) / CELLS * 2 * width - width
    x = np.meshgrid(line, line, indexing="ij")
    clean = density(x).ravel()
    worst = np.min(
        [
            least_mass(
                clean, density([v - s for v, s in zip(x, shift, strict=True)]).ravel(), GRID_P
            )
            for shift in shifts(r)
        ],
        axis=0,
    )
    gap = worst - certify(scheme, ball(r, 2)).lower(GRID_P)
    assert np.all(gap >= -2e-3)  # the grid's own error
    if exact:
        assert np.all(gap <= 2e-3)


LINE = {
    "laplace": (Laplace(1.0), lambda x: np.exp(-abs(x)), True),
    "expp-4": (Expp(1.0, 4), lambda x: np.exp(-(x**4)), True),
    "expp-1.5": (Expp(1.0, 1.5), lambda x: np.exp(-(abs(x) ** 1.5)), True),
    "expp-half": (Expp(0.1, 0.5), lambda x: np.exp(-np.sqrt(abs(x) / 0.1)), False),
    "pareto": (Pareto(1.0, 3), lambda x: (1 + abs(x)) ** -4.0, False),
    "exp1": (Exp1(1.0), lambda x: np.exp(-abs(x)), True),
    "exp2": (Exp2(1.0), lambda x: np.exp(-abs(x)), True),
    "exp-inf": (ExpInf(1.0), lambda x: np.exp(-abs(x)), False),
    "exp-inf-2": (ExpInf(1.0, 2), lambda x: np.exp(-(x**2)), False),
    "pow-inf": (PowInf(1.0, 4), lambda x: (1 + abs(x)) ** -4.0, False),
    "uniform-ball": (UniformBall(2.0), lambda x: (abs(x) <= 2) * 1.0, True),
}


@pytest.mark.parametrize("ball", [L1, L2, Linf])
@pytest.mark.parametrize("name", LINE)
def test_numeric_worst_case_on_the_line(name, ball):
    """In one dimension the three norms are one; published code returns NaN for Exp2 there."""
    scheme, density, exact = LINE[name]
    x = (np.arange(400_000) + 0.5) / 400_000 * 60 - 30
    for r in (0.1, 1.0):
        worst = least_mass(density(x), density(x - r), GRID_P)
        gap = worst - certify(scheme, ball(r, 1)).lower(GRID_P)
        assert np.all(gap >= -5e-4)
        if exact:
            assert np.all(gap <= 5e-4)


@pytest.mark.parametrize(("name", "d"), [("pareto", 1e-3), ("expp-half", 1e-3)])
def test_sums_of_derivatives_are_tight_for_a_small_shift(name, d):
    """The loss per unit of r is the worst derivative, which a small shift nearly attains."""
    scheme, density, _ = LINE[name]
    x = (np.arange(800_000) + 0.5) / 800_000 * 40 - 20
    p = np.array([0.5, 0.7])
    loss = p - least_mass(density(x), density(x - d), p)
    certified = p - certify(scheme, L1(d, 1)).lower(p)
    np.testing.assert_allclose(certified, loss, rtol=0.08)


HALF_SPACES = {
    "laplace": (Laplace(0.5), L1(0.3, 784), scipy.stats.laplace(scale=0.5)),
    "expp-4": (Expp(0.5, 4), L1(0.3, 784), scipy.stats.gennorm(4, scale=0.5)),
    "expp-1.2": (Expp(0.5, 1.2), L1(0.3, 784), scipy.stats.gennorm(1.2, scale=0.5)),
    "expp-2-l2": (Expp(0.5, 2), L2(0.3), scipy.stats.norm(scale=0.5 / math.sqrt(2))),
    "exp2-2-l2": (Exp2(0.5, 2), L2(0.3), scipy.stats.norm(scale=0.5 / math.sqrt(2))),
    "uniform": (Uniform(0.5), L1(0.3), scipy.stats.uniform(-0.5, 1.0)),
}


@pytest.mark.parametrize("name", HALF_SPACES)
def test_half_space_attains_the_bound(name):
    """The score of a half-space along an axis, moved along that axis, is as low as certified."""
    scheme, ball, coordinate = HALF_SPACES[name]
    made = certify(scheme, ball)
    for p in (0.001, 0.2, 0.5, 0.8, 0.9, 0.999):
        attained = coordinate.cdf(coordinate.ppf(p) - ball.r)
        assert made.lower(p) == pytest.approx(attained, rel=1e-9, abs=1e-12)


@given(st.sampled_from(["pareto", "expp-half", "pow-inf", "exp-inf-2"]), st.floats(0.01, 1.5))
def test_half_space_is_within_the_bound(name, r):
    scheme, density, _ = LINE[name]
    x = (np.arange(40_000) + 0.5) / 40_000 * 60 - 30
    mass = np.cumsum(density(x)) / np.sum(density(x))
    made = certify(scheme, L1(r, 1))
    p = mass[::500]
    attained = np.interp(x[::500] - r, x, mass)
    assert np.all(made.lower(p) <= attained + 1e-3)
    assert np.all(made.upper(attained) >= p - 1e-3)


# ---- every scheme and ball ------------------------------------------------------------------

PAIRS = [(scheme, ball) for scheme in ALL_SCHEMES for ball in (L1, L2, Linf)]
pairs = pytest.mark.parametrize(
    ("scheme", "ball"), PAIRS, ids=lambda v: getattr(v, "__name__", str(v))
)


@pairs
@pytest.mark.parametrize("r", [0.0, 1e-300, 1e-3, 0.1, 0.7, 30.0, 1e308])
def test_law(scheme, ball, r):
    made = certify(scheme, ball(r, 10))
    check_law(made)
    for p in (0.0, 5e-324, 1e-300, 1e-9, 0.25, 0.5, 0.5 + 1e-16, 0.9, 1 - 2.0**-53, 1.0):
        low, high = made.lower(p), made.upper(p)
        assert 0 <= low <= p <= high <= 1
        if r == 0:
            assert low == p == high
    assert made.lower(0.0) == 0
    assert made.upper(1.0) == 1


@pairs
def test_bounds_are_monotone_in_the_radius_and_in_p(scheme, ball):
    p = np.concatenate([10.0 ** np.arange(-300, 0, 7), np.linspace(0.1, 1, 50)])
    before = certify(scheme, ball(0.0, 10))
    for r in (1e-12, 1e-4, 1e-2, 0.1, 0.2, 0.5, 1.0, 10.0):
        made = certify(scheme, ball(r, 10))
        assert np.all(made.lower(p) <= before.lower(p) * (1 + 1e-12))
        assert np.all(1 - made.upper(p) <= (1 - before.upper(p)) * (1 + 1e-12) + 1e-15)
        assert np.all(np.diff(made.lower(p)) >= -1e-14)
        assert np.all(np.diff(made.upper(p)) >= -1e-14)
        before = made


@pairs
def test_lower_and_upper_are_inverse(scheme, ball):
    made = certify(scheme, ball(0.05, 10))
    for p in np.linspace(0.01, 0.99, 99):
        low = made.lower(p)
        if low > 1e-6:
            assert p * (1 - 1e-13) <= made.upper(low) <= p + 1e-8


def test_a_huge_radius_certifies_nothing():
    for scheme in ALL_SCHEMES:
        made = certify(scheme, L1(1e300, 10))
        assert (made.lower(0.999), made.upper(0.001)) == (0.0, 1.0)


def test_a_probability_of_one_is_kept_by_noise_that_reaches_everywhere():
    for scheme in (Laplace(0.5), Expp(0.5, 3), Pareto(0.5, 2), Exp2(0.5), Exp1(0.5)):
        made = certify(scheme, L2(0.3, 10))
        assert (made.lower(1.0), made.upper(0.0)) == (1.0, 0.0)


def test_root_noise_has_a_largest_radius():
    """R is at most pi^2 / 3 of the scale, so that certainty gets the limit of what is below it."""
    made = certify(Expp(0.5, 0.5), L1(0.25))
    assert made.lower(1.0) == pytest.approx(made.lower(1 - 1e-15), abs=1e-6)
    assert made.lower(1.0) < 1
    assert certify(Expp(0.5, 0.5), L1(0.5 * math.pi**2 / 3 * 2.01)).lower(1.0) == 0.0


# ---- which bound is which -------------------------------------------------------------------


def same(first: Certificate, second: Certificate) -> bool:
    p = np.linspace(0, 1, 101)
    return np.array_equal(first.lower(p), second.lower(p)) and np.array_equal(
        first.upper(p), second.upper(p)
    )


@pytest.mark.parametrize("ball", [L1(0.2, 9), L2(0.2, 9), Linf(0.2, 9)])
def test_schemes_that_are_one(ball):
    laplace = certify(Laplace(0.5), ball)
    assert same(certify(Exp1(0.5), ball), laplace)
    assert same(certify(Expp(0.5, 1), ball), laplace)
    gauss = certify(Expp(0.5, 2), ball)
    assert same(certify(Exp2(0.5, 2), ball), gauss)
    sigma = Gaussian(0.5 / math.sqrt(2))
    p = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(gauss.lower(p), certify(sigma, ball).lower(p), rtol=1e-13)


@pytest.mark.parametrize(
    ("scheme", "ball", "same_as", "note"),
    [
        (Gaussian(0.5), L1(0.25), L2(0.25), "l1 {} l2 radius r"),
        (Laplace(0.5), L2(0.25, 9), L1(0.75), "l2 {} l1 radius r sqrt(dim), dim = 9"),
        (Laplace(0.5), Linf(0.25, 8), L1(2.0), "linf {} l1 radius r dim, dim = 8"),
        (UniformBall(2.0), L1(0.25, 9), L2(0.25, 9), "l1 {} l2 radius r"),
        (Exp2(0.5), Linf(0.25, 9), L2(0.75, 9), "linf {} l2 radius r sqrt(dim), dim = 9"),
        (Pareto(0.5, 3), Linf(0.25, 4), L1(1.0), "linf {} l1 radius r dim, dim = 4"),
    ],
)  # fmt: skip
def test_norm_conversion_is_stated(scheme, ball, same_as, note):
    made = certify(scheme, ball)
    assert made.describe()["note"] == note.format("radius 0.25 certified as the")
    p = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(made.lower(p), certify(scheme, same_as).lower(p), rtol=1e-13)


def test_uniform_noise_against_l2_takes_the_better_conversion():
    small, large = L2(0.01, 100), L2(0.9, 2)
    assert "l1 radius r sqrt(dim)" in certify(Uniform(0.5), small).describe()["note"]
    assert certify(Uniform(0.5), large).describe()["note"].endswith("the linf radius r")
    assert certify(Uniform(0.5), small).lower(0.9) == pytest.approx(0.8, abs=1e-15)
    assert certify(Uniform(0.5), large).lower(0.995) == pytest.approx(0.005, abs=1e-15)


def test_exp_inf_against_l2_takes_the_better_bound_at_each_p():
    scheme, ball = ExpInf(0.5), L2(0.1, 16)
    made = certify(scheme, ball)
    p = np.linspace(0, 1, 1001)
    from_l1, from_linf = certify(scheme, L1(0.4, 16)), certify(scheme, Linf(0.1, 16))
    np.testing.assert_allclose(
        made.lower(p), np.maximum(from_l1.lower(p), from_linf.lower(p)), rtol=1e-13
    )
    np.testing.assert_allclose(
        made.upper(p), np.minimum(from_l1.upper(p), from_linf.upper(p)), rtol=1e-13
    )
    assert np.any(from_l1.lower(p) > from_linf.lower(p) + 0.01)
    assert np.any(from_linf.lower(p) > from_l1.lower(p) + 0.001)


@pytest.mark.parametrize("dim", [150528, 2**63 - 1])
@pairs
def test_many_dimensions_do_not_take_long(scheme, ball, dim):
    if isinstance(scheme, PowInf):
        scheme = PowInf(0.5, 2.0 * dim)
    start = time.perf_counter()
    made = certify(scheme, ball(0.01, dim))
    made.lower(0.9)
    assert time.perf_counter() - start < 2  # milliseconds, on any machine that is not overwhelmed
    assert 0 <= made.lower(0.9) <= 0.9


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "ball"),
    [
        (Laplace(0.5), L2),
        (Expp(0.5, 3), L2),
        (Pareto(0.5, 3), L2),
        (Uniform(0.5), L2),
        (UniformBall(2.0), L1),
        (UniformBall(2.0), L2),
        (Exp1(0.5), L2),
        (Exp2(0.5), L1),
        (Exp2(0.5), L2),
        (ExpInf(0.5), L1),
        (ExpInf(0.5), L2),
        (PowInf(0.5, 9), L1),
        (PowInf(0.5, 9), L2),
    ],
)
def test_a_missing_dimension_is_named(scheme, ball):
    with pytest.raises(ValueError, match=r"`dim` of the ball must be given.*dim=None"):
        certify(scheme, ball(0.1))


@pytest.mark.parametrize(
    ("scheme", "ball"),
    [(Laplace(0.5), L1), (Expp(0.5, 3), L1), (Pareto(0.5, 3), L1), (Uniform(0.5), L1),
     (Exp1(0.5), L1), (Exp2(0.5, 2), L1), (Exp2(0.5, 2), L2), (Expp(0.5, 2), L2)],
)  # fmt: skip
def test_a_dimension_that_is_not_needed(scheme, ball):
    assert same(certify(scheme, ball(0.1)), certify(scheme, ball(0.1, 1000)))


@pytest.mark.parametrize("ball", [L1, L2, Linf])
@pytest.mark.parametrize(
    ("scheme", "proven"),
    [
        (Expp(0.5, 0.7), "p >= 1 and for p = 1/2"),
        (Exp1(0.5, 2), "k = 1"),
        (Exp2(0.5, 3), "j = 0 with k = 1 or k = 2"),
        (Exp2(0.5, 2, 1), "j = 0 with k = 1 or k = 2"),
        (ExpInf(0.5, 1, 9), "dim - j > 1"),
        (Pareto(0.5, 1e-9), "1e-06"),
    ],
)
def test_what_is_not_proven_is_not_offered(scheme, proven, ball):
    with pytest.raises(CertificateError, match=proven):
        certify(scheme, ball(0.1, 10))


@pytest.mark.parametrize("ball", [L1, L2, Linf])
@pytest.mark.parametrize(
    ("scheme", "need"), [(PowInf(0.5, 10), "a > dim = 10"), (ExpInf(0.5, 1, 10), "j < dim = 10")]
)
def test_noise_that_does_not_exist(scheme, need, ball):
    with pytest.raises(ValueError, match=need):
        certify(scheme, ball(0.1, 10))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize(
    "scheme", [Laplace(0.5), Expp(0.5, 3), Exp2(0.5), Pareto(0.5, 3), Expp(0.5, 0.5)]
)
def test_probabilities_outside_the_range(scheme: Smoothing, p: float):
    with pytest.raises(ValueError, match="`p`"):
        certify(scheme, L2(0.1, 10)).lower(p)
