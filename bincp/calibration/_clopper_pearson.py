"""The least count k of the corrections that map one probability through the certificate.

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

CORRECTIONS = ("mixture", "shared-draws", "clopper-pearson", "none")
UNIONS = ("per-bound", "two-bounds")
"""How eta is split: over all n + K bounds, or over the two that matter for coverage."""

UNION_ALIASES = {"paper": "per-bound", "ghost": "two-bounds"}
"""Older names."""


class CountRule(NamedTuple):
    """The least count that is accepted, and the probabilities that it came from."""

    min_count: int
    p: float | None  # nominal: t / m, rounded down
    p_lower: float | None  # confidence bound on p, where the correction uses one
    certified_p: float | None  # the certified lower bound at p_lower or p


def as_union(union: str) -> str:
    """Return the name of a union in `UNIONS`; older names are translated."""
    name = UNION_ALIASES.get(union, union) if isinstance(union, str) else None
    if name not in UNIONS:
        raise ValueError(f"`union` must be one of {UNIONS}, got {union!r}")
    return name


def eta_of_bound(eta: Fraction, union: str, n: int, n_classes: int | None) -> Fraction:
    """Return the error probability that each confidence bound may have."""
    if union == "two-bounds":
        return eta / 2
    assert n_classes is not None
    return eta / (n + n_classes)


def uncorrected_rule(certificate: Certificate, t: int, m: int, m_test: int) -> CountRule:
    """Accept iff count / m' >= lower(t / m): asymptotic, no finite-sample guarantee."""
    p = float_below(Fraction(t, m))
    certified = min(certificate.lower(p), p)
    return CountRule(uncorrected_count(certified, m_test), p, None, certified)


def uncorrected_count(target: float, m: int) -> int:
    """Return the least count s with s / m >= ``target``, in exact arithmetic."""
    return math.ceil(Fraction(target) * m)


def clopper_pearson_rule(
    certificate: Certificate, t: int, m: int, m_test: int, level: Fraction
) -> CountRule:
    """Accept iff the upper bound of count / m' reaches lower(lower bound of t / m).

    Algorithms 1 and 2 of the paper with their Monte-Carlo correction; both bounds have the error
    probability ``level``.
    """
    eta = float_below(level)
    p_lower = cp_lower(t, m, eta)
    certified = min(certificate.lower(p_lower), p_lower)
    return CountRule(
        bounded_count(certified, m_test, eta), float_below(Fraction(t, m)), p_lower, certified
    )


def bounded_count(target: float, m: int, eta: float) -> int:
    """Return the least count whose upper confidence bound reaches ``target``."""
    return first_integer(lambda s: cp_upper(s, m, eta) >= target, 0, m - 1)  # the bound at m is 1
