"""Check a million bounds at hard arguments against arithmetic in 60 digits::

    python tests/many_bounds.py --cases 1000000 --workers 2 --log bounds.jsonl

Probabilities reach from 5e-324 to 1 - 2^-53 and shifts from 1e-300 to 1e4. Cases come in batches,
each with a seed of its own; a batch that stands in the log is not done again, so that a run may be
cut short and resumed. The ordinary tests do a few batches of each family.
"""

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mpmath import mp, mpf
from scipy import special

import bincp
from bincp import balls, smoothing
from bincp._core import _operators
from support import least, most

DIGITS = 60
LONG = 400  # for sums in which nothing may be lost

Array = npt.NDArray[np.float64]

# ---- hard arguments ------------------------------------------------------------------------------


def hard_probability(rng: np.random.Generator) -> float:
    """In (0, 1): all scales, both ends, subnormal, near 1/2, and just below powers of two."""
    while True:
        kind, u = rng.integers(6), rng.random()
        p = (
            u,
            10 ** (-323.3 * u),
            1 - 10 ** (-16.2 * u),
            float(np.int64(2 ** (1 + 51 * u)).view(np.float64)),
            0.5 + (1 if u < 0.5 else -1) * 10 ** (-16.5 * u),
            math.nextafter(0.5 ** (1 + 60 * u), 0),
        )[kind]
        if 0 < p < 1:
            return p


def hard_shift(rng: np.random.Generator) -> float:
    kind, u = rng.integers(4), rng.random()
    return (4 * u, 10 ** (-300 * u), 76 * u, 10 ** (4 * u))[kind] or 1.0


def hard_probabilities(rng: np.random.Generator, n: int) -> Array:
    return np.array([hard_probability(rng) for _ in range(n)])


# ---- laws: the abscissa of a tail, and the tail of an abscissa -----------------------------------


class Law:
    """A symmetric law. `tail(x)` is the mass beyond x >= 0, and `hazard(x)` its density over it."""

    def start(self, t: float) -> float:
        """Return about the abscissa of the tail t."""
        raise NotImplementedError

    def tail(self, x: mpf) -> mpf:
        raise NotImplementedError

    def hazard(self, x: mpf, tail: mpf) -> mpf:
        raise NotImplementedError

    def abscissa(self, t: mpf) -> mpf:
        """Solve tail(x) = t by Newton's method on the logarithm of the tail."""
        x = mpf(max(self.start(float(t)), 0.0))
        for _ in range(100):
            tail = self.tail(x)
            step = mp.log(tail / t) / self.hazard(x, tail)
            x = max(x + step, mpf(0))
            if abs(step) <= mpf(10) ** (3 - DIGITS):
                return x
        raise AssertionError(t)

    def position(self, p: float) -> mpf:
        if p > 0.5:
            return self.abscissa(1 - mpf(p))
        return mp.fneg(self.abscissa(mpf(p)), exact=True)

    def below(self, x: mpf) -> mpf:
        return self.tail(-x) if x <= 0 else 1 - self.tail(x)


class Normal(Law):
    def start(self, t: float) -> float:
        return float(-special.ndtri_exp(math.log(t)))

    def tail(self, x: mpf) -> mpf:
        return mp.erfc(x / mp.sqrt(2)) / 2

    def hazard(self, x: mpf, tail: mpf) -> mpf:
        return mp.npdf(x) / tail


class ExponentialPower(Law):
    def __init__(self, power: float) -> None:
        self.power, self.a = power, 1 / mpf(power)
        self.gamma = mp.gamma(1 + self.a)

    def start(self, t: float) -> float:
        x = float(special.gammainccinv(1 / self.power, 2 * t))
        return float(x ** (1 / self.power))

    def tail(self, x: mpf) -> mpf:
        return mp.gammainc(self.a, x**self.power, regularized=True) / 2

    def hazard(self, x: mpf, tail: mpf) -> mpf:
        return mp.exp(-(x**self.power)) / (2 * self.gamma * tail)


