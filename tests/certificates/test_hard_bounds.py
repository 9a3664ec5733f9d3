"""Bounds at extreme probabilities and shifts against exact values, and from several threads."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import bincp
from bincp import balls, smoothing
from bincp._core import _operators
from many_bounds import (
    DIGITS,
    FAMILIES,
    Normal,
    hard_probabilities,
    hard_shift,
    laplace_bounds,
    run_batch,
    steps_bounds,
)
from support import golden

SCHEMES = golden("hard_bounds")["schemes"]
NORMAL = Normal()


def made(fields: dict[str, Any], module: Any) -> Any:
    values = {
        name: float.fromhex(value) if isinstance(value, str) and "0x" in value else value
        for name, value in fields.items()
    }
    return getattr(module, values.pop("type"))(**values)


def bounds_of(scheme: dict[str, Any]) -> Any:
    if "operator" in scheme:
        return _operators.steps(*scheme["operator"]["steps"])
    noise, ball = made(scheme["smoothing"], smoothing), made(scheme["ball"], balls)
    return bincp.certify(noise, ball).operator


@pytest.mark.parametrize("family", sorted({scheme["family"] for scheme in SCHEMES}))
def test_no_bound_is_beyond_the_exact_one(family: str) -> None:
    """Columns 2 and 4 of a row are the nearest doubles on the safe side of the exact bounds."""
    seen = 0
    for scheme in SCHEMES:
        if scheme["family"] != family:
            continue
        operator = bounds_of(scheme)
        columns = [[row[0], row[2], row[4]] for row in scheme["rows"]]
        p, most, least = np.array([[float.fromhex(x) for x in row] for row in columns]).T.copy()
        lower, upper = np.empty_like(p), np.empty_like(p)
        operator.lower_fill(p, lower)
        operator.upper_fill(p, upper)
        assert (lower <= most).all()
        assert (upper >= least).all()
        assert [operator.lower(x) for x in p] == lower.tolist()
        assert [operator.upper(x) for x in p] == upper.tolist()
        seen += len(p)
    assert seen > 50


# ---- random hard cases ----------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_of_hard_cases(family: str) -> None:
    """Those of tests/many_bounds.py, which does as many as one likes."""
    tally = run_batch(family, 0)
    assert tally.cases >= 100
    assert tally.unsafe == []


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_more_batches_of_hard_cases(family: str) -> None:
    assert [text for number in range(1, 25) for text in run_batch(family, number).unsafe] == []


@pytest.mark.parametrize(("family", "name"), [("gaussian", "gaussian"), ("laplace", "laplace")])
def test_a_shift_that_is_short_by_a_few_digits_is_found(
    family: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = getattr(_operators, name)
    monkeypatch.setattr(_operators, name, lambda shift: operator(shift * (1 - 1e-13)))
    assert run_batch(family, 0).unsafe


def test_a_bound_that_is_looked_at_from_the_wrong_side_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Swapped:
        name = "swapped"

        def __init__(self, operator: Any) -> None:
            self.lower_fill, self.upper_fill = operator.upper_fill, operator.lower_fill

    uniform = _operators.uniform
    monkeypatch.setattr(_operators, "uniform", lambda shift: Swapped(uniform(shift)))
    assert run_batch("uniform", 0).unsafe


def normal_bounds(p: float, shift: float) -> tuple[mpf, mpf]:
    x = NORMAL.position(p)
    return NORMAL.below(x - mpf(shift)), NORMAL.below(x + mpf(shift))


def exact_laplace_bounds(p: float, shift: float) -> tuple[mpf, mpf]:
    return laplace_bounds(p, mp.exp(mpf(shift)))


def gaussian_looseness(p: float, shift: float, bound: mpf) -> float:
    """By how much the Gaussian kernel may miss the bound, relative to the smaller tail.

    The tail is off by 75 + 4 |E| + lever (4 a + 46) units at most, and the bound is as far outside.
    """
    tails = (max(min(q, 1 - q), mpf(2) ** -1074) for q in (mpf(p), bound))
    a, x = (float(NORMAL.abscissa(tail)) for tail in tails)
    far = shift < x * (1 - 1e-9)
    exponent, lever = abs(a * a - x * x) / 2 if far else x * x / 2, shift if far else x + 1
    return 2 * (75 + 4 * exponent + lever * (4 * a + 46)) * 2.0**-53


def laplace_looseness(p: float, shift: float, bound: mpf) -> float:
    """Two factors with a margin of 6 units, each off by 3.4, and two more roundings."""
    return (2 * (6 + 3.4) + 2) * 2.0**-53


def check(operator: Any, p: float, shift: float, exact: tuple[mpf, mpf], looseness: Any) -> None:
    lower, upper = operator.lower(p), operator.upper(p)
    low, high = exact
    assert 0 <= lower <= p <= upper <= 1
    assert mpf(lower) <= low, (operator.name, p, lower)
    assert mpf(upper) >= high, (operator.name, p, upper)
    rounding = mpf(2) ** -52, mpf(2) ** -1071
    for miss, bound in ((low - lower, low), (upper - high, high)):
        tail = min(bound, 1 - bound)
        assert miss <= looseness(p, shift, bound) * tail + rounding[bound <= 0.5]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("make", "exact", "looseness"),
    [
        (_operators.gaussian, normal_bounds, gaussian_looseness),
        (_operators.laplace, exact_laplace_bounds, laplace_looseness),
    ],
    ids=["gaussian", "laplace"],
)
def test_random_shifts(make: Any, exact: Any, looseness: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with mp.workdps(DIGITS):
        for p in hard_probabilities(rng, 1000).tolist():
            shift = hard_shift(rng)
            check(make(shift), p, shift, exact(p, shift), looseness)


def test_gaussian_shifts_of_the_size_of_the_quantile() -> None:
    """There a moved tail crosses the centre, and the form of the evaluation changes."""
    rng = np.random.default_rng(3)
    with mp.workdps(DIGITS):
        for p in hard_probabilities(rng, 250).tolist():
            a = abs(float(NORMAL.position(p)))
            for shift in (0.5 * a, a, math.nextafter(a, 0), 2 * a):
                if shift > 0:
                    exact = normal_bounds(p, shift)
                    check(_operators.gaussian(shift), p, shift, exact, gaussian_looseness)


def test_random_counts() -> None:
    rng = np.random.default_rng(4)
    for _ in range(2000):
        levels = int(2 ** (50 * rng.random()))
        count, steps = (int(x) for x in rng.integers(levels + 1, size=2))
        operator = _operators.steps(levels, steps)
        for p in (count / levels, math.nextafter(count / levels, 0.5), rng.random()):
            low, high = steps_bounds(p, levels, steps)
            lower, upper = operator.lower(p), operator.upper(p)
            assert low - Fraction(1, 2**52) <= Fraction(lower) <= low
            assert high <= Fraction(upper) <= high + Fraction(1, 2**52)


def test_too_many_levels_are_refused() -> None:
    assert _operators.steps(2**50, 1).lower(1.0) == 1 - 2.0**-50
    with pytest.raises(ValueError, match=r"at most 2\*\*50 levels, got 1125899906842625"):
        _operators.steps(2**50 + 1, 1)


# ---- threads --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 50_000), (150_001,), (10,), (0,)])
def test_threads_give_the_same_bounds(shape: tuple[int, ...]) -> None:
    certificate = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.12))
    p = np.random.default_rng(5).random(shape)
    for bound in (certificate.lower, certificate.upper):
        one, four = bound(p), bound(p, n_threads=4)
        assert four.shape == shape
        np.testing.assert_array_equal(one, four)


def test_large_arrays_are_shared_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = []

    def counted(jobs: Any) -> Any:
        shares.append(len(jobs))
        return [job() for job in jobs]

    monkeypatch.setattr("bincp.certificates._certificate.run_all", counted)
    p = np.random.default_rng(5).random(150_000)
    bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.12)).lower(p, n_threads=4)
    bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.12)).lower(p[:100], n_threads=4)
    bincp.Certificate.from_bounds(lambda x: 0.5 * x).lower(p[:100_000], n_threads=4)
    assert shares == [4, 1, 1]


@pytest.mark.parametrize("p", [0.5, [0.5, 0.25]])
@pytest.mark.parametrize(("n_threads", "error"), [(0, ValueError), (1.5, TypeError)])
def test_a_number_of_threads_is_checked(p: Any, n_threads: Any, error: type[Exception]) -> None:
    certificate = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.12))
    with pytest.raises(error, match="`n_threads` must be"):
        certificate.lower(p, n_threads=n_threads)
