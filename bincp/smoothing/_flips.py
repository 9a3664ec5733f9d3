"""Discrete noise: coordinates change to other values at random."""

from dataclasses import dataclass

from bincp._validation import check_probability
from bincp.smoothing._base import Smoothing, set_parameters

_LEAST_FLIP = 1e-300  # below it the masses of regions come near the subnormal numbers


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
        set_parameters(
            self,
            p_plus=_flip_probability("p_plus", self.p_plus),
            p_minus=_flip_probability("p_minus", self.p_minus),
        )


def _flip_probability(name: str, value: object) -> float:
    probability = check_probability(name, value)
    if 0 < probability < _LEAST_FLIP:
        raise ValueError(f"`{name}` must be 0 or at least {_LEAST_FLIP}, got {probability!r}")
    return probability
