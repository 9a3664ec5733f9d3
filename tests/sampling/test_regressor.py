"""Robust sets of real labels from a model: sampling, ids, adapters, files, refusals."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bincp  # noqa: E402
from bincp.adapters import as_regressor  # noqa: E402
from bincp.balls import L1, L2  # noqa: E402
from bincp.calibration._storage import checksum  # noqa: E402
from bincp.certificates import compose  # noqa: E402
from bincp.metrics import average_width, coverage  # noqa: E402
from bincp.noise import draw  # noqa: E402
from bincp.regression import conformity_scores, predict_sets  # noqa: E402
from bincp.sampling import RobustRegressor  # noqa: E402
from bincp.smoothing import Gaussian, Uniform  # noqa: E402

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
        (lambda x: x[:, 0].tolist(), True, TypeError, "an array of real numbers, got list"),
        (lambda x: x[:, 0] > 0, True, TypeError, "an array of real numbers, got bool"),
    ],
)
def test_what_a_model_may_not_return(model, arrays, error, message):
    with pytest.raises(error, match=message):
        as_regressor(model, arrays=arrays)(torch.zeros(4, D))


# ---- files -----------------------------------------------------------------------------------


def test_a_saved_regressor_predicts_as_before(data, tmp_path):
    x, y = data
    ours = regressor(two, score="cqr").calibrate(x[:100], y[:100])
    ours.save(tmp_path / "regressor.json")
    loaded = RobustRegressor.load(tmp_path / "regressor.json", two, seed=7)
    assert (loaded.score, loaded.smoothing, loaded.ball) == ("cqr", Gaussian(0.5), L2(0.1))
    assert (loaded.n_samples, loaded.n_test_samples) == (16, 16)
    assert same(ours.predict(x[100:]), loaded.predict(x[100:]))
    with pytest.raises(ValueError, match="dtype float32 as in calibration, got float64"):
        loaded.predict(x[100:].astype(np.float64))
    with pytest.raises(ValueError, match=r"must return 2 numbers.*lower quantile.*got 1"):
        RobustRegressor.load(tmp_path / "regressor.json", mean).predict(x)


def test_other_noise_than_that_of_the_file_is_refused(data, tmp_path):
    regressor().calibrate(*data).save(tmp_path / "regressor.json")
    for options in ({"smoothing": Gaussian(0.25)}, {"ball": L2(0.2)}):
        with pytest.raises(ValueError, match="must have the certificate of the classifier"):
            RobustRegressor.load(tmp_path / "regressor.json", mean, **options)


def test_damaged_and_foreign_files_are_refused(data, tmp_path):
    path = tmp_path / "regressor.json"
    ours = regressor().calibrate(*data)
    ours.save(path)
    content = json.loads(path.read_text())

    def refused(changed, message, *, seal=True):
        changed = {name: value for name, value in changed.items() if name != "sha256"}
        own = checksum(changed) if seal else content["sha256"]
        path.write_text(json.dumps({**changed, "sha256": own}))
        with pytest.raises(ValueError, match=message):
            RobustRegressor.load(path, mean)

    refused({**content, "score": "cqr"}, "damaged, the content does not have", seal=False)
    refused({**content, "score": "other"}, "damaged, `score` must be one of")
    refused({**content, "dtype": "float16"}, "damaged, `dtype`: 'float16'")
    refused({**content, "version": 2}, "version must be 1, got 2")
    refused({**content, "more": 1}, "damaged, 'more' is no field")
    refused({**content, "rule": []}, "damaged, `rule` is not an object")
    refused({**content, "rule": {**content["rule"], "tau_": (0.0).hex()}}, "checksum in `sha256`")
    ours.rule.save(path)
    with pytest.raises(ValueError, match=r"a file that RobustRegressor\.save wrote"):
        RobustRegressor.load(path, mean)
    ours.save(path)
    with pytest.raises(ValueError, match=r"must be a file that BinCP\.save"):
        bincp.BinCP.load(path)


WRONG = (None, True, 0, -1, 3.5, "", "x", [], [1], {}, {"type": "L2"}, "0x1.0p+0")


def test_no_change_of_a_value_passes_or_crashes(data, tmp_path):
    path = tmp_path / "regressor.json"
    regressor().calibrate(*data).save(path)
    content = json.loads(path.read_text())

    def refused(changed):
        changed = {name: value for name, value in changed.items() if name != "sha256"}
        path.write_text(json.dumps({**changed, "sha256": checksum(changed)}))
        with pytest.raises(ValueError, match=r"regressor\.json"):
            RobustRegressor.load(path, mean)

    for key, value in content.items():
        for wrong in WRONG:
            if wrong != value and key != "sha256" and (key, wrong) != ("dtype", None):
                refused({**content, key: wrong})
    for part in ("smoothing", "ball"):
        for wrong in WRONG:  # a rule for noise or a ball that bincp does not know
            rule = {name: value for name, value in content["rule"].items() if name != "sha256"}
            rule["certificate"] = {**rule["certificate"], part: wrong}
            refused({**content, "rule": {**rule, "sha256": checksum(rule)}})


def test_a_certificate_that_is_made_of_others_names_no_noise(data, tmp_path):
    path = tmp_path / "regressor.json"
    regressor().calibrate(*data).save(path)
    content = json.loads(path.read_text())
    step = bincp.certify(Gaussian(0.5), L2(0.05))
    rule = {**content["rule"], "certificate": compose(step, step).describe()}
    for part in (rule, content):
        del part["sha256"]
    content["rule"] = {**rule, "sha256": checksum(rule)}
    path.write_text(json.dumps({**content, "sha256": checksum(content)}))
    with pytest.raises(ValueError, match=r"regressor\.json: `smoothing` and `ball` must be given"):
        RobustRegressor.load(path, mean)


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
        (([],), {}, ValueError, "at least one calibration input"),
        (([(x,)],), {}, ValueError, "must yield pairs"),
        (([(x, y)],), {"indices": range(151)}, ValueError, r"`indices` must have shape \(150,\)"),
        ((x, y), {"indices": [0] * 150}, ValueError, "indices"),
    ]
    for arguments, options, error, message in cases:
        with pytest.raises(error, match=message):
            ours.calibrate(*arguments, **options)
    mixed = [(x, y), (x.astype(np.float64), y)]
    with pytest.raises(ValueError, match="one dtype, got float32 and float64"):
        ours.calibrate(mixed)
    ours.calibrate(x, y)
    with pytest.raises(ValueError, match="`model` must not give NaN"):
        regressor(lambda rows: rows.mean(1) * np.nan).calibrate(x, y)
    with pytest.raises(ValueError, match="must have 9 elements an input"):
        regressor(ball=L1(0.1, 9), smoothing=Uniform(0.5)).calibrate(x, y)
    with pytest.raises(TypeError, match="`hulls` must be a bool"):
        ours.predict(x, hulls="no")
