"""Rules of risk control come back exactly from their files, and forged ones do not come back."""

import hashlib
import json
import math
import pickle
import random
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bincp
from bincp import balls, smoothing
from support import content_of, forge, golden, quiet

CERTIFICATE = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.12))
RNG = np.random.default_rng(0)
LABELS = RNG.random((150, 3)) < 0.5
TRUE = RNG.normal(np.where(LABELS, 1, 0.2)[..., None], 0.3, (150, 3, 64)).astype(np.float32)
SCORES = RNG.normal(RNG.random((200, 3, 1)) * 2, 0.3, (200, 3, 64)).astype(np.float32)
HEX = float.hex


def any_missed(sets: Any, labels: Any) -> Any:
    return (labels & ~sets).any(axis=1)


def half_rate(sets: Any, labels: Any) -> Any:
    return (labels & ~sets).sum(axis=1) / 8


BOUNDS = "clopper-pearson"
KINDS: dict[str, tuple[dict[str, Any], int]] = {
    "by itself": ({"correction": BOUNDS}, 64),
    "p, m' < m": ({"p": "2/3", "alpha": "1/7", "eta": "0.013", "correction": BOUNDS}, 32),
    "none": ({"correction": "none", "eta": "1/2"}, 64),
    "a function": (
        {"loss": any_missed, "alpha": "3/10", "eta": "1/10", "correction": BOUNDS},
        64,
    ),
    "mixture": ({}, 64),
    "mixture, p, m' < m": ({"p": "2/3", "alpha": "1/7"}, 32),
    "mixture, early": ({"passes": "auto", "alpha": "1/7"}, 64),
    "mixture, another loss": ({"loss": any_missed}, 64),
    "mixture, another loss, early": ({"loss": any_missed, "passes": 8}, 64),
    "mixture, a sum": ({"loss": half_rate, "additive": True}, 64),
    "everything": (
        {
            "passes": "3.5",
            "poisoned": 2,
            "label_noise": ("rate", "0.01"),
            "shift": bincp.shifts.LevyProkhorov(balls.L2(0.01), "0.005"),
        },
        64,
    ),
}


def calibrated(name: str, certificate: Any = CERTIFICATE) -> bincp.RobustRiskControl:
    options, m_test = KINDS[name]
    rule = bincp.RobustRiskControl(certificate, **options)
    return rule.calibrate(TRUE, LABELS, n_test_samples=m_test)


def exact(certificate: Any = CERTIFICATE) -> bincp.RobustRiskControl:
    p = np.where(LABELS, 0.9, 0.3) - 0.001 * np.arange(len(LABELS))[:, None]
    return bincp.RobustRiskControl(certificate).calibrate_exact(p, LABELS, tau=0.5)


def make(name: str) -> bincp.RobustRiskControl:
    return exact() if name == "exact" else calibrated(name)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "risk.json"


def saved(name, path):
    """Return the content of a file without its checksum."""
    make(name).save(path)
    return content_of(path)


# ---- they come back ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_round_trip_is_exact(name, path):
    rule = calibrated(name)
    assert rule.min_count_ > 0
    rule.save(path)
    text = path.read_bytes()
    scores = SCORES[:, :, : rule.n_test_samples_]
    assert (rule.boundaries_ is not None) == ("passes" in KINDS[name][0])
    sets = rule.predict_set(scores)
    assert 0 < sets.mean() < 1
    loaded = bincp.RobustRiskControl.load(path)
    for other in (loaded, pickle.loads(pickle.dumps(rule))):
        assert other._rule == rule._rule
        assert repr(other) == repr(rule)
        assert other.guarantee == rule.guarantee
        assert other.certificate_description == rule.certificate_description
        np.testing.assert_array_equal(other.predict_set(scores), sets)
        other.save(path)
        assert path.read_bytes() == text
    if rule._settings.loss is None:
        assert loaded.loss is None
        with pytest.raises(ValueError, match="loaded RobustRiskControl does not hold its loss"):
            loaded.calibrate(TRUE, LABELS)
        with pytest.raises(ValueError, match="does not hold its loss"):
            loaded.calibrate_exact(np.ones((9, 3)), LABELS[:9], tau=0)
        np.testing.assert_array_equal(loaded.predict_set(scores), sets)
    else:
        loaded.calibrate(TRUE, LABELS, n_test_samples=rule.n_test_samples_)
        assert loaded._rule == rule._rule


