"""The reasons for sets that hold every label, and the cures."""

import math
from fractions import Fraction

from bincp._core._binomial import cp_upper
from bincp._utils.levels import conformal_rank, float_below
from bincp.calibration._clopper_pearson import eta_of_bound
from bincp.calibration._decision_rule import DecisionRule


def trivial_cause(rule: DecisionRule) -> str | None:
    """Return the cause and the cure where sets are trivial, else None."""
    if rule.rank == 0 and rule.settings.delta is not None:
        return _too_few_points_given(rule, rule.settings.delta)
    if rule.rank == 0:
        spent = rule.settings.eta if rule.p_lower is not None else Fraction(0)
        return too_few_points(rule.n_calibration, rule.settings.alpha, spent)
    if rule.rank is None and conformal_rank(rule.settings.alpha, rule.n_calibration) == 0:
        return too_few_points(rule.n_calibration, rule.settings.alpha)
    if rule.min_count is None:
        return _radius(rule) if rule.certified_p == 0 else None
    if rule.min_count == 0:
        return _too_low(rule)
    if rule.tau == -math.inf:
        return (
            f"{rule.rank} of the n = {rule.n_calibration} calibration points have a "
            f"score of -inf at alpha = {float(rule.settings.alpha):g}; finite scores or a smaller "
            "p would fix it"
        )
    return None


def too_few_points(n: int, alpha: Fraction, spent: Fraction = Fraction(0)) -> str:
    """Return the cause and the cure where the conformal rank is 0 at the level alpha - spent."""
    level = alpha - spent
    needed = math.ceil(1 / level) - 1
    name = f"alpha = {float(alpha):g}"
    cure = f"at least {needed} calibration points or a larger alpha"
    if spent:
        name = f"alpha - eta = {float(level):g}"
        if conformal_rank(alpha, n):
            cure = f"at least {needed} calibration points or a smaller eta"
    return f"n = {n} calibration points are too few for {name}; {cure} would fix it"


def _too_few_points_given(rule: DecisionRule, delta: Fraction) -> str:
    alpha = rule.settings.alpha
    needed = math.ceil(math.log(delta) / math.log1p(-alpha))
    return (
        f"n = {rule.n_calibration} calibration points are too few for "
        f"alpha = {float(alpha):g} and delta = {float(delta):g}; about {needed} calibration "
        "points, or a larger alpha or delta, would fix it"
    )


def _too_low(rule: DecisionRule) -> str:
    if rule.success_rank == 0:
        return (
            f"tau = {rule.tau!r} is out of reach for too many of the calibration points' "
            f"scores at alpha = {float(rule.settings.alpha):g}; a lower tau would fix it"
        )
    if rule.settings.correction == "mixture":
        m, m_test = rule.n_samples, rule.n_test_samples
        return too_weak(rule.n_calibration, m, m_test, rule.settings.alpha)
    return _too_few_samples(rule) or _radius(rule)


def too_weak(n: int, m: int | None, m_test: int | None, alpha: Fraction) -> str:
    """Return the cause and the cure where the mixture correction allows no count above 0.

    n, the samples and the radius act together, so none of them is blamed alone.
    """
    return (
        f"no count of m' = {m_test} samples is safe to ask for with n = {n}, m = {m}, "
        f"alpha = {float(alpha):g} and this radius; a smaller radius, more noise, more samples, "
        "more calibration points or a larger alpha would fix it"
    )


def _too_few_samples(rule: DecisionRule) -> str | None:
    """Return the cause and the cure where a count of 0 would be accepted even without an attack."""
    p, m, m_test = rule.p_lower, rule.n_samples, rule.n_test_samples
    if p is None or m is None or m_test is None:
        return None
    level = eta_of_bound(rule.settings.eta, rule.settings.union, rule.n_calibration, rule.n_classes)
    if cp_upper(0, m_test, float_below(level)) < p:
        return None
    return (
        f"m = {m} samples for calibration and m' = {m_test} for prediction are too few for "
        f"eta = {float(rule.settings.eta):g}; more samples, or a larger p or eta, would fix it"
    )


def _radius(rule: DecisionRule) -> str:
    start = rule.p if rule.p_lower is None else rule.p_lower
    assert start is not None  # with count weights another cause is given
    assert rule.certified_p is not None
    samples = "" if rule.n_samples is None else ", more samples"
    return (
        f"the radius is too large: the certificate lowers p = {start:.4g} to "
        f"{rule.certified_p:.4g}; a smaller radius, more noise, a larger p{samples} "
        "would fix it"
    )
