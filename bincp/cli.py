"""The command line, ``bincp demo | plan | calibrate | predict | certify`` or ``python -m bincp``.

A command returns a report, which `main` prints as text or as JSON; what can be wrong with the
command line itself is found before any work is done. Exit status: 0 done, 1 failed with one line
``bincp: error: ...`` on stderr, 2 wrong usage.
"""

import argparse
import dataclasses
import inspect
import json
import math
import os
import re
import sys
import textwrap
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

import bincp
from bincp import demo, metrics
from bincp._files import replace_file
from bincp._levels import as_fraction, check_level, float_above, float_below
from bincp._rules import CORRECTIONS
from bincp._validation import check_integer, check_real
from bincp.calibration import MAX_SAMPLES, BinCP
from bincp.errors import TrivialSetWarning
from bincp.planning import Plan, plan
from bincp.registry import certify, registered

__all__ = ["main"]

FAILURES = (OSError, ValueError, TypeError, RuntimeError, ImportError, MemoryError)
INTERRUPTED = 130  # what a shell reports for a process that Ctrl-C ended

SPECS = """\
Noise and ball are written name:parameter=value,parameter=value, for example
  gaussian:sigma=0.25                   l2:r=0.12
  uniform:half_width=0.433              l1:r=0.25
  sparse-flip:p_plus=0.01,p_minus=0.6   flips:additions=1,deletions=3
  gaussian:sigma=0.25                   linf:r=2/255,dim=3072
  splitting-noise:half_width=0.25       l1:r=10/255
  block-ablation:size=5,height=32,width=32   patch:height=4,width=4
Radii are in the units of the array that gets the noise: if that holds pixels
scaled to [0, 1], a radius of 2/255 is two grey levels. An unknown name or
parameter is answered by those that are known."""

OUTPUTS = "An existing file is replaced, and only once the new one is complete."
WIDTH = 80


