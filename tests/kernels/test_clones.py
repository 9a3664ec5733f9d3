"""Functions that are compiled once per instruction set."""

import re
import shutil
import subprocess
from collections import Counter

import pytest

from support import ROOT

COMPILER = shutil.which("gcc")
CLONE = re.compile(r"__attribute__\(\(target_clones\([^)]*\)\)\)\s+static\s+\w+\s+(\w+)\(")


@pytest.mark.skipif(COMPILER is None, reason="no gcc")
def test_cloned_functions_have_names_of_their_own() -> None:
    """Their resolvers are global in clang 14, so that two of one name do not link."""
    names: Counter[str] = Counter()
    for source in sorted(ROOT.glob("csrc/*/*.c")):
        command = [str(COMPILER), "-std=c11", "-E", "-P", "-Icsrc", "-Ibincp/include", str(source)]
        text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        names.update(CLONE.findall(text))
    if not names:
        pytest.skip("this compiler or machine has no clones")
    assert "fill_normal_down" in names
    assert [name for name, count in names.items() if count > 1] == []
