"""The rules of "clopper-pearson" and "none" for a fixed p, before any score is looked at.

Where p is not given the success rank t is chosen. Every t is as good as another for the guarantee,
as long as no score is looked at. So k is computed for many of them, and t is taken from the rules
that accept fewest wrong labels in the reference population. The rules of "clopper-pearson" keep
their level, and are compared as they are. Those of "none" do not: where samples are few, that of
p = 1 asks for all of m' samples and has small sets, for it hardly defends against anything. Only
their tests are compared, at equal coverage.
"""

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from bincp._utils.levels import conformal_rank, nominal_size, success_rank
from bincp.calibration import _wide_reference as population
from bincp.calibration._clopper_pearson import (
    CountRule,
    clopper_pearson_rule,
    eta_of_bound,
    uncorrected_rule,
)
from bincp.calibration._decision_rule import Settings
from bincp.calibration._label_test import LabelTest
from bincp.calibration._loss_fitting import FITTED_SAMPLES
from bincp.certificates import Certificate

_MOST_RANKS = 64  # so many are tried; more of them change no rule much
_EQUAL = 1.01  # rules with so many times the fewest wrong labels are as good


class CountedRule(NamedTuple):
    """tau is the rank-th smallest t-th largest score, and counts are compared with those of k."""

    rank: int
    t: int
    counts: CountRule


def counted_rule(
    certificate: Certificate,
    settings: Settings,
    n: int,
    m: int,
    m_test: int,
    n_classes: int | None,
    share: Fraction | None = None,
) -> CountedRule:
    """Return the rule for the p of the settings, or for the default one.

    With a ``share`` of failures the rule is one for all n, but for its rank.
    """
    rank = rank_of(settings, n)
    each = bound_error(settings, n, n_classes)
    worst = settings.worst(certificate)
    if settings.p is not None:
        t = success_rank(settings.p, m)
    elif share is None:
        t = default_success_rank(worst, n, m, m_test, rank, each)
    else:
        size = nominal_size(share)
        t = default_success_rank(worst, size, m, m_test, conformal_rank(share, size), each)
    return CountedRule(rank, t, count_rule(worst, t, m, m_test, each))


def rank_of(settings: Settings, n: int) -> int:
    """Return the rank of tau over n points."""
    return max(conformal_rank(settings.sampled_level, settings.clean_size(n)) - settings.lost, 0)


def bound_error(settings: Settings, n: int, n_classes: int | None) -> Fraction | None:
    """Return the error probability of each confidence bound, None where there are none."""
    if settings.correction == "none":
        return None
    return eta_of_bound(settings.eta, settings.union, n, n_classes)


def count_rule(
    certificate: Certificate, t: int, m: int, m_test: int, each: Fraction | None
) -> CountRule:
    """Return k for t of m successes; a confidence bound errs with the probability ``each``.

    None stands for the correction "none", which has no bounds.
    """
    if each is None:
        return uncorrected_rule(certificate, t, m, m_test)
    return clopper_pearson_rule(certificate, t, m, m_test, each)


@lru_cache(256)
def default_success_rank(
    certificate: Certificate, n: int, m: int, m_test: int, rank: int, each: Fraction | None
) -> int:
    """Return t, where tau is the rank-th smallest of the n points' t-th largest scores.

    Of the rules that are about as good as the best one it is the middle one. It is m where no t
    allows a k above 0: that one comes closest.
    """
    wrong = {}
    for t in _success_ranks(m, each) if rank else []:
        if k := count_rule(certificate, t, m, m_test, each).min_count:
            test = LabelTest(k, m_test)
            wrong[t] = (
                population.at_equal_coverage(test, certificate, rank, n)
                if each is None
                else wrong_labels(test, n, m, t, rank)
            )
    good = [t for t, share in wrong.items() if share <= _EQUAL * min(wrong.values())]
    return good[len(good) // 2] if good else m


def wrong_labels(test: LabelTest, n: int, m: int, t: int, rank: int) -> float:
    """Return the share of wrong labels that a rule accepts in the reference population."""
    fitted = min(m, FITTED_SAMPLES)
    at = population.levels(fitted).by_rank(max(1, round(t * fitted / m)), rank, n)
    return population.mean_over_nodes(population.accepted(test), at)


def _success_ranks(m: int, each: Fraction | None) -> list[int]:
    """Return the ranks that are tried: all if few, else even shares; without bounds not p = 1."""
    most = max(m - 1, 1) if each is None else m
    size = min(most, _MOST_RANKS)
    return [-(-most * i // size) for i in range(1, size + 1)]
