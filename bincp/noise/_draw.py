"""Noisy copies of inputs, for models of any kind."""

import math
from functools import partial

import numpy as np

from bincp._utils.arrays import ArrayLike, as_array
from bincp._utils.threads import run_all, shares
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.noise._keys import (
    FloatArray,
    IntArray,
    Keys,
    Phase,
    check_first_draw,
    check_indices,
    check_phase,
    check_seed,
)
from bincp.noise._samplers import Sampler, check_inputs, noisy_dtype, sampler_of

# Elements that a thread fills at least. Fewer would cost less than to start it.
_THREAD_VALUES = 1 << 18


def draw(
    smoothing: object,
    x: ArrayLike,
    n_samples: int,
    *,
    phase: Phase,
    indices: ArrayLike | None = None,
    first_draw: int = 0,
    seed: int = 0,
    n_threads: int = 1,
) -> FloatArray:
    """Draw smoothed copies of inputs, for models that are not torch models.

    Parameters
    ----------
    smoothing : Smoothing
        The smoothing scheme: one of `bincp.smoothing`, or one that `register` knows.
    x : array (n, ...)
        Inputs, float32 or float64, in the units of the scheme; grey levels of 0 to 255 in uint8,
        which stand for x / 255, where the scheme has ``grid=255``. What each scheme needs of them
        is in the notes.
    n_samples : int
        Draws for each input, in [1, 2**31). The first draws do not depend on how many there are.
    phase : "calibration", "test" or "tuning"
        What the draws are for: the calibration points, the test points, or separate points on which
        p, tau, a temperature or another setting is chosen. The phases use independent noise. Points
        and noise of one phase must not be used in another.
    indices : array (n,) of int, optional
        Ids of the inputs in [0, 2**56), by default their positions. Equal ids get equal noise, so
        in the calibration phase they must differ, over all calls of one calibration.
    first_draw : int, optional
        Number of the first draw of each input; ``first_draw + n_samples`` is below 2**31. Draws of
        different numbers are independent.
    seed : int, optional
        In [0, 2**64). The guarantee is for adversaries who do not know the test noise: keep the
        seed from them.
    n_threads : int, optional
        Threads that share the rows, >= 1. They pay for large arrays only, of some 2**18 elements a
        thread. The bits do not depend on it. A sampler from outside is called by one thread.

    Returns
    -------
    array (n, n_samples, ...)
        Of the dtype of `x`, float32 for grey levels. Scales are rounded up to float32, never down,
        but on a grid, where they are exact.

    Raises
    ------
    TypeError
        If `smoothing` has no sampler, or an argument has a wrong type.
    ValueError
        If `x` has a wrong dtype, shape or layout, or an argument is out of range; and if a sampler
        from outside returns something else than noisy inputs.

    See Also
    --------
    register : How a scheme from outside gets a sampler.

    Notes
    -----
    The layout of `x` must be the one that the certificate counts in, and another is refused where
    it can be told:

    * Ablation: `dim` elements an input, flat or of any shape, or channels first, as (n, channels,
      height, width) with ``dim = height * width``. A pixel is then kept with all its channels.
    * BlockAblation, BandAblation: images of their size in the last axes, channels before them.
    * Deletion: sequences (n, length), one token an element, with the padding at the end.
    * SparseFlip: zeros and ones, each of which the certificate counts. A one-hot vector that
      changes its category is one addition and one deletion.
    * CategoricalFlip: codes 0, 1, ..., k - 1, one element a position; not one-hot vectors.
    * Joint: flat inputs, of which the first `n_adjacency` elements are the first part, or parts
      that follow each other along axis 1; each as its own scheme needs it.
    * SplittingNoise: elements in [0, 1], on the grid of the scheme if it has one.
    * Gaussian, Uniform, Laplace with a grid: multiples of 1 / grid up to 2^20 / grid, to 2^-22 of
      their size; for Gaussian noise with `off_grid` any numbers up to that.
    * All other schemes count elements, whatever the shape.

    Equal keys and inputs give equal bits, whatever else is in the call (see `bincp.noise`).

    Thread safety: nothing is kept between calls, so any number of threads may draw at once.
    `indices` are copied; `x` is not, and if another thread writes to it meanwhile, the copies of it
    mean nothing.

    Random numbers come from Philox4x32-10 [1]_, keyed by the seed, with (element, draw, id, phase)
    as its counter. Gaussians come from it by the Box-Muller transform with 32 bits for the radius
    (to 6.76 standard deviations), uniform noise on [-half_width, half_width] from one word an
    element, Laplace noise from a sign and 31 bits (to 22.18 scales), flips by comparison of up to
    128 bits with their probabilities.

    The other additive noise is computed in float64 and rounded last. Pareto noise is a quantile of
    a number of 53 bits, Expp a uniform number times a random width; their coordinates are
    independent. The noise of UniformBall, Exp1, Exp2, ExpInf and PowInf is a direction, uniform on
    the unit sphere of its norm, times an independent radius [2]_. A scheme whose largest draws are
    beyond float32 is refused, and so are inputs of too many or too few elements for a scheme.

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
    sampler = sampler_of(smoothing)
    check_inputs(sampler, x)
    number = check_integer("n_samples", n_samples, low=1, high=MAX_COUNT)
    check_phase(phase)
    ids = check_indices(indices, len(x), phase)
    first = check_first_draw(first_draw, number)
    n_threads = check_integer("n_threads", n_threads, low=1)
    return draw_from(
        sampler,
        x,
        number,
        phase=phase,
        ids=ids,
        seed=check_seed(seed),
        first_draw=first,
        n_threads=n_threads,
    )


def draw_from(
    sampler: Sampler,
    x: FloatArray,
    n_samples: int,
    *,
    phase: Phase,
    ids: IntArray,
    seed: int,
    first_draw: int = 0,
    n_threads: int = 1,
) -> FloatArray:
    """Draw from checked arguments."""
    out = np.empty((len(x), n_samples, *x.shape[1:]), dtype=noisy_dtype(x))
    sources, draws = np.divmod(np.arange(len(x) * n_samples), n_samples)
    rows = out.reshape(len(sources), *x.shape[1:])
    keys = Keys(seed, phase, ids[sources], first_draw + draws)
    fill_rows(sampler, keys, sources, x, rows, n_threads)
    return out


def fill_rows(
    sampler: Sampler,
    keys: Keys,
    sources: IntArray,
    x: FloatArray,
    out: FloatArray,
    n_threads: int,
) -> None:
    """Do as ``sampler.fill``, by threads that share the rows where there are enough of them."""

    def fill(part: slice) -> None:
        sampler.fill(keys[part], sources[part], x, out[part])

    least = _THREAD_VALUES // max(math.prod(x.shape[1:]), 1)
    parts = shares(len(out), n_threads if sampler.shared else 1, least)
    run_all([partial(fill, part) for part in parts])
