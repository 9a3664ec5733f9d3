"""Noise whose density depends on one norm: a direction times an independent radius.

If the density of x is a function of |x| alone, then x / |x| and |x| are independent, x / |x| has
the same distribution for every such density, and |x| = r has density ~ r^(d - 1) times the
function. So any one such density gives the direction: the Gaussian for l2, Laplace for l1. For linf
it is uniform on the surface of the cube: a point of the cube, moved to a face that is chosen
uniformly.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from bincp._core import _noise
from bincp.noise._keys import DoubleArray, FloatArray, Keys, standard_numbers
from bincp.noise._samplers import Sampler, float32_at_least, samples
from bincp.noise._wide import LEAST_UNIT, WideSampler
from bincp.smoothing import Exp1, Exp2, ExpInf, PowInf, UniformBall

# A direction: from the keys, the dimension d and one unit number a row to rows (rows, d).
Direction = Callable[[Keys, int, DoubleArray], DoubleArray]
# A radius: from d and two unit numbers a row to one number a row, which falls in both; it refuses
# some d.
Radius = Callable[[int, DoubleArray, DoubleArray], FloatArray]


class _Radial(WideSampler):
    def __init__(self, direction: Direction, radius: Radius) -> None:
        self.direction = direction
        self.radius = radius

    def largest(self, d: int) -> float:
        least = np.array([LEAST_UNIT])
        return float(self.radius(d, least, least)[0])

    def noise(self, keys: Keys, d: int) -> FloatArray:
        units = keys.units(3, part=1)
        rows = self.direction(keys, d, units[:, 2])
        rows *= self.radius(d, units[:, 0], units[:, 1])[:, None]
        return rows


@samples(UniformBall)
def _uniform_ball(smoothing: UniformBall) -> Sampler:
    scale = float32_at_least(smoothing.radius)
    return _Radial(_on_sphere, lambda d, u, v: scale * (1 - u) ** (1 / d))


@samples(Exp1)
def _exp1(smoothing: Exp1) -> Sampler:
    return _Radial(_on_cross_polytope, _exponential_radius(smoothing, 0))


@samples(Exp2)
def _exp2(smoothing: Exp2) -> Sampler:
    return _Radial(_on_sphere, _exponential_radius(smoothing, smoothing.j))


@samples(ExpInf)
def _exp_inf(smoothing: ExpInf) -> Sampler:
    return _Radial(_on_cube, _exponential_radius(smoothing, smoothing.j))


@samples(PowInf)
def _pow_inf(smoothing: PowInf) -> Sampler:
    scale, a = float32_at_least(smoothing.scale), smoothing.a

    def radius(d: int, u: DoubleArray, v: DoubleArray) -> FloatArray:
        if not d < a:
            raise ValueError(
                f"`x` must have fewer than {a:g} elements an input for {smoothing}, got {d}"
            )
        # The density is ~ r^(d - 1) (1 + r)^-a: a ratio of Gamma numbers of shapes d and a - d.
        return scale * special.gammainccinv(d, v) / special.gammaincinv(a - d, u)

    return _Radial(_on_cube, radius)


def _exponential_radius(smoothing: Exp1 | Exp2 | ExpInf, j: float) -> Radius:
    scale, k = float32_at_least(smoothing.scale), smoothing.k

    def radius(d: int, u: DoubleArray, v: DoubleArray) -> FloatArray:
        if not d > j:
            raise ValueError(
                f"`x` must have more than {j:g} elements an input for {smoothing}, got {d}"
            )
        # The density is ~ r^(d - 1 - j) exp(-r^k), so r^k is a Gamma(s) number for s = (d - j) / k:
        # one of shape 1 + s times a unit number to the power 1 / s, which no s makes underflow.
        widths = special.gammainccinv(1 + (d - j) / k, v) ** (1 / k)
        return scale * widths * (1 - u) ** (1 / (d - j))

    return radius


def _on_sphere(keys: Keys, d: int, unit: DoubleArray) -> DoubleArray:
    """Return directions uniform on the l2 sphere."""
    rows = standard_numbers(keys, _noise.GAUSSIAN, d)
    return _divided(rows, np.sqrt((rows * rows).sum(axis=1)))


def _on_cross_polytope(keys: Keys, d: int, unit: DoubleArray) -> DoubleArray:
    """Return directions uniform on the faces of the l1 ball."""
    rows = standard_numbers(keys, _noise.LAPLACE, d)
    return _divided(rows, np.abs(rows).sum(axis=1))


def _on_cube(keys: Keys, d: int, unit: DoubleArray) -> DoubleArray:
    """Return directions uniform on the faces of the linf ball."""
    rows = standard_numbers(keys, _noise.UNIFORM, d)
    each = np.arange(len(rows))
    face = (unit * d).astype(np.int64)  # the largest unit number still rounds to below d
    rows[each, face] = np.copysign(1.0, rows[each, face])
    return rows


def _divided(rows: DoubleArray, norms: DoubleArray) -> DoubleArray:
    """Divide rows by their norms; a row of zeros (d = 1: once in 2^25) becomes (+-1, 0, ...)."""
    zeros = norms == 0
    rows[zeros, 0] = np.copysign(1.0, rows[zeros, 0])
    rows /= np.where(zeros, 1.0, norms)[:, None]
    return rows
