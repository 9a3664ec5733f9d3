"""Likelihood-ratio regions given as two mass vectors, as a compiled knapsack."""

import math

import numpy as np
import numpy.typing as npt

from bincp._core import _operators
from bincp._utils.arrays import ArrayLike, as_probabilities

Masses = npt.NDArray[np.float64]

_TOLERANCE = 1e-9
# Masses are right to 8 units, and ratios are ordered to 2: see bincp_regions in knapsack.h.
_SLACK = 10 * 2.0**-53
_TRUE_MIN = 5e-324


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
    if np.array_equal(clean, perturbed):
        return _operators.identity()
    excess = max(math.fsum(clean) - 1, math.fsum(perturbed) - 1, 0.0)
    clean, perturbed = _completed(clean, perturbed)
    order = _by_decreasing_ratio(clean, perturbed)
    tiny = len(clean) * _TRUE_MIN + excess
    return _operators.regions(clean[order], perturbed[order], _SLACK, tiny)


def _completed(clean: Masses, perturbed: Masses) -> tuple[Masses, Masses]:
    """Add what the masses lack to 1, beyond rounding, as regions of the adversary's choice."""
    rounding = len(clean) * 2.0**-52
    for i, masses in enumerate((clean, perturbed)):
        missing = 1 - math.fsum(masses)
        if missing > rounding:
            lost = [missing, 0.0] if i == 0 else [0.0, missing]
            clean, perturbed = np.append(clean, lost[0]), np.append(perturbed, lost[1])
    return clean, perturbed


def _by_decreasing_ratio(
    clean: npt.NDArray[np.float64], perturbed: npt.NDArray[np.float64]
) -> npt.NDArray[np.intp]:
    """Order regions by clean / perturbed, by quotients of at most 1 in two groups."""
    larger = clean >= perturbed
    with np.errstate(divide="ignore", invalid="ignore"):
        key = np.where(larger, perturbed / clean, -(clean / perturbed))
    return np.lexsort((np.nan_to_num(key), ~larger))
