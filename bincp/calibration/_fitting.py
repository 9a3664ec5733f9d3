"""Calibration, one function a correction: from the scores of the calibration set to the rule.

Rank 0 stands for too few calibration points, where every label is accepted.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import Scores, round_to
from bincp._utils.levels import conformal_rank, float_below, success_rank
from bincp.calibration._clopper_pearson import (
    CountRule,
    clopper_pearson_rule,
    eta_of_bound,
    uncorrected_rule,
)
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._fixed_tau import tau_fixed_count
from bincp.calibration._losses import select_threshold_by_losses
from bincp.calibration._mixture import Setup, top_rank
from bincp.calibration._search import Price, Rule, choose_rule
from bincp.calibration._sequential import SequentialRule
from bincp.calibration._threshold import kth_smallest, select_threshold
from bincp.certificates import Certificate
from bincp.counting import check_no_nan, count_exceedances

DEFAULT_P = Fraction(3, 5)
"""p of "clopper-pearson" and "none" where neither p nor tau is given, as in the paper."""


@dataclass(frozen=True)
class Task:
    """A calibration to be done: checked scores (n, m), and what to do with them."""

    certificate: Certificate
    settings: Settings
    scores: Scores
    m_test: int
    n_classes: int | None

    @property
    def n(self) -> int:
        """Number of calibration points."""
        return len(self.scores.bits)

    @property
    def m(self) -> int:
        """Number of samples of each."""
        return int(self.scores.bits.shape[1])

    @property
    def setup(self) -> Setup:
        """Everything that the mixture correction may use before it sees a score."""
        settings = self.settings
        t = None if settings.p is None else success_rank(settings.p, self.m)
        return Setup(
            self.certificate, self.n, self.m, self.m_test, settings.alpha, settings.delta, t
        )

    def rule(
        self,
        tau: float,
        rank: int | None,
        t: int | None,
        counts: CountRule,
        losses: tuple[int, ...] | None = None,
        boundaries: SequentialRule | None = None,
    ) -> DecisionRule:
        """Return the decision rule; with rank 0 it accepts every label."""
        return DecisionRule(
            settings=self.settings,
            tau=tau if rank != 0 else -math.inf,
            n_calibration=self.n,
            min_count=counts.min_count if rank != 0 else 0,
            rank=rank,
            success_rank=t,
            n_samples=self.m,
            n_test_samples=self.m_test,
            n_classes=self.n_classes,
            dtype=self.scores.dtype,
            p=counts.p,
            p_lower=counts.p_lower,
            certified_p=counts.certified_p,
            losses=losses,
            boundaries=boundaries if counts.min_count else None,
            certificate=self.certificate.describe(),
        )


def fit(task: Task) -> DecisionRule:
    """Return the decision rule of sampled scores. NaN scores are refused."""
    if task.settings.correction == "mixture":
        return _fit_mixture(task)
    if task.settings.correction == "none":
        return _fit_uncorrected(task)
    return _fit_clopper_pearson(task)


def fit_exact(
    certificate: Certificate, settings: Settings, values: npt.NDArray[np.float64], tau: float
) -> DecisionRule:
    """Return the decision rule of exact probabilities, without any correction."""
    rank = top_rank(values.size, settings.alpha, settings.delta)
    p = kth_smallest(values, rank) if rank else 0.0
    return DecisionRule(
        settings=settings,
        tau=tau,
        n_calibration=values.size,
        rank=rank,
        p=p,
        certified_p=min(certificate.lower(p), p) if rank else 0.0,
        certificate=certificate.describe(),
    )


# ---- the corrections --------------------------------------------------------------------------


def _fit_mixture(task: Task) -> DecisionRule:
    """Correct for the worst mixture of binomials, without confidence bounds; see `_mixture`."""
    settings = task.settings
    if settings.tau is not None:
        rank = task.setup.top_rank
        tau, t = _count_at_fixed_tau(task, rank)
        k, _ = tau_fixed_count(task.setup, t, rank)
        return task.rule(tau, rank, t, _count_rule(task, t, k))
    chosen = choose_rule(task.setup, price_of(settings))
    if chosen.losses is not None:
        return _fit_losses(task, chosen)
    assert chosen.t is not None
    assert chosen.rank is not None
    tau = _threshold(task, chosen.t, chosen.rank)
    counts = _count_rule(task, chosen.t, chosen.test.k)
    return task.rule(tau, chosen.rank, chosen.t, counts, boundaries=chosen.test.boundaries)


def price_of(settings: Settings) -> Price:
    """Return what a test input may cost under these settings."""
    budget = settings.passes
    limit = float(budget) if isinstance(budget, Fraction) else None
    return Price(settings.stops_early, limit if settings.stops_early else None)


def _fit_losses(task: Task, chosen: Rule) -> DecisionRule:
    assert chosen.losses is not None
    tau = select_threshold_by_losses(task.scores, chosen.losses, task.settings.alpha)
    k = chosen.test.k if tau > -math.inf else 0
    losses = tuple(chosen.losses.tolist())
    counts = CountRule(k, None, None, None)
    return task.rule(tau, None, None, counts, losses, chosen.test.boundaries)


def _count_rule(task: Task, t: int, k: int) -> CountRule:
    p = float_below(Fraction(t, task.m))
    return CountRule(k, p, None, min(task.certificate.lower(p), p))


def _fit_clopper_pearson(task: Task) -> DecisionRule:
    """Follow algorithms 1 and 2 of the paper: level alpha - eta, and eta for the bounds."""
    settings = task.settings
    rank = conformal_rank(settings.alpha - settings.eta, task.n)
    tau, t = _pair(task, rank)
    each = eta_of_bound(settings.eta, settings.union, task.n, task.n_classes)
    return task.rule(
        tau, rank, t, clopper_pearson_rule(task.certificate, t, task.m, task.m_test, each)
    )


def _fit_uncorrected(task: Task) -> DecisionRule:
    """Take frequencies for probabilities."""
    rank = conformal_rank(task.settings.alpha, task.n)
    tau, t = _pair(task, rank)
    return task.rule(tau, rank, t, uncorrected_rule(task.certificate, t, task.m, task.m_test))


def _pair(task: Task, rank: int) -> tuple[float, int]:
    """Return tau and the success rank t, one of them fixed, the other calibrated."""
    if task.settings.tau is not None:
        return _count_at_fixed_tau(task, rank)
    p = task.settings.p
    t = success_rank(DEFAULT_P if p is None else p, task.m)
    return _threshold(task, t, rank), t


def _threshold(task: Task, t: int, rank: int) -> float:
    if rank:
        return select_threshold(task.scores, t, rank)
    check_no_nan(task.scores)
    return -math.inf


def _count_at_fixed_tau(task: Task, rank: int) -> tuple[float, int]:
    """Return tau in the dtype of the scores, and the rank-th smallest count (0 for rank 0)."""
    assert task.settings.tau is not None
    tau = float(round_to(task.scores.dtype, task.settings.tau))
    counts = count_exceedances(task.scores, tau)
    return tau, int(kth_smallest(counts, rank)) if rank else 0
