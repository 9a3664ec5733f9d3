"""Decision rules in files and in reports: of all labels, or one for each class."""

from decimal import ROUND_FLOOR
from pathlib import Path
from typing import Any

from bincp.calibration import BinCP, MondrianBinCP, RobustRiskControl
from bincp.calibration._class_rules import ClassRules
from bincp.calibration._codecs import POISON
from bincp.calibration._departures import Departures
from bincp.calibration._described import encode_shift
from bincp.calibration._risk_rule import RiskRule
from bincp.calibration._storage import read
from bincp.cli._report import rounded

_FITTED = (
    "tau",
    "min_count",
    "rank",
    "success_rank",
    "n_calibration",
    "p",
    "p_lower",
    "certified_p",
)

_LOSSES = "no single p: each point's count of scores that reach tau was weighed by a loss"


def load_rule(path: Path) -> BinCP | MondrianBinCP | RobustRiskControl:
    """Read a file of any kind."""
    rule, certificate = read(path)
    if isinstance(rule, ClassRules):
        return MondrianBinCP._with_rules(rule, certificate)
    if isinstance(rule, RiskRule):
        return RobustRiskControl._with_rule(rule, certificate)
    return BinCP._with_rule(rule, certificate)


def rule_data(rule: BinCP) -> dict[str, Any]:
    return {**_common_data(rule), **_fitted_data(rule)}


def class_rules_data(rules: MondrianBinCP) -> dict[str, Any]:
    """Return what all classes share, and what each has of its own: null where it has no points."""
    classes = [None if rule is None else _fitted_data(rule) for rule in rules.rules_]
    return {**_common_data(rules), "classes": classes}


def _common_data(rule: BinCP | MondrianBinCP) -> dict[str, Any]:
    return {
        "certificate": rule.certificate_description,
        "alpha": str(rule.alpha),
        "correction": rule.correction,
        "union": rule.union if rule.correction == "clopper-pearson" else None,
        "guarantee": "marginal" if rule.delta is None else "training-conditional",
        "delta": None if rule.delta is None else str(rule.delta),
        "eta": str(rule.eta) if rule.correction == "clopper-pearson" else None,
        "passes": None if rule.passes is None else str(rule.passes),
        **departures_data(rule._settings),
        "stops_early": rule.boundaries_ is not None,
        "n_samples": rule.n_samples_,
        "n_test_samples": rule.n_test_samples_,
        "n_classes": rule.n_classes_,
        "dtype": rule.dtype_,
    }


def departures_data(settings: Departures) -> dict[str, Any]:
    """Return how calibration points may differ from test points."""
    noise = settings.label_noise
    return {
        "poisoned": POISON.encode(settings.poisoned),
        "label_noise": noise and {"kind": noise[0], "size": str(noise[1])},
        "shift": settings.shift and encode_shift(settings.shift),
        "attacked_calibration": settings.attacked_calibration,
    }


def _fitted_data(rule: BinCP) -> dict[str, Any]:
    return {name: getattr(rule, f"{name}_") for name in _FITTED}


def rule_text(rule: BinCP) -> str:
    chain = []
    if rule.p_ is not None:
        chain.append(f"p = {rule.p_:g}")
    if rule.p_lower_ is not None:
        chain.append(f"confidence bound {rounded(rule.p_lower_, ROUND_FLOOR, 4)}")
    if rule.certified_p_ is not None:
        chain.append(f"certified {rounded(rule.certified_p_, ROUND_FLOOR, 4)}")
    return (
        f"calibrated on n = {rule.n_calibration_} points with m = {rule.n_samples_} scores each, "
        f"{rule.dtype_}\n"
        f"{_test_text(rule, f'k = {rule.min_count_}', f'tau = {rule.tau_!r}')}\n"
        f"({', '.join(chain) or _LOSSES})"
    )


def class_rules_text(rules: MondrianBinCP) -> str:
    """Return the ranges of what the classes have of their own."""
    least, threshold = _range(rules.min_count_), _range(rules.tau_)
    return (
        f"calibrated {rules.n_classes} classes on {_range(rules.n_calibration_)} points each with "
        f"m = {rules.n_samples_} scores, {rules.dtype_}\n"
        f"{_test_text(rules, f'k = {least}', f'tau = {threshold}')}"
    )


def _test_text(rule: BinCP | MondrianBinCP, least: str, threshold: str) -> str:
    if rule.boundaries_ is None:
        return (
            f"a label is in the set iff at least {least} of its m' = "
            f"{rule.n_test_samples_} scores reach {threshold}"
        )
    return (
        "draw by draw, a label is in the set once enough of its scores reach "
        f"{threshold}, {least} after m' = {rule.n_test_samples_} at most"
    )


def _range(values: Any) -> str:
    low, high = values.min().item(), values.max().item()
    return repr(low) if low == high else f"{low!r} to {high!r}"
