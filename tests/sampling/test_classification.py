"""Smoothed classification against the published procedures, ART's, exact laws, and bad input."""

import functools
import itertools
import math
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bincp
from bincp import intervals
from bincp._core import _operators
from bincp.balls import L1, L2, Flips, Linf
from bincp.classification import (
    ABSTAIN,
    certified_accuracy,
    certified_labels,
    is_certified,
    predict,
)
from bincp.errors import AbstentionWarning
from bincp.sampling import sample_scores, vote_counts
from bincp.smoothing import Gaussian, SparseFlip, Uniform

hopeless = pytest.mark.filterwarnings("ignore::bincp.errors.AbstentionWarning")

BOUND_FUNCTIONS = {"randomized": "randomized_clopper_pearson", "sequence": "confidence_sequence"}

# ---- what was published --------------------------------------------------------------------------


def cohen_lower(successes, draws, alpha):
    """Their proportion_confint(successes, draws, alpha=2 * alpha, method="beta")[0]."""
    if successes == 0:
        return 0.0
    return scipy.stats.beta.ppf(alpha, successes, draws - successes + 1)


def cohen_upper(successes, draws, alpha):
    if successes == draws:
        return 1.0
    return scipy.stats.beta.ppf(1 - alpha, successes + 1, draws - successes)


def cohen_predict(counts, alpha):
    top = counts.argsort()[::-1][:2]
    first, second = (int(c) for c in counts[top])
    pvalue = scipy.stats.binomtest(first, first + second, p=0.5).pvalue
    return (ABSTAIN if pvalue > alpha else top[0]), pvalue


def cohen_certify(selection_counts, counts, alpha, sigma):
    label = selection_counts.argmax()
    bound = cohen_lower(int(counts[label]), int(counts.sum()), alpha)
    if bound < 0.5:
        return ABSTAIN, 0.0
    return label, sigma * scipy.stats.norm.ppf(bound)


def vote_rows(rng, n_rows, n_draws, n_labels):
    shares = rng.dirichlet(np.full(n_labels, 0.3), n_rows)
    return np.stack([rng.multinomial(n_draws, share) for share in shares])


