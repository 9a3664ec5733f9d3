"""What bounds pay for noise that is not quite its law, and radii on a grid."""

import ctypes
import json
import math
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bincp
from bincp._core import _operators
from bincp._utils.levels import float_above
from bincp.balls import L1, L2, CategoricalFlips, Linf
from bincp.calibration._rebuild import certificate_of
from bincp.certificates import check_law
from bincp.smoothing import (
    CategoricalFlip,
    Deletion,
    Expp,
    Gaussian,
    Joint,
    Laplace,
    Pareto,
    Smoothing,
    SparseFlip,
    Uniform,
)
from support import golden

SCHEMES = {"Gaussian": Gaussian, "Laplace": Laplace, "Uniform": Uniform}
BALLS = {"L1": L1, "L2": L2}
CHARGED = golden("grid_noise")["charged"]


def of_golden(case):
    """The operator of a golden case."""
    parameter, r = float.fromhex(case["parameter"]), float.fromhex(case["r"])
    scheme = SCHEMES[case["smoothing"]](parameter, grid=case["grid"])
    if case["distance_is_r_times"] != "1":
        return bincp.certify(scheme, BALLS[case["ball"]](r)).operator
    widths = 2 if case["smoothing"] == "Uniform" else 1
    shift = float_above(Fraction(r) / (widths * Fraction(parameter)))
    law = getattr(_operators, case["smoothing"].lower())(shift)
    return _operators.charged(law, scheme.sampling_error())


@pytest.mark.parametrize("case", CHARGED, ids=lambda case: case["smoothing"] + case["r"])
def test_bounds_are_on_the_safe_side_of_the_golden_ones(case):
    operator = of_golden(case)
    for row in case["rows"]:
        p, lower, upper = (float.fromhex(row[column]) for column in (0, 2, 4))
        assert operator.lower(p) <= lower
        assert upper <= operator.upper(p)
        if 1e-3 < p < 0.999:  # next to 0 and 1 the rounding of p - delta is all that counts
            assert operator.lower(p) >= lower - 1e-12
            assert operator.upper(p) <= upper + 1e-12


@pytest.mark.parametrize("k", [10, 256])
def test_the_choice_of_a_category_is_paid_for_and_costs_next_to_nothing(k):
    """The golden values are those of the law; the draws differ from it where k - 1 is no 2^i."""
    discrete = golden("discrete")
    for cell in (cell for cell in discrete["cells"] if cell["k"] == k):
        scheme = CategoricalFlip(k, cell["p_plus"], cell["p_minus"])
        ball = CategoricalFlips(cell["ra"], cell["rd"], cell["rc"])
        certificate = bincp.certify(scheme, ball)
        assert certificate.describe()["charge"] == scheme.sampling_error() > 0
        for p, lower in zip(discrete["p"], cell["lower"], strict=True):
            assert Fraction(certificate.lower(p)) <= Fraction(lower)
            if 1e-3 < p < 0.999:  # next to 0 and 1 the rounding of p - delta is all that counts
                assert Fraction(certificate.lower(p)) >= Fraction(lower) - Fraction("1e-12")


probabilities = st.floats(0, 1)


@given(probabilities, st.floats(0, 1), st.sampled_from([2.0**-94, 1e-25, 2.0**-29, 0.1, 0.6, 1.0]))
@example(1.0, 0.25, 2.0**-94)
@example(0.0, 0.25, 2.0**-94)
@example(5e-324, 0.0, 2.0**-94)
def test_charges_are_exact_for_a_shift_and_its_law(p, shift, delta):
    """Against max(0, max(0, p - delta) - shift - delta), in fractions."""
    operator = _operators.charged(_operators.uniform(shift), delta)
    p_exact, delta_exact = Fraction(p), Fraction(delta)
    left = max(p_exact - delta_exact, Fraction(0))
    right = min(p_exact + delta_exact, Fraction(1))
    lower = max(max(left - Fraction(shift), Fraction(0)) - delta_exact, Fraction(0))
    upper = min(min(right + Fraction(shift), Fraction(1)) + delta_exact, Fraction(1))
    steps = 3 * Fraction(2) ** -53
    assert lower - steps <= Fraction(operator.lower(p)) <= lower
    assert upper <= Fraction(operator.upper(p)) <= upper + steps


