"""What operators and certificates look like to the code that evaluates and checks them."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

Bound = Callable[[float], float]
"""A bound of a certificate: one probability in, one out, non-decreasing."""


class Bounds(Protocol):
    """A pair of bounds that answer for single probabilities: a certificate, for instance."""

    def lower(self, p: float, /) -> float: ...
    def upper(self, p: float, /) -> float: ...


class Operator(Protocol):
    """What a certificate is made of; compiled operators have this shape, too."""

    @property
    def name(self) -> str: ...
    def lower(self, p: float, /) -> float: ...
    def upper(self, p: float, /) -> float: ...
    def lower_fill(self, p: npt.NDArray[np.float64], out: npt.NDArray[np.float64], /) -> None: ...
    def upper_fill(self, p: npt.NDArray[np.float64], out: npt.NDArray[np.float64], /) -> None: ...