class TestPredict:
    @hopeless
    @pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
    @pytest.mark.parametrize("n", [1, 7, 12, 40, 101])
    def test_agrees_with_the_binomial_test(self, alpha, n):
        counts = np.array(
            [[s, n - s - r, r] for r in range(0, n, 1 + n // 8) for s in range(n - r + 1)]
        )
        for found, row in zip(predict(counts, alpha=alpha), counts, strict=True):
            expected, pvalue = cohen_predict(row, alpha)
            if not math.isclose(pvalue, alpha, rel_tol=1e-9):
                assert found == (ABSTAIN if expected == ABSTAIN else row.argmax())

    def test_too_few_draws_warn_and_abstain(self):
        with pytest.warns(AbstentionWarning, match="even if all of 10 draws agree, .*; 11 draws"):
            assert predict([[10, 0]], alpha=0.001).tolist() == [ABSTAIN]
        assert predict([[11, 0]], alpha=0.001).tolist() == [0]

    @hopeless
    @settings(deadline=None, max_examples=100)
    @given(st.integers(1, 40), st.fractions(min_value="1/100000", max_value="1/2"))
    def test_warns_exactly_where_nothing_can_decide(self, n, alpha):
        can_decide = Fraction(2, 2**n) < alpha
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            decided = predict([[n, 0]], alpha=alpha)[0] == 0
        assert (not caught) == can_decide
        # The bound is rounded down, so it may abstain where the p-value is alpha but for rounding.
        assert decided == can_decide or math.isclose(2 * 0.5**n, alpha)

    @pytest.mark.parametrize("p", [(0.34, 0.33, 0.33), (0.5, 0.5, 0.0), (0.6, 0.3, 0.1)])
    @pytest.mark.parametrize("alpha", [0.05, 0.2])
    def test_errs_with_probability_alpha_at_most(self, p, alpha):
        n = 14
        counts = [c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n]
        labels = predict(counts, alpha=alpha)
        law = scipy.stats.multinomial(n, p).pmf(np.array(counts))
        best = np.flatnonzero(np.array(p) == max(p))
        wrong = (labels != ABSTAIN) & ~np.isin(labels, best)
        assert law[wrong].sum() <= alpha

    def test_one_label(self):
        assert predict([[20]], alpha=0.001).tolist() == [0]


class TestCertify:
    @pytest.mark.parametrize("sigma", [0.25, 1.0])
    @pytest.mark.parametrize("n", [100, 1000])
    def test_agrees_with_the_published_code(self, sigma, n):
        rng = np.random.default_rng(n)
        counts = vote_rows(rng, 60, n, 4)
        selection = np.stack([rng.multinomial(100, row / n) for row in counts])
        ours = certified_labels(selection, counts, Gaussian(sigma), L2, alpha=0.001)
        for i, (first, second) in enumerate(zip(selection, counts, strict=True)):
            label, radius = cohen_certify(first, second, 0.001, sigma)
            assert ours.labels[i] == label
            assert ours.radii[i] == pytest.approx(radius, rel=1e-9)

    def test_counts_are_integers_and_bounds_are_doubles(self):
        ours = certified_labels([[5, 0]], [[10**9, 0]], Gaussian(1.0), L2, alpha="0.001")
        assert 5.675659798037329 * (1 - 1e-10) < ours.radii[0] <= 5.675659798037329

    @settings(deadline=None, max_examples=30)
    @given(st.integers(60, 1000), st.floats(0.05, 5.0))
    def test_the_radius_is_rounded_down(self, successes, sigma):
        ours = certified_labels([[1, 0]], [[successes, 1000 - successes]], Gaussian(sigma), L2)
        with mpmath.workdps(40):
            p = mpmath.mpf(float(ours.p_lower[0]))
            exact = mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1) * mpmath.mpf(sigma)
            if exact <= 0:
                assert ours.labels[0] == ABSTAIN
                assert ours.radii[0] == 0
            else:
                assert ours.radii[0] <= exact
                assert ours.radii[0] >= exact * (1 - 1e-9)

    @pytest.mark.parametrize("n_labels", [2, 3, 10])
    def test_multiclass_agrees_with_theorem_1(self, n_labels):
        rng = np.random.default_rng(n_labels)
        n, sigma, alpha = 500, 0.5, 0.01
        counts = vote_rows(rng, 40, n, n_labels)
        ours = certified_labels(
            counts + 0, counts, Gaussian(sigma), L2, alpha=alpha, multiclass=True
        )
        for i, row in enumerate(counts):
            label = row.argmax()
            own = cohen_lower(row[label], n, alpha / n_labels)
            rival = cohen_upper(np.delete(row, label).max(), n, alpha / n_labels)
            ppf = scipy.stats.norm.ppf
            radius = sigma / 2 * (ppf(own) - ppf(min(rival, 1 - own)))
            assert (ours.labels[i] == ABSTAIN) == (radius < 0)
            assert ours.radii[i] == pytest.approx(max(radius, 0), rel=1e-8, abs=1e-12)

    def test_multiclass_helps_where_the_rest_is_shared(self):
        counts = [[450, 110, 110, 110, 110, 110]]
        assert certified_labels([[5, 0, 0, 0, 0, 0]], counts, Gaussian(1.0), L2).labels == [ABSTAIN]
        assert (
            certified_labels([[5, 0, 0, 0, 0, 0]], counts, Gaussian(1.0), L2, multiclass=True).radii
            > 0.3
        )

    def test_other_balls(self):
        counts, selection = [[990, 10]], [[9, 1]]
        p = cohen_lower(990, 1000, 0.001)
        uniform = certified_labels(selection, counts, Uniform(0.5), L1).radii[0]
        assert uniform == pytest.approx(2 * 0.5 * (p - 0.5), rel=1e-12)
        l2 = certified_labels(selection, counts, Gaussian(0.25), L2).radii[0]
        linf = certified_labels(
            selection, counts, Gaussian(0.25), functools.partial(Linf, dim=16)
        ).radii[0]
        assert linf == pytest.approx(l2 / 4, rel=1e-9)
        flips = certified_labels(
            selection, counts, SparseFlip(0.01, 0.6), lambda r: Flips(0, deletions=int(r))
        )
        assert math.floor(flips.radii[0]) == max(
            d
            for d in range(20)
            if bincp.certify(SparseFlip(0.01, 0.6), Flips(0, d)).lower(p * (1 - 1e-12)) > 0.5
        )

    def test_the_radius_is_the_last_ball_that_is_certified(self):
        selection, counts = [[9, 1, 0]] * 2, [[700, 250, 50], [930, 60, 10]]
        for multiclass in (False, True):
            options = {"alpha": 0.01, "multiclass": multiclass}
            radii = certified_labels(selection, counts, Gaussian(0.5), L2, **options).radii
            for i, radius in enumerate(radii):
                for factor, expected in ((1, True), (1 + 1e-9, False)):
                    certificate = bincp.certify(Gaussian(0.5), L2(radius * factor))
                    found = is_certified(selection, counts, certificate, **options)
                    assert found[i] == expected

    def test_the_selection_decides_the_label(self):
        ours = certified_labels([[0, 9], [9, 0]], [[990, 10], [990, 10]], Gaussian(1.0), L2)
        assert ours.labels.tolist() == [ABSTAIN, 0]
        assert ours.p_lower[0] < 0.05


class TestIsCertified:
    def test_sparse_flips_by_enumeration(self):
        """Against the largest of all likelihood-ratio tests on three binary coordinates."""
        scheme, clean = SparseFlip(0.1, 0.3), (1, 1, 0)
        certificate = bincp.certify(scheme, Flips(additions=1, deletions=1))
        space = list(itertools.product((0, 1), repeat=3))

        def law(x):
            flips = {0: 0.1, 1: 0.3}
            return np.array(
                [
                    math.prod(
                        flips[a] if a != b else 1 - flips[a] for a, b in zip(x, z, strict=True)
                    )
                    for z in space
                ]
            )

        attacked = [x for x in space if sum(x) == 2 and x[2] == 1] + [(0, 1, 0), (1, 1, 1), clean]
        for votes in range(500, 1001, 20):
            p = cohen_lower(votes, 1000, 0.001)
            worst = 1.0
            for x in attacked:
                q, order = law(x), np.argsort(law(x) / law(clean), kind="stable")
                mass = np.concatenate([[0], np.cumsum(law(clean)[order])])
                worst = min(worst, np.interp(p, mass, np.concatenate([[0], np.cumsum(q[order])])))
            found = is_certified([[9, 1]], [[votes, 1000 - votes]], certificate)[0]
            assert found == (worst > 0.5) or abs(worst - 0.5) < 1e-9

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.integers(0, 300), min_size=2, max_size=6).filter(any), st.booleans())
    @hopeless
    def test_what_is_certified_with_more_votes_stays_certified(self, votes, multiclass):
        certificate = bincp.certify(Gaussian(0.5), L2(0.1))
        options = {"alpha": 0.01, "multiclass": multiclass}
        fewer = is_certified([votes], np.array([votes]), certificate, **options)[0]
        more = np.array([votes])
        top = more[0].argmax()
        loser = np.flatnonzero((more[0] > 0) & (np.arange(len(votes)) != top))
        if len(loser):
            more[0, [top, loser[0]]] += (1, -1)
            assert is_certified([votes], more, certificate, **options)[0] >= fewer

    def test_multiclass_uses_the_bound_over_the_same_ball(self):
        """Additions and deletions differ: `upper` of the certificate itself is over the other."""
        scheme = SparseFlip(0.01, 0.6)
        certificate = bincp.certify(scheme, Flips(additions=1, deletions=2))
        counts = np.array([[9_000 - 300 * i, 300 * i, 1_000] for i in range(15)])
        found = is_certified(np.eye(1, 3, dtype=int).repeat(15, 0), counts, certificate,
                             multiclass=True)  # fmt: skip
        for row, certified in zip(counts, found, strict=True):
            own = cohen_lower(row[0], 10_000, 0.001 / 3)
            rival = min(cohen_upper(row[1:].max(), 10_000, 0.001 / 3), 1 - own)
            # Of the complement: no more than 1 - (least of the rest) over the same ball.
            assert certified == (certificate.lower(own) > 1 - certificate.lower(1 - rival))

    @pytest.mark.usefixtures("clean_registry")
    def test_without_an_inverted_ball(self):
        class OneWay:
            pass

        bincp.register(Gaussian, OneWay)(lambda scheme, ball: _operators.gaussian(0.1))
        certificate = bincp.certify(Gaussian(0.5), OneWay())
        assert is_certified([[9, 1]], [[999, 1]], certificate).tolist() == [True]
        with pytest.raises(bincp.CertificateError, match=r"OneWay must have a method inverse\(\)"):
            is_certified([[9, 1]], [[999, 1]], certificate, multiclass=True)


