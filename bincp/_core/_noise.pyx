"""Rows of keyed noise on NumPy memory.

Lengths are checked here, and that sources are rows of ``x``. The caller (`bincp.noise`) checks the
range of ids and draws; one out of range makes another key and breaks nothing else.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "noise/laws.h":
    enum:
        BINCP_STREAM_CALIBRATION
        BINCP_STREAM_TEST
        BINCP_STREAM_CALIBRATION_SCORE
        BINCP_STREAM_TEST_SCORE
        BINCP_STREAM_CALIBRATION_RADIUS
        BINCP_STREAM_TEST_RADIUS
        BINCP_STREAM_TUNING
        BINCP_STREAM_TUNING_SCORE
        BINCP_STREAM_TUNING_RADIUS
        BINCP_STREAM_CALIBRATION_SELECTION
        BINCP_STREAM_TEST_SELECTION
        BINCP_STREAM_TUNING_SELECTION
    ctypedef enum bincp_noise_law:
        BINCP_NOISE_GAUSSIAN
        BINCP_NOISE_UNIFORM
        BINCP_NOISE_UNIT
        BINCP_NOISE_LAPLACE
    ctypedef struct bincp_noise_key:
        uint64_t seed
        uint64_t id
        uint32_t draw
        uint32_t stream
    bincp_noise_key row_key "bincp_noise_key_of"(
        uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw
    ) noexcept nogil
    int64_t BINCP_NOISE_MAX_ID
    int64_t BINCP_NOISE_MAX_LENGTH
    uint32_t PHILOX_THIRD
    void bincp_philox4x32(
        const uint32_t *counter, const uint32_t *key, uint32_t *out
    ) noexcept nogil
    void bincp_noise_add_f32(
        bincp_noise_law law, float scale, bincp_noise_key key, size_t n, const float *x, float *out
    ) noexcept nogil
    void bincp_noise_add_f64(
        bincp_noise_law law, float scale, bincp_noise_key key, size_t n, const double *x,
        double *out
    ) noexcept nogil
    void bincp_noise_unit_f64(bincp_noise_key key, size_t n, double *out) noexcept nogil
    void bincp_noise_words(
        bincp_noise_key key, size_t first, size_t n, uint64_t *out
    ) noexcept nogil
    void bincp_noise_keep(
        bincp_noise_key key, size_t keep, size_t n, uint8_t *kept
    ) noexcept nogil
    void bincp_noise_flip_f32(
        double p_plus, double p_minus, bincp_noise_key key, size_t n, const float *x, float *out
    ) noexcept nogil
    void bincp_noise_flip_f64(
        double p_plus, double p_minus, bincp_noise_key key, size_t n, const double *x, double *out
    ) noexcept nogil
    void bincp_noise_categorical_f32(
        uint32_t k, double p_plus, double p_minus, bincp_noise_key key, size_t n, const float *x,
        float *out
    ) noexcept nogil
    void bincp_noise_categorical_f64(
        uint32_t k, double p_plus, double p_minus, bincp_noise_key key, size_t n, const double *x,
        double *out
    ) noexcept nogil

cdef extern from "noise/grid.h":
    ctypedef struct bincp_grid_table:
        const uint32_t *entry
        const uint32_t *low
        uint32_t bits
        int32_t half
    void bincp_noise_grid_f32(
        bincp_grid_table table, int32_t grid, bincp_noise_key key, size_t n, const int32_t *k,
        float *out
    ) noexcept nogil
    void bincp_noise_grid_f64(
        bincp_grid_table table, int32_t grid, bincp_noise_key key, size_t n, const int32_t *k,
        double *out
    ) noexcept nogil
    void bincp_noise_off_grid_f32(
        bincp_grid_table table, int32_t grid, double s, bincp_noise_key key, size_t n,
        const float *x, float *out
    ) noexcept nogil
    void bincp_noise_off_grid_f64(
        bincp_grid_table table, int32_t grid, double s, bincp_noise_key key, size_t n,
        const double *x, double *out
    ) noexcept nogil

cdef extern from "noise/splitting.h":
    ctypedef struct bincp_split_grid:
        int32_t levels
        int32_t grid
    void bincp_split_f32(
        double length, bincp_noise_key key, size_t n, const float *x, float *out
    ) noexcept nogil
    void bincp_split_f64(
        double length, bincp_noise_key key, size_t n, const double *x, double *out
    ) noexcept nogil
    void bincp_split_copy_f32(
        bincp_split_grid split, int32_t number, size_t n, const int32_t *starts,
        const int32_t *slack, float *out
    ) noexcept nogil
    void bincp_split_copy_f64(
        bincp_split_grid split, int32_t number, size_t n, const int32_t *starts,
        const int32_t *slack, double *out
    ) noexcept nogil

cdef extern from "numerics/read_once.h":
    int64_t read_int64(const int64_t *place) noexcept nogil

ctypedef fused real:
    float
    double

MAX_ID = BINCP_NOISE_MAX_ID
MAX_LENGTH = BINCP_NOISE_MAX_LENGTH
THIRD = PHILOX_THIRD
CALIBRATION = BINCP_STREAM_CALIBRATION
TEST = BINCP_STREAM_TEST
CALIBRATION_SCORE = BINCP_STREAM_CALIBRATION_SCORE
TEST_SCORE = BINCP_STREAM_TEST_SCORE
CALIBRATION_RADIUS = BINCP_STREAM_CALIBRATION_RADIUS
TEST_RADIUS = BINCP_STREAM_TEST_RADIUS
TUNING = BINCP_STREAM_TUNING
TUNING_SCORE = BINCP_STREAM_TUNING_SCORE
TUNING_RADIUS = BINCP_STREAM_TUNING_RADIUS
CALIBRATION_SELECTION = BINCP_STREAM_CALIBRATION_SELECTION
TEST_SELECTION = BINCP_STREAM_TEST_SELECTION
TUNING_SELECTION = BINCP_STREAM_TUNING_SELECTION
GAUSSIAN = <int>BINCP_NOISE_GAUSSIAN
UNIFORM = <int>BINCP_NOISE_UNIFORM
UNIT = <int>BINCP_NOISE_UNIT
LAPLACE = <int>BINCP_NOISE_LAPLACE


cdef void gaussian_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    float sigma, size_t n, const float *x, float *out,
) noexcept nogil:
    bincp_noise_add_f32(BINCP_NOISE_GAUSSIAN, sigma, row_key(seed, stream, id, draw), n, x, out)


cdef void uniform_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    float half_width, size_t n, const float *x, float *out,
) noexcept nogil:
    bincp_noise_add_f32(BINCP_NOISE_UNIFORM, half_width, row_key(seed, stream, id, draw), n, x, out)


cdef void laplace_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    float scale, size_t n, const float *x, float *out,
) noexcept nogil:
    bincp_noise_add_f32(BINCP_NOISE_LAPLACE, scale, row_key(seed, stream, id, draw), n, x, out)


cdef void flip_row(
    uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
    double p_plus, double p_minus, size_t n, const float *x, float *out,
) noexcept nogil:
    bincp_noise_flip_f32(p_plus, p_minus, row_key(seed, stream, id, draw), n, x, out)


def philox4x32(counter, key):
    """Return the four words of one block of Philox4x32-10."""
    cdef uint32_t[4] c = counter
    cdef uint32_t[2] k = key
    cdef uint32_t[4] out
    bincp_philox4x32(c, k, out)
    return out[0], out[1], out[2], out[3]


cdef enum kind:
    ADD
    ROUND
    FLIP
    CHANGE
    SPLIT


cdef struct action:
    kind what
    bincp_noise_law law         # ADD
    float scale
    double p_plus               # FLIP, CHANGE
    double p_minus
    uint32_t k                  # CHANGE
    double length               # SPLIT
    bincp_grid_table table      # ROUND
    int32_t grid
    double s


cdef inline void act(
    const action *how, bincp_noise_key key, size_t n, const real *x, real *out
) noexcept nogil:
    if real is float:
        if how.what == ADD:
            bincp_noise_add_f32(how.law, how.scale, key, n, x, out)
        elif how.what == ROUND:
            bincp_noise_off_grid_f32(how.table, how.grid, how.s, key, n, x, out)
        elif how.what == FLIP:
            bincp_noise_flip_f32(how.p_plus, how.p_minus, key, n, x, out)
        elif how.what == CHANGE:
            bincp_noise_categorical_f32(how.k, how.p_plus, how.p_minus, key, n, x, out)
        else:
            bincp_split_f32(how.length, key, n, x, out)
    else:
        if how.what == ADD:
            bincp_noise_add_f64(how.law, how.scale, key, n, x, out)
        elif how.what == ROUND:
            bincp_noise_off_grid_f64(how.table, how.grid, how.s, key, n, x, out)
        elif how.what == FLIP:
            bincp_noise_flip_f64(how.p_plus, how.p_minus, key, n, x, out)
        elif how.what == CHANGE:
            bincp_noise_categorical_f64(how.k, how.p_plus, how.p_minus, key, n, x, out)
        else:
            bincp_split_f64(how.length, key, n, x, out)


cdef int check_keys(Py_ssize_t ids, Py_ssize_t draws, Py_ssize_t rows) except -1:
    if ids != rows or draws != rows:
        raise ValueError(f"`ids` and `draws` must have {rows} elements, got {ids} and {draws}")
    return 0


cdef int check_sources(Py_ssize_t sources, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t wanted) except -1:
    if sources != rows or n != wanted:
        raise ValueError(
            f"`sources` must have {rows} elements and `x` rows of {wanted}, got {sources} and {n}")
    return 0


cdef int refuse_source(Py_ssize_t source, Py_ssize_t n) except -1:
    raise ValueError(f"`sources` must be rows of `x`, below {n}, got {source}")


cdef int act_on_rows(
    const action *how, uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, const int64_t[::1] sources,
    const real[:, ::1] x, real[:, ::1] out,
) except -1:
    cdef Py_ssize_t r, source = 0
    cdef size_t n = <size_t>out.shape[1]
    cdef bincp_noise_key key
    check_keys(ids.shape[0], draws.shape[0], out.shape[0])
    check_sources(sources.shape[0], out.shape[0], x.shape[1], out.shape[1])
    if n == 0:
        return 0
    with nogil:
        for r in range(out.shape[0]):
            key = row_key(seed, stream, <uint64_t>ids[r], <uint32_t>draws[r])
            source = read_int64(&sources[r])
            if source < 0 or source >= x.shape[0]:
                break
            act(how, key, n, &x[source, 0], &out[r, 0])
    if source < 0 or source >= x.shape[0]:
        refuse_source(source, x.shape[0])
    return 0


def add_noise(
    int law, float scale, uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, const int64_t[::1] sources,
    const real[:, ::1] x, real[:, ::1] out,
):
    """Write ``x[sources[r]]`` plus the noise of (ids[r], draws[r]) to each row r of ``out``."""
    cdef action how
    how.what = ADD
    how.law = <bincp_noise_law>law
    how.scale = scale
    act_on_rows(&how, seed, stream, ids, draws, sources, x, out)


cdef int fill_table(
    bincp_grid_table *table, const uint32_t[::1] entry, const uint32_t[:, ::1] low, int32_t half,
) except -1:
    """Check the table of a law on the grid, whose columns the kernel takes on trust."""
    cdef Py_ssize_t size = entry.shape[0]
    if size < 2 or size > 65536 or size & (size - 1) or low.shape[0] != size or low.shape[1] != 3:
        raise ValueError(
            "`entry` must have 2, 4, ... or 65536 elements and `low` rows of 3 for each, "
            f"got {size} and {low.shape[0]} rows of {low.shape[1]}")
    table.entry, table.low, table.half, table.bits = &entry[0], &low[0, 0], half, 0
    while (<Py_ssize_t> 1) << table.bits < size:
        table.bits += 1
    return 0


def add_grid_noise(
    const uint32_t[::1] entry, const uint32_t[:, ::1] low, int32_t half, int32_t grid,
    uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, const int64_t[::1] sources,
    const int32_t[:, ::1] k, real[:, ::1] out,
):
    """Write ``(k[sources[r]] + noise) / grid`` of (ids[r], draws[r]) to each row r of ``out``."""
    cdef bincp_grid_table table
    cdef bincp_noise_key key
    cdef Py_ssize_t r, source = 0
    cdef size_t n = <size_t>out.shape[1]
    fill_table(&table, entry, low, half)
    check_keys(ids.shape[0], draws.shape[0], out.shape[0])
    check_sources(sources.shape[0], out.shape[0], k.shape[1], out.shape[1])
    if n == 0:
        return
    with nogil:
        for r in range(out.shape[0]):
            key = row_key(seed, stream, <uint64_t>ids[r], <uint32_t>draws[r])
            source = read_int64(&sources[r])
            if source < 0 or source >= k.shape[0]:
                break
            if real is float:
                bincp_noise_grid_f32(table, grid, key, n, &k[source, 0], &out[r, 0])
            else:
                bincp_noise_grid_f64(table, grid, key, n, &k[source, 0], &out[r, 0])
    if source < 0 or source >= k.shape[0]:
        refuse_source(source, k.shape[0])


def add_off_grid_noise(
    const uint32_t[::1] entry, const uint32_t[:, ::1] low, int32_t half, int32_t grid, double s,
    uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, const int64_t[::1] sources,
    const real[:, ::1] x, real[:, ::1] out,
):
    """Write ``rint(grid (x[sources[r]] + noise)) / grid`` to each row r of ``out``.

    The noise of (ids[r], draws[r]) is Gaussian, with the standard deviation ``s / grid``.
    """
    cdef action how
    how.what = ROUND
    fill_table(&how.table, entry, low, half)
    how.grid = grid
    how.s = s
    act_on_rows(&how, seed, stream, ids, draws, sources, x, out)


def flip(
    double p_plus, double p_minus, uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, const int64_t[::1] sources,
    const real[:, ::1] x, real[:, ::1] out,
):
    """Write ``x[sources[r]]`` with the flips of (ids[r], draws[r]) to each row r of ``out``."""
    cdef action how
    how.what = FLIP
    how.p_plus = p_plus
    how.p_minus = p_minus
    act_on_rows(&how, seed, stream, ids, draws, sources, x, out)


def unit_numbers(
    uint64_t seed, uint32_t stream, const int64_t[::1] ids, const int64_t[::1] draws,
    float[::1] out,
):
    """Write one number, uniform on (0, 1], to ``out[r]`` for each (ids[r], draws[r])."""
    cdef Py_ssize_t r
    check_keys(ids.shape[0], draws.shape[0], out.shape[0])
    with nogil:
        for r in range(out.shape[0]):
            bincp_noise_add_f32(
                BINCP_NOISE_UNIT, 1, row_key(seed, stream, <uint64_t>ids[r], <uint32_t>draws[r]),
                1, NULL, &out[r],
            )


def words(
    uint64_t seed, uint32_t stream, const int64_t[::1] ids, const int64_t[::1] draws,
    uint64_t[:, ::1] out,
):
    """Write random numbers of 64 bits to row r of ``out`` for each (ids[r], draws[r])."""
    cdef Py_ssize_t r
    cdef size_t n = <size_t>out.shape[1]
    check_keys(ids.shape[0], draws.shape[0], out.shape[0])
    if n == 0:
        return
    with nogil:
        for r in range(out.shape[0]):
            bincp_noise_words(
                row_key(seed, stream, <uint64_t>ids[r], <uint32_t>draws[r]), 0, n, &out[r, 0]
            )


def keep(
    int64_t number, uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, uint8_t[:, ::1] kept,
):
    """Write ones for ``number`` random places, zeros else, to row r of ``kept``."""
    cdef Py_ssize_t r
    cdef size_t n = <size_t>kept.shape[1]
    check_keys(ids.shape[0], draws.shape[0], kept.shape[0])
    if n == 0:
        return
    with nogil:
        for r in range(kept.shape[0]):
            bincp_noise_keep(
                row_key(seed, stream, <uint64_t>ids[r], <uint32_t>draws[r]),
                <size_t>number, n, &kept[r, 0],
            )


def split(
    double length, uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, const int64_t[::1] sources,
    const real[:, ::1] x, real[:, ::1] out,
):
    """Write ``x[sources[r]]`` under continuous splitting noise to each row r of ``out``."""
    cdef action how
    how.what = SPLIT
    how.length = length
    act_on_rows(&how, seed, stream, ids, draws, sources, x, out)


def split_copies(
    int32_t levels, int32_t grid, const int64_t[::1] numbers, const int64_t[::1] sources,
    const int32_t[:, ::1] starts, const int32_t[:, ::1] slack, real[:, ::1] out,
):
    """Write copy numbers[r] of derandomised splitting noise to each row r of ``out``.

    Rows sources[r] of ``starts`` and ``slack`` tell where the coordinates lie, see splitting.h.
    """
    cdef Py_ssize_t r, source = 0
    cdef size_t n = <size_t>out.shape[1]
    cdef bincp_split_grid split = bincp_split_grid(levels, grid)
    cdef int32_t number
    check_keys(numbers.shape[0], sources.shape[0], out.shape[0])
    check_sources(sources.shape[0], out.shape[0], starts.shape[1], out.shape[1])
    check_sources(sources.shape[0], out.shape[0], slack.shape[1], out.shape[1])
    if starts.shape[0] != slack.shape[0]:
        raise ValueError("`starts` and `slack` must have equal lengths")
    if n == 0:
        return
    with nogil:
        for r in range(out.shape[0]):
            source, number = read_int64(&sources[r]), <int32_t>numbers[r]
            if source < 0 or source >= starts.shape[0]:
                break
            if real is float:
                bincp_split_copy_f32(
                    split, number, n, &starts[source, 0], &slack[source, 0], &out[r, 0])
            else:
                bincp_split_copy_f64(
                    split, number, n, &starts[source, 0], &slack[source, 0], &out[r, 0])
    if source < 0 or source >= starts.shape[0]:
        refuse_source(source, starts.shape[0])


def change_categories(
    uint32_t k, double p_plus, double p_minus, uint64_t seed, uint32_t stream,
    const int64_t[::1] ids, const int64_t[::1] draws, const int64_t[::1] sources,
    const real[:, ::1] x, real[:, ::1] out,
):
    """Write ``x[sources[r]]`` with the changes of (ids[r], draws[r]) to each row r of ``out``."""
    cdef action how
    how.what = CHANGE
    how.k = k
    how.p_plus = p_plus
    how.p_minus = p_minus
    act_on_rows(&how, seed, stream, ids, draws, sources, x, out)


def wide_unit_numbers(
    uint64_t seed, uint32_t stream, const int64_t[::1] ids, const int64_t[::1] draws,
    double[:, ::1] out,
):
    """Write numbers, uniform on the odd multiples of 2**-53 in (0, 1), to each row of ``out``."""
    cdef Py_ssize_t r
    cdef size_t n = <size_t>out.shape[1]
    check_keys(ids.shape[0], draws.shape[0], out.shape[0])
    if n == 0:
        return
    with nogil:
        for r in range(out.shape[0]):
            bincp_noise_unit_f64(
                row_key(seed, stream, <uint64_t>ids[r], <uint32_t>draws[r]), n, &out[r, 0]
            )
