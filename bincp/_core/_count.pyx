"""Exceedance counts of arrays, by the kernels of ``count.h``, without the GIL."""

from cpython.buffer cimport PyBUF_STRIDED, PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint16_t

cdef extern from "counting/count.h" nogil:  # its ptrdiff_t is Python's Py_ssize_t
    ctypedef enum bincp_score_type:
        BINCP_FLOAT16
        BINCP_BFLOAT16
        BINCP_FLOAT32
        BINCP_FLOAT64

    ctypedef struct bincp_count_task:
        bincp_score_type type
        int n_axes
        const Py_ssize_t *shape
        Py_ssize_t n_samples
        const void *scores
        const Py_ssize_t *score_strides
        Py_ssize_t sample_stride
        const void *thresholds
        const Py_ssize_t *threshold_strides

    int bincp_count(const bincp_count_task *task, int32_t *counts, const Py_ssize_t *count_strides)
    int bincp_count_rows(
        bincp_score_type type, const void *scores, size_t n_rows, size_t n_samples,
        const void *threshold, int32_t *counts)
    int bincp_decide(
        const bincp_count_task *task, const int64_t *min_counts,
        const Py_ssize_t *min_count_strides, unsigned char *decisions,
        const Py_ssize_t *decision_strides)


cdef class _Memory:
    """The memory of an array, held while a kernel runs."""

    cdef Py_buffer view

    def __cinit__(self, array, bint writable):
        PyObject_GetBuffer(array, &self.view, PyBUF_STRIDED if writable else PyBUF_STRIDED_RO)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)  # does nothing to a view that was never filled


cdef bincp_score_type score_type(str dtype) except *:
    if dtype == "float16":
        return BINCP_FLOAT16
    if dtype == "bfloat16":
        return BINCP_BFLOAT16
    if dtype == "float32":
        return BINCP_FLOAT32
    if dtype == "float64":
        return BINCP_FLOAT64
    raise ValueError(f"`dtype` must be a score dtype, got {dtype!r}")


cdef bincp_count_task make_task(_Memory scores, _Memory thresholds, str dtype) except *:
    """Describe scores (..., m) and thresholds (...)."""
    cdef bincp_count_task task
    cdef int n_axes = scores.view.ndim - 1
    task.type = score_type(dtype)
    check_rows("thresholds", thresholds, scores, scores.view.itemsize)
    if scores.view.itemsize != item_size(task.type):
        raise ValueError(
            f"`scores` must be {dtype}, got items of {scores.view.itemsize} bytes")
    task.n_axes = n_axes
    task.shape = scores.view.shape
    task.n_samples = scores.view.shape[n_axes]
    task.scores = scores.view.buf
    task.score_strides = scores.view.strides
    task.sample_stride = scores.view.strides[n_axes]
    task.thresholds = thresholds.view.buf
    task.threshold_strides = thresholds.view.strides
    return task


cdef Py_ssize_t item_size(bincp_score_type dtype) noexcept:
    if dtype == BINCP_FLOAT64:
        return 8
    return 4 if dtype == BINCP_FLOAT32 else 2


cdef int check_rows(str name, _Memory given, _Memory scores, Py_ssize_t size) except -1:
    """Refuse memory without a place for each row: a thread may have changed a shape meanwhile."""
    cdef int n_axes = scores.view.ndim - 1, a
    cdef bint fits = given.view.ndim == n_axes and given.view.itemsize == size
    for a in range(n_axes if fits else 0):
        fits = fits and given.view.shape[a] == scores.view.shape[a]
    if not fits:
        raise ValueError(f"`{name}` must have one item of {size} bytes for each row of scores")
    return 0


def count(scores, thresholds, counts, str dtype):
    """Write the counts of ``scores`` (..., m) into int32 ``counts`` (...); return if NaN is there.

    ``thresholds`` has the shape of ``counts`` and the item type of ``scores``. Shapes and sizes of
    items are checked, the types are not.
    """
    cdef _Memory s = _Memory(scores, False)
    cdef _Memory t = _Memory(thresholds, False)
    cdef _Memory c = _Memory(counts, True)
    cdef bincp_count_task task = make_task(s, t, dtype)
    cdef int has_nan
    check_rows("counts", c, s, sizeof(int32_t))
    with nogil:
        has_nan = bincp_count(&task, <int32_t *>c.view.buf, c.view.strides)
    return has_nan != 0


def decide(scores, thresholds, min_counts, decisions, str dtype):
    """Write count >= int64 ``min_counts`` into bool ``decisions``; return whether NaN is there.

    All but ``scores`` (..., m) have the shape of the result. Shapes and sizes of items are checked,
    the types are not.
    """
    cdef _Memory s = _Memory(scores, False)
    cdef _Memory t = _Memory(thresholds, False)
    cdef _Memory k = _Memory(min_counts, False)
    cdef _Memory d = _Memory(decisions, True)
    cdef bincp_count_task task = make_task(s, t, dtype)
    cdef int has_nan
    check_rows("min_counts", k, s, sizeof(int64_t))
    check_rows("decisions", d, s, 1)
    with nogil:
        has_nan = bincp_decide(
            &task, <const int64_t *>k.view.buf, k.view.strides,
            <unsigned char *>d.view.buf, d.view.strides)
    return has_nan != 0


cdef int count_float16(
        const uint16_t *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, uint16_t threshold,
        int32_t *counts) noexcept nogil:
    return bincp_count_rows(
        BINCP_FLOAT16, scores, <size_t> n_rows, <size_t> n_samples, &threshold, counts)


cdef int count_bfloat16(
        const uint16_t *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, uint16_t threshold,
        int32_t *counts) noexcept nogil:
    return bincp_count_rows(
        BINCP_BFLOAT16, scores, <size_t> n_rows, <size_t> n_samples, &threshold, counts)


cdef int count_float32(
        const float *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, float threshold,
        int32_t *counts) noexcept nogil:
    return bincp_count_rows(
        BINCP_FLOAT32, scores, <size_t> n_rows, <size_t> n_samples, &threshold, counts)


cdef int count_float64(
        const double *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, double threshold,
        int32_t *counts) noexcept nogil:
    return bincp_count_rows(
        BINCP_FLOAT64, scores, <size_t> n_rows, <size_t> n_samples, &threshold, counts)
