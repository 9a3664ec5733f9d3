"""`run`: begin a run or continue it, and make the parts of one worker."""

import logging
import os
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bincp._models import ModelLike
from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import check_flag, check_integer
from bincp.noise._keys import Phase, check_seed
from bincp.sampling._inputs import Key
from bincp.sampling._run import _manifest, _seed, _stream
from bincp.sampling._run._data import data_of
from bincp.sampling._run._layout import Layout, usual_parts
from bincp.sampling._run._manifest import Manifest, check_same
from bincp.sampling._run._publish import is_leftover
from bincp.sampling._run._reading import Run, as_folder
from bincp.sampling._run._shard import shard_of
from bincp.sampling._run._task import Task
from bincp.sampling._run._worker import Worker
from bincp.sampling._scoring import Score
from bincp.smoothing import Smoothing

_log = logging.getLogger(__name__)


def run(
    path: str | PathLike[str],
    model: ModelLike,
    x: Any,
    smoothing: Smoothing,
    n_samples: int,
    *,
    phase: Phase,
    labels: ArrayLike | None = None,
    key: Key = None,
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
    shard: tuple[int, int] | None = None,
    check_inputs: bool = True,
    device: torch.device | str | None = None,
    progress: bool | None = None,
    n_threads: int = 1,
) -> Run:
    """Sample into a folder, or continue there: it may be killed at any moment and started again.

    The folder is cut into parts, each a file that is there as a whole or not at all. Any number of
    processes may work on one run at once, on one machine or on several that see the folder, and
    another number of them may continue it. The values are the same to the last bit, whatever the
    parts, the processes and the kills, on one kind of machine with one version of torch.

    Parameters
    ----------
    path : str or path-like
        The folder. It is made if it does not exist; the folder above it must.
    model, smoothing, n_samples, phase, score, first_draw, batch_size, device
        As in `sample_scores`.
    x : array, tensor, memory map, Dataset, DataLoader or iterable
        Inputs (n, ...), as in `sample_scores`. Or a dataset with a length, whose items are inputs
        or pairs of an input and its label, or a loader of one in its order. Or an iterable of
        batches (b, ...), or of pairs of a batch and its labels, without a length, such as a loader
        of an IterableDataset: one process reads it, and from its start again to continue.
    labels : array-like (n,) of int, optional
        Labels in [0, K), where `x` is an array. They are kept beside the values.
    key : str or (str, str), optional
        The name of the inputs, or the names of inputs and labels, where dicts are yielded.
    keep : "label scores", "scores", "counts", "votes" or "decisions", optional
        The scores (n, m) of the labels, which any calibration takes; all scores (n, K, m), which
        serve everything; how many scores reach the thresholds of `rules`; how many draws have their
        largest logit at each label; or the sets of one rule, with the counts and draws at which it
        stopped: no other rule may use them. By default label scores in the phase "calibration" if
        there are labels, counts if there are rules, and else all scores.
    rules : rule or list of rules, optional
        Calibrated rules, `BinCP`, `MondrianBinCP` or `RobustRiskControl`, whose thresholds are
        counted. One that stops early needs all scores, or decisions.
    first_id : int, optional
        Id of the first input; the others follow it. Runs of parts of one data set that are to be
        merged need ids of their own.
    seed : int, optional
        In [0, 2**64). By default it is drawn from the system and kept in the file ``seed``.
    model_id, score_id : str, optional
        What names a model that is no torch module, and a score that is a function.
    parts : int, optional
        Into how many parts the run is cut at most, by default 64 or more. Ignored when a run is
        continued, and refused where `x` has no length.
    shard : (int, int), optional
        (i, N) for worker i of N, from 0 on, which makes the parts i, i + N, ... By default as
        torchrun (RANK, WORLD_SIZE) or Slurm (job steps, and arrays without holes) says; else (0,
        1).
    check_inputs : bool, optional
        Compare the inputs with those of the parts that are there. False trusts the caller.
    progress : bool, optional
        Show a progress bar on stderr (needs tqdm). By default there is one after two seconds if
        stderr is a terminal; True shows it at once and anywhere, False never.
    n_threads : int, optional
        As in `sample_scores`; another number may continue the run.

    Returns
    -------
    Run
        Complete if no other worker owes parts: `Run.missing` names those.

    Raises
    ------
    ValueError
        If the run was begun with other arguments, other inputs or another seed: each is named with
        both values, and nothing is changed. If the manifest or the seed is damaged, or as in
        `sample_scores`.
    OSError
        If a file cannot be written, such as on a full disk; the parts that are there stay.

    Notes
    -----
    *Ids* are positions in the data, from `first_id` on. *Seed.* Whoever knows it, or sees scores of
    a test run, knows of the noise: keep the folder secret until the answers are out. The seed may
    be removed once the run is complete.

    *Bits.* The last bits of a score may depend on the number of rows in a batch. So batches are a
    grid of inputs and draws that starts at the first id and draw of the run, and parts are made of
    whole batches. `Run.environments` says if parts were made on different kinds of machines.

    *Threads.* As in `sample_scores`. Two threads that work on one folder are two processes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import torch
    >>> from bincp import BinCP, certify
    >>> from bincp.balls import L2
    >>> from bincp.sampling import run
    >>> from bincp.smoothing import Gaussian
    >>> _ = torch.manual_seed(0)
    >>> model, x, y = torch.nn.Linear(4, 3), torch.randn(200, 4), torch.randint(3, (200,))
    >>> rule = BinCP(certify(Gaussian(0.5), L2(0.1)), alpha=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     calibration, test = pathlib.Path(folder, "calibration"), pathlib.Path(folder, "test")
    ...     points = run(
    ...         calibration, model, x[:150], Gaussian(0.5), 64, phase="calibration", labels=y[:150]
    ...     )
    ...     counts = run(
    ...         test, model, x[150:], Gaussian(0.5), 64, phase="test", rules=rule.calibrate(points)
    ...     )
    ...     rule.predict_set(counts).shape
    (50, 3)
    """
    start = Start.checked(seed, parts, check_inputs)
    own = shard_of(shard, os.environ)
    stream = _stream.stream_of(x, labels, key)
    if stream is not None:
        _check_unshared(x, own, parts)
    task = Task.checked(
        model,
        data_of(x, labels, key) if stream is None else stream.first,
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
        device=device,
        progress=progress,
        n_threads=n_threads,
    )
    if stream is not None:
        task = replace(task, identity={**task.identity, "n_inputs": None})
    folder = made_folder(path)
    manifest, known = start.begin(folder, task)
    if stream is not None:
        return Run(folder, _stream.make(folder, manifest, task, stream, known, check_inputs))
    worker = Worker(folder, manifest, task)
    missing = worker.missing(range(own[0], manifest.layout.n_parts, own[1]), check_inputs)
    worker.clean()
    _log.info(
        "%s: worker %d of %d makes %d of %d parts", folder, *own, len(missing),
        manifest.layout.n_parts,
    )  # fmt: skip
    if missing:
        worker.make(missing, _seed.needed_seed(folder, known))
    result = Run(folder, manifest)
    if owed := result.missing():
        _log.info("%s: other workers owe %d parts, from %s on", folder, len(owed), owed[0])
    return result


