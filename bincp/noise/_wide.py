"""Noise that is computed in float64 from keyed numbers and rounded to float32 last."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp.noise._keys import RADIUS_STREAMS, FloatArray, IntArray
from bincp.noise._laws import check_largest

DoubleArray = npt.NDArray[np.float64]

LEAST_UNIT = 2.0**-53  # the least of `RowKeys.units`

_CHUNK = 2**16  # numbers at a time, so that temporaries stay in the cache and memory is bounded


@dataclass(frozen=True)
class RowKeys:
    """The keys of some rows of noise."""

    seed: int
    stream: int
    ids: IntArray
    draws: IntArray

    def units(self, n: int) -> DoubleArray:
        """Return (rows, n) numbers, uniform on the odd multiples of 2**-53 in (0, 1)."""
        return self._units(self.stream, n)

    def radius_units(self, n: int) -> DoubleArray:
        """Return numbers like `units`, independent of them and of `noise`."""
        return self._units(RADIUS_STREAMS[self.stream], n)

    def _units(self, stream: int, n: int) -> DoubleArray:
        numbers = np.empty((len(self.ids), n))
        _noise.wide_unit_numbers(self.seed, stream, self.ids, self.draws, numbers)
        return numbers

    def noise(self, law: int, d: int) -> DoubleArray:
        """Return (rows, d) numbers of a law that is drawn in float32, of scale 1."""
        rows = np.empty((len(self.ids), d))
        # The sum of two negative zeros is the only one that is negative: zeros keep their sign.
        x, sources = np.full((1, d), -0.0), np.zeros(len(rows), np.int64)
        _noise.add_noise(law, 1.0, self.seed, self.stream, self.ids, self.draws, sources, x, rows)
        return rows


class WideLaw(ABC):
    """A law of additive noise that needs float64 on its way."""

    @abstractmethod
    def largest(self, d: int) -> float:
        """Return a bound on the noise that can be drawn, or refuse inputs of d elements."""

    @abstractmethod
    def noise(self, keys: RowKeys, d: int) -> FloatArray:
        """Return the noise (rows, d) of each key."""

    def check(self, x: FloatArray) -> None:
        with np.errstate(over="ignore", divide="ignore"):
            check_largest(self.largest(x.size // len(x)))

    def fill(
        self,
        seed: int,
        stream: int,
        ids: IntArray,
        draws: IntArray,
        sources: IntArray,
        x: FloatArray,
        out: FloatArray,
    ) -> None:
        step = max(_CHUNK // x.shape[1], 1)
        for first in range(0, len(out), step):
            rows = slice(first, first + step)
            noise = self.noise(RowKeys(seed, stream, ids[rows], draws[rows]), x.shape[1])
            np.add(x[sources[rows]], noise.astype(np.float32), out=out[rows])
