"""Early stopping with a test of its own for each label: trackers of several rules, and Mondrian."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bincp
from bincp import SequentialRule, SequentialTracker
from bincp._utils.arrays import as_scores
from bincp.calibration._sequential import decide_in_order
from support import quiet


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


def test_bfloat16_scores_meet_the_thresholds_of_their_labels():
    torch = pytest.importorskip("torch")
    scores = torch.linspace(0, 1, 600).reshape(4, 5, 30).transpose(1, 2).to(torch.bfloat16)[..., :3]
    tau = torch.linspace(0.1, 0.9, 30).to(torch.bfloat16)
    rules = [SequentialRule.curtailed(1 + y % 3, 3) for y in range(30)]
    least = np.array([rule.min_count for rule in rules])
    decided = decide_in_order(rules, as_scores("scores", scores), tau.double().numpy())
    expected = (scores >= tau[:, None]).sum(dim=-1).numpy() >= least
    np.testing.assert_array_equal(decided, expected)
    assert 0 < expected.mean() < 1


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


# ---- Mondrian ---------------------------------------------------------------------------------

CERTIFICATE = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.125))
RNG = np.random.default_rng(1)
LABELS = np.repeat([0, 1, 2, 4], [90, 60, 40, 5])  # class 3 has no points, class 4 too few
TRUE = RNG.normal(1 + 0.1 * LABELS[:, None], 0.4, (len(LABELS), 32)).astype(np.float32)
SCORES = RNG.normal(RNG.random((300, 5, 1)) * 2, 0.4, (300, 5, 16)).astype(np.float32)


def early(passes="auto", m_test=16):
    rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=5, passes=passes)
    return quiet(rule.calibrate, TRUE, LABELS, n_test_samples=m_test)


@pytest.mark.parametrize("passes", ["auto", 2, "9/2"])
def test_each_class_stops_by_the_boundaries_of_its_own_calibration(passes):
    rule = early(passes)
    sets = rule.predict_set(SCORES)
    tests = rule.sequential_rule()
    assert tests == rule.boundaries_
    for y in (0, 1, 2):
        alone = bincp.BinCP(CERTIFICATE, passes=passes)
        alone.calibrate(TRUE[y == LABELS], n_test_samples=16)
        assert tests[y] == alone.boundaries_
        np.testing.assert_array_equal(sets[:, y], alone.predict_set(SCORES[:, [y]])[:, 0])
        assert 0 < sets[:, y].mean() < 1
    assert sets[:, 3:].all()
    labels = SequentialTracker(tests, sets.shape)
    labels.update(rule.tau_[:, None].astype(np.float32) <= SCORES)
    np.testing.assert_array_equal(labels.accepted, sets)
    assert (labels.exits[:, 3:] == 0).all()
    assert labels.exits.max(axis=1).mean() < 12


def test_counts_are_refused_where_a_class_stops_early():
    rule = early()
    counts = (rule.tau_[:, None].astype(np.float32) <= SCORES).sum(axis=-1)
    with pytest.raises(ValueError, match=r"`counts` must not decide .*passes=None for counts"):
        rule.predict_set_from_counts(counts, n_samples=16)


def test_without_a_proof_counts_are_taken():
    """With one draw, or tau fixed, passes="auto" leaves the rule as it is."""
    for options, m_test in (({"passes": "auto", "tau": 0.9}, 16), ({"passes": "auto"}, 1)):
        rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=5, **options)
        quiet(rule.calibrate, TRUE, LABELS, n_test_samples=m_test)
        assert rule.boundaries_ is None
        scores = SCORES[:, :, :m_test]
        counts = (scores >= rule.tau_[:, None].astype(np.float32)).sum(axis=-1)
        np.testing.assert_array_equal(
            rule.predict_set_from_counts(counts, n_samples=m_test), rule.predict_set(scores)
        )
    with pytest.raises(ValueError, match='`passes` must be None or "auto" where early'):
        bincp.MondrianBinCP(CERTIFICATE, n_classes=5, passes=3, tau=0.9)


def test_other_boundaries_are_derived_for_each_class():
    rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=5)
    quiet(rule.calibrate, TRUE, LABELS, n_test_samples=16)
    for spread in (None, 1, "5/2"):
        tests = rule.sequential_rule(spread=spread)
        for y in (0, 1, 2):
            alone = bincp.BinCP(CERTIFICATE).calibrate(TRUE[y == LABELS], n_test_samples=16)
            assert tests[y] == alone.sequential_rule(spread=spread)
        assert tests[3] == tests[4] == SequentialRule.curtailed(0, 16)
    with pytest.raises(ValueError, match="`spread` must be above 0"):
        rule.sequential_rule(spread=0)
    with pytest.raises(bincp.NotCalibratedError):
        bincp.MondrianBinCP(CERTIFICATE, n_classes=5).sequential_rule()
