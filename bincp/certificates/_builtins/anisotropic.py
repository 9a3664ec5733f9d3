"""Operators of Gaussian noise with a fixed covariance.

Let mu be the largest |S^(-1/2) d| over the ball. The bound Phi(Phi^-1(p) - mu) is exact for every
p: the worst event is a half-space across the d where mu is attained. mu is rounded up. It is
infinite, and the bound trivial, where the ball leaves the range of S.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from bincp._core import _operators
from bincp._utils.definite import MOST_EXACT, Entries, Matrix, is_at_least
from bincp._utils.levels import float_above
from bincp._utils.matrices import full, is_diagonal
from bincp.balls import L1, L2, Box, Ellipsoid, Linf
from bincp.certificates._builtins._distance import GRID_ROUNDING, Noted
from bincp.certificates._combined import sqrt_above
from bincp.certificates._registry import register_built_in
from bincp.errors import CertificateError
from bincp.smoothing import AnisotropicGaussian, Gaussian

_STEPS = (50, 46, 42, 38, 34, 30, 26, 22, 18, 14, 10, 6, 3, 1, 0, -4)
_MOST_CORNERS = 8  # dimensions of a box, each of whose corners is proven to be inside
_TRIVIAL = "the ball leaves the range of the covariance"


@register_built_in(AnisotropicGaussian, L1)
@register_built_in(AnisotropicGaussian, L2, exact=True, adds_up=True)
def norm_ball(smoothing: AnisotropicGaussian, ball: L1 | L2) -> Noted:
    """Shift by r over the least standard deviation of any direction; exact for the l2 ball.

    The l1 ball is in that l2 ball, and as bad where the covariance is diagonal.
    """
    _check_dim(smoothing.dim, ball.dim, ball)
    if smoothing.std is not None:
        return _shift([(ball.r, min(smoothing.std))])
    return _shift_of_matrix(smoothing, Fraction(ball.r), np.eye(smoothing.dim))


@register_built_in(AnisotropicGaussian, Linf, exact=True, adds_up=True)
def linf_ball(smoothing: AnisotropicGaussian, ball: Linf) -> Noted:
    """Shift as for the box with all half widths r; exact."""
    _check_dim(smoothing.dim, ball.dim, ball)
    return _box(smoothing, (ball.r,) * smoothing.dim)


@register_built_in(AnisotropicGaussian, Box, exact=True)
def box(smoothing: AnisotropicGaussian, ball: Box) -> Noted:
    """Shift by the root of the sum of (r_i / s_i)^2, or to the worst of all corners; exact."""
    _check_dim(smoothing.dim, len(ball.r), ball)
    return _box(smoothing, ball.r)


@register_built_in(AnisotropicGaussian, Ellipsoid, exact=True, adds_up=True)
def ellipsoid(smoothing: AnisotropicGaussian, ball: Ellipsoid) -> Noted:
    """Shift by r times the root of the largest eigenvalue of S^-1 M; exact."""
    _check_dim(smoothing.dim, len(ball.matrix), ball)
    if smoothing.std is None or not is_diagonal(ball.matrix):
        return _shift_of_matrix(smoothing, Fraction(ball.r), full(ball.matrix))
    quotients = [_quotient(m, s, 2) for m, s in zip(ball.matrix, smoothing.std, strict=True)]
    if None in quotients and ball.r > 0:
        return _trivial()
    return _shifted(Fraction(ball.r) ** 2 * max(quotient or 0 for quotient in quotients))


@register_built_in(Gaussian, Box, exact=True)
@register_built_in(Gaussian, Ellipsoid, exact=True, adds_up=True)
def isotropic(smoothing: Gaussian, ball: Box | Ellipsoid) -> Noted:
    """Shift by the length of the longest half axis, or of half the diagonal, over sigma; exact."""
    dim = len(ball.r) if isinstance(ball, Box) else len(ball.matrix)
    noise = AnisotropicGaussian([smoothing.sigma] * dim)
    operator, note = box(noise, ball) if isinstance(ball, Box) else ellipsoid(noise, ball)
    if not smoothing.takes_points:
        return operator, note
    _, shift = _operators.shift_of(operator) or ("", 0.0)
    on_grid = f"a distance of multiples of 1/{smoothing.grid}"
    return _operators.gaussian(float_above(Fraction(shift) * GRID_ROUNDING)), on_grid


def _check_dim(wanted: int, dim: int | None, ball: object) -> None:
    if dim is not None and dim != wanted:
        raise ValueError(f"`ball` must have the {wanted} dimensions of the noise, got {ball!r}")


def _box(smoothing: AnisotropicGaussian, r: Sequence[float]) -> Noted:
    if smoothing.std is not None:
        return _shift(list(zip(r, smoothing.std, strict=True)))
    if len(r) > _MOST_CORNERS:
        raise CertificateError(
            f"{smoothing!r} has no built-in bound for a box in more than {_MOST_CORNERS} "
            "dimensions: certify an ellipsoid that holds the box"
        )
    first, *rest = r  # opposite corners are equally far away
    corners = [(first, *corner) for corner in product(*((x, -x) for x in rest))]
    return _least_scale(smoothing, [_square(corner) for corner in corners])


def _square(corner: Sequence[float]) -> Entries:
    """Return c c', the ellipsoid that is the line from -c to c."""
    return [[Fraction(a) * Fraction(b) for b in corner] for a in corner]


