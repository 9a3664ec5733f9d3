"""The mixture correction: what it may use, and the shares of failures that ranks leave possible.

For a success rank t, a rank j and samples m and m', a label is refused with probability at most
P[Bin(m', c(p)) < k], and a calibration point lies below its threshold with probability
P[Bin(m, p) < t]. Calibration bounds the mean of the second by j / (n + 1). The rule is valid iff
the mean of the first is then at most alpha for every law of p, that is, iff the upper concave
envelope of the curve of the two is at most alpha at j / (n + 1). No confidence interval and no
union bound is spent. The proof is in the notes of `bincp.BinCP`.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from bincp._core._binomial import cp_upper
from bincp._utils.bisection import last_integer
from bincp._utils.levels import conformal_rank, float_below, success_rank
from bincp.calibration._conditions import MeanFailure
from bincp.calibration._curve import Curve
from bincp.calibration._decision_rule import Settings
from bincp.certificates import Certificate
from bincp.shifts import Shift


@dataclass(frozen=True)
class Setup:
    """Everything that the mixture correction may use before it sees a score.

    n clean calibration points have m samples each, a test point has m_test = m'. ``delta`` belongs
    to a training-conditional guarantee and is None for the marginal one. ``t`` is given where the
    user fixed p. ``poisoned`` points may be arbitrary.

    A shift of the test law has two proofs. Either ``alpha`` is the level that it leaves of that of
    the user; or ``inside`` is the shift, and the imagined point is drawn from the test law. A
    ``fixed_share`` takes the place of the share of failures that belongs to n and a rank, and a
    ``proof_level``, a little below ``alpha``, its place in proofs with a tolerance.
    """

    certificate: Certificate
    n: int
    m: int
    m_test: int
    alpha: Fraction
    delta: Fraction | None = None
    t: int | None = None
    poisoned: int = 0
    inside: Shift | None = None
    fixed_share: Fraction | None = None
    ranks_only: bool = False
    proof_level: Fraction | None = None

    @property
    def may_weigh(self) -> bool:
        """Whether counts may have losses.

        They have no t, and no proof given the calibration, inside a shift, or where an adversary
        chooses n.
        """
        outside = self.inside is None and self.fixed_share is None and not self.ranks_only
        return self.delta is None and self.t is None and outside

    @property
    def top_rank(self) -> int:
        """The largest rank that leaves a share of at most alpha to failures."""
        level = self.alpha if self.inside is None else self.inside.level(self.alpha)
        if self.fixed_share is not None:
            level = min(level, self.fixed_share)
        return top_rank(self.n, level, self.delta, self.poisoned)

    def share(self, rank: int) -> Fraction:
        """Return the bound on the mean failure that a rank gives.

        The points that may be arbitrary count as if all of them lay below tau.
        """
        share = self.fixed_share
        if share is None:
            share = share_of_failures(rank + self.poisoned, self.n, self.delta)
        return share if self.inside is None else 1 - self.inside.lower(1 - share)

    @property
    def target(self) -> Fraction:
        """The level that proofs with a tolerance aim at."""
        return self.alpha if self.proof_level is None else self.proof_level

    def curve(self, t: int) -> Curve:
        """Return the certificate on a grid for the success rank t."""
        return Curve.around(self.certificate, t, self.m, self.m_test)

    def condition(self, t: int, rank: int, curve: Curve | None = None) -> MeanFailure:
        """Return the condition of the p-fixed rule with these ranks, on the usual grid if None."""
        grid = self.curve(t) if curve is None else curve
        return MeanFailure(grid, t, self.m, self.share(rank), self.target)


def setups_of(
    certificate: Certificate,
    settings: Settings,
    n: int,
    m: int,
    m_test: int,
    share: Fraction | None = None,
) -> tuple[Setup, ...]:
    """Return what the mixture correction may use under these settings before it sees a score.

    n points are seen. A rule that is valid in one of the setups is valid.
    """
    outside = Setup(
        settings.worst(certificate),
        settings.clean_size(n),
        m,
        m_test,
        settings.level,
        settings.delta,
        None if settings.p is None else success_rank(settings.p, m),
        settings.lost,
        fixed_share=share,
    )
    if settings.drift is None:
        return (outside,)
    inside = replace(outside, alpha=settings.alpha, inside=settings.drift)
    return replace(outside, proof_level=settings.proof_level), inside


def share_of_failures(rank: int, n: int, delta: Fraction | None = None) -> Fraction:
    """Return the bound on the mean failure of a further point below the rank-th of n.

    It is j / (n + 1), over the calibration set as well. With ``delta`` it is the 1 - delta quantile
    of Beta(j, n + 1 - j): given the calibration set, and for all but a share delta of those.
    """
    if delta is None:
        return Fraction(rank, n + 1)
    # That quantile is the Clopper-Pearson bound for one success less.
    return Fraction(cp_upper(rank - 1, n, float_below(delta)))


def top_rank(n: int, alpha: Fraction, delta: Fraction | None = None, poisoned: int = 0) -> int:
    """Return the largest rank that leaves a share of at most alpha to failures, 0 for none.

    Of the clean points up to the rank above, all but the poisoned ones are still there.
    """
    if delta is None:
        rank = conformal_rank(alpha, n)
    else:
        rank = last_integer(lambda rank: share_of_failures(rank, n, delta) <= alpha, 1, n)
    return max(rank - poisoned, 0)


def count_without_attack(setup: Setup, t: int, rank: int, curve: Curve) -> int:
    """Return t where u = v at every p for k = t, which no grid can show, else 0.

    That is the case where the certificate changes nothing and m = m'.
    """
    equal = curve.is_identity and setup.m == setup.m_test
    return t if equal and setup.share(rank) <= setup.alpha else 0
