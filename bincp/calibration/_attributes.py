"""Read-only attributes of calibrated objects, which show their settings and their fit."""

from collections.abc import Callable
from typing import Any, Generic, NoReturn, Self, TypeVar, overload

from bincp.calibration._decision_rule import Settings

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


def setting(read: Callable[[Settings], T]) -> Shown[T]:
    """Return an attribute that reads the ``_settings`` of its owner."""
    return Shown(lambda owner: read(owner._settings))


def fitted(read: Callable[[Any], T]) -> Shown[T]:
    """Return an attribute that reads the ``_rule`` of its owner, which calibration leaves there."""

    def of(owner: Any) -> T:
        if owner._rule is None:
            name = type(owner).__name__
            raise AttributeError(f"a {name} has its fitted attributes only after calibration")
        return read(owner._rule)

    return Shown(of)
