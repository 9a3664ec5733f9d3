"""Splitting noise: coordinates move to the middle of the random cell that they lie in."""

from functools import lru_cache

import numpy as np

from bincp._arrays import where
from bincp.noise._copies import Copies, RandomCopy, copies_of
from bincp.noise._keys import FloatArray, IntArray, random_words
from bincp.noise._laws import Law, law_of
from bincp.smoothing import SplittingNoise


class _Split:
    """Continuous noise, in double precision whatever the input: 53 bits of each offset."""

    def __init__(self, half_width: float) -> None:
        self.length = 2 * half_width

    def check(self, x: FloatArray) -> None:
        bad = ~((x >= 0) & (x <= 1))
        if bad.any():
            raise ValueError(
                f"`x` must be in [0, 1] for SplittingNoise, got {x[bad][0]} {where(bad)}"
            )

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
        for r, source in enumerate(sources):
            word = random_words(seed, stream, ids[r : r + 1], draws[r : r + 1], x.shape[1])[0]
            offset = ((word >> np.uint64(11)).astype(np.float64) + 0.5) * (2.0**-53 * self.length)
            # Both ends of a cell are functions of the offset and the cell's number alone: what lies
            # in one cell has one value, to the last bit.
            cell = np.ceil((x[source].astype(np.float64) - offset) / self.length)
            high = np.minimum(self.length * cell + offset, 1.0)
            low = np.maximum(self.length * (cell - 1) + offset, 0.0)
            out[r] = (low + high) / 2


class _SplitCopies:
    """Derandomised noise, in integers: x in 1 / grid, ends of cells in halves of it."""

    def __init__(self, smoothing: SplittingNoise, grid: int) -> None:
        self.name = repr(smoothing)
        self.grid, self.levels, self.seed = grid, smoothing.levels, smoothing.seed

    def check(self, x: FloatArray) -> None:
        # Products and quotients by the grid may be off by one unit in the last place.
        off = ~(np.abs(x * self.grid - np.rint(x * self.grid)) <= np.finfo(x.dtype).eps * self.grid)
        bad = off | ~((x >= 0) & (x <= 1))
        if bad.any():
            raise ValueError(
                f"`x` must be multiples of 1/{self.grid} in [0, 1] for {self.name}, "
                f"got {x[bad][0]} {where(bad)}"
            )

    def make(self, numbers: IntArray, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        first, last = int(sources.min()), int(sources.max()) + 1
        points = np.rint(x[first:last] * self.grid).astype(np.int64)
        template = _template(self.seed, self.levels, x.shape[1])
        # With offset s = (t + o) mod levels, the cell of k is the one that starts at the largest
        # s + 1/2 + c levels below k. At o = 0 that is t + 1/2 + c levels, and it moves up with o
        # until it passes k, once at most: then the cell is the one before.
        cells, slack = np.divmod(points - template - 1, self.levels)
        starts = 2 * (template + self.levels * cells) + 1
        for r, source in enumerate(sources - first):
            passed = slack[source] < numbers[r]
            low = starts[source] + (2 * numbers[r] - 2 * self.levels * passed)
            ends = np.maximum(low, 0) + np.minimum(low + 2 * self.levels, 2 * self.grid)
            out[r] = ends / (4 * self.grid)


@lru_cache(maxsize=8)
def _template(seed: int, levels: int, dim: int) -> IntArray:
    template = np.random.RandomState(seed).randint(levels, size=dim, dtype=np.int64)
    template.flags.writeable = False
    return template


@copies_of.register
def _(smoothing: SplittingNoise) -> Copies:
    if smoothing.grid is None:
        raise TypeError(
            "`smoothing` must be derandomised for exact probabilities: SplittingNoise with a grid, "
            f"got {smoothing!r}"
        )
    return _SplitCopies(smoothing, smoothing.grid)


@law_of.register
def _(smoothing: SplittingNoise) -> Law:
    if smoothing.grid is None:
        return _Split(smoothing.half_width)
    return RandomCopy(copies_of(smoothing))
