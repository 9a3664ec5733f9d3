"""Schemes, balls and shifts made again from their descriptions in JSON values."""

from dataclasses import fields
from fractions import Fraction
from typing import Any

from bincp import balls, shifts, smoothing
from bincp.balls import Ball
from bincp.certificates._described import object_of
from bincp.shifts import Shift


def scheme_of(description: dict[str, Any]) -> Any:
    """Return the smoothing scheme of a description, None where bincp does not know it."""
    return _part(smoothing, description, "smoothing")


def ball_of(description: dict[str, Any]) -> Ball | None:
    """Return the ball of a description, None where bincp does not know it."""
    found: Ball | None = _part(balls, description, "ball")
    return found


def encode_shift(shift: Shift) -> dict[str, Any]:
    """Return a shift as JSON values: numbers as fractions."""
    if not _is_of(shifts, shift):
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
    try:
        if "ball" in parts:
            parts["ball"] = object_of(balls, parts["ball"])
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
        if not _is_of(balls, value):
            raise TypeError(f"`shift.ball` must be one of bincp.balls to be saved, got {value!r}")
        return {"type": type(value).__name__} | {
            part.name: _encoded(getattr(value, part.name)) for part in fields(value)
        }
    return value


def _is_of(module: Any, value: object) -> bool:
    """Return whether a value is of a class of a module, and not of another one of that name."""
    return getattr(module, type(value).__name__, None) is type(value)


def _part(module: Any, description: dict[str, Any], name: str) -> Any:
    try:
        return object_of(module, description[name])
    except (KeyError, TypeError, ValueError):
        return None
