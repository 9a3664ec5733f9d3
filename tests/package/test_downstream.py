"""Packages of other people, built against the wheel: they call our kernels and add a ball."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

DOWNSTREAM = Path(__file__).parents[1] / "downstream"
COMPILER = sysconfig.get_config_var("CC").split()

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(installed: Path) -> dict[str, str]:
    """See the unpacked wheel before whatever else is installed, and nothing of the source tree."""
    return {"PYTHONPATH": str(installed), "PATH": os.environ["PATH"]}


@pytest.fixture(scope="module")
def built(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the examples of the page on embedding in a copy."""
    folder = tmp_path_factory.mktemp("downstream")
    shutil.copytree(DOWNSTREAM, folder, dirs_exist_ok=True)
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=folder, env=environment)
    library = ("-shared", "-fPIC", "-O2", "pixel_lower.c", "-o", "pixel_lower.so", "-lm")
    run(*COMPILER, *library, cwd=folder, env=environment)
    return folder


def run(*command: str, cwd: Path, env: dict[str, str]) -> str:
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def python(code: str, cwd: Path, env: dict[str, str]) -> str:
    """Run code in the folder of the examples, with the bincp of the wheel."""
    path = "import sys; sys.path.insert(0, '.')\n"
    return run(sys.executable, "-c", path + textwrap.dedent(code), cwd=cwd, env=env)


def test_the_cython_example_sets_every_member(environment: dict[str, str], tmp_path: Path) -> None:
    """Cython leaves members that a struct's constructor omits to chance, and warns of it."""
    shutil.copy(DOWNSTREAM / "pixel_cython.pyx", tmp_path)
    run(
        sys.executable,
        "-m",
        "cython",
        "-3",
        "-Werror",
        "pixel_cython.pyx",
        cwd=tmp_path,
        env=environment,
    )


@pytest.mark.parametrize("module", ["pixel_cython", "pixel_c", "pixel_ctypes"])
def test_they_call_our_kernels(built: Path, environment: dict[str, str], module: str) -> None:
    code = f"""
        import bincp, {module} as example
        assert "site" in bincp.__file__, bincp.__file__
        certificates = [
            bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25)),
            bincp.certify(bincp.smoothing.SparseFlip(0.01, 0.6), bincp.balls.Flips(1, 3)),
        ]
        for certificate in certificates:
            handed = certificate.operator if "{module}" == "pixel_cython" else certificate
            value = example.certified_probability(handed, 90, 100, 1e-3)
            expected = certificate.lower(bincp.clopper_pearson_lower(90, 100, 1e-3))
            assert value == expected, (value, expected)
        print("ok")
    """
    assert python(code, built, environment) == "ok"


def test_a_certificate_of_python_functions_has_no_operator_for_c(
    built: Path, environment: dict[str, str]
) -> None:
    code = """
        import bincp, pixel_c
        certificate = bincp.Certificate.from_bounds(lambda p: p)
        try:
            pixel_c.certified_probability(certificate, 90, 100, 1e-3)
        except TypeError as error:
            print(error)
    """
    assert "must be a Certificate made of compiled code" in python(code, built, environment)


@pytest.mark.parametrize("module", ["pixel_cython", "pixel_c", "pixel_numba", "pixel_ctypes"])
def test_they_add_a_ball(built: Path, environment: dict[str, str], module: str) -> None:
    """The sets are those of l1, which is as bad as a single coordinate for uniform noise."""
    if module == "pixel_numba":
        pytest.importorskip("numba")
    registration = (built / "pixel_ball.py").read_text().replace("pixel_cython", module)
    if module == "pixel_ctypes":
        registration = registration.replace(" * (1 + 1e-15))", ", './pixel_lower.so')")
    code = """
        import numpy as np
        rng = np.random.default_rng(0)
        true_scores = rng.normal(1.0, 0.3, (300, 16))
        scores = rng.normal([[0.9], [0.6], [0.0]], 0.3, (50, 3, 16))
        scheme, sets = Uniform(0.5), []
        for ball in (Pixel(0.125), bincp.balls.L1(0.125)):
            certificate = bincp.certify(scheme, ball)
            rule = bincp.BinCP(certificate, alpha=0.1).calibrate(true_scores)
            sets.append(rule.predict_set(scores))
        assert (sets[0] == sets[1]).all() and 0 < sets[0].mean() < 1
        certificate = bincp.certify(scheme, Pixel(0.125))
        assert type(certificate.operator).__name__ == "ForeignOperator"
        p = np.linspace(0, 1, 101)
        exact = bincp.certify(scheme, bincp.balls.L1(0.125))
        assert np.all(certificate.lower(p) <= exact.lower(p))
        assert np.all(certificate.upper(p) >= exact.upper(p))
        assert np.allclose(certificate.lower(p), exact.lower(p), rtol=0, atol=1e-14)
        assert np.allclose(certificate.upper(p), exact.upper(p), rtol=0, atol=1e-14)
        print((Uniform, Pixel) in {pair[:2] for pair in bincp.registered()})
    """
    assert python(registration + textwrap.dedent(code), built, environment) == "True"


