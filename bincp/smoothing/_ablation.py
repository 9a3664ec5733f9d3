"""Ablation: only a random part of the input is shown to the model."""

from dataclasses import dataclass

from bincp._utils.validation import MAX_COUNT, check_integer, check_probability, check_real
from bincp.smoothing._base import NOTHING, Smoothing, set_parameters

_STEP_ERROR = 2.0**-128


@dataclass(frozen=True)
class Ablation(Smoothing):
    """Randomised ablation: `keep` of `dim` coordinates are kept, the others are blanked out.

    The set of kept coordinates is uniform among those of its size. Certified against
    `balls.L0(r)`, which counts the same coordinates.

    Parameters
    ----------
    keep : int
        Number of coordinates that are kept, in [1, dim].
    dim : int
        Number of coordinates of an input, in [1, 2^31). If it is the number of elements, a
        coordinate is an element, whatever the shape. Else a coordinate is a pixel, of which all
        channels are kept or ablated together, and the channels come first: (n, channels, height,
        width) with ``dim = height * width``. Samplers refuse images with the channels last, where
        the sizes tell (not if there are as many channels as rows), and flat inputs with several
        channels; move the axis, as by ``np.moveaxis(x, -1, 1)``.
    fill : float
        Value of ablated elements. The certificate holds for any value, but a model can tell ablated
        elements from seen ones only if no input has this value. The paper encodes an element x as
        the channels (x, 1 - x), and an ablated one as (0, 0): for inputs in [0, 1] that is a first
        layer of the model, with ``fill=-1``.

    Raises
    ------
    TypeError
        If a number is not an integer, or `fill` not a real number.
    ValueError
        If a number is out of range, or `fill` is not finite.

    References
    ----------
    Levine and Feizi, "Robustness certificates for sparse adversarial attacks by randomized
    ablation", AAAI 2020.

    Examples
    --------
    >>> Ablation(keep=45, dim=784)
    Ablation(keep=45, dim=784, fill=0.0)
    """

    keep: int
    dim: int
    fill: float = 0.0

    def __post_init__(self) -> None:
        dim = check_integer("dim", self.dim, low=1, high=MAX_COUNT)
        keep = check_integer("keep", self.keep, low=1, high=dim)
        set_parameters(self, keep=keep, dim=dim, fill=check_real("fill", self.fill))

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance of a noisy input from its law.

        Returns
        -------
        float
            dim 2^-128: coordinates are kept or not one after the other, each from 128 random bits.

        Examples
        --------
        >>> f"{Ablation(keep=45, dim=784).sampling_error():.1e}"
        '2.3e-36'
        """
        return self.dim * _STEP_ERROR


@dataclass(frozen=True)
class BlockAblation(Smoothing):
    """Block ablation: one square block of an image is kept, the rest is blanked out.

    The block may be at any of height width positions, and goes on at the opposite edge where it
    leaves the image. Certified against `balls.Patch`. `bincp.sampling.exact_probabilities`
    evaluates all positions and gives exact probabilities; the samplers draw one, each exactly as
    often as any other.

    Parameters
    ----------
    size : int
        Height and width of the block, in [1, min(height, width)].
    height, width : int
        Height and width of the image, which are the last two axes of an input; channels come before
        them, and are kept or ablated together. Samplers refuse images with the channels last, where
        the sizes tell.
    fill : float
        Value of ablated elements, see `Ablation`.

    Raises
    ------
    TypeError
        If a number is not an integer, or `fill` not a real number.
    ValueError
        If a number is out of range, or `fill` is not finite.

    References
    ----------
    Levine and Feizi, "(De)randomized smoothing for certifiable defense against patch attacks",
    NeurIPS 2020.

    Examples
    --------
    >>> BlockAblation(size=12, height=32, width=32).levels
    1024
    """

    size: int
    height: int
    width: int
    fill: float = 0.0

    def __post_init__(self) -> None:
        height = check_integer("height", self.height, low=1, high=MAX_COUNT)
        width = check_integer("width", self.width, low=1, high=MAX_COUNT // height)
        size = check_integer("size", self.size, low=1, high=min(height, width))
        fill = check_real("fill", self.fill)
        set_parameters(self, size=size, height=height, width=width, fill=fill)

    @property
    def levels(self) -> int:
        """Number of positions of the block."""
        return self.height * self.width

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING


@dataclass(frozen=True)
class BandAblation(Smoothing):
    """Band ablation: one band of columns of an image is kept, the rest is blanked out.

    The band may start at any of `width` columns, and goes on at the left edge where it leaves the
    image. Certified against `balls.Patch`; better than blocks for most patches. Everything else is
    as with `BlockAblation`.

    Parameters
    ----------
    size : int
        Number of columns of the band, in [1, width].
    width : int
        Width of the image, which is the last axis of an input; channels and rows come before it.
        Samplers refuse images with the channels last, where the sizes tell.
    fill : float
        Value of ablated elements, see `Ablation`.

    Raises
    ------
    TypeError
        If a number is not an integer, or `fill` not a real number.
    ValueError
        If a number is out of range, or `fill` is not finite.

    References
    ----------
    Levine and Feizi, "(De)randomized smoothing for certifiable defense against patch attacks",
    NeurIPS 2020.

    Examples
    --------
    >>> BandAblation(size=4, width=32).levels
    32
    """

    size: int
    width: int
    fill: float = 0.0

    def __post_init__(self) -> None:
        width = check_integer("width", self.width, low=1, high=MAX_COUNT)
        size = check_integer("size", self.size, low=1, high=width)
        set_parameters(self, size=size, width=width, fill=check_real("fill", self.fill))

    @property
    def levels(self) -> int:
        """Number of positions of the band."""
        return self.width

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING


@dataclass(frozen=True)
class Deletion(Smoothing):
    """Randomised deletion: each token of a sequence is deleted with the same probability.

    Deletions are independent, and the tokens that are left move together. Certified against
    `balls.EditDistance`. They are drawn with `p_delete` rounded up to a multiple of 2^-128, for
    which the certificate holds too: the more is deleted, the better is the bound.

    Parameters
    ----------
    p_delete : float
        Probability to delete a token, in [0, 1].
    padding : float
        Value after the end of a sequence, which no token may have. Inputs have shape (n, length),
        one sequence a row and one token an element: shorter sequences, and the smoothed copies,
        are filled up with it at the end. Samplers refuse other shapes, such as images or one-hot
        vectors.

    Raises
    ------
    TypeError
        If an argument is not a real number.
    ValueError
        If `p_delete` is outside [0, 1], or `padding` is not finite.

    References
    ----------
    Huang et al., "RS-Del: edit distance robustness certificates for sequence classifiers via
    randomized deletion", NeurIPS 2023.

    Examples
    --------
    >>> Deletion(p_delete=0.9)
    Deletion(p_delete=0.9, padding=0.0)
    """

    p_delete: float
    padding: float = 0.0

    def __post_init__(self) -> None:
        set_parameters(
            self,
            p_delete=check_probability("p_delete", self.p_delete),
            padding=check_real("padding", self.padding),
        )

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING
