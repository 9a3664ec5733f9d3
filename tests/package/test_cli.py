"""The command line: each command, its JSON, its exit status, and what it refuses."""

import itertools
import json
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import bincp
from bincp import balls, metrics, smoothing
from bincp.calibration._clopper_pearson import UNIONS
from bincp.cli import _demo_run as demo
from bincp.cli import main

N, K, M = 200, 4, 128
SPEC = ["--smoothing", "gaussian:sigma=0.5", "--ball", "l2:r=0.1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with score files."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    labels = rng.integers(K, size=N)
    scores = rng.normal(-0.6, 0.5, (N, K, M)).astype(np.float32)
    scores[np.arange(N), labels] += 1.6
    np.save("true.npy", rng.normal(1, 0.5, (N, M)).astype(np.float32))
    np.save("scores.npy", scores)
    np.save("labels.npy", labels)
    np.savez("all.npz", true_scores=np.load("true.npy"), scores=scores, labels=labels)
    return tmp_path


def run(capsys, *argv):
    """Run a command that succeeds, and return what it printed on stdout."""
    status = main([str(argument) for argument in argv])
    out, err = capsys.readouterr()
    assert status == 0, err
    assert err == ""
    return out


def fail(capsys, *argv, status):
    """Run a command that fails, and return the last line on stderr."""
    assert main([str(argument) for argument in argv]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    if status == 1:
        assert err.count("\n") == 1
        assert err.startswith("bincp: error: ")
    else:
        assert err.startswith("usage: ")
    return err.splitlines()[-1]


def calibrate(capsys, *options, scores="true.npy", out="rule.json"):
    return run(
        capsys, "calibrate", scores, *SPEC, "--n-classes", K, "--out", out, "--json", *options
    )


# ---- calibrate and predict ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (
            ["--alpha", "0.2", "--eta", "0.01", "--correction", "clopper-pearson"],
            {"alpha": "0.2", "eta": "0.01", "correction": "clopper-pearson"},
        ),
        (["--p", "0.7"], {"p": "0.7"}),
        (["--p", "2/3", "--correction", "none"], {"p": "2/3", "correction": "none"}),
        (["--tau", "0.3"], {"tau": 0.3}),
        (["--tau", "-0.3"], {"tau": -0.3}),
        (["--tau", "-3e-1"], {"tau": -0.3}),
        (["--tau", "-1."], {"tau": -1.0}),
        (["--tau=-1/4"], {"tau": -0.25}),
        (["--correction", "clopper-pearson"], {"correction": "clopper-pearson"}),
        *[
            (
                ["--correction", "clopper-pearson", "--union", union],
                {"correction": "clopper-pearson", "union": union},
            )
            for union in UNIONS
        ],
        (["--guarantee", "marginal"], {"guarantee": "marginal"}),
        (
            ["--guarantee", "training-conditional:delta=0.2"],
            {"guarantee": ("training-conditional", "0.2")},
        ),
    ],
)
def test_calibrate_and_predict_do_what_the_library_does(folder, capsys, options, arguments):
    told = json.loads(calibrate(capsys, *options))
    certificate = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
    rule = bincp.BinCP(certificate, **arguments).calibrate(np.load("true.npy"), n_classes=K)
    loaded = bincp.BinCP.load("rule.json")
    for field in ("tau", "min_count", "rank", "success_rank", "p", "p_lower", "certified_p"):
        assert told[field] == getattr(rule, f"{field}_") == getattr(loaded, f"{field}_")
    assert told["union"] == (rule.union if rule.correction == "clopper-pearson" else None)
    assert told["delta"] == (None if rule.delta is None else str(rule.delta))
    assert (told["n_calibration"], told["n_samples"], told["n_test_samples"]) == (N, M, M)
    assert Fraction(told["alpha"]) == rule.alpha == loaded.alpha

    told = json.loads(
        run(capsys, "predict", "rule.json", "scores.npy", "--out", "sets.npy", "--json",
            "--labels", "labels.npy")
    )  # fmt: skip
    sets = np.load("sets.npy")
    expected = rule.predict_set(np.load("scores.npy"))
    assert sets.dtype == bool
    assert np.array_equal(sets, expected)
    assert 0 < sets.mean() < 1
    assert told == {
        "n_inputs": N,
        "n_classes": K,
        "average_set_size": metrics.average_set_size(expected),
        "singleton_rate": metrics.singleton_rate(expected),
        "empty_rate": metrics.empty_rate(expected),
        "coverage": metrics.coverage(expected, np.load("labels.npy")),
        "coverage_low": metrics.coverage_interval(expected, np.load("labels.npy"))[0],
        "coverage_high": metrics.coverage_interval(expected, np.load("labels.npy"))[1],
        "out": "sets.npy",
    }


def test_counts_give_the_sets_of_the_scores(folder, capsys):
    tau = json.loads(calibrate(capsys))["tau"]
    counts = (np.load("scores.npy") >= np.float32(tau)).sum(-1)
    np.savez("counts.npz", counts=counts, other=counts[:3])
    run(capsys, "predict", "rule.json", "scores.npy", "--out", "sets.npy")
    run(
        capsys,
        "predict",
        "rule.json",
        "counts.npz",
        "--counts",
        str(M),
        "--out",
        "sets.npz",
    )
    with np.load("sets.npz") as archive:
        assert archive.files == ["sets"]
        assert np.array_equal(archive["sets"], np.load("sets.npy"))


def test_npz_files_and_their_keys(folder, capsys):
    from_npy = json.loads(calibrate(capsys))
    assert json.loads(calibrate(capsys, scores="all.npz")) == from_npy
    np.savez("one.npz", whatever=np.load("true.npy"))
    assert json.loads(calibrate(capsys, scores="one.npz")) == from_npy
    np.savez("two.npz", a=np.load("true.npy"), b=np.zeros(3))
    assert json.loads(calibrate(capsys, "--key", "a", scores="two.npz")) == from_npy
    options = ("--labels", "all.npz", "--out", "sets.npy")
    out = run(capsys, "predict", "rule.json", "all.npz", *options)
    shown = dict(re.findall(r"^(coverage(?: low| high)?) +([\d.]+)$", out, re.MULTILINE))
    low, high = metrics.coverage_interval(np.load("sets.npy"), np.load("labels.npy"))
    assert low - 1e-3 < float(shown["coverage low"]) <= low
    assert high <= float(shown["coverage high"]) < high + 1e-3
    assert low <= float(shown["coverage"]) <= high


