"""Keyed noise: against Philox's published answers, exact arithmetic, and the laws it claims."""

import ctypes
import math
import os
import shutil
import subprocess
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from bincp._core import _noise
from bincp.noise import Keys, draw
from bincp.noise._keys import below, score_numbers
from bincp.noise._samplers import float32_at_least, sampler_of
from bincp.smoothing import Gaussian, Laplace, SparseFlip, Uniform

ROOT = Path(__file__).parents[2]

seeds = st.integers(0, 2**64 - 1)
ids = st.integers(0, 2**56 - 1)
draw_numbers = st.integers(0, 2**31 - 1)


def row(smoothing, n, *, seed=0, phase="calibration", id=0, number=0, x=None, dtype=np.float32):  # noqa: A002
    """One row of noise."""
    x = np.zeros((1, n), dtype=dtype) if x is None else x
    out = np.empty_like(x)
    keys = Keys(seed, phase, [id], [number])
    sampler_of(smoothing).fill(keys, np.array([0]), x, out)
    return out[0]


def philox(counter, key):
    """Philox4x32-10 in Python integers, from the paper."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (p1 >> 32) ^ c[1] ^ k[0],
            p1 & 0xFFFFFFFF,
            (p0 >> 32) ^ c[3] ^ k[1],
            p0 & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def words(n, *, seed, stream, id, number):  # noqa: A002
    """The random word of each element of a row: the layout that csrc/noise/philox.h documents."""
    key = (seed & 0xFFFFFFFF, seed >> 32)
    result = []
    for j in range(n):
        block = 16 * (j // 64) + j % 16
        counter = (block, number, id & 0xFFFFFFFF, stream << 24 | id >> 32)
        result.append(philox(counter, key)[j % 64 // 16])
    return np.array(result, dtype=np.int64)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # kat_vectors of the authors' Random123, philox4x32 with 10 rounds
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(counter, key, expected):
    assert _noise.philox4x32(counter, key) == expected
    assert tuple(philox(counter, key)) == expected


@given(seed=seeds, id=ids, number=draw_numbers, n=st.integers(1, 150))
@settings(deadline=None, max_examples=40)
def test_gaussian_is_box_muller_of_the_words(seed, id, number, n):  # noqa: A002
    z = row(Gaussian(1.0), n, seed=seed, id=id, number=number).astype(np.float64)
    w = words(64 * (-(-n // 64)), seed=seed, stream=0, id=id, number=number).reshape(-1, 4, 16)
    # The radius has one rounding, of the word plus a half to float32.
    u = (w + 0.5).astype(np.float32).astype(np.float64) / 2**32
    expected = np.empty(w.shape)
    for r in (0, 2):
        radius, angle = np.sqrt(-2 * np.log(u[:, r])), 2 * np.pi * w[:, r + 1] / 2**32
        expected[:, r], expected[:, r + 1] = radius * np.cos(angle), radius * np.sin(angle)
    np.testing.assert_allclose(z, expected.ravel()[:n], rtol=4e-7, atol=1e-6)


@given(seed=seeds, id=ids, number=draw_numbers, n=st.integers(1, 150))
@settings(deadline=None, max_examples=40)
def test_uniform_is_the_word_as_a_signed_number(seed, id, number, n):  # noqa: A002
    w = words(n, seed=seed, stream=1, id=id, number=number)
    signed = np.where(w >= 2**31, w - 2**32, w) + 0.5
    result = row(Uniform(0.5), n, seed=seed, id=id, number=number, phase="test")
    np.testing.assert_array_equal(result, (signed / 2**32).astype(np.float32))
    u = score_numbers(Keys(seed, "test", [id], [number]))
    first = words(1, seed=seed, stream=3, id=id, number=number)[0]
    assert u[0] == np.float32((first + 0.5) / 2**32)


@given(seed=seeds, id=ids, number=draw_numbers, n=st.integers(1, 150))
@settings(deadline=None, max_examples=40)
def test_laplace_is_a_sign_and_the_logarithm_of_31_bits(seed, id, number, n):  # noqa: A002
    z = row(Laplace(1.0), n, seed=seed, id=id, number=number).astype(np.float64)
    w = words(n, seed=seed, stream=0, id=id, number=number)
    # Rounded once before the logarithm: of numbers near 1 the rounding is all that counts.
    u = (w % 2**31 + 0.5).astype(np.float32).astype(np.float64) / 2**31
    expected = np.where(w >= 2**31, -1, 1) * -np.log(u)
    np.testing.assert_allclose(z, expected, rtol=2e-7, atol=0)
    assert -np.log(0.5 / 2**31) == pytest.approx(22.18, abs=0.005)


@given(seed=seeds, id=ids, number=draw_numbers, n=st.integers(1, 150))
@settings(deadline=None, max_examples=40)
def test_wide_numbers_are_52_bits_and_a_half(seed, id, number, n):  # noqa: A002
    for stream in (0, 1, 4, 5):
        key = {"seed": seed, "id": id, "number": number}
        first, second = (words(n, stream=s, **key) for s in (stream, stream + 0x80))
        u = np.empty((1, n))
        _noise.wide_unit_numbers(seed, stream, np.array([id]), np.array([number]), u)
        exact = [
            Fraction(2 * (int(a) * 2**20 + int(b) // 2**12) + 1, 2**53)
            for a, b in zip(first, second, strict=True)
        ]
        assert [Fraction(value) for value in u[0]] == exact


@given(
    seed=seeds,
    id=ids,
    number=draw_numbers,
    j=st.integers(0, 149),
    # A quarter of the examples has the tie that otherwise comes once in 2^32 elements.
    p=st.one_of(
        st.none(), st.floats(1e-300, 1), st.floats(1e-20, 2**-30), st.sampled_from([0.0, 1.0])
    ),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(deadline=None, max_examples=80)
def test_flips_compare_128_bits_with_the_probability(seed, id, number, j, p, dtype):  # noqa: A002
    n = 150
    w = words(n, seed=seed, stream=0, id=id, number=number)
    if p is None:
        p = float((w[j] + 0.5) / 2**32)
        assert Fraction(p) == (Fraction(int(w[j])) + Fraction(1, 2)) / 2**32
    rows = [words(n, seed=seed, stream=s, id=id, number=number).tolist() for s in (0x80, 16, 0x90)]
    four = zip(w.tolist(), *rows, strict=True)
    bits = [a << 96 | b << 64 | c << 32 | d for a, b, c, d in four]
    # A probability is resolved to 2^-128.
    flips = np.array([b < int(Fraction(p) * 2**128) for b in bits])
    x = (np.arange(n)[None, :] % 3 == 0).astype(dtype)
    plus = row(SparseFlip(p, 0.0), n, seed=seed, id=id, number=number, x=x)
    np.testing.assert_array_equal(plus, np.where((x[0] == 0) & flips, 1, x[0]))
    minus = row(SparseFlip(0.0, p), n, seed=seed, id=id, number=number, x=x)
    np.testing.assert_array_equal(minus, np.where((x[0] == 1) & flips, 0, x[0]))


PINNED = ("-0x1.021eaep-1", "-0x1.7cbc74p-3", "-0x1.409050p+1", "-0x1.7c210ep-1")


def test_noise_is_pinned():
    """Changing these numbers changes every stored calibration that is to be drawn again."""
    z = row(Gaussian(1.0), 4, seed=2**64 - 1, id=2**56 - 1, number=2**31 - 1, phase="test")
    assert z.tolist() == [float.fromhex(v) for v in PINNED]


@pytest.mark.parametrize(
    ("smoothing", "law"),
    [
        (Gaussian(0.25), stats.norm(scale=0.25)),
        (Uniform(0.5), stats.uniform(-0.5, 1.0)),
    ],
)
def test_moments_and_distribution(smoothing, law):
    z = draw(smoothing, np.zeros((10, 1000), np.float32), 100, phase="test", seed=3)
    z = z.ravel().astype(np.float64)
    # The seed is fixed, so these hold or not once and for all; 4 standard errors each.
    for power in range(1, 5):
        spread = np.sqrt(law.moment(2 * power) - law.moment(power) ** 2)
        assert abs((z**power).mean() - law.moment(power)) < 4 * spread / np.sqrt(z.size)
    assert stats.kstest(z, law.cdf).pvalue > 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_has_tails(dtype):
    """A Gaussian cut off at 3.5 sigma voids the certificate."""
    z = draw(Gaussian(1.0), np.zeros((4, 10_000), dtype), 100, phase="test")
    assert z.dtype == dtype
    assert 1650 <= (np.abs(z) > 3.5).sum() <= 2075
    assert 4.9 < np.abs(z).max() < 6.77


def test_flip_frequencies():
    x = np.zeros((10, 1000), np.float32)
    x[:, 500:] = 1
    flipped = draw(SparseFlip(0.01, 0.6), x, 100, phase="test") != x[:, None, :]
    for part, p in ((flipped[..., :500], 0.01), (flipped[..., 500:], 0.6)):
        assert stats.binomtest(int(part.sum()), part.size, p).pvalue > 0.01


@given(
    smoothing=st.sampled_from([Gaussian(0.5), Uniform(0.5), Laplace(0.5), SparseFlip(0.3, 0.6)]),
    dtype=st.sampled_from([np.float32, np.float64]),
    n=st.integers(1, 5),
    m=st.integers(1, 5),
    d=st.one_of(st.integers(1, 200), st.integers(1000, 2100)),
    seed=seeds,
    data=st.data(),
)
@settings(deadline=None, max_examples=60)
def test_nothing_but_the_key_matters(smoothing, dtype, n, m, d, seed, data):
    """Order, batch, number of draws, size of the row: no bit changes."""
    x = (np.arange(n * d).reshape(n, d) % 2).astype(dtype)
    keys = np.array(data.draw(st.lists(ids, min_size=n, max_size=n, unique=True)))
    full = draw(smoothing, x, m, phase="calibration", indices=keys, seed=seed)
    assert full.dtype == dtype
    order = np.array(data.draw(st.permutations(range(n * m))))
    sources, draws = np.divmod(order, m)
    out = np.empty((n * m, d), dtype)
    cut = data.draw(st.integers(0, n * m))
    for part in (slice(0, cut), slice(cut, None)):
        rows = Keys(seed, "calibration", keys[sources[part]], draws[part])
        sampler_of(smoothing).fill(rows, sources[part], x, out[part])
    np.testing.assert_array_equal(out, full[sources, draws])
    shorter = data.draw(st.integers(1, d))
    np.testing.assert_array_equal(
        draw(smoothing, x[:, :shorter], m, phase="calibration", indices=keys, seed=seed),
        full[:, :, :shorter],
    )


def test_float64_gets_the_same_noise_widened():
    wide = row(Gaussian(0.3), 100, dtype=np.float64)
    np.testing.assert_array_equal(wide, row(Gaussian(0.3), 100).astype(np.float64))
    x = np.full((1, 100), 1 / 3)
    np.testing.assert_array_equal(row(Gaussian(0.3), 100, x=x), x[0] + wide)


@pytest.mark.parametrize(
    "smoothing", [Gaussian(1.0), Uniform(1.0), Laplace(1.0), SparseFlip(0.5, 0.5)]
)
def test_keys_share_nothing(smoothing):
    """Seeds beyond 32 bits count (torch's CPU generator drops them), ids beyond 32 bits, phases."""
    keys = [
        {"seed": seed, "id": id, "number": number, "phase": phase}
        for seed in (5, 5 + 2**32, 5 + 2**63)
        for id in (0, 1, 2**32, 2**55)  # noqa: A001
        for number in (0, 1, 2**31 - 1)
        for phase in ("calibration", "test", "tuning")
    ]
    rows = np.array([row(smoothing, 4000, **key) for key in keys], dtype=np.float64)
    rows = (rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True)
    correlation = rows @ rows.T / rows.shape[1]
    off_diagonal = correlation[~np.eye(len(keys), dtype=bool)]
    # 5778 pairs: the largest of so many normal numbers of standard error 1/sqrt(4000) is below 5.
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(4000)
    assert abs(off_diagonal.std() * np.sqrt(4000) - 1) < 0.05


def test_elements_are_uncorrelated_along_the_row():
    z = row(Gaussian(1.0), 100_000).astype(np.float64)
    for lag in (1, 2, 15, 16, 17, 32, 48, 63, 64, 128):
        assert abs((z[:-lag] * z[lag:]).mean()) < 4 / np.sqrt(z.size)


@pytest.mark.parametrize(("shared", "expected"), [(False, 0.95), (True, 0.5)])
def test_coverage_needs_independent_calibration_noise(shared, expected):
    """Constant inputs whose score is the noise: 19 calibration points at alpha = 0.05.

    With noise shared over the calibration batch the coverage would be 1/2.
    """
    coverage = []
    for seed in range(600):
        x = np.zeros((19, 1), np.float32)
        indices = np.zeros(19, int) if shared else None
        phase = "test" if shared else "calibration"  # sharing is refused in the other
        scores = draw(Gaussian(1.0), x, 1, phase=phase, indices=indices, seed=seed)
        coverage.append(stats.norm.sf(scores.min()))
    assert abs(np.mean(coverage) - expected) < 0.04


@given(scale=st.floats(1.2e-38, 3e38))
def test_scales_are_rounded_up(scale):
    rounded = float32_at_least(scale)
    assert float(np.float32(rounded)) == rounded >= scale
    assert float(np.nextafter(np.float32(rounded), np.float32(0))) < scale


def test_threads_give_the_same_rows():
    x = np.random.default_rng(0).random((8, 3000), np.float32)
    expected = draw(Gaussian(0.5), x, 50, phase="test")
    results = [None] * 4

    def work(i):
        results[i] = draw(Gaussian(0.5), x, 50, phase="test")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    for result in results:
        np.testing.assert_array_equal(result, expected)


class Key(ctypes.Structure):
    _fields_ = [
        ("seed", ctypes.c_uint64),
        ("id", ctypes.c_uint64),
        ("draw", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
    ]


VARIANTS = [
    ("gcc", "-O3"),
    ("gcc", "-O0 -DBINCP_NO_CLONES"),
    ("gcc", "-O3 -DBINCP_NO_CLONES"),
    ("gcc", "-O3 -DBINCP_NO_CLONES -march=x86-64-v3"),
    ("gcc", "-O3 -DBINCP_NO_CLONES -march=x86-64-v4"),
    ("clang", "-O3"),
    ("clang", "-O3 -DBINCP_NO_CLONES"),
    ("clang", "-O3 -DBINCP_NO_CLONES -march=x86-64-v3"),
]


@pytest.mark.parametrize(("compiler", "flags"), VARIANTS)
def test_every_build_gives_the_same_bits(compiler, flags, tmp_path):
    path = shutil.which(compiler) or shutil.which(f"{compiler}-14")
    if path is None:
        pytest.skip(f"no {compiler}")
    if "-march" in flags and not _cpu_has("avx512bw" if "v4" in flags else "avx2"):
        pytest.skip("this CPU cannot run it")
    library = tmp_path / "noise.so"
    command = [path, "-std=c11", "-shared", "-fPIC", "-ffp-contract=off", *flags.split()]
    command += [
        "-fno-math-errno",
        "-fno-trapping-math",
        f"-I{ROOT}/csrc",
        f"{ROOT}/csrc/noise/philox.c",
        f"{ROOT}/csrc/noise/laws.c",
    ]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True)
    lib = ctypes.CDLL(str(library))
    n, x = 2 * 1024 + 77, np.zeros(2 * 1024 + 77, np.float32)
    x[::3] = 1
    for number in range(20):
        key = Key(seed=123 << 40, id=7 << 40, draw=number, stream=1)
        where = {"seed": 123 << 40, "id": 7 << 40, "number": number, "phase": "test", "x": x[None]}
        out = np.empty_like(x)
        args = (key, ctypes.c_size_t(n), ctypes.c_void_p(x.ctypes.data))
        address = ctypes.c_void_p(out.ctypes.data)
        for law, smoothing in ((0, Gaussian(0.25)), (1, Uniform(0.25)), (3, Laplace(0.25))):
            lib.bincp_noise_add_f32(law, ctypes.c_float(0.25), *args, address)
            np.testing.assert_array_equal(out, row(smoothing, n, **where))
        wide, expected = np.empty(n), np.empty((1, n))
        lib.bincp_noise_unit_f64(key, ctypes.c_size_t(n), ctypes.c_void_p(wide.ctypes.data))
        where_wide = np.array([where["id"]]), np.array([number])
        _noise.wide_unit_numbers(where["seed"], _noise.TEST, *where_wide, expected)
        np.testing.assert_array_equal(wide, expected[0])
        p_plus, p_minus = ctypes.c_double(0.01), ctypes.c_double(0.6)
        lib.bincp_noise_flip_f32(p_plus, p_minus, *args, address)
        np.testing.assert_array_equal(out, row(SparseFlip(0.01, 0.6), n, **where))


def _cpu_has(feature):
    try:
        return f" {feature} " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def test_c_program_is_clean_under_sanitizers(tmp_path):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    program = tmp_path / "test_noise"
    flags = ["-std=c11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    files = (
        "tests/c/test_noise.c",
        "csrc/noise/philox.c",
        "csrc/noise/laws.c",
        "csrc/noise/grid.c",
        "csrc/noise/splitting.c",
    )
    sources = [str(ROOT / file) for file in files]
    folders = [f"-I{ROOT}/csrc", f"-I{ROOT}/bincp/include"]
    subprocess.run(
        [gcc, *flags, *folders, *sources, "-o", str(program), "-lm"],
        check=True,
    )
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run([str(program)], check=True, env=environment)


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"smoothing": "gauss"}, TypeError, "Gaussian, .*, SparseFlip, .*Uniform, .*got 'gauss'"),
        ({"smoothing": Gaussian(1e39)}, ValueError, "float32 can hold, got 1e\\+39"),
        ({"smoothing": Gaussian(1e-38)}, ValueError, "float32 can hold, got 1e-38"),
        ({"smoothing": Gaussian(1e38)}, ValueError, r"can hold, got draws up to 6.77e\+38"),
        ({"smoothing": Laplace(2e37)}, ValueError, r"can hold, got draws up to 4.438e\+38"),
        ({"x": X.astype(np.float16)}, ValueError, r"float64 \(noise of 16 bits .*\), got float16"),
        ({"x": X.astype(np.int64)}, ValueError, r"float64 \(use x.astype.*got int64"),
        ({"x": X.astype(">f4")}, ValueError, r"float64 \(use x.astype.*got >f4"),
        ({"x": X[:0]}, ValueError, r"not be empty, got \(0, 3\)"),
        ({"x": X[:, :0]}, ValueError, r"not be empty, got \(2, 0\)"),
        ({"x": X[0]}, ValueError, r"shape \(n, ...\) .* got \(3,\)"),
        ({"n_samples": 0}, ValueError, "`n_samples` must be in"),
        ({"n_samples": 2**31}, ValueError, "`n_samples` must be in"),
        ({"n_samples": 2.0}, TypeError, "`n_samples` must be an integer, got 2.0"),
        ({"phase": "calibrate"}, ValueError, "'calibration', 'test' or 'tuning', got 'calibrate'"),
        ({"phase": 1}, TypeError, "`phase` must be"),
        ({"seed": -1}, ValueError, "`seed` must be in"),
        ({"seed": 2**64}, ValueError, "`seed` must be in"),
        ({"seed": 0.5}, TypeError, "`seed` must be an integer"),
        ({"indices": [0, -1]}, ValueError, r"got -1 at index \(1,\)"),
        ({"indices": [0, 2**56]}, ValueError, "`indices` must be in"),
        ({"indices": [0]}, ValueError, r"`indices` must have shape \(2,\), got \(1,\)"),
        ({"indices": [0.0, 1.0]}, TypeError, "`indices` must be integers"),
        ({"indices": [7, 7], "phase": "calibration"}, ValueError, "got 7 more than once"),
    ],
)
def test_bad_arguments(change, error, message):
    arguments = {"smoothing": Gaussian(1.0), "x": X, "n_samples": 2, "phase": "test", **change}
    with pytest.raises(error, match=message):
        draw(**arguments)


