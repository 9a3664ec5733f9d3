"""Prediction sets can be read: lists of labels by name, a data frame, a short representation."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bincp.balls import L2  # noqa: E402
from bincp.sampling import PredictionSets, RobustClassifier  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

MEMBERS = np.array([[True, False, True], [False, False, False], [True, True, True]])
PREDICTION = PredictionSets(MEMBERS, np.int32(9) * MEMBERS, np.array([4, 7, 1]))
NAMES = ["cat", "dog", "eel"]


def test_labels_are_places_or_names():
    assert PREDICTION.labels() == [[0, 2], [], [0, 1, 2]]
    for names in (NAMES, tuple(NAMES), np.array(NAMES)):
        assert PREDICTION.labels(names) == [["cat", "eel"], [], ["cat", "dog", "eel"]]
        assert {type(name) for name in PREDICTION.labels(names)[2]} == {str}
    assert PREDICTION.labels([(1, 2), None, 3.5])[2] == [(1, 2), None, 3.5]
    assert len(PREDICTION) == 3


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ("abc", TypeError, "`names` must be a sequence of the names of all labels, got 'abc'"),
        ({"cat": 0}, TypeError, "`names` must be a sequence"),
        (NAMES[:2], ValueError, "`names` must hold a name for each of 3 labels, got 2"),
        (["cat", "dog", "cat"], ValueError, "`names` must differ, got 'cat' more than once"),
    ],
)
def test_bad_names_are_refused(names, error, message):
    with pytest.raises(error, match=message):
        PREDICTION.labels(names)


def test_the_representation_sums_up():
    assert repr(PREDICTION) == (
        "PredictionSets(3 inputs, 3 labels, average size 1.67, 4 forward passes an input)"
    )
    none = PredictionSets(MEMBERS[:0], np.zeros((0, 3), np.int32), np.zeros(0, int))
    assert repr(none) == "PredictionSets(0 inputs, 3 labels)"


def test_sets_of_a_classifier_are_named():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    x = (np.eye(3)[y] + rng.normal(0, 0.3, (200, 3))).astype(np.float32)
    classifier = RobustClassifier(
        lambda z: 4 * z, Gaussian(0.3), L2(0.1), alpha="0.1", n_samples=16
    ).calibrate(x[:150], y[:150])
    prediction = classifier.predict(x[150:])
    for members, names in zip(prediction.sets, prediction.labels(NAMES), strict=True):
        assert [name in names for name in NAMES] == members.tolist()


def test_a_data_frame_has_a_row_for_each_input():
    pandas = pytest.importorskip("pandas")
    found = PREDICTION.to_frame(NAMES)
    assert isinstance(found, pandas.DataFrame)
    assert found.labels.tolist() == PREDICTION.labels(NAMES)
    assert found["size"].tolist() == [2, 0, 3]
    assert found.forward_passes.tolist() == [4, 7, 1]
    assert PREDICTION.to_frame().labels.tolist() == PREDICTION.labels()


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas: pip install pandas"):
        PREDICTION.to_frame()
