"""The decision rules of all classes: the result of a class-conditional calibration."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._sequential import SequentialRule


@dataclass(frozen=True)
class ClassRules:
    """A decision rule for each class, with the same settings, m, m' and dtype.

    A class without calibration points has None: its label is in every set. At least one class has
    points.
    """

    rules: tuple[DecisionRule | None, ...]

    @cached_property
    def made(self) -> list[DecisionRule]:
        """The rules of the classes with points."""
        return [rule for rule in self.rules if rule is not None]

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.rules)

    @property
    def n_samples(self) -> int | None:
        """The number m of scores of a calibration point."""
        return self.made[0].n_samples

    @property
    def n_test_samples(self) -> int | None:
        """The number m' of scores of a label at prediction."""
        return self.made[0].n_test_samples

    @property
    def dtype(self) -> str | None:
        """Dtype of the scores."""
        return self.made[0].dtype

    @property
    def certificate(self) -> dict[str, Any]:
        """Description of the certificate."""
        return self.made[0].certificate

    @property
    def provenance(self) -> dict[str, Any] | None:
        """What the scores were made with, if they knew."""
        return self.made[0].provenance

    def with_provenance(self, provenance: dict[str, Any] | None) -> "ClassRules":
        """Return the same rules for scores that were made like this."""
        return ClassRules(
            tuple(rule and replace(rule, provenance=provenance) for rule in self.rules)
        )

    @cached_property
    def tau(self) -> npt.NDArray[np.float64]:
        """Thresholds (K,), -inf for a class without points."""
        return np.array([-np.inf if rule is None else rule.tau for rule in self.rules])

    @cached_property
    def least(self) -> npt.NDArray[np.int64]:
        """Least counts (K,), 0 for a class without points."""
        return np.array([0 if rule is None else rule.min_count for rule in self.rules], np.int64)

    @cached_property
    def n_calibration(self) -> npt.NDArray[np.int64]:
        """Calibration points of each class, shape (K,)."""
        sizes = [0 if rule is None else rule.n_calibration for rule in self.rules]
        return np.array(sizes, np.int64)

    @property
    def stops_early(self) -> bool:
        """Whether the label of some class may be decided before all m' draws."""
        return any(rule.stops_early for rule in self.made)

    @cached_property
    def tests(self) -> tuple[SequentialRule, ...]:
        """The test of each class, which decides its label draw by draw."""
        assert self.n_test_samples is not None
        everything = SequentialRule.curtailed(0, self.n_test_samples)
        return tuple(everything if rule is None else rule.tests for rule in self.rules)
