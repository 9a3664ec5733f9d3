"""Random splits into calibration and test points, and how good a method is over all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.paper.methods import Fitted

__all__ = ["Outcome", "Splits"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """Mean set size and coverage on each split.

    Parameters
    ----------
    sizes, coverages : float64 array (n_splits,)
        Average set size and coverage of the test points.
    """

    sizes: Array
    coverages: Array

    @property
    def size(self) -> float:
        """Mean set size."""
        return float(self.sizes.mean())

    @property
    def coverage(self) -> float:
        """Mean coverage."""
        return float(self.coverages.mean())


class Splits:
    """Splits of N inputs into n calibration and N - n test points.

    The same for every method, so that differences between methods are paired.

    Parameters
    ----------
    n_inputs, n, n_splits : int
    """

    def __init__(self, n_inputs: int, n: int, n_splits: int) -> None:
        if n >= n_inputs:
            raise ValueError(f"`n` must be below the {n_inputs} inputs, got {n}")
        order = np.stack([np.random.default_rng(i).permutation(n_inputs) for i in range(n_splits)])
        self.known, self.rest = order[:, :n], order[:, n:]

    def thresholds(self, fitted: Fitted) -> Array:
        """Return the threshold of each split, -inf for rank 0."""
        if fitted.rank == 0:
            return np.full(len(self.known), -np.inf)
        if fitted.select is not None:
            return np.array([fitted.select(fitted.calibration[known]) for known in self.known])
        values = fitted.calibration[self.known]
        return np.asarray(np.partition(values, fitted.rank - 1, axis=1)[:, fitted.rank - 1])

    def evaluate(self, fitted: Fitted, labels: Array, test: Array | None = None) -> Outcome:
        """Return set sizes and coverages of a fitted method.

        Parameters
        ----------
        fitted : Fitted
        labels : int array (N,)
        test : array (N', K), optional
            Values of the first N' inputs after an attack; only they are test points then, on each
            split those that are not calibration points.
        """
        values = fitted.test if test is None else test
        sizes, coverages = [], []
        everyone = np.arange(len(values))
        for tau, rest in zip(self.thresholds(fitted), self.rest, strict=True):
            tested = rest[rest < len(values)]
            sets = values >= tau
            sizes.append(sets.sum(axis=1)[tested].mean())
            coverages.append(sets[everyone, labels[: len(values)]][tested].mean())
        return Outcome(np.array(sizes), np.array(coverages))
