"""A classifier keeps the conventions of scikit-learn: parameters, changes of them, and clones."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from sklearn.base import clone  # noqa: E402

import bincp  # noqa: E402
from bincp.balls import L2  # noqa: E402
from bincp.errors import NotCalibratedError  # noqa: E402
from bincp.sampling import RobustClassifier, RobustRegressor  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

SMOOTHING, BALL = Gaussian(0.5), L2(0.1)
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 120)
X = (RNG.normal(0, 0.3, (120, 4)) + 2 * np.eye(3, 4)[Y]).astype(np.float32)


class Recorder:
    """A model that keeps all rows it sees."""

    def __init__(self):
        self.rows = []

    def __call__(self, x):
        self.rows.append(x.numpy().copy())
        return 2 * x[:, :3]

    def __deepcopy__(self, memo):
        return self


def model(x):
    return 2 * x[:, :3]


def classifier(**options):
    given = {"alpha": "0.1", "n_samples": 16, **options}
    return RobustClassifier(model, SMOOTHING, BALL, **given)


def rule(**options):
    return bincp.BinCP(bincp.certify(SMOOTHING, BALL), **options)


def test_parameters_are_the_objects_that_were_passed_and_the_settings_of_the_rule():
    params = classifier(score=("raps", {"penalty": 0.2})).get_params()
    assert (params["model"], params["smoothing"], params["ball"]) == (model, SMOOTHING, BALL)
    assert params["alpha"] == "0.1"
    assert params["passes"] == "auto"
    assert params["rule"] is None
    again = RobustClassifier(**params)
    assert again.get_params() == params
    assert again.rule.passes == "auto"


def test_the_parameters_of_a_rule_are_behind_its_name():
    own = rule(alpha="0.2")
    params = RobustClassifier(model, SMOOTHING, BALL, rule=own, n_samples=8).get_params()
    assert "alpha" not in params
    assert params["rule"] is own
    assert params["rule__alpha"] == "0.2"


def test_an_assigned_rule_takes_the_place_of_the_settings():
    ours = classifier()
    ours.rule = own = rule(alpha="0.2", passes=None)
    for same in (ours, copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        params = same.get_params()
        assert "alpha" not in params
        assert params["rule__alpha"] == "0.2"
    assert ours.get_params()["rule"] is own
    assert clone(ours).rule.alpha == Fraction(1, 5)
    ours.set_params(rule__alpha="0.3")
    assert ours.rule is own
    assert own.alpha == Fraction(3, 10)


@pytest.mark.parametrize("by_rule", [False, True])
def test_a_clone_is_not_calibrated_and_shares_the_model_alone(by_rule):
    options = {"rule": rule(alpha="0.2")} if by_rule else {"alpha": "0.2"}
    module = torch.nn.Linear(4, 3)
    ours = RobustClassifier(module, SMOOTHING, BALL, n_samples=16, **options)
    sets = ours.calibrate(X[:100], Y[:100])
    other = clone(ours)
    assert other.model is module
    assert other.rule is not ours.rule
    with pytest.raises(NotCalibratedError):
        other.predict(X[100:])
    tau = ours.rule.tau_
    other.calibrate(X[:50] - 1, Y[:50])
    assert sets.rule.tau_ == tau


def test_a_clone_keeps_the_sizes_of_a_calibrated_rule():
    made = classifier(n_samples=16, n_test_samples=8, passes=None).calibrate(X[:100], Y[:100])
    ours = RobustClassifier(model, SMOOTHING, BALL, rule=made.rule)
    other = clone(ours)
    assert (other.n_samples, other.n_test_samples) == (16, 8)
    with pytest.raises(NotCalibratedError):
        other.predict(X[100:])
    assert other.calibrate(X[:100], Y[:100]).rule.n_test_samples_ == 8
    assert ours.set_params(batch_size=7).rule is made.rule
    assert ours.predict(X[100:]).sets.shape == (20, 3)


def test_a_rule_of_another_class_is_not_shared_with_a_clone():
    class Own:
        tau_ = None

        def __init__(self):
            self.certificate_description = rule().certificate_description

        def calibrate(self):
            pass

        predict_set_from_counts = sequential_rule = calibrate

    ours = RobustClassifier(model, SMOOTHING, BALL, rule=Own(), n_samples=16)
    assert ours.get_params()["rule"] is ours.rule
    with pytest.raises(TypeError, match="`rule` must be a BinCP or a MondrianBinCP for a clone"):
        clone(ours)


def test_the_next_calibration_uses_parameters_that_were_set():
    ours = classifier(alpha="0.1").calibrate(X[:100], Y[:100])
    ours.set_params(alpha="0.4", n_samples=8, passes=None)
    with pytest.raises(NotCalibratedError):
        ours.predict(X[100:])
    ours.calibrate(X[:100], Y[:100])
    assert ours.rule.alpha == Fraction(2, 5)
    assert ours.rule.n_samples_ == ours.rule.n_test_samples_ == 8
    assert ours.rule.boundaries_ is None
    before = ours.rule
    with pytest.raises(ValueError, match="`alpha` must be in"):
        ours.set_params(alpha=2, n_samples=4)
    assert ours.rule is before
    assert ours.n_samples == 8


def test_a_changed_classifier_repeats_no_noise():
    seen = Recorder()
    ours = RobustClassifier(seen, SMOOTHING, BALL, alpha="0.1", n_samples=4, passes=None, seed=5)
    x = np.zeros((50, 4), np.float32)
    labels = np.zeros(50, int)
    ours.calibrate(x, labels)
    ours.set_params(alpha="0.2")
    ours.calibrate(x, labels)
    rows = np.concatenate(seen.rows)
    assert len(np.unique(rows, axis=0)) == len(rows) == 400


def kinds(seen, seed):
    """Return a classifier and a regressor."""
    options = {"alpha": "0.2", "n_samples": 4, "passes": None, "seed": seed}
    yield RobustClassifier(seen, SMOOTHING, BALL, **options)

    def mean(x):
        return seen(x).mean(1)

    yield RobustRegressor(mean, SMOOTHING, BALL, **options)


def drawn(estimator, seen):
    """Return the noise of one calibration and one prediction of zeros."""
    seen.rows.clear()
    x = np.zeros((20, 4), np.float32)
    every = {"curtail": False} if isinstance(estimator, RobustClassifier) else {}
    estimator.calibrate(x, np.zeros(20, int)).predict(x, **every)
    return np.concatenate(seen.rows)


def cloned_after_a_change(one):
    return clone(clone(one).set_params(alpha="0.3"))


COPIES = [copy.copy, copy.deepcopy, clone, cloned_after_a_change]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("seed", [None, 5])
def test_no_copy_and_no_clone_repeats_noise(copied, seed):
    seen = Recorder()
    for ours in kinds(seen, seed):
        others = [copied(ours)]  # before and after ids are taken
        rows = [drawn(ours, seen)]
        others += [copied(ours), copied(others[0])]
        for other in others:
            if copied is copy.deepcopy:  # with a model of its own
                other.model = ours.model
            if seed is not None:
                refused = pytest.raises(RuntimeError, match="must not draw in a copy or clone")
                with refused:
                    drawn(other, seen)
                with pytest.raises(ValueError, match="`first_id` must be beyond all ids in use"):
                    other.reseed(seed)
                with refused:
                    drawn(other.set_params(batch_size=3), seen)
                with pytest.raises(ValueError, match="`first_id` must be beyond all ids in use"):
                    other.set_params(seed=6).set_params(seed=seed)
                other.reseed(seed, first_id=100 * len(rows))
            rows.append(drawn(other, seen))
        found = np.concatenate(rows)
        assert len(np.unique(found, axis=0)) == len(found) == 4 * (20 * 4 * 2)


@pytest.mark.parametrize("used", [False, True])
def test_a_forked_process_does_not_begin_the_seed_again(used, monkeypatch):
    """Its parent may draw with it later, if it has not yet."""
    from bincp.noise import _seeds

    seen = Recorder()
    for ours in kinds(seen, 5):
        if used:
            drawn(ours, seen)
        with monkeypatch.context() as forked:
            forked.setattr(_seeds, "_forks", _seeds._forks + 1)
            with pytest.raises(RuntimeError, match="must not draw in a forked process"):
                drawn(ours, seen)
            with pytest.raises(ValueError, match="`first_id` must be beyond all ids in use"):
                ours.reseed(5)
            with pytest.raises(ValueError, match="`first_id` must be beyond all ids in use"):
                ours.set_params(seed=6).set_params(seed=5)
            drawn(ours.reseed(7), seen)


@pytest.mark.parametrize("phases", [1, 2])
@pytest.mark.parametrize(
    "back", [lambda one: one.reseed(5), lambda one: one.set_params(seed=6).set_params(seed=5)]
)
def test_a_seed_that_comes_back_stays_beyond_its_first_id(phases, back):
    """The ids below it belong to another object, of which this one knows nothing more."""
    seen = Recorder()
    for ours in kinds(seen, 5):
        rows = [drawn(ours, seen)]
        other = copy.copy(ours).reseed(5, first_id=100)
        seen.rows.clear()
        if phases == 1:
            other.predict(np.zeros((20, 4), np.float32))
            rows += seen.rows
        else:
            rows.append(drawn(other, seen))
        rows.append(drawn(back(other.reseed(7)), seen))
        with pytest.raises(ValueError, match=r"`first_id` must be in \[1\d\d, .* got 99"):
            other.reseed(5, first_id=99)
        found = np.concatenate(rows)
        assert len(np.unique(found, axis=0)) == len(found)


def test_cross_validation_takes_no_seed():
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import cross_val_score

    class Wrapped(BaseEstimator):
        def __init__(self, inner):
            self.inner = inner

        def fit(self, x, y):
            self.fitted_ = clone(self.inner).calibrate(x, y)
            return self

        def score(self, x, y):
            return float(self.fitted_.predict(x).sets[np.arange(len(y)), y].mean())

    assert min(cross_val_score(Wrapped(classifier(passes=None)), X, Y, cv=2)) > 0.8
    with pytest.raises(RuntimeError, match="make it without `seed`"):
        cross_val_score(Wrapped(classifier(seed=5)), X, Y, cv=2, error_score="raise")


def test_tuning_shares_no_noise_with_calibration_and_prediction():
    """With one seed in all steps; two steps of tuning share it, as the documents say."""
    seen = Recorder()
    ours, _ = kinds(seen, 5)
    x, labels = np.zeros((20, 4), np.float32), np.zeros(20, int)

    def tuned():
        seen.rows.clear()
        ours.sweep(x, labels, x, labels, p=0.5, seed=5)
        return np.concatenate(seen.rows)

    swept, again = tuned(), tuned()
    np.testing.assert_array_equal(swept, again)
    rows = np.concatenate([swept, drawn(ours, seen)])
    assert len(np.unique(rows, axis=0)) == len(rows) == 2 * (20 * 4 * 2)


def test_a_seed_that_was_set_is_the_seed():
    def noise(ours, seen):
        seen.rows.clear()
        ours.calibrate(np.zeros((50, 4), np.float32), np.zeros(50, int), indices=np.arange(50))
        return np.concatenate(seen.rows)

    seen = Recorder()
    options = {"alpha": "0.1", "n_samples": 4, "passes": None}
    ours = RobustClassifier(seen, SMOOTHING, BALL, **options, seed=5)
    first = noise(ours, seen)
    second = noise(ours.set_params(seed=6), seen)
    assert (first != second).any()
    fresh = RobustClassifier(seen, SMOOTHING, BALL, **options, seed=6)
    np.testing.assert_array_equal(second, noise(fresh, seen))