class SechPower(Law):
    """The law of Exp2 noise in `dim` dimensions."""

    def __init__(self, dim: int) -> None:
        self.alpha = mpf(dim - 1) / 2
        self.norm = mp.gamma(self.alpha + 0.5) / mp.gamma(self.alpha) / mp.sqrt(mp.pi)

    def start(self, t: float) -> float:
        half = float(self.alpha)
        beta = float(special.betaincinv(half, half, t))
        if beta > 0:
            return (math.log1p(-beta) - math.log(beta)) / 2
        return float(mp.log(self.norm * mpf(4) ** self.alpha / (2 * self.alpha * t))) / (2 * half)

    def tail(self, x: mpf) -> mpf:
        return mp.betainc(self.alpha, self.alpha, 0, 1 / (1 + mp.exp(2 * x)), regularized=True)

    def hazard(self, x: mpf, tail: mpf) -> mpf:
        return self.norm * mp.sech(x) ** (2 * self.alpha) / tail


class ParetoLaw(Law):
    """Only the abscissa is known: bounds are compared by their positions."""

    def __init__(self, a: float) -> None:
        self.gamma = 1 + 1 / mpf(a)
        self.kappa = mp.digamma(1 / self.gamma) + mp.euler

    def abscissa(self, t: mpf) -> mpf:
        u, beta = 1 - 2 * t, 1 / self.gamma
        if t > 1e-15:
            return u * mp.hyp2f1(1, beta, beta + 1, u**self.gamma)
        # The logarithmic case, DLMF 15.8.10, in v <= 1e-13.
        v = -mp.expm1(self.gamma * mp.log1p(-2 * t))
        series = -mp.log(v) - self.kappa
        total, term = series, mpf(1)
        for n in range(1, 8):
            term *= (beta + n - 1) * v / n
            series += mpf(1) / n - 1 / (beta + n - 1)
            total += term * series
        return u * beta * total


class RootLaw(Law):
    """Density exp(-sqrt|x|): the published radius, which is bounded by pi^2 / 3."""

    def abscissa(self, t: mpf) -> mpf:
        if t == 0.5:
            return mpf(0)
        edge = self.edge(self.depth(2 * t))
        with mp.workdps(LONG):  # it may be 1e-162
            return mp.pi**2 / 3 - edge

    def depth(self, mass: mpf) -> mpf:
        """Solve 1 - (1 + c) exp(-c) = mass by Newton's method; near 1 on the log of the rest."""
        c = mp.sqrt(2 * mass) if mass < 0.5 else 2 - mp.log(1 - mass)
        for _ in range(200):
            if mass < 0.5:
                step = (mass - mp.gammainc(2, 0, c)) / (c * mp.exp(-c))
            else:
                step = (mp.log1p(c) - c - mp.log(1 - mass)) * (1 + c) / c
            c = max(c + step, c / 2)
            if abs(step) <= c * mpf(10) ** (3 - DIGITS):
                return c
        raise AssertionError(mass)

    def edge(self, c: mpf) -> mpf:
        """Return the integral of 2 x / (exp(x) - 1) from 0 to c, a Debye function."""
        if c > 0.1:
            far = mp.exp(-c)
            return mp.pi**2 / 3 + 2 * c * mp.log1p(-far) - 2 * mp.polylog(2, far)
        terms = (bernoulli(k) * c**k / mp.factorial(k) / (k + 1) for k in range(40))
        return 2 * c * mp.fsum(terms)


@cache
def bernoulli(k: int) -> mpf:
    return mp.bernoulli(k)  # B_1 = -1/2


# ---- batches -------------------------------------------------------------------------------------


class Tally(NamedTuple):
    """Bounds that were compared, and those on the wrong side, as text."""

    cases: int
    unsafe: list[str]


