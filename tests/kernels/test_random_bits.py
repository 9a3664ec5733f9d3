"""Discrete noise from 128 random bits: what decides ties, and how far the laws are from theirs."""

import ctypes
import itertools
import math
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_noise import Key, words

from bincp import certify
from bincp._utils.levels import float_above, float_below
from bincp.balls import L0, L1, CategoricalFlips, Flips
from bincp.noise import Keys, draw
from bincp.noise._ablation import _Deletion
from bincp.noise._keys import one_below
from bincp.radii import flip_grid
from bincp.smoothing import (
    Ablation,
    BandAblation,
    CategoricalFlip,
    Deletion,
    Joint,
    SparseFlip,
    SplittingNoise,
)

ROOT = Path(__file__).parents[2]
STREAMS = (0, 0x80, 0x10, 0x90)  # of the four words of an element
BITS = 2**128

# The functions of the kernels that settle ties, which come too seldom to be met in rows.
WRAPPERS = """
#include "noise/laws.c"
uint32_t rest(const uint32_t *low, bincp_noise_key key, size_t j)
{
    return rest_is_below(low, key, j);
}
uint64_t number(uint64_t n, bincp_noise_key key, uint32_t stream, size_t j, uint64_t first)
{
    return below(n, key, stream, j, first);
}
void split(double p, uint64_t *words)
{
    const threshold made = threshold_of(p);
    words[0] = made.high;
    for (int i = 0; i < 3; i++) {
        words[i + 1] = made.low[i];
    }
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("kernels")
    source, library = folder / "wrappers.c", folder / "wrappers.so"
    source.write_text(WRAPPERS)
    files = [str(source), f"{ROOT}/csrc/noise/philox.c"]
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", "-ffp-contract=off", f"-I{ROOT}/csrc"]
    subprocess.run([gcc, *flags, *files, "-o", str(library), "-lm"], check=True)
    lib = ctypes.CDLL(str(library))
    lib.number.restype = ctypes.c_uint64
    return lib


def element_words(j, streams=STREAMS, **key):
    return [int(words(j + 1, stream=s, **key)[j]) for s in streams]


def joined(numbers):
    value = 0
    for number in numbers:
        value = value << 32 | number
    return value


seeds = st.integers(0, 2**64 - 1)


@given(st.one_of(st.floats(1e-300, 1), st.floats(1e-45, 1e-9), st.sampled_from([0.0, 1.0])))
@example(2.0**-128)
@example(2.0**-129)
@example(math.nextafter(2.0**-75, 0))
@example(math.nextafter(1, 0))
def test_thresholds_are_probabilities_to_128_bits(kernels, p):
    parts = (ctypes.c_uint64 * 4)()
    kernels.split(ctypes.c_double(p), parts)
    assert joined(list(parts)) == int(Fraction(p) * BITS)
    assert all(part < 2**32 for part in parts[1:])
    if p >= 2.0**-76:
        assert Fraction(joined(list(parts)), BITS) == Fraction(p)


@given(seed=seeds, j=st.integers(0, 130), level=st.integers(0, 3), change=st.integers(-1, 1))
@settings(deadline=None, max_examples=60)
def test_ties_of_flips_are_settled_word_by_word(kernels, seed, j, level, change):
    """A threshold that has as many words of the element as the level says."""
    key = {"seed": seed, "id": 2**40 + 3, "number": 5}
    own = element_words(j, STREAMS[1:], **key)
    low = [*own[:level], *([7] * (3 - level))]
    if level:
        low[level - 1] = min(max(low[level - 1] + change, 0), 2**32 - 1)
    got = kernels.rest(
        (ctypes.c_uint32 * 3)(*low),
        Key(seed=seed, id=key["id"], draw=5, stream=0),
        ctypes.c_size_t(j),
    )
    assert got == (joined(own) < joined(low))


@given(
    seed=seeds,
    j=st.integers(0, 130),
    n=st.one_of(st.integers(1, 20), st.integers(1, 2**31 - 1), st.sampled_from([2**24 - 1])),
    data=st.data(),
)
@settings(deadline=None, max_examples=150)
def test_numbers_below_a_bound_are_those_of_128_bits(kernels, seed, j, n, data):
    """The first words lie just below a multiple of 2^64 / n, where others count, or anywhere."""
    place = data.draw(st.integers(1, n))
    first = data.draw(st.one_of(seeds, st.just(-(-place * 2**64 // n) - 1)))
    stream = data.draw(st.sampled_from([0, 1, 0x40, 0x46]))
    got = kernels.number(
        ctypes.c_uint64(n),
        Key(seed=seed, id=9, draw=2, stream=stream & 15),
        ctypes.c_uint32(stream),
        ctypes.c_size_t(j),
        ctypes.c_uint64(first),
    )
    streams = [stream | 0x10, stream | 0x90]
    more = joined(element_words(j, streams, seed=seed, id=9, number=2))
    assert got == (first << 64 | more) * n >> 128


def test_ties_go_both_ways(kernels):
    """The third and fourth word move the number up, or leave it, each in some cases."""
    n, key = 1_500_000_001, Key(seed=3, id=0, draw=0, stream=0)
    firsts = [-(-(place * 2**64) // n) - 1 for place in range(1, 50)]  # u n is below `place`
    first = min(firsts, key=lambda word: abs(2**64 - word * n % 2**64 - n // 2))
    number, rest = divmod(first * n, 2**64)
    more = [joined(element_words(j, [0x10, 0x90], seed=3, id=0, number=0)) for j in range(60)]
    expected = [number + (rest + (word * n >> 64) >= 2**64) for word in more]
    arguments = (ctypes.c_uint64(n), key, ctypes.c_uint32(0))
    got = [
        kernels.number(*arguments, ctypes.c_size_t(j), ctypes.c_uint64(first)) for j in range(60)
    ]
    assert got == expected
    assert set(got) == {number, number + 1}


class FakeKeys:
    """Keys of one row each, with these words."""

    def __init__(self, rows):
        self.rows = np.array(rows, np.uint64)

    def words(self, n):
        return self.rows[:, :n]

    def __getitem__(self, rows):
        return FakeKeys(self.rows[rows])


@given(bound=st.integers(1, 2**31 - 1), data=st.data())
@example(bound=1, data=None)
@settings(deadline=None)
def test_a_copy_is_chosen_by_as_many_words_as_it_takes(bound, data):
    rows = [[2**64 - 1] * 7 + [0], [0] * 8]
    if data is not None:
        for n_words in (1, 2, 3):  # just below a multiple of 1 / bound in so many words
            place = data.draw(st.integers(1, bound))
            word = -(-place * 2 ** (64 * n_words) // bound) - 1
            head = word.to_bytes(8 * n_words, "big")
            tail = data.draw(st.lists(seeds, min_size=8 - n_words, max_size=8 - n_words))
            rows.append([*np.frombuffer(head, ">u8").tolist(), *tail])
    got = one_below(FakeKeys(rows), bound)
    whole = [int.from_bytes(np.array(row, ">u8").tobytes(), "big") for row in rows]
    assert got.tolist() == [word * bound >> 512 for word in whole]


def test_copies_are_those_of_the_first_word():
    keys = Keys(5, "test", np.arange(500), np.zeros(500, int))
    for bound in (1, 2, 3, 127, 1024, 2**31 - 1):
        expected = [int(word) * bound >> 64 for word in keys.words(1)[:, 0]]
        assert one_below(keys, bound).tolist() == expected == keys.integers(1, bound)[:, 0].tolist()


def test_ties_of_deletions_are_settled_by_64_more_bits():
    keys = Keys(0, "test", [0], [0])
    n = 2**20
    row = keys.words(n)[0]
    small = np.flatnonzero(row < 2**47)  # so that a double has bits beyond their 64
    assert len(small) > 2
    outcomes = set()
    for j in small.tolist():
        more = joined(element_words(j, [0x11, 0x91], seed=0, id=0, number=0))
        for low in (1, 31, 32, 33, 62):
            p = float(Fraction(int(row[j]) * 64 + low, 2**70))
            assert Fraction(p) == Fraction(int(row[j]) * 64 + low, 2**70)
            spared = _Deletion(Deletion(p))._spared(keys, j + 1)[0]
            expected = (int(row[j]) << 64 | more) >= Fraction(p) * BITS
            assert spared[j] == expected
            np.testing.assert_array_equal(spared[:j], row[:j] >= np.uint64(row[j]))
            outcomes.add(expected)
    assert outcomes == {False, True}


def test_deletions_are_rounded_up():
    for p in (1e-300, 2.0**-130, 0.3, math.nextafter(1, 0)):
        sampler = _Deletion(Deletion(p))
        drawn = Fraction(sampler.high << 64 | sampler.low, BITS)
        assert Fraction(p) <= drawn < Fraction(p) + Fraction(1, BITS)
    x = np.ones((1, 50), np.float32)
    assert (draw(Deletion(1.0), x, 3, phase="test") == 0).all()
    assert (draw(Deletion(0.0), x, 3, phase="test") == 1).all()


# ---- total variation ---------------------------------------------------------------------------


def total_variation(first, second):
    return sum(abs(a - b) for a, b in zip(first, second, strict=True)) / 2


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 10, 100, 256, 257, 1000])
def test_choices_among_categories_are_charged(k):
    """The masses of floor(u n) for u of 128 bits are whole numbers of 2^-128."""
    n = k - 1
    ends = [-(-i * BITS // n) for i in range(n + 1)]
    drawn = [Fraction(b - a, BITS) for a, b in itertools.pairwise(ends)]
    distance = total_variation(drawn, [Fraction(1, n)] * n)
    charge = Fraction(CategoricalFlip(k, 0.25, 0.5).sampling_error())
    assert distance * 2**34 <= charge
    assert (charge == 0) == (distance == 0)
    assert CategoricalFlip(k, 1e-40, 0.5).sampling_error() == charge + Fraction(1, 2**94)


@pytest.mark.parametrize("bits", [3, 5])
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 7])
def test_sets_of_coordinates_are_charged(dim, bits):
    """Selection sampling from words of so few bits, enumerated: at most dim 2^-bits away."""
    for keep in range(1, dim + 1):
        laws = {(): Fraction(1)}
        for j in range(dim):
            left, following = dim - j, {}
            for chosen, mass in laws.items():
                missing = keep - len(chosen)
                kept = Fraction(-(-(missing << bits) // left), 2**bits)
                assert kept * 2**bits == sum(
                    word * left >> bits < missing for word in range(2**bits)
                )
                following[(*chosen, j)] = mass * kept
                following[chosen] = mass * (1 - kept)
            laws = {chosen: mass for chosen, mass in following.items() if mass}
        sets = list(itertools.combinations(range(dim), keep))
        assert set(laws) <= set(sets)
        uniform = [Fraction(1, len(sets))] * len(sets)
        distance = total_variation([laws.get(chosen, Fraction(0)) for chosen in sets], uniform)
        assert distance <= Fraction(dim, 2**bits)
        charge = Ablation(keep, dim).sampling_error()
        assert Fraction(charge) == Fraction(dim, 2**128)


@pytest.mark.parametrize("p", [0.3, 0.01, 1.0])
def test_flips_are_charged(p):
    """Flips of so few bits, enumerated: n rounded probabilities are n 2^-bits away at most."""
    n, bits = 4, 5
    exact, drawn = Fraction(p), Fraction(int(Fraction(p) * 2**bits), 2**bits)
    patterns = list(itertools.product([0, 1], repeat=n))
    laws = [
        [math.prod(q if flip else 1 - q for flip in pattern) for pattern in patterns]
        for q in (exact, drawn)
    ]
    assert total_variation(*laws) <= Fraction(n, 2**bits)


def test_flips_of_doubles_that_are_rounded_are_charged():
    assert SparseFlip(0.01, 0.6).sampling_error() == 0
    assert SparseFlip(math.nextafter(2.0**-75, 0), 0.0).sampling_error() == 0
    assert SparseFlip(0.6, math.nextafter(2.0**-76, 0)).sampling_error() == 2.0**-94
    assert SparseFlip(2.0**-128, 1.0).sampling_error() == 0
    both = Joint(SparseFlip(1e-30, 0.6), CategoricalFlip(4, 0.1, 0.6))
    assert Fraction(both.sampling_error()) >= Fraction(1, 2**94) + Fraction(3, 2**96)
    assert both.sampling_error() < 1.01 * (2.0**-94 + 3 * 2.0**-96)


@pytest.mark.parametrize(
    ("scheme", "ball"),
    [
        (SparseFlip(1e-30, 0.6), Flips(1, 2)),
        (CategoricalFlip(4, 0.1, 0.6), CategoricalFlips(1, 0, 0)),
        (Ablation(45, 784), L0(3)),
    ],
    ids=repr,
)
def test_certificates_pay(scheme, ball, monkeypatch):
    """A bound is that of the law at p - delta, less delta, in exact numbers rounded down."""
    certificate, delta = certify(scheme, ball), Fraction(scheme.sampling_error())
    described = certificate.describe()
    assert described["charge"] == delta > 0
    assert described["assumes"] == "nothing"
    monkeypatch.setattr(type(scheme), "sampling_error", lambda _: 0.0)
    law = certify(scheme, ball)
    assert "charge" not in law.describe()
    for p in (0.0, 1e-30, 0.1, 0.5, 0.9, 1.0):
        below = float_below(max(Fraction(p) - delta, Fraction(0)))
        lower = max(Fraction(law.lower(below)) - delta, Fraction(0))
        assert certificate.lower(p) == float_below(lower)
        above = float_above(min(Fraction(p) + delta, Fraction(1)))
        upper = min(Fraction(law.upper(above)) + delta, Fraction(1))
        assert certificate.upper(p) == float_above(upper)


def test_schemes_that_are_drawn_exactly_pay_nothing():
    for scheme in (BandAblation(4, 32), SplittingNoise(0.3), Deletion(0.1), SparseFlip(0.1, 0.2)):
        assert scheme.sampling_error() == 0
        assert scheme.assumes() == "nothing"


@pytest.mark.parametrize("p", [[0.0, 0.3, 0.9, 1.0], [0.9, 0.1, 1.0]])
def test_grids_of_flips_pay_as_their_certificates_do(p):
    scheme = SparseFlip(1e-24, 0.6)
    grid = flip_grid(scheme, p, 2, 3)
    for a, d in itertools.product(range(3), range(4)):
        np.testing.assert_array_equal(grid[a, d], certify(scheme, Flips(a, d)).lower(p))
    assert grid[0, 0, -1] < 1


# ---- continuous splitting noise ----------------------------------------------------------------


def cells(x, offsets, length):
    return np.ceil((x - offsets) / length)


def split_offsets(x, y, length):
    """Count the offsets v < 2^53 that split x and y, which are a few steps of an offset apart."""
    h, found = length * 2.0**-53, set()
    for c in range(math.ceil(x / length) - 2, math.ceil(y / length) + 1):
        low, high = ((Fraction(z) - c * Fraction(length)) / Fraction(h) for z in (x, y))
        reach = 16 * math.ceil(max(1, 1 / length))
        v = np.arange(max(math.floor(low) - reach, 0), min(math.ceil(high) + reach, 2**53))
        if len(v):
            offsets = (v.astype(np.float64) + 0.5) * h
            found |= set(v[cells(x, offsets, length) != cells(y, offsets, length)].tolist())
    return len(found)


@given(
    x=st.floats(0, 1, exclude_max=True),
    length=st.one_of(st.floats(0.01, 2), st.sampled_from([0.5, 1.0, 0.1, 1 / 3, 40.0])),
    steps=st.integers(1, 3),
)
@example(x=0.0, length=40.0, steps=1)
@settings(deadline=None, max_examples=200)
def test_close_values_are_split_as_often_as_the_certificate_says(x, length, steps):
    y = x
    for _ in range(steps):
        y = math.nextafter(y, 1)
    share = Fraction(split_offsets(x, y, length), 2**53)
    distance = (Fraction(y) - Fraction(x)) / Fraction(length)
    assert share <= distance + Fraction(1, 2**50) * (1 + 1 / Fraction(length))


def test_close_values_are_split_more_often_than_by_real_numbers():
    """Else nothing would have to be paid: 0 and the least number above it, by the offset 1/2 h."""
    rng = np.random.default_rng(0)
    shares = [
        split_offsets(float(x), math.nextafter(float(x), 1), 0.5) / 2**53
        - (math.nextafter(float(x), 1) - float(x)) / 0.5
        for x in rng.random(200)
    ]
    assert max(shares) > 0


def test_continuous_splitting_pays_for_its_offsets():
    for half_width in (0.05, 0.25, 3.0):
        length = 2 * Fraction(half_width)
        lower = Fraction(certify(SplittingNoise(half_width, grid=None), L1(0.01)).lower(0.9))
        ideal = Fraction(0.9) - Fraction(0.01) / length
        excess = Fraction(2**24, 2**50) * (1 + 1 / length)
        assert ideal - excess - Fraction(1, 2**50) <= lower <= ideal - excess
        assert certify(SplittingNoise(half_width, grid=None), L1(0.0)).lower(0.9) == 0.9
    tiny = certify(SplittingNoise(1e-300, grid=None), L1(0.01))
    assert tiny.lower(0.9) == 0
    x = np.broadcast_to(np.float32(0.5), (1, 2**24 + 1))
    with pytest.raises(ValueError, match=r"at most 2\*\*24 elements an input .* got 16777217"):
        draw(SplittingNoise(0.25, grid=None), x, 1, phase="test")
