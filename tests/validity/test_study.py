"""The study's scripts on tiny made-up data: networks learn, caches resume, noise is keyed right."""

import dataclasses
import gzip
import io
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from scipy import sparse  # noqa: E402

import bincp  # noqa: E402
from bincp import noise  # noqa: E402
from bincp.sampling import sample_scores  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402
from support import import_benchmarks  # noqa: E402

import_benchmarks()

from benchmarks import risk  # noqa: E402
from benchmarks.study import attacked, data, departures, evaluation, networks, scores  # noqa: E402

N_NODES, N_ATTRIBUTES = 60, 40
REPORTS = Path(scores.__file__).parent


def images(n_train=512, n_held_out=40, size=8):
    """Two classes that their brightness tells apart."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=n_train + n_held_out)
    grain = rng.integers(90, size=(len(labels), size, size, 3))
    pixels = 160 * labels[:, None, None, None] + grain
    rows = np.arange(len(labels))
    return data.Images(
        pixels.astype(np.uint8), labels, rows[:n_train], rows[n_train:], mirrored=True
    )


def graph_file(path):
    """Two communities with attributes of their own, a stray node, and what must be cleaned up."""
    rng = np.random.default_rng(0)
    labels = np.arange(N_NODES + 1) % 2
    links = rng.random((N_NODES + 1, N_NODES + 1)) < np.where(labels[:, None] == labels, 0.1, 0.01)
    links[-1], links[:, -1] = False, False
    links[-1, -1] = links[0, 0] = True  # self-loops
    links[np.arange(N_NODES - 1), np.arange(1, N_NODES)] = True  # connected, one way only
    own = np.arange(N_ATTRIBUTES) % 2 == labels[:, None]
    attributes = rng.random((N_NODES + 1, N_ATTRIBUTES)) * (rng.random(own.shape) < 0.4 * own)
    parts = {"labels": labels}
    for name, matrix in (("adj_matrix", links.astype(float)), ("attr_matrix", attributes)):
        matrix = sparse.csr_array(matrix)
        for part in ("data", "indices", "indptr", "shape"):
            parts[f"{name}.{part}"] = getattr(matrix, part)
    np.savez(path, **parts)
    return links, attributes


IMAGES = scores.Setting("tiny", "cifar10", (0.25,), "residual", 4, 4, 0.2, 30, 8, 16, seed=3)
GRAPH = scores.Setting(
    "nodes", "cora-ml", (0.05, 0.3), "gcn", 8, 60, 0.05, 12, 5, 7, 4, "SparseFlip"
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    graph_file(path)
    return data.read_graph(path, n_train=6)


def silent(_):
    pass


class TestData:
    def test_images_of_an_archive(self, tmp_path):
        colours = {}
        with tarfile.open(tmp_path / data.CIFAR10, "w:xz") as tar:
            for i, path in enumerate(["train/b/1", "train/a/0", "test/b/0", "train/b/0"]):
                colours[path] = (50 * i, 200 - 50 * i, 100)
                jpeg = io.BytesIO()
                Image.new("RGB", (8, 8), colours[path]).save(jpeg, "JPEG", quality=100)
                member = tarfile.TarInfo(f"{path}.jpg")
                member.size = jpeg.tell()
                jpeg.seek(0)
                tar.addfile(member, jpeg)
        for _ in range(2):  # decoded, then cached
            found = data.cifar10(tmp_path, tmp_path)
            assert found.labels.tolist() == [1, 0, 1, 1]
            assert found.train.tolist() == [1, 2, 3]
            assert found.held_out.tolist() == [0]
            wanted = [colours[p] for p in ("test/b/0", "train/a/0", "train/b/0", "train/b/1")]
            assert np.abs(found.pixels.mean((1, 2)) - wanted).max() < 3
            (tmp_path / data.CIFAR10).unlink(missing_ok=True)

    def test_idx_files(self, tmp_path):
        pixels = np.random.default_rng(0).integers(256, size=(8000, 2, 3)).astype(np.uint8)
        labels = (np.arange(8000) % 10).astype(np.uint8)
        for name, array in ((data.MNIST_IMAGES, pixels), (data.MNIST_LABELS, labels)):
            sizes = np.array(array.shape, dtype=">u4").tobytes()
            header = bytes([0, 0, 8, array.ndim]) + sizes
            (tmp_path / name).write_bytes(gzip.compress(header + array.tobytes(), 1))
        found = data.mnist(tmp_path)
        np.testing.assert_array_equal(found.pixels[..., 0], pixels)
        np.testing.assert_array_equal(found.labels, labels)
        assert len(found.train) == 7000
        assert sorted([*found.train, *found.held_out]) == list(range(8000))

    def test_graph_is_connected_undirected_binary_and_without_loops(self, tmp_path):
        links, attributes = graph_file(tmp_path / "graph.npz")
        found = data.read_graph(tmp_path / "graph.npz", n_train=6)
        wanted = (links | links.T) & ~np.eye(N_NODES + 1, dtype=bool)
        np.testing.assert_array_equal(found.adjacency.toarray(), wanted[:-1, :-1])
        np.testing.assert_array_equal(found.attributes, attributes[:-1] > 0)
        assert np.bincount(found.labels[found.train]).tolist() == [6, 6]
        assert sorted([*found.train, *found.held_out]) == list(range(N_NODES))


class TestNetworks:
    @pytest.mark.parametrize("kind", sorted(networks.BLOCKS))
    def test_learns_from_the_training_images_and_is_the_same_when_folded(self, kind):
        setting = dataclasses.replace(IMAGES, network=kind, n_epochs=25)
        task = scores.ImageTask(setting, images())
        network = task.network()
        task.train(network, silent)
        assert task.accuracies(network)["noisy_accuracy"] > 0.9
        x = torch.from_numpy(task.images.inputs(task.images.held_out))
        folded = networks.for_sampling(network, torch.float32)
        torch.testing.assert_close(folded(x), network(x), rtol=1e-3, atol=1e-4)
        coarse = networks.for_sampling(network, torch.bfloat16)(x)
        assert coarse.dtype == torch.float32
        assert (coarse.softmax(1) - network(x).softmax(1)).abs().max() < 0.1

    def test_what_is_held_out_changes_nothing(self):
        first, second = images(), images()
        second.pixels[second.held_out] = 0
        trained = []
        for seen in (first, second):
            task = scores.ImageTask(dataclasses.replace(IMAGES, n_epochs=1), seen)
            network = task.network()
            task.train(network, silent)
            trained.append(network.state_dict())
        for name, values in trained[0].items():
            assert torch.equal(values, trained[1][name])

    def test_crops_move_and_mirror_whole_images(self):
        size = 32
        pixels = np.arange(size * size, dtype=np.uint16).astype(np.uint8).reshape(1, size, size, 1)
        one = data.Images(pixels, np.zeros(1, int), np.zeros(1, int), np.zeros(0, int), True)
        found = networks._augmented(one, np.zeros(200, int), torch.Generator().manual_seed(0))
        framed = np.pad(pixels[0, :, :, 0], networks.SHIFT, "edge")
        crops = np.lib.stride_tricks.sliding_window_view(framed, (size, size)).reshape(-1, size**2)
        possible = {crop.tobytes() for crop in crops}
        mirrored = {crop.reshape(size, size)[:, ::-1].tobytes() for crop in crops}
        seen = {image.tobytes() for image in found}
        assert seen <= possible | mirrored
        assert seen & possible
        assert seen & mirrored
        assert len(seen) > 50


class TestImageScores:
    def test_are_those_of_the_package_for_any_number_of_threads(self):
        task = scores.ImageTask(IMAGES, images(), dtype=torch.float32)
        network = task.network().eval()
        x = task.images.inputs(task.images.held_out[:30])
        options = {"seed": 3, "batch_size": 512}
        test = sample_scores(network, x, Gaussian(0.25), 16, phase="test", **options)
        own = sample_scores(
            network, x, Gaussian(0.25), 8, phase="calibration", labels=task.labels, **options
        )
        for n_threads in (1, 3):
            task.n_threads = n_threads
            for phase, wanted in (("test", test), ("calibration", own)):
                found = task.sample(network, phase, silent)
                assert found.dtype == np.float32
                np.testing.assert_allclose(found, wanted, atol=1e-5)

    def test_more_inputs_than_are_held_out(self):
        with pytest.raises(ValueError, match="must be at most 40"):
            scores.ImageTask(dataclasses.replace(IMAGES, n_inputs=41), images())


class TestGraphScores:
    def test_learns(self, graph):
        task = scores.GraphTask(GRAPH, graph)
        network = task.network()
        task.train(network, silent)
        assert task.accuracies(network)["noisy_accuracy"] > 0.8

    def test_are_those_of_the_network_on_all_noisy_attributes(self, graph):
        task = scores.GraphTask(GRAPH, graph)
        network = task.network().eval()
        propagation = networks.as_sparse_tensor(task.propagation)

        def score(noisy):
            with torch.no_grad():
                logits = [network(torch.from_numpy(x), propagation) for x in noisy.swapaxes(0, 1)]
            return torch.stack(logits, -1).softmax(1).numpy()

        n, options = len(graph.labels), {"seed": GRAPH.seed}
        noisy = noise.draw(task.smoothing, graph.attributes, 7, phase="test", **options)
        np.testing.assert_allclose(
            task.sample(network, "test", silent), score(noisy)[task.nodes], atol=1e-5
        )
        calibration = task.sample(network, "calibration", silent)
        assert calibration.shape == (12, 5)
        logits = task.sample(network, "tuning", silent, n_logits=5)
        tuning = torch.from_numpy(logits).softmax(1).numpy()[np.arange(12), task.labels]
        for phase, scores_of_phase in (("calibration", calibration), ("tuning", tuning)):
            for node, label, own in zip(task.nodes, task.labels, scores_of_phase, strict=True):
                # Keyed by (node, neighbour), so no two nodes share any noise.
                ids = node * n + np.arange(n)
                noisy = noise.draw(
                    task.smoothing, graph.attributes, 5, phase=phase, indices=ids, **options
                )
                np.testing.assert_allclose(own, score(noisy)[node, label], atol=1e-5)


class TestCache:
    @pytest.mark.parametrize("kind", ["images", "graph"])
    def test_is_filled_once_and_resumes(self, kind, graph, tmp_path, monkeypatch):
        task = (
            scores.ImageTask(IMAGES, images())
            if kind == "images"
            else scores.GraphTask(GRAPH, graph)
        )
        name, n = task.setting.name, task.setting.n_inputs
        scores.fill_cache(task, tmp_path, command="this", report=silent)
        calibration, test, labels = scores.load(tmp_path, name)
        assert calibration.shape == (n, task.setting.n_calibration)
        assert test.shape == (n, 2, task.setting.n_test)
        assert calibration.dtype == test.dtype == np.float32
        np.testing.assert_allclose(test.sum(1), 1, atol=1e-5)
        np.testing.assert_array_equal(labels, task.labels)
        record = json.loads((tmp_path / f"{name}.json").read_text())
        assert record["command"] == "this"
        assert record["smoothed_accuracy"] == (test.mean(2).argmax(1) == labels).mean()
        assert not list(tmp_path.glob("*.partial"))

        # A lost file is made again, equal to the bit, by the network that is there.
        before = np.array(calibration)
        (tmp_path / f"{name}.calibration.npy").unlink()
        monkeypatch.setattr(type(task), "train", None)
        scores.fill_cache(task, tmp_path, report=silent)
        np.testing.assert_array_equal(scores.load(tmp_path, name)[0], before)
        monkeypatch.setattr(type(task), "sample", None)
        scores.fill_cache(task, tmp_path, report=silent)

    def test_of_another_setting_is_refused(self, tmp_path):
        scores.fill_cache(scores.ImageTask(IMAGES, images()), tmp_path, report=silent)
        for change, message in (
            ({"noise": (0.5,)}, r"noise=\[0.25\], not \[0.5\]"),
            ({"n_test": 32}, "n_test=16, not 32"),
            ({"seed": 9, "width": 8}, "width=4, not 8, seed=3, not 9"),
        ):
            task = scores.ImageTask(dataclasses.replace(IMAGES, **change), images())
            with pytest.raises(ValueError, match=message):
                scores.fill_cache(task, tmp_path, report=silent)

    def test_names_differ(self):
        names = [setting.name for setting in scores.SETTINGS]
        assert len(set(names)) == len(names)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A cache of one network, and the only table that the reports know."""
    from benchmarks.study import evaluation, hindsight, report

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 600)
    means = np.where(np.arange(3) == labels[:, None], 0.7, 0.3)[..., None]
    test = rng.normal(means, 0.1, (600, 3, 64)).clip(0, 1).astype(np.float32)
    true = rng.normal(0.7, 0.1, (600, 64)).clip(0, 1).astype(np.float32)
    setting = {"network": "plain", "width": 1, "n_epochs": 1, "seed": 0}
    accuracies = dict.fromkeys(("clean_accuracy", "noisy_accuracy", "smoothed_accuracy"), 0.9)
    (tmp_path / "toy.json").write_text(json.dumps({"setting": setting, **accuracies}))
    for part, array in (("calibration", true), ("test", test), ("labels", labels)):
        np.save(tmp_path / f"toy.{part}.npy", array)
    found = [report.gaussian("toy", "Toy", 0.25)]
    for module in (report, hindsight):
        monkeypatch.setattr(module, "problems", lambda: found)
    return tmp_path, found[0], evaluation.Scores(true, test, labels)


