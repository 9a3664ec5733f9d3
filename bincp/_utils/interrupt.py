"""Ctrl-C ends the command ``bincp`` without a traceback, also while its imports still run.

`bincp.cli.main` catches an interrupt, but it runs only after the package has been imported, which
takes a large part of a second. So the package imports this module first. In any other program than
the command it changes nothing.
"""

import sys
from pathlib import Path
from types import TracebackType


def _is_the_command() -> bool:
    """Say if this process is ``bincp ...`` or ``python -m bincp ...``."""
    started = sys.argv[0] if sys.argv else ""  # "-m" while Python looks for the module to run
    return "bincp" in sys.orig_argv if started == "-m" else Path(started).stem == "bincp"


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


if _is_the_command():
    sys.excepthook = _hook