def test_scores_of_all_labels_and_the_labels(folder, capsys):
    scores, labels = np.load("scores.npy"), np.load("labels.npy")
    np.save("own.npy", scores[np.arange(N), labels])
    wanted = json.loads(calibrate(capsys, scores="own.npy"))
    np.savez("both.npz", scores=scores, labels=labels)
    np.savez("alone.npz", whatever=scores)
    np.savez("named.npz", a=scores, b=labels, labels=labels)
    for argv in (
        ("both.npz",),
        ("scores.npy", "--labels", "labels.npy"),
        ("scores.npy", "--labels", "both.npz"),
        ("all.npz", "--labels", "labels.npy"),  # not its true_scores
        ("both.npz", "--labels", "both.npz"),
        ("alone.npz", "--labels", "labels.npy"),
        ("named.npz", "--key", "a"),
    ):
        file, *options = argv
        assert json.loads(calibrate(capsys, *options, scores=file)) == wanted, argv
        run(capsys, "calibrate", file, *SPEC, *options, "--out", "rule.json")
        assert bincp.BinCP.load("rule.json").n_classes_ == K  # taken from the scores
    paper = ("--correction", "clopper-pearson", "--out", "rule.json")
    run(capsys, "calibrate", "both.npz", *SPEC, *paper)


def test_scores_of_all_labels_without_their_labels(folder, capsys):
    scores, labels = np.load("scores.npy"), np.load("labels.npy")
    np.savez("one.npz", scores=scores)
    np.savez("short.npz", scores=scores, labels=labels[:3])
    np.savez("high.npz", scores=scores, labels=np.full(N, K))
    np.savez("float.npz", scores=scores, labels=labels / 1)
    for argv, message in (
        (("scores.npy",), "scores.npy: .*give --labels FILE"),
        (("one.npz",), "one.npz: .*give --labels FILE, or `labels` in the same .npz file"),
        (("short.npz",), r"`labels` must have shape \(200,\)"),
        (("high.npz",), r"`labels` must be in \[0, 3\], got 4"),
        (("float.npz",), "`labels` must be integers"),
        (("true.npy", "--labels", "labels.npy"), r"true.npy: .*\(n, K, m\).*got \(200, 128\)"),
        (("both.npz", "--labels", "absent.npy"), "both.npz: No such file"),
        (("all.npz", "--key", "b"), "all.npz: `--key` .*'b'; the file holds true_scores, scores"),
        (("one.npz", "--labels", "short.npz"), "shape"),
    ):
        line = fail(capsys, "calibrate", *argv, *SPEC, "--out", "rule.json", status=1)
        assert re.search(message, line), line
    options = (*SPEC, "--labels", "labels.npy", "--out")
    line = fail(capsys, "calibrate", "scores.npy", *options, "labels.npy", status=2)
    assert "must not be one of the inputs" in line
    argv = ("calibrate", "scores.npy", *options, "rule.json", "--n-classes", 5)
    assert "--n-classes must be the K = 4 of the scores, got 5" in fail(capsys, *argv, status=2)
    assert not os.path.exists("rule.json")


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--passes", "auto"], {"passes": "auto"}),
        (["--passes", "5/2"], {"passes": "5/2"}),
        (["--correction", "none", "--p", "0.7"], {"correction": "none", "p": "0.7"}),
    ],
)
def test_mondrian_does_what_the_library_does(folder, capsys, options, arguments):
    labels, scores = np.load("labels.npy"), np.load("scores.npy")
    own = bincp.MondrianBinCP(
        bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1)), n_classes=K, **arguments
    ).calibrate(scores[np.arange(N), labels], labels, n_test_samples=32)
    data = calibrate(
        capsys, "--mondrian", "--n-test-samples", 32, *options, scores="all.npz", out="rules.json"
    )
    data = json.loads(data)
    assert [one["tau"] for one in data["classes"]] == own.tau_.tolist()
    assert [one["min_count"] for one in data["classes"]] == own.min_count_.tolist()
    assert [one["n_calibration"] for one in data["classes"]] == np.bincount(labels).tolist()
    assert data["n_classes"] == K
    assert data["stops_early"] == ("passes" in arguments)
    assert bincp.MondrianBinCP.load("rules.json")._rule == own._rule
    np.save("test.npy", scores[:, :, :32])
    report = run(capsys, "predict", "rules.json", "test.npy", "--labels", "labels.npy",
                 "--out", "sets.npy", "--json")  # fmt: skip
    sets = np.load("sets.npy")
    np.testing.assert_array_equal(sets, own.predict_set(scores[:, :, :32]))
    assert json.loads(report)["coverage"] == metrics.coverage(sets, labels)
    np.save("counts.npy", bincp.count_exceedances(scores[:, :, :32], own.tau_))
    counted = ["predict", "rules.json", "counts.npy", "--counts", 32, "--out", "sets.npy"]
    if "passes" in arguments:
        assert "passes=None" in fail(capsys, *counted, status=1)
    else:
        run(capsys, *counted)
        np.testing.assert_array_equal(np.load("sets.npy"), sets)


def test_mondrian_takes_the_scores_of_the_true_labels_with_their_labels(folder, capsys):
    labels = np.load("labels.npy")
    np.save("own.npy", np.load("scores.npy")[np.arange(N), labels])
    whole = calibrate(capsys, "--mondrian", scores="all.npz", out="rules.json")
    parts = calibrate(
        capsys, "--mondrian", "--labels", "labels.npy", scores="own.npy", out="rules.json"
    )
    assert parts == whole
    assert json.loads(whole)["classes"][K - 1]["min_count"] > 0


def test_mondrian_needs_labels_and_their_number(folder, capsys):
    own = ["calibrate", "true.npy", *SPEC, "--mondrian", "--out", "rules.json"]
    message = fail(capsys, *own, "--labels", "labels.npy", status=2)
    assert "--n-classes is needed with --mondrian" in message
    assert "--mondrian: give --labels" in fail(capsys, *own, "--n-classes", K, status=1)
    assert "[0, 2]" in fail(capsys, *own, "--n-classes", 3, "--labels", "labels.npy", status=1)
    np.save("one.npy", np.zeros(7))
    message = fail(capsys, "calibrate", "one.npy", *own[2:], "--labels", "labels.npy", status=1)
    assert "(n, K, m) or (n, m)" in message
    assert not os.path.exists("rules.json")


