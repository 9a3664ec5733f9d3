"""Keyed noise: smoothed copies of inputs that depend on nothing but their key.

Each draw is keyed by (seed, phase, input id, draw): the order of the inputs, the batch they come
in and the number of draws asked for change no bit of it, and where coordinates are independent, the
size of the input changes none either. This is what the guarantee needs (independent noise for each
calibration input and each draw, and test noise that is independent of all calibration noise), and
it makes every result reproducible: bit by bit on every machine where the noise is drawn in C
(Gaussian, Uniform, Laplace, SparseFlip), and up to the last bit of float32 where it takes the
special functions of the installed NumPy and SciPy.

Noise is rounded to float32, also for float64 inputs, and never narrower: a Gaussian of 16 bits has
no tails, and a certificate for Gaussian noise says nothing about it.
"""

from bincp.noise import _additive, _flips, _radial  # noqa: F401
from bincp.noise._draw import draw

__all__ = ["draw"]
