"""Calibration: from the sampled scores of true labels to a decision rule, and prediction with it.

The public names are those of `bincp`: `bincp.BinCP`, `bincp.plan` and so on.
"""

from bincp.calibration._bincp import BinCP, one_sample
from bincp.calibration._mondrian import MondrianBinCP
from bincp.calibration._planning import Plan, plan
from bincp.calibration._risk import RobustRiskControl
from bincp.calibration._sequential import SequentialRule, SequentialTracker
from bincp.calibration._sweep import Sweep, SweepRow, sweep

__all__ = [
    "BinCP",
    "MondrianBinCP",
    "Plan",
    "RobustRiskControl",
    "SequentialRule",
    "SequentialTracker",
    "Sweep",
    "SweepRow",
    "one_sample",
    "plan",
    "sweep",
]
