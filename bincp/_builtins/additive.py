"""Operators of additive noise."""

import math
from fractions import Fraction

from bincp import _operators
from bincp._levels import float_above
from bincp.balls import L1, L2, Linf
from bincp.certificates import Certificate
from bincp.registry import register_built_in
from bincp.smoothing import Gaussian, Uniform


@register_built_in(Gaussian, L2)
def gaussian_l2(smoothing: Gaussian, ball: L2) -> Certificate:
    """Shift in the normal quantile: Phi(Phi^-1(p) - r / sigma), exact (Cohen et al. 2019)."""
    return _gaussian(smoothing, Fraction(ball.r))


@register_built_in(Gaussian, L1)
def gaussian_l1(smoothing: Gaussian, ball: L1) -> Certificate:
    """Reuse the l2 certificate of the radius: both balls reach as far along an axis; exact."""
    return _gaussian(smoothing, Fraction(ball.r))


@register_built_in(Gaussian, Linf)
def gaussian_linf(smoothing: Gaussian, ball: Linf) -> Certificate:
    """Reuse the l2 certificate of radius r sqrt(dim), the distance of a corner; exact."""
    note = f"linf radius {ball.r!r} certified as the l2 radius r sqrt(dim), dim = {ball.dim}"
    return _gaussian(smoothing, Fraction(ball.r) * _sqrt_above(ball.dim), note=note)


@register_built_in(Uniform, L1)
def uniform_l1(smoothing: Uniform, ball: L1) -> Certificate:
    """Shift by r / (2 half_width) and clip (Yang et al. 2020, Levine and Feizi 2021); exact."""
    shift = float_above(Fraction(ball.r) / (2 * Fraction(smoothing.half_width)))
    return Certificate._from_operator(_operators.uniform(shift))


def _gaussian(smoothing: Gaussian, distance: Fraction, **note: str) -> Certificate:
    shift = float_above(distance / Fraction(smoothing.sigma))
    return Certificate._from_operator(_operators.gaussian(shift), **note)


def _sqrt_above(number: int) -> Fraction:
    root = math.sqrt(number)
    return Fraction(root if Fraction(root) ** 2 >= number else math.nextafter(root, math.inf))
