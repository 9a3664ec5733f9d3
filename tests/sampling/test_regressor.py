"""Robust sets of real labels from a model: sampling, ids, adapters, files, refusals."""

import copy
import json
import math
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bincp  # noqa: E402
from bincp.adapters import as_regressor  # noqa: E402
from bincp.balls import L1, L2, Flips  # noqa: E402
from bincp.calibration._storage import checksum  # noqa: E402
from bincp.certificates import compose  # noqa: E402
from bincp.metrics import average_width, coverage  # noqa: E402
from bincp.noise import draw  # noqa: E402
from bincp.regression import conformity_scores, predict_sets  # noqa: E402
from bincp.sampling import NormalizedModel, RobustClassifier, RobustRegressor  # noqa: E402
from bincp.sampling._run import _canonical  # noqa: E402
from bincp.smoothing import Gaussian, GraphFlip, SparseFlip, Uniform  # noqa: E402

D = 5


def mean(x):
    return x.mean(1)


def two(x):
    """A prediction and its spread, or two quantiles: numbers of the input alone."""
    return torch.stack([x[:, 0], x[:, 1].abs() + 1], dim=1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (150, D)).astype(np.float32)
    return x, (x.mean(1) + rng.normal(0, 0.3, 150)).astype(np.float64)


def regressor(model=mean, smoothing=None, ball=None, **options):
    options = {"n_samples": 16, "seed": 7, **options}
    if "rule" not in options:
        options = {"alpha": 0.2, **options}
    return RobustRegressor(model, smoothing or Gaussian(0.5), ball or L2(0.1), **options)


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("offsets", "left", "right")
    )


def test_arrays_are_decided_by_the_score_of_the_regressor_alone(data):
    """Quantiles and spreads have one shape, and a rule of the one says nothing about the other."""
    x, y = data
    taken = {"residual": (1, 16), "normalized": (1, 2, 16), "cqr": (1, 2, 16), "upper": (1, 16)}
    for own in ("cqr", "lower", "residual"):
        rule = regressor(two if own == "cqr" else mean, score=own).calibrate(x, y).rule
        for score, shape in taken.items():
            if score == own:
                assert len(predict_sets(rule, np.ones(shape, np.float32), score=score)) == 1
                continue
            wanted = rf"`score` must be that of .* {{'name': '{own}'}}, got '{score}'"
            with pytest.raises(ValueError, match=wanted):
                predict_sets(rule, np.ones(shape), score=score)
    classes = RobustClassifier(
        lambda z: z.double(), Gaussian(0.5), L2(0.1), alpha=0.2, n_samples=16, passes=None
    ).calibrate(x, np.zeros(150, int))
    with pytest.raises(ValueError, match=r"{'name': 'tps'}, got 'residual'"):
        predict_sets(classes.rule, np.ones((1, 16)))


@pytest.mark.parametrize("spread", [0.0, -1.0, math.inf])
def test_a_spread_that_is_none_is_named_by_its_input(data, spread):
    """Batches are scored one by one, and places in a batch would lead to another input."""
    x, y = data
    x = np.where(np.arange(150)[:, None] == 77, np.float32(1000), x)

    def model(noisy):
        far = noisy[:, 0] > 500
        return torch.stack([noisy[:, 0], torch.where(far, spread, torch.ones(()))], dim=1)

    wanted = (
        rf"`model` must give spreads .* finite, got {spread} for input 77( \(id 227\))?, draw 0$"
    )
    ours = regressor(model, score="normalized", batch_size=16)
    loader = [(x[i : i + 30], y[i : i + 30]) for i in range(0, 150, 30)]
    for given in ((x, y), (loader,)):
        with pytest.raises(ValueError, match=wanted):
            ours.calibrate(*given)
    ours.calibrate(x[:70], y[:70])
    with pytest.raises(ValueError, match=r"got .* for input 7( \(id \d+\))?, draw 0$"):
        ours.predict(x[70:])


