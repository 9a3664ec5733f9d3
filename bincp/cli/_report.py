"""Reports of the commands, and how they are printed."""

import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Context, Decimal
from typing import Any, NamedTuple

from bincp._utils.progress import beside_bars
from bincp.errors import TrivialSetWarning

WIDTH = 80


class Report(NamedTuple):
    """The result of a command: plain values for ``--json``, and text for people."""

    data: dict[str, Any]
    text: str

    def files(self) -> list[str]:
        """Return the files that the command has written."""
        return [self.data[key] for key in ("out", "plot", "plot_radius") if self.data.get(key)]


def rounded(value: float, rounding: str, digits: int = 8) -> str:
    """Return a decimal on the safe side of a bound."""
    return str(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))


def show(text: str) -> None:
    """Print on stdout; characters that its encoding lacks become escapes."""
    stream = sys.stdout
    if stream is None or stream.closed:  # closed by whoever started the process
        return
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def tell(text: str) -> None:
    """Print one line on stderr, if there is one."""
    if sys.stderr is not None:  # print() would take stdout instead
        with suppress(OSError), beside_bars():
            print(text, file=sys.stderr)


def drop_stdout() -> None:
    """Discard the rest of stdout, which Python would flush at exit and fail again."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), sys.stdout.fileno())  # fails for a stream that is no file


def one_line(error: Exception | Warning) -> str:
    """Return the message of an error in one line; that of a file begins with its name."""
    if isinstance(error, OSError) and error.filename is not None:
        return "\\n".join(f"{error.filename}: {error.strerror}".splitlines())
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show each warning as one line; a warning of trivial sets is shown every time."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        tell(f"bincp: warning: {message if isinstance(message, str) else one_line(message)}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", TrivialSetWarning)
        warnings.showwarning = show
        yield


def plain(value: Any) -> Any:
    """Return the values for JSON, which has no infinite numbers: they become "inf" and "-inf"."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
