"""Sphinx extension: a page with a picture for each smoothing scheme that has certificates.

Nothing is written by hand but one example of each pair: what a certificate proves, and where that
comes from, is the docstring of its factory; whether it pays a charge, and what it assumes of the
model, says `Certificate.describe`. A registered pair without an example fails the build.
"""

import inspect
from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

import bincp
from bincp import balls, smoothing
from bincp._utils.drawing import COLOURS
from bincp.certificates import _registry
from bincp.certificates._certificate import facts_of

ALL_PAIRS = (
    ":doc:`All pairs </certificates/index>` has the formulas side by side, with what a bound costs."
)
TIGHT = {
    True: "no better bound holds",
    False: "not proven; a grid, a charge or a converted ball leaves something",
}
PIXELS = 3072  # of a colour image of 32 x 32
NORM_BALLS = (balls.L1(0.25, PIXELS), balls.L2(0.125, PIXELS), balls.Linf(1 / 255, PIXELS))
ADDITIVE = (
    smoothing.Gaussian(0.25, grid=255),
    smoothing.Laplace(0.25, grid=255),
    smoothing.Uniform(0.5, grid=255),
    smoothing.Expp(0.25, 4, grid=255),
    smoothing.Pareto(0.1, 3, grid=255),
    smoothing.UniformBall(20),
    smoothing.Exp1(0.25),
    smoothing.Exp2(0.25),
    smoothing.ExpInf(0.25),
    smoothing.PowInf(0.25, 2 * PIXELS),
)
SHAPES = (balls.Box([0.125, 0.25]), balls.Ellipsoid(0.25, [0.5, 1.0]))
NORMAL = (
    *((smoothing.Gaussian(0.25), ball) for ball in SHAPES),
    *(
        (smoothing.AnisotropicGaussian([0.25, 0.5]), ball)
        for ball in (balls.L1(0.25, 2), balls.L2(0.125, 2), balls.Linf(0.125, 2), *SHAPES)
    ),
)
DISCRETE = (
    (smoothing.SparseFlip(0.01, 0.6), balls.Flips(1, 2)),
    (smoothing.CategoricalFlip(5, 0.05, 0.6), balls.CategoricalFlips(1, 1, 1)),
    (
        smoothing.Joint(smoothing.SparseFlip(0.001, 0.4), smoothing.SparseFlip(0.01, 0.6)),
        balls.Joint(balls.Flips(0, 1), balls.Flips(1, 1)),
    ),
    (
        smoothing.GraphFlip(2810, 2879, attributes=smoothing.SparseFlip(0.01, 0.6)),
        balls.Flips(1, 2),
    ),
    (
        smoothing.GraphFlip(
            2810,
            2879,
            adjacency=smoothing.SparseFlip(0.0, 0.4),
            attributes=smoothing.SparseFlip(0.01, 0.6),
        ),
        balls.Joint(balls.Flips(0, 1), balls.Flips(1, 1)),
    ),
    (smoothing.SplittingNoise(0.25), balls.L1(8 / 255)),
    (smoothing.Ablation(45, 784), balls.L0(3)),
    (smoothing.BlockAblation(5, 32, 32), balls.Patch(3, 3)),
    (smoothing.BandAblation(4, 32), balls.Patch(3, 3)),
    (smoothing.Deletion(0.9), balls.EditDistance(2)),
    (smoothing.Staircase(8, 0.5, 2), balls.Substitutions(1, 2)),
    (smoothing.MessageInterception(0.3, 0.6), balls.AttackedNodes([[1, 2], [2]])),
    (smoothing.Partition(50), balls.TrainingPoints(3)),
)
OTHERS = (
    (smoothing.Hierarchical(smoothing.Gaussian(0.25), 0.9), balls.Elements(1, balls.L2(0.125))),
    (smoothing.Translation(3.0), balls.Translations(2)),
    (smoothing.Brightness(0.25), balls.BrightnessChange(0.125)),
)


def examples() -> Iterator[tuple[Any, Any]]:
    """Yield one example of each pair of ours."""
    yield from ((scheme, ball) for scheme in ADDITIVE for ball in NORM_BALLS)
    yield from (*NORMAL, *DISCRETE, *OTHERS)


def write_pages(app: Sphinx, config: Config) -> None:
    """Write a page and a picture for each scheme."""
    folder = Path(app.srcdir) / "certificates" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    found = _by_scheme()
    _check_that_nothing_is_missing(found)
    for scheme, made in found.items():
        _draw(folder / f"{scheme.__name__}.svg", made)
        _write(folder / f"{scheme.__name__}.rst", _page(scheme, made))


