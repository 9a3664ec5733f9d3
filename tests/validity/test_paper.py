"""The paper's experiments on tiny made-up data: the whole command, its methods, its errors."""

import csv
import dataclasses
import gzip
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

import bincp  # noqa: E402
from bincp import balls, baselines, smoothing  # noqa: E402
from bincp.sampling import sample_scores  # noqa: E402
from support import import_benchmarks  # noqa: E402

import_benchmarks()

from benchmarks.paper import (  # noqa: E402
    __main__,
    methods,
    page,
    published,
    report,
    runs,
    sampling,
    settings,
    verdicts,
    verified,
)
from benchmarks.paper.samples import Samples, of_logits  # noqa: E402
from benchmarks.paper.splits import Outcome, Splits  # noqa: E402
from benchmarks.paper.stored import read_all  # noqa: E402
from benchmarks.study import data, scores  # noqa: E402

N_TRAIN, N_HELD_OUT, SIZE = 150, 300, 8


def silent(_):
    pass


# ---- methods -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=130)
    logits = rng.normal(2.5 * (np.arange(3) == labels[:, None])[..., None], 1, (2, 130, 3, 80))
    drawn = [of_logits("tps", part.astype(np.float32), seed=0) for part in logits]
    true = drawn[0][np.arange(130), labels]
    tuning = true[100:, :16][::-1].copy()
    return Samples("tps", true, drawn[1], drawn[1][:, :, 0].copy(), labels, tuning)


CERTIFICATE = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
ALPHA, ETA = Fraction(1, 5), "0.01"


def public(name, samples, known, rest):
    """Return the sets of the public interface."""
    true, test = samples.calibration[known], samples.test[rest]
    paper = {"correction": "clopper-pearson", "eta": ETA, "p": "0.6"}
    plain = {"alpha": ALPHA, "eta": ETA}
    rules = {
        "RSCP, uncorrected": baselines.RSCP(CERTIFICATE, correction="none", **plain),
        "RSCP+, Hoeffding": baselines.RSCP(CERTIFICATE, **plain),
        "RSCP+, Bernstein": baselines.RSCP(CERTIFICATE, correction="bernstein", **plain),
        "CAS, uncorrected": baselines.CAS(CERTIFICATE, correction="none", **plain),
        "CAS": baselines.CAS(CERTIFICATE, **plain),
        "CAS, test-time": baselines.CAS(CERTIFICATE, robust_at="test", **plain),
        "BinCP, uncorrected": bincp.BinCP(CERTIFICATE, alpha=ALPHA, p="0.6", correction="none"),
        "BinCP, as printed": bincp.BinCP(CERTIFICATE, alpha=ALPHA, **paper),
        "BinCP, ghost": bincp.BinCP(CERTIFICATE, alpha=ALPHA, union="ghost", **paper),
        "BinCP, mixture": bincp.BinCP(CERTIFICATE, alpha=ALPHA),
        "BinCP, mixture, p = 0.9": bincp.BinCP(CERTIFICATE, alpha=ALPHA, p="0.9"),
        "smoothed CP": baselines.SmoothedCP(alpha=ALPHA),
    }
    if name == "vanilla CP":
        own = samples.clean_true_scores()[known]
        return baselines.VanillaCP(alpha=ALPHA).calibrate(own).predict_set(samples.clean[rest])
    if name == "RCP1":
        rule = baselines.RCP1(CERTIFICATE, alpha=ALPHA).calibrate(true[:, :1])
        return rule.predict_set(test[:, :, :1])
    options = {"n_classes": 3} if name.startswith("BinCP") else {}
    return rules[name].calibrate(true, **options).predict_set(test)


def test_losses_select_a_threshold_on_each_split(samples):
    """With few samples the mixture has losses and no ranks, and they gave every label."""
    method = next(m for m in methods.METHODS if m.name == "BinCP, mixture")
    problem = methods.Problem(samples, CERTIFICATE, "0.1", "0.8", 60, 8, ETA)
    fitted = method.fit(problem)
    assert fitted.select is not None
    splits = Splits(samples.n_inputs, 60, 5)
    for known, rest, tau in zip(splits.known, splits.rest, splits.thresholds(fitted), strict=True):
        rule = bincp.BinCP(CERTIFICATE, alpha=ALPHA).calibrate(samples.calibration[known, :8])
        wanted = rule.predict_set(samples.test[rest, :, :8])
        np.testing.assert_array_equal(fitted.test[rest] >= tau, wanted)
        assert not wanted.all()


