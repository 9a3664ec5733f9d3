"""Categories, joint sub-spaces, grids and radii: golden tables, brute force, sums, exact laws.

Brute force enumerates outcomes, not regions: it knows nothing of counts, exponents or merging.
"""

import itertools
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special, stats

import bincp
from bincp import balls, smoothing
from bincp.balls import L1, L2, CategoricalFlips, Flips, Linf
from bincp.certificates._builtins import flips as factories
from bincp.errors import CertificateError
from bincp.noise import draw
from bincp.radii import certified_count, certified_radius, flip_frontier, flip_grid
from bincp.smoothing import CategoricalFlip, Gaussian, SparseFlip, Uniform
from bincp.testing import check_certificate
from support import Exact, assert_exact_bounds, golden, least

DISCRETE = golden("discrete")
JOINT = golden("joint")
TIGHT = Fraction("1e-14")
BELOW_ONE = 1 - 2.0**-53
SMALLEST = 5e-324
GRID = [0.0, SMALLEST, 1e-300, 1e-12, 0.1, 1 / 3, 0.5, 0.7, 0.9, 1 - 1e-12, BELOW_ONE, 1.0]


# ---- golden tables --------------------------------------------------------------------------


def assert_golden(certificate: bincp.Certificate, cell: dict, probabilities: list) -> None:
    """The cell has both bounds over one ball; `upper` of a certificate is over the inverted one."""
    same_ball = certificate.inverse()
    columns = (cell[key] for key in ("lower", "one_minus_lower", "upper", "one_minus_upper"))
    for p, lower, not_lower, upper, not_upper in zip(probabilities, *columns, strict=True):
        exact = Exact.printed(lower, not_lower)
        exact.assert_at_least(certificate.lower(p))
        exact.assert_within(certificate.lower(p), TIGHT)
        exact = Exact.printed(upper, not_upper)
        exact.assert_at_most(same_ball.upper(p))
        exact.assert_within(same_ball.upper(p), TIGHT)


@pytest.mark.usefixtures("exact_draws")
@pytest.mark.parametrize("k", sorted({cell["k"] for cell in DISCRETE["cells"]}))
def test_categorical_golden(k: int) -> None:
    for cell in (cell for cell in DISCRETE["cells"] if cell["k"] == k):
        scheme = CategoricalFlip(k, cell["p_plus"], cell["p_minus"])
        ball = CategoricalFlips(cell["ra"], cell["rd"], cell["rc"])
        assert_golden(bincp.certify(scheme, ball), cell, DISCRETE["p"])
        assert k == 2 or len(factories.categorical_regions(scheme, ball).clean) == cell["regions"]


def joint_pair(cell: dict) -> tuple[smoothing.Joint, balls.Joint]:
    parts = (cell["adj"], cell["att"])
    return (
        smoothing.Joint(*(SparseFlip(part["p_plus"], part["p_minus"]) for part in parts)),
        balls.Joint(*(Flips(part["ra"], part["rd"]) for part in parts)),
    )


@pytest.mark.parametrize("cell", JOINT["cells"], ids=lambda cell: str(cell["regions"]))
def test_joint_golden(cell: dict) -> None:
    scheme, ball = joint_pair(cell)
    assert_golden(bincp.certify(scheme, ball), cell, JOINT["p"])
    assert len(factories.joint_regions(scheme, ball).clean) == cell["regions"]


@pytest.mark.parametrize(
    ("adjacency", "attributes", "flips", "p", "expected"),
    [
        (Flips(0, 2), Flips(1, 1), ((0.01, 0.6), (0.2, 0.3)), 0.7, 0.03471464285714286),
        (Flips(2, 2), Flips(1, 1), ((0.001, 0.4), (0.01, 0.6)), 0.9, 0.0011672915207207207),
        (Flips(1, 1), Flips(1, 1), ((0.001, 0.4), (0.01, 0.6)), 0.7, 0.0018203333333333333),
    ],
)
def test_f004_products_of_regions_are_sorted(
    adjacency: Flips, attributes: Flips, flips: tuple, p: float, expected: float
) -> None:
    """regions of a product, left in the order of the parts, certify too much."""
    scheme = smoothing.Joint(SparseFlip(*flips[0]), SparseFlip(*flips[1]))
    bound = bincp.certify(scheme, balls.Joint(adjacency, attributes)).lower(p)
    assert bound == pytest.approx(expected, rel=1e-13)
    exchanged = smoothing.Joint(*reversed((scheme.adjacency, scheme.attributes)))
    again = bincp.certify(exchanged, balls.Joint(attributes, adjacency)).lower(p)
    assert again == pytest.approx(bound, rel=1e-14)


