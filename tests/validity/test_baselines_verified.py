"""VRCP and Lip-RCP by brute force over finite populations; interval bounds against networks."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bincp
from bincp.baselines import VRCP, LipRCP, VanillaCP, interval_bounds, tps_bounds

torch = pytest.importorskip("torch")
nn = torch.nn


@given(st.lists(st.integers(0, 12), min_size=10, max_size=10), st.integers(0, 3), st.integers(0, 3))
@settings(deadline=None)
def test_any_attack_within_the_bounds_leaves_the_coverage(scores, down, up):
    """n = 9, alpha = 0.2: of ten exchangeable points, each in turn is the attacked test point."""
    values = np.array(scores, dtype=np.float64)
    covered = {"test": 0, "calibration": 0}
    for i in range(10):
        rest = np.delete(values, i)
        attacked = np.array([[values[i] - down]])
        inference = VRCP(alpha=0.2).calibrate(rest)
        # The verifier's ball around the attacked input holds the clean one.
        covered["test"] += inference.predict_set(attacked, upper=attacked + down + up)[0, 0]
        calibration = VRCP(alpha=0.2, robust_at="calibration").calibrate(rest, lower=rest - down)
        covered["calibration"] += calibration.predict_set(attacked)[0, 0]
    for side in ("test", "calibration"):
        assert covered[side] >= 8
        hits = [
            LipRCP(float(down), 1.0, alpha=0.2, robust_at=side)
            .calibrate(np.delete(values, i))
            .predict_set([[values[i] - down]])[0, 0]
            for i in range(10)
        ]
        assert sum(hits) >= 8


def test_vanilla_fails_where_verified_holds():
    values = np.arange(10.0)
    hits = [
        VanillaCP(alpha=0.2).calibrate(np.delete(values, i)).predict_set([[values[i] - 5]])[0, 0]
        for i in range(10)
    ]
    assert sum(hits) < 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_radius_is_vanilla(dtype):
    rng = np.random.default_rng(0)
    true, scores = rng.random(99).astype(dtype), rng.random((50, 4)).astype(dtype)
    scores[0, 0] = np.sort(true)[9]  # a tie with the threshold
    vanilla = VanillaCP().calibrate(true).predict_set(scores)
    assert vanilla[0, 0]
    for side in ("calibration", "test"):
        lipschitz = LipRCP(2.0, 0.0, robust_at=side).calibrate(true)
        np.testing.assert_array_equal(lipschitz.predict_set(scores), vanilla)
    np.testing.assert_array_equal(VRCP().calibrate(true).predict_set(scores, upper=scores), vanilla)
    rule = VRCP(robust_at="calibration").calibrate(true, lower=true)
    np.testing.assert_array_equal(rule.predict_set(scores), vanilla)


def test_where_the_lipschitz_bound_is_used_does_not_matter():
    rng = np.random.default_rng(1)
    true, scores = 0.3 + 0.7 * rng.random(99), rng.random((200, 4))
    sets = [
        LipRCP(0.5, 0.3, bounds=(0, 1), robust_at=side).calibrate(true).predict_set(scores)
        for side in ("calibration", "test")
    ]
    np.testing.assert_array_equal(*sets)
    for side in ("calibration", "test"):
        rule = LipRCP(0.5, 0.3, bounds=(0, 1), robust_at=side).calibrate(true)
        np.testing.assert_array_equal(rule.conformity(scores) >= rule.tau_, sets[0])
        assert rule.tau_ == np.sort(rule.calibration_conformity(true))[rule.rank_ - 1]
    # On ties up to rounding both must accept: 0.3 - 0.1 and 0.2 + 0.1 are not what they seem.
    for side in ("calibration", "test"):
        rule = LipRCP(1.0, 0.1, robust_at=side).calibrate(np.full(19, 0.3))
        assert rule.predict_set([[0.3 - 0.1]]).all()
        assert not rule.predict_set([[0.19999]]).any()


@pytest.mark.parametrize("side", ["calibration", "test"])
def test_scores_of_another_dtype_are_other_scores(side):
    """0.1 is less in float16, so that no attack and no radius would be needed to miss it."""
    true, scores = np.full(19, 0.1), np.full((2, 3), 0.1)
    bounds = {"calibration": {"lower": true}, "test": {"upper": scores}}
    at = {name: bounds[name] if name == side else {} for name in bounds}
    verified = VRCP(robust_at=side).calibrate(true, **at["calibration"])
    lipschitz = LipRCP(2.0, 0.0, robust_at=side).calibrate(true)
    assert verified.dtype_ == lipschitz.dtype_ == "float64"
    assert verified.predict_set(scores, **at["test"]).all()
    for narrow in (scores.astype(np.float16), scores.astype(np.float32)):
        for rule, options in ((verified, at["test"]), (lipschitz, {})):
            with pytest.raises(ValueError, match="dtype calibrated with, float64, got float"):
                rule.predict_set(narrow, **options)


def test_trivial_results_warn():
    with pytest.warns(bincp.TrivialSetWarning, match="n = 5 calibration points are too few"):
        VRCP().calibrate(np.arange(5.0))
    with pytest.warns(bincp.TrivialSetWarning, match="-inf; finite bounds"):
        VRCP(robust_at="calibration").calibrate(np.ones(20), lower=np.full(20, -math.inf))
    with pytest.warns(bincp.TrivialSetWarning, match="L r is too large"):
        LipRCP(2.0, 1.0, bounds=(0, 1)).calibrate(np.linspace(0, 1, 20))


def test_bad_input():
    true, scores = np.arange(20.0), np.zeros((2, 3))
    with pytest.raises(TypeError, match="`lower` must be given"):
        VRCP(robust_at="calibration").calibrate(true)
    with pytest.raises(TypeError, match="`lower` must not be given"):
        VRCP().calibrate(true, lower=true)
    with pytest.raises(ValueError, match=r"`lower` must be at most the score, 0.0, got 0.5 at"):
        VRCP(robust_at="calibration").calibrate(true, lower=true + 0.5)
    rule = VRCP().calibrate(true)
    with pytest.raises(TypeError, match="`upper` must be given"):
        rule.predict_set(scores)
    with pytest.raises(ValueError, match="`upper` must be at least the score"):
        rule.predict_set(scores, upper=scores - 1)
    with pytest.raises(ValueError, match=r"`upper` must have the shape of the scores, \(2, 3\)"):
        rule.predict_set(scores, upper=scores[:1])
    with pytest.raises(ValueError, match=r"`upper`.*NaN"):
        rule.predict_set(scores, upper=scores * math.nan)
    with pytest.raises(ValueError, match=r"`scores` must be in \[0, 1\], got 2.0 at index"):
        LipRCP(1.0, 0.01, bounds=(0, 1)).calibrate(true / 20).predict_set([[0.5, 2.0]])
    with pytest.raises(ValueError, match="`lipschitz` must be finite and >= 0"):
        LipRCP(-1.0, 0.1)
    with pytest.raises(ValueError, match="`lipschitz` times `r` must be within the range"):
        LipRCP(1e200, 1e200)
    for method in (VRCP(), LipRCP(1.0, 0.1)):
        assert method.guarantee == "robust"
        with pytest.raises(bincp.NotCalibratedError):
            method.predict_set(scores)
        with pytest.raises(ValueError, match="`true_scores`"):
            method.calibrate([math.nan, 0.0])
        with pytest.raises(ValueError, match=r"`true_scores` must have shape \(n,\)"):
            method.calibrate(scores)


# ---- interval bounds -----------------------------------------------------------------------------


def networks():
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.1, 2)
    norm.weight.data.normal_()
    norm.bias.data.normal_()
    return {
        "linear": ((3,), nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))),
        "convolutions": (
            (2, 8, 8),
            nn.Sequential(
                nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, bias=False), norm, nn.ReLU()),
                nn.AvgPool2d(2, stride=1, padding=1),
                nn.Conv2d(4, 4, 3, stride=2, groups=2, dilation=2),
                nn.Dropout(0.5),
                nn.Flatten(),
                nn.Linear(36, 3),
            ).eval(),
        ),
    }


@pytest.mark.parametrize("name", ["linear", "convolutions"])
@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_outputs_of_a_box_are_within_its_bounds(name, radius):
    shape, model = networks()[name]
    x = torch.randn(16, *shape)
    lower, upper = interval_bounds(model, x.double() - radius, x.double() + radius)
    inside = x + radius * 0.999 * (2 * torch.rand(20, *x.shape) - 1)
    with torch.no_grad():
        for net in (model, copy.deepcopy(model).double()):
            points = inside.flatten(0, 1).to(net[-1].weight.dtype)
            output = net(points).double().unflatten(0, (20, 16))
            assert (lower <= output).all()
            assert (output <= upper).all()
    if radius == 0:
        assert (upper - lower).max() < 1e-3  # rounding alone


def test_a_layer_that_comes_twice_counts_twice():
    torch.manual_seed(0)
    relu, linear = nn.ReLU(), nn.Linear(3, 3)
    model = nn.Sequential(linear, relu, nn.Sequential(linear, relu), linear, relu)
    copies = nn.Sequential(*(copy.deepcopy(layer) for layer in (linear, relu) * 3))
    x = torch.randn(4, 3).double()
    for bound, other in zip(
        interval_bounds(model, x - 0.1, x + 0.1),
        interval_bounds(copies, x - 0.1, x + 0.1),
        strict=True,
    ):
        assert torch.equal(bound, other)


def test_bounds_of_one_linear_layer_are_attained():
    layer = nn.Linear(6, 4)
    x = torch.randn(5, 6).double()
    lower, upper = interval_bounds(nn.Sequential(layer), x - 0.2, x + 0.2)
    spread = 0.2 * layer.weight.double().abs().sum(1)
    center = nn.functional.linear(x, layer.weight.double(), layer.bias.double())
    for bound, exact, sign in ((lower, center - spread, 1), (upper, center + spread, -1)):
        assert (sign * (exact - bound) > 0).all()
        assert (exact - bound).abs().max() < 1e-4


def test_bounds_of_the_softmax_are_attained_and_hold_its_rounding():
    rng = torch.Generator().manual_seed(0)
    center = 6 * torch.randn(40, 5, generator=rng, dtype=torch.float64)
    low, high = tps_bounds(center - 0.5, center + 0.5)
    for y in range(5):
        worst = center + 0.5
        worst[:, y] -= 1
        exact = worst.softmax(1)[:, y]
        assert (low[:, y] <= exact).all()
        torch.testing.assert_close(low[:, y], exact, rtol=1e-4, atol=1e-30)
        best = center - 0.5
        best[:, y] += 1
        exact = best.softmax(1)[:, y]
        assert (high[:, y] >= exact).all()
        torch.testing.assert_close(high[:, y], exact, rtol=1e-4, atol=1e-30)
    computed = center.float().softmax(1).double()
    low, high = tps_bounds(center.float(), center.float())
    assert ((low <= computed) & (computed <= high)).all()
    low, high = tps_bounds(center - 1e7, center + 1e7)  # beyond what float32 can tell apart
    assert (low == 0).all()
    assert (high == 1).all()


def test_a_normalisation_without_weights_is_a_shift_and_a_scale():
    layer = nn.BatchNorm2d(1, affine=False).eval()
    layer.running_mean[:], layer.running_var[:] = 3.0, 4.0
    lower, upper = torch.zeros(1, 1, 2, 2), torch.full((1, 1, 2, 2), 5.0)
    low, high = interval_bounds(nn.Sequential(layer), lower, upper)
    assert torch.allclose(low, torch.full_like(low, -1.5), rtol=1e-4)
    assert torch.allclose(high, torch.full_like(high, 1.0), rtol=1e-4)
    assert (low <= layer(lower)).all()
    assert (high >= layer(upper)).all()


def test_sums_of_so_many_terms_that_no_digit_is_left_are_refused():
    n = 2**21
    model = nn.Sequential(nn.Linear(n, 1))
    with pytest.raises(ValueError, match=f"`model` must not sum {n + 1} terms in float32"):
        interval_bounds(model, torch.zeros(1, n), torch.ones(1, n))


def test_verified_scores_of_a_network_keep_their_coverage():
    shape, model = networks()["linear"]
    x = torch.randn(100, *shape)

    def bounds(inputs):
        return tps_bounds(*interval_bounds(model, inputs.double() - 0.1, inputs.double() + 0.1))

    with torch.no_grad():
        scores = model(x).softmax(1)
    rule = VRCP(robust_at="calibration")
    rule.calibrate(scores[:, 0], lower=bounds(x)[0][:, 0])
    assert rule.tau_ < VanillaCP().calibrate(scores[:, 0]).tau_
    assert VRCP().calibrate(scores[:, 0]).predict_set(scores, upper=bounds(x)[1]).shape == (100, 2)


def test_what_cannot_be_bounded_is_refused_by_name():
    box = torch.zeros(1, 4), torch.ones(1, 4)
    linear = nn.Linear(4, 2)
    hooked = nn.Linear(4, 2)
    hooked.register_forward_hook(lambda *_: None)
    replaced = nn.Linear(4, 2)
    replaced.forward = lambda x: 100 * x
    for layers, message in (
        ([linear, nn.Tanh()], "got Tanh as layer 1"),
        ([nn.Sequential(linear, nn.GELU())], r"got GELU as layer 0\.1"),
        ([nn.Dropout(), linear], "`model` must have its Dropout in evaluation mode"),
        ([hooked], "must have no hooks, got one on layer 0"),
        ([nn.Sequential(replaced)], "must not have its forward replaced, got one on layer 0"),
        ([torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2))], "Parametrized"),
    ):
        with pytest.raises(ValueError, match=message):
            interval_bounds(nn.Sequential(*layers), *box)
    images = torch.zeros(1, 1, 4, 4), torch.ones(1, 1, 4, 4)
    for layer, message in (
        (nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect"), "must pad with zeros"),
        (nn.BatchNorm2d(1), "BatchNorm2d in evaluation mode"),
        (nn.BatchNorm2d(1, track_running_stats=False).eval(), "with statistics"),
        (nn.AvgPool2d(2, divisor_override=3), "divisor_override"),
    ):
        with pytest.raises(ValueError, match=message):
            interval_bounds(nn.Sequential(layer), *images)
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Sequential, .*got Linear"):
        interval_bounds(linear, *box)
    model = nn.Sequential(linear)
    model.register_forward_pre_hook(lambda *_: None)
    with pytest.raises(ValueError, match="must have no hooks, got one on the model"):
        interval_bounds(model, *box)

    class Scaled(nn.Sequential):
        def forward(self, x):
            return 5 * super().forward(x)

    with pytest.raises(TypeError, match="with the forward of that class, got Scaled"):
        interval_bounds(Scaled(linear), *box)
    with pytest.raises(ValueError, match=r"must stay in the range of torch\.float32"):
        interval_bounds(
            nn.Sequential(nn.Linear(4, 2)), box[0].double() - 1e300, box[1].double() * 1e300
        )


def test_bad_boxes():
    model = nn.Sequential(nn.Linear(2, 2))
    x = torch.zeros(1, 2)
    for lower, upper, error, message in (
        (x.numpy(), x, TypeError, "`lower` must be a torch tensor, got ndarray"),
        (x, x * math.nan, ValueError, "`upper` must be finite"),
        (x + 1, x, ValueError, "nowhere be above"),
        (x, x[:, :1], ValueError, "must have the shape"),
        (x.half(), x, ValueError, "`lower` must be float32 or float64"),
    ):
        with pytest.raises(error, match=message):
            interval_bounds(model, lower, upper)
        with pytest.raises(error, match=message):
            tps_bounds(lower, upper)
    with pytest.raises(ValueError, match=r"`lower` must have shape \(n, K\)"):
        tps_bounds(x[0], x[0])
