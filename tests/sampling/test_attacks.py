"""Attacks: projections by their optimality conditions, worst cases that are known, bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm

import bincp
from bincp import metrics
from bincp.attacks import pgd, project, random_flips
from bincp.balls import L1, L2, Flips, Linf
from bincp.sampling import RobustClassifier, count_scores, sample_scores
from bincp.smoothing import Gaussian, SparseFlip, SplittingNoise, Uniform

NORMS = {L1: 1, L2: 2, Linf: np.inf}


def ball_of(kind, r, d):
    return kind(r, dim=d) if kind is Linf else kind(r)


def exact_norm(vector, ball):
    """Return the norm, squared for l2, of exact differences: a list of Fractions."""
    sizes = [abs(Fraction(v)) for v in vector]
    if isinstance(ball, Linf):
        return max(sizes)
    return sum(s**2 for s in sizes) if isinstance(ball, L2) else sum(sizes)


def is_inside(x, attacked, ball):
    limit = Fraction(ball.r) ** (2 if isinstance(ball, L2) else 1)
    rows = zip(x.reshape(len(x), -1).tolist(), attacked.reshape(len(x), -1).tolist(), strict=True)
    return all(
        exact_norm([Fraction(b) - Fraction(a) for a, b in zip(*row, strict=True)], ball) <= limit
        for row in rows
    )


vectors = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(1, 8)),
    elements=st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-100),
)
kinds = pytest.mark.parametrize("kind", [L1, L2, Linf])


class TestProject:
    @kinds
    @settings(deadline=None)
    @given(vectors, st.floats(0, 1e3).filter(lambda r: r == 0 or r > 1e-100))
    def test_inside_exactly_and_nearest(self, kind, rows, r):
        ball = ball_of(kind, r, rows.shape[1])
        found = project(rows, ball)
        assert is_inside(np.zeros_like(rows), found, ball)
        for v, q in zip(rows, found, strict=True):
            size = np.linalg.norm(v, NORMS[kind])
            if size <= r * (1 - 1e-12):
                np.testing.assert_array_equal(q, v)
                continue
            # On the surface, and v - q is a normal of the ball there: no point of the ball is
            # further along it, (v - q) . q = |v - q|_dual r (the optimality condition).
            dual = {L1: np.inf, L2: 2, Linf: 1}[kind]
            scale = max(size * r, 1e-300)
            normal = v - q
            assert normal @ q == pytest.approx(np.linalg.norm(normal, dual) * r, abs=1e-9 * scale)
            assert np.linalg.norm(q, NORMS[kind]) == pytest.approx(min(r, size), rel=1e-9)

    def test_l1_against_a_solver(self):
        rng = np.random.default_rng(0)
        for v in rng.normal(size=(20, 4)):
            solved = scipy.optimize.minimize(
                lambda z, v=v: np.square(z[:4] - z[4:] - v).sum(),
                np.zeros(8),
                bounds=[(0, None)] * 8,
                constraints={"type": "ineq", "fun": lambda z: 1.0 - z.sum()},
                options={"ftol": 1e-14, "maxiter": 500},
            ).x
            found = project(v[None], L1(1.0))[0]
            np.testing.assert_allclose(found, solved[:4] - solved[4:], atol=1e-5)

    def test_ties_and_many_coordinates(self):
        np.testing.assert_allclose(project(np.ones((1, 10)), L1(1.0)), np.full((1, 10), 0.1))
        rows = np.random.default_rng(0).normal(size=(2, 3, 32, 32))
        for ball in (L1(5.0), L2(0.25), Linf(8 / 255, dim=3072)):
            found = project(rows, ball)
            assert found.shape == rows.shape
            assert is_inside(np.zeros_like(rows), found, ball)

    def test_neither_overflow_nor_underflow(self):
        np.testing.assert_allclose(project([[3e200, 4e200]], L2(1.0)), [[0.6, 0.8]])
        np.testing.assert_allclose(project([[3e-200, 4e-200]], L2(1e-200)), [[0.6e-200, 0.8e-200]])

    def test_bad_input(self):
        with pytest.raises(TypeError, match="`ball` must be L1, L2 or Linf, got Flips"):
            project([[1.0]], Flips(1, 1))
        with pytest.raises(TypeError, match=r"`perturbations` must be floating-point .* int64"):
            project([[1]], L2(1.0))
        with pytest.raises(ValueError, match=r"`perturbations` must be finite, got nan .* \(0, 1"):
            project([[1.0, np.nan]], L2(1.0))
        with pytest.raises(ValueError, match="`perturbations` must have shape"):
            project(np.float64(1.0), L2(1.0))
        with pytest.raises(ValueError, match=r"and not be empty, got \(0, 3\)"):
            project(np.zeros((0, 3)), L1(1.0))


# ---- descent -------------------------------------------------------------------------------------


def linear(weight, bias=0.0):
    """Two labels; the first has the probability sigmoid(w . x + b)."""
    w = torch.as_tensor(weight)

    def model(x):
        margin = x.flatten(1) @ w.to(x.dtype) + bias
        return torch.stack([margin, torch.zeros_like(margin)], dim=1)

    return model


class Network(torch.nn.Module):
    def __init__(self, d=6, k=3):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(d, 16), torch.nn.Tanh(), torch.nn.Dropout(), torch.nn.Linear(16, k)
        )

    def forward(self, x):
        return self.layers(x.flatten(1))


class TestPgd:
    @kinds
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("box", [None, (0.0, 1.0)])
    def test_stays_in_the_ball_and_the_box(self, kind, dtype, box):
        x = np.random.default_rng(0).random((9, 2, 3)).astype(dtype)
        x[0] = 0
        ball = ball_of(kind, 0.3, 6)
        model = Network().to(torch.float64 if dtype is np.float64 else torch.float32)
        options = {"n_samples": 4, "steps": 7, "seed": 5}
        found = pgd(model, x, np.arange(9) % 3, Gaussian(0.2), ball, box=box, **options)
        assert found.dtype == dtype
        assert found.shape == x.shape
        assert is_inside(x, found, ball)
        assert np.abs(found - x).max() > 0.05
        assert box is None or (found.min() >= 0 and found.max() <= 1)

    def test_stays_in_the_ball_where_float32_is_coarse(self):
        """At 1e6 the spacing is 1/16: most perturbations of size 0.1 are no float32."""
        x = np.full((5, 6), 1e6, dtype=np.float32) + np.arange(6, dtype=np.float32)
        for kind in (L1, L2, Linf):
            ball = ball_of(kind, 0.2, 6)
            found = pgd(linear(np.ones(6) / 100), x, [0] * 5, Gaussian(1.0), ball, seed=1)
            assert is_inside(x, found, ball)

    @kinds
    def test_reaches_the_worst_case_of_a_linear_model(self, kind):
        """The lowest margin in the ball is w . x - r |w|_dual."""
        w = np.array([0.1, -0.5, 2.0, 0.3, 0.0, 1.0])
        x = np.random.default_rng(1).normal(size=(8, 6))
        dual = {L1: np.inf, L2: 2, Linf: 1}[kind]
        found = pgd(linear(w), x, [0] * 8, Gaussian(0.5), ball_of(kind, 0.4, 6), seed=2)
        np.testing.assert_allclose(found @ w, x @ w - 0.4 * np.linalg.norm(w, dual), atol=1e-6)

    @pytest.mark.parametrize(("sigma", "r"), [(0.5, 0.25), (0.25, 0.25), (1.0, 0.5)])
    def test_reaches_the_certified_probability_and_never_crosses_it(self, sigma, r):
        """A half-space is the worst case of Gaussian smoothing: Phi(Phi^-1(p) - r / sigma)."""
        w = np.array([0.6, 0.8, 0.0], dtype=np.float32)
        z = norm.ppf([0.6, 0.8, 0.95])  # clean probabilities that the score reaches 1/2
        x = (sigma * z[:, None] * w).astype(np.float32)
        model = linear(20 * w)
        found = pgd(model, x, [0] * 3, Gaussian(sigma), L2(r), tau=0.5, seed=11, n_samples=64)
        m = 40_000
        counts = count_scores(model, found, Gaussian(sigma), m, 0.5, phase="test", batch_size=8192)
        bound = bincp.certify(Gaussian(sigma), L2(r)).lower(norm.cdf(z))
        error = 4.5 * np.sqrt(bound * (1 - bound) / m) + 1e-3
        assert (np.abs(counts[:, 0] / m - bound) <= error).all()

    def test_the_score_that_is_lowered_is_the_smoothed_one(self):
        x = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
        y = np.arange(6) % 3
        model = Network().eval()
        for options in ({}, {"score": "margin"}, {"tau": 0.4}):
            found = pgd(model, x, y, Gaussian(0.5), L2(0.5), seed=3, n_samples=16, **options)
            score = {k: v for k, v in options.items() if k == "score"}

            def goal(inputs, score=score, options=options):
                values = sample_scores(
                    model, inputs, Gaussian(0.5), 16, phase="test", labels=y, seed=3, **score
                )
                if "tau" in options:
                    values = 1 / (1 + np.exp(-(values - options["tau"]) / 0.1))
                return values.mean(axis=1)

            assert (goal(found) < goal(x) - 0.01).all()

    def test_never_worse_than_the_clean_input(self):
        """At a minimum of the score there is nothing to gain, and steps lead away."""
        flat = linear(np.zeros(6))
        x = np.random.default_rng(0).normal(size=(3, 6))
        np.testing.assert_array_equal(pgd(flat, x, [0] * 3, Gaussian(1.0), L2(0.5), seed=1), x)

        def bowl(inputs):
            depth = inputs.square().sum(1)
            return torch.stack([depth, -depth], dim=1)

        zero = np.zeros((2, 6))
        found = pgd(bowl, zero, [0, 0], Uniform(1e-6), L1(0.5), seed=1, step_size=0.5)
        assert np.abs(found).max() <= 1e-6

    def test_no_room(self):
        x = np.random.default_rng(0).random((3, 6))
        found = pgd(Network().double(), x, [0] * 3, Gaussian(1.0), L2(0.0), seed=1)
        np.testing.assert_array_equal(found, x)

    def test_depends_on_the_seed_and_on_nothing_else(self):
        x = np.random.default_rng(0).normal(size=(7, 6))
        y, model = np.arange(7) % 3, Network().double()
        options = {"n_samples": 5, "steps": 4}
        first = pgd(model, x, y, Gaussian(1.0), L2(0.5), seed=1, batch_size=64, **options)
        torch.manual_seed(99)
        again = pgd(model, x, y, Gaussian(1.0), L2(0.5), seed=1, batch_size=3, **options)
        np.testing.assert_allclose(first, again, atol=1e-10)
        other = pgd(model, x, y, Gaussian(1.0), L2(0.5), seed=2, **options)
        assert np.abs(first - other).max() > 1e-4

    def test_integers_of_numpy_do_not_overflow(self):
        """In 8 bits, 255 steps and one more are none."""
        x, model = np.random.default_rng(0).normal(size=(2, 6)), Network().double()
        arguments = (model, x, [0, 1], Gaussian(1.0), L2(0.5))
        expected = pgd(*arguments, seed=7, n_samples=2, steps=255)
        found = pgd(*arguments, seed=np.uint8(7), n_samples=np.uint8(2), steps=np.uint8(255))
        np.testing.assert_array_equal(found, expected)

    def test_leaves_the_model_as_it_was(self):
        model = Network()
        model.train()
        x = np.zeros((2, 6), np.float32)
        with torch.no_grad():  # of the caller: the attack needs gradients all the same
            pgd(model, x, [0, 1], Gaussian(1.0), L2(0.5), seed=1)
        assert model.layers[2].training
        assert all(p.grad is None and p.requires_grad for p in model.parameters())
        np.testing.assert_array_equal(x, 0)

    def test_takes_models_that_work_in_place(self):
        x, plain = np.random.default_rng(0).normal(size=(4, 6)), Network().double()
        in_place = torch.nn.Sequential(torch.nn.Tanh(), plain)
        in_place[0].forward = torch.tanh_
        apart = torch.nn.Sequential(torch.nn.Tanh(), plain)
        options = {"seed": 1, "n_samples": 4, "steps": 3}
        attacked = [
            pgd(model, x, [0, 1, 2, 0], Gaussian(1.0), L2(0.5), **options)
            for model in (in_place, apart)
        ]
        np.testing.assert_array_equal(*attacked)
        assert np.abs(attacked[0] - x).max() > 0.01

    def test_takes_tensors(self):
        x = torch.zeros(2, 6)
        found = pgd(Network(), x, torch.tensor([0, 1]), Gaussian(1.0), L2(0.5), seed=1, steps=3)
        assert isinstance(found, np.ndarray)
        assert is_inside(x.numpy(), found, L2(0.5))


class TestCoverage:
    def test_holds_under_attack_and_falls_without_the_certificate(self):
        rng = np.random.default_rng(0)
        y = rng.integers(2, size=600)
        x = (rng.normal(size=(600, 2)) + np.array([[1.6, 0], [-1.6, 0]])[y]).astype(np.float32)
        model = linear(np.array([4.0, 0.0], dtype=np.float32))
        test, labels = x[300:], y[300:]
        ball, sigma = L2(0.5), 0.5
        attacked = pgd(model, test, labels, Gaussian(sigma), ball, seed=123, n_samples=16, steps=10)
        coverages = {}
        for name, r in (("robust", ball.r), ("vanilla", 0.0)):
            ours = RobustClassifier(
                model, Gaussian(sigma), L2(r), alpha=0.1, n_samples=64, seed=42
            ).calibrate(x[:300], y[:300])
            coverages[name] = metrics.coverage(ours.predict(attacked).sets, labels)
        # 300 calibration and 300 test points: five standard deviations are 0.13.
        assert coverages["robust"] >= 0.9 - 0.13
        assert coverages["vanilla"] < coverages["robust"] - 0.03


# ---- flips ---------------------------------------------------------------------------------------


class TestRandomFlips:
    def inputs(self, n=6, d=12):
        return (np.random.default_rng(0).random((n, d)) < 0.4).astype(np.float32)

    @pytest.mark.parametrize("ball", [Flips(0, 0), Flips(2, 0), Flips(0, 3), Flips(1, 2)])
    def test_stays_binary_and_in_the_ball(self, ball):
        x = self.inputs()
        x[0], x[1] = 0, 1  # nothing to delete, nothing to add
        found = random_flips(
            Network(12), x, [0] * 6, SparseFlip(0.05, 0.3), ball, seed=1, n_samples=4, steps=20
        )
        assert found.dtype == x.dtype
        assert set(np.unique(found)) <= {0.0, 1.0}
        assert ((found > x).sum(1) <= ball.additions).all()
        assert ((found < x).sum(1) <= ball.deletions).all()
        assert (found != x).any() == (ball != Flips(0, 0))

    def test_finds_the_worst_case_of_a_linear_model(self):
        """Additions at the most negative weights, deletions at the most positive."""
        rng = np.random.default_rng(3)
        w, x = rng.permutation(np.linspace(-2, 2, 12)), self.inputs()
        ball = Flips(additions=1, deletions=2)
        found = random_flips(
            linear(w), x, [0] * 6, SparseFlip(0.0, 1e-6), ball, seed=1, n_samples=1, steps=300,
            score="logit",
        )  # fmt: skip
        for clean, attacked in zip(x, found, strict=True):
            zeros, ones = np.sort(w[clean == 0]), np.sort(w[clean == 1])[::-1]
            gain = -np.minimum(zeros[:1], 0).sum() + np.maximum(ones[:2], 0).sum()
            assert attacked @ w == pytest.approx(clean @ w - gain, abs=1e-5)

    def test_need_not_spend_the_whole_budget(self):
        """Of two ones, deleting both changes nothing and deleting one a lot."""

        def parity(x):
            odd = (x.sum(1) - 1).abs()
            return torch.stack([odd, torch.zeros_like(odd)], dim=1)

        found = random_flips(
            parity, np.float32([[1, 1]]), [0], SparseFlip(0.0, 0.0), Flips(0, 2), seed=1, steps=60
        )
        assert found.sum() == 1

    def test_the_count_never_falls_below_the_certificate(self):
        scheme, ball, m = SparseFlip(0.05, 0.4), Flips(1, 2), 20_000
        w = np.array([1.5] * 6 + [-1.5] * 6, dtype=np.float32)
        x = np.tile(np.float32([1] * 6 + [0] * 6), (2, 1))
        found = random_flips(linear(w, -3.0), x, [0, 0], scheme, ball, seed=5, tau=0.5, steps=60)
        share = [
            count_scores(linear(w, -3.0), z, scheme, m, 0.5, phase="test", batch_size=8192)[0, 0]
            / m
            for z in (x, found)
        ]
        assert share[1] < share[0] - 0.2
        assert share[1] >= bincp.certify(scheme, ball).lower(share[0]) - 4.5 / math.sqrt(m)

    def test_depends_on_the_seed_and_not_on_the_batch(self):
        x, options = self.inputs(), {"n_samples": 4, "steps": 10}
        arguments = (Network(12), x, [0] * 6, SparseFlip(0.05, 0.3), Flips(2, 2))
        first = random_flips(*arguments, seed=1, batch_size=64, **options)
        again = random_flips(*arguments, seed=1, batch_size=1, **options)
        np.testing.assert_array_equal(first, again)
        assert (first != random_flips(*arguments, seed=2, **options)).any()

    def test_takes_integers_of_torch(self):
        arguments = (Network(12), self.inputs(), [0] * 6, SparseFlip(0.05, 0.3), Flips(2, 2))
        expected = random_flips(*arguments, seed=3, n_samples=4, steps=5)
        three, four, five = torch.tensor([3, 4, 5])
        found = random_flips(*arguments, seed=three, n_samples=four, steps=five)
        np.testing.assert_array_equal(found, expected)

    def test_needs_no_gradients(self):
        pytest.importorskip("sklearn")
        from sklearn.ensemble import RandomForestClassifier

        x = self.inputs(60)
        y = (x[:, 0] + x[:, 1] > 0).astype(int)
        forest = RandomForestClassifier(10, random_state=0).fit(x, y)
        scheme = SparseFlip(0.01, 0.1)
        found = random_flips(forest, x, y, scheme, Flips(1, 1), seed=1, n_samples=4, steps=20)
        before, after = (
            sample_scores(forest, z, scheme, 4, phase="test", labels=y, seed=1).mean()
            for z in (x, found)
        )
        assert after < before - 0.2
        with pytest.raises(ValueError, match="`model` must have gradients"):
            pgd(forest, x, y, Gaussian(1.0), L2(0.5), seed=1)


# ---- bad input -----------------------------------------------------------------------------------

ARGUMENTS = {
    "model": linear(np.ones(6)),
    "x": np.zeros((3, 6)),
    "labels": [0, 1, 0],
    "smoothing": Gaussian(1.0),
    "seed": 1,
    "steps": 2,
    "n_samples": 2,
}


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"model": 3}, TypeError, "`model` must be a torch module or a callable"),
            ({"x": np.zeros((3, 6), int)}, ValueError, "`x` must be float32 or float64"),
            ({"labels": [0, 1]}, ValueError, r"`labels` must have shape \(3,\), got \(2,\)"),
            ({"labels": [0, 1, 2]}, ValueError, r"`labels` must be in \[0, 1\], got 2"),
            ({"labels": [0.0, 1.0, 1.0]}, TypeError, "`labels` must be integers"),
            ({"smoothing": L2(1.0)}, TypeError, "`smoothing` must be one of"),
            ({"seed": -1}, ValueError, "`seed` must be in"),
            ({"steps": 0}, ValueError, "`steps` must be at least 1, got 0"),
            ({"n_samples": 0}, ValueError, "`n_samples` must be in"),
            ({"tau": np.nan}, ValueError, "`tau` must not be NaN"),
            ({"temperature": 0.0}, ValueError, "`temperature` must be finite and > 0"),
            ({"score": "ptt"}, ValueError, "`score` must be one of"),
            ({"model": lambda x: x[:, :2] * torch.nan}, ValueError, "`model` must not give NaN"),
        ],
    )
    def test_both(self, change, error, message):
        for attack, ball in ((pgd, L2(0.5)), (random_flips, Flips(1, 1))):
            with pytest.raises(error, match=message):
                attack(**{**ARGUMENTS, "ball": ball, **change})

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"ball": Flips(1, 1)}, TypeError, "`ball` must be L1, L2 or Linf, got Flips"),
            ({"step_size": 0.0}, ValueError, "`step_size` must be finite and > 0, got 0.0"),
            ({"box": 1.0}, TypeError, r"`box` must be a pair \(low, high\), got 1.0"),
            ({"box": (0.5, 1.0)}, ValueError, r"`x` must be in the box .* got 0.0 at index \(0, 0"),
            ({"smoothing": SparseFlip(0.1, 0.1)}, ValueError, "`x` must be zeros and ones for Sp"),
            (
                {"model": lambda x: torch.stack([x[:, 0].sqrt(), x[:, 1]], 1).nan_to_num()},
                ValueError,
                "`model` must not have NaN gradients, got one for input",
            ),
        ],
    )
    def test_pgd(self, change, error, message):
        with pytest.raises(error, match=message):
            pgd(**{**ARGUMENTS, "ball": L2(0.5), **change})

    def test_random_flips(self):
        with pytest.raises(TypeError, match="`ball` must be Flips, got L2"):
            random_flips(**ARGUMENTS, ball=L2(0.5))
        with pytest.raises(ValueError, match=r"`x` must be zeros and ones, got 0.5 at .* \(0, 0\)"):
            random_flips(**{**ARGUMENTS, "x": np.full((3, 6), 0.5)}, ball=Flips(1, 1))


@pytest.mark.parametrize("ball", [L1(0.2), L2(0.05), Linf(2 / 255, 12)], ids=repr)
@pytest.mark.parametrize("scheme", [Gaussian(0.1, grid=255), SplittingNoise(0.25)], ids=repr)
def test_attacks_on_a_grid_move_by_whole_steps_inside_the_ball(scheme, ball):
    model = torch.nn.Linear(12, 2, bias=False)
    model.weight.data = 0.1 * torch.stack([torch.ones(12), -torch.ones(12)])
    levels = np.random.default_rng(0).integers(0, 256, (5, 12))
    x = levels.astype(np.float32) / np.float32(255)
    attacked = pgd(model, x, [0] * 5, scheme, ball, seed=1, box=(0, 1), steps=8)
    steps = np.rint(attacked.astype(float) * 255).astype(int)
    np.testing.assert_array_equal(attacked, steps.astype("f4") / np.float32(255))
    moved = np.abs(steps - levels) / 255
    norms = {"L1": moved.sum(1), "L2": (moved**2).sum(1) ** 0.5, "Linf": moved.max(1)}
    assert (norms[type(ball).__name__] <= ball.r * (1 + 2.0**-22)).all()
    assert (steps < levels).any(axis=1).all()
    assert (steps <= levels).all()
    if isinstance(ball, Linf):
        np.testing.assert_array_equal(steps, np.maximum(levels - 2, 0))


@pytest.mark.parametrize("label", [0, 1])
def test_the_box_moves_nothing_out_of_the_ball(label):
    """Its ends are coordinates of x in single precision, which are no grid points in double."""
    model = torch.nn.Linear(255, 2, bias=False)
    model.weight.data = 0.001 * torch.stack([torch.ones(255), -torch.ones(255)])
    x = (np.arange(1, 256, dtype=np.float32) / np.float32(255))[None]
    for low, high in ((x[0, 0], x[0, -1]), (x[0, 9], x[0, 9])):
        inside = np.clip(x, low, high)
        options = {"seed": 1, "n_samples": 4, "steps": 4, "box": (float(low), float(high))}
        for r in (0.3, 1.0):
            ball = Linf(r / 255, 255)
            attacked = pgd(model, inside, [label], Gaussian(0.1, grid=255), ball, **options)
            assert attacked.min() >= low
            assert attacked.max() <= high
            moved = np.abs(np.rint(attacked * 255.0) - np.rint(inside * 255.0))
            assert moved.max() == (1 if r == 1 and low < high else 0)


def test_attacks_refuse_grey_levels():
    with pytest.raises(ValueError, match=r"`x` must be float32 or float64 \(use x / 255\)"):
        pgd(
            torch.nn.Linear(2, 2),
            np.zeros((1, 2), np.uint8),
            [0],
            Gaussian(0.1, grid=255),
            L2(0.1),
            seed=1,
        )
