"""Sampling with noise that is drawn where the model is, on a device that all have: the CPU."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bincp import attacks  # noqa: E402
from bincp.balls import L2, Linf  # noqa: E402
from bincp.noise._device import _sampler  # noqa: E402
from bincp.noise._samplers import sampler_of  # noqa: E402
from bincp.sampling import (  # noqa: E402
    RobustClassifier,
    _engine,
    _jobs,
    count_scores,
    sample_scores,
    vote_counts,
)
from bincp.sampling._jobs import Job  # noqa: E402
from bincp.smoothing import Gaussian, Laplace, SparseFlip, Uniform  # noqa: E402

N, K = 12, 3
SHAPE = (3, 5, 5)
X = np.random.default_rng(0).integers(0, 256, (N, *SHAPE)).astype(np.uint8)
Y = np.arange(N) % K
SCHEMES = [Gaussian(0.25), Laplace(0.25), Uniform(0.5), Gaussian(0.25, grid=255)]


def network(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(75, K)).to(dtype)


@pytest.fixture
def device(monkeypatch):
    """Let the CPU draw as other devices do, and note what draws."""
    drawn = []

    def on_cpu(smoothing, place):
        made = _sampler.sampler_on(sampler_of(smoothing), place)
        if made is not None:
            drawn.append(made)
        return made

    monkeypatch.setattr(_jobs, "device_sampler", on_cpu)
    return drawn


def results(smoothing, x, dtype):
    """Scores, counts, votes, sets and attacks."""
    net = network(dtype)
    given = {"phase": "test", "batch_size": 7, "seed": 5}
    yield sample_scores(net, x, smoothing, 9, **given)
    yield sample_scores(net, x, smoothing, 9, indices=np.arange(N)[::-1] + 2**40, **given)
    yield count_scores(net, x, smoothing, 9, 0.3, **given)
    yield vote_counts(net, x, smoothing, 9, first_draw=4)
    classifier = RobustClassifier(
        net, smoothing, L2(0.05, 75), alpha=0.4, n_samples=16, seed=3, passes=None
    )
    classifier.calibrate(x, Y)
    for options in ({}, {"curtail": False}, {"sequential": True}, {"looks": "doubling"}):
        predicted = classifier.predict(x, **options)
        yield predicted.counts
        yield predicted.forward_passes
    if x.dtype not in (torch.uint8, np.uint8):
        yield attacks.pgd(net, x, Y, smoothing, L2(0.05, 75), tau=0.3, seed=1, n_samples=3, steps=2)


@pytest.mark.parametrize("smoothing", SCHEMES, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_results_are_those_of_the_c_code(smoothing, dtype, request):
    x = torch.from_numpy(X).to(dtype) / 255
    expected = list(results(smoothing, x, dtype))
    drawn = request.getfixturevalue("device")
    for same in (x, x.numpy(), x.clone().requires_grad_()):
        found = list(results(smoothing, same, dtype))
        for ours, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, wanted)
    assert drawn


def test_results_of_grey_levels_are_those_of_the_c_code(request):
    scheme = Gaussian(0.25, grid=255)
    expected = list(results(scheme, X, torch.float32))
    drawn = request.getfixturevalue("device")
    for same in (X, torch.from_numpy(X)):
        for ours, wanted in zip(results(scheme, same, torch.float32), expected, strict=True):
            np.testing.assert_array_equal(ours, wanted)
    assert drawn


def job_of(x, smoothing, **options):
    given = {"score": "tps", "batch_size": 4, "seed": 0, "device": None, "progress": False}
    return Job.checked(network(), x, smoothing, 3, phase="test", **given | options)


def test_tensors_stay_where_they_are(device):
    x = torch.from_numpy(X) / 255
    job = job_of(x, Gaussian(0.25))
    assert job.x.data_ptr() == x.data_ptr()
    assert isinstance(job.on_host().x, np.ndarray)


def test_schemes_that_the_device_does_not_draw_are_drawn_on_the_host(device):
    x = torch.from_numpy(X > 127).float()
    job = job_of(x, SparseFlip(0.1, 0.1))
    assert job.device_sampler is None
    assert isinstance(job.x, np.ndarray)
    assert _engine.all_scores(job).shape == (N, K, 3)
    assert device == []


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 75).half(), "`x` must be float32 or float64"),
        (torch.zeros(2, 75).bfloat16(), "`x` must be float32 or float64"),
        (torch.zeros(75), r"got \(75,\); one input alone is x\[None\]"),
        (torch.full((2, 75), 0.3), r"`x` must be multiples of 1/255.*at index \(0, 0\)"),
        (torch.zeros(2, 75).double(), "`x` must have the dtype of the model's parameters"),
    ],
    ids=["half", "bfloat16", "one input", "off the grid", "double"],
)
def test_inputs_are_refused_where_they_are(device, x, message):
    with pytest.raises(ValueError, match=message):
        job_of(x, Gaussian(0.25, grid=255))


def test_balls_count_the_elements_of_a_tensor(device):
    x = torch.from_numpy(X) / 255
    for dim in (75, 76):
        classifier = RobustClassifier(
            network(), Uniform(0.5), Linf(0.001, dim), alpha=0.4, n_samples=8, passes=None
        )
        if dim == 75:
            classifier.calibrate(x, Y)
        else:
            with pytest.raises(ValueError, match=r"`x` must have 76 elements.*\(12, 3, 5, 5\)"):
                classifier.calibrate(x, Y)


def test_a_module_stays_where_it_is_if_its_inputs_are_refused(device):
    with pytest.raises(ValueError, match="`x` must be float32"):
        job_of(torch.zeros(2, 75).half(), Gaussian(0.25), device="cpu")


class Stream:
    """A stream of CUDA that notes what it is asked for, in a list that all share."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def wait_stream(self, other):
        self.log.append(f"{self.name} waits for {other.name}")

    def wait_event(self, event):
        self.log.append(f"{self.name} waits for {event}")

    def record_event(self):
        event = f"event {sum(entry.startswith('event') for entry in self.log)}"
        self.log.append(event)
        return event

    def __enter__(self):
        self.log.append(f"on {self.name}")

    def __exit__(self, *_):
        self.log.append(f"off {self.name}")


