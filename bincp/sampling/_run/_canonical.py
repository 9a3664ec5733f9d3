"""Canonical JSON with a checksum: one content has one form, and any other bytes are damaged."""

import hashlib
import json
import re
from typing import Any

_HEX = re.compile(r"-?0x[01]\.[0-9a-f]+p[+-][0-9]+")


def encode(content: dict[str, Any]) -> bytes:
    """Return the only bytes that `decode` takes for a content, its checksum included."""
    return _form({**content, "sha256": digest(content)})


def digest(content: Any) -> str:
    """Return the SHA-256 of a JSON value."""
    return hashlib.sha256(_form(content)).hexdigest()


def decode(data: bytes, name: str, kind: str) -> dict[str, Any]:
    """Return the content of a file of one kind, or say that the file is damaged."""
    try:
        content = json.loads(data)
        checksum = content.pop("sha256")
        intact = checksum == digest(content) and encode(content) == data
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        intact = False
    if not intact:
        raise ValueError(f"{name}: damaged, the content does not have its checksum")
    if content.get("format") != kind or content.get("version") != 1:
        found = f"{content.get('format')} of version {content.get('version')}"
        raise ValueError(f"{name}: must be a {kind} of version 1, got {found}")
    return content  # type: ignore[no-any-return]


def hexed(value: Any) -> Any:
    """Return a JSON value with its floats as hexadecimal text, which is exact and has one form."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {key: hexed(item) for key, item in value.items()}
    return [hexed(item) for item in value] if isinstance(value, list | tuple) else value


def readable(value: Any) -> Any:
    """Return a JSON value with its hexadecimal floats as numbers, for a message."""
    if isinstance(value, str) and _HEX.fullmatch(value):
        return float.fromhex(value)
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    return [readable(item) for item in value] if isinstance(value, list) else value


def _form(content: Any) -> bytes:
    return (json.dumps(content, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")
