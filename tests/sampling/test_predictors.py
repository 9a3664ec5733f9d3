"""Set predictors of other libraries on noisy inputs, and the audit of their outcomes."""

from types import SimpleNamespace

import numpy as np
import pytest

import bincp
from bincp.adapters import noisy_outcomes
from bincp.balls import L2
from bincp.noise import draw
from bincp.regression import IntervalSets
from bincp.smoothing import Gaussian

SCHEME = Gaussian(0.5)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
REAL = X.sum(1) + RNG.normal(size=300)
NOISY = draw(SCHEME, X, 1, phase="test", seed=5)[:, 0]


def outcomes(predictor, y, **options):
    return noisy_outcomes(predictor, X, y, SCHEME, seed=5, **options)


def classes_of(noisy):
    """Return sets of up to three classes that depend on the noisy input."""
    return np.stack([noisy[:, 0] < 0.5, noisy[:, 0] > -0.5, noisy[:, 1] > 0.5], axis=1)


def interval_of(noisy):
    return np.stack([noisy.sum(1) - 2, noisy.sum(1) + 2], axis=1)


def union_of(noisy):
    return IntervalSets.from_ends(*interval_of(noisy).T[:, :, None], 1)


def two_as_floats(noisy):
    """Return sets of two classes that look like intervals: [0, 1] would hold both labels."""
    return classes_of(noisy)[:, :2].astype(float)


def test_a_function_sees_the_noisy_inputs():
    found = outcomes(classes_of, Y)
    np.testing.assert_array_equal(found, classes_of(NOISY)[np.arange(300), Y])
    assert 0 < found.sum() < 300
    np.testing.assert_array_equal(outcomes(lambda x: classes_of(x).astype(int), Y), found)
    names = np.array(["a", "b", "c"])
    np.testing.assert_array_equal(outcomes(classes_of, names[Y], classes=names), found)


def test_intervals_are_closed():
    found = outcomes(interval_of, REAL)
    low, high = interval_of(NOISY).T
    np.testing.assert_array_equal(found, (low <= REAL) & (high >= REAL))
    assert 0 < found.sum() < 300
    assert outcomes(lambda x: np.zeros((len(x), 2)), np.zeros(300)).all()
    np.testing.assert_array_equal(outcomes(union_of, REAL), found)


def test_a_data_frame_with_names_is_refused():
    """Its columns were taken by their places, whatever the predictor was fitted on."""

    class Frame(np.ndarray):
        columns = ("b", "a", "c", "d")

    with pytest.raises(TypeError, match=r"got Frame with the columns \['b', 'a'.*x.to_numpy\(\)"):
        noisy_outcomes(classes_of, X.view(Frame), Y, SCHEME)
    Frame.columns = range(4)
    assert len(noisy_outcomes(classes_of, X.view(Frame), Y, SCHEME)) == 300


def test_a_seed_is_secret_unless_given():
    seen = {noisy_outcomes(classes_of, X, Y, SCHEME).tobytes() for _ in range(4)}
    assert len(seen) > 1


class MapieClassifier:
    """The shapes of MAPIE 1.6: labels, and sets (n, K, levels)."""

    levels = 1

    def predict_set(self, x):
        return np.zeros(len(x)), np.repeat(classes_of(x)[:, :, None], self.levels, axis=2)


class MapieRegressor:
    """Those of its regressors: predictions, and intervals (n, 2, levels)."""

    def predict_interval(self, x):
        return x.sum(1), interval_of(x)[:, :, None]


class CrepesClassifier:
    """Those of crepes 0.9: numbers 0 and 1 (n, K), in the order of the learner's classes."""

    def __init__(self, learner):
        self.learner = learner

    def predict_set(self, x, labels, confidence):
        assert (labels, confidence) == (False, 0.9)
        return classes_of(x).astype(int)


class OwnMapieClassifier(MapieClassifier):
    """Of a class that a user derived."""


MapieClassifier.__module__ = "mapie.classification"
CrepesClassifier.__module__ = "crepes.base"
MapieRegressor.__module__ = "mapie.regression"


def test_the_shapes_of_mapie():
    np.testing.assert_array_equal(outcomes(MapieClassifier(), Y), outcomes(classes_of, Y))
    np.testing.assert_array_equal(outcomes(MapieRegressor(), REAL), outcomes(interval_of, REAL))
    several = MapieClassifier()
    several.levels = 2
    with pytest.raises(ValueError, match=r"one confidence level, got sets of shape \(300, 3, 2\)"):
        outcomes(several, Y)


def test_a_derived_class_is_one_of_its_library():
    np.testing.assert_array_equal(outcomes(OwnMapieClassifier(), Y), outcomes(classes_of, Y))


