"""Sequential tests over arrays; the Python layer above checks boundaries and inputs."""

from libc.stdint cimport int32_t, int64_t


cdef extern from "rules/sequential.h" nogil:
    ctypedef struct bincp_sequential_rule:
        const int32_t *accept
        const int32_t *reject
        int32_t m

    ctypedef struct bincp_sequential_rules:
        const int32_t *accept
        const int32_t *reject
        int32_t m
        size_t n_rules

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
    void bincp_sequential_undecided(
        const bincp_sequential_rule *rule, const double *p, const double *q, size_t n,
        double *scratch, double *left)
    size_t bincp_sequential_replay(
        const bincp_sequential_rules *rules, const bincp_sequential_state *state,
        const unsigned char *hits, const int64_t *inputs, size_t n_rows)
    void bincp_sequential_decide(
        const bincp_sequential_rules *rules, const unsigned char *hits, size_t n_inputs,
        size_t n_labels, unsigned char *accepted)


cdef void sequential_exits(
    const int32_t *accept, const int32_t *reject, int32_t m, const double *p, const double *q,
    Py_ssize_t n, double *scratch, double *refused, double *accepted, double *draws
) noexcept nogil:
    cdef bincp_sequential_rule rule
    rule.accept, rule.reject, rule.m = accept, reject, m
    bincp_sequential_exits(&rule, p, q, <size_t> n, scratch, refused, accepted, draws)


cdef Py_ssize_t sequential_replay(
    const int32_t *accept, const int32_t *reject, int32_t m, Py_ssize_t n_rules,
    const unsigned char *hits, const int64_t *inputs, Py_ssize_t n_rows, Py_ssize_t n_inputs,
    Py_ssize_t n_labels, int32_t *draws, int32_t *counts, int32_t *exits
) noexcept nogil:
    cdef bincp_sequential_rules rules
    cdef bincp_sequential_state state
    rules.accept, rules.reject, rules.m, rules.n_rules = accept, reject, m, <size_t> n_rules
    state.n_inputs, state.n_labels = <size_t> n_inputs, <size_t> n_labels
    state.draws, state.counts, state.exits = draws, counts, exits
    return <Py_ssize_t> bincp_sequential_replay(&rules, &state, hits, inputs, <size_t> n_rows)


cdef void sequential_decide(
    const int32_t *accept, const int32_t *reject, int32_t m, Py_ssize_t n_rules,
    const unsigned char *hits, Py_ssize_t n_inputs, Py_ssize_t n_labels, unsigned char *accepted
) noexcept nogil:
    cdef bincp_sequential_rules rules
    rules.accept, rules.reject, rules.m, rules.n_rules = accept, reject, m, <size_t> n_rules
    bincp_sequential_decide(&rules, hits, <size_t> n_inputs, <size_t> n_labels, accepted)


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


def undecided(
    const int32_t[::1] accept,
    const int32_t[::1] reject,
    const double[::1] p,
    const double[::1] q,
    double[::1] scratch,
    double[:, ::1] left,
):
    """Write the probability of no decision after l draws at p[i] to left[l, i]."""
    cdef Py_ssize_t n = p.shape[0]
    cdef bincp_sequential_rule rule
    cdef int32_t m = check_boundaries(accept.shape[0], reject.shape[0])
    check_length("q", q.shape[0], n)
    check_length("rows of left", left.shape[1], n)
    check_length("left", left.shape[0], <Py_ssize_t> m + 1)
    check_length("scratch", scratch.shape[0], <Py_ssize_t> BINCP_SEQUENTIAL_SCRATCH(m))
    if n == 0:
        return
    rule.accept, rule.reject, rule.m = &accept[0], &reject[0], m
    with nogil:
        bincp_sequential_undecided(&rule, &p[0], &q[0], <size_t> n, &scratch[0], &left[0, 0])


def replay(
    const int32_t[:, ::1] accept,
    const int32_t[:, ::1] reject,
    const unsigned char[:, ::1] hits,
    const int64_t[::1] inputs,
    int32_t[::1] draws,
    int32_t[:, ::1] counts,
    int32_t[:, ::1] exits,
):
    """Play one draw of input inputs[r] for each row of hits, in order, and update the state.

    The boundaries (m + 1, R) have a column for each label, or one for all.

    Raises ValueError for an input that does not exist, or that has had its m draws, after the rows
    before it have been played.
    """
    cdef Py_ssize_t n_rows = hits.shape[0], n_labels = hits.shape[1], n_rules = accept.shape[1]
    cdef Py_ssize_t played
    cdef int32_t m = check_boundaries(accept.shape[0], reject.shape[0])
    check_columns(n_rules, reject.shape[1], n_labels)
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
            &accept[0, 0], &reject[0, 0], m, n_rules, &hits[0, 0], &inputs[0], n_rows,
            draws.shape[0], n_labels, &draws[0], &counts[0, 0], &exits[0, 0])
    if played < n_rows:
        raise ValueError(
            f"`inputs` must name inputs below {draws.shape[0]} that have had fewer than {m} draws, "
            f"got {inputs[played]} in row {played}")


def decide(
    const int32_t[:, ::1] accept,
    const int32_t[:, ::1] reject,
    const unsigned char[:, :, ::1] hits,
    unsigned char[:, ::1] accepted,
):
    """Write whether each label of each input is accepted, from all m draws in their order.

    Hits are (n, K, m), accepted is (n, K); the boundaries are as in `replay`.
    """
    cdef Py_ssize_t n_inputs = hits.shape[0], n_labels = hits.shape[1], n_rules = accept.shape[1]
    cdef int32_t m = check_boundaries(accept.shape[0], reject.shape[0])
    check_columns(n_rules, reject.shape[1], n_labels)
    check_length("rows of hits", hits.shape[2], m)
    check_length("accepted", accepted.shape[0], n_inputs)
    check_length("rows of accepted", accepted.shape[1], n_labels)
    if n_inputs == 0 or n_labels == 0:
        return
    with nogil:
        sequential_decide(
            &accept[0, 0], &reject[0, 0], m, n_rules, &hits[0, 0, 0], n_inputs, n_labels,
            &accepted[0, 0])


cdef int32_t check_boundaries(Py_ssize_t accept, Py_ssize_t reject) except -1:
    if accept < 2 or accept != reject:
        raise ValueError(
            f"boundaries must be of one length, at least 2, got {accept} and {reject}")
    return <int32_t> (accept - 1)


cdef int check_columns(Py_ssize_t accept, Py_ssize_t reject, Py_ssize_t n_labels) except -1:
    if accept != reject or accept not in (1, n_labels):
        raise ValueError(
            f"boundaries must have one column, or one for each of {n_labels} labels, "
            f"got {accept} and {reject}")
    return 0


cdef int check_length(str name, Py_ssize_t length, Py_ssize_t wanted) except -1:
    if length != wanted:
        raise ValueError(f"`{name}` must have length {wanted}, got {length}")
    return 0