@pytest.mark.parametrize("score", ["residual", "normalized", "cqr", "lower", "upper"])
def test_it_is_sampling_and_the_functions_on_arrays(data, score):
    x, y = data
    model = mean if score in ("residual", "lower", "upper") else two
    ours = regressor(model, score=score).calibrate(x[:100], y[:100])

    def predictions(inputs, phase):
        noisy = draw(Gaussian(0.5), inputs, 16, seed=7, phase=phase)  # (n, m, D)
        columns = [model(torch.from_numpy(noisy[:, i])).numpy() for i in range(16)]
        return np.stack(columns, axis=-1)

    scores = conformity_scores(predictions(x[:100], "calibration"), y[:100], score=score)
    rule = bincp.BinCP(ours.certificate, alpha=0.2).calibrate(scores)
    assert (ours.rule.tau_, ours.rule.min_count_) == (rule.tau_, rule.min_count_)
    assert ours.rule.dtype_ == "float64"
    wanted = predict_sets(rule, predictions(x[100:], "test"), score=score)
    assert same(ours.predict(x[100:]), wanted)


@pytest.mark.parametrize(
    "settings",
    [
        {"tau": -0.8},
        {"p": 0.7},
        {"guarantee": ("training-conditional", 0.1)},
        {"correction": "clopper-pearson", "union": "two-bounds", "n_samples": 256},
        {"correction": "none"},
        {"n_samples": 64, "n_test_samples": 8},
    ],
    ids=str,
)
def test_every_kind_of_rule_decides_about_real_labels(data, settings):
    x, y = data
    ours = regressor(ball=L2(0.05), **settings).calibrate(x[:100], y[:100])
    sets = ours.predict(x[100:])
    assert coverage(sets, y[100:]) > 0.6  # three standard errors of 50 points below 0.8
    assert np.isfinite(average_width(sets))


def test_each_call_has_new_noise_and_equal_ids_have_equal_noise(data):
    x, y = data
    ours = regressor().calibrate(x[:100], y[:100])
    first, second = ours.predict(x[100:]), ours.predict(x[100:])
    assert not same(first, second)
    ids = np.arange(50) + 10**6
    assert same(ours.predict(x[100:], indices=ids), ours.predict(x[100:], indices=ids))


def test_a_loader_is_its_batches(data):
    x, y = data
    ours = regressor().calibrate(x[:100], y[:100])
    batches = [(x[:30], y[:30]), (x[30:100], y[30:100])]
    assert regressor().calibrate(batches).rule.tau_ == ours.rule.tau_
    ids = np.arange(100)
    other = regressor().calibrate(iter(batches), indices=ids)
    assert other.rule.tau_ == ours.rule.tau_


def test_seeds_are_secret_unless_given(data):
    x, y = data
    taus = {regressor(seed=None).calibrate(x, y).rule.tau_ for _ in range(4)}
    assert len(taus) > 1
    assert regressor().calibrate(x, y).rule.tau_ == regressor().calibrate(x, y).rule.tau_


def test_threads_get_sets_of_different_noise(data):
    x, y = data
    ours = regressor().calibrate(x[:100], y[:100])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ours.predict(x[100:110]).left.tobytes(), range(12)))
    assert len(set(found)) == 12


def test_an_attack_that_breaks_plain_sets_does_not_break_robust_ones():
    # In one dimension the bound is attained: y = x, and the attack moves x by r.
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2500, 1)).astype(np.float32)
    y, r = x[:, 0].astype(np.float64), 0.5
    shares = []
    for radius in (0.0, r):
        ours = regressor(mean, Gaussian(0.5), L2(radius), score="lower", alpha=0.1, n_samples=32)
        sets = ours.calibrate(x[:500], y[:500]).predict(x[500:] + np.float32(r))
        shares.append(coverage(sets, y[500:]))
    # Four standard errors of the calibration set and of the test points together are below 0.06.
    assert shares[0] < 0.6
    assert shares[1] > 0.84


def test_the_arguments_are_read_changed_and_cloned(data):
    x, y = data
    ours = regressor(score="residual").calibrate(x, y)
    params = ours.get_params(deep=False)
    assert (params["score"], params["alpha"], params["passes"]) == ("residual", 0.2, None)
    clone = pytest.importorskip("sklearn.base").clone(ours)
    assert clone.get_params(deep=False) == params
    with pytest.raises(bincp.NotCalibratedError):
        clone.predict(x)
    clone.reseed(8).calibrate(x, y)
    ours.set_params(alpha=0.1)
    with pytest.raises(bincp.NotCalibratedError):
        ours.predict(x)
    assert ours.calibrate(x, y).rule.tau_ < clone.rule.tau_


# ---- models ----------------------------------------------------------------------------------


