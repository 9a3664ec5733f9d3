"""A classifier whose decision rule is Mondrian: each class has its own threshold and test."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bincp  # noqa: E402
from bincp.balls import L2  # noqa: E402
from bincp.sampling import RobustClassifier, sample_scores  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402
from support import quiet  # noqa: E402

D, K = 6, 4
SMOOTHING = Gaussian(0.5)
CERTIFICATE = bincp.certify(SMOOTHING, L2(0.1))


def model(x):
    """Every number is a number of the input: equal to the bit at any batch size."""
    return 3 * x.reshape(len(x), -1)[:, :K]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K - 1, 200)  # the last class has no points
    x = rng.normal(0, 0.5, (200, D)).astype(np.float32)
    x[np.arange(200), y] += 1.5
    return x, y


def classifier(passes=None, n_classes=K, **options):
    rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=n_classes, alpha=0.2, passes=passes)
    return RobustClassifier(
        model, SMOOTHING, L2(0.1), rule=rule, n_samples=32, n_test_samples=16, seed=4, **options
    )


def calibrated(data, passes=None, **options):
    return quiet(classifier(passes, **options).calibrate, *data)


@pytest.mark.parametrize("passes", [None, "auto", 3])
def test_it_calibrates_and_predicts_as_the_rule_does_on_its_scores(data, passes):
    x, y = data
    ours = calibrated(data, passes)
    true = sample_scores(model, x, SMOOTHING, 32, phase="calibration", labels=y, seed=4)
    rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=K, alpha=0.2, passes=passes)
    quiet(rule.calibrate, true, y, n_test_samples=16)
    np.testing.assert_array_equal(ours.rule.tau_, rule.tau_)
    scores = sample_scores(model, x, SMOOTHING, 16, phase="test", seed=4)
    sets = rule.predict_set(scores)
    assert 0 < sets[:, : K - 1].mean() < 1
    assert sets[:, K - 1].all()
    tests = rule.boundaries_ or tuple(
        bincp.SequentialRule.curtailed(int(k), 16) for k in rule.min_count_
    )
    labels = bincp.SequentialTracker(tests, sets.shape)
    labels.update(scores >= rule.tau_[:, None].astype(scores.dtype))
    last = labels.exits.max(axis=1)
    for options in ({}, {"looks": "doubling"}, {"looks": [3, 7]}):
        found = ours.predict(x, indices=np.arange(200), **options)
        np.testing.assert_array_equal(found.sets, sets)
        np.testing.assert_array_equal(found.counts, labels.counts)
        assert (found.forward_passes >= last).all()
    found = ours.predict(x, indices=np.arange(200))
    assert (found.forward_passes <= np.maximum(last, last * 9 // 8)).all()
    assert last.mean() < 15


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_the_batch_size_does_not_matter(data, batch_size):
    x, _ = data
    sets = calibrated(data, "auto").predict(x[:30]).sets
    other = calibrated(data, "auto", batch_size=batch_size).predict(x[:30])
    np.testing.assert_array_equal(other.sets, sets)


def test_all_draws_are_counted_where_that_is_asked_for(data):
    x, _ = data
    ours = calibrated(data)
    found = ours.predict(x, indices=np.arange(200), curtail=False)
    assert (found.forward_passes == 16).all()
    scores = sample_scores(model, x, SMOOTHING, 16, phase="test", seed=4)
    reached = scores >= ours.rule.tau_[:, None].astype(scores.dtype)
    np.testing.assert_array_equal(found.counts, reached.sum(axis=-1))
    np.testing.assert_array_equal(found.sets, ours.predict(x, indices=np.arange(200)).sets)
    stopping = calibrated(data, "auto")
    whole = stopping.predict(x, indices=np.arange(200), curtail=False)
    assert (whole.forward_passes == 16).all()
    np.testing.assert_array_equal(whole.sets, stopping.predict(x, indices=np.arange(200)).sets)
    with pytest.raises(ValueError, match="`sequential` must not be False for a rule that stops"):
        stopping.predict(x, sequential=False)
    early = ours.predict(x, sequential=True)
    assert early.sets[:, K - 1].all()


def test_a_loader_brings_the_labels(data):
    x, y = data
    whole = calibrated(data, "auto")
    parts = classifier("auto")
    quiet(parts.calibrate, [(x[i : i + 64], torch.from_numpy(y[i : i + 64])) for i in (0, 64, 128)]
          + [(x[192:], y[192:])])  # fmt: skip
    np.testing.assert_array_equal(parts.rule.tau_, whole.rule.tau_)


def test_a_loaded_rule_predicts(data, tmp_path):
    x, _ = data
    ours = calibrated(data, "auto")
    ours.rule.save(tmp_path / "rules.json")
    loaded = bincp.MondrianBinCP.load(tmp_path / "rules.json")
    other = RobustClassifier(model, SMOOTHING, L2(0.1), rule=loaded, seed=4)
    assert (other.n_samples, other.n_test_samples) == (32, 16)
    np.testing.assert_array_equal(other.predict(x).sets, ours.predict(x).sets)
    with pytest.raises(ValueError, match=r"`rule` must have the certificate of the classifier"):
        RobustClassifier(model, SMOOTHING, L2(0.2), rule=loaded)


@pytest.mark.parametrize("curtail", [True, False])
def test_a_model_of_another_number_of_classes_is_refused(data, curtail):
    x, y = data
    with pytest.raises(ValueError, match="`model` must return 5 logits, K of `rule`, got 4"):
        classifier(n_classes=5).calibrate(x, y)
    ours = calibrated(data)
    for k in (1, 3):
        ours.model = lambda x, k=k: model(x)[:, :k]
        with pytest.raises(ValueError, match=f"`model` must return 4 logits as before, got {k}"):
            ours.predict(x, curtail=curtail)


def test_a_rule_that_is_not_calibrated_predicts_nothing(data):
    with pytest.raises(bincp.NotCalibratedError, match="call calibrate"):
        classifier("auto").predict(data[0])
