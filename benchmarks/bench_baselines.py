"""Robust calibration of 1000 points with 256 samples each: BinCP, and CAS here and as published."""

import numpy as np
import pytest
from scipy import stats

import bincp
from bincp.baselines import CAS, RSCP

RADIUS, SIGMA, ALPHA = 0.06, 0.25, "0.1"
CERTIFICATE = bincp.certify(bincp.smoothing.Gaussian(SIGMA), bincp.balls.L2(RADIUS))


@pytest.fixture(scope="module")
def true_scores():
    return np.random.default_rng(0).beta(8, 2, (1000, 256)).astype(np.float32)


def cas_as_published(samples):
    """Lower bounds on the worst means of all points, with the structure of the published code.

    For each point its empirical CDF, and for each step of that the Gaussian bound from a scalar
    call of the normal quantile and CDF; no correction for sampling.
    """
    bounds = []
    for row in samples.astype(np.float64):
        steps = np.concatenate([[0.0], np.sort(row)])
        bound = 0.0
        for i in range(1, len(steps)):
            survival = 1 - (i - 1) / len(row)
            worst = stats.norm.cdf(stats.norm.ppf(survival) - RADIUS / SIGMA)
            bound += (steps[i] - steps[i - 1]) * worst
        bounds.append(bound)
    return np.array(bounds)


def cas_as_published_by_rows(samples):
    """The same with the bound of a whole CDF in one call for each point."""
    bounds = []
    for row in samples.astype(np.float64):
        steps = np.concatenate([[0.0], np.sort(row)])
        survival = 1 - np.arange(len(row)) / len(row)
        worst = stats.norm.cdf(stats.norm.ppf(survival) - RADIUS / SIGMA)
        bounds.append((np.diff(steps) * worst).sum())
    return np.array(bounds)


@pytest.mark.benchmark(group="robust calibration, (1000, 256) float32")
class TestCalibration:
    def test_cas_as_published(self, benchmark, true_scores):
        bounds = benchmark.pedantic(cas_as_published, (true_scores[:20],), rounds=1)
        benchmark.extra_info["points"] = 20  # of 1000: the loop takes a minute for all
        np.testing.assert_allclose(bounds, cas_as_published_by_rows(true_scores[:20]), rtol=1e-12)

    def test_cas_as_published_by_rows(self, benchmark, true_scores):
        bounds = benchmark.pedantic(cas_as_published_by_rows, (true_scores,), rounds=3)
        assert np.sort(bounds)[99] == pytest.approx(cas(true_scores).tau_, abs=1e-12)

    def test_cas(self, benchmark, true_scores):
        rule = benchmark(cas, true_scores)
        bounds = cas_as_published_by_rows(true_scores)
        assert rule.tau_ == pytest.approx(np.sort(bounds)[99], abs=1e-12)

    def test_rscp(self, benchmark, true_scores):
        rule = benchmark(RSCP(CERTIFICATE, alpha=ALPHA, correction="none").calibrate, true_scores)
        means = np.sort(true_scores.mean(axis=1, dtype=np.float64))
        assert rule.tau_ == pytest.approx(CERTIFICATE.lower(float(means[99])), rel=1e-12)

    def test_bincp(self, benchmark, true_scores):
        method = bincp.BinCP(CERTIFICATE, alpha=ALPHA, p=0.6, correction="none")
        rule = benchmark(method.calibrate, true_scores)
        assert rule.tau_ == np.sort(np.sort(true_scores, axis=1)[:, 256 - rule.success_rank_])[99]

    def test_bincp_with_the_mixture_correction(self, benchmark, true_scores):
        rule = benchmark(bincp.BinCP(CERTIFICATE, alpha=ALPHA, p=0.7).calibrate, true_scores)
        thresholds = np.sort(np.sort(true_scores, axis=1)[:, 256 - rule.success_rank_])
        assert rule.tau_ == thresholds[rule.rank_ - 1]


def cas(true_scores):
    return CAS(CERTIFICATE, alpha=ALPHA, correction="none").calibrate(true_scores)
