"""The compiled knapsack over likelihood-ratio regions that are given as two mass vectors."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._core import _operators
from bincp._utils.arrays import ArrayLike, as_probabilities
from bincp._utils.levels import TRUE_MIN, float_above

Masses = npt.NDArray[np.float64]

_TOLERANCE = 1e-9
_MASS_ERROR = 2.0**-50  # relative error that each given mass may have
# Ratios of such masses are ordered right to two roundings: see bincp_regions in knapsack.h.
_SLACK = _MASS_ERROR + 2 * 2.0**-53


def check_masses(name: str, value: ArrayLike) -> Masses:
    """Return a copy of masses that sum to 1 within 1e-9."""
    masses = as_probabilities(name, value)
    if masses.ndim != 1 or masses.size == 0:
        raise ValueError(f"`{name}` must have shape (n_regions,), got {masses.shape}")
    total = math.fsum(masses)
    if abs(total - 1) > _TOLERANCE:
        raise ValueError(f"`{name}` must sum to 1, got {total!r}")
    return masses


def regions_operator(clean: Masses, perturbed: Masses) -> _operators.Operator:
    """Return the fractional knapsack over regions in any order."""
    excess = max(math.fsum(clean) - 1, math.fsum(perturbed) - 1, 0.0)
    missing = [_missing(clean), _missing(perturbed)]
    if missing == [0.0, 0.0] and np.array_equal(clean, perturbed):
        return _operators.identity()
    if missing[0] > 0:  # at worst the adversary empties a region that holds all of it
        clean, perturbed = np.append(clean, missing[0]), np.append(perturbed, 0.0)
    if missing[1] > 0:
        clean, perturbed = np.append(clean, 0.0), np.append(perturbed, missing[1])
    order = _by_decreasing_ratio(clean, perturbed)
    tiny = len(clean) * TRUE_MIN + excess
    return _operators.regions(clean[order], perturbed[order], _SLACK, tiny)


def _missing(masses: Masses) -> float:
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


def _by_decreasing_ratio(
    clean: npt.NDArray[np.float64], perturbed: npt.NDArray[np.float64]
) -> npt.NDArray[np.intp]:
    """Order regions by clean / perturbed, by quotients of at most 1 in two groups."""
    larger = clean >= perturbed
    with np.errstate(divide="ignore", invalid="ignore"):
        key = np.where(larger, perturbed / clean, -(clean / perturbed))
    return np.lexsort((np.nan_to_num(key), ~larger))
