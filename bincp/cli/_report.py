"""What the commands say: a report is plain values for ``--json`` and text for everybody else."""

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from typing import Any, NamedTuple

from bincp.errors import TrivialSetWarning

WIDTH = 80


class Report(NamedTuple):
    """What a command has to say: plain values for ``--json``, text for everybody else."""

    data: dict[str, Any]
    text: str


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = ()) -> str:
    """Return columns under a header, whose cells may have several lines.

    They are right-aligned, but for those of the numbers in `left`.
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


def rounded(value: float, rounding: str, digits: int = 8) -> str:
    """Return a decimal on the safe side of a bound."""
    return str(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))


def one_line(error: Exception | Warning) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show a warning as one line, and one of trivial sets each time."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = message if isinstance(message, str) else one_line(message)
        print(f"bincp: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TrivialSetWarning)
        warnings.showwarning = show
        yield


def plain(value: Any) -> Any:
    """Return JSON values with "inf" and "-inf", which JSON lacks as numbers, as text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