def test_round_trip_of_exact_probabilities(path):
    rule = exact()
    assert rule.certified_p_ > 0
    rule.save(path)
    loaded = bincp.RobustRiskControl.load(path)
    assert loaded._rule == rule._rule
    p = np.linspace(0, 1, 300).reshape(100, 3)
    np.testing.assert_array_equal(loaded.predict_set_exact(p), rule.predict_set_exact(p))
    with pytest.raises(bincp.NotCalibratedError, match=r"call calibrate\(\)"):
        loaded.predict_set(SCORES)


def test_round_trip_of_trivial_rules(path):
    """Too few points, scores of -inf, a strong attack, and no probability above 0."""
    every = np.ones((99, 2), bool)
    low = np.full((99, 2, 8), -np.inf)
    strong = bincp.certify(smoothing.Gaussian(0.5), balls.L2(2))
    for certificate, scores in (
        (CERTIFICATE, np.ones((5, 2, 8))),
        (CERTIFICATE, low),
        (strong, np.ones((99, 2, 8))),
    ):
        rule = bincp.RobustRiskControl(certificate)
        quiet(rule.calibrate, scores, every[: len(scores)]).save(path)
        loaded = bincp.RobustRiskControl.load(path)
        assert loaded._rule == rule._rule
        assert loaded.certificate is not None
        assert loaded.predict_set(np.zeros((1, 2, 8))).all()
    for n in (5, 99):
        rule = bincp.RobustRiskControl(CERTIFICATE)
        quiet(rule.calibrate_exact, np.zeros((n, 2)), every[:n], tau=0.5).save(path)
        loaded = bincp.RobustRiskControl.load(path)
        assert loaded._rule == rule._rule
        assert loaded.predict_set_exact([[0.0, 1.0]]).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_round_trip_of_each_dtype(dtype, path):
    rule = bincp.RobustRiskControl(CERTIFICATE).calibrate(TRUE.astype(dtype), LABELS)
    rule.save(path)
    loaded = bincp.RobustRiskControl.load(path)
    assert loaded._rule == rule._rule
    sets = rule.predict_set(SCORES.astype(dtype))
    np.testing.assert_array_equal(loaded.predict_set(SCORES.astype(dtype)), sets)
    other = np.float32 if dtype is np.float64 else np.float64
    with pytest.raises(ValueError, match="dtype calibrated with"):
        loaded.predict_set(SCORES.astype(other))


def test_another_process_predicts_the_same(path, tmp_path):
    rule = calibrated("a function")
    rule.save(path)
    np.save(tmp_path / "scores.npy", SCORES)
    program = (
        "import sys, numpy as np, bincp\n"
        "rule = bincp.RobustRiskControl.load(sys.argv[1])\n"
        "np.save(sys.argv[3], rule.predict_set(np.load(sys.argv[2])))\n"
    )
    names = [str(path), str(tmp_path / "scores.npy"), str(tmp_path / "sets.npy")]
    subprocess.run([sys.executable, "-c", program, *names], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "sets.npy"), rule.predict_set(SCORES))


UNIFORM = bincp.certify(smoothing.Uniform(0.5), balls.L1(0.125))  # c(p) = p - 1/8
TINY = {
    "format": "bincp rule of risk control",
    "version": 3,
    "certificate": {
        "smoothing": {"type": "Uniform", "half_width": 0.5},
        "ball": {"type": "L1", "r": 0.125, "dim": None},
        "operator": "uniform",
        "assumes": "the model does not read the last bits of x + noise",
    },
    "alpha": "1/2",
    "p": None,
    "loss": "false-negative-rate",
    "correction": "none",
    "eta": "1/1000",
    "tau_": "0x1.0000000000000p-1",
    "min_count_": None,
    "success_rank_": None,
    "total_loss_": "1",
    "n_calibration_": 3,
    "n_classes_": 2,
    "n_samples_": None,
    "n_test_samples_": None,
    "dtype_": None,
    "p_": "0x1.8000000000000p-1",
    "p_lower_": None,
    "certified_p_": "0x1.4000000000000p-1",
}