# ---- ART -----------------------------------------------------------------------------------------


class TestOtherBounds:
    """Randomised bounds and confidence sequences in place of Clopper and Pearson's."""

    def votes(self):
        rng = np.random.default_rng(5)
        selection, counts = vote_rows(rng, 60, 20, 3), vote_rows(rng, 60, 200, 3)
        return selection, counts, rng.random(60)

    @pytest.mark.parametrize("multiclass", [False, True])
    def test_the_certificate_is_read_at_their_bounds(self, multiclass):
        selection, counts, uniform = self.votes()
        certificate = bincp.certify(Gaussian(1.0), L2(0.2))
        label = selection.argmax(axis=1)
        own, level = counts[np.arange(60), label], Fraction(1, 1000) / (3 if multiclass else 1)
        others = counts.copy()
        others[np.arange(60), label] = 0
        for name, extra in (("randomized", [uniform]), ("sequence", [])):
            lower, upper = (
                getattr(intervals, f"{kind}_{side}")
                for kind in [BOUND_FUNCTIONS[name]]
                for side in ("lower", "upper")
            )
            p = lower(own, 200, level, *extra)
            q = np.minimum(upper(others.max(axis=1), 200, level, *extra), np.nextafter(1 - p, 1))
            most = certificate.inverse().upper(q) if multiclass else 0.5
            found = is_certified(
                selection,
                counts,
                certificate,
                bound=name,
                uniform=extra[0] if extra else None,
                multiclass=multiclass,
            )
            np.testing.assert_array_equal(found, certificate.lower(p) > most)
            assert 0 < found.sum() < 60

    def test_a_random_number_never_lowers_a_radius(self):
        selection, counts, uniform = self.votes()
        plain = certified_labels(selection, counts, Gaussian(1.0), L2)
        found = certified_labels(
            selection, counts, Gaussian(1.0), L2, bound="randomized", uniform=uniform
        )
        assert (found.radii >= plain.radii * (1 - 1e-9)).all()
        assert (found.radii > plain.radii * (1 + 1e-6)).any()

    def test_votes_may_be_drawn_until_an_input_is_certified(self):
        certificate = bincp.certify(Gaussian(1.0), L2(0.2))
        selection = np.array([[9, 1], [9, 1]])
        counts = np.array([[40, 0], [300, 40]])  # of different numbers of votes
        found = is_certified(selection, counts, certificate, bound="sequence")
        one_by_one = [
            is_certified(selection[i : i + 1], counts[i : i + 1], certificate, bound="sequence")[0]
            for i in range(2)
        ]
        assert found.tolist() == one_by_one == [True, True]
        with pytest.raises(ValueError, match="equally many draws a row"):
            is_certified(selection, counts, certificate)

    def test_stopping_at_the_first_certificate_errs_with_probability_alpha_at_most(self):
        # The true probability is on the edge of what can be certified: each certificate is wrong.
        certificate = bincp.certify(Gaussian(1.0), L2(0.2))
        p = Fraction(certificate.upper(0.5))
        alpha, horizon = Fraction(1, 10), 50
        wrong = {}
        for bound in ("sequence", "clopper-pearson"):
            alive, wrong[bound] = {0: Fraction(1)}, Fraction(0)
            for m in range(1, horizon + 1):
                after = {}
                for s, weight in alive.items():
                    after[s] = after.get(s, 0) + weight * (1 - p)
                    after[s + 1] = after.get(s + 1, 0) + weight * p
                hits = sorted(after)
                selection = np.tile([1, 0], (len(hits), 1))
                counts = np.array([[s, m - s] for s in hits])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", AbstentionWarning)
                    done = is_certified(selection, counts, certificate, alpha=alpha, bound=bound)
                wrong[bound] += sum(after[s] for s, one in zip(hits, done, strict=True) if one)
                alive = {s: after[s] for s, one in zip(hits, done, strict=True) if not one}
        assert wrong["sequence"] <= alpha < wrong["clopper-pearson"]

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"bound": "hoeffding"}, ValueError, "`bound` must be one of clopper-pearson"),
            ({"bound": None}, ValueError, "`bound` must be one of"),
            ({"bound": "randomized"}, TypeError, "`uniform` must be given for bound='randomized'"),
            ({"uniform": [0.5]}, TypeError, "`uniform` must be given for bound='randomized'"),
            (
                {"bound": "randomized", "uniform": [0.5, 0.5]},
                ValueError,
                r"`uniform` must have shape \(1,\), got \(2,\)",
            ),
            (
                {"bound": "randomized", "uniform": [2.0]},
                ValueError,
                r"`uniform` must be in \[0, 1\]",
            ),
        ],
    )
    def test_bad_arguments(self, options, error, message):
        with pytest.raises(error, match=message):
            certified_labels([[9, 1]], [[90, 10]], Gaussian(1.0), L2, **options)


