"""Keyed noise: smoothed copies of inputs that depend on nothing but their key.

Each draw is keyed by (seed, phase, input id, draw): the order of the inputs, the batch they come
in, the number of draws asked for and the size of the input change no bit of it. This is what the
guarantee needs (independent noise for each calibration input and each draw, and test noise that is
independent of all calibration noise), and it makes every result reproducible on every machine.

Noise is drawn in float32, also for float64 inputs, and never narrower: a Gaussian of 16 bits has no
tails, and a certificate for Gaussian noise says nothing about it.
"""

from functools import singledispatch
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bincp import _noise
from bincp._arrays import ArrayLike, as_array, as_counts, where
from bincp._validation import check_integer
from bincp.smoothing import Gaussian, SparseFlip, Uniform

__all__ = ["draw"]

Phase = Literal["calibration", "test"]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]

PHASES = {"calibration": _noise.CALIBRATION, "test": _noise.TEST}
SCORE_STREAMS = {"calibration": _noise.CALIBRATION_SCORE, "test": _noise.TEST_SCORE}
MAX_SAMPLES = 2**31 - 1


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
    smoothing : Gaussian, Uniform or SparseFlip
        The smoothing scheme. SparseFlip needs inputs of zeros and ones.
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
    deviations), uniform noise on [-half_width, half_width] from one word an element, flips by
    comparison with probabilities resolved to 2**-64.

    References
    ----------
    .. [1] J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
       SC 2011.

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
    x = as_array("x", x)
    check_inputs(smoothing, x)
    check_integer("n_samples", n_samples, low=1, high=MAX_SAMPLES)
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


def fill(
    smoothing: object,
    x: FloatArray,
    out: FloatArray,
    sources: IntArray,
    ids: IntArray,
    draws: IntArray,
    *,
    phase: Phase,
    seed: int,
) -> None:
    """Write draw ``draws[r]`` of input ``x[sources[r]]``, whose id is ``ids[r]``, to ``out[r]``.

    Arguments are those that the checks below let through; ``out`` is C-contiguous.
    """
    law = _law(smoothing)
    rows = np.ascontiguousarray(x).reshape(len(x), -1)
    law.fill(seed, PHASES[phase], ids, draws, sources, rows, out.reshape(len(out), rows.shape[1]))


def score_numbers(
    ids: IntArray, draws: IntArray, *, phase: Phase, seed: int
) -> npt.NDArray[np.float32]:
    """Return a number, uniform on (0, 1], for each evaluation of a score that is random itself."""
    numbers = np.empty(len(ids), np.float32)
    _noise.unit_numbers(seed, SCORE_STREAMS[phase], ids, draws, numbers)
    return numbers


def check_inputs(smoothing: object, x: npt.NDArray[Any]) -> None:
    """Refuse inputs that cannot be smoothed by this scheme."""
    law = _law(smoothing)
    if x.dtype.name not in ("float32", "float64") or not x.dtype.isnative:
        half = x.dtype == np.float16
        hint = "noise of 16 bits has no tails" if half else "convert by `.astype(np.float32)`"
        raise ValueError(f"`x` must be float32 or float64 ({hint}), got {x.dtype}")
    if x.ndim < 2 or x.size == 0:
        raise ValueError(f"`x` must have shape (n, ...) and not be empty, got {x.shape}")
    if x.size // len(x) > _noise.MAX_LENGTH:
        raise ValueError(f"`x` must have fewer than 2**34 elements an input, got {x.shape}")
    law.check(x)


def check_phase(phase: object) -> None:
    """Refuse anything but the two phases."""
    if not isinstance(phase, str):
        raise TypeError(f"`phase` must be 'calibration' or 'test', got {phase!r}")
    if phase not in PHASES:
        raise ValueError(f"`phase` must be 'calibration' or 'test', got {phase!r}")


def check_seed(seed: object) -> None:
    """Refuse seeds that are not one 64-bit number."""
    check_integer("seed", seed, low=0, high=2**64 - 1)


def check_indices(indices: ArrayLike | None, n: int, phase: Phase) -> IntArray:
    """Return the ids of n inputs; calibration inputs must have ids of their own."""
    if indices is None:
        return np.arange(n)
    ids = np.ascontiguousarray(as_counts("indices", indices, high=_noise.MAX_ID))
    if ids.shape != (n,):
        raise ValueError(f"`indices` must have shape {(n,)}, got {ids.shape}")
    if phase == "calibration":
        values, counts = np.unique(ids, return_counts=True)
        if len(values) < n:
            again = int(values[np.argmax(counts > 1)])
            raise ValueError(
                "`indices` must differ in the calibration phase (equal ids get equal noise, and "
                f"the guarantee needs independent noise), got {again} more than once"
            )
    return ids


class _Law(Protocol):
    """How one smoothing scheme acts on rows of inputs."""

    def check(self, x: FloatArray) -> None: ...

    def fill(
        self,
        seed: int,
        stream: int,
        ids: IntArray,
        draws: IntArray,
        sources: IntArray,
        x: FloatArray,
        out: FloatArray,
    ) -> None: ...


class _Additive:
    def __init__(self, law: int, scale: float) -> None:
        self.law = law
        self.scale = _float32_at_least(scale)

    def check(self, x: FloatArray) -> None:
        pass

    def fill(self, *key_and_rows: Any) -> None:
        _noise.add_noise(self.law, self.scale, *key_and_rows)


class _Flips:
    def __init__(self, p_plus: float, p_minus: float) -> None:
        self.p_plus = p_plus
        self.p_minus = p_minus

    def check(self, x: FloatArray) -> None:
        bad = (x != 0) & (x != 1)
        if bad.any():
            raise ValueError(
                f"`x` must be zeros and ones for SparseFlip, got {x[bad][0]} {where(bad)}"
            )

    def fill(self, *key_and_rows: Any) -> None:
        _noise.flip(self.p_plus, self.p_minus, *key_and_rows)


@singledispatch
def _law(smoothing: object) -> _Law:
    known = ", ".join(sorted(t.__name__ for t in _law.registry if t is not object))
    raise TypeError(f"`smoothing` must be one of {known}, got {smoothing!r}")


@_law.register
def _(smoothing: Gaussian) -> _Law:
    return _Additive(_noise.GAUSSIAN, smoothing.sigma)


@_law.register
def _(smoothing: Uniform) -> _Law:
    return _Additive(_noise.UNIFORM, smoothing.half_width)


@_law.register
def _(smoothing: SparseFlip) -> _Law:
    return _Flips(smoothing.p_plus, smoothing.p_minus)


def _float32_at_least(scale: float) -> float:
    """Round a scale up to float32: a certificate for less noise than was drawn still holds."""
    if scale > float(np.finfo(np.float32).max):
        raise ValueError(f"`smoothing` must have a scale that float32 can hold, got {scale:g}")
    nearest = np.float32(scale)
    # Compared as Python floats: NumPy would round `scale` to float32 first.
    below = float(nearest) < scale
    return float(np.nextafter(nearest, np.float32(np.inf)) if below else nearest)
