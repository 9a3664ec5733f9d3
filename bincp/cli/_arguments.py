"""Arguments that the commands share, and the conversion of their text."""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

from bincp._utils.levels import as_fraction, check_level
from bincp._utils.validation import check_integer, check_real, check_threshold
from bincp.calibration._arguments import check_passes
from bincp.calibration._clopper_pearson import CORRECTIONS, UNIONS
from bincp.calibration._departures import Poison, check_label_noise, check_poison
from bincp.certificates import Certificate
from bincp.cli._grammar import (
    number,
    parse_ball,
    parse_certificate,
    parse_shift,
    parse_smoothing,
)
from bincp.cli._report import WIDTH, Report, one_line
from bincp.errors import CertificateError

SPECS = """\
Noise and ball are written name:parameter=value,parameter=value, for example
  gaussian:sigma=0.25                   l2:r=0.12
  gaussian:sigma=0.25,grid=255          l2:r=0.25
  uniform:half_width=0.433              l1:r=0.25
  sparse-flip:p_plus=0.01,p_minus=0.6   flips:additions=1,deletions=3
  gaussian:sigma=0.25                   linf:r=2/255,dim=3072
  splitting-noise:half_width=0.25       l1:r=10/255
  block-ablation:size=5,height=32,width=32   patch:height=4,width=4
A list is written [0.1,0.2], and a scheme or ball inside another one stands in
parentheses (quote them, for the shell):
  "anisotropic-gaussian:std=[0.5,2]"    "box:r=[0.1,0.2]"
  "hierarchical:inner=(gaussian:sigma=0.25),q=0.9"
                                        "elements:r=2,within=(l2:r=0.1)"
Radii are in the units of the array that gets the noise: if that holds pixels
scaled to [0, 1], a radius of 2/255 is two grey levels. The error for an
unknown name or parameter lists the known ones."""

CERTIFICATES = """\
--certificate takes the place of both. It is NOISE@BALL, a certificate made of
certificates, or the JSON object that --json prints for one:
  "gaussian:sigma=0.25@l2:r=0.12"
  "compose(gaussian:sigma=0.25@l2:r=0.1; gaussian:sigma=0.25@l1:r=0.2)"
  "mixture(uniform:half_width=1@l1:r=0.1; uniform:half_width=2@l1:r=0.1;
           weights=[1/3,2/3])"
  "repeat(from-privacy(epsilon=0.5; delta=1e-5); r=3)"
The others are product, hierarchical, from-gdp and from-tradeoff."""

OUTPUTS = "An existing file is replaced once the new one is complete."

EXIT_STATUS = """\
Exit status: 0 done; 1 failed, with one line on stderr, and no file is written;
2 wrong usage, found before any work; 130 ended by Ctrl-C."""


class Parser(argparse.ArgumentParser):
    """A parser that loses no value, and takes every negative number for one.

    The parser of the standard library takes -0.5 for a value, but -5e-1, -1. and -inf for unknown
    options, and of an option with several values that stands twice it drops the first ones.
    """

    summary = ""
    """What the command does, in the list of all commands."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        if options.get("nargs") == "+":
            options["action"] = _Several
        return super().add_argument(*names, **options)


class _Several(argparse.Action):
    """Collects all values of an option that may stand several times."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if before is self.default else [*before, *values])


class UsageError(ValueError):
    """A command line that asks for something impossible."""


@contextmanager
def as_usage() -> Iterator[None]:
    """Report errors about the values of options as errors of usage."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def converter(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a converter whose errors argparse reports in their own words."""

    def checked(text: str) -> Any:
        try:
            return convert(text)
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(one_line(error)) from None

    return checked


def level(name: str, *, closed_high: bool = False) -> Callable[[str], str]:
    """Return a converter that checks a level and keeps its decimal, which decides a rank."""

    def convert(text: str) -> str:
        check_level(name, text, closed_high=closed_high)
        return text

    return converter(convert)


