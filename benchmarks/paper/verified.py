"""Methods that need bounds on the network itself: VRCP with interval bounds, Lip-RCP.

Interval bounds and products of norms say nothing about networks of many layers that were not
trained for them, so these methods get a perceptron with one hidden layer, trained with a little
noise; it is evaluated without any. Next to them runs BinCP on the data set's smoothed network, for
the same balls; `certify` converts linf radii to l2.
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
from benchmarks.paper.sampling import Cache, inputs
from benchmarks.paper.settings import BASE, Dataset
from benchmarks.paper.splits import Splits
from benchmarks.study import networks, scores
from bincp import balls, baselines, smoothing

__all__ = ["fill_verified", "lipschitz_of", "run_verified"]

Array = npt.NDArray[Any]
WIDTH, N_EPOCHS, MAX_RATE, SEED = 64, 20, 0.05, 0
TRAINING_NOISE = smoothing.Gaussian(0.1)
PERCEPTRON = {  # the record of files that depend on this network
    "width": WIDTH,
    "epochs": N_EPOCHS,
    "max_rate": MAX_RATE,
    "seed": SEED,
    "training_noise": repr(TRAINING_NOISE),
}
# Of the probability of a label in the logits: |gradient| = p sqrt((1 - p)^2 + sum of the other
# p_k^2) <= sqrt(2) p (1 - p).
SOFTMAX_LIPSCHITZ = 2**0.5 / 4
ROUNDING = 1 + 1e-9  # of singular values in double precision, generously


def lipschitz_of(network: nn.Sequential) -> float:
    """Return an upper bound on the l2 Lipschitz constant of the probability of any label."""
    product = SOFTMAX_LIPSCHITZ
    for layer in network:
        if isinstance(layer, nn.Linear):
            product *= float(torch.linalg.matrix_norm(layer.weight.detach().double(), 2)) * ROUNDING
    return product


def fill_verified(
    task: scores.ImageTask, dataset: Dataset, folder: Path, report: Callable[[str], None]
) -> None:
    """Make bounds (2, n, K) at each radius, scores and the constant, if they are not there yet."""
    cache = Cache(folder, task.setting.name)
    x = torch.from_numpy(inputs(task, task.setting.n_inputs))
    n, n_classes = cache.load("test").shape[:2]
    network = _perceptron(task, x[0].numel(), n_classes, folder, report)

    def bounds(r: float) -> Array:
        logits = baselines.interval_bounds(network, x.double() - r, x.double() + r)
        return torch.stack(baselines.tps_bounds(*logits)).numpy()

    def plain() -> Array:
        return network(x).softmax(1).numpy()

    with torch.inference_mode():
        for r in dataset.linf_radii:
            shape, settings = (2, n, n_classes), {**PERCEPTRON, "radius": r}
            cache.make(f"bounds-{r:g}", shape, lambda r=r: bounds(r), report, settings)
        cache.make("plain", (n, n_classes), plain, report, PERCEPTRON)
        constant = lipschitz_of(network)
        cache.make("lipschitz", (1,), lambda: np.array([constant]), report, PERCEPTRON)


def _perceptron(
    task: scores.ImageTask, n_in: int, n_out: int, folder: Path, report: Callable[[str], None]
) -> nn.Sequential:
    torch.manual_seed(SEED)
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(n_in, WIDTH), nn.ReLU(), nn.Linear(WIDTH, n_out)
    )
    path = folder / f"{task.setting.name}.perceptron.pt"
    if path.exists():
        network.load_state_dict(torch.load(path, weights_only=True))
    else:
        options = {"n_epochs": N_EPOCHS, "max_rate": MAX_RATE, "seed": SEED, "report": report}
        networks.train_images(network, task.images, TRAINING_NOISE, **options)
        scores.save_network(path, network)
    return network.eval()


def run_verified(name: str, dataset: Dataset, folder: Path, n_splits: int) -> list[Row]:
    """Return the rows of the experiment: linf radii for VRCP, l2 radii for Lip-RCP."""
    setting = dataset.tasks[0].setting
    cache = Cache(folder, setting.name)
    samples = Samples.load(folder, setting.name, "tps", dataset.n_tuning)
    kept = samples.n_inputs
    plain = np.asarray(cache.load("plain", PERCEPTRON)[:kept], np.float64)
    own = np.arange(kept), samples.labels
    splits = Splits(kept, BASE.n, n_splits)
    constant = float(cache.load("lipschitz", PERCEPTRON)[0])
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
    for r in dataset.linf_radii:
        bounds = cache.load(f"bounds-{r:g}", {**PERCEPTRON, "radius": r})
        lower, upper = np.asarray(bounds[:, :kept])
        add("VRCP-I, interval bounds", f"linf {r:g}", Fitted(plain[own], upper, rank))
        add("VRCP-C, interval bounds", f"linf {r:g}", Fitted(lower[own], plain, rank))
    for r in dataset.l2_radii:
        lip = baselines.LipRCP(constant, r, alpha=alpha, bounds=(0, 1))
        moved = lip.calibration_conformity(plain[own])
        add("Lip-RCP, spectral norms", f"l2 {r:g}", Fitted(moved, plain, rank))
    tested = [(f"linf {r:g}", balls.Linf(r, dataset.n_pixels)) for r in dataset.linf_radii]
    tested += [(f"l2 {r:g}", balls.L2(r)) for r in dataset.l2_radii]
    for label, ball in tested:
        certificate = bincp.certify(smoothing.Gaussian(*setting.noise), ball)
        problem = Problem(samples, certificate, label, BASE.coverage, BASE.n, BASE.m, BASE.eta)
        add(mixture.name, label, fit_quietly(mixture, problem))
    return rows
