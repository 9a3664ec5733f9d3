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
exchangeable, and no network has seen them. Files that exist are not made again; a cache that
another setting of the same name made is refused. Scores are sampled in pieces of some inputs, each
of them kept, so that an interrupted run goes on where it stopped; a network is trained at one go.

Noise is keyed by the position of an image in the held-out data. On the graph one forward pass
serves all nodes. That is fine in the test phase, but calibration points must not share noise:
there, and for tuning, every scored node gets flips of its own, keyed by (node, neighbour), of all
nodes that its scores depend on, those up to two links away.
"""

import argparse
import functools
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
from bincp import noise, smoothing
from bincp.noise._keys import Phase
from bincp.sampling import sample_scores
from bincp.smoothing import Smoothing

__all__ = [
    "SETTINGS",
    "GraphTask",
    "ImageTask",
    "Setting",
    "check_cache",
    "check_settings",
    "fill_cache",
    "load",
    "load_network",
]

FloatArray = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
PHASES: tuple[Phase, ...] = ("test", "calibration")
BATCH_SIZE = 512
BLOCK = 20  # images that a thread samples at a time
PIECE = 250  # inputs whose scores are kept at a time
# Nodes whose flips are in memory at a time: 16 nodes x 512 draws x 2,879 attributes are 94 MB.
NODE_BLOCK = 16


@dataclass(frozen=True)
class Setting:
    """A network to train and the scores to sample from it.

    Parameters
    ----------
    name : str
        Beginning of the names of the files in the cache.
    dataset : str
        "cifar10", "mnist" or "cora-ml".
    noise : tuple of float
        Parameters of the noise, which is on pixels in [0, 1] or on attributes.
    network : str
        "residual", "plain" or "gcn".
    width, n_epochs, max_rate
        Settings of the network and its training.
    n_inputs : int
        Inputs to score.
    n_calibration, n_test : int
        Draws for each input in each phase.
    seed : int
        Seed of the parameters, the training and the noise.
    scheme : str
        Name of the smoothing scheme, in `bincp.smoothing`.
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
    scheme: str = "Gaussian"

    @property
    def smoothing(self) -> Smoothing:
        """The noise."""
        scheme: Smoothing = getattr(smoothing, self.scheme)(*self.noise)
        return scheme


