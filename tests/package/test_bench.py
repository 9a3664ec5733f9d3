"""The benchmark: its cases cover the registry, its baselines are the same bounds."""

import json
import math
import platform

import numpy as np
import pytest

import bincp
from bincp.cli import _bench, _bench_noise, main
from bincp.cli._bench_cases import BOX_MULLER, CASES, COUNT_CASES, NOISE_CASES, NOT_DRAWN
from bincp.cli._bench_noise import device_name, noise_figure, places
from bincp.noise._samplers import sampler_of
from support import ROOT

HISTORY = sorted((ROOT / "benchmarks" / "history").glob("*.json"))
TINY = ["--size", "50", "--inputs", "1", "--bytes", "1000", "--seconds", "0.0001"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_baselines_give_the_same_bounds(case):
    p = case.probabilities(np.linspace(0.001, 0.999, 400))
    ours = bincp.certify(case.smoothing, case.ball).lower(p)
    theirs = case.make_baseline(case.smoothing, case.ball)(p)
    least = 0 if case.in_tails else 1e-12  # where bounds themselves are less
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=least)


def test_each_built_in_scheme_is_measured():
    built_in = {scheme for scheme, _, origin in bincp.registered() if origin.startswith("bincp.")}
    assert {type(case.smoothing) for case in CASES} == built_in
    assert {type(case.smoothing) for case in NOISE_CASES} == built_in - {*NOT_DRAWN}


@pytest.mark.parametrize("cases", [CASES, NOISE_CASES, COUNT_CASES])
def test_no_two_kernels_have_one_name(cases):
    names = [case.kernel for case in cases]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", NOISE_CASES, ids=lambda case: case.kernel)
def test_inputs_are_valid(case):
    x = case.x(3)
    assert (len(x), x[0].size) == (3, 784)
    sampler_of(case.smoothing).check(x)


@pytest.mark.parametrize("case", COUNT_CASES, ids=lambda case: case.kernel)
def test_scores_have_the_bytes_that_are_asked_for(case):
    assert case.scores(10**7).nbytes == pytest.approx(10**7, rel=0.02)
    assert case.scores(1).shape == (1, *case.tail)


# ---- what is printed ------------------------------------------------------------------------


def check_parts(parts):
    for figures in parts.values():
        for one in figures:
            assert 0 < one["rate"] < math.inf
            assert 0 < one["baseline_rate"] < math.inf
            assert one["ratio"] == pytest.approx(one["rate"] / one["baseline_rate"], rel=2e-3)


def test_the_json_has_every_kernel_once(capsys):
    assert main(["bench", *TINY, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    names = {part: [one["kernel"] for one in found] for part, found in data["parts"].items()}
    assert names.pop("bounds one by one") == [case.kernel for case in CASES]
    assert names.pop("bounds of an array") == [case.kernel for case in CASES]
    assert names.pop("counting") == [case.kernel for case in COUNT_CASES]
    assert names.pop("noise on cpu") == [case.kernel for case in NOISE_CASES]
    assert len(names) == len(places()) - 1  # a part for each GPU
    check_parts(data["parts"])
    assert data["versions"]["bincp"] == bincp.__version__


def test_a_file_gets_the_same_json(capsys, tmp_path):
    file = tmp_path / "figures.json"
    assert main(["bench", *TINY, "--only", "counting", "Laplace", "--json", str(file)]) == 0
    text = capsys.readouterr().out
    assert text.endswith(f"wrote {file}\n")
    data = json.loads(file.read_text())
    check_parts(data["parts"])
    for part in data["parts"].values():
        for one in part:
            assert one["kernel"] in text
    assert [one["kernel"] for one in data["parts"]["noise on cpu"]] == ["Laplace", "Laplace, grid"]


@pytest.mark.parametrize(
    ("only", "parts"),
    [
        ("counting", {"counting"}),
        ("Laplace", {"bounds", "noise"}),
    ],
)
def test_only_what_was_asked_for_is_measured(capsys, only, parts):
    assert main(["bench", *TINY, "--only", only, "--json"]) == 0
    assert {name.split()[0] for name in json.loads(capsys.readouterr().out)["parts"]} == parts
    assert main(["bench", *TINY, "--only", only]) == 0
    assert ("GB/s" in capsys.readouterr().out) == ("counting" in parts)


def test_a_machine_without_a_list_of_its_processors_has_a_name(monkeypatch):
    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(_bench, "open", missing, raising=False)
    assert _bench._processor() in (platform.processor(), platform.machine())


def test_without_torch_the_compiled_code_is_measured(monkeypatch):
    monkeypatch.setattr(_bench_noise, "find_spec", lambda name: None)
    assert places() == [None]


def test_a_file_that_cannot_be_written_is_refused_at_once(capsys, tmp_path):
    assert main(["bench", *TINY, "--json", str(tmp_path / "no" / "figures.json")]) == 2
    assert "must be in a folder that exists" in capsys.readouterr().err


def test_noise_is_measured_where_torch_draws_it():
    torch = pytest.importorskip("torch")
    place = torch.device("cpu")  # by torch operations; the C code is at None
    assert (device_name(None), device_name(place)) == ("cpu", "cpu")
    drawn = [noise_figure(case, place, 1, 1e-4) for case in NOISE_CASES]
    found = {one.kernel: one for one in drawn if one is not None}
    assert found.keys() == {
        *("Gaussian", "Uniform", "Laplace"),
        *("Gaussian, grid", "Uniform, grid", "Laplace, grid", "Expp, grid"),
    }
    assert all(0 < one.ratio < math.inf for one in found.values())
    assert found["Gaussian"].what == f"copies of float32 inputs under {BOX_MULLER.smoothing!r}"


# ---- history --------------------------------------------------------------------------------


def test_recorded_figures_are_whole():
    assert HISTORY
    for file in HISTORY:
        data = json.loads(file.read_text())
        check_parts(data["parts"])
        assert data["versions"]["bincp"] == file.stem
        assert data["machine"].keys() == {"processor", "architecture", "system", "cores"}
        assert data.keys() == {"versions", "machine", "sizes", "seconds", "parts"}
        kernels = [(part, one["kernel"]) for part, found in data["parts"].items() for one in found]
        assert len(set(kernels)) == len(kernels)