def test_report_on_a_small_cache(toy):
    from benchmarks.study import report

    cache = toy[0]
    report.main(["--cache", str(cache), "--splits", "2", "--out", str(cache / "out")])
    text = (cache / "out" / "TABLES.md").read_text()
    assert "| mixture, early | 64 | 32 |" in text
    assert "0.900 smoothed" in text
    assert "1024" not in text  # draws that the cache lacks
    with Image.open(cache / "out" / "plots" / "passes.png") as picture:
        assert picture.size[0] > 400

    stored = json.loads((cache / "out" / "sizes.json").read_text())
    (problem,) = stored["problems"]
    size, passes = {}, {}
    for row in problem["rows"]:
        if row["m_test"] in (1, 16, 64):
            key = row["method"], row["m"], row["m_test"]
            size[key], passes[key] = row["size"][1], row["passes"][1]
    one, paper = size["RCP1", 1, 1], size["Clopper-Pearson, paper", 64, 64]
    own = ("mixture, early", 64, 16)
    shown = [f"{one:.2f} @ 1", f"{paper:.2f} @ 64", f"{size[own]:.2f} @ {passes[own]:.1f}"]
    page = (cache / "out" / "RESULTS.md").read_text()
    assert all(f"| {cell} |" in page for cell in shown)
    assert f"than the paper's rule on {int(size[own] < paper)} of 1 tasks" in page
    assert f"for {64 / passes[own]:.0f} to {64 / passes[own]:.0f} times fewer" in page
    assert len(page.splitlines()) < 40
    for link in re.findall(r"\]\(([^)]*)\)", page):
        assert (cache / "out" / link).exists() or (REPORTS / link).exists(), link


