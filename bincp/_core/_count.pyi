from typing import Any

import numpy as np
import numpy.typing as npt

def count(
    scores: npt.NDArray[Any],
    thresholds: npt.NDArray[Any],
    counts: npt.NDArray[np.int32],
    dtype: str,
) -> bool: ...
def decide(
    scores: npt.NDArray[Any],
    thresholds: npt.NDArray[Any],
    min_counts: npt.NDArray[np.int64],
    decisions: npt.NDArray[np.bool_],
    dtype: str,
) -> bool: ...