@pytest.mark.parametrize(
    "method", [m for m in methods.METHODS if m.name != "RSCP+, PTT"], ids=lambda m: m.name
)
def test_sets_are_those_of_calibrate_and_predict_set(method, samples):
    problem = methods.Problem(samples, CERTIFICATE, "0.1", "0.8", 60, 80, ETA)
    fitted = method.fit(problem)
    splits = Splits(samples.n_inputs, 60, 5)
    taus = splits.thresholds(fitted)
    outcome = splits.evaluate(fitted, samples.labels)
    for i, (known, rest) in enumerate(zip(splits.known, splits.rest, strict=True)):
        wanted = public(method.name, samples, known, rest)
        np.testing.assert_array_equal(fitted.test[rest] >= taus[i], wanted)
        assert outcome.sizes[i] == pytest.approx(bincp.metrics.average_set_size(wanted))
        assert outcome.coverages[i] == bincp.metrics.coverage(wanted, samples.labels[rest])
    attacked = method.of_test(fitted, problem, samples.test[:20], samples.clean[:20])
    np.testing.assert_array_equal(attacked, fitted.test[:20])


def test_ranking_transformation_is_tuned_on_inputs_of_its_own(samples):
    method = next(m for m in methods.METHODS if m.name == "RSCP+, PTT")
    problem = methods.Problem(samples, CERTIFICATE, "0.1", "0.8", 60, 80, ETA)
    fitted = method.fit(problem)
    rule = baselines.RankedRSCP(
        CERTIFICATE, samples.tuning, seed=0, alpha=ALPHA, eta=ETA
    ).calibrate(samples.calibration)
    np.testing.assert_array_equal(fitted.test, rule.conformity(samples.test))
    assert len(samples.tuning) == 30
    assert samples.n_inputs == 100


@pytest.mark.parametrize("guarantee", ["robust", "clean", "none"])
def test_methods_say_what_they_guarantee(guarantee):
    named = {m.name for m in methods.METHODS if m.guarantee == guarantee}
    assert all(("uncorrected" in name) == (guarantee == "none") for name in named)
    assert (named == {"vanilla CP", "smoothed CP"}) == (guarantee == "clean")


def test_all_labels_are_accepted_where_calibration_is_too_small(samples):
    for method in methods.METHODS:
        problem = methods.Problem(samples, CERTIFICATE, "0.1", "0.98", 10, 8, ETA)
        fitted = methods.fit_quietly(method, problem)
        outcome = Splits(100, 10, 2).evaluate(fitted, samples.labels)
        assert (outcome.coverage, outcome.size) == (1, 3), method.name


def test_splits_need_test_points():
    with pytest.raises(ValueError, match="`n` must be below the 5 inputs, got 5"):
        Splits(5, 5, 1)


def test_scores_of_logits():
    logits = np.random.default_rng(0).normal(0, 2, (7, 4, 5)).astype(np.float32)
    probabilities = torch.from_numpy(logits).softmax(1).numpy()
    np.testing.assert_allclose(of_logits("tps", logits, seed=0), probabilities, rtol=1e-5)
    np.testing.assert_array_equal(of_logits("logit", logits, seed=0), logits)
    aps = of_logits("aps", logits, seed=0, block=3)
    above = (probabilities[:, :, None] < probabilities[:, None]) * probabilities[:, None]
    u = (-aps - above.sum(2)) / probabilities
    assert ((u > -1e-4) & (u < 1 + 1e-4)).all()
    np.testing.assert_allclose(u, u[:, :1] * np.ones((1, 4, 1)), atol=1e-3)  # one an evaluation
    assert len(np.unique(u[:, 0].round(4))) > 30


# ---- verdicts ------------------------------------------------------------------------------------


def row(method, sizes, **fields):
    values = {
        "dataset": "toy",
        "setting": "toy",
        "experiment": "radius",
        "guarantee": "robust",
        "score": "tps",
        "radius": "0.1",
        "coverage": "0.9",
        "n": 10,
        "m": 4,
        "p": None,
        "min_count": None,
        "seconds": 0.0,
        **fields,
    }
    sizes = np.array(sizes, float)
    return runs.Row(method=method, outcome=Outcome(sizes, np.ones(len(sizes))), **values)


