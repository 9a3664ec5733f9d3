"""The rule that risk control calibrates, and everything that it was made from."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from bincp.calibration._departures import Departures
from bincp.calibration._sequential import SequentialRule

CORRECTIONS = ("clopper-pearson", "none")
FALSE_NEGATIVE_RATE = "false-negative-rate"


@dataclass(frozen=True)
class RiskSettings(Departures):
    """The checked options of `bincp.RobustRiskControl`; ``loss`` is None for a function."""

    p: Fraction | None = None
    loss: str | None = FALSE_NEGATIVE_RATE
    correction: str = "clopper-pearson"
    eta: Fraction = Fraction(1, 1000)

    @property
    def sampled_alpha(self) -> Fraction:
        """What confidence bounds leave of alpha."""
        return self.alpha if self.correction == "none" else self.alpha - self.eta

    def bound_error(self, n_classes: int) -> Fraction | None:
        """Return the error probability of each confidence bound, None where there are none."""
        if self.correction == "none":
            return None
        return self.eta / 2 if self.loss is not None else self.eta / (2 * n_classes)


@dataclass(frozen=True)
class RiskRule:
    """A label is in the set iff at least k of its m' scores reach tau.

    A rule of exact probabilities accepts a label iff its probability is at least ``certified_p``;
    its ``min_count`` and all that belongs to samples are None. The fields are those of
    `bincp.RobustRiskControl` without the underscore at the end.
    """

    settings: RiskSettings
    tau: float
    n_calibration: int
    n_classes: int
    p: float
    certified_p: float
    total_loss: Fraction | None = None
    p_lower: float | None = None
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
        return "none" if self.is_sampled and self.settings.correction == "none" else "robust"

    @property
    def least(self) -> float:
        """The least count, or the least exact probability, that is accepted."""
        return self.certified_p if self.min_count is None else self.min_count

    @property
    def stops_early(self) -> bool:
        """Whether a label may be decided by fewer draws than its count: never."""
        return False

    @property
    def tests(self) -> SequentialRule:
        """The test that decides any label draw by draw: the curtailed count."""
        assert self.min_count is not None
        assert self.n_test_samples is not None
        return SequentialRule.curtailed(self.min_count, self.n_test_samples)

    @property
    def accepts_all(self) -> bool:
        """Whether every label is in every set."""
        return self.least == 0 or self.tau == float("-inf")
