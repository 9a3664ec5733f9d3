"""The mixture correction: the largest k that no population can make miss too often.

For a success rank t, a rank j and samples m and m', a label is refused with probability
P[Bin(m', c(p)) < k] at most, and a calibration point lies below its threshold with probability
P[Bin(m, p) < t]. Calibration bounds the mean of the second by j / (n + 1); the rule is valid iff
the mean of the first is then at most alpha for every law of p, that is, iff the upper concave
envelope of the curve of the two is at most alpha at j / (n + 1). No confidence interval and no
union bound is spent. The proof is in the notes of `bincp.BinCP`.
"""

import math
from fractions import Fraction

from bincp._curve import Curve
from bincp._requirements import MeanFailure, largest_count
from bincp.certificates import Certificate


def largest_valid_count(
    certificate: Certificate, *, t: int, rank: int, n: int, m: int, m_test: int, alpha: Fraction
) -> int:
    """Return the largest k for which a p-fixed rule has coverage at least 1 - alpha - 1e-10."""
    if rank == 0:
        return 0
    share = Fraction(rank, n + 1)
    curve = Curve.around(certificate, t, m, m_test)
    k, _ = largest_count(MeanFailure(curve, t, m, share, alpha), m_test)
    if curve.is_identity and m == m_test and share <= alpha:
        return max(k, t)  # then u = v at every p, and no grid can show it
    return k


# ---- the free choices: t and j, fixed without looking at scores ------------------------------

_MANY = 8


def default_success_rank(certificate: Certificate, m: int) -> int:
    """Return t for m samples: a share that grows with the strength of the attack."""
    if m <= 2:
        return m
    if m < _MANY:
        return math.ceil(Fraction(7, 10) * m)
    return math.ceil(default_p(certificate) * m)


def default_p(certificate: Certificate) -> Fraction:
    """Return 0.6, 0.7 or 0.8 for delta = Phi^-1(0.75) - Phi^-1(c(0.75)) <= 1/4, between, >= 1.

    delta is r / sigma for Gaussian noise.
    """
    certified = certificate.lower(0.75)
    if certified >= _AT_A_QUARTER:
        return Fraction(3, 5)
    return Fraction(7, 10) if certified > _AT_ONE else Fraction(4, 5)


# Phi(Phi^-1(0.75) - 1/4) and Phi(Phi^-1(0.75) - 1), a little outward.
_AT_A_QUARTER = 0.664394
_AT_ONE = 0.372400
