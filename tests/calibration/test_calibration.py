"""BinCP against transcriptions of the paper's algorithms; its guarantee on exact populations."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import bincp
from bincp import balls, smoothing
from bincp._utils.arrays import as_scores
from bincp.calibration._mixture import share_of_failures
from bincp.calibration._threshold import select_threshold
from support import quiet

GAUSSIAN = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.06))
IDENTITY = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.0))
SPARSE = bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(0, 2))
CERTIFICATES = [IDENTITY, GAUSSIAN, SPARSE]

rng_seeds = st.integers(0, 2**32 - 1)


def paper(certificate, **options):
    """BinCP with the paper's correction, unless the test says otherwise."""
    return bincp.BinCP(certificate, **{"correction": "clopper-pearson", **options})


# ---- transcriptions: plain loops over the definitions, slow and easy to check ----------------


def cp_upper(s, m, eta):
    return 1.0 if s == m else special.betaincinv(s + 1, m - s, 1 - eta)


def cp_lower(s, m, eta):
    return 0.0 if s == 0 else special.betaincinv(s, m - s + 1, eta)


def accepts(count, m_test, t, m, certificate, eta_each):
    """The test of one label: the upper bound of its frequency against the certified lower bound."""
    if eta_each is None:
        p = t / m
        while Fraction(p) > Fraction(t, m):  # a double above t / m would claim too much
            p = math.nextafter(p, 0)
        return Fraction(count, m_test) >= Fraction(certificate.lower(p))
    low = cp_lower(t, m, eta_each)
    return cp_upper(count, m_test, eta_each) >= certificate.lower(low)


def algorithm_p_fixed(true_scores, scores, p, alpha, eta_each, eta, certificate):
    n, m = true_scores.shape
    t = math.ceil(Fraction(str(p)) * m)
    j = math.floor((Fraction(str(alpha)) - Fraction(str(eta))) * (n + 1))
    thresholds = sorted(sorted(row)[m - t] for row in true_scores.tolist())
    tau = thresholds[j - 1] if j else -math.inf
    return tau, sets(tau if j else None, t, m, scores, eta_each, certificate)


def algorithm_tau_fixed(true_scores, scores, tau, alpha, eta_each, eta, certificate):
    n, m = true_scores.shape
    j = math.floor((Fraction(str(alpha)) - Fraction(str(eta))) * (n + 1))
    counts = sorted(sum(score >= tau for score in row) for row in true_scores.tolist())
    t = counts[j - 1] if j else 0
    return t, sets(tau if j else None, t, m, scores, eta_each, certificate)


def sets(tau, t, m, scores, eta_each, certificate):
    m_test = scores.shape[2]
    return np.array(
        [
            [
                tau is None
                or accepts(
                    sum(score >= tau for score in label), m_test, t, m, certificate, eta_each
                )
                for label in point
            ]
            for point in scores.tolist()
        ]
    )


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(rng_seeds))
    n, m, m_test, K = (draw(st.integers(1, high)) for high in (30, 20, 20, 4))
    digits = draw(st.sampled_from([1, 8]))  # one digit: many ties
    true_scores = rng.normal(1, 0.5, (n, m)).round(digits)
    scores = rng.normal(rng.normal(0.3, 1, (6, K, 1)), 0.5, (6, K, m_test)).round(digits)
    return (
        true_scores,
        scores,
        draw(st.sampled_from([0.05, 0.1, 0.3, 0.5])),
        draw(st.sampled_from(CERTIFICATES)),
        draw(st.sampled_from(["clopper-pearson", "none"])),
    )


@settings(deadline=None, max_examples=200)
@given(problems(), st.sampled_from([0.3, 0.5, 0.6, 0.7, 0.95, 1]))
def test_algorithm_2_p_fixed(problem, p):
    true_scores, scores, alpha, certificate, correction = problem
    eta, each = split_eta(correction, true_scores, scores)
    tau, expected = algorithm_p_fixed(true_scores, scores, p, alpha, each, eta, certificate)
    rule = paper(certificate, alpha=alpha, p=p, correction=correction)
    quiet(lambda: rule.calibrate(true_scores, **shape_of(scores)))
    assert rule.tau_ == tau
    np.testing.assert_array_equal(rule.predict_set(scores), expected)


@settings(deadline=None, max_examples=200)
@given(problems(), st.floats(-1, 2))
def test_algorithm_1_tau_fixed(problem, tau):
    true_scores, scores, alpha, certificate, correction = problem
    eta, each = split_eta(correction, true_scores, scores)
    t, expected = algorithm_tau_fixed(true_scores, scores, tau, alpha, each, eta, certificate)
    rule = paper(certificate, alpha=alpha, tau=tau, correction=correction)
    quiet(lambda: rule.calibrate(true_scores, **shape_of(scores)))
    assert rule.success_rank_ == t
    np.testing.assert_array_equal(rule.predict_set(scores), expected)


def split_eta(correction, true_scores, scores):
    """(eta, eta of each bound) of the paper's union bound over n points and K classes."""
    if correction == "none":
        return 0, None
    return 1e-3, 1e-3 / (len(true_scores) + scores.shape[1])


def shape_of(scores):
    return {"n_classes": scores.shape[1], "n_test_samples": scores.shape[2]}


