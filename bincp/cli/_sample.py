"""``bincp sample``: sample a model into a folder, by one process or by many."""

import argparse
import importlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bincp.cli._arguments import (
    UsageError,
    add_command,
    add_progress,
    add_smoothing_argument,
    as_usage,
    converter,
    integer,
)
from bincp.cli._report import Report, tell
from bincp.cli._rules import load_rule

_OPTIONS = (
    "phase", "keep", "first_id", "first_draw", "batch_size", "seed", "model_id", "parts",
    "check_inputs", "device", "progress",
)  # fmt: skip
"""Options of the command that are those of `bincp.sampling.run`."""

_KEEP = ("label-scores", "scores", "counts", "votes", "decisions")


def add_sample(commands: Any) -> None:
    parser = add_command(
        commands,
        _sample,
        "sample",
        "sample the scores of a model into a folder, by one process or many",
        description=(
            "Sample a torch model under random noise into a folder RUN, which the commands\n"
            "`bincp calibrate` and `bincp predict` take in place of scores. After a kill\n"
            "start it again: it goes on where it was. Start it several times, under torchrun,\n"
            "in a Slurm array or by hand with --shard: each process makes its share of parts.\n"
            "The numbers are the same in any case. A factory is a function without arguments:\n"
            "that of --model returns the model, that of --data inputs (n, ...), a pair of\n"
            "inputs and labels, or a torch Dataset.\n"
            'Needs: pip install "bincp[torch]"'
        ),
        example="  bincp sample --model mycode:network --data mycode:calibration_points \\\n"
        "      --smoothing gaussian:sigma=0.25,grid=255 --n-samples 64 \\\n"
        "      --phase calibration --out calibration\n"
        "  bincp calibrate calibration --smoothing gaussian:sigma=0.25,grid=255 \\\n"
        "      --ball l2:r=0.25 --out rule.json\n"
        "  bincp sample --model mycode:network --data mycode:images \\\n"
        "      --smoothing gaussian:sigma=0.25,grid=255 --n-samples 64 \\\n"
        "      --phase test --rules rule.json --out test\n"
        "  bincp predict rule.json test --out sets.npy",
        files=[
            "RUN is a folder with one file for each part, which appears when it is complete.",
            "RUN/seed is the secret of the noise: who knows it can plan an attack around it.",
            "--rules reads files of `bincp calibrate`.",
        ],
        more=[
            "Worker i of N: --shard i/N, else RANK and WORLD_SIZE, else SLURM_PROCID of\n"
            "SLURM_STEP_NUM_TASKS; a Slurm array multiplies."
        ],
        exit_status=(
            "Exit status: 0 this worker is done; 1 failed, with one line on stderr, and parts\n"
            "that are complete stay; 2 wrong usage; 130 ended by Ctrl-C, likewise."
        ),
    )
    for name, what in (("model", "the model"), ("data", "the inputs")):
        parser.add_argument(
            f"--{name}",
            required=True,
            metavar="MODULE:FACTORY",
            help=f"function that returns {what}; modules are looked for here, too",
        )
    add_smoothing_argument(parser)
    parser.add_argument(
        "--n-samples",
        type=integer("n_samples"),
        required=True,
        metavar="M",
        help="draws of each input",
    )
    parser.add_argument(
        "--phase",
        choices=("calibration", "test", "tuning"),
        required=True,
        help="what the noise is for; each phase has its own",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="folder of the run")
    _add_what(parser)
    _add_how(parser)


