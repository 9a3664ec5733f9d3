"""Built-in operators as Python objects. Arguments are validated by the Python layer above."""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_New, PyCapsule_SetContext
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc


cdef extern from "certificates/knapsack.h":
    ctypedef struct bincp_regions:
        pass
    size_t bincp_regions_size(size_t n) nogil
    size_t bincp_regions_workspace(size_t n) nogil
    bincp_regions bincp_regions_make(
        const double *clean, const double *perturbed, size_t n, double slack, double tiny,
        double *storage, double *workspace) nogil


cdef extern from "certificates/sparse_regions.h":
    const double BINCP_SPARSE_SLACK
    double bincp_sparse_tiny(size_t additions, size_t deletions) nogil
    void bincp_sparse_regions(
        size_t additions, size_t deletions, double p_plus, double p_minus,
        double *clean, double *perturbed, double *workspace) nogil
    int bincp_sparse_direction(double p_plus, double p_minus) nogil
    size_t bincp_flip_grid_workspace(size_t additions, size_t deletions, size_t m) nogil
    void bincp_flip_grid(
        size_t additions, size_t deletions, double p_plus, double p_minus, const double *p,
        const uint32_t *order, size_t m, double *out, double *workspace) nogil


cdef extern from "certificates/categorical_regions.h":
    ctypedef struct bincp_stride:
        size_t times
        size_t[3] offset
        double[3] hi
        double[3] lo
    const double BINCP_WALK_SLACK
    double bincp_walk_tiny(const bincp_stride *steps, size_t n_steps, size_t size) nogil
    void bincp_walk_masses(
        const bincp_stride *steps, size_t n_steps, size_t size, double *mass,
        double *workspace) nogil


cdef extern from "certificates/location.h":
    ctypedef struct bincp_expp:
        double power, gamma
    ctypedef struct bincp_sech:
        double alpha, norm
    ctypedef struct bincp_pareto:
        double gamma, kappa
    ctypedef union bincp_law:
        bincp_expp expp
        bincp_sech sech
        bincp_pareto pareto
    ctypedef struct bincp_location:
        double shift
        bincp_law law


cdef extern from "certificates/operators.h":
    ctypedef enum bincp_builtin:
        BINCP_IDENTITY
        BINCP_GAUSSIAN
        BINCP_UNIFORM
        BINCP_REGIONS
        BINCP_STEPS
        BINCP_LAPLACE
        BINCP_LAPLACE_UNIFORM
        BINCP_EXPP
        BINCP_SECH
        BINCP_PARETO
        BINCP_ROOT
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

    @property
    def capsule(self):
        """The operator for C code, in a capsule that keeps it alive (see bincp/bincp.h)."""
        made = PyCapsule_New(<void *> self.ptr, BINCP_OPERATOR_CAPSULE, release_owner)
        PyCapsule_SetContext(made, <void *> self)
        Py_INCREF(self)
        return made

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


cdef void release_owner(object capsule) noexcept:
    Py_DECREF(<object> PyCapsule_GetContext(capsule))


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


def laplace(double shift):
    """F(F^-1(p) -+ shift) of the Laplace law; ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_LAPLACE, shift)


def laplace_or_uniform(double laplace_shift, double uniform_shift):
    """The tighter of the two bounds at each p; both shifts must have been rounded up."""
    cdef Operator op = allocate(2 * sizeof(double))
    cdef double *shifts = <double *> op.storage
    shifts[0] = laplace_shift
    shifts[1] = uniform_shift
    op.own = bincp_operator_make(BINCP_LAPLACE_UNIFORM, shifts)
    return op


def root_exponential(double shift):
    """Shift in the radius of exp(-sqrt(abs(x))); ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_ROOT, shift)


def exponential_power(double shift, double power, double gamma):
    """F(F^-1(p) -+ shift) of exp(-abs(x)**power); ``gamma`` is gamma(1 + 1 / power)."""
    cdef Operator op = location_operator(BINCP_EXPP, shift)
    cdef bincp_expp *law = &(<bincp_location *> op.storage).law.expp
    law.power, law.gamma = power, gamma
    return op


def sech_power(double shift, double alpha, double norm):
    """F(F^-1(p) -+ shift) of the density norm sech(x)**(2 alpha)."""
    cdef Operator op = location_operator(BINCP_SECH, shift)
    cdef bincp_sech *law = &(<bincp_location *> op.storage).law.sech
    law.alpha, law.norm = alpha, norm
    return op


