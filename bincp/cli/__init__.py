"""The command line, ``bincp COMMAND`` or ``python -m bincp COMMAND``.

A command returns a report, which `main` prints as text or as JSON. Errors in the command line
itself are found before any work is done.

Exit status: 0 done; 1 failed, with one line ``bincp: error: ...`` on stderr, and no file was
written; 2 wrong usage; 130 ended by Ctrl-C, as shells report it. A reader that stops early, such as
``head``, and a closed stdout are no failure.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from bincp._utils import interrupt
from bincp._utils.version import __version__
from bincp.cli._arguments import EXIT_STATUS, Parser, UsageError
from bincp.cli._audit import add_audit
from bincp.cli._bench import add_bench
from bincp.cli._calibrate import add_calibrate
from bincp.cli._certify import add_certify
from bincp.cli._demo import add_demo
from bincp.cli._plan import add_plan
from bincp.cli._predict import add_predict
from bincp.cli._report import (
    Report,
    drop_stdout,
    one_line,
    one_line_warnings,
    plain,
    show,
    tell,
)
from bincp.cli._sample import add_sample

__all__ = ["main"]

FAILURES = (OSError, ValueError, TypeError, RuntimeError, ImportError, MemoryError)

WHAT_FOR = """\
Conformal prediction sets that keep their coverage under attack: the set of an
input holds its true label with probability 1 - alpha or more, whatever an
adversary does within a ball around the input. The model is any classifier; it
is evaluated on noisy copies of the input."""

MANUAL = """\
Example:
  bincp demo
  bincp plan --smoothing gaussian:sigma=0.25 --ball l2:r=0.25 -n 200 -m 16 64
  bincp calibrate true_scores.npy --smoothing gaussian:sigma=0.25 \\
      --ball l2:r=0.25 --out rule.json
  bincp predict rule.json scores.npy --labels labels.npy --out sets.npy

Files:
  Scores, labels and sets are NumPy arrays, .npy or .npz. A run, the folder that
  `bincp sample` writes, may take the place of scores. A decision rule is a JSON
  file with a checksum. The ending of a picture, such as .png, says its format.

Output: the report goes to stdout, as text or with --json as one JSON object;
warnings, errors and progress bars go to stderr."""

INTERRUPTED = 130  # the status that shells report of a process that Ctrl-C ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

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
        interrupt.catch()
        return _print(*_run(argv))
    except SystemExit as stop:  # argparse has printed the help, or why the usage is wrong
        return _flush(int(stop.code or 0))
    except KeyboardInterrupt:
        return INTERRUPTED
    except FAILURES as error:
        tell(f"bincp: error: {one_line(error)}")
        return 1
    finally:
        interrupt.release()


def _run(argv: Sequence[str] | None) -> tuple[Report, bool]:
    """Return the report of the command, and whether it is wanted as JSON."""
    arguments = _parser().parse_args(argv)
    parser: Parser = arguments.parser
    with one_line_warnings():
        try:
            return arguments.run(arguments), arguments.json is True
        except UsageError as error:
            parser.error(one_line(error))


def _print(report: Report, as_json: bool) -> int:
    """Print a report and return the exit status: written files stay written, and are no failure."""
    try:
        show(json.dumps(plain(report.data)) if as_json else report.text)
    except BrokenPipeError:  # the reader has seen enough
        drop_stdout()
    except OSError as error:
        drop_stdout()
        problem = f"the report could not be printed: {one_line(error)}"
        if not report.files():
            tell(f"bincp: error: {problem}")
            return 1
        tell(f"bincp: warning: {problem}; wrote {', '.join(report.files())}")
    return 0


def _flush(status: int) -> int:
    """Flush stdout now, where a reader that has gone can be ignored, and return the status."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        drop_stdout()
    return status


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="bincp", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"bincp {__version__}")
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        help="one of the list below; `bincp COMMAND --help` is its manual",
    )
    for add in (
        add_demo,
        add_plan,
        add_sample,
        add_calibrate,
        add_predict,
        add_certify,
        add_audit,
        add_bench,
    ):
        add(commands)
    known = [f"  {name:<11}{command.summary}" for name, command in commands.choices.items()]
    parser.description = WHAT_FOR
    parser.epilog = "\n\n".join(["\n".join(["Commands:", *known]), MANUAL, EXIT_STATUS])
    return parser
