"""Which noise a device draws, and by which means."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bincp.noise._additive import AdditiveSampler
from bincp.noise._device import _torch
from bincp.noise._device._torch import GROUP, LANES, RowKeys
from bincp.noise._grid import MAX_POINT, ROUNDING, GridSampler
from bincp.noise._keys import FloatArray, IntArray, Keys, core_key
from bincp.noise._samplers import Sampler, check_form, sampler_of

Inputs = torch.Tensor | npt.NDArray[Any]

_AT_ONCE = 2**21  # elements of torch operations, whose temporaries take a hundred bytes for each


def device_sampler(smoothing: object, place: torch.device) -> "DeviceSampler | None":
    """Return what draws the noise of a scheme on a device, None where C code has to do it.

    That is so on the CPU, for schemes whose noise has no other code, and on devices that do not
    give the bits of the C code, of which some are drawn to find out.
    """
    if place.type == "cpu":
        return None
    if not isinstance(sampler_of(smoothing), AdditiveSampler | GridSampler):
        return None
    return _checked_sampler(smoothing, place)


@lru_cache(maxsize=16)
def _checked_sampler(smoothing: object, place: torch.device) -> "DeviceSampler | None":
    return sampler_on(sampler_of(smoothing), place)


def sampler_on(sampler: Sampler, place: torch.device) -> "DeviceSampler | None":
    """Do as `device_sampler`, for any device."""
    for means in _means_of(place):
        try:
            law = _law_of(sampler, place)
            if law is None:
                return None
            made = DeviceSampler(law, place, means)
            if _has_our_bits(sampler, made):
                return made
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception:  # no compiler, no float64, a GPU that is too old, ...
            continue
    return None


def _means_of(place: torch.device) -> list[ModuleType | None]:
    """Return the means to draw on a device, the best first: kernels, or torch operations (None)."""
    kernels = _kernels() if place.type == "cuda" else None
    return [None] if kernels is None else [kernels, None]


@cache
def _kernels() -> ModuleType | None:
    try:
        from bincp.noise._device import _triton
    except ImportError:
        return None
    return _triton


class DeviceSampler:
    """Draws the noise of one scheme on a device; it keeps no state but the tables of the scheme."""

    def __init__(self, law: "_Law", place: torch.device, kernels: ModuleType | None) -> None:
        self.law, self.place, self.kernels = law, place, kernels

    def rows(self, keys: Keys, sources: IntArray, x: Inputs) -> torch.Tensor:
        """Return the draw of ``keys[r]`` for input ``x[sources[r]]`` in row r, on the device.

        ``x`` (n, ...) is a tensor there or an array of the host, of which the inputs that are
        needed are copied. On CUDA this returns before the noise is drawn, as all operations do.
        """
        used, own = np.unique(sources, return_inverse=True)
        inputs = self.law.prepared(self._inputs(x, used).flatten(1))
        seed, stream, ids, draws = core_key(keys)
        packed = RowKeys(seed, stream, self._copied(np.stack([own, ids, draws])))
        wide = str(x.dtype).removeprefix("torch.") == "float64"
        out = torch.empty(
            (len(sources), inputs.shape[1]),
            dtype=torch.float64 if wide else torch.float32,
            device=self.place,
        )
        if self.kernels is None:
            _fill(self.law, packed, inputs, out)
        else:
            self.law.launch(self.kernels, packed, inputs, out)
        return out.view(len(sources), *x.shape[1:])

    def _inputs(self, x: Inputs, used: IntArray) -> torch.Tensor:
        if not isinstance(x, torch.Tensor):
            return self._copied(x, used)
        if used[-1] - used[0] == len(used) - 1:
            return x[int(used[0]) : int(used[-1]) + 1]
        return x.index_select(0, self._copied(used))

    def _copied(self, array: npt.NDArray[Any], rows: IntArray | None = None) -> torch.Tensor:
        """Copy an array, or rows of it, to the device."""
        length = len(array) if rows is None else len(rows)
        staged = torch.empty(
            (length, *array.shape[1:]),
            dtype=getattr(torch, array.dtype.name),
            device="cpu",
            pin_memory=self.place.type == "cuda",
        )
        which = np.arange(length) if rows is None else rows
        np.take(array, which, axis=0, out=staged.numpy(), mode="clip")  # other modes need a buffer
        return staged.to(self.place, non_blocking=True)


class _Law(ABC):
    """The noise of one scheme, with its tables on the device."""

    @abstractmethod
    def prepared(self, x: torch.Tensor) -> torch.Tensor:
        """Return inputs (n, d) as the other methods take them: contiguous."""

    @abstractmethod
    def launch(
        self, kernels: ModuleType, keys: RowKeys, inputs: torch.Tensor, out: torch.Tensor
    ) -> None:
        """Let Triton's kernels write the noisy inputs to ``out``."""

    @abstractmethod
    def noisy(
        self, keys: RowKeys, counters: torch.Tensor, inputs: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        """Return inputs (rows, n) plus the noise of the first n elements of the counters."""


class _Floats(_Law):
    def __init__(self, sampler: AdditiveSampler) -> None:
        self.distribution, self.scale = sampler.distribution, sampler.scale

    def prepared(self, x: torch.Tensor) -> torch.Tensor:
        return x.contiguous()

    def launch(
        self, kernels: ModuleType, keys: RowKeys, inputs: torch.Tensor, out: torch.Tensor
    ) -> None:
        kernels.add_float_noise(self.distribution, self.scale, keys, inputs, out)

    def noisy(
        self, keys: RowKeys, counters: torch.Tensor, inputs: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        noise = _torch.float_noise(self.distribution, _torch.words_of(keys, counters))
        return inputs + (noise[:, : inputs.shape[1]] * self.scale).to(dtype)


class _Points(_Law):
    def __init__(self, sampler: GridSampler, place: torch.device) -> None:
        self.grid, self.half = sampler.grid, sampler.table.half
        # Words are in int64 for torch operations, and in the bits of int32 for kernels.
        table = sampler.table.entry, sampler.table.low
        entry, low = (torch.from_numpy(part.astype(np.int64)).to(place) for part in table)
        self.wide = entry, low
        self.packed = entry.to(torch.int32), low.to(torch.int32)

    def prepared(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.uint8:
            return x.contiguous()
        return (x.double() * self.grid).round().to(torch.int32).contiguous()

    def launch(
        self, kernels: ModuleType, keys: RowKeys, inputs: torch.Tensor, out: torch.Tensor
    ) -> None:
        table = *self.packed, self.half, self.grid
        kernels.add_grid_noise(*table, keys, inputs, out)

    def noisy(
        self, keys: RowKeys, counters: torch.Tensor, inputs: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        drawn = _torch.grid_noise(*self.wide, keys, counters)[:, : inputs.shape[1]]
        divisor = torch.tensor(self.grid, dtype=dtype, device=inputs.device)
        return (drawn + inputs - self.half).to(dtype) / divisor


def _law_of(sampler: Sampler, place: torch.device) -> _Law | None:
    if isinstance(sampler, AdditiveSampler):
        return _Floats(sampler)
    return _Points(sampler, place) if isinstance(sampler, GridSampler) else None


def _fill(law: _Law, keys: RowKeys, inputs: torch.Tensor, out: torch.Tensor) -> None:
    """Write the noisy inputs to ``out``, by torch operations on blocks of it."""
    for rows, first, last in _blocks(*out.shape):
        own = keys.some(rows)
        counters = torch.arange(first * LANES, last * LANES, device=out.device)[None]
        here = slice(first * GROUP, min(last * GROUP, out.shape[1]))
        x = inputs[:, here].index_select(0, own.rows[0])
        out[rows, here] = law.noisy(own, counters, x, out.dtype)


def _blocks(n_rows: int, d: int) -> Iterator[tuple[slice, int, int]]:
    """Divide rows of d elements into blocks; yield rows, the first group and the end."""
    n_groups = -(-d // GROUP)
    step = max(_AT_ONCE // GROUP, 1)
    height = max(step // n_groups, 1)
    for row in range(0, n_rows, height):
        for first in range(0, n_groups, step):
            yield slice(row, row + height), first, min(first + step, n_groups)


def _has_our_bits(sampler: Sampler, made: DeviceSampler) -> bool:
    """Compare some noise with that of the C code, in each dtype that the device holds."""
    n_rows, d = 3, 2**13 + 1
    keys = Keys(2**64 - 1, "tuning", np.array([0, 1, 2**56 - 1]), np.array([0, 2**31 - 1, 5]))
    sources = np.array([1, 0, 1])
    for dtype in ("float32", "float64") if _holds_doubles(made.place) else ("float32",):
        x = np.array([[0.0], [1.0]]).repeat(d, axis=1).astype(dtype)
        expected: FloatArray = np.empty((n_rows, d), dtype)
        sampler.fill(keys, sources, x, expected)
        found = made.rows(keys, sources, x).cpu().numpy()
        if (found.dtype, found.tobytes()) != (expected.dtype, expected.tobytes()):
            return False
    return True


def _holds_doubles(place: torch.device) -> bool:
    """Say if a device has float64 numbers; where it has none, no input can have them."""
    try:
        torch.zeros(1, dtype=torch.float64, device=place)
    except (TypeError, RuntimeError):
        return False
    return True


def check_tensor(sampler: Sampler, x: torch.Tensor) -> None:
    """Refuse inputs on a device as `check_inputs` does those of the host."""
    check_form(sampler, str(x.dtype).removeprefix("torch."), tuple(x.shape))
    if isinstance(sampler, GridSampler) and x.dtype != torch.uint8:
        parts = x.detach().tensor_split(-(-x.numel() // _AT_ONCE))
        if not all(bool(_are_points(part, sampler.grid).all()) for part in parts):
            sampler.check(x.detach().cpu().numpy())  # says which


def _are_points(x: torch.Tensor, grid: int) -> torch.Tensor:
    steps = x.double() * grid
    points = steps.round()
    size = points.abs()
    return ((steps - points).abs() <= ROUNDING * size.clamp(min=1)) & (size <= MAX_POINT)
