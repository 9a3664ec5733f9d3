"""CONTRIBUTING.md: every file that it names is there."""

import re

from support import ROOT


def test_named_files_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"(?<![\w.-])(?:\.ci|bincp|csrc|tests|benchmarks)/[\w./-]*", text))
    assert {"bincp/counting.py", "csrc/rules/mixture.c", ".ci/imports.py"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
