"""Train the networks of the study and cache their sampled scores.

    python -m benchmarks.study.scores --data DIR --cache DIR [--only cifar10-0.25 ...]

A CIFAR-10 setting took 13 minutes on two cores, MNIST 3, Cora-ML 5. On cores that others use, set
``OMP_WAIT_POLICY=passive``: threads of torch that spin while they wait for each other stand still.

`benchmarks.study.data` says what DIR holds and where a user gets it. For each setting in `SETTINGS`
the cache gets

* ``NAME.test.npy``, float32 (n, K, m'): scores of all labels in the phase "test";
* ``NAME.calibration.npy``, float32 (n, m): scores of the true labels of the same inputs in the
  phase "calibration", whose noise is independent of it;
* ``NAME.labels.npy``, int64 (n,), and ``NAME.network.pt``, the parameters of the network;
* ``NAME.json``: the setting, the command, and accuracies on inputs that were not trained on.

A study splits the n inputs into calibration and test inputs, as often as it likes: the inputs are
exchangeable, and no network has seen them. What exists is not made again; a cache that another
setting of the same name made is refused.

Noise is keyed by the position of an image in the held-out data. On the graph one forward pass
serves all nodes. That is fine in the test phase, but calibration points must not share noise: there
every scored node gets flips of its own, keyed by (node, neighbour), of all nodes that its scores
depend on, those up to two links away.
"""

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.study import data, networks
from bincp import noise
from bincp.noise._keys import Phase
from bincp.sampling import sample_scores
from bincp.smoothing import Gaussian, SparseFlip

__all__ = ["SETTINGS", "GraphTask", "ImageTask", "Setting", "fill_cache", "load"]

FloatArray = npt.NDArray[np.float32]
PHASES: tuple[Phase, ...] = ("test", "calibration")
BATCH_SIZE = 512
BLOCK = 20  # images that a thread samples at a time
# Nodes whose flips are in memory at a time: 16 nodes x 512 draws x 2,879 attributes are 94 MB.
NODE_BLOCK = 16


@dataclass(frozen=True)
class Setting:
    """What to train and to sample.

    Parameters
    ----------
    name : str
        Of the files in the cache.
    dataset : str
        "cifar10", "mnist" or "cora-ml".
    noise : tuple of float
        ``(sigma,)`` of Gaussian noise on pixels in [0, 1], or ``(p_plus, p_minus)`` of flips.
    network : str
        "residual", "plain" or "gcn".
    width, n_epochs, max_rate
        Of the network and its training.
    n_inputs : int
        Inputs to score.
    n_calibration, n_test : int
        Draws for each input in each phase.
    seed : int
        Of the parameters, the training and the noise.
    """

    name: str
    dataset: str
    noise: tuple[float, ...]
    network: str
    width: int
    n_epochs: int
    max_rate: float
    n_inputs: int
    n_calibration: int
    n_test: int
    seed: int = 0


SETTINGS = (
    Setting("cifar10-0.25", "cifar10", (0.25,), "residual", 32, 10, 0.4, 1500, 1024, 1024),
    Setting("mnist-0.5", "mnist", (0.5,), "plain", 16, 20, 0.4, 2000, 1024, 1024),
    Setting("cifar10-0.5", "cifar10", (0.5,), "residual", 32, 10, 0.4, 1500, 1024, 1024),
    Setting("cora-ml", "cora-ml", (0.01, 0.6), "gcn", 32, 150, 0.01, 1000, 256, 512),
    Setting("cifar10-0.25-plain", "cifar10", (0.25,), "plain", 32, 10, 0.4, 1500, 1024, 1024, 1),
    Setting("cifar10-0.125", "cifar10", (0.125,), "residual", 32, 10, 0.4, 1500, 1024, 1024, 2),
)


