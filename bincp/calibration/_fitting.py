"""Calibration, one function a correction: from the scores of the calibration set to (tau, k).

Each returns a `Fit`. Scores are (n, m) floats; rank 0 stands for too few calibration points, where
every label is accepted.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import round_to
from bincp._utils.levels import conformal_rank, float_below, success_rank
from bincp.calibration._clopper_pearson import Rule, clopper_pearson_rule, uncorrected_rule
from bincp.calibration._conditions import MeanFailure, Requirement
from bincp.calibration._count_weights import choose_weights, select_threshold_by_weights
from bincp.calibration._curve import Curve
from bincp.calibration._mixture_rule import choose, share_of_failures, tau_fixed_count, top_rank
from bincp.calibration._threshold import select_threshold
from bincp.certificates import Certificate
from bincp.counting import count_exceedances

if TYPE_CHECKING:
    from bincp.calibration._bincp import BinCP

ScoreArray = npt.NDArray[np.floating[Any]]

DEFAULT_P = Fraction(3, 5)


@dataclass(frozen=True)
class Problem:
    """What a calibration starts from."""

    certificate: Certificate
    scores: ScoreArray
    dtype: str
    m_test: int
    alpha: Fraction
    p: Fraction | None
    tau: float | None
    delta: Fraction | None  # of a training-conditional guarantee

    @property
    def n(self) -> int:
        """Number of calibration points."""
        return len(self.scores)

    @property
    def m(self) -> int:
        """Number of samples of each."""
        return int(self.scores.shape[1])


@dataclass(frozen=True)
class Fit:
    """A decision rule and the ranks that it came from; None where it came from count weights."""

    tau: float
    rank: int | None
    t: int | None
    rule: Rule


def fit_mixture(problem: Problem) -> Fit:
    """Worst-case mixture of binomials: no confidence bounds, see `_mixture_rule`."""
    if problem.tau is not None:
        return _fit_mixture_to_tau(problem)
    if problem.m > problem.m_test and problem.p is None and problem.delta is None:
        return _fit_weights(problem)
    n, m, m_test = problem.n, problem.m, problem.m_test
    t, rank, k = choose(problem.certificate, n, m, m_test, problem.alpha, problem.p, problem.delta)
    return Fit(
        _threshold(problem.scores, t, rank), rank, t, _mixture_rule(problem.certificate, t, m, k)
    )


def _fit_mixture_to_tau(problem: Problem) -> Fit:
    rank = top_rank(problem.n, problem.alpha, problem.delta)
    tau, t = _count_at_fixed_tau(problem, rank)
    k, _ = tau_fixed_count(
        problem.certificate,
        t,
        rank,
        problem.n,
        problem.m,
        problem.m_test,
        problem.alpha,
        problem.delta,
    )
    return Fit(tau, rank, t, _mixture_rule(problem.certificate, t, problem.m, k))


def _fit_weights(problem: Problem) -> Fit:
    weights = choose_weights(
        problem.certificate, problem.n, problem.m, problem.m_test, problem.alpha
    )
    tau = select_threshold_by_weights(problem.scores, weights, problem.alpha)
    k = weights.k if tau > -math.inf else 0
    return Fit(tau, None, None, Rule(k, None, None, None))


def _mixture_rule(certificate: Certificate, t: int, m: int, k: int) -> Rule:
    p = float_below(Fraction(t, m))
    return Rule(k, p, None, min(certificate.lower(p), p))


def requirement_of(calibrated: "BinCP", certificate: Certificate) -> Requirement | None:
    """Return what a mixture calibration asks of prediction; None if nothing but every label."""
    n, m, m_test = calibrated.n_calibration_, calibrated.n_samples_, calibrated.n_test_samples_
    assert m is not None
    assert m_test is not None
    if calibrated.rank_ is None:
        weights = choose_weights(certificate, n, m, m_test, calibrated.alpha)
        return weights.requirement if calibrated.min_count_ else None
    t = calibrated.success_rank_
    if not calibrated.rank_ or not t:
        return None
    alpha, delta = calibrated.alpha, calibrated.delta
    if calibrated.tau is not None:
        return tau_fixed_count(certificate, t, calibrated.rank_, n, m, m_test, alpha, delta)[1]
    share = share_of_failures(calibrated.rank_, n, delta)
    return MeanFailure(Curve.around(certificate, t, m, m_test), t, m, share, alpha)


def fit_clopper_pearson(problem: Problem, eta: Fraction, each: Fraction) -> Fit:
    """Algorithms 1 and 2 of the paper: level alpha - eta, and so much of eta for each bound."""
    rank = conformal_rank(problem.alpha - eta, problem.n)
    tau, t = _pair(problem, rank)
    rule = clopper_pearson_rule(problem.certificate, t, problem.m, problem.m_test, each)
    return Fit(tau, rank, t, rule)


def fit_uncorrected(problem: Problem) -> Fit:
    """Take frequencies for probabilities."""
    rank = conformal_rank(problem.alpha, problem.n)
    tau, t = _pair(problem, rank)
    return Fit(tau, rank, t, uncorrected_rule(problem.certificate, t, problem.m, problem.m_test))


def _pair(problem: Problem, rank: int) -> tuple[float, int]:
    """Return tau and the success rank t, one of them fixed, the other calibrated."""
    if problem.tau is not None:
        return _count_at_fixed_tau(problem, rank)
    t = success_rank(DEFAULT_P if problem.p is None else problem.p, problem.m)
    return _threshold(problem.scores, t, rank), t


def _threshold(scores: ScoreArray, t: int, rank: int) -> float:
    if rank:
        return select_threshold(scores, t, rank)
    count_exceedances(scores, -math.inf)  # still no place for NaN
    return -math.inf


def _count_at_fixed_tau(problem: Problem, rank: int) -> tuple[float, int]:
    """Return tau in the dtype of the scores, and the rank-th smallest count (0 for rank 0)."""
    assert problem.tau is not None
    tau = float(round_to(problem.dtype, problem.tau))
    counts = count_exceedances(problem.scores, tau)
    return tau, int(np.partition(counts, rank - 1)[rank - 1]) if rank else 0
