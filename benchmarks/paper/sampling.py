"""Everything that evaluates a network: the scores of `benchmarks.study.scores`, and logits.

Each setting adds to the files of the study, which are described there,

* ``NAME.logits-test.npy`` and ``NAME.logits-calibration.npy``, float32 (n, K, m): logits of the
  same inputs in each phase, from which every score is computed; their noise is that of the first m
  draws of the study's scores;
* ``NAME.logits-tuning.npy``, float32 (n', K, m'): logits of the last n' inputs in the phase
  "tuning", on which the ranking transformation is tuned;
* ``NAME.logits-clean.npy``, float32 (n, K): logits without noise;
* ``NAME.attack-R.npy``, float32 (n', K, m'): the first n' inputs are attacked by projected gradient
  descent on the smoothed score within the l2 radius R, and the file holds the logits of noisy
  copies of the attacked inputs;
* ``NAME.attack-R-clean.npy``, float32 (n', K): the same attack on the network without noise, and
  the logits of the attacked inputs without noise.

A file that depends on more than the setting and its name has a record beside it, the file
``NAME.PART.json``: an attack depends on its steps, draws, radius and seed and on the network, for
one. A file whose record differs is refused. Files appear when they are complete; pieces of those
that are sampled in pieces survive an interruption.
"""

import functools
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.study import networks, scores
from bincp import attacks, balls
from bincp.noise._keys import Phase
from bincp.sampling import sample_scores
from bincp.smoothing import Gaussian

__all__ = [
    "Cache",
    "attack_settings",
    "fill",
    "fill_attacks",
    "fill_clean",
    "inputs",
    "load_network",
    "tuning_settings",
]

Array = npt.NDArray[Any]
Report = Callable[[str], None]
Settings = dict[str, Any]
Task = scores.ImageTask | scores.GraphTask
PHASES: tuple[Phase, ...] = ("test", "calibration")
TUNING_DRAWS = 16  # of each tuning input
ADVERSARY_SEED = 1_000_000
ATTACK_DRAWS, ATTACK_STEPS = 16, 10
PIXELS = (0, 1)  # the range that attacked images stay in
NO_NOISE = Gaussian(1e-9)  # below the last bit of a pixel


