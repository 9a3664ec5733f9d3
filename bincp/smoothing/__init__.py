"""Smoothing schemes: how the input is randomised. Parameters only; the noise is drawn elsewhere.

Scales are in the units of the tensor that gets the noise.
"""

from bincp.smoothing._ablation import Ablation, BandAblation, BlockAblation, Deletion
from bincp.smoothing._additive import Gaussian, Uniform
from bincp.smoothing._base import Smoothing
from bincp.smoothing._flips import SparseFlip
from bincp.smoothing._splitting import SplittingNoise

__all__ = [
    "Ablation",
    "BandAblation",
    "BlockAblation",
    "Deletion",
    "Gaussian",
    "Smoothing",
    "SparseFlip",
    "SplittingNoise",
    "Uniform",
]
