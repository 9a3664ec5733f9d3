"""The Cython face: ``from bincp cimport count_float32, cp_lower, Operator, gaussian_row, ...``.

Everything here can be called without the GIL. What each function asks for and returns stands beside
its declaration in ``bincp/_core``.
"""

from bincp._core._binomial cimport (
    binom_cdf,
    binom_log_pmf,
    binom_pmf,
    binom_sf,
    cp_fill_table,
    cp_lower,
    cp_upper,
)
from bincp._core._count cimport count_bfloat16, count_float16, count_float32, count_float64
from bincp._core._noise cimport flip_row, gaussian_row, laplace_row, uniform_row
from bincp._core._operators cimport (
    BINCP_ABI_VERSION,
    BINCP_OPERATOR_CAPSULE,
    Operator,
    bincp_bound_fn,
    bincp_fill_fn,
    bincp_operator,
    lower_bound,
    lower_fill,
    upper_bound,
    upper_fill,
)
from bincp._core._sequential cimport sequential_exits, sequential_replay
