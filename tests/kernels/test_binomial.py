"""The compiled binomial kernels against exact fractions, mpmath and the golden table.

Trusted references: `Fraction` sums for small m (no rounding at all), and for large m the sum of the
positive terms of a tail at 50 digits.
"""

import math
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bincp._core import _binomial as kernels
from support import ROOT, golden

GOLDEN = golden("cp")["rows"]
ERROR = 4e-15  # BINCP_BINOM_ERROR, times 10 - log(P)

digits = mpmath.mp.clone()
digits.dps = 50


def exact_upper_tail(s: int, m: int, p: Fraction) -> Fraction:
    """P[Bin(m, p) >= s] with no rounding: a sum over every outcome that counts."""
    return sum(
        (math.comb(m, k) * p**k * (1 - p) ** (m - k) for k in range(max(s, 0), m + 1)),
        start=Fraction(0),
    )


def precise_upper_tail(s: int, m: int, p: mpmath.mpf) -> mpmath.mpf:
    """P[Bin(m, p) >= s] at 50 digits: the positive terms from s on, on the far side of the mean."""
    p = digits.mpf(p)
    if s < m * p:
        return 1 - precise_upper_tail(m - s + 1, m, 1 - p)
    odds = p / (1 - p)
    total = term = digits.mpf(1)
    k = s
    while term > total * digits.mpf(10) ** -35:
        term *= odds * (m - k) / (k + 1)
        total += term
        k += 1
    return precise_mass(s, m, p) * total


def precise_mass(s: int, m: int, p: mpmath.mpf) -> mpmath.mpf:
    """P[Bin(m, p) = s] at 50 digits."""
    return digits.exp(
        digits.loggamma(m + 1)
        - digits.loggamma(s + 1)
        - digits.loggamma(m - s + 1)
        + s * digits.log(p)
        + (m - s) * digits.log1p(-p)
    )


def relative_error(got: float, wanted: mpmath.mpf | Fraction) -> float:
    wanted = _mpf(wanted)
    return float(abs(digits.mpf(got) - wanted) / wanted)


def _mpf(value: mpmath.mpf | Fraction) -> mpmath.mpf:
    if isinstance(value, Fraction):
        return digits.mpf(value.numerator) / value.denominator
    return digits.mpf(value)


def tail_tolerance(tail: mpmath.mpf | Fraction) -> float:
    return ERROR * (10 - float(digits.log(_mpf(tail))))


def assert_safe(s: int, m: int, eta: float) -> None:
    """The defining inequalities at the returned doubles, and how far from equality they are."""
    lower, upper = kernels.cp_lower(s, m, eta), kernels.cp_upper(s, m, eta)
    if s > 0:
        assert precise_upper_tail(s, m, digits.mpf(lower)) <= eta
        if lower < 0.999:
            further = digits.mpf(lower) * (1 + digits.mpf("1e-13"))
            assert precise_upper_tail(s, m, further) > eta
    if s < m:
        assert precise_upper_tail(m - s, m, 1 - digits.mpf(upper)) <= eta
        if upper < 0.999:
            nearer = digits.mpf(upper) * (1 - digits.mpf("1e-13"))
            assert precise_upper_tail(m - s, m, 1 - nearer) > eta


# ---- tails -------------------------------------------------------------------------------------

dyadic = st.integers(0, 2**20).map(lambda k: Fraction(k, 2**20))  # p and 1 - p are exact doubles


@given(m=st.integers(1, 60), s=st.integers(-2, 62), p=dyadic)
def test_tails_and_mass_equal_exact_fractions(m: int, s: int, p: Fraction) -> None:
    wanted = exact_upper_tail(s, m, p)
    got = kernels.binom_sf(s, m, float(p), float(1 - p))
    mass = kernels.binom_pmf(s, m, float(p), float(1 - p))
    exact_mass = wanted - exact_upper_tail(s + 1, m, p)
    for value, exact in ((got, wanted), (mass, exact_mass)):
        if exact == 0 or exact < Fraction(1, 10**300):
            assert value <= 1e-300
        else:
            assert relative_error(value, exact) <= tail_tolerance(exact)
    assert got <= 1
    assert kernels.binom_cdf(m - s, m, float(1 - p), float(p)) == got


def test_impossible_and_certain_tails() -> None:
    # One count beyond the last must be 0, not NaN.
    assert kernels.binom_sf(3001, 3000, 0.5, 0.5) == 0.0
    assert kernels.binom_sf(0, 3000, 0.5, 0.5) == 1.0
    assert kernels.binom_sf(-1, 3000, 0.5, 0.5) == 1.0
    assert kernels.binom_cdf(-1, 3000, 0.5, 0.5) == 0.0
    assert kernels.binom_cdf(3000, 3000, 0.5, 0.5) == 1.0
    assert kernels.binom_log_pmf(3001, 3000, 0.5, 0.5) == -math.inf


