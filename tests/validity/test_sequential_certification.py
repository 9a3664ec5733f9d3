"""The benchmark of sequential certification: its boundaries and laws against enumeration."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from support import import_benchmarks

import_benchmarks()

from benchmarks import sequential_certification as sequential  # noqa: E402

R, MOST = 0.5, 600


@pytest.fixture(scope="module")
def boundaries():
    return {name: rule(R, MOST) for name, rule in sequential.RULES.items()}


def test_the_law_is_that_of_all_sequences():
    least = np.array([sequential.NEVER, sequential.NEVER, 2, 3, 3, 5, 4, 7, 6])
    for p in (0.25, 0.5, 0.875):
        wanted = [Fraction(0)] * len(least)
        for votes in itertools.product((0, 1), repeat=len(least) - 1):
            sums = np.cumsum(votes)
            stop = next((m for m in range(1, len(least)) if sums[m - 1] >= least[m]), None)
            if stop is not None:
                ones = int(sums[-1])
                wanted[stop] += Fraction(p) ** ones * (1 - Fraction(p)) ** (len(votes) - ones)
        np.testing.assert_allclose(
            sequential.law(least, p), [float(one) for one in wanted], atol=1e-15
        )


def test_the_sequence_is_the_mean_likelihood_ratio_of_probabilities_above(boundaries):
    """M(p) of `confidence_sequence_lower`, integrated, on both sides of the boundary."""
    p = mpmath.ncdf(R)

    def mean_ratio(votes, draws):
        def likelihood(q):
            return q**votes * (1 - q) ** (draws - votes)

        return mpmath.quad(likelihood, [p, 1]) / (1 - p) / likelihood(p)

    for m in (20, 21, 50, 133):
        least = int(boundaries["sequence"][m])
        if least <= m:
            assert mean_ratio(least, m) >= 1 / sequential.ALPHA
        assert mean_ratio(min(least - 1, m), m) < 1 / sequential.ALPHA


def test_bets_are_those_of_the_estimate_before_each_vote(boundaries):
    p = Fraction(float(norm.cdf(R)))
    for m in (25, 60):
        least = int(boundaries["betting"][m])
        for votes, certifies in ((least - 1, False), (least, True)):
            wealth, ones = Fraction(1), 0
            for draw in range(m):  # wins first: wealth depends on the counts alone
                own = Fraction(2 * ones + 1, 2 * (draw + 1))
                won = draw < votes
                wealth *= own / p if won else (1 - own) / (1 - p)
                ones += won
            assert (wealth > 1000) == certifies


def test_no_rule_errs_more_often_than_alpha(boundaries):
    errors = {name: sequential.law(least, norm.cdf(R)).sum() for name, least in boundaries.items()}
    assert max(errors.values()) <= sequential.ALPHA
    assert errors["sequence"] > errors["betting"]


def test_draws_of_an_unanimous_vote(boundaries):
    """p^-m (1 - p^(m + 1)) / ((m + 1) (1 - p)) is the mean likelihood ratio of m votes of m."""
    p = norm.cdf(R)
    m = np.arange(1, MOST + 1)
    ratios = p**-m * (1 - p ** (m + 1)) / ((m + 1) * (1 - p))
    wanted = m[np.argmax(ratios >= 1 / sequential.ALPHA)]
    stopping = sequential.law(boundaries["sequence"], 1.0)
    assert stopping[wanted] == 1
    assert sequential.summary(stopping) == f"{wanted}, {wanted}"


def test_the_ideal_needs_fewer_draws_on_average(boundaries):
    laws = [
        sequential.law(least, norm.cdf(1.0))
        for least in (sequential.ideal(R, 1.0, MOST), *boundaries.values())
    ]
    means = [float(sequential.summary(one).split(",")[0]) for one in laws]
    assert means[0] == min(means)
    assert means[1] == min(means[1:])


def test_fixed_draws_certify_in_nine_of_ten_runs():
    from scipy.stats import binom

    r, own = 0.5, 1.0
    found = sequential.fixed_draws(r, own, 400)
    powers = []
    for m in (found - 1, found):
        votes = np.arange(m + 1)
        proven = binom.sf(votes - 1, m, norm.cdf(r)) <= sequential.ALPHA
        powers.append(binom.pmf(votes, m, norm.cdf(own))[proven].sum())
    assert powers[0] < 0.9 <= powers[1]
