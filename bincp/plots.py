"""Pictures of certificates; drawing needs matplotlib."""

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from bincp._utils.drawing import draw
from bincp.certificates import Certificate, as_certificate
from bincp.radii import certified_radius

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_bounds", "plot_radius"]


def plot_bounds(certificate: Certificate, target: "str | PathLike[str] | Axes") -> "Axes":
    """Draw both bounds of a certificate against the probability.

    Parameters
    ----------
    certificate : Certificate
        The certificate, as from :func:`bincp.certify`.
    target : str, path-like or matplotlib.axes.Axes
        A file, whose ending says the format, or axes to draw in.

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
    as_certificate(certificate)

    def fill(axes: "Axes") -> None:
        p = np.linspace(0, 1, 1001)
        axes.plot(p, certificate.upper(p), label="upper: best case before the attack")
        axes.plot(p, p, color="0.6", linestyle=":", label="no attack")
        axes.plot(p, certificate.lower(p), label="lower: worst case under attack")
        axes.set(xlabel="probability p", ylabel="certified bound")
        axes.legend()

    return draw(fill, target)


def plot_radius(
    smoothing: Any,
    ball: Callable[[float], Any],
    target: "str | PathLike[str] | Axes",
    *,
    threshold: float = 0.5,
) -> "Axes":
    """Draw the largest radius that each probability certifies.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The smoothing scheme.
    ball : callable
        Makes the ball of a radius, as in :func:`bincp.radii.certified_radius`.
    target : str, path-like or matplotlib.axes.Axes
        A file, whose ending says the format, or axes to draw in.
    threshold : float
        The certified lower bound must reach this value, in (0, 1].

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError, CertificateError
        As in :func:`bincp.radii.certified_radius`, and for `target` as in :func:`plot_bounds`.

    Examples
    --------
    >>> import bincp
    >>> axes = bincp.plots.plot_radius(
    ...     bincp.smoothing.Gaussian(0.25), bincp.balls.L2, "radius.png"
    ... )  # doctest: +SKIP
    """
    p = np.linspace(0, 1, 201)[:-1]  # at 1 the radius may be infinite
    radius = certified_radius(smoothing, ball, p, threshold=threshold)

    def fill(axes: "Axes") -> None:
        axes.plot(p, np.maximum(radius, 0.0))
        axes.set(xlabel="probability p", ylabel=f"largest radius with lower(p) >= {threshold:g}")

    return draw(fill, target)