@pytest.mark.parametrize(("q", "n", "p"), [(0.01, 1000, 1e-20), (0.025, 10, 0.0), (0.975, 10, 0.0)])
def test_smallest_count_with_tiny_or_zero_success_probability(q: float, n: int, p: float) -> None:
    # A search of the CDF for the quantile finds 0 where inverse functions return NaN.
    assert next(k for k in range(n + 1) if kernels.binom_cdf(k, n, p, 1.0 - p) >= q) == 0


@settings(max_examples=150, deadline=None)
@given(
    m=st.floats(2, 6).map(lambda e: int(10**e)),
    p=st.one_of(st.floats(1e-6, 0.999999), st.floats(-8, -1).map(lambda e: 10.0**e)),
    distance=st.floats(-36, 36),
)
def test_tails_of_many_trials_have_relative_accuracy(m: int, p: float, distance: float) -> None:
    q = 1.0 - p
    s = min(max(1, int(m * p + distance * math.sqrt(m * p * q))), m)
    success = digits.mpf(p) if p <= q else 1 - digits.mpf(q)  # the smaller one counts
    upper = precise_upper_tail(s, m, success)
    lower = precise_upper_tail(m - s + 1, m, 1 - success)
    for got, wanted in (
        (kernels.binom_sf(s, m, p, q), upper),
        (kernels.binom_cdf(s - 1, m, p, q), lower),
        (kernels.binom_pmf(s, m, p, q), precise_mass(s, m, success)),
    ):
        if wanted > 1e-300:
            assert relative_error(got, wanted) <= tail_tolerance(wanted)


