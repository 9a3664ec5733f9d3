"""Noise in two levels, and models in the place of noise."""

from dataclasses import dataclass
from typing import Literal, get_args

from bincp._utils.validation import MAX_COUNT, check_integer, check_probability
from bincp.smoothing._base import NOTHING, Smoothing, set_parameters

Element = Literal["row", "pixel"]


@dataclass(frozen=True)
class Hierarchical(Smoothing):
    """Noise on some elements of an input, which are selected at random.

    Each element is selected with probability `q`, independently of the others. Selected elements
    get the noise of the inner scheme, the others stay as they are. Certified against
    `balls.Elements`, whose inner ball is one that the inner scheme is certified against.

    Parameters
    ----------
    inner : Smoothing
        The noise of the selected elements; any scheme that keeps the shape of an input, but not
        another `Hierarchical`.
    q : float
        Probability that an element is selected, in [0, 1].
    element : "row" or "pixel"
        What is selected: an index of axis 1 of inputs (n, rows, ...), such as a node of a graph
        with its attributes, or a place of the last two axes of images (n, channels, height, width)
        with all its channels.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If `q` is outside [0, 1], `element` is unknown, or `inner` is hierarchical.

    Notes
    -----
    The model need not see which elements were selected. For continuous noise it can tell, and the
    bound is exact where that of the inner scheme is. For discrete noise it is loose:
    ``SparseFlip(q p_plus, q p_minus)`` is the same noise with a better certificate, where all
    elements are single bits.

    Selections have the probability `q` rounded up to a multiple of 2^-128, for which the
    certificate holds, too: the more is selected, the better is the bound. What is assumed of the
    model is what the inner scheme assumes.

    References
    ----------
    Scholten, Schuchardt, Bojchevski and Günnemann, "Hierarchical randomized smoothing",
    NeurIPS 2023.

    Examples
    --------
    >>> from bincp.smoothing import Gaussian
    >>> Hierarchical(Gaussian(0.25), q=0.8)
    Hierarchical(inner=Gaussian(sigma=0.25), q=0.8, element='row')
    """

    inner: Smoothing
    q: float
    element: Element = "row"

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Smoothing):
            raise TypeError(f"`inner` must be a smoothing scheme, got {self.inner!r}")
        if isinstance(self.inner, Hierarchical):
            raise ValueError(
                f"`inner` must not be hierarchical, got {self.inner!r}: selecting twice is "
                "selecting with the product of both probabilities"
            )
        set_parameters(self, q=check_probability("q", self.q))
        if self.element not in get_args(Element):
            raise ValueError(f"`element` must be 'row' or 'pixel', got {self.element!r}")

    def assumes(self) -> str | None:
        """Return the assumption of the inner scheme, see `Smoothing.assumes`."""
        return self.inner.assumes()

    def sampling_error(self) -> float:
        """Return the bound of the inner scheme: its noise is drawn for the whole input."""
        return self.inner.sampling_error()


@dataclass(frozen=True)
class Partition(Smoothing):
    """Models of disjoint parts of the training data in the place of noisy copies.

    The training data are cut into `models` parts, such that the part of a point depends on that
    point alone, as by a hash of it. Each model is trained on one part. The scores of an input by
    all models stand for all scores of its noisy copies, so its probabilities are exact: the share
    of the models whose score reaches the threshold. Certified against `balls.TrainingPoints`.

    Parameters
    ----------
    models : int
        Number of parts, in [1, 2^31).

    Raises
    ------
    TypeError
        If `models` is not an integer.
    ValueError
        If it is out of range.

    Notes
    -----
    A point that is inserted, deleted, or relabelled where the hash does not see the label, changes
    one model. A point that changes its part changes two, and must be counted as two points.

    References
    ----------
    Levine and Feizi, "Deep partition aggregation: provable defenses against general poisoning
    attacks", ICLR 2021.

    Examples
    --------
    >>> Partition(50)
    Partition(models=50)
    """

    models: int

    def __post_init__(self) -> None:
        set_parameters(self, models=check_integer("models", self.models, low=1, high=MAX_COUNT))

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING
