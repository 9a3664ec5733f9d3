"""Inputs and outputs of models as people have them: the same scores, or an error with the cure."""

import types
import warnings
from typing import NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

from bincp.adapters import as_model  # noqa: E402
from bincp.balls import L2  # noqa: E402
from bincp.sampling import (  # noqa: E402
    RobustClassifier,
    count_scores,
    exact_probabilities,
    run,
    sample_scores,
    vote_counts,
)
from bincp.smoothing import Gaussian, SplittingNoise  # noqa: E402

N, D, K, M = 11, 6, 3, 4
SCHEME = Gaussian(0.5)


def logits(x):
    """Every number is one of its input: equal to the bit at any batch size."""
    return 2 * x.reshape(len(x), -1)[:, :K]


X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
Y = np.arange(N) % K


class Items:
    """A dataset with a length, which yields what a function makes of a position."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return N

    def __getitem__(self, i):
        if i >= N:
            raise IndexError
        return self.item(i)


class Streamed(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(zip(torch.from_numpy(X), torch.from_numpy(Y), strict=True))


def tensors():
    return TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))


def dicts(i):
    return {"pixel_values": X[i : i + 4], "labels": Y[i : i + 4], "path": "a"}


def memory_map(tmp_path, mode):
    np.save(tmp_path / "x.npy", X)
    return np.load(tmp_path / "x.npy", mmap_mode=mode)


SOURCES = {
    "tensor": lambda: (torch.from_numpy(X), {}),
    "dataset of pairs": lambda: (tensors(), {}),
    "dataset of inputs": lambda: (Items(lambda i: X[i]), {}),
    "dataset of dicts": lambda: (Items(lambda i: {"x": X[i], "y": int(Y[i])}), {"key": "x"}),
    "loader": lambda: (DataLoader(tensors(), batch_size=4), {}),
    "loader with workers": lambda: (DataLoader(tensors(), batch_size=4, num_workers=2), {}),
    "loader of one tensor": lambda: (DataLoader(TensorDataset(torch.from_numpy(X)), 4), {}),
    "loader of an iterable dataset": lambda: (DataLoader(Streamed(), batch_size=4), {}),
    "loader with its own batches": lambda: (
        DataLoader(tensors(), 4, collate_fn=lambda items: torch.stack([x for x, _ in items])),
        {},
    ),
    "padded loader of a rank": lambda: (
        DataLoader(tensors(), 4, sampler=DistributedSampler(tensors(), 4, 1, shuffle=False)),
        {},
    ),
    "generator": lambda: ((X[i : i + 4] for i in range(0, N, 4)), {}),
    "list of pairs": lambda: ([(X[:3], Y[:3]), (X[3:], Y[3:])], {}),
    "dicts": lambda: ((dicts(i) for i in range(0, N, 4)), {"key": "pixel_values"}),
    "one batch of a processor": lambda: ({"pixel_values": X}, {"key": "pixel_values"}),
}


class TestSources:
    @pytest.mark.parametrize("name", SOURCES)
    def test_scores_counts_and_votes_are_those_of_the_array(self, name):
        options = {"phase": "test", "seed": 5, "batch_size": 7}
        for function, more in (
            (sample_scores, {}),
            (count_scores, {"tau": 0.4}),
            (vote_counts, {}),
        ):
            x, key = SOURCES[name]()
            found = function(logits, x, SCHEME, M, **more, **key, **options)
            expected = function(logits, X, SCHEME, M, **more, **options)
            np.testing.assert_array_equal(found, expected)
            x, key = SOURCES[name]()
            ids = 3 * np.arange(N)
            found = function(logits, x, SCHEME, M, indices=ids, **more, **key, **options)
            expected = function(logits, X, SCHEME, M, indices=ids, **more, **options)
            np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize(
        "source",
        [
            tensors,
            lambda: DataLoader(tensors(), batch_size=4),
            lambda: [(X[:3], Y[:3]), (X[3:], Y[3:])],
            lambda: Items(lambda i: (X[i], Y[i])),
        ],
    )
    def test_the_labels_of_a_source_pick_their_scores(self, source):
        options = {"phase": "calibration", "seed": 5}
        expected = sample_scores(logits, X, SCHEME, M, labels=Y, **options)
        found = sample_scores(logits, source(), SCHEME, M, labels=True, **options)
        np.testing.assert_array_equal(found, expected)
        whole = sample_scores(logits, source(), SCHEME, M, **options)
        assert whole.shape == (N, K, M)

    def test_pairs_of_keys_name_inputs_and_labels(self):
        source = [dicts(0), dicts(4), dicts(8)]
        found = sample_scores(
            logits, source, SCHEME, M, phase="test", labels=True, key=("pixel_values", "labels")
        )
        expected = sample_scores(logits, X, SCHEME, M, phase="test", labels=Y)
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_rule_does_not_depend_on_workers_of_a_loader(self, workers):
        rng = np.random.default_rng(1)
        x = torch.from_numpy(rng.normal(size=(40, D)).astype(np.float32))
        y = torch.from_numpy(rng.integers(0, K, 40))
        options = {"alpha": 0.2, "n_samples": 8, "seed": 5}
        expected = RobustClassifier(logits, SCHEME, L2(0.1), **options).calibrate(x, y)
        loader = DataLoader(TensorDataset(x, y), batch_size=7, num_workers=workers)
        found = RobustClassifier(logits, SCHEME, L2(0.1), **options).calibrate(loader)
        assert found.rule._rule == expected.rule._rule

    def test_a_padded_rank_counts_no_input_twice(self):
        """11 inputs over 4 ranks: each rank has 3, and the last one begins again."""
        sampler = DistributedSampler(tensors(), num_replicas=4, rank=3, shuffle=False)
        assert list(sampler) == [3, 7, 0]
        loader = DataLoader(tensors(), batch_size=3, sampler=sampler)
        ours = RobustClassifier(logits, SCHEME, L2(0.1), alpha=0.2, n_samples=8, seed=5)
        assert ours.calibrate(loader).rule.n_calibration_ == N

    @pytest.mark.parametrize("mode", ["r", "r+", "c"])
    def test_memory_maps_stay_as_they_are(self, tmp_path, mode):
        class InPlace(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.last = torch.nn.Linear(D, K)

            def forward(self, x):
                return self.last(x.add_(1).relu_())

        net = InPlace()
        expected = sample_scores(
            lambda x: net.last((x + 1).relu()), X, SCHEME, M, phase="test", seed=5
        )
        before = memory_map(tmp_path, "r").tobytes()
        x = memory_map(tmp_path, mode)
        sources = [x] if mode == "r" else [x, torch.from_numpy(x)]
        for source in sources:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = sample_scores(net, source, SCHEME, M, phase="test", seed=5)
            np.testing.assert_array_equal(found, expected)
        assert np.load(tmp_path / "x.npy").tobytes() == before

    def test_grey_levels_stay_grey_levels_until_the_noise(self):
        levels = np.random.default_rng(0).integers(0, 256, (N, D)).astype(np.uint8)
        scheme = Gaussian(0.5, grid=255)
        loader = DataLoader(TensorDataset(torch.from_numpy(levels)), batch_size=4)
        expected = sample_scores(logits, levels, scheme, M, phase="test", seed=5)
        found = sample_scores(logits, loader, scheme, M, phase="test", seed=5)
        np.testing.assert_array_equal(found, expected)
        same = sample_scores(
            logits, (levels / 255).astype(np.float32), scheme, M, phase="test", seed=5
        )
        np.testing.assert_array_equal(same, expected)


def shuffled():
    return DataLoader(tensors(), batch_size=4, shuffle=True)


def batched(sampler, *, drop_last=False):
    """Return a loader whose batches are made outside of it."""
    return DataLoader(tensors(), batch_sampler=BatchSampler(sampler, 4, drop_last))


class Reversed(SequentialSampler):
    def __iter__(self):
        return iter(range(N)[::-1])


class TestRefusals:
    @pytest.mark.parametrize(
        ("source", "error", "message"),
        [
            (lambda: list(X), TypeError, r"got list of ndarray; use np.stack\(x\)"),
            (lambda: tuple(torch.from_numpy(X)), TypeError, r"got tuple of .*torch.stack\(x\)"),
            (lambda: [object()], TypeError, r"got list of object; use np.stack\(\[np.asarray"),
            (lambda: [[[0.0]]], TypeError, r"got list of list; use np.array\(x\)"),
            (list, ValueError, "must hold at least one input, got an empty list"),
            (lambda: iter([]), ValueError, "must hold at least one input"),
            (shuffled, ValueError, r"dataset in its order \(shuffle=False\).*RandomSampler"),
            (lambda: batched(RandomSampler(range(N))), ValueError, "in its order.*RandomSampler"),
            (lambda: batched(Reversed(range(N))), ValueError, "in its order.*Reversed"),
            (lambda: batched(SequentialSampler(range(5))), ValueError, "its whole dataset"),
            (
                lambda: batched(SequentialSampler(range(N)), drop_last=True),
                ValueError,
                "which loses inputs",
            ),
            (
                lambda: DataLoader(Streamed(), batch_size=4, drop_last=True),
                ValueError,
                "which loses inputs",
            ),
            (
                lambda: torch.from_numpy(X).to_sparse(),
                TypeError,
                r"dense tensor, got torch.sparse_coo; use x.to_dense\(\)",
            ),
            (
                lambda: torch.nested.nested_tensor(list(torch.from_numpy(X)), layout=torch.jagged),
                TypeError,
                "dense tensor, got a nested one",
            ),
            (lambda: np.float32(1) * np.ones(()), TypeError, "must be a tensor or an array"),
            (lambda: np.array(1, np.float32), ValueError, r"must have shape \(n, ...\)"),
            (
                lambda: DataLoader(tensors(), batch_size=4, drop_last=True),
                ValueError,
                "drop_last=False, got drop_last=True, which loses inputs",
            ),
            (
                lambda: DataLoader(Streamed(), batch_size=4, num_workers=2),
                ValueError,
                "at most one worker where its dataset is iterable.*num_workers=2",
            ),
            (lambda: "abc", TypeError, "a dataset, a loader or an iterable of batches, got str"),
            (lambda: 3, TypeError, "an iterable of batches, got int"),
            (lambda: {"x": X}, TypeError, "`key` must name the inputs.* for the keys 'x'"),
            (lambda: iter([dicts(0)]), TypeError, "keys 'pixel_values', 'labels', 'path'"),
            (lambda: [(X, Y, Y)], ValueError, "pairs of an input and its label.*got tuple of 3"),
            (
                lambda: iter(["x"]),
                TypeError,
                "batches that are tensors or arrays, got str in batch",
            ),
            (lambda: [(X[:3], Y)], ValueError, r"one label for each input.*\(11,\).*in batch 0"),
            (lambda: [(X, X)], TypeError, "`labels` must be integers"),
            (
                lambda: iter([X[:4], X[4:6, :2]]),
                ValueError,
                r"inputs of one shape and dtype, got \(2,\), float32 at position 4 after \(6,\)",
            ),
            (lambda: iter([X[:4], X[4:].astype(np.float64)]), ValueError, "float64 at position 4"),
            (lambda: iter([X[:4], (X, Y)]), ValueError, "labels for all inputs or none"),
            (
                lambda: Items(lambda i: X[i] if i < 5 else X[i, :2]),
                ValueError,
                r"one shape and dtype, got \(2,\), float32 at position 5",
            ),
            (lambda: Items(str), TypeError, "must yield tensors or arrays, got str at position 0"),
        ],
    )
    def test_sources_that_are_none(self, source, error, message):
        for function, more in (
            (sample_scores, {}),
            (count_scores, {"tau": 0.4}),
            (vote_counts, {}),
        ):
            with pytest.raises(error, match=message):
                function(logits, source(), SCHEME, M, phase="test", **more)

    def test_tables_and_arrays_of_other_libraries_have_a_cure(self):
        table = types.SimpleNamespace(to_numpy=lambda: X, __len__=lambda: N)
        with pytest.raises(TypeError, match=r"got SimpleNamespace; use x.to_numpy\(\)"):
            sample_scores(logits, table, SCHEME, M, phase="test")
        with pytest.raises(TypeError, match=r"got SimpleNamespace; use x.to_numpy\(\)"):
            sample_scores(logits, table, SCHEME, M, phase="test", labels=np.zeros(N, int))

        class Other:
            def __array__(self):
                return X

        with pytest.raises(TypeError, match=r"got Other; use np.asarray\(x\)"):
            sample_scores(logits, Other(), SCHEME, M, phase="test")

    @pytest.mark.parametrize(
        ("x", "options", "error", "message"),
        [
            (X, {"key": "x"}, TypeError, "`key` must be None with an array of inputs, got 'x'"),
            (X, {"key": 1}, TypeError, "`key` must be a str or a pair of them, got 1"),
            ([(X, Y)], {"key": "x"}, TypeError, "`key` must be None where `x` yields no dicts"),
            ([{"a": X}], {"key": "x"}, ValueError, "`key` must be among the keys 'a', got 'x'"),
            (iter([X]), {"labels": Y}, TypeError, "labels must be given with an array"),
            (iter([X]), {"labels": True}, ValueError, "pairs of inputs and labels, got inputs"),
            (iter([X]), {"indices": range(N - 1)}, ValueError, r"shape \(11,\), got \(10,\)"),
            (iter([X]), {"indices": range(N + 1)}, ValueError, r"shape \(11,\), got \(12,\)"),
            (Items(lambda i: X[i]), {"indices": range(3)}, ValueError, r"\(11,\), got \(3,\)"),
        ],
    )
    def test_options_that_do_not_fit(self, x, options, error, message):
        with pytest.raises(error, match=message):
            sample_scores(logits, x, SCHEME, M, phase="test", **options)

    def test_ids_of_a_stream_must_differ_in_calibration(self):
        stream = iter([X[:4], X[4:]])
        with pytest.raises(ValueError, match="got 0 more than once"):
            sample_scores(
                logits, stream, SCHEME, M, phase="calibration", indices=[*range(N - 1), 0]
            )

    def test_a_model_that_changes_its_mind_between_batches(self):
        def model(x):
            return logits(x)[:, : 3 if len(x) == 4 * M else 2]

        with pytest.raises(ValueError, match=r"one dtype and number of labels.*\(4, 3"):
            sample_scores(model, iter([X[:4], X[4:]]), SCHEME, M, phase="test")


def convolution():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(4, K),
    )  # fmt: skip


class TestLayouts:
    @pytest.mark.parametrize(
        ("shape", "message"),
        [
            ((3, 8, 8), r"got \(3, 8, 8\); one image needs a batch axis: x\[None\]"),
            ((8, 8, 3), r"got \(8, 8, 3\); one image needs a batch axis: x\[None\]"),
            ((5, 8, 8, 3), r"channels last need them first: np.moveaxis\(x, -1, 1\)"),
        ],
    )
    @pytest.mark.parametrize("batch_size", [3, 256])
    def test_a_network_of_images_says_what_it_was_given(self, shape, message, batch_size):
        """Three draws of an image without a batch axis are one image to a convolution."""
        x = np.zeros(shape, np.float32)
        with pytest.raises(ValueError, match=message):
            sample_scores(convolution(), x, SCHEME, M, phase="test", batch_size=batch_size)

    def test_other_errors_of_a_model_stay_its_own(self):
        def broken(x):
            raise RuntimeError("no weights")

        with pytest.raises(RuntimeError, match="no weights"):
            sample_scores(broken, X, SCHEME, M, phase="test")

        def full(x):
            raise torch.cuda.OutOfMemoryError("full")

        with pytest.raises(torch.cuda.OutOfMemoryError):
            sample_scores(full, np.zeros((3, 8, 8), np.float32), SCHEME, M, phase="test")

    @pytest.mark.parametrize(
        ("x", "message"),
        [
            (np.zeros((3, 8, 8), np.float32), r"\(3, 8, 8\); one input needs a batch axis: x\[No"),
            (np.zeros((2, 8, 8, 3), np.float32), r"last and must be first: np.moveaxis\(x, -1, 1"),
            (np.zeros((2, 3, 8, 9), np.float32), r"shape \(3, 8, 8\) as in calibration, got shape"),
        ],
    )
    def test_a_classifier_knows_the_shape_of_its_inputs(self, x, message):
        """A model that takes any shape would answer without a word."""

        def model(x):
            return x.flatten(1)[:, :K]

        images = np.random.default_rng(0).normal(size=(20, 3, 8, 8)).astype(np.float32)
        ours = RobustClassifier(model, SCHEME, L2(0.1), alpha=0.2, n_samples=8, seed=5)
        ours.calibrate(images, np.arange(20) % K)
        first = ours._seeds.next_id("test")
        with pytest.raises(ValueError, match=message):
            ours.predict(x)
        assert ours._seeds.next_id("test") == first

    def test_channels_first_where_they_were_last(self):
        ours = RobustClassifier(
            lambda x: x.flatten(1)[:, :K], SCHEME, L2(0.1), alpha=0.2, n_samples=8
        )
        ours.calibrate(np.zeros((20, 8, 9, 3), np.float32), np.arange(20) % K)
        with pytest.raises(ValueError, match=r"first and must be last: np.moveaxis\(x, 1, -1\)"):
            ours.predict(np.zeros((2, 3, 8, 9), np.float32))


class Pair(NamedTuple):
    loss: torch.Tensor
    logits: torch.Tensor


LOG_P = torch.tensor([0.7, 0.2, 0.1]).log()


class TestOutputs:
    """The softmax of log(p) is p; the softmax of p is (0.46, 0.28, 0.25)."""

    P = np.float32([0.7, 0.2, 0.1])

    def scores(self, model):
        return sample_scores(model, X[:2], SCHEME, 2, phase="test")[0, :, 0]

    @pytest.mark.parametrize(
        "wrapped",
        [
            lambda z: z,
            lambda z: Pair(torch.tensor(3.5), z),
            lambda z: types.SimpleNamespace(loss=torch.tensor(3.5), logits=z),
            lambda z: {"loss": torch.tensor(3.5), "logits": z},
            lambda z: (z,),
            lambda z: [z],
        ],
    )
    def test_logits_are_found_by_their_name(self, wrapped):
        found = self.scores(lambda x: wrapped(LOG_P.expand(len(x), K)))
        np.testing.assert_allclose(found, self.P, atol=1e-7)

    def test_declared_probabilities_get_no_second_softmax(self):
        def model(x):
            return LOG_P.exp().expand(len(x), K)

        for output in (model, lambda x: (model(x),)):
            found = self.scores(as_model(output, outputs="probabilities"))
            np.testing.assert_allclose(found, self.P, atol=1e-7)

    @pytest.mark.parametrize(
        ("wrapped", "message"),
        [
            (lambda z: (torch.tensor(3.5), z), r"got tuple of 2; .*lambda x: model\(x\)\[0\]"),
            (lambda z: [z, z], "got list of 2; pass a function that picks the logits"),
            (lambda z: {"loss": z, "out": z}, "got dict with the keys 'loss', 'out'; pass a func"),
            (lambda z: types.SimpleNamespace(scores=z), "got SimpleNamespace"),
            (lambda z: types.SimpleNamespace(logits=3), "got SimpleNamespace"),
            (lambda z: None, "got NoneType"),
        ],
    )
    def test_other_outputs_are_refused(self, wrapped, message):
        with pytest.raises(TypeError, match=f"`model` must return a tensor of logits, {message}"):
            self.scores(lambda x: wrapped(LOG_P.expand(len(x), K)))

    def test_logits_that_are_declared_probabilities_are_refused(self):
        model = as_model(
            lambda x: Pair(torch.tensor(0.0), LOG_P.expand(len(x), K)), outputs="probabilities"
        )
        with pytest.raises(ValueError, match="`outputs` must be 'logits' for a model that returns"):
            self.scores(model)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))


class Keeping(torch.nn.Module):
    """A network that keeps the inputs that it sees."""

    def __init__(self, net):
        super().__init__()
        self.net, self.seen = net, []

    def forward(self, x):
        self.seen.append(x.clone())
        return self.net(x)


class TestPrecision:
    INPUTS = np.random.default_rng(0).normal(size=(30, 20)).astype(np.float32)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_a_module_of_16_bits_sees_the_noise_of_32_rounded(self, dtype):
        wide, narrow = Keeping(network()), Keeping(network().to(dtype))
        sample_scores(wide, self.INPUTS, SCHEME, M, phase="test", seed=5)
        scores = sample_scores(narrow, self.INPUTS, SCHEME, M, phase="test", seed=5)
        assert scores.dtype == np.float32
        for ours, theirs in zip(narrow.seen, wide.seen, strict=True):
            assert ours.dtype == dtype
            assert torch.equal(ours, theirs.to(dtype))

    @pytest.mark.parametrize("scheme", [SCHEME, Gaussian(0.5, grid=255)])
    def test_autocast_changes_the_model_and_not_the_noise(self, scheme):
        x = np.round(self.INPUTS * 255) / np.float32(255)
        plain, cast = Keeping(network()), Keeping(network())
        outside = sample_scores(plain, x, scheme, M, phase="test", seed=5)
        with torch.autocast("cpu", torch.bfloat16):
            inside = sample_scores(cast, x, scheme, M, phase="test", seed=5)
        assert all(map(torch.equal, plain.seen, cast.seen))
        assert inside.dtype == np.float32
        assert not np.array_equal(inside, outside)

    def test_calibration_and_prediction_have_one_precision(self):
        y = np.arange(30) % 4
        ours = RobustClassifier(network(), SCHEME, L2(0.1), alpha=0.2, n_samples=8)
        with torch.autocast("cpu", torch.bfloat16):
            ours.calibrate(self.INPUTS, y)
            assert ours.predict(self.INPUTS).sets.shape == (30, 4)
        with pytest.raises(ValueError, match=r"`precision` was .*'bfloat16'.*, got .*None"):
            ours.predict(self.INPUTS)
        ours.calibrate(self.INPUTS, y)
        with (
            torch.autocast("cpu", torch.bfloat16),
            pytest.raises(ValueError, match=r"as in calibration: `precision` was .*None"),
        ):
            ours.predict(self.INPUTS)


def test_exact_probabilities_of_a_source():
    scheme = SplittingNoise(0.25)
    levels = (np.random.default_rng(0).integers(0, 256, (N, D)) / 255).astype(np.float32)
    options = {"tau": 0.4}
    expected = exact_probabilities(logits, levels, scheme, **options)
    own = exact_probabilities(logits, levels, scheme, labels=Y, **options)
    source = [(levels[:4], Y[:4]), (levels[4:], Y[4:])]
    found = exact_probabilities(logits, source, scheme, **options)
    np.testing.assert_array_equal(found, expected)
    found = exact_probabilities(logits, source, scheme, labels=True, **options)
    np.testing.assert_array_equal(found, own)
    np.testing.assert_array_equal(own, expected[np.arange(N), Y])
    with pytest.raises(ValueError, match="pairs of inputs and labels"):
        exact_probabilities(logits, iter([levels]), scheme, labels=True, **options)


def test_runs_read_dicts_by_their_keys(tmp_path):
    data = Items(lambda i: {"x": X[i], "y": int(Y[i])})
    options = {"phase": "calibration", "seed": 5, "model_id": "logits"}
    plain = run(tmp_path / "a", logits, X, SCHEME, M, labels=Y, **options)
    named = run(tmp_path / "b", logits, data, SCHEME, M, key=("x", "y"), **options)
    np.testing.assert_array_equal(named.values(), plain.values())
    np.testing.assert_array_equal(named.labels(), Y)
    plain.verify(data, key=("x", "y"))
    assert run(tmp_path / "c", logits, data, SCHEME, M, key="x", **options).labels() is None
    with pytest.raises(TypeError, match="`key` must name the inputs"):
        run(tmp_path / "d", logits, data, SCHEME, M, **options)
    with pytest.raises(TypeError, match="`key` must be None with an array"):
        run(tmp_path / "d", logits, X, SCHEME, M, key="x", **options)


def test_runs_and_calls_in_memory_read_alike(tmp_path):
    loader = DataLoader(tensors(), batch_size=4)
    stored = run(
        tmp_path / "run", logits, loader, SCHEME, M, phase="test", keep="scores",
        seed=5, model_id="logits",
    )  # fmt: skip
    found = sample_scores(logits, loader, SCHEME, M, phase="test", seed=5)
    np.testing.assert_array_equal(stored.values(), found)
