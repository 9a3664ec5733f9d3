"""Compiled operators for cimport: ``Operator.ptr`` can be called without the GIL."""

from libc.stdint cimport uint32_t


cdef extern from "bincp/bincp.h":
    const unsigned int BINCP_ABI_VERSION
    const char *BINCP_OPERATOR_CAPSULE
    ctypedef double (*bincp_bound_fn)(double p, const void *params) noexcept nogil
    ctypedef struct bincp_operator:
        uint32_t abi_version
        uint32_t struct_size
        const char *name
        bincp_bound_fn lower
        bincp_bound_fn upper
        const void *params


cdef class Operator:
    cdef const bincp_operator *ptr   # valid as long as this object lives
    cdef bincp_operator own
    cdef void *storage               # what own.params points to


cdef double lower_bound(const bincp_operator *op, double p) noexcept nogil
cdef double upper_bound(const bincp_operator *op, double p) noexcept nogil
