"""Other methods of robust conformal prediction, behind the interface of `bincp.BinCP`.

Each has ``calibrate``, ``predict_set``, fitted attributes such as ``tau_``, and an attribute
``guarantee``: "robust" (coverage of at least 1 - alpha at any input in the ball), "clean" (without
an attack only) or "none" (a published heuristic). All take their ranks in exact arithmetic and
compare ``>=``; the notes name the differences from the published code.

None of them stops drawing early. `VanillaCP`, `WeightedCP`, `VRCP` and `LipRCP` draw nothing, and
`RCP1` draws once. `RSCP`, `RankedRSCP` and `CAS` bound the mean of a fixed number of draws; such a
bound does not hold at a time that the draws choose. The means of `SmoothedCP` are exchangeable only
where all points have equally many draws. Counts of draws are what can be decided early, see
`bincp.BinCP`.

`calibrate` changes an object, so no other thread may use it meanwhile. A calibrated object is only
read: any number of threads may predict with it.
"""

from bincp.baselines._cas import CAS
from bincp.baselines._ibp import interval_bounds, tps_bounds
from bincp.baselines._rcp1 import RCP1
from bincp.baselines._rscp import RSCP, RankedRSCP
from bincp.baselines._vanilla import SmoothedCP, VanillaCP
from bincp.baselines._vrcp import VRCP, LipRCP
from bincp.baselines._weighted import WeightedCP

__all__ = [
    "CAS",
    "RCP1",
    "RSCP",
    "VRCP",
    "LipRCP",
    "RankedRSCP",
    "SmoothedCP",
    "VanillaCP",
    "WeightedCP",
    "interval_bounds",
    "tps_bounds",
]
