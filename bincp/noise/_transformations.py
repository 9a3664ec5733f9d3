"""Noise in the parameters of a transformation."""

import numpy as np

from bincp.noise._grid import GridSampler
from bincp.noise._keys import FloatArray, IntArray, Keys
from bincp.noise._samplers import (
    FlatSampler,
    Sampler,
    check_largest,
    chunks,
    float32_at_least,
    samples,
)
from bincp.smoothing import Brightness, Translation

_LARGEST = 6.77  # standard deviations


@samples(Translation)
class _Translation(Sampler):
    """The last two axes are rolled by integer noise."""

    def __init__(self, smoothing: Translation) -> None:
        self.move = GridSampler(smoothing.law())

    def check(self, x: FloatArray) -> None:
        if x.ndim < 3:
            raise ValueError(
                f"`x` must have shape (n, ..., height, width) for Translation, got {x.shape}"
            )

    def fill(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        moves = np.empty((len(out), 2))
        self.move.fill_rows(keys, np.zeros(len(out), np.int64), np.zeros((1, 2)), moves)
        for row, source, move in zip(out, sources, moves.astype(np.int64), strict=True):
            row[:] = np.roll(x[source], move, axis=(-2, -1))


@samples(Brightness)
class _Brightness(FlatSampler):
    """One number for a row; its scale is rounded up."""

    def __init__(self, smoothing: Brightness) -> None:
        self.scale = float32_at_least(smoothing.sigma)
        check_largest(self.scale * _LARGEST)

    def check(self, x: FloatArray) -> None:
        """Take all inputs."""

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        for rows in chunks(len(out), x.shape[1]):
            noise = self.scale * keys[rows].normals(1)
            out[rows] = x[sources[rows]] + noise.astype(out.dtype)
