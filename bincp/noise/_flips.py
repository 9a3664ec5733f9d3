"""Coordinates that change their value at random."""

from typing import Any

from bincp import _noise
from bincp._arrays import where
from bincp.noise._keys import FloatArray
from bincp.noise._laws import Law, law_of
from bincp.smoothing import SparseFlip


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


@law_of.register
def _(smoothing: SparseFlip) -> Law:
    return _Flips(smoothing.p_plus, smoothing.p_minus)