def test_fills_have_the_bounds_of_their_elements():
    p = np.concatenate([[0, 1, math.nan, -1, 2, 5e-324], np.random.default_rng(0).random(1500)])
    for scheme in (Gaussian(0.25, grid=255), Laplace(0.25, grid=255), Uniform(0.5, grid=255)):
        operator = bincp.certify(scheme, L1(0.1)).operator
        out = np.empty_like(p)
        for name in ("lower", "upper"):
            getattr(operator, f"{name}_fill")(p, out)
            expected = [getattr(operator, name)(value) for value in p]
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "scheme", [Gaussian(0.25, grid=255), Laplace(0.1, grid=100), Uniform(0.5, grid=1)]
)
@pytest.mark.parametrize("ball", [L1(0.25), L2(0.1, 3), Linf(0.02, 3), L1(0.0)])
def test_charged_certificates_obey_the_law(scheme, ball):
    certificate = bincp.certify(scheme, ball)
    check_law(certificate)
    assert certificate.describe()["charge"] == scheme.sampling_error() > 0
    assert (
        certificate.operator.name
        == bincp.certify(type(scheme)(scheme.grid_law()[1]), ball).operator.name
    )
    again = pickle.loads(pickle.dumps(certificate))
    assert again.lower(0.9) == certificate.lower(0.9) < 0.9
    assert certificate.lower(1.0) < 1
    assert certificate.upper(0.0) > 0
    bound = ctypes.pythonapi.PyCapsule_IsValid
    bound.argtypes = [ctypes.py_object, ctypes.c_char_p]
    assert bound(certificate.operator.capsule, b"bincp.operator.v1")


@pytest.mark.parametrize(
    ("scheme", "plain"),
    [
        (Expp(0.5, 3, grid=255), Expp(0.5, 3)),
        (Expp(0.5, 1, grid=100), Laplace(0.5)),
        (Expp(0.5, 2, grid=100), Gaussian(0.5 / math.sqrt(2))),
        (Expp(0.01, 0.5, grid=10), Expp(0.01, 0.5)),
        (Pareto(0.1, 3, grid=255), Pareto(0.1, 3)),
    ],
    ids=repr,
)
def test_laws_with_a_shape_are_charged_on_the_grid(scheme, plain):
    """A bound is that of a radius that is larger by 2^-22: between those of two others."""
    for ball in (L1, L2):
        certificate = bincp.certify(scheme, ball(0.02, 4))
        check_law(certificate)
        assert certificate.describe()["charge"] == scheme.sampling_error() > 0
        assert "a distance of multiples of 1/" in certificate.describe()["note"]
        near = bincp.certify(plain, ball(0.02 * (1 + 2.0**-23), 4))
        far = bincp.certify(plain, ball(0.02 * (1 + 2.0**-20), 4))
        for p in (0.6, 0.9, 0.99):
            assert far.lower(p) <= certificate.lower(p) <= near.lower(p)
            assert near.upper(1 - p) <= certificate.upper(1 - p) <= far.upper(1 - p)
        assert pickle.loads(pickle.dumps(scheme)) == scheme
        assert eval(repr(scheme)) == scheme


def test_a_radius_on_the_grid_is_a_whole_number_of_steps_in_single_precision():
    """A radius of float32(10/255) is a bit less than ten steps, but means them."""
    single, exact = float(np.float32(10) / np.float32(255)), Fraction(10, 255)
    assert Fraction(single) != exact
    half_width = 0.25
    for r in (single, float_above(exact), float(np.nextafter(np.float32(single), np.float32(0)))):
        certificate = bincp.certify(Uniform(half_width, grid=255), L1(r))
        certified = Fraction(certificate.lower(0.9))
        assert certified <= Fraction(0.9) - exact / (2 * Fraction(half_width))
        assert certified > Fraction(0.9) - exact / (2 * Fraction(half_width)) - Fraction(1, 2**20)
    floats = bincp.certify(Uniform(half_width), L1(single))
    assert floats.lower(0.9) > bincp.certify(Uniform(half_width, grid=255), L1(single)).lower(0.9)


def test_descriptions_say_what_is_certified():
    described = bincp.certify(Gaussian(0.25, grid=255), Linf(0.1, 4)).describe()
    assert described["smoothing"] == {"type": "Gaussian", "sigma": 0.25, "grid": 255}
    assert "a distance of multiples of 1/255" in described["note"]
    assert described["note"].startswith("linf radius 0.1 certified as the l2 radius")
    assert json.loads(json.dumps(described)) == described
    any_float = bincp.certify(Gaussian(0.25, grid=255, off_grid=True), L2(0.1)).describe()
    assert any_float["smoothing"]["off_grid"] is True
    assert any_float["charge"] == 2.0**-29
    assert "note" not in any_float
    plain = bincp.certify(Gaussian(0.25), L2(0.1)).describe()
    assert plain["smoothing"] == {"type": "Gaussian", "sigma": 0.25}
    assert "charge" not in plain


@dataclass(frozen=True)
class Rounded(Smoothing):
    """Noise from outside, with an error of its own."""

    error: float

    def sampling_error(self) -> float:
        return self.error