class ImageTask:
    """A smoothed image network: how to make it, to train it and to sample its scores.

    Parameters
    ----------
    setting : Setting
    images : Images
    n_threads : int
        Threads that sample, one network evaluation each: for networks this small, faster than
        threads inside of each evaluation.
    dtype : torch.dtype, optional
        Of the convolutions.
    """

    def __init__(
        self,
        setting: Setting,
        images: data.Images,
        n_threads: int = 2,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        if len(images.held_out) < setting.n_inputs:
            raise ValueError(
                f"`n_inputs` must be at most {len(images.held_out)}, the held-out images, "
                f"got {setting.n_inputs}"
            )
        self.setting = setting
        self.images = images
        self.smoothing = Gaussian(*setting.noise)
        self.n_threads = n_threads
        self.dtype = dtype
        self.labels = images.labels[images.held_out[: setting.n_inputs]]

    def network(self) -> networks.ImageNetwork:
        """Return the untrained network."""
        torch.manual_seed(self.setting.seed)
        n_channels = self.images.pixels.shape[-1]
        n_classes = int(self.images.labels.max()) + 1
        return networks.ImageNetwork(
            self.setting.network, self.setting.width, n_channels, n_classes
        )

    def train(self, network: networks.ImageNetwork, report: Callable[[str], None]) -> None:
        """Train the network on the images that are not held out."""
        networks.train_images(
            network,
            self.images,
            self.smoothing,
            n_epochs=self.setting.n_epochs,
            max_rate=self.setting.max_rate,
            seed=self.setting.seed,
            report=report,
        )

    def accuracies(self, network: networks.ImageNetwork) -> dict[str, float]:
        """Return the accuracies on all held-out images: clean, and under one draw of noise."""
        network = networks.for_sampling(network, self.dtype)
        x, labels = self.images.inputs(self.images.held_out), self.images.labels
        noisy = noise.draw(self.smoothing, x, 1, phase="test", seed=self.setting.seed)[:, 0]
        return {
            f"{name}_accuracy": float(
                (_logits(network, inputs).argmax(1) == labels[self.images.held_out]).mean()
            )
            for name, inputs in (("clean", x), ("noisy", noisy))
        }

    def sample(
        self, network: networks.ImageNetwork, phase: Phase, report: Callable[[str], None]
    ) -> FloatArray:
        """Return the scores of the phase: (n, K, m') for test, (n, m) for calibration."""
        network = networks.for_sampling(network, self.dtype)
        n_samples = _n_samples(self.setting, phase)

        def scores_of(ids: npt.NDArray[np.int64]) -> FloatArray:
            return sample_scores(
                network,
                self.images.inputs(self.images.held_out[ids]),
                self.smoothing,
                n_samples,
                phase=phase,
                indices=ids,
                labels=self.labels[ids] if phase == "calibration" else None,
                batch_size=BATCH_SIZE,
                seed=self.setting.seed,
            )

        start, scores = time.perf_counter(), []
        blocks = _blocks(self.setting.n_inputs, BLOCK)
        with _threads(self.n_threads) as pool:
            for block, block_scores in zip(blocks, pool.map(scores_of, blocks), strict=True):
                scores.append(block_scores)
                if block[-1] + 1 == self.setting.n_inputs or len(scores) % 10 == 0:
                    rate = (block[-1] + 1) * n_samples / (time.perf_counter() - start)
                    report(f"{phase}: {block[-1] + 1} images, {rate:.0f} forward passes/s")
        return np.concatenate(scores)


class GraphTask:
    """A smoothed graph network, by the methods of `ImageTask`."""

    def __init__(self, setting: Setting, graph: data.Graph, n_threads: int = 2) -> None:
        if len(graph.held_out) < setting.n_inputs:
            raise ValueError(
                f"`n_inputs` must be at most {len(graph.held_out)}, the held-out nodes, "
                f"got {setting.n_inputs}"
            )
        self.setting = setting
        self.graph = graph
        self.smoothing = SparseFlip(*setting.noise)
        self.n_threads = n_threads
        self.nodes = graph.held_out[: setting.n_inputs]
        self.labels = graph.labels[self.nodes]
        self.propagation = networks.propagation_matrix(graph.adjacency)

    def network(self) -> networks.GraphNetwork:
        """Return the untrained network."""
        torch.manual_seed(self.setting.seed)
        n_attributes = self.graph.attributes.shape[1]
        n_classes = int(self.graph.labels.max()) + 1
        return networks.GraphNetwork(n_attributes, self.setting.width, n_classes)

    def train(self, network: networks.GraphNetwork, report: Callable[[str], None]) -> None:
        """Train the network on the labels of the nodes that are not held out."""
        networks.train_graph(
            network,
            self.graph,
            self.smoothing,
            n_epochs=self.setting.n_epochs,
            max_rate=self.setting.max_rate,
            seed=self.setting.seed,
            report=report,
        )

    def accuracies(self, network: networks.GraphNetwork) -> dict[str, float]:
        """Return the accuracies on all held-out nodes: clean, and under one draw of noise."""
        x, held_out = self.graph.attributes, self.graph.held_out
        noisy = noise.draw(self.smoothing, x, 1, phase="test", seed=self.setting.seed)[:, 0]
        propagation = networks.as_sparse_tensor(self.propagation)
        result = {}
        for name, attributes in (("clean", x), ("noisy", noisy)):
            with torch.inference_mode():
                found = network(torch.from_numpy(attributes), propagation).argmax(1).numpy()
            correct = found[held_out] == self.graph.labels[held_out]
            result[f"{name}_accuracy"] = float(correct.mean())
        return result

    def sample(
        self, network: networks.GraphNetwork, phase: Phase, report: Callable[[str], None]
    ) -> FloatArray:
        """Return the scores of the phase: (n, K, m') for test, (n, m) for calibration."""
        if phase == "test":
            return self._test_scores(network, report)
        return self._calibration_scores(network, report)

    def _test_scores(
        self, network: networks.GraphNetwork, report: Callable[[str], None]
    ) -> FloatArray:
        """Score all nodes by the same noisy attributes; draw d of node v has the key (v, d)."""
        n_nodes = len(self.graph.labels)
        everywhere = np.arange(n_nodes)
        embedded = self._embedded(network, everywhere, everywhere, "test")
        report("test: all nodes embedded")
        propagation = networks.as_sparse_tensor(self.propagation)
        shape = (len(self.nodes), network.head.out_features, self.setting.n_test)
        scores = np.empty(shape, dtype=np.float32)
        with torch.inference_mode():
            for draw in range(self.setting.n_test):
                hidden = network.hidden(propagation @ embedded[draw])
                logits = propagation @ network.head(hidden)
                scores[:, :, draw] = logits.softmax(1)[self.nodes].numpy()
        return scores

    def _calibration_scores(
        self, network: networks.GraphNetwork, report: Callable[[str], None]
    ) -> FloatArray:
        """Score each node i by flips of its own; draw d of node v has the key (i, v, d)."""
        start, scores = time.perf_counter(), []
        with _threads(self.n_threads) as pool:
            tasks = pool.map(lambda i: self._own_scores(network, i), range(len(self.nodes)))
            for done, node_scores in enumerate(tasks, start=1):
                scores.append(node_scores)
                if done % 100 == 0 or done == len(self.nodes):
                    report(f"calibration: {done} nodes, {time.perf_counter() - start:.0f} s")
        return np.stack(scores)

    def _own_scores(self, network: networks.GraphNetwork, position: int) -> FloatArray:
        node = self.nodes[position]
        near = self.propagation[[node]].indices  # the node and its neighbours
        around = np.unique(self.propagation[near].indices)  # and theirs
        ids = node * len(self.graph.labels) + around
        embedded = self._embedded(network, around, ids, "calibration")
        gather_near = torch.from_numpy(self.propagation[near][:, around].toarray())
        gather = torch.from_numpy(self.propagation[[node]][:, near].toarray())
        with torch.inference_mode():
            hidden = network.hidden(gather_near @ embedded)
            logits = (gather @ network.head(hidden))[:, 0]
            own: FloatArray = logits.softmax(1)[:, self.labels[position]].numpy()
        return own

    def _embedded(
        self,
        network: networks.GraphNetwork,
        nodes: npt.NDArray[np.int64],
        ids: npt.NDArray[np.int64],
        phase: Phase,
    ) -> torch.Tensor:
        """Return the embeddings (m, nodes, width) of noisy attributes.

        The first layer acts on each node alone, so that the noisy attributes of a few nodes are all
        that is in memory.
        """
        n_samples = _n_samples(self.setting, phase)
        embedded = torch.empty(n_samples, len(nodes), network.embed.out_features)
        for block in _blocks(len(nodes), NODE_BLOCK):
            noisy = noise.draw(
                self.smoothing,
                self.graph.attributes[nodes[block]],
                n_samples,
                phase=phase,
                indices=ids[block],
                seed=self.setting.seed,
            )
            with torch.inference_mode():
                embedded[:, block] = network.embed(torch.from_numpy(noisy)).transpose(0, 1)
        return embedded


def task_for(setting: Setting, folder: Path, cache: Path, n_threads: int) -> ImageTask | GraphTask:
    """Read the data of a setting."""
    if setting.dataset == "cora-ml":
        return GraphTask(setting, data.cora_ml(folder), n_threads)
    images = data.cifar10(folder, cache) if setting.dataset == "cifar10" else data.mnist(folder)
    return ImageTask(setting, images, n_threads)


def fill_cache(
    task: ImageTask | GraphTask,
    cache: Path,
    *,
    command: str = "",
    report: Callable[[str], None] = print,
) -> None:
    """Make what is not there yet of the files of a setting.

    Raises
    ------
    ValueError
        If the cache has files of this name that another setting made.
    """
    setting = task.setting
    record = _Record.opened(cache / f"{setting.name}.json", setting)
    record.write(command=command, torch=torch.__version__)
    network = _trained(task, cache / f"{setting.name}.network.pt", record, report)
    _save(cache / f"{setting.name}.labels.npy", task.labels)
    for phase in PHASES:
        path = cache / f"{setting.name}.{phase}.npy"
        if path.exists():
            report(f"{phase}: cached")
            continue
        start = time.perf_counter()
        scores = task.sample(network, phase, report)
        record.write(**{f"{phase}_seconds": round(time.perf_counter() - start, 1)})
        if phase == "test":
            smoothed = scores.mean(axis=2, dtype=np.float64).argmax(axis=1)
            record.write(smoothed_accuracy=float((smoothed == task.labels).mean()))
        _save(path, scores)


def load(cache: Path, name: str) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]:
    """Return calibration scores (n, m), test scores (n, K, m') and labels (n,), read on demand."""
    calibration, test, labels = (
        np.load(cache / f"{name}.{part}.npy", mmap_mode="r")
        for part in ("calibration", "test", "labels")
    )
    return calibration, test, labels


