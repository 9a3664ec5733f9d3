"""Additive noise whose density depends on one norm of the noise vector.

Its coordinates depend on each other, so no table of integers draws it exactly. The certificate
assumes what the notes of each scheme say.
"""

from dataclasses import dataclass

from bincp._utils.validation import check_real
from bincp.smoothing._base import READS_NO_LAST_BITS, Smoothing, set_parameters


@dataclass(frozen=True)
class UniformBall(Smoothing):
    """Noise uniform in the l2 ball, added to the input.

    Parameters
    ----------
    radius : float
        Radius of the ball, > 0, in the units of the tensor that gets the noise. In d dimensions
        the standard deviation is ``radius / sqrt(d + 2)`` a coordinate.

    Raises
    ------
    TypeError
        If `radius` is not a real number.
    ValueError
        If `radius` is not finite and positive.

    Notes
    -----
    The guarantee assumes that the model does not read the last bits of x + noise: the noise is made
    of floating-point numbers, whose sums with x have last bits that depend on x more than real
    numbers would let them (see `Gaussian`, whose `grid` avoids that).

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> UniformBall(radius=2)
    UniformBall(radius=2.0)
    """

    radius: float

    def __post_init__(self) -> None:
        set_parameters(self, radius=_positive("radius", self.radius))

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS


@dataclass(frozen=True)
class Exp1(Smoothing):
    """Noise of density ~ ``exp(-(|x|_1 / scale)^k)``, added to the input.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. In d dimensions the standard
        deviation is ``scale * sqrt(2 / (d * (d + 1)) * gamma((d + 2) / k) / gamma(d / k))`` a
        coordinate.
    k : float, optional
        Power, > 0. With k = 1 this is ``Laplace(scale)``.

    Raises
    ------
    TypeError
        If a parameter is not a real number.
    ValueError
        If a parameter is not finite and positive.

    Notes
    -----
    The guarantee assumes that the model does not read the last bits of x + noise: the noise is made
    of floating-point numbers, whose sums with x have last bits that depend on x more than real
    numbers would let them (see `Gaussian`, whose `grid` avoids that).

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Exp1(scale=0.5, k=2)
    Exp1(scale=0.5, k=2.0)
    """

    scale: float
    k: float = 1

    def __post_init__(self) -> None:
        set_parameters(self, scale=_positive("scale", self.scale), k=_positive("k", self.k))

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS


@dataclass(frozen=True)
class Exp2(Smoothing):
    """Noise of density ~ ``|x|_2^-j exp(-(|x|_2 / scale)^k)``, added to the input.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. In d dimensions the standard
        deviation is ``scale * sqrt(gamma((d - j + 2) / k) / gamma((d - j) / k) / d)`` a coordinate.
    k : float, optional
        Power, > 0. With k = 2 and j = 0 this is ``Gaussian(scale / sqrt(2))``.
    j : float, optional
        Power of the pole at zero, at least 0 and below the dimension of the input.

    Raises
    ------
    TypeError
        If a parameter is not a real number.
    ValueError
        If `scale` or `k` is not finite and positive, or `j` not finite and at least 0.

    Notes
    -----
    The guarantee assumes that the model does not read the last bits of x + noise: the noise is made
    of floating-point numbers, whose sums with x have last bits that depend on x more than real
    numbers would let them (see `Gaussian`, whose `grid` avoids that).

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Exp2(scale=0.5, k=2)
    Exp2(scale=0.5, k=2.0, j=0.0)
    """

    scale: float
    k: float = 1
    j: float = 0

    def __post_init__(self) -> None:
        _set_exponential(self)

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS


@dataclass(frozen=True)
class ExpInf(Smoothing):
    """Noise of density ~ ``|x|_inf^-j exp(-(|x|_inf / scale)^k)``, added to the input.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. In d dimensions the variance of
        a coordinate is ``scale**2 * (d + 2) / (3 * d) * gamma((d - j + 2) / k) /
        gamma((d - j) / k)``.
    k : float, optional
        Power, > 0.
    j : float, optional
        Power of the pole at zero, at least 0 and below the dimension of the input.

    Raises
    ------
    TypeError
        If a parameter is not a real number.
    ValueError
        If `scale` or `k` is not finite and positive, or `j` not finite and at least 0.

    Notes
    -----
    The guarantee assumes that the model does not read the last bits of x + noise: the noise is made
    of floating-point numbers, whose sums with x have last bits that depend on x more than real
    numbers would let them (see `Gaussian`, whose `grid` avoids that).

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> ExpInf(scale=0.5)
    ExpInf(scale=0.5, k=1.0, j=0.0)
    """

    scale: float
    k: float = 1
    j: float = 0

    def __post_init__(self) -> None:
        _set_exponential(self)

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS


@dataclass(frozen=True)
class PowInf(Smoothing):
    """Noise of density ~ ``(1 + |x|_inf / scale)^-a``, added to the input.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. In d dimensions the variance of
        a coordinate is ``scale**2 * (d + 1) * (d + 2) / (3 * (a - d - 1) * (a - d - 2))`` if
        a > d + 2, and infinite otherwise.
    a : float
        Power, above 1 and above the dimension of the input.

    Raises
    ------
    TypeError
        If a parameter is not a real number.
    ValueError
        If `scale` is not finite and positive, or `a` not finite and above 1.

    Notes
    -----
    The guarantee assumes that the model does not read the last bits of x + noise: the noise is made
    of floating-point numbers, whose sums with x have last bits that depend on x more than real
    numbers would let them (see `Gaussian`, whose `grid` avoids that).

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> PowInf(scale=0.5, a=800)
    PowInf(scale=0.5, a=800.0)
    """

    scale: float
    a: float

    def __post_init__(self) -> None:
        set_parameters(
            self,
            scale=_positive("scale", self.scale),
            a=check_real("a", self.a, low=1, open_low=True),
        )

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS


def _set_exponential(scheme: Exp2 | ExpInf) -> None:
    set_parameters(
        scheme,
        scale=_positive("scale", scheme.scale),
        k=_positive("k", scheme.k),
        j=check_real("j", scheme.j, low=0),
    )


def _positive(name: str, value: object) -> float:
    return check_real(name, value, low=0, open_low=True)
