from typing import Any

import numpy as np
import numpy.typing as npt

MAX_ID: int
MAX_LENGTH: int
THIRD: int
CALIBRATION: int
TEST: int
CALIBRATION_SCORE: int
TEST_SCORE: int
CALIBRATION_RADIUS: int
TEST_RADIUS: int
TUNING: int
TUNING_SCORE: int
TUNING_RADIUS: int
CALIBRATION_SELECTION: int
TEST_SELECTION: int
TUNING_SELECTION: int
GAUSSIAN: int
UNIFORM: int
UNIT: int
LAPLACE: int

def philox4x32(
    counter: tuple[int, int, int, int], key: tuple[int, int]
) -> tuple[int, int, int, int]: ...
def add_noise(
    law: int,
    scale: float,
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    x: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None: ...
def add_grid_noise(
    entry: npt.NDArray[np.uint32],
    low: npt.NDArray[np.uint32],
    half: int,
    grid: int,
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    k: npt.NDArray[np.int32],
    out: npt.NDArray[Any],
) -> None: ...
def add_off_grid_noise(
    entry: npt.NDArray[np.uint32],
    low: npt.NDArray[np.uint32],
    half: int,
    grid: int,
    s: float,
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    x: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None: ...
def flip(
    p_plus: float,
    p_minus: float,
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    x: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None: ...
def unit_numbers(
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    out: npt.NDArray[np.float32],
) -> None: ...
def words(
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint64],
) -> None: ...
def keep(
    number: int,
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    kept: npt.NDArray[np.uint8],
) -> None: ...
def split(
    length: float,
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    x: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None: ...
def split_copies(
    levels: int,
    grid: int,
    numbers: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int32],
    slack: npt.NDArray[np.int32],
    out: npt.NDArray[Any],
) -> None: ...
def change_categories(
    k: int,
    p_plus: float,
    p_minus: float,
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    x: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None: ...
def wide_unit_numbers(
    seed: int,
    stream: int,
    ids: npt.NDArray[np.int64],
    draws: npt.NDArray[np.int64],
    out: npt.NDArray[np.float64],
) -> None: ...
