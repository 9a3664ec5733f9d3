"""An object holds one whole rule at a time, and a copy of it has its own."""

import copy
import itertools
import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bincp
from bincp import balls, smoothing

CERTIFICATE = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
TRUE = np.random.default_rng(0).normal(1, 0.3, (200, 16))
LABELS = np.arange(len(TRUE)) % 3
MEMBERS = (LABELS[:, None] + np.arange(3)) % 3 < 2  # two true labels for each point
SCORES = np.random.default_rng(1).normal(0.6, 0.5, (200, 3, 16))

KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "BinCP": (lambda: bincp.BinCP(CERTIFICATE), lambda rule, true: rule.calibrate(true)),
    "MondrianBinCP": (
        lambda: bincp.MondrianBinCP(CERTIFICATE, n_classes=3),
        lambda rule, true: rule.calibrate(true, LABELS[: len(true)]),
    ),
    "MondrianBinCP, early": (
        lambda: bincp.MondrianBinCP(CERTIFICATE, n_classes=3, passes="auto"),
        lambda rule, true: rule.calibrate(true, LABELS[: len(true)]),
    ),
    "RobustRiskControl": (
        lambda: bincp.RobustRiskControl(CERTIFICATE, alpha=0.2, eta=0.1),
        lambda rule, true: rule.calibrate(
            true[:, None] - 0.2 * (MEMBERS[: len(true), :, None] == 0), MEMBERS[: len(true)]
        ),
    ),
}
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda rule: pickle.loads(pickle.dumps(rule)),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_copy = pytest.mark.parametrize("duplicate", COPIES.values(), ids=list(COPIES))


@each_kind
@each_copy
def test_a_copy_before_calibration_is_calibrated_by_itself(
    kind: str, duplicate: Callable[[Any], Any]
) -> None:
    make, calibrate = KINDS[kind]
    rule = make()
    other = duplicate(rule)
    assert repr(other) == repr(rule)
    sets = calibrate(other, TRUE).predict_set(SCORES)
    with pytest.raises(bincp.NotCalibratedError):
        rule.predict_set(SCORES)
    np.testing.assert_array_equal(calibrate(rule, TRUE).predict_set(SCORES), sets)


@each_kind
@each_copy
def test_a_copy_after_calibration_predicts_the_same_and_goes_its_own_way(
    kind: str, duplicate: Callable[[Any], Any]
) -> None:
    make, calibrate = KINDS[kind]
    rule = calibrate(make(), TRUE)
    sets = rule.predict_set(SCORES)
    assert 0 < sets.mean() < 1
    other = duplicate(rule)
    assert repr(other) == repr(rule)
    np.testing.assert_array_equal(other.predict_set(SCORES), sets)
    assert calibrate(other, TRUE - 5).predict_set(SCORES).all()
    np.testing.assert_array_equal(rule.predict_set(SCORES), sets)


@each_kind
def test_predictions_during_calibrations_are_made_by_one_rule(kind: str) -> None:
    """Two threads calibrate one object while two predict: no set comes from tau and k of two."""
    make, calibrate = KINDS[kind]
    calibrations = [TRUE, TRUE - 0.3, TRUE[:60] * 1.1, np.sqrt(np.abs(TRUE))]
    possible = {calibrate(make(), true).predict_set(SCORES).tobytes() for true in calibrations}
    assert len(possible) == len(calibrations)
    rule = calibrate(make(), TRUE)
    seen: set[bytes] = set()
    calibrating = [True, True]
    together = threading.Barrier(4)
    deadline = time.monotonic() + 20  # a loaded machine may run the predictions late

    def calibrate_often(which: int) -> None:
        together.wait()
        try:
            for i in itertools.count():
                calibrate(rule, calibrations[(i + which) % len(calibrations)])
                if i >= 60 and (len(seen) > 1 or time.monotonic() > deadline):
                    break
        finally:
            calibrating.pop()

    def predict() -> None:
        together.wait()
        while calibrating:
            seen.add(rule.predict_set(SCORES).tobytes())

    threads = [threading.Thread(target=calibrate_often, args=(which,)) for which in (0, 1)]
    threads += [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) > 1
    assert seen <= possible


def test_files_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = bincp.BinCP(CERTIFICATE).calibrate(TRUE)
    folder = tmp_path / "in a folder" / "\u00e4"
    folder.mkdir(parents=True)
    rule.save(folder / "rule.json")
    monkeypatch.chdir(folder)
    folder.chmod(0o555)
    try:
        for path in ("rule.json", Path("rule.json"), folder / "rule.json", "../\u00e4/rule.json"):
            assert bincp.BinCP.load(path).tau_ == rule.tau_
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("path", [3, None, 1.5, b"rule.json"])
def test_a_path_must_be_a_path(path: Any) -> None:
    rule = bincp.BinCP(CERTIFICATE).calibrate(TRUE)
    for call in (rule.save, bincp.BinCP.load):
        with pytest.raises(TypeError, match="`path` must be a str or path-like, got"):
            call(path)
