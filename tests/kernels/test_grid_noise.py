"""Integer noise on a grid: its tables, its kernel, and the laws that they draw."""

import hashlib
import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from sys import float_info

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_noise import philox

from bincp._core import _noise
from bincp.noise import draw, grid_table
from bincp.noise._alias import Table, alias_columns, masses_of, packed, table_of
from bincp.smoothing import Expp, Gaussian, Laplace, Pareto, Uniform
from bincp.smoothing._grid import ONE, pareto_clip, thresholds
from support import golden

GOLDEN = golden("grid_noise")
STREAMS = (0, 0x40, 0x80, 0xC0)  # of the four words that decide an element


def key_of(law):
    """The arguments of `thresholds` and `table_of` for a law of the golden file."""
    return law["law"].lower(), float.fromhex(law["parameter"]), law["grid"]


def table_named(name):
    law, parameter, grid = re.fullmatch(r"(\w+)\(\w+=(.*), grid=(\d+)\)", name).groups()
    return table_of(law.lower(), float(parameter), int(grid))


def integers(table, *, seed, stream, id, draw, n):  # noqa: A002
    """A row of integer noise."""
    out = np.empty((1, n))
    points = np.zeros((1, n), np.int32)
    where = np.array([id]), np.array([draw]), np.array([0])
    _noise.add_grid_noise(*table, 1, seed, stream, *where, points, out)
    return out[0].astype("<i4")


def row_of(table, row, n):
    names = ("seed", "stream", "id", "draw")
    return integers(table, **{name: int(row[name]) for name in names}, n=n)


