"""The code on the pages of the documentation runs. Their build is a step of .ci/run."""

from pathlib import Path

import pytest

from support import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))


def code_of(page: Path) -> list[str]:
    """Return the blocks of a page that are Python; those in ``py`` are only shown."""
    blocks = page.read_text().split("```")[1::2]
    return [block.split("\n", 1)[1] for block in blocks if block.split("\n", 1)[0] == "python"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if code_of(page)], ids=lambda page: page.stem
)
def test_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block in a namespace of its own, as a reader would copy it."""
    monkeypatch.chdir(tmp_path)
    for block in code_of(page):
        names = {"__name__": "__main__"}
        exec(compile(block, str(page), "exec"), names)
        assert len(names) > 2  # beside its own name and that of builtins