@settings(deadline=None, max_examples=100)
@given(
    rng_seeds,
    st.integers(256, 600),
    st.integers(1, 40),
    st.sampled_from(["float16", "float32", "float64"]),
    st.sampled_from([0, 1, 6]),
    st.data(),
)
def test_selection_of_the_threshold_is_exact(seed, n, m, dtype, digits, data):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, m)).round(digits).astype(dtype)
    order = data.draw(st.sampled_from(["random", "sorted", "constant"]))
    if order == "sorted":  # every 4th row a large one: the sample is far from typical
        scores[:: max(n // 64, 1)] += 5
    elif order == "constant":
        scores[:] = 0.5
    t, rank = data.draw(st.integers(1, m)), data.draw(st.integers(1, n))
    expected = np.sort(np.sort(scores, axis=1)[:, m - t])[rank - 1]
    assert select_threshold(as_scores("scores", scores), t, rank) == expected


# ---- counts, sets and their special cases ----------------------------------------------------


@pytest.mark.parametrize("correction", ["mixture", "clopper-pearson", "none"])
def test_prediction_from_counts_is_prediction_from_scores(correction):
    rng = np.random.default_rng(1)
    rule = paper(GAUSSIAN, alpha=0.1, correction=correction)
    rule.calibrate(rng.normal(1, 0.3, (100, 64)).astype("float32"), n_classes=3)
    scores = rng.normal(rng.normal(0.5, 0.5, (50, 3, 1)), 0.3, (50, 3, 64)).astype("float32")
    counts = bincp.count_exceedances(scores, rule.tau_)
    expected = rule.predict_set(scores)
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(
        rule.predict_set_from_counts(counts, n_samples=rule.n_test_samples_), expected
    )


def test_uncorrected_at_radius_zero_accepts_exactly_the_success_rank():
    for m in (1, 3, 7, 10, 49, 100):
        for p in ("0.1", "1/3", "0.6", "0.7", "1"):
            rule = paper(IDENTITY, alpha="0.5", p=p, correction="none")
            rule.calibrate(np.arange(5.0 * m).reshape(5, m))
            assert rule.min_count_ == rule.success_rank_ == math.ceil(Fraction(p) * m)


def test_threshold_is_taken_in_the_dtype_of_the_scores():
    scores = np.full((9, 4), 0.7, np.float32)
    rule = paper(IDENTITY, alpha="0.1", tau=0.7, correction="none").calibrate(scores)
    assert rule.success_rank_ == 4  # float32(0.7) reaches 0.7
    assert rule.tau_ == float(np.float32(0.7))
    assert rule.predict_set(scores.reshape(3, 3, 4)).all()


def test_infinite_scores_are_order_statistics():
    scores = np.array([[-np.inf, 0.0], [0.0, np.inf], [np.inf, np.inf]])
    rule = paper(IDENTITY, alpha="0.5", p="0.5", correction="none").calibrate(scores)
    assert rule.tau_ == np.inf
    assert rule.predict_set(np.array([[[np.inf, 0.0], [0.0, 1.0]]])).tolist() == [[True, False]]


def test_bfloat16_tensors():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    true_scores = torch.randn(300, 16, generator=generator).to(torch.bfloat16)
    scores = torch.randn(20, 3, 16, generator=generator).to(torch.bfloat16)
    options = {"alpha": 0.2, "correction": "none"}
    rule = paper(GAUSSIAN, **options).calibrate(true_scores)
    wide = paper(GAUSSIAN, **options).calibrate(true_scores.float())
    assert (rule.dtype_, rule.tau_, rule.min_count_) == ("bfloat16", wide.tau_, wide.min_count_)
    np.testing.assert_array_equal(rule.predict_set(scores), wide.predict_set(scores.float()))


def test_inputs_are_not_changed():
    scores = np.random.default_rng(0).normal(size=(300, 16))
    kept = scores.copy()
    paper(GAUSSIAN, correction="none").calibrate(scores)
    np.testing.assert_array_equal(scores, kept)


def test_calibration_size_is_that_of_the_data_and_ranks_are_integers():
    for n, alpha, eta, expected in [
        (19, 0.05, None, 1),
        (9, 0.1, None, 1),
        (99, "0.1", None, 10),
        (249, 0.1, None, 25),
        (199, "0.1", "0.01", 18),
        (9, 1 - 0.9, None, 0),  # 0.09999999999999998, as written
    ]:
        correction = "none" if eta is None else "clopper-pearson"
        rule = paper(IDENTITY, alpha=alpha, correction=correction, eta=eta or 1e-3)
        quiet(lambda rule=rule, n=n: rule.calibrate(np.ones((n, 300)), n_classes=2))
        assert (rule.rank_, rule.n_calibration_) == (expected, n)


def test_ties_at_the_threshold_are_accepted():
    rule = paper(IDENTITY, alpha="0.1", p=1, correction="none")
    rule.calibrate(np.full((19, 1), 0.5))
    assert rule.predict_set(np.full((1, 1, 1), 0.5)).all()


# ---- the guarantee, without sampling noise ---------------------------------------------------


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.sampled_from(["0.05", "0.1", "1/3", "0.5"]),
    st.sampled_from(CERTIFICATES),
)
def test_exact_calibration_covers_every_population_under_the_worst_attack(
    values, alpha, certificate
):
    """Each of n + 1 points is the test point once: the mean coverage is exact, for any values."""
    covered = []
    for i, p in enumerate(values):
        calibration = values[:i] + values[i + 1 :]
        if not calibration:
            return
        rule = paper(certificate, alpha=alpha, correction="none")
        quiet(lambda rule=rule, c=calibration: rule.calibrate_exact(c, tau=0.0))
        attacked = certificate.lower(p)
        covered.append(rule.predict_set_exact([[attacked]])[0, 0])
    assert Fraction(sum(map(int, covered)), len(covered)) >= 1 - Fraction(alpha)


CORRECTED = [
    {"correction": "clopper-pearson"},
    {"correction": "clopper-pearson", "union": "ghost"},
    {"correction": "mixture"},
]

# A population is a list of (share, location): scores are location + logistic noise. Everything
# below is computed from binomial distributions, with no sampling at all.
POPULATIONS = [
    [(1.0, 0.0)],
    [(0.5, 0.0), (0.5, 1.0)],
    [(0.1, -2.0), (0.2, 0.0), (0.7, 3.0)],
    [(0.09, -4.0), (0.91, 0.0)],
]


def reach(tau, location):
    """Probability that a score reaches tau."""
    return special.expit(location - tau)


def p_fixed_coverage(rule, certificate, population, accepts_at=None):
    """Coverage under the worst attack, of continuous scores with p fixed, within 1e-6.

    A point's threshold is below tau iff fewer than t of its m scores reach tau, and tau_ is the
    j-th smallest of n such thresholds. Each cell of a grid counts with its mean acceptance.
    """
    grid = np.concatenate([[-60], np.linspace(-12, 12, 10_001), [60]])
    below = sum(
        share * stats.binom.cdf(rule.success_rank_ - 1, rule.n_samples_, reach(grid, location))
        for share, location in population
    )
    distribution = stats.binom.sf(rule.rank_ - 1, rule.n_calibration_, below)
    at = accepts_at or (lambda probability: accept(rule, probability))
    accepted = sum(
        share * at(certificate.lower(reach(grid, location))) for share, location in population
    )
    return float(np.diff(distribution) @ (accepted[1:] + accepted[:-1]) / 2)


def tau_fixed_coverage(rule_of, certificate, population, n, m, rank):
    """Exact coverage under the worst attack with tau = 0 fixed, over all calibration counts."""
    counts = np.arange(m + 1)
    pmf = sum(w * stats.binom.pmf(counts, m, reach(0, x)) for w, x in population)
    at_most = stats.binom.sf(rank - 1, n, np.minimum(np.cumsum(pmf), 1))
    coverage = 0.0
    for t, probability in enumerate(np.diff(at_most, prepend=0)):
        if probability > 1e-12:
            rule = rule_of(t)
            coverage += probability * sum(
                w * accept(rule, certificate.lower(float(reach(0, x)))) for w, x in population
            )
    return coverage


def accept(rule, probability):
    return stats.binom.sf(rule.min_count_ - 1, rule.n_test_samples_, probability)


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize(("n", "alpha"), [(19, 0.1), (100, 0.05), (200, 0.3)])
@pytest.mark.parametrize("options", CORRECTED, ids=str)
def test_corrected_coverage_with_p_fixed_is_above_nominal(
    certificate, n, alpha, population, options
):
    for m, m_test in itertools.product([16, 100], [16, 300]):
        scores = np.random.default_rng(0).normal(size=(n, m))
        rule = bincp.BinCP(certificate, alpha=alpha, p=0.6, **options)
        quiet(lambda r=rule, s=scores, k=m_test: r.calibrate(s, n_classes=4, n_test_samples=k))
        coverage = p_fixed_coverage(rule, certificate, population)
        assert coverage >= 1 - alpha - 1e-6


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize(("n", "m", "alpha"), [(19, 16, 0.1), (200, 100, 0.1)])
@pytest.mark.parametrize("options", CORRECTED, ids=str)
def test_corrected_coverage_with_tau_fixed_is_above_nominal(
    certificate, n, m, alpha, population, options
):
    def rule_of(t):
        rule = bincp.BinCP(certificate, alpha=alpha, tau=0.0, **options)
        scores = np.where(np.arange(m) < t, 1.0, -1.0) * np.ones((n, 1))
        return quiet(lambda: rule.calibrate(scores, n_classes=4))

    rank = rule_of(m).rank_
    coverage = tau_fixed_coverage(rule_of, certificate, population, n, m, rank)
    assert coverage >= 1 - alpha - 1e-10


def test_uncorrected_coverage_falls_short():
    """The tests above can fail: without the correction few samples lose the guarantee."""
    rule = paper(IDENTITY, alpha=0.05, correction="none", p=0.9)
    rule.calibrate(np.random.default_rng(0).normal(size=(500, 256)), n_test_samples=4)
    assert p_fixed_coverage(rule, IDENTITY, [(1.0, 0.0)]) < 0.9


@settings(deadline=None, max_examples=60)
@given(rng_seeds, st.sampled_from(["clopper-pearson", "none"]))
def test_sets_are_nested_in_alpha_and_radius(seed, correction):
    """At one p: that of a rule which may choose it moves with both."""
    rng = np.random.default_rng(seed)
    true_scores, scores = rng.normal(1, 0.5, (60, 50)), rng.normal(0.5, 1, (8, 3, 50))
    last = np.zeros((8, 3), bool)
    for radius, alpha in [(0, 0.3), (0, 0.1), (0.05, 0.1), (0.1, 0.1), (0.1, 0.05)]:
        certificate = bincp.certify(smoothing.Gaussian(0.25), balls.L2(radius))
        rule = paper(certificate, alpha=alpha, correction=correction, p=0.6)
        quiet(lambda rule=rule: rule.calibrate(true_scores, n_classes=3))
        sets = rule.predict_set(scores)
        assert (sets >= last).all()
        last = sets


# ---- corrections against each other ----------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(
    rng_seeds,
    st.integers(19, 300),
    st.integers(1, 64),
    st.integers(1, 64),
    st.sampled_from(CERTIFICATES),
    st.sampled_from([{"p": "0.4"}, {"p": "0.7"}, {"tau": 0.9}]),
)
def test_mixture_asks_for_most_and_the_paper_for_least(seed, n, m, m_test, certificate, fixed):
    """At equal ranks: alpha (n + 1) and (alpha - eta) (n + 1) have the same whole part here."""
    rng = np.random.default_rng(seed)
    alpha = Fraction(n // 6 * 10 + 1, 10 * (n + 1))  # a tenth of a rank to spare for eta
    true_scores = rng.normal(1, 0.4, (n, m))
    rules = [
        bincp.BinCP(certificate, alpha=alpha, eta="1/20000", **fixed, **options)
        for options in ({"correction": "mixture"}, *reversed(CORRECTED[:2]))
    ]
    for rule in rules:
        quiet(lambda r=rule: r.calibrate(true_scores, n_classes=10, n_test_samples=m_test))
    mixture, ghost, paper = rules
    assert ghost.rank_ == paper.rank_ == n // 6
    assert ghost.min_count_ >= paper.min_count_
    if mixture.rank_ == n // 6:
        assert mixture.tau_ == ghost.tau_ == paper.tau_
        assert mixture.min_count_ >= ghost.min_count_


def test_ghost_bounds_have_half_of_eta_each():
    scores = np.random.default_rng(0).normal(1, 0.3, (200, 64))
    options = {"correction": "clopper-pearson", "union": "ghost"}
    rule = bincp.BinCP(GAUSSIAN, alpha=0.1, eta="1/100", **options).calibrate(scores)
    t = rule.success_rank_
    assert rule.n_classes_ is None  # K does not matter
    assert rule.p_lower_ == pytest.approx(special.betaincinv(t, 65 - t, 0.005), rel=1e-12)
    target = GAUSSIAN.lower(rule.p_lower_)
    upper = [cp_upper(s, 64, 0.005) for s in range(65)]
    assert rule.min_count_ == sum(bound < target for bound in upper)


def test_calibration_with_more_samples_uses_all_of_them():
    """Count weights without `p`, a success rank with it."""
    scores = np.random.default_rng(0).normal(1, 0.3, (200, 128))
    weighted = bincp.BinCP(GAUSSIAN, correction="mixture")
    weighted.calibrate(scores, n_test_samples=16)
    ranks = (weighted.rank_, weighted.success_rank_, weighted.p_, weighted.certified_p_)
    assert ranks == (None,) * 4
    assert weighted.tau_ in scores
    for options, m_test in [({"p": 0.7}, 16), ({}, 128), ({}, 300), ({"tau": 0.5}, 16)]:
        rule = bincp.BinCP(GAUSSIAN, correction="mixture", **options)
        rule.calibrate(scores, n_test_samples=m_test)
        assert rule.success_rank_ is not None
        assert rule.certified_p_ == GAUSSIAN.lower(rule.p_)
        assert rule.p_lower_ is None


def test_one_sample_each():
    """m = m' = 1 without an attack is conformal prediction: the j-th smallest score."""
    scores = np.random.default_rng(0).normal(size=(99, 1))
    rule = bincp.BinCP(IDENTITY, correction="mixture", alpha="0.1").calibrate(scores)
    assert (rule.rank_, rule.success_rank_, rule.min_count_) == (10, 1, 1)
    assert rule.tau_ == np.sort(scores[:, 0])[9]
    test = rule.tau_ + np.array([[[-1e-9], [0.0], [1.0]]])
    assert rule.predict_set(test).tolist() == [[False, True, True]]


class TestSequentialRule:
    @pytest.fixture
    def scores(self):
        return np.random.default_rng(0).normal(1, 0.3, (200, 64))

    @pytest.mark.parametrize(
        ("options", "m_test"), [({}, 64), ({}, 32), ({"p": 0.6}, 32), ({"tau": 0.8}, 32)]
    )
    def test_it_keeps_the_guarantee_of_each_way_to_calibrate(self, scores, options, m_test):
        """Accepts with a probability that is nowhere below that of a fixed rule that is valid."""
        rule = bincp.BinCP(GAUSSIAN, correction="mixture", **options)
        rule.calibrate(scores, n_test_samples=m_test)
        sequential = rule.sequential_rule()
        assert sequential.n_test_samples == m_test
        assert 0 < sequential.min_count <= rule.min_count_ + 2
        wide = rule.sequential_rule(spread=1e6)
        assert wide == bincp.SequentialRule.curtailed(rule.min_count_, m_test)

    def test_coverage_on_populations(self, scores):
        """The formula of the p-fixed rule, with the probability of acceptance put in for it."""
        for certificate in CERTIFICATES:
            rule = bincp.BinCP(certificate, correction="mixture", p=0.7).calibrate(scores)
            sequential = rule.sequential_rule()
            for population in POPULATIONS:
                coverage = p_fixed_coverage(rule, certificate, population, sequential.acceptance)
                assert coverage >= 0.9 - 1e-6

    def test_everything_is_accepted_where_nothing_else_is_valid(self):
        far = bincp.certify(smoothing.Gaussian(0.25), balls.L2(2.0))
        for options in ({}, {"p": 0.6}, {"tau": 0.5}):
            rule = bincp.BinCP(far, correction="mixture", **options)
            scores = np.random.default_rng(0).normal(1, 0.3, (100, 16))
            with pytest.warns(bincp.TrivialSetWarning):
                rule.calibrate(scores, n_test_samples=8)
            sequential = rule.sequential_rule()
            assert (sequential.min_count, sequential.acceptance(0.0)) == (0, 1.0)

    @pytest.mark.parametrize("correction", ["clopper-pearson", "none"])
    def test_other_corrections_have_none(self, scores, correction):
        rule = bincp.BinCP(GAUSSIAN, correction=correction).calibrate(scores, n_classes=3)
        with pytest.raises(ValueError, match=f'`correction` must be "mixture" .* \'{correction}'):
            rule.sequential_rule()

    def test_order_of_calls(self, scores, tmp_path):
        rule = bincp.BinCP(GAUSSIAN, correction="mixture")
        with pytest.raises(bincp.NotCalibratedError, match="call calibrate"):
            rule.sequential_rule()
        rule.calibrate_exact(np.linspace(0.5, 1, 50), tau=0.3)
        with pytest.raises(bincp.NotCalibratedError, match="call calibrate"):
            rule.sequential_rule()
        outside = bincp.BinCP(bincp.Certificate.from_bounds(lambda p: max(p - 0.05, 0.0)))
        outside.calibrate(scores).save(tmp_path / "rule.json")
        with pytest.raises(bincp.CertificateError, match="by description only"):
            bincp.BinCP.load(tmp_path / "rule.json").sequential_rule()

    @pytest.mark.parametrize(
        ("spread", "error"),
        [(0, ValueError), (-1.0, ValueError), (math.nan, ValueError), ([1], TypeError)],
    )
    def test_bad_spread(self, scores, spread, error):
        rule = bincp.BinCP(GAUSSIAN, correction="mixture").calibrate(scores)
        with pytest.raises(error, match="`spread`"):
            rule.sequential_rule(spread=spread)


# ---- trivial sets ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "shape", "certificate", "words"),
    [
        (
            {"alpha": 0.1, "correction": "none"},
            (8, 50),
            IDENTITY,
            ["n = 8", "9 calibration", "alpha"],
        ),
        ({"alpha": 0.1}, (8, 50), IDENTITY, ["n = 8", "10 calibration", "alpha"]),
        ({"alpha": 0.1, "eta": 0.05}, (15, 50), IDENTITY, ["n = 15", "smaller eta", "19"]),
        ({"alpha": 0.1}, (100, 4), IDENTITY, ["m = 4", "m' = 4", "eta"]),
        (
            {"alpha": 0.1},
            (100, 256),
            bincp.certify(smoothing.Gaussian(0.25), balls.L2(2.0)),
            ["radius", "smaller radius"],
        ),
        (
            {"alpha": 0.1, "correction": "none"},
            (100, 256),
            bincp.certify(smoothing.Uniform(0.5), balls.L1(1.0)),
            ["radius", "smaller radius"],
        ),
        (
            {"alpha": 0.1, "tau": 9.0, "correction": "none"},
            (100, 9),
            IDENTITY,
            ["tau = 9.0", "lower"],
        ),
    ],
)
def test_trivial_sets_warn_with_cause_and_cure(options, shape, certificate, words):
    scores = np.random.default_rng(0).normal(size=shape)
    rule = paper(certificate, **options)
    with pytest.warns(bincp.TrivialSetWarning) as caught:
        rule.calibrate(scores, n_classes=3)
    message = str(caught[0].message)
    assert all(word in message for word in words), message
    assert caught[0].filename == __file__
    assert rule.min_count_ == 0
    assert rule.predict_set(np.full((2, 3, shape[1]), -99.0)).all()


