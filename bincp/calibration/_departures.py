"""What may differ from clean, exchangeable points: poison, wrong labels, a shift, earlier attacks.

Each has its own place in the proof, which the notes of `bincp.BinCP` give, so all can be combined:
poison changes the rank of tau, a shift the level, and an attack on the calibration inputs the
certificate.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from bincp._utils.levels import Level, as_fraction
from bincp._utils.validation import MAX_COUNT, check_flag, check_integer
from bincp.calibration._composition import worst_certificate
from bincp.calibration._conditions import TOLERANCE
from bincp.certificates import Certificate
from bincp.errors import CertificateError
from bincp.shifts import LevyProkhorov, LikelihoodRatio, Shift, TotalVariation

LABEL_NOISE = ("count", "rate", "mean-rate")
"""What may be known of wrong labels."""

LabelNoise = tuple[str, Fraction | int]

POISON = ("deletions", "insertions")
"""What an adversary may have done who replaced no point."""

Poison = int | tuple[str, int]
"""A number of replaced points, or of deleted or inserted ones."""


@dataclass(frozen=True)
class Successive(Shift):
    """A law of the second shift around a law of the first."""

    first: Shift
    second: Shift

    def _lower(self, p: Fraction) -> Fraction:
        return self.second.lower(self.first.lower(p))

    def _required(self, q: Fraction) -> Fraction | None:
        between = self.second.required(q)
        return None if between is None else self.first.required(between)


@dataclass(frozen=True, kw_only=True)
class Departures:
    """The checked options of how calibration points may differ from clean test points.

    *Points that come or go.* Let N be the number of clean points, and J(N) = floor(a (N + 1)) the
    rank that a level a allows. Where n points are seen and at most d were deleted, take the rank
    J(n + d) - d: if D <= d were, it is at most the (J(n + d) - d + D)-th smallest of the clean
    points, and J(n + d) - (d - D) <= J(n + D) = J(N), as J grows by at most 1 a point. Where at
    most d were inserted, J(n - d) will do: points that are inserted only lower an order statistic,
    and n - d <= N. Sums of losses in the place of ranks have the same two numbers. All this holds
    for one rule: the adversary chooses n, so t and the test must not depend on it.
    """

    alpha: Fraction
    poisoned: Poison = 0
    label_noise: LabelNoise | None = None
    shift: Shift | None = None
    attacked_calibration: bool = False

    names: ClassVar[tuple[str, ...]] = (
        "poisoned",
        "label_noise",
        "shift",
        "attacked_calibration",
    )

    @property
    def lost(self) -> int:
        """The most clean points that may be missing among those seen, or be others there."""
        kind, size = self._poison
        noise, count = self.label_noise or ("count", 0)
        gone = 0 if kind == "insertions" else size
        return gone + (int(count) if noise == "count" else 0)

    def clean_size(self, n: int) -> int:
        """Return the number of clean points that is worst for the rank where n are seen."""
        return max(n + self._gone, 0)

    def seen_size(self, clean: int) -> int:
        """Return the number of points seen for which so many clean ones are worst."""
        return clean - self._gone

    @property
    def resizes(self) -> bool:
        """Whether the adversary chooses how many points are seen."""
        kind, size = self._poison
        return kind in POISON and size > 0

    @property
    def _gone(self) -> int:
        """How many more points are clean than seen, in the worst case for the rank."""
        kind, size = self._poison
        return {"deletions": size, "insertions": -size}.get(kind, 0)

    @property
    def _poison(self) -> tuple[str, int]:
        return self.poisoned if isinstance(self.poisoned, tuple) else ("replaced", self.poisoned)

    @cached_property
    def drift(self) -> Shift | None:
        """All that may lie between the law of the points seen and that of the test points."""
        noise: Shift | None = None
        if self.label_noise is not None and self.label_noise[0] == "rate":
            # A share 1 - e of the law with errors is the one without.
            noise = LikelihoodRatio(0, 1 / (1 - Fraction(self.label_noise[1])))
        elif self.label_noise is not None and self.label_noise[0] == "mean-rate":
            noise = TotalVariation(self.label_noise[1])
        if noise is None or self.shift is None:
            return noise if self.shift is None else self.shift
        return Successive(noise, self.shift)

    @cached_property
    def level(self) -> Fraction:
        """The level under the law of the points seen that gives alpha under that of the tests."""
        return self.alpha if self.drift is None else self.drift.level(self.alpha)

    @cached_property
    def proof_level(self) -> Fraction:
        """The level that proofs with a tolerance aim at, so that it is not magnified by the shift.

        A share of `TOLERANCE` more under the law of the points seen is no more than that under the
        law of the tests.
        """
        if self.drift is None:
            return self.alpha
        tolerance = Fraction(str(TOLERANCE))
        most = min(self.alpha + tolerance, 1 - tolerance)
        return max(min(self.drift.level(most) - tolerance, self.level), Fraction(0))

    def check_with(self, certificate: Certificate) -> None:
        """Refuse what has no certificate: the local part of a shift, or the inverted ball."""
        for name, one in (
            ("shift", replace(self, attacked_calibration=False)),
            ("attacked_calibration", self),
        ):
            try:
                one.worst(certificate)
            except CertificateError as error:
                raise CertificateError(f"`{name}` must have a certificate: {error}") from None

    def worst(self, certificate: Certificate) -> Certificate:
        """Return the certificate from the points seen to the attacked test points."""
        local = self.shift.ball if isinstance(self.shift, LevyProkhorov) else None
        if local is None and not self.attacked_calibration:
            return certificate
        return worst_certificate(certificate, local, self.attacked_calibration)


def checked_departures(
    poisoned: Any, label_noise: Any, shift: Any, attacked_calibration: Any
) -> dict[str, Any]:
    """Return the options of `Departures`, checked."""
    if not (shift is None or isinstance(shift, Shift)):
        raise TypeError(f"`shift` must be None or a shift of bincp.shifts, got {shift!r}")
    return {
        "poisoned": check_poison(poisoned),
        "label_noise": check_label_noise(label_noise),
        "shift": shift,
        "attacked_calibration": check_flag("attacked_calibration", attacked_calibration),
    }


def check_poison(value: Any) -> Poison:
    """Return how many points were replaced, or what else was done to how many."""
    if not isinstance(value, tuple):
        return check_integer("poisoned", value, low=0)
    if len(value) != 2 or value[0] not in POISON:
        raise ValueError(
            '`poisoned` must be an integer >= 0, ("deletions", d) or ("insertions", d) with '
            f"d >= 0, got {value!r}"
        )
    return value[0], check_integer("poisoned", value[1], low=0, high=MAX_COUNT)


def check_label_noise(value: Any) -> LabelNoise | None:
    """Return what is known of wrong labels, as a count or an exact share."""
    if value is None:
        return None
    wanted = (
        '`label_noise` must be None, ("count", c) with c >= 0, or ("rate", e) or '
        f'("mean-rate", e) with e in [0, 1), got {value!r}'
    )
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise ValueError(wanted)
    kind, size = value
    if kind not in LABEL_NOISE:
        raise ValueError(wanted)
    if kind == "count":
        return kind, check_integer("label_noise", size, low=0)
    share = as_fraction("label_noise", size)
    if not 0 <= share < 1:
        raise ValueError(wanted)
    return kind, share


Noise = tuple[str, Level]
"""What the user writes for `LabelNoise`."""
