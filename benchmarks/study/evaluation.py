"""Rules on cached scores: set size, coverage and forward passes over random splits.

The inputs of a network are split into n calibration inputs and the others, which are test inputs.
Every rule sees the same splits, so that sizes are compared in pairs. Scores are those of clean
inputs: sets that are robust are larger there, and never smaller under attack than the certificate
allows.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import bincp

__all__ = ["Method", "Outcome", "Ratio", "Scores", "decided", "evaluate"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Scores:
    """Scores of one network.

    Parameters
    ----------
    calibration : float32 array (N, m)
        Of the true labels.
    test : float32 array (N, K, m')
        Of all labels, with noise of their own.
    labels : int64 array (N,)
    """

    calibration: Array
    test: Array
    labels: Array

    def splits(self, n: int, n_splits: int) -> Iterator[tuple[Array, Array]]:
        """Yield the calibration inputs and the test inputs of each split."""
        for seed in range(n_splits):
            order = np.random.default_rng(seed).permutation(len(self.labels))
            yield order[:n], order[n:]


@dataclass(frozen=True, eq=False)
class Method:
    """How to calibrate, and with how many samples: m for calibration and m' = m_test at most."""

    name: str
    m: int
    m_test: int
    options: dict[str, Any]

    def fits(self, scores: Scores) -> bool:
        """Whether there are enough samples."""
        return self.m <= scores.calibration.shape[1] and self.m_test <= scores.test.shape[2]

    def calibrated(
        self, certificate: bincp.Certificate, true: Array, n_classes: int, **settings: Any
    ) -> bincp.BinCP:
        """Return the rule of calibration scores (n, m)."""
        rule = bincp.BinCP(certificate, **settings, **self.options)
        with warnings.catch_warnings():  # tables show where every label is in every set
            warnings.simplefilter("ignore", bincp.TrivialSetWarning)
            return rule.calibrate(
                np.ascontiguousarray(true[:, : self.m]),
                n_classes=n_classes,
                n_test_samples=self.m_test,
            )


@dataclass(frozen=True)
class Ratio:
    """The quotient of two means over paired splits, with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Outcome:
    """Means over the test inputs, one number for each split."""

    size: Array
    coverage: Array
    passes: Array

    def over(self, other: "Outcome") -> Ratio:
        """Return the quotient of the mean sizes."""
        value = self.size.mean() / other.size.mean()
        rest = (self.size - value * other.size) / other.size.mean()
        return Ratio(float(value), float(rest.std(ddof=1) / math.sqrt(len(rest))))


def evaluate(
    method: Method,
    certificate: bincp.Certificate,
    scores: Scores,
    n: int,
    n_splits: int,
    alpha: Any = 0.1,
) -> Outcome:
    """Calibrate and predict on every split."""
    results = []
    n_classes = scores.test.shape[1]
    for known, rest in scores.splits(n, n_splits):
        rule = method.calibrated(certificate, scores.calibration[known], n_classes, alpha=alpha)
        sets, passes = decided(rule, scores.test[rest, :, : method.m_test])
        covered = bincp.metrics.coverage(sets, scores.labels[rest])
        results.append((bincp.metrics.average_set_size(sets), covered, passes))
    return Outcome(*np.array(results).T)


def decided(rule: bincp.BinCP, drawn: Array) -> tuple[Array, float]:
    """Return the sets, and the mean number of forward passes: until the last label is decided."""
    drawn = np.ascontiguousarray(drawn)
    if rule.boundaries_ is None:
        return rule.predict_set(drawn), float(drawn.shape[2])
    tracker = rule.boundaries_.start(drawn.shape[:2])
    tracker.update(drawn >= drawn.dtype.type(rule.tau_))
    return tracker.accepted, float(tracker.exits.max(axis=1).mean())
