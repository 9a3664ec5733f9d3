"""What is tuned on calibration noise loses coverage; on noise of its own it does not. Exactly.

A constant input: a score depends on the noise alone, and is even on a few values. Then noise that
is equal draw by draw gives separate points the very scores of the calibration points.
"""

import itertools
from collections import Counter
from fractions import Fraction
from math import comb, factorial, prod

import numpy as np
import pytest

import bincp
from bincp import balls, smoothing
from bincp.noise import draw
from support import quiet

CERTIFICATE = bincp.certify(smoothing.Gaussian(1.0), balls.L2(0))


def ways(items):
    """In how many orders some items can stand."""
    return factorial(len(items)) // prod(factorial(n) for n in Counter(items).values())


def calibrations(rule, n, m, n_values):
    """For every calibration set: its probability, and the share of values that reach tau, and k."""
    points = list(itertools.combinations_with_replacement(range(n_values), m))
    for which in itertools.combinations_with_replacement(range(len(points)), n):
        chance = ways(which) * prod(ways(points[i]) for i in which)
        quiet(rule.calibrate, np.array([points[i] for i in which], float))
        reach = sum(value >= rule.tau_ for value in range(n_values))
        yield Fraction(chance, n_values ** (n * m)), Fraction(reach, n_values), rule.min_count_


def acceptance(p, k, m):
    return sum(comb(m, hits) * p**hits * (1 - p) ** (m - hits) for hits in range(k, m + 1))


def law_of_settings_of_p():
    """n = 2, m = 4, five values: p is one of 1/4, 1/2, 3/4 and 1, on the same scores."""
    alpha, n, m = Fraction(1, 3), 2, 4
    rules = [bincp.BinCP(CERTIFICATE, alpha=alpha, p=Fraction(t, m)) for t in range(1, m + 1)]
    law = Counter()
    for found in zip(*(calibrations(rule, n, m, 5) for rule in rules), strict=True):
        # Wrong labels have lower scores, and are accepted more often where true labels are.
        law[tuple(acceptance(p, k, m) for _, p, k in found)] += found[0][0]
    return alpha, law


def law_of_four_scores():
    """n = 9, one draw, six values: the score is one of four, independent of each other."""
    alpha = Fraction(1, 10)
    one = Counter()
    for chance, p, k in calibrations(bincp.BinCP(CERTIFICATE, alpha=alpha), 9, 1, 6):
        one[acceptance(p, k, 1)] += chance
    law = {
        tuple(coverage for coverage, _ in four): prod(chance for _, chance in four)
        for four in itertools.product(one.items(), repeat=4)
    }
    return alpha, law


def chosen(coverages):
    """The setting with the smallest sets: labels that are no better than chance tell them."""
    return min(range(len(coverages)), key=lambda setting: coverages[setting])


def coverage_if_tuned_on_the_same_scores(law):
    return sum(chance * min(coverages) for coverages, chance in law.items())


def coverage_if_tuned_on_others(law):
    picks = Counter()
    for coverages, chance in law.items():
        picks[chosen(coverages)] += chance
    return sum(
        picks[setting] * sum(chance * coverages[setting] for coverages, chance in law.items())
        for setting in picks
    )


@pytest.fixture(scope="module", params=[law_of_settings_of_p, law_of_four_scores])
def population(request):
    alpha, law = request.param()
    assert sum(law.values()) == 1
    return alpha, law


def test_each_setting_by_itself_is_covered(population):
    alpha, law = population
    for setting in range(4):
        mean = sum(chance * coverages[setting] for coverages, chance in law.items())
        assert 1 - alpha <= mean < 1


@pytest.mark.parametrize("phase", ["calibration", "tuning"])
def test_tuning_keeps_the_coverage_on_tuning_noise_only(population, phase):
    """A p and a score that were tuned on separate points with the noise of the calibration."""
    alpha, law = population
    separate, calibration = np.full((9, 3), 0.5), np.full((9, 3), 0.5)
    tuned_on = draw(smoothing.Uniform(0.5), separate, 4, phase=phase)
    calibrated_on = draw(smoothing.Uniform(0.5), calibration, 4, phase="calibration")
    if np.array_equal(tuned_on, calibrated_on):
        coverage = coverage_if_tuned_on_the_same_scores(law)
    else:
        assert not np.isin(tuned_on, calibrated_on).any()
        coverage = coverage_if_tuned_on_others(law)
    assert (coverage >= 1 - alpha) == (phase == "tuning")
