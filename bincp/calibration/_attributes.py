"""Read-only attributes of calibrated objects: certificate, settings and fit."""

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Generic, NoReturn, Self, TypeVar, overload

from bincp._utils.estimators import Estimator
from bincp.calibration._decision_rule import Settings
from bincp.calibration._departures import LabelNoise, Poison
from bincp.certificates import Certificate
from bincp.errors import CertificateError, NotCalibratedError
from bincp.shifts import Shift

T = TypeVar("T")


class Shown(Generic[T]):
    """A read-only attribute that shows a field of the settings or of the decision rule."""

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read

    @overload
    def __get__(self, owner: None, cls: type) -> Self: ...
    @overload
    def __get__(self, owner: object, cls: type) -> T: ...
    def __get__(self, owner: object | None, cls: type) -> Self | T:
        return self if owner is None else self._read(owner)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, owner: object, value: object) -> NoReturn:
        raise AttributeError(
            f"`{self._name}` of a {type(owner).__name__} is read-only, got {value!r}; "
            "make a new object, or calibrate"
        )


def _setting(read: Callable[[Settings], T]) -> Shown[T]:
    return Shown(lambda owner: read(owner._settings))


def fitted(read: Callable[[Any], T]) -> Shown[T]:
    """Return an attribute that reads the ``_rule`` of its owner, which calibration leaves there."""

    def of(owner: Any) -> T:
        if owner._rule is None:
            name = type(owner).__name__
            raise AttributeError(f"a {name} has its fitted attributes only after calibrate()")
        return read(owner._rule)

    return Shown(of)


class Certified(Estimator):
    """What every calibrated object is made with. A loaded object may lack its certificate."""

    _certificate: Certificate | None
    _settings: Any
    _rule: Any

    certificate = Shown[Certificate | None](lambda owner: owner._certificate)
    alpha = Shown[Fraction](lambda owner: owner._settings.alpha)
    p = Shown[Fraction | None](lambda owner: owner._settings.p)
    correction = Shown[str](lambda owner: owner._settings.correction)
    eta = Shown[Fraction](lambda owner: owner._settings.eta)
    poisoned = Shown[Poison](lambda owner: owner._settings.poisoned)
    label_noise = Shown[LabelNoise | None](lambda owner: owner._settings.label_noise)
    shift = Shown[Shift | None](lambda owner: owner._settings.shift)

    @property
    def certificate_description(self) -> dict[str, Any]:
        """The description that `Certificate.describe` returns, also where only that was loaded."""
        if self.certificate is not None:
            return self.certificate.describe()
        description: dict[str, Any] = copy.deepcopy(self._rule.certificate)
        return description

    @property
    def provenance_(self) -> dict[str, Any] | None:
        """What the scores of the calibration were made with: score, model, precision, inputs.

        A rule knows it if it was calibrated by `bincp.sampling.RobustClassifier` or
        `RobustRegressor`, or on a run, and its file does; None otherwise. The names are those of
        the arguments of `bincp.sampling.run`. What differs at prediction is refused wherever both
        sides know it.
        """
        provenance: dict[str, Any] | None = fitted(lambda rule: rule.provenance).__get__(
            self, type(self)
        )
        return copy.deepcopy(provenance)

    def _require_certificate(self) -> Certificate:
        if self.certificate is None:
            name = type(self).__name__
            raise CertificateError(
                f"this loaded {name} holds its certificate by description only; "
                f"make a new {name} to calibrate again"
            )
        return self.certificate

    def _require_rule(self, before: str) -> Any:
        """Return the rule, which calibration leaves there."""
        rule = self._rule
        if rule is None:
            raise NotCalibratedError(f"call calibrate() before {before}")
        return rule


class Configured(Certified):
    """The other settings of `BinCP` and `MondrianBinCP`."""

    _settings: Settings

    attacked_calibration = _setting(lambda settings: settings.attacked_calibration)
    tau = _setting(lambda settings: settings.tau)
    union = _setting(lambda settings: settings.union)
    delta = _setting(lambda settings: settings.delta)
    guarantee = _setting(lambda settings: settings.guarantee)
    passes = _setting(lambda settings: settings.passes)

    def _shown_settings(self) -> str:
        """Return the settings for a representation: the level, the correction, and what is set."""
        parts = [f"alpha={self.alpha}", f"correction={self.correction!r}"]
        for name in ("p", "tau", "passes"):
            if (value := getattr(self, name)) is not None:
                parts.append(f"{name}={value}")
        if self.delta is not None:
            parts.append(f"guarantee=('training-conditional', {self.delta})")
        parts += [
            f"{name}={getattr(self, name)!r}"
            for name in self._settings.names
            if getattr(self, name) not in (None, 0)
        ]
        return ", ".join(parts)
