"""Splitting noise and ablation against NumPy: 4 inputs of 3072 elements, 220 copies of each."""

import numpy as np
import pytest

from bincp import noise
from bincp.smoothing import Ablation, SplittingNoise

N, D, L = 4, 3072, 220
HALF_WIDTH = L / 510
LENGTH = 2 * HALF_WIDTH
X = np.random.default_rng(0).integers(0, 256, (N, D)).astype(np.float32) / np.float32(255)


def split(offsets):
    """Return the middles of the cells of X that begin at these offsets, by the paper's formula."""
    cell = np.ceil((X[:, None].astype(np.float64) - offsets) / LENGTH)
    high = np.minimum(LENGTH * cell + offsets, 1)
    low = np.maximum(LENGTH * (cell - 1) + offsets, 0)
    return ((low + high) / 2).astype(np.float32)


def numpy_copies():
    template = np.random.RandomState(0).randint(L, size=D)
    return split(((template + np.arange(L)[:, None]) % L + 0.5) / 255)


def bincp_copies():
    return noise.all_copies(SplittingNoise(HALF_WIDTH), X)


@pytest.mark.benchmark(group="all copies of derandomised splitting noise, 4 x 220 x 3072")
@pytest.mark.parametrize("copies", [bincp_copies, numpy_copies])
def test_copies(benchmark, copies):
    np.testing.assert_allclose(benchmark(copies), bincp_copies(), rtol=0, atol=1e-6)


def keyed_words(n):
    ids, draws = np.divmod(np.arange(N * L), L)
    return noise.Keys(0, "test", ids, draws).words(n).reshape(N, L, n)


def numpy_noise():
    return split(((keyed_words(D) >> np.uint64(11)) + 0.5) * (LENGTH / 2**53))


def bincp_noise():
    return noise.draw(SplittingNoise(HALF_WIDTH, None), X, L, phase="test")


@pytest.mark.benchmark(group="continuous splitting noise, 4 x 220 x 3072")
@pytest.mark.parametrize("draw", [bincp_noise, numpy_noise])
def test_noise(benchmark, draw):
    np.testing.assert_allclose(benchmark(draw), bincp_noise(), rtol=0, atol=1e-6)


def numpy_ablation():
    kept = np.zeros((N, L, D), bool)
    np.put_along_axis(kept, np.argpartition(keyed_words(D), 999, axis=2)[..., :1000], True, axis=2)
    return np.where(kept, X[:, None], np.float32(-1))


def bincp_ablation():
    return noise.draw(Ablation(1000, D, fill=-1), X, L, phase="test")


@pytest.mark.benchmark(group="1000 of 3072 elements kept, 4 x 220 x 3072")
@pytest.mark.parametrize("draw", [bincp_ablation, numpy_ablation])
def test_ablation(benchmark, draw):
    """Other sets of the same law: what must agree is their size, and what is kept."""
    noisy = benchmark(draw)
    kept = noisy != -1
    assert (kept.sum(axis=2) == 1000).all()
    assert (noisy == np.where(kept, X[:, None], -1)).all()