def test_mondrian_says_what_the_classes_have(folder, capsys):
    labels = np.load("labels.npy")
    text = run(capsys, "calibrate", "all.npz", *SPEC, "--mondrian", "--out", "rules.json")
    low, high = np.bincount(labels).min(), np.bincount(labels).max()
    assert f"calibrated {K} classes on {low} to {high} points each with m = {M} scores" in text
    taus = bincp.MondrianBinCP.load("rules.json").tau_
    assert f"tau = {taus.min()} to {taus.max()}" in " ".join(text.split())
    labels[labels == 1] = 0
    np.save("labels.npy", labels)
    argv = ["calibrate", "scores.npy", *SPEC, "--mondrian", "--labels", "labels.npy"]
    assert main([*argv, "--out", "rules.json"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("bincp: warning: 1 of 4 classes is in every prediction set: class 1 has")
    assert err.count("\n") == 1


def test_a_rule_of_risk_control_predicts_sets_for_points_of_many_labels(folder, capsys):
    scores = np.load("scores.npy")
    members = np.eye(K, dtype=bool)[np.load("labels.npy")] | (np.arange(N) % 2 == 0)[:, None]
    np.save("members.npy", members)
    certificate = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
    rule = bincp.RobustRiskControl(certificate, alpha=0.3).calibrate(scores, members)
    rule.save("risk.json")
    predict = ["predict", "risk.json", "scores.npy", "--out", "sets.npy"]
    report = json.loads(run(capsys, *predict, "--labels", "members.npy", "--json"))
    sets = np.load("sets.npy")
    np.testing.assert_array_equal(sets, rule.predict_set(scores))
    missed = (members & ~sets).sum(axis=1) / members.sum(axis=1)
    assert report["false_negative_rate"] == pytest.approx(missed.mean(), rel=1e-12)
    assert "coverage" not in report
    np.save("counts.npy", bincp.count_exceedances(scores, rule.tau_))
    run(capsys, "predict", "risk.json", "counts.npy", "--counts", M, "--out", "sets.npy")
    np.testing.assert_array_equal(np.load("sets.npy"), sets)
    line = fail(capsys, *predict, "--labels", "labels.npy", status=1)
    assert "`labels` must be boolean, of shape (n, K)" in line
    rule.calibrate_exact(np.where(members, 0.9, 0.1), members, tau=0.5).save("risk.json")
    assert "call calibrate() before predicting from sampled" in fail(capsys, *predict, status=1)


def test_other_numbers_of_test_samples(folder, capsys):
    assert json.loads(calibrate(capsys, "--n-test-samples", 64))["n_test_samples"] == 64
    options = ("--out", "sets.npy")
    assert "64" in fail(capsys, "predict", "rule.json", "scores.npy", *options, status=1)
    np.save("fewer.npy", np.load("scores.npy")[..., :64])
    run(capsys, "predict", "rule.json", "fewer.npy", *options)


def test_levels_stay_the_decimals_that_were_written(folder, capsys):
    told = json.loads(calibrate(capsys, "--alpha", "0.1000000000000000000001"))
    assert Fraction(told["alpha"]) == Fraction("0.1000000000000000000001")


def test_text_of_calibrate_names_the_rule(folder, capsys):
    out = run(capsys, "calibrate", "true.npy", *SPEC, "--n-classes", K, "--out", "rule.json")
    rule = bincp.BinCP.load("rule.json")
    assert f"k = {rule.min_count_} " in out
    assert f"tau = {rule.tau_!r}" in out
    assert out.endswith("wrote rule.json\n")


@pytest.mark.filterwarnings("default")
def test_trivial_sets_are_one_line_of_warning(folder, capsys):
    spec = ["--smoothing", "gaussian:sigma=0.1", "--ball", "l2:r=5"]
    np.save("few.npy", np.load("true.npy")[:5])
    for scores, cause in (("true.npy", "radius"), ("few.npy", "n = 5")):
        options = ["--n-classes", K, "--out", "rule.json", "--json"]
        assert main(["calibrate", scores, *spec, *map(str, options)]) == 0
        out, err = capsys.readouterr()
        assert err.startswith("bincp: warning: every label will be in every prediction set")
        assert err.count("\n") == 1
        assert cause in err
        told = json.loads(out)  # "-inf" is text: JSON has no such number
        assert told["tau"] == ("-inf" if scores == "few.npy" else bincp.BinCP.load(
            "rule.json").tau_)  # fmt: skip


# ---- files that are refused, and files that are kept ----------------------------------------


class Payload:
    def __reduce__(self):
        return os.mkdir, ("pickle-was-run",)


def bad_files():
    np.save("object.npy", np.array([Payload()], dtype=object), allow_pickle=True)
    np.savez("object.npz", x=np.array([Payload()], dtype=object))
    with open("pickle.npy", "wb") as stream:
        pickle.dump(Payload(), stream)
    with open("text.npy", "w") as stream:
        stream.write("0.1 0.2\n")
    open("empty.npy", "w").close()
    with open("true.npy", "rb") as stream:
        whole = stream.read()
    with open("cut.npy", "wb") as stream:
        stream.write(whole[:-100])
    with open("all.npz", "rb") as stream:
        archive = bytearray(stream.read())
    assert whole.count(b"(200, 128)") == 1  # the shape in the header
    for name, shape in (
        ("negative.npy", b"(-20, 128)"),
        ("positive_product.npy", b"(-2, -128)"),
        ("huge.npy", b"(9e9, 128)"),
        ("large.npy", b"(999, 999)"),
        ("overflow.npy", b"(9999999999, 9999999999)"),
        ("nested.npy", b"((((((((((("),
        ("bytes.npy", b"(\xff\x00, 128)"),
    ):
        with open(name, "wb") as stream:
            stream.write(whole.replace(b"(200, 128)", shape))
    with open("magic.npy", "wb") as stream:
        stream.write(whole[:6])
    with open("cut.npz", "wb") as stream:
        stream.write(archive[: len(archive) // 2])
    archive[300] ^= 1  # inside the data of the first array
    with open("damaged.npz", "wb") as stream:
        stream.write(archive)
    np.save("integers.npy", np.ones((N, M), dtype=int))
    np.save("flat.npy", np.ones(N))
    np.save("none.npy", np.ones((0, M)))
    np.save("swapped.npy", np.load("true.npy").astype(">f4"))
    holed = np.load("true.npy")
    holed[3, 5] = np.nan
    np.save("nan.npy", holed)
    np.savez("two.npz", a=holed, b=holed)
    with zipfile.ZipFile("twice.npz", "w") as twice:
        twice.write("true.npy", "scores.npy")
        twice.write("true.npy", "scores")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.npy", "absent.npy: No such file"),
        (".", "Is a directory"),
        ("object.npy", "object.npy: .*[Oo]bject"),
        ("object.npz", "object.npz: .*[Oo]bject"),
        ("pickle.npy", "must be a .npy or .npz file"),
        ("text.npy", "must be a .npy or .npz file"),
        ("empty.npy", "must be a .npy or .npz file"),
        ("cut.npy", "cut.npy: "),
        ("cut.npz", "cut.npz: "),
        ("damaged.npz", "damaged.npz: "),
        *[
            (f"{name}.npy", f"bincp: error: {name}.npy: .")
            for name in ("negative", "positive_product", "huge", "large", "nested", "bytes")
        ],
        ("overflow.npy", "overflow.npy: (?!overflow)"),  # no warning of NumPy's
        ("magic.npy", "magic.npy: ."),
        ("two.npz", "two.npz: must hold an array named true_scores or scores, .* holds a, b$"),
        ("twice.npz", "twice.npz: must hold one array named scores, got several"),
        ("no\nlines.npy", r"no\\nlines.npy: No such file"),
        ("integers.npy", "`true_scores` must have one of the dtypes .* got int64"),
        ("flat.npy", r"`true_scores` must have shape \(n, m\)"),
        ("none.npy", r"`true_scores` must have shape \(n, m\)"),
        ("swapped.npy", "native byte order"),
        ("nan.npy", r"\(3, 5\)"),
    ],
)
def test_bad_score_files(folder, capsys, name, message):
    bad_files()
    with open("rule.json", "w") as stream:
        stream.write("precious")
    before = set(os.listdir())
    options = (*SPEC, "--n-classes", K, "--out", "rule.json")
    assert re.search(message, fail(capsys, "calibrate", name, *options, status=1))
    assert set(os.listdir()) == before  # no output, no temporary file, and no pickle was run
    with open("rule.json") as stream:
        assert stream.read() == "precious"


def test_bad_files_at_prediction(folder, capsys):
    calibrate(capsys)
    np.save("sets.npy", np.zeros(3))
    np.save("narrow.npy", np.load("scores.npy")[:, :2])
    np.save("wide.npy", np.load("scores.npy").astype(np.float64))
    np.save("no_inputs.npy", np.load("scores.npy")[:0])
    np.save("float_labels.npy", np.zeros(N))
    np.save("high_labels.npy", np.full(N, K))
    with open("other.json", "w") as stream:
        stream.write('{"format": "other"}')
    before = {name: os.stat(name).st_mtime_ns for name in os.listdir()}
    for argv, message in (
        (["rule.json", "narrow.npy"], "K = 4"),
        (["rule.json", "wide.npy"], "float32"),
        (["rule.json", "true.npy"], "shape"),
        (["rule.json", "no_inputs.npy"], r"no_inputs.npy: .* got n, K = \(0, 4\)"),
        (["rule.json", "scores.npy", "--counts", str(M)], "integers"),
        (["rule.json", "labels.npy"], "scores must be floats, got int64; counts need --counts M"),
        (["rule.json", "scores.npy", "--key", "scores"], "`--key`"),
        (["rule.json", "scores.npy", "--labels", "float_labels.npy"], "integers"),
        (["rule.json", "scores.npy", "--labels", "high_labels.npy"], r"\[0, 3\]"),
        (["other.json", "scores.npy"], "BinCP.save"),
        (["scores.npy", "scores.npy"], "JSON"),
        (["absent.json", "scores.npy"], "absent.json: No such file"),
    ):
        line = fail(capsys, "predict", *argv, "--out", "sets.npy", status=1)
        assert re.search(message, line), line
    assert {name: os.stat(name).st_mtime_ns for name in os.listdir()} == before


def test_outputs_replace_what_was_there(folder, capsys):
    for name in ("rule.json", "sets.npy"):
        with open(name, "w") as stream:
            stream.write("old")
    os.symlink("sets.npy", "link.npy")
    with open("rule.json") as rule, open("sets.npy") as sets:
        calibrate(capsys)
        run(capsys, "predict", "rule.json", "scores.npy", "--out", "link.npy")
        assert rule.read() == sets.read() == "old"  # replaced in one step, not written over
    assert os.path.islink("link.npy")
    assert np.load("sets.npy").shape == (N, K)
    umask = os.umask(0)
    os.umask(umask)
    for name in ("rule.json", "sets.npy"):
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o666 & ~umask


def test_outputs_that_would_lose_something(folder, capsys):
    calibrate(capsys)
    os.mkdir("folder.npy")
    os.mkfifo("pipe.npy")
    os.symlink("scores.npy", "alias.npy")
    for out, message in (
        ("scores.npy", "must not be one of the inputs"),
        ("alias.npy", "must not be one of the inputs"),
        ("labels.npy", "must not be one of the inputs"),
        ("folder.npy", "must be a file"),
        ("pipe.npy", "must be a file"),
        ("sets.txt", "must end in .npy or .npz"),
        ("absent/sets.npy", "folder that exists"),
    ):
        argv = ("rule.json", "scores.npy", "--labels", "labels.npy", "--out", out)
        assert message in fail(capsys, "predict", *argv, status=2)
    assert np.load("scores.npy").shape == (N, K, M)
    options = (*SPEC, "--n-classes", K, "--out", "/dev/null")
    assert "must be a file" in fail(capsys, "calibrate", "true.npy", *options, status=2)


def test_a_full_disk_leaves_nothing_behind(folder, capsys, monkeypatch):
    calibrate(capsys)
    np.save("sets.npy", np.zeros(3))

    def full(*_, **__):
        raise OSError(28, "No space left on device", "sets.npy")

    monkeypatch.setattr(np, "save", full)
    before = set(os.listdir())
    line = fail(capsys, "predict", "rule.json", "scores.npy", "--out", "sets.npy", status=1)
    assert line == "bincp: error: sets.npy: No space left on device"
    assert set(os.listdir()) == before
    assert np.load("sets.npy").shape == (3,)


# ---- certify --------------------------------------------------------------------------------


def test_certify_is_exact_in_json(capsys):
    told = json.loads(run(capsys, "certify", *SPEC, "--p", "0.5", "0.75", "1", "--json"))
    certificate = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
    assert told["certificate"] == certificate.describe()
    assert [bound["p"] for bound in told["bounds"]] == [0.5, 0.75, 1.0]
    for bound in told["bounds"]:  # these p are doubles
        assert bound["lower"] == certificate.lower(bound["p"])
        assert bound["upper"] == certificate.upper(bound["p"])


def test_certify_never_rounds_inward(capsys):
    values = [f"0.{digits}" for digits in ("1", "3", "6", "9", "99", "999", "000001", "123456789")]
    values += ["0", "1", "1e-300", "2/3", "0.99999999999999999999"]
    told = json.loads(run(capsys, "certify", *SPEC, "--p", *values, "--json"))
    printed = run(capsys, "certify", *SPEC, "--p", *values).splitlines()[-len(values) :]
    certificate = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
    for value, bound, line in zip(values, told["bounds"], printed, strict=True):
        written, lower, upper = line.split()
        assert written == value
        assert Decimal(lower) <= Decimal(bound["lower"])
        assert Decimal(upper) >= Decimal(bound["upper"])
        assert float(lower) == pytest.approx(bound["lower"], rel=1e-7)
        assert float(upper) == pytest.approx(bound["upper"], rel=1e-7)
        # The p that was written, not the double beside it.
        exact = Fraction(value)
        nearest = float(exact)
        if Fraction(nearest) > exact:
            assert bound["lower"] <= certificate.lower(float(np.nextafter(nearest, 0)))
        if Fraction(nearest) < exact:
            assert bound["upper"] >= certificate.upper(float(np.nextafter(nearest, 1)))


@pytest.mark.parametrize(
    ("noise", "ball", "expected"),
    [
        ("Uniform:half_width=0.5", "L1:r=0.25", (smoothing.Uniform(0.5), balls.L1(0.25))),
        ("gaussian:sigma=1e-1", "LINF:r=2/255,dim=49",
         (smoothing.Gaussian(0.1), balls.Linf(2 / 255, 49))),
        ("sparse-flip:p_plus=0.01,p_minus=0.6", "flips:additions=1,deletions=3",
         (smoothing.SparseFlip(0.01, 0.6), balls.Flips(1, 3))),
        ("gaussian: sigma = 2", "l2:r=0,dim=3", (smoothing.Gaussian(2), balls.L2(0.0, 3))),
    ],
)  # fmt: skip
def test_specs(capsys, noise, ball, expected):
    argv = ("--smoothing", noise, "--ball", ball, "--p", "0.75", "--json")
    told = json.loads(run(capsys, "certify", *argv))
    assert told["certificate"] == bincp.certify(*expected).describe()


@dataclass(frozen=True)
class OddBall(balls.Ball):
    r: float


@pytest.mark.usefixtures("clean_registry")
def test_registered_operators_are_known_by_name(capsys):
    bincp.register(smoothing.Gaussian, OddBall)(lambda scheme, ball: lambda p: max(p - ball.r, 0.0))
    argv = ("--smoothing", "gaussian:sigma=1", "--ball", "odd-ball:r=0.25", "--p", "0.75", "--json")
    assert json.loads(run(capsys, "certify", *argv))["bounds"][0]["lower"] == 0.5


# ---- usage ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "ball", "message"),
    [
        ("gauss:sigma=1", "l2:r=1", "unknown smoothing 'gauss'; known are .*gaussian:sigma"),
        ("gaussian:sigma=1", "l3:r=1", "unknown ball 'l3'; known are .*l2:r,dim"),
        ("gaussian:scale=1", "l2:r=1", "gaussian takes sigma, grid, off_grid, each"),
        ("gaussian:sigma=1,sigma=2", "l2:r=1", "each once"),
        ("gaussian:sigma", "l2:r=1", "gaussian takes sigma"),
        ("gaussian", "l2:r=1", "gaussian needs sigma"),
        ("gaussian:sigma=1", "linf:r=1", "linf needs dim"),
        ("gaussian:sigma=wide", "l2:r=1", "must be a number, got 'wide'"),
        ("gaussian:sigma=1/0", "l2:r=1", "must be a number, got '1/0'"),
        ("gaussian:sigma=-1", "l2:r=1", "`sigma` must be finite and > 0"),
        ("gaussian:sigma=1", "l2:r=-1", "`r` must be finite and >= 0"),
        ("gaussian:sigma=1", "l2:r=nan", "`r` must be finite"),
        ("gaussian:sigma=1", "linf:r=1,dim=2.5", "`dim` must be an integer"),
        ("gaussian:sigma=1", "flips:additions=1,deletions=1", r"no certificate for \(Gaussian"),
    ],
)
def test_bad_specs(capsys, noise, ball, message):
    argv = ("certify", "--smoothing", noise, "--ball", ball, "--p", "0.9")
    assert re.search(message, fail(capsys, *argv, status=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", "0"], r"`alpha` must be in \(0, 1\)"),
        (["--alpha", "1"], r"`alpha` must be in \(0, 1\)"),
        (["--alpha", "99"], r"`alpha` must be in \(0, 1\)"),
        (["--alpha", "nan"], "`alpha` must be a finite number"),
        (["--alpha", "ten"], "`alpha` must be a finite number"),
        (["--eta", "0.01"], "--eta needs --correction clopper-pearson, got mixture"),
        (["--union", "two-bounds", "--correction", "none"], "--union needs --correction clopper"),
        (["--eta", "1.5"], r"`eta` must be in \(0, 1\)"),
        (
            ["--correction", "clopper-pearson", "--alpha", "0.1", "--eta", "0.1"],
            "`eta` must be below alpha = 0.1",
        ),
        (["--p", "1.01"], r"`p` must be in \(0, 1\]"),
        (["--p", "0.5", "--tau", "1"], "not allowed with"),
        (["--tau", "nan"], "`tau` must not be NaN"),
        (["--tau", "-nan"], "`tau` must not be NaN"),
        (["--tau", "x"], "a value must be a number, got 'x'"),
        (["--alpha", "-1e-1"], r"`alpha` must be in \(0, 1\), got '-1e-1'"),
        (["--eta", "-.5"], r"`eta` must be in \(0, 1\), got '-.5'"),
        (["--p", "-1/2"], r"`p` must be in \(0, 1\], got '-1/2'"),
        (["--n-classes", "-1."], "`n_classes` must be an integer, got -1.0"),
        (["--union", "none"], "invalid choice"),
        (["--guarantee", "conditional"], "must be marginal or training-conditional:delta=DELTA"),
        (["--guarantee", "training-conditional"], "must be marginal or training-cond"),
        (["--guarantee", "training-conditional:delta="], "`delta` must be a finite number, got ''"),
        (["--guarantee", "training-conditional:delta=2"], r"`delta` must be in \(0, 1\)"),
        (
            ["--guarantee", "training-conditional:delta=0.1", "--correction", "none"],
            "`guarantee` must be",
        ),
        (["--correction", "bonferroni"], "invalid choice"),
        (["--n-classes", "0"], "`n_classes` must be at least 1"),
        (["--n-classes", "2.5"], "`n_classes` must be an integer"),
        (["--n-test-samples", "0"], "`n_test_samples` must be at least 1"),
        (["--what"], "unrecognized arguments"),
    ],
)
def test_bad_options(folder, capsys, options, message):
    argv = ("calibrate", "true.npy", *SPEC, "--n-classes", K, "--out", "rule.json", *options)
    assert re.search(message, fail(capsys, *argv, status=2))
    assert not os.path.exists("rule.json")


def test_number_of_classes_is_asked_for_where_it_is_needed(folder, capsys):
    argv = ("calibrate", "true.npy", *SPEC, "--out", "rule.json")
    paper = ("--correction", "clopper-pearson")
    assert "--n-classes is needed" in fail(capsys, *argv, *paper, status=2)
    run(capsys, *argv)


@pytest.mark.parametrize("p", ["-0.1", "-1e-9", "-1.", "-inf", "-nan", "1.1", "nan", "x"])
def test_bad_probabilities(capsys, p):
    assert "`p` must be" in fail(capsys, "certify", *SPEC, f"--p={p}", status=2)
    if p != "x":  # a negative number is a value, not an option
        assert "`p` must be" in fail(capsys, "certify", *SPEC, "--p", "0.5", p, status=2)


def test_infinite_thresholds(folder, capsys):
    options = (*SPEC, "--out", "rule.json", "--json", "--tau")
    for written in ("-inf", "-1e400", "-Infinity"):
        assert main(["calibrate", "true.npy", *options, written]) == 0
        out, err = capsys.readouterr()
        assert err.startswith("bincp: warning: every label")  # each score reaches -inf
        assert json.loads(out)["tau"] == "-inf"


def test_a_command_is_needed(capsys):
    assert "COMMAND" in fail(capsys, status=2)
    assert "invalid choice" in fail(capsys, "calibrte", status=2)


@pytest.mark.parametrize(
    "command",
    ["", "demo", "plan", "sample", "calibrate", "predict", "certify", "audit", "bench"],
)
def test_help_fits_a_terminal(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    out = run(capsys, *command.split(), "--help")
    assert out.startswith(f"usage: bincp {command}".rstrip())
    assert max(len(line) for line in out.splitlines()) <= 80
    example = f"Example:\n  bincp {command or 'demo'}"
    places = [out.index(part) for part in ("options:", example, "Files:\n", "Exit status: 0 ")]
    assert places == sorted(places)


def test_help_lists_the_commands(capsys):
    out = run(capsys, "--help")
    listed = out[out.index("Commands:\n") :].split("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in listed] == [
        *("demo", "plan", "sample", "calibrate", "predict", "certify", "audit", "bench")
    ]
    assert all(len(line.split()) > 3 for line in listed)


def test_version(capsys):
    assert run(capsys, "--version") == f"bincp {bincp.__version__}\n"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_other_ends(capsys, monkeypatch, failure):
    def stop(*_):
        raise failure

    monkeypatch.setattr("bincp.cli._certify.certify", stop)
    status = main(["certify", *SPEC, "--p", "0.5"])
    err = capsys.readouterr().err
    if failure is KeyboardInterrupt:
        assert (status, err) == (130, "")
    else:
        assert (status, err) == (1, "bincp: error: MemoryError\n")


# ---- as a process ---------------------------------------------------------------------------


def process(*argv, **options):
    return subprocess.run(
        [sys.executable, "-m", "bincp", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_module_runs_as_a_program(tmp_path):
    done = process("certify", *SPEC, "--p", "0.9")
    assert (done.returncode, done.stderr) == (0, "")
    assert "0.9" in done.stdout
    done = process("predict", "absent.json", "absent.npy", "--out", "x.npy", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "bincp: error: absent.json: No such file or directory\n"
    assert process("certify").returncode == 2


def test_help_imports_nothing_heavy():
    script = (
        "import sys; from bincp.cli import main; status = main(['demo', '--help'])\n"
        "heavy = {'torch', 'matplotlib', 'sklearn', 'tqdm', 'scipy.stats'} & set(sys.modules)\n"
        "sys.exit(f'{status} {heavy}' if status or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("option", ["-u", "-B"])  # without and with a buffer
@pytest.mark.parametrize(
    "argv", [("certify", *SPEC, "--p", "0.9"), ("certify", "--list"), ("--help",), ("--version",)]
)
def test_a_reader_that_has_gone_is_no_failure(argv, option):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        command = [sys.executable, option, "-m", "bincp", *argv]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def shell(command, given=""):
    """Run bincp with the redirections of a shell."""
    return subprocess.run(
        f"{given} {sys.executable} -m bincp {command}",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )


CALIBRATE = "calibrate true.npy --smoothing gaussian:sigma=0.5 --ball l2:r=0.1 --out"


def test_a_closed_stdout_is_no_failure(folder):
    done = shell(f"{CALIBRATE} rule.json >&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert bincp.BinCP.load("rule.json").n_calibration_ == N
    assert shell("certify --list >&-").returncode == 0
    done = shell("predict absent.json true.npy --out sets.npy 2>&-")
    assert (done.returncode, done.stdout) == (1, "")  # the line for stderr is not put on stdout


@pytest.mark.parametrize("out", ["log.json", "alias.json", "/dev/stdout", "/dev/stderr"])
def test_a_file_that_is_printed_to_is_not_replaced(folder, out):
    os.symlink("log.json", "alias.json")
    with open("log.json", "w") as log:
        log.write("earlier lines\n")
    done = shell(f"{CALIBRATE} {out} >>log.json 2>&1")
    assert done.returncode == 2
    with open("log.json") as log:
        first, *_, last = log.read().splitlines()
    assert first == "earlier lines"
    assert last.endswith(f"must not be the file that stdout or stderr goes to, got {out}")


def test_pipes_are_refused_by_name(folder):
    done = shell(f"{CALIBRATE.replace('true.npy', '/dev/stdin')} rule.json", given="cat true.npy |")
    assert (done.returncode, done.stdout) == (1, "")
    assert "/dev/stdin: must be a file, got a pipe" in done.stderr
    done = shell(f"{CALIBRATE} /dev/stdout | cat")
    assert "the output must be a file, got /dev/stdout" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is full is needed")
def test_a_full_stdout_is_a_failure_only_where_the_report_was_all(folder):
    done = shell(f"{CALIBRATE} rule.json >/dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "No space left on device; wrote rule.json" in done.stderr
    assert bincp.BinCP.load("rule.json").n_calibration_ == N
    done = shell("certify --list >/dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("bincp: error: the report could not be printed: ")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("name", ["\u00e9.json", "\u222b.json", os.fsdecode(b"\xe9.json")])
def test_names_that_the_console_cannot_show(folder, encoding, name):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "bincp", *CALIBRATE.split(), name]
    done = subprocess.run(command, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"wrote " in done.stdout
    assert bincp.BinCP.load(name).n_calibration_ == N
    done = subprocess.run([*command, "--json"], capture_output=True, env=environment)
    assert json.loads(done.stdout)["out"] == name


INTERRUPT = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\n"


def interrupted(*argv, path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), *sys.path[1:]])}
    done = subprocess.run(
        [sys.executable, *argv],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in background jobs
    )
    return done.returncode, done.stdout, done.stderr


def test_an_interrupt_during_the_imports_is_no_traceback(tmp_path):
    """NumPy is imported long before the command line can catch anything."""
    (tmp_path / "numpy.py").write_text(INTERRUPT)
    started = "import sys; sys.argv[0] = '/usr/bin/bincp'; from bincp.cli import main; main()"
    for argv in (("-m", "bincp", "certify", "--list"), ("-c", started)):
        assert interrupted(*argv, path=tmp_path) == (-signal.SIGINT, "", "")
    # Another program keeps its KeyboardInterrupt.
    caught = "try:\n import bincp\nexcept KeyboardInterrupt:\n print('caught')"
    assert interrupted("-c", caught, path=tmp_path) == (0, "caught\n", "")


def test_an_interrupt_of_a_command_is_caught(tmp_path):
    code = (
        "import sys; sys.argv = ['/usr/bin/bincp', 'certify', '--list']\n"
        "import bincp.cli._certify as certify\n"
        f"def list_pairs(_):\n    {INTERRUPT}"
        "certify._list = list_pairs\n"
        "sys.exit(sys.modules['bincp.cli'].main())"
    )
    assert interrupted("-c", code, path=tmp_path) == (130, "", "")
    again = f"import atexit\ndef again():\n    {INTERRUPT}atexit.register(again)\n"
    assert interrupted("-c", again + code, path=tmp_path) == (-signal.SIGINT, "", "")


# ---- demo -----------------------------------------------------------------------------------


def test_demo_names_missing_packages(capsys, monkeypatch, tmp_path):
    found = demo.importlib.util.find_spec
    monkeypatch.setattr(
        demo.importlib.util,
        "find_spec",
        lambda name, *rest: None if name in ("sklearn", "tqdm") else found(name, *rest),
    )
    monkeypatch.chdir(tmp_path)
    line = fail(capsys, "demo", status=1)
    assert "scikit-learn, tqdm" in line
    assert 'pip install "bincp[demo]"' in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--radii", "-0.1"], "`radius` must be finite and >= 0"),
        (["--radii", "inf"], "`radius` must be finite"),
        (["--samples", "0"], "`samples` must be at least 1"),
        (["--seed", "-1"], "`seed` must be in"),
        (["--seed", str(2**64)], "`seed` must be in"),
        (["--alpha", "0.001"], "`alpha` must be above 0.001"),
        (["--plot", "x.bmpp"], "must end in"),
        (["--plot", "absent/x.png"], "folder that exists"),
        (["--plot", "x.png", "--no-plot"], "not allowed with"),
    ],
)
def test_demo_refuses_before_it_trains(capsys, options, message):
    assert re.search(message, fail(capsys, "demo", *options, status=2))


# ---- plan ------------------------------------------------------------------------------------

ATTACK = ["--smoothing", "gaussian:sigma=0.25", "--ball", "l2:r=0.25"]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--n-classes", 10], {"n_classes": 10}),
        (["--alpha", "1/7", "--p", "2/3"], {"alpha": "1/7", "p": "2/3"}),
        (["--n-test-samples", 16, "--passes", "auto"], {"n_test_samples": 16, "passes": "auto"}),
        (["--n-test-samples", 16, "--passes", "3.5"], {"n_test_samples": 16, "passes": "3.5"}),
        (["--correction", "none"], {"correction": "none"}),
        (
            ["--correction", "clopper-pearson", "--n-classes", 10, "--eta", "0.01"],
            {"correction": "clopper-pearson", "n_classes": 10, "eta": "0.01"},
        ),
        (
            ["--correction", "clopper-pearson", "--union", "two-bounds"],
            {"correction": "clopper-pearson", "union": "two-bounds"},
        ),
        (
            ["--guarantee", "training-conditional:delta=0.2"],
            {"guarantee": ("training-conditional", "0.2")},
        ),
    ],
)
def test_plan_says_what_the_library_does(capsys, options, arguments):
    told = json.loads(run(capsys, "plan", *ATTACK, "-n", 200, "-m", 64, "--json", *options))
    certificate = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.25))
    plan = bincp.plan(certificate, n=200, m=64, **arguments)
    assert told["plot"] is None
    (found,) = told["plans"]
    for one, of in ((found, plan), (found["paper"], plan.paper)):
        assert (one is None) == (of is None)
        if of is not None:
            assert_tells(one, of)
    assert str(plan) in run(capsys, "plan", *ATTACK, "-n", 200, "-m", 64, *options)


