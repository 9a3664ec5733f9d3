"""The certificate from what calibration saw to the attacked test input, step after step."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp.balls import L1, L2, Ball, Linf
from bincp.calibration._described import ball_of, scheme_of
from bincp.certificates import Certificate, certify
from bincp.certificates._certificate import make_certificate

Array = npt.NDArray[np.float64]


@lru_cache(256)
def worst_certificate(
    certificate: Certificate, local: Ball | None, attacked_calibration: bool
) -> Certificate:
    """Return the certificate of all steps: calibration inputs back to clean, a shift, an attack.

    Points that were attacked before the calibration have at most the probabilities
    C(p) = 1 - c(1 - p), c the bound over the ball. A clean point with C(p) = q has p >= d(q), d the
    lower bound over the inverted ball: d, and not c, comes first.

    The same arguments give the same object, for calibrations are cached by certificate.
    """
    last = certificate if local is None else _after_a_move(certificate, local)
    return _composed(certificate.inverse(), last) if attacked_calibration else last


def _after_a_move(certificate: Certificate, local: Ball) -> Certificate:
    """Return the certificate of inputs that moved within a ball before they were attacked."""
    described = certificate.describe()
    scheme, attack = scheme_of(described), ball_of(described)
    if scheme is None or attack is None:
        raise ValueError(
            "`shift` must be without a local part for a certificate that bincp.certify did not "
            f"make of its own schemes and balls, got {local!r}; certify the ball of both moves, "
            "and give TotalVariation(rho)"
        )
    if isinstance(attack, L1 | L2 | Linf) and type(attack) is type(local):
        dim = local.dim if attack.dim is None else attack.dim
        if local.dim not in (None, dim):
            raise ValueError(f"`shift.ball` must have dim = {dim} as the attack, got {local!r}")
        r = math.nextafter(attack.r + local.r, math.inf) if local.r else attack.r
        return certify(scheme, type(attack)(r, dim))  # type: ignore[arg-type]
    return _composed(certify(scheme, local), certificate)


class _Operator:
    """Bounds of two certificates, the second one from where the first one ends."""

    name = "composition"

    def __init__(self, first: Certificate, second: Certificate) -> None:
        self._first, self._second = first, second

    def lower(self, p: float) -> float:
        return self._second.lower(self._first.lower(p))

    def upper(self, p: float) -> float:
        return self._first.upper(self._second.upper(p))

    def lower_fill(self, p: Array, out: Array) -> None:
        out[:] = self._second.lower(self._first.lower(p))

    def upper_fill(self, p: Array, out: Array) -> None:
        out[:] = self._first.upper(self._second.upper(p))


def _composed(first: Certificate, second: Certificate) -> Certificate:
    parts: dict[str, Any] = {"steps": [first.describe(), second.describe()]}
    return make_certificate(
        Certificate,
        _Operator(first, second),
        parts,
        inverse=lambda: _composed(second.inverse(), first.inverse()),
        recipe=(_composed, (first, second)),
    )
