"""Sequential tests: exact probabilities, the guarantee, and labels that freeze at their exits."""

import copy
import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bincp import BinCP, plan
from bincp._utils.arrays import as_scores
from bincp.balls import L1, L2, Flips
from bincp.calibration._conditions import MeanFailure
from bincp.calibration._curve import Curve
from bincp.calibration._early_stopping import default_spread, largest_allowed_count
from bincp.calibration._label_test import line_boundaries, prolonged
from bincp.calibration._sequential import SequentialRule, decide_in_order, exit_probabilities
from bincp.certificates import Certificate, certify
from bincp.smoothing import Gaussian, SparseFlip, Uniform


@st.composite
def rules(draw, max_samples=10):
    """Any boundaries that are allowed, also some that are met before the first draw."""
    m = draw(st.integers(1, max_samples))
    k = draw(st.integers(0, m))
    accept = [*sorted(draw(st.lists(st.integers(0, k), min_size=m, max_size=m))), k]
    # From the end: reject[l] < accept[l] and not above what follows.
    reject = [k - 1]
    for above in reversed(accept[:m]):
        reject.append(draw(st.integers(-2, min(reject[-1], above - 1))))
    return SequentialRule(k, m, accept, np.maximum(reject[::-1], -m - 1))


def boundaries(k, m, spread):
    return line_boundaries(k, m, Fraction(spread))


def calibrated_rule(condition, m_test, spread=None):
    distance = default_spread(m_test) if spread is None else Fraction(spread)
    return line_boundaries(largest_allowed_count(condition, m_test, distance), m_test, distance)


@st.composite
def wide_rules(draw, max_samples=40):
    """Boundaries around a line: most paths live long."""
    m = draw(st.integers(1, max_samples))
    return boundaries(draw(st.integers(0, m)), m, draw(st.floats(0.01, 8)))


ANY_RULE = rules() | wide_rules(10)


def play(rule, path):
    """Return (accepted, draws) of one sequence of hits."""
    count = 0
    for draws, hit in enumerate([0, *path]):
        count += hit
        if count >= rule.accept[draws]:
            return True, draws
        if count <= rule.reject[draws]:
            return False, draws
    raise AssertionError("a label must be decided after all draws")


def enumerate_paths(rule, p):
    """Exact refusal and acceptance probabilities and expected draws, over all 2^m' paths."""
    m = rule.n_test_samples
    refused = accepted = expected = Fraction(0)
    weight = [p**s * (1 - p) ** (m - s) for s in range(m + 1)]
    for path in itertools.product((0, 1), repeat=m):
        yes, draws = play(rule, path)
        w = weight[sum(path)]
        refused, accepted = refused + w * (not yes), accepted + w * yes
        expected += w * draws
    return refused, accepted, expected


def random_hits(rule, n_labels, seed, n=4):
    """Hits (n, K, m') around the line of the rule, where labels are decided late and early."""
    rng = np.random.default_rng(seed)
    p = np.clip(rng.normal(rule.min_count / rule.n_test_samples, 0.3, (n, n_labels, 1)), 0, 1)
    return rng.random((n, n_labels, rule.n_test_samples)) < p


def played(rule, hits):
    """Play all labels by hand: accepted, exits, counts at the exits."""
    flat = hits.reshape(-1, hits.shape[-1])
    results = [play(rule, [int(h) for h in path]) for path in flat]
    counts = [int(path[:draws].sum()) for path, (_, draws) in zip(flat, results, strict=True)]
    columns = ([yes for yes, _ in results], [draws for _, draws in results], counts)
    return tuple(np.array(column).reshape(hits.shape[:-1]) for column in columns)


