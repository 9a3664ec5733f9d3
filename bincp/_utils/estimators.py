"""The conventions of scikit-learn for estimators, which need no import of it."""

import copy
import inspect
from typing import Any, Self

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""


class Estimator:
    """An object whose constructor arguments can be read and changed, and that can be cloned.

    The arguments are kept as they were passed: the text "0.1" stays text, whatever is made of it.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._arguments = args, kwargs
        return made

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor, by name.

        Parameters
        ----------
        deep : bool
            Whether to add the arguments of arguments that are estimators themselves, as
            ``rule__alpha``.

        Returns
        -------
        dict
            The very objects that were passed, and the defaults of those that were not. An object
            that was loaded from a file shows its settings.

        Examples
        --------
        >>> from bincp.baselines import VanillaCP
        >>> VanillaCP(alpha="0.1").get_params()
        {'alpha': '0.1', 'poisoned': 0}
        """
        given, defaults = self._given(), self._defaults()
        # A loaded object was made without its constructor, and has the attributes alone.
        required = {name for name, default in defaults.items() if default is REQUIRED}
        loaded = not required <= {*given}
        found = {
            name: given[name] if name in given else (getattr(self, name) if loaded else default)
            for name, default in defaults.items()
        }
        if deep:
            for name, value in list(found.items()):
                if isinstance(value, Estimator):
                    inner = value.get_params()
                    found |= {f"{name}__{part}": inner[part] for part in inner}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; the object must be calibrated again.

        All arguments are checked together, as the constructor does, and nothing changes if one is
        refused. A calibration for other arguments is dropped, for it does not hold for these. No
        other thread may use the object meanwhile.

        Parameters
        ----------
        **params
            New values, by the names of `get_params`.

        Returns
        -------
        object
            The object itself.

        Raises
        ------
        TypeError, ValueError
            If there is no such argument, or the constructor refuses a value.

        Examples
        --------
        >>> import numpy as np
        >>> from bincp.baselines import VanillaCP
        >>> rule = VanillaCP(alpha="0.1").calibrate(np.arange(19.0))
        >>> rule.set_params(alpha="0.2")
        VanillaCP(alpha=1/5, not calibrated)
        """
        own: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            outer, separator, inner = name.partition("__")
            if separator:
                nested.setdefault(outer, {})[inner] = value
            else:
                own[outer] = value
        known = self.get_params(deep=False)
        if unknown := sorted({*own, *nested} - {*known}):
            raise ValueError(
                f"`{unknown[0]}` must be a parameter of {type(self).__name__}, "
                f"one of {', '.join(known)}; got {unknown[0]!r}"
            )
        values = known | own
        for name, inner_values in nested.items():
            if not isinstance(values[name], Estimator):
                raise ValueError(
                    f"`{name}` must be an object with parameters of its own, got {values[name]!r}"
                )
            copy.copy(values[name]).set_params(**inner_values)  # so that a refusal changes nothing
        if own:
            self._become(type(self)(**values))
        for name, inner_values in nested.items():
            values[name].set_params(**inner_values)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an object with the same arguments that is not calibrated.

        ``sklearn.base.clone`` calls this. Estimators among the arguments are cloned, all others are
        shared, for they do not change: a trained model stays as it is.
        """
        return type(self)(
            **{
                name: value.__sklearn_clone__() if isinstance(value, Estimator) else value
                for name, value in self.get_params(deep=False).items()
            }
        )

    def _become(self, other: Self) -> None:
        """Take all from another object; a class may keep what outlives a change of arguments."""
        self.__dict__ = other.__dict__

    def _defaults(self) -> dict[str, Any]:
        """Return the default of each argument, `REQUIRED` where there is none."""
        return defaults_of(type(self))

    def _given(self) -> dict[str, Any]:
        """Return the arguments that were passed, those of ``**options`` one by one."""
        signature = inspect.signature(type(self).__init__)
        args, kwargs = self._arguments
        given = dict(signature.bind_partial(self, *args, **kwargs).arguments)
        del given[next(iter(signature.parameters))]
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                given |= given.pop(parameter.name, {})
        return given


def defaults_of(kind: type) -> dict[str, Any]:
    """Return the default of each named argument of a constructor."""
    _, *parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is not parameter.VAR_KEYWORD
    }