def test_flips_need_zeros_and_ones():
    x = np.zeros((2, 3), np.float32)
    x[1, 2] = 0.5
    with pytest.raises(
        ValueError, match=r"zeros and ones for SparseFlip, got 0.5 at index \(1, 2\)"
    ):
        draw(SparseFlip(0.1, 0.1), x, 2, phase="test")


def test_test_inputs_may_share_noise():
    twins = draw(Gaussian(1.0), X, 4, phase="test", indices=[7, 7])
    np.testing.assert_array_equal(twins[0], twins[1])


def test_inputs_of_any_memory_layout():
    x = np.random.default_rng(0).random((4, 5, 6), np.float32)
    expected = draw(Gaussian(1.0), x, 3, phase="test")
    x.flags.writeable = False
    np.testing.assert_array_equal(
        draw(Gaussian(1.0), np.asfortranarray(x), 3, phase="test"), expected
    )
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(x.copy()).requires_grad_()
    np.testing.assert_array_equal(draw(Gaussian(1.0), tensor, 3, phase="test"), expected)


# ---- integers of any kind -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint64, np.array])
def test_integers_of_numpy_do_not_overflow(kind):
    """200 draws of 6 inputs are 1200 rows: beyond the 8 bits of the first argument."""
    x = np.zeros((6, 3), np.float32)
    expected = draw(Gaussian(1.0), x, 200, phase="test", seed=7)
    np.testing.assert_array_equal(
        draw(Gaussian(1.0), x, kind(200), phase="test", seed=kind(7)), expected
    )


