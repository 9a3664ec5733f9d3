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
