"""Inputs and labels as people have them, read a part at a time; ids are positions in the data."""

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    SequentialSampler,
    default_collate,
)

from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import check_integer
from bincp.noise._keys import IntArray
from bincp.sampling._jobs import host_inputs, integers

_PROBES = 16

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


def data_of(x: object, labels: ArrayLike | None) -> Data:
    """Return what reads an array, a tensor, a memory map, a dataset or a loader."""
    if isinstance(x, torch.Tensor | np.ndarray):
        return _Array.checked(x, labels)
    if labels is not None:
        raise TypeError(
            f"`labels` must be given with an array of inputs only, got them with {type(x).__name__}"
        )
    dataset = _dataset_of(x) if isinstance(x, DataLoader) else x
    sized = callable(getattr(dataset, "__len__", None))
    if isinstance(dataset, IterableDataset | list | tuple | dict | str) or not (
        sized and callable(getattr(dataset, "__getitem__", None))
    ):
        raise TypeError(
            "`x` must be an array, a tensor, a dataset with __len__ and __getitem__, a DataLoader, "
            f"or an iterable of batches without a length, got {type(dataset).__name__}"
        )
    return _Dataset.checked(dataset)


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
    """A dataset that yields inputs, or pairs of an input and its label."""

    dataset: Any
    labelled: bool

    @classmethod
    def checked(cls, dataset: Any) -> "_Dataset":
        if len(dataset) == 0:
            raise ValueError("`x` must hold at least one input, got an empty dataset")
        return cls(dataset, isinstance(dataset[0], tuple | list))

    def __len__(self) -> int:
        return len(self.dataset)

    def rows(self, first: int, last: int) -> Rows:
        items = [self._item(i) for i in range(first, last)]
        usual = items[0][0]
        for i, (one, _) in enumerate(items, first):
            if (one.shape, one.dtype) != (usual.shape, usual.dtype):
                raise ValueError(
                    "`x` must yield inputs of one shape and dtype, "
                    f"got {one.shape}, {one.dtype} at position {i} after "
                    f"{usual.shape}, {usual.dtype}"
                )
        inputs = np.stack([one for one, _ in items])
        labels = integers("labels", [label for _, label in items]) if self.labelled else None
        return Rows(inputs, labels)

    def _item(self, i: int) -> tuple[Any, int]:
        item = self.dataset[i]
        if self.labelled and not (isinstance(item, tuple | list) and len(item) == 2):
            raise ValueError(
                f"`x` must yield inputs or pairs of an input and its label, got {item!r}"
            )
        one, label = item if self.labelled else (item, 0)
        if not isinstance(one, torch.Tensor | np.ndarray):
            raise TypeError(
                f"`x` must yield tensors or arrays, got {type(one).__name__} at position {i}"
            )
        return host_inputs(one), check_integer("labels", label, low=-(2**63), high=2**63 - 1)


def _dataset_of(loader: DataLoader[Any]) -> Any:
    """Return the dataset of a loader that takes it in its order, one item after the other."""
    known = (SequentialSampler, DistributedSampler)
    in_order = type(loader.batch_sampler) in (BatchSampler, type(None))
    if not (isinstance(loader.sampler, known) and in_order):
        sampler = loader.sampler if in_order else loader.batch_sampler
        raise ValueError(
            "`x` must be a loader in the order of its dataset (shuffle=False), for ids are "
            f"positions in the dataset, got one with {type(sampler).__name__}"
        )
    if loader.collate_fn is not default_collate:
        raise ValueError(
            "`x` must be a loader with the default collate_fn, as inputs are taken from its "
            "dataset one by one, got another one; pass a dataset that does the same"
        )
    return loader.dataset