def _shift(sides: Sequence[tuple[float, float]]) -> Noted:
    """Shift by the root of the sum of (r / s)^2."""
    quotients = [_quotient(r, s, 1) for r, s in sides]
    if None in quotients:
        return _trivial()
    return _shifted(sum((Fraction(q or 0) ** 2 for q in quotients), Fraction(0)))


def _quotient(r: float, s: float, power: int) -> Fraction | None:
    """Return r / s^power; 0 where nothing changes, None where it is infinite."""
    if r == 0:
        return Fraction(0)
    return Fraction(r) / Fraction(s) ** power if s > 0 else None


def _shift_of_matrix(smoothing: AnisotropicGaussian, r: Fraction, matrix: Matrix) -> Noted:
    if r == 0:
        return _operators.gaussian(0.0), None
    return _least_scale(smoothing, [matrix], r)


def _covariance(smoothing: AnisotropicGaussian) -> tuple[Entries, list[int]]:
    """Return S, with rows and columns divided by powers of two, and the exponents of these.

    Its diagonal is then near 1, so that all of it can be taken for doubles.
    """
    if smoothing.std is None:
        noise = full(smoothing.covariance or ())
        exponents = [math.frexp(math.sqrt(a))[1] for a in np.diagonal(noise).tolist()]
        return _divided(noise, exponents), exponents
    parts = [math.frexp(std)[0] for std in smoothing.std]
    exponents = [math.frexp(std)[1] for std in smoothing.std]
    if len(parts) > MOST_EXACT:
        return np.diag(np.square(parts)), exponents
    squares = [Fraction(part) ** 2 for part in parts]
    exact = [
        [a if i == j else Fraction(0) for j in range(len(squares))] for i, a in enumerate(squares)
    ]
    return exact, exponents


def _divided(matrix: Entries, exponents: Sequence[int], power: int = 0) -> Entries:
    """Return a matrix with rows and columns divided by powers of two, and all of it by one more.

    Entries of large matrices may underflow.
    """
    if isinstance(matrix, np.ndarray) and len(matrix) > MOST_EXACT:
        sums = np.add.outer(exponents, exponents) + power
        return np.ldexp(matrix, (-sums).astype(np.intc))
    return [
        [Fraction(a) * Fraction(2) ** (-i - j - power) for a, j in zip(row, exponents, strict=True)]
        for row, i in zip(matrix, exponents, strict=True)
    ]


def _size(matrix: Entries, exponents: Sequence[int]) -> int:
    """Return about the exponent of the largest entry once a matrix is divided; 0 if all are 0.

    The largest one is on the diagonal of a matrix without negative eigenvalues.
    """
    diagonal = [Fraction(row[i]) for i, row in enumerate(matrix)]
    sizes = [
        a.numerator.bit_length() - a.denominator.bit_length() - 2 * i
        for a, i in zip(diagonal, exponents, strict=True)
        if a > 0
    ]
    return max(sizes, default=0)


def _least_scale(
    smoothing: AnisotropicGaussian, balls: Sequence[Entries], r: Fraction = Fraction(1)
) -> Noted:
    """Shift by r root(x) for the least x at which x S - M has no negative eigenvalue for all M.

    Such an x is guessed in floating-point arithmetic, and proven.
    """
    noise, exponents = _covariance(smoothing)
    power = max(_size(ball, exponents) for ball in balls)
    moved = [_divided(ball, exponents, power) for ball in balls]
    rounded = np.array(noise, dtype=np.float64)
    guess = max(_largest_eigenvalue(rounded, np.array(ball, dtype=np.float64)) for ball in moved)
    for step in _STEPS:
        scale = Fraction(guess) * (1 + Fraction(2) ** -step)
        if all(is_at_least(scale, noise, ball) for ball in moved):
            return _shifted(scale * Fraction(2) ** power * r**2)
    return _trivial()


def _largest_eigenvalue(noise: Matrix, ball: Matrix) -> float:
    """Return about the largest eigenvalue of S^-1 M, in the range of S."""
    std = np.sqrt(np.diagonal(noise))
    units = np.outer(std, std)
    units[units == 0] = 1  # a direction without noise
    values, vectors = np.linalg.eigh(noise / units)
    kept = values > values[-1] * len(values) * 2.0**-52
    if not kept.any():  # no direction has noise
        return 0.0
    half = vectors[:, kept] / np.sqrt(values[kept])
    return float(max(np.linalg.eigvalsh(half.T @ (ball / units) @ half)[-1], 0.0))


def _shifted(square: Fraction) -> Noted:
    return _operators.gaussian(float_above(sqrt_above(square))), None


def _trivial() -> Noted:
    return _operators.uniform(1.0), _TRIVIAL