# ---- brute force over all outcomes ----------------------------------------------------------


def chance(start: int, end: int, scheme: CategoricalFlip) -> Fraction:
    change = Fraction(scheme.p_minus if start else scheme.p_plus)
    return 1 - change if start == end else change / (scheme.k - 1)


def outcomes(scheme: CategoricalFlip, clean: list[int], perturbed: list[int]) -> tuple[list, list]:
    """Probabilities of every outcome at the two inputs."""
    made = ([], [])
    for outcome in itertools.product(range(scheme.k), repeat=len(clean)):
        for start, chances in zip((clean, perturbed), made, strict=True):
            pairs = zip(start, outcome, strict=True)
            chances.append(math.prod(chance(s, e, scheme) for s, e in pairs))
    return made


def inputs(ball: CategoricalFlips) -> tuple[list[int], list[int]]:
    """Return the differing coordinates of a pair of inputs at the corner of the ball."""
    a, d, c = ball.additions, ball.deletions, ball.changes
    return [0] * a + [1] * d + [1] * c, [1] * a + [0] * d + [2] * c


def assert_against_outcomes(scheme: CategoricalFlip, ball: CategoricalFlips) -> None:
    clean, perturbed = outcomes(scheme, *inputs(ball))
    certificate = bincp.certify(scheme, ball)
    for p in GRID:
        assert_exact_bounds(certificate, clean, perturbed, p, TIGHT)


FLIPS = [
    (0.01, 0.6),
    (0.25, 0.25),
    (0.5, 0.5),  # next to the 2/3 where all ratios are 1
    (0.2, 0.8),
    (2 / 3, 2 / 3),
    (0.9, 0.7),
    (1e-300, 0.5),
    (0.3, 1e-300),
    (1e-300, 1e-300),
    (0.0, 0.4),
    (0.4, 0.0),
    (1.0, 0.3),
    (0.3, 1.0),
    (0.0, 0.0),
    (1.0, 1.0),
    (0.0, 1.0),
    (1.0, 0.0),
]


@pytest.mark.usefixtures("exact_draws")
@pytest.mark.parametrize("flips", FLIPS)
def test_categorical_against_every_outcome(flips: tuple[float, float]) -> None:
    for numbers in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (2, 1, 1), (0, 2, 1)]:
        assert_against_outcomes(CategoricalFlip(3, *flips), CategoricalFlips(*numbers))
    assert_against_outcomes(CategoricalFlip(5, *flips), CategoricalFlips(1, 1, 1))


@pytest.mark.parametrize("flips", [(0.01, 0.6), (0.3, 0.3), (0.0, 0.4), (0.75, 0.75)])
def test_the_worst_input_is_at_the_corner_of_the_ball(flips: tuple[float, float]) -> None:
    """Fewer changes never hurt more, and it does not matter which category they lead to."""
    scheme = CategoricalFlip(4, *flips)
    starts = [0, 1, 2]
    inside = []
    for end in itertools.product(range(4), repeat=3):
        kinds = [(s == 0, e == 0) for s, e in zip(starts, end, strict=True) if s != e]
        if kinds.count((False, False)) <= 1:  # at most one addition and one deletion as it is
            numbers = [kinds.count((True, False)), kinds.count((False, True))]
            if max(numbers) <= 1:
                inside.append(outcomes(scheme, starts, list(end)))
    assert len(inside) > 20
    certificate = bincp.certify(scheme, CategoricalFlips(1, 1, 1))
    for p in (0.05, 0.5, 0.9):
        worst = min(least(clean, perturbed, Fraction(p)) for clean, perturbed in inside)
        exact = Exact(worst, 1 - worst, 400)
        exact.assert_at_least(certificate.lower(p))
        exact.assert_within(certificate.lower(p), TIGHT)


