"""Noise with independent coordinates that is added to the input."""

import math

import numpy as np
from scipy import special

from bincp._core import _noise
from bincp.noise._grid import ClippedGridSampler, GridSampler, OffGridSampler
from bincp.noise._keys import DoubleArray, FloatArray, IntArray, Keys, core_key
from bincp.noise._samplers import (
    FlatSampler,
    Sampler,
    check_largest,
    float32_at_least,
    sampler_of,
    samples,
)
from bincp.noise._wide import LEAST_UNIT, WideSampler
from bincp.smoothing import Expp, Gaussian, Laplace, Pareto, Uniform

# The largest draws of the distributions that are drawn in float32, for a scale of 1; see
# csrc/noise/laws.h.
_LARGEST = {_noise.GAUSSIAN: 6.77, _noise.UNIFORM: 1.0, _noise.LAPLACE: 22.19}


class AdditiveSampler(FlatSampler):
    """Noise that csrc/noise draws in float32."""

    def __init__(self, distribution: int, scale: float) -> None:
        self.distribution = distribution
        self.scale = float32_at_least(scale)
        check_largest(self.scale * _LARGEST[distribution])

    def check(self, x: FloatArray) -> None:
        """Take all inputs."""

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        _noise.add_noise(self.distribution, self.scale, *core_key(keys), sources, x, out)


@samples(Gaussian)
def _gaussian(smoothing: Gaussian) -> Sampler:
    if smoothing.grid is not None:
        return OffGridSampler(smoothing) if smoothing.off_grid else GridSampler(smoothing)
    return AdditiveSampler(_noise.GAUSSIAN, smoothing.sigma)


@samples(Uniform)
def _uniform(smoothing: Uniform) -> Sampler:
    if smoothing.grid is not None:
        return GridSampler(smoothing)
    return AdditiveSampler(_noise.UNIFORM, smoothing.half_width)


@samples(Laplace)
def _laplace(smoothing: Laplace) -> Sampler:
    if smoothing.grid is not None:
        return GridSampler(smoothing)
    return AdditiveSampler(_noise.LAPLACE, smoothing.scale)


class _Expp(WideSampler):
    """A uniform number times a random width: (width / scale)^p is a Gamma(1 + 1 / p) number.

    So |x / scale|^p is a Gamma(1 / p) number, as its density says. SciPy takes five times as long
    for the quantiles of that.
    """

    def __init__(self, smoothing: Expp) -> None:
        self.scale = float32_at_least(smoothing.scale)
        self.p = smoothing.p

    def largest(self, d: int) -> float:
        return float(self.width(np.array([LEAST_UNIT]))[0])

    def width(self, v: DoubleArray) -> FloatArray:
        """Return the widths that are exceeded with the probabilities v."""
        return self.scale * special.gammainccinv(1 + 1 / self.p, v) ** (1 / self.p)

    def noise(self, keys: Keys, d: int) -> FloatArray:
        return (2 * keys.units(d) - 1) * self.width(keys.units(d, part=1))


class _Pareto(WideSampler):
    def __init__(self, smoothing: Pareto) -> None:
        self.scale = float32_at_least(smoothing.scale)
        self.a = smoothing.a

    def largest(self, d: int) -> float:
        return float(self.magnitude(np.array([2 * LEAST_UNIT]))[0])

    def magnitude(self, v: DoubleArray) -> FloatArray:
        """Return what |x| exceeds with the probabilities v: P(|x| > t) = (1 + t / scale)^-a."""
        return self.scale * np.expm1(-np.log(v) / self.a)

    def noise(self, keys: Keys, d: int) -> FloatArray:
        # The smaller tail, twice: exact, so that the far ends keep their resolution.
        u = keys.units(d)
        return np.copysign(self.magnitude(2 * np.minimum(u, 1 - u)), u - 0.5)


@samples(Pareto)
def _pareto(smoothing: Pareto) -> Sampler:
    return _Pareto(smoothing) if smoothing.grid is None else ClippedGridSampler(smoothing)


@samples(Expp)
def _expp(smoothing: Expp) -> Sampler:
    if smoothing.grid is not None:
        return GridSampler(smoothing)
    if smoothing.p == 1:
        return sampler_of(Laplace(smoothing.scale))
    if smoothing.p == 2:
        return sampler_of(Gaussian(smoothing.scale / math.sqrt(2)))
    return _Expp(smoothing)
