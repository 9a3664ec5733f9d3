"""Binomial tails and one-sided Clopper-Pearson bounds, for `cimport` (see csrc/numerics/binomial.h)."""

from libc.stdint cimport int64_t

# X ~ Bin(m, p), q = 1 - p. binom_sf is P[X >= s], s itself included; binom_cdf is P[X <= s].
cpdef double binom_pmf(int64_t s, int64_t m, double p, double q) noexcept nogil
cpdef double binom_log_pmf(int64_t s, int64_t m, double p, double q) noexcept nogil
cpdef double binom_sf(int64_t s, int64_t m, double p, double q) noexcept nogil
cpdef double binom_cdf(int64_t s, int64_t m, double p, double q) noexcept nogil

# P[Bin(m, cp_lower) >= s] <= eta and P[Bin(m, cp_upper) <= s] <= eta, 0 <= s <= m, 1 <= m < 2^31.
cpdef double cp_lower(int64_t s, int64_t m, double eta) noexcept nogil
cpdef double cp_upper(int64_t s, int64_t m, double eta) noexcept nogil

# All m + 1 bounds; `lower` or `upper` may be NULL.
cdef void cp_fill_table(int64_t m, double eta, double *lower, double *upper) noexcept nogil
