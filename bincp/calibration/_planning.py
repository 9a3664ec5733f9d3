"""Planning: k and the other numbers of a calibration, before any model call.

With p fixed, only tau of the rule "at least k of m' scores reach tau" depends on the scores. All
else follows from the certificate and a few numbers, so it can be computed and chosen in advance.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from bincp._utils.drawing import draw
from bincp._utils.levels import Level, check_level, conformal_rank, float_below, success_rank
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.calibration._arguments import check_test_samples
from bincp.calibration._choice import (
    FEWEST_SAMPLES_FOR_TOP_RANK,
    choose,
    default_p,
    default_success_rank,
)
from bincp.calibration._clopper_pearson import clopper_pearson_rule, eta_of_bound, uncorrected_rule
from bincp.calibration._mixture import Setup
from bincp.calibration._search import Price, choose_rule
from bincp.calibration._sequential import SequentialRule
from bincp.calibration._triviality import too_few_points, too_weak
from bincp.certificates import Certificate, as_certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plan", "plan"]

MOST_SAMPLES = 10_000
"""Draws of sequential tests, and `Plan.smallest_samples`, are computed up to here; more is slow."""

_GRID = 33  # success probabilities at once in the search for the worst
_ROUNDS = 4  # of refinement, each by a factor of 16
_PICTURED = 60  # numbers of samples in the picture


@dataclass(frozen=True)
class Plan:
    """The numbers that calibration will find whatever the scores are; made by `plan`.

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produces the scores and the ball to defend against.
    n, m, n_test_samples : int
        Calibration points, samples of each of them, and samples m' of an input at prediction.
    alpha, eta : Fraction
        Miscoverage level, and the part of it that "clopper-pearson" spends on sampling.
    p : Fraction or None
        The argument `p` of `BinCP`.
    n_classes : int or None
        K.
    success_rank, rank : int or None
        t and j of ``correction="mixture"``: tau is the j-th smallest over the calibration points of
        their t-th largest scores. None with count weights, which are used where m > m' and p is
        None.
    min_count : int
        k of ``correction="mixture"``: a label is accepted iff at least k of its m' scores reach
        tau. 0 means that every label will be in every set.
    two_bounds_count, per_bound_count : int or None
        k of ``correction="clopper-pearson"`` with ``union="two-bounds"`` and with
        ``union="per-bound"``, the latter None without `n_classes`. Both at `compared_success_rank`.
    certified_p : float or None
        c(t / m), the certified lower bound. With ever more samples k / m' tends to it.
    recommended_p : Fraction
        p for this certificate and m: 0.6, 0.7 or 0.8, or more where the certificate is steep.

    Notes
    -----
    A plan depends on no data, so choosing n, m, m' or p by it leaves the guarantee intact. Choosing
    by the size of the sets on calibration or test points does not.
    """

    certificate: Certificate
    n: int
    m: int
    n_test_samples: int
    alpha: Fraction
    eta: Fraction
    p: Fraction | None
    n_classes: int | None
    success_rank: int | None
    rank: int | None
    min_count: int
    two_bounds_count: int
    per_bound_count: int | None
    certified_p: float | None
    recommended_p: Fraction

    @property
    def ghost_count(self) -> int:
        """An older name of `two_bounds_count`."""
        return self.two_bounds_count

    @property
    def paper_count(self) -> int | None:
        """An older name of `per_bound_count`."""
        return self.per_bound_count

    @property
    def share(self) -> float:
        """The ratio k / m': the share of the scores that must reach tau."""
        return self.min_count / self.n_test_samples

    @property
    def limit(self) -> float:
        """c(p), what `share` tends to with ever more samples; p is the recommended one if None."""
        p = float_below(self.recommended_p if self.p is None else self.p)
        return min(self.certificate.lower(p), p)

    @property
    def compared_success_rank(self) -> int:
        """The success rank t, or where count weights have none, that of the recommended p."""
        if self.success_rank is None:
            return default_success_rank(self.certificate, self.m)
        return self.success_rank

    @property
    def trivial_cause(self) -> str | None:
        """Why every label will be in every prediction set, and the cure; None if it will not."""
        if conformal_rank(self.alpha, self.n) == 0:
            return too_few_points(self.n, self.alpha)
        if self.min_count == 0:
            return too_weak(self.n, self.m, self.n_test_samples, self.alpha)
        return None

    @cached_property
    def curtailed_draws(self) -> float | None:
        """Draws until a label is decided, where drawing stops once the decision is certain.

        The mean for the worst success probability. An input is drawn until the last of its labels
        is decided, and one forward pass is a draw for all of them. None for m' above 10,000.
        """
        if self.n_test_samples > MOST_SAMPLES:
            return None
        return _most_draws(SequentialRule.curtailed(self.min_count, self.n_test_samples))

    @cached_property
    def sequential_draws(self) -> float | None:
        """As `curtailed_draws`, with the test of `BinCP.sequential_rule`."""
        if self.n_test_samples > MOST_SAMPLES:
            return None
        return _most_draws(self._sequential_rule())

    def smallest_samples(self, loss: Level) -> int | None:
        """Return the least m' = m whose k / m' is close to the limit of infinitely many samples.

        Parameters
        ----------
        loss : int, float, str, Decimal or Fraction
            In (0, 1).

        Returns
        -------
        int or None
            The least m' = m >= 8 with k / m' >= (1 - loss) c(t / m), hence at least
            (1 - loss) c(p). None where m' = 10,000 is not enough, or c(p) is 0.

        Raises
        ------
        TypeError, ValueError
            If `loss` is not a number in (0, 1).

        Notes
        -----
        With fewer than 8 samples, or with a rank that was lowered to allow any k > 0, sets are
        large because of the rank, and k / m' says little. Such m are not counted. The search skips
        every m that k could reach only by growing by more than one a sample.

        Examples
        --------
        >>> import bincp
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
        >>> plan = bincp.plan(certificate, n=200, m=64)
        >>> plan.smallest_samples(0.1), plan.smallest_samples(0.02)
        (10, 33)
        """
        share = 1 - check_level("loss", loss)
        if conformal_rank(self.alpha, self.n) == 0 or self.limit == 0:
            return None
        if self._samples_to_add(MOST_SAMPLES, share):
            return None
        m = FEWEST_SAMPLES_FOR_TOP_RANK
        while more := self._samples_to_add(m, share):
            m += more
        return m

    def plot(self, target: "str | PathLike[str] | Axes") -> "Axes":
        """Draw k / m' against m' = m for each correction, and its limit c(p).

        Parameters
        ----------
        target : str, path-like or matplotlib.axes.Axes
            A file, whose ending says the format, or where to draw.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `target` is something else.
        ValueError
            If matplotlib does not know the format.
        OSError
            If the file cannot be written.
        """
        return draw(self._draw, target)

    def __str__(self) -> str:
        m_test = self.n_test_samples
        lines = [
            f"n = {self.n} calibration points with m = {self.m} scores each, m' = {m_test} at "
            f"prediction, alpha = {self.alpha}",
            f"a label will be in the set iff at least k = {self.min_count} of its m' = {m_test} "
            "scores reach tau",
            self._origin_of_tau(),
            "",
            _HEADER,
            *(f"{name:<28}{k:>8}{k / m_test:>10.4f}" for name, k in self._counts()),
            f"{self._name_of_limit():<28}{'':>8}{self._limit_at_t():>10.4f}",
        ]
        if self.curtailed_draws is not None:
            lines += [
                "",
                "draws until a label is decided, mean in the worst case:",
                f"{self.curtailed_draws:.1f} curtailed, {self.sequential_draws:.1f} sequential, "
                f"of {m_test}",
            ]
        lines += ["", f"recommended p: {float(self.recommended_p):g}"]
        if (cause := self.trivial_cause) is not None:
            lines += ["", f"every label will be in every prediction set: {cause}"]
        return "\n".join(lines)

    # ---- parts ------------------------------------------------------------------------------

    def _sequential_rule(self) -> SequentialRule:
        """Return the rule of `BinCP` with ``passes="auto"``."""
        setup = self._setup(self.m, self.n_test_samples)
        if self.p is not None:
            setup = replace(setup, t=self.success_rank)
        return choose_rule(setup, Price()).test.rule

    def _setup(self, m: int, m_test: int) -> Setup:
        return Setup(self.certificate, self.n, m, m_test, self.alpha)

    def _samples_to_add(self, m: int, share: Fraction) -> int:
        """Return how many more than m are needed for a share of c(t / m), at least; 0 if none."""
        t, rank, k = choose(self._setup(m, m), self.p)
        enough = k >= share * Fraction(_certified(self.certificate, t, m)) * m
        if enough and rank >= conformal_rank(self.alpha, self.n) - 1:
            return 0
        wanted = share * Fraction(self.limit)  # t / m may fall to p, and no further
        return max(1, int((wanted * m - k) / (1 - wanted)))

    def _counts(self) -> list[tuple[str, int]]:
        counts = [
            ("mixture", self.min_count),
            ("clopper-pearson, two-bounds", self.two_bounds_count),
        ]
        if self.per_bound_count is not None:
            counts.append(("clopper-pearson, per-bound", self.per_bound_count))
        return counts

    def _origin_of_tau(self) -> str:
        if self.rank is None:
            return "(tau: by count weights, for m > m')"
        if self.rank == 0:
            return "(tau = -inf)"
        return (
            f"(tau: of the points' scores with rank t = {self.success_rank} from above, the one "
            f"with rank j = {self.rank} from below)"
        )

    def _limit_at_t(self) -> float:
        return self.limit if self.certified_p is None else self.certified_p

    def _name_of_limit(self) -> str:
        if self.success_rank is None:
            return f"limit, c({float(self.recommended_p):g})"
        return f"limit, c({self.success_rank}/{self.m})"

    def _draw(self, axes: "Axes") -> None:
        end = max(1024, 2 * self.m, 2 * self.n_test_samples)
        first = FEWEST_SAMPLES_FOR_TOP_RANK
        numbers = np.unique(
            np.geomspace(FEWEST_SAMPLES_FOR_TOP_RANK, end, _PICTURED).astype(int)
        ).tolist()
        plans = [self._with_samples(m) for m in numbers]
        names = [name for name, _ in self._counts()]
        for i, (name, style) in enumerate(zip(names, _STYLES, strict=False)):
            shares = [other._counts()[i][1] / other.m for other in plans]
            axes.plot(numbers, shares, style, color=_COLORS[i], label=name)
        p = float(self.recommended_p if self.p is None else self.p)
        axes.axhline(self.limit, color="black", linestyle=":", label=f"limit, c({p:g})")
        axes.plot(self.n_test_samples, self.share, "o", color=_COLORS[0], label="this plan")
        axes.set_xscale("log", base=2)
        ticks = [2**i for i in range(first.bit_length() - 1, end.bit_length())]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set(xlabel="samples m' = m", ylabel="share k / m' that must reach tau", ylim=(0, None))
        axes.set_title(f"n = {self.n}, alpha = {self.alpha}", fontsize=11)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)

    def _with_samples(self, m: int) -> "Plan":
        return plan(
            self.certificate,
            n=self.n,
            m=m,
            alpha=self.alpha,
            p=self.p,
            n_classes=self.n_classes,
            eta=self.eta,
        )


