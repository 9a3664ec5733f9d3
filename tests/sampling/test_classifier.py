"""The decision rule of a classifier, and the ids of its inputs."""

import copy
import inspect
import threading
import time
import typing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bincp  # noqa: E402
from bincp import noise  # noqa: E402
from bincp._utils.threads import run_all  # noqa: E402
from bincp.balls import L1, L2, Flips, Linf  # noqa: E402
from bincp.errors import NotCalibratedError  # noqa: E402
from bincp.sampling import (  # noqa: E402
    RobustClassifier,
    count_scores,
    exact_probabilities,
    run,
    sample_scores,
    vote_counts,
)
from bincp.sampling._rules import RuleSettings  # noqa: E402
from bincp.smoothing import Gaussian, SparseFlip, SplittingNoise, Uniform  # noqa: E402

D, K = 6, 4


def first_coordinates(x):
    """A model whose every number is a number of its input: equal to the bit at any batch size."""
    return 3 * x.reshape(len(x), -1)[:, :K]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 200)
    x = rng.normal(0, 0.5, (200, D)).astype(np.float32)
    x[np.arange(200), y] += 1.5
    return x, y


def classifier(smoothing=None, ball=None, model=first_coordinates, **options):
    """A classifier that counts all draws, unless the test says otherwise."""
    if "rule" not in options:
        options = {"passes": None, **options}
    options = {"seed": 0, **options}
    return RobustClassifier(model, smoothing or Gaussian(0.5), ball or L2(0.1), **options)


def certificate(smoothing=None, ball=None):
    return bincp.certify(smoothing or Gaussian(0.5), ball or L2(0.1))


class Recorder:
    """A model that keeps the first coordinate of all rows it sees."""

    def __init__(self):
        self.rows = []

    def __call__(self, x):
        self.rows.append(x[:, 0].numpy().copy())
        return first_coordinates(x)

    def taken(self):
        rows, self.rows = np.concatenate(self.rows), []
        return rows


