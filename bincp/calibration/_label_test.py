"""Ways of testing a label: how the draws of a test input decide about it, with exact probabilities.

A label is tested by a count of all m' draws, or sequentially: it is accepted or refused as soon as
its count is far enough off the line l k / m'. The fixed count is the sequential test that stops
when the count reaches k or cannot reach it any more. A calibration is made for one way of testing
and depends on it only through v(p), the probability of refusal at the success probability p.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from bincp._core import _sequential
from bincp._core._mixture import failures
from bincp.calibration._curve import Array, Curve
from bincp.calibration._sequential import SequentialRule, exit_probabilities

MOST_EARLY_DRAWS = 64
"""Labels that may be decided early get no more: counts of 256 make sets 3% smaller at most."""


@dataclass(frozen=True)
class LabelTest:
    """A label is accepted if at least k of m' draws are hits, or as soon as that is likely enough.

    Parameters
    ----------
    k : int
        In [0, m'].
    m_test : int
        m', draws at most.
    spread : Fraction, optional
        Distance of the boundaries from the line l k / m', > 0, as a count of hits. Without it all
        m' draws are counted.
    spare : int, optional
        Draws that are allowed beyond m', and that no label needs.
    """

    k: int
    m_test: int
    spread: Fraction | None = None
    spare: int = 0

    @cached_property
    def rule(self) -> SequentialRule:
        """The boundaries; those of curtailment for a fixed count."""
        if self.spread is None:
            return SequentialRule.curtailed(self.k, self.m_test)
        rule = line_boundaries(self.k, self.m_test, self.spread)
        return prolonged(rule, self.spare) if self.spare else rule

    @property
    def boundaries(self) -> SequentialRule | None:
        """The boundaries of a sequential test; None for a fixed count, which needs none."""
        return None if self.spread is None else self.rule

    def refusals(self, p: Array, q: Array) -> Array:
        """Return the probability of refusal at the success probabilities p = 1 - q."""
        if self.spread is not None:
            return exit_probabilities(self.rule, p, q)[0]
        out = np.empty_like(p)
        failures(self.k, self.m_test, p, q, out)
        return out

    def worst_refusals(self, curve: Curve) -> Array:
        """Return v(p): the probability of refusal at the worst input, on the grid of the curve."""
        return self.refusals(curve.c, curve.d)


def prolonged(rule: SequentialRule, spare: int) -> SequentialRule:
    """Return a rule with more draws than it needs: each label is decided before they come."""
    accept, reject = (
        np.pad(boundary, (0, spare), mode="edge") for boundary in (rule.accept, rule.reject)
    )
    return SequentialRule(rule.min_count, rule.n_test_samples + spare, accept, reject)


def line_boundaries(min_count: int, n_test_samples: int, spread: Fraction) -> SequentialRule:
    """Return the rule that decides a label once its count is `spread` > 0 off the line l k / m'.

    The boundaries end on those of curtailment: nobody waits for what is certain. They are computed
    in whole numbers, for a floating-point quotient decides between two counts where they tie.
    """
    m, k = n_test_samples, min_count
    part, whole = spread.numerator, spread.denominator
    fits = (m * whole + part) * m < 2**62
    draws = np.arange(m + 1, dtype=np.int64 if fits else object)  # else Python's integers
    above, below = draws * k * whole + part * m, draws * k * whole - part * m
    accept = np.minimum(-(-above // (m * whole)), k)
    reject = np.maximum(below // (m * whole), draws + (k - 1 - m))
    reject = np.minimum(reject, accept - 1)  # where k = 0 they would meet
    return SequentialRule(k, m, accept.astype(np.int64), reject.astype(np.int64))


def undecided(rule: SequentialRule, p: Array, q: Array, least: float = 0.0) -> Array:
    """Return the probabilities (m' + 1, ...) that a label has no decision after l = 0..m' draws.

    They fall, and those of all p that are at most `least` are given as 0.
    """
    left = np.empty((rule.n_test_samples + 1, len(p)))
    scratch = np.empty(_sequential.scratch_size(rule.n_test_samples))
    _sequential.undecided(rule.accept, rule.reject, p, q, scratch, left)
    left[left.max(axis=1) <= least] = 0.0
    return left


def refusals_by_count(rule: SequentialRule, m: int) -> Array:
    """Return the probability of refusal by the number of hits among m >= m' cards.

    The draws are cards taken without replacement. If each card is a hit with probability p,
    independently, so is each draw: the expectation over Bin(m, p) hits is v(p), for every p.
    """
    hits = np.arange(m + 1)
    m_test = rule.n_test_samples
    counts = np.arange(m_test + 1)[:, None]
    mass = np.zeros((m_test + 1, m + 1))
    mass[0] = 1.0
    refused = np.zeros(m + 1)
    for draws in range(m_test + 1):
        if draws:
            share = np.clip((hits - counts) / (m - draws + 1), 0, 1)
            moved = mass * share
            mass -= moved
            mass[1:] += moved[:-1]
        leaves = counts <= rule.reject[draws]
        refused += (mass * leaves).sum(axis=0)
        mass *= ~leaves & (counts < rule.accept[draws])
    return np.minimum(refused, 1.0)
