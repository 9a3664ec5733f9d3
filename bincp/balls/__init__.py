"""Perturbation balls: the set of inputs that an adversary may choose from.

Radii are in the units of the tensor that gets the noise.
"""

from bincp.balls._ablations import L0, EditDistance, Elements, Patch, TrainingPoints
from bincp.balls._base import Ball
from bincp.balls._flips import CategoricalFlips, Flips, Joint
from bincp.balls._norms import L1, L2, Linf
from bincp.balls._shapes import Box, Ellipsoid

__all__ = [
    "L0",
    "L1",
    "L2",
    "Ball",
    "Box",
    "CategoricalFlips",
    "EditDistance",
    "Elements",
    "Ellipsoid",
    "Flips",
    "Joint",
    "Linf",
    "Patch",
    "TrainingPoints",
]
