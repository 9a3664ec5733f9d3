"""The command line, ``bincp COMMAND`` or ``python -m bincp COMMAND``.

A command returns a report, which `main` prints as text or as JSON; what can be wrong with the
command line itself is found before any work is done. Exit status: 0 done, 1 failed with one line
``bincp: error: ...`` on stderr, 2 wrong usage.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from bincp._utils.version import __version__
from bincp.cli._arguments import UsageError
from bincp.cli._bench import add_bench
from bincp.cli._calibrate import add_calibrate
from bincp.cli._certify import add_certify
from bincp.cli._demo import add_demo
from bincp.cli._plan import add_plan
from bincp.cli._predict import add_predict
from bincp.cli._report import one_line, one_line_warnings, plain

__all__ = ["main"]

FAILURES = (OSError, ValueError, TypeError, RuntimeError, ImportError, MemoryError)

INTERRUPTED = 130  # what a shell reports for a process that Ctrl-C ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        Exit status: 0 done, 1 failed, 2 wrong usage.

    Examples
    --------
    >>> from bincp.cli import main
    >>> main(["certify", "--smoothing", "gaussian:sigma=0.5", "--ball", "l2:r=0.25", "--p", "0.9"])
    Gaussian(sigma=0.5) against L2(r=0.25, dim=None)
    <BLANKLINE>
      p       lower       upper
    0.9  0.78276091  0.96258881
    0
    """
    try:
        _run(argv)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough; Python flushes once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except FAILURES as error:
        print(f"bincp: error: {one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _run(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_args(argv)
    with one_line_warnings():
        try:
            report = arguments.run(arguments)
        except UsageError as error:
            arguments.parser.error(one_line(error))
    print(json.dumps(plain(report.data)) if arguments.json else report.text)
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bincp",
        description=(
            "Conformal prediction sets that keep their coverage under attack.\n\n"
            "Start with `bincp demo`. With scores of a model of your own, sampled under\n"
            "random noise, `bincp calibrate` finds the decision rule, and `bincp predict`\n"
            "applies it; `bincp plan` says beforehand how many samples are worth drawing."
        ),
        epilog="Exit status: 0 done, 1 failed, 2 wrong usage. `bincp COMMAND --help` says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"bincp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (add_demo, add_plan, add_calibrate, add_predict, add_certify, add_bench):
        add(commands)
    return parser