def test_verdicts_count_and_list_exceptions():
    rows = [
        row("BinCP, mixture", [1, 2]),
        row("RCP1", [2, 2]),
        row("BinCP, mixture", [3, 4], radius="0.2"),
        row("RCP1", [2, 2], radius="0.2"),
        row("BinCP, mixture", [3, 3], m=8),
        row("RCP1", [3, 3], m=8),
        row("RCP1", [9, 9], m=16),  # nothing to compare with
    ]
    found = {(v.first, v.second): v for v in verdicts.judge(rows)}
    verdict = found["BinCP, mixture", "RCP1"]
    assert (verdict.smaller, verdict.equal, verdict.trivial) == (1, 1, 1)
    (loss,) = verdict.larger
    assert loss.case[2] == "0.2"
    assert loss.difference == 1.5
    assert loss.error == 0.5


# ---- the whole command ---------------------------------------------------------------------------


def write_mnist(folder):
    """Two classes that their brightness tells apart, as IDX files."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=N_TRAIN + N_HELD_OUT).astype(np.uint8)
    pixels = 120 * labels[:, None, None] + rng.integers(130, size=(len(labels), SIZE, SIZE))
    for name, array in ((data.MNIST_IMAGES, pixels), (data.MNIST_LABELS, labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        (folder / name).write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes(), 1))


def write_cifar10(folder, n_train, n_test):
    """Random images of 32 x 32 pixels in ten classes, as an archive of JPEG files."""
    import io
    import tarfile

    from PIL import Image

    rng = np.random.default_rng(0)
    with tarfile.open(folder / data.CIFAR10, "w:xz", preset=0) as tar:
        for i in range(n_train + n_test):
            jpeg = io.BytesIO()
            pixels = rng.integers(256, size=(32, 32, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(jpeg, "JPEG")
            split = "train" if i < n_train else "test"
            member = tarfile.TarInfo(f"{split}/{i % 10}/{i:04}.jpg")
            member.size = jpeg.tell()
            jpeg.seek(0)
            tar.addfile(member, jpeg)


SETTING = scores.Setting("toy-0.25", "mnist", (0.25,), "plain", 4, 1, 0.2, 290, 8, 8, seed=3)
TINY = settings.Dataset(
    tasks=(settings.Task(SETTING, settings.l2(0.05, 0.1)),),
    experiments=(
        settings.Experiment("radius", scores=("tps", "aps", "logit"), m=(4, 8)),
        settings.Experiment("samples", radii=("0.05",), m=(1, 8)),
        settings.Experiment("coverage", radii=("0.05",), coverages=("0.8", "0.9"), m=(8,)),
        settings.Experiment("points", radii=("0.05",), n=(50, 200, 5000), m=(8,)),
        settings.Experiment("p", radii=("0.05",), m=(8,), p=("0.5", "0.75")),
    ),
    n_logits=8,
    n_tuning=20,
    attack_radii=("0.1",),
    n_attacked=30,
    n_attack_samples=4,
    linf_radii=(0.01,),
    l2_radii=(0.05,),
    n_pixels=SIZE * SIZE,
    split_widths=(0.02,),
    split_radii=(0.01,),
    n_split_inputs=230,
)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    write_mnist(tmp_path)
    monkeypatch.setattr(data, "N_MNIST_TRAIN", N_TRAIN)
    monkeypatch.setitem(settings.DATASETS, "mnist", TINY)
    return tmp_path


def arguments(folder, *more):
    return ["mnist", "--cache", f"{folder}/cache", "--out", f"{folder}/out", *more]


def assert_pages_hold_what_they_link(folder):
    """Pages link to files that are there, and no picture is left without a page."""
    linked = set()
    for path in folder.glob("*.md"):
        links = re.findall(r"\]\(([^)]*)\)", path.read_text())
        linked |= set(links)
        for link in links:
            if link != "README.md":
                assert (folder / link).exists(), (path.name, link)
    drawn = {f"plots/{path.name}" for path in (folder / "plots").iterdir()}
    assert drawn <= linked


REPORTS = Path(report.__file__).parent


def test_the_page_is_that_of_the_stored_results():
    stored = read_all(REPORTS)
    assert [one.name for one in stored] == ["cifar10", "mnist", "cora-ml"]
    assert (REPORTS / "RESULTS.md").read_text() == page.page(stored)
    assert_pages_hold_what_they_link(REPORTS)
    assert len((REPORTS / "RESULTS.md").read_text().splitlines()) < 60


@pytest.mark.parametrize("name", ["cifar10", "mnist", "cora-ml"])
def test_stored_results_are_those_of_the_tables(name):
    """Pictures are drawn from the CSV file: what it says of m is what the long tables say."""
    (stored,) = (one for one in read_all(REPORTS) if one.name == name)
    text = (REPORTS / f"{name}.md").read_text()
    n_cells = 0
    for setting in stored.settings:
        known = {(p.radius, p.method, p.m): p for p in stored.of("samples", setting=setting)}
        section = text.split(f"### {setting}: set size against samples m\n")[1].split("\n###")[0]
        for block in section.split("Radius ")[1:]:
            radius, lines = block.split(":\n", 1)[0], block.splitlines()[2:]
            m, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line)
            for method, *cells in rows[1:]:
                for number, cell in zip(m[1:], cells, strict=True):
                    point = known.get((radius, method.split(" (*")[0], int(number)))
                    if point is None:
                        assert cell == "-"
                        continue
                    size, covered = re.fullmatch(r"(\S+) \((\S+)%\)", cell).groups()
                    assert abs(float(size) - point.size) < 0.00501  # both are rounded
                    assert abs(float(covered) - 100 * point.covered) < 0.0501
                    n_cells += 1
    assert n_cells == len(stored.of("samples")) > 300


@pytest.mark.slow
def test_from_data_to_report_and_again_from_the_cache(tiny, monkeypatch):
    command = arguments(tiny, "--data", str(tiny), "--splits", "3", "--threads", "1")
    __main__.main(command)
    text = (tiny / "out" / "mnist.md").read_text()
    for wanted in (
        "Who has the smaller sets",
        "BinCP, mixture",
        "vanilla CP (*)",
        "RSCP, uncorrected (**)",
        "Coverage under attack",
        "VRCP-I",
        "Lip-RCP",
        "exact, tau = 0.5",
        "accuracy",
    ):
        assert wanted in text
    assert_pages_hold_what_they_link(tiny / "out")
    assert {path.stem for path in (tiny / "out" / "plots").iterdir()} == {
        *("samples", "toy-0.25", "toy-0.25-bounds", "mnist-attack", "mnist-runtime")
    }
    with (tiny / "out" / "mnist.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == runs.COLUMNS
    assert {line["experiment"] for line in lines} == {
        *("radius", "samples", "coverage", "points", "p", "attack", "verified", "exact")
    }
    assert {line["n"] for line in lines} == {"50", "200"}  # 5000 are not there
    # Where scores have no bounds, no method that needs them.
    assert not any(line["method"] == "CAS" for line in lines if line["score"] == "logit")
    robust = [line for line in lines if line["guarantee"] == "robust"]
    assert all(
        float(line["empirical_coverage"]) >= float(line["coverage"]) - 0.1 for line in robust
    )
    assert not list((tiny / "cache").glob("*.piece"))
    assert not list((tiny / "cache").glob("*.partial"))

    # Nothing is trained or sampled again, and the numbers are the same.
    monkeypatch.setattr(scores.ImageTask, "train", None)
    monkeypatch.setattr(scores.ImageTask, "sample", None)
    before = (tiny / "out" / "mnist.csv").read_text()
    __main__.main(command)
    assert (tiny / "out" / "mnist.csv").read_text() == before
    __main__.main(arguments(tiny, "--from-cache", "--splits", "3", "--only", "toy-0.25"))
    assert (tiny / "out" / "mnist.csv").read_text() == before

    # Files that were made with other settings are refused, with data and without.
    from_cache = arguments(tiny, "--from-cache", "--splits", "3")
    attacks_changed = (("STEPS", "steps=10, not 3"), ("DRAWS", "draws=16, not 3"))
    for name, message in attacks_changed:
        with monkeypatch.context() as patch:
            patch.setattr(sampling, f"ATTACK_{name}", 3)
            for again in (command, from_cache):
                with pytest.raises(ValueError, match=rf"toy-0.25\.attack-0\.1\.npy .*{message}"):
                    __main__.main(again)
    other_seed = settings.Task(dataclasses.replace(SETTING, seed=4), TINY.tasks[0].radii)
    other_radius = settings.Task(SETTING, (settings.Radius("0.1", balls.L2(0.2)),))
    plain = (settings.Experiment("radius", m=(4,)),)
    for changed, message in (
        ({"n_attacked": 20}, "inputs=30, not 20"),
        ({"n_attack_samples": 8}, "samples=4, not 8"),
        ({"tasks": (other_seed,)}, r"toy-0\.25\.json .*seed=3, not 4"),
        ({"tasks": (other_radius,), "experiments": plain}, r"ball=L2\(r=0.1, .*not L2\(r=0.2, "),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(settings.DATASETS, "mnist", dataclasses.replace(TINY, **changed))
            for again in (command, from_cache):
                with pytest.raises(ValueError, match=message):
                    __main__.main(again)
    record = tiny / "cache" / "toy-0.25.attack-0.1.json"
    kept = record.read_text()
    for written in (None, kept.replace('"network": "', '"network": "0')):
        record.unlink() if written is None else record.write_text(written)
        with pytest.raises(
            ValueError, match=r"attack-0\.1\.npy in the cache was made with .*network="
        ):
            __main__.main(from_cache)
    record.write_text(kept)

    # Logits of other draws than the setting's are refused.
    monkeypatch.setitem(settings.DATASETS, "mnist", dataclasses.replace(TINY, n_logits=4))
    with pytest.raises(ValueError, match=r"must have shape \(290, 2, 4\), got \(290, 2, 8\)"):
        __main__.main(command)
    other = dataclasses.replace(SETTING, width=8)
    tasks = (settings.Task(other, TINY.tasks[0].radii),)
    monkeypatch.setitem(settings.DATASETS, "mnist", dataclasses.replace(TINY, tasks=tasks))
    with pytest.raises(ValueError, match="width=4, not 8"):
        __main__.main(command)


def test_interrupted_run_goes_on_with_the_next_piece(tmp_path):
    path, done = tmp_path / "toy.test.npy", []
    pieces = scores.blocks(25, 10)

    def sample(ids):
        if len(done) == 2 and stop:
            raise KeyboardInterrupt
        done.append(ids[0])
        return ids * 1.5

    stop = True
    with pytest.raises(KeyboardInterrupt):
        scores.in_pieces(path, pieces, sample)
    (tmp_path / "toy.test.20-24.partial").write_bytes(b"half of a file")
    stop = False
    np.testing.assert_array_equal(scores.in_pieces(path, pieces, sample), np.arange(25) * 1.5)
    assert done == [0, 10, 20]
    scores.forget_pieces(path)
    assert not list(tmp_path.glob("*.piece"))


def test_pieces_of_another_setting_are_refused(tmp_path):
    cache = sampling.Cache(tmp_path, "toy")
    path = cache.path("logits-test")
    scores.save(path.with_suffix(".0-4.piece"), np.zeros((5, 2, 8)))

    def make():
        return scores.in_pieces(path, scores.blocks(5, 5), lambda ids: np.zeros((5, 2, 4)))

    with pytest.raises(ValueError, match=r"toy\.logits-test\.\*\.piece in the cache must"):
        cache.make("logits-test", (5, 2, 4), make, silent)
    assert not path.exists()


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--data", "/nowhere"), "--data must be a folder, got /nowhere"),
        ((), "--data must be a folder, got None"),
        (("--from-cache", "--only", "cifar10-0.25"), "--only must be of mnist-0.5"),
        (("--from-cache", "--weights", "file"), "--weights and --sigma belong together"),
        (("--from-cache", "--weights", "x", "--sigma", "1"), "--weights is for cifar10"),
    ],
)
def test_wrong_arguments(options, message, tmp_path, capsys):
    with pytest.raises(SystemExit):
        __main__.main(arguments(tmp_path, *options))
    assert message in capsys.readouterr().err


def test_imagenet_needs_weights(tmp_path, capsys):
    with pytest.raises(SystemExit):
        __main__.main(["imagenet", *arguments(tmp_path)[1:], "--from-cache"])
    assert "imagenet needs --weights and --sigma" in capsys.readouterr().err


def test_empty_cache(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must be a folder with mnist-0\.5\.labels\.npy"):
        __main__.main(arguments(tmp_path, "--from-cache"))


@pytest.mark.parametrize("read", [data.mnist, data.cora_ml, lambda f: data.cifar10(f, f)])
def test_missing_data(read, tmp_path):
    with pytest.raises(FileNotFoundError, match="`--data` must be a folder with "):
        read(tmp_path)


def test_wrong_data(tmp_path):
    for name in (data.MNIST_IMAGES, data.MNIST_LABELS, data.CIFAR10, data.CORA_ML):
        (tmp_path / name).write_bytes(b"not what the name says")
    with pytest.raises(ValueError, match="must be a compressed IDX file"):
        data.mnist(tmp_path)
    with pytest.raises(ValueError, match="must be an archive of images"):
        data.cifar10(tmp_path, tmp_path)
    with pytest.raises(ValueError, match="must hold adj_matrix"):
        data.cora_ml(tmp_path)
    # Files of the right kind with something else in them.
    write_mnist(tmp_path)
    (tmp_path / data.MNIST_LABELS).write_bytes((tmp_path / data.MNIST_IMAGES).read_bytes())
    with pytest.raises(ValueError, match="with 1 axes"):
        data.mnist(tmp_path)
    np.savez(tmp_path / data.CORA_ML, labels=np.zeros(3))
    with pytest.raises(ValueError, match="must hold adj_matrix"):
        data.cora_ml(tmp_path)


def test_archive_of_something_else(tmp_path):
    import tarfile

    (tmp_path / "note.txt").write_text("no image")
    with tarfile.open(tmp_path / data.CIFAR10, "w:xz") as tar:
        tar.add(tmp_path / "note.txt", "note.txt")
    with pytest.raises(ValueError, match=r"must hold train/<class>/\*\.jpg"):
        data.cifar10(tmp_path, tmp_path)


# ---- networks ------------------------------------------------------------------------------------


def test_lipschitz_constant_bounds_differences():
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)
    )
    constant = verified.lipschitz_of(network)
    x = torch.randn(2000, 6) * 3
    moved = x + 0.01 * torch.nn.functional.normalize(torch.randn_like(x))
    with torch.no_grad():
        change = (network(moved).softmax(1) - network(x).softmax(1)).abs().max()
    assert 0.05 * constant * 0.01 < float(change) <= constant * 0.01


class TestPublished:
    def test_resnet110_has_the_published_parameters(self):
        network = published.ResNet(110)
        assert sum(p.numel() for p in network.parameters()) == 1_730_714
        names = set(network.state_dict())
        assert {"conv1.weight", "layer2.0.downsample.1.running_var", "layer3.17.bn2.bias"} <= names

    @pytest.mark.parametrize("prefix", ["", "1.", "1.module."])
    def test_weights_are_read_under_the_prefixes_of_wrappers(self, prefix, tmp_path):
        torch.manual_seed(0)
        network = published.ResNet(8)
        saved = {prefix + name: value for name, value in network.state_dict().items()}
        path = tmp_path / "checkpoint.pth.tar"
        torch.save({"epoch": 90, "arch": "cifar_resnet8", "state_dict": saved}, path)
        found = published.load_weights(published.ResNet(8), path).eval()
        x = torch.randn(2, 3, 32, 32)
        torch.testing.assert_close(found(x), network.eval()(x))

    def test_wrong_weights(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="`--weights` must be a file"):
            published.load_weights(published.ResNet(8), tmp_path / "none")
        path = tmp_path / "weights.pt"
        path.write_bytes(b"nothing of torch")
        with pytest.raises(ValueError, match="must be a file of torch"):
            published.load_weights(published.ResNet(8), path)
        torch.save(published.ResNet(14).state_dict(), path)
        assert published.load_weights(published.ResNet(14), path)
        with pytest.raises(ValueError, match="must hold the weights of ResNet, but"):
            published.load_weights(published.ResNet(20), path)
        with pytest.raises(ValueError, match=r"`depth` must be 6 n \+ 2"):
            published.ResNet(9)

    def test_noise_is_in_pixels(self, tmp_path, monkeypatch):
        kind = published.ResNet

        def resnet8():
            torch.manual_seed(1)
            return kind(8)

        monkeypatch.setattr(published, "ResNet", resnet8)
        path = tmp_path / "weights.pt"
        torch.save(resnet8().state_dict(), path)
        rng = np.random.default_rng(0)
        pixels = rng.integers(256, size=(6, 32, 32, 3)).astype(np.uint8)
        rows = np.arange(6)
        images = data.Images(pixels, rows % 2, rows[:0], rows, mirrored=True)
        setting = scores.Setting("toy", "cifar10", (0.25,), "resnet110", 0, 0, 0.0, 6, 3, 3, seed=5)
        task = published.PublishedTask(setting, images, path)
        network = task.network()
        found = task.sample(network, "test", silent)

        mean, std = (torch.tensor(s).view(1, 3, 1, 1) for s in published.CIFAR10_SCALES)
        plain = resnet8().eval()

        def model(x):
            return plain((x.permute(0, 3, 1, 2) - mean) / std)

        wanted = sample_scores(
            model, images.inputs(rows), smoothing.Gaussian(0.25), 3, phase="test", seed=5
        )
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        scores.fill_cache(task, tmp_path, report=silent)
        sampling.fill(task, tmp_path, 2, 3, report=silent)
        cache = sampling.Cache(tmp_path, "toy")
        assert cache.load("logits-test").shape == (6, 10, 2)
        self.check_tuning(cache, model, images.inputs(rows[3:]), rows % 2)

    def check_tuning(self, cache, model, x, labels):
        """The ranking transformation is tuned on the last inputs, with noise of its own phase."""
        wanted = sample_scores(
            model,
            x,
            smoothing.Gaussian(0.25),
            16,
            phase="tuning",
            seed=5,
            indices=[3, 4, 5],
            labels=labels[3:],
        )
        cache.make("logits-clean", (6, 10), None, silent)
        found = Samples.load(cache.folder, "toy", "tps", 3)
        np.testing.assert_allclose(found.tuning, wanted, atol=1e-5)
        assert found.n_inputs == 3
        with pytest.raises(ValueError, match=r"toy\.logits-tuning\.npy .*inputs=3, not 2"):
            Samples.load(cache.folder, "toy", "tps", 2)

    def test_command(self, tmp_path, monkeypatch):
        """From an archive and a file of weights to a report, with a network of fewer layers."""
        kind = published.ResNet
        monkeypatch.setattr(published, "ResNet", lambda: kind(8))
        monkeypatch.setitem(published.N_INPUTS, "cifar10", 305)
        monkeypatch.setitem(published.N_SAMPLES, "cifar10", 4)
        grid = (settings.Experiment("radius", m=(4,)),)
        monkeypatch.setitem(
            settings.DATASETS,
            "cifar10",
            dataclasses.replace(settings.DATASETS["cifar10"], experiments=grid),
        )
        write_cifar10(tmp_path, n_train=2, n_test=305)
        torch.save(kind(8).state_dict(), tmp_path / "weights.pt")
        options = ("--weights", f"{tmp_path}/weights.pt", "--sigma", "0.5", "--splits", "2")
        __main__.main(["cifar10", *arguments(tmp_path, "--data", str(tmp_path), *options)[1:]])
        text = (tmp_path / "out" / "RESULTS.md").read_text()
        assert "[cifar10-resnet110-0.5](cifar10-resnet110-0.5.md)" in text
        assert "BinCP, mixture" in text

    def test_imagenet_folder(self, tmp_path):
        from PIL import Image

        with pytest.raises(ValueError, match="with 1000 folders of classes in imagenet-val, got 0"):
            published.imagenet(tmp_path, 2)
        for name, colour in (("n1", 50), ("n2", 200)):
            (tmp_path / "imagenet-val" / name).mkdir(parents=True)
            for i in range(3):
                image = Image.new("RGB", (300, 260 + i), (colour, 0, 0))
                image.save(tmp_path / "imagenet-val" / name / f"{i}.JPEG", quality=100)
        images = published.imagenet(tmp_path, 5, n_classes=2)
        assert images.pixels.shape == (5, 224, 224, 3)
        np.testing.assert_array_equal(images.pixels.mean((1, 2))[:, 0] > 100, images.labels == 1)
        with pytest.raises(ValueError, match="at least 7 images, got 6"):
            published.imagenet(tmp_path, 7, n_classes=2)

    def test_resnet50(self, tmp_path):
        pytest.importorskip("torchvision")
        network = published.resnet50().eval()
        torch.save({f"1.module.{k}": v for k, v in network.state_dict().items()}, tmp_path / "w.pt")
        again = published.load_weights(published.resnet50(), tmp_path / "w.pt").eval()
        x = torch.randn(1, 3, 64, 64)
        with torch.no_grad():
            torch.testing.assert_close(again(x), network(x))

    def test_without_torchvision(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torchvision", None)
        with pytest.raises(ImportError, match="`imagenet` needs torchvision"):
            published.resnet50()


def test_remarks_are_of_data_sets():
    assert set(report.REMARKS) <= set(settings.DATASETS)
