"""Throughput of certificates: how many bounds a second, beside the expression that one would write.

What is measured is the lower bound of each built-in operator, one probability at a time and for an
array of them. The yardstick is the straightforward NumPy or SciPy expression for the same bound,
which rounds to nearest where a certificate rounds to the safe side.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from bincp import balls, smoothing
from bincp._validation import check_integer, check_real
from bincp.certificates import Certificate
from bincp.registry import certify

__all__ = ["CASES", "Case", "Throughput", "measure"]

Array = npt.NDArray[np.float64]
Expression = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A pair to measure, and the expression that it is compared with.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The smoothing scheme.
    ball : bincp.balls.Ball
        The perturbation ball.
    baseline : str
        The expression in words.
    make_baseline : callable
        Takes the scheme and the ball, and returns the lower bound as a function of a probability
        or an array of them.

    Examples
    --------
    >>> from bincp import balls, bench, smoothing
    >>> def expression(scheme, ball):
    ...     return lambda p: p - ball.r
    >>> case = bench.Case(smoothing.Uniform(0.5), balls.L1(0.1), "p - r", expression)
    """

    smoothing: smoothing.Smoothing
    ball: balls.Ball
    baseline: str
    make_baseline: Callable[[Any, Any], Expression]


@dataclass(frozen=True)
class Throughput:
    """Bounds a second of one operator and of its baseline.

    Parameters
    ----------
    smoothing, ball : str
        What was measured.
    baseline : str
        The expression that it was compared with.
    scalar, scalar_baseline : float
        Bounds a second, one call a probability.
    batch, batch_baseline : float
        Bounds a second, one call for all probabilities.
    largest_difference : float
        Between the two results over the probabilities.
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
        """Return the figures as plain JSON values.

        Examples
        --------
        >>> from bincp.bench import Throughput
        >>> row = Throughput("Gaussian", "L2", "SciPy", 2.0, 1.0, 2.0, 1.0, 0.0)
        >>> row.as_dict()["scalar"]
        2.0
        """
        return asdict(self)


def measure(
    cases: Sequence[Case] | None = None,
    *,
    n_probabilities: int = 10_000,
    seconds: float = 0.2,
) -> Iterator[Throughput]:
    """Measure the throughput of certificates, one case after the other.

    Ours and the baseline take turns, and the fastest turn of each counts, so that what else the
    machine does disturbs the comparison little.

    Parameters
    ----------
    cases : sequence of Case, optional
        By default `CASES`: each built-in operator once.
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

    Examples
    --------
    >>> from bincp import bench
    >>> row = next(bench.measure(bench.CASES[:1], n_probabilities=100, seconds=0.001))
    >>> row.smoothing, row.scalar > 0
    ('Gaussian(sigma=0.25)', True)
    """
    check_integer("n_probabilities", n_probabilities, low=1)
    check_real("seconds", seconds, low=0, open_low=True)
    p = np.random.default_rng(0).random(n_probabilities)
    for case in CASES if cases is None else cases:
        yield _measure(case, p, seconds)


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


# ---- baselines ------------------------------------------------------------------------------


def _gaussian(scheme: smoothing.Gaussian, ball: balls.L2) -> Expression:
    shift = ball.r / scheme.sigma
    return lambda p: special.ndtr(special.ndtri(p) - shift)


def _uniform(scheme: smoothing.Uniform, ball: balls.L1) -> Expression:
    shift = ball.r / (2 * scheme.half_width)
    return lambda p: np.clip(p - shift, 0, 1)


def _sparse(scheme: smoothing.SparseFlip, ball: balls.Flips) -> Expression:
    clean, perturbed = (
        np.convolve(_binomial(ball.additions, first), _binomial(ball.deletions, second)).cumsum()
        for first, second in (
            (scheme.p_plus, scheme.p_minus),
            (1 - scheme.p_minus, 1 - scheme.p_plus),
        )
    )
    return _interpolation(clean, perturbed)


def _binomial(n: int, p: float) -> Array:
    k = np.arange(n + 1)
    masses: Array = special.binom(n, k) * p**k * (1 - p) ** (n - k)
    return masses


def _interpolation(clean: Array, perturbed: Array) -> Expression:
    """Return the knapsack over cumulated masses, in decreasing order of clean / perturbed."""
    budgets, values = np.append(0, clean), np.append(0, perturbed)
    return lambda p: np.interp(p, budgets, values)


CASES = (
    Case(smoothing.Gaussian(0.25), balls.L2(0.12), "ndtr(ndtri(p) - r / sigma)", _gaussian),
    Case(smoothing.Uniform(0.5), balls.L1(0.25), "clip(p - r / (2 half_width))", _uniform),
    Case(
        smoothing.SparseFlip(0.01, 0.6),
        balls.Flips(additions=5, deletions=5),
        "np.interp on cumulative masses",
        _sparse,
    ),
)
"""Each built-in operator once."""