def test_stored_figures_are_those_of_the_pages():
    """The picture, the page and the tables of the study are made of `sizes.json`."""
    from benchmarks.study import report

    stored = json.loads((REPORTS / "sizes.json").read_text())
    assert (REPORTS / "RESULTS.md").read_text() == report.page(stored)
    assert (REPORTS / "TABLES.md").read_text() == report.tables(stored)


def test_early_on_a_small_cache(toy, monkeypatch):
    from benchmarks.study import early

    cache, problem, _ = toy
    monkeypatch.setattr(early, "problems", lambda: [problem])
    monkeypatch.setattr(early, "SIZES", ((200, "0.1"),))
    monkeypatch.setattr(early, "N_ALTERNATIVE_SETTINGS", 2)
    options = ["--cache", str(cache), "--splits", "2", "--settings", "12", "--workers", "1"]
    early.main([*options, "--out", str(cache / "out.md")])
    text = (cache / "out.md").read_text()
    assert "| mixture, early, 3.5 passes | 64 | 16 |" in text
    assert "| all | 12 |" in text
    kept = [json.loads(line) for line in (cache / "hindsight.jsonl").read_text().splitlines()]
    assert len(kept) == 12
    assert all(record["ratio"] >= 1 for record in kept)
    early.main([*options, "--out", str(cache / "again.md")])
    assert (cache / "again.md").read_text() == text


