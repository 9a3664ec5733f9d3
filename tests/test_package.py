"""What is shipped: imports, public names, examples, the wheel, and packages built against it."""

import doctest
import importlib
import inspect
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

import pytest

import bincp

ROOT = Path(__file__).parent.parent
PUBLIC_MODULES = {
    "bincp.adapters",
    "bincp.attacks",
    "bincp.balls",
    "bincp.baselines",
    "bincp.baselines.cas",
    "bincp.baselines.ibp",
    "bincp.baselines.rcp1",
    "bincp.baselines.rscp",
    "bincp.baselines.vanilla",
    "bincp.baselines.vrcp",
    "bincp.calibration",
    "bincp.certificates",
    "bincp.classification",
    "bincp.cli",
    "bincp.counting",
    "bincp.demo",
    "bincp.errors",
    "bincp.intervals",
    "bincp.metrics",
    "bincp.mondrian",
    "bincp.noise",
    "bincp.planning",
    "bincp.registry",
    "bincp.risk",
    "bincp.sampling",
    "bincp.scores",
    "bincp.sequential",
    "bincp.smoothing",
    "bincp.testing",
}

PYTHON_MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "bincp").rglob("*.py")
    if path.name != "__main__.py"
)


def python(code, *options, cwd=None, executable=sys.executable):
    """Run code in a new interpreter and return what it prints."""
    command = [executable, *options, "-c", textwrap.dedent(code)]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


# ---- imports and names -----------------------------------------------------------------------


def test_import_loads_nothing_heavy():  # B023, B024
    code = """
        import sys, bincp
        heavy = {"torch", "matplotlib", "sklearn", "art", "tqdm", "pandas"}
        print(sorted(heavy & set(sys.modules)), "scipy.stats" in sys.modules)
    """
    assert python(code) == "[] False"


def test_every_module_is_listed_or_private():
    assert {name for name in PYTHON_MODULES if "._" not in name} == {"bincp", *PUBLIC_MODULES}


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


def test_every_public_function_and_method_has_an_example():  # B052, B072
    lacking = []
    for name in sorted(PUBLIC_MODULES - {"bincp.cli", "bincp.demo"}):
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            value = getattr(module, public)
            if inspect.isfunction(value):
                lacking += [] if "Examples" in value.__doc__ else [f"{name}.{public}"]
            elif inspect.isclass(value) and not issubclass(value, (Exception, tuple)):
                lacking += [f"{name}.{m}" for m in methods_without_example(value)]
    bases_and_results = {"bincp.balls.Ball", "bincp.smoothing.Smoothing"}
    bases_and_results |= {"bincp.sampling.PredictionSets"}
    bases_and_results |= {"bincp.classification.CertifiedLabels"}
    assert set(lacking) == bases_and_results


def methods_without_example(value):
    """Return the class itself or its public methods that lack an example: one of them must do."""
    if "Examples" in (value.__doc__ or ""):
        return []
    public = [m for m in vars(value).values() if inspect.isfunction(m) and m.__name__[0] != "_"]
    return [value.__qualname__] if not any("Examples" in (m.__doc__ or "") for m in public) else []


def test_nothing_that_newer_numpy_removed_or_that_ranks_must_not_use():  # B041, B066, B071
    for path in (ROOT / "bincp").rglob("*.py"):
        text = path.read_text()
        for forbidden in ("np.quantile", "np.percentile", "row_stack", "interpolation="):
            assert forbidden not in text, path
    for path in (ROOT / "csrc").glob("*.pyx"):
        assert "numpy" not in path.read_text(), path  # no NumPy C API, and none at build time


def test_the_readme_names_the_threat_model():  # B021, B022, B076
    text = " ".join((ROOT / "README.md").read_text().split())
    assert "clean graph not remembered from training" in text
    assert "not tuned on the calibration or test points" in text


