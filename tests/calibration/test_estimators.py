"""Estimators keep the conventions of scikit-learn: parameters as they were passed, and clones."""

import copy
import inspect
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import bincp
from bincp import balls, baselines, smoothing
from bincp.classification import ABSTAIN, CertifiedLabels

CERTIFICATE = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
OTHER = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.2))
TRUE = np.random.default_rng(0).normal(1, 0.3, (200, 16))
SCORES = np.random.default_rng(1).normal(0.6, 0.5, (20, 3, 16))


def own_loss(sets: Any, labels: Any) -> Any:
    return 1.0 - (sets & labels).any(axis=1)


KINDS: dict[str, tuple[type, dict[str, Any]]] = {
    "BinCP": (bincp.BinCP, {"certificate": CERTIFICATE, "alpha": "0.1"}),
    "BinCP, all": (
        bincp.BinCP,
        {
            "certificate": CERTIFICATE,
            "alpha": Fraction(1, 5),
            "p": "0.7",
            "correction": "mixture",
            "union": "ghost",
            "eta": "1e-3",
            "guarantee": ("training-conditional", "0.05"),
            "passes": None,
        },
    ),
    "MondrianBinCP": (
        bincp.MondrianBinCP,
        {"certificate": CERTIFICATE, "n_classes": 3, "alpha": "0.1", "passes": "auto"},
    ),
    "RobustRiskControl": (
        bincp.RobustRiskControl,
        {"certificate": CERTIFICATE, "alpha": "0.1", "loss": own_loss},
    ),
    "VanillaCP": (baselines.VanillaCP, {"alpha": "0.1"}),
    "SmoothedCP": (baselines.SmoothedCP, {"alpha": "0.1"}),
    "RSCP": (baselines.RSCP, {"certificate": CERTIFICATE, "alpha": "0.1", "eta": "0.01"}),
    "RankedRSCP": (
        baselines.RankedRSCP,
        {
            "certificate": CERTIFICATE,
            "tuning_scores": TRUE,
            "seed": 3,
            "alpha": "0.1",
            "temperature": 1.0,
            "eta": "0.01",
        },
    ),
    "CAS": (baselines.CAS, {"certificate": CERTIFICATE, "alpha": "0.1", "robust_at": "test"}),
    "RCP1": (baselines.RCP1, {"certificate": CERTIFICATE, "alpha": "0.1"}),
    "VRCP": (baselines.VRCP, {"alpha": "0.1", "robust_at": "calibration"}),
    "LipRCP": (baselines.LipRCP, {"lipschitz": 2.0, "r": 0.5, "alpha": "0.1"}),
}
each_kind = pytest.mark.parametrize(("kind", "given"), KINDS.values(), ids=KINDS)


def calibrated(rule: Any) -> Any:
    """Calibrate any of the kinds, on points that all of them take."""
    if isinstance(rule, bincp.MondrianBinCP):
        return rule.calibrate(TRUE, np.arange(200) % 3)
    if isinstance(rule, bincp.RobustRiskControl):
        return rule.calibrate(TRUE[:, None].repeat(3, axis=1), np.ones((200, 3), bool))
    if isinstance(rule, baselines.RCP1):
        return rule.calibrate(TRUE[:, :1])
    if isinstance(rule, baselines.VRCP):
        return rule.calibrate(TRUE[:, 0], lower=TRUE[:, 0] - 0.1)
    if isinstance(rule, baselines.VanillaCP | baselines.LipRCP):
        return rule.calibrate(TRUE[:, 0])
    return rule.calibrate(np.clip(TRUE / 2, 0, 1).repeat(40, axis=1))  # enough for Hoeffding


def is_calibrated(rule: Any) -> bool:
    return getattr(rule, "tau_", None) is not None


@each_kind
def test_parameters_are_the_objects_that_were_passed(kind: type, given: dict[str, Any]) -> None:
    params = kind(**given).get_params()
    assert {*given} <= {*params}
    for name, value in given.items():
        assert params[name] is value
    assert kind(**params).get_params() == params


@each_kind
@pytest.mark.parametrize("calibrate_first", [False, True])
def test_a_clone_has_equal_parameters_and_no_calibration(
    kind: type, given: dict[str, Any], calibrate_first: bool
) -> None:
    rule = kind(**given)
    if calibrate_first:
        rule = calibrated(rule)
    other = clone(rule)
    assert type(other) is kind
    assert other is not rule
    assert not is_calibrated(other)
    assert all(other.get_params()[name] is value for name, value in rule.get_params().items())
    assert is_calibrated(rule) == calibrate_first
    calibrated(other)
    assert is_calibrated(rule) == calibrate_first


@each_kind
def test_the_next_calibration_uses_parameters_that_were_set(
    kind: type, given: dict[str, Any]
) -> None:
    rule = calibrated(kind(**given))
    assert rule.set_params(alpha="0.3") is rule
    assert not is_calibrated(rule)
    assert rule.get_params()["alpha"] == "0.3"
    assert rule.alpha == Fraction(3, 10)
    fresh = calibrated(kind(**{**given, "alpha": "0.3"}))
    assert np.all(calibrated(rule).tau_ == fresh.tau_)
    assert repr(rule) == repr(fresh)
    assert np.any(rule.tau_ != calibrated(kind(**given)).tau_)


@each_kind
def test_what_is_refused_changes_nothing(kind: type, given: dict[str, Any]) -> None:
    rule = calibrated(kind(**given))
    before = rule.tau_, rule.get_params()
    with pytest.raises(ValueError, match="`alpha` must be in"):
        rule.set_params(alpha=2)
    unknown = rf"`gamma` must be a parameter of {kind.__name__}, one of"
    with pytest.raises(ValueError, match=unknown):
        rule.set_params(alpha="0.3", gamma=1)
    with pytest.raises(ValueError, match="`alpha` must be an object with parameters of its own"):
        rule.set_params(alpha__beta=1)
    assert np.all(rule.tau_ == before[0])
    assert rule.get_params() == before[1]
    assert rule.set_params() is rule
    assert is_calibrated(rule)


