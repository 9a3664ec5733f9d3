"""The draws after which sequential prediction looks at an input."""

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_counts
from bincp._utils.validation import MAX_COUNT

Looks = npt.NDArray[np.int64]


def check_looks(looks: str | ArrayLike | None, m_test: int) -> Looks | None:
    """Return numbers of draws in increasing order that end with m', or None if none are given."""
    if looks is None:
        return None
    if isinstance(looks, str):
        if looks != "doubling":
            raise ValueError(f'`looks` must be "doubling" or numbers of draws, got {looks!r}')
        numbers = 2 ** np.arange(m_test.bit_length())
    else:
        numbers = as_counts("looks", looks, low=1, high=MAX_COUNT).astype(np.int64)
        if numbers.ndim != 1 or np.any(np.diff(numbers) <= 0):
            raise ValueError(
                f"`looks` must be numbers of draws in increasing order, got {numbers.tolist()}"
            )
    return np.append(numbers[numbers < m_test], m_test)


def until_next_look(looks: Looks, draws: Looks, numbers: Looks) -> Looks:
    """Return how many draws bring inputs to the first look that may decide them."""
    return looks[np.searchsorted(looks, draws + numbers)] - draws