def own_checksum(content):
    """Return the checksum of a file as the documentation of the format defines it."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def test_a_tiny_file_by_hand(path):
    """Losses may add up to 1/2 * 4 - 1 = 1: 3/4 loses the third point, 7/8 the second one, too."""
    p = [[7 / 8, 1 / 4], [3 / 4, 3 / 4], [1 / 2, 1 / 8]]
    labels = [[True, False], [True, True], [True, False]]
    rule = bincp.RobustRiskControl(UNIFORM, alpha="1/2", correction="none")
    rule.calibrate_exact(p, labels, tau=0.5).save(path)
    written = json.loads(path.read_text())
    assert written.pop("sha256") == own_checksum(TINY)
    assert written == TINY
    path.write_text(json.dumps({**TINY, "sha256": own_checksum(TINY)}))
    loaded = bincp.RobustRiskControl.load(path)
    assert loaded._rule == rule._rule
    assert loaded.predict_set_exact([[5 / 8, 0.624]]).tolist() == [[True, False]]


def test_a_tiny_file_of_counts_by_hand(path):
    """c(1) = 7/8 and 3/4 < 7/8 <= 4/4; losses may add up to 1: 4 loses both labels of the first."""
    scores = np.array([[[1, 1, 1, 1], [3, 3, 3, 3]], [[4] * 4, [3] * 4], [[5] * 4, [2] * 4]])
    labels = [[True, True], [True, False], [True, False]]
    rule = bincp.RobustRiskControl(UNIFORM, alpha="1/2", correction="none", p=1)
    rule.calibrate(scores.astype(np.float16), labels).save(path)
    written = json.loads(path.read_text())
    sampled = {
        "p": "1",
        "tau_": HEX(4.0),
        "min_count_": 4,
        "success_rank_": 4,
        "total_loss_": "1",
        "n_samples_": 4,
        "n_test_samples_": 4,
        "dtype_": "float16",
        "p_": HEX(1.0),
        "certified_p_": HEX(0.875),
    }
    assert written.pop("sha256") == own_checksum(TINY | sampled)
    assert written == TINY | sampled


@pytest.mark.parametrize("which", range(len(golden("risk_rules"))))
def test_files_of_this_version_stay_readable(which, path):
    document = golden("risk_rules")[which]
    path.write_text(json.dumps(document))
    loaded = bincp.RobustRiskControl.load(path)
    assert loaded.certificate.describe() == loaded.certificate_description
    loaded.save(path)
    assert json.loads(path.read_text()) == document


def test_a_certificate_from_outside_is_described_and_no_more(path):
    certificate = bincp.Certificate.from_bounds(lambda p: max(p - 0.1, 0.0))
    for rule in (calibrated("by itself", certificate), exact(certificate)):
        rule.save(path)
        loaded = bincp.RobustRiskControl.load(path)
        assert loaded.certificate is None
        assert loaded.certificate_description == certificate.describe()
        assert loaded._rule == rule._rule
        with pytest.raises(bincp.CertificateError, match="loaded RobustRiskControl holds its cer"):
            loaded.calibrate(TRUE, LABELS)
        with pytest.raises(bincp.CertificateError, match="by description only"):
            loaded.calibrate_exact(np.ones((9, 3)), LABELS[:9], tau=0)


def test_settings_and_results_cannot_be_changed(path):
    rule = calibrated("by itself")
    for name in ("alpha", "p", "loss", "correction", "eta", "certificate", "tau_", "min_count_"):
        with pytest.raises(AttributeError, match=f"`{name}` of a RobustRiskControl is read-only"):
            setattr(rule, name, 0.5)


# ---- they do not come back --------------------------------------------------------------------


def test_files_of_other_classes_are_refused_with_the_method_that_reads_them(path):
    one = bincp.BinCP(CERTIFICATE).calibrate(TRUE[:, 0])
    classes = bincp.MondrianBinCP(CERTIFICATE, n_classes=1).calibrate(TRUE[:, 0], [0] * 150)
    objects = [one, classes, calibrated("by itself")]
    for saved in objects:
        saved.save(path)
        for kind in map(type, objects):
            if kind is type(saved):
                assert kind.load(path)._rule == saved._rule
                continue
            wanted, other = kind.__name__, type(saved).__name__
            message = f"{wanted}.save wrote, got one of {other}.save, which {other}.load reads"
            with pytest.raises(ValueError, match=re.escape(message)):
                kind.load(path)
    path.write_text('{"format": "other"}')
    message = "BinCP.save, MondrianBinCP.save or RobustRiskControl.save wrote, got other JSON"
    for kind in map(type, objects):
        with pytest.raises(ValueError, match=message):
            kind.load(path)


def test_nothing_is_saved_before_calibration(path):
    with pytest.raises(bincp.NotCalibratedError, match="before save"):
        bincp.RobustRiskControl(CERTIFICATE).save(path)
    assert not path.exists()


@pytest.mark.parametrize("wrong", [3, None, 1.5, b"risk.json"])
def test_a_path_must_be_a_path(wrong):
    rule = calibrated("by itself")
    for call in (rule.save, bincp.RobustRiskControl.load):
        with pytest.raises(TypeError, match="`path` must be a str or path-like, got"):
            call(wrong)


@pytest.mark.parametrize("version", [2, 4, True, 3.0, "3", None])
def test_other_versions(version, path):
    forge(path, {**saved("by itself", path), "version": version})
    with pytest.raises(ValueError, match=rf"version must be 3, got {version!r}"):
        bincp.RobustRiskControl.load(path)


@pytest.mark.parametrize("name", ["by itself", "exact"])
def test_every_field_is_needed_and_no_other(name, path):
    content = saved(name, path)
    for field in content.keys() - {"format", "version"}:
        forge(path, {key: value for key, value in content.items() if key != field})
        with pytest.raises(ValueError, match=f"damaged, `{field}` is missing"):
            bincp.RobustRiskControl.load(path)
    forge(path, {**content, "rank_": 3})
    with pytest.raises(ValueError, match="damaged, 'rank_' is no field"):
        bincp.RobustRiskControl.load(path)


WRONG = [True, 1.5, -1, "x", "nan", "1e999999999", "0x1.8p+0", "1/0", "2/4", "", [], {}, [1], 2**70]


@pytest.mark.parametrize("name", ["by itself", "a function", "exact"])
def test_wrong_values_are_refused_and_the_field_is_named(name, path):
    content = saved(name, path)
    for field in content.keys() - {"format", "version", "certificate"}:
        for value in WRONG:
            forge(path, {**content, field: value})
            with pytest.raises(ValueError, match="damaged, ") as caught:
                bincp.RobustRiskControl.load(path)
            message = str(caught.value)
            # What is given where nothing may be is a matter of all these fields.
            named = f"`{field}`" in message or "must be all given or all null" in message
            assert named or (field, "m and m' must" in message) in (
                ("n_samples_", True),
                ("n_test_samples_", True),
            ), (field, value, message)
    for value in (*WRONG[:-4], [], [1], 2**70, None):
        forge(path, {**content, "certificate": value})
        with pytest.raises(ValueError, match="damaged, `certificate`"):
            bincp.RobustRiskControl.load(path)


CONTRADICTIONS = [
    ("by itself", {"correction": "bayes"}, "`correction` is not one that is known"),
    ("by itself", {"correction": "mixture"}, "`share_` belongs to the mixture correction"),
    ("mixture", {"correction": "none"}, "`share_` belongs to the mixture correction"),
    ("mixture", {"share_": "1/9"}, "`share_` must be no more than alpha leaves"),
    ("mixture", {"share_": "1/100"}, "`total_loss_` must be within the budget"),
    ("mixture", {"min_count_": 64}, "`min_count_` must be what `share_`"),
    ("mixture", {"success_rank_": 20, "p_": HEX(20 / 64)}, "probabilities must be in order"),
    ("mixture, early", {"min_count_": 64}, "`min_count_` must be that of `boundaries_`"),
    ("mixture, another loss", {"n_classes_": 30}, "`min_count_` must be what `share_`"),
    ("everything", {"poisoned": 9}, "`total_loss_` must be within the budget"),
    (
        "everything",
        {"shift": {"type": "TotalVariation", "rho": "1/20"}},
        "`share_` must be no more",
    ),
    ("by itself", {"loss": "accuracy"}, "`loss` is not one that is known"),
    ("by itself", {"eta": "1/10"}, "`eta` must be below alpha"),
    ("by itself", {"n_calibration_": 0}, "`n_calibration_` must be in"),
    ("by itself", {"n_classes_": 0}, "`n_classes_` must be in"),
    ("by itself", {"n_classes_": 2**31}, "`n_classes_` must be in"),
    ("by itself", {"dtype_": None}, "the fields of sampled scores must be all given"),
    ("by itself", {"min_count_": None}, "the fields of sampled scores must be all given"),
    ("by itself", {"n_samples_": 2**31}, "m and m' must be in"),
    ("by itself", {"min_count_": 65}, "`min_count_` must be in [0, m']"),
    ("by itself", {"success_rank_": 65}, "`success_rank_` must be in [0, m]"),
    ("by itself", {"success_rank_": 0}, "`success_rank_` must be at least 1"),
    ("by itself", {"tau_": HEX(0.7)}, "`tau_` must be a value of the dtype"),
    ("p, m' < m", {"success_rank_": 40}, "`success_rank_` must be that of p and m"),
    ("by itself", {"p_": HEX(0.5)}, "`p_` must be t / m"),
    ("by itself", {"p_lower_": None}, "`p_lower_` belongs to clopper-pearson alone"),
    ("none", {"p_lower_": HEX(0.5)}, "`p_lower_` belongs to clopper-pearson alone"),
    ("none", {"certified_p_": HEX(1.0)}, "probabilities must be in order"),
    ("by itself", {"p_lower_": HEX(0.25), "certified_p_": HEX(0.0)}, "`p_lower_` must be the conf"),
    ("by itself", {"eta": "1/20"}, "`p_lower_` must be the confidence bound"),
    ("by itself", {"loss": None}, "`p_lower_` must be the confidence bound"),
    ("a function", {"loss": "false-negative-rate"}, "`p_lower_` must be the confidence bound"),
    ("a function", {"n_classes_": 2}, "`p_lower_` must be the confidence bound"),
    ("by itself", {"alpha": "1/100"}, "`total_loss_` must be within the budget"),
    ("by itself", {"n_calibration_": 140}, "`total_loss_` must be within the budget"),
    ("by itself", {"total_loss_": "150"}, "`total_loss_` must be within the budget"),
    ("by itself", {"total_loss_": None}, "`tau_` must be -inf without `total_loss_`"),
    ("by itself", {"tau_": "-inf"}, "tau = -inf accepts every label"),
    ("by itself", {"min_count_": 64}, "`min_count_` must be that of `certified_p_`"),
    ("none", {"min_count_": 1}, "`min_count_` must be that of `certified_p_`"),
    ("by itself", {"n_test_samples_": 32}, "`min_count_` must be "),
    ("exact", {"n_samples_": 9}, "the fields of sampled scores must be all given"),
    ("exact", {"p_lower_": HEX(0.5)}, "the fields of sampled scores must be all given"),
    ("exact", {"certified_p_": HEX(1.0)}, "probabilities must be in order"),
    ("exact", {"p_": HEX(1.5)}, "probabilities must be in order"),
    ("exact", {"alpha": "1/200"}, "`total_loss_` must be within the budget"),
    ("exact", {"total_loss_": None}, "`p_` must be 0 without `total_loss_`"),
    ("exact", {"certified_p_": HEX(0.75)}, "`certified_p_` must be what"),
]


@pytest.mark.parametrize(("name", "fields", "complaint"), CONTRADICTIONS)
def test_each_contradiction_is_found_and_named(name, fields, complaint, path):
    content = saved(name, path)
    assert all(content.get(key) != value for key, value in fields.items())
    forge(path, {**content, **fields})
    with pytest.raises(ValueError, match=re.escape(f"damaged, {complaint}")):
        bincp.RobustRiskControl.load(path)


@pytest.mark.parametrize("name", ["by itself", "a function", "none", "mixture", "exact"])
def test_a_stronger_attack_than_the_rule_withstands_is_refused(name, path):
    """Under a valid checksum; of a weaker one nothing is lost, but it is not the rule's own."""
    content = saved(name, path)
    for description in (
        bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.13)).describe(),
        bincp.certify(smoothing.Gaussian(0.4), balls.L2(0.12)).describe(),
    ):
        forge(path, {**content, "certificate": json.loads(json.dumps(description))})
        with pytest.raises(ValueError, match="damaged, `certified_p_` must be what"):
            bincp.RobustRiskControl.load(path)
    weaker = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.11)).describe()
    forge(path, {**content, "certificate": json.loads(json.dumps(weaker))})
    assert bincp.RobustRiskControl.load(path).certificate is None