def test_a_module_keeps_its_mode_and_is_evaluated_without_dropout(data):
    x, y = data
    layers = torch.nn.Linear(D, 1), torch.nn.Dropout(0.5)
    module = torch.nn.Sequential(*layers)
    module.train()
    ours = regressor(module).calibrate(x, y)
    assert module.training
    assert layers[1].training
    plain = regressor(layers[0]).calibrate(x, y)
    assert ours.rule.tau_ == plain.rule.tau_


def test_scikit_learn_regressors_and_pairs_of_quantiles(data):
    ensemble = pytest.importorskip("sklearn.ensemble")
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = (part.astype(np.float64) for part in data)
    one = linear.LinearRegression().fit(x[:60], y[:60])
    sets = regressor(one).calibrate(x[60:120], y[60:120]).predict(x[120:])
    assert np.isfinite(average_width(sets))
    pair = [
        ensemble.GradientBoostingRegressor(loss="quantile", alpha=a, n_estimators=20).fit(
            x[:60], y[:60]
        )
        for a in (0.2, 0.8)
    ]
    ours = regressor(pair, score="cqr").calibrate(x[60:120], y[60:120])
    assert np.isfinite(average_width(ours.predict(x[120:])))
    columns = as_regressor(pair)(torch.from_numpy(x[:3]))
    np.testing.assert_array_equal(columns.numpy(), np.stack([e.predict(x[:3]) for e in pair], 1))


def test_parts_of_different_libraries_stand_side_by_side():
    linear = pytest.importorskip("sklearn.linear_model")
    x = np.random.default_rng(0).normal(size=(20, D))
    estimator = linear.LinearRegression().fit(x, x[:, 0])
    module = torch.nn.Linear(D, 1).double()
    model = as_regressor((estimator, module))
    found = model(torch.from_numpy(x)).detach()
    assert found.shape == (20, 2)
    np.testing.assert_allclose(found[:, 0], estimator.predict(x))
    assert list(model.parameters()) == list(module.parameters())


def test_functions_of_arrays(data):
    x, y = data
    model = as_regressor(lambda rows: rows.mean(1), arrays=True)
    ours, plain = regressor(model).calibrate(x, y), regressor().calibrate(x, y)
    assert ours.rule.tau_ == pytest.approx(plain.rule.tau_, abs=1e-6)
    assert as_regressor(lambda rows: np.ones(len(rows), int), arrays=True)(
        torch.zeros(2, 1)
    ).tolist() == [[1], [1]]


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">f4", "<f4", ">i2", "<u8"])
def test_functions_may_return_either_byte_order(dtype):
    rows = np.arange(12.0).reshape(4, 3)
    for returned in (lambda x: x.astype(dtype), lambda x: x.astype(dtype)[::-1, ::-1]):
        found = as_regressor(returned, arrays=True)(torch.from_numpy(rows))
        np.testing.assert_array_equal(found.numpy(), returned(rows).astype(float))


def test_a_model_in_place_does_not_change_what_the_next_one_sees():
    """The second of a pair saw max(x, 0)."""
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    first = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(3, 1))

    def in_place(rows):
        rows *= 3
        return rows[:, 0]

    pairs = {
        (first, lambda x: x[:, 1]): False,
        (lambda x: x.mul_(2)[:, 0], lambda x: x[:, 1]): False,
        (in_place, lambda x: x[:, 1]): True,
    }
    for pair, arrays in pairs.items():
        found = as_regressor(pair, arrays=arrays)(x.clone())
        alone = [as_regressor(one, arrays=arrays)(x.clone())[:, 0] for one in pair]
        assert torch.equal(found, torch.stack(alone, dim=1))
        assert torch.equal(found[:, 1], x[:, 1])


class Classifier:
    classes_ = np.array([0, 1])

    def predict(self, x):
        return np.zeros(len(x))


@pytest.mark.parametrize(
    ("estimator", "options", "error", "message"),
    [
        (Classifier(), {}, ValueError, "must be a regressor, got the classifier Classifier"),
        (3, {}, TypeError, "must be a torch module or a callable"),
        (torch.nn.Linear, {}, TypeError, "must be a torch module or a callable"),
        ([], {}, TypeError, "must be a regressor, or several, got none"),
        (3, {"arrays": True}, TypeError, "must be callable with arrays=True"),
        (mean, {"arrays": 1}, TypeError, "`arrays` must be a bool"),
    ],
)
def test_what_is_no_regressor(estimator, options, error, message):
    with pytest.raises(error, match=message):
        as_regressor(estimator, **options)


