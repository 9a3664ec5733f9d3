"""What is logged of a calibration: the rule that it chose."""

from logging import Logger
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bincp.calibration._decision_rule import DecisionRule
    from bincp.calibration._risk_rule import RiskRule


def log_choice(log: Logger, rule: "DecisionRule | RiskRule", what: str = "") -> None:
    """Log a calibrated rule in one line."""
    if rule.min_count is None:  # of exact probabilities
        log.info("%sn = %d, tau = %.6g", what, rule.n_calibration, rule.tau)
        return
    log.info(
        "%sn = %d, m = %d, correction %s: k = %d of m' = %d scores must reach tau = %.6g%s",
        what,
        rule.n_calibration,
        rule.n_samples,
        rule.settings.correction,
        rule.min_count,
        rule.n_test_samples,
        rule.tau,
        "" if rule.boundaries is None else ", decided early",
    )
