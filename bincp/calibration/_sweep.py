"""Sweeps: one sampling, and a rule for each radius, level, correction and p, in one table."""

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_counts, as_scores
from bincp._utils.frames import frame
from bincp._utils.levels import LEVELS, Level, check_level
from bincp._utils.progress import check_progress, progress_bar
from bincp._utils.tables import table
from bincp._utils.validation import check_integer
from bincp.calibration._arguments import check_run_classes
from bincp.calibration._bincp import BinCP
from bincp.calibration._shared_draws import check_independent
from bincp.calibration._stored import CalibrationScores, StoredScores
from bincp.calibration._triviality import trivial_cause
from bincp.certificates import Certificate
from bincp.errors import TrivialSetWarning
from bincp.metrics import share_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Sweep", "SweepRow", "sweep"]

Sets: TypeAlias = npt.NDArray[np.bool_]
Labels: TypeAlias = npt.NDArray[np.int64]
Decided: TypeAlias = tuple[Iterable[Sets], Labels | None]
"""The sets of some inputs by each rule, and their labels where they are known."""

_DIGITS = 4
_SHOWN = {
    "ball": "ball",
    "alpha": "alpha",
    "correction": "correction",
    "p": "p",
    "tau": "tau",
    "min_count": "k",
    "coverage": "coverage",
    "coverage_low": "from",
    "coverage_high": "to",
    "average_set_size": "size",
    "singleton_rate": "single",
    "empty_rate": "empty",
}
"""The columns of the printed table and their headers."""


class SweepRow(NamedTuple):
    """One rule of a sweep: what was asked for, what calibration found, and what was measured.

    Parameters
    ----------
    ball : str
        The ball, as ``"L2(r=0.1)"``; the name of the operator where the certificate names none.
    radius : float or None
        Its radius, where it has one.
    alpha, p : Fraction, Fraction or None
        As asked for.
    correction : str
        As asked for.
    n_calibration, n_samples, n_test_samples : int
        n, m and m'.
    tau : float
        Threshold.
    min_count : int
        k.
    trivial : str or None
        Why every label is in every set, and the cure; None if it is not so.
    n_test : int or None
        Number of test points; None without any, as all that follows.
    coverage : float or None
        Share of the test points whose set holds their label; None without labels, as the two below.
    coverage_low, coverage_high : float or None
        A confidence interval for it, as `bincp.metrics.coverage_interval`.
    average_set_size, singleton_rate, empty_rate : float or None
        As in `bincp.metrics`.
    """

    ball: str
    radius: float | None
    alpha: Fraction
    correction: str
    p: Fraction | None
    n_calibration: int
    n_samples: int
    n_test_samples: int
    tau: float
    min_count: int
    trivial: str | None
    n_test: int | None = None
    coverage: float | None = None
    coverage_low: float | None = None
    coverage_high: float | None = None
    average_set_size: float | None = None
    singleton_rate: float | None = None
    empty_rate: float | None = None


