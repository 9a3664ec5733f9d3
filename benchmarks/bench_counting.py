"""Counting against NumPy's compare and sum, and against merely reading the bytes.

Reading is the floor: no count can be faster than the memory. The baseline is an exclusive or of the
array, 64 bits at a time, compiled here for this very machine.
"""

import ctypes
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

from bincp.counting import count_exceedances, decide, kth_largest

READ_C = """
#include <stddef.h>
#include <stdint.h>
uint64_t read_words(const uint64_t *p, size_t n)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x ^= p[i];
    return x;
}
"""

LARGE = (4000, 10, 2000)
TAU = 0.7


@cache
def scores(shape, dtype="float32"):
    """Return uniform scores; bfloat16 ones as a tensor."""
    values = np.random.default_rng(0).random(shape, np.float32)
    if dtype == "bfloat16":
        torch = pytest.importorskip("torch")
        return torch.from_numpy(values).to(torch.bfloat16)
    return values.astype(dtype)


def memory(array):
    """Return an array of words on the memory of an array or tensor."""
    if not isinstance(array, np.ndarray):
        array = array.view(pytest.importorskip("torch").int16).numpy()
    return array.reshape(-1).view(np.uint64)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Return a function that reads a large array on some threads, and returns its exclusive or."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler for the baseline")
    folder = tmp_path_factory.mktemp("read")
    (folder / "read.c").write_text(READ_C)
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "read.c", "-o", "read.so"]
    subprocess.run(command, check=True, cwd=folder)
    function = ctypes.CDLL(str(folder / "read.so")).read_words
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def read_part(words):
        return function(words.ctypes.data, words.size)

    def run(words, n_threads):
        if n_threads == 1:
            return read_part(words)
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(read_part, np.array_split(words, n_threads)))
        return int(np.bitwise_xor.reduce(np.array(parts, np.uint64)))

    return run


def numpy_count(array, axis=-1):
    return (array >= array.dtype.type(TAU)).sum(axis)


@cache
def expected(shape, dtype="float32", axis=-1):
    """Return NumPy's counts; bfloat16 ones of the exact float32 values."""
    array = scores(shape, dtype)
    if dtype == "bfloat16":
        torch = pytest.importorskip("torch")
        tau = torch.tensor(TAU).to(torch.bfloat16).float().item()
        return (array.float().numpy() >= np.float32(tau)).sum(axis)
    return numpy_count(array, axis)


def count_and_check(benchmark, shape, dtype="float32", axis=-1, n_threads=1):
    array = scores(shape, dtype)
    got = benchmark(count_exceedances, array, TAU, axis=axis, n_threads=n_threads)
    np.testing.assert_array_equal(got, expected(shape, dtype, axis))


def read_and_check(benchmark, read, shape, dtype="float32", n_threads=1):
    words = memory(scores(shape, dtype))
    assert benchmark(read, words, n_threads) == np.bitwise_xor.reduce(words)


# --- (4000, 10, 2000) float32: 0.9 of reading, 4 times NumPy, decide no slower than counting ------


@pytest.mark.benchmark(group="count (4000, 10, 2000) float32")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_large_read(benchmark, read, n_threads):
    read_and_check(benchmark, read, LARGE, n_threads=n_threads)


@pytest.mark.benchmark(group="count (4000, 10, 2000) float32")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_large_count(benchmark, n_threads):
    count_and_check(benchmark, LARGE, n_threads=n_threads)


@pytest.mark.benchmark(group="count (4000, 10, 2000) float32")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_large_decide(benchmark, n_threads):
    got = benchmark(decide, scores(LARGE), TAU, 600, n_threads=n_threads)
    np.testing.assert_array_equal(got, expected(LARGE) >= 600)


@pytest.mark.benchmark(group="count (4000, 10, 2000) float32")
def test_large_numpy(benchmark):
    got = benchmark(numpy_count, scores(LARGE))
    np.testing.assert_array_equal(got, expected(LARGE))


# --- short rows: at least 3 times NumPy -----------------------------------------------------------


def short(m):
    return (20_000_000 // (10 * m), 10, m)


@pytest.mark.benchmark(group="count rows of 16 to 64 float32")
@pytest.mark.parametrize("m", [16, 24, 32, 50, 64])
def test_short_numpy(benchmark, m):
    np.testing.assert_array_equal(benchmark(numpy_count, scores(short(m))), expected(short(m)))


@pytest.mark.benchmark(group="count rows of 16 to 64 float32")
@pytest.mark.parametrize("m", [16, 24, 32, 50, 64])
def test_short_count(benchmark, m):
    count_and_check(benchmark, short(m))


# --- (n, m, K): at least 3 times NumPy ------------------------------------------------------------


def middle(k):
    return (40_000_000 // (200 * k), 200, k)


@pytest.mark.benchmark(group="count (n, 200, K) float32")
@pytest.mark.parametrize("k", [3, 10, 100, 1000])
def test_middle_numpy(benchmark, k):
    got = benchmark(numpy_count, scores(middle(k)), axis=1)
    np.testing.assert_array_equal(got, expected(middle(k), axis=1))


@pytest.mark.benchmark(group="count (n, 200, K) float32")
@pytest.mark.parametrize("k", [3, 10, 100, 1000])
def test_middle_count(benchmark, k):
    count_and_check(benchmark, middle(k), axis=1)


# --- 16 bits: at least 0.8 of reading -------------------------------------------------------------


@pytest.mark.benchmark(group="count (4000, 10, 2000) of 16 bits")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_read(benchmark, read, dtype):
    read_and_check(benchmark, read, LARGE, dtype)


@pytest.mark.benchmark(group="count (4000, 10, 2000) of 16 bits")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_count(benchmark, dtype):
    count_and_check(benchmark, LARGE, dtype)


# --- kth_largest: no slower than NumPy's sort -----------------------------------------------------


@pytest.mark.benchmark(group="kth_largest (1000, 256) float32")
def test_kth_numpy_sort(benchmark):
    array = scores((1000, 256))
    got = benchmark(lambda: np.sort(array)[:, -180])
    np.testing.assert_array_equal(got, -np.sort(-array)[:, 179])


@pytest.mark.benchmark(group="kth_largest (1000, 256) float32")
def test_kth_largest(benchmark):
    array = scores((1000, 256))
    got = benchmark(kth_largest, array, 180)
    np.testing.assert_array_equal(got, -np.sort(-array)[:, 179])
