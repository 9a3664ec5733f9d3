"""Tell which lines and branches of the kernels the C programs of this folder have run.

    python3 coverage.py OBJECTS

``make -C tests/c coverage`` compiles the kernels into the folder OBJECTS without optimisation, runs
the programs, and calls this. It prints a table and fails where a branch is not covered that
``not_covered.txt`` does not name. A branch is one of the two ways out of one condition, so that
``a && b`` has four.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent.resolve()
ROOT = HERE.parents[1]
NAMED = HERE / "not_covered.txt"


class Line(NamedTuple):
    """One line of a function: how often it ran, and how often each of its branches was taken."""

    runs: int
    branches: tuple[int, ...]

    def __add__(self, other: "Line") -> "Line":
        """Return the counts of two objects that were compiled from the same line."""
        pairs = zip(self.branches, other.branches, strict=True)
        return Line(self.runs + other.runs, tuple(map(sum, pairs)))

    def missing(self) -> int:
        """Return how many branches were never taken, or 1 for a line that never ran."""
        return self.branches.count(0) or int(self.runs == 0)


# The lines of one source by number and function: a file that is included for several types, and a
# macro, make several functions of one line.
Lines = dict[tuple[int, str], Line]


def measured(objects: Path) -> dict[str, Lines]:
    """Return the lines of each source in csrc/; a header counts in every object that uses it."""
    found: dict[str, Lines] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        for number, note in enumerate(sorted(objects.resolve().rglob("*.gcno"))):
            here = Path(folder) / str(number)
            here.mkdir()
            command = ["gcov", "--json-format", "--branch-probabilities", str(note)]
            subprocess.run(command, cwd=here, check=True, stdout=subprocess.DEVNULL)
            for report in here.glob("*.gcov.json.gz"):
                add(json.loads(gzip.decompress(report.read_bytes())), found)
    return found


def add(report: dict, found: dict[str, Lines]) -> None:
    """Add the counts of one object to those of the sources."""
    for file in report["files"]:
        path = (Path(report["current_working_directory"]) / file["file"]).resolve()
        if not path.is_relative_to(ROOT / "csrc"):
            continue
        lines = found[str(path.relative_to(ROOT))]
        for line in file["lines"]:
            key = line["line_number"], line.get("function_name", "")
            new = Line(line["count"], tuple(branch["count"] for branch in line["branches"]))
            lines[key] = lines[key] + new if key in lines else new


def named_exceptions() -> set[tuple[str, ...]]:
    """Return the file, the function and the text of each line that is named."""
    rows = NAMED.read_text().splitlines()
    return {tuple(row.split(": ", 2)) for row in rows if row and not row.startswith("#")}


def main(objects: Path) -> int:
    """Print the table; return 1 if a branch is missing that nobody named, or a name is idle."""
    found, names = measured(objects), named_exceptions()
    idle, wrong = set(names), []
    totals = [0, 0, 0, 0, 0]
    print(f"{'source':40}{'lines':>12}{'branches':>14}{'named':>7}")
    for path, lines in sorted(found.items()):
        text = (ROOT / path).read_text().splitlines()
        named = 0
        for (number, function), line in sorted(lines.items()):
            missing = line.missing()
            key = path, function, text[number - 1].strip()
            if missing and key in names:
                named += missing
                idle.discard(key)
            elif missing:
                what = f"{missing} of {len(line.branches)} branches" if line.branches else "line"
                wrong.append(f"{path}:{number}: {function}: {what} not taken: {key[2]}")
        branches = [count for line in lines.values() for count in line.branches]
        row = (
            sum(line.runs > 0 for line in lines.values()),
            len(lines),
            sum(count > 0 for count in branches),
            len(branches),
            named,
        )
        totals = [a + b for a, b in zip(totals, row, strict=True)]
        print(table_row(path, row))
    print(table_row("all", totals))
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "csrc").glob("*/*.c")}
    wrong += [f"{path}: in no program" for path in sorted(sources - set(found))]
    wrong += ["covered, but named: " + ": ".join(name) for name in sorted(idle)]
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


def table_row(name: str, row) -> str:
    """Return a row of the table: lines run of all, branches taken of all, and those named."""
    lines, all_lines, branches, all_branches, named = row
    return f"{name:40}{f'{lines}/{all_lines}':>12}{f'{branches}/{all_branches}':>14}{named:>7}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
