"""How far the law of the test points may differ from that of the calibration points.

P is the law of a calibration point, Q that of a test point before the attack. A shift is a set of
laws Q around P. It says which probability an event must have at least under Q if it has the
probability p under P, and `bincp.BinCP` calibrates for the worst Q: its argument `shift`. The
calibration points must be i.i.d. from P; Q may depend on them.
"""

from bincp.shifts._base import Shift
from bincp.shifts._divergences import KL, ChiSquared
from bincp.shifts._transport import LevyProkhorov, LikelihoodRatio, TotalVariation

__all__ = ["KL", "ChiSquared", "LevyProkhorov", "LikelihoodRatio", "Shift", "TotalVariation"]
