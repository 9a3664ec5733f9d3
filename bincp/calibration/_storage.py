"""Versioned JSON files of decision rules: floats as hex, levels as fractions, a checksum.

A field is written and read by one codec, which refuses whatever it would not have written. The
checksum finds every change of the content, and `_consistency` finds a rule that no calibration
could have left, whatever its checksum says.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from bincp._utils.arrays import SCORE_DTYPES
from bincp._utils.files import replace_file
from bincp._utils.levels import as_fraction, check_level
from bincp.calibration._consistency import contradiction
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._rebuild import certificate_of
from bincp.calibration._sequential import SequentialRule
from bincp.certificates import Certificate

FORMAT = "bincp decision rule"
VERSION = 3


class _Codec(NamedTuple):
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _decode_float(text: Any) -> float:
    value = float.fromhex(_decode_text(text))
    if math.isnan(value) or value.hex() != text:
        raise ValueError(f"{text!r} is not the hexadecimal form of a number")
    return value


def _decode_text(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is not a string")
    return text


def _decode_count(count: Any) -> int:
    if type(count) is not int or count < 0:
        raise ValueError(f"{count!r} is not a count")
    return count


def _decode_counts(counts: Any) -> tuple[int, ...]:
    if not isinstance(counts, list):
        raise TypeError(f"{counts!r} is not a list of counts")
    return tuple(_decode_count(count) for count in counts)


def _decode_passes(value: Any) -> Any:
    if value == "auto":
        return value
    passes = as_fraction("passes", _decode_text(value))
    if str(passes) != value or passes < 1:
        raise ValueError(f"{value!r} is not a number of passes in lowest terms")
    return passes


def _encode_boundaries(rule: SequentialRule) -> dict[str, Any]:
    return {"accept": rule.accept.tolist(), "reject": rule.reject.tolist()}


def _decode_boundaries(value: Any) -> SequentialRule:
    if not isinstance(value, dict) or set(value) != {"accept", "reject"}:
        raise TypeError(f"{value!r} is not an object of `accept` and `reject`")
    accept, reject = value["accept"], value["reject"]
    for name, counts in (("accept", accept), ("reject", reject)):
        if not isinstance(counts, list) or any(type(count) is not int for count in counts):
            raise TypeError(f"`{name}` is not a list of integers")
    return SequentialRule(accept[-1] if accept else 0, len(accept) - 1, accept, reject)


def _decode_description(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return value


def _decode_dtype(text: Any) -> str:
    if text not in SCORE_DTYPES:
        raise ValueError(f"{text!r} is not a dtype of scores")
    return str(text)


def _level(*, closed_high: bool = False) -> _Codec:
    def decode(text: Any) -> Any:
        level = check_level("level", _decode_text(text), closed_high=closed_high)
        if str(level) != text:
            raise ValueError(f"{text!r} is not a fraction in lowest terms")
        return level

    return _Codec(str, decode)


def _optional(codec: _Codec) -> _Codec:
    return _Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda value: None if value is None else codec.decode(value),
    )


_FLOAT = _Codec(float.hex, _decode_float)
_COUNT = _Codec(int, _decode_count)
_TEXT = _Codec(str, _decode_text)
_DTYPE = _Codec(str, _decode_dtype)
_COUNTS = _Codec(list, _decode_counts)
_PASSES = _Codec(str, _decode_passes)
_BOUNDARIES = _Codec(_encode_boundaries, _decode_boundaries)
_DESCRIPTION = _Codec(dict, _decode_description)

SETTINGS = {
    "alpha": _level(),
    "p": _optional(_level(closed_high=True)),
    "tau": _optional(_FLOAT),
    "correction": _TEXT,
    "union": _TEXT,
    "eta": _level(),
    "delta": _optional(_level()),
    "passes": _optional(_PASSES),
}
"""Fields of `Settings`, which are keys of the file."""

FITTED = {
    "tau": _FLOAT,
    "min_count": _optional(_COUNT),
    "rank": _optional(_COUNT),
    "success_rank": _optional(_COUNT),
    "n_calibration": _COUNT,
    "n_samples": _optional(_COUNT),
    "n_test_samples": _optional(_COUNT),
    "n_classes": _optional(_COUNT),
    "dtype": _optional(_DTYPE),
    "p": _optional(_FLOAT),
    "p_lower": _optional(_FLOAT),
    "certified_p": _optional(_FLOAT),
    "losses": _optional(_COUNTS),
    "boundaries": _optional(_BOUNDARIES),
}
"""Fields of `DecisionRule`; their keys have an underscore at the end, as the attributes have."""

_KEYS = {"format", "version", "sha256", "certificate", *SETTINGS, *(f"{name}_" for name in FITTED)}


def write(path: str | os.PathLike[str], rule: DecisionRule) -> None:
    """Write a decision rule."""
    target = _checked(path)
    settings = {
        name: codec.encode(getattr(rule.settings, name)) for name, codec in SETTINGS.items()
    }
    fitted = {f"{name}_": codec.encode(getattr(rule, name)) for name, codec in FITTED.items()}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "certificate": rule.certificate,
        **settings,
        **fitted,
    }
    document = {**content, "sha256": checksum(content)}
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    replace_file(target, lambda stream: stream.write(text.encode()))


def read(path: str | os.PathLike[str]) -> tuple[DecisionRule, Certificate | None]:
    """Read what `write` wrote, or say what is wrong with the file.

    The certificate is None where it cannot be made again from its description.
    """
    return parse(_checked(path).read_bytes(), path)


def parse(data: bytes, path: str | os.PathLike[str]) -> tuple[DecisionRule, Certificate | None]:
    """Return the rule and the certificate in the bytes of a file, which messages name."""
    document = _parsed(path, data)
    if document.get("format") != FORMAT:
        raise ValueError(f"{path}: must be a file that BinCP.save wrote, got other JSON")
    _check_version(path, document.get("version"))
    for name in sorted(_KEYS):
        if name not in document:
            raise _damaged(path, f"`{name}` is missing")
    for name in document:
        if name not in _KEYS:
            raise _damaged(path, f"{name!r} is no field of a decision rule")
    content = {name: value for name, value in document.items() if name != "sha256"}
    if document["sha256"] != checksum(content):
        raise _damaged(path, "the content does not have the checksum in `sha256`")
    rule = _decoded(path, content)
    if (cause := contradiction(rule)) is not None:
        raise _damaged(path, cause)
    try:
        return rule, certificate_of(rule)
    except ValueError as error:
        raise _damaged(path, str(error)) from None


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a document: sorted keys, ASCII, no spaces."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _checked(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be a str or path-like, got {path!r}")
    return Path(path)


def _parsed(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: a bincp decision rule must be JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path}: must be a file that BinCP.save wrote, got other JSON")
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


def _decoded(path: str | os.PathLike[str], content: dict[str, Any]) -> DecisionRule:
    def decode(name: str, codec: _Codec) -> Any:
        try:
            return codec.decode(content[name])
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise _damaged(path, f"`{name}`: {error}") from None

    settings = Settings(**{name: decode(name, codec) for name, codec in SETTINGS.items()})
    fitted = {name: decode(f"{name}_", codec) for name, codec in FITTED.items()}
    return DecisionRule(settings, certificate=decode("certificate", _DESCRIPTION), **fitted)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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


def _damaged(path: str | os.PathLike[str], cause: str) -> ValueError:
    return ValueError(f"{path}: damaged, {cause}")