@dataclass(frozen=True)
class Move(bincp.balls.Ball):
    r: float


@bincp.register(Rounded, Move)
def rounded(smoothing, ball):
    return lambda p: max(p - ball.r, 0.0)


@bincp.register(Gaussian, Move)
def moved(smoothing, ball):
    return bincp.certify(smoothing, L2(ball.r)).operator if ball.r < 1 else lambda p: p / 2


def test_schemes_from_outside_are_charged_too():
    certificate = bincp.certify(Rounded(0.125), Move(0.25))
    assert certificate.lower(0.75) == 0.25
    assert certificate.lower(0.1) == 0
    assert certificate.upper(0.25) >= 0.75
    np.testing.assert_array_equal(certificate.lower([0.75, 1.0]), [0.25, 0.5])
    assert bincp.certify(Rounded(0.0), Move(0.25)).lower(0.75) == 0.5
    half = bincp.certify(Gaussian(0.25, grid=255), Move(1.0))
    assert 0.5 - 1e-15 < half.lower(1.0) < 0.5


@pytest.mark.parametrize("error", [-0.1, 1.5, math.nan, "0", None])
def test_impossible_errors_are_refused(error):
    with pytest.raises((TypeError, ValueError), match=r"`sampling_error\(\)`"):
        bincp.certify(Rounded(error), Move(0.25))


@pytest.mark.parametrize(
    "scheme",
    [Gaussian(0.25, grid=255), Gaussian(0.25, grid=255, off_grid=True), Gaussian(0.25)],
    ids=repr,
)
def test_stored_rules_have_their_certificate_again(scheme, tmp_path):
    certificate = bincp.certify(scheme, L2(0.1))
    scores = np.random.default_rng(0).random((200, 64))
    rule = bincp.BinCP(certificate, alpha=0.1).calibrate(scores, n_classes=3)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    assert loaded.certificate.describe() == certificate.describe()
    assert loaded.certificate.lower(0.9) == certificate.lower(0.9)
    assert type(scheme)(**vars(scheme)) == scheme
    assert pickle.loads(pickle.dumps(scheme)) == scheme
    assert eval(repr(scheme)) == scheme


def test_descriptions_that_say_less_are_those_of_older_versions():
    certificate = bincp.certify(Gaussian(0.25), L2(0.1))
    scores = np.random.default_rng(0).random((200, 64))
    rule = bincp.BinCP(certificate, alpha=0.1).calibrate(scores, n_classes=3)
    description = {k: v for k, v in certificate.describe().items() if k != "assumes"}
    older = certificate_of(replace(rule._rule, certificate=description))
    assert older.lower(0.9) == certificate.lower(0.9)
    other = description | {"operator": "laplace"}
    assert certificate_of(replace(rule._rule, certificate=other)) is None
    unknown = description | {"more": 1}
    assert certificate_of(replace(rule._rule, certificate=unknown)) is None


@pytest.mark.parametrize(
    ("scheme", "assumed"),
    [
        (Gaussian(0.25, grid=255), "nothing"),
        (Gaussian(0.25, grid=255, off_grid=True), "nothing"),
        (Expp(0.5, 3), "the model does not read the last bits of x + noise"),
        (Expp(0.5, 3, grid=255), "nothing"),
        (Pareto(0.5, 3, grid=255), "nothing"),
        (Laplace(0.25), "the model does not read the last bits of x + noise"),
        (SparseFlip(0.25, 0.6), "nothing"),
        (SparseFlip(1e-40, 0.6), "nothing"),
        (CategoricalFlip(3, 0.25, 0.5), "nothing"),
        (CategoricalFlip(4, 0.25, 0.5), "nothing"),
        (Joint(SparseFlip(0.25, 0.5), Laplace(0.5)), Laplace(0.5).assumes()),
        (Joint(SparseFlip(0.25, 0.5), SparseFlip(0.5, 0.5)), "nothing"),
        (Joint(SparseFlip(0.25, 0.5), Rounded(0.0)), None),
        (Deletion(0.9), "nothing"),
        (Rounded(0.0), None),
    ],
    ids=repr,
)
def test_schemes_say_what_they_assume(scheme, assumed):
    assert scheme.assumes() == assumed


def test_every_scheme_says_what_it_assumes():
    for name in bincp.smoothing.__all__:
        scheme = getattr(bincp.smoothing, name)
        assert name == "Smoothing" or scheme.assumes is not Smoothing.assumes
    plain = bincp.certify(Gaussian(0.25), L2(0.1)).describe()
    assert plain["assumes"] == Gaussian(0.25).assumes()
    assert "assumes" not in bincp.certify(Rounded(0.1), Move(0.1)).describe()