class Cache:
    """The files of one setting.

    Parameters
    ----------
    folder : Path
    name : str
        Name of the setting.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def path(self, part: str) -> Path:
        """Return the path of an array."""
        return self.folder / f"{self.name}.{part}.npy"

    def load(self, part: str, settings: Settings | None = None) -> Array:
        """Return an array that is complete, read on demand; other settings than its are refused."""
        if not self.path(part).exists():
            raise FileNotFoundError(
                f"`--cache` must be a folder with {self.path(part).name}, got {self.folder}: run "
                "without --from-cache to make it"
            )
        self._check_settings(part, settings)
        array: Array = np.load(self.path(part), mmap_mode="r")
        return array

    def make(
        self,
        part: str,
        shape: tuple[int, ...],
        make: Callable[[], Array],
        report: Report,
        settings: Settings | None = None,
    ) -> None:
        """Make an array of this shape, and a record of its settings, if it is not there yet.

        Raises
        ------
        ValueError
            If there is one of another shape or of other settings.
        """
        path = self.path(part)
        if path.exists():
            self._check_settings(part, settings)
            _check_shape(path.name, np.load(path, mmap_mode="r"), shape)
            return
        start = time.perf_counter()
        array = make()
        _check_shape(f"{path.stem}.*.piece", array, shape)  # only what was kept can be otherwise
        if settings is not None:  # first the record: an array without one would be refused
            self._record(part).write_text(json.dumps(settings, indent=2) + "\n")
        scores.save(path, array)
        scores.forget_pieces(path)
        report(f"{part}: {time.perf_counter() - start:.0f} s")

    def _record(self, part: str) -> Path:
        return self.path(part).with_suffix(".json")

    def _check_settings(self, part: str, settings: Settings | None) -> None:
        if settings is None:
            return
        path = self._record(part)
        found = json.loads(path.read_text()) if path.exists() else {}
        scores.check_settings(self.path(part).name, found, settings)


def _check_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(
            f"{name} in the cache must have shape {shape}, got {array.shape}: another setting made "
            "it; remove it or use another cache"
        )


def fill(
    task: scores.ImageTask | scores.GraphTask,
    folder: Path,
    n_logits: int,
    n_tuning: int,
    *,
    command: str = "",
    report: Report = print,
) -> None:
    """Make the scores and logits of a setting that are not there yet."""
    scores.fill_cache(task, folder, command=command, report=report)
    cache = Cache(folder, task.setting.name)
    network = load_network(task, folder)
    n, n_classes = cache.load("test").shape[:2]
    for phase in PHASES:
        make = functools.partial(_logits, task, network, cache, phase, n_logits, report)
        cache.make(f"logits-{phase}", (n, n_classes, n_logits), make, report)
    _fill_tuning(task, network, cache, n_tuning, report)
    fill_clean(task, folder, report)


def tuning_settings(n_tuning: int) -> Settings:
    """Return everything that the logits of the tuning inputs depend on, beside the setting."""
    return {"inputs": n_tuning, "draws": TUNING_DRAWS}


def _fill_tuning(
    task: Task, network: torch.nn.Module, cache: Cache, n_tuning: int, report: Report
) -> None:
    n, n_classes = cache.load("test").shape[:2]
    ids = np.arange(n - n_tuning, n)

    def make() -> Array:
        return task.sample(network, "tuning", report, ids, n_logits=TUNING_DRAWS)

    shape = (n_tuning, n_classes, TUNING_DRAWS)
    cache.make("logits-tuning", shape, make, report, tuning_settings(n_tuning))


def fill_clean(task: Task, folder: Path, report: Report) -> None:
    """Make the logits of the inputs without noise, if they are not there yet."""
    cache = Cache(folder, task.setting.name)
    network = load_network(task, folder)
    shape = cache.load("test").shape[:2]
    cache.make("logits-clean", shape, lambda: _clean_logits(task, network), report)


def load_network(task: Task, folder: Path) -> torch.nn.Module:
    """Return the trained network of a setting."""
    network = task.network()
    path = folder / f"{task.setting.name}.network.pt"
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network.eval()


def _logits(
    task: Task, network: Any, cache: Cache, phase: Phase, n_logits: int, report: Report
) -> Array:
    return scores.in_pieces(
        cache.path(f"logits-{phase}"),
        task.pieces(phase),
        lambda ids: task.sample(network, phase, report, ids, n_logits=n_logits),
    )


def _clean_logits(task: Task, network: Any) -> Array:
    if isinstance(task, scores.ImageTask):
        return scores.logits(task.for_sampling(network), inputs(task, task.setting.n_inputs))
    propagation = networks.as_sparse_tensor(task.propagation)
    with torch.inference_mode():
        found = network(torch.from_numpy(task.graph.attributes), propagation)
    result: Array = found[task.nodes].numpy()
    return result


def inputs(task: scores.ImageTask, n: int) -> Array:
    """Return the first n held-out images, pixels in [0, 1]."""
    return task.images.inputs(task.images.held_out[:n])


def fill_attacks(
    task: scores.ImageTask,
    folder: Path,
    radii: dict[str, balls.L2],
    n: int,
    n_samples: int,
    report: Report = print,
) -> None:
    """Make the logits at n attacked inputs for each radius, where they are not there yet."""
    cache = Cache(folder, task.setting.name)
    network = task.for_sampling(load_network(task, folder))
    n_classes = cache.load("test").shape[1]
    for label, ball in radii.items():
        for part, m in ((f"attack-{label}", n_samples), (f"attack-{label}-clean", 0)):
            shape = (n, n_classes, m) if m else (n, n_classes)
            attacked = functools.partial(_attacked, task, network, ball, n, m)
            settings = attack_settings(folder, task.setting, ball, n, m)
            cache.make(part, shape, attacked, report, settings)


def attack_settings(
    folder: Path, setting: scores.Setting, ball: balls.Ball, n: int, m: int
) -> Settings:
    """Return everything that the logits at attacked inputs depend on; m = 0 is without noise."""
    network = (folder / f"{setting.name}.network.pt").read_bytes()
    return {
        "attack": "pgd",
        "ball": repr(ball),
        "steps": ATTACK_STEPS,
        "draws": ATTACK_DRAWS if m else 1,
        "attack_seed": ADVERSARY_SEED,
        "box": list(PIXELS),
        "block": scores.BLOCK,  # inputs that are attacked together
        "inputs": n,
        "samples": m,
        "seed": setting.seed,
        "noise": list(setting.noise) if m else None,
        "network": hashlib.sha256(network).hexdigest(),
    }


def _attacked(task: scores.ImageTask, network: Any, ball: balls.L2, n: int, m: int) -> Array:
    """Return logits (n, K, m) of noisy copies of attacked inputs; (n, K) without noise if m = 0."""
    smoothing = task.smoothing if m else NO_NOISE

    def logits_of(rows: npt.NDArray[np.int64]) -> Array:
        moved = attacks.pgd(
            network,
            task.images.inputs(task.images.held_out[rows]),
            task.labels[rows],
            smoothing,
            ball,
            seed=ADVERSARY_SEED + int(rows[0]),  # noise of its own, and not that of the classifier
            n_samples=ATTACK_DRAWS if m else 1,
            steps=ATTACK_STEPS,
            box=PIXELS,
        )
        if not m:
            return scores.logits(network, moved)
        return sample_scores(
            network,
            moved,
            task.smoothing,
            m,
            phase="test",
            indices=rows,
            score="logit",
            batch_size=scores.BATCH_SIZE,
            seed=task.setting.seed,
        )

    with scores.threads(task.n_threads) as pool:
        return np.concatenate(list(pool.map(logits_of, scores.blocks(n, scores.BLOCK))))
