"""Inputs as people have them: arrays, datasets, loaders and streams, as pieces in their order."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

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
from bincp.noise._keys import IntArray, Phase, check_indices
from bincp.sampling._graphs import Graph, Nodes
from bincp.sampling._jobs import check_dense, host_inputs, integers

Key: TypeAlias = str | tuple[str, str] | None
"""Where items are dicts: the name of the inputs, or the names of inputs and labels."""

_CHANNELS = (1, 3, 4)


class LabelKind(NamedTuple):
    """What labels are: both functions take a name for messages, and refuse other labels."""

    name: str
    array: Callable[[str, Any, int], npt.NDArray[Any]]
    """Returns labels from a position on as an array."""
    one: Callable[[str, Any], Any]
    """Returns the label of one item of a dataset."""


def _class(name: str, label: Any) -> int:
    return check_integer(name, label, low=-(2**63), high=2**63 - 1)


def _classes(name: str, labels: Any, first: int) -> IntArray:
    return integers(name, labels)  # whose range is checked where K is known


CLASSES = LabelKind("labels", _classes, _class)


class Piece(NamedTuple):
    """Some inputs (n, ...), an array or a tensor, and their labels if there are any."""

    inputs: Any
    labels: Any


def check_key(key: object) -> Key:
    """Return a checked `key`."""
    if key is None or isinstance(key, str):
        return key
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(one, str) for one in key):
        return key
    raise TypeError(f"`key` must be a str or a pair of them, got {key!r}")


def pieces(
    x: Any,
    labels: ArrayLike | None,
    key: Key,
    size: int,
    *,
    whole: bool = True,
    kind: LabelKind = CLASSES,
) -> Iterator[Piece]:
    """Return the pieces of `x` in their order; what can be refused at once, is.

    A dataset is read `size` items at a time, and an array too unless it is to stay `whole`. A
    stream comes as its batches are.
    """
    key = check_key(key)
    if isinstance(x, torch.Tensor | np.ndarray):
        if key is not None:
            raise TypeError(f"`key` must be None with an array of inputs, got {key!r}")
        check_dense(x)
        return _cut(x, labels, max(x.shape[0], 1) if whole and x.ndim else size, kind)
    if isinstance(x, Nodes):
        if key is not None:
            raise TypeError(f"`key` must be None with nodes of a graph, got {key!r}")
        return iter([Piece(x, labels)])
    if isinstance(x, Graph):
        raise TypeError("`x` must be nodes of a Graph, graph.nodes(nodes, hops=...), got the Graph")
    source = source_of(x)
    if labels is not None:
        raise TypeError(
            f"labels must be given with an array of inputs only, got them with {type(x).__name__}"
        )
    if is_map_style(source):
        return _same_kind(_stacked(source, key, size, kind))
    return batches_of(source, key, kind)


def batches_of(source: Any, key: Key, kind: LabelKind = CLASSES) -> Iterator[Piece]:
    """Return the batches of a stream as pieces of one shape, dtype and kind of labels."""
    return _same_kind(_of_stream(source, key, kind))


def source_of(x: Any) -> Any:
    """Return what to read instead of `x`, or refuse what is no source of inputs."""
    if isinstance(x, DataLoader):
        return _read_of(x)
    if isinstance(x, list | tuple):
        _refuse_images(x)
        return x
    kind = type(x).__name__
    if hasattr(x, "to_numpy") or (hasattr(x, "__array__") and not hasattr(x, "__next__")):
        cure = "x.to_numpy()" if hasattr(x, "to_numpy") else "np.asarray(x)"
        raise TypeError(f"`x` must be a tensor or an array, got {kind}; use {cure}")
    if isinstance(x, Mapping):  # one batch, as tokenisers and processors of images return it
        return [x]
    if isinstance(x, str | bytes) or not (isinstance(x, Iterable) or is_map_style(x)):
        raise TypeError(
            "`x` must be a tensor or an array, a dataset, a loader or an iterable of batches, "
            f"got {kind}"
        )
    return x


def is_map_style(source: Any) -> bool:
    """Say if a source is read by positions."""
    return (
        not isinstance(source, IterableDataset | DataLoader | list | tuple)
        and callable(getattr(source, "__len__", None))
        and callable(getattr(source, "__getitem__", None))
    )


def check_order(loader: DataLoader[Any]) -> None:
    """Refuse a loader that does not take its dataset in its order, one item after the other."""
    batches: Any = loader.batch_sampler
    plain = type(batches) in (BatchSampler, type(None))
    sampler: Any = loader.sampler if batches is None or not plain else batches.sampler
    whole = type(sampler) is SequentialSampler and len(sampler) == len(loader.dataset)  # type: ignore[arg-type]
    if not (plain and (whole or isinstance(sampler, DistributedSampler))):
        found = sampler if plain else batches
        raise ValueError(
            "`x` must be a loader of its whole dataset in its order (shuffle=False), for ids are "
            f"positions in the dataset, got one with {type(found).__name__}"
        )


def dataset_of(loader: DataLoader[Any]) -> Any:
    """Return the dataset of a loader that takes it in its order and makes plain batches."""
    check_order(loader)
    if loader.collate_fn is not default_collate:
        raise ValueError(
            "`x` must be a loader with the default collate_fn, as inputs are taken from its "
            "dataset one by one, got another one; pass a dataset that does the same"
        )
    return loader.dataset


def taken(item: Any, key: Key) -> tuple[Any, Any]:
    """Return the inputs and the labels, or None, of a batch or of an item of a dataset."""
    if isinstance(item, Mapping):
        return _by_key(item, key)
    if key is not None:
        raise TypeError(f"`key` must be None where `x` yields no dicts, got {key!r}")
    if isinstance(item, tuple | list):
        if len(item) == 1:
            return item[0], None
        if len(item) == 2:
            return item[0], item[1]
        raise ValueError(
            "`x` must yield inputs, pairs of an input and its label, or dicts with `key`, "
            f"got {type(item).__name__} of {len(item)}"
        )
    return item, None


class Ids:
    """The ids of the inputs of one call, in the order of its pieces.

    By default those of nodes are their numbers, and those of other inputs their positions.
    """

    def __init__(self, indices: ArrayLike | None, phase: Phase, x: Any) -> None:
        self._ids: IntArray | None = None
        self._start = 0
        if indices is None and isinstance(x, Nodes):
            indices = x.targets
        if indices is not None:
            ids = integers("indices", indices)
            self._ids = check_indices(ids, ids.size, phase)
            if is_map_style(x) and not isinstance(x, Mapping):  # known before anything is sampled
                self._check_length(len(x) if getattr(x, "ndim", 1) else 0)

    def take(self, n: int) -> IntArray:
        """Return the ids of the next n inputs."""
        first, self._start = self._start, self._start + n
        if self._ids is None:
            return np.arange(first, first + n)
        if self._start > len(self._ids):
            self._check_length(self._start)
        return self._ids[first : self._start]

    def end(self) -> None:
        """Refuse ids that no input has."""
        if self._ids is not None:
            self._check_length(self._start)

    def _check_length(self, n: int) -> None:
        assert self._ids is not None
        if self._ids.shape != (n,):
            raise ValueError(f"`indices` must have shape ({n},), got {self._ids.shape}")


def shape_cure(shape: tuple[int, ...]) -> str:
    """Return the cure for a shape that looks like one image, or like channels last; or nothing."""
    if len(shape) == 3 and (_is_image(shape) or _is_image((shape[2], *shape[:2]))):
        return "one image needs a batch axis: x[None]"
    if len(shape) == 4 and _is_image((shape[3], *shape[1:3])) and shape[1] not in _CHANNELS:
        return "images with their channels last need them first: np.moveaxis(x, -1, 1)"
    return ""


def _is_image(shape: tuple[int, ...]) -> bool:
    return shape[0] in _CHANNELS and min(shape[1:]) > max(_CHANNELS)


def check_shape(shape: tuple[int, ...], known: tuple[int, ...], whose: str) -> None:
    """Refuse inputs (n, ...) of another shape than known ones, and say what they look like."""
    if shape[1:] == known:
        return
    cure = ""
    if shape == known:
        cure = "; one input needs a batch axis: x[None]"
    elif len(known) > 1 and shape[1:] == (*known[1:], known[0]):
        cure = "; the channels are last and must be first: np.moveaxis(x, -1, 1)"
    elif len(known) > 1 and shape[1:] == (known[-1], *known[:-1]):
        cure = "; the channels are first and must be last: np.moveaxis(x, 1, -1)"
    raise ValueError(f"`x` must have inputs of shape {known} as {whose}, got shape {shape}{cure}")


def _cut(x: Any, labels: ArrayLike | None, size: int, kind: LabelKind) -> Iterator[Piece]:
    name = kind.name
    y = None if labels is None else kind.array(name, labels, 0)
    if y is not None and (x.ndim == 0 or y.shape != (len(x),)):
        raise ValueError(f"`{name}` must have shape {(len(x),) if x.ndim else ()}, got {y.shape}")
    if x.ndim == 0 or len(x) == 0:
        return iter([Piece(x, y)])  # refused where the shape is
    return (
        Piece(x[i : i + size], None if y is None else y[i : i + size])
        for i in range(0, len(x), size)
    )


def _read_of(loader: DataLoader[Any]) -> Any:
    """Return the loader, or its dataset where the loader adds or loses items."""
    if isinstance(loader.dataset, IterableDataset):
        if loader.num_workers > 1:
            raise ValueError(
                "`x` must be a loader with at most one worker where its dataset is iterable, for "
                "each worker may yield all of it, and the order depends on their number, got "
                f"num_workers={loader.num_workers}"
            )
    else:
        check_order(loader)
        sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
        if isinstance(sampler, DistributedSampler):  # it pads, and gives each rank a share
            return dataset_of(loader)
    if loader.drop_last or getattr(loader.batch_sampler, "drop_last", False):
        raise ValueError(
            "`x` must be a loader with drop_last=False, got drop_last=True, which loses inputs"
        )
    return loader


def _refuse_images(x: Any) -> None:
    """Refuse a list of images; lists of pairs and of dicts are streams of batches."""
    if not x:
        raise ValueError(f"`x` must hold at least one input, got an empty {type(x).__name__}")
    one = x[0]
    if isinstance(one, torch.Tensor):
        cure = "torch.stack(x)"
    elif isinstance(one, np.ndarray):
        cure = "np.stack(x)"
    elif isinstance(one, tuple | Mapping) or (isinstance(one, list) and _holds_arrays(one)):
        return
    elif isinstance(one, list):
        cure = "np.array(x)"
    else:
        cure = "np.stack([np.asarray(image) for image in x])"
    raise TypeError(
        f"`x` must be a tensor or an array, got {type(x).__name__} of "
        f"{type(one).__name__}; use {cure} for inputs, or iter(x) if each is a batch"
    )


def _holds_arrays(batch: list[Any]) -> bool:
    return bool(batch) and isinstance(batch[0], torch.Tensor | np.ndarray)


def _of_stream(source: Any, key: Key, kind: LabelKind) -> Iterator[Piece]:
    first = 0
    for number, batch in enumerate(source):
        inputs, labels = taken(batch, key)
        if not isinstance(inputs, torch.Tensor | np.ndarray | Nodes):
            raise TypeError(
                "`x` must yield batches that are tensors or arrays, "
                f"got {type(inputs).__name__} in batch {number}"
            )
        y = None if labels is None else kind.array(kind.name, labels, first)
        if y is not None:
            _check_one_each(y, inputs, number)
        yield Piece(inputs, y)
        first += len(inputs) if inputs.ndim else 0


def _check_one_each(y: npt.NDArray[Any], inputs: Any, number: int) -> None:
    if inputs.ndim == 0 or y.shape != (len(inputs),):
        raise ValueError(
            f"`x` must yield one label for each input of a batch, got labels of shape {y.shape} "
            f"for inputs of shape {tuple(inputs.shape)} in batch {number}"
        )


def _stacked(dataset: Any, key: Key, size: int, kind: LabelKind) -> Iterator[Piece]:
    """Read a dataset some items at a time."""
    labelled = False
    for first in range(0, len(dataset), size):
        items = [item_of(dataset, i, key) for i in range(first, min(first + size, len(dataset)))]
        if first == 0:
            labelled = items[0][1] is not None
        check_same_items(items, first, labelled)
        inputs = np.stack([one for one, _ in items])
        yield Piece(inputs, item_labels(items, first, kind) if labelled else None)


def item_labels(
    items: list[tuple[Any, Any]], first: int, kind: LabelKind = CLASSES
) -> npt.NDArray[Any]:
    """Return the labels of items of a dataset, from a position on."""
    return kind.array(kind.name, [kind.one(kind.name, label) for _, label in items], first)


def item_of(dataset: Any, i: int, key: Key) -> tuple[Any, Any]:
    """Return an item of a dataset as an array, and its label or None."""
    one, label = taken(dataset[i], key)
    if not isinstance(one, torch.Tensor | np.ndarray):
        raise TypeError(
            f"`x` must yield tensors or arrays, got {type(one).__name__} at position {i}; give the "
            "dataset a transform that makes them"
        )
    return host_inputs(one), label


def check_same_items(items: list[tuple[Any, Any]], first: int, labelled: bool) -> None:
    """Refuse items of several shapes or dtypes, or that have labels where others have none."""
    usual = items[0][0]
    for i, (one, label) in enumerate(items, first):
        if (one.shape, one.dtype) != (usual.shape, usual.dtype):
            raise ValueError(
                f"`x` must yield inputs of one shape and dtype, got {one.shape}, {one.dtype} at "
                f"position {i} after {usual.shape}, {usual.dtype}"
            )
        if (label is not None) != labelled:
            raise ValueError(f"`x` must yield labels for all inputs or none, got both by {i}")


def _same_kind(given: Iterator[Piece]) -> Iterator[Piece]:
    """Refuse pieces whose inputs differ in shape or dtype."""
    usual = None
    position = 0
    for piece in given:
        dtype = str(piece.inputs.dtype).removeprefix("torch.")  # of arrays and tensors alike
        kind = (tuple(piece.inputs.shape[1:]), dtype, piece.labels is None)
        usual = usual or kind
        if kind[:2] != usual[:2]:
            raise ValueError(
                f"`x` must yield inputs of one shape and dtype, got {kind[0]}, {kind[1]} at "
                f"position {position} after {usual[0]}, {usual[1]}"
            )
        if kind[2] != usual[2]:
            raise ValueError(
                f"`x` must yield labels for all inputs or none, got both by position {position}"
            )
        position += len(piece.inputs) if piece.inputs.ndim else 1
        yield piece


def _by_key(item: Mapping[str, Any], key: Key) -> tuple[Any, Any]:
    names = ", ".join(map(repr, item))
    if key is None:
        raise TypeError(
            "`key` must name the inputs, or the inputs and the labels, where `x` yields dicts, got "
            f"None for the keys {names}"
        )
    wanted = (key,) if isinstance(key, str) else key
    for name in wanted:
        if name not in item:
            raise ValueError(f"`key` must be among the keys {names}, got {name!r}")
    return item[wanted[0]], item[wanted[1]] if len(wanted) == 2 else None
