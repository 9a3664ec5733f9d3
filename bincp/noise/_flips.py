"""Coordinates that change their value at random."""

from typing import Any

import numpy as np

from bincp import _noise
from bincp._arrays import where
from bincp.noise._keys import FloatArray, IntArray
from bincp.noise._laws import Law, law_of
from bincp.smoothing import CategoricalFlip, Joint, SparseFlip


class _Flips:
    def __init__(self, p_plus: float, p_minus: float) -> None:
        self.p_plus = p_plus
        self.p_minus = p_minus

    def check(self, x: FloatArray) -> None:
        bad = (x != 0) & (x != 1)
        if bad.any():
            raise ValueError(
                f"`x` must be zeros and ones for SparseFlip, got {x[bad][0]} {where(bad)}"
            )

    def fill(self, *key_and_rows: Any) -> None:
        _noise.flip(self.p_plus, self.p_minus, *key_and_rows)


class _Categories:
    def __init__(self, smoothing: CategoricalFlip) -> None:
        self.k = smoothing.k
        self.chances = (smoothing.p_plus, smoothing.p_minus)

    def check(self, x: FloatArray) -> None:
        bad = ~((x >= 0) & (x < self.k) & (x == np.floor(x)))
        if bad.any():
            raise ValueError(
                f"`x` must be whole numbers in [0, {self.k - 1}] for CategoricalFlip, "
                f"got {x[bad][0]} {where(bad)}"
            )

    def fill(self, *key_and_rows: Any) -> None:
        _noise.change_categories(self.k, *self.chances, *key_and_rows)


class _Parts:
    """Two laws on the leading and the other elements of each input.

    Noise belongs to positions: the law of the other elements is drawn for the whole row, so that
    the two parts never share a random number.
    """

    def __init__(self, smoothing: Joint) -> None:
        self.first, self.second = law_of(smoothing.adjacency), law_of(smoothing.attributes)
        self.n = smoothing.n_adjacency

    def check(self, x: FloatArray) -> None:
        if self.n is None:
            raise ValueError(
                "`smoothing` must say how many leading elements of an input are the adjacency: "
                "Joint(..., n_adjacency=...)"
            )
        rows = x.reshape(len(x), -1)
        if self.n > rows.shape[1]:
            raise ValueError(
                f"`x` must have at least n_adjacency = {self.n} elements an input, "
                f"got {rows.shape[1]}"
            )
        self.first.check(rows[:, : self.n])
        self.second.check(rows[:, self.n :])

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
        self.second.fill(seed, stream, ids, draws, sources, x, out)
        leading = np.ascontiguousarray(x[:, : self.n])
        drawn = np.empty((len(out), leading.shape[1]), out.dtype)
        self.first.fill(seed, stream, ids, draws, sources, leading, drawn)
        out[:, : self.n] = drawn


@law_of.register
def _(smoothing: CategoricalFlip) -> Law:
    return _Categories(smoothing)


@law_of.register
def _(smoothing: Joint) -> Law:
    return _Parts(smoothing)


@law_of.register
def _(smoothing: SparseFlip) -> Law:
    return _Flips(smoothing.p_plus, smoothing.p_minus)
