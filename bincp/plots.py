"""Pictures of certificates; they need matplotlib."""

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from bincp._drawing import draw
from bincp.certificates import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_bounds"]


def plot_bounds(certificate: Certificate, target: "str | PathLike[str] | Axes") -> "Axes":
    """Draw both bounds of a certificate against the probability.

    Parameters
    ----------
    certificate : Certificate
        For instance what :func:`bincp.certify` returns.
    target : str, path-like or matplotlib.axes.Axes
        A file, whose ending says the format, or where to draw.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If an argument has a wrong type.
    ValueError
        If matplotlib does not know the format.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import bincp
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    >>> axes = bincp.plots.plot_bounds(certificate, "bounds.png")  # doctest: +SKIP
    """
    if not isinstance(certificate, Certificate):
        raise TypeError(f"`certificate` must be a Certificate, got {certificate!r}")

    def fill(axes: "Axes") -> None:
        p = np.linspace(0, 1, 1001)
        axes.plot(p, certificate.upper(p), label="upper: best case before the attack")
        axes.plot(p, p, color="0.6", linestyle=":", label="no attack")
        axes.plot(p, certificate.lower(p), label="lower: worst case under attack")
        axes.set(xlabel="probability p", ylabel="certified bound")
        axes.legend()

    return draw(fill, target)
