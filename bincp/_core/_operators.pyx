"""Built-in operators as Python objects; the Python layer above checks the arguments."""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_New, PyCapsule_SetContext
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc


cdef extern from "numerics/float_mode.h":
    ctypedef enum bincp_float_mode:
        BINCP_FLOATS_STRICT
        BINCP_FLOATS_WIDE
        BINCP_FLOATS_FLUSHED
        BINCP_FLOATS_NOT_NEAREST
    bincp_float_mode bincp_find_float_mode() nogil


cdef extern from "certificates/knapsack.h":
    size_t bincp_regions_workspace(size_t n) nogil


cdef extern from "certificates/sparse_regions.h":
    const double BINCP_SPARSE_SLACK
    double bincp_sparse_tiny(size_t additions, size_t deletions) nogil
    void bincp_sparse_masses(
        size_t additions, size_t deletions, double p_plus, double p_minus,
        double *clean, double *perturbed, double *workspace) nogil
    int bincp_sparse_is_identity(
        size_t additions, size_t deletions, double p_plus, double p_minus) nogil
    size_t bincp_sparse_grid_workspace(size_t additions, size_t deletions, size_t m) nogil
    void bincp_sparse_grid(
        size_t additions, size_t deletions, double p_plus, double p_minus, const double *p,
        const uint32_t *order, size_t m, double *out, double *workspace) nogil


cdef extern from "certificates/categorical_regions.h":
    ctypedef struct bincp_coordinates:
        size_t count
        size_t[3] exponent
        double[3] hi
        double[3] lo
    const double BINCP_CATEGORICAL_SLACK
    double bincp_categorical_tiny(
        const bincp_coordinates *kinds, size_t n_kinds, size_t size) nogil
    void bincp_categorical_masses(
        const bincp_coordinates *kinds, size_t n_kinds, size_t size, double *mass,
        double *workspace) nogil


cdef extern from "certificates/location.h":
    ctypedef struct bincp_expp:
        pass
    ctypedef struct bincp_sech:
        pass
    bincp_expp bincp_expp_make(double power, double gamma) nogil
    bincp_sech bincp_sech_make(double alpha, double norm) nogil
    ctypedef struct bincp_pareto:
        double gamma, kappa
    ctypedef union bincp_law:
        bincp_expp expp
        bincp_sech sech
        bincp_pareto pareto
    ctypedef struct bincp_location:
        double shift
        bincp_law law


cdef extern from "certificates/steps.h":
    const double BINCP_MAX_LEVELS
    ctypedef struct bincp_steps:
        double levels
        double steps
    double bincp_steps_lower(double p, const void *params) nogil


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
        BINCP_HALF_POWER
    bincp_operator bincp_operator_make(bincp_builtin kind, const void *params) nogil
    void bincp_lower_fill(
        const bincp_operator *op, const double *p, size_t n, double *out) nogil
    void bincp_upper_fill(
        const bincp_operator *op, const double *p, size_t n, double *out) nogil
    ctypedef struct bincp_charge:
        bincp_operator of
        double delta
    bincp_operator bincp_operator_charged(const bincp_charge *charge) nogil
    size_t bincp_operator_regions_bytes(size_t n) nogil
    bincp_operator bincp_operator_regions(
        const double *clean, const double *perturbed, size_t n, double slack, double tiny,
        void *storage, double *workspace) nogil
    size_t bincp_operator_sparse_workspace(size_t additions, size_t deletions) nogil
    bincp_operator bincp_operator_sparse(
        size_t additions, size_t deletions, double p_plus, double p_minus, void *storage,
        double *workspace) nogil


cdef extern from "certificates/combined.h":
    ctypedef struct bincp_chain:
        const bincp_operator *const *parts
        size_t n_parts
        size_t rounds
    ctypedef struct bincp_best:
        const bincp_operator *const *parts
        size_t n_parts
    ctypedef struct bincp_hierarchy:
        const bincp_operator *of
        double below
        double above
        double rest_hi
        double rest_lo
    bincp_operator bincp_operator_chain(const bincp_chain *chain) nogil
    bincp_operator bincp_operator_best(const bincp_best *best) nogil
    bincp_operator bincp_operator_hierarchy(const bincp_hierarchy *hierarchy) nogil


