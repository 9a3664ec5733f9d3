"""exp and log of csrc/numerics against the C library's long doubles, mantissa by mantissa."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support import ROOT

COMPILER = shutil.which("gcc")

pytestmark = pytest.mark.skipif(
    COMPILER is None or platform.machine() not in ("x86_64", "aarch64"),
    reason="needs gcc and long doubles of 64 bits or more",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("elementary") / "elementary"
    command = [str(COMPILER), "-std=c11", "-O2", "-ffp-contract=off", "-Icsrc"]
    subprocess.run([*command, "tests/c/elementary.c", "-o", program, "-lm"], cwd=ROOT, check=True)
    return program


def errors(program: Path, step: int) -> list[float]:
    result = subprocess.run([program, str(step)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
    return [float(units) for units in re.findall(r"([\d.]+) units of", result.stdout)]


def test_errors_are_within_those_stated(program: Path) -> None:
    found = errors(program, 997)
    assert len(found) > 20
    assert min(found) > 0.4  # a double is off by half a unit here and there: the test can see it


@pytest.mark.slow
def test_every_mantissa_of_a_float(program: Path) -> None:
    assert max(errors(program, 1)) > 2
