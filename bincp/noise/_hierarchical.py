"""Noise on elements that are selected at random."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp.noise._keys import FloatArray, IntArray, Keys, selected
from bincp.noise._samplers import Sampler, chunks, sampler_of, samples
from bincp.smoothing import Hierarchical


@samples(Hierarchical)
class _Hierarchical(Sampler):
    """The inner noise for the whole input, which only selected elements keep."""

    def __init__(self, smoothing: Hierarchical) -> None:
        self.inner = sampler_of(smoothing.inner)
        self.shared = self.inner.shared
        # Elements that are not selected stay as they are, which grey levels in float32 do not.
        self.dtypes = tuple(dtype for dtype in self.inner.dtypes if dtype != "uint8")
        self.element = smoothing.element
        # Rounded up: a certificate for fewer selected elements still holds.
        self.threshold = math.ceil(Fraction(smoothing.q) * 2**128)

    def check(self, x: FloatArray) -> None:
        if self.element == "pixel" and x.ndim < 4:
            raise ValueError(
                "`x` must have shape (n, channels, height, width) for Hierarchical with "
                f"element='pixel', got {x.shape}"
            )
        self.inner.check(x)

    def fill(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        self.inner.fill(keys, sources, x, out)
        for rows in chunks(len(out), x[0].size):
            np.copyto(out[rows], x[sources[rows]], where=~self._selected(keys[rows], x.shape))

    def _selected(self, keys: Keys, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return what is selected, (rows, ...), with axes of length 1 where it is in common."""
        kept = shape[1:2] if self.element == "row" else shape[-2:]
        chosen = selected(keys, math.prod(kept), self.threshold)
        others = (1,) * (len(shape) - 1 - len(kept))
        axes = (*kept, *others) if self.element == "row" else (*others, *kept)
        return chosen.reshape(len(keys), *axes)
