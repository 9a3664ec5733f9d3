"""Scores that are stored elsewhere, such as the runs on disk of `bincp.sampling`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@runtime_checkable
class CalibrationScores(Protocol):
    """Scores of calibration points that know what they were made with."""

    def provenance(self) -> dict[str, Any]:
        """Return what the scores were made with, by the names of `bincp.sampling.run`."""

    def calibration_points(
        self, certificate: dict[str, Any]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None, int | None]:
        """Return the scores (n, m) of the true labels, the labels, and K.

        Labels that are no classes are None, as is their number.

        It refuses a certificate, by its description, that is for other noise.
        """


@runtime_checkable
class StoredScores(CalibrationScores, Protocol):
    """What calibration and prediction need of a run, whose class is in a room above this one."""

    def all_scores(self, certificate: dict[str, Any]) -> npt.NDArray[Any]:
        """Return the scores (n, K, m) of all labels for a calibration; refuse other noise."""

    def sets_of(self, rule: Any) -> npt.NDArray[np.bool_]:
        """Return the prediction sets (n, K) of a calibrated rule, or refuse it."""

    def decisions(
        self, rules: Sequence[Any]
    ) -> Iterator[tuple[Iterable[npt.NDArray[np.bool_]], npt.NDArray[np.int64] | None]]:
        """Yield the prediction sets of each rule, and the labels, of some inputs at a time."""

    @property
    def n_inputs(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