def filled(operator: Any, p: Array) -> tuple[list[float], list[float]]:
    lower, upper = np.empty_like(p), np.empty_like(p)
    operator.lower_fill(p, lower)
    operator.upper_fill(p, upper)
    return lower.tolist(), upper.tolist()


def compared(
    operator: Any, p: Array, exact: Callable[[float, float, float], tuple[bool, bool]], note: str
) -> Tally:
    """Compare bounds of an array; `exact(p, lower, upper)` says which of them are right."""
    unsafe = []
    for x, lower, upper in zip(p.tolist(), *filled(operator, p), strict=True):
        rights = exact(x, lower, upper)
        ordered = 0 <= lower <= x <= upper <= 1
        if not (ordered and all(rights)):
            unsafe.append(f"{operator.name} {note}: p = {x.hex()}, {lower.hex()}, {upper.hex()}")
    return Tally(2 * len(p), unsafe)


def joined(tallies: Iterator[Tally]) -> Tally:
    parts = list(tallies)
    return Tally(sum(t.cases for t in parts), [text for t in parts for text in t.unsafe])


def shifted(
    law: Law, operator_of: Callable[[float], Any], rng: np.random.Generator, shape: tuple[int, int]
) -> Tally:
    """Shifts of `shape[0]` probabilities by `shape[1]` distances, at which the law has a tail."""
    p = hard_probabilities(rng, shape[0])
    positions = {x: law.position(x) for x in p.tolist()}

    def of_one(shift: float) -> Tally:
        s = mpf(shift)

        def right(x: float, lower: float, upper: float) -> tuple[bool, bool]:
            at = positions[x]  # which is at - s to 60 digits where s is tiny
            return (
                lower < x and mpf(lower) <= law.below(at - s),
                upper > x and mpf(upper) >= law.below(at + s),
            )

        return compared(operator_of(shift), p, right, f"by {shift.hex()}")

    return joined(of_one(hard_shift(rng)) for _ in range(shape[1]))


def placed(
    law: Law, operator_of: Callable[[float], Any], rng: np.random.Generator, shape: tuple[int, int]
) -> Tally:
    """The same for a law with an abscissa only: the positions of the bounds are compared."""
    p = hard_probabilities(rng, shape[0])
    positions = {x: law.position(x) for x in p.tolist()}

    def of_one(shift: float) -> Tally:
        s = mpf(shift)

        def right(x: float, lower: float, upper: float) -> tuple[bool, bool]:
            at = positions[x]
            low = law.position(lower) if lower > 0 else -mp.inf
            high = law.position(upper) if upper < 1 else mp.inf
            with mp.workdps(LONG):
                return lower < x and low <= at - s, upper > x and high >= at + s

        return compared(operator_of(shift), p, right, f"by {shift.hex()}")

    return joined(of_one(hard_shift(rng)) for _ in range(shape[1]))


def certified(scheme: Any, ball: Any) -> Any:
    return bincp.certify(scheme, ball).operator


def gaussian(rng: np.random.Generator) -> Tally:
    return shifted(Normal(), _operators.gaussian, rng, (40, 25))


def laplace(rng: np.random.Generator) -> Tally:
    p = hard_probabilities(rng, 100)

    def of_one(shift: float) -> Tally:
        factor = mp.exp(mpf(shift))

        def right(x: float, lower: float, upper: float) -> tuple[bool, bool]:
            low, high = laplace_bounds(x, factor)
            return mpf(lower) <= low, mpf(upper) >= high

        return compared(_operators.laplace(shift), p, right, f"by {shift.hex()}")

    return joined(of_one(hard_shift(rng)) for _ in range(10))


def laplace_bounds(p: float, factor: mpf) -> tuple[mpf, mpf]:
    """Move p outwards and inwards by exp(shift); tails are kept apart, so none is lost beside 1."""
    q, rest = mpf(p), 1 - mpf(p)
    low = q / factor if p <= 0.5 else inwards(rest, factor, complement=True)
    high = inwards(q, factor, complement=False) if p <= 0.5 else 1 - rest / factor
    return low, high


