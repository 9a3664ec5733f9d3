"""The proof of condition (Q): the losses of calibration counts pay for the refusals of a test.

A calibration point of which s of m scores reach tau costs w(s), a test label is refused with
probability at most v(p). The coverage is at least 1 - alpha if v does not increase with p, and
v(p) <= E[w(Bin(m, p))] for every p in [0, 1]. The first holds for every sequential test. The second
is proven cell by cell: v is largest at the left end of a cell and the expected loss least at its
right end, if w does not increase. A cell where the two ends do not tell is halved, and only that.
"""

from typing import NamedTuple

import numpy as np

from bincp._utils.validation import check_integer
from bincp.calibration._conditions import TOLERANCE
from bincp.calibration._curve import Array, Curve
from bincp.calibration._label_test import LabelTest, refusals_by_count
from bincp.calibration._losses import UNIT, Losses
from bincp.calibration._sequential import SequentialRule, exit_probabilities
from bincp.certificates import Certificate

# Rounding of the two sides, taken off the tolerance: of the expected loss by largest loss, see
# BINCP_MEAN_ERROR; and of v by its value and draw, twice what `exit_probabilities` states, or for a
# count of all draws ten times BINCP_BINOM_ERROR, which is its most at any probability.
_MEAN_ERROR = 2e-13
_REFUSAL_ERROR = 4 * 2.0**-53
_COUNT_ERROR = 4e-14

_MOST_CELLS = 2**20
"""Cells that are halved before a proof is given up."""

_FIRST = np.concatenate(
    [[-np.inf], np.arange(-37.0, -8), np.linspace(-8, 8, 513), np.arange(9.0, 38), [np.inf]]
)
"""The first cells, in z = Phi^-1(p)."""


def proves(losses: Losses, rule: SequentialRule, certificate: Certificate) -> bool:
    """Whether losses, in units of `UNIT`, are shown to pay for the refusals of a sequential rule.

    True is a proof, up to `TOLERANCE`. False says that there is a p at which they do not pay, or,
    where the two sides nearly touch, that too many cells would have been needed to tell.
    """
    check_integer("losses.size", losses.size, low=2)
    if losses[-1] < 0 or np.any(np.diff(losses) > 0):
        return False
    values = losses.astype(np.float64) * UNIT
    first = Curve(certificate, _FIRST)
    if first.is_identity and _pays_count_by_count(values, rule):
        return True
    return _Sides(values, rule, certificate).hold(first)


class _Sides:
    """Both sides of the condition, v(p) and the expected loss, as `TOLERANCE` lets them be."""

    def __init__(self, values: Array, rule: SequentialRule, certificate: Certificate) -> None:
        self._values = values
        self._rule = rule
        count = LabelTest(rule.min_count, rule.n_test_samples)
        self._count = count if count.rule == rule else None
        self._certificate = certificate
        self._slack = TOLERANCE - _MEAN_ERROR * max(1.0, float(values[0]))

    def hold(self, curve: Curve) -> bool:
        """Whether v(p) is at most the expected loss in all cells of the curve."""
        z, (v, paid) = curve.z, self._at(curve)
        if np.any(v > paid):
            return False
        cells = _Cells(z[:-1], z[1:], v[:-1], paid[1:]).undecided()
        halved = 0
        while cells.left.size:
            halved += cells.left.size
            middle = cells.middle()
            if halved > _MOST_CELLS or middle is None:
                return False
            # The left end of the first cell goes along: a curve has two points at least.
            v, paid = self._at(Curve(self._certificate, np.append(cells.left[0], middle)))
            # Where rounding says otherwise, neither side rises to the right.
            v, paid = np.minimum(v[1:], cells.v), np.maximum(paid[1:], cells.paid)
            if np.any(v > paid):
                return False
            cells = cells.halved(middle, v, paid).undecided()
        return True

    def _at(self, curve: Curve) -> tuple[Array, Array]:
        return self._refusals(curve), curve.expected(self._values) + self._slack

    def _refusals(self, curve: Curve) -> Array:
        """Return v(p), rounded upward; that of a count in a time that hardly depends on m'."""
        if self._count is not None:
            return self._count.worst_refusals(curve) + _COUNT_ERROR
        v = exit_probabilities(self._rule, curve.c, curve.d)[0]
        return v * (1 + _REFUSAL_ERROR * self._rule.n_test_samples)


class _Cells(NamedTuple):
    """Cells from left to right in z, v at their left ends and the expected loss at the right."""

    left: Array
    right: Array
    v: Array
    paid: Array

    def undecided(self) -> "_Cells":
        """Return the cells whose ends do not show the condition."""
        rest = self.v > self.paid
        return _Cells(*(part[rest] for part in self))

    def middle(self) -> Array | None:
        """Return the middles, None where a cell cannot be halved: it has no width in z."""
        with np.errstate(invalid="ignore"):  # the outermost cells reach to infinity
            middle = self.left + (self.right - self.left) / 2
        inside = (self.left < middle) & (middle < self.right)
        return middle if inside.all() else None

    def halved(self, middle: Array, v: Array, paid: Array) -> "_Cells":
        """Return both halves of each cell."""
        halves = ((self.left, middle), (middle, self.right), (self.v, v), (paid, self.paid))
        return _Cells(*(np.stack(pair, axis=1).ravel() for pair in halves))


def _pays_count_by_count(values: Array, rule: SequentialRule) -> bool:
    """Whether w(s) is at least the probability of refusal with s hits among the m scores.

    Enough where the certificate changes nothing and m >= m', with equality for every p.
    """
    m = len(values) - 1
    if m < rule.n_test_samples:
        return False
    return bool(np.all(values >= refusals_by_count(rule, m) - (TOLERANCE - _MEAN_ERROR)))
