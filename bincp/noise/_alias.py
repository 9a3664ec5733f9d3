"""Tables of the alias method, from which integer noise is drawn with its exact masses.

The columns of a table are 2^bits places of equal capacity. A column keeps its own point with the
first of two masses and gives the rest of its capacity to another point, its alias [1]_. All masses
are integers with the sum 2^128, and no rest is rounded: 128 random bits decide, and a point is
drawn with its mass times 2^-128, exactly. Equal masses give equal tables, everywhere and for ever:
the order in which columns are filled is fixed.

.. [1] A. J. Walker, "An efficient method for generating discrete random variables with general
   distributions", ACM Transactions on Mathematical Software 3, 1977.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bincp.smoothing._grid import ONE, thresholds

Words = npt.NDArray[np.uint32]


class Table(NamedTuple):
    """The columns of a law, packed as csrc/noise/grid.h says; read-only."""

    entry: Words  # (2^bits,)
    low: Words  # (2^bits, 3)
    half: int  # column i is the point i - half


@lru_cache(maxsize=16)
def table_of(law: str, scale: float, grid: int, shape: float = 0.0) -> Table:
    """Return the table of a law of `bincp.smoothing._grid`."""
    masses = masses_of(thresholds(law, scale, grid, shape))
    bits = max((len(masses) - 1).bit_length(), 1)
    return packed(*alias_columns(masses, bits), half=len(masses) // 2)


def masses_of(above_zero: Sequence[int]) -> list[int]:
    """Return the masses of the points -half .. half in units of 2^-128, from their thresholds."""
    right = [*above_zero, ONE]
    rises = [high - low for low, high in pairwise(right)]
    return [*reversed(rises), 2 * right[0] - ONE, *rises]


def alias_columns(masses: Sequence[int], bits: int) -> tuple[list[int], list[int]]:
    """Return the mass that each of 2^bits columns keeps, and the alias that gets its rest.

    A full column keeps nothing and is its own alias.
    """
    capacity, size = ONE >> bits, 1 << bits
    mass = [*masses, *[0] * (size - len(masses))]
    kept, alias = [0] * size, list(range(size))
    small = [i for i in range(size) if mass[i] < capacity]
    large = [i for i in range(size) if mass[i] > capacity]
    while small:
        i, donor = small.pop(), large[-1]
        kept[i], alias[i] = mass[i], donor
        mass[donor] -= capacity - mass[i]
        if mass[donor] <= capacity:
            large.pop()
        if mass[donor] < capacity:
            small.append(donor)
    return kept, alias


def packed(kept: Sequence[int], alias: Sequence[int], *, half: int) -> Table:
    """Return the table of columns: their first 32 bits side by side, the other 96 elsewhere."""
    bits = (len(kept) - 1).bit_length()
    entry = np.array([t >> 96 << bits | a for t, a in zip(kept, alias, strict=True)], np.uint32)
    rest = b"".join((t & (1 << 96) - 1).to_bytes(12, "big") for t in kept)
    low = np.frombuffer(rest, ">u4").astype(np.uint32).reshape(-1, 3)
    entry.flags.writeable = low.flags.writeable = False
    return Table(entry, low, half)
