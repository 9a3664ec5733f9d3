"""Sequential tests for `cimport` (see csrc/rules/sequential.h)."""

from libc.stdint cimport int32_t, int64_t

# Boundaries have m + 1 entries, p, q = 1 - p and the three results n, the scratch 4 (m + 1).
cdef void sequential_exits(
    const int32_t *accept, const int32_t *reject, int32_t m, const double *p, const double *q,
    Py_ssize_t n, double *scratch, double *refused, double *accepted, double *draws) noexcept nogil

# Row r of hits is the next draw of input inputs[r]; draws has an entry for each of n_inputs inputs,
# counts and exits (-1 while undecided) have n_labels for each. Returns how many rows were played: all,
# or those before the first whose input does not exist or has had its m draws.
cdef Py_ssize_t sequential_replay(
    const int32_t *accept, const int32_t *reject, int32_t m, const unsigned char *hits,
    const int64_t *inputs, Py_ssize_t n_rows, Py_ssize_t n_inputs, Py_ssize_t n_labels,
    int32_t *draws, int32_t *counts, int32_t *exits) noexcept nogil

# Label y has all its m draws in the bytes of hits from y m on, in their order; accepted[y] is 0 or 1.
cdef void sequential_decide(
    const int32_t *accept, const int32_t *reject, int32_t m, const unsigned char *hits,
    Py_ssize_t n_labels, unsigned char *accepted) noexcept nogil
