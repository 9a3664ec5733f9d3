"""Keyed noise against torch.randn of the same size: 64 x 16 x 3072 float32 on one thread."""

import numpy as np
import pytest

from bincp import noise
from bincp.smoothing import Gaussian, SparseFlip, Uniform

torch = pytest.importorskip("torch")

N, M, D = 64, 16, 3072
X = (np.arange(N * D) % 2).astype(np.float32).reshape(N, D)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def moments(z):
    z = z.astype(np.float64)
    return z.mean(), z.std()


@pytest.mark.benchmark(group="noise 64 x 16 x 3072")
def test_torch_randn(benchmark):
    """The baseline: no keys, and nothing added to anything."""
    out = torch.empty(N, M, D)
    z = benchmark(torch.randn, N, M, D, out=out).numpy()
    assert moments(z) == pytest.approx((0, 1), abs=5e-3)


@pytest.mark.benchmark(group="noise 64 x 16 x 3072")
@pytest.mark.parametrize(
    ("smoothing", "mean", "deviation"),
    [
        (Gaussian(1.0), 0.0, 1.0),
        (Uniform(1.0), 0.0, 3**-0.5),
        # Flips of zeros and ones: out - x is 1 or -1.
        (SparseFlip(0.1, 0.6), (0.1 - 0.6) / 2, (0.35 - 0.25**2) ** 0.5),
    ],
    ids=["gaussian", "uniform", "flips"],
)
def test_keyed_noise(benchmark, smoothing, mean, deviation):
    """Ours: keyed by (seed, phase, id, draw), and added to the inputs in the same pass."""
    sources, draws = np.divmod(np.arange(N * M), M)
    out = np.empty((N * M, D), np.float32)
    benchmark(noise.fill, smoothing, X, out, sources, sources, draws, phase="test", seed=0)
    assert moments(out - X[sources]) == pytest.approx((mean, deviation), abs=5e-3)
