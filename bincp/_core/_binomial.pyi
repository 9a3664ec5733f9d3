import numpy as np
import numpy.typing as npt

CP_STEP: float
CP_STEP_ETA: float

def binom_pmf(s: int, m: int, p: float, q: float) -> float: ...
def binom_log_pmf(s: int, m: int, p: float, q: float) -> float: ...
def binom_sf(s: int, m: int, p: float, q: float) -> float: ...
def binom_cdf(s: int, m: int, p: float, q: float) -> float: ...
def cp_lower(s: int, m: int, eta: float) -> float: ...
def cp_upper(s: int, m: int, eta: float) -> float: ...
def cp_table(
    m: int,
    eta: float,
    lower_out: npt.NDArray[np.float64] | None,
    upper_out: npt.NDArray[np.float64] | None,
) -> None: ...
def cp_lower_many(
    s: npt.NDArray[np.int64],
    m: npt.NDArray[np.int64],
    eta: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None: ...
def cp_upper_many(
    s: npt.NDArray[np.int64],
    m: npt.NDArray[np.int64],
    eta: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None: ...
def randomized_many(
    s: npt.NDArray[np.int64],
    m: npt.NDArray[np.int64],
    eta: npt.NDArray[np.float64],
    u: npt.NDArray[np.float64],
    lower: bool,
    out: npt.NDArray[np.float64],
) -> None: ...
def sequence_many(
    s: npt.NDArray[np.int64],
    m: npt.NDArray[np.int64],
    eta: npt.NDArray[np.float64],
    lower: bool,
    out: npt.NDArray[np.float64],
) -> None: ...
