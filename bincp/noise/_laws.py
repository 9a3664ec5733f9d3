"""How a smoothing scheme acts on rows of inputs: one law a scheme, found by its type."""

from functools import singledispatch
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp.noise._keys import PHASES, FloatArray, IntArray, Phase
from bincp.smoothing import Smoothing


class Law(Protocol):
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


@singledispatch
def law_of(smoothing: object) -> Law:
    known = ", ".join(sorted(t.__name__ for t in law_of.registry if issubclass(t, Smoothing)))
    raise TypeError(f"`smoothing` must be one of {known}, got {smoothing!r}")


def float32_at_least(scale: float) -> float:
    """Round a scale up to float32: a certificate for less noise than was drawn still holds.

    Below the normal numbers float32 has so few that noise of this scale would be far from its law.
    """
    limits = np.finfo(np.float32)
    if not float(limits.smallest_normal) <= scale <= float(limits.max):
        raise ValueError(f"`smoothing` must have a scale that float32 can hold, got {scale:g}")
    nearest = np.float32(scale)
    # Compared as Python floats: NumPy would round `scale` to float32 first.
    below = float(nearest) < scale
    return float(np.nextafter(nearest, np.float32(np.inf)) if below else nearest)


def check_largest(largest: float) -> None:
    """Refuse noise whose largest draws are beyond float32; ``largest`` is a bound on them."""
    # Written so that NaN fails.
    if not largest <= float(np.finfo(np.float32).max):
        raise ValueError(
            f"`smoothing` must have noise that float32 can hold, got draws up to {largest:g}"
        )


def check_inputs(smoothing: object, x: npt.NDArray[Any]) -> None:
    """Refuse inputs that cannot be smoothed by this scheme."""
    law = law_of(smoothing)
    if x.dtype.name not in ("float32", "float64") or not x.dtype.isnative:
        half = x.dtype == np.float16
        hint = "noise of 16 bits has no tails" if half else "convert by `.astype(np.float32)`"
        raise ValueError(f"`x` must be float32 or float64 ({hint}), got {x.dtype}")
    if x.ndim < 2 or x.size == 0:
        raise ValueError(f"`x` must have shape (n, ...) and not be empty, got {x.shape}")
    if x.size // len(x) > _noise.MAX_LENGTH:
        raise ValueError(f"`x` must have fewer than 2**34 elements an input, got {x.shape}")
    law.check(x)


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
    law = law_of(smoothing)
    rows = np.ascontiguousarray(x).reshape(len(x), -1)
    law.fill(seed, PHASES[phase], ids, draws, sources, rows, out.reshape(len(out), rows.shape[1]))
