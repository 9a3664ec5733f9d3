"""Why every label ends up in every prediction set, and what would change that."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from bincp._core._binomial import cp_upper
from bincp._utils.levels import conformal_rank, float_below
from bincp.calibration._clopper_pearson import eta_of_bound

if TYPE_CHECKING:
    from bincp.calibration._bincp import BinCP


def trivial_cause(calibrated: "BinCP") -> str | None:
    """Return the cause and the cure where sets are trivial, else None."""
    if calibrated.rank_ == 0 and calibrated.delta is not None:
        return _too_few_points_given(calibrated, calibrated.delta)
    if calibrated.rank_ == 0:
        spent = calibrated.eta if calibrated.p_lower_ is not None else Fraction(0)
        return too_few_points(calibrated.n_calibration_, calibrated.alpha, spent)
    if (
        calibrated.rank_ is None
        and conformal_rank(calibrated.alpha, calibrated.n_calibration_) == 0
    ):
        return too_few_points(calibrated.n_calibration_, calibrated.alpha)
    if calibrated.min_count_ is None:
        return _radius(calibrated) if calibrated.certified_p_ == 0 else None
    if calibrated.min_count_ == 0:
        return _too_low(calibrated)
    if calibrated.tau_ == -math.inf:
        return (
            f"{calibrated.rank_} of the n = {calibrated.n_calibration_} calibration points have a "
            f"score of -inf at alpha = {float(calibrated.alpha):g}; finite scores or a smaller p "
            "would fix it"
        )
    return None


def too_few_points(n: int, alpha: Fraction, spent: Fraction = Fraction(0)) -> str:
    """Say so where the conformal rank is 0 at the level alpha - spent."""
    level = alpha - spent
    needed = math.ceil(1 / level) - 1
    name = f"alpha = {float(alpha):g}"
    cure = f"at least {needed} calibration points or a larger alpha"
    if spent:
        name = f"alpha - eta = {float(level):g}"
        if conformal_rank(alpha, n):
            cure = f"at least {needed} calibration points or a smaller eta"
    return f"n = {n} calibration points are too few for {name}; {cure} would fix it"


def _too_few_points_given(calibrated: "BinCP", delta: Fraction) -> str:
    alpha = calibrated.alpha
    needed = math.ceil(math.log(delta) / math.log1p(-alpha))
    return (
        f"n = {calibrated.n_calibration_} calibration points are too few for "
        f"alpha = {float(alpha):g} and delta = {float(delta):g}; about {needed} calibration "
        "points, or a larger alpha or delta, would fix it"
    )


def _too_low(calibrated: "BinCP") -> str:
    if calibrated.success_rank_ == 0:
        return (
            f"tau = {calibrated.tau_!r} is out of reach for too many of the calibration points' "
            f"scores at alpha = {float(calibrated.alpha):g}; a lower tau would fix it"
        )
    if calibrated.correction == "mixture":
        m, m_test = calibrated.n_samples_, calibrated.n_test_samples_
        return too_weak(calibrated.n_calibration_, m, m_test, calibrated.alpha)
    return _too_few_samples(calibrated) or _radius(calibrated)


def too_weak(n: int, m: int | None, m_test: int | None, alpha: Fraction) -> str:
    """Say what the mixture correction could not do: n, the samples and the radius act together."""
    return (
        f"no count of m' = {m_test} samples is safe to ask for with n = {n}, m = {m}, "
        f"alpha = {float(alpha):g} and this radius; a smaller radius, more noise, more samples, "
        "more calibration points or a larger alpha would fix it"
    )


def _too_few_samples(calibrated: "BinCP") -> str | None:
    """Blame the samples where even without an attack a count of 0 would be accepted."""
    p, m, m_test = calibrated.p_lower_, calibrated.n_samples_, calibrated.n_test_samples_
    if p is None or m is None or m_test is None:
        return None
    level = eta_of_bound(
        calibrated.eta, calibrated.union, calibrated.n_calibration_, calibrated.n_classes_
    )
    if cp_upper(0, m_test, float_below(level)) < p:
        return None
    return (
        f"m = {m} samples for calibration and m' = {m_test} for prediction are too few for "
        f"eta = {float(calibrated.eta):g}; more samples, or a larger p or eta, would fix it"
    )


def _radius(calibrated: "BinCP") -> str:
    start = calibrated.p_ if calibrated.p_lower_ is None else calibrated.p_lower_
    assert start is not None  # with count weights another cause is given
    assert calibrated.certified_p_ is not None
    samples = "" if calibrated.n_samples_ is None else ", more samples"
    return (
        f"the radius is too large: the certificate lowers p = {start:.4g} to "
        f"{calibrated.certified_p_:.4g}; a smaller radius, more noise, a larger p{samples} "
        "would fix it"
    )
