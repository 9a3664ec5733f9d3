"""The law of certificates, checked on a grid of probabilities."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bincp.certificates._protocols import Bounds
from bincp.errors import CertificateError

_TOLERANCE = 1e-9


def check_law(certificate: Bounds) -> None:
    """Check the law of certificates on a grid; raise `CertificateError` that names p.

    Range, monotonicity, ``lower(p) <= p <= upper(p)``, and ``upper(p) >= q <=> p >= lower(q)`` up
    to a tolerance of 1e-9 (it holds exactly only without rounding).
    """
    grid = probability_grid()
    lower = [certificate.lower(p) for p in grid]
    upper = [certificate.upper(p) for p in grid]
    for name, values in (("lower", lower), ("upper", upper)):
        _check_increasing(certificate, name, grid, values)
    for p, low, high in zip(grid, lower, upper, strict=True):
        if not low <= p + _TOLERANCE:
            raise CertificateError(f"{certificate!r}: lower({p!r}) must be <= p, got {low!r}")
        if not high >= p - _TOLERANCE:
            raise CertificateError(f"{certificate!r}: upper({p!r}) must be >= p, got {high!r}")
    _check_equivalence(certificate, np.array(grid), np.array(lower), np.array(upper))


def probability_grid() -> list[float]:
    """Return the probabilities that laws are checked at, in increasing order."""
    tails = [10.0**-k for k in (12, 9, 6, 4, 3)]
    middle = [k / 64 for k in range(1, 64)]
    return sorted({0.0, 1.0, *tails, *(1 - p for p in tails), *middle})


def _check_increasing(
    certificate: Bounds, name: str, grid: Sequence[float], values: Sequence[float]
) -> None:
    last = 0.0
    for p, value in zip(grid, values, strict=True):
        if not 0 <= value <= 1:
            raise CertificateError(
                f"{certificate!r}: {name}({p!r}) must be in [0, 1], got {value!r}"
            )
        if value < last - _TOLERANCE:
            raise CertificateError(
                f"{certificate!r}: {name} must be non-decreasing, but falls from {last!r} to "
                f"{value!r} at p = {p!r}"
            )
        last = max(last, value)


def _check_equivalence(
    certificate: Bounds,
    grid: npt.NDArray[np.float64],
    lower: npt.NDArray[np.float64],
    upper: npt.NDArray[np.float64],
) -> None:
    p, q = grid[:, None], grid[None, :]
    forward = (p >= lower[None, :] + _TOLERANCE) & ~(upper[:, None] >= q - _TOLERANCE)
    backward = (upper[:, None] >= q + _TOLERANCE) & ~(p >= lower[None, :] - _TOLERANCE)
    broken = np.argwhere(forward | backward)
    if broken.size:
        i, j = broken[0]
        raise CertificateError(
            f"{certificate!r}: `upper(p) >= q` and `p >= lower(q)` must agree, but at "
            f"p = {grid[i]!s} and q = {grid[j]!s}, upper(p) = {upper[i]!s} and "
            f"lower(q) = {lower[j]!s}; is `upper` over the inverted ball?"
        )