def inwards(t: mpf, factor: mpf, *, complement: bool) -> mpf:
    near, beyond = t * factor, 1 / (4 * t * factor)
    if near <= mpf(1) / 2:
        return 1 - near if complement else near
    return beyond if complement else 1 - beyond


def steps(rng: np.random.Generator) -> Tally:
    def of_one(levels: int) -> Tally:
        moved = int(rng.integers(levels + 1))
        counts = rng.integers(levels + 1, size=10) / levels
        p = np.concatenate([counts, np.nextafter(counts, 0.5), hard_probabilities(rng, 10)])

        def right(x: float, lower: float, upper: float) -> tuple[bool, bool]:
            low, high = steps_bounds(x, levels, moved)
            return Fraction(lower) <= low, Fraction(upper) >= high

        return compared(_operators.steps(levels, moved), p, right, f"{moved} of {levels}")

    return joined(of_one(int(2 ** (50 * rng.random()))) for _ in range(33))


def steps_bounds(p: float, levels: int, moved: int) -> tuple[Fraction, Fraction]:
    value = Fraction(p)
    count = round(value * levels)
    if count / levels == p:  # p stands for a count
        value = Fraction(count, levels)
    share = Fraction(moved, levels)
    return max(value - share, Fraction(0)), min(value + share, Fraction(1))


def uniform(rng: np.random.Generator) -> Tally:
    p = hard_probabilities(rng, 100)

    def of_one(shift: float) -> Tally:
        s = Fraction(shift)

        def right(x: float, lower: float, upper: float) -> tuple[bool, bool]:
            low, high = max(Fraction(x) - s, Fraction(0)), min(Fraction(x) + s, Fraction(1))
            return Fraction(lower) <= low, Fraction(upper) >= high

        return compared(_operators.uniform(min(shift, 1.0)), p, right, f"by {shift.hex()}")

    return joined(of_one(min(hard_shift(rng), 1.0)) for _ in range(10))


def uniform_ball(rng: np.random.Generator) -> Tally:
    p = hard_probabilities(rng, 100)

    def of_one(dim: int) -> Tally:
        r = min(hard_shift(rng), 2.0)
        with mp.workdps(LONG):
            half, t = (mpf(dim) + 1) / 2, mpf(r) / 2
            s = mp.betainc(mpf(1) / 2, half, 0, t * t, regularized=True) if t < 1 else mpf(1)

        def right(x: float, lower: float, upper: float) -> tuple[bool, bool]:
            with mp.workdps(LONG):
                return mpf(lower) <= max(x - s, 0), mpf(upper) >= min(x + s, 1)

        operator = certified(smoothing.UniformBall(1.0), balls.L2(r, dim))
        return compared(operator, p, right, f"{r.hex()} in {dim}")

    return joined(of_one(int(2 ** (8 * rng.random()))) for _ in range(5))


def expp(rng: np.random.Generator) -> Tally:
    power = float(rng.choice([1.25, 1.5, 3.0, 4.0, 20.0]))
    law = ExponentialPower(power)
    return shifted(
        law, lambda shift: certified(smoothing.Expp(1.0, power), balls.L1(shift)), rng, (15, 10)
    )


def exp2(rng: np.random.Generator) -> Tally:
    """The shift is r / (dim - 1), which is exact for these dimensions."""
    dim = int(rng.choice([2, 3, 5, 9, 33]))
    scheme = smoothing.Exp2(1.0 / (dim - 1))
    return shifted(
        SechPower(dim), lambda shift: certified(scheme, balls.L2(shift, dim)), rng, (15, 10)
    )


def pareto(rng: np.random.Generator) -> Tally:
    """The shift is r a / scale, so that the scale a gives r."""
    a = float(rng.choice([0.25, 0.5, 1.0, 2.0, 4.0]))
    scheme = smoothing.Pareto(a, a)
    return placed(ParetoLaw(a), lambda shift: certified(scheme, balls.L1(shift)), rng, (10, 5))


