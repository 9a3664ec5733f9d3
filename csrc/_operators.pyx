"""Built-in operators as Python objects. Arguments are validated by the Python layer above."""

from libc.stdlib cimport free, malloc


cdef extern from "knapsack.h":
    ctypedef struct bincp_regions:
        size_t n
    size_t bincp_regions_size(size_t n) nogil
    bincp_regions bincp_regions_cumulate(
        const double *clean, const double *perturbed, size_t n, double slack, double tiny,
        double *storage) nogil
    const double BINCP_SPARSE_SLACK
    double bincp_sparse_tiny(size_t additions, size_t deletions) nogil
    void bincp_sparse_regions(
        size_t additions, size_t deletions, double p_plus, double p_minus,
        double *clean, double *perturbed, double *workspace) nogil
    int bincp_sparse_direction(double p_plus, double p_minus) nogil


cdef extern from "operators.h":
    ctypedef enum bincp_builtin:
        BINCP_IDENTITY
        BINCP_GAUSSIAN
        BINCP_UNIFORM
        BINCP_REGIONS
        BINCP_STEPS
    ctypedef struct bincp_steps:
        double levels
        double steps
    bincp_operator bincp_operator_make(bincp_builtin kind, const void *params) nogil
    void bincp_bound_fill(
        bincp_bound_fn bound, const void *params, const double *p, size_t n, double *out) nogil


cdef double lower_bound(const bincp_operator *op, double p) noexcept nogil:
    return op.lower(p, op.params)


cdef double upper_bound(const bincp_operator *op, double p) noexcept nogil:
    return op.upper(p, op.params)


cdef class Operator:
    """A compiled operator: two bounds that are called without the GIL."""

    def __cinit__(self):
        self.ptr = &self.own
        self.own = bincp_operator_make(BINCP_IDENTITY, NULL)  # until a factory replaces it
        self.storage = NULL

    def __dealloc__(self):
        free(self.storage)

    @property
    def name(self):
        return self.ptr.name.decode()

    def lower(self, double p):
        """Worst-case probability over the ball, rounded down."""
        return self.ptr.lower(p, self.ptr.params)

    def upper(self, double p):
        """Best-case probability over the inverted ball, rounded up."""
        return self.ptr.upper(p, self.ptr.params)

    def lower_fill(self, const double[::1] p, double[::1] out):
        """Write the lower bounds of all ``p`` to ``out``."""
        fill(self.ptr.lower, self.ptr.params, p, out)

    def upper_fill(self, const double[::1] p, double[::1] out):
        """Write the upper bounds of all ``p`` to ``out``."""
        fill(self.ptr.upper, self.ptr.params, p, out)


cdef int fill(
    bincp_bound_fn bound, const void *params, const double[::1] p, double[::1] out
) except -1:
    if p.shape[0] != out.shape[0]:
        raise ValueError(f"`out` must have {p.shape[0]} elements, got {out.shape[0]}")
    if p.shape[0] > 0:
        with nogil:
            bincp_bound_fill(bound, params, &p[0], <size_t> p.shape[0], &out[0])
    return 0


cdef Operator allocate(size_t size):
    """An identity with ``size`` bytes of storage, for a factory to replace."""
    cdef Operator op = Operator()
    op.storage = malloc(size)
    if op.storage == NULL:
        raise MemoryError()
    return op


def identity():
    """Both bounds are p: no perturbation changes anything."""
    return Operator()


cdef Operator shift_operator(bincp_builtin kind, double shift):
    cdef Operator op = allocate(sizeof(double))
    (<double *> op.storage)[0] = shift
    op.own = bincp_operator_make(kind, op.storage)
    return op


def gaussian(double shift):
    """Phi(Phi^-1(p) -+ shift); ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_GAUSSIAN, shift)


def uniform(double shift):
    """clip(p -+ shift, 0, 1); ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_UNIFORM, shift)


def steps(double levels, double steps):
    """clip(p -+ steps / levels, 0, 1), exact on counts; ``levels`` < 2^52, ``steps`` <= levels."""
    cdef Operator op = allocate(sizeof(bincp_steps))
    (<bincp_steps *> op.storage)[0] = bincp_steps(levels, steps)
    op.own = bincp_operator_make(BINCP_STEPS, op.storage)
    return op


cdef size_t regions_bytes(size_t n) noexcept nogil:
    return sizeof(bincp_regions) + bincp_regions_size(n) * sizeof(double)


cdef void set_regions(
    Operator op, const double *clean, const double *perturbed, size_t n,
    double slack, double tiny
) noexcept:
    cdef bincp_regions *regions = <bincp_regions *> op.storage
    cdef double *knots = <double *> (regions + 1)
    regions[0] = bincp_regions_cumulate(clean, perturbed, n, slack, tiny, knots)
    op.own = bincp_operator_make(BINCP_REGIONS, regions)


def regions(const double[::1] clean, const double[::1] perturbed, double slack, double tiny):
    """Fractional knapsack over masses in decreasing order of clean / perturbed."""
    cdef size_t n = <size_t> clean.shape[0]
    if n == 0 or perturbed.shape[0] != clean.shape[0]:
        raise ValueError("`clean` and `perturbed` must be of one length above 0")
    cdef Operator op = allocate(regions_bytes(n))
    set_regions(op, &clean[0], &perturbed[0], n, slack, tiny)
    return op


def sparse(size_t additions, size_t deletions, double p_plus, double p_minus):
    """Knapsack over the regions of sparse flips; the identity where all ratios are 1."""
    if additions + deletions == 0 or bincp_sparse_direction(p_plus, p_minus) == 0:
        return identity()
    cdef size_t n = additions + deletions + 1
    cdef Operator op = allocate(regions_bytes(n))
    cdef double *clean = <double *> malloc((4 * n + 2) * sizeof(double))
    if clean == NULL:
        raise MemoryError()
    cdef double *perturbed = clean + n
    with nogil:
        bincp_sparse_regions(
            additions, deletions, p_plus, p_minus, clean, perturbed, perturbed + n)
    set_regions(op, clean, perturbed, n, BINCP_SPARSE_SLACK,
                bincp_sparse_tiny(additions, deletions))
    free(clean)
    return op


def sparse_masses(
    size_t additions, size_t deletions, double p_plus, double p_minus,
    double[::1] clean, double[::1] perturbed
):
    """Write the masses of the sparse regions, in decreasing order of clean / perturbed."""
    cdef size_t n = additions + deletions + 1
    if <size_t> clean.shape[0] != n or <size_t> perturbed.shape[0] != n:
        raise ValueError(f"`clean` and `perturbed` must have {n} elements")
    cdef double *workspace = <double *> malloc((2 * n + 2) * sizeof(double))
    if workspace == NULL:
        raise MemoryError()
    with nogil:
        bincp_sparse_regions(
            additions, deletions, p_plus, p_minus, &clean[0], &perturbed[0], workspace)
    free(workspace)
