"""Smoothing schemes: how the input is randomised. Parameters only; the noise is drawn elsewhere.

Scales are in the units of the tensor that gets the noise.
"""

from dataclasses import dataclass

from bincp._validation import check_probability, check_real

__all__ = ["Gaussian", "Smoothing", "SparseFlip", "Uniform"]

_LEAST_FLIP = 1e-300  # below it the masses of regions come near the subnormal numbers


@dataclass(frozen=True)
class Smoothing:
    """Base of the smoothing schemes; a subclass is a frozen dataclass of its parameters."""


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
        _set(self, sigma=check_real("sigma", self.sigma, low=0, open_low=True))


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
        _set(self, half_width=check_real("half_width", self.half_width, low=0, open_low=True))


@dataclass(frozen=True)
class SparseFlip(Smoothing):
    """Independent flips of binary coordinates: 0 -> 1 and 1 -> 0 with their own probabilities.

    Parameters
    ----------
    p_plus : float
        Probability of 0 -> 1, in [0, 1].
    p_minus : float
        Probability of 1 -> 0, in [0, 1].

    Raises
    ------
    TypeError
        If a probability is not a real number.
    ValueError
        If a probability is outside [0, 1], or positive and below 1e-300, where doubles lose
        precision.

    References
    ----------
    Bojchevski, Gasteiger and Günnemann, "Efficient robustness certificates for discrete data:
    sparsity-aware randomized smoothing for graphs, images and more", ICML 2020.

    Examples
    --------
    >>> SparseFlip(p_plus=0.01, p_minus=0.6)
    SparseFlip(p_plus=0.01, p_minus=0.6)
    """

    p_plus: float
    p_minus: float

    def __post_init__(self) -> None:
        _set(
            self,
            p_plus=_flip_probability("p_plus", self.p_plus),
            p_minus=_flip_probability("p_minus", self.p_minus),
        )


def _flip_probability(name: str, value: object) -> float:
    probability = check_probability(name, value)
    if 0 < probability < _LEAST_FLIP:
        raise ValueError(f"`{name}` must be 0 or at least {_LEAST_FLIP}, got {probability!r}")
    return probability


def _set(scheme: Smoothing, **parameters: float) -> None:
    for name, value in parameters.items():
        object.__setattr__(scheme, name, value)
