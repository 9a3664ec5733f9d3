"""Masses of likelihood-ratio regions: products and mixtures of them, and their knapsack.

The regions of a certificate are the atoms of one pair of laws whose exact bound the certificate is.
Every pair of laws with that bound is a garbled version of this one (Blackwell), so what is proven
for products and mixtures of these atoms holds for all schemes with these certificates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._core import _operators
from bincp._core._operators import Operator as CompiledOperator
from bincp._utils.levels import TRUE_MIN
from bincp.certificates._protocols import Operator

Array = npt.NDArray[np.float64]

_ROUNDING = 2.0**-53


@dataclass(frozen=True)
class Masses:
    """Masses of regions, in any order, at the clean and at the perturbed input.

    Each is right to a relative error `slack`; underflow takes at most `tiny` more from all of them
    together. A mass is 0 only if the region cannot happen.
    """

    clean: Array
    perturbed: Array
    slack: float
    tiny: float

    def inverse(self) -> "Masses":
        """Return the masses of the inverted ball."""
        return Masses(self.perturbed, self.clean, self.slack, self.tiny)

    def operator(self) -> _operators.Operator:
        """Return the knapsack over the regions; the identity where all masses are equal."""
        if np.array_equal(self.clean, self.perturbed):
            return _operators.identity()
        order = by_decreasing_ratio(self.clean, self.perturbed)
        order = order[(self.clean[order] > 0) | (self.perturbed[order] > 0)]
        slack = self.slack + 2 * _ROUNDING  # the order is that of rounded quotients
        return _operators.regions(self.clean[order], self.perturbed[order], slack, self.tiny)


def outer(first: Masses, second: Masses) -> Masses:
    """Return the regions of two independent parts together."""
    clean = _outer(first.clean, second.clean)
    perturbed = _outer(first.perturbed, second.perturbed)
    underflow = 2 * (first.tiny + second.tiny) + 2 * len(clean) * TRUE_MIN
    return Masses(clean, perturbed, first.slack + second.slack + 4 * _ROUNDING, underflow)


def mixed(parts: Sequence[Masses], weights: Sequence[Fraction]) -> Masses:
    """Return the regions of one of several pairs of laws, drawn with these weights and revealed."""
    shares = [float(weight) for weight in weights]
    clean = np.concatenate([_outer(np.array([w]), m.clean) for w, m in _zip(shares, parts)])
    perturbed = np.concatenate([_outer(np.array([w]), m.perturbed) for w, m in _zip(shares, parts)])
    slack = max(part.slack for part in parts) + 4 * _ROUNDING
    tiny = sum(part.tiny for part in parts) + len(clean) * TRUE_MIN
    return Masses(clean, perturbed, slack, tiny)


def two_levels(masses: Masses, low: Fraction, high: Fraction) -> Masses:
    """Return the regions of noise that is applied with probability w, in [low, high], and shown."""
    if high == 0:
        return of_shift(1.0)
    share = np.array([float(low) or TRUE_MIN])
    rest = float(1 - low)
    clean, perturbed = _outer(share, masses.clean), _outer(share, masses.perturbed)
    return Masses(
        np.concatenate(([rest, 0.0], clean)),
        np.concatenate(([0.0, rest], perturbed)),
        masses.slack + 4 * _ROUNDING,
        masses.tiny + (len(clean) + 1) * TRUE_MIN,
    )


def of_shift(shift: float) -> Masses:
    """Return the regions of clip(p -+ shift)."""
    rest = float(1 - Fraction(shift))
    return Masses(
        np.array([shift, rest, 0.0]), np.array([0.0, rest, shift]), _ROUNDING, 2 * TRUE_MIN
    )


def of_operator(operator: Operator) -> Masses | None:
    """Return the regions of the identity and of clip(p -+ shift), None for every other operator."""
    if type(operator) is not CompiledOperator:  # others have names of their own, or are charged
        return None
    if operator.name == "identity":
        return Masses(np.ones(1), np.ones(1), _ROUNDING, 0.0)
    law, shift = _operators.shift_of(operator) or ("", 0.0)
    return of_shift(min(shift, 1.0)) if law == "uniform" else None


def by_decreasing_ratio(clean: Array, perturbed: Array) -> npt.NDArray[np.intp]:
    """Order regions by clean / perturbed, by quotients of at most 1 in two groups."""
    larger = clean >= perturbed
    with np.errstate(all="ignore"):
        key = np.where(larger, perturbed / clean, -(clean / perturbed))
    return np.lexsort((np.nan_to_num(key), ~larger))


def _zip(shares: Sequence[float], parts: Sequence[Masses]) -> list[tuple[float, Masses]]:
    return list(zip(shares, parts, strict=True))


def _outer(first: Array, second: Array) -> Array:
    masses: Array = np.multiply.outer(first, second).ravel()
    possible = np.logical_and.outer(first > 0, second > 0).ravel()
    masses[possible & (masses == 0)] = TRUE_MIN
    return masses
