"""Certificates made of certificates: exact values, and forms that look right and are not."""

import pickle
from fractions import Fraction
from itertools import pairwise
from itertools import product as pairs_of
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
from support import golden, least, most

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


def test_a_trade_off_function_that_rounds_up_promises_no_more_than_p() -> None:
    certificate = from_tradeoff(lambda a: min(1.0, 1.0 - a + 5e-10))
    for p in (0.0, 5e-324, 0.25, 0.5, 1.0):
        assert certificate.lower(p) <= p
        assert certificate.upper(p) >= p


LINES = [(1.0, -3.0), (0.5, -0.625)]


def test_the_inverse_of_a_trade_off_function_is_that_of_its_lines() -> None:
    """f falls by 0.79 on [0, 4/19], by 5/38 on [4/19, 4/5], and is 0 from there on."""
    lines = from_tradeoff(LINES)
    function = from_tradeoff(lambda a: max(0.0, *(b + s * a for b, s in LINES)))
    knot = Fraction(1, 2) / (3 - Fraction(5, 8))
    heights = [Fraction(1), 1 - 3 * knot, Fraction(0), Fraction(0)]
    places = [Fraction(0), knot, Fraction(4, 5), Fraction(1)]
    clean = [b - a for a, b in pairwise(places)]
    perturbed = [a - b for a, b in pairwise(heights)]
    for p in (Fraction(i, 16) for i in range(17)):
        # The roles of the laws are exchanged.
        lower, upper = least(perturbed, clean, p), most(clean, perturbed, p)
        for certificate in (lines.inverse(), function.inverse()):
            assert lower - CLOSE <= Fraction(certificate.lower(float(p))) <= lower
            assert upper <= Fraction(certificate.upper(float(p))) <= upper + CLOSE
    again = pickle.loads(pickle.dumps(lines.inverse()))
    assert again.describe() == lines.inverse().describe()
    assert [again.lower(p / 16) for p in range(17)] == [
        lines.inverse().lower(p / 16) for p in range(17)
    ]


def test_products_with_noise_in_two_levels_have_its_regions() -> None:
    part = [
        (Fraction(1, 2), Fraction(1, 4)),
        (Fraction(1, 4),) * 2,
        (Fraction(1, 4), Fraction(1, 2)),
    ]
    inner = Certificate.from_regions(*([float(x) for x in law] for law in zip(*part, strict=True)))
    made = product(hierarchical(inner, 0.5, 2), inner)
    share = Fraction(1, 4)  # both of two elements are touched
    levels = [(1 - share, Fraction(0)), (Fraction(0), 1 - share)]
    levels += [(share * a, share * b) for a, b in part]
    both = [(a * c, b * d) for (a, b), (c, d) in pairs_of(levels, part)]
    clean, perturbed = zip(*both, strict=True)
    for p in (Fraction(i, 16) for i in range(17)):
        lower, upper = least(clean, perturbed, p), most(perturbed, clean, p)
        assert lower - CLOSE <= Fraction(made.lower(float(p))) <= lower
        assert upper <= Fraction(made.upper(float(p))) <= upper + CLOSE


def test_noise_on_nothing_that_changed_is_the_identity_in_combinations_too() -> None:
    flips = bincp.certify(bincp.smoothing.SparseFlip(0.01, 0.6), bincp.balls.Flips(1, 2))
    for shown in (False, True):
        nothing = hierarchical(flips, 0.5, 0, shown=shown)
        whole = mixture([nothing, repeat(flips, 0)], ["1/2", "1/2"])
        assert nothing.describe()["tight"]
        assert whole.describe()["tight"]
        assert whole.lower(0.9) == whole.upper(0.9) == 0.9
        assert product(nothing, nothing).lower(0.9) == 0.9


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


# ---- forms that look right and are not ----------------------------------------------------------


