"""The mixture correction is valid in the worst case, and asks for as much as that allows.

Nothing is simulated. For i.i.d. data the coverage of a rule (t, j, k) of a population in the worst
case is exactly 1 - E[W(V)], V ~ Beta(j, n + 1 - j), where W is the upper concave envelope of the
curve p -> (P[Bin(m, p) < t], P[Bin(m', c(p)) < k]). Here all of it is computed a second time, from
SciPy's special functions and formulas of the certificates that are written out below.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats
from worst_case import Rule, miscoverage

import bincp
from bincp import balls, smoothing
from bincp._utils.levels import conformal_rank, success_rank
from bincp.calibration._clopper_pearson import clopper_pearson_rule
from bincp.certificates import Certificate
from support import largest_valid_count

Array = npt.NDArray[np.float64]


# ---- certificates a second time ---------------------------------------------------------------


@dataclass(frozen=True)
class Attack:
    """A certificate of the library, and c and 1 - c at p = Phi(z) from elsewhere."""

    certificate: Certificate
    certified: Callable[[Array], tuple[Array, Array]]


def gaussian(delta: float) -> Attack:
    """Phi(z - delta)."""
    certificate = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.25 * delta))
    return Attack(certificate, lambda z: (special.ndtr(z - delta), special.ndtr(delta - z)))


def uniform(half_width: float, r: float) -> Attack:
    """The shifted interval overlaps in all but r / (2 half_width)."""
    shift = r / (2 * half_width)
    certificate = bincp.certify(smoothing.Uniform(half_width), balls.L1(r))
    return Attack(
        certificate,
        lambda z: (
            np.maximum(special.ndtr(z) - shift, 0),
            np.minimum(special.ndtr(-z) + shift, 1),
        ),
    )


def sparse_flip(p_plus: float, p_minus: float, additions: int, deletions: int) -> Attack:
    """Knapsack over the outcomes of the bits that differ.

    A bit that the adversary adds is 0 with probability 1 - p_plus at the clean input and p_minus at
    the other; one that it deletes is 1 with probability 1 - p_minus and p_plus.
    """
    regions = []
    for i, j in product(range(additions + 1), range(deletions + 1)):  # bits that read as clean
        ways = math.comb(additions, i) * math.comb(deletions, j)
        clean = (1 - p_plus) ** i * p_plus ** (additions - i)
        clean *= (1 - p_minus) ** j * p_minus ** (deletions - j)
        other = p_minus**i * (1 - p_minus) ** (additions - i)
        other *= p_plus**j * (1 - p_plus) ** (deletions - j)
        regions.append((ways * clean, ways * other))
    regions.sort(key=lambda region: region[1] / region[0])
    low = np.concatenate([[[0.0, 0.0]], np.cumsum(regions, axis=0)])
    high = np.concatenate([[[0.0, 0.0]], np.cumsum(regions[::-1], axis=0)])
    scheme = smoothing.SparseFlip(p_plus, p_minus)
    return Attack(
        bincp.certify(scheme, balls.Flips(additions, deletions)),
        lambda z: (
            np.interp(special.ndtr(z), low[:, 0], low[:, 1]),
            np.interp(special.ndtr(-z), high[:, 0], high[:, 1]),
        ),
    )


IDENTITY = gaussian(0.0)
ATTACKS = {
    "identity": IDENTITY,
    **{f"gaussian-{delta}": gaussian(delta) for delta in (0.1, 0.25, 0.5, 1.0, 2.0)},
    "uniform": uniform(0.5, 0.05),
    "uniform-far": uniform(0.25, 0.1),
    "sparse-flip": sparse_flip(0.01, 0.6, 0, 2),
    "sparse-flip-both": sparse_flip(0.2, 0.3, 1, 1),
}
each_attack = pytest.mark.parametrize("attack", ATTACKS.values(), ids=list(ATTACKS))


@each_attack
def test_the_certificates_are_those_of_the_formulas(attack: Attack) -> None:
    z = np.linspace(-8, 4, 401)  # from there on p = Phi(z) loses too much
    c, d = attack.certified(z)
    np.testing.assert_allclose(attack.certificate.lower(special.ndtr(z)), c, rtol=0, atol=1e-12)
    np.testing.assert_allclose(c + d, 1, rtol=0, atol=1e-13)


# ---- the worst coverage -----------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A p-fixed rule without its k."""

    t: int
    rank: int
    n: int
    m: int
    m_test: int
    alpha: Fraction

    @property
    def share(self) -> float:
        return self.rank / (self.n + 1)

    def largest(self, attack: Attack) -> int:
        return largest_valid_count(
            attack.certificate,
            t=self.t, rank=self.rank, n=self.n, m=self.m, m_test=self.m_test, alpha=self.alpha,
        )  # fmt: skip