class TestRule:
    @pytest.mark.parametrize(
        "settings",
        [{}, {"p": 0.7}, {"correction": "clopper-pearson", "union": "ghost"}, {"tau": 0.4}],
    )
    def test_a_rule_and_its_settings_are_the_same(self, data, settings):
        x, y = data
        short = classifier(alpha=0.2, n_samples=32, seed=4, **settings).calibrate(x, y)
        rule = bincp.BinCP(certificate(), alpha=0.2, **settings)
        long = classifier(rule=rule, n_samples=32, seed=4).calibrate(x, y)
        assert long.rule is rule
        assert (rule.tau_, rule.min_count_) == (short.rule.tau_, short.rule.min_count_)
        ours, theirs = (one.predict(x, curtail=False) for one in (short, long))
        np.testing.assert_array_equal(ours.counts, theirs.counts)
        np.testing.assert_array_equal(ours.sets, theirs.sets)

    @pytest.mark.parametrize("options", [{}, {"curtail": False}, {"sequential": True}])
    def test_a_calibrated_rule_predicts_at_once(self, data, options):
        x, y = data
        fitted = classifier(alpha=0.2, n_samples=32, n_test_samples=24, seed=4).calibrate(x, y)
        other = classifier(rule=fitted.rule, seed=4)
        assert (other.n_samples, other.n_test_samples) == (32, 24)
        ours, theirs = (one.predict(x, **options) for one in (fitted, other))
        np.testing.assert_array_equal(ours.sets, theirs.sets)
        np.testing.assert_array_equal(ours.counts, theirs.counts)

    def test_a_rule_from_a_file_predicts_as_the_saved_one(self, data, tmp_path):
        x, y = data
        fitted = classifier(alpha=0.2, n_samples=32, seed=4).calibrate(x, y)
        fitted.rule.save(tmp_path / "rule.json")
        restored = classifier(rule=bincp.BinCP.load(tmp_path / "rule.json"), seed=4)
        np.testing.assert_array_equal(restored.predict(x).sets, fitted.predict(x).sets)

    def test_predict_makes_the_draws_that_the_rule_is_for(self, data):
        x, y = data
        ours = classifier(alpha=0.2, n_samples=32).calibrate(x, y)
        ours.rule = classifier(alpha=0.2, n_samples=32, n_test_samples=20).calibrate(x, y).rule
        assert (ours.predict(x, curtail=False).forward_passes == 20).all()

    @pytest.mark.parametrize(
        ("smoothing", "ball", "message"),
        [
            (Gaussian(5.0), L2(0.1), r"whose smoothing is Gaussian\(sigma=5.0\), got .*sigma=0.5"),
            (Uniform(0.5), L1(0.1), r"whose smoothing is Uniform\(.*, got a rule for Gaussian"),
            (Gaussian(0.5), L2(0.2), r"whose ball is L2\(r=0.2.*\), got a rule for L2\(r=0.1"),
            (Gaussian(0.5), Linf(0.1, dim=6), r"whose ball is Linf\(r=0.1, dim=6\), got .* L2\("),
        ],
    )
    def test_a_rule_of_another_certificate_is_refused_wherever_it_comes_from(
        self, data, tmp_path, smoothing, ball, message
    ):
        x, y = data
        fresh = bincp.BinCP(certificate(), alpha=0.2)
        calibrated = classifier(alpha=0.2, n_samples=32).calibrate(x, y).rule
        calibrated.save(tmp_path / "rule.json")
        loaded = bincp.BinCP.load(tmp_path / "rule.json")
        theirs = classifier(smoothing, ball, alpha=0.2, n_samples=32)
        before = theirs.rule
        for rule in (fresh, calibrated, loaded):
            with pytest.raises(ValueError, match=message):
                classifier(smoothing, ball, rule=rule, n_samples=32)
            with pytest.raises(ValueError, match=message):
                theirs.rule = rule
        assert theirs.rule is before

    def test_a_certificate_that_does_not_say_what_it_is_for_is_refused(self):
        bare = bincp.Certificate.from_bounds(lambda p: p, lambda p: p)
        with pytest.raises(ValueError, match="got a rule for a certificate that does not say"):
            classifier(rule=bincp.BinCP(bare), n_samples=32)

    def test_its_repr_names_noise_ball_and_rule(self, data):
        ours = classifier(alpha=0.2, n_samples=32)
        assert repr(ours).startswith("RobustClassifier(Gaussian(sigma=0.5), L2(r=0.1, dim=None), ")
        assert repr(ours).endswith("rule=BinCP(alpha=1/5, correction='mixture', not calibrated))")
        assert repr(ours.calibrate(*data).rule) in repr(ours)

    def test_noise_and_ball_cannot_be_exchanged_later(self):
        ours = classifier(alpha=0.2, n_samples=32)
        for name in ("smoothing", "ball", "certificate"):
            with pytest.raises(AttributeError, match=name):
                setattr(ours, name, getattr(ours, name))

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"alpha": 0.1}, TypeError, "`rule` must be given without settings .* got alpha, too"),
            ({"p": 0.5, "tau": 0.1}, TypeError, "without settings of a rule, got p, tau, too"),
            ({"correction": "none"}, TypeError, "`rule` must be given without settings"),
            ({"n_samples": None}, TypeError, "`n_samples` must be given unless `rule` is a cal"),
            ({"rule": None}, TypeError, "`alpha` must be given where `rule` is not, got no"),
            ({"rule": None, "alhpa": 0.1}, TypeError, "`rule` is not, got alhpa"),
            ({"rule": bincp.BinCP}, TypeError, "`rule` must be a BinCP, .*, got <class"),
            ({"rule": 3}, TypeError, "`rule` must be a BinCP, .* or have the methods .*, got 3"),
            ({"n_samples": 0}, ValueError, "`n_samples` must be in"),
        ],
    )
    def test_bad_arguments(self, options, error, message):
        given = {"rule": bincp.BinCP(certificate()), "n_samples": 8, **options}
        with pytest.raises(error, match=message):
            classifier(**given)
        with pytest.raises(TypeError, match="unexpected keyword argument 'sede'"):
            classifier(alpha=0.1, n_samples=8, sede=1)

    def test_other_rules_that_do_not_fit(self, data):
        x, y = data
        exact = bincp.BinCP(certificate()).calibrate_exact(np.linspace(0.5, 1, 99), tau=0.4)
        with pytest.raises(ValueError, match="`rule` must be calibrated on sampled scores"):
            classifier(rule=exact)
        later = classifier(rule=bincp.BinCP(certificate()), n_samples=8)
        later.rule.calibrate_exact(np.linspace(0.5, 1, 99), tau=0.4)
        with pytest.raises(NotCalibratedError, match="call calibrate"):
            later.predict(x)
        fitted = classifier(alpha=0.2, n_samples=32).calibrate(x, y).rule
        with pytest.raises(ValueError, match=r"`n_test_samples` must be the m' = 32 .*, got 31"):
            classifier(rule=fitted, n_test_samples=31)
        with pytest.raises(NotCalibratedError, match="call calibrate"):
            classifier(rule=bincp.BinCP(certificate()), n_samples=8).predict(x)
        risk = bincp.RobustRiskControl(certificate(), alpha=0.2)
        with pytest.raises(TypeError, match=r"`rule` must be a BinCP, .* or have the methods"):
            classifier(rule=risk, n_samples=8)

    def test_a_rule_of_another_class_says_how_it_tests(self, data):
        x, y = data

        class Other:
            """Passes everything on to a BinCP, but for what is hidden."""

            def __init__(self, rule, hidden):
                self.inner, self.hidden = rule, hidden

            def __getattr__(self, name):
                if name in vars(self)["hidden"]:
                    raise AttributeError(name)
                return getattr(vars(self)["inner"], name)

        for passes in (None, "auto"):
            whole, part = (
                Other(bincp.BinCP(certificate(), alpha=0.2, passes=passes), hidden)
                for hidden in ((), ("boundaries_",))
            )
            ours = classifier(rule=whole, n_samples=16, seed=4).calibrate(x, y)
            same = classifier(rule=whole.inner, seed=4)
            np.testing.assert_array_equal(ours.predict(x).sets, same.predict(x).sets)
            theirs = classifier(rule=part, n_samples=16).calibrate(x, y)
            with pytest.raises(TypeError, match="got Other without boundaries_"):
                theirs.predict(x)
            with pytest.raises(TypeError, match="got Other without boundaries_"):
                classifier(rule=part)

    def test_a_rule_keeps_the_certificate_that_it_is_for(self):
        rule = bincp.BinCP(certificate())
        with pytest.raises(AttributeError):
            rule.certificate = bincp.certify(Gaussian(5.0), L2(0.1))
        assert rule.certificate_description == certificate().describe()