class TestProbabilities:
    @given(ANY_RULE, st.integers(1, 999).map(lambda i: Fraction(i, 1000)))
    @settings(max_examples=60, deadline=None)
    def test_brute_force(self, rule, p):
        refused, accepted, draws = enumerate_paths(rule, p)
        got = exit_probabilities(rule, np.array([float(p)]), np.array([float(1 - p)]))
        for value, exact in zip(got, (refused, accepted, draws), strict=True):
            assert value[0] == pytest.approx(float(exact), rel=1e-14, abs=0)
        assert rule.acceptance(float(p)) == pytest.approx(float(accepted), rel=1e-13)
        assert rule.expected_draws(float(p)) == pytest.approx(float(draws), rel=1e-13)

    @pytest.mark.parametrize("exponent", [-3, -9, -20])
    def test_refusals_are_accurate_however_small(self, exponent):
        q = Fraction(10) ** exponent
        for rule in (boundaries(5, 10, 1.5), SequentialRule.curtailed(3, 9)):
            refused, _, _ = enumerate_paths(rule, 1 - q)
            accepted = enumerate_paths(rule, q)[1]
            small, rest = np.array([float(q)]), np.array([float(1 - q)])
            assert exit_probabilities(rule, rest, small)[0] == pytest.approx(
                float(refused), rel=1e-13
            )
            assert exit_probabilities(rule, small, rest)[1] == pytest.approx(
                float(accepted), rel=1e-13
            )

    def test_every_label_is_decided_after_the_most_draws(self):
        for spread in (Fraction(1, 2), Fraction(6, 5), 8):
            short = boundaries(5, 10, spread)
            rule = prolonged(short, 30)
            exits = [play(short, path)[1] for path in itertools.product((0, 1), repeat=10)]
            assert max(exits) <= rule.max_draws == short.max_draws <= 10
        assert boundaries(5, 10, 8).max_draws == 10
        assert SequentialRule.curtailed(0, 9).max_draws == 0

    @pytest.mark.parametrize("m", [1, 2, 7, 64, 300, 2000])
    def test_curtailment_is_the_binomial_tail(self, m):
        p = np.linspace(0, 1, 41)
        for k in sorted({0, 1, m // 3, m // 2, m - 1, m} & set(range(m + 1))):
            rule = SequentialRule.curtailed(k, m)
            refused, accepted, draws = exit_probabilities(rule, p, 1 - p)
            # SciPy's own error at m = 2000 is 1e-13.
            np.testing.assert_allclose(accepted, binom.sf(k - 1, m, p), rtol=2e-12, atol=1e-300)
            np.testing.assert_allclose(refused, binom.cdf(k - 1, m, p), rtol=2e-12, atol=1e-300)
            assert (draws <= m * (1 + 1e-12)).all()

    def test_expected_draws_of_curtailment_in_closed_form(self):
        """Up to the first hit, or the m'-th miss: (1 - q^m) / p."""
        p = np.linspace(0.01, 1, 37)
        got = SequentialRule.curtailed(1, 50).expected_draws(p)
        np.testing.assert_allclose(got, (1 - (1 - p) ** 50) / p, rtol=1e-12)

    @given(rules(30) | wide_rules(200))
    @settings(max_examples=60, deadline=None)
    def test_acceptance_does_not_fall(self, rule):
        p = np.concatenate([np.linspace(0, 1, 203), np.geomspace(1e-9, 1, 60)])
        p.sort()
        refused, accepted, _ = exit_probabilities(rule, p, 1 - p)
        assert (np.diff(accepted) >= -1e-13).all()
        assert (np.diff(refused) <= 1e-13).all()
        np.testing.assert_allclose(refused + accepted, 1, rtol=1e-12)

    def test_shapes_and_ends(self):
        rule = boundaries(12, 20, 2.0)
        assert rule.acceptance(0) == 0
        assert rule.acceptance(1.0) == 1
        assert isinstance(rule.acceptance(0.5), float)
        assert rule.acceptance([[0.1, 0.9]]).shape == (1, 2)
        assert rule.acceptance([]).shape == (0,)
        assert rule.expected_draws(np.full((2, 3), 0.5)).shape == (2, 3)
        everything = boundaries(0, 20, 2.0)
        assert everything.acceptance([0, 0.3]).tolist() == [1, 1]
        assert everything.expected_draws(0.3) == 0


class TestBoundaries:
    @given(st.integers(1, 300), st.data())
    @settings(max_examples=200, deadline=None)
    def test_they_are_valid_and_stand_off_the_line(self, m, data):
        k = data.draw(st.integers(0, m))
        spread = data.draw(st.floats(1e-9, 50) | st.sampled_from([5e-324, 1e300]))
        rule = boundaries(k, m, spread)  # checked by the constructor
        draws = np.arange(m + 1)
        curtailed = SequentialRule.curtailed(k, m)
        assert (rule.accept <= curtailed.accept).all()
        assert (rule.reject >= curtailed.reject).all()
        for boundary, limit, distance in (
            (rule.accept, curtailed.accept, rule.accept - draws * k / m),
            (rule.reject, curtailed.reject, draws * k / m - rule.reject),
        ):
            own = boundary != limit
            assert (distance[own] >= spread - 1e-9).all()
            assert (distance[own] < spread + 1 + 1e-9).all()
        if spread > m + 1:
            assert rule == curtailed

    def test_both_grow_with_the_count(self):
        for m, spread in ((1, 0.1), (17, 0.7), (64, 3.2), (250, 20.0)):
            for k in range(m):
                one, two = boundaries(k, m, spread), boundaries(k + 1, m, spread)
                assert (one.accept <= two.accept).all()
                assert (one.reject <= two.reject).all()

    def test_default_spread(self):
        assert default_spread(36) == 2.5


IDENTITY = Certificate.from_regions([1.0], [1.0])
CERTIFICATES = {
    "gaussian": certify(Gaussian(0.25), L2(0.25)),
    "uniform": certify(Uniform(0.433), L1(0.1)),
    "sparse": certify(SparseFlip(0.01, 0.6), Flips(1, 2)),
    "identity": IDENTITY,
}


def largest_mean(u, v, x):
    """Upper concave envelope at x of points (u, v) and of the origin's left side, by hand."""
    hull = []
    for point in sorted(zip(u.tolist(), v.tolist(), strict=True)):
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (point[1] - hull[-2][1]) >= (
            point[0] - hull[-2][0]
        ) * (hull[-1][1] - hull[-2][1]):
            hull.pop()
        hull.append(point)
    return np.interp(x, *zip(*hull, strict=True))


class TestCalibration:
    @pytest.mark.parametrize("name", CERTIFICATES)
    @pytest.mark.parametrize(("m", "m_test"), [(1, 1), (4, 4), (16, 16), (32, 10), (8, 64)])
    def test_the_guarantee_holds_on_a_finer_grid_and_is_tight(self, name, m, m_test):
        certificate = CERTIFICATES[name]
        for n, alpha in ((9, Fraction(1, 5)), (200, Fraction(1, 10)), (1000, Fraction(1, 100))):
            t = math.ceil(0.7 * m)
            share = Fraction(int(alpha * (n + 1)), n + 1)
            requirement = MeanFailure(Curve.around(certificate, t, m, m_test), t, m, share, alpha)
            for spread in (None, 0.6, 3.0):
                rule = calibrated_rule(requirement, m_test, spread)
                p = np.unique(np.concatenate([fine(requirement.curve.p), np.linspace(0, 1, 999)]))
                u = binom.cdf(t - 1, m, p)
                c = np.asarray(certificate.lower(p))

                def worst(rule, u=u, c=c, share=share):
                    return largest_mean(u, exit_probabilities(rule, c, 1 - c)[0], float(share))

                assert worst(rule) <= float(alpha) + 1e-9
                if rule.min_count < m_test and m_test > 1:
                    # One more hit would be too many, but where a grid of 6000 points cannot tell.
                    distance = default_spread(m_test) if spread is None else spread
                    more = boundaries(rule.min_count + 1, m_test, distance)
                    assert worst(more) >= float(alpha) - 6e-4

    def test_a_wide_spread_costs_nothing(self):
        certificate = CERTIFICATES["gaussian"]
        curve = Curve.around(certificate, 23, 32, 32)
        requirement = MeanFailure(curve, 23, 32, Fraction(20, 201), Fraction(1, 10))
        fixed = calibrated_rule(requirement, 32, 1e9)
        assert fixed == SequentialRule.curtailed(fixed.min_count, 32)
        spread = calibrated_rule(requirement, 32)
        assert fixed.min_count - 1 <= spread.min_count <= fixed.min_count
        p = np.linspace(0, 1, 101)
        assert spread.expected_draws(p).max() < 22 < 27 < fixed.expected_draws(p).max()

    @pytest.mark.parametrize(
        ("spread", "error"),
        [
            (0, ValueError),
            (-1.0, ValueError),
            (math.inf, ValueError),
            (math.nan, ValueError),
            ("one", ValueError),
            ([1], TypeError),
            (True, TypeError),
        ],
    )
    def test_bad_spread(self, spread, error):
        rule = BinCP(IDENTITY).calibrate(np.random.default_rng(0).normal(size=(40, 4)))
        with pytest.raises(error, match="`spread` must be"):
            rule.sequential_rule(spread=spread)


def fine(grid):
    """Return a grid ten times finer."""
    steps = np.arange(10) / 10
    return np.append((grid[:-1, None] + np.diff(grid)[:, None] * steps).ravel(), grid[-1])


class TestLabels:
    @given(ANY_RULE | wide_rules(), st.integers(1, 3), st.integers(0, 2**32 - 1), st.data())
    @settings(max_examples=150, deadline=None)
    def test_rounds_do_not_matter(self, rule, n_labels, seed, data):
        m = rule.n_test_samples
        hits = random_hits(rule, n_labels, seed)
        accepted, exits, counts = played(rule, hits)
        labels = rule.start(hits.shape[:2])
        while (draws := labels.draws).min() < m:
            behind = np.flatnonzero(draws < m)
            inputs = np.array(
                data.draw(st.lists(st.sampled_from(behind.tolist()), min_size=1, unique=True))
            )
            length = data.draw(st.integers(0, int(m - draws[inputs].max())))
            if data.draw(st.booleans()):
                block = [hits[i, :, draws[i] : draws[i] + length] for i in inputs]
                labels.update(np.array(block), inputs)
            else:  # rows of a model, here one draw of each input after the other
                for step in range(length):
                    labels.update_rows(hits[inputs, :, draws[inputs] + step], inputs)
            if data.draw(st.integers(0, 4)) == 0:
                break
        seen = exits <= labels.draws[:, None]
        np.testing.assert_array_equal(labels.decided, seen)
        np.testing.assert_array_equal(labels.accepted, seen & accepted)
        np.testing.assert_array_equal(labels.exits, np.where(seen, exits, -1))
        np.testing.assert_array_equal(labels.counts[seen], counts[seen])
        np.testing.assert_array_equal(labels.undecided, np.flatnonzero(~seen.all(axis=1)))

    @given(ANY_RULE | wide_rules(), st.integers(1, 3), st.integers(0, 2**32 - 1))
    @settings(max_examples=100, deadline=None)
    def test_looking_after_every_draw_is_the_same(self, rule, n_labels, seed):
        hits = random_hits(rule, n_labels, seed)
        accepted, exits, _ = played(rule, hits)
        found, said = np.full(exits.shape, -1), np.zeros(exits.shape, bool)
        for draws in range(rule.n_test_samples + 1):
            decided, yes = rule.update(hits[..., :draws].sum(axis=-1), draws)
            assert not (yes & ~decided).any()
            new = decided & (found < 0)
            found[new], said[new] = draws, yes[new]
        np.testing.assert_array_equal(found, exits)
        np.testing.assert_array_equal(said, accepted)

    @given(st.integers(1, 40), st.data(), st.integers(0, 2**32 - 1))
    @settings(max_examples=100, deadline=None)
    def test_curtailment_decides_as_the_fixed_rule(self, m, data, seed):
        k = data.draw(st.integers(0, m))
        rule = SequentialRule.curtailed(k, m)
        hits = random_hits(rule, 3, seed)
        labels = rule.start(hits.shape[:2])
        labels.update(hits)
        assert labels.decided.all()
        np.testing.assert_array_equal(labels.accepted, hits.sum(axis=-1) >= k)
        # A label leaves as soon as it can: one draw earlier its end was open.
        before = np.maximum(labels.exits - 1, 0)
        for index in np.ndindex(labels.shape):
            seen = int(hits[index][: before[index]].sum())
            if labels.exits[index]:
                assert seen < k <= seen + m - before[index]

    @given(ANY_RULE | wide_rules(), st.integers(1, 3), st.integers(0, 2**32 - 1))
    @settings(max_examples=100, deadline=None)
    def test_next_round_wastes_little(self, rule, n_labels, seed):
        hits = random_hits(rule, n_labels, seed)
        exits = played(rule, hits)[1].max(axis=1)
        labels = rule.start(hits.shape[:2])
        assert (exits >= rule.min_draws).all()
        for _ in range(rule.n_test_samples + 1):
            inputs, numbers = labels.next_round()
            if not len(inputs):
                break
            assert (numbers >= 1).all()
            for i, number in zip(inputs, numbers, strict=True):
                draws = labels.draws[i]
                assert number <= max(exits[i] - draws, draws // 8)
                labels.update(hits[[i], :, draws : draws + number], [i])
        assert labels.decided.all()

    def test_shapes(self):
        rule = boundaries(5, 9, 2.0)
        hits = random_hits(rule, 6, 1)
        accepted = played(rule, hits)[0]
        labels = rule.start((4, 2, 3))
        labels.update(hits.reshape(4, 2, 3, 9))
        np.testing.assert_array_equal(labels.accepted, accepted.reshape(4, 2, 3))
        labels = rule.start(24)
        labels.update(hits.reshape(24, 9))
        np.testing.assert_array_equal(labels.accepted, accepted.ravel())
        assert labels.counts.shape == labels.exits.shape == (24,)

    def test_non_contiguous_hits(self):
        rule = boundaries(5, 9, 2.0)
        hits = random_hits(rule, 6, 1)
        accepted = played(rule, hits)[0]
        for given_hits in (np.asfortranarray(hits), np.repeat(hits, 2, axis=2)[:, :, ::2]):
            labels = rule.start((4, 6))
            labels.update(given_hits)
            np.testing.assert_array_equal(labels.accepted, accepted)

    def test_torch_hits(self):
        torch = pytest.importorskip("torch")
        rule = boundaries(5, 9, 2.0)
        hits = random_hits(rule, 6, 1)
        labels = rule.start((4, 6))
        labels.update(torch.from_numpy(hits))
        np.testing.assert_array_equal(labels.accepted, played(rule, hits)[0])

    def test_update_broadcasts_draws(self):
        rule = SequentialRule.curtailed(2, 4)
        decided, accepted = rule.update([[2, 0], [1, 0]], [[2], [3]])
        assert decided.tolist() == [[True, False], [False, True]]
        assert accepted.tolist() == [[True, False], [False, False]]
        decided, accepted = rule.update(2, 2)
        assert decided
        assert accepted


class TestErrors:
    @pytest.mark.parametrize(
        ("accept", "reject", "message"),
        [
            ([2, 2, 2], [-1, 0, 0, 1], r"`accept` must have shape .* \(4,\), got shape \(3,\)"),
            ([2, 2, 2, 2], [[-1, 0, 0, 1]], r"`reject` must have shape .* got shape \(1, 4\)"),
            ([2, 2, 2, 1], [-1, 0, 0, 1], "`accept` must end with min_count = 2, got 1"),
            ([2, 2, 2, 2], [-1, 0, 0, 0], "`reject` must end with min_count - 1 = 1, got 0"),
            ([2, 2, 2, 3], [-1, 0, 0, 1], r"`accept` must be in \[0, 2\], got 3"),
            ([2, 2, 2, 2], [-1, 0, 0, 2], r"`reject` must be in \[-4, 1\], got 2"),
            ([2, 2, 2, 2], [-9, 0, 0, 1], r"`reject` must be in \[-4, 1\], got -9"),
            ([1, 1, 1, 2], [-1, 0, 1, 1], r"got reject\[2\] = 1 and accept\[2\] = 1"),
            ([2, 1, 2, 2], [-1, 0, 0, 1], "`accept` must not decrease, got 1 after 2 at index 1"),
            ([2, 2, 2, 2], [0, -1, 0, 1], "`reject` must not decrease, got -1 after 0 at index 1"),
        ],
    )
    def test_boundaries(self, accept, reject, message):
        with pytest.raises(ValueError, match=message):
            SequentialRule(2, 3, accept, reject)

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda r: SequentialRule.curtailed(5, 4), ValueError, "`min_count` must be in"),
            (lambda r: SequentialRule.curtailed(-1, 4), ValueError, "`min_count` must be in"),
            (lambda r: SequentialRule.curtailed(1.0, 4), TypeError, "`min_count` must be an int"),
            (lambda r: SequentialRule.curtailed(1, 0), ValueError, "`n_test_samples` must be in"),
            (
                lambda r: SequentialRule(1, 1, [1.0, 1.0], [-1, 0]),
                TypeError,
                "`accept` must be integers, got dtype float64",
            ),
            (lambda r: r.update([5], 5), ValueError, r"`draws` must be in \[0, 4\]"),
            (lambda r: r.update([3, 1], 2), ValueError, r"got 3 hits in 2 draws at index \(0,\)"),
            (lambda r: r.update([-1], 2), ValueError, r"`counts` must be in \[0, 4\]"),
            (lambda r: r.update([1.0], 2), TypeError, "`counts` must be integers"),
            (lambda r: r.update([1], 2.0), TypeError, "`draws` must be integers"),
            (lambda r: r.update([1, 1], [2, 2, 2]), ValueError, "`draws` must be broadcastable"),
            (lambda r: r.update(1, [2, 2]), ValueError, "`draws` must be broadcastable"),
            (lambda r: r.acceptance(1.5), ValueError, r"`p` must be in \[0, 1\], got 1.5"),
            (lambda r: r.expected_draws(math.nan), ValueError, "`p` must be in"),
            (lambda r: r.acceptance("0.5"), TypeError, "`p` must be real"),
            (lambda r: r.start(()), ValueError, "`shape` must have at least one axis"),
            (lambda r: r.start((2, 0)), ValueError, "`shape` must be at least 1"),
            (lambda r: r.start(2.0), TypeError, "`shape` must be an integer"),
        ],
    )
    def test_rule(self, call, error, message):
        with pytest.raises(error, match=message):
            call(boundaries(2, 4, 1.0))

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (
                lambda s: s.update(np.ones((2, 3, 1), int)),
                TypeError,
                "`hits` must be bools, got dtype int64",
            ),
            (
                lambda s: s.update(np.ones((2, 3), bool)),
                ValueError,
                r"`hits` must have shape \(2, 3, r\), got \(2, 3\)",
            ),
            (
                lambda s: s.update(np.ones((2, 3, 5), bool)),
                ValueError,
                "more than the m' = 4 draws of an input, got 5 for input 0, which has had 0",
            ),
            (
                lambda s: s.update(np.ones((1, 3, 1), bool), [2]),
                ValueError,
                r"`inputs` must be in \[0, 1\], got 2",
            ),
            (
                lambda s: s.update(np.ones((2, 3, 1), bool), [0, 0]),
                ValueError,
                "`inputs` must name each input once",
            ),
            (
                lambda s: s.update(np.ones((1, 3, 1), bool), 0),
                ValueError,
                "`inputs` must have one axis",
            ),
            (
                lambda s: s.update_rows(np.ones((2, 4), bool), [0, 1]),
                ValueError,
                r"`hits` must have shape \(2, 3\), got \(2, 4\)",
            ),
            (
                lambda s: s.update_rows(np.ones((5, 3), bool), [1] * 5),
                ValueError,
                "got 5 for input 1, which has had 0",
            ),
            (
                lambda s: s.update_rows(np.ones((1, 3), bool), [0.0]),
                TypeError,
                "`inputs` must be integers",
            ),
        ],
    )
    def test_tracker(self, call, error, message):
        labels = boundaries(2, 4, 1.0).start((2, 3))
        with pytest.raises(error, match=message):
            call(labels)
        assert (labels.draws == 0).all()  # nothing was taken

    def test_a_rule_does_not_change(self):
        accept = np.array([2, 2, 2])
        rule = SequentialRule(2, 2, accept, [-1, 0, 1])
        accept[:] = 0
        assert rule.accept.tolist() == [2, 2, 2]
        assert rule == SequentialRule.curtailed(2, 2)
        assert hash(rule) == hash(SequentialRule.curtailed(2, 2))
        assert rule != SequentialRule.curtailed(1, 2)
        assert repr(rule).startswith("SequentialRule(min_count=2, n_test_samples=2, ")


