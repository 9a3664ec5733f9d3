"""Decision rules: what a calibration folds into the one integer k.

A label is accepted iff at least k of its m' scores reach tau. Each correction maps the success
rank t of the calibration (t of m scores reach tau) to k through the certificate, evaluated once.
"""

import math
from fractions import Fraction
from typing import NamedTuple

from bincp._core._binomial import cp_lower, cp_upper
from bincp._utils.bisection import first_integer
from bincp._utils.levels import float_below
from bincp.certificates import Certificate

CORRECTIONS = ("mixture", "clopper-pearson", "none")
UNIONS = ("paper", "ghost")


class Rule(NamedTuple):
    """The least count that is accepted, and the probabilities that it came from."""

    min_count: int
    p: float | None  # nominal: t / m, rounded down
    p_lower: float | None  # confidence bound on p, where the correction uses one
    certified_p: float | None  # the certified lower bound at p_lower or p


def eta_of_bound(eta: Fraction, union: str, n: int, n_classes: int | None) -> Fraction:
    """Return the error probability that each confidence bound may have."""
    if union == "ghost":
        return eta / 2
    assert n_classes is not None
    return eta / (n + n_classes)


def uncorrected_rule(certificate: Certificate, t: int, m: int, m_test: int) -> Rule:
    """Accept iff count / m' >= lower(t / m): asymptotic, no finite-sample guarantee."""
    p = float_below(Fraction(t, m))
    certified = min(certificate.lower(p), p)
    # In exact arithmetic: a count of exactly certified * m' is accepted, and none below it.
    return Rule(math.ceil(Fraction(certified) * m_test), p, None, certified)


def clopper_pearson_rule(
    certificate: Certificate, t: int, m: int, m_test: int, level: Fraction
) -> Rule:
    """Accept iff the upper bound of count / m' reaches lower(lower bound of t / m).

    Algorithms 1 and 2 of the paper with their Monte-Carlo correction; both bounds have the error
    probability ``level``.
    """
    eta = float_below(level)
    p_lower = cp_lower(t, m, eta)
    certified = min(certificate.lower(p_lower), p_lower)
    return Rule(
        _least_count(certified, m_test, eta), float_below(Fraction(t, m)), p_lower, certified
    )


def _least_count(target: float, m: int, eta: float) -> int:
    """Return the least count whose upper confidence bound reaches ``target``."""
    return first_integer(lambda s: cp_upper(s, m, eta) >= target, 0, m - 1)  # the bound at m is 1
