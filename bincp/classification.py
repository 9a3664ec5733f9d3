"""Plain smoothed classification: labels with a certified radius, or none, from counts of votes.

A smoothed classifier returns the label that most noisy copies of the input get. With votes drawn in
two stages, to select a label and to bound its probability, it is certified by any `Certificate`
where the worst probability over the ball stays above one half. Evaluations in the style of Cohen et
al. (2019), of ART's randomised smoothing, or of sparse smoothing compute the same;
`bincp.sampling.vote_counts` draws the votes.

Counts are integers and bounds are in double precision. Every statement holds for each input by
itself, with probability at least ``1 - alpha`` over the votes.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_array, as_counts, as_probabilities, where
from bincp._utils.bisection import last_double
from bincp._utils.levels import Level, check_level
from bincp._utils.validation import MAX_COUNT, check_flag
from bincp.balls import Ball
from bincp.certificates import Certificate, as_certificate, certify
from bincp.errors import AbstentionWarning
from bincp.intervals import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    confidence_sequence_lower,
    confidence_sequence_upper,
    randomized_clopper_pearson_lower,
    randomized_clopper_pearson_upper,
)
from bincp.smoothing import Smoothing

__all__ = [
    "ABSTAIN",
    "CertifiedLabels",
    "certified_accuracy",
    "certified_labels",
    "is_certified",
    "predict",
]

ABSTAIN = -1
"""The label of an input on which the smoothed classifier abstains."""

BallFamily = Callable[[float], Ball]
"""A function of the radius that makes the ball, such as ``bincp.balls.L2``."""

_BOUNDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "clopper-pearson": (clopper_pearson_lower, clopper_pearson_upper),
    "randomized": (randomized_clopper_pearson_lower, randomized_clopper_pearson_upper),
    "sequence": (confidence_sequence_lower, confidence_sequence_upper),
}
"""The lower and the upper bound of each name, on successes, trials and a level."""


@dataclass(frozen=True, repr=False)
class CertifiedLabels:
    """Labels of n inputs, and the radius within which each is certified.

    Parameters
    ----------
    labels : int64 array (n,)
        The label, or `ABSTAIN`.
    radii : float64 array (n,)
        The smoothed classifier gives the label at every input of the ball of this radius; 0 where
        it abstains.
    p_lower : float64 array (n,)
        Confidence bound on the probability of the label that was selected, rounded down.
    """

    labels: npt.NDArray[np.int64]
    radii: npt.NDArray[np.float64]
    p_lower: npt.NDArray[np.float64]

    def __repr__(self) -> str:
        n, certified = len(self.labels), self.radii[self.labels != ABSTAIN]
        name = f"CertifiedLabels({n} inputs, abstains on {n - len(certified)}"
        radius = f", median radius {np.median(certified):.4g}" if len(certified) else ""
        return f"{name}{radius})"


def predict(counts: ArrayLike, *, alpha: Level = 0.001) -> npt.NDArray[np.int64]:
    """Return the labels of a smoothed classifier, or abstain: PREDICT of Cohen et al.

    With probability at least ``1 - alpha`` over the votes, the label that is returned for an input,
    if any, is the one that the smoothed classifier gives it.

    Parameters
    ----------
    counts : int array (n, K)
        Votes for each label; each row adds up to the number of draws.
    alpha : int, float, str, Decimal or Fraction
        Error probability for an input, in (0, 1).

    Returns
    -------
    int64 array (n,)
        The label with most votes, or `ABSTAIN` where the two-sided binomial test of the two leading
        labels does not reject that they are equally likely.

    Warns
    -----
    AbstentionWarning
        If no outcome of so few draws could decide.

    Raises
    ------
    TypeError
        If the counts are not integers, or `alpha` is not a number.
    ValueError
        If the counts are not (n, K), negative, or do not add up to one number of draws, or `alpha`
        is out of range.

    See Also
    --------
    certified_labels : Return labels with radii.

    Notes
    -----
    The test rejects where P[Bin(s, 1/2) >= s1] <= alpha / 2, s1 being the votes of the leading
    label and s those of the two. It is decided by the Clopper-Pearson bound of s1 of s at
    ``alpha / 2``, which is rounded down: where the p-value equals alpha up to 1e-13, it abstains.

    References
    ----------
    .. [1] Cohen, Rosenfeld and Kolter, "Certified adversarial robustness via randomized smoothing",
       ICML 2019, section 3.2.1. Hung and Fithian, "Rank verification for exponential families",
       Annals of Statistics 47, 2019, prove that the leading two may be picked by their votes.

    Examples
    --------
    >>> from bincp.classification import predict
    >>> predict([[95, 5, 0], [52, 47, 1]], alpha=0.001)
    array([ 0, -1])
    """
    votes = _as_votes("counts", counts)
    half = check_level("alpha", alpha) / 2
    _warn_if_always_abstaining(votes, half, "alpha / 2", stacklevel=3)
    ranked = np.sort(votes, axis=1)
    first = ranked[:, -1]
    leading = first + (ranked[:, -2] if votes.shape[1] > 1 else 0)
    decided = np.asarray(clopper_pearson_lower(first, leading, half)) >= 0.5
    return np.where(decided, votes.argmax(axis=1), ABSTAIN)


def certified_labels(
    selection_counts: ArrayLike,
    counts: ArrayLike,
    smoothing: Smoothing,
    ball: BallFamily,
    *,
    alpha: Level = 0.001,
    multiclass: bool = False,
    bound: str = "clopper-pearson",
    uniform: ArrayLike | None = None,
) -> CertifiedLabels:
    """Return labels with the radii within which they are certified: CERTIFY of Cohen et al.

    With probability at least ``1 - alpha`` over the votes, the smoothed classifier gives the label
    that is returned for an input, if any, to every input in the ball of its radius.

    Parameters
    ----------
    selection_counts : int array (n, K)
        Votes that select the label, the first of those with most.
    counts : int array (n, K)
        Votes that bound its probability, of draws that are independent of the selection: a bound
        from the votes that made the label win would be too high.
    smoothing : Smoothing
        The scheme that the votes were drawn with.
    ball : callable
        Maps a radius to a ball that grows with it: ``bincp.balls.L2``,
        ``lambda r: bincp.balls.Linf(r, dim=784)``.
    alpha : int, float, str, Decimal or Fraction
        Error probability for an input, in (0, 1).
    multiclass : bool, optional
        Bound the probability of each other label as well, all K at level ``alpha / K``. Else one
        rival is taken to have the whole rest. True gives a larger radius where several labels share
        the rest, and a smaller one where one label has it all.
    bound : {"clopper-pearson", "randomized", "sequence"}, optional
        The confidence bound on a probability, of `bincp.intervals`. "randomized" is never worse
        than that of Clopper and Pearson, and needs `uniform`. "sequence" holds at any time: votes
        of an input may be drawn until it is certified, so its rows may have different numbers of
        votes.
    uniform : float array (n,), optional
        For "randomized": a number in [0, 1] for each input, drawn uniformly, once, and
        independently of the votes.

    Returns
    -------
    CertifiedLabels

    Warns
    -----
    AbstentionWarning
        If no outcome of so few draws could certify.

    Raises
    ------
    CertificateError
        If the scheme has no certificate for the balls.
    TypeError
        If counts are not integers, or another argument has a wrong type.
    ValueError
        If counts have a wrong shape, are negative, do not add up to one number of draws (but for
        "sequence"), or are the same array as the ones that select; if `alpha` is out of range, or
        `bound` or `uniform` wrong.

    See Also
    --------
    is_certified : Certify over one ball, of any kind.
    certified_accuracy : Return the accuracy that is certified at each radius.

    Notes
    -----
    The radius is the largest at which `is_certified` holds, found by bisection to adjacent doubles,
    of which the safe one is returned. For Gaussian noise and l2 it is sigma Phi^-1(p_lower), or
    with `multiclass` the sigma / 2 (Phi^-1(pA) - Phi^-1(pB)) of Theorem 1 in [1]_; its relative
    error is that of the bounds, below 1e-9.

    References
    ----------
    .. [1] Cohen, Rosenfeld and Kolter, "Certified adversarial robustness via randomized smoothing",
       ICML 2019, section 3.2.2.

    Examples
    --------
    >>> from bincp.balls import L2
    >>> from bincp.classification import certified_labels
    >>> from bincp.smoothing import Gaussian
    >>> selection_counts = [[95, 5, 0], [52, 47, 1]]
    >>> counts = [[991, 9, 0], [509, 480, 11]]
    >>> certified = certified_labels(selection_counts, counts, Gaussian(0.25), L2)
    >>> certified.labels, certified.radii.round(4)
    (array([ 0, -1]), array([0.5011, 0.    ]))
    """
    if not callable(ball):
        raise TypeError(f"`ball` must be callable, from a radius to a ball, got {ball!r}")
    bounds = _bound(selection_counts, counts, alpha, multiclass, bound, uniform)
    # Inputs with equal counts share a radius, and there are few counts.
    own = bounds.own.tolist()
    rival = [None] * len(own) if bounds.rival is None else bounds.rival.tolist()
    pairs = list(zip(own, rival, strict=True))
    found = {pair: _largest_radius(smoothing, ball, *pair) for pair in set(pairs)}
    radii = np.array([found[pair] for pair in pairs])
    labels = np.where(radii < 0, ABSTAIN, bounds.labels)
    return CertifiedLabels(labels, np.maximum(radii, 0.0), bounds.own)


def is_certified(
    selection_counts: ArrayLike,
    counts: ArrayLike,
    certificate: Certificate,
    *,
    alpha: Level = 0.001,
    multiclass: bool = False,
    bound: str = "clopper-pearson",
    uniform: ArrayLike | None = None,
) -> npt.NDArray[np.bool_]:
    """Return for which inputs the label is certified over one perturbation ball.

    With probability at least ``1 - alpha`` over the votes, the smoothed classifier gives the
    selected label to every input in the ball around an input for which the answer is True.

    Parameters
    ----------
    selection_counts : int array (n, K)
        Votes that select the label, ``selection_counts.argmax(axis=1)``.
    counts : int array (n, K)
        Votes that bound its probability, of draws that are independent of the selection.
    certificate : Certificate
        Certificate for the noise that the votes were drawn with and the ball to defend against.
    alpha, multiclass, bound, uniform
        As in `certified_labels`.

    Returns
    -------
    bool array (n,)

    Warns
    -----
    AbstentionWarning
        If no outcome of so few draws could certify.

    Raises
    ------
    CertificateError
        If `multiclass` is true and the certificate does not know its inverted ball.
    TypeError, ValueError
        As in `certified_labels`.

    Notes
    -----
    Let pA be the lower bound on the probability of the label. The label is certified if
    ``lower(pA) > 1/2``. With `multiclass`, let pB be the largest upper bound on the probability of
    another label, at most 1 - pA. The label is certified if ``lower(pA) > upper(pB)``, where
    `upper` is over the same ball, that is, of ``certificate.inverse()``.

    Examples
    --------
    >>> import bincp
    >>> from bincp.classification import is_certified
    >>> scheme = bincp.smoothing.SparseFlip(p_plus=0.01, p_minus=0.6)
    >>> certificate = bincp.certify(scheme, bincp.balls.Flips(additions=0, deletions=2))
    >>> is_certified([[95, 5, 0], [52, 47, 1]], [[991, 9, 0], [509, 480, 11]], certificate)
    array([ True, False])
    """
    as_certificate(certificate)
    bounds = _bound(selection_counts, counts, alpha, multiclass, bound, uniform)
    most = 0.5 if bounds.rival is None else certificate.inverse().upper(bounds.rival)
    return np.asarray(certificate.lower(bounds.own) > most)


def certified_accuracy(
    labels: ArrayLike, radii: ArrayLike, true_labels: ArrayLike, at: ArrayLike
) -> npt.NDArray[np.float64]:
    """Return the share of the inputs that are classified right and certified at each radius.

    Parameters
    ----------
    labels : int array (n,)
        As `certified_labels` returns them; `ABSTAIN` is never right.
    radii : float array (n,)
        Certified radii, at least 0.
    true_labels : int array (n,)
    at : float array (q,)
        Radii, at least 0, at which to evaluate.

    Returns
    -------
    float64 array (q,)
        Shares in [0, 1], non-increasing in the radius.

    Raises
    ------
    TypeError
        If labels are not integers, or radii not real numbers.
    ValueError
        If there are no inputs, shapes do not fit, or a value is out of range.

    Examples
    --------
    >>> from bincp.classification import certified_accuracy
    >>> certified_accuracy([0, 1, -1], [0.5, 0.25, 0.0], [0, 1, 2], at=[0.0, 0.3])
    array([0.66666667, 0.33333333])
    """
    own = as_counts("labels", labels, low=ABSTAIN, high=2**62)
    if own.ndim != 1 or own.size == 0:
        raise ValueError(f"`labels` must have shape (n,) and not be empty, got {own.shape}")
    truth = as_counts("true_labels", true_labels, high=2**62)
    reach, radius = _as_radii("radii", radii), _as_radii("at", at)
    for name, values in (("true_labels", truth), ("radii", reach)):
        if values.shape != own.shape:
            raise ValueError(f"`{name}` must have shape {own.shape}, got {values.shape}")
    if radius.ndim != 1:
        raise ValueError(f"`at` must have shape (q,), got {radius.shape}")
    # For each radius in `at`, count the inputs that are right and certified at least so far.
    right = np.sort(reach[own == truth])
    return (len(right) - np.searchsorted(right, radius, side="left")) / len(own)


# ---- steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bounds:
    """The selected labels (n,), lower bounds on their probabilities, upper bounds on others."""

    labels: npt.NDArray[np.int64]
    own: npt.NDArray[np.float64]
    rival: npt.NDArray[np.float64] | None  # None: a rival may have all the rest


def _bound(
    selection_counts: ArrayLike,
    counts: ArrayLike,
    alpha: Level,
    multiclass: bool,
    bound: str,
    uniform: ArrayLike | None,
) -> _Bounds:
    selection = _as_votes("selection_counts", selection_counts)
    votes = _as_votes("counts", counts, uneven=bound == "sequence")
    if votes.shape != selection.shape:
        raise ValueError(f"`counts` must have shape {selection.shape}, got {votes.shape}")
    given = as_array("counts", counts), as_array("selection_counts", selection_counts)
    if counts is selection_counts or np.shares_memory(*given):
        raise ValueError(
            "`counts` must be votes of other draws than `selection_counts`, got the same array"
        )
    check_flag("multiclass", multiclass)
    n_draws, n_labels = votes.sum(axis=1), votes.shape[1]
    level = check_level("alpha", alpha) / (n_labels if multiclass else 1)
    lower, upper = _bound_functions(bound, uniform, len(votes))
    if bound == "clopper-pearson":
        n_draws = n_draws[0]  # all bounds at once are quicker for one number
        what = "alpha / K" if multiclass else "alpha"
        _warn_if_always_abstaining(votes, level, what, stacklevel=4)
    labels = selection.argmax(axis=1)
    rows = np.arange(len(labels))
    own = np.asarray(lower(votes[rows, labels], n_draws, level))
    if not multiclass:
        return _Bounds(labels, own, None)
    others = votes.copy()
    others[rows, labels] = 0
    rival = np.asarray(upper(others.max(axis=1), n_draws, level))
    left = np.minimum(np.nextafter(1 - own, np.inf), 1.0)  # rounded up
    return _Bounds(labels, own, np.minimum(rival, left))


def _bound_functions(
    bound: object, uniform: ArrayLike | None, n: int
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the lower and the upper bound on successes, trials and a level."""
    if not isinstance(bound, str) or bound not in _BOUNDS:
        raise ValueError(f"`bound` must be one of {', '.join(_BOUNDS)}, got {bound!r}")
    lower, upper = _BOUNDS[bound]
    if (uniform is not None) != (bound == "randomized"):
        raise TypeError(
            "`uniform` must be given for bound='randomized', and only then, "
            f"got {type(uniform).__name__} with {bound!r}"
        )
    if uniform is None:
        return lower, upper
    u = as_probabilities("uniform", uniform)
    if u.shape != (n,):
        raise ValueError(f"`uniform` must have shape ({n},), got {u.shape}")
    return partial(lower, uniform=u), partial(upper, uniform=u)


