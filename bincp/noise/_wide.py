"""Noise that is computed in float64 from keyed numbers and rounded to float32 last."""

from abc import abstractmethod

import numpy as np

from bincp.noise._keys import FloatArray, IntArray, Keys
from bincp.noise._samplers import FlatSampler, check_largest, chunks

LEAST_UNIT = 2.0**-53  # the least of `Keys.units`


class WideSampler(FlatSampler):
    """A sampler of additive noise that needs float64 on its way."""

    @abstractmethod
    def largest(self, d: int) -> float:
        """Return a bound on the noise that can be drawn, or refuse inputs of d elements."""

    @abstractmethod
    def noise(self, keys: Keys, d: int) -> FloatArray:
        """Return the noise (rows, d) of each key."""

    def check(self, x: FloatArray) -> None:
        with np.errstate(over="ignore", divide="ignore"):
            check_largest(self.largest(x.size // len(x)))

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        for rows in chunks(len(out), x.shape[1]):
            noise = self.noise(keys[rows], x.shape[1])
            np.add(x[sources[rows]], noise.astype(np.float32), out=out[rows])