@pytest.mark.parametrize(
    ("model", "arrays", "error", "message"),
    [
        (lambda x: x[:1, 0], False, ValueError, r"shape \(4,\) or \(4, q\).*got shape \(1,\)"),
        (lambda x: x[:, :0], False, ValueError, r"got shape \(4, 0\)"),
        (
            lambda x: x[:, 0].long(),
            False,
            ValueError,
            "floating-point predictions, got torch.int64",
        ),
        (lambda _: 1.0, False, TypeError, "a tensor of predictions, got float"),
        (lambda x: x[:, 0].tolist(), True, TypeError, "must return an array, got list"),
        (lambda x: np.ma.masked_less(x[:, 0], 1), True, TypeError, "plain array.* got MaskedArray"),
        (lambda x: x[:, 0] > 0, True, TypeError, "an array of real numbers, got bool"),
    ],
)
def test_what_a_model_may_not_return(model, arrays, error, message):
    with pytest.raises(error, match=message):
        as_regressor(model, arrays=arrays)(torch.zeros(4, D))


# ---- files -----------------------------------------------------------------------------------


NAMED = {"model_id": "two 1"}


def test_a_saved_regressor_predicts_as_before(data, tmp_path):
    x, y = data
    path = tmp_path / "regressor.json"
    ours = regressor(two, score="cqr", input_range=(-9, 9), **NAMED).calibrate(x[:100], y[:100])
    ours.save(path)
    loaded = RobustRegressor.load(path, two, seed=7, **NAMED)
    assert (loaded.score, loaded.smoothing, loaded.ball) == ("cqr", Gaussian(0.5), L2(0.1))
    assert (loaded.n_samples, loaded.n_test_samples) == (16, 16)
    assert loaded.rule.provenance_ == ours.rule.provenance_
    assert same(ours.predict(x[100:]), loaded.predict(x[100:]))
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    for inputs, message in (
        (x.astype(np.float64), "dtype float32 as in calibration, got float64"),
        (x + 10, r"declared input_range \(-9, 9\)"),
        (x[:, :4], r"inputs of shape \(5,\) as in calibration"),
    ):
        with pytest.raises(ValueError, match=message):
            loaded.predict(inputs)


def test_a_model_that_is_made_already_is_the_same_model(data, tmp_path):
    x, y = data
    torch.manual_seed(0)
    pair = [torch.nn.Linear(D, 1), torch.nn.Linear(D, 1)]
    ours = regressor(pair, score="cqr").calibrate(x, y)
    ours.save(tmp_path / "a.json")
    made = as_regressor(pair)
    for model in (ours.model, made, as_regressor(made), [as_regressor(one) for one in pair]):
        loaded = RobustRegressor.load(tmp_path / "a.json", model, seed=7)
        assert same(loaded.predict(x[:5]), ours.predict(x[:5], indices=range(5)))
        regressor(model, score="cqr", rule=ours.rule)
    with pytest.raises(ValueError, match="as in calibration: `model` was"):
        regressor(as_regressor(made.models[::-1]), score="cqr", rule=ours.rule)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        as_regressor,
        lambda model: as_regressor(as_regressor(model)),
        lambda model: NormalizedModel(as_regressor(model), 0, 1),
    ],
)
def test_a_function_has_no_fingerprint_wherever_it_is(data, tmp_path, wrap):
    """Else all functions would have that of the module around them."""
    ours = regressor(wrap(mean)).calibrate(*data)
    assert ours.rule.provenance_["model"] == {"fingerprint": None, "id": None}
    with pytest.raises(ValueError, match="`model_id` must name a model that is no torch module"):
        ours.save(tmp_path / "a.json")


