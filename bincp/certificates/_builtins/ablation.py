"""Operators of ablation: noisy copies that show a changed place are lost, the others are kept."""

import math
from fractions import Fraction

from bincp._core import _operators
from bincp._core._operators import Operator
from bincp._utils.levels import float_above
from bincp.balls import L0, EditDistance, Patch
from bincp.certificates._registry import register_built_in
from bincp.smoothing import Ablation, BandAblation, BlockAblation, Deletion

_MAX_FACTORS = 10_000  # factors of the exact quotient, which cannot be interrupted
_ONE = 2**200  # the number 1 as a fixed-point number


@register_built_in(Ablation, L0, exact=True)
def ablation_l0(smoothing: Ablation, ball: L0) -> Operator:
    """Lose 1 - C(d - r, k) / C(d, k), the share of kept sets with a changed coordinate; exact.

    Theorem 1 of Levine and Feizi (AAAI 2020). No bound is better: a classifier may tell apart each
    kept set before and after a coordinate of it changed.
    """
    dim, fewer, more = smoothing.dim, *sorted((min(ball.r, smoothing.dim), smoothing.keep))
    if fewer + more > dim:
        return _operators.uniform(1.0)
    if fewer > _MAX_FACTORS:
        raise ValueError(
            f"`ball` must have r <= {_MAX_FACTORS} where more coordinates are kept, got {ball!r}"
        )
    # C(d - r, k) / C(d, k) is symmetric in r and k.
    untouched = Fraction(math.perm(dim - more, fewer), math.perm(dim, fewer))
    return _operators.uniform(float_above(1 - untouched))


@register_built_in(BlockAblation, Patch, exact=True)
def block_patch(smoothing: BlockAblation, ball: Patch) -> tuple[Operator, str]:
    """Lose the blocks that meet the patch, at most (height + size - 1) (width + size - 1); exact.

    Levine and Feizi (NeurIPS 2020), for patches of any shape: along an axis of n positions,
    min(m + size - 1, n) cyclic intervals meet one of length m.
    """
    rows = _meeting(ball.height, smoothing.size, smoothing.height)
    columns = _meeting(ball.width, smoothing.size, smoothing.width)
    return _counted(smoothing.levels, rows * columns)


@register_built_in(BandAblation, Patch, exact=True)
def band_patch(smoothing: BandAblation, ball: Patch) -> tuple[Operator, str]:
    """Lose the bands that meet the patch, at most width + size - 1; exact.

    Levine and Feizi (NeurIPS 2020). The height of the patch does not matter, unless it is 0.
    """
    columns = _meeting(ball.width, smoothing.size, smoothing.width)
    return _counted(smoothing.levels, columns if ball.height else 0)


@register_built_in(Deletion, EditDistance)
def deletion_edits(smoothing: Deletion, ball: EditDistance) -> Operator:
    """Lose 1 - p_delete^r, the probability that an edit is not deleted and can be seen.

    Huang et al. (NeurIPS 2023). Let z be a longest common subsequence of x, which has a further
    tokens, and of the perturbed input, which has b further ones: a, b <= r. Given that the further
    tokens are deleted, both are smoothed like z; let Q be the probability of the event there. So
    P(x) <= p^a Q + 1 - p^a, and at the perturbed input P >= p^b Q >= p^(b - a) (P(x) - 1 + p^a).
    That is at least P(x) - 1 + p^r: it falls as a or b grows, where it is positive. The bound need
    not be the best.
    """
    unseen = _power_below(Fraction(smoothing.p_delete), ball.r)
    return _operators.uniform(float_above(1 - unseen))


def _power_below(base: Fraction, exponent: int) -> Fraction:
    """Return base^exponent, for a base in [0, 1], rounded down by less than exponent 2^-199."""
    result, square = _ONE, int(base * _ONE)
    while exponent:
        if exponent % 2:
            result = result * square // _ONE
        square, exponent = square * square // _ONE, exponent // 2
    return Fraction(result, _ONE)


def _meeting(changed: int, kept: int, positions: int) -> int:
    """Count the cyclic intervals of length `kept` that meet one of length `changed`."""
    return min(changed + kept - 1, positions) if changed else 0


def _counted(levels: int, steps: int) -> tuple[Operator, str]:
    note = f"a count of {levels} copies moves by at most {steps}; exact"
    return _operators.steps(levels, steps), note
