"""Exact ranks: every (n, alpha) pair where floating point is known to miss, and the types taken."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bincp._utils.levels import as_fraction, check_level, conformal_rank, float_below, success_rank
from support import golden

GOLDEN = golden("quantile_rank")


def rank(alpha: Any, n: int) -> int:
    return conformal_rank(check_level("alpha", alpha), n)


# ---- ranks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [str, float, Decimal, Fraction], ids=lambda t: t.__name__)
def test_golden_conformal_ranks(write: Any) -> None:
    for n, alpha, exact, *_ in GOLDEN["differs"] + GOLDEN["sample"]:
        assert rank(write(alpha), n) == exact, (n, alpha)
    assert len(GOLDEN["differs"]) == 972


@pytest.mark.parametrize("write", [str, float, Decimal, Fraction], ids=lambda t: t.__name__)
def test_golden_success_ranks(write: Any) -> None:
    rows = GOLDEN["ceil_p_m"]["differs"]
    for m, p, exact, *_ in rows:
        assert success_rank(check_level("p", write(p), closed_high=True), m) == exact, (m, p)
    assert len(rows) == 2220


def by_supremum(alpha: Fraction, n: int) -> int:
    """Rank of sup{tau : #{score >= tau} >= (1 - alpha)(n + 1)} among the scores 1, ..., n."""
    reached = [j for j in range(1, n + 1) if n - j + 1 >= (1 - alpha) * (n + 1)]
    return max(reached, default=0)


@given(alpha=st.fractions(0, 1).filter(lambda a: 0 < a < 1), n=st.integers(1, 60))
def test_conformal_rank_is_the_supremum(alpha: Fraction, n: int) -> None:
    assert conformal_rank(alpha, n) == by_supremum(alpha, n)


@given(thousandths=st.integers(1, 999), n=st.integers(1, 3000))
def test_a_float_means_its_shortest_decimal(thousandths: int, n: int) -> None:
    assert rank(thousandths / 1000, n) == thousandths * (n + 1) // 1000
    assert success_rank(as_fraction("p", thousandths / 1000), n) == -(-thousandths * n // 1000)


@pytest.mark.parametrize(
    ("n", "alpha", "expected"),
    [
        # coverage below nominal with six calibration points
        (6, "0.5", 3),
        (6, "0.3", 2),
        (6, "0.2", 1),
        (6, "0.15", 1),
        (6, "0.1", 0),
        # ranks from above (n + 1 - rank) of 5, 18, 90, 180, 19
        (9, "0.5", 5),
        (19, "0.1", 2),
        (99, "0.1", 10),
        (199, "0.1", 20),
        (20, "0.1", 2),
        # a rank that is clamped to n under-covers; rank 0 stands for -inf
        (5, "0.1", 0),
        (8, "0.1", 0),
        (9, "0.1", 1),
        # ranks from above of 9 of 9 and 4 of 4
        (4, "0.25", 1),
        # on the edge, where a comparison of doubles decides at random
        (19, 0.05, 1),
        (9, 1 - 0.9, 0),  # 0.09999999999999998 is not 0.1
        # no interpolation
        (3, "0.25", 1),
        (2, "0.4", 1),
        # a rank beyond what float32 can count
        (20000001, "0.3", 6000000),
        # floor((n + 1)(1 - 0.9)) in doubles is one too low
        (249, "0.1", 25),
    ],
)
def test_reported_ranks(n: int, alpha: Any, expected: int) -> None:
    assert rank(alpha, n) == expected


def test_eta_is_spent() -> None:
    """The rank is that of alpha - eta."""
    alpha, eta = as_fraction("alpha", "0.1"), as_fraction("eta", 0.01)
    assert conformal_rank(alpha - eta, 199) == 18


@pytest.mark.parametrize("alpha", ["0.1", "0.05", "0.25", "1/3"])
def test_coverage_of_the_rank_is_never_below_nominal(alpha: str) -> None:
    """P[score < threshold] = rank / (n + 1) for continuous scores; one rank more is too many."""
    level = Fraction(alpha)
    for n in range(1, 500):
        assert Fraction(conformal_rank(level, n), n + 1) <= level
        assert Fraction(conformal_rank(level, n) + 1, n + 1) > level


@given(p=st.fractions(0, 1).filter(lambda p: p > 0), m=st.integers(1, 10**9))
def test_success_rank_is_the_least_that_reaches_p(p: Fraction, m: int) -> None:
    t = success_rank(p, m)
    assert 1 <= t <= m
    assert Fraction(t, m) >= p > Fraction(t - 1, m)


# ---- what a level may be --------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        "0.1",
        " 0.1 ",
        "1e-1",
        "1/10",
        Decimal("0.1"),
        Fraction(1, 10),
        np.float64(0.1),
        np.float32(0.1),
        np.float16(0.1),
    ],
    ids=repr,
)
def test_ways_to_write_one_tenth(value: Any) -> None:
    assert as_fraction("alpha", value) == Fraction(1, 10)
    assert check_level("alpha", value) == Fraction(1, 10)


