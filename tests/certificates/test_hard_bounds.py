"""Bounds at extreme probabilities and shifts against exact values, and from several threads."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import bincp
from bincp import balls, smoothing
from bincp._core import _operators
from support import golden

SCHEMES = golden("hard_bounds")["schemes"]


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


def hard_probabilities(rng: np.random.Generator, n: int) -> Iterator[float]:
    for kind, u in zip(rng.integers(6, size=n), rng.random(n), strict=True):
        if kind == 0:
            yield u
        elif kind == 1:
            yield 10 ** (-323.3 * u)
        elif kind == 2:
            yield 1 - 10 ** (-16.2 * u)
        elif kind == 3:
            yield float(np.int64(2 ** (1 + 51 * u)).view(np.float64))  # subnormal
        elif kind == 4:
            yield 0.5 + (1 if u < 0.5 else -1) * 10 ** (-16.5 * u)
        else:
            yield math.nextafter(0.5 ** (1 + 60 * u), 0)


def hard_shifts(rng: np.random.Generator, n: int) -> Iterator[float]:
    for kind, u in zip(rng.integers(4, size=n), rng.random(n), strict=True):
        yield [4 * u, 10 ** (-20 * u), 76 * u, 10 ** (4 * u)][kind]


def normal_tail(x: mpf) -> mpf:
    return mp.erfc(x / mp.sqrt(2)) / 2


def normal_quantile(t: mpf) -> mpf:
    """The x with the tail t <= 1/2, by Newton's method on the logarithm of the tail."""
    x = mp.sqrt(-2 * mp.log(2 * t))
    for _ in range(100):
        tail = normal_tail(x)
        step = mp.log(tail / t) * tail / mp.npdf(x)
        x += step
        if abs(step) < mpf(10) ** -42:
            return x
    raise AssertionError(t)


def normal_bounds(p: float, shift: float) -> tuple[mpf, mpf]:
    t = min(mpf(p), 1 - mpf(p))
    x = normal_quantile(t) * (-1 if p <= 0.5 else 1)
    at = [x - mpf(shift), x + mpf(shift)]
    low, high = (normal_tail(-y) if y <= 0 else 1 - normal_tail(y) for y in at)
    return low, high


def laplace_bounds(p: float, shift: float) -> tuple[mpf, mpf]:
    """The tails are kept apart, so that none is lost beside 1."""
    q, rest, factor = mpf(p), 1 - mpf(p), mp.exp(mpf(shift))
    low = q / factor if p <= 0.5 else inwards(rest, factor, complement=True)
    high = inwards(q, factor, complement=False) if p <= 0.5 else 1 - rest / factor
    return low, high


def inwards(t: mpf, factor: mpf, *, complement: bool) -> mpf:
    near, beyond = t * factor, 1 / (4 * t * factor)
    if near <= mpf(1) / 2:
        return 1 - near if complement else near
    return beyond if complement else 1 - beyond


def steps_bounds(p: float, levels: int, steps: int) -> tuple[mpf, mpf]:
    count = int(mp.nint(mpf(p) * levels))
    if count / levels == p:  # p stands for a count
        return mpf(max(count - steps, 0)) / levels, mpf(min(count + steps, levels)) / levels
    share = mpf(steps) / levels
    return max(mpf(p) - share, mpf(0)), min(mpf(p) + share, mpf(1))


def gaussian_looseness(p: float, shift: float, bound: mpf) -> float:
    """By how much the Gaussian kernel may miss the bound, relative to the smaller tail.

    The tail is off by 75 + 4 |E| + lever (4 a + 46) units at most, and the bound is as far outside.
    """
    a, x = (float(normal_quantile(min(q, 1 - q))) if 0 < q < 1 else 39.0 for q in (mpf(p), bound))
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
        (_operators.laplace, laplace_bounds, laplace_looseness),
    ],
    ids=["gaussian", "laplace"],
)
def test_random_shifts(make: Any, exact: Any, looseness: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with mp.workdps(45):
        for p, shift in zip(hard_probabilities(rng, 1000), hard_shifts(rng, 1000), strict=True):
            if 0 < p < 1:
                check(make(shift), p, shift, exact(p, shift), looseness)


def test_gaussian_shifts_of_the_size_of_the_quantile() -> None:
    """There a moved tail crosses the centre, and the form of the evaluation changes."""
    rng = np.random.default_rng(3)
    with mp.workdps(45):
        for p in hard_probabilities(rng, 250):
            if not 0 < p < 1 or p == 0.5:
                continue
            a = abs(float(normal_quantile(min(mpf(p), 1 - mpf(p)))))
            for shift in (0.5 * a, a, math.nextafter(a, 0), 2 * a):
                if shift > 0:
                    exact = normal_bounds(p, shift)
                    check(_operators.gaussian(shift), p, shift, exact, gaussian_looseness)


def test_random_counts() -> None:
    rng = np.random.default_rng(4)
    with mp.workdps(45):
        for _ in range(2000):
            levels = int(2 ** (50 * rng.random()))
            count, steps = (int(x) for x in rng.integers(levels + 1, size=2))
            operator = _operators.steps(levels, steps)
            for p in (count / levels, math.nextafter(count / levels, 0.5), rng.random()):
                low, high = steps_bounds(p, levels, steps)
                lower, upper = operator.lower(p), operator.upper(p)
                assert low - mpf(2) ** -52 <= lower <= low
                assert high <= upper <= high + mpf(2) ** -52


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
