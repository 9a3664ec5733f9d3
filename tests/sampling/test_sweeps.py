"""Sweeps of runs on disk and of a classifier: the rows of a sweep over the same scores."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bincp.sampling  # noqa: E402
from bincp import balls, certify  # noqa: E402
from bincp.sampling import RobustClassifier, sample_scores  # noqa: E402
from bincp.sampling._run import _reading  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

NOISE = Gaussian(0.5)
BALLS = [balls.L2(r) for r in (0.05, 0.1)]
CERTIFICATES = [certify(NOISE, ball) for ball in BALLS]
ALPHAS = ["0.1", "0.3"]
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 160)
X = (RNG.normal(0, 0.4, (160, 4)) + np.eye(3, 4)[LABELS]).astype(np.float32)
TRAIN, TEST = slice(0, 120), slice(120, 160)


def coordinates(x):
    """A model whose every number is a number of its input: equal to the bit at any batch size."""
    return 3 * x.reshape(len(x), -1)[:, :3]


def run(path, part, phase, **options):
    given = {"seed": 7, "model_id": "coordinates", "parts": 4, "batch_size": 32, **options}
    return bincp.sampling.run(
        path, coordinates, X[part], NOISE, 16, phase=phase, labels=LABELS[part], **given
    )


def scores(part, phase, *, seed=7, **options):
    return sample_scores(coordinates, X[part], NOISE, 16, phase=phase, seed=seed, **options)


@pytest.fixture(scope="module")
def expected():
    true = scores(TRAIN, "calibration", labels=LABELS[TRAIN])
    return bincp.sweep(CERTIFICATES, true, scores(TEST, "test"), LABELS[TEST], alpha=ALPHAS).rows


class TestRuns:
    def test_rows_are_those_of_the_scores_in_memory(self, tmp_path, expected):
        calibration = run(tmp_path / "calibration", TRAIN, "calibration")
        test = run(tmp_path / "test", TEST, "test", keep="scores")
        assert bincp.sweep(CERTIFICATES, calibration, test, alpha=ALPHAS).rows == expected
        true = scores(TRAIN, "calibration", labels=LABELS[TRAIN])
        assert bincp.sweep(CERTIFICATES, true, test, alpha=ALPHAS).rows == expected

    def test_counts_serve_the_rules_that_they_were_made_for(self, tmp_path, expected):
        true = scores(TRAIN, "calibration", labels=LABELS[TRAIN])
        rules = bincp.sweep(CERTIFICATES, true, n_classes=3, alpha=ALPHAS).rules
        test = run(tmp_path / "test", TEST, "test", rules=rules)
        assert test.keep == "counts"
        assert bincp.sweep(CERTIFICATES, true, test, alpha=ALPHAS).rows == expected
        with pytest.raises(ValueError, match="keeps counts at the thresholds"):
            bincp.sweep(CERTIFICATES, true, test, alpha="0.2")

    def test_each_part_is_read_once_for_all_rules(self, tmp_path, monkeypatch):
        calibration = run(tmp_path / "calibration", TRAIN, "calibration")
        test = run(tmp_path / "test", TEST, "test", keep="scores")
        read = []
        once = _reading.read_part
        monkeypatch.setattr(
            _reading, "read_part", lambda path, *rest: (read.append(path), once(path, *rest))[1]
        )
        bincp.sweep(CERTIFICATES, calibration, test, alpha=ALPHAS)
        whole = [path for path in read if path.parent.name == "test"]
        assert len(whole) == len(set(whole)) == test.n_parts
        passes = len(read) - len(whole)
        read.clear()
        bincp.sweep(CERTIFICATES[:1], calibration, alpha="0.1")
        assert passes == len(read)

    def test_runs_of_other_noise_or_a_wrong_phase_are_refused(self, tmp_path):
        calibration = run(tmp_path / "calibration", TRAIN, "calibration")
        test = run(tmp_path / "test", TEST, "test", keep="scores")
        with pytest.raises(ValueError, match="must not have the phase 'test'"):
            bincp.sweep(CERTIFICATES, test)
        with pytest.raises(ValueError, match="must not have the phase 'calibration'"):
            bincp.sweep(CERTIFICATES, calibration, calibration)
        others = [CERTIFICATES[0], certify(Gaussian(0.25), BALLS[1])]
        with pytest.raises(ValueError, match="must have the noise of the certificate"):
            bincp.sweep(others, calibration, test)
        true = scores(TRAIN, "calibration", labels=LABELS[TRAIN])
        with pytest.raises(ValueError, match="must have the noise of the certificate"):
            bincp.sweep(others, true, test)
        with pytest.raises(TypeError, match="got them with a run, which has its own"):
            bincp.sweep(CERTIFICATES, calibration, test, LABELS[TEST])


class TestClassifier:
    def classifier(self, model=coordinates, **options):
        return RobustClassifier(
            model, NOISE, BALLS[0], **{"alpha": "0.2", "n_samples": 16, "seed": 3, **options}
        )

    @pytest.mark.parametrize("block", [1, 7 * 48, 1 << 24])
    def test_rows_are_those_of_the_same_scores(self, monkeypatch, block):
        monkeypatch.setattr("bincp.sampling._sweeping._BLOCK_VALUES", block)
        ours = self.classifier().sweep(
            X[TRAIN], LABELS[TRAIN], X[TEST], LABELS[TEST], balls=BALLS, alpha=ALPHAS, seed=11
        )
        true = scores(TRAIN, "tuning", labels=LABELS[TRAIN], seed=11)
        ids = np.arange(120, 160)
        own = bincp.sweep(
            CERTIFICATES,
            true,
            scores(TEST, "tuning", seed=11, indices=ids),
            LABELS[TEST],
            alpha=ALPHAS,
        )
        assert ours.rows == own.rows

    def test_by_default_ball_and_level_are_its_own(self):
        ours = self.classifier().calibrate(X[TRAIN], LABELS[TRAIN])
        before = ours.rule, ours.rule.tau_, ours.predict(X[TEST], indices=np.arange(40)).sets
        result = ours.sweep(X[TRAIN], LABELS[TRAIN], seed=1)
        (row,) = result.rows
        assert (row.ball, str(row.alpha)) == ("L2(r=0.05)", "1/5")
        assert ours.rule is before[0]
        assert ours.rule.tau_ == before[1]
        assert (ours.predict(X[TEST], indices=np.arange(40)).sets == before[2]).all()

    def test_all_noise_is_new_and_every_input_has_its_own(self):
        seen = []

        def recorder(x):
            seen.append(x.numpy().copy())
            return coordinates(x)

        ours = self.classifier(recorder)
        zeros, labels = np.zeros((60, 4), np.float32), np.zeros(60, int)
        ours.calibrate(zeros, labels)
        ours.sweep(zeros, labels, zeros, labels, seed=3)  # the seed of the classifier
        ours.sweep(zeros, labels, zeros, labels)
        ours.sweep(zeros, labels, zeros, labels)
        rows = np.concatenate(seen)
        assert len(rows) == 60 * 16 * 7
        assert len(np.unique(rows, axis=0)) == len(rows)

    def test_scores_are_those_of_the_classifier(self):
        plain = self.classifier().sweep(X[TRAIN], LABELS[TRAIN], seed=1).rows[0]
        margin = self.classifier(score="margin").sweep(X[TRAIN], LABELS[TRAIN], seed=1).rows[0]
        assert plain.tau != margin.tau
        true = scores(TRAIN, "tuning", labels=LABELS[TRAIN], score="margin", seed=1)
        own = bincp.sweep(CERTIFICATES[0], true, alpha="0.2", n_classes=3).rows[0]
        assert margin == own

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"x_test": None}, TypeError, "`y_test` must be given with `x_test`, got it alone"),
            ({"y_test": LABELS[:3]}, ValueError, r"`y_test` must have shape \(40,\), got \(3,\)"),
            ({"y_test": LABELS[TEST] + 1}, ValueError, "`y_test` must be in"),
            ({"balls": []}, ValueError, "`balls` must hold at least one value"),
            ({"balls": 3}, TypeError, "`balls` must be one value or an iterable of them"),
            ({"balls": balls.Linf(0.01, 5)}, ValueError, "`x` must have 5 elements an input"),
            ({"alpha": 2}, ValueError, r"`alpha` must be in \(0, 1\)"),
            ({"confidence": 0}, ValueError, "`confidence` must be in"),
            ({"seed": -1}, ValueError, "`seed` must be in"),
        ],
    )
    def test_bad_arguments_are_named(self, options, error, message):
        given = {"x_test": X[TEST], "y_test": LABELS[TEST], **options}
        with pytest.raises(error, match=message):
            self.classifier().sweep(X[TRAIN], LABELS[TRAIN], **given)


def test_a_sweep_keeps_to_the_declared_range():
    options = {"alpha": "0.1", "n_samples": 16, "input_range": (-4, 4)}
    classifier = RobustClassifier(coordinates, NOISE, BALLS[0], **options)
    for known, ahead in ((10 * X[TRAIN], X[TEST]), (X[TRAIN], 10 * X[TEST])):
        with pytest.raises(ValueError, match="must be in the declared input_range"):
            classifier.sweep(known, LABELS[TRAIN], ahead, LABELS[TEST])
