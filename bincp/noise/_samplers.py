"""The sampler of a smoothing scheme: how it makes noisy rows from inputs and keys."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp.certificates import load_entry_points
from bincp.noise._keys import FloatArray, IntArray, Keys

FLOATS: tuple[str, ...] = ("float32", "float64")

_GREY_LEVELS = 255


class Sampler(ABC):
    """How one smoothing scheme makes noisy rows from inputs and keys; it keeps no state."""

    dtypes: tuple[str, ...] = FLOATS  # of inputs
    shared: bool = True  # whether several threads may fill rows at once

    @abstractmethod
    def check(self, x: FloatArray) -> None:
        """Refuse inputs (n, ...) that the scheme cannot smooth."""

    @abstractmethod
    def fill(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        """Write the draw of ``keys[r]`` for input ``x[sources[r]]`` to ``out[r]``.

        ``x`` and ``out`` (rows, ...) have inputs of one shape; ``out`` is C-contiguous.
        """


class FlatSampler(Sampler):
    """A sampler for which an input is a row of elements, whatever its shape."""

    def fill(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        rows = np.ascontiguousarray(x).reshape(len(x), -1)
        self.fill_rows(keys, sources, rows, out.reshape(len(out), rows.shape[1]))

    @abstractmethod
    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        """Do as `fill`, for C-contiguous inputs (n, d) and rows (rows, d)."""


CHUNK = 2**16  # numbers at a time, so that temporaries stay in the cache and memory is bounded


def chunks(n_rows: int, d: int) -> Iterator[slice]:
    """Divide rows of d numbers into chunks."""
    step = max(CHUNK // d, 1)
    for first in range(0, n_rows, step):
        yield slice(first, first + step)


Factory = Callable[[Any], Sampler]
F = TypeVar("F", bound=Factory)


class _Entry(NamedTuple):
    factory: Factory
    origin: str


_entries: dict[type, _Entry] = {}


def add_sampler(smoothing_type: type, factory: Factory, function: Any) -> None:
    """Register the factory of the samplers of a type of schemes, and refuse a second one.

    ``function`` is the function or class that users know the sampler by.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__)
    entry = _Entry(factory, f"{getattr(function, '__module__', '?')}.{name}")
    first = _entries.setdefault(smoothing_type, entry)
    if first is not entry:
        raise ValueError(
            f"{smoothing_type.__name__} must not have a sampler yet, got a second one: "
            f"the first is {first.origin}"
        )


def samples(*smoothing_types: type) -> Callable[[F], F]:
    """Register a class or function that makes the sampler of a scheme; use as a decorator."""

    def decorator(factory: F) -> F:
        for smoothing_type in smoothing_types:
            add_sampler(smoothing_type, factory, factory)
        return factory

    return decorator


def sampler_of(smoothing: object) -> Sampler:
    """Return the sampler of a scheme, found by its exact type."""
    if type(smoothing) not in _entries:
        load_entry_points()
    if type(smoothing) not in _entries:
        # A list, made at once: other threads may register types meanwhile.
        known = ", ".join(sorted(smoothing_type.__name__ for smoothing_type in list(_entries)))
        raise TypeError(
            f"`smoothing` must be one of {known}, got {smoothing!r}; bincp.noise.register adds more"
        )
    return _entries[type(smoothing)].factory(smoothing)


def float32_at_least(scale: float) -> float:
    """Round a scale up to float32: a certificate for less noise than was drawn still holds.

    Below the normal numbers float32 has so few that noise of this scale would be far from its
    distribution.
    """
    limits = np.finfo(np.float32)
    if not float(limits.smallest_normal) <= scale <= float(limits.max):
        raise ValueError(f"`smoothing` must have a scale that float32 can hold, got {scale:g}")
    nearest = np.float32(scale)
    # Compared as Python floats: NumPy would round `scale` to float32 first.
    below = float(nearest) < scale
    return float(np.nextafter(nearest, np.float32(np.inf)) if below else nearest)


def check_largest(largest: float) -> None:
    """Refuse noise whose largest draws are beyond float32; ``largest`` is a bound on them."""
    # Written so that NaN fails.
    if not largest <= float(np.finfo(np.float32).max):
        raise ValueError(
            f"`smoothing` must have noise that float32 can hold, got draws up to {largest:g}"
        )


def dtypes_on_grid(grid: int) -> tuple[str, ...]:
    """Return the dtypes of inputs that are multiples of 1 / grid: grey levels may be in uint8."""
    return (*FLOATS, "uint8") if grid == _GREY_LEVELS else FLOATS


def noisy_dtype(x: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the dtype of noisy copies of inputs: that of the inputs, float32 for grey levels."""
    return np.dtype(np.float64 if x.dtype == np.float64 else np.float32)


def check_inputs(sampler: Sampler, x: npt.NDArray[Any]) -> None:
    """Refuse inputs that cannot be smoothed at all, or not by this scheme."""
    check_form(sampler, x.dtype.name if x.dtype.isnative else str(x.dtype), x.shape)
    sampler.check(x)


def check_form(sampler: Sampler, dtype: str, shape: tuple[int, ...]) -> None:
    """Refuse inputs of a dtype or shape that cannot be smoothed."""
    if dtype not in sampler.dtypes:
        half = dtype == "float16"
        hint = "noise of 16 bits has no tails" if half else "use x.astype(np.float32) or x.float()"
        known = " or ".join(sampler.dtypes)
        raise ValueError(f"`x` must be {known} ({hint}), got {dtype}")
    if len(shape) < 2 or 0 in shape:
        cure = "; one input alone is x[None]" if len(shape) == 1 and 0 not in shape else ""
        raise ValueError(f"`x` must have shape (n, ...) and not be empty, got {shape}{cure}")
    if math.prod(shape[1:]) > _noise.MAX_LENGTH:
        raise ValueError(f"`x` must have fewer than 2**34 elements an input, got {shape}")
