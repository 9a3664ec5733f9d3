"""Evaluation mode with several users of one module, and modules whose mode cannot be set."""

import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bincp.attacks import pgd  # noqa: E402
from bincp.balls import L2  # noqa: E402
from bincp.sampling import (  # noqa: E402
    RobustClassifier,
    _modes,
    sample_scores,
)
from bincp.sampling._modes import evaluation_mode  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

D, K = 6, 4


def network():
    """A module whose scores are random in training mode."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(D, K), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(K)
    )


def inputs(n=5):
    return np.random.default_rng(0).random((n, 2, D // 2)).astype(np.float32)


def modes(module):
    return [part.training for part in module.modules()]


class TestUsers:
    def test_the_mode_comes_back_when_the_last_user_leaves(self):
        net = network()
        net[3].eval()  # frozen by its owner
        before = modes(net)
        first, second = evaluation_mode(net), evaluation_mode(net)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not any(modes(net))
        second.__exit__(None, None, None)
        assert modes(net) == before == [True, True, True, True, False]

    def test_a_part_and_the_whole_have_users_of_their_own(self):
        net = network()
        part, whole = evaluation_mode(net[2]), evaluation_mode(net)
        part.__enter__()
        whole.__enter__()
        part.__exit__(None, None, None)
        assert not any(modes(net))
        whole.__exit__(None, None, None)
        assert all(modes(net))
        whole, part = evaluation_mode(net), evaluation_mode(net[2])
        whole.__enter__()
        part.__enter__()
        whole.__exit__(None, None, None)
        assert modes(net) == [True, True, True, False, True]
        part.__exit__(None, None, None)
        assert all(modes(net))

    def test_a_part_that_two_modules_share(self):
        shared = torch.nn.Dropout()
        one, two = torch.nn.Sequential(shared), torch.nn.Sequential(torch.nn.ReLU(), shared)
        two.eval()
        shared.train()
        with evaluation_mode(one):
            with evaluation_mode(two):
                assert not any([*modes(one), *modes(two)])
            assert not shared.training
        assert shared.training
        assert modes(two) == [False, False, True]

    def test_an_error_leaves_nothing_behind(self):
        net = network()
        with pytest.raises(RuntimeError, match="no memory"), evaluation_mode(net):
            raise RuntimeError("no memory")
        assert all(modes(net))

        class Stubborn(torch.nn.Sequential):
            def train(self, mode=True):
                raise OSError("no mode")

        stubborn = Stubborn(torch.nn.Dropout())
        with pytest.raises(OSError, match="no mode"), evaluation_mode(stubborn):
            pass
        assert all(modes(stubborn))
        assert not _modes._uses

    def test_a_module_may_sample_inside_its_own_forward(self):
        net = network()

        class Outer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x):
                sample_scores(net, inputs(1), Gaussian(1.0), 1, phase="test")
                assert not net.training
                return self.net(x)

        sample_scores(Outer(), inputs(), Gaussian(1.0), 3, phase="test", batch_size=4)
        assert all(modes(net))


@pytest.fixture
def frequent_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class TestThreads:
    """Random scores would show dropout: one wrong number of thousands is seen."""

    @pytest.mark.usefixtures("frequent_switches")
    def test_threads_that_share_modules_and_parts(self):
        net = network()
        wrapped = torch.nn.Sequential(net, torch.nn.Dropout(0.5))
        tail = torch.nn.Sequential(torch.nn.Flatten(), net[1], net[2])
        before = [modes(net), modes(wrapped), modes(tail)]

        def scores(model):
            return sample_scores(model, inputs(2), Gaussian(1.0), 6, phase="test", batch_size=5)

        def fails(_):
            raise RuntimeError("no memory")

        expected = {model: scores(model) for model in (net, wrapped, tail)}
        failing = torch.nn.Sequential(net, torch.nn.Flatten())
        failing[1].register_forward_hook(lambda *_: fails(_))
        gate = threading.Barrier(8)

        def run(number):
            gate.wait()
            for turn in range(40):
                model = (net, wrapped, tail, failing)[(number + turn) % 4]
                if model is failing:
                    with pytest.raises(RuntimeError, match="no memory"):
                        scores(model)
                else:
                    np.testing.assert_array_equal(scores(model), expected[model])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, range(8)))
        assert [modes(net), modes(wrapped), modes(tail)] == before
        assert not _modes._uses

    def test_threads_that_come_and_go_while_a_mode_is_read(self):
        class Slow(torch.nn.Dropout):
            @property
            def training(self):
                mode = self.__dict__["mode"]
                time.sleep(1e-5)  # others enter and leave meanwhile
                return mode

            @training.setter
            def training(self, mode):
                self.__dict__["mode"] = mode

        slow = Slow()
        gate = threading.Barrier(4)

        def run(_):
            gate.wait()
            for _ in range(100):
                with evaluation_mode(slow):
                    assert not slow.training

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(run, range(4)))
        assert slow.training
        assert not _modes._uses

    def test_an_attack_beside_a_prediction(self):
        net = network()
        x, y = inputs(40), np.arange(40) % K
        ours = RobustClassifier(net, Gaussian(0.5), L2(0.1), alpha=0.2, n_samples=8, seed=0)
        ours.calibrate(x, y)
        ids = np.arange(40)
        expected = ours.predict(x, indices=ids, curtail=False).counts

        def attack():
            return pgd(net, x[:4], y[:4], Gaussian(0.5), L2(0.1), seed=1, n_samples=4, steps=3)

        attacked = attack()
        with ThreadPoolExecutor(4) as pool:
            attacks = [pool.submit(attack) for _ in range(6)]
            predictions = [pool.submit(ours.predict, x, indices=ids, curtail=False)] * 6
            for future in attacks:
                np.testing.assert_array_equal(future.result(), attacked)
            for future in predictions:
                np.testing.assert_array_equal(future.result().counts, expected)
        assert all(modes(net))


class TestModesThatCannotBeSet:
    """The scores are those of the plain network."""

    @pytest.fixture
    def net(self):
        return network().eval()

    def check(self, model, net, rtol=0.0):
        for wrapped in (model, torch.nn.Sequential(model, torch.nn.Dropout())):
            ours = sample_scores(
                wrapped, inputs(), Gaussian(1.0), 4, phase="test", batch_size=8, device="cpu"
            )
            plain = sample_scores(net, inputs(), Gaussian(1.0), 4, phase="test", batch_size=8)
            np.testing.assert_allclose(ours, plain, rtol=rtol)
        assert wrapped.training
        assert wrapped[1].training

    def test_exported_program(self, net):
        example = torch.from_numpy(inputs())
        shapes = ({0: torch.export.Dim("batch", min=2)},)
        exported = torch.export.export(net, (example,), dynamic_shapes=shapes).module()
        self.check(exported, net, rtol=1e-6)

    def test_script_modules(self, net):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            script = torch.jit.script(net)
            frozen = torch.jit.freeze(script)
            traced = torch.jit.trace(net, torch.from_numpy(inputs()))
        for model in (script, frozen, traced):
            self.check(model, net, rtol=1e-6)
        assert not hasattr(frozen, "training") or not frozen.training


FORKED = """
import os, signal, threading
import numpy as np, torch
from bincp.sampling import sample_scores
from bincp.smoothing import Gaussian

