"""The key of a draw: seed, phase, id of the input and number of the draw."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp._utils.arrays import ArrayLike, as_counts
from bincp._utils.validation import check_integer

Phase = Literal["calibration", "test"]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]

PHASES = {"calibration": _noise.CALIBRATION, "test": _noise.TEST}
SCORE_STREAMS = {"calibration": _noise.CALIBRATION_SCORE, "test": _noise.TEST_SCORE}
# Where noise is a direction times a radius, the radius has a stream of its own.
RADIUS_STREAMS = {
    _noise.CALIBRATION: _noise.CALIBRATION_RADIUS,
    _noise.TEST: _noise.TEST_RADIUS,
}


def check_phase(phase: object) -> None:
    """Refuse anything but the two phases."""
    if not isinstance(phase, str):
        raise TypeError(f"`phase` must be 'calibration' or 'test', got {phase!r}")
    if phase not in PHASES:
        raise ValueError(f"`phase` must be 'calibration' or 'test', got {phase!r}")


def check_seed(seed: object) -> None:
    """Refuse seeds that are not one 64-bit number."""
    check_integer("seed", seed, low=0, high=2**64 - 1)


def check_indices(indices: ArrayLike | None, n: int, phase: Phase) -> IntArray:
    """Return the ids of n inputs; calibration inputs must have ids of their own."""
    if indices is None:
        return np.arange(n)
    ids = as_counts("indices", indices, high=_noise.MAX_ID)
    if ids.shape != (n,):
        raise ValueError(f"`indices` must have shape {(n,)}, got {ids.shape}")
    if phase == "calibration":
        values, counts = np.unique(ids, return_counts=True)
        if len(values) < n:
            again = int(values[np.argmax(counts > 1)])
            raise ValueError(
                "`indices` must differ in the calibration phase (equal ids get equal noise, and "
                f"the guarantee needs independent noise), got {again} more than once"
            )
    return ids


def score_numbers(
    ids: IntArray, draws: IntArray, *, phase: Phase, seed: int
) -> npt.NDArray[np.float32]:
    """Return a number, uniform on (0, 1], for each evaluation of a score that is random itself."""
    numbers = np.empty(len(ids), np.float32)
    _noise.unit_numbers(seed, SCORE_STREAMS[phase], ids, draws, numbers)
    return numbers


def random_words(
    seed: int, stream: int, ids: IntArray, draws: IntArray, n: int
) -> npt.NDArray[np.uint64]:
    """Return n random numbers of 64 bits for each (id, draw), for laws that are made here."""
    out = np.empty((len(ids), n), np.uint64)
    _noise.words(seed, stream, ids, draws, out)
    return out


def below(words: npt.NDArray[np.uint64], bound: int) -> IntArray:
    """Return floor(bound w / 2^64), in [0, bound), for bound < 2^31: uniform to bound / 2^64."""
    high, low = words >> np.uint64(32), words & np.uint64(2**32 - 1)
    scaled = high * np.uint64(bound) + (low * np.uint64(bound) >> np.uint64(32))
    return (scaled >> np.uint64(32)).astype(np.int64)
