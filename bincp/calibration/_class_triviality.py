"""The classes whose label is in every set: how many they are, the causes and the cures."""

from bincp._utils.bisection import first_integer
from bincp.calibration._class_rules import ClassRules
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._mixture import setups_of, top_rank
from bincp.calibration._search import best_rule, price_of
from bincp.calibration._triviality import too_few_points, trivial_cause
from bincp.certificates import Certificate

_MOST_POINTS = 2**17
"""A class that needs more points than this is told another cure."""

_OTHER_CURES = "a smaller radius, more noise, more samples or a larger alpha"


def trivial_classes(rules: ClassRules, certificate: Certificate) -> str | None:
    """Return how many classes have their label in every set, and why; None if there are none."""
    always = [y for y, rule in enumerate(rules.rules) if rule is None or rule.accepts_all]
    if not always:
        return None
    short = [y for y in always if _lacks_points(rules.rules[y])]
    others = [y for y in always if not _lacks_points(rules.rules[y])]
    causes = []
    if short:
        who = "they have" if not others else f"{len(short)} of them have"
        who = f"class {short[0]} has" if len(short) == 1 else who
        causes.append(_too_few_points(rules, certificate, short, who))
    if others:
        first = rules.rules[others[0]]
        assert first is not None
        like = f", as are {len(others) - 1} more of them" if len(others) > 1 else ""
        causes.append(f"class {others[0]} is{like}, for {trivial_cause(first, certificate)}")
    verb = "is" if len(always) == 1 else "are"
    return (
        f"{len(always)} of {rules.n_classes} classes {verb} in every prediction set: "
        f"{'; '.join(causes)}"
    )


def _lacks_points(rule: DecisionRule | None) -> bool:
    """Whether no rule was found for so few points, whatever the scores are."""
    if rule is None or rule.rank == 0:
        return True
    settings = rule.settings
    chosen = settings.correction == "mixture" and settings.tau is None
    return chosen and rule.min_count == 0 and rule.losses is None


def _too_few_points(rules: ClassRules, certificate: Certificate, short: list[int], who: str) -> str:
    if rules.made[0].level == 0:
        made = rules.made[0]
        return too_few_points(made.n_calibration, made.settings, made.settings.spent)
    sizes = sorted(int(rules.n_calibration[y]) for y in short)
    have = str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    points = _least_points(rules, certificate, sizes[-1])
    if points is None:
        return f"{who} {have} calibration points; {_OTHER_CURES} would do, more points would not"
    by_rank = _rank(rules.made[0], points - 1) == 0
    cure = "or a larger alpha," if by_rank else _OTHER_CURES
    return f"{who} {have} calibration points; {points} points, {cure} would do"


def _least_points(rules: ClassRules, certificate: Certificate, too_few: int) -> int | None:
    """Return the least size of a class that is not in every set, None if that is out of reach.

    ``too_few`` points do not suffice. The sizes that do have no gap: ranks that are valid for n
    points are valid for more.
    """
    settings, share = rules.made[0].settings, rules.made[0].share
    m, m_test = rules.n_samples, rules.n_test_samples
    assert m is not None
    assert m_test is not None

    def suffice(n: int) -> bool:
        if _rank(rules.made[0], n) == 0:
            return False
        if settings.correction != "mixture" or settings.tau is not None or share is not None:
            return True
        setups = setups_of(certificate, settings, n, m, m_test)
        return not best_rule(setups, price_of(settings)).is_trivial

    low, high = too_few, too_few + 1
    while not suffice(high):
        if high >= _MOST_POINTS:
            return None
        low, high = high, 2 * high
    return first_integer(suffice, low + 1, high)


def _rank(rule: DecisionRule, n: int) -> int:
    """Return the conformal rank of n points, for the settings of a rule."""
    settings = rule.settings
    return top_rank(settings.clean_size(n), rule.level, settings.delta, settings.lost)
