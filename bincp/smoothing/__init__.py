"""Smoothing schemes: how the input is randomised. Parameters only; the noise is drawn elsewhere.

Scales are in the units of the tensor that gets the noise.
"""

from bincp.smoothing._additive import Gaussian, Uniform
from bincp.smoothing._base import Smoothing
from bincp.smoothing._flips import CategoricalFlip, Joint, SparseFlip

__all__ = ["CategoricalFlip", "Gaussian", "Joint", "Smoothing", "SparseFlip", "Uniform"]