COPIES = {
    "itself": lambda rule: rule,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda rule: pickle.loads(pickle.dumps(rule)),
}


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=list(COPIES))
class TestNothingChanges:
    """Boundaries that change after a calibration would decide without its guarantee."""

    @pytest.mark.parametrize("name", ["min_count", "n_test_samples", "accept", "reject", "other"])
    def test_attributes(self, duplicate, name):
        rule = duplicate(boundaries(2, 4, 1.0))
        with pytest.raises(AttributeError, match=f"`{name}` of a SequentialRule must not be set"):
            setattr(rule, name, getattr(rule, name, 0))
        with pytest.raises(AttributeError, match=f"`{name}` of a SequentialRule must not be"):
            delattr(rule, name)
        assert rule == boundaries(2, 4, 1.0)

    @pytest.mark.parametrize("name", ["accept", "reject"])
    def test_arrays(self, duplicate, name):
        array = getattr(duplicate(boundaries(2, 4, 1.0)), name)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True

    def test_a_calibrated_rule(self, duplicate):
        scores = np.random.default_rng(0).normal(1, 0.5, (200, 8))
        certificate = certify(Gaussian(0.5), L2(0.1))
        rule = duplicate(BinCP(certificate, passes="auto").calibrate(scores))
        with pytest.raises(AttributeError, match="must not be set"):
            rule.boundaries_.accept = np.zeros(9, np.int32)
        for test in (rule.boundaries_, rule.sequential_rule(spread=1)):
            with pytest.raises(ValueError, match="WRITEABLE"):
                test.accept.flags.writeable = True
        for name in ("losses_", "boundaries_", "min_count_", "tau_"):
            with pytest.raises(AttributeError, match="read-only"):
                setattr(rule, name, None)
        assert isinstance(rule.losses_, tuple)

    def test_a_plan(self, duplicate):
        early = duplicate(plan(certify(Gaussian(0.5), L2(0.1)), n=200, m=8, passes="auto"))
        for part in (early, early.settings):
            for field in dataclasses.fields(part):
                with pytest.raises(dataclasses.FrozenInstanceError):
                    setattr(part, field.name, None)
        with pytest.raises(ValueError, match="WRITEABLE"):
            early.boundaries.reject.flags.writeable = True

    def test_a_tracker(self, duplicate):
        labels = duplicate(boundaries(2, 4, 1.0).start((2, 3)))
        for name in ("rule", "shape"):
            with pytest.raises(AttributeError, match="no setter"):
                setattr(labels, name, (1,))
        labels.counts[:] = 9
        assert labels.counts.max() == 0


def test_no_labels_have_empty_sets():
    """Scores (n, 0, m') were divided by the size of their rows."""
    tests = SequentialRule.curtailed(2, 4)
    assert decide_in_order(tests, as_scores("scores", np.ones((3, 0, 4))), 0.5).shape == (3, 0)


def test_a_budget_beyond_the_range_of_doubles_is_none():
    certificate = certify(Gaussian(0.5), L2(0.25))
    huge, many = (plan(certificate, n=50, m=4, passes=budget) for budget in (10**399, 10**9))
    assert huge.boundaries == many.boundaries
    assert huge.losses == many.losses
