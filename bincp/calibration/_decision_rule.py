"""The decision rule: the result of a calibration, and everything that it was made from."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from bincp.calibration._departures import Departures
from bincp.calibration._sequential import SequentialRule


@dataclass(frozen=True)
class Settings(Departures):
    """The checked options of `bincp.BinCP`.

    `delta` is that of a training-conditional guarantee. `passes` is None, "auto" or a budget.
    """

    p: Fraction | None = None
    tau: float | None = None
    correction: str = "mixture"
    union: str = "per-bound"
    eta: Fraction = Fraction(1, 1000)
    delta: Fraction | None = None
    passes: Fraction | str | None = None

    @property
    def guarantee(self) -> str | tuple[str, Fraction]:
        """The guarantee, as `bincp.BinCP` takes it."""
        return "marginal" if self.delta is None else ("training-conditional", self.delta)

    @property
    def stops_early(self) -> bool:
        """Whether a label may be decided before all m' draws.

        Where early stopping is left to the library, it takes a rule that has a proof for it.
        """
        return self.passes is not None and self.correction == "mixture" and self.tau is None

    @property
    def unproven_if_shared(self) -> str | None:
        """The option that has no proof where the calibration points share their draws."""
        if self.attacked_calibration:
            return "attacked_calibration"
        return "poisoned" if self.resizes else None

    @property
    def spent(self) -> Fraction:
        """The part of alpha that confidence bounds spend."""
        return self.eta if self.correction == "clopper-pearson" else Fraction(0)

    @property
    def sampled_level(self) -> Fraction:
        """What a shift and confidence bounds leave of alpha, 0 if they leave nothing."""
        return max(self.level - self.spent, Fraction(0))

    @property
    def spends_on_classes(self) -> bool:
        """Whether the level of a confidence bound depends on the number of classes."""
        return self.correction == "clopper-pearson" and self.union == "per-bound"


@dataclass(frozen=True)
class DecisionRule:
    """A label is in the set iff at least k of its m' scores reach tau, or as the boundaries decide.

    With ``boundaries`` a label is accepted or refused as soon as its count reaches one of them, and
    the count of all m' draws decides nothing: the calibration is for this test alone. With
    ``losses`` the calibration gave a point with s hits the loss ``losses[s]``, in units of 2**-36;
    without, it took ranks. A rule of exact probabilities accepts a label iff its probability is at
    least ``certified_p``; its ``min_count`` and all that belongs to samples are None. With
    ``share`` the count is one for all n: it allows for so large a share of failures. The other
    fields are those of `bincp.BinCP` without the underscore at the end.
    """

    settings: Settings
    tau: float
    n_calibration: int
    min_count: int | None = None
    rank: int | None = None
    success_rank: int | None = None
    n_samples: int | None = None
    n_test_samples: int | None = None
    n_classes: int | None = None
    dtype: str | None = None
    p: float | None = None
    p_lower: float | None = None
    certified_p: float | None = None
    losses: tuple[int, ...] | None = None
    boundaries: SequentialRule | None = None
    share: Fraction | None = None
    certificate: dict[str, Any] = field(default_factory=dict, hash=False)
    """Description, by `Certificate.describe`, of the certificate that the rule was made with."""
    provenance: dict[str, Any] | None = field(default=None, compare=False)
    """What its scores were made with, if they knew."""

    def with_provenance(self, provenance: dict[str, Any] | None) -> "DecisionRule":
        """Return the same rule for scores that were made like this."""
        return replace(self, provenance=provenance)

    @property
    def is_sampled(self) -> bool:
        """Whether the rule decides by counts, not by exact probabilities."""
        return self.min_count is not None

    @property
    def level(self) -> Fraction:
        """The share of failures that the rank may leave."""
        if self.share is not None:
            return self.share
        settings = self.settings
        return settings.sampled_level if self.is_sampled else settings.level

    @property
    def stops_early(self) -> bool:
        """Whether a label may be decided before all m' draws."""
        return self.boundaries is not None

    @property
    def tests(self) -> SequentialRule:
        """The test that decides any label draw by draw: the boundaries, or the curtailed count."""
        if self.boundaries is not None:
            return self.boundaries
        assert self.min_count is not None
        assert self.n_test_samples is not None
        return SequentialRule.curtailed(self.min_count, self.n_test_samples)

    @property
    def least(self) -> float:
        """The least count, or the least exact probability, that is accepted."""
        least = self.certified_p if self.min_count is None else self.min_count
        assert least is not None
        return least

    @property
    def accepts_all(self) -> bool:
        """Whether every label is in every set, because of tau or k."""
        return self.min_count == 0 or self.tau == float("-inf")
