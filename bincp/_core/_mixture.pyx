"""Worst-case mixtures of binomials over arrays; the Python layer above checks the arguments.

All arrays belong to one grid of probabilities and have its length.
"""

from libc.stdint cimport int64_t


cdef extern from "rules/mixture.h":
    void bincp_failures(
        int64_t t, int64_t m, const double *p, const double *q, size_t n, double *out) nogil
    void bincp_binomial_means(
        const double *w, int64_t m, const double *p, const double *q, size_t n, double *out) nogil
    ctypedef struct bincp_envelope:
        double value
        double slope
    bincp_envelope bincp_corner_envelope(
        const double *u, const double *v, size_t n, double x) nogil
    bincp_envelope bincp_point_envelope(
        const double *u, const double *v, size_t n, double x) nogil


cdef extern from "numerics/normal.h":
    double bincp_normal_tail(double x) nogil
    double bincp_normal_tail_quantile(double p) nogil


def normal_quantile(double p):
    """Return Phi^-1(p) for p in (0, 1)."""
    if p <= 0.5:
        return bincp_normal_tail_quantile(p)
    return -bincp_normal_tail_quantile(1.0 - p)


def normal_probabilities(const double[::1] z, double[::1] p, double[::1] q):
    """Write Phi(z) and 1 - Phi(z)."""
    cdef Py_ssize_t i
    cdef double tail
    check_lengths(z.shape[0], p.shape[0], q.shape[0])
    for i in range(z.shape[0]):
        tail = bincp_normal_tail(-abs(z[i]))
        p[i] = tail if z[i] <= 0 else 1.0 - tail
        q[i] = tail if z[i] > 0 else 1.0 - tail


def failures(int64_t t, int64_t m, const double[::1] p, const double[::1] q, double[::1] out):
    """Write P[Bin(m, p) < t]."""
    check_lengths(p.shape[0], q.shape[0], out.shape[0])
    with nogil:
        bincp_failures(t, m, &p[0], &q[0], <size_t> p.shape[0], &out[0])


def binomial_means(
    const double[::1] w, const double[::1] p, const double[::1] q, double[::1] out
):
    """Write E[w[S]], S ~ Bin(m, p), for weights w[0], ..., w[m]."""
    check_lengths(p.shape[0], q.shape[0], out.shape[0])
    if w.shape[0] < 2:
        raise ValueError(f"there must be m + 1 weights, m >= 1, got {w.shape[0]}")
    with nogil:
        bincp_binomial_means(
            &w[0], w.shape[0] - 1, &p[0], &q[0], <size_t> p.shape[0], &out[0])


def corner_envelope(const double[::1] u, const double[::1] v, double x):
    """Return (bound, slope): no mixture of the curve between grid points exceeds the bound at x."""
    check_lengths(u.shape[0], v.shape[0], v.shape[0])
    cdef bincp_envelope result = bincp_corner_envelope(&u[0], &v[0], <size_t> u.shape[0] - 1, x)
    return result.value, result.slope


def point_envelope(const double[::1] u, const double[::1] v, double x):
    """Return (value, slope) of the mixtures of the grid points alone, the limit of finer grids."""
    check_lengths(u.shape[0], v.shape[0], v.shape[0])
    cdef bincp_envelope result = bincp_point_envelope(&u[0], &v[0], <size_t> u.shape[0] - 1, x)
    return result.value, result.slope


cdef int check_lengths(Py_ssize_t a, Py_ssize_t b, Py_ssize_t c) except -1:
    if a < 2 or a != b or a != c:
        raise ValueError(f"arrays must be of one length above 1, got {a}, {b} and {c}")
    return 0
