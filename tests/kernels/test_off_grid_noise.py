"""Gaussian noise for inputs off the grid: sums are rounded as real numbers would be."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_grid_noise import drawn
from test_noise import philox

from bincp._core import _noise
from bincp.noise import draw
from bincp.noise._alias import alias_columns, masses_of, table_of
from bincp.smoothing import Gaussian
from bincp.smoothing._grid import thresholds
from support import golden

SCHEME = Gaussian(0.25, grid=255, off_grid=True)


def fnv1a(data):
    result = 14695981039346656037
    for byte in data:
        result = (result ^ byte) * 1099511628211 % 2**64
    return result


def rows(scheme, x, n, *, seed=0):
    return draw(scheme, x[None], n, phase="test", seed=seed)[0]


def step_probability(s, q, f):
    """P(the sum lies in the next cell in the direction of f, given that the noise is in that of q).

    The cell and its part beyond the end are intervals of a standard normal number.
    """
    along = q if f >= 0 else -q
    end = (mpmath.mpf(along) + mpmath.mpf(1) / 2) / s
    start = (mpmath.mpf(along) - mpmath.mpf(1) / 2) / s
    part = end - abs(f) / s

    def between(low, high):  # both tails without cancellation
        if low > 0:
            low, high = -high, -low
        return mpmath.ncdf(high) - mpmath.ncdf(low)

    return between(part, end) / between(start, end)


def words(j, stream, seed, draw_number):
    counter = (16 * (j // 64) + j % 16, draw_number, 0)
    key = (seed & 0xFFFFFFFF, seed >> 32)
    extra = (0, 0x40, 0x80, 0xC0, 0x30, 0x20)
    return [philox((*counter, (stream | s) << 24), key)[j % 64 // 16] for s in extra]


@given(
    seed=st.integers(0, 2**64 - 1),
    law=st.sampled_from([(0.25, 255), (4.0, 1), (0.12, 100), (9.7, 255), (0.004, 1000)]),
    dtype=st.sampled_from([np.float32, np.float64]),
    spread=st.sampled_from([1.0, 2.0**-20, 30.0]),
)
@settings(deadline=None, max_examples=25)
def test_kernel_takes_the_step_of_53_bits(seed, law, dtype, spread):
    sigma, grid = law
    s, n = Fraction(sigma) * grid, 150
    x = (spread * np.random.default_rng(seed).uniform(-1, 1, n)).astype(dtype)
    masses = masses_of(thresholds("gaussian", sigma, grid))
    kept, alias = alias_columns(masses, (len(masses) - 1).bit_length())
    made = rows(Gaussian(sigma, grid=grid, off_grid=True), x, 3, seed=seed)[2]
    with mpmath.workprec(300):
        for j in range(n):
            *first, high, low = words(j, 1, seed, 2)
            q = drawn(kept, alias, first) - len(masses) // 2
            place = Fraction(float(x[j])) * grid
            k = round(place)
            f = place - k
            b = step_probability(
                mpmath.mpf(s.numerator) / s.denominator,
                q,
                mpmath.mpf(f.numerator) / f.denominator,
            )
            u = mpmath.mpf(high << 21 | low >> 11) / 2**53
            step = (1 if f > 0 else -1) * int(u < b)
            assert abs(u - b) > mpmath.mpf(2) ** -49  # else either is right
            assert made[j] == dtype(k + q + step) / dtype(grid)


def test_golden_hashes():
    wanted = golden("grid_noise")["hash_any_float"]
    j = np.arange(3072, dtype=np.int64)
    inputs = {
        "x = float32(2654435761 j mod 1000003) / float32(1000003)": (
            (2654435761 * j % 1000003).astype("f4") / np.float32(1000003)
        ),
        "x = float32(j % 256) / float32(255)": (j % 256).astype("f4") / np.float32(255),
    }
    for name, x in inputs.items():
        noisy = draw(SCHEME, np.broadcast_to(x, (512, 3072)), 1, phase="test", seed=7)
        found = f"{fnv1a(noisy.astype('<f4').tobytes()):016x}"
        assert found == wanted[name]["fnv1a_bytes_basis_14695981039346656037"]


@pytest.mark.parametrize("offset", [0.0, 0.1, -0.25, 0.4999, -0.5, 2.0**-20])
@pytest.mark.parametrize("sigma", [4.0, 20.0])
def test_frequencies_are_those_of_rounded_real_sums(offset, sigma):
    x = np.full(2**20, 3 + offset)
    made = rows(Gaussian(sigma, grid=1, off_grid=True), x, 1, seed=5)[0].astype(int)
    points = np.arange(made.min(), made.max() + 1)
    ends = np.append(points - 0.5, points[-1] + 0.5)
    ends[[0, -1]] = -np.inf, np.inf
    expected = np.diff(stats.norm.cdf(ends, 3 + offset, sigma)) * made.size
    counts = np.bincount(made - points[0]).astype(float)
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(counts, expected * made.size / expected.sum()).pvalue > 1e-6


def test_the_sum_of_its_parts_does_not_depend_on_lengths_or_sources():
    x = np.random.default_rng(1).standard_normal((3, 200))
    long = draw(SCHEME, x, 2, phase="test", seed=3)
    for n in (1, 63, 64, 65, 199):
        np.testing.assert_array_equal(
            draw(SCHEME, x[:, :n], 2, phase="test", seed=3), long[..., :n]
        )
    alone = draw(SCHEME, x[2:], 2, phase="test", indices=[2], seed=3)
    np.testing.assert_array_equal(alone[0], long[2])


def test_memory_of_another_thread_may_hold_anything():
    """The kernel makes something of every number; its inputs are checked before."""
    x = np.array([[np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, 2.0**63, -(2.0**31)]])
    out, zero = np.empty_like(x), np.zeros(1, np.int64)
    table = table_of("gaussian", 0.25, 255)
    _noise.add_off_grid_noise(*table, 255, 63.75, 0, 0, zero, zero, zero, x, out)
    assert np.isfinite(out).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30, 4113.0])
def test_inputs_too_large_are_refused(value):
    x = np.zeros((2, 3))
    x[1, 0] = value
    with pytest.raises(ValueError, match=r"`x` must be at most 2\*\*20/255 in size .* \(1, 0\)"):
        draw(SCHEME, x, 1, phase="test")


def test_too_many_elements_are_refused():
    x = np.broadcast_to(np.float32(0), (1, 2**20 + 1))
    with pytest.raises(ValueError, match=r"`x` must have at most 2\*\*20 elements an input"):
        draw(SCHEME, x, 1, phase="test")
    with pytest.raises(ValueError, match="must be float32 or float64"):
        draw(SCHEME, np.zeros((1, 2), np.uint8), 1, phase="test")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"off_grid": True}, ValueError, "`off_grid` must be False where `grid` is None, got True"),
        ({"grid": 15, "off_grid": True}, ValueError, "`sigma` must be at least 4 / grid"),
        ({"grid": 255, "off_grid": 1}, TypeError, "`off_grid`"),
        ({"grid": 0}, ValueError, "`grid` must be"),
        ({"grid": 2**20 + 1}, ValueError, "`grid` must be"),
        ({"grid": 255.0}, TypeError, "`grid` must be"),
        ({"grid": True}, TypeError, "`grid` must be"),
    ],
)
def test_impossible_grids_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Gaussian(0.25, **arguments)
