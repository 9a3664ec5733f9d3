"""Calibration against NumPy's sort of the same scores; prediction against counting them."""

import numpy as np
import pytest

import bincp

CERTIFICATE = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.06))


@pytest.fixture(scope="module")
def true_scores():
    return np.random.default_rng(0).normal(1, 0.3, (1000, 256)).astype(np.float32)


@pytest.fixture(scope="module")
def scores():
    means = np.random.default_rng(1).normal(0.6, 0.4, (1000, 10, 1))
    return np.random.default_rng(2).normal(means, 0.3, (1000, 10, 256)).astype(np.float32)


@pytest.mark.benchmark(group="p-fixed calibration, (1000, 256) float32")
class TestCalibration:
    def test_numpy_sort(self, benchmark, true_scores):
        result = benchmark(np.sort, true_scores, axis=-1)
        assert (np.diff(result[:5]) >= 0).all()

    def test_calibrate(self, benchmark, true_scores):
        rule = benchmark(
            bincp.BinCP(CERTIFICATE, correction="clopper-pearson").calibrate,
            true_scores,
            n_classes=10,
        )
        thresholds = np.sort(true_scores, axis=-1)[:, 256 - rule.success_rank_]
        assert rule.tau_ == np.sort(thresholds)[rule.rank_ - 1]


@pytest.mark.benchmark(group="prediction, (1000, 10, 256) float32")
class TestPrediction:
    @pytest.fixture
    def rule(self, true_scores):
        return bincp.BinCP(CERTIFICATE, correction="clopper-pearson").calibrate(
            true_scores, n_classes=10
        )

    def test_count(self, benchmark, rule, scores):
        counts = benchmark(bincp.count_exceedances, scores, rule.tau_)
        np.testing.assert_array_equal(counts, (scores >= np.float32(rule.tau_)).sum(-1))

    def test_predict(self, benchmark, rule, scores):
        sets = benchmark(rule.predict_set, scores)
        counts = (scores >= np.float32(rule.tau_)).sum(-1)
        np.testing.assert_array_equal(sets, counts >= rule.min_count_)
        assert 0.1 < sets.mean() < 0.9
