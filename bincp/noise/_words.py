"""Words that are replaced by synonyms."""

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np

from bincp._utils.arrays import where
from bincp.noise._keys import FloatArray, IntArray, Keys, more_words
from bincp.noise._samplers import FlatSampler, chunks, samples
from bincp.smoothing import Staircase


@samples(Staircase)
class _Staircase(FlatSampler):
    """The number of thresholds that the 128 bits of a word reach is its move."""

    def __init__(self, smoothing: Staircase) -> None:
        self.k = smoothing.k
        ends = accumulate(smoothing.law()[:-1], initial=Fraction(0))
        self.thresholds = [divmod(math.ceil(end * 2**128), 2**64) for end in ends][1:]

    def check(self, x: FloatArray) -> None:
        bad = ~((x >= 0) & (x < 2**24) & (x == np.floor(x)))
        if bad.any():
            raise ValueError(
                f"`x` must be whole numbers in [0, 2**24) for Staircase, got {x[bad][0]} "
                f"{where(bad)}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        for rows in chunks(len(out), x.shape[1]):
            tokens = x[sources[rows]].astype(np.int64)
            places = (tokens % self.k + self._moves(keys[rows], x.shape[1])) % self.k
            out[rows] = tokens - tokens % self.k + places

    def _moves(self, keys: Keys, n: int) -> IntArray:
        words = keys.words(n)
        moves = np.zeros(words.shape, np.int64)
        for high, low in self.thresholds:
            if high == 2**64:  # a law that ends before its last move
                break
            moves += words > np.uint64(high)
            ties = words == np.uint64(high)
            if ties.any():
                moves += ties & (more_words(keys, n) >= np.uint64(low))
        return moves
