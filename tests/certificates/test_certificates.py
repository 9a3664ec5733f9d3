"""`Certificate`: its maps on scalars and arrays, its four constructors, and the law it obeys."""

import copy
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bincp
from bincp import Certificate, certify
from bincp._core._operators import sparse_masses
from bincp.balls import L1, L2, Ball, Flips, Linf
from bincp.errors import CertificateError
from bincp.smoothing import Gaussian, Smoothing, SparseFlip, Uniform
from bincp.testing import check_certificate
from support import least, most

torch = pytest.importorskip("torch")

GRID = [0.0, 5e-324, 1e-300, 1e-9, 0.1, 0.25, 0.5, 0.6, 0.9, 1 - 1e-9, 1 - 2.0**-53, 1.0]
BUILT_IN = [
    (Gaussian(0.25), L2(0.12)),
    (Gaussian(0.25), L1(0.12)),
    (Gaussian(0.25), Linf(0.01, dim=100)),
    (Uniform(0.5), L1(0.3)),
    (SparseFlip(0.01, 0.6), Flips(1, 3)),
    (SparseFlip(0.01, 0.6), Flips(0, 0)),
]


def gaussian_radius(p: float) -> float:
    """Radius of Gaussian noise of sigma = 0.25, negative below 1/2 (module level: pickled)."""
    return 0.25 * NormalDist().inv_cdf(p) if 0 < p < 1 else (p - 0.5) * math.inf


def clipped_radius(p: float) -> float:
    return max(gaussian_radius(p), 0.0)


def shift_down(p: float) -> float:
    return max(p - 0.25, 0.0)


def shift_up(p: float) -> float:
    return min(p + 0.25, 1.0)


def every_kind() -> list[Certificate]:
    return [
        *(certify(*pair) for pair in BUILT_IN),
        Certificate.from_regions([0.7, 0.3], [0.2, 0.8]),
        Certificate.from_radius(gaussian_radius, 0.1, additive=True),
        Certificate.from_radius(gaussian_radius, 0.1),
        Certificate.from_bounds(shift_down),
        Certificate.from_bounds(shift_down, shift_up, name="shift"),
    ]


# ---- scalars and arrays ---------------------------------------------------------------------


@pytest.mark.parametrize("certificate", every_kind(), ids=repr)
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_arrays_equal_scalars_to_the_last_bit(certificate: Certificate, name: str) -> None:
    bound = getattr(certificate, name)
    scalars = [bound(p) for p in GRID]
    assert all(type(value) is float for value in scalars)
    values = bound(np.array(GRID))
    assert values.dtype == np.float64
    assert values.tolist() == scalars
    assert bound(GRID).tolist() == scalars
    assert bound(torch.tensor(GRID, dtype=torch.float64)).tolist() == scalars


@pytest.mark.parametrize(
    "p",
    [
        np.linspace(0, 1, 24).reshape(2, 3, 4),
        np.asfortranarray(np.linspace(0, 1, 24).reshape(4, 6)),
        np.linspace(0, 1, 24)[::-2],
        np.linspace(0, 1, 24).reshape(4, 6)[:, ::3],
        np.broadcast_to(0.3, (2, 5)),
        np.linspace(0, 1, 5).astype(np.float32),
        np.linspace(0, 1, 5).astype(np.float16),
        np.linspace(0, 1, 5).astype(">f8"),
        np.array([0, 1, 1]),
        np.empty((0,)),
        np.empty((3, 0, 2)),
        np.array(0.3),
        np.frombuffer(b"x" + np.linspace(0, 1, 3).tobytes(), dtype=np.uint8)[1:].view(np.float64),
    ],
    ids=lambda p: f"{p.dtype.str}{p.shape}{p.strides}",
)
@pytest.mark.parametrize("certificate", every_kind()[::4], ids=repr)
def test_array_shapes_strides_and_dtypes(certificate: Certificate, p: np.ndarray) -> None:
    kept = p.copy()
    values = certificate.lower(p)
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float64
    assert values.shape == p.shape
    assert values.reshape(-1).tolist() == [certificate.lower(float(x)) for x in p.reshape(-1)]
    np.testing.assert_array_equal(p, kept)


