import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

def scratch_size(m: int) -> int: ...
def exits(
    accept: Integers,
    reject: Integers,
    p: Array,
    q: Array,
    scratch: Array,
    refused: Array,
    accepted: Array,
    draws: Array,
) -> None: ...
def undecided(
    accept: Integers,
    reject: Integers,
    p: Array,
    q: Array,
    scratch: Array,
    left: Array,
) -> None: ...
def replay(
    accept: Integers,
    reject: Integers,
    hits: npt.NDArray[np.uint8],
    inputs: npt.NDArray[np.int64],
    draws: Integers,
    counts: Integers,
    exits: Integers,
) -> None: ...
def decide(
    accept: Integers,
    reject: Integers,
    hits: npt.NDArray[np.uint8],
    accepted: npt.NDArray[np.uint8],
) -> None: ...