def test_another_model_than_that_of_the_file_is_refused(data, tmp_path):
    x, y = data
    path = tmp_path / "regressor.json"
    torch.manual_seed(0)
    net, other = torch.nn.Linear(D, 1), torch.nn.Linear(D, 1)
    regressor([net, other], score="cqr").calibrate(x, y).save(path)
    RobustRegressor.load(path, [net, other]).predict(x)
    for wrong in ([other, net], [net, net], net, torch.nn.Linear(D, 2)):
        with pytest.raises(ValueError, match="as in calibration: `model` was"):
            RobustRegressor.load(path, wrong)
    with pytest.raises(ValueError, match="`model` must be a torch module, as it was saved"):
        RobustRegressor.load(path, [net, mean])
    named = [net, lambda x: other(x)]
    RobustRegressor.load(path, named, check_fingerprint=False).predict(x)
    with pytest.raises(ValueError, match="must give the predictions that it gave"):
        RobustRegressor.load(path, [net, mean], check_fingerprint=False)
    with pytest.raises(ValueError, match="`model_id` must name a model that is no torch module"):
        regressor([net, mean], score="cqr").calibrate(x, y).save(path)
    regressor(mean, model_id="mean 1").calibrate(x, y).save(path)
    with pytest.raises(ValueError, match="`model_id` must be 'mean 1', as it was saved, got None"):
        RobustRegressor.load(path, mean)
    with pytest.raises(ValueError, match=r"`model` was .*'mean 1'.*, got .*'mean 2'"):
        RobustRegressor.load(path, mean, model_id="mean 2")
    with pytest.raises(ValueError, match=r"must give the predictions|must return 1 numbers"):
        RobustRegressor.load(path, two, model_id="mean 1")


def test_a_rule_of_another_score_model_or_precision_is_refused(data):
    x, y = data
    torch.manual_seed(0)
    net = torch.nn.Linear(D, 1)
    rule = regressor(net).calibrate(x, y).rule
    for options, message in (
        ({"score": "lower"}, "`score` was .*residual.*, got .*lower"),
        ({"model": torch.nn.Linear(D, 1)}, "`model` was"),
    ):
        with pytest.raises(
            ValueError, match=f"the regressor must be as in calibration: .*{message}"
        ):
            regressor(**{"model": net, "rule": rule, **options})
    theirs = regressor(net, rule=rule)
    with (
        torch.autocast("cpu", torch.bfloat16),
        pytest.raises(ValueError, match="`precision` was"),
    ):
        theirs.predict(x)
    theirs.model = as_regressor(torch.nn.Linear(D, 1))
    with pytest.raises(ValueError, match="`model` was"):
        theirs.predict(x)


def test_damaged_and_foreign_files_are_refused(data, tmp_path):
    path = tmp_path / "regressor.json"
    ours = regressor(**NAMED).calibrate(*data)
    ours.save(path)
    whole = path.read_bytes()
    for bit in np.random.default_rng(0).choice(8 * len(whole), 100, replace=False).tolist():
        other = bytearray(whole)
        other[bit // 8] ^= 1 << bit % 8
        path.write_bytes(other)
        with pytest.raises(ValueError, match=r"regressor\.json: damaged"):
            RobustRegressor.load(path, mean, **NAMED)
    ours.rule.save(path)
    with pytest.raises(ValueError, match=r"regressor\.json: damaged"):
        RobustRegressor.load(path, mean)
    ours.save(path)
    with pytest.raises(ValueError, match=r"must be a file that BinCP\.save"):
        bincp.BinCP.load(path)
    with pytest.raises(ValueError, match="must be a bincp robust classifier of version 1, got"):
        RobustClassifier.load(path, torch.nn.Linear(D, 2))


WRONG = (None, True, 0, -1, 3.5, "", "x", [], [1], {}, {"type": "L2"}, "0x1.0p+0")


def forge(path, content):
    """Write a file whose checksums are right, as whoever edits it can make them."""
    rule = {name: value for name, value in content["rule"].items() if name != "sha256"}
    content = {**content, "rule": {**rule, "sha256": checksum(rule)}}
    path.write_bytes(_canonical.encode(content))


def test_no_change_of_a_value_passes_or_crashes(data, tmp_path):
    path = tmp_path / "regressor.json"
    regressor(**NAMED).calibrate(*data).save(path)
    content = json.loads(path.read_bytes())
    del content["sha256"]

    def refused(changed):
        forge(path, changed)
        with pytest.raises(ValueError, match=r"regressor\.json"):
            RobustRegressor.load(path, mean, **NAMED)

    for key, value in content.items():
        for wrong in WRONG:
            if wrong != value and key not in ("made_by", "rule"):
                refused({**content, key: wrong})
    refused({**content, "more": 1})
    for part in ("smoothing", "ball"):
        for wrong in WRONG:  # a rule for noise or a ball that bincp does not know
            certificate = {**content["rule"]["certificate"], part: wrong}
            refused({**content, "rule": {**content["rule"], "certificate": certificate}})
    for name in ("score", "model", "input_shape", "input_dtype", "input_range"):
        for wrong in WRONG:
            if wrong != content["rule"]["provenance"][name]:
                provenance = {**content["rule"]["provenance"], name: wrong}
                forge(path, {**content, "rule": {**content["rule"], "provenance": provenance}})
                with pytest.raises(ValueError):
                    RobustRegressor.load(path, mean, **NAMED)


def test_a_certificate_that_is_made_of_others_is_refused(data, tmp_path):
    path = tmp_path / "regressor.json"
    regressor(**NAMED).calibrate(*data).save(path)
    content = json.loads(path.read_bytes())
    del content["sha256"]
    step = bincp.certify(Gaussian(0.5), L2(0.05))
    content["rule"]["certificate"] = compose(step, step).describe()
    forge(path, content)
    with pytest.raises(ValueError, match=r"regressor\.json: must have a certificate that bincp"):
        RobustRegressor.load(path, mean, **NAMED)


# ---- noise of its own ------------------------------------------------------------------------


class Recorder:
    """A model that keeps the noise that inputs of zeros get."""

    def __init__(self):
        self.rows = []

    def __call__(self, x):
        self.rows.append(x[:, 0].numpy().copy())
        return x.mean(1)

    def taken(self):
        rows, self.rows = np.concatenate(self.rows), []
        return rows


def recorded(**options):
    model = Recorder()
    ours = regressor(model, **options).calibrate(ZEROS, np.linspace(0, 1, len(ZEROS)))
    model.taken()
    return ours, model


ZEROS = np.zeros((40, D), np.float32)
COPIES = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]


