"""Operators from outside: functions given by their address, or a struct in a capsule.

``bincp.certificates._native_operators`` finds the addresses and checks the types of the functions.
"""

from cpython.pycapsule cimport (
    PyCapsule_GetContext,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
)
from libc.stdint cimport uint32_t, uintptr_t

from bincp._core._operators cimport (
    BINCP_ABI_VERSION,
    BINCP_OPERATOR_CAPSULE,
    Operator,
    bincp_bound_fn,
    bincp_fill_fn,
    bincp_operator,
)

cdef extern from "certificates/foreign.h":
    ctypedef double (*bincp_plain_fn)(double p) noexcept nogil
    ctypedef double (*bincp_data_fn)(double p, void *data) noexcept nogil
    ctypedef struct bincp_function:
        bincp_plain_fn plain
        bincp_data_fn with_data
        bincp_bound_fn bound
        void *data
        bincp_fill_fn fill
    ctypedef struct bincp_foreign:
        bincp_function lower
        bincp_function upper
    bint bincp_function_is_given(const bincp_function *function) nogil
    bincp_foreign bincp_foreign_functions(const bincp_operator *given) nogil
    double bincp_function_call(const bincp_function *function, double p) nogil
    bincp_operator bincp_foreign_operator(const bincp_foreign *functions, const char *name) nogil

cdef extern from "certificates/operators.h":
    const size_t BINCP_OPERATOR_MIN_SIZE

OPERATOR_CAPSULE = (<bytes> BINCP_OPERATOR_CAPSULE).decode()


cdef class ForeignOperator(Operator):
    """Two functions from outside; a value outside [0, 1] raises a `CertificateError` with p.

    Any number of threads may call it at once if they may call the functions.
    """

    cdef bincp_foreign functions
    cdef bytes label
    cdef object kept  # the owners of the code and of the data of the functions

    def lower(self, double p):
        """Return the worst-case probability over the ball."""
        cdef double value = self.own.lower(p, self.own.params)
        if value != value:
            self.refuse(p, True)
        return value

    def upper(self, double p):
        """Return the best-case probability over the inverted ball."""
        cdef double value = self.own.upper(p, self.own.params)
        if value != value:
            self.refuse(p, False)
        return value

    def lower_fill(self, const double[::1] p, double[::1] out):
        """Write the lower bounds of all ``p`` to ``out``."""
        Operator.lower_fill(self, p, out)
        self.refuse_any(p, out, True)

    def upper_fill(self, const double[::1] p, double[::1] out):
        """Write the upper bounds of all ``p`` to ``out``."""
        Operator.upper_fill(self, p, out)
        self.refuse_any(p, out, False)

    cdef int refuse_any(self, const double[::1] p, const double[::1] out, bint lower) except -1:
        cdef Py_ssize_t i
        for i in range(out.shape[0]):
            if out[i] != out[i]:
                self.refuse(p[i], lower)
        return 0

    cdef int refuse(self, double p, bint lower) except -1:
        """Raise for a bound that is NaN, unless `p` is outside [0, 1], where every bound is NaN."""
        if not 0 <= p <= 1:
            return 0
        from bincp._core.exceptions import CertificateError

        if not lower and not bincp_function_is_given(&self.functions.upper):
            raise CertificateError(
                f"upper({p!r}) is the inverse of lower, which must be in [0, 1] at each p that the "
                "inversion evaluates, and is not")
        cdef const bincp_function *function = (
            &self.functions.lower if lower else &self.functions.upper)
        cdef str name = "lower" if lower else "upper"
        cdef double value = bincp_function_call(function, p)
        if 0 <= value <= 1:
            raise CertificateError(
                f"{name}_fill must write {name}(p) for each p, but wrote no probability at "
                f"p = {p!r}, where {name}(p) = {value!r}")
        raise CertificateError(f"{name}({p!r}) must be in [0, 1], got {value!r}")


cdef ForeignOperator finish(ForeignOperator op, bytes label, object kept):
    op.label = label
    op.kept = kept
    op.own = bincp_foreign_operator(&op.functions, op.label)
    return op


