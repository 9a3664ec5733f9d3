"""Runs by a local Ray, some of whose processes die; writes what came of each as JSON."""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import ray
import torch
from run_tasks import files

from bincp.sampling import open as open_run
from bincp.sampling import run, run_on_ray
from bincp.smoothing import Gaussian

N, M, K = 40, 6, 3
X = torch.linspace(-1, 1, 4 * N).reshape(N, 4)
Y = np.arange(N) % K
OPTIONS = {"phase": "calibration", "seed": 7, "parts": 5, "batch_size": 8}
DRIVER = os.getpid()


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 33), torch.nn.ReLU(), torch.nn.Linear(33, K))


MODEL = network()


def dataset(x=X, ids=None):
    order = np.random.default_rng(0).permutation(len(x))
    ids = np.arange(len(x)) if ids is None else ids
    rows = [{"id": int(ids[i]), "x": x[i].numpy(), "label": int(Y[i])} for i in order]
    return ray.data.from_items(rows, override_num_blocks=3)


def plain(path, **options):
    given = {"labels": Y, "shard": (0, 1)} | OPTIONS | options
    return run(path, given.pop("model", MODEL), X, Gaussian(0.5), M, **given)


def on_ray(path, x=X, model=MODEL, workers=2, **options):
    labels = None if isinstance(x, ray.data.Dataset) else Y
    given = OPTIONS | options
    return run_on_ray(path, model, x, Gaussian(0.5), M, workers=workers, labels=labels, **given)


def error_of(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except Exception as error:  # the tests look at its text
        return str(error)
    return None


def dies_once(folder, number):
    """Return a model that kills the first processes of Ray that evaluate it, so many of them."""

    def model(x):
        if os.getpid() != DRIVER:
            for i in range(number):
                try:
                    os.close(os.open(folder / f"died-{i}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return MODEL(x)

    return model


def values(root):
    expected = files(plain(root / "plain").path)
    arrays = on_ray(root / "arrays")
    shuffled = on_ray(root / "shuffled", dataset())
    return {
        "arrays": files(arrays.path) == expected,
        "dataset": files(shuffled.path) == expected,
    }


def deaths(root):
    expected = files(plain(root / "plain", model=dies_once(root, 0), model_id="one").path)
    found = {}
    for name, x in (("arrays", X), ("dataset", dataset())):
        marks = root / f"marks-{name}"
        marks.mkdir()
        on_ray(root / name, x, dies_once(marks, 2), model_id="one")
        died = len(list(marks.iterdir()))
        found[name] = {"died": died, "same": files(root / name) == expected}
    marks = root / "marks-always"
    marks.mkdir()
    always = error_of(on_ray, root / "always", X, dies_once(marks, 10**6), workers=1, model_id="o")
    return {**found, "always": always}


def continued(root):
    place = root / "run"
    plain(place)
    expected = files(place)
    (place / "00001-of-00005.npz").unlink()
    (place / "00003-of-00005.npz").unlink()
    left = files(place)
    other = X.clone()
    other[1] += 1  # none of the 16 that the manifest compares
    found = {}
    for name, x in (("arrays", other), ("dataset", dataset(other))):
        found[name] = error_of(on_ray, place, x)
        found[f"{name} changed"] = files(place) != left
    on_ray(place, dataset())
    return {**found, "same": files(place) == expected}


def refusals(root):
    twice = np.arange(N)
    twice[3] = 4

    def nan(x):
        return torch.full((len(x), K), torch.nan if os.getpid() != DRIVER else 0.0)

    torch.set_float32_matmul_precision("high")
    precision = error_of(on_ray, root / "precision")
    torch.set_float32_matmul_precision("highest")
    nan_scores = error_of(on_ray, root / "nan", model=nan, model_id="one")
    return {
        "twice": error_of(on_ray, root / "twice", dataset(ids=twice)),
        "beyond": error_of(on_ray, root / "beyond", dataset(ids=np.arange(N) + 1)),
        "columns": error_of(on_ray, root / "columns", dataset().drop_columns(["id"])),
        "room": error_of(on_ray, root / "room", dataset(), workers=3),
        "nan": nan_scores,
        "missing": len(open_run(root / "nan").missing()),
        "precision": precision,
    }


def main():
    torch.set_num_threads(1)  # as in an actor
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    what = {"values": values, "deaths": deaths, "continued": continued, "refusals": refusals}
    folder = Path(sys.argv[2])
    (folder / "told.json").write_text(json.dumps(what[sys.argv[1]](folder)))


if __name__ == "__main__":
    main()
