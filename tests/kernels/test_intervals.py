"""Confidence bounds through the public functions: values, direction, arguments and reported faults.

The kernels have their own file, test_binomial.py.
"""

import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special, stats

from bincp import intervals
from bincp.intervals import (
    bernstein_lower,
    bernstein_upper,
    clopper_pearson_lower,
    clopper_pearson_upper,
    dkw_band,
    hoeffding_kl_lower,
    hoeffding_kl_upper,
    hoeffding_lower,
    hoeffding_upper,
)
from support import golden

GOLDEN = golden("cp")["rows"]

Function = Callable[..., Any]
cp_bounds = pytest.mark.parametrize("bound", [clopper_pearson_lower, clopper_pearson_upper])
MEAN_PAIRS = [
    (hoeffding_lower, hoeffding_upper),
    (hoeffding_kl_lower, hoeffding_kl_upper),
    (bernstein_lower, bernstein_upper),
]
MEAN_BOUNDS = [bound for pair in MEAN_PAIRS for bound in pair]
mean_bounds = pytest.mark.parametrize("bound", MEAN_BOUNDS)
sample_functions = pytest.mark.parametrize("function", [*MEAN_BOUNDS, dkw_band])

digits = mpmath.mp.clone()
digits.dps = 50


# ---- Clopper-Pearson: values --------------------------------------------------------------------


def test_golden_rows_as_arrays() -> None:
    rows = [row for row in GOLDEN if row["n"] <= 10**6]
    s, m, eta = (np.array([row[name] for row in rows]) for name in ("k", "n", "alpha"))
    lower, upper = clopper_pearson_lower(s, m, eta), clopper_pearson_upper(s, m, eta)
    safe_lower, safe_upper = (
        np.array([row[name] for row in rows]) for name in ("lower_safe", "upper_safe")
    )
    assert (lower <= safe_lower).all()
    assert (upper >= safe_upper).all()
    np.testing.assert_allclose(lower, safe_lower, rtol=1e-13, atol=0)
    np.testing.assert_allclose(upper, safe_upper, rtol=1e-13, atol=0)


def test_golden_rows_as_scalars() -> None:
    for row in GOLDEN:
        tolerance = 2e-13 if row["n"] <= 10**6 else 1e-11
        eta = Fraction(row["alpha"])  # the exact binary value, which no decimal rounds
        lower = clopper_pearson_lower(row["k"], row["n"], eta)
        upper = clopper_pearson_upper(row["k"], row["n"], eta)
        assert row["lower_safe"] * (1 - tolerance) <= lower <= row["lower_safe"]
        assert row["upper_safe"] <= upper <= row["upper_safe"] * (1 + tolerance)


@cp_bounds
@pytest.mark.parametrize("m", [1, 2, 17, 150])
def test_look_up_equals_single_bounds(bound: Function, m: int) -> None:
    s = np.arange(m + 1)
    many = bound(s, m, "0.01")  # one table
    np.testing.assert_allclose(many, [bound(int(k), m, "0.01") for k in s], rtol=1.6e-14, atol=0)
    np.testing.assert_allclose(many, bound(s, np.full(m + 1, m), "0.01"), rtol=1.6e-14, atol=0)
    order = np.random.default_rng(0).integers(0, m + 1, size=(5, 7))
    np.testing.assert_allclose(bound(order, m, "0.01"), many[order], rtol=1.6e-14, atol=0)


def test_arguments_broadcast() -> None:
    s, m, eta = np.array([[1], [5]]), np.array([10, 20, 30]), np.array([0.01, 0.05, 0.1])
    result = clopper_pearson_lower(s, m, eta)
    assert result.shape == (2, 3)
    assert result.dtype == np.float64
    for i in range(2):
        for j in range(3):
            assert result[i, j] == clopper_pearson_lower(
                int(s[i, 0]), int(m[j]), Fraction(float(eta[j]))
            )


