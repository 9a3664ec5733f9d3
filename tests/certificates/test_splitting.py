"""Splitting noise: published values, brute force over tiny spaces, exact and sampled sets."""

import itertools
import math
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bincp
from bincp import BinCP, certify
from bincp._core import _operators
from bincp.balls import L1, L2
from bincp.errors import CertificateError
from bincp.noise import Keys, all_copies, draw
from bincp.smoothing import BandAblation, Gaussian, SplittingNoise
from bincp.testing import check_certificate
from support import golden

torch = pytest.importorskip("torch")

from bincp.sampling import RobustClassifier, exact_probabilities  # noqa: E402

GOLDEN = golden("splitting_noise")
BY_SIGMA = GOLDEN["derandomized"]["by_sigma"]


# ---- published values ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["toy"]["cases"], ids=lambda case: str(case["lam"]))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_are_the_published_ones_row_by_row(case, dtype):
    scheme = SplittingNoise(case["lam"], seed=case["seed"])
    assert scheme.levels == case["levels"]
    copies = all_copies(scheme, (np.array([case["x255"]]) / 255).astype(dtype))[0]
    assert copies.dtype == dtype
    numerators = np.rint(copies.astype(np.float64) * 1020).astype(int)
    np.testing.assert_array_equal(copies, (numerators / 1020).astype(dtype))
    assert numerators[: len(case["first_rows"])].tolist() == case["first_rows"]
    assert numerators.sum(axis=0).tolist() == case["column_sums"]


def test_levels_are_the_published_ones():
    for case in BY_SIGMA:
        assert SplittingNoise(case["lambda"]).levels == case["levels"]


@pytest.mark.parametrize("grid", [1, 7, 255])
def test_levels_of_a_multiple_of_half_a_grid_step_are_that_multiple(grid):
    for levels in range(1, 2000):
        scheme = SplittingNoise(levels / (2 * grid), grid)
        assert scheme.levels == levels
        below_it = SplittingNoise(math.nextafter(levels / (2 * grid), 0), grid) if levels > 1 else 0
        assert levels == 1 or below_it.levels == levels - 1


@pytest.mark.parametrize(
    ("half_width", "levels"), [(0.3, 153), (1.2, 612), (0.25, 127), (0.7, 357)]
)
def test_levels_of_decimals(half_width, levels):
    assert SplittingNoise(half_width).levels == levels


@pytest.mark.parametrize("case", BY_SIGMA, ids=lambda case: str(case["sigma"]))
def test_published_radii(case):
    """The radius is the last number of steps at which the first label still wins, or ties and is
    the smaller index."""
    scheme, levels = SplittingNoise(case["lambda"]), case["levels"]
    for n1, n2, second_is_smaller, radius in case["rows"]:
        for steps in {radius, radius + 1}:
            certificate = certify(scheme, L1(steps / 255))
            first = Fraction(n1, levels) - Fraction(min(steps, levels), levels)
            second = Fraction(n2, levels) + Fraction(min(steps, levels), levels)
            assert certificate.lower(n1 / levels) == nearest_below(max(first, Fraction(0)))
            assert certificate.upper(n2 / levels) == nearest_above(min(second, Fraction(1)))
            wins = first >= second + Fraction(second_is_smaller, levels)
            assert wins == (steps <= radius)


def test_realised_levels_count_and_not_the_nominal_slope():
    for half_width, votes, steps, levels, value in [
        (0.25, 114, 10, 127, 0.8188976377952756),
        (0.25 * math.sqrt(3), 198, 32, 220, 0.7545454545454545),
    ]:
        scheme = SplittingNoise(half_width)
        assert scheme.levels == levels
        lower = certify(scheme, L1(steps / 255)).lower(votes / levels)
        assert Fraction(lower) <= Fraction(votes - steps, levels)
        assert lower == pytest.approx(value, rel=0, abs=1.2e-16)


# ---- the operator of counts ---------------------------------------------------------------------


def nearest_below(value):
    number = float(value)
    return math.nextafter(number, -math.inf) if Fraction(number) > value else number


def nearest_above(value):
    return -nearest_below(-value) + 0.0


