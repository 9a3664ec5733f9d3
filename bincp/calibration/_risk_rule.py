"""The rule that risk control calibrates, and everything that it was made from."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

CORRECTIONS = ("clopper-pearson", "none")
FALSE_NEGATIVE_RATE = "false-negative-rate"


@dataclass(frozen=True)
class RiskRule:
    """A label is in the set iff at least k of its m' scores reach tau.

    A rule of exact probabilities accepts a label iff its probability is at least ``certified_p``;
    its ``min_count`` and all that belongs to samples are None. The first five fields are the
    settings of the calibration; ``loss`` is None for a function. The others are those of
    `bincp.RobustRiskControl` without the underscore at the end.
    """

    alpha: Fraction
    p: Fraction | None
    loss: str | None
    correction: str
    eta: Fraction
    tau: float
    certified_p: float
    n_calibration: int
    n_classes: int
    min_count: int | None = None
    success_rank: int | None = None
    n_samples: int | None = None
    n_test_samples: int | None = None
    dtype: str | None = None
    certificate: dict[str, Any] = field(default_factory=dict, hash=False)
    """Description, by `Certificate.describe`, of the certificate that the rule was made with."""

    @property
    def is_sampled(self) -> bool:
        """Whether the rule decides by counts, not by exact probabilities."""
        return self.min_count is not None

    @property
    def guarantee(self) -> str:
        """The guarantee: "robust" (under attack), or "none" for samples without a correction."""
        return "none" if self.is_sampled and self.correction == "none" else "robust"

    @property
    def accepts_all(self) -> bool:
        """Whether every label is in every set."""
        least = self.certified_p if self.min_count is None else self.min_count
        return least == 0 or self.tau == float("-inf")