class TestIds:
    @pytest.fixture
    def fitted(self, data):
        model = Recorder()
        ours = classifier(model=model, alpha=0.2, n_samples=8, seed=5).calibrate(*data)
        return ours, model

    def draws(self, ids, phase="test"):
        """Return the first coordinates of the noise that inputs of zeros get by these ids."""
        zeros = np.zeros((len(ids), D), np.float32)
        return noise.draw(Gaussian(0.5), zeros, 8, phase=phase, indices=ids, seed=5)[:, :, 0]

    def test_calls_with_one_input_each_get_noise_of_their_own(self, fitted):
        ours, model = fitted
        model.taken()
        for call in range(5):
            ours.predict(np.zeros((1, D), np.float32), curtail=False)
            np.testing.assert_array_equal(model.taken(), self.draws([call])[0])

    @pytest.mark.parametrize("options", [{}, {"sequential": True}, {"curtail": False}])
    def test_ids_advance_by_the_inputs_of_a_call(self, fitted, options):
        ours, model = fitted
        model.taken()
        zeros = np.zeros((3, D), np.float32)
        ours.predict(zeros, **options)
        model.taken()
        ours.predict(zeros, **options)
        rows = model.taken()
        assert np.isin(rows, self.draws([3, 4, 5])).all()
        assert not np.isin(rows, self.draws([0, 1, 2])).any()

    def test_given_ids_are_taken_and_do_not_advance(self, fitted):
        ours, model = fitted
        model.taken()
        zeros = np.zeros((2, D), np.float32)
        for _ in range(2):
            ours.predict(zeros, indices=[7, 2**50], curtail=False)
            np.testing.assert_array_equal(model.taken(), self.draws([7, 2**50]).ravel())
        ours.predict(zeros, curtail=False)
        np.testing.assert_array_equal(model.taken(), self.draws([0, 1]).ravel())
        for bad, message in (([1], "must have shape"), ([0, -1], "got -1"), ([[0, 1]], "shape")):
            with pytest.raises(ValueError, match=f"`indices` .*{message}"):
                ours.predict(zeros, indices=bad)

    def test_a_call_that_failed_has_spent_its_ids(self, fitted):
        ours, model = fitted
        zeros = np.zeros((2, D), np.float32)

        def failing(x):
            raise RuntimeError("no memory")

        ours.model = failing
        with pytest.raises(RuntimeError, match="no memory"):
            ours.predict(zeros)
        ours.model = model
        model.taken()
        ours.predict(zeros, curtail=False)
        np.testing.assert_array_equal(model.taken(), self.draws([2, 3]).ravel())

    def test_calibrations_get_noise_of_their_own(self, data):
        x, y = data[0][:20] * 0, data[1][:20]
        model = Recorder()
        ours = classifier(model=model, alpha=0.2, n_samples=8, seed=5)
        for first in (0, 20):
            ours.calibrate(x, y)
            expected = self.draws(np.arange(first, first + 20), "calibration")
            np.testing.assert_array_equal(model.taken(), expected.ravel())
        loader = [(x[:8], y[:8]), (x[8:], y[8:])]
        for indices, ids in ((None, range(40, 60)), (range(5, 25), range(5, 25))):
            ours.calibrate(loader, indices=indices)
            expected = self.draws(np.array(ids), "calibration")
            np.testing.assert_array_equal(model.taken(), expected.ravel())
        ours.calibrate(x, y, indices=range(5, 25))
        np.testing.assert_array_equal(model.taken(), expected.ravel())

    @pytest.mark.parametrize(
        ("indices", "message"),
        [
            ([*range(19), 3], "`indices` must differ in the calibration phase .* got 3 more than"),
            (range(19), r"`indices` must have shape \(20,\), got \(19,\)"),
            (range(21), r"`indices` must have shape \(20,\), got \(21,\)"),
            (np.arange(20).reshape(2, 10), "`indices` must have shape"),
        ],
    )
    def test_the_ids_of_one_calibration_differ_over_all_batches(self, data, indices, message):
        x, y = data
        ours = classifier(alpha=0.2, n_samples=8)
        loader = [(x[:8], y[:8]), (x[8:20], y[8:20])]
        with pytest.raises(ValueError, match=message):
            ours.calibrate(loader, indices=indices)
        assert not hasattr(ours.rule, "tau_")

    def test_threads_that_predict_at_once_get_different_ids(self, data):
        ours = classifier(alpha=0.2, n_samples=8, seed=5).calibrate(*data)
        seen, gate = [], threading.Barrier(8)

        def recording(x):
            seen.append(x[:, 0].numpy().copy())
            return first_coordinates(x)

        class Slow(dict):
            def __getitem__(self, key):
                value = super().__getitem__(key)
                time.sleep(1e-5)  # others ask meanwhile
                return value

        ours.model = recording
        stream = ours._seeds._used[ours._seeds.seed]
        stream.next = Slow(stream.next)
        zeros = np.zeros((3, D), np.float32)

        def run(_):
            gate.wait()
            for _ in range(20):
                ours.predict(zeros, curtail=False)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, range(8)))
        expected = np.sort(self.draws(np.arange(8 * 20 * 3)), axis=None)
        np.testing.assert_array_equal(np.sort(np.concatenate(seen)), expected)


