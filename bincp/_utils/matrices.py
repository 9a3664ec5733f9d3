"""Vectors and symmetric matrices as parameters: tuples, so that they cannot change."""

import reprlib
from fractions import Fraction
from typing import TypeGuard

import numpy as np

from bincp._utils.arrays import as_array
from bincp._utils.definite import Matrix, is_at_least

Vector = tuple[float, ...]
Rows = tuple[Vector, ...]

_MOST = 2**24  # elements of an input


def as_vector(name: str, value: object) -> Vector:
    """Return finite numbers >= 0."""
    array = _numbers(name, value)
    if array.ndim != 1 or array.size == 0 or array.size > _MOST:
        raise ValueError(f"`{name}` must have shape (d,) with 1 <= d <= {_MOST}, got {array.shape}")
    if (array < 0).any():
        raise ValueError(f"`{name}` must be >= 0, got {float(array[array < 0][0])!r}")
    return tuple(array.tolist())


def as_rows(name: str, value: object) -> Rows:
    """Return a symmetric matrix that has no negative eigenvalue."""
    array = _numbers(name, value)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(f"`{name}` must have shape (d, d), got {array.shape}")
    if not np.array_equal(array, array.T):
        i, j = (int(k) for k in np.argwhere(array != array.T)[0])
        raise ValueError(
            f"`{name}` must be symmetric, got {float(array[i, j])!r} at {(i, j)} and "
            f"{float(array[j, i])!r} at {(j, i)}"
        )
    if not is_at_least(Fraction(1), array, np.zeros_like(array)):
        shown = reprlib.repr(array.tolist())
        raise ValueError(f"`{name}` must have no negative eigenvalue, got {shown}")
    return tuple(tuple(row) for row in array.tolist())


def as_diagonal_or_rows(name: str, value: object) -> Vector | Rows:
    """Return the diagonal of a matrix, or the whole matrix."""
    if np.ndim(value) == 1:  # type: ignore[arg-type]
        return as_vector(name, value)
    return as_rows(name, value)


def is_diagonal(matrix: Vector | Rows) -> TypeGuard[Vector]:
    """Return whether a matrix is given by its diagonal."""
    return not isinstance(matrix[0], tuple)


def full(matrix: Vector | Rows) -> Matrix:
    """Return a matrix as an array."""
    return np.diag(np.array(matrix)) if is_diagonal(matrix) else np.array(matrix)


def _numbers(name: str, value: object) -> Matrix:
    array = as_array(name, value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` must be finite, got {array[~np.isfinite(array)][0]}")
    return array