def assert_tells(told, plan):
    fields = ("success_rank", "rank", "min_count", "share", "certified_p", "wrong_labels",
              "expected_passes", "worst_draws", "trivial_cause", "n_classes", "n_test_samples",
              "n")  # fmt: skip
    for field in fields:
        assert told[field] == getattr(plan, field), field
    settings = plan.settings
    bounded = settings.correction == "clopper-pearson"
    for field in ("alpha", "eta", "p", "delta", "passes"):
        value = getattr(settings, field) if field != "eta" or bounded else None
        assert told[field] == (None if value is None else str(value)), field
    assert told["correction"] == settings.correction
    assert told["union"] == (settings.union if bounded else None)
    assert told["stops_early"] == (plan.boundaries is not None)
    assert told["certificate"] == plan.certificate.describe()


def test_a_sweep_that_knows_no_classes_says_nothing_of_the_paper(capsys):
    options = ["--smoothing", "gaussian:sigma=0.25", "--ball", "l2:r=0.12", "-n", 50, 200, "-m", 64]
    out = run(capsys, "plan", *options)
    assert "paper" not in out
    rows = [line.split() for line in out.splitlines() if line.startswith("L2")]
    for row, n in zip(rows, (50, 200), strict=True):
        certificate = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.12))
        plan = bincp.plan(certificate, n=n, m=64, alpha="0.1")
        assert row[3:6] == [str(n), "64", "64"]
        assert row[6:8] == [str(plan.min_count), f"{plan.wrong_labels:.4f}"]