@dataclass(frozen=True, repr=False)
class Sweep:
    """The rules of a sweep, and a table of them; made by `sweep`.

    Parameters
    ----------
    rows : tuple of SweepRow
        A row for each rule.
    rules : tuple of BinCP
        The calibrated rules, in the order of the rows.
    confidence : Fraction
        The confidence of each interval.

    Notes
    -----
    ``print(sweep)`` shows the table, `bincp.plots.plot_sweep` draws it.

    Examples
    --------
    See `sweep`.
    """

    rows: tuple[SweepRow, ...]
    rules: tuple[BinCP, ...]
    confidence: Fraction

    def __repr__(self) -> str:
        return f"Sweep({len(self.rows)} rules, confidence={self.confidence})"

    def __str__(self) -> str:
        first = self.rows[0]
        heading = (
            f"n = {first.n_calibration} calibration points with m = {first.n_samples} scores each, "
            f"m' = {first.n_test_samples} at prediction"
        )
        if first.n_test is not None:
            heading += f", {first.n_test} test points"
        cells = {name: [_cell(name, getattr(row, name)) for row in self.rows] for name in _SHOWN}
        shown = {_SHOWN[name]: column for name, column in cells.items() if any(column)}
        left = [place for place, name in enumerate(shown) if name in ("ball", "correction")]
        rows = list(zip(*shown.values(), strict=True))
        return f"{heading}\n\n{table(list(shown), rows, left=left)}"

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a data frame of pandas; fractions become floats.

        Returns
        -------
        pandas.DataFrame
            The columns are those of `SweepRow`.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> import bincp, numpy as np
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
        >>> true_scores = np.random.default_rng(0).normal(1, 0.3, (200, 16))
        >>> frame = bincp.sweep(certificate, true_scores).to_frame()  # doctest: +SKIP
        >>> frame.min_count  # doctest: +SKIP
        """
        return frame(
            {
                name: [
                    float(value) if isinstance(value, Fraction) else value
                    for value in (getattr(row, name) for row in self.rows)
                ]
                for name in SweepRow._fields
            }
        )


def sweep(
    certificates: Certificate | Iterable[Certificate],
    true_scores: ArrayLike,
    scores: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    *,
    alpha: Level | Iterable[Level] = 0.1,
    correction: str | Iterable[str] = "mixture",
    p: Level | Iterable[Level | None] | None = None,
    n_classes: int | None = None,
    n_test_samples: int | None = None,
    confidence: Level = 0.95,
    n_threads: int = 1,
    progress: bool | None = None,
    **options: Any,
) -> Sweep:
    """Calibrate a rule for each certificate, level, correction and p on the same scores.

    Sampling is what costs; a further rule takes some milliseconds to a tenth of a second.

    Parameters
    ----------
    certificates : Certificate or iterable of Certificate
        For the noise that produced the scores, and the balls to compare.
    true_scores : array_like, shape (n, m), or Run
        Sampled scores of the true labels of the calibration points, as in `BinCP.calibrate`.
    scores : array_like, shape (n', K, m'), or Run, optional
        Sampled scores of all labels of test points, as in `BinCP.predict_set`. A run of all scores
        is read once for all rules, a part at a time.
    labels : array_like of int, shape (n',), optional
        Their true labels, for the coverage. A run has its own.
    alpha : level or iterable of levels
        One or more levels, as in `BinCP`.
    correction : str or iterable of str
        One or more corrections, as in `BinCP`.
    p : level or None, or iterable of these
        One or more nominal p, as in `BinCP`.
    n_classes, n_test_samples : int, optional
        As in `BinCP.calibrate`; the K and the m' of `scores` where these are given.
    confidence : int, float, str, Decimal or Fraction
        Of the intervals for the coverage, in (0, 1).
    n_threads : int
        As in `BinCP.calibrate`.
    progress : bool, optional
        Show progress bars on stderr (needs tqdm). By default there is one after two seconds if
        stderr is a terminal; True shows it at once and anywhere, False never.
    **options
        The other options of `BinCP`, the same for all rules: `union`, `eta`, `guarantee`, `passes`,
        `tau`, `poisoned`, `label_noise`, `shift`, `attacked_calibration`.

    Returns
    -------
    Sweep
        A row for each combination: certificates slowest, then levels, corrections and p.

    Warns
    -----
    TrivialSetWarning
        If every label is in every set of some rules; the column `trivial` names cause and cure.

    Raises
    ------
    TypeError, ValueError
        As in `BinCP`, `BinCP.calibrate` and `BinCP.predict_set`; if nothing is asked for; if labels
        are given without an array of scores, or with a run. All combinations are checked before
        anything is calibrated.
    FileNotFoundError
        If a run is not complete.

    Notes
    -----
    *What a sweep may be used for.* Each row keeps the guarantee of `BinCP` on its own, if it is
    reported because it was asked for. The rule that looks best in the table does not: it was chosen
    on the calibration points, or on the test points, and covers less. To choose, sweep over
    separate points with the noise of the phase "tuning"; then calibrate what was chosen.

    *Intervals.* The notes of `bincp.metrics.coverage_interval` say what they are for. Each holds on
    its own.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> true_scores = rng.normal(1, 0.3, (200, 32))
    >>> labels = rng.integers(3, size=500)
    >>> centres = np.where(labels[:, None] == np.arange(3), 1.0, 0.5)
    >>> scores = rng.normal(centres[:, :, None], 0.3, (500, 3, 32))
    >>> noise = bincp.smoothing.Gaussian(0.5)
    >>> certificates = [bincp.certify(noise, bincp.balls.L2(r)) for r in (0, 0.1, 0.2)]
    >>> result = bincp.sweep(certificates, true_scores, scores, labels, alpha=["0.1", "0.2"])
    >>> result
    Sweep(6 rules, confidence=19/20)
    >>> [(row.radius, float(row.alpha), row.min_count) for row in result.rows][:2]
    [(0.0, 0.1, 15), (0.0, 0.2, 15)]
    >>> row = result.rows[2]
    >>> bool(row.coverage_low <= row.coverage <= row.coverage_high)
    True
    """
    level = check_level("confidence", confidence)
    threads = check_integer("n_threads", n_threads, low=1)
    shown = check_progress(progress)
    stored = isinstance(scores, StoredScores)
    if labels is not None and (stored or scores is None):
        got = "without scores" if scores is None else "with a run, which has its own"
        raise TypeError(f"`labels` must be given with an array of scores, got them {got}")
    certificates = several("certificates", certificates, Certificate)
    rules = combinations(certificates, alpha, correction, p, options)
    if scores is None:
        none = Tests(None, 0)
        return measured(rules, true_scores, none, level, n_classes, n_test_samples, threads, shown)
    if stored:
        tests = Tests(scores.decisions(rules), scores.n_inputs)
        n_labels, m_test = scores.n_classes, scores.n_samples
    else:
        checked = as_scores("scores", scores)
        if checked.bits.ndim != 3 or 0 in checked.bits.shape:
            raise ValueError(
                f"`scores` must have shape (n', K, m') and not be empty, got {checked.bits.shape}"
            )
        _, n_labels, m_test = checked.bits.shape
        y = checked_labels("labels", labels, checked.bits.shape[:2])
        decided = ((rule.predict_set(scores) for rule in rules), y)
        tests = Tests(iter([decided]), len(checked.bits))
    if n_classes not in (None, n_labels):
        raise ValueError(f"`n_classes` must be the K = {n_labels} of `scores`, got {n_classes}")
    if n_test_samples not in (None, m_test):
        raise ValueError(
            f"`n_test_samples` must be the m' = {m_test} of `scores`, got {n_test_samples}"
        )
    return measured(rules, true_scores, tests, level, n_labels, m_test, threads, shown)


class Tests(NamedTuple):
    """What the rules decide about the test inputs, block by block, if there are any."""

    blocks: Iterator[Decided] | None
    n_inputs: int


def measured(
    rules: Sequence[BinCP],
    true_scores: ArrayLike,
    tests: Tests,
    confidence: Fraction,
    n_classes: int | None,
    n_test_samples: int | None,
    n_threads: int,
    progress: bool | None,
) -> Sweep:
    """Calibrate new rules, measure what they decide, and warn once about those that are trivial.

    ``tests`` are read after the calibration.
    """
    with progress_bar(progress, len(rules), "calibration", "rule") as bar:
        for _ in _calibrated(rules, true_scores, n_classes, n_test_samples, n_threads):
            bar.update()
    causes = [_trivial_cause(rule) for rule in rules]
    tallies = [_Tally() for _ in rules]
    with progress_bar(progress, len(rules) * tests.n_inputs, "test", "set") as bar:
        for sets, labels in tests.blocks or ():
            for tally, members in zip(tallies, sets, strict=True):
                tally.add(members, labels)
                bar.update(len(members))
    rows = [
        _row(rule, cause, tally, confidence)
        for rule, cause, tally in zip(rules, causes, tallies, strict=True)
    ]
    if n_trivial := sum(cause is not None for cause in causes):
        first = next(cause for cause in causes if cause is not None)
        warnings.warn(
            f"every label will be in every prediction set of {n_trivial} of {len(rules)} rules, "
            f"see their `trivial`; of the first: {first}",
            TrivialSetWarning,
            stacklevel=3,
        )
    return Sweep(tuple(rows), tuple(rules), confidence)


# ---- steps -----------------------------------------------------------------------------------


def combinations(
    certificates: Sequence[Certificate],
    alpha: Any,
    correction: Any,
    p: Any,
    options: dict[str, Any],
) -> list[BinCP]:
    """Return a new rule for each combination, which the constructor of `BinCP` checks."""
    return [
        BinCP(certificate, alpha=one, correction=way, p=share, **options)
        for certificate, one, way, share in product(
            certificates,
            several("alpha", alpha, LEVELS),
            several("correction", correction, str),
            several("p", p, LEVELS),
        )
    ]


def several(name: str, value: Any, single: type | tuple[type, ...]) -> tuple[Any, ...]:
    """Return one or more values as a tuple."""
    if value is None or isinstance(value, single):
        return (value,)
    if not isinstance(value, Iterable):
        raise TypeError(f"`{name}` must be one value or an iterable of them, got {value!r}")
    values = tuple(value)
    if not values:
        raise ValueError(f"`{name}` must hold at least one value, got none")
    return values


def _calibrated(
    rules: Sequence[BinCP],
    true_scores: ArrayLike,
    n_classes: int | None,
    n_test_samples: int | None,
    n_threads: int,
) -> Iterator[BinCP]:
    """Calibrate rules without their warnings; a run is read once for all with equal noise."""
    known: dict[str, Any] = {}
    for rule in rules:
        points, provenance = true_scores, None
        if isinstance(points, CalibrationScores):
            provenance = points.provenance()
            noise = repr(rule.certificate_description.get("smoothing"))
            if noise not in known:
                known[noise] = points.calibration_points(rule.certificate_description)
            points, _, found = known[noise]
            n_classes = check_run_classes(n_classes, found)
        check_independent(points, rule.correction)
        checked = as_scores("true_scores", points)
        known_classes = rule._check_classes(n_classes)
        made = rule._fit(checked, known_classes, n_test_samples, n_threads)
        rule._rule = made.with_provenance(provenance)
        yield rule


def _trivial_cause(rule: BinCP) -> str | None:
    assert rule._rule is not None
    return trivial_cause(rule._rule, rule._require_certificate())


def checked_labels(name: str, labels: ArrayLike | None, shape: tuple[int, ...]) -> Labels | None:
    """Return the labels of n inputs, of K; None if they are not known."""
    if labels is None:
        return None
    n, n_classes = shape
    y = as_counts(name, labels, high=n_classes - 1)
    if y.shape != (n,):
        raise ValueError(f"`{name}` must have shape ({n},), got {y.shape}")
    return y


class _Tally:
    """What is measured of the sets of one rule, added up over blocks of inputs."""

    def __init__(self) -> None:
        self.n = self.covered = self.total_size = self.singletons = self.empty = 0
        self.has_labels = False

    def add(self, sets: Sets, labels: Labels | None) -> None:
        sizes = sets.sum(axis=1)
        self.n += len(sets)
        self.total_size += int(sizes.sum())
        self.singletons += int((sizes == 1).sum())
        self.empty += int((sizes == 0).sum())
        if labels is not None:
            self.has_labels = True
            self.covered += int(sets[np.arange(len(labels)), labels].sum())

    def measures(self, confidence: Fraction) -> dict[str, Any]:
        """Return the fields of a row that are known."""
        if not self.n:
            return {}
        found: dict[str, Any] = {
            "n_test": self.n,
            "average_set_size": self.total_size / self.n,
            "singleton_rate": self.singletons / self.n,
            "empty_rate": self.empty / self.n,
        }
        if self.has_labels:
            found["coverage"] = self.covered / self.n
            interval = share_interval(self.covered, self.n, confidence)
            found["coverage_low"], found["coverage_high"] = interval
        return found


def _row(rule: BinCP, cause: str | None, tally: _Tally, confidence: Fraction) -> SweepRow:
    assert rule._rule is not None
    made, settings = rule._rule, rule._rule.settings
    assert made.min_count is not None
    assert made.n_samples is not None
    assert made.n_test_samples is not None
    ball, radius = _ball_of(rule.certificate_description)
    return SweepRow(
        ball=ball,
        radius=radius,
        alpha=settings.alpha,
        correction=settings.correction,
        p=settings.p,
        n_calibration=made.n_calibration,
        n_samples=made.n_samples,
        n_test_samples=made.n_test_samples,
        tau=made.tau,
        min_count=made.min_count,
        trivial=cause,
        **tally.measures(confidence),
    )


def _ball_of(description: dict[str, Any]) -> tuple[str, float | None]:
    """Return a ball in short, without parameters that are None, and its radius if it has one."""
    ball = description.get("ball")
    if not (isinstance(ball, dict) and "type" in ball):
        return str(description["operator"]), None
    parts = [f"{name}={ball[name]!r}" for name in ball if name != "type" and ball[name] is not None]
    radius = ball.get("r")
    return f"{ball['type']}({', '.join(parts)})", None if radius is None else float(radius)


def _cell(name: str, value: Any) -> str:
    """Return a number for the table; the ends of an interval are rounded outward."""
    if value is None:
        return ""
    scale = 10**_DIGITS
    if name == "coverage_low":
        value = math.floor(value * scale) / scale
    if name == "coverage_high":
        value = math.ceil(value * scale) / scale
    return f"{float(value):.{_DIGITS}g}" if isinstance(value, float | Fraction) else str(value)