def test_integers_of_torch():
    torch = pytest.importorskip("torch")
    five, seed = torch.tensor(5), torch.tensor(7, dtype=torch.uint8)
    np.testing.assert_array_equal(
        draw(Gaussian(1.0), X, five, phase="test", seed=seed),
        draw(Gaussian(1.0), X, 5, phase="test", seed=7),
    )
    for wrong in (torch.tensor([5]), torch.tensor(5.0), torch.tensor(True)):
        with pytest.raises(TypeError, match="`n_samples` must be an integer, got tensor"):
            draw(Gaussian(1.0), X, wrong, phase="test")


@pytest.mark.parametrize("wrong", [np.array([5]), np.float32(5), np.bool_(True), "5", None])
def test_what_is_no_integer_is_refused(wrong):
    with pytest.raises(TypeError, match="`n_samples` must be an integer"):
        draw(Gaussian(1.0), X, wrong, phase="test")


# ---- keys ---------------------------------------------------------------------------------------

STREAMS = {"calibration": (0, 4), "test": (1, 5), "tuning": (6, 8)}


@given(
    seed=seeds,
    id=ids,
    number=draw_numbers,
    n=st.integers(1, 150),
    phase=st.sampled_from(sorted(STREAMS)),
    part=st.sampled_from([0, 1]),
    high=st.integers(1, 2**31 - 1),
)
@settings(deadline=None, max_examples=40)
def test_numbers_of_a_key(seed, id, number, n, phase, part, high):  # noqa: A002
    """The numbers of each part of each phase come from the words of a stream of their own."""
    keys = Keys(seed, phase, [id], [number])
    stream = STREAMS[phase][part]
    first, second = (
        words(n, seed=seed, stream=s, id=id, number=number) for s in (stream, stream + 0x80)
    )
    exact = [int(a) << 32 | int(b) for a, b in zip(first, second, strict=True)]
    assert keys.words(n, part=part)[0].tolist() == exact
    assert keys.integers(n, high, part=part)[0].tolist() == [w * high >> 64 for w in exact]
    halves = [Fraction(2 * (w >> 12) + 1, 2**53) for w in exact]
    assert [Fraction(u) for u in keys.units(n, part=part)[0]] == halves
    normals = keys.normals(n, part=part)
    assert normals.shape == (1, n)
    if part == 0:
        noise = row(Gaussian(1.0), n, seed=seed, phase=phase, id=id, number=number)
        np.testing.assert_array_equal(normals[0], noise)


