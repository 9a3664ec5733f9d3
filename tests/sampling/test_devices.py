"""Devices that hold no data, and default devices other than the CPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bincp import attacks, balls, sampling, scores  # noqa: E402
from bincp.adapters import as_model  # noqa: E402
from bincp.balls import L2  # noqa: E402
from bincp.sampling import NormalizedModel, RobustClassifier, sample_scores  # noqa: E402
from bincp.smoothing import Gaussian, SparseFlip, SplittingNoise  # noqa: E402

D, K = 6, 3
X = (np.random.default_rng(0).random((30, D)) > 0.5).astype(np.float32)
Y = np.arange(30) % K


def network(place="cpu"):
    torch.manual_seed(0)
    return torch.nn.Linear(D, K, device=place)


class TestDevicesWithoutData:
    @pytest.mark.parametrize("device", ["meta", torch.device("meta"), "cuda:99", "lazy", "hpu"])
    def test_refused_before_the_module_moves(self, device):
        net = network()
        weights = {name: value.clone() for name, value in net.state_dict().items()}
        with pytest.raises(ValueError, match="`device` must be a torch device that exists and hol"):
            sample_scores(net, X, Gaussian(1.0), 2, phase="test", device=device)
        with pytest.raises(ValueError, match="`device` must be"):
            RobustClassifier(net, Gaussian(1.0), L2(0.1), alpha=0.1, n_samples=2, device=device)
        with pytest.raises(ValueError, match="`device` must be"):
            attacks.pgd(net, X, Y, Gaussian(1.0), L2(0.1), seed=1, device=device)
        for name, value in net.state_dict().items():
            assert value.device.type == "cpu"
            assert torch.equal(value, weights[name])

    @pytest.mark.parametrize("device", [None, "cpu"])
    def test_modules_without_weights(self, device):
        partly = torch.nn.Sequential(network(), torch.nn.Linear(K, K, device="meta"))
        for net in (network("meta"), partly):
            with pytest.raises(ValueError, match="`model` must hold its weights, got some on the"):
                sample_scores(net, X, Gaussian(1.0), 2, phase="test", device=device)

    @pytest.mark.parametrize("name", ["x", "labels", "indices"])
    def test_arguments_without_data(self, name):
        given = {"x": torch.from_numpy(X), "labels": torch.from_numpy(Y), "indices": range(30)}
        given[name] = torch.as_tensor(given[name]).to("meta")
        with pytest.raises(ValueError, match=f"`{name}` must hold data, got a tensor on the devic"):
            sample_scores(network(), smoothing=Gaussian(1.0), n_samples=2, phase="test", **given)
        if name != "indices":
            with pytest.raises(ValueError, match=f"`{name}` must hold data"):
                attacks.pgd(network(), given["x"], given["labels"], Gaussian(1.0), L2(0.1), seed=1)


def everything(net):
    """Numbers of all of `bincp.sampling`, of scores and attacks."""
    given = {"phase": "test", "batch_size": 7}
    for name in scores.NAMED_SCORES:
        yield sample_scores(net, X, Gaussian(1.0), 3, score=name, device="cpu", **given)
    yield sample_scores(net, X, Gaussian(1.0), 3, labels=Y, **given)
    yield sampling.count_scores(net, X, Gaussian(1.0), 3, 0.3, **given)
    yield sampling.vote_counts(net, X, SparseFlip(0.1, 0.1), 3)
    yield sampling.exact_probabilities(net, X, SplittingNoise(0.25), tau=0.3)
    normalized = NormalizedModel(net, 0.5, 0.25)
    yield sample_scores(normalized, X, Gaussian(1.0), 3, **given)
    soft = as_model(torch.nn.Sequential(net, torch.nn.Softmax(1)), outputs="probabilities")
    yield sample_scores(soft, X, Gaussian(1.0), 3, **given)
    ours = RobustClassifier(
        net, Gaussian(0.5), L2(0.1), alpha=0.2, n_samples=8, passes=None, seed=0
    ).calibrate(X, Y)
    for options in ({}, {"curtail": False}, {"sequential": True}):
        yield ours.predict(X, **options).counts
    options = {"seed": 1, "n_samples": 3, "steps": 2}
    yield attacks.pgd(net, X, Y, Gaussian(0.5), L2(0.1), tau=0.3, **options)
    yield attacks.random_flips(net, X, Y, SparseFlip(0.1, 0.1), balls.Flips(1, 1), **options)
    yield scores.ptt(torch.ones(2, 3, device="cpu"), torch.ones(4, device="cpu"), 0.5).numpy()


@pytest.mark.parametrize("how", ["context", "default"])
def test_a_default_device_changes_nothing(how):
    net = network()
    expected = list(everything(net))
    try:
        if how == "default":
            torch.set_default_device("meta")
            found = list(everything(net))
        else:
            with torch.device("meta"):
                found = list(everything(net))
    finally:
        torch.set_default_device(None)
    for ours, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_the_numbers_of_a_normalized_model_are_where_its_network_is():
    for place in ("cpu", "meta"):
        model = NormalizedModel(network(place), [0.5], [0.5])
        assert model.mean.device.type == model.std.device.type == place
