"""Shifts in the quantile where exponentials leave the range of doubles, against 60 digits.

The shifts are large and the probabilities subnormal: exp(shift) overflows where the product with a
probability is an ordinary number.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpf

import bincp
from bincp._core import _operators
from bincp.balls import L1, L2, Linf
from bincp.smoothing import Exp1, Exp2, ExpInf, Expp, Laplace

SHIFTS = [699.5, 709.0, 709.78, 709.79, 710.0, 720.0, 740.0, 744.4, 745.2, 800.0, 1400.0, 1e3, 1e4]
TINY = [5e-324, 1e-323, 1e-313, 1e-310, 2.2e-308, 1e-305, 1e-300]
NEAR_ONE = [1 - 2.0**-53, 1 - 2.0**-52, 1 - 1e-9, 0.75]


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


def laplace_upper(p: float, shift: float) -> mpf:
    """Return F(F^-1(p) + shift), where F is exp(x) / 2 below the centre."""
    if p > 0.5:
        return 1 - (1 - mpf(p)) * mp.exp(-mpf(shift))
    grown, crossed = moved_inwards(mpf(p), shift)
    return 1 - grown if crossed else grown


def laplace_lower(p: float, shift: float) -> mpf:
    if p <= 0.5:
        return mpf(p) * mp.exp(-mpf(shift))
    grown, crossed = moved_inwards(1 - mpf(p), shift)
    return grown if crossed else 1 - grown


def moved_inwards(t: mpf, shift: float) -> tuple[mpf, bool]:
    """Return the mass of a tail after the shift, and whether it is the tail of the other side."""
    grown = t * mp.exp(mpf(shift))
    return (grown, False) if grown <= mpf(1) / 2 else (mp.exp(-mpf(shift)) / (4 * t), True)


def check_above(value: float, exact: mpf, slack: float = 2e-15) -> None:
    """The bound is at least the exact one, and by no more than the outward step above it."""
    assert 0.0 <= value <= 1.0
    assert mpf(value) >= exact, (value, mp.nstr(exact, 20))
    assert mpf(value) <= exact * (1 + mpf(slack)) + mpf(2) ** -1072


def check_below(value: float, exact: mpf, slack: float = 2e-15) -> None:
    assert 0.0 <= value <= 1.0
    assert mpf(value) <= exact, (value, mp.nstr(exact, 20))
    assert mpf(value) >= exact * (1 - mpf(slack)) - mpf(2) ** -1072


@pytest.mark.parametrize("shift", SHIFTS)
def test_laplace(shift: float) -> None:
    operator = _operators.laplace(shift)
    for p in [*TINY, 0.25, 0.5, *NEAR_ONE]:
        check_above(operator.upper(p), laplace_upper(p, shift))
        check_below(operator.lower(p), laplace_lower(p, shift))
    assert operator.upper(0.0) == 0.0
    assert operator.lower(1.0) == 1.0


def test_laplace_around_every_overflow() -> None:
    """The product t exp(shift) passes through every scale while exp(shift) overflows."""
    for shift in np.linspace(700.0, 760.0, 241).tolist():
        operator = _operators.laplace(shift)
        for p in 5e-324 * np.array([1, 2, 3, 7, 1000, 2.0**40, 2.0**51, 2.0**60]):
            check_above(operator.upper(float(p)), laplace_upper(float(p), shift))


@pytest.mark.parametrize(
    ("smoothing", "ball"),
    [
        (Laplace(1.0), L1(710.0)),
        (Expp(1.0, 1), L1(710.0)),
        (Exp1(1.0), L1(710.0)),
        (Exp2(1.0), L2(710.0, 1)),
        (ExpInf(1.0), Linf(710.0, 5)),
    ],
    ids=repr,
)
def test_every_scheme_with_a_laplace_shift(smoothing: object, ball: object) -> None:
    certificate = bincp.certify(smoothing, ball)
    for p in TINY:
        check_above(certificate.upper(p), laplace_upper(p, 710.0))
    np.testing.assert_array_equal(
        certificate.upper(np.array(TINY)), [certificate.upper(p) for p in TINY]
    )


def test_the_tighter_of_laplace_and_uniform() -> None:
    for shift in (705.0, 710.0, 720.0, 1e4):
        operator = _operators.laplace_or_uniform(shift, 0.75)
        for p in TINY:
            check_above(operator.upper(p), min(laplace_upper(p, shift), mpf(p) + mpf(0.75)))


# ---- laws whose tail is inverted by root finding ------------------------------------------------


def power_tail(power: float) -> Callable[[mpf], mpf]:
    a = 1 / mpf(power)
    return lambda x: mp.gammainc(a, mpf(x) ** power) / mp.gamma(a) / 2


def sech_tail(alpha: float) -> Callable[[mpf], mpf]:
    a = mpf(alpha)
    return lambda x: mp.betainc(a, a, 0, 1 / (1 + mp.exp(2 * mpf(x))), regularized=True)


def normal_tail(x: mpf) -> mpf:
    return mp.erfc(mpf(x) / mp.sqrt(2)) / 2


TAILS = {
    "exponential power 1.3": (
        lambda shift: _operators.exponential_power(shift, 1.3, math.gamma(1 + 1 / 1.3)),
        power_tail(1.3),
        [1.0, 100.0, 160.0, 170.0, 1e3, 1e4],
    ),
    "exponential power 4": (
        lambda shift: _operators.exponential_power(shift, 4.0, math.gamma(1.25)),
        power_tail(4.0),
        [1.0, 5.0, 5.3, 10.0, 1e4, 1e100],
    ),
    "sech": (
        lambda shift: _operators.sech_power(shift, 1.0, 0.5),
        sech_tail(1.0),
        [1.0, 300.0, 372.0, 710.0, 720.0, 1e4],
    ),
    "gaussian": (_operators.gaussian, normal_tail, [1.0, 38.0, 38.5, 40.0, 75.0, 1e4]),
}


@pytest.mark.parametrize("name", TAILS)
def test_a_bound_moves_the_quantile_by_at_least_the_shift(name: str) -> None:
    """The tail is decreasing, so the exact quantiles of two masses say which one is farther out."""
    make, tail, shifts = TAILS[name]
    for shift in shifts:
        operator = make(shift)
        for p in (5e-324, 1e-310, 1e-300, 1e-20, 0.3):
            x = quantile(tail, mpf(p))
            upper, lower = operator.upper(p), operator.lower(p)
            assert 0.0 <= lower <= p <= upper <= 1.0
            moved = x - mpf(shift)  # the distance from the centre after the shift
            exact = tail(moved) if moved >= 0 else 1 - tail(-moved)
            assert mpf(upper) >= exact, (name, shift, p, upper)
            assert mpf(lower) <= tail(x + mpf(shift)), (name, shift, p, lower)


def quantile(tail: Callable[[mpf], mpf], mass: mpf) -> mpf:
    low, high = mpf(0), mpf(1)
    while tail(high) > mass:
        low, high = high, 2 * high
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > mass else (low, middle)
    return (low + high) / 2
