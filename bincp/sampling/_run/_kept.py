"""What a run keeps: scores of the labels, all scores, counts at thresholds, votes, or decisions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from bincp.noise._keys import IntArray
from bincp.sampling import _engine
from bincp.sampling._engine import Batch
from bincp.sampling._jobs import Job
from bincp.sampling._rules import snapshot, tests_of
from bincp.sampling._run import _canonical
from bincp.sampling._run._grid import Cells, Grid

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

    def dtype(self, scores: str, n_classes: int) -> np.dtype[Any]:
        """Return the dtype of the values, given that of the scores and K."""
        return np.dtype(np.int32)

    def grid(self, n_samples: int, batch_size: int) -> Grid:
        """Return the cells that parts are made of."""
        return Grid.of(n_samples, batch_size)

    def check(self, n_samples: int, dtype: str, n_classes: int) -> None:  # noqa: B027
        """Refuse a model or a number of draws that cannot be kept; most kinds take all."""

    def fill(
        self,
        values: Values,
        job: Job,
        grid: Grid,
        identity: dict[str, Any],
        labels: IntArray | None,
        tell: Callable[[int], object],
    ) -> None:
        """Sample the values of a part, and tell how many inputs times draws are done."""
        cells = Cells(grid, (len(job.x), job.n_samples))
        dtype = getattr(torch, identity["dtype"])
        for batch in _engine.batches(job, cells, identity["n_classes"], dtype):
            self.add(values, batch, labels)
            tell(len(batch.sources))

    def add(self, values: Values, batch: Batch, labels: IntArray | None) -> None:
        """Add a batch to the values of its part."""
        raise NotImplementedError

    def join(self, pieces: Sequence[Values]) -> Values:
        """Join the values of the same inputs over their draws."""
        return np.asarray(np.stack(pieces).sum(axis=0, dtype=np.int32))


class _Scores(Kept):
    def dtype(self, scores: str, n_classes: int) -> np.dtype[Any]:
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


_DECIDED_AT_ONCE = 8  # times the rows of a batch


@dataclass(frozen=True)
class Decisions(Kept):
    """Sets, counts and numbers of draws of one rule, whose drawing stops early."""

    digest: str
    rule: Any = field(default=None, compare=False)
    name = "decisions"

    @classmethod
    def of(cls, rule: Any) -> "Decisions":
        """Return what is kept for a calibrated rule."""
        own = snapshot(rule)
        return cls(digest_of_rule(own), own)

    def content(self) -> dict[str, Any]:
        return {"what": self.name, "rule": self.digest}

    def shape(self, n: int, m: int, n_classes: int) -> tuple[int, ...]:
        return (n,)

    def dtype(self, scores: str, n_classes: int) -> np.dtype[Any]:
        labels = (n_classes,)
        return np.dtype([("sets", "?", labels), ("counts", "<i4", labels), ("draws", "<i4")])

    def grid(self, n_samples: int, batch_size: int) -> Grid:
        # Rounds are made of the inputs that are not decided, so these must not depend on the parts.
        return Grid(_DECIDED_AT_ONCE * batch_size, n_samples)

    def check(self, n_samples: int, dtype: str, n_classes: int) -> None:
        rule = self.rule
        wanted = {"n_samples": rule.n_test_samples_, "dtype": rule.dtype_}
        found: dict[str, Any] = {"n_samples": n_samples, "dtype": dtype}
        if rule.n_classes_ is not None:
            wanted["n_classes"], found["n_classes"] = rule.n_classes_, n_classes
        for name, value in wanted.items():
            if found[name] != value:
                raise ValueError(
                    f"a run of decisions must have the {name} = {value} that the rule was "
                    f"calibrated for, got {found[name]}"
                )

    def fill(
        self,
        values: Values,
        job: Job,
        grid: Grid,
        identity: dict[str, Any],
        labels: IntArray | None,
        tell: Callable[[int], object],
    ) -> None:
        tests, tau, n_classes = tests_of(self.rule), self.rule.tau_, identity["n_classes"]
        for first in range(0, len(job.x), grid.inputs):
            own = slice(first, first + grid.inputs)
            some = replace(job.some(own.start, own.stop), progress=False)
            decided, dtype = _engine.decide(some, tau, tests, n_classes)
            self.check(job.n_samples, dtype, n_classes)
            values["sets"][own], values["counts"][own] = decided.accepted, decided.counts
            values["draws"][own] = decided.draws
            tell(len(some.x) * job.n_samples)

    def join(self, pieces: Sequence[Values]) -> Values:
        if len(pieces) > 1:
            raise ValueError(
                "runs of decisions must hold all draws of their inputs, got two runs with other "
                "draws of one input"
            )
        return pieces[0]


def digest_of_rule(rule: Any) -> str:
    """Return a digest of all by which a calibrated rule decides."""
    tests = tests_of(rule)
    each = tests if isinstance(tests, Sequence) else [tests]
    content = {
        "tau": [float(tau).hex() for tau in np.ravel(rule.tau_)],
        "dtype": rule.dtype_,
        "accept": [test.accept.tolist() for test in each],
        "reject": [test.reject.tolist() for test in each],
    }
    return _canonical.digest(content)


SIMPLE: dict[str, Kept] = {kept.name: kept for kept in (LabelScores(), AllScores(), Votes())}
"""All but those that need rules."""


def kept_of(content: dict[str, Any]) -> Kept:
    """Read what `Kept.content` returned."""
    if content["what"] == Counts.name:
        return Counts(tuple(float.fromhex(tau) for tau in content["taus"]))
    if content["what"] == Decisions.name:
        return Decisions(content["rule"])
    return SIMPLE[content["what"]]
