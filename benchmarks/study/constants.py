"""What other constants of the choice of a rule would give, on cached scores."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.study.hindsight import Bench, Setting
from benchmarks.study.report import Problem
from bincp.calibration import _search as search
from bincp.calibration import _wide_reference as population
from bincp.calibration._label_test import LabelTest
from bincp.calibration._search import Price, Search, choose_rule

__all__ = ["alternatives_table", "spreads_table"]

M = 64
SPREADS = tuple(map(Fraction, ("0.5", "0.64", "0.8", "0.9", "1.2", "1.6", "2", "2.6", "3.3")))

Array = npt.NDArray[Any]

ALTERNATIVES: dict[str, tuple[Any, dict[str, Any]]] = {
    "as they are": (population, {}),
    "true labels: sd 2": (population, {"SPREAD": 2.0}),
    "true labels: sd 4": (population, {"SPREAD": 4.0}),
    "wrong labels: sd 1": (population, {"SPREAD_OF_WRONG": 1.0}),
    "wrong labels: sd 3": (population, {"SPREAD_OF_WRONG": 3.0}),
    "wrong labels: 4 lower": (population, {"GAP": 4.0}),
    "wrong labels: 8 lower": (population, {"GAP": 8.0}),
    "1 wrong label": (population, {"WRONG_LABELS": 1}),
    "9 wrong labels": (population, {"WRONG_LABELS": 9}),
    "price 0.02": (search, {"PRICE": 0.02}),
    "price 0.1": (search, {"PRICE": 0.1}),
}


@contextmanager
def changed(module: Any, values: dict[str, Any]) -> Iterator[None]:
    """Change constants for a while; what was computed with others is forgotten."""
    before = {name: getattr(module, name) for name in values}

    def put(these: dict[str, Any]) -> None:
        for name, value in these.items():
            setattr(module, name, value)
        for kept in (choose_rule, population.levels, population._population):
            kept.cache_clear()

    put(values)
    try:
        yield
    finally:
        put(before)


def alternatives_table(folder: Path, settings: Sequence[Setting], n_splits: int) -> Iterator[str]:
    """Yield what other constants would give: geometric means of sizes and passes."""
    yield "## Other constants"
    yield ""
    yield (
        f"Sizes and passes over those of the constants as they are: geometric means over "
        f"{len(settings)} settings, {n_splits} splits each. The first pair is for the budgets"
    )
    yield 'of the settings, the second for `passes="auto"`, which weighs passes by the price.'
    yield ""
    yield "| constants | size | passes | size, auto | passes, auto |"
    yield "|---|---|---|---|---|"
    benches = [(setting, Bench(folder, setting, n_splits)) for setting in settings]

    def logs() -> Array:
        rows = []
        for setting, bench in benches:
            rules = (choose_rule(bench.setup, price) for price in (setting.price, Price(True)))
            rows.append(np.concatenate([bench.measure(rule).mean(axis=0) for rule in rules]))
        return np.log(rows)

    base = logs()
    for name, (module, values) in ALTERNATIVES.items():
        with changed(module, values):
            ratios = np.exp((logs() - base).mean(axis=0)) if values else np.ones(4)
        yield f"| {name} | {' | '.join(f'{ratio:.3f}' for ratio in ratios)} |"


def spreads_table(folder: Path, found: Sequence[Problem], n_splits: int) -> Iterator[str]:
    """Yield size and passes by the spread, with the k that the population finds best."""
    yield "## The spread"
    yield ""
    yield (
        f"Size over that of the fixed count of the same m', and passes, at the second radius, "
        f"n = 200, alpha = 0.1, m = {M}, {n_splits} splits; with the best k of the population."
    )
    yield ""
    names = [problem.name for problem in found]
    yield f"| m' | spread | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for m_test in (16, 32):
        settings = [Setting(name, 1, "tps", 200, "0.1", M, m_test, 0.0) for name in names]
        benches = [Bench(folder, setting, n_splits) for setting in settings]
        fixed_ones = [
            bench.measure(choose_rule(bench.setup, Price(False))).mean(axis=0) for bench in benches
        ]
        for spread in SPREADS:
            cells = []
            for bench, base in zip(benches, fixed_ones, strict=True):
                found_rules = Search(bench.setup, Price())
                tests = (LabelTest(k, m_test, spread) for k in range(1, m_test))
                best = min(map(found_rules.at, tests), key=lambda rule: rule.wrong)
                rule = found_rules._proven(best)
                size, passes = bench.measure(rule).mean(axis=0)
                cells.append(f"{size / base[0]:.3f}, {passes:.2f}")
            yield f"| {m_test} | {float(spread):g} | {' | '.join(cells)} |"
