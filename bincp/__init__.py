"""Conformal prediction sets that keep their coverage under attack.

The picture of the library, left to right::

    smoothing, ball --certify--> Certificate  (p -> worst-case p)
                                     |
    model --sample--> scores --> threshold tau --> decision rule (count >= k)   calibration
                                     |
    model --sample--> scores --count--> counts --compare--> prediction sets     prediction

``bincp.sampling`` and ``bincp.cli._demo_run`` need torch and are imported only on request.
"""

from bincp import balls, metrics, noise, plots, radii, scores, smoothing, testing
from bincp._core._capi import API as _C_API  # noqa: F401  # BINCP_API_CAPSULE of bincp/bincp.h
from bincp._utils.include import get_include
from bincp._utils.version import __version__ as __version__
from bincp.calibration import (
    BinCP,
    MondrianBinCP,
    Plan,
    RobustRiskControl,
    SequentialRule,
    one_sample,
    plan,
)
from bincp.certificates import Certificate, certify, register, registered
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
