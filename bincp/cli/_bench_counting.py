"""Counting of scores, beside reading the same memory, which no count can beat."""

import numpy as np

from bincp.cli._bench_cases import CountCase
from bincp.cli._bench_turns import Figure, rates
from bincp.counting import count_exceedances

_TAU = 0.7


def count_figure(case: CountCase, n_bytes: int, seconds: float) -> Figure:
    """Return the figure of one dtype and layout, over about so many bytes."""
    scores = case.scores(n_bytes)
    # The largest 32-bit integer: the fastest of NumPy's reductions over all bytes.
    words = scores.reshape(-1).view(np.int32)
    speeds = rates(
        lambda: count_exceedances(scores, _TAU, axis=case.axis),
        words.max,
        scores.nbytes,
        seconds,
    )
    what = f"scores of shape {scores.shape}, counted along axis {case.axis}"
    return Figure(case.kernel, what, "reading", *speeds)
