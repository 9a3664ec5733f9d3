"""Sampling scores from torch models: the numbers, the model's state, memory, and bad input."""

import functools
import math
import weakref
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from bincp import balls, noise, scores  # noqa: E402
from bincp.balls import L2, CategoricalFlips, Flips, Linf  # noqa: E402
from bincp.calibration._bincp import BinCP  # noqa: E402
from bincp.calibration._label_test import line_boundaries  # noqa: E402
from bincp.certificates._registry import certify  # noqa: E402
from bincp.errors import NotCalibratedError  # noqa: E402
from bincp.noise import Keys  # noqa: E402
from bincp.noise._keys import score_numbers  # noqa: E402
from bincp.sampling import (  # noqa: E402
    NormalizedModel,
    PredictionSets,
    RobustClassifier,
    count_scores,
    sample_scores,
)
from bincp.sampling._jobs import Job  # noqa: E402
from bincp.smoothing import (  # noqa: E402
    CategoricalFlip,
    Exp2,
    Gaussian,
    Joint,
    Pareto,
    SparseFlip,
    Uniform,
)

D, K = 6, 4
SCHEMES = [Gaussian(0.5), Uniform(0.5), Pareto(0.5, 3), Exp2(0.5), SparseFlip(0.1, 0.4)]


def first_coordinates(x):
    """A model whose every number is a number of its input: equal to the bit at any batch size."""
    return 3 * x.reshape(len(x), -1)[:, :K]


