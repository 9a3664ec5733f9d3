"""The operator registry: which certificate serves which pair of smoothing scheme and ball.

Pairs are looked up by exact type. Packages add theirs by calling :func:`register`, and are found
through entry points of the group ``bincp.certificates``: each names a module (or an object in one)
whose import registers its operators. They are loaded when a pair is first missing.
"""

import functools
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bincp.certificates._certificate import Certificate
from bincp.certificates._law import check_law
from bincp.certificates._native_operators import is_native
from bincp.errors import CertificateError

__all__ = ["certify", "register", "registered"]

ENTRY_POINT_GROUP = "bincp.certificates"

Factory = Callable[[Any, Any], Any]
F = TypeVar("F", bound=Factory)


class _Entry(NamedTuple):
    factory: Factory
    origin: str
    built_in: bool


_entries: dict[tuple[type, type], _Entry] = {}


def certify(smoothing: Any, ball: Any) -> Certificate:
    """Return the certificate of a smoothing scheme for a perturbation ball.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        How the input is randomised, e.g. ``bincp.smoothing.Gaussian(0.25)``.
    ball : bincp.balls.Ball
        What the adversary may do, e.g. ``bincp.balls.L2(0.12)``; its radius is in the units of the
        tensor that gets the noise.

    Returns
    -------
    Certificate

    Raises
    ------
    TypeError
        If an argument is a class instead of an instance.
    CertificateError
        If no operator is registered for the pair (the message lists what the scheme can certify),
        or the operator, where it is not built in, breaks the law of certificates.

    Examples
    --------
    >>> import bincp
    >>> scheme = bincp.smoothing.SparseFlip(p_plus=0.01, p_minus=0.6)
    >>> certificate = bincp.certify(scheme, bincp.balls.Flips(additions=1, deletions=3))
    >>> round(certificate.lower(0.9), 4)
    0.3455
    """
    for name, value in (("smoothing", smoothing), ("ball", ball)):
        if isinstance(value, type):
            raise TypeError(f"`{name}` must be an instance, got the class {value.__name__}")
    entry = _find(type(smoothing), type(ball))
    certificate = _as_certificate(entry.factory(smoothing, ball), entry)
    if not entry.built_in:
        check_law(certificate)
    return _tied(certificate, smoothing, ball)


def register(
    smoothing_type: type, ball_type: type, *, examples: Iterable[tuple[Any, Any]] = ()
) -> Callable[[F], F]:
    """Register a factory of certificates for a pair of types; use as a decorator.

    Parameters
    ----------
    smoothing_type, ball_type : type
        Types of the two arguments of the factory. Any class will do, a frozen dataclass is best; a
        ball needs a method ``inverse()`` for ``Certificate.inverse`` to work.
    examples : iterable of (smoothing, ball)
        Pairs on which the law of certificates is checked now. It is checked again on each
        certificate that the factory returns.

    Returns
    -------
    callable
        Decorator that returns the factory unchanged. The factory takes (smoothing, ball) and
        returns a `Certificate`, a pair of functions (lower, upper), or the function lower alone;
        functions of Python, or compiled as :meth:`Certificate.from_native` takes them.

    Raises
    ------
    TypeError
        If a type is not a class, or the factory is not callable.
    ValueError
        If the pair has an operator already.
    CertificateError
        If an example breaks the law; nothing is registered then.

    Examples
    --------
    >>> import bincp
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Shift(bincp.balls.Ball):
    ...     r: float
    >>> @bincp.register(bincp.smoothing.Uniform, Shift,
    ...                 examples=[(bincp.smoothing.Uniform(0.5), Shift(0.1))])
    ... def uniform_shift(smoothing, ball):
    ...     width = 2 * smoothing.half_width
    ...     return lambda p: max(p - ball.r / width - 1e-15, 0.0)
    >>> round(bincp.certify(bincp.smoothing.Uniform(0.5), Shift(0.1)).lower(0.9), 9)
    0.8
    """
    for name, value in (("smoothing_type", smoothing_type), ("ball_type", ball_type)):
        if not isinstance(value, type):
            raise TypeError(f"`{name}` must be a class, got {value!r}")

    def decorator(factory: F) -> F:
        if not callable(factory):
            raise TypeError(f"`factory` must be callable, got {factory!r}")
        entry = _Entry(factory, _origin(factory), built_in=False)
        pair = _check_free(smoothing_type, ball_type)
        for smoothing, ball in examples:
            _check_example(smoothing, ball, pair)
            certificate = _as_certificate(entry.factory(smoothing, ball), entry)
            check_law(_tied(certificate, smoothing, ball))
        _entries[pair] = entry
        return factory

    return decorator


