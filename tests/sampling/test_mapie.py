"""Code for MAPIE 1.x runs on robust sets with two lines changed."""

import copy
import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import bincp  # noqa: E402
from bincp import metrics  # noqa: E402
from bincp.adapters import SplitConformalClassifier, as_model  # noqa: E402
from bincp.balls import L2  # noqa: E402
from bincp.errors import NotCalibratedError, TrivialSetWarning  # noqa: E402
from bincp.sampling import RobustClassifier, sample_scores  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

MAPIE_CODE = """
import numpy as np
from mapie.classification import SplitConformalClassifier

def sets_of(model, x, y, x_test):
    classifier = SplitConformalClassifier(model, confidence_level={levels}, prefit=True)
    classifier.conformalize(x, y)
    points = classifier.predict(x_test)
    predicted, sets = classifier.predict_set(x_test)
    assert (predicted == points).all()
    return predicted, sets
"""
CHANGES = {
    "from mapie.classification import": "from bincp.adapters import",
    "prefit=True": "prefit=True, smoothing=SMOOTHING, ball=BALL, n_samples=16, random_state=3",
}
RECORDED = {  # what version 1.6 returns: dtypes and shapes for n inputs, K classes, L levels
    "predicted": ("dtype of y", "(n,)"),
    "sets": ("bool", "(n, K, L)"),
}
NAMES = np.array(["cat", "dog", "eel"])
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 900)
X = RNG.normal(np.eye(3)[Y], 0.6)
FIT, CONFORMALIZE, TEST = slice(0, 200), slice(200, 600), slice(600, 900)


def changed(code):
    for old, new in CHANGES.items():
        assert code.count(old) == 1
        code = code.replace(old, new)
    return code


def outcome(code, labels, smoothing=None, ball=None):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[FIT], labels[FIT])
    space = {"SMOOTHING": smoothing or Gaussian(0.5), "BALL": ball or L2(0.1)}
    exec(code, space)
    return space["sets_of"](model, X[CONFORMALIZE], labels[CONFORMALIZE], X[TEST])


def ours(estimator=None, **options):
    if estimator is None:
        estimator = LogisticRegression().fit(X[FIT], Y[FIT])
    given = {"smoothing": Gaussian(0.5), "ball": L2(0.1), "n_samples": 16, "random_state": 3}
    return SplitConformalClassifier(estimator, **(given | options))