FAR = bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(0, 3))


@pytest.mark.parametrize(
    ("correction", "certificate", "p"),
    [
        ("clopper-pearson", FAR, "0.6"),
        ("none", bincp.certify(smoothing.Uniform(0.5), balls.L1(0.1)), "1/64"),
        ("mixture", FAR, "0.3"),
    ],
)
def test_a_p_that_was_given_is_blamed_where_another_is_useful(correction, certificate, p):
    scores = np.random.default_rng(0).normal(size=(600, 64))
    options = {"alpha": "0.1", "correction": correction, "union": "two-bounds"}
    chosen = bincp.BinCP(certificate, **options).calibrate(scores)
    assert chosen.min_count_ > 0
    with pytest.warns(bincp.TrivialSetWarning) as caught:
        bincp.BinCP(certificate, **options, p=p).calibrate(scores)
    message = str(caught[0].message)
    assert re.search(r"p = 0.\d+ allows no count of m' = 64 samples above 0", message)
    assert "radius" not in message
    if correction != "mixture":
        named = re.search(r"p = ([\d.]+), or no `p`", message)
        assert float(named[1]) == pytest.approx(chosen.p_, abs=1e-4)
        assert bincp.BinCP(certificate, **options, p=chosen.p_).calibrate(scores).min_count_ > 0