@each_kind
def test_copies_keep_their_parameters(kind: type, given: dict[str, Any]) -> None:
    rule = kind(**given)
    for other in (copy.copy(rule), copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
        assert {*other.get_params()} == {*rule.get_params()}
        assert repr(other) == repr(rule)
    assert copy.copy(rule).get_params() == rule.get_params()


def test_a_parameter_that_was_not_passed_is_its_default() -> None:
    params = bincp.BinCP(CERTIFICATE).get_params()
    assert params == {
        "certificate": CERTIFICATE,
        "alpha": 0.1,
        "p": None,
        "tau": None,
        "correction": "mixture",
        "union": "per-bound",
        "eta": 1e-3,
        "guarantee": "marginal",
        "passes": None,
        "poisoned": 0,
        "label_noise": None,
        "shift": None,
        "attacked_calibration": False,
    }
    assert {*bincp.MondrianBinCP(CERTIFICATE, n_classes=2).get_params()} == {*params, "n_classes"}


@pytest.mark.parametrize("guarantee", ["marginal", ("training-conditional", Fraction(1, 20))])
def test_a_loaded_rule_shows_its_settings_and_can_be_cloned(guarantee: Any, tmp_path: Any) -> None:
    options: dict[str, Any] = {"alpha": Fraction(1, 5), "p": Fraction(3, 4), "guarantee": guarantee}
    rule = bincp.BinCP(CERTIFICATE, **options).calibrate(TRUE)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    params = loaded.get_params()
    assert {name: params[name] for name in options} == options
    assert params["eta"] == Fraction(1, 1000)
    again = clone(loaded)
    assert not is_calibrated(again)
    assert (again.calibrate(TRUE).tau_, again.min_count_) == (rule.tau_, rule.min_count_)


def test_another_certificate_can_be_set() -> None:
    rule = bincp.BinCP(CERTIFICATE, alpha="0.1").calibrate(TRUE)
    rule.set_params(certificate=OTHER)
    assert rule.certificate is OTHER
    with pytest.raises(bincp.NotCalibratedError):
        rule.predict_set(SCORES)


def test_help_and_completion_see_the_constructor() -> None:
    assert list(inspect.signature(bincp.BinCP).parameters)[:2] == ["certificate", "alpha"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        bincp.BinCP(CERTIFICATE, beta=1)  # type: ignore[call-arg]


def test_parameters_need_no_scikit_learn() -> None:
    code = (
        "import sys, bincp, bincp.baselines as b; b.VanillaCP(alpha=0.1).set_params(alpha=0.2)"
        ".get_params(); print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_representations_name_what_was_chosen() -> None:
    rule = baselines.CAS(CERTIFICATE, alpha="0.1", robust_at="test")
    assert repr(rule) == (
        f"CAS(alpha=1/10, certificate={CERTIFICATE!r}, robust_at='test', not calibrated)"
    )
    ranked = baselines.RankedRSCP(CERTIFICATE, TRUE, seed=3)
    assert "tuning_scores=<shape (200, 16)>, seed=3" in repr(ranked)
    vanilla = baselines.VanillaCP(alpha="0.1").calibrate(np.arange(19.0))
    assert repr(vanilla) == "VanillaCP(alpha=1/10, tau_=1.0, n_calibration_=19)"


def test_rules_show_what_is_set() -> None:
    rule = bincp.BinCP(CERTIFICATE, p="0.7", guarantee=("training-conditional", "0.05"))
    shown = "alpha=1/10, correction='mixture', p=7/10, guarantee=('training-conditional', 1/20)"
    assert repr(rule) == f"BinCP({shown}, not calibrated)"
    rule = bincp.BinCP(CERTIFICATE, tau=0.5, passes="auto")
    assert repr(rule) == (
        "BinCP(alpha=1/10, correction='mixture', tau=0.5, passes=auto, not calibrated)"
    )
    mondrian = bincp.MondrianBinCP(CERTIFICATE, n_classes=3, correction="none")
    assert repr(mondrian) == (
        "MondrianBinCP(n_classes=3, alpha=1/10, correction='none', not calibrated)"
    )


def test_a_plan_a_tracker_and_certified_labels_are_short() -> None:
    plan = bincp.plan(CERTIFICATE, n=100, m=8)
    assert repr(plan) == (
        f"Plan(mixture, n=100, m=8, n_test_samples=8, alpha=1/10, min_count={plan.min_count}, "
        f"wrong_labels={plan.wrong_labels:.4g}, expected_passes=8)"
    )
    tracker = bincp.SequentialTracker(bincp.SequentialRule.curtailed(2, 4), (2, 3))
    assert repr(tracker) == "SequentialTracker(shape=(2, 3), 6 of 6 labels undecided)"
    tracker.update(np.array([[[True] * 2, [False] * 2, [True, False]]] * 2))
    assert repr(tracker) == "SequentialTracker(shape=(2, 3), 4 of 6 labels undecided)"
    labels = CertifiedLabels(np.array([ABSTAIN, 2, 0]), np.array([0, 0.5, 0.25]), np.ones(3))
    assert repr(labels) == "CertifiedLabels(3 inputs, abstains on 1, median radius 0.375)"
    none = CertifiedLabels(np.array([ABSTAIN]), np.zeros(1), np.zeros(1))
    assert repr(none) == "CertifiedLabels(1 inputs, abstains on 1)"
