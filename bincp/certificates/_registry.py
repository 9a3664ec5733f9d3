"""The operator registry: which certificate serves which pair of smoothing scheme and ball.

Pairs are looked up by exact type. Packages add theirs by calling :func:`register`, and are found
through entry points of the group ``bincp.certificates``: each names a module (or an object in one)
whose import registers its operators. They are loaded when a pair is missing for the first time.

A factory returns an operator and a note, and :func:`certify` makes the certificate of the pair from
them. Our own factories and those from outside are treated alike but for the check of the law: it
runs on each certificate from outside, and in the tests for ours.

A lock guards the registry. It is never held while code from outside runs: an import may wait for
another thread, and that thread for the registry.
"""

import hashlib
import math
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bincp._core import _operators
from bincp._core._operators import Operator as CompiledOperator
from bincp._utils.arrays import as_array, is_tensor
from bincp._utils.validation import check_probability, pairs
from bincp.certificates._certificate import Certificate, facts_of, make_certificate, taken_apart
from bincp.certificates._combined import evaluations_of
from bincp.certificates._facts import NOTHING_KNOWN, Facts, is_convex
from bincp.certificates._law import check_law
from bincp.certificates._masses import Masses
from bincp.certificates._native_operators import is_native, native_operator
from bincp.certificates._protocols import Operator
from bincp.certificates._python_operators import ChargedBounds, PythonOperator
from bincp.errors import CertificateError
from bincp.smoothing import Smoothing
from bincp.smoothing._base import shown_fields

__all__ = ["certify", "register", "registered"]

ENTRY_POINT_GROUP = "bincp.certificates"
_ROUNDING = 2.0**-50  # of a difference, relative to what is taken away
_MOST_ELEMENTS = 1000  # of an array that a description shows

Factory = Callable[[Any, Any], Any]
F = TypeVar("F", bound=Factory)


class _Known(NamedTuple):
    """What is proven of one of our own factories."""

    exact: bool
    adds_up: bool
    masses: Callable[[Any, Any], Masses | None] | None


class _Entry(NamedTuple):
    factory: Factory
    origin: str
    known: _Known | None  # None where the factory is from outside


_lock = threading.Lock()  # guards _entries and _failed
_entries: dict[tuple[type, type], _Entry] = {}
_failed: set[str] = set()  # entry points that have been warned of


def certify(smoothing: Any, ball: Any) -> Certificate:
    """Return the certificate of a smoothing scheme for a perturbation ball.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The scheme that randomises the input, such as ``bincp.smoothing.Gaussian(0.25)``.
    ball : bincp.balls.Ball
        The perturbations of the adversary, such as ``bincp.balls.L2(0.12)``; its radius is in the
        units of the tensor that gets the noise.

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

    Notes
    -----
    Safe to call from any thread, also while other threads certify or register.

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
    return _certificate_of(_find(type(smoothing), type(ball)), smoothing, ball)


def certify_law(smoothing: Any, ball: Any) -> Certificate:
    """Return the certificate of the law of a scheme, without a charge for how it is drawn.

    A scheme made of others is charged for the errors of all its parts at once.
    """
    return _certificate_of(_find(type(smoothing), type(ball)), smoothing, ball, charge=False)


def register(
    smoothing_type: type, ball_type: type, *, examples: Iterable[tuple[Any, Any]] = ()
) -> Callable[[F], F]:
    """Register a factory of certificates for a pair of types; use as a decorator.

    Parameters
    ----------
    smoothing_type, ball_type : type
        Types of the two arguments of the factory. They may be any classes, best frozen dataclasses;
        a ball needs a method ``inverse()`` for ``Certificate.inverse`` to work.
    examples : iterable of (smoothing, ball)
        Pairs on which the law of certificates is checked now. It is checked again on each
        certificate that the factory returns.

    Returns
    -------
    callable
        Decorator that returns the factory unchanged. The factory takes (smoothing, ball) and
        returns one of these, alone or as a pair with a note, a string that
        ``Certificate.describe`` shows under ``note``:

        - an operator, such as ``Certificate.operator`` of another certificate;
        - a `Certificate`, whose operator and note are then taken;
        - a pair of functions (lower, upper), or the function lower alone, as
          :meth:`Certificate.from_bounds` takes them;
        - compiled code, as :meth:`Certificate.from_native` takes it.

    Raises
    ------
    TypeError
        If a type is not a class, or the factory is not callable.
    ValueError
        If the pair has an operator already.
    CertificateError
        If an example breaks the law; nothing is registered then.

    Notes
    -----
    Safe to call from any thread. Of two threads that register one pair, one gets the ValueError.

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
    return _registration(smoothing_type, ball_type, examples, known=None)


def register_built_in(
    smoothing_type: type,
    ball_type: type,
    *,
    exact: bool = False,
    adds_up: bool = False,
    masses: Callable[[Any, Any], Masses | None] | None = None,
) -> Callable[[F], F]:
    """Register one of our own factories, for which the tests check the law, not each use.

    `exact`: no larger bound holds. `adds_up`: the bounds of two balls one after the other are exact
    for the ball of the sum of their radii. `masses`: returns the regions of a pair.
    """
    known = _Known(exact, adds_up, masses)
    return _registration(smoothing_type, ball_type, (), known=known)


