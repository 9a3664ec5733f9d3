"""Gaussian noise with a fixed covariance."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from bincp._utils.definite import MOST_EXACT, Entries, is_at_least
from bincp._utils.matrices import full
from bincp.noise._keys import DoubleArray, FloatArray, IntArray, Keys
from bincp.noise._samplers import (
    FlatSampler,
    Sampler,
    check_largest,
    chunks,
    float32_at_least,
    samples,
)
from bincp.smoothing import AnisotropicGaussian

_LARGEST = 6.77  # standard deviations


class _Anisotropic(FlatSampler):
    """Standard normal numbers, made into noise by each scheme in its own way."""

    def __init__(self, dim: int, largest: float) -> None:
        check_largest(largest)
        self.dim = dim

    def check(self, x: FloatArray) -> None:
        if x[0].size != self.dim:
            raise ValueError(
                f"`x` must have the {self.dim} elements an input of AnisotropicGaussian, "
                f"got shape {x.shape}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        for rows in chunks(len(out), self.dim):
            noise = self.noise(keys[rows].normals(self.dim))
            out[rows] = x[sources[rows]] + noise.astype(out.dtype)

    def noise(self, normals: DoubleArray) -> DoubleArray:
        raise NotImplementedError


class _Independent(_Anisotropic):
    """Each number times its standard deviation, which is rounded up."""

    def __init__(self, std: DoubleArray) -> None:
        self.std = np.array([float32_at_least(s) if s else 0.0 for s in std.tolist()])
        super().__init__(len(std), _LARGEST * float(self.std.max()))

    def noise(self, normals: DoubleArray) -> DoubleArray:
        return np.asarray(normals * self.std)


class _Dependent(_Anisotropic):
    """A vector of numbers times a root of the covariance, which is enlarged by rounding errors.

    A certificate for less noise than was drawn still holds, so the square of the root must be
    proven to be at least the covariance.
    """

    def __init__(self, covariance: DoubleArray) -> None:
        values, vectors = np.linalg.eigh(covariance)
        largest = float(values[-1])
        for step in (46, 40, 34, 28, 22):
            more = values.clip(0) * (1 + 2.0**-step) + largest * 2.0 ** -(step + 6)
            self.root = vectors * np.sqrt(more)
            if is_at_least(Fraction(1), _square(self.root), covariance):
                break
        else:
            raise ValueError("`smoothing` must have a covariance of which a root can be proven")
        lengths = np.sqrt((self.root**2).sum(axis=1) * len(values))
        super().__init__(len(values), _LARGEST * float(lengths.max()))

    def noise(self, normals: DoubleArray) -> DoubleArray:
        # One product for each row: a product of matrices depends on the number of rows.
        return np.array([self.root @ row for row in normals])


def _square(root: DoubleArray) -> Entries:
    """Return the square of a root, or of a large root less than that by all rounding errors."""
    if len(root) > MOST_EXACT:
        square = root @ root.T
        error = (len(root) + 2) * 2.0**-52 * float(np.trace(square))
        return np.asarray(square - error * np.eye(len(root)))
    rows = [[Fraction(entry) for entry in row] for row in root.tolist()]
    return [[_dot(one, other) for other in rows] for one in rows]


def _dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0))


@samples(AnisotropicGaussian)
def _anisotropic(smoothing: AnisotropicGaussian) -> Sampler:
    if smoothing.std is not None:
        return _Independent(np.array(smoothing.std))
    return _Dependent(full(smoothing.covariance or ()))
