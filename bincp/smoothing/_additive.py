"""Additive noise with independent coordinates."""

from dataclasses import dataclass, field
from typing import ClassVar

from bincp._utils.validation import check_flag, check_integer, check_real
from bincp.smoothing._base import (
    NOTHING,
    READS_NO_LAST_BITS,
    WHEN_SET,
    Smoothing,
    set_parameters,
    shown_fields,
)
from bincp.smoothing._grid import LAWS, thresholds

_MAX_GRID = 2**20
_CELL_ERROR = 2.0**-94  # of a cell with its mass to 2^-128, over the 2^34 elements of an input
_OFF_GRID_ERROR = 2.0**-29  # 2^-49 an element, of 2^20 at most
_POWERS = (0.5, 1024.0)  # of exponential power noise with a table
_LEAST_PARETO = 5 / 32  # a power: with a smaller one, 2^(10/a) scales are more than fit a table
_LEAST_OFF_GRID = 4  # grid steps of a standard deviation, for the series that rounds inputs


@dataclass(frozen=True, repr=False)
class OnGrid(Smoothing):
    """Base of additive noise that can be drawn as integers on a grid."""

    grid: int | None = field(default=None, kw_only=True, metadata=WHEN_SET)

    law: ClassVar[str]

    @property
    def takes_points(self) -> bool:
        """Whether inputs must be grid points."""
        return self.grid is not None

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance of a noisy input from its law.

        Returns
        -------
        float
            0 without a grid, where the error has no bound that holds for every model. With one,
            2^-94 for each point that the noise can reach: masses of points are exact to 2^-128, and
            an input has fewer than 2^34 elements. For inputs off the grid 2^-29.

        Examples
        --------
        >>> from bincp.smoothing import Gaussian
        >>> f"{Gaussian(0.25, grid=255).sampling_error():.1e}"
        '8.4e-26'
        """
        if self.grid is None:
            return 0.0
        return (2 * len(thresholds(*self.grid_law())) + 1) * _CELL_ERROR

    def grid_law(self) -> tuple[str, float, int, float]:
        """Return the law of the integers that are drawn, by name, scale, grid and shape."""
        assert self.grid is not None
        kind = LAWS[self.law]
        shape = 0.0 if kind.shape is None else getattr(self, kind.shape)
        return self.law, getattr(self, kind.scale), self.grid, shape

    def __post_init__(self) -> None:
        kind = LAWS[self.law]
        for name in (kind.scale, kind.shape):
            if name is not None:
                value = check_real(name, getattr(self, name), low=0, open_low=True)
                set_parameters(self, **{name: value})
        if self.grid is not None:
            set_parameters(self, grid=check_integer("grid", self.grid, low=1, high=_MAX_GRID))
            self._check_shape()
            thresholds(*self.grid_law())  # refuses a scale that is too large

    def _check_shape(self) -> None:
        """Refuse a shape of which there is no table."""

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{part.name}={getattr(self, part.name)!r}" for part in shown_fields(self)
        )
        return f"{type(self).__qualname__}({shown})"

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS if self.grid is None else NOTHING


@dataclass(frozen=True, repr=False)
class Gaussian(OnGrid):
    """Isotropic Gaussian noise, N(0, sigma^2 I), added to the input.

    Parameters
    ----------
    sigma : float
        Standard deviation, > 0, in the units of the tensor that gets the noise.
    grid : int, optional
        Integer noise for inputs that are multiples of 1 / grid, 255 for images of 8 bits, see the
        notes. At most 2^20, and sigma grid at most 2499.
    off_grid : bool, optional
        Allow all inputs with ``|x| <= 2^20 / grid``, of 2^20 elements at most, at half the speed.
        They are rounded to the grid after the noise. Needs ``sigma * grid >= 4``.

    Raises
    ------
    TypeError
        If `sigma` is not a real number, `grid` not an integer, or `off_grid` not a bool.
    ValueError
        If `sigma` is not finite and positive or reaches too far on the grid, `grid` is outside
        [1, 2^20], or `off_grid` is true without a grid or for too small a `sigma`.

    Notes
    -----
    Without a grid the noise is drawn in float32 and added in the dtype of the input. The
    certificate then assumes that the model does not read the last bits of these sums, which depend
    on the input more than real numbers would let them: a model that is made to read them loses all
    its coverage inside the ball (Jin et al.).

    With a grid nothing is assumed of the model. The noise is that of a real number, rounded to the
    grid, so an output is a function of the integer ``rint(grid * (x + noise))`` alone, and the
    certificate of real noise holds for it. Each integer has its probability to 2^-128; the rest is
    charged to the certificate (`sampling_error`). An input *is* its nearest grid point, and the
    radius of a ball is a distance of grid points; it is enlarged by 2^-22 of itself, so that a
    radius of 10/255 in single precision is ten grid steps. With `off_grid` distances are those of
    the inputs themselves.

    References
    ----------
    Cohen, Rosenfeld and Kolter, "Certified adversarial robustness via randomized smoothing",
    ICML 2019; Jin, Ohrimenko and Rubinstein, "Getting a-round guarantees: floating-point attacks on
    certified robustness", 2022.

    Examples
    --------
    >>> Gaussian(sigma=0.25)
    Gaussian(sigma=0.25)
    >>> Gaussian(sigma=0.25, grid=255)
    Gaussian(sigma=0.25, grid=255)
    """

    sigma: float
    off_grid: bool = field(default=False, kw_only=True, metadata=WHEN_SET)

    law: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not check_flag("off_grid", self.off_grid):
            return
        if self.grid is None:
            raise ValueError("`off_grid` must be False where `grid` is None, got True")
        if self.sigma * self.grid < _LEAST_OFF_GRID:
            raise ValueError(
                f"`sigma` must be at least {_LEAST_OFF_GRID} / grid for inputs off the grid, "
                f"got {self.sigma!r} and grid = {self.grid}"
            )

    @property
    def takes_points(self) -> bool:
        """Whether inputs must be grid points."""
        return super().takes_points and not self.off_grid

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance, see `OnGrid.sampling_error`."""
        return _OFF_GRID_ERROR if self.off_grid else super().sampling_error()


