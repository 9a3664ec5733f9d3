"""Scalar bounds: Python calls of built-in and outside operators, a C caller, and SciPy's ufuncs.

Each benchmark evaluates the same 1,000 probabilities with one call each, so their times compare.
"""

import ctypes
import math
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import bincp

SIGMA, RADIUS = 0.25, 0.12
SHIFT = RADIUS / SIGMA
P = np.linspace(0.001, 0.999, 1000)

Benchmark = Any
Bounds = Callable[[], list[float]]

C_CALLER = """
#include <bincp/bincp.h>

void call_each(const bincp_operator *op, const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = op->lower(p[i], op->params);
    }
}
"""


def gaussian() -> bincp.Certificate:
    return bincp.certify(bincp.smoothing.Gaussian(SIGMA), bincp.balls.L2(RADIUS))


def python_caller(certificate: bincp.Certificate) -> Bounds:
    probabilities, lower = P.tolist(), certificate.lower
    return lambda: [lower(p) for p in probabilities]


def scipy_caller() -> Bounds:
    probabilities, ndtr, ndtri = P.tolist(), special.ndtr, special.ndtri
    return lambda: [ndtr(ndtri(p) - SHIFT) for p in probabilities]


def c_caller(folder: Path) -> Bounds:
    """Return a loop in C over what it gets out of the capsule of the certificate."""
    (folder / "caller.c").write_text(C_CALLER)
    command = [*sysconfig.get_config_var("CC").split(), "-shared", "-fPIC", "-O2"]
    command += [f"-I{bincp.get_include()}", "caller.c", "-o", "caller.so"]
    subprocess.run(command, cwd=folder, check=True)
    call_each = ctypes.CDLL(str(folder / "caller.so")).call_each
    capsule, out = gaussian().operator.capsule, np.empty_like(P)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

    def run() -> list[float]:
        operator = ctypes.c_void_p(get_pointer(capsule, b"bincp.operator.v1"))
        data, written = ctypes.c_void_p(P.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        call_each(operator, data, ctypes.c_size_t(P.size), written)
        return out.tolist()

    return run


@pytest.mark.benchmark(group="1,000 Gaussian bounds, one call each")
@pytest.mark.parametrize("which", ["C caller", "bincp", "bincp, from a capsule", "scipy"])
def test_scalar_calls(benchmark: Benchmark, which: str, tmp_path: Path) -> None:
    callers: dict[str, Callable[[], Bounds]] = {
        "C caller": lambda: c_caller(tmp_path),
        "bincp": lambda: python_caller(gaussian()),
        "bincp, from a capsule": lambda: python_caller(
            bincp.Certificate.from_native(gaussian().operator.capsule)
        ),
        "scipy": scipy_caller,
    }
    bounds = benchmark(callers[which]())
    np.testing.assert_allclose(bounds, special.ndtr(special.ndtri(P) - SHIFT), rtol=1e-13)


def outside(which: str) -> bincp.Certificate:
    """Return the certificate log(1 + p), which obeys the law; the baseline is in Python."""
    if which == "python":
        return bincp.Certificate.from_bounds(math.log1p)
    log1p = ctypes.CDLL(None).log1p
    log1p.restype, log1p.argtypes = ctypes.c_double, (ctypes.c_double,)
    return bincp.Certificate.from_native(log1p)


@pytest.mark.benchmark(group="1,000 bounds of a function from outside, in one call")
@pytest.mark.parametrize("which", ["compiled", "python"])
def test_functions_from_outside(benchmark: Benchmark, which: str) -> None:
    certificate = outside(which)
    np.testing.assert_allclose(benchmark(certificate.lower, P), np.log1p(P), rtol=1e-15)


@pytest.mark.benchmark(group="100 upper bounds as generalised inverses")
@pytest.mark.parametrize("which", ["compiled", "python"])
def test_generalised_inverse(benchmark: Benchmark, which: str) -> None:
    certificate = outside(which)
    p = P[P < 0.6][::6]
    np.testing.assert_allclose(benchmark(certificate.upper, p), np.expm1(p), rtol=1e-15)
