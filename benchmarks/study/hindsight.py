"""The chosen rule beside the best one in hindsight, over random settings on cached scores.

A setting is a network, a radius, a score, n, alpha, m, m' and what a test input may cost. The best
in hindsight is found among candidates that a coarse grid of tests gives: for each k and spread the
best ranks and the best losses. It is the best of many noisy means, so that it looks better than it
is. A second figure is free of that: the best is found on the even splits and compared on the odd
ones. There the best may be missed, so that the truth lies between the two.
"""

import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.study import scores
from benchmarks.study.evaluation import Scores
from benchmarks.study.report import Problem, problems
from bincp._utils.arrays import as_scores
from bincp.calibration import _search as search
from bincp.calibration import _wide_reference as population
from bincp.calibration._label_test import LabelTest
from bincp.calibration._losses import select_threshold_by_losses
from bincp.calibration._mixture import Setup
from bincp.calibration._search import Price, Rule, Search, choose_rule
from bincp.calibration._threshold import select_threshold
from bincp.scores import aps

__all__ = [
    "Bench",
    "Setting",
    "all_in_hindsight",
    "hindsight_table",
    "passes_table",
    "random_settings",
]

N_SPLITS = 40
M = 64  # draws that are used
APS_SEED = 0
N_COUNTS = 13  # values of k that are tried, of more than 8
N_RANKS = 3  # success ranks t that are tried for each test

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Setting:
    """One random setting; ``passes`` is the budget of passes, 0 for a fixed count."""

    network: str
    attack: int
    score: str
    n: int
    alpha: str
    m: int
    m_test: int
    passes: float

    @property
    def price(self) -> Price:
        """What a test input may cost."""
        return Price(self.passes > 0, self.passes or None)

    def setup(self) -> Setup:
        """Return what the choice may know."""
        certificate = _problem(self.network).attacks[self.attack].certificate
        return Setup(certificate, self.n, self.m, self.m_test, Fraction(self.alpha))


@cache
def _problem(name: str) -> Problem:
    return next(problem for problem in problems() if problem.name == name)


def random_settings(found: Sequence[Problem], n_settings: int) -> list[Setting]:
    """Return settings, each choice of them with even odds."""
    rng = np.random.default_rng(0)

    def one() -> Setting:
        problem = found[rng.integers(len(found))]
        m_test, passes = ((4, 0), (4, 4), (8, 0), (16, 0), (16, 3.5), (32, 0), (32, 7))[
            rng.integers(7)
        ]
        # On the graph the draws of all labels are shared by all nodes: no calibration with those.
        kinds = ("tps",) if problem.name == "cora-ml" else ("tps", "aps")
        return Setting(
            network=problem.name,
            attack=int(rng.integers(3)),
            score=kinds[rng.integers(len(kinds))],
            n=int(rng.choice([20, 50, 99, 199, 200, 500])),
            alpha=("0.1", "0.05", "0.2")[rng.integers(3)],
            m=int(rng.choice([max(m_test, 8), 64])),
            m_test=m_test,
            passes=float(passes),
        )

    return [one() for _ in range(n_settings)]


@cache
def _data(folder: Path, network: str, score: str) -> Scores:
    calibration, test, labels = (np.asarray(part) for part in scores.load(folder, network))
    calibration, test = calibration[:, :M], np.ascontiguousarray(test[:, :, :M])
    if score == "aps":
        u = np.random.default_rng(APS_SEED).random((len(test), M), dtype=np.float32)
        test = np.moveaxis(aps(np.moveaxis(test, 1, 2), u), 2, 1)
        calibration = test[np.arange(len(test)), labels]
    return Scores(np.ascontiguousarray(calibration), np.ascontiguousarray(test), labels)


class Bench:
    """Sizes and passes of the rules of one setting, by split."""

    def __init__(self, folder: Path, setting: Setting, n_splits: int) -> None:
        self.setup = setting.setup()
        data = _data(folder, setting.network, setting.score)
        self._splits = list(data.splits(setting.n, n_splits))
        self._true = [
            np.ascontiguousarray(data.calibration[known, : setting.m]) for known, _ in self._splits
        ]
        self._drawn = np.ascontiguousarray(data.test[:, :, : setting.m_test])

    def measure(self, rule: Rule) -> Array:
        """Return the mean size and passes of each split, (splits, 2)."""
        return np.array(
            [
                self._at(rule, self._tau(rule, true), rest)
                for true, (_, rest) in zip(self._true, self._splits, strict=True)
            ]
        )

    def _tau(self, rule: Rule, true: Array) -> float:
        if rule.is_trivial:
            return -math.inf
        given = as_scores("true", true)
        if rule.losses is not None:
            return select_threshold_by_losses(given, rule.losses, self.setup.alpha)
        assert rule.t is not None
        assert rule.rank is not None
        return select_threshold(given, rule.t, rule.rank)

    def _at(self, rule: Rule, tau: float, rest: Array) -> tuple[float, float]:
        hits = self._drawn[rest] >= np.float32(tau)
        if tau == -math.inf or rule.test.spread is None:
            accepted = hits.sum(axis=2, dtype=np.int32) >= rule.test.k
            return float(accepted.sum(axis=1).mean()), float(rule.test.m_test)
        tracker = rule.test.rule.start(hits.shape[:2])
        tracker.update(hits)
        return float(tracker.accepted.sum(axis=1).mean()), float(tracker.exits.max(axis=1).mean())


