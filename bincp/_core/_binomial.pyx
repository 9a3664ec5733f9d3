"""The binomial kernels for Python and for `cimport`; callers check the arguments."""

from libc.stdint cimport int64_t

cdef extern from "numerics/binomial.h" nogil:
    double bincp_binom_log_pmf(int64_t s, int64_t m, double p, double q)
    double bincp_binom_pmf(int64_t s, int64_t m, double p, double q)
    double bincp_binom_sf(int64_t s, int64_t m, double p, double q)
    double bincp_binom_cdf(int64_t s, int64_t m, double p, double q)
    double bincp_cp_lower(int64_t s, int64_t m, double eta)
    double bincp_cp_upper(int64_t s, int64_t m, double eta)
    void bincp_cp_table(int64_t m, double eta, double *lower, double *upper)
    const double BINCP_CP_STEP
    const double BINCP_CP_STEP_ETA

cdef extern from "numerics/confidence.h" nogil:
    double bincp_randomized_lower(int64_t s, int64_t m, double u, double eta)
    double bincp_randomized_upper(int64_t s, int64_t m, double u, double eta)
    double bincp_sequence_lower(int64_t s, int64_t m, double eta)
    double bincp_sequence_upper(int64_t s, int64_t m, double eta)

CP_STEP = BINCP_CP_STEP
CP_STEP_ETA = BINCP_CP_STEP_ETA


cpdef double binom_pmf(int64_t s, int64_t m, double p, double q) noexcept nogil:
    """Return P[Bin(m, p) = s], q = 1 - p."""
    return bincp_binom_pmf(s, m, p, q)


cpdef double binom_log_pmf(int64_t s, int64_t m, double p, double q) noexcept nogil:
    """Return log P[Bin(m, p) = s], q = 1 - p."""
    return bincp_binom_log_pmf(s, m, p, q)


cpdef double binom_sf(int64_t s, int64_t m, double p, double q) noexcept nogil:
    """Return P[Bin(m, p) >= s], s itself included, q = 1 - p."""
    return bincp_binom_sf(s, m, p, q)


cpdef double binom_cdf(int64_t s, int64_t m, double p, double q) noexcept nogil:
    """Return P[Bin(m, p) <= s], q = 1 - p."""
    return bincp_binom_cdf(s, m, p, q)


cpdef double cp_lower(int64_t s, int64_t m, double eta) noexcept nogil:
    """Return the one-sided lower Clopper-Pearson bound at level eta, rounded down."""
    return bincp_cp_lower(s, m, eta)


cpdef double cp_upper(int64_t s, int64_t m, double eta) noexcept nogil:
    """Return the one-sided upper Clopper-Pearson bound at level eta, rounded up."""
    return bincp_cp_upper(s, m, eta)


cdef void cp_fill_table(int64_t m, double eta, double *lower, double *upper) noexcept nogil:
    bincp_cp_table(m, eta, lower, upper)


def cp_table(int64_t m, double eta, double[::1] lower_out, double[::1] upper_out):
    """Fill `lower_out[s]` and `upper_out[s]`, s = 0..m; either may be None."""
    cdef double *lower = NULL
    cdef double *upper = NULL
    if lower_out is not None:
        _check_table(lower_out.shape[0], m)
        lower = &lower_out[0]
    if upper_out is not None:
        _check_table(upper_out.shape[0], m)
        upper = &upper_out[0]
    with nogil:
        bincp_cp_table(m, eta, lower, upper)


def cp_lower_many(
    const int64_t[::1] s, const int64_t[::1] m, const double[::1] eta, double[::1] out
):
    """Write cp_lower(s[i], m[i], eta[i]) to out[i]; all four have the same length."""
    cdef Py_ssize_t i
    _check_lengths(s.shape[0], m.shape[0], eta.shape[0], out.shape[0])
    with nogil:
        for i in range(out.shape[0]):
            out[i] = bincp_cp_lower(s[i], m[i], eta[i])


def cp_upper_many(
    const int64_t[::1] s, const int64_t[::1] m, const double[::1] eta, double[::1] out
):
    """Write cp_upper(s[i], m[i], eta[i]) to out[i]; all four have the same length."""
    cdef Py_ssize_t i
    _check_lengths(s.shape[0], m.shape[0], eta.shape[0], out.shape[0])
    with nogil:
        for i in range(out.shape[0]):
            out[i] = bincp_cp_upper(s[i], m[i], eta[i])


def randomized_many(
    const int64_t[::1] s,
    const int64_t[::1] m,
    const double[::1] eta,
    const double[::1] u,
    bint lower,
    double[::1] out,
):
    """Write the randomised Clopper-Pearson bounds of s[i] of m[i]; all arrays have one length."""
    cdef Py_ssize_t i
    _check_lengths(s.shape[0], m.shape[0], eta.shape[0], out.shape[0])
    _check_lengths(s.shape[0], u.shape[0], u.shape[0], out.shape[0])
    with nogil:
        for i in range(out.shape[0]):
            if lower:
                out[i] = bincp_randomized_lower(s[i], m[i], u[i], eta[i])
            else:
                out[i] = bincp_randomized_upper(s[i], m[i], u[i], eta[i])


def sequence_many(
    const int64_t[::1] s,
    const int64_t[::1] m,
    const double[::1] eta,
    bint lower,
    double[::1] out,
):
    """Write the bounds that hold at all times for s[i] of m[i]; all arrays have one length."""
    cdef Py_ssize_t i
    _check_lengths(s.shape[0], m.shape[0], eta.shape[0], out.shape[0])
    with nogil:
        for i in range(out.shape[0]):
            if lower:
                out[i] = bincp_sequence_lower(s[i], m[i], eta[i])
            else:
                out[i] = bincp_sequence_upper(s[i], m[i], eta[i])


cdef int _check_table(Py_ssize_t length, int64_t m) except -1:
    if m < 1 or length != m + 1:
        raise ValueError(f"a table must have m + 1 values, m >= 1, got {length} values, m = {m}")
    return 0


cdef int _check_lengths(Py_ssize_t s, Py_ssize_t m, Py_ssize_t eta, Py_ssize_t out) except -1:
    if not s == m == eta == out:
        raise ValueError(f"the arrays must have equal lengths, got {s}, {m}, {eta} and {out}")
    return 0
