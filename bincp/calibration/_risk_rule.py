"""The rule that risk control calibrates, and everything that it was made from."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from bincp.calibration._curve import Array, Curve
from bincp.calibration._decision_rule import Settings
from bincp.calibration._departures import Departures
from bincp.calibration._sequential import SequentialRule, exit_probabilities

CORRECTIONS = ("mixture", "clopper-pearson", "none")
FALSE_NEGATIVE_RATE = "false-negative-rate"
ANY_MISSED = "any-missed"
LOSSES = (FALSE_NEGATIVE_RATE, ANY_MISSED)
"""Losses that have a name."""


@dataclass(frozen=True)
class RiskSettings(Departures):
    """The checked options of `bincp.RobustRiskControl`; ``loss`` is None for a function.

    ``additive`` says whether that function is a sum over missing labels.
    """

    p: Fraction | None = None
    loss: str | None = FALSE_NEGATIVE_RATE
    correction: str = "mixture"
    eta: Fraction = Fraction(1, 1000)
    passes: Fraction | str | None = None
    additive: bool = False

    @property
    def is_additive(self) -> bool:
        """Whether the loss is a sum of weights of the true labels that are missing."""
        return self.loss == FALSE_NEGATIVE_RATE or (self.loss is None and self.additive)

    @property
    def of_ranks(self) -> Settings:
        """The same options for a rule of ranks."""
        shared = {name: getattr(self, name) for name in self.names}
        return Settings(
            alpha=self.alpha, p=self.p, correction=self.correction, passes=self.passes, **shared
        )

    @property
    def of_clean_points(self) -> "RiskSettings":
        """The same options for points that nobody changed, added or took away."""
        noise = self.label_noise
        counted = noise is not None and noise[0] == "count"
        return replace(self, poisoned=0, label_noise=None if counted else noise)

    @property
    def spent(self) -> Fraction:
        """The part of alpha that confidence bounds spend."""
        return self.eta if self.correction == "clopper-pearson" else Fraction(0)

    @property
    def sampled_alpha(self) -> Fraction:
        """What the shift and confidence bounds leave of alpha, 0 if they leave nothing."""
        return max(self.level - self.spent, Fraction(0))

    def bound_error(self, n_classes: int) -> Fraction | None:
        """Return the error probability of each confidence bound, None where there are none."""
        if self.correction != "clopper-pearson":
            return None
        return self.eta / 2 if self.is_additive else self.eta / (2 * n_classes)


@dataclass(frozen=True)
class RiskRule:
    """A label is in the set iff at least k of its m' scores reach tau.

    A rule of exact probabilities accepts a label iff its probability is at least ``certified_p``;
    its ``min_count`` and all that belongs to samples are None. With ``boundaries`` a label is
    decided as they say. ``share`` is the level of the calibration losses of the mixture correction.
    The other fields are those of `bincp.RobustRiskControl` without the underscore at the end.
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
    share: Fraction | None = None
    boundaries: SequentialRule | None = None
    certificate: dict[str, Any] = field(default_factory=dict, hash=False)
    """Description, by `Certificate.describe`, of the certificate that the rule was made with."""
    provenance: dict[str, Any] | None = field(default=None, compare=False)
    """What its scores were made with, if they knew."""

    def with_provenance(self, provenance: dict[str, Any] | None) -> "RiskRule":
        """Return the same rule for scores that were made like this."""
        return replace(self, provenance=provenance)

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
        """Whether a label may be decided before all m' draws."""
        return self.boundaries is not None

    def refusals(self, curve: Curve) -> Array:
        """Return the probability of refusal at the worst input, on the grid of a curve."""
        if self.boundaries is not None:
            return exit_probabilities(self.boundaries, curve.c, curve.d)[0]
        assert self.min_count is not None
        assert self.n_test_samples is not None
        return curve.prediction_failures(self.min_count, self.n_test_samples)

    @property
    def tests(self) -> SequentialRule:
        """The test that decides any label draw by draw: the boundaries, or the curtailed count."""
        if self.boundaries is not None:
            return self.boundaries
        assert self.min_count is not None
        assert self.n_test_samples is not None
        return SequentialRule.curtailed(self.min_count, self.n_test_samples)

    @property
    def accepts_all(self) -> bool:
        """Whether every label is in every set."""
        return self.least == 0 or self.tau == float("-inf")
