"""Certified bounds, beside the NumPy or SciPy expression."""

import numpy as np
import numpy.typing as npt

from bincp.certificates import certify
from bincp.cli._bench_cases import Case
from bincp.cli._bench_turns import Figure, rates


def bound_figures(case: Case, u: npt.NDArray[np.float64], seconds: float) -> tuple[Figure, Figure]:
    """Return the figures of one probability a call, and of all of them a call.

    ``u`` are numbers in (0, 1), from which the case makes its probabilities.
    """
    p = case.probabilities(u)
    ours = certify(case.smoothing, case.ball).lower
    theirs = case.make_baseline(case.smoothing, case.ball)
    one = float(p[0])
    single = rates(lambda: ours(one), lambda: theirs(one), 1, seconds)
    many = rates(lambda: ours(p), lambda: theirs(p), len(p), seconds)
    what = f"lower bound of {case.smoothing!r} against {case.ball!r}"
    return (
        Figure(case.kernel, what, case.baseline, *single),
        Figure(case.kernel, what, case.baseline, *many),
    )