@pytest.mark.parametrize("p", [None, "0.6", "1"])
@pytest.mark.parametrize("correction", ["clopper-pearson", "none", "mixture"])
def test_p_is_not_blamed_where_no_other_is_useful(correction, p):
    hopeless = bincp.certify(smoothing.Uniform(0.1), balls.L1(1))
    scores = np.random.default_rng(0).normal(size=(200, 16))
    rule = bincp.BinCP(hopeless, correction=correction, union="two-bounds", p=p)
    with pytest.warns(bincp.TrivialSetWarning) as caught:
        rule.calibrate(scores)
    message = str(caught[0].message)
    assert "smaller radius" in message or "too few for eta" in message
    assert not re.search("larger p|`p`|p = .* allows", message)


def test_the_default_success_rank_of_too_few_samples_is_the_highest():
    with pytest.warns(bincp.TrivialSetWarning, match="m = 4 .* too few for eta"):
        rule = paper(IDENTITY).calibrate(np.ones((200, 4)), n_classes=10)
    assert rule.success_rank_ == 4


def test_the_cure_cures():
    for options in ({"correction": "none"}, {"eta": 0.05}):
        rule = paper(IDENTITY, alpha=0.1, **options)
        with pytest.warns(bincp.TrivialSetWarning, match="at least") as caught:
            rule.calibrate(np.ones((2, 500)), n_classes=2)
        needed = int(str(caught[0].message).split("at least ")[1].split()[0])
        rule.calibrate(np.ones((needed, 500)), n_classes=2)
        with pytest.warns(bincp.TrivialSetWarning):
            rule.calibrate(np.ones((needed - 1, 500)), n_classes=2)