def candidates(setup: Setup, price: Price) -> list[Rule]:
    """Return valid rules: the best ranks and the best losses for each test of a coarse grid."""
    found = Search(setup, price)
    m = setup.m_test
    some = np.unique(np.rint(np.linspace(0.2, 0.9, N_COUNTS) * m)).astype(int).tolist()
    for k in range(1, m + 1) if m <= 8 else some:
        for test in _tests(k, m, price):
            found.at(test)
    within = [rule for rule in found._candidates if rule.cost(price) < 1e3]
    best = []
    by_test = groupby(within, key=lambda rule: rule.test)  # they are in the order of the tests
    for _, own in by_test:
        ranks, losses = [], []
        for rule in own:
            (losses if rule.t is None else ranks).append(rule)
        for kind, number in ((ranks, N_RANKS), (losses, 1)):
            best += sorted(kind, key=lambda rule: rule.wrong)[:number]
    valid = [found._proven(rule) for rule in best]
    return [rule for rule in valid if not rule.is_trivial]


def _tests(k: int, m: int, price: Price) -> list[LabelTest]:
    """Return the fixed count, or the three widest pairs of boundaries that the budget allows."""
    if not price.early:
        return [LabelTest(k, m)]
    spreads = [s for s in search._SPREADS if 2 * s <= m]
    tests = [LabelTest(k, m, s) for s in spreads]
    centre = 3.0  # of the true labels; it moves the passes little
    within = [t for t in tests if population.passes(t, centre) <= (price.passes or math.inf)]
    return within[-3:]


def in_hindsight(folder: Path, setting: Setting) -> dict[str, Any]:
    """Return sizes and passes of the chosen rule and of the best one in hindsight."""
    bench = Bench(folder, setting, N_SPLITS)
    chosen = choose_rule(bench.setup, setting.price)
    own = bench.measure(chosen)
    others = [bench.measure(rule)[:, 0] for rule in candidates(bench.setup, setting.price)]
    sizes = np.array([own[:, 0], *others])
    best = sizes[np.argmin(sizes.mean(axis=1))]
    of_even = sizes[np.argmin(sizes[:, ::2].mean(axis=1))]
    return {
        "setting": vars(setting),
        "trivial": chosen.is_trivial,
        "size": own[:, 0].mean(),
        "passes": own[:, 1].mean(),
        "predicted": chosen.passes,
        "n_candidates": len(others),
        "best": best.mean(),
        "ratio": own[:, 0].mean() / best.mean(),
        "held_out_ratio": own[1::2, 0].mean() / of_even[1::2].mean(),
    }


def all_in_hindsight(
    folder: Path, settings: Sequence[Setting], n_workers: int
) -> list[dict[str, Any]]:
    """Return the results of all settings, from the cache where they are done."""
    path = folder / "hindsight.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    done = {_key(record["setting"]): record for record in map(json.loads, lines)}
    rest = [setting for setting in settings if _key(vars(setting)) not in done]
    with ProcessPoolExecutor(n_workers) as pool, path.open("a", encoding="utf-8") as file:
        for record in pool.map(partial(in_hindsight, folder), rest):
            file.write(json.dumps(record) + "\n")
            file.flush()
            done[_key(record["setting"])] = record
    return [done[_key(vars(setting))] for setting in settings]


def _key(setting: dict[str, Any]) -> str:
    return json.dumps(setting, sort_keys=True)


GROUPS = ("network", "score", "n", "alpha", "m", "m_test", "passes")


def hindsight_table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the ratios by each part of the settings."""
    yield "## The chosen rule beside the best in hindsight"
    yield ""
    yield (
        f"{len(records)} random settings, {N_SPLITS} splits each. Mean size of the "
        "chosen rule over that of the best candidate, found on the same"
    )
    yield (
        "splits, and found on the even splits and compared on the odd ones; the truth lies "
        'between. passes 0 is a fixed count. "trivial" counts settings where the'
    )
    yield "chosen rule accepts every label, and of those the ones where a candidate does not."
    yield ""
    yield "| settings | number | same splits | other splits | 95% of settings below | trivial |"
    yield "|---|---|---|---|---|---|"
    yield _hindsight_row("all", records)
    for part in GROUPS:
        for value in sorted({record["setting"][part] for record in records}, key=str):
            own = [record for record in records if record["setting"][part] == value]
            yield _hindsight_row(f"{part} = {value}", own)


def _hindsight_row(title: str, records: Sequence[dict[str, Any]]) -> str:
    same = np.sort([record["ratio"] for record in records])
    other = np.mean([record["held_out_ratio"] for record in records])
    trivial = [record for record in records if record["trivial"]]
    missed = sum(record["n_candidates"] > 0 for record in trivial)
    high = same[math.ceil(0.95 * len(same)) - 1]
    return (
        f"| {title} | {len(records)} | {same.mean():.4f} | {other:.4f} | {high:.3f} | "
        f"{len(trivial)}, {missed} |"
    )


def passes_table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the passes that inputs took over those of the reference population."""
    yield "## Passes of the reference population"
    yield ""
    yield "Passes that inputs took over those of the population, over the settings that stop early."
    yield ""
    yield "| network | number | mean | least | most |"
    yield "|---|---|---|---|---|"
    early_ones = [r for r in records if r["setting"]["passes"] and not r["trivial"]]
    for network in sorted({record["setting"]["network"] for record in early_ones}):
        own = [r for r in early_ones if r["setting"]["network"] == network]
        ratios = np.array([r["passes"] / r["predicted"] for r in own])
        yield (
            f"| {network} | {len(own)} | {ratios.mean():.2f} | {ratios.min():.2f} | "
            f"{ratios.max():.2f} |"
        )