@pytest.mark.parametrize("m", [16, 1000, 10**5, 10**7])
def test_tails_over_all_of_p(m: int) -> None:
    for s in {1, m // 3, m // 2, m - 1, m}:
        for p in np.linspace(0.001, 0.999, 61):
            wanted = precise_upper_tail(s, m, p)
            assert abs(kernels.binom_sf(s, m, p, 1 - p) - wanted) <= 1e-11


# ---- Clopper-Pearson: accuracy and direction -----------------------------------------------------


def test_golden_bounds_are_accurate_and_safe() -> None:
    for row in GOLDEN:
        s, m, eta = row["k"], row["n"], row["alpha"]
        tolerance = 1e-13 if m <= 10**6 else 1e-11
        lower, upper = kernels.cp_lower(s, m, eta), kernels.cp_upper(s, m, eta)
        assert lower <= row["lower_safe"], row
        assert upper >= row["upper_safe"], row
        if s == 0:
            assert lower == 0.0
        else:
            assert relative_error(lower, Fraction(row["lower"])) <= tolerance, row
        assert relative_error(upper, Fraction(row["upper"])) <= tolerance, row


def test_golden_complements_are_accurate_and_safe() -> None:
    # Near 1 the digits are in 1 - bound: within a unit in the last place of the bound.
    for row in GOLDEN:
        s, m, eta = row["k"], row["n"], row["alpha"]
        tolerance = 1e-13 if m <= 10**6 else 1e-11
        for bound, name in (
            (kernels.cp_lower(s, m, eta), "one_minus_lower"),
            (kernels.cp_upper(s, m, eta), "one_minus_upper"),
        ):
            if bound > 0.5:
                wanted = Fraction(row[name])
                error = abs((1 - Fraction(bound)) - wanted)
                assert error <= wanted * Fraction(tolerance) + Fraction(2, 2**53), row


@settings(max_examples=100, deadline=None)
@given(
    m=st.floats(0, 6).map(lambda e: int(10**e)),
    share=st.floats(0, 1),
    eta=st.floats(-15, -0.301).map(lambda e: 10.0**e),
)
@example(m=2, share=1.0, eta=1e-15)
@example(m=10**6, share=0.5, eta=0.5)
def test_bounds_are_safe_at_the_returned_double(m: int, share: float, eta: float) -> None:
    assert_safe(round(share * m), m, eta)


@pytest.mark.parametrize("m", [10**7, 10**8, 10**9])
def test_bounds_of_huge_counts_are_safe(m: int) -> None:
    for s in (1, 2, 30, 20_000, m // 1000, m - 20_000, m - 2, m - 1):
        for eta in (1e-15, 8.264462809917356e-07, 0.05):
            assert_safe(s, m, eta)


@settings(max_examples=100, deadline=None)
@given(
    m=st.integers(1, 3000),
    share=st.floats(0, 1),
    eta=st.one_of(
        st.floats(-15.9, -0.302).map(lambda e: 1 - 10.0**e),
        st.floats(-300, -15).map(lambda e: 10.0**e),
        st.just(5e-324),
    ),
)
@example(m=3, share=2 / 3, eta=1 - 2.0**-53)
def test_bounds_are_safe_at_extreme_levels(m: int, share: float, eta: float) -> None:
    s = round(share * m)
    lower, upper = kernels.cp_lower(s, m, eta), kernels.cp_upper(s, m, eta)
    if s > 0 and lower > 0:
        assert precise_upper_tail(s, m, digits.mpf(lower)) <= eta
    if s < m and upper < 1:
        assert precise_upper_tail(m - s, m, 1 - digits.mpf(upper)) <= eta


@given(m=st.integers(1, 40), share=st.floats(0, 1), eta=st.floats(0.01, 0.99))
def test_bounds_are_safe_in_exact_arithmetic(m: int, share: float, eta: float) -> None:
    s = round(share * m)
    lower, upper = kernels.cp_lower(s, m, eta), kernels.cp_upper(s, m, eta)
    level, little = Fraction(eta), Fraction(1, 10**13)
    if s > 0:
        assert exact_upper_tail(s, m, Fraction(lower)) <= level
        assert exact_upper_tail(s, m, Fraction(lower) * (1 + little)) > level
    if s < m:
        assert exact_upper_tail(m - s, m, 1 - Fraction(upper)) <= level
        assert exact_upper_tail(m - s, m, 1 - Fraction(upper) * (1 - little)) > level


def test_without_the_outward_step_bounds_would_be_unsafe() -> None:
    # The step is needed: undone, it leaves some bounds on the wrong side. It is as long as stated.
    undone = [
        kernels.cp_lower(r["k"], r["n"], r["alpha"]) / (1 - kernels.CP_STEP) > r["lower_safe"]
        for r in GOLDEN
        if r["k"] > 0 and float(r["lower"]) < 0.01
    ]
    assert 0.1 < sum(undone) / len(undone) < 0.9
    assert kernels.CP_STEP == 1.6e-14
    assert kernels.CP_STEP_ETA == 1e-15


@pytest.mark.parametrize(
    ("a", "b", "q", "wanted"),
    [
        (75, 66334470, 0.9999999999997369, 2.3436208029823924e-06),
        (76, 66334470, 0.9999999999997369, 2.3648781283236736e-06),
        (5, 5, 0.5, 0.5),
        (10**11, 10**13, 0.995, 0.009901070347340288),  # far beyond 2^31 trials, yet no NaN
    ],
)
def test_beta_quantiles_that_defeated_others(a: int, b: int, q: float, wanted: float) -> None:
    assert kernels.cp_lower(a, a + b - 1, q) == pytest.approx(wanted, rel=2e-13)


@pytest.mark.parametrize("eta", [7.703145458496392e-307, 1e-250, 1e-100])
@pytest.mark.parametrize(("s", "m"), [(2, 3), (14, 27), (15, 28), (700, 1400)])
def test_tiny_levels_converge(s: int, m: int, eta: float) -> None:
    # A solver with too few iterations leaves no correct digit at such a level.
    lower = digits.mpf(kernels.cp_lower(s, m, eta))
    assert precise_upper_tail(s, m, lower) <= eta
    assert precise_upper_tail(s, m, lower * (1 + digits.mpf("2e-12"))) > eta


@pytest.mark.parametrize("eta", [0.0, -1.0, 1.0, 2.0, math.nan, math.inf])
def test_levels_outside_the_domain_give_trivial_bounds(eta: float) -> None:
    assert kernels.cp_lower(3, 5, eta) == 0.0
    assert kernels.cp_upper(3, 5, eta) == 1.0
    lower, upper = np.full(6, np.nan), np.full(6, np.nan)
    kernels.cp_table(5, eta, lower, upper)
    assert lower.tolist() == [0.0] * 6
    assert upper.tolist() == [1.0] * 6


# ---- Clopper-Pearson: laws -----------------------------------------------------------------------

LEVELS = [1e-300, 1e-15, 8.264462809917356e-07, 0.001, 0.05, 0.5, 0.7, 1 - 1e-9]


def table(m: int, eta: float) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = np.empty(m + 1), np.empty(m + 1)
    kernels.cp_table(m, eta, lower, upper)
    return lower, upper


@pytest.mark.parametrize("eta", LEVELS)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 16, 150, 2000, 10**5])
def test_tables_increase_strictly_and_mirror(m: int, eta: float) -> None:
    # Other solvers give bounds that do not increase with the count (m = 100,000, level 1e-11).
    lower, upper = table(m, eta)
    assert lower[0] == 0.0
    assert upper[-1] == 1.0
    # Different safe doubles are kept apart; next to 1 there may be no two of them.
    assert (np.diff(lower) > 0)[lower[:-1] < 1 - 1e-15].all()
    assert (np.diff(upper) > 0)[upper[:-1] < 1 - 1e-15].all()
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    np.testing.assert_allclose(upper, 1 - lower[::-1], rtol=1e-12, atol=2e-16)


