"""Derandomised schemes: an input has `levels` noised copies, numbered and equally likely."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from bincp._utils.arrays import ArrayLike, as_array
from bincp.noise._keys import FloatArray, IntArray, Keys, one_below
from bincp.noise._samplers import FlatSampler, check_inputs, noisy_dtype


class Copies(Protocol):
    """The numbered copies of one derandomised scheme."""

    levels: int
    dtypes: tuple[str, ...]  # of inputs

    def check(self, x: FloatArray) -> None:
        """Refuse inputs (n, ...) that the scheme cannot smooth."""

    def make(self, numbers: IntArray, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        """Write copy ``numbers[r]`` of row ``x[sources[r]]`` to ``out[r]``."""


Factory = Callable[[Any], Copies]
F = TypeVar("F", bound=Factory)

_factories: dict[type, Factory] = {}


def enumerates(smoothing_type: type) -> Callable[[F], F]:
    """Register a class or function that makes the copies of a scheme; use as a decorator."""

    def decorator(factory: F) -> F:
        _factories[smoothing_type] = factory
        return factory

    return decorator


def copies_of(smoothing: object) -> Copies:
    """Return the copies of a derandomised scheme, found by its exact type."""
    if type(smoothing) not in _factories:
        known = ", ".join(sorted(smoothing_type.__name__ for smoothing_type in _factories))
        raise TypeError(
            f"`smoothing` must be derandomised, one of {known}, for exact probabilities, "
            f"got {smoothing!r}"
        )
    return _factories[type(smoothing)](smoothing)


class _CopySampler(FlatSampler):
    def __init__(self, copies: Copies) -> None:
        self.copies = copies
        self.dtypes = copies.dtypes

    def check(self, x: FloatArray) -> None:
        self.copies.check(x)


class RandomCopy(_CopySampler):
    """The sampler of a derandomised scheme: it draws one of the copies uniformly."""

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        self.copies.make(one_below(keys, self.copies.levels), sources, x, out)


class EveryCopy(_CopySampler):
    """A sampler that is not random: its draws 0, ..., levels - 1 are all the copies, in order."""

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        self.copies.make(keys.draws, sources, x, out)


def all_copies(smoothing: object, x: ArrayLike) -> FloatArray:
    """Return all noised copies of inputs under a derandomised smoothing scheme.

    Parameters
    ----------
    smoothing : SplittingNoise, BlockAblation or BandAblation
        The scheme; SplittingNoise with a grid.
    x : array (n, ...)
        Inputs, float32 or float64, or grey levels in uint8, as in `draw`.

    Returns
    -------
    array (n, levels, ...)
        Of the dtype of `x`, float32 for grey levels. Each copy of an input has probability
        1 / levels. The order of the copies is fixed: there is nothing random, so there is no seed.

    Raises
    ------
    TypeError
        If the scheme is not derandomised.
    ValueError
        If `x` has a wrong dtype or shape, or is off the grid of the scheme.

    Notes
    -----
    Thread safety: nothing is kept between calls, so any number of threads may call. `x` is not
    copied; if another thread writes to it meanwhile, the copies of it mean nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.noise import all_copies
    >>> from bincp.smoothing import BandAblation
    >>> all_copies(BandAblation(size=2, width=3), np.array([[[1.0, 2.0, 3.0]]]))[0, :, 0]
    array([[1., 2., 0.],
           [0., 2., 3.],
           [1., 0., 3.]])
    """
    x = as_array("x", x).view()  # a view of ours, whose shape nobody else can change
    copies = copies_of(smoothing)
    check_inputs(EveryCopy(copies), x)
    out = np.empty((len(x), copies.levels, *x.shape[1:]), dtype=noisy_dtype(x))
    sources, numbers = np.divmod(np.arange(len(x) * copies.levels), copies.levels)
    rows = np.ascontiguousarray(x).reshape(len(x), -1)
    copies.make(numbers, sources, rows, out.reshape(len(sources), rows.shape[1]))
    return out
