"""Certificates against the SciPy and NumPy expressions that they replace, and the import.

The baseline and ours share a group, and their results are asserted equal. The baselines round to
nearest; ours round outward, so results differ by the width of that step.
"""

import decimal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import bincp
from bincp._core._operators import sparse_masses

P_PLUS, P_MINUS = 0.01, 0.6
SIGMA, RADIUS = 0.25, 0.12

Benchmark = Any


# ---- sparse flips ---------------------------------------------------------------------------


def scipy_sparse_regions(additions: int, deletions: int) -> tuple[np.ndarray, np.ndarray]:
    """The masses as four binomial mass functions and two convolutions."""
    a, d = np.arange(additions + 1), np.arange(deletions + 1)
    clean = np.convolve(
        stats.binom.pmf(a, additions, P_PLUS), stats.binom.pmf(d, deletions, P_MINUS)
    )
    perturbed = np.convolve(
        stats.binom.pmf(a, additions, 1 - P_MINUS), stats.binom.pmf(d, deletions, 1 - P_PLUS)
    )
    return clean, perturbed


def bincp_sparse_regions(additions: int, deletions: int) -> tuple[np.ndarray, np.ndarray]:
    n = additions + deletions + 1
    clean, perturbed = np.empty(n), np.empty(n)
    sparse_masses(additions, deletions, P_PLUS, P_MINUS, clean, perturbed)
    return clean, perturbed


@pytest.mark.parametrize("radii", [(50, 50), (5, 5), (200, 200)], ids=lambda r: f"{r[0]}+{r[1]}")
@pytest.mark.parametrize("which", ["bincp", "scipy"])
def test_sparse_regions(benchmark: Benchmark, which: str, radii: tuple[int, int]) -> None:
    benchmark.group = f"masses of the sparse regions, {radii[0]} + {radii[1]} flips"
    regions = {"bincp": bincp_sparse_regions, "scipy": scipy_sparse_regions}[which]
    for ours, theirs in zip(benchmark(regions, *radii), scipy_sparse_regions(*radii), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-300)


@pytest.mark.benchmark(group="a sparse certificate of 50 + 50 flips, made and evaluated once")
@pytest.mark.parametrize("which", ["bincp", "scipy"])
def test_sparse_certificate(benchmark: Benchmark, which: str) -> None:
    """The baseline stops at the masses: the public call also looks up, cumulates and bounds."""
    if which == "scipy":
        clean, _ = benchmark(scipy_sparse_regions, 50, 50)
        assert clean.sum() == pytest.approx(1.0)
    else:
        scheme = bincp.smoothing.SparseFlip(P_PLUS, P_MINUS)
        ball = bincp.balls.Flips(50, 50)
        bound = benchmark(lambda: bincp.certify(scheme, ball).lower(1 - 1e-12))
        assert bound == pytest.approx(greedy_lower(1 - 1e-12), abs=1e-12)


def greedy_lower(p: float) -> float:
    """Fill the regions from the far end, in plain doubles."""
    clean, perturbed = scipy_sparse_regions(50, 50)
    budget, lost = 1 - p, 0.0
    for c, q in zip(clean[::-1], perturbed[::-1], strict=True):
        share = min(budget / c, 1.0) if c > 0 else 1.0
        budget, lost = budget - share * c, lost + share * q
    return 1 - lost


@pytest.mark.benchmark(group="one bound from ready regions")
@pytest.mark.parametrize("which", ["bincp", "betaincinv"])
def test_bound_from_ready_regions(benchmark: Benchmark, which: str) -> None:
    """The yardstick is one call of SciPy's inverse: the cost of a Clopper-Pearson bound there."""
    if which == "bincp":
        clean, perturbed = scipy_sparse_regions(50, 50)
        clean, perturbed = clean / clean.sum(), perturbed / perturbed.sum()
        certificate = bincp.Certificate.from_regions(clean, perturbed)
        bound = benchmark(certificate.lower, 1 - 1e-12)
        assert bound == pytest.approx(greedy_lower(1 - 1e-12), abs=1e-9)
    else:
        bound = benchmark(special.betaincinv, 90.0, 61.0, 1e-3)
        assert special.betainc(90.0, 61.0, bound) == pytest.approx(1e-3)


# ---- many probabilities ---------------------------------------------------------------------