class Report(NamedTuple):
    """What a command has to say: plain values for ``--json``, text for everybody else."""

    data: dict[str, Any]
    text: str


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
        print(f"bincp: error: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _run(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_args(argv)
    with _one_line_warnings():
        try:
            report = arguments.run(arguments)
        except _UsageError as error:
            arguments.parser.error(_one_line(error))
    print(json.dumps(_plain(report.data)) if arguments.json else report.text)
    sys.stdout.flush()


# ---- commands -------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> Report:
    with _as_usage():
        settings = demo.Settings(
            alpha=arguments.alpha,
            radii=tuple(arguments.radii),
            n_samples=arguments.samples,
            seed=arguments.seed,
        )
    demo.require_packages()
    target = _picture_file(arguments.plot)
    result = demo.run(settings, progress=True)
    data = {**dataclasses.asdict(result), "plot": None}
    text = _demo_text(result)
    if target is not None:
        picture = demo.plot(result)
        replace_file(target, lambda stream: picture.savefig(stream, format=target.suffix[1:]))
        data["plot"] = str(arguments.plot)
        text += f"\n\nwrote {arguments.plot}: coverage and set size against the radius"
    return Report(data, text)


def _plan(arguments: argparse.Namespace) -> Report:
    with _as_usage():
        made = plan(
            certify(arguments.smoothing, arguments.ball),
            n=arguments.n,
            m=arguments.m,
            n_test_samples=arguments.n_test_samples,
            alpha=arguments.alpha,
            p=arguments.p,
            n_classes=arguments.n_classes,
            eta=arguments.eta,
        )
    data = _plan_data(made)
    text = f"{arguments.smoothing!r} against {arguments.ball!r}\n{made}"
    target = None if arguments.plot is None else _picture_file(arguments.plot)
    if arguments.loss is not None:
        samples = made.smallest_samples(arguments.loss)
        data |= {"loss": arguments.loss, "smallest_samples": samples}
        text += f"\nleast m' = m for a loss of {arguments.loss}: {samples or 'none up to 10000'}"
    if target is not None:
        made.plot(target)
        data["plot"] = str(arguments.plot)
        text += f"\nwrote {arguments.plot}: the share k / m' against m' = m"
    return Report(data, text)


def _calibrate(arguments: argparse.Namespace) -> Report:
    if arguments.correction == "clopper-pearson" and arguments.n_classes is None:
        raise _UsageError("--n-classes is needed with --correction clopper-pearson")
    with _as_usage():
        rule = BinCP(
            certify(arguments.smoothing, arguments.ball),
            alpha=arguments.alpha,
            p=arguments.p,
            tau=arguments.tau,
            correction=arguments.correction,
            eta=arguments.eta,
        )
    target = _output_file(arguments.out, [arguments.scores])
    rule.calibrate(
        _read_array(arguments.scores, arguments.key, "true_scores"),
        n_classes=arguments.n_classes,
        n_test_samples=arguments.n_test_samples,
    )
    rule.save(target)
    return Report(
        {**_rule_data(rule), "out": str(arguments.out)},
        f"{arguments.smoothing!r} against {arguments.ball!r}\n"
        f"{_rule_text(rule)}\n"
        f"wrote {arguments.out}",
    )


def _predict(arguments: argparse.Namespace) -> Report:
    inputs = [arguments.rule, arguments.scores, arguments.labels]
    target = _output_file(arguments.out, inputs, suffixes=(".npy", ".npz"))
    rule = BinCP.load(arguments.rule)
    if arguments.counts:
        counts = _read_array(arguments.scores, arguments.key, "counts")
        sets = rule.predict_set_from_counts(counts)
    else:
        sets = rule.predict_set(_read_array(arguments.scores, arguments.key, "scores"))
    data = _sets_data(sets)
    if arguments.labels is not None:
        data["coverage"] = metrics.coverage(sets, _read_array(arguments.labels, None, "labels"))
    replace_file(target, lambda stream: _save_sets(stream, sets, target.suffix))
    lines = [
        f"{key.replace('_', ' '):<18}{value if isinstance(value, int) else f'{value:.4g}'}"
        for key, value in data.items()
    ]
    return Report(
        {**data, "out": str(arguments.out)}, "\n".join([*lines, f"wrote {arguments.out}"])
    )


def _certify(arguments: argparse.Namespace) -> Report:
    with _as_usage():
        certificate = certify(arguments.smoothing, arguments.ball)
    bounds = []
    for written in arguments.p:
        # Decimals lie between doubles: each bound is taken at the double on its safe side.
        p = as_fraction("p", written)
        lower, upper = certificate.lower(float_below(p)), certificate.upper(float_above(p))
        bounds.append({"p": float(p), "lower": lower, "upper": upper})
    description = certificate.describe()
    rows = [
        [written, _rounded(bound["lower"], ROUND_FLOOR), _rounded(bound["upper"], ROUND_CEILING)]
        for written, bound in zip(arguments.p, bounds, strict=True)
    ]
    heading = f"{arguments.smoothing!r} against {arguments.ball!r}"
    if "note" in description:
        heading += f"\n{description['note']}"
    return Report(
        {"certificate": description, "bounds": bounds},
        f"{heading}\n\n{_table(['p', 'lower', 'upper'], rows)}",
    )


# ---- what the commands say ------------------------------------------------------------------


def _plan_data(made: Plan) -> dict[str, Any]:
    return {
        "certificate": made.certificate.describe(),
        "n": made.n,
        "n_samples": made.m,
        "n_test_samples": made.n_test_samples,
        "n_classes": made.n_classes,
        "alpha": str(made.alpha),
        "eta": str(made.eta),
        "p": None if made.p is None else str(made.p),
        "recommended_p": str(made.recommended_p),
        "success_rank": made.success_rank,
        "rank": made.rank,
        "min_count": made.min_count,
        "share": made.share,
        "certified_p": made.certified_p,
        "limit": made.limit,
        "ghost_count": made.ghost_count,
        "paper_count": made.paper_count,
        "trivial_cause": made.trivial_cause,
        "curtailed_draws": made.curtailed_draws,
        "sequential_draws": made.sequential_draws,
        "loss": None,
        "smallest_samples": None,
        "plot": None,
    }


def _rule_data(rule: BinCP) -> dict[str, Any]:
    return {
        "certificate": rule.certificate_description,
        "alpha": str(rule.alpha),
        "correction": rule.correction,
        "eta": str(rule.eta) if rule.correction == "clopper-pearson" else None,
        "tau": rule.tau_,
        "min_count": rule.min_count_,
        "rank": rule.rank_,
        "success_rank": rule.success_rank_,
        "n_calibration": rule.n_calibration_,
        "n_samples": rule.n_samples_,
        "n_test_samples": rule.n_test_samples_,
        "n_classes": rule.n_classes_,
        "dtype": rule.dtype_,
        "p": rule.p_,
        "p_lower": rule.p_lower_,
        "certified_p": rule.certified_p_,
    }


def _plain(value: Any) -> Any:
    """Return JSON values with "inf" and "-inf", which JSON lacks as numbers, as text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _rule_text(rule: BinCP) -> str:
    chain = []
    if rule.p_ is not None:
        chain.append(f"p = {rule.p_:g}")
    if rule.p_lower_ is not None:
        chain.append(f"confidence bound {_rounded(rule.p_lower_, ROUND_FLOOR, 4)}")
    if rule.certified_p_ is not None:
        chain.append(f"certified {_rounded(rule.certified_p_, ROUND_FLOOR, 4)}")
    return (
        f"calibrated on n = {rule.n_calibration_} points with m = {rule.n_samples_} scores each, "
        f"{rule.dtype_}\n"
        f"a label is in the set iff at least k = {rule.min_count_} of its m' = "
        f"{rule.n_test_samples_} scores reach tau = {rule.tau_!r}\n"
        f"({', '.join(chain) or 'by count weights, for m > m'})"
    )


def _sets_data(sets: npt.NDArray[np.bool_]) -> dict[str, Any]:
    return {
        "n_inputs": sets.shape[0],
        "n_classes": sets.shape[1],
        "average_set_size": metrics.average_set_size(sets),
        "singleton_rate": metrics.singleton_rate(sets),
        "empty_rate": metrics.empty_rate(sets),
    }


def _demo_text(result: demo.Result) -> str:
    settings = result.settings
    setting = (
        f"scikit-learn's digits: {settings.n_train} training, {settings.n_calibration} "
        f"calibration and {settings.n_test} test images; noise of sigma = {settings.sigma:g}, for "
        f"pixels in [0, 1]. Without noise the network names {result.accuracy:.1%} of the test "
        f"images rightly. Nominal coverage: {settings.nominal_coverage:.1%}."
    )
    return "\n\n".join(
        [
            textwrap.fill(setting, WIDTH),
            _demo_table(result),
            DEMO_LEGEND,
            textwrap.fill(_demo_summary(result), WIDTH),
            textwrap.fill(DEMO_ASSUMPTIONS, WIDTH),
        ]
    )


def _demo_table(result: demo.Result) -> str:
    header = [
        "radius",
        "m",
        "tau",
        "k",
        "cert.\np",
        "BinCP\nclean",
        "BinCP\nattack",
        "BinCP\nsize",
        "vanilla\nclean",
        "vanilla\nattack",
        "vanilla\nsize",
    ]
    rows = [
        [
            f"{row.radius:g}",
            f"{result.settings.n_samples}",
            f"{row.tau:.3f}",
            f"{row.min_count}",
            f"{row.certified_p:.3f}",
            f"{100 * row.bincp.coverage:.1f}",
            f"{100 * row.bincp.coverage_attacked:.1f}",
            f"{row.bincp.set_size:.2f}",
            f"{100 * row.vanilla.coverage:.1f}",
            f"{100 * row.vanilla.coverage_attacked:.1f}",
            f"{row.vanilla.set_size:.2f}",
        ]
        for row in result.rows
    ]
    return _table(header, rows)


DEMO_LEGEND = """\
radius   of the l2 ball of perturbations, for pixels in [0, 1]
tau, k   a label is in BinCP's set iff at least k of m noisy scores reach tau
cert. p  what an attack leaves, at worst, of the chance that a score reaches tau
clean    percentage of the test images whose set holds the true label
attack   the same after projected gradient descent in the ball; against BinCP it
         follows the gradient of the smoothed network
size     labels in a set, on average over the clean test images
vanilla  split conformal prediction with the same network, without noise"""

DEMO_ASSUMPTIONS = (
    "BinCP guarantees a coverage of at least 1 - alpha, clean and under any attack in the ball, on "
    "average over calibration sets, images and noise, if: calibration images and test images "
    "before the attack are exchangeable; the network was not trained or chosen on the calibration "
    "images; and the attacker does not know the noise that is drawn at test time. Nothing is "
    "assumed of the network."
)


def _demo_summary(result: demo.Result) -> str:
    """Say what the rows show, whatever that is."""
    settings = result.settings
    last = max(result.rows, key=lambda row: row.radius)
    lowest = min(row.bincp.coverage_attacked for row in result.rows)
    alpha = 1 - settings.nominal_coverage
    spread = math.sqrt(alpha * (1 - alpha) * (1 / settings.n_calibration + 1 / settings.n_test))
    return (
        f"Vanilla sets cover {last.vanilla.coverage:.1%} of the clean images, and "
        f"{last.vanilla.coverage_attacked:.1%} under attack at radius {last.radius:g}. The lowest "
        f"coverage of BinCP under attack, over all radii, is {lowest:.1%}; at radius "
        f"{last.radius:g} its sets hold {last.bincp.set_size:.2f} labels on clean and "
        f"{last.bincp.set_size_attacked:.2f} on attacked images. Chance of the split moves an "
        f"empirical coverage by {100 * spread:.1f} points (one standard deviation, at the nominal "
        "level)."
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return right-aligned columns under a header, whose cells may have several lines."""
    cells = [name.split("\n") for name in header]
    height = max(len(lines) for lines in cells)
    head = list(zip(*([""] * (height - len(lines)) + lines for lines in cells), strict=True))
    lines = [*head, *rows]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def _rounded(value: float, rounding: str, digits: int = 8) -> str:
    """Return a decimal on the safe side of a bound."""
    return str(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))