def test_integers_are_levels_where_one_is_allowed() -> None:
    for one in (1, 1.0, "1", Decimal(1), np.int64(1)):
        assert check_level("p", one, closed_high=True) == 1
        with pytest.raises(ValueError, match=r"`alpha` must be in \(0, 1\), got "):
            check_level("alpha", one)


@pytest.mark.parametrize(
    "value", [0.0, 0, -0.1, 99, "0", "-1e-9", "1.0000001", Decimal("1.1"), Fraction(3, 2), 1e300]
)
def test_levels_out_of_range(value: Any) -> None:
    with pytest.raises(ValueError, match=r"`alpha` must be in \(0, 1\), got "):
        check_level("alpha", value)
    with pytest.raises(ValueError, match=r"`p` must be in \(0, 1\], got "):
        check_level("p", value, closed_high=True)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, "nan", "inf", "", "ten", "1/0", "10%", Decimal("NaN")],
    ids=repr,
)
def test_levels_that_are_no_number(value: Any) -> None:
    with pytest.raises(ValueError, match="`alpha` must be a finite number, got "):
        check_level("alpha", value)


@pytest.mark.parametrize(
    "value", [None, True, np.True_, 0.1j, [0.1], np.array([0.1]), b"0.1", object], ids=repr
)
def test_levels_of_another_type(value: Any) -> None:
    with pytest.raises(TypeError, match="`alpha` must be an int, float, str, Decimal or Fraction"):
        check_level("alpha", value)


@given(st.fractions(0, 1))
def test_float_below(level: Fraction) -> None:
    below = float_below(level)
    assert Fraction(below) <= level < Fraction(math.nextafter(below, math.inf))


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (Fraction(0), 0.0),
        (Fraction(1), 1.0),
        (Fraction(1, 2), 0.5),
        (Fraction(1, 10), 0.09999999999999999),
        (1 - Fraction(1, 10**30), 1 - 2.0**-53),
        (Fraction(1, 10**400), 0.0),
    ],
)
def test_float_below_at_the_ends(level: Fraction, expected: float) -> None:
    assert float_below(level) == expected


@pytest.mark.parametrize("huge", ["1e-999999999", "1e999999999", "-1E-99999999"])
def test_huge_exponents_are_refused_and_not_expanded(huge: str) -> None:
    with pytest.raises(ValueError, match="`alpha` must be 0 or between 1e-400 and 1e400 in size"):
        as_fraction("alpha", huge)


@pytest.mark.parametrize("finite", ["1e-401", "1e500"])
def test_a_finite_number_is_not_told_to_be_finite(finite: str) -> None:
    with pytest.raises(ValueError, match="`alpha` must be 0 or between 1e-400 and 1e400 in size"):
        as_fraction("alpha", finite)


@pytest.mark.parametrize("large", [Fraction(1, 10**4300), Fraction(10**4300, 3)])
def test_fractions_that_python_does_not_print_are_refused(large: Fraction) -> None:
    with pytest.raises(ValueError, match="`alpha` must have at most 14000 bits"):
        as_fraction("alpha", large)
    largest = Fraction(1, 2**13_999)
    assert as_fraction("alpha", largest) == largest
    assert Fraction(str(largest)) == largest