@pytest.mark.parametrize("levels", [1, 2, 3, 7, 64, 127, 220, 441])
def test_bounds_of_all_counts_are_rounded_once_and_compare_exactly(levels):
    counts = np.arange(levels + 1)
    for steps in {0, 1, levels // 3, levels - 1, levels}:
        operator = _operators.steps(levels, steps)
        for count in range(levels + 1):
            lower, upper = operator.lower(count / levels), operator.upper(count / levels)
            assert lower == nearest_below(Fraction(max(count - steps, 0), levels))
            assert upper == nearest_above(Fraction(min(count + steps, levels), levels))
            np.testing.assert_array_equal(counts / levels >= lower, counts >= count - steps)
            np.testing.assert_array_equal(counts / levels <= upper, counts <= count + steps)


@given(levels=st.integers(1, 2**31), data=st.data())
@settings(deadline=None, max_examples=300)
def test_bounds_are_sound_monotone_and_tight_for_any_probability(levels, data):
    steps = data.draw(st.integers(0, levels))
    count = data.draw(st.integers(0, levels))
    p = data.draw(st.one_of(st.floats(0, 1), st.just(count / levels)))
    operator = _operators.steps(levels, steps)
    if data.draw(st.booleans()):
        p = min(max(math.nextafter(p, data.draw(st.sampled_from([0.0, 1.0]))), 0.0), 1.0)
    exact = Fraction(p)
    if abs(exact - Fraction(round(exact * levels), levels)) <= Fraction(math.ulp(p)) / 2:
        exact = Fraction(round(exact * levels), levels)  # stands for the count
    shift = Fraction(steps, levels)
    low, high = max(exact - shift, 0), min(exact + shift, 1)
    assert low - Fraction(1, 2**51) <= Fraction(operator.lower(p)) <= low
    assert high <= Fraction(operator.upper(p)) <= high + Fraction(1, 2**51)
    assert operator.lower(p) <= p <= operator.upper(p)
    above = math.nextafter(p, 1)
    assert operator.lower(p) <= operator.lower(above)
    assert operator.upper(p) <= operator.upper(above)


def test_bounds_outside_their_range_are_nan():
    operator = _operators.steps(10, 3)
    for p in (-5e-324, 1.0000000000000002, math.nan, math.inf):
        assert math.isnan(operator.lower(p))
        assert math.isnan(operator.upper(p))


# ---- certificates -------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [None, 1, 255])
@pytest.mark.parametrize("half_width", [0.5, 0.51, 3.7])
@pytest.mark.parametrize("r", [0, 1e-9, 0.1, 1.0, 200.0])
def test_law(half_width, grid, r):
    certificate = certify(SplittingNoise(half_width, grid), L1(r))
    check_certificate(certificate)
    again = pickle.loads(pickle.dumps(certificate))
    p = np.linspace(0, 1, 50)
    np.testing.assert_array_equal(certificate.lower(p), again.lower(p))
    np.testing.assert_array_equal(certificate.inverse().upper(p), certificate.upper(p))


def test_continuous_bound_is_that_of_uniform_noise():
    certificate = certify(SplittingNoise(0.4, grid=None), L1(0.1))
    for p in np.linspace(0, 1, 101).tolist():
        excess = Fraction(1, 2**26) * (1 + 1 / (2 * Fraction(0.4)))  # of drawn offsets
        exact = max(Fraction(p) - Fraction(0.1) / (2 * Fraction(0.4)) - excess, Fraction(0))
        assert exact - Fraction(1, 2**52) <= Fraction(certificate.lower(p)) <= exact


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 100, 254, 255, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_radius_of_whole_steps_counts_them_all_in_any_precision(steps, dtype):
    levels = 2000
    scheme = SplittingNoise(levels / 510)
    for r in (dtype(steps) / dtype(255), dtype(steps) * (dtype(1) / dtype(255))):
        lower = certify(scheme, L1(float(r))).lower(1.0)
        assert lower == nearest_below(Fraction(levels - steps, levels))
    just_less = certify(scheme, L1(steps / 255 * (1 - 1e-6))).lower(1.0)
    assert just_less == nearest_below(Fraction(levels - steps + 1, levels))


def lost_and_gained(first, second):
    """Copies of the first that the second lacks, as multisets: the worst event loses just them."""
    return sum((Counter(first) - Counter(second)).values())


@pytest.mark.parametrize("levels", range(1, 10))
def test_the_integer_bound_against_all_pairs_of_a_tiny_space(levels):
    """Every event is a set of copies, so the largest change of a count is a multiset difference."""
    grid, dim = 3, 2
    points = list(itertools.product(range(grid + 1), repeat=dim))
    worst = Counter()
    for seed in range(6):
        scheme = SplittingNoise(levels / (2 * grid), grid, seed)
        assert scheme.levels == levels
        copies = all_copies(scheme, np.array(points) / grid)
        rows = [[tuple(copy) for copy in one] for one in copies]
        for (x, x_rows), (y, y_rows) in itertools.product(zip(points, rows, strict=True), repeat=2):
            steps = sum(abs(a - b) for a, b in zip(x, y, strict=True))
            worst[steps] = max(worst[steps], lost_and_gained(x_rows, y_rows))
    for steps, lost in worst.items():
        certificate = certify(SplittingNoise(levels / (2 * grid), grid), L1(steps / grid))
        for count in range(lost, levels + 1):
            assert Fraction(certificate.lower(count / levels)) <= Fraction(count - lost, levels)
    # No smaller number of steps would do, where a single cell does not cover everything.
    assert all(worst[s] == s for s in range(min(levels, grid) + 1))


@pytest.mark.parametrize("seed", range(3))
def test_all_classifiers_of_a_tiny_space(seed):
    """Every subset of the copies as the event, every pair of inputs, straight from the law."""
    grid, levels = 2, 3
    scheme = SplittingNoise(levels / (2 * grid), grid, seed)
    points = np.array(list(itertools.product(range(grid + 1), repeat=2)))
    numerators = np.rint(all_copies(scheme, points / grid) * 4 * grid).astype(int)
    values = sorted({tuple(copy) for one in numerators.tolist() for copy in one})
    where = np.array([[values.index(tuple(copy)) for copy in one] for one in numerators.tolist()])
    bounds = [certify(scheme, L1(s / grid)) for s in range(2 * grid + 1)]
    events = np.array(list(itertools.product([False, True], repeat=min(len(values), 12))))
    assert len(values) <= 12
    counts = events[:, where].sum(axis=2)  # (events, inputs)
    for i, j in itertools.product(range(len(points)), repeat=2):
        certificate = bounds[int(abs(points[i] - points[j]).sum())]
        assert (counts[:, j] / levels >= certificate.lower(counts[:, i] / levels)).all()
        assert (counts[:, j] / levels <= certificate.upper(counts[:, i] / levels)).all()


# ---- samplers -----------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**64 - 1), half_width=st.floats(0.01, 5), n=st.integers(1, 150))
@settings(deadline=None, max_examples=50)
def test_continuous_noise_is_the_formula_of_the_paper(seed, half_width, n):
    x = np.random.default_rng(n).random((1, n))
    noisy = draw(SplittingNoise(half_width, None), x, 3, phase="calibration", seed=seed)[0]
    words = Keys(seed, "calibration", np.zeros(3, int), np.arange(3)).words(n)
    length = 2 * half_width
    s = ((words >> np.uint64(11)).astype(float) + 0.5) / 2**53 * length
    cell = np.ceil((x - s) / length)
    high, low = np.minimum(length * cell + s, 1), np.maximum(length * (cell - 1) + s, 0)
    np.testing.assert_allclose(noisy, (high + low) / 2, rtol=0, atol=1e-14)
    single = draw(
        SplittingNoise(half_width, None), x.astype(np.float32), 3, phase="calibration", seed=seed
    )[0]
    np.testing.assert_allclose(single, noisy, rtol=0, atol=3e-7 + 2 * np.spacing(half_width))


def test_continuous_noise_is_uniform_in_the_middle_and_independent():
    x = np.full((1, 200), 0.5)
    noisy = draw(SplittingNoise(0.1, None), x, 500, phase="test", seed=1)[0]
    assert stats.kstest((noisy - 0.4).ravel() / 0.2, "uniform").pvalue > 1e-6
    correlations = np.corrcoef(noisy.T)[np.triu_indices(200, 1)]
    assert abs(correlations.mean()) < 5 / np.sqrt(500 * len(correlations))
    assert np.abs(correlations).max() < 6 / np.sqrt(500)


def test_cells_split_two_points_as_often_as_claimed_and_agree_to_the_bit_else():
    scheme, m = SplittingNoise(0.3, None), 20_000
    x, y = np.array([[0.41]], np.float32), np.array([[0.44]], np.float32)
    a, b = (draw(scheme, z, m, phase="test", seed=5).ravel() for z in (x, y))
    p = float(y[0, 0] - x[0, 0]) / 0.6
    assert abs((a != b).mean() - p) < 5 * math.sqrt(p * (1 - p) / m)
    # The worst event: "the copy is one that y has not".
    gone = ~np.isin(a, b)
    assert gone.mean() >= 0.9 * p


def test_sampled_grid_noise_draws_all_copies_alike():
    scheme = SplittingNoise(0.05, seed=3)
    x = (np.random.default_rng(0).integers(0, 256, (1, 40)) / 255).astype(np.float32)
    copies = all_copies(scheme, x)[0]
    assert len(np.unique(copies, axis=0)) == scheme.levels == 25
    noisy = draw(scheme, x, 5000, phase="calibration", seed=9)[0]
    which = (noisy[:, None] == copies).all(axis=2)
    assert (which.sum(axis=1) == 1).all()
    assert stats.chisquare(which.sum(axis=0)).pvalue > 1e-6


def test_grid_points_may_be_off_by_their_rounding():
    k = np.arange(256)
    expected = all_copies(SplittingNoise(0.3), (k / 255)[None])
    for x in (
        k.astype(np.float32) / np.float32(255),
        k.astype(np.float32) * (np.float32(1) / np.float32(255)),
        (torch.arange(256, dtype=torch.uint8) / 255).numpy(),
    ):
        copies = all_copies(SplittingNoise(0.3), x[None])
        np.testing.assert_array_equal(copies, expected.astype(np.float32))


def test_grey_levels_are_grid_points():
    """Those of uint8 get the bits of x / 255 in single precision, as copies and as draws."""
    scheme = SplittingNoise(0.3, seed=2)
    levels = np.random.default_rng(0).integers(0, 256, (3, 4, 25)).astype(np.uint8)
    levels[0, 0, :2] = 0, 255
    x = levels / np.float32(255)
    assert all_copies(scheme, levels).dtype == np.float32
    np.testing.assert_array_equal(all_copies(scheme, levels), all_copies(scheme, x))
    for first, n_threads in ((0, 1), (5, 3)):
        drawn = [
            draw(scheme, one, 40, phase="test", seed=1, first_draw=first, n_threads=n_threads)
            for one in (levels, x)
        ]
        np.testing.assert_array_equal(*drawn)
    p = [
        exact_probabilities(lambda z: 4 * z.flatten(1)[:, :3], one, scheme, tau=0.4)
        for one in (levels, torch.from_numpy(levels), x)
    ]
    np.testing.assert_array_equal(p[0], p[2])
    np.testing.assert_array_equal(p[1], p[2])


@pytest.mark.parametrize("scheme", [SplittingNoise(0.3, grid=254), SplittingNoise(0.3, grid=None)])
def test_grey_levels_need_a_grid_of_255(scheme):
    levels = np.zeros((1, 5), np.uint8)
    with pytest.raises(ValueError, match=r"`x` must be float32 or float64 .*, got uint8"):
        draw(scheme, levels, 2, phase="test")
    with pytest.raises(ValueError, match=r"`x` must be float32 or float64 .*, got uint8"):
        all_copies(BandAblation(2, 5), levels)


# ---- prediction sets ----------------------------------------------------------------------------


def model(x):
    """Logits of three labels; half of their multiples of 1/1020 meet the threshold below."""
    return x.reshape(len(x), -1)[:, :3]


def data(n, seed=0):
    x = np.random.default_rng(seed).integers(0, 256, (n, 2, 3)).astype(np.float32) / np.float32(255)
    return x, x[:, 0].argmax(axis=1)


@pytest.mark.parametrize("half_width", [0.05, 0.25, 1.2])
@pytest.mark.parametrize("tau", [0.5, 0.25])
@pytest.mark.parametrize("steps", [0, 3, 40])
def test_exact_sets_are_those_of_integer_counts(half_width, tau, steps):
    scheme = SplittingNoise(half_width)
    x, y = data(60)
    counts = (all_copies(scheme, x)[:, :, 0] >= np.float32(tau)).sum(axis=1)  # (n, K)
    p = exact_probabilities(model, x, scheme, tau=tau, score="logit")
    np.testing.assert_array_equal(p, counts / scheme.levels)
    own = exact_probabilities(
        model, torch.from_numpy(x), scheme, tau=tau, score="logit", labels=y, batch_size=17
    )
    np.testing.assert_array_equal(own, p[np.arange(60), y])
    # Every count of the whole range as that of the decisive point: ties included.
    certificate = certify(scheme, L1(steps / 255))
    every = np.arange(scheme.levels + 1)
    for decisive in every[:: max(1, scheme.levels // 40)]:
        calibration = np.array([decisive] + [scheme.levels] * 18) / scheme.levels
        rule = BinCP(certificate, alpha=0.05)
        if decisive <= steps:
            with pytest.warns(bincp.TrivialSetWarning):
                rule.calibrate_exact(calibration, tau=tau)
        else:
            rule.calibrate_exact(calibration, tau=tau)
        assert rule.rank_ == 1
        sets = rule.predict_set_exact((every / scheme.levels)[:, None])[:, 0]
        np.testing.assert_array_equal(sets, every >= decisive - steps)
        np.testing.assert_array_equal(rule.predict_set_exact(p), counts >= decisive - steps)


def test_exact_sets_keep_the_label_at_every_input_of_the_ball():
    """All attacks on a grid of 5 values: who conforms clean is kept, as the theorem says."""
    grid, steps = 4, 1
    scheme = SplittingNoise(0.7, grid, seed=1)
    points = np.array(list(itertools.product(range(grid + 1), repeat=3)))
    x = points / grid
    y = points.argmax(axis=1)
    p = exact_probabilities(lambda z: z, x, scheme, tau=0.4, score="logit")
    rule = BinCP(certify(scheme, L1(steps / grid)), alpha=0.2)
    rule.calibrate_exact(p[np.arange(len(x)), y], tau=0.4)
    sets = rule.predict_set_exact(p)
    near = np.abs(points[:, None] - points).sum(axis=2) <= steps
    conforms = p[np.arange(len(x)), y] >= rule.p_
    kept = np.array([sets[near[i], y[i]].all() for i in range(len(x))])
    assert conforms.mean() >= 0.8
    assert kept[conforms].all()
    assert 1 < sets.sum(axis=1).mean() < 3  # neither empty nor trivial


def test_exact_probabilities_are_doubles():
    """In float32 a count that is proven can be rounded below what the certificate proves of it."""
    certificate = certify(SplittingNoise(5 / 2 / 255), L1(1 / 255))
    assert np.float32(1 / 5) < certificate.lower(float(np.float32(2 / 5))) or (
        np.float32(2 / 5) < certificate.lower(float(np.float32(3 / 5)))
    )
    rule = BinCP(certificate).calibrate_exact(np.full(99, 2 / 5), tau=0.5)
    assert rule.predict_set_exact([[1 / 5]]).all()
    risk = bincp.RobustRiskControl(certificate)
    labels = np.ones((99, 1), bool)
    risk.calibrate_exact(np.full((99, 1), 2 / 5), labels, tau=0.5)
    for narrow in (np.float32, np.float16):
        p = np.full((99, 1), 2 / 5).astype(narrow)
        for call in (
            lambda p: rule.calibrate_exact(p[:, 0], tau=0.5),
            lambda p: risk.calibrate_exact(p, labels, tau=0.5),
            rule.predict_set_exact,
            risk.predict_set_exact,
        ):
            with pytest.raises(ValueError, match="`probabilities` must be float64"):
                call(p)


def test_exact_rules_are_saved_and_loaded(tmp_path):
    x, y = data(100)
    scheme = SplittingNoise(0.25)
    p = exact_probabilities(model, x, scheme, tau=0.3, labels=y)
    rule = BinCP(certify(scheme, L1(2 / 255))).calibrate_exact(p, tau=0.3)
    rule.save(tmp_path / "rule.json")
    again = BinCP.load(tmp_path / "rule.json")
    test = exact_probabilities(model, data(20, 1)[0], scheme, tau=0.3)
    np.testing.assert_array_equal(again.predict_set_exact(test), rule.predict_set_exact(test))
    assert again.certificate_description["smoothing"]["grid"] == 255


@pytest.mark.parametrize("scheme", [SplittingNoise(0.25), SplittingNoise(0.25, None)])
def test_sampled_sets(scheme):
    x, y = data(300)
    classifier = RobustClassifier(
        lambda z: 6 * model(z), scheme, L1(4 / 255), alpha=0.1, n_samples=32, seed=7
    )
    sets = classifier.calibrate(x[:150], y[:150]).predict(x[150:]).sets
    assert sets[np.arange(150), y[150:]].mean() >= 0.85
    assert sets.sum(axis=1).mean() < 2.5


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SplittingNoise(0.0), ValueError, "`half_width` must be finite and > 0, got 0.0"),
        (lambda: SplittingNoise("1"), TypeError, "`half_width` must be a real number"),
        (lambda: SplittingNoise(0.001), ValueError, "`half_width` must give 1 to .* levels"),
        (lambda: SplittingNoise(1e9), ValueError, "`half_width` must give 1 to .* levels"),
        (lambda: SplittingNoise(0.5, 0), ValueError, r"`grid` must be in \[1, 1048576\], got 0"),
        (lambda: SplittingNoise(0.5, 255.0), TypeError, "`grid` must be an integer, got 255.0"),
        (lambda: SplittingNoise(0.5, seed=-1), ValueError, "`seed` must be in"),
        (lambda: SplittingNoise(0.5, None).levels, AttributeError, "`grid` must not be None"),
        (lambda: certify(SplittingNoise(0.5), L2(0.1)), CertificateError, "can certify L1"),
    ],
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0.3, np.float32),
        (1 / 255 + 1e-6, np.float64),
        (-1 / 255, np.float64),
        (256 / 255, np.float32),
        (math.nan, np.float32),
        (math.inf, np.float64),
        (1e300, np.float64),
    ],
)
def test_inputs_off_the_grid_are_refused_with_their_place(value, dtype):
    x = np.zeros((3, 2, 2), dtype)
    x[1, 0, 1] = value
    message = r"`x` must be multiples of 1/255 in \[0, 1\] .* at index \(1, 0, 1\)"
    for call in (
        lambda: all_copies(SplittingNoise(0.5), x),
        lambda: draw(SplittingNoise(0.5), x, 1, phase="test"),
        lambda: exact_probabilities(model, x, SplittingNoise(0.5), tau=0.5),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("value", [-1e-9, 1.0000001, math.nan])
def test_inputs_out_of_range_are_refused(value):
    x = np.zeros((2, 2))
    x[1, 1] = value
    with pytest.raises(ValueError, match=r"`x` must be in \[0, 1\] .* at index \(1, 1\)"):
        draw(SplittingNoise(0.5, None), x, 1, phase="test")


@pytest.mark.parametrize("half_width", [1e-320, 9e-10])
def test_cells_below_the_resolution_of_doubles_are_refused(half_width):
    with pytest.raises(ValueError, match=r"`half_width` must be at least 2\*\*-30"):
        draw(SplittingNoise(half_width, None), np.ones((1, 2)), 1, phase="test")


def test_bad_arguments_of_exact_probabilities():
    x, _ = data(4)

    def call(scheme=SplittingNoise(0.1), **options):  # noqa: B008
        return exact_probabilities(model, x, scheme, **{"tau": 0.5, **options})

    for scheme in (Gaussian(0.5), SplittingNoise(0.5, None), L1(0.1)):
        with pytest.raises(TypeError, match="`smoothing` must be derandomised"):
            call(scheme)
    with pytest.raises(TypeError, match="`smoothing` must be derandomised"):
        all_copies(Gaussian(0.5), x)
    with pytest.raises(ValueError, match=r"`score` must not be random .* got 'aps'"):
        call(score="aps")
    with pytest.raises(ValueError, match="`score` must be one of"):
        call(score="nope")
    with pytest.raises(ValueError, match=r"`labels` must have shape \(4,\), got \(3,\)"):
        call(labels=[0, 1, 2])
    with pytest.raises(ValueError, match=r"`labels` must be in \[0, 2\], got 3"):
        call(labels=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="`tau` must not be NaN"):
        call(tau=math.nan)
    with pytest.raises(ValueError, match="`x` must be float32 or float64"):
        exact_probabilities(model, np.zeros((2, 3), int), SplittingNoise(0.1), tau=0.5)