def test_plan_sweeps_balls_levels_and_numbers(capsys):
    options = ["--smoothing", "gaussian:sigma=0.25", "--ball", "l2:r=0.12", "l2:r=0.25",
               "-n", 50, 200, "-m", 1, 64, "--alpha", "0.1", "0.004",
               "--n-classes", 10]  # fmt: skip
    told = json.loads(run(capsys, "plan", *options, "--json"))["plans"]
    out = run(capsys, "plan", *options).splitlines()
    rows = [line.split() for line in out if line.startswith("L2")]
    cases = itertools.product((0.12, 0.25), ("1/10", "1/250"), (50, 200), (1, 64))
    assert len(told) == len(rows) == 16
    for (radius, alpha, n, m), one, row in zip(cases, told, rows, strict=True):
        certificate = bincp.certify(smoothing.Gaussian(0.25), balls.L2(radius))
        plan = bincp.plan(certificate, n=n, m=m, alpha=alpha, n_classes=10)
        assert_tells(one, plan)
        assert row[2:6] == [alpha, str(n), str(m), str(m)]
        assert row[6:8] == [str(plan.min_count), f"{plan.wrong_labels:.4f}"]
        assert row[9:] == [str(plan.paper.min_count), f"{plan.paper.wrong_labels:.4f}"]
        if plan.trivial_cause is not None:
            assert any(line.endswith(plan.trivial_cause) for line in out)
    assert 4 < sum(one["trivial_cause"] is not None for one in told) < 16
    assert "reference population" in "\n".join(out)


