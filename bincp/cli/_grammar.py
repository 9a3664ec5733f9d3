"""How schemes, balls and certificates are written on a command line.

===========  =======================================================================================
spec         ``name`` or ``name:key=value,key=value``
value        a number, ``none``, ``true``, ``false``, ``[value,value]``, ``(spec)``, or a word where
             the parameter is one
shift        a spec whose numbers stay as they are written, and whose ball, ``ball=spec``, is last
certificate  ``spec@spec``, ``name(argument; argument)``, or the JSON object of ``describe()``
argument     a certificate, or ``key=value``
===========  =======================================================================================

Separators inside brackets belong to what is in the brackets.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_origin

from bincp import shifts
from bincp.calibration._storage import without_repeats
from bincp.certificates import (
    Certificate,
    certify,
    compose,
    described,
    from_gdp,
    from_privacy,
    from_tradeoff,
    hierarchical,
    mixture,
    product,
    registered,
    repeat,
)

_WORDS = {"none": None, "true": True, "false": False}
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_MAKERS: dict[str, Callable[..., Certificate]] = {
    "compose": compose,
    "from-gdp": from_gdp,
    "from-privacy": from_privacy,
    "from-tradeoff": from_tradeoff,
    "hierarchical": hierarchical,
    "mixture": lambda *parts, weights: mixture(parts, weights),
    "product": product,
    "repeat": repeat,
}
_PART = re.compile(r"([a-z-]+)\((.*)\)", re.DOTALL)


@contextmanager
def _nested_in_reason(kind: str) -> Iterator[None]:
    """Refuse what is nested deeper than the stack of Python, which each bracket takes a part of."""
    try:
        yield
    except RecursionError:
        raise ValueError(f"brackets of a {kind} are nested too deeply") from None


@_nested_in_reason("smoothing scheme")
def parse_smoothing(text: str) -> object:
    """Return the scheme that a text stands for."""
    return _spec("smoothing", text)


@_nested_in_reason("ball")
def parse_ball(text: str) -> object:
    """Return the ball that a text stands for."""
    return _spec("ball", text)


@_nested_in_reason("shift")
def parse_shift(text: str) -> object:
    """Return the shift that a text stands for; all that follows ``ball=`` is its ball."""
    head, nested, ball = text.partition("ball=")
    is_bare = nested and not ball.lstrip().startswith("(")
    return _spec("shift", f"{head}{nested}({ball})" if is_bare else text)


@_nested_in_reason("certificate")
def parse_certificate(text: str) -> Certificate:
    """Return the certificate that a text stands for."""
    text = text.strip()
    if text.startswith("{"):
        return _from_json(text)
    call = _PART.fullmatch(text)
    if call is not None:
        return _made(call[1], call[2], text)
    if text.startswith("(") and text.endswith(")") and len(_split(text, "@")) == 1:
        return parse_certificate(text[1:-1])
    pair = _split(text, "@")
    if len(pair) != 2:
        raise ValueError(
            f"a certificate is NOISE@BALL or one of {', '.join(f'{name}(...)' for name in _MAKERS)}"
            f", got {text!r}"
        )
    return certify(parse_smoothing(pair[0]), parse_ball(pair[1]))


def usage(cls: type) -> str:
    """Return how a scheme or ball is written: its name and its parameters."""
    return f"{_kebab(cls)}:{','.join(_parameters(cls))}"


def number(text: str) -> int | float:
    """Return an int, or a float from a decimal or a fraction such as 2/255."""
    try:
        return int(text)
    except ValueError:
        numerator, slash, denominator = text.partition("/")
    try:
        return float(numerator) / (float(denominator) if slash else 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"a value must be a number, got {text!r}") from None


# ---- schemes and balls --------------------------------------------------------------------------


def _types(kind: str) -> dict[str, type]:
    """Return the types of a kind by their names; of equal names, the first registered."""
    if kind == "shift":
        kinds = [getattr(shifts, name) for name in shifts.__all__ if name != "Shift"]
        return {_kebab(cls): cls for cls in kinds}
    pairs = [(scheme, ball) for scheme, ball, _ in reversed(registered())]
    return {_kebab(cls): cls for cls in (pair[kind == "ball"] for pair in pairs)}


def _spec(kind: str, text: str) -> object:
    """Make an object from name:parameter=value,parameter=value."""
    name, _, rest = text.partition(":")
    known = _types(kind)
    cls = known.get(name.strip().lower())
    if cls is None:
        usages = sorted(usage(other) for other in known.values())
        raise ValueError(f"unknown {kind} {name!r}; known are {'  '.join(usages)}")
    parameters = _parameters(cls)
    values: dict[str, Any] = {}
    for item in _split(rest, ",") if rest else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in parameters or key in values:
            raise ValueError(
                f"{_kebab(cls)} takes {', '.join(parameters)}, each once, got {item!r}"
            )
        values[key] = _parameter(value, kind, parameters[key])
    missing = [
        key
        for key, parameter in parameters.items()
        if parameter.default is parameter.empty and key not in values
    ]
    if missing:
        raise ValueError(f"{_kebab(cls)} needs {', '.join(missing)}, got {text!r}")
    return cls(**values)


def _parameter(text: str, kind: str, parameter: inspect.Parameter) -> Any:
    """Return a value; numbers of a shift decide a rank and stay as they are written."""
    if kind == "shift":
        return _spec("ball", text[1:-1]) if text.startswith("(") else text
    return text if get_origin(parameter.annotation) is Literal else _value(text, kind)


def _value(text: str, kind: str) -> Any:
    """Return a number, what "none", "true" or "false" stands for, a list, or a scheme or ball."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    if word.startswith("[") and word.endswith("]"):
        return [_value(item, kind) for item in _items(text)]
    if word.startswith("(") and word.endswith(")"):
        return _spec(kind, text.strip()[1:-1])
    return number(text)