class Frame:
    """What is asked of a data frame: columns, and an array."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class TestCodeOfMapie:
    def test_two_lines_are_changed(self):
        code = MAPIE_CODE.format(levels="0.9")
        lines = zip(code.split("\n"), changed(code).split("\n"), strict=True)
        assert sum(old != new for old, new in lines) == 2

    @pytest.mark.parametrize("labels", [Y, NAMES[Y], Y + 5], ids=["places", "names", "other ints"])
    @pytest.mark.parametrize(("levels", "n_levels"), [("0.9", 1), ("[0.8, 0.9, 0.95]", 3)])
    def test_it_gets_the_recorded_shapes(self, labels, levels, n_levels):
        predicted, sets = outcome(changed(MAPIE_CODE.format(levels=levels)), labels)
        assert RECORDED["predicted"] == ("dtype of y", "(n,)")
        assert (predicted.dtype, predicted.shape) == (labels.dtype, (300,))
        assert (str(sets.dtype), sets.shape) == (RECORDED["sets"][0], (300, 3, n_levels))

    @pytest.mark.parametrize("labels", [Y, NAMES[Y], Y + 5], ids=["places", "names", "other ints"])
    @pytest.mark.parametrize("levels", ["0.9", "[0.8, 0.9, 0.95]"])
    def test_it_runs_on_mapie_and_on_bincp_alike(self, labels, levels):
        """Without an attack and with next to no noise, our sets hold those of MAPIE."""
        mapie = pytest.importorskip("mapie")
        assert mapie.__version__.startswith("1.")
        code = MAPIE_CODE.format(levels=levels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of MAPIE
            predicted, sets = outcome(code, labels)
        same, robust = outcome(changed(code), labels, Gaussian(1e-9), L2(0.0))
        np.testing.assert_array_equal(same, predicted)
        assert (robust.dtype, robust.shape) == (sets.dtype, sets.shape)
        assert 0.2 < sets.mean() < 0.8
        assert not (sets & ~robust).any()
        assert (robust & ~sets).mean() < 0.05

    def test_metrics_of_mapie_take_the_sets(self):
        pytest.importorskip("mapie")
        from mapie.metrics.classification import (
            classification_coverage_score,
            classification_mean_width_score,
        )

        _, sets = outcome(changed(MAPIE_CODE.format(levels="[0.8, 0.9]")), Y)
        covered = classification_coverage_score(Y[TEST], sets)
        sizes = classification_mean_width_score(sets)
        for level in range(2):
            own = sets[:, :, level]
            assert covered[level] == pytest.approx(metrics.coverage(own, Y[TEST]), rel=1e-12)
            assert sizes[level] == pytest.approx(metrics.average_set_size(own), rel=1e-12)


class TestSets:
    def test_they_are_those_of_a_classifier_with_the_same_noise(self):
        model = LogisticRegression().fit(X[FIT], Y[FIT])
        adapter = ours(model, confidence_level=["0.8", 0.9]).conformalize(
            X[CONFORMALIZE], Y[CONFORMALIZE]
        )
        predicted, sets = adapter.predict_set(X[TEST])
        np.testing.assert_array_equal(predicted, model.predict(X[TEST]))
        scores = sample_scores(
            model,
            X[CONFORMALIZE],
            Gaussian(0.5),
            16,
            phase="calibration",
            labels=Y[CONFORMALIZE],
            seed=3,
        )
        certificate = bincp.certify(Gaussian(0.5), L2(0.1))
        for place, alpha in enumerate(["0.2", "0.1"]):
            rule = bincp.BinCP(certificate, alpha=alpha, passes="auto").calibrate(scores)
            assert adapter.rules_[place].tau_ == rule.tau_
            alone = RobustClassifier(model, Gaussian(0.5), L2(0.1), rule=rule, seed=3)
            np.testing.assert_array_equal(sets[:, :, place], alone.predict(X[TEST]).sets)

    def test_modules_and_functions_and_adapted_models_have_places_for_classes(self):
        torch.manual_seed(0)
        module = torch.nn.Linear(3, 3)
        with torch.no_grad():
            module.weight.copy_(4 * torch.eye(3))
        x = torch.from_numpy(X).float()
        for estimator in (module, lambda z: 4 * z, as_model(lambda z: 4 * z, arrays=True)):
            adapter = ours(estimator).conformalize(x[CONFORMALIZE], Y[CONFORMALIZE])
            predicted, sets = adapter.predict_set(x[TEST])
            assert adapter.classes_.tolist() == [0, 1, 2]
            assert sets.shape == (300, 3, 1)
            logits = 4 * x[TEST] + (module.bias.detach() if estimator is module else 0)
            np.testing.assert_array_equal(predicted, logits.argmax(1))
            assert metrics.coverage(sets[:, :, 0], Y[TEST]) > 0.85

    @pytest.mark.parametrize("as_given", [np.asarray, torch.from_numpy])
    def test_a_model_in_place_does_not_write_to_the_inputs(self, as_given):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(60, 4)).astype(np.float32)
        kept, y = x.copy(), (x[:, 0] > 0).astype(int)
        robust = ours(lambda batch: batch.add_(5)[:, :2])
        given = as_given(x)
        robust.conformalize(given, y)
        predicted, _ = robust.predict_set(given)
        np.testing.assert_array_equal(x, kept)
        np.testing.assert_array_equal(predicted, kept[:, :2].argmax(1))
        np.testing.assert_array_equal(robust.predict(given), predicted)
        np.testing.assert_array_equal(x, kept)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    def test_modules_of_16_bits_and_turned_inputs_are_taken(self, dtype):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(80, 3)).astype(np.float32)[::-1]
        x.flags.writeable = False
        torch.manual_seed(0)
        module = torch.nn.Linear(3, 2).to(dtype)
        robust = ours(module).conformalize(x, (x[:, 0] > 0).astype(int))
        with torch.no_grad():
            wanted = module(torch.from_numpy(x.copy()).to(dtype)).argmax(1)
        np.testing.assert_array_equal(robust.predict(x), wanted)

    def test_each_call_draws_new_noise(self):
        seen = []

        def recorder(x):
            seen.append(x.numpy().copy())
            return 4 * x

        adapter = ours(recorder, confidence_level=[0.5, 0.9])
        zeros = np.zeros((40, 3), np.float32)
        adapter.conformalize(zeros + 1, np.arange(40) % 3)
        seen.clear()
        first = adapter.predict_set(zeros)[1]
        adapter.predict_set(zeros)
        noisy = np.concatenate(seen)
        noisy = noisy[(noisy != 0).any(axis=1)]  # `predict` sees the inputs as they are
        assert first.shape == (40, 3, 2)
        for row in np.unique(noisy, axis=0):  # the levels share it within a call
            assert (noisy == row).all(axis=1).sum() <= 2

    def test_a_drawn_seed_is_another_one_each_time(self):
        taus = {
            ours(random_state=None).conformalize(X[CONFORMALIZE], Y[CONFORMALIZE]).rules_[0].tau_
            for _ in range(3)
        }
        assert len(taus) == 3
        again = ours(random_state=None)
        first = again.conformalize(X[CONFORMALIZE], Y[CONFORMALIZE]).rules_[0].tau_
        assert again.conformalize(X[CONFORMALIZE], Y[CONFORMALIZE]).rules_[0].tau_ != first

    def test_lists_and_data_frames_are_taken(self):
        adapter = ours().conformalize(X[CONFORMALIZE].tolist(), Y[CONFORMALIZE].tolist())
        tau = adapter.rules_[0].tau_
        assert ours().conformalize(X[CONFORMALIZE], Y[CONFORMALIZE]).rules_[0].tau_ == tau
        pandas = pytest.importorskip("pandas")
        frame, column = pandas.DataFrame(X[CONFORMALIZE]), pandas.Series(Y[CONFORMALIZE])
        assert ours().conformalize(frame, column).rules_[0].tau_ == tau

    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # noise keeps none
    def test_columns_of_data_frames_keep_their_order(self):
        """Arrays have none: columns that were exchanged were taken by their places."""
        names = list("abcdefgh")[: X.shape[1]]
        named = Frame(X[CONFORMALIZE], names)
        turned = Frame(X[CONFORMALIZE][:, ::-1], names[::-1])
        fitted = LogisticRegression().fit(X[FIT], Y[FIT])
        adapter = ours(fitted).conformalize(named, Y[CONFORMALIZE])
        plain = ours(fitted).conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])
        assert adapter.rules_[0].tau_ == plain.rules_[0].tau_
        for call in (adapter.predict_set, adapter.predict):
            with pytest.raises(ValueError, match=r"`X` must have the columns \['a', 'b'.*got \["):
                call(turned)
        other = ours(fitted).conformalize(turned, Y[CONFORMALIZE])  # whose estimator has no names
        other.conformalize(named, Y[CONFORMALIZE]).predict(named)
        # Nothing was drawn for what was refused, and arrays are taken by places.
        np.testing.assert_array_equal(
            adapter.predict_set(named)[1], plain.predict_set(X[CONFORMALIZE])[1]
        )
        fitted.feature_names_in_ = np.array(names, object)
        with pytest.raises(ValueError, match="`X_conformalize` must have the columns"):
            ours(fitted).conformalize(turned, Y[CONFORMALIZE])
        again = ours(fitted).conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])
        with pytest.raises(ValueError, match="`X` must have the columns"):
            again.predict(turned)


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"prefit": False}, ValueError, "`prefit` must be True, got False: fit the estimator"),
            ({"prefit": 1}, TypeError, "`prefit` must be a bool"),
            ({"confidence_level": 1}, ValueError, r"`confidence_level` must be in \(0, 1\), got 1"),
            ({"confidence_level": []}, ValueError, "`confidence_level` must hold at least one"),
            ({"confidence_level": None}, TypeError, "`confidence_level` must be an int, float"),
            ({"n_samples": 0}, ValueError, "`n_samples` must be in"),
            ({"random_state": -1}, ValueError, "`random_state` must be in"),
            ({"random_state": RNG}, TypeError, "`random_state` must be an integer"),
        ],
    )
    def test_bad_ones_are_named(self, options, error, message):
        with pytest.raises(error, match=message):
            ours(**options)

    def test_bad_points_are_named(self):
        adapter = ours(LogisticRegression().fit(X[FIT], NAMES[Y[FIT]]))
        with pytest.raises(ValueError, match=r"`y_conformalize` must hold .* got 'fox' at 1"):
            adapter.conformalize(X[:2], ["cat", "fox"])
        with pytest.raises(ValueError, match=r"`y_conformalize` must have shape \(n,\)"):
            adapter.conformalize(X[:2], [["cat", "dog"]])
        with pytest.raises(ValueError, match=r"`labels` must have shape \(2,\)"):
            adapter.conformalize(X[:2], ["cat"])
        with pytest.raises(ValueError, match="`predict_params` must be None"):
            adapter.conformalize(X[:2], ["cat", "dog"], predict_params={"n": 1})
        with pytest.raises(ValueError, match="`score` must be"):
            ours(conformity_score="top_k").conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])
        with pytest.raises(NotCalibratedError, match=r"call conformalize\(\) before predicting"):
            adapter.predict_set(X[TEST])
        adapter.conformalize(X[CONFORMALIZE], NAMES[Y[CONFORMALIZE]])
        with pytest.raises(ValueError, match="`conformity_score_params` must be None"):
            adapter.predict_set(X[TEST], conformity_score_params={"include_last_label": False})

    def test_too_few_points_are_told(self):
        with pytest.warns(TrivialSetWarning, match="calibration points"):
            ours(confidence_level="0.99").conformalize(X[:20], Y[:20])

    def test_parameters_and_clones(self):
        adapter = ours(confidence_level=[0.8, "0.9"]).conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])
        params = adapter.get_params()
        assert params["confidence_level"] == [0.8, "0.9"]
        assert params["prefit"] is True
        copy = clone(adapter)
        assert copy.get_params() == params
        with pytest.raises(NotCalibratedError):
            copy.predict(X[TEST])
        assert adapter.set_params(confidence_level=0.5) is adapter
        assert len(adapter.conformalize(X[CONFORMALIZE], Y[CONFORMALIZE]).rules_) == 1

    def test_its_representation_names_what_it_is_for(self):
        adapter = ours(confidence_level=[0.8, 0.9])
        text = repr(adapter)
        assert text == (
            "SplitConformalClassifier(LogisticRegression(), smoothing=Gaussian(sigma=0.5), "
            "ball=L2(r=0.1, dim=None), confidence_level=4/5 and 9/10, not conformalized)"
        )
        adapter.conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])
        assert repr(adapter) == text.replace(", not conformalized", "")


class TestConstructor:
    """It has the parameters of MAPIE but those that say how MAPIE computes."""

    RECORDED = ("estimator", "confidence_level", "conformity_score", "prefit", "random_state")
    LEFT_OUT = ("n_jobs", "verbose")

    def test_parameters_of_mapie_are_there(self):
        params = ours().get_params()
        assert {*self.RECORDED} <= {*params}
        for name in self.LEFT_OUT:
            assert name not in params
            with pytest.raises(TypeError, match=name):
                ours(**{name: 1})

    def test_the_record_is_right(self):
        mapie = pytest.importorskip("mapie.classification")
        found = inspect.signature(mapie.SplitConformalClassifier).parameters
        assert {*found} == {*self.RECORDED, *self.LEFT_OUT}
        for name in ("confidence_level", "conformity_score", "prefit", "random_state"):
            own = inspect.signature(SplitConformalClassifier).parameters[name]
            assert own.default == found[name].default


class TestServing:
    def test_copies_draw_noise_of_their_own(self):
        made = ours(random_state=None, confidence_level=[0.9, 0.8])
        made.conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])
        assert copy.deepcopy(made).predict_set(X[TEST])[1].shape == (300, 3, 2)
        with pytest.raises(RuntimeError, match="in a copy"):
            copy.deepcopy(ours().conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])).predict_set(X)

    @pytest.mark.parametrize("seed", [None, 3])
    def test_no_call_repeats_noise(self, seed):
        """Of whatever thread, calibration, copy or clone."""
        seen = []

        def recorder(x):
            if bool((x != 1).any()):  # `predict` sees the inputs as they are
                seen.append(x.numpy().copy())
            return 4 * x

        def fitted(adapter):
            return adapter.conformalize(ones, np.arange(30) % 3)

        ones = np.ones((30, 3), np.float32)
        one = ours(recorder, confidence_level=0.5, random_state=seed)
        others = [copy.copy(one), clone(one)]
        for _ in range(2):
            fitted(one).predict_set(ones)
            others += [copy.copy(one), clone(one), clone(one).set_params(confidence_level=0.6)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: one.predict_set(ones), range(8)))
        for number, other in enumerate(others):
            if seed is not None:
                with pytest.raises(RuntimeError, match="with `random_state` must not draw in a co"):
                    fitted(other)
                with pytest.raises(ValueError, match="`first_id` must be beyond all ids in use"):
                    other.reseed(seed)
                other.reseed(10 + number)
            fitted(other).predict_set(ones)
        rows = np.concatenate(seen)
        assert len(np.unique(rows, axis=0)) == len(rows) > 5000

    def test_a_state_that_is_set_again_goes_on(self):
        one = ours(random_state=3).conformalize(X[CONFORMALIZE], Y[CONFORMALIZE])
        tau = one.rules_[0].tau_
        one.set_params(random_state=4).set_params(random_state=3)
        assert one.conformalize(X[CONFORMALIZE], Y[CONFORMALIZE]).rules_[0].tau_ != tau

    def test_what_a_module_does_not_take_is_named(self):
        made = ours(torch.nn.Linear(2, 3), n_samples=8)
        x = X[CONFORMALIZE, :2].astype(np.float32)
        made.conformalize(x, Y[CONFORMALIZE])
        for bad, message in (
            (x[:0], r"`x` must have shape \(n, ...\)"),
            (x.tolist(), "must have the dtype of the model's parameters, float32"),
        ):
            with pytest.raises(ValueError, match=message):
                made.predict_set(bad)