@pytest.mark.parametrize(
    "options",
    [
        {"correction": "none"},
        {"correction": "none", "p": 0.7},
        {"correction": "mixture"},
        {"correction": "mixture", "passes": "auto"},
        {"correction": "mixture", "p": 0.7},
    ],
)
def test_scores_of_minus_infinity_warn(options):
    rule = paper(GAUSSIAN, **options)
    with pytest.warns(bincp.TrivialSetWarning, match="scores of -inf") as caught:
        rule.calibrate(np.full((99, 8), -np.inf))
    message = str(caught[0].message)
    assert "radius" not in message
    assert ("a smaller p" in message) == ("p" in options)
    assert rule.predict_set(np.full((1, 2, 8), -np.inf)).all()


def test_a_threshold_of_minus_infinity_warns():
    rule = paper(IDENTITY, correction="none", tau=-math.inf)
    with pytest.warns(bincp.TrivialSetWarning, match="tau = -inf accepts every score"):
        rule.calibrate(np.ones((99, 8)))


def test_exact_calibration_with_rank_zero_accepts_everything():
    """Also where a bound at p = 0 is only 0 up to the tolerance of the law."""
    loose = bincp.Certificate.from_bounds(lambda p: max(p, 5e-10), lambda p: p)
    rule = paper(loose)
    with pytest.warns(bincp.TrivialSetWarning, match="n = 2"):
        rule.calibrate_exact([0.5, 0.6], tau=0.0)
    assert rule.predict_set_exact([[0.0, 1.0]]).all()


