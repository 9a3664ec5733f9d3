"""Versioned JSON files of rules, with a checksum.

The checksum finds every change of the content. A rule that no calibration could have left is found
whatever its checksum says: its fields contradict each other, or its certificate proves less.
"""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from bincp._utils.files import replace_file
from bincp.calibration._class_rules import ClassRules
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._documents import LAYOUTS, Layout, check_keys
from bincp.calibration._rebuild import certificate_of
from bincp.calibration._risk_rule import RiskRule
from bincp.certificates import Certificate

VERSION = 3

AnyRule: TypeAlias = DecisionRule | ClassRules | RiskRule
R = TypeVar("R", DecisionRule, ClassRules, RiskRule)


def write(path: str | os.PathLike[str], rule: AnyRule) -> None:
    """Write a rule of any kind."""
    write_document(path, document_of(rule))


def document_of(rule: AnyRule) -> dict[str, Any]:
    """Return the document of a rule, in plain JSON, with what made its scores if that is known."""
    layout = _layout(type(rule))
    content = {"format": layout.format, "version": VERSION, **layout.encode(rule)}
    if rule.provenance is not None:
        content["provenance"] = rule.provenance
    return sealed(content)


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the checksum of its content."""
    return {**content, "sha256": checksum(content)}


def write_document(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a document as JSON."""
    target = _checked(path)
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    replace_file(target, lambda stream: stream.write(text.encode()))


def read(path: str | os.PathLike[str]) -> tuple[AnyRule, Certificate | None]:
    """Read what `write` wrote, or say what is wrong with the file.

    The certificate is None where it cannot be made again from its description.
    """
    return parse(_checked(path).read_bytes(), path)


def read_as(kind: type[R], path: str | os.PathLike[str]) -> tuple[R, Certificate | None]:
    """Read a rule of one kind; one of another is refused, with the method that reads it."""
    rule, certificate = read(path)
    if not isinstance(rule, kind):
        wanted, other = _layout(kind).owner, _layout(type(rule)).owner
        raise ValueError(
            f"{path}: must be a file that {wanted}.save wrote, got one of {other}.save, "
            f"which {other}.load reads"
        )
    return rule, certificate


def parse(data: bytes, path: str | os.PathLike[str]) -> tuple[AnyRule, Certificate | None]:
    """Return the rule and the certificate in the bytes of a file, which messages name."""
    return of_document(_parsed(path, data), path)


def of_document(
    document: dict[str, Any], path: str | os.PathLike[str]
) -> tuple[AnyRule, Certificate | None]:
    """Return the rule and the certificate of a document in a file, which messages name."""
    layout = next((one for one in LAYOUTS if one.format == document.get("format")), None)
    if layout is None:
        raise _foreign(path)
    _check_version(path, document.get("version"))
    try:
        rule = _rule(layout, document)
        return rule, certificate_of(rule)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: damaged, {error}") from None


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a document: sorted keys, ASCII, no spaces."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _layout(kind: type) -> Layout:
    return next(layout for layout in LAYOUTS if layout.kind is kind)


def _rule(layout: Layout, document: dict[str, Any]) -> Any:
    """Return the rule of a document without faults; a ValueError says what is wrong with it."""
    allowed = {"provenance", *layout.optional_keys}
    check_keys(document, {"format", "version", "sha256", *layout.keys}, allowed)
    content = {name: value for name, value in document.items() if name != "sha256"}
    if document["sha256"] != checksum(content):
        raise ValueError("the content does not have the checksum in `sha256`")
    rule = layout.decode(content)
    if "provenance" in content:
        rule = rule.with_provenance(_provenance(content["provenance"]))
    if (cause := layout.contradiction(rule)) is not None:
        raise ValueError(cause)
    return rule


def _provenance(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"`provenance`: {value!r} is not an object")
    return value


def _checked(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be a str or path-like, got {path!r}")
    return Path(path)


def _parsed(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: a bincp decision rule must be JSON: {error}") from None
    if not isinstance(document, dict):
        raise _foreign(path)
    return document


def _check_version(path: str | os.PathLike[str], version: Any) -> None:
    if type(version) is int and version == VERSION:
        return
    cure = (
        "calibrate again and save the rule with this version of bincp"
        if type(version) is int and 1 <= version < VERSION
        else "a newer bincp may be able to read it"
    )
    raise ValueError(f"{path}: version must be {VERSION}, got {version!r}; {cure}")


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, or refuse one in which a value would hide another."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key stands twice")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond the range of doubles")
    return value


def _foreign(path: str | os.PathLike[str]) -> ValueError:
    *others, last = (f"{layout.owner}.save" for layout in LAYOUTS)
    writers = f"{', '.join(others)} or {last}"
    return ValueError(f"{path}: must be a file that {writers} wrote, got other JSON")