def _one_line(error: Exception | Warning) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show a warning as one line, and one of trivial sets each time."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = message if isinstance(message, str) else _one_line(message)
        print(f"bincp: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TrivialSetWarning)
        warnings.showwarning = show
        yield


# ---- files ----------------------------------------------------------------------------------


def _read_array(path: Path, key: str | None, usual_key: str) -> npt.NDArray[Any]:
    """Return the array of a .npy file, mapped, not read; or the one of that key of a .npz file."""
    with open(path, "rb") as stream:
        magic = stream.read(6)
        stream.seek(0)
        try:
            if magic == b"\x93NUMPY":
                if key is not None:
                    raise ValueError(f"`--key` must be left out with a .npy file, got {key!r}")
                return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            if magic[:4] == b"PK\x03\x04":
                with np.load(stream, allow_pickle=False) as archive:
                    return np.asarray(archive[_choose_key(archive.files, key, usual_key)])
        except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            raise ValueError(f"{path}: {error}") from None
    raise ValueError(f"{path}: must be a .npy or .npz file that NumPy wrote, got something else")


def _choose_key(keys: list[str], key: str | None, usual_key: str) -> str:
    if key is None:
        key = keys[0] if len(keys) == 1 else usual_key
    if key not in keys:
        raise ValueError(f"`--key` must be one of {', '.join(keys)}, got {key!r}")
    return key


def _output_file(
    path: Path, inputs: Sequence[Path | None], *, suffixes: Sequence[str] | None = None
) -> Path:
    """Return where to write, or refuse before any work is done."""
    if suffixes is not None and path.suffix not in suffixes:
        raise _UsageError(f"the output must end in {' or '.join(suffixes)}, got {path}")
    target = path.resolve()  # a symbolic link stays one
    if target in [source.resolve() for source in inputs if source is not None]:
        raise _UsageError(f"the output must not be one of the inputs, got {path}")
    if target.exists() and not target.is_file():
        raise _UsageError(f"the output must be a file, got {path}")
    if not target.parent.is_dir():
        raise _UsageError(f"the output must be in a folder that exists, got {path}")
    return target


def _picture_file(path: Path | None) -> Path | None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    formats = sorted(f".{name}" for name in FigureCanvasAgg.get_supported_filetypes())
    return None if path is None else _output_file(path, [], suffixes=formats)


def _save_sets(stream: BinaryIO, sets: npt.NDArray[np.bool_], suffix: str) -> None:
    if suffix == ".npz":
        np.savez_compressed(stream, sets=sets)
    else:
        np.save(stream, sets, allow_pickle=False)


# ---- arguments ------------------------------------------------------------------------------


class _UsageError(ValueError):
    """A command line that cannot be meant."""


@contextmanager
def _as_usage() -> Iterator[None]:
    """Take errors of what the command line said for errors of usage."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise _UsageError(str(error)) from None


def _converter(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a converter whose errors argparse reports in their own words."""

    def checked(text: str) -> Any:
        try:
            return convert(text)
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(_one_line(error)) from None

    return checked


def _level(name: str, *, closed_high: bool = False) -> Callable[[str], str]:
    """Check a level and keep it as it was written: it decides a rank."""

    def convert(text: str) -> str:
        check_level(name, text, closed_high=closed_high)
        return text

    return _converter(convert)


def _integer(name: str, *, low: int = 1, high: int | None = None) -> Callable[[str], int]:
    return _converter(lambda text: check_integer(name, _number(text), low=low, high=high))


@_converter
def _probability(text: str) -> str:
    if not 0 <= as_fraction("p", text) <= 1:
        raise ValueError(f"`p` must be in [0, 1], got {text}")
    return text


@_converter
def _radius(text: str) -> float:
    return check_real("radius", _number(text), low=0)


@_converter
def _smoothing(text: str) -> object:
    return _parse_spec("smoothing", text, [smoothing for smoothing, _, _ in registered()])


@_converter
def _ball(text: str) -> object:
    return _parse_spec("ball", text, [ball for _, ball, _ in registered()])


def _parse_spec(kind: str, text: str, types: list[type]) -> object:
    """Make an object from name:parameter=value,parameter=value."""
    name, _, rest = text.partition(":")
    known = {_kebab(cls): cls for cls in reversed(types)}  # of equal names, the first registered
    cls = known.get(name.strip().lower())
    if cls is None:
        usages = sorted(f"{other}:{','.join(_parameters(known[other]))}" for other in known)
        raise ValueError(f"unknown {kind} {name!r}; known are {'  '.join(usages)}")
    parameters = _parameters(cls)
    values: dict[str, int | float] = {}
    for item in rest.split(",") if rest else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in parameters or key in values:
            raise ValueError(
                f"{_kebab(cls)} takes {', '.join(parameters)}, each once, got {item!r}"
            )
        values[key] = _number(value)
    missing = [key for key, required in parameters.items() if required and key not in values]
    if missing:
        raise ValueError(f"{_kebab(cls)} needs {', '.join(missing)}, got {text!r}")
    return cls(**values)


def _kebab(cls: type) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def _parameters(cls: type) -> dict[str, bool]:
    """Return the parameters of a scheme or ball, and whether each is required."""
    return {
        name: parameter.default is parameter.empty
        for name, parameter in inspect.signature(cls).parameters.items()
    }


def _number(text: str) -> int | float | None:
    """Return an integer as one, a decimal or a fraction such as 2/255 as a float, none as None."""
    if text.strip().lower() == "none":
        return None
    try:
        return int(text)
    except ValueError:
        numerator, slash, denominator = text.partition("/")
    try:
        return float(numerator) / (float(denominator) if slash else 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"a value must be a number, got {text!r}") from None


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
    parser.add_argument("--version", action="version", version=f"bincp {bincp.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (_add_demo, _add_plan, _add_calibrate, _add_predict, _add_certify):
        add(commands)
    return parser


def _add_command(
    commands: Any, run: Callable[[argparse.Namespace], Report], name: str, *texts: str
) -> argparse.ArgumentParser:
    """Add a command; the texts are its line in the list, its description and its epilog."""
    summary, description, epilog = texts
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, not text")
    parser.set_defaults(run=run, parser=parser)
    return parser


def _add_demo(commands: Any) -> None:
    parser = _add_command(
        commands,
        _demo,
        "demo",
        "train, calibrate, attack and compare on handwritten digits (about a minute)",
        "Train a small network on scikit-learn's handwritten digits, calibrate BinCP for\n"
        "several l2 radii, and measure coverage and set size on clean and on attacked\n"
        "images, beside vanilla conformal prediction. Prints a table, draws a picture.\n"
        'Needs: pip install "bincp[demo]"',
        "Example:\n  bincp demo --radii 0 0.25 0.5 --plot demo.png\n\n"
        f"Equal seeds give equal numbers on one machine.\n{OUTPUTS}",
    )
    radii = " ".join(f"{radius:g}" for radius in demo.Settings.radii)
    parser.add_argument(
        "--alpha",
        type=_level("alpha"),
        default=demo.Settings.alpha,
        help="miscoverage level; the nominal coverage is 1 - alpha (default %(default)s)",
    )
    parser.add_argument(
        "--samples",
        type=_integer("samples"),
        default=demo.Settings.n_samples,
        metavar="M",
        help="noise draws for each image (default %(default)s)",
    )
    parser.add_argument(
        "--radii",
        type=_radius,
        nargs="+",
        default=demo.Settings.radii,
        metavar="R",
        help=f"radii of the l2 ball, for pixels in [0, 1] (default {radii})",
    )
    parser.add_argument(
        "--seed",
        type=_integer("seed", low=0, high=2**64 - 1),
        default=demo.Settings.seed,
        help="of the split, the network, the noise and the attack (default %(default)s)",
    )
    picture = parser.add_mutually_exclusive_group()
    picture.add_argument(
        "--plot",
        type=Path,
        default=Path("bincp-demo.png"),
        metavar="FILE",
        help="where the picture goes; its ending says the format (default %(default)s)",
    )
    picture.add_argument(
        "--no-plot", dest="plot", action="store_const", const=None, help="make no picture"
    )


def _add_alpha(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--alpha",
        type=_level("alpha"),
        default="0.1",
        help="miscoverage level; the nominal coverage is 1 - alpha (default 0.1)",
    )


def _add_eta(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--eta",
        type=_level("eta"),
        default="0.001",
        help="part of alpha, itself a probability, that clopper-pearson spends on the "
        "sampling error (default 0.001)",
    )


def _add_plan(commands: Any) -> None:
    parser = _add_command(
        commands,
        _plan,
        "plan",
        "what a calibration will find, before any model call",
        "Print the least count k of m' scores that a calibration will ask of a label, for\n"
        "each correction, with the number of draws that a prediction will take. It\n"
        "depends on no scores.",
        "Example:\n"
        "  bincp plan --smoothing gaussian:sigma=0.25 --ball l2:r=0.25 -n 200 -m 64 \\\n"
        f"      --n-classes 10 --loss 0.05 --plot plan.png\n\n{SPECS}\n\n{OUTPUTS}",
    )
    _add_spec_arguments(parser)
    parser.add_argument(
        "-n", type=_integer("n"), required=True, metavar="N", help="number of calibration points"
    )
    parser.add_argument(
        "-m",
        type=_integer("m", high=MAX_SAMPLES),
        required=True,
        metavar="M",
        help="scores of each of them",
    )
    parser.add_argument(
        "--n-test-samples",
        type=_integer("n_test_samples", high=MAX_SAMPLES),
        metavar="M",
        help="scores of each label at prediction, m' (default: m)",
    )
    _add_alpha(parser)
    parser.add_argument(
        "--p",
        type=_level("p", closed_high=True),
        help="share of its m scores that must reach the threshold of a calibration point "
        "(default: chosen by n, m, m', alpha and the certificate)",
    )
    parser.add_argument(
        "--n-classes",
        type=_integer("n_classes"),
        metavar="K",
        help="number of labels; adds the correction of the paper",
    )
    _add_eta(parser)
    parser.add_argument(
        "--loss",
        type=_level("loss"),
        help="also print the least m' = m with which k / m' is no more than a share LOSS below "
        "what infinitely many samples allow",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw k / m' against m' = m; the ending of FILE says the format",
    )


def _add_calibrate(commands: Any) -> None:
    parser = _add_command(
        commands,
        _calibrate,
        "calibrate",
        "find the decision rule from sampled scores of the true labels",
        "Find the decision rule (tau, k): a label is in the prediction set iff at least k\n"
        "of its scores reach tau. SCORES holds, for each of n calibration points, m scores\n"
        "of its true label under random noise: an array (n, m) of floats, larger meaning\n"
        "better agreement.",
        "Example:\n"
        "  bincp calibrate true_scores.npy --smoothing gaussian:sigma=0.25 \\\n"
        f"      --ball l2:r=0.12 --n-classes 10 --out rule.json\n\n{SPECS}\n\n{OUTPUTS}",
    )
    parser.add_argument("scores", type=Path, metavar="SCORES", help=".npy or .npz file")
    _add_spec_arguments(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="RULE", help="JSON file to write"
    )
    _add_alpha(parser)
    fixed = parser.add_mutually_exclusive_group()
    fixed.add_argument(
        "--p",
        type=_level("p", closed_high=True),
        help="share of its m scores that must reach the threshold of a calibration point; tau is "
        "calibrated (default 0.6, or 0.6 to 0.8 by the certificate for mixture)",
    )
    fixed.add_argument(
        "--tau",
        type=_converter(float),
        help="threshold, chosen without the calibration and test data; p is calibrated",
    )
    parser.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default="mixture",
        help='of the sampling error (default mixture); "none" has no finite-sample guarantee',
    )
    _add_eta(parser)
    parser.add_argument(
        "--n-classes",
        type=_integer("n_classes"),
        metavar="K",
        help="number of labels; needed by clopper-pearson",
    )
    parser.add_argument(
        "--n-test-samples",
        type=_integer("n_test_samples"),
        metavar="M",
        help="scores of each label at prediction, m' (default: as many as in SCORES)",
    )
    _add_key_argument(parser, "true_scores")


def _add_predict(commands: Any) -> None:
    parser = _add_command(
        commands,
        _predict,
        "predict",
        "prediction sets from a decision rule and sampled scores",
        "Apply a decision rule. SCORES holds m' scores of each of K labels of each of n\n"
        "inputs under random noise: an array (n, K, m') of the dtype that the rule was\n"
        "calibrated with. With --counts it holds integers (n, K): how many of the m'\n"
        "scores reach tau.",
        "Example:\n  bincp predict rule.json scores.npy --labels labels.npy --out sets.npy\n\n"
        "The sets are a boolean array (n, K); a .npz file holds it as `sets`. With labels\n"
        f"the coverage is measured.\n\n{OUTPUTS}",
    )
    parser.add_argument("rule", type=Path, metavar="RULE", help="file from `bincp calibrate`")
    parser.add_argument("scores", type=Path, metavar="SCORES", help=".npy or .npz file")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="SETS", help=".npy or .npz file to write"
    )
    parser.add_argument("--counts", action="store_true", help="SCORES holds exceedance counts")
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="true labels (n,), integers in [0, K); a .npz file holds one array or `labels`",
    )
    _add_key_argument(parser, "scores or counts")