def pareto(double shift, double gamma, double kappa):
    """Shift in the Pareto radius; ``gamma`` is 1 + 1 / a, ``kappa`` psi(1 / gamma) - psi(1)."""
    cdef Operator op = location_operator(BINCP_PARETO, shift)
    cdef bincp_pareto *law = &(<bincp_location *> op.storage).law.pareto
    law.gamma, law.kappa = gamma, kappa
    return op


cdef Operator location_operator(bincp_builtin kind, double shift):
    """An operator whose law is for the caller to fill in."""
    cdef Operator op = allocate(sizeof(bincp_location))
    (<bincp_location *> op.storage).shift = shift
    op.own = bincp_operator_make(kind, op.storage)
    return op


cdef size_t regions_bytes(size_t n) noexcept nogil:
    return sizeof(bincp_regions) + bincp_regions_size(n) * sizeof(double)


cdef int set_regions(
    Operator op, const double *clean, const double *perturbed, size_t n,
    double slack, double tiny
) except -1:
    cdef bincp_regions *regions = <bincp_regions *> op.storage
    cdef double *workspace = <double *> malloc(bincp_regions_workspace(n) * sizeof(double))
    if workspace == NULL:
        raise MemoryError()
    with nogil:
        regions[0] = bincp_regions_make(
            clean, perturbed, n, slack, tiny, <double *> (regions + 1), workspace)
    free(workspace)
    op.own = bincp_operator_make(BINCP_REGIONS, regions)
    return 0


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


SPARSE_SLACK = BINCP_SPARSE_SLACK
WALK_SLACK = BINCP_WALK_SLACK


def sparse_tiny(size_t additions, size_t deletions):
    """Bound on what underflow takes from the masses of ``sparse_masses``."""
    return bincp_sparse_tiny(additions, deletions)


def flip_grid(
    double p_plus, double p_minus, const double[::1] p, const uint32_t[::1] order,
    double[:, :, ::1] out,
):
    """Write the lower bounds of i additions and j deletions at increasing ``p`` to ``out[i, j]``.

    ``p[s]`` goes to the place ``order[s]``; without an order, to its own.
    """
    cdef size_t m = <size_t> p.shape[0]
    if out.shape[2] != p.shape[0] or (order is not None and order.shape[0] != p.shape[0]):
        raise ValueError(f"`order` and the last axis of `out` must have {m} elements")
    if m == 0 or out.shape[0] == 0 or out.shape[1] == 0:
        return
    cdef size_t additions = <size_t> out.shape[0] - 1
    cdef size_t deletions = <size_t> out.shape[1] - 1
    cdef const uint32_t *places = NULL
    if order is not None:
        places = &order[0]
    cdef double *workspace = <double *> malloc(
        bincp_flip_grid_workspace(additions, deletions, m) * sizeof(double))
    if workspace == NULL:
        raise MemoryError()
    with nogil:
        bincp_flip_grid(
            additions, deletions, p_plus, p_minus, &p[0], places, m, &out[0, 0, 0], workspace)
    free(workspace)


def walk_masses(steps, double[::1] mass):
    """Write the masses of the ends of a walk; return what underflow takes at most.

    Each of ``steps`` is (times, offsets, high parts, low parts of the weights), three of each.
    """
    cdef bincp_stride[3] made
    cdef size_t n_steps = len(steps), size = <size_t> mass.shape[0], margin = 0, reach = 0
    if n_steps > 3:
        raise ValueError("`steps` must be three at most")
    for k, (times, offsets, hi, lo) in enumerate(steps):
        made[k].times = times
        for j in range(3):
            made[k].offset[j] = offsets[j]
            made[k].hi[j] = hi[j]
            made[k].lo[j] = lo[j]
        margin = max(margin, max(offsets))
        reach += times * max(offsets)
    if reach + 1 != size:
        raise ValueError(f"`mass` must have {reach + 1} elements, got {size}")
    cdef double *workspace = <double *> malloc(4 * (size + margin) * sizeof(double))
    if workspace == NULL:
        raise MemoryError()
    with nogil:
        bincp_walk_masses(made, n_steps, size, &mass[0], workspace)
    free(workspace)
    return bincp_walk_tiny(made, n_steps, size)