def test_no_forged_file_claims_more_than_its_fields_prove(path):
    """Whoever knows the checksum still needs a k that confidence bounds and certificate allow.

    The bounds of what loads are computed by SciPy's beta distribution.
    """
    rng, loaded_files = random.Random(0), 0
    contents = [saved(name, path) for name in ("by itself", "a function")]
    for _ in range(1500):
        content = dict(rng.choice(contents))
        for field in rng.sample(["n_test_samples_", "n_classes_", "min_count_", "eta"], 2):
            if field == "eta":
                content["eta"] = rng.choice(["1/1000", "1/10", "1/50", "9/100"])
            else:
                content[field] = max(1, content[field] + rng.randrange(-3, 4))
        forge(path, content)
        try:
            rule = bincp.RobustRiskControl.load(path)
        except ValueError:
            continue
        loaded_files += 1
        each = float(rule.eta) / (2 if rule.loss else 2 * rule.n_classes_)
        t, m, m_test, k = (
            rule.success_rank_, rule.n_samples_, rule.n_test_samples_, rule.min_count_,
        )  # fmt: skip
        lower = CERTIFICATE.lower(stats.beta.ppf(each, t, m - t + 1))
        assert stats.beta.isf(each, k, m_test - k + 1) < lower + 1e-9  # k - 1 is refused rightly
    assert loaded_files > 50


