"""The batches of a run: a grid of ids and draws that no cut into parts or workers moves.

The last bits of a score may depend on how many rows the batch of the model has. So the batches
start at the first id and the first draw of the run, whoever evaluates them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bincp.noise._keys import IntArray

_USED = 97  # percent of the rows of a batch that must be used


@dataclass(frozen=True)
class Grid:
    """Batches of so many inputs and draws; those at the far edges of the run are smaller."""

    inputs: int
    draws: int

    @classmethod
    def of(cls, n_samples: int, batch_size: int) -> "Grid":
        """Return the grid with most draws a batch that uses nearly all rows."""
        for pieces in range(-(-n_samples // batch_size), n_samples + 1):
            draws = -(-n_samples // pieces)
            inputs = batch_size // draws
            if 100 * inputs * n_samples >= _USED * pieces * batch_size:
                return cls(inputs, draws)
        raise AssertionError("one draw a batch uses all rows")


@dataclass(frozen=True)
class Rectangle:
    """Some ids and draws of a run, counted from its first ones; the ends are not included."""

    first_input: int
    last_input: int
    first_draw: int
    last_draw: int

    @property
    def shape(self) -> tuple[int, int]:
        """The number of inputs and of draws."""
        return self.last_input - self.first_input, self.last_draw - self.first_draw


@dataclass(frozen=True)
class Cells:
    """The batches of a rectangle made of whole cells of a grid."""

    grid: Grid
    shape: tuple[int, int]

    def batches(self, batch_size: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (inputs, draws) of each batch, counted from the corner of the rectangle."""
        n, m = self.shape
        for i in range(0, n, self.grid.inputs):
            inputs = np.arange(i, min(i + self.grid.inputs, n))
            for j in range(0, m, self.grid.draws):
                draws = np.arange(j, min(j + self.grid.draws, m))
                assert len(inputs) * len(draws) <= batch_size
                yield np.repeat(inputs, len(draws)), np.tile(draws, len(inputs))
