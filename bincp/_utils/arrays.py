"""Arguments as NumPy memory: arrays, lists and CPU torch tensors are checked and converted here.

Another thread may write to an array while it is checked and used. Small arrays (probabilities,
counts, ids) are therefore copied before they are checked, so that the checked values are used.
Scores and the inputs of models are large and never copied. Their shape and dtype are fixed by a
view; their values may change, and then the result means nothing, but no compiled function reads or
writes out of bounds.

torch is never imported here; a tensor can only exist if its caller has imported it.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

ArrayLike: TypeAlias = Any
"""A NumPy array, a nested sequence of numbers, or a CPU torch tensor."""

SCORE_DTYPES = ("float16", "bfloat16", "float32", "float64")

_NUMBERS = {float, int}

# Native dtypes only: others compare unequal. (dtype.name takes microseconds.)
_NAMES = {np.dtype(name): name for name in SCORE_DTYPES if name != "bfloat16"}


@dataclass(frozen=True)
class Scores:
    """Scores as memory with a dtype, and the name of their argument.

    ``bits`` has dtype float16, float32 or float64; bfloat16, which NumPy lacks, is held as uint16.
    The functions of `bincp.counting` take an object of this class for checked scores, and their
    messages give it the name ``name``.
    """

    bits: npt.NDArray[Any]
    dtype: str
    name: str = "scores"

    def values(self) -> npt.NDArray[np.floating[Any]]:
        """Return the scores as floats: a view, or for bfloat16 a copy in float32."""
        return widen_bfloat16(self.bits) if self.dtype == "bfloat16" else self.bits

    def rows(self, index: Any) -> "Scores":
        """Return some of the rows; an index that is not a slice copies them."""
        return Scores(self.bits[index], self.dtype, self.name)


def widen_bfloat16(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return the exact float32 values of bfloat16 bit patterns."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def round_to(dtype: str, value: npt.ArrayLike) -> npt.NDArray[np.floating[Any]]:
    """Round to the nearest value of a score dtype; bfloat16 comes back as exact float32.

    Values beyond the range become infinities, and NaN stays NaN.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _to_bfloat16(value) if dtype == "bfloat16" else np.asarray(value).astype(dtype)