def inputs(n=5, dtype=np.float32):
    return (np.random.default_rng(0).random((n, 2, D // 2)) > 0.5).astype(dtype)


class TestNumbers:
    @pytest.mark.parametrize("smoothing", SCHEMES)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("score", sorted(scores.NAMED_SCORES))
    def test_scores_are_those_of_the_smoothed_inputs(self, smoothing, dtype, score):
        x = inputs(dtype=dtype)
        options = {"phase": "test", "seed": 2**40 + 1, "indices": [3, 1, 2**50, 0, 9]}
        noisy = noise.draw(smoothing, x, 7, **options)
        logits = first_coordinates(torch.from_numpy(noisy.reshape(35, D)))
        values = logits.softmax(-1).numpy().reshape(5, 7, K)
        keys = np.repeat(options["indices"], 7), np.tile(np.arange(7), 5)
        u = score_numbers(Keys(2**40 + 1, "test", *keys)).reshape(5, 7)
        expected = {
            "tps": scores.tps(values),
            "lac": scores.tps(values),
            "thr": scores.tps(values),
            "aps": scores.aps(values, u),
            "raps": scores.raps(values, u),
            "margin": scores.margin(values),
            "logit": logits.numpy().reshape(5, 7, K),
        }[score]
        sampled = sample_scores(first_coordinates, x, smoothing, 7, score=score, **options)
        assert sampled.shape == (5, K, 7)
        assert sampled.dtype == dtype
        np.testing.assert_array_equal(sampled, expected.transpose(0, 2, 1))

    @given(
        smoothing=st.sampled_from(SCHEMES),
        score=st.sampled_from(["tps", "aps", "logit"]),
        n=st.integers(1, 6),
        m=st.integers(1, 9),
        batch_size=st.integers(1, 60),
        phase=st.sampled_from(["calibration", "test", "tuning"]),
        seed=st.integers(0, 2**64 - 1),
        data=st.data(),
    )
    @settings(deadline=None, max_examples=50)
    def test_batch_size_order_and_number_of_draws_change_nothing(
        self, smoothing, score, n, m, batch_size, phase, seed, data
    ):
        x = inputs(n)
        options = {"phase": phase, "score": score, "seed": seed}
        full = sample_scores(first_coordinates, x, smoothing, m, **options)
        order = np.array(data.draw(st.permutations(range(n))))
        again = sample_scores(
            first_coordinates, x[order], smoothing, m, indices=order, batch_size=batch_size,
            **options,
        )  # fmt: skip
        np.testing.assert_array_equal(again, full[order])
        fewer = data.draw(st.integers(1, m))
        some = sample_scores(first_coordinates, x[:1], smoothing, fewer, **options)
        np.testing.assert_array_equal(some, full[:1, :, :fewer])
        labels = data.draw(st.lists(st.integers(0, K - 1), min_size=n, max_size=n))
        own = sample_scores(
            first_coordinates, x, smoothing, m, labels=labels, batch_size=batch_size, **options
        )
        np.testing.assert_array_equal(own, full[np.arange(n), labels])
        tau = float(data.draw(st.sampled_from(full.ravel().tolist())))
        counts = count_scores(
            first_coordinates, x, smoothing, m, tau, batch_size=batch_size, **options
        )
        assert counts.dtype == np.int32
        np.testing.assert_array_equal(counts, (full >= np.float32(tau)).sum(axis=2))

    def test_phases_draw_different_scores(self):
        x = inputs()
        for score in ("tps", "aps"):
            clean = SparseFlip(0.0, 0.0) if score == "aps" else Gaussian(1.0)
            one, two = (
                sample_scores(first_coordinates, x, clean, 20, phase=phase, score=score)
                for phase in ("calibration", "test")
            )
            assert not np.isclose(one, two).all(axis=1).any()

    def test_tau_is_compared_in_the_dtype_of_the_scores(self):
        """float32(0.7) reaches 0.7: a threshold is rounded to the dtype of the scores first."""

        def constant(x):
            return torch.full((len(x), 2), 0.7, dtype=x.dtype)

        for dtype in (np.float32, np.float64):
            counts = count_scores(
                constant, inputs(dtype=dtype), Gaussian(1.0), 3, 0.7, phase="test", score="logit"
            )
            assert (counts == 3).all()

    @pytest.mark.parametrize("tau", [math.inf, -math.inf])
    def test_infinities_are_ordinary(self, tau):
        def masked(x):
            logits = first_coordinates(x).clone()
            logits[:, 0] = -math.inf
            return logits

        counts = count_scores(masked, inputs(), Gaussian(1.0), 3, tau, phase="test", score="logit")
        assert (counts == (0 if tau > 0 else 3)).all()
        sampled = sample_scores(masked, inputs(), Gaussian(1.0), 3, phase="test")
        assert (sampled[:, 0] == 0).all()

    def test_infinities_of_both_signs_are_ordinary(self):
        def masked(x):
            logits = first_coordinates(x).clone()
            logits[:, 0], logits[:, 1] = -math.inf, math.inf
            return logits

        options = {"phase": "test", "score": "logit"}
        counts = count_scores(masked, inputs(), Gaussian(1.0), 3, 1e30, **options)
        expected = np.zeros_like(counts)
        expected[:, 1] = 3
        assert (counts == expected).all()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_logits_are_widened_before_the_score(self, dtype):
        def half(x):
            return first_coordinates(x).to(dtype)

        for score in ("tps", "logit", lambda logits: logits):
            sampled = sample_scores(half, inputs(), Gaussian(1.0), 3, phase="test", score=score)
            assert sampled.dtype == np.float32
        tps = sample_scores(half, inputs(), Gaussian(1.0), 3, phase="test")
        assert (np.abs(tps.sum(axis=1) - 1) < 1e-6).all()

    def test_callable_score(self):
        def negative_entropy_free(logits):
            return -logits

        x = inputs()
        ours = sample_scores(
            first_coordinates, x, Gaussian(1.0), 3, phase="test", score=negative_entropy_free
        )
        logits = sample_scores(first_coordinates, x, Gaussian(1.0), 3, phase="test", score="logit")
        np.testing.assert_array_equal(ours, -logits)

    def test_parameters_of_a_named_score(self):
        x, given = inputs(), {"phase": "test", "seed": 3}
        parameters = {"penalty": 0.25, "k_reg": 1}
        ours = sample_scores(
            first_coordinates, x, Gaussian(1.0), 3, score=("raps", parameters), **given
        )

        def by_hand(logits, *, uniform):
            return scores.raps(logits.softmax(-1), uniform, **parameters)

        expected = sample_scores(first_coordinates, x, Gaussian(1.0), 3, score=by_hand, **given)
        np.testing.assert_array_equal(ours, expected)
        default = sample_scores(first_coordinates, x, Gaussian(1.0), 3, score="raps", **given)
        assert (ours != default).any()
        for same in (("raps", {}), ("raps", {"penalty": 0.01}), ("raps", {"k_reg": 5})):
            again = sample_scores(first_coordinates, x, Gaussian(1.0), 3, score=same, **given)
            np.testing.assert_array_equal(again, default)

    @pytest.mark.parametrize("phase", ["calibration", "test"])
    def test_a_callable_score_may_ask_for_keyed_numbers(self, phase):
        """They are those of the named scores: of the input and the draw, whatever the batch."""

        def own_aps(logits, *, uniform):
            assert uniform.shape == (len(logits), 1)
            assert uniform.dtype == torch.float64
            return scores.aps(logits.softmax(-1), uniform)

        def fixed(logits, *, uniform=0.5):
            return scores.aps(logits.softmax(-1), uniform)

        def sampled(score, batch_size=256):
            return sample_scores(
                first_coordinates, inputs(), Gaussian(1.0), 7, phase=phase, score=score,
                batch_size=batch_size,
            )  # fmt: skip

        expected = sampled("aps")
        for batch_size in (1, 4, 256):
            np.testing.assert_array_equal(sampled(own_aps, batch_size), expected)
        constant = sampled(lambda logits: scores.aps(logits.softmax(-1), 0.5))
        np.testing.assert_array_equal(sampled(fixed), constant)
        partial = functools.partial(own_aps, uniform=torch.full((35, 1), 0.5, dtype=torch.float64))
        np.testing.assert_array_equal(sampled(partial), constant)

    def test_inputs_of_any_kind(self):
        x = inputs()
        expected = sample_scores(first_coordinates, x, Gaussian(1.0), 3, phase="test")
        frozen = x.copy()
        frozen.flags.writeable = False
        tensor = torch.from_numpy(x.copy()).requires_grad_()
        strided = torch.from_numpy(np.ascontiguousarray(x.transpose(2, 1, 0))).permute(2, 1, 0)
        for same in (frozen, np.asfortranarray(x), tensor, strided):
            ours = sample_scores(first_coordinates, same, Gaussian(1.0), 3, phase="test")
            np.testing.assert_array_equal(ours, expected)
        for ids in ([0, 1, 2, 3, 4], torch.arange(5), np.arange(5, dtype=np.uint8)):
            ours = sample_scores(first_coordinates, x, Gaussian(1.0), 3, phase="test", indices=ids)
            np.testing.assert_array_equal(ours, expected)

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
    def test_labels_of_any_integer_type(self, dtype):
        def sampled(labels):
            return sample_scores(
                first_coordinates, inputs(3), Gaussian(1.0), 3, phase="calibration", labels=labels
            )

        expected = sampled([0, 1, 2])
        np.testing.assert_array_equal(sampled(np.array([0, 1, 2], dtype)), expected)
        np.testing.assert_array_equal(sampled(torch.tensor([0, 1, 2]).to(getattr(torch, dtype))),
                                      expected)  # fmt: skip
        beyond = np.array([0, 1, 2**64 - 1], np.uint64)
        with pytest.raises(ValueError, match=r"`labels` must be below 2\*\*63, got 184467440737"):
            sampled(beyond)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
    def test_cuda_gets_the_same_noise(self):
        x = inputs()
        expected = sample_scores(
            first_coordinates, x, Gaussian(1.0), 50, phase="test", score="logit"
        )
        for same in (x, torch.from_numpy(x).cuda()):
            ours = sample_scores(
                first_coordinates, same, Gaussian(1.0), 50, phase="test", score="logit",
                device="cuda", batch_size=16,
            )  # fmt: skip
            np.testing.assert_array_equal(ours, expected)
        counts = count_scores(
            first_coordinates, torch.from_numpy(x).cuda(), Gaussian(1.0), 50, 0.5, phase="test",
            score="logit",
        )  # fmt: skip
        np.testing.assert_array_equal(counts, (expected >= 0.5).sum(axis=2))


class TestModelState:
    def model(self):
        model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(D, K), torch.nn.BatchNorm1d(K), torch.nn.Dropout()
        )
        model.train()
        model[2].eval()  # frozen by its owner
        return model

    def test_modes_come_back_and_statistics_stay(self):
        model = self.model()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        seen = []
        model.register_forward_hook(
            lambda _, args, out: seen.append(
                (any(m.training for m in model.modules()), out.requires_grad, args[0].requires_grad)
            )
        )
        x = torch.from_numpy(inputs()).requires_grad_()
        sample_scores(model, x, Gaussian(1.0), 3, phase="test")
        count_scores(model, x, Gaussian(1.0), 3, 0.5, phase="test")
        assert seen == [(False, False, False)] * 2
        assert [m.training for m in model] == [True, True, False, True]
        assert model.training
        assert torch.is_grad_enabled()
        for name, value in model.state_dict().items():
            assert torch.equal(value, before[name])
        assert x.grad is None

    def test_modes_come_back_after_an_error(self):
        model = self.model()
        model.register_forward_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("no memory")))
        with pytest.raises(RuntimeError, match="no memory"):
            sample_scores(model, inputs(), Gaussian(1.0), 3, phase="test")
        assert [m.training for m in model] == [True, True, False, True]
        assert torch.is_grad_enabled()

    def test_a_model_may_keep_its_batches(self):
        kept = []

        def keeping(x):
            kept.append((x, x.clone()))
            return first_coordinates(x)

        sample_scores(keeping, inputs(), Gaussian(1.0), 6, phase="test", batch_size=4)
        assert len(kept) == 8
        for batch, copy in kept:
            assert torch.equal(batch, copy)