@cp_bounds
def test_result_types(bound: Function) -> None:
    assert type(bound(3, 10, 0.05)) is float
    assert type(bound(np.int64(3), np.array(10), 0.05)) is float
    assert bound([3], 10, 0.05).shape == (1,)
    assert bound(np.empty((0, 4), dtype=np.int32), 10, 0.05).shape == (0, 4)
    assert bound([], 10, 0.05).shape == (0,)


@cp_bounds
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64", ">i4"])
def test_counts_of_any_integer_dtype(bound: Function, dtype: str) -> None:
    counts = np.array([0, 3, 10], dtype=dtype)
    np.testing.assert_array_equal(bound(counts, 10, 0.05), bound([0, 3, 10], 10, 0.05))
    np.testing.assert_array_equal(bound(counts[::-2], 10, 0.05), bound([10, 0], 10, 0.05))


@cp_bounds
def test_torch_counts_and_levels(bound: Function) -> None:
    counts = torch.tensor([0, 3, 10])
    wanted = bound([0, 3, 10], 10, np.array([0.05, 0.05, 0.05]))
    assert isinstance(bound(counts, 10, 0.05), np.ndarray)
    np.testing.assert_array_equal(
        bound(counts, torch.tensor(10), torch.full((3,), 0.05, dtype=torch.float64)), wanted
    )


@cp_bounds
@pytest.mark.parametrize("written", ["0.1", "1e-3", "0.05"])
def test_levels_are_the_decimal_that_was_written(bound: Function, written: str) -> None:
    value = bound(7, 20, written)
    for eta in (float(written), Decimal(written), Fraction(written), np.float64(written)):
        assert bound(7, 20, eta) == value


def test_levels_are_rounded_down() -> None:
    # The double 0.1 is above 1/10; a level of 1/10 must not be exceeded by even that.
    above = np.array([0.1])
    assert Fraction(0.1) > Fraction(1, 10)
    assert clopper_pearson_lower(1, 1, "0.1") < Fraction(1, 10)
    # With one trial the exact lower bound is eta itself.
    below = math.nextafter(0.1, 0)
    assert clopper_pearson_lower(1, 1, "0.1") == clopper_pearson_lower(1, 1, np.array(below))
    assert clopper_pearson_lower([1], 1, above) > clopper_pearson_lower(1, 1, "0.1")


@pytest.mark.parametrize("eta", ["1e-400", "1e-320", Fraction(1, 10**1000)])
def test_levels_below_the_doubles_stay_safe(eta: str | Fraction) -> None:
    assert 0 <= clopper_pearson_lower(5, 10, eta) < 1e-60
    assert clopper_pearson_upper(5, 10, eta) > 1 - 1e-15
    assert hoeffding_lower(np.full(10, 0.5), eta) == 0.0
    assert dkw_band(np.full(10**4, 0.5), eta) > 0.19


# ---- Clopper-Pearson: reported faults ------------------------------------------------------------


def two_sided(s: Any, m: int, alpha: str) -> tuple[Any, Any]:
    half = Fraction(alpha) / 2
    return clopper_pearson_lower(s, m, half), clopper_pearson_upper(s, m, half)


@pytest.mark.parametrize(
    ("s", "m", "alpha", "lower", "upper"),
    [
        (0, 18, "0.01", 0.0, 0.25498502848277504),
        (18, 18, "0.01", 0.745014971517225, 1.0),
        (0, 10, "0.05", 0.0, 0.30849710781876083),
        (5, 5, "0.05", 0.4781762498950185, 1.0),
        (0, 1000, "1e-7", 0.0, 0.01667072243152071),
        (1, 1000, "1e-7", 5.000000124875004e-11, 0.01966259351233148),
        (1000, 1000, "1e-7", 0.9833292775684793, 1.0),
    ],
)
def test_no_and_all_successes(s: int, m: int, alpha: str, lower: float, upper: float) -> None:
    assert two_sided(s, m, alpha) == pytest.approx((lower, upper), rel=1e-12, abs=0)