def _registration(
    smoothing_type: type,
    ball_type: type,
    examples: Iterable[tuple[Any, Any]],
    *,
    known: _Known | None,
) -> Callable[[F], F]:
    for name, value in (("smoothing_type", smoothing_type), ("ball_type", ball_type)):
        if not isinstance(value, type):
            raise TypeError(f"`{name}` must be a class, got {value!r}")
    pair = smoothing_type, ball_type

    def decorator(factory: F) -> F:
        if not callable(factory):
            raise TypeError(f"`factory` must be callable, got {factory!r}")
        entry = _Entry(factory, _origin(factory), known)
        _check_free(pair)
        for smoothing, ball in pairs("examples", examples, "(smoothing, ball)"):
            _check_example(smoothing, ball, pair)
            _certificate_of(entry, smoothing, ball)
        with _lock:
            _check_free(pair)  # again: another thread may have been faster
            _entries[pair] = entry
        return factory

    return decorator


def registered() -> tuple[tuple[type, type, str], ...]:
    """Return the pairs that can be certified: (smoothing_type, ball_type, origin) of each.

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
    return tuple((*pair, entry.origin) for pair, entry in _listed())


def _listed() -> list[tuple[tuple[type, type], _Entry]]:
    with _lock:
        return list(_entries.items())


def _find(smoothing_type: type, ball_type: type) -> _Entry:
    pair = (smoothing_type, ball_type)
    if pair not in _entries:
        load_entry_points()
    entry = _entries.get(pair)
    if entry is None:
        raise CertificateError(
            f"no certificate for ({smoothing_type.__name__}, {ball_type.__name__}): "
            f"{_known_operators(pair)}"
        )
    return entry


def _known_operators(pair: tuple[type, type]) -> str:
    if pair[::-1] in _entries:
        return "the smoothing scheme comes first, then the ball"
    name = pair[0].__name__
    balls = [ball.__name__ for (scheme, ball), _ in _listed() if scheme is pair[0]]
    known = f"{name} can certify {', '.join(balls)}" if balls else f"nothing is known for {name}"
    return f"{known}; bincp.register adds more"


_entry_points_loaded = threading.Event()


def load_entry_points() -> None:
    """Import the modules that register operators, once.

    Threads that come here at the same time all import. Python lets one of them run each module, and
    keeps them from waiting for each other in a circle; with a lock of our own they could.
    """
    if _entry_points_loaded.is_set():
        return
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            entry_point.load()
        except Exception as error:  # one broken package must not take the others down
            _warn_once(entry_point.name, entry_point.value, error)
    _entry_points_loaded.set()


def _warn_once(name: str, value: str, error: Exception) -> None:
    with _lock:
        known = name in _failed
        _failed.add(name)
    if not known:
        warnings.warn(
            f"entry point {name!r} of {ENTRY_POINT_GROUP} ({value}) could not be loaded: {error!r}",
            RuntimeWarning,
            stacklevel=5,
        )


def _certificate_of(
    entry: _Entry, smoothing: Any, ball: Any, *, charge: bool = True
) -> Certificate:
    """Make the certificate of a pair from the result of its factory."""
    made = entry.factory(smoothing, ball)
    operator, details = _operator_of(made, entry.origin)
    if charge:
        operator, details = _charged(operator, details, smoothing)
    assumption = smoothing.assumes() if isinstance(smoothing, Smoothing) else None
    if assumption is not None:
        details = details | {"assumes": assumption}
    certificate = make_certificate(
        Certificate,
        operator,
        details,
        pair={"smoothing": parameters_of(smoothing), "ball": parameters_of(ball)},
        inverse=lambda: certify(smoothing, _inverted(ball)),
        recipe=(certify, (smoothing, ball)),
        facts=_facts(entry.known, made, operator, smoothing, ball, details),
    )
    if entry.known is None:
        check_law(certificate)
    return certificate


def _facts(
    known: _Known | None,
    made: Any,
    operator: Operator,
    smoothing: Any,
    ball: Any,
    details: dict[str, Any],
) -> Facts:
    """Return what is proven of a pair; what an error of the noise is charged for is not exact."""
    if known is None:
        size = facts_of(made) if isinstance(made, Certificate) else NOTHING_KNOWN
        return Facts(depth=size.depth, parts=size.parts)
    charged = "charge" in details
    rough = _ROUNDING * details.get("charge", 0.0)
    if isinstance(made, Certificate):
        own = facts_of(made)
        return _charged_facts(own, rough) if charged else own
    exact = known.exact and not charged
    family = None
    if exact and known.adds_up:
        family = smoothing, replace(ball, r=0.0)  # balls that differ in size alone
    find = None if charged else known.masses
    masses = None if find is None else lambda: find(smoothing, ball)
    return Facts(True, exact, convex=is_convex(operator), family=family, rough=rough, masses=masses)


def _charged_facts(own: Facts, rough: float) -> Facts:
    return Facts(
        own.randomised,
        convex=own.convex,
        rough=own.rough + rough,
        depth=own.depth,
        parts=own.parts,
    )


def _operator_of(made: Any, origin: str) -> tuple[Operator, dict[str, Any]]:
    """Return the operator in the result of a factory, and its details."""
    noted = isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], str | None)
    made, note = made if noted else (made, None)
    details = {} if note is None else {"note": note}
    if isinstance(made, Certificate):
        operator, own_details = taken_apart(made)
        if type(made) is not Certificate:  # a subclass may have bounds of its own
            count = evaluations_of(operator)
            operator = PythonOperator(operator.name, made.lower, made.upper, evaluations=count)
        return operator, own_details | details
    if isinstance(made, CompiledOperator | PythonOperator):
        return made, details
    return _operator_of_functions(made, origin), details


def _charged(
    operator: Operator, details: dict[str, Any], smoothing: Any
) -> tuple[Operator, dict[str, Any]]:
    """Take what the drawn noise may differ from its law from both bounds, at p and at the result.

    Let c be a lower bound for the law, and let the drawn noise be within delta of it in total
    variation, at both inputs. An event of probability p at one of them has at least p - delta there
    by the law, so c(p - delta) by the law at the other, and delta less as drawn.
    """
    if not isinstance(smoothing, Smoothing):
        return operator, details
    delta = check_probability("sampling_error()", smoothing.sampling_error())
    if delta == 0:
        return operator, details
    if type(operator) is CompiledOperator:  # functions from outside raise errors of their own
        return _operators.charged(operator, delta), details | {"charge": delta}
    charged = ChargedBounds(operator, delta)
    made = PythonOperator(
        operator.name, charged.lower, charged.upper, evaluations=evaluations_of(operator)
    )
    return made, details | {"charge": delta}


def _operator_of_functions(made: Any, origin: str) -> Operator:
    # A scipy.LowLevelCallable is a tuple, and most compiled functions are callable.
    bounds = made if isinstance(made, tuple) and not is_native(made) else (made,)
    if len(bounds) in (1, 2) and any(is_native(bound) for bound in bounds):
        lower, upper = (*bounds, None)[:2]
        return native_operator(lower, upper, origin, None)
    if len(bounds) in (1, 2) and all(callable(bound) for bound in bounds):
        return PythonOperator(origin, *bounds)
    raise CertificateError(
        f"{origin} must return an operator, a Certificate, a pair of functions (lower, upper), the "
        f"function lower or compiled code, alone or with a note, got {made!r}"
    )


def _inverted(ball: Any) -> Any:
    if not callable(getattr(ball, "inverse", None)):
        raise CertificateError(
            f"{type(ball).__name__} must have a method inverse() for its certificate to be "
            "inverted; subclass bincp.balls.Ball if it is its own inverse"
        )
    return ball.inverse()


def parameters_of(value: Any) -> dict[str, Any]:
    """Return the type and the parameters of a scheme or ball."""
    parameters = {name: _plain(item) for name, item in _attributes(value)}
    return {"type": type(value).__name__, **parameters}


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass, and all that the object holds if it is none itself.

    A class may inherit the fields of a dataclass, such as `Smoothing`, and add attributes of its
    own without being one.
    """
    if "__dataclass_fields__" in vars(type(value)):
        yield from ((part.name, getattr(value, part.name)) for part in shown_fields(value))
        return
    if isinstance(value, tuple):
        yield "items", list(value)
    state = object.__getstate__(value)
    for attributes in state if isinstance(state, tuple) else (state,):  # by name, and in slots
        yield from (attributes or {}).items()