class TestArt:
    @pytest.fixture
    def smoothed(self):
        pytest.importorskip("art")
        from art.estimators.certification.randomized_smoothing import PyTorchRandomizedSmoothing

        class FromCounts(PyTorchRandomizedSmoothing):
            """Of given votes; their bound is that of statsmodels, which is not installed."""

            def _prediction_counts(self, x, n=None, batch_size=128):
                return self.votes.pop(0).astype(float)

            def _lower_confidence_bound(self, n_class_samples, n_total_samples):
                return cohen_lower(n_class_samples, n_total_samples, self.alpha)

        return FromCounts(
            torch.nn.Linear(2, 3),
            loss=torch.nn.CrossEntropyLoss(),
            input_shape=(2,),
            nb_classes=3,
            device_type="cpu",
            scale=0.5,
            alpha=0.01,
            sample_size=100,
        )

    def test_predict(self, smoothed):  # ART counts in floats, and SciPy wants integers
        counts = vote_rows(np.random.default_rng(0), 50, 100, 3)
        smoothed.votes = list(counts)
        theirs = smoothed.predict(np.zeros((50, 2), np.float32))
        expected = np.where(theirs.any(axis=1), theirs.argmax(axis=1), ABSTAIN)
        np.testing.assert_array_equal(predict(counts, alpha=0.01), expected)

    def test_certified_labels(self, smoothed):
        counts = vote_rows(np.random.default_rng(1), 30, 500, 3)
        selection = vote_rows(np.random.default_rng(2), 30, 100, 3)
        smoothed.votes = [row for pair in zip(selection, counts, strict=True) for row in pair]
        labels, radii = smoothed.certify(np.zeros((30, 2), np.float32), n=500)
        ours = certified_labels(selection, counts, Gaussian(0.5), L2, alpha=0.01)
        np.testing.assert_array_equal(ours.labels, labels)
        np.testing.assert_allclose(ours.radii, radii, rtol=1e-9)


