"""The law of certificates: what its checks see, where certificates are made and where used."""

import ctypes
import math
from collections.abc import Callable

import numpy as np
import pytest

import bincp
from bincp import Certificate
from bincp.balls import L2, Ball, Flips
from bincp.certificates import check_rising
from bincp.certificates._law import irregular_probabilities, probability_grid
from bincp.errors import CertificateError
from bincp.smoothing import Gaussian, SparseFlip

FALLS = r"must be non-decreasing, but falls from .* at p = 0\."


def on_a_tenth(p: float) -> bool:
    """Whether p is in a tenth of (0.3, 0.9) that comes again a million times per unit."""
    return 0.3 < p < 0.9 and 0.45 < math.fmod(1e6 * p, 1) < 0.55


def lucky_lower(p: float) -> float:
    """Lose 0.2, but 1e-4 only on a tenth of all probabilities."""
    return p - 1e-4 if on_a_tenth(p) else max(p - 0.2, 0.0)


def lucky_upper(p: float) -> float:
    return p + 1e-4 if on_a_tenth(p) else min(p + 0.2, 1.0)


def lucky_radius(p: float) -> float:
    return p - 0.4 if on_a_tenth(p) else p - 0.5


def right_lower(p: float) -> float:
    return max(p - 0.2, 0.0)


def right_upper(p: float) -> float:
    return min(p + 0.2, 1.0)


def compiled(bound: Callable[[float], float]) -> object:
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(bound)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Certificate.from_bounds(lucky_lower),
        lambda: Certificate.from_bounds(lucky_lower, right_upper),
        lambda: Certificate.from_bounds(right_lower, lucky_upper),
        lambda: Certificate.from_native(compiled(lucky_lower)),
        lambda: Certificate.from_native(compiled(lucky_lower), compiled(right_upper)),
        lambda: Certificate.from_native(compiled(right_lower), compiled(lucky_upper)),
        lambda: Certificate.from_radius(lucky_radius, 0.1),
        lambda: Certificate.from_radius(lucky_radius, 0.1, additive=True),
    ],
)
def test_a_bound_that_is_wrong_on_a_tenth_with_a_short_period_is_refused(
    make: Callable[[], Certificate],
) -> None:
    with pytest.raises(CertificateError, match=FALLS):
        make()


@pytest.mark.parametrize("decimals", range(2, 10))
@pytest.mark.parametrize("radix", [2, 10])
def test_faults_on_a_tenth_cannot_hide_behind_any_period(radix: int, decimals: int) -> None:
    def bound(p: float) -> float:
        lucky = 0.3 < p < 0.9 and 0.45 < math.fmod(radix**decimals * p, 1) < 0.55
        return p - 1e-4 if lucky else max(p - 0.2, 0.0)

    with pytest.raises(CertificateError, match=FALLS):
        Certificate.from_bounds(bound, right_upper)


@pytest.mark.parametrize("broken", ["lower", "upper"])
def test_a_certificate_whose_code_was_changed_afterwards_is_refused_when_asked(broken: str) -> None:
    wrong = False
    certificate = Certificate.from_bounds(
        lambda p: lucky_lower(p) if wrong and broken == "lower" else right_lower(p),
        lambda p: lucky_upper(p) if wrong and broken == "upper" else right_upper(p),
    )
    bincp.testing.check_certificate(certificate)
    wrong = True
    with pytest.raises(CertificateError, match=f"{broken} {FALLS}"):
        bincp.testing.check_certificate(certificate)


def test_a_registered_factory_is_refused_too() -> None:
    class Nowhere(Ball):
        pass

    register = bincp.register(Gaussian, Nowhere, examples=[(Gaussian(0.5), Nowhere())])
    with pytest.raises(CertificateError, match=FALLS):
        register(lambda smoothing, ball: lucky_lower)


# ---- where calibration evaluates a certificate --------------------------------------------------


def widest_gap() -> tuple[float, float]:
    """Return the neighbours among the checked points between which most of (0.5, 0.9) lies."""
    points = np.array(sorted({*probability_grid(), *irregular_probabilities()}))
    points = points[(points > 0.5) & (points < 0.9)]
    i = int(np.argmax(np.diff(points)))
    return float(points[i]), float(points[i + 1])


def test_calibration_refuses_a_certificate_that_falls_where_it_is_evaluated() -> None:
    """The law check cannot see between its points; the rule must not be made all the same."""
    low, high = widest_gap()
    certificate = Certificate.from_bounds(
        lambda p: p - 1e-4 if low < p < high else max(p - 0.2, 0.0), right_upper
    )
    scores = np.random.default_rng(0).random((200, 1_000))
    rule = bincp.BinCP(certificate, p=(low + high) / 2)
    with pytest.raises(CertificateError, match=rf"lower {FALLS}"):
        rule.calibrate(scores)


@pytest.mark.parametrize(
    "certificate",
    [
        bincp.certify(Gaussian(0.5), L2(0.3)),
        bincp.certify(SparseFlip(0.01, 0.6), Flips(2, 3)),
        Certificate.from_bounds(right_lower),
    ],
)
def test_rounding_is_no_fall(certificate: Certificate) -> None:
    """Neighbouring doubles, at which bounds that are rounded outward may fall by a few units."""
    for start in (1e-9, 0.3, 0.9, 1 - 1e-9):
        p = start + np.arange(2_000) * math.ulp(start)
        check_rising(certificate, "lower", p, certificate.lower(p))
        check_rising(certificate, "upper", p, certificate.upper(p))


def test_falls_are_judged_against_the_highest_value_so_far() -> None:
    p = np.array([0.1, 0.2, 0.3, 0.4])
    check_rising("it", "lower", p, np.array([0.1, 0.1 - 9e-10, 0.1 - 9e-10, 0.2]))
    with pytest.raises(
        CertificateError, match=r"'it': lower .* falls from 0\.1 to 0\.0\d+ at p = 0\.3"
    ):
        check_rising("it", "lower", p, np.array([0.1, 0.1 - 9e-10, 0.1 - 1.8e-9, 0.2]))
    with pytest.raises(CertificateError, match=r"to nan at p = 0\.2"):
        check_rising("it", "lower", p, np.array([0.1, math.nan, 0.3, 0.4]))
