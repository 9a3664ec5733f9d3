"""Balls of transformations of a whole input."""

from dataclasses import dataclass

from bincp._utils.validation import check_real
from bincp.balls._base import Ball


@dataclass(frozen=True)
class Translations(Ball):
    """Moves of an image by whole pixels, which go on at the opposite edge.

    Parameters
    ----------
    r : float
        Largest length of the move, >= 0, in pixels: ``hypot(rows, columns) <= r``.

    Raises
    ------
    TypeError
        If `r` is not a real number.
    ValueError
        If `r` is negative or not finite.

    Examples
    --------
    >>> Translations(5)
    Translations(r=5.0)
    """

    r: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", check_real("r", self.r, low=0))


@dataclass(frozen=True)
class BrightnessChange(Ball):
    """One number that is added to all elements of an input.

    Parameters
    ----------
    r : float
        Largest size of the number, >= 0, in the units of the tensor that gets the noise.

    Raises
    ------
    TypeError
        If `r` is not a real number.
    ValueError
        If `r` is negative or not finite.

    Examples
    --------
    >>> BrightnessChange(0.1)
    BrightnessChange(r=0.1)
    """

    r: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", check_real("r", self.r, low=0))
