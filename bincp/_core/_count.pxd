# Counting for Cython: `from bincp._core._count cimport count_float32`.
#
# Each function counts in n_rows adjacent rows of n_samples adjacent scores, writes
# counts[row] = #{scores of the row >= threshold}, and returns 1 if any score is NaN (the counts
# then mean nothing), else 0. n_samples is below 2^31 and the threshold is not NaN. The 16-bit
# formats are bit patterns.
from libc.stdint cimport int32_t, uint16_t

cdef int count_float16(
    const uint16_t *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, uint16_t threshold,
    int32_t *counts) noexcept nogil
cdef int count_bfloat16(
    const uint16_t *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, uint16_t threshold,
    int32_t *counts) noexcept nogil
cdef int count_float32(
    const float *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, float threshold,
    int32_t *counts) noexcept nogil
cdef int count_float64(
    const double *scores, Py_ssize_t n_rows, Py_ssize_t n_samples, double threshold,
    int32_t *counts) noexcept nogil