SETTINGS = (
    Setting("cifar10-0.25", "cifar10", (0.25,), "residual", 32, 10, 0.4, 1500, 1024, 1024),
    Setting("mnist-0.5", "mnist", (0.5,), "plain", 16, 20, 0.4, 2000, 1024, 1024),
    Setting("cifar10-0.5", "cifar10", (0.5,), "residual", 32, 10, 0.4, 1500, 1024, 1024),
    Setting(
        "cora-ml", "cora-ml", (0.01, 0.6), "gcn", 32, 150, 0.01, 1000, 256, 512, scheme="SparseFlip"
    ),
    Setting(
        "cifar10-laplace", "cifar10", (0.2,), "plain", 32, 6, 0.4, 2000, 256, 256, 3, "Laplace"
    ),
    Setting(
        "cifar10-uniform", "cifar10", (0.5,), "plain", 32, 6, 0.4, 2000, 256, 256, 4, "Uniform"
    ),
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
        Dtype of the convolutions.
    smoothing : Smoothing, optional
        The noise; that of the setting by default.

    Networks are trained and evaluated on a GPU if torch has one.
    """

    def __init__(
        self,
        setting: Setting,
        images: data.Images,
        n_threads: int = 2,
        dtype: torch.dtype = torch.bfloat16,
        smoothing: Smoothing | None = None,
    ) -> None:
        if len(images.held_out) < setting.n_inputs:
            raise ValueError(
                f"`n_inputs` must be at most {len(images.held_out)}, the held-out images, "
                f"got {setting.n_inputs}"
            )
        self.setting = setting
        self.images = images
        self.smoothing = smoothing or setting.smoothing
        self.n_threads = n_threads
        self.dtype = dtype
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.labels = images.labels[images.held_out[: setting.n_inputs]]

    def network(self) -> networks.ImageNetwork:
        """Return the untrained network."""
        torch.manual_seed(self.setting.seed)
        n_channels = self.images.pixels.shape[-1]
        n_classes = int(self.images.labels.max()) + 1
        network = networks.ImageNetwork(
            self.setting.network, self.setting.width, n_channels, n_classes
        )
        return network.to(self.device)

    def for_sampling(self, network: networks.ImageNetwork) -> torch.nn.Module:
        """Return the network as it is evaluated."""
        return networks.for_sampling(network, self.dtype)

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
        fast = self.for_sampling(network)
        x, labels = self.images.inputs(self.images.held_out), self.images.labels
        noisy = noise.draw(self.smoothing, x, 1, phase="test", seed=self.setting.seed)[:, 0]
        return {
            f"{name}_accuracy": float(
                (logits(fast, inputs).argmax(1) == labels[self.images.held_out]).mean()
            )
            for name, inputs in (("clean", x), ("noisy", noisy))
        }

    def pieces(self, phase: Phase) -> list[Ids]:
        """Return the inputs in pieces that are sampled and kept one at a time."""
        return blocks(self.setting.n_inputs, PIECE)

    def sample(
        self,
        network: networks.ImageNetwork,
        phase: Phase,
        report: Callable[[str], None],
        ids: Ids | None = None,
        *,
        n_logits: int | None = None,
    ) -> FloatArray:
        """Return the scores of the phase: (n, K, m') for test, (n, m) for calibration.

        Parameters
        ----------
        network : ImageNetwork
        phase : "calibration", "test" or "tuning"
            "tuning" for logits only.
        report : callable
        ids : int64 array, optional
            Positions of the inputs; all by default.
        n_logits : int, optional
            Return logits (n, K, n_logits) of so many draws instead, in any phase.
        """
        fast = self.for_sampling(network)
        ids = np.arange(self.setting.n_inputs) if ids is None else ids
        n_samples = n_logits or _n_samples(self.setting, phase)
        of_true_labels = phase == "calibration" and n_logits is None

        def scores_of(rows: Ids) -> FloatArray:
            return sample_scores(
                fast,
                self.images.inputs(self.images.held_out[rows]),
                self.smoothing,
                n_samples,
                phase=phase,
                indices=rows,
                score="tps" if n_logits is None else "logit",
                labels=self.labels[rows] if of_true_labels else None,
                batch_size=BATCH_SIZE,
                seed=self.setting.seed,
            )

        start = time.perf_counter()
        with threads(self.n_threads) as pool:
            scores = list(pool.map(scores_of, [ids[block] for block in blocks(len(ids), BLOCK)]))
        rate = len(ids) * n_samples / (time.perf_counter() - start)
        report(f"{phase}: up to image {ids[-1] + 1}, {rate:.0f} forward passes/s")
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
        self.smoothing = setting.smoothing
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

    def pieces(self, phase: Phase) -> list[Ids]:
        """Return the nodes in pieces; in the test phase one forward pass serves all of them."""
        return blocks(self.setting.n_inputs, len(self.nodes) if phase == "test" else PIECE)

    def sample(
        self,
        network: networks.GraphNetwork,
        phase: Phase,
        report: Callable[[str], None],
        ids: Ids | None = None,
        *,
        n_logits: int | None = None,
    ) -> FloatArray:
        """Return the scores of the phase, as `ImageTask.sample`."""
        ids = np.arange(len(self.nodes)) if ids is None else ids
        n_samples = n_logits or _n_samples(self.setting, phase)
        start = time.perf_counter()
        if phase == "test":
            logits = self._test_logits(network, ids, n_samples)
        else:
            logits = self._own_noise_logits(network, phase, ids, n_samples)
        report(f"{phase}: up to node {ids[-1] + 1}, {time.perf_counter() - start:.0f} s")
        if n_logits is not None:
            return logits.numpy()
        scores: FloatArray = logits.softmax(1).numpy()
        return scores if phase == "test" else scores[np.arange(len(ids)), self.labels[ids]]

    def _test_logits(
        self, network: networks.GraphNetwork, ids: Ids, n_samples: int
    ) -> torch.Tensor:
        """Evaluate all nodes at the same noisy attributes; draw d of node v has the key (v, d)."""
        everywhere = np.arange(len(self.graph.labels))
        embedded = self._embedded(network, everywhere, everywhere, "test", n_samples)
        propagation = networks.as_sparse_tensor(self.propagation)
        logits = torch.empty(len(ids), network.head.out_features, n_samples)
        with torch.inference_mode():
            for draw in range(n_samples):
                hidden = network.hidden(propagation @ embedded[draw])
                logits[:, :, draw] = (propagation @ network.head(hidden))[self.nodes[ids]]
        return logits

    def _own_noise_logits(
        self, network: networks.GraphNetwork, phase: Phase, ids: Ids, n_samples: int
    ) -> torch.Tensor:
        """Evaluate each node i at flips of its own; draw d of node v has the key (i, v, d)."""
        with threads(self.n_threads) as pool:
            tasks = pool.map(lambda i: self._own_logits(network, phase, i, n_samples), ids)
            return torch.stack(list(tasks))

    def _own_logits(
        self, network: networks.GraphNetwork, phase: Phase, position: int, n_samples: int
    ) -> torch.Tensor:
        node = self.nodes[position]
        near = self.propagation[[node]].indices  # the node and its neighbours
        around = np.unique(self.propagation[near].indices)  # and theirs
        ids = node * len(self.graph.labels) + around
        embedded = self._embedded(network, around, ids, phase, n_samples)
        gather_near = torch.from_numpy(self.propagation[near][:, around].toarray())
        gather = torch.from_numpy(self.propagation[[node]][:, near].toarray())
        with torch.inference_mode():
            hidden = network.hidden(gather_near @ embedded)
            return (gather @ network.head(hidden))[:, 0].T

    def _embedded(
        self,
        network: networks.GraphNetwork,
        nodes: Ids,
        ids: Ids,
        phase: Phase,
        n_samples: int,
    ) -> torch.Tensor:
        """Return the embeddings (m, nodes, width) of noisy attributes.

        The first layer acts on each node alone, so that the noisy attributes of a few nodes are all
        that is in memory.
        """
        embedded = torch.empty(n_samples, len(nodes), network.embed.out_features)
        for block in blocks(len(nodes), NODE_BLOCK):
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
    """Make the files of a setting that are not there yet.

    Raises
    ------
    ValueError
        If the cache has files of this name that another setting made.
    """
    setting = task.setting
    record = _Record.opened(cache / f"{setting.name}.json", setting)
    record.write(command=command, torch=torch.__version__)
    network = _trained(task, cache / f"{setting.name}.network.pt", record, report)
    save(cache / f"{setting.name}.labels.npy", task.labels)
    for phase in PHASES:
        path = cache / f"{setting.name}.{phase}.npy"
        if path.exists():
            report(f"{phase}: cached")
            continue
        start = time.perf_counter()
        scores = in_pieces(
            path, task.pieces(phase), functools.partial(task.sample, network, phase, report)
        )
        record.write(**{f"{phase}_seconds": round(time.perf_counter() - start, 1)})
        if phase == "test":
            smoothed = scores.mean(axis=2, dtype=np.float64).argmax(axis=1)
            record.write(smoothed_accuracy=float((smoothed == task.labels).mean()))
        save(path, scores)
        forget_pieces(path)


def in_pieces(
    path: Path, pieces: list[Ids], sample: Callable[[Ids], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Return what ``sample`` returns for all pieces, each kept beside the file until that exists.

    A run that was interrupted finds the pieces that it had finished.
    """
    results = []
    for ids in pieces:
        kept = path.with_suffix(f".{ids[0]}-{ids[-1]}.piece")
        if not kept.exists():
            save(kept, sample(ids))
        results.append(np.load(kept))
    return np.concatenate(results)


def forget_pieces(path: Path) -> None:
    """Remove the pieces of a file that is complete."""
    for kept in path.parent.glob(f"{path.stem}.*.piece"):
        kept.unlink()


def load_network(task: ImageTask | GraphTask, cache: Path) -> torch.nn.Module:
    """Return the trained network of a task."""
    network: torch.nn.Module = task.network()
    path = cache / f"{task.setting.name}.network.pt"
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network.eval()


def load(cache: Path, name: str) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]:
    """Return calibration scores (n, m), test scores (n, K, m') and labels (n,), read on demand."""
    calibration, test, labels = (
        np.load(cache / f"{name}.{part}.npy", mmap_mode="r")
        for part in ("calibration", "test", "labels")
    )
    return calibration, test, labels


def check_cache(cache: Path, setting: Setting) -> None:
    """Refuse the files of a setting that another setting of the same name made."""
    _Record.opened(cache / f"{setting.name}.json", setting)


def check_settings(name: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse a file of the cache whose record differs from the settings that are wanted."""
    differing = [key for key in {**wanted, **found} if wanted.get(key) != found.get(key)]
    if differing:
        pairs = ", ".join(f"{key}={found.get(key)}, not {wanted.get(key)}" for key in differing)
        raise ValueError(
            f"{name} in the cache was made with {pairs}: remove its files or use another cache"
        )


def _trained(
    task: Any, path: Path, record: "_Record", report: Callable[[str], None]
) -> torch.nn.Module:
    network: torch.nn.Module = task.network()
    if path.exists():
        return load_network(task, path.parent)
    start = time.perf_counter()
    task.train(network, report)
    seconds = time.perf_counter() - start
    record.write(training_seconds=round(seconds, 1), **task.accuracies(network))
    save_network(path, network)
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
        check_settings(path.name, content["setting"], wanted)
        return cls(path, content)

    def write(self, **entries: Any) -> None:
        self.content.update(entries)
        self.path.write_text(json.dumps(self.content, indent=2) + "\n")


def save_network(path: Path, network: torch.nn.Module) -> None:
    """Write the parameters at once: a file that exists is complete."""
    partial = path.with_suffix(".partial")
    torch.save(network.state_dict(), partial)
    partial.rename(path)


def save(path: Path, array: npt.NDArray[Any]) -> None:
    """Write the file at once: one that exists is complete."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, array)
    partial.rename(path)


def _n_samples(setting: Setting, phase: Phase) -> int:
    return setting.n_test if phase == "test" else setting.n_calibration


def logits(network: torch.nn.Module, x: FloatArray) -> FloatArray:
    """Return the logits (n, K) of inputs as they are."""
    device = next(network.parameters()).device
    with torch.inference_mode():
        batches = torch.from_numpy(x).split(BATCH_SIZE)
        found = torch.cat([network(batch.to(device)) for batch in batches])
    result: FloatArray = found.float().cpu().numpy()
    return result


def blocks(n: int, size: int) -> list[Ids]:
    return np.split(np.arange(n), range(size, n, size))


def threads(n_threads: int) -> ThreadPoolExecutor:
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
