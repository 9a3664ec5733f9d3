"""Noise in the parameters of a transformation of the whole input."""

from dataclasses import dataclass

from bincp._utils.validation import check_real
from bincp.smoothing._additive import Gaussian
from bincp.smoothing._base import NOTHING, READS_NO_LAST_BITS, Smoothing, set_parameters


@dataclass(frozen=True)
class Translation(Smoothing):
    """Images that are moved at random by whole pixels, and go on at the opposite edge.

    The vector of the move has two coordinates, each a Gaussian number that is rounded to an
    integer. Certified against `balls.Translations`.

    Nothing is assumed of the model: integers have their probabilities to 2^-128, and the
    certificate pays for the rest (`sampling_error`).

    Parameters
    ----------
    sigma : float
        Standard deviation in pixels before rounding, > 0 and at most 2499.

    Raises
    ------
    TypeError
        If `sigma` is not a real number.
    ValueError
        If it is out of range.

    Notes
    -----
    Two parameters are sound here because moves by whole pixels add up in both directions, in any
    order. Moves that interpolate between pixels, or that fill up with black, do not.

    References
    ----------
    Li et al., "TSS: transformation-specific smoothing for robustness certification", CCS 2021.

    Examples
    --------
    >>> Translation(sigma=3)
    Translation(sigma=3.0)
    """

    sigma: float

    def __post_init__(self) -> None:
        set_parameters(self, sigma=self._law(check_real("sigma", self.sigma)).sigma)

    @staticmethod
    def _law(sigma: float) -> Gaussian:
        return Gaussian(sigma, grid=1)

    def law(self) -> Gaussian:
        """Return the noise of one coordinate of the move.

        Examples
        --------
        >>> Translation(sigma=3).law()
        Gaussian(sigma=3.0, grid=1)
        """
        return self._law(self.sigma)

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance of the move from its law."""
        return self.law().sampling_error()


@dataclass(frozen=True)
class Brightness(Smoothing):
    """One Gaussian number that is added to all elements of an input.

    Certified against `balls.BrightnessChange`.

    Parameters
    ----------
    sigma : float
        Standard deviation, > 0, in the units of the tensor that gets the noise.

    Raises
    ------
    TypeError
        If `sigma` is not a real number.
    ValueError
        If it is not finite and positive.

    Notes
    -----
    The guarantee assumes that the model does not read the last bits of x + noise, see `Gaussian`,
    and that the sums are not clipped before the next change: a change that is followed by clipping
    is not one of the ball.

    References
    ----------
    Li et al., "TSS: transformation-specific smoothing for robustness certification", CCS 2021.

    Examples
    --------
    >>> Brightness(sigma=0.2)
    Brightness(sigma=0.2)
    """

    sigma: float

    def __post_init__(self) -> None:
        set_parameters(self, sigma=check_real("sigma", self.sigma, low=0, open_low=True))

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS
