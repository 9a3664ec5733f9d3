"""Draw the imports between the rooms of ``bincp/`` in CONTRIBUTING.md, or check the drawing.

    python .ci/imports.py [--check]

A room is a module or package directly in ``bincp/``; ``bincp`` itself is the face. The floor of a
room is the length of the longest chain of imports below it, so every arrow goes down. A circle of
imports has no floors and is an error.
"""

import argparse
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
BEGIN, END = "<!-- imports: made by .ci/imports.py -->\n", "<!-- imports: end -->"


def arrows() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    graph = grimp.build_graph("bincp", cache_dir=None)
    rooms = {module: ".".join(module.split(".")[:2]) for module in graph.modules}
    found: dict[str, set[str]] = {room: set() for room in rooms.values()}
    for module, room in rooms.items():
        imported = graph.find_modules_directly_imported_by(module)
        found[room] |= {rooms[other] for other in imported} - {room}
    return found


def floors(found: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms of each floor, the lowest first."""
    height: dict[str, int] = {}
    for room in TopologicalSorter(found).static_order():
        height[room] = 1 + max((height[other] for other in found[room]), default=-1)
    return [
        sorted(room for room in found if height[room] == floor)
        for floor in range(max(height.values()) + 1)
    ]


def drawing(found: dict[str, set[str]]) -> str:
    """Return the counts and the picture as Markdown."""
    stack = floors(found)
    number = {room: i for i, room in enumerate(sorted(found))}
    lines = [
        f"{len(found)} rooms on {len(stack)} floors, {sum(map(len, found.values()))} arrows, "
        "none of them up, no circle:",
        "",
        "```mermaid",
        "flowchart TD",
    ]
    for height, rooms in reversed(list(enumerate(stack))):
        lines.append(f"  subgraph floor{height} [floor {height}]")
        lines += [f'    r{number[room]}["{room.removeprefix("bincp.")}"]' for room in rooms]
        lines.append("  end")
    for room in sorted(found):
        if found[room]:
            targets = " & ".join(f"r{number[other]}" for other in sorted(found[room]))
            lines.append(f"  r{number[room]} --> {targets}")
    return "\n".join([*lines, "```", ""])


def main() -> None:
    """Write the drawing into CONTRIBUTING.md, or check that it is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare; status 1 if it differs")
    arguments = parser.parse_args()
    try:
        made = drawing(arrows())
    except CycleError as error:
        sys.exit(f"circle of imports: {' -> '.join(error.args[1])}")
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    page = f"{before}{BEGIN}{made}{END}{after}"
    if page == text:
        print(f"the drawing of the imports in {PAGE.name} is current")
    elif arguments.check:
        sys.exit(f"the imports in {PAGE.name} have changed: run python .ci/imports.py")
    else:
        PAGE.write_text(page)
        print(f"wrote the drawing of the imports into {PAGE.name}")


if __name__ == "__main__":
    main()
