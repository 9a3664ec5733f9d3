"""The reasons for sets that hold every label, and the cures."""

import math
from dataclasses import replace
from fractions import Fraction

from bincp._core._binomial import cp_upper
from bincp._utils.levels import conformal_rank, float_below, minus_log, shown
from bincp.calibration._clopper_pearson import eta_of_bound
from bincp.calibration._counted import (
    bound_error,
    count_rule,
    default_success_rank,
    rank_of,
)
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._departures import Departures
from bincp.calibration._mixture import setups_of, top_rank
from bincp.calibration._search import Price, best_rule
from bincp.calibration._shared_draws import choose_shared
from bincp.certificates import Certificate


def trivial_cause(rule: DecisionRule, certificate: Certificate) -> str | None:
    """Return the cause and the cure where sets are trivial, else None."""
    settings, n = rule.settings, rule.n_calibration
    if top_rank(settings.clean_size(n), rule.level, settings.delta, settings.lost) == 0:
        if settings.delta is not None and settings.level:
            return _too_few_points_given(n, settings, settings.delta)
        return too_few_points(n, settings, settings.spent if rule.is_sampled else Fraction(0))
    if rule.min_count is None:
        return _too_far(rule) if rule.certified_p == 0 else None
    if rule.tau == -math.inf and (rule.min_count or rule.losses is not None):
        return _no_finite_tau(rule)
    return _too_low(rule, certificate) if rule.min_count == 0 else None


def too_few_points(n: int, settings: Departures, spent: Fraction = Fraction(0)) -> str:
    """Return the cause and the cure where the conformal rank is 0 at the level less the spent."""
    alpha, lost = settings.alpha, settings.lost
    level = settings.level - spent
    if settings.level <= 0:
        return _too_far_a_shift(alpha)
    if level <= 0:
        return (
            f"eta = {shown(spent)} uses up all of the level {shown(settings.level)} that the "
            "shift, or the label noise, leaves; a smaller eta would fix it"
        )
    needed = settings.seen_size(math.ceil((1 + lost) / level) - 1)
    name = f"alpha = {shown(alpha)}"
    cure = f"at least {shown(needed)} calibration points or a larger alpha"
    if spent:
        name = f"alpha - eta = {shown(level)}"
        if conformal_rank(settings.level, settings.clean_size(n)) > lost:
            cure = f"at least {shown(needed)} calibration points or a smaller eta"
    return (
        f"n = {n} calibration points are too few for {name}{_beside(settings)}; {cure} would fix it"
    )


def _too_far_a_shift(alpha: Fraction) -> str:
    return (
        f"the shift, or the label noise, may use up all of alpha = {shown(alpha)}; a smaller one, "
        "or a larger alpha, would fix it"
    )


def _beside(settings: Departures) -> str:
    """Return what else leaves fewer points or less of alpha."""
    parts = []
    if isinstance(settings.poisoned, tuple):
        parts.append("{1} {0}".format(*settings.poisoned))
    elif settings.lost:
        parts.append(f"{settings.lost} arbitrary points among them")
    if settings.drift is not None:
        parts.append(f"a shift that leaves the level {shown(settings.level)}")
    return f" and {' and '.join(parts)}" if parts else ""


def too_small_p(p: Fraction, m_test: int, better: Fraction | None = None) -> str:
    """Return the cause and the cure where another p than the one that was given is useful."""
    cure = "" if better is None else f"p = {float(better):.4g}, or "
    return (
        f"p = {float(p):g} allows no count of m' = {m_test} samples above 0; {cure}no `p`, for "
        "which one is chosen then, would fix it"
    )


def better_p(
    certificate: Certificate, n: int, m: int, m_test: int, rank: int, each: Fraction | None
) -> Fraction | None:
    """Return the default p of a correction by counts if that allows a count above 0."""
    t = default_success_rank(certificate, n, m, m_test, rank, each)
    return Fraction(t, m) if count_rule(certificate, t, m, m_test, each).min_count else None


# ---- parts -----------------------------------------------------------------------------------


