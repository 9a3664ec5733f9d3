"""Runs by a local Ray: the bytes of other runs, also where its processes are killed."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray Data"),
]


def told(what, folder):
    """Return what `ray_tasks` writes, from a process and a Ray of its own."""
    here = Path(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(here.parents[2]), *sys.path))}
    process = subprocess.run(
        [sys.executable, here.with_name("ray_tasks.py"), what, folder],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert process.returncode == 0, process.stderr
    return json.loads((folder / "told.json").read_text())


def test_files_are_those_of_a_run_by_one_process(tmp_path):
    assert told("values", tmp_path) == {"arrays": True, "dataset": True}


def test_killed_actors_cost_nothing_but_time(tmp_path):
    found = told("deaths", tmp_path)
    assert found["arrays"] == {"died": 2, "same": True}
    assert found["dataset"] == {"died": 2, "same": True}
    assert "the process that made part" in found["always"]
    assert "died 4 times" in found["always"]


def test_a_run_is_continued_with_its_own_inputs_only(tmp_path):
    found = told("continued", tmp_path)
    for name in ("arrays", "dataset"):
        assert "got another one at position 1" in found[name]
        assert not found[f"{name} changed"]
    assert found["same"]


def test_refusals(tmp_path):
    found = told("refusals", tmp_path)
    assert "each of the ids 0 to 7 once, got 8 of them: [0, 1, 2, 4, 4, 5, 6, 7]" in found["twice"]
    assert "40 inputs without the id 0" in found["beyond"]
    assert "the columns 'id' and 'x', got x, label" in found["columns"]
    assert "`workers` must leave a processor of the cluster" in found["room"]
    named = re.search(r"`model` must not give NaN scores, got one for input (\d+),", found["nan"])
    assert named is not None
    assert int(named[1]) % 8 == 0  # the first input of whatever part failed first
    assert found["missing"] == 5
    assert "`precision` was {'autocast': None, 'float32_matmul': 'high'}" in found["precision"]
