"""What a release says about itself is what the code says."""

import re
import tarfile
import tomllib

import pytest

import bincp
from bincp.calibration import _storage
from bincp.calibration._documents import LAYOUTS
from bincp.sampling import RobustClassifier, RobustRegressor
from bincp.sampling._run import _manifest, _seed
from support import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_names_no_other_version():
    cited = re.findall(r"^version: *(\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited in ([], [bincp.__version__])


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_uses_what_is_there(workflow):
    text = workflow.read_text()
    extras = {name for group in re.findall(r"\.\[([\w,]+)\]", text) for name in group.split(",")}
    assert extras <= set(PROJECT["optional-dependencies"])
    files = re.findall(r"(?<![\w./-])(?:\.ci|\.github)/[\w.-]+(?:/[\w.-]+)*", text)
    assert [name for name in files if not (ROOT / name).exists()] == []
    actions = re.findall(r"uses: (\S+)", text)
    assert actions
    assert [one for one in actions if not re.fullmatch(r"[\w/.-]+@[0-9a-f]{40}", one)] == []


def test_a_workflow_runs_on_every_version_of_python_that_is_declared():
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    (tried,) = re.findall(r"python: \[(.*)\]", text)
    least = PROJECT["requires-python"].removeprefix(">=")
    assert re.findall(r"[\d.]+", tried)[0] == least


def test_the_oldest_versions_are_those_that_are_declared():
    text = (ROOT / ".ci" / "oldest.txt").read_text()
    oldest = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    lines = "\n".join(line for group in groups for line in group)
    declared = dict(re.findall(r"^([\w-]+)>=(\S+)$", lines, re.MULTILINE))
    assert {"numpy", "scipy"} <= set(oldest) <= set(declared)
    assert oldest == {name: declared[name] for name in oldest}


def test_the_page_has_the_version_of_each_file_format():
    page = (ROOT / "docs" / "guide" / "versions.md").read_text()
    listed = dict(re.findall(r"^\|[^|]*\| `(bincp [^`]*)` \| (\d+) \|", page, re.MULTILINE))
    rules = {layout.format: str(_storage.VERSION) for layout in LAYOUTS}
    predictors = [one._who.format for one in (RobustClassifier, RobustRegressor)]
    assert listed == {**rules, **dict.fromkeys([*predictors, _manifest._KIND, _seed._KIND], "1")}


@pytest.mark.slow
def test_the_source_distribution_holds_what_its_tests_read(wheel):
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"CONTRIBUTING.md", "CITATION.cff", "SECURITY.md", "constraints.txt", "README.md"}
    needed |= {".ci/oldest.txt", ".ci/imports.py", "tests/support.py", "tests/c/Makefile"}
    needed |= {str(path.relative_to(ROOT)) for path in (ROOT / "csrc").rglob("*.[ch]")}
    needed |= {str(path.relative_to(ROOT)) for path in (ROOT / "bincp").rglob("*.py*")}
    assert {n for n in needed if n.endswith((".pyc", ".so"))} | names >= needed
    assert not any(name.endswith((".so", ".pyc")) or "_build/" in name for name in names)
