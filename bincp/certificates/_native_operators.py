"""Recognise compiled functions, check their types, and find their addresses.

ctypes pointers and numba cfuncs can be called from Python, too; taken for Python functions they
would work, at a hundred times the cost and with the GIL. So compiled functions are recognised here,
before any value is tested for being callable.

No library is imported for it: an object of scipy, cffi or numba exists only where they are loaded.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bincp._core import _foreign
from bincp.certificates._law import Array, irregular_probabilities
from bincp.certificates._protocols import Bound, Operator
from bincp.errors import CertificateError

_ACCEPTED = "`double (double)` or `double (double, void *)`"
_FUNCTIONS = (
    f"a function {_ACCEPTED} as a scipy.LowLevelCallable, ctypes or cffi function pointer or numba "
    "cfunc"
)
_KINDS = {
    "lower": f"a capsule named {_foreign.OPERATOR_CAPSULE!r}, or {_FUNCTIONS}",
    "upper": _FUNCTIONS,
}

_CAPSULE: type = type(_foreign.ForeignOperator().capsule)
_CTYPES_FUNCTION: type = ctypes.CFUNCTYPE(None).__bases__[0]  # of all function pointers
_CTYPES_POINTERS: tuple[type, ...] = (ctypes.c_void_p, ctypes._Pointer)
_NEEDS_GIL = 4  # flag of the functions of ctypes.PyDLL and ctypes.PYFUNCTYPE


class _Function(NamedTuple):
    """A compiled function: its address, and that of the user data that it brings along."""

    address: int
    takes_data: bool
    data: int | None = None


def native_operator(lower: Any, upper: Any, name: str | None, user_data: Any) -> Operator:
    """Return the operator of compiled code; `Certificate.from_native` lists the accepted forms."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"`name` must be a string or None, got {name!r}")
    if isinstance(lower, _CAPSULE):
        return _from_capsule(lower, upper, name, user_data)
    data, pinned = (None, None) if user_data is None else _data_address(user_data)
    return _foreign.from_functions(
        "native" if name is None else name,
        _address_and_data("lower", lower, data),
        None if upper is None else _address_and_data("upper", upper, data),
        (lower, upper, user_data, pinned),
    )


def is_native(value: Any) -> bool:
    """Return whether `value` is compiled code of a kind that `native_operator` knows."""
    return isinstance(value, _CAPSULE) or _reader(value) is not None


def _from_capsule(capsule: Any, upper: Any, name: str | None, user_data: Any) -> Operator:
    for argument, value in (("upper", upper), ("user_data", user_data)):
        if value is not None:
            raise TypeError(
                f"`{argument}` must be None where `lower` is a capsule, which holds both bounds "
                f"and their data, got {value!r}"
            )
    given = _foreign.capsule_name(capsule)
    if given != _foreign.OPERATOR_CAPSULE:
        raise ValueError(
            f"`lower` must be a capsule named {_foreign.OPERATOR_CAPSULE!r}, got the name "
            f"{given!r}; a capsule of a function goes into a scipy.LowLevelCallable"
        )
    operator = _foreign.from_capsule(capsule, name)
    _check_fill("lower", operator.lower, operator.lower_fill)
    _check_fill("upper", operator.upper, operator.upper_fill)
    return operator


def _check_fill(name: str, bound: Bound, fill: Callable[[Array, Array], None]) -> None:
    """Refuse a function for arrays that differs from the one for a single value in between.

    At equal distances they were compared when the operator was made.
    """
    p = np.array(irregular_probabilities())
    filled = np.empty_like(p)
    fill(p, filled)
    for probability, value in zip(p.tolist(), filled.tolist(), strict=True):
        single = bound(probability)
        if value != single:
            raise CertificateError(
                f"{name}_fill must write {name}(p) for each p, to the last bit, but at "
                f"p = {probability!r} the bounds are {value!r} and {single!r}"
            )


# ---- functions ------------------------------------------------------------------------------


def _address_and_data(argument: str, value: Any, data: int | None) -> tuple[int, bool, int]:
    """Return the address of a function, whether it takes data, and the address of its data."""
    read = _reader(value)
    if read is None:
        raise TypeError(f"`{argument}` must be {_KINDS[argument]}, got {value!r}")
    function = read(argument, value)
    if function.address == 0:
        raise ValueError(f"`{argument}` must be a function, got a NULL pointer, {value!r}")
    if not function.takes_data and data is not None:
        raise ValueError(
            f"`user_data` must be None for a `{argument}` that is `double (double)`, got a value"
        )
    if function.data is not None and data is not None:
        raise ValueError(
            f"`user_data` must be None for a `{argument}` that brings its own, got a value"
        )
    if function.takes_data and function.data is None and data is None:
        raise ValueError(
            f"`user_data` must be given for a `{argument}` that is `double (double, void *)`, got "
            "None; ctypes.c_void_p() is a NULL pointer"
        )
    return function.address, function.takes_data, function.data or data or 0


