"""The correction "shared-draws" at a fixed tau: k is a function of the observed t, made in advance.

Let j be fixed, and t the j-th smallest count of the calibration points at tau. Let k(t) be a
non-decreasing function that no score has a part in. Given the shared draws, the points and the
clean test point are exchangeable, so its own count N, of the same draws, falls short of t with
probability at most a' = j / (n + 1). Else k(t) <= k(N), so the true label is refused with
probability at most S = sup_p E P[Bin(m', c(p)) < k(Bin(m, p))]: N is binomial for each p, whatever
the other points did. So a' + S <= alpha will do. Poison and shifts act on a' as for a fixed p, as
poisoned points, b at most, leave the (j - b)-th smallest count no larger than t.

The functions that are tried ask for the count whose upper confidence bound reaches c(L), L the
lower one of t of m successes; the level of both bounds is the largest of a few for which S is small
enough. S is never too small: in a cell of p the refusals are those at the left end, and N is that
at the right end.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bincp._utils.bisection import last_integer
from bincp._utils.levels import success_rank
from bincp.calibration._clopper_pearson import clopper_pearson_rule
from bincp.calibration._counted import wrong_labels
from bincp.calibration._curve import Array
from bincp.calibration._decision_rule import Settings
from bincp.calibration._fixed_tau import TYPICAL_SHARE
from bincp.calibration._label_test import LabelTest
from bincp.calibration._shared_draws import room, tail, tried_ranks, trivial_rank
from bincp.certificates import Certificate

_CELLS = 1500
_MOST_COUNTS = 512  # values of t with a k of their own
_LEVELS = tuple(Fraction(i, 8) for i in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 26, 32, 40, 64, 96))
_ROUNDING = 1e-12  # of a sum of so many terms

Counts = npt.NDArray[np.int64]


class CountsAtTau:
    """The function k(t), by the first t of each value, and the probability S that it refuses."""

    def __init__(self, certificate: Certificate, m: int, m_test: int, level: Fraction) -> None:
        size = min(m, _MOST_COUNTS)
        self._t: Counts = np.unique([-(-m * i // size) for i in range(size + 1)])
        rules = (clopper_pearson_rule(certificate, int(t), m, m_test, level) for t in self._t)
        self._k: Counts = np.maximum.accumulate([rule.min_count for rule in rules])
        self._certificate, self._m, self._m_test = certificate, m, m_test

    def at(self, t: int) -> int:
        """Return k(t)."""
        return int(self._k[np.searchsorted(self._t, t, side="right") - 1])

    def refusal(self) -> float:
        """Return S, rounded up."""
        p = np.maximum.accumulate(np.sin(np.linspace(0.0, math.pi / 2, _CELLS + 1)) ** 2)
        p[-1] = 1.0
        c = np.maximum.accumulate(np.minimum(np.asarray(self._certificate.lower(p)), p))[:-1]
        total = self._refused(int(self._k[0]), c, up=True)
        for i in np.flatnonzero(np.diff(self._k)) + 1:
            more = self._refused(int(self._k[i]), c, up=True)
            less = self._refused(int(self._k[i - 1]), c, up=False)
            total += np.maximum(more - less, 0.0) * self._reached(int(self._t[i]), p[1:])
        return min(float(np.max(total)) * (1 + _ROUNDING) + 5e-324, 1.0)

    def _refused(self, k: int, c: Array, *, up: bool) -> Array:
        return tail(k, self._m_test, c, up=up)

    def _reached(self, t: int, p: Array) -> Array:
        """Return P[Bin(m, p) >= t], rounded up: that of fewer than m - t + 1 failures."""
        return tail(self._m - t + 1, self._m, 1 - p, p, up=True)


@lru_cache(256)
def choose_at_tau(
    certificate: Certificate, settings: Settings, n: int, m: int, m_test: int
) -> tuple[int, CountsAtTau | None]:
    """Return j - b, and k(t), None if it is 0 everywhere; no score is looked at.

    Of the ranks that one is taken whose k accepts fewest wrong labels where t / m is typical, with
    all that the rank leaves as the level of both bounds. The certificate is that from the points
    seen to the attacked test points.
    """
    lost, typical = settings.lost, success_rank(TYPICAL_SHARE, m)
    wrong = {}
    for rank in tried_ranks(settings, n):
        if (left := room(settings, n, rank)) > 0:
            k = clopper_pearson_rule(certificate, typical, m, m_test, left).min_count
            wrong[rank] = wrong_labels(LabelTest(k, m_test), n, m, typical, rank - lost)
    if not wrong:
        return trivial_rank(settings, n), None
    rank = min(wrong, key=lambda rank: (wrong[rank], rank))
    return rank - lost, _largest(certificate, m, m_test, room(settings, n, rank))


def _largest(certificate: Certificate, m: int, m_test: int, left: Fraction) -> CountsAtTau | None:
    """Return the function of the largest level whose refusals are within what is left."""
    levels = [left * share for share in _LEVELS if left * share < Fraction(1, 2)]

    def counts(i: int) -> CountsAtTau:
        return CountsAtTau(certificate, m, m_test, levels[i])

    found = last_integer(lambda i: Fraction(counts(i).refusal()) <= left, 0, len(levels) - 1)
    return counts(found) if found >= 0 else None


def count_at_tau(
    certificate: Certificate, settings: Settings, n: int, m: int, m_test: int, t: int
) -> int:
    """Return k for an observed t."""
    rank, counts = choose_at_tau(certificate, settings, n, m, m_test)
    return counts.at(t) if rank and counts is not None else 0