class WorstCase:
    """The envelope of the curve of one rule, from points on the curve.

    It is approached from below. `at` the share of the setting it is exact but for rounding, for the
    points are refined around the two that decide; and that bounds the `mean`, by concavity.
    """

    def __init__(self, attack: Attack, setting: Setting, k: int) -> None:
        self.attack, self.setting, self.k = attack, setting, k
        self._read(_points(attack, setting, k))
        for _ in range(3):
            right = int(np.searchsorted(self.x, setting.share, side="right"))
            ends = self.vertices[[right - 1, min(right, len(self.x) - 1)]]
            near = [
                np.linspace(self.z[max(i - 1, 0)], self.z[min(i + 1, len(self.z) - 1)], 60)
                for i in ends
            ]
            # What is below the envelope will stay there.
            self._read(np.unique(np.concatenate([self.z[self.vertices], *near])))

    def _read(self, z: Array) -> None:
        t, m, k, m_test = self.setting.t, self.setting.m, self.k, self.setting.m_test
        c, d = self.attack.certified(z)
        u = _at_most(t - 1, m, special.ndtr(-z), special.ndtr(z))
        v = _at_most(k - 1, m_test, d, c)
        self.z = z
        self.vertices = upper_hull(u, v)
        self.x, self.y = u[self.vertices], v[self.vertices]

    def at(self, x: float) -> float:
        """The envelope at x."""
        return float(np.interp(x, self.x, self.y))

    def mean(self) -> float:
        """E[W(V)], the miscoverage: exact for the polygon.

        W(0) + integral of W'(x) P[V > x]; the integral of P[V > x] from 0 to x is
        x P[V > x] + E[V; V <= x].
        """
        a, b = self.setting.rank, self.setting.n + 1 - self.setting.rank
        passed = self.x * stats.beta.sf(self.x, a, b)
        passed += self.setting.share * stats.beta.cdf(self.x, a + 1, b)
        step = np.clip(np.diff(passed), 0, np.diff(self.x))
        return float(self.y[0] + np.sum(np.diff(self.y) * (step / np.diff(self.x))))


def _at_most(s: int, m: int, q: Array, p: Array) -> Array:
    """P[Bin(m, p) <= s], q = 1 - p; by q where that is small."""
    if s < 0:
        return np.zeros_like(p)
    if s >= m:
        return np.ones_like(p)
    return np.where(q < 0.5, stats.beta.cdf(q, m - s, s + 1), stats.beta.sf(p, s + 1, m - s))


def _points(attack: Attack, setting: Setting, k: int) -> Array:
    wide = np.linspace(-9, 9, 1001)
    parts = [wide, np.linspace(-36, 36, 289)]
    reach = np.interp(k / setting.m_test, attack.certified(wide)[0], wide)
    centre = special.ndtri((setting.t - 0.3) / (setting.m + 0.4))
    for middle, m in ((centre, setting.m), (reach, setting.m_test)):
        p = min(max(special.ndtr(middle), 0.5 / m), 1 - 0.5 / m)
        sd = math.sqrt(p * (1 - p) / m) / stats.norm.pdf(special.ndtri(p))
        parts.append(np.linspace(middle - 8 * sd, middle + 8 * sd, 500))
    return np.unique(np.clip(np.concatenate(parts), -37, 37))


