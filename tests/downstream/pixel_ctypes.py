import ctypes

import bincp


class Operator(ctypes.Structure):  # bincp_operator of bincp/bincp.h
    _bound = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("struct_size", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("lower", _bound),
        ("upper", _bound),
        ("params", ctypes.c_void_p),
    ]


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.POINTER(Operator)
get_pointer.argtypes = ctypes.py_object, ctypes.c_char_p


def certified_probability(certificate, successes, trials, eta):
    """Worst-case probability over the ball for a count, at confidence 1 - eta."""
    capsule = certificate.operator.capsule  # keeps what the pointer points to
    operator = get_pointer(capsule, b"bincp.operator.v1").contents
    p = bincp.clopper_pearson_lower(successes, trials, eta)
    return operator.lower(p, operator.params)


def pixel_operator(shift, library):
    """The operator of a ball, from a function `double (double, void *)` of a shared library."""
    function = ctypes.CDLL(library).pixel_lower
    function.restype, function.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_void_p)
    return bincp.Certificate.from_native(function, user_data=ctypes.c_double(shift), name="pixel")