def test_exact_calibration_warns_too():
    with pytest.warns(bincp.TrivialSetWarning, match="n = 3"):
        paper(IDENTITY).calibrate_exact([0.5, 0.6, 0.7], tau=0)
    uniform = bincp.certify(smoothing.Uniform(0.5), balls.L1(0.9))
    with pytest.warns(bincp.TrivialSetWarning, match="radius"):
        paper(uniform).calibrate_exact([0.5] * 20, tau=0)


# ---- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"alpha": 0}, ValueError, r"`alpha` must be in \(0, 1\), got 0"),
        ({"alpha": 1.0}, ValueError, "`alpha`"),
        ({"alpha": -0.1}, ValueError, "`alpha`"),
        ({"alpha": 99}, ValueError, "`alpha`"),
        ({"alpha": math.nan}, ValueError, "`alpha`"),
        ({"alpha": math.inf}, ValueError, "`alpha`"),
        ({"alpha": "ten percent"}, ValueError, "`alpha`"),
        ({"alpha": 10**500}, ValueError, "`alpha` must be below 1e400"),
        ({"alpha": None}, TypeError, "`alpha`"),
        ({"alpha": True}, TypeError, "`alpha`"),
        ({"alpha": [0.1]}, TypeError, "`alpha`"),
        ({"eta": 0}, ValueError, "`eta`"),
        ({"eta": 1}, ValueError, "`eta`"),
        ({"eta": 0.1}, ValueError, "`eta` must be below alpha"),
        ({"eta": 0.5, "alpha": 0.2}, ValueError, "`eta` must be below alpha"),
        ({"p": 0}, ValueError, r"`p` must be in \(0, 1\]"),
        ({"p": 1.01}, ValueError, "`p`"),
        ({"p": math.nan}, ValueError, "`p`"),
        ({"tau": math.nan}, ValueError, "`tau`"),
        ({"tau": "0.5"}, TypeError, "`tau`"),
        ({"tau": False}, TypeError, "`tau`"),
        ({"tau": 0.5, "p": 0.5}, ValueError, "at most one of `p` and `tau`"),
        ({"correction": "clopper"}, ValueError, "`correction` must be one of"),
        ({"correction": None}, ValueError, "`correction` must be one of"),
        ({"union": "none"}, ValueError, "`union` must be one of .* got 'none'"),
        ({"union": ["ghost"]}, ValueError, "`union` must be one of"),
        ({"passes": "few", "correction": "mixture"}, ValueError, "`passes` must be .* got 'few'"),
        ({"passes": "1/0", "correction": "mixture"}, ValueError, "`passes` must be .* got '1/0'"),
        ({"union": None, "correction": "mixture"}, ValueError, "`union` must be one of"),
    ],
)
def test_constructor_refuses(options, error, match):
    with pytest.raises(error, match=match):
        paper(GAUSSIAN, **options)


def test_eta_is_not_checked_where_it_is_not_used():
    assert paper(GAUSSIAN, alpha=0.1, eta=0.5, correction="none").eta == Fraction("0.5")


def test_constructor_refuses_what_is_no_certificate():
    for wrong in (None, balls.L2(0.1), lambda p: p):
        with pytest.raises(TypeError, match="`certificate` must be a Certificate"):
            paper(wrong)