torch.set_num_threads(1)
begun, done, x = threading.Event(), threading.Event(), np.zeros((4, 4), np.float32)

class Slow(torch.nn.Module):
    def forward(self, x):
        begun.set()
        done.wait()
        return x

def sample():
    sample_scores(net, x, Gaussian(1.0), 2, phase="test")

net = torch.nn.Sequential(torch.nn.Dropout(), Slow())
thread = threading.Thread(target=sample, daemon=True)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    before = net.training, net[0].training
    done.set()
    sample()
    os._exit(0 if before == (net.training, net[0].training) == (True, True) else 1)
assert os.waitpid(child, 0)[1] == 0
assert not net[0].training
done.set()
thread.join()
assert net[0].training
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_the_runs_of_its_parent():
    """There the module has its own mode, which the thread that set it aside cannot give back."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60)


class TestRowsOfABatch:
    """A score must not depend on the noise of other rows."""

    @pytest.mark.parametrize("wrap", [lambda net: net, torch.nn.Sequential])
    def test_norms_of_the_batch_are_refused(self, wrap):
        x = torch.from_numpy(inputs())
        own = torch.nn.BatchNorm1d(x.shape[1], track_running_stats=False)
        model = wrap(torch.nn.Sequential(own, torch.nn.Linear(x.shape[1], 3)))
        with pytest.raises(ValueError, match=r"rows of a batch independently .*BatchNorm1d '.*0'"):
            sample_scores(model, x, Gaussian(1.0), 4, phase="test", batch_size=8)

    def test_norms_of_one_image_are_taken(self):
        torch.manual_seed(0)
        images = torch.rand(3, 2, 4, 4)
        layers = torch.nn.Flatten(), torch.nn.Linear(32, 3)
        instance = torch.nn.Sequential(torch.nn.InstanceNorm2d(2), *layers)
        batch = torch.nn.Sequential(torch.nn.BatchNorm2d(2, affine=False), *layers)
        batch[0].running_mean = batch[0].running_var = None
        given = {"phase": "test", "score": "logit"}
        expected = sample_scores(instance, images, Gaussian(1.0), 4, **given)
        own = sample_scores(batch, images, Gaussian(1.0), 4, batch_size=1, **given)
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


def test_narrow_inputs_of_a_wide_module_are_named():
    x = torch.zeros(5, 4)
    model = torch.nn.Linear(4, 3).double()
    with pytest.raises(ValueError, match=r"parameters are float64, got float32; use x\.astype"):
        sample_scores(model, x, Gaussian(1.0), 4, phase="test")

    class Widening(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x.double())

    assert sample_scores(Widening(), x, Gaussian(1.0), 4, phase="test").dtype == np.float64
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        sample_scores(Widening(), x[:, :3], Gaussian(1.0), 4, phase="test")
