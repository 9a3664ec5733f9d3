"""Each allocation of the compiled modules fails once: MemoryError, no crash, nothing kept."""

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# The number of allocations of their own that the functions make, beside those of Python objects.
OWN = {
    "gaussian": 1,
    "steps": 1,
    "laplace_or_uniform": 1,
    "pareto": 1,
    "regions": 2,
    "sparse": 2,
    "sparse_masses": 1,
    "sparse_grid": 1,
    "categorical_masses": 1,
}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is written for glibc")
def test_every_allocation_fails_once(tmp_path: Path) -> None:
    library = tmp_path / "failing_malloc.so"
    compiler = sysconfig.get_config_var("CC").split()
    source = TESTS / "c" / "failing_malloc.c"
    flags = ("-shared", "-fPIC", "-O1")
    subprocess.run([*compiler, *flags, source, "-o", library], check=True)
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(TESTS.parent),
        "OPENBLAS_NUM_THREADS": "1",
    }
    result = subprocess.run(
        [sys.executable, str(TESTS / "kernels" / "failing_allocations.py")],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    refusals = {
        name: int(refused)
        for name, _, refused in map(str.split, result.stdout.strip().splitlines())
    }
    for name, own in OWN.items():
        assert refusals[name] > own, (name, refusals[name])  # and the operator itself, or a view
