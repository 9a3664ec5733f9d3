"""The table of bincp/bincp.h in a capsule, from which ``bincp_import`` gives it to C code."""

from cpython.pycapsule cimport PyCapsule_New

from bincp._core._operators cimport Operator, bincp_operator

cdef extern from "api/capi.h":
    const char *BINCP_API_CAPSULE
    ctypedef struct bincp_api:
        pass
    bincp_api bincp_api_make(const bincp_operator *(*operator_of)(object) except NULL)


cdef const bincp_operator *operator_of(object certificate) except NULL:
    made = getattr(certificate, "operator", certificate)
    if not isinstance(made, Operator):
        raise TypeError(
            "`certificate` must be a Certificate made of compiled code (Python functions have no "
            f"operator that runs without the GIL), got {certificate!r}")
    return (<Operator> made).ptr


cdef bincp_api table = bincp_api_make(operator_of)  # written here and never again

API = PyCapsule_New(&table, BINCP_API_CAPSULE, NULL)