@pytest.mark.parametrize("eta", LEVELS)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 16, 150, 2000])
def test_table_equals_single_bounds_within_the_step(m: int, eta: float) -> None:
    lower, upper = table(m, eta)
    step = kernels.CP_STEP * max(1.0, math.log(min(eta, 1 - eta)) / math.log(kernels.CP_STEP_ETA))
    s = np.arange(m + 1)
    single = np.empty((2, m + 1))
    kernels.cp_lower_many(s, np.full(m + 1, m), np.full(m + 1, eta), single[0])
    kernels.cp_upper_many(s, np.full(m + 1, m), np.full(m + 1, eta), single[1])
    np.testing.assert_allclose(lower, single[0], rtol=step, atol=0)
    np.testing.assert_allclose(upper, single[1], rtol=step, atol=0)


def test_table_sides_can_be_left_out() -> None:
    lower, upper = table(150, 0.05)
    alone = np.empty(151)
    kernels.cp_table(150, 0.05, alone, None)
    np.testing.assert_array_equal(alone, lower)
    kernels.cp_table(150, 0.05, None, alone)
    np.testing.assert_array_equal(alone, upper)


def test_buffers_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match="m \\+ 1 values"):
        kernels.cp_table(5, 0.05, np.empty(5), None)
    with pytest.raises(ValueError, match="m \\+ 1 values"):
        kernels.cp_table(0, 0.05, None, np.empty(1))
    with pytest.raises(ValueError, match="equal lengths"):
        kernels.cp_lower_many(np.array([1]), np.array([2]), np.array([0.1]), np.empty(2))


@given(
    m=st.integers(1, 10**6),
    share=st.floats(0, 1),
    eta=st.floats(1e-12, 0.9),
    ratio=st.floats(1 + 1e-9, 1e3),
)
def test_bounds_are_nested_in_the_level(m: int, share: float, eta: float, ratio: float) -> None:
    s = round(share * m)
    smaller = eta / ratio
    assert kernels.cp_lower(s, m, smaller) <= kernels.cp_lower(s, m, eta)
    assert kernels.cp_upper(s, m, smaller) >= kernels.cp_upper(s, m, eta)


@given(m=st.integers(1, 2**31 - 1), share=st.floats(0, 1), eta=st.floats(1e-15, 0.5))
def test_bounds_enclose_the_share_of_successes(m: int, share: float, eta: float) -> None:
    s = min(round(share * m), m)
    lower, upper = kernels.cp_lower(s, m, eta), kernels.cp_upper(s, m, eta)
    # The median of a binomial is within one of its mean, so at eta <= 1/2 the share is inside.
    assert 0 <= lower <= s / m <= upper <= 1


@given(m=st.integers(2, 10**9), share=st.floats(0, 1), eta=st.floats(1e-15, 0.999))
def test_single_bounds_increase_with_the_count(m: int, share: float, eta: float) -> None:
    s = min(int(share * m), m - 1)
    for bound in (kernels.cp_lower, kernels.cp_upper):
        one, more = bound(s, m, eta), bound(s + 1, m, eta)
        assert one < more or 1 - 1e-15 < one == more  # the safe double may be the same next to 1


@pytest.mark.parametrize(("m", "step"), [(10, 1), (150, 7), (10_000, 997)])
def test_lower_bounds_over_all_of_s(m: int, step: int) -> None:
    for s in range(1, m + 1, step):
        for eta in (8.264462809917356e-07, 0.05, 0.5):
            lower = table(m, eta)[0][s]
            assert precise_upper_tail(s, m, lower * (1 - 1e-10)) < eta
            assert precise_upper_tail(s, m, min(lower * (1 + 1e-10), 1)) > eta


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("newton", ["", "-DBINCP_CP_NEWTON_STEPS=0"])
def test_c_program_passes_with_newton_and_with_bisection_alone(tmp_path: Path, newton: str) -> None:
    program = tmp_path / "test_binomial"
    sources = [ROOT / "tests" / "c" / "test_binomial.c", ROOT / "csrc" / "numerics" / "binomial.c"]
    flags = ["-std=c11", "-O1", "-ffp-contract=off", f"-I{ROOT / 'csrc'}", *newton.split()]
    subprocess.run(["cc", *flags, *map(str, sources), "-o", str(program), "-lm"], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ", 0 failures" in done.stdout
