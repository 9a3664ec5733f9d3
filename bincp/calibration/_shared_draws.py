"""The correction "shared-draws", which lets all calibration points share their noise.

Let t and j be fixed before any score is seen, and let the test draws be fresh. Given the draws the
calibration points and the clean test point are exchangeable, so the t-th largest score v of the
test point lies below tau with probability at most a' = j / (n + 1). Else tau <= v, and the count of
test draws that reach tau is at least the count that reach v. The probability that a fresh draw
reaches v is at least B ~ Beta(t, m + 1 - t) in law, whatever the other points did. So the true
label is refused with probability at most a' + d', d' = E P[Bin(m', c(B)) < k], and k is the largest
count with a' + d' <= alpha.

Of poisoned points, b at most, tau knows nothing but that it is no larger than the j-th smallest of
the clean ones: the rank is j - b. Where the test point is drawn from another law Q, it lies below
tau with probability at most 1 - g(1 - a') given the draws, g the least probability under Q; this
takes the place of a', and the rest of the proof holds for every test point that does not depend on
the shared draws. An attack on the calibration inputs would have to be coupled to the clean ones
point by point, which exchangeability given shared draws does not allow: that is refused, and so is
a number of points that an adversary chooses, on which j, t and k depend.

d' is never too small. It is summed over cells of B, with the refusals v at the left end of a cell,
where they are highest: v_0 minus the sum of (v_{i-1} - v_i) P[B >= p_i], for P[B >= p] is
P[Bin(m, p) < t]. Tails are widened by what their kernel may err, and all steps are rounded outward.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bincp._core._mixture import failures
from bincp._utils.bisection import last_integer
from bincp._utils.levels import conformal_rank, float_below, success_rank
from bincp.calibration._clopper_pearson import uncorrected_rule
from bincp.calibration._counted import CountedRule, wrong_labels
from bincp.calibration._curve import Array, Curve
from bincp.calibration._decision_rule import Settings
from bincp.calibration._label_test import LabelTest
from bincp.certificates import Certificate

_POINTS, _FINE_POINTS = 600, 20_000
_TAIL_ERROR = 4e-15  # BINCP_BINOM_ERROR: times 10 - log(tail)
_ROUNDING = 2.0**-51  # of p, or of 1 - p, for each factor of a tail
_MOST_SUCCESS_RANKS = 24
_SHARES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)  # of alpha (n + 1) that j takes


class SharedDraws(np.ndarray[Any, np.dtype[Any]]):
    """Scores of calibration points that share their noise, so that a rule can refuse them.

    `bincp.sampling` returns them; they are arrays in all other ways. Parts and copies stay what
    they are. A file does not keep it.
    """

    __array_priority__ = 1.0  # what they are concatenated with becomes like them


def check_independent(
    scores: Any, correction: str = "mixture", *, cure: str = "correction='shared-draws' or "
) -> None:
    """Refuse scores of shared noise for a correction that needs independent draws."""
    rows = scores if isinstance(scores, list | tuple) else [scores]
    if correction == "mixture" and any(isinstance(row, SharedDraws) for row in rows):
        raise ValueError(
            "one noisy graph for all calibration nodes makes their draws dependent: use "
            f"{cure}noise of their own"
        )


class Cells:
    """Cells of B, and the certified probability at the left end of each."""

    def __init__(
        self, certificate: Certificate, t: int, m: int, m_test: int, points: int = _FINE_POINTS
    ) -> None:
        self.m_test = m_test
        p = np.unique(Curve.around(certificate, t, m, m_test, points=points).p)  # 0 and 1 as well
        self._reached = tail(t, m, p, up=False)
        c = np.minimum(np.asarray(certificate.lower(p)), p)
        self._c = np.maximum.accumulate(c)  # what is certified further left holds here, too

    def refusal(self, k: int) -> float:
        """Return d' for a count k, rounded up."""
        refused = np.minimum.accumulate(tail(k, self.m_test, self._c, up=True))
        falls = np.maximum(np.nextafter(refused[:-1] - refused[1:], -np.inf), 0.0)
        saved = np.maximum(np.nextafter(falls * self._reached[1:], -np.inf), 0.0)
        total = math.fsum([refused[0], *(-saved)])  # rounded once
        return min(max(math.nextafter(total, math.inf), 0.0), 1.0)


