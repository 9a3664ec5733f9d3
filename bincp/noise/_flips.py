"""Coordinates that change their value at random."""

from typing import Any

import numpy as np

from bincp._core import _noise
from bincp._utils.arrays import where
from bincp.noise._keys import FloatArray, IntArray
from bincp.noise._laws import Law, law_of
from bincp.smoothing import CategoricalFlip, Joint, Smoothing, SparseFlip


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
    """Flips whose law differs between parts of the input.

    Noise belongs to positions: each law is drawn for the row up to the end of its part, so that no
    two parts share a random number. Flips of all kinds agree on the words of a position; other laws
    do not, and are refused.
    """

    def __init__(self, smoothing: Joint) -> None:
        self.smoothing = smoothing

    def check(self, x: FloatArray) -> None:
        rows = x.reshape(len(x), -1)
        for scheme, start, stop in _spans(self.smoothing, 0, rows.shape[1]):
            law_of(scheme).check(rows[:, start:stop])

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
        # From the last part to the first: a part overwrites what others drew before it.
        for scheme, _, stop in reversed(_spans(self.smoothing, 0, x.shape[1])):
            leading = np.ascontiguousarray(x[:, :stop])
            drawn = out if stop == x.shape[1] else np.empty((len(out), stop), out.dtype)
            law_of(scheme).fill(seed, stream, ids, draws, sources, leading, drawn)
            out[:, :stop] = drawn


def _spans(smoothing: Smoothing, start: int, stop: int) -> list[tuple[Smoothing, int, int]]:
    """Return the schemes that are no Joint, each with the positions that it acts on, in order."""
    if isinstance(smoothing, SparseFlip | CategoricalFlip):
        return [(smoothing, start, stop)]
    if not isinstance(smoothing, Joint):
        raise TypeError(
            "`smoothing` must join SparseFlip, CategoricalFlip or Joint to be drawn, "
            f"got {smoothing!r}"
        )
    if smoothing.n_adjacency is None:
        raise ValueError(
            "`smoothing` must say how many leading elements of an input are the adjacency: "
            "Joint(..., n_adjacency=...)"
        )
    middle = start + smoothing.n_adjacency
    if middle > stop:
        raise ValueError(
            f"`x` must have at least n_adjacency = {smoothing.n_adjacency} elements an input, "
            f"got {stop - start}"
        )
    return _spans(smoothing.adjacency, start, middle) + _spans(smoothing.attributes, middle, stop)


@law_of.register
def _(smoothing: CategoricalFlip) -> Law:
    return _Categories(smoothing)


@law_of.register
def _(smoothing: Joint) -> Law:
    return _Parts(smoothing)


@law_of.register
def _(smoothing: SparseFlip) -> Law:
    return _Flips(smoothing.p_plus, smoothing.p_minus)
