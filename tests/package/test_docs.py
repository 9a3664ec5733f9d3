"""The pages in docs: their examples run, and what they link to is there."""

import re
import subprocess
import sys

import pytest

from support import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    blocks = FENCE.findall(page.read_text())
    assert blocks
    code = "\n".join(f"exec({block!r}, {{'__name__': '__main__'}})" for block in blocks)
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True)


def test_the_readme_names_every_page_and_links_lead_somewhere():
    readme = (ROOT / "README.md").read_text()
    assert PAGES
    for page in PAGES:
        assert f"(docs/{page.name})" in readme
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists()