def _kebab(cls: type) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)


# ---- certificates -------------------------------------------------------------------------------


def _made(name: str, inside: str, text: str) -> Certificate:
    if name not in _MAKERS:
        raise ValueError(f"unknown certificate {name!r}; known are {', '.join(_MAKERS)}")
    parts, values = [], {}
    for item in _split(inside, ";"):
        key = re.match(r"\s*([a-z_]+)\s*=(.*)", item, re.DOTALL)
        if key is None:
            parts.append(parse_certificate(item))
        elif key[1] in values:
            raise ValueError(f"{key[1]!r} must be given once, got {text!r}")
        else:
            values[key[1]] = _argument(key[1], key[2])
    try:
        inspect.signature(_MAKERS[name]).bind(*parts, **values)
    except TypeError as error:
        raise ValueError(f"{name}(...): {error}, got {text!r}") from None
    return _MAKERS[name](*parts, **values)


def _argument(key: str, text: str) -> Any:
    """Return a value; weights stay as they are written, so that thirds sum to 1."""
    if key == "weights":
        return [item.strip() for item in _items(text)]
    return _value(text.strip(), "ball")


def _from_json(text: str) -> Certificate:
    try:
        description = json.loads(text, object_pairs_hook=without_repeats)
    except ValueError as error:
        raise ValueError(f"a certificate must be a JSON object, got {text!r}: {error}") from None
    made = described(description)
    if made is None:
        raise ValueError(f"a certificate must be described in full, got {text!r}")
    return made


# ---- text ---------------------------------------------------------------------------------------


def _items(text: str) -> list[str]:
    """Return the elements of a list in brackets."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"a list must be written [value,value], got {text!r}")
    inside = text[1:-1]
    return _split(inside, ",") if inside.strip() else []


def _split(text: str, separator: str) -> list[str]:
    """Divide a text at separators that are in no bracket."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += _BRACKETS.get(letter, 0)
        if depth < 0:
            break
        if letter == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    if depth != 0:
        raise ValueError(f"brackets must match, got {text!r}")
    return [*parts, text[start:]]