def test_options_of_several_values_may_stand_several_times(capsys):
    numbers = ("-n", 50, 200, "-m", 4, 16, 64, "--alpha", "0.2", "0.1")
    noise = ("--smoothing", "gaussian:sigma=0.25", "--json")
    together = run(capsys, "plan", *noise, "--ball", "l2:r=0.12", "l2:r=0.25", *numbers)
    apart = ("-n", 50, "-n", 200, "-m", 4, 16, "-m", 64, "--alpha", "0.2", "--alpha", "0.1")
    balls = ("--ball", "l2:r=0.12", "--ball", "l2:r=0.25")
    assert json.loads(together) == json.loads(run(capsys, "plan", *noise, *balls, *apart))
    assert len(json.loads(together)["plans"]) == 24


def test_plan_draws_a_picture(folder, capsys):
    options = ("-n", 200, "-m", 16, "--plot", "plan.svg")
    told = json.loads(run(capsys, "plan", *ATTACK, *options, "--json"))
    assert told["plot"] == "plan.svg"
    assert "<svg" in (folder / "plan.svg").read_text()
    assert "\nwrote plan.svg" in run(capsys, "plan", *ATTACK, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", "0", "-m", "4"], "`n` must be at least 1, got 0"),
        (["-n", "9", "-m", "x"], "a value must be a number, got 'x'"),
        (["-n", "9"], "the following arguments are required: -m"),
        (["-n", "9", "-m", "4", "--passes", "few"], '`passes` must be None, "auto" or a num'),
        (["-n", "9", "-m", "4", "--passes", "0.5"], "`passes` must be None"),
        (["-n", "9", "-m", "4", "--union", "two-bounds"], "--union needs --correction clopper"),
        (["-n", "9", "-m", "4", "--eta", "0.01"], "--eta needs --correction clopper-pearson, got"),
        (["-n", "9", "-m", "4", "--correction", "clopper-pearson"], "plan() needs `n_classes`"),
        (["-n", "9", "-m", "4", "--plot", "plan.xyz"], "the output must end in"),
        (["-n", "9", "-m", "4", "--plot", "nowhere/plan.png"], "in a folder that exists"),
        (["-n", "9", "-m", "4", "8", "--plot", "plan.png"], "--plot draws one ball and level"),
        (["-n", "9", "8", "-m", "4", "--plot", "plan.png"], "with one N and M, got 2 plans"),
    ],
)
def test_plans_that_cannot_be_meant(folder, capsys, options, message):
    assert message in fail(capsys, "plan", *ATTACK, *options, status=2)