EVERYTHING = """
from libc.stdint cimport int32_t

from bincp cimport binom_sf, cp_fill_table, cp_lower
from bincp cimport count_float32, count_float64
from bincp cimport flip_row, gaussian_row, laplace_row, uniform_row
from bincp cimport Operator, bincp_fill_fn, bincp_operator, lower_fill, upper_bound, upper_fill

cdef api double halved(double p) noexcept nogil:
    return p / 2

cdef api double shifted(double p, void *shift) noexcept nogil:
    return max(p - (<double *> shift)[0] - 1e-15, 0)

cdef api double constant_shifted(double p, const void *shift) noexcept nogil:
    return max(p - (<const double *> shift)[0] - 1e-15, 0)

def everything(Operator operator not None):
    cdef float[4] scores = [0.1, 0.5, 0.9, 0.5]
    cdef double[4] wide = [0.1, 0.5, 0.9, 0.5]
    cdef double[4] table, bounds
    cdef double[2] p = [0.25, 0.5]
    cdef float[4] flipped
    cdef int32_t[1] narrow_count, wide_count
    with nogil:
        count_float32(scores, 1, 4, 0.5, narrow_count)
        count_float64(wide, 1, 4, 0.5, wide_count)
        cp_fill_table(3, 0.1, table, NULL)
        gaussian_row(1, 0, 2, 3, 1.0, 4, NULL, scores)
        laplace_row(1, 0, 2, 3, 1.0, 4, NULL, scores)
        uniform_row(1, 0, 2, 3, 1.0, 4, NULL, scores)
        flip_row(1, 0, 2, 3, 1.0, 0.0, 4, NULL, flipped)
        lower_fill(operator.ptr, p, 2, &bounds[0])
        upper_fill(operator.ptr, p, 2, &bounds[2])
    return (list(bounds), list(flipped), narrow_count[0], wide_count[0], list(table), list(scores),
            upper_bound(operator.ptr, 0.5), binom_sf(1, 2, 0.5, 0.5), cp_lower(1, 3, 0.1))
"""


def test_what_can_be_cimported(environment: dict[str, str], tmp_path: Path) -> None:
    """Kernels of each step, and functions that Cython exports to scipy.LowLevelCallable."""
    (tmp_path / "everything.pyx").write_text(EVERYTHING)
    setup = (DOWNSTREAM / "setup.py").read_text().replace("pixel_cython", "everything")
    lines = [line for line in setup.splitlines() if "pixel_c" not in line]
    (tmp_path / "setup.py").write_text("\n".join(lines))
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=tmp_path, env=environment)
    code = """
        import ctypes, everything, bincp, numpy as np
        from scipy import LowLevelCallable
        certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
        bounds, flipped, *rest = everything.everything(certificate.operator)
        counts, wide, table, noise, upper, tail, lower = rest
        p = np.array([0.25, 0.5])
        assert bounds == [*certificate.lower(p), *certificate.upper(p)] and flipped == [1.0] * 4
        assert (counts, wide, tail, upper) == (3, 3, 0.75, certificate.upper(0.5))
        expected = bincp.clopper_pearson_lower(np.arange(4), 3, 0.1)
        assert np.allclose([*table, lower], [*expected, expected[1]], rtol=1e-13)
        assert len(set(noise)) == 4
        shift = ctypes.c_double(0.1)
        for name, data, bound in (
            ("halved", None, 0.25), ("shifted", shift, 0.4), ("constant_shifted", shift, 0.4)
        ):
            pointer = None if data is None else ctypes.cast(ctypes.byref(data), ctypes.c_void_p)
            native = LowLevelCallable.from_cython(everything, name, pointer)
            assert abs(bincp.Certificate.from_native(native).lower(0.5) - bound) < 1e-14, name
        print("ok")
    """
    assert python(code, tmp_path, environment) == "ok"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "#define BINCP_ABI_VERSION 1u",
            "#define BINCP_ABI_VERSION 2u",
            r"built for version 2 of bincp_api .* has version 1 with \d+ bytes",
        ),
        (
            "} bincp_api;",
            "void (*later)(void); } bincp_api;",
            r"version 1 of bincp_api with at least \d+ bytes, but",
        ),
    ],
    ids=["version", "size"],
)
def test_another_header_than_that_of_the_installed_bincp(
    installed: Path, environment: dict[str, str], tmp_path: Path, old: str, new: str, message: str
) -> None:
    header = (installed / "bincp" / "include" / "bincp" / "bincp.h").read_text()
    assert old in header
    (tmp_path / "bincp").mkdir()
    (tmp_path / "bincp" / "bincp.h").write_text(header.replace(old, new))
    include = [f"-I{folder}" for folder in (tmp_path, sysconfig.get_path("include"))]
    target = str(tmp_path / "pixel_c.so")
    example = str(DOWNSTREAM / "pixel_c.c")
    flags = ("-shared", "-fPIC", "-lm", "-o", target)
    run(*COMPILER, *include, example, *flags, cwd=tmp_path, env=environment)
    code = """
        import bincp
        try:
            import pixel_c
        except bincp.CertificateABIError as error:
            print(error)
    """
    assert re.search(message, python(code, tmp_path, environment))


def test_the_header_is_c_and_cpp(installed: Path, tmp_path: Path) -> None:
    include = [f"-I{installed}/bincp/include", f"-I{sysconfig.get_path('include')}"]
    for language in ("c", "c++"):
        for first in ("", "#include <Python.h>\n"):
            source = tmp_path / "header.c"
            source.write_text(
                f"{first}#include <bincp/bincp.h>\nbincp_operator op = BINCP_OPERATOR_INIT;"
            )
            command = [*COMPILER, "-x", language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
            run(*command, *include, str(source), cwd=tmp_path, env={"PATH": os.environ["PATH"]})
