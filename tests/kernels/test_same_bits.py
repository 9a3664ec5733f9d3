"""The bounds that use no C library have the same bits from every compiler at hand."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support import ROOT

BOUNDS = [
    "tests/c/bounds.c",
    "csrc/numerics/binomial.c",
    "csrc/numerics/normal.c",
    "csrc/certificates/laplace.c",
    "csrc/certificates/steps.c",
]
LEVELS = ["-O0", "-O1", "-O2", "-O3"]
SETS = ["-msse2", "-mavx2", "-march=x86-64-v4"]
X86 = os.uname().machine == "x86_64"
COMPILERS = [compiler for compiler in ("gcc", "clang") if shutil.which(compiler)]

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no gcc and no clang")


def built(compiler: str, flags: list[str], program: Path) -> Path:
    command = [compiler, "-std=c11", "-ffp-contract=off", *flags, "-Icsrc", "-Ibincp/include"]
    subprocess.run([*command, *BOUNDS, "-o", program, "-lm"], cwd=ROOT, check=True)
    return program


def digest(program: Path, *runner: str, rounds: int = 100) -> str:
    result = subprocess.run(
        [*runner, program, str(rounds)], capture_output=True, text=True, check=True
    )
    return result.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("plain") / "bounds"
    text = digest(built(COMPILERS[0], ["-O0", "-DBINCP_NO_CLONES"], program))
    assert len(set(text.split()[-1:])) == 1
    assert len(text.splitlines()) == 9
    return text


def runs_here(instruction_set: str) -> bool:
    needed = {"-mavx2": {"avx2"}, "-march=x86-64-v4": {"avx512f", "avx512bw", "avx512vl"}}
    flags = next(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line[:5] == "flags"
    )
    return needed.get(instruction_set, set()) <= set(flags.split())


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_optimisation(
    compiler: str, level: str, expected: str, tmp_path: Path
) -> None:
    fast = [] if level == "-O0" else ["-fno-math-errno", "-fno-trapping-math"]
    assert digest(built(compiler, [level, *fast], tmp_path / "bounds")) == expected


@pytest.mark.skipif(not X86, reason="instruction sets of x86")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("instruction_set", SETS)
def test_every_instruction_set(
    compiler: str, instruction_set: str, expected: str, tmp_path: Path
) -> None:
    if not runs_here(instruction_set):
        pytest.skip("this CPU lacks it")
    flags = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-DBINCP_NO_CLONES", instruction_set]
    assert digest(built(compiler, flags, tmp_path / "bounds")) == expected


def test_contraction_would_change_bits(expected: str, tmp_path: Path) -> None:
    """The digest is fine enough to see a single fused operation."""
    if not X86 or not runs_here("-mavx2") or COMPILERS[0] != "gcc":
        pytest.skip("needs gcc and fused operations of x86")
    flags = ["-O3", "-DBINCP_NO_CLONES", "-mavx2", "-mfma", "-ffp-contract=fast"]
    flags.append("-DBINCP_STRICT_FLOATS_H")  # whose check would refuse them
    assert digest(built("gcc", flags, tmp_path / "bounds")) != expected


def test_aarch64(expected: str, tmp_path: Path) -> None:
    compiler, runner = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler is None or runner is None:
        pytest.skip("no aarch64 compiler with qemu-user")
    program = built(compiler, ["-O3", "-static"], tmp_path / "bounds")
    assert digest(program, runner) == expected