def test_a_rule_is_measured_as_the_library_decides(toy):
    import bincp
    from benchmarks.study import evaluation, hindsight
    from bincp.calibration._search import choose_rule

    cache, problem, data = toy
    for passes in (0.0, 3.5):
        setting = hindsight.Setting("toy", 0, "tps", 100, "0.1", 64, 16, passes)
        method = evaluation.Method("", 64, 16, {"passes": passes or None})
        own = evaluation.evaluate(method, problem.attacks[0].certificate, data, 100, 3)
        bench = hindsight.Bench(cache, setting, 3)
        measured = bench.measure(choose_rule(bench.setup, setting.price))
        np.testing.assert_allclose(measured, np.transpose([own.size, own.passes]))
        # By hand, with the public interface alone.
        known, rest = next(data.splits(100, 3))
        rule = bincp.BinCP(problem.attacks[0].certificate, passes=passes or None)
        rule.calibrate(data.calibration[known, :64], n_test_samples=16)
        sets = rule.predict_set(data.test[rest, :, :16])
        assert sets.sum(axis=1).mean() == own.size[0]
        assert own.coverage[0] == sets[np.arange(len(rest)), data.labels[rest]].mean()


def test_ratio_of_paired_splits():
    from benchmarks.study.evaluation import Outcome

    rng = np.random.default_rng(0)
    base = rng.normal(2, 0.5, 4000)
    own = Outcome(1.1 * base + rng.normal(0, 0.1, 4000), base, base)
    ratio = own.over(Outcome(base, base, base))
    assert ratio.value == own.size.mean() / base.mean()
    # The noise that the two do not share: 0.1 / 2 / sqrt(4000).
    assert ratio.error == pytest.approx(0.1 / 2 / 4000**0.5, rel=0.1)