def _trained(
    task: Any, path: Path, record: "_Record", report: Callable[[str], None]
) -> torch.nn.Module:
    network: torch.nn.Module = task.network()
    if path.exists():
        network.load_state_dict(torch.load(path, weights_only=True))
        return network.eval()
    start = time.perf_counter()
    task.train(network, report)
    seconds = time.perf_counter() - start
    record.write(training_seconds=round(seconds, 1), **task.accuracies(network))
    partial = path.with_suffix(".partial")
    torch.save(network.state_dict(), partial)
    partial.rename(path)
    return network


@dataclass
class _Record:
    """The JSON file beside the arrays."""

    path: Path
    content: dict[str, Any]

    @classmethod
    def opened(cls, path: Path, setting: Setting) -> "_Record":
        # Through JSON, so that tuples compare equal to the lists they become.
        wanted = json.loads(json.dumps(asdict(setting)))
        if not path.exists():
            return cls(path, {"setting": wanted})
        content = json.loads(path.read_text())
        found = content["setting"]
        differing = [key for key in {**wanted, **found} if wanted.get(key) != found.get(key)]
        if differing:
            pairs = ", ".join(f"{key}={found.get(key)}, not {wanted.get(key)}" for key in differing)
            raise ValueError(
                f"{path.name} in the cache was made with {pairs}: remove its files or use another "
                "cache"
            )
        return cls(path, content)

    def write(self, **entries: Any) -> None:
        self.content.update(entries)
        self.path.write_text(json.dumps(self.content, indent=2) + "\n")


