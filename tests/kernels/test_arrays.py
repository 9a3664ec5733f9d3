"""The array edge: what is taken for scores, counts and probabilities, and what is copied."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bincp._utils.arrays import (
    SCORE_DTYPES,
    as_array,
    as_counts,
    as_probabilities,
    as_scores,
    is_tensor,
    round_to,
    where,
    widen_bfloat16,
)

torch = pytest.importorskip("torch")

SPECIAL = [0.0, -0.0, 1.0, -2.5, 1e-40, 3.3e38, -3.4e38, 65504.0, math.inf, -math.inf, math.nan]


# ---- rounding to a score dtype --------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """Equal values, NaN and the signs of zeros included."""
    a, b = np.asarray(a), np.asarray(b)
    signs = (np.signbit(a) == np.signbit(b)) | np.isnan(a)
    return bool(np.array_equal(a, b, equal_nan=True) and signs.all())


def nearest_bfloat16(value: float) -> float:
    """Nearest bfloat16, ties to even, by exact comparison of the neighbours in its 2^16 values."""
    if math.isnan(value) or math.isinf(value):
        return value
    exact = abs(Fraction(value))
    low, high = 0, 0x7F80  # bits of 0 and of infinity, which stands for 2^128 here
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bfloat16(middle) <= exact else (low, middle)
    below, above = exact - bfloat16(low), bfloat16(high) - exact
    bits = low if below < above or (below == above and low % 2 == 0) else high
    return math.copysign(math.inf if bits == 0x7F80 else float(bfloat16(bits)), value)


def bfloat16(bits: int) -> Fraction:
    exponent, mantissa = divmod(bits, 128)
    return (mantissa + 128 * (exponent > 0)) * Fraction(2) ** (max(exponent, 1) - 134)


@given(st.floats())
@example(1.00390625)  # halfway: to even
@example(1.01171875)  # halfway: to even, upwards
@example(1.00390625 + 1e-12)  # beyond halfway, but not in float32
@example(1.01171875 - 1e-12)
@example(3.3961775292304601e38)  # halfway to infinity
@example(3.3961775292304597e38)
@example(4.6e-41)  # halfway to the smallest subnormal
@example(1e300)
@example(5e-324)
def test_bfloat16_is_rounded_once(value: float) -> None:
    rounded = round_to("bfloat16", value)
    assert rounded.dtype == np.float32
    assert same(rounded, np.float32(nearest_bfloat16(value)))


def test_bfloat16_as_torch_rounds_float32() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 100_000, dtype=np.uint64).astype(np.uint32)
    values = np.concatenate([bits.view(np.float32), np.array(SPECIAL, dtype=np.float32)])
    ours = round_to("bfloat16", values)
    assert same(ours, torch.from_numpy(values).to(torch.bfloat16).float().numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_other_dtypes_as_numpy_rounds(dtype: str) -> None:
    values = np.array([*SPECIAL, 0.1, 1 / 3, 1e5, 1e300])
    with np.errstate(over="ignore"):
        assert same(round_to(dtype, values), values.astype(dtype))
    assert round_to(dtype, 0.7).dtype == dtype


@pytest.mark.parametrize("dtype", SCORE_DTYPES)
def test_a_rounded_threshold_meets_the_scores_it_came_from(dtype: str) -> None:
    """float32(0.7) >= 0.7 is false in double, so the threshold is rounded first."""
    scores = round_to(dtype, [0.3, 0.7, 0.7, 0.9])
    assert (scores >= round_to(dtype, 0.7)).sum() == 3
    assert same(round_to(dtype, scores), scores)


@pytest.mark.parametrize("dtype", SCORE_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 1)])
def test_rounding_keeps_the_shape(dtype: str, shape: tuple[int, ...]) -> None:
    assert round_to(dtype, np.full(shape, 0.1)).shape == shape


def test_every_bfloat16_widens_exactly() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    wide = widen_bfloat16(bits)
    expected = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    assert same(wide, expected)
    assert same(round_to("bfloat16", wide), wide)


# ---- scores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_score_arrays_are_not_copied(dtype: str) -> None:
    base = np.linspace(0, 1, 24).reshape(2, 3, 4).astype(dtype)
    for array in (base, base[:, ::-1], base.transpose(2, 0, 1), base[..., ::2], base[:0]):
        scores = as_scores("scores", array)
        assert scores.dtype == dtype
        assert same_memory(scores.bits, array)
        assert scores.values() is scores.bits


def same_memory(a: np.ndarray, b: np.ndarray) -> bool:
    return a.__array_interface__ == b.__array_interface__


def test_nobody_else_can_change_the_shape_of_scores() -> None:
    array = np.linspace(0, 1, 24).reshape(2, 3, 4)
    scores = as_scores("scores", array)
    array.shape = (24,)
    array.dtype = np.float32  # type: ignore[misc]
    assert scores.bits.shape == (2, 3, 4)
    assert scores.bits.dtype == np.float64


def test_read_only_scores_are_taken() -> None:
    array = np.broadcast_to(np.float32(0.5), (4, 5))
    assert same_memory(as_scores("scores", array).bits, array)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16])
def test_tensors_share_memory_also_with_gradients(dtype: Any) -> None:
    """A tensor that requires a gradient is taken, not refused."""
    tensor = torch.linspace(0, 1, 12, dtype=torch.float64).to(dtype).reshape(3, 4)
    for view in (tensor, tensor.T, tensor[:, ::2], tensor.clone().requires_grad_()):
        scores = as_scores("scores", view)
        assert scores.dtype == str(dtype).removeprefix("torch.")
        assert scores.bits.shape == tuple(view.shape)
        assert scores.bits.__array_interface__["data"][0] == view.data_ptr()
        assert scores.values().tolist() == view.tolist()


def test_nested_lists_are_float64() -> None:
    scores = as_scores("scores", [[0.1, 0.2], [0.3, 0.4]])
    assert scores.dtype == "float64"
    assert scores.bits.shape == (2, 2)


class MakesArray:
    """What it gives NumPy as its array, or raises."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


