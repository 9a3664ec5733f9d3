"""Sequential tests over arrays; the Python layer above checks boundaries and inputs."""

from libc.stdint cimport int32_t, int64_t


cdef extern from "rules/sequential.h" nogil:
    ctypedef struct bincp_sequential_rule:
        const int32_t *accept
        const int32_t *reject
        int32_t m

    ctypedef struct bincp_sequential_state:
        size_t n_inputs
        size_t n_labels
        int32_t *draws
        int32_t *counts
        int32_t *exits

    size_t BINCP_SEQUENTIAL_SCRATCH(int32_t m)
    void bincp_sequential_exits(
        const bincp_sequential_rule *rule, const double *p, const double *q, size_t n,
        double *scratch, double *refused, double *accepted, double *draws)
    size_t bincp_sequential_replay(
        const bincp_sequential_rule *rule, const bincp_sequential_state *state,
        const unsigned char *hits, const int64_t *inputs, size_t n_rows)
    void bincp_sequential_decide(
        const bincp_sequential_rule *rule, const unsigned char *hits, size_t n_labels,
        unsigned char *accepted)


cdef void sequential_exits(
    const int32_t *accept, const int32_t *reject, int32_t m, const double *p, const double *q,
    Py_ssize_t n, double *scratch, double *refused, double *accepted, double *draws
) noexcept nogil:
    cdef bincp_sequential_rule rule
    rule.accept, rule.reject, rule.m = accept, reject, m
    bincp_sequential_exits(&rule, p, q, <size_t> n, scratch, refused, accepted, draws)


cdef Py_ssize_t sequential_replay(
    const int32_t *accept, const int32_t *reject, int32_t m, const unsigned char *hits,
    const int64_t *inputs, Py_ssize_t n_rows, Py_ssize_t n_inputs, Py_ssize_t n_labels,
    int32_t *draws, int32_t *counts, int32_t *exits
) noexcept nogil:
    cdef bincp_sequential_rule rule
    cdef bincp_sequential_state state
    rule.accept, rule.reject, rule.m = accept, reject, m
    state.n_inputs, state.n_labels = <size_t> n_inputs, <size_t> n_labels
    state.draws, state.counts, state.exits = draws, counts, exits
    return <Py_ssize_t> bincp_sequential_replay(&rule, &state, hits, inputs, <size_t> n_rows)


cdef void sequential_decide(
    const int32_t *accept, const int32_t *reject, int32_t m, const unsigned char *hits,
    Py_ssize_t n_labels, unsigned char *accepted
) noexcept nogil:
    cdef bincp_sequential_rule rule
    rule.accept, rule.reject, rule.m = accept, reject, m
    bincp_sequential_decide(&rule, hits, <size_t> n_labels, accepted)


def scratch_size(int32_t m):
    """Return how many doubles of scratch memory `exits` needs for m draws."""
    return BINCP_SEQUENTIAL_SCRATCH(m)


def exits(
    const int32_t[::1] accept,
    const int32_t[::1] reject,
    const double[::1] p,
    const double[::1] q,
    double[::1] scratch,
    double[::1] refused,
    double[::1] accepted,
    double[::1] draws,
):
    """Write the probabilities of refusal and acceptance and the expected draws at each p[i]."""
    cdef Py_ssize_t n = p.shape[0]
    cdef int32_t m = check_boundaries(accept.shape[0], reject.shape[0])
    check_length("q", q.shape[0], n)
    check_length("refused", refused.shape[0], n)
    check_length("accepted", accepted.shape[0], n)
    check_length("draws", draws.shape[0], n)
    check_length("scratch", scratch.shape[0], <Py_ssize_t> BINCP_SEQUENTIAL_SCRATCH(m))
    if n == 0:
        return
    with nogil:
        sequential_exits(
            &accept[0], &reject[0], m, &p[0], &q[0], n, &scratch[0], &refused[0], &accepted[0],
            &draws[0])


def replay(
    const int32_t[::1] accept,
    const int32_t[::1] reject,
    const unsigned char[:, ::1] hits,
    const int64_t[::1] inputs,
    int32_t[::1] draws,
    int32_t[:, ::1] counts,
    int32_t[:, ::1] exits,
):
    """Play one draw of input inputs[r] for each row of hits, in order, and update the state.

    Raises ValueError for an input that does not exist, or that has had its m draws, after the rows
    before it have been played.
    """
    cdef Py_ssize_t n_rows = hits.shape[0], n_labels = hits.shape[1], played
    cdef int32_t m = check_boundaries(accept.shape[0], reject.shape[0])
    check_length("inputs", inputs.shape[0], n_rows)
    check_length("counts", counts.shape[0], draws.shape[0])
    check_length("exits", exits.shape[0], draws.shape[0])
    check_length("rows of counts", counts.shape[1], n_labels)
    check_length("rows of exits", exits.shape[1], n_labels)
    if n_rows == 0 or n_labels == 0:
        return
    if draws.shape[0] == 0:
        raise ValueError("`draws` must have at least one input")
    with nogil:
        played = sequential_replay(
            &accept[0], &reject[0], m, &hits[0, 0], &inputs[0], n_rows, draws.shape[0], n_labels,
            &draws[0], &counts[0, 0], &exits[0, 0])
    if played < n_rows:
        raise ValueError(
            f"`inputs` must name inputs below {draws.shape[0]} that have had fewer than {m} draws, "
            f"got {inputs[played]} in row {played}")


def decide(
    const int32_t[::1] accept,
    const int32_t[::1] reject,
    const unsigned char[:, ::1] hits,
    unsigned char[::1] accepted,
):
    """Write whether each label is accepted: its row of hits holds all m draws, in their order."""
    cdef Py_ssize_t n_labels = hits.shape[0]
    cdef int32_t m = check_boundaries(accept.shape[0], reject.shape[0])
    check_length("rows of hits", hits.shape[1], m)
    check_length("accepted", accepted.shape[0], n_labels)
    if n_labels == 0:
        return
    with nogil:
        sequential_decide(&accept[0], &reject[0], m, &hits[0, 0], n_labels, &accepted[0])


cdef int32_t check_boundaries(Py_ssize_t accept, Py_ssize_t reject) except -1:
    if accept < 2 or accept != reject:
        raise ValueError(
            f"boundaries must be of one length, at least 2, got {accept} and {reject}")
    return <int32_t> (accept - 1)


cdef int check_length(str name, Py_ssize_t length, Py_ssize_t wanted) except -1:
    if length != wanted:
        raise ValueError(f"`{name}` must have length {wanted}, got {length}")
    return 0