def test_losses_are_kept_exactly(path):
    """A third and a sum of losses that no double holds, against fractions."""
    labels = np.ones((29, 3), bool)
    p = np.full((29, 3), 0.9)
    p[:5, 0] = 0.4
    p[5:7, 1:] = 0.4
    rule = bincp.RobustRiskControl(CERTIFICATE, alpha="1/7").calibrate_exact(p, labels, tau=0)
    rule.save(path)
    loaded = bincp.RobustRiskControl.load(path)
    assert loaded.total_loss_ == rule.total_loss_ == 5 * Fraction(1, 3) + 2 * Fraction(2, 3)
    assert rule.p_ == 0.9
    forge(path, {**content_of(path), "alpha": "133/1000"})  # (3 + 1) / 30 is above it
    with pytest.raises(ValueError, match="`total_loss_` must be within the budget"):
        bincp.RobustRiskControl.load(path)


# ---- threads ----------------------------------------------------------------------------------


def test_a_file_that_is_saved_during_calibrations_holds_one_rule(path):
    """Two threads calibrate, two save to one path: what loads is never tau and k of two rules."""
    points = [TRUE, TRUE[:60] * np.float32(1.1), TRUE - np.float32(0.3)]

    def calibrate(rule: bincp.RobustRiskControl, which: int) -> bincp.RobustRiskControl:
        return rule.calibrate(points[which], LABELS[: len(points[which])])

    possible = [calibrate(calibrated("by itself"), which)._rule for which in range(3)]
    assert len(set(possible)) == 3
    rule = calibrated("by itself")
    rule.save(path)
    done, together, seen = threading.Event(), threading.Barrier(4), set()

    def calibrate_often(which: int) -> None:
        together.wait()
        for i in range(40):
            calibrate(rule, (i + which) % 3)
        done.set()

    def save_and_load() -> None:
        together.wait()
        while not done.is_set():
            rule.save(path)
            seen.add(bincp.RobustRiskControl.load(path)._rule)

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(calibrate_often, which) for which in range(2)]
        jobs += [pool.submit(save_and_load) for _ in range(2)]
        for job in jobs:
            job.result()
    assert seen
    assert seen <= set(possible)
    assert list(path.parent.iterdir()) == [path]


