"""Additive noise that is drawn as integers on a grid."""

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp._utils.arrays import where
from bincp.noise._alias import Table, table_of
from bincp.noise._keys import FloatArray, IntArray, Keys, core_key
from bincp.noise._samplers import FlatSampler, chunks, dtypes_on_grid
from bincp.smoothing import Gaussian, Pareto
from bincp.smoothing._additive import OnGrid
from bincp.smoothing._grid import pareto_clip

MAX_POINT = 2**20  # so that sums with the noise are exact in float32
ROUNDING = 2.0**-22  # of the size of an input: what makes it a grid point in float32
_MAX_OFF_GRID = 2**20  # elements, over which the error of each adds up


def grid_table(smoothing: OnGrid) -> Table:
    """Return the table from which the integer noise of a scheme is drawn, for code outside Python.

    Parameters
    ----------
    smoothing : Gaussian, Uniform, Laplace, Expp or Pareto
        A scheme with a grid. Outputs of `Pareto` are to be clipped, as its notes say.

    Returns
    -------
    Table
        A named tuple of the arrays ``entry`` (2^bits,) and ``low`` (2^bits, 3), uint32 and
        read-only, and the number ``half``. ``bincp_grid_table`` of ``bincp/bincp.h`` says what they
        mean, and ``grid_row`` of the C table draws from them.

    Raises
    ------
    TypeError
        If the scheme has no grid.

    Examples
    --------
    >>> from bincp.noise import grid_table
    >>> from bincp.smoothing import Gaussian
    >>> table = grid_table(Gaussian(0.25, grid=255))
    >>> table.entry.shape, table.low.shape, table.half
    ((2048,), (2048, 3), 836)
    """
    if not isinstance(smoothing, OnGrid) or smoothing.grid is None:
        raise TypeError(
            "`smoothing` must be Gaussian, Uniform, Laplace, Expp or Pareto with a grid, "
            f"got {smoothing!r}"
        )
    return table_of(*smoothing.grid_law())


class GridSampler(FlatSampler):
    """Noise for inputs on the grid, each of which is the grid point k / grid that is nearest."""

    def __init__(self, smoothing: OnGrid) -> None:
        self.grid = smoothing.grid_law()[2]
        self.table = grid_table(smoothing)
        self.name = repr(smoothing)
        self.dtypes = dtypes_on_grid(self.grid)

    def check(self, x: FloatArray) -> None:
        if x.dtype == np.uint8:
            return
        bad = np.empty(x.shape, bool)
        for rows in chunks(len(x), x[0].size):
            with np.errstate(over="ignore", invalid="ignore"):
                steps = x[rows].astype(np.float64) * self.grid
                points = np.rint(steps)
                size = np.abs(points)
                near = np.abs(steps - points) <= ROUNDING * np.maximum(size, 1)
            bad[rows] = ~(near & (size <= MAX_POINT))  # NaN is neither
        if bad.any():
            raise ValueError(
                f"`x` must be multiples of 1/{self.grid}, up to 2**20/{self.grid}, for "
                f"{self.name}, got {x[bad][0]} {where(bad)}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        first, last = int(sources.min()), int(sources.max()) + 1
        points = self._points(x[first:last])
        entry, low, half = self.table
        key = core_key(keys)
        _noise.add_grid_noise(entry, low, half, self.grid, *key, sources - first, points, out)

    def _points(self, x: FloatArray) -> npt.NDArray[np.int32]:
        if x.dtype == np.uint8:
            return x.astype(np.int32)
        with np.errstate(invalid="ignore"):  # another thread may write to x meanwhile
            return np.rint(x.astype(np.float64) * self.grid).astype(np.int32)


class ClippedGridSampler(FlatSampler):
    """Pareto noise for inputs on the grid in [-1, 1], whose sums are clipped.

    The clipped quotients are those of the clipped integers, as a division keeps their order.
    """

    def __init__(self, smoothing: Pareto) -> None:
        self.points = GridSampler(smoothing)
        self.dtypes = self.points.dtypes
        self.clip = pareto_clip(smoothing.scale, self.points.grid, smoothing.a)

    def check(self, x: FloatArray) -> None:
        self.points.check(x)
        grid = self.points.grid
        bad = np.abs(x) * grid > grid + 0.5 if x.dtype != np.uint8 else np.zeros(1, bool)
        if bad.any():
            raise ValueError(
                f"`x` must be in [-1, 1] for {self.points.name}, got {x[bad][0]} {where(bad)}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        self.points.fill_rows(keys, sources, x, out)
        largest = out.dtype.type(self.clip) / out.dtype.type(self.points.grid)
        np.clip(out, -largest, largest, out=out)


class OffGridSampler(FlatSampler):
    """Gaussian noise for any inputs: their sums are rounded as real numbers would be."""

    def __init__(self, smoothing: Gaussian) -> None:
        self.grid = smoothing.grid_law()[2]
        self.table = grid_table(smoothing)
        self.steps = smoothing.sigma * self.grid
        self.name = repr(smoothing)

    def check(self, x: FloatArray) -> None:
        if x[0].size > _MAX_OFF_GRID:
            raise ValueError(
                f"`x` must have at most 2**20 elements an input for {self.name}, got {x[0].size}"
            )
        bad = ~(np.abs(x) <= MAX_POINT / self.grid)
        if bad.any():
            raise ValueError(
                f"`x` must be at most 2**20/{self.grid} in size for {self.name}, "
                f"got {x[bad][0]} {where(bad)}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        entry, low, half = self.table
        key = core_key(keys)
        _noise.add_off_grid_noise(entry, low, half, self.grid, self.steps, *key, sources, x, out)
