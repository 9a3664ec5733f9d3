"""Every method as three things: values of calibration points, values of test labels, and a rank.

All methods here accept a label iff its test value is at least the j-th smallest of n calibration
values, and the values of a point do not depend on the split. So they are computed once for all
points, and a hundred splits cost a hundred comparisons. For BinCP with p fixed, a calibration value
is the t-th largest of m samples, a test value the k-th largest of m' (a count reaches k iff it is
at least tau), and t, k and j are functions of n, m, m', alpha and the certificate.

tests/test_paper.py checks that sets made like this are those of ``calibrate`` and ``predict_set``.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import bincp
from benchmarks.paper.samples import Samples
from bincp import baselines

__all__ = ["METHODS", "Fitted", "Method", "Problem"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """Samples, certificate and levels that a method is fitted to.

    Parameters
    ----------
    samples : Samples
    certificate : Certificate
    radius : str
        Label of the radius, with which values of this certificate are kept.
    coverage : str
        1 - alpha, as a decimal.
    n, m : int
        Calibration points; samples of each input in both phases.
    eta : str
        Share of alpha that corrections spend on sampling error.
    p : str, optional
        Share of samples of BinCP, where not the default.
    """

    samples: Samples
    certificate: bincp.Certificate
    radius: str
    coverage: str
    n: int
    m: int
    eta: str
    p: str | None = None

    @property
    def alpha(self) -> Fraction:
        """The level, in exact arithmetic."""
        return 1 - Fraction(self.coverage)

    def true_scores(self) -> Array:
        """Return sampled scores (n, m) of calibration points: any n of them fix the ranks."""
        return np.ascontiguousarray(self.samples.calibration[: self.n, : self.m])


@dataclass(frozen=True)
class Fitted:
    """Values (N,) and (N, K), and the rank of the threshold; 0 accepts every label.

    ``min_count`` is k of BinCP, for the record. Where no rank gives the threshold, ``select`` finds
    it from the calibration values, sampled scores (N, m), of a split.
    """

    calibration: Array
    test: Array
    rank: int
    min_count: int | None = None
    select: Callable[[Array], float] | None = None


@dataclass(frozen=True)
class Method:
    """A row of the tables.

    Parameters
    ----------
    name : str
    guarantee : str
        "robust", "clean" (without attack only) or "none".
    fit : callable
        Takes a `Problem` and returns `Fitted`.
    of_test : callable
        Takes a `Fitted` method, its `Problem`, and sampled scores (N', K, m) and clean scores
        (N', K) of attacked inputs; returns their test values (N', K).
    bounded : bool
        Whether scores need bounds.
    takes_p : bool
    most_samples : int
        m above which it takes too long here.
    """

    name: str
    guarantee: str
    fit: Callable[[Problem], Fitted]
    of_test: Callable[[Fitted, Problem, Array, Array], Array]
    bounded: bool = False
    takes_p: bool = False
    most_samples: int = 2**31


def kth_largest(ordered: Array, k: int) -> Array:
    """Return the k-th largest of each row that is sorted upwards."""
    return np.asarray(ordered[..., ordered.shape[-1] - k])


def binary(name: str, guarantee: str, *, usual_p: str | None = None, **options: Any) -> Method:
    """Return a variant of BinCP; where an experiment leaves p open it is the usual one."""

    def fit(problem: Problem) -> Fitted:
        p = usual_p if problem.p is None else problem.p
        settings = options if p is None else {**options, "p": p}
        spent = {"eta": problem.eta} if options["correction"] == "clopper-pearson" else {}
        rule = bincp.BinCP(problem.certificate, alpha=problem.alpha, **settings, **spent)
        rule.calibrate(problem.true_scores(), n_classes=problem.samples.n_classes)
        samples, m, k = problem.samples, problem.m, rule.min_count_
        if not k:
            return Fitted(samples.clean_true_scores(), samples.clean, 0, 0)
        test, drawn = kth_largest(samples.drawn("test", m), k), samples.drawn("calibration", m)
        if rule.losses_ is not None:
            return Fitted(drawn, test, problem.n, k, lambda scores: rule.calibrate(scores).tau_)
        return Fitted(kth_largest(drawn, rule.success_rank_), test, rule.rank_, k)

    def of_test(fitted: Fitted, problem: Problem, sampled: Array, clean: Array) -> Array:
        return kth_largest(np.sort(sampled, axis=-1), fitted.min_count or 1)

    return Method(name, guarantee, fit, of_test, takes_p="p" not in options)


def one_sample() -> Method:
    """Return RCP1: the first draw is all that it uses, whatever m."""

    def fit(problem: Problem) -> Fitted:
        rule = baselines.RCP1(problem.certificate, alpha=problem.alpha)
        rule.calibrate(problem.true_scores()[:, :1])
        samples = problem.samples
        return Fitted(samples.calibration[:, 0], samples.test[:, :, 0], rule.rank_)

    return Method("RCP1", "robust", fit, lambda f, p, sampled, clean: sampled[:, :, 0])


def on_means(
    name: str,
    make: Callable[[Problem], Any],
    *,
    bounded: bool = True,
    most_samples: int = 2**31,
) -> Method:
    """Return a method on bounds of means, with the certificate in calibration.

    Test values then do not depend on the certificate.
    """

    def fit(problem: Problem) -> Fitted:
        samples, m = problem.samples, problem.m
        rule = make(problem)
        rule.calibrate(problem.true_scores())
        # Only the tuning of the ranking transformation depends on alpha.
        key = (name, m, problem.eta, problem.coverage if not bounded else None)
        at = problem.radius if rule.robust_at == "test" else None
        calibration = samples.once(
            (*key, "calibration", problem.radius),
            lambda: rule.calibration_conformity(samples.calibration[:, :m]),
        )
        test = samples.once(
            (*key, "test", at),
            lambda: rule.conformity(np.ascontiguousarray(samples.test[:, :, :m])),
        )
        return Fitted(calibration, test, rule.rank_)

    def of_test(fitted: Fitted, problem: Problem, sampled: Array, clean: Array) -> Array:
        return np.asarray(make(problem).conformity(sampled))

    guarantee = "none" if name.endswith("uncorrected") else "robust"
    return Method(name, guarantee, fit, of_test, bounded=bounded, most_samples=most_samples)


def rscp(name: str, correction: str) -> Method:
    """Return RSCP or RSCP+."""
    return on_means(
        name,
        lambda problem: baselines.RSCP(
            problem.certificate,
            alpha=problem.alpha,
            correction=correction,
            eta=problem.eta,
            bounds=problem.samples.bounds,
        ),
    )


def ranked() -> Method:
    """Return RSCP+ after the ranking transformation, tuned on inputs and noise of its own."""
    return on_means(
        "RSCP+, PTT",
        lambda problem: baselines.RankedRSCP(
            problem.certificate,
            problem.samples.tuning,
            seed=0,
            alpha=problem.alpha,
            eta=problem.eta,
        ),
        bounded=False,
        most_samples=256,
    )


def cas(name: str, correction: str, robust_at: str = "calibration") -> Method:
    """Return CAS."""
    return on_means(
        name,
        lambda problem: baselines.CAS(
            problem.certificate,
            alpha=problem.alpha,
            correction=correction,
            eta=problem.eta,
            bounds=problem.samples.bounds,
            robust_at=robust_at,
        ),
    )


def vanilla() -> Method:
    """Return conformal prediction on clean scores."""

    def fit(problem: Problem) -> Fitted:
        samples = problem.samples
        values = samples.clean_true_scores()
        rule = baselines.VanillaCP(alpha=problem.alpha).calibrate(values[: problem.n])
        return Fitted(values, samples.clean, rule.rank_)

    return Method("vanilla CP", "clean", fit, lambda f, p, sampled, clean: clean)


def smoothed() -> Method:
    """Return conformal prediction on mean scores."""

    def means(scores: Array) -> Array:
        return np.asarray(scores.mean(axis=-1, dtype=np.float64))

    def fit(problem: Problem) -> Fitted:
        samples, m = problem.samples, problem.m
        rule = baselines.SmoothedCP(alpha=problem.alpha).calibrate(problem.true_scores())
        calibration, test = (
            samples.once(("mean", phase, m), lambda a=array: means(a[..., :m]))
            for phase, array in (("calibration", samples.calibration), ("test", samples.test))
        )
        return Fitted(calibration, test, rule.rank_)

    return Method("smoothed CP", "clean", fit, lambda f, p, sampled, clean: means(sampled))


PAPER_P = "0.6"
"""p of the tables of the paper."""

METHODS = (
    vanilla(),
    smoothed(),
    rscp("RSCP, uncorrected", "none"),
    cas("CAS, uncorrected", "none"),
    binary("BinCP, uncorrected", "none", usual_p=PAPER_P, correction="none"),
    rscp("RSCP+, Hoeffding", "hoeffding"),
    rscp("RSCP+, Bernstein", "bernstein"),
    ranked(),
    cas("CAS", "dkw"),
    cas("CAS, test-time", "dkw", "test"),
    binary(
        "BinCP, as printed",
        "robust",
        usual_p=PAPER_P,
        correction="clopper-pearson",
        union="paper",
    ),
    binary("BinCP, ghost", "robust", usual_p=PAPER_P, correction="clopper-pearson", union="ghost"),
    binary("BinCP, mixture", "robust", correction="mixture"),
    binary("BinCP, mixture, p = 0.9", "robust", correction="mixture", p="0.9"),
    one_sample(),
)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Let no method warn that every label is in every set: the tables show it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bincp.TrivialSetWarning)
        yield


def fit_quietly(method: Method, problem: Problem) -> Fitted:
    """Fit a method without warnings of trivial sets."""
    with quietly():
        return method.fit(problem)
