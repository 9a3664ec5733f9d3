"""Robust sets of real labels on the diabetes data that scikit-learn brings along, under attack.

A network of two quantiles is trained on noisy inputs. The adversary moves the standardised features
of a patient by up to r in l2, against the model that he attacks and with noise of his own, so that
the progress of the disease falls out of its set. ``python -m benchmarks.diabetes`` prints the table
of RESULTS.md.
"""

from dataclasses import dataclass

import numpy as np
import torch

import bincp
from bincp.attacks import project
from bincp.balls import L2
from bincp.metrics import average_width, coverage
from bincp.regression import IntervalSets, conformity_scores, predict_sets
from bincp.sampling import RobustRegressor
from bincp.smoothing import Gaussian

ALPHA = "0.1"
SIGMA = 0.5
RADII = (0.125, 0.25, 0.5)
N_TRAIN, N_CALIBRATION = 200, 121
TAIL = 0.05  # of each quantile


@dataclass(frozen=True)
class Effort:
    """How much to compute."""

    splits: int = 100
    epochs: int = 400
    n_samples: int = 128
    steps: int = 20
    draws: int = 32


@dataclass(frozen=True)
class Row:
    """Means over the splits of one method at one radius."""

    method: str
    radius: float
    clean: float
    attacked: float
    width: float
    promised: float


def load():
    """Return the standardised features and the labels of the 442 patients."""
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True, scaled=False)
    return ((x - x.mean(0)) / x.std(0)).astype(np.float32), y


def trained(x, y, effort, seed):
    """Train a network of two quantiles, in the units of the labels, on noisy inputs."""
    torch.manual_seed(seed)
    centre, scale = float(y.mean()), float(y.std())
    body = torch.nn.Sequential(
        *(torch.nn.Linear(x.shape[1], 32), torch.nn.ReLU()),
        *(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)),
    )
    levels = torch.tensor([TAIL, 1 - TAIL])
    inputs, labels = torch.from_numpy(x), torch.from_numpy((y - centre) / scale).float()[:, None]
    optimizer = torch.optim.Adam(body.parameters(), 3e-3, weight_decay=1e-3)
    for _ in range(effort.epochs):
        missing = labels - body(inputs + SIGMA * torch.randn_like(inputs))
        loss = torch.maximum(levels * missing, (levels - 1) * missing).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return Scaled(body, centre, scale).eval()


class Scaled(torch.nn.Module):
    """A network in the units of the labels."""

    def __init__(self, body, centre, scale):
        super().__init__()
        self.body, self.centre, self.scale = body, centre, scale

    def forward(self, x):
        return self.centre + self.scale * self.body(x)


def attack(model, x, y, radius, sigma, effort, seed):
    """Move inputs inside the ball so that the mean score of the true label falls, by PGD."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.from_numpy(y).float()
    moved = torch.zeros(x.shape, dtype=torch.float64)
    for _ in range(effort.steps):
        inputs = (torch.from_numpy(x) + moved).float().requires_grad_()
        noise = torch.randn((effort.draws if sigma else 1, *x.shape), generator=generator)
        low, high = model(inputs + sigma * noise).unbind(-1)
        scores = torch.minimum(labels - low, high - labels).mean(0)
        (gradient,) = torch.autograd.grad(scores.sum(), inputs)
        norm = gradient.norm(dim=1, keepdim=True).clamp_min(1e-12)
        step = moved - (radius / 4) * (gradient / norm).double()
        moved = torch.from_numpy(project(step.numpy(), L2(radius)))
    attacked = x + moved.numpy()
    # Rounding to single precision must not leave the ball.
    rounded = attacked.astype(np.float32)
    away = np.linalg.norm(rounded.astype(np.float64) - x, axis=1)
    assert (away <= radius * (1 + 1e-5)).all()
    return rounded


def plain_sets(model, calibration, labels, tests, sigma, seed):
    """Return the sets of plain CQR, from one copy of each input, noisy or not."""
    generator = torch.Generator().manual_seed(seed)

    def predictions(x):
        inputs = torch.from_numpy(x)
        with torch.no_grad():
            noisy = inputs + sigma * torch.randn(inputs.shape, generator=generator)
            return model(noisy).numpy()[:, :, None]

    identity = bincp.certify(Gaussian(1.0), L2(0))
    rule = bincp.BinCP(identity, alpha=ALPHA, p=1, correction="none")
    rule.calibrate(conformity_scores(predictions(calibration), labels, score="cqr"))
    return [predict_sets(rule, predictions(x), score="cqr") for x in tests]


def robust_sets(model, calibration, labels, tests, radius, effort, seed):
    regressor = RobustRegressor(
        model,
        Gaussian(SIGMA),
        L2(radius * (1 + 1e-5)),
        score="cqr",
        alpha=ALPHA,
        n_samples=effort.n_samples,
        seed=seed,
    )
    regressor.calibrate(calibration, labels)
    return [regressor.predict(x) for x in tests]


def run(effort=None, radii=RADII):
    """Return the rows of the table: each method and radius, means over the splits."""
    effort = effort or Effort()
    x, y = load()
    found = {}
    for split in range(effort.splits):
        order = np.random.default_rng(split).permutation(len(y))
        train, calibration, test = np.split(order, [N_TRAIN, N_TRAIN + N_CALIBRATION])
        model = trained(x[train], y[train], effort, split)
        for radius in radii:
            sets = all_sets(model, (x, y), calibration, test, radius, effort, split)
            for method, (clean, attacked) in sets.items():
                found.setdefault((method, radius), []).append(
                    (coverage(clean, y[test]), coverage(attacked, y[test]), average_width(clean))
                )
    promises = audited(radii)
    return [
        Row(method, radius, *np.mean(values, axis=0), promises[method, radius])
        for (method, radius), values in found.items()
    ]


def all_sets(model, data, calibration, test, radius, effort, seed) -> dict[str, list[IntervalSets]]:
    """Return the sets of the clean and of the attacked test inputs, by method."""
    x, y = data
    common = model, x[calibration], y[calibration]

    def tests(sigma):
        own = attack(model, x[test], y[test], radius, sigma, effort, seed + 1000)
        return [x[test], own]

    return {
        "CQR, clean inputs": plain_sets(*common, tests(0.0), 0.0, seed),
        "CQR, one noisy draw": plain_sets(*common, tests(SIGMA), SIGMA, seed),
        "BinCP, CQR scores": robust_sets(*common, tests(SIGMA), radius, effort, seed),
    }


def audited(radii):
    """Return the coverage that each method promises under attack."""
    found = bincp.audit(Gaussian(SIGMA), L2, radii, n=N_CALIBRATION, alpha=ALPHA)
    promises = {}
    for radius, kept in zip(radii, found.coverage, strict=True):
        promises["CQR, clean inputs", radius] = 0.0
        promises["CQR, one noisy draw", radius] = float(kept)
        promises["BinCP, CQR scores", radius] = 0.9
    return promises


def table(rows):
    """Return the rows as a table in Markdown."""
    lines = [
        "| method | r | promised | clean coverage | attacked coverage | mean width |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.method} | {row.radius:g} | {row.promised:.3f} | {row.clean:.3f} "
        f"| {row.attacked:.3f} | {row.width:.0f} |"
        for row in rows
    ]
    return "\n".join(lines)