def integer(name: str, *, low: int = 1, high: int | None = None) -> Callable[[str], int]:
    return converter(lambda text: check_integer(name, number(text), low=low, high=high))


def positive(name: str) -> Callable[[str], float]:
    return converter(lambda text: check_real(name, number(text), low=0, open_low=True))


def threshold(name: str) -> Callable[[str], float]:
    return converter(lambda text: check_threshold(name, number(text)))


@converter
def probability(text: str) -> str:
    if not 0 <= as_fraction("p", text) <= 1:
        raise ValueError(f"`p` must be in [0, 1], got {text}")
    return text


@converter
def radius(text: str) -> float:
    return check_real("radius", number(text), low=0)


@converter
def _smoothing(text: str) -> object:
    return parse_smoothing(text)


@converter
def _ball(text: str) -> object:
    return parse_ball(text)


@converter
def _certificate(text: str) -> Certificate:
    try:
        return parse_certificate(text)
    except CertificateError as error:
        raise ValueError(str(error)) from None


def add_command(
    commands: Any,
    run: Callable[[argparse.Namespace], Report],
    name: str,
    summary: str,
    *,
    description: str,
    example: str,
    files: Sequence[str],
    more: Sequence[str] = (),
    exit_status: str = EXIT_STATUS,
    json_file: bool = False,
) -> argparse.ArgumentParser:
    """Add a command, whose help is a short manual.

    ``files`` says what it reads and writes, and ``more`` has further paragraphs. With ``json_file``
    its option --json takes a file, too, which the command itself writes.
    """
    indented = [fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ") for text in files]
    parts = [f"Example:\n{example}", "\n".join(["Files:", *indented]), *more, exit_status]
    parser: Parser = commands.add_parser(
        name,
        description=description,
        epilog="\n\n".join(parts),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.summary = summary
    if json_file:
        parser.add_argument(
            "--json",
            nargs="?",
            type=Path,
            const=True,
            metavar="FILE",
            help=f"print one JSON object, not text, or write it to a file. {OUTPUTS}",
        )
    else:
        parser.add_argument("--json", action="store_true", help="print one JSON object, not text")
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_progress(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show a progress bar on stderr, or none (default: after two seconds, if stderr is a "
        "terminal)",
    )


def add_alpha(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    parser.add_argument(
        "--alpha",
        type=level("alpha"),
        help="miscoverage level; the nominal coverage is 1 - alpha (default 0.1)",
        **({"nargs": "+", "default": ["0.1"]} if several else {"default": "0.1"}),
    )


def add_passes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passes",
        type=_passes,
        metavar="PASSES",
        help="for mixture: decide labels early, on at most so many forward passes on average in a "
        "reference population, or auto (default: count all m' draws)",
    )


@converter
def _passes(text: str) -> str:
    check_passes(text, "mixture", None)
    return text


def add_correction(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default="mixture",
        metavar="CORRECTION",
        help=f"correction for finitely many samples: one of {', '.join(CORRECTIONS)} (default "
        "mixture); none has no finite-sample guarantee",
    )
    parser.add_argument(
        "--eta",
        type=level("eta"),
        help="share of alpha that clopper-pearson spends on the error of sampling, in (0, alpha) "
        "(default 0.001)",
    )
    parser.add_argument(
        "--union",
        choices=UNIONS,
        help="how clopper-pearson splits eta over its confidence bounds: eta / (n + K) each, or "
        f"eta / 2 each (default {UNIONS[0]})",
    )


def bound_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return those of --eta and --union that are given; only clopper-pearson has such bounds."""
    options = {"eta": arguments.eta, "union": arguments.union}
    given = {name: value for name, value in options.items() if value is not None}
    if given and arguments.correction != "clopper-pearson":
        raise UsageError(
            f"--{min(given)} needs --correction clopper-pearson, got {arguments.correction}, "
            "which has no confidence bounds"
        )
    return given


def add_guarantee(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--guarantee",
        type=_guarantee,
        default="marginal",
        metavar="GUARANTEE",
        help="marginal (default), on average over calibration sets, or, for mixture, "
        "training-conditional:delta=DELTA, for all but a share DELTA of them",
    )


@converter
def _guarantee(text: str) -> str | tuple[str, str]:
    if text == "marginal":
        return text
    kind, separator, delta = text.partition(":delta=")
    if kind != "training-conditional" or not separator:
        raise ValueError(f"must be marginal or training-conditional:delta=DELTA, got {text!r}")
    check_level("delta", delta)
    return kind, delta


def add_departures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--poisoned",
        type=_poison,
        default=0,
        metavar="B",
        help="the most calibration points that may have been replaced by any others (default 0), "
        "or deletions:D or insertions:D where points were only deleted or only inserted",
    )
    parser.add_argument(
        "--label-noise",
        type=_label_noise,
        metavar="KIND:SIZE",
        help="what is known of wrong calibration labels: count:5, rate:0.02 (for each input and "
        "label) or mean-rate:0.02",
    )
    parser.add_argument(
        "--shift",
        type=_shift,
        metavar="SHIFT",
        help="how far the law of the test points may be from that of the calibration points, "
        "such as total-variation:rho=0.02, chi-squared:rho=0.01,reference=test, kl:rho=0.01, "
        "likelihood-ratio:low=0.8,high=1.25 or levy-prokhorov:rho=0.01,ball=l2:r=0.1",
    )
    parser.add_argument(
        "--attacked-calibration",
        action="store_true",
        help="the calibration inputs, too, may have been moved within the ball before their noise",
    )


DEPARTURES = ("poisoned", "label_noise", "shift", "attacked_calibration")
"""Options of `add_departures`, which are those of `BinCP`."""


@converter
def _poison(text: str) -> Poison:
    kind, colon, size = text.partition(":")
    poison = (kind, number(size)) if colon else number(text)
    return check_poison(poison)


@converter
def _label_noise(text: str) -> tuple[str, int | str]:
    kind, _, size = text.partition(":")
    noise = (kind, check_integer("label_noise", number(size), low=0) if kind == "count" else size)
    check_label_noise(noise)
    return noise


@converter
def _shift(text: str) -> object:
    return parse_shift(text)


def add_spec_arguments(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    add_smoothing_argument(parser, required=False)
    add_ball_argument(parser, required=False, several=several)
    parser.add_argument(
        "--certificate",
        type=_certificate,
        metavar="CERTIFICATE",
        help="a certificate in the place of --smoothing and --ball, see below",
    )


def check_spec(arguments: argparse.Namespace, ball: object) -> None:
    """Refuse a certificate beside noise or ball, and one of these without the other."""
    written = {"smoothing": arguments.smoothing, "ball": ball}
    given = [name for name, value in written.items() if value is not None]
    if arguments.certificate is not None and given:
        raise UsageError(f"--{given[0]} must be left out with --certificate")
    missing = [f"--{name}" for name in written if name not in given]
    if arguments.certificate is None and missing:
        raise UsageError(
            f"the following arguments are required: {', '.join(missing)} (or --certificate)"
        )


def certificate_name(arguments: argparse.Namespace, ball: object) -> str:
    """Return what a certificate is of, for a heading."""
    if arguments.certificate is not None:
        return repr(arguments.certificate)
    return f"{arguments.smoothing!r} against {ball!r}"


def add_smoothing_argument(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "--smoothing",
        type=_smoothing,
        required=required,
        metavar="NOISE",
        help="noise of the scores, such as gaussian:sigma=0.25",
    )


def add_ball_argument(
    parser: argparse.ArgumentParser, *, required: bool = True, several: bool = False
) -> None:
    parser.add_argument(
        "--ball",
        type=_ball,
        nargs="+" if several else None,
        required=required,
        metavar="BALL",
        help="perturbations to withstand, such as l2:r=0.12, in the units of the noise",
    )


def add_key_argument(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument(
        "--key",
        help=f"name of the array of SCORES in a .npz file (default: {usual}, or the only array)",
    )
