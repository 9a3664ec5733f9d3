"""Perturbation balls: the set of inputs that an adversary may choose from.

Radii are in the units of the tensor that gets the noise.
"""

from bincp.balls._ablations import L0, EditDistance, Elements, Patch, Substitutions, TrainingPoints
from bincp.balls._base import Ball
from bincp.balls._flips import CategoricalFlips, Flips, Joint
from bincp.balls._graphs import AttackedNodes
from bincp.balls._norms import L1, L2, Linf
from bincp.balls._shapes import Box, Ellipsoid
from bincp.balls._transformations import BrightnessChange, Translations

__all__ = [
    "L0",
    "L1",
    "L2",
    "AttackedNodes",
    "Ball",
    "Box",
    "BrightnessChange",
    "CategoricalFlips",
    "EditDistance",
    "Elements",
    "Ellipsoid",
    "Flips",
    "Joint",
    "Linf",
    "Patch",
    "Substitutions",
    "TrainingPoints",
    "Translations",
]
