"""Smoothing schemes: how the input is randomised.

A scheme holds parameters only; `bincp.noise` draws its noise.

Scales are in the units of the tensor that gets the noise.
"""

from bincp.smoothing._ablation import Ablation, BandAblation, BlockAblation, Deletion
from bincp.smoothing._additive import Expp, Gaussian, Laplace, Pareto, Uniform
from bincp.smoothing._anisotropic import AnisotropicGaussian
from bincp.smoothing._base import Smoothing
from bincp.smoothing._flips import CategoricalFlip, Joint, SparseFlip
from bincp.smoothing._graph import GraphFlip
from bincp.smoothing._hierarchical import Hierarchical, Partition
from bincp.smoothing._interception import MessageInterception
from bincp.smoothing._radial import Exp1, Exp2, ExpInf, PowInf, UniformBall
from bincp.smoothing._splitting import SplittingNoise
from bincp.smoothing._transformations import Brightness, Translation
from bincp.smoothing._words import Staircase

__all__ = [
    "Ablation",
    "AnisotropicGaussian",
    "BandAblation",
    "BlockAblation",
    "Brightness",
    "CategoricalFlip",
    "Deletion",
    "Exp1",
    "Exp2",
    "ExpInf",
    "Expp",
    "Gaussian",
    "GraphFlip",
    "Hierarchical",
    "Joint",
    "Laplace",
    "MessageInterception",
    "Pareto",
    "Partition",
    "PowInf",
    "Smoothing",
    "SparseFlip",
    "SplittingNoise",
    "Staircase",
    "Translation",
    "Uniform",
    "UniformBall",
]
