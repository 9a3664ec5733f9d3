"""Exponentials, logarithms and powers against 60 digits: their errors are below what is stated."""

import ctypes
import math
import shutil
import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpf

from support import ROOT

COMPILER = shutil.which("gcc") or shutil.which("clang")
N = 3000

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = tmp_path_factory.mktemp("functions") / "functions.so"
    source = ROOT / "tests" / "c" / "functions.c"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", f"-I{ROOT / 'csrc'}"]
    subprocess.run([str(COMPILER), *flags, str(source), "-o", str(built)], check=True)
    return ctypes.CDLL(str(built))


def function(library: ctypes.CDLL, name: str) -> Callable[..., float]:
    found = getattr(library, f"{name}_out")
    found.restype = ctypes.c_double
    found.argtypes = [ctypes.c_double] * (2 if name == "pow" else 1)
    return found


def units(value: float, exact: mpf) -> float:
    """Return the error in units of 2^-53 of the result, but for half the smallest double."""
    if exact == 0:
        return 0.0 if value == 0 else math.inf
    beyond = abs(mpf(value) - exact) - mpf(2) ** -1075
    return max(float(beyond / (abs(exact) * mpf(2) ** -53)), 0.0)


RNG = np.random.default_rng(1)
SMALL = np.concatenate([RNG.choice([-1.0, 1.0], N) * 10 ** RNG.uniform(-300, -0.01, N), [5e-324]])
EXPONENTS = np.concatenate([RNG.uniform(-745, 709, N), RNG.uniform(-2, 2, N), SMALL])
PATTERNS = RNG.integers(1, 0x7FF0000000000000, N).view(np.float64)  # subnormal ones among them
NEAR_ONE = 1 + RNG.normal(size=N) * 10 ** RNG.uniform(-16, -1, N)
POSITIVE = np.concatenate([PATTERNS, RNG.uniform(0.3, 3, N), NEAR_ONE, [5e-324, 2.3e-308]])
ABOVE_MINUS_ONE = np.concatenate([RNG.uniform(-1, 5, N), SMALL, 10 ** RNG.uniform(0, 308, N)])


@pytest.mark.parametrize(
    ("name", "exact", "arguments", "most"),
    [
        ("exp", mp.exp, EXPONENTS, 2.4),
        ("expm1", mp.expm1, EXPONENTS, 4),
        ("log", mp.log, POSITIVE, 1.1),
        ("log1p", mp.log1p, ABOVE_MINUS_ONE, 1.4),
    ],
)
def test_errors_are_below_the_stated_ones(
    library: ctypes.CDLL, name: str, exact: Callable[[mpf], mpf], arguments: np.ndarray, most: float
) -> None:
    ours = function(library, name)
    with mp.workdps(60):
        worst = max(units(ours(x), exact(mpf(x))) for x in arguments.tolist())
    assert 0.5 < worst <= most  # above 1/2, or it would be the rounding alone


def test_errors_of_powers(library: ctypes.CDLL) -> None:
    ours = function(library, "pow")
    powers = np.concatenate([10 ** RNG.uniform(-3, 3, N), 10 ** RNG.uniform(-6, 9, N)])
    logarithms = RNG.uniform(-740, 705, 2 * N)
    with mp.workdps(60):
        for y, logarithm in zip(powers.tolist(), logarithms.tolist(), strict=True):
            if abs(logarithm / y) < 700:
                x = math.exp(logarithm / y)
                exact = mpf(x) ** mpf(y)
                assert units(ours(x, y), exact) <= 4 + 0.1 * abs(mp.log(exact))


ENDS = {
    "exp": {0.0: 1.0, -math.inf: 0.0, math.inf: math.inf, 1e308: math.inf, -1e308: 0.0},
    "expm1": {-math.inf: -1.0, math.inf: math.inf, 710.0: math.inf, 0.0: 0.0, 5e-324: 5e-324},
    "log": {0.0: -math.inf, math.inf: math.inf, 1.0: 0.0},
    "log1p": {-1.0: -math.inf, math.inf: math.inf, 0.0: 0.0, -5e-324: -5e-324},
}


@pytest.mark.parametrize("name", ENDS)
def test_ends(library: ctypes.CDLL, name: str) -> None:
    ours = function(library, name)
    assert {x: ours(x) for x in ENDS[name]} == ENDS[name]
    assert math.isnan(ours(math.nan))
    assert math.copysign(1.0, function(library, "expm1")(-0.0)) == -1.0


@pytest.mark.parametrize("x", [-1.5, -math.inf])
def test_logarithms_of_negative_numbers(library: ctypes.CDLL, x: float) -> None:
    assert math.isnan(function(library, "log")(x))
    assert math.isnan(function(library, "log1p")(x))


def test_ends_of_powers(library: ctypes.CDLL) -> None:
    ours = function(library, "pow")
    assert ours(0.0, 0.5) == 0.0
    assert ours(math.inf, 0.5) == math.inf
    assert ours(1.0, 1e300) == 1.0
    assert ours(1 + 2.0**-52, 1e300) == math.inf
    assert ours(1 - 2.0**-53, 1.7e308) == 0.0
    assert math.isnan(ours(math.nan, 2.0))
