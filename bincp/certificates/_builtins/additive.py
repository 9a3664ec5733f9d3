"""Operators of additive noise that is independent between coordinates."""

from fractions import Fraction

from bincp._core import _operators
from bincp._core._operators import Operator
from bincp._utils.levels import float_above
from bincp.balls import L1, L2, Linf
from bincp.certificates._builtins._distance import (
    NormBall,
    Noted,
    dimension,
    noise_distance,
    sqrt_above,
)
from bincp.certificates._builtins._precise import cube_shift, digamma_rise, gamma
from bincp.certificates._registry import register_built_in
from bincp.errors import CertificateError
from bincp.smoothing import Expp, Gaussian, Laplace, Pareto, Uniform

_LEAST_PARETO = 1e-6  # below it 1 / a leaves the range where the kernel is accurate


@register_built_in(Gaussian, Linf, exact=True, adds_up=True)
@register_built_in(Gaussian, L1, exact=True, adds_up=True)
@register_built_in(Gaussian, L2, exact=True, adds_up=True)
def gaussian(smoothing: Gaussian, ball: NormBall) -> Noted:
    """Shift in the normal quantile: Phi(Phi^-1(p) - r / sigma), exact (Cohen et al. 2019).

    The l2 radius is r for an l1 ball and r sqrt(dim) for an linf ball: exact, too, as an axis of
    the l1 ball, and a corner of the linf ball, are as far away as that.
    """
    distance, note = noise_distance(smoothing, "l2", ball)
    return gaussian_shift(distance / Fraction(smoothing.sigma)), note


@register_built_in(Uniform, L1, exact=True, adds_up=True)
def uniform_l1(smoothing: Uniform, ball: L1) -> Noted:
    """Shift by r / (2 half_width) and clip (Yang et al. 2020, Levine and Feizi 2021); exact."""
    distance, note = noise_distance(smoothing, "l1", ball)
    return _operators.uniform(float_above(_widths(smoothing, distance))), note


@register_built_in(Uniform, Linf, exact=True)
def uniform_linf(smoothing: Uniform, ball: Linf) -> Noted:
    """Shift by the part that a corner takes from the cube, 1 - (1 - r / (2 half_width))^dim; clip.

    Exact (Yang et al. 2020, Table 1).
    """
    distance, note = noise_distance(smoothing, "linf", ball)
    return _operators.uniform(cube_shift(_widths(smoothing, distance), ball.dim)), note


@register_built_in(Uniform, L2)
def uniform_l2(smoothing: Uniform, ball: L2) -> Noted:
    """Take the better of the l1 ball of radius r sqrt(dim) and the linf ball of radius r.

    Both contain the l2 ball of radius r (Yang et al. 2020, Section 5); not tight.
    """
    from_l1, note_l1 = noise_distance(smoothing, "l1", ball)
    from_linf, note_linf = noise_distance(smoothing, "linf", ball)
    shift_l1 = float_above(_widths(smoothing, from_l1))
    shift_linf = cube_shift(_widths(smoothing, from_linf), dimension(ball))
    shift, note = min((shift_l1, note_l1), (shift_linf, note_linf), key=lambda c: c[0])
    return _operators.uniform(shift), note


@register_built_in(Laplace, L1, exact=True, adds_up=True)
@register_built_in(Laplace, L2)
@register_built_in(Laplace, Linf)
def laplace(smoothing: Laplace, ball: NormBall) -> Noted:
    """Shift in the Laplace quantile: F(F^-1(p) - r / scale), exact against the l1 ball.

    Teng et al. 2020; Yang et al. 2020, Table 1. Other balls are converted: their published linf
    radius is an approximation, and is not used.
    """
    distance, note = noise_distance(smoothing, "l1", ball)
    return _operators.laplace(float_above(distance / Fraction(smoothing.scale))), note


@register_built_in(Expp, L1)
@register_built_in(Expp, L2)
@register_built_in(Expp, Linf)
def expp(smoothing: Expp, ball: NormBall) -> Noted:
    """Shift in the quantile of one coordinate, exact against the l1 ball for p >= 1.

    For p >= 1 a coordinate is log-concave, so half-spaces along an axis are the worst sets at each
    radius and F(F^-1(probability) - r / scale) is the bound (Yang et al. 2020, Table 1). For
    p = 1/2 the worst sets differ between radii, and the bound comes from adding up the worst
    derivatives; a probability of 1 gets the limit of those below it, as R is bounded. Gaussian
    noise (p = 2) has its l2 bound.
    """
    if smoothing.p == 1:
        return laplace_shift(smoothing.scale, noise_distance(smoothing, "l1", ball))
    if smoothing.p == 2:
        return half_gaussian(smoothing.scale, noise_distance(smoothing, "l2", ball))
    distance, note = noise_distance(smoothing, "l1", ball)
    shift = float_above(distance / Fraction(smoothing.scale))
    if smoothing.p == 0.5:
        return _operators.half_power(shift), note
    if smoothing.p < 1:
        raise CertificateError(
            f"{smoothing!r} has no built-in bound: there is one for p >= 1 and for p = 1/2"
        )
    constant = gamma(1 + 1 / Fraction(smoothing.p))
    return _operators.exponential_power(shift, smoothing.p, constant), note


@register_built_in(Pareto, L1)
@register_built_in(Pareto, L2)
@register_built_in(Pareto, Linf)
def pareto(smoothing: Pareto, ball: NormBall) -> Noted:
    """Shift in the radius R(p) that adds up the worst derivatives, for the l1 ball.

    R = (scale u / a) 2F1(1, b; b + 1; u^(1/b)) with u = 2 p - 1, b = a / (a + 1) (Yang et al. 2020,
    Table 1), and odd about p = 1/2. Valid for every a > 0: the worst set of mass 1 - p for a small
    shift is an interval next to the peak.
    """
    if smoothing.a < _LEAST_PARETO:
        raise CertificateError(f"{smoothing!r} has no built-in bound: a must be >= {_LEAST_PARETO}")
    distance, note = noise_distance(smoothing, "l1", ball)
    a = Fraction(smoothing.a)
    shift = float_above(distance * a / Fraction(smoothing.scale))
    return _operators.pareto(shift, float(1 + 1 / a), digamma_rise(a / (a + 1))), note


def gaussian_shift(distance: Fraction) -> Operator:
    """Return the operator of Gaussian noise for a distance in standard deviations."""
    return _operators.gaussian(float_above(distance))


def half_gaussian(scale: float, noted: tuple[Fraction, str | None]) -> Noted:
    """Return the operator of the density exp(-|x / scale|_2^2), sigma = scale / sqrt(2)."""
    distance, note = noted
    return gaussian_shift(distance * sqrt_above(2) / Fraction(scale)), note


def laplace_shift(scale: float, noted: tuple[Fraction, str | None]) -> Noted:
    """Return the operator of the Laplace shift by a distance, with its note, over ``scale``."""
    distance, note = noted
    return _operators.laplace(float_above(distance / Fraction(scale))), note


def _widths(smoothing: Uniform, distance: Fraction) -> Fraction:
    return distance / (2 * Fraction(smoothing.half_width))