def _check_unshared(x: Any, shard: tuple[int, int], parts: int | None) -> None:
    """Refuse to share or to cut inputs without a length."""
    if shard != (0, 1):
        raise ValueError(
            f"`x` must have a length to be shared by {shard[1]} workers, got {type(x).__name__}"
        )
    if parts is not None:
        raise ValueError(f"`parts` must be None where `x` has no length, got {parts}")


def made_folder(path: object) -> Path:
    """Return a folder that is there, and holds a run or nothing."""
    folder = as_folder(path)
    folder.mkdir(exist_ok=True)
    names = sorted(name for name in os.listdir(folder) if not is_leftover(name))
    is_run = (folder / _manifest.NAME).exists()  # looked for after the others, which come later
    if not is_run and names not in ([], [_seed.NAME]):
        raise ValueError(
            f"`path` must be the folder of a run, or empty, got {folder} with {names[0]} in it"
        )
    return folder


@dataclass(frozen=True)
class Start:
    """How a run is begun or continued, by `run` and by `run_on_ray`."""

    seed: int | None
    parts: int | None

    @classmethod
    def checked(cls, seed: Any, parts: Any, check_inputs: Any) -> "Start":
        """Check the arguments that do not depend on the inputs."""
        check_flag("check_inputs", check_inputs)
        return cls(
            None if seed is None else check_seed(seed),
            None if parts is None else check_integer("parts", parts, low=1),
        )

    def begin(self, folder: Path, task: Task) -> tuple[Manifest, int | None]:
        """Return the manifest and the seed of the run that there is, or of a new one."""
        if not (folder / _manifest.NAME).exists():
            known = _seed.agreed_seed(folder, self.seed)
            identity = {**task.identity, **task.one_pass(known)}
            identity["seed"] = _seed.commitment(known, identity)
            layout = _cut(task, identity, self.parts)
            manifest = Manifest.begin(folder, identity, layout)
            check_same(folder, manifest.identity, identity)
            return manifest, known
        manifest = Manifest.read(folder)
        check_same(folder, manifest.identity, task.identity)
        return manifest, _seed.known_seed(folder, self.seed, manifest.identity)


def _cut(task: Task, identity: dict[str, Any], parts: int | None) -> Layout:
    if identity["n_inputs"] is None:
        return _stream.open_layout(task, identity["n_classes"], identity["dtype"])
    n, m = len(task.data), task.n_samples
    if parts is None:
        shape = task.kept.shape(n, m, identity["n_classes"])
        itemsize = task.kept.dtype(identity["dtype"], identity["n_classes"]).itemsize
        parts = usual_parts(int(np.prod(shape, dtype=object)) * itemsize)
    return Layout.cut(n, m, task.grid, parts)