def from_functions(str name, lower, upper, kept):
    """Return the operator of two functions, each (address, takes_data, address of its data).

    ``upper`` may be None. ``kept`` is held as long as the functions may be called.
    """
    cdef ForeignOperator op = ForeignOperator.__new__(ForeignOperator)
    set_function(&op.functions.lower, lower)
    if upper is not None:
        set_function(&op.functions.upper, upper)
    return finish(op, name.encode(), kept)


cdef int set_function(bincp_function *function, parts) except -1:
    cdef uintptr_t address, data
    cdef bint takes_data
    address, takes_data, data = parts
    if takes_data:
        function.with_data = <bincp_data_fn> address
    else:
        function.plain = <bincp_plain_fn> address
    function.data = <void *> data
    return 0


def from_capsule(capsule, name=None):
    """Return the operator of the ``bincp_operator`` in a capsule of the right name."""
    cdef const bincp_operator *given = <const bincp_operator *> PyCapsule_GetPointer(
        capsule, BINCP_OPERATOR_CAPSULE)
    check_version(given.abi_version, given.struct_size)
    if given.name == NULL or given.lower == NULL:
        raise ValueError(
            "`lower` must be a capsule of a bincp_operator with name and lower, "
            f"got one whose {'name' if given.name == NULL else 'lower'} is NULL")
    cdef ForeignOperator op = ForeignOperator.__new__(ForeignOperator)
    op.functions = bincp_foreign_functions(given)
    if given.upper == NULL and op.functions.upper.fill != NULL:
        raise ValueError(
            "`lower` must be a capsule of a bincp_operator without upper_fill where it is without "
            "upper, got one with upper_fill alone")
    if name is None:  # bytes that are no UTF-8 would fail wherever the name is shown
        name = (<bytes> given.name).decode(errors="replace")
    finish(op, name.encode(), capsule)
    if op.functions.lower.fill != NULL:
        check_fill("lower", op.own.lower, op.own.lower_fill, op.own.params)
    if op.functions.upper.fill != NULL:
        check_fill("upper", op.own.upper, op.own.upper_fill, op.own.params)
    return op


cdef int check_fill(
    str name, bincp_bound_fn bound, bincp_fill_fn fill, const void *params
) except -1:
    """Refuse a function for arrays that differs from the one for a single value, on a grid."""
    from bincp._core.exceptions import CertificateError

    cdef double[1025] p, filled  # more than one chunk of a function from outside
    cdef double single
    cdef int k
    for k in range(1025):
        p[k] = k / 1024.0
    fill(p, 1025, params, filled)
    for k in range(1025):
        single = bound(p[k], params)
        if filled[k] != single and not (filled[k] != filled[k] and single != single):
            raise CertificateError(
                f"{name}_fill must write {name}(p) for each p, to the last bit, but at "
                f"p = {p[k]!r} the bounds are {filled[k]!r} and {single!r} (NaN where the function "
                "leaves [0, 1])")
    return 0


cdef int check_version(uint32_t version, uint32_t size) except -1:
    """Refuse another version, or fewer members than the first struct of this version has."""
    from bincp._core.exceptions import CertificateABIError

    if version != BINCP_ABI_VERSION or size < BINCP_OPERATOR_MIN_SIZE:
        raise CertificateABIError(
            f"`lower` must hold version {BINCP_ABI_VERSION} of bincp_operator with at least "
            f"{BINCP_OPERATOR_MIN_SIZE} bytes, got version {version} with {size} bytes: "
            "build it with the header of this bincp, and fill in abi_version and struct_size")
    return 0


def capsule_name(capsule):
    """Return the name of a capsule, or None."""
    cdef const char *name = PyCapsule_GetName(capsule)
    return None if name == NULL else (<bytes> name).decode(errors="replace")


def capsule_addresses(capsule):
    """Return the addresses that a capsule holds: (pointer, context)."""
    cdef const char *name = PyCapsule_GetName(capsule)
    return (<uintptr_t> PyCapsule_GetPointer(capsule, name),
            <uintptr_t> PyCapsule_GetContext(capsule))


def buffer_address(const unsigned char[::1] buffer):
    """Return the address of the first byte of a contiguous buffer of bytes, at least one."""
    return <uintptr_t> &buffer[0]