def upper_hull(x: Array, y: Array) -> npt.NDArray[np.intp]:
    """Indices of the vertices of the upper concave envelope on [0, 1], from left to right."""
    order = np.lexsort((y, x))
    last = np.append(np.diff(x[order]) > 0, True)  # the highest of those that are level
    order = order[last]
    points = np.column_stack([x, y])[order].tolist()
    kept: list[list[float]] = []
    places: list[int] = []
    for i, point in zip(order.tolist(), points, strict=True):
        while len(kept) > 1 and _below(kept[-1], kept[-2], point):
            kept.pop()
            places.pop()
        kept.append(point)
        places.append(i)
    return np.array(places)


def _below(middle: list[float], left: list[float], right: list[float]) -> bool:
    """Whether the middle point is not above the chord."""
    rise = (right[1] - left[1]) * (middle[0] - left[0])
    return (middle[1] - left[1]) * (right[0] - left[0]) <= rise


def some_settings(seed: int, count: int) -> list[Setting]:
    """Settings over the whole range, small n, single samples and small t among them."""
    rng = np.random.default_rng(seed)
    found: list[Setting] = []
    while len(found) < count:
        m, m_test = (int(2 ** rng.uniform(0, 8)) for _ in range(2))
        if rng.random() < 0.3:
            m_test = m
        n = round(9 * (1000 / 9) ** rng.random())
        alpha = Fraction(int(rng.integers(1, 31)), 100)
        top = conformal_rank(alpha, n)
        if top:
            rank = top if rng.random() < 0.5 else int(rng.integers(1, top + 1))
            share = Fraction(int(rng.integers(1, 101)), 100)
            found.append(Setting(success_rank(share, m), rank, n, m, m_test, alpha))
    return found


def check(attack: Attack, setting: Setting) -> None:
    """Valid at k, and at k + 1 not: in none of the settings here is the rule's grid too coarse."""
    k = setting.largest(attack)
    alpha = float(setting.alpha)
    worst = WorstCase(attack, setting, k)
    assert worst.mean() <= alpha + 1e-9, (setting, k)
    assert worst.at(setting.share) <= alpha + 1e-9, (setting, k)
    if k < setting.m_test:
        beyond = WorstCase(attack, setting, k + 1)
        assert beyond.at(setting.share) > alpha - 1e-9, (setting, k)


@each_attack
def test_valid_in_the_worst_case_and_tight(attack: Attack) -> None:
    for setting in some_settings(seed=1, count=30):
        check(attack, setting)


@pytest.mark.slow
@each_attack
def test_valid_in_the_worst_case_and_tight_over_thousands_of_settings(attack: Attack) -> None:
    for setting in some_settings(seed=2, count=400):
        check(attack, setting)


@each_attack
def test_what_is_chosen_is_valid_in_the_worst_case(attack: Attack) -> None:
    """Through the public class, with the j and k that it takes for a p."""
    rng = np.random.default_rng(3)
    for m, m_test, p in [
        (1, 1, "1"),
        (3, 7, "0.6"),
        (16, 16, "0.4"),
        (16, 32, "0.7"),
        (64, 9, "1"),
    ]:
        scores = rng.random((99, m))
        rule = bincp.BinCP(attack.certificate, alpha="0.2", p=p, correction="mixture")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bincp.TrivialSetWarning)
            rule.calibrate(scores, n_test_samples=m_test)
        assert rule.rank_ is not None
        assert rule.success_rank_ is not None
        assert rule.min_count_ is not None
        setting = Setting(rule.success_rank_, rule.rank_, 99, m, m_test, rule.alpha)
        assert rule.min_count_ == setting.largest(attack)
        assert WorstCase(attack, setting, rule.min_count_).mean() <= 0.2 + 1e-9
        assert rule.success_rank_ == success_rank(Fraction(str(p)), m)
        own = np.sort(scores, axis=1)[:, m - setting.t]
        assert rule.tau_ == np.sort(own)[setting.rank - 1]