def test_read_only_arrays_and_results_that_share_nothing() -> None:
    p = np.linspace(0, 1, 5)
    p.flags.writeable = False
    certificate = certify(SparseFlip(0.25, 0.75), Flips(3, 2))  # the identity
    values = certificate.lower(p)
    assert not np.shares_memory(values, p)
    assert values.flags.writeable


def test_tensors_of_any_float_dtype_also_with_gradients() -> None:
    certificate = certify(Gaussian(0.25), L2(0.12))
    exact = [certificate.lower(0.25), certificate.lower(0.5)]
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        p = torch.tensor([0.25, 0.5], dtype=dtype)
        assert certificate.lower(p).tolist() == exact
    p = torch.tensor([0.25, 0.5], requires_grad=True)
    assert certificate.lower(p).tolist() == exact
    assert certificate.lower(torch.tensor(0.25)).shape == ()


@pytest.mark.parametrize(
    "p", [0, 1, np.float64(0.25), np.float32(0.25), np.int64(1), Fraction(1, 4)]
)
def test_scalars_of_any_real_type(p: Any) -> None:
    certificate = certify(Uniform(0.5), L1(0.125))
    assert certificate.lower(p) == certificate.lower(float(p))
    assert type(certificate.lower(p)) is float


@pytest.mark.parametrize("certificate", every_kind()[::3], ids=repr)
@pytest.mark.parametrize("name", ["lower", "upper"])
@pytest.mark.parametrize(
    ("p", "message"),
    [
        (math.nan, r"`p` must be in \[0, 1\], got nan"),
        (-1e-9, r"`p` must be in \[0, 1\], got -1e-09"),
        (1 + 1e-12, r"`p` must be in \[0, 1\], got 1.000000000001"),
        (math.inf, r"`p` must be in \[0, 1\], got inf"),
        (2, r"`p` must be in \[0, 1\], got 2"),
        (10**400, r"`p` must be in \[0, 1\]"),
        ([0.1, [0.2]], "`p` must be a rectangular array"),
        ([0.1, math.nan], r"`p` must be in \[0, 1\], got nan at index \(1,\)"),
        (np.array([[0.1, 0.2], [1.5, 0.3]]), r"`p` must be in \[0, 1\], got 1.5 at index \(1, 0\)"),
        (np.array(-1.0), r"`p` must be in \[0, 1\], got -1.0"),
        (torch.tensor([0.1, -0.5]), r"`p` must be in \[0, 1\], got -0.5 at index \(1,\)"),
    ],
)
def test_values_that_are_no_probability(
    certificate: Certificate, name: str, p: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(certificate, name)(p)


@pytest.mark.parametrize(
    "p",
    ["0.5", b"0.5", True, np.True_, None, 0.5j, object, {"p": 0.5}, ["a"], [True], [None], [1j]],
    ids=repr,
)
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_types_that_are_no_probability(p: Any, name: str) -> None:
    with pytest.raises(TypeError, match=r"`p` must be"):
        getattr(certify(Gaussian(1.0), L2(1.0)), name)(p)


def test_masked_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="`p` must be a plain array, got a masked array"):
        certify(Gaussian(1.0), L2(1.0)).lower(np.ma.masked_array([0.1, 0.2], mask=[0, 1]))


# ---- what it says of itself -----------------------------------------------------------------


def test_not_made_directly() -> None:
    with pytest.raises(TypeError, match=r"use bincp\.certify"):
        Certificate()


@pytest.mark.parametrize("certificate", every_kind(), ids=repr)
def test_description_is_plain_json_and_a_copy(certificate: Certificate) -> None:
    description = certificate.describe()
    assert json.loads(json.dumps(description)) == description
    for value in description.values():
        if isinstance(value, dict):
            value["type"] = "changed"
    description["operator"] = "changed"
    assert "changed" not in json.dumps(certificate.describe())


def test_description_of_a_pair() -> None:
    certificate = certify(SparseFlip(np.float64(0.01), 0.6), Flips(np.int64(1), 3))
    assert certificate.describe() == {
        "smoothing": {"type": "SparseFlip", "p_plus": 0.01, "p_minus": 0.6},
        "ball": {"type": "Flips", "additions": 1, "deletions": 3},
        "operator": "regions",
        "assumes": "nothing",
    }
    assert repr(certificate) == (
        "Certificate(smoothing=SparseFlip(p_plus=0.01, p_minus=0.6), "
        "ball=Flips(additions=1, deletions=3), operator='regions', assumes='nothing')"
    )


