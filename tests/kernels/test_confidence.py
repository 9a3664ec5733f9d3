"""Randomised Clopper-Pearson bounds and confidence sequences: exact tails, exact chances to err."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bincp.intervals import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    confidence_sequence_lower,
    confidence_sequence_upper,
    randomized_clopper_pearson_lower,
    randomized_clopper_pearson_upper,
)


def further(p, bound):
    """Return a little more than p: of 1 - p where that is smaller, and two doubles of the bound."""
    if p < Fraction(1, 10**300):
        return p  # where bounds are cut off
    step = Fraction(1, 10**11) * min(p, 1 - p) + Fraction(math.ulp(float(bound))) * 2
    return min(p + step, Fraction(1))


def mass(s, m, p):
    return math.comb(m, s) * p**s * (1 - p) ** (m - s)


def tail(s, m, p):
    """Return P[Bin(m, p) >= s]."""
    return sum(mass(i, m, p) for i in range(s, m + 1))


levels = st.sampled_from(["0.05", "0.001", "1/2", "0.9", "1e-9"])
uniforms = st.sampled_from([0.0, 1.0, 0.5, 0.001, 1e-12]) | st.floats(0, 1)
sizes = st.integers(1, 40).flatmap(lambda m: st.tuples(st.integers(0, m), st.just(m)))


@settings(max_examples=300)
@given(sizes, levels, uniforms)
def test_randomised_bounds_solve_the_equation_from_the_safe_side(size, eta, u):
    s, m = size
    level, share = Fraction(eta), Fraction(u)
    lower = Fraction(randomized_clopper_pearson_lower(s, m, eta, u))
    upper = Fraction(randomized_clopper_pearson_upper(s, m, eta, u))

    def above(p):
        return tail(s + 1, m, p) + share * mass(s, m, p)

    def below(p):
        return 1 - tail(s, m, p) + share * mass(s, m, p)

    nearly = level * (1 - Fraction(1, 10**12))
    assert lower == 0 or above(lower) <= level
    assert above(further(lower, lower)) >= nearly or lower == 1 or float(lower) == 0 <= u - level
    assert upper == 1 or below(upper) <= level
    assert (
        below(1 - further(1 - upper, upper)) >= nearly or upper == 0 or (upper == 1 and u >= level)
    )


@given(sizes, levels, uniforms)
def test_a_random_number_never_hurts(size, eta, u):
    s, m = size
    lower = randomized_clopper_pearson_lower(s, m, eta, [u, 1.0])
    upper = randomized_clopper_pearson_upper(s, m, eta, [u, 1.0])
    assert lower[0] >= lower[1] * (1 - 1e-12)
    assert upper[0] <= upper[1] * (1 + 1e-12)
    assert lower[1] == pytest.approx(clopper_pearson_lower(s, m, eta), rel=1e-11)
    assert upper[1] == pytest.approx(clopper_pearson_upper(s, m, eta), rel=1e-11)


@pytest.mark.parametrize("p", [Fraction(1, 10), Fraction(1, 2), Fraction(97, 100)])
@pytest.mark.parametrize("eta", [Fraction(1, 20), Fraction(1, 1000)])
def test_they_err_with_probability_eta_exactly(p, eta):
    # A bound errs for all u below some number: found by bisection, weighted by its count.
    m = 12
    for bound, errs in (
        (randomized_clopper_pearson_lower, lambda b: b > p),
        (randomized_clopper_pearson_upper, lambda b: b < p),
    ):
        wrong = Fraction(0)
        for s in range(m + 1):
            inside, outside = 0.0, 1.0
            if not errs(bound(s, m, eta, 0.0)):
                continue
            if errs(bound(s, m, eta, 1.0)):
                inside = 1.0
            for _ in range(50):
                middle = (inside + outside) / 2
                if errs(bound(s, m, eta, middle)):
                    inside = middle
                else:
                    outside = middle
            wrong += mass(s, m, p) * Fraction(inside)
        assert float(wrong) == pytest.approx(float(eta), rel=1e-9)


def martingale(s, m, p):
    """Return the mean likelihood ratio in closed form, in fractions."""
    return (1 - tail(s + 1, m + 1, p)) / ((m + 1 - s) * mass(s, m + 1, p))


@settings(max_examples=200)
@given(sizes, levels)
def test_sequences_solve_the_equation_from_the_safe_side(size, eta):
    s, m = size
    level = Fraction(eta)
    lower = Fraction(confidence_sequence_lower(s, m, eta))
    upper = Fraction(confidence_sequence_upper(m - s, m, eta))
    assert lower == 0 or martingale(s, m, lower) >= 1 / level
    assert lower == 0 or martingale(s, m, further(lower, lower)) < 1 / level
    assert abs(upper - (1 - lower)) <= Fraction(1, 10**12)
    assert upper == 1 or martingale(s, m, 1 - upper) >= 1 / level


@pytest.mark.parametrize(("s", "m", "p"), [(0, 5, 0.3), (7, 9, 0.6), (9, 9, 0.9), (40, 60, 0.5)])
def test_the_closed_form_is_the_mean_likelihood_ratio(s, m, p):
    with mpmath.workdps(30):
        p = mpmath.mpf(p)
        mean = mpmath.quad(lambda q: q**s * (1 - q) ** (m - s), [p, 1]) / (1 - p)
        wanted = mean / (p**s * (1 - p) ** (m - s))
        exact = martingale(s, m, Fraction(float(p)))
        assert mpmath.almosteq(mpmath.mpf(exact.numerator) / exact.denominator, wanted, 1e-12)


def chance_of_an_error(bounds, p, least_trials=1):
    """Return P[some bound after some trial is above p], by counting the paths that never were."""
    right = {0: Fraction(1)}
    for m in range(1, len(bounds)):
        after = {}
        for s, weight in right.items():
            for hit, chance in ((0, 1 - p), (1, p)):
                after[s + hit] = after.get(s + hit, 0) + weight * chance
        right = {s: w for s, w in after.items() if m < least_trials or bounds[m][s] <= p}
    return 1 - sum(right.values())


@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)])
@pytest.mark.parametrize("eta", ["0.1", "0.01"])
def test_a_sequence_errs_at_any_time_with_probability_eta_at_most(p, eta):
    horizon = 60
    trials = range(horizon + 1)
    sequence = [[], *(confidence_sequence_lower(range(m + 1), m, eta) for m in trials[1:])]
    fixed = [[], *(clopper_pearson_lower(range(m + 1), m, eta) for m in trials[1:])]
    assert chance_of_an_error(sequence, p) <= Fraction(eta)
    if p <= Fraction(1, 2):
        # The bound for a fixed number of trials, looked at after each, errs far more often.
        assert chance_of_an_error(fixed, p) > Fraction(eta)
    upper = [[], *(1 - confidence_sequence_upper(range(m + 1), m, eta)[::-1] for m in trials[1:])]
    assert chance_of_an_error(upper, p) <= Fraction(eta)


def test_many_trials_do_not_underflow():
    m = 2**31 - 2
    assert confidence_sequence_lower(0, m, 0.05) == 0
    assert confidence_sequence_upper(m, m, 0.05) == 1
    assert 0.9999 < confidence_sequence_lower(m, m, 0.05) < 1
    half = confidence_sequence_lower(m // 2, m, 0.05)
    assert 0.4999 < half < 0.5
    assert 0.5 < confidence_sequence_upper(m // 2, m, 0.05) < 0.5001
    with mpmath.workdps(40):  # s = m: (1 - p^(m + 1)) / ((m + 1) p^m (1 - p)) = 1 / eta
        p = mpmath.mpf(confidence_sequence_lower(m, m, 0.05))
        found = (1 - p ** (m + 1)) / ((m + 1) * p**m * (1 - p))
        assert 20 <= found <= 20 * (1 + 1e-6)


def test_edges_of_the_random_number():
    assert randomized_clopper_pearson_lower(10, 10, "0.05", 0.04) == 1
    assert randomized_clopper_pearson_lower(0, 10, "0.05", 0.06) == 0
    assert randomized_clopper_pearson_upper(0, 10, "0.05", 0.04) == 0
    assert randomized_clopper_pearson_upper(10, 10, "0.05", 0.06) == 1


def test_arguments():
    found = randomized_clopper_pearson_lower([[1], [2]], 5, 0.1, [0.2, 0.3, 0.4])
    assert found.shape == (2, 3)
    assert isinstance(confidence_sequence_lower(1, 2, 0.1), float)
    cases = [
        ((1, 2, 0.1, 1.5), ValueError, r"`uniform` must be in \[0, 1\], got 1\.5"),
        ((1, 2, 0.1, np.nan), ValueError, r"`uniform` must be in \[0, 1\], got nan"),
        ((1, 2, 0.1, "a"), TypeError, "`uniform` must be real numbers"),
        ((3, 2, 0.1, 0.5), ValueError, "`successes` must be at most `trials`"),
        ((1, 2, 1, 0.5), ValueError, "`eta`"),
        (([1, 2], 2, 0.1, [0.5] * 3), ValueError, r"`eta` and `uniform` must broadcast"),
    ]
    for arguments, error, message in cases:
        for bound in (randomized_clopper_pearson_lower, randomized_clopper_pearson_upper):
            with pytest.raises(error, match=message):
                bound(*arguments)
    for bound in (confidence_sequence_lower, confidence_sequence_upper):
        with pytest.raises(ValueError, match=r"`trials` must be in \[1, 2147483646\]"):
            bound(1, 2**31 - 1, 0.1)