@pytest.mark.parametrize("flips", FLIPS)
def test_two_categories_are_sparse_flips(flips: tuple[float, float]) -> None:
    """Bit by bit; changes have nowhere to go."""
    categorical = bincp.certify(CategoricalFlip(2, *flips), CategoricalFlips(3, 4, 9))
    sparse = bincp.certify(SparseFlip(*flips), Flips(3, 4))
    for p in GRID:
        assert categorical.lower(p) == sparse.lower(p)
        assert categorical.upper(p) == sparse.upper(p)


@pytest.mark.usefixtures("exact_draws")
@pytest.mark.parametrize("first", [(0.01, 0.6), (0.0, 0.4), (0.7, 0.8), (0.25, 0.75)])
@pytest.mark.parametrize("second", [(0.01, 0.6), (0.3, 0.3), (1.0, 0.2), (1e-300, 0.5)])
def test_joint_against_every_outcome(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    """A sparse and a categorical part, and a joint one in a joint one."""
    bits, categories = CategoricalFlip(2, *first), CategoricalFlip(3, *second)
    scheme = smoothing.Joint(SparseFlip(*first), categories)
    ball = balls.Joint(Flips(1, 2), CategoricalFlips(1, 0, 1))
    parts = [
        outcomes(bits, *inputs(CategoricalFlips(1, 2, 0))),
        outcomes(categories, *inputs(ball.attributes)),
    ]
    clean, perturbed = products(parts)
    certificate = bincp.certify(scheme, ball)
    for p in GRID:
        assert_exact_bounds(certificate, clean, perturbed, p, TIGHT)

    nested = bincp.certify(
        smoothing.Joint(scheme, SparseFlip(0.3, 0.1)), balls.Joint(ball, Flips(1, 0))
    )
    one_more = outcomes(CategoricalFlip(2, 0.3, 0.1), [0], [1])
    clean, perturbed = products([(clean, perturbed), one_more])
    for p in (1e-12, 0.3, 0.9):
        assert_exact_bounds(nested, clean, perturbed, p, TIGHT)


def products(parts: list[tuple[list, list]]) -> tuple[list, list]:
    return tuple(
        [math.prod(pair) for pair in itertools.product(*masses)]
        for masses in zip(*parts, strict=True)
    )


# ---- larger balls against exact sums --------------------------------------------------------


def exact_regions(scheme: CategoricalFlip, ball: CategoricalFlips) -> tuple[list, list]:
    """One coordinate after the other, by exact ratio."""
    others = scheme.k - 2
    masses = {Fraction(1): (Fraction(1), Fraction(1))}
    for start, end in zip(*inputs(ball), strict=True):
        kinds = [(start, 1), (end, 1), (3 - start - end if start + end < 3 else 0, others)]
        longer = defaultdict(lambda: (Fraction(0), Fraction(0)))
        for ratio, (clean, perturbed) in masses.items():
            for value, times in kinds:
                p, q = chance(start, value, scheme), chance(end, value, scheme)
                here = longer[ratio * p / q]
                longer[ratio * p / q] = (
                    here[0] + clean * p * times,
                    here[1] + perturbed * q * times,
                )
        masses = longer
    return tuple(zip(*masses.values(), strict=True))


@pytest.mark.parametrize(
    ("k", "flips", "numbers"),
    [
        (3, (1 / 64, 5 / 8), (5, 4, 3)),
        (9, (1 / 4, 1 / 4), (30, 20, 25)),
        (5, (2.0**-30, 1 / 2), (9, 0, 4)),
        (4, (7 / 8, 3 / 4), (0, 12, 0)),
    ],
)
def test_larger_balls_against_fractions(k: int, flips: tuple, numbers: tuple) -> None:
    """Dyadic flips keep the fractions short."""
    scheme, ball = CategoricalFlip(k, *flips), CategoricalFlips(*numbers)
    clean, perturbed = exact_regions(scheme, ball)
    assert sum(clean) == sum(perturbed) == 1
    assert len(factories.categorical_regions(scheme, ball).clean) == len(clean)
    certificate = bincp.certify(scheme, ball)
    for p in GRID:
        assert_exact_bounds(certificate, clean, perturbed, p, TIGHT)


@pytest.mark.usefixtures("exact_draws")
def test_masses_of_big_balls_sum_to_one() -> None:
    for scheme, ball in [
        (CategoricalFlip(3, 0.01, 0.6), CategoricalFlips(60, 40, 50)),
        (CategoricalFlip(256, 0.2, 0.2), CategoricalFlips(1000, 1000, 1000)),
    ]:
        regions = factories.categorical_regions(scheme, ball)
        assert math.fsum(regions.clean) == pytest.approx(1.0, abs=1e-15)
        assert math.fsum(regions.perturbed) == pytest.approx(1.0, abs=1e-15)
        assert regions.slack < 3e-15
        certificate = bincp.certify(scheme, ball)
        assert certificate.lower(1.0) == 1.0
        assert certificate.upper(0.0) == 0.0


@pytest.mark.parametrize(
    ("scheme", "ball", "message"),
    [
        (CategoricalFlip(3, 0.1, 0.2), CategoricalFlips(900, 900, 900), "must be smaller"),
        (CategoricalFlip(3, 0.1, 0.1), CategoricalFlips(10**5, 1, 0), "at most 100000 flips"),
        (
            smoothing.Joint(SparseFlip(0.1, 0.2), SparseFlip(0.2, 0.1)),
            balls.Joint(Flips(4000, 0), Flips(4000, 0)),
            "pairs of regions, got 4001 times 4001",
        ),
    ],
)
def test_what_would_take_too_long_is_refused(
    scheme: smoothing.Smoothing, ball: balls.Ball, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        bincp.certify(scheme, ball)


# ---- what every operator obeys --------------------------------------------------------------


chances = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1e-300, BELOW_ONE])).filter(
    lambda p: p == 0 or p >= 1e-300
)
numbers = st.tuples(*[st.integers(0, 5)] * 3)
probabilities = st.one_of(st.floats(0, 1), st.floats(0, 1e-9), st.sampled_from(GRID))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[smoothing.Smoothing, balls.Ball, balls.Ball]:
    """A scheme, a ball, and a ball that contains it."""
    k = draw(st.sampled_from([3, 4, 256]))
    categorical = CategoricalFlip(k, draw(chances), draw(chances))
    small, more = draw(numbers), draw(numbers)
    large = tuple(s + m for s, m in zip(small, more, strict=True))
    if draw(st.booleans()):
        return categorical, CategoricalFlips(*small), CategoricalFlips(*large)
    part, flips = SparseFlip(draw(chances), draw(chances)), Flips(*draw(numbers)[:2])
    return (
        smoothing.Joint(part, categorical),
        balls.Joint(flips, CategoricalFlips(*small)),
        balls.Joint(flips, CategoricalFlips(*large)),
    )


