"""The code on the pages of the documentation runs, and links lead somewhere.

The build of the pages is a step of .ci/run, and fails on a warning.
"""

import ast
import re
from pathlib import Path

import pytest

from support import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
ANCHOR = re.compile(r"[^\w\- ]")


def code_of(page: Path) -> list[str]:
    """Return the programs of a page, one for each block in ``python``.

    A block in ``python continued`` goes on with the one before; those in ``py`` are only shown.
    """
    programs: list[str] = []
    for block in page.read_text().split("```")[1::2]:
        language, _, code = block.partition("\n")
        if language == "python":
            programs.append(code)
        elif language == "python continued":
            programs[-1] += code
    return programs


@pytest.fixture
def own_samplers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the schemes that a page adds."""
    from bincp.noise import _samplers

    monkeypatch.setattr(_samplers, "_entries", dict(_samplers._entries))


@pytest.mark.slow
@pytest.mark.usefixtures("clean_registry", "own_samplers")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if code_of(page)], ids=lambda page: page.stem
)
def test_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program in a namespace and a folder of its own, as a reader would copy it."""
    for number, program in enumerate(code_of(page)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        names = {"__name__": "__main__"}
        exec(compile(program, str(page), "exec"), names)
        assert len(names) > 2  # beside its own name and that of builtins


def links_of(page: Path) -> list[str]:
    """Return the targets of the links and pictures of a page, without those of the network."""
    text = "".join(page.read_text().split("```")[::2])
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in found if not target.startswith(("http:", "https:", "mailto:"))]


def anchors_of(page: Path) -> set[str]:
    """Return the names that GitHub and MyST give the headings of a page."""
    text = "".join(page.read_text().split("```")[::2])
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {ANCHOR.sub("", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    for target in links_of(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors_of(file), target


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("install", "start.md"),
        ("first sets", "start.md"),
        ("scores of my own", "guide/own_scores.md"),
        ("choose n, m", "guide/choose.md"),
        ("graph", "guide/graphs.md"),
        ("serve", "guide/serving.md"),
        ("scale out", "guide/scale.md"),
        ("new ball in C", "guide/embed.md"),
        ("audit", "guide/audit.md"),
        ("explain the guarantee to a colleague", "guide/explain.md"),
    ],
)
def test_the_front_page_leads_to_each_task_by_its_words(words: str, page: str) -> None:
    front = (ROOT / "docs" / "index.md").read_text()
    links = re.findall(r"\[([^\]]+)\]\(([^)\s#]+)[^)]*\)", front)
    assert page in [target for text, target in links if words in text]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_that_is_only_shown_is_python(page: Path) -> None:
    blocks = [block.partition("\n") for block in page.read_text().split("```")[1::2]]
    assert all(ast.parse(code).body for language, _, code in blocks if language == "py")
