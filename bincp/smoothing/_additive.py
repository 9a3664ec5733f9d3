"""Additive noise: a random vector of a fixed law is added to the input."""

from dataclasses import dataclass

from bincp._validation import check_real
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
