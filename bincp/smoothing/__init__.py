"""Smoothing schemes: how the input is randomised. Parameters only; the noise is drawn elsewhere.

Scales are in the units of the tensor that gets the noise.
"""

from bincp.smoothing._additive import Expp, Gaussian, Laplace, Pareto, Uniform
from bincp.smoothing._base import Smoothing
from bincp.smoothing._flips import SparseFlip
from bincp.smoothing._radial import Exp1, Exp2, ExpInf, PowInf, UniformBall

__all__ = [
    "Exp1",
    "Exp2",
    "ExpInf",
    "Expp",
    "Gaussian",
    "Laplace",
    "Pareto",
    "PowInf",
    "Smoothing",
    "SparseFlip",
    "Uniform",
    "UniformBall",
]
