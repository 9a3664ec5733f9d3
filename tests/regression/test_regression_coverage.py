"""The exact worst case in one dimension: what the sets cover of a population that attains it.

The label is the input, y = x, and the score of a draw z = x + noise is y - z: CQR with an infinite
upper quantile. The attack moves x by r, so a score reaches tau with probability c(p) exactly, and
the coverage is E[G_k(c(F_t^-1(1 - V)))], V ~ Beta(j, n + 1 - j).
"""

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import bincp
from bincp.regression import conformity_scores, predict_sets

N, J, M, T, K, R = 20, 3, 8, 6, 5, 0.3
CERTIFICATE = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(R))


def calibrated(noise):
    """Return the rule of a calibration set at the labels 0, ..., n - 1."""
    y = np.arange(float(len(noise)))
    predictions = np.stack([y[:, None] + noise, np.full_like(noise, np.inf)], axis=1)
    scores = conformity_scores(predictions, y, score="cqr")
    return bincp.BinCP(CERTIFICATE, alpha="1/7", p="3/4").calibrate(scores)


def test_the_rule_is_that_of_the_population():
    noise = np.random.default_rng(0).normal(size=(N, M))
    rule = calibrated(noise)
    assert (rule.rank_, rule.success_rank_, rule.min_count_) == (J, T, K)
    thresholds = np.sort(-noise, axis=1)[:, M - T]  # of the exact scores, up to rounding
    assert rule.tau_ == pytest.approx(np.sort(thresholds)[J - 1], abs=1e-14)


def accepted(rule, n_hits):
    """Return whether the set holds the label of an attacked input with so many draws that reach."""
    y, tau = 2.0, rule.tau_
    reach = np.arange(M) < n_hits
    low = np.where(reach, y - tau - 1e-9, y - tau + 1e-9)
    sets = predict_sets(rule, np.stack([low, np.full(M, np.inf)])[None], score="cqr")
    return bool(sets.contains([y])[0])


def coverage_of_the_sets(tail_of_tau):
    """Integrate over the law of tau, which is that of the sets of m draws, n of them."""
    z, weights = np.polynomial.legendre.leggauss(300)
    z, weights = 9 * z, 9 * weights  # tau = -z reaches with probability Phi(z)
    p = special.ndtr(z)
    density = tail_of_tau(p) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    attacked = special.ndtr(z - R)
    covered = np.zeros_like(z)
    for node in np.flatnonzero(weights * density > 1e-12):
        # All scores of a calibration set are tau: that is a set with this threshold.
        rule = calibrated(np.full((N, M), z[node]))
        hits = [n_hits for n_hits in range(M + 1) if accepted(rule, n_hits)]
        covered[node] = stats.binom.pmf(hits, M, attacked[node]).sum()
    return float(np.sum(weights * density * covered))


def test_the_coverage_of_the_sets_is_the_exact_one():
    def density(p):
        # The j-th smallest of n points, of which one is at or above -z with probability F_t(p).
        fail = stats.binom.cdf(T - 1, M, p)
        slope = T * special.comb(M, T) * p ** (T - 1) * (1 - p) ** (M - T)
        return stats.beta.pdf(fail, J, N + 1 - J) * slope

    found = coverage_of_the_sets(density)
    assert found == pytest.approx(float(exact_coverage()), abs=1e-6)
    assert found == pytest.approx(0.87386, abs=5e-6)
    assert found >= 1 - 1 / 7


def exact_coverage():
    """Return the coverage by quadrature with 30 digits."""
    with mpmath.workdps(30):
        r = mpmath.mpf(3) / 10

        def tail(k, p):
            terms = (mpmath.binomial(M, s) * p**s * (1 - p) ** (M - s) for s in range(k, M + 1))
            return mpmath.fsum(terms)

        def integrand(z):
            p = mpmath.ncdf(z)
            v = 1 - tail(T, p)
            slope = T * mpmath.binomial(M, T) * p ** (T - 1) * (1 - p) ** (M - T) * mpmath.npdf(z)
            beta = v ** (J - 1) * (1 - v) ** (N - J) / mpmath.beta(J, N + 1 - J)
            return beta * slope * tail(K, mpmath.ncdf(z - r))

        return mpmath.quad(integrand, [-9, -3, -1, 0, 1, 2, 4, 9])
