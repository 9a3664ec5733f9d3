"""What scores were made with, as far as it is known: it goes into the rule and its file."""

from collections.abc import Mapping
from typing import Any

COMPARED = (
    "score",
    "normalization",
    "model",
    "precision",
    "input_shape",
    "input_range",
    "graph",
    "noise_version",
)
"""What must be the same in calibration and prediction where both are known."""

KEPT = (*COMPARED, "input_dtype")
"""What a rule keeps of its scores."""


def check_same(known: Mapping[str, Any] | None, found: Mapping[str, Any] | None, who: str) -> None:
    """Refuse scores that were made with other things than those of the calibration, by name.

    What one side does not know, None or a missing name, is not compared.
    """
    other = [
        f"`{name}` was {known[name]!r}, got {found[name]!r}"
        for name in COMPARED
        if known and found and _differ(known.get(name), found.get(name))
    ]
    if other:
        raise ValueError(f"{who} must be as in calibration: {'; '.join(other)}")


def _differ(one: Any, two: Any) -> bool:
    if one is None or two is None:
        return False
    if isinstance(one, dict) and isinstance(two, dict) and "fingerprint" in one:
        return any(_differ(one.get(name), two.get(name)) for name in ("fingerprint", "id"))
    return bool(one != two)