@pytest.mark.parametrize("names", [[1, 2, 3], ["ant", "bee", "cat"], [0, 1, 2], [2, 1, 0]])
def test_columns_are_the_classes_that_a_predictor_was_fitted_on(names):
    """Places would take 1 and 2 of the classes 1, 2, 3 for the second and third column."""
    learner = SimpleNamespace(classes_=np.array(names))
    of_mapie = MapieClassifier()
    of_mapie._mapie_classifier = learner
    for predictor, options in (
        (CrepesClassifier(learner), {"confidence": 0.9}),
        (of_mapie, {}),
    ):
        labels, some = np.array(names)[Y], Y < 2
        found = noisy_outcomes(predictor, X[some], labels[some], SCHEME, seed=5, **options)
        wanted = noisy_outcomes(classes_of, X[some], Y[some], SCHEME, seed=5)
        np.testing.assert_array_equal(found, wanted)
        assert 0 < found.sum() < len(found)
        same = noisy_outcomes(
            predictor, X[some], labels[some], SCHEME, seed=5, classes=names, **options
        )
        np.testing.assert_array_equal(same, wanted)
        with pytest.raises(ValueError, match="`classes` must be those of the predictor"):
            outcomes(predictor, labels, classes=[names[1], names[0], names[2]], **options)


class TorchPredictor:
    """The shapes of TorchCP 1.2: numbers 0 and 1 (n, K), and intervals (n, thresholds, 2)."""

    def __init__(self, sets, as_list=False):
        self.sets, self.as_list = sets, as_list

    def predict(self, x):
        torch = pytest.importorskip("torch")
        assert isinstance(x, torch.Tensor)
        sets = torch.from_numpy(self.sets(x.numpy()))
        return list(sets) if self.as_list else sets


TorchPredictor.__module__ = "torchcp.classification.predictor.split"


def test_the_shapes_of_torchcp():
    labels = TorchPredictor(lambda x: classes_of(x).astype(int))
    np.testing.assert_array_equal(outcomes(labels, Y), outcomes(classes_of, Y))
    intervals = TorchPredictor(lambda x: interval_of(x)[:, None])
    np.testing.assert_array_equal(outcomes(intervals, REAL), outcomes(interval_of, REAL))
    with pytest.raises(TypeError, match="must return a tensor of sets, got list"):
        outcomes(TorchPredictor(classes_of, as_list=True), Y)


class CrepesClassifierOfLevels:
    """The shapes of crepes: sets (n, K) of zeros and ones, if it has a learner."""

    __module__ = "crepes.base"

    def __init__(self):
        self.learner = None

    def predict_set(self, x, labels=True, confidence=0.95):
        assert not labels
        return classes_of(x + confidence).astype(int)


class CrepesRegressorOfLevels:
    """The shapes of crepes: intervals (n, 2)."""

    __module__ = "crepes.base"

    def __init__(self):
        self.learner = None

    def predict_int(self, x, confidence=0.95):
        return interval_of(x) + confidence


def test_the_shapes_of_crepes():
    found = outcomes(CrepesClassifierOfLevels(), Y, confidence="3/4")
    np.testing.assert_array_equal(found, outcomes(lambda x: classes_of(x + 0.75), Y))
    found = outcomes(CrepesRegressorOfLevels(), REAL, confidence=0.5)
    np.testing.assert_array_equal(found, outcomes(lambda x: interval_of(x) + 0.5, REAL))
    bare = CrepesRegressorOfLevels()
    del bare.learner
    with pytest.raises(TypeError, match=r"crepes \(WrapClassifier, WrapRegressor\)"):
        outcomes(bare, REAL, confidence=0.5)
    with pytest.raises(ValueError, match="`confidence` must be given for a predictor of crepes"):
        outcomes(CrepesClassifierOfLevels(), Y)


def test_mapie_itself():
    classification = pytest.importorskip("mapie.classification")
    regression = pytest.importorskip("mapie.regression")
    linear = pytest.importorskip("sklearn.linear_model")
    model = linear.LogisticRegression().fit(X[:100], Y[:100])
    classifier = classification.SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
    classifier.conformalize(NOISY[100:200], Y[100:200])
    wanted = classifier.predict_set(NOISY)[1][np.arange(300), Y, 0]
    np.testing.assert_array_equal(outcomes(classifier, Y), wanted)
    fitted = linear.LinearRegression().fit(X[:100], REAL[:100])
    regressor = regression.SplitConformalRegressor(fitted, confidence_level=0.9, prefit=True)
    regressor.conformalize(NOISY[100:200], REAL[100:200])
    low, high = regressor.predict_interval(NOISY)[1][:, :, 0].T
    np.testing.assert_array_equal(outcomes(regressor, REAL), (low <= REAL) & (high >= REAL))


