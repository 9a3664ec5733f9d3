"""Robust prediction sets for the nodes of Cora-ML: attacked, with own noise and with shared noise.

``python -m benchmarks.graphs --data DIR`` takes some minutes of one core. ``cora_ml.npz`` is in
github.com/abojchevski/sparse_smoothing; the largest component has 2,810 nodes and 7,981 edges.

A graph convolutional network of two layers is trained on 140 nodes with flipped attributes. The
other nodes are split at random, many times, into 200 calibration nodes and test nodes. The first
table holds the seconds of 200 nodes x 64 draws, each node with noise of its own. The second one
compares the rules: coverage of clean and of attacked nodes, and labels in a set.

The attack knows the model and the graph, and not the noise of the test. For each target it flips
bits within the ball, in the field of the target: those of the largest gradient of the smoothed
score of the true label, over noise of its own. Beside it stands a random search, which draws some
candidates from the field, and keeps the best.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

import bincp
from benchmarks.study import data, networks
from bincp.balls import Flips
from bincp.calibration._shared_draws import as_shared
from bincp.sampling import Graph, sample_scores
from bincp.smoothing import GraphFlip, SparseFlip

Array = npt.NDArray[Any]
FLIPS = SparseFlip(0.01, 0.6)
BALL = Flips(additions=0, deletions=3)
HOPS, M, N_CALIBRATION, N_SPLITS = 2, 64, 200, 100
ALPHA = "0.1"


class FieldNetwork(torch.nn.Module):
    """A `GraphNetwork` on fields: the layers are those of the network, degrees are of the graph."""

    def __init__(self, network: networks.GraphNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Any) -> torch.Tensor:
        """Return the logits of all nodes of a batch."""
        weight = self.network.embed.weight.T
        embedded = functional.embedding_bag(batch.columns, weight, batch.offsets, mode="sum")
        return self.of_embedded(batch, embedded)

    def of_embedded(self, batch: Any, embedded: torch.Tensor) -> torch.Tensor:
        """Return the logits of nodes with embedded attributes."""
        hidden = self.network.hidden(_pass_on(batch, embedded))
        return _pass_on(batch, self.network.head(hidden))


def _pass_on(batch: Any, values: torch.Tensor) -> torch.Tensor:
    scale = (batch.degree + 1).to(values.dtype).rsqrt()[:, None]
    source, target = batch.edge_index
    scaled = values * scale
    return scale * scaled.index_add(0, target, scaled[source])


@dataclass
class Attack:
    """Flips of attribute bits in the field of a target, within the ball."""

    model: FieldNetwork
    task: data.Graph
    scheme: GraphFlip
    ball: Flips = BALL
    n_draws: int = 32

    def by_gradient(self, target: int, label: int) -> Array:
        """Return attributes whose bits of the largest gradient are flipped."""
        field = np.flatnonzero(self._field(target))
        bits = self.task.attributes[field]
        total = torch.zeros(bits.shape, dtype=torch.float64)
        for batch in self._batches(self.task.attributes, target):
            x = batch.x.requires_grad_()
            logits = self.model.of_embedded(batch, x @ self.model.network.embed.weight.T)
            logits[batch.target].softmax(1)[:, label].mean().backward()
            rows = torch.from_numpy(np.searchsorted(field, batch.node.numpy()))
            total.index_add_(0, rows, x.grad.double())
        gradient, changed = total.numpy(), bits.copy()
        for value, number in ((1, self.ball.deletions), (0, self.ball.additions)):
            # Deleting lowers the score by the gradient, adding raises it.
            loss = np.where(bits == value, gradient if value else -gradient, -np.inf)
            best = np.argsort(loss, axis=None)[::-1][:number]
            changed.flat[best[loss.flat[best] > 0]] = 1 - value
        attacked = self.task.attributes.copy()
        attacked[field] = changed
        return attacked

    def by_search(self, target: int, label: int, n_tries: int) -> Array:
        """Return the attributes that lower the score most, of so many random flips."""
        rng = np.random.default_rng(target)
        bits = self.task.attributes
        field = np.flatnonzero(self._field(target))
        tried = [bits]
        for _ in range(n_tries):
            one = bits.copy()
            for value, number in ((1, self.ball.deletions), (0, self.ball.additions)):
                row, column = np.nonzero(bits[field] == value)
                chosen = rng.choice(len(row), min(number, len(row)), replace=False)
                one[field[row[chosen]], column[chosen]] = 1 - value
            tried.append(one)
        return min(tried, key=lambda one: self.score(one, target, label))

    def score(self, bits: Array, target: int, label: int) -> float:
        """Return the smoothed score of a label, over noise of the attacker."""
        with torch.no_grad():
            values = [
                self.model(batch)[batch.target].softmax(1)[:, label].mean()
                for batch in self._batches(bits, target)
            ]
        return float(torch.stack(values).mean())

    def _field(self, target: int) -> npt.NDArray[np.bool_]:
        reached = np.zeros(len(self.task.labels))
        reached[target] = 1
        for _ in range(HOPS):
            reached = reached + self.task.adjacency @ reached
        return reached > 0

    def _batches(self, bits: Array, target: int) -> list[Any]:
        seen: list[Any] = []

        def spy(batch: Any) -> torch.Tensor:
            seen.append(batch)
            return torch.zeros(len(batch.node), 1)

        nodes = Graph(self.task.adjacency, bits).nodes([target], hops=HOPS)
        sample_scores(spy, nodes, self.scheme, self.n_draws, phase="tuning", seed=1)
        return seen[2:]  # the first two compare the field with the whole graph


def seconds(task: data.Graph, model: FieldNetwork, scheme: GraphFlip, *, shared: bool) -> float:
    """Return the CPU seconds of 200 calibration nodes x 64 draws."""
    nodes = task.held_out[:N_CALIBRATION]
    start = time.process_time()
    graph = Graph(task.adjacency, task.attributes)
    sample_scores(
        model,
        graph.nodes(nodes, hops=HOPS, shared=shared),
        scheme,
        M,
        phase="calibration",
        labels=task.labels[nodes],
    )
    return time.process_time() - start


def rules() -> dict[str, tuple[bool, dict[str, str]]]:
    """Return the rules by name: whether calibration noise is shared, and the settings."""
    bounds = {"correction": "clopper-pearson", "eta": "0.01"}
    return {
        "own noise, mixture": (False, {"correction": "mixture"}),
        "shared noise, shared-draws": (True, {"correction": "shared-draws"}),
        "shared noise, two bounds": (True, {**bounds, "union": "two-bounds"}),
        "shared noise, bounds of the paper": (True, {**bounds, "union": "per-bound"}),
    }


def evaluate(task: data.Graph, scores: dict[str, Array], attacked: dict[str, Array]) -> list[str]:
    """Return the rows of the table: means over random splits."""
    labels = task.labels[task.held_out[: len(scores["test"])]]
    certificate = bincp.certify(_scheme(task), BALL)
    n_attacked = len(attacked["gradient"])  # the same nodes in all columns
    rows = []
    for name, (shared, settings) in rules().items():
        found: dict[str, list[float]] = {}
        for split in range(N_SPLITS):
            order = np.random.default_rng(split).permutation(len(labels))
            calibration, test = order[:N_CALIBRATION], order[N_CALIBRATION:]
            own = scores["shared" if shared else "own"][calibration]
            rule = bincp.BinCP(certificate, alpha=ALPHA, **settings)  # type: ignore[arg-type]
            rule.calibrate(as_shared(own) if shared else own, n_classes=scores["test"].shape[1])
            for kind, values in {"clean": scores["test"][:n_attacked], **attacked}.items():
                kept = test[test < len(values)]
                sets = rule.predict_set(values[kept])
                found.setdefault(f"{kind} coverage", []).append(
                    sets[np.arange(len(kept)), labels[kept]].mean()
                )
                found.setdefault(f"{kind} size", []).append(sets.sum(1).mean())
        kinds = ("clean", *attacked)
        means = [
            np.mean(found[f"{kind} {what}"]) for kind in kinds for what in ("coverage", "size")
        ]
        rows.append(" | ".join([f"| {name}", *(f"{mean:.3f}" for mean in means)]) + " |")
    return rows


def _scheme(task: data.Graph) -> GraphFlip:
    return GraphFlip(*task.attributes.shape, attributes=FLIPS)


def costs(task: data.Graph, model: FieldNetwork) -> list[str]:
    """Return the rows of the table of seconds."""
    size = task.attributes.shape
    schemes = {
        "attributes (.01, .6)": GraphFlip(*size, attributes=FLIPS),
        "adjacency (.0001, .4)": GraphFlip(*size, adjacency=SparseFlip(1e-4, 0.4)),
        "adjacency (.001, .4)": GraphFlip(*size, adjacency=SparseFlip(1e-3, 0.4)),
        "both (.0001, .6), (.01, .6)": GraphFlip(
            *size, adjacency=SparseFlip(1e-4, 0.6), attributes=FLIPS
        ),
    }
    rows = []
    for name, scheme in schemes.items():
        own, shared = (seconds(task, model, scheme, shared=shared) for shared in (False, True))
        rows.append(f"| {name} | {own:.1f} | {shared:.1f} |")
    return rows


def main() -> None:
    """Train, sample, attack, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--data", type=Path, required=True, help="folder with cora_ml.npz")
    parser.add_argument("--nodes", type=int, default=400, help="held-out nodes that are split")
    parser.add_argument("--attacked", type=int, default=50, help="how many of them are attacked")
    parser.add_argument("--tries", type=int, default=4, help="tries of the random search")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    task = data.cora_ml(arguments.data)
    torch.manual_seed(0)
    network = networks.GraphNetwork(task.attributes.shape[1], 32, int(task.labels.max()) + 1)
    quiet: Callable[[str], None] = lambda line: None  # noqa: E731
    networks.train_graph(network, task, FLIPS, n_epochs=150, max_rate=0.01, seed=0, report=quiet)
    model, scheme = FieldNetwork(network).eval(), _scheme(task)
    print("| noise | own, seconds | shared, seconds |\n|---|---|---|")
    print("\n".join(costs(task, model)), flush=True)

    nodes = task.held_out[: arguments.nodes]
    graph, labels = Graph(task.adjacency, task.attributes), task.labels[nodes]
    own, shared = (graph.nodes(nodes, hops=HOPS, shared=shared) for shared in (False, True))
    draw: dict[str, Any] = {"phase": "calibration", "labels": labels}
    scores = {
        "own": sample_scores(model, own, scheme, M, **draw),
        "shared": np.asarray(sample_scores(model, shared, scheme, M, **draw)),
        "test": sample_scores(model, own, scheme, M, phase="test", seed=2),
    }
    attack = Attack(model, task, scheme)
    attacked: dict[str, list[Array]] = {"gradient": [], "search": []}
    for node, label in zip(nodes[: arguments.attacked], labels, strict=False):
        worlds = {
            "gradient": attack.by_gradient(int(node), int(label)),
            "search": attack.by_search(int(node), int(label), arguments.tries),
        }
        for kind, bits in worlds.items():
            target = Graph(task.adjacency, bits).nodes([node], hops=HOPS)
            attacked[kind].append(sample_scores(model, target, scheme, M, phase="test", seed=2)[0])
    found = {kind: np.stack(values) for kind, values in attacked.items()}
    print("\n| rule | clean coverage | size | gradient coverage | size | search coverage | size |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(evaluate(task, scores, found)))


if __name__ == "__main__":
    main()