@pytest.mark.parametrize("certificate", every_kind(), ids=repr)
@pytest.mark.parametrize("copy_of", [lambda c: pickle.loads(pickle.dumps(c)), copy.deepcopy])
def test_pickle_and_copy(
    certificate: Certificate, copy_of: Callable[[Certificate], Certificate]
) -> None:
    other = copy_of(certificate)
    assert other.describe() == certificate.describe()
    for p in GRID:
        assert other.lower(p) == certificate.lower(p)
        assert other.upper(p) == certificate.upper(p)


@pytest.mark.parametrize("certificate", every_kind(), ids=repr)
def test_pickle_of_the_inverse(certificate: Certificate) -> None:
    inverse = certificate.inverse()
    other = pickle.loads(pickle.dumps(inverse))
    for p in GRID:
        assert other.lower(p) == inverse.lower(p)


@pytest.mark.parametrize("certificate", every_kind(), ids=repr)
def test_law_by_the_public_check(certificate: Certificate) -> None:
    check_certificate(certificate)
    check_certificate(certificate.inverse())


def test_public_check_takes_certificates_only() -> None:
    with pytest.raises(TypeError, match="`certificate` must be a Certificate"):
        check_certificate(lambda p: p)


@pytest.mark.parametrize("certificate", every_kind(), ids=repr)
def test_inverse_is_the_mirror(certificate: Certificate) -> None:
    """lower over a ball = 1 - upper over the same ball at 1 - p; twice inverted is the same."""
    inverse = certificate.inverse()
    for p in (k / 64 for k in range(65)):
        assert inverse.inverse().lower(p) == pytest.approx(certificate.lower(p), abs=1e-13)
        if certificate.describe()["operator"] == "radius at 1/2":
            continue  # a proof of 1/2 or nothing says nothing of the complement
        assert certificate.lower(p) == pytest.approx(1 - inverse.upper(1 - p), abs=1e-13)
        assert certificate.upper(p) == pytest.approx(1 - inverse.lower(1 - p), abs=1e-13)


def test_inverse_of_asymmetric_balls_exchanges_the_directions() -> None:
    scheme = SparseFlip(0.01, 0.6)
    certificate = certify(scheme, Flips(1, 3))
    assert certificate.inverse().describe() == certify(scheme, Flips(3, 1)).describe()
    assert certificate.inverse().lower(0.9) != certificate.lower(0.9)


# ---- regions --------------------------------------------------------------------------------


def assert_regions(clean: list[Fraction], perturbed: list[Fraction], p: float) -> None:
    certificate = Certificate.from_regions(
        [float(mass) for mass in clean], [float(mass) for mass in perturbed]
    )
    lower = least(clean, perturbed, Fraction(p))
    assert Fraction(certificate.lower(p)) <= lower
    upper = most(perturbed, clean, Fraction(p))
    assert Fraction(certificate.upper(p)) >= upper
    if min(mass for mass in clean + perturbed if mass) > Fraction(1, 10**20):
        # No ratio is so steep that the rounding of a mass of 1 would show
        assert Fraction(certificate.lower(p)) >= lower - Fraction("1e-13")
        assert Fraction(certificate.upper(p)) <= upper + Fraction("1e-13")


def normalised(weights: list[int]) -> list[Fraction]:
    return [Fraction(weight, sum(weights)) for weight in weights]


weights = st.one_of(
    st.integers(0, 10), st.integers(1, 10**6), st.integers(0, 900).map(lambda k: 2**k)
)
probabilities = st.one_of(
    st.floats(0, 1), st.floats(0, 1e-9).map(lambda p: 1 - p), st.sampled_from(GRID)
)


