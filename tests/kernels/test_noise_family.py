"""Samplers of the continuous family, against their densities.

The samplers draw quantiles, mixtures, and directions times radii. Here the marginals come from the
density itself, by numerical integration over the other coordinates, or from SciPy's distributions.
Seeds are fixed, so each test holds once and for all; a sampler that is right fails a test with a
probability of about 1e-6 (or 1e-4 in a few million) over the choice of the seed.
"""

import functools
import itertools
import math
from dataclasses import FrozenInstanceError, dataclass

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bincp._core import _noise
from bincp.balls import L1, L2, Ball, Linf
from bincp.certificates import _registry as registry
from bincp.noise import Keys, _keys, _samplers, draw
from bincp.noise._samplers import sampler_of
from bincp.smoothing import (
    Exp1,
    Exp2,
    ExpInf,
    Expp,
    Laplace,
    Pareto,
    PowInf,
    UniformBall,
)

LEAST_P_VALUE = 1e-6

INDEPENDENT = [
    (Laplace(0.5), stats.laplace(scale=0.5)),
    (Expp(0.5, 0.5), stats.gennorm(0.5, scale=0.5)),
    (Expp(0.5, 1), stats.laplace(scale=0.5)),
    (Expp(0.5, 1.5), stats.gennorm(1.5, scale=0.5)),
    (Expp(0.5, 2), stats.norm(scale=0.5 / 2**0.5)),
    (Expp(0.5, 4), stats.gennorm(4, scale=0.5)),
    (Expp(0.5, 1e6), stats.uniform(-0.5, 1)),
]

RADIAL = [
    UniformBall(2.0),
    Exp1(0.5),
    Exp1(0.5, k=2),
    Exp1(0.5, k=0.5),
    Exp2(0.5),
    Exp2(0.5, k=2),
    Exp2(0.5, k=1.5, j=0.75),
    Exp2(0.5, k=30, j=0.5),
    ExpInf(0.5),
    ExpInf(0.5, k=2),
    ExpInf(0.5, k=0.7, j=0.5),
    PowInf(0.5, 4.5),
    PowInf(0.5, 14),
    PowInf(0.5, 800),
]
DIMENSIONS = [1, 2, 10, 784]
CASES = [
    (scheme, d)
    for scheme in RADIAL
    for d in DIMENSIONS
    if not isinstance(scheme, PowInf) or d < scheme.a
]
EVERY = [Pareto(0.5, 3.0), *(scheme for scheme, _ in INDEPENDENT), *RADIAL]


def independent(scheme):
    return isinstance(scheme, Laplace | Expp | Pareto)


def sample(scheme, d, n, seed=0):
    """n draws for one input of d zeros."""
    return draw(scheme, np.zeros((1, d), np.float32), n, phase="test", seed=seed)[0].astype(float)


def scale_of(scheme):
    return scheme.radius if isinstance(scheme, UniformBall) else scheme.scale


def norm(scheme, x):
    """The norm that the density of a radial scheme depends on."""
    if isinstance(scheme, Exp1):
        return np.abs(x).sum(axis=-1)
    if isinstance(scheme, ExpInf | PowInf):
        return np.abs(x).max(axis=-1)
    return np.sqrt((x**2).sum(axis=-1))


def log_density(scheme, r):
    """The density where the norm is r scales, from the scheme's docstring."""
    if isinstance(scheme, UniformBall):
        return np.where(r <= 1, 0.0, -np.inf)
    if isinstance(scheme, PowInf):
        return -scheme.a * np.log1p(r)
    return -(r**scheme.k) - getattr(scheme, "j", 0) * np.log(r)