def test_vectors_that_mix_the_ends_and_the_interior() -> None:
    # no NaN anywhere
    lower, upper = two_sided([0, 5, 10, 0, 10], 10, "0.05")
    assert lower[0] == lower[3] == 0.0
    assert upper[2] == upper[4] == 1.0
    assert np.isfinite([lower, upper]).all()
    assert ((lower > 0) & (lower < upper) & (upper < 1))[1]


def test_tiny_levels_at_many_trials_increase_and_are_right() -> None:
    lower, upper = two_sided([0, 10, 100, 1000], 100_000, "1e-11")
    assert lower == pytest.approx(
        [0.0, 3.4637672992871474e-06, 0.0004622491845401852, 0.00800425012032438], rel=1e-12
    )
    assert upper == pytest.approx(
        [0.0002601819788317671, 0.0005030609007572588, 0.0018509801612238666, 0.012302551889577344],
        rel=1e-12,
    )
    lower, upper = two_sided(np.arange(100_001), 100_000, "1e-11")
    assert (np.diff(lower) > 0).all()
    assert (np.diff(upper) > 0)[upper[:-1] < 1].all()  # 1 - 5e-17 rounds up to 1
    share = np.arange(100_001) / 100_000
    assert ((lower <= share) & (share <= upper)).all()


@pytest.mark.parametrize(
    ("s", "m", "one_lower", "two_lower", "one_upper", "two_upper"),
    [
        (90, 150, 0.41684379425757606, 0.4109888230292996, 0.7655745535070151, 0.7703352593472867),
        (150, 150, 0.9215492245957226, 0.917300586948166, 1.0, 1.0),
        (0, 150, 0.0, 0.0, 0.07845077540427736, 0.08269941305183408),
        (
            1,
            150,
            3.174610682815391e-08,
            1.587303464351672e-08,
            0.09564534571291004,
            0.10009995172703529,
        ),
        (
            149,
            150,
            0.9043546542870899,
            0.8999000482729648,
            0.9999999682538931,
            0.9999999841269653,
        ),
        (1200, 2000, 0.550697721448034, 0.5490523247838756, 0.6479562310213249, 0.6495134592600811),
        (1, 1, 4.7619047619047615e-06, 2.380952380952381e-06, 1.0, 1.0),
        (0, 1, 0.0, 0.0, 0.999995238095238, 0.9999976190476191),
    ],
)
def test_bounds_are_one_sided(
    s: int, m: int, one_lower: float, two_lower: float, one_upper: float, two_upper: float
) -> None:
    # a two-sided interval in place of a one-sided bound wastes half of eta
    eta = Fraction("0.001") / 210
    one = clopper_pearson_lower(s, m, eta), clopper_pearson_upper(s, m, eta)
    assert one == pytest.approx((one_lower, one_upper), rel=1e-12, abs=0)
    two = clopper_pearson_lower(s, m, eta / 2), clopper_pearson_upper(s, m, eta / 2)
    assert two == pytest.approx((two_lower, two_upper), rel=1e-12, abs=0)


@given(m=st.integers(1, 5000), share=st.floats(0, 1), eta=st.fractions("1e-9", "0.9"))
def test_upper_is_the_mirror_image_of_lower(m: int, share: float, eta: Fraction) -> None:
    s = round(share * m)
    mirrored = 1 - clopper_pearson_lower(m - s, m, eta)
    assert clopper_pearson_upper(s, m, eta) == pytest.approx(mirrored, rel=1e-12, abs=1e-15)


def test_upper_bound_of_reported_counts() -> None:
    assert clopper_pearson_upper(30, 100, "0.025") == pytest.approx(0.39981467617980415)
    assert clopper_pearson_upper(0, 10, "0.16") == pytest.approx(0.16744679259812686)
    # the paper's union over all classes, and over the calibration points and the true label
    assert clopper_pearson_upper(0, 150, Fraction("0.001") / 1200) == pytest.approx(
        0.08909701546194153, rel=1e-12
    )
    assert clopper_pearson_upper(0, 150, Fraction("0.001") / 201) == pytest.approx(
        0.07818162762195348, rel=1e-12
    )


