"""Splitting noise: each coordinate is replaced by the middle of the random cell that it lies in."""

from dataclasses import dataclass
from fractions import Fraction

from bincp._utils.validation import check_integer, check_real
from bincp.smoothing._base import NOTHING, Smoothing, set_parameters

_MAX_GRID = 2**20
_MAX_LEVELS = 2**28 - 1  # see csrc/noise/splitting.h

MAX_ELEMENTS = 2**24
"""The most elements of an input to continuous noise, over which the error of each adds up."""


@dataclass(frozen=True)
class SplittingNoise(Smoothing):
    """Splitting noise of Levine and Feizi, for inputs in [0, 1] and balls of the l1 norm.

    Cells of length 2 half_width, offset by s, split the line; a coordinate is replaced by the
    middle of its cell, the cell clipped to [0, 1]. With s uniform over one length, two values x
    and y of a coordinate fall into different cells with probability ``|x - y| / (2 half_width)`` at
    most. The certificate needs no more than that: the offsets of different coordinates may depend
    on each other. Nothing is assumed of the model: values in one cell become the same number, to
    the last bit.

    Parameters
    ----------
    half_width : float
        Half the length of a cell (lambda in the literature), > 0, in units of the inputs. The
        literature also gives sigma = half_width / sqrt(3).
    grid : int or None
        Derandomised noise for inputs that are multiples of 1 / grid, 255 for images of 8 bits,
        which may then be given in uint8: one number o in {0, ..., levels - 1} sets the offsets of
        all coordinates, s_i = ((t_i + o) mod levels + 1/2) / grid, with a fixed template t. The
        `levels` noised copies of an input can be enumerated (`bincp.sampling.exact_probabilities`),
        which gives exact probabilities; the samplers draw o, exactly uniform. The radius of a ball
        is a distance of grid points, however these are rounded to floating-point numbers. None
        stands for continuous noise for any inputs in [0, 1] of 2^24 elements at most: s_i is
        uniform on (0, 2 half_width) and drawn for each coordinate anew. It is a number of 53 bits,
        so close values are split more often than by a real number; the certificate pays for that,
        with 2^-26 (1 + 1 / (2 half_width)).
    seed : int
        Seed of the template, in [0, 2^32). The template is
        ``numpy.random.RandomState(seed).randint(levels, size=dim)``, from the legacy generator of
        NumPy, whose numbers are the same everywhere. The seed need not be secret: the certificate
        holds for each template. It has no meaning for continuous noise.

    Raises
    ------
    TypeError
        If `half_width` is not a real number, or `grid` or `seed` not an integer.
    ValueError
        If `half_width` is not finite and positive, `grid` outside [1, 2^20], `seed` outside
        [0, 2^32), or `levels` outside [1, 2^28).

    References
    ----------
    Levine and Feizi, "Improved, deterministic smoothing for L1 certified robustness", ICML 2021:
    the theorem on splitting noise, which asks for uniform s_i of any joint distribution, and its
    corollary for quantised inputs.

    Examples
    --------
    >>> SplittingNoise(0.25).levels
    127
    >>> SplittingNoise(0.25, grid=None)
    SplittingNoise(half_width=0.25, grid=None, seed=0)
    """

    half_width: float
    grid: int | None = 255
    seed: int = 0

    def __post_init__(self) -> None:
        width = check_real("half_width", self.half_width, low=0, open_low=True)
        grid = self.grid
        if grid is not None:
            grid = check_integer("grid", grid, low=1, high=_MAX_GRID)
        seed = check_integer("seed", self.seed, low=0, high=2**32 - 1)
        set_parameters(self, half_width=width, grid=grid, seed=seed)
        if grid is not None and not 1 <= self.levels <= _MAX_LEVELS:
            raise ValueError(
                f"`half_width` must give 1 to {_MAX_LEVELS} levels, "
                f"got {width!r}, which gives {self.levels} with grid = {grid}"
            )

    @property
    def levels(self) -> int:
        """Number of offsets of derandomised noise: int(2 half_width grid).

        More precisely, it is the largest number L such that L / (2 grid), as a double, is at most
        `half_width`: 153 for 0.3, whose double is below 153 / 510.

        Raises
        ------
        AttributeError
            If the noise is continuous.
        """
        if self.grid is None:
            raise AttributeError("`levels` needs derandomised noise: `grid` must not be None")
        levels = int(Fraction(self.half_width) * 2 * self.grid)
        return levels + ((levels + 1) / (2 * self.grid) <= self.half_width)

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING
