"""Planning: what a calibration will find, before any model call.

Only tau depends on the scores. All else follows from the certificate and a few numbers, by the
functions that calibration itself calls, so it can be computed and chosen in advance.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from bincp._utils.drawing import COLOURS, draw, finish
from bincp._utils.levels import Level, shown
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.calibration._arguments import check_test_samples
from bincp.calibration._bincp import BinCP
from bincp.calibration._clopper_pearson import uncorrected_rule
from bincp.calibration._common import Common, common_if_resized
from bincp.calibration._counted import counted_rule, wrong_labels
from bincp.calibration._decision_rule import DecisionRule, Settings
from bincp.calibration._departures import Noise, Poison
from bincp.calibration._label_test import LabelTest
from bincp.calibration._mixture import setups_of
from bincp.calibration._search import best_rule, price_of
from bincp.calibration._sequential import SequentialRule
from bincp.calibration._shared_draws import shared_rule
from bincp.calibration._triviality import trivial_cause
from bincp.certificates import Certificate
from bincp.shifts import Shift

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plan", "plan"]

PAPER_P = Fraction(3, 5)
"""p in the tables of the paper."""

MOST_SAMPLES = 10_000
"""Draws of a label at worst are computed up to here; more is slow."""

_GRID = 33  # success probabilities at once in the search for the worst
_ROUNDS = 4  # of refinement, each by a factor of 16
_PICTURED = {False: 1024, True: 128}  # most samples in the picture, by whether a rule stops early


@dataclass(frozen=True, repr=False)
class Plan:
    """What a calibration will find whatever the scores are; made by `plan`.

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that produces the scores and the ball to defend against.
    settings : Settings
        The checked options of `BinCP`, such as ``settings.alpha``, as fractions.
    n, m, n_test_samples : int
        Calibration points, samples of each of them, and the most samples m' of an input at
        prediction.
    n_classes : int or None
        K.
    min_count : int
        k: a label is accepted iff at least k of its m' scores reach tau, or, where drawing stops
        early, as `boundaries` decide. 0 means that every label will be in every set.
    success_rank, rank : int or None
        t and j: tau is the j-th smallest over the calibration points of their t-th largest scores.
        None where losses of counts select tau.
    certified_p : float or None
        The certified lower bound on the share of scores that reach tau, at t / m or at the
        confidence bound below it. None without t.
    losses : tuple of int or None
        As `BinCP.losses_`.
    boundaries : SequentialRule or None
        As `BinCP.boundaries_`; None where all m' draws are counted.
    wrong_labels : float
        Share of the wrong labels that will be in the sets of clean inputs, in the reference
        population.
    expected_passes : float
        Mean number of forward passes of a clean input, in the reference population; m' where all
        draws are counted.
    trivial_cause : str or None
        Why every label will be in every prediction set, and the cure, in the words of the warning
        of a calibration; None if it will not.
    paper : Plan or None
        The rule of the paper for the same numbers: "clopper-pearson" with the union "per-bound" and
        p = 0.6. None without `n_classes`, for it depends on K, where eta leaves nothing of alpha,
        and with a training-conditional guarantee, which it does not give.

    Notes
    -----
    A plan depends on no data, so choosing n, m, m', p or the budget of passes by it leaves the
    guarantee intact. Choosing by the size of the sets on calibration or test points does not.

    The reference population is the one in which the library compares rules before there are data. A
    label reaches tau with probability Phi(z). For true labels z is Gaussian with a standard
    deviation of 3, for wrong ones it is 6 lower on average with a standard deviation of 2. Three
    wrong labels compete for the passes of an input. Its numbers order rules. Those of real data
    differ: an easy task has smaller sets and takes fewer passes. `wrong_labels` and
    `expected_passes` are of this population; `worst_draws` holds for every label of any data. The
    notes of `BinCP` say what real inputs took, and how to measure it.

    Examples
    --------
    >>> import bincp
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.12))
    >>> for m in (4, 16, 64):
    ...     plan = bincp.plan(certificate, n=200, m=m)
    ...     print(m, plan.min_count, round(plan.wrong_labels, 2))
    4 2 0.24
    16 6 0.22
    64 27 0.22
    """

    certificate: Certificate
    settings: Settings
    n: int
    m: int
    n_test_samples: int
    n_classes: int | None
    min_count: int
    success_rank: int | None
    rank: int | None
    certified_p: float | None
    losses: tuple[int, ...] | None
    boundaries: SequentialRule | None
    wrong_labels: float
    expected_passes: float
    trivial_cause: str | None
    paper: "Plan | None"

    @property
    def share(self) -> float:
        """The ratio k / m': the share of the scores that must reach tau."""
        return self.min_count / self.n_test_samples

    @cached_property
    def worst_draws(self) -> float | None:
        """Draws until a label is decided, the mean for the worst success probability.

        Without boundaries drawing stops once the count of all m' draws is certain to reach k, or
        not to reach it. An input is drawn until the last of its labels is decided, and one forward
        pass is a draw for all of them. None for m' above 10,000.
        """
        if self.n_test_samples > MOST_SAMPLES:
            return None
        if self.boundaries is not None:
            return _most_draws(self.boundaries)
        return _most_draws(SequentialRule.curtailed(self.min_count, self.n_test_samples))

    def plot(self, target: "str | PathLike[str] | Axes") -> "Axes":
        """Draw the share of wrong labels in the reference population against m' = m.

        The rule of the paper is beside it where K is known.

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

    def __repr__(self) -> str:
        return (
            f"Plan({self.name}, n={self.n}, m={self.m}, n_test_samples={self.n_test_samples}, "
            f"alpha={self.settings.alpha}, min_count={self.min_count}, "
            f"wrong_labels={self.wrong_labels:.4g}, expected_passes={self.expected_passes:.4g})"
        )

    def __str__(self) -> str:
        lines = [
            f"n = {self.n} calibration points with m = {self.m} scores each, "
            f"m' = {self.n_test_samples} at prediction, alpha = {self.settings.alpha}",
            *self._departures(),
            self._test(),
            self._origin_of_tau(),
            "",
            _ROW.format("correction", "k", "k / m'", "wrong labels", "passes"),
            *(row._row() for row in (self, self.paper) if row is not None),
            "",
            "wrong labels in the sets and passes of an input: means in the reference population,",
            "which orders rules; those of real data differ",
        ]
        if self.worst_draws is not None:
            worst = f"{self.worst_draws:.1f} of {self.n_test_samples}"
            lines += [f"draws until a label is decided, mean at the worst label: {worst}"]
        if self.trivial_cause is not None:
            lines += ["", f"every label will be in every prediction set: {self.trivial_cause}"]
        return "\n".join(lines)

    # ---- parts ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The correction, its union, a p that was given, and whether drawing stops early."""
        settings = self.settings
        parts = [settings.correction]
        if settings.correction == "clopper-pearson":
            parts.append(settings.union)
        if settings.p is not None:
            parts.append(f"p = {float(settings.p):g}")
        if settings.stops_early:
            parts.append("stops early")
        return ", ".join(parts)

    def _row(self) -> str:
        numbers = f"{self.share:.4f}", f"{self.wrong_labels:.4f}", f"{self.expected_passes:.4g}"
        return _ROW.format(self.name, self.min_count, *numbers)

    def _departures(self) -> list[str]:
        settings = self.settings
        parts = {
            "poisoned points": _poison_text(settings.poisoned),
            "label noise": settings.label_noise and "{} {}".format(*settings.label_noise),
            "shift": settings.shift,
            "calibration inputs": "attacked" if settings.attacked_calibration else None,
        }
        given = [f"{name}: {value}" for name, value in parts.items() if value is not None]
        if settings.drift is not None:
            given.append(f"level on the points seen: {shown(settings.level)}")
        return [", ".join(given)] if given else []

    def _test(self) -> str:
        if self.boundaries is None:
            return (
                f"a label will be in the set iff at least k = {self.min_count} of its "
                f"m' = {self.n_test_samples} scores reach tau"
            )
        return (
            "a label will be accepted or refused as soon as the count of its scores that reach tau "
            f"is far enough\nfrom the line l k / m' after l draws, with k = {self.min_count}, and "
            f"after m' = {self.n_test_samples} draws at the latest"
        )

    def _origin_of_tau(self) -> str:
        if self.min_count == 0:
            return "(tau = -inf)"
        if self.rank is None:
            return (
                "(tau: the largest at which the losses of the n points, with the highest loss once "
                "more,\nadd up to at most alpha (n + 1); see the notes of BinCP)"
            )
        return (
            f"(tau: each point gives its t-th largest score, t = {self.success_rank}; the j-th "
            f"smallest of these, j = {self.rank})"
        )

    def _draw(self, axes: "Axes") -> None:
        most = max(_PICTURED[self.settings.stops_early], self.m)
        numbers = [2**i for i in range(most.bit_length())]
        plans = [self._with_samples(m) for m in numbers]
        shares = {self.name: [plan.wrong_labels for plan in plans]}
        papers = [plan.paper for plan in plans if plan.paper is not None]
        if papers:
            shares[f"the paper's: {papers[0].name}"] = [plan.wrong_labels for plan in papers]
        for (name, values), style, color in zip(shares.items(), _STYLES, COLOURS, strict=False):
            axes.plot(numbers, values, style, color=color, label=name)
        axes.plot(self.n_test_samples, self.wrong_labels, "o", color=COLOURS[0], label="this plan")
        axes.set_xscale("log", base=2)
        axes.set_xticks(numbers, [str(m) for m in numbers])
        given = f"for n = {self.n}, alpha = {self.settings.alpha}"
        axes.set(xlabel=f"samples m' = m, {given}", ylim=(0, None))
        axes.set_ylabel("share of wrong labels, reference population")
        finish(axes)

    def _with_samples(self, m: int) -> "Plan":
        return _Numbers(self.certificate, self.settings, self.n, m, m, self.n_classes).plan()


