"""Fit the polynomials and rational functions of csrc/numerics, and check those that stand there.

::

    python csrc/numerics/fit.py            # print the coefficients, and how far off each fit is
    python csrc/numerics/fit.py --check    # compare them with the C files, to the last bit

Each is the best approximation by Remez's exchange algorithm, on a grid of points and in 70 digits,
and its coefficients are rounded to doubles last. It needs mpmath.
"""

import argparse
import re
import sys
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from mpmath import mp, mpf

HERE = Path(__file__).parent
DIGITS = 70

Function = Callable[[mpf], mpf]

# ---- Remez ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Approximate ``f`` on [low, high] in the variable u, from which ``x`` makes the argument.

    ``weight`` times the error is made as small as it can be: 1 / f for the relative error. The
    points lie evenly in u, so that ``x`` says where they are dense. ``above`` and ``below`` are the
    degrees of numerator and denominator.
    """

    f: Function
    weight: Function
    low: mpf
    high: mpf
    above: int
    below: int = 0
    x: Function = lambda u: u
    intervals: int = 1500


@dataclass(frozen=True)
class Fit:
    error: mpf
    above: list[mpf]
    below: list[mpf]


@dataclass(frozen=True)
class Samples:
    """Arguments, values and weights on the grid."""

    x: list[mpf]
    f: list[mpf]
    weight: list[mpf]


def remez(problem: Problem) -> Fit:
    """Return the best fit that the exchanges find; they end when the errors are level to 2%."""
    grid = chebyshev_grid(problem)
    x = [problem.x(u) for u in grid]
    samples = Samples(x, [problem.f(v) for v in x], [problem.weight(v) for v in x])
    reference = first_reference(problem, grid)
    best, below = None, None
    for round_ in range(12):
        above, below, level = levelled(samples, reference, problem, below, 3 if round_ else 6)
        errors = errors_of(samples, above, below)
        most = max(abs(e) for e in errors)
        if best is None or most < best.error:
            best = Fit(most, above, below)
        reference = exchanged(errors, len(reference))
        if most < abs(level) * mpf("1.02") or not reference:
            break
    assert best is not None
    return best


def chebyshev_grid(problem: Problem) -> list[mpf]:
    width, n = problem.high - problem.low, problem.intervals
    return [problem.low + width * (1 - mp.cos(mp.pi * i / n)) / 2 for i in range(n + 1)]


def first_reference(problem: Problem, grid: Sequence[mpf]) -> list[int]:
    """Return the places on the grid that are next above the zeros of a Chebyshev polynomial."""
    n = problem.above + problem.below + 2
    low, high = problem.low, problem.high
    zeros = sorted(
        (low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n))
        for i in range(n)
    )
    places = [min(bisect(grid, u), len(grid) - 1) for u in zeros]
    return [0, *places[1:-1], len(grid) - 1]


def levelled(
    samples: Samples,
    reference: Sequence[int],
    problem: Problem,
    below: list[mpf] | None,
    iterations: int,
) -> tuple[list[mpf], list[mpf], mpf]:
    """Solve for a fit whose errors alternate between +level and -level on the reference.

    The equation times the denominator is linear but for level * denominator, where the denominator
    of the iteration before is taken.
    """
    old = [value(below, samples.x[i]) if below else mpf(1) for i in reference]
    for _ in range(iterations):
        a = mp.matrix(len(reference), len(reference))
        b = mp.matrix(len(reference), 1)
        for row, i in enumerate(reference):
            scale = 1 / abs(old[row])
            powers = powers_of(samples.x[i], max(problem.above, problem.below))
            for k in range(problem.above + 1):
                a[row, k] = powers[k] * scale
            for k in range(1, problem.below + 1):
                a[row, problem.above + k] = -samples.f[i] * powers[k] * scale
            a[row, len(reference) - 1] = -((-1) ** row) / samples.weight[i] * old[row] * scale
            b[row] = samples.f[i] * scale
        solution = list(mp.lu_solve(a, b))
        above = solution[: problem.above + 1]
        below = [mpf(1), *solution[problem.above + 1 : -1]]
        old = [value(below, samples.x[i]) for i in reference]
    assert below is not None
    return above, below, solution[-1]


def powers_of(x: mpf, degree: int) -> list[mpf]:
    powers = [mpf(1)]
    for _ in range(degree):
        powers.append(powers[-1] * x)
    return powers


def value(coefficients: Sequence[mpf], x: mpf) -> mpf:
    result = mpf(0)
    for c in reversed(coefficients):
        result = result * x + c
    return result


def errors_of(samples: Samples, above: list[mpf], below: list[mpf]) -> list[mpf]:
    return [
        (value(above, x) / value(below, x) - f) * weight
        for x, f, weight in zip(samples.x, samples.f, samples.weight, strict=True)
    ]


def exchanged(errors: Sequence[mpf], n: int) -> list[int]:
    """Return n places of alternating extremes of the error, or none if there are fewer."""
    runs = groupby(range(len(errors)), key=lambda i: errors[i] > 0)
    places = [max(run, key=lambda i: abs(errors[i])) for _, run in runs]
    while len(places) > n:
        if len(places) == n + 1:
            del places[0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1]
        else:
            pairs = range(len(places) - 1)
            k = min(pairs, key=lambda k: max(abs(errors[i]) for i in places[k : k + 2]))
            del places[k : k + 2]
    return places if len(places) == n else []


# ---- what is approximated ------------------------------------------------------------------------


def log_problem() -> Problem:
    """log((1 + z) / (1 - z)) = 2 z + z^3 P(z^2) for values from sqrt(1/2) to sqrt(2)."""
    most = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2

    def f(v: mpf) -> mpf:
        z = mp.sqrt(v)
        if z < mpf("1e-3"):
            return mp.fsum(2 * v**k / (2 * k + 3) for k in range(30))
        return (2 * mp.atanh(z) - 2 * z) / z**3

    return Problem(f, lambda v: max(v, most / 50), mpf(0), most, 6)


def exp_problem() -> Problem:
    """exp(r) = 1 + r + r^2 Q(r) for |r| up to half of log 2."""
    half = mp.log(2) / 2 * mpf("1.0001")

    def f(r: mpf) -> mpf:
        return (mp.exp(r) - 1 - r) / r**2 if abs(r) >= mpf("1e-12") else mpf(1) / 2 + r / 6

    return Problem(f, lambda r: max(r * r, mpf("0.003")), -half, half, 9)


def mills_problem() -> Problem:
    """exp(y^2 / 2) T(y) on [0, 40], with T(y) = 1 - Phi(y)."""

    def f(y: mpf) -> mpf:
        return mp.exp(y * y / 2) * normal_tail(y)

    stretch, most = mpf(3), mpf(40)
    return Problem(
        f,
        lambda y: 1 / f(y),
        mpf(0),
        most / (stretch + most),
        9,
        10,
        lambda u: stretch * u / (1 - u),
    )


def inset_problem() -> Problem:
    """The inset rho - |Phi^-1(exp(-rho^2 / 2))|, from t = 1/2 to the smallest double."""

    def f(rho: mpf) -> mpf:
        return rho - abscissa(mp.exp(-rho * rho / 2))

    stretch, low, high = mpf(4), mp.sqrt(2 * mp.log(2)), mpf("38.61")
    return Problem(
        f,
        lambda rho: 1 / max(1, rho / 4),
        mpf(0),
        (high - low) / (high - low + stretch),
        11,
        12,
        lambda u: low + stretch * u / (1 - u),
        intervals=1200,
    )


def normal_tail(y: mpf) -> mpf:
    return mp.erfc(y / mp.sqrt(2)) / 2


def abscissa(t: mpf) -> mpf:
    """Solve T(x) = t <= 1/2 by Newton's method on the logarithm of the tail."""
    if t == mpf(1) / 2:
        return mpf(0)
    x = mp.sqrt(-2 * mp.log(t))
    x = x - mp.log(x * mp.sqrt(2 * mp.pi)) / x if x > 2.5 else mpf("0.5")
    for _ in range(60):
        tail = normal_tail(x)
        hazard = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) / tail
        step = (mp.log(tail) - mp.log(t)) / hazard
        x += step
        if abs(step) < mpf(10) ** -60:
            break
    return x


