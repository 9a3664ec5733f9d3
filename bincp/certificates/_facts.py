"""What a combinator must know of its operands beside their bounds."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from bincp._core._operators import Operator as CompiledOperator
from bincp.certificates._masses import Masses
from bincp.certificates._protocols import Operator

TRADE_OFF = "trade-off function"
"""The family of certificates that stand for all mechanisms with a trade-off function."""


@dataclass(frozen=True)
class Facts:
    """Facts of a certificate that are proven; the defaults say that nothing is.

    Parameters
    ----------
    randomised : bool
        The bounds hold for randomised events, with values in [0, 1], and not only for sets.
    tight : bool
        No larger bound holds for the scheme and the ball, or for all schemes of the family.
    convex : bool
        `lower` is convex, up to its rounding.
    family : hashable or None
        Certificates of one family are tight one after the other, as shifts that add up; None is
        no family.
    rough : float
        What `lower` may lose by rounding where it is a small difference, beside a share of itself.
    single : bool
        One pair of laws is the worst for every p, in each mixture with others like it.
    masses : callable or None
        Returns the likelihood-ratio regions whose knapsack the bounds are, None if they are too
        many.
    depth, parts : int
        How deep certificates are nested in the description, and how many it holds.
    """

    randomised: bool = False
    tight: bool = False
    convex: bool = False
    family: Hashable = None
    rough: float = 0.0
    single: bool = False
    masses: Callable[[], Masses | None] | None = None
    depth: int = 0
    parts: int = 1


NOTHING_KNOWN = Facts()

_CONVEX = {
    "identity",
    "uniform",
    "regions",
    "gaussian",
    "laplace",
    "tighter of laplace and uniform",
    "exponential power",
    "hyperbolic secant",
}


def is_convex(operator: Operator) -> bool:
    """Return whether `lower` of an operator of our own is known to be convex.

    The shift of a log-concave law has the slope f(x - shift) / f(x), which does not fall as x
    grows. Charging an error keeps a bound convex: it is shifted and clipped at 0.
    """
    return isinstance(operator, CompiledOperator) and operator.name in _CONVEX
