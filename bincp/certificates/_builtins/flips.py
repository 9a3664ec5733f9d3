"""Operators of discrete noise: likelihood-ratio regions and the knapsack over them.

The worst input of a ball is at its corner, where all flips are used up. Noise is independent from
coordinate to coordinate, so an adversary who changes fewer coordinates faces the Neyman-Pearson
problem of the corner with some coordinates left out. A test that sees more coordinates may ignore
some, so it is no worse: the least perturbed mass at the corner is no higher.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp import balls, smoothing
from bincp._core import _operators
from bincp._core._operators import Operator
from bincp.balls import CategoricalFlips, Flips
from bincp.certificates import _ratios
from bincp.certificates._algebra import product
from bincp.certificates._certificate import Certificate
from bincp.certificates._masses import Masses
from bincp.certificates._ratios import Integers, Regions
from bincp.certificates._registry import certify_law, register_built_in
from bincp.errors import CertificateError
from bincp.smoothing import CategoricalFlip, GraphFlip, SparseFlip

_MAX_CELLS = 10**10  # about ten seconds of convolution, which cannot be interrupted
_MAX_STEPS = 10**9  # places times steps of a walk; about ten seconds as well

NO_FLIPS = SparseFlip(0.0, 0.0)

Numbers = tuple[int, int, int]  # of additions, deletions and changes
Offsets = tuple[int, int, int]
Weights = tuple[Fraction, Fraction, Fraction]


def _masses(smoothing: Any, ball: Any) -> Masses | None:
    """Return the masses of the regions of a pair, None if there are too many for products."""
    try:
        regions = _regions_of(smoothing, ball)
    except ValueError:
        return None
    return Masses(regions.clean, regions.perturbed, regions.slack, regions.tiny)


@register_built_in(SparseFlip, Flips, exact=True, masses=_masses)
def sparse_flips(smoothing: SparseFlip, ball: Flips) -> Operator:
    """Fill additions + deletions + 1 likelihood-ratio regions (Bojchevski et al. 2020); exact."""
    check_sparse_cost(ball)
    return _operators.sparse(ball.additions, ball.deletions, smoothing.p_plus, smoothing.p_minus)


@register_built_in(CategoricalFlip, CategoricalFlips, exact=True, masses=_masses)
def categorical_flips(smoothing: CategoricalFlip, ball: CategoricalFlips) -> Operator:
    """Fill the likelihood-ratio regions of k categories (Bojchevski et al. 2020); exact."""
    if smoothing.k == 2:  # a change needs a third category
        return sparse_flips(_sparse(smoothing), Flips(ball.additions, ball.deletions))
    return _ratios.operator(categorical_regions(smoothing, ball))


@register_built_in(smoothing.Joint, balls.Joint, exact=True, masses=_masses)
def joint(smoothing: smoothing.Joint, ball: balls.Joint) -> Operator | Certificate:
    """Fill the sorted products of the regions of the parts (Bojchevski et al. 2020); exact.

    Parts without regions of their own have the certificate of `product`.
    """
    if _have_regions(smoothing, ball):
        return _ratios.operator(joint_regions(smoothing, ball))
    return product(
        certify_law(smoothing.adjacency, ball.adjacency),
        certify_law(smoothing.attributes, ball.attributes),
    )


@register_built_in(GraphFlip, Flips)
def graph_flips(smoothing: GraphFlip, ball: Flips) -> Operator:
    """Fill the regions of the part that is noisy; exact. The other part must not change."""
    if len(smoothing.noisy) > 1:
        raise CertificateError(
            "a GraphFlip with noise on both parts certifies balls.Joint of two Flips, got "
            f"{ball!r}: a part that does not change has Flips(0, 0)"
        )
    return sparse_flips(getattr(smoothing, *smoothing.noisy) if smoothing.noisy else NO_FLIPS, ball)


@register_built_in(GraphFlip, balls.Joint)
def graph_joint(scheme: GraphFlip, ball: balls.Joint) -> Operator | Certificate:
    """Fill the sorted products of the regions of both parts; exact."""
    return joint(smoothing.Joint(scheme.adjacency, scheme.attributes), ball)


def check_sparse_cost(ball: Flips) -> None:
    """Refuse a ball whose regions would take too long to compute."""
    cells = (ball.additions + 1) * (ball.deletions + 1)
    if cells > _MAX_CELLS:
        raise ValueError(
            f"`ball` must have (additions + 1) (deletions + 1) <= {_MAX_CELLS}, got {ball!r}"
        )


# ---- regions with their ratios, for products ----------------------------------------------------


def sparse_regions(smoothing: SparseFlip, ball: Flips) -> Regions:
    """Return the regions of q differing bits that end up unlike the clean input."""
    check_sparse_cost(ball)
    a, d = ball.additions, ball.deletions
    _check_flips(a + d, ball)
    clean, perturbed = np.empty(a + d + 1), np.empty(a + d + 1)
    p_plus, p_minus = Fraction(smoothing.p_plus), Fraction(smoothing.p_minus)
    _operators.sparse_masses(a, d, smoothing.p_plus, smoothing.p_minus, clean, perturbed)
    q = np.arange(a + d + 1)
    if p_plus + p_minus > 1:  # the masses are in decreasing order of the ratio
        q = q[::-1]
    high, low = _ratios.combine_logs(
        [(q - d, _log_quotient(p_plus, 1 - p_minus)), (q - a, _log_quotient(p_minus, 1 - p_plus))]
    )
    slack = _operators.SPARSE_SLACK + _ratios.ratio_slack(a + d)
    return _ratios.merged(Regions(clean, perturbed, high, low, slack, _operators.sparse_tiny(a, d)))


def categorical_regions(smoothing: CategoricalFlip, ball: CategoricalFlips) -> Regions:
    """Return the regions of equal powers of the ratios that one coordinate can have.

    Let a = 1 - p_plus, b = p_plus / (k - 1), c = 1 - p_minus and d = p_minus / (k - 1). The ratios
    clean / perturbed of an addition are a/d (it stays), b/c (it becomes the category that the
    adversary chose) and b/d (the k - 2 others); those of a deletion are their inverses, and those
    of a change c/d, d/c and 1. A place of the walk stands for powers x of a/d, y of b/c and the
    rest of b/d.
    """
    a, b, c, d = _chances(smoothing)
    others = smoothing.k - 2
    zero: Weights = (a, b, others * b)
    moved: Weights = (d, c, others * d)
    kept: Weights = (c, d, others * d)
    numbers = (ball.additions, ball.deletions, ball.changes)
    _check_flips(sum(numbers), ball)
    one_power = smoothing.p_plus == smoothing.p_minus  # ratios are powers of a/b
    offsets = _ONE_POWER if one_power else _two_powers(numbers)
    size = 1 + sum(n * max(places) for n, places in zip(numbers, offsets, strict=True))
    _check_walk(size, numbers, ball)
    clean, tiny = _walk(numbers, offsets, (zero, moved, kept), size)
    perturbed, _ = _walk(numbers, offsets, (moved, zero, moved), size)
    place = np.arange(size)
    exponents = _exponents_of_one(place, numbers) if one_power else _exponents(place, numbers)
    logs = [_ratios.log_in_units(chance) for chance in (a, b, c, d)]
    high, low = _ratios.combine_logs(list(zip(exponents, logs, strict=True)))
    slack = _operators.CATEGORICAL_SLACK + _ratios.ratio_slack(2 * sum(numbers))
    return _ratios.merged(Regions(clean, perturbed, high, low, slack, tiny))


def joint_regions(smoothing: smoothing.Joint, ball: balls.Joint) -> Regions:
    """Return the products of the regions of the parts."""
    return _ratios.product(
        _regions_of(smoothing.adjacency, ball.adjacency),
        _regions_of(smoothing.attributes, ball.attributes),
    )


def _have_regions(scheme: Any, ball: Any) -> bool:
    """Return whether likelihood-ratio regions are known of a pair, and of all parts of a Joint."""
    if (type(scheme), type(ball)) == (smoothing.Joint, balls.Joint):
        return _have_regions(scheme.adjacency, ball.adjacency) and _have_regions(
            scheme.attributes, ball.attributes
        )
    return (type(scheme), type(ball)) in _WITH_REGIONS


def _regions_of(smoothing: Any, ball: Any) -> Regions:
    return _WITH_REGIONS[type(smoothing), type(ball)](smoothing, ball)


def _regions_of_categories(smoothing: CategoricalFlip, ball: CategoricalFlips) -> Regions:
    if smoothing.k == 2:
        return sparse_regions(_sparse(smoothing), Flips(ball.additions, ball.deletions))
    return categorical_regions(smoothing, ball)


_WITH_REGIONS: dict[tuple[type, type], Callable[[Any, Any], Regions]] = {
    (SparseFlip, Flips): sparse_regions,
    (CategoricalFlip, CategoricalFlips): _regions_of_categories,
    (smoothing.Joint, balls.Joint): joint_regions,
}


def _sparse(smoothing: CategoricalFlip) -> SparseFlip:
    return SparseFlip(smoothing.p_plus, smoothing.p_minus)


def _log_quotient(numerator: Fraction, denominator: Fraction) -> int:
    """Return a logarithm in units; its value has no effect where the quotient is 0 or infinite."""
    return _ratios.log_in_units(numerator / denominator) if denominator else 0


def _check_flips(number: int, ball: Any) -> None:
    if number > _ratios.MAX_FLIPS:
        raise ValueError(f"`ball` must have at most {_ratios.MAX_FLIPS} flips, got {ball!r}")


# ---- walks over the powers of ratios ------------------------------------------------------------

# The step of each outcome of an addition, a deletion and a change: its power of a/b, plus 1.
_ONE_POWER: tuple[Offsets, ...] = ((2, 0, 1), (0, 2, 1), (2, 0, 1))


def _two_powers(numbers: Numbers) -> tuple[Offsets, ...]:
    """Return the offsets where a place is x row + y, each counted from its least value."""
    row = _row(numbers)
    return (row, 1, 0), (1, row, row + 1), (0, 2, 1)


def _row(numbers: Numbers) -> int:
    return numbers[0] + numbers[1] + 2 * numbers[2] + 1


def _exponents(place: Integers, numbers: Numbers) -> list[Integers]:
    """Return the powers of a, b, c and d in the ratio at each place."""
    x, y = np.divmod(place, _row(numbers))
    x, y = x - numbers[1], y - (numbers[1] + numbers[2])
    all_three = numbers[0] - numbers[1]  # the powers of a/d, b/c and b/d together
    return [x, all_three - x, -y, y - all_three]


def _exponents_of_one(place: Integers, numbers: Numbers) -> list[Integers]:
    power = place - sum(numbers)
    return [power, -power, 0 * power, 0 * power]


def _chances(smoothing: CategoricalFlip) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Return P of: zero stays, zero becomes one other, another stays, it becomes one other."""
    p_plus, p_minus = Fraction(smoothing.p_plus), Fraction(smoothing.p_minus)
    return 1 - p_plus, p_plus / (smoothing.k - 1), 1 - p_minus, p_minus / (smoothing.k - 1)


def _check_walk(size: int, numbers: Numbers, ball: CategoricalFlips) -> None:
    if size * sum(numbers) > _MAX_STEPS:
        raise ValueError(
            f"`ball` must be smaller: places times steps must be at most {_MAX_STEPS}, "
            f"got {size} times {sum(numbers)} for {ball!r}"
        )


def _walk(
    numbers: Numbers, offsets: Sequence[Offsets], weights: Sequence[Weights], size: int
) -> tuple[npt.NDArray[np.float64], float]:
    """Return the masses of all places, and a bound on what underflow took from them."""
    mass = np.empty(size)
    steps = [
        (n, places, *_as_pairs(chances))
        for n, places, chances in zip(numbers, offsets, weights, strict=True)
    ]
    return mass, _operators.categorical_masses(steps, mass)


def _as_pairs(weights: Weights) -> tuple[list[float], list[float]]:
    high = [float(weight) for weight in weights]
    low = [float(weight - Fraction(h)) for weight, h in zip(weights, high, strict=True)]
    return high, low