cdef int check_float_mode() except -1:
    """Refuse a thread whose arithmetic would make bounds unsafe."""
    cdef bincp_float_mode mode = bincp_find_float_mode()
    if mode == BINCP_FLOATS_WIDE:
        raise ImportError(
            "bincp needs operations that are rounded to doubles, but this build rounds them to a "
            "wider type first: compile it for SSE2, not for x87")
    if mode == BINCP_FLOATS_FLUSHED:
        raise ImportError(
            "bincp needs subnormal numbers, but this thread takes them for zero: undo it, as by "
            "torch.set_flush_denormal(False), or import no library built with -ffast-math before")
    if mode == BINCP_FLOATS_NOT_NEAREST:
        raise ImportError(
            "bincp needs results that are rounded to nearest, but this thread rounds them in "
            "another direction: undo it by fesetround(FE_TONEAREST)")
    return 0


check_float_mode()


cdef double lower_bound(const bincp_operator *op, double p) noexcept nogil:
    return op.lower(p, op.params)


cdef double upper_bound(const bincp_operator *op, double p) noexcept nogil:
    return op.upper(p, op.params)


cdef void lower_fill(
    const bincp_operator *op, const double *p, size_t n, double *out
) noexcept nogil:
    bincp_lower_fill(op, p, n, out)


cdef void upper_fill(
    const bincp_operator *op, const double *p, size_t n, double *out
) noexcept nogil:
    bincp_upper_fill(op, p, n, out)


cdef class Operator:
    """A compiled operator: two bounds that are called without the GIL.

    It never changes once it is made, so any number of threads may call it at once.
    """

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
        """Return the worst-case probability over the ball, rounded down."""
        return self.ptr.lower(p, self.ptr.params)

    def upper(self, double p):
        """Return the best-case probability over the inverted ball, rounded up."""
        return self.ptr.upper(p, self.ptr.params)

    def lower_fill(self, const double[::1] p, double[::1] out):
        """Write the lower bounds of all ``p`` to ``out``."""
        check_places(p, out)
        if p.shape[0] > 0:
            with nogil:
                bincp_lower_fill(self.ptr, &p[0], <size_t> p.shape[0], &out[0])

    def upper_fill(self, const double[::1] p, double[::1] out):
        """Write the upper bounds of all ``p`` to ``out``."""
        check_places(p, out)
        if p.shape[0] > 0:
            with nogil:
                bincp_upper_fill(self.ptr, &p[0], <size_t> p.shape[0], &out[0])


cdef void release_owner(object capsule) noexcept:
    Py_DECREF(<object> PyCapsule_GetContext(capsule))


cdef int check_places(const double[::1] p, double[::1] out) except -1:
    cdef Py_ssize_t n = p.shape[0]
    if n != out.shape[0]:
        raise ValueError(f"`out` must have {n} elements, got {out.shape[0]}")
    if n > 0 and <size_t> &p[0] < <size_t> (&out[0] + n) and <size_t> &out[0] < <size_t> (&p[0] + n):
        raise ValueError("`out` must not overlap `p`, got memory of `p`")
    return 0


cdef void *allocate(size_t size) except NULL:
    cdef void *memory = malloc(size)
    if memory == NULL:
        raise MemoryError(f"{size} bytes could not be allocated")
    return memory


cdef Operator with_storage(size_t size):
    """Return an identity with ``size`` bytes of storage, which a factory turns into its operator."""
    cdef Operator op = Operator()
    op.storage = allocate(size)
    return op


def identity():
    """Return the operator whose bounds are p: no perturbation changes anything."""
    return Operator()


cdef Operator shift_operator(bincp_builtin kind, double shift):
    cdef Operator op = with_storage(sizeof(double))
    (<double *> op.storage)[0] = shift
    op.own = bincp_operator_make(kind, op.storage)
    return op