# ---- counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KINDS if "passes" not in KINDS[name][0]])
def test_counts_decide_as_scores_do(name):
    rule = calibrated(name)
    m_test = rule.n_test_samples_
    counts = bincp.count_exceedances(SCORES[:, :, :m_test], rule.tau_)
    sets = rule.predict_set_from_counts(counts, n_samples=m_test)
    np.testing.assert_array_equal(sets, rule.predict_set(SCORES[:, :, :m_test]))
    np.testing.assert_array_equal(sets, counts >= rule.min_count_)
    assert 0 < sets.mean() < 1


def test_bad_counts():
    rule = calibrated("p, m' < m")
    counts = np.zeros((2, 3), int)
    with pytest.raises(ValueError, match="`n_samples` must be the m' = 32 calibrated for, got 64"):
        rule.predict_set_from_counts(counts, n_samples=64)
    with pytest.raises(ValueError, match=r"`counts` must be in \[0, 32\], got 33"):
        rule.predict_set_from_counts(counts + 33, n_samples=32)
    with pytest.raises(ValueError, match="with the K = 3 calibrated for"):
        rule.predict_set_from_counts(counts[:, :2], n_samples=32)
    with pytest.raises(TypeError, match="`counts` must"):
        rule.predict_set_from_counts(counts + 0.5, n_samples=32)
    with pytest.raises(bincp.NotCalibratedError, match=r"call calibrate\(\)"):
        exact().predict_set_from_counts(counts, n_samples=32)
    assert not math.isinf(rule.tau_)