@settings(deadline=None, max_examples=150)
@given(pair=pairs(), p=probabilities, q=probabilities)
@example(
    pair=(
        CategoricalFlip(3, 1e-300, 1e-300),
        CategoricalFlips(5, 5, 5),
        CategoricalFlips(5, 5, 5),
    ),
    p=SMALLEST,
    q=1.0,
)
def test_properties(pair: tuple, p: float, q: float) -> None:
    """Range, order, law of equivalence (exact in one direction), and larger balls."""
    scheme, small, large = pair
    certificate, outer = bincp.certify(scheme, small), bincp.certify(scheme, large)
    lower, upper = certificate.lower(q), certificate.upper(p)
    assert 0.0 <= lower <= q
    assert p <= upper <= 1.0
    if upper < q:
        assert p < lower + 1e-13
    if upper >= q + 1e-13:
        assert p >= lower
    assert outer.lower(q) <= lower + 1e-13
    assert outer.upper(p) >= upper - 1e-13
    check_certificate(certificate)


@settings(deadline=None, max_examples=50)
@given(pair=pairs(), values=st.lists(probabilities, min_size=1, max_size=40))
def test_arrays_have_the_bounds_of_their_elements(pair: tuple, values: list[float]) -> None:
    """In any order: sorted arrays are evaluated by another loop."""
    certificate = bincp.certify(*pair[:2])
    for array in (values, sorted(values), sorted(values, reverse=True)):
        expected = [certificate.lower(p) for p in array]
        assert certificate.lower(np.array(array)).tolist() == expected


@pytest.mark.usefixtures("exact_draws")
def test_noise_that_forgets_the_input_loses_nothing() -> None:
    even = CategoricalFlip(4, 0.75, 0.75)  # uniform on the categories
    certificate = bincp.certify(even, CategoricalFlips(5, 6, 7))
    halves = smoothing.Joint(even, SparseFlip(0.5, 0.5))
    both = bincp.certify(halves, balls.Joint(CategoricalFlips(5, 6, 7), Flips(3, 9)))
    for p in GRID:
        assert certificate.lower(p) == certificate.upper(p) == p
        assert both.lower(p) == both.upper(p) == p


