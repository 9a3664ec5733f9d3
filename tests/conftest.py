"""The wheel, built once a session, a registry of its own for a test, and settings of Hypothesis."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# Before anything imports torch, and for subprocesses too: on models as small as those of the tests,
# threads that wait for one another take five times as long on a machine that does something else.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test register operators in a copy of the registry."""
    from bincp.certificates import _registry

    monkeypatch.setattr(_registry, "_entries", dict(_registry._entries))


@pytest.fixture
def exact_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let certificates charge nothing for how noise is drawn: the bounds of the laws alone.

    That is what golden values and enumerations know. What is charged has tests of its own.
    """
    from bincp import smoothing

    for name in smoothing.__all__:
        monkeypatch.setattr(getattr(smoothing, name), "sampling_error", lambda self: 0.0)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from a source distribution, as an index would get them.

    The workers of pytest-xdist share it: two builds at once in one source tree fail.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "dist"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            made = folder.with_name("made")
            build_wheel(made)
            made.rename(folder)
    return next(folder.glob("*.whl"))


def build_wheel(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    release = {**os.environ, "BINCP_SOURCE_URL": "https://example.org/bincp/blob/v1"}
    build = (
        "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    )
    command = [sys.executable, "-c", build, str(folder)]
    made = subprocess.run(
        command, cwd=ROOT, env=release, check=True, capture_output=True, text=True
    )
    sdist = folder / made.stdout.splitlines()[-1]
    run_pip("wheel", "--no-build-isolation", "--no-deps", "-w", folder, sdist, env=release)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel into an otherwise empty folder."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture(scope="session")
def pip() -> Callable[..., None]:
    return run_pip


def run_pip(
    *arguments: object,
    executable: object = sys.executable,
    env: dict[str, str] | None = None,
) -> None:
    command = [str(executable), "-I", "-m", "pip", "--quiet", *map(str, arguments)]
    result = subprocess.run(command, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