def _reader(value: Any) -> Callable[[str, Any], _Function] | None:
    if isinstance(value, _CTYPES_FUNCTION):
        return _read_ctypes
    if _is_of(value, "scipy", "LowLevelCallable"):
        return _read_scipy
    if _is_of(value, "numba.core.ccallback", "CFunc"):
        return _read_numba
    if _is_of(value, "_cffi_backend", "_CDataBase"):
        return _read_cffi
    return None


def _is_of(value: Any, module: str, name: str) -> bool:
    """Return whether `value` is of a class of a package that need not be installed."""
    return isinstance(value, getattr(sys.modules.get(module), name, ()))


def _read_ctypes(argument: str, value: Any) -> _Function:
    if value._flags_ & _NEEDS_GIL:
        raise TypeError(
            f"`{argument}` must run without the GIL, got {value!r}, a function of ctypes.PyDLL or "
            "ctypes.PYFUNCTYPE"
        )
    arguments = value.argtypes
    fits = (
        value.restype is ctypes.c_double
        and arguments is not None
        and len(arguments) in (1, 2)
        and arguments[0] is ctypes.c_double
        and all(_is_pointer(kind) for kind in arguments[1:])
    )
    if not fits:
        shown = None if arguments is None else tuple(kind.__name__ for kind in arguments)
        restype = getattr(value.restype, "__name__", value.restype)
        raise TypeError(
            f"`{argument}` must be {_ACCEPTED}, got a ctypes function with restype {restype} and "
            f"argtypes {shown}; set restype to c_double and argtypes to (c_double,) or "
            "(c_double, c_void_p)"
        )
    return _Function(_pointer(value), len(arguments) == 2)


def _is_pointer(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _CTYPES_POINTERS)


def _read_numba(argument: str, value: Any) -> _Function:
    return _read_ctypes(argument, value.ctypes)


def _read_cffi(argument: str, value: Any) -> _Function:
    ffi = sys.modules["_cffi_backend"].FFI()
    kind = ffi.typeof(value)
    fits = (
        kind.kind == "function"
        and not kind.ellipsis
        and kind.result.cname == "double"
        and len(kind.args) in (1, 2)
        and kind.args[0].cname == "double"
        and all(extra.kind == "pointer" for extra in kind.args[1:])
    )
    if not fits:
        raise TypeError(f"`{argument}` must be {_ACCEPTED}, got a cffi object `{kind.cname}`")
    return _Function(int(ffi.cast("uintptr_t", value)), len(kind.args) == 2)


_SCIPY_SIGNATURES = {
    "double(double)": False,
    "double(double,void*)": True,
    "double(double,constvoid*)": True,
    "double(double,voidconst*)": True,
}


def _read_scipy(argument: str, value: Any) -> _Function:
    signature = value.signature
    takes_data = _SCIPY_SIGNATURES.get("".join(signature.split()))
    if takes_data is None:
        raise TypeError(
            f"`{argument}` must be {_ACCEPTED}, got a scipy.LowLevelCallable with the signature "
            f"`{signature}`"
        )
    address, data = _foreign.capsule_addresses(tuple.__getitem__(value, 0))
    brings = takes_data and (data != 0 or value.user_data is not None)
    return _Function(address, takes_data, data if brings else None)


# ---- user data ------------------------------------------------------------------------------


def _data_address(value: Any) -> tuple[int, memoryview | None]:
    """Return the address, and an object that keeps a buffer from being resized."""
    if isinstance(value, _CTYPES_POINTERS):
        return _pointer(value), None
    if isinstance(value, _CAPSULE):
        return _foreign.capsule_addresses(value)[0], None
    if _is_of(value, "_cffi_backend", "_CDataBase"):
        return _cffi_pointer(value), None
    try:
        buffer = memoryview(value)
        pinned = buffer.cast("B")
    except (TypeError, ValueError) as error:
        raise TypeError(
            "`user_data` must be a ctypes or cffi pointer, a capsule, or an object with one "
            f"contiguous buffer, such as a NumPy array or a ctypes structure, got {value!r}"
        ) from error
    if "O" in buffer.format:
        raise TypeError(f"`user_data` must not hold Python objects, got {value!r}")
    if not pinned:  # its address would be NULL; NULL must be given as such
        raise ValueError(f"`user_data` must not be empty, got {value!r}")
    return _foreign.buffer_address(pinned), pinned


def _cffi_pointer(value: Any) -> int:
    ffi = sys.modules["_cffi_backend"].FFI()
    kind = ffi.typeof(value)
    if kind.kind not in ("pointer", "array"):
        raise TypeError(f"`user_data` must be a pointer, got a cffi object `{kind.cname}`")
    return int(ffi.cast("uintptr_t", value))


def _pointer(value: Any) -> int:
    return ctypes.cast(value, ctypes.c_void_p).value or 0