@given(words=st.lists(st.integers(0, 2**64 - 1), min_size=1), bound=st.integers(1, 2**31 - 1))
@example(words=[2**64 - 1, 0], bound=2**31 - 1)
@settings(deadline=None)
def test_numbers_below_a_bound(words, bound):
    assert below(np.array(words, np.uint64), bound).tolist() == [w * bound >> 64 for w in words]


def test_numbers_of_the_two_parts_and_of_three_phases_share_nothing():
    shared = [0, 1, 2], [5, 6, 7]
    seen = [
        number
        for phase in STREAMS
        for part in (0, 1)
        for number in Keys(9, phase, *shared).words(1000, part=part).ravel().tolist()
    ]
    assert len(set(seen)) == len(seen) == 18_000  # twins would come once in 1e11 seeds


def test_random_scores_of_a_phase_have_a_stream_of_their_own():
    for phase, stream in (("calibration", 2), ("test", 3), ("tuning", 7)):
        u = score_numbers(Keys(5, phase, [11], [13]))
        first = words(1, seed=5, stream=stream, id=11, number=13)[0]
        assert u[0] == np.float32((first + 0.5) / 2**32)


def test_keys_of_rows():
    keys = Keys(3, "test", np.arange(5), np.array([4, 3, 2, 1, 0], np.uint8))
    assert len(keys) == 5
    for method in ("words", "units", "normals"):
        whole = getattr(keys, method)(7)
        np.testing.assert_array_equal(getattr(keys[1:4], method)(7), whole[1:4])
        np.testing.assert_array_equal(getattr(keys, method)(3), whole[:, :3])
        np.testing.assert_array_equal(getattr(keys[np.array([4, 0])], method)(7), whole[[4, 0]])
    assert Keys(0, "test", [], []).units(3).shape == (0, 3)