@pytest.mark.parametrize("copied", COPIES)
def test_copies_have_noise_of_their_own_or_refuse(copied):
    free, _ = recorded(seed=None)
    other = copied(free)
    rows = [shown(one, 3) for one in (free, other, free, other)]
    assert len(np.unique(np.concatenate(rows))) == 4 * 3 * 16
    ours, _ = recorded(seed=5)
    ours.predict(ZEROS[:3])
    stale = copied(ours)
    for call in (stale.predict, stale.predict_iter):
        with pytest.raises(RuntimeError, match="regressor with `seed` must not draw in a copy"):
            call(ZEROS)
    with pytest.raises(RuntimeError, match=r"call reseed\(\)"):
        copied(stale).predict(ZEROS)
    np.testing.assert_array_equal(shown(stale.reseed(5, first_id=100), 2), noise([100, 101]))
    np.testing.assert_array_equal(shown(ours, 2), noise([3, 4]))


def shown(ours, n):
    """Return the noise of a prediction for n inputs of zeros."""
    recorder = ours.model.models[0]
    recorder.rows = []
    ours.predict(ZEROS[:n])
    return recorder.taken()


def noise(ids, seed=5):
    """Return the first coordinates of the noise of test inputs of zeros."""
    zeros = np.zeros((len(ids), D), np.float32)
    return draw(Gaussian(0.5), zeros, 16, phase="test", indices=ids, seed=seed)[:, :, 0].ravel()


def test_a_clone_has_noise_of_its_own_unless_a_seed_is_given():
    clone = pytest.importorskip("sklearn.base").clone
    ours, model = recorded(seed=None)
    other = clone(ours).calibrate(ZEROS, np.linspace(0, 1, len(ZEROS)))
    model.taken()
    for one in (ours, other):
        one.predict(ZEROS[:3])
    assert len(np.unique(model.taken())) == 2 * 3 * 16
    seeded, _ = recorded(seed=5)
    other = clone(seeded)
    with pytest.raises(bincp.NotCalibratedError):
        other.predict(ZEROS)
    with pytest.raises(RuntimeError, match="must not draw in a copy or clone"):
        other.calibrate(ZEROS, np.linspace(0, 1, len(ZEROS)))


def test_a_change_of_parameters_hands_out_no_id_twice():
    ours, model = recorded(seed=5)
    ours.predict(ZEROS[:3])
    ours.set_params(alpha="0.3").calibrate(ZEROS, np.linspace(0, 1, len(ZEROS)))
    model.taken()
    ours.predict(ZEROS[:2])
    np.testing.assert_array_equal(model.taken(), noise([3, 4]))