def test_inverse_and_description() -> None:
    scheme = smoothing.Joint(SparseFlip(0.1, 0.2), CategoricalFlip(3, 0.1, 0.2))
    ball = balls.Joint(Flips(1, 2), CategoricalFlips(3, 4, 5))
    assert ball.inverse() == balls.Joint(Flips(2, 1), CategoricalFlips(4, 3, 5))
    assert ball.inverse().inverse() == ball
    described = bincp.certify(scheme, ball).describe()
    assert described["smoothing"]["attributes"] == {
        "type": "CategoricalFlip",
        "k": 3,
        "p_plus": 0.1,
        "p_minus": 0.2,
    }
    assert json.loads(json.dumps(described)) == described


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CategoricalFlip(1, 0.1, 0.1), ValueError, r"`k` must be in \[2, 16777216\], got"),
        (lambda: CategoricalFlip(3.0, 0.1, 0.1), TypeError, "`k` must be an integer"),
        (lambda: CategoricalFlip(3, 1.5, 0.1), ValueError, r"`p_plus` must be in \[0, 1\]"),
        (lambda: CategoricalFlip(3, 0.5, 1e-301), ValueError, "`p_minus` must be 0 or at least"),
        (lambda: CategoricalFlips(1, 2, -1), ValueError, "`changes` must be in"),
        (lambda: balls.Joint(Flips(1, 1), 3), TypeError, "`attributes` must be a ball"),
        (
            lambda: smoothing.GraphFlip(3, 2, adjacency=3),
            TypeError,
            "`adjacency` must be a SparseFlip, got 3",
        ),
        (
            lambda: smoothing.Joint(Flips(1, 1), SparseFlip(0.1, 0.1)),
            TypeError,
            "`adjacency` must be a smoothing scheme",
        ),
        (
            lambda: smoothing.Joint(SparseFlip(0.1, 0.1), SparseFlip(0.1, 0.1), n_adjacency=-1),
            ValueError,
            r"`n_adjacency` must be in \[0, 9223372036854775807\], got -1",
        ),
    ],
)
def test_bad_parameters(make: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# ---- grids ----------------------------------------------------------------------------------


@pytest.mark.parametrize("flips", [(0.01, 0.6), (0.7, 0.8), (0.25, 0.75), *FLIPS[9:]])
def test_grid_has_the_bounds_of_single_certificates(flips: tuple[float, float]) -> None:
    scheme = SparseFlip(*flips)
    rng = np.random.default_rng(5)
    for p in (np.concatenate((GRID, rng.random(60), GRID)), np.array(GRID), np.array([0.7])):
        grid = flip_grid(scheme, p, 4, 6)
        assert grid.shape == (5, 7, *p.shape)
        for a, d in itertools.product(range(5), range(7)):
            np.testing.assert_array_equal(grid[a, d], bincp.certify(scheme, Flips(a, d)).lower(p))


def test_grid_shapes_and_memory() -> None:
    scheme = SparseFlip(0.01, 0.6)
    p = np.random.default_rng(0).random((3, 4))
    grid = flip_grid(scheme, p, 2, 1)
    rare = SparseFlip(1e-30, 0.6)  # bounds are charged for how it is drawn
    assert rare.sampling_error() > 0
    charged = flip_grid(rare, p, 2, 1)
    for a, d in itertools.product(range(3), range(2)):
        own = bincp.certify(rare, Flips(a, d)).lower(p)
        np.testing.assert_array_equal(charged[a, d], own)
    assert grid.shape == (3, 2, 3, 4)
    assert flip_grid(scheme, 0.9, 2, 1).shape == (3, 2)
    assert flip_grid(scheme, np.empty((0, 2)), 2, 1).shape == (3, 2, 0, 2)
    out = np.empty((3, 2, 3, 4))
    assert flip_grid(scheme, p, 2, 1, out=out) is out
    np.testing.assert_array_equal(out, grid)
    np.testing.assert_array_equal(flip_grid(scheme, p.T, 2, 1), grid.swapaxes(2, 3))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Gaussian(1.0), 0.5, 1, 1), TypeError, "`smoothing` must be a SparseFlip"),
        ((SparseFlip(0.1, 0.2), [0.5, 1.5], 1, 1), ValueError, r"`p` must be in \[0, 1\]"),
        ((SparseFlip(0.1, 0.2), 0.5, -1, 1), ValueError, "`additions` must be in"),
        ((SparseFlip(0.1, 0.2), 0.5, 5000, 5000), ValueError, "steps of convolution"),
    ],
)
def test_grid_errors(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        flip_grid(*arguments)


@pytest.mark.parametrize("out", [np.empty((2, 2)), np.empty((2, 2, 3), np.float32), [1.0]])
def test_grid_refuses_memory_that_does_not_fit(out: object) -> None:
    with pytest.raises((TypeError, ValueError), match="`out` must be"):
        flip_grid(SparseFlip(0.1, 0.2), [0.1, 0.2, 0.3], 1, 1, out=out)


def test_frontier_and_counts_against_a_scan() -> None:
    scheme = SparseFlip(0.01, 0.6)
    p = np.array([0.3, 0.6, 0.5, 0.95, 0.999, 1.0])
    for threshold in (0.5, 0.3):
        frontier = flip_frontier(scheme, p, 3, 15, threshold=threshold)
        for a, i in itertools.product(range(4), range(len(p))):
            scan = [d for d in range(16) if certified(scheme, Flips(a, d), p[i], threshold)]
            assert scan == list(range(frontier[a, i] + 1))
        counts = certified_count(scheme, lambda r: Flips(0, r), p, limit=15, threshold=threshold)
        np.testing.assert_array_equal(counts, frontier[0])
    assert certified_count(scheme, lambda r: Flips(r, r), 0.999, limit=0) == 0
    assert certified_count(scheme, lambda r: Flips(r, r), 0.4, limit=9) == -1


def certified(scheme: SparseFlip, ball: Flips, p: float, threshold: float) -> bool:
    return bincp.certify(scheme, ball).lower(p) >= threshold


# ---- radii ----------------------------------------------------------------------------------


def test_gaussian_radius_is_the_quantile_rounded_down() -> None:
    p = np.array([0.5, 0.500001, 0.75, 0.99, 0.999999, BELOW_ONE])
    radii = certified_radius(Gaussian(0.5), L2, p)
    # At 1/2 a tail is off by 75 + 46 units of 2^-54 at most, and the bound twice as far, and
    # rounded once by 2^-53. A shift of d moves it by d / sqrt(2 pi), and the radius is d / 2.
    looseness = (75 + 46 + 1) * 2.0**-53
    atol = 0.5 * looseness * math.sqrt(2 * math.pi)
    np.testing.assert_allclose(radii, 0.5 * special.ndtri(p), rtol=1e-9, atol=atol)
    assert (radii <= 0.5 * special.ndtri(p)).all()
    for value, radius in zip(p, radii, strict=True):
        assert bincp.certify(Gaussian(0.5), L2(radius)).lower(value) >= 0.5
        beyond = math.nextafter(radius, math.inf)
        assert bincp.certify(Gaussian(0.5), L2(beyond)).lower(value) < 0.5
    assert certified_radius(Gaussian(0.5), L2, 1.0) == math.inf
    assert certified_radius(Gaussian(0.5), L2, 0.4999) == -math.inf
    linf = certified_radius(Gaussian(0.5), lambda r: Linf(r, dim=16), 0.99)
    assert linf == pytest.approx(certified_radius(Gaussian(0.5), L2, 0.99) / 4, rel=1e-12)


def test_uniform_radius_shape_and_threshold() -> None:
    p = np.array([[0.5, 0.75], [1.0, 0.1]])
    np.testing.assert_array_equal(
        certified_radius(Uniform(0.5), L1, p), [[0.0, 0.25], [0.5, -np.inf]]
    )
    assert certified_radius(Uniform(2.0), L1, 0.75, threshold=0.25) == 2.0
    assert certified_radius(Uniform(2.0), L1, []).shape == (0,)


def test_radius_of_a_pair_from_outside() -> None:
    @dataclass(frozen=True)
    class Wiggle(balls.Ball):
        r: float

    @bincp.register(Uniform, Wiggle)
    def factory(scheme: Uniform, ball: Wiggle) -> object:
        return lambda p: max(p - ball.r**2, 0.0)

    radius = certified_radius(Uniform(1.0), Wiggle, 0.75)
    assert radius == 0.5
    with pytest.raises(CertificateError, match="no certificate"):
        certified_radius(Gaussian(1.0), Wiggle, 0.75)


@pytest.mark.parametrize(
    ("ball", "options", "error", "message"),
    [
        (L2(1.0), {}, TypeError, "`ball` must make the ball of a radius"),
        (L2, {"threshold": 0.0}, ValueError, r"`threshold` must be in \(0, 1\]"),
        (L2, {"threshold": 1.5}, ValueError, r"`threshold` must be in \[0, 1\]"),
    ],
)
def test_radius_errors(ball: object, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        certified_radius(Gaussian(1.0), ball, 0.9, **options)


# ---- noise ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("k", "p_plus", "p_minus"), [(3, 0.01, 0.6), (5, 1.0, 0.25), (7, 0.5, 1.0), (256, 0.3, 0.9)]
)
def test_categories_have_their_exact_law(
    k: int, p_plus: float, p_minus: float, dtype: type
) -> None:
    """Counts of every category from every start: chi-square above 1e-6, for this seed."""
    scheme = CategoricalFlip(k, p_plus, p_minus)
    starts = sorted({0, 1, k - 1})
    x = np.repeat(np.array(starts, dtype), 1000)[None]
    noisy = draw(scheme, x, 300, phase="test", seed=11)[0].reshape(300, len(starts), 1000)
    for i, start in enumerate(starts):
        counts = np.bincount(noisy[:, i].astype(int).ravel(), minlength=k)
        expected = np.array([float(chance(start, end, scheme)) for end in range(k)])
        possible = expected > 0
        assert counts[~possible].sum() == 0
        if possible.sum() > 1:
            total = expected[possible] * counts.sum()
            assert stats.chisquare(counts[possible], total).pvalue > 1e-6


def test_two_categories_are_the_flips_of_sparse_noise() -> None:
    x = np.random.default_rng(0).integers(0, 2, (3, 500)).astype(np.float32)
    for phase in ("calibration", "test"):
        np.testing.assert_array_equal(
            draw(CategoricalFlip(2, 0.3, 0.6), x, 5, phase=phase, seed=3),
            draw(SparseFlip(0.3, 0.6), x, 5, phase=phase, seed=3),
        )


def test_noise_of_categories_depends_on_its_key_alone() -> None:
    scheme = CategoricalFlip(6, 0.4, 0.7)
    x = np.random.default_rng(0).integers(0, 6, (4, 300)).astype(np.float32)
    noisy = draw(scheme, x, 6, phase="test", seed=1)
    alone = draw(scheme, x[2:3, :99], 3, phase="test", seed=1, indices=[2])
    np.testing.assert_array_equal(alone[0], noisy[2, :3, :99])
    for other in (
        draw(scheme, x, 6, phase="calibration", seed=1),
        draw(scheme, x, 6, phase="test", seed=2),
    ):
        assert (other != noisy).mean() > 0.3


def test_joint_noise_is_that_of_its_parts_and_independent() -> None:
    first, second = SparseFlip(0.5, 0.5), CategoricalFlip(4, 0.75, 0.75)
    scheme = smoothing.Joint(first, second, n_adjacency=200)
    x = np.zeros((2, 400), np.float32)
    x[:, 200:] = 2
    noisy = draw(scheme, x, 500, phase="test", seed=8)
    np.testing.assert_array_equal(
        noisy[..., :200], draw(first, x[:, :200], 500, phase="test", seed=8)
    )
    pairs = noisy[..., :200] * 4 + noisy[..., 200:]  # all 8 pairs are equally likely
    counts = np.bincount(pairs.astype(int).ravel(), minlength=8)
    assert stats.chisquare(counts).pvalue > 1e-6
    shaped = draw(scheme, x.reshape(2, 20, 20), 500, phase="test", seed=8)
    np.testing.assert_array_equal(shaped.reshape(noisy.shape), noisy)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_of_nested_parts_lies_where_they_lie(dtype: type) -> None:
    """Each of four parts has the noise that its scheme alone has at these positions."""
    parts = SparseFlip(0.5, 0.1), CategoricalFlip(4, 0.7, 0.2), SparseFlip(1, 1), SparseFlip(0, 0)
    a, b, c, d = parts
    x = (np.arange(2 * 150).reshape(2, 150) % 2).astype(dtype)
    expected = [draw(part, x, 20, phase="test", seed=8) for part in parts]
    for scheme in (
        smoothing.Joint(a, smoothing.Joint(b, smoothing.Joint(c, d, 40), 30), 70),
        smoothing.Joint(smoothing.Joint(a, b, 70), smoothing.Joint(c, d, 40), 100),
        smoothing.Joint(smoothing.Joint(smoothing.Joint(a, b, 70), c, 100), d, 140),
    ):
        noisy = draw(scheme, x, 20, phase="test", seed=8)
        for i, (start, stop) in enumerate(itertools.pairwise((0, 70, 100, 140, 150))):
            np.testing.assert_array_equal(noisy[..., start:stop], expected[i][..., start:stop])


@pytest.mark.parametrize("n", [0, 4])
def test_a_part_may_be_empty(n: int) -> None:
    scheme = smoothing.Joint(SparseFlip(1, 1), SparseFlip(0, 0), n_adjacency=n)
    x = np.array([[0, 1, 0, 1]], np.float32)
    assert (draw(scheme, x, 1, phase="test")[0] == (1 - x if n else x)).all()


@pytest.mark.parametrize("other", [Gaussian(0.1), smoothing.SplittingNoise(0.1, None)])
def test_parts_that_would_share_random_numbers_are_refused(other: smoothing.Smoothing) -> None:
    for parts in ((other, SparseFlip(0.1, 0.1)), (SparseFlip(0.1, 0.1), other)):
        with pytest.raises(TypeError, match="must join SparseFlip, CategoricalFlip or Joint"):
            draw(smoothing.Joint(*parts, n_adjacency=2), np.zeros((1, 4)), 2, phase="test")


@pytest.mark.parametrize(
    ("scheme", "value", "message"),
    [
        (CategoricalFlip(3, 0.1, 0.1), 3.0, r"whole numbers in \[0, 2\] .* got 3.0 at index"),
        (CategoricalFlip(3, 0.1, 0.1), 0.5, "got 0.5"),
        (CategoricalFlip(3, 0.1, 0.1), -1.0, "got -1.0"),
        (CategoricalFlip(3, 0.1, 0.1), math.nan, "got nan"),
        (smoothing.Joint(SparseFlip(0.1, 0.1), SparseFlip(0.1, 0.1)), 0.0, "n_adjacency="),
        (
            smoothing.Joint(SparseFlip(0.1, 0.1), SparseFlip(0.1, 0.1), n_adjacency=9),
            0.0,
            "at least n_adjacency = 9 elements",
        ),
        (
            smoothing.Joint(SparseFlip(0.1, 0.1), CategoricalFlip(3, 0.1, 0.1), n_adjacency=2),
            2.0,
            "zeros and ones for SparseFlip",
        ),
    ],
)
def test_inputs_that_do_not_fit_the_noise(
    scheme: smoothing.Smoothing, value: float, message: str
) -> None:
    x = np.full((1, 4), value, np.float32)
    with pytest.raises(ValueError, match=message):
        draw(scheme, x, 2, phase="test")


def test_the_bound_is_met_by_the_worst_classifier() -> None:
    """The set of the likeliest outcomes at the clean input: its chance under attack is the bound.

    Both chances are estimated from 40,000 draws; five standard errors.
    """
    scheme, n = CategoricalFlip(3, 0.2, 0.5), 40_000
    ball = CategoricalFlips(2, 1, 1)
    clean, perturbed = (np.array([start], np.float32) for start in inputs(ball))
    chances = outcomes(scheme, *inputs(ball))
    keys = list(itertools.product(range(3), repeat=4))
    order = sorted(range(len(keys)), key=lambda i: chances[1][i] / chances[0][i])
    accepted = {keys[i] for i in order[:25]}
    p = float(sum(chances[0][i] for i in order[:25]))
    bound = bincp.certify(scheme, ball).lower(p)
    for x, expected in ((clean, p), (perturbed, bound)):
        noisy = draw(scheme, x, n, phase="test", seed=4)[0].astype(int)
        rate = np.mean([tuple(row) in accepted for row in noisy.tolist()])
        assert rate == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / n))
