"""Keyed noise: smoothed copies of inputs that depend on nothing but their key.

Each draw is keyed by (seed, phase, input id, draw): the order of the inputs, the batch they come
in and the number of draws asked for change no bit of it, and where coordinates are independent, the
size of the input changes none either. This is what the guarantee needs (independent noise for each
calibration input and each draw, and test noise that is independent of all calibration noise), and
it makes every result reproducible: bit by bit on every machine where the noise is drawn in C
(Gaussian, Uniform, Laplace, flips, splitting, ablation), and up to the last bit of float32 where it
takes the special functions of the installed NumPy and SciPy. The functions keep no state, so they
may be called from any thread.

There are three phases, each with noise of its own: "calibration", "test", and "tuning" for separate
points on which settings such as p, tau or a temperature are chosen. Settings that were tuned on
calibration noise are fitted to it, and the guarantee is lost.

A scheme from outside gets its noise by `register`: a function that makes noisy rows from inputs and
`Keys`.

Noise is drawn in float32, or rounded to it, also for float64 inputs, and never narrower: a Gaussian
of 16 bits has no tails, and a certificate for Gaussian noise says nothing about it. (Splitting
noise is made in float64, and rounded to the dtype of the input after that.)

A certificate is a statement about noise in real numbers, and a computer draws other noise. Three
kinds of schemes differ in what that leaves to assume (`Certificate.describe` says it under
``assumes``):

* Additive noise with independent coordinates and a grid, ``Gaussian(0.25, grid=255)`` for images
  of 8 bits, assumes nothing: what the model sees is a function of integers, each of which has its
  probability to 2**-128, and the certificate pays for the rest. Gaussian noise with
  ``off_grid=True`` does so for any inputs.
* All other additive noise assumes that the model does not read the last bits of x + noise. Sums of
  floating-point numbers have last bits that depend on the input more than real numbers would let
  them, and a model that is made to read them loses all its coverage inside the ball [1]_. The
  tails are cut, too: Gaussians end at 6.76 standard deviations, which changes the distribution of d
  coordinates by 1.4e-11 d in total variation, Laplace noise at 22.18 scales, by 2.4e-10 d.
* All other noise, discrete or splitting, assumes nothing. Its probabilities are exact, as those of
  all flips from 2**-76 on are, or right to 2**-128, and then the certificate pays for the rest.

.. [1] J. Jin, O. Ohrimenko and B. Rubinstein, "Getting a-round guarantees: floating-point attacks
   on certified robustness", 2022.
"""

from bincp.noise import (  # noqa: F401
    _ablation,
    _additive,
    _anisotropic,
    _flips,
    _hierarchical,
    _radial,
    _splitting,
    _transformations,
    _words,
)
from bincp.noise._copies import all_copies
from bincp.noise._draw import draw
from bincp.noise._grid import grid_table
from bincp.noise._keys import Keys
from bincp.noise._register import register

__all__ = ["Keys", "all_copies", "draw", "grid_table", "register"]
