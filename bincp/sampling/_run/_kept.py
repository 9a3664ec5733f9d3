"""What a run keeps of the scores: those of the labels, all, counts at thresholds, or votes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from bincp.noise._keys import IntArray
from bincp.sampling._engine import Batch

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Kept(ABC):
    """What is kept of a batch, and how parts are joined over their draws."""

    name: ClassVar[str]

    def content(self) -> dict[str, Any]:
        """Return the JSON form, which `kept_of` reads."""
        return {"what": self.name}

    @abstractmethod
    def shape(self, n: int, m: int, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the values of n inputs with m draws each."""

    def dtype(self, scores: str) -> np.dtype[Any]:
        """Return the dtype of the values, given that of the scores."""
        return np.dtype(np.int32)

    @abstractmethod
    def add(self, values: Values, batch: Batch, labels: IntArray | None) -> None:
        """Add a batch to the values of its part."""

    def join(self, pieces: Sequence[Values]) -> Values:
        """Join the values of the same inputs over their draws."""
        return np.asarray(np.stack(pieces).sum(axis=0, dtype=np.int32))


class _Scores(Kept):
    def dtype(self, scores: str) -> np.dtype[Any]:
        return np.dtype(scores)

    def join(self, pieces: Sequence[Values]) -> Values:
        return np.concatenate(pieces, axis=-1)


class LabelScores(_Scores):
    """The scores (n, m) of the true labels, which any calibration takes."""

    name = "label scores"

    def shape(self, n: int, m: int, n_classes: int) -> tuple[int, ...]:
        return n, m

    def add(self, values: Values, batch: Batch, labels: IntArray | None) -> None:
        assert labels is not None
        own = torch.from_numpy(labels[batch.sources]).to(batch.scores.device)[:, None]
        values[batch.sources, batch.draws] = batch.scores.gather(1, own)[:, 0].cpu().numpy()


class AllScores(_Scores):
    """The scores (n, K, m) of all labels, which serve everything."""

    name = "scores"

    def shape(self, n: int, m: int, n_classes: int) -> tuple[int, ...]:
        return n, n_classes, m

    def add(self, values: Values, batch: Batch, labels: IntArray | None) -> None:
        values[batch.sources, :, batch.draws] = batch.scores.cpu().numpy()


class Votes(Kept):
    """How many draws (n, K) have their largest logit at each label."""

    name = "votes"

    def shape(self, n: int, m: int, n_classes: int) -> tuple[int, ...]:
        return n, n_classes

    def add(self, values: Values, batch: Batch, labels: IntArray | None) -> None:
        np.add.at(values, (batch.sources, batch.scores.argmax(dim=1).cpu().numpy()), 1)


@dataclass(frozen=True)
class Counts(Kept):
    """How many scores (n, thresholds, K) reach each of some thresholds, in increasing order."""

    taus: tuple[float, ...]
    name = "counts"

    def content(self) -> dict[str, Any]:
        return {"what": self.name, "taus": [tau.hex() for tau in self.taus]}

    def shape(self, n: int, m: int, n_classes: int) -> tuple[int, ...]:
        return n, len(self.taus), n_classes

    def add(self, values: Values, batch: Batch, labels: IntArray | None) -> None:
        for i, tau in enumerate(self.taus):
            values[batch.inputs, i] += batch.hits(tau)


SIMPLE: dict[str, Kept] = {kept.name: kept for kept in (LabelScores(), AllScores(), Votes())}
"""All but counts, which need thresholds."""


def kept_of(content: dict[str, Any]) -> Kept:
    """Read what `Kept.content` returned."""
    if content["what"] == Counts.name:
        return Counts(tuple(float.fromhex(tau) for tau in content["taus"]))
    return SIMPLE[content["what"]]