def _add_certify(commands: Any) -> None:
    parser = _add_command(
        commands,
        _certify,
        "certify",
        "worst and best case of a probability under attack",
        "Print how far an attack inside the ball can move the probability that a noisy\n"
        "score reaches a threshold. If it is p at the clean input, it is at least `lower`\n"
        "at the attacked one; if it is p at the attacked input, it was at most `upper` at\n"
        "the clean one.",
        "Example:\n"
        "  bincp certify --smoothing gaussian:sigma=0.25 --ball l2:r=0.12 --p 0.6 0.9\n\n"
        f"{SPECS}\n\n"
        "Lower bounds are rounded down and upper bounds up; JSON has every digit of them.",
    )
    _add_spec_arguments(parser)
    parser.add_argument(
        "--p",
        type=_probability,
        nargs="+",
        required=True,
        help="probabilities, in [0, 1]",
    )


def _add_spec_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--smoothing",
        type=_smoothing,
        required=True,
        metavar="NOISE",
        help="noise that the scores were drawn with, such as gaussian:sigma=0.25",
    )
    parser.add_argument(
        "--ball",
        type=_ball,
        required=True,
        metavar="BALL",
        help="perturbations to withstand, such as l2:r=0.12, in the units of the noise",
    )


def _add_key_argument(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument(
        "--key",
        help=f"name of the array in a .npz file (default: the only one, or {usual})",
    )