def refusal(call):
    """Return how the message of a RuntimeError begins, None where there is none."""
    try:
        call()
    except RuntimeError as error:
        return str(error).partition(" must ")[0]


SECOND = {None: None, 5: "a regressor with `seed`"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("seed", [None, 5])
def test_a_forked_process_never_draws_the_noise_of_its_parent(seed):
    ours, model = recorded(seed=seed)
    stream = ours.predict_iter(iter([ZEROS[:2]] * 3))
    next(stream)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            model.taken()
            refused = [refusal(lambda: next(stream)), refusal(lambda: ours.predict(ZEROS[:2]))]
            if refused == ["an iteration that was begun before a fork", SECOND[seed]]:
                ours.reseed().predict(ZEROS[:2])
                os.write(writer, model.taken()[-32:].tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as stream_of_child:
        theirs = np.frombuffer(stream_of_child.read(), np.float32)
    assert theirs.size == 32
    next(stream)
    ours.predict(ZEROS[:2])
    assert not np.isin(theirs, model.taken()).any()


def test_threads_with_streams_get_ids_of_their_own():
    ours, model = recorded(seed=5)
    gate = threading.Barrier(4)

    def run(_):
        gate.wait()
        return [len(sets) for sets in ours.predict_iter(iter([ZEROS[:3]] * 5))]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [[3] * 5] * 4
    expected = np.sort(noise(range(4 * 5 * 3)))
    np.testing.assert_array_equal(np.sort(model.taken()), expected)


def test_streams_and_arrays_have_the_same_sets(data):
    x, y = data

    def fitted():
        return regressor(seed=5, batch_size=16).calibrate(x[:100], y[:100])

    whole = fitted().predict(x[100:])
    pairs = torch.utils.data.TensorDataset(torch.from_numpy(x[100:]), torch.from_numpy(y[100:]))
    for source, options in (
        ([(x[100:107], y[100:107]), (x[107:], y[107:])], {}),
        (pairs, {}),
        (torch.utils.data.DataLoader(pairs, batch_size=9), {}),
        (({"x": part} for part in (x[100:120], x[120:])), {"key": "x"}),
    ):
        assert same(fitted().predict(source, **options), whole)
    parts = list(fitted().predict_iter(x[100:]))
    assert [len(part) for part in parts] == [16, 16, 16, 2]
    assert [part.tolist() for sets in parts for part in sets] == [p.tolist() for p in whole]
    by_items = regressor(seed=5).calibrate(
        torch.utils.data.TensorDataset(torch.from_numpy(x[:100]), torch.from_numpy(y[:100]))
    )
    assert by_items.rule.tau_ == fitted().rule.tau_
    hulls = [len(sets) for sets in fitted().predict_iter(x[100:], hulls=True)]
    assert hulls == [16, 16, 16, 2]


def test_a_seed_is_written_on_request_only(data, tmp_path):
    x, _ = data
    ours = regressor(seed=987654321, **NAMED).calibrate(*data)
    ours.save(tmp_path / "a.json")
    assert "987654321" not in (tmp_path / "a.json").read_text()
    ours.predict(x[:7])
    ours.save(tmp_path / "b.json", with_seed=True)
    later = ours.predict(x[:7])
    with pytest.raises(ValueError, match=r"holds a seed: give first_id= .*at least 150"):
        RobustRegressor.load(tmp_path / "b.json", mean, **NAMED)
    loaded = RobustRegressor.load(tmp_path / "b.json", mean, first_id=150, **NAMED)
    assert not same(loaded.predict(x[:7]), later)
    assert same(loaded.predict(x[:7]), ours.reseed(987654321, first_id=157).predict(x[:7]))


def test_a_given_rule_is_checked(data):
    x, y = data
    ours = regressor().calibrate(x, y)
    assert same(
        regressor(rule=ours.rule, n_samples=None).predict(x[:5], indices=range(5)),
        ours.predict(x[:5], indices=range(5)),
    )
    certificate = bincp.certify(Gaussian(0.5), L2(0.1))
    narrow = bincp.BinCP(certificate).calibrate(
        np.linspace(0, 1, 200, dtype=np.float32).reshape(50, 4)
    )
    cases = [
        ({"rule": bincp.MondrianBinCP(certificate, n_classes=2)}, TypeError, "must be a BinCP"),
        ({"rule": narrow}, ValueError, "got scores of dtype float32"),
        ({"rule": bincp.BinCP(certificate, passes="auto")}, ValueError, "must count all m' draws"),
        ({"passes": 3}, ValueError, "must count all m' draws"),
        ({"correction": "clopper-pearson"}, ValueError, "infinitely many real labels"),
        ({"rule": ours.rule, "ball": L2(0.2)}, ValueError, "whose ball is L2"),
        ({"rule": ours.rule, "n_test_samples": 3}, ValueError, "must be the m' = 16"),
        ({"rule": bincp.BinCP(certificate), "n_samples": None}, TypeError, "`n_samples` must be"),
        ({"score": "cqr2"}, ValueError, "`score` must be one of"),
    ]
    for options, error, message in cases:
        with pytest.raises(error, match=message):
            regressor(**options)
    with pytest.raises(TypeError, match="without settings of a rule, got alpha, too"):
        regressor(rule=ours.rule, alpha=0.1)
    with pytest.raises(TypeError, match="`alpha` must be given where `rule` is not"):
        RobustRegressor(mean, Gaussian(0.5), L2(0.1), n_samples=3)


class Items:
    """A dataset."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_schemes_of_graphs_are_refused():
    with pytest.raises(TypeError, match="`smoothing` must not be a scheme of graphs"):
        regressor(smoothing=GraphFlip(9, D, attributes=SparseFlip(0.01, 0.6)), ball=Flips(1, 1))


def test_it_shows_its_rule_and_takes_another(data):
    x, y = data
    ours, other = regressor().calibrate(x, y), regressor().calibrate(x[:80], y[:80])
    assert repr(ours) == (
        f"RobustRegressor({ours.smoothing!r}, {ours.ball!r}, score='residual', rule={ours.rule!r})"
    )
    ours.rule = other.rule
    assert (ours.rule.tau_, ours.rule.n_calibration_) == (other.rule.tau_, 80)


def test_bad_calls_are_refused(data):
    x, y = data
    ours = regressor()
    with pytest.raises(bincp.NotCalibratedError, match=r"call calibrate\(\) before predict"):
        ours.predict(x)
    with pytest.raises(bincp.NotCalibratedError):
        ours.save("never")
    cases = [
        ((x, np.full(150, np.nan)), {}, ValueError, "`y` must be finite, got nan"),
        ((x, y[:9]), {}, ValueError, r"`y` must have shape \(150,\), got \(9,\)"),
        ((x,), {}, TypeError, "`y` must be given with an array"),
        (([],), {}, ValueError, "at least one input"),
        ((x, y), {"model": two}, ValueError, "must return 1 numbers an input for the score 'res"),
        ((iter([]),), {}, ValueError, "at least one calibration input"),
        (([(x,)],), {}, ValueError, "must yield pairs"),
        (([(x, y[:9])],), {}, ValueError, "one label for each input of a batch"),
        ((Items([(x[0], [1.0])]),), {}, ValueError, r"`y` must be one number an input"),
        (([(x, y)],), {"indices": range(151)}, ValueError, r"`indices` must have shape \(150,\)"),
        ((x, y), {"indices": [0] * 150}, ValueError, "indices"),
    ]
    for arguments, options, error, message in cases:
        own = regressor(options.pop("model")) if "model" in options else ours
        with pytest.raises(error, match=message):
            own.calibrate(*arguments, **options)
    with pytest.raises(ValueError, match="must yield inputs of one shape and dtype"):
        ours.calibrate([(x, y), (x.astype(np.float64), y)])
    widths = iter([torch.float32] * 10 + [torch.float64] * 99)
    changing = regressor(lambda rows: rows.mean(1).to(next(widths)))
    with pytest.raises(ValueError, match="dtype float32 as before, got float64"):
        changing.calibrate([(x, y), (x, y)])
    ours.calibrate(x, y)
    with pytest.raises(ValueError, match="`x` must hold at least one input"):
        ours.predict(iter([]))
    with pytest.raises(ValueError, match="`model` must not give NaN"):
        regressor(lambda rows: rows.mean(1) * np.nan).calibrate(x, y)
    with pytest.raises(ValueError, match="must have 9 elements an input"):
        regressor(ball=L1(0.1, 9), smoothing=Uniform(0.5)).calibrate(x, y)
    with pytest.raises(TypeError, match="`hulls` must be a bool"):
        ours.predict(x, hulls="no")
