"""A worker of a run: it checks parts that are there, and makes those that are not."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bincp._utils.progress import Bar, progress_bar
from bincp.sampling import _engine
from bincp.sampling._jobs import Job
from bincp.sampling._run import _manifest, _seed
from bincp.sampling._run._data import Rows
from bincp.sampling._run._layout import Layout
from bincp.sampling._run._manifest import Manifest, check_same
from bincp.sampling._run._model import precision_content
from bincp.sampling._run._parts import DamagedError, Part, read_part
from bincp.sampling._run._publish import remove_leftovers
from bincp.sampling._run._storing import is_stored, store
from bincp.sampling._run._task import Task, checked_labels

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Worker:
    """What makes parts of a run."""

    folder: Path
    manifest: Manifest
    task: Task

    def missing(self, parts: Sequence[int], check_inputs: bool) -> list[int]:
        """Return which parts are to be made; refuse other inputs than those of the others."""
        return [number for number in parts if not self._is_there(number, check_inputs)]

    def present(self) -> list[int]:
        """Return the parts that are there, complete or damaged."""
        return [number for number in range(self._layout.n_parts) if self._path(number).exists()]

    def clean(self) -> None:
        """Remove what killed processes have left of files that are complete."""
        numbers = {self._path(number): number for number in range(self._layout.n_parts)}

        def is_complete(path: Path) -> bool:
            if path in numbers:
                return is_stored(self.folder, self.manifest, numbers[path])
            return path.name in (_manifest.NAME, _seed.NAME) and path.exists()

        remove_leftovers(self.folder, is_complete)

    def make(self, numbers: list[int], seed: int) -> None:
        """Sample parts and write each as soon as it is complete."""
        rows = sum(np.prod(self._layout.rectangle(number).shape) for number in numbers)
        with progress_bar(self.task.options.progress, int(rows), self.task.phase, "draw") as bar:
            for number in numbers:
                store(self.folder, self.manifest, number, self._sampled(number, seed, bar))
                _log.info("part %d of %d is written", number, self._layout.n_parts)

    @property
    def _layout(self) -> Layout:
        return self.manifest.layout

    def _path(self, number: int) -> Path:
        return self.folder / self._layout.name(number)

    def _is_there(self, number: int, check_inputs: bool) -> bool:
        path = self._path(number)
        try:
            part = read_part(path, self.manifest.digest, number)
        except FileNotFoundError:
            return False
        except DamagedError as error:
            _log.warning("%s; it will be made again", error)
            return False
        if check_inputs:
            check_digests(part, self._rows(number), self._layout.rectangle(number).first_input)
        return True

    def _rows(self, number: int) -> Rows:
        where = self._layout.rectangle(number)
        return self.task.data.rows(where.first_input, where.last_input)

    def _sampled(self, number: int, seed: int, bar: Bar) -> Part:
        where, identity = self._layout.rectangle(number), self.manifest.identity
        rows = checked_labels(self._rows(number), identity["n_classes"], where.first_input)
        job = self.task.job(seed, rows, where)
        check_same(self.folder, identity, {"precision": precision_content(job.device)})
        kept, n_classes = self.task.kept, identity["n_classes"]
        shape = kept.shape(*where.shape, n_classes)
        values = np.zeros(shape, kept.dtype(identity["dtype"], n_classes))

        with _engine.evaluating(job.model):
            kept.fill(values, job, self.task.grid, identity, rows.labels, bar.update)
        note = {"manifest": self.manifest.digest, "part": number, "environment": _environment(job)}
        return Part(values, rows.labels, rows.digests(), note)


def check_digests(part: Part, rows: Rows, first: int) -> None:
    """Refuse inputs that are not those of a part."""
    other = (part.digests != rows.digests()).any(axis=1)
    if other.any():
        raise ValueError(
            "`x` must hold the inputs and labels that the run was begun with, in their order, got "
            f"another one at position {first + int(np.argmax(other))}"
        )


def _environment(job: Job) -> dict[str, Any]:
    """Return what may change the last bits of scores, and is shown only."""
    name = str(job.device.type)
    if name == "cuda":
        name = torch.cuda.get_device_name(job.device)
    return {
        "device": name,
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
    }
