"""Methods on the mean of the smoothed score: slow transcriptions, special cases, exact coverage."""

import copy
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bincp
from bincp.baselines import CAS, RCP1, RSCP, RankedRSCP, SmoothedCP, VanillaCP
from bincp.scores import ptt
from support import quiet

IDENTITY = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.0))
GAUSSIAN = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.125))
STRONG = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.5))
SPARSE = bincp.certify(bincp.smoothing.SparseFlip(0.2, 0.7), bincp.balls.Flips(0, 1))
UNIFORM = bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.1))
CERTIFICATES = [GAUSSIAN, SPARSE, UNIFORM]

SAMPLED = [
    lambda c, **o: RSCP(c, **o),
    lambda c, **o: RSCP(c, correction="bernstein", **o),
    lambda c, **o: RSCP(c, robust_at="test", **o),
    lambda c, **o: CAS(c, **o),
    lambda c, **o: CAS(c, robust_at="test", **o),
]


# ---- transcriptions ----------------------------------------------------------------------------


@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("robust_at", ["calibration", "test"])
@pytest.mark.parametrize("correction", ["dkw", "none"])
@given(data=st.data())
@settings(deadline=None, max_examples=15)
def test_cas_sums_the_certificate_over_the_steps_of_each_cdf(
    certificate, robust_at, correction, data
):  # the error of sampling is subtracted below and added above
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 12))
    grid = data.draw(st.lists(st.integers(0, 8), min_size=n * m, max_size=n * m))
    samples = np.array(grid).reshape(n, m) / 8  # ties, and both ends of the range
    method = CAS(certificate, correction=correction, robust_at=robust_at, eta=0.05)
    e = 0.0 if correction == "none" else math.sqrt(math.log(2 / 0.05) / (2 * m))
    lower = certificate.lower if robust_at == "calibration" else float
    upper = certificate.upper if robust_at == "test" else float
    for row, low, high in zip(
        samples,
        method.calibration_conformity(samples),
        method.conformity(samples[None])[0],
        strict=True,
    ):
        steps = sorted({0.0, 1.0, *row})
        expected_low = expected_high = 0.0
        for a, b in pairwise(steps):  # the survival function is flat on (a, b]
            survival = (row >= b).mean()
            expected_low += (b - a) * lower(max(float(survival) - min(e, 1), 0.0))
            expected_high += (b - a) * upper(min(float(survival) + min(e, 1), 1.0))
        assert low <= expected_low + 1e-15
        assert low == pytest.approx(expected_low, abs=1e-12)
        assert high >= expected_high - 1e-15
        assert high == pytest.approx(expected_high, abs=1e-12)


@pytest.mark.parametrize(
    "make", [*SAMPLED, lambda c, **o: RankedRSCP(c, [0.2, 0.5, 0.9], seed=1, **o)]
)
def test_sets_hold_the_labels_whose_conformity_reaches_the_threshold(make):
    rng = np.random.default_rng(8)
    true, scores = rng.beta(6, 2, (60, 100)), rng.beta(3, 3, (20, 4, 100))
    rule = make(GAUSSIAN, eta=0.02)
    conformity = rule.conformity(scores)  # before calibration as after
    quiet(rule.calibrate, true)
    assert rule.tau_ == np.sort(rule.calibration_conformity(true))[rule.rank_ - 1]
    np.testing.assert_array_equal(rule.conformity(scores), conformity)
    np.testing.assert_array_equal(rule.predict_set(scores), conformity >= rule.tau_)
    with pytest.raises(ValueError, match=r"`scores` must have shape \(n, K, m'\), got \(60, 100\)"):
        rule.conformity(true)
    with pytest.raises(ValueError, match=r"`true_scores` must have shape \(n, m\) .* got \(20, 4"):
        rule.calibration_conformity(scores)


@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("robust_at", ["calibration", "test"])
def test_rscp_plus_by_its_formula(certificate, robust_at):
    rng = np.random.default_rng(0)
    true, scores = rng.beta(6, 2, (60, 200)), rng.beta(3, 3, (20, 4, 200))
    rule = RSCP(certificate, alpha=0.1, eta=0.02, robust_at=robust_at).calibrate(true)
    b = math.sqrt(math.log(1 / 0.01) / (2 * 200))
    tau = np.sort(true.mean(-1))[math.floor(Fraction("0.08") * 61) - 1] - b  # clean scale
    expected = [
        [min(s.mean() + b, 1) >= certificate.lower(float(tau)) for s in row] for row in scores
    ]
    np.testing.assert_array_equal(rule.predict_set(scores), expected)