@pytest.mark.parametrize(
    ("scores", "options", "error", "match"),
    [
        (np.ones(9), {}, ValueError, r"`true_scores` must have shape \(n, m\)"),
        (np.ones((0, 5)), {}, ValueError, "`true_scores`"),
        (np.ones((5, 0)), {}, ValueError, "`true_scores`"),
        (np.ones((9, 3, 5)), {}, ValueError, "`true_scores`"),
        (np.ones((9, 5), int), {}, ValueError, "`true_scores`.*float32.*got int64"),
        (np.ones((9, 5), complex), {}, ValueError, "`true_scores`"),
        (np.array([["a"]]), {}, ValueError, "`true_scores`"),
        ([[0.1, 0.2], [0.3]], {}, ValueError, "`true_scores` must be a rectangular array"),
        (np.ma.masked_array(np.ones((9, 5))), {}, TypeError, "masked"),
        (np.full((9, 5), np.nan), {}, ValueError, "NaN"),
        (np.ones((9, 5)), {"n_classes": None}, TypeError, "`n_classes`"),
        (np.ones((9, 5)), {"n_classes": 0}, ValueError, "`n_classes`"),
        (np.ones((9, 5)), {"n_classes": 2.0}, TypeError, "`n_classes`"),
        (np.ones((9, 5)), {"n_test_samples": 0}, ValueError, "`n_test_samples`"),
        (np.ones((9, 5)), {"n_test_samples": 0.1}, TypeError, "`n_test_samples`"),
        (np.ones((9, 5)), {"n_test_samples": 2**31}, ValueError, "`n_test_samples`"),
    ],
)
def test_calibrate_refuses(scores, options, error, match):
    rule = paper(GAUSSIAN)
    with pytest.raises(error, match=match):
        rule.calibrate(scores, **{"n_classes": 3, **options})
    with pytest.raises(bincp.NotCalibratedError, match="call calibrate"):
        rule.predict_set(np.ones((1, 3, 5)))


@pytest.mark.parametrize("row", [0, 8, 30, 299])
@pytest.mark.parametrize("n", [20, 300])
@pytest.mark.parametrize("options", [{"p": 0.7}, {"tau": 0.0}])
def test_nan_is_found_wherever_it_is(row, n, options):
    scores = np.random.default_rng(0).normal(size=(n, 8))
    scores[row % n, 3] = np.nan
    with pytest.raises(ValueError, match=rf"`true_scores`.*NaN.*\({row % n}, 3\)"):
        paper(GAUSSIAN, **options).calibrate(scores, n_classes=2)


def test_nan_is_found_where_the_rank_is_zero():
    with pytest.raises(ValueError, match="NaN"):
        paper(GAUSSIAN, alpha=0.01).calibrate(np.full((3, 4), np.nan), n_classes=2)


def test_predict_refuses():
    rule = paper(GAUSSIAN).calibrate(np.ones((99, 200), np.float32), n_classes=3)
    good = np.ones((2, 3, 200), np.float32)
    assert rule.predict_set(good).shape == (2, 3)
    for wrong, match in [
        (good[:, :, :199], "m' = 200 .* got 199"),
        (good[:, :2], "K = 3"),
        (good[0], r"shape \(n, K, m'\)"),
        (good.astype(float), "dtype calibrated with, float32, got float64"),
        (np.where(good == 1, np.float32("nan"), good), "NaN"),
    ]:
        with pytest.raises(ValueError, match=match):
            rule.predict_set(wrong)
    for wrong, error in [
        (np.full((2, 3), 201), ValueError),
        (np.full((2, 3), -1), ValueError),
        (np.full((2, 2), 1), ValueError),
        (np.full((2, 3), 1.0), TypeError),
    ]:
        with pytest.raises(error, match="`counts`"):
            rule.predict_set_from_counts(wrong, n_samples=rule.n_test_samples_)
    with pytest.raises(bincp.NotCalibratedError, match="calibrate_exact"):
        rule.predict_set_exact(np.ones((2, 3)))


def test_exact_refuses():
    rule = paper(GAUSSIAN, tau=0.5)
    for wrong, match in [
        ([0.5, 1.1], "`probabilities` must be in"),
        ([0.5, math.nan], "`probabilities` must be in"),
        ([[0.5]], r"`probabilities` must have shape \(n,\)"),
        ([], r"`probabilities` must have shape \(n,\)"),
    ]:
        with pytest.raises(ValueError, match=match):
            rule.calibrate_exact(wrong, tau=0.5)
    with pytest.raises(ValueError, match="`tau`"):
        rule.calibrate_exact([0.5], tau=0.6)
    with pytest.raises(ValueError, match="`tau`"):
        paper(GAUSSIAN, p=0.7).calibrate_exact([0.5], tau=0.6)
    rule.calibrate_exact([0.9] * 20, tau=0.5)
    with pytest.raises(bincp.NotCalibratedError, match="call calibrate"):
        rule.predict_set(np.ones((1, 2, 3)))


def test_a_failed_calibration_leaves_the_last_one():
    rule = paper(GAUSSIAN).calibrate(np.ones((99, 200)), n_classes=3)
    with pytest.raises(ValueError, match="NaN"):
        rule.calibrate(np.full((99, 200), np.nan), n_classes=3)
    assert rule.predict_set(np.ones((1, 3, 200))).all()


@pytest.mark.parametrize("name", ["certificate", "alpha", "correction", "tau_", "min_count_"])
def test_what_the_rule_was_made_from_is_read_only(name):
    rule = bincp.BinCP(GAUSSIAN).calibrate(np.ones((99, 8)))
    before = getattr(rule, name)
    with pytest.raises(AttributeError, match=f"`{name}` of a BinCP is read-only"):
        setattr(rule, name, before)
    with pytest.raises(AttributeError):
        delattr(rule, name)
    assert getattr(rule, name) is before


