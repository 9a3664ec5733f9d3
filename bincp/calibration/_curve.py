"""A certificate on a grid of probabilities: the curve that worst-case mixtures are taken of.

The grid only has to bracket the curve; any grid gives a valid rule. How tight the rule is depends
on the cells where calibration and prediction change over, so most points go there, even in
z = Phi^-1(p), and cells are divided further where they decide.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bincp._core._mixture import binomial_means, failures, normal_probabilities, normal_quantile
from bincp.certificates import Certificate, check_rising
from bincp.errors import CertificateError

Array = npt.NDArray[np.float64]

_POINTS = 600
_FOCUS = 8.0  # standard deviations around the change-over that get three quarters of the points
_WIDE = 8.0  # |z| that the rest covers
_FAR = 37.0  # |z| where Phi is 1e-299
_FAR_STEP = 1.0
MAX_POINTS = 500_000  # in some 50,000 settings 232,000 were the most that decided anything


@dataclass(frozen=True)
class Curve:
    """Grid points 0 = p_0 < ... < p_n = 1 and the certified probabilities there.

    ``q`` and ``d`` are 1 - p and 1 - c, each without cancellation; ``z`` is Phi^-1(p).
    """

    certificate: Certificate
    z: Array

    @classmethod
    def around(
        cls, certificate: Certificate, t: int, m: int, m_test: int, *, points: int = _POINTS
    ) -> "Curve":
        """Grid for t successes of m samples, and about as large a share of m' at prediction."""
        share = (t - 1 / 3) / (m + 1 / 3)  # about the median of Beta(t, m - t + 1)
        centre = normal_quantile(share)
        density = math.exp(-(centre**2) / 2) / math.sqrt(2 * math.pi)
        width = _FOCUS * math.sqrt(share * (1 - share) / min(m, m_test)) / density
        focus = np.linspace(centre - width, centre + width, 3 * points // 4)
        wide = np.linspace(-_WIDE, _WIDE, points // 4)
        far = np.arange(_WIDE, _FAR + _FAR_STEP, _FAR_STEP)
        inner = np.unique(np.clip(np.concatenate([focus, wide, far, -far]), -_FAR, _FAR))
        return cls(certificate, np.concatenate([[-np.inf], inner, [np.inf]]))

    @cached_property
    def _probabilities(self) -> tuple[Array, Array]:
        p, q = np.empty_like(self.z), np.empty_like(self.z)
        normal_probabilities(self.z, p, q)
        return p, q

    @cached_property
    def _certified(self) -> tuple[Array, Array]:
        p, q = self._probabilities
        # Far out p is 1 in doubles while q is not 0; lower(1) may be that of p = 1 alone.
        below = np.where((p == 1) & (q > 0), math.nextafter(1, 0), p)
        c = np.asarray(self.certificate.lower(below))
        d = 1 - c
        if (opposite := _mirrored_upper(self.certificate, q)) is not None:
            small = opposite < 0.5  # what a set loses, its complement gains
            d = np.where(small, opposite, d)
            c = np.where(small, 1 - opposite, c)
        check_rising(self.certificate, "lower", p, c)
        # Rounding may be replaced by a larger value from further left; a larger fall is an error.
        return np.maximum.accumulate(c), np.minimum.accumulate(d)

    @property
    def p(self) -> Array:
        """Clean probabilities."""
        return self._probabilities[0]

    @property
    def q(self) -> Array:
        """1 - p."""
        return self._probabilities[1]

    @property
    def c(self) -> Array:
        """Certified probabilities."""
        return self._certified[0]

    @property
    def d(self) -> Array:
        """1 - c."""
        return self._certified[1]

    @property
    def is_identity(self) -> bool:
        """Whether the certificate changes nothing at any grid point."""
        return np.array_equal(self.c, self.p)

    def calibration_failures(self, t: int, m: int) -> Array:
        """P[Bin(m, p) < t]: a calibration point falls below its threshold."""
        out = np.empty_like(self.z)
        failures(t, m, self.p, self.q, out)
        return out

    def prediction_failures(self, k: int, m_test: int) -> Array:
        """P[Bin(m', c) < k]: a label at the worst input is refused."""
        out = np.empty_like(self.z)
        failures(k, m_test, self.c, self.d, out)
        return out

    def expected(self, weights: Array) -> Array:
        """E[weights[S]] for S ~ Bin(m, p), given the m + 1 weights."""
        out = np.empty_like(self.z)
        binomial_means(weights, self.p, self.q, out)
        return out

    def divided(self, parts: npt.NDArray[np.intp]) -> "Curve | None":
        """Return the curve with each cell cut into so many parts, or None where it goes no further.

        The parts are even in z. The outermost cells have no width in z and are never divided.
        """
        parts[[0, -1]] = 1
        added = int(parts.sum()) - len(parts)
        if added == 0 or len(self.z) + added > MAX_POINTS:
            return None
        cells = np.repeat(np.arange(len(parts)), parts)
        place = np.arange(len(cells)) - np.repeat(np.cumsum(parts) - parts, parts)
        low, width = self.z[:-1], np.diff(self.z)
        shift = np.zeros(len(cells))
        inner = place > 0
        shift[inner] = width[cells[inner]] * (place[inner] / parts[cells[inner]])
        z = np.unique(np.append(low[cells] + shift, np.inf))
        return Curve(self.certificate, z) if len(z) > len(self.z) else None


def _mirrored_upper(certificate: Certificate, q: Array) -> Array | None:
    """Return 1 - lower(1 - q) from the upper bound over the same ball, accurate for small q."""
    try:
        return np.asarray(certificate.inverse().upper(q))
    except CertificateError:
        return None
