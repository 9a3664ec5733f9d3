"""Compiled operators for cimport: ``Operator.ptr`` can be called without the GIL."""

from libc.stdint cimport uint32_t


cdef extern from "bincp/bincp.h":
    const unsigned int BINCP_ABI_VERSION
    const char *BINCP_OPERATOR_CAPSULE
    ctypedef double (*bincp_bound_fn)(double p, const void *params) noexcept nogil
    ctypedef void (*bincp_fill_fn)(
        const double *p, size_t n, const void *params, double *out) noexcept nogil
    # Set all members of an operator of your own, or start from zeros (calloc, memset): Cython does
    # not initialise those that `bincp_operator(...)` omits.
    ctypedef struct bincp_operator:
        uint32_t abi_version
        uint32_t struct_size
        const char *name
        bincp_bound_fn lower
        bincp_bound_fn upper
        const void *params
        bincp_fill_fn lower_fill  # may be NULL or beyond struct_size, as upper_fill:
        bincp_fill_fn upper_fill  # call the functions lower_fill and upper_fill, which check


cdef class Operator:
    cdef const bincp_operator *ptr   # valid as long as this object lives
    cdef bincp_operator own
    cdef void *storage               # own.params points here


cdef double lower_bound(const bincp_operator *op, double p) noexcept nogil
cdef double upper_bound(const bincp_operator *op, double p) noexcept nogil

# The bounds at n probabilities; `p` and `out` do not overlap.
cdef void lower_fill(
    const bincp_operator *op, const double *p, size_t n, double *out) noexcept nogil
cdef void upper_fill(
    const bincp_operator *op, const double *p, size_t n, double *out) noexcept nogil
