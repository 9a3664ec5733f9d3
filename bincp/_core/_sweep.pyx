"""Scores and sets of real labels, by ``interval_scores.h`` and ``sweep.h``, without the GIL."""

from libc.stdint cimport int64_t


cdef extern from "regression/interval_scores.h" nogil:
    void bincp_interval_scores(
        const double *low, const double *high, const double *scale, const double *y,
        size_t n_rows, size_t m, double *scores)
    void bincp_interval_ends(
        const double *low, const double *high, const double *scale, double tau, size_t n,
        double *left, double *right)


cdef extern from "regression/sweep.h" nogil:
    int bincp_mark_empty(double *left, double *right, size_t n)
    size_t bincp_sweep(
        const double *left, const double *right, size_t n_rows, size_t m, size_t k,
        double *starts, double *stops, int64_t *offsets)


def scores(
    const double[:, ::1] low,
    const double[:, ::1] high,
    const double[:, ::1] scale,
    const double[::1] y,
    double[:, ::1] out,
):
    """Write the scores (n, m) of the labels y (n,), rounded down; `scale` may be None for 1."""
    cdef Py_ssize_t n = low.shape[0], m = low.shape[1]
    cdef const double *unit = NULL
    _check_shape("high", high.shape[0], high.shape[1], n, m)
    _check_shape("out", out.shape[0], out.shape[1], n, m)
    _check_length("y", y.shape[0], n)
    if n == 0 or m == 0:
        return
    if scale is not None:
        _check_shape("scale", scale.shape[0], scale.shape[1], n, m)
        unit = &scale[0, 0]
    with nogil:
        bincp_interval_scores(
            &low[0, 0], &high[0, 0], unit, &y[0], <size_t> n, <size_t> m, &out[0, 0])


def ends(
    const double[:, ::1] low,
    const double[:, ::1] high,
    const double[:, ::1] scale,
    double tau,
    double[:, ::1] left,
    double[:, ::1] right,
):
    """Write the ends of the doubles whose score reaches tau > -inf; `scale` may be None for 1."""
    cdef Py_ssize_t n = low.shape[0], m = low.shape[1]
    cdef const double *unit = NULL
    _check_shape("high", high.shape[0], high.shape[1], n, m)
    _check_shape("left", left.shape[0], left.shape[1], n, m)
    _check_shape("right", right.shape[0], right.shape[1], n, m)
    if n == 0 or m == 0:
        return
    if scale is not None:
        _check_shape("scale", scale.shape[0], scale.shape[1], n, m)
        unit = &scale[0, 0]
    with nogil:
        bincp_interval_ends(
            &low[0, 0], &high[0, 0], unit, tau, <size_t> (n * m), &left[0, 0], &right[0, 0])


def mark_empty(double[::1] left, double[::1] right):
    """Make both ends of empty intervals infinite, so that they sort last; return if NaN is there."""
    cdef Py_ssize_t n = left.shape[0]
    cdef int has_nan
    _check_length("right", right.shape[0], n)
    if n == 0:
        return False
    with nogil:
        has_nan = bincp_mark_empty(&left[0], &right[0], <size_t> n)
    return has_nan != 0


def sweep(
    const double[:, ::1] left,
    const double[:, ::1] right,
    Py_ssize_t k,
    double[::1] starts,
    double[::1] stops,
    int64_t[::1] offsets,
):
    """Write where k of the m intervals of each row overlap, from sorted ends; return the pieces.

    `starts` and `stops` have room for n (m - k + 1) pieces.
    """
    cdef Py_ssize_t n = left.shape[0], m = left.shape[1]
    cdef size_t n_pieces
    if not 1 <= k <= m:
        raise ValueError(f"`k` must be in [1, {m}], got {k}")
    _check_shape("right", right.shape[0], right.shape[1], n, m)
    _check_length("starts", starts.shape[0], n * (m - k + 1))
    _check_length("stops", stops.shape[0], n * (m - k + 1))
    _check_length("offsets", offsets.shape[0], n + 1)
    if n == 0:
        offsets[0] = 0
        return 0
    with nogil:
        n_pieces = bincp_sweep(
            &left[0, 0], &right[0, 0], <size_t> n, <size_t> m, <size_t> k, &starts[0], &stops[0],
            &offsets[0])
    return n_pieces


cdef int _check_shape(
    str name, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t n, Py_ssize_t m
) except -1:
    if rows != n or columns != m:
        raise ValueError(f"`{name}` must have shape {(n, m)}, got {(rows, columns)}")
    return 0


cdef int _check_length(str name, Py_ssize_t got, Py_ssize_t wanted) except -1:
    if got != wanted:
        raise ValueError(f"`{name}` must have length {wanted}, got {got}")
    return 0