def test_without_a_correction_the_worst_case_is_bad() -> None:
    """The tests above can fail."""
    setting = Setting(t=12, rank=20, n=200, m=16, m_test=16, alpha=Fraction(1, 10))
    attack = ATTACKS["gaussian-0.5"]
    k = math.ceil(attack.certificate.lower(12 / 16) * 16)
    assert k > setting.largest(attack)
    assert WorstCase(attack, setting, k).mean() > 0.11


def test_the_worst_case_of_one_sample_is_an_integral() -> None:
    """u = 1 - p and v = 1 - c(p): the envelope is the curve."""
    n, rank = 50, 4
    setting = Setting(1, rank, n, 1, 1, Fraction(1, 10))
    assert WorstCase(IDENTITY, setting, 1).mean() == pytest.approx(rank / (n + 1), rel=1e-12)
    for delta in (0.25, 1.0):
        z = np.linspace(-9, 9, 200_001)
        density = stats.beta.pdf(special.ndtr(-z), rank, n + 1 - rank) * stats.norm.pdf(z)
        expected = np.trapezoid(special.ndtr(delta - z) * density, z)
        worst = WorstCase(ATTACKS[f"gaussian-{delta}"], setting, 1)
        assert worst.mean() == pytest.approx(expected, rel=1e-4)
        assert worst.mean() <= expected


# ---- special cases ----------------------------------------------------------------------------


@st.composite
def settings_of_rules(draw: st.DrawFn) -> tuple[Attack, Setting]:
    m, m_test, n = draw(st.integers(1, 256)), draw(st.integers(1, 256)), draw(st.integers(9, 1000))
    alpha = Fraction(draw(st.integers(1, 30)), 100)
    top = conformal_rank(alpha, n)
    assume(top > 0)
    setting = Setting(draw(st.integers(1, m)), draw(st.integers(1, top)), n, m, m_test, alpha)
    return draw(st.sampled_from(list(ATTACKS.values()))), setting


@settings(deadline=None, max_examples=300)
@given(settings_of_rules(), st.sampled_from(["1/10", "1/100", "1/1000000"]), st.integers(2, 1000))
def test_no_smaller_than_ghost_and_paper(
    case: tuple[Attack, Setting], share_of_alpha: str, n_classes: int
) -> None:
    attack, setting = case
    eta = Fraction(share_of_alpha) * setting.alpha
    assume(setting.rank <= conformal_rank(setting.alpha - eta, setting.n))
    ghost, paper = (
        clopper_pearson_rule(attack.certificate, setting.t, setting.m, setting.m_test, level)
        for level in (eta / 2, eta / (setting.n + n_classes))
    )
    assert setting.largest(attack) >= ghost.min_count >= paper.min_count


def test_by_how_much() -> None:
    """At 16 samples nothing is left of the paper's rule."""
    setting = Setting(t=12, rank=20, n=200, m=16, m_test=16, alpha=Fraction(1, 10))
    certificate = ATTACKS["gaussian-0.5"].certificate
    eta = Fraction(1, 1000)
    ghost = clopper_pearson_rule(certificate, 12, 16, 16, eta / 2).min_count
    paper = clopper_pearson_rule(certificate, 12, 16, 16, eta / 210).min_count
    assert (setting.largest(ATTACKS["gaussian-0.5"]), ghost, paper) == (8, 0, 0)


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 256), st.integers(1, 1000), st.integers(1, 99), st.data())
def test_without_an_attack_it_is_conformal_prediction(
    m: int, n: int, percent: int, data: st.DataObject
) -> None:
    """r = 0 and m = m': k >= t iff j <= alpha (n + 1)."""
    alpha = Fraction(percent, 100)
    t, top = data.draw(st.integers(1, m)), conformal_rank(alpha, n)
    rank = data.draw(st.integers(1, n) | st.integers(max(top - 1, 1), min(top + 1, n)))
    setting = Setting(t, rank, n, m, m, alpha)
    assert (setting.largest(IDENTITY) >= t) == (rank <= alpha * (n + 1))


