"""Faults put into the kernels one at a time: the C programs of ``tests/c`` must see each.

    python tests/mutants/mutants.py [WORD ...]

Each fault is a replacement in one file of ``csrc/``; the words choose files by parts of their
names. A fault that no program sees survives: it is printed, and the exit status is 1.
"""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("faults.txt")
FLAGS = shlex.split("-std=c11 -O1 -w -ffp-contract=off -DBINCP_NO_CLONES")
LONGEST = 120  # seconds: a fault that makes a loop endless is seen, too


class Fault(NamedTuple):
    """A replacement in a source."""

    file: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}: {self.old}  ->  {self.new}"


def faults() -> Iterator[Fault]:
    """Yield the faults of the list: the file on a line of its own, then pairs of lines."""
    rows = [row for row in FAULTS.read_text().splitlines() if row and not row.startswith("#")]
    file, old = "", ""
    for row in rows:
        if row.startswith("- "):
            old = row[2:]
        elif row.startswith("+ "):
            yield Fault(file, old, row[2:])
        else:
            file = row


def programs() -> dict[str, list[str]]:
    """Return the kernels of each C program, as the Makefile has them."""
    command = ["make", "-s", "-C", str(ROOT / "tests" / "c"), "kernels"]
    rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: files.split() for name, _, files in (row.partition(":") for row in rows)}


def compiled(source: Path, csrc: Path, target: Path) -> bool:
    """Compile a source; return whether it compiles."""
    target.parent.mkdir(parents=True, exist_ok=True)
    include = [f"-I{csrc}", f"-I{ROOT / 'bincp' / 'include'}", f"-I{ROOT / 'tests' / 'c'}"]
    command = ["cc", *FLAGS, *include, "-c", str(source), "-o", str(target)]
    return subprocess.run(command, capture_output=True).returncode == 0


class Kernels:
    """The objects of the sources without a fault, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = programs()
        sources = [(name, ROOT / "csrc" / name) for name in self.files()]
        sources += [(f"test_{p}", ROOT / "tests" / "c" / f"test_{p}.c") for p in self.programs]
        with ThreadPoolExecutor(cpu_count()) as pool:
            made = pool.map(
                lambda pair: compiled(pair[1], ROOT / "csrc", folder / f"{pair[0]}.o"), sources
            )
        assert all(made)

    def files(self) -> list[str]:
        """Return the sources of all programs."""
        return sorted({name for names in self.programs.values() for name in names})

    def sees(self, fault: Fault) -> str:
        """Return the name of a program that sees a fault, or nothing."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            subprocess.run(["cp", "-r", ROOT / "csrc", folder / "csrc"], check=True)
            mutated = folder / "csrc" / fault.file
            text = mutated.read_text()
            assert text.count(fault.old) == 1, f"{text.count(fault.old)} places for {fault}"
            mutated.write_text(text.replace(fault.old, fault.new))
            # A header may be in any source, and in the programs.
            header = fault.file.endswith(".h")
            for program, kernels in sorted(self.programs.items(), key=lambda pair: len(pair[1])):
                if (header or fault.file in kernels) and self.fails(
                    program, kernels, folder, kernels if header else [fault.file]
                ):
                    return program
        return ""

    def fails(self, program: str, kernels: list[str], folder: Path, changed: list[str]) -> bool:
        """Return whether a program fails with the sources that were changed."""
        sources = [(name, folder / "csrc" / name) for name in changed]
        if changed == kernels:
            sources += [(f"test_{program}", ROOT / "tests" / "c" / f"test_{program}.c")]
        for name, source in sources:
            if not compiled(source, folder / "csrc", folder / f"{name}.o"):
                raise ValueError(f"{source} does not compile")
        made = {name for name, _ in sources}
        objects = [
            str((folder if name in made else self.folder) / f"{name}.o")
            for name in [*kernels, f"test_{program}"]
        ]
        binary = str(folder / f"run_{program}")
        subprocess.run(["cc", *objects, "-o", binary, "-lm"], check=True)
        try:
            return subprocess.run([binary], capture_output=True, timeout=LONGEST).returncode != 0
        except subprocess.TimeoutExpired:
            return True


def main(words: list[str]) -> int:
    """Try the chosen faults; return 1 if any survives."""
    chosen = [fault for fault in faults() if not words or any(w in fault.file for w in words)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cpu_count()) as pool:
        kernels = Kernels(Path(folder))
        found = []
        for fault, program in zip(chosen, pool.map(kernels.sees, chosen), strict=True):
            found.append(program)
            if not program:
                print(f"survives: {fault}", flush=True)
    files = len({fault.file for fault in chosen})
    print(f"mutants: {len(chosen)} faults in {files} files, {found.count('')} survive")
    return 1 if "" in found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