_ROW = "{:<36}{:>6}{:>9}{:>14}{:>9}"
_STYLES = ("-", "--")


def plan(
    certificate: Certificate,
    *,
    n: int,
    m: int,
    n_test_samples: int | None = None,
    n_classes: int | None = None,
    alpha: Level = 0.1,
    p: Level | None = None,
    correction: str = "mixture",
    union: str | None = None,
    eta: Level | None = None,
    guarantee: str | tuple[str, Level] = "marginal",
    passes: Level | None = None,
    poisoned: Poison = 0,
    label_noise: Noise | None = None,
    shift: Shift | None = None,
    attacked_calibration: bool = False,
) -> Plan:
    """Compute what a calibration of `BinCP` will find, all but tau, before any model call.

    Parameters
    ----------
    certificate : Certificate
        Certificate for the noise that will produce the scores and the ball to defend against.
    n : int
        Number of calibration points.
    m : int
        Number of samples of each.
    n_test_samples : int, optional
        m', the most samples of an input at prediction; m if not given.
    n_classes : int, optional
        Number of classes K. With it the rule of the paper is planned, too. The union "per-bound"
        needs it.
    alpha : int, float, str, Decimal or Fraction
        Miscoverage level in (0, 1).
    p : int, float, str, Decimal or Fraction, optional
        The argument `p` of `BinCP`, in (0, 1]; if not given, `BinCP` chooses.
    correction : {"mixture", "shared-draws", "clopper-pearson", "none"}
        The argument `correction` of `BinCP`.
    union : {"per-bound", "two-bounds"}, optional
        The argument `union` of `BinCP`, for "clopper-pearson" alone; "per-bound" if not given.
    eta : int, float, str, Decimal or Fraction, optional
        The argument `eta` of `BinCP`, for "clopper-pearson" alone, in (0, alpha); 1/1000 if not
        given.
    guarantee : "marginal" or ("training-conditional", delta)
        The argument `guarantee` of `BinCP`.
    passes : None, "auto" or a number of at least 1, optional
        The argument `passes` of `BinCP`.
    poisoned, label_noise, shift, attacked_calibration
        The arguments of `BinCP`. The rule of the paper is planned for the same.

    Returns
    -------
    Plan
        ``print`` it for a table.

    Raises
    ------
    TypeError
        If `certificate` is no Certificate, a count is not an integer, a level is not a number, or
        `n_classes` is missing where it is needed.
    ValueError
        If a number is out of range, or an argument is given that the correction does not use.

    Examples
    --------
    >>> import bincp
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.12))
    >>> plan = bincp.plan(certificate, n=200, m=64, n_classes=10)
    >>> plan.min_count, plan.paper.min_count
    (27, 1)
    >>> print(plan)
    n = 200 calibration points with m = 64 scores each, m' = 64 at prediction, alpha = 1/10
    a label will be in the set iff at least k = 27 of its m' = 64 scores reach tau
    (tau: each point gives its t-th largest score, t = 40; the j-th smallest of these, j = 20)
    <BLANKLINE>
    correction                               k   k / m'  wrong labels   passes
    mixture                                 27   0.4219        0.2167       64
    clopper-pearson, per-bound, p = 0.6      1   0.0156        0.6087       64
    <BLANKLINE>
    wrong labels in the sets and passes of an input: means in the reference population,
    which orders rules; those of real data differ
    draws until a label is decided, mean at the worst label: 58.7 of 64
    >>> early = bincp.plan(certificate, n=200, m=64, n_test_samples=16, passes="auto")
    >>> early.min_count, round(early.expected_passes, 1)
    (8, 6.1)
    """
    if correction != "clopper-pearson":
        for name, value in (("union", union), ("eta", eta)):
            if value is not None:
                raise ValueError(
                    f'`{name}` must be given with correction="clopper-pearson" alone, which has '
                    f"confidence bounds, got {value!r} with {correction!r}"
                )
    rule = BinCP(
        certificate,
        alpha=alpha,
        p=p,
        correction=correction,
        union="per-bound" if union is None else union,
        eta=Settings.eta if eta is None else eta,
        guarantee=guarantee,
        passes=passes,
        poisoned=poisoned,
        label_noise=label_noise,
        shift=shift,
        attacked_calibration=attacked_calibration,
    )
    n = check_integer("n", n, low=1)
    m = check_integer("m", m, low=1, high=MAX_COUNT)
    m_test = check_test_samples(n_test_samples, m)
    classes = None if n_classes is None else check_integer("n_classes", n_classes, low=1)
    settings = rule._settings
    if classes is None and settings.spends_on_classes:
        raise TypeError(
            'plan() needs `n_classes` with correction="clopper-pearson" and union="per-bound", '
            "got None"
        )
    return _Numbers(certificate, settings, n, m, m_test, classes).plan()