@pytest.mark.parametrize("order", ["random", "sorted", "of counts"])
@pytest.mark.parametrize("which", ["bincp", "np.interp"])
def test_knapsack_array(benchmark: Benchmark, which: str, order: str) -> None:
    benchmark.group = f"10,000 knapsack bounds of 50 + 50 flips, p {order}"
    rng = np.random.default_rng(0)
    p = rng.binomial(150, 0.9, 10_000) / 150 if order == "of counts" else rng.random(10_000)
    if order == "sorted":
        p.sort()
    certificate = bincp.certify(
        bincp.smoothing.SparseFlip(P_PLUS, P_MINUS), bincp.balls.Flips(50, 50)
    )
    knots = [np.append(0.0, np.cumsum(masses)) for masses in bincp_sparse_regions(50, 50)]
    if which == "bincp":
        bounds = benchmark(certificate.lower, p)
    else:
        bounds = benchmark(np.interp, p, *knots)
    np.testing.assert_allclose(bounds, np.interp(p, *knots), atol=1e-14)


SIZE = 50  # the grid goes up to 50 additions and 50 deletions


def numpy_grid(p: np.ndarray, out: np.ndarray) -> np.ndarray:
    """All pairs in a loop: mass functions made once a number of flips, two convolutions a pair."""

    def mass_functions(chance: float) -> list[np.ndarray]:
        return [stats.binom.pmf(np.arange(n + 1), n, chance) for n in range(SIZE + 1)]

    added, deleted = mass_functions(P_PLUS), mass_functions(P_MINUS)
    added_there, deleted_there = mass_functions(1 - P_MINUS), mass_functions(1 - P_PLUS)
    for a in range(SIZE + 1):
        for d in range(SIZE + 1):
            clean = np.cumsum(np.convolve(added[a], deleted[d]))
            perturbed = np.cumsum(np.convolve(added_there[a], deleted_there[d]))
            out[a, d] = np.interp(p, np.append(0.0, clean), np.append(0.0, perturbed))
    return out


def bincp_grid(p: np.ndarray, out: np.ndarray) -> np.ndarray:
    return bincp.radii.flip_grid(
        bincp.smoothing.SparseFlip(P_PLUS, P_MINUS), p, SIZE, SIZE, out=out
    )


@pytest.mark.parametrize("order", ["random", "sorted"])
@pytest.mark.parametrize("which", ["bincp", "numpy"])
def test_flip_grid(benchmark: Benchmark, which: str, order: str) -> None:
    """Both write to memory that is there: new memory of 208 MB costs more than our bounds."""
    benchmark.group = f"bounds of 10,000 p ({order}) for all of 50 x 50 flips"
    p = np.random.default_rng(0).random(10_000)
    if order == "sorted":
        p.sort()
    made, expected = np.zeros((2, SIZE + 1, SIZE + 1, p.size))
    run: Callable[..., Any] = {"bincp": bincp_grid, "numpy": numpy_grid}[which]
    benchmark.pedantic(run, args=(p, made), rounds=5, warmup_rounds=1)
    # SciPy's mass functions are right to 1e-10 or so.
    np.testing.assert_allclose(made, numpy_grid(p, expected), atol=1e-8)


def recurrence_bounds(additions: int, deletions: int, p: np.ndarray) -> np.ndarray:
    """The published way: an alternating recurrence in 1000 bits, and look-ups in such numbers."""
    with decimal.localcontext(prec=302):
        plus, minus = decimal.Decimal(P_PLUS), decimal.Decimal(P_MINUS)
        n = additions + deletions
        sums = [
            additions * (plus / (1 - plus)) ** i + deletions * (minus / (1 - minus)) ** i
            for i in range(n + 1)
        ]
        clean = [decimal.Decimal(1)]
        for q in range(1, n + 1):
            terms = [(-1) ** (i + 1) * sums[i] * clean[q - i] for i in range(1, q + 1)]
            clean.append(sum(terms) / q)
        scale = (1 - plus) ** additions * (1 - minus) ** deletions
        ratios = [
            (plus / (1 - minus)) ** (q - deletions) * (minus / (1 - plus)) ** (q - additions)
            for q in range(n + 1)
        ]
        masses = np.array(
            [(mass * scale, mass * scale / r) for mass, r in zip(clean, ratios, strict=True)]
        )
        knots = np.cumsum(np.vstack(([decimal.Decimal(0)] * 2, masses)), axis=0)
        exact = np.array([decimal.Decimal(value) for value in p.tolist()])
        full = np.maximum((knots[:, 0][:, None] >= exact).argmax(axis=0) - 1, 0)
        rest = (exact - knots[full, 0]) * masses[full, 1] / masses[full, 0]
        return np.asarray(knots[full, 1] + rest, dtype=float)


