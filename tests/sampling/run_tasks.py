"""Runs that the tests of runs on disk kill: imported by them, and by the processes they start."""

import hashlib

import numpy as np
import torch

from bincp.sampling import run
from bincp.smoothing import Gaussian

N, M, K = 14, 6, 3
X = torch.linspace(-1, 1, 4 * N).reshape(N, 4)
Y = np.arange(N) % K
SEED = 2**63 + 1


def network():
    """Return a model whose last bits depend on the rows of its batch."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 33), torch.nn.ReLU(), torch.nn.Linear(33, K))


MODEL = network()


def sample(path, **options):
    """Sample a small run; the default has 4 parts."""
    given = {"phase": "calibration", "labels": Y, "seed": SEED, "parts": 4, "batch_size": 8}
    given |= {"shard": (0, 1)} | options
    data = {"model": given.pop("model", MODEL), "x": given.pop("x", X)}
    scheme, m = given.pop("smoothing", Gaussian(0.5)), given.pop("n_samples", M)
    return run(path, data["model"], data["x"], scheme, m, **given)


def files(path):
    """Return the digest of each file of a folder, temporary files included."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in path.iterdir()}
