"""`run_on_ray`: actors of Ray make the parts of a run, on any number of machines."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bincp._models import ModelLike
from bincp._utils.arrays import ArrayLike, as_counts
from bincp._utils.validation import check_integer, check_real
from bincp.noise._keys import IntArray, Phase
from bincp.sampling._jobs import checked_device, integers
from bincp.sampling._run import _manifest, _seed
from bincp.sampling._run._data import Data, Rows, data_of, probe_positions
from bincp.sampling._run._manifest import Manifest
from bincp.sampling._run._reading import Run
from bincp.sampling._run._running import Start, made_folder
from bincp.sampling._run._stream import Piece
from bincp.sampling._run._task import Task
from bincp.sampling._run._worker import Worker
from bincp.sampling._scoring import Score
from bincp.smoothing import Smoothing

_log = logging.getLogger(__name__)

# Ray repeats without end what kills its actor.
_TRIES = 4
_INDEX = "_part_row"


def run_on_ray(
    path: str | PathLike[str],
    model: ModelLike,
    x: Any,
    smoothing: Smoothing,
    n_samples: int,
    *,
    phase: Phase,
    workers: int,
    num_cpus: float = 1,
    num_gpus: float = 0,
    labels: ArrayLike | None = None,
    keep: str | None = None,
    rules: Any = None,
    score: Score = "tps",
    first_id: int = 0,
    first_draw: int = 0,
    batch_size: int = 256,
    seed: int | None = None,
    model_id: str | None = None,
    score_id: str | None = None,
    parts: int | None = None,
    check_inputs: bool = True,
    device: str | None = None,
) -> Run:
    """Make or continue a run by actors of Ray, each of which makes one part after the other.

    The run is that of `run`: the same files with the same values, which either may continue. An
    actor that dies is started again, and its part is made by another one, three times at most.
    Needs: pip install "bincp[ray]".

    Parameters
    ----------
    path : str or path-like
        The folder, on storage that all nodes see under this name.
    model : torch.nn.Module or callable
        As in `run`. It is sent to the actors, so pickle must take it. One forward pass is made
        here.
    x : ray.data.Dataset, or as in `run`
        A Dataset has the columns ``id``, the ids of the inputs from `first_id` on, each once and in
        any order, ``x``, the inputs, and ``label`` if there are labels. It is read by the actors,
        and never as a whole here; other data are sent to each node.
    smoothing, n_samples, phase, labels, keep, rules, score, first_id, first_draw, batch_size
        As in `run`.
    workers : int
        The number of actors. They must leave a processor to read a Dataset.
    num_cpus, num_gpus : float, optional
        What an actor takes. torch uses as many threads as it has processors.
    seed, model_id, score_id, parts
        As in `run`.
    check_inputs : bool, optional
        As in `run`. Parts that are there are compared before any part is made.
    device : str, optional
        Where an actor evaluates the model; by default "cuda" if it has GPUs, else where the model
        is.

    Returns
    -------
    Run
        Complete.

    Raises
    ------
    ImportError
        If Ray Data is not installed.
    ray.exceptions.RayTaskError
        If an actor raises an error, such as those of `run`, or dies again and again. The parts that
        are there stay.
    TypeError, ValueError
        As in `run`; if a Dataset lacks a column; or if autocast or the precision of float32
        products is set here, where the actors do not see it.

    Notes
    -----
    Each actor is a process with settings of its own: call `torch.set_float32_matmul_precision` and
    autocast inside the model. Ray starts where `ray.init` was called, or on this machine.

    Examples
    --------
    >>> import torch
    >>> from bincp.sampling import run_on_ray
    >>> from bincp.smoothing import Gaussian
    >>> model, scheme = torch.nn.Linear(4, 3), Gaussian(0.25)

    On a cluster with 20 GPUs, from files with the columns id, x and label:

    >>> import ray.data  # doctest: +SKIP
    >>> images = ray.data.read_parquet("bucket/images")  # doctest: +SKIP
    >>> options = {"phase": "calibration", "workers": 20, "num_gpus": 1}
    >>> points = run_on_ray("/shared/run", model, images, scheme, 64, **options)  # doctest: +SKIP
    >>> rule.calibrate(points)  # doctest: +SKIP
    """
    pool = _Pool.checked(workers, num_cpus, num_gpus)
    start = Start.checked(seed, parts, check_inputs)
    source = _source(x, labels, first_id)
    pool.check_room(source)
    task = Task.checked(
        model,
        source,
        smoothing,
        n_samples,
        phase=phase,
        keep=keep,
        rules=rules,
        score=score,
        first_id=first_id,
        first_draw=first_draw,
        batch_size=batch_size,
        model_id=model_id,
        score_id=score_id,
        device=None,
        progress=False,
        n_threads=1,
    )
    folder = made_folder(path).resolve()
    manifest, known = start.begin(folder, task)
    place = "cuda" if device is None and num_gpus else device
    cluster = _Cluster(pool, folder, manifest, task, start.seed, place)
    worker = Worker(folder, manifest, task)
    if check_inputs and isinstance(source, _Dataset):
        there = worker.present()
        missing = {*range(manifest.layout.n_parts)} - {*there}
        missing |= {*cluster.done(source, there, make=False)}
    else:
        missing = {*worker.missing(range(manifest.layout.n_parts), check_inputs)}
    worker.clean()
    if missing:
        _seed.needed_seed(folder, known)
        cluster.done(source, sorted(missing), make=True)
    return Run(folder, manifest)


@dataclass(frozen=True)
class _Pool:
    """How many actors there are, and what each takes."""

    workers: int
    num_cpus: float
    num_gpus: float

    @classmethod
    def checked(cls, workers: int, num_cpus: float, num_gpus: float) -> "_Pool":
        return cls(
            check_integer("workers", workers, low=1),
            check_real("num_cpus", num_cpus, low=0),
            check_real("num_gpus", num_gpus, low=0),
        )

    def check_room(self, source: Data) -> None:
        """Refuse actors that take the whole cluster, and wait for a Dataset that nobody reads."""
        import ray

        there = ray.cluster_resources().get("CPU", 0)
        needed = self.workers * self.num_cpus + 1
        if isinstance(source, _Dataset) and there < needed:
            raise ValueError(
                "`workers` must leave a processor of the cluster to read the Dataset, got "
                f"{self.workers} with {self.num_cpus:g} each of {there:g} processors"
            )

    def arguments(self) -> dict[str, Any]:
        from ray.data import ActorPoolStrategy

        return {
            "compute": ActorPoolStrategy(size=self.workers),
            "num_cpus": self.num_cpus,
            "num_gpus": self.num_gpus,
        }


@dataclass(frozen=True)
class _Dataset:
    """A Ray Dataset, of whose inputs only the 16 that a manifest compares are read here."""

    dataset: Any
    first_id: int
    n: int
    probes: dict[int, Rows]

    @classmethod
    def of(cls, dataset: Any, first_id: int) -> "_Dataset":
        names = dataset.schema().names
        if "id" not in names or "x" not in names:
            raise ValueError(
                f"`x` must be a Dataset with the columns 'id' and 'x', got {', '.join(names)}"
            )
        n = dataset.count()
        if n == 0:
            raise ValueError("`x` must hold at least one input, got an empty Dataset")
        wanted = first_id + np.array(probe_positions(n))

        def picked(batch: dict[str, Any]) -> dict[str, Any]:
            rows = np.isin(batch["id"], wanted)
            return {name: batch[name][rows] for name in {"id", "x", "label"} & {*batch}}

        probes = {}
        for row in dataset.map_batches(picked, batch_format="numpy").iter_batches(batch_size=1):
            rows = _rows(row)
            probes[int(row["id"][0]) - first_id] = rows
        absent = {*probe_positions(n)} - {*probes}
        if absent:
            raise ValueError(
                f"`x` must hold each id from {first_id} to {first_id + n - 1} once, got {n} inputs "
                f"without the id {first_id + min(absent)}"
            )
        return cls(dataset, first_id, n, probes)

    def __len__(self) -> int:
        return self.n

    def rows(self, first: int, last: int) -> Rows:
        assert last == first + 1
        return self.probes[first]


def _source(x: Any, labels: ArrayLike | None, first_id: int) -> Data:
    import ray.data

    if not isinstance(x, ray.data.Dataset):
        return data_of(x, labels)
    if labels is not None:
        raise TypeError("`labels` must be a column of the Dataset `x`, got them beside it")
    return _Dataset.of(x, check_integer("first_id", first_id, low=0))


def _rows(batch: dict[str, Any]) -> Rows:
    """Return the inputs and labels of rows of a Ray Dataset."""
    inputs = batch["x"]
    if inputs.dtype == object:
        raise ValueError("`x` must yield inputs of one shape, got others in the column 'x'")
    return Rows(inputs, integers("label", batch["label"]) if "label" in batch else None)


@dataclass(frozen=True)
class _Cluster:
    """Actors that have the task of a run without its data."""

    pool: _Pool
    folder: Path
    manifest: Manifest
    task: Task
    seed: int | None
    device: str | None

    def done(self, source: Data, numbers: Sequence[int], *, make: bool) -> list[int]:
        """Let actors make parts, or compare their inputs; return those that are not there."""
        import ray

        if not numbers:
            return []
        bare = replace(self.task, data=_NO_DATA)
        made = ray.put((self.folder, self.manifest, bare, self.seed, self.device))
        options: dict[str, Any] = {
            "fn_constructor_kwargs": {
                "shared": made,
                "data": None if isinstance(source, _Dataset) else ray.put(source),
                "tries": ray.remote(num_cpus=0)(_Tries).remote() if make else None,
            },
            **self.pool.arguments(),
        }
        if isinstance(source, _Dataset):
            results = self._grouped(source, numbers).map_groups(
                _GroupActor, batch_format="numpy", **options
            )
        else:
            rows = [{"part": number} for number in numbers]
            results = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                _PartActor, batch_size=1, batch_format="numpy", **options
            )
        missing = []
        for result in results.iter_rows():
            number, is_there = int(result["part"]), bool(result["is_there"])
            if make:
                _log.info("part %d of %d is written", number, self.manifest.layout.n_parts)
            if not is_there:
                missing.append(number)
        return missing

    def _grouped(self, source: _Dataset, numbers: Sequence[int]) -> Any:
        """Return the inputs of some parts, those between two cuts of the ids as a group."""
        layout, first_id, n = self.manifest.layout, source.first_id, source.n
        wanted = sorted({number // layout.n_columns for number in numbers})
        cuts = np.array(layout.ids)

        def cut(batch: dict[str, Any]) -> dict[str, Any]:
            positions = as_counts("id", batch["id"], low=first_id, high=first_id + n - 1) - first_id
            rows = np.searchsorted(cuts, positions, side="right") - 1
            own = np.isin(rows, wanted)
            columns = {name: batch[name][own] for name in {"id", "x", "label"} & {*batch}}
            return {**columns, _INDEX: rows[own]}

        marked = source.dataset.map_batches(cut, batch_format="numpy")
        return marked.groupby(_INDEX, num_partitions=len(wanted))


class _NoData:
    """Stands for the data of a task that is sent without them."""

    def __len__(self) -> int:
        raise AssertionError("the data are not here")

    def rows(self, first: int, last: int) -> Rows:
        raise AssertionError("the data are not here")


_NO_DATA = _NoData()


class _Tries:
    """Counts how often each part was begun."""

    def __init__(self) -> None:
        self.begun: Counter[int] = Counter()

    def begin(self, number: int) -> int:
        self.begun[number] += 1
        return self.begun[number]


class _Actor:
    """Makes parts, or compares their inputs if no tries are counted; it keeps the model."""

    def __init__(self, shared: Any, data: Any, tries: Any) -> None:
        import ray

        self.folder, manifest, task, given, device = ray.get(shared)
        self.data: Any = None if data is None else ray.get(data)
        self.tries = tries
        try:
            self.manifest = Manifest.read(self.folder)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno,
                "the folder of a run must be on storage that all nodes see; this one sees no "
                f"{_manifest.NAME}",
                str(self.folder),
            ) from None
        if self.manifest != manifest:
            raise ValueError(
                f"{self.folder} must be one folder on all nodes, got another run on this one"
            )
        place = None if device is None else checked_device(device)
        self.task = replace(task, options=replace(task.options, device=place))
        self.seed = _seed.known_seed(self.folder, given, manifest.identity)

    def result(self, data: Data, numbers: Sequence[int]) -> dict[str, Any]:
        worker = Worker(self.folder, self.manifest, replace(self.task, data=data))
        missing = worker.missing(numbers, check_inputs=self.tries is None)
        if self.tries is not None:
            self.check_tries(missing)
            worker.make(missing, _seed.needed_seed(self.folder, self.seed))
            missing = []
        return {"part": np.array(numbers), "is_there": ~np.isin(numbers, missing)}

    def check_tries(self, numbers: Sequence[int]) -> None:
        import ray

        for number in numbers:
            if ray.get(self.tries.begin.remote(number)) > _TRIES:
                raise RuntimeError(
                    f"{self.folder}: the process that made part {number} died {_TRIES} times, "
                    "perhaps for want of memory"
                )


class _PartActor(_Actor):
    """Takes numbers of parts, and has all data."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return self.result(self.data, [int(number) for number in batch["part"]])


class _GroupActor(_Actor):
    """Takes the inputs between two cuts of the ids, in any order."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        row, layout = int(batch[_INDEX][0]), self.manifest.layout
        first, last = layout.ids[row : row + 2]
        order = np.argsort(batch["id"])
        first_id = self.task.first_id
        _check_ids(batch["id"][order], first_id + first, first_id + last)
        own = {name: column[order] for name, column in batch.items()}
        return self.result(Piece(first, _rows(own)), layout.row(row))


def _check_ids(ids: IntArray, first: int, last: int) -> None:
    if not np.array_equal(ids, np.arange(first, last)):
        raise ValueError(
            f"`x` must hold each of the ids {first} to {last - 1} once, got {len(ids)} of them: "
            f"{ids[:8].tolist()}..."
        )
