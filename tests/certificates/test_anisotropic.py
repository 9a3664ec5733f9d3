"""Gaussian noise with a fixed covariance: exact values, the worst shift by search, and refusals."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

import bincp
from bincp._utils.definite import is_at_least
from bincp.balls import L1, L2, Ball, Box, Ellipsoid, Linf
from bincp.smoothing import AnisotropicGaussian, Gaussian, Smoothing
from support import golden

GOLDEN = golden("algebra")["anisotropic"]


def scheme_of(row: dict[str, Any]) -> AnisotropicGaussian:
    return AnisotropicGaussian(row.get("std"), row.get("covariance"))


def ball_of(ball: dict[str, Any]) -> Ball:
    kind = ball["type"]
    if kind == "box":
        return Box(ball["r"])
    if kind == "ellipsoid":
        return Ellipsoid(ball["r"], ball["M"])
    return (L1 if kind == "L1" else L2)(ball["r"])


def shift(certificate: bincp.Certificate) -> float:
    """Return the shift in standard deviations, as the bound at 1/2 has it."""
    return -float(special.ndtri(certificate.lower(0.5)))


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=range(len(GOLDEN["rows"])))
def test_bounds_have_the_exact_values(row: dict[str, Any]) -> None:
    certificate = bincp.certify(scheme_of(row), ball_of(row["ball"]))
    for i, p in enumerate(GOLDEN["p"]):
        for side in ("lower", "upper"):
            value, true = Fraction(getattr(certificate, side)(p)), Fraction(row[side][i])
            error = true / 10**36
            assert value <= true + error if side == "lower" else value >= min(true - error, 1)
            # Relative to the smaller end; mu may be rounded up by 2^-49 of itself.
            scale = min(true, 1 - true) if side == "lower" else true
            mu = 0 if row["mu"] == "inf" else Fraction(row["mu"])
            allowed = scale * Fraction(1, 10**11) * (1 + mu) ** 2 + Fraction(1, 2**52)
            assert abs(value - true) <= allowed


def test_wrong_forms_are_refuted() -> None:
    rows = golden("algebra")["wrong_forms"]["rows"]
    rows = [row for row in rows if row["form"].startswith("anisotropic")]
    assert len(rows) == 2
    for row in rows:
        inputs = row["inputs"]
        if "box" in inputs:
            scheme, ball = AnisotropicGaussian(inputs["std"]), Box(inputs["box"])
        else:
            scheme = AnisotropicGaussian(covariance=inputs["covariance"])
            ball = Ellipsoid(inputs["r"], inputs["M"])
        value = bincp.certify(scheme, ball).lower(inputs["p"])
        assert Fraction(value) <= Fraction(row["right"])
        assert Fraction(value) < Fraction(row["wrong"]) - Fraction(1, 20)


def test_noise_that_depends_on_the_input_is_refused() -> None:
    """The counterexample of the notes: promised 0.7335, true 2e-9."""
    with pytest.raises(TypeError, match="noise that depends on the input has no certificate"):
        AnisotropicGaussian(lambda x: 1.0)  # type: ignore[arg-type]
    clean = 1 - (special.ndtr(0.2) - special.ndtr(-0.4))  # |z - x'| > 0.3 for x = 0, x' = 0.1
    assert clean == pytest.approx(0.7653, abs=5e-5)
    promised = bincp.certify(Gaussian(1.0), L2(0.1)).lower(clean)
    assert promised == pytest.approx(0.7335, abs=5e-5)
    attacked = 2 * special.ndtr(-0.3 / 0.05)
    assert attacked == pytest.approx(1.97e-9, rel=1e-2)
    assert attacked < promised


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dim", [2, 3, 6, 30])
def test_no_shift_of_the_ball_is_larger_and_one_is_as_large(seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=(dim, dim)) for _ in range(2))
    covariance, matrix = a @ a.T + 0.1 * np.eye(dim), b @ b.T
    covariance, matrix = (covariance + covariance.T) / 2, (matrix + matrix.T) / 2
    scheme, r = AnisotropicGaussian(covariance=covariance.tolist()), 0.1
    inverse = np.linalg.inv(covariance)
    ball = Ellipsoid(r, matrix.tolist())
    mu = shift(bincp.certify(scheme, ball))
    directions = rng.normal(size=(2000, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    shifts = r * directions @ np.linalg.cholesky(matrix + 1e-14 * np.eye(dim)).T
    lengths = np.sqrt(np.einsum("ni,ij,nj->n", shifts, inverse, shifts))
    assert lengths.max() <= mu * (1 + 1e-9)
    worst = np.linalg.eigvals(inverse @ matrix).real.max()
    assert mu == pytest.approx(r * math.sqrt(worst), rel=1e-8)
    of_l2 = shift(bincp.certify(scheme, L2(r, dim)))
    assert of_l2 == pytest.approx(r / math.sqrt(np.linalg.eigvalsh(covariance)[0]), rel=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_the_worst_corner_of_a_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, 4))
    covariance = a @ a.T + 0.1 * np.eye(4)
    covariance = (covariance + covariance.T) / 2
    r = rng.random(4)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T * r
    lengths = np.einsum("ni,ij,nj->n", signs, np.linalg.inv(covariance), signs)
    scheme = AnisotropicGaussian(covariance=covariance.tolist())
    mu = shift(bincp.certify(scheme, Box(r)))
    assert mu == pytest.approx(math.sqrt(lengths.max()), rel=1e-8)
    assert shift(bincp.certify(scheme, Linf(0.1, 4))) <= 0.1 * mu / r.min() * (1 + 1e-9)


def test_isotropic_noise_is_a_special_case() -> None:
    p = np.linspace(0, 1, 101)
    for ball in (L1(0.2), L2(0.2), Linf(0.2, 5), Box([0.1] * 5), Ellipsoid(0.2, [1.0] * 5)):
        anisotropic = bincp.certify(AnisotropicGaussian([0.5] * 5), ball)
        isotropic = bincp.certify(Gaussian(0.5), ball)
        np.testing.assert_allclose(anisotropic.lower(p), isotropic.lower(p), rtol=1e-13)
    on_grid = bincp.certify(Gaussian(0.5, grid=255), Box([0.1] * 5))
    assert on_grid.lower(0.9) < bincp.certify(Gaussian(0.5), Box([0.1] * 5)).lower(0.9)


@pytest.mark.parametrize("dim", [3, 30])
def test_the_units_of_the_coordinates_change_nothing(dim: int) -> None:
    """Each in another unit, up to the ends of the doubles: noise and ball change alike."""
    rng = np.random.default_rng(dim)
    a, b = rng.normal(size=(2, dim, dim))
    covariance, matrix = a @ a.T + dim * np.eye(dim), b @ b.T
    covariance, matrix = covariance + covariance.T, matrix + matrix.T
    std = 1 + rng.random(dim)
    units = 2.0 ** np.linspace(-490, 490, dim).astype(int)
    both = np.outer(units, units)
    p = np.linspace(0, 1, 11)
    for here, there in (
        (AnisotropicGaussian(std), AnisotropicGaussian(std * units)),
        (
            AnisotropicGaussian(covariance=covariance),
            AnisotropicGaussian(covariance=covariance * both),
        ),
    ):
        wanted = bincp.certify(here, Ellipsoid(0.1, matrix)).lower(p)
        np.testing.assert_array_equal(
            bincp.certify(there, Ellipsoid(0.1, matrix * both)).lower(p), wanted
        )
        assert 0 < wanted[5] < 0.5
    high = AnisotropicGaussian([2.0**1000] * dim)
    for ball in (
        Ellipsoid(2.0**1000, matrix),
        Ellipsoid(1e308, matrix),
        Box([1e308] * min(dim, 8)),
    ):
        noise = AnisotropicGaussian([2.0**1000] * 8) if isinstance(ball, Box) and dim > 8 else high
        assert 0 <= bincp.certify(noise, ball).lower(0.9) <= 0.9


TILTED = [[1.0, 0.5], [0.5, 1.0]]


@pytest.mark.parametrize(
    ("std", "ball"),
    [
        ([1.0, 0.0], Ellipsoid(0.1, [1.0, 1.0])),
        ([1.0, 0.0], Ellipsoid(0.1, TILTED)),
        ([0.0, 0.0], Ellipsoid(0.1, TILTED)),
        ([0.0, 0.0], Ellipsoid(0.1, [1.0, 0.0])),
    ],
)
def test_nothing_is_known_where_there_is_no_noise(std: list[float], ball: Ellipsoid) -> None:
    certificate = bincp.certify(AnisotropicGaussian(std), ball)
    assert (certificate.lower(0.9), certificate.upper(0.1)) == (0.0, 1.0)
    assert "leaves the range of the covariance" in repr(certificate)


@pytest.mark.parametrize(
    ("std", "ball"),
    [
        ([0.0, 0.0], Ellipsoid(0.0, TILTED)),
        ([1.0, 0.0], Ellipsoid(0.0, [1.0, 1.0])),
        ([0.0, 0.0], Ellipsoid(0.1, np.zeros((2, 2)))),
    ],
)
def test_a_ball_of_one_point_costs_nothing(std: list[float], ball: Ellipsoid) -> None:
    certificate = bincp.certify(AnisotropicGaussian(std), ball)
    assert (certificate.lower(0.9), certificate.upper(0.1)) == (0.9, 0.1)


def test_many_dimensions_of_equal_noise_are_a_ball_of_the_longest_axis() -> None:
    matrix = np.eye(30)
    matrix[:2, :2] = TILTED  # its eigenvalues are 1/2 and 3/2
    certificate = bincp.certify(AnisotropicGaussian([0.5] * 30), Ellipsoid(0.1, matrix))
    ball = bincp.certify(Gaussian(0.5), L2(0.1 * math.sqrt(1.5)))
    for p in (0.01, 0.5, 0.9):
        assert ball.lower(p) * (1 - 1e-6) <= certificate.lower(p) <= ball.lower(p)


def test_a_box_of_many_corners_needs_independent_noise() -> None:
    with pytest.raises(bincp.CertificateError, match="a box in more than 8 dimensions: certify an"):
        bincp.certify(AnisotropicGaussian(covariance=np.eye(9)), Box([0.1] * 9))


def test_definiteness_is_proven_or_denied() -> None:
    rng = np.random.default_rng(0)
    for dim in (3, 40):
        a = rng.normal(size=(dim, dim))
        matrix = a @ a.T
        least = np.linalg.eigvalsh(matrix)[0]
        unit = np.eye(dim)
        assert is_at_least(Fraction(1), matrix, unit * least * 0.99)
        assert not is_at_least(Fraction(1), matrix, unit * least * 1.01)
        assert not is_at_least(Fraction(1), matrix, unit * 1e9)
    assert is_at_least(Fraction(1), np.eye(40) * 1e200, np.eye(40))
    crossed = np.zeros((40, 40))
    crossed[0, 1] = crossed[1, 0] = 1e300  # beyond the doubles in units of the diagonal
    assert not is_at_least(Fraction(1), np.eye(40) * 1e-300, crossed)
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert is_at_least(Fraction(1), singular, singular)
    assert not is_at_least(Fraction(1), singular, np.eye(2) * 5e-324)


def test_drawn_noise_has_the_covariance() -> None:
    covariance = np.array([[1.0, 0.6, 0.0], [0.6, 0.5, 0.1], [0.0, 0.1, 2.0]])
    x = np.zeros((1, 3))
    n = 40_000
    for scheme, wanted in (
        (AnisotropicGaussian(covariance=covariance.tolist()), covariance),
        (AnisotropicGaussian([0.5, 0.0, 2.0]), np.diag([0.25, 0.0, 4.0])),
    ):
        noise = bincp.noise.draw(scheme, x, n_samples=n, phase="test")[0]
        # Entries have standard errors of sqrt((s_ii s_jj + s_ij^2) / n); 5 of them for 18 entries.
        sizes = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / n)
        assert np.all(np.abs(noise.T @ noise / n - wanted) <= 5 * sizes)
        alone = bincp.noise.draw(scheme, x, n_samples=7, phase="test")[0]
        assert np.array_equal(alone, noise[:7])


@pytest.mark.parametrize("dim", [2, 30])
def test_a_root_of_the_covariance_is_at_least_that(dim: int) -> None:
    from bincp.noise._anisotropic import _Dependent, _square

    a = np.random.default_rng(1).normal(size=(dim, dim - 1))
    covariance = a @ a.T
    sampler = _Dependent((covariance + covariance.T) / 2)
    assert is_at_least(Fraction(1), _square(sampler.root), (covariance + covariance.T) / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AnisotropicGaussian(), "just one of `std` and `covariance`.* got none"),
        (lambda: AnisotropicGaussian([1.0], [[1.0]]), "just one .* got both"),
        (lambda: AnisotropicGaussian([]), "`std` must have shape"),
        (lambda: AnisotropicGaussian([1.0, -1.0]), "`std` must be >= 0, got -1.0"),
        (lambda: AnisotropicGaussian([1.0, math.nan]), "`std` must be finite, got nan"),
        (lambda: AnisotropicGaussian(["a"]), "`std` must hold real numbers"),
        (
            lambda: AnisotropicGaussian(covariance=[[1.0, 0.5], [0.25, 1.0]]),
            "must be symmetric",
        ),
        (
            lambda: AnisotropicGaussian(covariance=[[1.0, 2.0], [2.0, 1.0]]),
            "must have no negative eigenvalue",
        ),
        (
            lambda: AnisotropicGaussian(covariance=np.zeros((2, 3))),
            r"must have shape \(d, d\)",
        ),
        (lambda: Ellipsoid(-1, [1.0]), "`r` must be finite and >= 0"),
        (lambda: Box([math.inf]), "`r` must be finite"),
        (
            lambda: bincp.certify(AnisotropicGaussian([1.0, 1.0]), Box([1.0])),
            "`ball` must have the 2 dimensions",
        ),
        (
            lambda: bincp.noise.draw(
                AnisotropicGaussian([1.0]), np.zeros((1, 2)), n_samples=1, phase="test"
            ),
            "`x` must have the 1 elements",
        ),
    ],
)
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_stored_rules_find_the_certificate_again() -> None:
    from bincp.certificates import described

    pairs: list[tuple[Smoothing, Ball]] = [
        (AnisotropicGaussian([0.5, 2.0]), Box([0.1, 0.2])),
        (
            AnisotropicGaussian(covariance=[[1.0, 0.5], [0.5, 1.0]]),
            Ellipsoid(0.1, [[1.0, 0.0], [0.0, 2.0]]),
        ),
    ]
    for pair in pairs:
        certificate = bincp.certify(*pair)
        again = described(certificate.describe())
        assert again is not None
        assert again.describe() == certificate.describe()
