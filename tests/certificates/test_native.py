"""Operators of compiled code from outside: each kind of it, what is refused, and the GIL."""

import ctypes
import gc
import pickle
import subprocess
import sys
import sysconfig
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

import bincp
from bincp import Certificate, CertificateABIError, CertificateError
from bincp.balls import L1, L2, Ball, Flips
from bincp.certificates import _registry as registry
from bincp.certificates._native_operators import is_native
from bincp.smoothing import Gaussian, SparseFlip, Uniform

C_FILES = Path(__file__).parents[1] / "c"
OPERATOR_CAPSULE = "bincp.operator.v1"
PLAIN = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
WITH_DATA = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
SHIFT = ctypes.c_double(0.1)

probabilities = st.one_of(
    st.floats(0, 1), st.floats(0, 1).map(lambda x: 1 - x * 2.0**-40), st.sampled_from([0.0, 1.0])
)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compile tests/c/outside.c."""
    path = tmp_path_factory.mktemp("outside") / "outside.so"
    compiler = sysconfig.get_config_var("CC").split()
    source, include = C_FILES / "outside.c", bincp.get_include()
    command = [*compiler, "-shared", "-fPIC", "-O2", source, f"-I{include}", "-o", path, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


pytestmark = pytest.mark.usefixtures("clean_registry")


# ---- each kind of compiled code, for the same bounds ----------------------------------------


def function(library: ctypes.CDLL, name: str) -> Any:
    """Return a function of the library, typed by its name."""
    prototype = WITH_DATA if name.startswith(("shifted", "waits")) else PLAIN
    return prototype((name, library))


def struct_capsule(library: ctypes.CDLL, name: str, capsule_name: bytes | None = None) -> Any:
    """Return a capsule around a struct of the library."""
    api = ctypes.pythonapi.PyCapsule_New
    api.restype, api.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
    )
    kept.append(capsule_name or OPERATOR_CAPSULE.encode())  # a capsule does not copy its name
    return api(ctypes.addressof(ctypes.c_char.in_dll(library, name)), kept[-1], None)


kept: list[bytes] = []


def low_level(library: ctypes.CDLL, name: str) -> Any:
    data = ctypes.cast(ctypes.byref(SHIFT), ctypes.c_void_p) if name.startswith("shifted") else None
    return scipy.LowLevelCallable(function(library, name), data)


def cffi_function(library: ctypes.CDLL, name: str) -> Any:
    ffi = pytest.importorskip("cffi").FFI()
    ffi.cdef(
        "double tenth_lower(double p); double tenth_upper(double p);"
        "double shifted_lower(double p, void *shift); double shifted_upper(double p, void *shift);"
        "double falling(double p); double rising(double p); double far_upper(double p);"
        "double not_a_number(double p); double above_one(double p); double below_zero(double p);"
        "float single(float p);"
    )
    return getattr(ffi.dlopen(library._name), name)


def numba_function(name: str) -> Any:
    numba = pytest.importorskip("numba")
    double, pointer = numba.float64, numba.types.CPointer(numba.float64)

    def tenth_lower(p):
        return max(np.nextafter(p - 0.1, 0.0), 0.0)

    def tenth_upper(p):
        return min(np.nextafter(p + 0.1, 1.0), 1.0)

    def shifted_lower(p, shift):
        return max(np.nextafter(p - shift[0], 0.0), 0.0)

    def shifted_upper(p, shift):
        return min(np.nextafter(p + shift[0], 1.0), 1.0)

    def falling(p):
        return p if p < 0.5 else 1.0 - p

    def rising(p):
        return p**0.5

    def far_upper(p):
        return min(p + 0.2, 1.0)

    def not_a_number(p):
        return np.nan if p == 0.25 else 0.5 * p

    def above_one(p):
        return 1.0 + 1e-15 if p == 1.0 else p

    def below_zero(p):
        return p - 0.5

    data = name.startswith("shifted")
    return numba.cfunc(double(double, pointer) if data else double(double))(locals()[name])


KINDS: dict[str, Callable[[ctypes.CDLL, str], Any]] = {
    "ctypes": function,
    "LowLevelCallable": low_level,
    "cffi": cffi_function,
    "numba": lambda library, name: numba_function(name),
}


def made(library: ctypes.CDLL, route: str) -> Certificate:
    """Return the certificate with the bounds p -+ 0.1 by one of the routes."""
    kind, form = route.split()
    if kind == "capsule":
        return Certificate.from_native(
            struct_capsule(library, {"pair": "both", "single": "lower_only"}[form])
        )
    stem = "shifted" if form.endswith("data") else "tenth"
    data = SHIFT if form.endswith("data") and kind != "LowLevelCallable" else None
    lower, upper = (KINDS[kind](library, f"{stem}_{bound}") for bound in ("lower", "upper"))
    if form.startswith("single"):
        return Certificate.from_native(lower, user_data=data)
    return Certificate.from_native(lower, upper, user_data=data)


ROUTES = [
    f"{kind} {form}"
    for kind in ("capsule", *KINDS)
    for form in (
        ("pair", "single")
        if kind == "capsule"
        else ("pair", "single", "pair-with-data", "single-with-data")
    )
]


@pytest.mark.parametrize("route", ROUTES)
def test_every_kind_gives_the_same_bounds(library: ctypes.CDLL, route: str) -> None:
    certificate = made(library, route)
    expected = bincp.certify(Uniform(0.5), L1(0.1))
    p = np.concatenate([np.linspace(0, 1, 1001), 10.0 ** np.arange(-300, 0)])
    np.testing.assert_allclose(certificate.lower(p), expected.lower(p), rtol=0, atol=3e-16)
    np.testing.assert_allclose(certificate.upper(p), expected.upper(p), rtol=0, atol=3e-16)
    for scalar in (0.0, 0.05, 0.5, 1.0):
        assert certificate.lower(scalar) == certificate.lower(np.array([scalar]))[0]
        assert certificate.upper(scalar) == certificate.upper(np.array([scalar]))[0]
    inverse = certificate.inverse()
    assert inverse.lower(0.5) == pytest.approx(0.4)
    assert inverse.upper(0.5) == pytest.approx(0.6)


@given(p=probabilities)
def test_the_inverse_is_the_safe_end_of_adjacent_doubles(library: ctypes.CDLL, p: float) -> None:
    certificate = Certificate.from_native(function(library, "tenth_lower"))
    upper = certificate.upper(p)
    assert upper == 1.0 or certificate.lower(upper) > p
    assert upper == 0.0 or certificate.lower(np.nextafter(upper, 0.0).item()) <= p
    # The exact upper bound of the exact shift, which the rounding down can only move up.
    assert Fraction(upper) >= min(Fraction(p) + Fraction(0.1), 1)


def test_the_inverse_equals_that_of_python_functions(library: ctypes.CDLL) -> None:
    native = Certificate.from_native(function(library, "tenth_lower"))
    python = Certificate.from_bounds(native.lower)
    p = np.concatenate([np.linspace(0, 1, 101), 1 - 10.0 ** np.arange(-16, 0)])
    np.testing.assert_array_equal(native.upper(p), python.upper(p))


def test_names(library: ctypes.CDLL) -> None:
    lower = function(library, "tenth_lower")
    assert Certificate.from_native(lower).describe() == {"operator": "native"}
    assert Certificate.from_native(lower, name="ζ").describe() == {"operator": "ζ"}
    capsule = struct_capsule(library, "both")
    assert Certificate.from_native(capsule).describe() == {"operator": "both"}
    assert Certificate.from_native(capsule, name="mine").describe() == {"operator": "mine"}
    capsule = struct_capsule(library, "latin_1")
    assert Certificate.from_native(capsule).describe() == {"operator": "d\ufffdj\ufffd"}


@pytest.mark.parametrize(
    "data",
    [
        SHIFT,
        ctypes.pointer(SHIFT),
        ctypes.cast(ctypes.pointer(SHIFT), ctypes.c_void_p),
        np.array([0.1]),
        bytearray(SHIFT),
        (ctypes.c_double * 1)(0.1),
    ],
    ids=lambda data: type(data).__name__,
)
def test_kinds_of_user_data(library: ctypes.CDLL, data: Any) -> None:
    lower = function(library, "shifted_lower")
    assert Certificate.from_native(lower, user_data=data).lower(0.5) == pytest.approx(0.4)


def test_cffi_user_data(library: ctypes.CDLL) -> None:
    ffi = pytest.importorskip("cffi").FFI()
    lower = function(library, "shifted_lower")
    data = ffi.new("double *", 0.1)
    assert Certificate.from_native(lower, user_data=data).lower(0.5) == pytest.approx(0.4)
    with pytest.raises(TypeError, match="`user_data` must be a pointer, got a cffi object `int`"):
        Certificate.from_native(lower, user_data=ffi.cast("int", 3))


def test_a_capsule_of_our_own_operator_goes_round() -> None:
    for ours in (
        bincp.certify(Gaussian(0.25), L2(0.25)),
        bincp.certify(SparseFlip(0.01, 0.6), Flips(2, 3)),
    ):
        back = Certificate.from_native(ours.operator.capsule)
        p = np.linspace(0, 1, 101)
        np.testing.assert_array_equal(back.lower(p), ours.lower(p))
        np.testing.assert_array_equal(back.upper(p), ours.upper(p))
        assert back.describe()["operator"] == ours.describe()["operator"]


def test_a_newer_struct_will_do(library: ctypes.CDLL) -> None:
    assert Certificate.from_native(struct_capsule(library, "longer")).lower(0.5) <= 0.4


# ---- references -----------------------------------------------------------------------------


P = np.concatenate([np.linspace(0, 1, 2001), 10.0 ** np.arange(-300, 0)])


def fill_calls(library: ctypes.CDLL) -> int:
    return ctypes.c_longlong.in_dll(library, "fill_calls").value


@pytest.mark.parametrize("name", ["with_fills", "lower_fill_only"])
def test_functions_for_arrays_are_called_once_for_many_values(
    library: ctypes.CDLL, name: str
) -> None:
    certificate = Certificate.from_native(struct_capsule(library, name))
    without = Certificate.from_native(
        struct_capsule(library, "both" if name == "with_fills" else "lower_only")
    )
    before = fill_calls(library)
    lower = certificate.lower(P)
    assert 1 <= fill_calls(library) - before <= len(P) // 256
    np.testing.assert_array_equal(lower, without.lower(P))
    np.testing.assert_array_equal(lower, [certificate.lower(p) for p in P.tolist()])
    np.testing.assert_array_equal(certificate.upper(P), without.upper(P))
    assert certificate.lower(np.empty(0)).shape == (0,)
    # Through a capsule of ours, and the guard, once more.
    again = Certificate.from_native(certificate.operator.capsule)
    np.testing.assert_array_equal(again.lower(P), lower)


def test_the_struct_of_the_first_header(library: ctypes.CDLL) -> None:
    """The words behind its end are functions that abort: they are neither read nor called."""
    certificate = Certificate.from_native(struct_capsule(library, "first_header"))
    both = Certificate.from_native(struct_capsule(library, "both"))
    np.testing.assert_array_equal(certificate.lower(P), both.lower(P))
    np.testing.assert_array_equal(certificate.upper(P), both.upper(P))


def test_functions_for_arrays_must_agree_with_those_for_one_value(library: ctypes.CDLL) -> None:
    message = r"lower_fill must write lower\(p\) .* p = 0.75 the bounds are 0.65\d* and 0.64\d*"
    with pytest.raises(CertificateError, match=message):
        Certificate.from_native(struct_capsule(library, "other_values"))


def test_functions_for_arrays_must_agree_between_points_of_equal_distance(
    library: ctypes.CDLL,
) -> None:
    with pytest.raises(CertificateError, match=r"lower_fill must write lower\(p\) for each p"):
        Certificate.from_native(struct_capsule(library, "between_values"))


def test_an_upper_bound_for_arrays_alone_is_refused(library: ctypes.CDLL) -> None:
    with pytest.raises(ValueError, match="without upper_fill where it is without upper"):
        Certificate.from_native(struct_capsule(library, "upper_fill_only"))


@pytest.mark.parametrize("p", [0.3, 0.7, 0.9], ids=["outside", "nan", "nothing written"])
def test_arrays_outside_the_range_later_on(library: ctypes.CDLL, p: float) -> None:
    certificate = Certificate.from_native(struct_capsule(library, "wild_values"))
    assert certificate.lower(np.array([0.5, 0.25]))[1] == certificate.lower(0.25)
    message = rf"lower_fill must write lower\(p\) for each p, .* p = {p}, where lower\(p\) = "
    with pytest.raises(CertificateError, match=message):
        certificate.lower(np.array([0.5, p, 0.25]))
    assert certificate.lower(p) == pytest.approx(p - 0.1)


def test_a_capsule_keeps_the_operator_and_the_operator_its_code(library: ctypes.CDLL) -> None:
    ours = bincp.certify(SparseFlip(0.01, 0.6), Flips(2, 3))
    value, capsule = ours.lower(0.9), ours.operator.capsule
    del ours
    gc.collect()
    other = bincp.certify(SparseFlip(0.02, 0.5), Flips(2, 3))  # would take the memory
    certificate = Certificate.from_native(capsule)
    del capsule
    assert certificate.lower(0.9) == value != other.lower(0.9)


def test_user_data_lives_as_long_as_the_operator(library: ctypes.CDLL) -> None:
    class Data(np.ndarray[Any, Any]):
        pass

    data = np.array([0.1]).view(Data)
    alive = weakref.ref(data)
    certificate = Certificate.from_native(function(library, "shifted_lower"), user_data=data)
    operator = certificate.operator
    del data, certificate
    gc.collect()
    assert alive() is not None
    assert operator.lower(0.5) == pytest.approx(0.4)
    del operator
    gc.collect()
    assert alive() is None


def test_user_data_cannot_be_resized_away(library: ctypes.CDLL) -> None:
    data = bytearray(SHIFT)
    certificate = Certificate.from_native(function(library, "shifted_lower"), user_data=data)
    with pytest.raises(BufferError):
        data.extend(bytes(1 << 20))
    assert certificate.lower(0.5) == pytest.approx(0.4)


def test_capsules_of_an_operator_are_freed() -> None:
    operator = bincp.certify(Gaussian(0.25), L2(0.25)).operator
    before = sys.getrefcount(operator)
    capsules = [operator.capsule for _ in range(10)]
    assert sys.getrefcount(operator) == before + 10
    del capsules
    assert sys.getrefcount(operator) == before


def test_native_certificates_are_pickled_through_their_pair_only(library: ctypes.CDLL) -> None:
    with pytest.raises(TypeError, match=r"cannot be pickled: use bincp.certify"):
        pickle.dumps(Certificate.from_native(function(library, "tenth_lower")))


# ---- what is refused ------------------------------------------------------------------------

CFUNC_INT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double)
CFUNC_THREE = ctypes.CFUNCTYPE(*[ctypes.c_double] * 4)
CFUNC_NUMBERS = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
PYFUNC = ctypes.PYFUNCTYPE(ctypes.c_double, ctypes.c_double)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda lib: lib.tenth_lower, "restype c_int and argtypes None; set restype"),
        (
            lambda lib: CFUNC_INT(("tenth_lower", lib)),
            r"restype c_int and argtypes \('c_double',\)",
        ),
        (lambda lib: CFUNC_THREE(("tenth_lower", lib)), "'c_double', 'c_double', 'c_double'"),
        (lambda lib: CFUNC_NUMBERS(("tenth_lower", lib)), r"argtypes \('c_double', 'c_double'\)"),
        (lambda lib: PYFUNC(("tenth_lower", lib)), "run without the GIL, got .*PYFUNCTYPE"),
        (
            lambda lib: scipy.LowLevelCallable(CFUNC_INT(("tenth_lower", lib))),
            r"LowLevelCallable with the signature `int \(double\)`",
        ),
        (lambda lib: cffi_function(lib, "single"), r"got a cffi object `float\(\*\)\(float\)`"),
        (lambda lib: lambda p: p, "be a capsule named 'bincp.operator.v1', or a function"),
        (lambda lib: 3, "ctypes or cffi function pointer or numba cfunc, got 3"),
        (lambda lib: "tenth_lower", "got 'tenth_lower'"),
        (lambda lib: ctypes.c_void_p(1), "be a capsule named"),
    ],
)
@pytest.mark.parametrize("argument", ["lower", "upper"])
def test_other_types(
    library: ctypes.CDLL, make: Callable[[ctypes.CDLL], Any], message: str, argument: str
) -> None:
    bad, good = make(library), function(library, "tenth_lower")
    if argument == "upper":
        message = message.replace("be a capsule named 'bincp.operator.v1', or ", "be ")
        message = message.replace("be a capsule named", "be a function")
    with pytest.raises(TypeError, match=f"`{argument}` must .*{message}"):
        Certificate.from_native(*((bad,) if argument == "lower" else (good, bad)))


def test_other_signatures_of_numba() -> None:
    numba = pytest.importorskip("numba")
    single = numba.cfunc(numba.float32(numba.float32))(lambda p: p)
    with pytest.raises(TypeError, match=r"`lower` must be `double \(double\)`.*restype c_float"):
        Certificate.from_native(single)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda lib: {"lower": PLAIN()}, ValueError, "`lower` must be a function, got a NULL"),
        (
            lambda lib: {"lower": function(lib, "shifted_lower")},
            ValueError,
            r"`user_data` must be given for a `lower` that is `double \(double, void \*\)`",
        ),
        (
            lambda lib: {"lower": function(lib, "tenth_lower"), "user_data": SHIFT},
            ValueError,
            r"`user_data` must be None for a `lower` that is `double \(double\)`",
        ),
        (
            lambda lib: {"lower": low_level(lib, "shifted_lower"), "user_data": SHIFT},
            ValueError,
            "`user_data` must be None for a `lower` that brings its own",
        ),
        (
            lambda lib: {"lower": function(lib, "shifted_lower"), "user_data": 3},
            TypeError,
            "`user_data` must be a ctypes or cffi pointer, .*got 3",
        ),
        (
            lambda lib: {"lower": function(lib, "shifted_lower"), "user_data": np.ones(4)[::2]},
            TypeError,
            "with one contiguous buffer",
        ),
        (
            lambda lib: {"lower": function(lib, "shifted_lower"), "user_data": np.ones(0)},
            ValueError,
            r"`user_data` must not be empty, got array\(\[\]",
        ),
        (
            lambda lib: {"lower": function(lib, "shifted_lower"), "user_data": np.array([None])},
            TypeError,
            "`user_data` must not hold Python objects",
        ),
        (
            lambda lib: {"lower": function(lib, "tenth_lower"), "name": 3},
            TypeError,
            "`name` must be a string or None, got 3",
        ),
        (
            lambda lib: {"lower": struct_capsule(lib, "both"), "name": b"mine"},
            TypeError,
            "`name` must be a string or None, got b'mine'",
        ),
        (
            lambda lib: {"lower": struct_capsule(lib, "both"), "user_data": SHIFT},
            TypeError,
            "`user_data` must be None where `lower` is a capsule",
        ),
        (
            lambda lib: {"lower": struct_capsule(lib, "both"), "upper": PLAIN()},
            TypeError,
            "`upper` must be None where `lower` is a capsule",
        ),
        (
            lambda lib: {"lower": struct_capsule(lib, "both", b"numpy.bitgen")},
            ValueError,
            "`lower` must be a capsule named 'bincp.operator.v1', got the name 'numpy.bitgen'",
        ),
        (
            lambda lib: {"lower": struct_capsule(lib, "old_version")},
            CertificateABIError,
            r"version 1 of bincp_operator with at least \d+ bytes, got version 0 with \d+ bytes",
        ),
        (
            lambda lib: {"lower": struct_capsule(lib, "too_short")},
            CertificateABIError,
            r"at least 40 bytes, got version 1 with 39 bytes",
        ),
        (lambda lib: {"lower": struct_capsule(lib, "unnamed")}, ValueError, "whose name is NULL"),
        (lambda lib: {"lower": struct_capsule(lib, "empty")}, ValueError, "whose name is NULL"),
    ],
)
def test_other_values(
    library: ctypes.CDLL,
    arguments: Callable[[ctypes.CDLL], dict[str, Any]],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        Certificate.from_native(**arguments(library))


def test_an_abi_mismatch_is_an_import_error() -> None:
    assert issubclass(CertificateABIError, ImportError)


BROKEN = {
    "falling": "must be non-decreasing, but falls",
    "rising": r"lower\(1e-12\) must be <= p, got 1e-06",
    "not_a_number": r"lower\(0.25\) must be in \[0, 1\], got nan",
    "above_one": r"lower\(1.0\) must be in \[0, 1\], got 1.000000000000001",
    "below_zero": r"lower\(0.0\) must be in \[0, 1\], got -0.5",
}


@dataclass(frozen=True)
class Pixel(Ball):
    """One coordinate moves by at most `r`."""

    r: float


EXAMPLE = (Uniform(0.5), Pixel(0.1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BROKEN)
def test_the_law_is_checked_on_every_route(library: ctypes.CDLL, kind: str, name: str) -> None:
    lower = KINDS[kind](library, name)
    with pytest.raises(CertificateError, match=BROKEN[name]):
        Certificate.from_native(lower)
    with pytest.raises(CertificateError, match=BROKEN[name]):
        bincp.register(Uniform, Pixel, examples=[EXAMPLE])(lambda scheme, ball: lower)
    assert (Uniform, Pixel) not in registry._entries
    bincp.register(Uniform, Pixel)(lambda scheme, ball: lower)
    with pytest.raises(CertificateError, match=BROKEN[name]):
        bincp.certify(*EXAMPLE)


@pytest.mark.parametrize("kind", KINDS)
def test_an_upper_bound_over_another_ball_is_refused(library: ctypes.CDLL, kind: str) -> None:
    pair = [KINDS[kind](library, name) for name in ("tenth_lower", "far_upper")]
    with pytest.raises(CertificateError, match=r"at p = .* and q = .* is `upper` over the inver"):
        Certificate.from_native(*pair)
    with pytest.raises(CertificateError, match="must agree"):
        bincp.register(Uniform, Pixel, examples=[EXAMPLE])(lambda scheme, ball: tuple(pair))


def test_the_law_is_checked_on_capsules(library: ctypes.CDLL) -> None:
    crossed = struct_capsule(library, "crossed")
    with pytest.raises(CertificateError, match=r"lower\(0.0\) must be <= p, got 0.1"):
        Certificate.from_native(crossed)
    with pytest.raises(CertificateError, match=r"lower\(0.0\) must be <= p, got 0.1"):
        bincp.register(Uniform, Pixel, examples=[EXAMPLE])(lambda scheme, ball: crossed)


def test_values_outside_later_on(library: ctypes.CDLL) -> None:
    """Between the points that the law is checked at, a function may do as it likes."""
    for name, got in (("nan_off_the_grid", "nan"), ("two_off_the_grid", "2.0")):
        certificate = Certificate.from_native(
            function(library, name), function(library, "tenth_upper" if got == "nan" else name)
        )
        for p in (0.3, np.array([0.1, 0.3])):
            with pytest.raises(CertificateError, match=rf"lower\(0.3\) must be in .*got {got}"):
                certificate.lower(p)
        assert certificate.lower(np.array([0.2, 0.4])).shape == (2,)
    with pytest.raises(CertificateError, match=r"upper\(0.3\) must be in \[0, 1\], got 2.0"):
        certificate.upper(np.array([0.3]))


def test_an_inverse_of_what_leaves_the_range(library: ctypes.CDLL) -> None:
    certificate = Certificate.from_native(function(library, "nan_off_the_grid"))
    for p in (0.20005, np.array([0.1, 0.20005])):
        with pytest.raises(CertificateError, match=r"upper\(0.20005\) is the inverse of lower, wh"):
            certificate.upper(p)
    assert certificate.upper(0.1) == pytest.approx(0.2)


# ---- the registry ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "capsule"])
@pytest.mark.parametrize("form", ["single", "pair"])
def test_factories_may_return_compiled_code(library: ctypes.CDLL, kind: str, form: str) -> None:
    if kind == "capsule":
        returned = struct_capsule(library, "both" if form == "pair" else "lower_only")
    else:
        bounds = [KINDS[kind](library, name) for name in ("tenth_lower", "tenth_upper")]
        returned = tuple(bounds) if form == "pair" else bounds[0]
    bincp.register(Uniform, Pixel, examples=[EXAMPLE])(lambda scheme, ball: returned)
    certificate = bincp.certify(*EXAMPLE)
    assert type(certificate.operator).__name__ == "ForeignOperator"  # not the slow path
    assert certificate.lower(0.5) == pytest.approx(0.4)
    assert certificate.describe()["ball"] == {"type": "Pixel", "r": 0.1}
    assert certificate.inverse().upper(0.5) == pytest.approx(0.6)


def test_none_is_no_lower_bound() -> None:
    with pytest.raises(TypeError, match=r"`lower` must be a capsule .*, got None"):
        Certificate.from_native(None)


def test_an_upper_bound_is_no_capsule(library: ctypes.CDLL) -> None:
    with pytest.raises(TypeError, match=r"`upper` must be a function .*, got <capsule"):
        Certificate.from_native(function(library, "tenth_lower"), struct_capsule(library, "both"))


def test_a_pair_of_compiled_and_python_code_is_refused(library: ctypes.CDLL) -> None:
    lower = function(library, "tenth_lower")
    for pair, argument in (((lower, lambda p: p), "upper"), ((lambda p: p, lower), "lower")):
        with pytest.raises(TypeError, match=f"`{argument}` must be .*a function .*got <function"):
            bincp.register(Uniform, Pixel, examples=[EXAMPLE])(lambda s, b, pair=pair: pair)


def test_what_is_compiled() -> None:
    for value in (None, 3, "x", len, lambda p: p, np.sin, (PLAIN(), PLAIN()), ctypes.c_double()):
        assert not is_native(value)
    assert is_native(PLAIN())
    assert is_native(bincp.certify(Gaussian(1.0), L2(1.0)).operator.capsule)


@pytest.mark.parametrize("kind", [*KINDS, "capsule"])
def test_prediction_sets_through_compiled_code(library: ctypes.CDLL, kind: str) -> None:
    bounds = (
        struct_capsule(library, "both")
        if kind == "capsule"
        else KINDS[kind](library, "tenth_lower")
    )
    bincp.register(Uniform, Pixel, examples=[EXAMPLE])(lambda scheme, ball: bounds)
    rng = np.random.default_rng(0)
    true_scores = rng.normal(1.0, 0.3, (300, 16))
    scores = rng.normal([[0.9], [0.6], [0.0]], 0.3, (50, 3, 16))
    sets = [
        bincp.BinCP(bincp.certify(Uniform(0.5), ball), alpha=0.1)
        .calibrate(true_scores)
        .predict_set(scores)
        for ball in (Pixel(0.1), L1(0.1))
    ]
    np.testing.assert_array_equal(sets[0], sets[1])
    assert 0 < sets[0].mean() < 1


# ---- the GIL --------------------------------------------------------------------------------


@pytest.fixture
def ticking() -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Count in the first of two numbers, in another Python thread."""
    shared, done = np.zeros(2, np.int64), threading.Event()

    def tick() -> None:
        while not done.is_set():
            shared[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    yield shared
    done.set()
    thread.join()


@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_other_threads_run_during_a_fill(
    library: ctypes.CDLL, ticking: np.ndarray[Any, np.dtype[np.int64]], bound: str
) -> None:
    """The function returns early only if Python code ran in another thread meanwhile."""
    slow = function(library, "waits_for_another_thread")
    certificate = Certificate.from_native(slow, slow, user_data=ticking)
    assert ticking[1] == 0
    getattr(certificate, bound)(np.array([0.3]))
    assert ticking[1] == 1


def test_threads_share_a_certificate(library: ctypes.CDLL) -> None:
    certificate = Certificate.from_native(function(library, "shifted_lower"), user_data=SHIFT)
    p = np.random.default_rng(0).random(2_000)
    expected = certificate.upper(p)
    results: list[Any] = [None] * 4

    def work(i: int) -> None:
        results[i] = certificate.upper(p)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)
