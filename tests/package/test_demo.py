"""The demo: reproducible and complete when small, convincing when real."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from bincp.balls import L2
from bincp.cli import _demo_run as demo
from bincp.cli import main

scipy_stats = pytest.importorskip("scipy.stats")
for package in ("torch", "sklearn", "matplotlib", "tqdm"):
    pytest.importorskip(package)

from bincp.sampling._jobs import Job  # noqa: E402

SMALL = demo.Settings(
    radii=(0.0, 0.1),
    n_samples=16,
    n_paper_samples=128,
    n_train=300,
    n_calibration=150,
    n_test=80,
    n_epochs=8,
    attack_steps=3,
    attack_draws=4,
)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def small():
    return demo.run(SMALL)


def test_rows_are_complete(small):
    assert [row.radius for row in small.rows] == list(SMALL.radii)
    assert small.accuracy > 0.5  # it has learnt something
    for row in small.rows:
        for outcome in (row.bincp, row.paper, row.vanilla):
            assert 0 <= outcome.coverage_attacked <= 1
            assert 0 <= outcome.coverage <= 1
            assert 0 <= outcome.set_size <= demo.N_CLASSES
        assert 1 <= row.bincp.passes <= SMALL.n_samples
        assert row.bincp.passes < row.paper.passes <= SMALL.n_paper_samples
        assert row.vanilla.passes == 1
    still, attacked = small.rows
    assert still.vanilla.coverage == still.vanilla.coverage_attacked
    assert attacked.vanilla.coverage_attacked < attacked.vanilla.coverage


def test_equal_seeds_give_equal_results(small):
    import torch

    torch.manual_seed(99)
    state = torch.random.get_rng_state()
    n_threads = torch.get_num_threads()
    assert demo.run(SMALL) == small
    assert torch.get_num_threads() == n_threads
    assert torch.equal(torch.random.get_rng_state(), state)  # the caller's is left alone
    assert demo.run(dataclasses.replace(SMALL, seed=1)) != small


def test_parts_of_the_split_do_not_meet():
    parts = demo._split(SMALL)
    assert [len(part) for part in parts] == [300, 150, 80]
    assert len(np.unique(np.concatenate(parts))) == 530
    assert all(np.array_equal(a, b) for a, b in zip(parts, demo._split(SMALL), strict=True))


@pytest.fixture(scope="module")
def trial():
    images, labels = demo._load_digits()
    model = demo._train(images[:200], labels[:200], SMALL)
    return demo._Trial(model, images[200:250], labels[200:250], SMALL)


def test_images_have_the_grey_levels_of_the_data():
    from sklearn.datasets import load_digits

    images, labels = demo._load_digits()
    assert images.dtype == np.uint8
    assert images.shape == (1797, 1, 8, 8)
    assert np.array_equal(np.rint(images[:, 0] * (16 / 255)), load_digits().images)
    assert np.array_equal(labels, load_digits().target)


@pytest.mark.parametrize("smoothed", [False, True])
def test_attack_stays_in_the_ball(trial, smoothed):
    noise = demo._noise(SMALL) if smoothed else demo.NO_NOISE
    shift = trial.attack(L2(0.2), noise, 4).astype(float) - trial.images
    norms = np.linalg.norm(shift.reshape(50, -1), axis=1) / 255
    assert (norms <= 0.2 * (1 + 1e-6)).all()  # a radius of a ball on a grid is so much larger
    assert np.median(norms) > 0.2 - np.sqrt(64) / 255  # each pixel may lose a step


def test_no_noise_moves_no_pixel(trial):
    seen = []

    def model(batch):
        seen.append(batch.clone())
        return trial.model(batch)

    from bincp.sampling import sample_scores

    sample_scores(model, trial.images, demo.NO_NOISE, 3, phase="test")
    shown = np.unique(np.concatenate([batch.numpy() for batch in seen]), axis=0)
    assert np.array_equal(shown, np.unique(demo._floats(trial.images), axis=0))


def test_attack_draws_noise_of_its_own(trial, monkeypatch):
    seeds = []
    keys = Job.keys

    def watched(job, sources, draws):
        seeds.append(job.seed)
        return keys(job, sources, draws)

    monkeypatch.setattr(Job, "keys", watched)
    trial.attack(L2(0.2), demo._noise(SMALL), 4)
    assert set(seeds) == {SMALL.seed + 1}
    seeds.clear()
    trial.measure(0.2, demo._Calibration.of(trial.model, trial.images, trial.labels, SMALL))
    assert SMALL.seed in seeds  # the noise of the methods


def test_calibration_and_test_use_the_noise_of_their_phase(trial, monkeypatch):
    phases = []
    keys = Job.keys

    def watched(job, sources, draws):
        phases.append(job.phase)
        return keys(job, sources, draws)

    monkeypatch.setattr(Job, "keys", watched)
    calibrated = demo._Calibration.of(trial.model, trial.images, trial.labels, SMALL)
    assert set(phases) == {"calibration"}
    phases.clear()
    for method in (calibrated.bincp, calibrated.paper):
        method(L2(0.1))(trial.images)
    assert set(phases) == {"test"}


@pytest.mark.parametrize(("alpha", "n"), [("0.1", 19), ("0.1", 50), ("0.3", 9), ("0.05", 18)])
def test_vanilla_threshold_by_definition(trial, alpha, n):
    settings = dataclasses.replace(SMALL, alpha=alpha)
    images, labels = trial.images[:n], trial.labels[:n]
    scores = demo._probabilities(trial.model, images)[np.arange(n), labels]
    needed = (1 - Fraction(alpha)) * (n + 1)
    allowed = [value for value in scores if (scores >= value).sum() >= needed]
    calibrated = demo._Calibration.of(trial.model, images, labels, settings)
    assert calibrated.vanilla_threshold == max(allowed, default=-np.inf)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_command(tmp_path, monkeypatch, capsys, small, ending):
    monkeypatch.setattr(demo, "run", lambda settings, progress: small)
    picture = tmp_path / f"picture.{ending}"
    assert main(["demo", "--plot", str(picture)]) == 0
    out, err = capsys.readouterr()
    assert err == ""  # no bar where nobody watches
    assert max(len(line) for line in out.splitlines() if "wrote" not in line) <= 80
    table = out.split("\n\n")[1].splitlines()
    assert len(table) == 2 + 3 * len(small.rows)
    outcomes = [outcome for row in small.rows for outcome in (row.bincp, row.paper, row.vanilla)]
    for line, outcome in zip(table[2:], outcomes, strict=True):
        clean, attacked = 100 * outcome.coverage, 100 * outcome.coverage_attacked
        sizes = [f"{outcome.set_size:.2f}", f"{outcome.set_size_attacked:.2f}"]
        cells = line.split()
        assert cells[-5:] == [f"{outcome.passes:.1f}", f"{clean:.1f}", f"{attacked:.1f}", *sizes]
    assert [line.split()[0] for line in table[2::3]] == [f"{row.radius:g}" for row in small.rows]
    assert f"wrote {picture}" in out
    assert picture.read_bytes().startswith(PNG if ending == "png" else b"<?xml")
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]

    assert main(["demo", "--no-plot", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["plot"] is None
    assert told["rows"] == [dataclasses.asdict(row) for row in small.rows]


def test_the_picture_says_what_was_found(small):
    from bincp.cli import _demo_plot

    picture = _demo_plot.plot(small)
    last = small.rows[-1]
    headline = picture.get_suptitle()
    for outcome in (last.bincp, last.paper, last.vanilla):
        assert f"{outcome.coverage_attacked:.0%}" in headline
    assert f"{last.bincp.set_size_attacked:.1f} labels" in headline
    fields = ("coverage_attacked", "set_size_attacked", "passes")
    for axes, field in zip(picture.axes, fields, strict=True):
        scale = 100 if field == "coverage_attacked" else 1
        lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
        for method, style in _demo_plot.STYLES.items():
            found = [
                (row.radius, scale * getattr(getattr(row, method), field)) for row in small.rows
            ]
            assert lines[style.name].tolist() == [list(point) for point in found]
    assert [axes.get_yscale() for axes in picture.axes] == ["linear", "linear", "log"]
    (legend,) = picture.legends  # beside the axes
    assert [text.get_text() for text in legend.get_texts()] == [
        style.name for style in reversed(_demo_plot.STYLES.values())
    ]


def test_settings_reach_the_run(monkeypatch, capsys, small):
    seen = []
    monkeypatch.setattr(demo, "run", lambda settings, progress: seen.append(settings) or small)
    argv = ["--alpha", "0.05", "--samples", "32", "--radii", "0", "1/4", "--seed", "7", "--no-plot"]
    assert main(["demo", *argv]) == 0
    assert seen == [demo.Settings(alpha="0.05", n_samples=32, radii=(0, 0.25), seed=7)]


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ({"alpha": "1"}, ValueError),
        ({"radii": ()}, ValueError),
        ({"radii": (-1.0,)}, ValueError),
        ({"sigma": 0.0}, ValueError),
        ({"n_samples": 0}, ValueError),
        ({"n_test": 801}, ValueError),
        ({"seed": 0.5}, TypeError),
    ],
)
def test_settings_are_checked(setting, error):
    with pytest.raises(error):
        demo.Settings(**setting)


# ---- the real one ---------------------------------------------------------------------------


def least_count(n_calibration, n_test, rank, error):
    """Return the count of covered points that a valid method falls short of with P <= error.

    For exchangeable points the number of n test points at or above the rank-th smallest of n
    calibration scores is beta-binomial with (n_calibration + 1 - rank, rank), or larger with ties.
    """
    law = scipy_stats.betabinom(n_test, n_calibration + 1 - rank, rank)
    return int(np.argmax(law.cdf(np.arange(n_test + 1)) > error))


def test_least_count_by_brute_force():
    # One of 3 calibration points from below, 2 test points: count the orders of 5 scores.
    from itertools import permutations

    counts = [sum(test > min(order[:3]) for test in order[3:]) for order in permutations(range(5))]
    share = Fraction(sum(count == 0 for count in counts), len(counts))
    assert least_count(3, 2, 1, float(share) * 0.999) == 0
    assert least_count(3, 2, 1, float(share) * 1.001) == 1


@pytest.mark.slow
def test_real_demo_is_convincing():
    """False alarms: below 1e-6 for all coverages of BinCP and vanilla, over the choice of a seed.

    At the clean image a set misses its label with the probability of a conformal prediction of
    level alpha: beta-binomial over test images. BinCP's level is that under the worst attack.
    """
    settings = demo.Settings()
    result = demo.run(settings)
    n, n_test = settings.n_calibration, settings.n_test
    n_checks = 3 * len(result.rows)
    rank = int(Fraction(settings.alpha) * (n + 1))
    least = least_count(n, n_test, rank, 0.9e-6 / n_checks)

    for row in result.rows:
        assert row.bincp.coverage * n_test >= least, row
        assert row.bincp.coverage_attacked * n_test >= least, row
        assert row.vanilla.coverage * n_test >= least, row
        assert row.bincp.passes < row.paper.passes / 50, row
        assert row.bincp.set_size <= row.paper.set_size, row
        if row.radius <= 0.25:
            assert row.bincp.set_size < 1.5, row
            assert row.bincp.set_size_attacked < 2, row
    last = result.rows[-1]
    assert last.vanilla.coverage_attacked * n_test < least
    assert last.vanilla.coverage_attacked < 0.6
    assert last.bincp.set_size_attacked < demo.N_CLASSES / 2


def test_settings_are_converted_once():
    """100 + 200 + 200 images: more than 8 bits can count."""
    numbers = {"n_train": 100, "n_calibration": 200, "n_test": 200, "n_epochs": 1, "seed": 7}
    given = {name: np.uint8(number) for name, number in numbers.items()}
    settings = demo.Settings(**given, sigma=np.float32(0.5), radii=[0, np.float64(0.25)])
    assert settings == demo.Settings(**numbers, sigma=0.5, radii=(0.0, 0.25))
    assert all(type(getattr(settings, name)) is int for name in numbers)