def test_numbers_that_lie_between_doubles_are_refused():
    between = Fraction(10**20 - 1, 10**20)
    with pytest.raises(ValueError, match="lies between"):
        GAUSSIAN.lower(between)
    with pytest.raises(ValueError, match="lies between"):
        balls.L2(Fraction(1, 3))
    with pytest.raises(ValueError, match="lies between"):
        smoothing.Gaussian(Fraction(1, 3))
    assert balls.L2(Fraction(1, 4)).r == 0.25
    with pytest.raises(ValueError, match="`tau` must be within"):
        paper(GAUSSIAN, tau=10**400)
    if np.finfo(np.longdouble).nmant > 52:
        wide = np.longdouble(1) - np.longdouble(2) ** -60
        with pytest.raises(ValueError, match="lies between"):
            GAUSSIAN.lower(wide)
        with pytest.raises(TypeError, match="`probabilities`"):
            paper(GAUSSIAN).calibrate_exact([wide] * 20, tau=0.5)


def test_a_level_is_what_was_written_whatever_a_subclass_prints():
    class Odd(float):
        def __str__(self):
            return "0.5"

        __repr__ = __str__

    assert paper(GAUSSIAN, alpha=Odd(0.1)).alpha == Fraction(1, 10)


# ---- the guarantee given the calibration set --------------------------------------------------


def test_training_conditional_failures_are_a_beta_quantile():
    for n, rank, delta in [(100, 5, "0.1"), (200, 12, "0.05"), (1000, 80, "0.01")]:
        share = share_of_failures(rank, n, Fraction(delta))
        exact = stats.beta.ppf(1 - float(Fraction(delta)), rank, n + 1 - rank)
        assert exact <= float(share) <= exact * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("certificate", [IDENTITY, GAUSSIAN])
@pytest.mark.parametrize("population", POPULATIONS)
def test_training_conditional_coverage_fails_for_few_calibration_sets(certificate, population):
    """Exact: over the law of tau, coverage given tau falls short with probability <= delta."""
    n, m, alpha, delta = 100, 16, 0.2, 0.1
    rule = bincp.BinCP(
        certificate, alpha=alpha, guarantee=("training-conditional", delta)
    ).calibrate(np.random.default_rng(0).normal(size=(n, m)))
    grid = np.linspace(-12, 12, 4001)
    below = sum(
        w * stats.binom.cdf(rule.success_rank_ - 1, m, reach(grid, x)) for w, x in population
    )
    at_most = stats.binom.sf(rule.rank_ - 1, n, below)  # P[tau <= grid]
    covered = sum(w * accept(rule, certificate.lower(reach(grid, x))) for w, x in population)
    fails = covered < 1 - alpha - 1e-9  # coverage falls with tau: a final segment of the grid
    assert rule.min_count_ > 0
    assert 1 - at_most[np.argmax(fails)] <= delta if fails.any() else True
    assert rule.rank_ < int(alpha * (n + 1))  # the rank of the marginal guarantee


def test_training_conditional_options():
    one_word = np.array(["marginal"])
    for wrong in ["conditional", ("training-conditional",), ("marginal", 0.1), 0.1, one_word]:
        with pytest.raises(ValueError, match="`guarantee` must be"):
            bincp.BinCP(GAUSSIAN, guarantee=wrong)
    with pytest.raises(ValueError, match="`delta` must be in"):
        bincp.BinCP(GAUSSIAN, guarantee=("training-conditional", 1))
    with pytest.raises(ValueError, match='correction="mixture"'):
        paper(GAUSSIAN, guarantee=("training-conditional", 0.1))
    few = bincp.BinCP(GAUSSIAN, guarantee=("training-conditional", 0.01))
    with pytest.warns(bincp.TrivialSetWarning, match=r"delta = 0.01; about 44 calibration"):
        few.calibrate(np.ones((43, 16)))
    few.calibrate(np.random.default_rng(0).normal(size=(60, 64)))
    assert few.rank_ == 1


def test_exact_calibration_can_be_training_conditional(tmp_path):
    values = np.linspace(0.3, 1, 99)
    given_set = bincp.BinCP(GAUSSIAN, alpha=0.1, guarantee=("training-conditional", 0.05))
    rule = given_set.calibrate_exact(values, tau=0.4)
    assert rule.rank_ == 5
    assert stats.beta.cdf(0.1, 5, 95) >= 0.95 > stats.beta.cdf(0.1, 6, 94)
    rule.save(tmp_path / "rule.json")
    assert bincp.BinCP.load(tmp_path / "rule.json").rank_ == 5


def test_a_cut_through_flat_counts_knows_nothing_of_labels():
    """From the second number on, the columns are those of other labels."""
    counts = bincp.Counts(np.arange(12).reshape(4, 3) % 5, n_samples=5, tau=0.5)
    assert counts[1:].n_samples == counts[::-1].n_samples == 5
    for cut in (counts.ravel()[1:10].reshape(3, 3), counts[None, :, 1:].reshape(4, 2)):
        with pytest.raises(AttributeError, match="knows nothing of them"):
            _ = cut.n_samples


def test_counts_of_another_number_of_draws_are_refused():
    """Counts of fewer draws than m' would lose the coverage without a word."""
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    rule = bincp.BinCP(certificate).calibrate(np.random.default_rng(0).random((99, 16)))
    with pytest.raises(ValueError, match=r"m' = 16 calibrated for, got 8"):
        rule.predict_set_from_counts([[8, 3]], n_samples=8)
    with pytest.raises(TypeError, match="n_samples"):
        rule.predict_set_from_counts([[8, 3]])
