"""The level of the losses, t, and the test of a label that risk control takes, by correction."""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from bincp._utils.levels import conformal_rank, float_below, nominal_size, success_rank
from bincp.calibration._clopper_pearson import CountRule
from bincp.calibration._counted import count_rule, default_success_rank
from bincp.calibration._risk_fitting import risk_test
from bincp.calibration._risk_rule import RiskSettings
from bincp.calibration._sequential import SequentialRule
from bincp.calibration._triviality import better_p
from bincp.certificates import Certificate


class RiskCounts(NamedTuple):
    """tau is found at the level from t-th largest scores; k, or boundaries, decide about labels."""

    level: Fraction
    t: int
    counts: CountRule
    boundaries: SequentialRule | None = None


def fit_counts(
    certificate: Certificate,
    settings: RiskSettings,
    n: int,
    n_classes: int,
    m: int,
    m_test: int,
) -> RiskCounts:
    """Return what can be known before a score is looked at; it is one for all n if n is chosen."""
    if settings.resizes:
        size = nominal_size(settings.sampled_alpha)
        return fit_counts(certificate, settings.of_clean_points, size, n_classes, m, m_test)
    worst = settings.worst(certificate)
    if settings.correction == "mixture":
        share, t, test = risk_test(certificate, settings, n, n_classes, m, m_test)
        p = float_below(Fraction(t, m))
        counts = CountRule(test.k, p, None, min(worst.lower(p), p))
        return RiskCounts(share, t, counts, test.boundaries)
    each, level = settings.bound_error(n_classes), settings.sampled_alpha
    rank = _rank(settings, n)
    if settings.p is None:
        t = default_success_rank(worst, n, m, m_test, rank, each)
    else:
        t = success_rank(settings.p, m)
    return RiskCounts(level, t, count_rule(worst, t, m, m_test, each))


def better_p_of(
    certificate: Certificate,
    settings: RiskSettings,
    n: int,
    n_classes: int,
    m: int,
    m_test: int,
) -> Fraction | None:
    """Return another p than the one that was given if that one is the cause of trivial sets."""
    if settings.p is None:
        return None
    if settings.resizes:
        size = nominal_size(settings.sampled_alpha)
        return better_p_of(certificate, settings.of_clean_points, size, n_classes, m, m_test)
    if settings.correction == "mixture":
        free = replace(settings, p=None)
        found = risk_test(certificate, free, n, n_classes, m, m_test)
        return Fraction(found.t, m) if found.test.k else None
    each = settings.bound_error(n_classes)
    worst = settings.worst(certificate)
    return better_p(worst, n, m, m_test, _rank(settings, n), each)


def _rank(settings: RiskSettings, n: int) -> int:
    return max(conformal_rank(settings.sampled_alpha, n) - settings.lost, 0)
