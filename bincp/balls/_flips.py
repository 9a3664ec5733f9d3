"""Balls of numbers of changed coordinates."""

from dataclasses import dataclass

from bincp._validation import check_integer
from bincp.balls._base import Ball


@dataclass(frozen=True)
class Flips(Ball):
    """Binary perturbations: at most so many 0 -> 1 (additions) and 1 -> 0 (deletions).

    Parameters
    ----------
    additions : int
        Largest number of zeros that the adversary sets, in [0, 2^31).
    deletions : int
        Largest number of ones that the adversary clears, in [0, 2^31).

    Raises
    ------
    TypeError
        If a number is not an integer.
    ValueError
        If a number is negative, or 2^31 or more.

    Examples
    --------
    >>> Flips(additions=1, deletions=3).inverse()
    Flips(additions=3, deletions=1)
    """

    additions: int
    deletions: int

    def __post_init__(self) -> None:
        for name in ("additions", "deletions"):
            number = check_integer(name, getattr(self, name), low=0, high=2**31 - 1)
            object.__setattr__(self, name, number)

    def inverse(self) -> "Flips":
        """Return the ball with additions and deletions exchanged."""
        return Flips(additions=self.deletions, deletions=self.additions)
