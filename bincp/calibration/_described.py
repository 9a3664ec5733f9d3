"""Schemes, balls, shifts and certificates made again from their descriptions in JSON values."""

import json
from dataclasses import fields
from fractions import Fraction
from typing import Any

from bincp import balls, shifts, smoothing
from bincp.balls import Ball
from bincp.certificates import Certificate, certify, registered
from bincp.errors import CertificateError
from bincp.shifts import Shift


def certificate_described(description: dict[str, Any]) -> Certificate | None:
    """Return the certificate of a pair that bincp knows by itself, None for any other.

    The certificate of that pair must have the same description.
    """
    scheme, ball = scheme_of(description), ball_of(description)
    if scheme is None or ball is None or not _is_built_in(type(scheme), type(ball)):
        return None
    try:
        certificate = certify(scheme, ball)
    except (TypeError, ValueError, CertificateError):
        return None
    # What later versions say beside it is no difference: the bounds are compared anyway.
    same = json.dumps(_common(certificate.describe(), description), sort_keys=True) == json.dumps(
        description, sort_keys=True
    )
    return certificate if same else None


def scheme_of(description: dict[str, Any]) -> Any:
    """Return the smoothing scheme of a description, None where bincp does not know it."""
    return _part(smoothing, description, "smoothing")


def ball_of(description: dict[str, Any]) -> Ball | None:
    """Return the ball of a description, None where bincp does not know it."""
    found: Ball | None = _part(balls, description, "ball")
    return found


def encode_shift(shift: Shift) -> dict[str, Any]:
    """Return a shift as JSON values: numbers as fractions."""
    if type(shift).__name__ not in shifts.__all__:
        raise TypeError(f"`shift` must be one of bincp.shifts to be saved, got {shift!r}")
    return {"type": type(shift).__name__} | {
        part.name: _encoded(getattr(shift, part.name)) for part in fields(shift)
    }


def decode_shift(value: Any) -> Shift:
    """Return the shift that `encode_shift` wrote; anything else is refused."""
    if not isinstance(value, dict) or value.get("type") not in shifts.__all__:
        raise ValueError(f"{value!r} is not a shift of bincp.shifts")
    kind = getattr(shifts, value["type"])
    parts = {name: part for name, part in value.items() if name != "type"}
    if "ball" in parts:
        parts["ball"] = _made(balls, parts["ball"])
    try:
        shift: Shift = kind(**parts)
    except KeyError as error:
        raise ValueError(f"{value!r} lacks {error}") from None
    if encode_shift(shift) != value:
        raise ValueError(f"{value!r} is not a shift in lowest terms")
    return shift


# ---- parts -----------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Ball):
        return {"type": type(value).__name__} | {
            part.name: _encoded(getattr(value, part.name)) for part in fields(value)
        }
    return value


def _common(described: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if key in stored}


def _part(module: Any, description: dict[str, Any], name: str) -> Any:
    try:
        return _made(module, description[name])
    except (KeyError, TypeError, ValueError):
        return None


def _made(module: Any, value: Any) -> Any:
    """Return a parameter from its JSON value; objects are those of the classes of a module."""
    if isinstance(value, list):
        return tuple(_made(module, item) for item in value)
    if not isinstance(value, dict):
        return value
    name = value["type"]
    if name not in module.__all__:
        raise ValueError(f"{name!r} is not a class of {module.__name__}")
    made = getattr(module, name)
    names = [part.name for part in fields(made) if part.name in value]  # others have defaults
    return made(**{part: _made(module, value[part]) for part in names})


def _is_built_in(scheme: type, ball: type) -> bool:
    return any(pair[:2] == (scheme, ball) and pair[2].startswith("bincp.") for pair in registered())