@pytest.mark.parametrize("delta", [0.1, 0.25, 0.5, 1.0, 2.0])
def test_one_sample_is_one_sample_robust_conformal_prediction(delta: float) -> None:
    """m = m' = t = k = 1: the certificate itself, which is convex, at 1 - j / (n + 1)."""
    for n, alpha in product((9, 200, 1000), (Fraction(1, 100), Fraction(1, 10), Fraction(3, 10))):
        for rank in range(1, conformal_rank(alpha, n) + 2):
            slack = special.ndtr(special.ndtri(1 - rank / (n + 1)) - delta) - (1 - float(alpha))
            if abs(slack) > 1e-6:
                setting = Setting(1, rank, n, 1, 1, alpha)
                assert setting.largest(ATTACKS[f"gaussian-{delta}"]) == (slack > 0), setting


def test_one_sample_with_a_certificate_that_jumps() -> None:
    """lower is 1/2 from p0 on; its lower hull goes from (p0, 0) to (1, 1/2)."""
    certificate = Certificate.from_radius(lambda p: float(special.ndtri(p)), 0.5)
    p0 = special.ndtr(0.5)
    n, alpha = 400, Fraction(3, 4)
    counts = []
    for rank in (1, 20, 50, 58, 66, 90, 200):  # the last that works is 61
        hull = max(1 - rank / (n + 1) - p0, 0) / (1 - p0) / 2
        if abs(hull - 0.25) > 1e-2:
            k = largest_valid_count(certificate, t=1, rank=rank, n=n, m=1, m_test=1, alpha=alpha)
            counts.append(k)
            assert k == (hull > 0.25), rank
    assert set(counts) == {0, 1}