def marginal_of_magnitude(scheme, d, x):
    """The distribution function of |x_1|, by integration over the norm s of the other coordinates.

    That norm has the volume element s^(d - 2) ds, and the density at (t, s) is that of the norm of
    t and s together. Both run over grids of logarithms: t to beyond the largest number of the
    sample x, s over what the sample has and enough on both sides.
    """
    scale = scale_of(scheme)
    t = np.exp(np.linspace(-25, np.log(np.abs(x).max() / scale) + 0.1, 1200))
    if d == 1:
        density = np.exp(log_density(scheme, t))
    else:
        rest = np.log(norm(scheme, x[:, 1:] / scale))
        log_s = np.linspace(rest.min() - 8 / (d - 1), rest.max() + 0.5, 2000)[:, None]
        s = np.exp(log_s)
        if isinstance(scheme, Exp1):
            together = t + s
        elif isinstance(scheme, ExpInf | PowInf):
            together = np.maximum(t, s)
        else:
            together = np.hypot(t, s)
        logs = (d - 1) * log_s + log_density(scheme, together)
        density = np.exp(logs - logs.max()).sum(axis=0)
    areas = np.diff(t) * (density[1:] + density[:-1]) / 2
    cumulative = np.concatenate([[0], np.cumsum(areas)]) / areas.sum()
    return lambda value: np.interp(value / scale, t, cumulative)


def check_signs(values):
    assert stats.binomtest(int((values > 0).sum()), values.size).pvalue > LEAST_P_VALUE


def ratio_of_gammas(top, bottom):
    return math.exp(math.lgamma(top) - math.lgamma(bottom))


