"""A rule for calibration sets whose size an adversary may choose: k and t depend on no n.

Where labels are poisoned, points leave a class and others enter it, and how many of them a class
has is the choice of the adversary, made after it saw the data. If the rule depended on the size, it
would choose among rules. So one share of failures is taken in advance, with one t and one test, and
the rank of tau is what the share allows for the points seen, less the poisoned ones.

With at most b points lost and at most b gained, no such rank is above that of the clean points by
more than those that are left of them below tau. Where points only come or only go, the ranks are
larger, see `Departures`.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from bincp._utils.levels import nominal_size
from bincp.calibration._decision_rule import Settings
from bincp.calibration._mixture import Setup, setups_of
from bincp.calibration._search import Price, Rule, choose_rule, price_of
from bincp.certificates import Certificate


@dataclass(frozen=True)
class Common:
    """What the rules of all sizes share; ``chosen`` is None where no search was needed."""

    share: Fraction
    chosen: Rule | None = None


def common_if_resized(
    certificate: Certificate, settings: Settings, m: int, m_test: int
) -> Common | None:
    """Return the rule of all sizes where the adversary chooses the size, else None."""
    return common_rule(certificate, settings, m, m_test) if settings.resizes else None


def common_rule(certificate: Certificate, settings: Settings, m: int, m_test: int) -> Common:
    """Return the share of failures, and the test and the t that it allows for any n."""
    share = settings.sampled_level
    if settings.correction != "mixture" or settings.tau is not None:
        return Common(share)
    size = nominal_size(share)
    price = price_of(settings)
    setups = setups_of(certificate, settings, size, m, m_test)
    chosen = min((_for_any_size(s, size, price) for s in setups), key=lambda rule: rule.cost(price))
    assert chosen.rank is not None
    return Common(Fraction(chosen.rank, size + 1), chosen)


def _for_any_size(setup: Setup, size: int, price: Price) -> Rule:
    """Return the rule of a large set without poison; its share of failures is for all sizes."""
    clean = replace(setup, n=size, poisoned=0, delta=None, ranks_only=True)
    return choose_rule(clean, price)