@settings(deadline=None, max_examples=400)
@given(
    regions=st.lists(st.tuples(weights, weights), min_size=1, max_size=12).filter(
        lambda pairs: any(c for c, _ in pairs) and any(q for _, q in pairs)
    ),
    p=probabilities,
)
@example(regions=[(1, 1)], p=0.3)  # a single region
@example(regions=[(1, 0), (0, 1)], p=0.3)  # ratios infinity and 0
@example(regions=[(0, 0), (1, 2), (1, 1), (0, 0)], p=0.7)  # regions that cannot happen
@example(regions=[(1, 3), (2, 6), (7, 1)], p=0.2)  # ties
@example(regions=[(1, 10**300), (10**300, 1)], p=0.5)
@example(regions=[(1, 5), (4, 1), (2, 2), (9, 8)], p=1.0)
def test_regions_against_fractions(regions: list[tuple[int, int]], p: float) -> None:
    clean, perturbed = (normalised(list(column)) for column in zip(*regions, strict=True))
    assert_regions(clean, perturbed, p)


def test_region_order_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    clean, perturbed = rng.dirichlet(np.ones(30), size=2)
    certificate = Certificate.from_regions(clean, perturbed)
    for _ in range(5):
        order = rng.permutation(30)
        shuffled = Certificate.from_regions(clean[order], perturbed[order])
        assert shuffled.lower(GRID).tolist() == certificate.lower(GRID).tolist()
        assert shuffled.upper(GRID).tolist() == certificate.upper(GRID).tolist()


def test_regions_whose_ratios_differ_by_a_rounding() -> None:
    """Ratios next to each other may be ordered wrongly; the outward step covers that."""
    for k in range(1, 40):
        clean = normalised([3 * 10**15 + k, 7 * 10**15, 10**15 + 3 * k])
        perturbed = normalised([3 * 10**15, 7 * 10**15 - k, 10**15])
        for p in (0.1, 0.3, 0.5, 0.7, 0.99):
            assert_regions(clean, perturbed, p)


@settings(deadline=None, max_examples=100)
@given(
    sign=st.sampled_from([-1, 1]),
    numbers=st.lists(st.integers(1, 10**6), min_size=12, max_size=12),
    p=st.floats(0.01, 0.99),
)
def test_masses_that_are_wrong_by_eight_units(sign: int, numbers: list[int], p: float) -> None:
    """Bounds stay on their side also where all errors flatter: too little clean mass, say."""
    unit = Fraction(2.0**-53)
    clean, perturbed = normalised(numbers[:6]), normalised(numbers[6:])
    error = 7 * sign * unit  # and up to one unit from the conversion
    certificate = Certificate.from_regions(
        [float(mass * (1 - error)) for mass in clean],
        [float(mass * (1 + error)) for mass in perturbed],
    )
    lower = least(clean, perturbed, Fraction(p))
    assert lower - Fraction("1e-13") <= Fraction(certificate.lower(p)) <= lower
    upper = most(perturbed, clean, Fraction(p))
    assert upper <= Fraction(certificate.upper(p)) <= upper + Fraction("1e-13")


@pytest.mark.parametrize("radii", [(1, 3), (0, 4), (50, 50)])
@pytest.mark.parametrize("flips", [(0.01, 0.6), (0.7, 0.8), (0.0, 0.4), (1.0, 0.3)])
def test_regions_of_sparse_flips_equal_the_operator(
    flips: tuple[float, float], radii: tuple[int, int]
) -> None:
    n = sum(radii) + 1
    clean, perturbed = np.empty(n), np.empty(n)
    sparse_masses(*radii, *flips, clean, perturbed)
    by_regions = Certificate.from_regions(clean, perturbed)
    by_pair = certify(SparseFlip(*flips), Flips(*radii))
    np.testing.assert_allclose(by_regions.lower(GRID), by_pair.lower(GRID), rtol=0, atol=3e-14)
    np.testing.assert_allclose(by_regions.upper(GRID), by_pair.upper(GRID), rtol=0, atol=3e-14)


def test_equal_masses_are_the_identity() -> None:
    certificate = Certificate.from_regions([0.25, 0.75], [0.25, 0.75])
    assert certificate.lower(GRID).tolist() == GRID
    assert certificate.upper(GRID).tolist() == GRID


def test_regions_are_copied() -> None:
    clean, perturbed = np.array([0.7, 0.3]), np.array([0.2, 0.8])
    certificate = Certificate.from_regions(clean, perturbed)
    before = certificate.inverse().lower(0.9)
    clean[:], perturbed[:] = perturbed.copy(), clean.copy()
    assert certificate.inverse().lower(0.9) == before


