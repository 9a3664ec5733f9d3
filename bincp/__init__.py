"""Conformal prediction sets that keep their coverage under attack.

The picture of the library, left to right::

    smoothing, ball --certify--> Certificate  (p -> worst-case p)
                                     |
    model --sample--> scores --> threshold tau --> decision rule (count >= k)   calibration
                                     |
    model --sample--> scores --count--> counts --compare--> prediction sets     prediction

``bincp.sampling`` needs torch, and is imported only on request, as are ``bincp.adapters``,
``attacks``, ``baselines`` and ``classification``.

The letters mean the same everywhere, in the documentation and in the code:

=======  ==========================================================================================
alpha    Miscoverage level: a prediction set may miss the true label with this probability.
n        Number of calibration points.
K        Number of classes (labels).
m        Number of sampled scores of a calibration point: noisy copies of the input.
m'       Number of sampled scores of each label of a test point.
tau      Threshold. A sampled score counts if it is at least tau.
p        Probability that one sampled score of a label reaches tau: its success probability.
c(p)     Certified lower bound: the least that an attack inside the ball can make of p.
t        Success rank: at least t of the m scores of a calibration point reach its own threshold.
j        Rank: tau is the j-th smallest of the thresholds of the n calibration points.
k        Least count: a label is in the prediction set if at least k of its m' scores reach tau.
eta      Share of alpha that confidence bounds spend on the error of sampling.
=======  ==========================================================================================

A *decision rule* is (tau, k, m'). A *success* is a sampled score that reaches tau. The *clean*
input is the one before the attack, and the *ball* is the set of inputs that the attack may reach
from it.

Functions keep no state and may be called from any number of threads, as long as no other thread
writes to their arrays meanwhile; where that is allowed, too, the notes of the function say so. The
notes of each class say what threads may do with one object. Pictures (`plots`, and the ``plot``
methods) are for one thread at a time, as matplotlib is.

The logger ``bincp`` is told which rule a calibration chose, which parts of a run are there and
which are made again, and at the level DEBUG where noise is drawn. Nothing is shown unless the
program asks for it, as by ``logging.basicConfig(level=logging.INFO)``.
"""

import logging as _logging

from bincp._utils import interrupt as _interrupt  # noqa: F401  # isort: skip  # before the others

from bincp import (
    balls,
    metrics,
    noise,
    plots,
    radii,
    regression,
    scores,
    shifts,
    smoothing,
    testing,
)
from bincp._core._capi import API as _C_API  # noqa: F401  # BINCP_API_CAPSULE of bincp/bincp.h
from bincp._utils.include import get_include
from bincp._utils.version import __version__ as __version__
from bincp.auditing import Audit, audit
from bincp.calibration import (
    BinCP,
    Counts,
    MondrianBinCP,
    Plan,
    RobustRiskControl,
    SequentialRule,
    SequentialTracker,
    Sweep,
    SweepRow,
    one_sample,
    plan,
    sweep,
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

_logging.getLogger(__name__).addHandler(_logging.NullHandler())

__all__ = [
    "Audit",
    "BinCP",
    "Certificate",
    "CertificateABIError",
    "CertificateError",
    "Counts",
    "MondrianBinCP",
    "NotCalibratedError",
    "Plan",
    "RobustRiskControl",
    "SequentialRule",
    "SequentialTracker",
    "Sweep",
    "SweepRow",
    "TrivialSetWarning",
    "audit",
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
    "regression",
    "scores",
    "shifts",
    "smoothing",
    "sweep",
    "testing",
]