def sha256(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def element_words(j, *, seed, stream, id, draw):  # noqa: A002
    """The four words of an element, from the layout that csrc/noise/philox.h documents."""
    counter = (16 * (j // 64) + j % 16, draw, id & 0xFFFFFFFF)
    key = (seed & 0xFFFFFFFF, seed >> 32)
    return [philox((*counter, (stream | s) << 24 | id >> 32), key)[j % 64 // 16] for s in STREAMS]


def drawn(kept, alias, words):
    """The column that 128 random bits choose: the low bits of the first word are a column."""
    bits = (len(kept) - 1).bit_length()
    column = words[0] % 2**bits
    rest = joined(words[0] >> bits, *words[1:])
    return column if rest < kept[column] else alias[column]


def joined(*words):
    """Words of 32 bits as one number, the highest first."""
    return words[0] << 96 | words[1] << 64 | words[2] << 32 | words[3]


# ---- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", GOLDEN["laws"], ids=lambda law: law["name"])
def test_tables_are_the_golden_ones(law):
    above = thresholds(*key_of(law))
    assert len(above) == law["half"]
    digest = hashlib.sha256(b"".join(t.to_bytes(16, "big") for t in above)).hexdigest()
    assert digest == law["sha256_thresholds"]
    masses = masses_of(above)
    assert sum(masses) == ONE
    assert len(masses) == law["cells"]
    assert sum(mass == 0 for mass in masses) == law["empty_cells"]
    for point, mass in law["masses"].items():
        assert masses[int(point) + law["half"]] == int(mass, 16)
    table = table_of(*key_of(law))
    assert len(table.entry) == 2 ** law["m"]
    assert sha256(table.entry.astype("<u4")) == law["sha256_entry"]
    assert sha256(table.low.astype("<u4")) == law["sha256_low"]


def exact(law, s, k):
    """2^128 P(N <= k + 1/2) for noise of scale s, in 420 bits."""
    x = (k + mpmath.mpf(1) / 2) / (mpmath.mpf(s.numerator) / s.denominator)
    if law == "gaussian":
        return ONE * (1 - mpmath.erfc(x / mpmath.sqrt(2)) / 2)
    if law == "laplace":
        return ONE * (1 - mpmath.exp(-x) / 2)
    return ONE * min((x + 1) / 2, 1)


@pytest.mark.parametrize(
    "s", ["0.0026", "0.26", "1", "2.5", "30.6", "63.75", "127.5", "255", "360"]
)
@pytest.mark.parametrize("law", ["gaussian", "laplace", "uniform"])
def test_thresholds_are_the_nearest_integers(law, s):
    steps = Fraction(s)
    above = thresholds(law, s, 1)
    some = range(0, len(above), 1 + len(above) // 60)
    with mpmath.workprec(420):
        for k in {*some, *range(max(len(above) - 3, 0), len(above))}:
            assert abs(above[k] - exact(law, steps, k)) <= mpmath.mpf(1) / 2, k
        assert exact(law, steps, len(above)) >= ONE - mpmath.mpf(1) / 2  # it is 2^128
    assert all(above[k] <= above[k + 1] for k in range(len(above) - 1))
    assert all(t < ONE for t in above)


@pytest.mark.parametrize(
    ("law", "scale", "grid"),
    [
        ("gaussian", 0.12, 255),
        ("gaussian", 0.01, 255),
        ("gaussian", 0.001, 255),
        ("gaussian", 1e-5, 255),
        ("laplace", 0.05, 255),
        ("uniform", 0.25, 255),
        ("uniform", 0.25 * 3**0.5, 255),
    ],
)
def test_total_variation_is_what_is_charged(law, scale, grid):
    above = thresholds(law, scale, grid)
    cells = 2 * len(above) + 1
    with mpmath.workprec(420):
        right = [exact(law, Fraction(scale) * grid, k) for k in range(len(above) + 1)]
        rises = [right[k + 1] - right[k] for k in range(len(above))]
        masses = [*reversed(rises), 2 * right[0] - ONE, *rises]
        outside = 2 * (ONE - right[-1])
        gaps = [abs(a - b) for a, b in zip(masses_of(above), masses, strict=True)]
        distance = (sum(gaps) + outside) / (2 * mpmath.mpf(ONE))
        assert distance <= mpmath.mpf(cells) / ONE
    scheme = {"gaussian": Gaussian, "laplace": Laplace, "uniform": Uniform}[law](scale, grid=grid)
    assert Fraction(scheme.sampling_error()) == Fraction(cells, ONE) * 2**34


CASES = [
    ("expp", 0.5, 255, 4.0),
    ("expp", 0.1, 255, 1.5),
    ("expp", 0.05, 255, 1.0),
    ("expp", 0.3, 100, 2.0),
    ("expp", 0.01, 1, 0.5),
    ("expp", 0.3, 1, 3.3),
    ("expp", 1e-5, 1, 2.0),
    ("expp", 0.4, 100, 1024.0),
    ("expp", 31.7, 3, 7.3),
    ("pareto", 0.5, 255, 4.0),
    ("pareto", 0.02, 255, 1.5),
    ("pareto", 0.01, 1, 0.7),
    ("pareto", 1e-5, 1, 2.0),
    ("pareto", 0.4, 100, 1024.0),
    ("pareto", 100.0, 10, 7.3),
    ("pareto", 1e-30, 3, 5 / 32),
]


def below_of(law, scale, grid, shape):
    """P(N <= k + 1/2) of a law with a shape, as a function of k >= 0."""
    s, shape = Fraction(scale) * grid, mpmath.mpf(shape)

    def expp(x):
        return 1 - mpmath.gammainc(1 / shape, x**shape, regularized=True) / 2

    def pareto(x):
        return 1 - (1 + x) ** -shape / 2

    law = {"expp": expp, "pareto": pareto}[law]
    return lambda k: law((k + mpmath.mpf(1) / 2) * s.denominator / s.numerator)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_thresholds_of_laws_with_a_shape_are_the_nearest_integers(case):
    above, (law, scale, grid, shape) = thresholds(*case), case
    with mpmath.workprec(460):
        below = below_of(*case)
        some = range(0, len(above), 1 + len(above) // 25)
        for k in {*some, *range(max(len(above) - 3, 0), len(above))}:
            assert abs(above[k] - ONE * below(k)) <= mpmath.mpf(1) / 2, k
        # The table ends where the rest is nothing, or where it is cut.
        ends = below(len(above)) >= 1 - mpmath.mpf(1) / (2 * ONE)
        if law == "pareto":
            s = Fraction(scale) * grid
            doublings = mpmath.mpf(2) ** (10 / mpmath.mpf(shape))
            common = (doublings - 1) * s.numerator / s.denominator
            clip = grid + int(mpmath.ceil(common))
            assert pareto_clip(scale, grid, shape) == clip
            ends = ends or len(above) == clip + grid
        assert ends
    assert all(above[k] <= above[k + 1] for k in range(len(above) - 1))
    assert all(t < ONE for t in above)
    scheme = {"expp": Expp, "pareto": Pareto}[law](scale, shape, grid=grid)
    assert Fraction(scheme.sampling_error()) == Fraction(2 * len(above) + 1, ONE) * 2**34


@pytest.mark.parametrize("case", CASES[10:15], ids=str)
def test_clipped_outputs_have_the_law_of_clipped_sums(case):
    """The clipped k + q against the clipped integer next to k + N, for inputs k at the ends."""
    masses, clip, grid = masses_of(thresholds(*case)), pareto_clip(*case[1:]), case[2]
    with mpmath.workprec(460):
        below = below_of(*case)

        def up_to(point):
            """P(rint(N) <= point)."""
            return below(point) if point >= 0 else 1 - below(-point - 1)

        for k in (-grid, 0, grid // 2, grid):
            drawn = Counter()
            for q, mass in enumerate(masses, -(len(masses) // 2)):
                drawn[min(max(k + q, -clip), clip)] += mass
            assert sum(drawn.values()) == ONE
            ends = [mpmath.mpf(0), *(up_to(y - k) for y in range(-clip, clip)), mpmath.mpf(1)]
            exact = [ONE * (high - low) for low, high in pairwise(ends)]
            gaps = [abs(drawn[y] - mass) for y, mass in enumerate(exact, -clip)]
            assert sum(gaps) / 2 <= len(masses)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Expp(0.5, 0.49, grid=255), r"`p` must be in \[1/2, 1024\] with a grid, got 0.49"),
        (lambda: Expp(0.5, 1e300, grid=255), r"`p` must be in \[1/2, 1024\] with a grid"),
        (lambda: Expp(1e300, 3, grid=255), "`scale` must give noise that reaches at most 32767"),
        (lambda: Expp(2.0, 0.5, grid=255), "`scale` must give noise that reaches at most 32767"),
        (lambda: Pareto(0.5, 0.15, grid=255), "`a` must be at least 5/32 with a grid, got 0.15"),
        (lambda: Pareto(5.0, 1, grid=255), "`scale` must give noise that reaches at most 32767"),
        (lambda: Pareto(1e-9, 1, grid=2**15), "`scale` must give noise that reaches at most"),
        (lambda: Pareto(1e-9, 3, grid=0), "`grid` must be in"),
        (lambda: Expp(-1.0, 3, grid=255), "`scale` must be"),
    ],
)
def test_shapes_without_a_table_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_pareto_noise_is_clipped():
    scheme, clip = Pareto(0.05, 1.2, grid=255), pareto_clip(0.05, 255, 1.2)
    levels = np.arange(256, dtype=np.uint8).reshape(2, 128)
    table, n = grid_table(scheme), 4000
    assert table.half == 255 + clip
    noisy = draw(scheme, levels, n, phase="test", seed=2)
    q = [integers(table, seed=2, stream=1, id=1, draw=r, n=128) for r in range(n)]
    sums = np.clip(levels[1].astype(int) + np.array(q), -clip, clip)
    np.testing.assert_array_equal(noisy[1], sums.astype(np.float32) / np.float32(255))
    assert (np.abs(sums) == clip).sum() > 100
    for dtype in (np.float32, np.float64):
        x = (levels / 255).astype(dtype)
        again = draw(scheme, x, 100, phase="test", seed=2)
        assert again.dtype == dtype
        np.testing.assert_array_equal(again.astype(np.float32), noisy[:, :100])
        for beyond in (256 / 255, -256 / 255):
            x[1, 3] = beyond
            with pytest.raises(ValueError, match=r"must be in \[-1, 1\] for Pareto.*\(1, 3\)"):
                draw(scheme, x, 1, phase="test")
        x[1, 3] = -1
        draw(scheme, x, 1, phase="test")


@pytest.mark.parametrize("law", GOLDEN["laws"], ids=lambda law: law["name"])
def test_sampling_errors_are_the_golden_ones(law):
    scheme = {"Gaussian": Gaussian, "Laplace": Laplace, "Uniform": Uniform}[law["law"]]
    made = scheme(float.fromhex(law["parameter"]), grid=law["grid"])
    assert made.sampling_error() == float.fromhex(law["delta"])


@pytest.mark.parametrize(
    ("law", "scale", "grid"),
    [
        ("gaussian", 0.25, 255),
        ("laplace", 0.05, 255),
        ("uniform", 0.3, 255),
        ("gaussian", 1e-5, 255),
    ],
)
def test_columns_have_the_masses_of_the_law(law, scale, grid):
    masses = masses_of(thresholds(law, scale, grid))
    bits = max((len(masses) - 1).bit_length(), 1)
    kept, alias = alias_columns(masses, bits)
    capacity = ONE >> bits
    found = [0] * 2**bits
    for column, (own, other) in enumerate(zip(kept, alias, strict=True)):
        assert 0 <= own < capacity
        found[column] += own
        found[other] += capacity - own
    assert found == masses + [0] * (2**bits - len(masses))
    table = packed(kept, alias, half=0)
    for column, (entry, low) in enumerate(
        zip(table.entry.tolist(), table.low.tolist(), strict=True)
    ):
        words = (entry >> bits, *low)
        assert sum(word << 32 * (3 - i) for i, word in enumerate(words)) == kept[column]
        assert entry % 2**bits == alias[column]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=9), st.integers(4, 6))
def test_columns_of_any_masses(masses, bits):
    """Masses that are few and equal now and then: columns that are exactly full, or empty."""
    unit = ONE // 4096
    masses = [unit * mass for mass in masses]
    masses[0] += ONE - sum(masses)
    kept, alias = alias_columns(masses, bits)
    found = [0] * 2**bits
    for column, (own, other) in enumerate(zip(kept, alias, strict=True)):
        found[column] += own
        found[other] += (ONE >> bits) - own
    assert found == masses + [0] * (2**bits - len(masses))


@pytest.mark.parametrize("limit", GOLDEN["limits"], ids=str)
def test_largest_tables(limit):
    scheme = {"Gaussian": Gaussian, "Laplace": Laplace, "Uniform": Uniform}[limit["law"]]
    if limit["accepted"]:
        scheme(limit["parameter"], grid=limit["grid"])
        assert (
            2 * len(thresholds(limit["law"].lower(), limit["parameter"], 1)) + 1 == limit["cells"]
        )
        return
    with pytest.raises(ValueError, match=r"`\w+` must give noise that reaches at most 32767 grid"):
        scheme(limit["parameter"], grid=limit["grid"])


@pytest.mark.parametrize("scheme", [Gaussian, Laplace, Uniform])
@pytest.mark.parametrize("scale", [1e9, 1e18, 1e300, 1e308, float_info.max])
def test_scales_far_too_large_are_refused_at_once(scheme, scale):
    with pytest.raises(ValueError, match="must give noise that reaches"):
        scheme(scale, grid=255)
    scheme(5e-324, grid=1)


# ---- the kernel ----------------------------------------------------------------------------------


def test_golden_rows():
    for row in GOLDEN["rows"]:
        q = row_of(table_named(row["law"]), row, row["n"])
        assert q[:48].tolist() == row["first_q"]
        assert sha256(q) == row["sha256_int32"]


def test_golden_ties():
    for tie in GOLDEN["ties"]:
        q = row_of(table_named(tie["law"]), tie, tie["element"] + 1)
        assert q[-1] == tie["q"]


def test_golden_tables_of_ties():
    for row in GOLDEN["synthetic"]:
        kept, alias = [0] * 2 ** row["m"], list(range(2 ** row["m"]))
        for column, threshold, other in row["columns"]:
            kept[column], alias[column] = int(threshold, 16), other
        table = packed(kept, alias, half=row["half"])
        assert sha256(table.entry.astype("<u4")) == row["sha256_entry"]
        q = row_of(table, row, row["n"])
        assert q[: len(row["q"])].tolist() == row["q"]
        assert sha256(q) == row["sha256_int32"]


def test_golden_outputs():
    one = Table(np.array([0, 1], np.uint32), np.zeros((2, 3), np.uint32), 0)
    where = (np.array([0]),) * 3
    for grid, k, q, single, double in GOLDEN["outputs"]["rows"]:
        for dtype, bits in ((">f4", single), (">f8", double)):
            out = np.empty((1, 1), dtype[1:])
            # Both columns are one point, which is -half.
            table = (np.zeros_like(one.entry), one.low, -q)
            _noise.add_grid_noise(*table, grid, 0, 0, *where, np.array([[k]], np.int32), out)
            assert out.astype(dtype).tobytes().hex() == bits


def test_golden_hash_of_512_rows():
    wanted = GOLDEN["hash"]
    levels = (np.arange(3072) % 256).astype(np.uint8)
    x = np.broadcast_to(levels, (512, 3072))
    noisy = draw(Gaussian(0.25, grid=255), x, 1, phase="test", seed=7)
    assert noisy.dtype == np.float32
    assert sha256(noisy.astype("<f4")) == wanted["sha256_float32_little_endian"]


@given(
    seed=st.integers(0, 2**64 - 1),
    id=st.integers(0, 2**56 - 1),
    number=st.integers(0, 2**32 - 1),
    stream=st.sampled_from([0, 1, 6]),
    n=st.integers(1, 150),
    law=st.sampled_from(
        [("gaussian", 0.25), ("laplace", 0.12), ("uniform", 0.3), ("gaussian", 9.7)]
    ),
)
@settings(deadline=None, max_examples=40)
def test_kernel_draws_the_column_of_128_bits(seed, id, number, stream, n, law):  # noqa: A002
    masses = masses_of(thresholds(*law, 255))
    kept, alias = alias_columns(masses, max((len(masses) - 1).bit_length(), 1))
    key = {"seed": seed, "stream": stream, "id": id, "draw": number}
    expected = [drawn(kept, alias, element_words(j, **key)) - len(masses) // 2 for j in range(n)]
    assert integers(table_of(*law, 255), **key, n=n).tolist() == expected


def columns_of_ties(key, *, level, bits, n):
    """Thresholds that agree with the words of elements in so many words, and by one less."""
    size = 2**bits
    kept, alias = [0] * size, [(7 * c + 1) % size for c in range(size)]
    for j in range(n):
        words = element_words(j, **key)
        column = words[0] % size
        words[0] >>= bits
        if level < 4:
            words[level] = max(words[level] + (-1) ** j, 0) & (
                0xFFFFFFFF >> (bits if level == 0 else 0)
            )
        kept[column] = joined(*words)
    return kept, alias


@given(seed=st.integers(0, 2**64 - 1), level=st.integers(0, 4), bits=st.integers(1, 16))
@settings(deadline=None, max_examples=60)
def test_kernel_settles_ties_at_every_level(seed, level, bits):
    key, n = {"seed": seed, "stream": 1, "id": 5, "draw": 3}, 130
    kept, alias = columns_of_ties(key, level=level, bits=bits, n=n)
    expected = [drawn(kept, alias, element_words(j, **key)) for j in range(n)]
    assert integers(packed(kept, alias, half=0), **key, n=n).tolist() == expected


def test_first_elements_do_not_depend_on_the_length_or_on_x():
    table = table_of("gaussian", 0.25, 255)
    key = {"seed": 3, "stream": 0, "id": 9, "draw": 2}
    long = integers(table, **key, n=200)
    for n in (1, 63, 64, 65, 128, 199):
        np.testing.assert_array_equal(integers(table, **key, n=n), long[:n])
    levels = np.random.default_rng(0).integers(0, 256, (1, 200)).astype(np.uint8)
    noisy = draw(Gaussian(0.25, grid=255), levels, 3, phase="calibration", indices=[9], seed=3)[
        0, 2
    ]
    expected = (levels[0] + long).astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(noisy, expected)


@pytest.mark.parametrize(
    ("law", "scale", "shape"),
    [
        ("gaussian", 0.12, 0.0),
        ("laplace", 0.05, 0.0),
        ("uniform", 0.3, 0.0),
        ("expp", 0.2, 3.0),
        ("pareto", 0.1, 2.0),
    ],
)
def test_frequencies_are_the_masses(law, scale, shape):
    table = table_of(law, scale, 255, shape)
    q = integers(table, seed=1, stream=0, id=0, draw=0, n=2**20)
    masses = masses_of(thresholds(law, scale, 255, shape))
    expected = np.array([float(Fraction(mass, ONE)) for mass in masses]) * q.size
    counts = np.bincount(q + table.half, minlength=len(masses)).astype(float)
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] == 0:
        assert counts[-1] == 0
        counts, expected = counts[:-1], expected[:-1]
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-6


@pytest.mark.parametrize(
    ("entry", "low", "message"),
    [
        (np.zeros(3, np.uint32), np.zeros((3, 3), np.uint32), "`entry` must have 2, 4"),
        (np.zeros(1, np.uint32), np.zeros((1, 3), np.uint32), "`entry` must have 2, 4"),
        (np.zeros(2**17, np.uint32), np.zeros((2**17, 3), np.uint32), "`entry` must have 2, 4"),
        (np.zeros(4, np.uint32), np.zeros((2, 3), np.uint32), "2 rows of 3"),
        (np.zeros(4, np.uint32), np.zeros((4, 2), np.uint32), "4 rows of 2"),
    ],
)
def test_tables_of_another_shape_are_refused(entry, low, message):
    zero = np.zeros(1, np.int64)
    points, out = np.zeros((1, 4), np.int32), np.zeros((1, 4), np.float32)
    with pytest.raises(ValueError, match=message):
        _noise.add_grid_noise(entry, low, 1, 255, 0, 0, zero, zero, zero, points, out)


def test_sources_beyond_the_points_are_refused():
    table = table_of("uniform", 0.3, 255)
    zero = np.zeros(1, np.int64)
    points, out = np.zeros((1, 4), np.int32), np.zeros((1, 4), np.float32)
    for source in (-1, 1):
        with pytest.raises(ValueError, match="`sources` must be rows of `x`, below 1"):
            _noise.add_grid_noise(*table, 255, 0, 0, zero, zero, zero + source, points, out)
    with pytest.raises(ValueError, match="rows of 4"):
        _noise.add_grid_noise(*table, 255, 0, 0, zero, zero, zero, points[:, :3].copy(), out)


def test_tables_of_schemes_are_public():
    table = grid_table(Gaussian(0.25, grid=255))
    assert table is table_of(*Gaussian(0.25, grid=255).grid_law())
    with pytest.raises(ValueError, match="read-only"):
        table.entry[0] = 1
    for scheme in (Gaussian(0.25), Expp(0.5, 3), "gaussian"):
        with pytest.raises(
            TypeError, match=r"`smoothing` must be Gaussian, .* Expp or Pareto with a grid, got"
        ):
            grid_table(scheme)


# ---- inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scheme",
    [
        Gaussian(0.25, grid=255),
        Laplace(0.1, grid=255),
        Uniform(0.5, grid=255),
        Expp(0.5, 3, grid=255),
    ],
)
def test_grey_levels_are_their_255ths(scheme):
    levels = np.arange(256, dtype=np.uint8).reshape(2, 128)
    wide = levels.astype(np.float64) / 255
    noisy = draw(scheme, levels, 5, phase="test", seed=2)
    assert noisy.dtype == np.float32
    single = draw(scheme, levels / np.float32(255), 5, phase="test", seed=2)
    np.testing.assert_array_equal(noisy, single)
    np.testing.assert_array_equal(draw(scheme, wide, 5, phase="test", seed=2).astype("f4"), noisy)


@pytest.mark.parametrize("grid", [1, 100, 255, 1023, 65535, 2**20])
def test_grid_points_are_taken_in_both_dtypes(grid):
    k = np.array([-(2**20), -65535, -1023, -1, 0, 1, 254, 1022, 1024, 4095, 2**20 - 1, 2**20])
    scheme = Uniform(0.25 / grid, grid=grid)  # its noise is 0
    for dtype in (np.float32, np.float64):
        x = (k / grid).astype(dtype)[None]
        np.testing.assert_array_equal(
            draw(scheme, x, 1, phase="test")[0], (k.astype(dtype) / dtype(grid))[None]
        )
        for moved in (x * dtype(1 + 2**-24), np.nextafter(x, dtype(1))):
            np.testing.assert_array_equal(
                draw(scheme, moved, 1, phase="test")[0], (k.astype(dtype) / dtype(grid))[None]
            )


@pytest.mark.parametrize(
    "value", [0.5, 1e-6, 1 / 255 + 1e-7, 2**20 / 255 + 1 / 255, np.nan, np.inf, -np.inf, 1e30]
)
def test_other_inputs_are_refused(value):
    x = np.zeros((2, 3), np.float32)
    x[1, 2] = value
    with pytest.raises(ValueError, match=r"`x` must be multiples of 1/255, .*, got .* \(1, 2\)"):
        draw(Gaussian(0.25, grid=255), x, 1, phase="test")


def test_other_dtypes_are_refused():
    x = np.zeros((2, 3), np.uint8)
    for scheme in (Gaussian(0.25), Gaussian(0.25, grid=256), Laplace(0.25)):
        with pytest.raises(ValueError, match=r"`x` must be float32 or float64 .* got uint8"):
            draw(scheme, x, 1, phase="test")
    with pytest.raises(ValueError, match=r"float32 or float64 or uint8 .* got int8"):
        draw(Gaussian(0.25, grid=255), x.astype(np.int8), 1, phase="test")
