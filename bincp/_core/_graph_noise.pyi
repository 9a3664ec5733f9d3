import numpy as np
import numpy.typing as npt

GUIDE: int
FIELD: int
WHOLE: int
IN_ORDER: int

_Integers = npt.NDArray[np.int64]

class Flips:
    def __init__(
        self,
        always: bool,
        ones_high: int,
        ones_low: int,
        n_certain: int,
        gap_high: npt.NDArray[np.uint64],
        gap_low: npt.NDArray[np.uint64],
        guide: npt.NDArray[np.int32],
    ) -> None: ...

class Graph:
    def __init__(
        self,
        starts: _Integers,
        columns: _Integers,
        attribute_starts: _Integers,
        attribute_columns: _Integers,
        n_attributes: int,
        adjacency_flips: Flips,
        attribute_flips: Flips,
        directed: bool,
    ) -> None: ...
    def draw(
        self,
        seed: int,
        phase: int,
        ids: _Integers,
        draws: _Integers,
        targets: _Integers,
        extent: int,
        hops: int,
        degrees: bool,
    ) -> tuple[_Integers, _Integers, _Integers, _Integers, _Integers, _Integers, _Integers]: ...
