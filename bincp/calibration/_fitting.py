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
from bincp.calibration._choice import choose
from bincp.calibration._clopper_pearson import CountRule, eta_of_bound
from bincp.calibration._conditions import Condition
from bincp.calibration._count_weights import choose_weights, select_threshold_by_weights
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._default_rank import count_rule, default_success_rank
from bincp.calibration._fixed_tau import tau_fixed_count
from bincp.calibration._mixture import Setup, top_rank
from bincp.calibration._threshold import kth_smallest, select_threshold
from bincp.certificates import Certificate
from bincp.counting import check_no_nan, count_exceedances

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
        return Setup(self.certificate, self.n, self.m, self.m_test, settings.alpha, settings.delta)

    def rule(self, tau: float, rank: int | None, t: int | None, counts: CountRule) -> DecisionRule:
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
            certificate=self.certificate.describe(),
        )


def fit(task: Task) -> DecisionRule:
    """Return the decision rule of sampled scores. NaN scores are refused."""
    if task.settings.correction == "mixture":
        return _fit_mixture(task)
    return _fit_counts(task)


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


def condition_of(rule: DecisionRule, certificate: Certificate) -> Condition | None:
    """Return the condition of a mixture rule on prediction; None if only accepting all meets it."""
    assert rule.n_samples is not None
    assert rule.n_test_samples is not None
    alpha, delta = rule.settings.alpha, rule.settings.delta
    setup = Setup(
        certificate, rule.n_calibration, rule.n_samples, rule.n_test_samples, alpha, delta
    )
    if rule.rank is None:
        return choose_weights(setup).condition if rule.min_count else None
    t = rule.success_rank
    if not rule.rank or not t:
        return None
    if rule.settings.tau is not None:
        return tau_fixed_count(setup, t, rule.rank)[1]
    return setup.condition(t, rule.rank)


# ---- the corrections --------------------------------------------------------------------------


def _fit_mixture(task: Task) -> DecisionRule:
    """Correct for the worst mixture of binomials, without confidence bounds; see `_mixture`."""
    settings = task.settings
    if settings.tau is not None:
        rank = task.setup.top_rank
        tau, t = _count_at_fixed_tau(task, rank)
        k, _ = tau_fixed_count(task.setup, t, rank)
        return task.rule(tau, rank, t, _count_rule(task, t, k))
    if task.m > task.m_test and settings.p is None and settings.delta is None:
        return _fit_weights(task)
    t, rank, k = choose(task.setup, settings.p)
    return task.rule(_threshold(task, t, rank), rank, t, _count_rule(task, t, k))


def _fit_weights(task: Task) -> DecisionRule:
    weights = choose_weights(task.setup)
    tau = select_threshold_by_weights(task.scores, weights, task.settings.alpha)
    k = weights.k if tau > -math.inf else 0
    return task.rule(tau, None, None, CountRule(k, None, None, None))


def _count_rule(task: Task, t: int, k: int) -> CountRule:
    p = float_below(Fraction(t, task.m))
    return CountRule(k, p, None, min(task.certificate.lower(p), p))


def _fit_counts(task: Task) -> DecisionRule:
    """Follow algorithms 1 and 2 of the paper: level alpha - eta, and eta for the bounds.

    Without a correction frequencies are taken for probabilities, and nothing is spent.
    """
    settings, each = task.settings, None
    if settings.correction == "clopper-pearson":
        each = eta_of_bound(settings.eta, settings.union, task.n, task.n_classes)
    rank = conformal_rank(settings.alpha - settings.spent, task.n)
    tau, t = _pair(task, rank, each)
    return task.rule(tau, rank, t, count_rule(task.certificate, t, task.m, task.m_test, each))


def _pair(task: Task, rank: int, each: Fraction | None) -> tuple[float, int]:
    """Return tau and the success rank t, one of them fixed, the other calibrated."""
    if task.settings.tau is not None:
        return _count_at_fixed_tau(task, rank)
    if task.settings.p is not None:
        t = success_rank(task.settings.p, task.m)
    else:
        t = default_success_rank(task.certificate, task.n, task.m, task.m_test, rank, each)
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
