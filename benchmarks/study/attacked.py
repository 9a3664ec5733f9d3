"""Test scores of the study's inputs after an attack within a ball.

The attack knows the model, and not the noise of the test: it lowers the smoothed score of the true
label over noise of its own. Images are attacked by `bincp.attacks.pgd`, with grey levels that stay
in [0, 1]. Nodes are attacked by the gradient of `benchmarks.graphs`, which flips attributes of any
node that the target's score depends on.
"""

import numpy as np
import torch

from benchmarks.graphs import HOPS, Attack, FieldNetwork
from benchmarks.study import networks
from benchmarks.study.scores import FloatArray, GraphTask, ImageTask
from bincp.attacks import pgd
from bincp.balls import Ball, Flips
from bincp.sampling import Graph, sample_scores
from bincp.smoothing import GraphFlip

__all__ = ["attacked_scores"]

SEED = 1  # of the attacker's noise; the networks and the test noise have others
STEPS, DRAWS = 10, 8


def attacked_scores(
    task: ImageTask | GraphTask, network: torch.nn.Module, ball: Ball, n: int, n_draws: int
) -> FloatArray:
    """Return the scores (n, K, n_draws) of the first n inputs, each attacked within the ball."""
    if isinstance(task, ImageTask):
        return _of_images(task, network, ball, n, n_draws)
    return _of_nodes(task, network, ball, n, n_draws)


def _of_images(
    task: ImageTask, network: networks.ImageNetwork, ball: Ball, n: int, n_draws: int
) -> FloatArray:
    x = pgd(
        networks.for_sampling(network, torch.float32),
        task.images.inputs(task.images.held_out[:n]),
        task.labels[:n],
        task.smoothing,
        ball,
        seed=SEED + task.setting.seed,
        n_samples=DRAWS,
        steps=STEPS,
        box=(0, 1),
    )
    return sample_scores(
        task.for_sampling(network), x, task.smoothing, n_draws, phase="test", seed=task.setting.seed
    )


def _of_nodes(
    task: GraphTask, network: networks.GraphNetwork, ball: Flips, n: int, n_draws: int
) -> FloatArray:
    graph = task.graph
    model = FieldNetwork(network).eval()
    scheme = GraphFlip(*graph.attributes.shape, attributes=task.smoothing)
    attack = Attack(model, graph, scheme, ball)
    found = []
    for node, label in zip(task.nodes[:n], task.labels, strict=False):
        bits = attack.by_gradient(int(node), int(label))
        target = Graph(graph.adjacency, bits).nodes([node], hops=HOPS)
        draw = {"phase": "test", "seed": task.setting.seed}
        found.append(sample_scores(model, target, scheme, n_draws, **draw)[0])
    return np.stack(found)
