"""Shifts whose bounds are rational."""

from dataclasses import dataclass
from fractions import Fraction

from bincp._utils.levels import Level, as_fraction
from bincp.balls import Ball
from bincp.shifts._base import Shift, check_size


@dataclass(frozen=True)
class TotalVariation(Shift):
    """Laws within a total variation of the calibration law: ``|Q(A) - P(A)| <= rho`` for every A.

    No density is needed. A share rho of the test points may come from anywhere.

    Parameters
    ----------
    rho : int, float, str, Decimal or Fraction
        In [0, 1]. It must be below alpha for a useful rule.

    Raises
    ------
    TypeError, ValueError
        If rho is not a number in [0, 1].

    Notes
    -----
    With b = P(A), the least Q(A) is max(0, b - rho). It is attained.

    References
    ----------
    M. Cauchois, S. Gupta, A. Ali and J. Duchi, "Robust validation: confident predictions even when
    distributions shift", JASA 2024.

    Examples
    --------
    >>> from bincp import shifts
    >>> shifts.TotalVariation("0.02").level("0.1")
    Fraction(2, 25)
    """

    rho: Level

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_size("rho", self.rho, high=Fraction(1)))

    def _lower(self, p: Fraction) -> Fraction:
        return max(Fraction(0), p - Fraction(self.rho))

    def _required(self, q: Fraction) -> Fraction | None:
        needed = q + Fraction(self.rho)
        return needed if needed <= 1 else None


@dataclass(frozen=True)
class LikelihoodRatio(Shift):
    """Laws with a density with respect to the calibration law: low <= dQ/dP <= high.

    Parameters
    ----------
    low : int, float, str, Decimal or Fraction
        In [0, 1]; 0 bounds the density from above alone.
    high : int, float, str, Decimal or Fraction
        At least 1.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range.

    Notes
    -----
    With b = P(A), the least Q(A) is max(low b, 1 - high (1 - b)). It is attained. Random selection
    is such a shift: if the labels of a share of at most e of the calibration points are wrong,
    whatever the input and label are, the law without errors is `LikelihoodRatio(0, 1 / (1 - e))`.

    Examples
    --------
    >>> from bincp import shifts
    >>> shifts.LikelihoodRatio("1/2", 2).level("0.1")
    Fraction(1, 20)
    """

    low: Level
    high: Level

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", check_size("low", self.low, high=Fraction(1)))
        high = as_fraction("high", self.high)
        if high < 1:
            raise ValueError(f"`high` must be at least 1, got {self.high!r}")
        object.__setattr__(self, "high", high)

    def _lower(self, p: Fraction) -> Fraction:
        return max(Fraction(self.low) * p, 1 - Fraction(self.high) * (1 - p))

    def _required(self, q: Fraction) -> Fraction | None:
        needed = 1 - (1 - q) / Fraction(self.high)
        return min(needed, q / Fraction(self.low)) if self.low else needed


@dataclass(frozen=True)
class LevyProkhorov(Shift):
    """Laws of points that lie in a ball around points of the calibration law, but a share rho.

    Q is such a law if a test point can be drawn together with a calibration point such that, with
    probability 1 - rho at least, the two have the same label and the input of the first lies in the
    ball around that of the second (Strassen's theorem). So a small shift moves each input a little,
    and a few of them anywhere.

    Parameters
    ----------
    ball : Ball
        The local part, such as ``bincp.balls.L2(0.1)``. The smoothing scheme must have a
        certificate for it, which `bincp.BinCP` composes with that of the attack; for two balls of
        one norm it takes the ball of the sum of the radii.
    rho : int, float, str, Decimal or Fraction
        The global part, in [0, 1].

    Raises
    ------
    TypeError, ValueError
        If `ball` is no ball, or rho not a number in [0, 1].

    Notes
    -----
    `lower`, `required` and `level` are those of the global part, `TotalVariation(rho)`.

    References
    ----------
    L. Aolaritei, Z. O. Wang, J. Zhu, M. I. Jordan and Y. Marzouk, "Conformal prediction under
    Levy-Prokhorov distribution shifts", arXiv 2502.14105.

    Examples
    --------
    >>> import bincp
    >>> shift = bincp.shifts.LevyProkhorov(bincp.balls.L2(0.05), rho="0.02")
    >>> shift.level("0.1")
    Fraction(2, 25)
    """

    ball: Ball
    rho: Level

    def __post_init__(self) -> None:
        if not isinstance(self.ball, Ball):
            raise TypeError(f"`ball` must be a ball, got {self.ball!r}")
        object.__setattr__(self, "rho", check_size("rho", self.rho, high=Fraction(1)))

    def _lower(self, p: Fraction) -> Fraction:
        return TotalVariation(self.rho)._lower(p)

    def _required(self, q: Fraction) -> Fraction | None:
        return TotalVariation(self.rho)._required(q)
