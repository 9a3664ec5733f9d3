"""Splitting noise: coordinates move to the middle of the random cell that they lie in."""

from functools import lru_cache

import numpy as np

from bincp._core import _noise
from bincp._utils.arrays import where
from bincp.noise._copies import Copies, RandomCopy, copies_of, enumerates
from bincp.noise._keys import FloatArray, IntArray, Keys, core_key
from bincp.noise._samplers import FlatSampler, Sampler, dtypes_on_grid, samples
from bincp.smoothing import SplittingNoise
from bincp.smoothing._splitting import MAX_ELEMENTS

_LEAST_HALF_WIDTH = 2.0**-30


class _Split(FlatSampler):
    """Continuous noise, computed in float64 for inputs of either dtype, with offsets of 53 bits.

    The certificate (`splitting_l1`) says how much more often that splits two values.
    """

    def __init__(self, half_width: float) -> None:
        self.length = 2 * half_width

    def check(self, x: FloatArray) -> None:
        if self.length < 2 * _LEAST_HALF_WIDTH:
            raise ValueError(
                "`half_width` must be at least 2**-30 for continuous splitting noise, whose cells "
                f"are told apart in float64, got {self.length / 2:g}"
            )
        if x[0].size > MAX_ELEMENTS:
            raise ValueError(
                "`x` must have at most 2**24 elements an input for continuous splitting noise, "
                f"got {x[0].size}"
            )
        bad = ~((x >= 0) & (x <= 1))
        if bad.any():
            raise ValueError(
                f"`x` must be in [0, 1] for SplittingNoise, got {x[bad][0]} {where(bad)}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        _noise.split(self.length, *core_key(keys), sources, x, out)


class _SplitCopies:
    """Derandomised noise, in integers: x in steps of 1 / grid, ends of cells in half steps."""

    def __init__(self, smoothing: SplittingNoise, grid: int) -> None:
        self.name = repr(smoothing)
        self.grid, self.levels, self.seed = grid, smoothing.levels, smoothing.seed
        self.dtypes = dtypes_on_grid(grid)

    def check(self, x: FloatArray) -> None:
        if x.dtype == np.uint8:
            return
        inside = (x >= 0) & (x <= 1)
        steps = np.where(inside, x, 0) * self.grid
        # Products and quotients by the grid may be off by one unit in the last place.
        bad = ~inside | (np.abs(steps - np.rint(steps)) > np.finfo(x.dtype).eps * self.grid)
        if bad.any():
            raise ValueError(
                f"`x` must be multiples of 1/{self.grid} in [0, 1] for {self.name}, "
                f"got {x[bad][0]} {where(bad)}"
            )

    def make(self, numbers: IntArray, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        first, last = int(sources.min()), int(sources.max()) + 1
        points = self._points(x[first:last])
        template = _template(self.seed, self.levels, x.shape[1])
        # The cell of k begins at the largest s + 1/2 + c levels below k; s is t in copy 0.
        cells, slack = np.divmod(points - template - 1, self.levels)
        starts = 2 * (template + self.levels * cells) + 1
        places = starts.astype(np.int32), slack.astype(np.int32)
        _noise.split_copies(self.levels, self.grid, numbers, sources - first, *places, out)

    def _points(self, x: FloatArray) -> IntArray:
        return (x if x.dtype == np.uint8 else np.rint(x * self.grid)).astype(np.int64)


@lru_cache(maxsize=8)
def _template(seed: int, levels: int, dim: int) -> IntArray:
    template = np.random.RandomState(seed).randint(levels, size=dim, dtype=np.int64)
    template.flags.writeable = False
    return template


@enumerates(SplittingNoise)
def _copies(smoothing: SplittingNoise) -> Copies:
    if smoothing.grid is None:
        raise TypeError(
            "`smoothing` must be derandomised for exact probabilities: SplittingNoise with a grid, "
            f"got {smoothing!r}"
        )
    return _SplitCopies(smoothing, smoothing.grid)


@samples(SplittingNoise)
def _splitting(smoothing: SplittingNoise) -> Sampler:
    if smoothing.grid is None:
        return _Split(smoothing.half_width)
    return RandomCopy(copies_of(smoothing))