# ---- accuracy and votes --------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-1, 2), st.sampled_from([0.0, 0.1, 0.5]), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), max_size=4),
)
def test_certified_accuracy(points, at):
    labels, radii, truth = (np.array(values) for values in zip(*points, strict=True))
    expected = [np.mean([a == b and r >= q for a, r, b in points]) for q in at]
    found = certified_accuracy(labels, radii, truth, np.array(at, dtype=float))
    np.testing.assert_allclose(found, expected, rtol=1e-15)


class TestVoteCounts:
    def test_votes_are_largest_logits(self):
        torch.manual_seed(0)
        model, x = torch.nn.Linear(4, 3), torch.randn(6, 4)
        counts = vote_counts(model, x, Gaussian(1.0), 50, batch_size=7)
        top = sample_scores(model, x, Gaussian(1.0), 50, phase="test", score="logit").argmax(1)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, [np.bincount(row, minlength=3) for row in top])

    def test_ranges_of_draws_are_disjoint(self):
        torch.manual_seed(0)
        model, x = torch.nn.Linear(4, 3), torch.randn(6, 4)
        whole = vote_counts(model, x, Gaussian(1.0), 50)
        parts = [
            vote_counts(model, x, Gaussian(1.0), 20),
            vote_counts(model, x, Gaussian(1.0), 30, first_draw=20),
        ]
        np.testing.assert_array_equal(sum(parts), whole)

    def test_ties_go_to_the_first_label(self):
        counts = vote_counts(lambda x: torch.zeros(len(x), 3), torch.zeros(2, 4), Gaussian(1.0), 9)
        assert counts.tolist() == [[9, 0, 0]] * 2

    def test_bad_input(self):
        model, x = torch.nn.Linear(4, 3), torch.zeros(2, 4)
        with pytest.raises(ValueError, match="`first_draw` must be in"):
            vote_counts(model, x, Gaussian(1.0), 9, first_draw=2**31 - 9)
        with pytest.raises(TypeError, match="`first_draw` must be an integer"):
            vote_counts(model, x, Gaussian(1.0), 9, first_draw=1.0)
        with pytest.raises(ValueError, match="NaN"):
            vote_counts(lambda x: x * torch.nan, x, Gaussian(1.0), 9)

    def test_a_progress_bar_counts_draws(self, capfd):
        vote_counts(torch.nn.Linear(4, 3), torch.zeros(2, 4), Gaussian(1.0), 9, progress=True)
        assert "18/18" in capfd.readouterr().err


