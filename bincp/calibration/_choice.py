"""The choice of the ranks t and j of a p-fixed rule, which are fixed without looking at scores.

Any choice is valid. The constants below are chosen for small sets. They come from a study on
digits, and from the reference population of `_reference`. benchmarks/study/RESULTS.md compares the
default share with 0.5 to 0.9 on CIFAR-10 and MNIST at m = 16 and 64: the mean set is at most 3%
larger than that of the best share for r / sigma up to 1, and at most 12% at r / sigma = 2.
"""

import math
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import special

from bincp._utils.bisection import last_integer
from bincp._utils.levels import float_below, success_rank
from bincp.calibration._curve import Array, Curve
from bincp.calibration._mixture import Setup, count_without_attack, largest_valid_count
from bincp.calibration._reference import reference
from bincp.certificates import Certificate

FEWEST_SAMPLES_FOR_TOP_RANK = 8
"""From this m on, the largest rank j is best: k is fine enough to follow it."""

TYPICAL_SHARE = Fraction(7, 10)
"""The share t / m whose sets held fewest wrong labels on digits, over all strengths of attack."""

# What k must gain, in units of m', for the next smaller j to be taken: a smaller rank costs sets of
# about that size.
_GAIN_FOR_SMALLER_RANK = Fraction(2, 100)

# Shares for certificates of few regions, which may take far less from larger shares.
_HIGH_SHARES = (Fraction(9, 10), Fraction(19, 20))
# What a high share must save, in standard deviations of a normal score: it costs about that much
# where the loss to the attack is even.
_GAIN_FOR_HIGH_SHARE = 0.2

# c(0.75) for attacks of 1/4 and of 1 standard deviations, between which the best share moves from
# 0.6 to 0.8: Phi(Phi^-1(0.75) - 1/4) and Phi(Phi^-1(0.75) - 1), each a little outward.
_CERTIFIED_AT_QUARTER_DEVIATION = 0.664394
_CERTIFIED_AT_ONE_DEVIATION = 0.372400

# With few samples so many values of k are tried, evenly spread; more of them change no rule much.
_TRIED_COUNTS = 64


class RankRule(NamedTuple):
    """A p-fixed rule: tau is the rank-th smallest t-th largest score, k successes are accepted."""

    t: int
    rank: int
    k: int


def choose(setup: Setup, p: Fraction | None = None) -> RankRule:
    """Choose t (unless ``p`` gives it), the rank j and k, from the arguments alone.

    From 8 samples on, j = floor(alpha (n + 1)), or one less where that raises k by more than 2% of
    m', or the largest that allows k >= 1. With fewer samples k is so coarse that j is fitted to it,
    see `_best_rank`.
    """
    m, m_test = setup.m, setup.m_test
    t = default_success_rank(setup.certificate, m) if p is None else success_rank(p, m)
    top = setup.top_rank
    if top == 0:
        return RankRule(t, 0, 0)
    count = partial(largest_valid_count, setup, t)
    if m < FEWEST_SAMPLES_FOR_TOP_RANK:
        rank = _best_rank(setup, t)
        k = count(rank)
        while k > 0 and rank < top and count(rank + 1) >= k:  # on a finer grid than the comparison
            rank += 1
        return RankRule(t, rank, k)
    k = count(top)
    if k == 0:
        rank = max(1, last_integer(lambda j: count(j) > 0, 1, top - 1))
        return RankRule(t, rank, count(rank))
    if top > 1 and (smaller := count(top - 1)) - k > _GAIN_FOR_SMALLER_RANK * m_test:
        return RankRule(t, top - 1, smaller)
    return RankRule(t, top, k)


def default_success_rank(certificate: Certificate, m: int) -> int:
    """Return t for m samples: a share that grows with the strength of the attack."""
    if m <= 2:
        return m
    share = default_p(certificate, m)
    keep = share in _HIGH_SHARES or m >= FEWEST_SAMPLES_FOR_TOP_RANK
    return success_rank(share if keep else TYPICAL_SHARE, m)


def default_p(certificate: Certificate, m: int) -> Fraction:
    """Return the share of scores above a point's threshold that wants fewest wrong labels.

    It is 0.6, 0.7 or 0.8 for delta = Phi^-1(0.75) - Phi^-1(c(0.75)) <= 1/4, between, >= 1, where
    delta is r / sigma for Gaussian noise. Certificates of few regions may take far less from
    larger shares: then it is 0.9 or, from m = 21 on, where that leaves a score to spare, 0.95.
    """
    certified = certificate.lower(0.75)
    if certified >= _CERTIFIED_AT_QUARTER_DEVIATION:
        share = Fraction(3, 5)
    elif certified > _CERTIFIED_AT_ONE_DEVIATION:
        share = TYPICAL_SHARE
    else:
        share = Fraction(4, 5)
    for high in _HIGH_SHARES:
        spares_one = success_rank(high, m) < m or high == _HIGH_SHARES[0]
        limit = _loss(certificate, share) - _GAIN_FOR_HIGH_SHARE
        if spares_one and _loss(certificate, high) < limit:
            share = high
    return share


def _loss(certificate: Certificate, share: Fraction) -> float:
    """Return how much an attack takes from a share, in standard deviations of a normal score."""
    p = float_below(share)
    return float(special.ndtri(p) - special.ndtri(certificate.lower(p)))


def _best_rank(setup: Setup, t: int) -> int:
    """Return the rank whose rule accepts fewest wrong labels in the reference population.

    For each k it looks at the largest rank that allows it: a larger rank at equal k only gives
    smaller sets.
    """
    curve = setup.curve(t)
    failing = reference().failures(t, setup.m)
    top = setup.top_rank
    free = count_without_attack(setup, t, top, curve)
    best, fewest = 1, math.inf
    counts = np.linspace(1, setup.m_test, min(setup.m_test, _TRIED_COUNTS)).astype(int)
    for k in np.unique(counts).tolist():
        allowed = partial(_allows, setup, t, curve, curve.prediction_failures(k, setup.m_test))
        rank = top if k <= free else last_integer(allowed, 1, top)
        if rank == 0:
            break  # no larger k has a rank either
        accepted = reference().wrong_labels(failing, rank / (setup.n + 1), k, setup.m_test)
        if accepted < fewest:
            best, fewest = rank, accepted
    return best


def _allows(setup: Setup, t: int, curve: Curve, v: Array, rank: int) -> bool:
    return setup.condition(t, rank, curve).allows(v)