def _too_few_points_given(n: int, settings: Departures, delta: Fraction) -> str:
    alpha = settings.level
    # All n points lie above the share alpha with probability (1 - alpha)^n.
    needed = math.ceil(minus_log(delta) / minus_log(1 - alpha))
    # Where alpha or delta is no double, enough points may still be too few.
    points = f"about {shown(needed)} calibration points, or " if needed > n else ""
    if settings.lost:
        points = "more calibration points, or "
    return (
        f"n = {n} calibration points are too few for alpha = {shown(settings.alpha)} and "
        f"delta = {shown(delta)}{_beside(settings)}; {points}a larger alpha or delta would fix it"
    )


def _no_finite_tau(rule: DecisionRule) -> str:
    settings = rule.settings
    if settings.tau is not None:
        return "tau = -inf accepts every score; a larger tau would fix it"
    cure = "finite scores" if settings.p is None else "finite scores or a smaller p"
    points = "too many" if rule.rank is None else f"at least {rule.rank}"
    return (
        f"{points} of the n = {rule.n_calibration} calibration points have scores of -inf at "
        f"alpha = {shown(settings.alpha)}; {cure} would fix it"
    )


def _too_low(rule: DecisionRule, certificate: Certificate) -> str:
    if rule.success_rank == 0:
        return (
            f"tau = {rule.tau!r} is out of reach for too many of the calibration points' "
            f"scores at alpha = {shown(rule.settings.alpha)}; a lower tau would fix it"
        )
    if (cause := _given_p(rule, certificate)) is not None:
        return cause
    if rule.settings.correction in ("mixture", "shared-draws"):
        return _too_weak(rule)
    return _too_few_samples(rule) or _too_far(rule)


def _given_p(rule: DecisionRule, certificate: Certificate) -> str | None:
    """Return the cause and the cure where the p that was given is the cause."""
    settings, n, m, m_test = rule.settings, rule.n_calibration, rule.n_samples, rule.n_test_samples
    assert m is not None
    assert m_test is not None
    if settings.p is None:
        return None
    free = replace(settings, p=None)
    if settings.correction == "shared-draws":
        _, t, k = choose_shared(settings.worst(certificate), free, n, m, m_test)
        return too_small_p(settings.p, m_test, Fraction(t, m)) if k else None
    if settings.correction == "mixture":
        setups = setups_of(certificate, free, n, m, m_test, rule.share)
        fixed = best_rule(setups, Price(early=False))
        return None if fixed.is_trivial else too_small_p(settings.p, m_test)
    each = bound_error(settings, n, rule.n_classes)
    worst = settings.worst(certificate)
    better = better_p(worst, n, m, m_test, rank_of(settings, n), each)
    return None if better is None else too_small_p(settings.p, m_test, better)


def _too_weak(rule: DecisionRule) -> str:
    """n, the samples and the radius act together, so none of them is blamed alone."""
    lower = " a lower tau," if rule.settings.tau is not None else ""
    return (
        f"no count of m' = {rule.n_test_samples} samples is safe to ask for with "
        f"n = {rule.n_calibration}, m = {rule.n_samples}, alpha = {shown(rule.settings.alpha)} "
        f"and this radius; a smaller radius, more noise, more samples,{lower} more calibration "
        "points or a larger alpha would fix it"
    )


def _too_few_samples(rule: DecisionRule) -> str | None:
    """Return the cause and the cure where a count of 0 would be accepted even without an attack."""
    p, m, m_test = rule.p_lower, rule.n_samples, rule.n_test_samples
    if p is None or m is None or m_test is None:
        return None
    level = eta_of_bound(rule.settings.eta, rule.settings.union, rule.n_calibration, rule.n_classes)
    if cp_upper(0, m_test, float_below(level)) < p:
        return None
    lower = "a lower tau" if rule.settings.tau is not None else "a larger eta"
    return (
        f"m = {m} samples for calibration and m' = {m_test} for prediction are too few for "
        f"eta = {float(rule.settings.eta):g}; more samples, or {lower}, would fix it"
    )


def _too_far(rule: DecisionRule) -> str:
    start = rule.p if rule.p_lower is None else rule.p_lower
    assert start is not None  # with losses another cause is given
    assert rule.certified_p is not None
    samples = "" if rule.n_samples is None else ", more samples"
    exact_or_fixed = not rule.is_sampled or rule.settings.tau is not None
    lower = ", a lower tau" if exact_or_fixed else ""
    return (
        f"the radius is too large: the certificate lowers p = {start:.4g} to "
        f"{rule.certified_p:.4g}; a smaller radius, more noise{samples}{lower} would fix it"
    )
