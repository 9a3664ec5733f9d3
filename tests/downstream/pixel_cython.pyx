from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.math cimport fmax, nextafter
from libc.stdlib cimport calloc, free

from bincp cimport cp_lower
from bincp cimport BINCP_ABI_VERSION, BINCP_OPERATOR_CAPSULE, Operator
from bincp cimport bincp_operator, lower_bound


def certified_probability(Operator operator not None, long successes, long trials, double eta):
    """Worst-case probability over the ball for a count, at confidence 1 - eta."""
    cdef double p
    with nogil:
        p = lower_bound(operator.ptr, cp_lower(successes, trials, eta))
    return p


cdef struct Pixel:
    bincp_operator operator
    double shift


cdef double pixel_lower(double p, const void *shift) noexcept nogil:
    return fmax(nextafter(p - (<const double *> shift)[0], 0), 0)


cdef void release(object capsule) noexcept:
    free(PyCapsule_GetPointer(capsule, BINCP_OPERATOR_CAPSULE))


def pixel_operator(double shift):
    """The operator of a ball: its upper bound is left to bincp."""
    cdef Pixel *pixel = <Pixel *> calloc(1, sizeof(Pixel))  # what is not set below must be NULL
    if pixel == NULL:
        raise MemoryError()
    pixel.shift = shift
    pixel.operator.abi_version = BINCP_ABI_VERSION
    pixel.operator.struct_size = sizeof(bincp_operator)
    pixel.operator.name = "pixel"
    pixel.operator.lower = pixel_lower
    pixel.operator.params = &pixel.shift
    return PyCapsule_New(pixel, BINCP_OPERATOR_CAPSULE, release)
