"""Who has the smaller sets, wherever both are robust: counted, and every exception listed."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.paper.runs import Row, standard_error

__all__ = ["PAIRS", "Verdict", "judge"]

OTHERS = ("CAS", "CAS, test-time", "RSCP+, Hoeffding", "RSCP+, Bernstein", "RSCP+, PTT")
PAIRS = (
    *(("BinCP, mixture", other) for other in OTHERS),
    *(("BinCP, as printed", other) for other in OTHERS),
    *(("BinCP, ghost", other) for other in OTHERS),
    *(("BinCP, mixture", other) for other in ("BinCP, as printed", "BinCP, ghost", "RCP1")),
    ("BinCP, mixture, p = 0.9", "RCP1"),
)
Case = tuple[str | int | None, ...]


@dataclass(frozen=True)
class Loss:
    """A case in which the first of a pair has larger sets."""

    case: Case
    first: Row
    second: Row
    difference: float
    error: float


@dataclass(frozen=True)
class Verdict:
    """How often the first of a pair has smaller, equal and larger sets.

    ``trivial`` of the equal ones have every label in every set.
    """

    first: str
    second: str
    smaller: int
    equal: int
    trivial: int
    larger: tuple[Loss, ...]


def judge(rows: Sequence[Row]) -> list[Verdict]:
    """Compare the pairs in every combination that both were run in, on the same splits."""
    cases: dict[Case, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        key = (row.setting, row.score, row.radius, row.coverage, row.n, row.m, row.p)
        cases[key][row.method] = row  # experiments overlap: the same run, kept once
    return [_judge(first, second, cases) for first, second in PAIRS]


def _judge(first: str, second: str, cases: dict[Case, dict[str, Row]]) -> Verdict:
    smaller = equal = trivial = 0
    larger = []
    for case, methods in cases.items():
        if first not in methods or second not in methods:
            continue
        ours, theirs = methods[first], methods[second]
        differences = ours.outcome.sizes - theirs.outcome.sizes
        mean = float(np.mean(differences))
        if mean < 0:
            smaller += 1
        elif mean > 0:
            larger.append(Loss(case, ours, theirs, mean, standard_error(differences)))
        else:
            equal += 1
            trivial += ours.outcome.coverage == 1
    larger.sort(key=lambda e: -e.difference / e.second.outcome.size)
    return Verdict(first, second, smaller, equal, trivial, tuple(larger))
