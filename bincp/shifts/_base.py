"""The base of shifts: what they do to probabilities, in exact arithmetic."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from bincp._utils.levels import Level, as_fraction, check_level


@dataclass(frozen=True, eq=False)  # a subclass that is no dataclass equals only itself
class Shift(ABC):
    """Base of the shifts; a subclass is a frozen dataclass of its parameters.

    A subclass outside this module defines `_lower` and `_required` on fractions. Both must be those
    of one convex, non-decreasing function g with g(0) = 0 and Q(A) >= g(P(A)) for every event A and
    every law Q of the shift. Events include those of the noise and of coins.
    """

    def lower(self, p: Level) -> Fraction:
        """Return the least probability under Q of an event that has the probability p under P.

        Parameters
        ----------
        p : int, float, str, Decimal or Fraction
            In [0, 1]. A float stands for its shortest decimal.

        Returns
        -------
        Fraction
            Rounded down where it is irrational, by less than 1e-18.

        Raises
        ------
        TypeError, ValueError
            If p is not a number in [0, 1], or `_lower` of a class from outside does not return a
            Fraction in [0, p].

        Examples
        --------
        >>> from bincp import shifts
        >>> shifts.TotalVariation("0.05").lower("0.9")
        Fraction(17, 20)
        """
        known = _check_probability("p", p)
        return self._proper("_lower", self._lower(known), Fraction(0), known)

    def required(self, q: Level) -> Fraction | None:
        """Return the least probability under P that is certain to be at least q under Q.

        Parameters
        ----------
        q : int, float, str, Decimal or Fraction
            In [0, 1].

        Returns
        -------
        Fraction or None
            Rounded up where it is irrational; None where no event is certain to have so much.

        Raises
        ------
        TypeError, ValueError
            If q is not a number in [0, 1], or `_required` of a class from outside returns neither
            None nor a Fraction in [q, 1].

        Examples
        --------
        >>> from bincp import shifts
        >>> shifts.TotalVariation("0.05").required("0.9"), shifts.TotalVariation("0.2").required(1)
        (Fraction(19, 20), None)
        """
        wanted = _check_probability("q", q)
        needed = self._required(wanted) if wanted else wanted
        return None if needed is None else self._proper("_required", needed, wanted, Fraction(1))

    def level(self, alpha: Level) -> Fraction:
        """Return the level under P that gives the level alpha under Q.

        Sets that miss the label of a point of P with at most this probability miss that of a point
        of Q with probability at most alpha.

        Parameters
        ----------
        alpha : int, float, str, Decimal or Fraction
            In (0, 1).

        Returns
        -------
        Fraction
            Rounded down. 0 where only sets of all labels withstand the shift.

        Raises
        ------
        TypeError, ValueError
            If alpha is not a number in (0, 1).

        Examples
        --------
        >>> from bincp import shifts
        >>> shifts.TotalVariation("0.05").level("0.1")
        Fraction(1, 20)
        >>> round(float(shifts.KL("0.01").level("0.1")), 6)
        0.062911
        """
        needed = self.required(1 - check_level("alpha", alpha))
        return Fraction(0) if needed is None else max(1 - needed, Fraction(0))

    def _proper(self, name: str, value: Any, low: Fraction, high: Fraction) -> Fraction:
        """Refuse floats, and what no convex g with g(0) = 0 and g(1) <= 1 gives."""
        who = f"`{name}` of {type(self).__name__}"
        if not isinstance(value, Fraction | int):
            raise TypeError(f"{who} must return a Fraction, got {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{who} must be in [{low}, {high}], as g is convex, got {value}")
        return Fraction(value)

    @abstractmethod
    def _lower(self, p: Fraction) -> Fraction: ...

    @abstractmethod
    def _required(self, q: Fraction) -> Fraction | None: ...


def check_size(name: str, value: Level, *, high: Fraction | None = None) -> Fraction:
    """Return the size of a shift, at least 0 and at most ``high``, exactly."""
    size = as_fraction(name, value)
    if size < 0 or (high is not None and size > high):
        wanted = "at least 0" if high is None else f"in [0, {high}]"
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}")
    return size


def _check_probability(name: str, value: Level) -> Fraction:
    return check_size(name, value, high=Fraction(1))
