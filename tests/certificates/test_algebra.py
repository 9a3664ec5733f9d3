"""Certificates made of certificates: exact values, and forms that look right and are not."""

from fractions import Fraction
from typing import Any

import pytest

import bincp
from bincp import Certificate
from bincp.certificates import (
    compose,
    from_gdp,
    from_privacy,
    from_tradeoff,
    hierarchical,
    mixture,
    product,
    repeat,
)
from support import golden

GOLDEN = golden("algebra")
KNOWN = Fraction(1, 10**36)  # of the exact values, relative to each
CLOSE = Fraction(4, 10**13)  # of bounds that round outward through two or three kernels


def made(parameters: dict[str, Any]) -> Certificate:
    """Return the certificate that a row of exact values names."""
    values = dict(parameters)
    scheme = values.pop("scheme")
    if scheme in ("identity", "zero"):
        regions = ([1.0], [1.0]) if scheme == "identity" else ([1.0, 0.0], [0.0, 1.0])
        return Certificate.from_regions(*regions)
    if scheme == "regions":
        return Certificate.from_regions(values["mass"], values["perturbed_mass"])
    ball = getattr(bincp.balls, values.pop("ball"))
    of_ball = {name: values.pop(name) for name in list(values) if name in BALL_PARAMETERS}
    return bincp.certify(getattr(bincp.smoothing, scheme)(**values), ball(**of_ball))


BALL_PARAMETERS = {"r", "additions", "deletions", "changes"}


def assert_safe(bound: str, value: float, exact: str) -> None:
    """A lower bound is at most the exact value, an upper bound at least."""
    true, allowed = Fraction(exact), Fraction(exact) * KNOWN
    if bound == "lower":
        assert Fraction(value) <= true + allowed
    else:
        assert Fraction(value) >= min(true - allowed, Fraction(1))


def assert_close(bound: str, value: float, exact: str, p: float) -> None:
    """Close relative to the value, but for what the doubles between two parts round away.

    They are off by some 2^-53. A convex bound is no steeper at p than (1 - c(p)) / (1 - p), and
    `upper` is concave, so that it does not enlarge a relative error.
    """
    true = Fraction(exact)
    allowed = CLOSE * true + Fraction(1, 10**307)
    if bound == "lower" and p < 1:
        allowed += Fraction(8, 2**53) * (1 - true) / (1 - Fraction(p))
    assert abs(Fraction(value) - true) <= allowed


def assert_rule(certificate: Certificate, row: dict[str, Any], p: list[float]) -> None:
    inverse = certificate.inverse()
    sides = {"lower": certificate.lower, "upper": certificate.upper}
    sides |= {"inverse_lower": inverse.lower, "inverse_upper": inverse.upper}
    for side, bound in sides.items():
        for at, exact in zip(p, row.get(side, ()), strict=False):
            value = bound(at)
            assert_safe(side.removeprefix("inverse_"), value, exact)
            assert_close(side.removeprefix("inverse_"), value, exact, at)


def rows_of(section: str, kind: str = "rows") -> Any:
    return pytest.mark.parametrize(
        "row", GOLDEN[section][kind], ids=lambda row: str(GOLDEN[section][kind].index(row))
    )


@rows_of("compose")
def test_compose_has_the_exact_values(row: dict[str, Any]) -> None:
    assert_rule(compose(*map(made, row["operands"])), row, GOLDEN["compose"]["p"])


@rows_of("hierarchical")
def test_hierarchical_has_the_exact_values(row: dict[str, Any]) -> None:
    certificate = hierarchical(made(row["c0"]), row["q"], row["r"])
    assert_rule(certificate, row, GOLDEN["hierarchical"]["p"])


def test_no_repetition_is_the_identity() -> None:
    step = made({"scheme": "Gaussian", "sigma": 1.0, "ball": "L2", "r": 1.0})
    for p in (0.0, 5e-324, 0.3, 1.0):
        assert repeat(step, 0).lower(p) == repeat(step, 0).upper(p) == p
        assert hierarchical(step, 0.5, 0).lower(p) == p


def private(row: dict[str, Any]) -> Certificate:
    if "from_privacy" in row:
        return from_privacy(*row["from_privacy"])
    return from_gdp(row["from_gdp"]) if "from_gdp" in row else from_tradeoff(row["from_tradeoff"])


@rows_of("privacy")
def test_privacy_has_the_exact_values(row: dict[str, Any]) -> None:
    assert_rule(repeat(private(row), row.get("repeat", 1)), row, GOLDEN["privacy"]["p"])


LOSS = Fraction(1, 10**5)  # of curves that stand for bounds without regions


@rows_of("product")
def test_products_are_between_the_orders_and_the_exact_values(row: dict[str, Any]) -> None:
    certificate = product(*map(made, row["operands"]))
    for i, p in enumerate(GOLDEN["product"]["p"]):
        lower, upper = Fraction(certificate.lower(p)), Fraction(certificate.upper(p))
        assert_safe("lower", certificate.lower(p), row["exact_lower"][i])
        assert_safe("upper", certificate.upper(p), row["exact_upper"][i])
        if not 1 - 1e-7 < p < 1:
            least = Fraction(row["lower_larger"][i]) * (1 - Fraction(1, 10**9))
            assert lower >= least - Fraction(1, 10**307)
            assert upper <= Fraction(row["upper_smaller"][i]) * (1 + Fraction(1, 10**9))
        if certificate.describe()["tight"]:
            assert_close("lower", certificate.lower(p), row["exact_lower"][i], p)
            assert_close("upper", certificate.upper(p), row["exact_upper"][i], p)
        assert lower >= Fraction(row["exact_lower"][i]) - 10 * LOSS
        assert upper <= Fraction(row["exact_upper"][i]) + 100 * LOSS  # steep near 0


@rows_of("mixture")
def test_mixtures_are_close_to_the_exact_values(row: dict[str, Any]) -> None:
    certificate = mixture([made(part) for part in row["operands"]], row["weights"])
    for i, p in enumerate(GOLDEN["mixture"]["p"]):
        for side in ("lower", "upper"):
            value = getattr(certificate, side)(p)
            assert_safe(side, value, row[side][i])
            if p == 0 or p == 1 or 1e-3 <= p <= 1 - 1e-3:  # a steep bound is known at doubles only
                assert abs(Fraction(value) - Fraction(row[side][i])) <= LOSS