def test_the_device_draws_beside_the_model(monkeypatch):
    """The order in which work is launched, with streams that stand for those of CUDA."""
    log = []
    main, beside = Stream("main", log), Stream("side", log)
    monkeypatch.setattr(torch.cuda, "Stream", lambda place: beside)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda place: main)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)

    class Rows:
        """Noisy inputs that are on the device."""

        def __init__(self, number):
            self.number = number

        def record_stream(self, stream):
            log.append(f"{stream.name} uses draw {self.number}")

        def to(self, place, non_blocking):
            return torch.full((4, 75), float(self.number))

    class Noise:
        n = -1

        def rows(self, keys, sources, x):
            self.n += 1
            log.append(f"draw {self.n}")
            return Rows(self.n)

    def model(x):
        log.append(f"model {int(x[0, 0])}")
        return x[:, :K]

    job = replace(
        job_of(torch.from_numpy(X[:4]) / 255, Gaussian(0.25)),
        model=model,
        device_sampler=Noise(),
        device=torch.device("cuda", 0),
    )
    what = _engine._Draws(np.arange(4), np.zeros(4, np.int64), np.full(4, 3))
    for number, _ in enumerate(_engine._launched(job, what)):
        log.append(f"scores {number}")
    expected = ["side waits for main"]
    for i in range(3):
        draw = ["on side", f"draw {i}", f"event {i}", "off side"]
        expected += [*draw, f"scores {i - 1}"] if i else draw
        expected += [f"main waits for event {i}", f"main uses draw {i}", f"model {i}"]
    assert log == [*expected, "scores 2"]


@pytest.mark.parametrize("smoothing", SCHEMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_autocast_does_not_reach_the_noise(device, smoothing, dtype):
    x = torch.from_numpy(X).to(dtype) / 255
    seen = []

    def keeping(rows):
        seen.append(rows.clone())
        return rows.flatten(1)[:, :K]

    options = {"phase": "test", "seed": 5}
    sample_scores(keeping, x, smoothing, 4, **options)
    outside, seen = seen, []
    with torch.autocast("cpu", torch.bfloat16):
        sample_scores(keeping, x, smoothing, 4, **options)
    assert device
    assert len(outside) == len(seen)
    assert all(map(torch.equal, outside, seen))
