"""Contradictions between the fields of a decision rule, which no calibration could have left."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from bincp._core._binomial import cp_lower
from bincp._utils.arrays import round_to
from bincp._utils.levels import float_below, success_rank
from bincp._utils.validation import MAX_COUNT
from bincp.calibration._class_rules import ClassRules
from bincp.calibration._clopper_pearson import (
    CORRECTIONS,
    UNIONS,
    bounded_count,
    eta_of_bound,
    uncorrected_count,
)
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._losses import accept_all, complaint
from bincp.calibration._mixture import top_rank
from bincp.calibration._risk_rule import RiskRule

Checks = Iterator[tuple[str, bool]]
"""Pairs of a complaint and whether the rule is free of it. Later ones rely on earlier ones."""

Counted: TypeAlias = DecisionRule | RiskRule

ALL_OR_NONE = "the fields of sampled scores must be all given or all null"


def contradiction(rule: DecisionRule | ClassRules) -> str | None:
    """Return the first contradiction between the fields, None if they agree."""
    if isinstance(rule, ClassRules):
        return _contradiction_of_a_class(rule)
    if (rule.share is not None) != (rule.settings.resizes and rule.is_sampled):
        return "`share_` belongs to rules of points that may have come or gone"
    return first_complaint(_checks(rule))


def first_complaint(checks: Checks) -> str | None:
    """Return the first complaint that a rule is not free of."""
    return next((complaint for complaint, agrees in checks if not agrees), None)


def _contradiction_of_a_class(rules: ClassRules) -> str | None:
    if not rules.made:
        return "`classes` must hold the rule of a class with calibration points"
    for label, rule in enumerate(rules.rules):
        if rule is not None and (found := first_complaint(_checks(rule))) is not None:
            return f"class {label}: {found}"
    if not rules.made[0].is_sampled:
        return "`classes` must be calibrated on sampled scores"
    return _contradiction_of_common_rules(rules)


def _contradiction_of_common_rules(rules: ClassRules) -> str | None:
    """Where labels may be poisoned, the test of a class must not depend on its size."""
    settings = rules.made[0].settings
    if not (settings.lost or settings.resizes):
        sizes = any(rule.share is not None for rule in rules.made)
        return "`share_` belongs to rules with poisoned points" if sizes else None
    if len({rule.share for rule in rules.made}) > 1 or rules.made[0].share is None:
        return "`share_` must be given, and the same for all classes, with poisoned points"
    useful = [rule for rule in rules.made if rule.rank]
    fixed = settings.tau is not None
    tests = {(None if fixed else rule.success_rank, rule.tests) for rule in useful}
    if len(tests) > 1 and not fixed:
        return "`min_count_` and `success_rank_` must be the same for all classes with poison"
    return None


def _checks(rule: DecisionRule) -> Checks:
    yield from _settings(rule)
    yield "`n_calibration_` must be in [1, 2**31)", 1 <= rule.n_calibration <= MAX_COUNT
    sampled = (rule.min_count, rule.n_samples, rule.n_test_samples, rule.dtype)
    if not rule.is_sampled:
        rest = (
            *sampled,
            rule.success_rank,
            rule.n_classes,
            rule.p_lower,
            rule.losses,
            rule.boundaries,
        )
        yield ALL_OR_NONE, rest == (None,) * len(rest)
        yield from _exact(rule)
        return
    yield ALL_OR_NONE, None not in sampled
    yield from _sizes(rule)
    yield from _tau(rule)
    yield from boundaries_of(rule, rule.settings.stops_early)
    ranked = (rule.rank, rule.success_rank, rule.p, rule.certified_p)
    if rule.losses is not None:
        yield "a rule has losses or ranks", ranked == (None,) * 4
        yield from _losses(rule)
        return
    yield "a rank or a probability is missing", None not in ranked
    yield from _ranks(rule)
    yield from _probabilities(rule)


def _settings(rule: DecisionRule) -> Checks:
    settings = rule.settings
    yield "`correction` is not one that is known", settings.correction in CORRECTIONS
    yield "`union` is not one that is known", settings.union in UNIONS
    yield "at most one of `p` and `tau` may be given", settings.p is None or settings.tau is None
    bounded = settings.correction == "clopper-pearson"
    yield "`eta` must be below alpha", not bounded or settings.eta < settings.alpha
    yield (
        "`share_` must be in [0, 1) and no more than alpha leaves",
        rule.share is None or 0 <= rule.share <= settings.sampled_level,
    )
    mixture = settings.correction == "mixture"
    yield "`delta` belongs to the mixture correction", settings.delta is None or mixture
    shared = settings.correction == "shared-draws"
    yield "shared draws have no proof with these", not (shared and settings.unproven_if_shared)
    per_bound = settings.resizes and settings.spends_on_classes
    yield '`union` must be "two-bounds" where points may have come or gone', not per_bound
    budget = isinstance(settings.passes, Fraction)
    yield "`passes` has no proof with these settings", not budget or settings.stops_early


def _exact(rule: DecisionRule) -> Checks:
    settings = rule.settings
    yield "`p` must not be given with exact probabilities", settings.p is None
    yield "`tau_` must be the `tau` that was fixed", settings.tau in (None, rule.tau)
    yield "a rank or a probability is missing", None not in (rule.rank, rule.p, rule.certified_p)
    top = _top_rank(rule)
    yield "`rank_` must be that of alpha and n", rule.rank == top
    assert rule.p is not None
    assert rule.certified_p is not None
    yield "probabilities must be in order", 0 <= rule.certified_p <= rule.p <= 1
    yield "rank 0 accepts every label", rule.rank != 0 or rule.p == 0


def _top_rank(rule: DecisionRule) -> int:
    settings = rule.settings
    size = settings.clean_size(rule.n_calibration)
    return top_rank(size, rule.level, settings.delta, settings.lost)


def _sizes(rule: DecisionRule) -> Checks:
    yield from sample_sizes(rule)
    classes = rule.n_classes
    yield "`n_classes_` must be at least 1", classes is None or classes >= 1
    needed = rule.settings.spends_on_classes
    yield "`n_classes_` is missing", not needed or classes is not None


def sample_sizes(rule: Counted) -> Checks:
    """Check m, m' and the counts of so many samples."""
    m, m_test, k = rule.n_samples, rule.n_test_samples, rule.min_count
    assert m is not None
    assert m_test is not None
    assert k is not None
    yield "m and m' must be in [1, 2**31)", all(1 <= s <= MAX_COUNT for s in (m, m_test))
    yield "`min_count_` must be in [0, m']", k <= m_test
    yield "`success_rank_` must be in [0, m]", (rule.success_rank or 0) <= m