def tail(t: int, m: int, p: Array, rest: Array | None = None, *, up: bool) -> Array:
    """Return P[Bin(m, p) < t], widened up or down by what it may err, in [0, 1].

    ``rest`` is 1 - p. Either of the two may be off by a rounding.
    """
    out = np.empty_like(p)
    # 1 - p is exact from 1/2 on, and within a rounding below
    failures(t, m, p, 1 - p if rest is None else rest, out)
    with np.errstate(divide="ignore"):
        slack = _TAIL_ERROR * (10 - np.log(out, where=out > 0, out=np.full_like(out, -745.0)))
    slack += m * _ROUNDING
    sure = (p == 0) | (p == 1)
    slack[sure] = 0.0
    widened = out * (1 + slack) + 5e-324 if up else out * (1 - slack)
    return np.where(sure, out, np.clip(widened, 0.0, 1.0))


class _Found(NamedTuple):
    k: int
    rank: int
    t: int
    wrong: float


def shared_rule(
    certificate: Certificate, settings: Settings, n: int, m: int, m_test: int
) -> CountedRule:
    """Return the rule of the settings: j and t are functions of n, m, m', alpha and c alone."""
    worst = settings.worst(certificate)
    rank, t, k = choose_shared(worst, settings, n, m, m_test)
    counts = uncorrected_rule(worst, t, m, m_test)
    return CountedRule(rank, t, counts._replace(min_count=k))


@lru_cache(256)
def choose_shared(
    certificate: Certificate, settings: Settings, n: int, m: int, m_test: int
) -> tuple[int, int, int]:
    """Return j - b, t and k of the rule that accepts fewest wrong labels in the reference.

    The certificate is that from the points seen to the attacked test points.

    Where no rule has a k above 0, it accepts every label.
    """
    lost, ranks = settings.lost, tried_ranks(settings, n)
    best: _Found | None = None
    tried = _success_ranks(m) if settings.p is None else [success_rank(settings.p, m)]
    for success in tried:
        cells = Cells(certificate, success, m, m_test, _POINTS)
        refused = lru_cache(None)(cells.refusal)
        for rank in ranks:
            k = _largest_count(refused, m_test, room(settings, n, rank))
            if k == 0:
                continue
            wrong = wrong_labels(LabelTest(k, m_test), n, m, success, rank - lost)
            if best is None or wrong < best.wrong:
                best = _Found(k, rank, success, wrong)
    if best is None:
        return trivial_rank(settings, n), tried[-1], 0
    fine = Cells(certificate, best.t, m, m_test)
    most = _largest_count(fine.refusal, m_test, room(settings, n, best.rank))
    return best.rank - lost, best.t, max(best.k, most)


def tried_ranks(settings: Settings, n: int) -> list[int]:
    """Return the ranks over clean points that are tried, from the least."""
    top = conformal_rank(settings.alpha, n)
    ranks = sorted({max(1 + settings.lost, math.floor(share * top)) for share in _SHARES})
    return [rank for rank in ranks if rank <= top]


def trivial_rank(settings: Settings, n: int) -> int:
    """Return the rank of tau, as for the other corrections, where no count is safe."""
    return max(conformal_rank(settings.level, n) - settings.lost, 0)


def allows(
    certificate: Certificate,
    settings: Settings,
    n: int,
    rank: int,
    t: int,
    m: int,
    k: int,
    m_test: int,
) -> bool:
    """Whether a' + d' <= alpha is shown for a count k; k = 0 accepts every label."""
    left = float_below(room(settings, n, rank + settings.lost))
    return k == 0 or any(
        Cells(certificate, t, m, m_test, points).refusal(k) <= left
        for points in (_FINE_POINTS, _POINTS)
    )


def room(settings: Settings, n: int, rank: int) -> Fraction:
    """Return what the rank of the clean points leaves of alpha, in the proof of the inner shift."""
    share = Fraction(rank, n + 1)
    if settings.drift is not None:
        share = 1 - settings.drift.lower(1 - share)
    return settings.alpha - share


def _largest_count(refused: Callable[[int], float], m_test: int, left: Fraction) -> int:
    if left <= 0:
        return 0
    limit = float_below(left)
    return last_integer(lambda k: refused(k) <= limit, 1, m_test)


def _success_ranks(m: int) -> list[int]:
    size = min(m, _MOST_SUCCESS_RANKS)
    return sorted({-(-m * i // size) for i in range(1, size + 1)})


def as_shared(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return scores as those of shared noise."""
    return scores.view(SharedDraws)
