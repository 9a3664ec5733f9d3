"""The mixture correction's search for (slope, k), against the same search with SciPy's tails.

Both bisect over k on one grid that is ready, with the same compiled envelope: they differ in the
binomial tails alone. "whole" is everything that a calibration does to find k: the grid, the
certificate on it, the search, and finer grids until k + 1 is refuted.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bincp
from bincp._core._mixture import corner_envelope
from bincp.calibration._conditions import TOLERANCE, largest_count
from bincp.calibration._curve import Array, Curve
from bincp.calibration._mixture import Setup

N, RANK, ALPHA = 1000, 100, Fraction(1, 10)
CERTIFICATE = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))

Benchmark = Any
Tail = Callable[[int, int, Array, Array], Array]


def scipy_tail(k: int, m: int, p: Array, q: Array) -> Array:
    """P[Bin(m, p) < k], as more than m - k failures: accurate where it is small."""
    return np.asarray(stats.binom.sf(m - k, m, q))


def our_tail(k: int, m: int, p: Array, q: Array) -> Array:
    out = np.empty_like(p)
    bincp._core._mixture.failures(k, m, p, q, out)
    return out


def search(tail: Tail, curve: Curve, t: int, m: int) -> tuple[int, float]:
    """Return the largest k whose corners allow it, and the slope of its line."""
    u = tail(t, m, curve.p, curve.q)
    low, high, slope = 0, m + 1, 0.0
    while high - low > 1:
        k = (low + high) // 2
        bound, its_slope = corner_envelope(u, tail(k, m, curve.c, curve.d), RANK / (N + 1))
        if bound <= float(ALPHA) + TOLERANCE:
            low, slope = k, its_slope
        else:
            high = k
    return low, slope


def whole_search(setup: Setup, t: int) -> int:
    """Return the largest k that is allowed."""
    return largest_count(setup.condition(t, RANK), setup.m_test)[0]


@pytest.mark.parametrize("m", [16, 150, 1000, 10_000])
@pytest.mark.parametrize("which", ["scipy", "bincp", "whole"])
def test_search(benchmark: Benchmark, which: str, m: int) -> None:
    benchmark.group = f"worst-case mixture, n = 1000, j = 100, t = 0.7 m, m = m' = {m}"
    t = round(0.7 * m)
    curve = Curve.around(CERTIFICATE, t, m, m)
    k, slope = search(scipy_tail, curve, t, m)  # and the cached parts of the curve
    assert 0.2 * m < k < 0.4 * m
    if which == "whole":
        found = benchmark(whole_search, Setup(CERTIFICATE, N, m, m, ALPHA), t)
        assert k <= found <= k + 1 + m // 1000  # the finer grid may allow more
    else:
        found, its_slope = benchmark(
            search, scipy_tail if which == "scipy" else our_tail, curve, t, m
        )
        assert found == k
        assert its_slope == pytest.approx(slope, rel=1e-6)
