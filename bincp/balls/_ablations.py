"""Balls that limit where an input changes, not by how much: sparse changes, patches, edits."""

from dataclasses import dataclass

from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.balls._base import Ball


@dataclass(frozen=True)
class L0(Ball):
    """Perturbations of at most `r` coordinates, each to any value.

    Parameters
    ----------
    r : int
        Number of coordinates, in [0, 2^31). The smoothing scheme says whether a coordinate is an
        element or a pixel with all its channels, see `bincp.smoothing.Ablation`.

    Raises
    ------
    TypeError
        If `r` is not an integer.
    ValueError
        If `r` is negative, or 2^31 or more.

    Examples
    --------
    >>> L0(8)
    L0(r=8)
    """

    r: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", check_integer("r", self.r, low=0, high=MAX_COUNT))


@dataclass(frozen=True)
class Patch(Ball):
    """Perturbations inside one rectangle at any place of an image, in all channels of its pixels.

    The rectangle lies within the image: it does not go on at the opposite edge.

    Parameters
    ----------
    height, width : int
        Size of the rectangle in pixels, each in [0, 2^31).

    Raises
    ------
    TypeError
        If a number is not an integer.
    ValueError
        If a number is negative, or 2^31 or more.

    Examples
    --------
    >>> Patch(height=5, width=5)
    Patch(height=5, width=5)
    """

    height: int
    width: int

    def __post_init__(self) -> None:
        for name in ("height", "width"):
            number = check_integer(name, getattr(self, name), low=0, high=MAX_COUNT)
            object.__setattr__(self, name, number)


@dataclass(frozen=True)
class EditDistance(Ball):
    """Perturbations of a sequence by at most `r` deletions, insertions and substitutions together.

    Parameters
    ----------
    r : int
        Levenshtein distance, in [0, 2^31).

    Raises
    ------
    TypeError
        If `r` is not an integer.
    ValueError
        If `r` is negative, or 2^31 or more.

    Examples
    --------
    >>> EditDistance(3).inverse()
    EditDistance(r=3)
    """

    r: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", check_integer("r", self.r, low=0, high=MAX_COUNT))


@dataclass(frozen=True)
class Elements(Ball):
    """Perturbations of at most `r` elements of an input, all of them together within a ball.

    What an element is, such as a row or a pixel with all its channels, the smoothing scheme says,
    see `bincp.smoothing.Hierarchical`.

    Parameters
    ----------
    r : int
        Number of elements that may change, in [0, 2^31).
    within : Ball
        The ball that holds the whole change, that of all `r` elements, in the form in which the
        inner noise of the scheme is certified.

    Raises
    ------
    TypeError
        If `r` is not an integer, or `within` not a ball.
    ValueError
        If `r` is negative, or 2^31 or more.

    Examples
    --------
    >>> from bincp.balls import L2
    >>> Elements(2, within=L2(0.5))
    Elements(r=2, within=L2(r=0.5, dim=None))
    """

    r: int
    within: Ball

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", check_integer("r", self.r, low=0, high=MAX_COUNT))
        if not isinstance(self.within, Ball):
            raise TypeError(f"`within` must be a ball, got {self.within!r}")

    def inverse(self) -> "Elements":
        """Return the ball of the inverted inner ball."""
        return Elements(self.r, self.within.inverse())


@dataclass(frozen=True)
class TrainingPoints(Ball):
    """Changes of at most `r` points of the training data: inserted, deleted, changed or relabelled.

    Parameters
    ----------
    r : int
        Number of points, in [0, 2^31).

    Raises
    ------
    TypeError
        If `r` is not an integer.
    ValueError
        If `r` is negative, or 2^31 or more.

    Examples
    --------
    >>> TrainingPoints(3)
    TrainingPoints(r=3)
    """

    r: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", check_integer("r", self.r, low=0, high=MAX_COUNT))


@dataclass(frozen=True)
class Substitutions(Ball):
    """Perturbations that replace at most `r` words by synonyms that are not too far away.

    Parameters
    ----------
    r : int
        Number of words, in [0, 2^31).
    distance : int, optional
        Largest distance of a synonym from the word in the circle of its set, in [0, 2^31), see
        `bincp.smoothing.Staircase`; at most its `step`.

    Raises
    ------
    TypeError
        If a number is not an integer.
    ValueError
        If a number is negative, or 2^31 or more.

    Examples
    --------
    >>> Substitutions(3, distance=2)
    Substitutions(r=3, distance=2)
    """

    r: int
    distance: int = 1

    def __post_init__(self) -> None:
        for name in ("r", "distance"):
            number = check_integer(name, getattr(self, name), low=0, high=MAX_COUNT)
            object.__setattr__(self, name, number)
