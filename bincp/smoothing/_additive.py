"""Additive noise with independent coordinates."""

from dataclasses import dataclass

from bincp._utils.validation import check_real
from bincp.smoothing._base import Smoothing, set_parameters


@dataclass(frozen=True)
class Gaussian(Smoothing):
    """Isotropic Gaussian noise, N(0, sigma^2 I), added to the input.

    Parameters
    ----------
    sigma : float
        Standard deviation, > 0, in the units of the tensor that gets the noise.

    Raises
    ------
    TypeError
        If `sigma` is not a real number.
    ValueError
        If `sigma` is not finite and positive.

    References
    ----------
    Cohen, Rosenfeld and Kolter, "Certified adversarial robustness via randomized smoothing",
    ICML 2019.

    Examples
    --------
    >>> Gaussian(sigma=0.25)
    Gaussian(sigma=0.25)
    """

    sigma: float

    def __post_init__(self) -> None:
        set_parameters(self, sigma=check_real("sigma", self.sigma, low=0, open_low=True))


@dataclass(frozen=True)
class Uniform(Smoothing):
    """Independent uniform noise on [-half_width, half_width], added to each coordinate.

    Parameters
    ----------
    half_width : float
        Half the width of the interval (lambda in the literature), > 0, in the units of the tensor
        that gets the noise. Its standard deviation is ``half_width / sqrt(3)`` a coordinate.

    Raises
    ------
    TypeError
        If `half_width` is not a real number.
    ValueError
        If `half_width` is not finite and positive.

    References
    ----------
    Levine and Feizi, "Improved, deterministic smoothing for L1 certified robustness", ICML 2021;
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Uniform(half_width=0.5)
    Uniform(half_width=0.5)
    """

    half_width: float

    def __post_init__(self) -> None:
        set_parameters(
            self, half_width=check_real("half_width", self.half_width, low=0, open_low=True)
        )


@dataclass(frozen=True)
class Laplace(Smoothing):
    """Independent Laplace noise, of density ~ exp(-|x|_1 / scale), added to the input.

    Parameters
    ----------
    scale : float
        Mean absolute value of a coordinate, > 0, in the units of the tensor that gets the noise.
        The standard deviation is ``sqrt(2) * scale`` a coordinate.

    Raises
    ------
    TypeError
        If `scale` is not a real number.
    ValueError
        If `scale` is not finite and positive.

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020; Teng et al., "l1
    adversarial robustness certificates: a randomized smoothing approach", 2020.

    Examples
    --------
    >>> Laplace(scale=0.25)
    Laplace(scale=0.25)
    """

    scale: float

    def __post_init__(self) -> None:
        set_parameters(self, scale=check_real("scale", self.scale, low=0, open_low=True))


@dataclass(frozen=True)
class Expp(Smoothing):
    """Independent generalised Gaussian noise, of density ~ exp(-|x / scale|_p^p), added.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. The standard deviation is
        ``scale * sqrt(gamma(3 / p) / gamma(1 / p))`` a coordinate.
    p : float
        Power, > 0. With p = 1 this is ``Laplace(scale)``, with p = 2
        ``Gaussian(scale / sqrt(2))``; the larger it is, the nearer to ``Uniform(scale)``.

    Raises
    ------
    TypeError
        If a parameter is not a real number.
    ValueError
        If a parameter is not finite and positive.

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Expp(scale=0.5, p=4)
    Expp(scale=0.5, p=4.0)
    """

    scale: float
    p: float

    def __post_init__(self) -> None:
        set_parameters(
            self,
            scale=check_real("scale", self.scale, low=0, open_low=True),
            p=check_real("p", self.p, low=0, open_low=True),
        )


@dataclass(frozen=True)
class Pareto(Smoothing):
    """Independent two-sided Pareto noise, of density ~ (1 + |x| / scale)^-(a + 1) a coordinate.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. The standard deviation is
        ``scale * sqrt(2 / ((a - 1) * (a - 2)))`` a coordinate if a > 2, and infinite otherwise.
    a : float
        Power of the tail, > 0: ``P(|x| > t) = (1 + t / scale)**-a``.

    Raises
    ------
    TypeError
        If a parameter is not a real number.
    ValueError
        If a parameter is not finite and positive.

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Pareto(scale=0.5, a=3)
    Pareto(scale=0.5, a=3.0)
    """

    scale: float
    a: float

    def __post_init__(self) -> None:
        set_parameters(
            self,
            scale=check_real("scale", self.scale, low=0, open_low=True),
            a=check_real("a", self.a, low=0, open_low=True),
        )
