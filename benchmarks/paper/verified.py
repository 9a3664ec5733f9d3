"""Methods that need bounds on the network itself: VRCP with interval bounds, Lip-RCP.

Both use the network of the data set's first setting, without noise. The Lipschitz constant is a
product of spectral norms, those of convolutions from their whole matrices. Next to them runs BinCP
on the same network with noise, for the same ball; `certify` converts linf radii to l2.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

import bincp
from benchmarks.paper.methods import METHODS, Fitted, Problem, fit_quietly
from benchmarks.paper.runs import Row
from benchmarks.paper.samples import Samples
from benchmarks.paper.sampling import Cache, inputs, load_network
from benchmarks.paper.settings import BASE, Dataset
from benchmarks.paper.splits import Splits
from benchmarks.study import networks, scores
from bincp import balls, baselines, smoothing

__all__ = ["as_sequential", "fill_verified", "lipschitz_of", "run_verified"]

Array = npt.NDArray[Any]
# Of the probability of a label in the logits: |gradient| = p sqrt((1 - p)^2 + sum of the other
# p_k^2) <= sqrt(2) p (1 - p).
SOFTMAX_LIPSCHITZ = 2**0.5 / 4
ROUNDING = 1 + 1e-6  # of singular values in double precision, generously


def as_sequential(network: networks.ImageNetwork, image: tuple[int, int]) -> nn.Sequential:
    """Return a plain float32 network for images (b, channels, height, width), as verifiers want."""
    folded = networks.for_sampling(network, torch.float32)
    layers: list[nn.Module] = []
    for unit in folded.body:
        if not isinstance(unit, networks.ConvUnit):
            raise ValueError(f"`network` must be of kind plain, got {type(unit).__name__}")
        layers += [unit.conv, nn.ReLU()]
        image = tuple((size - 1) // unit.conv.stride[0] + 1 for size in image)
    return nn.Sequential(*layers, nn.AvgPool2d(image), nn.Flatten(), folded.head).eval()


def lipschitz_of(network: nn.Sequential, shape: tuple[int, ...]) -> float:
    """Return an upper bound on the l2 Lipschitz constant of the probability of any label.

    Parameters
    ----------
    network : torch.nn.Sequential
        Of `as_sequential`.
    shape : tuple of int
        Of an input, (channels, height, width).
    """
    product = SOFTMAX_LIPSCHITZ
    x = torch.zeros(1, *shape, dtype=torch.float64)
    for layer in network.double():
        if isinstance(layer, nn.Conv2d | nn.Linear | nn.AvgPool2d):
            constant = layer(x)
            units = torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape[1:])
            columns = torch.cat([layer(block) - constant for block in units.split(256)])
            # The smaller Gram matrix: its largest eigenvalue is the squared spectral norm.
            matrix = columns.reshape(len(units), -1)
            gram = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
            product *= float(torch.linalg.eigvalsh(gram)[-1].clamp(min=0).sqrt()) * ROUNDING
        x = layer(x)
    network.float()
    return product


def fill_verified(
    task: scores.ImageTask, dataset: Dataset, folder: Path, report: Callable[[str], None]
) -> None:
    """Make what is not there yet: bounds (2, n, K) at each radius, scores, and the constant."""
    cache = Cache(folder, task.setting.name)
    x = torch.from_numpy(inputs(task, task.setting.n_inputs)).permute(0, 3, 1, 2)
    n, n_classes = cache.load("test").shape[:2]
    trained: Any = load_network(task, folder).cpu()
    network = as_sequential(trained, (int(x.shape[2]), int(x.shape[3])))

    def bounds(r: float) -> Array:
        results = []
        for block in x.double().split(200):
            logits = baselines.interval_bounds(network, block - r, block + r)
            results.append(torch.stack(baselines.tps_bounds(*logits)))
        return torch.cat(results, dim=1).numpy()

    with torch.inference_mode():
        for r in dataset.verified_radii:
            make = bounds
            cache.make(f"bounds-{r:g}", (2, n, n_classes), lambda r=r: make(r), report)
        plain = lambda: network(x).softmax(1).numpy()  # noqa: E731
        cache.make("plain", (n, n_classes), plain, report)
        constant = lambda: np.array([lipschitz_of(network, tuple(x.shape[1:]))])  # noqa: E731
        cache.make("lipschitz", (1,), constant, report)


def run_verified(name: str, dataset: Dataset, folder: Path, n_splits: int) -> list[Row]:
    """Return the rows of the experiment: linf radii for VRCP, the same as l2 radii for Lip-RCP."""
    setting = dataset.tasks[0].setting
    cache = Cache(folder, setting.name)
    samples = Samples.load(folder, setting.name, "tps", dataset.n_tuning)
    kept = samples.n_inputs
    plain = np.asarray(cache.load("plain")[:kept], np.float64)
    own = np.arange(kept), samples.labels
    splits = Splits(kept, BASE.n, n_splits)
    constant = float(cache.load("lipschitz")[0])
    mixture = next(method for method in METHODS if method.name == "BinCP, mixture")
    rows = []

    def add(method: str, ball: str, fitted: Fitted) -> None:
        rows.append(
            Row(
                dataset=name,
                setting=setting.name,
                experiment="verified",
                method=method,
                guarantee="robust",
                score="tps",
                radius=ball,
                coverage=BASE.coverage,
                n=BASE.n,
                m=BASE.m if "BinCP" in method else 0,
                p=None,
                min_count=fitted.min_count,
                seconds=0.0,
                outcome=splits.evaluate(fitted, samples.labels),
            )
        )

    alpha = 1 - Fraction(BASE.coverage)
    rank = baselines.VRCP(alpha=alpha).calibrate(plain[own][: BASE.n]).rank_
    for r in dataset.verified_radii:
        lower, upper = np.asarray(cache.load(f"bounds-{r:g}")[:, :kept])
        add("VRCP-I, interval bounds", f"linf {r:g}", Fitted(plain[own], upper, rank))
        add("VRCP-C, interval bounds", f"linf {r:g}", Fitted(lower[own], plain, rank))
        lip = baselines.LipRCP(constant, r, alpha=alpha, bounds=(0, 1))
        moved = lip._moved("true_scores", plain[own], "calibration", -1)
        add("Lip-RCP, spectral norms", f"l2 {r:g}", Fitted(moved, plain, rank))
        for label, ball in ((f"linf {r:g}", balls.Linf(r, dataset.n_pixels)), (f"l2 {r:g}", balls.L2(r))):
            certificate = bincp.certify(smoothing.Gaussian(*setting.noise), ball)
            problem = Problem(samples, certificate, label, BASE.coverage, BASE.n, BASE.m, BASE.eta)
            add(mixture.name, label, fit_quietly(mixture, problem))
    return rows
