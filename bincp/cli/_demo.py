"""``bincp demo``: train, calibrate, attack and compare on handwritten digits."""

import argparse
import dataclasses
import math
import textwrap
from pathlib import Path
from typing import Any

from bincp._utils.files import replace_file
from bincp._utils.tables import table
from bincp.cli import _demo_plot
from bincp.cli import _demo_run as demo
from bincp.cli._arguments import (
    OUTPUTS,
    add_command,
    add_progress,
    as_usage,
    integer,
    level,
    radius,
)
from bincp.cli._files import picture_file
from bincp.cli._report import WIDTH, Report


def add_demo(commands: Any) -> None:
    parser = add_command(
        commands,
        _demo,
        "demo",
        "see it work: train, attack and compare on handwritten digits",
        description="See in half a minute what the library does. Train a small network on\n"
        "scikit-learn's handwritten digits and calibrate BinCP for several l2 radii, with\n"
        "the mixture correction and early stopping. Measure coverage, set size and\n"
        "forward passes on clean and on attacked images, beside the rule of the BinCP\n"
        "paper and vanilla conformal prediction. Print a table, and draw a picture.\n"
        'Needs: pip install "bincp[demo]"',
        example="  bincp demo\n  bincp demo --radii 0 0.25 0.5 --plot demo.svg",
        files=["It reads none, and writes the picture.", OUTPUTS],
        more=["Equal seeds give equal numbers on one machine."],
    )
    radii = " ".join(f"{radius:g}" for radius in demo.Settings.radii)
    parser.add_argument(
        "--alpha",
        type=level("alpha"),
        default=demo.Settings.alpha,
        help="miscoverage level; the nominal coverage is 1 - alpha (default %(default)s)",
    )
    parser.add_argument(
        "--samples",
        type=integer("samples"),
        default=demo.Settings.n_samples,
        metavar="M",
        help="noise draws of BinCP for each calibration image, and the most for a test image; "
        "the paper's rule takes 1024 (default %(default)s)",
    )
    parser.add_argument(
        "--radii",
        type=radius,
        nargs="+",
        default=demo.Settings.radii,
        metavar="R",
        help=f"radii of the l2 ball, for pixels in [0, 1] (default {radii})",
    )
    parser.add_argument(
        "--seed",
        type=integer("seed", low=0, high=2**64 - 1),
        default=demo.Settings.seed,
        help="seed of the split, the network, the noise and the attack (default %(default)s)",
    )
    add_progress(parser)
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


def _demo(arguments: argparse.Namespace) -> Report:
    with as_usage():
        settings = demo.Settings(
            alpha=arguments.alpha,
            radii=tuple(arguments.radii),
            n_samples=arguments.samples,
            seed=arguments.seed,
        )
    demo.require_packages()
    target = picture_file(arguments.plot)
    result = demo.run(settings, progress=arguments.progress)
    data = {**dataclasses.asdict(result), "plot": None}
    text = _demo_text(result)
    if target is not None:
        picture = _demo_plot.plot(result)
        replace_file(target, lambda stream: picture.savefig(stream, format=target.suffix[1:]))
        data["plot"] = str(arguments.plot)
        text += f"\n\nwrote {arguments.plot}: coverage, set size and passes against the radius"
    return Report(data, text)


def _demo_text(result: demo.Result) -> str:
    settings = result.settings
    setting = (
        f"scikit-learn's digits: {settings.n_train} training, {settings.n_calibration} "
        f"calibration and {settings.n_test} test images; noise of sigma = {settings.sigma:g}, for "
        f"pixels in [0, 1], on the grid of 8 bits. Without noise the network names "
        f"{result.accuracy:.1%} of the test images rightly. Nominal coverage: "
        f"{settings.nominal_coverage:.1%}."
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
    header = ["radius", "method", "passes", "clean", "attack", "size", "size\nattack"]
    rows = [
        [radius, name, *_cells(outcome)]
        for row in result.rows
        for radius, name, outcome in (
            (f"{row.radius:g}", "BinCP", row.bincp),
            ("", "paper", row.paper),
            ("", "vanilla", row.vanilla),
        )
    ]
    return table(header, rows, left=(1,))


def _cells(outcome: demo.Outcome) -> list[str]:
    return [
        f"{outcome.passes:.1f}",
        f"{100 * outcome.coverage:.1f}",
        f"{100 * outcome.coverage_attacked:.1f}",
        f"{outcome.set_size:.2f}",
        f"{outcome.set_size_attacked:.2f}",
    ]


DEMO_LEGEND = """\
radius   of the l2 ball of perturbations, for pixels in [0, 1]
paper    the rule of the BinCP paper, with Clopper-Pearson bounds
vanilla  split conformal prediction with the same network, without noise
passes   evaluations of the network for a clean test image, on average
clean    percentage of the test images whose set holds the true label
attack   the same after projected gradient descent in the ball, on the smoothed
         network against BinCP and the paper's rule
size     labels in a set, on average over the test images"""


DEMO_ASSUMPTIONS = (
    "BinCP guarantees a coverage of at least 1 - alpha, clean and under any attack in the ball, on "
    "average over calibration sets, images and noise, if: calibration images and test images "
    "before the attack are exchangeable; the network was not trained or chosen on the calibration "
    "images; and the attacker does not know the noise that is drawn at test time. Nothing is "
    "assumed about the network: the noise is drawn on the grid of the images, and the guarantee "
    "covers the very floats that the network sees."
)


def _demo_summary(result: demo.Result) -> str:
    """Summarise the rows in sentences."""
    settings = result.settings
    last = max(result.rows, key=lambda row: row.radius)
    lowest = min(row.bincp.coverage_attacked for row in result.rows)
    alpha = 1 - settings.nominal_coverage
    spread = math.sqrt(alpha * (1 - alpha) * (1 / settings.n_calibration + 1 / settings.n_test))
    return (
        f"Vanilla sets cover {last.vanilla.coverage:.1%} of the clean images, and "
        f"{last.vanilla.coverage_attacked:.1%} under attack at radius {last.radius:g}. The lowest "
        f"coverage of BinCP under attack, over all radii, is {lowest:.1%}. At radius "
        f"{last.radius:g} its sets hold {last.bincp.set_size:.2f} labels on clean and "
        f"{last.bincp.set_size_attacked:.2f} on attacked images, for {last.bincp.passes:.1f} "
        f"forward passes; those of the paper's rule hold {last.paper.set_size:.2f} and "
        f"{last.paper.set_size_attacked:.2f}, for {last.paper.passes:.0f}. Chance of the split "
        f"moves an empirical coverage by {100 * spread:.1f} points (one standard deviation, at the "
        "nominal level)."
    )
