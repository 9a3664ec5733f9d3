"""The memory that sampling takes beside its result."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

K = 1000
PREPARATION = f"""
import re
import numpy as np, torch
from bincp.balls import L2
from bincp.sampling import RobustClassifier, count_scores, sample_scores
from bincp.smoothing import Gaussian

torch.set_num_threads(1)
directions = torch.linspace(-3, 3, {K})

def model(x):
    return x[:, :1] * directions

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

def classifier(passes):
    points, labels = torch.rand(99, 4), np.arange(99) % {K}
    made = RobustClassifier(
        model, Gaussian(0.25), L2(0.1), alpha=0.1, n_samples=8, passes=passes
    )
    return made.calibrate(points, labels)
"""


def bytes_over(make, call, n):
    """Return by how much a call of n inputs, in a process of its own, raises the peak."""
    script = f"{PREPARATION}\nmade = {make}\n" + textwrap.dedent(f"""
        def call(x):
            return {call}

        x = torch.rand({n}, 4)
        call(x[:99])  # what the first call loads
        before = peak()
        call(x)
        print(peak() - before)
    """)
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    return int(told.stdout)


@pytest.mark.parametrize(
    ("make", "call", "size"),
    [
        ("None", 'count_scores(model, x, Gaussian(0.25), 8, 0.0, phase="test")', 4),
        ('classifier("auto")', "made.predict(x)", 5),
        ("classifier(None)", "made.predict(x)", 5),
        ("classifier(None)", "made.predict(x, curtail=False)", 5),
    ],
    ids=["count_scores", "stops early", "curtailed", "all draws"],
)
def test_peak_is_at_most_twice_the_result_and_a_batch(make, call, size):
    n = 16_000
    batch = 256 * K * 4
    assert bytes_over(make, call, n) <= 2 * size * n * K + 4 * batch
