"""Operators of staircase noise on words: three likelihood ratios for each replaced word."""

from fractions import Fraction

import numpy as np

from bincp._core import _operators
from bincp._core._operators import Operator
from bincp.balls import Substitutions
from bincp.certificates import _ratios
from bincp.certificates._ratios import Regions
from bincp.certificates._registry import register_built_in
from bincp.errors import CertificateError
from bincp.smoothing import Staircase

_MAX_WORDS = 10**4  # replaced words; their regions take the square of it


@register_built_in(Staircase, Substitutions, exact=True)
def substitutions(smoothing: Staircase, ball: Substitutions) -> Operator:
    """Fill the regions of equal powers of the ratio of a step; exact.

    A word that moves by d places, at most one step, meets each outcome on the same step of the
    staircase as before, or on one next to it: the likelihood ratios are 1, ratio and its inverse.
    Reflection maps the outcomes of the two last ones onto each other. So the laws are those of a
    randomised response that takes place with some probability, which grows with d, and else tells
    nothing. The more often it takes place, the worse (Blackwell), for each word alone and for all
    of them together.
    """
    return _ratios.operator(staircase_regions(smoothing, ball))


def staircase_regions(smoothing: Staircase, ball: Substitutions) -> Regions:
    """Return the regions of the words that are replaced, by the sum of their exponents."""
    if ball.distance > smoothing.step:
        raise CertificateError(
            f"{smoothing!r} has no built-in bound for a distance of more than one step, got "
            f"{ball!r}: a noise with larger steps has one"
        )
    if ball.r > _MAX_WORDS:
        raise ValueError(f"`ball` must have r <= {_MAX_WORDS}, got {ball!r}")
    r, size = ball.r, 2 * ball.r + 1
    clean = np.ones(1)
    tiny = 0.0
    if r > 0:
        falling, same, rising = _shares(smoothing, ball.distance)
        clean = np.empty(size)
        high = [float(share) for share in (falling, same, rising)]
        low = [
            float(share - Fraction(h))
            for share, h in zip((falling, same, rising), high, strict=True)
        ]
        tiny = _operators.categorical_masses([(r, (2, 1, 0), high, low)], clean)
    exponent = np.arange(len(clean)) - r
    log = -_ratios.log_in_units(Fraction(smoothing.ratio))
    logs = _ratios.combine_logs([(exponent, log)])
    slack = _operators.CATEGORICAL_SLACK + _ratios.ratio_slack(2 * r)
    return _ratios.merged(Regions(clean, clean[::-1].copy(), *logs, slack, tiny))


def _shares(smoothing: Staircase, distance: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return the masses of outcomes that get less, as much and more likely by the worst move."""
    law = smoothing.law()
    moves = range(min(distance, smoothing.k // 2) + 1)
    shares = [_shares_of(law, move) for move in moves]
    return max(shares)


def _shares_of(law: tuple[Fraction, ...], move: int) -> tuple[Fraction, Fraction, Fraction]:
    moved = [law[j - move] for j in range(len(law))]
    falling = sum((a for a, b in zip(law, moved, strict=True) if a > b), Fraction(0))
    rising = sum((a for a, b in zip(law, moved, strict=True) if a < b), Fraction(0))
    return falling, 1 - falling - rising, rising
