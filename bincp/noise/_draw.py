"""Noisy copies of inputs, for models of any kind."""

import numpy as np

from bincp._utils.arrays import ArrayLike, as_array
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.noise._keys import (
    FloatArray,
    Phase,
    check_indices,
    check_phase,
    check_seed,
)
from bincp.noise._laws import check_inputs, fill


def draw(
    smoothing: object,
    x: ArrayLike,
    n_samples: int,
    *,
    phase: Phase,
    indices: ArrayLike | None = None,
    seed: int = 0,
) -> FloatArray:
    """Draw smoothed copies of inputs, for models that are not torch models.

    Parameters
    ----------
    smoothing : Smoothing
        The smoothing scheme, one of `bincp.smoothing`. SparseFlip needs inputs of zeros and ones,
        CategoricalFlip the codes 0, 1, ..., k - 1, Joint its `n_adjacency` and flips in its parts,
        SplittingNoise inputs in [0, 1], on its grid if it has one, Ablation `dim` elements or that
        for each channel, BlockAblation and BandAblation images of their size in the last axes, and
        Deletion sequences (n, length) with the padding at the end.
    x : array (n, ...)
        Inputs, float32 or float64.
    n_samples : int
        Draws for each input, at least 1. The first draws do not depend on how many there are.
    phase : "calibration" or "test"
        The two phases use independent noise. Calibration noise must not be used at test time.
    indices : array (n,) of int, optional
        Ids of the inputs in [0, 2**56), by default their positions. Equal ids get equal noise, so
        in the calibration phase they must differ, over all calls of one calibration.
    seed : int, optional
        In [0, 2**64). The guarantee is for adversaries who do not know the test noise: keep the
        seed from them.

    Returns
    -------
    array (n, n_samples, ...)
        Of the dtype of `x`. Scales are rounded up to float32, never down.

    Raises
    ------
    TypeError
        If `smoothing` has no sampler, or an argument has a wrong type.
    ValueError
        If `x` has a wrong dtype or shape, or an argument is out of range.

    Notes
    -----
    Philox4x32-10 [1]_ keyed by the seed, with (element, draw, id, phase) as its counter. Gaussians
    come from it by the Box-Muller transform with 32 bits for the radius (to 6.76 standard
    deviations), uniform noise on [-half_width, half_width] from one word an element, Laplace noise
    from a sign and 31 bits (to 22.18 scales), flips by comparison with probabilities resolved to
    2**-64.

    The other additive laws are computed in float64 and rounded last. Pareto noise is a quantile of
    a number of 53 bits, Expp a uniform number times a random width; their coordinates are
    independent. The noise of UniformBall, Exp1, Exp2, ExpInf and PowInf is a direction, uniform on
    the unit sphere of its norm, times an independent radius [2]_. A scheme whose largest draws are
    beyond float32 is refused, and so are inputs of too many or too few elements for a scheme.

    Thread safety: a draw depends on its key alone and nothing is kept between calls, so any number
    of threads may draw at once. `indices` are copied; `x` is not, and if another thread writes to
    it meanwhile, the copies of it mean nothing.

    References
    ----------
    .. [1] J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
       SC 2011.
    .. [2] G. Yang, T. Duan, J. E. Hu, H. Salman, I. Razenshteyn and J. Li, "Randomized smoothing of
       all shapes and sizes", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.noise import draw
    >>> from bincp.smoothing import Gaussian
    >>> x = np.zeros((2, 3), dtype=np.float32)
    >>> noisy = draw(Gaussian(sigma=0.25), x, n_samples=8, phase="test")
    >>> noisy.shape
    (2, 8, 3)
    >>> alone = draw(Gaussian(sigma=0.25), x[1:], n_samples=5, phase="test", indices=[1])
    >>> bool((alone[0] == noisy[1, :5]).all())
    True
    """
    x = as_array("x", x).view()  # a view of ours, whose shape nobody else can change
    check_inputs(smoothing, x)
    check_integer("n_samples", n_samples, low=1, high=MAX_COUNT)
    check_phase(phase)
    check_seed(seed)
    ids = check_indices(indices, len(x), phase)
    out = np.empty((len(x), n_samples, *x.shape[1:]), dtype=x.dtype)
    sources, draws = np.divmod(np.arange(len(x) * n_samples), n_samples)
    fill(
        smoothing,
        x,
        out.reshape(len(sources), *x.shape[1:]),
        sources,
        ids[sources],
        draws,
        phase=phase,
        seed=seed,
    )
    return out