@given(m=st.integers(1, 10**6), eta=st.fractions("1e-12", "0.99"))
def test_upper_bound_of_no_success_is_positive(m: int, eta: Fraction) -> None:
    # an upper bound of 0 for an unseen label would empty every robust set
    assert clopper_pearson_upper(0, m, eta) > 0
    assert clopper_pearson_lower(m, m, eta) < 1


def test_ten_successes_of_ten_cannot_decide_much() -> None:
    # nine successes of nine do not reach 1/2 at this level, ten do
    assert clopper_pearson_lower(10, 10, "0.001") == pytest.approx(0.5011872336272722, rel=1e-12)
    assert clopper_pearson_lower(9, 9, "0.001") < 0.5


def test_a_billion_successes_keep_their_digits() -> None:
    # a lower bound cast to float32 becomes 1 and the radius infinite
    lower = clopper_pearson_lower(10**9, 10**9, "0.001")
    assert special.ndtri(lower) == pytest.approx(5.675659798037329, rel=1e-9)


@cp_bounds
@pytest.mark.parametrize(
    ("s", "m", "eta", "error", "message"),
    [
        (0.2, 2, 0.05, TypeError, "`successes` must be integers, got dtype float64"),
        (3, 30, -1, ValueError, r"`eta` must be in \(0, 1\), got -1"),
        (3, 30, 2, ValueError, r"`eta` must be in \(0, 1\), got 2"),
        (-1, 30, 0.05, ValueError, r"`successes` must be in \[0, 2147483647\], got -1"),
        (31, 30, 0.05, ValueError, "`successes` must be at most `trials`, got 31 of 30"),
        (3, 0, 0.05, ValueError, r"`trials` must be in \[1, 2147483647\], got 0"),
        # and the rest of the kind
        (3.0, 30, 0.05, TypeError, "`successes` must be integers"),  # whole floats too
        ([95.0, 5.0], 100, 0.05, TypeError, "`successes` must be integers"),
        (True, 30, 0.05, TypeError, "`successes` must be integers, got dtype bool"),
        ("3", 30, 0.05, TypeError, "`successes` must be integers"),
        (None, 30, 0.05, TypeError, "`successes` must be integers"),
        (3, 30.0, 0.05, TypeError, "`trials` must be integers"),
        (3, -30, 0.05, ValueError, "`trials` must be in"),
        (3, 2**31, 0.05, ValueError, r"`trials` must be in .*, got 2147483648"),
        ([3, 4], [30, 0], 0.05, ValueError, r"`trials` must be in .*, got 0 at index \(1,\)"),
        ([[1], [31]], [40, 30], 0.05, ValueError, r"got 31 of 30 at index \(1, 1\)"),
        ([1, 2], [3, 4, 5], 0.05, ValueError, r"must broadcast to one shape, got \(2,\), \(3,\)"),
        (3, 30, 0, ValueError, "`eta` must be in"),
        (3, 30, 1, ValueError, "`eta` must be in"),
        (3, 30, math.nan, ValueError, "`eta` must be a finite number"),
        (3, 30, "x", ValueError, "`eta` must be a finite number"),
        (3, 30, None, TypeError, "`eta` must be an int, float"),
        (3, 30, True, TypeError, "`eta` must be an int, float"),
        (3, 30, [1], TypeError, "`eta` must be float64 or narrower, got dtype int64"),
        (3, 30, [0.1, 1.0], ValueError, r"`eta` must be in \(0, 1\), got 1.0 at index \(1,\)"),
        (3, 30, [0.1, math.nan], ValueError, r"`eta` must be in \(0, 1\), got nan at index \(1,\)"),
    ],
)
def test_bad_arguments_are_refused(
    bound: Function, s: Any, m: Any, eta: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        bound(s, m, eta)


def test_no_scipy_stats_is_loaded() -> None:
    # the core neither imports scipy.stats nor borrows SciPy's compiled functions
    code = (
        "import sys, bincp.intervals as i; i.clopper_pearson_lower(3, 9, 0.1); "
        "assert not {'scipy.stats', 'scipy.special.cython_special'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- bounds on a mean ----------------------------------------------------------------------------


def exact_mean_bounds(
    samples: np.ndarray, eta: Fraction, low: float, high: float, *, bernstein: bool
) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The textbook formulas at 50 digits, mean and variance from exact fractions."""
    values = [Fraction(float(v)) for v in samples]
    m = len(values)
    mean = sum(values, start=Fraction(0)) / m
    spread = Fraction(high) - Fraction(low)
    if not bernstein:
        width = _mpf(spread) * digits.sqrt(-digits.log(_mpf(eta)) / (2 * m))
    elif m == 1:
        width = digits.inf
    else:
        variance = sum(((v - mean) ** 2 for v in values), start=Fraction(0)) / (m - 1)
        log_term = digits.log(2 / _mpf(eta))
        width = digits.sqrt(2 * _mpf(variance) * log_term / m)
        width += 7 * _mpf(spread) * log_term / (3 * (m - 1))
    return max(_mpf(mean) - width, low), min(_mpf(mean) + width, high)


def _mpf(value: Fraction) -> mpmath.mpf:
    return digits.mpf(value.numerator) / value.denominator


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    low=st.sampled_from([0.0, -1.0, 0.1, 1e3]),
    spread=st.sampled_from([1.0, 0.3, 1e-3, 50.0]),
    dtype=st.sampled_from(["float64", "float32"]),
    eta=st.fractions("1e-12", "0.999"),
)
def test_mean_bounds_are_the_formulas_rounded_outward(
    data: st.DataObject, low: float, spread: float, dtype: str, eta: Fraction
) -> None:
    low, high = float(np.dtype(dtype).type(low)), float(np.dtype(dtype).type(low + spread))
    width = np.dtype(dtype).itemsize * 8
    elements = st.floats(low, high, width=width)
    samples = data.draw(hnp.arrays(dtype, st.integers(1, 40), elements=elements))
    slack = 1e-14 * len(samples) * (abs(low) + abs(high)) + 1e-13 * spread
    for bernstein, lower, upper in (
        (False, hoeffding_lower, hoeffding_upper),
        (True, bernstein_lower, bernstein_upper),
    ):
        wanted = exact_mean_bounds(samples, eta, low, high, bernstein=bernstein)
        got_lower = lower(samples, eta, bounds=(low, high))
        got_upper = upper(samples, eta, bounds=(low, high))
        assert wanted[0] - slack <= got_lower <= wanted[0]
        assert wanted[1] <= got_upper <= wanted[1] + slack


def exact_kl_bound(mean: Fraction, budget: mpmath.mpf, end: int) -> mpmath.mpf:
    """The last place on the way from the mean to an end whose relative entropy is in the budget."""
    x, near, far = _mpf(mean), _mpf(mean), digits.mpf(end)
    while abs(far - near) > digits.mpf(10) ** -40:
        middle = (near + far) / 2
        entropy = x * digits.log(x / middle) if x else digits.mpf(0)
        entropy += (1 - x) * digits.log((1 - x) / (1 - middle)) if x < 1 else 0
        near, far = (middle, far) if entropy <= budget else (near, middle)
    return far


@settings(max_examples=100, deadline=None)
@given(
    samples=hnp.arrays("float64", st.integers(1, 30), elements=st.floats(0, 1)),
    eta=st.fractions("1e-30", "0.999"),
)
@example(samples=np.zeros(7), eta=Fraction(1, 10))
@example(samples=np.ones(7), eta=Fraction(1, 10))
@example(samples=np.full(3, 5e-324), eta=Fraction(1, 10))
@example(samples=np.full(3, 1 - 2.0**-53), eta=Fraction(1, 10))
@example(samples=np.array([1e-300, 1.0]), eta=Fraction(1, 10))
def test_the_sharper_form_is_the_last_place_in_the_budget(
    samples: np.ndarray, eta: Fraction
) -> None:
    mean = sum(map(Fraction, samples.tolist()), start=Fraction(0)) / len(samples)
    budget = -digits.log(_mpf(eta)) / len(samples)
    for bound, end, sign in ((hoeffding_kl_lower, 0, -1), (hoeffding_kl_upper, 1, 1)):
        beyond = sign * (bound(samples, eta) - exact_kl_bound(mean, budget, end))
        assert -1e-40 <= beyond <= 1e-12


@pytest.mark.parametrize("eta", ["1e-19", "1e-20", "1e-30", "1e-300"])
def test_the_sharper_form_reaches_the_smallest_doubles(eta: str) -> None:
    """One sample of 1/16: the bound is about eta^16, beyond the doubles for the smaller levels."""
    x, budget = digits.mpf("0.0625"), -digits.log(_mpf(Fraction(eta)))

    def entropy(q: float) -> mpmath.mpf:
        return x * digits.log(x / q) + (1 - x) * digits.log((1 - x) / (1 - digits.mpf(q)))

    bound = hoeffding_kl_lower([0.0625], eta)
    assert bound == 0 if entropy(5e-324) < budget else entropy(bound) >= budget
    assert entropy(max(2 * bound, 5e-324)) < budget or bound == 0


def test_bounds_of_reported_losses() -> None:
    """A bound lost its term where it is above the mean, that is, always."""
    losses = np.repeat([1.0, 0.0], [20, 80])
    for bound, exact in (
        (hoeffding_upper, "0.30729830131446736198"),
        (hoeffding_kl_upper, "0.29417902650733481278"),
    ):
        assert 0 <= bound(losses, "0.1") - digits.mpf(exact) <= 1e-12
        values = [bound(losses, eta) for eta in ("0.01", "0.1", "0.5", "0.9")]
        assert sorted(values, reverse=True) == values
        assert values[-1] >= 0.2


@settings(max_examples=50, deadline=None)
@given(
    hnp.arrays("float32", st.integers(1, 30), elements=st.floats(-2, 3, width=32)),
    st.fractions("1e-12", "0.999"),
)
def test_the_sharper_form_is_never_the_worse_one(samples: np.ndarray, eta: Fraction) -> None:
    wide = {"bounds": (-2, 3)}
    assert hoeffding_kl_lower(samples, eta, **wide) >= hoeffding_lower(samples, eta, **wide) - 1e-12
    assert hoeffding_kl_upper(samples, eta, **wide) <= hoeffding_upper(samples, eta, **wide) + 1e-12


@pytest.mark.parametrize("m", [10, 1000, 100_000])
def test_rounding_of_long_sums_is_outward(m: int) -> None:
    # 0.1 is not a dyadic fraction: a naive sum drifts, to either side
    samples = np.full(m, 0.1, dtype=np.float64)
    samples[::3] = 0.7
    wanted = exact_mean_bounds(samples, Fraction("0.05"), 0.0, 1.0, bernstein=False)
    assert wanted[0] - 1e-10 <= hoeffding_lower(samples, 0.05) <= wanted[0]
    assert wanted[1] <= hoeffding_upper(samples, 0.05) <= wanted[1] + 1e-10


@pytest.mark.parametrize("eta", ["0.001", "0.05", "0.3"])
@pytest.mark.parametrize("m", [2, 10, 60])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [*MEAN_PAIRS, (None, None)],
    ids=["hoeffding", "hoeffding_kl", "bernstein", "clopper_pearson"],
)
def test_error_probability_is_at_most_eta(
    lower: Function | None, upper: Function | None, m: int, eta: str
) -> None:
    # Exact: all m + 1 outcomes of Bernoulli samples, weighted by their probability.
    counts = np.arange(m + 1)
    if lower is None or upper is None:
        low, high = clopper_pearson_lower(counts, m, eta), clopper_pearson_upper(counts, m, eta)
    else:
        samples = (counts[:, np.newaxis] > np.arange(m)).astype(np.float64)
        low, high = lower(samples, eta), upper(samples, eta)
    for p in np.linspace(0.005, 0.995, 100):
        mass = stats.binom.pmf(counts, m, p)
        assert mass[low > p].sum() <= float(eta) + 1e-12
        assert mass[high < p].sum() <= float(eta) + 1e-12


def test_bernstein_is_sharper_than_hoeffding_at_low_variance() -> None:
    calm = np.full(1000, 0.5)
    assert bernstein_lower(calm, 0.05) > hoeffding_lower(calm, 0.05)
    wild = np.tile([0.0, 1.0], 500)
    assert bernstein_lower(wild, 0.05) < hoeffding_lower(wild, 0.05)


def test_clopper_pearson_beats_both_on_binary_samples() -> None:
    # The paper's comparison
    samples = (np.arange(1000) < 900).astype(np.float64)
    exact = clopper_pearson_lower(900, 1000, 0.001)
    assert exact > bernstein_lower(samples, 0.001)
    assert exact > hoeffding_lower(samples, 0.001)


def test_one_sample_has_no_variance() -> None:
    assert bernstein_lower(np.array([0.7]), 0.05) == 0.0
    assert bernstein_upper(np.array([0.7]), 0.05, bounds=(-2, 3)) == 3.0
    assert bernstein_lower(np.array([[0.7], [0.2]]), 0.05).tolist() == [0.0, 0.0]


@mean_bounds
def test_any_axis_stride_and_dtype(bound: Function) -> None:
    samples = np.random.default_rng(0).random((6, 5, 4))
    wanted = bound(samples, 0.1)
    assert wanted.shape == (6, 5)
    assert wanted.dtype == np.float64
    np.testing.assert_allclose(bound(np.moveaxis(samples, 2, 0), 0.1, axis=0), wanted, rtol=1e-12)
    np.testing.assert_allclose(bound(samples.transpose(0, 2, 1), 0.1, axis=1), wanted, rtol=1e-12)
    samples.flags.writeable = False
    np.testing.assert_array_equal(bound(samples[::-1], 0.1), wanted[::-1])
    assert type(bound(samples[0, 0], 0.1)) is float
    for dtype in (np.float16, np.float32):
        rounded = samples.astype(dtype)
        np.testing.assert_allclose(bound(rounded, 0.1), bound(rounded.astype(float), 0.1))


@sample_functions
def test_torch_samples(function: Function) -> None:
    samples = torch.rand((3, 50), generator=torch.Generator().manual_seed(0), requires_grad=True)
    np.testing.assert_array_equal(function(samples, 0.1), function(samples.detach().numpy(), 0.1))
    half = samples.to(torch.bfloat16)
    np.testing.assert_array_equal(function(half, 0.1), function(half.float().detach().numpy(), 0.1))


@mean_bounds
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.0000001, -1e-9])
def test_samples_outside_the_bounds_are_refused(bound: Function, bad: float) -> None:
    samples = np.full((3, 4), 0.5)
    samples[2, 1] = bad
    with pytest.raises(
        ValueError, match=r"`samples` must be in \[0, 1\], got .* at index \(2, 1\)"
    ):
        bound(samples, 0.1)
    with pytest.raises(ValueError, match=r"at index \(1, 2\)"):
        bound(samples.T, 0.1, axis=0)


def test_bounds_are_compared_with_the_sample_as_it_is() -> None:
    # The float32 nearest to 0.1 is above 0.1.
    with pytest.raises(ValueError, match=r"`samples` must be in \[0, 0.1\]"):
        hoeffding_lower(np.array([0.1], dtype=np.float32), 0.1, bounds=(0, 0.1))


@sample_functions
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"samples": np.float64(0.5)}, ValueError, "`samples` must have at least one axis"),
        ({"samples": np.empty((3, 0))}, ValueError, r"at least one sample, got shape \(3, 0\)"),
        ({"samples": np.array([0, 1])}, ValueError, "`samples` must have one of the dtypes"),
        ({"samples": ["a"]}, ValueError, "`samples` must have one of the dtypes"),
        ({"axis": 2}, ValueError, r"`axis` must be in \[-2, 1\], got 2"),
        ({"axis": 0.0}, TypeError, "`axis` must be an integer"),
        ({"eta": 0}, ValueError, r"`eta` must be in \(0, 1\), got 0"),
        ({"eta": 1.5}, ValueError, r"`eta` must be in \(0, 1\), got 1.5"),
        ({"eta": np.array([0.1])}, TypeError, "`eta` must be an int, float"),
    ],
)
def test_bad_sample_arguments_are_refused(
    function: Function, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        function(**({"samples": np.full((2, 3), 0.5), "eta": 0.1} | arguments))


@mean_bounds
@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        ((1, 0), ValueError, r"`bounds` must be \(low, high\), low < high"),
        ((0, 0), ValueError, "`bounds` must be"),
        ((0, math.nan), ValueError, "`bounds` must be finite"),
        ((0, math.inf), ValueError, "`bounds` must be finite"),
        ((-1.7e308, 1.7e308), ValueError, "at most 1e290 in size"),
        (1, TypeError, "`bounds` must be a pair"),
        ((0, 1, 2), TypeError, "`bounds` must be a pair"),
        (("0", 1), TypeError, "`bounds` must be a real number"),
    ],
)
def test_bad_bounds_are_refused(
    bound: Function, bounds: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        bound(np.array([0.5]), 0.1, bounds=bounds)


# ---- Dvoretzky-Kiefer-Wolfowitz ------------------------------------------------------------------


@pytest.mark.parametrize("eta", ["1e-6", "0.001", "0.05", "0.5", "0.9"])
@pytest.mark.parametrize("m", [1, 2, 10, 150, 3000])
def test_dkw_band_holds_on_both_sides(m: int, eta: str) -> None:
    width = dkw_band(np.linspace(0, 1, m), eta)
    exact = min(digits.sqrt(digits.log(2 / digits.mpf(eta)) / (2 * m)), 1)
    assert exact <= width <= exact * (1 + digits.mpf("1e-14"))
    # The exact law of the largest distance between the two distribution functions
    assert stats.kstwo.sf(width, m) <= float(eta) * (1 + 1e-9)


def test_dkw_band_would_not_hold_with_a_one_sided_constant() -> None:
    assert stats.kstwo.sf(math.sqrt(math.log(1 / 0.05) / 300), 150) > 0.05


def test_dkw_band_is_one_number_for_all_rows() -> None:
    samples = np.random.default_rng(0).normal(size=(4, 150))
    samples[0, 0] = math.inf  # an ordinary value
    assert type(dkw_band(samples, 0.05)) is float
    assert dkw_band(samples, 0.05) == dkw_band(samples.T, 0.05, axis=0)


def test_dkw_band_refuses_nan() -> None:
    samples = np.zeros((2, 3))
    samples[1, 2] = math.nan
    with pytest.raises(ValueError, match=r"`samples` must not be NaN, got nan at index \(1, 2\)"):
        dkw_band(samples, 0.05)


def test_every_public_name_is_documented() -> None:
    for name in intervals.__all__:
        assert "Examples" in getattr(intervals, name).__doc__


@pytest.mark.parametrize("bounds", [(0, 1e308), (-1e300, 0), (-1e-310, 1e-309)])
def test_bounds_that_would_overflow_or_underflow_are_refused(bounds):
    with pytest.raises(ValueError, match="`bounds` must be"):
        hoeffding_lower(np.full(10, max(bounds)), 0.05, bounds=bounds)