def gaussian(double shift):
    """Return the operator Phi(Phi^-1(p) -+ shift); ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_GAUSSIAN, shift)


def uniform(double shift):
    """Return the operator clip(p -+ shift, 0, 1); ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_UNIFORM, shift)


def steps(double levels, double steps):
    """Return clip(p -+ steps / levels, 0, 1), exact on counts; levels <= 2^50, steps <= levels."""
    if levels > BINCP_MAX_LEVELS:
        raise ValueError(f"there must be at most 2**50 levels, got {levels:.0f}")
    cdef Operator op = with_storage(sizeof(bincp_steps))
    (<bincp_steps *> op.storage)[0] = bincp_steps(levels, steps)
    op.own = bincp_operator_make(BINCP_STEPS, op.storage)
    return op


def laplace(double shift):
    """Return F(F^-1(p) -+ shift) of Laplace noise; ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_LAPLACE, shift)


def laplace_or_uniform(double laplace_shift, double uniform_shift):
    """Return the tighter of the two bounds at each p; both shifts must have been rounded up."""
    cdef Operator op = with_storage(2 * sizeof(double))
    cdef double *shifts = <double *> op.storage
    shifts[0] = laplace_shift
    shifts[1] = uniform_shift
    op.own = bincp_operator_make(BINCP_LAPLACE_UNIFORM, shifts)
    return op


def half_power(double shift):
    """Return the shift in the radius of exp(-sqrt(abs(x))); ``shift`` >= 0 must have been rounded up."""
    return shift_operator(BINCP_HALF_POWER, shift)


def exponential_power(double shift, double power, double gamma):
    """Return F(F^-1(p) -+ shift) of exp(-abs(x)**power); ``gamma`` is gamma(1 + 1 / power)."""
    cdef Operator op = location_operator(BINCP_EXPP, shift)
    (<bincp_location *> op.storage).law.expp = bincp_expp_make(power, gamma)
    return op


def sech_power(double shift, double alpha, double norm):
    """Return F(F^-1(p) -+ shift) of the density norm sech(x)**(2 alpha)."""
    cdef Operator op = location_operator(BINCP_SECH, shift)
    (<bincp_location *> op.storage).law.sech = bincp_sech_make(alpha, norm)
    return op


def pareto(double shift, double gamma, double kappa):
    """Return the shift in the Pareto radius; gamma = 1 + 1 / a, kappa = psi(1 / gamma) - psi(1)."""
    cdef Operator op = location_operator(BINCP_PARETO, shift)
    cdef bincp_pareto *law = &(<bincp_location *> op.storage).law.pareto
    law.gamma, law.kappa = gamma, kappa
    return op


cdef Operator location_operator(bincp_builtin kind, double shift):
    """Return an operator with this shift; the caller fills in the other parameters."""
    cdef Operator op = with_storage(sizeof(bincp_location))
    (<bincp_location *> op.storage).shift = shift
    op.own = bincp_operator_make(kind, op.storage)
    return op


cdef class ChargedOperator(Operator):
    """The bounds of another operator for noise that is not quite its law."""

    cdef Operator of  # what the charge points to


def charged(Operator of not None, double delta):
    """Return the bounds of ``of`` for noise within ``delta`` of its law, in [0, 1]."""
    cdef ChargedOperator op = ChargedOperator()
    op.of = of
    op.storage = allocate(sizeof(bincp_charge))
    (<bincp_charge *> op.storage)[0] = bincp_charge(of.ptr[0], delta)
    op.own = bincp_operator_charged(<const bincp_charge *> op.storage)
    return op


cdef class CombinedOperator(Operator):
    """Bounds that are made of those of other operators."""

    cdef tuple parts  # what the storage points to
    cdef object evaluations


cdef CombinedOperator combined(parts, size_t size):
    """Return an identity with ``size`` bytes of storage, and pointers to the parts behind them."""
    cdef CombinedOperator op = CombinedOperator()
    cdef Operator part
    op.parts = tuple(parts)
    op.evaluations = sum(map(evaluations_of, op.parts))
    op.storage = allocate(size + len(op.parts) * sizeof(void *))
    cdef const bincp_operator **pointers = <const bincp_operator **> (<char *> op.storage + size)
    for i, part in enumerate(op.parts):
        pointers[i] = part.ptr
    return op


def chain(parts, size_t rounds):
    """Return the bounds of one operator after the other, all of them ``rounds`` times."""
    cdef CombinedOperator op = combined(parts, sizeof(bincp_chain))
    cdef bincp_chain *own = <bincp_chain *> op.storage
    own.parts = <const bincp_operator *const *> (own + 1)
    own.n_parts, own.rounds = len(op.parts), rounds
    op.evaluations *= rounds
    op.own = bincp_operator_chain(own)
    return op


def best(parts):
    """Return the best bounds of one operator or more that all hold."""
    cdef CombinedOperator op = combined(parts, sizeof(bincp_best))
    if not op.parts:
        raise ValueError("`parts` must not be empty")
    cdef bincp_best *own = <bincp_best *> op.storage
    own.parts = <const bincp_operator *const *> (own + 1)
    own.n_parts = len(op.parts)
    op.own = bincp_operator_best(own)
    return op


def hierarchy(Operator of not None, double below, double above, double rest_hi, double rest_lo):
    """Return the bounds of noise in two levels; see csrc/certificates/combined.h."""
    cdef CombinedOperator op = combined((of,), sizeof(bincp_hierarchy))
    (<bincp_hierarchy *> op.storage)[0] = bincp_hierarchy(of.ptr, below, above, rest_hi, rest_lo)
    op.evaluations += 1
    op.own = bincp_operator_hierarchy(<const bincp_hierarchy *> op.storage)
    return op


def evaluations_of(Operator of not None):
    """Return how many bounds are evaluated for one probability, those of parts included."""
    if isinstance(of, CombinedOperator):
        return (<CombinedOperator> of).evaluations
    return evaluations_of((<ChargedOperator> of).of) if isinstance(of, ChargedOperator) else 1


_SHIFTS = {"gaussian": BINCP_GAUSSIAN, "laplace": BINCP_LAPLACE, "uniform": BINCP_UNIFORM}


def shift_of(Operator of not None):
    """Return (name, shift) of the shift of one quantile function, None for every other operator."""
    if type(of) is not Operator or of.name not in _SHIFTS:
        return None
    return of.name, (<const double *> of.storage)[0]


def shifted(str name, double shift):
    """Return the operator of one of these shifts; ``shift`` >= 0 must have been rounded up."""
    return shift_operator(_SHIFTS[name], shift)


def steps_of(Operator of not None):
    """Return (levels, steps) of the bounds of counts, None for every other operator."""
    if of.own.lower != bincp_steps_lower:
        return None
    cdef const bincp_steps *move = <const bincp_steps *> of.own.params
    return move.levels, move.steps


def regions(const double[::1] clean, const double[::1] perturbed, double slack, double tiny):
    """Return the fractional knapsack over masses in decreasing order of clean / perturbed."""
    cdef size_t n = <size_t> clean.shape[0]
    if n == 0 or perturbed.shape[0] != clean.shape[0]:
        raise ValueError(
            "`clean` and `perturbed` must be of one length above 0, "
            f"got {clean.shape[0]} and {perturbed.shape[0]}")
    cdef Operator op = with_storage(bincp_operator_regions_bytes(n))
    cdef double *workspace = <double *> allocate(bincp_regions_workspace(n) * sizeof(double))
    with nogil:
        op.own = bincp_operator_regions(
            &clean[0], &perturbed[0], n, slack, tiny, op.storage, workspace)
    free(workspace)
    return op


def sparse(size_t additions, size_t deletions, double p_plus, double p_minus):
    """Return the knapsack over the regions of sparse flips; the identity if all ratios are 1."""
    if bincp_sparse_is_identity(additions, deletions, p_plus, p_minus):
        return identity()
    cdef Operator op = with_storage(bincp_operator_regions_bytes(additions + deletions + 1))
    cdef double *workspace = <double *> allocate(
        bincp_operator_sparse_workspace(additions, deletions) * sizeof(double))
    with nogil:
        op.own = bincp_operator_sparse(
            additions, deletions, p_plus, p_minus, op.storage, workspace)
    free(workspace)
    return op


def sparse_masses(
    size_t additions, size_t deletions, double p_plus, double p_minus,
    double[::1] clean, double[::1] perturbed
):
    """Write the masses of the sparse regions, in decreasing order of clean / perturbed."""
    cdef size_t n = additions + deletions + 1
    if <size_t> clean.shape[0] != n or <size_t> perturbed.shape[0] != n:
        raise ValueError(
            f"`clean` and `perturbed` must have {n} elements, "
            f"got {clean.shape[0]} and {perturbed.shape[0]}")
    cdef double *workspace = <double *> allocate((2 * n + 2) * sizeof(double))
    with nogil:
        bincp_sparse_masses(
            additions, deletions, p_plus, p_minus, &clean[0], &perturbed[0], workspace)
    free(workspace)


SPARSE_SLACK = BINCP_SPARSE_SLACK
CATEGORICAL_SLACK = BINCP_CATEGORICAL_SLACK


def sparse_tiny(size_t additions, size_t deletions):
    """Return a bound on the absolute error that underflow leaves in ``sparse_masses``."""
    return bincp_sparse_tiny(additions, deletions)


def sparse_grid(
    double p_plus, double p_minus, const double[::1] p, const uint32_t[::1] order,
    double[:, :, ::1] out,
):
    """Write the lower bounds of i additions and j deletions at increasing ``p`` to ``out[i, j]``.

    The bound of ``p[s]`` goes to the place ``order[s]``, or without an order to place s.
    """
    cdef size_t m = <size_t> p.shape[0]
    if out.shape[2] != p.shape[0] or (order is not None and order.shape[0] != p.shape[0]):
        raise ValueError(
            f"`order` and the last axis of `out` must have {m} elements, got "
            f"{'no order' if order is None else order.shape[0]} and {out.shape[2]}")
    if m == 0 or out.shape[0] == 0 or out.shape[1] == 0:
        return
    cdef size_t additions = <size_t> out.shape[0] - 1
    cdef size_t deletions = <size_t> out.shape[1] - 1
    cdef const uint32_t *places = NULL
    if order is not None:
        places = &order[0]
    cdef double *workspace = <double *> allocate(
        bincp_sparse_grid_workspace(additions, deletions, m) * sizeof(double))
    with nogil:
        bincp_sparse_grid(
            additions, deletions, p_plus, p_minus, &p[0], places, m, &out[0, 0, 0], workspace)
    free(workspace)


def categorical_masses(kinds, double[::1] mass):
    """Write the masses of the sums of exponents; return a bound on what underflow takes from them.

    Each of ``kinds``, three at most, is (count, exponents, high parts, low parts of their
    probabilities), with three exponents.
    """
    cdef bincp_coordinates[3] made
    cdef size_t n_kinds = len(kinds), size = <size_t> mass.shape[0], margin = 0, largest_sum = 0
    if n_kinds > 3:
        raise ValueError(f"`kinds` must be three at most, got {n_kinds}")
    for k, (count, exponents, hi, lo) in enumerate(kinds):
        made[k].count = count
        for j in range(3):
            made[k].exponent[j] = exponents[j]
            made[k].hi[j] = hi[j]
            made[k].lo[j] = lo[j]
        margin = max(margin, max(exponents))
        largest_sum += count * max(exponents)
    if largest_sum + 1 != size:
        raise ValueError(f"`mass` must have {largest_sum + 1} elements, got {size}")
    cdef double *workspace = <double *> allocate(4 * (size + margin) * sizeof(double))
    with nogil:
        bincp_categorical_masses(made, n_kinds, size, &mass[0], workspace)
    free(workspace)
    return bincp_categorical_tiny(made, n_kinds, size)
