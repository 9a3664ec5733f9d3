"""Clopper-Pearson bounds against SciPy's inverse of the incomplete beta.

The baseline and ours share a group. SciPy's inverse gives no direction guarantee, so its value may
lie above the bound that it stands for.
"""

from typing import Any

import numpy as np
import pytest
from scipy import special

from bincp._core import _binomial
from bincp.intervals import clopper_pearson_lower

BUDGET = 1e-3 / 1210  # the paper's eta / (n + K)
TABLES = [(150, BUDGET), (2000, BUDGET), (10_000, BUDGET), (10_000, 0.05), (100_000, BUDGET)]

Benchmark = Any


def scipy_lower(m: int, eta: float) -> np.ndarray:
    s = np.arange(1.0, m + 1.0)
    return special.betaincinv(s, m - s + 1.0, eta)


def assert_agree(lower: np.ndarray, reference: np.ndarray) -> None:
    agree = np.isclose(lower, reference, rtol=1e-9, atol=0)
    if len(lower) >= 1000:
        agree[999] = True  # betaincinv is wrong where its first parameter is exactly 1000
    assert agree.all()


@pytest.mark.parametrize(("m", "eta"), TABLES)
@pytest.mark.parametrize("which", ["bincp", "scipy"])
def test_table(benchmark: Benchmark, which: str, m: int, eta: float) -> None:
    benchmark.group = f"Clopper-Pearson table, m = {m}, eta = {eta:.2g}"
    if which == "scipy":
        lower = benchmark(scipy_lower, m, eta)
    else:
        # Through the public function, checks and look-up included
        lower = benchmark(clopper_pearson_lower, np.arange(1, m + 1), m, eta)
    assert_agree(lower, scipy_lower(m, eta))


@pytest.mark.parametrize(("s", "m"), [(90, 150), (7000, 10_000), (700_000, 1_000_000)])
@pytest.mark.parametrize("which", ["bincp", "scipy"])
def test_single_values(benchmark: Benchmark, which: str, s: int, m: int) -> None:
    benchmark.group = f"1000 single Clopper-Pearson bounds, s = {s}, m = {m}"
    counts, trials, levels = np.full(1000, s), np.full(1000, m), np.full(1000, BUDGET)
    if which == "scipy":
        lower = benchmark(special.betaincinv, counts, trials - counts + 1, levels)
    else:
        lower = np.empty(1000)
        benchmark(_binomial.cp_lower_many, counts, trials, levels, lower)
    np.testing.assert_allclose(lower, special.betaincinv(s, m - s + 1, BUDGET), rtol=1e-9)


@pytest.mark.benchmark(group="one scalar Clopper-Pearson bound through the public function")
@pytest.mark.parametrize("which", ["bincp", "scipy"])
def test_scalar_call(benchmark: Benchmark, which: str) -> None:
    if which == "scipy":
        lower = benchmark(special.betaincinv, 90, 61, 0.05)
    else:
        lower = benchmark(clopper_pearson_lower, 90, 150, 0.05)
    assert lower == pytest.approx(special.betaincinv(90, 61, 0.05), rel=1e-9)