class Recalibrating:
    """A model that calibrates a rule anew while a prediction is under way."""

    def __init__(self, calibrate):
        self.calibrate = calibrate
        self.active = False

    def __call__(self, x):
        if self.active:
            self.calibrate()
        return first_coordinates(x)


@pytest.mark.parametrize("passes", [None, "auto"])
@pytest.mark.parametrize("curtail", [True, False])
@pytest.mark.parametrize("each_class", [False, True])
def test_a_prediction_keeps_to_the_rule_of_its_start(data, passes, curtail, each_class):
    """Boundaries of one calibration and a threshold of another have no guarantee."""
    x, y = data
    more = {"n_classes": K} if each_class else {}
    kind = bincp.MondrianBinCP if each_class else bincp.BinCP
    rule = kind(certificate(), alpha=0.2, passes=passes, **more)
    rng = np.random.default_rng(0)

    def calibrate_anew():
        labels = [y] if each_class else []
        rule.calibrate(rng.normal(9, 1, (200, 12)).astype(np.float32), *labels, n_test_samples=12)

    model = Recalibrating(calibrate_anew)
    ours = classifier(rule=rule, model=model, n_samples=8, batch_size=64).calibrate(x, y)
    expected = ours.predict(x, indices=range(200), curtail=curtail)
    before = copy.deepcopy(rule.tau_)
    model.active = True
    got = ours.predict(x, indices=range(200), curtail=curtail)
    assert np.all(rule.tau_ != before)
    assert rule.n_test_samples_ == 12
    for name in ("sets", "counts", "forward_passes"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))


