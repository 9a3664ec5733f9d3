"""The compiled knapsack over likelihood-ratio regions that are given as two mass vectors."""

import math
from fractions import Fraction

import numpy as np

from bincp._core import _operators
from bincp._utils.arrays import ArrayLike, as_probabilities
from bincp._utils.levels import TRUE_MIN, float_above
from bincp.certificates._masses import Array, Masses

_TOLERANCE = 1e-9
_MASS_ERROR = 2.0**-50  # relative error that each given mass may have


def check_masses(name: str, value: ArrayLike) -> Array:
    """Return a copy of masses that sum to 1 within 1e-9."""
    masses = as_probabilities(name, value)
    if masses.ndim != 1 or masses.size == 0:
        raise ValueError(f"`{name}` must have shape (n_regions,), got {masses.shape}")
    total = math.fsum(masses)
    if abs(total - 1) > _TOLERANCE:
        raise ValueError(f"`{name}` must sum to 1, got {total!r}")
    return masses


def regions_operator(clean: Array, perturbed: Array) -> _operators.Operator:
    """Return the fractional knapsack over regions in any order."""
    return completed(clean, perturbed).operator()


def completed(clean: Array, perturbed: Array) -> Masses:
    """Return given masses with a region for what they lack, which is the worst for the bound."""
    excess = max(math.fsum(clean) - 1, math.fsum(perturbed) - 1, 0.0)
    missing = [_missing(clean), _missing(perturbed)]
    if missing[0] > 0:  # at worst the adversary empties a region that holds all of it
        clean, perturbed = np.append(clean, missing[0]), np.append(perturbed, 0.0)
    if missing[1] > 0:
        clean, perturbed = np.append(clean, 0.0), np.append(perturbed, missing[1])
    return Masses(clean, perturbed, _MASS_ERROR, len(clean) * TRUE_MIN + excess)


def _missing(masses: Array) -> float:
    """Return the largest mass of the regions that are left out; 0 where rounding explains it.

    The given masses lack `lack`, which is rounded once here. The true ones may lack more by the
    relative error of each, which comes to that of their sum. n masses that are right to a few units
    in the last place lack less than `explained` if none is left out.
    """
    n = len(masses)
    lack = math.fsum([1.0, *(-masses).tolist()])
    explained = min(n, 4) * 2.0**-52
    if lack <= explained:
        return 0.0
    most = Fraction(lack) * (1 + Fraction(2) ** -52) + Fraction(_MASS_ERROR)
    return float_above(most + n * Fraction(TRUE_MIN))
