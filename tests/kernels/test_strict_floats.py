"""Builds with -ffast-math and the like are corrected by setup.py, and refused by the kernels."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bincp
from support import ROOT

COMPILER = shutil.which("gcc")
MINGW = shutil.which("x86_64-w64-mingw32-gcc")
SOURCES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/*/*.c"))
WRONG = [
    "-ffast-math",
    "-Ofast",
    "-funsafe-math-optimizations",
    "-ffinite-math-only",
    "-freciprocal-math",
    "-fno-signed-zeros",
    "-fsingle-precision-constant",
    "-ffp-contract=fast",
    "-mfpmath=387",
]

needs_gcc = pytest.mark.skipif(COMPILER is None, reason="no gcc")


def compiled(
    source: str, *flags: str, compiler: str | None = COMPILER
) -> subprocess.CompletedProcess[str]:
    command = [
        str(compiler),
        "-std=c11",
        "-fsyntax-only",
        *flags,
        "-Icsrc",
        "-Ibincp/include",
        source,
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@needs_gcc
@pytest.mark.parametrize("source", SOURCES)
def test_every_kernel_refuses_fast_math(source: str) -> None:
    assert compiled(source).returncode == 0
    refused = compiled(source, "-ffast-math")
    assert refused.returncode != 0
    assert "bincp needs exact floating-point arithmetic" in refused.stderr


@pytest.mark.skipif(MINGW is None, reason="no gcc for Windows")
def test_fma_that_is_rounded_twice_is_refused() -> None:
    refused = compiled("csrc/certificates/knapsack.c", compiler=MINGW)
    assert refused.returncode != 0
    assert "compile with -mfma" in refused.stderr
    assert compiled("csrc/certificates/knapsack.c", "-mfma", compiler=MINGW).returncode == 0


@needs_gcc
@pytest.mark.parametrize("flag", WRONG)
def test_parts_of_fast_math_are_refused(flag: str) -> None:
    if flag == "-mfpmath=387" and os.uname().machine != "x86_64":
        pytest.skip("a flag for x86 only")
    refused = compiled("csrc/certificates/knapsack.c", "-O2", flag)
    assert refused.returncode != 0
    assert "#error" in refused.stderr


# Builds one extension as setup.py does, for that takes a tenth of the time of all.
BUILD = """
import runpy, sys
import Cython.Build
everything = Cython.Build.cythonize
def only(extensions, **options):
    return everything([e for e in extensions if e.name == "bincp._core._operators"], **options)
Cython.Build.cythonize = only
sys.argv = ["setup.py", "-q", "build_ext", "--inplace", "--force"]
runpy.run_path("setup.py")
"""

# Prints whether subnormal numbers are kept, and a digest of many bounds.
BOUNDS = """
import hashlib
import numpy as np
import bincp
from bincp import balls, smoothing

digest = hashlib.sha256()
p = np.random.default_rng(0).random(6000) ** 3
for scheme, ball in [
    (smoothing.Uniform(0.5), balls.L1(0.1)),
    (smoothing.Gaussian(0.25), balls.L2(0.3)),
    (smoothing.SparseFlip(0.01, 0.6), balls.Flips(3, 5)),
    (smoothing.Laplace(1.0), balls.L1(0.7)),
]:
    certificate = bincp.certify(scheme, ball)
    for bound in certificate.lower(p), certificate.upper(p):
        digest.update(bound.tobytes())
least = float(np.array(5e-324).item())
print(least > 0.0, least * 2.0 > least, 1e-310 / 2.0 > 0.0, digest.hexdigest())
"""


@needs_gcc
@pytest.mark.slow
def test_fast_math_of_the_user_is_undone(tmp_path: Path) -> None:
    package = Path(str(bincp.__file__)).parent
    shutil.copytree(package, tmp_path / "bincp", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "csrc", tmp_path / "csrc")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    flags = "-Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only -ffp-contract=fast"
    environment = os.environ | {"CFLAGS": flags, "LDFLAGS": flags, "BINCP_NO_CLONES": "1"}
    [old] = (tmp_path / "bincp" / "_core").glob("_operators.*so")
    old.unlink()
    run(BUILD, tmp_path, environment)
    assert old.exists()
    assert run(BOUNDS, tmp_path) == run(BOUNDS, package.parent)
    assert run(BOUNDS, tmp_path).startswith("True True True ")


def run(code: str, cwd: Path, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


# ---- modes of the processor, found at import ------------------------------------------------

PROBE = """
#include <stdio.h>
#include "numerics/float_mode.h"
int main(void) { printf("%d", bincp_find_float_mode()); }
"""


@needs_gcc
@pytest.mark.parametrize(("flag", "mode"), [("-O2", 0), ("-mfpmath=387", 1)])
def test_operations_in_a_wider_type_are_found(flag: str, mode: int, tmp_path: Path) -> None:
    """The guard of the header is given, so that its check does not refuse the build before."""
    if os.uname().machine != "x86_64":
        pytest.skip("a flag for x86 only")
    (tmp_path / "probe.c").write_text(PROBE)
    command = [str(COMPILER), "-std=c11", flag, "-DBINCP_STRICT_FLOATS_H", "-I", ROOT / "csrc"]
    sources = [tmp_path / "probe.c", ROOT / "csrc" / "numerics" / "float_mode.c"]
    subprocess.run([*command, *sources, "-o", tmp_path / "probe"], check=True)
    found = subprocess.run([tmp_path / "probe"], capture_output=True, text=True, check=True)
    assert found.stdout == str(mode)


# Sets bits of the control register, for the thread that calls.
SETTER = """
#include <xmmintrin.h>
void set(unsigned bits) { _mm_setcsr(_mm_getcsr() | bits); }
"""
# NumPy is imported before, for it does not survive every mode.
IMPORT = "import ctypes, sys, numpy; ctypes.CDLL(sys.argv[1]).set(int(sys.argv[2])); import bincp"


@pytest.fixture(scope="module")
def setter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.uname().machine != "x86_64" or COMPILER is None:
        pytest.skip("needs gcc and the control register of x86")
    folder = tmp_path_factory.mktemp("setter")
    (folder / "setter.c").write_text(SETTER)
    command = [COMPILER, "-shared", "-fPIC", folder / "setter.c", "-o", folder / "setter.so"]
    subprocess.run(command, check=True)
    return folder / "setter.so"


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (0x8000, "needs subnormal numbers"),
        (0x0040, "needs subnormal numbers"),
        (0x8040, "needs subnormal numbers"),
        (0x2000, "rounded to nearest"),
        (0x4000, "rounded to nearest"),
        (0x6000, "rounded to nearest"),
        (0xA040, "rounded to nearest"),
        (0, None),
    ],
    ids=[
        "results flushed",
        "operands flushed",
        "both flushed",
        "down",
        "up",
        "to zero",
        "down and flushed",
        "as it was",
    ],
)
def test_import_refuses_a_mode_that_makes_bounds_unsafe(
    bits: int, message: str | None, setter: Path
) -> None:
    command = [sys.executable, "-c", IMPORT, setter, str(bits)]
    root = Path(str(bincp.__file__)).parents[1]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if message is None:
        assert result.returncode == 0
    else:
        assert result.returncode != 0
        assert "ImportError: bincp needs" in result.stderr
        assert message in result.stderr
