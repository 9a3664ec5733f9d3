"""Operators of additive noise whose density depends on one norm of the noise vector."""

from fractions import Fraction

from bincp._core import _operators
from bincp._utils.levels import float_above
from bincp.balls import L1, L2, Linf
from bincp.certificates._builtins._distance import NormBall, Noted, dimension, distance_in
from bincp.certificates._builtins._precise import ball_shift, exponential_shift, sech_norm
from bincp.certificates._builtins.additive import half_gaussian, laplace_shift
from bincp.certificates._registry import register_built_in
from bincp.errors import CertificateError
from bincp.smoothing import Exp1, Exp2, ExpInf, PowInf, UniformBall


@register_built_in(UniformBall, L1, exact=True)
@register_built_in(UniformBall, L2, exact=True)
@register_built_in(UniformBall, Linf, exact=True)
def uniform_ball(smoothing: UniformBall, ball: NormBall) -> Noted:
    """Shift by the part of the ball that is not in the moved one, and clip.

    The part is the central mass I_{t^2}(1/2, (dim + 1)/2) at t = r / (2 radius); exact, and as it
    depends on the l2 length alone, exact for the converted balls too (Yang et al. 2020, Table 1).
    """
    distance, note = distance_in("l2", ball)
    ratio = distance / (2 * Fraction(smoothing.radius))
    return _operators.uniform(ball_shift(ratio, dimension(ball))), note


@register_built_in(Exp1, L1)
@register_built_in(Exp1, L2)
@register_built_in(Exp1, Linf)
def exp1(smoothing: Exp1, ball: NormBall) -> Noted:
    """Use the Laplace bound for k = 1; other k have tables only (Yang et al. 2020, Table 1)."""
    if smoothing.k != 1:
        raise CertificateError(f"{smoothing!r} has no built-in bound: there is one for k = 1")
    return laplace_shift(smoothing.scale, distance_in("l1", ball))


@register_built_in(Exp2, L1)
@register_built_in(Exp2, L2)
@register_built_in(Exp2, Linf)
def exp2(smoothing: Exp2, ball: NormBall) -> Noted:
    """Use the Gaussian bound for k = 2; for k = 1 shift in the quantile of sech(x)^(dim - 1).

    The score of ``exp(-|x|_2 / scale)`` is the unit vector of the noise, and its worst sets of a
    given mass are cones; adding up their derivatives gives R = scale (dim - 1) atanh(1 - 2 q), q
    the Beta((dim - 1)/2, (dim - 1)/2) quantile of 1 - p (Yang et al. 2020, Table 1). tanh of a
    number with density ~ sech(x)^(dim - 1) has that law, so R is its quantile; tight for small r.
    For dim = 1 the noise is Laplace. The bound depends on the l2 length alone.
    """
    if smoothing.j != 0 or smoothing.k not in (1, 2):
        raise CertificateError(
            f"{smoothing!r} has no built-in bound: there is one for j = 0 with k = 1 or k = 2"
        )
    if smoothing.k == 2:
        return half_gaussian(smoothing.scale, distance_in("l2", ball))
    dim = dimension(ball)
    if dim == 1:
        return laplace_shift(smoothing.scale, distance_in("l2", ball))
    distance, note = distance_in("l2", ball)
    shift = float_above(distance / (Fraction(smoothing.scale) * (dim - 1)))
    alpha = Fraction(dim - 1, 2)
    return _operators.sech_power(shift, float(alpha), sech_norm(alpha)), note


@register_built_in(ExpInf, L1)
@register_built_in(ExpInf, L2)
@register_built_in(ExpInf, Linf)
def exp_inf(smoothing: ExpInf, ball: NormBall) -> Noted:
    """Shift by r / (2 scale g) and clip; against linf for k = 1 and j = 0 a Laplace shift.

    The density is a mixture of uniform cubes, and a cube of half-width w loses at most r / (2 w)
    to an l1 shift of r; the mean of 1 / w is 1 / (scale g), with
    g = dim / (dim - 1) Gamma((dim - j)/k) / Gamma((dim - j - 1)/k), finite for dim - j > 1 (and
    Gamma(1 + 1/k) for dim = 1, j = 0); against l1 tight for small r and p <= 1 - 1/dim. For k = 1
    and j = 0 the density changes by at most a factor exp(r / scale) over the linf ball, which is
    the Laplace bound, and exact; above p = 1 - 1/dim it can be better for the l1 ball as well.
    An l2 ball is converted, for k = 1 and j = 0 to whichever of the two is better at each p
    (Yang et al. 2020, Table 1).
    """
    dim = dimension(ball)
    if smoothing.j >= dim:
        raise ValueError(f"`smoothing` must have j < dim = {dim}, got {smoothing!r}")
    laplace_like = smoothing.k == 1 and smoothing.j == 0
    if laplace_like and type(ball) is Linf:
        return laplace_shift(smoothing.scale, distance_in("linf", ball))
    if smoothing.j > 0 and dim - Fraction(smoothing.j) <= 1:
        raise CertificateError(
            f"{smoothing!r} has no built-in bound in {dim} dimensions: there is one for "
            "dim - j > 1, and for j = 0"
        )
    distance, note = distance_in("l1", ball)
    scale = Fraction(smoothing.scale)
    k, j = Fraction(smoothing.k), Fraction(smoothing.j)
    shift = exponential_shift(distance / (2 * scale), k, j, dim)
    if laplace_like and type(ball) is L2:
        operator = _operators.laplace_or_uniform(float_above(Fraction(ball.r) / scale), shift)
        return operator, f"{note}, or as the linf radius r, whichever is better at p"
    return _operators.uniform(shift), note


@register_built_in(PowInf, L1)
@register_built_in(PowInf, L2)
@register_built_in(PowInf, Linf)
def pow_inf(smoothing: PowInf, ball: NormBall) -> Noted:
    """Shift by r (a - dim) / (2 scale dim) and clip: a mixture of cubes as for ExpInf.

    Yang et al. 2020, Table 1, for the l1 ball; other balls are converted. The noise exists only for
    a > dim.
    """
    dim, a = dimension(ball), Fraction(smoothing.a)
    if a <= dim:
        raise ValueError(f"`smoothing` must have a > dim = {dim}, got {smoothing!r}")
    distance, note = distance_in("l1", ball)
    shift = float_above(distance * (a - dim) / (2 * Fraction(smoothing.scale) * dim))
    return _operators.uniform(shift), note
