"""Gaussian noise whose standard deviation differs between directions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bincp._utils.matrices import Rows, Vector, as_rows, as_vector
from bincp.smoothing._base import READS_NO_LAST_BITS, WHEN_SET, Smoothing


@dataclass(frozen=True)
class AnisotropicGaussian(Smoothing):
    """Gaussian noise N(0, S) with one fixed covariance S, added to the input.

    Parameters
    ----------
    std : sequence of float, shape (d,), optional
        Standard deviations, >= 0, of independent coordinates: one for each element of an input, in
        the units of the tensor that gets the noise.
    covariance : sequence of sequence of float, shape (d, d), optional
        The covariance S, in the square of these units, for coordinates that depend on each other.
        Just one of the two is given.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers, or not one of the two is given.
    ValueError
        If a number is not finite or a standard deviation negative, or `covariance` is not symmetric
        or has a negative eigenvalue.

    Notes
    -----
    The covariance may depend on the training data and on the label that is tested, but not on the
    input. Take one coordinate with standard deviation 1 at x, and 0.05 at an attacked input x' at a
    distance of 0.1. The event ``|z - x'| > 0.3`` has probability 0.7653 at x and 2e-9 at x', while
    the formula promises 0.7335 with the standard deviation 1, and 0.1007 with 0.05. Without any
    shift, noise that is 5% larger at x' can take an event from probability 0.9 down to 0.849 in 10
    dimensions, 0.713 in 100, and 0.0058 in 3072. So bincp has no scheme whose noise is a function
    of the input, and that the function changes little is no argument.

    The guarantee assumes that the model does not read the last bits of x + noise, see `Gaussian`.

    References
    ----------
    Súkeník, Kuvshinov and Günnemann, "Intriguing properties of input-dependent randomized
    smoothing", ICML 2022.

    Examples
    --------
    >>> AnisotropicGaussian([0.5, 2.0])
    AnisotropicGaussian(std=(0.5, 2.0))
    >>> AnisotropicGaussian(covariance=[[1.0, 0.5], [0.5, 1.0]]).dim
    2
    """

    std: Vector | None = field(default=None, metadata=WHEN_SET)
    covariance: Rows | None = field(default=None, metadata=WHEN_SET)

    def __init__(
        self,
        std: Sequence[float] | None = None,
        covariance: Sequence[Sequence[float]] | None = None,
    ) -> None:
        if callable(std) or callable(covariance):
            raise TypeError(
                "`std` and `covariance` must be numbers, got a function: noise that depends on the "
                "input has no certificate, see the notes of AnisotropicGaussian"
            )
        if (std is None) == (covariance is None):
            raise TypeError(
                "just one of `std` and `covariance` must be given, got "
                f"{'none' if std is None else 'both'}"
            )
        object.__setattr__(self, "std", None if std is None else as_vector("std", std))
        rows = None if covariance is None else as_rows("covariance", covariance)
        object.__setattr__(self, "covariance", rows)

    @property
    def dim(self) -> int:
        """Number of elements of an input."""
        return len(self.std if self.std is not None else self.covariance or ())

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return READS_NO_LAST_BITS

    def __repr__(self) -> str:
        name, value = next(
            (name, value) for name in ("std", "covariance") if (value := getattr(self, name))
        )
        return f"AnisotropicGaussian({name}={value!r})"
