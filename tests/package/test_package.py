"""What is shipped: imports, public names, examples, and the wheel."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
import venv
import zipfile

import pytest

import bincp
from support import ROOT

QUOTED = ("pixel_ball", "pixel_numba", "pixel_ctypes", "setup")  # examples, in this order
PUBLIC_MODULES = {
    "bincp.adapters",
    "bincp.attacks",
    "bincp.balls",
    "bincp.baselines",
    "bincp.classification",
    "bincp.counting",
    "bincp.errors",
    "bincp.intervals",
    "bincp.metrics",
    "bincp.noise",
    "bincp.plots",
    "bincp.radii",
    "bincp.regression",
    "bincp.sampling",
    "bincp.scores",
    "bincp.shifts",
    "bincp.smoothing",
    "bincp.testing",
}
# Public through `bincp` alone, but for what bincp.certificates makes out of certificates.
ROOMS = {"bincp.auditing", "bincp.calibration", "bincp.certificates", "bincp.cli"}

PYTHON_FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "bincp").rglob("*.py"))
    if path.name != "__main__.py"
}
MODULES_WITH_EXAMPLES = [name for name, path in PYTHON_FILES.items() if ">>> " in path.read_text()]


def python(code, *options, cwd=None, executable=sys.executable):
    """Run code in a new interpreter and return what it prints."""
    command = [executable, *options, "-c", textwrap.dedent(code)]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


# ---- imports and names -----------------------------------------------------------------------


def test_import_loads_nothing_heavy():
    code = """
        import sys, bincp
        heavy = {"torch", "matplotlib", "sklearn", "art", "tqdm", "pandas"}
        print(sorted(heavy & set(sys.modules)), "scipy.stats" in sys.modules)
    """
    assert python(code) == "[] False"


def test_every_module_is_listed_or_private():
    assert {name for name in PYTHON_FILES if "._" not in name} == {
        "bincp",
        *PUBLIC_MODULES,
        *ROOMS,
    }


@pytest.mark.parametrize("name", ["bincp", *sorted(PUBLIC_MODULES)])
def test_public_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert exported == sorted(set(exported), key=exported.index)
    for public in exported:
        value = getattr(module, public)
        if inspect.isfunction(value) or inspect.isclass(value):
            assert value.__doc__, f"{name}.{public}"
            check_members(value)


def check_members(value):
    for member_name, member in vars(value).items():
        if inspect.isfunction(member) and not member_name.startswith("_"):
            assert member.__doc__, f"{value.__qualname__}.{member_name}"


def test_every_public_function_and_class_has_an_example():
    lacking = set()
    for name in ["bincp", "bincp.cli", *sorted(PUBLIC_MODULES)]:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            value = getattr(module, public)
            if inspect.isfunction(value):
                lacking |= set() if has_example(value) else {public}
            elif inspect.isclass(value) and not issubclass(value, Exception | tuple):
                lacking |= set() if class_has_example(value) else {public}
    assert lacking == {
        "Audit",
        "Ball",
        "CertifiedLabels",
        "PredictionSets",
    }


def has_example(value):
    return bool(doctest.DocTestParser().get_examples(value.__doc__ or ""))


def class_has_example(value):
    """Say if a class or one of its public methods has an example."""
    methods = [m for m in vars(value).values() if inspect.isfunction(m) and m.__name__[0] != "_"]
    return any(map(has_example, [value, *methods]))


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_examples_run(name):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert failed == 0
    assert tried > 0


def test_the_core_imports_nothing_of_bincp_outside_itself():
    imported = re.compile(r"^\s*(?:from|c?import)\s+(bincp[\w.]*)", re.MULTILINE)
    files = [path for path in (ROOT / "bincp" / "_core").iterdir() if path.suffix[:3] == ".py"]
    assert len(files) > 10
    for path in files:
        for module in imported.findall(path.read_text()):
            assert module.startswith("bincp._core."), (path, module)


def test_the_changelog_tells_of_this_version():
    assert f"## [{bincp.__version__.split('.dev')[0]}]" in (ROOT / "CHANGELOG.md").read_text()


# ---- the README and the page on embedding ----------------------------------------------------


def code_fences(page, language):
    """Return the code blocks of a page in one language."""
    blocks = (ROOT / page).read_text().split("```")[1::2]
    return [block.split("\n", 1)[1] for block in blocks if block.split("\n", 1)[0] == language]


@pytest.mark.slow
def test_readme_examples_run(tmp_path):
    """Each in a namespace of its own; in one process, which imports torch once."""
    blocks = code_fences("README.md", "python")
    assert len(blocks) == 2
    python(
        "\n".join(f"exec({block!r}, {{'__name__': '__main__'}})" for block in blocks), cwd=tmp_path
    )


def test_the_page_on_embedding_quotes_what_is_tested():
    examples, page = ROOT / "tests" / "downstream", "docs/guide/embed.md"
    assert code_fences(page, "cython") == [(examples / "pixel_cython.pyx").read_text()]
    sources = ("pixel_c.c", "pixel_lower.c")
    assert code_fences(page, "c") == [(examples / name).read_text() for name in sources]
    quoted = [(examples / f"{name}.py").read_text() for name in QUOTED]
    assert code_fences(page, "py") == quoted


# ---- the wheel -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_wheel_holds_everything_that_users_build_on(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "cp311-abi3" in wheel.name or sys.version_info < (3, 11)
    for module in ("_binomial", "_count", "_noise", "_operators", "_sequential"):
        assert f"bincp/_core/{module}.pxd" in names
    for module in ("_binomial", "_capi", "_count", "_foreign", "_noise", "_operators"):
        assert f"bincp/_core/{module}.pyi" in names
        assert any(
            name.startswith(f"bincp/_core/{module}.") and name.endswith(".so") for name in names
        )
    assert {"bincp/include/bincp/bincp.h", "bincp/py.typed", "bincp/__init__.pxd"} <= names
    assert "bincp/baselines/_cas.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.endswith((".c", ".pyx")) or "tests/" in name for name in names)


@pytest.mark.slow
def test_links_and_pictures_on_an_index_lead_to_the_files(wheel):
    """The description of the wheel is the README but for its links, none of which is relative."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        description = archive.read(name).decode().partition("\n\n")[2]
    pages, pictures = "https://example.org/bincp/blob/v1/", "https://example.org/bincp/raw/v1/"
    readme = (ROOT / "README.md").read_text()
    assert description.replace(pages, "").replace(pictures, "").strip() == readme.strip()
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert len(links) > 30
    for link in links:
        folder = pictures if link.endswith(".png") else pages
        assert link.startswith(folder)
        assert (ROOT / link.removeprefix(folder)).is_file()


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel, pip, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    executable = tmp_path / "venv" / "bin" / "python"
    pip("install", "-c", ROOT / "constraints.txt", wheel, executable=executable)
    code = """
        import bincp, importlib.util
        assert importlib.util.find_spec("torch") is None
        certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
        print(f"{certificate.lower(0.9):.6f}")
    """
    assert python(code, "-I", cwd=tmp_path, executable=executable) == "0.610856"
    script = subprocess.run(
        [tmp_path / "venv" / "bin" / "bincp", "--help"], capture_output=True, text=True
    )
    assert script.returncode == 0
    assert "certify" in script.stdout
