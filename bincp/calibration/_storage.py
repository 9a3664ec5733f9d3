"""Versioned JSON files of calibrated decision rules: floats as hex, levels as fractions, no pickle.

A field is written and read by one codec, which refuses whatever it would not have written.
"""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bincp._utils.arrays import SCORE_DTYPES
from bincp._utils.files import replace_file
from bincp._utils.levels import check_level
from bincp.calibration._clopper_pearson import CORRECTIONS, UNIONS
from bincp.calibration._mixture_rule import top_rank

if TYPE_CHECKING:
    from bincp.calibration._bincp import BinCP

FORMAT = "bincp decision rule"
VERSION = 1


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


def _decode_description(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return value


def _decode_dtype(text: Any) -> str:
    if text not in SCORE_DTYPES:
        raise ValueError(f"{text!r} is not a dtype of scores")
    return str(text)


def _optional(codec: _Codec) -> _Codec:
    return _Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda value: None if value is None else codec.decode(value),
    )


_FLOAT = _Codec(float.hex, _decode_float)
_LEVEL = _Codec(str, lambda text: check_level("level", _decode_text(text)))
_CLOSED_LEVEL = _Codec(str, lambda text: check_level("level", _decode_text(text), closed_high=True))
_COUNT = _Codec(int, _decode_count)
_TEXT = _Codec(str, _decode_text)
_DTYPE = _Codec(str, _decode_dtype)

_DESCRIPTION = _Codec(dict, _decode_description)

_FIELDS = {
    "alpha": _LEVEL,
    "p": _optional(_CLOSED_LEVEL),
    "tau": _optional(_FLOAT),
    "correction": _TEXT,
    "union": _TEXT,
    "eta": _LEVEL,
    "delta": _optional(_LEVEL),
    "tau_": _FLOAT,
    "min_count_": _optional(_COUNT),
    "rank_": _optional(_COUNT),
    "success_rank_": _optional(_COUNT),
    "n_calibration_": _COUNT,
    "n_samples_": _optional(_COUNT),
    "n_test_samples_": _optional(_COUNT),
    "n_classes_": _optional(_COUNT),
    "dtype_": _optional(_DTYPE),
    "p_": _optional(_FLOAT),
    "p_lower_": _optional(_FLOAT),
    "certified_p_": _optional(_FLOAT),
}


def write(path: str | os.PathLike[str], calibrated: "BinCP") -> None:
    """Write the decision rule of ``calibrated``."""
    fields = {name: codec.encode(getattr(calibrated, name)) for name, codec in _FIELDS.items()}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "certificate": calibrated.certificate_description,
        **fields,
    }
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    replace_file(path, lambda stream: stream.write(text.encode()))


def read(path: str | os.PathLike[str], cls: type["BinCP"]) -> "BinCP":
    """Read what `write` wrote, or say what is wrong with the file."""
    text = Path(path).read_bytes()
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: a bincp decision rule must be JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path}: must be a file that BinCP.save wrote, got other JSON")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"{path}: version must be {VERSION}, got {version!r}; "
            "a newer bincp may be able to read it"
        )
    rule = cls.__new__(cls)
    rule.certificate = None
    rule._description = _decode(path, "certificate", _DESCRIPTION, document)
    for name, codec in _FIELDS.items():
        setattr(rule, name, _decode(path, name, codec, document))
    _check_consistent(path, rule)
    return rule


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key stands twice")
    return document


def _decode(
    path: str | os.PathLike[str], name: str, codec: _Codec, document: dict[str, Any]
) -> Any:
    try:
        return codec.decode(document[name])
    except KeyError:
        raise ValueError(f"{path}: damaged, `{name}` is missing") from None
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"{path}: damaged, `{name}`: {error}") from None


def _check_consistent(path: str | os.PathLike[str], rule: "BinCP") -> None:
    """Refuse a rule that no calibration could have left."""
    sampled = (rule.min_count_, rule.n_samples_, rule.n_test_samples_, rule.dtype_)
    exact = all(field is None for field in (*sampled, rule.success_rank_))
    k, t = rule.min_count_ or 0, rule.success_rank_ or 0
    m, m_test = rule.n_samples_ or 0, rule.n_test_samples_ or 0
    conditions = {
        "a field of sampled scores is missing": exact or None not in sampled,
        "`min_count_` must be in [0, m']": k <= m_test,
        "`success_rank_` must be in [0, m]": t <= m,
        "m and m' must be in [1, 2**31)": exact or all(1 <= s < 2**31 for s in (m, m_test)),
        "`n_calibration_` must be at least 1": rule.n_calibration_ >= 1,
        "`n_classes_` must be at least 1": rule.n_classes_ is None or rule.n_classes_ >= 1,
        "at most one of `p` and `tau` may be given": rule.p is None or rule.tau is None,
    }
    conditions |= _conditions_of_correction(rule, exact)
    conditions |= _conditions_of_rank(rule, exact)
    for requirement, holds in conditions.items():
        if not holds:
            raise ValueError(f"{path}: damaged, {requirement}")


def _conditions_of_correction(rule: "BinCP", exact: bool) -> dict[str, bool]:
    bounded = rule.correction == "clopper-pearson" and not exact
    per_class = bounded and rule.union == "paper"
    return {
        "`correction` is not one that is known": rule.correction in CORRECTIONS,
        "`union` is not one that is known": rule.union in UNIONS,
        "`eta` must be below alpha": not bounded or rule.eta < rule.alpha,
        "`n_classes_` is missing": not per_class or rule.n_classes_ is not None,
        "`p_lower_` belongs to clopper-pearson alone": bounded == (rule.p_lower_ is not None),
    }


def _conditions_of_rank(rule: "BinCP", exact: bool) -> dict[str, bool]:
    """Ranks and probabilities, or none of them with count weights."""
    sampled = None if exact else rule.success_rank_
    ranked = (rule.rank_, rule.p_, rule.certified_p_)
    if rule.correction == "mixture" and not exact and (*ranked, sampled) == (None,) * 4:
        fixed = (rule.p, rule.tau, rule.delta, rule.p_lower_)
        return {
            "count weights need m > m' and nothing fixed": fixed == (None,) * 4
            and (rule.n_samples_ or 0) > (rule.n_test_samples_ or 0)
        }
    if None in ranked or (sampled is None and not exact):
        return {"a rank or a probability is missing": False}
    assert rule.rank_ is not None
    assert rule.p_ is not None
    assert rule.certified_p_ is not None
    spent = rule.eta if rule.correction == "clopper-pearson" and not exact else 0
    top = top_rank(rule.n_calibration_, rule.alpha - spent, rule.delta)
    chosen = rule.correction == "mixture" and not exact  # then it may be any up to the top
    return {
        "`rank_` must be that of alpha and n": 0 <= rule.rank_ <= top
        if chosen
        else rule.rank_ == top,
        "rank 0 accepts every label": rule.rank_ > 0
        or exact
        or (rule.min_count_ == 0 and rule.tau_ == -math.inf),
        "`p_lower_` is of another correction": rule.p_lower_ is None
        or rule.correction == "clopper-pearson",
        "probabilities must be in order": 0 <= rule.certified_p_ <= rule.p_ <= 1,
        "`p_lower_` must be in [0, p_]": rule.p_lower_ is None or 0 <= rule.p_lower_ <= rule.p_,
    }