def tau_of_dtype(rule: Counted) -> Checks:
    """Check tau, which is a score or was rounded to one."""
    assert rule.dtype is not None
    yield (
        "`tau_` must be a value of the dtype in `dtype_`",
        float(round_to(rule.dtype, rule.tau)) == rule.tau,
    )


def _tau(rule: DecisionRule) -> Checks:
    yield from tau_of_dtype(rule)
    fixed = rule.settings.tau
    assert rule.dtype is not None
    yield (
        "`tau_` must be the `tau` that was fixed",
        fixed is None or rule.rank == 0 or rule.tau == float(round_to(rule.dtype, fixed)),
    )


def boundaries_of(rule: Counted, stops_early: bool) -> Checks:
    """Check the boundaries, which a rule has where it stops early."""
    boundaries = rule.boundaries
    needed = stops_early and rule.min_count != 0 and rule.n_test_samples != 1
    yield "`boundaries_` belong to a rule that stops early", needed or boundaries is None
    yield "`boundaries_` are missing", not needed or boundaries is not None
    if boundaries is not None:
        yield (
            "`boundaries_` must end after m' draws",
            boundaries.n_test_samples == rule.n_test_samples,
        )
        yield (
            "`min_count_` must be that of `boundaries_`",
            boundaries.min_count == rule.min_count,
        )


