"""What tests of several rooms share: places, golden values, and exact comparisons."""

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import bincp
from bincp.calibration import _fixed_tau
from bincp.calibration._conditions import largest_count
from bincp.calibration._mixture import Setup, count_without_attack
from bincp.calibration._search import Price, Rule, choose_rule
from bincp.errors import CertificateError

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"

SPARSE_ERROR = Fraction("3e-14")  # of bounds from the regions of sparse flips


def golden(name: str) -> Any:
    """Return the exact values of ``tests/data/<name>.json``."""
    return json.loads((DATA / f"{name}.json").read_text())


def import_benchmarks() -> None:
    """Let ``benchmarks`` be imported: its scripts are part of the repository, not of the package.

    Behind all other places, so that it is still the installed package that is tested.
    """
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))


def quiet(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function without the warning of trivial sets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bincp.TrivialSetWarning)
        return function(*args, **options)


class Step:
    """c(p) is 0 below a point and one value from there on."""

    def __init__(self, at: float, value: float) -> None:
        self.at, self.value = at, value

    def lower(self, p: Any) -> Any:
        return np.where(np.asarray(p) >= self.at, self.value, 0.0)

    def inverse(self) -> Any:
        raise CertificateError("there is none")


CERTIFICATES: dict[str, Any] = {
    "identity": bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0)),
    "gaussian 0.1": bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.1)),
    "gaussian 0.25": bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.25)),
    "gaussian 0.5": bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.5)),
    "gaussian 1.0": bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(1.0)),
    "gaussian 2.0": bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(2.0)),
    "uniform 0.125": bincp.certify(bincp.smoothing.Uniform(1.0), bincp.balls.L1(0.25)),
    "uniform 0.03125": bincp.certify(bincp.smoothing.Uniform(1.0), bincp.balls.L1(0.0625)),
    "sparse 1 2": bincp.certify(bincp.smoothing.SparseFlip(0.01, 0.6), bincp.balls.Flips(1, 2)),
    "sparse 0 1": bincp.certify(bincp.smoothing.SparseFlip(0.01, 0.6), bincp.balls.Flips(0, 1)),
    "sparse 1 1": bincp.certify(bincp.smoothing.SparseFlip(0.01, 0.6), bincp.balls.Flips(1, 1)),
    "step": Step(0.75, 0.5),
}
"""Those of the exact values of early stopping; "step" has no radius and no upper bounds."""


class Exact:
    """A true value and its complement, each known to so many significant digits."""

    def __init__(self, value: Fraction, complement: Fraction, known: int = 20) -> None:
        doubt = Fraction(1, 10 ** (known - 1))
        self.value, self.complement = value, complement
        self.doubts = (value * doubt, complement * doubt)

    @classmethod
    def printed(cls, value: str, complement: str) -> "Exact":
        return cls(Fraction(value), Fraction(complement))

    def assert_at_least(self, bound: float) -> None:
        """Judge by the value and by the complement: near 1 only the complement has the digits."""
        assert Fraction(bound) <= self.value + self.doubts[0], bound
        assert 1 - Fraction(bound) >= self.complement - self.doubts[1], bound

    def assert_at_most(self, bound: float) -> None:
        assert Fraction(bound) >= self.value - self.doubts[0], bound
        assert 1 - Fraction(bound) <= self.complement + self.doubts[1], bound

    def assert_within(self, bound: float, error: Fraction) -> None:
        assert abs(Fraction(bound) - self.value) <= error, bound


def least(clean: Sequence[Fraction], perturbed: Sequence[Fraction], p: Fraction) -> Fraction:
    """Neyman-Pearson by sorting: the least perturbed mass of a (randomised) set of clean mass p."""
    pairs = [(c, q) for c, q in zip(clean, perturbed, strict=True) if c > 0]
    pairs.sort(key=lambda pair: pair[1] / pair[0])
    total = Fraction(0)
    for c, q in pairs:
        taken = min(c, p)
        total += q * taken / c
        p -= taken
    assert p == 0
    return total


def most(clean: Sequence[Fraction], perturbed: Sequence[Fraction], p: Fraction) -> Fraction:
    """The largest perturbed mass: all but the least that the complement can have."""
    return sum(perturbed) - least(clean, perturbed, sum(clean) - p)


def assert_exact_bounds(
    certificate: bincp.Certificate,
    clean: Sequence[Fraction],
    perturbed: Sequence[Fraction],
    p: float,
    error: Fraction = SPARSE_ERROR,
) -> None:
    """`lower` is the least perturbed mass, `upper` the most clean mass that p allows."""
    value = least(clean, perturbed, Fraction(p))
    exact = Exact(value, 1 - value, 400)
    exact.assert_at_least(certificate.lower(p))
    exact.assert_within(certificate.lower(p), error)
    value = most(perturbed, clean, Fraction(p))
    exact = Exact(value, 1 - value, 400)
    exact.assert_at_most(certificate.upper(p))
    exact.assert_within(certificate.upper(p), error)


# ---- the mixture correction by the numbers that it depends on -----------------------------------


def largest_valid_count(
    certificate: bincp.Certificate,
    *,
    t: int,
    rank: int,
    n: int,
    m: int,
    m_test: int,
    alpha: Fraction,
) -> int:
    """The largest valid k of a p-fixed rule: a count that is free of the search."""
    if rank == 0:
        return 0
    setup = Setup(certificate, n, m, m_test, alpha)
    condition = setup.condition(t, rank)
    k, _ = largest_count(condition, m_test)
    return max(k, count_without_attack(setup, t, rank, condition.curve))


def tau_fixed_count(
    certificate: bincp.Certificate, t: int, rank: int, n: int, m: int, m_test: int, alpha: Fraction
) -> Any:
    """The largest valid k where t was observed, and its condition."""
    return _fixed_tau.tau_fixed_count(Setup(certificate, n, m, m_test, alpha), t, rank)


FIXED = Price(early=False)


def choose(
    certificate: bincp.Certificate,
    n: int,
    m: int,
    m_test: int,
    alpha: Fraction,
    *,
    t: int | None = None,
    price: Price = FIXED,
) -> Rule:
    """The rule that is chosen, for a fixed count if nothing else is said."""
    return choose_rule(Setup(certificate, n, m, m_test, alpha, t=t), price)
