"""Counting against NumPy's comparison and sum, in every dtype and layout.

NumPy compares float16, float32 and float64 itself. bfloat16, which it lacks, is widened to float32,
where every bfloat16 value is exact; torch, which has it, says how a threshold is rounded to it.
"""

import math
import platform
import shutil
import subprocess
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bincp import counting
from bincp._core import _count
from bincp.counting import count_exceedances, decide, kth_largest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
DTYPES = ["float16", "bfloat16", "float32", "float64"]
NUMPY_DTYPES = ["float16", "float32", "float64"]

# Ties, both zeros, the smallest subnormals, the largest finite values and both infinities.
SPECIAL = [0.0, -0.0, 0.5, -0.5, 0.7, 0.7000001, 1.0, -1.0, np.inf, -np.inf]
EDGES = {
    "float16": [6e-8, -6e-8, 65504.0, -65504.0],
    "bfloat16": [9.2e-41, -9.2e-41, 3.3e38, -3.3e38],
    "float32": [1e-45, -1e-45, 3.4e38, -3.4e38],
    "float64": [5e-324, -5e-324, 1.7e308, -1.7e308],
}
# The least and the greatest NaN of each sign, as bits.
NAN_BITS = {
    "float16": [0x7C01, 0x7FFF, 0xFC01, 0xFFFF],
    "bfloat16": [0x7F81, 0x7FFF, 0xFF81, 0xFFFF],
    "float32": [0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF],
    "float64": [0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF, 0xFFF0000000000001, 0xFFFFFFFFFFFFFFFF],
}


class Scores:
    """The same scores as the library gets them (``given``) and as NumPy can compare them."""

    def __init__(self, values, dtype):
        self.dtype = dtype
        if dtype == "bfloat16":
            # torch's cast of float32 gives the bits; they are then held as uint16, like any array.
            tensor = torch.from_numpy(np.array(values, np.float32, ndmin=1)).to(torch.bfloat16)
            self.bits = tensor.view(torch.int16).numpy().view(np.uint16).reshape(np.shape(values))
        else:
            self.bits = np.array(values, dtype)

    def map(self, change):
        """Return a view (or whatever ``change`` makes of an array)."""
        other = object.__new__(Scores)
        other.dtype, other.bits = self.dtype, change(self.bits)
        return other

    @property
    def values(self):
        if self.dtype == "bfloat16":
            return (self.bits.astype(np.uint32) << 16).view(np.float32)
        return self.bits

    @property
    def given(self):
        if self.dtype == "bfloat16":
            return bfloat16_tensor(self.bits)
        return self.bits


def bfloat16_tensor(bits):
    """Return a tensor on the memory of ``bits``, or on a copy where torch has no such strides."""
    if any(stride < 0 for stride in bits.strides) or not bits.flags.writeable:
        bits = bits.copy()
    return torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16)


def rounded(threshold, dtype):
    """Return thresholds rounded to a dtype by NumPy or torch."""
    if dtype == "bfloat16":
        tensor = torch.from_numpy(np.array(threshold, np.float64))
        return tensor.to(torch.bfloat16).to(torch.float32).numpy()
    with np.errstate(over="ignore"):
        return np.asarray(threshold).astype(dtype)


def expected_counts(scores, threshold, axis=-1):
    values = np.moveaxis(scores.values, axis, -1)
    t = rounded(threshold, scores.dtype)
    return (values >= t[..., np.newaxis]).sum(-1).astype(np.int32)


