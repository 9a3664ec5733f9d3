"""Keyed noise against torch and NumPy: 64 x 16 x 3072 float32 on one thread."""

import math
import time

import numpy as np
import pytest

from bincp.noise import Keys
from bincp.noise._samplers import sampler_of
from bincp.smoothing import (
    Exp1,
    Exp2,
    ExpInf,
    Expp,
    Gaussian,
    Laplace,
    Pareto,
    PowInf,
    SparseFlip,
    Uniform,
    UniformBall,
)

torch = pytest.importorskip("torch")

N, M, D = 64, 16, 3072
X = (np.arange(N * D) % 2).astype(np.float32).reshape(N, D)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def fill(smoothing, x, out, sources, draws):
    sampler_of(smoothing).fill(Keys(0, "test", sources, draws), sources, x, out)


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
    benchmark(fill, smoothing, X, out, sources, draws)
    assert moments(out - X[sources]) == pytest.approx((mean, deviation), abs=5e-3)


def ratio_of_speeds(one, other):
    """The speed of one fill over that of another: minima of fills that take turns."""
    least = [math.inf, math.inf]
    for _ in range(60):
        for which, arguments in enumerate((one, other)):
            start = time.thread_time()
            fill(*arguments)
            least[which] = min(least[which], time.thread_time() - start)
    return least[1] / least[0]


@pytest.mark.benchmark(group="noise on a grid, against Box-Muller")
@pytest.mark.parametrize(
    ("smoothing", "least"),
    [
        (Gaussian(0.12, grid=255), 0.85),
        (Gaussian(0.25, grid=255), 0.85),
        (Gaussian(0.5, grid=255), 0.85),
        (Gaussian(1.0, grid=255), 0.85),
        (Laplace(0.12, grid=255), 0.85),
        (Laplace(0.25, grid=255), 0.8),  # its table of 64 kB leaves the first cache
        (Uniform(0.25, grid=255), 0.85),
    ],
    ids=repr,
)
def test_speed_on_a_grid(benchmark, smoothing, least):
    """Integer noise against Box-Muller, both added to the inputs."""
    sources, draws = np.divmod(np.arange(N * M), M)
    out = np.empty((N * M, D), np.float32)
    ours = smoothing, (255 * X).astype(np.uint8), out, sources, draws
    ratio = ratio_of_speeds(ours, (Gaussian(0.25), X, out, sources, draws))
    benchmark.extra_info["ratio to Box-Muller"] = round(ratio, 3)
    benchmark(fill, *ours)
    assert ratio > least


LAPLACE = "Laplace noise 64 x 16 x 3072"


@pytest.mark.benchmark(group=LAPLACE)
def test_torch_laplace(benchmark):
    """A baseline: no keys, and nothing added to anything."""
    law = torch.distributions.Laplace(torch.tensor(0.0), torch.tensor(1.0))
    z = benchmark(law.sample, (N, M, D)).numpy()
    assert moments(z) == pytest.approx((0, 2**0.5), abs=5e-3)


@pytest.mark.benchmark(group=LAPLACE)
def test_numpy_laplace(benchmark):
    """A baseline, in float64."""
    z = benchmark(np.random.default_rng(0).laplace, size=(N, M, D))
    assert moments(z) == pytest.approx((0, 2**0.5), abs=5e-3)


@pytest.mark.benchmark(group=LAPLACE)
def test_keyed_laplace(benchmark):
    sources, draws = np.divmod(np.arange(N * M), M)
    out = np.empty((N * M, D), np.float32)
    benchmark(fill, Laplace(1.0), X, out, sources, draws)
    assert moments(out - X[sources]) == pytest.approx((0, 2**0.5), abs=5e-3)


@pytest.mark.benchmark(group="other noise 8 x 16 x 3072")
@pytest.mark.parametrize(
    ("smoothing", "deviation"),
    [
        (Expp(1.0, 4), (math.gamma(3 / 4) / math.gamma(1 / 4)) ** 0.5),
        (Pareto(1.0, 6), 0.1**0.5),
        (UniformBall(D**0.5), 1.0),
        (Exp1(1.0), 2**0.5),
        (Exp2(D**-0.5), 1.0),
        (ExpInf(1 / D), 3**-0.5),
        (PowInf(1.0, 2 * D), 3**-0.5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_keyed_noise(benchmark, smoothing, deviation):
    """Laws that are computed in float64; there is no baseline."""
    n = 8
    sources, draws = np.divmod(np.arange(n * M), M)
    out = np.empty((n * M, D), np.float32)
    benchmark(fill, smoothing, X[:n], out, sources, draws)
    # Of the radial laws, 128 radii of a deviation of up to 2%.
    assert moments(out - X[sources]) == pytest.approx((0, deviation), rel=0.02, abs=0.01)