@pytest.mark.parametrize("name", ["identity", "gaussian-0.25", "gaussian-1.0", "uniform"])
@pytest.mark.parametrize("ratio", [1, 4])
def test_many_samples_are_exact_probabilities(name: str, ratio: int) -> None:
    """k / m' goes to c(t / m), at the rate of m**-1/2."""
    attack = ATTACKS[name]
    errors = []
    for m in (100, 1600, 25_600, 409_600):
        setting = Setting(7 * m // 10, 15, 200, m, ratio * m, Fraction(1, 10))
        share = setting.largest(attack) / (ratio * m)
        errors.append(abs(share - attack.certificate.lower(0.7)) * math.sqrt(m))
    assert max(errors) < 1.0
    assert errors[-1] > 0.5 * errors[1]  # and no faster


def test_monotone_in_everything() -> None:
    base = Setting(t=12, rank=15, n=200, m=16, m_test=16, alpha=Fraction(1, 10))
    chains: dict[str, list[dict[str, Any]]] = {
        "t": [{"t": t} for t in range(1, 17)],
        "rank": [{"rank": rank} for rank in range(40, 0, -1)],
        "n": [{"n": n} for n in range(150, 400, 10)],
        "alpha": [{"alpha": Fraction(a, 100)} for a in range(1, 31)],
        "m_test": [{"m_test": m} for m in range(1, 60)],
    }
    for changes in chains.values():
        ks = [Setting(**{**vars(base), **change}).largest(ATTACKS["uniform"]) for change in changes]
        assert all(a <= b for a, b in pairwise(ks))
        assert ks[0] < ks[-1]
    by_radius = [base.largest(gaussian(delta)) for delta in (2.0, 1.0, 0.5, 0.25, 0.1, 0.0)]
    assert by_radius == sorted(by_radius)


@pytest.mark.parametrize(
    ("delta", "n", "alpha", "t", "k"),
    [
        (0.05, 1000, "1/20", 50, 48),  # miscoverage .04996369714 at 48, .07415073183 at 49
        (0.05, 1000, "1/5", 50, 48),
        (0.05, 2000, "1/20", 50, 48),
        (0.1, 500, "1/20", 50, 46),
        (0.1, 2000, "1/10", 50, 46),
        (0.05, 5000, "1/20", 53, 51),
        (0.05, 5000, "1/100", 52, 50),
        (0.1, 20_000, "1/100", 50, 46),  # valid by 5.5e-8 only
    ],
)
def test_the_grid_is_refined_until_the_largest_valid_count_is_found(
    delta: float, n: int, alpha: str, t: int, k: int
) -> None:
    """Along much of the curve these counts are nearly refused, so the grid must be fine."""
    certificate = bincp.certify(smoothing.Gaussian(1.0), balls.L2(delta))
    level = Fraction(alpha)
    rank = conformal_rank(level, n)
    numbers = {"t": t, "rank": rank, "n": n, "m": 100, "m_test": 100, "alpha": level}
    assert largest_valid_count(certificate, **numbers) == k
    with mpmath.workdps(40):
        share, target = mpmath.mpf(rank) / (n + 1), mpmath.mpf(alpha)
        lower, upper = miscoverage(Rule(delta, t, k, 100, 100), share)
        assert upper - lower < 1e-15
        assert upper <= target
        setting = Setting(t, rank, n, 100, 100, level)
        polygon = WorstCase(gaussian(delta), setting, k).at(setting.share)
        assert lower - 1e-12 < polygon < upper + 1e-12
        lower, _ = miscoverage(Rule(delta, t, k + 1, 100, 100), share)
        assert lower > target + 1e-4


# ---- one sample: closed forms -----------------------------------------------------------------

LEVELS = ["1/100", "1/20", "1/10", "3/20", "1/5", "3/10", "9/20"]
SIZES = [9, 19, 37, 99, 100, 199, 500, 999, 2000]


def one_sample_rank(certificate: Certificate, n: int, alpha: str) -> int:
    """Return j of a rule of one sample; 0 where it accepts every label."""
    rule = bincp.one_sample(certificate, alpha=alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bincp.TrivialSetWarning)
        rule.calibrate(np.arange(float(n))[:, None])
    assert rule.rank_ is not None
    assert rule.min_count_ in (0, 1)
    return rule.rank_ if rule.min_count_ else 0


def agrees(rank: int, largest: Fraction | mpmath.mpf, n: int) -> bool:
    """Whether the rank is the largest whole number up to `largest`, which the grid can show.

    A rank that leaves less than 1e-6 of alpha may be passed over: the grid has 500,000 points.
    """
    whole = max(math.floor(largest), 0)
    return rank == whole or (rank == whole - 1 and (largest - whole) / (n + 1) < 1e-6)


@pytest.mark.parametrize("alpha", LEVELS)
@pytest.mark.parametrize(
    ("half_width", "r"),
    [(0.5, 0.0), (0.5, 0.05), (0.5, 0.03), (0.25, 0.1), (1.0, 0.125), (0.5, 0.0625), (2.0, 0.1)],
)
def test_one_sample_of_uniform_noise(half_width: float, r: float, alpha: str) -> None:
    """The curve is a line at r / (2 half_width) above the diagonal: j <= (n + 1) (alpha - s)."""
    certificate = bincp.certify(smoothing.Uniform(half_width), balls.L1(r))
    shift = Fraction(r) / (2 * Fraction(half_width))
    ranks = [one_sample_rank(certificate, n, alpha) for n in SIZES]
    for n, rank in zip(SIZES, ranks, strict=True):
        assert agrees(rank, (n + 1) * (Fraction(alpha) - shift), n), n


@pytest.mark.parametrize("alpha", LEVELS)
@pytest.mark.parametrize(
    ("scale", "r"), [(1.0, 0.0), (1.0, 0.1), (0.5, 0.1), (1.0, 0.5), (2.0, 0.1), (0.7, 0.3)]
)
def test_one_sample_of_laplace_noise(scale: float, r: float, alpha: str) -> None:
    """Refusals below 1/2 grow by the factor exp(r / scale): j <= (n + 1) alpha exp(-r / scale)."""
    certificate = bincp.certify(smoothing.Laplace(scale), balls.L1(r))
    with mpmath.workdps(40):
        factor = mpmath.exp(-mpmath.mpf(r) / mpmath.mpf(scale))
        for n in SIZES:
            rank = one_sample_rank(certificate, n, alpha)
            assert agrees(rank, (n + 1) * mpmath.mpf(alpha) * factor, n), n
