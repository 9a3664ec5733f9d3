"""The mixture correction: what it may use, and the shares of failures that ranks leave possible.

For a success rank t, a rank j and samples m and m', a label is refused with probability at most
P[Bin(m', c(p)) < k], and a calibration point lies below its threshold with probability
P[Bin(m, p) < t]. Calibration bounds the mean of the second by j / (n + 1). The rule is valid iff
the mean of the first is then at most alpha for every law of p, that is, iff the upper concave
envelope of the curve of the two is at most alpha at j / (n + 1). No confidence interval and no
union bound is spent. The proof is in the notes of `bincp.BinCP`.
"""

from dataclasses import dataclass
from fractions import Fraction

from bincp._core._binomial import cp_upper
from bincp._utils.bisection import last_integer
from bincp._utils.levels import conformal_rank, float_below, success_rank
from bincp.calibration._conditions import MeanFailure
from bincp.calibration._curve import Curve
from bincp.calibration._decision_rule import Settings
from bincp.certificates import Certificate


@dataclass(frozen=True)
class Setup:
    """Everything that the mixture correction may use before it sees a score.

    n calibration points have m samples each, a test point has m_test = m'. ``delta`` belongs to a
    training-conditional guarantee and is None for the marginal one. ``t`` is given where the user
    fixed p.
    """

    certificate: Certificate
    n: int
    m: int
    m_test: int
    alpha: Fraction
    delta: Fraction | None = None
    t: int | None = None

    @property
    def may_weigh(self) -> bool:
        """Whether counts may have losses; they have no t, and no proof given the calibration."""
        return self.delta is None and self.t is None

    @property
    def top_rank(self) -> int:
        """The largest rank that leaves a share of at most alpha to failures."""
        return top_rank(self.n, self.alpha, self.delta)

    def share(self, rank: int) -> Fraction:
        """Return the bound on the mean failure that a rank gives."""
        return share_of_failures(rank, self.n, self.delta)

    def curve(self, t: int) -> Curve:
        """Return the certificate on a grid for the success rank t."""
        return Curve.around(self.certificate, t, self.m, self.m_test)

    def condition(self, t: int, rank: int, curve: Curve | None = None) -> MeanFailure:
        """Return the condition of the p-fixed rule with these ranks, on the usual grid if None."""
        grid = self.curve(t) if curve is None else curve
        return MeanFailure(grid, t, self.m, self.share(rank), self.alpha)


def setup_of(certificate: Certificate, settings: Settings, n: int, m: int, m_test: int) -> Setup:
    """Return what the mixture correction may use under these settings before it sees a score."""
    t = None if settings.p is None else success_rank(settings.p, m)
    return Setup(certificate, n, m, m_test, settings.alpha, settings.delta, t)


def share_of_failures(rank: int, n: int, delta: Fraction | None = None) -> Fraction:
    """Return the bound on the mean failure of a further point below the rank-th of n.

    It is j / (n + 1), over the calibration set as well. With ``delta`` it is the 1 - delta quantile
    of Beta(j, n + 1 - j): given the calibration set, and for all but a share delta of those.
    """
    if delta is None:
        return Fraction(rank, n + 1)
    # That quantile is the Clopper-Pearson bound for one success less.
    return Fraction(cp_upper(rank - 1, n, float_below(delta)))


def top_rank(n: int, alpha: Fraction, delta: Fraction | None = None) -> int:
    """Return the largest rank that leaves a share of at most alpha to failures."""
    if delta is None:
        return conformal_rank(alpha, n)
    return last_integer(lambda rank: share_of_failures(rank, n, delta) <= alpha, 1, n)


def count_without_attack(setup: Setup, t: int, rank: int, curve: Curve) -> int:
    """Return t where u = v at every p for k = t, which no grid can show, else 0.

    That is the case where the certificate changes nothing and m = m'.
    """
    equal = curve.is_identity and setup.m == setup.m_test
    return t if equal and setup.share(rank) <= setup.alpha else 0