class TestLaws:
    @pytest.mark.parametrize(("scheme", "law"), INDEPENDENT)
    @pytest.mark.parametrize("d", DIMENSIONS)
    def test_independent_coordinates(self, scheme, law, d):
        z = sample(scheme, d, -(-60_000 // d), seed=d).ravel()
        assert stats.kstest(z, law.cdf).pvalue > LEAST_P_VALUE
        check_signs(z)

    @pytest.mark.parametrize("a", [0.7, 3.0, 40.0])
    @pytest.mark.parametrize("d", DIMENSIONS)
    def test_pareto(self, a, d):
        z = sample(Pareto(0.5, a), d, -(-200_000 // d), seed=d).ravel()
        assert stats.kstest(np.abs(z), stats.lomax(a, scale=0.5).cdf).pvalue > LEAST_P_VALUE
        check_signs(z)

    @pytest.mark.parametrize(("scheme", "d"), CASES)
    def test_radius_and_marginals(self, scheme, d):
        x = sample(scheme, d, 10_000 if d == 784 else 40_000, seed=d)
        r = norm(scheme, x) / scale_of(scheme)
        if isinstance(scheme, UniformBall):
            law = stats.beta(d, 1)
        elif isinstance(scheme, PowInf):
            law = stats.betaprime(d, scheme.a - d)
        else:
            r, law = r**scheme.k, stats.gamma((d - getattr(scheme, "j", 0)) / scheme.k)
        assert stats.kstest(r, law.cdf).pvalue > LEAST_P_VALUE
        cdf = marginal_of_magnitude(scheme, d, x)
        for i in {0, d // 2, d - 1}:
            assert stats.kstest(np.abs(x[:, i]), cdf).pvalue > LEAST_P_VALUE
            check_signs(x[:, i])

    @pytest.mark.parametrize(("scheme", "d"), [case for case in CASES if case[1] > 1])
    def test_directions(self, scheme, d):
        x = sample(scheme, d, 10_000 if d == 784 else 20_000, seed=d)
        r = norm(scheme, x)
        unit = np.abs(x) / r[:, None]
        if isinstance(scheme, Exp1):
            values, law = unit[:, 1], stats.beta(1, d - 1)
        elif isinstance(scheme, ExpInf | PowInf):
            faces = unit.argmax(axis=1)
            assert stats.chisquare(np.bincount(faces, minlength=d)).pvalue > LEAST_P_VALUE
            values, law = unit[faces != 1, 1], stats.uniform()
        else:
            values, law = unit[:, 1] ** 2, stats.beta(0.5, (d - 1) / 2)
        assert stats.kstest(values, law.cdf).pvalue > LEAST_P_VALUE
        quadrants = 2 * (x[:, 0] > 0) + (x[:, -1] > 0)
        assert stats.chisquare(np.bincount(quadrants, minlength=4)).pvalue > LEAST_P_VALUE
        for values in (unit[:, 0], unit[:, -1], x[:, 0] / r, unit.argmax(axis=1)):
            assert stats.spearmanr(r, values).pvalue > LEAST_P_VALUE

    def test_the_sphere_has_no_axes(self):
        """The largest coordinate of the noise, after a rotation, has the law that it had before."""
        x = sample(Exp2(0.5), 10, 40_000)
        rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))
        before, after = np.abs(x[:20_000]).max(axis=1), np.abs(x[20_000:] @ rotation).max(axis=1)
        assert stats.ks_2samp(before, after).pvalue > LEAST_P_VALUE

    @pytest.mark.parametrize("d", [1, 2, 10, 784])
    def test_deviations_are_those_of_the_docstrings(self, d):
        schemes = {
            Laplace(0.5): 2 * 0.5**2,
            Expp(0.5, 4): 0.5**2 * math.gamma(3 / 4) / math.gamma(1 / 4),
            Pareto(0.5, 12.0): 0.5**2 * 2 / (11 * 10),
            UniformBall(0.5): 0.5**2 / (d + 2),
            Exp1(0.5, k=2): 0.5**2 * 2 / (d * (d + 1)) * ratio_of_gammas((d + 2) / 2, d / 2),
            Exp2(0.5, k=3, j=0.5): 0.5**2 * ratio_of_gammas((d + 1.5) / 3, (d - 0.5) / 3) / d,
            ExpInf(0.5, 2): 0.5**2 * (d + 2) / (3 * d) * ratio_of_gammas((d + 2) / 2, d / 2),
            PowInf(0.5, d + 12): 0.5**2 * (d + 1) * (d + 2) / (3 * 11 * 10),
        }
        for scheme, variance in schemes.items():
            dim = 1 if independent(scheme) else d
            squares = sample(scheme, dim, 20_000, seed=d)[:, 0] ** 2
            error = squares.std() / math.sqrt(squares.size)
            assert abs(squares.mean() - variance) < 5 * error, scheme


class TestTails:
    @pytest.mark.parametrize("p", [1e-3, 1e-5])
    @pytest.mark.parametrize(
        ("scheme", "law"),
        [
            (Laplace(0.5), stats.expon(scale=0.5)),
            (Pareto(0.5, 3.0), stats.lomax(3.0, scale=0.5)),
            (Expp(0.5, 1.5), stats.gamma(1 / 1.5)),
            (Exp2(0.5, k=1), stats.gamma(10)),
            (PowInf(0.5, 14), stats.betaprime(10, 4)),
        ],
    )
    def test_far_ends_are_as_frequent_as_they_should_be(self, scheme, law, p):
        if isinstance(scheme, Exp2 | PowInf):
            values = norm(scheme, sample(scheme, 10, 400_000)) / scheme.scale
        else:
            values = np.abs(sample(scheme, 1000, 1000).ravel())
            if isinstance(scheme, Expp):
                values = (values / scheme.scale) ** scheme.p
        beyond = int((values > law.isf(p)).sum())
        assert stats.binomtest(beyond, values.size, p).pvalue > LEAST_P_VALUE

    @pytest.mark.parametrize("v", [2.0**-53, 1e-9, 0.3, 1 - 2.0**-53])
    @pytest.mark.parametrize("d", [1, 10, 784, 150_528])
    def test_quantiles_to_the_last_bit_of_the_unit_number(self, d, v):
        """Quantiles solve their equations, also at 2^-53."""
        number, half = np.array([v]), np.array([0.5])
        radius = sampler_of(Exp2(1.0, k=2, j=0.5)).radius(d, half, number)[0]
        width = mpmath.mpf(radius) / mpmath.mpf("0.5") ** (1 / (mpmath.mpf(d) - 0.5))
        shape = 1 + (mpmath.mpf(d) - 0.5) / 2
        assert_tail(shape, width**2, v)
        magnitude = mpmath.mpf(sampler_of(Pareto(1.0, 3.0)).magnitude(number)[0])
        assert abs((1 + magnitude) ** -3 / mpmath.mpf(v) - 1) < 1e-14

    @pytest.mark.parametrize("make", [Laplace, UniformBall, Exp1, Exp2, ExpInf])
    def test_scales_are_rounded_up_to_float32(self, make):
        above = float(np.float32(0.1))
        assert above > 0.1
        np.testing.assert_array_equal(sample(make(0.1), 20, 10), sample(make(above), 20, 10))


def assert_tail(shape, value, v):
    """Check that a Gamma number of this shape exceeds this value with probability v."""
    with mpmath.workdps(40):
        tail = mpmath.gammainc(shape, value, mpmath.inf, regularized=True)
        density = mpmath.exp((shape - 1) * mpmath.log(value) - value - mpmath.loggamma(shape))
        # As an error of the value, relative.
        assert abs(tail - mpmath.mpf(v)) / density / value < 1e-12


seeds = st.integers(0, 2**64 - 1)
ids = st.integers(0, 2**56 - 1)


class TestKeys:
    @given(
        scheme=st.sampled_from([scheme for scheme in EVERY if scheme != PowInf(0.5, 4.5)]),
        dtype=st.sampled_from([np.float32, np.float64]),
        n=st.integers(1, 5),
        m=st.integers(1, 5),
        d=st.one_of(st.integers(1, 13), st.integers(60, 70)),
        chunk=st.sampled_from([1, 20, 200]),
        seed=seeds,
        data=st.data(),
    )
    @settings(deadline=None, max_examples=150)
    def test_nothing_but_the_key_matters(self, scheme, dtype, n, m, d, chunk, seed, data):
        """Order, batch, number of draws, rows at a time: no bit changes."""
        d = min(d, 13) if isinstance(scheme, PowInf) else d
        x = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
        keys = np.array(data.draw(st.lists(ids, min_size=n, max_size=n, unique=True)))
        full = draw(scheme, x, m, phase="calibration", indices=keys, seed=seed)
        assert full.dtype == dtype
        order = np.array(data.draw(st.permutations(range(n * m))))
        sources, draws = np.divmod(order, m)
        out = np.empty((n * m, d), dtype)
        cut = data.draw(st.integers(0, n * m))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_samplers, "CHUNK", chunk)
            for part in (slice(0, cut), slice(cut, None)):
                rows = Keys(seed, "calibration", keys[sources[part]], draws[part])
                sampler_of(scheme).fill(rows, sources[part], x, out[part])
        np.testing.assert_array_equal(out, full[sources, draws])
        if independent(scheme):
            shorter = data.draw(st.integers(1, d))
            np.testing.assert_array_equal(
                draw(scheme, x[:, :shorter], m, phase="calibration", indices=keys, seed=seed),
                full[:, :, :shorter],
            )

    @pytest.mark.parametrize("scheme", EVERY)
    def test_float64_gets_the_same_noise_widened(self, scheme):
        zeros = np.zeros((1, 3))
        noise = draw(scheme, zeros.astype(np.float32), 50, phase="test")
        wide = draw(scheme, zeros, 50, phase="test")
        assert wide.dtype == np.float64
        np.testing.assert_array_equal(wide, noise.astype(np.float64))
        x = np.full((1, 3), 1 / 3)
        np.testing.assert_array_equal(draw(scheme, x, 50, phase="test"), x + wide)

    @pytest.mark.parametrize("scheme", EVERY)
    def test_keys_share_nothing(self, scheme):
        """Every part of the key changes the first coordinate and the size of the noise."""
        keys = [
            (seed, id_, first, phase)
            for seed in (5, 5 + 2**32, 5 + 2**63)
            for id_ in (0, 1, 2**32, 2**55)
            for first in (0, 1)
            for phase in ("calibration", "test")
        ]
        n = 2000
        x, zeros = np.zeros((1, 4), np.float32), np.zeros(n, int)
        values = []
        for seed, id_, first, phase in keys:
            out = np.empty((n, 4), np.float32)
            draws = np.arange(n) + first * n
            sampler_of(scheme).fill(Keys(seed, phase, zeros + id_, draws), zeros, x, out)
            values += [out[:, 0], np.abs(out).max(axis=1)]
        ranks = stats.rankdata(np.array(values), axis=1)
        correlation = np.corrcoef(ranks)
        # The two numbers of one draw may depend on each other: they are of one key.
        keys_of = np.arange(len(values)) // 2
        different = correlation[keys_of[:, None] != keys_of]
        assert np.abs(different).max() < 5.5 / math.sqrt(n)
        assert abs(different.std() * math.sqrt(n) - 1) < 0.05

    def test_streams_differ(self):
        """Categories have the streams plus 64, and second words those plus 128."""
        every = [
            *itertools.chain(*_keys._NOISE_STREAMS.values()),
            *_keys._SCORE_STREAMS.values(),
        ]
        assert len(set(every)) == len(every) == 9
        assert all(0 <= stream < 64 for stream in every)

    def test_a_direction_of_zeros(self, monkeypatch):
        """With d = 1 the Gaussian is 0 once in 2^25 draws, and keeps its sign."""

        def zeros(law, scale, seed, stream, ids, draws, sources, x, out):
            out[...] = x[sources] + np.array([[0.0], [-0.0]])

        monkeypatch.setattr(_noise, "add_noise", zeros)
        z = sample(UniformBall(1.0), 1, 2)
        assert 0 < z[0, 0] <= 1
        assert -1 <= z[1, 0] < 0


class TestArguments:
    @pytest.mark.parametrize(
        ("scheme", "message"),
        [
            (Exp2(1.0, j=3), r"more than 3 elements an input for Exp2\(.*\), got 3"),
            (ExpInf(1.0, j=3.5), r"more than 3.5 elements an input for ExpInf\(.*\), got 3"),
            (PowInf(1.0, 3), r"fewer than 3 elements an input for PowInf\(.*\), got 3"),
            (PowInf(1.0, 3.01), "noise that float32 can hold, got draws up to"),
            (Pareto(1.0, 0.3), "noise that float32 can hold, got draws up to 1"),
            (Expp(1.0, 1e-3), "noise that float32 can hold, got draws up to inf"),
            (Exp1(1.0, 1e-3), "noise that float32 can hold, got draws up to inf"),
            (Laplace(1e39), "a scale that float32 can hold, got 1e\\+39"),
            (UniformBall(1e39), "a scale that float32 can hold, got 1e\\+39"),
        ],
    )
    def test_inputs_that_do_not_fit_the_scheme(self, scheme, message):
        with pytest.raises(ValueError, match=message):
            draw(scheme, np.zeros((2, 3), np.float32), 4, phase="test")

    @pytest.mark.parametrize("scheme", [Exp2(1.0, j=2.99), ExpInf(1.0, j=2.5), PowInf(1.0, 3.5)])
    def test_inputs_that_just_fit_the_scheme(self, scheme):
        z = draw(scheme, np.zeros((2, 3), np.float32), 400, phase="test")
        assert np.isfinite(z).all()

    @pytest.mark.parametrize(
        ("make", "name"),
        [
            (lambda v: Laplace(v), "scale"),
            (lambda v: UniformBall(v), "radius"),
            (lambda v: Expp(v, 1), "scale"),
            (lambda v: Expp(1, v), "p"),
            (lambda v: Pareto(v, 1), "scale"),
            (lambda v: Pareto(1, v), "a"),
            (lambda v: Exp1(v), "scale"),
            (lambda v: Exp1(1, k=v), "k"),
            (lambda v: Exp2(v), "scale"),
            (lambda v: Exp2(1, k=v), "k"),
            (lambda v: ExpInf(v), "scale"),
            (lambda v: ExpInf(1, k=v), "k"),
            (lambda v: PowInf(v, 2), "scale"),
        ],
    )
    def test_parameters_must_be_positive(self, make, name):
        for bad in (0, -1.0, math.inf, math.nan):
            with pytest.raises(ValueError, match=f"`{name}` must be finite and > 0, got"):
                make(bad)
        for bad in ("1", None, True, 1j):
            with pytest.raises(TypeError, match=f"`{name}` must be a real number, got"):
                make(bad)

    def test_other_parameters(self):
        for scheme in (Exp2, ExpInf):
            assert scheme(1.0, j=0).j == 0
            for bad in (-0.5, math.inf, math.nan):
                with pytest.raises(ValueError, match="`j` must be finite and >= 0, got"):
                    scheme(1.0, j=bad)
        for bad in (1, 0.5, math.inf, math.nan):
            with pytest.raises(ValueError, match="`a` must be finite and > 1, got"):
                PowInf(1.0, bad)

    @pytest.mark.parametrize("scheme", EVERY)
    def test_schemes_are_frozen_values(self, scheme):
        copy = type(scheme)(**vars(scheme))
        assert copy == scheme
        assert hash(copy) == hash(scheme)
        assert {type(value) for value in vars(scheme).values()} <= {float, type(None)}
        with pytest.raises(FrozenInstanceError):
            scheme.scale = 2.0


@dataclass(frozen=True)
class Nothing(Ball):
    """The ball of the input itself."""


class TestSampling:
    """Every scheme with the torch samplers."""

    D = 4

    @pytest.fixture(autouse=True)
    def torch(self):
        self.torch = pytest.importorskip("torch")

    def model(self, x):
        return 3 * x[:, :3]

    @pytest.mark.parametrize("scheme", EVERY)
    def test_scores_and_counts(self, scheme):
        from bincp.sampling import count_scores, sample_scores

        x = np.random.default_rng(0).random((5, self.D), np.float32)
        noisy = draw(scheme, x, 20, phase="test", seed=3)
        logits = self.model(self.torch.from_numpy(noisy).reshape(-1, self.D))
        expected = logits.softmax(-1).reshape(5, 20, 3).numpy().transpose(0, 2, 1)
        options = {"phase": "test", "seed": 3, "batch_size": 7}
        scores = sample_scores(self.model, x, scheme, 20, **options)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)
        counts = count_scores(self.model, x, scheme, 20, tau=0.4, **options)
        np.testing.assert_array_equal(counts, (scores >= 0.4).sum(axis=-1))

    @pytest.mark.parametrize("scheme", {type(scheme): scheme for scheme in EVERY}.values())
    @pytest.mark.usefixtures("clean_registry")
    def test_classifier(self, scheme):
        """Without perturbations, so that it takes no certificate of the scheme."""
        from bincp.sampling import RobustClassifier

        registry.register_built_in(type(scheme), Nothing)(lambda smoothing, ball: lambda p: p)
        x = np.random.default_rng(0).normal(size=(80, self.D)).astype(np.float32)
        y = x[:, :3].argmax(axis=1)
        options = {"alpha": 0.1, "n_samples": 16, "seed": 1}
        classifier = RobustClassifier(self.model, scheme, Nothing(), **options)
        prediction = classifier.calibrate(x[:40], y[:40]).predict(x[40:])
        assert prediction.sets.shape == (40, 3)
        covered = int(prediction.sets[np.arange(40), y[40:]].sum())
        # Split conformal prediction from 40 points covers so many of 40.
        assert stats.betabinom(40, 37, 4).cdf(covered) > LEAST_P_VALUE


def log_ratio(scheme, z, delta):
    """The logarithm of the density of delta plus noise over that of the noise, at z."""
    return joint_log_density(scheme, z - delta) - joint_log_density(scheme, z)


def joint_log_density(scheme, z):
    z = z / scale_of(scheme)
    if isinstance(scheme, Laplace):
        return -np.abs(z).sum(axis=-1)
    if isinstance(scheme, Expp):
        return -(np.abs(z) ** scheme.p).sum(axis=-1)
    if isinstance(scheme, Pareto):
        return -(scheme.a + 1) * np.log1p(np.abs(z)).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return log_density(scheme, norm(scheme, z))


def _clopper_pearson(k, n):
    low = stats.beta.ppf(LEAST_P_VALUE, k, n - k + 1) if k else 0.0
    high = stats.beta.isf(LEAST_P_VALUE, k + 1, n - k) if k < n else 1.0
    return low, high


class TestBounds:
    """Drawn noise, the certificate, and the classifier that is the worst for a perturbation.

    By Neyman and Pearson that is a set where the density of the perturbed noise is small against
    that of the noise. Its two probabilities are known up to Clopper-Pearson bounds that err once in
    a million.
    """

    D = 3
    N = 150_000
    R = 0.4
    AXIS = np.array([1.0, 0, 0])
    DIAGONAL = np.array([1.0, -1, 1])

    @staticmethod
    @functools.cache
    def noise(scheme, seed):
        return sample(scheme, TestBounds.D, TestBounds.N, seed=seed)

    def ratios(self, scheme, z, delta, seed):
        """Log ratios; equal ones, also those that float32 tells apart, in a random order."""
        with np.errstate(invalid="ignore"):
            ratios = log_ratio(scheme, z, delta)
        return ratios + 1e-5 * np.random.default_rng(seed).random(len(z))

    def probabilities(self, scheme, delta):
        """Bounds (low, high) of the two probabilities of some worst sets."""
        first = self.ratios(scheme, self.noise(scheme, 1), delta, 1)
        clean = np.sort(self.ratios(scheme, self.noise(scheme, 2), delta, 2))
        moved = np.sort(self.ratios(scheme, self.noise(scheme, 3) + delta, delta, 3))
        for threshold in np.quantile(first, [0.02, 0.2, 0.5, 0.6, 0.9, 0.99], method="lower"):
            yield [
                _clopper_pearson(int(np.searchsorted(values, threshold, "right")), self.N)
                for values in (clean, moved)
            ]

    @pytest.mark.parametrize(
        "scheme",
        [
            Laplace(0.5),
            Expp(0.5, 1.5),
            Expp(0.5, 0.5),
            Pareto(0.5, 3.0),
            UniformBall(1.0),
            Exp1(0.5),
            Exp2(0.5),
            Exp2(0.5, k=2),
            ExpInf(0.5),
            ExpInf(0.5, k=2),
            ExpInf(0.5, k=1.5, j=0.5),
            PowInf(0.5, 6),
        ],
    )
    @pytest.mark.parametrize("ball", [L1, L2, Linf])
    @pytest.mark.parametrize("direction", [AXIS, DIAGONAL])
    def test_no_set_goes_below_the_bound(self, scheme, ball, direction):
        order = {L1: 1, L2: 2, Linf: np.inf}[ball]
        delta = self.R * direction / np.linalg.norm(direction, order)
        certificate = registry.certify(scheme, ball(self.R, dim=self.D))
        for (low, _), (_, high) in self.probabilities(scheme, delta):
            assert certificate.lower(low) <= high

    @pytest.mark.parametrize(
        ("scheme", "ball", "direction"),
        [
            (Laplace(0.5), L1, AXIS),
            (Expp(0.5, 1.5), L1, AXIS),
            (UniformBall(1.0), L2, DIAGONAL / 3**0.5),
            (Exp1(0.5), L1, AXIS),
            (Exp2(0.5), L2, DIAGONAL / 3**0.5),
            (Exp2(0.5, k=2), L2, DIAGONAL / 3**0.5),
            (ExpInf(0.5), Linf, DIAGONAL),
        ],
    )
    def test_the_worst_set_reaches_the_bound_where_it_is_exact(self, scheme, ball, direction):
        certificate = registry.certify(scheme, ball(self.R, dim=self.D))
        for (_, high), (low, _) in self.probabilities(scheme, self.R * direction):
            assert certificate.lower(high) >= low