def _to_bfloat16(value: npt.ArrayLike) -> npt.NDArray[np.float32]:
    # Rounding to float32 and then to bfloat16 could err: the first rounding is to odd.
    exact = np.asarray(value, dtype=np.float64)
    nearest = exact.astype(np.float32)
    toward_zero = np.where(
        np.abs(nearest.astype(np.float64)) > np.abs(exact),
        np.nextafter(nearest, np.float32(0)),
        nearest,
    ).astype(np.float32)
    bits = toward_zero.view(np.uint32)
    bits = np.where(np.isfinite(exact) & (toward_zero != exact), bits | 1, bits)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    result = np.where(
        np.isnan(exact), np.float32(np.nan), rounded.astype(np.uint32).view(np.float32)
    )
    return np.asarray(result, dtype=np.float32)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that nobody can make writeable again, for its memory is that of bytes.

    The array must not be empty.
    """
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def as_array(name: str, value: ArrayLike) -> npt.NDArray[Any]:
    """Return ``value`` as a NumPy array; only bfloat16 tensors and lists are copied."""
    if is_tensor(value):
        if str(value.dtype) == "torch.bfloat16":
            return as_scores(name, value).values()
        return _memory(name, value)
    try:
        array = np.asanyarray(value)
    except ValueError as error:  # a ragged list
        raise ValueError(f"`{name}` must be a rectangular array: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # of what a list holds, or of an object that makes its own array
        raise TypeError(
            f"`{name}` must be an array, numbers in nested lists or a CPU tensor, "
            f"got {type(value).__name__}, of which NumPy says: {error}"
        ) from error
    if isinstance(array, np.ma.MaskedArray) or _holds(value, array.ndim, _is_masked):
        raise TypeError(f"`{name}` must be a plain array, got a masked array")
    if array.dtype.kind not in "bO" and _holds(value, array.ndim, _is_bool):
        raise TypeError(f"`{name}` must be an array of one kind, got True or False among others")
    return np.asarray(array)


def _holds(value: object, depth: int, found: Callable[[object], bool]) -> bool:
    """Say if a nested list holds an element of a kind that NumPy would hide."""
    if not isinstance(value, list | tuple) or depth == 0:
        return found(value)
    if _NUMBERS.issuperset(map(type, value)):  # quick: lists may be long
        return False
    return any(_holds(item, depth - 1, found) for item in value)


def _is_masked(value: object) -> bool:
    return isinstance(value, np.ma.MaskedArray)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


def as_scores(name: str, value: ArrayLike) -> Scores:
    """Return floating-point scores of one of the four score dtypes, as a view of their memory.

    The view is new, so no other code can change its shape or dtype between the checks and the
    kernel. Scores that are checked already are returned as they are.
    """
    if isinstance(value, Scores):
        return value
    if is_tensor(value) and str(value.dtype) == "torch.bfloat16":
        bits = _memory(name, value, sys.modules["torch"].int16)
        return Scores(bits.view(np.uint16), "bfloat16", name)
    array = as_array(name, value).view()
    name_of_dtype = _NAMES.get(array.dtype)
    if name_of_dtype is None:
        cure = "; counts and labels are no scores" if array.dtype.kind in "iu" else ""
        raise ValueError(
            f"`{name}` must have one of the dtypes {', '.join(SCORE_DTYPES)} in native byte order, "
            f"got {array.dtype.str if array.dtype.kind == 'f' else array.dtype}{cure}"
        )
    if not array.flags.aligned:
        raise ValueError(
            f"`{name}` must be aligned in memory, got an unaligned {array.dtype} array"
        )
    return Scores(array, name_of_dtype, name)


def as_counts(
    name: str, value: ArrayLike, *, high: int, low: int = 0, first: int = 0
) -> npt.NDArray[np.int64]:
    """Return a copy of integer counts in [low, high]; floats are refused, whole or not.

    `first` is the position of the first count in all that the caller gave, for the message.
    """
    counts = as_narrow_counts(name, value, high=high, low=low, first=first)
    return counts.astype(np.int64, copy=False)


def as_narrow_counts(
    name: str, value: ArrayLike, *, high: int, low: int = 0, first: int = 0
) -> npt.NDArray[Any]:
    """Return what `as_counts` does in the dtype of the value, which takes less memory."""
    array = as_array(name, value).copy()
    if array.size == 0 and not isinstance(value, np.ndarray) and not is_tensor(value):
        array = array.astype(np.int64)  # an empty list has no dtype of its own
    if array.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must be integers, got dtype {array.dtype}")
    if array.size and not low <= array.min() <= array.max() <= high:
        bad = (array < low) | (array > high)
        place = where(bad, first)
        raise ValueError(f"`{name}` must be in [{low}, {high}], got {array[bad][0]} {place}")
    return array


def as_probabilities(name: str, value: ArrayLike) -> npt.NDArray[np.float64]:
    """Return a copy of probabilities in [0, 1] as float64; NaN is refused with its position."""
    array = as_array(name, value).copy()
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"`{name}` must be real numbers, got dtype {array.dtype}")
    result = array.astype(np.float64, copy=False)
    if result.size and not (result.min() >= 0 and result.max() <= 1):
        bad = ~((result >= 0) & (result <= 1))
        raise ValueError(f"`{name}` must be in [0, 1], got {array[bad][0]} {where(bad)}")
    return result


def check_exact(name: str, value: ArrayLike) -> None:
    """Refuse exact numbers in less than double precision.

    What the certificate proves is told in doubles. The rounding of a narrower number, even of one
    that is proven, can put it below that.
    """
    dtype = as_array(name, value).dtype
    if dtype.kind == "f" and dtype.itemsize < 8:
        raise ValueError(
            f"`{name}` must be float64, the doubles nearest to the exact numbers, got {dtype}"
        )


def where(mask: npt.NDArray[np.bool_], first: int = 0) -> str:
    """Return where the first True of ``mask`` is, in words for a message.

    `first` is the position of the first row of the mask in a larger whole.
    """
    if mask.ndim == 0:
        return "as the scalar"
    row, *rest = (int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
    return f"at index {(first + row, *rest)}"


def is_tensor(value: object) -> bool:
    """Return whether ``value`` is a torch tensor, on any device."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def on_host(name: str, value: Any) -> Any:
    """Return a tensor of any device on the CPU, without its gradients, and others as they are."""
    if not is_tensor(value):
        return value
    if value.device.type == "meta":
        raise ValueError(f"`{name}` must hold data, got a tensor on the device 'meta'")
    return value.detach().cpu()


def _memory(name: str, tensor: Any, view: Any = None) -> npt.NDArray[Any]:
    """Return the memory of a dense CPU tensor, seen as another dtype if ``view`` is one."""
    if tensor.device.type != "cpu":
        raise ValueError(
            f"`{name}` must be on the CPU, got a tensor on {tensor.device}; "
            "use .cpu(), or bincp.sampling.count_scores, which counts on the device"
        )
    try:
        dense = tensor.detach().resolve_conj().resolve_neg()
        return np.asarray((dense if view is None else dense.view(view)).numpy())
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise ValueError(
            f"`{name}` must be an array or a dense CPU tensor, got a {tensor.dtype} tensor "
            f"that NumPy cannot see: {error}"
        ) from None