def root(rng: np.random.Generator) -> Tally:
    scheme = smoothing.Expp(1.0, 0.5)
    return placed(RootLaw(), lambda shift: certified(scheme, balls.L1(shift)), rng, (10, 5))


def regions(rng: np.random.Generator) -> Tally:
    """Knapsacks over dyadic masses, which are doubles, against fractions."""

    def of_one(n: int) -> Tally:
        clean, perturbed = (dyadic_masses(rng, n) for _ in range(2))
        operator = bincp.Certificate.from_regions(
            [float(c) for c in clean], [float(q) for q in perturbed]
        ).operator

        def right(x: float, lower: float, upper: float) -> tuple[bool, bool]:
            p = Fraction(x)
            return (
                Fraction(lower) <= least(clean, perturbed, p),
                Fraction(upper) >= most(perturbed, clean, p),
            )

        return compared(operator, hard_probabilities(rng, 25), right, f"{n} regions")

    return joined(of_one(int(n)) for n in rng.integers(1, 9, size=8))


def dyadic_masses(rng: np.random.Generator, n: int) -> list[Fraction]:
    """Multiples of 2^-40 that sum to 1, some of them 0."""
    cuts = sorted(int(cut) for cut in rng.integers(2**40 + 1, size=n - 1))
    edges = [0, *cuts, 2**40]
    return [Fraction(b - a, 2**40) for a, b in pairwise(edges)]


class Family(NamedTuple):
    batch: Callable[[np.random.Generator], Tally]
    share: float
    """The part of all cases."""


FAMILIES = {
    "gaussian": Family(gaussian, 0.3),
    "laplace": Family(laplace, 0.25),
    "steps": Family(steps, 0.18),
    "uniform": Family(uniform, 0.1),
    "uniform ball": Family(uniform_ball, 0.03),
    "regions": Family(regions, 0.05),
    "expp": Family(expp, 0.04),
    "exp2": Family(exp2, 0.03),
    "pareto": Family(pareto, 0.01),
    "root": Family(root, 0.01),
}


def run_batch(family: str, number: int) -> Tally:
    seed = [list(FAMILIES).index(family), number]
    with mp.workdps(DIGITS):
        return FAMILIES[family].batch(np.random.default_rng(seed))


# ---- a long run ----------------------------------------------------------------------------------


def record(job: tuple[str, int]) -> dict[str, Any]:
    start = time.perf_counter()
    tally = run_batch(*job)
    seconds = round(time.perf_counter() - start, 3)
    return {"family": job[0], "batch": job[1], **tally._asdict(), "seconds": seconds}


def pending(cases: int, done: list[dict[str, Any]], size: dict[str, int]) -> Iterator[Any]:
    """Yield the batches that are left, the families in turns."""
    known = {(row["family"], row["batch"]) for row in done}
    counts = {
        name: math.ceil(cases * family.share / size[name]) for name, family in FAMILIES.items()
    }
    for number in range(max(counts.values())):
        for name, count in counts.items():
            if number < count and (name, number) not in known:
                yield name, number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    done = []
    if arguments.log.exists():
        done = [json.loads(line) for line in arguments.log.read_text().splitlines()]
    size = {name: run_batch(name, 0).cases for name in FAMILIES}
    with multiprocessing.Pool(arguments.workers) as pool, arguments.log.open("a") as log:
        for row in pool.imap_unordered(record, pending(arguments.cases, done, size)):
            print(json.dumps(row), file=log, flush=True)
            done.append(row)
    for name in FAMILIES:
        rows = [row for row in done if row["family"] == name]
        wrong = [text for row in rows for text in row["unsafe"]]
        print(f"{name}: {sum(row['cases'] for row in rows)} bounds, {len(wrong)} unsafe")
        print(*wrong[:3], sep="\n")
    return int(any(row["unsafe"] for row in done))


if __name__ == "__main__":
    sys.exit(main())
