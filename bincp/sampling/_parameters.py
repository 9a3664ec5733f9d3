"""The parameters of a classifier: those of its rule one by one, or the rule itself."""

from typing import Any, Self

from bincp._utils.estimators import Estimator, defaults_of
from bincp.calibration import BinCP
from bincp.noise._seeds import Seeded
from bincp.sampling._rules import Rule


class RuleOwner(Seeded):
    """An estimator that is made with settings of a rule, or with a rule in place of them."""

    n_samples: int
    n_test_samples: int
    _rule: Rule
    _first_rule: Rule
    """The rule that the constructor left; another one has been assigned where `_rule` differs."""

    def __sklearn_clone__(self) -> Self:
        rule = self._given().get("rule")
        if not (rule is None or isinstance(rule, Estimator)):
            raise TypeError(
                "`rule` must be a BinCP or a MondrianBinCP for a clone, which is not to share it, "
                f"got {type(rule).__name__}"
            )
        return super().__sklearn_clone__()

    def _defaults(self) -> dict[str, Any]:
        own = super()._defaults()
        if self._given().get("rule") is not None:
            return own
        settings = defaults_of(BinCP)
        del settings["certificate"]
        return own | settings | {"passes": "auto"}

    def _given(self) -> dict[str, Any]:
        given = super()._given()
        if self._rule is self._first_rule:
            if given.get("rule") is None:
                return given
            # Sizes that came from a calibrated rule stay, for a clone of the rule has none.
            return {"n_samples": self.n_samples, "n_test_samples": self.n_test_samples} | given
        own = super()._defaults()
        return {name: given[name] for name in given if name in own} | {"rule": self._rule}
