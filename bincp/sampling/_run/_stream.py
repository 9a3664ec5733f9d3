"""Runs of inputs that come one batch after the other, nobody knows how many.

One process reads them from their start. Parts end at fixed ids, whatever the batches are, and a
last file says how many inputs there were.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from bincp.sampling import _inputs
from bincp.sampling._graphs import Nodes
from bincp.sampling._inputs import Key
from bincp.sampling._jobs import host_inputs
from bincp.sampling._run._data import NO_NODES, Rows
from bincp.sampling._run._layout import Layout
from bincp.sampling._run._manifest import Manifest
from bincp.sampling._run._parts import DamagedError, Part, read_part, write_part
from bincp.sampling._run._publish import publish, remove_leftovers
from bincp.sampling._run._seed import needed_seed
from bincp.sampling._run._task import Task
from bincp.sampling._run._worker import Worker, check_digests

_log = logging.getLogger(__name__)

END = "end.npz"
_END_NUMBER = -1
_VALUE_BYTES, _INPUT_BYTES, _INPUTS = 2**24, 2**26, 4096


@dataclass(frozen=True)
class Piece:
    """Inputs of a stream from a position on, as the data of a task."""

    first: int
    own: Rows

    def __len__(self) -> int:
        return len(self.own.inputs)

    def rows(self, first: int, last: int) -> Rows:
        part = slice(first - self.first, last - self.first)
        labels = None if self.own.labels is None else self.own.labels[part]
        return Rows(self.own.inputs[part], labels)


@dataclass(frozen=True)
class Stream:
    """Batches of inputs, the first of which is known."""

    first: Piece
    batches: Iterator[Rows]

    @classmethod
    def of(cls, x: Iterable[Any], key: Key = None) -> "Stream":
        source = _inputs.source_of(x)
        batches = _rows_of(_inputs.batches_of(source, _inputs.check_key(key)))
        first = next(batches, None)
        if first is None:
            raise ValueError("`x` must yield at least one batch, got none")
        one = Piece(0, Piece(0, first).rows(0, 1))
        return cls(one, chain([first], batches))

    def pieces(self, sizes: Iterable[int]) -> Iterator[Piece]:
        """Yield so many inputs at a time, at last fewer, or what follows all sizes."""
        first, held, wanted = 0, 0, iter(sizes)
        buffer: list[Rows] = []
        size = next(wanted, None)
        for batch in self.batches:
            buffer.append(batch)
            held += len(batch.inputs)
            while size is not None and held >= size:
                joined = Piece(0, _joined(buffer))
                yield Piece(first, joined.rows(0, size))
                buffer = [joined.rows(size, held)]
                first, held = first + size, held - size
                size = next(wanted, None)
            if size is None and held:
                break
        if held:
            yield Piece(first, _joined(buffer))


def is_stream(x: object) -> bool:
    """Say if inputs are an iterable of batches without a length."""
    if isinstance(x, DataLoader):
        return isinstance(x.dataset, IterableDataset)
    known = (torch.Tensor, np.ndarray, IterableDataset)
    return isinstance(x, Iterable) and not isinstance(x, known) and not hasattr(x, "__len__")


def stream_of(x: Any, labels: object, key: Key) -> Stream | None:
    """Return inputs without a length, None for others."""
    if not is_stream(x):
        return None
    if labels is not None:
        raise TypeError(
            f"`labels` must be given with an array of inputs only, got them with {type(x).__name__}"
        )
    return Stream.of(x, key)


def step_of(task: Task, n_classes: int, dtype: str) -> int:
    """Return how many inputs a part has: whole cells of the grid that fit well into memory."""
    cell, first = task.grid.inputs, task.data.rows(0, 1).inputs
    shape = task.kept.shape(1, task.n_samples, n_classes)
    value = int(np.prod(shape, dtype=object)) * task.kept.dtype(dtype, n_classes).itemsize
    most = min(_VALUE_BYTES // value, _INPUT_BYTES // first.nbytes, _INPUTS)
    return max(most // cell, 1) * cell


def make(
    folder: Path, manifest: Manifest, task: Task, stream: Stream, seed: int | None, check: bool
) -> Manifest:
    """Make the parts that are not there, and return the manifest with the number of inputs."""
    step, known, n = manifest.layout.step, _usable_number(folder, manifest), 0
    assert step is not None
    for number, piece in enumerate(stream.pieces(repeat(step))):
        n = piece.first + len(piece)
        if known is not None and n > known:
            raise ValueError(f"`x` must yield the {known} inputs of the run {folder}, got more")
        worker = Worker(folder, closed(manifest, n), replace(task, data=piece))
        if not _is_there(folder, manifest, number, piece, check):
            worker.make([number], needed_seed(folder, seed))
    if known is not None and n != known:
        raise ValueError(f"`x` must yield the {known} inputs of the run {folder}, got {n}")
    if known is None:
        _end(folder, manifest, n)
    remove_leftovers(folder, lambda path: path.exists())  # one process has written all there is
    return closed(manifest, n)


def closed(manifest: Manifest, n: int) -> Manifest:
    """Return the manifest of a stream that ends after n inputs."""
    identity = {**manifest.identity, "n_inputs": n}
    return replace(manifest, identity=identity, layout=manifest.layout.closed(n))


def read_end(folder: Path, manifest: Manifest) -> Manifest:
    """Return the manifest with the number of inputs, or say that the run is not complete."""
    if manifest.layout.step is None:
        return manifest
    n = _known_number(folder, manifest)
    if n is None:
        raise FileNotFoundError(
            2, "the run is not complete, its inputs were not read to their end", str(folder / END)
        )
    return closed(manifest, n)


def _known_number(folder: Path, manifest: Manifest) -> int | None:
    try:
        return int(read_part(folder / END, manifest.digest, _END_NUMBER).values[0])
    except FileNotFoundError:
        return None


def _usable_number(folder: Path, manifest: Manifest) -> int | None:
    """Return the number of inputs if the last file is there and not damaged."""
    try:
        return _known_number(folder, manifest)
    except DamagedError as error:
        _log.warning("%s; it will be made again", error)
        return None


def _is_there(folder: Path, manifest: Manifest, number: int, piece: Piece, check: bool) -> bool:
    path = folder / manifest.layout.name(number)
    try:
        part = read_part(path, manifest.digest, number)
    except FileNotFoundError:
        return False
    except DamagedError as error:
        _log.warning("%s; it will be made again", error)
        return False
    if len(part.digests) != len(piece):
        raise ValueError(
            f"`x` must yield the inputs that the run was begun with, got {len(piece)} from "
            f"position {piece.first} on, where {path.name} has {len(part.digests)}"
        )
    if check:
        check_digests(part, piece.own, piece.first)
    return True


def _end(folder: Path, manifest: Manifest, n: int) -> None:
    note = {"manifest": manifest.digest, "part": _END_NUMBER}
    part = Part(np.array([n]), None, np.zeros((0, 32), np.uint8), note)

    def is_complete(_: Path) -> bool:
        return _usable_number(folder, manifest) is not None

    publish(folder / END, partial(write_part, part=part), is_complete)


def _rows_of(batches: Iterable[_inputs.Piece]) -> Iterator[Rows]:
    """Yield batches as arrays of their own, but for those that are empty."""
    for given, labels in batches:
        if isinstance(given, Nodes):
            raise TypeError(NO_NODES)
        inputs = host_inputs(given)
        if inputs.ndim < 2:
            raise ValueError(f"`x` must yield batches of shape (b, ...), got {inputs.shape}")
        if len(inputs):
            yield Rows(np.array(inputs), labels)


def _joined(batches: list[Rows]) -> Rows:
    if len(batches) == 1:
        return batches[0]
    labels = None
    if batches[0].labels is not None:
        labels = np.concatenate([batch.labels for batch in batches if batch.labels is not None])
    return Rows(np.concatenate([batch.inputs for batch in batches]), labels)


def open_layout(task: Task, n_classes: int, dtype: str) -> Layout:
    """Return the layout of a stream, of which nobody knows the end."""
    return Layout((0,), (0, task.n_samples), step_of(task, n_classes, dtype))