# ---- evasion, poison and shift -----------------------------------------------------------------


class TestAttackedScores:
    """Lower for the true label, and those of the clean inputs where the ball is one point."""

    def test_of_images(self):
        task = scores.ImageTask(IMAGES, images(), dtype=torch.float32)
        network = task.network()
        task.train(network, silent)
        clean, weak, strong = (
            attacked.attacked_scores(task, network, bincp.balls.L2(r), 12, 16) for r in (0, 0.5, 2)
        )
        np.testing.assert_allclose(clean, task.sample(network, "test", silent)[:12], atol=1e-5)
        means = [one[np.arange(12), task.labels[:12]].mean() for one in (clean, weak, strong)]
        assert means == sorted(means, reverse=True)
        assert means[2] < means[0] - 0.05

    def test_of_nodes(self, graph):
        task = scores.GraphTask(GRAPH, graph)
        network = task.network()
        task.train(network, silent)
        clean, moved = (
            attacked.attacked_scores(task, network, bincp.balls.Flips(k, k), 12, 32) for k in (0, 4)
        )
        own, other = (one[np.arange(12), task.labels].mean() for one in (clean, moved))
        assert other < own - 0.05
        assert clean.shape == (12, 2, 32)
        # Without flips they are those of the task but for the noise: 12 nodes x 32 draws.
        many = task.sample(network, "test", silent, n_logits=400)
        smoothed = torch.from_numpy(many).softmax(1).numpy().mean(2)
        assert np.abs(clean.mean(2) - smoothed).mean() < 0.1


