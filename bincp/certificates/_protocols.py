"""The interfaces through which operators and certificates are evaluated and checked."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

Bound = Callable[[float], float]
"""A bound of a certificate: one probability in, one out, non-decreasing."""


class Bounds(Protocol):
    """A pair of bounds of single probabilities, as a certificate has."""

    def lower(self, p: float, /) -> float: ...
    def upper(self, p: float, /) -> float: ...


class Operator(Protocol):
    """The evaluator inside a certificate; compiled operators have these members, too."""

    @property
    def name(self) -> str: ...
    def lower(self, p: float, /) -> float: ...
    def upper(self, p: float, /) -> float: ...
    def lower_fill(self, p: npt.NDArray[np.float64], out: npt.NDArray[np.float64], /) -> None: ...
    def upper_fill(self, p: npt.NDArray[np.float64], out: npt.NDArray[np.float64], /) -> None: ...