@pytest.mark.parametrize(
    ("mass", "perturbed", "message"),
    [
        ([0.5, 0.4], [0.5, 0.5], "`mass` must sum to 1, got 0.9"),
        ([0.5, 0.5], [0.5, 0.5 + 1e-8], "`perturbed_mass` must sum to 1, got 1.0000000"),
        ([0.5, 0.5], [1.0], r"`perturbed_mass` must have the shape of `mass`, \(2,\), got \(1,\)"),
        ([[0.5, 0.5]], [[0.5, 0.5]], r"`mass` must have shape \(n_regions,\), got \(1, 2\)"),
        ([], [], r"`mass` must have shape \(n_regions,\), got \(0,\)"),
        (1.0, 1.0, r"`mass` must have shape \(n_regions,\), got \(\)"),
        ([1.5, -0.5], [0.5, 0.5], r"`mass` must be in \[0, 1\], got 1.5 at index \(0,\)"),
        ([0.5, 0.5], [math.nan, 1.0], r"`perturbed_mass` must be in \[0, 1\], got nan"),
    ],
)
def test_masses_that_are_no_distribution(mass: Any, perturbed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Certificate.from_regions(mass, perturbed)


@pytest.mark.parametrize("mass", [["a"], [True], None, "1", [1j]])
def test_masses_of_another_type(mass: Any) -> None:
    with pytest.raises(TypeError, match="`mass` must be"):
        Certificate.from_regions(mass, [1.0])


# ---- radii ----------------------------------------------------------------------------------


def test_additive_radius_of_gaussian_noise_is_the_gaussian_operator() -> None:
    for r in (0.0, 1e-6, 0.1, 0.7, 3.0):
        by_radius = Certificate.from_radius(gaussian_radius, r, additive=True)
        by_pair = certify(Gaussian(0.25), L2(r))
        for p in (1e-12, 1e-3, 0.3, 0.5, 0.8, 1 - 1e-6):
            assert by_radius.lower(p) == pytest.approx(by_pair.lower(p), rel=1e-12)
            assert 1 - by_radius.upper(p) == pytest.approx(1 - by_pair.upper(p), rel=1e-9)
        assert by_radius.lower(0.0) == by_radius.upper(0.0) == 0.0
        assert by_radius.lower(1.0) == by_radius.upper(1.0) == 1.0


def test_additive_bounds_are_the_safe_ends() -> None:
    """For a radius without rounding: R(lower(p)) <= R(p) - r and R(upper(p)) >= R(p) + r."""
    certificate = Certificate.from_radius(lambda p: p - 0.5, 0.1, additive=True)
    for p in (k / 1024 for k in range(1025)):
        lower, upper = Fraction(certificate.lower(p)), Fraction(certificate.upper(p))
        assert lower <= max(Fraction(p) - Fraction(0.1), 0)
        assert upper >= min(Fraction(p) + Fraction(0.1), 1)
        assert lower >= Fraction(p) - Fraction(0.1) - Fraction("3e-16")
        assert upper <= Fraction(p) + Fraction(0.1) + Fraction("3e-16")


def test_additive_radius_that_is_flat() -> None:
    """Where R is flat any p of the flat piece may be meant: `lower` is its left end."""
    certificate = Certificate.from_radius(lambda p: round(8 * p) / 8, 0.25, additive=True)
    assert certificate.lower(0.75) <= 0.4375  # R is 0.5 from 0.4375 to 0.5625
    assert certificate.lower(0.75) == pytest.approx(0.4375, abs=1e-15)
    assert certificate.upper(0.25) >= 0.5625
    assert certificate.upper(0.25) == pytest.approx(0.5625, abs=1e-15)


def test_additive_radius_clipped_at_zero_proves_nothing_below_one_half() -> None:
    clipped = Certificate.from_radius(clipped_radius, 0.25, additive=True)
    whole = Certificate.from_radius(gaussian_radius, 0.25, additive=True)
    for p in (0.0, 0.2, 0.5, 0.6, 0.84):
        assert clipped.lower(p) == 0.0
    for p in (0.85, 0.9, 0.999, 1.0):
        assert clipped.lower(p) == whole.lower(p)
    assert Certificate.from_radius(clipped_radius, 0.0, additive=True).lower(0.3) == 0.3


def test_radius_at_one_half_proves_one_half_or_nothing() -> None:
    r = 0.25 * NormalDist().inv_cdf(0.8)
    certificate = Certificate.from_radius(gaussian_radius, r)
    for p in GRID:
        assert certificate.lower(p) == (0.5 if p >= 0.8 else 0.0)
    # A perturbed p below 1/2 excludes clean probabilities of a radius of r or more.
    assert certificate.upper(0.49) == pytest.approx(0.8, abs=1e-9)
    assert certificate.upper(0.49) >= 0.8
    assert certificate.upper(0.5) == 1.0


def test_radius_zero_at_one_half_is_no_proof_below() -> None:
    certificate = Certificate.from_radius(clipped_radius, 0.0)
    assert certificate.lower(0.4) == 0.0
    assert certificate.lower(0.5) == 0.5
    assert certificate.lower(1.0) == 0.5


@pytest.mark.parametrize(
    ("radius", "r", "error", "message"),
    [
        (0.5, 0.1, TypeError, "`radius_fn` must be callable, got 0.5"),
        (gaussian_radius, "0.1", TypeError, "`r` must be a real number"),
        (gaussian_radius, True, TypeError, "`r` must be a real number"),
        (gaussian_radius, -0.1, ValueError, "`r` must be finite and >= 0"),
        (gaussian_radius, math.nan, ValueError, "`r` must be finite and >= 0"),
        (gaussian_radius, math.inf, ValueError, "`r` must be finite and >= 0"),
    ],
)
@pytest.mark.parametrize("additive", [False, True])
def test_bad_radius(
    radius: Any, r: Any, error: type[Exception], message: str, additive: bool
) -> None:
    with pytest.raises(error, match=message):
        Certificate.from_radius(radius, r, additive=additive)


@pytest.mark.parametrize("additive", ["no", 0, None, np.False_])
def test_a_declaration_is_true_or_false(additive: Any) -> None:
    """What counts as true would claim more of the radius than was said."""
    with pytest.raises(TypeError, match="`additive` must be a bool, got"):
        Certificate.from_radius(gaussian_radius, 0.1, additive=additive)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (lambda p: 0.5 - p, r"radius_fn must be non-decreasing, but falls .* at p = 1e-12"),
        (
            lambda p: p if p < 0.9 else 0.0,
            "radius_fn must be non-decreasing, but falls .* at p = 0.9",
        ),
        (lambda p: math.nan, r"radius_fn\(0.0\) must be a number, got nan"),
        (lambda p: "far", r"radius_fn\(0.0\) must be a number, got 'far'"),
        (NormalDist().inv_cdf, r"radius_fn\(0.0\) raised StatisticsError"),
    ],
)
@pytest.mark.parametrize("additive", [False, True])
def test_broken_radius(radius: Callable[[float], Any], message: str, additive: bool) -> None:
    with pytest.raises(CertificateError, match=message):
        Certificate.from_radius(radius, 0.1, additive=additive)