class LargestTensor(TorchDispatchMode):
    """Records the size of the largest tensor that any torch operation returns."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.size = max([self.size, *sizes])
        return out


class TestMemory:
    def test_counting_holds_one_batch_of_scores(self):
        with LargestTensor() as largest:
            count_scores(
                first_coordinates, inputs(20), Gaussian(1.0), 100, 0.5, phase="test", batch_size=32
            )
        assert largest.size == 32 * D  # all scores: 20 * 4 * 100

    def test_batches_do_not_pile_up(self):
        alive, most = weakref.WeakSet(), 0

        def watched(x):
            nonlocal most
            logits = first_coordinates(x)
            alive.add(logits)
            most = max(most, len(alive))
            return logits

        count_scores(watched, inputs(), Gaussian(1.0), 100, 0.5, phase="test", batch_size=10)
        assert most <= 2

    def test_progress_bar_is_optional(self, capsys):
        pytest.importorskip("tqdm")
        for progress in (None, False, True):
            sample_scores(
                first_coordinates, inputs(), Gaussian(1.0), 4, phase="test", progress=progress
            )
            assert ("test" in capsys.readouterr().err) is (progress is True)


ARGUMENTS = {
    "model": first_coordinates,
    "x": inputs(3),
    "smoothing": Gaussian(1.0),
    "n_samples": 4,
    "phase": "calibration",
    "batch_size": 5,
}


class TestBadInput:
    @pytest.mark.parametrize("function", [sample_scores, count_scores])
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"model": 3}, TypeError, "`model` must be a torch module or a callable, .*, got 3"),
            ({"x": [[0.0]]}, TypeError, "`x` must be a tensor or an array, got list"),
            ({"x": inputs(3).astype(np.uint8)}, ValueError, "`x` must be float32 .* got uint8"),
            ({"x": torch.zeros(3, 6, dtype=torch.bfloat16)}, ValueError, "got torch.bfloat16"),
            ({"x": torch.zeros(3, 6).half()}, ValueError, "`x` must be float32 .* got float16"),
            ({"x": inputs(0)}, ValueError, "`x` must have shape .* not be empty"),
            ({"smoothing": L2(1.0)}, TypeError, "`smoothing` must be one of .*SparseFlip"),
            ({"n_samples": 0}, ValueError, "`n_samples` must be in"),
            ({"n_samples": 4.0}, TypeError, "`n_samples` must be an integer"),
            ({"phase": "Test"}, ValueError, "'test' or 'tuning', got 'Test'"),
            ({"indices": [0, 1]}, ValueError, r"`indices` must have shape \(3,\), got \(2,\)"),
            ({"indices": [0, 1, -1]}, ValueError, r"`indices` .* got -1 at index \(2,\)"),
            ({"indices": [0, 1, 1]}, ValueError, "`indices` must differ .* got 1 more than once"),
            ({"score": "ptt"}, ValueError, "one of aps, lac, .*, tps, got 'ptt'"),
            ({"score": 1}, TypeError, "`score` must be a name, a pair .* or a callable, got 1"),
            ({"score": ("raps",)}, TypeError, "`score` must be a name, a pair .*, got"),
            ({"score": ("raps", 0.1)}, TypeError, "`score` must be a name, a pair .*, got"),
            ({"score": ("rasp", {})}, ValueError, "`score` must be one of .*, got 'rasp'"),
            ({"score": ("raps", {"k": 1})}, TypeError, "parameters penalty, k_reg, got 'k'"),
            ({"score": ("raps", {"k_reg": -1})}, ValueError, "`k_reg` must be at least 0, got -1"),
            ({"score": ("tps", {"u": 1})}, TypeError, "`score` must take no parameters, got 'u'"),
            ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1"),
            ({"seed": 2**64}, ValueError, "`seed` must be in"),
            ({"seed": -1}, ValueError, "`seed` must be in"),
            ({"device": "gpu"}, ValueError, "`device` must be a torch device .*, got 'gpu'"),
            ({"device": 1.0}, TypeError, "`device` must be a torch.device or a str, got 1.0"),
            ({"progress": 1}, TypeError, "`progress` must be True, False or None, got 1"),
        ],
    )
    def test_arguments(self, function, change, error, message):
        arguments = {**ARGUMENTS, **change}
        if function is count_scores:
            arguments["tau"] = 0.5
        with pytest.raises(error, match=message):
            function(**arguments)

    @pytest.mark.parametrize(
        ("model", "error", "message"),
        [
            (lambda x: x.sum(), ValueError, r"shape \(5, K\) for a batch of 5, got shape \(\)"),
            (lambda x: first_coordinates(x)[0], ValueError, r"got shape \(4,\)"),
            (lambda x: first_coordinates(x)[:2], ValueError, r"got shape \(2, 4\)"),
            (lambda x: x, ValueError, r"got shape \(5, 2, 3\)"),
            (lambda x: x.reshape(len(x), -1)[:, :0], ValueError, r"got shape \(5, 0\)"),
            (
                lambda x: first_coordinates(x).int(),
                ValueError,
                "floating-point logits, got torch.int",
            ),
            (
                lambda x: (x.sum(), first_coordinates(x)),
                TypeError,
                r"of logits, got tuple of 2; .*\[0\]",
            ),
            (lambda x: first_coordinates(x).numpy(), TypeError, "tensor of logits, got ndarray"),
            (
                lambda x: x.reshape(len(x), -1)[:, : len(x) - 1],
                ValueError,
                "must return 4 logits as before, got 1",
            ),
        ],
    )
    def test_model_output(self, model, error, message):
        for function, extra in ((sample_scores, {}), (count_scores, {"tau": 0.5})):
            with pytest.raises(error, match=message):
                function(**{**ARGUMENTS, "model": model, **extra})

    @pytest.mark.parametrize("score", sorted(scores.NAMED_SCORES))
    def test_nan_scores_say_where(self, score):
        """Row 7 of all rows: the fourth draw of the second input."""
        calls = 0

        def broken(x):
            nonlocal calls
            logits = first_coordinates(x).clone()
            if calls == 1:
                logits[2, 3] = math.nan
            calls += 1
            return logits

        where = "input 1, draw 3, label " + ("3" if score == "logit" else "0")
        with pytest.raises(ValueError, match=f"`model` must not give NaN scores, .* {where}"):
            sample_scores(**{**ARGUMENTS, "model": broken, "score": score})

    def test_score_callables_are_checked(self):
        for score, error in (
            (lambda logits: logits[:, :1], ValueError),
            (lambda logits: logits.int(), ValueError),
            (lambda logits: logits.tolist(), TypeError),
        ):
            with pytest.raises(error, match="`score` must return"):
                sample_scores(**{**ARGUMENTS, "score": score})

    def test_bad_labels(self):
        for labels, error, message in (
            ([-1, 0, 1], ValueError, r"`labels` .* got -1 at index \(0,\)"),
            ([0, 4, 1], ValueError, r"`labels` must be in \[0, 3\], got 4 at index \(1,\)"),
            ([0, 255, 1], ValueError, "got 255"),
            ([0.0, 1.0, 2.0], TypeError, "`labels` must be integers, got dtype float64"),
            ([math.nan, 0, 1], TypeError, "`labels` must be integers"),
            ([0, 1], ValueError, r"`labels` must have shape \(3,\), got \(2,\)"),
        ):
            with pytest.raises(error, match=message):
                sample_scores(**ARGUMENTS, labels=labels)

    def test_tau(self):
        for tau, error in ((math.nan, ValueError), ("0.5", TypeError), (True, TypeError)):
            with pytest.raises(error, match="`tau` must"):
                count_scores(**ARGUMENTS, tau=tau)

    def test_flips_need_zeros_and_ones(self):
        x = inputs(3)
        x[1, 1, 2] = 2
        with pytest.raises(ValueError, match=r"zeros and ones .* got 2.0 at index \(1, 1, 2\)"):
            sample_scores(**{**ARGUMENTS, "x": x, "smoothing": SparseFlip(0.1, 0.1)})


class TestNormalizedModel:
    def test_forward_normalises_each_channel(self):
        x = torch.rand(5, 3, 4, 4)
        mean, std = [0.1, 0.2, 0.3], [0.5, 0.25, 0.125]
        model = NormalizedModel(torch.nn.Flatten(), mean, std)
        expected = torch.stack([(x[:, c] - mean[c]) / std[c] for c in range(3)], dim=1)
        torch.testing.assert_close(model(x), expected.flatten(1))
        assert not list(model.state_dict())
        flat = NormalizedModel(torch.nn.Flatten(), 0.5, 0.5)
        torch.testing.assert_close(flat(x), (2 * x - 1).flatten(1))

    def test_units(self):
        model = torch.nn.Flatten()
        raw = NormalizedModel(model, 0.4, 0.2).to_raw_units(8 / 255)
        assert raw == pytest.approx(1.6 / 255, rel=1e-15)
        assert NormalizedModel(model, 0.5, 0.5).to_normalized_units(0.25) == 0.5
        assert NormalizedModel(model, [0.1, 0.4], [0.5, 0.5]).to_raw_units(1.0) == 0.5
        with pytest.raises(ValueError, match="`std` must be the same for all channels"):
            NormalizedModel(model, 0.4, [0.2, 0.3]).to_raw_units(8 / 255)

    def test_wrapping_is_the_same_as_scaling_by_hand(self):
        """Noise of sigma on raw inputs is noise of sigma / std on normalised ones."""
        x = torch.from_numpy(inputs())
        network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(D, K)).double()
        wrapped = NormalizedModel(network, 0.5, 0.25)
        ours = sample_scores(wrapped, x.double(), Gaussian(0.25), 4, phase="test")
        by_hand = sample_scores(
            network, (x.double() - 0.5) / 0.25, Gaussian(wrapped.to_normalized_units(0.25)), 4,
            phase="test",
        )  # fmt: skip
        np.testing.assert_allclose(ours, by_hand, rtol=1e-12)

    def test_bad_arguments(self):
        for mean, std in ((0, 0), (0, -1), (math.nan, 1), ([0, 0], [1, 1, 1]), ([], 1), (0, [[1]])):
            with pytest.raises(ValueError, match=r"`(mean|std)`"):
                NormalizedModel(torch.nn.Flatten(), mean, std)
        for bad in ("a", True, 1 + 2j, None, np.ma.masked_array([1.0, 2.0], [False, True])):
            for numbers in ({"mean": bad, "std": 1}, {"mean": 0, "std": bad}):
                with pytest.raises(TypeError, match=r"`(mean|std)` must be"):
                    NormalizedModel(torch.nn.Flatten(), **numbers)
        with pytest.raises(TypeError, match=r"`model` must be a torch\.nn"):
            NormalizedModel(lambda x: x, 0, 1)

    def test_numbers_of_any_array(self):
        for half in (0.5, np.float32(0.5), torch.tensor([0.5], requires_grad=True), np.array(0.5)):
            assert NormalizedModel(torch.nn.Flatten(), half, half).to_raw_units(2.0) == 1


def classifier(**changes):
    """A classifier that counts all draws, unless the test says otherwise."""
    options = {"alpha": 0.1, "n_samples": 64, "passes": None, "seed": 0, **changes}
    ball = options.pop("ball", L2(0.1))
    model = options.pop("model", first_coordinates)
    return RobustClassifier(model, options.pop("smoothing", Gaussian(0.5)), ball, **options)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 400)
    x = rng.normal(0, 0.5, (400, D)).astype(np.float32)
    x[np.arange(400), y] += 1.5
    return x, y


class TestRobustClassifier:
    def test_a_random_score_is_the_steps_taken_by_hand(self, data):
        x, y = data
        options = {"score": "aps", "seed": 7, "batch_size": 100}
        ours = classifier(n_samples=128, n_test_samples=96, **options).calibrate(x[:200], y[:200])
        predicted = ours.predict(x[200:], curtail=False)
        true = sample_scores(
            first_coordinates, x[:200], Gaussian(0.5), 128, phase="calibration", labels=y[:200],
            **options,
        )  # fmt: skip
        rule = BinCP(certify(Gaussian(0.5), L2(0.1)), alpha=0.1)
        rule.calibrate(true, n_classes=K, n_test_samples=96)
        assert (ours.rule.tau_, ours.rule.min_count_) == (rule.tau_, rule.min_count_)
        test = sample_scores(first_coordinates, x[200:], Gaussian(0.5), 96, phase="test", **options)
        assert isinstance(predicted, PredictionSets)
        np.testing.assert_array_equal(predicted.sets, rule.predict_set(np.ascontiguousarray(test)))
        np.testing.assert_array_equal(predicted.counts, (test >= np.float32(rule.tau_)).sum(2))
        np.testing.assert_array_equal(predicted.forward_passes, np.full(200, 96))
        covered = predicted.sets[np.arange(200), y[200:]].mean()
        assert covered >= 0.9
        assert predicted.sets.sum(axis=1).mean() < K

    def test_loader_and_arrays_agree(self, data):
        x, y = (torch.from_numpy(part) for part in data)
        dataset = torch.utils.data.TensorDataset(x[:150], y[:150])
        loader = torch.utils.data.DataLoader(dataset, batch_size=40)
        one = classifier().calibrate(x[:150], y[:150])
        two = classifier().calibrate(loader)
        assert one.rule.tau_ == two.rule.tau_
        assert one.rule.min_count_ == two.rule.min_count_

    def test_flips(self):
        x = (np.random.default_rng(0).random((300, D)) > 0.5).astype(np.float32)
        y = x[:, :K].argmax(axis=1)
        ours = classifier(smoothing=SparseFlip(0.3, 0.3), ball=Flips(1, 0), n_samples=1024, p=0.8)
        sets = ours.calibrate(x[:150], y[:150]).predict(x[150:]).sets
        assert sets[np.arange(150), y[150:]].mean() >= 0.9

    @pytest.mark.parametrize(
        ("sequential", "curtail"), [(False, True), (False, False), (True, True)]
    )
    def test_nested_joint_parts(self, sequential, curtail):
        """The last part has no noise: the model sees it as it is."""
        y = np.random.default_rng(0).integers(0, 2, 300)
        x = np.repeat(y[:, None], 12, axis=1).astype(np.float32)
        scheme = Joint(
            SparseFlip(0.3, 0.3), Joint(CategoricalFlip(2, 0.3, 0.3), SparseFlip(0, 0), 4), 4
        )
        ball = balls.Joint(Flips(1, 0), balls.Joint(CategoricalFlips(0, 0, 0), Flips(0, 0)))

        def model(x):
            votes = x[:, :8].mean(1)
            assert bool(((x[:, 8:] == 0).all(1) | (x[:, 8:] == 1).all(1)).all())
            return 4 * torch.stack([1 - votes, votes], 1)

        ours = classifier(model=model, smoothing=scheme, ball=ball, n_samples=400)
        sets = ours.calibrate(x[:150], y[:150]).predict(
            x[150:], sequential=sequential, curtail=curtail
        ).sets  # fmt: skip
        assert sets[np.arange(150), y[150:]].mean() >= 0.9
        assert sets.sum(axis=1).mean() < 1.9

    def test_order_of_calls(self, data):
        with pytest.raises(NotCalibratedError, match=r"call calibrate\(\) before predict\(\)"):
            classifier().predict(data[0])

    def test_another_dtype_at_prediction_is_refused(self, data):
        x, y = data
        ours = classifier().calibrate(x, y)
        with pytest.raises(ValueError, match="dtype float32 as in calibration, got float64"):
            ours.predict(x.astype(np.float64))

    def test_dimension_of_the_ball_is_that_of_the_inputs(self, data):
        x, y = data
        with pytest.raises(ValueError, match=r"must have 784 elements an input, .* \(400, 6\)"):
            classifier(ball=Linf(0.01, dim=784)).calibrate(x, y)

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda x, y: classifier(n_samples=0), ValueError, "`n_samples` must be in"),
            (lambda x, y: classifier(n_test_samples=-1), ValueError, "`n_test_samples` must be in"),
            (lambda x, y: classifier(score="ptt"), ValueError, "`score` must be one of"),
            (lambda x, y: classifier(alpha=1.5), ValueError, "`alpha` must be in"),
            (lambda x, y: classifier(seed=-1), ValueError, "`seed` must be in"),
            (lambda x, y: classifier().calibrate(x), TypeError, "`y` must be given"),
            (
                lambda x, y: classifier().calibrate(x, y[:-1]),
                ValueError,
                "`labels` must have shape",
            ),
            (lambda x, y: classifier().calibrate(x, y + 1), ValueError, r"in \[0, 3\], got 4"),
            (lambda x, y: classifier().calibrate([]), ValueError, "got an empty list"),
            (
                lambda x, y: classifier().calibrate([x, y]),
                TypeError,
                r"got list of ndarray; use np.st",
            ),
            (lambda x, y: classifier().calibrate(iter([x])), ValueError, "yield pairs of inputs"),
        ],
    )
    def test_bad_arguments(self, data, call, error, message):
        with pytest.raises(error, match=message):
            call(*data)


class FixedRule:
    """A calibrated rule with other boundaries: labels on both sides, and some close to them."""

    def __init__(self, rule, sequential_rule):
        self.rule, self.boundaries = rule, sequential_rule
        self.min_count_ = sequential_rule.min_count

    def __getattr__(self, name):
        return getattr(self.rule, name)

    def sequential_rule(self):
        return self.boundaries


class TestEarlyStopping:
    """`predict` stops drawing an input when its last label is decided."""

    @pytest.fixture(params=[False, True], ids=["curtailed", "sequential"])
    def calibrated(self, request, data):
        """Make classifiers of one rule; with its boundaries and all hits (n, K, m')."""
        x, y = data
        fitted = classifier(n_samples=128, n_test_samples=40, seed=3).calibrate(x[:200], y[:200])
        rule = FixedRule(
            fitted.rule,
            line_boundaries(20, 40, Fraction(5, 2) if request.param else Fraction(10**9)),
        )
        scores = sample_scores(first_coordinates, x[200:], Gaussian(0.5), 40, phase="test", seed=3)

        def make(model=first_coordinates, **options):
            return RobustClassifier(model, Gaussian(0.5), L2(0.1), rule=rule, seed=3, **options)

        return make, request.param, rule.boundaries, scores >= np.float32(rule.tau_)

    @staticmethod
    def one_at_a_time(rule, hits):
        counts = np.zeros(hits.shape[:2], int)
        exits, accepted = np.full(hits.shape[:2], -1), np.zeros(hits.shape[:2], bool)
        for draw in range(hits.shape[2] + 1):
            live = exits < 0
            if draw:
                counts += live & hits[:, :, draw - 1]
            decided, yes = rule.update(counts, draw)
            exits[live & decided] = draw
            accepted[live & decided] = yes[live & decided]
        return counts, exits, accepted

    def test_labels_are_frozen_at_their_own_exits(self, calibrated, data):
        make, sequential, rule, hits = calibrated
        counts, exits, accepted = self.one_at_a_time(rule, hits)
        got = make().predict(data[0][200:], sequential=sequential)
        np.testing.assert_array_equal(got.sets, accepted)
        np.testing.assert_array_equal(got.counts, counts)
        assert (got.counts.dtype, got.forward_passes.dtype) == (np.int32, np.int64)
        last = exits.max(axis=1)
        assert (got.forward_passes >= last).all()
        assert (got.forward_passes <= np.minimum(last + last // 8, 40)).all()
        assert got.forward_passes.mean() < (30 if sequential else 40)

    def test_curtailed_sets_are_those_of_all_draws(self, data):
        x, y = data
        for p in (0.3, 0.6, 0.9):
            ours = classifier(n_samples=64, p=p, correction="none").calibrate(x[:200], y[:200])
            early = ours.predict(x[200:], indices=range(200))
            full = ours.predict(x[200:], indices=range(200), curtail=False)
            np.testing.assert_array_equal(early.sets, full.sets)
            assert (early.counts <= full.counts).all()
            assert (early.forward_passes <= 64).all()
            assert (early.forward_passes < 64).any()
            assert (full.forward_passes == 64).all()

    @pytest.mark.parametrize("batch_size", [1, 7, 1000])
    def test_batch_size_and_company_change_nothing(self, calibrated, data, batch_size):
        make, sequential, _, _ = calibrated
        x = data[0][200:]
        expected = make().predict(x, sequential=sequential)
        n = 200 if batch_size == 1000 else 20
        got = make(batch_size=batch_size).predict(x[:n], sequential=sequential)
        for name in ("sets", "counts", "forward_passes"):
            np.testing.assert_array_equal(getattr(got, name), getattr(expected, name)[:n])

    @pytest.mark.parametrize("share", [1, 3, 10**9])
    def test_rounds_change_no_set(self, calibrated, data, share, monkeypatch):
        make, sequential, _, hits = calibrated
        expected = make().predict(data[0][200:], sequential=sequential)
        monkeypatch.setattr("bincp.calibration._sequential._SHARE_OF_A_ROUND", share)
        got = make().predict(data[0][200:], sequential=sequential)
        np.testing.assert_array_equal(got.sets, expected.sets)
        np.testing.assert_array_equal(got.counts, expected.counts)
        if share == 10**9:  # no draw more than what is needed for certain
            last = self.one_at_a_time(calibrated[2], hits)[1].max(axis=1)
            np.testing.assert_array_equal(got.forward_passes, last)

    def test_forward_passes_are_the_rows_that_the_model_saw(self, calibrated, data):
        make, sequential, _, _ = calibrated
        rows = []

        def counting(x):
            rows.append(len(x))
            return first_coordinates(x)

        got = make(model=counting).predict(data[0][200:], sequential=sequential)
        assert sum(rows) == got.forward_passes.sum()
        # Rounds are few, and all batches but the last one of each are full.
        assert sum(n < 256 for n in rows) <= 30

    def test_what_accepts_everything_takes_one_pass(self, data):
        x, y = data
        with pytest.warns(match="every label"):
            ours = classifier(n_samples=16, correction="clopper-pearson").calibrate(x[:8], y[:8])
        got = ours.predict(x[:5])
        assert got.sets.all()
        assert (got.forward_passes == 1).all()

    def test_progress(self, data, capsys):
        pytest.importorskip("tqdm")
        x, y = data
        ours = classifier(progress=True).calibrate(x[:200], y[:200])
        capsys.readouterr()
        ours.predict(x[:10])
        assert "10/10" in capsys.readouterr().err

    def test_errors(self, data):
        x, y = data
        ours = classifier().calibrate(x[:200], y[:200])
        with pytest.raises(ValueError, match="`curtail` must be True for sequential prediction"):
            ours.predict(x, sequential=True, curtail=False)
        with pytest.raises(TypeError, match="`sequential` must be a bool, got 1"):
            ours.predict(x, sequential=1)
        with pytest.raises(ValueError, match="dtype float32 as in calibration, got float64"):
            ours.predict(x[:3].astype(np.float64), curtail=False)
        ours.model = lambda x: first_coordinates(x)[:, :-1]
        with pytest.raises(ValueError, match="`model` must return 4 logits as before, got 3"):
            ours.predict(x[:3])
        calls = []

        def late_nan(x):
            logits = first_coordinates(x).clone()
            if calls:
                logits[0, 2] = math.nan
            calls.append(len(x))
            return logits

        ours.model = late_double = DoubleAfterTheFirstBatch()
        for batch in (
            lambda: ours.predict(x),
            lambda: ours.predict(x, curtail=False),
            lambda: ours.calibrate(x, y),
            lambda: ours.calibrate([(x[:2], y[:2]), (x[2:4], y[2:4])]),
        ):
            late_double.batches = 0
            with pytest.raises(ValueError, match="scores of dtype float32 as before, got float64"):
                batch()
        ours.model = late_nan
        message = r"NaN scores, got one for input \d+ \(id \d+\), draw \d+, label"
        with pytest.raises(ValueError, match=message):
            ours.predict(x)


class DoubleAfterTheFirstBatch:
    """A model that changes the dtype of its scores."""

    batches = 0

    def __call__(self, x):
        self.batches += 1
        logits = first_coordinates(x)
        return logits if self.batches == 1 else logits.double()


class TestMixture:
    """The mixture correction from end to end."""

    @pytest.mark.parametrize(
        "options",
        [
            {"n_samples": 32},
            {"n_samples": 32, "n_test_samples": 48, "p": 0.6},
            {"n_samples": 32, "tau": 0.5},
            {"n_samples": 128, "n_test_samples": 32},
        ],
    )
    def test_it_is_the_steps_taken_by_hand(self, data, options):
        x, y = data
        ours = classifier(correction="mixture", seed=5, **options).calibrate(x[:200], y[:200])
        m, m_test = ours.n_samples, ours.n_test_samples
        true = sample_scores(
            first_coordinates, x[:200], Gaussian(0.5), m, phase="calibration", labels=y[:200],
            seed=5,
        )  # fmt: skip
        fixed = {name: value for name, value in options.items() if name in ("p", "tau")}
        rule = BinCP(certify(Gaussian(0.5), L2(0.1)), alpha=0.1, correction="mixture", **fixed)
        rule.calibrate(true, n_test_samples=m_test)
        assert (ours.rule.tau_, ours.rule.min_count_) == (rule.tau_, rule.min_count_)
        scores = sample_scores(
            first_coordinates, x[200:], Gaussian(0.5), m_test, phase="test", seed=5
        )
        full = ours.predict(x[200:], curtail=False)
        np.testing.assert_array_equal(full.sets, rule.predict_set(np.ascontiguousarray(scores)))
        ids = range(200)
        np.testing.assert_array_equal(ours.predict(x[200:], indices=ids).sets, full.sets)
        assert 0.9 <= full.sets.sum(axis=1).mean() < K

        sequential = rule.sequential_rule()
        labels = sequential.start((200, K))
        labels.update(scores >= np.float32(rule.tau_))
        early = ours.predict(x[200:], indices=ids, sequential=True)
        np.testing.assert_array_equal(early.sets, labels.accepted)
        np.testing.assert_array_equal(early.counts, labels.counts)
        assert early.forward_passes.mean() < 0.8 * m_test
        # Exchangeable scores cover 181 of 201 or more, given those of the calibration set.
        assert early.sets[np.arange(200), y[200:]].sum() >= stats.betabinom.ppf(1e-6, 200, 181, 20)

    @pytest.mark.parametrize("options", [{}, {"n_test_samples": 16}, {"passes": 3}, {"p": 0.6}])
    def test_early_stopping_is_the_boundaries_replayed_by_hand(self, data, options):
        x, y = data
        early = {"passes": "auto", **options}
        ours = classifier(seed=5, **early).calibrate(x[:200], y[:200])
        m, m_test = ours.n_samples, ours.n_test_samples
        where = {"phase": "calibration", "seed": 5}
        true = sample_scores(first_coordinates, x[:200], Gaussian(0.5), m, labels=y[:200], **where)
        early.pop("n_test_samples", None)
        rule = BinCP(certify(Gaussian(0.5), L2(0.1)), alpha=0.1, **early)
        rule.calibrate(true, n_classes=K, n_test_samples=m_test)
        assert ours.rule._rule == rule._rule
        scores = sample_scores(
            first_coordinates, x[200:], Gaussian(0.5), m_test, phase="test", seed=5
        )
        labels = rule.boundaries_.start((200, K))
        labels.update(scores >= np.float32(rule.tau_))
        passes = []
        for looks in (None, "doubling", [3, 10]):
            got = ours.predict(x[200:], indices=range(200), looks=looks)
            np.testing.assert_array_equal(got.sets, labels.accepted)
            np.testing.assert_array_equal(got.counts, labels.counts)
            passes.append(got.forward_passes)
        last = labels.exits.max(axis=1)
        assert (passes[0] >= last).all()
        doubled = np.minimum(2 ** np.ceil(np.log2(last)), m_test)
        np.testing.assert_array_equal(passes[1], doubled)
        np.testing.assert_array_equal(
            passes[2], np.select([last <= 3, last <= 10], [3, min(10, m_test)], m_test)
        )
        np.testing.assert_array_equal(rule.predict_set(scores), labels.accepted)
        full = ours.predict(x[200:], indices=range(200), curtail=False)
        np.testing.assert_array_equal(full.sets, labels.accepted)
        assert (full.forward_passes == m_test).all()
        with pytest.raises(ValueError, match=r"`sequential` must not be False.*passes=None"):
            ours.predict(x[200:], sequential=False)

    @pytest.mark.parametrize(
        ("looks", "message"),
        [
            ("halving", '`looks` must be "doubling"'),
            ([2, 2], "in increasing order"),
            ([[1, 2]], "in increasing order"),
            ([0, 3], "`looks` must be in"),
        ],
    )
    def test_bad_looks(self, data, looks, message):
        x, y = data
        ours = classifier(n_samples=8).calibrate(x[:50], y[:50])
        with pytest.raises(ValueError, match=message):
            ours.predict(x, looks=looks)

    def test_it_stops_early_unless_told_otherwise(self, data):
        x, y = data
        ours = RobustClassifier(
            first_coordinates, Gaussian(0.5), L2(0.1), alpha=0.1, n_samples=64, seed=0
        ).calibrate(x[:200], y[:200])
        assert ours.rule.boundaries_ is not None
        assert ours.predict(x[200:]).forward_passes.mean() < 10
        for options in ({"correction": "clopper-pearson"}, {"tau": 0.5}, {"passes": None}):
            other = RobustClassifier(
                first_coordinates, Gaussian(0.5), L2(0.1), alpha=0.1, n_samples=64, **options
            ).calibrate(x[:200], y[:200])
            assert other.rule.boundaries_ is None

    @pytest.mark.parametrize("correction", ["clopper-pearson", "none"])
    def test_other_corrections_have_no_sequential_rule(self, data, correction):
        x, y = data
        ours = classifier(correction=correction, n_samples=256).calibrate(x[:200], y[:200])
        with pytest.raises(ValueError, match='`correction` must be "mixture"'):
            ours.predict(x[200:], sequential=True)

    def test_prediction_has_a_phase_of_its_own(self, data):
        """No argument of `predict` reaches the calibration noise, nor does the same input."""
        x, y = data
        rows = []

        def keeping(x):
            rows.append(x.clone().numpy())
            return first_coordinates(x)

        ours = classifier(correction="mixture", n_samples=8, model=keeping)
        ours.calibrate(x[:50], y[:50])
        calibration = np.concatenate(rows)
        rows.clear()
        ours.predict(x[:50], curtail=False)
        test = np.concatenate(rows)
        assert calibration.shape == test.shape == (400, D)
        assert not np.isin(calibration, test).any()
        with pytest.raises(TypeError, match="phase"):
            ours.predict(x[:50], phase="calibration")


class TestNoiseMustBeIndependent:
    """All inputs are 0 and the score is the noise, so every score is a standard normal number.

    Each trial is a calibration with 19 inputs, one draw of each, and a test input moved by -shift;
    its set covers it with a probability that is known. Seeds are fixed; the counts of covered
    trials have to lie where binomial ones do but for a chance of 1e-6.
    """

    N, TRIALS = 19, 400

    def covered(self, radius, alpha, n=N):
        x, y = np.zeros((n, 1), np.float32), np.zeros(n, np.int64)
        attacked = np.full((1, 1), -radius, np.float32)
        count = 0
        for seed in range(self.TRIALS):
            ours = RobustClassifier(
                torch.nn.Identity(), Gaussian(1.0), L2(radius), alpha=alpha, n_samples=1,
                score="logit", correction="mixture", seed=seed,
            )  # fmt: skip
            count += int(ours.calibrate(x, y).predict(attacked).sets[0, 0])
        assert (ours.rule.rank_, ours.rule.min_count_) == (1, 1)
        return count

    def region(self, probability):
        """Counts of covered trials outside of which there is a chance of 1e-6."""
        return stats.binom.interval(1 - 1e-6, self.TRIALS, probability)

    @staticmethod
    def share(monkeypatch, phases, points):
        """Draw one noise for both phases, for all points of a phase, or for everything."""

        def sharing(job, sources, draws):
            ids = np.zeros_like(draws) if points else job.ids[sources]
            return Keys(job.seed, "calibration" if phases else job.phase, ids, draws)

        monkeypatch.setattr(Job, "keys", sharing)

    def test_ours_covers(self):
        low, high = self.region(0.95)
        assert low <= self.covered(0.0, "0.05") <= high

    def test_ours_covers_under_attack(self):
        """The chance of being above the least of 19, from where the attack leaves it."""
        density = stats.norm.pdf
        least, _ = integrate.quad(
            lambda s: stats.norm.sf(s + 0.25) * 19 * density(s) * stats.norm.sf(s) ** 18, -9, 9
        )
        assert 0.9 < least < 0.93
        low, high = self.region(least)
        assert low <= self.covered(0.25, "0.1") <= high

    def test_one_noise_for_all_calibration_points_covers_half(self, monkeypatch):
        self.share(monkeypatch, phases=False, points=True)
        covered = self.covered(0.0, "0.05")
        low, high = self.region(0.5)
        assert low <= covered <= high
        assert covered < self.region(0.95)[0]

    def test_one_noise_for_all_points_of_both_phases_covers_nothing(self, monkeypatch):
        self.share(monkeypatch, phases=True, points=True)
        assert self.covered(0.25, "0.1") == 0

    def test_one_noise_for_both_phases_covers_nothing(self, monkeypatch):
        """One calibration point at alpha = 0.6: a test input at its place is always refused."""
        probability = stats.norm.cdf(-0.25 / math.sqrt(2))
        assert probability > 1 - 0.6
        low, high = self.region(probability)
        assert low <= self.covered(0.25, "0.6", n=1) <= high
        self.share(monkeypatch, phases=True, points=False)
        assert self.covered(0.25, "0.6", n=1) == 0


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, torch.tensor])
def test_integers_of_any_kind(kind):
    """200 draws of 3 inputs are more rows than 8 bits can count."""
    x = inputs(3)
    expected = sample_scores(first_coordinates, x, Gaussian(1.0), 200, phase="tuning", seed=7)
    found = sample_scores(
        first_coordinates, x, Gaussian(1.0), kind(200), phase="tuning", seed=kind(7),
        batch_size=kind(255),
    )  # fmt: skip
    np.testing.assert_array_equal(found, expected)
    for phase in ("calibration", "test"):
        other = sample_scores(first_coordinates, x, Gaussian(1.0), 200, phase=phase, seed=7)
        assert (other != expected).any(axis=(1, 2)).all()