@pytest.mark.parametrize("name", PYTHON_MODULES)
def test_examples_run(name):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert failed == 0


def test_only_sampling_imports_torch_at_module_level():
    for path in (ROOT / "bincp").rglob("*.py"):
        lines = path.read_text().splitlines()
        imports = [line for line in lines if line.startswith(("import torch", "from torch"))]
        assert not imports or path.parent.name == "sampling", path


def test_kernels_know_nothing_of_python():
    for path in (ROOT / "csrc").glob("*.[ch]"):
        assert "Python.h" not in path.read_text(), path
    for path in (ROOT / "csrc").glob("*.pyx"):
        imports = [line for line in path.read_text().splitlines() if "import bincp" in line]
        assert not imports, path


def test_versions_agree():
    text = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{bincp.__version__}"' in text
    assert f"## [{bincp.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


# ---- the README ------------------------------------------------------------------------------


def code_fences(language):
    """Return the code blocks of the README in one language."""
    blocks = (ROOT / "README.md").read_text().split("```")[1::2]
    return [block.split("\n", 1)[1] for block in blocks if block.split("\n", 1)[0] == language]


def test_readme_examples_run(tmp_path):
    for block in code_fences("python"):
        python(block, cwd=tmp_path)


def test_readme_quotes_the_embedding_that_is_tested():
    example = ROOT / "tests" / "downstream" / "robust_counts.pyx"
    assert code_fences("cython") == [example.read_text()]


# ---- the wheel -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build a wheel from a source distribution, as an index would get them."""
    folder = tmp_path_factory.mktemp("dist")
    build = """
        import sys
        from setuptools import build_meta
        print(build_meta.build_sdist(sys.argv[1]))
    """
    sdist = python_in_root(build, folder).splitlines()[-1]
    pip("wheel", "--no-build-isolation", "--no-deps", "-w", folder, folder / sdist)
    return next(folder.glob("*.whl"))


def python_in_root(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def pip(*arguments, executable=sys.executable):
    command = [executable, "-I", "-m", "pip", "--quiet", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Unpack the wheel into an otherwise empty folder."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.mark.slow
def test_the_wheel_holds_everything_that_users_build_on(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "cp311-abi3" in wheel.name or sys.version_info < (3, 11)
    for module in ("_binomial", "_count", "_noise", "_operators", "_sequential"):
        assert f"bincp/{module}.pxd" in names
        assert f"bincp/{module}.pyi" in names
        assert any(name.startswith(f"bincp/{module}.") and name.endswith(".so") for name in names)
    assert {"bincp/include/bincp/bincp.h", "bincp/py.typed"} <= names
    assert "bincp/baselines/cas.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.endswith((".c", ".pyx")) or "tests/" in name for name in names)


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):  # B070
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


@pytest.mark.slow
def test_a_cython_package_builds_against_the_wheel(installed, tmp_path):
    """The example of the README: C-level calls without the GIL, from another package."""
    example = ROOT / "tests" / "downstream" / "robust_counts.pyx"
    (tmp_path / example.name).write_text(example.read_text())
    (tmp_path / "setup.py").write_text(
        textwrap.dedent(
            """
            import bincp
            from Cython.Build import cythonize
            from setuptools import Extension, setup

            extension = Extension(
                "robust_counts", ["robust_counts.pyx"], include_dirs=[bincp.get_include()]
            )
            setup(name="robust_counts", ext_modules=cythonize([extension], language_level=3))
            """
        )
    )
    environment = {"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
    )
    code = """
        import sys
        sys.path.insert(0, ".")
        import bincp, robust_counts
        assert "site" in bincp.__file__, bincp.__file__
        certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
        value = robust_counts.certified_probability(certificate.operator, 90, 100, 1e-3)
        expected = certificate.lower(bincp.clopper_pearson_lower(90, 100, 1e-3))
        assert value == expected, (value, expected)
        print("ok")
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "ok", result.stderr