def test_no_calibration_comes_between_two_attributes(data):
    """Each attribute is read while another thread has just calibrated."""
    x, y = data
    scores = np.random.default_rng(0).normal(9, 1, (200, 12)).astype(np.float32)

    class Restless(bincp.BinCP):
        read = 0
        limit = 0

        def __getattribute__(self, name):
            if name.endswith("_") and not name.startswith("_"):
                cls = type(self)
                cls.read += 1
                if cls.read == cls.limit:
                    shared.calibrate(scores, n_test_samples=12)
            return super().__getattribute__(name)

    shared = Restless(certificate(), alpha=0.2, passes="auto")
    ours = classifier(rule=shared, n_samples=8).calibrate(x, y)
    first = shared._rule
    Restless.read = 0
    expected = ours.predict(x, indices=range(200))
    reads = Restless.read
    assert reads > 3
    for Restless.limit in range(1, reads + 1):
        shared._rule, Restless.read = first, 0
        got = ours.predict(x, indices=range(200))
        assert shared._rule is not first
        np.testing.assert_array_equal(got.sets, expected.sets)


def test_flips_by_a_rule(data):
    """A ball that is not its own inverse: the rule of the inverted ball is another one."""
    scheme = SparseFlip(0.1, 0.3)
    rule = bincp.BinCP(bincp.certify(scheme, Flips(1, 0)))
    classifier(scheme, Flips(1, 0), rule=rule, n_samples=8)
    with pytest.raises(ValueError, match=r"whose ball is Flips\(additions=0, deletions=1\), got"):
        classifier(scheme, Flips(0, 1), rule=rule, n_samples=8)


def test_settings_of_the_short_form_are_typed_as_those_of_the_rule():
    """Type checkers and editors see the settings; the types must follow `BinCP`."""
    settings = typing.get_type_hints(RuleSettings)
    hints = typing.get_type_hints(bincp.BinCP.__init__)
    own = inspect.signature(bincp.BinCP).parameters.values()
    names = {parameter.name for parameter in own if parameter.kind is parameter.KEYWORD_ONLY}
    assert settings == {name: hints[name] for name in names}


# ---- threads --------------------------------------------------------------------------------

INPUTS = {
    "floats": (Gaussian(0.5), L2(0.1), lambda x: x),
    "grey levels": (
        Gaussian(0.25, grid=255),
        L2(0.1),
        lambda x: np.clip(np.rint(60 * x + 90), 0, 255).astype(np.uint8),
    ),
    "flips": (SparseFlip(0.1, 0.2), Flips(1, 0), lambda x: (x > 0.5).astype(np.float32)),
}


@pytest.fixture
def shared(monkeypatch):
    """Small arrays are shared by threads, too; the number of shares of each is recorded."""
    found = {"noise": [], "counting": []}
    for name, module, least in (
        ("noise", "bincp.noise._draw", "_THREAD_VALUES"),
        ("counting", "bincp.counting", "_THREAD_BYTES"),
    ):

        def counted(jobs, kept=found[name]):
            kept.append(len(jobs))
            return run_all(jobs)

        monkeypatch.setattr(f"{module}.{least}", 1)
        monkeypatch.setattr(f"{module}.run_all", counted)
    return found


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("passes", [None, "auto"])
@pytest.mark.parametrize("mondrian", [False, True], ids=["all classes", "each class"])
def test_no_result_depends_on_the_number_of_threads(data, shared, inputs, passes, mondrian):
    scheme, ball, made = INPUTS[inputs]
    x, y = made(data[0]), data[1]
    settings = {"alpha": 0.2, "passes": passes}
    results = []
    for n_threads in (1, 2, 3):
        if mondrian:
            rule = bincp.MondrianBinCP(certificate(scheme, ball), n_classes=K, **settings)
        else:
            rule = bincp.BinCP(certificate(scheme, ball), **settings)
        fitted = classifier(
            scheme, ball, rule=rule, n_samples=32, seed=4, batch_size=50, n_threads=n_threads
        ).calibrate(x, y)
        found = fitted.predict(x[:40])
        arrays = rule.tau_, rule.min_count_, found.sets, found.counts, found.forward_passes
        results.append([np.asarray(array).tolist() for array in arrays])
        assert max(shared["noise"]) == n_threads
    assert results[1] == results[0]
    assert results[2] == results[0]


