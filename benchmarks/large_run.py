"""A run as large as the validation set of ImageNet, through a cheap model, killed three times.

    python -m benchmarks.large_run FOLDER              # 50,000 inputs, 1,000 labels, 64 draws
    python -m benchmarks.large_run FOLDER --n 5000

Prints the time and the peak memory of each process, and whether the run that was killed and
continued has the bytes of the other one. FOLDER must not exist; it is removed at the end.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

KILLS = 3


def sample(path: Path, n: int) -> None:
    """Make or continue the run in a folder."""
    import numpy as np
    import torch

    from bincp import BinCP, certify
    from bincp.balls import L2
    from bincp.sampling import run, sample_scores
    from bincp.smoothing import Gaussian

    torch.set_num_threads(1)
    torch.manual_seed(0)
    scheme, m = Gaussian(0.25), 64
    model, x, y = torch.nn.Linear(64, 1000), torch.randn(n, 64), np.arange(200)
    points = sample_scores(model, torch.randn(200, 64), scheme, m, phase="calibration", labels=y)
    rule = BinCP(certify(scheme, L2(0.1)), alpha=0.1).calibrate(points)
    run(path, model, x, scheme, m, phase="test", rules=rule, seed=0, shard=(0, 1))


def started(path: Path, n: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.large_run", path, f"--n={n}", "-w"])


def n_parts(path: Path) -> int:
    return len(list(path.glob("0*.npz")))


def ended(process: subprocess.Popen[bytes], begun: float) -> str:
    """Wait for a process, and return what it took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return f"{time.perf_counter() - begun:.1f} s, peak {usage.ru_maxrss / 1024:.0f} MB"


def digests(path: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in path.iterdir()}


def killed(path: Path, n: int, total: int) -> None:
    """Kill a run after each quarter of its parts, and continue it to its end."""
    for i in range(1, KILLS + 1):
        begun, process = time.perf_counter(), started(path, n)
        while n_parts(path) < i * total // (KILLS + 1):
            time.sleep(0.01)
        process.kill()
        print(f"killed with {n_parts(path)} of {total} parts: {ended(process, begun)}", flush=True)
    begun, process = time.perf_counter(), started(path, n)
    print(f"continued to the end: {ended(process, begun)}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("-w", "--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        sample(arguments.folder, arguments.n)
        return
    arguments.folder.mkdir()
    try:
        whole, other = arguments.folder / "whole", arguments.folder / "killed"
        begun, process = time.perf_counter(), started(whole, arguments.n)
        print(f"{arguments.n} inputs, 1,000 labels, 64 draws, one thread")
        print(f"in one go: {ended(process, begun)}", flush=True)
        killed(other, arguments.n, n_parts(whole))
        size = sum(p.stat().st_size for p in whole.iterdir())
        print(f"equal bytes: {digests(whole) == digests(other)}, {size / 2**20:.0f} MB")
    finally:
        shutil.rmtree(arguments.folder)


if __name__ == "__main__":
    main()