def random_scores(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    pool = np.array(SPECIAL + EDGES[dtype])
    values = np.where(rng.random(shape) < 0.5, rng.choice(pool, shape), rng.normal(size=shape))
    return Scores(values, dtype)


def assert_same(got, wanted):
    assert isinstance(got, np.ndarray)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


# --- parity -------------------------------------------------------------------------------------


@st.composite
def layouts(draw):
    """Scores of up to 4 axes seen through steps, turns, transposition and broadcasting."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 9) | st.sampled_from([16, 33]), min_size=1, max_size=4))
    scores = random_scores(tuple(shape), dtype, draw(st.integers(0, 2**32 - 1)))
    steps = draw(st.tuples(*[st.sampled_from([1, 1, 2, -1, -3]) for _ in shape]))
    scores = scores.map(lambda bits: bits[tuple(slice(None, None, step) for step in steps)])
    scores = scores.map(lambda bits: bits.transpose(draw(st.permutations(range(len(shape))))))
    if draw(st.booleans()):
        repeated = (draw(st.integers(1, 5)), *scores.bits.shape)
        scores = scores.map(lambda bits: np.broadcast_to(bits, repeated))
        scores = scores.map(lambda bits: np.moveaxis(bits, 0, draw(st.integers(0, bits.ndim - 1))))
    axis = draw(st.integers(-scores.bits.ndim, scores.bits.ndim - 1))
    result = np.moveaxis(scores.bits, axis, -1).shape[:-1]
    # Any axis of the thresholds may be 1, and any number of leading axes missing.
    missing = draw(st.integers(0, len(result)))
    sizes = [draw(st.sampled_from([1, n])) for n in result[missing:]]
    pool = st.sampled_from(SPECIAL + EDGES[dtype])
    flat = [draw(pool) for _ in range(min(4, int(np.prod(sizes))))]
    return scores, axis, np.resize(np.array(flat, np.float64), sizes)


@given(layouts(), st.integers(1, 3))
@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
def test_equals_numpy_in_any_layout(layout, n_threads):
    scores, axis, threshold = layout
    wanted = expected_counts(scores, threshold, axis)
    counts = count_exceedances(scores.given, threshold, axis=axis, n_threads=n_threads)
    assert_same(counts, wanted)
    m = scores.bits.shape[axis]
    least = (np.arange(wanted.size).reshape(wanted.shape) * 7) % (m + 2)
    assert_same(decide(scores.given, threshold, least, axis=axis), wanted >= least)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_every_row_length_and_misaligned_start(dtype, offset):
    memory = random_scores(300 * 23 + offset, dtype).bits[offset:]
    for m in range(301):
        last = Scores([], dtype).map(lambda _, m=m: memory[: 23 * m].reshape(23, m))
        middle = Scores([], dtype).map(lambda _, m=m: memory[: 22 * m].reshape(2, m, 11))
        for threshold in (0.5, 0.0, -0.0, -0.5):
            assert_same(count_exceedances(last.given, threshold), expected_counts(last, threshold))
        each = np.linspace(-1, 1, 11)
        assert_same(
            count_exceedances(middle.given, each, axis=1), expected_counts(middle, each, axis=1)
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 2, 31, 64, 65, 127, 128, 129, 1000, 1025, 2047, 2048, 2049, 5001])
def test_every_width_of_columns(dtype, k):
    scores = random_scores((2, 37, k), dtype)
    wide = scores.map(lambda bits: bits[:, :, : k // 2 + 1])
    for case in (scores, wide):
        for threshold in (0.5, np.linspace(-1, 1, case.bits.shape[-1])):
            assert_same(
                count_exceedances(case.given, threshold, axis=1),
                expected_counts(case, threshold, axis=1),
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 70_001), (70_001, 3), (1, 70_001), (70_001, 1)])
@pytest.mark.parametrize("step", [1, 2])
def test_counts_beyond_16_bits(dtype, shape, step):
    axis = int(np.argmax(shape))
    scores = Scores(np.zeros((shape[0] * step, shape[1] * step)), dtype)
    scores = scores.map(lambda bits: bits[::step, ::step])
    assert (count_exceedances(scores.given, 0.0, axis=axis) == 70_001).all()
    assert (count_exceedances(scores.given, -1.0, axis=axis) == 70_001).all()
    assert (count_exceedances(scores.given, 1.0, axis=axis) == 0).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_pair_of_16_bit_patterns_compares_like_its_values(dtype):
    bits = np.arange(2**16, dtype=np.uint16)
    scores = Scores([], dtype).map(lambda _: bits if dtype == "bfloat16" else bits.view(np.float16))
    scores = scores.map(lambda b: b[~np.isnan(scores.values)])
    some = scores.values[:: 2**16 // 331]
    for t in np.concatenate([some, [0.0, -0.0, np.inf, -np.inf]]):
        # One score to a row shows each comparison on its own.
        got = count_exceedances(scores.map(lambda b: b[:, np.newaxis]).given, t)
        assert_same(got, (scores.values >= t).astype(np.int32))
        assert count_exceedances(scores.given, t) == (scores.values >= t).sum()


# --- thresholds ---------------------------------------------------------------------------------


def test_f016_threshold_is_rounded_to_the_dtype_of_the_scores():
    scores = np.array([0.3, 0.7, 0.7, 0.9], np.float32)
    assert count_exceedances(scores, 0.7) == 3
    assert count_exceedances(scores, np.float64(0.7)) == 3
    assert count_exceedances(scores, np.array(0.7)) == 3
    assert count_exceedances(scores.astype(np.float64), 0.7) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@given(value=st.floats(allow_nan=False), direction=st.sampled_from([-1, 0, 1]))
@settings(deadline=None, max_examples=150)
def test_a_score_reaches_a_threshold_that_rounds_to_it(dtype, value, direction):
    score = rounded([value], dtype)
    nudged = math.nextafter(value, direction * math.inf) if direction else value
    wanted = score >= rounded([nudged], dtype)
    assert count_exceedances(Scores(score, dtype).given, nudged) == wanted.sum()


@pytest.mark.parametrize(
    ("dtype", "threshold"), [("float16", 1e5), ("bfloat16", 1e39), ("float32", 1e39)]
)
def test_threshold_beyond_the_range_is_reached_by_infinity_only(dtype, threshold):
    scores = Scores([np.inf, max(EDGES[dtype]), -np.inf], dtype)
    assert count_exceedances(scores.given, threshold) == 1
    assert count_exceedances(scores.given, -threshold) == 3


@pytest.mark.parametrize("threshold", [1, np.int8(1), np.float16(1), np.longdouble(1), [1], True])
def test_kinds_of_threshold(threshold):
    scores = np.array([[0.0, 1.0, 2.0]])
    if threshold is True:
        with pytest.raises(TypeError, match="`threshold` must be real numbers"):
            count_exceedances(scores, threshold)
    else:
        assert count_exceedances(scores, threshold) == [2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_threshold_may_be_a_tensor(dtype):
    threshold = torch.tensor([0.5, 0.25], dtype=getattr(torch, dtype))
    assert_same(count_exceedances([[0.5, 0.4], [0.3, 0.2]], threshold), np.array([1, 1], np.int32))


@pytest.mark.parametrize("where", [(), (0,), (2,)])
def test_nan_threshold(where):
    threshold = np.full(3 if where else (), 0.5)
    threshold[where] = np.nan
    place = rf"at index \({where[0]},\)" if where else "as the scalar"
    with pytest.raises(ValueError, match=f"`threshold` must not be NaN, got NaN {place}"):
        count_exceedances(np.zeros((3, 4)), threshold)


@pytest.mark.parametrize("shape", [(2,), (4, 1), (1, 3), (3, 4)])
def test_threshold_shape(shape):
    with pytest.raises(ValueError, match=r"`threshold` must be a scalar or broadcast .*\(3,\)"):
        count_exceedances(np.zeros((3, 4)), np.zeros(shape))


# --- NaN scores ---------------------------------------------------------------------------------


def with_nan(scores, index, pattern=0):
    scores = scores.map(np.copy)
    unsigned = scores.bits.view(f"u{scores.bits.itemsize}")
    unsigned[index] = NAN_BITS[scores.dtype][pattern]
    return scores


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_the_first_nan_is_found_wherever_it_is(dtype, axis, data):
    shape = data.draw(st.tuples(*[st.integers(1, 6) | st.sampled_from([17, 40])] * 3))
    index = st.tuples(*[st.integers(0, n - 1) for n in shape])
    places = data.draw(st.lists(index, min_size=1, max_size=3))
    scores = random_scores(shape, dtype)
    for place in places:
        scores = with_nan(scores, place, data.draw(st.integers(0, 3)))
    first = ", ".join(map(str, min(places)))
    message = rf"^`scores` must not contain NaN, got NaN at index \({first}\)$"
    with pytest.raises(ValueError, match=message):
        count_exceedances(scores.given, 0.5, axis=axis)
    with pytest.raises(ValueError, match=message):
        decide(scores.given, 0.5, 1, axis=axis)
    with pytest.raises(ValueError, match=message):
        kth_largest(scores.given, 1, axis=axis)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 7, 16, 20, 31, 32, 33, 64, 130, 255, 256, 300, 1000])
def test_nan_at_any_place_of_a_row(dtype, m):
    clean = random_scores((4, m), dtype)
    for pattern in range(4):
        for place in {*range(0, m, 1 + m // 40), m - 1}:
            scores = with_nan(clean, (2, place), pattern)
            for view in (scores, scores.map(lambda bits: np.ascontiguousarray(bits.T).T)):
                with pytest.raises(ValueError, match=rf"NaN at index \(2, {place}\)"):
                    count_exceedances(view.given, 0.0)


def test_nan_in_a_strided_turned_and_one_dimensional_array():
    scores = np.zeros(101)
    scores[40] = np.nan
    with pytest.raises(ValueError, match=r"at index \(20,\)"):
        count_exceedances(scores[::2], 0.0)
    with pytest.raises(ValueError, match=r"at index \(60,\)"):
        count_exceedances(scores[::-1], 0.0)
    assert count_exceedances(scores[1::2], 0.0) == 50


def test_nan_is_found_where_the_threads_split_the_samples(monkeypatch):
    monkeypatch.setattr(counting, "_THREAD_BYTES", 64)
    scores = np.zeros((2, 4096), np.float32)
    scores[1, 3000] = np.nan
    for count in (count_exceedances, lambda *args, **kw: decide(*args, 3, **kw)):
        with pytest.raises(ValueError, match=r"at index \(1, 3000\)"):
            count(scores, 0.5, n_threads=4)


# --- arrays: empty, read-only, out --------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis", "result"),
    [
        ((0,), 0, ()),
        ((4, 0), 1, (4,)),
        ((0, 4), 1, (0,)),
        ((2, 0, 3), 1, (2, 3)),
        ((2, 0, 3), 2, (2, 0)),
        ((0, 0), 0, (0,)),
    ],
)
def test_empty_arrays(dtype, shape, axis, result):
    scores = np.empty(shape, dtype)
    for n_threads in (1, 2):
        counts = count_exceedances(scores, 0.5, axis=axis, n_threads=n_threads)
        assert_same(counts, np.zeros(result, np.int32))
    assert_same(decide(scores, 0.5, 0, axis=axis), np.ones(result, np.bool_))
    assert_same(decide(scores, 0.5, 1, axis=axis), np.zeros(result, np.bool_))


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_read_only_scores_stay_as_they_are(dtype):
    scores = random_scores((5, 6, 20), dtype).bits
    before = scores.tobytes()
    scores.setflags(write=False)
    for axis in range(3):
        count_exceedances(scores, 0.5, axis=axis)
        decide(scores, 0.5, 3, axis=axis)
        kth_largest(scores, 3, axis=axis)
    assert scores.tobytes() == before


def test_out_is_filled_and_returned():
    scores = random_scores((5, 6, 20), "float32")
    out = np.full((5, 6), -1, np.int32)
    assert count_exceedances(scores.bits, 0.5, out=out) is out
    assert_same(out, expected_counts(scores, 0.5))
    batch = np.full((9, 6), -1, np.int32)
    count_exceedances(scores.bits, 0.5, out=batch[2:7])
    assert_same(batch[2:7], out)
    assert (batch[[0, 1, 7, 8]] == -1).all()
    scalar = np.array(-1, np.int32)
    count_exceedances(scores.bits[0, 0], 0.5, out=scalar)
    assert scalar == out[0, 0]


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        ([[0, 0]], TypeError, "`out` must be an ndarray, got list"),
        (np.zeros(2, np.int64), ValueError, r"int32 of shape \(2,\), got <i8 of shape \(2,\)"),
        (np.zeros(2, ">i4"), ValueError, "got >i4"),
        (np.zeros(3, np.int32), ValueError, r"got <i4 of shape \(3,\)"),
        (np.zeros((2, 1), np.int32), ValueError, r"of shape \(2, 1\)"),
        (np.zeros(4, np.int32)[::2], ValueError, "`out` must be C-contiguous"),
        (np.broadcast_to(np.int32(0), 2), ValueError, "`out` must be C-contiguous"),
        (np.frombuffer(bytes(8), np.int32), ValueError, "aligned and writeable"),
        (np.zeros(9, np.uint8)[1:].view(np.int32), ValueError, "aligned and writeable"),
    ],
)
def test_out_that_does_not_fit(out, error, message):
    with pytest.raises(error, match=message):
        count_exceedances(np.zeros((2, 3)), 0.5, out=out)


def test_out_on_the_memory_of_the_scores():
    scores = np.zeros((4, 4), np.float32)
    with pytest.raises(ValueError, match="`out` must not share memory with `scores`"):
        count_exceedances(scores, 0.5, out=scores.view(np.int32)[0])


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("step", [1, -2])
def test_large_arrays_are_not_copied(axis, step, n_threads, monkeypatch):
    monkeypatch.setattr(counting, "_THREAD_BYTES", 1 << 20)
    scores = np.zeros((400, 160, 160), np.float32)[:, :, ::step]
    tracemalloc.start()
    try:
        count_exceedances(scores, 0.5, axis=axis, n_threads=n_threads)
        decide(scores, 0.5, 3, axis=axis, n_threads=n_threads)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    result = scores.size // scores.shape[axis] * np.dtype(np.int32).itemsize
    assert peak < 3 * result + 100_000 < scores.nbytes / 4


# --- decide -------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [0, 1, 7, 8, 2**31, np.uint8(3), [[2], [3], [8]], [0, 4, 5, 9]])
def test_decide_compares_counts(least):
    scores = random_scores((3, 4, 8), "float32")
    counts = expected_counts(scores, 0.25)
    assert_same(decide(scores.bits, 0.25, least), counts >= np.asarray(least))


@pytest.mark.parametrize(
    ("least", "error", "message"),
    [
        (1.0, TypeError, "`min_count` must be integers"),
        (True, TypeError, "`min_count` must be integers"),
        (-1, ValueError, r"`min_count` must be in \[0, 2147483648\], got -1"),
        (2**31 + 1, ValueError, r"`min_count` must be in \[0, 2147483648\]"),
        ([1, 2], ValueError, r"`min_count` must be a scalar or broadcast .* \(3,\), got shape \(2"),
    ],
)
def test_decide_bad_min_count(least, error, message):
    with pytest.raises(error, match=message):
        decide(np.zeros((3, 4)), 0.5, least)


# --- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_b067_the_count_does_not_depend_on_threads(n_threads, monkeypatch):
    monkeypatch.setattr(counting, "_THREAD_BYTES", 64)
    for dtype in (np.float32, np.float64):
        assert count_exceedances(np.arange(10_000, dtype=dtype), 5000, n_threads=n_threads) == 5000


@given(layouts(), st.integers(2, 9))
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_threads_change_nothing(layout, n_threads):
    scores, axis, threshold = layout
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_THREAD_BYTES", 16)
        patch.setattr(counting, "_PART_SAMPLES", 2)
        patch.setattr(counting, "_PART_ROWS", 2)
        counts = count_exceedances(scores.given, threshold, axis=axis, n_threads=n_threads)
        decisions = decide(scores.given, threshold, 2, axis=axis, n_threads=n_threads)
    wanted = expected_counts(scores, threshold, axis)
    assert_same(counts, wanted)
    assert_same(decisions, wanted >= 2)


@pytest.mark.parametrize(
    ("shape", "axis", "cuts_samples"),
    [
        ((4000, 10, 2000), 2, False),  # many rows: the first axis
        ((3, 10, 2_000_000), 2, True),  # few huge rows: the samples
        ((200, 2000, 50), 1, False),  # (n, m, K)
        ((2, 500_000, 50), 1, True),
    ],
)
def test_what_the_threads_share(shape, axis, cuts_samples):
    scores = np.empty(shape, np.float32)  # never touched
    by_samples, parts = counting._split(np.moveaxis(scores, axis, -1), 2)
    assert (by_samples, len(parts)) == (cuts_samples, 2)


def test_small_work_starts_no_thread(monkeypatch):
    def refuse(*args):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert count_exceedances(np.zeros((100, 100)), 0.0, n_threads=8).sum() == 10_000
    with pytest.raises(AssertionError, match="a thread was started"):
        count_exceedances(np.zeros((100, 100_000)), 0.0, n_threads=8)


def test_b068_calls_from_four_threads_at_once(monkeypatch):
    monkeypatch.setattr(counting, "_THREAD_BYTES", 1 << 12)
    scores = [random_scores((50, 11, 40 + i), "float32", i) for i in range(4)]
    wanted = [[expected_counts(s, 0.5, axis) for axis in range(3)] for s in scores]
    failures, finished = [], []

    def work(i):
        for repeat in range(60):
            axis = repeat % 3
            counts = count_exceedances(scores[i].bits, 0.5, axis=axis, n_threads=1 + repeat % 4)
            if not np.array_equal(counts, wanted[i][axis]):
                failures.append((i, repeat))
        finished.append(i)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    assert sorted(finished) == [0, 1, 2, 3], "dead-locked or failed"
    assert not failures


@pytest.mark.parametrize("kernel", ["count", "decide"])
def test_b068_other_threads_advance_while_counting(kernel):
    # Half a second of work on four bytes: one score, repeated.
    scores = np.broadcast_to(np.float32(1), (1 << 29,))
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        start = time.perf_counter()
        if kernel == "count":
            assert count_exceedances(scores, 1.0) == 1 << 29
        else:
            assert decide(scores, 1.0, 1 << 29)
        end = time.perf_counter()
    finally:
        stop.set()
        ticker.join()
    inside = [t for t in ticks if start + 0.02 < t < end - 0.02]
    assert len(inside) > (end - start) / 0.05


# --- sizes --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_the_most_samples(dtype):
    scores = np.broadcast_to(np.zeros((), dtype), (2**31 - 1,))
    assert count_exceedances(scores, 0.0) == 2**31 - 1
    assert not decide(scores, 0.0, 2**31)


def test_one_sample_too_many():
    scores = np.broadcast_to(np.float32(0), (2, 2**31))
    with pytest.raises(ValueError, match=r"`scores` must have fewer than 2\*\*31 samples"):
        count_exceedances(scores, 0.0)
    with pytest.raises(ValueError, match=r"fewer than 2\*\*31 samples, got 2147483648"):
        decide(scores, 0.0, 1)


@pytest.mark.parametrize("ndim", [32, 64])
def test_many_axes(ndim):
    if ndim > 32 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("NumPy 1 has at most 32 axes")
    shape = [1] * ndim
    shape[3], shape[10], shape[-4] = 5, 7, 3
    scores = random_scores(tuple(shape), "float32").map(lambda bits: bits[:, :, :, ::-1])
    for axis in (3, 10, -4, 0):
        assert_same(
            count_exceedances(scores.bits, 0.5, axis=axis),
            (scores.bits >= np.float32(0.5)).sum(axis).astype(np.int32),
        )


# --- torch --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_b062_tensors_that_require_grad(dtype):
    scores = torch.tensor([0.2, 0.9], dtype=getattr(torch, dtype), requires_grad=True)
    assert count_exceedances(scores, 0.5) == 1
    assert decide(scores, 0.5, 1)
    assert kth_largest(scores, 1) == scores.max().item()
    assert count_exceedances(scores * 2, 0.5) == 1  # in a graph


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_any_stride_without_a_copy(dtype):
    whole = torch.rand(6, 9, 8, generator=torch.Generator().manual_seed(0)).to(
        getattr(torch, dtype)
    )
    for view in (whole, whole[::2, 1:], whole.permute(2, 0, 1), whole[0, 0].expand(3, 8)):
        wanted = (view >= torch.tensor(0.5, dtype=view.dtype)).sum(-1).to(torch.int32).numpy()
        assert_same(count_exceedances(view, 0.5), wanted)


def test_tensors_elsewhere_are_refused():
    with pytest.raises(ValueError, match="`scores` must be on the CPU, got a tensor on meta"):
        count_exceedances(torch.empty(3, device="meta"), 0.5)


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [count_exceedances, kth_largest])
@pytest.mark.parametrize(
    "scores",
    [
        np.zeros((2, 3), np.int64),
        np.zeros((2, 3), np.bool_),
        np.zeros((2, 3), np.complex64),
        np.zeros((2, 3), np.longdouble),
        np.zeros((2, 3), ">f4"),
        np.array([["a"]]),
        [1, 2],
        torch.zeros(2, dtype=torch.int32),
    ],
)
def test_dtypes_that_are_not_scores(function, scores):
    with pytest.raises(ValueError, match="`scores` must have one of the dtypes float16, bfloat16"):
        function(scores, 1)


@pytest.mark.parametrize("function", [count_exceedances, kth_largest])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scores": 0.5}, ValueError, "`scores` must have an axis of samples, got a scalar"),
        ({"scores": [[1.0], [1.0, 2.0]]}, ValueError, "`scores` must be a rectangular array"),
        ({"scores": np.ma.masked_array([1.0])}, TypeError, "`scores` must be a plain array"),
        ({"axis": 2}, ValueError, r"`axis` must be in \[-2, 1\], got 2"),
        ({"axis": -3}, ValueError, r"`axis` must be in \[-2, 1\], got -3"),
        ({"axis": 0.0}, TypeError, "`axis` must be an integer"),
        ({"axis": None}, TypeError, "`axis` must be an integer"),
    ],
)
def test_bad_scores_and_axis(function, arguments, error, message):
    arguments = {"scores": np.zeros((2, 3)), **arguments}
    with pytest.raises(error, match=message):
        function(arguments.pop("scores"), 1, **arguments)


@pytest.mark.parametrize(
    ("n_threads", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_bad_n_threads(n_threads, error):
    with pytest.raises(error, match="`n_threads` must be"):
        count_exceedances(np.zeros(3), 0.5, n_threads=n_threads)
    with pytest.raises(error, match="`n_threads` must be"):
        decide(np.zeros(3), 0.5, 1, n_threads=n_threads)


@pytest.mark.parametrize("threshold", ["0.5", 1j, None, np.ma.masked_array([0.5])])
def test_bad_threshold(threshold):
    with pytest.raises(TypeError, match="`threshold` must be"):
        count_exceedances(np.zeros(3), threshold)


# --- kth_largest --------------------------------------------------------------------------------


@given(layouts(), st.data())
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_kth_largest_is_the_order_statistic(layout, data):
    scores, axis, _ = layout
    m = scores.bits.shape[axis]
    if m == 0:
        with pytest.raises(ValueError, match="`scores` must have samples along axis"):
            kth_largest(scores.given, 1, axis=axis)
        return
    k = data.draw(st.integers(1, m))
    got = kth_largest(scores.given, k, axis=axis)
    assert got.dtype == scores.values.dtype
    # Python's sort, row by row.
    rows = np.moveaxis(scores.values, axis, -1)
    wanted = np.empty(rows.shape[:-1], rows.dtype)
    for index in np.ndindex(wanted.shape):
        wanted[index] = sorted(rows[index].tolist(), reverse=True)[k - 1]
    np.testing.assert_array_equal(got, wanted)
    # It is the largest threshold that k scores reach.
    assert (count_exceedances(scores.given, got, axis=axis) >= k).all()
    assert ((rows > got[..., np.newaxis]).sum(-1) < k).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [4095, 4096, 4097, 9000])
def test_kth_largest_of_long_rows(dtype, m):
    scores = random_scores((4, m), dtype)
    ordered = np.sort(scores.values, axis=-1)[:, ::-1]
    for k in (1, 2, m // 3, m - 1, m):
        np.testing.assert_array_equal(kth_largest(scores.given, k), ordered[:, k - 1])
    with pytest.raises(ValueError, match=rf"NaN at index \(2, {m - 3}\)"):
        kth_largest(with_nan(scores, (2, m - 3), 2).given, 1)


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (0, ValueError, r"`k` must be in \[1, 4\], got 0"),
        (5, ValueError, r"`k` must be in \[1, 4\], got 5"),
        (-1, ValueError, r"`k` must be in \[1, 4\], got -1"),
        (2.0, TypeError, "`k` must be an integer"),
        (True, TypeError, "`k` must be an integer"),
    ],
)
def test_kth_largest_bad_k(k, error, message):
    with pytest.raises(error, match=message):
        kth_largest(np.zeros((3, 4)), k)


def test_kth_largest_of_no_rows():
    assert kth_largest(np.zeros((0, 4), np.float32), 2).shape == (0,)


# --- the compiled variants ----------------------------------------------------------------------


def test_functions_for_cython():
    names = {f"count_{dtype}" for dtype in DTYPES}
    assert names <= set(_count.__pyx_capi__)


@pytest.mark.parametrize("flags", ["", "-DBINCP_NO_CLONES", "avx2", "x86-64-v4"])
def test_every_variant_passes_the_c_tests(flags, tmp_path):
    """The clones of this machine, the plain build, and each instruction set without dispatch."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    options = [flags] if flags.startswith("-") else []
    if flags in ("avx2", "x86-64-v4"):
        needed = {"avx2"} if flags == "avx2" else {"avx2", "avx512bw", "avx512vl", "avx512dq"}
        if platform.machine() != "x86_64" or not needed <= cpu_features():
            pytest.skip(f"this machine has no {flags}")
        options = ["-DBINCP_NO_CLONES", "-mavx2" if flags == "avx2" else f"-march={flags}"]
    sources = [ROOT / "tests/c/test_count.c", ROOT / "csrc/counting/count.c"]
    program = tmp_path / "test_count"
    command = [compiler, "-std=c11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion"]
    command += ["-Werror", *options, f"-I{ROOT / 'csrc'}", *sources, "-lm", "-o", program]
    subprocess.run(command, check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    assert ", 0 failures" in done.stdout


def cpu_features():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return set(next((line for line in lines if line.startswith("flags")), "").split())
