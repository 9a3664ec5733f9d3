"""What the file of each kind of rule holds: its fields, and how the rule is made of them.

The rules of all classes are one document: what they share stands once, and each class has its own
fields, or null where it has no points.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from bincp.calibration._class_rules import ClassRules
from bincp.calibration._codecs import (
    BOUNDARIES,
    COUNT,
    COUNTS,
    DESCRIPTION,
    DTYPE,
    FLAG,
    FLOAT,
    LABEL_NOISE,
    PASSES,
    POISON,
    SHARE,
    SHIFT,
    TEXT,
    TOTAL,
    Codec,
    level,
    optional,
)
from bincp.calibration._consistency import contradiction
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._departures import Departures
from bincp.calibration._risk_consistency import contradiction as risk_contradiction
from bincp.calibration._risk_rule import RiskRule, RiskSettings

Fields = dict[str, Codec]

DEPARTURES: Fields = {
    "poisoned": POISON,
    "label_noise": LABEL_NOISE,
    "shift": SHIFT,
    "attacked_calibration": FLAG,
}
"""Fields of `Departures`."""

SHARE_OF_ALL_SIZES: Fields = {"share": SHARE}
"""A field of `DecisionRule`."""

_DEFAULTS = {
    **{part.name: part.default for part in dataclasses.fields(Departures)},
    "share": None,
    "boundaries": None,
    "passes": None,
    "additive": False,
}
"""Fields with these values are not in the file.

