"""Noise that is added to the input."""

from typing import Any

import numpy as np

from bincp import _noise
from bincp.noise._keys import FloatArray
from bincp.noise._laws import Law, law_of
from bincp.smoothing import Gaussian, Uniform


class _Additive:
    def __init__(self, law: int, scale: float) -> None:
        self.law = law
        self.scale = _float32_at_least(scale)

    def check(self, x: FloatArray) -> None:
        pass

    def fill(self, *key_and_rows: Any) -> None:
        _noise.add_noise(self.law, self.scale, *key_and_rows)


@law_of.register
def _(smoothing: Gaussian) -> Law:
    return _Additive(_noise.GAUSSIAN, smoothing.sigma)


@law_of.register
def _(smoothing: Uniform) -> Law:
    return _Additive(_noise.UNIFORM, smoothing.half_width)


def _float32_at_least(scale: float) -> float:
    """Round a scale up to float32: a certificate for less noise than was drawn still holds."""
    if scale > float(np.finfo(np.float32).max):
        raise ValueError(f"`smoothing` must have a scale that float32 can hold, got {scale:g}")
    nearest = np.float32(scale)
    # Compared as Python floats: NumPy would round `scale` to float32 first.
    below = float(nearest) < scale
    return float(np.nextafter(nearest, np.float32(np.inf)) if below else nearest)
