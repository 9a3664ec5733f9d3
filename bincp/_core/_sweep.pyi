import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

def scores(low: Array, high: Array, scale: Array | None, y: Array, out: Array) -> None: ...
def ends(
    low: Array, high: Array, scale: Array | None, tau: float, left: Array, right: Array
) -> None: ...
def mark_empty(left: Array, right: Array) -> bool: ...
def sweep(
    left: Array,
    right: Array,
    k: int,
    starts: Array,
    stops: Array,
    offsets: npt.NDArray[np.int64],
) -> int: ...