# ---- the C files ---------------------------------------------------------------------------------

# Problems, and where their coefficients stand: the file, and the first line of the tables.
TABLES = {
    "log": (log_problem, "elementary.h", ["log_scaled(scaled w)"]),
    "exp": (exp_problem, "elementary.h", ["exp_less_one(double r)"]),
    "mills": (mills_problem, "normal.c", ["mills_above[10]", "mills_below[11]"]),
    "inset": (inset_problem, "normal.c", ["inset_above[12]", "inset_below[13]"]),
}


def written(file: str, start: str) -> list[float]:
    """Return the first list of numbers in braces after ``start``."""
    text = (HERE / file).read_text()
    numbers = re.compile(r"=\s*\{([^{}]*)\};").search(text, text.index(start))
    assert numbers is not None
    return [float.fromhex(number) for number in numbers[1].split(",") if number.strip()]


def fitted(name: str) -> tuple[Fit, list[list[float]]]:
    """Return the fit, and its coefficients as doubles: numerator, and any denominator."""
    with mp.workdps(DIGITS):
        problem = TABLES[name][0]()
        fit = remez(problem)
        rows = [fit.above, fit.below] if problem.below else [fit.above]
        return fit, [[float(c) for c in row] for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the C files")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(TABLES))
    arguments = parser.parse_args()
    different = 0
    for name in arguments.names or TABLES:
        fit, rows = fitted(name)
        _, file, starts = TABLES[name]
        same = rows == [written(file, start) for start in starts]
        different += not same
        if arguments.check:
            print(f"{name}: {'as it stands' if same else 'different from what stands'} in {file}")
            continue
        print(f"{name}: off by {mp.nstr(fit.error, 3)} in its weight")
        for row in rows:
            print("   ", ", ".join(map(float.hex, row)))
    return int(arguments.check and different > 0)


if __name__ == "__main__":
    sys.exit(main())
