"""The suite itself: a test that checks nothing cannot fail, and is found here."""

import ast

import pytest

from support import ROOT

FILES = sorted([*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("benchmarks/bench_*.py")])
CHECKS = {
    "raises",
    "warns",
    "fail",
    "check_certificate",
    "check_law",
    "check_rising",
}  # and names with "assert"


def functions(path):
    """Return the functions of a file by name."""
    tree = ast.parse(path.read_text())
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def names_called(function):
    """Return the last names of all calls in a function."""
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {getattr(call, "attr", getattr(call, "id", "")) for call in calls}


def runs_checked(node):
    """Say if a node is ``check=True``, with which `subprocess.run` raises for a status but 0."""
    return (
        isinstance(node, ast.keyword) and node.arg == "check" and ast.unparse(node.value) == "True"
    )


def checking(found):
    """Return the names of the functions that check something, or call one that does."""
    known = {
        name
        for name, function in found.items()
        if any(isinstance(node, ast.Assert) or runs_checked(node) for node in ast.walk(function))
        or any(called in CHECKS or "assert" in called for called in names_called(function))
    }
    while True:
        more = {name for name, function in found.items() if names_called(function) & known} - known
        if not more:
            return known
        known |= more


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_test_checks_something(path):
    shared = functions(ROOT / "tests" / "support.py")
    found = functions(path)
    known = checking({**shared, **found})
    assert [name for name in found if name.startswith("test_") and name not in known] == []


def test_a_test_without_a_check_is_found():
    source = """
def helper():
    assert True

def test_by_itself():
    with pytest.raises(ValueError):
        pass

def test_by_a_helper():
    helper()

def test_nothing():
    len([])
"""
    found = {node.name: node for node in ast.parse(source).body}
    assert checking(found) == {"helper", "test_by_itself", "test_by_a_helper"}