@dataclass(frozen=True, repr=False)
class Uniform(OnGrid):
    """Independent uniform noise on [-half_width, half_width], added to each coordinate.

    Parameters
    ----------
    half_width : float
        Half the width of the interval (lambda in the literature), > 0, in the units of the tensor
        that gets the noise. Its standard deviation is ``half_width / sqrt(3)`` a coordinate.
    grid : int, optional
        Integer noise for inputs that are multiples of 1 / grid, 255 for images of 8 bits, as for
        `Gaussian`, whose notes say what that is good for. At most 2^20, and half_width grid
        at most 32767.5.

    Raises
    ------
    TypeError
        If `half_width` is not a real number, or `grid` not an integer.
    ValueError
        If `half_width` is not finite and positive or reaches too far on the grid, or `grid` is
        outside [1, 2^20].

    References
    ----------
    Levine and Feizi, "Improved, deterministic smoothing for L1 certified robustness", ICML 2021;
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Uniform(half_width=0.5)
    Uniform(half_width=0.5)
    """

    half_width: float

    law: ClassVar[str] = "uniform"


@dataclass(frozen=True, repr=False)
class Laplace(OnGrid):
    """Independent Laplace noise, of density ~ ``exp(-|x|_1 / scale)``, added to the input.

    Parameters
    ----------
    scale : float
        Mean absolute value of a coordinate, > 0, in the units of the tensor that gets the noise.
        The standard deviation is ``sqrt(2) * scale`` a coordinate.
    grid : int, optional
        Integer noise for inputs that are multiples of 1 / grid, 255 for images of 8 bits, as for
        `Gaussian`, whose notes say what that is good for. At most 2^20, and scale grid at
        most 369.

    Raises
    ------
    TypeError
        If `scale` is not a real number, or `grid` not an integer.
    ValueError
        If `scale` is not finite and positive or reaches too far on the grid, or `grid` is outside
        [1, 2^20].

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020; Teng et al., "l1
    adversarial robustness certificates: a randomized smoothing approach", 2020.

    Examples
    --------
    >>> Laplace(scale=0.25)
    Laplace(scale=0.25)
    """

    scale: float

    law: ClassVar[str] = "laplace"


