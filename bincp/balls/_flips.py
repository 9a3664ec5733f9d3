"""Balls that limit the number of changed coordinates."""

from dataclasses import dataclass

from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.balls._base import Ball


@dataclass(frozen=True)
class Flips(Ball):
    """Binary perturbations: limited numbers of 0 -> 1 (additions) and 1 -> 0 (deletions).

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
        _check_numbers(self, "additions", "deletions")

    def inverse(self) -> "Flips":
        """Return the ball with additions and deletions exchanged."""
        return Flips(additions=self.deletions, deletions=self.additions)


@dataclass(frozen=True)
class CategoricalFlips(Ball):
    """Perturbations of categories: limited numbers of additions, deletions and changes.

    Parameters
    ----------
    additions : int
        Largest number of zeros that the adversary turns into another category, in [0, 2^31).
    deletions : int
        Largest number of other categories that the adversary turns into zero, in [0, 2^31).
    changes : int
        Largest number of other categories that the adversary turns into one another, in [0, 2^31).

    Raises
    ------
    TypeError
        If a number is not an integer.
    ValueError
        If a number is negative, or 2^31 or more.

    Examples
    --------
    >>> CategoricalFlips(additions=1, deletions=3, changes=2).inverse()
    CategoricalFlips(additions=3, deletions=1, changes=2)
    """

    additions: int
    deletions: int
    changes: int

    def __post_init__(self) -> None:
        _check_numbers(self, "additions", "deletions", "changes")

    def inverse(self) -> "CategoricalFlips":
        """Return the ball with additions and deletions exchanged; a change undoes a change."""
        return CategoricalFlips(self.deletions, self.additions, self.changes)


@dataclass(frozen=True)
class Joint(Ball):
    """Perturbations of two sub-spaces of the input at once, each within a ball of its own.

    Parameters
    ----------
    adjacency, attributes : Ball
        The balls of the two parts, such as `Flips`.

    Raises
    ------
    TypeError
        If a part is not a ball.

    Examples
    --------
    >>> Joint(adjacency=Flips(0, 2), attributes=Flips(1, 1)).inverse().adjacency
    Flips(additions=2, deletions=0)
    """

    adjacency: Ball
    attributes: Ball

    def __post_init__(self) -> None:
        for name in ("adjacency", "attributes"):
            part = getattr(self, name)
            if not isinstance(part, Ball):
                raise TypeError(f"`{name}` must be a ball, got {part!r}")

    def inverse(self) -> "Joint":
        """Return the ball of the two inverted balls."""
        return Joint(self.adjacency.inverse(), self.attributes.inverse())


def _check_numbers(ball: Ball, *names: str) -> None:
    for name in names:
        number = check_integer(name, getattr(ball, name), low=0, high=MAX_COUNT)
        object.__setattr__(ball, name, number)
