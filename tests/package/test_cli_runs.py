"""``bincp sample`` and the commands that take its runs, each in a process or by `main`."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bincp import BinCP, sampling  # noqa: E402
from bincp.cli import main  # noqa: E402
from bincp.cli._sample import _factory  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

CODE = """
import torch
def network():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)
def points():
    torch.manual_seed(1)
    x = 3 * torch.randn(90, 4)
    return x, network()(x).argmax(1)
def images():
    return points()[0][:20]
"""
NOISE = ["--smoothing", "gaussian:sigma=0.5"]
SAMPLE = ["sample", *NOISE, "--model", "runcode:network", "--n-samples", "16", "--seed", "9"]
CALIBRATION = [*SAMPLE, "--data", "runcode:points", "--phase", "calibration"]
TEST = [*SAMPLE, "--data", "runcode:points", "--phase", "test"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the code of a user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.delitem(sys.modules, "runcode", raising=False)
    (tmp_path / "runcode.py").write_text(CODE)
    return tmp_path


def done(capsys, *argv):
    assert main([*map(str, argv)]) == 0
    return capsys.readouterr()


def failed(capsys, *argv, status=1):
    assert main([*map(str, argv)]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_sample_calibrate_and_predict(folder, capsys):
    done(capsys, *CALIBRATION, "--out", "calibration")
    rule = ["--ball", "l2:r=0.1", "--out", "rule.json"]
    told = json.loads(done(capsys, "calibrate", "calibration", *NOISE, *rule, "--json").out)
    stored = sampling.open("calibration")
    again = BinCP.load("rule.json")
    assert again.tau_ == told["tau"]
    assert told["n_calibration"] == 90
    assert told["n_classes"] == 3
    for i, options in enumerate((["--rules", "rule.json"], ["--keep", "scores"])):
        done(capsys, *TEST, *options, "--out", f"test{i}")
        sets = ["--out", f"sets{i}.npy"]
        said = json.loads(done(capsys, "predict", "rule.json", f"test{i}", *sets, "--json").out)
        found = np.load(f"sets{i}.npy")
        assert said["coverage"] == found[np.arange(90), stored.labels()].mean()
    assert np.array_equal(np.load("sets0.npy"), found)
    assert np.array_equal(again.predict_set(sampling.open("test1").values()), found)


def test_a_run_that_is_read_is_not_written_to(folder, capsys):
    done(capsys, *CALIBRATION, "--out", "run")
    files = {path.name: path.read_bytes() for path in (folder / "run").iterdir()}
    rule = [*NOISE, "--ball", "l2:r=0.1", "--out"]
    for name in (*files, "other.json"):
        err = failed(capsys, "calibrate", "run", *rule, f"run/{name}", status=2)
        assert f"must not be in the folder of a run that is read, got run/{name}" in err
    done(capsys, "calibrate", "run", *rule, "rule.json")
    (part,) = (name for name in files if name.startswith("00000-"))
    err = failed(capsys, "predict", "rule.json", "run", "--out", f"run/{part}", status=2)
    assert "must not be in the folder of a run that is read" in err
    assert {path.name: path.read_bytes() for path in (folder / "run").iterdir()} == files


def test_plan_takes_its_numbers_from_a_run(folder, capsys):
    done(capsys, *CALIBRATION, "--out", "calibration", "--parts", "2", "--shard", "0/2")
    ball = ["--ball", "l2:r=0.1", "--json"]
    told = json.loads(done(capsys, "plan", "calibration", *NOISE, *ball).out)
    numbers = ["-n", "90", "-m", "16", "--n-classes", "3"]
    assert told == json.loads(done(capsys, "plan", *NOISE, *ball, *numbers).out)
    assert "-n must be left out with a run" in failed(
        capsys, "plan", "calibration", *NOISE, *ball, "-n", "90", status=2
    )
    assert "arguments are required: -n, -m; or RUN" in failed(
        capsys, "plan", *NOISE, *ball, status=2
    )
    other = ["--smoothing", "gaussian:sigma=0.25"]
    assert "must have the noise" in failed(capsys, "plan", "calibration", *other, *ball)


def test_a_rule_that_stops_early_decides_in_a_run(folder, capsys):
    done(capsys, *CALIBRATION, "--out", "calibration")
    rule = ["--ball", "l2:r=0.1", "--passes", "auto", "--out", "rule.json"]
    done(capsys, "calibrate", "calibration", *NOISE, *rule)
    assert BinCP.load("rule.json").boundaries_ is not None
    kept = ["--keep", "decisions", "--rules", "rule.json"]
    done(capsys, *TEST, *kept, "--out", "decisions")
    done(capsys, *TEST, "--keep", "scores", "--out", "scores")
    for name in ("decisions", "scores"):
        done(capsys, "predict", "rule.json", name, "--out", f"{name}.npy")
    assert np.array_equal(np.load("decisions.npy"), np.load("scores.npy"))


def test_the_run_is_that_of_python(folder, capsys):
    done(capsys, *CALIBRATION, "--out", "run", "--parts", "3")
    sys.path.insert(0, "")
    import runcode

    x, y = runcode.points()
    run = sampling.run(
        "again", runcode.network(), x, Gaussian(0.5), 16, phase="calibration", labels=y, seed=9
    )
    assert np.array_equal(sampling.open("run").values(), run.values())


def test_workers_by_hand_and_by_torchrun_make_their_parts(folder, capsys, monkeypatch):
    out = done(capsys, *CALIBRATION, "--out", "run", "--shard", "1/2", "--parts", 4)
    assert "owed by other workers" in out.out
    assert "worker 1 of 2 makes 2 of 4 parts" in out.err
    err = failed(capsys, "calibrate", "run", *NOISE, "--ball", "l2:r=0.1", "--out", "rule.json")
    assert "00000-of-00004.npz: the run is not complete, 2 of its 4 parts are missing" in err
    assert not (folder / "rule.json").exists()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    out = done(capsys, *CALIBRATION, "--out", "run")
    assert "complete, 4 parts" in out.out
    assert "by RANK and WORLD_SIZE" in out.err


def test_code_in_the_working_folder_is_found_where_python_does_not_look(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    assert _factory("data", "runcode:images")().shape == (20, 4)


def test_what_does_not_fit_is_refused(folder, capsys):
    done(capsys, *CALIBRATION, "--out", "run")
    err = failed(capsys, *CALIBRATION, "--out", "run", "--first-id", 5)
    assert "begun with other arguments: `first_id` was 0, got 5" in err
    noise = ["--smoothing", "gaussian:sigma=0.25"]
    err = failed(capsys, "calibrate", "run", *noise, "--ball", "l2:r=0.1", "--out", "rule.json")
    assert "noise of the certificate" in err
    for option in (["--labels", "y.npy"], ["--key", "x"], ["--n-classes", 4]):
        rule = [*NOISE, "--ball", "l2:r=0.1", "--out", "rule.json", *option]
        assert option[0] in failed(capsys, "calibrate", "run", *rule, status=2)
    done(capsys, *SAMPLE, "--data", "runcode:images", "--phase", "calibration", "--out", "bare")
    rule = [*NOISE, "--ball", "l2:r=0.1", "--out", "rule.json", "--mondrian"]
    assert "bare: --mondrian needs a run with labels" in failed(capsys, "calibrate", "bare", *rule)
    assert not (folder / "rule.json").exists()
    for data in ("runcode", "runcode:", "runcode:nothing", "..:points", "./runcode:points"):
        given = [*SAMPLE, "--data", data, "--phase", "test", "--out", "other"]
        assert "--data must" in failed(capsys, *given, status=2)
    assert "--shard" in failed(capsys, *CALIBRATION, "--out", "o", "--shard", "2/2", status=2)
    assert not (folder / "other").exists()


@pytest.mark.slow
def test_two_processes_under_torchrun(folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", "-m", "bincp", *CALIBRATION]
    subprocess.run([*command, "--out", "run", "--parts", "5"], env=environment, check=True)
    whole = [sys.executable, "-m", "bincp", *CALIBRATION, "--out", "whole"]
    subprocess.run(whole, env=environment, check=True)
    assert sampling.open("run").missing() == []
    assert sampling.open("run").values().tobytes() == sampling.open("whole").values().tobytes()