# ---- bounds ---------------------------------------------------------------------------------


def test_bounds_without_upper_get_the_generalised_inverse() -> None:
    alone = Certificate.from_bounds(shift_down)
    both = Certificate.from_bounds(shift_down, shift_up)
    for p in GRID:
        assert alone.lower(p) == both.lower(p) == shift_down(p)
        assert alone.upper(p) == pytest.approx(both.upper(p), abs=3e-16)
        assert alone.upper(p) >= both.upper(p)


LOWER_ALONE = [
    Certificate.from_bounds(lower)
    for lower in (shift_down, lambda p: p**3, lambda p: math.floor(4 * p) / 4, lambda p: 0.0)
]


@settings(deadline=None, max_examples=300)
@given(certificate=st.sampled_from(LOWER_ALONE), p=probabilities, q=probabilities)
def test_generalised_inverse_obeys_the_law_exactly(
    certificate: Certificate, p: float, q: float
) -> None:
    if p >= certificate.lower(q):
        assert certificate.upper(p) >= q
    if certificate.upper(p) > q:
        assert p >= certificate.lower(q)


@pytest.mark.parametrize("argument", ["lower", "upper"])
def test_bounds_must_be_callable(argument: str) -> None:
    bounds = {"lower": shift_down, "upper": shift_up, argument: 0.5}
    with pytest.raises(TypeError, match=f"`{argument}` must be callable, got 0.5"):
        Certificate.from_bounds(**bounds)
    with pytest.raises(TypeError, match="`name` must be a string, got 3"):
        Certificate.from_bounds(shift_down, name=3)  # type: ignore[arg-type]


