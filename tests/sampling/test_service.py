"""The example service of the documents, where its packages are installed."""

import asyncio
import hashlib
import importlib.util
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")

from bincp.balls import L2  # noqa: E402
from bincp.sampling import RobustClassifier  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

PATH = Path(__file__).parents[2] / "docs" / "guide" / "service.py"


def service_module():
    spec = importlib.util.spec_from_file_location("service", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Slow(torch.nn.Module):
    """Answers later where the first element is large, as a network with other work would."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        if bool((x[:, 0] > 5).any()):
            time.sleep(0.01)
        if bool((x[:, 0] < -50).any()):
            raise ValueError("the model does not take this input")
        return self.scale * x


def saved(path, model=None, alpha=0.2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    x = (rng.normal(0, 0.5, (60, 3)) + 9 * np.eye(3)[y]).astype(np.float32)
    ours = RobustClassifier(model or Slow(), Gaussian(0.5), L2(0.1), alpha=alpha, n_samples=16)
    ours.calibrate(x, y).save(path)
    return ours


def served(app, steps):
    """Run steps against the app in one loop, and return what they return."""

    async def run():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://service") as client,
        ):
            return await steps(client)

    return asyncio.run(run())


@pytest.mark.parametrize("wait", [0.0, 0.02])
@pytest.mark.parametrize("max_batch", [1, 32])
def test_each_request_gets_its_own_answer(tmp_path, wait, max_batch):
    saved(tmp_path / "classifier.json")
    app = service_module().create_app(
        tmp_path / "classifier.json", Slow(), wait=wait, max_batch=max_batch
    )

    async def steps(client):
        bodies = ['{"x": [9, 0, 0]}', '{"x": [0, 9, 0]}', '{"x": [0, NaN, 0]}', '{"x": [0, 9]}']
        bodies += ['{"x": "abc"}', '{"x": [0, 0, 1e39]}'] + ['{"x": [0, 0, 9]}'] * 20
        kind = {"Content-Type": "application/json"}  # httpx itself refuses to write NaN
        posts = (client.post("/predict", content=one, headers=kind) for one in bodies)
        return await asyncio.gather(*posts)

    a, b, *bad, last = served(app, steps)
    assert (a.json()["labels"], b.json()["labels"], last.json()["labels"]) == ([0], [1], [2])
    assert [one.status_code for one in (*bad[:4], last)] == [422] * 4 + [200]
    assert all(one.json()["labels"] == [2] for one in bad[4:])


def test_an_error_of_one_request_stays_with_it(tmp_path):
    saved(tmp_path / "classifier.json")
    app = service_module().create_app(tmp_path / "classifier.json", Slow(), wait=0.05)

    async def steps(client):
        inputs = [[9, 0, 0], [-100, 0, 0], [0, 9, 0]]
        return await asyncio.gather(*(client.post("/predict", json={"x": x}) for x in inputs))

    first, bad, last = served(app, steps)
    assert (first.json()["labels"], last.json()["labels"]) == ([0], [1])
    assert (bad.status_code, bad.json()["detail"]) == (422, "the model does not take this input")


@pytest.mark.parametrize("x", [[-100, 0, 0], [9, 0, 0]])
def test_a_client_that_goes_away_takes_nothing_with_it(tmp_path, x):
    """Neither where the answer to its request is an error, nor where it is a set."""
    saved(tmp_path / "classifier.json")
    app = service_module().create_app(tmp_path / "classifier.json", Slow(), wait=0.05)

    async def steps(client):
        gone = asyncio.create_task(client.post("/predict", json={"x": x}))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0.1)
        later = client.post("/predict", json={"x": [0, 9, 0]})
        return await asyncio.wait_for(later, timeout=20)

    assert served(app, steps).json()["labels"] == [1]


def test_a_calibration_has_the_digest_of_the_file_that_it_came_from(tmp_path):
    """The file is replaced while it is read."""
    module, path = service_module(), tmp_path / "classifier.json"
    saved(path)
    old, load = path.read_bytes(), module.RobustClassifier.load

    def replaced(*given):
        loaded = load(*given)
        if path.read_bytes() == old:
            saved(path, alpha=0.3, seed=1)
        return loaded

    module.RobustClassifier.load = replaced
    try:
        made = module.Calibration.load(path, Slow())
    finally:
        module.RobustClassifier.load = load
    assert made.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert float(made.classifier.rule.alpha) == 0.3


def test_the_audit_gives_the_noise_of_each_answer(tmp_path):
    ours = saved(tmp_path / "classifier.json")
    audit = tmp_path / "audit.jsonl"
    app = service_module().create_app(tmp_path / "classifier.json", Slow(), audit=audit)
    inputs = [[9.0, 8.7, 0.0], [8.8, 9.0, 0.0], [1.0, 1.0, 1.1]]

    async def steps(client):
        posts = (client.post("/predict", json={"x": x}) for x in inputs)
        return [one.json() for one in await asyncio.gather(*posts)]

    answers = served(app, steps)
    lines = {line["id"]: line for line in map(json.loads, audit.read_text().splitlines())}
    assert set(lines) == {one["id"] for one in answers}
    for x, answer in zip(inputs, answers, strict=True):
        line = lines[answer["id"]]
        assert isinstance(line["seed"], str)
        assert line["seed"] not in json.dumps(answer)
        again = ours.reseed(int(line["seed"])).predict(np.float32([x]), indices=[line["input"]])
        assert np.flatnonzero(again.sets[0]).tolist() == answer["labels"]
    if os.name == "posix":
        assert audit.stat().st_mode & 0o777 == 0o600


def test_calibrations_are_exchanged_while_requests_wait(tmp_path):
    path = tmp_path / "classifier.json"
    saved(path)
    app = service_module().create_app(path, Slow(), wait=0.05)

    async def steps(client):
        waiting = asyncio.create_task(client.post("/predict", json={"x": [0, 9, 0]}))
        await asyncio.sleep(0.01)
        saved(path, alpha=0.3, seed=1)
        rotated = await client.post("/rotate")
        later = await client.post("/predict", json={"x": [0, 9, 0]})
        saved(path, Slow(2.0))
        other = await client.post("/rotate")
        path.write_bytes(path.read_bytes()[:-3])
        damaged = await client.post("/rotate")
        path.unlink()
        missing = await client.post("/rotate")
        last = await client.post("/predict", json={"x": [9, 0, 0]})
        return await waiting, rotated, later, other, damaged, missing, last

    waiting, rotated, later, *refused, last = served(app, steps)
    assert rotated.status_code == 200
    assert waiting.json()["labels"] == later.json()["labels"] == [1]
    assert waiting.json()["calibration"] != rotated.json()["calibration"]
    assert (
        later.json()["calibration"] == last.json()["calibration"] == rotated.json()["calibration"]
    )
    assert [one.status_code for one in refused] == [409] * 3
    assert "`model` was" in refused[0].json()["detail"]
    assert "damaged" in refused[1].json()["detail"]
    assert last.json()["labels"] == [0]
