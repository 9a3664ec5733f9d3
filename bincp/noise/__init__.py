"""Keyed noise: smoothed copies of inputs that depend on nothing but their key.

Each draw is keyed by (seed, phase, input id, draw): the order of the inputs, the batch they come
in and the number of draws asked for change no bit of it, and where coordinates are independent, the
size of the input changes none either. This is what the guarantee needs (independent noise for each
calibration input and each draw, and test noise that is independent of all calibration noise), and
it makes every result reproducible: bit by bit on every machine where the noise is drawn in C
(Gaussian, Uniform, Laplace, flips, splitting, ablation), and up to the last bit of float32 where it
takes the special functions of the installed NumPy and SciPy.

Noise is drawn in float32, or rounded to it, also for float64 inputs, and never narrower: a Gaussian
of 16 bits has no tails, and a certificate for Gaussian noise says nothing about it. (Splitting
noise is made in float64, and rounded to the dtype of the input after that.)
"""

from bincp.noise import _ablation, _additive, _flips, _radial, _splitting  # noqa: F401
from bincp.noise._copies import all_copies
from bincp.noise._draw import draw

__all__ = ["all_copies", "draw"]