UNALIGNED = np.frombuffer(b"x" + np.zeros(3).tobytes(), dtype=np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1, 2], ValueError, "`scores` must have one of the dtypes .*, got int64"),
        (np.zeros(2, dtype=bool), ValueError, "float16, bfloat16, float32, float64.*got bool"),
        (np.zeros(2, dtype=">f4"), ValueError, "in native byte order, got >f4"),
        (np.zeros(2, dtype=np.longdouble), ValueError, "got <f16|got <f12|got <f8"),
        (np.zeros(2, dtype=complex), ValueError, "got complex128"),
        (np.zeros(2, dtype=np.uint16), ValueError, "got uint16"),
        (["0.1"], ValueError, "got <U3"),
        (None, ValueError, "got object"),
        (UNALIGNED, ValueError, "`scores` must be aligned in memory, got an unaligned float64"),
        ([[0.1], [0.1, 0.2]], ValueError, "`scores` must be a rectangular array"),
        (np.ma.masked_array([0.1], mask=[1]), TypeError, "must be a plain array, got a masked"),
        ([np.ma.masked_array([0.1], mask=[1])], TypeError, "must be a plain array, got a masked"),
        ([[np.ma.masked_array([0.1], mask=[1])]], TypeError, "must be a plain array, got a mask"),
        (MakesArray(np.ma.masked_array([0.1], [1])), TypeError, "must be a plain array, got a m"),
        ([True, 0.5], TypeError, "must be an array of one kind, got True or False among others"),
        ((0.5, np.True_), TypeError, "must be an array of one kind"),
        ([[0.5], [False]], TypeError, "must be an array of one kind"),
        ([np.array([True]), np.array([0.5])], TypeError, "must be an array of one kind"),
        ([torch.tensor(True), 0.5], TypeError, "must be an array of one kind"),
        (
            [torch.zeros(1, requires_grad=True)],
            TypeError,
            "`scores` must be .*, got list, of which",
        ),
        (MakesArray(RuntimeError("gone")), TypeError, "`scores` must be .*, got MakesArray.*gone"),
        (torch.zeros(2, dtype=torch.int64), ValueError, "got int64"),
        (torch.zeros(2, device="meta"), ValueError, "must be on the CPU, got a tensor on meta"),
        (
            torch.zeros(2, dtype=torch.bfloat16, device="meta"),
            ValueError,
            "must be on the CPU, got a tensor on meta",
        ),
    ],
)
def test_what_is_not_taken_for_scores(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_scores("scores", value)


def test_arrays_and_tensors_pass_through() -> None:
    array = np.arange(6).reshape(2, 3)
    assert as_array("x", array) is array
    tensor = torch.arange(6)
    assert np.shares_memory(as_array("x", tensor), tensor.numpy())
    assert is_tensor(tensor)
    assert not is_tensor(array)
    assert as_array("x", torch.tensor([0.5], dtype=torch.bfloat16)).tolist() == [0.5]


# ---- counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"])
def test_counts_of_any_integer_dtype(dtype: str) -> None:
    """C's long has 32 bits on some systems; counts are 64 bits everywhere."""
    counts = as_counts("counts", np.array([0, 1, 100], dtype=dtype), high=1000)
    assert counts.dtype == np.int64
    assert counts.tolist() == [0, 1, 100]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_counts_are_copied_so_that_what_was_checked_is_what_is_used(dtype: Any) -> None:
    array = np.arange(5, dtype=dtype)
    tensor = torch.from_numpy(array.copy())
    for value, memory in ((array, array), (array[::2], array), (tensor, tensor.numpy())):
        counts = as_counts("counts", value, high=4)
        before = counts.copy()
        memory[:] = 100
        assert np.array_equal(counts, before)
        memory[:] = np.arange(5)


def test_empty_lists_are_counts() -> None:
    assert as_counts("counts", [], high=4).shape == (0,)
    with pytest.raises(TypeError, match="`counts` must be integers, got dtype float64"):
        as_counts("counts", np.zeros(0), high=4)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([0, 1, 5], ValueError, r"`counts` must be in \[0, 4\], got 5 at index \(2,\)"),
        ([[0, -1]], ValueError, r"`counts` must be in \[0, 4\], got -1 at index \(0, 1\)"),
        (np.array(7), ValueError, r"`counts` must be in \[0, 4\], got 7 as the scalar"),
        (np.array([2**64 - 1], dtype=np.uint64), ValueError, r"got 18446744073709551615"),
        ([1.0, 2.0], TypeError, "`counts` must be integers, got dtype float64"),
        ([True], TypeError, "`counts` must be integers, got dtype bool"),
        (["1"], TypeError, "`counts` must be integers"),
    ],
)
def test_what_is_not_taken_for_counts(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_counts("counts", value, high=4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_a_bound_beyond_the_dtype_is_no_error(dtype: str) -> None:
    assert as_counts("counts", np.array([3], dtype=dtype), high=100_000).tolist() == [3]


# ---- probabilities --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_probabilities_are_copied_so_that_what_was_checked_is_what_is_used(dtype: Any) -> None:
    array = np.linspace(0, 1, 6, dtype=dtype).reshape(2, 3)
    wanted = array.tolist()
    values = as_probabilities("p", array)
    array[:] = math.nan
    assert values.dtype == np.float64
    assert values.tolist() == wanted


def test_whole_numbers_are_probabilities() -> None:
    assert as_probabilities("p", [0, 1]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([0.5, math.nan], ValueError, r"`p` must be in \[0, 1\], got nan at index \(1,\)"),
        ([[-1e-9]], ValueError, r"`p` must be in \[0, 1\], got -1e-09 at index \(0, 0\)"),
        ([1 + 1e-12], ValueError, r"`p` must be in \[0, 1\], got 1.000000000001"),
        (np.array([1.001], dtype=np.float16), ValueError, r"`p` must be in \[0, 1\], got 1.00"),
        ([2], ValueError, r"`p` must be in \[0, 1\], got 2 at index"),
        ([True], TypeError, "`p` must be real numbers, got dtype bool"),
        (["0.5"], TypeError, "`p` must be real numbers, got dtype <U3"),
        ([0.5j], TypeError, "`p` must be real numbers, got dtype complex128"),
        ([None], TypeError, "`p` must be real numbers, got dtype object"),
        (torch.zeros(2, device="meta"), ValueError, "`p` must be on the CPU"),
    ],
)
def test_what_is_not_taken_for_probabilities(
    value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        as_probabilities("p", value)


def test_where_names_the_first() -> None:
    mask = np.zeros((3, 4), dtype=bool)
    mask[1, 2] = mask[2, 0] = True
    assert where(mask) == "at index (1, 2)"
    assert where(np.array(True)) == "as the scalar"
