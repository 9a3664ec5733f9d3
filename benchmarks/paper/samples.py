"""The scores of one setting, from cached logits; sorted once, for all methods and splits."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.paper.sampling import Cache, tuning_settings
from bincp import scores

__all__ = ["Samples", "softmax"]

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.floating[Any]]

# Bounds of each score, which the methods on means need; None where a score has none.
BOUNDS: dict[str, tuple[float, float] | None] = {"tps": (0, 1), "aps": (-1, 0), "logit": None}


class Samples:
    """Sampled scores of N inputs: of true labels to calibrate on, of all labels to predict from.

    Parameters
    ----------
    score : str
        "tps", "aps" or "logit".
    calibration : array (N, m)
        Scores of the true labels, with noise of the phase "calibration".
    test : array (N, K, m)
        Scores of all labels, with noise of the phase "test".
    clean : array (N, K)
        Scores without noise.
    labels : int array (N,)
    tuning : array (n', m'), optional
        Scores of the true labels of the last n' inputs, with noise of the phase "tuning". These
        inputs are for tuning, not for calibration or test.
    """

    def __init__(
        self,
        score: str,
        calibration: FloatArray,
        test: FloatArray,
        clean: FloatArray,
        labels: Array,
        tuning: FloatArray | None = None,
    ) -> None:
        self.tuning = calibration[:0] if tuning is None else tuning
        kept = len(labels) - len(self.tuning)
        self.score, self.bounds = score, BOUNDS[score]
        self.calibration, self.test, self.clean = calibration[:kept], test[:kept], clean[:kept]
        self.labels = labels[:kept]
        self._kept: dict[Hashable, Any] = {}
        self._sorted: dict[tuple[str, int], FloatArray] = {}

    @classmethod
    def load(cls, folder: Path, name: str, score: str, n_tuning: int) -> "Samples":
        """Read the scores of a setting from its cache."""
        cache = Cache(folder, name)
        labels = np.asarray(cache.load("labels"))
        clean = of_logits(score, cache.load("logits-clean")[..., None], seed=2)[..., 0]
        if score == "tps":  # cached as it is, with more draws
            calibration, test = (np.asarray(cache.load(part)) for part in ("calibration", "test"))
        else:
            test = of_logits(score, cache.load("logits-test"), seed=0)
            drawn = of_logits(score, cache.load("logits-calibration"), seed=1)
            calibration = drawn[np.arange(len(labels)), labels]
        tuning = None
        if n_tuning:
            logits = cache.load("logits-tuning", tuning_settings(n_tuning))
            tuning = of_logits(score, logits, seed=3)[np.arange(n_tuning), labels[-n_tuning:]]
        return cls(score, calibration, test, clean, labels, tuning)

    @property
    def n_inputs(self) -> int:
        """Inputs that are calibration or test points."""
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.test.shape[1])

    @property
    def n_samples(self) -> int:
        """Draws that both phases have."""
        return int(min(self.calibration.shape[1], self.test.shape[2]))

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what ``make`` returned when this key was first asked for."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def drawn(self, phase: str, m: int) -> FloatArray:
        """Return the first m draws of a phase, sorted upwards along the last axis.

        Only those of the last m that was asked for are kept: they are as large as the scores.
        """
        if (phase, m) not in self._sorted:
            array = self.calibration if phase == "calibration" else self.test
            self._sorted = {key: kept for key, kept in self._sorted.items() if key[1] == m}
            self._sorted[phase, m] = np.sort(array[..., :m], axis=-1)
        return self._sorted[phase, m]

    def clean_true_scores(self) -> FloatArray:
        """Return the scores (N,) of the true labels without noise."""
        return self.clean[np.arange(len(self.labels)), self.labels]


def of_logits(score: str, logits: FloatArray, *, seed: int, block: int = 100) -> FloatArray:
    """Return the scores (N, K, m) of logits (N, K, m).

    ``seed`` is that of the random numbers of APS, one for each evaluation of the network.
    """
    if score == "logit":
        return np.asarray(logits)
    rng = np.random.default_rng(seed)
    result = np.empty(logits.shape, np.float32)
    for start in range(0, len(logits), block):
        probabilities = softmax(np.moveaxis(logits[start : start + block], 1, 2))
        if score == "aps":
            drawn = scores.aps(probabilities, rng.random(probabilities.shape[:-1]))
            probabilities = np.clip(drawn, -1, 0)
        result[start : start + block] = np.moveaxis(probabilities, 2, 1)
    return result


def softmax(logits: FloatArray) -> FloatArray:
    """Return the probabilities over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    # A sum of rounded probabilities may pass 1 by a rounding error, none of them does.
    return np.minimum(powers / powers.sum(axis=-1, keepdims=True), 1)
