"""Draws that are made in several calls are those of one call: ids and first draws."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bincp import noise  # noqa: E402
from bincp.balls import L2  # noqa: E402
from bincp.sampling import (  # noqa: E402
    RobustClassifier,
    count_scores,
    sample_scores,
    vote_counts,
)
from bincp.smoothing import Exp2, Gaussian, SparseFlip  # noqa: E402

X = (np.random.default_rng(0).random((4, 6)) > 0.5).astype(np.float32)
IDS = [7, 3, 0, 2**55]


def first_coordinates(x):
    """A model whose every number is a number of its input: equal to the bit at any batch size."""
    return 3 * x[:, :3]


@pytest.mark.parametrize("scheme", [Gaussian(0.5), Exp2(0.5), SparseFlip(0.1, 0.4)])
def test_noise_of_later_draws_is_the_end_of_all_draws(scheme):
    whole = noise.draw(scheme, X, 9, phase="test", indices=IDS, seed=2)
    later = noise.draw(scheme, X, 4, phase="test", indices=IDS, seed=2, first_draw=5)
    assert np.array_equal(whole[:, 5:], later)


@pytest.mark.parametrize("score", ["tps", "aps"])
def test_scores_and_counts_of_two_ranges_make_up_those_of_one(score):
    options = {"phase": "test", "indices": IDS, "score": score, "seed": 3}
    model, scheme = first_coordinates, Gaussian(0.5)
    whole = sample_scores(model, X, scheme, 9, **options)
    halves = [
        sample_scores(model, X, scheme, m, first_draw=a, **options) for a, m in [(0, 5), (5, 4)]
    ]
    assert np.array_equal(np.concatenate(halves, axis=2), whole)
    tau = float(np.median(whole))
    counts = [
        count_scores(model, X, scheme, m, tau, first_draw=a, **options) for a, m in [(0, 5), (5, 4)]
    ]
    assert np.array_equal(sum(counts), (whole >= np.float32(tau)).sum(axis=2))


def test_a_classifier_calibrates_and_predicts_on_the_draws_that_it_is_told():
    y = np.arange(4) % 3
    options = {"alpha": 0.4, "n_samples": 8, "passes": None, "seed": 0}
    scheme = Gaussian(0.5)
    classifier = RobustClassifier(first_coordinates, scheme, L2(0), **options)
    classifier.calibrate(X, y, indices=IDS, first_draw=6)
    scores = sample_scores(
        first_coordinates, X, scheme, 14, phase="calibration", indices=IDS, labels=y
    )
    assert classifier.rule.tau_ in scores[:, 6:]
    assert classifier.rule.tau_ not in scores[:, :6]
    told = classifier.predict(X, indices=IDS, first_draw=3, curtail=False).counts
    counts = count_scores(
        first_coordinates,
        X,
        scheme,
        8,
        classifier.rule.tau_,
        phase="test",
        indices=IDS,
        first_draw=3,
    )
    assert np.array_equal(told, counts)


@pytest.mark.parametrize("bad", [-1, 2**31 - 8, 1.0, True])
def test_first_draws_out_of_range_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match="`first_draw` must be"):
        sample_scores(first_coordinates, X, Gaussian(0.5), 8, phase="test", first_draw=bad)
    with pytest.raises((TypeError, ValueError), match="`first_draw` must be"):
        noise.draw(Gaussian(0.5), X, 8, phase="test", first_draw=bad)


def test_a_score_that_is_no_number_is_named_by_its_draw_and_id():
    def nan(x):
        return torch.full((len(x), 3), torch.nan)

    with pytest.raises(ValueError, match=r"input 0 \(id 7\), draw 5, label 0"):
        sample_scores(nan, X, Gaussian(0.5), 2, phase="test", indices=IDS, first_draw=5)


def test_votes_of_two_ranges_add_up():
    whole = vote_counts(first_coordinates, X, Gaussian(0.5), 9, indices=IDS)
    parts = [
        vote_counts(first_coordinates, X, Gaussian(0.5), m, indices=IDS, first_draw=a)
        for a, m in [(0, 5), (5, 4)]
    ]
    assert np.array_equal(sum(parts), whole)