_HEADER = "{:<28}{:>8}{:>10}".format("correction", "k", "k / m'")
_COLORS = ("#0072b2", "#009e73", "#d55e00")  # told apart by the colour-blind
_STYLES = ("-", "--", "-.")


def plan(
    certificate: Certificate,
    *,
    n: int,
    m: int,
    n_test_samples: int | None = None,
    alpha: Level = 0.1,
    p: Level | None = None,
    n_classes: int | None = None,
    eta: Level = 1e-3,
) -> Plan:
    """Compute k and the other numbers of a calibration before any model call.

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that will produce the scores and the ball to defend against.
    n : int
        Number of calibration points.
    m : int
        Number of samples of each.
    n_test_samples : int, optional
        m', number of samples at prediction; m if not given.
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    p : int, float, str, Decimal or Fraction, optional
        The argument `p` of `BinCP`, in (0, 1]; if not given, `BinCP` chooses.
    n_classes : int, optional
        Number of classes K. The count of the union "per-bound" depends on it.
    eta : int, float, str, Decimal or Fraction
        Share of alpha that "clopper-pearson" spends on sampling error, in (0, alpha).

    Returns
    -------
    Plan
        ``print`` it for a table.

    Raises
    ------
    TypeError
        If `certificate` is no Certificate, a count is not an integer, or a level is not a number.
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import bincp
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    >>> plan = bincp.plan(certificate, n=200, m=64, n_classes=10)
    >>> plan.min_count, plan.two_bounds_count, plan.per_bound_count
    (28, 5, 1)
    >>> print(plan)  # doctest: +NORMALIZE_WHITESPACE
    n = 200 calibration points with m = 64 scores each, m' = 64 at prediction, alpha = 1/10
    a label will be in the set iff at least k = 28 of its m' = 64 scores reach tau
    (tau: of the points' scores with rank t = 52 from above, the one with rank j = 20 from below)
    <BLANKLINE>
    correction                     k    k / m'
    mixture                       28    0.4375
    clopper-pearson, two-bounds    5    0.0781
    clopper-pearson, per-bound     1    0.0156
    limit, c(52/64)                     0.4551
    <BLANKLINE>
    draws until a label is decided, mean in the worst case:
    58.6 curtailed, 37.4 sequential, of 64
    <BLANKLINE>
    recommended p: 0.8
    """
    as_certificate(certificate)
    n = check_integer("n", n, low=1)
    m = check_integer("m", m, low=1, high=MAX_COUNT)
    m_test = check_test_samples(n_test_samples, m)
    level = check_level("alpha", alpha)
    success = None if p is None else check_level("p", p, closed_high=True)
    classes = None if n_classes is None else check_integer("n_classes", n_classes, low=1)
    spent = check_level("eta", eta)

    t, rank, k = _planned_rule(Setup(certificate, n, m, m_test, level), success)
    compared = default_success_rank(certificate, m) if t is None else t

    def count(union: str) -> int:
        if spent >= level or conformal_rank(level - spent, n) == 0:
            return 0  # nothing is left for the conformal rank
        each = eta_of_bound(spent, union, n, classes)
        return clopper_pearson_rule(certificate, compared, m, m_test, each).min_count

    return Plan(
        certificate=certificate,
        n=n,
        m=m,
        n_test_samples=m_test,
        alpha=level,
        eta=spent,
        p=success,
        n_classes=classes,
        success_rank=t,
        rank=rank,
        min_count=k,
        two_bounds_count=count("two-bounds"),
        per_bound_count=None if classes is None else count("per-bound"),
        certified_p=None if t is None else _certified(certificate, t, m),
        recommended_p=default_p(certificate, m),
    )


def _planned_rule(setup: Setup, p: Fraction | None) -> tuple[int | None, int | None, int]:
    """Return t, j and k as the mixture correction of `BinCP` will."""
    t = None if p is None else success_rank(p, setup.m)
    chosen = choose_rule(replace(setup, t=t), Price(early=False))
    return chosen.t, chosen.rank, chosen.test.k


def _certified(certificate: Certificate, t: int, m: int) -> float:
    """Return c(t / m) as a calibration reports it."""
    certified = uncorrected_rule(certificate, t, m, m).certified_p
    assert certified is not None
    return certified


def _most_draws(rule: SequentialRule) -> float:
    """Return the largest expected number of draws of a label, over all success probabilities.

    It has one peak.
    """
    low, high, most = 0.0, 1.0, 0.0
    for _ in range(_ROUNDS):
        p = np.linspace(low, high, _GRID)
        draws = rule.expected_draws(p)
        i = int(np.argmax(draws))
        low, high = p[max(i - 1, 0)], p[min(i + 1, _GRID - 1)]
        most = max(most, float(draws[i]))
    return most
