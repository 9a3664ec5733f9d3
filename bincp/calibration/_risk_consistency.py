"""Contradictions between the fields of a rule of risk control."""

import math
from fractions import Fraction

from bincp._utils.levels import success_rank
from bincp._utils.validation import MAX_COUNT
from bincp.calibration._consistency import (
    ALL_OR_NONE,
    Checks,
    boundaries_of,
    certified_count,
    certified_share,
    first_complaint,
    sample_sizes,
    tau_of_dtype,
)
from bincp.calibration._risk_rule import CORRECTIONS, LOSSES, RiskRule


def contradiction(rule: RiskRule) -> str | None:
    """Return the first contradiction between the fields, None if they agree."""
    return first_complaint(_checks(rule))


def _checks(rule: RiskRule) -> Checks:
    settings = rule.settings
    yield "`correction` is not one that is known", settings.correction in CORRECTIONS
    yield "`loss` is not one that is known", settings.loss in (*LOSSES, None)
    bounded = settings.correction == "clopper-pearson"
    yield "`eta` must be below alpha", not bounded or settings.eta < settings.alpha
    yield (
        "`additive` belongs to a loss that is a function",
        not (settings.additive and settings.loss),
    )
    mixture = settings.correction == "mixture"
    budget = isinstance(settings.passes, Fraction)
    yield "`passes` has no proof with these settings", not budget or mixture
    yield "`attacked_calibration` has no proof for losses", not settings.attacked_calibration
    yield "`n_calibration_` must be in [1, 2**31)", 1 <= rule.n_calibration <= MAX_COUNT
    yield "`n_classes_` must be in [1, 2**31)", 1 <= rule.n_classes <= MAX_COUNT
    sampled = (rule.success_rank, rule.n_samples, rule.n_test_samples, rule.dtype)
    if rule.is_sampled:
        yield ALL_OR_NONE, None not in sampled
        yield from _sampled(rule)
    else:
        yield ALL_OR_NONE, (*sampled, rule.p_lower, rule.share, rule.boundaries) == (None,) * 7
        yield from _exact(rule)


def _exact(rule: RiskRule) -> Checks:
    yield "probabilities must be in order", 0 <= rule.certified_p <= rule.p <= 1
    yield from _total_loss(rule, rule.settings.level)
    yield "`p_` must be 0 without `total_loss_`", rule.total_loss is not None or rule.p == 0


def _total_loss(rule: RiskRule, level: Fraction) -> Checks:
    total, settings = rule.total_loss, rule.settings
    size = settings.clean_size(rule.n_calibration)
    yield (
        "`total_loss_` must be within the budget of alpha and n",
        total is None or total + settings.lost + 1 <= level * (size + 1),
    )


def _sampled(rule: RiskRule) -> Checks:
    settings, t = rule.settings, rule.success_rank
    assert t is not None
    assert rule.n_samples is not None
    yield from sample_sizes(rule)
    yield from tau_of_dtype(rule)
    yield "`success_rank_` must be at least 1", t >= 1
    if settings.p is not None:
        expected = success_rank(settings.p, rule.n_samples)
        yield "`success_rank_` must be that of p and m", t == expected
    level = settings.bound_error(rule.n_classes)
    mixture, share = settings.correction == "mixture", rule.share
    yield "`share_` belongs to the mixture correction", mixture == (share is not None)
    yield (
        "`share_` must be no more than alpha leaves",
        share is None or 0 <= share <= settings.sampled_alpha,
    )
    yield from certified_share(rule, level)
    yield from _total_loss(rule, settings.sampled_alpha if share is None else share)
    yield from boundaries_of(rule, settings.of_ranks.stops_early)
    found = rule.total_loss is not None or rule.tau == -math.inf
    yield "`tau_` must be -inf without `total_loss_`", found
    if rule.tau == -math.inf:
        nothing = (rule.min_count, rule.certified_p) == (0, 0)
        yield "tau = -inf accepts every label, with k = 0 and nothing certified", nothing
    elif not mixture:
        k = certified_count(rule, level)
        yield "`min_count_` must be that of `certified_p_`", rule.min_count == k