def _largest_radius(
    smoothing: Smoothing, ball: BallFamily, own: float, rival: float | None
) -> float:
    """Return the largest radius at which the label is certified, or minus infinity if none is."""

    def holds(radius: float) -> bool:
        certificate = certify(smoothing, ball(radius))
        most = 0.5 if rival is None else certificate.inverse().upper(rival)
        return certificate.lower(own) > most

    return last_double(holds)


# ---- arguments -----------------------------------------------------------------------------------


def _as_votes(name: str, counts: ArrayLike, *, uneven: bool = False) -> npt.NDArray[np.int64]:
    """Return votes (n, K), of rows with equally many unless `uneven`."""
    votes = as_counts(name, counts, high=MAX_COUNT)
    if votes.ndim != 2 or votes.size == 0:
        raise ValueError(f"`{name}` must have shape (n, K) and not be empty, got {votes.shape}")
    draws = votes.sum(axis=1)
    bad = (draws == 0) | (draws > MAX_COUNT)
    if bad.any():
        raise ValueError(
            f"`{name}` must have 1 to {MAX_COUNT} votes a row, got {draws[bad][0]} {where(bad)}"
        )
    other = (draws != draws[0]) & (not uneven)
    if other.any():
        raise ValueError(
            f"`{name}` must have one vote a draw and equally many draws a row, got rows of "
            f"{draws[0]} and {draws[other][0]} votes {where(other)}"
        )
    return votes


def _as_radii(name: str, value: ArrayLike) -> npt.NDArray[np.float64]:
    radii = as_array(name, value)
    if radii.dtype.kind not in "fiu":
        raise TypeError(f"`{name}` must be real numbers, got dtype {radii.dtype}")
    bad = ~(radii >= 0)
    if bad.any():
        raise ValueError(f"`{name}` must be at least 0, got {radii[bad][0]} {where(bad)}")
    return radii.astype(np.float64)


def _warn_if_always_abstaining(
    votes: npt.NDArray[np.int64], level: Fraction, what: str, *, stacklevel: int
) -> None:
    """Warn where even unanimous draws prove nothing: 2^-draws must be below the level."""
    draws = int(votes[0].sum())
    needed = math.floor(1 / level).bit_length()
    if draws < needed:
        warnings.warn(
            f"every input will be abstained on: even if all of {draws} draws agree, their "
            f"probability of 2^-{draws} under a tie is not below {what} = {float(level):g}; "
            f"{needed} draws can decide",
            AbstentionWarning,
            stacklevel=stacklevel,
        )