def _by_scheme() -> dict[type, list[bincp.Certificate]]:
    found: dict[type, list[bincp.Certificate]] = defaultdict(list)
    for scheme, ball in examples():
        found[type(scheme)].append(bincp.certify(scheme, ball))
    return found


def _check_that_nothing_is_missing(found: dict[type, Any]) -> None:
    pairs = {(type(scheme), type(ball)) for scheme, ball in examples()}
    ours = {pair[:2] for pair in bincp.registered() if pair[2].startswith("bincp.")}
    if missing := ours - pairs:
        raise ExtensionError(f"no example of {sorted(str(pair) for pair in missing)}")


def _page(scheme: type, certificates: list[bincp.Certificate]) -> str:
    name = scheme.__name__
    lines = [name, "=" * len(name), ""]
    lines += [inspect.getdoc(scheme).partition("\n\n")[0], ""]
    lines += [f"Parameters and notes: :class:`bincp.smoothing.{name}`.", ALL_PAIRS, ""]
    lines += [f".. image:: {name}.svg", "   :alt: lower and upper bounds of the examples below", ""]
    by_factory: dict[Any, list[bincp.Certificate]] = defaultdict(list)
    for certificate in certificates:
        by_factory[_factory(certificate)].append(certificate)
    for factory, alike in by_factory.items():
        lines += _section(factory, alike)
    return "\n".join(lines)


def _section(factory: Any, certificates: list[bincp.Certificate]) -> list[str]:
    """Return what one factory proves, with its examples."""
    names = [certificate.describe()["ball"]["type"] for certificate in certificates]
    title = f"Against {' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} balls"
    lines = ["", title, "-" * len(title), "", inspect.getdoc(factory) or "", ""]
    for certificate in certificates:
        lines += _example(certificate)
    return lines


def _example(certificate: bincp.Certificate) -> list[str]:
    described = certificate.describe()
    scheme, ball = (_written(described[key]) for key in ("smoothing", "ball"))
    lines = [
        ".. code-block:: python",
        "",
        f"   smoothing = bincp.smoothing.{scheme}",
        f"   bincp.certify(smoothing, bincp.balls.{ball})",
        "",
        f"* bounds at p = 0.9: {certificate.lower(0.9):.4g} and {certificate.upper(0.9):.4g}",
        f"* tight: {TIGHT[facts_of(certificate).tight]}",
    ]
    for key, text in (
        ("note", "note: {}"),
        ("charge", "charge for the drawn noise: {:.2g}"),
        ("assumes", "assumed of the model: {}"),
    ):
        if key in described:
            lines.append("* " + text.format(described[key]))
    return [*lines, ""]


def _written(description: Any) -> str:
    if not isinstance(description, dict):
        return f"{description:.4g}" if isinstance(description, float) else repr(description)
    given = ((k, v) for k, v in description.items() if k != "type" and v is not None)
    return f"{description['type']}({', '.join(f'{k}={_written(v)}' for k, v in given)})"


def _factory(certificate: bincp.Certificate) -> Any:
    described = certificate.describe()
    scheme, ball = (described[key]["type"] for key in ("smoothing", "ball"))
    return _registry._entries[getattr(smoothing, scheme), getattr(balls, ball)].factory


def _draw(path: Path, certificates: list[bincp.Certificate]) -> None:
    """Draw the bounds of each certificate, in one colour, with its name beside the axes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    p = np.linspace(0, 1, 501)
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(p, p, color="0.5", linewidth=1, linestyle=":", label="no attack")
    for certificate, colour in zip(certificates, cycle(COLOURS), strict=False):
        label = _written(certificate.describe()["ball"])
        axes.plot(p, certificate.lower(p), color=colour, label=label)
        axes.plot(p, certificate.upper(p), color=colour, linestyle="--")
    axes.set(xlabel="p at the clean input", ylabel="p in the ball", xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, frameon=False)
    with rc_context({"svg.hashsalt": "bincp"}):  # the same file in each build
        figure.savefig(path, metadata={"Date": None})


def _write(path: Path, text: str) -> None:
    """Write a file only where it changes, so that what is built stays."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension, as Sphinx asks for."""
    app.connect("config-inited", write_pages)  # before pages are looked for
    return {"parallel_read_safe": True}
