"""Certificates made of certificates: exact values, and forms that look right and are not."""

from fractions import Fraction
from typing import Any

import pytest

import bincp
from bincp import Certificate
from bincp.certificates import compose, hierarchical, repeat
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


def assert_close(value: float, exact: str, error: Fraction = CLOSE) -> None:
    """Close relative to the value; results of steep bounds have the error of what they get."""
    true = Fraction(exact)
    assert abs(Fraction(value) - true) <= error * true + Fraction(1, 10**307)


def assert_rule(certificate: Certificate, row: dict[str, Any], p: list[float]) -> None:
    inverse = certificate.inverse()
    sides = {"lower": certificate.lower, "upper": certificate.upper}
    sides |= {"inverse_lower": inverse.lower, "inverse_upper": inverse.upper}
    for side, bound in sides.items():
        for at, exact in zip(p, row.get(side, ()), strict=False):
            value = bound(at)
            assert_safe(side.removeprefix("inverse_"), value, exact)
            # Near 1 the result of the first part, a double, has few digits of its distance from 1.
            if not 1 - 1e-7 < at < 1:
                assert_close(value, exact, CLOSE if at == 1 or at <= 0.99 else Fraction(1, 10**9))


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
