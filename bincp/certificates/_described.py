"""A certificate made again from its description, where it is one that bincp knows by itself."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from bincp import balls, smoothing
from bincp.certificates._algebra import compose, hierarchical, mixture, product, repeat
from bincp.certificates._certificate import Certificate
from bincp.certificates._registry import certify, registered
from bincp.certificates._tradeoff import from_gdp, from_privacy, from_tradeoff, inverse_of_lines
from bincp.errors import CertificateError


def described(description: dict[str, Any]) -> Certificate | None:
    """Return the certificate with a description, None if the description does not say enough.

    It does where it names a pair of classes of bincp with their parameters, or how the certificate
    was made of such parts.
    """
    try:
        certificate = _made_by(description)
    except (KeyError, TypeError, ValueError, CertificateError, RecursionError):
        return None
    # What later versions say beside it is no difference: the bounds are compared anyway.
    if certificate is None or not _same(_common(certificate.describe(), description), description):
        return None
    return certificate


def pair_of(description: dict[str, Any]) -> tuple[smoothing.Smoothing, balls.Ball]:
    """Return the scheme and the ball that the description of a certificate names."""
    return object_of(smoothing, description["smoothing"]), object_of(balls, description["ball"])


_MAKERS: dict[str, Callable[..., Certificate]] = {
    "compose": lambda parts: compose(*parts),
    "product": lambda parts: product(*parts),
    "repeat": lambda parts, r: repeat(parts[0], r),
    "hierarchical": lambda parts, q, r, shown: hierarchical(parts[0], q, r, shown=shown),
    "mixture": lambda parts, weights: mixture(parts, weights),
    "from_privacy": from_privacy,
    "from_gdp": from_gdp,
    "from_tradeoff": from_tradeoff,
    "inverse of from_tradeoff": inverse_of_lines,
}


def _made_by(description: dict[str, Any]) -> Certificate | None:
    if "smoothing" not in description:
        arguments = dict(description["made_by"])
        make = _MAKERS[arguments.pop("type")]
        if "parts" in arguments:
            arguments["parts"] = parts = [_part(part) for part in arguments["parts"]]
            if None in parts:
                return None
        return make(**arguments)
    scheme, ball = pair_of(description)
    return certify(scheme, ball) if _is_built_in(type(scheme), type(ball)) else None


def _part(description: dict[str, Any]) -> Certificate | None:
    """Return a part of a certificate; regions are described in full there."""
    if "mass" in description:
        return Certificate.from_regions(description["mass"], description["perturbed_mass"])
    return described(description)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _common(found: Any, stored: Any) -> Any:
    """Return what a description says of the entries that a stored one has, also in its parts."""
    if isinstance(found, dict) and isinstance(stored, dict):
        return {key: _common(value, stored[key]) for key, value in found.items() if key in stored}
    if isinstance(found, list) and isinstance(stored, list) and len(found) == len(stored):
        return [_common(one, other) for one, other in zip(found, stored, strict=True)]
    return found


def object_of(module: Any, value: Any) -> Any:
    """Return a parameter from its JSON value; objects are those of the classes of a module."""
    if isinstance(value, list):
        return tuple(object_of(module, item) for item in value)
    if not isinstance(value, dict):
        return value
    name = value["type"]
    if name not in module.__all__:
        raise ValueError(f"{name!r} is not a class of {module.__name__}")
    made = getattr(module, name)
    names = [part.name for part in fields(made) if part.name in value]  # others have defaults
    return made(**{part: object_of(module, value[part]) for part in names})


def _is_built_in(scheme: type, ball: type) -> bool:
    return any(pair[:2] == (scheme, ball) and pair[2].startswith("bincp.") for pair in registered())