def test_lambdas_cannot_be_pickled_but_work() -> None:
    certificate = Certificate.from_bounds(lambda p: p / 2)
    assert certificate.lower(0.5) == 0.25
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(certificate)


# ---- the law --------------------------------------------------------------------------------


def same_ball_flips() -> tuple[Callable[[float], float], Callable[[float], float]]:
    """The usual slip: `upper` over the ball instead of the inverted ball."""
    certificate = certify(SparseFlip(0.01, 0.6), Flips(1, 3))
    return certificate.lower, certificate.inverse().upper


def dip(p: float) -> float:
    return 0.0 if 0.6 < p < 0.7 else p / 2


BROKEN = {
    "lower above p": (lambda p: min(p + 0.01, 1.0), r"lower\(0\.0\) must be <= p"),
    "lower above p in a tail": (lambda p: max(p, 1e-6), r"lower\(0\.0\) must be <= p"),
    "lower(0) above 0": (lambda p: 0.5 + p / 2, r"lower\(0\.0\) must be <= p"),
    "not monotone": (dip, r"lower must be non-decreasing, but falls from 0\.\d+ .* at p = 0\.6"),
    "below 0": (lambda p: p - 0.1, r"lower\(0\.0\) must be a float in \[0, 1\], got -0\.1"),
    "above 1": (lambda p: 2 * p, r"(lower|upper)\(.*\) must be"),
    "NaN": (lambda p: math.nan if p > 0.9 else p, r"lower\(0\.\d+\) must be .*, got nan"),
    "raises": (lambda p: 1 / (p - 0.5), r"lower\(0\.\d*\) .*"),
    "divides by zero": (lambda p: p * 0.1 / p, r"lower\(0\.0\) raised ZeroDivisionError"),
    "None": (lambda p: None, r"lower\(0\.0\) raised TypeError"),
    "text": (lambda p: str(p), r"lower\(0\.0\) must be a float in \[0, 1\], got '0\.0'"),
    "truth value": (lambda p: p > 0.5, r"lower\(0\.0\) must be a float in \[0, 1\], got False"),
    "upper below p": ((shift_down, shift_down), r"upper\(1e-06\) must be >= p"),
    "upper not monotone": (
        (lambda p: 0.0, lambda p: 1.0 if p < 0.5 else p),
        r"upper must be non-decreasing, but falls from 1\.0 to 0\.5\d* at p = 0\.5",
    ),
    "upper of another radius": ((shift_down, lambda p: min(p + 0.2, 1.0)), r"at p = .* and q = "),
    "upper too far": ((shift_down, lambda p: min(p + 0.3, 1.0)), r"at p = .* and q = "),
    "upper over the same ball": (same_ball_flips(), "is `upper` over the inverted ball?"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_bounds_are_refused_naming_p(name: str) -> None:
    bounds, message = BROKEN[name]
    with pytest.raises(CertificateError, match=message):
        Certificate.from_bounds(*(bounds if isinstance(bounds, tuple) else (bounds,)))


def test_an_error_of_a_bound_keeps_its_cause() -> None:
    with pytest.raises(CertificateError) as caught:
        Certificate.from_bounds(lambda p: p * 0.1 / p)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_bound_that_breaks_between_the_points_of_the_grid_is_caught_when_met() -> None:
    certificate = Certificate.from_bounds(lambda p: 7.0 if p == 0.123 else p / 2)
    with pytest.raises(
        CertificateError, match=r"lower\(0\.123\) must be a float in \[0, 1\], got 7"
    ):
        certificate.lower(0.123)
    with pytest.raises(CertificateError, match=r"lower\(0\.123\)"):
        certificate.lower([0.1, 0.123])


@pytest.mark.parametrize(("smoothing", "ball"), BUILT_IN, ids=repr)
def test_correct_bounds_pass_whatever_their_source(smoothing: Smoothing, ball: Ball) -> None:
    """The check has no false alarms: each built-in operator passes as a foreign one, too."""
    certificate = certify(smoothing, ball)
    both = Certificate.from_bounds(certificate.lower, certificate.upper)
    alone = Certificate.from_bounds(certificate.lower)
    for p in GRID:
        assert both.upper(p) == certificate.upper(p)
        assert alone.upper(p) == pytest.approx(certificate.upper(p), abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(
    p_plus=st.sampled_from([0.0, 1.0, 1e-300, 1e-9, 0.3, 0.7]),
    p_minus=st.sampled_from([0.0, 1.0, 1e-300, 1e-9, 0.3, 0.7]),
    additions=st.integers(0, 20),
    deletions=st.integers(0, 20),
)
def test_correct_bounds_pass_where_ratios_are_extreme(
    p_plus: float, p_minus: float, additions: int, deletions: int
) -> None:
    check_certificate(certify(SparseFlip(p_plus, p_minus), Flips(additions, deletions)))


def test_exported_at_the_top() -> None:
    assert bincp.Certificate is Certificate


def test_missing_mass_belongs_to_the_adversary() -> None:
    """Masses that sum to a little less than 1 leave room for regions that are worst for us."""
    clean, perturbed = [0.5, 0.5 - 9e-10], [0.2, 0.8 - 9e-10]
    certificate = Certificate.from_regions(clean, perturbed)
    worst = Certificate.from_regions([*clean, 9e-10, 0.0], [*perturbed, 0.0, 9e-10])
    for p in (0.1, 0.5, 0.9, 0.999999):
        assert certificate.lower(p) <= worst.lower(p) + 1e-15
        assert certificate.upper(p) >= worst.upper(p) - 1e-15


def test_excess_mass_does_not_help() -> None:
    exact = Certificate.from_regions([0.5, 0.5], [0.2, 0.8])
    excess = Certificate.from_regions([0.5, 0.5 + 9e-10], [0.2, 0.8 + 9e-10])
    for p in (0.1, 0.5, 0.6, 0.9, 0.999999):
        assert excess.lower(p) <= exact.lower(p)
        assert excess.upper(p) >= exact.upper(p)


def without_region(n: int, lost: Fraction) -> tuple[list[Fraction], list[Fraction]]:
    """Exact masses of n + 1 regions, at the clean and the perturbed input; the last is left out."""
    weights = [1 + k % 7 for k in range(n)]
    total = sum(weights)
    clean = [(1 - lost) * Fraction(w, total) for w in weights] + [lost]
    perturbed = [*(Fraction(w, total) for w in weights[::-1]), Fraction(0)]
    return clean, perturbed


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1_000, 50_000])
@pytest.mark.parametrize("lost", ["5e-10", "1e-11", "3.3e-12", "1e-14"])
def test_what_is_left_out_is_no_less_than_it_was(n: int, lost: str) -> None:
    """The rounding of all masses comes on top of what their sum lacks, however many there are."""
    mass = Fraction(lost)
    clean, perturbed = without_region(n, mass)
    floats = [float(c) for c in clean[:-1]], [float(q) for q in perturbed[:-1]]
    bound = Certificate.from_regions(*floats).upper(0.0)
    assert Fraction(bound) >= mass
    assert Fraction(bound) <= mass + Fraction(3, 10**15)
    bound = Certificate.from_regions(*floats[::-1]).lower(1.0)
    assert 1 - Fraction(bound) >= mass
    assert 1 - Fraction(bound) <= mass + Fraction(3, 10**15)


def test_equal_masses_that_leave_out_a_region_are_not_the_identity() -> None:
    mass = [0.5, 0.5 - 5e-10]
    certificate = Certificate.from_regions(mass, mass)
    lost = 1 - sum(map(Fraction, mass))
    assert Fraction(certificate.upper(0.0)) >= lost
    assert 1 - Fraction(certificate.lower(1.0)) >= lost


@pytest.mark.parametrize("n", [3, 10, 49, 1_000, 50_000])
def test_rounded_masses_of_a_whole_distribution_lack_nothing(n: int) -> None:
    clean, perturbed = without_region(n, Fraction(0))
    certificate = Certificate.from_regions([float(c) for c in clean], [float(q) for q in perturbed])
    assert (certificate.upper(0.0), certificate.lower(1.0)) == (0.0, 1.0)
