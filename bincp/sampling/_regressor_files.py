"""Files of regressors: the score beside the file of a rule, which does not know it."""

import os
from typing import Any, NamedTuple

from bincp.calibration import BinCP, _storage
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._described import ball_of, scheme_of
from bincp.calibration._documents import check_keys
from bincp.regression._scores import score_of

FORMAT, VERSION = "bincp regressor", 1
_DTYPES = (None, "float32", "float64")  # of predictions; None where a given rule was not calibrated


class Saved(NamedTuple):
    """What a file holds: the score, the dtype of the predictions, and the rule."""

    score: str
    dtype: str | None
    rule: DecisionRule


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    content = {
        "format": FORMAT,
        "version": VERSION,
        "score": saved.score,
        "dtype": saved.dtype,
        "rule": _storage.document_of(saved.rule),
    }
    _storage.write_document(path, _storage.sealed(content))


def read(path: str | os.PathLike[str]) -> tuple[Saved, BinCP, tuple[Any, Any] | None]:
    """Return what a file holds, its rule, and scheme and ball, None where they are not ours."""
    document = _storage.read_document(path)
    if document.get("format") != FORMAT:
        raise ValueError(
            f"{path}: must be a file that RobustRegressor.save wrote, "
            f"got the format {document.get('format')!r}"
        )
    if type(document.get("version")) is not int or document["version"] != VERSION:
        raise ValueError(
            f"{path}: version must be {VERSION}, got {document.get('version')!r}; calibrate again, "
            "or read it with the bincp that wrote it"
        )
    try:
        _check(document)
        found, certificate = _storage.of_document(document["rule"], path)
        if not isinstance(found, DecisionRule) or not found.is_sampled:
            raise ValueError("`rule` is not a rule of sampled scores of BinCP")
    except ValueError as error:
        raise ValueError(f"{path}: damaged, {error}") from None
    saved = Saved(document["score"], document["dtype"], found)
    pair = scheme_of(found.certificate), ball_of(found.certificate)
    known = certificate is not None and None not in pair  # one made of others names no pair
    return saved, BinCP._with_rule(found, certificate), pair if known else None


def _check(document: dict[str, Any]) -> None:
    check_keys(document, {"format", "version", "score", "dtype", "rule", "sha256"})
    content = {name: value for name, value in document.items() if name != "sha256"}
    if document["sha256"] != _storage.checksum(content):
        raise ValueError("the content does not have the checksum in `sha256`")
    score_of(document["score"])
    if document["dtype"] not in _DTYPES:
        raise ValueError(f"`dtype`: {document['dtype']!r} is not a dtype of predictions")
    if not isinstance(document["rule"], dict):
        raise ValueError("`rule` is not an object")
