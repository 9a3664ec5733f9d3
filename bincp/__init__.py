"""Conformal prediction sets that keep their coverage under attack.

The picture of the library, left to right::

    smoothing, ball --certify--> Certificate  (p -> worst-case p)
                                     |
    model --sample--> scores --> threshold tau --> decision rule (count >= k)   calibration
                                     |
    model --sample--> scores --count--> counts --compare--> prediction sets     prediction

``bincp.sampling`` and ``bincp.demo`` need torch and are imported only on request.
"""

from bincp import (  # noqa: F401
    _builtins,
    balls,
    metrics,
    noise,
    plots,
    radii,
    scores,
    smoothing,
    testing,
)
from bincp._include import get_include
from bincp.calibration import BinCP, one_sample
from bincp.certificates import Certificate
from bincp.counting import count_exceedances, decide, kth_largest
from bincp.errors import (
    CertificateABIError,
    CertificateError,
    NotCalibratedError,
    TrivialSetWarning,
)
from bincp.intervals import (
    bernstein_lower,
    bernstein_upper,
    clopper_pearson_lower,
    clopper_pearson_upper,
    dkw_band,
    hoeffding_lower,
    hoeffding_upper,
)
from bincp.mondrian import MondrianBinCP
from bincp.planning import Plan, plan
from bincp.registry import certify, register, registered
from bincp.risk import RobustRiskControl
from bincp.sequential import SequentialRule

__version__ = "0.1.0"

__all__ = [
    "BinCP",
    "Certificate",
    "CertificateABIError",
    "CertificateError",
    "MondrianBinCP",
    "NotCalibratedError",
    "Plan",
    "RobustRiskControl",
    "SequentialRule",
    "TrivialSetWarning",
    "balls",
    "bernstein_lower",
    "bernstein_upper",
    "certify",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "count_exceedances",
    "decide",
    "dkw_band",
    "get_include",
    "hoeffding_lower",
    "hoeffding_upper",
    "kth_largest",
    "metrics",
    "noise",
    "one_sample",
    "plan",
    "plots",
    "radii",
    "register",
    "registered",
    "scores",
    "smoothing",
    "testing",
]
