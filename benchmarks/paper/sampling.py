"""Everything that evaluates a network: what `benchmarks.study.scores` caches, and logits.

To the study's files (see there) each setting adds

* ``NAME.logits-test.npy`` and ``NAME.logits-calibration.npy``, float32 (n, K, m): logits of the
  same inputs in each phase, from which every score is computed; their noise is that of the first m
  draws of the study's scores;
* ``NAME.logits-clean.npy``, float32 (n, K): logits without noise;
* ``NAME.attack-R.npy``, float32 (n, K, m), and ``NAME.attack-R-clean.npy``: for the first inputs,
  logits at inputs attacked at radius R (see `attacked`).

Files appear when they are complete; pieces of those that are sampled in pieces survive an
interruption.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.study import data, scores
from bincp.noise._keys import Phase

__all__ = ["Cache", "fill", "load_network"]

Array = npt.NDArray[Any]
Report = Callable[[str], None]
PHASES: tuple[Phase, ...] = ("test", "calibration")


class Cache:
    """The files of one setting.

    Parameters
    ----------
    folder : Path
    name : str
        Of the setting.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def path(self, part: str) -> Path:
        """Return the path of an array."""
        return self.folder / f"{self.name}.{part}.npy"

    def load(self, part: str) -> Array:
        """Return an array that is complete, read on demand."""
        if not self.path(part).exists():
            raise FileNotFoundError(
                f"`--cache` must hold {self.path(part).name}, and {self.folder} does not: run "
                "without --from-cache to make it"
            )
        array: Array = np.load(self.path(part), mmap_mode="r")
        return array

    def make(self, part: str, make: Callable[[], Array], report: Report) -> None:
        """Make an array that is not there yet."""
        if self.path(part).exists():
            return
        start = time.perf_counter()
        scores.save(self.path(part), make())
        scores.forget_pieces(self.path(part))
        report(f"{part}: {time.perf_counter() - start:.0f} s")


def fill(
    task: scores.ImageTask | scores.GraphTask,
    folder: Path,
    n_logits: int,
    *,
    command: str = "",
    report: Report = print,
) -> None:
    """Make what is not there yet of the files of a setting."""
    scores.fill_cache(task, folder, command=command, report=report)
    cache = Cache(folder, task.setting.name)
    network = load_network(task, folder)
    for phase in PHASES:
        part = f"logits-{phase}"
        cache.make(part, lambda p=phase: _logits(task, network, cache, p, n_logits, report), report)
    cache.make("logits-clean", lambda: clean_logits(task, network), report)


def load_network(task: scores.ImageTask | scores.GraphTask, folder: Path) -> torch.nn.Module:
    """Return the trained network of a setting."""
    network = task.network()
    path = folder / f"{task.setting.name}.network.pt"
    network.load_state_dict(torch.load(path, weights_only=True))
    return network.eval()


def _logits(
    task: Any, network: torch.nn.Module, cache: Cache, phase: Phase, n_logits: int, report: Report
) -> Array:
    return scores.in_pieces(
        cache.path(f"logits-{phase}"),
        task.pieces(phase),
        lambda ids: task.sample(network, phase, report, ids, n_logits=n_logits),
    )


def clean_logits(task: Any, network: torch.nn.Module) -> Array:
    """Return the logits (n, K) of the inputs as they are."""
    from benchmarks.study import networks

    with torch.inference_mode():
        if isinstance(task, scores.GraphTask):
            propagation = networks.as_sparse_tensor(task.propagation)
            x = torch.from_numpy(task.graph.attributes)
            return network(x, propagation)[task.nodes].numpy()
        fast = networks.for_sampling(network, task.dtype)
        rows = task.images.held_out[: task.setting.n_inputs]
        batches = torch.from_numpy(task.images.inputs(rows)).split(scores.BATCH_SIZE)
        return torch.cat([fast(batch) for batch in batches]).numpy()
