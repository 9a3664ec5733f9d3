"""Tables of text."""

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = ()) -> str:
    """Return columns under a header, whose cells may have several lines.

    The columns whose numbers are in `left` are left-aligned, all others right-aligned.
    """
    cells = [name.split("\n") for name in header]
    height = max(len(lines) for lines in cells)
    head = list(zip(*([""] * (height - len(lines)) + lines for lines in cells), strict=True))
    lines = [*head, *rows]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