A reader that does not know a field refuses a file with it, for it takes no unknown keys.
"""

SETTINGS: Fields = {
    "alpha": level(),
    "p": optional(level(closed_high=True)),
    "tau": optional(FLOAT),
    "correction": TEXT,
    "union": TEXT,
    "eta": level(),
    "delta": optional(level()),
    "passes": optional(PASSES),
}
"""Fields of `Settings`, which are keys of the file."""

FITTED: Fields = {
    "tau": FLOAT,
    "min_count": optional(COUNT),
    "rank": optional(COUNT),
    "success_rank": optional(COUNT),
    "n_calibration": COUNT,
    "n_samples": optional(COUNT),
    "n_test_samples": optional(COUNT),
    "n_classes": optional(COUNT),
    "dtype": optional(DTYPE),
    "p": optional(FLOAT),
    "p_lower": optional(FLOAT),
    "certified_p": optional(FLOAT),
    "losses": optional(COUNTS),
    "boundaries": optional(BOUNDARIES),
}
"""Fields of `DecisionRule`; their keys have an underscore at the end, as the attributes have."""

RISK_SETTINGS: Fields = {
    "alpha": level(),
    "p": optional(level(closed_high=True)),
    "loss": optional(TEXT),
    "correction": TEXT,
    "eta": level(),
}
"""Fields of `RiskSettings`."""

RARE_RISK_SETTINGS: Fields = {
    **{name: codec for name, codec in DEPARTURES.items() if name != "attacked_calibration"},
    "passes": PASSES,
    "additive": FLAG,
}
"""Further fields of `RiskSettings`."""

RARE_RISK_FITTED: Fields = {"share": SHARE, "boundaries": BOUNDARIES}
"""Further fields of `RiskRule`."""

RISK_FITTED: Fields = {
    "tau": FLOAT,
    "min_count": optional(COUNT),
    "success_rank": optional(COUNT),
    "total_loss": optional(TOTAL),
    "n_calibration": COUNT,
    "n_classes": COUNT,
    "n_samples": optional(COUNT),
    "n_test_samples": optional(COUNT),
    "dtype": optional(DTYPE),
    "p": FLOAT,
    "p_lower": optional(FLOAT),
    "certified_p": FLOAT,
}
"""Fields of `RiskRule`."""

_CERTIFICATE: Fields = {"certificate": DESCRIPTION}
_SHARED = {name: FITTED[name] for name in ("n_samples", "n_test_samples", "dtype")}
_OF_A_CLASS = {name: codec for name, codec in FITTED.items() if name not in (*_SHARED, "n_classes")}
"""Fields that all classes have in common, and those that each class has of its own."""


_NONE: AbstractSet[str] = frozenset()


class Layout(NamedTuple):
    """The document of one kind of rule, less what every file has: format, version and checksum.

    ``decode`` and ``contradiction`` find what is wrong with it: the one raises a ValueError, the
    other returns the complaint, or None.
    """

    format: str
    kind: type
    owner: str
    """The public class that saves and loads the rule."""
    keys: set[str]
    optional_keys: set[str]
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[dict[str, Any]], Any]
    contradiction: Callable[[Any], str | None]


def check_keys(
    document: dict[str, Any],
    wanted: set[str],
    allowed: AbstractSet[str] = frozenset(),
    where: str = "",
) -> None:
    """Refuse a document that lacks keys that are wanted, or has some that are not allowed."""
    for name in sorted(wanted):
        if name not in document:
            raise ValueError(f"{where}`{name}` is missing")
    for name in document:
        if name not in wanted and name not in allowed:
            raise ValueError(f"{where}{name!r} is no field of a decision rule")


# ---- fields ----------------------------------------------------------------------------------


def _keys(fields: Fields) -> set[str]:
    return {f"{name}_" for name in fields}


def _encoded(values: object, fields: Fields, end: str = "_") -> dict[str, Any]:
    return {f"{name}{end}": codec.encode(getattr(values, name)) for name, codec in fields.items()}


def _encoded_if_set(values: object, fields: Fields, end: str = "_") -> dict[str, Any]:
    """Encode the fields that do not have their default."""
    chosen = {name: codec for name, codec in fields.items() if not _is_default(values, name)}
    return _encoded(values, chosen, end)


def _is_default(values: object, name: str) -> bool:
    return bool(getattr(values, name) == _DEFAULTS[name])


def _decoded(
    document: dict[str, Any], fields: Fields, end: str = "_", where: str = ""
) -> dict[str, Any]:
    """Return the values of fields, whose keys end in `end`; `where` names their class."""

    def decode(key: str, codec: Codec) -> Any:
        try:
            return codec.decode(document[key])
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise ValueError(f"{where}`{key}`: {error}") from None

    return {name: decode(f"{name}{end}", codec) for name, codec in fields.items()}


def _decoded_if_set(document: dict[str, Any], fields: Fields, end: str = "_") -> dict[str, Any]:
    """Decode the fields that are there, which must not have their default."""
    found = {name: codec for name, codec in fields.items() if f"{name}{end}" in document}
    values = _decoded(document, found, end)
    for name, value in values.items():
        if value == _DEFAULTS[name]:
            raise ValueError(f"`{name}{end}`: {value!r} is not written")
    return values


# ---- one rule --------------------------------------------------------------------------------


def _layout_of_one(
    name: str,
    kind: type,
    owner: str,
    settings_kind: type,
    settings: Fields,
    fitted: Fields,
    rare_settings: Fields,
    rare: Fields,
    contradicted: Callable[[Any], str | None],
) -> Layout:
    """Return the layout of a rule with settings, fitted values and a certificate."""

    def encode(rule: Any) -> dict[str, Any]:
        return {
            **_encoded(rule, _CERTIFICATE, ""),
            **_encoded(rule.settings, settings, ""),
            **_encoded_if_set(rule.settings, rare_settings, ""),
            **_encoded(rule, fitted),
            **_encoded_if_set(rule, rare),
        }

    def decode(document: dict[str, Any]) -> Any:
        return kind(
            settings=settings_kind(
                **_decoded(document, settings, ""), **_decoded_if_set(document, rare_settings, "")
            ),
            **_decoded(document, _CERTIFICATE, ""),
            **_decoded(document, fitted),
            **_decoded_if_set(document, rare),
        )

    keys = {*_CERTIFICATE, *settings, *_keys(fitted)}
    more = {*rare_settings, *_keys(rare)}
    return Layout(name, kind, owner, keys, more, encode, decode, contradicted)


# ---- the rules of classes --------------------------------------------------------------------


def _encoded_classes(rules: ClassRules) -> dict[str, Any]:
    one = rules.made[0]
    return {
        **_encoded(one, _CERTIFICATE, ""),
        **_encoded(one.settings, SETTINGS, ""),
        **_encoded_if_set(one.settings, DEPARTURES, ""),
        **_encoded(one, _SHARED),
        **_encoded_if_set(one, SHARE_OF_ALL_SIZES),
        "classes": [rule if rule is None else _encoded(rule, _OF_A_CLASS) for rule in rules.rules],
    }


def _decoded_classes(document: dict[str, Any]) -> ClassRules:
    common = {
        "settings": Settings(
            **_decoded(document, SETTINGS, ""), **_decoded_if_set(document, DEPARTURES, "")
        ),
        **_decoded(document, _CERTIFICATE, ""),
        **_decoded(document, _SHARED),
        **_decoded_if_set(document, SHARE_OF_ALL_SIZES),
        "n_classes": 1,
    }
    classes = document["classes"]
    if not isinstance(classes, list):
        raise ValueError(f"`classes`: {classes!r} is not a list")
    rules: list[DecisionRule | None] = []
    for label, fields in enumerate(classes):
        if fields is None:
            rules.append(None)
            continue
        where = f"class {label}: "
        if not isinstance(fields, dict):
            raise ValueError(f"{where}{fields!r} is not an object")
        check_keys(fields, _keys(_OF_A_CLASS), where=where)
        rules.append(DecisionRule(**common, **_decoded(fields, _OF_A_CLASS, where=where)))
    return ClassRules(tuple(rules))


LAYOUTS = (
    _layout_of_one(
        "bincp decision rule",
        DecisionRule,
        "BinCP",
        Settings,
        SETTINGS,
        FITTED,
        DEPARTURES,
        SHARE_OF_ALL_SIZES,
        contradiction,
    ),
    Layout(
        "bincp decision rules of classes",
        ClassRules,
        "MondrianBinCP",
        {*_CERTIFICATE, *SETTINGS, *_keys(_SHARED), "classes"},
        {*DEPARTURES, *_keys(SHARE_OF_ALL_SIZES)},
        _encoded_classes,
        _decoded_classes,
        contradiction,
    ),
    _layout_of_one(
        "bincp rule of risk control",
        RiskRule,
        "RobustRiskControl",
        RiskSettings,
        RISK_SETTINGS,
        RISK_FITTED,
        RARE_RISK_SETTINGS,
        RARE_RISK_FITTED,
        risk_contradiction,
    ),
)
