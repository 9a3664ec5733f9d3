"""Ctrl-C ends the command ``bincp`` without a traceback, also while its imports still run.

`bincp.cli.main` catches an interrupt, but it runs only after the package has been imported, which
takes a large part of a second. So the package imports this module first, and until `main` starts
and once it is done, Ctrl-C ends the process as it ends a C program: no file is open then. (An
exception would not do: extension modules that are interrupted in their import turn it into others,
and Python prints it at its exit.) This module changes only the command, no other program.
"""

import signal
import sys
from pathlib import Path


def _is_the_command() -> bool:
    """Return whether this process is ``bincp ...`` or ``python -m bincp ...``."""
    started = sys.argv[0] if sys.argv else ""  # "-m" while Python looks for the module to run
    return "bincp" in sys.orig_argv if started == "-m" else Path(started).stem == "bincp"


def catch() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, if this module has changed that."""
    if _IS_THE_COMMAND and signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def release() -> None:
    """Let Ctrl-C end the process at once again: what Python still does at its exit may be cut."""
    if _IS_THE_COMMAND and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


_IS_THE_COMMAND = _is_the_command()
release()