@pytest.mark.benchmark(group="bounds of 10,000 p: one pair of flips, and a grid of 2,601")
@pytest.mark.parametrize("which", ["the grid, bincp", "25 + 25, recurrence"])
def test_flip_grid_against_the_recurrence(benchmark: Benchmark, which: str) -> None:
    """25 + 25 is the pair of average size; compare it with the time of the grid over 2,601.

    There the recurrence is right (its numbers turn negative far beyond). With the arbitrary
    precision of GMP, which the published code uses, it takes about as long as here.
    """
    p = np.random.default_rng(0).random(10_000)
    grid = np.zeros((SIZE + 1, SIZE + 1, p.size))
    bincp_grid(p, grid)
    if which == "the grid, bincp":
        benchmark.pedantic(bincp_grid, args=(p, grid), rounds=5, warmup_rounds=1)
    else:
        bounds = benchmark.pedantic(recurrence_bounds, args=(25, 25, p), rounds=3)
        np.testing.assert_allclose(grid[25, 25], bounds, atol=1e-14)


# ---- Gaussian -------------------------------------------------------------------------------


def scipy_gaussian_lower(p: Any) -> Any:
    return special.ndtr(special.ndtri(p) - RADIUS / SIGMA)


@pytest.mark.benchmark(group="one Gaussian bound")
@pytest.mark.parametrize("which", ["bincp", "scipy"])
def test_gaussian_scalar(benchmark: Benchmark, which: str) -> None:
    certificate = bincp.certify(bincp.smoothing.Gaussian(SIGMA), bincp.balls.L2(RADIUS))
    bound = benchmark(certificate.lower if which == "bincp" else scipy_gaussian_lower, 0.9)
    assert bound == pytest.approx(scipy_gaussian_lower(0.9), rel=1e-13)


@pytest.mark.parametrize("where", ["anywhere", "in the tails"])
@pytest.mark.parametrize("which", ["bincp", "scipy"])
def test_gaussian_array(benchmark: Benchmark, which: str, where: str) -> None:
    """In the tails the normal distribution function and its inverse take other branches."""
    benchmark.group = f"10,000 Gaussian bounds, p {where}"
    p = np.random.default_rng(0).random(10_000)
    if where == "in the tails":
        p = 10 ** (-3 - 297 * p)
    certificate = bincp.certify(bincp.smoothing.Gaussian(SIGMA), bincp.balls.L2(RADIUS))
    bounds = benchmark(certificate.lower if which == "bincp" else scipy_gaussian_lower, p)
    # At 1e-300 a quantile of -37 that is wrong by one part in 2^52 moves the bound by 3e-13.
    rtol = 1e-13 if where == "anywhere" else 3e-12
    np.testing.assert_allclose(bounds, scipy_gaussian_lower(p), rtol=rtol)


@pytest.mark.benchmark(group="certify(Gaussian, L2)")
def test_certify(benchmark: Benchmark) -> None:
    scheme, ball = bincp.smoothing.Gaussian(SIGMA), bincp.balls.L2(RADIUS)
    assert benchmark(bincp.certify, scheme, ball).lower(1.0) == 1.0


# ---- import ---------------------------------------------------------------------------------


@pytest.mark.benchmark(group="import in a new process")
@pytest.mark.parametrize("which", ["bincp", "numpy, scipy.special"])
def test_import(benchmark: Benchmark, which: str) -> None:
    """Each round also imports the other of the two, so that both minima see the same machine."""
    others = {"bincp": "numpy, scipy.special", "numpy, scipy.special": "bincp"}

    def alternate() -> None:
        import_in_a_new_process(others[which])

    benchmark.pedantic(import_in_a_new_process, args=(which,), setup=alternate, rounds=15)
    assert "torch" not in import_in_a_new_process(which)


def import_in_a_new_process(modules: str) -> str:
    code = f"import {modules}, sys; print(*sys.modules)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    seconds: dict[str, list[float]] = {"pass": [], "numpy, scipy.special": [], "bincp": []}
    for _ in range(25):
        for modules, times in seconds.items():
            start = time.perf_counter()
            code = modules if modules == "pass" else f"import {modules}"
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
    start_up, baseline, ours = (min(times) for times in seconds.values())
    print(
        f"start of Python {start_up:.3f} s, numpy and scipy.special {baseline:.3f} s, "
        f"bincp {ours:.3f} s: {ours / baseline:.2f} times, "
        f"{(ours - start_up) / (baseline - start_up):.2f} without the start of Python"
    )
