"""Discrete noise: coordinates change to other values at random."""

from dataclasses import dataclass
from fractions import Fraction

from bincp._utils.levels import float_above
from bincp._utils.validation import check_integer, check_probability
from bincp.smoothing._base import NOTHING, Smoothing, set_parameters

_FLIP_ERROR = 2.0**-94  # of probabilities to 2^-128, over the 2^34 elements of an input
_CHOICE_ERROR = 2.0**-96  # 2^-130 for each category, over as many elements
_LEAST_FLIP = 1e-300  # below it the masses of regions come near the subnormal numbers


@dataclass(frozen=True)
class SparseFlip(Smoothing):
    """Independent flips of binary coordinates: 0 -> 1 and 1 -> 0 with their own probabilities.

    A coordinate is an element, whatever the shape of an input, and `balls.Flips` counts the same
    elements: a pixel of three channels is three of them, and a one-hot vector that changes its
    category is one addition and one deletion.

    Nothing is assumed of the model: flips have their probabilities exactly, or nearly, and then the
    certificate pays for the rest (`sampling_error`).

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

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance of a noisy input from its law.

        Returns
        -------
        float
            0 where both probabilities are multiples of 2^-128, as all from 2^-76 on are: flips
            then have them exactly. Else 2^-94, for fewer than 2^34 elements.

        Examples
        --------
        >>> SparseFlip(p_plus=0.01, p_minus=0.6).sampling_error()
        0.0
        """
        exact = all((p * 2.0**128).is_integer() for p in (self.p_plus, self.p_minus))
        return 0.0 if exact else _FLIP_ERROR


@dataclass(frozen=True)
class CategoricalFlip(Smoothing):
    """Independent changes of coordinates with k categories, of which category 0 is "zero".

    A zero becomes each of the k - 1 other categories with probability ``p_plus / (k - 1)``; any
    other category becomes each of the k - 1 categories that it is not, zero among them, with
    probability ``p_minus / (k - 1)``. With k = 2 this is `SparseFlip`.

    Inputs to be sampled are codes 0.0, 1.0, ..., k - 1, one element a coordinate, of any shape.
    `balls.CategoricalFlips` counts the same elements. Samplers refuse one-hot vectors along axis 1
    or the last one: a changed category would be two of them.

    Nothing is assumed of the model: categories have their probabilities exactly, or nearly, and
    then the certificate pays for the rest (`sampling_error`).

    Parameters
    ----------
    k : int
        Number of categories, in [2, 2^24]: codes are whole numbers in float32.
    p_plus : float
        Probability that a zero changes, in [0, 1].
    p_minus : float
        Probability that another category changes, in [0, 1].

    Raises
    ------
    TypeError
        If `k` is not an integer, or a probability not a real number.
    ValueError
        If `k` is out of range, or a probability outside [0, 1], or positive and below 1e-300.

    References
    ----------
    Bojchevski, Gasteiger and Günnemann, "Efficient robustness certificates for discrete data:
    sparsity-aware randomized smoothing for graphs, images and more", ICML 2020, the section on
    discrete data.

    Examples
    --------
    >>> CategoricalFlip(k=3, p_plus=0.01, p_minus=0.6)
    CategoricalFlip(k=3, p_plus=0.01, p_minus=0.6)
    """

    k: int
    p_plus: float
    p_minus: float

    def __post_init__(self) -> None:
        set_parameters(
            self,
            k=check_integer("k", self.k, low=2, high=2**24),
            p_plus=_flip_probability("p_plus", self.p_plus),
            p_minus=_flip_probability("p_minus", self.p_minus),
        )

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance of a noisy input from its law.

        Returns
        -------
        float
            That of `SparseFlip`, and (k - 1) 2^-96 for the choice among k - 1 categories from 128
            random bits, which is exact where k - 1 is a power of two.

        Examples
        --------
        >>> f"{CategoricalFlip(k=4, p_plus=0.2, p_minus=0.6).sampling_error():.1e}"
        '3.8e-29'
        """
        others = self.k - 1
        choice = others * _CHOICE_ERROR if others & (others - 1) else 0.0
        return SparseFlip(self.p_plus, self.p_minus).sampling_error() + choice


@dataclass(frozen=True)
class Joint(Smoothing):
    """Two sub-spaces of the input, each with a scheme of its own.

    What is assumed of the model is what the parts assume, which is nothing for discrete schemes;
    the certificate pays for the errors of both (`sampling_error`). It is exact where both parts are
    discrete, and that of `bincp.certificates.product` else.

    Parameters
    ----------
    adjacency, attributes : Smoothing
        The schemes of the two parts, of any kind; their noise is independent. `bincp.sampling` and
        `bincp.noise` draw `SparseFlip`, `CategoricalFlip` and `Joint`, and refuse others.
    n_adjacency : int, optional
        Number of leading elements of an input, flattened, that are the first part. Needed to draw
        noise; a certificate does not depend on it. Inputs are flat, or have their parts one after
        the other along axis 1; samplers refuse parts that begin inside a row.

    Raises
    ------
    TypeError
        If a part is not a smoothing scheme, or `n_adjacency` not an integer.
    ValueError
        If `n_adjacency` is negative, or 2^63 or more.

    References
    ----------
    Bojchevski, Gasteiger and Günnemann, ICML 2020, the section on joint certificates.

    Examples
    --------
    >>> Joint(adjacency=SparseFlip(0.001, 0.4), attributes=SparseFlip(0.01, 0.6)).attributes
    SparseFlip(p_plus=0.01, p_minus=0.6)
    """

    adjacency: Smoothing
    attributes: Smoothing
    n_adjacency: int | None = None

    def __post_init__(self) -> None:
        for name in ("adjacency", "attributes"):
            part = getattr(self, name)
            if not isinstance(part, Smoothing):
                raise TypeError(f"`{name}` must be a smoothing scheme, got {part!r}")
        if self.n_adjacency is not None:
            number = check_integer("n_adjacency", self.n_adjacency, low=0, high=2**63 - 1)
            set_parameters(self, n_adjacency=number)

    def assumes(self) -> str | None:
        """Return the assumption, see `Smoothing.assumes`."""
        first, second = self.adjacency.assumes(), self.attributes.assumes()
        if first is None or second is None:
            return None
        return "; ".join(sorted({first, second} - {NOTHING})) or NOTHING

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance: the sum of those of the parts."""
        parts = (self.adjacency.sampling_error(), self.attributes.sampling_error())
        return min(float_above(sum(map(Fraction, parts), Fraction(0))), 1.0)


def _flip_probability(name: str, value: object) -> float:
    probability = check_probability(name, value)
    if 0 < probability < _LEAST_FLIP:
        raise ValueError(f"`{name}` must be 0 or at least {_LEAST_FLIP}, got {probability!r}")
    return probability
