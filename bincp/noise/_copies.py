"""Derandomised schemes: `levels` noised copies of an input, all as likely, that can be numbered."""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from bincp._utils.arrays import ArrayLike, as_array
from bincp.noise._keys import FloatArray, IntArray, below, random_words
from bincp.noise._laws import Law, check_inputs, law_of


class Copies(Protocol):
    """The numbered copies of one derandomised scheme."""

    levels: int

    def check(self, x: FloatArray) -> None: ...

    def make(self, numbers: IntArray, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        """Write copy ``numbers[r]`` of row ``x[sources[r]]`` to ``out[r]``."""


@singledispatch
def copies_of(smoothing: object) -> Copies:
    known = ", ".join(sorted(t.__name__ for t in copies_of.registry if t is not object))
    raise TypeError(
        f"`smoothing` must be derandomised, one of {known}, for exact probabilities, "
        f"got {smoothing!r}"
    )


class RandomCopy:
    """The law of a derandomised scheme that is sampled: one of its copies, drawn uniformly."""

    def __init__(self, copies: Copies) -> None:
        self.copies = copies
        self.check = copies.check

    def fill(
        self,
        seed: int,
        stream: int,
        ids: IntArray,
        draws: IntArray,
        sources: IntArray,
        x: FloatArray,
        out: FloatArray,
    ) -> None:
        words = random_words(seed, stream, ids, draws, 1)[:, 0]
        self.copies.make(below(words, self.copies.levels), sources, x, out)


@dataclass(frozen=True)
class Enumeration:
    """A derandomised scheme as one whose draws 0, ..., levels - 1 are all its copies, in order."""

    smoothing: object


class _EveryCopy:
    def __init__(self, copies: Copies) -> None:
        self.copies = copies
        self.check = copies.check

    def fill(
        self,
        seed: int,
        stream: int,
        ids: IntArray,
        draws: IntArray,
        sources: IntArray,
        x: FloatArray,
        out: FloatArray,
    ) -> None:
        self.copies.make(draws, sources, x, out)


@law_of.register
def _(smoothing: Enumeration) -> Law:
    return _EveryCopy(copies_of(smoothing.smoothing))


def all_copies(smoothing: object, x: ArrayLike) -> FloatArray:
    """Return all noised copies of inputs under a derandomised smoothing scheme.

    Parameters
    ----------
    smoothing : SplittingNoise, BlockAblation or BandAblation
        The scheme; SplittingNoise with a grid.
    x : array (n, ...)
        Inputs, float32 or float64.

    Returns
    -------
    array (n, levels, ...)
        Of the dtype of `x`; each copy has probability 1 / levels.

    Raises
    ------
    TypeError
        If the scheme is not derandomised.
    ValueError
        If `x` has a wrong dtype or shape, or is off the grid of the scheme.

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
    check_inputs(Enumeration(smoothing), x)
    out = np.empty((len(x), copies.levels, *x.shape[1:]), dtype=x.dtype)
    sources, numbers = np.divmod(np.arange(len(x) * copies.levels), copies.levels)
    rows: Any = np.ascontiguousarray(x).reshape(len(x), -1)
    copies.make(numbers, sources, rows, out.reshape(len(sources), rows.shape[1]))
    return out
