"""A certificate made again from its description, where it is one that bincp knows by itself."""

import math
from collections.abc import Hashable, Sequence

import numpy as np

from bincp.calibration._class_rules import ClassRules
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._loss_proof import proves
from bincp.calibration._rank_proof import ranks_allow
from bincp.calibration._risk_fitting import risk_is_paid
from bincp.calibration._risk_rule import RiskRule
from bincp.calibration._sequential import SequentialRule
from bincp.certificates import Certificate, described

# Bounds may differ by rounding between versions and platforms.
_TOLERANCE = 1e-9


def certificate_of(rule: DecisionRule | ClassRules | RiskRule) -> Certificate | None:
    """Return the certificate that a rule was made with, None if it cannot be known.

    It is known where the description names a pair of classes of bincp with their parameters, or
    how it was made of such certificates, and the certificate that is made again has the same
    description and the same value at p.

    Raises
    ------
    ValueError
        If that certificate proves less than the rule took from it, or the losses or
        ranks of the mixture correction do not allow the test.
    """
    rules: Sequence[DecisionRule | RiskRule]
    rules = rule.made if isinstance(rule, ClassRules) else [rule]
    certificate = described(rules[0].certificate)
    if certificate is None:
        return None
    worst = rules[0].settings.worst(certificate)
    # Classes of equal size have equal losses: each pair is proven once.
    decisions = [one for one in rules if isinstance(one, DecisionRule)]
    paid = {(one.losses, one.tests) for one in decisions if one.losses is not None}
    for losses, test in paid:
        _check_losses(losses, test, worst)
    gives = [_gives(worst, one) for one in rules]  # each is checked, also after a no
    for one in {_ranks_of(one): one for one in decisions if _takes_ranks(one)}.values():
        _check_ranks(one, certificate)
    for risk in rules:
        if isinstance(risk, RiskRule) and risk.share is not None:
            _check_risk(risk, certificate)
    return certificate if all(gives) else None


def _gives(certificate: Certificate, rule: DecisionRule | RiskRule) -> bool:
    """Whether a certificate has the value that a rule took; a smaller one is refused."""
    if rule.certified_p is None or (rule.certified_p == 0 and rule.tau == -math.inf):
        return True  # no value was taken: losses do without, and every label was accepted
    start = rule.p if rule.p_lower is None else rule.p_lower
    assert start is not None
    certified = min(certificate.lower(start), start)
    if rule.certified_p > certified + _TOLERANCE:
        raise ValueError(
            f"`certified_p_` must be what {certificate!r} proves, {certified!r}, "
            f"got {rule.certified_p!r}"
        )
    return rule.certified_p >= certified - _TOLERANCE


def _check_losses(losses: tuple[int, ...], test: SequentialRule, certificate: Certificate) -> None:
    if not proves(np.array(losses), test, certificate):
        raise ValueError(
            "`losses_` must pay for the refusals of `min_count_` or `boundaries_` under "
            f"{certificate!r}, got losses that do not"
        )


def _check_risk(rule: RiskRule, certificate: Certificate) -> None:
    if not risk_is_paid(rule, certificate):
        test = "`min_count_`" if rule.boundaries is None else "`boundaries_`"
        raise ValueError(
            f"{test} must be what `share_` and `success_rank_` allow under {certificate!r} for "
            f"alpha, got k = {rule.min_count} with the share {rule.share} and "
            f"t = {rule.success_rank}, which do not keep the level"
        )


def _takes_ranks(rule: DecisionRule) -> bool:
    """Whether ranks must allow the test: with bounds on probabilities the count follows of them."""
    ranked = rule.settings.correction in ("mixture", "shared-draws")
    return rule.is_sampled and rule.losses is None and ranked


def _ranks_of(rule: DecisionRule) -> Hashable:
    """Return all that decides whether ranks allow the test, of rules with common settings."""
    size = rule.n_calibration if rule.share is None else rule.share
    return size, rule.success_rank, rule.rank, rule.min_count, rule.boundaries


def _check_ranks(rule: DecisionRule, certificate: Certificate) -> None:
    if not ranks_allow(rule, certificate):
        test = "`min_count_`" if rule.boundaries is None else "`boundaries_`"
        raise ValueError(
            f"{test} must be what `rank_` and `success_rank_` allow under {certificate!r} for "
            f"alpha and n, got k = {rule.min_count} with j = {rule.rank} and "
            f"t = {rule.success_rank}, which do not keep the coverage"
        )