# ---- bad input -----------------------------------------------------------------------------------

VOTES = [[990, 10], [600, 400]]


class TestBadInput:
    @pytest.mark.parametrize(
        ("counts", "error", "message"),
        [
            ([[95.0, 5.0]], TypeError, "must be integers, got dtype float64"),
            ([[0.95, 0.05]], TypeError, "must be integers, got dtype float64"),
            ([95, 5], ValueError, r"must have shape \(n, K\) .* got \(2,\)"),
            ([[95, -5]], ValueError, r"must be in .* got -5 at index \(0, 1\)"),
            ([[0, 0]], ValueError, "must have 1 to 2147483647 votes a row, got 0"),
            ([[2**31 - 1, 1]], ValueError, "must have 1 to 2147483647 votes a row"),
            ([[9, 1], [9, 0]], ValueError, r".* rows of 10 and 9 votes at index \(1,\)"),
        ],
    )
    def test_counts(self, counts, error, message):
        certificate = bincp.certify(Gaussian(1.0), L2(0.1))
        with pytest.raises(error, match="`counts` " + message):
            predict(counts)
        good = np.ones(np.shape(counts), dtype=int)
        with pytest.raises(error, match="`selection_counts` " + message):
            is_certified(counts, good, certificate)
        if np.ndim(counts) == 2:
            with pytest.raises(error, match="`counts` " + message):
                is_certified(good, counts, certificate)

    def test_the_same_votes_for_both_steps(self):
        votes = np.array(VOTES)
        for second in (votes, votes[:], votes.view()):
            with pytest.raises(ValueError, match="`counts` must be votes of other draws"):
                certified_labels(votes, second, Gaussian(1.0), L2)
        with pytest.raises(ValueError, match="`counts` must be votes of other draws"):
            certified_labels(VOTES, VOTES, Gaussian(1.0), L2)

    @pytest.mark.parametrize("alpha", [0, 1, 1.5, -0.1])
    def test_alpha(self, alpha):
        with pytest.raises(ValueError, match="`alpha` must be in"):
            predict(VOTES, alpha=alpha)
        with pytest.raises(ValueError, match="`alpha` must be in"):
            certified_labels([[9, 1]] * 2, VOTES, Gaussian(1.0), L2, alpha=alpha)

    def test_other_arguments(self):
        selection = [[9, 1]] * 2
        certificate = bincp.certify(Gaussian(1.0), L2(0.1))
        with pytest.raises(TypeError, match=r"`ball` must be callable, .* got L2"):
            certified_labels(selection, VOTES, Gaussian(1.0), L2(0.5))
        with pytest.raises(TypeError, match="`certificate` must be a Certificate, got L2"):
            is_certified(selection, VOTES, L2(0.5))
        with pytest.raises(TypeError, match="`multiclass` must be a bool, got 1"):
            is_certified(selection, VOTES, certificate, multiclass=1)
        with pytest.raises(ValueError, match=r"`counts` must have shape \(1, 2\), got \(2, 2\)"):
            is_certified([[9, 1]], VOTES, certificate)
        with pytest.raises(bincp.CertificateError, match="no certificate for"):
            certified_labels(selection, VOTES, SparseFlip(0.1, 0.1), L2)

    def test_too_few_draws_warn(self):
        certificate = bincp.certify(Gaussian(1.0), L2(0.1))
        with pytest.warns(AbstentionWarning, match="2 draws .* alpha = 0.001; 10 draws"):
            assert not is_certified([[9, 1]], [[2, 0]], certificate).any()
        with pytest.warns(AbstentionWarning, match="alpha / K = 0.0005; 11 draws"):
            is_certified([[9, 1]], [[10, 0]], certificate, multiclass=True)

    def test_certified_accuracy(self):
        good = ([0, 1], [0.1, 0.2], [0, 1], [0.0])
        for position, value, error, message in (
            (0, [0.0, 1.0], TypeError, "`labels` must be integers"),
            (0, [], ValueError, r"`labels` must have shape \(n,\)"),
            (0, [0, -2], ValueError, r"`labels` must be in .* got -2 at index \(1,\)"),
            (1, [0.1], ValueError, r"`radii` must have shape \(2,\), got \(1,\)"),
            (1, [0.1, -1.0], ValueError, r"`radii` must be at least 0, got -1.0 at index \(1,\)"),
            (1, [0.1, np.nan], ValueError, "`radii` must be at least 0, got nan"),
            (1, ["a", "b"], TypeError, "`radii` must be real numbers"),
            (2, [0], ValueError, r"`true_labels` must have shape \(2,\), got \(1,\)"),
            (3, [[0.0]], ValueError, r"`at` must have shape \(q,\), got \(1, 1\)"),
        ):
            arguments = list(good)
            arguments[position] = value
            with pytest.raises(error, match=message):
                certified_accuracy(*arguments)
