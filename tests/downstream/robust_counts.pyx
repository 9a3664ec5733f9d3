from bincp._binomial cimport cp_lower
from bincp._operators cimport Operator, lower_bound


def certified_probability(Operator operator not None, long successes, long trials, double eta):
    """Worst-case probability over the ball for a count, at confidence 1 - eta."""
    cdef double p
    with nogil:
        p = lower_bound(operator.ptr, cp_lower(successes, trials, eta))
    return p