@dataclass(frozen=True, repr=False)
class Expp(OnGrid):
    """Independent generalised Gaussian noise, of density ~ ``exp(-|x / scale|_p^p)``, added.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. The standard deviation is
        ``scale * sqrt(gamma(3 / p) / gamma(1 / p))`` a coordinate.
    p : float
        Power, > 0. With p = 1 this is ``Laplace(scale)``, with p = 2
        ``Gaussian(scale / sqrt(2))``; the larger it is, the nearer to ``Uniform(scale)``.
    grid : int, optional
        Integer noise for inputs that are multiples of 1 / grid, 255 for images of 8 bits, as for
        `Gaussian`, whose notes say what that is good for. At most 2^20. Needs `p` in [1/2, 1024],
        and noise that reaches at most 32767 grid points far. The first table takes up to some
        seconds.

    Raises
    ------
    TypeError
        If a parameter is not a real number, or `grid` not an integer.
    ValueError
        If a parameter is not finite and positive, or out of range with a grid, or `grid` is outside
        [1, 2^20].

    Notes
    -----
    Without a grid, the guarantee assumes that the model does not read the last bits of x + noise;
    the notes of `Gaussian` say why, and what a grid is good for.

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Expp(scale=0.5, p=4)
    Expp(scale=0.5, p=4.0)
    """

    scale: float
    p: float

    law: ClassVar[str] = "expp"

    def _check_shape(self) -> None:
        if not _POWERS[0] <= self.p <= _POWERS[1]:
            raise ValueError(f"`p` must be in [1/2, 1024] with a grid, got {self.p!r}")


@dataclass(frozen=True, repr=False)
class Pareto(OnGrid):
    """Independent two-sided Pareto noise, of density ~ ``(1 + |x| / scale)^-(a + 1)`` each.

    Parameters
    ----------
    scale : float
        Scale, > 0, in the units of the tensor that gets the noise. The standard deviation is
        ``scale * sqrt(2 / ((a - 1) * (a - 2)))`` a coordinate if a > 2, and infinite otherwise.
    a : float
        Power of the tail, > 0: ``P(|x| > t) = (1 + t / scale)**-a``.
    grid : int, optional
        Integer noise for inputs in [-1, 1] that are multiples of 1 / grid, 255 for images of 8
        bits, see the notes. At most 2^20. Needs ``a >= 5/32`` and a small enough `scale`: the notes
        say what must fit a table of 32767 grid points.

    Raises
    ------
    TypeError
        If a parameter is not a real number, or `grid` not an integer.
    ValueError
        If a parameter is not finite and positive, or out of range with a grid, or `grid` is outside
        [1, 2^20].

    Notes
    -----
    Without a grid, the guarantee assumes that the model does not read the last bits of x + noise;
    the notes of `Gaussian` say why. Tails of this noise end nowhere near, so
    with a grid outputs are clipped to [-1 - r, 1 + r], where r is ``scale * (2**(10 / a) - 1)``,
    rounded up to the grid: the noise of an element is larger once in 2^10 draws. Noise beyond
    2 + r leads to the same outputs from all inputs. So the last two points of the table, 2 + r
    away, have the mass of what is beyond them, and nothing is cut off.

    References
    ----------
    Yang et al., "Randomized smoothing of all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> Pareto(scale=0.5, a=3)
    Pareto(scale=0.5, a=3.0)
    """

    scale: float
    a: float

    law: ClassVar[str] = "pareto"

    def _check_shape(self) -> None:
        if self.a < _LEAST_PARETO:
            raise ValueError(f"`a` must be at least 5/32 with a grid, got {self.a!r}")