def right(form: str, inputs: dict[str, Any]) -> Certificate:
    """Return our certificate for the inputs of a wrong form."""
    if "laws_of_x_x1_x2" in inputs:
        x, x1, x2 = inputs["laws_of_x_x1_x2"]
        return compose(Certificate.from_regions(x, x1), Certificate.from_regions(x1, x2))
    if "world" in inputs:
        return hierarchical(made(inputs["c0"]), inputs["world"]["q"], inputs["r"])
    if "from_gdp" in inputs:
        return repeat(from_gdp(inputs["from_gdp"]), inputs["repeat"])
    operands = [made(part) for part in inputs["operands"]]
    if "weights" in inputs:
        return mixture(operands, inputs["weights"])
    return {"compose": compose, "product": product}[form.split(":")[0]](*operands)


KEPT = "kept for all draws"  # a warning of the notes of mixture: its certificate is for each draw


# Others are refuted where the scheme is tested, or below.
WRONG = [
    row
    for row in GOLDEN["wrong_forms"]["rows"]
    if KEPT not in row["form"] and not row["form"].startswith(("anisotropic", "S depends"))
]


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row["form"])
def test_ours_is_safe_where_a_wrong_form_is_not(row: dict[str, Any]) -> None:
    certificate = right(row["form"], row["inputs"])
    value = getattr(certificate, row["bound"])(row["inputs"]["p"])
    assert_safe(row["bound"], value, row["right"])
    with pytest.raises(AssertionError):
        assert_safe(row["bound"], float(Fraction(row["wrong"])), row["right"])


def test_one_scheme_for_all_draws_of_an_input_is_no_mixture() -> None:
    """(id, 0), one half each, m' = 2, k = 1, p = 1: all draws fail together, half of the time."""
    parts = [made({"scheme": "identity"}), made({"scheme": "zero"})]
    each_draw = mixture(parts, ["1/2", "1/2"]).lower(1.0)
    assert 0.5 - 1e-12 < each_draw <= 0.5
    truth = Fraction(1, 2) * 1 + Fraction(1, 2) * 0
    assert 1 - (1 - Fraction(each_draw)) ** 2 > truth + Fraction(1, 5)
    assert min(part.lower(1.0) for part in parts) <= truth


@pytest.mark.parametrize("row", GOLDEN["hierarchical"]["worlds"])
def test_noise_in_two_levels_in_a_world(row: dict[str, Any]) -> None:
    q, shown = row["world"]["q"], row["world"]["selection_shown"]
    certificate = hierarchical(made(row["c0"]), q, row["r"], shown=shown)
    for i, p in enumerate(row["p"]):
        for bound in ("lower", "upper"):
            value = getattr(certificate, bound)(p)
            assert_safe(bound, value, row[f"exact_{bound}"][i])
            if row["equal"]:
                assert_close(bound, value, row[f"exact_{bound}"][i], p)


def pieces(part: dict[str, Any]) -> Certificate:
    """Return an operand that is not convex, as a bound from outside."""
    if part["scheme"] == "step":
        return Certificate.from_bounds(lambda p: part["height"] if p > part["at"] else 0.0)
    if part["scheme"] != "least of regions":
        return made(part)
    pairs = [made({"scheme": "regions", **pair}) for pair in part["pairs"]]
    return Certificate.from_bounds(
        lambda p: min(pair.lower(p) for pair in pairs),
        lambda p: max(pair.upper(p) for pair in pairs),
    )


@pytest.mark.parametrize(
    "row", [row for row in GOLDEN["mixture"]["nonconvex"] if row["randomised"]]
)
def test_mixtures_of_bounds_that_are_not_convex_use_the_envelope(row: dict[str, Any]) -> None:
    certificate = mixture([pieces(part) for part in row["operands"]], row["weights"])
    for i, p in enumerate(row["p"]):
        lower, upper = Fraction(certificate.lower(p)), Fraction(certificate.upper(p))
        assert_safe("lower", certificate.lower(p), row["lower"][i])
        assert_safe("upper", certificate.upper(p), row["upper"][i])
        if p == 0 or p == 1 or 1e-3 <= p <= 1 - 1e-3:
            assert lower >= Fraction(row["convex_lower"][i]) - 50 * LOSS
            assert upper <= Fraction(row["convex_upper"][i]) + 100 * LOSS
