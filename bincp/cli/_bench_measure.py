"""Measure certificates and their baselines in turns."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.validation import check_integer, check_real
from bincp.certificates import Certificate, certify
from bincp.cli._bench_cases import CASES, Case

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Throughput:
    """Bounds a second of one operator and of its baseline.

    Parameters
    ----------
    smoothing, ball : str
        The pair that was measured.
    baseline : str
        The expression that it was compared with.
    scalar, scalar_baseline : float
        Bounds a second, one call a probability.
    batch, batch_baseline : float
        Bounds a second, one call for all probabilities.
    largest_difference : float
        Largest difference of the two results over the probabilities.
    """

    smoothing: str
    ball: str
    baseline: str
    scalar: float
    scalar_baseline: float
    batch: float
    batch_baseline: float
    largest_difference: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON values."""
        return asdict(self)


def measure(
    cases: Sequence[Case] | None = None,
    *,
    n_probabilities: int = 10_000,
    seconds: float = 0.2,
) -> Iterator[Throughput]:
    """Measure the throughput of certificates, one case after the other.

    The certificate and its baseline take turns, and the fastest turn of each counts, so that other
    programs on the machine disturb the comparison little.

    Parameters
    ----------
    cases : sequence of Case, optional
        Pairs to measure; by default `CASES`, each built-in operator once.
    n_probabilities : int, optional
        Length of the array, at least 1.
    seconds : float, optional
        How long to measure each of the four functions of a case, > 0.

    Yields
    ------
    Throughput

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or value.
    """
    number = check_integer("n_probabilities", n_probabilities, low=1)
    duration = check_real("seconds", seconds, low=0, open_low=True)
    p = np.random.default_rng(0).random(number)
    for case in CASES if cases is None else cases:
        yield _measure(case, p, duration)


def _measure(case: Case, p: Array, seconds: float) -> Throughput:
    ours: Certificate = certify(case.smoothing, case.ball)
    theirs = case.make_baseline(case.smoothing, case.ball)
    one = float(p[0])
    scalar, scalar_baseline = _rates(lambda: ours.lower(one), lambda: theirs(one), seconds)
    batch, batch_baseline = _rates(lambda: ours.lower(p), lambda: theirs(p), seconds)
    return Throughput(
        repr(case.smoothing),
        repr(case.ball),
        case.baseline,
        scalar,
        scalar_baseline,
        batch * len(p),
        batch_baseline * len(p),
        float(np.max(np.abs(ours.lower(p) - theirs(p)))),
    )


def _rates(
    ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float
) -> tuple[float, float]:
    """Return calls a second of two functions, from the fastest of their turns."""
    turns = [(function, _calls_a_turn(function, seconds / 20)) for function in (ours, theirs)]
    best = [np.inf, np.inf]
    end = time.perf_counter() + 2 * seconds
    while time.perf_counter() < end or not np.isfinite(best[1]):
        for i, (function, calls) in enumerate(turns):
            best[i] = min(best[i], _time(function, calls) / calls)
    return 1 / best[0], 1 / best[1]


def _calls_a_turn(function: Callable[[], Any], seconds: float) -> int:
    calls = 1
    while _time(function, calls) < seconds:
        calls *= 2
    return calls


def _time(function: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return time.perf_counter() - start