def _losses(rule: DecisionRule) -> Checks:
    settings = rule.settings
    assert rule.n_samples is not None
    assert rule.losses is not None
    free = (settings.p, settings.tau, settings.delta, rule.p_lower, rule.share) == (None,) * 5
    yield (
        "losses need the mixture correction, and nothing fixed",
        (free and settings.correction == "mixture"),
    )
    wrong = complaint(rule.losses, rule.n_samples)
    yield f"`losses_`: {wrong}", wrong is None
    yield "k is 0 exactly where tau is -inf", (rule.min_count == 0) == (rule.tau == -math.inf)
    losses = np.array(rule.losses)
    n, lost = rule.n_calibration, settings.lost
    yield (
        "`losses_` cost too much at any threshold",
        rule.min_count == 0 or not accept_all(losses, n, settings.proof_level, lost),
    )


def _ranks(rule: DecisionRule) -> Checks:
    settings, t = rule.settings, rule.success_rank
    assert rule.rank is not None
    assert rule.n_samples is not None
    searched = settings.correction in ("mixture", "shared-draws")
    top = _top_rank(rule)
    # Then it may be any up to the top.
    shared = settings.correction == "shared-draws"
    chosen = shared or (searched and settings.tau is None and rule.share is None)
    low = min(1, top) if chosen else top
    yield "`rank_` must be that of alpha and n", low <= rule.rank <= top
    yield (
        "rank 0 accepts every label",
        rule.rank > 0 or (rule.min_count, rule.tau) == (0, -math.inf),
    )
    if settings.p is not None:
        expected = success_rank(settings.p, rule.n_samples)
        yield "`success_rank_` must be that of p and m", t == expected
    if settings.tau is None:
        yield "`success_rank_` must be at least 1", t != 0
    free = settings.tau is not None and rule.rank == 0
    yield "`success_rank_` must be 0 for rank 0", not free or t == 0


def _probabilities(rule: DecisionRule) -> Checks:
    settings = rule.settings
    level = None
    if settings.correction == "clopper-pearson":
        level = eta_of_bound(settings.eta, settings.union, rule.n_calibration, rule.n_classes)
    yield from certified_share(rule, level)
    k: int | None = None
    if settings.correction not in ("mixture", "shared-draws"):
        k = certified_count(rule, level)
    elif rule.success_rank == 0:
        k = 0
    yield (
        "`min_count_` must be that of `certified_p_`",
        rule.rank == 0 or k in (None, rule.min_count),
    )


def certified_share(rule: Counted, level: Fraction | None) -> Checks:
    """Check the chain from t / m to what is certified; the level is that of a confidence bound."""
    t, m = rule.success_rank, rule.n_samples
    assert t is not None
    assert m is not None
    assert rule.p is not None
    assert rule.certified_p is not None
    yield "`p_` must be t / m", rule.p == float_below(Fraction(t, m))
    bounded = level is not None
    yield "`p_lower_` belongs to clopper-pearson alone", bounded == (rule.p_lower is not None)
    start = rule.p if rule.p_lower is None else rule.p_lower
    yield "probabilities must be in order", 0 <= rule.certified_p <= start <= rule.p <= 1
    if level is not None:
        yield (
            "`p_lower_` must be the confidence bound of t and m",
            math.isclose(start, cp_lower(t, m, float_below(level)), rel_tol=1e-12),
        )


def certified_count(rule: Counted, level: Fraction | None) -> int:
    """Return the least count that may be accepted for what is certified."""
    assert rule.n_test_samples is not None
    assert rule.certified_p is not None
    if level is None:
        return uncorrected_count(rule.certified_p, rule.n_test_samples)
    return bounded_count(rule.certified_p, rule.n_test_samples, float_below(level))
