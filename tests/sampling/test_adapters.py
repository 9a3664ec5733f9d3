"""Models of other libraries: the same logits and sets as without the adapter, and bad input."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bincp import metrics
from bincp.adapters import as_model
from bincp.balls import L2
from bincp.sampling import RobustClassifier, count_scores, sample_scores, vote_counts
from bincp.smoothing import Gaussian

sklearn = pytest.importorskip("sklearn")
art = pytest.importorskip("art")

from art.defences.postprocessor import HighConfidence  # noqa: E402
from art.defences.preprocessor import FeatureSqueezing  # noqa: E402
from art.estimators.certification.randomized_smoothing import (  # noqa: E402
    PyTorchRandomizedSmoothing,
)
from art.estimators.classification import (  # noqa: E402
    BlackBoxClassifier,
    PyTorchClassifier,
    SklearnClassifier,
)
from art.estimators.regression import ScikitlearnRegressor  # noqa: E402
from sklearn.ensemble import RandomForestClassifier, VotingClassifier  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402
from sklearn.tree import DecisionTreeClassifier  # noqa: E402

K = 3
SIGMA = 0.5


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    x = rng.normal(1.5 * np.eye(K, 4)[y], 0.7)
    return x.astype(np.float32), y


def network(seed=0):
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, K)]
    return torch.nn.Sequential(*layers)


def art_network(module, **options):
    return PyTorchClassifier(
        module,
        loss=torch.nn.CrossEntropyLoss(),
        input_shape=(4,),
        nb_classes=K,
        device_type="cpu",
        **options,
    )


def sets_of(model, n=60, **options):
    x, y = data(3 * n)
    ours = RobustClassifier(
        model, Gaussian(SIGMA), L2(0.1), alpha=0.2, n_samples=16, seed=7, **options
    )
    return ours.calibrate(x[: 2 * n], y[: 2 * n]).predict(x[2 * n :]), y[2 * n :]


def logits_of(model, x):
    with torch.no_grad():
        return model(torch.from_numpy(x)).numpy()


class TestTorch:
    def test_a_module_or_a_function_of_logits_is_returned_as_it_is(self):
        module = network()
        assert as_model(module) is module
        assert as_model(module, outputs="logits") is module
        assert as_model(len) is len

    @pytest.mark.parametrize("is_module", [True, False])
    def test_probabilities_become_logits_with_the_same_scores(self, is_module):
        module = network()
        soft = torch.nn.Sequential(module, torch.nn.Softmax(dim=1))
        model = soft if is_module else lambda x: soft(x)
        soft.eval()
        found = sample_scores(
            as_model(model, outputs="probabilities"), data(9)[0], Gaussian(1.0), 5, phase="test"
        )
        expected = sample_scores(module, data(9)[0], Gaussian(1.0), 5, phase="test")
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_a_module_of_probabilities_keeps_its_modes_and_parameters(self):
        soft = torch.nn.Sequential(network(), torch.nn.Softmax(dim=1))
        model = as_model(soft, outputs="probabilities")
        soft.train()
        first = sample_scores(model, data(9)[0], Gaussian(1.0), 5, phase="test")
        again = sample_scores(model, data(9)[0], Gaussian(1.0), 5, phase="test")
        np.testing.assert_array_equal(first, again)  # dropout was off
        assert soft.training
        assert len(list(model.parameters())) == len(list(soft.parameters()))

    def test_half_precision_probabilities_are_widened_before_the_logarithm(self):
        p = torch.tensor([[0.1, 0.9]], dtype=torch.bfloat16)
        logits = as_model(lambda x: p, outputs="probabilities")(torch.zeros(1, 2))
        assert logits.dtype == torch.float32
        torch.testing.assert_close(logits, p.float().log(), rtol=0, atol=0)

    def test_what_a_model_of_probabilities_may_not_return(self):
        for output in (torch.tensor([[2.0, -1.0]]), torch.tensor([[0.9, 0.9]])):
            model = as_model(lambda x, output=output: output, outputs="probabilities")
            with pytest.raises(ValueError, match=r"`model` must return probabilities, .* \(0,\)"):
                model(torch.zeros(1, 2))
        model = as_model(lambda x: 3, outputs="probabilities")
        with pytest.raises(TypeError, match="`model` must return a tensor of logits, got int"):
            sample_scores(model, data(2)[0], Gaussian(1.0), 5, phase="test")


class TestRounding:
    """What exceeds 1 by the rounding of an average is a probability; a row of logits is none."""

    @pytest.mark.parametrize("is_tensor", [False, True])
    @pytest.mark.parametrize(
        "row",
        [
            np.array([1 + 2.0**-52, 0.0, 0.0]),
            np.array([1 + 2.0**-23, -(2.0**-24), 0.0]),
            np.array([1 + 2.0**-23, 0.0, 0.0], np.float32),
            np.array([1 + 2.0**-10, 0.0, -(2.0**-20)], np.float16),
        ],
        ids=["float64", "float32 widened", "float32", "float16"],
    )
    def test_it_counts_as_the_end_of_the_range(self, row, is_tensor):
        p = np.stack([row, row[::-1]])
        if is_tensor:
            tensor = torch.from_numpy(p)
            model = as_model(lambda x: tensor, outputs="probabilities")
        else:
            model = as_model(lambda x: p, outputs="probabilities", arrays=True)
        logits = model(torch.zeros(2, 4))
        zero, none = 0.0, -np.inf
        assert logits.tolist() == [[zero, none, none], [none, none, zero]]

    def test_bfloat16(self):
        p = torch.tensor([[1 + 2.0**-7, 0.0]], dtype=torch.bfloat16)
        assert as_model(lambda x: p, outputs="probabilities")(torch.zeros(1, 2)).tolist() == [
            [0.0, -np.inf]
        ]

    @pytest.mark.parametrize("is_tensor", [False, True])
    @pytest.mark.parametrize(
        "row", [[1.001, -0.001], [1.00001, 0.0], [0.5, 0.4], [2.0, -1.0], [0.5, np.nan]]
    )
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_further_off_is_refused(self, row, dtype, is_tensor):
        p = np.array([[0.5, 0.5], row], dtype)
        output = torch.from_numpy(p) if is_tensor else p
        model = as_model(lambda x: output, outputs="probabilities", arrays=not is_tensor)
        with pytest.raises(ValueError, match=r"`model` must return probabilities, .* \(1,\)"):
            model(torch.zeros(2, 4))

    def test_a_vote_of_weighted_classifiers(self):
        """The weighted average of certain votes is 1.0000000000000002 here."""
        x = np.float32([[0.0], [0.0], [9.0], [9.0]])
        members = [(str(i), DecisionTreeClassifier()) for i in range(8)]
        weights = np.random.default_rng(1).integers(1, 10, 8) * 0.1
        vote = VotingClassifier(members, voting="soft", weights=list(weights))
        vote.fit(x, [0, 0, 1, 1])
        assert vote.predict_proba(x).max() == 1 + 2.0**-52
        scores = sample_scores(vote, x, Gaussian(0.1), 3, phase="test")
        np.testing.assert_array_equal(scores[:, :, 0], [[1, 0], [1, 0], [0, 1], [0, 1]])


class TestArrays:
    @settings(deadline=None, max_examples=25)
    @given(st.lists(st.integers(0, 9), min_size=2, max_size=5).filter(any))
    def test_softmax_gives_the_probabilities_back(self, weights):
        p = np.array([weights], dtype=np.float64) / sum(weights)
        model = as_model(lambda x: p, outputs="probabilities", arrays=True)
        logits = model(torch.zeros(1, 2))
        np.testing.assert_allclose(logits.softmax(1).numpy(), p, rtol=1e-14)
        assert (np.isneginf(logits.numpy()) == (p == 0)).all()

    def test_scores_are_those_of_the_same_function_in_torch(self):
        weights = np.random.default_rng(0).normal(size=(4, K)).astype(np.float32)
        seen = []

        def function(x):
            seen.append(type(x))
            return x @ weights

        ours = sample_scores(
            as_model(function, arrays=True), data(9)[0], Gaussian(1.0), 5, phase="test"
        )
        theirs = sample_scores(
            lambda x: x @ torch.from_numpy(weights), data(9)[0], Gaussian(1.0), 5, phase="test"
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
        assert ours.dtype == np.float32
        assert set(seen) == {np.ndarray}

    def test_the_function_may_return_memory_that_nobody_may_write(self):
        fixed = np.zeros((2, K))
        fixed.flags.writeable = False
        logits = as_model(lambda x: fixed, arrays=True)(torch.zeros(2, 4))
        logits += 1  # no warning, and no change of what is not ours
        assert not fixed.any()

    @pytest.mark.parametrize(
        ("output", "error", "message"),
        [
            (3, TypeError, "`model` must return an array, got int"),
            (np.zeros(2), ValueError, r"shape \(2, K\) for a batch of 2, got float64 of shape"),
            (np.zeros((3, K)), ValueError, r"shape \(2, K\)"),
            (np.zeros((2, K), int), ValueError, "floating-point numbers .* got int64"),
        ],
    )
    def test_bad_output(self, output, error, message):
        with pytest.raises(error, match=message):
            as_model(lambda x: output, arrays=True)(torch.zeros(2, 4))


class TestSklearn:
    @pytest.mark.parametrize(
        "classifier",
        [
            LogisticRegression(),
            RandomForestClassifier(20, max_depth=3, random_state=0),
            make_pipeline(StandardScaler(), LogisticRegression()),
        ],
        ids=["logistic", "forest", "pipeline"],
    )
    def test_scores_are_the_probabilities_and_sets_cover(self, classifier):
        x, y = data(400, seed=1)
        classifier.fit(x, y)
        scores = sample_scores(classifier, x[:7], Gaussian(SIGMA), 4, phase="test")
        from bincp.noise import draw

        noisy = draw(Gaussian(SIGMA), x[:7], 4, phase="test").reshape(28, 4)
        expected = classifier.predict_proba(noisy).reshape(7, 4, K).transpose(0, 2, 1)
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-12)
        prediction, labels = sets_of(classifier)
        assert metrics.coverage(prediction.sets, labels) >= 0.75
        assert metrics.average_set_size(prediction.sets) < 2.5

    def test_inputs_are_flattened(self):
        x, y = data(100)
        classifier = LogisticRegression().fit(x, y)
        flat = count_scores(classifier, x, Gaussian(1.0), 5, 0.5, phase="test")
        square = count_scores(classifier, x.reshape(-1, 2, 2), Gaussian(1.0), 5, 0.5, phase="test")
        np.testing.assert_array_equal(flat, square)

    def test_labels_are_matched_by_name_only_where_it_was_said_how(self):
        x, y = data(200)
        names = np.array(["cat", "dog", "ant"])
        classifier = LogisticRegression().fit(x, names[y])
        with pytest.raises(ValueError, match=r"`classes` must say .* classes_ \['ant', 'cat', 'd"):
            as_model(classifier)
        with pytest.raises(ValueError, match="`classes` must say"):
            RobustClassifier(classifier, Gaussian(1.0), L2(0.1), alpha=0.1, n_samples=8)
        model = as_model(classifier, classes=names)
        assert (logits_of(model, x).argmax(1) == y).mean() > 0.8
        assert (names[logits_of(model, x).argmax(1)] == classifier.predict(x)).all()

    @pytest.mark.parametrize(
        "labels", [[1, 2, 3], [0, 2, 3], [-1, 0, 1], [2, 4, 6]], ids=lambda value: str(value)
    )
    def test_classes_that_are_not_0_to_k_are_never_taken_for_labels(self, labels):
        x, y = data(100)
        classifier = LogisticRegression().fit(x, np.array(labels)[y])
        with pytest.raises(ValueError, match="`classes` must say which class each label is"):
            as_model(classifier)
        assert (logits_of(as_model(classifier, classes=labels), x).argmax(1) == y).mean() > 0.8

    def test_booleans_are_not_the_labels_0_and_1(self):
        x, y = data(100)
        classifier = LogisticRegression().fit(x, y > 0)
        with pytest.raises(ValueError, match="`classes` must say"):
            as_model(classifier)
        as_model(classifier, classes=[False, True])

    def test_bad_input(self):
        x, y = data(100)
        fitted = LogisticRegression().fit(x, y)
        for classes in ([0, 1], [0, 1, 1], [0, 1, 2, 3], [0, 1, 5]):
            with pytest.raises(ValueError, match=r"`classes` must hold each of \[0, 1, 2\] once"):
                as_model(fitted, classes=classes)
        with pytest.raises(TypeError, match="`classes` must be a sequence, got 'abc'"):
            as_model(fitted, classes="abc")
        with pytest.raises(ValueError, match="`estimator` must be fitted, got LogisticRegression"):
            as_model(LogisticRegression())
        with pytest.raises(ValueError, match="`outputs` must be 'probabilities' for Logistic"):
            as_model(fitted, outputs="logits")
        two = RandomForestClassifier(2).fit(x, np.stack([y, y], axis=1))
        with pytest.raises(ValueError, match="`estimator` must have one output"):
            as_model(two)
        for other in (LinearRegression(), LogisticRegression, SVC(), 3, None, [fitted]):
            with pytest.raises(TypeError, match="`model` must be a torch module or a callable"):
                as_model(other)

    @pytest.mark.parametrize("n_columns", [1, 3])
    @pytest.mark.parametrize("classes", [None, [1, 0]])
    def test_a_column_a_class(self, n_columns, classes):
        """Some binary classifiers return one column: that of one class is not that of label 0."""

        class Binary:
            classes_ = np.array([0, 1])

            def predict_proba(self, x):
                return np.full((len(x), n_columns), 1 / n_columns)

        model = as_model(Binary(), classes=classes)
        with pytest.raises(ValueError, match=rf"its 2 classes_, got shape \(5, {n_columns}"):
            model(torch.zeros(5, 4))


class TestArt:
    def test_a_torch_estimator_gives_the_sets_of_its_module(self):
        module = network()
        theirs, _ = sets_of(module)
        ours, labels = sets_of(as_model(art_network(module), outputs="logits"))
        np.testing.assert_array_equal(ours.sets, theirs.sets)
        np.testing.assert_array_equal(ours.counts, theirs.counts)
        assert metrics.coverage(ours.sets, labels) >= 0.7

    def test_its_preprocessing_acts_on_the_noisy_input(self):
        module = network()
        estimator = art_network(module, preprocessing=(0.25, 2.0))

        def scaled(x):
            return module.eval()((x - 0.25) / 2.0)

        ours = sample_scores(
            as_model(estimator, outputs="logits"), data(9)[0], Gaussian(1.0), 5, phase="test"
        )
        expected = sample_scores(scaled, data(9)[0], Gaussian(1.0), 5, phase="test")
        np.testing.assert_allclose(ours, expected, rtol=1e-5)

    def test_its_preprocessing_defences_act_on_the_noisy_input(self):
        seen = []

        class Spy(FeatureSqueezing):
            def __call__(self, x, y=None):
                seen.append(x.copy())
                squeezed, y = super().__call__(x, y)
                return squeezed.astype(x.dtype), y

        estimator = art_network(
            network(), preprocessing_defences=Spy(clip_values=(-9, 9), bit_depth=4)
        )
        model = as_model(estimator, outputs="logits")
        sample_scores(model, np.zeros((2, 4), np.float32), Gaussian(1.0), 500, phase="test")
        assert abs(np.concatenate(seen).std() - 1.0) < 0.1

    def test_clip_values_do_not_clip_the_noise(self):
        module = network()
        clipping = as_model(art_network(module, clip_values=(0.0, 0.1)), outputs="logits")
        ours = sample_scores(clipping, data(9)[0], Gaussian(1.0), 5, phase="test")
        expected = sample_scores(module, data(9)[0], Gaussian(1.0), 5, phase="test")
        np.testing.assert_array_equal(ours, expected)

    def test_draws_differ_between_calls_and_phases(self):
        model = as_model(art_network(network()), outputs="logits")
        x = np.zeros((3, 4), np.float32)
        scores = sample_scores(model, x, Gaussian(1.0), 4, phase="test")
        assert len(np.unique(scores[:, 0])) == 12
        other = sample_scores(model, x, Gaussian(1.0), 4, phase="calibration")
        assert not np.intersect1d(scores, other).size

    @pytest.mark.parametrize("use_logits", [False, True])
    def test_a_sklearn_estimator_gives_the_sets_of_its_classifier(self, use_logits):
        x, y = data(300, seed=1)
        classifier = RandomForestClassifier(20, max_depth=3, random_state=0).fit(x, y)
        estimator = SklearnClassifier(classifier)
        estimator._use_logits = use_logits
        with np.errstate(divide="ignore"):  # predict_log_proba takes the logarithm of 0
            ours, _ = sets_of(estimator)
        theirs, _ = sets_of(classifier)
        np.testing.assert_array_equal(ours.sets, theirs.sets)

    def test_the_classes_of_a_sklearn_estimator_are_checked_too(self):
        x, y = data(100)
        estimator = SklearnClassifier(LogisticRegression().fit(x, y + 1))
        with pytest.raises(ValueError, match="`classes` must say"):
            as_model(estimator)
        model = as_model(estimator, classes=[3, 1, 2])
        assert (logits_of(model, x)[:, [1, 2, 0]].argmax(1) == y).mean() > 0.8

    def test_what_predict_returns_is_never_guessed(self):
        x, y = data(50)
        boxed = BlackBoxClassifier(lambda x: np.eye(K)[[0] * len(x)], (4,), K)
        changed = SklearnClassifier(
            LogisticRegression().fit(x, y), postprocessing_defences=HighConfidence(0.5)
        )
        for estimator in (art_network(network()), boxed, changed):
            with pytest.raises(ValueError, match="`outputs` must be 'logits' or 'probabilities' f"):
                as_model(estimator)
            with pytest.raises(ValueError, match="as_model"):
                vote_counts(estimator, x, Gaussian(1.0), 4)
        counts = vote_counts(as_model(boxed, outputs="probabilities"), x, Gaussian(1.0), 4)
        assert counts.tolist() == [[4, 0, 0]] * 50
        with pytest.raises(ValueError, match="`outputs` must be 'probabilities' for Scikitlearn"):
            as_model(SklearnClassifier(LogisticRegression().fit(x, y)), outputs="logits")

    def test_a_network_of_logits_is_no_model_of_probabilities(self):
        model = as_model(art_network(network()), outputs="probabilities")
        with pytest.raises(ValueError, match="`model` must return probabilities"):
            vote_counts(model, data(3)[0], Gaussian(1.0), 4)

    def test_what_adds_noise_itself_is_refused(self):
        smoothed = PyTorchRandomizedSmoothing(
            network(),
            loss=torch.nn.CrossEntropyLoss(),
            input_shape=(4,),
            nb_classes=K,
            device_type="cpu",
        )
        with pytest.raises(ValueError, match="`estimator` must not add noise itself, got PyTorch"):
            as_model(smoothed, outputs="logits")

    def test_bad_input(self):
        x, y = data(50)
        regressor = ScikitlearnRegressor(LinearRegression().fit(x, y))
        with pytest.raises(TypeError, match="`estimator` must be an ART classifier, got Scikit"):
            as_model(regressor, outputs="logits")
        model = as_model(art_network(network()), outputs="logits")
        with pytest.raises(ValueError, match=r"`x` must have inputs of shape \(4,\), got \(6,\)"):
            vote_counts(model, np.zeros((2, 6), np.float32), Gaussian(1.0), 4)
        with pytest.raises(ValueError, match="`x` must have the dtype of the model's parameters"):
            vote_counts(model, x.astype(np.float64), Gaussian(1.0), 4)
        with pytest.raises(ValueError, match="`classes` must be None"):
            as_model(art_network(network()), outputs="logits", classes=[0, 1, 2])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"outputs": "logit"},
            ValueError,
            "`outputs` must be 'logits' or 'probabilities', got 'lo",
        ),
        ({"outputs": 1}, TypeError, "`outputs` must be a string, got 1"),
        ({"arrays": 1}, TypeError, "`arrays` must be a bool, got 1"),
        ({"classes": [0, 1]}, ValueError, r"`classes` must be None .* got \[0, 1\] for Linear"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        as_model(torch.nn.Linear(4, 3), **options)


def test_arrays_needs_a_callable():
    with pytest.raises(TypeError, match="`estimator` must be callable with arrays=True, got 3"):
        as_model(3, arrays=True)


def test_adapters_import_none_of_the_libraries():
    code = "import sys, bincp.adapters; print({'torch', 'art', 'sklearn'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "set()", result.stderr


class TestCopies:
    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
    @pytest.mark.parametrize(
        "kind", ["pipeline", "named classes", "art", "art of sklearn", "array"]
    )
    def test_classifiers_of_other_models_are_copied_and_pickled(self, kind, copied):
        x, y = data(120)
        scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
        names = np.array(["a", "b", "c"])
        model = {
            "pipeline": lambda: scaled,
            "named classes": lambda: as_model(
                LogisticRegression().fit(x, names[y]), classes=["c", "a", "b"]
            ),
            "art": lambda: as_model(art_network(network()), outputs="logits"),
            "art of sklearn": lambda: SklearnClassifier(LogisticRegression().fit(x, y)),
            "array": lambda: as_model(scaled.predict_proba, arrays=True, outputs="probabilities"),
        }[kind]()
        ours = RobustClassifier(model, Gaussian(SIGMA), L2(0.1), alpha=0.2, n_samples=8)
        ours.calibrate(x[:80], y[:80])
        theirs = copied(ours)
        assert theirs.model is not ours.model
        expected, found = (one.reseed(3).predict(x[80:]) for one in (ours, theirs))
        np.testing.assert_array_equal(found.sets, expected.sets)
        np.testing.assert_array_equal(found.counts, expected.counts)
