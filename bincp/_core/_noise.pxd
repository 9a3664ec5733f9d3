"""Keyed noise for Cython code: one row a call, from any thread, without the GIL.

A row is keyed by (seed, stream, id, draw): ``seed`` any 64 bits, ``stream`` 0 for calibration, 1
for test and 6 for tuning noise, ``id`` in [0, 2**56), ``draw`` in [0, 2**32). It has ``n`` < 2**34
elements; a NULL ``x`` stands for zeros, and ``x`` may be ``out``. Uniform noise is on the closed
interval [-half_width, half_width].
"""

from libc.stdint cimport uint32_t, uint64_t

cdef void gaussian_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    float sigma, size_t n, const float *x, float *out,
) noexcept nogil

cdef void uniform_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    float half_width, size_t n, const float *x, float *out,
) noexcept nogil

cdef void laplace_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    float scale, size_t n, const float *x, float *out,
) noexcept nogil

cdef void flip_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    double p_plus, double p_minus, size_t n, const float *x, float *out,
) noexcept nogil
