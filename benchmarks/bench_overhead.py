"""Sampling against a loop by hand: torch.randn, the model and torch's counting, in equal batches.

    python -m benchmarks.bench_overhead        # prints the ratios

Both run on one thread and take turns, so that they meet the same other load of the machine. Ours
draws keyed noise, checks the scores and keeps ids; the loop by hand does none of that.
"""

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from bincp.sampling import count_scores  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

SIGMA, BATCH = 0.25, 256
M = 64


class Block(nn.Module):
    """Two convolutions with a short cut, which skips pixels where the block does."""

    def __init__(self, inputs, width):
        super().__init__()
        self.stride = width // inputs
        layers = []
        for channels, stride in ((inputs, self.stride), (width, 1)):
            convolution = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
            layers += [convolution, nn.BatchNorm2d(width), nn.ReLU()]
        self.path, self.extra = nn.Sequential(*layers[:-1]), width - inputs

    def forward(self, x):
        short = x[:, :, :: self.stride, :: self.stride]
        short = nn.functional.pad(short, (0, 0, 0, 0, 0, self.extra))
        return torch.relu(self.path(x) + short)


def resnet20(n_classes):
    """The smallest network that its paper trains on CIFAR-10, with random weights."""
    layers, inputs = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for width in (16, 16, 16, 32, 32, 32, 64, 64, 64):
        layers.append(Block(inputs, width))
        inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, n_classes))


def tps(logits):
    return logits.softmax(-1)


def aps(logits):
    p = logits.softmax(-1)
    ordered, order = p.sort(-1, descending=True)
    scores = ordered - ordered.cumsum(-1) - torch.rand(len(p), 1) * ordered
    return torch.empty_like(p).scatter_(-1, order, scores)


def by_hand(model, x, m, tau, score):
    """Count as a person would who writes the loop for one experiment; m divides the batches."""
    counts, inputs = [], BATCH // m
    with torch.inference_mode():
        for i in range(0, len(x), inputs):
            rows = x[i : i + inputs].repeat_interleave(m, 0)
            logits = model(rows + SIGMA * torch.randn(rows.shape))
            counts.append((score(logits) >= tau).view(-1, m, logits.shape[1]).sum(1))
    return torch.cat(counts).numpy()


def ours(model, x, m, tau, score):
    name = {tps: "tps", aps: "aps"}[score]
    options = {"phase": "test", "score": name, "batch_size": BATCH}
    return count_scores(model, x, Gaussian(SIGMA), m, tau, **options)


def linear(n_classes):
    return nn.Linear(64, n_classes)


CASES = {
    "a ResNet-20, tps": (resnet20, (3, 32, 32), 10, tps, 4, 1.05),
    "a linear model, K = 1,000, aps": (linear, (64,), 1000, aps, 16, 1.15),
    "a linear model, tps": (linear, (64,), 10, tps, 200, 1.3),
}
"""The model, the shape of an input, K, the score, the inputs, and the ratio to stay below."""


def both(case):
    """Return the two loops, each a function without arguments."""
    network, shape, n_classes, score, n, _ = CASES[case]
    torch.manual_seed(0)
    model, x = network(n_classes).eval(), torch.rand(n, *shape)
    tau = 1 / n_classes if score is tps else -0.5
    return [lambda loop=loop: loop(model, x, M, tau, score) for loop in (ours, by_hand)]


def seconds(loops, rounds):
    """Return the processor time of each function in each round (rounds, functions)."""
    taken = np.empty((rounds, len(loops)))
    for times in taken:
        for i, loop in enumerate(loops):
            start = time.thread_time()
            loop()
            times[i] = time.thread_time() - start
    return taken


def ratio(taken):
    """Return the median ratio of neighbours in time, which other load slows down alike."""
    return float(np.median(taken[:, 0] / taken[:, 1]))


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.benchmark(group="sampling against a loop by hand")
@pytest.mark.parametrize("case", CASES)
def test_overhead(benchmark, case):
    loops = both(case)
    # Other noise, but of the same law: the shares of the scores that are counted agree.
    counted, expected = (loop().mean() / M for loop in loops)
    assert counted == pytest.approx(expected, abs=0.02)
    benchmark.pedantic(loops[0])
    if benchmark.enabled:
        taken = seconds(loops, 30)
        benchmark.extra_info["ratio to the loop by hand"] = round(taken[0] / taken[1], 3)
        assert taken[0] / taken[1] <= CASES[case][-1]


def main():
    torch.set_num_threads(1)
    for case, (*_, most) in CASES.items():
        loops = both(case)
        rows = np.prod([CASES[case][4], M])
        taken = seconds(loops, 30)
        least = 1e6 * taken.min(axis=0) / rows
        print(
            f"{case}: {least[0]:.2f} us a draw, by hand {least[1]:.2f} us, "
            f"ratio {ratio(taken):.3f} (at most {most})"
        )


if __name__ == "__main__":
    main()