@pytest.mark.parametrize("inputs", INPUTS)
def test_no_sampling_depends_on_the_number_of_threads(data, shared, inputs, tmp_path):
    scheme, _, made = INPUTS[inputs]
    x = made(data[0])[:50]
    options = {"phase": "test", "seed": 4, "batch_size": 50}
    results, files = [], []
    for n_threads in (1, 2, 3):
        options["n_threads"] = n_threads
        sampled = (
            sample_scores(first_coordinates, x, scheme, 16, **options),
            count_scores(first_coordinates, x, scheme, 16, 0.4, **options),
            vote_counts(first_coordinates, x, scheme, 16, **options),
        )
        results.append([one.tobytes() for one in sampled])
        path = tmp_path / str(n_threads)
        made_run = run(path, first_coordinates, x, scheme, 16, model_id="one", parts=3, **options)
        files.append({one.name: one.read_bytes() for one in path.iterdir()})
        assert max(shared["noise"]) == n_threads
        assert made_run.values().tobytes() == results[0][0]
    assert results[1] == results[2] == results[0]
    assert files[1] == files[2] == files[0]
    next(path.glob("00001*")).unlink()
    run(path, first_coordinates, x, scheme, 16, model_id="one", **options | {"n_threads": 2})
    assert {one.name: one.read_bytes() for one in path.iterdir()} == files[0]


def test_exact_probabilities_do_not_depend_on_the_number_of_threads(shared):
    x = np.arange(40, dtype=np.uint8).reshape(10, 4)
    scheme = SplittingNoise(0.25)
    results = []
    for n_threads in (1, 2):
        found = exact_probabilities(lambda x: x, x, scheme, tau=0.25, n_threads=n_threads)
        assert max(shared["noise"]) == n_threads
        results.append(found.tobytes())
    assert results[0] == results[1]


def test_a_compiled_function_without_a_signature_is_a_score(data):
    x, _ = data
    scores = sample_scores(first_coordinates, x, Gaussian(0.5), 2, phase="test", seed=1)
    ours = sample_scores(
        first_coordinates, x, Gaussian(0.5), 2, phase="test", seed=1, score=torch.sigmoid
    )
    assert ours.shape == scores.shape
    np.testing.assert_array_equal(ours.argmax(1), scores.argmax(1))


def test_exact_probabilities_have_no_random_score():
    x = np.zeros((1, 4), dtype=np.uint8)
    with pytest.raises(ValueError, match="`score` must not be random for exact probabilities"):
        exact_probabilities(lambda x: x, x, SplittingNoise(0.25), tau=0.25, score="aps")


def test_counting_in_calibration_is_shared(data, shared):
    x, y = data
    for n_threads in (1, 2, 3):
        classifier(alpha=0.2, tau=0.4, n_samples=32, n_threads=n_threads).calibrate(x, y)
        assert max(shared["counting"]) == n_threads


@pytest.mark.parametrize(("n_threads", "error"), [(0, ValueError), (1.5, TypeError)])
def test_a_number_of_threads_is_checked(n_threads, error):
    with pytest.raises(error, match="`n_threads` must be"):
        classifier(alpha=0.2, n_samples=8, n_threads=n_threads)
    zeros = np.zeros((3, D), np.float32)
    for function, tau in ((sample_scores, []), (count_scores, [0.5]), (vote_counts, [])):
        with pytest.raises(error, match="`n_threads` must be"):
            function(
                first_coordinates, zeros, Gaussian(0.5), 8, *tau, phase="test", n_threads=n_threads
            )


class Inside(bincp.BinCP):
    def calibrate(self, true_scores, *, n_classes=None, n_test_samples=None):
        return super().calibrate(true_scores, n_classes=n_classes, n_test_samples=n_test_samples)


class Outside:
    def __init__(self, *arguments, **settings):
        self.own = Inside(*arguments, **settings)

    def __getattr__(self, name):
        return getattr(self.own, name)


@pytest.mark.parametrize("kind", [Inside, Outside])
def test_a_rule_of_another_class_need_not_know_about_threads(data, kind):
    x, y = data
    rule = kind(certificate(), alpha=0.2)
    ours = classifier(rule=rule, n_samples=16, n_threads=2).calibrate(x, y).predict(x)
    theirs = classifier(alpha=0.2, n_samples=16).calibrate(x, y).predict(x)
    np.testing.assert_array_equal(ours.sets, theirs.sets)