def test_crepes_itself():
    crepes = pytest.importorskip("crepes")
    linear = pytest.importorskip("sklearn.linear_model")
    classifier = crepes.WrapClassifier(linear.LogisticRegression().fit(X[:100], Y[:100]))
    classifier.calibrate(NOISY[100:200], Y[100:200])
    found = outcomes(classifier, Y, confidence="0.9")
    assert 0.75 < found[200:].mean() <= 1
    regressor = crepes.WrapRegressor(linear.LinearRegression().fit(X[:100], REAL[:100]))
    regressor.calibrate(NOISY[100:200], REAL[100:200])
    low, high = regressor.predict_int(NOISY, confidence=0.9).T
    found = outcomes(regressor, REAL, confidence=0.9)
    np.testing.assert_array_equal(found, (low <= REAL) & (high >= REAL))
    with pytest.raises(ValueError, match="`confidence` must be given for a predictor of crepes"):
        outcomes(regressor, REAL)
    bare = crepes.ConformalRegressor()
    bare.fit(residuals=REAL[:100])
    with pytest.raises(TypeError, match=r"crepes \(WrapClassifier, WrapRegressor\)"):
        outcomes(bare, REAL, confidence=0.9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchcp_itself():
    classification = pytest.importorskip("torchcp.classification")
    regression = pytest.importorskip("torchcp.regression")
    torch = pytest.importorskip("torch")
    data = torch.utils.data
    noisy = torch.from_numpy(NOISY)

    def loader(labels):
        return data.DataLoader(data.TensorDataset(noisy[:200], torch.from_numpy(labels[:200])), 64)

    torch.manual_seed(0)
    classifier = classification.predictor.SplitPredictor(
        classification.score.LAC(), torch.nn.Linear(4, 3).double()
    )
    classifier.calibrate(loader(Y), alpha=0.2)
    wanted = classifier.predict(noisy).numpy()[np.arange(300), Y]
    np.testing.assert_array_equal(outcomes(classifier, Y), wanted)
    regressor = regression.predictor.SplitPredictor(
        regression.score.ABS(), torch.nn.Linear(4, 1).double()
    )
    regressor.calibrate(loader(REAL), alpha=0.2)
    low, high = regressor.predict(noisy).numpy()[:, 0].T
    np.testing.assert_array_equal(outcomes(regressor, REAL), (low <= REAL) & (high >= REAL))


def test_outcomes_are_what_an_audit_takes():
    found = outcomes(interval_of, REAL)
    audited = bincp.audit(SCHEME, L2, [0.0, 0.2], outcomes=found, delta="0.05")
    bound = bincp.clopper_pearson_lower(int(found.sum()), 300, "0.05")
    assert audited.coverage.tolist() == [
        bincp.certify(SCHEME, L2(r)).lower(bound) for r in (0.0, 0.2)
    ]


@pytest.mark.parametrize(
    ("predictor", "y", "options", "error", "message"),
    [
        (3, Y, {}, TypeError, "`predictor` must be one of MAPIE, crepes"),
        (classes_of, Y, {"confidence": 0.9}, ValueError, "`confidence` must be given for a"),
        (classes_of, Y + 1, {}, ValueError, r"`y` must be in \[0, 2\], got 3"),
        (classes_of, Y[:9], {}, ValueError, r"`y` must have shape \(300,\), got \(9,\)"),
        (classes_of, Y, {"classes": [0, 1]}, ValueError, "`classes` must have 3 entries, got 2"),
        (classes_of, Y, {"classes": [0, 1, 9]}, ValueError, "`y` must hold classes of"),
        (lambda x: classes_of(x) * 2, Y, {}, ValueError, "of 0 and 1"),
        (lambda x: classes_of(x)[:9], Y, {}, ValueError, r"shape \(300, K\)"),
        (lambda x: interval_of(x)[:9], REAL, {}, ValueError, r"intervals of shape \(300, 2\)"),
        (interval_of, REAL[:9], {}, ValueError, r"real numbers of shape \(300,\)"),
        (interval_of, np.where(REAL > 1, np.nan, REAL), {}, ValueError, "`y` must be finite"),
        (lambda x: interval_of(x) * np.nan, REAL, {}, ValueError, "`predictor` must not be NaN"),
        (lambda x: np.zeros((len(x), 38)), REAL, {}, ValueError, "IntervalSets serves unions"),
        (lambda x: np.full((len(x), 2), "a"), Y, {}, TypeError, "booleans or intervals"),
        (classes_of, Y, {"classes": [0, 1, 1]}, ValueError, "`classes` must differ"),
        (classes_of, Y, {"classes": 3}, TypeError, "`classes` must be a sequence, got 3"),
        (classes_of, Y[:, None], {"classes": [0, 1, 2]}, ValueError, r"shape \(n,\), got \(300, 1"),
        (two_as_floats, Y > 1, {"classes": [False, True]}, ValueError, "booleans or integers"),
        (two_as_floats, (Y > 1).astype(int), {}, ValueError, "0 and 1 in float64, which would be"),
        (interval_of, np.full(300, np.inf), {}, ValueError, "`y` must be finite, got inf"),
        (interval_of, np.full(300, 2**53 + 1), {}, ValueError, "`y` must be doubles"),
        (interval_of, REAL > 0, {}, TypeError, "`y` must be real numbers, got dtype bool"),
        (union_of, REAL[:, None], {}, ValueError, r"real numbers of shape \(300,\)"),
        (union_of, 0.5, {}, ValueError, r"real numbers of shape \(300,\), got shape \(\)"),
        (lambda x: union_of(x[:9]), REAL, {}, ValueError, "must return 300 sets, got 9"),
    ],
)
def test_bad_arguments(predictor, y, options, error, message):
    with pytest.raises(error, match=message):
        outcomes(predictor, y, **options)
