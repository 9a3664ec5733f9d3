"""How the values of a decision rule go to JSON and back: floats as hex, levels as fractions.

A value is written and read by one codec, which refuses whatever it would not have written.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from bincp._utils.arrays import SCORE_DTYPES
from bincp._utils.levels import as_fraction, check_level
from bincp.calibration._departures import check_label_noise, check_poison
from bincp.calibration._described import decode_shift, encode_shift
from bincp.calibration._sequential import SequentialRule


class Codec(NamedTuple):
    """A pair of functions, to JSON and back; ``decode`` raises for what ``encode`` never wrote."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def level(*, closed_high: bool = False) -> Codec:
    """Return the codec of fractions in (0, 1), or in (0, 1]."""

    def decode(text: Any) -> Any:
        value = check_level("level", _decode_text(text), closed_high=closed_high)
        if str(value) != text:
            raise ValueError(f"{text!r} is not a fraction in lowest terms")
        return value

    return Codec(str, decode)


def optional(codec: Codec) -> Codec:
    """Return the codec of values that may be None, which is null."""
    return Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda value: None if value is None else codec.decode(value),
    )


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


def _decode_total(text: Any) -> Fraction:
    total = as_fraction("total", _decode_text(text))
    if str(total) != text or total < 0:
        raise ValueError(f"{text!r} is not a sum of losses in lowest terms")
    return total


def _decode_share(text: Any) -> Fraction:
    share = as_fraction("share", _decode_text(text))
    if str(share) != text or not 0 <= share < 1:
        raise ValueError(f"{text!r} is not a share in lowest terms")
    return share


def _encode_label_noise(noise: Any) -> dict[str, Any]:
    kind, size = noise
    return {"kind": kind, "size": size if kind == "count" else str(size)}


def _decode_label_noise(value: Any) -> Any:
    if not isinstance(value, dict) or set(value) != {"kind", "size"}:
        raise TypeError(f"{value!r} is not an object of `kind` and `size`")
    noise = check_label_noise((value["kind"], value["size"]))
    if _encode_label_noise(noise) != value:
        raise ValueError(f"{value!r} is not what is known of label noise, in lowest terms")
    return noise


def _encode_poison(poison: Any) -> Any:
    return {"kind": poison[0], "size": poison[1]} if isinstance(poison, tuple) else poison


def _decode_poison(value: Any) -> Any:
    if not isinstance(value, dict):
        return _decode_count(value)
    if set(value) != {"kind", "size"} or type(value["size"]) is not int:
        raise TypeError(f"{value!r} is not a count, or an object of `kind` and `size`")
    return check_poison((value["kind"], value["size"]))


def _decode_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


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


FLOAT = Codec(float.hex, _decode_float)
COUNT = Codec(int, _decode_count)
TEXT = Codec(str, _decode_text)
DTYPE = Codec(str, _decode_dtype)
COUNTS = Codec(list, _decode_counts)
POISON = Codec(_encode_poison, _decode_poison)
SHARE = Codec(str, _decode_share)
LABEL_NOISE = Codec(_encode_label_noise, _decode_label_noise)
SHIFT = Codec(encode_shift, decode_shift)
FLAG = Codec(bool, _decode_flag)
PASSES = Codec(str, _decode_passes)
TOTAL = Codec(str, _decode_total)
BOUNDARIES = Codec(_encode_boundaries, _decode_boundaries)
DESCRIPTION = Codec(dict, _decode_description)