# ---- certify --list and --plot, bench -------------------------------------------------------


def test_certify_lists_what_is_registered(capsys):
    listed = json.loads(run(capsys, "certify", "--list", "--json"))["registered"]
    assert [row["operator"] for row in listed] == [origin for *_, origin in bincp.registered()]
    assert "sparse-flip:p_plus,p_minus" in run(capsys, "certify", "--list")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--p", "0.5"], "--smoothing is needed, or --list"),
        ([*SPEC[:2], "--p", "0.5"], "--ball is needed, or --list"),
        ([*SPEC], "--p is needed, or --list"),
        ([*SPEC, "--list"], "--smoothing must be left out with --list"),
        (["--p", "0.5", "--list"], "--p must be left out with --list"),
    ],
)
def test_certify_needs_a_pair_or_the_list(capsys, arguments, message):
    assert main(["certify", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_certify_draws_both_bounds(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "bounds.svg"
    out = run(capsys, "certify", *SPEC, "--p", "0.5", "--plot", str(picture), "--json")
    assert json.loads(out)["plot"] == str(picture)
    assert picture.read_text().startswith("<?xml")
    assert main(["certify", *SPEC, "--p", "0.5", "--plot", str(tmp_path / "a.docx")]) == 2


def test_without_matplotlib_a_picture_is_refused_with_what_to_install(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    picture = tmp_path / "bounds.svg"
    assert main(["certify", *SPEC, "--p", "0.5", "--plot", str(picture)]) == 1
    assert "pip install matplotlib" in capsys.readouterr().err
    assert not picture.exists()


def test_certify_draws_the_largest_radius(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    options = ["--p", "0.5", "--plot-radius", str(tmp_path / "radius.svg")]
    assert "wrote" in run(capsys, "certify", *SPEC, *options)
    assert (tmp_path / "radius.svg").read_text().startswith("<?xml")
    flips = ["--smoothing", "sparse-flip:p_plus=0.1,p_minus=0.1"]
    assert main(["certify", *flips, "--ball", "flips:additions=1,deletions=1", *options]) == 2
    assert "--plot-radius needs a ball with a real radius" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--only", "Nothing"],
        *([name, "0"] for name in ("--size", "--inputs", "--bytes", "--seconds")),
        ["--size", "1.5"],
        ["--seconds", "x"],
    ],
)
def test_bench_refuses(capsys, options):
    assert main(["bench", *options]) == 2
    assert options[0] in capsys.readouterr().err