@dataclass(frozen=True)
class _Numbers:
    """What a calibration knows before it sees a score."""

    certificate: Certificate
    settings: Settings
    n: int
    m: int
    m_test: int
    n_classes: int | None

    def plan(self) -> Plan:
        """Return the plan, with that of the paper beside it."""
        return replace(self._plan(), paper=self._paper())

    def _plan(self) -> Plan:
        rule, wrong, passes = self._mixture() if self._is_mixture else self._counted()
        assert rule.min_count is not None
        return Plan(
            certificate=self.certificate,
            settings=self.settings,
            n=self.n,
            m=self.m,
            n_test_samples=self.m_test,
            n_classes=self.n_classes,
            min_count=rule.min_count,
            success_rank=rule.success_rank,
            rank=rule.rank,
            certified_p=rule.certified_p,
            losses=rule.losses,
            boundaries=rule.boundaries,
            wrong_labels=wrong,
            expected_passes=passes,
            trivial_cause=trivial_cause(rule, self.certificate),
            paper=None,
        )

    def _paper(self) -> Plan | None:
        eta = self.settings.eta
        given = self.settings.delta is not None or self.settings.resizes  # it has no proof for
        if self.n_classes is None or given or eta >= self.settings.level:
            return None
        printed = replace(self.settings, p=PAPER_P, correction="clopper-pearson", passes=None)
        printed = replace(printed, union="per-bound")
        return replace(self, settings=printed)._plan()

    @cached_property
    def _common(self) -> Common | None:
        return common_if_resized(self.certificate, self.settings, self.m, self.m_test)

    @property
    def _share(self) -> Fraction | None:
        return None if self._common is None else self._common.share

    @property
    def _is_mixture(self) -> bool:
        return self.settings.correction == "mixture"

    def _mixture(self) -> tuple[DecisionRule, float, float]:
        """Return the rule, its share of wrong labels and its passes."""
        common = self._common
        setups = setups_of(
            self.certificate, self.settings, self.n, self.m, self.m_test, self._share
        )
        chosen = None if common is None else common.chosen
        rank: int | None = setups[0].top_rank
        if chosen is None:
            chosen = best_rule(setups, price_of(self.settings))
            rank = chosen.rank
        k = 0 if rank == 0 else chosen.test.k
        rule = self._rule(k, rank, chosen.t)
        if chosen.losses is not None:
            rule = replace(rule, losses=tuple(chosen.losses.tolist()))
        if chosen.test.boundaries is None or not k:
            return rule, chosen.wrong if k else 1.0, float(self.m_test)
        return replace(rule, boundaries=chosen.test.boundaries), chosen.wrong, chosen.passes

    def _counted(self) -> tuple[DecisionRule, float, float]:
        n, m, m_test = self.n, self.m, self.m_test
        if self.settings.correction == "shared-draws":
            rank, t, counts = shared_rule(self.certificate, self.settings, n, m, m_test)
        else:
            rank, t, counts = counted_rule(
                self.certificate, self.settings, n, m, m_test, self.n_classes, self._share
            )
        k = counts.min_count if rank else 0
        rule = replace(
            self._rule(k, rank, t), p_lower=counts.p_lower, certified_p=counts.certified_p
        )
        wrong = wrong_labels(LabelTest(k, m_test), n, m, t, rank) if k else 1.0
        return rule, wrong, float(m_test)

    def _rule(self, k: int, rank: int | None, t: int | None) -> DecisionRule:
        """Return the decision rule, but for tau."""
        worst = self.settings.worst(self.certificate)
        found = None if t is None else uncorrected_rule(worst, t, self.m, self.m_test)
        return DecisionRule(
            settings=self.settings,
            tau=math.inf if k else -math.inf,
            n_calibration=self.n,
            min_count=k,
            rank=rank,
            success_rank=t,
            n_samples=self.m,
            n_test_samples=self.m_test,
            n_classes=self.n_classes,
            share=self._share,
            p=found and found.p,
            certified_p=found and found.certified_p,
        )


def _poison_text(poisoned: Poison) -> str | None:
    if isinstance(poisoned, tuple):
        return "{1} {0}".format(*poisoned)
    return str(poisoned) if poisoned else None


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
