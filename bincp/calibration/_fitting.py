"""Calibration, one function a correction: from the scores of the calibration set to the rule.

Rank 0 stands for too few calibration points, where every label is accepted.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import Scores, round_to
from bincp._utils.levels import float_below
from bincp.calibration._clopper_pearson import CountRule
from bincp.calibration._common import Common
from bincp.calibration._counted import bound_error, count_rule, counted_rule, rank_of
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._fixed_tau import setup_at_fixed_tau, tau_fixed_count
from bincp.calibration._losses import select_threshold_by_losses
from bincp.calibration._mixture import Setup, setups_of, top_rank
from bincp.calibration._search import Rule, best_rule, price_of
from bincp.calibration._sequential import SequentialRule
from bincp.calibration._shared_at_tau import choose_at_tau, count_at_tau
from bincp.calibration._shared_draws import shared_rule
from bincp.calibration._threshold import kth_smallest, select_threshold
from bincp.certificates import Certificate
from bincp.counting import check_no_nan, count_exceedances


@dataclass(frozen=True)
class Task:
    """A calibration to be done: checked scores (n, m), and what to do with them.

    ``common`` is what several calibrations have in common, whatever their n is.
    """

    certificate: Certificate
    settings: Settings
    scores: Scores
    m_test: int
    n_classes: int | None
    common: Common | None = None
    n_threads: int = 1

    @property
    def n(self) -> int:
        """Number of calibration points."""
        return len(self.scores.bits)

    @property
    def m(self) -> int:
        """Number of samples of each."""
        return int(self.scores.bits.shape[1])

    @property
    def worst(self) -> Certificate:
        """The certificate from the points seen to the attacked test points."""
        return self.settings.worst(self.certificate)

    @property
    def share(self) -> Fraction | None:
        """The share of failures that is the same for all n, if there is one."""
        return None if self.common is None else self.common.share

    @property
    def setups(self) -> tuple[Setup, ...]:
        """Everything that the mixture correction may use before it sees a score."""
        return setups_of(self.certificate, self.settings, self.n, self.m, self.m_test, self.share)

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
        k = counts.min_count if rank != 0 else 0
        return DecisionRule(
            settings=self.settings,
            tau=tau if rank != 0 else -math.inf,
            n_calibration=self.n,
            min_count=k,
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
            boundaries=boundaries if k else None,
            share=self.share,
            certificate=self.certificate.describe(),
        )


def fit(task: Task) -> DecisionRule:
    """Return the decision rule of sampled scores. NaN scores are refused."""
    if task.settings.correction == "mixture":
        return _fit_mixture(task)
    if task.settings.correction == "shared-draws":
        return _fit_shared(task)
    return _fit_counted(task)


def fit_exact(
    certificate: Certificate, settings: Settings, values: npt.NDArray[np.float64], tau: float
) -> DecisionRule:
    """Return the decision rule of exact probabilities, without any correction."""
    size = settings.clean_size(values.size)
    rank = top_rank(size, settings.level, settings.delta, settings.lost)
    p = kth_smallest(values, rank) if rank else 0.0
    return DecisionRule(
        settings=settings,
        tau=tau,
        n_calibration=values.size,
        rank=rank,
        p=p,
        certified_p=min(settings.worst(certificate).lower(p), p) if rank else 0.0,
        certificate=certificate.describe(),
    )


# ---- the corrections --------------------------------------------------------------------------


def _fit_mixture(task: Task) -> DecisionRule:
    """Correct for the worst mixture of binomials, without confidence bounds; see `_mixture`."""
    settings = task.settings
    if settings.tau is not None:
        setup = setup_at_fixed_tau(task.setups)
        top = setup.top_rank
        tau, t = _count_at_fixed_tau(task, top)
        k, _ = tau_fixed_count(setup, t, top)
        return task.rule(tau, top, t, _count_rule(task, t, k))
    common = None if task.common is None else task.common.chosen
    chosen = common or best_rule(task.setups, price_of(settings))
    rank = chosen.rank if common is None else task.setups[0].top_rank
    if chosen.losses is not None:
        return _fit_losses(task, chosen)
    assert chosen.t is not None
    assert rank is not None
    tau = _threshold(task, chosen.t, rank)
    counts = _count_rule(task, chosen.t, chosen.test.k)
    return task.rule(tau, rank, chosen.t, counts, boundaries=chosen.test.boundaries)


def _fit_shared(task: Task) -> DecisionRule:
    """Let all calibration points share their draws; see `_shared_draws` and `_shared_at_tau`."""
    settings, sizes = task.settings, (task.n, task.m, task.m_test)
    if settings.tau is not None:
        rank, _ = choose_at_tau(task.worst, settings, *sizes)
        tau, t = _count_at_fixed_tau(task, rank)
        k = count_at_tau(task.worst, settings, *sizes, t)
        return task.rule(tau, rank, t, _count_rule(task, t, k))
    rank, t, counts = shared_rule(task.certificate, settings, *sizes)
    return task.rule(_threshold(task, t, rank), rank, t, counts)


def _fit_losses(task: Task, chosen: Rule) -> DecisionRule:
    assert chosen.losses is not None
    settings = task.settings
    tau = select_threshold_by_losses(
        task.scores,
        chosen.losses,
        settings.proof_level,
        settings.lost,
        n_threads=task.n_threads,
    )
    k = chosen.test.k if tau > -math.inf else 0
    losses = tuple(chosen.losses.tolist())
    counts = CountRule(k, None, None, None)
    return task.rule(tau, None, None, counts, losses, chosen.test.boundaries)


def _count_rule(task: Task, t: int, k: int) -> CountRule:
    p = float_below(Fraction(t, task.m))
    return CountRule(k, p, None, min(task.worst.lower(p), p))


def _fit_counted(task: Task) -> DecisionRule:
    """Follow algorithms 1 and 2 of the paper; without a correction nothing is spent."""
    settings, m_test = task.settings, task.m_test
    if settings.tau is None:
        rank, t, counts = counted_rule(
            task.certificate, settings, task.n, task.m, m_test, task.n_classes, task.share
        )
        return task.rule(_threshold(task, t, rank), rank, t, counts)
    rank = rank_of(settings, task.n)
    tau, t = _count_at_fixed_tau(task, rank)
    each = bound_error(settings, task.n, task.n_classes)
    return task.rule(tau, rank, t, count_rule(task.worst, t, task.m, m_test, each))


def _threshold(task: Task, t: int, rank: int) -> float:
    if rank:
        return select_threshold(task.scores, t, rank, task.n_threads)
    check_no_nan(task.scores)
    return -math.inf


def _count_at_fixed_tau(task: Task, rank: int) -> tuple[float, int]:
    """Return tau in the dtype of the scores, and the rank-th smallest count (0 for rank 0)."""
    assert task.settings.tau is not None
    tau = float(round_to(task.scores.dtype, task.settings.tau))
    counts = count_exceedances(task.scores, tau, n_threads=task.n_threads)
    return tau, int(kth_smallest(counts, rank)) if rank else 0
