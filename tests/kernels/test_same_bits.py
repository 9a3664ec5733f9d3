"""A million bounds and ten million draws have the same bits from every compiler at hand.

`tests/c/bounds.c` and `tests/c/draws.c` say what they are; each prints a digest for each kernel.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support import ROOT

PROGRAMS = {
    "bounds": [
        *(f"numerics/{name}.c" for name in ("binomial", "normal", "incomplete")),
        *(f"certificates/{name}.c" for name in ("laplace", "steps", "location", "knapsack")),
        *(f"certificates/{name}.c" for name in ("sparse_regions", "operators")),
    ],
    "draws": [f"noise/{name}.c" for name in ("philox", "laws", "grid", "splitting")],
}
LEVELS = ["-O0", "-O1", "-O2", "-O3"]
SETS = ["-msse2", "-mavx2", "-march=x86-64-v4"]
X86 = os.uname().machine == "x86_64"
ELSEWHERE = {
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "windows": ("x86_64-w64-mingw32-gcc", "wine"),
}
# strict_floats.h says why, and refuses to do without.
NEEDED = {"aarch64": [], "windows": ["-mfma"]}
COMPILERS = [compiler for compiler in ("gcc", "clang") if shutil.which(compiler)]

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no gcc and no clang")


def built(name: str, compiler: str, flags: list[str], folder: Path) -> Path:
    program = folder / f"{name}.exe"  # the end that Windows wants, and no other system minds
    command = [compiler, "-std=c11", "-ffp-contract=off", *flags, "-Icsrc", "-Ibincp/include"]
    sources = [f"tests/c/{name}.c", *(f"csrc/{source}" for source in PROGRAMS[name])]
    subprocess.run([*command, *sources, "-o", program, "-lm"], cwd=ROOT, check=True)
    return program


def digest(program: Path, *runner: str) -> dict[str, str]:
    """Return the digest of each kernel."""
    result = subprocess.run([*runner, program], capture_output=True, text=True, check=True)
    return dict(line.rsplit(" ", 1) for line in result.stdout.splitlines())


@pytest.fixture(scope="module", params=PROGRAMS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def expected(name: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("plain")
    found = digest(built(name, COMPILERS[0], ["-O0", "-DBINCP_NO_CLONES"], folder))
    assert len(set(found.values())) == len(found) == {"bounds": 12, "draws": 25}[name]
    return found


def runs_here(instruction_set: str) -> bool:
    needed = {"-mavx2": {"avx2"}, "-march=x86-64-v4": {"avx512f", "avx512bw", "avx512vl"}}
    flags = next(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line[:5] == "flags"
    )
    return needed.get(instruction_set, set()) <= set(flags.split())


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_optimisation(
    name: str, compiler: str, level: str, expected: dict[str, str], tmp_path: Path
) -> None:
    fast = [] if level == "-O0" else ["-fno-math-errno", "-fno-trapping-math"]
    assert digest(built(name, compiler, [level, *fast], tmp_path)) == expected


@pytest.mark.skipif(not X86, reason="instruction sets of x86")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("instruction_set", SETS)
def test_every_instruction_set(
    name: str, compiler: str, instruction_set: str, expected: dict[str, str], tmp_path: Path
) -> None:
    if not runs_here(instruction_set):
        pytest.skip("this CPU lacks it")
    flags = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-DBINCP_NO_CLONES", instruction_set]
    assert digest(built(name, compiler, flags, tmp_path)) == expected


def test_contraction_would_change_bits(name: str, expected: dict[str, str], tmp_path: Path) -> None:
    """The digests are fine enough to see a single fused operation."""
    if not X86 or not runs_here("-mavx2") or COMPILERS[0] != "gcc":
        pytest.skip("needs gcc and fused operations of x86")
    flags = ["-O3", "-DBINCP_NO_CLONES", "-mavx2", "-mfma", "-ffp-contract=fast"]
    flags.append("-DBINCP_STRICT_FLOATS_H")  # whose check would refuse them
    assert digest(built(name, "gcc", flags, tmp_path)) != expected


@pytest.mark.slow  # they run in emulators
@pytest.mark.parametrize("platform", ELSEWHERE)
def test_other_platforms(
    name: str,
    platform: str,
    expected: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiler, runner = map(shutil.which, ELSEWHERE[platform])
    if compiler is None or runner is None:
        pytest.skip(f"no {' or no '.join(ELSEWHERE[platform])}")
    monkeypatch.setenv("WINEPREFIX", str(tmp_path / "wine"))
    monkeypatch.setenv("WINEDEBUG", "-all")
    if platform == "windows" and not runs_here("-mavx2"):
        pytest.skip("this CPU lacks fused operations")
    program = built(name, compiler, ["-O3", "-static", *NEEDED[platform]], tmp_path)
    assert digest(program, runner) == expected