@pytest.fixture
def worlds():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=400)
    truth = labels[:, None] == np.arange(3)
    centre = 2 * truth + rng.normal(0, 0.7, (400, 3))
    test = (centre[..., None] + rng.normal(0, 0.5, (400, 3, 8))).astype(np.float32)
    own = centre[np.arange(400), labels, None]
    true = (own + rng.normal(0, 0.5, (400, 8))).astype(np.float32)
    moved = test - 0.4 * truth[..., None].astype(np.float32)
    clean, weak, strong = departures.balls_of(IMAGES)
    found = {clean: test[:150], weak: moved[:150], strong: moved[:150]}
    known = evaluation.Scores(true, test, labels)
    return [
        departures.World(name, IMAGES.smoothing, known, found)
        for name in ("tiny", "tiny" + departures.GRID)
    ]


@pytest.fixture
def rows(worlds, monkeypatch):
    for name, value in (("N", 200), ("SAMPLES", 8), ("TEST_SAMPLES", 8)):
        monkeypatch.setattr(departures, name, value)
    return [row for world in worlds for row in departures.rows_of(world, 4)]


class TestDepartures:
    """The table of evasion, poison and shift on scores that are made up."""

    def test_rows(self, worlds, rows):
        cells = [[cell.strip() for cell in str(row).split("|")[1:-1]] for row in rows]
        cases = [(row[0], row[1], int(row[2]), float(row[3])) for row in cells]
        assert len(set(cases)) == 2 * 3 * len(departures.POISONED) * len(departures.SHIFTS)
        price = {case: float(row[4]) for case, row in zip(cases, cells, strict=True)}
        for (world, ball, b, rho), size in price.items():
            assert size >= price[world, ball, 0, rho]
            assert size >= price[world, ball, b, 0.0]
        clean, attacked, unprepared = (
            np.array([float(row[i].strip("%")) for row in cells]) for i in (5, 6, 7)
        )
        assert (attacked >= unprepared).all()
        assert (clean >= attacked).all()
        assert unprepared.min() < attacked.min()
        # Where nothing happens, the three are one.
        first = cases.index(
            ("tiny", repr(next(iter(worlds[0].attacked))).split(",")[0] + ")", 0, 0)
        )
        assert clean[first] == attacked[first] == unprepared[first]

    def test_a_row_by_hand(self, worlds, rows):
        world, row = worlds[0], rows[-1]
        assert (row.b, float(row.rho)) == (8, 0.03)
        pool = np.random.default_rng(3).permutation(250)
        true = world.scores.calibration[150 + pool[:200]]
        certificate = bincp.certify(IMAGES.smoothing, row.ball)
        rule = bincp.BinCP(
            certificate, alpha="0.1", poisoned=8, shift=bincp.shifts.TotalVariation("0.03")
        )
        labels = np.arange(150), world.scores.labels[:150]
        rule.calibrate(true, n_test_samples=8)
        sets = rule.predict_set(world.scores.test[:150])
        np.testing.assert_array_equal(row.sizes[3], sets.sum(axis=1))
        np.testing.assert_array_equal(row.clean[3], sets[labels])
        poisoned = np.where(np.median(true, axis=1) <= np.sort(np.median(true, axis=1))[7], 9e9, 0)
        rule.calibrate(np.maximum(true, poisoned[:, None].astype(np.float32)), n_test_samples=8)
        np.testing.assert_array_equal(
            row.attacked[3], rule.predict_set(world.attacked[row.ball])[labels]
        )

    def test_sizes_of_equal_scores_have_the_quotient_one(self, rows):
        lines = list(departures.grid_over_float(rows))
        assert len(lines) == len(rows) / 2
        assert all(line.endswith("| 1.000 ± 0.000 |") for line in lines)


def test_risk_control_by_the_mixture_has_smaller_sets_on_a_multi_label_task(monkeypatch):
    for name, value in (("N", 150), ("N_TEST", 100), ("N_TRAIN", 300), ("SAMPLES", 16)):
        monkeypatch.setattr(risk, name, value)
    scores, labels = risk.sampled(0)
    assert scores.shape == (250, risk.K, 16)
    certificate = bincp.certify(Gaussian(risk.SIGMA), bincp.balls.L2(0.25))
    for loss in risk.LOSSES.values():
        sizes = [
            risk.outcome(certificate, loss, scores, labels, correction=correction)[0]
            for correction in ("mixture", "clopper-pearson")
        ]
        assert sizes[0] < sizes[1]