def test_keys_are_immutable():
    own = np.arange(3)
    keys = Keys(0, "test", own, own)
    before = keys.words(2)
    own += 1
    np.testing.assert_array_equal(keys.words(2), before)
    with pytest.raises(ValueError, match="read-only"):
        keys.ids[0] = 1
    with pytest.raises(AttributeError):
        keys.seed = 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Keys(-1, "test", [0], [0]), ValueError, "`seed` must be in"),
        (lambda: Keys(0, "train", [0], [0]), ValueError, "'tuning', got 'train'"),
        (lambda: Keys(0, "test", [2**56], [0]), ValueError, "`ids` must be in"),
        (lambda: Keys(0, "test", [0], [2**31]), ValueError, "`draws` must be in"),
        (lambda: Keys(0, "test", [0.0], [0]), TypeError, "`ids` must be integers"),
        (lambda: Keys(0, "test", [0], [0, 1]), ValueError, r"got \(1,\) and \(2,\)"),
        (lambda: Keys(0, "test", [[0]], [[0]]), ValueError, r"shape \(rows,\)"),
        (lambda: Keys(0, "test", [0], [0]).words(0), ValueError, r"`n` must be in \[1, "),
        (lambda: Keys(0, "test", [0], [0]).units(1.0), TypeError, "`n` must be an integer"),
        (lambda: Keys(0, "test", [0], [0]).normals(1, part=2), ValueError, "`part` must be in"),
        (lambda: Keys(0, "test", [0], [0]).integers(1, 0), ValueError, "`high` must be in"),
        (lambda: Keys(0, "test", [0], [0]).integers(1, 2**31), ValueError, "`high` must be in"),
    ],
)
def test_bad_keys(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- the phase "tuning" -------------------------------------------------------------------------


def test_tuning_on_tuning_noise_keeps_the_coverage_that_calibration_noise_loses():
    """A constant input, 19 points, the best of several settings chosen on the sampled scores.

    The score of setting s at a point is the noise of coordinate s. The setting whose threshold is
    the largest gives the smallest sets. Chosen on the calibration noise itself, its threshold is
    the largest of four least scores, which has a mean coverage of E[1 - max U], the U being four
    Beta(1, 19) levels; chosen on other noise it is that of one setting, 19/20.
    """
    x, trials = np.zeros((19, 4), np.float32), 400
    coverage = {"calibration": [], "tuning": []}
    for seed in range(trials):
        scores = draw(Gaussian(1.0), x, 1, phase="calibration", seed=seed)[:, 0]
        for phase, found in coverage.items():
            seen = draw(Gaussian(1.0), x, 1, phase=phase, seed=seed)[:, 0]
            chosen = seen.min(axis=0).argmax()
            found.append(stats.norm.sf(scores[:, chosen].min()))
    # E[max U] = integral of 1 - (1 - (1 - t)^19)^4, term by term.
    terms = [math.comb(4, k) * (-1) ** (k + 1) / (19 * k + 1) for k in range(1, 5)]
    fitted = 1 - sum(terms)
    assert fitted < 0.91
    for phase, expected in (("calibration", fitted), ("tuning", 0.95)):
        mean, error = np.mean(coverage[phase]), np.std(coverage[phase]) / math.sqrt(trials)
        assert abs(mean - expected) < 5 * error, phase