def _add_what(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--score", default="tps", help="name of the score (default tps)")
    parser.add_argument(
        "--keep",
        choices=_KEEP,
        help="what is kept (default: label-scores to calibrate, counts with --rules, else scores)",
    )
    parser.add_argument(
        "--rules",
        type=Path,
        nargs="+",
        metavar="RULE",
        help="files from `bincp calibrate`, whose thresholds are counted, or one that decides",
    )
    parser.add_argument(
        "--first-id",
        type=integer("first_id", low=0),
        default=0,
        metavar="ID",
        help="id of the first input (default 0)",
    )
    parser.add_argument(
        "--first-draw",
        type=integer("first_draw", low=0),
        default=0,
        metavar="DRAW",
        help="number of the first draw (default 0)",
    )
    parser.add_argument(
        "--seed",
        type=integer("seed", low=0, high=2**64 - 1),
        help="seed of the noise (default: drawn, and kept in RUN/seed)",
    )
    parser.add_argument("--model-id", metavar="NAME", help="names a model that is no torch module")


def _add_how(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--batch-size",
        type=integer("batch_size"),
        default=256,
        metavar="ROWS",
        help="rows of a forward pass (default 256)",
    )
    parser.add_argument(
        "--parts",
        type=integer("parts"),
        metavar="P",
        help="files that a new run is cut into at most (default 64 or more)",
    )
    parser.add_argument(
        "--shard", type=_shard, metavar="i/N", help="make the parts of worker i of N, from 0 on"
    )
    parser.add_argument("--device", help="where the model is evaluated (default: where it is)")
    parser.add_argument(
        "--no-check-inputs",
        dest="check_inputs",
        action="store_false",
        help="do not compare the inputs with those of the parts that are there",
    )
    add_progress(parser)


@converter
def _shard(text: str) -> tuple[int, int]:
    from bincp.sampling._run._shard import parse_shard

    return parse_shard(text)


def _sample(arguments: argparse.Namespace) -> Report:
    with as_usage():
        model, data = (_factory(name, getattr(arguments, name)) for name in ("model", "data"))
    from bincp.sampling import run

    options = {name: getattr(arguments, name) for name in _OPTIONS}
    options["keep"] = options["keep"] and options["keep"].replace("-", " ")
    if arguments.rules is not None:
        options["rules"] = [load_rule(path) for path in arguments.rules]
    given = data()
    x, labels = given if _is_pair(given) else (given, None)
    with _told_steps():
        made = run(
            arguments.out,
            model(),
            x,
            arguments.smoothing,
            arguments.n_samples,
            labels=labels,
            score=arguments.score,
            shard=arguments.shard,
            **options,
        )
    missing = made.missing()
    state = (
        f"{len(missing)} parts are owed by other workers, from {missing[0]} on" if missing else ""
    )
    lines = [
        f"{arguments.out}: {made.keep} of {made.n_inputs} inputs, {made.n_samples} draws each",
        state or f"complete, {made.n_parts} parts",
    ]
    values = {
        "out": str(arguments.out),
        "keep": made.keep,
        "n_inputs": made.n_inputs,
        "n_samples": made.n_samples,
        "n_classes": made.n_classes,
        "n_parts": made.n_parts,
        "missing": missing,
    }
    return Report(values, "\n".join(lines))


def _is_pair(data: Any) -> bool:
    return isinstance(data, tuple) and len(data) == 2


def _factory(option: str, text: str) -> Callable[[], Any]:
    """Return the function that an option names; its module may be in the working folder."""
    module_name, colon, name = text.partition(":")
    if not (colon and name and all(part.isidentifier() for part in module_name.split("."))):
        raise UsageError(f"--{option} must be MODULE:FACTORY, got {text!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    factory = getattr(importlib.import_module(module_name), name, None)
    if not callable(factory):
        raise UsageError(f"--{option} must name a function, got {text!r}")
    return factory  # type: ignore[no-any-return]


class _Teller(logging.Handler):
    """Prints each step as one line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(f"bincp: {record.getMessage()}")


@contextmanager
def _told_steps() -> Iterator[None]:
    """Show what is logged under ``bincp``."""
    logger, teller = logging.getLogger("bincp"), _Teller()
    level = logger.level
    logger.addHandler(teller)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(teller)
        logger.setLevel(level)
