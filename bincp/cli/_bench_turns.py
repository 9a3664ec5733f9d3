"""Two functions measured in turns, and what comes of it."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

Clock = Callable[[], float]

_LONGEST_TURN = 0.002  # seconds: short enough to end before another program gets the processor


def _host_clock() -> Clock:
    """Return the clock of work on the CPU, which stands still while other programs run."""
    fine = time.get_clock_info("thread_time").resolution <= 1e-6
    return time.thread_time if fine else time.perf_counter


ON_HOST = _host_clock()


@dataclass(frozen=True)
class Figure:
    """How fast a kernel and its baseline are.

    Parameters
    ----------
    kernel : str
        Its name, which stays the same from version to version.
    what : str
        What was measured, with all parameters.
    baseline : str
        What it was compared with.
    rate, baseline_rate : float
        Bounds, values of noise or bytes a second.
    """

    kernel: str
    what: str
    baseline: str
    rate: float
    baseline_rate: float

    @property
    def ratio(self) -> float:
        """The speed of the kernel over that of the baseline."""
        return self.rate / self.baseline_rate

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values, numbers with four digits, which is more than repeats."""
        values = asdict(self) | {"ratio": self.ratio}
        return {
            key: float(f"{value:.4g}") if isinstance(value, float) else value
            for key, value in values.items()
        }


def rates(
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    size: int,
    seconds: float,
    clock: Clock = ON_HOST,
) -> tuple[float, float]:
    """Return how many values a second two functions make, which make ``size`` of them a call.

    They take turns, so that other programs on the machine disturb the comparison little, and the
    fastest turn of each counts. Each is measured for so many seconds.
    """
    turn = min(seconds / 20, _LONGEST_TURN)
    turns = [(function, _calls_a_turn(function, turn, clock)) for function in (ours, theirs)]
    best = [math.inf, math.inf]
    end = time.perf_counter() + 2 * seconds
    while time.perf_counter() < end or not math.isfinite(best[1]):
        for i, (function, calls) in enumerate(turns):
            best[i] = min(best[i], _time(function, calls, clock) / calls)
    return size / best[0], size / best[1]


def _calls_a_turn(function: Callable[[], Any], seconds: float, clock: Clock) -> int:
    calls = 1
    while _time(function, calls, clock) < seconds:
        calls *= 2
    return calls


def _time(function: Callable[[], Any], calls: int, clock: Clock) -> float:
    start = clock()
    for _ in range(calls):
        function()
    return clock() - start
