"""Proofs that a symmetric matrix has no negative eigenvalue.

Small matrices are eliminated in fractions. Large ones pass if Cholesky's method succeeds on a
matrix that is less by more than all rounding errors: Rump, "Verification of positive definiteness",
BIT 2006.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Entries = Matrix | Sequence[Sequence[Fraction]]

MOST_EXACT = 24  # rows
_UNIT = 2.0**-53
_TRUE_MIN = 5e-324


def is_at_least(scale: Fraction, one: Entries, other: Entries) -> bool:
    """Return whether ``scale one - other`` is proven to have no negative eigenvalue.

    Entries of large matrices may be off by their rounding.
    """
    if len(one) > MOST_EXACT:
        matrices = (np.array(matrix, dtype=np.float64) for matrix in (one, other))
        return _is_definite(scale, *matrices)
    difference = [
        [scale * Fraction(a) - Fraction(b) for a, b in zip(row, other_row, strict=True)]
        for row, other_row in zip(_rows(one), _rows(other), strict=True)
    ]
    return _is_semidefinite(difference)


def _rows(matrix: Entries) -> Any:
    return matrix.tolist() if isinstance(matrix, np.ndarray) else matrix


def _is_semidefinite(rows: list[list[Fraction]]) -> bool:
    while rows:
        pivot, *right = rows.pop(0)
        if pivot < 0 or (pivot == 0 and any(right)):
            return False
        rows = [_eliminated(row, right, i, pivot) for i, row in enumerate(rows)]
    return True


def _eliminated(
    row: Sequence[Fraction], right: Sequence[Fraction], i: int, pivot: Fraction
) -> list[Fraction]:
    """Return a row below the pivot without its first entry, which is ``right[i]``."""
    if right[i] == 0:
        return list(row[1:])
    factor = right[i] / pivot
    return [entry - factor * above for entry, above in zip(row[1:], right, strict=True)]


def _is_definite(scale: Fraction, one: Matrix, other: Matrix) -> bool:
    first, second = _in_common_units(float(scale), one, other)
    with np.errstate(all="ignore"):
        difference = first - second
        rounding = 4 * _UNIT * float(np.sqrt(np.sum(first**2) + np.sum(second**2)))
        trace = float(np.abs(np.diagonal(difference)).sum())
        n = len(one)
        less = 2 * rounding + 4 * (n + 2) * _UNIT * trace + n * n * _TRUE_MIN
    if not np.isfinite(less) or not np.isfinite(difference).all():
        return False
    try:
        np.linalg.cholesky(difference - less * np.eye(n))
    except np.linalg.LinAlgError:
        return False
    return True


def _in_common_units(scale: float, one: Matrix, other: Matrix) -> tuple[Matrix, Matrix]:
    """Return ``scale one`` and ``other`` with rows and columns divided by powers of two.

    Where both have no negative eigenvalue, no entry is far above 1 then, and errors count alike.
    """
    with np.errstate(all="ignore"):
        sizes = np.maximum(scale * np.diagonal(one), np.diagonal(other))
        exponents = np.frexp(np.sqrt(np.maximum(sizes, 0)))[1]
        by = -np.add.outer(exponents, exponents)
        return scale * np.ldexp(one, by), np.ldexp(other, by)
