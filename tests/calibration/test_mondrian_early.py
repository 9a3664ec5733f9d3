"""Early stopping with a test of its own for each label: trackers of several rules, and Mondrian."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bincp import SequentialRule, SequentialTracker
from bincp._utils.arrays import as_scores
from bincp.calibration._sequential import decide_in_order


@st.composite
def rules_of_labels(draw):
    """Boundaries of some labels for one m', each with its own k and spread."""
    m = draw(st.integers(1, 12))
    rules = []
    for _ in range(draw(st.integers(1, 5))):
        k = draw(st.integers(0, m))
        spread = draw(st.sampled_from([0.3, 0.7, 1.2, 2.5, 50.0]))
        draws = np.arange(m + 1)
        accept = np.minimum(np.ceil(draws * k / m + spread), k)
        reject = np.maximum(np.floor(draws * k / m - spread), draws + k - 1 - m)
        rules.append(
            SequentialRule(k, m, accept.astype(int), np.minimum(reject, accept - 1).astype(int))
        )
    return rules


@given(rules_of_labels(), st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_each_label_is_decided_as_by_a_tracker_of_its_own(rules, seed):
    m, n_labels = rules[0].n_test_samples, len(rules)
    rng = np.random.default_rng(seed)
    hits = rng.random((5, n_labels, m)) < rng.random((5, n_labels, 1))
    together = SequentialTracker(rules, (5, n_labels))
    alone = [rule.start((5, 1)) for rule in rules]
    for y, tracker in enumerate(alone):
        tracker.update(hits[:, [y]])
    exits = np.concatenate([tracker.exits for tracker in alone], axis=1)
    while len(together.undecided):
        inputs, numbers = together.next_round()
        assert (numbers >= 1).all()
        for i, number in zip(inputs, numbers, strict=True):
            draws = together.draws[i]
            assert number <= max(exits[i].max() - draws, draws // 8)
            together.update(hits[[i], :, draws : draws + number], [i])
    np.testing.assert_array_equal(together.exits, exits)
    for name in ("accepted", "counts"):
        expected = np.concatenate([getattr(tracker, name) for tracker in alone], axis=1)
        np.testing.assert_array_equal(getattr(together, name), expected)
    scores = as_scores("scores", np.where(hits, 1.0, -1.0))
    np.testing.assert_array_equal(decide_in_order(rules, scores, 0.0), together.accepted)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scores_are_compared_with_the_threshold_of_their_label(dtype):
    rng = np.random.default_rng(0)
    tau = np.array([-np.inf, 0.25, 0.5], dtype)
    rules = [SequentialRule.curtailed(k, 8) for k in (0, 3, 5)]
    scores = rng.random((2000, 3, 8)).astype(dtype)  # more than are compared at once
    decided = decide_in_order(rules, as_scores("scores", scores), tau.astype(np.float64))
    np.testing.assert_array_equal(decided, (scores >= tau[:, None]).sum(axis=-1) >= [0, 3, 5])
    assert 0 < decided[:, 1:].mean() < 1


ONE = SequentialRule.curtailed(1, 2)
OTHER = SequentialRule.curtailed(1, 3)


@pytest.mark.parametrize(
    ("rules", "shape", "error", "message"),
    [
        ([ONE] * 2, (4, 3), ValueError, r"must be \(n, K\) .* K = 2 labels, got \(4, 3\)"),
        ([ONE] * 2, 4, ValueError, "for the boundaries of K = 2 labels, got 4"),
        ([ONE] * 6, (4, 2, 3), ValueError, "of K = 6 labels"),
        ([ONE, OTHER], (4, 2), ValueError, r"one m', got m' = \[2, 3\]"),
        ([], (4, 2), ValueError, r"one m', got m' = \[\]"),
        ([3, 4], (4, 2), TypeError, "a SequentialRule or a sequence of them, got int"),
        (3, (4, 2), TypeError, "a SequentialRule or a sequence of them, got int"),
    ],
)
def test_rules_that_do_not_fit(rules, shape, error, message):
    with pytest.raises(error, match=message):
        SequentialTracker(rules, shape)
