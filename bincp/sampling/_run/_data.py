"""Inputs and labels as people have them, read a part at a time; ids are positions in the data."""

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, IterableDataset

from bincp._utils.arrays import ArrayLike
from bincp.noise._keys import IntArray
from bincp.sampling._graphs import Graph, Nodes
from bincp.sampling._inputs import (
    Key,
    check_key,
    check_same_items,
    dataset_of,
    item_labels,
    item_of,
)
from bincp.sampling._jobs import check_dense, host_inputs, integers

_PROBES = 16

NO_NODES = (
    "`x` must hold inputs as arrays for a run on disk, got a graph or nodes of one; sample_scores, "
    "count_scores, vote_counts and RobustClassifier take nodes"
)

Digests = npt.NDArray[np.uint8]
"""The SHA-256 of each input with its label (n, 32)."""


class Rows(NamedTuple):
    """Some inputs in their order, and their labels if there are any."""

    inputs: npt.NDArray[Any]
    labels: IntArray | None

    def digests(self) -> Digests:
        """Return the SHA-256 of each input and its label."""
        inputs = np.ascontiguousarray(self.inputs.astype(self.inputs.dtype.newbyteorder("<")))
        ends = [b""] * len(inputs)
        if self.labels is not None:
            ends = [label.tobytes() for label in self.labels.astype("<i8")]
        hashes = [
            hashlib.sha256(row.tobytes() + end).digest()
            for row, end in zip(inputs, ends, strict=True)
        ]
        return np.frombuffer(b"".join(hashes), np.uint8).reshape(len(inputs), 32)


class Data(Protocol):
    """Inputs that can be read by position."""

    def __len__(self) -> int: ...

    def rows(self, first: int, last: int) -> Rows:
        """Return the inputs from `first` on, up to `last` and without it."""


def data_of(x: object, labels: ArrayLike | None, key: Key = None) -> Data:
    """Return what reads an array, a tensor, a memory map, a dataset or a loader."""
    check_key(key)
    if isinstance(x, Nodes | Graph):
        raise TypeError(NO_NODES)
    if isinstance(x, torch.Tensor | np.ndarray):
        if key is not None:
            raise TypeError(f"`key` must be None with an array of inputs, got {key!r}")
        return _Array.checked(x, labels)
    if labels is not None:
        raise TypeError(
            f"`labels` must be given with an array of inputs only, got them with {type(x).__name__}"
        )
    dataset = dataset_of(x) if isinstance(x, DataLoader) else x
    sized = callable(getattr(dataset, "__len__", None))
    if isinstance(dataset, IterableDataset | list | tuple | dict | str) or not (
        sized and callable(getattr(dataset, "__getitem__", None))
    ):
        raise TypeError(
            "`x` must be an array, a tensor, a dataset with __len__ and __getitem__, a DataLoader, "
            f"or an iterable of batches without a length, got {type(dataset).__name__}"
        )
    return _Dataset.checked(dataset, key)


def probe(data: Data) -> str:
    """Return a digest of 16 evenly spaced inputs and their labels."""
    positions = probe_positions(len(data))
    return digest_of_probes([data.rows(i, i + 1).digests()[0] for i in positions])


def probe_positions(n: int) -> list[int]:
    """Return the positions of 16 evenly spaced inputs of n, or of all where there are fewer."""
    return sorted({i * (n - 1) // (_PROBES - 1) for i in range(_PROBES)})


def digest_of_probes(digests: Any) -> str:
    """Return the digest of inputs whose own digests are known."""
    return hashlib.sha256(b"".join(bytes(one) for one in digests)).hexdigest()


@dataclass(frozen=True)
class _Array:
    x: Any
    labels: IntArray | None

    @classmethod
    def checked(cls, x: Any, labels: ArrayLike | None) -> "_Array":
        check_dense(x)
        if x.ndim < 2 or 0 in x.shape:
            raise ValueError(f"`x` must have shape (n, ...) and not be empty, got {tuple(x.shape)}")
        if labels is None:
            return cls(x, None)
        y = integers("labels", labels)
        if y.shape != (len(x),):
            raise ValueError(f"`labels` must have shape {(len(x),)}, got {y.shape}")
        return cls(x, y)

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, first: int, last: int) -> Rows:
        labels = None if self.labels is None else self.labels[first:last]
        return Rows(host_inputs(self.x[first:last]), labels)


@dataclass(frozen=True)
class _Dataset:
    """A dataset that yields inputs, pairs of an input and its label, or dicts that hold them."""

    dataset: Any
    labelled: bool
    key: Key

    @classmethod
    def checked(cls, dataset: Any, key: Key) -> "_Dataset":
        if len(dataset) == 0:
            raise ValueError("`x` must hold at least one input, got an empty dataset")
        return cls(dataset, item_of(dataset, 0, key)[1] is not None, key)

    def __len__(self) -> int:
        return len(self.dataset)

    def rows(self, first: int, last: int) -> Rows:
        items = [item_of(self.dataset, i, self.key) for i in range(first, last)]
        check_same_items(items, first, self.labelled)
        inputs = np.stack([one for one, _ in items])
        return Rows(inputs, item_labels(items, first) if self.labelled else None)