def register_built_in(smoothing_type: type, ball_type: type) -> Callable[[F], F]:
    """Register one of our own factories: the law is checked by the tests, and not at import."""

    def decorator(factory: F) -> F:
        pair = _check_free(smoothing_type, ball_type)
        _entries[pair] = _Entry(factory, _origin(factory), built_in=True)
        return factory

    return decorator


def registered() -> tuple[tuple[type, type, str], ...]:
    """Return what can be certified: (smoothing_type, ball_type, origin) of each operator.

    Returns
    -------
    tuple of (type, type, str)
        In the order of registration; the origin is the module and name of the factory.

    Examples
    --------
    >>> import bincp
    >>> (bincp.smoothing.Gaussian, bincp.balls.L2) in {pair[:2] for pair in bincp.registered()}
    True
    """
    load_entry_points()
    return tuple((*pair, entry.origin) for pair, entry in _entries.items())


def _find(smoothing_type: type, ball_type: type) -> _Entry:
    pair = (smoothing_type, ball_type)
    if pair not in _entries:
        load_entry_points()
    if pair not in _entries:
        raise CertificateError(
            f"no certificate for ({smoothing_type.__name__}, {ball_type.__name__}): "
            f"{_what_there_is(pair)}"
        )
    return _entries[pair]


def _what_there_is(pair: tuple[type, type]) -> str:
    if pair[::-1] in _entries:
        return "the smoothing scheme comes first, then the ball"
    name = pair[0].__name__
    balls = [ball.__name__ for scheme, ball in _entries if scheme is pair[0]]
    known = f"{name} can certify {', '.join(balls)}" if balls else f"nothing is known for {name}"
    return f"{known}; bincp.register adds more"


@functools.cache
def load_entry_points() -> None:
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            entry_point.load()
        except Exception as error:  # one broken package must not take the others down
            warnings.warn(
                f"entry point {entry_point.name!r} of {ENTRY_POINT_GROUP} "
                f"({entry_point.value}) could not be loaded: {error!r}",
                RuntimeWarning,
                stacklevel=4,
            )


def _as_certificate(made: Any, entry: _Entry) -> Certificate:
    """Turn what a factory may return into a certificate."""
    if isinstance(made, Certificate):
        return made
    # A scipy.LowLevelCallable is a tuple, and most compiled functions are callable.
    bounds = made if isinstance(made, tuple) and not is_native(made) else (made,)
    if len(bounds) in (1, 2) and any(is_native(bound) for bound in bounds):
        return Certificate.from_native(*bounds, name=entry.origin)
    if len(bounds) in (1, 2) and all(callable(bound) for bound in bounds):
        return Certificate.from_bounds(*bounds, name=entry.origin)
    raise CertificateError(
        f"{entry.origin} must return a Certificate, a pair of functions (lower, upper), the "
        f"function lower or compiled code, got {made!r}"
    )


def _tied(certificate: Certificate, smoothing: Any, ball: Any) -> Certificate:
    """Return the certificate, described as that of the pair and rebuilt from it."""
    pair = {"smoothing": _parameters(smoothing), "ball": _parameters(ball)}
    return Certificate._make(
        certificate._operator,
        pair | certificate.describe() | pair,  # a factory may build on the operator of another pair
        inverse=lambda: certify(smoothing, _inverted(ball)),
        recipe=(certify, (smoothing, ball)),
    )


def _inverted(ball: Any) -> Any:
    if not callable(getattr(ball, "inverse", None)):
        raise CertificateError(
            f"{type(ball).__name__} must have a method inverse() for its certificate to be "
            "inverted; subclass bincp.balls.Ball if it is its own inverse"
        )
    return ball.inverse()


def _parameters(value: Any) -> dict[str, Any]:
    return _plain(value) if is_dataclass(value) else {"type": type(value).__name__}


def _plain(value: Any) -> Any:
    """Return a parameter as a JSON value; what has no such form, by its repr."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if is_dataclass(value):
        parameters = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, **parameters}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.integer | np.floating):
        return _plain(value.item())
    return repr(value)


def _check_free(smoothing_type: type, ball_type: type) -> tuple[type, type]:
    pair = (smoothing_type, ball_type)
    if pair in _entries:
        raise ValueError(
            f"({smoothing_type.__name__}, {ball_type.__name__}) must not have an operator yet, "
            f"got a second one: the first is {_entries[pair].origin}"
        )
    return pair


def _check_example(smoothing: Any, ball: Any, pair: tuple[type, type]) -> None:
    if (type(smoothing), type(ball)) != pair:
        raise TypeError(
            f"`examples` must be of the types ({pair[0].__name__}, {pair[1].__name__}), "
            f"got ({type(smoothing).__name__}, {type(ball).__name__})"
        )


def _origin(factory: Factory) -> str:
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    return f"{getattr(factory, '__module__', '?')}.{name}"
