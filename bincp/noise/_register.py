"""Samplers of schemes from outside."""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, where
from bincp._utils.validation import pairs
from bincp.noise._draw import draw_from
from bincp.noise._keys import PHASES, FloatArray, IntArray, Keys
from bincp.noise._samplers import Sampler, add_sampler, check_inputs, chunks

RowSampler = Callable[[Any, Any, Keys], npt.NDArray[Any]]
R = TypeVar("R", bound=RowSampler)

_N_DRAWS = 32  # of each example


def register(
    smoothing_type: type, *, examples: Iterable[tuple[object, ArrayLike]] = ()
) -> Callable[[R], R]:
    """Register the sampler of a smoothing scheme from outside; use as a decorator.

    After that the scheme is drawn like those of `bincp.smoothing`: by `draw`, and by all functions
    and classes of `bincp.sampling` and `bincp.attacks`.

    Parameters
    ----------
    smoothing_type : type
        The type of the scheme, for which `bincp.register` knows certificates. Schemes are looked up
        by their exact type.
    examples : iterable of pairs (smoothing, x)
        Schemes of this type, each with inputs (n, ...), on which the sampler is checked at once:
        every row must depend on its input and its key alone, and the noise must differ between
        seeds, phases, ids and draws. Give an example large enough that 32 draws of it are not all
        equal.

    Returns
    -------
    callable
        The decorator. It takes the sampler and returns it: a function ``sampler(smoothing, x,
        keys)`` of the scheme, of inputs ``x`` (rows, ...), float32 or float64, and of `Keys`. It
        returns the noisy inputs, one draw for each row, as a NumPy array of the shape and dtype of
        ``x``. All randomness must come from the keys (``keys.units``, ``keys.normals``,
        ``keys.integers``, ``keys.words``), one row of numbers for each row of ``x``. ``x`` is a
        copy, which the sampler may change and return. It raises a ValueError for inputs that the
        scheme is not for. Inputs come in batches of any size and order.

    Raises
    ------
    TypeError
        If an argument, or what the sampler returns for an example, has a wrong type.
    ValueError
        If the type has a sampler already, or the sampler fails on an example.

    See Also
    --------
    bincp.register : Register the certificate of a scheme and a ball.

    Notes
    -----
    Each batch that the sampler returns is checked: its type, shape and dtype, and that it has no
    NaN. That it draws the distribution of the certificate is for you to prove. The sampler may be
    called from several threads at once. Types may be registered from any thread.

    A package makes its samplers known through an entry point of the group ``bincp.certificates``,
    like its certificates.

    Examples
    --------
    Noise that is uniform on the multiples of ``step`` in [-width step, width step]:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import bincp
    >>> @dataclass(frozen=True)
    ... class GridNoise(bincp.smoothing.Smoothing):
    ...     step: float
    ...     width: int
    >>> @bincp.noise.register(GridNoise, examples=[(GridNoise(0.25, 2), np.zeros((2, 3)))])
    ... def grid_noise(smoothing, x, keys):
    ...     d = x[0].size
    ...     steps = keys.integers(d, high=2 * smoothing.width + 1) - smoothing.width
    ...     return x + (smoothing.step * steps).reshape(x.shape).astype(x.dtype)
    >>> x = np.zeros((1, 4), dtype=np.float32)
    >>> noisy = bincp.noise.draw(GridNoise(0.25, 2), x, n_samples=1000, phase="test")
    >>> np.unique(noisy)
    array([-0.5 , -0.25,  0.  ,  0.25,  0.5 ], dtype=float32)
    """
    if not isinstance(smoothing_type, type):
        raise TypeError(f"`smoothing_type` must be a class, got {smoothing_type!r}")

    def decorator(function: R) -> R:
        if not callable(function):
            raise TypeError(f"`sampler` must be callable, got {function!r}")
        for smoothing, x in pairs("examples", examples, "(smoothing, x)"):
            if type(smoothing) is not smoothing_type:
                raise TypeError(
                    f"`examples` must have schemes of the type {smoothing_type.__name__}, "
                    f"got {smoothing!r}"
                )
            _check_example(_OutsideSampler(function, smoothing), as_array("examples", x))
        add_sampler(
            smoothing_type, lambda smoothing: _OutsideSampler(function, smoothing), function
        )
        return function

    return decorator


class _OutsideSampler(Sampler):
    """A registered function, whose results are checked before they are used."""

    shared = False  # Python code that need not be safe to call from several threads

    def __init__(self, function: RowSampler, smoothing: object) -> None:
        self.function, self.smoothing = function, smoothing

    def check(self, x: FloatArray) -> None:
        """Leave it to the function to refuse inputs."""

    def fill(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        for rows in chunks(len(out), x[0].size):
            inputs = x[sources[rows]]
            shape = inputs.shape
            out[rows] = self._checked(self.function(self.smoothing, inputs, keys[rows]), shape, out)

    def _checked(self, made: Any, shape: tuple[int, ...], out: FloatArray) -> FloatArray:
        if type(made) is not np.ndarray:
            raise TypeError(
                f"the sampler of {self.smoothing!r} must return a NumPy array, "
                f"got {type(made).__name__}"
            )
        if made.shape != shape or made.dtype != out.dtype:
            raise ValueError(
                f"the sampler of {self.smoothing!r} must return {out.dtype} of shape {shape} "
                f"as it was given, got {made.dtype} of shape {made.shape}"
            )
        missing = np.isnan(made)
        if missing.any():
            raise ValueError(
                f"the sampler of {self.smoothing!r} must not return NaN, got one {where(missing)}"
            )
        return made


def _check_example(sampler: _OutsideSampler, x: FloatArray) -> None:
    """Check that rows depend on their input and key alone, and that all of the key matters."""
    check_inputs(sampler, x)
    ids = np.arange(len(x))
    drawn = draw_from(sampler, x, _N_DRAWS, phase="test", seed=0, ids=ids)
    for i in range(len(x)):
        alone = draw_from(sampler, x[i : i + 1], 2, phase="test", seed=0, ids=ids[i : i + 1])
        if not np.array_equal(alone[0], drawn[i, :2]):
            raise ValueError(
                f"the sampler of {sampler.smoothing!r} must make each row from its input and its "
                f"key alone, but draws of input {i} differ between a batch and another"
            )
    others = [
        ("seed", drawn, draw_from(sampler, x, _N_DRAWS, phase="test", seed=1, ids=ids)),
        ("id", drawn, draw_from(sampler, x, _N_DRAWS, phase="test", seed=0, ids=ids + len(x))),
        ("draw", drawn, np.roll(drawn, 1, axis=1)),
    ]
    phases = [draw_from(sampler, x, _N_DRAWS, phase=phase, seed=0, ids=ids) for phase in PHASES]
    others += [("phase", *pair) for pair in combinations(phases, 2)]
    for part, one, other in others:
        if np.array_equal(one, other):
            raise ValueError(
                f"the sampler of {sampler.smoothing!r} must draw other noise for another {part}, "
                f"got the same {_N_DRAWS} draws (or an example too small to tell)"
            )