def _save(path: Path, array: npt.NDArray[Any]) -> None:
    """Write the file at once: one that exists is complete."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, array)
    partial.rename(path)


def _n_samples(setting: Setting, phase: Phase) -> int:
    return setting.n_test if phase == "test" else setting.n_calibration


def _logits(network: torch.nn.Module, x: FloatArray) -> FloatArray:
    with torch.inference_mode():
        batches = torch.from_numpy(x).split(BATCH_SIZE)
        logits: FloatArray = torch.cat([network(batch) for batch in batches]).numpy()
    return logits


def _blocks(n: int, size: int) -> list[npt.NDArray[np.int64]]:
    return np.split(np.arange(n), range(size, n, size))


def _threads(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, initializer=_start_thread)


def _start_thread() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _reporter(name: str) -> Callable[[str], None]:
    return lambda line: print(f"{time.strftime('%H:%M:%S')} {name}: {line}", flush=True)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study.scores",
        description="Train the networks of the study and cache their sampled scores.",
    )
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--data", type=Path, required=True, help="folder of the data")
    parser.add_argument("--cache", type=Path, required=True, help="folder to write to")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="settings")
    parser.add_argument("--threads", type=int, default=2, help="threads (default: 2)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    """Run the command line."""
    arguments = _arguments(argv)
    arguments.cache.mkdir(parents=True, exist_ok=True)
    for setting in SETTINGS:
        if setting.name in arguments.only:
            report = _reporter(setting.name)
            torch.set_num_threads(arguments.threads)
            task = task_for(setting, arguments.data, arguments.cache, arguments.threads)
            command = f"python -m benchmarks.study.scores --only {setting.name}"
            fill_cache(task, arguments.cache, command=command, report=report)


if __name__ == "__main__":
    main()