def test_uncorrected_rscp_is_the_published_gaussian_formula():
    rng = np.random.default_rng(1)
    true, scores = rng.beta(6, 2, (99, 50)), rng.beta(3, 3, (20, 4, 50))
    rule = RSCP(GAUSSIAN, correction="none").calibrate(true)
    tau = np.sort(true.mean(-1))[9]
    worst = stats.norm.cdf(stats.norm.ppf(tau) - 0.125 / 0.5)
    np.testing.assert_array_equal(rule.predict_set(scores), scores.mean(-1) >= worst)
    assert rule.guarantee == "none"


def test_scores_of_another_range_are_mapped_to_the_unit_interval():
    rng = np.random.default_rng(2)
    true, scores = rng.beta(6, 2, (60, 100)), rng.beta(3, 3, (20, 4, 100))
    for method in (RSCP, CAS):
        for side in ("calibration", "test"):
            unit = method(GAUSSIAN, eta=0.02, robust_at=side).calibrate(true)
            moved = method(GAUSSIAN, eta=0.02, robust_at=side, bounds=(-3, 1))
            moved.calibrate(4 * true - 3)
            assert moved.tau_ == pytest.approx(unit.tau_, abs=1e-12)
            np.testing.assert_array_equal(
                moved.predict_set(4 * scores - 3), unit.predict_set(scores)
            )