def _plain(value: Any) -> Any:
    """Return a parameter as a JSON value; what has no such form, by its repr.

    Two parameters with one description are taken for equal where a rule is checked against a
    certificate. So arrays are not described by their repr, which rounds them and leaves out most
    elements.
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return parameters_of(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.integer | np.floating):
        return _plain(value.item())
    if isinstance(value, np.ndarray) or is_tensor(value):
        return _plain_array(value)
    return repr(value)


def _plain_array(value: Any) -> Any:
    """Return the elements of an array, or a checksum of them where they are many."""
    array = as_array("parameter", value.detach().cpu() if is_tensor(value) else value)
    if array.size <= _MOST_ELEMENTS:
        return _plain(array.tolist())
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest}


def _check_free(pair: tuple[type, type]) -> None:
    if pair in _entries:
        raise ValueError(
            f"({pair[0].__name__}, {pair[1].__name__}) must not have an operator yet, "
            f"got a second one: the first is {_entries[pair].origin}"
        )


def _check_example(smoothing: Any, ball: Any, pair: tuple[type, type]) -> None:
    if (type(smoothing), type(ball)) != pair:
        raise TypeError(
            f"`examples` must be of the types ({pair[0].__name__}, {pair[1].__name__}), "
            f"got ({type(smoothing).__name__}, {type(ball).__name__})"
        )


def _origin(factory: Factory) -> str:
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    return f"{getattr(factory, '__module__', '?')}.{name}"
