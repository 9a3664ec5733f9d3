"""Sphinx extension: the reference of each public module is written from its ``__all__``.

A page lists what its task needs; a public name that no page lists fails the build.
"""

import importlib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

# The pages: file, title, what it is for, and modules with the names that are theirs (all if none).
PAGES: list[tuple[str, str, str, dict[str, list[str]]]] = [
    (
        "calibration",
        "Calibrate and predict",
        "Rules that make prediction sets from scores, and what they are planned with.",
        {
            "bincp": [
                "BinCP",
                "Counts",
                "MondrianBinCP",
                "RobustRiskControl",
                "one_sample",
                "plan",
                "Plan",
                "SequentialRule",
                "SequentialTracker",
                "sweep",
                "Sweep",
                "SweepRow",
            ]
        },
    ),
    (
        "certificates",
        "Certificates",
        "What an attack inside a ball can do to a probability.",
        {
            "bincp": ["certify", "Certificate", "register", "registered"],
            "bincp.certificates": [
                "compose",
                "repeat",
                "product",
                "mixture",
                "hierarchical",
                "from_privacy",
                "from_gdp",
                "from_tradeoff",
            ],
            "bincp.radii": [],
            "bincp.testing": [],
        },
    ),
    ("smoothing", "Smoothing schemes", "The parameters of the noise.", {"bincp.smoothing": []}),
    ("balls", "Balls", "What the adversary may change.", {"bincp.balls": []}),
    (
        "shifts",
        "Shifts",
        "How far the law of the test points may be from that of the calibration points.",
        {"bincp.shifts": []},
    ),
    (
        "noise",
        "Noise",
        "Noise as a function of a key, without torch.",
        {"bincp.noise": []},
    ),
    (
        "sampling",
        "Sampling with torch",
        "From a model to scores, counts and prediction sets. Import `bincp.sampling` by name: it "
        "needs torch.",
        {"bincp.sampling": [], "bincp.adapters": [], "bincp.attacks": []},
    ),
    (
        "scores",
        "Scores, metrics and plots",
        "Conformity scores, and what prediction sets are judged by.",
        {"bincp.scores": [], "bincp.metrics": [], "bincp.plots": []},
    ),
    (
        "counting",
        "Counting and confidence bounds",
        "The compiled primitives.",
        {
            "bincp": [
                "count_exceedances",
                "decide",
                "kth_largest",
                "clopper_pearson_lower",
                "clopper_pearson_upper",
                "hoeffding_lower",
                "hoeffding_upper",
                "bernstein_lower",
                "bernstein_upper",
                "dkw_band",
                "get_include",
            ],
            "bincp.intervals": [
                "hoeffding_kl_lower",
                "hoeffding_kl_upper",
                "randomized_clopper_pearson_lower",
                "randomized_clopper_pearson_upper",
                "confidence_sequence_lower",
                "confidence_sequence_upper",
            ],
        },
    ),
    (
        "regression",
        "Regression",
        "Sets of real labels, from predictions of noisy inputs.",
        {"bincp.regression": []},
    ),
    (
        "audit",
        "Audit",
        "What a plain conformal predictor keeps under attack.",
        {"bincp": ["audit", "Audit"]},
    ),
    (
        "other_methods",
        "Other methods and smoothed classification",
        "The methods of the field on the same scores, and the smoothed classifier.",
        {"bincp.baselines": [], "bincp.classification": []},
    ),
    (
        "errors",
        "Errors and warnings",
        "What is raised, and what is warned of.",
        {"bincp.errors": []},
    ),
]


def write_pages(app: Sphinx, config: Config) -> None:
    """Write one page for each task."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    for file, title, purpose, modules in PAGES:
        _write(folder / f"{file}.rst", _page(title, purpose, modules))
    _check_that_nothing_is_missing()


def _page(title: str, purpose: str, modules: dict[str, list[str]]) -> str:
    lines = [title, "=" * len(title), "", purpose, ""]
    for module, names in modules.items():
        found = names or importlib.import_module(module).__all__
        if len(modules) > 1:
            lines += [module, "-" * len(module), ""]
        lines += [f".. currentmodule:: {module}", "", ".. autosummary::", "   :toctree: generated"]
        lines += ["", *(f"   {name}" for name in found), ""]
    return "\n".join(lines)


def _check_that_nothing_is_missing() -> None:
    import bincp

    listed = {name for *_, modules in PAGES for names in modules.values() for name in names}
    modules = {module.partition(".")[2] for *_, found in PAGES for module in found}
    elsewhere = set(importlib.import_module("bincp.errors").__all__)
    missing = set(bincp.__all__) - listed - modules - elsewhere
    if missing:
        raise ExtensionError(f"no page of the reference lists {sorted(missing)}")


def _write(path: Path, text: str) -> None:
    """Write a file only where it changes, so that what is built stays."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension, as Sphinx asks for."""
    app.connect("config-inited", write_pages)  # before pages are looked for
    return {"parallel_read_safe": True}