def test_ranked_rscp_is_rscp_on_transformed_scores():
    rng = np.random.default_rng(3)
    tuning, true = rng.random(100), rng.random((50, 30))  # no ties, so no randomness
    scores = rng.random((10, 3, 30))
    ranked = quiet(RankedRSCP(GAUSSIAN, tuning, seed=5, alpha=0.2, temperature=0.1).calibrate, true)
    transformed = ptt(true, tuning, 0.0, b=0.2, temperature=0.1)
    plain = quiet(RSCP(GAUSSIAN, alpha=0.2).calibrate, transformed)
    assert ranked.tau_ == plain.tau_
    np.testing.assert_array_equal(
        ranked.predict_set(scores),
        plain.predict_set(ptt(scores, tuning, 0.0, b=0.2, temperature=0.1)),
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_ranked_rscp_takes_tensors_as_all_methods_do(dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    arrays = [rng.random(shape) for shape in (100, (50, 30), (10, 3, 30))]
    tensors = [torch.from_numpy(array).to(getattr(torch, dtype)) for array in arrays]
    same = [tensor.float().numpy() for tensor in tensors]
    sets = []
    for tuning, true, scores in (tensors, same, (tensors[0], *same[1:])):
        rule = RankedRSCP(GAUSSIAN, tuning, seed=5, alpha=0.2, temperature=0.1)
        sets.append(quiet(rule.calibrate, true).predict_set(scores))
    np.testing.assert_array_equal(sets[0], sets[1])
    np.testing.assert_array_equal(sets[0], sets[2])


def test_ranked_rscp_keeps_its_tuning_scores():
    rng = np.random.default_rng(4)
    tuning, true = rng.random(100), rng.random((50, 30))
    rule = RankedRSCP(GAUSSIAN, tuning, seed=5, alpha=0.2, temperature=0.1)
    tuning[:] = 0
    again = RankedRSCP(GAUSSIAN, np.zeros(100), seed=5, alpha=0.2, temperature=0.1)
    assert quiet(rule.calibrate, true).tau_ != quiet(again.calibrate, true).tau_


def test_ranked_rscp_breaks_ties_by_its_seed_alone():
    true = np.full((50, 30), 0.5)
    taus = [
        quiet(RankedRSCP(GAUSSIAN, true, seed=seed, temperature=0.5).calibrate, true).tau_
        for seed in (0, 0, 1)
    ]
    assert taus[0] == taus[1] != taus[2]


@pytest.mark.parametrize("certificate", [GAUSSIAN, STRONG, UNIFORM, SPARSE, IDENTITY])
@pytest.mark.parametrize("n", [50, 99, 500])
@pytest.mark.parametrize("alpha", ["0.1", "0.25"])
def test_rcp1_has_the_published_level_for_convex_certificates(certificate, n, alpha):
    rule = quiet(RCP1(certificate, alpha=alpha).calibrate, np.random.default_rng(0).random((n, 1)))
    clean = 1 - float(Fraction(alpha))
    published = 1 - (clean if certificate is IDENTITY else certificate.upper(clean))
    # One less is allowed where the product is a whole number, which no grid can certify.
    assert rule.rank_ <= math.floor(published * (n + 1) + 1e-9)
    assert rule.rank_ >= math.floor(published * (n + 1) - 1e-6)


def test_vanilla_and_smoothed_take_the_exact_rank_f008():
    for n, rank in ((9, 1), (19, 2), (99, 10), (249, 25)):
        scores = np.random.default_rng(n).random(n)
        vanilla = VanillaCP(alpha=0.1).calibrate(scores)
        smoothed = SmoothedCP(alpha=0.1).calibrate(np.repeat(scores[:, None], 4, axis=1))
        assert vanilla.rank_ == smoothed.rank_ == rank
        assert vanilla.tau_ == smoothed.tau_ == np.sort(scores)[rank - 1]


# ---- special cases -----------------------------------------------------------------------------


def test_a_tie_with_the_threshold_is_included_f009():
    constant = np.full(19, 0.1)
    assert VanillaCP().calibrate(constant).predict_set([[0.1]]).all()
    # The mean of equal samples must not depend on memory layout or on the other rows.
    for dtype in (np.float32, np.float64):
        true = np.asfortranarray(np.full((19, 37), 0.1, dtype))
        rule = SmoothedCP().calibrate(true)
        assert rule.predict_set(np.full((5, 3, 37), 0.1, dtype)).all()
        scores = np.moveaxis(np.full((37, 5, 3), 0.1, dtype), 0, -1)
        assert rule.predict_set(scores).all()


@pytest.mark.parametrize("make", SAMPLED)
def test_without_attack_and_with_many_samples_the_mean_decides(make):
    m = 40_000
    levels = np.linspace(0.2, 0.9, 19)
    true = np.stack([np.arange(m) < round(m * p) for p in levels]).astype(np.float32)
    rule = make(IDENTITY, alpha=0.2, eta=0.01).calibrate(true)  # rank 3 at 0.19
    scores = np.stack([np.arange(m) < round(m * p) for p in (0.23, 0.27, 0.29)])[None]
    np.testing.assert_array_equal(
        rule.predict_set(scores.astype(np.float32)), [[False, True, True]]
    )


@pytest.mark.parametrize("make", SAMPLED)
def test_the_order_of_samples_is_irrelevant(make):
    rng = np.random.default_rng(4)
    true = rng.integers(0, 9, (30, 64)) / 8
    rule = make(GAUSSIAN, alpha=0.2, eta=0.1)
    taus = [quiet(rule.calibrate, rng.permuted(true, axis=1)).tau_ for _ in range(5)]
    assert max(taus) - min(taus) < 1e-12


@pytest.mark.parametrize("make", SAMPLED)
def test_one_calibration_point_accepts_everything_and_says_so(make):
    with pytest.warns(bincp.TrivialSetWarning, match=r"n = 1 calibration points are too few"):
        rule = make(GAUSSIAN).calibrate(np.full((1, 16), 0.5))
    assert rule.rank_ == 0
    assert rule.tau_ == -math.inf
    assert rule.predict_set(np.zeros((2, 3, 16))).all()


@pytest.mark.parametrize("make", SAMPLED)
def test_a_radius_or_error_that_eats_everything_is_a_warning(make):
    with pytest.warns(bincp.TrivialSetWarning, match="a smaller radius, more samples"):
        rule = make(STRONG).calibrate(np.full((100, 2), 0.5))
    assert rule.predict_set(np.zeros((2, 3, 2))).all()


def test_where_a_robust_bound_is_used_does_not_matter_for_exact_means_and_binary_sets():
    """Lemma 2: upper(p) >= q exactly where p >= lower(q)."""
    rng = np.random.default_rng(5)
    true, scores = rng.beta(6, 2, 99), rng.beta(3, 3, (50, 4))
    for certificate in CERTIFICATES:
        sides = [
            RSCP(certificate, robust_at=side).calibrate_exact(true).predict_set_exact(scores)
            for side in ("calibration", "test")
        ]
        np.testing.assert_array_equal(*sides)
        rule = bincp.BinCP(certificate).calibrate_exact(true, tau=0.5)
        at_test = certificate.upper(scores) >= rule.p_
        np.testing.assert_array_equal(rule.predict_set_exact(scores), at_test)
        np.testing.assert_array_equal(rule.predict_set_exact(scores), sides[0])
        assert 0 < at_test.mean() < 1


def test_test_and_calibration_samples_may_differ_in_number_where_they_are_corrected():
    rng = np.random.default_rng(6)
    true, scores = rng.beta(8, 2, (99, 400)), rng.beta(2, 2, (9, 3, 100))
    for make in SAMPLED:
        rule = make(GAUSSIAN, eta=0.05).calibrate(true, n_test_samples=100)
        assert rule.predict_set(scores).shape == (9, 3)
        with pytest.raises(ValueError, match="must have the m' = 100 samples calibrated for"):
            rule.predict_set(rng.random((9, 3, 400)))


# ---- coverage, computed ------------------------------------------------------------------------


def coverage_under_attack(method, certificate, population, *, n, m):
    """Return the exact coverage where a score is 1 with a probability that c lowers, else 0.

    ``population`` maps clean probabilities to their shares. The value of a calibration point is a
    function of its count, so the law of the threshold, an order statistic, is a sum of binomials.
    """
    rows = (np.arange(m) < np.arange(m + 1)[:, None]).astype(float)  # a row for each count
    rules = [quiet(method().calibrate, np.tile(row, (n, 1))) for row in rows]  # tau for each count
    accepts = np.array([rule.predict_set(rows[None])[0] for rule in rules])
    rank = rules[0].rank_
    if rank == 0:
        return 1.0
    counts = sum(w * stats.binom.pmf(np.arange(m + 1), m, p) for p, w in population.items())
    cdf = np.minimum(np.cumsum(counts), 1)
    at_most = stats.binom.sf(rank - 1, n, cdf)  # the rank-th smallest count is at most ...
    threshold = np.diff(at_most, prepend=0)
    attacked = sum(
        w * stats.binom.pmf(np.arange(m + 1), m, certificate.lower(p))
        for p, w in population.items()
    )
    return float(threshold @ accepts @ attacked)


POPULATIONS = [{0.95: 1.0}, {0.99: 0.8, 0.3: 0.2}, {0.999: 0.85, 0.6: 0.1, 0.01: 0.05}, {0.7: 1.0}]


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("certificate", [GAUSSIAN, STRONG, SPARSE, UNIFORM, IDENTITY])
@pytest.mark.parametrize("make", SAMPLED)
def test_coverage_is_nominal_under_the_worst_attack(make, certificate, population):
    for n, m in ((19, 4), (39, 96)):
        exact = coverage_under_attack(
            lambda: make(certificate, alpha=0.2, eta=0.02), certificate, population, n=n, m=m
        )
        assert exact >= 0.8 - 1e-12


@pytest.mark.parametrize("method", [RSCP, CAS])
def test_what_guarantees_nothing_fails_under_the_worst_attack(method):
    """At m = 1 the uncorrected mean of a calibration point is 1, which no attack lowers."""
    exact = coverage_under_attack(
        lambda: method(STRONG, alpha=0.2, correction="none"), STRONG, {0.95: 1.0}, n=19, m=1
    )
    assert exact < 0.79
    assert method(STRONG, correction="none").guarantee == "none"
    assert method(STRONG).guarantee == "robust"


def test_smoothing_alone_is_covered_without_an_attack_only():
    for population in POPULATIONS:
        for n, m in ((19, 4), (39, 32)):
            clean = coverage_under_attack(
                lambda: SmoothedCP(alpha=0.2), IDENTITY, population, n=n, m=m
            )
            assert clean >= 0.8 - 1e-12
    attacked = coverage_under_attack(lambda: SmoothedCP(alpha=0.2), STRONG, {0.7: 1.0}, n=39, m=32)
    assert attacked < 0.1
    assert SmoothedCP().guarantee == VanillaCP().guarantee == "clean"


@pytest.mark.parametrize("certificate", [GAUSSIAN, STRONG, SPARSE, UNIFORM])
@pytest.mark.parametrize("population", POPULATIONS)
def test_rcp1_is_covered_under_the_worst_attack(certificate, population):
    exact = coverage_under_attack(
        lambda: RCP1(certificate, alpha=0.2), certificate, population, n=39, m=1
    )
    assert exact >= 0.8 - 1e-9


def test_exact_means_are_covered_under_the_worst_attack():
    """n = 9, alpha = 0.2: of ten exchangeable points, each in turn as the test point."""
    rng = np.random.default_rng(7)
    for certificate in CERTIFICATES:
        means = rng.beta(4, 1, 10)
        covered = [
            RSCP(certificate, alpha=0.2)
            .calibrate_exact(np.delete(means, i))
            .predict_set_exact([[certificate.lower(means[i])]])[0, 0]
            for i in range(10)
        ]
        assert sum(covered) >= 8


# ---- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", SAMPLED)
def test_bad_samples_are_refused_with_their_place(make):
    method = make(GAUSSIAN)
    with pytest.raises(bincp.NotCalibratedError, match=r"call calibrate\(\) before"):
        method.predict_set(np.zeros((1, 2, 4)))
    true = np.full((30, 4), 0.5)
    for bad, message in ((math.nan, "got nan"), (1.5, "got 1.5"), (-0.1, "got -0.1")):
        broken = true.copy()
        broken[3, 2] = bad
        with pytest.raises(ValueError, match=rf"`true_scores` must be in \[0, 1\], {message} at"):
            method.calibrate(broken)
    quiet(method.calibrate, true)
    with pytest.raises(ValueError, match=r"`scores` must be in \[0, 1\], got nan at index"):
        method.predict_set(np.full((1, 2, 4), math.nan))
    for shape in ((30,), (30, 4, 1), (0, 4)):
        with pytest.raises(ValueError, match="`true_scores` must"):
            method.calibrate(np.zeros(shape))
    for shape in ((2, 4), (1, 2, 4, 1), (1, 2, 5)):
        with pytest.raises(ValueError, match="`scores` must have"):
            method.predict_set(np.zeros(shape))
    with pytest.raises(ValueError, match="`true_scores` must have one of the dtypes"):
        method.calibrate(true.astype(int))


@pytest.mark.parametrize("method", [RSCP, CAS])
def test_arguments_are_validated_in_the_constructor(method):
    for options, error, message in (
        ({"alpha": 1.5}, ValueError, r"`alpha` must be in \(0, 1\), got 1.5"),
        ({"alpha": "nan"}, ValueError, "`alpha`"),
        ({"eta": 0.1}, ValueError, "`eta` must be below alpha"),
        ({"correction": "mixture"}, ValueError, "`correction` must be one of"),
        ({"robust_at": "both"}, ValueError, "`robust_at` must be one of"),
        ({"bounds": (1, 0)}, ValueError, "`bounds` must be"),
        ({"bounds": 1}, TypeError, "`bounds` must be a pair"),
    ):
        with pytest.raises(error, match=message):
            method(GAUSSIAN, **options)
    with pytest.raises(TypeError, match="`certificate` must be a Certificate"):
        method(0.5)


def test_vanilla_and_smoothed_refuse_what_they_were_not_calibrated_for():
    vanilla, smoothed = VanillaCP(), SmoothedCP()
    for method, shape in ((vanilla, (1, 2)), (smoothed, (1, 2, 4))):
        with pytest.raises(bincp.NotCalibratedError):
            method.predict_set(np.zeros(shape))
    vanilla.calibrate(np.arange(20.0))
    smoothed.calibrate(np.random.default_rng(0).random((20, 4)))
    with pytest.raises(ValueError, match="dtype calibrated with, float64, got float32"):
        vanilla.predict_set(np.zeros((1, 2), np.float32))
    with pytest.raises(ValueError, match=r"`scores` must have shape \(n, K\)"):
        vanilla.predict_set(np.zeros(2))
    with pytest.raises(ValueError, match=r"`scores`.*NaN"):
        vanilla.predict_set([[math.nan, 0.0]])
    with pytest.raises(ValueError, match="m = 4 samples calibrated with"):
        smoothed.predict_set(np.zeros((1, 2, 5)))
    scores = np.zeros((1, 2, 4))
    scores[0, 1, 2] = math.inf
    with pytest.raises(ValueError, match=r"`scores` must be finite, got inf at index \(0, 1, 2\)"):
        smoothed.predict_set(scores)


@pytest.mark.parametrize("make", SAMPLED)
def test_means_of_scores_of_two_dtypes_are_not_exchangeable(make):
    """Rounded to float16 the same scores would have smaller means, and miss every threshold."""
    scores = np.full((40, 8), 0.1)
    rule = quiet(make(IDENTITY, alpha=0.5).calibrate, scores)
    assert rule.dtype_ == "float64"
    assert rule.predict_set(scores[:, None]).all()
    for dtype in (np.float16, np.float32):
        with pytest.raises(
            ValueError, match=f"dtype calibrated with, float64, got {dtype.__name__}"
        ):
            rule.predict_set(scores[:, None].astype(dtype))


@pytest.mark.parametrize("m", [256, 1000])
def test_means_of_large_scores_are_numbers(m):
    """The sums of the halves are infinite, with both signs; the mean is 0, and a tie is covered."""
    scores = np.repeat([[1.7e308] * (m // 2) + [-1.7e308] * (m // 2)], 40, axis=0)
    for sign in (1, -1):
        rule = SmoothedCP().calibrate(sign * scores)
        assert rule.tau_ == 0
        assert rule.predict_set(sign * scores[:, None]).all()
    rule = SmoothedCP().calibrate(np.abs(scores))
    assert rule.tau_ == pytest.approx(1.7e308)
    assert rule.predict_set(np.stack([scores, np.abs(scores)], axis=1))[0].tolist() == [False, True]


def test_exact_and_sampled_calls_do_not_mix():
    rule = RSCP(GAUSSIAN).calibrate_exact(np.linspace(0.5, 1, 99))
    assert rule.guarantee == "robust"
    with pytest.raises(bincp.NotCalibratedError, match="sampled scores"):
        rule.predict_set(np.zeros((1, 2, 4)))
    quiet(rule.calibrate, np.full((99, 4), 0.5))
    with pytest.raises(bincp.NotCalibratedError, match="calibrate_exact"):
        rule.predict_set_exact([[0.5]])
    narrow = np.full(99, 0.5, np.float32)  # coarser than the bounds
    for means, error in (
        ([0.5, 1.5], ValueError),
        ([math.nan], ValueError),
        (["a"], TypeError),
        (narrow, ValueError),
    ):
        with pytest.raises(error, match="`means` must be"):
            rule.calibrate_exact(means)
    for means in ([], [[0.5]], 0.5):
        with pytest.raises(ValueError, match=r"`means` must have shape \(n,\), n >= 1, got"):
            rule.calibrate_exact(means)


def test_ranked_rscp_checks_its_tuning_scores():
    for tuning, message in (
        (np.array([]), "tuning_scores"),
        (np.array([math.nan]), "`tuning_scores` must be a number"),
        (np.array([1, 2]), "`tuning_scores` must have one of the dtypes"),
    ):
        with pytest.raises(ValueError, match=message):
            RankedRSCP(GAUSSIAN, tuning, seed=0)
    with pytest.raises(ValueError, match="`true_scores` must have at least one axis, got a scalar"):
        RankedRSCP(GAUSSIAN, np.ones(3), seed=0).calibrate(np.float64(0.5))
    with pytest.raises(ValueError, match="`temperature` must be"):
        RankedRSCP(GAUSSIAN, np.ones(3), seed=0, temperature=0)


def test_rcp1_wants_one_sample():
    for shape in ((30,), (30, 2)):
        with pytest.raises(ValueError, match=r"`true_scores` must have shape \(n, 1\)"):
            RCP1(GAUSSIAN).calibrate(np.zeros(shape))


def test_a_copy_of_rcp1_is_calibrated_on_its_own():
    low, high = np.zeros((40, 1)), np.ones((40, 1))
    rule = RCP1(IDENTITY).calibrate(low)
    copied = copy.copy(rule).calibrate(high)
    assert (rule.tau_, copied.tau_) == (0, 1)
    assert rule.predict_set([[[0.5]]]).all()
    assert not copied.predict_set([[[0.5]]]).any()
    with pytest.raises(ValueError, match="`true_scores` must be a rectangular array"):
        rule.calibrate([[0.0], [0.0, 1.0]])
    assert rule.tau_ == 0
